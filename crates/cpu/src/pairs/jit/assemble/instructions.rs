//! One instruction of a program as machine instructions: operands, forms, masks, conversions.
//!
//! The other half of `assemble`, whose registers and bytes it uses.

use iced_x86::{Code, Instruction as Machine, Register};
use tilework_simd::Elem;
use tilework_simd::record::{NONE, Op, Value};

use super::{Assembler, Branch, HIT, LEFT, Source, memory};
use crate::pairs::jit::schedule::Instance;
use crate::pairs::jit::target::Target;
use crate::pairs::jit::{HIT_BYTES, HIT_NOTE};

impl Assembler<'_> {
    pub(super) fn compute(&mut self, value: Value, vector: usize) -> Option<()> {
        let instruction = self.program.instructions[value as usize];
        let result = self.schedule.instance(value, vector);
        let target = Target { elem: instruction.elem, ..self.target };
        let args: Vec<Instance> = instruction
            .args
            .iter()
            .filter(|&&arg| arg != NONE)
            .map(|&arg| self.schedule.instance(arg, vector))
            .collect();
        if let Some(forms) = target.fused(instruction.op) {
            return self.fused(forms, result, &args);
        }
        if self.target.wide && instruction.op.gives_mask() {
            return self.mask(target, instruction.op, result, &args);
        }
        match instruction.op {
            Op::Select if self.target.wide => {
                let mask = self.mask_of(args[0])?;
                let (b, a) = (self.register(args[2])?, self.source(args[1])?);
                let (b, d) = (self.vector(b), self.define(result, &args)?);
                let mut blend = three(target.blend(), d, b, a)?;
                blend.set_op_mask(mask);
                self.push(blend)
            }
            Op::ScalefWhere => {
                let mask = self.mask_of(args[0])?;
                let (a, b) = (self.register(args[1])?, self.source(args[2])?);
                let (a, d) = (self.vector(a), self.define(result, &args)?);
                let mut scaled = three(target.scale(), d, a, b)?;
                scaled.set_op_mask(mask);
                scaled.set_zeroing_masking(true);
                self.push(scaled)
            }
            Op::Select => {
                let (mask, b) = (self.register(args[0])?, self.register(args[2])?);
                let a = self.source(args[1])?;
                let (mask, b, d) = (self.vector(mask), self.vector(b), self.define(result, &args)?);
                let blend = match a {
                    Source::In(a) => Machine::with4(target.blend(), d, b, a, mask),
                    Source::At(a) => Machine::with4(target.blend(), d, b, a, mask),
                };
                self.push(blend.ok()?)
            }
            Op::WidenLow | Op::WidenHigh | Op::Narrow => {
                self.convert(instruction.op, result, &args)
            }
            Op::Shl(_) | Op::Shr(_) => {
                let (code, bits) = target.shift(instruction.op)?;
                let a = self.register(args[0])?;
                let (a, d) = (self.vector(a), self.define(result, &args)?);
                self.push(Machine::with3(code, d, a, bits).ok()?)
            }
            Op::AndNot => {
                let (code, _) = target.binary(Op::AndNot)?;
                let (b, a) = (self.register(args[1])?, self.source(args[0])?);
                let (b, d) = (self.vector(b), self.define(result, &args)?);
                self.push(three(code, d, b, a)?)
            }
            Op::Lt | Op::Le | Op::Eq | Op::Unordered => {
                let (code, predicate) = target.compare(instruction.op)?;
                let (a, b) = (self.register(args[0])?, self.source(args[1])?);
                let (a, d) = (self.vector(a), self.define(result, &args)?);
                self.push(match b {
                    Source::In(b) => Machine::with4(code, d, a, b, predicate).ok()?,
                    Source::At(b) => Machine::with4(code, d, a, b, predicate).ok()?,
                })
            }
            Op::SignMask | Op::MaskAnd | Op::MaskOr | Op::MaskNot | Op::RcpEst | Op::RsqrtEst
                if !self.target.wide =>
            {
                self.narrow_only(target, instruction.op, result, &args)
            }
            op => {
                if let Some((code, immediate)) = target.unary(op) {
                    let a = self.source(args[0])?;
                    let d = self.define(result, &args)?;
                    return self.push(match (a, immediate) {
                        (Source::In(a), None) => Machine::with2(code, d, a).ok()?,
                        (Source::At(a), None) => Machine::with2(code, d, a).ok()?,
                        (Source::In(a), Some(i)) => Machine::with3(code, d, a, i).ok()?,
                        (Source::At(a), Some(i)) => Machine::with3(code, d, a, i).ok()?,
                    });
                }
                let (code, commutes) = target.binary(op)?;
                let (mut first, mut second) = (args[0], args[1]);
                if commutes && self.place[first].is_none() && self.place[second].is_some() {
                    (first, second) = (second, first);
                }
                let (a, b) = (self.register(first)?, self.source(second)?);
                let (a, d) = (self.vector(a), self.define(result, &args)?);
                self.push(three(code, d, a, b)?)
            }
        }
    }

    /// A fused product, in the form that destroys an operand nobody needs any more.
    fn fused(&mut self, forms: [Code; 3], result: Instance, args: &[Instance]) -> Option<()> {
        let [form213, form132, form231] = forms;
        let (mut a, mut b, c) = (args[0], args[1], args[2]);
        let ends = |this: &Self, x: Instance| {
            this.place[x].is_some_and(|register| !this.pinned[register] || this.becomes(x, result))
                && this.schedule.uses[x].back() == Some(&this.time)
        };
        if !ends(self, a) && ends(self, b) {
            (a, b) = (b, a);
        }
        let a_ends = ends(self, a);
        if ends(self, c) && (self.place[a].is_some() || self.place[b].is_some() || !a_ends) {
            if self.place[a].is_none() {
                (a, b) = (b, a);
            }
            let (d, a, b) = (self.register(c)?, self.register(a)?, self.source(b)?);
            let (d, a) = (self.vector(d), self.vector(a));
            self.takes_over(result, c, args)?;
            return self.push(three(form231, d, a, b)?);
        }
        if a_ends {
            let d = self.register(a)?;
            let (form, second, third) = match self.place[b] {
                None if a != b => (form132, c, b),
                _ => (form213, b, c),
            };
            let (second, third) = (self.register(second)?, self.source(third)?);
            let (d, second) = (self.vector(d), self.vector(second));
            self.takes_over(result, a, args)?;
            return self.push(three(form, d, second, third)?);
        }
        // Nothing may be destroyed: a copy is, loaded where the operand is in memory anyway.
        let summand = self.place[c].is_none() && self.place[a].is_some();
        let (copied, second, third) = if summand { (c, a, b) } else { (a, b, c) };
        let from = self.source(copied)?;
        let (second, third) = (self.register(second)?, self.source(third)?);
        let second = self.vector(second);
        let d = self.fresh()?;
        let to = self.vector(d);
        match from {
            Source::In(from) => {
                self.push(Machine::with2(self.target.load(), to, from).ok()?)?;
            }
            Source::At(_) => self.load_home(copied, d)?,
        }
        let d = self.settle(result, args, d)?;
        let form = if summand { form231 } else { form213 };
        self.push(three(form, d, second, third)?)
    }

    fn mask(&mut self, target: Target, op: Op, result: Instance, args: &[Instance]) -> Option<()> {
        let made = match op {
            Op::MaskAnd | Op::MaskOr => {
                let (a, b) = (self.mask_of(args[0])?, self.mask_of(args[1])?);
                let code = if op == Op::MaskAnd {
                    Code::VEX_Kandw_kr_kr_kr
                } else {
                    Code::VEX_Korw_kr_kr_kr
                };
                Machine::with3(code, self.define_mask(result, args)?, a, b)
            }
            Op::MaskNot => {
                let a = self.mask_of(args[0])?;
                Machine::with2(Code::VEX_Knotw_kr_kr, self.define_mask(result, args)?, a)
            }
            Op::SignMask => {
                let code = match target.elem {
                    Elem::F32 => Code::EVEX_Vpmovd2m_kr_zmm,
                    Elem::F64 => Code::EVEX_Vpmovq2m_kr_zmm,
                };
                let a = self.register(args[0])?;
                let a = self.vector(a);
                Machine::with2(code, self.define_mask(result, args)?, a)
            }
            _ => {
                let (code, mut predicate) = target.compare(op)?;
                let (mut first, mut second) = (args[0], args[1]);
                if self.place[first].is_none() && self.place[second].is_some() {
                    (first, second) = (second, first);
                    predicate = match op {
                        Op::Lt => 0x1E,
                        Op::NotLess => 0x1A,
                        Op::Le => 0x1D,
                        _ => predicate,
                    };
                }
                let (a, b) = (self.register(first)?, self.source(second)?);
                let (a, d) = (self.vector(a), self.define_mask(result, args)?);
                match b {
                    Source::In(b) => Machine::with4(code, d, a, b, predicate),
                    Source::At(b) => Machine::with4(code, d, a, b, predicate),
                }
            }
        };
        self.push(made.ok()?)
    }

    /// What AVX2 has no single instruction for.
    fn narrow_only(
        &mut self,
        target: Target,
        op: Op,
        result: Instance,
        args: &[Instance],
    ) -> Option<()> {
        let a = self.register(args[0])?;
        let a = self.vector(a);
        match op {
            Op::MaskAnd | Op::MaskOr => {
                let (code, _) = target.binary(if op == Op::MaskAnd { Op::And } else { Op::Or })?;
                let b = self.source(args[1])?;
                let d = self.define(result, args)?;
                self.push(three(code, d, a, b)?)
            }
            Op::MaskNot => {
                let scratch = self.scratch();
                let ones = Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256;
                self.push(Machine::with3(ones, scratch, scratch, scratch).ok()?)?;
                let d = self.define(result, args)?;
                let (code, _) = target.binary(Op::Xor)?;
                self.push(three(code, d, a, Source::In(scratch))?)
            }
            Op::SignMask => {
                let d = self.define(result, args)?;
                self.push(Machine::with3(Code::VEX_Vpsrad_ymm_ymm_imm8, d, a, 31).ok()?)?;
                match target.elem {
                    Elem::F32 => Some(()),
                    Elem::F64 => self
                        .push(Machine::with3(Code::VEX_Vpshufd_ymm_ymmm256_imm8, d, d, 0xF5).ok()?),
                }
            }
            _ if target.elem == Elem::F32 => {
                let (code, _) = target.unary(op)?;
                let d = self.define(result, args)?;
                self.push(Machine::with2(code, d, a).ok()?)
            }
            // Estimates of float64 are those of float32.
            _ => {
                let estimate = match op {
                    Op::RcpEst => Code::VEX_Vrcpps_xmm_xmmm128,
                    _ => Code::VEX_Vrsqrtps_xmm_xmmm128,
                };
                let d = self.define(result, args)?;
                let half = lower(d);
                self.push(Machine::with2(Code::VEX_Vcvtpd2ps_xmm_ymmm256, half, a).ok()?)?;
                self.push(Machine::with2(estimate, half, half).ok()?)?;
                self.push(Machine::with2(Code::VEX_Vcvtps2pd_ymm_xmmm128, d, half).ok()?)
            }
        }
    }

    /// Between float32 and the two halves of float64.
    fn convert(&mut self, op: Op, result: Instance, args: &[Instance]) -> Option<()> {
        let (wide, scratch) = (self.target.wide, self.scratch());
        let a = self.register(args[0])?;
        let a = self.vector(a);
        let up = if wide {
            Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae
        } else {
            Code::VEX_Vcvtps2pd_ymm_xmmm128
        };
        match op {
            Op::WidenLow => {
                let d = self.define(result, args)?;
                self.push(Machine::with2(up, d, lower(a)).ok()?)
            }
            Op::WidenHigh => {
                let d = self.define(result, args)?;
                let code = if wide {
                    Code::EVEX_Vextractf32x8_ymmm256_k1z_zmm_imm8
                } else {
                    Code::VEX_Vextractf128_xmmm128_ymm_imm8
                };
                self.push(Machine::with3(code, lower(d), a, 1).ok()?)?;
                self.push(Machine::with2(up, d, lower(d)).ok()?)
            }
            _ => {
                let (down, join) = if wide {
                    (
                        Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er,
                        Code::EVEX_Vinsertf32x8_zmm_k1z_zmm_ymmm256_imm8,
                    )
                } else {
                    (Code::VEX_Vcvtpd2ps_xmm_ymmm256, Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8)
                };
                let high = self.register(args[1])?;
                let high = self.vector(high);
                self.push(Machine::with2(down, lower(scratch), high).ok()?)?;
                let d = self.define(result, args)?;
                self.push(Machine::with2(down, lower(d), a).ok()?)?;
                self.push(Machine::with4(join, d, d, lower(scratch), 1).ok()?)
            }
        }
    }

    /// A branch to the notes after the loop if some lane is a hit.
    pub(super) fn hit(&mut self, hit: usize, vector: usize) -> Option<()> {
        let of = self.program.hits[hit];
        let (mask, value) =
            (self.schedule.instance(of.mask, vector), self.schedule.instance(of.value, vector));
        let value_register = self.register(value)?;
        let mask_register = if self.target.wide {
            let mask = self.mask_of(mask)?;
            let code = match self.target.elem {
                Elem::F32 => Code::VEX_Kortestw_kr_kr,
                Elem::F64 => Code::VEX_Kortestb_kr_kr,
            };
            self.push(Machine::with2(code, mask, mask).ok()?)?;
            mask
        } else {
            let register = self.register(mask)?;
            let register = self.vector(register);
            self.move_mask(register)?;
            self.push(Machine::with2(Code::Test_rm32_r32, Register::R9D, Register::R9D).ok()?)?;
            register
        };
        let jump = self.jump(Code::Jne_rel32_64)?;
        let branch = Branch {
            jump,
            back: self.code.len(),
            mask: mask_register,
            value: self.vector(value_register),
            note: (hit * self.schedule.vectors + vector) as u32,
        };
        self.branches.push(branch);
        self.release(&[mask, value]);
        Some(())
    }

    /// Writes the value of a vector down where the next hit would go.
    pub(super) fn store(&mut self, value: Value, vector: usize) -> Option<()> {
        let instance = self.schedule.instance(value, vector);
        let register = self.register(instance)?;
        let (register, to) = (self.vector(register), memory(HIT, vector * self.target.bytes()));
        self.push(Machine::with2(self.target.store(), to, register).ok()?)?;
        self.release(&[instance]);
        Some(())
    }

    fn move_mask(&mut self, register: Register) -> Option<()> {
        let code = match self.target.elem {
            Elem::F32 => Code::VEX_Vmovmskps_r32_ymm,
            Elem::F64 => Code::VEX_Vmovmskpd_r32_ymm,
        };
        self.push(Machine::with2(code, Register::R9D, register).ok()?)
    }

    /// Writes a hit down: the values, which lanes, which vector, and how many j are left.
    pub(super) fn note(&mut self, branch: &Branch) -> Option<()> {
        self.land(branch.jump, self.code.len());
        if self.target.wide {
            let code = Code::VEX_Kmovw_r32_kr;
            self.push(Machine::with2(code, Register::R9D, branch.mask).ok()?)?;
        } else {
            self.move_mask(branch.mask)?;
        }
        self.push(Machine::with2(self.target.store(), memory(HIT, 0), branch.value).ok()?)?;
        let at = |k: usize| memory(HIT, HIT_NOTE + k);
        self.push(Machine::with2(Code::Mov_rm32_r32, at(0), Register::R9D).ok()?)?;
        self.push(Machine::with2(Code::Mov_rm32_imm32, at(4), branch.note).ok()?)?;
        self.push(Machine::with2(Code::Mov_rm64_r64, at(8), LEFT).ok()?)?;
        self.push(Machine::with2(Code::Add_rm64_imm32, HIT, HIT_BYTES as i32).ok()?)?;
        let jump = self.jump(Code::Jmp_rel32_64)?;
        self.land(jump, branch.back);
        Some(())
    }
}

/// The lower half of a register.
fn lower(register: Register) -> Register {
    match (register as u32).checked_sub(Register::ZMM0 as u32) {
        Some(number) => Register::YMM0 + number,
        None => Register::XMM0 + (register as u32 - Register::YMM0 as u32),
    }
}

fn three(code: Code, d: Register, a: Register, b: Source) -> Option<Machine> {
    match b {
        Source::In(b) => Machine::with3(code, d, a, b).ok(),
        Source::At(b) => Machine::with3(code, d, a, b).ok(),
    }
}
