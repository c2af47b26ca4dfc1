//! The four parts of the reductions, in float64: states, steps, merges, results.
//!
//! Sums are plain here: how a backend sums (in blocks, in pairs) is its own affair and is judged by
//! tolerance. Everything else is exact or rounds as written. Rows of `reduction.rs` name these.

/// The numbers that states are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Dimension of the formula.
    pub dim: usize,
    /// How many values are kept, 1 where there is no choice.
    pub k: usize,
    /// Dimension of the weight, 0 where there is none.
    pub weights: usize,
}

/// What is known after some pairs: plain arrays.
///
/// Extremes hold `k * dim` values, best first, and their indices, -1 where there is none yet.
/// Exponentials hold the largest exponent m, the sum of exp(F - m), and the same sum for each
/// weight.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// How many pairs.
    pub count: u64,
    /// Values.
    pub values: Vec<f64>,
    /// Indices of values, for extremes.
    pub indices: Vec<i64>,
}

fn filled(len: usize, value: f64, indices: usize) -> State {
    State { count: 0, values: vec![value; len], indices: vec![-1; indices] }
}

pub(crate) fn dim(shape: Shape) -> usize {
    shape.dim
}

pub(crate) fn k_dim(shape: Shape) -> usize {
    shape.k * shape.dim
}

pub(crate) fn weights(shape: Shape) -> usize {
    shape.weights.max(1)
}

pub(crate) fn one_weights(shape: Shape) -> usize {
    1 + weights(shape)
}

pub(crate) fn zeros(shape: Shape) -> State {
    filled(shape.dim, 0.0, 0)
}

pub(crate) fn ones(shape: Shape) -> State {
    filled(shape.dim, 1.0, 0)
}

pub(crate) fn highs(shape: Shape) -> State {
    filled(shape.k * shape.dim, f64::INFINITY, shape.k * shape.dim)
}

pub(crate) fn lows(shape: Shape) -> State {
    filled(shape.k * shape.dim, f64::NEG_INFINITY, shape.k * shape.dim)
}

pub(crate) fn as_is(_: Shape, state: State) -> State {
    state
}

pub(crate) fn over_count(_: Shape, mut state: State) -> State {
    let count = state.count as f64;
    state.values.iter_mut().for_each(|value| *value /= count);
    state
}

fn each(state: &mut State, values: &[f64], f: impl Fn(f64, f64) -> f64) {
    for (held, value) in state.values.iter_mut().zip(values) {
        *held = f(*held, *value);
    }
}

fn truth(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

pub(crate) fn add(_: Shape, state: &mut State, values: &[f64], _: &[f64], _: i64) {
    each(state, values, |a, b| a + b);
}

pub(crate) fn add_states(_: Shape, state: &mut State, other: &State) {
    each(state, &other.values, |a, b| a + b);
}

pub(crate) fn multiply(_: Shape, state: &mut State, values: &[f64], _: &[f64], _: i64) {
    each(state, values, |a, b| a * b);
}

pub(crate) fn multiply_states(_: Shape, state: &mut State, other: &State) {
    each(state, &other.values, |a, b| a * b);
}

pub(crate) fn any(_: Shape, state: &mut State, values: &[f64], _: &[f64], _: i64) {
    each(state, values, |a, b| truth(a != 0.0 || b != 0.0));
}

pub(crate) fn any_states(_: Shape, state: &mut State, other: &State) {
    each(state, &other.values, |a, b| truth(a != 0.0 || b != 0.0));
}

pub(crate) fn all(_: Shape, state: &mut State, values: &[f64], _: &[f64], _: i64) {
    each(state, values, |a, b| truth(a != 0.0 && b != 0.0));
}

pub(crate) fn all_states(_: Shape, state: &mut State, other: &State) {
    each(state, &other.values, |a, b| truth(a != 0.0 && b != 0.0));
}

pub(crate) fn count(_: Shape, state: &mut State, values: &[f64], _: &[f64], _: i64) {
    each(state, values, |a, b| a + truth(b != 0.0));
}

/// Puts one value of component `c` into its sorted column, if it is better than one that is there.
fn insert(
    shape: Shape,
    state: &mut State,
    c: usize,
    value: f64,
    index: i64,
    better: fn(f64, f64) -> bool,
) {
    if value.is_nan() || index < 0 {
        return;
    }
    let before =
        |held: f64, at: i64| at >= 0 && (better(held, value) || (held == value && at < index));
    let place = |k: usize| k * shape.dim + c;
    let mut rank = shape.k;
    while rank > 0 && !before(state.values[place(rank - 1)], state.indices[place(rank - 1)]) {
        rank -= 1;
    }
    if rank == shape.k {
        return;
    }
    for k in (rank + 1..shape.k).rev() {
        state.values[place(k)] = state.values[place(k - 1)];
        state.indices[place(k)] = state.indices[place(k - 1)];
    }
    state.values[place(rank)] = value;
    state.indices[place(rank)] = index;
}

fn extreme(
    shape: Shape,
    state: &mut State,
    values: &[f64],
    indices: impl Fn(usize) -> i64,
    better: fn(f64, f64) -> bool,
) {
    for (k, value) in values.iter().enumerate() {
        insert(shape, state, k % shape.dim, *value, indices(k), better);
    }
}

fn smaller(a: f64, b: f64) -> bool {
    a < b
}

fn larger(a: f64, b: f64) -> bool {
    a > b
}

pub(crate) fn min(shape: Shape, state: &mut State, values: &[f64], _: &[f64], index: i64) {
    extreme(shape, state, values, |_| index, smaller);
}

pub(crate) fn min_states(shape: Shape, state: &mut State, other: &State) {
    extreme(shape, state, &other.values, |k| other.indices[k], smaller);
}

pub(crate) fn max(shape: Shape, state: &mut State, values: &[f64], _: &[f64], index: i64) {
    extreme(shape, state, values, |_| index, larger);
}

pub(crate) fn max_states(shape: Shape, state: &mut State, other: &State) {
    extreme(shape, state, &other.values, |k| other.indices[k], larger);
}

/// The largest exponent, the sum of exponentials, the weighted sums.
pub(crate) fn shifted(shape: Shape) -> State {
    let mut state = filled(2 + shape.weights, 0.0, 0);
    state.values[0] = f64::NEG_INFINITY;
    state
}

pub(crate) fn shift_add(_: Shape, state: &mut State, values: &[f64], weight: &[f64], _: i64) {
    let sums: Vec<f64> = [1.0].iter().chain(weight).copied().collect();
    shift_into(state, values[0], &sums);
}

pub(crate) fn shift_merge(_: Shape, state: &mut State, other: &State) {
    shift_into(state, other.values[0], &other.values[1..]);
}

/// Adds sums that are scaled by exp(-exponent).
fn shift_into(state: &mut State, exponent: f64, sums: &[f64]) {
    if exponent == f64::NEG_INFINITY {
        return;
    }
    let held = state.values[0];
    // NaN wins, and stays.
    let max = if held.is_nan() || held > exponent { held } else { exponent };
    // Equal infinities would give inf - inf; their scale factor is one.
    let factor = |of: f64| if of == max { 1.0 } else { (of - max).exp() };
    let (keep, take) = (factor(held), factor(exponent));
    state.values[0] = max;
    for (held, sum) in state.values[1..].iter_mut().zip(sums) {
        *held = *held * keep + sum * take;
    }
}

fn result(state: State, values: Vec<f64>) -> State {
    State { values, ..state }
}

/// The sums that a reduction is about: the weighted ones, or the plain one where there are none.
fn sums(shape: Shape, state: &State) -> &[f64] {
    if shape.weights == 0 { &state.values[1..] } else { &state.values[2..] }
}

pub(crate) fn log_sums(shape: Shape, state: State) -> State {
    let max = state.values[0];
    let log = |sum: &f64| if max == f64::NEG_INFINITY { max } else { max + sum.ln() };
    let values = sums(shape, &state).iter().map(log).collect();
    result(state, values)
}

pub(crate) fn shifted_sums(shape: Shape, state: State) -> State {
    let values = [state.values[0]].iter().chain(sums(shape, &state)).copied().collect();
    result(state, values)
}

pub(crate) fn soft_mean(shape: Shape, state: State) -> State {
    let values = sums(shape, &state).iter().map(|sum| sum / state.values[1]).collect();
    result(state, values)
}
