//! Where the largest or smallest element is: the first of equals, or the first NaN.
//!
//! *Inner*: the extreme value of each block by vectors, then one search in the block that has it
//! first. *Outer*: a strip of columns keeps values and row numbers in L1.
//!
//! May assume the contracts of [`Rows`] and [`Columns`]. Named by `table.rs`.

use std::marker::PhantomData;

use tilework_ops::fold::{ArgMax, ArgMin, Max, Min};
use tilework_ops::{Element, Fold, Value};

use super::body::{Body, each_isa};
use super::define::{self, value};
use super::lanes::{LaneFold, collapse, spread};
use super::table::{Columns, Inner, Kernels, Outer, Rows};

/// Elements of a block.
const BLOCK: usize = 1024;

/// Lanes that a block is spread over.
const LANES: usize = 32;

/// Columns that are updated together.
const STRIP: usize = 512;

/// An arg-reduction.
pub(super) trait ArgFold<V: Value>: Fold {
    /// What finds its value.
    type Extreme: LaneFold<V, Lane = V>;

    /// Whether `x` is strictly better than `m`; NaN aside.
    fn beats(x: V, m: V) -> bool;

    /// The state after elements of which the best is `x` at `index`.
    fn found(x: V, index: i64) -> Self::State<V>;
}

impl<V: Value> ArgFold<V> for ArgMax {
    type Extreme = Max;
    #[inline(always)]
    fn beats(x: V, m: V) -> bool {
        m.precedes(x)
    }
    #[inline(always)]
    fn found(x: V, index: i64) -> Option<(V, i64)> {
        Some((x, index))
    }
}

impl<V: Value> ArgFold<V> for ArgMin {
    type Extreme = Min;
    #[inline(always)]
    fn beats(x: V, m: V) -> bool {
        x.precedes(m)
    }
    #[inline(always)]
    fn found(x: V, index: i64) -> Option<(V, i64)> {
        Some((x, index))
    }
}

/// The kernels of this file.
pub(super) struct Arg;

impl<F: ArgFold<C::V>, L: Element, C: Element> Kernels<F, L, C> for Arg {
    const INNER: [Inner; 3] = if C::DTYPE.is_complex() {
        [define::inner::<F, L, C>; 3]
    } else {
        each_isa::<Run<F, L, C>, Rows>(L::DTYPE, define::inner::<F, L, C>)
    };
    const OUTER: [Outer; 3] = if C::DTYPE.is_complex() {
        [define::outer::<F, L, C>; 3]
    } else {
        each_isa::<Strip<F, L, C>, Columns>(L::DTYPE, define::outer::<F, L, C>)
    };
}

/// Rows one after another.
struct Run<F, L, C>(PhantomData<(F, L, C)>);

impl<F: ArgFold<C::V>, L: Element, C: Element> Body<Rows> for Run<F, L, C> {
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
            if src.len() < LANES {
                let (best, index) = one_by_one::<F, L, C>(src);
                // SAFETY: there is room for one state for each row.
                unsafe { states.add(row).write(F::found(best, rows.index + index)) };
                continue;
            }
            let (mut best, mut start) = (value::<L, C>(first), 0);
            for (number, block) in src.chunks(BLOCK).enumerate() {
                let here = extreme::<F, L, C>(block);
                if F::beats(here, best) | here.is_nan() {
                    (best, start) = (here, number * BLOCK);
                }
                if best.is_nan() {
                    break;
                }
            }
            let block = &src[start..src.len().min(start + BLOCK)];
            let index = start + find::<L, C>(block, best);
            // SAFETY: there is room for one state for each row.
            unsafe { states.add(row).write(F::found(best, rows.index + index as i64)) };
        }
    }
}

/// Whether `x` takes the place of `best`, which came before it.
#[inline(always)]
fn takes_over<F: ArgFold<V>, V: Value>(x: V, best: V) -> bool {
    F::beats(x, best) | (x.is_nan() & !best.is_nan())
}

/// The best of a few elements, and its place.
#[inline(always)]
fn one_by_one<F: ArgFold<C::V>, L: Element, C: Element>(src: &[L::Raw]) -> (C::V, i64) {
    let (mut best, mut place) = (value::<L, C>(src[0]), 0);
    for (i, &raw) in src.iter().enumerate() {
        let x = value::<L, C>(raw);
        if takes_over::<F, C::V>(x, best) {
            (best, place) = (x, i as i64);
        }
    }
    (best, place)
}

/// The best value of a block; NaN if there is one.
#[inline(always)]
fn extreme<F: ArgFold<C::V>, L: Element, C: Element>(block: &[L::Raw]) -> C::V {
    let start = value::<L, C>(block[0]);
    if block.len() < LANES {
        let best = |m: C::V, &raw: &L::Raw| F::Extreme::take(m, value::<L, C>(raw));
        return block.iter().fold(start, best);
    }
    collapse::<F::Extreme, C::V, LANES>(spread::<F::Extreme, L, C, LANES>(block, start))
}

/// The place of the first element that equals `best`, or is NaN if it is.
#[inline(always)]
fn find<L: Element, C: Element>(block: &[L::Raw], best: C::V) -> usize {
    let nan = best.is_nan();
    let is_it = |raw: L::Raw| {
        let x = value::<L, C>(raw);
        (x == best) | (nan & x.is_nan())
    };
    let (whole, rest) = block.as_chunks::<LANES>();
    let mut skipped = 0;
    for chunk in whole {
        let mut any = false;
        for &raw in chunk {
            any |= is_it(raw);
        }
        if any {
            break;
        }
        skipped += LANES;
    }
    let left = if skipped < whole.len() * LANES { &block[skipped..] } else { rest };
    skipped + left.iter().position(|&raw| is_it(raw)).unwrap_or(0)
}

/// Columns in strips.
struct Strip<F, L, C>(PhantomData<(F, L, C)>);

impl<F: ArgFold<C::V>, L: Element, C: Element> Body<Columns> for Strip<F, L, C> {
    #[inline(always)]
    unsafe fn run(columns: &Columns, states: *mut u8) {
        let states = states.cast::<F::State<C::V>>();
        let base = columns.src.cast::<L::Raw>();
        let (mut values, mut places) = ([C::V::ZERO; STRIP], [0u32; STRIP]);
        let mut first = 0;
        while first < columns.columns {
            let width = STRIP.min(columns.columns - first);
            // SAFETY: the contract of `Columns` lets us read these elements of each row.
            let row = |row: usize| unsafe {
                let start = base.offset(row.cast_signed() * columns.stride).add(first);
                std::slice::from_raw_parts(start, width)
            };
            let (values, places) = (&mut values[..width], &mut places[..width]);
            for (best, &raw) in values.iter_mut().zip(row(0)) {
                *best = value::<L, C>(raw);
            }
            places.fill(0);
            for number in 1..columns.rows {
                let src = row(number);
                for j in 0..width {
                    let (x, best) = (value::<L, C>(src[j]), values[j]);
                    let better = takes_over::<F, C::V>(x, best);
                    values[j] = if better { x } else { best };
                    places[j] = if better { number as u32 } else { places[j] };
                }
            }
            for j in 0..width {
                let index = columns.index + i64::from(places[j]);
                // SAFETY: there is room for one state for each column.
                unsafe { states.add(first + j).write(F::found(values[j], index)) };
            }
            first += width;
        }
    }
}
