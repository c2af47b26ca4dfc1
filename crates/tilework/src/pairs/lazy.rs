//! Formulas with arrays: `LazyTensor`.
//!
//! Variables have numbers of their own while a formula is built, so that joining two tensors joins
//! two lists and no more; `number` numbers them from 0 when they are reduced (`reduce`). Symbolic
//! variables keep the user's numbers and have no array until they are filled.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::{SmallVec, smallvec};
use tilework_error::{Error, Result, tuple};
use tilework_fork::ForkOnce;
use tilework_formula::functions::{self, Argument};
use tilework_formula::{Category, Expr, POSITIONS, Variable};

use super::number::Numbered;
use super::variable::Extent;
use crate::array::Array;

/// A variable and its array; a symbolic one has none.
#[derive(Clone)]
pub(super) struct Bound {
    pub(super) variable: Variable,
    pub(super) array: Option<Array>,
}

impl Bound {
    /// Whether two variables are the same numbers in the same role, also where memory that belongs
    /// to others (an array of NumPy's) was brought in twice.
    pub(super) fn is_alike(&self, other: &Bound) -> bool {
        let (Some(a), Some(b)) = (&self.array, &other.array) else { return false };
        self.variable.category == other.variable.category
            && a.is_same_memory(b)
            && a.dtype() == b.dtype()
            && a.layout() == b.layout()
    }
}

/// Refuses gradients towards an array that a formula with these variables does not have. They are zero,
/// which is true, and not what was meant. Symbolic variables are arguments of a call, which may do nothing.
pub(super) fn check_has(known: &[Bound], others: &[Bound]) -> Result<()> {
    let is_there = |other: &&Bound| known.iter().any(|known| known.variable == other.variable);
    let Some(lost) = others.iter().filter(|other| other.array.is_some()).find(|o| !is_there(o))
    else {
        return Ok(());
    };
    let is_turned = |known: &Bound| known.variable.position == lost.variable.position;
    let message = if known.iter().any(is_turned) {
        "the formula is transposed; the gradient is taken towards the transposed tensor, x.T"
    } else if known.iter().any(|known| known.is_alike(lost)) {
        "the formula has another variable of this array; the gradient is taken towards the tensor that \
         the formula was made with"
    } else {
        "the formula does not have this variable; the gradient is taken towards the tensor that it was \
         made with, and a copy of that, or one out of a pickle, is another"
    };
    Err(Error::value("grad", message))
}

/// Where the numbers of variables that have arrays begin; those below are the user's.
pub(super) const OWN: usize = usize::MAX / 2;

/// The axis of a tensor that a number names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// i (0) or j (1): what reductions take.
    Index(usize),
    /// The components of the vector.
    Components,
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
/// let points = Array::linspace(0.0..=1.0, 6, DType::Float64)?.reshape(&[3, 2])?;
/// let (x, y) = (LazyTensor::vi(&points)?, LazyTensor::vj(&points)?);
/// let k = (-&x.sqdist(&y)?)?.exp()?;
/// assert_eq!(k.to_string(), "Exp(-SqDist(Vi(0,2), Vj(1,2))), shape (3, 3, 1)");
/// assert_eq!(k.sum(1)?.shape(), [3, 1]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Clone)]
pub struct LazyTensor {
    pub(super) expr: Expr,
    pub(super) bound: SmallVec<[Bound; 3]>,
    pub(super) extent: Extent,
    /// The numbered form, once it was asked for.
    pub(super) numbered: ForkOnce<Arc<Numbered>>,
}

/// An operand: a tensor or a number.
#[derive(Clone, Copy)]
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

/// A number that no variable has had.
fn fresh() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(OWN);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl LazyTensor {
    fn made(expr: Expr, bound: SmallVec<[Bound; 3]>, extent: Extent) -> LazyTensor {
        LazyTensor { expr, bound, extent, numbered: ForkOnce::new() }
    }

    pub(super) fn variable(name: &str, array: &Array, category: Category) -> Result<LazyTensor> {
        let array = if array.ndim() == 0 && category == Category::Parameter {
            array.reshape(&[1])?
        } else {
            array.clone()
        };
        let dim = array.shape().last().copied().unwrap_or(0);
        let variable = Variable { position: fresh(), dim, category };
        let extent = Extent::of(name, &array, variable)?;
        let bound = smallvec![Bound { variable, array: Some(array) }];
        Ok(LazyTensor::made(Expr::variable(variable)?, bound, extent))
    }

    /// The variable at a position of a later call: `fill` gives it its array.
    ///
    /// ```
    /// use tilework::Array;
    /// use tilework::pairs::{Category, LazyTensor};
    /// let x = LazyTensor::symbolic(0, 1, Category::I)?;
    /// let y = LazyTensor::vj(&Array::from_nested(&[[1.0f64], [3.0]])?)?;
    /// let d = x.sqdist(&y)?;
    /// assert!(d.sum(1).unwrap_err().to_string().contains("Vi(0,1) has no array"));
    /// let d = d.fill(&[&Array::from_nested(&[[0.0f64]])?])?;
    /// assert_eq!(d.sum(1)?.to_vec::<f64>()?, [10.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn symbolic(position: usize, dim: usize, category: Category) -> Result<LazyTensor> {
        if position >= POSITIONS {
            let message =
                format!("{position} is no position: positions go from 0 to {}", POSITIONS - 1);
            return Err(Error::value("symbolic", message));
        }
        let variable = Variable { position, dim, category };
        let bound = smallvec![Bound { variable, array: None }];
        Ok(LazyTensor::made(Expr::variable(variable)?, bound, Extent::default()))
    }

    /// The symbolic variables, by position.
    pub fn symbols(&self) -> Vec<Variable> {
        let symbolic = self.bound.iter().filter(|bound| bound.array.is_none());
        let mut symbols: Vec<Variable> = symbolic.map(|bound| bound.variable).collect();
        symbols.sort_unstable();
        symbols
    }

    /// The arrays that a call with these symbolic variables takes, for messages.
    #[doc(hidden)]
    pub fn wanted(symbols: &[Variable]) -> String {
        let names: Vec<String> = symbols.iter().map(Variable::to_string).collect();
        match &names[..] {
            [] => "no arrays".to_owned(),
            [one] => format!("one array, for {one}"),
            all => format!("{} arrays, for {}", all.len(), all.join(", ")),
        }
    }

    /// The tensor with arrays for its symbolic variables, in the order of their positions.
    pub fn fill(&self, arrays: &[&Array]) -> Result<LazyTensor> {
        let symbols = self.symbols();
        if symbols.len() != arrays.len() {
            let message = format!("takes {}, not {}", LazyTensor::wanted(&symbols), arrays.len());
            return Err(Error::value("call", message));
        }
        let mut filled = self.clone();
        filled.numbered = ForkOnce::new();
        let mut renamed = Vec::with_capacity(symbols.len());
        for (symbol, array) in symbols.into_iter().zip(arrays) {
            let variable = Variable { position: fresh(), ..symbol };
            let name = symbol.to_string();
            filled.extent = filled.extent.union(&name, &Extent::of(&name, array, variable)?)?;
            filled.bound.retain(|bound| bound.variable != symbol);
            filled.bound.push(Bound { variable, array: Some((*array).clone()) });
            renamed.push((symbol, Expr::variable(variable)?));
        }
        let with = |variable| {
            renamed.iter().find(|(symbol, _)| *symbol == variable).map(|(_, new)| new.clone())
        };
        filled.expr = self.expr.substitute(with)?;
        Ok(filled)
    }

    /// An array `(..., M, D)` with one row for each i.
    pub fn vi(array: &Array) -> Result<LazyTensor> {
        LazyTensor::variable("Vi", array, Category::I)
    }

    /// An array `(..., N, D)` with one row for each j.
    pub fn vj(array: &Array) -> Result<LazyTensor> {
        LazyTensor::variable("Vj", array, Category::J)
    }

    /// An array `(..., D)` that is the same for all pairs.
    pub fn pm(array: &Array) -> Result<LazyTensor> {
        LazyTensor::variable("Pm", array, Category::Parameter)
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
                    "shape {} is not (..., M, 1, D) or (..., 1, N, D); Vi and Vj take (..., rows, D)",
                    tuple(shape)
                );
                Err(Error::shape("LazyTensor", message))
            }
        }
    }

    /// The same variable, whose numbers take the dtype and the device of the arrays that they meet.
    ///
    /// ```
    /// use tilework::pairs::LazyTensor;
    /// use tilework::{Array, DType};
    /// let s = LazyTensor::pm(&Array::from_slice(&[0.5f64, 2.0])?)?.weak();
    /// let x = LazyTensor::vi(&Array::ones(&[3, 2], DType::Float32)?)?;
    /// assert_eq!(x.multiply(&s)?.sum(1)?.dtype(), DType::Float32);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn weak(mut self) -> LazyTensor {
        self.numbered = ForkOnce::new();
        (self.extent.dtype, self.extent.device) = (None, None);
        self
    }

    /// A number.
    pub fn constant(number: f64) -> LazyTensor {
        LazyTensor::made(Expr::constant(number), SmallVec::new(), Extent::default())
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

    /// Number of batch axes.
    pub fn batch_axes(&self) -> usize {
        self.extent.batch.len()
    }

    /// What an axis number means: batch axes come first, then i, j and the components; negative
    /// numbers count from the end.
    pub fn along(&self, axis: isize) -> Result<Along> {
        let batch = self.batch_axes() as isize;
        let from_i = if axis < 0 { axis + 3 } else { axis - batch };
        match from_i {
            0 | 1 => Ok(Along::Index(from_i as usize)),
            2 => Ok(Along::Components),
            _ => {
                let message = format!(
                    "axis {axis} is not {batch} (i), {} (j) or {} (the components); batch axes stay",
                    batch + 1,
                    batch + 2
                );
                Err(Error::axis("reduction", message))
            }
        }
    }

    /// Rows of i and of j, where a variable has them.
    pub fn extents(&self) -> (Option<usize>, Option<usize>) {
        (self.extent.m, self.extent.n)
    }

    /// Where its arrays are, if it has any.
    pub fn device(&self) -> Option<crate::Device> {
        self.extent.device
    }

    /// The array, if it is a variable that has one.
    pub fn array(&self) -> Option<&Array> {
        let variable = self.expr.as_variable()?;
        let bound = self.bound.iter().find(|bound| bound.variable == variable)?;
        bound.array.as_ref()
    }

    /// The formula as text, whose variables are numbered as in a call: the symbolic ones keep
    /// their numbers, the arrays come after them.
    pub fn formula(&self) -> Result<String> {
        self.shown().map(|expr| expr.to_string())
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
        let mut joined: Option<LazyTensor> = None;
        let mut arguments: SmallVec<[Argument; 4]> = SmallVec::new();
        for operand in operands {
            arguments.push(Argument::Formula(match operand {
                LazyArg::Number(number) => Expr::constant(*number),
                LazyArg::Tensor(tensor) => {
                    match &mut joined {
                        Some(joined) => joined.join(name, tensor)?,
                        None => joined = Some(tensor.unnumbered()),
                    }
                    tensor.expr.clone()
                }
            }));
        }
        if let [LazyArg::Tensor(formula), LazyArg::Tensor(v), ..] = operands
            && functions::takes_variable(name)
        {
            check_has(&formula.bound, &v.bound)?;
        }
        let list = |list: &&[usize]| Argument::List(list.iter().map(|&n| n as f64).collect());
        arguments.extend(lists.iter().map(list));
        let expr = functions::call(name, &arguments)
            .unwrap_or_else(|| Err(Error::formula(format!("there is no function {name}"), None)))?;
        let mut joined = joined.unwrap_or_else(|| LazyTensor::constant(0.0));
        if let [_, LazyArg::Tensor(v), ..] = operands
            && functions::is_of_linear(name)
        {
            // What it was linear in stands for the argument of a map, of which the map's trace has none.
            let gone = v.expr.as_variable().filter(|_| !expr.contains(&v.expr));
            joined.bound.retain(|own| own.array.is_some() || Some(own.variable) != gone);
        }
        Ok(LazyTensor { expr, ..joined })
    }

    /// The same, to be changed.
    pub(super) fn unnumbered(&self) -> LazyTensor {
        LazyTensor::made(self.expr.clone(), self.bound.clone(), self.extent.clone())
    }

    /// Adds the arrays of another.
    pub(super) fn join(&mut self, name: &str, other: &LazyTensor) -> Result<()> {
        self.extent = self.extent.union(name, &other.extent)?;
        for bound in &other.bound {
            let is_at = |own: &&Bound| own.variable.position == bound.variable.position;
            if let Some(own) = self.bound.iter().find(is_at)
                && own.array.is_none()
                && own.variable != bound.variable
            {
                let [own, other] = [own.variable, bound.variable];
                let message =
                    format!("argument {} is used both as {own} and as {other}", own.position);
                return Err(Error::value(name, message));
            }
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
        let mut joined = self.unnumbered();
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
        Ok(LazyTensor::made(
            self.expr.transpose()?,
            self.bound.iter().map(exchanged).collect(),
            Extent { m: self.extent.n, n: self.extent.m, ..self.extent.clone() },
        ))
    }
}

impl fmt::Display for LazyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.shape();
        match self.shown() {
            Ok(expr) => write!(f, "{expr}, shape {}", tuple(&shape)),
            Err(_) => write!(f, "{}, shape {}", self.expr, tuple(&shape)),
        }
    }
}

impl fmt::Debug for LazyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyTensor({self})")
    }
}
