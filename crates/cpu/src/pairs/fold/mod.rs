//! The states of a tile of i, component by component, and how tiles of values enter them.
//!
//! Inside of a block of j every lane takes its values one after the other; blocks are folded in
//! pairs as they come, so that errors grow with the logarithm of the count, or all with
//! compensation. Exponentials are shifted by a reference of their lane that is near the largest
//! exponent; a block in which one exceeds it by [`LIMIT`] is done again with a new reference.
//! Extremes keep the best values with their places in the range, several of them in `several`. Where an i has several lanes,
//! each is a state of its own until `finish` merges them; places then count rows of lanes. What each
//! state means is said by the rows of `tilework_ops::pair_fold`; `jit::fold` records the same steps,
//! `finish` writes the states when all blocks are in. Called by `pairs::piece`.

mod finish;
mod several;

use std::ops::Range;

use smallvec::SmallVec;
use tilework_backend::{Accumulator, try_filled};
use tilework_error::Result;
use tilework_ops::Id;
use tilework_ops::pair_fold::{Monoid, PairShape};

use super::jit::Folding;
use super::lanes::{Best, InOrder, Join, Largest, Shift, Summed};
use crate::isa::{Isa, with_isa};
use crate::map::kernels::kernel;
use several::Several;

/// Nothing is known yet.
const NOWHERE: u32 = u32::MAX;

/// Logarithm of e to base 2, by which exponents are scaled.
pub(super) const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// How far exponents may exceed the reference of their lane: sums stay far from overflow, and the
/// exponential of pairs loses few bits.
const LIMIT: f64 = 16.0;

/// Where the values of a tile go: rows of them to some lanes, the first row at a place of the range.
#[derive(Debug, Clone)]
pub(super) struct Onto {
    pub(super) lanes: Range<usize>,
    pub(super) rows: usize,
    pub(super) place: usize,
}

/// One component of a tile: rows of lanes, and what they are multiplied by.
#[derive(Clone, Copy)]
pub(super) struct Component<'a, T> {
    pub(super) values: &'a [T],
    pub(super) factor: Option<&'a [T]>,
}

/// The states of the i of a tile.
pub(super) struct States<T: Summed<A>, A> {
    /// Whose errors there may be.
    operation: &'static str,
    folding: Folding,
    lanes: usize,
    /// Lanes of an i.
    spread: usize,
    /// Numbers from component to component: whole vectors, whatever their length.
    pitch: usize,
    isa: Isa,
    /// Sums of the blocks so far: sum k, where there is one, is of 2^k blocks.
    levels: Vec<Option<Vec<A>>>,
    /// Sums that have gone into others, to be used again.
    spare: Vec<Vec<A>>,
    /// Sums of this block, and what compensated ones have lost.
    block: Vec<A>,
    lost: Vec<A>,
    /// Largest exponents, and references.
    max: Vec<T>,
    reference: Vec<T>,
    /// Best values and where they were; of several, what a value must be better than, and nothing.
    best: Vec<T>,
    at: Vec<T::Place>,
    /// The several best of each component and lane, where several are kept.
    several: Several<T>,
    /// Room for a tile of exponents and one of exponentials.
    terms: Vec<T>,
    exponentials: Vec<T>,
}

impl<T: Summed<A>, A: Accumulator> States<T, A> {
    /// The states of so many i with `spread` lanes each, before `n` j in tiles of so many pairs.
    pub(super) fn new(
        operation: &'static str,
        folding: Folding,
        (i, spread): (usize, usize),
        (n, pairs): (usize, usize),
        isa: Isa,
    ) -> Result<States<T, A>> {
        let Folding { monoid, shape, .. } = folding;
        let lanes = i * spread;
        let pitch = lanes.next_multiple_of(64);
        let extreme = matches!(monoid, Monoid::Smallest | Monoid::Largest);
        let shifted = monoid == Monoid::Shifted;
        let (best, kept) = match (extreme, shape.k) {
            (false, _) => (0, 0),
            (true, 1) => (shape.dim * pitch, 0),
            (true, _) => (shape.dim * pitch, shape.dim * lanes),
        };
        let sums = sums(monoid, shape) * pitch;
        let of_lanes = if shifted { pitch } else { 0 };
        // Lanes that are none never hit.
        let mut worst = try_filled(operation, monoid.neutral(0), best)?;
        if kept > 0 {
            worst.chunks_exact_mut(pitch).for_each(|row| row[lanes..].fill(T::of(f64::NAN)));
        }
        let numbers = |len: usize| try_filled(operation, T::ZERO, len);
        let totals = |len: usize| try_filled(operation, A::ZERO, len);
        Ok(States {
            operation,
            folding,
            lanes,
            spread,
            pitch,
            isa,
            levels: Vec::new(),
            spare: Vec::new(),
            block: try_filled(operation, monoid.neutral(1), sums)?,
            lost: totals(if folding.kahan { sums } else { 0 })?,
            max: try_filled(operation, monoid.neutral(0), of_lanes)?,
            reference: numbers(of_lanes)?,
            best: worst,
            at: try_filled(operation, T::place(NOWHERE), if kept > 0 { 0 } else { best })?,
            // One more than an even share.
            several: Several::new(operation, shape.k, kept, n / spread + 1)?,
            terms: numbers(if shifted { pairs } else { 0 })?,
            exponentials: numbers(if shifted { pairs } else { 0 })?,
        })
    }

    /// The rows that assembled code works on, numbered as `jit::fold` does.
    pub(super) fn rows(&mut self) -> SmallVec<[*mut u8; 8]> {
        fn each<N>(rows: &mut [N], pitch: usize) -> impl Iterator<Item = *mut u8> {
            rows.chunks_exact_mut(pitch).map(|row| row.as_mut_ptr().cast())
        }
        let pitch = self.pitch;
        let mut rows = SmallVec::new();
        rows.extend(each(&mut self.best, pitch));
        rows.extend(each(&mut self.at, pitch));
        rows.extend(each(&mut self.max, pitch));
        rows.extend(each(&mut self.block, pitch));
        rows.extend(each(&mut self.lost, pitch));
        rows.extend(each(&mut self.reference, pitch));
        rows
    }

    /// A tile of pairs more, whose components and weights are asked for one by one.
    pub(super) fn step<'v>(
        &mut self,
        onto: &Onto,
        component: impl Fn(usize) -> Component<'v, T>,
        weight: impl Fn(usize) -> &'v [T],
    ) where
        T: 'v,
    {
        match self.folding.monoid {
            Monoid::Smallest => self.extreme::<true>(onto, component),
            Monoid::Largest => self.extreme::<false>(onto, component),
            Monoid::Shifted => self.shifted(onto, component(0).values, weight),
            monoid => {
                for c in 0..self.folding.shape.dim {
                    let of = component(c);
                    match monoid {
                        Monoid::Add => self.fold(onto, c, of, |x| x, |a, b| a + b),
                        Monoid::Multiply => self.fold(onto, c, of, |x| x, |a, b| a * b),
                        Monoid::Count => self.fold(onto, c, of, truth, |a, b| a + b),
                        Monoid::Any => self.fold(onto, c, of, truth, larger),
                        _ => self.fold(onto, c, of, truth, smaller),
                    }
                }
            }
        }
    }

    /// Folds rows into the sums number `sum` of the block.
    fn fold(
        &mut self,
        onto: &Onto,
        sum: usize,
        of: Component<'_, T>,
        prepare: impl Fn(A) -> A + Copy,
        join: impl Fn(A, A) -> A + Copy,
    ) {
        let (first, lanes) = (sum * self.pitch + onto.lanes.start, onto.lanes.len());
        let into = &mut self.block[first..][..lanes];
        let from = &of.values[..onto.rows * lanes];
        if self.folding.kahan {
            let lost = &mut self.lost[first..][..lanes];
            for (k, row) in from.chunks_exact(lanes).enumerate() {
                let factors = of.factor.map(|factor| &factor[k * lanes..][..lanes]);
                for (lane, (sum, lost)) in into.iter_mut().zip(&mut *lost).enumerate() {
                    let value = factors.map_or(row[lane], |factors| row[lane] * factors[lane]);
                    let added = value.to_sum() - *lost;
                    let next = *sum + added;
                    // An infinity has lost nothing.
                    *lost = if next.is_finite() { (next - *sum) - added } else { A::ZERO };
                    *sum = next;
                }
            }
        } else {
            let factor = of.factor.map(|factor| &factor[..onto.rows * lanes]);
            with_isa(self.isa, InOrder { from, factor, into, prepare, join });
        }
    }

    fn extreme<'v, const LESS: bool>(
        &mut self,
        onto: &Onto,
        component: impl Fn(usize) -> Component<'v, T>,
    ) where
        T: 'v,
    {
        let (lanes, first) = (onto.lanes.len(), onto.place as u32);
        for c in 0..self.folding.shape.dim {
            let from = &component(c).values[..onto.rows * lanes];
            if self.folding.shape.k > 1 {
                for (row, index) in from.chunks_exact(lanes).zip(first..) {
                    self.insert_row::<LESS>(c, onto.lanes.start, row, index);
                }
                continue;
            }
            let column = c * self.pitch + onto.lanes.start;
            let best = &mut self.best[column..][..lanes];
            let at = &mut self.at[column..][..lanes];
            with_isa(self.isa, Best::<T, A, LESS> { first, from, best, at });
        }
    }

    /// Takes the values of a row into the lanes from `first` on, where they are better.
    fn insert_row<const LESS: bool>(&mut self, c: usize, first: usize, row: &[T], index: u32) {
        for (lane, values) in (first..).step_by(16).zip(row.chunks(16)) {
            let held = &self.best[c * self.pitch + lane..][..values.len()];
            let mut any = false;
            for (value, held) in values.iter().zip(held) {
                any |= if LESS { value <= held } else { value >= held };
            }
            if any {
                for (lane, value) in (lane..).zip(values) {
                    self.insert::<LESS>(c, lane, *value, index);
                }
            }
        }
    }

    /// Takes a value into the several best of a lane, if it is one.
    #[inline]
    fn insert<const LESS: bool>(&mut self, c: usize, lane: usize, value: T, index: u32) {
        let limit = &mut self.best[c * self.pitch + lane];
        self.several.take::<LESS>(c * self.lanes + lane, value, index, limit);
    }

    /// A value that assembled code found to be among the best so far.
    pub(super) fn hit(&mut self, c: usize, lane: usize, value: T, index: u32) {
        if lane < self.lanes {
            match self.folding.monoid {
                Monoid::Smallest => self.insert::<true>(c, lane, value, index),
                _ => self.insert::<false>(c, lane, value, index),
            }
        }
    }

    /// The lanes that know nothing yet, since all values were as bad as the neutral one.
    pub(super) fn knowing_nothing(&self) -> impl Iterator<Item = usize> + '_ {
        let rows = self.at.chunks_exact(self.pitch);
        let lanes = if self.at.is_empty() { 0 } else { self.lanes };
        (0..lanes).filter(move |lane| rows.clone().any(|row| row[*lane] == T::place(NOWHERE)))
    }

    fn shifted<'v>(&mut self, onto: &Onto, values: &[T], weight: impl Fn(usize) -> &'v [T])
    where
        T: 'v,
    {
        let n = onto.rows * onto.lanes.len();
        let (from, strict) = (&values[..n], self.folding.strict);
        let reference = &self.reference[onto.lanes.clone()];
        with_isa(self.isa, Largest { from, max: &mut self.max[onto.lanes.clone()] });
        with_isa(self.isa, Shift { from, reference, to: &mut self.terms[..n], strict });
        if let Some(exp) = kernel(if strict { Id::Exp } else { Id::Exp2Pair }, T::DTYPE) {
            let (to, from) = (self.exponentials.as_mut_ptr(), self.terms.as_ptr());
            // SAFETY: both have room for a tile of pairs, of the kernel's dtype, and are two.
            unsafe { exp(n, to.cast(), from.cast(), from.cast(), from.cast()) };
        }
        let exponentials = std::mem::take(&mut self.exponentials);
        for sum in 0..=self.folding.shape.weights {
            let factor = sum.checked_sub(1).map(&weight);
            let of = Component { values: &exponentials, factor };
            self.fold(onto, sum, of, |x| x, |a, b| a + b);
        }
        self.exponentials = exponentials;
    }

    /// Whether references are needed before the first block, from [`States::refer`].
    pub(super) fn needs_reference(&self) -> bool {
        !self.max.is_empty()
    }

    /// Takes the largest of some values, rows of lanes, as the reference of each of these lanes.
    pub(super) fn refer(&mut self, lanes: Range<usize>, values: &[T]) {
        for (k, lane) in lanes.clone().enumerate() {
            let column = values.iter().skip(k).step_by(lanes.len());
            let largest =
                column.fold(T::of(f64::NEG_INFINITY), |max, x| if *x > max { *x } else { max });
            self.reference[lane] = match largest.to_sum().f64() {
                // Below whatever comes after masked rows, so that `raise` finds it.
                f64::NEG_INFINITY => lowest(),
                f64::INFINITY => T::ZERO,
                _ => largest,
            };
        }
    }

    /// Whether assembled code may do the next block: it knows no infinite references.
    pub(super) fn is_plain(&self) -> bool {
        self.reference.iter().all(|reference| reference.is_finite())
    }

    /// The block ends: its sums join those of the blocks before. Or it has to be done again, which
    /// is then true.
    pub(super) fn end_block(&mut self) -> Result<bool> {
        let monoid = self.folding.monoid;
        if self.block.is_empty() || self.folding.kahan {
            return Ok(false);
        }
        if self.raise() {
            self.block.fill(monoid.neutral(1));
            return Ok(true);
        }
        let mut fresh = match self.spare.pop() {
            Some(spare) => spare,
            None => try_filled(self.operation, monoid.neutral(1), self.block.len())?,
        };
        fresh.fill(monoid.neutral(1));
        let mut carry = std::mem::replace(&mut self.block, fresh);
        for level in &mut self.levels {
            match level.take() {
                Some(mut sums) => {
                    join(self.isa, monoid, &mut sums, &carry);
                    self.spare.push(std::mem::replace(&mut carry, sums));
                }
                None => {
                    *level = Some(carry);
                    return Ok(false);
                }
            }
        }
        self.levels.push(Some(carry));
        Ok(false)
    }

    /// Gives new references to lanes whose largest exponent is far above; whether there were any.
    fn raise(&mut self) -> bool {
        let mut raised = false;
        for lane in 0..self.lanes.min(self.max.len()) {
            let (max, reference) = (self.max[lane], self.reference[lane]);
            if max <= reference + T::of(LIMIT) || max.is_nan() {
                continue;
            }
            raised = true;
            self.reference[lane] = max;
            let factor = self.exponential(reference.to_sum().f64() - max.to_sum().f64());
            for sums in self.levels.iter_mut().flatten() {
                sums[lane..].iter_mut().step_by(self.pitch).for_each(|sum| *sum = *sum * factor);
            }
        }
        raised
    }

    /// The exponential of a difference of exponents, by the constant that terms are scaled by.
    fn exponential(&self, difference: f64) -> A {
        let scale = T::of(LOG2_E).to_sum().f64();
        A::of(match self.folding.strict {
            true => difference.exp(),
            false => (difference * scale).exp2(),
        })
    }
}

/// The lowest finite number.
fn lowest<T: Accumulator>() -> T {
    let [double, single] = [f64::MIN, f64::from(f32::MIN)].map(T::of);
    if double.is_finite() { double } else { single }
}

/// How many sums a state has.
fn sums(monoid: Monoid, shape: PairShape) -> usize {
    match monoid {
        Monoid::Smallest | Monoid::Largest => 0,
        Monoid::Shifted => 1 + shape.weights,
        _ => shape.dim,
    }
}

#[inline(always)]
fn truth<A: Accumulator>(x: A) -> A {
    if x == A::ZERO { A::ZERO } else { A::ONE }
}

#[inline(always)]
fn larger<A: Accumulator>(a: A, b: A) -> A {
    if a > b { a } else { b }
}

#[inline(always)]
fn smaller<A: Accumulator>(a: A, b: A) -> A {
    if a < b { a } else { b }
}

fn join<A: Accumulator>(isa: Isa, monoid: Monoid, into: &mut [A], from: &[A]) {
    match monoid {
        Monoid::Multiply => with_isa(isa, Join { into, from, join: |a: A, b: A| a * b }),
        Monoid::Any => with_isa(isa, Join { into, from, join: larger }),
        Monoid::All => with_isa(isa, Join { into, from, join: smaller }),
        _ => with_isa(isa, Join { into, from, join: |a: A, b: A| a + b }),
    }
}
