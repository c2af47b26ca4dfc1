//! Inner products and expanded squares in place of distances, where that is proven harmless.
//!
//! A step of the tape that is <x, y> or |x - y|^2 of an input of i and an input of j becomes an
//! input that is given for every pair; `packed` fills its tiles from points packed beforehand, and
//! the rest of the tape runs on them. Inner products keep their bits. Squared distances are
//! |x|^2 + |y|^2 - 2 <x, y> of centred points, which cancels: `tilework_backend::square` is the rule by which they
//! are used. Those of few components stay in the loop, as inner products of points
//! that are moved when they are loaded, with the scale of the exponent in them. Decided once a call from the
//! largest norms of the data. Called by `pairs::with_job`.

use std::borrow::Cow;

use tilework_backend::{Accuracy, PairReduce, square, try_filled};
use tilework_error::{Error, Result};
use tilework_ops::Id;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::{Action, Builder, Per, Slot, SlotId, Step, Tape};

use super::centred::Centred;
use super::course::Course;
use super::exponent::{Numbers, are_normal, scaled};
use super::moved::{Moved, reach_of};
use super::packed::{Fill, Packed};
use super::products::{Number, Points, with_tiles};
use super::{Given, Side, Source};
use crate::isa::Isa;

/// Components from which matrix products pay.
const WIDE: usize = 16;

/// Components from which an inner product and two sums are less than a distance and its scale.
const NARROW: usize = 3;

/// i and j below which it does not pay to look at all points and to pack or move them: 100 rows against a
/// million take as long or longer that way.
pub(super) const FEW: usize = 256;

/// Pairs below which an expanded square in the loop saves less than it costs to be decided on.
const FEW_PAIRS: usize = 1 << 20;

/// i and j from which a look at all points pays.
const MANY: usize = 4096;

/// Bytes that packed points may take: those of a side of 128 MiB, which a caller cuts longer arrays
/// into, of the other one and their norms.
const MOST_BYTES: usize = 172 << 20;

/// What takes the place of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Inner products, given in tiles.
    Product,
    /// Squared distances, given in tiles.
    Distance,
    /// Squared distances in the loop, times the factor that belongs to their slot.
    Expanded(f64),
}

/// A step that a form may replace.
struct Candidate {
    kind: Kind,
    /// The product or distance.
    distance: SlotId,
    /// What is replaced: that, or its product with a factor.
    slot: SlotId,
    x: SlotId,
    y: SlotId,
    components: usize,
}

/// A tape with other inputs, and the points that they come from.
pub(super) struct Form<T> {
    pub(super) tape: Tape,
    /// The inputs of the request that are still inputs.
    inputs: Vec<usize>,
    /// Where the inner product of an expanded square is summed onto a norm.
    pub(super) onto: Option<SlotId>,
    /// Whether no exponential of a pair is too small for a normal number.
    pub(super) normal: bool,
    points: Both<T>,
    /// Set where differences of the points are made of sums.
    centred: Option<Centred<T>>,
    isa: Isa,
}

/// The points of i and of j.
enum Both<T> {
    /// For products, or for squared distances.
    Packed {
        distance: bool,
        x: Packed<T>,
        y: Packed<T>,
    },
    Moved {
        x: Moved<T>,
        y: Moved<T>,
    },
}

impl<T: Number> Form<T> {
    /// The form for a request, or a sentence that says why there is none.
    pub(super) fn choose(
        request: &PairReduce<'_>,
        sources: &[Source],
        course: &Course<'_>,
    ) -> std::result::Result<(Form<T>, Cow<'static, str>), Cow<'static, str>> {
        let Some(mut candidate) = candidate::<T>(request.tape) else {
            return Err("direct: no product or distance of variables that pays".into());
        };
        if request.accuracy == Accuracy::Strict {
            return Err("direct: accuracy is strict".into());
        }
        let (m, n) = match request.output_shape() {
            [m, _] => (*m, request.n),
            _ => return Err("direct: there are batches".into()),
        };
        let bytes = (m + n).saturating_mul((candidate.components + 1) * size_of::<T>());
        let narrow = matches!(candidate.kind, Kind::Expanded(_));
        let unfit = if narrow { m.saturating_mul(n) < FEW_PAIRS } else { bytes > MOST_BYTES };
        if m.min(n) < FEW || unfit {
            return Err(format!("direct: another form does not pay for {m} x {n}").into());
        }
        let (mut steepest, mut normal) = (0.0, false);
        if candidate.kind != Kind::Product {
            let numbers = Numbers::of(request.tape, sources);
            let mut factor = 1.0;
            if let Kind::Expanded(scale) = &mut candidate.kind {
                (candidate.slot, factor) = scaled(request.tape, &numbers, candidate.slot);
                *scale = factor;
            }
            let monoid = request.fold.row().monoid;
            let slope = square::slope(request.tape, monoid, candidate.slot, factor, |slot| {
                numbers.get(slot)
            });
            steepest = slope.ok_or("direct: the distance is not only an exponent of a sum")?;
        }
        let isa = Isa::current();
        let points = |slot: SlotId| Points::<T>::of(&sources[usize::from(slot)], &[]);
        let (x, y) = (points(candidate.x), points(candidate.y));
        let pack = || -> Result<_> {
            // SAFETY: the inputs of a request may be read, as many points as it says.
            unsafe {
                let centre = match candidate.kind {
                    Kind::Product => try_filled("pack", T::ZERO, candidate.components)?,
                    _ => y.middle(&(0..n), candidate.components)?,
                };
                if let Kind::Expanded(scale) = candidate.kind {
                    let reach = |points, count| reach_of(isa, points, count, &centre, course);
                    let reach = [reach(x, m)?, reach(y, n)?];
                    let moved = |points, numbers, norms| Moved {
                        points,
                        centre: centre.clone(),
                        numbers,
                        norms,
                    };
                    let (x, y) = (moved(x, -2.0 * scale, scale), moved(y, 1.0, scale));
                    return Ok((Both::Moved { x, y }, reach, centre));
                }
                let x = Packed::lanes(isa, x, m, &centre, course)?;
                let y = Packed::rows(isa, y, n, &centre, course)?;
                let (reach, distance) = ([x.reach, y.reach], candidate.kind == Kind::Distance);
                Ok((Both::Packed { distance, x, y }, reach, centre))
            }
        };
        let (points, reach, centre) = pack().map_err(|error| format!("direct: {error}"))?;
        let mut how = match candidate.kind {
            Kind::Product => "given by matrix products",
            Kind::Distance => "expanded square given by matrix products",
            Kind::Expanded(_) => "expanded square in the loop",
        }
        .to_owned();
        how += &format!(", {} components", candidate.components);
        let mut centred = None;
        if candidate.kind != Kind::Product {
            let onto = matches!(candidate.kind, Kind::Expanded(_)).then_some(candidate.components);
            let (radius, error) = (square::radius(reach), square::in_order(reach, onto));
            let figures = format!(
                "R^2 = {radius:.3e}, error of the exponent <= {:.1e}",
                steepest * error * T::ROUNDOFF
            );
            if !(square::is_harmless(steepest, error) && radius <= T::SAFE) {
                let limit = square::promised(T::DTYPE);
                return Err(format!("direct: {figures}, more than {limit:.0e}").into());
            }
            how = format!("{how}, {figures}");
            let numbers = Numbers::of(request.tape, sources);
            normal = are_normal::<T>(request, &numbers, candidate.distance, radius);
            if candidate.kind == Kind::Distance && request.fold.row().monoid == Monoid::Add {
                let (points, centre) = ([candidate.x, candidate.y], (centre, radius.sqrt()));
                // SAFETY: the inputs of a request may be read, as many points as it says.
                centred = unsafe { Centred::of(request.tape, sources, points, (m, n), centre) };
            }
            if centred.is_some() {
                how += ", differences about the centre made of sums";
            }
        }
        let (tape, inputs, onto) = rewrite(request.tape, &candidate, centred.as_ref())
            .map_err(|error| error.to_string())?;
        Ok((Form { tape, inputs, onto, normal, points, centred, isa }, how.into()))
    }

    /// Where the inputs of the tape come from.
    pub(super) fn sources(&self, sources: Vec<Source>) -> Vec<Source> {
        let mut sources: Vec<Option<Source>> = sources.into_iter().map(Some).collect();
        let mut all: Vec<Source> = self.inputs.iter().filter_map(|&k| sources[k].take()).collect();
        all.extend(self.centred.as_ref().map(|centred| Source {
            base: centred.centre.as_ptr().cast(),
            layout: centred.layout.clone(),
        }));
        all.resize_with(self.tape.inputs().len(), Source::nowhere);
        all
    }

    /// Whether the sums of the tape are to be combined.
    pub(super) fn is_centred(&self) -> bool {
        self.centred.is_some()
    }

    /// Makes the sums that are asked for of those of an i.
    pub(super) fn combine(&self, i: usize, sums: &mut [f64]) {
        if let Some(centred) = &self.centred {
            centred.combine(i, sums);
        }
    }

    /// Writes what is given for a tile.
    pub(super) fn fill(&self, given: &Given) {
        let (i, j, to) = (given.i.clone(), given.j.clone(), given.to.cast::<T>());
        if let Both::Packed { distance, x, y } = &self.points {
            with_tiles(self.isa, Fill { x, y, distance: *distance, i, j, to });
        }
    }

    /// Writes the points of a side, and their norms.
    pub(super) fn load(&self, side: &Side) {
        let Both::Moved { x, y } = &self.points else { return };
        let moved = if side.per == Per::I { x } else { y };
        let (to, norms) = ((side.points.cast(), side.pitch), side.numbers.cast());
        // SAFETY: the inputs of a request may be read, as many points as it says; whoever asks has
        // room for them.
        unsafe { moved.load(self.isa, side.rows.clone(), to, norms) };
    }
}

/// Whether the distance of a formula that keeps its form is so short for all points that no
/// exponential of it is too small for a normal number.
pub(super) fn is_normal<T: Number>(
    request: &PairReduce<'_>,
    sources: &[Source],
    course: &Course<'_>,
) -> bool {
    let (tape, first) = (request.tape, request.tape.inputs().len());
    let distances = tape.steps().iter().zip(first..);
    let mut distances =
        distances.filter_map(|(step, k)| Some((k as SlotId, distance(tape, step)?)));
    let (&[m, _], Some((slot, (x, y)))) = (request.output_shape(), distances.next()) else {
        return false;
    };
    let numbers = Numbers::of(tape, sources);
    // Nothing is too far if there is no exponential.
    let asks = !are_normal::<T>(request, &numbers, slot, f64::NAN)
        && are_normal::<T>(request, &numbers, slot, 0.0);
    if m.min(request.n) < MANY || tape.slot(x).dtype != T::DTYPE || !asks {
        return false;
    }
    let points = |slot: SlotId| Points::<T>::of(&sources[usize::from(slot)], &[]);
    let (x, y, components) = (points(x), points(y), tape.slot(x).len as usize);
    // SAFETY: the inputs of a request may be read, as many points as it says.
    let reach = || unsafe {
        let centre = y.middle(&(0..request.n), components)?;
        let reach = |points, count| reach_of(Isa::current(), points, count, &centre, course);
        Ok::<_, Error>(reach(x, m)?.largest + reach(y, request.n)?.largest)
    };
    // The square of a sum is at most twice the sum of the squares: their mean stands for both.
    reach().is_ok_and(|both| are_normal::<T>(request, &numbers, slot, 0.5 * both))
}

/// The first step that a form may replace; an expanded square is not scaled yet.
fn candidate<T: Number>(tape: &Tape) -> Option<Candidate> {
    let first = tape.inputs().len();
    tape.steps().iter().enumerate().find_map(|(k, step)| {
        let (kind, (x, y)) = match distance(tape, step) {
            Some(points) => (Kind::Distance, points),
            None => (Kind::Product, product(tape, step)?),
        };
        let held = tape.slot(x);
        let (slot, components) = ((first + k) as SlotId, held.len as usize);
        let found = Candidate { kind, distance: slot, slot, x, y, components };
        match (held.dtype == T::DTYPE, kind, components) {
            (true, _, WIDE..) => Some(found),
            (true, Kind::Distance, NARROW..WIDE) => {
                // A difference that somebody else needs is there anyway.
                let difference = step.operands[0];
                let alone =
                    tape.users(difference).len() == 1 && !tape.outputs().contains(&difference);
                alone.then_some(Candidate { kind: Kind::Expanded(1.0), ..found })
            }
            _ => None,
        }
    })
}

/// The inputs (of i and of j) whose squared distance a step is.
pub(super) fn distance(tape: &Tape, step: &Step) -> Option<(SlotId, SlotId)> {
    // That of numbers is no inner product.
    let difference = match (&step.action, &step.operands[..]) {
        (Action::Apply(Id::Square), &[difference]) => tape.step_of(difference),
        _ => tape.squared_difference(step).and_then(|(difference, _)| tape.step_of(difference)),
    }?;
    match (&difference.action, &difference.operands[..]) {
        (Action::Apply(Id::Subtract), &[p, q]) if step.slot.len == 1 => sides(tape, p, q),
        _ => None,
    }
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

/// The tape with other inputs in the place of a step, without what nobody needs then, and which of
/// the inputs are left before them; and where an inner product is added to a norm. Differences that are
/// `centred` have their centre before those, and are made of sums later.
fn rewrite<T: Number>(
    tape: &Tape,
    candidate: &Candidate,
    centred: Option<&Centred<T>>,
) -> Result<(Tape, Vec<usize>, Option<SlotId>)> {
    let first = tape.inputs().len();
    let mut needed = vec![false; tape.slots()];
    match centred {
        Some(centred) => centred.roots().for_each(|slot| needed[usize::from(slot)] = true),
        None => tape.outputs().iter().for_each(|&slot| needed[usize::from(slot)] = true),
    }
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
    let one = Slot::scalar(tape.slot(candidate.slot).dtype);
    let all = Slot { len: candidate.components as u32, ..one };
    let centre = centred.map(|_| build.input(all, Per::Once));
    let mut onto = None;
    now[usize::from(candidate.slot)] = match candidate.kind {
        Kind::Product | Kind::Distance => build.input(one, Per::Pair),
        Kind::Expanded(_) => {
            let (x, norm_of_x) = (build.input(all, Per::I), build.input(one, Per::I));
            let (y, norm_of_y) = (build.input(all, Per::J), build.input(one, Per::J));
            let product = build.dot(x, y)?;
            // Onto the norm of i, which is in a register; that of j is read by the last sum itself.
            let onto_x = build.apply(Id::Add, &[product, norm_of_x])?;
            onto = Some(onto_x);
            build.apply(Id::Add, &[onto_x, norm_of_y])?
        }
    };
    for (k, step) in tape.steps().iter().enumerate() {
        if !needed[first + k] || first + k == usize::from(candidate.slot) {
            continue;
        }
        let x: Vec<SlotId> = step.operands.iter().map(|&slot| now[usize::from(slot)]).collect();
        now[first + k] = again(&mut build, step, &x)?;
    }
    let outputs: Vec<SlotId> = match (centred, centre) {
        (Some(centred), Some(centre)) => vec![centred.output(&mut build, &now, centre)?],
        _ => tape.outputs().iter().map(|&slot| now[usize::from(slot)]).collect(),
    };
    Ok((build.finish(&outputs)?, inputs, onto))
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
