//! Reductions over pairs: which there are, what they take and give, and their meaning.
//!
//! A row is a monoid in four parts over plain states: `init`, `step(values, index)`, `merge`,
//! `finish`. Merging is associative with `init` as its neutral element, and does not depend on the
//! order of blocks for extremes (ties go to the smaller index). NaN never wins an extreme, indices
//! are integers, and a reduction over nothing gives its neutral value and index -1. The meaning
//! here, in float64, is what backends are compared with. The parts are in the table of the ops crate.

use tilework_error::{Error, Result};
use tilework_ops::pair_fold::PairFoldRow;
use tilework_ops::{PairFoldId, PairShape as Shape, PairState};

pub use tilework_ops::pair_fold::Weight;

use crate::expr::{Category, Expr};
use crate::names;
use crate::suggest;

/// A state in float64.
pub type State = PairState<f64>;

/// The index that is reduced over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Over i (axis 0): one result for each j.
    I,
    /// Over j (axis 1): one result for each i.
    J,
}

impl Axis {
    /// The category of the index that survives.
    pub fn survivor(self) -> Category {
        match self {
            Axis::I => Category::J,
            Axis::J => Category::I,
        }
    }

    /// The category of the index that is reduced over.
    pub fn reduced(self) -> Category {
        self.survivor().transposed()
    }

    /// The axis whose survivor is of this category, if it is an index.
    pub fn surviving(category: Category) -> Option<Axis> {
        match category {
            Category::I => Some(Axis::J),
            Category::J => Some(Axis::I),
            Category::Parameter => None,
        }
    }
}

/// How the derivative of a reduction is formed; see `adjoint.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slope {
    /// The sum of the derivatives.
    Sum,
    /// The same over the count.
    Mean,
    /// Through the product divided by the factor.
    Prod,
    /// Through the elements whose indices were selected.
    Selected,
    /// Through exp(F - logsumexp).
    LogSumExp,
    /// Through the softmax weights.
    SoftMax,
    /// Through the shifted exponentials, and through the pair that is the shift.
    Shifted,
    /// Zero: the result jumps.
    Zero,
}

/// What is particular to one reduction: its row in the table of [`tilework_ops::pair_fold`], to
/// which this dereferences, and how its derivative is formed.
#[derive(Debug, Clone, Copy)]
pub struct ReductionRow {
    /// Which reduction of the table it is; backends know it by this.
    pub fold: PairFoldId,
    /// How its derivative is formed.
    pub slope: Slope,
}

impl std::ops::Deref for ReductionRow {
    type Target = PairFoldRow;
    fn deref(&self) -> &PairFoldRow {
        self.fold.row()
    }
}

impl ReductionRow {
    const fn of(fold: PairFoldId) -> ReductionRow {
        use PairFoldId::*;
        let slope = match fold {
            Sum => Slope::Sum,
            Mean => Slope::Mean,
            Prod => Slope::Prod,
            Any | All | Count | ArgMin | ArgMax | ArgKMin | ArgKMax => Slope::Zero,
            Min | Max | MinArgMin | MaxArgMax | KMin | KMinArgKMin | KMax | KMaxArgKMax => {
                Slope::Selected
            }
            LogSumExp | LogSumExpWeight => Slope::LogSumExp,
            MaxSumShiftExp | MaxSumShiftExpWeight => Slope::Shifted,
            SumSoftMaxWeight => Slope::SoftMax,
        };
        ReductionRow { fold, slope }
    }
}

/// The reductions, in the order of the table.
pub static REDUCTIONS: &[ReductionRow] = &{
    let mut rows = [ReductionRow::of(PairFoldId::ALL[0]); PairFoldId::ALL.len()];
    let mut k = 1;
    while k < rows.len() {
        rows[k] = ReductionRow::of(PairFoldId::ALL[k]);
        k += 1;
    }
    rows
};

/// Other names for reductions.
const OTHER_NAMES: &[(&str, &str)] = &[("SoftMax", "SumSoftMaxWeight")];

/// The reduction with this name, or an error that tells the names.
///
/// Cases and underscores do not matter, so that the names of methods are understood too.
///
/// ```
/// use tilework_formula::reduction::named;
/// assert_eq!(named("kmin_argkmin")?.name, named("KMinArgKMin")?.name);
/// assert!(named("Summ").err().unwrap().to_string().contains("did you mean `Sum`?"));
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn named(name: &str) -> Result<&'static ReductionRow> {
    if let Some(row) = REDUCTIONS.iter().find(|row| row.name == name) {
        return Ok(row);
    }
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let other = OTHER_NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    let meant = plain(other.map_or(name, |(_, name)| name));
    REDUCTIONS.iter().find(|row| plain(row.name) == meant).ok_or_else(|| {
        let all = || REDUCTIONS.iter().map(|row| row.name);
        let near = suggest::nearest(name, all());
        let end =
            near.unwrap_or_else(|| format!("; there are {}", all().collect::<Vec<_>>().join(", ")));
        Error::formula(format!("there is no reduction `{name}`{end}"), None)
    })
}

/// A reduction of a formula over i or j.
///
/// ```
/// use tilework_formula::{Axis, Expr, Reduction};
/// let (x, y) = (Expr::vi(0, 1)?, Expr::vj(1, 1)?);
/// let nearest = Reduction::new("ArgMin", &x.sqdist(&y)?, Axis::J, None, None)?;
/// let (_, index) = nearest.evaluate(&[&[0.2, 5.0], &[1.0, 0.0, 4.0]], 2, 3)?;
/// assert_eq!(index, [1, 2]);
/// # Ok::<(), tilework_error::Error>(())
/// ```
#[derive(Clone)]
pub struct Reduction {
    row: &'static ReductionRow,
    formula: Expr,
    axis: Axis,
    k: usize,
    weight: Option<Expr>,
}

impl PartialEq for Reduction {
    fn eq(&self, other: &Reduction) -> bool {
        self.row.name == other.row.name
            && self.formula == other.formula
            && self.axis == other.axis
            && self.k == other.k
            && self.weight == other.weight
    }
}

impl Reduction {
    /// The reduction of this name, with K and a second formula where it takes them.
    pub fn new(
        name: &str,
        formula: &Expr,
        axis: Axis,
        k: Option<usize>,
        weight: Option<&Expr>,
    ) -> Result<Reduction> {
        let row = named(name)?;
        let fail = |message: String| Err(Error::formula(format!("{name}: {message}"), None));
        match (row.takes_k, k) {
            (true, None) => return fail("takes K, the number of values".into()),
            (true, Some(0)) => return fail("K must be at least 1".into()),
            (true, Some(k)) if k.saturating_mul(formula.dim()) > crate::infer::MAX_DIM => {
                return fail(format!("K = {k} of dimension {} is too much", formula.dim()));
            }
            (false, Some(_)) => return fail("takes no K".into()),
            _ => {}
        }
        match (row.weight, weight) {
            (Weight::Required, None) => return fail("takes a second formula, the weight".into()),
            (Weight::None, Some(_)) => return fail("takes no second formula".into()),
            (_, Some(weight)) if weight.dim() == 0 => {
                return fail(format!("the weight is missing: {}", crate::infer::described(weight)));
            }
            _ => {}
        }
        let (formula, weight) = (formula.clone(), weight.cloned());
        let reduction = Reduction { row, formula, axis, k: k.unwrap_or(1), weight };
        if !row.takes(reduction.shape()) {
            let described = crate::infer::described(&reduction.formula);
            return fail(format!("takes a number, but {described}"));
        }
        Ok(reduction)
    }

    /// Its row.
    pub fn row(&self) -> &'static ReductionRow {
        self.row
    }

    /// The formula that is reduced.
    pub fn formula(&self) -> &Expr {
        &self.formula
    }

    /// The second formula, where it has one.
    pub fn weight(&self) -> Option<&Expr> {
        self.weight.as_ref()
    }

    /// The index that is reduced over.
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// The reductions of its components one by one, whose states and results lie side by side, where
    /// devices know that of a number only: so exponentials of a vector are summed.
    pub fn components(&self) -> Result<Option<Vec<Reduction>>> {
        if !self.row.scalar || self.formula.dim() == 1 {
            return Ok(None);
        }
        let of = |k| Reduction::new(self.row.name, &self.formula.elem(k)?, self.axis, None, None);
        (0..self.formula.dim()).map(of).collect::<Result<_>>().map(Some)
    }

    /// How many values are kept, where it keeps several.
    pub fn k(&self) -> usize {
        self.k
    }

    /// What a pair must be evaluated for: the formula, and the weight where there is one.
    pub fn outputs(&self) -> Vec<Expr> {
        [Some(&self.formula), self.weight()].into_iter().flatten().cloned().collect()
    }

    /// The numbers that its states and results are made of.
    pub fn shape(&self) -> Shape {
        Shape {
            dim: self.formula.dim(),
            k: self.k,
            weights: self.weight.as_ref().map_or(0, Expr::dim),
        }
    }

    /// How many values (and as many indices) one row of the result has.
    pub fn width(&self) -> usize {
        self.row.fold.width(self.shape())
    }

    /// The state after nothing.
    pub fn init(&self) -> State {
        self.row.fold.init(self.shape())
    }

    /// Whether a state is one of this reduction's.
    fn check(&self, state: &State) -> Result<()> {
        let own = self.init();
        if own.values.len() == state.values.len() && own.indices.len() == state.indices.len() {
            return Ok(());
        }
        let message = format!("{}: the state is one of another reduction", self.row.name);
        Err(Error::formula(message, None))
    }

    /// One pair more: the values of the formula (and of the weight) at this index.
    pub fn step(
        &self,
        state: &mut State,
        values: &[f64],
        weight: &[f64],
        index: i64,
    ) -> Result<()> {
        self.check(state)?;
        let shape = self.shape();
        if values.len() != shape.dim || weight.len() != shape.weights {
            let message = format!(
                "{}: takes {} values and {} weights, not {} and {}",
                self.row.name,
                shape.dim,
                shape.weights,
                values.len(),
                weight.len()
            );
            return Err(Error::formula(message, None));
        }
        self.row.fold.step(shape, state, values, weight, index);
        Ok(())
    }

    /// The pairs of another state too.
    pub fn merge(&self, state: &mut State, other: &State) -> Result<()> {
        self.check(state)?;
        self.check(other)?;
        self.row.fold.merge(self.shape(), state, other);
        Ok(())
    }

    /// The result: values and indices of [`Reduction::width`] each; an empty list for what the
    /// reduction does not give.
    pub fn finish(&self, state: State) -> Result<(Vec<f64>, Vec<i64>)> {
        self.check(&state)?;
        let state = self.row.fold.finish(self.shape(), state);
        let values = if self.row.gives_values { state.values } else { Vec::new() };
        let indices = if self.row.gives_indices { state.indices } else { Vec::new() };
        Ok((values, indices))
    }

    /// The whole reduction by its definition, in float64, over `m` rows of i and `n` of j.
    ///
    /// Arguments are row-major by position: `m` rows for i, `n` for j, one for parameters.
    pub fn evaluate(
        &self,
        arguments: &[&[f64]],
        m: usize,
        n: usize,
    ) -> Result<(Vec<f64>, Vec<i64>)> {
        let outputs = self.outputs();
        let variables = Expr::variables_of(&outputs)?;
        for v in &variables {
            let rows = match v.category {
                Category::I => m,
                Category::J => n,
                Category::Parameter => 1,
            };
            let given = arguments.get(v.position).map_or(0, |argument| argument.len());
            if given != rows.saturating_mul(v.dim) {
                let message =
                    format!("argument {v} must have {rows} rows, but has {given} numbers");
                return Err(Error::formula(message, None));
            }
        }
        let at = |i: usize, j: usize| -> Result<Vec<Vec<f64>>> {
            let mut rows = arguments.to_vec();
            for v in &variables {
                let row = match v.category {
                    Category::I => i,
                    Category::J => j,
                    Category::Parameter => 0,
                };
                rows[v.position] = &arguments[v.position][row * v.dim..(row + 1) * v.dim];
            }
            Expr::evaluate_all(&outputs, &rows)
        };
        let (rows, steps) = if self.axis == Axis::J { (m, n) } else { (n, m) };
        let mut result = (Vec::new(), Vec::new());
        for row in 0..rows {
            let mut state = self.init();
            for step in 0..steps {
                let (i, j) = if self.axis == Axis::J { (row, step) } else { (step, row) };
                let values = at(i, j)?;
                let weight: &[f64] = values.get(1).map_or(&[], |weight| weight);
                self.step(&mut state, &values[0], weight, step as i64)?;
            }
            let (values, indices) = self.finish(state)?;
            result.0.extend(values);
            result.1.extend(indices);
        }
        Ok(result)
    }
}

impl std::fmt::Display for Reduction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (definitions, texts) = crate::print::with_definitions(&self.outputs(), &|_| None);
        write!(f, "{definitions}{}_Reduction({}", self.row.name, texts[0])?;
        if self.row.takes_k {
            write!(f, ", {}", self.k)?;
        }
        // In text a reduction names the index that survives.
        write!(f, ", {}", self.axis.survivor() as u8)?;
        match texts.get(1) {
            Some(weight) => write!(f, ", {weight})"),
            None => write!(f, ")"),
        }
    }
}

impl std::fmt::Debug for Reduction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let over = names::of_kind(self.formula.kind());
        write!(f, "Reduction({} of {over} over {:?})", self.row.name, self.axis)
    }
}
