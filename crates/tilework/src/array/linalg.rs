//! Products: matmul with NumPy's rules for ranks and batches, dot products, contractions.

use std::borrow::Cow;

use smallvec::SmallVec;
use tilework_backend::{Matmul, MatmulKernel, Request, Target};
use tilework_error::{Error, Result, tuple};
use tilework_layout::{Dims, Layout, broadcast_shapes, normalize_axes, normalize_axis};
use tilework_tape::Tape;

use super::Array;
use super::map::run_map_by;
use super::operands::{Arg, common_device};

impl Array {
    /// Matrix product. Axes before the last two are batches and broadcast; an operand of one axis
    /// is a row on the left, a column on the right, and its axis of length 1 is dropped again.
    ///
    /// ```
    /// use tilework::Array;
    /// let a = Array::from_nested(&[[1.0f32, 2.0], [3.0, 4.0]])?;
    /// let x = Array::from_slice(&[1.0f32, -1.0])?;
    /// assert_eq!(a.matmul(&x)?.to_vec::<f32>()?, [-1.0, -1.0]);
    /// let error = a.matmul(&Array::from_slice(&[1.0f32, 2.0, 3.0])?).unwrap_err();
    /// assert_eq!(error.to_string(), "matmul: shapes (2, 2) and (3,) do not match: 2 is not 3");
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn matmul(&self, other: &Array) -> Result<Array> {
        self.matmul_by(other, MatmulKernel::Best)
    }

    /// The matrix product into an array of its shape and dtype.
    pub fn matmul_into(&self, other: &Array, out: &Array) -> Result<()> {
        let product = Product::new(self, other)?;
        let expected = product.final_shape();
        if expected[..] != *out.shape() {
            let (result, target) = (tuple(&expected), tuple(out.shape()));
            let message = format!("the result has shape {result}, the target {target}");
            return Err(Error::shape("matmul", message));
        }
        if product.a.dtype() != out.dtype() {
            let (result, target) = (product.a.dtype(), out.dtype());
            let message = format!("the result is {result}, the target {target}");
            return Err(Error::dtype("matmul", message));
        }
        common_device("matmul", &[Arg::Array(self), Arg::Array(out)])?;
        let shares = self.shares_memory(out) || other.shares_memory(out);
        let layout = if shares { None } else { out.layout().reshape(&product.shape)? };
        if let Some(layout) = layout {
            let target = Target::shared("matmul", out.borrow().with_layout(&layout)?)?;
            return product.run(MatmulKernel::Best, target);
        }
        let target = Target::shared("matmul", out.borrow())?;
        let made = Array::unset("matmul", self.device, &product.shape, out.dtype())?;
        let made_here = Target::shared("matmul", made.borrow())?;
        let first = [product.request(MatmulKernel::Best, made_here)?];
        let result = product.without_added_axes(made.clone())?;
        let (tape, from) = (Tape::casting(out.dtype(), out.dtype()), [Arg::Array(&result)]);
        run_map_by("matmul", tape, &from, out.dtype(), target, |copy| {
            self.device.run_after("matmul", &first, copy)
        })
    }

    /// [`Array::matmul`], but float32 is multiplied as three bfloat16 pieces where the CPU has a
    /// tile unit (AMX): as accurate as float32 and often faster, with other last bits. Operands
    /// with values that cannot be split (near the ends of float32's range, infinite, NaN), other
    /// dtypes and other devices are multiplied as `matmul` does.
    pub fn matmul_by_pieces(&self, other: &Array) -> Result<Array> {
        self.matmul_by(other, MatmulKernel::Pieces)
    }

    pub(super) fn matmul_by(&self, other: &Array, kernel: MatmulKernel) -> Result<Array> {
        if let Some(shape) = plain_shape(self, other) {
            let mut fresh = self.device.allocate("matmul", &shape, self.dtype(), false)?;
            let (a, b, output) = (self.borrow(), other.borrow(), fresh.target());
            self.device.run("matmul", &Request::Matmul(Matmul { a, b, output, kernel }))?;
            return Ok(Array::from_fresh(fresh, self.device));
        }
        let product = Product::new(self, other)?;
        let mut fresh = self.device.allocate("matmul", &product.shape, product.a.dtype(), false)?;
        product.run(kernel, fresh.target())?;
        let result = Array::from_fresh(fresh, self.device);
        product.without_added_axes(result)
    }

    /// Sum of products along an axis of both arrays, which broadcast; the left operand is
    /// conjugated.
    pub fn vecdot(&self, other: &Array, axis: isize) -> Result<Array> {
        let conjugate = if self.dtype().is_complex() { self.conj()? } else { self.clone() };
        let size = |array: &Array| -> Result<usize> {
            Ok(array.shape()[normalize_axis("vecdot", axis, array.ndim())?])
        };
        if size(self)? != size(other)? {
            let (a, b) = (tuple(self.shape()), tuple(other.shape()));
            let message = format!("shapes {a} and {b} differ along axis {axis}");
            return Err(Error::shape("vecdot", message));
        }
        let row = conjugate.move_axes(&[axis], &[-1])?.expand_dims(-2)?;
        let column = other.move_axes(&[axis], &[-1])?.expand_dims(-1)?;
        let product = row.matmul(&column).map_err(|error| error.of("vecdot"))?;
        product.squeeze(Some(&[-2, -1]))
    }

    /// Sum of products over pairs of axes; the result has the other axes of `self`, then those of
    /// `other`.
    pub fn tensordot(&self, other: &Array, axes: &[isize], other_axes: &[isize]) -> Result<Array> {
        let over = normalize_axes("tensordot", axes, self.ndim())?;
        let other_over = normalize_axes("tensordot", other_axes, other.ndim())?;
        let lengths = |array: &Array, axes: &[usize]| -> Dims {
            axes.iter().map(|&axis| array.shape()[axis]).collect()
        };
        if lengths(self, &over) != lengths(other, &other_over) {
            let (a, b) = (tuple(self.shape()), tuple(other.shape()));
            let (over, other_over) = (tuple(&over), tuple(&other_over));
            let message =
                format!("axes {over} of {a} and {other_over} of {b} have different lengths");
            return Err(Error::shape("tensordot", message));
        }
        let free = |array: &Array, over: &[usize]| -> Dims {
            (0..array.ndim()).filter(|axis| !over.contains(axis)).collect()
        };
        let (left, right) = (free(self, &over), free(other, &other_over));
        let inner: usize = lengths(self, &over).iter().product();
        let matrix = |array: &Array, order: [&[usize]; 2], shape: [usize; 2]| -> Result<Array> {
            let order: SmallVec<[isize; 6]> =
                order.into_iter().flatten().map(|axis| axis.cast_signed()).collect();
            array.permute(&order)?.reshape(&shape.map(usize::cast_signed))
        };
        let rows: usize = lengths(self, &left).iter().product();
        let columns: usize = lengths(other, &right).iter().product();
        let a = matrix(self, [&left, &over], [rows, inner])?;
        let b = matrix(other, [&other_over, &right], [inner, columns])?;
        let shape: Vec<isize> = lengths(self, &left)
            .iter()
            .chain(&lengths(other, &right))
            .map(|&n| n as isize)
            .collect();
        a.matmul(&b)?.reshape(&shape)
    }

    /// All products of an element of `self` with one of `other`, both of one axis.
    pub fn outer(&self, other: &Array) -> Result<Array> {
        self.ravel()?.expand_dims(1)?.multiply(&other.ravel()?)
    }
}

/// The shape of a product that needs no preparation: two matrices that match, of one dtype and on
/// one device. Settling broadcasts and casts takes longer than multiplying small ones.
#[inline]
fn plain_shape(a: &Array, b: &Array) -> Option<[usize; 2]> {
    let (&[m, k], &[inner, n]) = (a.shape(), b.shape()) else { return None };
    (k == inner && a.dtype() == b.dtype() && a.device == b.device).then_some([m, n])
}

/// Operands as matrices with equal batch axes, ready for a request. Small products take less time
/// than the reference counts and layouts of copies: operands that are as they must be are borrowed.
struct Product<'a> {
    a: Cow<'a, Array>,
    b: Cow<'a, Array>,
    /// The layouts of operands that broadcast.
    a_layout: Option<Layout>,
    b_layout: Option<Layout>,
    /// With axes added for operands of one axis.
    shape: Dims,
    row_added: bool,
    column_added: bool,
}

impl<'a> Product<'a> {
    fn new(a: &'a Array, b: &'a Array) -> Result<Product<'a>> {
        common_device("matmul", &[Arg::Array(a), Arg::Array(b)])?;
        if a.ndim() == 0 || b.ndim() == 0 {
            let (a, b) = (tuple(a.shape()), tuple(b.shape()));
            let message =
                format!("shapes {a} and {b}: both operands need an axis; multiply scales");
            return Err(Error::shape("matmul", message));
        }
        let dtype = a.dtype().promote(b.dtype());
        let (row_added, column_added) = (a.ndim() == 1, b.ndim() == 1);
        let matrix = |array: &'a Array, added: Option<isize>| match added {
            Some(axis) => array.expand_dims(axis).map(Cow::Owned),
            None => Ok(Cow::Borrowed(array)),
        };
        let left = matrix(a, row_added.then_some(0))?;
        let right = matrix(b, column_added.then_some(1))?;
        let (batch_a, m, k) = split(left.shape());
        let (batch_b, inner, n) = split(right.shape());
        if k != inner {
            let (a, b) = (tuple(a.shape()), tuple(b.shape()));
            return Err(Error::shape(
                "matmul",
                format!("shapes {a} and {b} do not match: {k} is not {inner}"),
            ));
        }
        let batch = broadcast_shapes("matmul", &[batch_a, batch_b])?;
        let full = |rows: usize, columns: usize| -> Dims {
            batch.iter().copied().chain([rows, columns]).collect()
        };
        let (a_shape, b_shape) = (full(m, k), full(k, n));
        let cast = |array: Cow<'a, Array>| match array.dtype() == dtype {
            true => Ok(array),
            false => array.astype(dtype).map(Cow::Owned),
        };
        let broadcast = |array: &Array, shape: &[usize]| {
            let same = array.shape() == shape;
            (!same).then(|| array.layout().broadcast_to(shape)).transpose()
        };
        let (a, b) = (cast(left)?, cast(right)?);
        let (a_layout, b_layout) = (broadcast(&a, &a_shape)?, broadcast(&b, &b_shape)?);
        Ok(Product { a, b, a_layout, b_layout, shape: full(m, n), row_added, column_added })
    }

    fn run<'b>(&'b self, kernel: MatmulKernel, output: Target<'b>) -> Result<()> {
        self.a.device.run("matmul", &self.request(kernel, output)?)
    }

    fn request<'b>(&'b self, kernel: MatmulKernel, output: Target<'b>) -> Result<Request<'b>> {
        let view = |array: &'b Array, layout: &'b Option<Layout>| match layout {
            Some(layout) => array.borrow().with_layout(layout),
            None => Ok(array.borrow()),
        };
        let (a, b) = (view(&self.a, &self.a_layout)?, view(&self.b, &self.b_layout)?);
        Ok(Request::Matmul(Matmul { a, b, output, kernel }))
    }

    fn final_shape(&self) -> Dims {
        let batch = self.shape.len() - 2;
        let keeps = |axis: usize| {
            !(axis == batch && self.row_added || axis == batch + 1 && self.column_added)
        };
        (0..self.shape.len()).filter(|&axis| keeps(axis)).map(|axis| self.shape[axis]).collect()
    }

    fn without_added_axes(&self, result: Array) -> Result<Array> {
        let mut added: SmallVec<[isize; 2]> = SmallVec::new();
        if self.row_added {
            added.push(-2);
        }
        if self.column_added {
            added.push(-1);
        }
        if added.is_empty() { Ok(result) } else { result.squeeze(Some(&added)) }
    }
}

fn split(shape: &[usize]) -> (&[usize], usize, usize) {
    let (batch, matrix) = shape.split_at(shape.len() - 2);
    (batch, matrix[0], matrix[1])
}
