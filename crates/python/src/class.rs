//! The type object of `tilework.Array`, and how its objects come and go.
//!
//! Half the time of a small operation would be spent in making its result's object and in freeing
//! it again: PyO3 lets the cycle collector know of every object and looks up a dozen things on the
//! way. So the class that users see is made here by hand. It derives from PyO3's, which holds the
//! methods (`array`, `operators`, `indexing`, ...) and has no objects of its own; it adds a list of
//! freed objects and short ways for what is short (`through`), and leaves the rest to its base.
//!
//! An array refers to no object that could refer back to it but through foreign memory, which the
//! collector cannot look into, so it need not be told of arrays. Everything here runs with the GIL
//! held; the stable ABI is not that of interpreters without one.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PySystemError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::{PyTuple, PyType};
use tilework::Array;

use crate::array::PyArray;
use crate::{indexing, operators};

/// What PyO3 lays out for an object of [`PyArray`]; `register` compares.
#[repr(C)]
struct Object {
    base: ffi::PyObject,
    array: PyArray,
    weak_references: *mut ffi::PyObject,
}

/// The class; null before `register`.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());

/// The class, as a pointer to compare with.
#[inline]
fn class() -> *mut ffi::PyTypeObject {
    CLASS.load(Ordering::Relaxed)
}

/// The array of an object that is one of ours.
#[inline]
pub fn ours<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a Array> {
    // SAFETY: the object is valid as long as the reference.
    unsafe { array_at(object.as_ptr()) }
}

/// The array of the object at an address.
///
/// # Safety
/// It is the address of an object that lives for `'a`.
#[inline]
pub unsafe fn array_at<'a>(object: *mut ffi::PyObject) -> Option<&'a Array> {
    // SAFETY: objects of the class, which has no subclasses, are laid out like this, and their
    // arrays are never written to.
    unsafe { (ffi::Py_TYPE(object) == class()).then(|| &(*object.cast::<Object>()).array.0) }
}

impl<'py> IntoPyObject<'py> for PyArray {
    type Target = Self;
    type Output = Bound<'py, Self>;
    type Error = PyErr;

    #[inline]
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        let class = class();
        // SAFETY: what is on the list is memory of an object of this class, untracked, as what
        // `PyObject_GC_New` gives; it is written before anybody sees it. The class derives from
        // that of `Self`.
        unsafe {
            let object = match FREED.take(py) {
                Some(freed) => ffi::PyObject_Init(freed, class),
                None => ffi::PyObject_GC_New::<ffi::PyObject>(class),
            };
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            let fields = object.cast::<Object>();
            (&raw mut (*fields).array).write(self);
            (&raw mut (*fields).weak_references).write(ptr::null_mut());
            Ok(Bound::from_owned_ptr(py, object).cast_into_unchecked())
        }
    }
}

/// Memory of objects that have ended, for the next ones.
struct Freed(UnsafeCell<Kept>);

struct Kept {
    objects: [*mut ffi::PyObject; MOST],
    count: usize,
}

/// More than expressions have alive at a time, and about as many as threads keep blocks of elements; what is kept
/// is some ten kilobytes.
const MOST: usize = 512;

// SAFETY: it is reached through `take` and `put` only, by whoever holds the GIL.
unsafe impl Sync for Freed {}

static FREED: Freed = Freed(UnsafeCell::new(Kept { objects: [ptr::null_mut(); MOST], count: 0 }));

impl Freed {
    #[inline]
    fn take(&self, _py: Python<'_>) -> Option<*mut ffi::PyObject> {
        // SAFETY: the thread has the GIL and lends the list to nobody.
        let kept = unsafe { &mut *self.0.get() };
        kept.count = kept.count.checked_sub(1)?;
        kept.objects.get(kept.count).copied()
    }

    /// Whether there was room for it.
    #[inline]
    fn put(&self, _py: Python<'_>, object: *mut ffi::PyObject) -> bool {
        // SAFETY: as above.
        let kept = unsafe { &mut *self.0.get() };
        let Some(place) = kept.objects.get_mut(kept.count) else { return false };
        *place = object;
        kept.count += 1;
        true
    }
}

/// `tp_dealloc`.
unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this once for an object of the class that nobody refers to any
    // more, with the GIL held.
    unsafe {
        let fields = object.cast::<Object>();
        if !(*fields).weak_references.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        if (*fields).array.0.storage().is_foreign() {
            // It may be the last to hold an object of Python, which PyO3 lets go of at once only
            // where it knows that it may.
            if let Some(dealloc) = of_base::<ffi::destructor>(ffi::Py_tp_dealloc) {
                return dealloc(object);
            }
        }
        (&raw mut (*fields).array).drop_in_place();
        let class = ffi::Py_TYPE(object);
        free(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}

/// `tp_free`.
unsafe extern "C" fn free(object: *mut c_void) {
    // SAFETY: called by `dealloc` or its like in PyO3, with the GIL held, for memory that
    // `PyObject_GC_New` gave.
    unsafe {
        if !FREED.put(Python::assume_attached(), object.cast()) {
            ffi::PyObject_GC_Del(object);
        }
    }
}

/// The function in a slot of the class that PyO3 made.
///
/// # Safety
/// `F` is the type of the functions in this slot, and the GIL is held.
pub unsafe fn of_base<F: Copy>(slot: c_int) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the thread is attached; a function that is not null is of the type that the caller
    // knows.
    unsafe {
        let base = PyArray::type_object_raw(Python::assume_attached());
        let function = ffi::PyType_GetSlot(base, slot);
        (!function.is_null()).then(|| std::mem::transmute_copy(&function))
    }
}

/// What a slot that makes an array does: the short way if that leads somewhere, else that of the base,
/// which knows all cases and how to raise an exception and is called with what the slot was.
///
/// # Safety
/// Called by the interpreter through this slot of the class, whose functions are of type `F`.
#[inline(always)]
pub unsafe fn through<F: Copy>(
    slot: c_int,
    short_way: impl FnOnce() -> Option<Array>,
    call: impl FnOnce(F) -> *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter holds the GIL when it calls a slot.
    let py = unsafe { Python::assume_attached() };
    if let Some(Ok(object)) = short_way().map(|array| PyArray(array).into_pyobject(py)) {
        return object.into_ptr();
    }
    // SAFETY: the caller knows the type of the slot, and the GIL is held.
    unsafe { of_base::<F>(slot).map_or(ptr::null_mut(), call) }
}

/// Makes the class and adds it to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let base = py.get_type::<PyArray>();
    let laid_out = |name: &str, expected: usize| -> PyResult<bool> {
        Ok(base.getattr(name)?.extract::<usize>()? == expected)
    };
    if !laid_out("__basicsize__", size_of::<Object>())?
        || !laid_out("__weakrefoffset__", offset_of!(Object, weak_references))?
    {
        return Err(PySystemError::new_err("objects of Array are not laid out as expected"));
    }
    let doc: CString = CString::new(base.getattr("__doc__")?.extract::<String>()?)?;
    let own = [
        (ffi::Py_tp_doc, doc.as_ptr().cast_mut().cast()),
        (ffi::Py_tp_dealloc, dealloc as ffi::destructor as *mut c_void),
        (ffi::Py_tp_free, free as ffi::freefunc as *mut c_void),
    ];
    let shortened = indexing::shortened().into_iter().chain(operators::shortened());
    let mut slots: Vec<ffi::PyType_Slot> = (own.into_iter().chain(shortened))
        .chain([(0, ptr::null_mut())])
        .map(|(slot, pfunc)| ffi::PyType_Slot { slot, pfunc })
        .collect();
    let mut spec = ffi::PyType_Spec {
        name: c"tilework.Array".as_ptr(),
        basicsize: size_of::<Object>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION) as c_uint,
        slots: slots.as_mut_ptr(),
    };
    let bases = PyTuple::new(py, [&base])?;
    // SAFETY: the specification is whole and outlives the call, which copies what it keeps; the
    // functions are of the types of their slots, and the base has objects of this size.
    let class = unsafe {
        let made = ffi::PyType_FromSpecWithBases(&mut spec, bases.as_ptr());
        Bound::from_owned_ptr_or_err(py, made)?.cast_into::<PyType>()?
    };
    module.add("Array", &class)?;
    // It lives as long as the process: objects of it may outlive the module.
    CLASS.store(class.into_ptr().cast(), Ordering::Relaxed);
    Ok(())
}
