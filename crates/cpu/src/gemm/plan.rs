//! What is decided once per call: which way round, and by which path.
//!
//! A product is turned (C^T = B^T A^T) or mirrored until C's rows are contiguous where that is
//! possible and short sides lie where their paths want them; then one of the paths is chosen, from
//! shape, strides and family alone. A batch decides once for all its products. Called by
//! `element`, calls `matrix` and `vector`.

use super::blocking::{Blocking, CacheSizes, Shape};
use super::family::{Elem, Family};
use super::lanes::Lanes;
use super::{Parallel, Product, Serial, matrix, vector};

/// A way to compute a product.
#[derive(Clone, Copy)]
enum Path {
    /// C has no elements.
    Nothing,
    /// Sums of no terms.
    Zeros,
    /// One row of A against contiguous columns of B.
    Dots,
    /// Few rows of A against contiguous rows of B.
    Rows,
    /// The loops around the micro-kernel.
    Matrix(Blocking),
}

/// A product as it will be computed.
struct Plan<F: Family> {
    product: Product<F::Store>,
    /// Whether A and B have changed places.
    turned: bool,
    path: Path,
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
    fn new(product: &Product<F::Store>, threads: usize) -> Plan<F> {
        let mut p = *product;
        let mut turned = false;
        if p.m == 0 || p.n == 0 {
            return Plan { product: p, turned, path: Path::Nothing };
        }
        if p.k == 0 {
            return Plan { product: p, turned, path: Path::Zeros };
        }
        settle_strides(&mut p);
        let other = turn(&p);
        // The side for few rows: A if it is short, B if that is.
        let few = |p: &Product<F::Store>| p.m <= vector::most_rows::<F>() && p.b_cols == 1;
        let single = |p: &Product<F::Store>| p.m == 1 && (p.b_rows == 1 || p.n == 1);
        let (path, swap) = if single(&p) {
            (Some(Path::Dots), false)
        } else if single(&other) {
            (Some(Path::Dots), true)
        } else if few(&p) && p.m <= p.n {
            (Some(Path::Rows), false)
        } else if few(&other) && other.m <= other.n {
            (Some(Path::Rows), true)
        } else {
            (None, false)
        };
        if let Some(path) = path {
            return Plan { product: if swap { other } else { p }, turned: swap, path };
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
        Plan { product: p, turned, path: Path::Matrix(blocking) }
    }

    /// Runs the plan with the addresses moved by some elements.
    ///
    /// # Safety
    /// The contract of `gemm`, for the moved addresses.
    unsafe fn run(&self, parallel: &dyn Parallel, offsets: (isize, isize, isize)) {
        let (a, b) = if self.turned { (offsets.1, offsets.0) } else { (offsets.0, offsets.1) };
        let mut p = self.product;
        p.a = p.a.wrapping_offset(a);
        p.b = p.b.wrapping_offset(b);
        p.c = p.c.wrapping_offset(offsets.2);
        // SAFETY: the caller's contract; turning and mirroring keep every address what it was.
        unsafe {
            match &self.path {
                Path::Nothing => {}
                Path::Zeros => zeros::<F>(&p),
                Path::Dots => vector::dots::<F>(parallel, &p),
                Path::Rows => vector::rows::<F>(parallel, &p),
                Path::Matrix(blocking) => {
                    if !F::by_tiles(parallel, &p) {
                        matrix::product::<F>(parallel, &p, blocking);
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

/// Multiplications that a thread should find in one piece of a batch.
const PIECE: usize = 1 << 18;

/// Computes all products of a batch.
///
/// # Safety
/// The contract of `batched`; the family's level is available.
pub(super) unsafe fn products<F: Family>(
    parallel: &dyn Parallel,
    product: &Product<F::Store>,
    offsets: &[(isize, isize, isize)],
) {
    let threads = parallel.threads();
    if let [offset] = offsets {
        // SAFETY: the same contract.
        return unsafe { Plan::<F>::new(product, threads).run(parallel, *offset) };
    }
    let work = product.m.saturating_mul(product.n).saturating_mul(product.k).max(1);
    let count = offsets.len();
    let inside =
        threads > 1 && work >= 4 * PIECE && count < 4 * threads && !count.is_multiple_of(threads);
    if inside {
        let plan = Plan::<F>::new(product, threads);
        for offset in offsets {
            // SAFETY: the same contract.
            unsafe { plan.run(parallel, *offset) };
        }
        return;
    }
    let plan = Plan::<F>::new(product, 1);
    let each = PIECE.div_ceil(work).min(count.div_ceil(4 * threads)).max(1);
    let pieces = count.div_ceil(each);
    let plan = SharedPlan(&plan);
    let piece = |index: usize| {
        for offset in offsets.iter().skip(index * each).take(each) {
            // SAFETY: the same contract; products do not share elements of C.
            unsafe { plan.get().run(&Serial, *offset) };
        }
    };
    if threads == 1 || work.saturating_mul(count) < PIECE {
        (0..pieces).for_each(piece);
    } else {
        parallel.run(pieces, &piece);
    }
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
