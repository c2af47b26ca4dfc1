//! What happens to expressions between the user and the tape: a short list of passes.
//!
//! A pass maps the outputs of a formula to outputs with the same values. It works on expressions,
//! whose constructors check and simplify, so there is no malformed state between passes. Called by
//! `lower.rs`, in the order of [`PASSES`], which has at most six rows.

use smallvec::smallvec;
use tilework_error::Result;
use tilework_ops::Id;

use crate::expr::{Expr, Kind, Map, Operands};

/// One pass.
pub struct Pass {
    /// What to call it.
    pub name: &'static str,
    /// What it does, as a sentence.
    pub doc: &'static str,
    /// The new outputs.
    pub run: fn(&[Expr]) -> Result<Vec<Expr>>,
}

/// The passes, in order.
///
/// Places are kept between `powers` and `share`: one for exponentials (exp(c x) as exp2 with the
/// constants multiplied into the variables beforehand), one for quotients by what varies less, one
/// for products regrouped by index.
pub static PASSES: [Pass; 3] = [
    Pass {
        name: "fold",
        doc: "Makes every node again by the rules, so that constants meet and fold.",
        run: fold,
    },
    Pass { name: "powers", doc: "Writes small integer powers as products.", run: powers },
    Pass {
        name: "share",
        doc: "Puts the operands of commutative operations in one order, so that equals meet.",
        run: share,
    },
];

fn fold(outputs: &[Expr]) -> Result<Vec<Expr>> {
    Expr::rebuild(outputs, |node, operands| Expr::build(node.kind().clone(), operands))
}

/// Larger powers are left to the pow of the table, which is as accurate and as fast there.
const LARGEST_PRODUCT: f64 = 16.0;

fn powers(outputs: &[Expr]) -> Result<Vec<Expr>> {
    Expr::rebuild(outputs, |node, operands| {
        let exponent = operands.get(1).and_then(Expr::as_constant);
        match (node.kind(), exponent) {
            (Kind::Apply(Id::Pow), Some(m)) if m.fract() == 0.0 && m.abs() <= LARGEST_PRODUCT => {
                let positive = integer_power(&operands[0], m.abs() as u32)?;
                if m < 0.0 { positive.unary(Id::Reciprocal) } else { Ok(positive) }
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

fn share(outputs: &[Expr]) -> Result<Vec<Expr>> {
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

    const ALIASES: [&str; 2] = ["x = Vi(1)", "y = Vj(1)"];

    #[test]
    fn powers_become_products() {
        let cube = formula("Pow(x,3) + Pow(y,-4)", &ALIASES).unwrap();
        let made = powers(&[cube]).unwrap();
        let wanted = formula("x * Square(x) + Inv(Square(Square(y)))", &ALIASES).unwrap();
        assert_eq!(made, [wanted]);
    }

    #[test]
    fn products_in_either_order_are_shared() {
        let f = formula("Exp(x * y) + Sin(y * x)", &ALIASES).unwrap();
        assert_eq!(Expr::order(std::slice::from_ref(&f)).len(), 7);
        assert_eq!(Expr::order(&share(&[f]).unwrap()).len(), 6);
    }

    #[test]
    fn there_are_at_most_six() {
        assert!(PASSES.len() <= 6);
    }
}
