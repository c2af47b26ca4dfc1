//! Sums on their way into C: the last step of every path.
//!
//! Each element is rounded once, here, and added to what C held if that is asked for. Called by
//! `matrix`, `vector` and `tiles`.

use super::Product;
use super::family::{Elem, Family};
use super::lanes::{Job, Lanes, Level};
use super::matrix::LevelOf;
use std::marker::PhantomData;

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

/// Writes complete sums to C.
///
/// # Safety
/// `sums` holds `m` rows of `n` at `pitch`; C may be written.
pub(super) unsafe fn finish<F: Family>(p: &Product<F::Store>, sums: *const Elem<F>, pitch: usize) {
    let args = FinishArgs::<F> {
        sums,
        pitch,
        height: p.m,
        width: p.n,
        c: p.c,
        c_rows: p.c_rows,
        c_cols: p.c_cols,
        accumulate: p.accumulate,
    };
    // SAFETY: the same contract.
    unsafe { LevelOf::<F>::enter::<Finish<F>>(&args) }
}
