//! Arrays from nested lists and tuples of numbers.
//!
//! The numbers are collected in one pass: as floats or as integers while they are nothing else, which is what
//! most lists hold and what an array is made of as it stands. Elements that have left an array, NumPy's scalars and
//! our own arrays of no axes, are numbers with a dtype. Where there are other arrays in a list, everything becomes
//! an array, and all are stacked. Called by `convert`.

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PyTuple, PyType};
use tilework::{Array, DType, Device, Number};
use tilework_layout::Dims;
use tilework_ops::{Element, Kind, with_element};

use crate::class;
use crate::convert::{asarray_on, is_sequence};
use crate::dtype;
use crate::errors::OrRaise;
use crate::operand;
use crate::run::run;

/// The most lists in lists, as in NumPy.
const DEEPEST: usize = tilework_layout::MAX_AXES;

/// The array of nested lists or tuples of numbers and arrays.
pub fn nested(object: &Bound<'_, PyAny>, dtype: Option<DType>, device: Device) -> PyResult<Array> {
    let mut leaves = Leaves::new(dtype, device);
    if leaves.walk(object, 0)? {
        return leaves.array(object.py());
    }
    let parts = stacked(object, 0, device)?;
    match dtype {
        Some(dtype) => run(object.py(), parts.len(), device, || parts.to_dtype(dtype)),
        None => Ok(parts),
    }
}

/// The array of one number.
pub fn single(
    py: Python<'_>,
    number: Number,
    dtype: Option<DType>,
    device: Device,
) -> PyResult<Array> {
    let mut leaves = Leaves::new(dtype, device);
    leaves.push(number);
    leaves.array(py)
}

/// Numbers in order, of one type as long as they are.
enum Numbers {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Mixed(Vec<Number>),
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Numbers::Integers(all) => all.len(),
            Numbers::Floats(all) => all.len(),
            Numbers::Mixed(all) => all.len(),
        }
    }

    /// Makes room for so many more.
    fn reserve(&mut self, more: usize) {
        match self {
            Numbers::Integers(all) => all.reserve(more),
            Numbers::Floats(all) => all.reserve(more),
            Numbers::Mixed(all) => all.reserve(more),
        }
    }

    #[inline]
    fn push_float(&mut self, x: f64) {
        match self {
            Numbers::Floats(all) => all.push(x),
            Numbers::Integers(none) if none.is_empty() => {
                let mut all = Vec::with_capacity(none.capacity().max(1));
                all.push(x);
                *self = Numbers::Floats(all);
            }
            _ => self.mixed().push(Number::Float(x)),
        }
    }

    #[inline]
    fn push_integer(&mut self, i: i64) {
        match self {
            Numbers::Integers(all) => all.push(i),
            _ => self.mixed().push(Number::Int(i.into())),
        }
    }

    /// The numbers as such, of any type from now on.
    fn mixed(&mut self) -> &mut Vec<Number> {
        match self {
            Numbers::Integers(all) => {
                *self = Numbers::Mixed(all.iter().map(|&i| Number::from(i)).collect());
            }
            Numbers::Floats(all) => {
                *self = Numbers::Mixed(all.iter().map(|&x| Number::from(x)).collect());
            }
            Numbers::Mixed(_) => {}
        }
        match self {
            Numbers::Mixed(all) => all,
            _ => unreachable!("they are by now"),
        }
    }

    /// As elements of `T`: floats are cut to integers, and both must fit.
    fn elements<T: Element>(&self) -> tilework::Result<Vec<T>> {
        let element = |number: Number| -> tilework::Result<T> {
            Ok(number.to_element("asarray", T::DTYPE)?.get())
        };
        match self {
            // All of them fit.
            Numbers::Floats(all) if !T::DTYPE.is_integer() => {
                Ok(all.iter().map(|&x| T::from_f64(x)).collect())
            }
            Numbers::Integers(all) if !T::DTYPE.is_integer() => {
                Ok(all.iter().map(|&i| T::from_i64(i)).collect())
            }
            Numbers::Floats(all) => all.iter().map(|&x| element(x.into())).collect(),
            Numbers::Integers(all) => all.iter().map(|&i| element(i.into())).collect(),
            Numbers::Mixed(all) => all.iter().map(|&number| element(number)).collect(),
        }
    }
}

/// What nested lists hold at their bottom.
struct Leaves<'py> {
    /// The dtype that is asked for.
    dtype: Option<DType>,
    device: Device,
    shape: Dims,
    numbers: Numbers,
    /// The dtypes that numbers have by themselves, one bit each, and what they promote to in their order.
    dtypes: u32,
    common: Option<DType>,
    /// Whether some have left an array, and bring a dtype along.
    has_elements: bool,
    /// The classes of NumPy's scalars that were met.
    scalars: Vec<(Bound<'py, PyType>, DType)>,
}

impl<'py> Leaves<'py> {
    fn new(dtype: Option<DType>, device: Device) -> Leaves<'py> {
        Leaves {
            dtype,
            device,
            shape: Dims::new(),
            numbers: Numbers::Integers(Vec::new()),
            dtypes: 0,
            common: None,
            has_elements: false,
            scalars: Vec::new(),
        }
    }

    /// Collects the numbers of a list, or one number; false if there is something else among them.
    fn walk(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<bool> {
        // Asked in this order since entries are mostly these.
        let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        if !is_list {
            let is_leaf = self.number(object)? || !is_sequence(object) && self.element(object)?;
            if is_leaf && depth != self.shape.len() {
                return Err(ragged());
            }
            if is_leaf || !is_sequence(object) {
                return Ok(is_leaf);
            }
        }
        let row = Row::of(object)?;
        // The first way down decides the shape; everything after it must agree.
        if depth == self.shape.len() {
            if self.numbers.len() > 0 || depth >= DEEPEST || self.shape.contains(&0) {
                return Err(ragged());
            }
            self.shape.push(row.length);
        } else if self.shape[depth] != row.length {
            return Err(ragged());
        }
        let plain = if self.shape.len() == depth + 1 { self.plain(&row) } else { 0 };
        for item in row.from(plain) {
            if !self.walk(&item, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Collects the numbers that a row begins with, as long as they are exactly floats, bools, or ints of 64 bits at
    /// most; how many they are. No code of Python runs meanwhile, so that nobody changes the row.
    fn plain(&mut self, row: &Row<'py>) -> usize {
        self.numbers.reserve(row.length);
        for at in 0..row.length {
            // SAFETY: the item is there, the thread is attached, and the value functions are called on the types
            // that they are for.
            unsafe {
                let item = row.item(at);
                if ffi::PyFloat_CheckExact(item) != 0 {
                    self.meet(DType::Float64);
                    self.numbers.push_float(ffi::PyFloat_AsDouble(item));
                } else if ffi::PyLong_CheckExact(item) != 0 {
                    let mut overflow = 0;
                    let value = ffi::PyLong_AsLongLongAndOverflow(item, &mut overflow);
                    if overflow != 0 {
                        return at;
                    }
                    self.meet(DType::Int64);
                    self.numbers.push_integer(value);
                } else if ffi::PyBool_Check(item) != 0 {
                    self.push(Number::Bool(item == ffi::Py_True()));
                } else {
                    return at;
                }
            }
        }
        row.length
    }

    /// Collects an object that is a number of Python; false if it is none.
    fn number(&mut self, object: &Bound<'py, PyAny>) -> PyResult<bool> {
        // NumPy's float64 is a float. Where it becomes an integer it is an element, which is cut and need not fit.
        if self.dtype.is_none_or(DType::is_inexact) && object.is_instance_of::<PyFloat>() {
            // SAFETY: the object is a float and the thread is attached.
            self.push(Number::Float(unsafe { ffi::PyFloat_AsDouble(object.as_ptr()) }));
            return Ok(true);
        }
        if self.known(object).is_some() {
            return Ok(false);
        }
        let number = operand::number(object)?;
        if let Some(number) = number {
            self.push(number);
        }
        Ok(number.is_some())
    }

    /// Collects an object that is a number with a dtype, an element of an array once; false if it is none.
    fn element(&mut self, object: &Bound<'py, PyAny>) -> PyResult<bool> {
        let element = match class::ours(object) {
            // Not from a card, which would be asked for each.
            Some(array)
                if array.ndim() == 0
                    && array.device() == self.device
                    && array.storage().is_on_host() =>
            {
                let number = run(object.py(), 1, self.device, || array.to_scalar())?.to_number();
                Some((number, array.dtype()))
            }
            Some(_) => None,
            None => self.scalar(object)?,
        };
        let Some((number, dtype)) = element else { return Ok(false) };
        match self.dtype {
            // As an array of it is cast, whatever is lost.
            Some(asked) => self.push(number.cast(asked).to_number()),
            None => {
                self.has_elements = true;
                self.push_as(number, dtype);
            }
        }
        Ok(true)
    }

    /// The dtype of a scalar of NumPy of a class that was met.
    fn known(&self, object: &Bound<'py, PyAny>) -> Option<DType> {
        let class = object.get_type_ptr();
        let known = self.scalars.iter().find(|(known, _)| known.as_type_ptr() == class);
        known.map(|(_, dtype)| *dtype)
    }

    /// What a scalar of NumPy holds and its dtype; None if it is none, or one that has to become an array.
    fn scalar(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<(Number, DType)>> {
        let dtype = match self.known(object) {
            Some(dtype) => dtype,
            None => {
                let class = object.get_type();
                let Some(dtype) = scalar_dtype(object, &class) else { return Ok(None) };
                self.scalars.push((class, dtype));
                dtype
            }
        };
        let number = match dtype.kind() {
            Kind::Bool => Some(Number::Bool(object.is_truthy()?)),
            Kind::Signed | Kind::Unsigned => {
                // SAFETY: the object is valid and the thread is attached.
                let integer = unsafe {
                    let integer = ffi::PyNumber_Index(object.as_ptr());
                    Bound::from_owned_ptr_or_err(object.py(), integer)?
                };
                operand::number(&integer)?
            }
            Kind::Float => Some(Number::Float(object.extract()?)),
            Kind::Complex => None,
        };
        Ok(number.map(|number| (number, dtype)))
    }

    fn push(&mut self, number: Number) {
        self.push_as(number, number.default_dtype());
    }

    fn push_as(&mut self, number: Number, dtype: DType) {
        self.meet(dtype);
        match number {
            Number::Float(x) => self.numbers.push_float(x),
            Number::Int(i) => match i64::try_from(i) {
                Ok(i) => self.numbers.push_integer(i),
                Err(_) => self.numbers.mixed().push(number),
            },
            _ => self.numbers.mixed().push(number),
        }
    }

    /// Takes note of a number's own dtype.
    #[inline]
    fn meet(&mut self, dtype: DType) {
        if self.dtypes & bit(dtype) == 0 {
            self.dtypes |= bit(dtype);
            self.common = Some(self.common.map_or(dtype, |common| common.promote(dtype)));
        }
    }

    /// The dtype that all have together; float64 if there is none.
    fn common_dtype(&self) -> DType {
        const SIZES: u32 = bit(DType::Int64) | bit(DType::UInt64);
        // Integers of Python, large ones beside small ones that are not negative.
        if self.dtypes & !bit(DType::Bool) == SIZES
            && !self.has_elements
            && let Numbers::Mixed(all) = &self.numbers
            && !all.iter().any(|number| matches!(number, Number::Int(i) if *i < 0))
        {
            return DType::UInt64;
        }
        self.common.unwrap_or(DType::Float64)
    }

    /// The array of all that was collected.
    fn array(&self, py: Python<'_>) -> PyResult<Array> {
        let (shape, numbers, device) = (&self.shape[..], &self.numbers, self.device);
        let dtype = self.dtype.unwrap_or_else(|| self.common_dtype());
        // Empty lists inside of lists end the walk early, with the shape that was seen.
        run(py, numbers.len(), device, || match (numbers, dtype) {
            (Numbers::Floats(all), DType::Float64) => Array::from_shape_on(device, shape, all),
            (Numbers::Integers(all), DType::Int64) => Array::from_shape_on(device, shape, all),
            _ => with_element!(dtype, T => {
                Array::from_shape_on(device, shape, &numbers.elements::<T>()?)
            }),
        })
    }
}

/// The bit of a dtype in a set of them.
const fn bit(dtype: DType) -> u32 {
    1 << dtype as u32
}

/// The dtype of NumPy's scalars of a class, of which the object is one: they know a dtype that knows their class.
/// None for whatever is something else.
fn scalar_dtype(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> Option<DType> {
    let numpy_dtype = object.getattr_opt("dtype").ok()??;
    let scalars = numpy_dtype.getattr_opt("type").ok()??;
    if scalars.is(class) { dtype::parse(&numpy_dtype).ok() } else { None }
}

/// The items of a list or a tuple.
struct Row<'py> {
    object: Bound<'py, PyAny>,
    length: usize,
    get: unsafe extern "C" fn(*mut ffi::PyObject, ffi::Py_ssize_t) -> *mut ffi::PyObject,
}

impl<'py> Row<'py> {
    /// The items of a sequence, those of other kinds in a new tuple.
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Row<'py>> {
        if let Ok(list) = object.cast::<PyList>() {
            return Ok(Row {
                object: object.clone(),
                length: list.len(),
                get: ffi::PyList_GetItem,
            });
        }
        let tuple = match object.cast::<PyTuple>() {
            Ok(tuple) => tuple.clone(),
            Err(_) => {
                let items = object.try_iter()?.collect::<PyResult<Vec<_>>>()?;
                PyTuple::new(object.py(), items)?
            }
        };
        let length = tuple.len();
        Ok(Row { object: tuple.into_any(), length, get: ffi::PyTuple_GetItem })
    }

    /// A borrowed item.
    ///
    /// # Safety
    /// The thread is attached, the index is below the length, and no code of Python has run since the row was
    /// made: it could change a list.
    #[inline]
    unsafe fn item(&self, at: usize) -> *mut ffi::PyObject {
        // SAFETY: the getter is that of the object's type.
        unsafe { (self.get)(self.object.as_ptr(), at.cast_signed()) }
    }

    /// The items from one on, held, so that the list may change while they are looked at; no code of Python has run
    /// before.
    fn from(&self, first: usize) -> Vec<Bound<'py, PyAny>> {
        let held = |at| {
            // SAFETY: the item is there, as the caller says, and valid; the thread is attached.
            unsafe { Bound::from_borrowed_ptr(self.object.py(), self.item(at)) }
        };
        (first..self.length).map(held).collect()
    }
}

fn ragged() -> PyErr {
    PyValueError::new_err("asarray: the lists do not all have one length, or nest too deep")
}

/// Lists with arrays among their entries: everything becomes an array, and all are stacked.
fn stacked(object: &Bound<'_, PyAny>, depth: usize, device: Device) -> PyResult<Array> {
    if depth > DEEPEST {
        return Err(ragged());
    }
    if !is_sequence(object) {
        return asarray_on(object, None, device);
    }
    let parts: Vec<Array> = object
        .try_iter()?
        .map(|item| stacked(&item?, depth + 1, device))
        .collect::<PyResult<_>>()?;
    if parts.is_empty() {
        return Array::zeros_on(device, &[0], DType::Float64).py();
    }
    let parts: Vec<&Array> = parts.iter().collect();
    let elements = parts.iter().map(|part| part.len()).sum();
    run(object.py(), elements, device, || {
        let _scope = device.scope();
        tilework::stack(&parts, 0)
    })
}
