//! Examples for the methods that come from tables, made when somebody reads their documentation.
//!
//! A function shows the formula that it makes of two variables, a reduction what it gives for four
//! pairs; a new row has its example without a line. Called by `methods`.

use std::ffi::CString;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilework::Device;
use tilework::formula::functions::Takes;
use tilework::formula::methods::Method;
use tilework::formula::reduction::{ReductionRow, Weight};

const VARIABLES: &str = "x, y = tw.Vi(0, 4), tw.Vj(1, 4)";
const PAIRS: &str = "p = tw.asarray([[0.0], [3.0]]); d = (tw.Vi(p) - tw.Vj(p)).abs()";

/// Calls of functions that take more than further formulas of four components, or that would show
/// nothing of them.
const CALLS: &[(&str, &str)] = &[
    ("adjoint_operator", "x.exp().adjoint_operator(x, y)"),
    ("bspline", "x.bspline(tw.Vj(1, 1))"),
    ("clamp", "x.clamp(0, y)"),
    ("clampint", "x.clampint(0, 1)"),
    ("diff", "x.exp().diff(x, y)"),
    ("diffclampint", "x.diffclampint(0, 1)"),
    ("divergence", "x.exp().divergence(x)"),
    ("elem", "x.elem(1)"),
    ("elemt", "x.sqnorm2().elemt(4, 1)"),
    ("extract", "x.extract(1, 2)"),
    ("extractt", "x.extractt(1, 8)"),
    ("grad", "x.sqnorm2().grad(x, 1)"),
    ("grad_matrix", "x.sqnorm2().exp().grad_matrix(x)"),
    ("ifelse", "x.ifelse(y, 0)"),
    ("keops_kron", "x.keops_kron(y, [2, 2], [2, 2])"),
    ("keops_tensordot", "x.keops_tensordot(y, [2, 2], [2, 2], [1], [0])"),
    ("laplacian", "x.sqnorm2().exp().laplacian(x)"),
    ("matvecmult", "x.matvecmult(tw.Vj(1, 2))"),
    ("mod", "x.mod(3)"),
    ("one_hot", "tw.Vi(0, 1).one_hot(3)"),
    ("permute", "x.permute([2, 2], [1, 0])"),
    ("round", "x.round(2)"),
    ("sqnormiso", "x.sqnormiso(tw.Pm(1, 1))"),
    ("sum_lin_operator", "x.exp().sum_lin_operator(x)"),
    ("sumt", "tw.Vi(0, 1).sumt(3)"),
    ("symsqnorm", "x.symsqnorm(tw.Pm(1, 16))"),
    ("trace_operator", "x.exp().trace_operator(x)"),
    ("vecmatmult", "tw.Vi(0, 2).vecmatmult(y)"),
    ("where", "x.where(y, 0)"),
];

/// The example of a function.
pub fn of_function(py: Python<'_>, method: &Method) -> PyResult<String> {
    let call = match CALLS.iter().find(|(name, _)| *name == method.name) {
        Some((_, call)) => (*call).to_string(),
        None => {
            let formulas = method.parameters.iter().filter(|p| p.takes == Takes::Formula);
            format!("x.{}({})", method.name, vec!["y"; formulas.count()].join(", "))
        }
    };
    shown(py, VARIABLES, &format!("{call}.formula"))
}

/// The example of a reduction under one of its names.
pub fn of_reduction(py: Python<'_>, row: &ReductionRow, name: &str) -> PyResult<String> {
    let count = if row.takes_k { "K=1, " } else { "" };
    let weight = if row.weight == Weight::Required { "weight=tw.Vj(p), " } else { "" };
    let call = format!("d.{name}({count}{weight}axis=1)");
    // What comes of exponentials has other last digits on other processors.
    let seen =
        if row.name.contains("Exp") || row.weight != Weight::None { "shape" } else { "tolist()" };
    let expression = match run(py, PAIRS, &call)?.is_instance_of::<PyTuple>() {
        true => format!("[part.{seen} for part in {call}]"),
        false => format!("{call}.{seen}"),
    };
    shown(py, PAIRS, &expression)
}

/// An expression after what it needs, with what it gives.
fn shown(py: Python<'_>, first: &str, expression: &str) -> PyResult<String> {
    let value = run(py, first, expression)?.repr()?;
    let lines = first.replace("; ", "\n>>> ");
    Ok(format!(">>> import tilework as tw\n>>> {lines}\n>>> {expression}\n{value}"))
}

fn run<'py>(py: Python<'py>, first: &str, expression: &str) -> PyResult<Bound<'py, PyAny>> {
    // Documentation is read on machines of all kinds, whatever their arrays are made on.
    let _scope = Device::cpu().scope();
    let names = PyDict::new(py);
    names.set_item("tw", py.import("tilework")?)?;
    py.run(&CString::new(first)?, Some(&names), None)?;
    py.eval(&CString::new(expression)?, Some(&names), None)
}
