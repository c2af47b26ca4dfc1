//! The sections of a tape as structures and device functions.
//!
//! A slot `%7` is an array `s7`: local to its function, or a member of the structure of its section
//! (`p` once, `x` of i, `y` of j). In the section of pairs every array has one row for each of the
//! j that are computed together. Called by `print`.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write;

use tilework_error::Result;
use tilework_ops::{DType, Id};
use tilework_tape::{Action, Contraction, Input, Per, SlotId, Step};

use super::arguments;
use super::folding::Folding;
use super::plan::Plan;
use super::sections::{self, LONG, Sections};
use super::tiling::AHEAD_BYTES;
use crate::source::{constant, storage, tape, value};

/// Products of a contraction up to which its loops are unrolled.
const UNROLLED: u32 = 512;

/// What a kernel does with pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Folds the values of the formula.
    Fold,
    /// Looks for the smallest squares.
    Sift,
    /// Multiplies the formula's number, as a weight, by right-hand sides.
    Weigh,
}

/// Prints functions of sections.
pub(super) struct Printer<'p, 'a> {
    pub(super) sections: &'p Sections<'a>,
    /// The number of its first argument among those of the kernel.
    pub(super) first_argument: usize,
}

impl Printer<'_, '_> {
    /// All functions of a plan: those of the sections, and what is done with a group of pairs.
    pub(super) fn functions(&self, plan: &Plan<'_>) -> Result<String> {
        let (folding, does) = (&plan.folding, plan.does());
        let mut text = self.of_sections(plan.difference.is_some())?;
        let by_tiles = does != Does::Fold || self.sections.by_tiles();
        if by_tiles {
            let scale = match self.sections.square {
                // An inner product is part of a square that is scaled so.
                Some(square) if square.is_product() => {
                    format!("-0.5 * (f64){}", self.scale(square))
                }
                Some(square) => format!("(f64){}", self.scale(square)),
                None => "1".to_owned(),
            };
            text += &format!("FN f64 scale(const Once& p) {{ return {scale}; }}\n");
        }
        let given = match &self.sections.long {
            _ if by_tiles => "const T (&square)[G], ",
            Some(long) => {
                text += &self.numbers(long);
                "const Numbers (&numbers)[G], "
            }
            None => "",
        };
        let pair = format!("const Once& p, const OfI& x, const OfJ* y, {given}");
        let steps = self.steps(Per::Pair)?;
        match does {
            Does::Sift => {}
            Does::Weigh => {
                let weight = self.value(self.sections.tape.outputs()[0], Per::Pair);
                let row = self.sections.tape.outputs().get(1);
                let row = row.map_or("1".to_owned(), |&slot| self.value(slot, Per::I));
                text += &format!(
                    "template <int G> FN void weigh({pair}T (&w)[G]) {{\n{steps}\
                     \x20   EACH(u, G) {{ const int k = 0; w[u] = {weight}; }}\n}}\n\
                     FN T of_row(const OfI& x) {{ return {row}; }}\n"
                );
            }
            Does::Fold => {
                text += &format!(
                    "template <int G> FN void fold({pair}State& s, i32 j) {{\n{steps}{}}}\n",
                    self.fold(folding)?
                );
                text += &self.complete(plan);
                text += &self.prepare();
                text += &self.chunks()?;
            }
        }
        Ok(text)
    }

    /// The structures of the sections, and the functions that fill them. `differences` says that columns become these.
    pub(super) fn of_sections(&self, differences: bool) -> Result<String> {
        let mut text = String::new();
        // Tiles of j are copied with their rows, two at a time: less room for them is better.
        let aligned = if self.sections.together { 16 } else { 8 };
        let of_j = format!("alignas({aligned}) OfJ");
        let held = self.sections.bytes(Per::J);
        let bytes = held.max(1).next_multiple_of(aligned);
        // What is copied as bytes has no byte that nobody wrote.
        let rest = match bytes - held {
            0 => String::new(),
            _ if self.sections.together => String::new(),
            rest => format!("u8 rest[{rest}]; "),
        };
        for (per, name, rest) in
            [(Per::Once, "Once", ""), (Per::I, "OfI", ""), (Per::J, &of_j, &rest)]
        {
            text += &format!("struct {name} {{ {}{rest}}};\n", self.members(per));
        }
        text += &format!("static_assert(sizeof(OfJ) == {bytes}, \"as room is made for it\");\n");
        let inputs = "const Inputs& in, const u64 (&at)[OPERANDS]";
        let sums = if self.sections.long.is_some() { "const T* sums, " } else { "" };
        for (per, head) in [
            (Per::Once, format!("once({inputs}, Once& p)")),
            (Per::I, format!("of_i({inputs}, const Once& p, i64 i, OfI& x)")),
            (Per::J, format!("of_j({inputs}, const Once& p, i64 j, {sums}OfJ& y)")),
        ] {
            let (loads, steps, norms) =
                (self.loads(per), self.steps(per)?, self.norms(per, differences));
            text += &format!("FN void {head} {{\n{loads}{steps}{norms}}}\n");
        }
        text += &self.about()?;
        if self.sections.together {
            text += &format!(
                "FN void bring_long({inputs}, i64 j, int count, OfJ* tile) {{\n{}}}\n",
                self.long_loads()
            );
        }
        Ok(text)
    }

    /// The members of a section's structure, wider numbers first, so that there is no gap between them.
    fn members(&self, per: Per) -> String {
        let size = |slot: SlotId| self.sections.tape.slot(slot).dtype.size();
        let own = self.sections.norm().map_or(0, DType::size);
        let moved = self.sections.square.and_then(|square| square.moved);
        let held = self.sections.held_by(per).filter(|slot| Some(*slot) != moved);
        let mut held: Vec<SlotId> = held.collect();
        held.sort_by_key(|&slot| Reverse(size(slot)));
        let declared = |fits: &dyn Fn(usize) -> bool| -> String {
            let slots = held.iter().filter(|&&slot| fits(size(slot)));
            slots.map(|&slot| self.declaration(slot, per)).collect()
        };
        [
            declared(&|size| size > own && own > 0),
            self.first_members(per),
            declared(&|size| size == own || own == 0),
            self.last_members(per),
            declared(&|size| size < own),
        ]
        .concat()
    }

    /// The declaration of the array of a slot.
    pub(super) fn declaration(&self, slot: SlotId, inside: Per) -> String {
        let held = self.sections.tape.slot(slot);
        let group = if inside == Per::Pair { "[G]" } else { "" };
        format!("{} s{slot}{group}[{}]; ", storage(held.dtype), held.len)
    }

    /// The array of a slot, seen from a section.
    pub(super) fn array(&self, slot: SlotId, inside: Per) -> String {
        let at = usize::from(slot);
        let whose = match (self.sections.per[at], self.sections.held[at]) {
            (Per::Pair, _) => return format!("s{slot}[u]"),
            (Per::Once, true) => "p.",
            (Per::I, true) => "x.",
            (Per::J, true) if inside == Per::Pair => "y[u * LANES].",
            (Per::J, true) => "y.",
            (_, false) => "",
        };
        format!("{whose}s{slot}")
    }

    /// Number `k` of a slot, seen from a section.
    pub(super) fn number(&self, slot: SlotId, k: &str, inside: Per) -> String {
        if let Some(number) = self.sections.constant(slot) {
            return constant(number);
        }
        if self.sections.passing[usize::from(slot)] {
            return format!("e{slot}");
        }
        if self.sections.is_unheld(slot) {
            return self.load(slot, self.sections.per[usize::from(slot)]);
        }
        let place = if self.sections.tape.slot(slot).len == 1 { "0" } else { k };
        format!("{}[{place}]", self.array(slot, inside))
    }

    /// Number `k` of a slot as the value that is computed with.
    pub(super) fn value(&self, slot: SlotId, inside: Per) -> String {
        format!("widen({})", self.number(slot, "k", inside))
    }

    /// A loop along `len` numbers, whose body needs these slots' numbers.
    pub(super) fn along(
        &self,
        len: u32,
        needs: &[SlotId],
        body: &str,
        inside: Per,
    ) -> Result<String> {
        let made = self.made(needs, inside)?;
        let along = match self.sections.depth(len) {
            Some(depth) => format!("PRAGMA(unroll 4) for (u32 k = 0; k < {depth}; k++)"),
            None => format!("ALONG(k, {len})"),
        };
        Ok(format!("    {along} {}{{ {made}{body} }}\n", group(inside)))
    }

    /// Statements that make number `k` of all slots that numbers `k` of these are made of on the way.
    pub(super) fn made(&self, needs: &[SlotId], inside: Per) -> Result<String> {
        let (mut slots, mut text) = (BTreeSet::new(), String::new());
        needs.iter().for_each(|&slot| self.passing(slot, &mut slots));
        for slot in slots {
            if let Some(step) = self.sections.step(slot) {
                let number = |operand: SlotId| self.number(operand, "k", inside);
                let made = self.expression(slot, step, inside, &number)?;
                write!(text, "{} e{slot} = {made}; ", storage(step.slot.dtype)).ok();
            }
        }
        Ok(text)
    }

    /// The expression of a number of a step's slot, by the `number` of each operand.
    pub(super) fn expression(
        &self,
        slot: SlotId,
        step: &Step,
        inside: Per,
        number: &dyn Fn(SlotId) -> String,
    ) -> Result<String> {
        if self.sections.square.is_some_and(|square| square.is_power(step)) {
            // log2(e) is in the number that its exponent is multiplied by.
            let power = Step { action: Action::Apply(Id::Exp2Pair), ..step.clone() };
            return tape::expression(self.sections.tape, &power, &number);
        }
        let made = tape::expression(self.sections.tape, step, &number)?;
        let made = match inside == Per::Pair && self.sections.together {
            true => made.replace("op_exp2_pair_f64", "exp2_of_pair"),
            false => made,
        };
        Ok(match self.sections.is_root_of_exponent(slot) {
            true => made.replace("op_sqrt_pair_f32", "root_of_exponent"),
            false => made,
        })
    }

    /// The function that brings what pairs need to shared memory: the table of an exponential in double precision, if any.
    fn prepare(&self) -> String {
        let rooted = |step: &Step| {
            step.action == Action::Apply(Id::Exp2Pair) && step.slot.dtype == DType::Float64
        };
        let vectors = self.sections.long.iter().flat_map(|long| &long.vectors);
        let vectors = vectors.filter(|&&slot| self.sections.per[usize::from(slot)] == Per::Pair);
        let mut steps = (self.sections.steps(Per::Pair).map(|(_, step)| step))
            .chain(vectors.filter_map(|&slot| self.sections.step(slot)));
        match self.sections.together && steps.any(rooted) {
            true => "FN void prepare() { bring_roots(THREADS); }\n".to_owned(),
            false => "FN void prepare() {}\n".to_owned(),
        }
    }

    /// Adds to `made` this slot and those that it is made of, as far as they are made on the way.
    fn passing(&self, slot: SlotId, made: &mut BTreeSet<SlotId>) {
        if !self.sections.passing[usize::from(slot)] || !made.insert(slot) {
            return;
        }
        if let Some(step) = self.sections.step(slot) {
            step.operands.iter().for_each(|&operand| self.passing(operand, made));
        }
    }

    /// Loops that read the inputs of a section from memory.
    pub(super) fn loads(&self, per: Per) -> String {
        let mut text = String::new();
        for (k, input) in self.sections.tape.inputs().iter().enumerate() {
            let slot = k as SlotId;
            let elsewhere = self.is_long_input(slot) || self.sections.is_point(slot);
            if input.per != per || elsewhere || !self.is_used(slot) {
                continue;
            }
            if !self.sections.held[k] {
                text += &format!("    {}\n", self.declaration(slot, per));
            }
            let (len, to) = (input.slot.len, self.array(slot, per));
            let along = if self.is_read_in_place(slot) { "SOME_ALONG" } else { "ALONG" };
            text += &format!("    {along}(k, {len}) {to}[k] = {};\n", self.load(slot, per));
        }
        text
    }

    /// Whether anything is made of a slot, or it is an output. Not all are: right-hand sides have all inputs of a formula.
    fn is_used(&self, slot: SlotId) -> bool {
        let tape = self.sections.tape;
        self.sections.held[usize::from(slot)]
            || !tape.users(slot).is_empty()
            || tape.outputs().contains(&slot)
    }

    /// Whether an input goes to shared memory as it is read, where loops can count through it: an input of j that is more
    /// than threads hold in registers, in kernels that need j for pairs alone.
    fn is_read_in_place(&self, slot: SlotId) -> bool {
        let Sections { tape, per, held, together, square, .. } = self.sections;
        let place = usize::from(slot);
        per[place] == Per::J
            && held[place]
            && *together
            && square.is_none()
            && sections::bytes(tape, slot) > AHEAD_BYTES
    }

    /// Number `k` of an input's row, from memory.
    pub(super) fn load(&self, slot: SlotId, per: Per) -> String {
        let row = match per {
            Per::I => " + i * in.at[K].row",
            Per::J => " + j * in.at[K].row",
            _ => "",
        };
        let number = storage(self.sections.tape.slot(slot).dtype);
        let load =
            format!("((const {number}*)in.at[K].base)[(i64)at[K]{row} + k * in.at[K].component]");
        load.replace('K', &slot.to_string())
    }

    /// Whether all threads bring an input of j together.
    fn is_long_input(&self, slot: SlotId) -> bool {
        let input = self.sections.tape.inputs().get(usize::from(slot));
        let long = |input: &Input| input.per == Per::J && input.slot.len > LONG;
        self.sections.together && !self.sections.is_point(slot) && input.is_some_and(long)
    }

    /// Loops that bring long inputs of j to a tile: neighbouring threads bring neighbouring numbers.
    fn long_loads(&self) -> String {
        let inputs = self.sections.tape.inputs().iter().enumerate();
        let long = inputs.filter(|(k, _)| self.is_long_input(*k as SlotId));
        let load = |(k, input): (usize, &Input)| {
            format!(
                "    for (int e = threadIdx.x; e < count * {len}; e += THREADS) {{\n\
                 \x20       int t = e / {len}, c = e % {len};\n\
                 \x20       tile[t].s{k}[c] = ((const {number}*)in.at[{k}].base)[(i64)at[{k}] + \
                 (j + t) * in.at[{k}].row + c * in.at[{k}].component];\n    }}\n",
                len = input.slot.len,
                number = storage(input.slot.dtype)
            )
        };
        long.map(load).collect()
    }

    /// The steps of a section, in order.
    pub(super) fn steps(&self, inside: Per) -> Result<String> {
        let mut text = String::new();
        for (slot, step) in self.sections.steps(inside) {
            let constant = self.sections.constant(slot).is_some();
            if constant || self.sections.passing[usize::from(slot)] {
                continue;
            }
            if inside == Per::Pair || !self.sections.held[usize::from(slot)] {
                text += &format!("    {}\n", self.declaration(slot, inside));
            }
            text += &self.step(slot, step, inside)?;
        }
        Ok(text)
    }

    /// The statements of a step.
    fn step(&self, slot: SlotId, step: &Step, inside: Per) -> Result<String> {
        let (to, len, each) = (self.array(slot, inside), step.slot.len, group(inside));
        let operands = &step.operands[..];
        if let Some(text) = self.expanded_step(slot, inside)? {
            return Ok(text);
        }
        if let Some(long) = &self.sections.long {
            if let Some(place) = long.numbers.iter().position(|&number| number == slot) {
                return Ok(format!("    {each}{to}[0] = numbers[u].at[{place}];\n"));
            }
            if let Some(place) = long.of_j.iter().position(|&sum| sum == slot) {
                return Ok(format!("    {to}[0] = sums[{place}];\n"));
            }
        }
        let length = |operand: SlotId| self.sections.tape.slot(operand).len;
        // Copies `count` numbers of an operand, from one place on to another.
        let copied = |operand: SlotId, from: u32, at: u32, count: u32| {
            let number = self.number(operand, &format!("k + {from}"), inside);
            self.along(count, &[operand], &format!("{to}[k + {at}] = {number};"), inside)
        };
        Ok(match &step.action {
            Action::Constant(_) => match self.sections.arguments.binary_search(&slot) {
                Ok(k) => {
                    let number = arguments::text(step.slot.dtype, self.first_argument + k);
                    format!("    ALONG(k, {len}) {to}[k] = {number};\n")
                }
                Err(_) => String::new(),
            },
            Action::Apply(_) | Action::Cast | Action::Select => {
                let number = |operand: SlotId| self.number(operand, "k", inside);
                let made = self.expression(slot, step, inside, &number)?;
                self.along(len, operands, &format!("{to}[k] = {made};"), inside)?
            }
            Action::Extract(start) => copied(operands[0], *start, 0, len)?,
            Action::Concat => {
                let (mut text, mut at) = (String::new(), 0);
                for &operand in operands {
                    text += &copied(operand, 0, at, length(operand))?;
                    at += length(operand);
                }
                text
            }
            Action::Place(start) => {
                let zero = constant(&tilework_ops::Scalar::zero(step.slot.dtype));
                let zeros = self.along(len, &[], &format!("{to}[k] = {zero};"), inside)?;
                zeros + &copied(operands[0], 0, *start, length(operands[0]))?
            }
            Action::Dot => {
                let [a, b] = [0, 1].map(|k| self.value(operands[k], inside));
                let body = format!("{to}[0] = fma({a}, {b}, {to}[0]);");
                let sum = self.along(length(operands[0]), operands, &body, inside)?;
                format!("    {each}{to}[0] = 0;\n{sum}")
            }
            Action::Fold(fold) => {
                let dtype = self.sections.tape.slot(operands[0]).dtype;
                let name = format!("{fold:?}<{}>", value(dtype));
                let (rows, state) = match inside {
                    Per::Pair => ("[G]", format!("t{slot}[u]")),
                    _ => ("", format!("t{slot}")),
                };
                let number = self.value(operands[0], inside);
                let body = format!("{state} = {name}::step({state}, {number}, k);");
                let count = length(operands[0]);
                let stepped = self.along(count, operands, &body, inside)?;
                let count = self.sections.depth(count).unwrap_or(count.to_string());
                let result = storage(step.slot.dtype);
                format!(
                    "    {name}::State t{slot}{rows};\n    {each}{state} = {name}::init();\n{stepped}\
                     \x20   {each}{to}[0] = narrow<{result}>({name}::finish({state}, {count}, 0));\n"
                )
            }
            Action::Contract(contraction) => self.contract(&to, contraction, operands, inside),
        })
    }

    /// A contraction as nested loops: free axes of the left, free axes of the right, summed axes.
    fn contract(
        &self,
        to: &str,
        contraction: &Contraction,
        operands: &[SlotId],
        inside: Per,
    ) -> String {
        let Contraction { left, right, over } = contraction;
        let stride = |shape: &[u32], axis: usize| shape[axis + 1..].iter().product::<u32>();
        let products = left.iter().product::<u32>().saturating_mul(
            (0..right.len())
                .filter(|axis| over.iter().all(|(_, r)| usize::from(*r) != *axis))
                .map(|axis| right[axis])
                .product(),
        );
        let each = if products <= UNROLLED { "EACH" } else { "LOOP" };
        let (mut free, mut summed) = (String::new(), String::new());
        let (mut place, mut at_left, mut at_right) =
            ("0".to_owned(), "0".to_owned(), "0".to_owned());
        for (axis, &size) in left.iter().enumerate() {
            match over.iter().position(|(l, _)| usize::from(*l) == axis) {
                Some(pair) => {
                    summed += &format!("{each}(o{pair}, {size}) ");
                    at_left += &format!(" + o{pair} * {}", stride(left, axis));
                    let other = usize::from(over[pair].1);
                    at_right += &format!(" + o{pair} * {}", stride(right, other));
                }
                None => {
                    free += &format!("{each}(l{axis}, {size}) ");
                    place = format!("({place}) * {size} + l{axis}");
                    at_left += &format!(" + l{axis} * {}", stride(left, axis));
                }
            }
        }
        for (axis, &size) in right.iter().enumerate() {
            if over.iter().all(|(_, r)| usize::from(*r) != axis) {
                free += &format!("{each}(r{axis}, {size}) ");
                place = format!("({place}) * {size} + r{axis}");
                at_right += &format!(" + r{axis} * {}", stride(right, axis));
            }
        }
        let group = group(inside);
        let [a, b] = [(0, &at_left), (1, &at_right)]
            .map(|(k, at)| format!("widen({})", self.number(operands[k], at, inside)));
        format!(
            "    {free}{{ const int to = {place}; {group}{to}[to] = 0; \
             {summed}{group}{to}[to] = fma({a}, {b}, {to}[to]); }}\n"
        )
    }

    /// Statements that give the values of a group of pairs to the state.
    fn fold(&self, folding: &Folding) -> Result<String> {
        let mut text = String::new();
        let mut at = 0;
        for term in &self.sections.terms {
            if let (Some(columns), Some(factor)) = (term.across, term.factor) {
                text += &self.fold_across([term.slot, factor], [term.len / columns, columns], at);
                at += term.len;
                continue;
            }
            let needs: Vec<SlotId> = [Some(term.slot), term.factor].into_iter().flatten().collect();
            let numbers: Vec<String> =
                needs.iter().map(|&slot| self.value(slot, Per::Pair)).collect();
            let body = format!("s.add({at} + k, {});", numbers.join(", "));
            text += &self.along(term.len as u32, &needs, &body, Per::Pair)?;
            at += term.len;
        }
        if !self.sections.terms.is_empty() {
            return Ok(text);
        }
        text += "    T v[G][DIM], w[G][WEIGHTS + 1];\n";
        let names = ["v", "w"].iter().zip(self.sections.tape.outputs());
        for ((name, &slot), len) in names.zip([folding.shape.dim, folding.shape.weights]) {
            let body = format!("{name}[u][k] = {};", self.value(slot, Per::Pair));
            text += &self.along(len as u32, &[slot], &body, Per::Pair)?;
        }
        Ok(text + "    s.template steps<G>(v, w, j);\n")
    }

    /// Loops that add an outer product to sums, the first of which is `at` this place. No array holds it, since nothing
    /// else needs it.
    fn fold_across(&self, factors: [SlotId; 2], [rows, columns]: [usize; 2], at: usize) -> String {
        let each = if rows * columns <= UNROLLED as usize { "EACH" } else { "LOOP" };
        let [a, b] = [(0, "l"), (1, "r")]
            .map(|(k, at)| format!("widen({})", self.number(factors[k], at, Per::Pair)));
        format!(
            "    {each}(l, {rows}) {each}(r, {columns}) {{ {}s.add({at} + l * {columns} + r, {a}, {b}); }}\n",
            group(Per::Pair)
        )
    }
}

/// The loop over the j that are computed together.
fn group(inside: Per) -> &'static str {
    if inside == Per::Pair { "EACH(u, G) " } else { "" }
}
