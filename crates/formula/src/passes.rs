//! What happens to expressions between the user and the tape: a short list of passes.
//!
//! A pass maps the outputs of a formula to outputs with the same values. It works on expressions,
//! whose constructors check and simplify, so there is no malformed state between passes. Called by
//! `lower.rs`, in the order of [`PASSES`], which has at most six rows.

use smallvec::smallvec;
use tilework_error::Result;
use tilework_ops::{DType, Id};
use tilework_tape::Per;

use crate::build::is_ordinary;
use crate::expr::{Expr, Kind, Map, Operands};

/// What a tape is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Purpose {
    /// The dtype of the variables.
    pub dtype: DType,
    /// Whether cheaper rows may stand for exponentials, quotients and roots of pairs.
    pub cheap: bool,
}

/// One pass.
pub struct Pass {
    /// What to call it.
    pub name: &'static str,
    /// What it does, as a sentence.
    pub doc: &'static str,
    /// The new outputs.
    pub run: fn(&[Expr], Purpose) -> Result<Vec<Expr>>,
}

/// The passes, in order.
pub static PASSES: [Pass; 6] = [
    Pass {
        name: "fold",
        doc: "Makes every node again by the rules, so that constants meet and fold.",
        run: fold,
    },
    Pass {
        name: "powers",
        doc: "Writes small powers of pairs as products and roots, and a log(a) as a product.",
        run: powers,
    },
    Pass {
        name: "exponentials",
        doc: "Writes powers of e and other numbers as exp2, factors gathered by what they vary with.",
        run: exponentials,
    },
    Pass {
        name: "quotients",
        doc: "Divides pairs by products with what is computed less often, or by estimates.",
        run: quotients,
    },
    Pass {
        name: "share",
        doc: "Puts the operands of commutative operations in one order, so that equals meet.",
        run: share,
    },
    Pass { name: "fuse", doc: "Fuses products of pairs with the sums they go into.", run: fuse },
];

fn fold(outputs: &[Expr], _: Purpose) -> Result<Vec<Expr>> {
    Expr::rebuild(outputs, |node, operands| Expr::build(node.kind().clone(), operands))
}

/// Larger powers are left to the pow of the table, which is as accurate and as fast there.
const LARGEST_PRODUCT: f64 = 16.0;

fn powers(outputs: &[Expr], purpose: Purpose) -> Result<Vec<Expr>> {
    Expr::rebuild(outputs, |node, operands| {
        let base = operands.first();
        let exponent = operands.get(1).and_then(Expr::as_constant);
        match (node.kind(), exponent, base) {
            (Kind::Apply(Id::Pow), Some(m), Some(base)) if m.abs() <= LARGEST_PRODUCT => {
                let whole = m.abs().trunc();
                let positive = match m.abs() - whole {
                    0.0 => integer_power(base, whole as u32)?,
                    0.5 if purpose.cheap && base.per() == Per::Pair => {
                        let root = integer_power(base, whole as u32)?.multiply(&base.sqrt()?)?;
                        // The power of a negative zero is positive, and so is its reciprocal.
                        if m < 0.0 { root.unary(Id::Abs)? } else { root }
                    }
                    _ => return Expr::build(node.kind().clone(), operands),
                };
                if m < 0.0 { positive.unary(Id::Reciprocal) } else { Ok(positive) }
            }
            (Kind::Apply(Id::XLogX), _, Some(a)) => {
                let zero = Expr::constant(0.0);
                a.binary(Id::Equal, &zero)?.select(&zero, &a.multiply(&a.unary(Id::Log)?)?)
            }
            _ => Expr::build(node.kind().clone(), operands),
        }
    })
}

/// By repeated squaring, so that an odd power is the base times an even one.
fn integer_power(base: &Expr, exponent: u32) -> Result<Expr> {
    match exponent {
        0 => Expr::uniform(1.0, base.dim()),
        1 => Ok(base.clone()),
        _ => {
            let square = integer_power(base, exponent / 2)?.square()?;
            if exponent.is_multiple_of(2) { Ok(square) } else { base.multiply(&square) }
        }
    }
}

/// The factors of a product: a number, and what is multiplied and divided by.
struct Factors {
    number: f64,
    above: Vec<Expr>,
    below: Vec<Expr>,
}

impl Factors {
    fn of(product: &Expr) -> Factors {
        let mut factors = Factors { number: 1.0, above: Vec::new(), below: Vec::new() };
        let mut rest = vec![(product.clone(), false)];
        while let Some((node, inverse)) = rest.pop() {
            match (node.kind(), node.as_constant(), node.operands()) {
                (_, Some(number), _) if inverse => factors.number /= number,
                (_, Some(number), _) => factors.number *= number,
                (Kind::Apply(Id::Negative), _, [of]) => {
                    factors.number = -factors.number;
                    rest.push((of.clone(), inverse));
                }
                (Kind::Apply(Id::Multiply), _, [a, b]) => {
                    rest.extend([(b.clone(), inverse), (a.clone(), inverse)]);
                }
                (Kind::Apply(Id::Divide), _, [a, b]) => {
                    rest.extend([(b.clone(), !inverse), (a.clone(), inverse)]);
                }
                _ if inverse => factors.below.push(node),
                _ => factors.above.push(node),
            }
        }
        factors
    }

    /// The product of the factors that vary with this and nothing else.
    fn per(&self, per: Per) -> Result<Option<Expr>> {
        let product = |of: &[Expr]| {
            let mut of = of.iter().filter(|factor| factor.per() == per).cloned();
            let first = of.next();
            first.map(|first| of.try_fold(first, |a, b| a.multiply(&b))).transpose()
        };
        Ok(match (product(&self.above)?, product(&self.below)?) {
            (above, None) => above,
            (None, Some(below)) => Some(below.unary(Id::Reciprocal)?),
            (Some(above), Some(below)) => Some(above.divide(&below)?),
        })
    }
}

/// What a number is raised to, if that is what a node does, and the binary logarithm of the number.
fn exponent<'a>(kind: &Kind, operands: &'a [Expr]) -> Option<(&'a Expr, f64)> {
    match (kind, operands) {
        (Kind::Apply(Id::Exp), [of]) => Some((of, std::f64::consts::LOG2_E)),
        // 1 to any power is 1, whatever the power.
        (Kind::Apply(Id::Pow), [base, of]) => {
            let base = base.as_constant().filter(|base| *base > 0.0 && *base != 1.0);
            base.filter(is_ordinary).map(|base| (of, base.log2()))
        }
        _ => None,
    }
}

/// The scale stays with the distance: multiplied into the variables beforehand it would round them,
/// and differences of near points would keep those errors.
fn exponentials(outputs: &[Expr], purpose: Purpose) -> Result<Vec<Expr>> {
    Expr::rebuild(outputs, |node, operands| {
        let exponential = exponent(node.kind(), &operands);
        let Some((of, log2)) = exponential.filter(|(of, _)| purpose.cheap && of.per() == Per::Pair)
        else {
            return Expr::build(node.kind().clone(), operands);
        };
        let factors = Factors::of(of);
        let scale = Expr::constant(factors.number * log2);
        // A scale out of range is left to the product as it is written.
        if !is_ordinary(&factors.number) {
            return of.multiply(&Expr::constant(log2))?.unary(Id::Exp2Pair);
        }
        let once = match factors.per(Per::Once)? {
            Some(once) => once.multiply(&scale)?,
            None => scale,
        };
        let mut argument = match factors.per(Per::Pair)? {
            Some(core) => core.multiply(&once)?,
            None => once,
        };
        for per in [Per::I, Per::J] {
            if let Some(factor) = factors.per(per)? {
                argument = argument.multiply(&factor)?;
            }
        }
        argument.unary(Id::Exp2Pair)
    })
}

fn quotients(outputs: &[Expr], purpose: Purpose) -> Result<Vec<Expr>> {
    // Estimates pay in float32 only: in float64 they are the operations themselves.
    let estimates = purpose.dtype != DType::Float64;
    Expr::rebuild(outputs, |node, operands| {
        let of_pairs = |k: usize| operands.get(k).is_some_and(|x: &Expr| x.per() == Per::Pair);
        match node.kind() {
            Kind::Apply(Id::Divide) if purpose.cheap && node.per() == Per::Pair => {
                let below = &operands[1];
                if let Some(number) = below.as_constant().filter(is_ordinary) {
                    return operands[0].scale(1.0 / number);
                }
                if of_pairs(1) && !estimates {
                    return operands[0].divide(below);
                }
                let row = if of_pairs(1) { Id::RcpPair } else { Id::Reciprocal };
                operands[0].multiply(&below.unary(row)?)
            }
            Kind::Apply(Id::Negative) if purpose.cheap && of_pairs(0) => {
                match operands[0].operands_of(Id::Multiply) {
                    Some([a, b]) if a.as_constant().is_some() => a.negative()?.multiply(b),
                    Some([a, b]) if b.as_constant().is_some() => a.multiply(&b.negative()?),
                    _ => operands[0].negative(),
                }
            }
            Kind::Apply(Id::Reciprocal) if purpose.cheap && estimates && of_pairs(0) => {
                operands[0].unary(Id::RcpPair)
            }
            Kind::Apply(Id::SqrtFlat) if purpose.cheap && estimates && of_pairs(0) => {
                operands[0].unary(Id::SqrtPair)
            }
            _ => Expr::build(node.kind().clone(), operands),
        }
    })
}

fn fuse(outputs: &[Expr], _: Purpose) -> Result<Vec<Expr>> {
    let mut uses: Map<usize> = Map::default();
    for node in Expr::order(outputs) {
        node.operands().iter().for_each(|x| *uses.entry(x.clone()).or_insert(0) += 1);
    }
    outputs.iter().for_each(|x| *uses.entry(x.clone()).or_insert(0) += 1);
    // A product of pairs that only this sum needs, of full length: what broadcasts is cheaper alone.
    let product = |x: &Expr, dim: usize| {
        let own = x.per() == Per::Pair && x.dim() == dim && uses.get(x) == Some(&1);
        own && *x.kind() == Kind::Apply(Id::Multiply)
    };
    Expr::rebuild(outputs, |node, operands| {
        let dim = node.dim();
        match (node.kind(), node.operands()) {
            (Kind::Apply(Id::Add), [a, _]) if product(a, dim) => fused(&operands[0], &operands[1]),
            (Kind::Apply(Id::Add), [_, b]) if product(b, dim) => fused(&operands[1], &operands[0]),
            (Kind::Apply(Id::Subtract), [a, b]) if product(a, dim) && b.per() != Per::Pair => {
                fused(&operands[0], &operands[1].negative()?)
            }
            _ => Expr::build(node.kind().clone(), operands),
        }
    })
}

/// The product and the sum as one operation.
fn fused(product: &Expr, summand: &Expr) -> Result<Expr> {
    match product.operands() {
        [a, b] => Expr::apply(Id::Fma, &[a.clone(), b.clone(), summand.clone()]),
        _ => product.add(summand),
    }
}

fn share(outputs: &[Expr], _: Purpose) -> Result<Vec<Expr>> {
    let mut rank: Map<usize> = Map::default();
    Expr::rebuild(outputs, |node, mut operands| {
        let commutes = matches!(
            node.kind(),
            Kind::Dot | Kind::Apply(Id::Add | Id::Multiply | Id::Equal | Id::NotEqual)
        );
        if commutes {
            let of = |expr: &Expr| rank.get(expr).copied().unwrap_or(usize::MAX);
            if of(&operands[0]) > of(&operands[1]) {
                operands = smallvec![operands[1].clone(), operands[0].clone()] as Operands;
            }
        }
        let made = Expr::build(node.kind().clone(), operands)?;
        let next = rank.len();
        rank.entry(made.clone()).or_insert(next);
        Ok(made)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::formula;

    const ALIASES: [&str; 3] = ["x = Vi(1)", "y = Vj(1)", "s = Pm(1)"];
    const PLAIN: Purpose = Purpose { dtype: DType::Float32, cheap: false };
    const CHEAP: Purpose = Purpose { dtype: DType::Float32, cheap: true };

    #[test]
    fn powers_become_products() {
        let cube = formula("Pow(x,3) + Pow(y,-4)", &ALIASES).unwrap();
        let made = powers(&[cube], PLAIN).unwrap();
        let wanted = formula("x * Square(x) + Inv(Square(Square(y)))", &ALIASES).unwrap();
        assert_eq!(made, [wanted]);
        let roots = formula("Powf(x * y, 1.5) + Powf(x * y, -2.5)", &ALIASES).unwrap();
        let made = powers(std::slice::from_ref(&roots), CHEAP).unwrap();
        let wanted = "(x * y) * Sqrt(x * y) + Inv(Abs(Square(x * y) * Sqrt(x * y)))";
        assert_eq!(made, [formula(wanted, &ALIASES).unwrap()]);
        assert_eq!(powers(std::slice::from_ref(&roots), PLAIN).unwrap(), [roots]);
        let entropy = formula("XLogX(x * y)", &ALIASES).unwrap();
        let wanted = formula("Where((x * y) == 0, 0, (x * y) * Log(x * y))", &ALIASES).unwrap();
        assert_eq!(powers(&[entropy], PLAIN).unwrap(), [wanted]);
    }

    #[test]
    fn products_in_either_order_are_shared() {
        let f = formula("Exp(x * y) + Sin(y * x)", &ALIASES).unwrap();
        assert_eq!(Expr::order(std::slice::from_ref(&f)).len(), 7);
        assert_eq!(Expr::order(&share(&[f], PLAIN).unwrap()).len(), 6);
    }

    #[test]
    fn exponentials_gather_their_factors() {
        let pairs = |f: &Expr| {
            Expr::order(std::slice::from_ref(f)).iter().filter(|x| x.per() == Per::Pair).count()
        };
        let f = formula("Exp(-SqDist(x,y) / (2*s))", &ALIASES).unwrap();
        let made = exponentials(std::slice::from_ref(&f), CHEAP).unwrap().remove(0);
        assert_eq!(*made.kind(), Kind::Apply(Id::Exp2Pair));
        // One product beyond the distance and the exponential: everything else is computed once.
        assert_eq!(pairs(&made), pairs(&formula("SqDist(x,y)", &ALIASES).unwrap()) + 2);
        assert_eq!(exponentials(std::slice::from_ref(&f), PLAIN).unwrap(), [f]);
        let half = formula("Powf(0.5, SqDist(x,y) / s)", &ALIASES).unwrap();
        let made = exponentials(std::slice::from_ref(&half), CHEAP).unwrap().remove(0);
        assert_eq!(*made.kind(), Kind::Apply(Id::Exp2Pair));
        assert_eq!(exponentials(std::slice::from_ref(&half), PLAIN).unwrap(), [half]);
        for plain in ["Powf(1, x * y)", "Powf(-2, x * y)", "Powf(0, x * y)", "Powf(2, x)"] {
            let plain = formula(plain, &ALIASES).unwrap();
            assert_eq!(exponentials(std::slice::from_ref(&plain), CHEAP).unwrap(), [plain]);
        }
        // Scales of a product go to what varies with i alone.
        let f = formula("Exp(-(x*y) / (2*s))", &ALIASES).unwrap();
        assert_eq!(pairs(&exponentials(&[f], CHEAP).unwrap()[0]), 2);
    }

    #[test]
    fn products_fuse_with_sums() {
        let f = formula("x * y + x", &ALIASES).unwrap();
        let made = fuse(&[f], PLAIN).unwrap();
        assert_eq!(*made[0].kind(), Kind::Apply(Id::Fma));
        let shared = formula("Sin(x * y) + x * y", &ALIASES).unwrap();
        assert_eq!(fuse(std::slice::from_ref(&shared), PLAIN).unwrap(), [shared]);
    }
}
