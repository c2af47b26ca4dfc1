//! Calls that no kernel takes whole, done as several calls after each other: results of more components than a thread has
//! memory for that have no slices, and batches of more axes than kernels walk. Seldom needed, so it need not be fast.
//!
//! Called by `pairs`.

use std::fmt;

use smallvec::SmallVec;
use tilework_backend::{PairReduce, Progress, Target, ViewRef};
use tilework_error::Result;
use tilework_layout::Layout;
use tilework_tape::{Builder, Slice, Tape};

use super::folding::Folding;
use super::slices::{self, MOST_WORDS};
use super::{Forms, batch_loops};
use crate::launch::MAX_AXES;

/// What each of the calls takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// Components, at most so many at once; one by one where each has ranks.
    Components(usize),
    /// One index of this batch axis at a time.
    Batches(usize),
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Calls::Components(most) => write!(f, "{most} components at a time"),
            Calls::Batches(axis) => write!(f, "batches one after another along axis {axis}"),
        }
    }
}

/// The formula of one of the calls, and where its arrays lie.
struct Part {
    /// None where the formula is that of the request.
    tape: Option<Tape>,
    inputs: Vec<Layout>,
    /// The request's input that each of `inputs` is part of.
    of: Vec<usize>,
    outputs: [Option<Layout>; 2],
}

impl Calls {
    /// The calls that a request is done as; none where it can be done as it is.
    pub(super) fn of(
        request: &PairReduce<'_>,
        forms: &Forms<'_>,
        folding: &Folding,
    ) -> Option<Calls> {
        let batch = request.output_shape().split_last_chunk::<2>()?.0;
        // A sum of weights times right-hand sides is cut by itself, and its form as it is written may have all components.
        let whole = forms.for_threads.is_none() && forms.parts.is_empty() && forms.right.is_none();
        let most = slices::most_components(folding, MOST_WORDS).filter(|_| whole);
        if batch.len() > MAX_AXES && batch_loops(request, batch).lens.len() > MAX_AXES {
            return batch.iter().position(|&len| len > 1).map(Calls::Batches);
        }
        most.map(Calls::Components)
    }

    /// Calls `work` with the request of each call, in order.
    pub(super) fn each(
        self,
        request: &PairReduce<'_>,
        name: &str,
        mut work: impl FnMut(&PairReduce<'_>) -> Result<()>,
    ) -> Result<()> {
        if request.output_shape().contains(&0) {
            return Ok(());
        }
        let (all, step) = match self {
            Calls::Components(most) => (request.shape().dim, most),
            Calls::Batches(axis) => (request.output_shape()[axis], 1),
        };
        // A formula of one component is the same for all calls, and has short vectors.
        let slice = match self {
            Calls::Components(1) => request.tape.slice(&[], request.tape.outputs()[0], 1),
            _ => None,
        };
        for first in (0..all).step_by(step) {
            let count = step.min(all - first);
            let part = match self {
                Calls::Components(_) => components(request, slice.as_ref(), [first, count, all])?,
                Calls::Batches(axis) => batches(request, axis, first)?,
            };
            let inputs = part.of.iter().zip(&part.inputs);
            let inputs = inputs.map(|(&input, layout)| request.inputs[input].with_layout(layout));
            let inputs = inputs.collect::<Result<SmallVec<[ViewRef<'_>; 8]>>>()?;
            let [values, indices] =
                [(&request.values, &part.outputs[0]), (&request.indices, &part.outputs[1])].map(
                    |(target, layout)| {
                        let both = target.as_ref().zip(layout.as_ref());
                        both.map(|(target, layout)| target.part(name, layout)).transpose()
                    },
                );
            let told = |fraction: f64| {
                let so_far = (first as f64 + count as f64 * fraction) / all as f64;
                request.progress.is_none_or(|progress| progress.goes_on(so_far))
            };
            let progress = request.progress.map(|_| Progress(&told));
            let (values, indices) = (values?, indices?);
            let tape = part.tape.as_ref().unwrap_or(request.tape);
            work(&PairReduce { tape, inputs: &inputs, values, indices, progress, ..*request })?;
        }
        Ok(())
    }
}

/// The call for `count` components of `all`, from `first` on.
fn components(
    request: &PairReduce<'_>,
    slice: Option<&Slice>,
    [first, count, all]: [usize; 3],
) -> Result<Part> {
    let (tape, again) = match slice {
        Some(Slice { tape, again, .. }) => (tape.clone(), &again[..]),
        None => {
            let mut build = Builder::continuing(request.tape);
            let some = build.extract(request.tape.outputs()[0], first as u32, count as u32)?;
            (build.finish(&[some])?.only(&[some]), &[][..])
        }
    };
    let of: Vec<usize> =
        (0..request.inputs.len()).chain(again.iter().map(|again| again.input)).collect();
    let mut inputs: Vec<Layout> =
        of.iter().map(|&input| request.inputs[input].layout().clone()).collect();
    for (layout, again) in inputs[request.inputs.len()..].iter_mut().zip(again) {
        *layout = layout.narrow(-1, again.first(first), 1)?;
    }
    let outputs = outputs(request, |layout| match request.shape().k {
        1 => layout.narrow(-1, first, count),
        _ => every(layout, first, all),
    });
    Ok(Part { tape: Some(tape), inputs, of, outputs: outputs? })
}

/// The call for one index of a batch axis.
fn batches(request: &PairReduce<'_>, axis: usize, index: usize) -> Result<Part> {
    let narrow = |layout: &Layout| layout.narrow(axis as isize, index, 1);
    let inputs = request.inputs.iter().map(|view| narrow(view.layout()));
    Ok(Part {
        tape: None,
        inputs: inputs.collect::<Result<Vec<Layout>>>()?,
        of: (0..request.inputs.len()).collect(),
        outputs: outputs(request, narrow)?,
    })
}

/// Where outputs of a part lie.
fn outputs(
    request: &PairReduce<'_>,
    part: impl Fn(&Layout) -> Result<Layout>,
) -> Result<[Option<Layout>; 2]> {
    let of = |target: &Option<Target<'_>>| {
        target.as_ref().map(|target| part(target.layout())).transpose()
    };
    Ok([of(&request.values)?, of(&request.indices)?])
}

/// The layout of every `step`-th number of each row, from `first` on.
fn every(layout: &Layout, first: usize, step: usize) -> Result<Layout> {
    let (mut shape, mut strides) = (layout.shape().to_vec(), layout.strides().to_vec());
    let mut offset = layout.offset();
    if let (Some(len), Some(stride)) = (shape.last_mut(), strides.last_mut()) {
        offset = offset.wrapping_add_signed(first as isize * *stride);
        *len /= step;
        *stride *= step as isize;
    }
    Layout::new(&shape, &strides, offset)
}
