//! Which machine instruction does what an operation of a recorded program says.
//!
//! Tables of codes by element and instruction set, and nothing else: registers and memory are
//! chosen by `assemble`, which calls it.

use iced_x86::Code;
use tilework_simd::Elem;
use tilework_simd::record::Op;

use super::target::Target;

/// Codes for float32 and float64 of AVX-512, then of AVX2.
type Codes = [Code; 4];

impl Target {
    fn of(self, codes: &Codes) -> Code {
        codes[usize::from(!self.wide) * 2 + usize::from(self.elem == Elem::F64)]
    }

    /// A whole register from memory, or from another one.
    pub(super) fn load(self) -> Code {
        if self.wide { Code::EVEX_Vmovups_zmm_k1z_zmmm512 } else { Code::VEX_Vmovups_ymm_ymmm256 }
    }

    /// A whole register to memory.
    pub(super) fn store(self) -> Code {
        if self.wide { Code::EVEX_Vmovups_zmmm512_k1z_zmm } else { Code::VEX_Vmovups_ymmm256_ymm }
    }

    /// One number from memory to all lanes.
    pub(super) fn broadcast(self) -> Code {
        self.of(&BROADCAST)
    }

    /// An operation on one register or memory, with an immediate where it has one.
    pub(super) fn unary(self, op: Op) -> Option<(Code, Option<u32>)> {
        let row = UNARY.iter().find(|row| row.0 == op)?;
        let code = self.of(&row.1);
        (code != Code::INVALID).then_some((code, row.2))
    }

    /// Shifts by a number of bits, of registers only.
    pub(super) fn shift(self, op: Op) -> Option<(Code, u32)> {
        match op {
            Op::Shl(n) => Some((self.of(&LEFT), n)),
            Op::Shr(n) => Some((self.of(&RIGHT), n)),
            _ => None,
        }
    }

    /// An operation on a register and a register or memory, and whether they may be exchanged.
    pub(super) fn binary(self, op: Op) -> Option<(Code, bool)> {
        let row = BINARY.iter().find(|row| row.0 == op)?;
        let code = self.of(&row.1);
        (code != Code::INVALID).then_some((code, row.2))
    }

    /// A comparison and its predicate.
    pub(super) fn compare(self, op: Op) -> Option<(Code, u32)> {
        let predicate = match op {
            Op::Lt => 0x11,
            Op::Le => 0x12,
            Op::NotLess => 0x15,
            Op::Eq => 0x00,
            Op::Unordered => 0x03,
            _ => return None,
        };
        Some((self.of(&COMPARE), predicate))
    }

    /// The scaling by a power of two, which has a form with a mask.
    pub(super) fn scale(self) -> Code {
        match self.elem {
            Elem::F32 => Code::EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er,
            Elem::F64 => Code::EVEX_Vscalefpd_zmm_k1z_zmm_zmmm512b64_er,
        }
    }

    /// The second source where the mask says so, else the first.
    pub(super) fn blend(self) -> Code {
        self.of(&BLEND)
    }

    /// Forms of a fused product: the destination is a factor and the last operand the summand
    /// (213) or a factor (132), or the destination is the summand (231).
    pub(super) fn fused(self, op: Op) -> Option<[Code; 3]> {
        let row = FUSED.iter().find(|row| row.0 == op)?;
        Some(row.1.each_ref().map(|codes| self.of(codes)))
    }
}

static BROADCAST: Codes = [
    Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32,
    Code::EVEX_Vbroadcastsd_zmm_k1z_xmmm64,
    Code::VEX_Vbroadcastss_ymm_m32,
    Code::VEX_Vbroadcastsd_ymm_m64,
];

static LEFT: Codes = [
    Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8,
    Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8,
    Code::VEX_Vpslld_ymm_ymm_imm8,
    Code::VEX_Vpsllq_ymm_ymm_imm8,
];

static RIGHT: Codes = [
    Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8,
    Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8,
    Code::VEX_Vpsrld_ymm_ymm_imm8,
    Code::VEX_Vpsrlq_ymm_ymm_imm8,
];

static COMPARE: Codes = [
    Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae,
    Code::EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae,
    Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8,
    Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8,
];

static BLEND: Codes = [
    Code::EVEX_Vblendmps_zmm_k1z_zmm_zmmm512b32,
    Code::EVEX_Vblendmpd_zmm_k1z_zmm_zmmm512b64,
    Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm,
    Code::VEX_Vblendvpd_ymm_ymm_ymmm256_ymm,
];

/// Operations on one operand, and their immediates.
static UNARY: [(Op, Codes, Option<u32>); 10] = [
    (
        Op::Sqrt,
        [
            Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er,
            Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er,
            Code::VEX_Vsqrtps_ymm_ymmm256,
            Code::VEX_Vsqrtpd_ymm_ymmm256,
        ],
        None,
    ),
    (
        Op::Round,
        [
            Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae,
            Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae,
            Code::VEX_Vroundps_ymm_ymmm256_imm8,
            Code::VEX_Vroundpd_ymm_ymmm256_imm8,
        ],
        Some(8),
    ),
    (
        Op::Floor,
        [
            Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae,
            Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae,
            Code::VEX_Vroundps_ymm_ymmm256_imm8,
            Code::VEX_Vroundpd_ymm_ymmm256_imm8,
        ],
        Some(9),
    ),
    (
        Op::Ceil,
        [
            Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae,
            Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae,
            Code::VEX_Vroundps_ymm_ymmm256_imm8,
            Code::VEX_Vroundpd_ymm_ymmm256_imm8,
        ],
        Some(10),
    ),
    (
        Op::Trunc,
        [
            Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae,
            Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae,
            Code::VEX_Vroundps_ymm_ymmm256_imm8,
            Code::VEX_Vroundpd_ymm_ymmm256_imm8,
        ],
        Some(11),
    ),
    (
        Op::Fract,
        [
            Code::EVEX_Vreduceps_zmm_k1z_zmmm512b32_imm8_sae,
            Code::EVEX_Vreducepd_zmm_k1z_zmmm512b64_imm8_sae,
            Code::INVALID,
            Code::INVALID,
        ],
        Some(9),
    ),
    (
        Op::Mantissa,
        [
            Code::EVEX_Vgetmantps_zmm_k1z_zmmm512b32_imm8_sae,
            Code::EVEX_Vgetmantpd_zmm_k1z_zmmm512b64_imm8_sae,
            Code::INVALID,
            Code::INVALID,
        ],
        Some(7),
    ),
    (
        Op::Exponent,
        [
            Code::EVEX_Vgetexpps_zmm_k1z_zmmm512b32_sae,
            Code::EVEX_Vgetexppd_zmm_k1z_zmmm512b64_sae,
            Code::INVALID,
            Code::INVALID,
        ],
        None,
    ),
    (
        Op::RcpEst,
        [
            Code::EVEX_Vrcp14ps_zmm_k1z_zmmm512b32,
            Code::EVEX_Vrcp14pd_zmm_k1z_zmmm512b64,
            Code::VEX_Vrcpps_ymm_ymmm256,
            Code::INVALID,
        ],
        None,
    ),
    (
        Op::RsqrtEst,
        [
            Code::EVEX_Vrsqrt14ps_zmm_k1z_zmmm512b32,
            Code::EVEX_Vrsqrt14pd_zmm_k1z_zmmm512b64,
            Code::VEX_Vrsqrtps_ymm_ymmm256,
            Code::INVALID,
        ],
        None,
    ),
];

/// Operations on two operands, and whether they may be exchanged.
static BINARY: [(Op, Codes, bool); 13] = [
    (
        Op::Add,
        [
            Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er,
            Code::VEX_Vaddps_ymm_ymm_ymmm256,
            Code::VEX_Vaddpd_ymm_ymm_ymmm256,
        ],
        true,
    ),
    (
        Op::Sub,
        [
            Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er,
            Code::VEX_Vsubps_ymm_ymm_ymmm256,
            Code::VEX_Vsubpd_ymm_ymm_ymmm256,
        ],
        false,
    ),
    (
        Op::Mul,
        [
            Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er,
            Code::VEX_Vmulps_ymm_ymm_ymmm256,
            Code::VEX_Vmulpd_ymm_ymm_ymmm256,
        ],
        true,
    ),
    (
        Op::Div,
        [
            Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er,
            Code::VEX_Vdivps_ymm_ymm_ymmm256,
            Code::VEX_Vdivpd_ymm_ymm_ymmm256,
        ],
        false,
    ),
    (
        Op::Min,
        [
            Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae,
            Code::EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae,
            Code::VEX_Vminps_ymm_ymm_ymmm256,
            Code::VEX_Vminpd_ymm_ymm_ymmm256,
        ],
        false,
    ),
    (
        Op::Max,
        [
            Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae,
            Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae,
            Code::VEX_Vmaxps_ymm_ymm_ymmm256,
            Code::VEX_Vmaxpd_ymm_ymm_ymmm256,
        ],
        false,
    ),
    (
        Op::And,
        [
            Code::EVEX_Vandps_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vandpd_zmm_k1z_zmm_zmmm512b64,
            Code::VEX_Vandps_ymm_ymm_ymmm256,
            Code::VEX_Vandpd_ymm_ymm_ymmm256,
        ],
        true,
    ),
    (
        Op::Or,
        [
            Code::EVEX_Vorps_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vorpd_zmm_k1z_zmm_zmmm512b64,
            Code::VEX_Vorps_ymm_ymm_ymmm256,
            Code::VEX_Vorpd_ymm_ymm_ymmm256,
        ],
        true,
    ),
    (
        Op::Xor,
        [
            Code::EVEX_Vxorps_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vxorpd_zmm_k1z_zmm_zmmm512b64,
            Code::VEX_Vxorps_ymm_ymm_ymmm256,
            Code::VEX_Vxorpd_ymm_ymm_ymmm256,
        ],
        true,
    ),
    (
        Op::AndNot,
        [
            Code::EVEX_Vandnps_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vandnpd_zmm_k1z_zmm_zmmm512b64,
            Code::VEX_Vandnps_ymm_ymm_ymmm256,
            Code::VEX_Vandnpd_ymm_ymm_ymmm256,
        ],
        false,
    ),
    (
        Op::Scalef,
        [
            Code::EVEX_Vscalefps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vscalefpd_zmm_k1z_zmm_zmmm512b64_er,
            Code::INVALID,
            Code::INVALID,
        ],
        false,
    ),
    (
        Op::AddInt,
        [
            Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64,
            Code::VEX_Vpaddd_ymm_ymm_ymmm256,
            Code::VEX_Vpaddq_ymm_ymm_ymmm256,
        ],
        true,
    ),
    (
        Op::SubInt,
        [
            Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32,
            Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64,
            Code::VEX_Vpsubd_ymm_ymm_ymmm256,
            Code::VEX_Vpsubq_ymm_ymm_ymmm256,
        ],
        false,
    ),
];

/// Fused products, by form.
static FUSED: [(Op, [Codes; 3]); 3] = [
    (
        Op::Fma,
        [
            [
                Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256,
                Code::VEX_Vfmadd213pd_ymm_ymm_ymmm256,
            ],
            [
                Code::EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfmadd132pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfmadd132ps_ymm_ymm_ymmm256,
                Code::VEX_Vfmadd132pd_ymm_ymm_ymmm256,
            ],
            [
                Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256,
                Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256,
            ],
        ],
    ),
    (
        Op::Fms,
        [
            [
                Code::EVEX_Vfmsub213ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfmsub213pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfmsub213ps_ymm_ymm_ymmm256,
                Code::VEX_Vfmsub213pd_ymm_ymm_ymmm256,
            ],
            [
                Code::EVEX_Vfmsub132ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfmsub132pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfmsub132ps_ymm_ymm_ymmm256,
                Code::VEX_Vfmsub132pd_ymm_ymm_ymmm256,
            ],
            [
                Code::EVEX_Vfmsub231ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfmsub231pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfmsub231ps_ymm_ymm_ymmm256,
                Code::VEX_Vfmsub231pd_ymm_ymm_ymmm256,
            ],
        ],
    ),
    (
        Op::Fnma,
        [
            [
                Code::EVEX_Vfnmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfnmadd213pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfnmadd213ps_ymm_ymm_ymmm256,
                Code::VEX_Vfnmadd213pd_ymm_ymm_ymmm256,
            ],
            [
                Code::EVEX_Vfnmadd132ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfnmadd132pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfnmadd132ps_ymm_ymm_ymmm256,
                Code::VEX_Vfnmadd132pd_ymm_ymm_ymmm256,
            ],
            [
                Code::EVEX_Vfnmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
                Code::EVEX_Vfnmadd231pd_zmm_k1z_zmm_zmmm512b64_er,
                Code::VEX_Vfnmadd231ps_ymm_ymm_ymmm256,
                Code::VEX_Vfnmadd231pd_ymm_ymm_ymmm256,
            ],
        ],
    ),
];
