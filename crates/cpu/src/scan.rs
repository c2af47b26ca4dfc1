//! Running reductions along one axis: each element becomes the result of all up to it.
//!
//! Two ways, as for reductions: along a line that is contiguous or nearly so, or across, where the
//! axis is walked outside and a row of states is updated together. Along, a line is cut into chunks
//! of fixed length: each chunk is scanned on its own and joined to the state of all chunks before
//! it. That keeps rounding errors small, and lets threads share a long line with the same bits as
//! one thread would get: they fold all chunks first, and scan when all states are known. A chunk that leaves the range of
//! its numbers by itself, at either end, where one number after the other need not, goes on from what is known there.
//!
//! May assume what the contract promises of a [`Scan`]. Called by the backend.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use tilework_backend::{Scan, Session};
use tilework_error::{Error, Result};
use tilework_layout::{Dims, Layout, LoopNest, Strides};
use tilework_ops::fold::{Accumulate, FOLD_COUNT, OverNothing};
use tilework_ops::{DType, Element, Entry, Fold, FoldColumn, Gives, Scalar, Value, fold_column};

use crate::map::moves;
use crate::pool;
use crate::reduce::each_piece;
use crate::reduce::pack::Loader;
use crate::reduce::table::{MAX_STATE, Source};
use crate::scratch::Scratch;

/// Elements that are scanned on their own, and that a buffer holds.
const CHUNK: usize = 256;

/// Elements of one piece of work.
const PIECE: usize = 1 << 16;

/// Lines from which on it is enough to share out whole lines.
const MANY_LINES: usize = 16;

/// Everything that is known about scanning with one fold on one dtype.
#[derive(Clone, Copy)]
struct Cell {
    init: unsafe fn(usize, *mut u8),
    /// `(into, from)`: one state followed by another.
    merge: unsafe fn(*mut u8, *const u8),
    /// `(n, loaded elements, state)`: the state of contiguous elements on their own, and whether it left the range.
    fold: unsafe fn(usize, *const u8, *mut u8) -> bool,
    /// `(state)`: whether it is no number, whatever follows.
    is_nan: unsafe fn(*const u8) -> bool,
    /// `(n, loaded elements, state)`: the state after contiguous elements that follow those of `state`.
    follow: unsafe fn(usize, *const u8, *mut u8),
    /// `(n, loaded elements, state, results)`: the same with the results up to each of them.
    along: unsafe fn(usize, *const u8, *mut u8, *mut u8),
    /// `(n, loaded elements, states, results)`: one step of each of `n` states.
    across: unsafe fn(usize, *const u8, *mut u8, *mut u8),
    /// The dtype of results before they are cast to the output's.
    gives: DType,
}

type Row = [Option<Cell>; DType::COUNT];

struct Kernels;
struct At<F>(PhantomData<F>);

impl FoldColumn for Kernels {
    type Cell = Row;
    type At<F: Fold> = At<F>;
}

impl<F: Fold> Entry<Row> for At<F> {
    const VALUE: Row = {
        let mut row = [None; DType::COUNT];
        let mut i = 0;
        while i < DType::COUNT {
            row[i] = tilework_ops::with_element!(DType::ALL[i], T => cell::<F, T>());
            i += 1;
        }
        row
    };
}

static TABLE: [Row; FOLD_COUNT] = fold_column::<Kernels>();

const fn cell<F: Fold, S: Source>() -> Option<Cell> {
    // Other folds have no running form; their kernels would be dead weight.
    if F::ROW.running.is_none() || F::ROW.accumulates(S::DTYPE).is_none() {
        return None;
    }
    Some(match F::ROW.accumulate {
        Accumulate::Same => typed::<F, S::Loaded, S>(),
        Accumulate::Wide => typed::<F, S::Loaded, S::Wide>(),
        Accumulate::Inexact => typed::<F, S::Loaded, S::Inexact>(),
    })
}

const fn typed<F: Fold, L: Element, A: Source>() -> Cell {
    assert!(size_of::<F::State<A::V>>() <= MAX_STATE && align_of::<F::State<A::V>>() <= 16);
    Cell {
        init: init::<F, A>,
        merge: merge::<F, A>,
        fold: fold::<F, L, A>,
        is_nan: is_nan::<F, A>,
        follow: follow::<F, L, A>,
        along: along::<F, L, A>,
        across: across::<F, L, A>,
        gives: F::ROW.result(A::DTYPE),
    }
}

/// What a scan stores.
type Output<F, A> = <<F as Fold>::Gives as Gives>::In<A>;
type Raw<F, A> = <Output<F, A> as Element>::Raw;

#[inline(always)]
fn value<L: Element, A: Source>(raw: L::Raw) -> A::V {
    L::from_raw(raw).widen().cast::<A::Loaded>().widen()
}

#[inline(always)]
fn result<F: Fold, A: Element>(state: F::State<A::V>) -> Raw<F, A> {
    Output::<F, A>::narrow(F::finish(state, 1, 0.0)).to_raw()
}

unsafe fn init<F: Fold, A: Element>(n: usize, states: *mut u8) {
    let states = states.cast::<F::State<A::V>>();
    for i in 0..n {
        // SAFETY: the caller has room for `n` states.
        unsafe { states.add(i).write(F::init::<A::V>()) };
    }
}

unsafe fn merge<F: Fold, A: Element>(into: *mut u8, from: *const u8) {
    let (into, from) = (into.cast::<F::State<A::V>>(), from.cast::<F::State<A::V>>());
    // SAFETY: the caller has a state at both places.
    unsafe { into.write(F::merge(into.read(), from.read())) };
}

unsafe fn fold<F: Fold, L: Element, A: Source>(n: usize, src: *const u8, state: *mut u8) -> bool {
    // SAFETY: the caller has `n` loaded elements and a state.
    unsafe {
        let (folded, strays) = alone::<F, L, A>(n, src, |_, _| {});
        state.cast::<F::State<A::V>>().write(folded);
        strays
    }
}

/// Gives the state after each of `n` loaded elements on their own; the last one, and whether any left the range.
///
/// # Safety
/// There are so many elements.
#[inline(always)]
unsafe fn alone<F: Fold, L: Element, A: Source>(
    n: usize,
    src: *const u8,
    mut give: impl FnMut(usize, F::State<A::V>),
) -> (F::State<A::V>, bool) {
    let src = src.cast::<L::Raw>();
    let (mut running, mut strays) = (F::init(), false);
    for i in 0..n {
        // SAFETY: the caller's promise.
        let number = value::<L, A>(unsafe { *src.add(i) });
        let next = F::step(running, number, 0);
        strays |= vanishes::<F, A>(running, number, next);
        running = next;
        give(i, running);
    }
    // What is infinite or no number stays so.
    (running, strays || is_beyond::<F, A>(running))
}

unsafe fn is_nan<F: Fold, A: Element>(state: *const u8) -> bool {
    // SAFETY: the caller has a state there.
    F::finish(unsafe { *state.cast::<F::State<A::V>>() }, 1, 0.0).is_nan()
}

/// Whether a state is infinite or no number. The largest and the least are one of the numbers, and are not asked.
#[inline(always)]
fn is_beyond<F: Fold, A: Element>(state: F::State<A::V>) -> bool {
    A::DTYPE.is_inexact()
        && matches!(F::ROW.nothing, OverNothing::Neutral)
        && F::finish(state, 1, 0.0).times(Value::ZERO).is_nan()
}

/// Whether a product is where numbers lose digits or vanish, though neither factor is zero. Sums lose nothing there.
#[inline(always)]
fn vanishes<F: Fold, A: Element>(
    before: F::State<A::V>,
    number: A::V,
    next: F::State<A::V>,
) -> bool {
    if !A::DTYPE.is_inexact() || !matches!(F::ROW.name.as_bytes(), b"prod") {
        return false;
    }
    let [before, next] = [before, next].map(|state| F::finish(state, 1, 0.0));
    let rounds = if A::DTYPE.part() == DType::Float64 { -53 } else { -24 };
    let small = !next.times(Value::of_f64(f64::powi(2.0, rounds))).is_true();
    small & before.is_true() & number.is_true()
}

unsafe fn follow<F: Fold, L: Element, A: Source>(n: usize, src: *const u8, state: *mut u8) {
    // SAFETY: the caller has `n` loaded elements and a state.
    unsafe { each::<F, L, A>(n, src, state, |_, _| {}) };
}

unsafe fn along<F: Fold, L: Element, A: Source>(
    n: usize,
    src: *const u8,
    state: *mut u8,
    results: *mut u8,
) {
    let results = results.cast::<Raw<F, A>>();
    let (from, to) = (src.addr(), results.addr());
    let apart = from + n * size_of::<L::Raw>() <= to || to + n * size_of::<Raw<F, A>>() <= from;
    // SAFETY: the caller has `n` loaded elements, a state and room for `n` results.
    unsafe {
        let before = *state.cast::<F::State<A::V>>();
        let put = |i: usize, state| results.add(i).write(result::<F, A>(state));
        // What is written in place cannot be read again.
        if apart || !alone::<F, L, A>(n, src, |_, _| {}).1 {
            let (last, strays) =
                alone::<F, L, A>(n, src, |i, running| put(i, F::merge(before, running)));
            if !strays {
                state.cast::<F::State<A::V>>().write(F::merge(before, last));
                return;
            }
        }
        each::<F, L, A>(n, src, state, put);
    }
}

/// Gives the state after each of `n` loaded elements that follow those of `state`.
///
/// # Safety
/// There are so many elements, and a state.
#[inline(always)]
unsafe fn each<F: Fold, L: Element, A: Source>(
    n: usize,
    src: *const u8,
    state: *mut u8,
    mut give: impl FnMut(usize, F::State<A::V>),
) {
    let (src, state) = (src.cast::<L::Raw>(), state.cast::<F::State<A::V>>());
    // SAFETY: the caller's promise.
    unsafe {
        let (mut before, mut running) = (*state, F::init());
        for i in 0..n {
            let number = value::<L, A>(*src.add(i));
            let mut next = F::step(running, number, 0);
            if is_beyond::<F, A>(next) || vanishes::<F, A>(running, number, next) {
                before = F::merge(before, running);
                next = F::step(F::init(), number, 0);
            }
            running = next;
            give(i, F::merge(before, running));
        }
        state.write(F::merge(before, running));
    }
}

unsafe fn across<F: Fold, L: Element, A: Source>(
    n: usize,
    src: *const u8,
    states: *mut u8,
    results: *mut u8,
) {
    let (src, results) = (src.cast::<L::Raw>(), results.cast::<Raw<F, A>>());
    let states = states.cast::<F::State<A::V>>();
    for i in 0..n {
        // SAFETY: the caller has `n` loaded elements, `n` states and room for `n` results.
        unsafe {
            let state = F::step(*states.add(i), value::<L, A>(*src.add(i)), 0);
            states.add(i).write(state);
            results.add(i).write(result::<F, A>(state));
        }
    }
}

/// A scan with everything that its pieces share.
struct Job {
    cell: Cell,
    loader: Loader,
    src: *const u8,
    out: *mut u8,
    dtype: DType,
    /// All axes but the scanned one: operand 0 is the input, operand 1 the output.
    lines: LoopNest,
    /// The scanned axis.
    len: usize,
    /// Steps along it, of input and output.
    steps: [isize; 2],
}

// SAFETY: the input is only read and each piece writes elements of its own, under the guards of the
// session that waits for all pieces (storage invariant 3).
unsafe impl Sync for Job {}

/// Does what the request says.
pub(crate) fn run(session: &Session<'_>, request: &Scan<'_>) -> Result<()> {
    let dtype = request.input.dtype();
    let cell = TABLE[request.fold as usize][dtype as usize].ok_or_else(|| {
        let name = request.fold.row().name;
        Error::dtype(name, format!("{name} of {dtype} has no running form"))
    })?;
    let (input, output) = (request.input.layout(), request.output.layout());
    if input.is_empty() {
        return Ok(());
    }
    let (others, step) = without(input, request.axis)?;
    let (results, result_step) = without(output, request.axis)?;
    let job = Job {
        cell,
        loader: Loader::new(dtype),
        src: request.input.pointer(session),
        out: request.output.pointer(session),
        dtype: request.output.dtype(),
        lines: LoopNest::new(&[&others, &results]),
        len: input.shape()[request.axis],
        steps: [step, result_step],
    };
    job.run(request.fold.row().name)
}

/// The layout without one axis, and the step along that axis.
fn without(layout: &Layout, axis: usize) -> Result<(Layout, isize)> {
    let mut shape = Dims::from_slice(layout.shape());
    let mut strides = Strides::from_slice(layout.strides());
    shape.remove(axis);
    let step = strides.remove(axis);
    Ok((Layout::new(&shape, &strides, layout.offset())?, step))
}

#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct State {
    bytes: MaybeUninit<[u8; MAX_STATE]>,
    /// Of a chunk on its own: whether it left the range.
    strays: bool,
}

impl State {
    fn new(cell: &Cell) -> State {
        let mut state = State { bytes: MaybeUninit::uninit(), strays: false };
        // SAFETY: there is room for any state.
        unsafe { (cell.init)(1, state.pointer()) };
        state
    }

    fn pointer(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().cast()
    }
}

impl Job {
    fn run(&self, operation: &str) -> Result<()> {
        let (lines, len) = (self.lines.len(), self.len);
        let step = self.lines.inner_strides()[0].unsigned_abs();
        let width = self.lines.inner_len();
        if width >= 8 && step < self.steps[0].unsigned_abs() {
            // Neighbouring lines are closer to each other than the elements of one line.
            let blocks = width.div_ceil(CHUNK);
            let items = self.lines.outer_len() * blocks;
            let grain = (PIECE / (len * width.min(CHUNK))).max(1);
            pool::for_ranges(items, grain, &|range| {
                for item in range {
                    let first = item % blocks * CHUNK;
                    self.columns(item / blocks, first..width.min(first + CHUNK));
                }
            });
        } else if len <= 2 * PIECE || lines >= MANY_LINES || pool::threads() == 1 {
            pool::for_ranges(lines, (PIECE / len).max(1), &|range| {
                self.each_line(range, &mut |at| {
                    self.line(at, 0..len, State::new(&self.cell));
                });
            });
        } else {
            let chunks = len.div_ceil(CHUNK);
            let mut states = Scratch::new(operation, chunks * size_of::<State>())?;
            let states = Shared(states.pointer().cast());
            self.each_line(0..lines, &mut |at| self.long_line(at, states));
        }
        Ok(())
    }

    /// Calls `f` with the first positions of each line among `range`.
    fn each_line(&self, range: Range<usize>, f: &mut dyn FnMut([usize; 2])) {
        let steps = self.lines.inner_strides();
        each_piece(&self.lines, range, &mut |at, n| {
            for line in 0..n.cast_signed() {
                f([0, 1].map(|i| at[i].wrapping_add_signed(line * steps[i])));
            }
        });
    }

    /// The elements of a chunk of a line, in place or packed into `tile`.
    ///
    /// # Safety
    /// The chunk belongs to the input's view, and `tile` has room for it.
    unsafe fn chunk(&self, at: usize, first: usize, n: usize, tile: *mut u8) -> *const u8 {
        let at = at.wrapping_add_signed(first.cast_signed() * self.steps[0]);
        // SAFETY: elements of the input's view lie in its block, whose guard the session holds
        // (storage invariants 1 to 3).
        unsafe {
            let src = self.src.add(at * self.loader.size);
            if self.steps[0] == 1 && !self.loader.widens {
                return src;
            }
            self.loader.pack(n, src, self.steps[0], tile);
        }
        tile
    }

    /// Scans `range` of the line whose first elements are `at`, from `state` on.
    fn line(&self, at: [usize; 2], range: Range<usize>, mut state: State) {
        let mut tile = [MaybeUninit::<u128>::uninit(); CHUNK];
        let tile = tile.as_mut_ptr().cast::<u8>();
        let mut first = range.start;
        while first < range.end {
            let n = CHUNK.min(range.end - first);
            // SAFETY: the range lies in the line, so that its elements are of the views.
            unsafe {
                let src = self.chunk(at[0], first, n, tile);
                let to = at[1].wrapping_add_signed(first.cast_signed() * self.steps[1]);
                self.write(n, to, self.steps[1], |results| {
                    (self.cell.along)(n, src, state.pointer(), results);
                });
            }
            first += n;
        }
    }

    /// Scans one long line by several threads: folds all chunks, joins their states in order, scans
    /// all chunks. The bits are those of [`Job::line`], which does the same in one go. There is room
    /// for a state of each chunk.
    fn long_line(&self, at: [usize; 2], shared: Shared) {
        let chunks = self.len.div_ceil(CHUNK);
        pool::for_ranges(chunks, PIECE / CHUNK, &|range| {
            let mut tile = [MaybeUninit::<u128>::uninit(); CHUNK];
            let tile = tile.as_mut_ptr().cast::<u8>();
            for chunk in range {
                let first = chunk * CHUNK;
                let n = CHUNK.min(self.len - first);
                // SAFETY: the chunk lies in the line, so that its elements are of the view; there is
                // a state for each chunk, and only this piece uses this one.
                unsafe {
                    let src = self.chunk(at[0], first, n, tile);
                    let state = shared.at(chunk);
                    let strays = (self.cell.fold)(n, src, state.cast());
                    (&raw mut (*state).strays).write(strays);
                }
            }
        });
        let mut before = State::new(&self.cell);
        let mut tile = [MaybeUninit::<u128>::uninit(); CHUNK];
        let tile = tile.as_mut_ptr().cast::<u8>();
        for chunk in 0..chunks {
            // SAFETY: all states have been written, and no other piece is at work.
            let state = unsafe { &mut *shared.at(chunk) };
            let mut after = before;
            // SAFETY: as above; the chunk lies in the line, so that its elements are of the view.
            unsafe {
                // Few chunks do; after NaN all are alike.
                if state.strays && !(self.cell.is_nan)(before.pointer()) {
                    let first = chunk * CHUNK;
                    let n = CHUNK.min(self.len - first);
                    (self.cell.follow)(n, self.chunk(at[0], first, n, tile), after.pointer());
                } else {
                    (self.cell.merge)(after.pointer(), state.pointer());
                }
            }
            (*state, before) = (before, after);
        }
        pool::for_ranges(chunks, PIECE / CHUNK, &|range| {
            let elements = range.start * CHUNK..self.len.min(range.end * CHUNK);
            // SAFETY: the states are complete, and only read.
            self.line(at, elements, unsafe { *shared.at(range.start) });
        });
    }

    /// Scans neighbouring lines of one run together, row by row.
    fn columns(&self, run: usize, range: Range<usize>) {
        let n = range.len();
        let steps = self.lines.inner_strides();
        let mut tile = [MaybeUninit::<u128>::uninit(); CHUNK];
        let tile = tile.as_mut_ptr().cast::<u8>();
        let mut states = [const { MaybeUninit::<[u128; 2]>::uninit() }; CHUNK];
        const { assert!(MAX_STATE == size_of::<[u128; 2]>()) };
        let states = states.as_mut_ptr().cast::<u8>();
        // SAFETY: there is room for so many states.
        unsafe { (self.cell.init)(n, states) };
        self.lines.for_each_run(run..run + 1, |at| {
            for row in 0..self.len.cast_signed() {
                let [from, to] = [0, 1].map(|i| {
                    let first = range.start.cast_signed() * steps[i];
                    at[i].wrapping_add_signed(first + row * self.steps[i])
                });
                // SAFETY: the elements are of the input's view (storage invariants 1 to 3), tile
                // and states have room for as many, and no other piece writes these results.
                unsafe {
                    let mut src = self.src.add(from * self.loader.size);
                    if steps[0] != 1 || self.loader.widens {
                        self.loader.pack(n, src, steps[0], tile);
                        src = tile;
                    }
                    self.write(n, to, steps[1], |results| {
                        (self.cell.across)(n, src, states, results);
                    });
                }
            }
        });
    }

    /// Writes the `n` contiguous results that `fill` makes to the output from position `to` on.
    ///
    /// # Safety
    /// The elements are of the output's view and nobody else's; `n` is at most [`CHUNK`].
    unsafe fn write(&self, n: usize, to: usize, step: isize, fill: impl FnOnce(*mut u8)) {
        let size = self.dtype.size();
        // SAFETY: the caller's promise; elements of the view lie in its block, whose guard the
        // session holds (storage invariants 1 to 3).
        unsafe {
            let to = self.out.add(to * size);
            if step == 1 && self.cell.gives == self.dtype {
                fill(to);
                return;
            }
            let mut results = [MaybeUninit::<u128>::uninit(); CHUNK];
            let results = results.as_mut_ptr().cast::<u8>();
            fill(results);
            if self.cell.gives == self.dtype {
                moves::line(size, n, (to, step), (results, 1));
                return;
            }
            let wide = self.cell.gives.size();
            for i in 0..n {
                let bytes = std::slice::from_raw_parts(results.add(i * wide), wide);
                let result = Scalar::from_bytes(self.cell.gives, bytes).cast(self.dtype);
                let to = to.offset(i.cast_signed() * step * size.cast_signed());
                std::ptr::copy_nonoverlapping(result.bytes().as_ptr(), to, size);
            }
        }
    }
}

/// States that pieces fill, each its own.
#[derive(Clone, Copy)]
struct Shared(*mut State);

// SAFETY: each piece uses the state of its own block only, and the owner waits for all pieces.
unsafe impl Sync for Shared {}

impl Shared {
    fn at(self, block: usize) -> *mut State {
        self.0.wrapping_add(block)
    }
}
