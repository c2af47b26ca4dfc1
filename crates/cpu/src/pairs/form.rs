//! Wide inner products and squared distances as matrix products, where that is proven harmless.
//!
//! A step of the tape that is <x, y> or |x - y|^2 of an input of i and an input of j becomes an
//! input that is given for every pair; `products` fills its tiles from points packed beforehand, and
//! the rest of the tape runs on them. Inner products keep their bits. Squared distances are
//! |x|^2 + |y|^2 - 2 <x, y> of centred points, which cancels: they are used only where every use of
//! them is an exponent, and where the worst error of the exponent stays within [`ALLOWED`]. Decided
//! once a call from the largest norms of the data. Called by `pairs::with_job`.

use std::borrow::Cow;

use tilework_backend::{Accuracy, PairReduce};
use tilework_error::Result;
use tilework_layout::Layout;
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Action, Builder, Per, Slot, SlotId, Step, Tape};

use super::products::{Fill, Number, Packed, Points, with_tiles};
use super::{Given, Source};
use crate::isa::Isa;

/// Components from which matrix products pay.
const WIDE: usize = 16;

/// i and j below which packing does not pay.
const FEW: usize = 256;

/// Bytes that packed points may take.
const MOST_BYTES: usize = 1 << 28;

/// The largest error of an exponent, so the largest relative error of its exponential, in units of
/// roundoff: 1e-5 in float32.
const ALLOWED: f64 = 167.0;

/// What is computed beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Product,
    Distance,
}

/// A step that a form may replace.
struct Candidate {
    kind: Kind,
    slot: SlotId,
    x: SlotId,
    y: SlotId,
    components: usize,
}

/// A tape in which a step is given, and the points it is given from.
pub(super) struct Form<T> {
    pub(super) tape: Tape,
    /// The inputs of the request that are still inputs.
    inputs: Vec<usize>,
    kind: Kind,
    x: Packed<T>,
    y: Packed<T>,
    isa: Isa,
}

impl<T: Number> Form<T> {
    /// The form for a request, or a sentence that says why there is none.
    pub(super) fn choose(
        request: &PairReduce<'_>,
        sources: &[Source],
    ) -> std::result::Result<(Form<T>, Cow<'static, str>), Cow<'static, str>> {
        let tape = request.tape;
        let Some(candidate) = candidate::<T>(tape) else {
            return Err("direct: no wide product or distance of variables".into());
        };
        if request.accuracy == Accuracy::Strict {
            return Err("direct: accuracy is strict".into());
        }
        let (m, n) = match request.output_shape() {
            [m, _] => (*m, request.n),
            _ => return Err("direct: there are batches".into()),
        };
        let bytes = (m + n).saturating_mul(candidate.components * size_of::<T>());
        if m < FEW || n < FEW || bytes > MOST_BYTES {
            return Err(format!("direct: {m} x {n} does not pay to be packed").into());
        }
        let slope = match candidate.kind {
            Kind::Product => 0.0,
            Kind::Distance => {
                let exponents = Exponents { request, sources };
                let slope = exponents.slope(candidate.slot, 1.0);
                slope.ok_or("direct: the distance is not only an exponent")?
            }
        };
        let isa = Isa::current();
        let points = |slot: SlotId| Points::<T>::of(&sources[usize::from(slot)], &[]);
        let (x, y) = (points(candidate.x), points(candidate.y));
        // SAFETY: the inputs of a request may be read, as many points as it says.
        let (x, y) = unsafe {
            let centre = match candidate.kind {
                Kind::Product => vec![T::ZERO; candidate.components],
                Kind::Distance => y.middle(&(0..n), candidate.components),
            };
            (Packed::lanes(isa, x, m, &centre), Packed::rows(isa, y, n, &centre))
        };
        let mut how = format!("given by matrix products, {} components", candidate.components);
        if candidate.kind == Kind::Distance {
            let (radius, bound) = bound(&x, &y, slope);
            let figures =
                format!("R^2 = {radius:.3e}, error of the exponent <= {:.1e}", bound * T::ROUNDOFF);
            // A NaN is not within the bound either.
            if !(bound <= ALLOWED && radius <= T::SAFE) {
                let limit = ALLOWED * T::ROUNDOFF;
                return Err(format!("direct: {figures}, more than {limit:.0e}").into());
            }
            how = format!("expanded square {how}, {figures}");
        }
        let (tape, inputs) = rewrite(tape, &candidate).map_err(|error| error.to_string())?;
        Ok((Form { tape, inputs, kind: candidate.kind, x, y, isa }, how.into()))
    }

    /// Where the inputs of the tape come from.
    pub(super) fn sources(&self, sources: Vec<Source>) -> Vec<Source> {
        let given = Source { base: std::ptr::null(), layout: Layout::scalar() };
        let mut sources: Vec<Option<Source>> = sources.into_iter().map(Some).collect();
        self.inputs.iter().filter_map(|&k| sources[k].take()).chain([given]).collect()
    }

    /// Writes what is given for a tile.
    pub(super) fn fill(&self, given: &Given<'_>) {
        let (i, j, to) = (given.i.clone(), given.j.clone(), given.to.cast::<T>());
        let distance = self.kind == Kind::Distance;
        with_tiles(self.isa, Fill { x: &self.x, y: &self.y, distance, i, j, to });
    }
}

/// The largest squared norm, and the bound of slope * error in units of roundoff.
///
/// The inner product is summed in order, so its error is at most the roundoff of each partial sum;
/// those are at most the products of partial norms. Centring gives 8 R^2, norms and the last three
/// roundings 8 more.
fn bound<T: Number>(x: &Packed<T>, y: &Packed<T>, slope: f64) -> (f64, f64) {
    let radius = x.largest.max(y.largest);
    // `max` drops a NaN.
    let radius = if (x.largest + y.largest).is_nan() { f64::NAN } else { radius };
    let products = 2.0 * (x.prefixes * y.prefixes).sqrt();
    (radius, slope * (products + 16.0 * radius))
}

/// The first step that a form may replace.
fn candidate<T: Number>(tape: &Tape) -> Option<Candidate> {
    let first = tape.inputs().len();
    tape.steps().iter().enumerate().find_map(|(k, step)| {
        let (kind, (x, y)) = match distance(tape, step) {
            Some(points) => (Kind::Distance, points),
            None => (Kind::Product, product(tape, step)?),
        };
        let slot = tape.slot(x);
        let fits = slot.dtype == T::DTYPE && slot.len as usize >= WIDE;
        let components = slot.len as usize;
        fits.then_some(Candidate { kind, slot: (first + k) as SlotId, x, y, components })
    })
}

/// The step that defines a slot.
pub(super) fn step_of(tape: &Tape, slot: SlotId) -> Option<&Step> {
    usize::from(slot).checked_sub(tape.inputs().len()).map(|k| &tape.steps()[k])
}

/// The inputs (of i and of j) whose squared distance a step is.
pub(super) fn distance(tape: &Tape, step: &Step) -> Option<(SlotId, SlotId)> {
    let &[a, b] = &step.operands[..] else { return None };
    let of = step_of(tape, a)?;
    let &[p, q] = &of.operands[..] else { return None };
    let is_distance =
        step.action == Action::Dot && a == b && of.action == Action::Apply(Id::Subtract);
    if is_distance { sides(tape, p, q) } else { None }
}

/// The inputs (of i and of j) whose inner product a step is.
fn product(tape: &Tape, step: &Step) -> Option<(SlotId, SlotId)> {
    match (&step.action, &step.operands[..]) {
        (Action::Dot, &[p, q]) => sides(tape, p, q),
        _ => None,
    }
}

/// Two inputs as the one of i and the one of j.
fn sides(tape: &Tape, p: SlotId, q: SlotId) -> Option<(SlotId, SlotId)> {
    let per = |slot: SlotId| tape.inputs().get(usize::from(slot)).map(|input| input.per);
    match (tape.slot(p) == tape.slot(q), per(p)?, per(q)?) {
        (true, Per::I, Per::J) => Some((p, q)),
        (true, Per::J, Per::I) => Some((q, p)),
        _ => None,
    }
}

/// What exponents make of a slot.
struct Exponents<'a> {
    request: &'a PairReduce<'a>,
    sources: &'a [Source],
}

impl Exponents<'_> {
    /// The largest |d exponent / d slot|, times a factor, if all that the slot is used for is to be
    /// scaled by what varies with nothing and then exponentiated.
    fn slope(&self, slot: SlotId, factor: f64) -> Option<f64> {
        let tape = self.request.tape;
        let mut largest: Option<f64> = None;
        let mut take = |slope: f64| largest = Some(largest.map_or(slope, |held| held.max(slope)));
        for (k, &output) in tape.outputs().iter().enumerate() {
            let is_exponent = k == 0 && self.request.fold.row().monoid == Monoid::Shifted;
            match (output == slot, is_exponent) {
                (true, true) => take(factor.abs()),
                (true, false) => return None,
                _ => {}
            }
        }
        for (k, step) in tape.steps().iter().enumerate() {
            if !step.operands.contains(&slot) {
                continue;
            }
            let next = (tape.inputs().len() + k) as SlotId;
            take(match (&step.action, &step.operands[..]) {
                (Action::Apply(Id::Exp), _) => factor.abs(),
                (Action::Apply(Id::Exp2), _) => factor.abs() * std::f64::consts::LN_2,
                (Action::Apply(Id::Negative), _) => self.slope(next, factor)?,
                (Action::Apply(Id::Multiply), &[a, b]) => {
                    let other = if a == slot { b } else { a };
                    self.slope(next, factor * self.once(other)?)?
                }
                (Action::Apply(Id::Divide), &[a, b]) if a == slot => {
                    self.slope(next, factor / self.once(b)?)?
                }
                _ => return None,
            });
        }
        largest
    }

    /// The value of a number that varies with nothing.
    fn once(&self, slot: SlotId) -> Option<f64> {
        self.scalar(slot).map(|value| value.cast(DType::Float64).get::<f64>())
    }

    fn scalar(&self, slot: SlotId) -> Option<Scalar> {
        let tape = self.request.tape;
        if tape.slot(slot).len != 1 {
            return None;
        }
        let Some(step) = step_of(tape, slot) else {
            let (input, source) =
                (tape.inputs()[usize::from(slot)], &self.sources[usize::from(slot)]);
            let size = input.slot.dtype.size();
            let at = source.base.wrapping_add(source.layout.offset() * size);
            // SAFETY: an input that varies with nothing has one number, which may be read: the
            // layout lies inside of its block, whose guard the session holds.
            let bytes = (input.per == Per::Once)
                .then(|| unsafe { std::slice::from_raw_parts(at, size) })?;
            return Some(Scalar::from_bytes(input.slot.dtype, bytes));
        };
        match &step.action {
            Action::Constant(value) => Some(*value),
            Action::Cast => Some(self.scalar(step.operands[0])?.cast(step.slot.dtype)),
            Action::Apply(id) => {
                let operands: Option<Vec<Scalar>> =
                    step.operands.iter().map(|&operand| self.scalar(operand)).collect();
                id.evaluate(&operands?)
            }
            _ => None,
        }
    }
}

/// The tape with a step as its last input, without what nobody needs then, and which of the
/// inputs are left.
fn rewrite(tape: &Tape, candidate: &Candidate) -> Result<(Tape, Vec<usize>)> {
    let first = tape.inputs().len();
    let mut needed = vec![false; tape.slots()];
    tape.outputs().iter().for_each(|&slot| needed[usize::from(slot)] = true);
    needed[usize::from(candidate.slot)] = false;
    for (k, step) in tape.steps().iter().enumerate().rev() {
        if needed[first + k] && first + k != usize::from(candidate.slot) {
            step.operands.iter().for_each(|&slot| needed[usize::from(slot)] = true);
        }
    }
    let mut build = Builder::new();
    let mut now: Vec<SlotId> = vec![0; tape.slots()];
    let inputs: Vec<usize> = (0..first).filter(|&k| needed[k]).collect();
    for &k in &inputs {
        now[k] = build.input(tape.inputs()[k].slot, tape.inputs()[k].per);
    }
    let dtype = tape.slot(candidate.slot).dtype;
    now[usize::from(candidate.slot)] = build.input(Slot::scalar(dtype), Per::Pair);
    for (k, step) in tape.steps().iter().enumerate() {
        if !needed[first + k] || first + k == usize::from(candidate.slot) {
            continue;
        }
        let x: Vec<SlotId> = step.operands.iter().map(|&slot| now[usize::from(slot)]).collect();
        now[first + k] = again(&mut build, step, &x)?;
    }
    let outputs: Vec<SlotId> = tape.outputs().iter().map(|&slot| now[usize::from(slot)]).collect();
    Ok((build.finish(&outputs)?, inputs))
}

/// A step once more, on other operands.
fn again(build: &mut Builder, step: &Step, x: &[SlotId]) -> Result<SlotId> {
    let Slot { dtype, len } = step.slot;
    match &step.action {
        Action::Apply(id) => build.apply(*id, x),
        Action::Cast => Ok(build.cast(x[0], dtype)),
        Action::Select => build.select(x[0], x[1], x[2]),
        Action::Constant(value) => Ok(build.constant(*value, len)),
        Action::Extract(start) => build.extract(x[0], *start, len),
        Action::Concat => build.concat(x),
        Action::Place(start) => build.place(x[0], *start, len),
        Action::Fold(fold) => build.fold(*fold, x[0]),
        Action::Dot => build.dot(x[0], x[1]),
        Action::Contract(contraction) => build.contract(x[0], x[1], (**contraction).clone()),
    }
}
