//! The states of a tile of i, component by component, and how tiles of values enter them.
//!
//! Sums (and products, counts, ...) of a tile are folded in pairs, added up over a block of j, and
//! blocks are folded in pairs again as they come, so that errors grow with the logarithm of the
//! count. Exponentials keep one largest exponent for all of these sums and scale them when it
//! grows. Extremes keep the best values sorted, with their places in the range. What each state
//! means is said by the rows of `tilework_ops::pair_fold`. Called by `pairs::piece`.

use tilework_backend::Accumulator;
use tilework_ops::Id;
use tilework_ops::pair_fold::{Monoid, PairShape, PairState};

use super::lanes::{Best, Largest, Shift, Summed, Tree, with_isa};
use crate::isa::Isa;
use crate::map::kernels::kernel;

/// Nothing is known yet.
const NOWHERE: u32 = u32::MAX;

/// Values of a tile: each component row after row of lanes, `stride` numbers apart.
pub(super) struct Values<'a, T> {
    pub(super) rows: usize,
    pub(super) lanes: usize,
    /// Place of the first row in the range of j.
    pub(super) first: usize,
    pub(super) stride: usize,
    pub(super) formula: &'a [T],
    pub(super) weight: &'a [T],
}

impl<T> Values<'_, T> {
    fn of(&self, component: usize) -> &[T] {
        &self.formula[component * self.stride..][..self.rows * self.lanes]
    }
}

/// The states of the i of a tile.
pub(super) struct States<T, A> {
    monoid: Monoid,
    shape: PairShape,
    lanes: usize,
    isa: Isa,
    /// Sums of the blocks so far: sum k, where there is one, is of 2^k blocks.
    levels: Vec<Option<Vec<A>>>,
    /// Sums of this block.
    block: Vec<A>,
    /// Largest exponents, and room for the next.
    max: Vec<T>,
    raised: Vec<T>,
    /// Best values and where they were, rank by rank.
    best: Vec<T>,
    at: Vec<u32>,
    /// Room for a tile of exponentials, and for half a tile of sums.
    terms: Vec<T>,
    exponentials: Vec<T>,
    half: Vec<A>,
}

impl<T: Summed<A>, A: Accumulator> States<T, A> {
    pub(super) fn new(
        monoid: Monoid,
        shape: PairShape,
        lanes: usize,
        pairs: usize,
        isa: Isa,
    ) -> States<T, A> {
        let extreme = matches!(monoid, Monoid::Smallest | Monoid::Largest);
        let shifted = monoid == Monoid::Shifted;
        let kept = if extreme { shape.k * shape.dim * lanes } else { 0 };
        let sums = sums(monoid, shape) * lanes;
        let neutral = monoid.neutral(1);
        States {
            monoid,
            shape,
            lanes,
            isa,
            levels: Vec::new(),
            block: vec![neutral; sums],
            max: vec![monoid.neutral(0); if shifted { lanes } else { 0 }],
            raised: Vec::new(),
            best: vec![monoid.neutral(0); kept],
            at: vec![NOWHERE; kept],
            terms: vec![T::ZERO; if shifted { pairs } else { 0 }],
            exponentials: vec![T::ZERO; if shifted { pairs } else { 0 }],
            half: vec![A::ZERO; if extreme { 0 } else { pairs.div_ceil(2) + lanes }],
        }
    }

    /// A tile of pairs more.
    pub(super) fn step(&mut self, values: &Values<'_, T>) {
        match self.monoid {
            Monoid::Add => self.fold_all(values, |x| x, |a, b| a + b),
            Monoid::Multiply => self.fold_all(values, |x| x, |a, b| a * b),
            Monoid::Count => self.fold_all(values, truth, |a, b| a + b),
            Monoid::Any => self.fold_all(values, truth, |a, b| if a > b { a } else { b }),
            Monoid::All => self.fold_all(values, truth, |a, b| if a < b { a } else { b }),
            Monoid::Smallest => self.extreme::<true>(values),
            Monoid::Largest => self.extreme::<false>(values),
            Monoid::Shifted => self.shifted(values),
        }
    }

    fn fold_all(
        &mut self,
        values: &Values<'_, T>,
        prepare: impl Fn(A) -> A + Copy,
        join: impl Fn(A, A) -> A + Copy,
    ) {
        for c in 0..self.shape.dim {
            let into = &mut self.block[c * self.lanes..][..self.lanes];
            let from = values.of(c);
            fold_rows((self.isa, values.rows), from, &mut self.half, into, prepare, join);
        }
    }

    fn extreme<const LESS: bool>(&mut self, values: &Values<'_, T>) {
        let PairShape { dim, k, .. } = self.shape;
        let (lanes, first) = (self.lanes, values.first as u32);
        let rows = first..first + values.rows as u32;
        for c in 0..dim {
            let from = values.of(c);
            if k > 1 {
                for (row, index) in from.chunks_exact(lanes).zip(rows.clone()) {
                    self.insert_row::<LESS>(c, row, index);
                }
                continue;
            }
            let (best, at) =
                (&mut self.best[c * lanes..][..lanes], &mut self.at[c * lanes..][..lanes]);
            if let ([best], [at]) = (&*best, &*at)
                && *at != NOWHERE
                && !better_than::<T, LESS>(from, *best)
            {
                // One lane is not worth vectors; a look at all values at once is.
                continue;
            }
            with_isa(self.isa, Best::<T, LESS> { rows: rows.clone(), from, best, at });
        }
    }

    /// Puts the values of a row into the sorted columns of their lanes, where they are better.
    fn insert_row<const LESS: bool>(&mut self, c: usize, row: &[T], index: u32) {
        let PairShape { dim, k, .. } = self.shape;
        let lanes = self.lanes;
        let place = |rank: usize, lane: usize| (rank * dim + c) * lanes + lane;
        let worst = place(k - 1, 0);
        for (chunk, values) in row.chunks(16).enumerate() {
            let lane = chunk * 16;
            let held = &self.best[worst + lane..][..values.len()];
            let places = &self.at[worst + lane..][..values.len()];
            let mut any = false;
            for ((value, held), at) in values.iter().zip(held).zip(places) {
                let better = if LESS { value < held } else { value > held };
                any |= better | ((value == held) & (*at == NOWHERE));
            }
            if !any {
                continue;
            }
            for (l, value) in values.iter().enumerate() {
                let lane = lane + l;
                // Rows come in order, so whoever is equal was before.
                let before = |held: T, at: u32| {
                    at != NOWHERE
                        && (if LESS { held < *value } else { held > *value } || held == *value)
                };
                let mut rank = k;
                while rank > 0
                    && !before(self.best[place(rank - 1, lane)], self.at[place(rank - 1, lane)])
                {
                    rank -= 1;
                }
                if rank == k || value.is_nan() {
                    continue;
                }
                for r in (rank + 1..k).rev() {
                    self.best[place(r, lane)] = self.best[place(r - 1, lane)];
                    self.at[place(r, lane)] = self.at[place(r - 1, lane)];
                }
                self.best[place(rank, lane)] = *value;
                self.at[place(rank, lane)] = index;
            }
        }
    }

    fn shifted(&mut self, values: &Values<'_, T>) {
        let (rows, lanes, n) = (values.rows, self.lanes, values.rows * self.lanes);
        let from = values.of(0);
        let mut max = std::mem::take(&mut self.raised);
        max.clone_from(&self.max);
        with_isa(self.isa, Largest { from, max: &mut max });
        self.raise(&max);
        with_isa(self.isa, Shift { from, shift: &max, to: &mut self.terms[..n] });
        self.raised = max;
        if let Some(exp) = kernel(Id::Exp, T::DTYPE) {
            let (to, from) = (self.exponentials.as_mut_ptr(), self.terms.as_ptr());
            // SAFETY: both have room for a tile of pairs, of the kernel's dtype, and are two.
            unsafe { exp(n, to.cast(), from.cast(), from.cast(), from.cast()) };
        }
        for sum in 0..=self.shape.weights {
            let into = &mut self.block[sum * lanes..][..lanes];
            let terms = match sum.checked_sub(1) {
                None => &self.exponentials[..n],
                Some(w) => {
                    let weight = &values.weight[w * values.stride..][..n];
                    let products = self.terms.iter_mut().zip(&self.exponentials).zip(weight);
                    products.for_each(|((term, e), weight)| *term = *e * *weight);
                    &self.terms[..n]
                }
            };
            fold_rows((self.isa, rows), terms, &mut self.half, into, |x| x, |a, b| a + b);
        }
    }

    /// Makes these the largest exponents, and scales all sums by what that changes.
    fn raise(&mut self, max: &[T]) {
        for (lane, (held, new)) in self.max.iter_mut().zip(max).enumerate() {
            if *held == *new {
                continue;
            }
            let factor = (*held - *new).to_sum().by(f64::exp);
            let sums = self.levels.iter_mut().flatten().chain([&mut self.block]);
            for sums in sums {
                for sum in sums[lane..].iter_mut().step_by(self.lanes) {
                    *sum = *sum * factor;
                }
            }
            *held = *new;
        }
    }

    /// The block ends: its sums join those of the blocks before.
    pub(super) fn end_block(&mut self) {
        if self.block.is_empty() {
            return;
        }
        let fresh = vec![self.monoid.neutral(1); self.block.len()];
        let mut carry = std::mem::replace(&mut self.block, fresh);
        for level in &mut self.levels {
            match level.take() {
                Some(mut sums) => {
                    join(self.monoid, &mut sums, &carry);
                    carry = sums;
                }
                None => {
                    *level = Some(carry);
                    return;
                }
            }
        }
        self.levels.push(Some(carry));
    }

    /// The states of all lanes over `count` pairs each; `start` is the index of the first j.
    pub(super) fn finish(mut self, count: u64, start: i64) -> Vec<PairState<A>> {
        let mut total: Option<Vec<A>> = None;
        for sums in self.levels.drain(..).rev().flatten() {
            match &mut total {
                Some(total) => join(self.monoid, total, &sums),
                None => total = Some(sums),
            }
        }
        let total = total.unwrap_or(self.block);
        let lane = |lane: usize| {
            let of = |numbers: &[A]| -> Vec<A> {
                numbers.iter().skip(lane).step_by(self.lanes).copied().collect()
            };
            let best = self.best.iter().skip(lane).step_by(self.lanes);
            let values = match self.monoid {
                Monoid::Shifted => [vec![self.max[lane].to_sum()], of(&total)].concat(),
                Monoid::Smallest | Monoid::Largest => best.map(|value| value.to_sum()).collect(),
                _ => of(&total),
            };
            let places = self.at.iter().skip(lane).step_by(self.lanes);
            let index = |at: &u32| if *at == NOWHERE { -1 } else { start + i64::from(*at) };
            PairState { count, values, indices: places.map(index).collect() }
        };
        (0..self.lanes).map(lane).collect()
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

/// Whether one of the values is better.
fn better_than<T: Accumulator, const LESS: bool>(values: &[T], best: T) -> bool {
    let better = |value: &T| if LESS { *value < best } else { *value > best };
    values.chunks(64).any(|chunk| chunk.iter().fold(false, |any, value| any | better(value)))
}

fn join<A: Accumulator>(monoid: Monoid, into: &mut [A], from: &[A]) {
    let f = |a: A, b: A| match monoid {
        Monoid::Multiply => a * b,
        Monoid::Any => {
            if a > b {
                a
            } else {
                b
            }
        }
        Monoid::All => {
            if a < b {
                a
            } else {
                b
            }
        }
        _ => a + b,
    };
    into.iter_mut().zip(from).for_each(|(a, b)| *a = f(*a, *b));
}

/// The rows of a tile folded into one row that is there.
fn fold_rows<T: Summed<A>, A: Accumulator>(
    (isa, rows): (Isa, usize),
    from: &[T],
    half: &mut [A],
    into: &mut [A],
    prepare: impl Fn(A) -> A,
    join: impl Fn(A, A) -> A + Copy,
) {
    let lanes = into.len();
    with_isa(isa, Tree { rows, lanes, from, to: half, prepare, join });
    into.iter_mut().zip(&*half).for_each(|(held, sum)| *held = join(*held, *sum));
}
