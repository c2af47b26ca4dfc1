//! Stores that go past the caches, for results that would not stay in them anyway.
//!
//! An ordinary store reads its line from memory first; these do not, so that a large result costs
//! one transfer where it cost two. What is stored this way is found in memory, not in a cache, by
//! whoever reads it next: they pay from a size on at which the caches would have lost it. Called by
//! `chunks`, `copy` and `whole`.

use crate::isa::Isa;
use crate::prefetch;

/// From this many bytes on, operands and results together, results go past the caches: some times
/// what a core's own hold. With 16 MiB exp in float32 took 0.33 ms either way; with 48 MiB an addition
/// took 1.49 ms the ordinary way and 1.00 ms past the caches.
const LARGE: usize = 32 << 20;

/// Bytes of results that are computed between two bursts of such stores. A core has room for few lines
/// on their way to memory: a longer burst keeps the arithmetic behind it waiting (of tanh in float32, a
/// burst of 2048 bytes took 5.7 ms where 1024 took 4.9 and 512 took 4.2; 256 gained nothing more).
pub(super) const BURST: usize = 512;

/// How many bytes ahead the operands of a burst are asked for. The CPU does so by itself, but
/// begins anew with every page, and does not look as far while it has much to compute.
const AHEAD: usize = 4096;

/// How many of the usual pieces make one whose results go past the caches: each begins with operands
/// that nobody has asked for, and ends by waiting for its stores.
pub(super) const PIECES: usize = 4;

/// Elements of a burst whose widest has so many bytes, where an operand takes steps of so many of its
/// elements and a result has `out` bytes. What a burst reads counts too: of every second float32 one of
/// 512 bytes of results took 4.5 ms and one of 256 took 4.4, of every fourth one took 5.2 and one of
/// 128 took 4.1. Never less than two lines of results, and whole ones.
#[inline]
pub(super) fn burst(widest: usize, step: usize, out: usize) -> usize {
    let line = LINE / out;
    (BURST / (widest * step.max(1))).max(2 * line).next_multiple_of(line)
}

/// Asks for the lines of `n` elements, so many bytes apart, that lie [`AHEAD`] of these: as many lines
/// ahead where each element has one of its own.
#[inline(always)]
pub(super) fn fetch(from: *const u8, n: usize, step: isize) {
    let (lines, apart) = match step.unsigned_abs() {
        0 => return,
        near @ ..=LINE => ((n * near).div_ceil(LINE), LINE.cast_signed() * step.signum()),
        _ => (n, step),
    };
    let ahead = AHEAD / LINE;
    for line in ahead..ahead + lines {
        prefetch::into_l1(from.wrapping_offset(line.cast_signed() * apart));
    }
}

/// Whether the results of work that reads and writes so many bytes had better go past the caches.
#[inline]
pub(super) fn pays(traffic: usize) -> bool {
    traffic >= LARGE && Isa::current() != Isa::Scalar
}

/// Copies bytes past the caches. Others see them only after this thread's [`finish`].
///
/// # Safety
/// `bytes` bytes may be read from `from` and written to `to`, and they do not overlap.
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    let head = to.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: the caller's promise, in three parts; `to + head` is aligned to a line.
    unsafe {
        to.copy_from_nonoverlapping(from, head);
        copy_lines(to.add(head), from.add(head), lines);
        to.add(tail).copy_from_nonoverlapping(from.add(tail), bytes - tail);
    }
}

/// Makes what this thread has copied visible in the order of its other stores.
#[inline]
pub(super) fn finish() {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    // SAFETY: every CPU of this architecture has the instruction, which touches no memory.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// # Safety
/// As [`copy`], for whole lines; `to` is aligned to a line.
#[inline]
unsafe fn copy_lines(to: *mut u8, from: *const u8, lines: usize) {
    match Isa::current() {
        // SAFETY: the instruction set is available; the rest is the caller's promise.
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx512 => unsafe { x86::copy_avx512(to, from, lines) },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        Isa::Avx2 => unsafe { x86::copy_avx2(to, from, lines) },
        // SAFETY: the caller's promise.
        _ => unsafe { to.copy_from_nonoverlapping(from, lines * LINE) },
    }
}

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod x86 {
    use super::LINE;
    use std::arch::x86_64::*;

    /// # Safety
    /// As `copy_lines`, and the CPU has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn copy_avx512(to: *mut u8, from: *const u8, lines: usize) {
        for line in 0..lines {
            // SAFETY: `line` is below the number of lines; `to` is aligned.
            unsafe {
                let value = _mm512_loadu_si512(from.add(line * LINE).cast());
                _mm512_stream_si512(to.add(line * LINE).cast(), value);
            }
        }
    }

    /// # Safety
    /// As `copy_lines`, and the CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy_avx2(to: *mut u8, from: *const u8, lines: usize) {
        for half in 0..2 * lines {
            // SAFETY: `half` is below twice the number of lines; `to` is aligned.
            unsafe {
                let value = _mm256_loadu_si256(from.add(half * LINE / 2).cast());
                _mm256_stream_si256(to.add(half * LINE / 2).cast(), value);
            }
        }
    }
}
