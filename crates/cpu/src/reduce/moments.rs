//! Variance and the logarithm of a sum of exponentials: blocks in two passes while they are in
//! cache, merged in pairs.
//!
//! Both know something of a block (its mean, its largest element) after a first pass, and take the
//! sum of a function of the distance from that in a second. Everything is computed in double
//! precision. May assume the contracts of [`Rows`] and [`Columns`]. Named by `table.rs`.

use std::marker::PhantomData;

use tilework_ops::fold::{LogSumExp, Moments, ScaledSum, Var};
use tilework_ops::{Element, Fold, Value};

use super::body::{Body, each_isa};
use super::define::{self, value};
use super::lanes::larger;
use super::pairwise::Pairwise;
use super::table::{Columns, Inner, Kernels, MAX_RUN, Outer, Rows};

/// Elements of a block: well inside L1.
const BLOCK: usize = 1024;

/// Lanes that a block is spread over.
const LANES: usize = 32;

/// Columns of which the rows of one call stay in L2 for the second pass.
const STRIP: usize = 256;

/// What two passes over `count` elements have found.
pub(super) struct Passes {
    first: f64,
    gathered: f64,
    pivot: f64,
    sum: f64,
    count: usize,
}

/// A fold in two passes.
pub(super) trait TwoPass<V: Value>: Fold {
    /// The neutral first-pass value.
    const START: f64;
    /// The first pass, one element, given the first of all.
    fn gather(a: f64, x: f64, first: f64) -> f64;
    /// The first pass over two parts.
    fn join(a: f64, b: f64) -> f64;
    /// What the second pass measures from, given the first pass over `count` elements.
    fn pivot(gathered: f64, first: f64, count: usize) -> f64;
    /// What the second pass sums.
    fn term(x: f64, pivot: f64) -> f64;
    /// The state that both passes give.
    fn state(passes: Passes) -> Self::State<V>;
}

impl<V: Value> TwoPass<V> for Var {
    const START: f64 = 0.0;
    #[inline(always)]
    fn gather(a: f64, x: f64, first: f64) -> f64 {
        a + (x - first)
    }
    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        a + b
    }
    #[inline(always)]
    fn pivot(gathered: f64, first: f64, count: usize) -> f64 {
        first + gathered / count as f64
    }
    #[inline(always)]
    fn term(x: f64, pivot: f64) -> f64 {
        (x - pivot) * (x - pivot)
    }
    #[inline(always)]
    fn state(Passes { first, gathered, pivot, sum, count }: Passes) -> Moments {
        let count = count as f64;
        if pivot.is_finite() {
            let rest = (first - pivot) + gathered / count;
            Moments { count, mean: pivot, rest, squares: sum }
        } else {
            // The squares say what the variance is: infinite, or NaN if there is an element that is not
            // finite.
            Moments { count, mean: 0.0, rest: 0.0, squares: sum }
        }
    }
}

impl<V: Value> TwoPass<V> for LogSumExp {
    const START: f64 = f64::NEG_INFINITY;
    #[inline(always)]
    fn gather(a: f64, x: f64, _: f64) -> f64 {
        larger(a, x)
    }
    #[inline(always)]
    fn join(a: f64, b: f64) -> f64 {
        larger(a, b)
    }
    #[inline(always)]
    fn pivot(gathered: f64, _: f64, _: usize) -> f64 {
        gathered
    }
    #[inline(always)]
    fn term(x: f64, pivot: f64) -> f64 {
        exp_of_negative(x - pivot)
    }
    #[inline(always)]
    fn state(Passes { pivot, sum, .. }: Passes) -> ScaledSum {
        if pivot.is_finite() {
            ScaledSum { max: pivot, sum }
        } else {
            // Distances from infinity mean nothing. One term stands for all.
            ScaledSum { max: pivot, sum: if pivot == f64::NEG_INFINITY { 0.0 } else { 1.0 } }
        }
    }
}

/// e^x for x <= 0, to the last bit or two; 0 below the normal numbers.
///
/// Written so that the compiler can make vectors of it, which it cannot of a call to the library.
#[inline(always)]
fn exp_of_negative(x: f64) -> f64 {
    /// Adding this leaves the nearest integer in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let lowest = -708.0;
    let clamped = if x > lowest { x } else { lowest };
    let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    // The series up to r^13 / 13!, good to 2^-57 for |r| <= ln(2) / 2.
    let mut p = 1.0 / 6_227_020_800.0;
    p = p * r + 1.0 / 479_001_600.0;
    p = p * r + 1.0 / 39_916_800.0;
    p = p * r + 1.0 / 3_628_800.0;
    p = p * r + 1.0 / 362_880.0;
    p = p * r + 1.0 / 40_320.0;
    p = p * r + 1.0 / 5_040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * (r * r) + r;
    let p = p + 1.0;
    // The integer in the low bits of `shifted` goes to the exponent.
    let scaled = f64::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 52));
    if x > lowest { scaled } else { 0.0 }
}

/// The kernels of this file.
pub(super) struct InTwoPasses;

impl<F: TwoPass<C::V>, L: Element, C: Element> Kernels<F, L, C> for InTwoPasses {
    const INNER: [Inner; 3] = each_isa::<Run<F, L, C>, Rows>(L::DTYPE, define::inner::<F, L, C>);
    const OUTER: [Outer; 3] =
        each_isa::<Strip<F, L, C>, Columns>(L::DTYPE, define::outer::<F, L, C>);
}

#[inline(always)]
fn double<L: Element, C: Element>(raw: L::Raw) -> f64 {
    value::<L, C>(raw).to_f64()
}

/// Folds `f` over a block by lanes, then over the lanes.
#[inline(always)]
fn spread<L: Element, C: Element>(
    block: &[L::Raw],
    start: f64,
    step: impl Fn(f64, f64) -> f64,
    join: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mut lanes = [start; LANES];
    let (whole, rest) = block.as_chunks::<LANES>();
    for chunk in whole {
        for j in 0..LANES {
            lanes[j] = step(lanes[j], double::<L, C>(chunk[j]));
        }
    }
    let mut ends = lanes;
    for (lane, &raw) in ends.iter_mut().zip(rest) {
        *lane = step(*lane, double::<L, C>(raw));
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for j in 0..width {
            ends[j] = join(ends[j], ends[j + width]);
        }
    }
    ends[0]
}

#[inline(always)]
fn block_state<F: TwoPass<C::V>, L: Element, C: Element>(block: &[L::Raw]) -> F::State<C::V> {
    let (first, count) = (double::<L, C>(block[0]), block.len());
    let gathered = spread::<L, C>(block, F::START, |a, x| F::gather(a, x, first), F::join);
    let pivot = F::pivot(gathered, first, count);
    let sum = spread::<L, C>(block, 0.0, |a, x| a + F::term(x, pivot), |a, b| a + b);
    F::state(Passes { first, gathered, pivot, sum, count })
}

/// Rows one after another.
struct Run<F, L, C>(PhantomData<(F, L, C)>);

impl<F: TwoPass<C::V>, L: Element, C: Element> Body<Rows> for Run<F, L, C> {
    #[inline(always)]
    unsafe fn run(rows: &Rows, states: *mut u8) {
        const { assert!(MAX_RUN / BLOCK <= 1 << 6) };
        let states = states.cast::<F::State<C::V>>();
        let base = rows.src.cast::<L::Raw>();
        for row in 0..rows.rows {
            // SAFETY: the row is one of those that the contract of `Rows` lets us read.
            let src = unsafe {
                let first = base.offset(row.cast_signed() * rows.stride);
                std::slice::from_raw_parts(first, rows.len)
            };
            let mut blocks = Pairwise::<F::State<C::V>, 7>::new();
            let mut left = src;
            let state = loop {
                let (block, after) = left.split_at(left.len().min(BLOCK));
                let state = block_state::<F, L, C>(block);
                if after.is_empty() {
                    break blocks.finish_with(state, F::merge::<C::V>);
                }
                blocks.push(state, F::merge::<C::V>);
                left = after;
            };
            // SAFETY: there is room for one state for each row.
            unsafe { states.add(row).write(state) };
        }
    }
}

/// Columns in strips.
struct Strip<F, L, C>(PhantomData<(F, L, C)>);

impl<F: TwoPass<C::V>, L: Element, C: Element> Body<Columns> for Strip<F, L, C> {
    #[inline(always)]
    unsafe fn run(columns: &Columns, states: *mut u8) {
        let states = states.cast::<F::State<C::V>>();
        let base = columns.src.cast::<L::Raw>();
        let (mut pivots, mut sums) = ([0.0; STRIP], [0.0; STRIP]);
        let (mut firsts, mut gathered) = ([0.0; STRIP], [0.0; STRIP]);
        let mut first = 0;
        while first < columns.columns {
            let width = STRIP.min(columns.columns - first);
            // SAFETY: the contract of `Columns` lets us read these elements of each row.
            let row = |row: usize| unsafe {
                let start = base.offset(row.cast_signed() * columns.stride).add(first);
                std::slice::from_raw_parts(start, width)
            };
            let (pivots, sums) = (&mut pivots[..width], &mut sums[..width]);
            let (firsts, gathered) = (&mut firsts[..width], &mut gathered[..width]);
            for (first, &raw) in firsts.iter_mut().zip(row(0)) {
                *first = double::<L, C>(raw);
            }
            gathered.fill(F::START);
            sums.fill(0.0);
            for number in 0..columns.rows {
                let src = row(number);
                for j in 0..width {
                    gathered[j] = F::gather(gathered[j], double::<L, C>(src[j]), firsts[j]);
                }
            }
            for j in 0..width {
                pivots[j] = F::pivot(gathered[j], firsts[j], columns.rows);
            }
            for number in 0..columns.rows {
                let src = row(number);
                for j in 0..width {
                    sums[j] += F::term(double::<L, C>(src[j]), pivots[j]);
                }
            }
            for j in 0..width {
                let state = F::state(Passes {
                    first: firsts[j],
                    gathered: gathered[j],
                    pivot: pivots[j],
                    sum: sums[j],
                    count: columns.rows,
                });
                // SAFETY: there is room for one state for each column.
                unsafe { states.add(first + j).write(state) };
            }
            first += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_to_the_last_bits() {
        for i in 0..100_000 {
            let x = -f64::from(i) * 0.0081;
            let (got, want) = (exp_of_negative(x), x.exp());
            assert!((got - want).abs() <= want * 4.5e-16 || want < 1e-307, "{x}: {got} {want}");
        }
        assert_eq!(exp_of_negative(0.0), 1.0);
        assert_eq!(exp_of_negative(f64::NEG_INFINITY), 0.0);
    }
}
