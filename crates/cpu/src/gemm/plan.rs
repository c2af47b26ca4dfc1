//! What is decided once per call: which way round, and by which path.
//!
//! A product is turned (C^T = B^T A^T) or mirrored until C's rows are contiguous where that is
//! possible and short sides lie where their paths want them; then one of the paths is chosen, from
//! shape, strides and family alone, and the memory for it is taken: after that nothing can fail. A
//! batch decides once for all its products. Called by `element`, calls `matrix`, `vector` and
//! `dots`, `tiny` before any of that, and the tile unit through [`TileUnit`].

use super::blocking::{Blocking, Shape};
use super::caches::CacheSizes;
use super::family::{Elem, Family};
use super::lanes::Lanes;
use super::scratch::{Area, Room, Slots};
use super::{Parallel, Product, Serial, dots, matrix, tiny, vector};
use crate::scratch::Scratch;
use tilework_error::Result;

/// A way to compute a product.
#[derive(Clone, Copy)]
enum Path {
    /// C has no elements.
    Nothing,
    /// Sums of no terms.
    Zeros,
    /// One row of A, or a few, against contiguous columns of B.
    Dots,
    /// Few rows of A against contiguous rows of B.
    Rows,
    /// The loops around the micro-kernel.
    Matrix(Blocking),
}

/// A unit of the CPU that multiplies matrices, where there is one.
pub(super) struct TileUnit<S> {
    /// The memory that a product takes on so many threads; None if the vector units should do it.
    pub(super) room: fn(&Product<S>, usize) -> Option<Room>,
    /// Computes a product for which `room` has named some memory, in an area that has it, cut for
    /// so many threads. Says whether it did; if not, C has to be written anew, or is as it was
    /// where the product is added to it. Its contract is that of `gemm`.
    pub(super) product: unsafe fn(&dyn Parallel, usize, &Product<S>, &Area) -> bool,
}

/// The unit for a family.
type Unit<F> = Option<&'static TileUnit<<F as Family>::Store>>;

/// The arguments of [`super::batched`].
pub(super) struct Batch<'a, S> {
    pub(super) product: Product<S>,
    pub(super) offsets: &'a [(isize, isize, isize)],
}

/// A product as it will be computed.
struct Plan<F: Family> {
    product: Product<F::Store>,
    /// Whether A and B have changed places.
    turned: bool,
    path: Path,
    /// How many threads it is cut for.
    threads: usize,
    /// What may take the place of `matrix`.
    unit: Unit<F>,
}

/// The product with so many elements added to its addresses.
#[inline]
fn moved<T>(mut p: Product<T>, (a, b, c): (isize, isize, isize)) -> Product<T> {
    p.a = p.a.wrapping_offset(a);
    p.b = p.b.wrapping_offset(b);
    p.c = p.c.wrapping_offset(c);
    p
}

/// C^T = B^T A^T.
fn turn<T: Copy>(p: &Product<T>) -> Product<T> {
    Product {
        m: p.n,
        n: p.m,
        k: p.k,
        a: p.b,
        a_rows: p.b_cols,
        a_cols: p.b_rows,
        b: p.a,
        b_rows: p.a_cols,
        b_cols: p.a_rows,
        c: p.c,
        c_rows: p.c_cols,
        c_cols: p.c_rows,
        accumulate: p.accumulate,
    }
}

/// Strides of axes with one element never matter: they become those that paths like best.
fn settle_strides<T: Copy>(p: &mut Product<T>) {
    if p.m == 1 {
        p.a_rows = p.k as isize;
        p.c_rows = p.n as isize;
    }
    if p.n == 1 {
        p.b_cols = 1;
        p.c_cols = 1;
    }
    if p.k == 1 {
        p.a_cols = 1;
        p.b_rows = p.n as isize;
    }
}

/// Columns of C that run backwards are walked from the other end.
fn mirror_columns<T: Copy>(p: &mut Product<T>) {
    if p.c_cols == -1 {
        let last = p.n as isize - 1;
        p.b = p.b.wrapping_offset(last * p.b_cols);
        p.c = p.c.wrapping_offset(last * p.c_cols);
        p.b_cols = -p.b_cols;
        p.c_cols = 1;
    }
}

impl<F: Family> Plan<F> {
    fn new(batch: &Batch<'_, F::Store>, threads: usize, unit: Unit<F>) -> Plan<F> {
        let (product, turned, path) = Self::path(&batch.product, threads);
        Plan { product, turned, path, threads, unit }
    }

    /// The way round, whether A and B have changed places for it, and the path.
    fn path(product: &Product<F::Store>, threads: usize) -> (Product<F::Store>, bool, Path) {
        let mut p = *product;
        let mut turned = false;
        if p.m == 0 || p.n == 0 {
            return (p, turned, Path::Nothing);
        }
        if p.k == 0 {
            return (p, turned, Path::Zeros);
        }
        settle_strides(&mut p);
        let other = turn(&p);
        // The side for few rows: A if it is short, B if that is.
        let few = |p: &Product<F::Store>| p.m <= vector::most_rows::<F>() && p.b_cols == 1;
        let (path, swap) = if dots::serves::<F>(&p) {
            (Some(Path::Dots), false)
        } else if dots::serves::<F>(&other) {
            (Some(Path::Dots), true)
        } else if few(&p) && p.m <= p.n {
            (Some(Path::Rows), false)
        } else if few(&other) && other.m <= other.n {
            (Some(Path::Rows), true)
        } else {
            (None, false)
        };
        if let Some(path) = path {
            return (if swap { other } else { p }, swap, path);
        }

        mirror_columns(&mut p);
        if p.c_cols != 1 {
            let mut other = turn(&p);
            mirror_columns(&mut other);
            // If neither way round is contiguous, results go through a scratch block; then the
            // shorter steps through C are the better inner ones.
            if other.c_cols == 1 || other.c_cols.unsigned_abs() < p.c_cols.unsigned_abs() {
                p = other;
                turned = true;
            }
        }
        let (mr, nr) = matrix::tile_size::<F>();
        let size = size_of::<Elem<F>>();
        let in_place = matrix::reads_in_place::<F>();
        let shape = Shape {
            m: p.m,
            n: p.n,
            k: p.k,
            size,
            mr,
            nr,
            b_pitch: (in_place && p.b_cols == 1).then_some(p.b_rows.unsigned_abs() * size),
            a_in_place: F::DIRECT,
            a_by_columns: p.a_rows == 1,
        };
        let blocking = Blocking::choose(&shape, CacheSizes::of_this_machine(), threads);
        (p, turned, Path::Matrix(blocking))
    }

    /// How much memory one product needs.
    fn room(&self) -> Room {
        match &self.path {
            Path::Nothing | Path::Zeros => Room::default(),
            Path::Dots => dots::need::<F>(&self.product),
            Path::Rows => vector::rows_need::<F>(&self.product, self.threads),
            Path::Matrix(blocking) => {
                let room = matrix::need::<F>(&self.product, blocking);
                let tiles = self.unit.and_then(|unit| (unit.room)(&self.product, self.threads));
                let tiles = tiles.unwrap_or_default();
                Room { whole: room.whole.max(tiles.whole), each: room.each.max(tiles.each) }
            }
        }
    }

    /// Takes the memory for `at_once` products. The tile unit packs all of K; without the memory
    /// for that, the vector units do it in little.
    fn reserve(&mut self, at_once: usize) -> Result<Memory> {
        let memory = |room: Room| {
            let each = room.bytes(self.threads);
            let bytes = each.saturating_mul(at_once);
            let scratch = (bytes > 0).then(|| Scratch::new("matmul", bytes)).transpose()?;
            Ok(Memory { scratch, room, each })
        };
        match memory(self.room()) {
            Err(_) if self.unit.is_some() => {
                self.unit = None;
                memory(self.room())
            }
            memory => memory,
        }
    }

    /// Runs the plan with the addresses moved by some elements.
    ///
    /// # Safety
    /// The contract of `gemm`, for the moved addresses; the area has the plan's room.
    unsafe fn run(&self, parallel: &dyn Parallel, offsets: (isize, isize, isize), area: &Area) {
        let (a, b, c) = offsets;
        let offsets = if self.turned { (b, a, c) } else { offsets };
        // SAFETY: the same contract.
        unsafe { self.run_one(parallel, &moved(self.product, offsets), area) };
    }

    /// Computes one product, whose addresses are where they belong.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn run_one(&self, parallel: &dyn Parallel, p: &Product<F::Store>, area: &Area) {
        // SAFETY: the caller's contract; turning and mirroring keep every address what it was.
        unsafe {
            match &self.path {
                Path::Nothing => {}
                Path::Zeros => zeros::<F>(p),
                Path::Dots => dots::dots::<F>(parallel, self.threads, p, area),
                Path::Rows => vector::rows::<F>(parallel, self.threads, p, area),
                Path::Matrix(blocking) => {
                    let by_unit = self.unit.filter(|unit| (unit.room)(p, self.threads).is_some());
                    if by_unit.is_none_or(|unit| !(unit.product)(parallel, self.threads, p, area)) {
                        matrix::product::<F>(parallel, p, blocking, area);
                    }
                }
            }
        }
    }
}

/// The product of matrices without inner elements.
///
/// # Safety
/// C may be written.
unsafe fn zeros<F: Family>(p: &Product<F::Store>) {
    if p.accumulate {
        return;
    }
    let zero = F::narrow(<F::Lanes as Lanes>::ZERO);
    for i in 0..p.m {
        let row = p.c.wrapping_offset(i as isize * p.c_rows);
        for j in 0..p.n {
            // SAFETY: (i, j) is in C.
            unsafe { row.wrapping_offset(j as isize * p.c_cols).write(zero) };
        }
    }
}

/// The memory of a batch.
struct Memory {
    scratch: Option<Scratch>,
    room: Room,
    /// Bytes of one product.
    each: usize,
}

impl Memory {
    fn start(&mut self) -> *mut u8 {
        self.scratch.as_mut().map_or(std::ptr::null_mut(), Scratch::pointer)
    }
}

/// Multiplications that a thread should find in one piece of a batch.
const PIECE: usize = 1 << 18;

/// Computes all products of a batch, or none if there is no memory for it.
///
/// # Safety
/// The contract of `batched`; the family's level is available.
pub(super) unsafe fn products<F: Family>(
    parallel: &dyn Parallel,
    batch: &Batch<'_, F::Store>,
    unit: Unit<F>,
) -> Result<()> {
    if let ([offset], None) = (batch.offsets, unit)
        && matrix::is_plain::<F>(&batch.product)
    {
        // SAFETY: the same contract.
        unsafe { matrix::at_once::<F>(&moved(batch.product, *offset)) };
        return Ok(());
    }
    if tiny::serves(&batch.product) {
        // SAFETY: the same contract. No unit takes products of this size.
        unsafe { tiny::products::<F>(parallel, &batch.product, batch.offsets) };
        return Ok(());
    }
    let Batch { product: Product { m, n, k, .. }, offsets } = *batch;
    let threads = parallel.threads();
    let work = m.saturating_mul(n).saturating_mul(k).max(1);
    let count = offsets.len();
    let inside = count == 1
        || threads > 1
            && work >= 4 * PIECE
            && count < 4 * threads
            && !count.is_multiple_of(threads);
    if inside {
        let mut plan = Plan::<F>::new(batch, threads, unit);
        let mut memory = plan.reserve(1)?;
        let area = Area::new(memory.start(), memory.room, threads);
        for offset in offsets {
            // SAFETY: the same contract.
            unsafe { plan.run(parallel, *offset, &area) };
        }
        return Ok(());
    }
    let alone = threads == 1 || work.saturating_mul(count) < PIECE;
    let at_once = if alone { 1 } else { threads };
    let mut plan = Plan::<F>::new(batch, 1, unit);
    let mut memory = plan.reserve(at_once)?;
    let slots = Slots::new(memory.start(), memory.each, at_once);
    let each = PIECE.div_ceil(work).min(count.div_ceil(4 * threads)).max(1);
    let pieces = count.div_ceil(each);
    let plain = unit.is_none() && matrix::is_plain::<F>(&batch.product);
    let plan = SharedPlan(&plan);
    let piece = |index: usize| {
        slots.with(|slot| {
            let area = Area::new(slot, memory.room, 1);
            for offset in offsets.iter().skip(index * each).take(each) {
                // SAFETY: the same contract; products do not share elements of C.
                unsafe {
                    if plain {
                        matrix::at_once::<F>(&moved(plan.get().product, *offset));
                    } else {
                        plan.get().run(&Serial, *offset, &area);
                    }
                }
            }
        });
    };
    if alone {
        (0..pieces).for_each(piece);
    } else {
        parallel.run(pieces, &piece);
    }
    Ok(())
}

/// A plan that threads read.
struct SharedPlan<'a, F: Family>(&'a Plan<F>);

impl<F: Family> SharedPlan<'_, F> {
    fn get(&self) -> &Plan<F> {
        self.0
    }
}

// SAFETY: a plan is addresses and numbers; see `Product`.
unsafe impl<F: Family> Sync for SharedPlan<'_, F> {}
