//! Random programs of views, operations, reductions and assignments, of every dtype, on every device
//! against the reference.
//!
//! After each step that computes, the device goes on with the reference's result, so that rounding
//! differences do not add up and a difference is found at the step that makes it.

use proptest::prelude::*;
use tilework::{
    Arg, Array, Complex, DType, Device, Direction, FoldId, Id, Index, KeepDims, Number, Result,
    Scalar, apply, apply_into, select,
};
use tilework_conformance::compare::{assert_close_beside, scalars};
use tilework_conformance::values::draw_special;
use tilework_ops::Tolerance;

/// One step, by numbers that are taken modulo what the array allows.
#[derive(Debug, Clone)]
enum Step {
    Transpose,
    MoveAxis(usize, usize),
    Slice { axis: usize, start: isize, stop: isize, step: isize },
    At { axis: usize, index: usize },
    NewAxis(usize),
    Broadcast(usize),
    Diagonal,
    Windows(usize),
    Reshape,
    Cast(usize),
    Operation { id: usize, beside: usize },
    InPlace { id: usize },
    Choose,
    Fold { fold: usize, axis: usize },
    Scan { fold: usize, axis: usize },
    Sort(usize),
    Assign { axis: usize, step: isize },
}

fn step() -> impl Strategy<Value = Step> {
    let axis = 0..4usize;
    let stride = prop::sample::select(vec![-3isize, -2, -1, 1, 2, 3]);
    prop_oneof![
        Just(Step::Transpose),
        (axis.clone(), axis.clone()).prop_map(|(from, to)| Step::MoveAxis(from, to)),
        (axis.clone(), -6..6isize, -6..6isize, stride.clone())
            .prop_map(|(axis, start, stop, step)| Step::Slice { axis, start, stop, step }),
        (axis.clone(), 0..8usize).prop_map(|(axis, index)| Step::At { axis, index }),
        axis.clone().prop_map(Step::NewAxis),
        (1..4usize).prop_map(Step::Broadcast),
        Just(Step::Diagonal),
        (1..4usize).prop_map(Step::Windows),
        Just(Step::Reshape),
        (0..DType::COUNT).prop_map(Step::Cast),
        (0..Id::ALL.len(), 0..3usize).prop_map(|(id, beside)| Step::Operation { id, beside }),
        (0..Id::ALL.len(), 0..3usize).prop_map(|(id, beside)| Step::Operation { id, beside }),
        (0..Id::ALL.len()).prop_map(|id| Step::InPlace { id }),
        Just(Step::Choose),
        (0..FoldId::ALL.len(), axis.clone()).prop_map(|(fold, axis)| Step::Fold { fold, axis }),
        (0..FoldId::ALL.len(), axis.clone()).prop_map(|(fold, axis)| Step::Scan { fold, axis }),
        axis.clone().prop_map(Step::Sort),
        (axis, stride).prop_map(|(axis, step)| Step::Assign { axis, step }),
    ]
}

/// How far the results of a step may lie apart, where it computes; None for views.
fn tolerance(step: &Step) -> Option<Tolerance> {
    match *step {
        Step::Operation { id, .. } | Step::InPlace { id } => Some(Id::ALL[id].row().tolerance),
        Step::Fold { fold, .. } | Step::Scan { fold, .. } => {
            Some(FoldId::ALL[fold].row().tolerance)
        }
        Step::Cast(_) | Step::Choose | Step::Sort(_) | Step::Assign { .. } => {
            Some(Tolerance::Exact)
        }
        _ => None,
    }
}

/// The operands of an operation on `x`: itself, its reverse, or a number.
fn operands<'a>(id: Id, x: &'a Array, reversed: &'a Array, beside: usize) -> Vec<Arg<'a>> {
    let number = if x.dtype().is_inexact() { Number::Float(1.5) } else { Number::Int(1) };
    let other = [Arg::Array(x), Arg::Array(reversed), Arg::Number(number)][beside];
    [Arg::Array(x), other, Arg::Array(reversed)][..id.row().arity].to_vec()
}

fn perform(step: &Step, x: &Array) -> Result<Array> {
    let ndim = x.ndim();
    let wrap = |axis: usize| (axis % ndim.max(1)) as isize;
    match *step {
        Step::Transpose => Ok(x.transpose()),
        Step::MoveAxis(from, to) => x.move_axes(&[wrap(from)], &[wrap(to)]),
        Step::Slice { axis, start, stop, step } => {
            let mut index = vec![Index::from(..); wrap(axis) as usize];
            index.push(Index::Slice { start: Some(start), stop: Some(stop), step });
            x.slice(&index)
        }
        Step::At { axis, index } => {
            let length = x.shape().get(wrap(axis) as usize).copied().unwrap_or(0);
            let mut indices = vec![Index::from(..); wrap(axis) as usize];
            indices.push(Index::At((index % length.max(1)) as isize));
            x.slice(&indices)
        }
        Step::NewAxis(axis) if ndim < 6 => x.expand_dims((axis % (ndim + 1)) as isize),
        Step::Broadcast(times) if ndim < 6 && x.len() < 2000 => {
            x.expand_dims(0)?.broadcast_to(&[&[times], x.shape()].concat())
        }
        Step::Diagonal => x.diagonal(0, 0, 1),
        Step::Windows(size) => x.sliding_windows(&[size], &[-1]),
        Step::Reshape => x.reshape(&[x.len() as isize]),
        Step::Cast(dtype) => x.astype(DType::ALL[dtype]),
        Step::Operation { id, beside } => {
            let (id, reversed) = (Id::ALL[id], x.flip(None)?);
            apply(id, &operands(id, x, &reversed, beside))
        }
        Step::InPlace { id } => {
            let (id, target) = (Id::ALL[id], x.copy()?);
            let reversed = target.flip(None)?;
            apply_into(id, &operands(id, &target, &reversed, 1), &target)?;
            Ok(target)
        }
        Step::Choose => select(&x.not_equal(0)?, x, &x.flip(None)?),
        Step::Fold { fold, axis } => x.reduce(FoldId::ALL[fold], wrap(axis), KeepDims::No, 0.0),
        Step::Scan { fold, axis } => x.scan(FoldId::ALL[fold], wrap(axis)),
        Step::Sort(axis) => x.sort(wrap(axis), Direction::Ascending),
        Step::Assign { axis, step } => {
            let target = x.copy()?;
            let mut index = vec![Index::from(..); wrap(axis) as usize];
            index.push(Index::Slice { start: None, stop: None, step });
            let part = target.slice(&index)?;
            part.assign(&part.flip(None)?)?;
            Ok(target)
        }
        Step::NewAxis(_) | Step::Broadcast(_) => Ok(x.clone()),
    }
}

/// The size beside which the results of a step are rounded: for sums in another order, that of all
/// elements; None if these overflow.
fn beside(step: &Step, x: &Array) -> Option<f64> {
    let sums = match *step {
        Step::Fold { fold, .. } | Step::Scan { fold, .. } => {
            matches!(FoldId::ALL[fold].row().tolerance, Tolerance::Ulp(_))
        }
        Step::Operation { id, .. } | Step::InPlace { id } => Id::ALL[id] == Id::LogAddExp,
        _ => false,
    };
    if !sums {
        return Some(0.0);
    }
    let size = |x: &Scalar| {
        let z = x.get::<Complex<f64>>();
        z.re.abs() + z.im.abs()
    };
    let all: f64 = scalars(x).iter().map(size).sum();
    (all < 1e4).then(|| (all + 1.0).powi(2))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_agree_with_the_reference(
        shape in prop::collection::vec(0..7usize, 0..4),
        dtype in 0..DType::COUNT,
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..10),
    ) {
        for device in Device::all().into_iter().filter(|device| *device != Device::reference()) {
            let dtype = DType::ALL[dtype];
            let start = |device| draw_special(device, &shape, dtype, -4.0..4.0, seed).expect("draw");
            let (mut here, mut there) = (start(device), start(Device::reference()));
            for (number, step) in steps.iter().enumerate() {
                let (got, expected) = (perform(step, &here), perform(step, &there));
                let what = format!("{device}, step {number} of {steps:?}");
                let (got, expected) = match (got, expected) {
                    (Ok(got), Ok(expected)) => (got, expected),
                    (Err(a), Err(b)) => {
                        prop_assert_eq!(a.to_string(), b.to_string(), "{}", what);
                        continue;
                    }
                    (got, expected) => {
                        panic!("{what}: {:?}, but {:?}", got.map(|_| ()), expected.map(|_| ()))
                    }
                };
                let allowed = tolerance(step).unwrap_or(Tolerance::Exact);
                match beside(step, &there) {
                    Some(beside) => assert_close_beside(&what, &got, &expected, allowed, beside),
                    // What is left of numbers that overflow depends on their order.
                    None => prop_assert_eq!(got.shape(), expected.shape(), "{}", what),
                }
                there = expected;
                here = if tolerance(step).is_some() { there.to_device(device).expect("to_device") } else { got };
            }
        }
    }
}
