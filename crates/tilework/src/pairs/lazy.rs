//! Formulas with arrays: `LazyTensor`.
//!
//! Variables have numbers of their own while a formula is built, so that joining two tensors joins
//! two lists and no more; a reduction numbers them from 0, the same array in the same role once, so
//! that equal formulas are equal and find their plan.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::{SmallVec, smallvec};
use tilework_error::{Error, Result, tuple};
use tilework_formula::functions::{self, Argument};
use tilework_formula::{Category, Expr, Reduction, Variable};

use super::call::{Call, Options, Reduced};
use super::genred::axis_of;
use super::variable::Extent;
use crate::array::Array;

/// A variable and its array.
#[derive(Clone)]
struct Bound {
    variable: Variable,
    array: Array,
}

/// A symbolic tensor F(p, x_i, y_j): a formula and the arrays that its variables are.
///
/// Its axes are batch axes, i, j and the components of the vector. Nothing is computed before a
/// reduction over i (axis 0) or j (axis 1). Operators and methods give errors where dimensions,
/// rows, batches, dtypes or devices do not fit.
///
/// ```
/// use tilework::pairs::LazyTensor;
/// use tilework::{Array, DType};
/// let points = Array::linspace(0.0, 1.0, 6, true, DType::Float64)?.reshape(&[3, 2])?;
/// let (x, y) = (LazyTensor::vi(&points)?, LazyTensor::vj(&points)?);
/// let k = (-&x.sqdist(&y)?)?.exp()?;
/// assert_eq!(k.to_string(), "Exp(-SqDist(Vi(0,2), Vj(1,2))), shape (3, 3, 1)");
/// assert_eq!(k.sum(1)?.shape(), [3, 1]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Clone)]
pub struct LazyTensor {
    expr: Expr,
    bound: SmallVec<[Bound; 3]>,
    extent: Extent,
}

/// An operand: a tensor or a number.
pub enum LazyArg<'a> {
    /// A tensor.
    Tensor(&'a LazyTensor),
    /// A number, which takes the dtype of the arrays.
    Number(f64),
}

impl<'a> From<&'a LazyTensor> for LazyArg<'a> {
    fn from(tensor: &'a LazyTensor) -> Self {
        LazyArg::Tensor(tensor)
    }
}

macro_rules! numbers {
    ($($type:ty)+) => {$(
        impl From<$type> for LazyArg<'_> {
            fn from(number: $type) -> Self {
                LazyArg::Number(number.into())
            }
        }
    )+};
}

numbers!(f64 f32 i32 i16 i8 u32 u16 u8);

/// A formula with variables numbered from 0, and its arrays.
pub(super) struct Numbered {
    pub(super) exprs: Vec<Expr>,
    pub(super) arrays: Vec<Array>,
    pub(super) variables: Vec<Variable>,
    pub(super) extent: Extent,
}

impl LazyTensor {
    fn variable(name: &str, array: &Array, category: Category) -> Result<LazyTensor> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let array = if array.ndim() == 0 && category == Category::Parameter {
            array.reshape(&[1])?
        } else {
            array.clone()
        };
        let dim = array.shape().last().copied().unwrap_or(0);
        let position = NEXT.fetch_add(1, Ordering::Relaxed);
        let variable = Variable { position, dim, category };
        let extent = Extent::of(name, &array, variable)?;
        let expr = Expr::variable(variable)?;
        Ok(LazyTensor { expr, bound: smallvec![Bound { variable, array }], extent })
    }

    /// An array `(..., M, D)` with one row for each i.
    pub fn vi(array: &Array) -> Result<LazyTensor> {
        LazyTensor::variable("vi", array, Category::I)
    }

    /// An array `(..., N, D)` with one row for each j.
    pub fn vj(array: &Array) -> Result<LazyTensor> {
        LazyTensor::variable("vj", array, Category::J)
    }

    /// An array `(..., D)` that is the same for all pairs.
    pub fn pm(array: &Array) -> Result<LazyTensor> {
        LazyTensor::variable("pm", array, Category::Parameter)
    }

    /// An array whose shape says what it is: `(..., M, 1, D)` has rows for i, `(..., 1, N, D)` for
    /// j, `(..., 1, 1, D)`, `(D,)` and `()` are parameters.
    pub fn from_array(array: &Array) -> Result<LazyTensor> {
        let without = |axis: isize| array.squeeze(Some(&[axis]));
        match array.shape() {
            [] | [_] => LazyTensor::pm(array),
            [.., 1, 1, _] => LazyTensor::pm(&array.squeeze(Some(&[-3, -2]))?),
            [.., _, 1, _] => LazyTensor::vi(&without(-2)?),
            [.., 1, _, _] => LazyTensor::vj(&without(-3)?),
            shape => {
                let message = format!(
                    "shape {} is not (..., M, 1, D) or (..., 1, N, D); vi and vj take (..., rows, D)",
                    tuple(shape)
                );
                Err(Error::shape("LazyTensor", message))
            }
        }
    }

    /// A number.
    pub fn constant(number: f64) -> LazyTensor {
        LazyTensor {
            expr: Expr::constant(number),
            bound: SmallVec::new(),
            extent: Extent::default(),
        }
    }

    /// The formula; its variables have numbers that mean nothing.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Number of components.
    pub fn dim(&self) -> usize {
        self.expr.dim()
    }

    /// Batch axes, M, N and the number of components; an index that no array has counts 1.
    pub fn shape(&self) -> Vec<usize> {
        let rest = [self.extent.m.unwrap_or(1), self.extent.n.unwrap_or(1), self.dim()];
        [&self.extent.batch[..], &rest].concat()
    }

    /// The dtype of its arrays, if it has any.
    pub fn dtype(&self) -> Option<crate::DType> {
        self.extent.dtype
    }

    /// A function of formulas by its name in text (`Exp`, `SqDist`, `TensorDot`, ...), with lists
    /// of sizes after the operands.
    ///
    /// ```
    /// use tilework::Array;
    /// use tilework::pairs::LazyTensor;
    /// let x = LazyTensor::vi(&Array::from_nested(&[[3.0f64, 4.0]])?)?;
    /// let norm = LazyTensor::function("Norm2", &[(&x).into()], &[])?;
    /// assert_eq!(norm.sum(1)?.to_vec::<f64>()?, [5.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn function(
        name: &str,
        operands: &[LazyArg<'_>],
        lists: &[&[usize]],
    ) -> Result<LazyTensor> {
        let mut joined = LazyTensor::constant(0.0);
        let mut arguments = Vec::with_capacity(operands.len() + lists.len());
        for operand in operands {
            arguments.push(Argument::Formula(match operand {
                LazyArg::Number(number) => Expr::constant(*number),
                LazyArg::Tensor(tensor) => {
                    joined.join(name, tensor)?;
                    tensor.expr.clone()
                }
            }));
        }
        let list = |list: &&[usize]| Argument::List(list.iter().map(|&n| n as f64).collect());
        arguments.extend(lists.iter().map(list));
        joined.expr = functions::call(name, &arguments)
            .unwrap_or_else(|| Err(Error::formula(format!("there is no function {name}"), None)))?;
        Ok(joined)
    }

    /// Adds the arrays of another.
    fn join(&mut self, name: &str, other: &LazyTensor) -> Result<()> {
        self.extent = self.extent.union(name, &other.extent)?;
        for bound in &other.bound {
            if !self.bound.iter().any(|known| known.variable == bound.variable) {
                self.bound.push(bound.clone());
            }
        }
        Ok(())
    }

    /// The formula of this and another, with the arrays of both.
    pub(super) fn with_expr(
        &self,
        name: &str,
        others: &[&LazyTensor],
        make: impl FnOnce(&Expr) -> Result<Expr>,
    ) -> Result<LazyTensor> {
        let mut joined = self.clone();
        for other in others {
            joined.join(name, other)?;
        }
        joined.expr = make(&self.expr)?;
        Ok(joined)
    }

    /// i and j exchanged.
    pub fn t(&self) -> Result<LazyTensor> {
        let exchanged = |bound: &Bound| {
            let category = bound.variable.category.transposed();
            Bound { variable: Variable { category, ..bound.variable }, array: bound.array.clone() }
        };
        Ok(LazyTensor {
            expr: self.expr.transpose()?,
            bound: self.bound.iter().map(exchanged).collect(),
            extent: Extent { m: self.extent.n, n: self.extent.m, ..self.extent.clone() },
        })
    }

    /// This formula and others of the same tensors, with variables numbered from 0.
    pub(super) fn numbered(&self, others: &[&LazyTensor]) -> Result<Numbered> {
        let mut joined = self.clone();
        for other in others {
            joined.join("reduction", other)?;
        }
        let mut arrays: Vec<(Array, Variable)> = Vec::new();
        let mut renamed: Vec<(Variable, Variable)> = Vec::new();
        for Bound { variable, array } in &joined.bound {
            let is_it = |(known, role): &&(Array, Variable)| {
                role.category == variable.category
                    && known.shares_memory(array)
                    && known.layout() == array.layout()
            };
            let new = match arrays.iter().find(is_it) {
                Some((_, known)) => *known,
                None => {
                    let new = Variable { position: arrays.len(), ..*variable };
                    arrays.push((array.clone(), new));
                    new
                }
            };
            renamed.push((*variable, new));
        }
        let rename = |variable: Variable| {
            let (_, new) = renamed.iter().find(|(old, _)| *old == variable)?;
            Expr::variable(*new).ok()
        };
        let exprs = [self]
            .into_iter()
            .chain(others.iter().copied())
            .map(|tensor| tensor.expr.substitute(rename));
        Ok(Numbered {
            exprs: exprs.collect::<Result<_>>()?,
            variables: arrays.iter().map(|(_, variable)| *variable).collect(),
            arrays: arrays.into_iter().map(|(array, _)| array).collect(),
            extent: joined.extent,
        })
    }

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

    fn with_call<R>(
        &self,
        reduction: &str,
        axis: usize,
        weight: Option<&LazyTensor>,
        k: Option<usize>,
        door: impl FnOnce(&Call<'_>) -> Result<R>,
    ) -> Result<R> {
        let weights: SmallVec<[&LazyTensor; 1]> = weight.into_iter().collect();
        let Numbered { exprs, arrays, extent, .. } = self.numbered(&weights)?;
        let axis = axis_of(axis)?;
        let reduction = Reduction::new(reduction, &exprs[0], axis, k, exprs.get(1))?;
        door(&Call { reduction: &reduction, arrays: &arrays, extent: &extent })
    }

    /// Sum over j of this times `b`, an array of N numbers or of N rows; this must be a number for
    /// each pair.
    pub fn matmul(&self, b: &Array) -> Result<Array> {
        if self.dim() != 1 {
            let message =
                format!("the left operand must be a matrix, but has {} components", self.dim());
            return Err(Error::shape("matmul", message));
        }
        let column = b.ndim() == 1;
        let rows = if column { b.expand_dims(1)? } else { b.clone() };
        let product =
            LazyTensor::function("Mult", &[self.into(), (&LazyTensor::vj(&rows)?).into()], &[])?;
        let result = product.sum(1)?;
        if column { result.squeeze(Some(&[-1])) } else { Ok(result) }
    }

    /// All values, as an array `(..., M, N, D)`: for a look inside, since a reduction needs none
    /// of it.
    pub fn dense(&self) -> Result<Array> {
        // Every j is a batch of its own with one row of j: views, no copies.
        let mut batched = self.clone();
        let n = self.extent.n.unwrap_or(1);
        for bound in &mut batched.bound {
            let parameter = bound.variable.category == Category::Parameter;
            let axis = if parameter || bound.variable.category == Category::J { -2 } else { -3 };
            bound.array = bound.array.expand_dims(axis)?;
        }
        batched.extent.batch.push(n);
        batched.extent.n = Some(1);
        let sum = batched.sum(1)?;
        let full: Vec<usize> = [&batched.extent.batch[..], &sum.shape()[sum.ndim() - 2..]].concat();
        let sum = sum.broadcast_to(&full)?;
        sum.swap_axes(-3, -2)?.copy()
    }

    /// The arrays and roles of the variables.
    pub(super) fn is_variable(&self, of: &LazyTensor) -> Option<Variable> {
        let variable = self.expr.as_variable()?;
        of.bound.iter().any(|bound| bound.variable == variable).then_some(variable)
    }
}

impl fmt::Display for LazyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.shape();
        match self.numbered(&[]) {
            Ok(numbered) => write!(f, "{}, shape {}", numbered.exprs[0], tuple(&shape)),
            Err(_) => write!(f, "{}, shape {}", self.expr, tuple(&shape)),
        }
    }
}

impl fmt::Debug for LazyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyTensor({self})")
    }
}
