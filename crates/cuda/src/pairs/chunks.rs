//! What kernels of long vectors need beside the sections: the components of those that pairs are made of, and what they
//! are folded to, the numbers of a pair (`kernels/pairs_chunks.cu` says who calls these).
//!
//! Called by `functions`.

use std::fmt::Write;

use tilework_error::Result;
use tilework_ops::FoldId;
use tilework_tape::{Action, Per, SlotId, Step};

use super::functions::Printer;
use super::long::{Long, Pass};
use crate::source::storage;

impl Printer<'_, '_> {
    /// The structure of a pair's numbers, with what they are before the first component, and that of components.
    pub(super) fn numbers(&self, long: &Long) -> String {
        let before = |slot: SlotId| match self.sections.step(slot).and_then(fold) {
            Some(fold) => format!("{fold}::init()"),
            None => "0".to_owned(),
        };
        let begun = long.numbers.iter().enumerate();
        let begun: String =
            begun.map(|(k, &slot)| format!("at[{k}] = {}; ", before(slot))).collect();
        let count = long.numbers.len();
        format!(
            "struct Numbers {{ T at[{count}]; METHOD void init() {{ {begun}}} }};\n\
             template <int N> struct Components {{ T at[N]; }};\n"
        )
    }

    /// The functions of long vectors, component by component; no text where vectors are short.
    pub(super) fn chunks(&self) -> Result<String> {
        let Some(long) = &self.sections.long else { return Ok(String::new()) };
        let inputs = "const Inputs& in, const u64 (&at)[OPERANDS], const Once& p";
        let vectors = long.vectors_of();
        let mut text = format!(
            "enum {{ VECTORS_I = {}, VECTORS_J = {}, VECTORS_ONCE = {}, SUMS_OF_J = {}, OF_ROWS = {}, SCALED_J = {}, \
             VANISHES = {} }};\n",
            vectors[0],
            vectors[1],
            vectors[2],
            long.of_j.len(),
            u8::from(long.of_rows),
            u8::from(long.scaled[1]),
            u8::from(long.vanishes)
        );
        let depths = self.by_pass(long, |pass| Ok(format!("return DEPTH({});", pass.depth)))?;
        writeln!(text, "FN u32 depth_of(const Inputs& in, int pass) {{ {depths}return 0; }}").ok();
        for (place, name, arguments, inside) in [
            (0, "long_i", ", const OfI& x, i64 i", Per::I),
            (1, "long_j", ", const OfJ& y, i64 j", Per::J),
            (2, "long_once", "", Per::Once),
        ] {
            let numbers = self.by_pass(long, |pass| {
                let ends = pass.ends[place].iter().enumerate();
                let ends = ends.map(|(which, &end)| {
                    let (made, number) = (self.made(&[end], inside)?, self.value(end, inside));
                    Ok(format!("if (which == {which}) {{ {made}return {number}; }} "))
                });
                ends.collect()
            })?;
            let arguments = format!("{inputs}{arguments}, u32 k, int pass, int which");
            writeln!(text, "FN T {name}({arguments}) {{ {numbers}return 0; }}").ok();
        }
        let mut added = String::new();
        for (place, &slot) in long.of_j.iter().enumerate() {
            if let Some(step) = self.sections.step(slot) {
                let length = long.place_of(self.sections.tape.slot(step.operands[0]).len);
                let made = self.made(&step.operands, Per::J)?;
                let number = |operand: SlotId| self.value(operand, Per::J);
                let term = fold_to(step, &format!("sums[{place}]"), &number);
                let length = length.unwrap_or(0);
                write!(added, "if (length == {length}) {{ {made}{term} }} ").ok();
            }
        }
        let arguments = format!("{inputs}, i64 j, u32 k, int length, T (&sums)[SUMS_OF_J + 1]");
        writeln!(text, "FN void sum_of_j({arguments}) {{ {added}}}").ok();
        text += &self.of_pair(long)?;
        Ok(text)
    }

    /// A text for each pass, of which a kernel does the one that it asks for.
    fn by_pass(&self, long: &Long, text: impl Fn(&Pass) -> Result<String>) -> Result<String> {
        let passes = long.passes.iter().enumerate();
        passes.map(|(k, pass)| Ok(format!("if (pass == {k}) {{ {} }} ", text(pass)?))).collect()
    }

    /// The function that folds one component of each vector to the numbers of a pair: `a` has components of i, `b` of j,
    /// `c` of neither.
    fn of_pair(&self, long: &Long) -> Result<String> {
        let folded = self.by_pass(long, |pass| {
            let number = |slot: SlotId| match pass.end(slot) {
                Some((place, which)) => format!("{}.at[{which}]", ["a", "b", "c"][place]),
                None if long.has(slot) => format!("e{slot}"),
                None => self.number(slot, "0", Per::J),
            };
            let mut text = String::new();
            for &slot in &pass.made {
                if let Some(step) = self.sections.step(slot) {
                    let made = self.expression(slot, step, Per::Pair, &number)?;
                    write!(text, "{} e{slot} = {made}; ", storage(step.slot.dtype)).ok();
                }
            }
            for place in pass.numbers.clone() {
                if let Some(step) = self.sections.step(long.numbers[place]) {
                    let number = |slot: SlotId| format!("widen({})", number(slot));
                    text += &fold_to(step, &format!("numbers.at[{place}]"), &number);
                    text += " ";
                }
            }
            Ok(text)
        })?;
        Ok(format!(
            "FN void fold_along(const Once& p, const OfI& x, const OfJ& y, const Components<VECTORS_I>& a, \
             const Components<VECTORS_J>& b, const Components<VECTORS_ONCE>& c, Numbers& numbers, int pass) \
             {{ {folded}}}\n"
        ))
    }
}

/// The fold of a step, as `kernels/folds.cu` has it, where that is more than a sum.
fn fold(step: &Step) -> Option<String> {
    match step.action {
        Action::Fold(fold) if fold != FoldId::Sum => Some(format!("{fold:?}<T>")),
        _ => None,
    }
}

/// The statement that folds numbers of a step's operands to `sum`.
fn fold_to(step: &Step, sum: &str, number: &dyn Fn(SlotId) -> String) -> String {
    let numbers: Vec<String> = step.operands.iter().map(|&slot| number(slot)).collect();
    match (&step.action, fold(step)) {
        (Action::Dot, _) => format!("{sum} = fma({}, {sum});", numbers.join(", ")),
        (_, Some(fold)) => format!("{sum} = {fold}::step({sum}, {}, 0);", numbers.join(", ")),
        _ => format!("{sum} += {};", numbers.join(", ")),
    }
}
