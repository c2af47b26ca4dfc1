//! Sorting along an axis, and searching in what is sorted.
//!
//! `key.rs` maps elements to unsigned integers, `line.rs` sorts one contiguous line by them, stably;
//! here lines are gathered from any layout and shared out. May assume what the contract promises of
//! a [`Sort`] and a [`Search`]. Called by the backend.

mod key;
mod line;
mod radix;
mod scratch;

use std::ops::Range;
use std::sync::OnceLock;

use tilework_backend::{Search, Session, Sort};
use tilework_error::Result;
use tilework_layout::{Dims, Layout, LoopNest, Strides};
use tilework_ops::{Element, with_element};

use self::key::{Bits, Key};
use self::line::Line;
use self::scratch::Scratch;
use crate::pool;
use crate::reduce::drive::each_piece;

/// Elements of one piece of work when whole lines are shared out.
const PIECE: usize = 1 << 14;

/// Values of one piece of work of a search.
const SEARCH_PIECE: usize = 1 << 11;

/// Values that are searched for at the same time.
const TOGETHER: usize = 16;

/// Where elements of type `T` begin, for several threads.
struct Block<T>(*mut T);

impl<T> Clone for Block<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Block<T> {}

// SAFETY: inputs are only read, and pieces write elements of their own, under the guards of the
// session that waits for all pieces (storage invariant 3).
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Block<T> {}

impl<T> Block<T> {
    /// The address of an element.
    fn at(self, position: usize) -> *mut T {
        self.0.wrapping_add(position)
    }
}

/// Does what the request says.
pub(crate) fn run(session: &Session<'_>, request: &Sort<'_>) -> Result<()> {
    let (input, output) = (request.input.layout(), request.output.layout());
    if input.is_empty() {
        return Ok(());
    }
    if input.ndim() == 0 {
        let axis = input.expand_dims(0)?;
        let results = output.expand_dims(0)?;
        return lines(session, request, &axis, &results, 0);
    }
    lines(session, request, input, output, request.axis)
}

fn lines(
    session: &Session<'_>,
    request: &Sort<'_>,
    input: &Layout,
    output: &Layout,
    axis: usize,
) -> Result<()> {
    let (others, step) = without(input, axis)?;
    let (results, result_step) = without(output, axis)?;
    let nest = LoopNest::new(&[&others, &results]);
    let len = input.shape()[axis];
    let steps = [step, result_step];
    let src = request.input.pointer(session);
    let out = request.output.pointer(session);
    with_element!(request.input.dtype(), T => {
        let src = Block(src.cast::<<T as Element>::Raw>().cast_mut());
        let flip = if request.descending {
            <<T as Key>::Bits as Bits>::ONES
        } else {
            <<T as Key>::Bits as Bits>::ZERO
        };
        if request.indices {
            let out = Block(out.cast::<i64>());
            each_line(&nest, len, &|| Scratch::new::<<T as Line>::Pair>(len), &|scratch, from, to| {
                argsort_line::<T>(src, out, [from, to], steps, len, flip, scratch);
            })
        } else {
            let out = Block(out.cast::<<T as Element>::Raw>());
            each_line(&nest, len, &|| Scratch::new::<<T as Line>::Sorted>(len), &|scratch, from, to| {
                sort_line::<T>(src, out, [from, to], steps, len, flip, scratch);
            })
        }
    })
}

/// The layout without one axis, and the step along that axis.
fn without(layout: &Layout, axis: usize) -> Result<(Layout, isize)> {
    let mut shape = Dims::from_slice(layout.shape());
    let mut strides = Strides::from_slice(layout.strides());
    shape.remove(axis);
    let step = strides.remove(axis);
    Ok((Layout::new(&shape, &strides, layout.offset())?, step))
}

/// Calls `f` with scratch memory and the positions of the first elements of each line, on any
/// thread.
fn each_line(
    nest: &LoopNest,
    len: usize,
    scratch: &(dyn Fn() -> Result<Scratch> + Sync),
    f: &(dyn Fn(&mut Scratch, usize, usize) + Sync),
) -> Result<()> {
    let steps = nest.inner_strides();
    let failed = OnceLock::new();
    pool::for_ranges(nest.len(), (PIECE / len.max(1)).max(1), &|range: Range<usize>| {
        let mut scratch = match scratch() {
            Ok(scratch) => scratch,
            Err(error) => {
                _ = failed.set(error);
                return;
            }
        };
        each_piece(nest, range, &mut |at, n| {
            for line in 0..n.cast_signed() {
                let [from, to] = [0, 1].map(|i| at[i].wrapping_add_signed(line * steps[i]));
                f(&mut scratch, from, to);
            }
        });
    });
    failed.into_inner().map_or(Ok(()), Err)
}

/// Reads a line of `len` elements.
///
/// # Safety
/// The line belongs to the view that `src` is the block of.
unsafe fn gather<R: Copy>(src: Block<R>, from: usize, step: isize, len: usize) -> Vec<R> {
    // SAFETY: elements of a view lie in its block (storage invariant 1).
    unsafe {
        if step == 1 {
            return std::slice::from_raw_parts(src.at(from), len).to_vec();
        }
        (0..len.cast_signed()).map(|i| *src.at(from.wrapping_add_signed(i * step))).collect()
    }
}

/// Writes a line.
///
/// # Safety
/// The line belongs to the view that `out` is the block of, and nobody else writes it.
unsafe fn scatter<R: Copy>(out: Block<R>, to: usize, step: isize, line: &[R]) {
    for (i, &value) in line.iter().enumerate() {
        // SAFETY: elements of a view lie in its block (storage invariant 1).
        unsafe { *out.at(to.wrapping_add_signed(i.cast_signed() * step)) = value };
    }
}

fn sort_line<T: Line>(
    src: Block<T::Raw>,
    out: Block<T::Raw>,
    [from, to]: [usize; 2],
    steps: [isize; 2],
    len: usize,
    flip: T::Bits,
    scratch: &mut Scratch,
) {
    // SAFETY: the line belongs to the views of the request, and this call alone writes it.
    unsafe {
        if steps[1] == 1 {
            // The result's own memory serves as the line.
            let line = out.at(to);
            if steps[0] == 1 {
                std::ptr::copy_nonoverlapping(src.at(from), line, len);
            } else {
                for i in 0..len {
                    let element = src.at(from.wrapping_add_signed(i.cast_signed() * steps[0]));
                    *line.add(i) = *element;
                }
            }
            let line = std::slice::from_raw_parts_mut(line, len);
            T::sort(line, flip, scratch.rows(len));
            return;
        }
        let mut line = gather(src, from, steps[0], len);
        T::sort(&mut line, flip, scratch.rows(len));
        scatter(out, to, steps[1], &line);
    }
}

fn argsort_line<T: Line>(
    src: Block<T::Raw>,
    out: Block<i64>,
    [from, to]: [usize; 2],
    steps: [isize; 2],
    len: usize,
    flip: T::Bits,
    scratch: &mut Scratch,
) {
    // SAFETY: the line belongs to the views of the request, and this call alone writes it.
    unsafe {
        let packed;
        let keys = if steps[0] == 1 {
            std::slice::from_raw_parts(src.at(from), len)
        } else {
            packed = gather(src, from, steps[0], len);
            &packed
        };
        if steps[1] == 1 {
            let indices = std::slice::from_raw_parts_mut(out.at(to), len);
            line::argsort::<T>(keys, indices, flip, scratch.rows(len));
            return;
        }
        let mut indices = vec![0; len];
        line::argsort::<T>(keys, &mut indices, flip, scratch.rows(len));
        scatter(out, to, steps[1], &indices);
    }
}

/// Finds where values belong in a sorted line.
pub(crate) fn search(session: &Session<'_>, request: &Search<'_>) -> Result<()> {
    let sorted = request.sorted.layout();
    let len = sorted.len();
    let (start, step) = (sorted.offset(), sorted.strides().first().copied().unwrap_or(0));
    let nest = LoopNest::new(&[request.values.layout(), request.output.layout()]);
    let line = request.sorted.pointer(session);
    let values = request.values.pointer(session);
    let out = Block(request.output.pointer(session).cast::<i64>());
    let right = request.right;
    with_element!(request.values.dtype(), T => {
        let line = Block(line.cast::<<T as Element>::Raw>().cast_mut());
        let values = Block(values.cast::<<T as Element>::Raw>().cast_mut());
        each_run(&nest, &|at, steps, n| {
            let mut done = 0;
            while done < n {
                // The last group begins earlier if need be; a few values are then found twice.
                let first = if n < TOGETHER { 0 } else { done.min(n - TOGETHER) };
                let at = |k: usize, j: usize| {
                    let i = (first + j).min(n - 1).cast_signed();
                    at[k].wrapping_add_signed(i * steps[k])
                };
                // SAFETY: all elements are of the views of the request, whose guards the session
                // holds (storage invariants 1 to 3), and no other piece has these results.
                unsafe {
                    let values = std::array::from_fn(|j| *values.at(at(0, j)));
                    let places = places::<T>(line, start, step, len, values, right);
                    for (j, place) in places.into_iter().enumerate() {
                        *out.at(at(1, j)) = place as i64;
                    }
                }
                done = first + TOGETHER;
            }
        });
    });
    Ok(())
}

/// Takes first positions, steps and length of a run.
type RunFn<'a> = dyn Fn(&[usize], &[isize], usize) + Sync + 'a;

/// Calls `f` with first positions, steps and length of each run, on any thread.
fn each_run(nest: &LoopNest, f: &RunFn<'_>) {
    pool::for_ranges(nest.len(), SEARCH_PIECE, &|range: Range<usize>| {
        each_piece(nest, range, &mut |at, n| f(at, nest.inner_strides(), n));
    });
}

/// How many elements of the sorted line come before each value; equal ones too if `right`.
///
/// # Safety
/// The line belongs to the view that `line` is the block of.
#[inline(always)]
unsafe fn places<T: Key>(
    line: Block<T::Raw>,
    start: usize,
    step: isize,
    len: usize,
    values: [T::Raw; TOGETHER],
    right: bool,
) -> [usize; TOGETHER] {
    let ascending = <T::Bits as Bits>::ZERO;
    let wanted = values.map(|value| T::key(value, ascending));
    let (mut low, mut left) = ([0usize; TOGETHER], len);
    // All values halve together, without a branch that could be mispredicted: memory answers all of
    // them at once.
    while left > 0 {
        let half = left - left / 2;
        for (low, &wanted) in low.iter_mut().zip(&wanted) {
            let at = *low + half - 1;
            // SAFETY: `at` is below `len`, and elements of a view lie in its block (storage
            // invariant 1).
            let here = unsafe { *line.at(start.wrapping_add_signed(at.cast_signed() * step)) };
            let here = T::key(here, ascending);
            let before = (here < wanted) | (right & (here == wanted));
            *low = if before { at + 1 } else { *low };
        }
        left -= half;
    }
    low
}
