//! Complex arrays and their parts, which are views.

use smallvec::SmallVec;
use tilework_error::{Error, Result};
use tilework_layout::Layout;

use super::Array;
use super::operands::{Arg, common_device, common_shape};

impl Array {
    /// The real parts of a complex array, as a view; a real array itself.
    pub fn real_view(&self) -> Result<Array> {
        self.part_view(0)
    }

    /// The imaginary parts of a complex array, as a view; an error for a real array.
    pub fn imag_view(&self) -> Result<Array> {
        if !self.dtype().is_complex() {
            return Err(Error::dtype(
                "imag_view",
                format!("{} has no imaginary part to view", self.dtype()),
            ));
        }
        self.part_view(1)
    }

    fn part_view(&self, part: usize) -> Result<Array> {
        if !self.dtype().is_complex() {
            return Ok(self.clone());
        }
        // Strides that are never walked may hold any number.
        let strides: SmallVec<[isize; 6]> =
            self.strides().iter().map(|stride| stride.wrapping_mul(2)).collect();
        // Where there are no elements there is no part to step to.
        let part = if self.is_empty() { 0 } else { part };
        let layout = Layout::new(self.shape(), &strides, self.offset() * 2 + part)?;
        self.reinterpret(layout, self.dtype().part())
    }
}

/// A complex array from its parts.
///
/// ```
/// use tilework::{Array, Complex, complex};
/// let z = complex(&Array::from_slice(&[1.0f32])?, &Array::from_slice(&[2.0f32])?)?;
/// assert_eq!(z.to_vec::<Complex<f32>>()?, [Complex::new(1.0, 2.0)]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn complex(real: &Array, imag: &Array) -> Result<Array> {
    let operands = [Arg::Array(real), Arg::Array(imag)];
    let device = common_device("complex", &operands)?;
    let shape = common_shape("complex", &operands)?;
    let dtype = real.dtype().promote(imag.dtype()).with_imaginary();
    let result = Array::unset("complex", device, &shape, dtype)?;
    result.real_view()?.assign(real)?;
    result.imag_view()?.assign(imag)?;
    Ok(result)
}
