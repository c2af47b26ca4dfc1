//! Random numbers: Philox in vectors.
//!
//! What element number k is, stands in [`tilework_ops::random`]: a function of key and k alone, so
//! pieces are filled in any order. The loops here are those definitions compiled for each
//! instruction set; only normal numbers take their logarithm and cosine from the simd crate, a chunk
//! at a time, within 2 ulp of the definition. Called by the backend.

use std::f64::consts::TAU;
use std::ops::Range;

use tilework_backend::{Random, Session};
use tilework_error::Result;
use tilework_layout::positions;
use tilework_ops::random::{ROUND, WEYL, bits, integer, uniform, uniform_f64};
use tilework_ops::{DType, Distribution, Id};

use crate::isa::Isa;
use crate::map::kernels::{self, Kernel};
use crate::map::{PIECE, cast};
use crate::pool;

/// How many elements are made at a time where there is more than one step.
const CHUNK: usize = 128;

/// What ten rounds of Philox cost, in bytes of traffic.
const COST: usize = 16;

/// Does what a `Random` request asks.
pub(crate) fn run(session: &Session<'_>, request: &Random<'_>) -> Result<()> {
    let layout = request.output.layout();
    let dtype = request.output.dtype();
    let Some(fill) = filler(request.distribution, dtype).filter(|_| layout.is_contiguous()) else {
        // Strided targets and dtypes that are cast to are rare: straight by the definition.
        for (k, position) in positions(layout).enumerate() {
            let number = request.counter.wrapping_add(k as u64);
            let value = request.distribution.evaluate(request.key, number, dtype);
            request.output.store(session, position, value);
        }
        return Ok(());
    };
    let out = Shared(request.output.pointer(session).wrapping_add(layout.offset() * dtype.size()));
    let grain = PIECE / COST;
    pool::for_ranges(layout.len(), grain, &|range: Range<usize>| {
        let first = request.counter.wrapping_add(range.start as u64);
        // SAFETY: the target's elements lie one after the other from `out` (checked above) inside
        // their block (the invariant of views), which the session holds for writing; ranges are
        // apart. The loops are those of the current instruction set.
        unsafe { fill.run(request.key, first, range.len(), out.at(range.start * dtype.size())) }
    });
    Ok(())
}

/// An address that pieces of work share.
struct Shared(*mut u8);

// SAFETY: pieces write different elements.
unsafe impl Sync for Shared {}

impl Shared {
    fn at(&self, bytes: usize) -> *mut u8 {
        self.0.wrapping_add(bytes)
    }
}

/// A loop over elements: key, number of the first, how many, where.
type Loop<P> = unsafe fn(P, u64, u64, usize, *mut u8);

/// How a contiguous target is filled.
#[derive(Clone, Copy)]
enum Filler {
    /// One loop.
    Direct(Loop<(i64, u64)>, (i64, u64)),
    /// float32, then the half type that holds it exactly.
    Half(Loop<()>, Kernel),
    /// Radii and angles in float64, then their functions, then float32 if it is to be.
    Normal { loops: [Loop<()>; 2], log: Kernel, cos: Kernel, single: bool },
}

fn filler(distribution: Distribution, dtype: DType) -> Option<Filler> {
    let none = (0, 0);
    Some(match (distribution, dtype) {
        (Distribution::Bits, DType::UInt64) => Filler::Direct(pick::<Bits, _>(), none),
        (Distribution::Uniform, DType::Float16) => Filler::Half(pick::<Half, _>(), narrow(dtype)?),
        (Distribution::Uniform, DType::BFloat16) => {
            Filler::Half(pick::<Brain, _>(), narrow(dtype)?)
        }
        (Distribution::Uniform, DType::Float32) => Filler::Direct(pick::<Single, _>(), none),
        (Distribution::Uniform, DType::Float64) => Filler::Direct(pick::<Double, _>(), none),
        (Distribution::Integers { low, span }, DType::Int64) => {
            Filler::Direct(pick::<Integers, _>(), (low, span))
        }
        (Distribution::Normal, DType::Float32 | DType::Float64) => {
            let single = dtype == DType::Float32;
            let loops = match single {
                true => [pick::<Radius32, _>(), pick::<Angle32, _>()],
                false => [pick::<Radius64, _>(), pick::<Angle64, _>()],
            };
            let kernel = |id| kernels::kernel(id, DType::Float64);
            Filler::Normal { loops, log: kernel(Id::Log)?, cos: kernel(Id::Cos)?, single }
        }
        _ => return None,
    })
}

/// What rounds float32 to a half type.
fn narrow(dtype: DType) -> Option<Kernel> {
    match cast::chain(DType::Float32, dtype) {
        [(kernel, _)] => Some(*kernel),
        _ => None,
    }
}

impl Filler {
    /// # Safety
    /// `out` may be written for `n` elements.
    unsafe fn run(self, key: u64, first: u64, n: usize, out: *mut u8) {
        match self {
            // SAFETY: the caller's promise.
            Filler::Direct(run, parameters) => unsafe { run(parameters, key, first, n, out) },
            Filler::Half(run, narrow) => {
                for done in (0..n).step_by(CHUNK) {
                    let (count, at) = (CHUNK.min(n - done), first.wrapping_add(done as u64));
                    let mut buffer = [0f32; CHUNK];
                    // SAFETY: the buffer holds a chunk, and the kernel is that of the current
                    // instruction set. The caller vouches for `out`.
                    unsafe {
                        run((), key, at, count, buffer.as_mut_ptr().cast());
                        let from = buffer.as_ptr().cast();
                        narrow(count, out.add(done * 2), from, from, from);
                    }
                }
            }
            Filler::Normal { loops, log, cos, single } => {
                let mut done = 0;
                while done < n {
                    let count = CHUNK.min(n - done);
                    let at = first.wrapping_add(done as u64);
                    let [mut radius, mut angle, mut log_of, mut cos_of] = [[0f64; CHUNK]; 4];
                    // SAFETY: buffers hold a chunk, and all are apart; the kernels are those of
                    // the current instruction set on float64. The caller vouches for `out`.
                    unsafe {
                        loops[0]((), key, at, count, radius.as_mut_ptr().cast());
                        loops[1]((), key, at, count, angle.as_mut_ptr().cast());
                        let (x, y) = (radius.as_ptr().cast(), angle.as_ptr().cast());
                        log(count, log_of.as_mut_ptr().cast(), x, x, x);
                        cos(count, cos_of.as_mut_ptr().cast(), y, y, y);
                        for i in 0..count {
                            let normal = (-2.0 * log_of[i]).sqrt() * cos_of[i];
                            match single {
                                true => out.cast::<f32>().add(done + i).write(normal as f32),
                                false => out.cast::<f64>().add(done + i).write(normal),
                            }
                        }
                    }
                    done += count;
                }
            }
        }
    }
}

/// What a loop makes of the words of an element.
trait Make<P> {
    type Of;
    fn make(parameters: P, words: [u32; 4]) -> Self::Of;
}

macro_rules! makes {
    ($($name:ident $P:ty => $Of:ty, $make:expr;)+) => {$(
        struct $name;
        impl Make<$P> for $name {
            type Of = $Of;
            #[inline(always)]
            fn make(parameters: $P, words: [u32; 4]) -> $Of {
                let make: fn($P, [u32; 4]) -> $Of = $make;
                make(parameters, words)
            }
        }
    )+};
}

const TWO_TO_32: f64 = (1u64 << 32) as f64;
const TWO_TO_53: f64 = (1u64 << 53) as f64;

makes! {
    Bits (i64, u64) => u64, |_, words| bits(words);
    Half () => f32, |_, words| uniform::<11>(words);
    Brain () => f32, |_, words| uniform::<8>(words);
    Single (i64, u64) => f32, |_, words| uniform::<24>(words);
    Double (i64, u64) => f64, |_, words| uniform_f64(words);
    Integers (i64, u64) => i64, |(low, span), words| integer(words, low, span);
    Radius32 () => f64, |_, words| (words[0] as f64 + 1.0) * (1.0 / TWO_TO_32);
    Angle32 () => f64, |_, words| TAU * (words[1] as f64 * (1.0 / TWO_TO_32));
    Radius64 () => f64, |_, words| ((bits(words) >> 11) as f64 + 1.0) * (1.0 / TWO_TO_53);
    Angle64 () => f64, |_, words| TAU * uniform_f64([words[2], words[3], 0, 0]);
}

/// The words of element `number`: [`tilework_ops::random::block`] in 64-bit arithmetic throughout,
/// which is what makes the compiler turn a loop over elements into vectors.
#[inline(always)]
fn words(key: u64, number: u64) -> [u32; 4] {
    const LOW: u64 = u32::MAX as u64;
    let (mut a, mut b, mut c, mut d) = (number & LOW, number >> 32, 0u64, 0u64);
    let mut key = [key as u32, (key >> 32) as u32];
    for _ in 0..10 {
        let (first, third) = (ROUND[0] as u64 * a, ROUND[1] as u64 * c);
        (a, b) = ((third >> 32) ^ b ^ key[0] as u64, third & LOW);
        (c, d) = ((first >> 32) ^ d ^ key[1] as u64, first & LOW);
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    [a as u32, b as u32, c as u32, d as u32]
}

/// A loop behind its instruction set.
fn pick<M: Make<P>, P: Copy>() -> Loop<P> {
    /// # Safety
    /// `out` may be written for `n` elements.
    #[inline(always)]
    unsafe fn body<M: Make<P>, P: Copy>(p: P, key: u64, first: u64, n: usize, out: *mut u8) {
        for i in 0..n {
            let words = words(key, first.wrapping_add(i as u64));
            // SAFETY: the caller's promise.
            unsafe { out.cast::<M::Of>().add(i).write(M::make(p, words)) }
        }
    }
    unsafe fn scalar<M: Make<P>, P: Copy>(p: P, key: u64, first: u64, n: usize, out: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { body::<M, P>(p, key, first, n, out) }
    }
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<M: Make<P>, P: Copy>(p: P, key: u64, first: u64, n: usize, out: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { body::<M, P>(p, key, first, n, out) }
    }
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    unsafe fn avx512<M: Make<P>, P: Copy>(p: P, key: u64, first: u64, n: usize, out: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { body::<M, P>(p, key, first, n, out) }
    }
    match Isa::current() {
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx2 => avx2::<M, P>,
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx512 => avx512::<M, P>,
        _ => scalar::<M, P>,
    }
}
