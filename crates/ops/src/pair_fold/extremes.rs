//! States of extremes: for each component a column of K values, best first, and their indices.
//!
//! Ties go to the smaller index, a NaN never enters, and an index of -1 says that there is none yet.

use super::PairShape;
use crate::scalar::Real;

/// One value more for each component.
pub(super) fn step<A: Real>(
    shape: PairShape,
    (held, at): (&mut [A], &mut [i64]),
    (values, index): (&[A], i64),
    better: impl Fn(A, A) -> bool + Copy,
) {
    for (c, value) in values.iter().enumerate() {
        insert(shape, (held, at), c, (*value, index), better);
    }
}

/// Takes the best of two states, whose columns are sorted, into the first.
pub(super) fn zip<A: Real>(
    shape: PairShape,
    (held, at): (&mut [A], &mut [i64]),
    (values, indices): (&[A], &[i64]),
    better: impl Fn(A, A) -> bool,
) {
    for c in 0..shape.dim {
        let place = |k: usize| k * shape.dim + c;
        let before = |(a, i): (A, i64), (b, j): (A, i64)| better(a, b) || (a == b && i < j);
        // How many of each are among the best of both.
        let (mut own, mut other) = (0, 0);
        while own + other < shape.k {
            let mine = (held[place(own)], at[place(own)]);
            let theirs = (values[place(other)], indices[place(other)]);
            let is_there = theirs.1 >= 0 && !theirs.0.is_nan();
            match (mine.1 >= 0, is_there) {
                (false, false) => break,
                (true, true) if before(mine, theirs) => own += 1,
                (true, false) => own += 1,
                _ => other += 1,
            }
        }
        // From the last on, so that none is overwritten before it has moved.
        while other > 0 {
            let to = place(own + other - 1);
            let theirs = (values[place(other - 1)], indices[place(other - 1)]);
            let last = own.checked_sub(1).map(|own| (held[place(own)], at[place(own)]));
            match last {
                Some(mine) if !before(mine, theirs) => {
                    (held[to], at[to]) = mine;
                    own -= 1;
                }
                _ => {
                    (held[to], at[to]) = theirs;
                    other -= 1;
                }
            }
        }
    }
}

/// Puts one value of component `c` into its sorted column, if it is better than one that is there.
fn insert<A: Real>(
    shape: PairShape,
    (held, at): (&mut [A], &mut [i64]),
    c: usize,
    (value, index): (A, i64),
    better: impl Fn(A, A) -> bool,
) {
    if value.is_nan() || index < 0 {
        return;
    }
    let before =
        |held: A, at: i64| at >= 0 && (better(held, value) || (held == value && at < index));
    let place = |k: usize| k * shape.dim + c;
    let mut rank = shape.k;
    while rank > 0 && !before(held[place(rank - 1)], at[place(rank - 1)]) {
        rank -= 1;
    }
    if rank == shape.k {
        return;
    }
    for k in (rank + 1..shape.k).rev() {
        held[place(k)] = held[place(k - 1)];
        at[place(k)] = at[place(k - 1)];
    }
    held[place(rank)] = value;
    at[place(rank)] = index;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A state of two components after some values.
    fn state(shape: PairShape, of: &[(f32, i64)]) -> (Vec<f32>, Vec<i64>) {
        let numbers = shape.k * shape.dim;
        let (mut held, mut at) = (vec![f32::INFINITY; numbers], vec![-1; numbers]);
        for &(value, index) in of {
            let values = [value, -value];
            step(shape, (&mut held, &mut at), (&values[..shape.dim], index), |a, b| a < b);
        }
        (held, at)
    }

    #[test]
    fn two_states_are_that_of_all_values() {
        let value = |k: i64| match k % 11 {
            0 => f32::NAN,
            1 => f32::INFINITY,
            _ => (k * 7 % 5) as f32,
        };
        let all: Vec<(f32, i64)> = (0..40).map(|index| (value(index), index)).collect();
        for k in [1, 2, 5, 39, 40, 41, 90] {
            for cut in [0, 1, 3, 20, 39, 40] {
                for dim in [1, 2] {
                    let shape = PairShape { dim, k, weights: 0 };
                    let [first, second] = [&all[..cut], &all[cut..]].map(|of| state(shape, of));
                    for (mut into, from) in [(first.clone(), second.clone()), (second, first)] {
                        zip(shape, (&mut into.0, &mut into.1), (&from.0, &from.1), |a, b| a < b);
                        assert_eq!(into, state(shape, &all), "{k} of {cut} and the rest");
                    }
                }
            }
        }
    }
}
