//! Derivatives of reductions: they are reductions again.
//!
//! The gradient of a reduction towards a variable is a sum over the index that the variable does
//! not have. Some need more than the incoming gradient: what [`Reduction::saved`] lists, given as
//! further variables; what [`Reduction::saving`] reduces to most of them. They are held fast in the
//! formula; for higher orders their own gradients are taken as those of any other variable, which is
//! the chain rule.

use tilework_error::{Error, Result};
use tilework_ops::pair_fold::Monoid;
use tilework_ops::{Id, PairFoldId};

use crate::derive;
use crate::expr::{Category, Expr};
use crate::forward;
use crate::reduction::{Axis, Reduction, Slope};

/// Something that the derivative of a reduction needs besides the incoming gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The result of the reduction.
    Result,
    /// The logarithm of the sum of exp(F), of dimension 1.
    LogSumExp,
    /// The product of the values that are not 0.
    Factors,
    /// How many values are 0.
    Zeros,
    /// The indices that were selected, as numbers: exact in float32 up to 2^24. Of more, all high parts and
    /// then all low ones; see [`Need::Index`].
    Selected,
    /// The index that is reduced over, as a number of dimension 1, or as two where numbers are not
    /// exact: high part and low part, in any base.
    Index,
    /// How many pairs each result is made of, as a parameter of dimension 1.
    Count,
}

/// A need as the variable that must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// What it is.
    pub need: Need,
    /// Its dimension.
    pub dim: usize,
    /// What it varies with.
    pub category: Category,
}

/// The gradient of a reduction towards a variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjoint {
    /// The sum that gives it, one row for each index of the variable.
    pub reduction: Reduction,
    /// Whether its rows must be added up, since the variable is a parameter.
    pub sum_rows: bool,
}

impl Reduction {
    /// What its derivatives need besides the incoming gradient, in order.
    pub fn saved(&self) -> Vec<Saved> {
        let survivor = self.axis().survivor();
        let saved = |need, dim, category| Saved { need, dim, category };
        match self.row().slope {
            Slope::Sum | Slope::Zero => vec![],
            Slope::Mean => vec![saved(Need::Count, 1, Category::Parameter)],
            Slope::LogSumExp => vec![saved(Need::Result, self.width(), survivor)],
            Slope::Prod => vec![
                saved(Need::Factors, self.width(), survivor),
                saved(Need::Zeros, self.width(), survivor),
            ],
            Slope::Selected => vec![
                saved(Need::Selected, self.width(), survivor),
                saved(Need::Index, 1, self.axis().reduced()),
            ],
            Slope::SoftMax => vec![
                saved(Need::Result, self.width(), survivor),
                saved(Need::LogSumExp, 1, survivor),
            ],
            Slope::Shifted => vec![
                saved(Need::Selected, 1, survivor),
                saved(Need::Index, 1, self.axis().reduced()),
                saved(Need::Result, self.width(), survivor),
            ],
        }
    }

    /// The reduction that gives one of its needs; none where no pair must be looked at.
    pub fn saving(&self, need: Need) -> Result<Option<Reduction>> {
        let f = self.formula();
        let (fold, formula, k) = match need {
            Need::Index | Need::Count => return Ok(None),
            Need::Result => return Ok(Some(self.clone())),
            Need::LogSumExp => (PairFoldId::LogSumExp, f.clone(), None),
            Need::Factors => (PairFoldId::Prod, f.add(&is_zero(f)?)?, None),
            Need::Zeros => (PairFoldId::Count, is_zero(f)?, None),
            Need::Selected if self.row().monoid == Monoid::Smallest => {
                (PairFoldId::ArgKMin, f.clone(), Some(self.k()))
            }
            Need::Selected => (PairFoldId::ArgKMax, f.clone(), Some(self.k())),
        };
        Reduction::new(fold.row().name, &formula, self.axis(), k, None).map(Some)
    }

    /// The gradient towards the variable `v` of the incoming gradient `e`.
    ///
    /// `e` has the width of the result and varies with the index that survives. Extremes pass the
    /// gradient to the element that was selected, the first of equals. That of a product is the
    /// product of the other factors, also where one of them is 0. Sums of shifted exponentials change
    /// with their shift too. Gradients of indices and of truth values are 0.
    ///
    /// ```
    /// use tilework_formula::{Axis, Expr, Reduction};
    /// let (x, y, b) = (Expr::vi(0, 3)?, Expr::vj(1, 3)?, Expr::vj(2, 1)?);
    /// let sum = Reduction::new("Sum", &x.sqdist(&y)?.multiply(&b)?, Axis::J, None, None)?;
    /// let towards_y = sum.gradient(&y, &Expr::vi(3, 1)?, &[])?;
    /// assert_eq!(towards_y.reduction.axis(), Axis::I);
    /// assert_eq!(towards_y.reduction.width(), 3);
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn gradient(&self, v: &Expr, e: &Expr, saved: &[Expr]) -> Result<Adjoint> {
        derive::check_variable("Grad", v)?;
        self.check_saved(saved)?;
        if e.dim() != self.width() {
            let message = format!(
                "{}: the incoming gradient must have dimension {}, but {}",
                self.row().name,
                self.width(),
                crate::infer::described(e)
            );
            return Err(Error::formula(message, None));
        }
        let category = v.as_variable().map_or(Category::Parameter, |variable| variable.category);
        let axis = Axis::surviving(category).unwrap_or(self.axis());
        let formula = self.pulled_back(v, e, saved)?;
        Ok(Adjoint {
            reduction: Reduction::new("Sum", &formula, axis, None, None)?,
            sum_rows: category == Category::Parameter,
        })
    }

    /// The derivative when variables move in directions of their dimension: a sum over the same
    /// index.
    pub fn tangent(&self, directions: &[(Expr, Expr)], saved: &[Expr]) -> Result<Reduction> {
        self.check_saved(saved)?;
        let formula = self.pushed_forward(directions, saved)?;
        Reduction::new("Sum", &formula, self.axis(), None, None)
    }

    fn check_saved(&self, saved: &[Expr]) -> Result<()> {
        if self.row().slope == Slope::Selected {
            // One term for each rank.
            derive::bounded_order(self.row().name, self.formula(), self.k())?;
        }
        let needs = self.saved();
        let dims: Vec<usize> = saved.iter().map(Expr::dim).collect();
        let in_parts = |parts: usize| {
            let wanted = needs.iter().map(|saved| match saved.need {
                Need::Selected | Need::Index => parts * saved.dim,
                _ => saved.dim,
            });
            wanted.eq(dims.iter().copied())
        };
        if in_parts(1) || in_parts(2) {
            return Ok(());
        }
        let message = format!(
            "{}: its derivative needs {needs:?}, but was given dimensions {dims:?}",
            self.row().name
        );
        Err(Error::formula(message, None))
    }

    /// The gradient towards the exponents, of shares that are to be weighed.
    fn weighed(&self, share: &Expr) -> Result<Expr> {
        self.weight().map_or_else(|| Ok(share.clone()), |weight| share.dot(weight))
    }

    /// The weight, or 1.
    fn weight_or_one(&self) -> Expr {
        self.weight().cloned().unwrap_or_else(|| Expr::constant(1.0))
    }

    /// The gradient towards the weight, which is none where there is no weight.
    fn with_weight(&self, towards_formula: Expr, v: &Expr, e: &Expr) -> Result<Expr> {
        match self.weight() {
            Some(weight) => towards_formula.add(&derive::grad(weight, v, e)?),
            None => Ok(towards_formula),
        }
    }

    fn pulled_back(&self, v: &Expr, e: &Expr, saved: &[Expr]) -> Result<Expr> {
        let f = self.formula();
        let through = |e: &Expr| derive::grad(f, v, e);
        match self.row().slope {
            Slope::Zero => Expr::zero(v.dim()),
            Slope::Sum => through(e),
            Slope::Mean => through(&e.divide(&saved[0])?),
            Slope::Prod => through(&e.multiply(&other_factors(f, saved)?)?),
            Slope::Selected => {
                // A pair is selected in one rank at most. The formula is one of a branch, so that what
                // was not selected may have any derivative, or none.
                let (mut any, mut part) = (self.hit(0, saved)?, e.extract(0, f.dim())?);
                for k in 1..self.k() {
                    let hit = self.hit(k, saved)?;
                    part = hit.select(&e.extract(k * f.dim(), f.dim())?, &part)?;
                    any = any.binary(Id::LogicalOr, &hit)?;
                }
                derive::grad(&any.select(f, &Expr::constant(0.0))?, v, &part)
            }
            Slope::LogSumExp => {
                let share = e.multiply(&f.subtract(&saved[0])?.exp()?)?;
                self.with_weight(through(&self.weighed(&share)?)?, v, &share)
            }
            Slope::SoftMax => {
                let share = f.subtract(&saved[1])?.exp()?;
                let beyond = self.weight_or_one().subtract(&saved[0])?;
                let towards_formula = through(&share.multiply(&e.dot(&beyond)?)?)?;
                self.with_weight(towards_formula, v, &e.multiply(&share)?)
            }
            Slope::Shifted => {
                let (top, sums) = shifted(&saved[2])?;
                let (e_top, e_sums) = shifted(e)?;
                let share = e_sums.multiply(&f.subtract(&top)?.exp()?)?;
                // A step of the shift m takes exp(-step) of every sum with it.
                let by_shift = e_top.subtract(&e_sums.dot(&sums)?)?;
                let towards_formula =
                    self.weighed(&share)?.add(&by_shift.multiply(&self.hit(0, saved)?)?)?;
                self.with_weight(through(&towards_formula)?, v, &share)
            }
        }
    }

    /// 1 where this pair is the one selected in rank `k`, by component.
    fn hit(&self, k: usize, saved: &[Expr]) -> Result<Expr> {
        let (dim, index) = (self.formula().dim(), &saved[1]);
        let parts = index.dim();
        let all = saved[0].dim() / parts;
        let same = |part: usize| {
            saved[0].extract(part * all + k * dim, dim)?.binary(Id::Equal, &index.elem(part)?)
        };
        (1..parts).try_fold(same(0)?, |hit, part| hit.binary(Id::LogicalAnd, &same(part)?))
    }

    fn pushed_forward(&self, directions: &[(Expr, Expr)], saved: &[Expr]) -> Result<Expr> {
        let f = self.formula();
        let moved = forward::diff(f, directions)?;
        let weight_moved = match self.weight() {
            Some(weight) => forward::diff(weight, directions)?,
            None => Expr::constant(0.0),
        };
        match self.row().slope {
            Slope::Zero => Expr::zero(self.width()),
            Slope::Sum => Ok(moved),
            Slope::Mean => moved.divide(&saved[0]),
            Slope::Prod => moved.multiply(&other_factors(f, saved)?),
            Slope::Selected => {
                let part = |k| self.hit(k, saved)?.select(&moved, &Expr::constant(0.0));
                Expr::concat(&(0..self.k()).map(part).collect::<Result<Vec<_>>>()?)
            }
            Slope::LogSumExp => {
                let share = f.subtract(&saved[0])?.exp()?;
                share.multiply(&moved.multiply(&self.weight_or_one())?.add(&weight_moved)?)
            }
            Slope::SoftMax => {
                let share = f.subtract(&saved[1])?.exp()?;
                let beyond = self.weight_or_one().subtract(&saved[0])?;
                share.multiply(&moved.multiply(&beyond)?.add(&weight_moved)?)
            }
            Slope::Shifted => {
                let (top, sums) = shifted(&saved[2])?;
                let share = f.subtract(&top)?.exp()?;
                let top_moved = self.hit(0, saved)?.select(&moved, &Expr::constant(0.0))?;
                let sums_moved = moved.multiply(&self.weight_or_one())?.add(&weight_moved)?;
                let sums_moved = share.multiply(&sums_moved)?;
                let by_shift = top_moved.multiply(&sums)?;
                Expr::concat(&[top_moved, sums_moved.subtract(&by_shift)?])
            }
        }
    }
}

/// The largest exponent and the sums of a result, or what belongs to them.
fn shifted(result: &Expr) -> Result<(Expr, Expr)> {
    Ok((result.elem(0)?, result.extract(1, result.dim() - 1)?))
}

/// 1 where a value is 0, by component.
fn is_zero(f: &Expr) -> Result<Expr> {
    f.binary(Id::Equal, &Expr::constant(0.0))
}

/// The product of all factors but `f`, of [`Need::Factors`] and [`Need::Zeros`]: 0 where a zero is
/// left among them.
fn other_factors(f: &Expr, saved: &[Expr]) -> Result<Expr> {
    let zero = is_zero(f)?;
    let others = saved[0].divide(&f.add(&zero)?)?;
    saved[1].binary(Id::Equal, &zero)?.select(&others, &Expr::constant(0.0))
}
