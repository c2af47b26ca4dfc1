//! Cache lines that will be needed soon. Any address will do: a prefetch never faults, and where the
//! CPU has none these do nothing. Used by `gemm`, `index` and `map`.

/// Asks for a line in the first-level cache.
#[inline(always)]
pub(crate) fn into_l1<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, and SSE is part of the target.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for a line in the second-level cache.
#[inline(always)]
pub(crate) fn into_l2<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
