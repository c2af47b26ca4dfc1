//! `x[...]` and `x[...] = y`: keys of Python as indices of the core.
//!
//! Integers, slices, `None` and `...` make a view and take the short way; arrays, lists and masks
//! among them make a gather or a scatter.

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyTuple};
use smallvec::SmallVec;
use tilework::{Arg, Array, DType, Device, Index, Indexer, Number};

use crate::array::PyArray;
use crate::convert;
use crate::errors::OrRaise;
use crate::operand::Operand;
use crate::run::run;

/// One entry of a key.
enum Entry {
    Basic(Index),
    Array(Array),
}

type Basics = SmallVec<[Index; 6]>;

/// Adds the entry of an object if it makes a view; says whether it does.
#[inline]
fn push_basic(object: &Bound<'_, PyAny>, basics: &mut Basics) -> PyResult<bool> {
    let pointer = object.as_ptr();
    // SAFETY: `pointer` is a valid object and the thread is attached; each function is called on
    // the type that it is for.
    unsafe {
        if ffi::PySlice_Check(pointer) != 0 {
            let (mut start, mut stop, mut step) = (0, 0, 0);
            if ffi::PySlice_Unpack(pointer, &mut start, &mut stop, &mut step) < 0 {
                return Err(PyErr::fetch(object.py()));
            }
            // Bounds that were left out come as the ends of isize, which every axis clips.
            basics.push(Index::Slice { start: Some(start), stop: Some(stop), step });
        } else if ffi::PyLong_CheckExact(pointer) != 0 {
            basics.push(position(object)?);
        } else if pointer == ffi::Py_None() {
            basics.push(Index::NewAxis);
        } else if pointer == ffi::Py_Ellipsis() {
            basics.push(Index::Ellipsis);
        } else {
            return Ok(false);
        }
    }
    Ok(true)
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

fn entry(object: &Bound<'_, PyAny>, device: Device) -> PyResult<Entry> {
    let mut basics = Basics::new();
    if push_basic(object, &mut basics)? {
        return Ok(Entry::Basic(basics[0]));
    }
    if let Ok(array) = object.cast_exact::<PyArray>() {
        return Ok(Entry::Array(array.get().0.clone()));
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
#[inline]
fn key(
    object: &Bound<'_, PyAny>,
    device: Device,
    basics: &mut Basics,
) -> PyResult<Option<Vec<Entry>>> {
    let Ok(entries) = object.cast_exact::<PyTuple>() else {
        if push_basic(object, basics)? {
            return Ok(None);
        }
        return sorted_out(vec![entry(object, device)?], basics);
    };
    for object in entries.iter_borrowed() {
        if !push_basic(&object, basics)? {
            basics.clear();
            let all = entries.iter().map(|object| entry(&object, device));
            return sorted_out(all.collect::<PyResult<_>>()?, basics);
        }
    }
    Ok(None)
}

/// Entries that are all basic after all, such as NumPy's integers, make a view.
#[cold]
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

/// A number that is written to elements: as NumPy, a float is cut to an integer, but an integer
/// must fit.
pub fn for_writing(operation: &str, number: Number, dtype: DType) -> PyResult<Number> {
    match number {
        Number::Float(value) if dtype.is_integer() => {
            if !value.is_finite() {
                let message = format!("{operation}: {value} is not a value of {dtype}");
                return Err(PyValueError::new_err(message));
            }
            Ok(number.cast(dtype).to_number())
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
            return array.slice(&basics).py().map(PyArray);
        };
        let indexers = indexers(&entries);
        run(slf.py(), array.len(), array.device(), || array.index(&indexers)).map(PyArray)
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        index: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let array = &slf.get().0;
        let mut basics = Basics::new();
        let entries = key(index, array.device(), &mut basics)?;
        let Some(mut value) = Operand::of(value, array.device())? else {
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
                run(slf.py(), target.len(), array.device(), || target.assign(source))
            }
            Some(entries) => {
                let indexers = indexers(&entries);
                run(slf.py(), array.len(), array.device(), || array.index_set(&indexers, source))
            }
        }
    }

    fn __delitem__(&self, _index: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("elements of an array cannot be deleted"))
    }
}
