//! Casts between any two dtypes, as one kernel or a short chain of them.
//!
//! The meaning is [`Value::cast`] and nothing else; the kernels here give its bits. Of the 225 pairs
//! only those that differ in the machine have a kernel: integers wrap by width, so targets have no
//! sign; the half types go through float32 by the conversions of the simd crate; complex numbers go
//! through their parts. Two rules keep chains exact: no step rounds before the last (wide integers
//! and float64 reach the half types by rounding to odd first), and i64 to float32 is direct.
//!
//! Called by `map::plan` for steps that cast, and by the reductions.

use std::marker::PhantomData;

use smallvec::SmallVec;
use tilework_fork::ForkOnce;
use tilework_ops::{Complex, DType, Element, Value};

use super::by_hand;
use super::kernels::Kernel;
use crate::isa::Isa;

/// One step of a cast: a kernel and the dtype that it gives.
pub(crate) type CastStep = (Kernel, DType);

/// The steps of a cast, at most three beside a first that widens halves.
pub(crate) type Chain = SmallVec<[CastStep; 4]>;

/// The kernels that cast `from` to `to`, one after the other; none if they are the same.
pub(crate) fn chain(from: DType, to: DType) -> &'static [CastStep] {
    static CHAINS: ForkOnce<Vec<Chain>> = ForkOnce::new();
    let chains = CHAINS.get_or_make(|| {
        let isa = Isa::current();
        let pairs = DType::ALL.into_iter().flat_map(|from| DType::ALL.map(|to| (from, to)));
        pairs.map(|(from, to)| route(from, to, isa)).collect()
    });
    &chains[from as usize * DType::COUNT + to as usize]
}

fn route(from: DType, to: DType, isa: Isa) -> Chain {
    let mut chain = Chain::new();
    extend(&mut chain, from, to, isa);
    chain
}

fn extend(chain: &mut Chain, from: DType, to: DType, isa: Isa) {
    use DType::*;
    if from == to {
        return;
    }
    if let Some(kernel) = direct(from, to, isa) {
        chain.push((kernel, to));
        return;
    }
    match (from, to) {
        // Halves become float32 without loss, complex numbers their real part (or, for bool, are
        // direct), and the rest is a cast of that.
        (Float16 | BFloat16, _) => through(chain, from, Float32, to, isa),
        (_, Complex64 | Complex128) => through(chain, from, to.part(), to, isa),
        (Complex64 | Complex128, _) => through(chain, from, from.part(), to, isa),
        (Float64, Float16 | BFloat16) => {
            chain.push((pick::<ToOdd>(isa), Float32));
            extend(chain, Float32, to, isa);
        }
        // What float32 holds exactly may go through it; wider integers are defined by float64.
        (Bool | Int8 | Int16 | UInt8 | UInt16, _) => through(chain, from, Float32, to, isa),
        _ => through(chain, from, Float64, to, isa),
    }
}

fn through(chain: &mut Chain, from: DType, by: DType, to: DType, isa: Isa) {
    extend(chain, from, by, isa);
    extend(chain, by, to, isa);
}

/// Source, target, and the kernel between them for an instruction set.
type Pair = (DType, DType, fn(Isa) -> Kernel);

/// The kernel of a pair that has one.
fn direct(from: DType, to: DType, isa: Isa) -> Option<Kernel> {
    use DType::*;
    let half = |name| tilework_simd::conversion(name, by_hand::level(isa));
    match (from, to) {
        (Float16, Float32) => return half("f16_to_f32"),
        (Float32, Float16) => return half("f32_to_f16"),
        (BFloat16, Float32) => return half("bf16_to_f32"),
        (Float32, BFloat16) => return half("f32_to_bf16"),
        _ => {}
    }
    macro_rules! kernels {
        ($($loop:ident: $($S:ty => $($D:ty)+),+;)+) => {
            [$($($(
                (<$S as Element>::DTYPE, <$D as Element>::DTYPE, pick::<$loop<$S, $D>> as fn(Isa) -> Kernel),
            )+)+)+]
        };
    }
    type C<T> = Complex<T>;
    let (from, to) = stand_in(from, to);
    // A constant: on the stack, the table would be built at every call.
    const KERNELS: &[Pair] = &kernels! {
        Defined:
            bool => u8 u16 u32 u64 f32 f64,
            u8 => bool u8 u16 u32 u64 f32 f64, u16 => bool u8 u16 u32 u64 f32 f64,
            u32 => bool u8 u16 u32 u64 f32 f64, u64 => bool u8 u16 u32 u64 f32 f64,
            i8 => u16 u32 u64 f32 f64, i16 => u32 u64 f32 f64,
            i32 => u64 f32 f64, i64 => f32 f64,
            f32 => bool f64 C<f32>, f64 => bool f32 C<f64>,
            C<f32> => bool f32, C<f64> => bool f64;
        Saturating:
            f32 => i8 i16 i32 i64 u8 u16 u32 u64,
            f64 => i8 i16 i32 i64 u8 u16 u32 u64;
        Parts: C<f32> => C<f64>, C<f64> => C<f32>;
    };
    let found = KERNELS.iter().find(|(source, target, _)| (*source, *target) == (from, to));
    found.map(|(_, _, kernel)| kernel(isa))
}

/// The pair of integer types whose kernel also serves this one: wrapping makes the target's sign
/// irrelevant, and the source's too unless the target is wider.
fn stand_in(from: DType, to: DType) -> (DType, DType) {
    match (from.is_integer() || from == DType::Bool, to.is_integer()) {
        (true, true) if to.size() <= from.size() => (from.unsigned(), to.unsigned()),
        (true, true) => (from, to.unsigned()),
        _ if to == DType::Bool => (from.unsigned(), to),
        _ => (from, to),
    }
}

/// A contiguous loop from one array to another.
trait Loop {
    /// # Safety
    /// As [`Kernel`].
    unsafe fn run(n: usize, out: *mut u8, a: *const u8);
}

/// A loop behind its instruction set.
fn pick<L: Loop>(isa: Isa) -> Kernel {
    unsafe fn scalar<L: Loop>(n: usize, o: *mut u8, a: *const u8, _: *const u8, _: *const u8) {
        // SAFETY: the contract of `Kernel`.
        unsafe { L::run(n, o, a) }
    }
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn avx2<L: Loop>(n: usize, o: *mut u8, a: *const u8, _: *const u8, _: *const u8) {
        // SAFETY: the contract of `Kernel`.
        unsafe { L::run(n, o, a) }
    }
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    unsafe fn avx512<L: Loop>(n: usize, o: *mut u8, a: *const u8, _: *const u8, _: *const u8) {
        // SAFETY: the contract of `Kernel`.
        unsafe { L::run(n, o, a) }
    }
    match isa {
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx2 => avx2::<L>,
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx512 => avx512::<L>,
        _ => scalar::<L>,
    }
}

/// # Safety
/// `out` may be written and `a` read for `n` elements; they do not overlap.
#[inline(always)]
unsafe fn each<S: Copy, D>(n: usize, out: *mut u8, a: *const u8, f: impl Fn(S) -> D) {
    let (out, a) = (out.cast::<D>(), a.cast::<S>());
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { out.add(i).write(f(a.add(i).read())) }
    }
}

/// The definition itself, where the compiler vectorises it.
struct Defined<S, D>(PhantomData<(S, D)>);

impl<S: Element, D: Element> Loop for Defined<S, D> {
    #[inline(always)]
    unsafe fn run(n: usize, out: *mut u8, a: *const u8) {
        // SAFETY: the contract of `Kernel`.
        unsafe { each(n, out, a, |x| S::from_raw(x).widen().cast::<D>().to_raw()) }
    }
}

/// Complex to complex: twice as many real numbers.
struct Parts<S, D>(PhantomData<(S, D)>);

impl<S: Element, D: Element> Loop for Parts<S, D> {
    #[inline(always)]
    unsafe fn run(n: usize, out: *mut u8, a: *const u8) {
        // SAFETY: the contract of `Kernel`; a complex number is its two parts in memory.
        unsafe { Defined::<S::Part, D::Part>::run(2 * n, out, a) }
    }
}

/// float64 to float32 such that rounding further gives what rounding once would: where bits are
/// lost, the last one kept is set, so that no tie appears that was none.
struct ToOdd;

impl Loop for ToOdd {
    #[inline(always)]
    unsafe fn run(n: usize, out: *mut u8, a: *const u8) {
        let odd = |x: f64| {
            let near = x as f32;
            let away = (near.abs() as f64) > x.abs();
            let odd = f32::from_bits(near.to_bits().wrapping_sub(away as u32) | 1);
            // A NaN differs from itself, and stays one with its last bit set.
            if near as f64 == x { near } else { odd }
        };
        // SAFETY: the contract of `Kernel`.
        unsafe { each(n, out, a, odd) }
    }
}

/// Real to integer: truncated, held within the type's limits, NaN to zero.
///
/// The language's own cast means the same and is not vectorised.
struct Saturating<S, D>(PhantomData<(S, D)>);

macro_rules! saturating {
    // The limits are exact in the float: hold, convert to something wide enough, narrow.
    (exact $($F:ident => $($I:ident by $W:ident),+;)+) => {$($(
        impl Loop for Saturating<$F, $I> {
            #[inline(always)]
            unsafe fn run(n: usize, out: *mut u8, a: *const u8) {
                const LOW: $F = $I::MIN as $F;
                const HIGH: $F = $I::MAX as $F;
                let cast = |x: $F| {
                    let x = if x.is_nan() { 0.0 } else { x };
                    let x = if x < LOW { LOW } else { x };
                    let x = if x > HIGH { HIGH } else { x };
                    // SAFETY: not NaN, and within the limits of `$I`, which `$W` holds.
                    unsafe { x.to_int_unchecked::<$W>() as $I }
                };
                // SAFETY: the contract of `Kernel`.
                unsafe { each(n, out, a, cast) }
            }
        }
    )+)+};
    // The upper limit rounds up to a power of two: hold below that, and see to the rest.
    (rounded $($F:ident => $($I:ident),+;)+) => {$($(
        impl Loop for Saturating<$F, $I> {
            #[inline(always)]
            unsafe fn run(n: usize, out: *mut u8, a: *const u8) {
                const LOW: $F = $I::MIN as $F;
                const BEYOND: $F = $I::MAX as $F;
                const HIGH: $F = BEYOND.next_down();
                let cast = |x: $F| {
                    let held = if x.is_nan() { 0.0 } else { x };
                    let held = if held < LOW { LOW } else { held };
                    let held = if held > HIGH { HIGH } else { held };
                    // SAFETY: not NaN, at least the minimum and below the power of two.
                    let within = unsafe { held.to_int_unchecked::<$I>() };
                    if x >= BEYOND { $I::MAX } else { within }
                };
                // SAFETY: the contract of `Kernel`.
                unsafe { each(n, out, a, cast) }
            }
        }
    )+)+};
}

saturating! { exact
    f32 => i8 by i32, i16 by i32, u8 by i32, u16 by i32;
    f64 => i8 by i32, i16 by i32, u8 by i32, u16 by i32, i32 by i32, u32 by u32;
}
saturating! { rounded
    f32 => i32, u32, i64, u64;
    f64 => i64, u64;
}
