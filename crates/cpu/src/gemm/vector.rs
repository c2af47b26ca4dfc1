//! Products with very few rows of A: bound by reading B once.
//!
//! `plan` has turned the problem so that the short side is A's. [`rows`] serves up to
//! [`most_rows`] rows when the rows of B are contiguous: several rows of B are added up at a time
//! along C. [`dots`] serves one row of A when the columns of B are contiguous: dot products. Both
//! copy A first, so A's strides do not matter (dots read it where it lies if it has none), and write C
//! through `Finish`, so C's do not either.

use super::blocking::{Blocking, part};
use super::family::{Elem, Family, Same};
use super::finish::{Finish, FinishArgs, Shared, finish};
use super::kernel::Tiled;
use super::lanes::{Job, Lanes, Level};
use super::matrix::LevelOf;
use super::pack::{Panels, PanelsArgs};
use super::scratch::{Area, Room, room};
use super::{Parallel, Product};
use std::marker::PhantomData;

/// The most rows of A that [`rows`] takes: more than one only where code size allows.
pub(super) fn most_rows<F: Family>() -> usize {
    if several_rows::<F>() { 4 } else { 1 }
}

/// Whether there are kernels for several rows: for float32 and float64.
const fn several_rows<F: Family>() -> bool {
    F::DIRECT && F::Lanes::KERNELS.every_width
}

/// Elements of B below which one thread does everything.
const ONE_THREAD: usize = 1 << 16;
/// Bytes of sums that a piece of [`rows`] keeps in L1. Rows of B are read this far without a break:
/// shorter ones end before the memory's prefetching has begun.
const STRIP: usize = 8 << 10;
/// The most bytes of results that blocks of K may have of their own in [`rows`].
const PARTIALS: usize = 1 << 20;
/// Length of a dot product that is summed over lanes without a break.
const DOT_BLOCK: usize = 1 << 15;

/// `count` elements at a stride, as computed elements without gaps.
///
/// # Safety
/// The elements may be read, `to` has room for them, the family's level is available.
unsafe fn gather<F: Family>(from: *const F::Store, stride: isize, count: usize, to: *mut Elem<F>) {
    // One long panel with a single k is exactly this.
    let args = PanelsArgs {
        from,
        across: stride,
        along: 0,
        depth: 1,
        rows: count,
        panels: 1,
        pass: 0..1,
        to,
    };
    // SAFETY: the same contract.
    unsafe { LevelOf::<F>::enter::<Panels<F>>(&args) }
}

/// How [`rows`] is cut.
struct RowsCut {
    /// Threads that share it.
    threads: usize,
    /// Length of a block of K, and how many there are.
    kc: usize,
    blocks: usize,
    /// Strips of columns.
    strips: usize,
    /// The blocks of K that go to the threads at a time, each with a result of its own, so that
    /// threads read long stretches of B; 1 where there is one block, or the results are large.
    at_once: usize,
    /// From one row of a result to the next.
    pitch: usize,
    /// Elements of a result.
    one: usize,
    /// Bytes of the copy of A.
    a_room: usize,
}

impl RowsCut {
    fn new<F: Family>(p: &Product<F::Store>, threads: usize) -> RowsCut {
        let kc = Blocking::block_of_k(p.k, size_of::<Elem<F>>());
        let blocks = p.k.div_ceil(kc);
        let threads = if p.k.saturating_mul(p.n) < ONE_THREAD { 1 } else { threads };
        let pitch = p.n.next_multiple_of(F::Lanes::WIDTH);
        let one = pitch * p.m;
        let results = PARTIALS / (one * size_of::<Elem<F>>());
        let at_once = if threads > 1 { results.clamp(1, 64).min(blocks) } else { 1 };
        // Pieces enough that a slow thread does not hold up the others.
        let width = STRIP / (p.m * size_of::<Elem<F>>());
        let fair = if threads > 1 { (4 * threads).div_ceil(at_once) } else { 1 };
        let strips = p.n.div_ceil(width).max(fair.min(p.n.div_ceil(width / 4)));
        let a_room = room::<Elem<F>>(p.m.saturating_mul(p.k));
        RowsCut { threads, kc, blocks, strips, at_once, pitch, one, a_room }
    }
}

/// What [`rows`] needs on so many threads.
pub(super) fn rows_need<F: Family>(p: &Product<F::Store>, threads: usize) -> Room {
    let cut = RowsCut::new::<F>(p, threads);
    let sums = room::<Elem<F>>(cut.one * (cut.at_once + 1));
    Room { whole: cut.a_room.saturating_add(sums), each: 0 }
}

/// C = A B for at most [`most_rows`] rows of A, where the columns of B have stride 1.
///
/// # Safety
/// The contract of `gemm`; `b_cols` is 1 (or `n` is); the area has the room that [`rows_need`]
/// says for these threads.
pub(super) unsafe fn rows<F: Family>(
    parallel: &dyn Parallel,
    threads: usize,
    p: &Product<F::Store>,
    area: &Area,
) {
    let lanes = F::Lanes::WIDTH;
    let cut = RowsCut::new::<F>(p, threads);
    let RowsCut { threads, kc, blocks, strips, at_once, pitch, one, a_room } = cut;
    let a = Shared(area.whole().cast::<Elem<F>>());
    let sums = Shared(area.whole().wrapping_add(a_room).cast::<Elem<F>>());
    for row in 0..p.m {
        let from = p.a.wrapping_offset(row as isize * p.a_rows);
        // SAFETY: row `row` of A; the block has room for all rows.
        unsafe { gather::<F>(from, p.a_cols, p.k, a.get().wrapping_add(row * p.k)) };
    }
    let run = |strip: usize, k: usize, to: *mut Elem<F>| {
        let columns = part(p.n, strips, lanes, strip);
        let args = RowsArgs::<F> {
            a: a.get().wrapping_add(k).cast_const(),
            a_rows: p.k,
            b: p.b.wrapping_offset(k as isize * p.b_rows).wrapping_add(columns.start),
            b_rows: p.b_rows,
            depth: kc.min(p.k - k),
            columns: columns.len(),
            to: to.wrapping_add(columns.start),
            pitch,
        };
        // SAFETY: the strip and the block of K are in the operands; every pair of them writes
        // a part of its own.
        unsafe {
            if p.m == 1 || const { !several_rows::<F>() } {
                LevelOf::<F>::enter::<Rows<F, 1, 8>>(&args);
            } else {
                match p.m {
                    2 => LevelOf::<F>::enter::<Rows<F, 2, 8>>(&args),
                    3 => LevelOf::<F>::enter::<Rows<F, 3, 4>>(&args),
                    _ => LevelOf::<F>::enter::<Rows<F, 4, 4>>(&args),
                }
            }
        }
    };
    let add = |from: *mut Elem<F>, strip: usize, strips: usize, first: bool| {
        let columns = part(p.n, strips, lanes, strip);
        let args = FinishArgs::<Same<F::Lanes>> {
            sums: from.wrapping_add(columns.start),
            pitch,
            height: p.m,
            width: columns.len(),
            c: sums.get().wrapping_add(columns.start),
            c_rows: pitch as isize,
            c_cols: 1,
            accumulate: !first,
        };
        // SAFETY: both are parts of the block, and nobody else works on this strip.
        unsafe { LevelOf::<F>::enter::<Finish<Same<F::Lanes>>>(&args) }
    };
    if at_once == 1 {
        let whole = |strip: usize| {
            for index in 0..blocks {
                let to = sums.get().wrapping_add(if index == 0 { 0 } else { one });
                run(strip, index * kc, to);
                if index > 0 {
                    add(to, strip, strips, false);
                }
            }
        };
        if threads == 1 {
            (0..strips).for_each(whole);
        } else {
            parallel.run(strips, &whole);
        }
    } else {
        let mut done = 0;
        while done < blocks {
            let now = at_once.min(blocks - done);
            parallel.run(now * strips, &|index| {
                let (block, strip) = (index / strips, index % strips);
                run(strip, (done + block) * kc, sums.get().wrapping_add(one * (block + 1)));
            });
            for block in 0..now {
                add(sums.get().wrapping_add(one * (block + 1)), 0, 1, done + block == 0);
            }
            done += now;
        }
    }
    // SAFETY: the sums are complete; C is the caller's.
    unsafe { finish::<F>(p, sums.get(), pitch) };
}

/// `R` rows of A times a strip of B over one block of K.
struct RowsArgs<F: Family> {
    a: *const Elem<F>,
    a_rows: usize,
    b: *const F::Store,
    b_rows: isize,
    depth: usize,
    columns: usize,
    to: *mut Elem<F>,
    pitch: usize,
}

/// `U` rows of B at a time are added to `R` rows of sums, which stay in L1.
struct Rows<F, const R: usize, const U: usize>(PhantomData<F>);

impl<F: Family, const R: usize, const U: usize> Job for Rows<F, R, U> {
    type Args = RowsArgs<F>;

    #[inline(always)]
    unsafe fn run(args: &RowsArgs<F>) {
        let mut k = 0;
        while k + U <= args.depth {
            // SAFETY: k + U rows of B and columns of A exist.
            unsafe { several::<F, R, U>(args, k) };
            k += U;
        }
        while k < args.depth {
            // SAFETY: row k of B and column k of A exist.
            unsafe { several::<F, R, 1>(args, k) };
            k += 1;
        }
    }
}

/// Adds rows `k..k + U` of B, times their factors, to the sums (or starts the sums, if k is 0).
///
/// # Safety
/// The rows, columns and sums exist; the family's level is available.
#[inline(always)]
unsafe fn several<F: Family, const R: usize, const U: usize>(args: &RowsArgs<F>, k: usize) {
    let lanes = F::Lanes::WIDTH;
    // SAFETY: all columns below `args.columns` exist; sums have room for whole vectors, since
    // strips start at multiples of the width and the pitch is one.
    unsafe {
        let mut factors = [[F::Lanes::zero(); R]; U];
        for (u, factors) in factors.iter_mut().enumerate() {
            for (r, factor) in factors.iter_mut().enumerate() {
                *factor = F::Lanes::splat(args.a.add(r * args.a_rows + k + u));
            }
        }
        let b = args.b.wrapping_offset(k as isize * args.b_rows);
        let mut column = 0;
        while column < args.columns {
            let rest = args.columns - column;
            let mut sums = [F::Lanes::zero(); R];
            if k > 0 {
                for (r, sum) in sums.iter_mut().enumerate() {
                    *sum = F::Lanes::load(args.to.add(r * args.pitch + column));
                }
            }
            for (u, factors) in factors.iter().enumerate() {
                let from = b.wrapping_offset(u as isize * args.b_rows).wrapping_add(column);
                let row = if rest >= lanes { F::load(from) } else { F::load_first(from, rest) };
                for (sum, factor) in sums.iter_mut().zip(factors) {
                    *sum = factor.mul_add(row, *sum);
                }
            }
            for (r, sum) in sums.iter().enumerate() {
                sum.store(args.to.add(r * args.pitch + column));
            }
            column += lanes;
        }
    }
}

/// How [`dots`] lies in memory.
struct DotsCut {
    /// Blocks of K.
    blocks: usize,
    /// Whether A is copied, because it has a stride or another type than sums are computed in. One
    /// thread copies, which would take longer than all threads take for the sums.
    copied: bool,
    /// Whether B's single column is gathered like A, because it has a stride.
    gathered: bool,
    /// Bytes of the copy of A and of that of B.
    x_room: usize,
    b_room: usize,
}

impl DotsCut {
    fn new<F: Family>(p: &Product<F::Store>) -> DotsCut {
        let copied = !F::DIRECT || p.a_cols != 1;
        let gathered = p.b_rows != 1;
        DotsCut {
            blocks: p.k.div_ceil(DOT_BLOCK),
            copied,
            gathered,
            x_room: if copied { room::<Elem<F>>(p.k) } else { 0 },
            b_room: if gathered { room::<F::Store>(p.k) } else { 0 },
        }
    }
}

/// What [`dots`] needs.
pub(super) fn dots_need<F: Family>(p: &Product<F::Store>) -> Room {
    let cut = DotsCut::new::<F>(p);
    let sums = room::<Elem<F>>(p.n.saturating_mul(cut.blocks));
    Room { whole: cut.x_room.saturating_add(cut.b_room).saturating_add(sums), each: 0 }
}

/// C = A B for one row of A, where the rows of B have stride 1 (or B is one column).
///
/// # Safety
/// The contract of `gemm`; `m` is 1, and `b_rows` or `n` is 1; the area has the room that
/// [`dots_need`] says.
pub(super) unsafe fn dots<F: Family>(
    parallel: &dyn Parallel,
    threads: usize,
    p: &Product<F::Store>,
    area: &Area,
) {
    let DotsCut { blocks, copied, gathered, x_room, b_room } = DotsCut::new::<F>(p);
    let threads = if p.k.saturating_mul(p.n) < ONE_THREAD { 1 } else { threads };
    let pieces = if threads == 1 { 1 } else { p.n.div_ceil(4).min(8 * threads) };
    let copy = area.whole().cast::<Elem<F>>();
    let column = area.whole().wrapping_add(x_room).cast::<F::Store>();
    let sums = Shared(area.whole().wrapping_add(x_room + b_room).cast::<Elem<F>>());
    // SAFETY: A has k columns, B k rows, and the block has room for both.
    unsafe {
        if copied {
            gather::<F>(p.a, p.a_cols, p.k, copy);
        }
        if gathered {
            for k in 0..p.k {
                let from = p.b.wrapping_offset(k as isize * p.b_rows);
                column.add(k).write(from.read());
            }
        }
    }
    // Elements of a family that is direct are stored as they are computed.
    let x = Shared(if copied { copy } else { p.a.cast_mut().cast() });
    let b = Shared(if gathered { column } else { p.b.cast_mut() });
    let run = |index: usize| {
        let (block, piece) = (index / pieces, index % pieces);
        let columns = part(p.n, pieces, 4, piece);
        let k = block * DOT_BLOCK;
        let args = DotsArgs::<F> {
            x: x.get().wrapping_add(k).cast_const(),
            b: b.get().wrapping_add(k).wrapping_offset(columns.start as isize * p.b_cols),
            b_cols: p.b_cols,
            depth: DOT_BLOCK.min(p.k - k),
            columns: columns.len(),
            to: sums.get().wrapping_add(block * p.n + columns.start),
        };
        // SAFETY: the columns and the block of K are in B; each pair has its own sums.
        unsafe { LevelOf::<F>::enter::<Dots<F>>(&args) }
    };
    if threads == 1 {
        (0..blocks * pieces).for_each(run);
    } else {
        parallel.run(blocks * pieces, &run);
    }
    for block in 1..blocks {
        for j in 0..p.n {
            let sum = sums.get().wrapping_add(j);
            // SAFETY: both are inside of the sums.
            unsafe {
                let more = sum.wrapping_add(block * p.n).read();
                sum.write(F::Lanes::add_elems(sum.read(), more));
            }
        }
    }
    // SAFETY: the first row of sums is complete; C is the caller's.
    unsafe { finish::<F>(p, sums.get(), p.n) };
}

/// Dot products of `x` with some columns.
struct DotsArgs<F: Family> {
    x: *const Elem<F>,
    b: *const F::Store,
    b_cols: isize,
    depth: usize,
    columns: usize,
    to: *mut Elem<F>,
}

/// Four columns at a time, two vectors of each.
struct Dots<F>(PhantomData<F>);

impl<F: Family> Job for Dots<F> {
    type Args = DotsArgs<F>;

    #[inline(always)]
    unsafe fn run(args: &DotsArgs<F>) {
        let mut column = 0;
        while column + 4 <= args.columns {
            // SAFETY: four columns from here exist.
            unsafe { dot_columns::<F, 4>(args, column) };
            column += 4;
        }
        while column < args.columns {
            // SAFETY: this column exists.
            unsafe { dot_columns::<F, 1>(args, column) };
            column += 1;
        }
    }
}

/// The dot products of `C` columns. The order of a column's sum does not depend on `C`.
///
/// # Safety
/// The columns exist; the family's level is available.
#[inline(always)]
unsafe fn dot_columns<F: Family, const C: usize>(args: &DotsArgs<F>, column: usize) {
    let lanes = F::Lanes::WIDTH;
    // SAFETY: k stays below `depth`; no lanes are wider than 64.
    unsafe {
        let b = args.b.wrapping_offset(column as isize * args.b_cols);
        let mut sums = [[F::Lanes::zero(); 2]; C];
        let mut k = 0;
        while k + 2 * lanes <= args.depth {
            let x = [F::Lanes::load(args.x.add(k)), F::Lanes::load(args.x.add(k + lanes))];
            for (c, sums) in sums.iter_mut().enumerate() {
                let from = b.wrapping_offset(c as isize * args.b_cols).wrapping_add(k);
                sums[0] = x[0].mul_add(F::load(from), sums[0]);
                sums[1] = x[1].mul_add(F::load(from.add(lanes)), sums[1]);
            }
            k += 2 * lanes;
        }
        while k < args.depth {
            let count = lanes.min(args.depth - k);
            let x = F::Lanes::load_masked(args.x.add(k), F::Lanes::mask(count));
            for (c, sums) in sums.iter_mut().enumerate() {
                let from = b.wrapping_offset(c as isize * args.b_cols).wrapping_add(k);
                sums[0] = x.mul_add(F::load_first(from, count), sums[0]);
            }
            k += count;
        }
        for (c, sums) in sums.iter().enumerate() {
            let mut parts = [F::Lanes::ZERO; 64];
            sums[0].add(sums[1]).store(parts.as_mut_ptr());
            let mut half = lanes / 2;
            while half > 0 {
                for i in 0..half {
                    parts[i] = F::Lanes::add_elems(parts[i], parts[i + half]);
                }
                half /= 2;
            }
            args.to.add(column + c).write(parts[0]);
        }
    }
}
