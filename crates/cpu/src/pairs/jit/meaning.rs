//! The meaning of rows on vectors that record: the same bits as their kernels.
//!
//! Rows with a kernel in the simd crate are that kernel, recorded; the others are exact operations,
//! and are written here as the compiled loops over their scalar meaning compute them. Called by
//! `program`.

use tilework_ops::Id;
use tilework_simd::record::{Mask, Recording};

/// A row that gives a number; None where it cannot be recorded.
pub(super) fn number<V: Recording>(id: Id, x: &[V]) -> Option<V> {
    if let Some(function) = V::function(id.row().name) {
        return Some(function(x));
    }
    let (zero, one) = (V::lit(0.0), V::lit(1.0));
    let a = x[0];
    let b = x.get(1).copied().unwrap_or(zero);
    let c = x.get(2).copied().unwrap_or(zero);
    Some(match id {
        Id::Add => a + b,
        Id::Subtract => a - b,
        Id::Multiply => a * b,
        Id::Divide => a / b,
        Id::Fma => a.fma(b, c),
        Id::Negative => -a,
        Id::Positive | Id::Conj | Id::RealPart => a,
        Id::ImagPart => zero,
        Id::Abs => a.abs(),
        Id::Sign => {
            let of_zero = V::select(a.eq(zero), zero, a);
            V::select(a.gt(zero), one, V::select(a.lt(zero), V::lit(-1.0), of_zero))
        }
        Id::Square => a * a,
        Id::Reciprocal => one / a,
        Id::Sqrt | Id::SqrtFlat => a.sqrt(),
        Id::Maximum => V::select(a.gt(b) | a.is_nan(), a, b),
        Id::Minimum => V::select(a.lt(b) | a.is_nan(), a, b),
        Id::FMax => V::select(a.ge(b) | b.is_nan(), a, b),
        Id::FMin => V::select(a.le(b) | b.is_nan(), a, b),
        Id::Clip => {
            let up = V::select(a.lt(b) | b.is_nan(), b, a);
            V::select(up.gt(c) | c.is_nan(), c, up)
        }
        Id::Relu => V::select(a.lt(zero), zero, a),
        Id::Step => V::select(a.lt(zero), zero, one),
        Id::Floor => a.floor(),
        Id::Ceil => a.ceil(),
        Id::Trunc => a.trunc(),
        Id::Round => a.round(),
        Id::RoundAway => {
            let whole = a.trunc();
            let half = (a - whole).abs().ge(V::lit(0.5));
            V::select(half, whole + one.copysign(a), whole)
        }
        Id::ModFrom => a - b * ((a - c) / b).floor(),
        Id::CopySign => a.copysign(b),
        _ => return None,
    })
}

/// A row on numbers that gives a truth.
pub(super) fn test<V: Recording>(id: Id, x: &[V]) -> Option<Mask> {
    let zero = V::lit(0.0);
    let a = x[0];
    let b = x.get(1).copied().unwrap_or(zero);
    let is_true = |a: V| !a.eq(zero);
    let infinity = V::lit(f64::INFINITY);
    Some(match id {
        Id::Equal => a.eq(b),
        Id::NotEqual => !a.eq(b),
        Id::Less => a.lt(b),
        Id::LessEqual => a.le(b),
        Id::Greater => a.gt(b),
        Id::GreaterEqual => a.ge(b),
        Id::IsNan => a.is_nan(),
        Id::IsInf => a.abs().eq(infinity),
        Id::IsFinite => a.abs().lt(infinity),
        Id::SignBit => a.sign_mask(),
        Id::LogicalNot => a.eq(zero),
        _ => of_truths(id, &[is_true(a), is_true(b)])?,
    })
}

/// A row on truths that gives a truth.
pub(super) fn of_truths(id: Id, x: &[Mask]) -> Option<Mask> {
    let a = x[0];
    let b = x.get(1).copied().unwrap_or(a);
    let differ = (a & !b) | (!a & b);
    Some(match id {
        Id::LogicalAnd | Id::BitwiseAnd | Id::Multiply => a & b,
        Id::LogicalOr | Id::BitwiseOr | Id::Add => a | b,
        Id::LogicalXor | Id::BitwiseXor | Id::NotEqual => differ,
        Id::Equal => !differ,
        Id::LogicalNot | Id::BitwiseInvert => !a,
        Id::Positive => a,
        Id::Less => !a & b,
        Id::LessEqual => !a | b,
        Id::Greater => a & !b,
        Id::GreaterEqual => a | !b,
        _ => return None,
    })
}
