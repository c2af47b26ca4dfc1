//! The states of a tile of i, component by component, and how tiles of values enter them.
//!
//! Inside of a block of j every lane takes its values one after the other; blocks are folded in
//! pairs as they come, so that errors grow with the logarithm of the count, or all with
//! compensation. Exponentials are shifted by a reference of their lane that is near the largest
//! exponent; a block in which one exceeds it by [`LIMIT`] is done again with a new reference.
//! Extremes keep the best values sorted, with their places in the range. A tile of one i takes the
//! values of a tile in pairs instead. What each state means is said by the rows of
//! `tilework_ops::pair_fold`; `jit::fold` records the same steps, `finish` writes the states when all
//! blocks are in. Called by `pairs::piece`.

mod finish;

use smallvec::SmallVec;
use tilework_backend::{Accumulator, try_filled};
use tilework_error::Result;
use tilework_ops::Id;
use tilework_ops::pair_fold::{Monoid, PairShape};

use super::jit::Folding;
use super::lanes::{Best, InOrder, Join, Largest, Shift, Summed, Tree};
use crate::isa::{Isa, with_isa};
use crate::map::kernels::kernel;

/// Nothing is known yet.
const NOWHERE: u32 = u32::MAX;

/// Logarithm of e to base 2, by which exponents are scaled.
pub(super) const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// How far exponents may exceed the reference of their lane: sums stay far from overflow, and the
/// exponential of pairs loses few bits.
const LIMIT: f64 = 16.0;

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
    /// Largest exponents, references, and what is added to exponents.
    max: Vec<T>,
    reference: Vec<T>,
    shift: Vec<T>,
    /// Best values and where they were; of several, the worst that is kept, and nothing.
    best: Vec<T>,
    at: Vec<T::Place>,
    /// The several best of each component and lane, ascending, where several are kept.
    kept: Vec<(T, u32)>,
    /// Room for a tile of exponentials or of products, and for half a tile of sums.
    terms: Vec<T>,
    exponentials: Vec<T>,
    half: Vec<A>,
    /// Whether values are folded in pairs.
    across: bool,
}

impl<T: Summed<A>, A: Accumulator> States<T, A> {
    /// The states of `lanes` i, or of one whose tiles of values lie `across`.
    pub(super) fn new(
        operation: &'static str,
        folding: Folding,
        (lanes, across): (usize, bool),
        pairs: usize,
        isa: Isa,
    ) -> Result<States<T, A>> {
        let Folding { monoid, shape, .. } = folding;
        let pitch = lanes.next_multiple_of(64);
        let extreme = matches!(monoid, Monoid::Smallest | Monoid::Largest);
        let shifted = monoid == Monoid::Shifted;
        let (best, kept) = match (extreme, shape.k) {
            (false, _) => (0, 0),
            (true, 1) => (shape.dim * pitch, 0),
            (true, k) => (shape.dim * pitch, shape.dim * lanes * k),
        };
        let sums = sums(monoid, shape) * pitch;
        let of_lanes = if shifted { pitch } else { 0 };
        let half = if across && !extreme { pairs.div_ceil(2) + 1 } else { 0 };
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
            pitch,
            isa,
            levels: Vec::new(),
            spare: Vec::new(),
            block: try_filled(operation, monoid.neutral(1), sums)?,
            lost: totals(if folding.kahan { sums } else { 0 })?,
            max: try_filled(operation, monoid.neutral(0), of_lanes)?,
            reference: numbers(of_lanes)?,
            shift: numbers(of_lanes)?,
            best: worst,
            at: try_filled(operation, T::place(NOWHERE), if kept > 0 { 0 } else { best })?,
            kept: try_filled(operation, (monoid.neutral(0), NOWHERE), kept)?,
            terms: numbers(if shifted || half > 0 { pairs } else { 0 })?,
            exponentials: numbers(if shifted { pairs } else { 0 })?,
            half: totals(half)?,
            across,
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
        rows.extend(each(&mut self.shift, pitch));
        rows
    }

    /// A tile of pairs more: `rows` j from place `first` on, whose components and weights are
    /// asked for one by one.
    pub(super) fn step<'v>(
        &mut self,
        rows: usize,
        first: usize,
        component: impl Fn(usize) -> Component<'v, T>,
        weight: impl Fn(usize) -> &'v [T],
    ) where
        T: 'v,
    {
        match self.folding.monoid {
            Monoid::Smallest => self.extreme::<true>(rows, first, component),
            Monoid::Largest => self.extreme::<false>(rows, first, component),
            Monoid::Shifted => self.shifted(rows, component(0).values, weight),
            monoid => {
                for c in 0..self.folding.shape.dim {
                    let of = component(c);
                    match monoid {
                        Monoid::Add => self.fold(rows, c, of, |x| x, |a, b| a + b),
                        Monoid::Multiply => self.fold(rows, c, of, |x| x, |a, b| a * b),
                        Monoid::Count => self.fold(rows, c, of, truth, |a, b| a + b),
                        Monoid::Any => self.fold(rows, c, of, truth, larger),
                        _ => self.fold(rows, c, of, truth, smaller),
                    }
                }
            }
        }
    }

    /// Folds rows into the sums number `sum` of the block.
    fn fold(
        &mut self,
        rows: usize,
        sum: usize,
        of: Component<'_, T>,
        prepare: impl Fn(A) -> A + Copy,
        join: impl Fn(A, A) -> A + Copy,
    ) {
        let (isa, lanes) = (self.isa, self.lanes);
        let into = &mut self.block[sum * self.pitch..][..lanes];
        let from = &of.values[..rows * lanes];
        if self.folding.kahan {
            let lost = &mut self.lost[sum * self.pitch..][..lanes];
            for row in from.chunks_exact(lanes) {
                for ((sum, lost), value) in into.iter_mut().zip(&mut *lost).zip(row) {
                    let added = value.to_sum() - *lost;
                    let next = *sum + added;
                    *lost = (next - *sum) - added;
                    *sum = next;
                }
            }
        } else if self.across {
            let half = &mut self.half;
            match of.factor {
                Some(factor) => {
                    let products = &mut self.terms[..from.len()];
                    for (product, (a, b)) in products.iter_mut().zip(from.iter().zip(factor)) {
                        *product = *a * *b;
                    }
                    with_isa(isa, Tree { from: products, to: half, prepare, join });
                }
                None => with_isa(isa, Tree { from, to: half, prepare, join }),
            }
            into[0] = join(into[0], half[0]);
        } else {
            let factor = of.factor.map(|factor| &factor[..rows * lanes]);
            with_isa(isa, InOrder { from, factor, into, prepare, join });
        }
    }

    fn extreme<'v, const LESS: bool>(
        &mut self,
        rows: usize,
        first: usize,
        component: impl Fn(usize) -> Component<'v, T>,
    ) where
        T: 'v,
    {
        let lanes = self.lanes;
        for c in 0..self.folding.shape.dim {
            let from = &component(c).values[..rows * lanes];
            if self.folding.shape.k > 1 {
                for (row, index) in from.chunks_exact(lanes).zip(first as u32..) {
                    self.insert_row::<LESS>(c, row, index);
                }
                continue;
            }
            let best = &mut self.best[c * self.pitch..][..lanes];
            let at = &mut self.at[c * self.pitch..][..lanes];
            if let ([best], [at]) = (&*best, &*at)
                && *at != T::place(NOWHERE)
                && !better_than::<T, LESS>(from, *best)
            {
                // One lane is not worth vectors; a look at all values at once is.
                continue;
            }
            with_isa(self.isa, Best::<T, A, LESS> { first: first as u32, from, best, at });
        }
    }

    /// Puts the values of a row into the sorted columns of their lanes, where they are better.
    fn insert_row<const LESS: bool>(&mut self, c: usize, row: &[T], index: u32) {
        for (chunk, values) in row.chunks(16).enumerate() {
            let held = &self.best[c * self.pitch + chunk * 16..][..values.len()];
            let mut any = false;
            for (value, held) in values.iter().zip(held) {
                any |= if LESS { value <= held } else { value >= held };
            }
            if any {
                for (l, value) in values.iter().enumerate() {
                    self.insert::<LESS>(c, chunk * 16 + l, *value, index);
                }
            }
        }
    }

    /// Puts a value into the sorted column of a lane, if it is better than one that is there.
    /// Places come in order, so whoever is equal was before.
    fn insert<const LESS: bool>(&mut self, c: usize, lane: usize, value: T, index: u32) {
        let k = self.folding.shape.k;
        let column = &mut self.kept[(c * self.lanes + lane) * k..][..k];
        let before = |&(held, at): &(T, u32)| {
            at != NOWHERE && (held == value || if LESS { held < value } else { held > value })
        };
        if value.is_nan() || before(&column[k - 1]) {
            return;
        }
        let mut rank = k - 1;
        while rank > 0 && !before(&column[rank - 1]) {
            column[rank] = column[rank - 1];
            rank -= 1;
        }
        column[rank] = (value, index);
        self.best[c * self.pitch + lane] = column[k - 1].0;
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

    /// Whether some lane knows nothing yet, since all values were as bad as the neutral one.
    pub(super) fn knows_nothing(&self) -> bool {
        let rows = self.at.chunks_exact(self.pitch);
        rows.flat_map(|row| &row[..self.lanes]).any(|at| *at == T::place(NOWHERE))
    }

    fn shifted<'v>(&mut self, rows: usize, values: &[T], weight: impl Fn(usize) -> &'v [T])
    where
        T: 'v,
    {
        let (lanes, n) = (self.lanes, rows * self.lanes);
        let (from, strict) = (&values[..n], self.folding.strict);
        let (max, shift) = (&mut self.max[..lanes], &self.shift[..lanes]);
        with_isa(self.isa, Largest { from, max });
        with_isa(self.isa, Shift { from, shift, to: &mut self.terms[..n], strict });
        if let Some(exp) = kernel(if strict { Id::Exp } else { Id::Exp2Pair }, T::DTYPE) {
            let (to, from) = (self.exponentials.as_mut_ptr(), self.terms.as_ptr());
            // SAFETY: both have room for a tile of pairs, of the kernel's dtype, and are two.
            unsafe { exp(n, to.cast(), from.cast(), from.cast(), from.cast()) };
        }
        let exponentials = std::mem::take(&mut self.exponentials);
        for sum in 0..=self.folding.shape.weights {
            let factor = sum.checked_sub(1).map(&weight);
            let of = Component { values: &exponentials, factor };
            self.fold(rows, sum, of, |x| x, |a, b| a + b);
        }
        self.exponentials = exponentials;
    }

    /// Whether references are needed before the first block, from [`States::refer`].
    pub(super) fn needs_reference(&self) -> bool {
        !self.max.is_empty()
    }

    /// Takes the largest of some values, rows of lanes, as the reference of each lane.
    pub(super) fn refer(&mut self, values: &[T]) {
        for lane in 0..self.lanes {
            let column = values[lane..].iter().step_by(self.lanes);
            let largest =
                column.fold(T::of(f64::NEG_INFINITY), |max, x| if *x > max { *x } else { max });
            self.set_reference(lane, if largest.is_finite() { largest } else { T::ZERO });
        }
    }

    fn set_reference(&mut self, lane: usize, reference: T) {
        self.reference[lane] = reference;
        self.shift[lane] = match self.folding.strict {
            true => reference,
            false => -(reference * T::of(LOG2_E)),
        };
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
            let before = self.shift[lane];
            self.set_reference(lane, max);
            let factor = self.scale(before, self.shift[lane]);
            for sums in self.levels.iter_mut().flatten() {
                sums[lane..].iter_mut().step_by(self.pitch).for_each(|sum| *sum = *sum * factor);
            }
        }
        raised
    }

    /// What sums with one shift are multiplied by to have another one.
    fn scale(&self, from: T, to: T) -> A {
        let (from, to) = (from.to_sum().f64(), to.to_sum().f64());
        A::of(if self.folding.strict { (from - to).exp() } else { (to - from).exp2() })
    }
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

/// Whether one of the values is better.
fn better_than<T: Accumulator, const LESS: bool>(values: &[T], best: T) -> bool {
    let better = |value: &T| if LESS { *value < best } else { *value > best };
    values.chunks(64).any(|chunk| chunk.iter().fold(false, |any, value| any | better(value)))
}

fn join<A: Accumulator>(isa: Isa, monoid: Monoid, into: &mut [A], from: &[A]) {
    match monoid {
        Monoid::Multiply => with_isa(isa, Join { into, from, join: |a: A, b: A| a * b }),
        Monoid::Any => with_isa(isa, Join { into, from, join: larger }),
        Monoid::All => with_isa(isa, Join { into, from, join: smaller }),
        _ => with_isa(isa, Join { into, from, join: |a: A, b: A| a + b }),
    }
}
