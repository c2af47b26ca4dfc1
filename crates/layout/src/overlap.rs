//! Whether two layouts share elements of one block, and whether one layout reaches an element
//! twice.
//!
//! Assumes the invariants of [`Layout`], and that both layouts count elements of equal size from
//! the start of the same block. Called before every write that has a source in the same block,
//! and before writes through views that may repeat.

use smallvec::SmallVec;

use crate::Layout;

/// How two layouts in one block meet, as far as [`overlap`] can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// No element belongs to both.
    None,
    /// Every index reaches the same element in both: work can run in place.
    Identical,
    /// Some elements may belong to both, under different indices: copy first.
    Possible,
}

/// Steps of the exact search before it gives up; a few microseconds.
const SEARCH_STEPS: u32 = 512;

/// How `a` and `b` meet in a block that they share.
///
/// [`Overlap::None`] and [`Overlap::Identical`] are certain. The test is exact for all but
/// contrived strides, where a bounded search runs out and the answer is [`Overlap::Possible`].
///
/// ```
/// # use tilework_layout::{Layout, Overlap, overlap, s};
/// let a = Layout::contiguous(&[10])?;
/// let (even, odd) = (a.slice(&s![..;2])?, a.slice(&s![1..;2])?);
/// assert_eq!(overlap(&even, &odd), Overlap::None);
/// assert_eq!(overlap(&even, &even), Overlap::Identical);
/// assert_eq!(overlap(&a.slice(&s![1..])?, &a.slice(&s![..-1])?), Overlap::Possible);
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn overlap(a: &Layout, b: &Layout) -> Overlap {
    let (Some((a_low, a_high)), Some((b_low, b_high))) = (a.span(), b.span()) else {
        return Overlap::None;
    };
    if a.offset() == b.offset() && long_axes(a).eq(long_axes(b)) {
        return Overlap::Identical;
    }
    if a_high < b_low || b_high < a_low {
        return Overlap::None;
    }
    // Positions of `a` are a_low + sum of x |stride|, those of `b`, counted downwards, are
    // b_high - sum of y |stride|, each variable from zero to its axis' last index. They meet where
    // both sums together make up b_high - a_low.
    let mut terms: Terms = long_axes(a)
        .chain(long_axes(b))
        .filter(|&(_, stride)| stride != 0)
        .map(|(n, stride)| Term { step: stride.unsigned_abs() as i128, most: n as i128 - 1 })
        .collect();
    // Large steps first: they leave the fewest choices open.
    terms.sort_unstable_by_key(|term| std::cmp::Reverse(term.step));
    terms.dedup_by(|next, kept| {
        let same = next.step == kept.step;
        if same {
            kept.most += next.most;
        }
        same
    });
    let mut rests: Rests = SmallVec::from_elem(Rest { gcd: 0, most: 0 }, terms.len() + 1);
    for (k, term) in terms.iter().enumerate().rev() {
        rests[k] = Rest {
            gcd: gcd(term.step, rests[k + 1].gcd),
            most: term.step * term.most + rests[k + 1].most,
        };
    }
    let target = b_high as i128 - a_low as i128;
    let mut steps = SEARCH_STEPS;
    match makes_up(&terms, &rests, target, &mut steps) {
        Some(false) => Overlap::None,
        Some(true) | None => Overlap::Possible,
    }
}

impl Layout {
    /// Whether two different indices may reach the same element; `false` is certain.
    ///
    /// Exact for views of contiguous layouts made by slicing, permuting, flipping, broadcasting.
    ///
    /// ```
    /// # use tilework_layout::Layout;
    /// let row = Layout::contiguous(&[4])?;
    /// assert!(!row.has_internal_overlap());
    /// assert!(row.broadcast_to(&[2, 4])?.has_internal_overlap());
    /// assert!(row.sliding_windows(&[2], &[0])?.has_internal_overlap());
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn has_internal_overlap(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut axes: SmallVec<[(usize, usize); 6]> =
            long_axes(self).map(|(n, stride)| (stride.unsigned_abs(), n - 1)).collect();
        axes.sort_unstable();
        // If each step is longer than all shorter axes together, positions are numbers with these
        // steps as place values, and no two indices spell the same number.
        let mut reach = 0;
        for (step, last) in axes {
            if step <= reach {
                return true;
            }
            reach += step * last;
        }
        false
    }
}

/// Size and stride of the axes that can be walked.
fn long_axes(layout: &Layout) -> impl Iterator<Item = (usize, isize)> {
    layout.axes().filter(|&(n, _)| n != 1)
}

/// A multiple of `step`, at most `most` times.
struct Term {
    step: i128,
    most: i128,
}

/// All terms from some place on: what divides their sums and what they make up at most.
#[derive(Clone, Copy)]
struct Rest {
    gcd: i128,
    most: i128,
}

type Terms = SmallVec<[Term; 8]>;
type Rests = SmallVec<[Rest; 9]>;

/// Whether multiples of the terms can make up `target`; `None` when `steps` ran out.
///
/// `rests[k]` describes `terms[k..]`. All numbers stay far inside `i128`: spans fit `isize`, so
/// targets and sums stay below 2^65 and products of two residues below 2^126.
fn makes_up(terms: &[Term], rests: &[Rest], target: i128, steps: &mut u32) -> Option<bool> {
    let [term, terms_after @ ..] = terms else {
        return Some(target == 0);
    };
    let (here, after) = (rests[0], rests[1]);
    if target < 0 || target > here.most || target % here.gcd != 0 {
        return Some(false);
    }
    if terms_after.is_empty() {
        return Some(true);
    }
    // What is left for the terms after this one must be a multiple of their gcd, which fixes this
    // term's count modulo `period`, and within their reach.
    let period = after.gcd / here.gcd;
    let residue = target / here.gcd % period * inverse(term.step / here.gcd, period) % period;
    let least = ((target - after.most).max(0) + term.step - 1) / term.step;
    let most = term.most.min(target / term.step);
    let mut count = least + (residue - least).rem_euclid(period);
    while count <= most {
        *steps = steps.checked_sub(1)?;
        if makes_up(terms_after, &rests[1..], target - count * term.step, steps)? {
            return Some(true);
        }
        count += period;
    }
    Some(false)
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The number whose product with `a` is one modulo `m`, where the two have no common divisor.
fn inverse(a: i128, m: i128) -> i128 {
    let (mut r, mut next_r) = (m, a.rem_euclid(m));
    let (mut x, mut next_x) = (0, 1);
    while next_r != 0 {
        let quotient = r / next_r;
        (r, next_r) = (next_r, r - quotient * next_r);
        (x, next_x) = (next_x, x - quotient * next_x);
    }
    x.rem_euclid(m)
}
