//! Reductions over pairs: kernels printed for the formula at hand.
//!
//! The walk of a call: [`run`] does a call that no kernel takes whole as several (`calls`), takes distances whose
//! `order` alone is asked for by their squares, and looks for the [`Forms`] of a formula: many components in
//! `slices`, weights times `right`-hand sides, logarithms of sums (`logs`). It makes a `plan` (sections of the tape,
//! rows and tiles, ranges of j), and a second one where the formula has a `square` that may be expanded, on tensor
//! cores where it is `wide`. `launching` looks kernels up or has them printed (`print`) and compiled, and measures
//! the data where there is a choice; `launching_rows` launches `reduce` over blocks of i and ranges of j, then `merge`
//! where a row has several ranges, and `launching_wide` does the same part by part. Called by `device.rs`.

mod arguments;
mod calls;
mod choice;
mod chunks;
mod cost;
mod course;
mod cut;
mod explain;
mod few;
mod folding;
mod functions;
mod key;
mod launching;
mod launching_rows;
mod launching_wide;
mod logs;
mod long;
mod norms;
mod order;
mod panels;
mod plan;
mod print;
mod right;
mod sections;
mod slices;
mod square;
#[cfg(test)]
mod tests;
mod tiling;
mod wide;
mod words;
mod worth;

use std::cell::OnceCell;

use smallvec::SmallVec;
use tilework_backend::{PairReduce, Scheme, Session, Target, ViewRef};
use tilework_error::{Error, Result};
use tilework_layout::Layout;
use tilework_tape::{Per, Tape};

use crate::device::Cuda;
use crate::launch::Nest;
use calls::Calls;
use folding::Folding;
use logs::Logs;
use order::Ordered;
use plan::{Plan, Sizes};
use right::{Columns, Right};
use slices::{MOST_WORDS, Slices};
use square::Square;
use tiling::{RANKS_OF_TEAM, Skeleton};

/// Does what a `PairReduce` request asks.
pub(crate) fn run(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &PairReduce<'_>,
    name: &str,
) -> Result<()> {
    if let Some(ordered) = Ordered::of(request) {
        return ordered.ask(request, name, |squares| run(cuda, session, squares, name));
    }
    let folding = Folding::new(request);
    let forms = Forms::new(request.tape, &folding);
    if let Some(by) = Calls::of(request, &forms, &folding) {
        return by.each(request, name, |part| run(cuda, session, part, name));
    }
    match Job::new(cuda, request, name, folding, &forms)? {
        Some(job) => job.launch(cuda, session),
        None => Ok(()),
    }
}

/// Pairs times columns from which it pays to take them in a second pass.
const SECOND_PASS: f64 = 1.5e9;

/// Whether tensor cores compute a sum, without options, as weights times right-hand sides, and that pays for a pass of
/// its own.
pub(crate) fn multiplies(cuda: &Cuda, sum: &Tape, [batches, m, n]: [usize; 3]) -> bool {
    let Ok(facts) = cuda.facts() else { return false };
    let (multiprocessors, capability) = (facts.multiprocessors as usize, facts.capability);
    let sizes = Sizes { batches, m, n, multiprocessors, scheme: Scheme::Auto, capability };
    pays_twice(sum, sizes)
}

/// What [`multiplies`] says, by sizes alone, so that no card is needed.
fn pays_twice(sum: &Tape, sizes: Sizes) -> bool {
    let folding = Folding::of_sum(sum);
    let right = Right::sliced(sum, &folding);
    right.is_some_and(|(right, slices)| {
        let columns = right.columns().max(right.dim);
        sizes.m as f64 * sizes.n as f64 * columns as f64 >= SECOND_PASS
            && wide::weighed(&right, &folding.sliced(slices.as_ref()), &sizes).is_some()
    })
}

/// How a request would be done, for human eyes.
pub(crate) fn explain(
    cuda: &Cuda,
    session: &Session<'_>,
    request: &PairReduce<'_>,
    name: &str,
) -> Result<String> {
    if let Some(ordered) = Ordered::of(request) {
        let explained = |squares: &PairReduce<'_>| explain(cuda, session, squares, name);
        let said = ordered.ask(request, name, explained)?;
        return Ok(format!(
            "order     that of the squares, which are looked at in place of the formula\n{said}"
        ));
    }
    let folding = Folding::new(request);
    let forms = Forms::new(request.tape, &folding);
    if let Some(by) = Calls::of(request, &forms, &folding) {
        let mut all = format!("{cuda}: {by}, as calls of their own\n");
        by.each(request, name, |part| {
            all += &explain(cuda, session, part, name)?;
            Ok(())
        })?;
        return Ok(all);
    }
    match Job::new(cuda, request, name, folding, &forms)? {
        Some(job) => job.explain(cuda, session),
        None => Ok(format!("{cuda}: no rows, nothing to do\n")),
    }
}

/// A formula, and the other tapes and slices that it may be computed by.
struct Forms<'t> {
    tape: &'t Tape,
    /// Slices that threads have registers for, of components that stand in one input or of weights of exponentials.
    for_threads: Option<Slices>,
    /// Slices of ranks, where there are more than a team has registers for.
    ranks: Option<Slices>,
    /// The parts of all components, in slices or whole, for threads where there are no such slices.
    parts: Vec<Slices>,
    /// Parts of so few components that kernels of few pairs may have loops; made when they are asked for.
    parts_for_few_pairs: OnceCell<Vec<Slices>>,
    /// Slices that tensor cores have registers for, where `right` does not have all columns.
    for_tensor_cores: Option<Slices>,
    /// The formula as weights times right-hand sides, which tensor cores multiply.
    right: Option<Right>,
    /// The formula as columns that threads sum, of which differences are made.
    columns: Option<Columns>,
    /// The formula of the sum that a logarithm is of; made when it is asked for.
    logs: OnceCell<Option<Logs>>,
}

impl<'t> Forms<'t> {
    fn new(tape: &'t Tape, folding: &Folding) -> Forms<'t> {
        let for_threads = Slices::of_input(tape, folding, slices::FEW)
            .or_else(|| Slices::of_weights(tape, folding));
        let ranks = folding.is_ranked().then(|| Slices::of_ranks(folding.shape.k, RANKS_OF_TEAM));
        let parts = match for_threads {
            None => Slices::of_parts(tape, folding, MOST_WORDS),
            Some(_) => Vec::new(),
        };
        // Weights as they are written need another form that takes all components.
        let is_cut = for_threads.is_some()
            || !parts.is_empty()
            || slices::most_components(folding, MOST_WORDS).is_none();
        let right = Right::sliced(tape, folding);
        let right = right.filter(|(right, _)| is_cut || right.has_square(folding));
        let (right, for_tensor_cores) = right.unzip();
        Forms {
            tape,
            for_threads,
            ranks: ranks.flatten(),
            parts,
            parts_for_few_pairs: OnceCell::new(),
            for_tensor_cores: for_tensor_cores.flatten(),
            right,
            columns: Columns::new(tape),
            logs: OnceCell::new(),
        }
    }
}

/// A request and its plans.
struct Job<'r> {
    request: &'r PairReduce<'r>,
    name: &'r str,
    /// The formula as it is written, or the first of its parts.
    direct: Plan<'r>,
    /// The other parts of the formula as it is written.
    others: Vec<Plan<'r>>,
    expanded: Option<Expanded<'r>>,
    /// As in [`Plans`].
    by_block: bool,
    sizes: Sizes,
    /// Loops over the batch axes.
    batches: Nest,
}

/// A plan with a square expanded, with exponentials of normal numbers, or with weights that are multiplied by right-hand
/// sides, to be used if the data allow it.
struct Expanded<'r> {
    plan: Plan<'r>,
    /// The largest norms of data that allow it.
    limit: f64,
}

impl Expanded<'_> {
    /// The square that norms are measured for; none where weights are computed as they are written.
    fn square(&self) -> Option<&Square> {
        self.plan.sections.square.as_ref()
    }

    /// Components of its points.
    fn depth(&self) -> usize {
        self.square().map_or(0, |square| square.dim(self.plan.sections.tape) as usize)
    }

    /// Whether it only finds candidates, of which equal ones have an order.
    fn is_filter(&self) -> bool {
        self.square().is_some_and(Square::is_filter)
    }
}

impl<'r> Job<'r> {
    /// The plans of a request, or why there is no room for it; none where there are no rows.
    fn new(
        cuda: &Cuda,
        request: &'r PairReduce<'r>,
        name: &'r str,
        folding: Folding,
        forms: &'r Forms<'r>,
    ) -> Result<Option<Job<'r>>> {
        let [batch @ .., m, _] = request.output_shape() else { return Ok(None) };
        let facts = cuda.facts()?;
        let sizes = Sizes {
            batches: batch.iter().product(),
            m: *m,
            n: request.n,
            multiprocessors: facts.multiprocessors as usize,
            scheme: request.scheme,
            capability: facts.capability,
        };
        if sizes.batches == 0 || sizes.m == 0 {
            return Ok(None);
        }
        let Plans { direct, others, expanded, by_block } = Plans::new(forms, folding, sizes);
        let batches = batch_loops(request, batch);
        let all = || [&direct].into_iter().chain(&others);
        if let Some(bytes) = all().find_map(|plan| plan.too_many_bytes(&sizes)) {
            let message = format!(
                "two j of this formula take {bytes} bytes, and there is room for {} at once on {cuda}; take fewer \
                 components, or move the arrays to the CPU",
                tiling::room(&sizes)
            );
            return Err(Error::unsupported(name, message));
        }
        let argument_bytes = cuda.platform().argument_bytes();
        let too_many = |plan: &Plan<'_>| plan.too_many_arrays(argument_bytes);
        if let Some([arrays, most]) = all().find_map(too_many) {
            let message = format!(
                "{arrays} arrays are more than the arguments of a kernel have room for, which is {most}; join those \
                 of i and those of j (`concatenate`) and take components, or move the arrays to the CPU"
            );
            return Err(Error::unsupported(name, message));
        }
        if let Some(bytes) = all().find_map(Plan::too_many_ranks) {
            let message = format!(
                "the {} best of vectors so long take {bytes} bytes of each thread; ask for fewer, or move \
                 the arrays to the CPU",
                folding.shape.k
            );
            return Err(Error::unsupported(name, message));
        }
        if all().any(|plan| sizes.batches.saturating_mul(plan.cut.blocks) >= 1 << 31) {
            let message = format!(
                "{} batches of {m} rows are too many for one call; take fewer of them at a time",
                sizes.batches
            );
            return Err(Error::unsupported(name, message));
        }
        Ok(Some(Job { request, name, direct, others, expanded, by_block, sizes, batches }))
    }
}

/// Plans of a formula at some sizes: as it is written, and with a square expanded where that may pay.
struct Plans<'r> {
    direct: Plan<'r>,
    others: Vec<Plan<'r>>,
    expanded: Option<Expanded<'r>>,
    /// Whether each block of the expanded plan chooses for itself, and the other does what it refuses.
    by_block: bool,
}

impl<'r> Plans<'r> {
    fn new(forms: &'r Forms<'r>, whole: Folding, sizes: Sizes) -> Plans<'r> {
        let as_written = |slices: Option<&'r Slices>| {
            let tape = Slices::tape(slices, forms.tape);
            Plan { slices, ..Plan::new(tape, whole.sliced(slices), sizes, None) }
        };
        // Ranks are taken slice by slice by teams only.
        let ranks = forms.ranks.as_ref().map(|ranks| as_written(Some(ranks)));
        if let Some(direct) = ranks.filter(|plan| plan.tiling.team > 1) {
            return Plans { direct, others: Vec::new(), expanded: None, by_block: false };
        }
        if forms.for_threads.is_none() && few::may_loop(&sizes) {
            let small = || Slices::of_parts(forms.tape, &whole, slices::FEW);
            let small = forms.parts_for_few_pairs.get_or_init(small);
            let mut parts: Vec<_> = small.iter().map(|part| as_written(Some(part))).collect();
            if few::pays_in_slices(&parts) {
                let direct = parts.remove(0);
                return Plans { direct, others: parts, expanded: None, by_block: false };
            }
        }
        let slices = forms.for_threads.as_ref().or(forms.parts.first());
        let tape = Slices::tape(slices, forms.tape);
        let folding = whole.sliced(slices);
        let direct = as_written(slices);
        let others = forms.parts.iter().skip(1).map(|part| as_written(Some(part))).collect();
        // Kernels for few pairs ask for no choice.
        if direct.tiling.few_pairs {
            return Plans { direct, others, expanded: None, by_block: false };
        }
        let choose = |plan: &Plan<'_>| plan.chooses() && direct.is_short();
        // Of short points threads sum columns, of others tensor cores do.
        let mut other = weighted(forms, whole, sizes);
        if other.as_ref().is_none_or(|it| !it.plan.sections.by_tiles()) {
            other = summed(forms, whole, sizes).or(other);
        }
        other = other.or_else(|| logarithms(forms, whole, sizes));
        let expanded = other.or_else(|| {
            if !forms.parts.is_empty() {
                return None;
            }
            let square = expanded(tape, &folding, &sizes)?;
            // Beside a square of threads long vectors would be whole, which come in chunks where the formula is as written.
            if square.leave().is_none() && direct.skeleton() == Skeleton::Long {
                return None;
            }
            let plan = Plan { slices, ..Plan::new(tape, folding, sizes, Some(square)) };
            // Nothing is measured before differences, so that only blocks can choose.
            let suits = !square.is_direct() || choose(&plan);
            let limit = square.limit(tape);
            (suits && plan.fits(&sizes)).then_some(Expanded { plan, limit })
        });
        let beside = expanded.as_ref().filter(|it| choose(&it.plan));
        let beside = beside.map(|it| Plan::beside(tape, folding, sizes, &it.plan));
        let by_block = beside.is_some();
        let direct = beside.map_or(direct, |plan| Plan { slices, ..plan });
        Plans { direct, others, expanded, by_block }
    }
}

/// A plan that sums columns, where differences can be made of them and that may pay.
fn summed<'r>(forms: &'r Forms<'r>, folding: Folding, sizes: Sizes) -> Option<Expanded<'r>> {
    let columns = forms.columns.as_ref()?;
    let square = Square::find(&columns.tape, &folding)?;
    let square = Square { moved: Some(columns.moved), centred: true, ..square };
    let suits = square.suits_threads(&columns.tape)
        && Some(columns.difference.points) == square.inputs(&columns.tape)
        && !folding.compensated
        && cost::pays(&square, &columns.tape, &sizes, false);
    let plan = suits.then(|| Plan::new(&columns.tape, folding, sizes, Some(square)))?;
    if !plan.fits(&sizes) {
        return None;
    }
    let limit = square.limit(&columns.tape);
    let difference = Some(columns.difference);
    Some(Expanded { plan: Plan { difference, ..plan }, limit })
}

/// A plan that sums exponentials for their logarithm, on tensor cores.
fn logarithms<'r>(forms: &'r Forms<'r>, folding: Folding, sizes: Sizes) -> Option<Expanded<'r>> {
    let logs = forms.logs.get_or_init(|| Logs::new(forms.tape, &folding)).as_ref()?;
    let (tape, folding) = (&logs.tape, logs.folding(&folding));
    let square = expanded(tape, &folding, &sizes).filter(|square| square.leave().is_some())?;
    let plan = Plan::new(tape, folding, sizes, Some(square));
    let limit = square.limit(tape);
    plan.fits(&sizes).then_some(Expanded { plan, limit })
}

/// A plan that multiplies weights by right-hand sides, where that may pay: weights of a square that may be expanded, or as they
/// are written.
fn weighted<'r>(forms: &'r Forms<'r>, folding: Folding, sizes: Sizes) -> Option<Expanded<'r>> {
    let (right, slices) = (forms.right.as_ref()?, forms.for_tensor_cores.as_ref());
    let folding = folding.sliced(slices);
    let square = wide::weighed(right, &folding, &sizes);
    if square.is_none() && !wide::weighs_as_written(right, &folding, &sizes) {
        return None;
    }
    // Without a square nothing is measured that could be beyond a limit.
    let limit = square.map_or(f64::INFINITY, |square| square.limit(&right.weight));
    let plan = Plan { slices, ..Plan::weighted(right, folding, sizes, square) };
    Some(Expanded { plan, limit })
}

/// The square that may be expanded, and how, where that may pay; of a strict formula the one whose exponentials may be
/// normal numbers.
fn expanded(tape: &Tape, folding: &Folding, sizes: &Sizes) -> Option<Square> {
    let pays =
        |square: &Square| square.suits_threads(tape) && cost::pays(square, tape, sizes, true);
    if folding.strict {
        return Square::of_normal_powers(tape, folding).filter(pays);
    }
    let square = Square::find(tape, folding)?;
    let fused = pays(&square);
    wide::by_tiles(square, tape, folding, sizes).or(fused.then_some(square))
}

/// The batch axes of inputs and outputs, in this order, as few as they can be.
fn batch_loops(request: &PairReduce<'_>, batch: &[usize]) -> Nest {
    let layouts: SmallVec<[Option<&Layout>; 8]> = (request.inputs.iter())
        .map(|view: &ViewRef<'_>| Some(view.layout()))
        .chain([&request.values, &request.indices].map(|x| x.as_ref().map(Target::layout)))
        .collect();
    let stride = |layout: &Option<&Layout>, axis: usize| layout.map_or(0, |it| it.strides()[axis]);
    let mut nest = Nest {
        lens: batch.iter().copied().collect(),
        strides: (0..batch.len())
            .map(|axis| layouts.iter().map(|layout| stride(layout, axis)).collect())
            .collect(),
        offsets: layouts.iter().map(|layout| layout.map_or(0, |it| it.offset())).collect(),
    };
    nest.merge();
    nest
}

impl Job<'_> {
    /// The inputs of a plan's kernels: those of the request, and what slices have of them once more.
    fn views<'p>(
        &'p self,
        plan: &'p Plan<'_>,
    ) -> impl Iterator<Item = (&'p ViewRef<'p>, Per)> + 'p {
        let inputs = self.request.tape.inputs();
        let again = plan.slices.iter().flat_map(|slices| slices.again.iter().copied());
        (0..inputs.len()).chain(again).map(|k| (&self.request.inputs[k], inputs[k].per))
    }

    /// The batch axes for the first slice of a plan. They do for all slices where only inputs of the first are looked at.
    fn first_nest(&self, plan: &Plan<'_>) -> Nest {
        self.nests(plan).swap_remove(0)
    }

    /// The batch axes for each slice of a plan: it begins inside of rows of its inputs, and of those of the outputs.
    fn nests(&self, plan: &Plan<'_>) -> Vec<Nest> {
        let Some(slices) = plan.slices else { return vec![self.batches.clone()] };
        let mut whole = self.batches.clone();
        let inputs = self.request.inputs.len();
        for &input in slices.again.iter().rev() {
            whole.offsets.insert(inputs, whole.offsets[input]);
            whole.strides.iter_mut().for_each(|strides| strides.insert(inputs, strides[input]));
        }
        let layouts: SmallVec<[&Layout; 8]> =
            self.views(plan).map(|(view, _)| view.layout()).collect();
        let component = |layout: &Layout| layout.strides().last().copied().unwrap_or(0);
        let output = |target: &Option<Target<'_>>| {
            target.as_ref().map_or(0, |target| component(target.layout()))
        };
        let nest = |first: usize| {
            let mut nest = whole.clone();
            let mut step = |operand: usize, count: usize, component: isize| {
                let offset = &mut nest.offsets[operand];
                *offset = offset.wrapping_add_signed(count as isize * component);
            };
            for (input, again) in &slices.moved {
                step(*input, again.first(first), component(layouts[*input]));
            }
            step(layouts.len(), slices.from + first, output(&self.request.values));
            step(layouts.len() + 1, slices.from + first, output(&self.request.indices));
            nest
        };
        slices.firsts().map(nest).collect()
    }
}
