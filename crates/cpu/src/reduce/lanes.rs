//! Folds that do not care for order: many accumulators side by side, which the compiler turns into
//! vectors.
//!
//! *Inner*: a run is taken in blocks of a few dozen steps of all lanes, blocks are merged in pairs,
//! lanes at the end. *Outer*: a strip of columns keeps its accumulators in L1 and takes four rows at
//! a time. The number of lanes does not depend on the instruction set, so neither do results.
//!
//! May assume the contracts of [`Rows`] and [`Columns`]. Named by `table.rs`.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use tilework_ops::fold::{All, Any, CountNonzero, Max, Mean, Min, Norm, Prod, Sum};
use tilework_ops::{Class, Element, Fold, Value};

use super::body::{Body, each_isa};
use super::define::{self, value};
use super::pairwise::Pairwise;
use super::table::{Columns, Inner, Kernels, Outer, Rows};

/// Steps of every lane in one block.
pub(super) const STEPS: usize = 32;

/// Columns whose accumulators are updated together.
const STRIP: usize = 1024;

/// Lanes for rows that do not fill the usual ones.
const FEW: usize = 8;

/// A fold as plain accumulators that may be taken in any order.
pub(super) trait LaneFold<V: Value>: Fold {
    /// What one lane knows.
    type Lane: Copy;

    /// How many bytes of lanes run side by side; comparisons need registers besides.
    const WIDTH: usize = 256;

    /// The classes of values that vectors help with, as a mask of [`Class`].
    const CLASSES: u8;

    /// A lane that has seen nothing, or, where it makes no difference, one of the elements.
    fn start(any: V) -> Self::Lane;

    /// A lane that has seen `x`.
    fn lift(x: V) -> Self::Lane;

    /// One element more.
    fn take(lane: Self::Lane, x: V) -> Self::Lane;

    /// Both together.
    fn join(a: Self::Lane, b: Self::Lane) -> Self::Lane;

    /// The state it stands for.
    fn state(lane: Self::Lane) -> Self::State<V>;

    /// Whether [`LaneFold::is_settled`] is worth asking.
    const SETTLES: bool = false;

    /// Whether further elements make no difference.
    fn is_settled(_: Self::Lane) -> bool {
        false
    }
}

const INT: u8 = Class::Int as u8;
const REAL: u8 = Class::Real as u8;
const COMPLEX: u8 = Class::Complex as u8;

macro_rules! by_arithmetic {
    ($($Fold:ident $neutral:ident $method:ident $classes:expr;)*) => {$(
        impl<V: Value> LaneFold<V> for $Fold {
            type Lane = V;
            const CLASSES: u8 = $classes;
            #[inline(always)]
            fn lift(x: V) -> V { x }
            #[inline(always)]
            fn start(_: V) -> V { V::$neutral }
            #[inline(always)]
            fn take(lane: V, x: V) -> V { lane.$method(x) }
            #[inline(always)]
            fn join(a: V, b: V) -> V { a.$method(b) }
            #[inline(always)]
            fn state(lane: V) -> V { lane }
        }
    )*};
}

by_arithmetic! {
    Sum ZERO plus INT | REAL | COMPLEX;
    Prod ONE times REAL;
}

impl<V: Value> LaneFold<V> for Norm {
    type Lane = V;
    const CLASSES: u8 = REAL;
    #[inline(always)]
    fn lift(x: V) -> V {
        x.times(x)
    }
    #[inline(always)]
    fn start(_: V) -> V {
        V::ZERO
    }
    #[inline(always)]
    fn take(lane: V, x: V) -> V {
        lane.plus(x.times(x))
    }
    #[inline(always)]
    fn join(a: V, b: V) -> V {
        a.plus(b)
    }
    #[inline(always)]
    fn state(lane: V) -> V {
        lane
    }
}

/// The larger of two; NaN if one is. Not for complex numbers: those that hold a NaN may precede.
#[inline(always)]
pub(super) fn larger<V: Value>(m: V, x: V) -> V {
    if m.precedes(x) | x.is_nan() { x } else { m }
}

/// The smaller of two; NaN if one is. Not for complex numbers, as above.
#[inline(always)]
pub(super) fn smaller<V: Value>(m: V, x: V) -> V {
    if x.precedes(m) | x.is_nan() { x } else { m }
}

macro_rules! by_choice {
    ($($Fold:ident $function:ident;)*) => {$(
        impl<V: Value> LaneFold<V> for $Fold {
            type Lane = V;
            const WIDTH: usize = 128;
            const CLASSES: u8 = INT | REAL;
            #[inline(always)]
            fn lift(x: V) -> V { x }
            #[inline(always)]
            fn start(any: V) -> V { any }
            #[inline(always)]
            fn take(lane: V, x: V) -> V { $function(lane, x) }
            #[inline(always)]
            fn join(a: V, b: V) -> V { $function(a, b) }
            #[inline(always)]
            fn state(lane: V) -> Option<V> { Some(lane) }
        }
    )*};
}

by_choice! {
    Max larger;
    Min smaller;
}

// Lanes of truth are 32 bits wide: a byte would be enough, but elements of four bytes are the most
// common, and lanes as wide as elements need no shuffling.
impl<V: Value> LaneFold<V> for Any {
    type Lane = u32;
    const CLASSES: u8 = INT | REAL;
    #[inline(always)]
    fn lift(x: V) -> u32 {
        u32::from(x.is_true())
    }
    #[inline(always)]
    fn start(_: V) -> u32 {
        0
    }
    #[inline(always)]
    fn take(lane: u32, x: V) -> u32 {
        lane | u32::from(x.is_true())
    }
    #[inline(always)]
    fn join(a: u32, b: u32) -> u32 {
        a | b
    }
    #[inline(always)]
    fn state(lane: u32) -> bool {
        lane != 0
    }
    const SETTLES: bool = true;
    #[inline(always)]
    fn is_settled(lane: u32) -> bool {
        lane != 0
    }
}

impl<V: Value> LaneFold<V> for All {
    type Lane = u32;
    const CLASSES: u8 = INT | REAL;
    #[inline(always)]
    fn lift(x: V) -> u32 {
        u32::from(x.is_true())
    }
    #[inline(always)]
    fn start(_: V) -> u32 {
        1
    }
    #[inline(always)]
    fn take(lane: u32, x: V) -> u32 {
        lane & u32::from(x.is_true())
    }
    #[inline(always)]
    fn join(a: u32, b: u32) -> u32 {
        a & b
    }
    #[inline(always)]
    fn state(lane: u32) -> bool {
        lane != 0
    }
    const SETTLES: bool = true;
    #[inline(always)]
    fn is_settled(lane: u32) -> bool {
        lane == 0
    }
}

impl<V: Value> LaneFold<V> for CountNonzero {
    // Kernels see fewer than 2^32 elements at a time.
    type Lane = u32;
    const CLASSES: u8 = INT | REAL;
    #[inline(always)]
    fn lift(x: V) -> u32 {
        u32::from(x.is_true())
    }
    #[inline(always)]
    fn start(_: V) -> u32 {
        0
    }
    #[inline(always)]
    fn take(lane: u32, x: V) -> u32 {
        lane + u32::from(x.is_true())
    }
    #[inline(always)]
    fn join(a: u32, b: u32) -> u32 {
        a + b
    }
    #[inline(always)]
    fn state(lane: u32) -> i64 {
        i64::from(lane)
    }
}

/// The kernels of this file.
pub(super) struct Lanes;

impl<F: LaneFold<C::V>, L: Element, C: Element> Kernels<F, L, C> for Lanes {
    const INNER: [Inner; 3] = if F::CLASSES & C::DTYPE.class() as u8 == 0 {
        [define::inner::<F, L, C>; 3]
    } else if size_of::<F::Lane>() * 64 <= F::WIDTH {
        each_isa::<Run<F, L, C, 64>, Rows>(L::DTYPE, define::inner::<F, L, C>)
    } else {
        each_isa::<Run<F, L, C, 32>, Rows>(L::DTYPE, define::inner::<F, L, C>)
    };
    const OUTER: [Outer; 3] = if F::CLASSES & C::DTYPE.class() as u8 == 0 {
        [define::outer::<F, L, C>; 3]
    } else {
        each_isa::<Strip<F, L, C>, Columns>(L::DTYPE, define::outer::<F, L, C>)
    };
}

/// The kernels of sums, for means: until they are finished the two are the same.
pub(super) struct LanesOfSum;

impl<L: Element, C: Element> Kernels<Mean, L, C> for LanesOfSum {
    const INNER: [Inner; 3] = <Lanes as Kernels<Sum, L, C>>::INNER;
    const OUTER: [Outer; 3] = <Lanes as Kernels<Sum, L, C>>::OUTER;
}

/// All of a block, spread over `N` lanes.
#[inline(always)]
pub(super) fn spread<F: LaneFold<C::V>, L: Element, C: Element, const N: usize>(
    block: &[L::Raw],
    start: F::Lane,
) -> [F::Lane; N] {
    let mut lanes = [start; N];
    let (whole, rest) = block.as_chunks::<N>();
    for chunk in whole {
        for j in 0..N {
            lanes[j] = F::take(lanes[j], value::<L, C>(chunk[j]));
        }
    }
    // A copy, so that the lanes of the loop above stay in registers.
    let mut ends = lanes;
    for (lane, &raw) in ends.iter_mut().zip(rest) {
        *lane = F::take(*lane, value::<L, C>(raw));
    }
    ends
}

/// All lanes as one.
#[inline(always)]
pub(super) fn collapse<F: LaneFold<V>, V: Value, const N: usize>(lanes: [F::Lane; N]) -> F::Lane {
    let mut lanes = lanes;
    let mut width = N;
    while width > 1 {
        width /= 2;
        for j in 0..width {
            lanes[j] = F::join(lanes[j], lanes[j + width]);
        }
    }
    lanes[0]
}

/// The lanes of both.
#[inline(always)]
pub(super) fn join_all<F: LaneFold<V>, V: Value, const N: usize>(
    a: [F::Lane; N],
    b: [F::Lane; N],
) -> [F::Lane; N] {
    let mut both = a;
    for j in 0..N {
        both[j] = F::join(a[j], b[j]);
    }
    both
}

/// Rows one after another.
struct Run<F, L, C, const N: usize>(PhantomData<(F, L, C)>);

impl<F: LaneFold<C::V>, L: Element, C: Element, const N: usize> Body<Rows> for Run<F, L, C, N> {
    #[inline(always)]
    unsafe fn run(rows: &Rows, states: *mut u8) {
        let states = states.cast::<F::State<C::V>>();
        let base = rows.src.cast::<L::Raw>();
        for row in 0..rows.rows {
            // SAFETY: the row is one of those that the contract of `Rows` lets us read, and it is
            // not empty.
            let (src, first) = unsafe {
                let first = base.offset(row.cast_signed() * rows.stride);
                (std::slice::from_raw_parts(first, rows.len), *first)
            };
            let start = F::start(value::<L, C>(first));
            let lane = if src.len() < N {
                collapse::<F, C::V, FEW>(spread::<F, L, C, FEW>(src, start))
            } else {
                blocks::<F, L, C, N>(src, start)
            };
            // SAFETY: there is room for one state for each row.
            unsafe { states.add(row).write(F::state(lane)) };
        }
    }
}

#[inline(always)]
fn blocks<F: LaneFold<C::V>, L: Element, C: Element, const N: usize>(
    src: &[L::Raw],
    start: F::Lane,
) -> F::Lane {
    let mut blocks = Pairwise::<[F::Lane; N], 7>::new();
    let mut left = src;
    loop {
        let (block, after) = left.split_at(left.len().min(N * STEPS));
        let lanes = spread::<F, L, C, N>(block, start);
        if F::SETTLES {
            let lane = collapse::<F, C::V, N>(lanes);
            if F::is_settled(lane) | after.is_empty() {
                return lane;
            }
        } else if after.is_empty() {
            let all = blocks.finish_with(lanes, join_all::<F, C::V, N>);
            return collapse::<F, C::V, N>(all);
        } else {
            blocks.push(lanes, join_all::<F, C::V, N>);
        }
        left = after;
    }
}

/// Columns in strips.
struct Strip<F, L, C>(PhantomData<(F, L, C)>);

impl<F: LaneFold<C::V>, L: Element, C: Element> Body<Columns> for Strip<F, L, C> {
    #[inline(always)]
    unsafe fn run(columns: &Columns, states: *mut u8) {
        let states = states.cast::<F::State<C::V>>();
        let base = columns.src.cast::<L::Raw>();
        let mut room = [const { MaybeUninit::<F::Lane>::uninit() }; STRIP];
        let mut first = 0;
        while first < columns.columns {
            let width = STRIP.min(columns.columns - first);
            // SAFETY: the contract of `Columns` lets us read these elements of each row.
            let row = |row: usize| unsafe {
                let start = base.offset(row.cast_signed() * columns.stride).add(first);
                std::slice::from_raw_parts(start, width)
            };
            let lanes = &mut room[..width];
            for (lane, &raw) in lanes.iter_mut().zip(row(0)) {
                *lane = MaybeUninit::new(F::lift(value::<L, C>(raw)));
            }
            let mut done = 1;
            // Four rows among themselves first: fewer accesses to lanes, and smaller errors.
            while done + 4 <= columns.rows {
                let [a, b, c, d] = [row(done), row(done + 1), row(done + 2), row(done + 3)];
                for j in 0..width {
                    // SAFETY: the first row has written all lanes.
                    let lane = unsafe { lanes[j].assume_init() };
                    let ab = F::take(F::lift(value::<L, C>(a[j])), value::<L, C>(b[j]));
                    let cd = F::take(F::lift(value::<L, C>(c[j])), value::<L, C>(d[j]));
                    lanes[j] = MaybeUninit::new(F::join(lane, F::join(ab, cd)));
                }
                done += 4;
            }
            while done < columns.rows {
                for (lane, &raw) in lanes.iter_mut().zip(row(done)) {
                    // SAFETY: as above.
                    let before = unsafe { lane.assume_init() };
                    *lane = MaybeUninit::new(F::take(before, value::<L, C>(raw)));
                }
                done += 1;
            }
            for (j, lane) in lanes.iter().enumerate() {
                // SAFETY: as above; there is room for one state for each column.
                unsafe { states.add(first + j).write(F::state(lane.assume_init())) };
            }
            first += width;
        }
    }
}
