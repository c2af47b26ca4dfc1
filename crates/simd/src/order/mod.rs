//! Sorting of unsigned integers by vectors: quicksort that parts whole registers, networks below.
//!
//! `Keys` is a register of integers (`registers.rs` and `avx2.rs` implement it); `quick.rs` and
//! `network.rs` are the sort, generic over it. [`SORT_U32`] and [`SORT_U64`] list what each [`Level`](crate::Level)
//! has. Equal integers cannot be told apart, so the outcome is that of any sort. Called by the CPU
//! backend's sort.

#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod network;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod quick;
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
mod registers;

/// The functions of one instruction set and integer.
#[derive(Clone, Copy, Debug)]
pub struct Sorter<E> {
    /// Sorts `count` integers at `data`; the outcome is at `to`, which is `data` or `other`. Both
    /// have room for `count`.
    ///
    /// # Safety
    /// The CPU has the level. `data` and `other` may be read and written for `count` integers, are
    /// initialised and do not overlap.
    pub sort: unsafe fn(data: *mut E, other: *mut E, to_other: bool, count: usize),
    /// Parts `count` integers at `from` by a pivot: those below it at the beginning of `to`, in their
    /// order, the others behind. How many are below.
    ///
    /// # Safety
    /// The CPU has the level; `from` may be read, `to` written, for `count` integers; no overlap.
    pub part: unsafe fn(from: *const E, to: *mut E, count: usize, pivot: E) -> usize,
    /// Parts `count` integers at `from` by a pivot that is frequent: those below it at the beginning
    /// of `to`, those above at its end; between them may be anything, as many as are equal. How many
    /// are below, and above.
    ///
    /// # Safety
    /// As for `part`.
    pub part_around:
        unsafe fn(from: *const E, to: *mut E, count: usize, pivot: E) -> (usize, usize),
    /// Merges `a_count` ascending integers at `a` and `b_count` at `b` to `to`.
    ///
    /// # Safety
    /// The CPU has the level; both may be read, and `to` written for as many as both have; no
    /// overlap.
    pub merge: unsafe fn(a: *const E, a_count: usize, b: *const E, b_count: usize, to: *mut E),
    /// How many of `count` integers at `from` are equal to one.
    ///
    /// # Safety
    /// The CPU has the level; `from` may be read for `count` integers.
    pub occurrences: unsafe fn(from: *const E, count: usize, integer: E) -> usize,
}

/// What each level has for `u32`.
pub const SORT_U32: [Option<Sorter<u32>>; 3] = {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    {
        [None, Some(registers::AVX2_U32), Some(registers::AVX512_U32)]
    }
    #[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
    [None; 3]
};

/// What each level has for `u64`; AVX2 neither compares nor orders these.
pub const SORT_U64: [Option<Sorter<u64>>; 3] = {
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    {
        [None, None, Some(registers::AVX512_U64)]
    }
    #[cfg(not(all(target_arch = "x86_64", not(tilework_scalar))))]
    [None; 3]
};

/// An integer that registers hold.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
trait Integer: Copy + Ord {
    /// The largest.
    const MAX: Self;
}

/// A register of unsigned integers.
///
/// # Safety of the methods
/// Called only where the instruction set is available; pointers are valid for the lanes named.
#[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
trait Keys: Copy {
    type Elem: Integer;
    /// Lanes: 8 or 16.
    const LANES: usize;

    unsafe fn splat(value: Self::Elem) -> Self;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn store(self, to: *mut Self::Elem);
    /// The first `count` lanes, 0 to `LANES`; the largest integer in the others.
    unsafe fn load_first(from: *const Self::Elem, count: usize) -> Self;
    /// The `count` integers before `end`, 0 to `LANES`, in the last lanes; zero in the others.
    unsafe fn load_last(end: *const Self::Elem, count: usize) -> Self;
    /// Writes the first `count` lanes, 0 to `LANES`, and nothing else.
    unsafe fn store_first(self, to: *mut Self::Elem, count: usize);
    /// Sorts up to [`network::NETWORK`] registers' lanes, from one place to the same or another: a
    /// function of its own, since it is long.
    unsafe fn sort_few(from: *const Self::Elem, to: *mut Self::Elem, count: usize);
    /// How many lanes are equal to those of another.
    unsafe fn equal(self, other: Self) -> usize;
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    /// Lane `i` gets lane `i ^ mask`.
    unsafe fn swapped(self, mask: usize) -> Self;
    /// The lesser of both, but in lanes whose number has `bit` the greater.
    unsafe fn exchanged(self, other: Self, bit: usize) -> Self;
    /// Two rows of a matrix of which the lanes are columns, after its blocks of one element (those
    /// that `bit` parts) beside the diagonal have changed places.
    unsafe fn turned(self, other: Self, bit: usize) -> (Self, Self);
    /// The lanes of both by turns: the first halves, and the second.
    unsafe fn interleaved(self, other: Self) -> (Self, Self);
    /// Writes the lanes below the pivot from `low` on and the others up to `end`, each in order;
    /// how many are below. The room between is a whole number of registers, and what is left of it
    /// may hold anything.
    unsafe fn part_to(self, pivot: Self, low: *mut Self::Elem, end: *mut Self::Elem) -> usize;
    /// Writes the lanes below the pivot from `low` on and those above up to `end`, each in order; how
    /// many are below and above. There is room for two registers at least, as for `part_to`.
    unsafe fn part_around_to(
        self,
        pivot: Self,
        low: *mut Self::Elem,
        end: *mut Self::Elem,
    ) -> (usize, usize);
}
