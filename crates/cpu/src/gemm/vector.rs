//! Products with very few rows of A: bound by reading B once.
//!
//! `plan` has turned the problem so that the short side is A's. [`rows`] serves up to
//! [`most_rows`] rows when the rows of B are contiguous: several rows of B are added up at a time
//! along C; where the columns of B are contiguous, `dots` does. A is copied first, so its strides do not
//! matter, and C written through `Finish`, so C's do not either.

use super::blocking::{Blocking, part};
use super::family::{Elem, Family, Same};
use super::finish::{Finish, FinishArgs, Shared, finish};
use super::kernel::Tiled;
use super::lanes::{Job, Lanes, Level};
use super::matrix::LevelOf;
use super::pack::{Row, RowArgs};
use super::scratch::{Area, Room, room};
use super::{Parallel, Product};
use std::marker::PhantomData;

/// The most rows of A that [`rows`] takes: more than one only where code size allows.
pub(super) fn most_rows<F: Family>() -> usize {
    if several_rows::<F>() { 4 } else { 1 }
}

/// Whether there are kernels for several rows: for floats and complex numbers.
const fn several_rows<F: Family>() -> bool {
    F::DIRECT && F::Lanes::KERNELS.every_width
}

/// Bytes of B below which one thread does everything.
const ONE_THREAD: usize = 1 << 18;
/// Bytes of B below which only threads that are awake take part: it takes some twenty microseconds,
/// about as long as waking one.
const AWAKE_ONLY: usize = 1 << 20;
/// Bytes of sums that a piece of [`rows`] keeps in L1. Rows of B are read this far without a break:
/// shorter ones end before the memory's prefetching has begun.
const STRIP: usize = 8 << 10;
/// The most bytes of results that blocks of K may have of their own in [`rows`].
const PARTIALS: usize = 1 << 20;

/// Bytes of B.
fn bytes<F: Family>(p: &Product<F::Store>) -> usize {
    p.k.saturating_mul(p.n).saturating_mul(size_of::<Elem<F>>())
}

/// How many of `threads` are worth while for a product that reads B once.
pub(super) fn worthwhile<F: Family>(p: &Product<F::Store>, threads: usize) -> usize {
    if bytes::<F>(p) < ONE_THREAD { 1 } else { threads }
}

/// Runs the pieces of a product that reads B once, on several threads.
pub(super) fn share<F: Family>(
    parallel: &dyn Parallel,
    p: &Product<F::Store>,
    pieces: usize,
    work: &(dyn Fn(usize) + Sync),
) {
    if bytes::<F>(p) < AWAKE_ONLY {
        parallel.run_brief(pieces, work);
    } else {
        parallel.run(pieces, work);
    }
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
        let threads = worthwhile::<F>(p, threads);
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
        unsafe {
            LevelOf::<F>::enter::<Row<F, false>>(&RowArgs {
                from,
                stride: p.a_cols,
                count: p.k,
                to: a.get().wrapping_add(row * p.k),
            });
        }
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
            share::<F>(parallel, p, strips, &whole);
        }
    } else {
        let mut done = 0;
        while done < blocks {
            let now = at_once.min(blocks - done);
            share::<F>(parallel, p, now * strips, &|index| {
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
