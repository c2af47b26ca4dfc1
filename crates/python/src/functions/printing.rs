//! How arrays are printed: NumPy's options, for good or for a while.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilework::{FloatMode, PrintOptions, Sign};

use crate::args::register;

/// The options now, but for those that are given.
#[allow(clippy::too_many_arguments, reason = "NumPy's options")]
fn changed(
    precision: Option<usize>,
    threshold: Option<usize>,
    edgeitems: Option<usize>,
    linewidth: Option<usize>,
    suppress: Option<bool>,
    sign: Option<&str>,
    floatmode: Option<&str>,
) -> PyResult<PrintOptions> {
    let wrong = |what: &str, given: &str| {
        PyValueError::new_err(format!("printoptions: {given:?} is no {what}"))
    };
    let now = PrintOptions::current();
    let sign = match sign {
        None => now.sign,
        Some("-") => Sign::Negative,
        Some("+") => Sign::Always,
        Some(" ") => Sign::Space,
        Some(other) => return Err(wrong("sign", other)),
    };
    let float_mode = match floatmode {
        None => now.float_mode,
        Some("maxprec") => FloatMode::MaxPrecision,
        Some("maxprec_equal") => FloatMode::MaxPrecisionEqual,
        Some("unique") => FloatMode::Unique,
        Some("fixed") => FloatMode::Fixed,
        Some(other) => return Err(wrong("floatmode", other)),
    };
    Ok(PrintOptions {
        precision: precision.unwrap_or(now.precision),
        threshold: threshold.unwrap_or(now.threshold),
        edge_items: edgeitems.unwrap_or(now.edge_items),
        line_width: linewidth.unwrap_or(now.line_width),
        suppress: suppress.unwrap_or(now.suppress),
        sign,
        float_mode,
    })
}

/// How arrays are printed from now on, by NumPy's names; what is not named stays as it is.
///
/// >>> import tilework as tw
/// >>> tw.set_printoptions(precision=8)
#[pyfunction]
#[pyo3(signature = (*, precision=None, threshold=None, edgeitems=None, linewidth=None, suppress=None, sign=None, floatmode=None))]
fn set_printoptions(
    precision: Option<usize>,
    threshold: Option<usize>,
    edgeitems: Option<usize>,
    linewidth: Option<usize>,
    suppress: Option<bool>,
    sign: Option<&str>,
    floatmode: Option<&str>,
) -> PyResult<()> {
    changed(precision, threshold, edgeitems, linewidth, suppress, sign, floatmode)?.set();
    Ok(())
}

/// How arrays are printed, by NumPy's names.
///
/// >>> import tilework as tw
/// >>> tw.get_printoptions()["threshold"]
/// 1000
#[pyfunction]
fn get_printoptions(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let now = PrintOptions::current();
    let options = PyDict::new(py);
    options.set_item("precision", now.precision)?;
    options.set_item("threshold", now.threshold)?;
    options.set_item("edgeitems", now.edge_items)?;
    options.set_item("linewidth", now.line_width)?;
    options.set_item("suppress", now.suppress)?;
    let sign = match now.sign {
        Sign::Negative => "-",
        Sign::Always => "+",
        Sign::Space => " ",
    };
    options.set_item("sign", sign)?;
    let mode = match now.float_mode {
        FloatMode::MaxPrecision => "maxprec",
        FloatMode::MaxPrecisionEqual => "maxprec_equal",
        FloatMode::Unique => "unique",
        FloatMode::Fixed => "fixed",
    };
    options.set_item("floatmode", mode)?;
    Ok(options)
}

/// The options of `set_printoptions` for the block of a `with` statement.
///
/// >>> import tilework as tw
/// >>> with tw.printoptions(precision=2):
/// ...     print(tw.asarray([0.12345]))
/// [0.12]
#[pyclass(frozen, name = "printoptions", module = "tilework")]
struct Scope {
    options: PrintOptions,
    /// The options outside of each block that it was entered for.
    before: Mutex<Vec<PrintOptions>>,
}

#[pymethods]
impl Scope {
    #[new]
    #[pyo3(signature = (*, precision=None, threshold=None, edgeitems=None, linewidth=None, suppress=None, sign=None, floatmode=None))]
    fn new(
        precision: Option<usize>,
        threshold: Option<usize>,
        edgeitems: Option<usize>,
        linewidth: Option<usize>,
        suppress: Option<bool>,
        sign: Option<&str>,
        floatmode: Option<&str>,
    ) -> PyResult<Scope> {
        let options =
            changed(precision, threshold, edgeitems, linewidth, suppress, sign, floatmode)?;
        Ok(Scope { options, before: Mutex::default() })
    }

    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.push(PrintOptions::current());
        self.options.set();
        get_printoptions(py)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(options) = before.pop() {
            options.set();
        }
    }
}

/// Adds the functions and the class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Scope>()?;
    register!(module: set_printoptions, get_printoptions);
    Ok(())
}
