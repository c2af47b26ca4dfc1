//! Random formulas of all operations, up to six deep, with random dimensions and batches, against
//! the oracle in float64; and their bits, by which ways to compute them are compared.

use std::ops::Range;

use tilework::formula::{Axis, Category, Expr, Reduction, Variable, names};
use tilework::pairs::Genred;
use tilework::{Array, Device, FoldId, Id, Result, s};
use tilework_ops::random::{block, uniform_f64};

use crate::pairs::{self, array, close, floats};

/// Numbers from one seed, one after the other.
pub(crate) struct Dice {
    seed: u64,
    taken: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice { seed, taken: 0 }
    }

    pub(crate) fn roll(&mut self) -> f64 {
        self.taken += 1;
        uniform_f64(block(self.seed, self.taken))
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.roll() * n as f64) as usize).min(n - 1)
    }
}

/// So many seeds, or ten times as many others where tests may be slow: `TILEWORK_SLOW_TESTS=2` takes
/// the second such lot, and so on.
pub fn seeds(count: u64) -> Range<u64> {
    match std::env::var("TILEWORK_SLOW_TESTS") {
        Ok(lot) => {
            let first = count + 10 * count * lot.parse::<u64>().unwrap_or(1).saturating_sub(1);
            first..first + 10 * count
        }
        Err(_) => 0..count,
    }
}

/// Rows of i and of j; of every fourth formula so many of one of them that cards take their kernels for many pairs.
fn rows(device: Device, seed: u64) -> [usize; 2] {
    match seed % 8 {
        _ if !pairs::is_card(device) => [3, 5],
        3 => [pairs::MANY, 2],
        7 => [2, pairs::MANY],
        _ => [3, 5],
    }
}

/// The variables of a formula: some of each category, of dimension 1 and of another.
fn variables(dim: usize) -> Vec<Variable> {
    let categories = [Category::I, Category::J, Category::Parameter];
    let all = categories.into_iter().flat_map(|category| [(category, 1), (category, dim)]);
    all.enumerate()
        .map(|(position, (category, dim))| Variable { position, dim, category })
        .collect()
}

/// An expression with values in the interval, whatever those of `expr`.
fn squashed(expr: &Expr, low: f64, high: f64) -> Result<Expr> {
    let between = expr.unary(Id::Sigmoid)?;
    between.scale(high - low)?.add(&Expr::constant(low))
}

/// The same for operand `k` of what may jump. A sum that cancels is zero here and a rounding error
/// there: off the middle of the interval, by another part of it for each operand, no jump lies at zero.
fn apart(expr: &Expr, low: f64, high: f64, k: usize) -> Result<Expr> {
    squashed(expr, low, high - 0.03 * (k + 1) as f64 * (high - low))
}

/// A random formula of dimension 1 or `dim`.
fn formula(dice: &mut Dice, depth: usize, dim: usize) -> Result<Expr> {
    if depth == 0 || dice.roll() < 0.1 {
        let all = variables(dim);
        return match dice.below(all.len() + 1) {
            k if k < all.len() => Expr::variable(all[k]),
            _ => Ok(Expr::constant(dice.roll() * 3.0 - 1.5)),
        };
    }
    let operand = |dice: &mut Dice| formula(dice, depth - 1, dim);
    match dice.below(12) {
        0 => operand(dice)?.sum(),
        1 => operand(dice)?.fold([FoldId::Max, FoldId::Min][dice.below(2)]),
        2 => {
            let (f, g) = (operand(dice)?, operand(dice)?);
            f.broadcast_to(dim)?.sqdist(&g.broadcast_to(dim)?)
        }
        3 => operand(dice)?.dot(&operand(dice)?),
        4 => {
            let both = Expr::concat(&[operand(dice)?, operand(dice)?.broadcast_to(dim)?])?;
            both.extract(dice.below(both.dim() - dim + 1), dim)
        }
        5 => apart(&operand(dice)?, -2.0, 2.0, 0)?.ifelse(&operand(dice)?, &operand(dice)?),
        6 => {
            let (f, g) = (operand(dice)?.broadcast_to(dim)?, operand(dice)?.broadcast_to(dim)?);
            f.tensorprod(&g)?.matvecmult(&operand(dice)?.broadcast_to(dim)?)
        }
        7 => apart(&operand(dice)?, -2.0, 2.0, 0)?.normalize(),
        _ => {
            let rows: Vec<Id> = Id::ALL.into_iter().filter(|id| names::is_real(*id)).collect();
            // Steps to the next number are far below any tolerance, and its oracle is exact.
            let id = loop {
                let id = rows[dice.below(rows.len())];
                if id != Id::NextAfter {
                    break id;
                }
            };
            let operands: Vec<Expr> = (0..id.row().arity)
                .map(|k| {
                    let domain = id.row().domain_of(k);
                    let (low, high) = (domain.start.max(-2.0), domain.end.min(2.0));
                    let (low, high) = if low < high { (low, high) } else { (0.5, 1.5) };
                    apart(&operand(dice)?, low, high, k)
                })
                .collect::<Result<_>>()?;
            Expr::apply(id, &operands)
        }
    }
}

/// What the arrays vary with; the last has the dimension of all vectors.
fn variables_of(arrays: &[Array]) -> Vec<Category> {
    let dim = arrays.last().map_or(1, |array| array.shape()[array.ndim() - 1]);
    variables(dim).iter().map(|variable| variable.category).collect()
}

/// The formula of a seed, the dimension of its vectors, and the dice for its numbers.
fn drawn(seed: u64) -> (Expr, usize, Dice) {
    let mut dice = Dice::new(1000 + seed);
    let dim = 2 + dice.below(4);
    let depth = 1 + dice.below(6);
    (formula(&mut dice, depth, dim).expect("a formula"), dim, dice)
}

/// Sums of random formulas over enough pairs to be assembled: a line for each, with the bits of all
/// results. Numbers that are no number are all the same.
pub fn random_bits(device: Device, seeds: Range<u64>) -> Vec<String> {
    let mut lines = Vec::new();
    for seed in seeds {
        let (expr, dim, mut dice) = drawn(seed);
        let sum = Genred::new(&expr.to_string(), &[], "Sum", 1).expect("a formula");
        for dtype in [tilework::DType::Float32, tilework::DType::Float64] {
            let mut draw = |variable: &Variable| {
                let shape = match variable.category {
                    Category::I => vec![70, variable.dim],
                    Category::J => vec![300, variable.dim],
                    Category::Parameter => vec![variable.dim],
                };
                let count = shape.iter().product();
                let numbers: Vec<f64> = (0..count).map(|_| dice.roll() * 3.0 - 1.5).collect();
                array(device, &shape, dtype, &numbers)
            };
            let arrays: Vec<Array> =
                variables(dim)[..sum.arguments()].iter().map(&mut draw).collect();
            if arrays.is_empty() {
                continue;
            }
            let got = sum.call(&arrays.iter().collect::<Vec<_>>()).expect("a sum");
            let bits = |x: &f64| if x.is_nan() { u64::MAX } else { x.to_bits() };
            let hash = floats(&got).iter().fold(0u64, |hash, x| {
                (hash ^ bits(x)).wrapping_mul(0x100_0000_01b3).rotate_left(17)
            });
            lines.push(format!("{hash:016x} {dtype} {seed} {expr}"));
        }
    }
    lines
}

/// Random formulas, each over i and over j, in batches that broadcast.
pub fn random_formulas(device: Device, seeds: Range<u64>) {
    for seed in seeds {
        let (expr, dim, mut dice) = drawn(seed);
        let what = format!("formula {seed}: {expr}");
        let all = variables(dim);
        let [m, n] = rows(device, seed);
        let batches: [&[usize]; 4] = [&[], &[2, 1], &[3], &[1, 3]];
        let arrays: Vec<Array> = all
            .iter()
            .map(|variable| {
                let mut shape = batches[dice.below(4)].to_vec();
                match variable.category {
                    Category::I => shape.push(m),
                    Category::J => shape.push(n),
                    Category::Parameter => {}
                }
                shape.push(variable.dim);
                let numbers: Vec<f64> =
                    (0..shape.iter().product()).map(|_| dice.roll() * 3.0 - 1.5).collect();
                array(device, &shape, tilework::DType::Float64, &numbers)
            })
            .collect();
        for (axis, number) in [(Axis::I, 0), (Axis::J, 1)] {
            // By way of text, which must parse back.
            let mean = Genred::new(&expr.to_string(), &[], "Mean", number).expect(&what);
            // A formula of no variable has no dtype to hold it to.
            if mean.arguments() == 0 {
                continue;
            }
            let given: Vec<&Array> = arrays[..mean.arguments()].iter().collect();
            let got = mean.call(&given).expect(&what);
            check(&what, &expr, &arrays, [m, n], axis, &got);
        }
    }
}

/// Rows at which the CPU assembles loops, chooses forms and filters nearest points. Cards do so from far more pairs on:
/// `pairs_kernels` is for them.
const MANY: usize = 300;

/// Random formulas, and exponentials and smallest values of their squares, in float64 and over so many pairs that the CPU
/// chooses how: the first and the last two rows against the oracle.
pub fn random_rows(device: Device, seeds: Range<u64>) {
    for seed in seeds {
        let (expr, dim, mut dice) = drawn(seed);
        let numbers: Vec<Vec<f64>> = variables(dim)
            .iter()
            .map(|variable| {
                let rows = if variable.category == Category::Parameter { 1 } else { MANY };
                (0..rows * variable.dim).map(|_| dice.roll() * 3.0 - 1.5).collect()
            })
            .collect();
        let (x, y) = (Expr::variable(variables(dim)[1]), Expr::variable(variables(dim)[3]));
        let square = x.and_then(|x| x.sqdist(&y?)).expect("a distance");
        let factor = squashed(&expr, 0.5, 1.5).and_then(|f| f.sum()).expect("a factor");
        let exponent = square.scale(-0.1 * (1 + seed % 20) as f64).expect("an exponent");
        let kernel = exponent.exp().and_then(|k| k.multiply(&factor)).expect("a kernel");
        let near = square.unary(Id::Sqrt).and_then(|d| d.scale(0.25)).expect("a distance");
        for (name, formula) in
            [("Mean", &expr), ("Sum", &kernel), ("LogSumExp", &exponent), ("Min", &near)]
        {
            for (axis, number) in [(Axis::I, 0), (Axis::J, 1)] {
                let what = format!("{name} of formula {seed} over axis {number}: {formula}");
                let call = Genred::new(&formula.to_string(), &[], name, number).expect(&what);
                let given: Vec<Array> = variables(dim)[..call.arguments()]
                    .iter()
                    .zip(&numbers)
                    .map(|(variable, numbers)| {
                        let rows = numbers.len() / variable.dim;
                        let shape = match variable.category {
                            Category::Parameter => vec![variable.dim],
                            _ => vec![rows, variable.dim],
                        };
                        array(device, &shape, tilework::DType::Float64, numbers)
                    })
                    .collect();
                if given.is_empty() {
                    continue;
                }
                let got = floats(&call.call(&given.iter().collect::<Vec<_>>()).expect(&what));
                // An index that no variable has counts one row.
                let rows = got.len() / formula.dim();
                for first in [0, rows.saturating_sub(2)] {
                    let kept = first..(first + 2).min(rows);
                    let expected = oracle(name, formula, &numbers, axis, kept.clone());
                    let got = &got[kept.start * formula.dim()..kept.end * formula.dim()];
                    close(&what, got, &expected[..got.len()], 1e-8);
                }
            }
        }
    }
}

/// What a reduction gives for some rows of the index that survives.
fn oracle(
    name: &str,
    formula: &Expr,
    numbers: &[Vec<f64>],
    axis: Axis,
    rows: Range<usize>,
) -> Vec<f64> {
    let dim = numbers.last().map_or(1, Vec::len);
    let numbers: Vec<&[f64]> = numbers
        .iter()
        .zip(variables(dim))
        .map(|(numbers, variable)| match variable.category == axis.survivor() {
            true => &numbers[rows.start * variable.dim..rows.end * variable.dim],
            false => &numbers[..],
        })
        .collect();
    let reduction = Reduction::new(name, formula, axis, None, None).expect("a reduction");
    let (m, n) = if axis == Axis::J { (rows.len(), MANY) } else { (MANY, rows.len()) };
    reduction.evaluate(&numbers, m, n).expect("the oracle").0
}

/// Compares every batch of a mean with the oracle.
fn check(what: &str, expr: &Expr, arrays: &[Array], [m, n]: [usize; 2], axis: Axis, got: &Array) {
    let mean = Reduction::new("Mean", expr, axis, None, None).expect("mean");
    let rows = if axis == Axis::J { m } else { n };
    for b in 0..2isize {
        for c in 0..3isize {
            let numbers: Vec<Vec<f64>> = arrays
                .iter()
                .zip(variables_of(arrays))
                .map(|(array, category)| {
                    let own = if category == Category::Parameter { 1 } else { 2 };
                    let full: Vec<usize> = [&[2, 3], &array.shape()[array.ndim() - own..]].concat();
                    let all = array.broadcast_to(&full).expect("broadcast");
                    floats(&all.slice(&s![b, c]).expect("slice"))
                })
                .collect();
            let numbers: Vec<&[f64]> = numbers.iter().map(|numbers| &numbers[..]).collect();
            let (expected, _) = mean.evaluate(&numbers, m, n).expect("the oracle");
            // An index that no variable has counts one row.
            let rows = if got.shape()[got.ndim() - 2] == 1 { 1 } else { rows };
            let expected = &expected[..rows * expr.dim()];
            let all = got.broadcast_to(&[2, 3, rows, expr.dim()]).expect("broadcast");
            let part = floats(&all.slice(&s![b, c]).expect("slice"));
            close(what, &part, expected, 1e-8);
        }
    }
}
