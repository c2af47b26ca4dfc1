//! Random chains of views, operations and reductions against the `ndarray` crate.

use ndarray::{ArrayD, Axis, IxDyn, Slice};
use proptest::prelude::*;
use tilework::{Array, Device, Index};

/// One step of a chain, by numbers that are taken modulo what the shape allows.
#[derive(Debug, Clone)]
enum Step {
    Permute(u32),
    Slice { axis: usize, start: isize, stop: isize, step: isize },
    Flip(usize),
    At { axis: usize, index: usize },
    NewAxis(usize),
    Reshape,
    Negate,
    AddItself,
    Sum(usize),
    Fill { axis: usize, index: usize, value: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<u32>().prop_map(Step::Permute),
        (0..4usize, -6..6isize, -6..6isize, -3..4isize).prop_map(|(axis, start, stop, step)| {
            Step::Slice { axis, start, stop, step: if step == 0 { 1 } else { step } }
        }),
        (0..4usize).prop_map(Step::Flip),
        (0..4usize, 0..8usize).prop_map(|(axis, index)| Step::At { axis, index }),
        (0..4usize).prop_map(Step::NewAxis),
        Just(Step::Reshape),
        Just(Step::Negate),
        Just(Step::AddItself),
        (0..4usize).prop_map(Step::Sum),
        (0..4usize, 0..8usize, -9..9i64).prop_map(|(axis, index, value)| Step::Fill {
            axis,
            index,
            value
        }),
    ]
}

fn order(ndim: usize, mut seed: u32) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..ndim).collect();
    for k in (1..ndim).rev() {
        axes.swap(k, seed as usize % (k + 1));
        seed /= 7;
    }
    axes
}

/// The half-open range that a slice of NumPy means, for a step forward or backward.
fn indices(len: usize, start: isize, stop: isize, step: isize) -> Vec<usize> {
    let len = len as isize;
    let wrap = |i: isize| if i < 0 { i + len } else { i };
    let (mut at, end) = match step > 0 {
        true => (wrap(start).clamp(0, len), wrap(stop).clamp(0, len)),
        false => (wrap(start).clamp(-1, len - 1), wrap(stop).clamp(-1, len - 1)),
    };
    let mut found = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        found.push(at as usize);
        at += step;
    }
    found
}

/// Applies a step to both; false if the shape does not allow it.
fn apply(step: &Step, ours: &mut Array, theirs: &mut ArrayD<i64>) -> bool {
    let ndim = ours.ndim();
    let axis = |axis: usize| (ndim > 0).then(|| axis % ndim);
    match *step {
        Step::Permute(seed) => {
            let axes = order(ndim, seed);
            let signed: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
            *ours = ours.permute(&signed).expect("permute");
            *theirs = theirs.clone().permuted_axes(IxDyn(&axes)).as_standard_layout().into_owned();
        }
        Step::Slice { axis: at, start, stop, step } => {
            let Some(at) = axis(at) else { return false };
            let mut index = vec![Index::from(..); at];
            index.push(Index::Slice { start: Some(start), stop: Some(stop), step });
            let picks = indices(ours.shape()[at], start, stop, step);
            *ours = ours.slice(&index).expect("slice");
            *theirs = theirs.select(Axis(at), &picks);
        }
        Step::Flip(at) => {
            let Some(at) = axis(at) else { return false };
            *ours = ours.flip(Some(&[at as isize])).expect("flip");
            theirs.invert_axis(Axis(at));
        }
        Step::At { axis: at, index } => {
            let Some(at) = axis(at) else { return false };
            if ours.shape()[at] == 0 {
                return false;
            }
            let index = index % ours.shape()[at];
            let mut indices = vec![Index::from(..); at];
            indices.push(Index::from(index));
            *ours = ours.slice(&indices).expect("index");
            *theirs = theirs.index_axis(Axis(at), index).to_owned();
        }
        Step::NewAxis(at) => {
            if ndim >= 6 {
                return false;
            }
            let at = at % (ndim + 1);
            *ours = ours.expand_dims(at as isize).expect("expand_dims");
            theirs.insert_axis_inplace(Axis(at));
        }
        Step::Reshape => {
            *ours = ours.reshape(&[-1]).or_else(|_| ours.reshape(&[0])).expect("reshape");
            *theirs =
                ArrayD::from_shape_vec(IxDyn(&[theirs.len()]), theirs.iter().copied().collect())
                    .expect("flat");
        }
        Step::Negate => {
            *ours = ours.negative().expect("negative");
            *theirs = theirs.mapv(i64::wrapping_neg);
        }
        Step::AddItself => {
            *ours = ours.add(&*ours).expect("add");
            *theirs = theirs.mapv(|x| x.wrapping_add(x));
        }
        Step::Sum(at) => {
            let Some(at) = axis(at) else { return false };
            *ours = ours.sum(at as isize).expect("sum");
            *theirs = theirs.fold_axis(Axis(at), 0i64, |a, b| a.wrapping_add(*b));
        }
        Step::Fill { axis: at, index, value } => {
            let Some(at) = axis(at) else { return false };
            if ours.shape()[at] == 0 {
                return false;
            }
            let index = index % ours.shape()[at];
            let mut indices = vec![Index::from(..); at];
            indices.push(Index::from(index));
            // Broadcast views cannot be written; a copy can.
            *ours = ours.copy().expect("copy");
            ours.set(&indices, value).expect("set");
            theirs.slice_axis_mut(Axis(at), Slice::from(index..index + 1)).fill(value);
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_agree_on_every_device(shape in prop::collection::vec(0..5usize, 0..4), steps in prop::collection::vec(step(), 1..9)) {
        for device in Device::all() {
            let count: usize = shape.iter().product();
            let elements: Vec<i64> = (0..count as i64).map(|k| k * 37 % 101 - 50).collect();
            let dims: Vec<isize> = shape.iter().map(|&n| n as isize).collect();
            let mut ours = Array::from_slice_on(device, &elements).and_then(|x| x.reshape(&dims)).expect("reshape");
            let mut theirs = ArrayD::from_shape_vec(IxDyn(&shape), elements).expect("shape");
            for step in &steps {
                apply(step, &mut ours, &mut theirs);
                prop_assert_eq!(ours.shape(), theirs.shape());
                prop_assert_eq!(ours.to_vec::<i64>().expect("to_vec"), theirs.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
