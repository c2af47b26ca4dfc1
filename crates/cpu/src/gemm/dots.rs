//! Products with very few rows of A and contiguous columns of B: dot products, bound by reading B once.
//!
//! `plan` has turned the problem so that the short side is A's. One row of A is read where it lies if it
//! has no stride; otherwise, and where there are several, A is copied first, in the order of packed
//! panels. Sums go over lanes, in an order that depends on the number of A's rows alone, and to C through
//! `Finish`. Called by `plan`.

use super::blocking::part;
use super::family::{Elem, Family};
use super::finish::{Shared, finish};
use super::lanes::{Job, Lanes, Level};
use super::matrix::LevelOf;
use super::pack::{Row, RowArgs};
use super::scratch::{Area, Room, room};
use super::vector::{share, worthwhile};
use super::{Parallel, Product};
use std::marker::PhantomData;

/// Length of a dot product that is summed over lanes without a break.
const DOT_BLOCK: usize = 1 << 15;

/// Whether [`dots`] serves a product: its columns of B are contiguous, and A has one row, or, for complex
/// numbers, up to four. Other types have kernels for narrow tiles that read B in place, or need none.
pub(super) fn serves<F: Family>(p: &Product<F::Store>) -> bool {
    let several = p.m <= 4 && p.m <= p.n && p.k >= SHORTEST * F::Lanes::WIDTH;
    match p.m {
        1 => p.b_rows == 1 || p.n == 1,
        _ => several_rows::<F>() && several && p.b_rows == 1,
    }
}

/// Whether there are kernels for several rows.
const fn several_rows<F: Family>() -> bool {
    F::DIRECT && F::Lanes::REORDERS
}

/// Vectors that sums of several rows must be long: each ends with a sum over its lanes.
const SHORTEST: usize = 4;

/// How [`dots`] lies in memory.
struct Cut {
    /// Blocks of K.
    blocks: usize,
    /// Whether A is copied, because it has a stride, several rows, or another type than sums are computed
    /// in. One thread copies, which would take longer than all threads take for a single row's sums.
    copied: bool,
    /// Whether B's single column is gathered like A, because it has a stride.
    gathered: bool,
    /// From one row of the copy of A to the next.
    pitch: usize,
    /// Bytes of the copy of A and of that of B.
    x_room: usize,
    b_room: usize,
}

impl Cut {
    fn new<F: Family>(p: &Product<F::Store>) -> Cut {
        let copied = !F::DIRECT || p.a_cols != 1 || p.m > 1;
        let gathered = p.b_rows != 1;
        let pitch = p.k.checked_next_multiple_of(F::Lanes::WIDTH).unwrap_or(usize::MAX);
        Cut {
            blocks: p.k.div_ceil(DOT_BLOCK),
            copied,
            gathered,
            pitch,
            x_room: if copied { room::<Elem<F>>(p.m.saturating_mul(pitch)) } else { 0 },
            b_room: if gathered { room::<F::Store>(p.k) } else { 0 },
        }
    }
}

/// What [`dots`] needs.
pub(super) fn need<F: Family>(p: &Product<F::Store>) -> Room {
    let cut = Cut::new::<F>(p);
    let sums = room::<Elem<F>>(p.m.saturating_mul(p.n).saturating_mul(cut.blocks));
    Room { whole: cut.x_room.saturating_add(cut.b_room).saturating_add(sums), each: 0 }
}

/// C = A B for a product that it [`serves`].
///
/// # Safety
/// The contract of `gemm`; the area has the room that [`need`] says.
pub(super) unsafe fn dots<F: Family>(
    parallel: &dyn Parallel,
    threads: usize,
    p: &Product<F::Store>,
    area: &Area,
) {
    let Cut { blocks, copied, gathered, pitch, x_room, b_room } = Cut::new::<F>(p);
    let threads = worthwhile::<F>(p, threads);
    let pieces = if threads == 1 { 1 } else { p.n.div_ceil(4).min(8 * threads) };
    let copy = area.whole().cast::<Elem<F>>();
    let column = area.whole().wrapping_add(x_room).cast::<F::Store>();
    let sums = Shared(area.whole().wrapping_add(x_room + b_room).cast::<Elem<F>>());
    // SAFETY: A has k columns, B k rows, and the block has room for both.
    unsafe {
        if copied {
            for row in 0..p.m {
                LevelOf::<F>::enter::<Row<F, true>>(&RowArgs {
                    from: p.a.wrapping_offset(row as isize * p.a_rows),
                    stride: p.a_cols,
                    count: p.k,
                    to: copy.wrapping_add(row * pitch),
                });
            }
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
            x_rows: pitch,
            b: b.get().wrapping_add(k).wrapping_offset(columns.start as isize * p.b_cols),
            b_cols: p.b_cols,
            depth: DOT_BLOCK.min(p.k - k),
            columns: columns.len(),
            to: sums.get().wrapping_add(block * p.m * p.n + columns.start),
            to_rows: p.n,
        };
        // SAFETY: the columns and the block of K are in B; each pair has its own sums.
        unsafe {
            match p.m {
                1 if copied => LevelOf::<F>::enter::<Dots<F, 1, 4, 2, true>>(&args),
                2 if const { several_rows::<F>() } => {
                    LevelOf::<F>::enter::<Dots<F, 2, 4, 1, true>>(&args);
                }
                3 if const { several_rows::<F>() } => {
                    LevelOf::<F>::enter::<Dots<F, 3, 2, 1, true>>(&args);
                }
                4 if const { several_rows::<F>() } => {
                    LevelOf::<F>::enter::<Dots<F, 4, 2, 1, true>>(&args);
                }
                _ => LevelOf::<F>::enter::<Dots<F, 1, 4, 2, false>>(&args),
            }
        }
    };
    if threads == 1 {
        (0..blocks * pieces).for_each(run);
    } else {
        share::<F>(parallel, p, blocks * pieces, &run);
    }
    let one = p.m * p.n;
    for block in 1..blocks {
        for at in 0..one {
            let sum = sums.get().wrapping_add(at);
            // SAFETY: both are inside of the sums.
            unsafe {
                let more = sum.wrapping_add(block * one).read();
                sum.write(F::Lanes::add_elems(sum.read(), more));
            }
        }
    }
    // SAFETY: the first block's sums are complete; C is the caller's.
    unsafe { finish::<F>(p, sums.get(), p.n) };
}

/// Dot products of rows `x` with some columns.
struct DotsArgs<F: Family> {
    x: *const Elem<F>,
    x_rows: usize,
    b: *const F::Store,
    b_cols: isize,
    depth: usize,
    columns: usize,
    to: *mut Elem<F>,
    to_rows: usize,
}

/// `R` rows against `C` columns at a time, `V` vectors of each; `COPIED` rows are in the order of panels.
struct Dots<F, const R: usize, const C: usize, const V: usize, const COPIED: bool>(PhantomData<F>);

impl<F: Family, const R: usize, const C: usize, const V: usize, const COPIED: bool> Job
    for Dots<F, R, C, V, COPIED>
{
    type Args = DotsArgs<F>;

    #[inline(always)]
    unsafe fn run(args: &DotsArgs<F>) {
        let mut column = 0;
        while column + C <= args.columns {
            // SAFETY: `C` columns from here exist.
            unsafe { dot_columns::<F, R, C, V, COPIED>(args, column) };
            column += C;
        }
        while column < args.columns {
            // SAFETY: this column exists.
            unsafe { dot_columns::<F, R, 1, V, COPIED>(args, column) };
            column += 1;
        }
    }
}

/// `count` elements of A from place `k` on.
///
/// # Safety
/// They exist (with `COPIED`, whole vectors do); the family's level is available.
#[inline(always)]
unsafe fn factors<F: Family, const COPIED: bool>(
    row: *const Elem<F>,
    k: usize,
    count: usize,
) -> F::Lanes {
    // SAFETY: the same contract.
    unsafe {
        if COPIED && F::Lanes::REORDERS {
            F::Lanes::load_packed(row.add(k))
        } else if count == F::Lanes::WIDTH {
            F::Lanes::load(row.add(k))
        } else {
            F::Lanes::load_masked(row.add(k), F::Lanes::mask(count))
        }
    }
}

/// The dot products of `C` columns. The order of a column's sum does not depend on `C`.
///
/// # Safety
/// The columns exist; the family's level is available.
#[expect(clippy::needless_range_loop, reason = "counted loops unroll, and sums stay in registers")]
#[inline(always)]
unsafe fn dot_columns<
    F: Family,
    const R: usize,
    const C: usize,
    const V: usize,
    const COPIED: bool,
>(
    args: &DotsArgs<F>,
    column: usize,
) {
    let lanes = F::Lanes::WIDTH;
    // SAFETY: k stays below `depth`.
    unsafe {
        let b = args.b.wrapping_offset(column as isize * args.b_cols);
        let mut sums = [[[F::Lanes::zero(); V]; C]; R];
        let mut k = 0;
        while k + V * lanes <= args.depth {
            for v in 0..V {
                let at = k + v * lanes;
                let mut columns = [F::Lanes::zero(); C];
                for c in 0..C {
                    let from = b.wrapping_offset(c as isize * args.b_cols).wrapping_add(at);
                    columns[c] = F::load(from);
                }
                for r in 0..R {
                    let x = factors::<F, COPIED>(args.x.add(r * args.x_rows), at, lanes);
                    for c in 0..C {
                        sums[r][c][v] = x.mul_add(columns[c], sums[r][c][v]);
                    }
                }
            }
            k += V * lanes;
        }
        while k < args.depth {
            let count = lanes.min(args.depth - k);
            for c in 0..C {
                let from = b.wrapping_offset(c as isize * args.b_cols).wrapping_add(k);
                let column = F::load_first(from, count);
                for r in 0..R {
                    let x = factors::<F, COPIED>(args.x.add(r * args.x_rows), k, count);
                    sums[r][c][0] = x.mul_add(column, sums[r][c][0]);
                }
            }
            k += count;
        }
        for r in 0..R {
            for c in 0..C {
                let mut sum = sums[r][c][0];
                for v in 1..V {
                    sum = sum.add(sums[r][c][v]);
                }
                args.to.add(r * args.to_rows + column + c).write(sum.sum());
            }
        }
    }
}
