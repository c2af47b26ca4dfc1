//! Kernels as text: names of dtypes, constants, and what every source begins with.
//!
//! Everything is printed from typed data: dtypes, rows of the tables, bits of numbers. Called by
//! the rooms that do requests, when a kernel is not loaded yet.

pub(crate) mod tape;

use std::collections::HashSet;

use tilework_ops::{DType, Scalar};

use crate::launch::Width;

/// The type that elements of a dtype have in memory.
pub(crate) const fn storage(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "b8",
        DType::Float16 => "f16",
        DType::BFloat16 => "bf16",
        other => value(other),
    }
}

/// The type that a dtype computes in.
pub(crate) const fn value(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::Int8 => "i8",
        DType::Int16 => "i16",
        DType::Int32 => "i32",
        DType::Int64 => "i64",
        DType::UInt8 => "u8",
        DType::UInt16 => "u16",
        DType::UInt32 => "u32",
        DType::UInt64 => "u64",
        DType::Float16 | DType::BFloat16 | DType::Float32 => "f32",
        DType::Float64 => "f64",
        DType::Complex64 => "c64",
        DType::Complex128 => "c128",
    }
}

/// A constant as it lies in memory, from its bits.
pub(crate) fn constant(scalar: &Scalar) -> String {
    let dtype = scalar.dtype();
    let part = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(word);
        match dtype.part() {
            DType::Float32 => format!("__uint_as_float({bits}u)"),
            DType::Float64 => format!("__longlong_as_double((long long){bits}ull)"),
            part if part.is_integer() => format!("({}){bits}ull", storage(part)),
            part => format!("{}{{{bits}}}", storage(part)),
        }
    };
    let bytes = scalar.bytes();
    if dtype.is_complex() {
        let (re, im) = bytes.split_at(bytes.len() / 2);
        return format!("make({}, {})", part(re), part(im));
    }
    part(bytes)
}

/// What every source begins with: types, indices and loops of some width, and functions: on integers and complex numbers
/// only where there are some, since the compiler reads those on integers for as long as all else.
pub(crate) fn begin(width: Width, dtypes: impl IntoIterator<Item = DType>) -> String {
    begin_with(width, dtypes, true)
}

/// The same for a text that is known, which the compiler reads sooner where it names no function that few do.
pub(crate) fn begin_for(
    width: Width,
    dtypes: impl IntoIterator<Item = DType>,
    text: &str,
) -> String {
    begin_with(width, dtypes, names_a_function(text))
}

fn begin_with(width: Width, dtypes: impl IntoIterator<Item = DType>, functions: bool) -> String {
    let (mut whole, mut complex) = (false, false);
    for dtype in dtypes {
        whole |= dtype == DType::Bool || dtype.is_integer();
        complex |= dtype.is_complex();
    }
    let of_integers = if whole { include_str!("../kernels/integers.cu") } else { "" };
    let of_complex = if complex { include_str!("../kernels/complex.cu") } else { "" };
    let functions = functions || [of_integers, of_complex].into_iter().any(names_a_function);
    let parts = [
        include_str!("../kernels/types.cu"),
        include_str!("../kernels/real.cu"),
        if functions { FUNCTIONS } else { "" },
        of_integers,
        of_complex,
    ];
    let (axes, index) = (width.axes(), width.name());
    format!("#define AXES {axes}\n{}\ntypedef {index} I;\n", parts.concat())
}

const FUNCTIONS: &str = include_str!("../kernels/functions.cu");

/// Whether a text has the name of one of [`FUNCTIONS`], whatever it means there.
fn names_a_function(text: &str) -> bool {
    let functions: HashSet<&str> = FUNCTIONS.lines().filter_map(defined).collect();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).any(|word| functions.contains(word))
}

/// The name that a line of [`FUNCTIONS`] defines.
fn defined(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("FN ")?;
    after.split_once('(')?.0.rsplit(' ').next()
}

/// What every source ends with.
pub(crate) const END: &str = "\n}\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// One that is not seen would be the driver's own where it is named.
    #[test]
    fn all_functions_are_seen() {
        let all = FUNCTIONS.matches("FN ").count();
        assert_eq!(FUNCTIONS.lines().filter_map(defined).count(), all);
    }

    #[test]
    fn functions_are_there_where_they_are_named() {
        let begin = |text: &str| begin_for(Width::Wide, [DType::Float32], text);
        let has = |text: &str| begin(text).contains("FN f32 sinh(");
        for named in ["y = sinh(x);", "floor_divide(a, b)", "  logaddexp(a,b)", "tan(a)+1"] {
            assert!(has(named), "{named}");
        }
        for other in ["y = sqrt(x);", "substance(x)", "op_exp2_pair_f32(x)", "half_expected"] {
            assert!(!has(other), "{other}");
        }
        // Complex numbers need some.
        let begin = begin_for(Width::Wide, [DType::Complex64], "");
        assert!(begin.contains("FN f32 sinh("));
    }
}
