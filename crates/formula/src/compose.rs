//! Operations that are made of others: norms, weights, one-hot vectors, splines, rounding.
//!
//! Nothing here is a node of its own, so values, derivatives and tapes come for free. The function
//! table and users call these; tensors are in `tensor.rs`.

use tilework_error::{Error, Result};
use tilework_ops::{FoldId, Id};

use crate::expr::Expr;
use crate::infer;

/// Each order of a spline adds a row of nodes.
const MAX_SPLINE_ORDER: usize = 64;

impl Expr {
    /// Length, with slope 0 at the zero vector.
    pub fn norm2(&self) -> Result<Expr> {
        self.sqnorm2()?.sqrt()
    }

    /// The vector of length 1 in its direction; the zero vector stays.
    pub fn normalize(&self) -> Result<Expr> {
        self.sqnorm2()?.unary(Id::RsqrtOrZero)?.multiply(self)
    }

    /// Sum of the squares, weighted by `weight`: a number, one number for each component, or a
    /// matrix, told apart by its dimension.
    pub fn weighted_sqnorm(&self, weight: &Expr) -> Result<Expr> {
        let dim = self.dim();
        match weight.dim() {
            1 => weight.multiply(&self.sqnorm2()?),
            n if n == dim => weight.dot(&self.square()?),
            n if n == dim * dim => weight.symmetric_sqnorm(self),
            _ => infer::mismatch(
                "WeightedSqNorm",
                &[weight.clone(), self.clone()],
                "the weight has dimension 1, D or D * D",
            ),
        }
    }

    /// The quadratic form of a vector, with itself as the matrix.
    pub fn symmetric_sqnorm(&self, vector: &Expr) -> Result<Expr> {
        self.matvecmult(vector)?.dot(vector)
    }

    /// 1 at the component with this index (rounded), 0 elsewhere; all 0 if there is none.
    pub fn one_hot(&self, dim: usize) -> Result<Expr> {
        if self.dim() != 1 {
            let message = format!("OneHot: takes a number, but {}", infer::described(self));
            return Err(Error::formula(message, None));
        }
        if dim == 0 {
            return Err(Error::formula("OneHot: a dimension must be at least 1", None));
        }
        let index = self.add(&Expr::constant(0.5))?.unary(Id::Floor)?;
        Expr::range(dim)?.binary(Id::Equal, &index)
    }

    /// 1 at the largest (or smallest) component, the first of equals.
    pub(crate) fn hot_extreme(&self, arg: FoldId) -> Result<Expr> {
        Expr::range(self.dim())?.binary(Id::Equal, &self.fold(arg)?)
    }

    /// Rounded to `digits` decimals, halves away from zero.
    pub fn round(&self, digits: i32) -> Result<Expr> {
        match digits {
            0 => self.unary(Id::RoundAway),
            // A power of ten with positive exponent is exact, its inverse is not.
            1..=22 => {
                let scale = 10f64.powi(digits);
                self.scale(scale)?.unary(Id::RoundAway)?.divide(&Expr::constant(scale))
            }
            -22..=-1 => {
                let scale = 10f64.powi(-digits);
                self.divide(&Expr::constant(scale))?.unary(Id::RoundAway)?.scale(scale)
            }
            _ => {
                let message = format!("Round: {digits} decimals are not between -22 and 22");
                Err(Error::formula(message, None))
            }
        }
    }

    /// `low` where it is below, `high` where it is above, itself between. Gradients flow to the
    /// bounds where they hold.
    pub fn clamp(&self, low: &Expr, high: &Expr) -> Result<Expr> {
        Expr::apply(Id::Clip, &[self.clone(), low.clone(), high.clone()])
    }

    /// 1 where it lies between the bounds or on them, 0 elsewhere.
    pub fn within(&self, low: f64, high: f64) -> Result<Expr> {
        let above = Expr::constant(low).binary(Id::LessEqual, self)?;
        above.multiply(&self.binary(Id::LessEqual, &Expr::constant(high))?)
    }

    /// The values at `x` of the B-splines of this order on itself as knots, which ascend; cells are
    /// closed on the left and open on the right.
    pub fn bspline(&self, x: &Expr, order: usize) -> Result<Expr> {
        let knots = self.dim();
        let fail = |message: String| Err(Error::formula(format!("BSpline: {message}"), None));
        if x.dim() != 1 {
            return fail(format!("takes a number to evaluate at, but {}", infer::described(x)));
        }
        if order.checked_add(1).is_none_or(|needed| needed >= knots) {
            return fail(format!(
                "order {order} takes at least {} knots, but {}",
                order.saturating_add(2),
                infer::described(self)
            ));
        }
        if order > MAX_SPLINE_ORDER {
            return fail(format!("order {order} is more than {MAX_SPLINE_ORDER}"));
        }
        let inside_left = self.extract(0, knots - 1)?.binary(Id::LessEqual, x)?;
        let inside_right = x.binary(Id::Less, &self.extract(1, knots - 1)?)?;
        let mut values = inside_left.multiply(&inside_right)?;
        for degree in 1..=order {
            let count = knots - 1 - degree;
            let knot = |start: usize| self.extract(start, count);
            let rise = ratio(&x.subtract(&knot(0)?)?, &knot(degree)?.subtract(&knot(0)?)?)?;
            let fall =
                ratio(&knot(degree + 1)?.subtract(x)?, &knot(degree + 1)?.subtract(&knot(1)?)?)?;
            let rising = rise.multiply(&values.extract(0, count)?)?;
            values = rising.add(&fall.multiply(&values.extract(1, count)?)?)?;
        }
        Ok(values)
    }
}

/// The quotient, 0 where the divisor is 0: what splines do at repeated knots. The divisor is
/// replaced there too, so that derivatives do not meet 0 / 0.
fn ratio(above: &Expr, below: &Expr) -> Result<Expr> {
    let whole = below.binary(Id::NotEqual, &Expr::constant(0.0))?;
    let divisor = whole.select(below, &Expr::constant(1.0))?;
    whole.select(&above.divide(&divisor)?, &Expr::constant(0.0))
}
