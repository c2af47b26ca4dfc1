//! What the tests share: variables, a formula for every function, numbers that are the same in
//! every run.
#![allow(dead_code, unreachable_pub)]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tilework_formula::{Expr, Variable, names, parse};
use tilework_ops::Id;

/// So many cases, the same in every run; ten times as many others where tests may be slow.
pub fn cases(cases: u32) -> ProptestConfig {
    let (rng_seed, cases) = match std::env::var_os("TILEWORK_SLOW_TESTS") {
        Some(_) => (RngSeed::Random, 10 * cases),
        None => (RngSeed::Fixed(1), cases),
    };
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// The variables of the corpus.
pub const ALIASES: [&str; 9] = [
    "x = Vi(3)",
    "y = Vj(3)",
    "s = Pm(1)",
    "a = Vi(1)",
    "b = Vj(2)",
    "M = Pm(6)",
    "t = Pm(5)",
    "S = Vi(9)",
    "w = Vj(1)",
];

/// Formulas that between them use every function of the table and every kind of node.
pub const CORPUS: &[&str] = &[
    "x",
    "x + y",
    "x - s",
    "s * y",
    "x / (2 + Square(y))",
    "s / (3 + Square(x))",
    "(x|y)",
    "(s|x)",
    "-x * 3 + RatCst(1,3) * y + IntInv(4) + IntCst(2) * x",
    "Exp(-SqDist(x,y))",
    "Exp(-SqDist(x,y) * s) * b",
    "Sqrt(SqDist(x,y) + 1) * Exp(-SqDist(x,y) / 3)",
    "Scalprod(x, Sin(y))",
    "Pow(x,3) + Pow(2 + Square(y),-2)",
    "Powf(2 + Square(x), s)",
    "Atan2(x, s)",
    "Mod(x, IntCst(2), s)",
    "Round(x,2) * y",
    "Round(x,-1) * y",
    "ClampInt(x,-1,1) * y",
    "Clamp(x, s - 3, s + 3) * y",
    "Clamp(3 * x, s, s + IntCst(1))",
    "DiffClampInt(x,-1,1) * y",
    "IfElse(x, y, s)",
    "IfElse(x - y, Exp(x), Sin(y))",
    "Where(x < y, x * x, y)",
    "(x < y) * x + (x <= s) * y + (x > y) + (x >= s)",
    "(x == y) + (x != s)",
    "LogicalAnd(x < y, x < s) * y + LogicalNot(x) + LogicalOr(x < y, s)",
    "Sum(x * Exp(y))",
    "Sum(Exp(x))",
    "SumT(s * a, 3) * Sin(x)",
    "SumT(a, 4)",
    "Max(x + y) + Min(x * y)",
    "ArgMax(x) + ArgMin(y) * s",
    "SqNorm2(x + y) + Norm2(x - y)",
    "Normalize(x) * s",
    "SqNormIso(s, x - y)",
    "SqNormDiag(y, x)",
    "SymSqNorm(S, y)",
    "WeightedSqNorm(s, x) + WeightedSqNorm(y, x) + WeightedSqNorm(S, y)",
    "WeightedSqDist(S, x, y) + WeightedSqDist(s, x, y)",
    "Elem(x,1) * y",
    "ElemT(s * a, 4, 2)",
    "Extract(x * y, 1, 2) * b",
    "ExtractT(b * s, 1, 5)",
    "Concat(x, b) * s",
    "Concat(Sin(x), y, b, a)",
    "OneHot(a * a, 3) * x",
    "BSpline(Concat(IntCst(-4), IntCst(-1), IntCst(0), IntCst(1), IntCst(4)), a, 2)",
    "BSpline(Concat(IntCst(-5), IntCst(-2), SumT(IntCst(0), 2), IntCst(3), IntCst(6)), a, 1)",
    "Range(3) * x",
    "MatVecMult(M, x)",
    "MatVecMult(S, x + y)",
    "VecMatMult(b, M)",
    "VecMatMult(x, S)",
    "TensorProd(x, b)",
    "DifferenceMatrix(x, b)",
    "Kron(M, Concat(b, b), [3,2], [2,2])",
    "Kron(x, b, [3], [2])",
    "TensorDot(M, M, [2,3], [3,2], [1], [0])",
    "TensorDot(M, Concat(M, M), [2,3], [2,3,2], [1,0], [1,2])",
    "TensorDot(S, Concat(x, y), [3,3], [3,2], [0], [0])",
    "TensorDot(M, x, [2,3], [3], [], [])",
    "TensorDot(M, b, [3,2], [2], [], [], [2,0,1])",
    "TensorDot(M, S, [2,3], [3,3], [1], [0], [1,0])",
    "Permute(TensorProd(x, b), [3,2], [1,0]) * M",
    "Grad(Exp(-SqDist(x,y)) * b, x, b)",
    "Grad(Grad(SqDist(x,y) * Exp(x|y), x, s), y, x)",
    "Diff(Exp(x) * Sum(y), x, y)",
    "GradMatrix(Sin(x) * Sum(x), x)",
    "Divergence(Exp(x) * (x|y), x)",
    "Laplacian(Exp(-SqDist(x,y)), x)",
    "TraceOperator(MatVecMult(S, x), x)",
    "TraceOperator(MatVecMult(S, x), x, y)",
    "AdjointOperator(MatVecMult(S, x), x, y)",
    "SumLinOperator(MatVecMult(S, x), x)",
    "SumLinOperator(MatVecMult(S, x), x, y, s)",
    "Factorize(x * y, y)",
    "AutoFactorize(x * y)",
    "Sqrt(Rsqrt(2 + SqNorm2(x))) + XLogX(Square(y) + 1)",
    "Log(1 + Exp(x)) * SinXDivX(y) + ReLU(x) + Step(y) + Abs(x)",
    "Tanh(x) + Erf(y) + Sigmoid(s) * Log1p(Square(y)) + Expm1(s)",
    "Sinc(x) * y",
    "Exp(x) * Exp(y) * Exp(s)",
    "Maximum(x, y) * Minimum(x, s) + FMax(x, y) + FMin(y, s)",
    "Fma(x, y, s) + LogAddExp(x, y) + Hypot(x, y)",
];

/// Numbers in (-1, 1) that are the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn vector(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| 2.0 * self.next()).collect()
    }
}

/// A value for each variable of a list, by position.
pub fn arguments(variables: &[Variable], numbers: &mut Numbers) -> Vec<Vec<f64>> {
    let count = variables.iter().map(|v| v.position + 1).max().unwrap_or(0);
    let mut arguments = vec![Vec::new(); count];
    for v in variables {
        arguments[v.position] = numbers.vector(v.dim);
    }
    arguments
}

pub fn slices(arguments: &[Vec<f64>]) -> Vec<&[f64]> {
    arguments.iter().map(|argument| &argument[..]).collect()
}

pub fn corpus() -> Vec<(String, Expr)> {
    let parse = |text: &&str| match parse::formula(text, &ALIASES) {
        Ok(expr) => (text.to_string(), expr),
        Err(error) => panic!("{text}: {error}"),
    };
    CORPUS.iter().map(parse).collect()
}

/// An interval for each argument.
pub type Intervals = Vec<(f64, f64)>;

/// Every operation of the table that formulas have, on vectors and broadcast numbers, with an
/// interval for each argument that keeps clear of its bounds.
pub fn elementwise() -> Vec<(Id, Expr, Intervals)> {
    let mut found = Vec::new();
    for id in Id::ALL.into_iter().filter(|id| names::is_real(*id)) {
        let arity = id.row().arity;
        for broadcast in 0..arity {
            // In one round the first operand is a number, in the others it is a vector.
            let dim = |k: usize| if arity > 1 && k == broadcast { 1 } else { 2 };
            let operands: Vec<Expr> = (0..arity).map(|k| Expr::vi(k, dim(k)).unwrap()).collect();
            let domain = |k: usize| {
                let range = id.row().domain_of(k);
                let (low, high) = (range.start.max(-2.3), range.end.min(2.9));
                if low < high { (low, high) } else { (range.start, range.end) }
            };
            let expr = Expr::apply(id, &operands).unwrap();
            found.push((id, expr, (0..arity).map(domain).collect()));
        }
    }
    found
}

/// Formulas of random shape over three variables, as text.
pub fn random_formula() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("x".to_string()),
        Just("y".to_string()),
        Just("s".to_string()),
        Just("Zero(3)".to_string()),
        (-9i32..9).prop_map(|n| format!("({n})")),
        (-4.0f64..4.0).prop_map(|v| format!("({v:?})")),
    ];
    leaf.prop_recursive(6, 60, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), prop_oneof!["[-+*|<]", "<=", "=="])
                .prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            two.clone().prop_map(|(a, b)| format!("({a} / (Square({b}) + 1))")),
            two.clone().prop_map(|(a, b)| format!("SqDist({a}, {b})")),
            two.clone().prop_map(|(a, b)| format!("Concat(Sum({a}), Extract({b} + x, 1, 2))")),
            two.prop_map(|(a, b)| format!("IfElse({a}, {b}, s)")),
            (
                inner,
                prop_oneof![
                    Just("Exp"),
                    Just("Sin"),
                    Just("-"),
                    Just("Sum"),
                    Just("Tanh"),
                    Just("Abs"),
                    Just("Max"),
                    Just("Normalize"),
                    Just("ReLU"),
                    Just("Square"),
                ]
            )
                .prop_map(|(a, f)| format!("{f}({a})")),
        ]
    })
}
