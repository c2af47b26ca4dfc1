//! Which instruction set the kernels of this process use, decided once.
//!
//! The best that the CPU has, or what `TILEWORK_ISA` (`scalar`, `avx2`, `avx512`) names if the
//! CPU has that. Tables of kernels are indexed by [`Isa`]; a new instruction set is a variant here
//! and a column there.

use tilework_fork::ForkOnce;

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
        decided().0
    }

    /// What `TILEWORK_ISA` says that cannot be followed, in words.
    pub fn unheeded() -> Option<&'static str> {
        decided().1.as_deref()
    }
}

/// Something to do under an instruction set.
pub(crate) trait Work {
    /// Does it; must be `#[inline(always)]`.
    fn run(self);
}

/// Does work with the instructions of `isa`.
#[inline]
pub(crate) fn with_isa<W: Work>(isa: Isa, work: W) {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,fma")]
    fn avx2<W: Work>(work: W) {
        work.run();
    }
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    fn avx512<W: Work>(work: W) {
        work.run();
    }
    match isa {
        // SAFETY: `Isa::current`, where every isa comes from, gives only what the CPU has.
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx2 => unsafe { avx2(work) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx512 => unsafe { avx512(work) },
        _ => work.run(),
    }
}

fn decided() -> &'static (Isa, Option<String>) {
    static DECIDED: ForkOnce<(Isa, Option<String>)> = ForkOnce::new();
    DECIDED.get_or_make(|| choose(std::env::var("TILEWORK_ISA").ok().as_deref()))
}

/// The widest available instruction set that is not wider than the one named, and what is wrong with
/// the name.
fn choose(wanted: Option<&str>) -> (Isa, Option<String>) {
    let wanted = wanted.unwrap_or("");
    let named = Isa::ALL.into_iter().find(|isa| isa.name() == wanted);
    let ceiling = named.unwrap_or(Isa::Avx512);
    let usable = |isa: &Isa| *isa <= ceiling && isa.is_available();
    let chosen = Isa::ALL.into_iter().rev().find(usable).unwrap_or(Isa::Scalar);
    let wrong = match named {
        None if wanted.is_empty() => None,
        None => {
            let names = Isa::ALL.map(Isa::name).join(", ");
            Some(format!("TILEWORK_ISA: {wanted:?} is none of {names}"))
        }
        Some(named) if named != chosen => Some(format!("TILEWORK_ISA: there is no {wanted} here")),
        Some(_) => None,
    };
    (chosen, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_followed_are_said() {
        let best = choose(None).0;
        assert_eq!(choose(Some("scalar")), (Isa::Scalar, None));
        assert_eq!(choose(Some("")), (best, None));
        let (isa, wrong) = choose(Some("avx-512"));
        assert_eq!(isa, best);
        assert_eq!(wrong.unwrap(), "TILEWORK_ISA: \"avx-512\" is none of scalar, avx2, avx512");
        for isa in Isa::ALL {
            let (chosen, wrong) = choose(Some(isa.name()));
            assert!(chosen.is_available() && wrong.is_none() == isa.is_available());
        }
    }
}
