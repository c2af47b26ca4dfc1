//! Reductions over pairs.
//!
//! The walk of a call: [`run`] makes a `plan` (sections, tile sizes, places), cuts the work into
//! pieces (batches, blocks of i, and ranges of j where there are few i) and gives them to the pool.
//! A `piece` goes over blocks of j: variables of j are loaded and what depends on j alone is computed
//! once a block; then every tile of i meets it, by assembled code (`jit`) or tile by tile by an
//! interpreter (`tile`) with the same bits, and values are folded into states (`fold`). States of
//! ranges of j are merged in order. Cuts depend on sizes only, so results are the same bits for any
//! number of threads.
//!
//! Faster forms stand beside that walk. `form` says where distances are inner products instead
//! (`exponent` what the formula makes of them), of points that `moved` centres, `packed` stores and `load`
//! brings into a piece; `products` multiplies tiles of them. `columns` and `centred` are for long vectors that are
//! summed with a weight of each pair. `nearest` searches: `filter` compares tiles with limits, `candidates` and `select` keep
//! what may be among the K best, `then` is what is done to a distance before it is compared, and `shortlist` computes what
//! is left as the formula is written. `rows` holds finished states, `course` tells progress, `explain` the plan.

mod aligned;
mod candidates;
mod centred;
mod columns;
mod course;
mod explain;
mod exponent;
mod filter;
mod fold;
mod form;
mod jit;
mod lanes;
mod load;
mod moved;
mod nearest;
mod packed;
mod piece;
mod plan;
mod products;
mod rows;
mod select;
mod shortlist;
mod then;
mod tile;

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;

use tilework_backend::{Accuracy, PairReduce, Scheme, Session, SumScheme};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_ops::DType;
use tilework_ops::pair_fold::{Monoid, PairShape};
use tilework_tape::{Per, SlotId, Tape};

use crate::isa::Isa;
use crate::pool;
use course::Course;
use form::Form;
use jit::{Folding, Outcome};
use lanes::Summed;
use nearest::{CHOICE, Search, Sought};
use plan::Plan;
use products::{Number, VECTORS};
use rows::{Rows, Sink};

/// Pieces that a call should have, so that no thread waits long for another.
const PIECES: usize = 64;

/// j in a range, at least: states of fewer cost more to be merged than they are worth. Every range
/// of a search learns anew what is near.
const RANGE: usize = 2048;
const SEARCH_RANGE: usize = 8192;

/// Pairs of a piece that is a range of j, at least.
const RANGE_PAIRS: usize = 1 << 18;

/// j in a range, at most: places in a range are 32 bits.
const LONG_RANGE: usize = 1 << 30;

/// Tiles of i that share the blocks of j of a piece, at most.
const TILES: usize = 4;

/// Pieces of i that a call should have before tiles share one, since each prepares all points of j. So
/// many need no ranges of j.
const PIECES_OF_I: usize = 16;

/// Vectors of i at which pieces are cut, but for the end of the last one: what a panel of products
/// has, and what a loop takes in turn.
const GRAIN: usize = VECTORS;

/// Pairs that are not worth a second thread.
const FEW_PAIRS: usize = 1 << 14;

/// Does what a `PairReduce` request asks.
/// Whether a sum is a product of matrices to assembled code, and large enough for a pass more over the pairs to pay.
pub(crate) fn multiplies(sum: &Tape, sizes: [usize; 3]) -> bool {
    Isa::current() != Isa::Scalar && plan::multiplies(sum, sizes)
}

pub(crate) fn run(session: &Session<'_>, request: &PairReduce<'_>) -> Result<()> {
    match (request.computes(), request.accumulates()) {
        (DType::Float64, _) => with_job::<f64, f64, _>(session, request, |job| job.run()),
        (_, DType::Float64) => with_job::<f32, f64, _>(session, request, |job| job.run()),
        _ => with_job::<f32, f32, _>(session, request, |job| job.run()),
    }
}

/// How a request would be done, for human eyes.
pub(crate) fn explain(session: &Session<'_>, request: &PairReduce<'_>) -> String {
    match (request.computes(), request.accumulates()) {
        (DType::Float64, _) => with_job::<f64, f64, _>(session, request, |job| job.explain()),
        (_, DType::Float64) => with_job::<f32, f64, _>(session, request, |job| job.explain()),
        _ => with_job::<f32, f32, _>(session, request, |job| job.explain()),
    }
}

/// Makes the job of a request: on another tape where a form pays, on its own elsewhere.
fn with_job<T: Number + Summed<A>, A: Number, R>(
    session: &Session<'_>,
    request: &PairReduce<'_>,
    door: impl FnOnce(&Job<'_, T, A>) -> R,
) -> R {
    let source = |view: &tilework_backend::ViewRef<'_>| Source {
        base: view.pointer(session),
        layout: view.layout().clone(),
    };
    let sources: Vec<Source> = request.inputs.iter().map(source).collect();
    let course = Course::new(request);
    match Form::<T>::choose(request, &sources, &course) {
        Ok((form, how)) => {
            let sources = form.sources(sources);
            let (fill, load) = (|given: &Given| form.fill(given), |side: &Side| form.load(side));
            let (fill, load): (&Fill<'_>, &Load<'_>) = (&fill, &load);
            let (tape, onto, normal) = (&form.tape, form.onto, form.normal);
            let made = Some((fill, load));
            let combine = |i: usize, sums: &mut [f64]| form.combine(i, sums);
            let combine = form.is_centred().then_some(&combine as &Combine<'_>);
            let operands = Operands { tape, sources, made, combine, onto, normal, form: how };
            door(&Job::new(session, request, operands, course))
        }
        Err(form) => {
            let normal = form::is_normal::<T>(request, &sources, &course);
            let (tape, made, combine, onto) = (request.tape, None, None, None);
            let operands = Operands { tape, sources, made, combine, onto, normal, form };
            door(&Job::new(session, request, operands, course))
        }
    }
}

/// A tape and where its inputs come from.
struct Operands<'a> {
    tape: &'a Tape,
    /// One for each input; those of no address are made.
    sources: Vec<Source>,
    /// Makes the input that is given for every pair, and inputs of one side.
    made: Option<(&'a Fill<'a>, &'a Load<'a>)>,
    /// Makes the sums that are asked for of those of the tape, by i.
    combine: Option<&'a Combine<'a>>,
    /// The sum of an inner product and a number that may be summed in any order.
    onto: Option<SlotId>,
    /// Whether no exponential of a pair is too small for a normal number.
    normal: bool,
    /// Which form this is, or why it is the formula as written.
    form: Cow<'static, str>,
}

type Fill<'a> = dyn Fn(&Given) + Sync + 'a;
type Load<'a> = dyn Fn(&Side) + Sync + 'a;
type Combine<'a> = dyn Fn(usize, &mut [f64]) + Sync + 'a;

/// What is to be written for the input that is given for every pair.
struct Given {
    /// Rows of i.
    i: Range<usize>,
    /// Rows of j, from the first of the request on.
    j: Range<usize>,
    /// Where the numbers go: for each j a row of all i.
    to: *mut u8,
}

/// What is to be written for the inputs of one side that are made: the last two, points and a number
/// for each.
struct Side {
    per: Per,
    /// Rows of that side.
    rows: Range<usize>,
    /// Where points go, component by component.
    points: *mut u8,
    /// Numbers from one component to the next.
    pitch: usize,
    numbers: *mut u8,
}

/// An input of the tape as an address.
struct Source {
    base: *const u8,
    layout: Layout,
}

impl Source {
    /// That of an input which is made.
    fn nowhere() -> Source {
        Source { base: std::ptr::null(), layout: Layout::scalar() }
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
    folding: Folding,
    /// The inner loop, or why it is interpreted.
    code: Outcome,
    isa: Isa,
    values: Option<Sink<'r>>,
    indices: Option<Sink<'r>>,
    /// Set where it is one of the smallest distances, by a filter.
    search: Sought<T>,
    batch: &'r [usize],
    batches: usize,
    m: usize,
    /// All pairs of the call.
    pairs: usize,
    /// i at which pieces are cut.
    grain: usize,
    /// Pieces that i and j are cut into, as evenly as whole grains and whole blocks of j are.
    blocks: usize,
    ranges: usize,
    course: Course<'r>,
    failed: Mutex<Option<Error>>,
    numbers: PhantomData<(T, A)>,
}

// SAFETY: a job is an address book. The session that it was made under outlives all work on it,
// and pieces of work write different rows.
unsafe impl<T, A> Sync for Job<'_, T, A> {}

impl<'r, T: Number + Summed<A>, A: Number> Job<'r, T, A> {
    fn new(
        session: &Session<'_>,
        request: &'r PairReduce<'r>,
        operands: Operands<'r>,
        course: Course<'r>,
    ) -> Job<'r, T, A> {
        let shape = request.output_shape();
        let (batch, m) = match shape {
            [batch @ .., m, _] => (batch, *m),
            _ => (&[][..], 0),
        };
        let n = request.n;
        let folding = Folding {
            monoid: request.fold.row().monoid,
            shape: PairShape { dim: dim_of(operands.tape), ..request.shape() },
            dtype: request.computes(),
            kahan: request.sums == SumScheme::Kahan && request.fold.row().monoid == Monoid::Add,
            strict: request.accuracy == Accuracy::Strict,
        };
        let isa = Isa::current();
        let vector = if isa == Isa::Avx512 { 64 } else { 32 } / size_of::<T>();
        let planned = |fuses: bool| {
            let plan = Plan::new(operands.tape, (m, n), vector, fuses, operands.onto);
            plan.with_columns::<T, A>(&operands, batch.len())
        };
        let mut plan = planned(folding.monoid == Monoid::Add);
        // Compensated sums take rounded products, which only columns leave to them.
        if folding.kahan && plan.columns.is_none() {
            plan = planned(false);
        }
        plan.normal = operands.normal;
        let batches: usize = batch.iter().product();
        let search = Search::of(request, operands.tape, m);
        let grain = GRAIN * vector;
        let blocks = if plan.spread == 1 { even_pieces(m, plan.lanes) } else { 1 };
        let blocks = blocks.min(m.div_ceil(grain));
        let pieces = usize::max(1, batches * blocks);
        let least = match search {
            Ok(_) => SEARCH_RANGE,
            Err(_) => (RANGE_PAIRS / m.div_ceil(blocks.max(1)).max(1)).max(RANGE),
        };
        // States of many values are long, and ranges hardly longer keep most of theirs.
        let least = least.max(folding.shape.k.saturating_mul(CHOICE));
        // Few i: ranges of j are pieces too, by size only.
        let ranges = match request.scheme {
            Scheme::OneD => 1,
            Scheme::TwoD => (PIECES / pieces).max(2).min(n.div_ceil(plan.block)),
            _ if pieces >= PIECES_OF_I => 1,
            _ => (PIECES / pieces).min(n / least),
        };
        // One block more than the least even share is what a range has at most.
        let ranges = ranges.max(n.div_ceil(LONG_RANGE - plan.block));
        let ranges = ranges.min(n.div_ceil(plan.block)).max(1);
        let pairs = batches.saturating_mul(m).saturating_mul(n);
        let code = match () {
            () if pairs < FEW_PAIRS => Err("so few pairs are not worth it".to_owned()),
            () if T::DTYPE != A::DTYPE && plan.columns.is_none() => {
                Err("sums are wider than values".to_owned())
            }
            () => jit::compiled(&plan, folding, isa),
        };
        Job {
            values: request.values.as_ref().map(|target| Sink::new(session, target)),
            indices: request.indices.as_ref().map(|target| Sink::new(session, target)),
            request,
            search,
            operands,
            plan,
            folding,
            code,
            isa,
            batch,
            batches,
            m,
            pairs,
            grain,
            blocks,
            ranges,
            course,
            failed: Mutex::new(None),
            numbers: PhantomData,
        }
    }

    fn run(&self) -> Result<()> {
        // What looked at all points may have been stopped.
        self.course.go_on(0)?;
        let (blocks, ranges) = (self.blocks, self.ranges);
        // Partial states by piece, where a row has several.
        let partial: Vec<Mutex<Option<Rows<A>>>> = match ranges {
            1 => Vec::new(),
            _ => (0..self.batches * blocks * ranges).map(|_| Mutex::default()).collect(),
        };
        let piece = |number: usize| {
            if self.course.is_stopped() {
                return;
            }
            let (rows, range) = (number / ranges, number % ranges);
            let done = self.piece(rows / blocks, rows % blocks, range).and_then(|states| {
                if ranges == 1 {
                    return self.write(rows / blocks, rows % blocks, states);
                }
                *lock(&partial[number]) = Some(states);
                Ok(())
            });
            if let Err(error) = done {
                self.course.stop();
                lock(&self.failed).get_or_insert(error);
            }
        };
        let pieces = self.batches * blocks * ranges;
        if self.pairs < FEW_PAIRS {
            (0..pieces).for_each(piece)
        } else {
            pool::run(pieces, &piece)
        }
        if let Some(error) = lock(&self.failed).take() {
            return Err(error);
        }
        for rows in 0..self.batches * blocks * usize::from(ranges > 1) {
            let of_rows =
                partial[rows * ranges..][..ranges].iter().filter_map(|of| lock(of).take());
            let mut merged: Option<Rows<A>> = None;
            for other in of_rows {
                self.course.go_on(0)?;
                match &mut merged {
                    Some(states) => states.merge(&other),
                    None => merged = Some(other),
                }
            }
            if let Some(states) = merged {
                self.write(rows / blocks, rows % blocks, states)?;
            }
        }
        Ok(())
    }

    /// The i and the j of a piece.
    fn ranges(&self, block: usize, range: usize) -> (Range<usize>, Range<usize>) {
        let rows = share(self.m, self.grain, self.blocks, block);
        (rows, share(self.request.n, self.plan.block, self.ranges, range))
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

    fn write(&self, batch: usize, block: usize, mut states: Rows<A>) -> Result<()> {
        let (rows, _) = self.ranges(block, 0);
        if let Some(combine) = self.operands.combine {
            states.change(|row, sums| combine(rows.start + row, sums))?;
        }
        if self.request.finish {
            states.finish();
        }
        let sinks = (self.values.as_ref(), self.indices.as_ref());
        // SAFETY: the session is held, and rows of different pieces are different.
        unsafe { states.write(sinks, &self.batch_index(batch), rows.start) }
    }
}

/// Components of what is folded.
fn dim_of(tape: &Tape) -> usize {
    tape.outputs().first().map_or(1, |&slot| tape.slot(slot).len as usize)
}

/// Pieces of i: so many that tiles of `lanes` share one only where there are enough, and a number that
/// threads can share evenly.
fn even_pieces(m: usize, lanes: usize) -> usize {
    let tiles = (m / (lanes * PIECES_OF_I)).clamp(1, TILES);
    let pieces = m.div_ceil(lanes * tiles);
    if pieces < PIECES_OF_I { pieces.next_power_of_two() } else { pieces.next_multiple_of(4) }
}

/// The share of `count` things that one of some parts has, cut at multiples of `grain` as evenly as
/// that goes.
fn share(count: usize, grain: usize, parts: usize, part: usize) -> Range<usize> {
    let end = |parts_before: usize| {
        let grains = count.div_ceil(grain) as u128 * parts_before as u128 / parts.max(1) as u128;
        count.min(grains as usize * grain)
    };
    end(part)..end(part + 1)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
