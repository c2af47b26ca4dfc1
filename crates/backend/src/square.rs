//! When a squared distance may be computed expanded, |x - y|^2 = |x|^2 + |y|^2 - 2 <x, y>: the rule of all devices.
//!
//! The form leaves one operation a component to each pair, or none where matrix products give the rest, but it
//! cancels: its error is one of the norms, however small the distance. So three things are asked. What the formula
//! makes of that error: the square may only be an exponent of terms that are summed ([`slope`]). How large it is for
//! the way in which a device sums: [`in_order`], [`fused`], [`fused_about`] or [`Tiles`], c(D) units of roundoff of
//! the largest squared norm R^2, about a centre where points are moved there. And whether the terms keep what was promised:
//! slope times error is at most [`Accuracy::DECLARED_ERROR`] ([`is_harmless`]; [`largest_norm`] where R^2 is found
//! out later). [`Accuracy::Strict`] forbids the form; whether it pays is for devices to say.

use tilework_ops::DType;
use tilework_ops::pair_fold::Monoid;
use tilework_tape::{Carried, SlotId, Tape};

use crate::Accuracy;

/// How far points are from a centre.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    /// The largest squared norm; NaN if one is.
    pub largest: f64,
    /// The largest sum, over partial sums of an inner product, of the squared norms of the components
    /// in them: what its error is bounded by, with the other side's.
    pub prefixes: f64,
}

/// The largest relative error of a term, for an absolute error of 1 of a slot times a factor; None
/// where the slot is not only an exponent of terms that are summed. `number` is as for [`Tape::carried`].
///
/// ```
/// use std::f64::consts::LN_2;
/// use tilework_backend::square::slope;
/// use tilework_ops::pair_fold::Monoid;
/// use tilework_ops::{DType, Id};
/// use tilework_tape::{Builder, Per, Slot};
/// let mut build = Builder::new();
/// let exponent = build.input(Slot::scalar(DType::Float32), Per::Pair);
/// let k = build.apply(Id::Exp2Pair, &[exponent])?;
/// let tape = build.finish(&[k])?;
/// assert_eq!(slope(&tape, Monoid::Add, exponent, 1.0, |_| None), Some(LN_2));
/// assert_eq!(slope(&tape, Monoid::Smallest, exponent, 1.0, |_| None), None);
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn slope(
    tape: &Tape,
    monoid: Monoid,
    slot: SlotId,
    factor: f64,
    number: impl Fn(SlotId) -> Option<f64>,
) -> Option<f64> {
    let errors = tape.carried(slot, factor.abs(), number);
    let relative = |error: &Carried| match error {
        Carried::Nothing => Some(0.0),
        Carried::Relative(error) => Some(*error),
        _ => None,
    };
    match (monoid, &errors[..]) {
        // Terms, and perhaps what their sum is multiplied by.
        (Monoid::Add, terms) => terms.iter().try_fold(0.0, |sum, term| Some(sum + relative(term)?)),
        (Monoid::Shifted, [Carried::Absolute(error), weights @ ..]) => {
            weights.iter().try_fold(*error, |sum, weight| Some(sum + relative(weight)?))
        }
        (Monoid::Shifted, [Carried::Nothing, weight]) => relative(weight),
        // Extremes are those of the direct form, and products add up the errors of all pairs.
        _ => None,
    }
}

/// The largest squared norm R^2 of both sides; NaN if one is.
pub fn radius([x, y]: [Reach; 2]) -> f64 {
    // `max` drops a NaN.
    let either = x.largest + y.largest;
    if either.is_nan() { either } else { x.largest.max(y.largest) }
}

/// The error of a square in units of roundoff, where products are summed in order, for points of i and of j
/// that reach so far.
///
/// The inner product's error is at most the roundoff of each partial sum; those are at most the products of
/// partial norms. Numbers are rounded once on either side, which gives 4 R S, norms once, R^2 + S^2, and the last
/// sum (R + S)^2. Before that are the sum of norms, R^2 + S^2, or where a product goes `onto` the norm of i, R^2 in
/// each of as many partial sums.
pub fn in_order([x, y]: [Reach; 2], onto: Option<usize>) -> f64 {
    let (norms, both) = (x.largest + y.largest, (x.largest * y.largest).sqrt());
    let before = onto.map_or(norms, |sums| sums as f64 * x.largest);
    let products = 2.0 * (x.prefixes * y.prefixes).sqrt();
    products + 4.0 * both + norms + (norms + 2.0 * both) + before
}

/// The error of a scaled square in units of roundoff of its largest norm, where a thread adds the products of
/// `dim` components to the norm of j: each sum is at most three times the largest part, and rounded. The two
/// norms are rounded once each, and so is twice the scaled point.
pub fn fused(dim: u32) -> f64 {
    3.0 * f64::from(dim) + 4.0
}

/// The same where points are moved to a centre first: either side of a product is rounded once more, and norms are
/// those of the numbers before.
pub fn fused_about(dim: u32) -> f64 {
    fused(dim) + 4.0
}

/// The same for products of tiles on tensor cores, in parts that different numbers of a point are the measure of.
///
/// Points are heads and tails of float16, which leave a rest of at most 2 of each number, and tails by tails, at most 4
/// of an inner product, are left out. A tensor core adds 16 products to a sum by cutting each off two bits below the
/// last of the largest of them, 8 in all, and then what it has, 2: of that, for every 16 components until the sum
/// leaves. The first 16 are added to nothing, so that the largest is one of their products, by which the others are cut
/// off. Then each sum is rounded. Products of heads and tails, two of every 16 components, may stay in the tensor
/// core to the end, and count for 2^-11. All of that counts twice. Norms, heads with tails, and the last sums are 9.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tiles {
    /// Of the squared norm. A rest times a number of the other point is at most half the sum of their squares.
    pub norm: f64,
    /// Of the squares of tails, and of those of rests, over roundoff and its square: at most 4 of the squared norm each.
    pub split: f64,
    /// Of the largest squares of components, one of every 16 that are the first of a sum.
    pub largest: f64,
    /// Of the squares of components, each times the [`Tiles::later_sums`] that it is in: a sum is at most the product of
    /// the norms of what is in it.
    pub later: f64,
    /// Of the squared norm, where points are moved to a centre.
    pub centre: f64,
    leave: usize,
}

impl Tiles {
    /// Components that a tensor core multiplies and adds at once.
    const DEPTH: usize = 16;

    /// Of inner products of `dim` components, which leave the tensor core every `leave` of them.
    pub fn new(dim: u32, leave: usize) -> Tiles {
        let dim = dim as usize;
        let left = dim.div_ceil(leave) as f64;
        let cut = dim.clamp(1, Tiles::DEPTH) - 1;
        let crosswise = 2.0 * 10.0 * dim.div_ceil(Tiles::DEPTH) as f64 / 2048.0;
        let norm = 2.0 * (1.0 + 2.0 + left + crosswise) + 9.0;
        Tiles { norm, split: 2.0, largest: cut as f64, later: 20.0, centre: 8.0, leave }
    }

    /// The same of an inner product by itself, for half its scale: there are no norms, which are 5, and no centre.
    pub fn of_products(dim: u32, leave: usize) -> Tiles {
        let of_squares = Tiles::new(dim, leave);
        Tiles { norm: of_squares.norm - 5.0, centre: 0.0, ..of_squares }
    }

    /// How many sums component `k` is in, of those in the tensor core that others were added to before.
    pub fn later_sums(&self, k: usize) -> usize {
        self.leave / Tiles::DEPTH - (k % self.leave / Tiles::DEPTH).max(1)
    }

    /// The error, where only norms are known, about a centre.
    pub fn most(&self) -> f64 {
        let later = self.later * self.later_sums(0) as f64;
        self.norm + 2.0 * 4.0 * self.split + self.largest + later + self.centre
    }
}

/// The error of an inner product that is summed in order, as [`Tiles::of_products`] has it: a roundoff of all products
/// for each of them.
pub fn product_in_order(dim: u32) -> f64 {
    2.0 * f64::from(dim)
}

/// Whether terms keep what was promised. A NaN does not.
pub fn is_harmless(slope: f64, error: f64) -> bool {
    slope * error <= Accuracy::DECLARED_ERROR
}

/// The largest norm with which they do, for an error relative to it.
pub fn largest_norm(slope: f64, error: f64) -> f64 {
    Accuracy::DECLARED_ERROR / error / slope
}

/// What was promised, [`Accuracy::DECLARED_ERROR`], as a number.
pub fn promised(dtype: DType) -> f64 {
    let epsilon = if dtype == DType::Float64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    Accuracy::DECLARED_ERROR * epsilon / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_ops::random::{block, uniform_f64};

    const ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;

    /// Points of so many components in a cube, as float32.
    fn points(seed: u64, dim: usize, size: f64) -> Vec<Vec<f32>> {
        let number = |k: usize| ((2.0 * uniform_f64(block(seed, k as u64)) - 1.0) * size) as f32;
        (0..40).map(|row| (0..dim).map(|k| number(row * dim + k)).collect()).collect()
    }

    fn norm(point: &[f32]) -> f64 {
        point.iter().map(|x| f64::from(*x).powi(2)).sum()
    }

    fn reach(points: &[Vec<f32>]) -> Reach {
        let most = |of: &dyn Fn(&Vec<f32>) -> f64| points.iter().map(of).fold(0.0, f64::max);
        let prefixes = |point: &Vec<f32>| (1..=point.len()).map(|end| norm(&point[..end])).sum();
        Reach { largest: most(&|point| norm(point)), prefixes: most(&prefixes) }
    }

    #[test]
    fn errors_are_within_their_bounds() {
        let mut closest = [0.0f64; 2];
        for dim in [2, 3, 10, 33, 64, 200] {
            for size in [1e-3, 1.0, 50.0] {
                let (x, y) = (points(1, dim, size), points(2, dim, size));
                let reach = [reach(&x), reach(&y)];
                let bounds = [
                    in_order(reach, Some(dim)) * ROUNDOFF,
                    fused(dim as u32) * radius(reach) * ROUNDOFF,
                ];
                for (x, y) in x.iter().flat_map(|x| y.iter().map(move |y| (x, y))) {
                    let both = x.iter().zip(y);
                    let exact: f64 =
                        both.clone().map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
                    // Onto the norm of i, and onto that of j.
                    for (k, (first, last)) in [(x, y), (y, x)].into_iter().enumerate() {
                        let sum = both
                            .clone()
                            .fold(norm(first) as f32, |sum, (a, b)| (-2.0 * a).mul_add(*b, sum));
                        let error = (f64::from(sum + norm(last) as f32) - exact).abs();
                        assert!(error <= bounds[k], "D = {dim}, {size}: {error} of {bounds:?}");
                        closest[k] = closest[k].max(error / bounds[k]);
                    }
                }
            }
        }
        // And not so wide that anything would be.
        assert!(closest.iter().all(|share| *share > 0.03), "{closest:?}");
    }

    #[test]
    fn errors_about_a_centre_are_within_their_bound() {
        let mut closest = 0.0f64;
        for dim in [2, 3, 10, 33, 64] {
            for (size, offset) in [(1.0, 0.3), (1.0, 1.0), (1e-3, 1e-3), (1.0, 100.0), (50.0, 1e4)]
            {
                // Not the middle, and not exactly subtracted from all.
                let centre = 1.013 * offset as f32;
                let moved = |seed: u64| -> Vec<Vec<f32>> {
                    let by = |x: f32| x + offset as f32;
                    points(seed, dim, size)
                        .iter()
                        .map(|p| p.iter().map(|x| by(*x)).collect())
                        .collect()
                };
                let away = |point: &[f32]| -> f64 {
                    point.iter().map(|x| (f64::from(*x) - f64::from(centre)).powi(2)).sum()
                };
                let (x, y) = (moved(1), moved(2));
                let largest = x.iter().chain(&y).map(|point| away(point)).fold(0.0, f64::max);
                let bound = fused_about(dim as u32) * largest * ROUNDOFF;
                for (x, y) in x.iter().flat_map(|x| y.iter().map(move |y| (x, y))) {
                    let both = x.iter().zip(y);
                    let exact: f64 =
                        both.clone().map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
                    let sum = both.fold(away(y) as f32, |sum, (a, b)| {
                        (-2.0 * (a - centre)).mul_add(b - centre, sum)
                    });
                    // The norm of i is outside.
                    let error = (f64::from(sum) + f64::from(away(x) as f32) - exact).abs();
                    assert!(error <= bound, "D = {dim}, {size}, {offset}: {error} of {bound}");
                    closest = closest.max(error / bound);
                }
            }
        }
        assert!(closest > 0.03, "{closest}");
    }

    /// A number cut off to a multiple of a power of two.
    fn cut(x: f64, quantum: f64) -> f64 {
        (x / quantum).trunc() * quantum
    }

    /// The power of two below a number.
    fn binade(x: f64) -> f64 {
        if x == 0.0 { 0.0 } else { x.abs().log2().floor().exp2() }
    }

    fn to_half(x: f64) -> f64 {
        let quantum = binade(x) / 1024.0;
        if x == 0.0 { 0.0 } else { (x / quantum).round_ties_even() * quantum }
    }

    /// What a tensor core makes of 16 products and a sum.
    fn add_products(sum: f64, products: &[f64]) -> f64 {
        let largest = products.iter().fold(sum.abs(), |most, x| most.max(x.abs()));
        let last = binade(largest) / f64::from(1 << 23);
        let all = products.iter().fold(cut(sum, last / 4.0), |all, x| all + cut(*x, last / 4.0));
        if all == 0.0 { 0.0 } else { cut(all, binade(all) / f64::from(1 << 23)) }
    }

    /// An inner product of points in heads and tails, as `kernels/pairs_wide.cu` of CUDA has it.
    fn by_tiles(x: &[f32], y: &[f32], leave: usize) -> f32 {
        let split = |point: &[f32]| -> Vec<[f64; 2]> {
            let head = |x: &f32| to_half(f64::from(*x));
            let parts = |x: &f32| [head(x), to_half((f64::from(*x) - head(x)) * 2048.0)];
            point.iter().map(parts).collect()
        };
        let (x, y) = (split(x), split(y));
        let (mut sum, mut cross) = (0.0f32, 0.0);
        for (x, y) in x.chunks(leave).zip(y.chunks(leave)) {
            let mut heads = 0.0;
            for (x, y) in x.chunks(Tiles::DEPTH).zip(y.chunks(Tiles::DEPTH)) {
                let products = |a: usize, b: usize| -> Vec<f64> {
                    x.iter().zip(y).map(|(x, y)| x[a] * y[b]).collect()
                };
                heads = add_products(heads, &products(0, 0));
                cross = add_products(add_products(cross, &products(0, 1)), &products(1, 0));
            }
            sum += heads as f32;
        }
        (cross as f32).mul_add(1.0 / 2048.0, sum)
    }

    #[test]
    fn errors_of_tiles_are_within_their_bound() {
        let mut closest = 0.0f64;
        for (dim, leave) in [
            (2, 16),
            (10, 16),
            (24, 16),
            (32, 16),
            (48, 16),
            (33, 32),
            (64, 32),
            (100, 32),
            (784, 32),
        ] {
            // In a cube, all of one sign, which cuts off alike, and ever smaller after the first.
            for kind in 0..3 {
                let shaped = |seed: u64| -> Vec<Vec<f32>> {
                    let shape = |k: usize, x: f32| match kind {
                        0 => x,
                        1 => x.abs(),
                        _ => x.abs() / (1 << k.min(12)) as f32,
                    };
                    let of = |point: &Vec<f32>| {
                        point.iter().enumerate().map(|(k, x)| shape(k, *x)).collect()
                    };
                    points(seed, dim, 1.0).iter().map(of).collect()
                };
                let (x, y) = (shaped(1), shaped(2));
                let error = Tiles::new(dim as u32, leave);
                let of_products = Tiles::of_products(dim as u32, leave);
                let counted = |error: &Tiles, point: &Vec<f32>| {
                    let square = |x: &f32| f64::from(*x).powi(2);
                    let largest = |first: &[f32]| {
                        let first = &first[..first.len().min(Tiles::DEPTH)];
                        first.iter().map(square).fold(0.0, f64::max)
                    };
                    let largest: f64 = point.chunks(leave).map(largest).sum();
                    let squares = point.iter().map(square).enumerate();
                    let later = squares.map(|(k, x)| x * error.later_sums(k) as f64).sum::<f64>();
                    let split: f64 = point
                        .iter()
                        .map(|x| {
                            let tail = f64::from(*x) - to_half(f64::from(*x));
                            let rest = tail - to_half(tail);
                            tail.powi(2) / ROUNDOFF + (rest / ROUNDOFF).powi(2)
                        })
                        .sum();
                    error.norm * norm(point)
                        + error.split * split
                        + error.largest * largest
                        + error.later * later
                };
                let most_of = |error: &Tiles| {
                    x.iter().chain(&y).map(|point| counted(error, point)).fold(0.0, f64::max)
                };
                let [most, most_of_products] = [&error, &of_products].map(most_of);
                let known = x.iter().chain(&y).map(|point| norm(point)).fold(0.0, f64::max);
                assert!(most <= (error.most() - error.centre) * known * (1.0 + 1e-12));
                for (x, y) in x.iter().flat_map(|x| y.iter().map(move |y| (x, y))) {
                    let both = x.iter().zip(y);
                    let exact: f64 =
                        both.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
                    let square = by_tiles(x, y, leave).mul_add(-2.0, norm(y) as f32);
                    let off = (f64::from(square) + f64::from(norm(x) as f32) - exact).abs();
                    assert!(off <= most * ROUNDOFF, "D = {dim}, {leave}, {kind}: {off} of {most}");
                    closest = closest.max(off / (most * ROUNDOFF));
                    let both = x.iter().zip(y);
                    let exact: f64 = both.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    let off = 2.0 * (f64::from(by_tiles(x, y, leave)) - exact).abs();
                    assert!(
                        off <= most_of_products * ROUNDOFF,
                        "D = {dim}, {leave}, {kind}: {off}"
                    );
                }
            }
        }
        assert!(closest > 0.03, "{closest}");
    }

    #[test]
    fn decisions_are_those_of_the_design() {
        // 1e-5 of an exponent of two that threads sum, as norms of the exponent: it was measured to pay from D = 3 on.
        let ln_2 = std::f64::consts::LN_2;
        for (dim, threads, tiles) in [
            (3, 18.533, 3.823102),
            (10, 7.0862, 3.440898),
            (64, 1.2292, 3.085756),
            (784, 0.102264, 1.928103),
        ] {
            let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-4, "D = {dim}: {a}, {b}");
            close(largest_norm(ln_2, fused(dim)), threads);
            close(largest_norm(ln_2, Tiles::new(dim, 32).most()), tiles);
        }
        for dim in [2, 3, 64, 1000] {
            let limit = largest_norm(1.0, fused(dim));
            assert!(is_harmless(1.0, fused(dim) * limit * (1.0 - 1e-15)));
            assert!(!is_harmless(1.0, fused(dim) * limit * (1.0 + 1e-15)));
        }
        assert!(!is_harmless(1.0, f64::NAN) && !is_harmless(f64::NAN, 1.0));
        let (near, nowhere) = (
            Reach { largest: 1.0, prefixes: 1.0 },
            Reach { largest: f64::NAN, prefixes: f64::NAN },
        );
        assert!(radius([near, nowhere]).is_nan() && radius([nowhere, near]).is_nan());
        assert!((promised(DType::Float32) - 1e-5).abs() < 1e-7);
    }
}
