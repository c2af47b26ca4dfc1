//! Reductions written as text: `Genred`.

use tilework_error::{Error, Result};
use tilework_formula::declare::{Declaration, declaration, declarations};
use tilework_formula::parse::{Meaning, parse};
use tilework_formula::{Axis, Expr, Reduction, Variable};

use super::call::{Call, Options, Outline, Reduced};
use super::gradient::Work;
use super::partial::Partial;
use super::variable::Extent;
use crate::array::Array;

/// A reduction of a formula in text, ready to be called with arrays.
///
/// ```
/// use tilework::Array;
/// use tilework::pairs::Genred;
/// let aliases = ["x = Vi(1)", "y = Vj(1)", "b = Vj(1)"];
/// let sum = Genred::new("Exp(-SqDist(x,y)) * b", &aliases, "Sum", 1)?;
/// let x = Array::from_nested(&[[0.0f64], [1.0]])?;
/// let b = Array::from_nested(&[[1.0f64], [2.0]])?;
/// let a = sum.call(&[&x, &x, &b])?;
/// assert_eq!(a.shape(), [2, 1]);
/// let error = sum.call(&[&x, &x.reshape(&[1, 2])?, &b]).unwrap_err().to_string();
/// assert_eq!(error, "y: an array of shape (1, 2) has vectors of 2 components, not 1");
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Genred {
    reduction: Reduction,
    declared: Vec<Declaration>,
}

impl Genred {
    /// The reduction of this name (`Sum`, `LogSumExp`, `ArgKMin`, ...) over i (axis 0) or j (axis
    /// 1) of a formula with these declarations, such as `x = Vi(3)`.
    pub fn new(formula: &str, aliases: &[&str], reduction: &str, axis: usize) -> Result<Genred> {
        Genred::with(formula, aliases, reduction, axis, None, None)
    }

    /// The same with K and a second formula, for reductions that take them.
    pub fn with(
        formula: &str,
        aliases: &[&str],
        reduction: &str,
        axis: usize,
        k: Option<usize>,
        weight: Option<&str>,
    ) -> Result<Genred> {
        let mut declared = declarations(aliases)?;
        let mut read = |text: &str| -> Result<Expr> {
            let parsed = parse(text, aliases)?;
            for variable in parsed.variables {
                if !declared.iter().any(|known| known.variable == variable) {
                    declared.push(Declaration { name: None, variable });
                }
            }
            match parsed.meaning {
                Meaning::Formula(expr) => Ok(expr),
                Meaning::Reduction(_) => {
                    let message = "a formula is expected here, not a reduction";
                    Err(Error::formula(message, None))
                }
            }
        };
        let formula = read(formula)?;
        let weight = weight.map(read).transpose()?;
        let reduction = Reduction::new(reduction, &formula, axis_of(axis)?, k, weight.as_ref())?;
        Ok(Genred { reduction, declared })
    }

    /// The reduction.
    pub fn reduction(&self) -> &Reduction {
        &self.reduction
    }

    /// How many arrays a call takes.
    pub fn arguments(&self) -> usize {
        self.declared.iter().map(|declared| declared.variable.position + 1).max().unwrap_or(0)
    }

    /// The position of a variable, by its name or its text: `b` or `Var(2,1,1)`.
    pub fn position(&self, variable: &str) -> Option<usize> {
        self.variable(variable).map(|variable| variable.position)
    }

    fn variable(&self, variable: &str) -> Option<Variable> {
        let text = declaration(variable, 0).ok().map(|text| text.variable);
        let is_it = |known: &&Declaration| {
            known.name.as_deref() == Some(variable) || Some(known.variable) == text
        };
        self.declared.iter().find(is_it).map(|known| known.variable)
    }

    /// The error for a name that no variable has, with the names that there are.
    fn unknown(&self, name: &str) -> Error {
        let known = |known: &Declaration| {
            let text = known.name.clone().unwrap_or_else(|| known.variable.to_string());
            format!("`{text}`")
        };
        let known: Vec<String> = self.declared.iter().map(known).collect();
        let hint = match &known[..] {
            [] => "the formula has none".to_owned(),
            _ => format!("the formula has {}", known.join(", ")),
        };
        Error::value("grad", format!("there is no variable `{name}`; {hint}"))
    }

    /// The values, or the indices of a reduction that gives only those.
    ///
    /// Arrays are `(..., M, D)` for i, `(..., N, D)` for j and `(..., D)` for parameters; batch
    /// axes broadcast. The result is `(..., M, width)` or `(..., N, width)`.
    pub fn call(&self, arrays: &[&Array]) -> Result<Array> {
        self.call_with(arrays, &Options::default())?.only()
    }

    /// All that the reduction gives, with options. `k` is that of the reduction.
    pub fn call_with(&self, arrays: &[&Array], options: &Options<'_>) -> Result<Reduced> {
        self.with_call(arrays, |call| call.run(options))
    }

    /// The values, and the gradients of the sum of `e` times them (of their sum, if there is no `e`)
    /// towards variables, by name; as far as possible in one pass over the pairs. What came from one pass may be
    /// views of one array, which stays as long as any of them: `compact` makes one of them an array of its own.
    ///
    /// ```
    /// use tilework::Array;
    /// use tilework::pairs::{Genred, Options};
    /// let sum = Genred::new("p * SqDist(x,y)", &["x = Vi(1)", "y = Vj(1)", "p = Pm(1)"], "Sum", 1)?;
    /// let x = Array::from_nested(&[[1.0f64], [2.0]])?;
    /// let y = Array::from_nested(&[[0.0f64], [5.0], [7.0]])?;
    /// let p = Array::from_slice(&[1.0f64])?;
    /// let (value, gradients) =
    ///     sum.value_and_grad(&[&x, &y, &p], &["x", "p"], None, &Options::default())?;
    /// assert_eq!(value.to_vec::<f64>()?, [53.0, 38.0]);
    /// assert_eq!(gradients[0].to_vec::<f64>()?, [-18.0, -12.0]);
    /// assert_eq!(gradients[1].to_vec::<f64>()?, [91.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn value_and_grad(
        &self,
        arrays: &[&Array],
        variables: &[&str],
        e: Option<&Array>,
        options: &Options<'_>,
    ) -> Result<(Array, Vec<Array>)> {
        let extent = self.extent(arrays)?;
        let mut of = Vec::with_capacity(variables.len());
        for name in variables {
            of.push(self.variable(name).ok_or_else(|| self.unknown(name))?);
        }
        let arrays = arrays.iter().map(|array| (*array).clone()).collect();
        Work::of(self.reduction.clone(), arrays, extent)?.value_and_grads(&of, e, options)
    }

    /// The state of [`Genred::call_with`] over the rows at hand, the first of which has the index `offset`
    /// of a longer array.
    ///
    /// ```
    /// use tilework::pairs::{Genred, Options};
    /// use tilework::{Array, s};
    /// let nearest = Genred::new("SqDist(x,y)", &["x = Vi(1)", "y = Vj(1)"], "ArgMin", 1)?;
    /// let x = Array::from_nested(&[[2.5f64]])?;
    /// let y = Array::from_nested(&[[4.0f64], [2.0], [9.0], [2.0]])?;
    /// let part = |first: isize| {
    ///     let y = y.slice(&s![first..first + 2])?;
    ///     nearest.partial(&[&x, &y], first as i64, &Options::default())
    /// };
    /// assert_eq!(part(2)?.merge(&part(0)?)?.finish()?.only()?.to_vec::<i64>()?, [1]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn partial(
        &self,
        arrays: &[&Array],
        offset: i64,
        options: &Options<'_>,
    ) -> Result<Partial> {
        self.with_call(arrays, |call| Partial::at(call, options, offset))
    }

    /// How [`Genred::call_with`] of the same arguments would go.
    pub fn explain(&self, arrays: &[&Array], options: &Options<'_>) -> Result<String> {
        self.with_call(arrays, |call| call.explain(options))
    }

    /// The shape and dtype of what [`Genred::call_with`] of the same arguments gives.
    pub fn outline(&self, arrays: &[&Array]) -> Result<Outline> {
        self.with_call(arrays, |call| Ok(call.outline()))
    }

    /// How many numbers the formula stands for with these arrays: pairs times components.
    pub fn pairs(&self, arrays: &[&Array]) -> Result<usize> {
        let extent = self.extent(arrays)?;
        let (m, n) = (extent.m.unwrap_or(1), extent.n.unwrap_or(1));
        let axes = extent.batch.iter().copied().chain([m, n, self.reduction.formula().dim()]);
        Ok(axes.fold(1, usize::saturating_mul))
    }

    fn with_call<R>(
        &self,
        arrays: &[&Array],
        door: impl FnOnce(&Call<'_>) -> Result<R>,
    ) -> Result<R> {
        let extent = self.extent(arrays)?;
        let arrays: Vec<Array> = arrays.iter().map(|array| (*array).clone()).collect();
        door(&Call::new(&self.reduction, &arrays, &extent))
    }

    /// Checks arrays against the declarations.
    fn extent(&self, arrays: &[&Array]) -> Result<Extent> {
        if arrays.len() != self.arguments() {
            let message = format!("takes {} arrays, not {}", self.arguments(), arrays.len());
            return Err(Error::value("Genred", message));
        }
        let mut extent = Extent::default();
        for declared in &self.declared {
            let position = declared.variable.position;
            let name = match &declared.name {
                Some(name) => name.clone(),
                None => format!("argument {position}"),
            };
            let of = Extent::of(&name, arrays[position], declared.variable)?;
            extent = extent.union(&name, &of)?;
        }
        Ok(extent)
    }
}

/// The index that an axis number means.
pub(super) fn axis_of(axis: usize) -> Result<Axis> {
    match axis {
        0 => Ok(Axis::I),
        1 => Ok(Axis::J),
        _ => {
            let message = format!("{axis} is not 0 (over i) or 1 (over j)");
            Err(Error::axis("reduction", message))
        }
    }
}
