//! The loops around the micro-kernel.
//!
//! `plan` has turned the problem so that C's rows are contiguous wherever they can be, and has
//! chosen a [`Blocking`]. [`product`] hands pieces of C (or blocks of K) to the threads; [`region`]
//! is the loop nest of one piece: columns, blocks of K, pack B, rows, pack A, tiles. Pieces share
//! nothing, so no thread ever waits for another inside of a product.

use super::blocking::{Blocking, part};
use super::family::{Elem, Family, Same};
use super::kernel::{Ahead, STRETCH, Tile, Tiled, access};
use super::lanes::{Job, Lanes, Level};
use super::pack;
use super::scratch::{room, with_block, with_room};
use super::{Parallel, Product};
use std::marker::PhantomData;
use std::ops::Range;

/// The level that a family's kernels are compiled for.
pub(super) type LevelOf<F> = <<F as Family>::Lanes as Lanes>::Level;

/// Rows and columns of the largest tile of a family.
pub(super) fn tile_size<F: Family>() -> (usize, usize) {
    let kernels = &F::Lanes::KERNELS;
    (kernels.rows, kernels.vectors * F::Lanes::WIDTH)
}

/// Elements per k of a packed panel of B that holds `width` columns.
pub(super) fn panel_width<F: Family>(width: usize) -> usize {
    let (_, nr) = tile_size::<F>();
    if F::Lanes::KERNELS.every_width { width.next_multiple_of(F::Lanes::WIDTH) } else { nr }
}

/// Whether kernels can read a family's operands where they lie (given fitting strides).
pub(super) fn reads_in_place<F: Family>() -> bool {
    F::DIRECT && F::Lanes::KERNELS.every_width
}

/// Where sums go: contiguous rows of computed elements.
#[derive(Clone, Copy)]
struct Target<E> {
    at: *mut E,
    rows: isize,
    accumulate: bool,
}

/// A part of the product: rows and columns of C, a range of K.
#[derive(Clone)]
struct Part {
    rows: Range<usize>,
    columns: Range<usize>,
    depth: Range<usize>,
}

/// Computes the product.
///
/// # Safety
/// The contract of `gemm`; `k` is not zero.
pub(super) unsafe fn product<F: Family>(
    parallel: &dyn Parallel,
    p: &Product<F::Store>,
    blocking: &Blocking,
) {
    // SAFETY: the same contract.
    unsafe {
        if blocking.k_at_once > 0 {
            return cut_k::<F>(parallel, p, blocking);
        }
        let (rows, columns) = (blocking.row_pieces, blocking.column_pieces);
        if rows * columns == 1 {
            return piece::<F>(p, blocking, 0..p.m, 0..p.n);
        }
        let (mr, nr) = tile_size::<F>();
        parallel.run(rows * columns, &|index| {
            let rows = part(p.m, rows, mr, index / columns);
            let columns = part(p.n, columns, nr, index % columns);
            piece::<F>(p, blocking, rows, columns);
        });
    }
}

/// Computes a piece of C over all of K.
///
/// # Safety
/// The contract of `gemm`; no other thread works on the same piece.
unsafe fn piece<F: Family>(
    p: &Product<F::Store>,
    blocking: &Blocking,
    rows: Range<usize>,
    columns: Range<usize>,
) {
    if rows.is_empty() || columns.is_empty() {
        return;
    }
    let depth = 0..p.k;
    if F::DIRECT && p.c_cols == 1 {
        let c = at(p.c, rows.start, p.c_rows, columns.start, 1).cast::<Elem<F>>();
        let target = Target { at: c, rows: p.c_rows, accumulate: p.accumulate };
        // SAFETY: the same contract; `DIRECT` says that the two element types are one.
        return unsafe { region::<F>(p, blocking, &Part { rows, columns, depth }, target) };
    }
    // The result takes another form in memory: it is computed in a block of computed elements
    // first, some rows at a time so that the block stays in L2.
    let pitch = columns.len().next_multiple_of(F::Lanes::WIDTH);
    let (mr, _) = tile_size::<F>();
    let height = ((1 << 20) / (pitch * size_of::<Elem<F>>())).next_multiple_of(mr).max(8 * mr);
    with_block(room::<Elem<F>>(pitch * height.min(rows.len())), |block| {
        let sums = block.start().cast::<Elem<F>>();
        let mut row = rows.start;
        while row < rows.end {
            let end = (row + height).min(rows.end);
            let target = Target { at: sums, rows: pitch as isize, accumulate: false };
            let part = Part { rows: row..end, columns: columns.clone(), depth: depth.clone() };
            let finish = FinishArgs::<F> {
                sums,
                pitch,
                height: end - row,
                width: columns.len(),
                c: at(p.c, row, p.c_rows, columns.start, p.c_cols),
                c_rows: p.c_rows,
                c_cols: p.c_cols,
                accumulate: p.accumulate,
            };
            // SAFETY: the block has room for `height` rows of `pitch`; the rest is the caller's
            // contract.
            unsafe {
                region::<F>(p, blocking, &part, target);
                LevelOf::<F>::enter::<Finish<F>>(&finish);
            }
            row = end;
        }
    });
}

/// The address of element (i, j); formed by wrapping arithmetic, so it may be formed before it is
/// known whether it will be used.
fn at<T>(base: *mut T, i: usize, rows: isize, j: usize, cols: isize) -> *mut T {
    base.wrapping_offset(i as isize * rows).wrapping_offset(j as isize * cols)
}

/// The loop nest of one part.
///
/// # Safety
/// A and B may be read and the target written over the part; the family's level is available.
unsafe fn region<F: Family>(
    p: &Product<F::Store>,
    blocking: &Blocking,
    part: &Part,
    target: Target<Elem<F>>,
) {
    let (_, nr) = tile_size::<F>();
    let Blocking { nc, kc, pack_b, mc, pack_a, .. } = *blocking;
    // As many columns at a time as fit, but evenly: a narrow rest would pack A for little.
    let times = part.columns.len().div_ceil(nc).max(1);
    let width = part.columns.len().div_ceil(times).next_multiple_of(nr);
    let b_room = if pack_b { room::<Elem<F>>(width * kc.min(part.depth.len())) } else { 0 };
    let a_room = if pack_a { room::<Elem<F>>(mc * kc) } else { 0 };
    with_room(a_room + b_room, |start| {
        let packed_a = start.cast::<Elem<F>>();
        let packed_b = start.wrapping_add(a_room).cast::<Elem<F>>();
        let mut column = part.columns.start;
        while column < part.columns.end {
            let columns = column..(column + width).min(part.columns.end);
            let mut k = part.depth.start;
            while k < part.depth.end {
                let depth = k..(k + kc).min(part.depth.end);
                let first = k == part.depth.start;
                let b = at(p.b.cast_mut(), k, p.b_rows, column, p.b_cols).cast_const();
                let strips = Strips {
                    at: if pack_b { packed_b.cast_const() } else { b.cast() },
                    rows: (!pack_b).then_some(p.b_rows),
                    depth: depth.len(),
                    columns: columns.len(),
                };
                let target = Target {
                    at: target.at.wrapping_add(column - part.columns.start),
                    rows: target.rows,
                    accumulate: target.accumulate || !first,
                };
                // SAFETY: the part lies in the operands, the block has room for both packings, and
                // B is read in place only where the plan found its rows contiguous and its
                // elements those of the lanes.
                unsafe {
                    if pack_b {
                        LevelOf::<F>::enter::<pack::Block<F>>(&pack::BlockArgs {
                            from: b,
                            across: p.b_cols,
                            along: p.b_rows,
                            columns: columns.len(),
                            depth: depth.len(),
                            panel: nr,
                            to: packed_b,
                        });
                    }
                    let a = at(p.a.cast_mut(), part.rows.start, p.a_rows, k, p.a_cols).cast_const();
                    rows_of_tiles::<F>(p, blocking, a, packed_a, part.rows.len(), &strips, target);
                }
                k = depth.end;
            }
            column = columns.end;
        }
    });
}

/// A block of B as strips of tile width: packed, or in place with a row stride.
struct Strips<E> {
    at: *const E,
    rows: Option<isize>,
    depth: usize,
    columns: usize,
}

/// The part of A that is packed next, as tracks of cache lines: each tile of C fetches one of them
/// while it is computed.
struct Upcoming {
    start: *const u8,
    /// Tracks lie at `outer` times their number over `per` plus `inner` times the rest.
    per: usize,
    outer: isize,
    inner: isize,
    step: isize,
    tracks: usize,
    track: usize,
}

impl Upcoming {
    /// Some rows of A, over `depth` columns from `a` (which is row 0) on.
    fn new<T>(p: &Product<T>, a: *const T, rows: Range<usize>, depth: usize) -> Upcoming {
        const LINE: usize = 64;
        let size = size_of::<T>();
        let lines = depth.div_ceil(STRETCH);
        let start = a.wrapping_offset(rows.start as isize * p.a_rows).cast();
        let (row, column) = (p.a_rows * size as isize, p.a_cols * size as isize);
        let none = Upcoming { start, per: 1, outer: 0, inner: 0, step: 0, tracks: 0, track: 0 };
        if p.a_cols == 1 {
            let per = (depth * size).div_ceil(lines * LINE);
            let (inner, step) = ((lines * LINE) as isize, LINE as isize);
            Upcoming { per, outer: row, inner, step, tracks: rows.len() * per, ..none }
        } else if p.a_rows == 1 {
            let per = depth.div_ceil(lines);
            let (inner, tracks) =
                (lines as isize * column, (rows.len() * size).div_ceil(LINE) * per);
            Upcoming { per, outer: LINE as isize, inner, step: column, tracks, ..none }
        } else {
            none
        }
    }

    /// The next track; without one, `idle` again and again.
    #[inline(always)]
    fn next(&mut self, idle: *const u8) -> Ahead {
        if self.track == self.tracks {
            return Ahead { at: idle, step: 0 };
        }
        let (outer, inner) = ((self.track / self.per) as isize, (self.track % self.per) as isize);
        self.track += 1;
        let at = self.start.wrapping_offset(outer * self.outer + inner * self.inner);
        Ahead { at, step: self.step }
    }
}

/// All tiles over one block of K and of columns.
///
/// # Safety
/// As [`region`]; `a` is the first element of A there.
unsafe fn rows_of_tiles<F: Family>(
    p: &Product<F::Store>,
    blocking: &Blocking,
    a: *const F::Store,
    packed_a: *mut Elem<F>,
    rows: usize,
    strips: &Strips<Elem<F>>,
    target: Target<Elem<F>>,
) {
    let (mr, _) = tile_size::<F>();
    let panels = rows.div_ceil(mr);
    let per_pass = blocking.mc / mr;
    let (height, taller) = (rows / panels, rows % panels);
    let mut panel = 0;
    let mut row = 0;
    while panel < panels {
        let pass = panel..(panel + per_pass).min(panels);
        if blocking.pack_a {
            let args = pack::PanelsArgs {
                from: a,
                across: p.a_rows,
                along: p.a_cols,
                depth: strips.depth,
                rows,
                panels,
                pass: pass.clone(),
                to: packed_a,
            };
            // SAFETY: the rows are in A; the buffer has room for `mc` of them.
            unsafe { LevelOf::<F>::enter::<pack::Panels<F>>(&args) };
        }
        let next =
            pack::even(rows, panels, pass.end)..pack::even(rows, panels, pass.end + per_pass);
        let mut upcoming = Upcoming::new(p, a, next, strips.depth);
        let mut packed = packed_a.cast_const();
        for index in pass {
            let height = height + usize::from(index < taller);
            let tile = Tile {
                k: strips.depth,
                a: if blocking.pack_a {
                    packed
                } else {
                    a.wrapping_offset(row as isize * p.a_rows).cast()
                },
                a_rows: if blocking.pack_a { 1 } else { p.a_rows },
                a_cols: if blocking.pack_a { height as isize } else { p.a_cols },
                b: strips.at,
                b_rows: 0,
                c: target.at.wrapping_offset(row as isize * target.rows),
                c_rows: target.rows,
                width: 0,
                accumulate: target.accumulate,
                ahead: Ahead { at: std::ptr::null(), step: 0 },
            };
            // SAFETY: the same contract.
            unsafe { tiles::<F>(tile, height, strips, blocking.pack_a.then_some(&mut upcoming)) };
            packed = packed.wrapping_add(height * strips.depth);
            row += height;
            panel += 1;
        }
    }
}

/// One row of tiles, along the strips of B.
///
/// # Safety
/// As [`region`]; `tile` is the first tile of the row, of height `height`. If A is packed, what
/// will be packed next is given.
#[inline(always)]
unsafe fn tiles<F: Family>(
    mut tile: Tile<Elem<F>>,
    height: usize,
    strips: &Strips<Elem<F>>,
    mut upcoming: Option<&mut Upcoming>,
) {
    let lanes = F::Lanes::WIDTH;
    let (_, nr) = tile_size::<F>();
    let kernels = &F::Lanes::KERNELS;
    let mut column = 0;
    while column < strips.columns {
        let width = nr.min(strips.columns - column);
        let vectors = width.div_ceil(lanes);
        tile.width = width;
        tile.b_rows = strips.rows.unwrap_or(panel_width::<F>(width) as isize);
        let access = match strips.rows {
            Some(_) if width % lanes != 0 => access::MASKED,
            _ if upcoming.is_some() => access::PACKED,
            _ => access::STRIDED,
        };
        if let Some(upcoming) = &mut upcoming {
            tile.ahead = upcoming.next(tile.b.cast());
        }
        // SAFETY: the caller's contract; the tile ends where the strip does.
        unsafe { kernels.get(height, vectors, access)(&tile) };
        let step =
            if strips.rows.is_some() { width } else { panel_width::<F>(width) * strips.depth };
        tile.b = tile.b.wrapping_add(step);
        tile.c = tile.c.wrapping_add(width);
        column += width;
    }
}

/// Blocks of K on several threads, each with a result of its own; added in order.
///
/// # Safety
/// The contract of `gemm`.
unsafe fn cut_k<F: Family>(parallel: &dyn Parallel, p: &Product<F::Store>, blocking: &Blocking) {
    let kc = blocking.kc;
    let blocks = p.k.div_ceil(kc);
    let pitch = p.n.next_multiple_of(F::Lanes::WIDTH);
    let one = pitch * p.m;
    let in_place = F::DIRECT && p.c_cols == 1;
    let at_once = blocking.k_at_once.min(blocks);
    // One result more than blocks at once: the sum so far, where C cannot hold it.
    with_block(room::<Elem<F>>(one * (at_once + 1)), |block| {
        let base = Shared(block.start().cast::<Elem<F>>());
        let mut done = 0;
        while done < blocks {
            let now = at_once.min(blocks - done);
            parallel.run(now, &|index| {
                let k = (done + index) * kc;
                let part = Part { rows: 0..p.m, columns: 0..p.n, depth: k..(k + kc).min(p.k) };
                let target = Target {
                    at: base.get().wrapping_add(one * (index + 1)),
                    rows: pitch as isize,
                    accumulate: false,
                };
                // SAFETY: every block has its own result; the rest is the caller's contract.
                unsafe { region::<F>(p, blocking, &part, target) };
            });
            for index in 0..now {
                let first = done + index == 0;
                let (c, c_rows, accumulate) = if in_place {
                    (p.c.cast(), p.c_rows, p.accumulate || !first)
                } else {
                    (base.get(), pitch as isize, !first)
                };
                // SAFETY: result `index` is complete, and C or the sum is as large.
                unsafe {
                    LevelOf::<F>::enter::<Finish<Same<F::Lanes>>>(&FinishArgs {
                        sums: base.get().wrapping_add(one * (index + 1)),
                        pitch,
                        height: p.m,
                        width: p.n,
                        c,
                        c_rows,
                        c_cols: 1,
                        accumulate,
                    });
                }
            }
            done += now;
        }
        if !in_place {
            // SAFETY: the sum is complete; C is the caller's.
            unsafe {
                LevelOf::<F>::enter::<Finish<F>>(&FinishArgs {
                    sums: base.get(),
                    pitch,
                    height: p.m,
                    width: p.n,
                    c: p.c,
                    c_rows: p.c_rows,
                    c_cols: p.c_cols,
                    accumulate: p.accumulate,
                });
            }
        }
    });
}

/// A pointer that threads may share because each uses a part of its own.
pub(super) struct Shared<T>(pub(super) *mut T);

impl<T> Shared<T> {
    /// The pointer; a method, so that closures capture the whole.
    pub(super) fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: users write disjoint parts, as each states.
unsafe impl<T: Send> Sync for Shared<T> {}

/// Sums on their way into C.
pub(super) struct FinishArgs<F: Family> {
    /// The sums, row by row.
    pub(super) sums: *const Elem<F>,
    /// From one row of sums to the next.
    pub(super) pitch: usize,
    /// Rows.
    pub(super) height: usize,
    /// Columns.
    pub(super) width: usize,
    /// The first element of C.
    pub(super) c: *mut F::Store,
    /// From one row of C to the next.
    pub(super) c_rows: isize,
    /// From one column of C to the next.
    pub(super) c_cols: isize,
    /// Whether to add to C.
    pub(super) accumulate: bool,
}

/// Writes or adds finished sums to C, rounding each once.
pub(super) struct Finish<F>(PhantomData<F>);

impl<F: Family> Job for Finish<F> {
    type Args = FinishArgs<F>;

    #[inline(always)]
    unsafe fn run(args: &FinishArgs<F>) {
        let lanes = F::Lanes::WIDTH;
        for i in 0..args.height {
            let sums = args.sums.wrapping_add(i * args.pitch);
            let c = args.c.wrapping_offset(i as isize * args.c_rows);
            let whole = if args.c_cols == 1 { args.width / lanes * lanes } else { 0 };
            let mut j = 0;
            while j < whole {
                // SAFETY: `j + lanes <= width`.
                unsafe {
                    let mut sum = F::Lanes::load(sums.add(j));
                    if args.accumulate {
                        sum = F::load(c.add(j)).add(sum);
                    }
                    F::store(sum, c.add(j));
                }
                j += lanes;
            }
            for j in whole..args.width {
                let to = c.wrapping_offset(j as isize * args.c_cols);
                // SAFETY: `j < width`.
                unsafe {
                    let mut sum = sums.add(j).read();
                    if args.accumulate {
                        sum = F::Lanes::add_elems(F::widen(to.read()), sum);
                    }
                    to.write(F::narrow(sum));
                }
            }
        }
    }
}
