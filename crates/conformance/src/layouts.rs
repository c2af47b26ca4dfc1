//! The awkward layouts: ways to make views of arrays of one shape, for every suite.

use tilework::{Array, Result, s};

/// The shape that the base arrays of [`CASES`] have.
pub const BASE: [usize; 3] = [5, 6, 9];

type MakeViews = fn(&[Array]) -> Result<Vec<Array>>;

fn each(bases: &[Array], view: impl Fn(&Array) -> Result<Array>) -> Result<Vec<Array>> {
    bases.iter().map(view).collect()
}

/// Named ways to turn base arrays into operands whose shapes broadcast.
pub const CASES: &[(&str, MakeViews)] = &[
    ("contiguous", |bases| Ok(bases.to_vec())),
    ("transposed", |bases| each(bases, |x| Ok(x.transpose()))),
    ("permuted 4-D", |bases| each(bases, |x| x.reshape(&[5, 2, 3, 9])?.permute(&[2, 0, 3, 1]))),
    ("stepped", |bases| each(bases, |x| x.slice(&s![..;2, 1..;2, ..;4]))),
    ("reversed", |bases| each(bases, |x| x.flip(None))),
    ("reversed inner axis", |bases| each(bases, |x| x.flip(Some(&[-1])))),
    ("offset", |bases| each(bases, |x| x.slice(&s![1..4, 2..5, 3..8]))),
    ("stride 0 everywhere", |bases| each(bases, |x| x.slice(&s![1, 2, 3])?.broadcast_to(&[4, 7]))),
    ("stride 0 on the outer axis", |bases| {
        each(bases, |x| x.slice(&s![0])?.broadcast_to(&[3, 6, 9]))
    }),
    ("stride 0 on the inner axis", |bases| {
        each(bases, |x| x.slice(&s![.., .., 0..1])?.broadcast_to(&[5, 6, 4]))
    }),
    ("odd strides of size-1 axes", |bases| {
        each(bases, |x| x.as_strided(&[1, 6, 1, 9], &[77, 9, -5, 1], 0))
    }),
    ("overlapping windows", |bases| each(bases, |x| x.ravel()?.as_strided(&[30, 8], &[7, 1], 3))),
    ("0-d", |bases| each(bases, |x| x.slice(&s![1, 1, 1]))),
    ("empty", |bases| each(bases, |x| x.slice(&s![.., 2..2]))),
    ("one element", |bases| each(bases, |x| x.slice(&s![1..2, 1..2, 1..2]))),
    ("mixed orders", |bases| {
        let views = [
            |x: &Array| Ok(x.clone()),
            |x: &Array| x.permute(&[2, 1, 0])?.copy()?.permute(&[2, 1, 0]),
            |x: &Array| {
                x.permute(&[1, 0, 2])?
                    .copy()?
                    .permute(&[1, 0, 2])?
                    .flip(Some(&[0]))?
                    .flip(Some(&[0]))
            },
        ];
        bases.iter().zip(views).map(|(x, view)| view(x)).collect()
    }),
    ("row, column and matrix", |bases| {
        let views: [fn(&Array) -> Result<Array>; 3] =
            [|x| x.slice(&s![0]), |x| x.slice(&s![0, 0]), |x| x.slice(&s![0, .., 1..2])];
        bases.iter().zip(views).map(|(x, view)| view(x)).collect()
    }),
    ("long axis", |bases| each(bases, |x| x.ravel())),
    ("lengths around a vector", |bases| each(bases, |x| x.ravel()?.slice(&s![1..66]))),
    ("two short of a vector", |bases| each(bases, |x| x.ravel()?.slice(&s![3..17]))),
];
