//! What a caller hands in, whole numbers and numpy arrays, refused by name where it does not fit.

use std::fmt::Display;
use std::ops::RangeInclusive as Range;

use numpy::ndarray::Dimension;
use numpy::{
    BorrowError, Element, PyArray, PyArrayMethods, PyReadonlyArray, PyReadwriteArray, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::errors::{Error, Result, refuse};

/// Why the slices of an array can be had.
pub const CHECKED: &str = "an array that was checked";

/// What a caller may have given instead of an array.
pub type Object<'py> = Bound<'py, PyAny>;

/// A whole number of any sign and size; no bool, since a mask of matches would become the numbers 0 and 1.
pub struct Whole(pub i128);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if !object.is_exact_instance_of::<PyInt>() && object.get_type().to_string().contains("bool") {
            let words = "a bool came, expected a whole number; np.flatnonzero returns the numbers of a mask";
            return Err(PyTypeError::new_err(words));
        }
        object.extract::<i64>().map(i128::from).or_else(|_| object.extract()).map(Self)
    }
}

impl Whole {
    /// Return the number, if it lies in a range.
    pub fn within<T: TryFrom<i128> + PartialOrd + Display>(&self, name: &str, range: Range<T>) -> Result<T> {
        match T::try_from(self.0) {
            Ok(value) if range.contains(&value) => Ok(value),
            _ => refuse!("{name} is {}, expected {} to {}", self.0, range.start(), range.end()),
        }
    }
}

/// Return an array to read, of one of some shapes.
pub fn readable<'py, T: Element, D: Dimension>(
    name: &str,
    object: &Object<'py>,
    shapes: &[&[usize]],
) -> Result<PyReadonlyArray<'py, T, D>> {
    fitting(name, object, shapes, "np.require")?.try_readonly().map_err(|error| unusable(name, &error))
}

/// Return an array to write, of one shape.
pub fn writable<'py, T: Element, D: Dimension>(
    name: &str,
    object: &Object<'py>,
    shape: &[usize],
) -> Result<PyReadwriteArray<'py, T, D>> {
    fitting(name, object, &[shape], "np.zeros")?.try_readwrite().map_err(|error| unusable(name, &error))
}

/// Return the shape of what may be an array, that of a single number where it is none.
pub fn shape_of(object: &Object<'_>) -> Vec<usize> {
    object.cast::<PyUntypedArray>().map_or(Vec::new(), |array| array.shape().to_vec())
}

/// Return an array of the wanted dtype and shape, whose numbers lie one after another.
fn fitting<'a, 'py, T: Element, D: Dimension>(
    name: &str,
    object: &'a Object<'py>,
    shapes: &[&[usize]],
    maker: &str,
) -> Result<&'a Bound<'py, PyArray<T, D>>> {
    if let Ok(array) = object.cast::<PyArray<T, D>>()
        && shapes.contains(&array.shape())
        && array.is_c_contiguous()
        && array.data().is_aligned()
    {
        return Ok(array);
    }
    let came = match object.cast::<PyUntypedArray>() {
        Ok(array) if array.is_c_contiguous() => format!("{}{:?}", array.dtype(), array.shape()),
        Ok(array) => format!("{}{:?}, not C-contiguous", array.dtype(), array.shape()),
        Err(_) => format!("of the type {}", object.get_type().name()?),
    };
    let (dtype, shapes) = (T::get_dtype(object.py()), shapes.iter().map(|shape| format!("{shape:?}")));
    let shapes = shapes.collect::<Vec<_>>().join(" or ");
    refuse!("{name} is {came}, expected a C-contiguous, aligned array {dtype}{shapes}, as {maker} makes it")
}

fn unusable(name: &str, error: &BorrowError) -> Error {
    Error::Argument(match error {
        BorrowError::NotWriteable => format!("{name} is read-only, expected an array to write into"),
        _ => format!("{name} shares memory with another array in use, expected its own: {name}.copy()"),
    })
}

/// Return the error of a call for matches that are in another call.
pub fn busy<T>(_: T) -> Error {
    Error::Python(PyRuntimeError::new_err(
        "these matches are in another call, of another thread or of this one, expected one call at a time: wait \
         until it returns",
    ))
}
