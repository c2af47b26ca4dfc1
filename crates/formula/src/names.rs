//! What the operations of the table are called in formulas.
//!
//! The name of a row is the name of its type (`Exp`, `LogAddExp`), unless KeOps users know it by
//! another one. The parser and the printer read this; a new row needs nothing here.

use tilework_fork::ForkOnce;
use tilework_ops::{COUNT, Class, DType, FoldId, Id};

use crate::expr::Kind;

/// Names that differ from the row's type. Where a formula's meaning differs from the array's
/// (the square root's slope at 0), the formula's row has the plain name.
const RENAMED: &[(Id, &str)] = &[
    (Id::Negative, "Minus"),
    (Id::Multiply, "Mult"),
    (Id::Reciprocal, "Inv"),
    (Id::SqrtFlat, "Sqrt"),
    (Id::Sqrt, "SqrtSteep"),
    (Id::RsqrtOrZero, "Rsqrt"),
    (Id::Rsqrt, "RsqrtOrInf"),
    (Id::Relu, "ReLU"),
    (Id::ModFrom, "Mod"),
    (Id::Pow, "Powf"),
    (Id::Less, "LessThan"),
    (Id::LessEqual, "LessOrEqual"),
    (Id::Greater, "GreaterThan"),
    (Id::GreaterEqual, "GreaterOrEqual"),
    (Id::Clip, "Clamp"),
    (Id::Round, "Rint"),
];

/// Whether the operation exists on the real numbers of formulas.
pub fn is_real(id: Id) -> bool {
    id.row().classes & Class::Real as u8 != 0 && id.row().takes(DType::Float64)
}

/// The name of an operation in formulas.
///
/// ```
/// use tilework_ops::Id;
/// assert_eq!(tilework_formula::names::of(Id::Reciprocal), "Inv");
/// assert_eq!(tilework_formula::names::of(Id::Tanh), "Tanh");
/// ```
pub fn of(id: Id) -> &'static str {
    static NAMES: ForkOnce<[String; COUNT]> = ForkOnce::new();
    let names = NAMES.get_or_make(|| {
        Id::ALL.map(|id| match RENAMED.iter().find(|(renamed, _)| *renamed == id) {
            Some((_, name)) => (*name).to_string(),
            None => format!("{id:?}"),
        })
    });
    &names[id as usize]
}

/// The operation with this name in formulas.
pub fn elementwise(name: &str) -> Option<Id> {
    Id::ALL.into_iter().find(|id| is_real(*id) && of(*id) == name)
}

/// The name of what a node does, for messages.
pub(crate) fn of_kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Variable(_) => "Var",
        Kind::Constant(_) => "constant",
        Kind::Zero(_) => "Zero",
        Kind::Range(_) => "Range",
        Kind::Apply(id) => of(*id),
        Kind::Select => "Where",
        Kind::Fold(fold) => of_fold(*fold),
        Kind::Repeat(_) => "SumT",
        Kind::Extract { .. } => "Extract",
        Kind::Place { .. } => "ExtractT",
        Kind::Concat => "Concat",
        Kind::Permute(_) => "Permute",
        Kind::Dot => "|",
        Kind::Contract(_) => "TensorDot",
    }
}

/// The reductions along the vector that formulas have, with their names.
pub(crate) const FOLDS: [(FoldId, &str); 5] = [
    (FoldId::Sum, "Sum"),
    (FoldId::Max, "Max"),
    (FoldId::Min, "Min"),
    (FoldId::ArgMax, "ArgMax"),
    (FoldId::ArgMin, "ArgMin"),
];

pub(crate) fn of_fold(fold: FoldId) -> &'static str {
    FOLDS.iter().find(|(id, _)| *id == fold).map_or("fold", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        for id in Id::ALL.into_iter().filter(|id| is_real(*id)) {
            assert_eq!(elementwise(of(id)), Some(id));
        }
        assert_eq!(elementwise("BitwiseAnd"), None);
    }
}
