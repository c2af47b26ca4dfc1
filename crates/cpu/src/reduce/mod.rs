//! Reductions: any fold of the table, any dtype, any layout, any axes.
//!
//! `table.rs` holds the kernels as data, `drive.rs` cuts an input into pieces, walks them and
//! merges what they give; the other files are kernels. Work is cut by size alone and partial
//! results are merged in order, so that results have the same bits whatever the thread count.
//!
//! May assume what the contract promises of a [`Reduce`]: the output has the shape of the kept axes
//! and overlaps nothing. Called by the backend.

mod arg;
mod body;
mod define;
pub(crate) mod drive;
mod halves;
mod lanes;
mod moments;
pub(crate) mod pack;
mod pairwise;
mod states;
pub(crate) mod table;

use std::mem::MaybeUninit;
use std::ops::Range;

use tilework_backend::{Reduce, Session};
use tilework_error::{Error, Result};
use tilework_layout::LoopNest;
use tilework_ops::Scalar;

use self::pack::Loader;
use self::table::{Cell, Columns, MAX_RUN, MAX_STATE, Rows};
use crate::isa::Isa;

/// Results that are finished together.
const GROUP: usize = 256;

/// Does what the request says.
pub(crate) fn run(session: &Session<'_>, request: &Reduce<'_>) -> Result<()> {
    let dtype = request.input.dtype();
    let cell = table::lookup(request.fold, dtype).ok_or_else(|| {
        let name = request.fold.row().name;
        Error::dtype(name, format!("{name} has no meaning for {dtype}"))
    })?;
    let isa = Isa::current();
    let loader = Loader::new(dtype);
    let layout = request.input.layout();
    let src = request.input.pointer(session);
    let out = Output {
        base: request.output.pointer(session),
        dtype: request.output.dtype(),
        cell,
        correction: request.correction,
    };

    // Little work in place: most calls are of this kind, and loop nests would cost more than they do.
    // What hardly exceeds a run is not worth sharing either (see `pool::for_ranges`).
    let len = layout.len();
    let most = if request.output.layout().len() == 1 { MAX_RUN + MAX_RUN / 2 - 1 } else { MAX_RUN };
    if (1..=most).contains(&len) && !loader.widens && layout.is_contiguous() {
        let kept = layout.ndim() - request.axes.len();
        let trailing = request.axes.iter().enumerate().all(|(i, &axis)| axis == kept + i);
        let leading = request.axes.iter().enumerate().all(|(i, &axis)| axis == i);
        let results: usize = request.output.layout().len();
        let count = len / results;
        let fits = results <= GROUP && request.output.layout().is_contiguous();
        if fits && (trailing || leading && count <= cell.rows) {
            let mut states = [const { MaybeUninit::<[u128; 2]>::uninit() }; GROUP];
            const { assert!(MAX_STATE == size_of::<[u128; 2]>()) };
            let states = states.as_mut_ptr().cast::<u8>();
            // SAFETY: the elements are those of the input's view, which lie in its block one after
            // another, and the session holds its guard (storage invariants 1 to 3); there is room
            // for as many states as results, which are the elements of the output's view.
            unsafe {
                let src = src.add(layout.offset() * loader.size);
                if trailing {
                    let (stride, run) = (count.cast_signed(), count.min(MAX_RUN));
                    let rows = Rows { src, len: run, rows: results, stride, index: 0 };
                    cell.inner[isa as usize](&rows, states);
                    if run < count {
                        let (src, index) = (src.add(run * loader.size), run as i64);
                        let rest = Rows { src, len: count - run, rows: 1, stride, index };
                        let after = states.add(cell.state);
                        cell.inner[isa as usize](&rest, after);
                        (cell.merge)(1, states, after);
                    }
                } else {
                    let stride = results.cast_signed();
                    let columns = Columns { src, columns: results, rows: count, stride, index: 0 };
                    cell.outer[isa as usize](&columns, states);
                }
                out.write(results, states, count, request.output.layout().offset(), 1);
            }
            return Ok(());
        }
    }
    drive::run(isa, loader, src, &out, request)
}

/// [`LoopNest::for_each_piece`], compiled once: it is not small.
pub(crate) fn each_piece(nest: &LoopNest, range: Range<usize>, f: &mut dyn FnMut(&[usize], usize)) {
    nest.for_each_piece(range, f);
}

/// Where results go.
struct Output {
    base: *mut u8,
    dtype: tilework_ops::DType,
    cell: &'static Cell,
    correction: f64,
}

// SAFETY: the block behind `base` is written by the threads of one request only, each its own
// elements, while the session that holds its guard waits for them (storage invariant 3).
unsafe impl Sync for Output {}

impl Output {
    /// Finishes `n` states of `count` elements each and writes the results, `stride` elements apart
    /// from element `position` of the block on.
    ///
    /// # Safety
    /// These elements are of the output's view, and nobody else writes them; there are `n` states.
    unsafe fn write(
        &self,
        n: usize,
        states: *const u8,
        count: usize,
        position: usize,
        stride: isize,
    ) {
        /// Results that are on their way.
        const PIECE: usize = 64;
        let (cell, size) = (self.cell, self.dtype.size());
        // SAFETY: the caller's promise; a result of the cell has at most 16 bytes.
        unsafe {
            let to = self.base.add(position * size);
            if cell.gives == self.dtype && (stride == 1 || n == 1) {
                (cell.finish)(n, states, count, self.correction, to);
                return;
            }
            let mut results = [MaybeUninit::<u128>::uninit(); PIECE];
            let results = results.as_mut_ptr().cast::<u8>();
            let wide = cell.gives.size();
            let mut done = 0;
            while done < n {
                let len = PIECE.min(n - done);
                let states = states.add(done * cell.state);
                (cell.finish)(len, states, count, self.correction, results);
                for i in 0..len {
                    let bytes = std::slice::from_raw_parts(results.add(i * wide), wide);
                    let result = Scalar::from_bytes(cell.gives, bytes).cast(self.dtype);
                    let step = (done + i).cast_signed() * stride * size.cast_signed();
                    let to = to.offset(step);
                    std::ptr::copy_nonoverlapping(result.bytes().as_ptr(), to, size);
                }
                done += len;
            }
        }
    }
}
