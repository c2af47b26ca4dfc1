//! How arrays are printed: NumPy's options, for good or for a while.
//!
//! `printoptions` holds for the context that entered it, `set_printoptions` until the innermost such
//! block ends, or for the process.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilework::{FloatMode, PrintOptions, Sign};

use crate::args::{Length, register};
use crate::scopes::Scopes;

/// The blocks of `printoptions`.
static ENTERED: Scopes = Scopes::new("tilework.printoptions");

/// Options that hold inside of a block.
#[pyclass(frozen)]
struct Held(PrintOptions);

/// How this context prints arrays.
pub fn current(py: Python<'_>) -> PyResult<PrintOptions> {
    match ENTERED.innermost(py)? {
        Some(held) => Ok(held.cast::<Held>()?.get().0),
        None => Ok(PrintOptions::current()),
    }
}

/// The options now, but for those that are given.
#[allow(clippy::too_many_arguments, reason = "NumPy's options")]
fn changed(
    now: PrintOptions,
    precision: Option<Length>,
    threshold: Option<Length>,
    edgeitems: Option<Length>,
    linewidth: Option<Length>,
    suppress: Option<bool>,
    sign: Option<&str>,
    floatmode: Option<&str>,
) -> PyResult<PrintOptions> {
    let wrong = |what: &str, given: &str| {
        PyValueError::new_err(format!("printoptions: {given:?} is no {what}"))
    };
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
        precision: precision.map_or(now.precision, |n| n.0),
        threshold: threshold.map_or(now.threshold, |n| n.0),
        edge_items: edgeitems.map_or(now.edge_items, |n| n.0),
        line_width: linewidth.map_or(now.line_width, |n| n.0),
        suppress: suppress.unwrap_or(now.suppress),
        sign,
        float_mode,
    })
}

/// How arrays are printed from now on, by NumPy's names; what is not named stays as it is. Inside of a
/// block of `printoptions` it holds until the block ends.
///
/// >>> import tilework as tw
/// >>> tw.set_printoptions(precision=8)
#[pyfunction]
#[pyo3(signature = (*, precision=None, threshold=None, edgeitems=None, linewidth=None, suppress=None, sign=None, floatmode=None))]
#[allow(clippy::too_many_arguments, reason = "NumPy's options")]
fn set_printoptions(
    py: Python<'_>,
    precision: Option<Length>,
    threshold: Option<Length>,
    edgeitems: Option<Length>,
    linewidth: Option<Length>,
    suppress: Option<bool>,
    sign: Option<&str>,
    floatmode: Option<&str>,
) -> PyResult<()> {
    let now = current(py)?;
    let options =
        changed(now, precision, threshold, edgeitems, linewidth, suppress, sign, floatmode)?;
    if !ENTERED.replace(Bound::new(py, Held(options))?.as_any())? {
        options.set();
    }
    Ok(())
}

/// How arrays are printed, by NumPy's names.
///
/// >>> import tilework as tw
/// >>> tw.get_printoptions()["threshold"]
/// 1000
#[pyfunction]
fn get_printoptions(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let now = current(py)?;
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

/// The options of `set_printoptions` for the block of a `with` statement, and for the thread or the task
/// of asyncio that it is in.
///
/// >>> import tilework as tw
/// >>> with tw.printoptions(precision=2):
/// ...     print(tw.asarray([0.12345]))
/// [0.12]
#[pyclass(frozen, name = "printoptions", module = "tilework")]
struct Scope {
    precision: Option<Length>,
    threshold: Option<Length>,
    edgeitems: Option<Length>,
    linewidth: Option<Length>,
    suppress: Option<bool>,
    sign: Option<String>,
    floatmode: Option<String>,
}

impl Scope {
    /// The options inside of a block that stands where these hold.
    fn within(&self, now: PrintOptions) -> PyResult<PrintOptions> {
        changed(
            now,
            self.precision,
            self.threshold,
            self.edgeitems,
            self.linewidth,
            self.suppress,
            self.sign.as_deref(),
            self.floatmode.as_deref(),
        )
    }
}

#[pymethods]
impl Scope {
    #[new]
    #[pyo3(signature = (*, precision=None, threshold=None, edgeitems=None, linewidth=None, suppress=None, sign=None, floatmode=None))]
    fn new(
        precision: Option<Length>,
        threshold: Option<Length>,
        edgeitems: Option<Length>,
        linewidth: Option<Length>,
        suppress: Option<bool>,
        sign: Option<String>,
        floatmode: Option<String>,
    ) -> PyResult<Scope> {
        let scope = Scope { precision, threshold, edgeitems, linewidth, suppress, sign, floatmode };
        // What is wrong is refused where it is written.
        scope.within(PrintOptions::DEFAULT)?;
        Ok(scope)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = slf.py();
        let options = slf.get().within(current(py)?)?;
        ENTERED.enter(slf.as_any(), Bound::new(py, Held(options))?.as_any())?;
        get_printoptions(py)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        ENTERED.leave(slf.as_any())
    }
}

/// Adds the functions and the class to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Scope>()?;
    register!(module: set_printoptions, get_printoptions);
    Ok(())
}
