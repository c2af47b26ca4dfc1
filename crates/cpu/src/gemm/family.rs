//! How a dtype in memory meets the lanes that compute it.
//!
//! Most dtypes are computed as they are ([`Same`]); half floats are widened to float32 while they
//! are packed and rounded once at the end, and bytes are computed modulo 2^16, of which the lower
//! half is the product modulo 2^8. `element` says which family serves which dtype and instruction
//! set; `pack`, `vector` and `matrix` read and write memory through it.

use super::kernel::Tiled;
use super::lanes::{Lanes, Level, Plain};
use half::{bf16, f16};
use std::marker::PhantomData;

/// What the lanes of a family hold.
pub(super) type Elem<F> = <<F as Family>::Lanes as Lanes>::Elem;

/// A dtype in memory, and the lanes that it is computed in.
pub(super) trait Family: 'static {
    /// The elements of A, B and C.
    type Store: Copy + Send + Sync + 'static;
    /// What computes.
    type Lanes: Tiled;

    /// Whether kernels may write C in place: its elements are those of the lanes.
    const DIRECT: bool;

    /// `WIDTH` elements from memory.
    ///
    /// # Safety
    /// The lanes' level is available and the pointer valid for `WIDTH` elements.
    unsafe fn load(from: *const Self::Store) -> Self::Lanes;

    /// The first `count` (`1..=WIDTH`) elements, zero in the other lanes.
    ///
    /// # Safety
    /// The lanes' level is available and the pointer valid for `count` elements.
    #[inline(always)]
    unsafe fn load_first(from: *const Self::Store, count: usize) -> Self::Lanes {
        let mut wide = [<Self::Lanes as Lanes>::ZERO; 64];
        for (i, to) in wide.iter_mut().enumerate().take(count) {
            // SAFETY: `i < count`, which the caller's pointer covers.
            *to = Self::widen(unsafe { from.add(i).read() });
        }
        // SAFETY: no lanes are wider than 64; the level is the caller's promise.
        unsafe { Self::Lanes::load(wide.as_ptr()) }
    }

    /// Writes `WIDTH` elements, each rounded once.
    ///
    /// # Safety
    /// The lanes' level is available and the pointer valid for `WIDTH` elements.
    unsafe fn store(lanes: Self::Lanes, to: *mut Self::Store);

    /// One element on its way in.
    fn widen(value: Self::Store) -> Elem<Self>;

    /// One element on its way out, rounded once.
    fn narrow(value: Elem<Self>) -> Self::Store;
}

/// Elements that are computed as they lie in memory.
pub(super) struct Same<V>(PhantomData<V>);

impl<V: Tiled> Family for Same<V> {
    type Store = V::Elem;
    type Lanes = V;

    const DIRECT: bool = true;

    #[inline(always)]
    unsafe fn load(from: *const V::Elem) -> V {
        // SAFETY: the same contract.
        unsafe { V::load(from) }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const V::Elem, count: usize) -> V {
        // SAFETY: the same contract.
        unsafe { V::load_masked(from, V::mask(count)) }
    }

    #[inline(always)]
    unsafe fn store(lanes: V, to: *mut V::Elem) {
        // SAFETY: the same contract.
        unsafe { lanes.store(to) }
    }

    #[inline(always)]
    fn widen(value: V::Elem) -> V::Elem {
        value
    }

    #[inline(always)]
    fn narrow(value: V::Elem) -> V::Elem {
        value
    }
}

/// float32 lanes that read and write half floats; all pointers are to `WIDTH` halves.
pub(super) trait HalfLanes: Tiled + Lanes<Elem = f32> {
    /// Widens float16.
    ///
    /// # Safety
    /// The level is available and the pointer valid for `WIDTH` elements.
    unsafe fn load_f16(from: *const u16) -> Self;
    /// Rounds to float16.
    ///
    /// # Safety
    /// As for loading.
    unsafe fn store_f16(self, to: *mut u16);
    /// Widens bfloat16.
    ///
    /// # Safety
    /// As for loading.
    unsafe fn load_bf16(from: *const u16) -> Self;
    /// Rounds to bfloat16.
    ///
    /// # Safety
    /// As for loading.
    unsafe fn store_bf16(self, to: *mut u16);
}

impl<L: Level, const N: usize> HalfLanes for Plain<f32, N, L>
where
    Plain<f32, N, L>: Tiled + Lanes<Elem = f32>,
{
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: lane numbers are below `WIDTH`, which the caller's pointer covers; the level is
        // the caller's promise.
        unsafe { gathered(|i| f16::from_bits(from.add(i).read()).to_f32()) }
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u16) {
        // SAFETY: lane numbers are below `WIDTH`, which the caller's pointer covers; the level is
        // the caller's promise.
        unsafe { scattered(self, |i, lane| to.add(i).write(f16::from_f32(lane).to_bits())) };
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: lane numbers are below `WIDTH`, which the caller's pointer covers; the level is
        // the caller's promise.
        unsafe { gathered(|i| bf16::from_bits(from.add(i).read()).to_f32()) }
    }

    #[inline(always)]
    unsafe fn store_bf16(self, to: *mut u16) {
        // SAFETY: lane numbers are below `WIDTH`, which the caller's pointer covers; the level is
        // the caller's promise.
        unsafe { scattered(self, |i, lane| to.add(i).write(bf16::from_f32(lane).to_bits())) };
    }
}

/// Lanes made one by one.
///
/// # Safety
/// The lanes' level is available.
#[inline(always)]
unsafe fn gathered<V: Lanes>(lane: impl Fn(usize) -> V::Elem) -> V {
    let mut wide = [V::ZERO; 64];
    for (i, to) in wide.iter_mut().enumerate().take(V::WIDTH) {
        *to = lane(i);
    }
    // SAFETY: no lanes are wider than 64.
    unsafe { V::load(wide.as_ptr()) }
}

/// Lanes handed out one by one.
///
/// # Safety
/// The lanes' level is available.
#[inline(always)]
unsafe fn scattered<V: Lanes>(lanes: V, mut lane: impl FnMut(usize, V::Elem)) {
    let mut wide = [V::ZERO; 64];
    // SAFETY: no lanes are wider than 64.
    unsafe { lanes.store(wide.as_mut_ptr()) };
    for (i, value) in wide.into_iter().enumerate().take(V::WIDTH) {
        lane(i, value);
    }
}

/// float16 in memory, float32 in the lanes.
pub(super) struct Float16<V>(PhantomData<V>);

impl<V: HalfLanes> Family for Float16<V> {
    type Store = f16;
    type Lanes = V;

    const DIRECT: bool = false;

    #[inline(always)]
    unsafe fn load(from: *const f16) -> V {
        // SAFETY: the same contract; f16 is a transparent u16.
        unsafe { V::load_f16(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(lanes: V, to: *mut f16) {
        // SAFETY: the same contract; f16 is a transparent u16.
        unsafe { lanes.store_f16(to.cast()) }
    }

    #[inline(always)]
    fn widen(value: f16) -> f32 {
        value.to_f32()
    }

    #[inline(always)]
    fn narrow(value: f32) -> f16 {
        f16::from_f32(value)
    }
}

/// bfloat16 in memory, float32 in the lanes.
pub(super) struct Bfloat16<V>(PhantomData<V>);

impl<V: HalfLanes> Family for Bfloat16<V> {
    type Store = bf16;
    type Lanes = V;

    const DIRECT: bool = false;

    #[inline(always)]
    unsafe fn load(from: *const bf16) -> V {
        // SAFETY: the same contract; bf16 is a transparent u16.
        unsafe { V::load_bf16(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(lanes: V, to: *mut bf16) {
        // SAFETY: the same contract; bf16 is a transparent u16.
        unsafe { lanes.store_bf16(to.cast()) }
    }

    #[inline(always)]
    fn widen(value: bf16) -> f32 {
        value.to_f32()
    }

    #[inline(always)]
    fn narrow(value: f32) -> bf16 {
        bf16::from_f32(value)
    }
}

/// Bytes in memory, 16-bit integers in the lanes: no instruction set multiplies bytes.
pub(super) struct Byte<V>(PhantomData<V>);

impl<V: Tiled + Lanes<Elem = i16>> Family for Byte<V> {
    type Store = i8;
    type Lanes = V;

    const DIRECT: bool = false;

    #[inline(always)]
    unsafe fn load(from: *const i8) -> V {
        // SAFETY: lane numbers are below `WIDTH`, which the caller's pointer covers; the level is
        // the caller's promise.
        unsafe { gathered(|i| i16::from(from.add(i).read())) }
    }

    #[inline(always)]
    unsafe fn store(lanes: V, to: *mut i8) {
        // SAFETY: lane numbers are below `WIDTH`, which the caller's pointer covers; the level is
        // the caller's promise.
        unsafe { scattered(lanes, |i, lane| to.add(i).write(lane as i8)) };
    }

    #[inline(always)]
    fn widen(value: i8) -> i16 {
        i16::from(value)
    }

    #[inline(always)]
    fn narrow(value: i16) -> i8 {
        value as i8
    }
}
