//! Vectors of one instruction set behind a trait, and mathematics on them.
//!
//! [`vector`] is the trait; `scalar`, `avx2`, `avx512` and [`twin`] implement it; [`math`] is generic
//! over it; [`kernels`] drives the mathematics over slices; [`record`] writes it down as a program;
//! [`convert`] turns half floats into `f32` and back; [`order`] sorts integers; [`tiles`] lends the
//! vectors to loops of others. Knows nothing of arrays; called by the CPU backend, which picks the
//! [`Level`].

// Safe functions of these types run instructions that the CPU may not have (the rule of
// [`Vector`]), so nobody outside can name them.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod avx512;
pub mod convert;
mod functions;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod instructions;
pub mod kernels;
pub mod math;
pub mod order;
pub mod record;
pub mod scalar;
pub mod tiles;
pub mod twin;
pub mod vector;

pub use convert::{CONVERSIONS, conversion};
pub use kernels::{KERNELS, kernel};
pub use tiles::{TileWork, Tiled};
pub use vector::{Lanes, Picks, Real, Single, Vector};

/// A contiguous kernel: `n` elements, byte pointers to the first element of the result and of up
/// to three inputs.
///
/// # Safety
/// The CPU has the kernel's level. `out` is writable and each input that the operation has is
/// readable for `n` elements; `out` overlaps no input. Pointers of inputs that the operation lacks
/// are ignored. No alignment is required, 64 bytes are fastest.
pub type Kernel = unsafe fn(n: usize, out: *mut u8, a: *const u8, b: *const u8, c: *const u8);

/// What a kernel computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

/// The instruction sets that kernels are compiled for, as an index into the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Whatever the target guarantees.
    Scalar = 0,
    /// AVX2, FMA and F16C.
    Avx2 = 1,
    /// AVX-512 F, BW, DQ, VL and CD on top.
    Avx512 = 2,
}

impl Level {
    /// Every level, from the plainest to the widest.
    pub const ALL: [Level; 3] = [Level::Scalar, Level::Avx2, Level::Avx512];

    /// Whether this CPU and this build have it.
    pub fn is_available(self) -> bool {
        match self {
            Level::Scalar => true,
            #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
            Level::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
            Level::Avx512 => {
                Level::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512cd")
            }
            #[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
            _ => false,
        }
    }
}
