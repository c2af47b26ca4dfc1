//! Which instruction set the kernels of this process use, decided once.
//!
//! The best that the CPU has, or what `TILEWORK_ISA` (`scalar`, `avx2`, `avx512`) names if the
//! CPU has that. Tables of kernels are indexed by [`Isa`]; a new instruction set is a variant here
//! and a column there.

use std::sync::OnceLock;

/// An instruction set that kernels are compiled for, from the plainest to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Isa {
    /// Whatever the compilation target guarantees; nothing is assumed beyond it.
    Scalar = 0,
    /// AVX2 with FMA and F16C.
    Avx2 = 1,
    /// AVX-512 F, BW, CD, DQ and VL, on top of AVX2.
    Avx512 = 2,
}

impl Isa {
    /// Every instruction set, in order.
    pub const ALL: [Isa; 3] = [Isa::Scalar, Isa::Avx2, Isa::Avx512];

    /// Its name, as `TILEWORK_ISA` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Whether this CPU (and this build) can run it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
            _ => false,
        }
    }

    /// The instruction set of this process.
    pub fn current() -> Isa {
        static CURRENT: OnceLock<Isa> = OnceLock::new();
        *CURRENT.get_or_init(|| {
            let wanted = std::env::var("TILEWORK_ISA").ok();
            let named = wanted.and_then(|name| Isa::ALL.into_iter().find(|isa| isa.name() == name));
            let ceiling = named.unwrap_or(Isa::Avx512);
            let usable = |isa: &Isa| *isa <= ceiling && isa.is_available();
            Isa::ALL.into_iter().rev().find(usable).unwrap_or(Isa::Scalar)
        })
    }
}
