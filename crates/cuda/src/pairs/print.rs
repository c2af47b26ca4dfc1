//! A plan as the text of a kernel: its sizes, its state, the functions of its sections
//! (`functions`), and the skeleton of `kernels/pairs.cu` around them.
//!
//! Everything is printed from typed data. Called by `launching` when a kernel is not loaded yet.

use tilework_backend::square;
use tilework_error::Result;
use tilework_ops::pair_fold::{Finish, Monoid, PairShape};
use tilework_ops::{DType, Id};
use tilework_tape::{Action, Per, SlotId, Tape};

use super::cut::MERGE_THREADS;
use super::few;
use super::folding::{Folding, SUMS_IN_REGISTERS};
use super::functions::{Does, Printer};
use super::plan::{Plan, Sides};
use super::sections::LONG;
use super::slices::Of;
use super::square::Square;
use super::tiling::{self, CHUNK_BYTES, DEPTHS_OF_CHUNK, FEW_RANKS, Skeleton, Tiling};
use super::wide::{EIGHT, SIDE, WAITING, Wide};
use crate::launch::Width;
use crate::source::{self, storage, tape, value};

/// A file of `kernels`, with its name before it and after it, so that what is printed for a formula can be told
/// from it.
macro_rules! kernel {
    ($file:literal) => {
        concat!("// [", $file, "\n", include_str!(concat!("../kernels/", $file)), "// ]\n")
    };
}

/// Kernels of a plan that are compiled together, and side by side with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// What takes the pairs.
    Pairs,
    /// What joins the states of ranges. It depends on what is folded, and not on the formula.
    Merge,
    /// What measures the data of expanded squares.
    Measure,
    /// What makes tiles of points and of right-hand sides.
    Tiles,
}

impl Unit {
    /// All units of a plan.
    pub(super) fn of(plan: &Plan<'_>) -> impl Iterator<Item = Unit> + use<> {
        let wide = plan.tiling.wide.is_some();
        let units = [
            (Unit::Pairs, true),
            (Unit::Merge, wide || plan.cut.ranges > 1),
            (Unit::Measure, plan.sections.square.is_some()),
            (Unit::Tiles, wide),
        ];
        units.into_iter().filter_map(|(unit, there)| there.then_some(unit))
    }

    /// When it is to be compiled among the kernels of a call: what takes longest comes first, since the compiler reads one
    /// text at a time. Beside products of tiles that is the form of threads, unless a filter is made of the products.
    pub(super) fn turn(self, plan: &Plan<'_>) -> u8 {
        let (wide, does) = (plan.tiling.wide.is_some(), plan.does());
        match (self, plan.sections.square) {
            (Unit::Pairs, _) if wide && does != Does::Sift => 2,
            (Unit::Pairs, Some(_)) => 0,
            (Unit::Pairs, None) => 1,
            _ => 3,
        }
    }
}

/// The source of some of a plan's kernels.
pub(super) fn source(plan: &Plan<'_>, unit: Unit) -> Result<String> {
    if unit == Unit::Merge {
        return Ok(merge(plan));
    }
    let sections = &plan.sections;
    let dtypes = (0..sections.tape.slots()).map(|slot| sections.tape.slot(slot as SlotId).dtype);
    let sides = plan.right.iter().map(|right| right.sections.tape);
    let mut steps = [sections.tape].into_iter().chain(sides).flat_map(Tape::steps);
    let folds = steps.any(|step| matches!(step.action, Action::Fold(_)));
    let printed = printed(plan)?;
    let (wide, by_tiles) = (plan.tiling.wide.is_some(), sections.by_tiles());
    let centre = match sections.is_centred() {
        true => kernel!("pairs_about.cu"),
        false => kernel!("pairs_origin.cu"),
    };
    let skeleton: &[&str] = match unit {
        Unit::Merge => &[],
        Unit::Measure => &[
            if wide { kernel!("pairs_parts.cu") } else { "" },
            if wide { kernel!("pairs_centre.cu") } else { "" },
            if by_tiles { "" } else { centre },
            match by_tiles {
                true => kernel!("pairs_measure_wide.cu"),
                false => kernel!("pairs_measure.cu"),
            },
        ],
        Unit::Tiles => &[
            kernel!("pairs_parts.cu"),
            if by_tiles { kernel!("pairs_split.cu") } else { "" },
            match plan.does() {
                Does::Weigh => kernel!("pairs_split_right.cu"),
                _ => "",
            },
        ],
        Unit::Pairs => match plan.skeleton() {
            Skeleton::Wide => &[
                kernel!("pairs_parts.cu"),
                kernel!("pairs_tiles.cu"),
                match plan.does() {
                    Does::Fold => kernel!("pairs_wide_fold.cu"),
                    Does::Sift => kernel!("pairs_wide_sift.cu"),
                    Does::Weigh => kernel!("pairs_wide_right.cu"),
                },
                kernel!("pairs_wide.cu"),
            ],
            Skeleton::Short => &[centre, kernel!("pairs_short.cu"), kernel!("pairs.cu")],
            Skeleton::Few => &[centre, kernel!("pairs_few.cu"), kernel!("pairs.cu")],
            Skeleton::Long => {
                &[centre, kernel!("pairs_chunks.cu"), kernel!("pairs_long.cu"), kernel!("pairs.cu")]
            }
            Skeleton::LongTeams => &[
                centre,
                kernel!("pairs_chunks.cu"),
                kernel!("pairs_long_teams.cu"),
                kernel!("pairs.cu"),
            ],
        },
    };
    let text = [
        if folds { kernel!("folds.cu") } else { "" },
        &printed.numbers,
        if wide && unit == Unit::Pairs { kernel!("hopper.cu") } else { "" },
        kernel!("pair_math.cu"),
        &printed.exponential,
        kernel!("pair_folds.cu"),
        teams(plan),
        &printed.formula,
        kernel!("pairs_ends.cu"),
        &skeleton.concat(),
        source::END,
    ];
    Ok(begun(dtypes, &text.concat()))
}

/// A text, behind the types that every source begins with, which are marked like a file.
fn begun(dtypes: impl IntoIterator<Item = DType>, text: &str) -> String {
    format!("// [types\n{}// ]\n{text}", source::begin_for(Width::Wide, dtypes, text))
}

/// The source of the kernel that joins states: the same for all formulas that are folded alike.
fn merge(plan: &Plan<'_>) -> String {
    let Folding { computes, accumulates, output, .. } = plan.folding;
    let apart = plan.folding.apart();
    // What is merged apart is a state of one component.
    let alone = |(name, size)| match name {
        "DIM" | "VALUES" | "WIDTH" if apart > 1 => (name, 1),
        _ => (name, size),
    };
    let sizes = of_states(plan, plan.folding.shape, LOOPS)
        .map(alone)
        .chain([("THREADS", MERGE_THREADS), ("APART", (apart > 1).into())]);
    let text = [
        types(plan).as_str(),
        &format!("enum {{ {} }};\n", list(sizes)),
        kernel!("pair_math.cu"),
        &exponential(&plan.folding, false),
        kernel!("pair_folds.cu"),
        teams(plan),
        &states(plan, true),
        kernel!("pairs_ends.cu"),
        kernel!("pairs_merge.cu"),
        source::END,
    ]
    .concat();
    begun([computes, accumulates, output], &text)
}

/// The file of what teams have as states, where there are teams.
fn teams(plan: &Plan<'_>) -> &'static str {
    if plan.tiling.team > 1 { kernel!("pair_teams.cu") } else { "" }
}

/// The sources of kernels, for human eyes; `form` says of which form they are.
pub(super) fn sources<'p>(
    units: impl IntoIterator<Item = (&'p Plan<'p>, Unit)>,
    form: &str,
) -> Result<String> {
    let sources = units
        .into_iter()
        .map(|(plan, unit)| Ok(format!("// {unit:?}{form}\n{}", source(plan, unit)?)));
    Ok(sources.collect::<Result<Vec<String>>>()?.concat())
}

/// The longest vectors whose loops are unrolled where pairs are many, and the components of longer ones that are taken at
/// once: few, since several pairs are computed together.
const LOOPS: [usize; 2] = [LONG as usize, 4];

/// What differs from one plan to the next, between the parts that do not.
struct Printed {
    numbers: String,
    exponential: String,
    formula: String,
}

fn printed(plan: &Plan<'_>) -> Result<Printed> {
    let sections = &plan.sections;
    let operations = tape::operations(sections.tape, |id, dtype| !has_own_text(id, dtype));
    let functions = Printer { sections, first_argument: 0 }.functions(plan)?;
    let after = sections.arguments.len();
    let sides = plan.right.as_ref().map_or(Ok(String::new()), |right| sides(right, after))?;
    Ok(Printed {
        numbers: numbers(plan),
        exponential: exponential(
            &plan.folding,
            sections.square.is_some_and(|it| it.is_all_of(sections.tape)),
        ),
        formula: states(plan, false) + &operations + &functions + &sides,
    })
}

/// Whether an operation is declared in `kernels/pair_math.cu`.
fn has_own_text(id: Id, dtype: DType) -> bool {
    match dtype {
        DType::Float32 => matches!(id, Id::Exp2Pair | Id::RcpPair | Id::RsqrtPair | Id::SqrtPair),
        DType::Float64 => id == Id::Exp2Pair,
        _ => false,
    }
}

/// The types that a plan computes in.
fn types(plan: &Plan<'_>) -> String {
    let Folding { computes, accumulates, output, .. } = plan.folding;
    let names = [("T", value(computes)), ("A", value(accumulates)), ("R", storage(output))];
    names.map(|(name, of)| format!("typedef {of} {name};\n")).concat()
}

/// Names and sizes of states and of their results, with the longest vectors whose loops are unrolled, and how many
/// components the loops along longer ones take at once.
fn of_states(
    plan: &Plan<'_>,
    shape: PairShape,
    [long, at_a_time]: [usize; 2],
) -> impl Iterator<Item = (&'static str, usize)> {
    let folding = &plan.folding;
    let values = folding.monoid().values(shape);
    let width = if folding.finish { folding.fold.width(shape) } else { values };
    [
        ("DIM", shape.dim),
        ("KEPT", shape.k),
        ("WEIGHTS", shape.weights),
        ("VALUES", values),
        ("INDICES", folding.monoid().indices(shape)),
        ("WIDTH", width),
        ("OPERANDS", plan.sections.tape.inputs().len() + 2),
        ("LONG", long),
        ("AT_A_TIME", at_a_time),
        ("FEW", FEW_RANKS),
        ("IN_REGISTERS", SUMS_IN_REGISTERS),
        ("LANES", plan.tiling.team),
    ]
    .into_iter()
}

fn list(sizes: impl Iterator<Item = (&'static str, usize)>) -> String {
    sizes.map(|(name, size)| format!("{name} = {size}")).collect::<Vec<String>>().join(", ")
}

/// Types and sizes of a plan's kernels.
fn numbers(plan: &Plan<'_>) -> String {
    let Tiling { threads, rows, ranges_per_block, tile, group, ahead, wide, .. } = plan.tiling;
    let chunks = plan.sections.long.iter().flat_map(|long| {
        [
            ("LENGTHS", long.depths.len()),
            ("LENGTHS_AT", plan.arguments().count() - long.depths.len()),
            ("PASSES", long.passes.len()),
            ("DEPTHS", DEPTHS_OF_CHUNK / long.shared_by()),
            ("CHUNK_BYTES", CHUNK_BYTES / long.shared_by()),
        ]
    });
    let own = [
        ("THREADS", threads),
        ("ROWS", rows),
        ("SLICES", ranges_per_block),
        ("TILE", tile),
        ("GROUP", group),
        ("AHEAD", ahead),
        ("CHOOSES", plan.chooses().into()),
        ("SCALED", plan.is_scaled().into()),
        (
            "RESIDENT_BLOCKS",
            tiling::resident(&plan.sections, &plan.folding, &plan.tiling, plan.asked),
        ),
    ];
    let centred = plan.sections.square.filter(|_| plan.sections.is_centred());
    let centred = centred.into_iter().flat_map(|square| {
        let dim = square.dim(plan.sections.tape);
        // Both are whole numbers.
        let errors = [square::fused(dim), square::fused_about(dim)].map(|error| error as usize);
        [("POINT", dim as usize), ("ERROR", errors[0]), ("ERROR_ABOUT", errors[1])]
    });
    let asked = plan.asked.map(|asked| ("TILES_AT", asked.tiles_at));
    let of_tiles = wide.into_iter().flat_map(|wide| tiles(plan, wide));
    let of_points = wide.map(|_| {
        let [x, _] = points(plan);
        format!("typedef {} Stored;\n", storage(plan.sections.tape.slot(x).dtype))
    });
    let loops = match plan.tiling.few_pairs {
        true => [few::unrolled(&plan.sections, &plan.folding, plan.tiling.team), few::AT_A_TIME],
        false => LOOPS,
    };
    // Of right-hand sides only the columns are in the text, not how many of them count.
    let shape = match wide {
        Some(wide) if wide.right > 0 => PairShape { dim: wide.right, ..plan.folding.shape },
        _ => plan.folding.shape,
    };
    format!(
        "{}{}{}enum {{ {} }};\n\
         struct Input {{ const void* base; i64 row, component; }};\n\
         struct Inputs {{ Input at[{}]; u64 numbers[{}]; }};\n{}",
        if plan.asked.is_some() { "#define ASKS\n" } else { "" },
        types(plan),
        of_points.unwrap_or_default(),
        list(
            of_states(plan, shape, loops)
                .chain(own)
                .chain(chunks)
                .chain(centred)
                .chain(asked)
                .chain(of_tiles)
        ),
        plan.sections.tape.inputs().len().max(1),
        plan.arguments().count().max(1),
        plan.sections
            .long
            .as_ref()
            .map_or("", |_| "#define DEPTH(k) ((u32)in.numbers[LENGTHS_AT + (k)])\n")
    )
}

/// The inputs that are points. Where threads compute squares of others, or none, nobody asks.
fn points(plan: &Plan<'_>) -> [SlotId; 2] {
    let square = plan.sections.square;
    square.and_then(|square| square.inputs(plan.sections.tape)).unwrap_or_default()
}

/// Names and sizes of a plan on tensor cores.
fn tiles(plan: &Plan<'_>, wide: Wide) -> [(&'static str, usize); 18] {
    let Wide {
        groups, stages, resident, depths, shallow, leaves_per_tile, right, stage, kept, ..
    } = wide;
    let differs = plan.right.as_ref().is_some_and(|right| right.of.difference.is_some());
    let square = plan.sections.square.as_ref();
    let [x, y] = points(plan);
    [
        ("GROUPS", groups),
        ("COLUMNS", plan.tiling.tile),
        ("STAGES", stages),
        ("STAGE_BYTES", stage),
        ("KEPT_BYTES", kept),
        ("RESIDENT", resident.into()),
        ("DEPTHS", depths),
        ("SHALLOW", shallow.into()),
        ("PARTS", leaves_per_tile),
        ("LEAVE", square.and_then(Square::leave).unwrap_or(SIDE)),
        ("OUTSIDE", square.is_some_and(|square| square.outside.is_some()).into()),
        ("PRODUCT", square.is_some_and(Square::is_product).into()),
        ("POINT_X", x.into()),
        ("POINT_Y", y.into()),
        ("RIGHT", right),
        ("WAITING", WAITING),
        ("EIGHT", EIGHT),
        ("DIFFERS", differs.into()),
    ]
}

/// Names of what is known of exponents: whether shifted sums are of powers of two, for which the card has an instruction,
/// and whether exponents are `bounded`.
fn exponential(folding: &Folding, bounded: bool) -> String {
    let cheap = !folding.strict && folding.accumulates == DType::Float32;
    format!("enum {{ BINARY = {}, BOUNDED = {} }};\n", u8::from(cheap), u8::from(bounded))
}

/// The state, the state of merged ranges with its wide indices, and the result of both. `merges` says that the kernel
/// takes no pairs.
fn states(plan: &Plan<'_>, merges: bool) -> String {
    let folding = &plan.folding;
    let sums = |count: &str, shared: bool| match folding.compensated {
        true => format!("Kahan<{count}>"),
        false if shared => format!("Cascade<{count}, ROWS>"),
        false => format!("Cascade<{count}>"),
    };
    let best = match folding.shape.k {
        1 => "Best",
        _ if plan.tiling.team > 1 => "Team",
        _ => "Ranked",
    };
    // Of the state that takes pairs: whether its levels are in shared memory, and whether it follows a slice of ranks.
    let ranks = plan.slices.is_some_and(|slices| slices.of == Of::Ranks);
    let shared = |pairs: bool| pairs && plan.shares_levels;
    let follows = |pairs: bool| if pairs && ranks { ", true" } else { "" };
    let state = |index: &str, columns: &str, pairs: bool| match folding.monoid() {
        Monoid::Add => format!("Added<{} >", sums(columns, shared(pairs))),
        Monoid::Multiply => "Plain<Multiplied>".to_owned(),
        Monoid::Any => "Plain<AnyTrue>".to_owned(),
        Monoid::All => "Plain<AllTrue>".to_owned(),
        Monoid::Count => format!("Counted<{}>", if shared(pairs) { "ROWS" } else { "0" }),
        Monoid::Smallest => format!("{best}<false, {index}{}>", follows(pairs)),
        Monoid::Largest => format!("{best}<true, {index}{}>", follows(pairs)),
        // States of ranges are few, and a thread has no registers for levels of many sums.
        Monoid::Shifted if index == "i64" && folding.seldom_bytes() > 0 => {
            "Shifted<Kahan<1 + WEIGHTS> >".to_owned()
        }
        Monoid::Shifted => format!("Shifted<{} >", sums("1 + WEIGHTS", shared(pairs))),
    };
    // The sums that a reduction is about: the weighted ones, or the plain one without weights.
    let first = if folding.shape.weights == 0 { 1 } else { 2 };
    let result = match folding.fold.row().finish {
        _ if !folding.finish => "s.value(k)".to_owned(),
        _ if folding.logarithm => "log(s.value(k))".to_owned(),
        Finish::AsIs => "s.value(k)".to_owned(),
        Finish::OverCount => "s.value(k) / count".to_owned(),
        Finish::LogSums => format!("s.value(0) + log(s.value({first} + k))"),
        Finish::ShiftedSums => format!("k == 0 ? s.value(0) : s.value({first} - 1 + k)"),
        Finish::SoftMean => format!("s.value({first} + k) / s.value(1)"),
    };
    let columns = if plan.difference.is_some() && !merges { "DIM + 1" } else { "DIM" };
    format!(
        "typedef {} State;\ntypedef {} Merged;\n\
         template <class S> FN A result(const S& s, int k, A count) {{ return {result}; }}\n",
        state("i32", columns, !merges),
        state("i64", "DIM", false)
    )
}

/// Functions of right-hand sides: the sections of their formula, and their product with weights.
fn sides(right: &Sides<'_>, first_argument: usize) -> Result<String> {
    let sections = &right.sections;
    let operations = tape::operations(sections.tape, |id, dtype| !has_own_text(id, dtype));
    let printer = Printer { sections, first_argument };
    let of_sections = printer.of_sections(false)?;
    let output = sections.tape.outputs()[0];
    let made = printer.made(&[output], Per::J)?;
    let number = printer.number(output, "k", Per::J);
    let product = product_with_sides(right.of.columns());
    Ok(format!(
        "namespace right {{\n{operations}{of_sections}\
         FN f32 side(const Inputs& in, const u64 (&at)[OPERANDS], const Once& p, i64 j, const OfJ& y, u32 k) \
         {{ {made}return {number}; }}\n}}\n{product}"
    ))
}

/// The function that multiplies 64 x 32 weights by the right-hand sides of 32 j: tails by heads, heads by tails, heads by
/// heads. It is one statement: with one for each instruction the compiler takes a quarter longer, of 128 columns.
fn product_with_sides(columns: usize) -> String {
    let places = columns / 2;
    let list = |from: usize, count: usize| {
        (from..from + count).map(|k| format!("%{k}")).collect::<Vec<_>>().join(",")
    };
    // Operands: the sums, tails and heads of weights, and where heads and tails of right-hand sides are.
    let [tails, heads, b] = [0, 16, 32].map(|from| places + from);
    let product = |a: usize, b: usize, add: &str| {
        format!(
            "        \"wgmma.mma_async.sync.aligned.m64n{columns}k8.f32.tf32.tf32 {{{d}}}, {{{a}}}, %{b}, {add}, 1, 1;\"\n",
            d = list(0, places),
            a = list(a, 4),
        )
    };
    let each = |a: usize, b: usize, first: &'static str| {
        (0..4).map(move |q| product(a + 4 * q, b + q, if q == 0 { first } else { "all" }))
    };
    let products: String = each(tails, b, "none")
        .chain(each(heads, b + 4, "all"))
        .chain(each(heads, b, "all"))
        .collect();
    let sums: Vec<String> = (0..places).map(|k| format!("\"+f\"(d[{k}])")).collect();
    let weights = |of: &str| -> Vec<String> {
        (0..16).map(|k| format!("\"r\"({of}[{}][{}])", k / 4, k % 4)).collect()
    };
    let tiles =
        |of: &str| -> Vec<String> { (0..4).map(|q| format!("\"l\"({of} + {})", 2 * q)).collect() };
    let given = [weights("tails"), weights("heads"), tiles("b"), tiles("tails_b")].concat();
    format!(
        "FN void multiply_right(f32 (&d)[{places}], const u32 (&heads)[4][4], const u32 (&tails)[4][4], u64 b, u64 tails_b) {{\n\
         \x20   asm volatile(\"{{ .reg .pred none, all; setp.ne.b32 none, 0, 0; setp.eq.b32 all, 0, 0;\"\n\
         {products}\
         \x20       \"}}\"\n\
         \x20       : {sums}\n\
         \x20       : {given});\n}}\n",
        sums = sums.join(", "),
        given = given.join(", "),
    )
}
