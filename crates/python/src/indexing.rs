//! `x[...]` and `x[...] = y`: keys of Python as indices of the core.
//!
//! Integers, slices, `None` and `...` make a view and take the short way; arrays, lists and masks
//! among them make a gather or a scatter.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PySlice, PyTuple};
use smallvec::SmallVec;
use tilework::{Arg, Array, DType, Device, Index, Indexer, Number};

use crate::array::PyArray;
use crate::class;
use crate::convert;
use crate::errors::OrRaise;
use crate::operand::{self, Operand};
use crate::run::{at_once, result_len, run};

/// One entry of a key.
enum Entry {
    Basic(Index),
    Array(Array),
}

type Basics = SmallVec<[Index; 6]>;

/// The index that an object is if it makes a view and is in order.
///
/// # Safety
/// It is the address of a valid object, and the thread is attached.
#[inline]
unsafe fn basic(object: *mut ffi::PyObject) -> Option<Index> {
    // SAFETY: each function is called on the type that it is for.
    unsafe {
        if ffi::PySlice_Check(object) != 0 {
            let (mut start, mut stop, mut step) = (0, 0, 0);
            if ffi::PySlice_Unpack(object, &mut start, &mut stop, &mut step) < 0 {
                ffi::PyErr_Clear();
                return None;
            }
            // Bounds that were left out come as the ends of isize, which every axis clips.
            Some(Index::Slice { start: Some(start), stop: Some(stop), step })
        } else if ffi::PyLong_CheckExact(object) != 0 {
            let at = ffi::PyLong_AsSsize_t(object);
            if at == -1 && !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            Some(Index::At(at))
        } else if object == ffi::Py_None() {
            Some(Index::NewAxis)
        } else if object == ffi::Py_Ellipsis() {
            Some(Index::Ellipsis)
        } else {
            None
        }
    }
}

/// Writes the indices of a key into `basics` if it makes a view and is in order; says whether it
/// does.
///
/// # Safety
/// It is the address of a valid object, and the thread is attached.
#[inline]
unsafe fn basic_key(key: *mut ffi::PyObject, basics: &mut Basics) -> bool {
    // SAFETY: as the caller says; the entries of a tuple live as long as it.
    unsafe {
        if ffi::PyTuple_CheckExact(key) == 0 {
            return basic(key).map(|index| basics.push(index)).is_some();
        }
        (0..ffi::PyTuple_Size(key)).all(|at| {
            basic(ffi::PyTuple_GetItem(key, at)).map(|index| basics.push(index)).is_some()
        })
    }
}

/// Slots of the class that try the short way first.
pub fn shortened() -> [(c_int, *mut c_void); 2] {
    [
        (ffi::Py_mp_subscript, subscript as ffi::binaryfunc as *mut c_void),
        (ffi::Py_mp_ass_subscript, set_subscript as ffi::objobjargproc as *mut c_void),
    ]
}

/// The place of the element that a key names: integers alone, as many as there are axes. An element is a copy,
/// as a number is one: what is written to the array afterwards does not change it. `x[0, ...]` is a view, as in
/// NumPy.
#[inline]
fn place(basics: &[Index], array: &Array) -> Option<SmallVec<[isize; 6]>> {
    if basics.len() != array.ndim() {
        return None;
    }
    let number = |index: &Index| if let Index::At(at) = *index { Some(at) } else { None };
    basics.iter().map(number).collect()
}

/// The short way of `x[...]`: a view, an element, or what one small array picks.
unsafe extern "C" fn subscript(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let view = || {
        let mut basics = Basics::new();
        // SAFETY: the interpreter calls this slot with valid objects, attached.
        let array = unsafe {
            let array = class::array_at(object)?;
            if let Some(picks) = class::array_at(key) {
                let indexers = [Indexer::Array(picks)];
                let elements = array.len().max(picked_len(array, &indexers));
                return at_once(elements, array.device(), || array.index(&indexers));
            }
            basic_key(key, &mut basics).then_some(array)?
        };
        match place(&basics, array) {
            Some(place) => at_once(1, array.device(), || array.element(&place)),
            None => array.slice(&basics).ok(),
        }
    };
    let base = |function: ffi::binaryfunc| {
        // SAFETY: as above, and the function is the base's.
        unsafe { function(object, key) }
    };
    // SAFETY: as above.
    unsafe { class::through(ffi::Py_mp_subscript, view, base) }
}

/// The short way of `x[...] = y`: a number or one of our arrays into a small view or an element.
unsafe extern "C" fn set_subscript(
    object: *mut ffi::PyObject,
    key: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> c_int {
    let set = || {
        let mut basics = Basics::new();
        // There is no value where an item is to be deleted.
        if value.is_null() {
            return None;
        }
        // SAFETY: the interpreter calls this slot with valid objects, attached.
        let (array, source) = unsafe {
            let array = class::array_at(object)?;
            let source = match class::array_at(value) {
                Some(source) => Arg::Array(source),
                None => {
                    let number = operand::plain_number(value)?;
                    Arg::Number(for_writing("set", number, array.dtype()).ok()?)
                }
            };
            basic_key(key, &mut basics).then_some((array, source))?
        };
        if place(&basics, array).is_some() {
            return at_once(1, array.device(), || array.set(&basics, source));
        }
        let target = array.slice(&basics).ok()?;
        at_once(target.len(), array.device(), || target.assign(source))
    };
    if set().is_some() {
        return 0;
    }
    // SAFETY: the slot is of this type, and its function is called as this one was.
    unsafe {
        let base = class::of_base::<ffi::objobjargproc>(ffi::Py_mp_ass_subscript);
        base.map_or(-1, |function| function(object, key, value))
    }
}

/// An integer of Python as an index of one axis.
fn position(object: &Bound<'_, PyAny>) -> PyResult<Index> {
    // SAFETY: the object is valid and the thread is attached.
    let at = unsafe { ffi::PyNumber_AsSsize_t(object.as_ptr(), ffi::PyExc_IndexError) };
    if at == -1 && PyErr::occurred(object.py()) {
        return Err(PyErr::fetch(object.py()));
    }
    Ok(Index::At(at))
}

/// What is wrong with a slice that [`basic`] refuses.
#[cold]
fn bad_slice(slice: &Bound<'_, PySlice>) -> PyErr {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: the object is a slice and the thread is attached; nothing was raised before.
    unsafe { ffi::PySlice_Unpack(slice.as_ptr(), &mut start, &mut stop, &mut step) };
    PyErr::fetch(slice.py())
}

fn entry(object: &Bound<'_, PyAny>, device: Device) -> PyResult<Entry> {
    // SAFETY: the object is valid and the thread is attached.
    if let Some(index) = unsafe { basic(object.as_ptr()) } {
        return Ok(Entry::Basic(index));
    }
    if let Ok(slice) = object.cast_exact::<PySlice>() {
        return Err(bad_slice(slice));
    }
    if let Some(array) = class::ours(object) {
        return Ok(Entry::Array(array.clone()));
    }
    if let Ok(value) = object.cast_exact::<PyBool>() {
        let mask = Array::full_on(device, &[], value.is_true(), DType::Bool).py()?;
        return Ok(Entry::Array(mask));
    }
    if let Ok(list) = object.cast_exact::<PyList>()
        && list.is_empty()
    {
        return Ok(Entry::Array(Array::zeros_on(device, &[0], DType::Int64).py()?));
    }
    // SAFETY: the object is valid and the thread is attached.
    if unsafe { ffi::PyIndex_Check(object.as_ptr()) } != 0 {
        // NumPy's integers; its arrays claim to be integers too, but are not.
        match position(object) {
            Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {}
            other => return other.map(Entry::Basic),
        }
    }
    match convert::foreign(object, device)? {
        Some(array) => Ok(Entry::Array(array)),
        None => {
            let kind = object.get_type().name()?;
            Err(PyIndexError::new_err(format!(
                "index: integers, slices, ..., None and arrays of integers or bools are indices, {kind} is not"
            )))
        }
    }
}

/// Reads a key: None, with the indices in `basics`, if it makes a view; its entries if an array is
/// among them.
fn key(
    object: &Bound<'_, PyAny>,
    device: Device,
    basics: &mut Basics,
) -> PyResult<Option<Vec<Entry>>> {
    // SAFETY: the object is valid and the thread is attached.
    if unsafe { basic_key(object.as_ptr(), basics) } {
        return Ok(None);
    }
    basics.clear();
    let entries = match object.cast_exact::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|object| entry(&object, device)).collect::<PyResult<_>>()?,
        Err(_) => vec![entry(object, device)?],
    };
    sorted_out(entries, basics)
}

/// Entries that are all basic after all, such as NumPy's integers, make a view.
fn sorted_out(entries: Vec<Entry>, basics: &mut Basics) -> PyResult<Option<Vec<Entry>>> {
    for entry in &entries {
        match entry {
            Entry::Basic(index) => basics.push(*index),
            Entry::Array(_) => return Ok(Some(entries)),
        }
    }
    Ok(None)
}

fn indexers(entries: &[Entry]) -> Vec<Indexer<'_>> {
    entries
        .iter()
        .map(|entry| match entry {
            Entry::Basic(index) => Indexer::Basic(*index),
            Entry::Array(array) => Indexer::Array(array),
        })
        .collect()
}

/// How many elements arrays among indices pick at most.
fn picked_len(array: &Array, indexers: &[Indexer<'_>]) -> usize {
    let taken = |indexer: &Indexer<'_>| match indexer {
        Indexer::Basic(Index::NewAxis | Index::Ellipsis) => 0,
        Indexer::Array(mask) if mask.dtype() == DType::Bool => mask.ndim(),
        _ => 1,
    };
    let beyond = array.ndim().saturating_sub(indexers.iter().map(taken).sum());
    let (mut rest, mut at) = (array.len(), 0);
    // What a mask picks is one line.
    let mut shapes: SmallVec<[SmallVec<[usize; 4]>; 4]> = SmallVec::new();
    for indexer in indexers {
        let axes = at..at + taken(indexer);
        if let Indexer::Array(picks) = indexer {
            let lengths = array.shape().iter().skip(axes.start).take(axes.len());
            lengths.for_each(|&length| rest /= length.max(1));
            shapes.push(match picks.dtype() {
                DType::Bool => SmallVec::from_slice(&[picks.len()]),
                _ => SmallVec::from_slice(picks.shape()),
            });
        }
        let skipped = matches!(indexer, Indexer::Basic(Index::Ellipsis)).then_some(beyond);
        at = axes.end + skipped.unwrap_or(0);
    }
    let shapes: SmallVec<[&[usize]; 4]> = shapes.iter().map(|shape| &shape[..]).collect();
    rest.saturating_mul(result_len(&shapes))
}

/// A number that is written to elements: as NumPy, a float is cut to an integer, which must fit.
pub fn for_writing(operation: &str, number: Number, dtype: DType) -> PyResult<Number> {
    match number {
        Number::Float(_) if dtype.is_integer() => {
            number.to_element(operation, dtype).map(|element| element.to_number()).py()
        }
        _ => Ok(number),
    }
}

#[pymethods]
impl PyArray {
    fn __getitem__(slf: &Bound<'_, Self>, index: &Bound<'_, PyAny>) -> PyResult<PyArray> {
        let array = &slf.get().0;
        let mut basics = Basics::new();
        let Some(entries) = key(index, array.device(), &mut basics)? else {
            return match place(&basics, array) {
                Some(place) => run(slf.py(), 1, array.device(), || array.element(&place)),
                None => array.slice(&basics).py(),
            }
            .map(PyArray);
        };
        let indexers = indexers(&entries);
        let elements = array.len().max(picked_len(array, &indexers));
        run(slf.py(), elements, array.device(), || array.index(&indexers)).map(PyArray)
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let array = &slf.get().0;
        let mut basics = Basics::new();
        let entries = key(index, array.device(), &mut basics)?;
        let Some(mut value) = Operand::written(value, array.dtype(), array.device())? else {
            let kind = value.get_type().name()?;
            return Err(PyTypeError::new_err(format!("set: {kind} is not an array or a number")));
        };
        if let Operand::Number(number) = &mut value {
            *number = for_writing("set", *number, array.dtype())?;
        }
        let source: Arg<'_> = value.arg();
        match entries {
            None => {
                let target = array.slice(&basics).py()?;
                run(slf.py(), target.len(), array.device(), || {
                    target.assign(source).map_err(|error| error.of("set"))
                })
            }
            Some(entries) => {
                let indexers = indexers(&entries);
                let elements = array.len().max(picked_len(array, &indexers));
                run(slf.py(), elements, array.device(), || {
                    array.index_set(&indexers, source).map_err(|error| error.of("set"))
                })
            }
        }
    }

    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("elements of an array cannot be deleted"))
    }
}
