//! The one door through which others get at the vectors of an instruction set.
//!
//! The vector types are private, since their safe functions run instructions that the CPU may not
//! have. Work that is generic over them is handed to [`Tiled::with_tiles`], whose caller vouches for
//! the CPU. Called by the CPU backend for loops of its own.

use crate::{
    Level,
    scalar::{ScalarF32, ScalarF64},
    vector::{Lanes, Real},
};
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
use crate::{
    avx2::{Avx2F32, Avx2F64},
    avx512::{Avx512F32, Avx512F64},
};

/// Rows of a tile at most.
pub const MOST_ROWS: usize = 12;

/// Something to do with the vectors of an instruction set, in tiles that fill its registers.
pub trait TileWork<T> {
    /// What it gives.
    type Output;
    /// Does it, with tiles of two vectors and `ROWS` rows; must be `#[inline(always)]`.
    fn run<V: Lanes<Elem = T>, const ROWS: usize>(self) -> Self::Output;
}

/// A number that every instruction set has vectors of: `f32` and `f64`.
pub trait Tiled: Real {
    /// Does work with the vectors of a level.
    ///
    /// # Safety
    /// The CPU has the level: see [`Level::is_available`].
    unsafe fn with_tiles<W: TileWork<Self>>(level: Level, work: W) -> W::Output;
}

macro_rules! tiled {
    ($T:ty, $plain:ty, $avx2:ty, $avx512:ty) => {
        impl Tiled for $T {
            #[inline]
            unsafe fn with_tiles<W: TileWork<$T>>(level: Level, work: W) -> W::Output {
                #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
                #[target_feature(enable = "avx2,fma")]
                fn avx2<W: TileWork<$T>>(work: W) -> W::Output {
                    work.run::<$avx2, 6>()
                }
                #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
                #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
                fn avx512<W: TileWork<$T>>(work: W) -> W::Output {
                    work.run::<$avx512, MOST_ROWS>()
                }
                match level {
                    // SAFETY: the caller's promise.
                    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
                    Level::Avx2 => unsafe { avx2(work) },
                    // SAFETY: as above.
                    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
                    Level::Avx512 => unsafe { avx512(work) },
                    _ => work.run::<$plain, 4>(),
                }
            }
        }
    };
}

tiled!(f32, ScalarF32, Avx2F32, Avx512F32);
tiled!(f64, ScalarF64, Avx2F64, Avx512F64);
