//! The K best of a list that grows: what is not among them is thrown out when room is short.
//!
//! A list takes whatever is better than its limit. When it is full, the K-th best of it is the next
//! limit and what is worse goes, so that a value costs a few operations, whatever K is. Lists hold
//! no NaN, and stay in the order of their places. Called by `fold` and `candidates`.

use std::cmp::Ordering;

use tilework_backend::Accumulator;

/// Whether a value is better than another: smaller or, if not `LESS`, larger.
#[inline(always)]
pub(super) fn better<T: Accumulator, const LESS: bool>(a: T, b: T) -> bool {
    if LESS { a < b } else { a > b }
}

#[inline(always)]
fn order<T: Accumulator, const LESS: bool>(a: &T, b: &T) -> Ordering {
    match () {
        () if better::<T, LESS>(*a, *b) => Ordering::Less,
        () if better::<T, LESS>(*b, *a) => Ordering::Greater,
        () => Ordering::Equal,
    }
}

/// The K-th best value of a list that has as many; `room` is for all of them.
pub(super) fn kth<T: Accumulator, const LESS: bool>(
    list: &[(T, u32)],
    k: usize,
    room: &mut Vec<T>,
) -> T {
    room.clear();
    room.extend(list.iter().map(|(value, _)| *value));
    *room.select_nth_unstable_by(k - 1, order::<T, LESS>).1
}

/// Throws out what is worse than a limit, and what is as good but for the first `ties` of it; how
/// many are left.
pub(super) fn retain<T: Accumulator, const LESS: bool>(
    list: &mut [(T, u32)],
    limit: T,
    mut ties: usize,
) -> usize {
    let mut count = 0;
    for k in 0..list.len() {
        let (value, place) = list[k];
        let tied = value == limit && ties > 0;
        ties -= usize::from(tied);
        list[count] = (value, place);
        count += usize::from(tied | better::<T, LESS>(value, limit));
    }
    count
}

/// Leaves the K best of a list that has as many, the first ones of what is equal, and gives the last
/// of them.
pub(super) fn shorten<T: Accumulator, const LESS: bool>(
    list: &mut [(T, u32)],
    k: usize,
    room: &mut Vec<T>,
) -> T {
    let limit = kth::<T, LESS>(list, k, room);
    let above = list.iter().filter(|(value, _)| better::<T, LESS>(*value, limit)).count();
    retain::<T, LESS>(list, limit, k - above);
    limit
}

/// Sorts a list, best first, equal ones by their places.
pub(super) fn sort<T: Accumulator, const LESS: bool>(list: &mut [(T, u32)]) {
    list.sort_unstable_by(|a, b| order::<T, LESS>(&a.0, &b.0).then(a.1.cmp(&b.1)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers with many ties, in an order that is none.
    fn list(len: u32, step: u32) -> Vec<(f32, u32)> {
        (0..len).map(|place| ((place * step % 17) as f32 - 3.0, place)).collect()
    }

    fn check<const LESS: bool>(all: &[(f32, u32)], k: usize) {
        let (mut short, mut sorted, mut room) = (all.to_vec(), all.to_vec(), Vec::new());
        sort::<_, LESS>(&mut sorted);
        let before =
            |a: &(f32, u32), b: &(f32, u32)| better::<_, LESS>(a.0, b.0) || a.0 == b.0 && a.1 < b.1;
        assert!(sorted.is_sorted_by(before));
        let limit = shorten::<_, LESS>(&mut short, k, &mut room);
        let what = format!("{k} of {}: up to {limit}", all.len());
        assert_eq!(limit, sorted[k - 1].0, "{what}");
        assert!(short[..k].is_sorted_by_key(|(_, place)| *place), "{what}");
        sort::<_, LESS>(&mut short[..k]);
        assert_eq!(short[..k], sorted[..k], "{what}");
    }

    #[test]
    fn the_first_of_the_best_stay_in_order() {
        for (len, step) in [(1, 5), (2, 5), (40, 5), (41, 11), (300, 7), (300, 17)] {
            let mut infinite = list(len, step);
            infinite[0].0 = f32::INFINITY;
            let mut far = list(len, step);
            far[0].0 = -1e38;
            let spread: Vec<_> = (0..len).map(|k| ((k * 37 % 101) as f32, k)).collect();
            for all in [list(len, step), infinite, far, spread] {
                for k in [1, 2, 39, 40, 200, 300].into_iter().filter(|k| *k <= len as usize) {
                    check::<true>(&all, k);
                    check::<false>(&all, k);
                }
            }
        }
    }
}
