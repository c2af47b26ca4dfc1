//! Reductions over pairs: the tile interpreter.
//!
//! The walk of a call: [`run`] makes a `plan` (sections, tile sizes, places), cuts the work into
//! pieces (batches, blocks of i, and ranges of j where there are few i) and gives them to the pool.
//! A piece goes over blocks of j: variables of j are loaded and what depends on j alone is computed
//! once a block; then every tile of i meets it tile by tile (`tile`), and values are folded into
//! states (`fold`). States of ranges of j are merged in order. Cuts depend on sizes only, so
//! results are the same bits for any number of threads.

mod candidates;
mod fold;
mod lanes;
mod nearest;
mod plan;
mod products;
mod tile;

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tilework_backend::{Accumulator, PairReduce, Session, Target, interrupt};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_ops::{DType, Element, PairState, Scalar};
use tilework_tape::{Per, Tape};

use crate::isa::Isa;
use crate::map::moves;
use crate::pool;
use fold::{States, Values};
use lanes::Summed;
use nearest::Search;
use plan::{GIVEN, Plan};
use products::Number;
use tile::{BUFFERS, Frame};

/// Pieces that a call should have, so that no thread waits long for another.
const PIECES: usize = 64;

/// j in a range, at least: fewer are not worth a state of their own.
const RANGE: usize = 8192;

/// j in a range, at most: places in a range are 32 bits.
const LONG_RANGE: usize = 1 << 30;

/// Tiles of i that share the blocks of j of a piece.
const TILES: usize = 2;

/// Pairs that are not worth a second thread.
const FEW_PAIRS: usize = 1 << 14;

/// How often progress is told.
const TOLD_EVERY: Duration = Duration::from_millis(50);

/// Does what a `PairReduce` request asks.
pub(crate) fn run(session: &Session<'_>, request: &PairReduce<'_>) -> Result<()> {
    let source = |view: &tilework_backend::ViewRef<'_>| Source {
        base: view.pointer(session),
        layout: view.layout().clone(),
    };
    let sources = request.inputs.iter().map(source).collect();
    run_as(session, request, Operands { tape: request.tape, sources, fill: None })
}

/// Does what a request asks with another tape in place of its own.
fn run_as(session: &Session<'_>, request: &PairReduce<'_>, operands: Operands<'_>) -> Result<()> {
    match (request.computes(), request.accumulates()) {
        (DType::Float64, _) => Job::<f64, f64>::new(session, request, operands).run(),
        (_, DType::Float64) => Job::<f32, f64>::new(session, request, operands).run(),
        _ => Job::<f32, f32>::new(session, request, operands).run(),
    }
}

/// A tape and where its inputs come from.
struct Operands<'a> {
    tape: &'a Tape,
    /// One for each input; those given for every pair are not read.
    sources: Vec<Source>,
    /// Computes the inputs that are given for every pair.
    fill: Option<&'a (dyn Fn(&Given<'_>) + Sync)>,
}

/// What is to be written for an input that is given for every pair.
#[allow(dead_code, reason = "read by the forms that compute tiles beforehand")]
struct Given<'a> {
    /// Which input.
    input: usize,
    /// The batch.
    batch: &'a [usize],
    /// Rows of i.
    i: Range<usize>,
    /// Rows of j, from the first of the request on.
    j: Range<usize>,
    /// Where the numbers go: for each j a row of all i.
    to: *mut u8,
}

/// An input of the tape as an address.
struct Source {
    base: *const u8,
    layout: Layout,
}

/// An output as an address.
struct Sink<'a> {
    base: *mut u8,
    layout: &'a Layout,
    dtype: DType,
}

impl<'a> Sink<'a> {
    fn new(session: &Session<'_>, target: &Target<'a>) -> Sink<'a> {
        Sink { base: target.pointer(session), layout: target.layout(), dtype: target.dtype() }
    }

    /// Writes the numbers of one row.
    ///
    /// # Safety
    /// The session holds the block, and nobody else writes the row.
    unsafe fn write<T: Element>(&self, batch: &[usize], i: usize, numbers: &[T]) {
        let (strides, size) = (self.layout.strides(), self.dtype.size());
        let at = position(self.layout, batch) + i as isize * strides[batch.len()];
        for (c, number) in numbers.iter().enumerate() {
            let at = at + c as isize * strides[batch.len() + 1];
            let value = Scalar::new(*number).cast(self.dtype);
            // SAFETY: an index of the layout, which lies inside of the block (the invariant of
            // views).
            unsafe {
                let to = self.base.offset(at * size as isize);
                to.copy_from_nonoverlapping(value.bytes().as_ptr(), size);
            }
        }
    }
}

/// Where the batch of a layout begins, in elements; the layout's later axes have index 0.
fn position(layout: &Layout, batch: &[usize]) -> isize {
    let steps = batch.iter().zip(layout.strides()).map(|(&i, &stride)| i as isize * stride);
    layout.offset() as isize + steps.sum::<isize>()
}

/// A request, its plan, and how it is cut.
struct Job<'r, T, A> {
    request: &'r PairReduce<'r>,
    operands: Operands<'r>,
    plan: Plan<'r>,
    /// Set where it is one of the smallest distances.
    search: Option<Search<T>>,
    isa: Isa,
    values: Option<Sink<'r>>,
    indices: Option<Sink<'r>>,
    batch: &'r [usize],
    batches: usize,
    m: usize,
    /// i in a piece.
    block: usize,
    /// j in a piece.
    range: usize,
    stop: AtomicBool,
    done: AtomicU64,
    told: Mutex<Instant>,
    failed: Mutex<Option<Error>>,
    numbers: PhantomData<(T, A)>,
}

// SAFETY: a job is an address book. The session that it was made under outlives all work on it,
// and pieces of work write different rows.
unsafe impl<T, A> Sync for Job<'_, T, A> {}

impl<'r, T: Number + Summed<A>, A: Accumulator> Job<'r, T, A> {
    fn new(
        session: &Session<'_>,
        request: &'r PairReduce<'r>,
        operands: Operands<'r>,
    ) -> Job<'r, T, A> {
        let shape = request.output_shape();
        let (batch, m) = match shape {
            [batch @ .., m, _] => (batch, *m),
            _ => (&[][..], 0),
        };
        let n = request.n;
        let plan = Plan::new(operands.tape, m, n);
        let batches = batch.iter().product();
        let tiles = if plan.lanes == 1 { PIECES } else { TILES };
        let block = plan.lanes * tiles;
        let pieces = usize::max(1, batches * m.div_ceil(block));
        // Few i: ranges of j are pieces too, by size only.
        let ranges = (PIECES / pieces).min(n / RANGE).max(n.div_ceil(LONG_RANGE)).max(1);
        let range = n.div_ceil(ranges).next_multiple_of(plan.block);
        Job {
            values: request.values.as_ref().map(|target| Sink::new(session, target)),
            indices: request.indices.as_ref().map(|target| Sink::new(session, target)),
            request,
            search: Search::of(request, operands.tape, m),
            operands,
            plan,
            isa: Isa::current(),
            batch,
            batches,
            m,
            block,
            range,
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
            told: Mutex::new(Instant::now()),
            failed: Mutex::new(None),
            numbers: PhantomData,
        }
    }

    fn run(&self) -> Result<()> {
        let blocks = self.m.div_ceil(self.block.max(1));
        let ranges = usize::max(1, self.request.n.div_ceil(self.range.max(1)));
        // Partial states by piece, where a row has several.
        let partial: Vec<Mutex<Vec<PairState<A>>>> = match ranges {
            1 => Vec::new(),
            _ => (0..self.batches * blocks * ranges).map(|_| Mutex::default()).collect(),
        };
        let piece = |number: usize| {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let (rows, range) = (number / ranges, number % ranges);
            match self.piece(rows / blocks, rows % blocks, range) {
                Ok(states) if ranges == 1 => self.write(rows / blocks, rows % blocks, states),
                Ok(states) => *lock(&partial[number]) = states,
                Err(error) => {
                    self.stop.store(true, Ordering::Relaxed);
                    lock(&self.failed).get_or_insert(error);
                }
            }
        };
        let pieces = self.batches * blocks * ranges;
        let pairs = self.batches.saturating_mul(self.m).saturating_mul(self.request.n);
        if pairs < FEW_PAIRS {
            (0..pieces).for_each(piece)
        } else {
            pool::run(pieces, &piece)
        }
        if let Some(error) = lock(&self.failed).take() {
            return Err(error);
        }
        for rows in 0..self.batches * blocks * usize::from(ranges > 1) {
            let mut states = std::mem::take(&mut *lock(&partial[rows * ranges]));
            for range in 1..ranges {
                let others = std::mem::take(&mut *lock(&partial[rows * ranges + range]));
                for (state, other) in states.iter_mut().zip(&others) {
                    self.request.fold.merge(self.request.shape(), state, other);
                }
            }
            self.write(rows / blocks, rows % blocks, states);
        }
        Ok(())
    }

    /// The index of a batch.
    fn batch_index(&self, number: usize) -> Vec<usize> {
        let mut index = vec![0; self.batch.len()];
        let mut rest = number;
        for (place, &size) in index.iter_mut().zip(self.batch).rev() {
            *place = rest % size;
            rest /= size;
        }
        index
    }

    fn write(&self, batch: usize, block: usize, states: Vec<PairState<A>>) {
        let index = self.batch_index(batch);
        for (row, state) in states.into_iter().enumerate() {
            let state = match self.request.finish {
                true => self.request.fold.finish(self.request.shape(), state),
                false => state,
            };
            let i = block * self.block + row;
            // SAFETY: the session is held, and rows of different pieces are different.
            unsafe {
                if let Some(sink) = &self.values {
                    sink.write(&index, i, &state.values);
                }
                if let Some(sink) = &self.indices {
                    sink.write(&index, i, &state.indices);
                }
            }
        }
    }

    /// The states of a block of i over a range of j.
    fn piece(&self, batch: usize, block: usize, range: usize) -> Result<Vec<PairState<A>>> {
        if let Some(states) = self.nearest(batch, block, range)? {
            return Ok(states);
        }
        let plan = &self.plan;
        let tiles = self.block / plan.lanes;
        let elements = plan.pairs.max(plan.block).max(plan.lanes).next_multiple_of(64);
        let buffer = elements * 8;
        let [once, i, j, pair, given] = plan.bytes;
        let shape = self.request.shape();
        let gathered = (shape.dim + shape.weights) * plan.pairs * size_of::<T>();
        let buffers = once + j + pair + given + i * tiles;
        moves::with_scratch(buffers + BUFFERS * buffer + gathered, |arena| {
            let at = |offset: usize| arena.wrapping_add(offset);
            let frame = Frame {
                plan,
                isa: self.isa,
                regions: [0, once + j + pair + given, once, once + j, once + j + pair].map(at),
                buffers: at(buffers),
                buffer,
                section: Per::Once,
                rows: 1,
                lanes: 1,
                first: 0,
                across: plan.lanes == 1,
            };
            let gathered = at(buffers + BUFFERS * buffer).cast::<T>();
            self.piece_in(frame, gathered, &self.batch_index(batch), block, range)
        })
    }

    /// The i and the j of a piece.
    fn ranges(&self, block: usize, range: usize) -> (Range<usize>, Range<usize>) {
        let ends = self.m.min((block + 1) * self.block);
        let js = range * self.range..self.request.n.min((range + 1) * self.range);
        (block * self.block..ends, js)
    }

    fn piece_in(
        &self,
        frame: Frame<'_, '_>,
        gathered: *mut T,
        batch: &[usize],
        block: usize,
        range: usize,
    ) -> Result<Vec<PairState<A>>> {
        let (plan, request) = (&self.plan, self.request);
        let (rows, js) = self.ranges(block, range);
        let monoid = request.fold.row().monoid;
        self.load(&frame, batch, Per::Once, 0);
        frame.run()?;
        let mut tiles = Vec::with_capacity(rows.len().div_ceil(plan.lanes));
        for (number, first) in rows.clone().step_by(plan.lanes).enumerate() {
            let mut tile = frame;
            tile.section = Per::I;
            tile.lanes = plan.lanes.min(rows.end - first);
            let region = &mut tile.regions[Per::I as usize];
            *region = region.wrapping_add(number * plan.bytes[Per::I as usize]);
            self.load(&tile, batch, Per::I, first);
            tile.run()?;
            let states =
                States::<T, A>::new(monoid, request.shape(), tile.lanes, plan.pairs, self.isa);
            tiles.push((tile, first..first + tile.lanes, states));
        }
        for first in js.clone().step_by(plan.block) {
            let mut of_block = frame;
            of_block.section = Per::J;
            of_block.lanes = plan.block.min(js.end - first);
            self.load(&of_block, batch, Per::J, first);
            of_block.run()?;
            for (tile, of_tile, states) in &mut tiles {
                let lanes = tile.lanes;
                self.fill(tile, batch, of_tile, first..first + of_block.lanes);
                for row in (0..of_block.lanes).step_by(plan.rows) {
                    let rows = plan.rows.min(of_block.lanes - row);
                    let mut pairs = *tile;
                    pairs.section = Per::Pair;
                    pairs.first = row;
                    (pairs.rows, pairs.lanes) =
                        if pairs.across { (1, rows) } else { (rows, lanes) };
                    pairs.run()?;
                    let place = first - js.start + row;
                    // SAFETY: `gathered` has room for all components of the outputs.
                    unsafe { self.fold(&pairs, gathered, (rows, lanes), place, states) };
                }
                states.end_block();
            }
            self.go_on((of_block.lanes * rows.len()) as u64)?;
        }
        let start = request.start + js.start as i64;
        let count = js.len() as u64;
        Ok(tiles.into_iter().flat_map(|(_, _, states)| states.finish(count, start)).collect())
    }

    /// Folds the outputs of a tile.
    ///
    /// # Safety
    /// `gathered` has room for a tile of all components of the outputs.
    unsafe fn fold(
        &self,
        pairs: &Frame<'_, '_>,
        gathered: *mut T,
        (rows, lanes): (usize, usize),
        first: usize,
        states: &mut States<T, A>,
    ) {
        let (tape, stride) = (self.operands.tape, self.plan.pairs);
        let outputs = tape.outputs();
        let len = |k: usize| outputs.get(k).map_or(0, |&slot| tape.slot(slot).len as usize);
        let components = |k: usize, room: *mut T| -> &[T] {
            let Some(&slot) = outputs.get(k) else { return &[] };
            let from = match pairs.is_in_place(slot) {
                true => pairs.output(slot, 0).cast::<T>(),
                false => {
                    for c in 0..len(k) {
                        let from = pairs.output(slot, c).cast::<T>();
                        // SAFETY: a component has as many numbers as the tile, and there is room
                        // for all components.
                        unsafe {
                            room.add(c * stride).copy_from_nonoverlapping(from, rows * lanes);
                        }
                    }
                    room.cast_const()
                }
            };
            // SAFETY: components are `stride` numbers apart, in memory that is initialised.
            unsafe { std::slice::from_raw_parts(from, len(k) * stride) }
        };
        // SAFETY: the room of the weight follows that of the formula.
        let (formula, weight) =
            (components(0, gathered), components(1, unsafe { gathered.add(len(0) * stride) }));
        states.step(&Values { rows, lanes, first, stride, formula, weight });
    }

    /// Loads the inputs of a section from an index on.
    fn load(&self, frame: &Frame<'_, '_>, batch: &[usize], section: Per, first: usize) {
        for (slot, (source, input)) in
            self.operands.sources.iter().zip(self.operands.tape.inputs()).enumerate()
        {
            if input.per != section {
                continue;
            }
            let place = self.plan.places[slot];
            let to = frame.regions[section as usize].wrapping_add(place.offset);
            let strides = &source.layout.strides()[batch.len()..];
            let (step, component) = match section {
                Per::Once => (0, strides[0]),
                _ => (strides[0], strides[1]),
            };
            let at = position(&source.layout, batch) + first as isize * step;
            let from = source.base.wrapping_offset(at * place.size as isize);
            let shape = (place.len, frame.lanes);
            let steps = ((place.stride / place.size) as isize, 1);
            // SAFETY: indices of the layout, which lie inside of the block (the invariant of
            // views), whose guard the session holds; a place has room for all components and lanes.
            unsafe { moves::block(place.size, shape, (to, steps), (from, (component, step))) };
        }
    }

    /// Has the inputs that are given for every pair of a tile of i and a block of j written.
    fn fill(&self, tile: &Frame<'_, '_>, batch: &[usize], i: &Range<usize>, j: Range<usize>) {
        let Some(fill) = self.operands.fill else { return };
        for (input, place) in
            self.plan.places[..self.operands.tape.inputs().len()].iter().enumerate()
        {
            if place.region == GIVEN {
                let to = tile.regions[GIVEN].wrapping_add(place.offset);
                fill(&Given { input, batch, i: i.clone(), j: j.clone(), to });
            }
        }
    }

    /// Notes that so many pairs are done; an error if the work is to be stopped.
    fn go_on(&self, pairs: u64) -> Result<()> {
        interrupt::check();
        let Some(progress) = self.request.progress else { return Ok(()) };
        let done = self.done.fetch_add(pairs, Ordering::Relaxed) + pairs;
        if let Ok(mut told) = self.told.try_lock()
            && told.elapsed() >= TOLD_EVERY
        {
            let all = self.batches as f64 * self.m as f64 * self.request.n as f64;
            if !progress.goes_on(done as f64 / all) {
                self.stop.store(true, Ordering::Relaxed);
            }
            *told = Instant::now();
        }
        match self.stop.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::interrupted(self.request.fold.row().name, "stopped on request")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
