//! The definition of reductions over pairs: every pair by itself, blocks of j merged in pairs.

use std::ops::Range;

use tilework_backend::{Accumulator, PairReduce, Session, Target, ViewRef};
use tilework_error::{Error, Result};
use tilework_ops::{DType, Number, PairState, Scalar};
use tilework_tape::Per;

/// Fewer pairs than this are folded one after the other.
const BLOCK: usize = 32;

/// Does what a `PairReduce` request asks.
pub(crate) fn run(session: &Session<'_>, request: &PairReduce<'_>) -> Result<()> {
    match request.accumulates() {
        DType::Float64 => reduce::<f64>(session, request),
        _ => reduce::<f32>(session, request),
    }
}

fn reduce<A: Accumulator>(session: &Session<'_>, request: &PairReduce<'_>) -> Result<()> {
    let shape = request.output_shape().to_vec();
    let Some((_, rows)) = shape.split_last() else { return Ok(()) };
    let count: usize = rows.iter().product();
    for row in 0..count {
        let mut index = vec![0; rows.len()];
        let mut rest = row;
        for (place, &size) in index.iter_mut().zip(rows).rev() {
            *place = rest % size;
            rest /= size;
        }
        let mut state = fold::<A>(session, request, &index, 0..request.n)?;
        if request.finish {
            state = request.fold.finish(request.shape(), state);
        }
        store(session, request.values.as_ref(), &index, state.values.iter().map(|x| x.to_f64()));
        store(session, request.indices.as_ref(), &index, state.indices.iter().copied());
        let goes_on =
            request.progress.is_none_or(|told| told.goes_on((row + 1) as f64 / count as f64));
        if !goes_on {
            return Err(Error::interrupted("reduction", "stopped on request"));
        }
    }
    Ok(())
}

/// The state after a range of j.
fn fold<A: Accumulator>(
    session: &Session<'_>,
    request: &PairReduce<'_>,
    row: &[usize],
    range: Range<usize>,
) -> Result<PairState<A>> {
    let shape = request.shape();
    if range.len() > BLOCK {
        let middle = range.start + range.len() / 2;
        let mut state = fold(session, request, row, range.start..middle)?;
        let other = fold(session, request, row, middle..range.end)?;
        request.fold.merge(shape, &mut state, &other);
        return Ok(state);
    }
    let mut state = request.fold.init(shape);
    for j in range {
        let inputs: Vec<Vec<Scalar>> = request
            .inputs
            .iter()
            .zip(request.tape.inputs())
            .map(|(view, input)| load(session, view, input.per, row, j))
            .collect();
        let slots: Vec<&[Scalar]> = inputs.iter().map(|input| &input[..]).collect();
        let outputs = request.tape.evaluate(&slots)?;
        let numbers = |k: usize| -> Vec<A> {
            outputs.get(k).map_or(Vec::new(), |x| x.iter().map(|x| x.get::<A>()).collect())
        };
        let index = request.start + j as i64;
        request.fold.step(shape, &mut state, &numbers(0), &numbers(1), index);
    }
    Ok(state)
}

/// The vector of an input for one pair.
fn load(
    session: &Session<'_>,
    view: &ViewRef<'_>,
    per: Per,
    row: &[usize],
    j: usize,
) -> Vec<Scalar> {
    let (i, batch) = row.split_last().map_or((0, row), |(i, batch)| (*i, batch));
    let mut index = batch.to_vec();
    match per {
        Per::Once => {}
        Per::I => index.push(i),
        _ => index.push(j),
    }
    let components = view.layout().shape().last().copied().unwrap_or(1);
    let position = |c: usize| view.layout().position(&[&index[..], &[c]].concat());
    (0..components).map(|c| view.load(session, position(c))).collect()
}

fn store<N: Into<Number>>(
    session: &Session<'_>,
    target: Option<&Target<'_>>,
    row: &[usize],
    numbers: impl Iterator<Item = N>,
) {
    let Some(target) = target else { return };
    for (c, number) in numbers.enumerate() {
        let position = target.layout().position(&[row, &[c]].concat());
        target.store(session, position, number.into().cast(target.dtype()));
    }
}
