//! Tapes for human eyes: one line a slot, grouped as the readers see them.

use std::fmt;

use crate::{Action, Per, Slot, SlotId, Tape};

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len {
            1 => write!(f, "{}", self.dtype),
            len => write!(f, "{}[{len}]", self.dtype),
        }
    }
}

impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Per::Once => "once",
            Per::I => "per i",
            Per::J => "per j",
            Per::Pair => "per pair",
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Apply(id) => write!(f, "{}", id.row().name),
            Action::Cast => write!(f, "cast"),
            Action::Select => write!(f, "select"),
            Action::Constant(value) => write!(f, "{}", value.to_number()),
            Action::Extract(start) => write!(f, "extract from {start}:"),
            Action::Concat => write!(f, "concat"),
            Action::Place(start) => write!(f, "place at {start}:"),
            Action::Fold(id) => write!(f, "{} along", id.row().name),
            Action::Dot => write!(f, "dot"),
            Action::Contract(c) => {
                write!(f, "contract {:?} x {:?} over {:?}:", c.left, c.right, c.over)
            }
        }
    }
}

impl fmt::Display for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = self.sections();
        for (id, input) in self.inputs().iter().enumerate() {
            writeln!(f, "{:<8}  %{id}: {} = input {id}", input.per, input.slot)?;
        }
        for (k, step) in self.steps().iter().enumerate() {
            let id = self.inputs().len() + k;
            write!(f, "{:<8}  %{id}: {} = {}", sections[id], step.slot, step.action)?;
            writeln!(f, "{}", list(&step.operands))?;
        }
        writeln!(f, "gives    {}", list(self.outputs()))
    }
}

fn list(slots: &[SlotId]) -> String {
    slots.iter().map(|id| format!(" %{id}")).collect()
}
