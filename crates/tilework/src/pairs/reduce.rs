//! What a tensor is reduced to: results, products with vectors, dense values, explanations.

use std::ops::Range;

use tilework_error::{Error, Result, tuple};
use tilework_formula::{Category, Expr, Reduction, Variable};
use tilework_ops::DType;

use super::call::{Call, Options, Outline, Reduced};
use super::genred::axis_of;
use super::lazy::{Bound, LazyTensor};
use super::variable::Extent;
use crate::array::Array;
use crate::s;

impl LazyTensor {
    /// The reduction of this name, with a weight where it takes one.
    pub fn reduce(
        &self,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        options: &Options<'_>,
    ) -> Result<Reduced> {
        self.with_call(reduction, axis, weight, options.k, |call| call.run(options))
    }

    /// How [`LazyTensor::reduce`] of the same arguments would go: the tape by sections (what is
    /// computed once, once for each i, once for each j, and for every pair), and what the device
    /// makes of it.
    pub fn explain(
        &self,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        options: &Options<'_>,
    ) -> Result<String> {
        self.with_call(reduction, axis, weight, options.k, |call| call.explain(options))
    }

    /// The shape and dtype of what [`LazyTensor::reduce`] of the same arguments gives.
    pub fn outline(
        &self,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        options: &Options<'_>,
    ) -> Result<Outline> {
        self.with_call(reduction, axis, weight, options.k, |call| Ok(call.outline()))
    }

    pub(super) fn with_call<R>(
        &self,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        k: Option<usize>,
        door: impl FnOnce(&Call<'_>) -> Result<R>,
    ) -> Result<R> {
        let axis = axis_of(axis)?;
        match weight {
            None => {
                let alone = self.alone()?;
                let reduction = Reduction::new(reduction, &alone.exprs[0], axis, k, None)?;
                door(&Call::new(&reduction, &alone.arrays, &alone.extent))
            }
            Some(weight) => {
                let both = self.numbered(&[weight])?;
                let weight = both.exprs.get(1);
                let reduction = Reduction::new(reduction, &both.exprs[0], axis, k, weight)?;
                door(&Call::new(&reduction, &both.arrays, &both.extent))
            }
        }
    }

    /// Sum over j of this times `b`, an array of N numbers or of N rows; this must be a number for
    /// each pair.
    pub fn matmul(&self, b: &Array) -> Result<Array> {
        self.matmul_with(b, &Options::default())
    }

    /// The same with options.
    pub fn matmul_with(&self, b: &Array, options: &Options<'_>) -> Result<Array> {
        let result = self.with_product(b, |call| call.run(options)?.only())?;
        if b.ndim() == 1 { result.squeeze(Some(&[-1])) } else { Ok(result) }
    }

    /// The shape and dtype of what [`LazyTensor::matmul`] gives.
    pub fn matmul_outline(&self, b: &Array) -> Result<Outline> {
        let mut outline = self.with_product(b, |call| Ok(call.outline()))?;
        if b.ndim() == 1 {
            outline.shape.pop();
        }
        Ok(outline)
    }

    /// The sum over j of this times the rows of `b`.
    fn with_product<R>(&self, b: &Array, door: impl FnOnce(&Call<'_>) -> Result<R>) -> Result<R> {
        if self.dim() != 1 {
            let message =
                format!("the left operand must be a matrix, but has {} components", self.dim());
            return Err(Error::shape("matmul", message));
        }
        let rows = if b.ndim() == 1 { b.expand_dims(1)? } else { b.clone() };
        let alone = self.alone()?;
        let dim = rows.shape().last().copied().unwrap_or(0);
        let of_b = Variable { position: alone.arrays.len(), dim, category: Category::J };
        let extent = alone.extent.union("matmul", &Extent::of("matmul", &rows, of_b)?)?;
        let product = alone.exprs[0].multiply(&Expr::variable(of_b)?)?;
        let reduction = Reduction::new("Sum", &product, axis_of(1)?, None, None)?;
        let arrays: Vec<Array> = alone.arrays.iter().cloned().chain([rows]).collect();
        door(&Call::new(&reduction, &arrays, &extent))
    }

    /// The tensor of some rows of i and of j, as views of the arrays.
    ///
    /// ```
    /// use tilework::Array;
    /// use tilework::pairs::LazyTensor;
    /// let x = Array::from_nested(&[[0.0f64], [1.0], [5.0]])?;
    /// let d = LazyTensor::vi(&x)?.sqdist(&LazyTensor::vj(&x)?)?;
    /// assert_eq!(d.block(1..3, 0..2)?.dense()?.to_vec::<f64>()?, [1.0, 0.0, 25.0, 16.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn block(&self, rows: Range<usize>, cols: Range<usize>) -> Result<LazyTensor> {
        let mut part = self.unnumbered();
        for Bound { variable, array } in &mut part.bound {
            let range = match variable.category {
                Category::Parameter => continue,
                Category::I => &rows,
                Category::J => &cols,
            };
            if let Some(array) = array {
                *array = rows_of(array, range)?;
            }
        }
        let checked = |held: Option<usize>, range: &Range<usize>, index: &str| match held {
            Some(n) if range.start > range.end || range.end > n => {
                let message = format!("{}..{} leaves {n} rows of {index}", range.start, range.end);
                Err(Error::index("block", message))
            }
            held => Ok(held.map(|_| range.len())),
        };
        part.extent.m = checked(self.extent.m, &rows, "i")?;
        part.extent.n = checked(self.extent.n, &cols, "j")?;
        Ok(part)
    }

    /// How many rows of i and of j there are; what no variable has counts one.
    pub fn rows(&self) -> (usize, usize) {
        (self.extent.rows(Category::I), self.extent.rows(Category::J))
    }

    /// All values, as an array `(..., M, N, D)`: for a look inside, since a reduction needs none
    /// of it.
    pub fn dense(&self) -> Result<Array> {
        self.all_values().map_err(|error| match error {
            Error::OutOfMemory(_) => {
                let shape = self.shape();
                let count = shape.iter().fold(1.0, |count, &n| count * n as f64);
                let dtype = self.dtype().unwrap_or(DType::Float64);
                let message = format!(
                    "no memory for all {} values, {:.1e} bytes of {dtype}; some rows of i and j can be \
                     computed, and reductions need none of it",
                    tuple(&shape),
                    count * dtype.size() as f64
                );
                Error::out_of_memory("dense", message)
            }
            error => error,
        })
    }

    fn all_values(&self) -> Result<Array> {
        // Every j is a batch of its own with one row of j: views, no copies.
        let mut batched = self.unnumbered();
        for bound in &mut batched.bound {
            let parameter = bound.variable.category == Category::Parameter;
            let axis = if parameter || bound.variable.category == Category::J { -2 } else { -3 };
            bound.array = bound.array.take().map(|array| array.expand_dims(axis)).transpose()?;
        }
        batched.extent.batch.push(self.extent.rows(Category::J));
        batched.extent.n = Some(1);
        let sum = batched.sum(1)?;
        let full: Vec<usize> = [&batched.extent.batch[..], &sum.shape()[sum.ndim() - 2..]].concat();
        let sum = sum.broadcast_to(&full)?;
        sum.swap_axes(-3, -2)?.copy()
    }
}

/// Some rows of a variable's array, as a view.
pub(super) fn rows_of(array: &Array, rows: &Range<usize>) -> Result<Array> {
    let signed =
        |n: usize| isize::try_from(n).map_err(|_| Error::index("block", format!("{n} is no row")));
    let range = signed(rows.start)?..signed(rows.end)?;
    array.slice(&s![Ellipsis, range, ..])
}
