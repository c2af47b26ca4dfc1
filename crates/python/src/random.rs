//! `tilework.random`: streams of random numbers, the same on every device (normal ones to their last
//! bits).

use std::iter;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use tilework::{Array, DType, Direction, Error, Index, Indexer, Number, Rng, Scalar, Side};

use crate::args::{ShapeArg, register, target};
use crate::array::{PyArray, shape_text, to_object};
use crate::convert::{ArrayArg, asarray_near, meeting};
use crate::device;
use crate::dtype::DTypeArg;
use crate::errors::OrRaise;
use crate::operand::Operand;
use crate::run::{len_along, result_len, run, volume};

/// A stream of random numbers; made by `default_rng`. The same seed gives the same numbers on every
/// device, normal ones to their last bits.
///
/// >>> import tilework as tw
/// >>> a, b = tw.random.default_rng(7), tw.random.default_rng(7)
/// >>> a.random(3).tolist() == b.random(3).tolist()
/// True
#[pyclass(frozen, name = "Generator", module = "tilework.random")]
pub struct Generator(Rng);

/// Numbers drawn in a run of their own: what follows may be begun again, and the stream goes on once.
fn draw_once(
    py: Python<'_>,
    operation: &str,
    shape: &[usize],
    draw: impl Fn(&[usize]) -> tilework::Result<Array> + Sync,
) -> PyResult<Array> {
    let device = device::current();
    let _scope = device.scope();
    run(py, effort(volume(shape), device), device, || {
        draw(shape).map_err(|error| error.of(operation))
    })
}

/// Elements for `run` to judge the work by: on a card work that is short is begun again where a kernel has to be
/// compiled first, which draws must not be.
fn effort(elements: usize, device: tilework::Device) -> usize {
    if device.is_quick() { elements } else { usize::MAX }
}

/// An array; a number if no size was asked for and it has no axes.
fn sized(py: Python<'_>, array: Array, is_sized: bool) -> PyResult<Py<PyAny>> {
    if is_sized || array.ndim() > 0 {
        return PyArray(array).into_py_any(py);
    }
    let one: Scalar = run(py, 1, array.device(), || array.to_scalar())?;
    to_object(py, one.to_number())
}

/// The numbers drawn: an array of the size asked for, or one number.
fn drawn(
    py: Python<'_>,
    operation: &str,
    size: Option<ShapeArg>,
    draw: impl Fn(&[usize]) -> tilework::Result<Array> + Sync,
) -> PyResult<Py<PyAny>> {
    let shape = size.as_ref().map_or(&[][..], |ShapeArg(shape)| shape);
    sized(py, draw_once(py, operation, shape, draw)?, size.is_some())
}

/// The numbers drawn, times the first operand and plus the second: of the size asked for, or of that
/// of the operands.
fn moved(
    py: Python<'_>,
    operation: &str,
    size: Option<ShapeArg>,
    [times, plus]: [&Operand<'_>; 2],
    draw: impl Fn(&[usize]) -> tilework::Result<Array> + Sync,
) -> PyResult<Py<PyAny>> {
    let is_sized = size.is_some();
    let shape = match size {
        Some(ShapeArg(shape)) => shape,
        None => {
            let shapes = [times.shape(), plus.shape()];
            tilework_layout::broadcast_shapes(operation, &shapes).py()?
        }
    };
    let numbers = draw_once(py, operation, &shape, draw)?;
    let (elements, device) = (numbers.len(), numbers.device());
    let told = |error: Error| error.of(operation);
    // Each write is the last operation of its run.
    run(py, elements, device, || numbers.mul_assign(times.arg()).map_err(told))?;
    run(py, elements, device, || numbers.add_assign(plus.arg()).map_err(told))?;
    let are_numbers = matches!((times, plus), (Operand::Number(_), Operand::Number(_)));
    sized(py, numbers, is_sized || !are_numbers)
}

/// A parameter of a distribution: a number or an array.
fn parameter<'a>(
    operation: &str,
    object: Option<&'a Bound<'_, PyAny>>,
    default: f64,
) -> PyResult<Operand<'a>> {
    let Some(object) = object else { return Ok(Operand::Number(default.into())) };
    match Operand::of(object, device::current())? {
        Some(Operand::Number(Number::Complex(_))) | None => {
            let kind = object.get_type().name()?;
            let message = format!("{operation}: {kind} is neither a real number nor an array");
            Err(PyTypeError::new_err(message))
        }
        Some(operand) => Ok(operand),
    }
}

/// Whether something holds for all elements of a parameter.
fn holds(
    py: Python<'_>,
    parameter: &Operand<'_>,
    question: impl Fn(&Array) -> tilework::Result<Array> + Sync,
) -> PyResult<bool> {
    let device = device::current();
    run(py, parameter.len(), device, || {
        question(&parameter.to_array(device)?)?.all(())?.item::<bool>()
    })
}

fn float(dtype: Option<DTypeArg>) -> DType {
    dtype.map_or(DType::Float64, |dtype| dtype.0)
}

#[pymethods]
impl Generator {
    /// Uniform numbers on [0, 1).
    ///
    /// >>> import tilework as tw
    /// >>> tw.random.default_rng(1).random((2, 3)).shape
    /// (2, 3)
    #[pyo3(signature = (size=None, dtype=None))]
    fn random(
        &self,
        py: Python<'_>,
        size: Option<ShapeArg>,
        dtype: Option<DTypeArg>,
    ) -> PyResult<Py<PyAny>> {
        drawn(py, "random", size, |shape| self.0.uniform(shape, float(dtype)))
    }

    /// Normal numbers of mean 0 and variance 1.
    ///
    /// >>> import tilework as tw
    /// >>> tw.random.default_rng(1).standard_normal(4, dtype="float32").dtype
    /// dtype('float32')
    #[pyo3(signature = (size=None, dtype=None))]
    fn standard_normal(
        &self,
        py: Python<'_>,
        size: Option<ShapeArg>,
        dtype: Option<DTypeArg>,
    ) -> PyResult<Py<PyAny>> {
        drawn(py, "standard_normal", size, |shape| self.0.normal(shape, float(dtype)))
    }

    /// Normal numbers of mean `loc` and standard deviation `scale`: numbers, or arrays that broadcast.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.random.default_rng(1).normal(5.0, 0.1, 1000)
    /// >>> abs(float(x.mean()) - 5) < 0.02
    /// True
    /// >>> tw.random.default_rng(1).normal([0.0, 100.0], 1.0, (5, 2)).argmax(axis=1).tolist()
    /// [1, 1, 1, 1, 1]
    #[pyo3(signature = (loc=None, scale=None, size=None, dtype=None), text_signature = "($self, loc=0.0, scale=1.0, size=None, dtype=None)")]
    fn normal(
        &self,
        py: Python<'_>,
        loc: Option<&Bound<'_, PyAny>>,
        scale: Option<&Bound<'_, PyAny>>,
        size: Option<ShapeArg>,
        dtype: Option<DTypeArg>,
    ) -> PyResult<Py<PyAny>> {
        let _scope = meeting([loc, scale].into_iter().flatten()).scope();
        let (loc, scale) = (parameter("normal", loc, 0.0)?, parameter("normal", scale, 1.0)?);
        if !holds(py, &scale, |scale| scale.greater_equal(0.0))? {
            return Err(PyValueError::new_err("normal: a scale is negative or no number"));
        }
        moved(py, "normal", size, [&scale, &loc], |shape| self.0.normal(shape, float(dtype)))
    }

    /// Uniform numbers on [low, high), which are numbers, or arrays that broadcast.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.random.default_rng(1).uniform(-1, 1, 1000)
    /// >>> -1 <= float(x.min()) and float(x.max()) < 1
    /// True
    #[pyo3(signature = (low=None, high=None, size=None, dtype=None), text_signature = "($self, low=0.0, high=1.0, size=None, dtype=None)")]
    fn uniform(
        &self,
        py: Python<'_>,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
        size: Option<ShapeArg>,
        dtype: Option<DTypeArg>,
    ) -> PyResult<Py<PyAny>> {
        let _scope = meeting([low, high].into_iter().flatten()).scope();
        let (low, high) = (parameter("uniform", low, 0.0)?, parameter("uniform", high, 1.0)?);
        let device = device::current();
        let width = match (&low, &high) {
            (Operand::Number(low), Operand::Number(high)) => {
                let [low, high] = [low, high].map(|bound| bound.cast(DType::Float64).get::<f64>());
                Operand::Number((high - low).into())
            }
            _ => Operand::Made(run(py, result_len(&[low.shape(), high.shape()]), device, || {
                high.to_array(device)?.subtract(low.arg())
            })?),
        };
        if !holds(py, &width, Array::isfinite)? {
            return Err(PyValueError::new_err("uniform: the range is not finite"));
        }
        if !holds(py, &width, |width| width.greater_equal(0))? {
            return Err(PyValueError::new_err("uniform: high is less than low"));
        }
        moved(py, "uniform", size, [&width, &low], |shape| self.0.uniform(shape, float(dtype)))
    }

    /// Integers from `low` up to, not including, `high`, all of which the dtype must hold; from 0 if
    /// only one number is given.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.random.default_rng(1).integers(1, 7, 1000)
    /// >>> int(x.min()), int(x.max())
    /// (1, 6)
    #[pyo3(signature = (low, high=None, size=None, dtype=None, endpoint=false))]
    fn integers(
        &self,
        py: Python<'_>,
        low: i128,
        high: Option<i128>,
        size: Option<ShapeArg>,
        dtype: Option<DTypeArg>,
        endpoint: bool,
    ) -> PyResult<Py<PyAny>> {
        let (low, high) = high.map_or((0, low), |high| (low, high));
        let high = if endpoint { high.saturating_add(1) } else { high };
        let dtype = dtype.map_or(DType::Int64, |dtype| dtype.0);
        drawn(py, "integers", size, |shape| self.0.integers_of(dtype, low, high, shape))
    }

    /// The numbers 0 .. n in random order, or the parts of an array along an axis.
    ///
    /// >>> import tilework as tw
    /// >>> sorted(tw.random.default_rng(1).permutation(4).tolist())
    /// [0, 1, 2, 3]
    #[pyo3(signature = (x, axis=0))]
    fn permutation(&self, py: Python<'_>, x: &Bound<'_, PyAny>, axis: isize) -> PyResult<PyArray> {
        if let Ok(n) = x.extract::<usize>() {
            let device = device::current();
            let _scope = device.scope();
            return run(py, effort(n, device), device, || self.0.permutation(n)).map(PyArray);
        }
        let x = x.extract::<ArrayArg>()?.0;
        let at = tilework_layout::normalize_axis("permutation", axis, x.ndim()).py()?;
        let _scope = x.device().scope();
        let n = x.shape()[at];
        let order = run(py, effort(n, x.device()), x.device(), || self.0.permutation(n))?;
        run(py, x.len(), x.device(), || x.take(&order, axis)).map(PyArray)
    }

    /// Elements picked at random from an array along an axis or from 0 .. n, with or without
    /// replacement, with probabilities `p` if they are given.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.random.default_rng(1).choice(tw.asarray([10, 20, 30]), 2, replace=False)
    /// >>> len(set(x.tolist()) & {10, 20, 30})
    /// 2
    #[pyo3(signature = (a, size=None, replace=true, p=None, axis=0))]
    fn choice(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        size: Option<ShapeArg>,
        replace: bool,
        p: Option<&Bound<'_, PyAny>>,
        axis: isize,
    ) -> PyResult<Py<PyAny>> {
        let device = meeting(iter::once(a).chain(p));
        let _scope = device.scope();
        let pool = match a.extract::<i64>() {
            Ok(_) => None,
            Err(_) => Some(asarray_near(a, None, device)?),
        };
        let axes = pool.as_ref().map_or(1, Array::ndim);
        let at = tilework_layout::normalize_axis("choice", axis, axes).py()?;
        let n = match &pool {
            Some(pool) => pool.shape()[at],
            None => a.extract::<i64>()?.max(0) as usize,
        };
        let shape = size.as_ref().map_or(&[][..], |ShapeArg(shape)| shape);
        let p = p.map(|p| asarray_near(p, None, device)).transpose()?;
        let picks = self.picks(py, n, shape, replace, p.as_ref())?;
        let chosen = match pool {
            None => picks,
            Some(pool) => {
                let elements = len_along(&pool, axis, picks.len());
                let told = |error: Error| error.of("choice");
                run(py, elements, device, || pool.take(&picks, axis).map_err(told))?
            }
        };
        sized(py, chosen, size.is_some())
    }

    /// Puts the parts of an array along an axis into random order, in place.
    ///
    /// >>> import tilework as tw
    /// >>> x = tw.arange(4)
    /// >>> tw.random.default_rng(1).shuffle(x)
    /// >>> sorted(x.tolist())
    /// [0, 1, 2, 3]
    #[pyo3(signature = (x, axis=0))]
    fn shuffle(&self, py: Python<'_>, x: &Bound<'_, PyAny>, axis: isize) -> PyResult<()> {
        let x = target(x, device::current())?;
        let at = tilework_layout::normalize_axis("shuffle", axis, x.ndim()).py()?;
        let (n, device) = (x.shape()[at], x.device());
        let _scope = device.scope();
        // Where each element goes: as `permutation` would have it, written in one step.
        let order = run(py, effort(n, device), device, || self.0.permutation(n))?;
        let places = run(py, effort(n, device), device, || order.argsort(0, Direction::Ascending))?;
        let mut indices = vec![Indexer::Basic(Index::from(..)); at];
        indices.push(Indexer::Array(&places));
        run(py, x.len(), device, || x.index_set(&indices, &*x).map_err(|error| error.of("shuffle")))
    }

    /// The state: the seed and how many numbers have been taken.
    ///
    /// >>> import tilework as tw
    /// >>> tw.random.default_rng(7).state
    /// (7, 0)
    #[getter]
    fn state(&self) -> (u64, u64) {
        self.0.state()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (u64, u64))> {
        Ok((py.import("tilework._core")?.getattr("_restore_rng")?, self.0.state()))
    }

    fn __repr__(&self) -> String {
        let (seed, taken) = self.0.state();
        format!("Generator(seed={seed}, taken={taken})")
    }
}

impl Generator {
    /// Indices of the elements that are chosen.
    fn picks(
        &self,
        py: Python<'_>,
        n: usize,
        shape: &[usize],
        replace: bool,
        p: Option<&Array>,
    ) -> PyResult<Array> {
        let wrong = |message: &str| Err(PyValueError::new_err(format!("choice: {message}")));
        if n == 0 {
            return wrong("there is nothing to choose from");
        }
        let count = shape.iter().try_fold(1usize, |count, &n| count.checked_mul(n));
        let Some(count) = count else { return wrong("the size is too large") };
        if !replace && count > n {
            return wrong(&format!("{count} of {n} without replacement"));
        }
        let lengths: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
        let first = |order: Array| -> tilework::Result<Array> {
            order.slice(&[(..count).into()])?.reshape(&lengths)
        };
        let device = device::current();
        let Some(p) = p else {
            return match replace {
                true => draw_once(py, "choice", shape, |shape| self.0.integers(0, n as i64, shape)),
                false => run(py, effort(count, device), device, || {
                    self.0.sample(n, count)?.reshape(&lengths)
                }),
            };
        };
        let least = if replace { 1 } else { count };
        let p = run(py, p.len(), p.device(), || probabilities(p, n, least))?;
        let drawn = if replace { shape } else { &[n] };
        let drawn = draw_once(py, "choice", drawn, |shape| self.0.uniform(shape, DType::Float64))?;
        run(py, n.saturating_add(count), device, || {
            if replace {
                // The place of a uniform number among the running sums.
                let sums = p.cumulative_sum(0)?;
                sums.div_assign(&sums.slice(&[tilework::Index::from(-1)])?.copy()?)?;
                return sums.searchsorted(&drawn, Side::Right)?.minimum(n as i64 - 1);
            }
            // The k largest of u^(1/p), that is, of log(u) / p, are k draws without replacement; those
            // that cannot be drawn come after all others, however improbable.
            let keys = (&drawn.log()? / &p)?.maximum(f64::MIN)?;
            let keys = tilework::select(&p.greater(0.0)?, &keys, f64::NEG_INFINITY)?;
            first(keys.argsort(0, Direction::Descending)?)
        })
    }
}

/// A copy of the probabilities of n elements, at least so many of which must be possible.
fn probabilities(p: &Array, n: usize, least: usize) -> tilework::Result<Array> {
    let p = p.to_dtype(DType::Float64)?.copy()?;
    let fits = p.ndim() == 1 && p.len() == n && !p.less(0.0)?.any(())?.item::<bool>()?;
    let total = p.sum(())?.item::<f64>()?;
    // A NaN is not within the bound either.
    if !(fits && (total - 1.0).abs() <= 1e-8) {
        let shape = shape_text(p.shape());
        let message = format!(
            "p of shape {shape} sums to {total}; for {n} elements it must hold {n} numbers of at \
             least 0 that sum to 1"
        );
        return Err(Error::value("choice", message));
    }
    let possible = p.count_nonzero(())?.item::<i64>()?;
    if (possible as usize) < least {
        let message = format!("{least} without replacement, but p is 0 but for {possible}");
        return Err(Error::value("choice", message));
    }
    Ok(p)
}

/// A stream of random numbers from a seed; from one that the system gives if there is none. A seed is
/// an integer that is not negative, or several of them, as for one stream in each of many processes.
///
/// >>> import tilework as tw
/// >>> tw.random.default_rng(7).integers(10, size=3).shape
/// (3,)
/// >>> tw.random.default_rng([7, 0]).random() == tw.random.default_rng([7, 1]).random()
/// False
#[pyfunction]
#[pyo3(signature = (seed=None))]
fn default_rng(py: Python<'_>, seed: Option<&Bound<'_, PyAny>>) -> PyResult<Py<Generator>> {
    let Some(seed) = seed else {
        let bytes = py.import("os")?.call_method1("urandom", (8,))?;
        let bytes: [u8; 8] = bytes.extract()?;
        return Py::new(py, Generator(Rng::new(u64::from_le_bytes(bytes))));
    };
    if let Ok(generator) = seed.cast_exact::<Generator>() {
        return Ok(generator.clone().unbind());
    }
    let mut words = Vec::new();
    // NumPy's own way to hand seeds to many streams.
    if let Ok(generate) = seed.getattr("generate_state") {
        words = generate.call1((4, "uint64"))?.call_method0("tolist")?.extract()?;
        return Py::new(py, Generator(Rng::from_words(&words)));
    }
    match seed.try_iter() {
        Ok(several) => several.into_iter().try_for_each(|one| seed_words(&one?, &mut words))?,
        Err(_) => seed_words(seed, &mut words)?,
    }
    Py::new(py, Generator(Rng::from_words(&words)))
}

/// Adds the words of an integer to a seed, lowest first.
fn seed_words(integer: &Bound<'_, PyAny>, words: &mut Vec<u64>) -> PyResult<()> {
    const WANTED: &str = "default_rng: a seed is an integer of at least 0, or several of them";
    if let Ok(word) = integer.extract::<u64>() {
        words.push(word);
        return Ok(());
    }
    let integer = integer.cast::<PyInt>().map_err(|_| PyTypeError::new_err(WANTED))?;
    let bits: usize = integer.call_method0("bit_length")?.extract()?;
    let bytes = integer.call_method1("to_bytes", (bits.div_ceil(64) * 8, "little"));
    let bytes: Vec<u8> = bytes.map_err(|_| PyValueError::new_err(WANTED))?.extract()?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    words.extend(bytes.chunks(8).map(word));
    Ok(())
}

/// The stream of a pickle.
#[pyfunction]
#[pyo3(signature = (seed, taken, /))]
fn _restore_rng(seed: u64, taken: u64) -> Generator {
    Generator(Rng::from_state(seed, taken))
}

/// Adds the class and the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Generator>()?;
    register!(module: default_rng, _restore_rng);
    Ok(())
}
