//! Moving elements without looking at them: lines and blocks with any strides, by element width.
//!
//! Copies, gathers into chunks, scatters out of them, fills, transposes and `select` need no more
//! of a dtype than its size: 1, 2, 4, 8 or 16 bytes. Strides count elements. Memory is accessed
//! without alignment, since a wide element (complex) may be aligned to its parts only. Called by
//! everything else in `map`, by `index` and by the reductions.

use std::cell::Cell;
use std::mem::MaybeUninit;

use tilework_backend::try_filled;
use tilework_error::Result;

use super::kernels::Kernel;
use super::turn;
use crate::isa::{Isa, Work, with_isa};

/// Sixteen bytes that need no more alignment than eight.
pub(crate) type Wide = [u64; 2];

/// Runs code for the plain type that is as wide as an element.
macro_rules! by_width {
    ($width:expr, $T:ident => $body:expr) => {
        match $width {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            width => {
                debug_assert_eq!(width, 16);
                type $T = $crate::map::moves::Wide;
                $body
            }
        }
    };
}
pub(crate) use by_width;

/// Writes `n` elements with a stride from `n` elements with a stride.
///
/// # Safety
/// Every element that the strides reach from `to` may be written, every one from `from` read; the
/// two sides do not overlap.
#[inline]
pub(crate) unsafe fn line(width: usize, n: usize, to: (*mut u8, isize), from: (*const u8, isize)) {
    // SAFETY: the caller's promise.
    by_width!(width, T => unsafe {
        line_of::<T>(n, to.0.cast(), to.1, from.0.cast(), from.1)
    })
}

/// Writes one value to `n` elements with a stride.
///
/// # Safety
/// As [`line`], with one element at `value`, which may be one of those written.
#[inline]
pub(crate) unsafe fn fill(width: usize, n: usize, to: (*mut u8, isize), value: *const u8) {
    // SAFETY: the caller's promise.
    by_width!(width, T => unsafe {
        fill_of::<T>(n, to.0.cast(), to.1, value.cast::<T>().read_unaligned())
    })
}

/// Strides of a block of elements: from row to row, from column to column.
pub(crate) type Steps = (isize, isize);

/// Writes a block of `rows` by `columns`.
///
/// # Safety
/// As [`line`], for all elements of both blocks.
pub(crate) unsafe fn block(
    width: usize,
    (rows, columns): (usize, usize),
    to: (*mut u8, Steps),
    from: (*const u8, Steps),
) {
    // SAFETY: the caller's promise.
    by_width!(width, T => unsafe {
        block_of::<T>((rows, columns), to.0.cast(), to.1, from.0.cast(), from.1)
    })
}

/// # Safety
/// As [`line`].
#[inline]
unsafe fn line_of<T: Copy>(n: usize, to: *mut T, to_step: isize, from: *const T, from_step: isize) {
    // SAFETY: the caller vouches for all elements that the strides reach.
    unsafe {
        match (to_step, from_step) {
            (1, 1) => to.cast::<u8>().copy_from_nonoverlapping(from.cast(), n * size_of::<T>()),
            (_, 0) => {
                if n > 0 {
                    fill_of(n, to, to_step, from.read_unaligned());
                }
            }
            // Steps that the compiler knows are vectorised.
            (1, -1) => with_isa(Isa::current(), Apart::<T, -1> { n, to, from }),
            (1, 2) => with_isa(Isa::current(), Apart::<T, 2> { n, to, from }),
            (1, 3) => with_isa(Isa::current(), Apart::<T, 3> { n, to, from }),
            (1, 4) => with_isa(Isa::current(), Apart::<T, 4> { n, to, from }),
            (2, 1) => strided(n, to, 2, from, 1),
            (1, step) => strided(n, to, 1, from, step),
            (step, 1) => strided(n, to, step, from, 1),
            (to_step, from_step) => strided(n, to, to_step, from, from_step),
        }
    }
}

/// Elements that are so many apart, written without gaps.
struct Apart<T, const STEP: isize> {
    n: usize,
    to: *mut T,
    from: *const T,
}

impl<T: Copy, const STEP: isize> Work for Apart<T, STEP> {
    #[inline(always)]
    fn run(self) {
        // SAFETY: whoever makes one vouches for all elements that the step reaches.
        unsafe { strided(self.n, self.to, 1, self.from, STEP) }
    }
}

/// # Safety
/// As [`line`].
#[inline(always)]
unsafe fn strided<T: Copy>(n: usize, to: *mut T, to_step: isize, from: *const T, from_step: isize) {
    for i in 0..n.cast_signed() {
        // SAFETY: the caller vouches for all elements that the strides reach.
        unsafe {
            let value = from.offset(i * from_step).read_unaligned();
            to.offset(i * to_step).write_unaligned(value);
        }
    }
}

/// # Safety
/// As [`fill`].
#[inline]
unsafe fn fill_of<T: Copy>(n: usize, to: *mut T, step: isize, value: T) {
    for i in 0..n.cast_signed() {
        // SAFETY: the caller vouches for all elements that the stride reaches.
        unsafe {
            match step {
                1 => to.offset(i).write_unaligned(value),
                step => to.offset(i * step).write_unaligned(value),
            }
        }
    }
}

/// # Safety
/// As [`block`].
unsafe fn block_of<T: Copy>(
    (mut rows, mut columns): (usize, usize),
    to: *mut T,
    mut to_steps: Steps,
    from: *const T,
    mut from_steps: Steps,
) {
    // Rows are the direction in which the written side takes the longer steps.
    if to_steps.0.unsigned_abs() < to_steps.1.unsigned_abs() {
        (rows, columns) = (columns, rows);
        to_steps = (to_steps.1, to_steps.0);
        from_steps = (from_steps.1, from_steps.0);
    }
    // SAFETY: the caller vouches for all elements of both blocks.
    unsafe {
        match columns {
            1 => return few::<T, 1>(rows, to, to_steps, from, from_steps),
            2 => return few::<T, 2>(rows, to, to_steps, from, from_steps),
            3 => return few::<T, 3>(rows, to, to_steps, from, from_steps),
            4 => return few::<T, 4>(rows, to, to_steps, from, from_steps),
            _ => {}
        }
        if to_steps.1 == 1 && from_steps == (1, rows.cast_signed()) {
            let (isa, to_step) = (Isa::current(), to_steps.0);
            match rows {
                2 => return with_isa(isa, Parted::<T, 2> { columns, to, to_step, from }),
                3 => return with_isa(isa, Parted::<T, 3> { columns, to, to_step, from }),
                4 => return with_isa(isa, Parted::<T, 4> { columns, to, to_step, from }),
                _ => {}
            }
        }
        let across = from_steps.0 != 0 && from_steps.0.unsigned_abs() < from_steps.1.unsigned_abs();
        if across && rows >= 4 {
            return tiles((rows, columns), to, to_steps, from, from_steps);
        }
        let (to_step, from_step) = (to_steps.1, from_steps.1);
        for row in 0..rows.cast_signed() {
            let to = to.offset(row * to_steps.0);
            let from = from.offset(row * from_steps.0);
            if columns * size_of::<T>() < SHORT {
                // Too short for the choices of a line to pay.
                strided(columns, to, to_step, from, from_step);
            } else {
                line_of(columns, to, to_step, from, from_step);
            }
        }
    }
}

/// Rows of fewer bytes than this are moved element by element.
const SHORT: usize = 32;

/// A block of so few columns that a loop over them would cost more than their elements.
///
/// # Safety
/// As [`block`].
unsafe fn few<T: Copy, const COLUMNS: usize>(
    rows: usize,
    to: *mut T,
    to_steps: Steps,
    from: *const T,
    from_steps: Steps,
) {
    for row in 0..rows.cast_signed() {
        for column in 0..COLUMNS.cast_signed() {
            // SAFETY: the caller vouches for all elements of both blocks.
            unsafe {
                let value = from.offset(row * from_steps.0 + column * from_steps.1);
                let to = to.offset(row * to_steps.0 + column * to_steps.1);
                to.write_unaligned(value.read_unaligned());
            }
        }
    }
}

/// Rows whose elements take turns in the source, element by element: the compiler knows how many
/// there are and moves vectors of them.
struct Parted<T, const ROWS: usize> {
    columns: usize,
    to: *mut T,
    to_step: isize,
    from: *const T,
}

/// Elements of a row that are moved together.
const TOGETHER: usize = 16;

impl<T: Copy, const ROWS: usize> Work for Parted<T, ROWS> {
    #[inline(always)]
    fn run(self) {
        let Parted { columns, to, to_step, from } = self;
        let whole = columns - columns % TOGETHER;
        let row = |k: usize| to.wrapping_offset(k.cast_signed() * to_step);
        for column in (0..whole).step_by(TOGETHER) {
            // SAFETY: whoever makes one vouches for all elements of both blocks.
            unsafe {
                let from = from.add(column * ROWS);
                let mut parts = [[from.read_unaligned(); TOGETHER]; ROWS];
                for l in 0..TOGETHER {
                    for (k, part) in parts.iter_mut().enumerate() {
                        part[l] = from.add(l * ROWS + k).read_unaligned();
                    }
                }
                for (k, part) in parts.into_iter().enumerate() {
                    row(k).add(column).cast::<[T; TOGETHER]>().write_unaligned(part);
                }
            }
        }
        for column in whole..columns {
            for k in 0..ROWS {
                // SAFETY: as above.
                unsafe {
                    let value = from.add(column * ROWS + k).read_unaligned();
                    row(k).add(column).write_unaligned(value);
                }
            }
        }
    }
}

/// One cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line(#[allow(dead_code, reason = "only its address is used")] [u8; 64]);

/// Bytes of scratch memory that a thread keeps for ever, at most.
const KEPT_BYTES: usize = 16 << 20;

/// Calls `f` with at least `bytes` bytes, aligned to cache lines and initialised, that belong to
/// this thread. They are kept for the next call, since fresh pages would cost more than the work,
/// unless they are more than [`KEPT_BYTES`]. Without memory for them `f` is not called.
pub(crate) fn with_scratch<R>(
    operation: &str,
    bytes: usize,
    f: impl FnOnce(*mut u8) -> R,
) -> Result<R> {
    thread_local! {
        static KEPT: Cell<Vec<Line>> = const { Cell::new(Vec::new()) };
    }
    // A call inside of a call finds nothing kept, and gets memory of its own.
    let mut kept = KEPT.take();
    if kept.len() * 64 < bytes {
        drop(kept);
        kept = try_filled(operation, Line([0; 64]), bytes.div_ceil(64))?;
    }
    let result = f(kept.as_mut_ptr().cast());
    if kept.len() * 64 <= KEPT_BYTES {
        KEPT.set(kept);
    }
    Ok(result)
}

/// A transpose tile by tile: a tile is one cache line in both directions, so that every line is
/// fetched and written once, whole.
///
/// # Safety
/// As [`block`].
unsafe fn tiles<T: Copy>(
    (rows, columns): (usize, usize),
    to: *mut T,
    to_steps: Steps,
    from: *const T,
    from_steps: Steps,
) {
    let side = 64 / size_of::<T>();
    let even = to_steps.1 == 1 && from_steps.0 == 1;
    let turn = if even { turn::chosen(size_of::<T>()) } else { None };
    let bytes = |step: isize| step * size_of::<T>().cast_signed();
    // Along the source: a few lines that go on are fetched ahead, many that jump are not.
    for column in (0..columns).step_by(side) {
        let wide = side.min(columns - column);
        for row in (0..rows).step_by(side) {
            let high = side.min(rows - row);
            let (row, column) = (row.cast_signed(), column.cast_signed());
            // SAFETY: the tile lies inside of the block, for which the caller vouches.
            unsafe {
                let to = to.offset(row * to_steps.0 + column * to_steps.1);
                let from = from.offset(row * from_steps.0 + column * from_steps.1);
                if let Some(turn) = turn {
                    let to = (to.cast(), bytes(to_steps.0));
                    turn((high, wide), to, (from.cast(), bytes(from_steps.1)));
                    continue;
                }
                if even && high == side && wide == side {
                    tile(to, to_steps.0, from, from_steps.1);
                    continue;
                }
                for r in 0..high.cast_signed() {
                    let to = to.offset(r * to_steps.0);
                    let from = from.offset(r * from_steps.0);
                    strided(wide, to, to_steps.1, from, from_steps.1);
                }
            }
        }
    }
}

/// A whole tile whose columns are contiguous in `from` and whose rows are in `to`: through a copy,
/// so that lines which fall into the same set of the cache need not stay there together.
///
/// # Safety
/// As [`block`], for a square of one cache line each way.
#[inline]
unsafe fn tile<T: Copy>(to: *mut T, to_step: isize, from: *const T, from_step: isize) {
    let side = 64 / size_of::<T>();
    let mut copy = MaybeUninit::<[[u64; 8]; 64]>::uninit();
    let copy = copy.as_mut_ptr().cast::<T>();
    // SAFETY: the caller vouches for the square; a copy of it has `side` lines of 64 bytes, at
    // most 64.
    unsafe {
        for column in 0..side {
            let line = from.offset(column.cast_signed() * from_step).cast::<u8>();
            copy.add(column * side).cast::<u8>().copy_from_nonoverlapping(line, 64);
        }
        for row in 0..side {
            let to = to.offset(row.cast_signed() * to_step);
            for column in 0..side {
                to.add(column).write_unaligned(copy.add(column * side + row).read_unaligned());
            }
        }
    }
}

/// `select` for elements of one width: the second operand where the first (bytes) is not zero.
pub(crate) fn select(width: usize, isa: crate::isa::Isa) -> Kernel {
    #[inline(always)]
    unsafe fn body<T: Copy>(n: usize, out: *mut u8, mask: *const u8, a: *const u8, b: *const u8) {
        let (out, a, b) = (out.cast::<T>(), a.cast::<T>(), b.cast::<T>());
        for i in 0..n {
            // SAFETY: the contract of `Kernel`.
            unsafe {
                // Both are read whatever the mask says, so that there is nothing to branch on.
                let (then, otherwise) = (a.add(i).read_unaligned(), b.add(i).read_unaligned());
                let chosen = if mask.add(i).read() != 0 { then } else { otherwise };
                out.add(i).write_unaligned(chosen);
            }
        }
    }
    unsafe fn scalar<T: Copy>(n: usize, o: *mut u8, m: *const u8, a: *const u8, b: *const u8) {
        // SAFETY: the contract of `Kernel`.
        unsafe { body::<T>(n, o, m, a, b) }
    }
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2<T: Copy>(n: usize, o: *mut u8, m: *const u8, a: *const u8, b: *const u8) {
        // SAFETY: the contract of `Kernel`.
        unsafe { body::<T>(n, o, m, a, b) }
    }
    #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn avx512<T: Copy>(n: usize, o: *mut u8, m: *const u8, a: *const u8, b: *const u8) {
        // SAFETY: the contract of `Kernel`.
        unsafe { body::<T>(n, o, m, a, b) }
    }
    by_width!(width, T => match isa {
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        crate::isa::Isa::Avx2 => avx2::<T>,
        #[cfg(all(target_arch = "x86_64", not(tilework_scalar)))]
        crate::isa::Isa::Avx512 => avx512::<T>,
        _ => scalar::<T>,
    })
}
