//! Kernels made from nothing but the definition of a fold: right for every row and dtype.
//!
//! Elements are folded one by one in blocks, and blocks are merged in pairs, so that rounding
//! errors grow with the logarithm of the count. May assume the contracts of [`Rows`] and
//! [`Columns`]. Named by `table.rs`; the functions on states serve the faster kernels too.

use tilework_ops::{Element, Fold, Gives, Value};

use super::pairwise::Pairwise;
use super::table::{Columns, Inner, Kernels, Outer, Rows};

/// Elements that are folded one after another.
const BLOCK: usize = 32;

/// The kernels of this file.
pub(super) struct Define;

impl<F: Fold, L: Element, C: Element> Kernels<F, L, C> for Define {
    const INNER: [Inner; 3] = [inner::<F, L, C>; 3];
    const OUTER: [Outer; 3] = [outer::<F, L, C>; 3];
}

/// A loaded element as the value that is folded.
#[inline(always)]
pub(super) fn value<L: Element, C: Element>(raw: L::Raw) -> C::V {
    L::from_raw(raw).widen().cast::<C>().widen()
}

/// Folds rows.
///
/// # Safety
/// As [`Inner`] says.
pub(super) unsafe fn inner<F: Fold, L: Element, C: Element>(rows: &Rows, states: *mut u8) {
    let states = states.cast::<F::State<C::V>>();
    let base = rows.src.cast::<L::Raw>();
    for row in 0..rows.rows {
        // SAFETY: the row is one of those that the contract of `Rows` lets us read.
        let src = unsafe {
            let start = base.offset(row.cast_signed() * rows.stride);
            std::slice::from_raw_parts(start, rows.len)
        };
        let mut blocks = Pairwise::<F::State<C::V>, 12>::new();
        let mut state = F::init::<C::V>();
        for (i, &raw) in src.iter().enumerate() {
            if i % BLOCK == 0 && i > 0 {
                blocks.push(state, F::merge::<C::V>);
                state = F::init::<C::V>();
            }
            state = F::step(state, value::<L, C>(raw), rows.index + i as i64);
        }
        let state = blocks.finish_with(state, F::merge::<C::V>);
        // SAFETY: there is room for one state for each row.
        unsafe { states.add(row).write(state) };
    }
}

/// Folds columns.
///
/// # Safety
/// As [`Outer`] says.
pub(super) unsafe fn outer<F: Fold, L: Element, C: Element>(columns: &Columns, states: *mut u8) {
    let states = states.cast::<F::State<C::V>>();
    // SAFETY: there is room for one state for each column, all of them written here first.
    let states = unsafe {
        for column in 0..columns.columns {
            states.add(column).write(F::init::<C::V>());
        }
        std::slice::from_raw_parts_mut(states, columns.columns)
    };
    let base = columns.src.cast::<L::Raw>();
    for row in 0..columns.rows {
        // SAFETY: the contract of `Columns` lets us read this row.
        let src = unsafe {
            let start = base.offset(row.cast_signed() * columns.stride);
            std::slice::from_raw_parts(start, columns.columns)
        };
        let index = columns.index + row as i64;
        for (state, &raw) in states.iter_mut().zip(src) {
            *state = F::step(*state, value::<L, C>(raw), index);
        }
    }
}

/// `n` states of no elements.
///
/// # Safety
/// There is room for `n` states.
pub(super) unsafe fn init<F: Fold, A: Element>(n: usize, states: *mut u8) {
    let states = states.cast::<F::State<A::V>>();
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { states.add(i).write(F::init::<A::V>()) };
    }
}

/// Each of `n` states of `into` followed by each of `from`.
///
/// # Safety
/// Both hold `n` states and do not overlap.
pub(super) unsafe fn merge<F: Fold, A: Element>(n: usize, into: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise.
    let (into, from) = unsafe {
        let into = std::slice::from_raw_parts_mut(into.cast::<F::State<A::V>>(), n);
        (into, std::slice::from_raw_parts(from.cast::<F::State<A::V>>(), n))
    };
    for (a, &b) in into.iter_mut().zip(from) {
        *a = F::merge(*a, b);
    }
}

/// The results of `n` states of `count` elements each.
///
/// # Safety
/// There are `n` states, and room for `n` elements of what the fold gives.
pub(super) unsafe fn finish<F: Fold, A: Element>(
    n: usize,
    states: *const u8,
    count: usize,
    correction: f64,
    results: *mut u8,
) {
    type Result<F, A> = <<F as Fold>::Gives as Gives>::In<A>;
    let states = states.cast::<F::State<A::V>>();
    let results = results.cast::<<Result<F, A> as Element>::Raw>();
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe {
            let result = F::finish(*states.add(i), count, correction);
            results.add(i).write(Result::<F, A>::narrow(result).to_raw());
        }
    }
}
