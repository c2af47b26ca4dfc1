//! One loop, compiled for every instruction set.
//!
//! A kernel is written once as a plain loop in a [`Body`]; [`each_isa`] wraps it in functions that
//! allow the compiler one instruction set each. Which of them may be called is for `isa.rs` to say.

use tilework_ops::DType;

/// A loop over some work `A` that writes states.
pub(super) trait Body<A> {
    /// Runs it. Implementations are `#[inline(always)]`, so that the wrappers decide what
    /// instructions they are made of.
    ///
    /// # Safety
    /// The contract of `A` ([`super::table::Rows`] or [`super::table::Columns`]) holds, and there is
    /// room for all states.
    unsafe fn run(work: &A, states: *mut u8);
}

#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
unsafe fn scalar<B: Body<A>, A>(work: &A, states: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { B::run(work, states) }
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<B: Body<A>, A>(work: &A, states: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { B::run(work, states) }
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn avx512<B: Body<A>, A>(work: &A, states: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { B::run(work, states) }
}

/// The body for each instruction set, in the order of [`crate::isa::Isa`].
///
/// Three instances of everything would be megabytes, and reductions are mostly bound by memory: the
/// plainest instruction set gets the small `plain` function, and the widest vectors are for the
/// element types that are used most.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
pub(super) const fn each_isa<B: Body<A>, A>(
    loads: DType,
    plain: unsafe fn(&A, *mut u8),
) -> [unsafe fn(&A, *mut u8); 3] {
    if matches!(loads, DType::Float32 | DType::Float64) {
        [plain, avx2::<B, A>, avx512::<B, A>]
    } else {
        [plain, avx2::<B, A>, avx2::<B, A>]
    }
}

/// The body for each instruction set: there is one.
#[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
pub(super) const fn each_isa<B: Body<A>, A>(
    _loads: DType,
    _plain: unsafe fn(&A, *mut u8),
) -> [unsafe fn(&A, *mut u8); 3] {
    [scalar::<B, A>; 3]
}
