//! A tape of numbers as a device function, printed from the rows' CUDA expressions.
//!
//! A slot is a variable of the type that its dtype has in memory; an operation widens its operands,
//! computes, and rounds once, as everywhere. Assumes slots of length 1, which is what maps over
//! arrays have.

use std::collections::BTreeSet;
use std::fmt::Write;

use tilework_error::{Error, Result};
use tilework_ops::{COUNT, DType, Id, each_op};
use tilework_tape::{Action, SlotId, Step, Tape};

use super::{constant, storage, value};

macro_rules! operand_names {
    ($([[$($doc:tt)+] $Type:ident $name:ident [$($operand:ident),+] $gives:ident $($mark:ident)?])+) => {
        /// The operands of each row, as its CUDA expression names them.
        static OPERANDS: [&[&str]; COUNT] = [$(&[$(stringify!($operand)),+]),+];
    };
}

each_op!(operand_names);

/// Declares the tape as `body`, with one argument for each input.
pub(crate) fn function(tape: &Tape) -> Result<String> {
    let mut text = operations(tape, |_, _| true);
    let output = tape.outputs()[0];
    let arguments: Vec<String> = (tape.inputs().iter().enumerate())
        .map(|(k, input)| format!("{} x{k}", storage(input.slot.dtype)))
        .collect();
    let result = storage(tape.slot(output).dtype);
    line(&mut text, format_args!("FN {result} body({}) {{", arguments.join(", ")));
    for (k, step) in tape.steps().iter().enumerate() {
        let slot = tape.inputs().len() + k;
        let expression = expression(tape, step, &|slot| format!("x{slot}"))?;
        line(&mut text, format_args!("    {} x{slot} = {expression};", storage(step.slot.dtype)));
    }
    line(&mut text, format_args!("    return x{output};\n}}"));
    Ok(text)
}

/// The operations that a tape applies, as device functions; those that `wanted` leaves out are
/// declared elsewhere.
pub(crate) fn operations(tape: &Tape, wanted: impl Fn(Id, DType) -> bool) -> String {
    let calls = tape.steps().iter().filter_map(|step| match step.action {
        Action::Apply(id) => Some((id, tape.slot(step.operands[0]).dtype)),
        _ => None,
    });
    let calls: BTreeSet<(Id, DType)> = calls.filter(|&(id, dtype)| wanted(id, dtype)).collect();
    calls.into_iter().map(|(id, dtype)| operation(id, dtype)).collect()
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

/// What a step makes of numbers, as they lie in memory; `number` names that of a slot.
pub(crate) fn expression(
    tape: &Tape,
    step: &Step,
    number: &dyn Fn(SlotId) -> String,
) -> Result<String> {
    let to = storage(step.slot.dtype);
    let operands: Vec<String> =
        step.operands.iter().map(|&operand| format!("widen({})", number(operand))).collect();
    Ok(match &step.action {
        Action::Apply(id) => {
            let name = function_name(*id, tape.slot(step.operands[0]).dtype);
            format!("narrow<{to}>({name}({}))", operands.join(", "))
        }
        Action::Cast => format!("cast<{to}>({})", operands[0]),
        // Moves and does not compute: bits stay.
        Action::Select => {
            let [then, otherwise] = [1, 2].map(|k| number(step.operands[k]));
            format!("{} ? {then} : {otherwise}", operands[0])
        }
        Action::Constant(value) => constant(value),
        other => {
            let message = format!("{other:?} is not a step on single numbers");
            return Err(Error::unsupported("cuda", message));
        }
    })
}

fn function_name(id: Id, dtype: DType) -> String {
    format!("op_{}_{}", id.row().name, value(dtype))
}

/// A row as a device function on values of a dtype.
fn operation(id: Id, dtype: DType) -> String {
    let row = id.row();
    let (name, result) = (function_name(id, dtype), value(row.result(dtype)));
    let operand = match dtype {
        _ if !wraps(id) || !dtype.is_integer() => value(dtype),
        _ if dtype.size() == 8 => "u64",
        _ => "u32",
    };
    let operands: Vec<String> =
        OPERANDS[id as usize].iter().map(|name| format!("{operand} {name}")).collect();
    // Functions of complex numbers are long; a kernel that moves packs would hold many copies.
    let long = dtype.is_complex() && row.cuda.contains('(');
    let kind = if long { "static __device__ __noinline__" } else { "FN" };
    let operands = operands.join(", ");
    format!("{kind} {result} {name}({operands}) {{ return ({result})({}); }}\n", row.cuda)
}

/// Whether the row's expression on integers is to be computed modulo 2^bits, which C++ does for
/// unsigned numbers only.
fn wraps(id: Id) -> bool {
    matches!(id, Id::Add | Id::Subtract | Id::Multiply | Id::Negative | Id::Square)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Width;
    use crate::source;

    /// Every row on one dtype in one source: its function, and a kernel that calls it.
    fn every_operation(dtype: DType) -> String {
        let mut text = source::begin(Width::Narrow, [dtype]);
        for id in Id::ALL.into_iter().filter(|id| id.row().takes(dtype)) {
            text += &operation(id, dtype);
            let (name, to) = (function_name(id, dtype), storage(id.row().result(dtype)));
            let from = storage(dtype);
            let operands: Vec<String> =
                (0..id.row().arity).map(|k| format!("widen(x[{k}])")).collect();
            let operands = operands.join(", ");
            line(
                &mut text,
                format_args!(
                    "extern \"C\" __global__ void k{}({to}* y, const {from}* x) {{ *y = narrow<{to}>({name}({operands})); }}",
                    id as u8
                ),
            );
        }
        text + source::END
    }

    /// Every cast between two dtypes in one source.
    fn every_cast() -> String {
        let mut text = source::begin(Width::Narrow, DType::ALL);
        for from in DType::ALL {
            for to in DType::ALL {
                let (x, y) = (storage(from), storage(to));
                line(
                    &mut text,
                    format_args!(
                        "extern \"C\" __global__ void {x}_{y}({y}* to, const {x}* from) {{ *to = cast<{y}>(widen(*from)); }}"
                    ),
                );
            }
        }
        text + source::END
    }

    #[test]
    fn every_operation_and_cast_compiles() {
        let mut sources: Vec<(String, String)> = DType::ALL
            .map(|dtype| (format!("operations on {dtype}"), every_operation(dtype)))
            .into();
        sources.push(("casts".to_owned(), every_cast()));
        crate::check::compiles(sources);
    }

    #[test]
    fn prints_what_it_means() {
        let tape = Tape::apply_to(Id::Add, &[DType::Int32, DType::Float16], DType::Float64);
        let text = function(&tape).unwrap();
        assert!(
            text.contains("FN f64 op_add_f64(f64 a, f64 b) { return (f64)(a + b); }"),
            "{text}"
        );
        assert!(text.contains("FN f64 body(i32 x0, f16 x1) {"), "{text}");
        assert!(text.contains("    f64 x2 = cast<f64>(widen(x0));"), "{text}");
        let text = function(&Tape::apply(Id::Multiply, DType::Int16)).unwrap();
        assert!(text.contains("(u32 a, u32 b) { return (i16)(a * b); }"), "wraps: {text}");
    }
}
