//! Loops over lanes, compiled for every instruction set and left to the compiler to vectorise.
//!
//! What the kernels of the map table cannot do: one operand a number for each row (a value of j)
//! while the other is a row of lanes (values of i), inner products, and folds of rows. Called by
//! `tile` and `fold`.

use tilework_backend::Accumulator;
use tilework_ops::Id;

use crate::isa::{Isa, Work, with_isa};

/// An operand seen from a tile: where its first component begins, elements from row to row, bytes
/// from component to component, and whether a row is lanes or one number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) base: *const u8,
    pub(super) row: usize,
    pub(super) component: usize,
    pub(super) lanes: bool,
}

impl Rows {
    /// The numbers of a component from a row and lane on.
    ///
    /// # Safety
    /// The element lies inside the operand.
    #[inline(always)]
    unsafe fn at<T>(&self, component: usize, row: usize, lane: usize) -> *const T {
        let lane = if self.lanes { lane } else { 0 };
        // SAFETY: the caller's promise.
        unsafe { self.base.add(component * self.component).cast::<T>().add(row * self.row + lane) }
    }
}

/// `out = a (id) b` for one component of a tile.
///
/// # Safety
/// `out` has room for `rows` times `lanes` numbers, the operands have theirs, and none overlaps it.
pub(super) unsafe fn arithmetic<T: Accumulator>(
    isa: Isa,
    id: Id,
    (rows, lanes): (usize, usize),
    out: *mut u8,
    a: Rows,
    b: Rows,
) {
    struct Each<T, F> {
        rows: usize,
        lanes: usize,
        out: *mut T,
        a: Rows,
        b: Rows,
        f: F,
    }
    impl<T: Accumulator, F: Fn(T, T) -> T> Work for Each<T, F> {
        #[inline(always)]
        fn run(self) {
            for row in 0..self.rows {
                // SAFETY: the promise of `arithmetic`.
                unsafe {
                    let out = self.out.add(row * self.lanes);
                    let (a, b) = (self.a.at::<T>(0, row, 0), self.b.at::<T>(0, row, 0));
                    match (self.a.lanes, self.b.lanes) {
                        (true, true) => (0..self.lanes)
                            .for_each(|l| *out.add(l) = (self.f)(*a.add(l), *b.add(l))),
                        (true, false) => {
                            let b = *b;
                            (0..self.lanes).for_each(|l| *out.add(l) = (self.f)(*a.add(l), b))
                        }
                        (false, true) => {
                            let a = *a;
                            (0..self.lanes).for_each(|l| *out.add(l) = (self.f)(a, *b.add(l)))
                        }
                        (false, false) => {
                            let value = (self.f)(*a, *b);
                            (0..self.lanes).for_each(|l| *out.add(l) = value)
                        }
                    }
                }
            }
        }
    }
    let out = out.cast::<T>();
    macro_rules! each {
        ($f:expr) => {
            with_isa(isa, Each { rows, lanes, out, a, b, f: $f })
        };
    }
    match id {
        Id::Add => each!(|a, b| a + b),
        Id::Subtract => each!(|a, b| a - b),
        Id::Multiply => each!(|a, b| a * b),
        _ => each!(|a, b| a / b),
    }
}

/// Whether [`arithmetic`] knows the operation.
pub(super) fn is_arithmetic(id: Id) -> bool {
    matches!(id, Id::Add | Id::Subtract | Id::Multiply | Id::Divide)
}

/// Terms of an inner product that all rows take before the next ones: of 64 lanes, a sixth of the
/// first-level cache even where columns are a power of two apart.
const STRIP: usize = 32;

/// An inner product: for every pair, the sum over terms of a product of a component of `a` and one
/// of `b`, in the order of the terms, each product after the first fused; or of their squared
/// difference; or all fused, onto what `out` holds.
pub(super) struct Dot<'a, T> {
    pub(super) rows: usize,
    pub(super) lanes: usize,
    pub(super) out: *mut T,
    pub(super) a: Rows,
    pub(super) b: Rows,
    /// Components of `a` and `b`, term by term.
    pub(super) terms: &'a [(u32, u32)],
    pub(super) of: Terms,
}

/// What an inner product is the sum of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Terms {
    Products,
    Squares,
    Onto,
}

impl<T: Accumulator> Work for Dot<'_, T> {
    #[inline(always)]
    fn run(self) {
        match (self.of == Terms::Squares, self.a.lanes, self.b.lanes) {
            (true, true, true) => self.over::<true, true, true>(),
            (true, true, false) => self.over::<true, true, false>(),
            (true, false, true) => self.over::<true, false, true>(),
            (true, false, false) => self.over::<true, false, false>(),
            (false, true, true) => self.over::<false, true, true>(),
            (false, true, false) => self.over::<false, true, false>(),
            (false, false, true) => self.over::<false, false, true>(),
            (false, false, false) => self.over::<false, false, false>(),
        }
    }
}

impl<T: Accumulator> Dot<'_, T> {
    #[inline(always)]
    fn over<const D: bool, const A: bool, const B: bool>(&self) {
        let mut lane = 0;
        // As many sums as hide the latency of a fused product: 256 bytes.
        if size_of::<T>() == 4 {
            while lane + 64 <= self.lanes {
                self.column::<D, A, B, 64>(lane);
                lane += 64;
            }
        }
        while lane + 32 <= self.lanes {
            self.column::<D, A, B, 32>(lane);
            lane += 32;
        }
        while lane + 8 <= self.lanes {
            self.column::<D, A, B, 8>(lane);
            lane += 8;
        }
        while lane < self.lanes {
            self.column::<D, A, B, 1>(lane);
            lane += 1;
        }
    }

    /// All rows of some lanes: what a strip of terms reads stays in the first-level cache for all of
    /// them, and sums wait in memory, which changes none of their bits.
    #[inline(always)]
    fn column<const D: bool, const A: bool, const B: bool, const N: usize>(&self, lane: usize) {
        let (mut terms, mut onto) = (self.terms, self.of == Terms::Onto);
        loop {
            let (strip, rest) = terms.split_at(terms.len().min(STRIP));
            for row in 0..self.rows {
                self.chunk::<D, A, B, N>(row, lane, strip, onto);
            }
            if rest.is_empty() {
                return;
            }
            (terms, onto) = (rest, true);
        }
    }

    #[inline(always)]
    fn chunk<const D: bool, const A: bool, const B: bool, const N: usize>(
        &self,
        row: usize,
        lane: usize,
        terms: &[(u32, u32)],
        onto: bool,
    ) {
        // SAFETY: whoever makes a `Dot` promises an output with room for all rows and lanes.
        let out = unsafe { self.out.add(row * self.lanes + lane).cast::<[T; N]>() };
        // SAFETY: as above; sums that go onto something find it there.
        let mut sums = if onto { unsafe { out.read_unaligned() } } else { [T::ZERO; N] };
        for (term, &(a, b)) in terms.iter().enumerate() {
            // SAFETY: and operands with all components of the terms, for all rows and lanes.
            unsafe {
                let a = self.a.at::<T>(a as usize, row, lane);
                let b = self.b.at::<T>(b as usize, row, lane);
                for (l, sum) in sums.iter_mut().enumerate() {
                    let x = if A { *a.add(l) } else { *a };
                    let y = if B { *b.add(l) } else { *b };
                    let (x, y) = if D { (x - y, x - y) } else { (x, y) };
                    *sum = if term == 0 && !onto { x * y } else { x.mul_add(y, *sum) };
                }
            }
        }
        // SAFETY: as above.
        unsafe { out.write_unaligned(sums) };
    }
}

/// Numbers that a formula is computed in, as numbers that are accumulated in.
pub(super) trait Summed<A>: Accumulator {
    /// A place in a range of j, as wide as the number, so that vectors choose both alike.
    type Place: Copy + PartialEq;
    /// Without loss.
    fn to_sum(self) -> A;
    /// A place.
    fn place(index: u32) -> Self::Place;
    /// The index of a place.
    fn index(place: Self::Place) -> u32;
}

macro_rules! summed {
    ($($from:ident $to:ident $place:ident;)*) => {
        $(impl Summed<$to> for $from {
            type Place = $place;
            #[inline(always)]
            fn to_sum(self) -> $to {
                self as $to
            }
            #[inline(always)]
            fn place(index: u32) -> $place {
                index as $place
            }
            #[inline(always)]
            fn index(place: $place) -> u32 {
                place as u32
            }
        })*
    };
}
summed! { f32 f32 u32; f32 f64 u32; f64 f64 u64; }

/// A fold of rows into one row that is there, row after row; with factors, the products are fused.
pub(super) struct InOrder<'a, T, A, P, F> {
    pub(super) from: &'a [T],
    pub(super) factor: Option<&'a [T]>,
    pub(super) into: &'a mut [A],
    pub(super) prepare: P,
    pub(super) join: F,
}

impl<T, A, P, F> Work for InOrder<'_, T, A, P, F>
where
    T: Summed<A>,
    A: Accumulator,
    P: Fn(A) -> A,
    F: Fn(A, A) -> A,
{
    #[inline(always)]
    fn run(self) {
        let InOrder { from, factor, into, prepare, join } = self;
        let lanes = into.len();
        match factor {
            None => {
                for row in from.chunks_exact(lanes) {
                    for (held, value) in into.iter_mut().zip(row) {
                        *held = join(*held, prepare(value.to_sum()));
                    }
                }
            }
            Some(factor) => {
                for (row, factor) in from.chunks_exact(lanes).zip(factor.chunks_exact(lanes)) {
                    for ((held, value), factor) in into.iter_mut().zip(row).zip(factor) {
                        *held = value.to_sum().mul_add(factor.to_sum(), *held);
                    }
                }
            }
        }
    }
}

/// Sums joined to others, number by number.
pub(super) struct Join<'a, A, F> {
    pub(super) into: &'a mut [A],
    pub(super) from: &'a [A],
    pub(super) join: F,
}

impl<A: Accumulator, F: Fn(A, A) -> A> Work for Join<'_, A, F> {
    #[inline(always)]
    fn run(self) {
        for (held, value) in self.into.iter_mut().zip(self.from) {
            *held = (self.join)(*held, *value);
        }
    }
}

/// Keeps the best value of every lane and where it was; `LESS` says which is better.
pub(super) struct Best<'a, T: Summed<A>, A, const LESS: bool> {
    /// The place of the first row.
    pub(super) first: u32,
    pub(super) from: &'a [T],
    pub(super) best: &'a mut [T],
    /// `u32::MAX` where nothing is known yet.
    pub(super) at: &'a mut [T::Place],
}

impl<T: Summed<A>, A: Accumulator, const LESS: bool> Work for Best<'_, T, A, LESS> {
    #[inline(always)]
    fn run(self) {
        let (lanes, nowhere) = (self.best.len(), T::place(u32::MAX));
        for (row, index) in self.from.chunks_exact(lanes).zip(self.first..) {
            let index = T::place(index);
            for ((value, best), at) in row.iter().zip(&mut *self.best).zip(&mut *self.at) {
                let better = if LESS { *value < *best } else { *value > *best };
                // A value as bad as the neutral one still beats nothing at all.
                let wins = better | ((*value == *best) & (*at == nowhere));
                *best = if wins { *value } else { *best };
                *at = if wins { index } else { *at };
            }
        }
    }
}

/// The largest of every lane; NaN is none.
pub(super) struct Largest<'a, T> {
    pub(super) from: &'a [T],
    pub(super) max: &'a mut [T],
}

impl<T: Accumulator> Work for Largest<'_, T> {
    #[inline(always)]
    fn run(self) {
        for row in self.from.chunks_exact(self.max.len()) {
            for (max, value) in self.max.iter_mut().zip(row) {
                *max = if *value > *max { *value } else { *max };
            }
        }
    }
}

/// The argument of the exponential of every value: its difference to the reference of its lane, as it
/// is or scaled to base 2. Equal infinities give 0.
pub(super) struct Shift<'a, T> {
    pub(super) from: &'a [T],
    pub(super) reference: &'a [T],
    pub(super) to: &'a mut [T],
    pub(super) strict: bool,
}

impl<T: Accumulator> Work for Shift<'_, T> {
    #[inline(always)]
    fn run(self) {
        let lanes = self.reference.len();
        let (infinity, scale) = (T::of(f64::INFINITY), T::of(std::f64::consts::LOG2_E));
        for (to, row) in self.to.chunks_exact_mut(lanes).zip(self.from.chunks_exact(lanes)) {
            for ((to, value), reference) in to.iter_mut().zip(row).zip(self.reference) {
                let is_equal = (*value == infinity) & (*reference == infinity);
                // The difference first: large exponents that are near each other keep all bits of it.
                let difference = *value - *reference;
                let argument = if self.strict { difference } else { difference * scale };
                *to = if is_equal { T::ZERO } else { argument };
            }
        }
    }
}
