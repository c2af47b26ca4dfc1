//! Sorting along an axis, and searching in what is sorted.
//!
//! `key.rs` maps elements to unsigned integers; `line.rs` sorts one line by them, stably, and
//! `indices.rs` the indices of one, with `runs.rs` where it is almost in order, else `quick.rs` or
//! `radix.rs`; `count.rs` is for elements of one or two bytes, `few.rs` for few different ones,
//! `bytes.rs` for the indices of those, `short.rs` for many lines of a few elements. Here lines of any layout are shared out, after all memory that they need is there. May
//! assume what the contract promises of a [`Sort`] and a [`Search`]. Called by the backend.

mod bytes;
mod count;
mod few;
mod indices;
mod key;
mod line;
mod quick;
mod radix;
mod runs;
mod short;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use tilework_backend::{Search, Session, Sort};
use tilework_error::Result;
use tilework_layout::{Dims, Layout, LoopNest, Strides};
use tilework_ops::{Element, with_element};

use self::key::{Bits, Key};
use self::line::Line;
use self::short::{Lines, Network};
use crate::pool;
use crate::reduce::each_piece;
use crate::scratch::Scratch;

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
        let network = Network::of_lines(nest.len(), len);
        let network = network.as_ref();
        // SAFETY: lines belong to the views of the request, under the guards of the session (storage
        // invariants 1 to 3); each is read and written by its own call only.
        let sources = |from, count| unsafe {
            Lines::new(Row::new(src.at(from), steps[0], len), nest.inner_strides()[0], count)
        };
        if request.indices {
            let out = Block(out.cast::<i64>());
            let room = indices::room::<T>(len);
            each_line(&nest, len, network.is_some(), room, &|work, at, count| {
                // SAFETY: as above.
                let to = unsafe {
                    Lines::new(Row::new(out.at(at[1]), steps[1], len), nest.inner_strides()[1], count)
                };
                let from = sources(at[0], count);
                if !network.is_some_and(|net| short::argsort::<T>(net, from, to, flip, work)) {
                    let work = &mut work[..room];
                    for i in 0..count {
                        indices::argsort::<T>(from.line(i), flip, work, to.line(i));
                    }
                }
            })
        } else {
            let out = Block(out.cast::<<T as Element>::Raw>());
            let room = <T as Line>::room(len);
            each_line(&nest, len, network.is_some(), room, &|work, at, count| {
                // SAFETY: as above.
                let to = unsafe {
                    Lines::new(Row::new(out.at(at[1]), steps[1], len), nest.inner_strides()[1], count)
                };
                let from = sources(at[0], count);
                if !network.is_some_and(|net| <T as Line>::sort_short(net, from, to, flip, work)) {
                    let work = &mut work[..room];
                    for i in 0..count {
                        <T as Line>::sort(from.line(i), to.line(i), flip, work);
                    }
                }
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

/// Takes scratch memory, the positions of the first elements of a line, and how many lines there are.
type LinesFn<'a> = dyn Fn(&mut [u8], [usize; 2], usize) + Sync + 'a;

/// Calls `f` with scratch memory, at least `room` bytes, the positions of the first elements of a line
/// and how many lines follow each other from there: one, or if they are `short` up to
/// [`short::COLUMNS`]. On any thread; all memory is had before the first call.
fn each_line(nest: &LoopNest, len: usize, short: bool, room: usize, f: &LinesFn<'_>) -> Result<()> {
    let steps = nest.inner_strides();
    let lines = nest.len();
    let most = if short { short::COLUMNS } else { 1 };
    let room = if short { room.max(short::room(len)) } else { room };
    // Twice as many groups as threads: a late thread holds up less, and memory stays small.
    let per_piece = (PIECE / len.max(1)).max(1).next_multiple_of(most);
    let groups = lines.div_ceil(per_piece).min(2 * pool::threads());
    let scratch: Vec<Mutex<Scratch>> =
        (0..groups).map(|_| Scratch::new("sort", room).map(Mutex::new)).collect::<Result<_>>()?;
    pool::run(groups, &|group| {
        let mut scratch = scratch[group].lock().unwrap_or_else(PoisonError::into_inner);
        each_piece(nest, lines * group / groups..lines * (group + 1) / groups, &mut |at, n| {
            for line in (0..n).step_by(most) {
                if line % per_piece == 0 {
                    pool::check();
                }
                let first = line.cast_signed();
                let first = [0, 1].map(|i| at[i].wrapping_add_signed(first * steps[i]));
                f(scratch.bytes(), first, most.min(n - line));
            }
        });
    });
    Ok(())
}

/// Some elements of a row.
enum Places<'a> {
    /// All of a range.
    All(Range<usize>),
    /// Those at these places.
    These(&'a [usize]),
}

impl From<Range<usize>> for Places<'_> {
    fn from(range: Range<usize>) -> Self {
        Places::All(range)
    }
}

/// Elements at a constant step, for several threads.
#[derive(Clone, Copy)]
struct Row<R> {
    start: Block<R>,
    step: isize,
    len: usize,
}

impl<R: Copy> Row<R> {
    /// `len` elements from `start` on.
    ///
    /// # Safety
    /// They may be read, or written, for as long as the row is used; pieces of work that write
    /// write different ones.
    unsafe fn new(start: *mut R, step: isize, len: usize) -> Row<R> {
        Row { start: Block(start), step, len }
    }

    fn len(self) -> usize {
        self.len
    }

    /// The address of an element.
    #[inline(always)]
    fn at(self, i: usize) -> *mut R {
        assert!(i < self.len);
        self.start.0.wrapping_offset(i.cast_signed() * self.step)
    }

    /// Some of the elements, if they are contiguous.
    fn slice(&self, range: Range<usize>) -> Option<&[R]> {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the promise of `new`.
        let slice = |at| unsafe { std::slice::from_raw_parts(at, range.len()) };
        (self.step == 1).then(|| slice(self.start.at(range.start)))
    }

    /// Writes `f` of each of `from` to the elements of a range, which are as many.
    #[inline(always)]
    fn fill_from<A: Copy>(self, range: Range<usize>, from: &[A], f: impl Fn(A) -> R) {
        assert!(range.end <= self.len && from.len() == range.len());
        if self.step == 1 {
            let at = self.start.at(range.start);
            // SAFETY: the promise of `new`.
            let to = unsafe { std::slice::from_raw_parts_mut(at, range.len()) };
            for (to, &x) in to.iter_mut().zip(from) {
                *to = f(x);
            }
        } else {
            for (i, &x) in range.zip(from) {
                self.put(i, f(x));
            }
        }
    }

    /// Writes `f` of its place to each element.
    fn set_all(self, f: impl Fn(usize) -> R) {
        if self.step == 1 {
            // SAFETY: the promise of `new`.
            let to = unsafe { std::slice::from_raw_parts_mut(self.start.at(0), self.len) };
            to.iter_mut().enumerate().for_each(|(i, to)| *to = f(i));
        } else {
            (0..self.len).for_each(|i| self.put(i, f(i)));
        }
    }

    /// Makes `f` of the places and values of some elements.
    #[inline(always)]
    fn each_of<B>(self, places: Places<'_>, to: &mut [B], f: impl Fn(usize, R) -> B) {
        let range = match places {
            Places::All(range) => range,
            Places::These(places) => {
                for (to, &i) in to.iter_mut().zip(places) {
                    *to = f(i, self.get(i));
                }
                return;
            }
        };
        if let Some(elements) = self.slice(range.clone()) {
            for ((to, &x), i) in to.iter_mut().zip(elements).zip(range) {
                *to = f(i, x);
            }
        } else {
            for (to, i) in to.iter_mut().zip(range) {
                *to = f(i, self.get(i));
            }
        }
    }

    /// Writes a value to the elements of a range.
    #[inline(always)]
    fn fill(self, range: Range<usize>, value: R) {
        // So few that what is good for many takes longer to begin.
        const FEW: usize = 16;
        assert!(range.end <= self.len);
        if self.step == 1 && range.len() > FEW {
            let at = self.start.at(range.start);
            // SAFETY: the promise of `new`.
            unsafe { std::slice::from_raw_parts_mut(at, range.len()) }.fill(value);
        } else {
            range.for_each(|i| self.put(i, value));
        }
    }

    /// Writes a value to the elements of a range, which may be empty, and maybe to some behind it, before
    /// `stop`: a few at once take no branch that could be mispredicted.
    #[inline(always)]
    fn fill_within(self, range: Range<usize>, stop: usize, value: R) {
        const AT_ONCE: usize = 8;
        assert!(range.end <= stop && stop <= self.len);
        if self.step == 1 && range.start + AT_ONCE <= stop {
            let at = self.start.at(range.start).cast::<[R; AT_ONCE]>();
            // SAFETY: the promise of `new`, of elements before the end.
            unsafe { at.write_unaligned([value; AT_ONCE]) };
            if range.len() > AT_ONCE {
                self.fill(range.start + AT_ONCE..range.end, value);
            }
        } else {
            range.for_each(|i| self.put(i, value));
        }
    }

    /// How many elements something holds of, of which it holds of the first ones.
    fn partition_point(self, holds: impl Fn(R) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            if holds(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    #[inline(always)]
    fn get(self, i: usize) -> R {
        // SAFETY: the promise of `new`.
        unsafe { *self.at(i) }
    }

    #[inline(always)]
    fn put(self, i: usize, value: R) {
        // SAFETY: the promise of `new`.
        unsafe { *self.at(i) = value }
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
