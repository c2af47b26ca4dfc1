//! What the tests of reductions and scans share: elements worth folding, layouts, and the definition of
//! every fold to compare with.

#![allow(dead_code, reason = "each test file uses a part of it")]

#[path = "../rng/mod.rs"]
mod rng;
#[path = "../valid/mod.rs"]
mod valid;

pub(crate) use rng::Rng;

use tilework_backend::{Fresh, Reduce, Request, Scan, Storage, UserRead, UserWrite, View};
use tilework_cpu::Cpu;
use tilework_layout::{Layout, positions};
use tilework_ops::{
    Complex, DType, Element, Entry, Fold, FoldColumn, FoldId, Gives, Number, Scalar, fold_column,
    with_element,
};
pub(crate) use valid::run;

/// What elements look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Small numbers with many ties.
    Few,
    /// Numbers close to one, so that products stay in range.
    NearOne,
    /// Some NaN and infinities among others.
    Special,
    /// Mostly zero.
    Sparse,
}

pub(crate) fn element(dtype: DType, kind: Kind, random: &mut Rng) -> Scalar {
    let part = |random: &mut Rng| match kind {
        Kind::Few => (random.next() % 9) as f64 - 4.0,
        Kind::NearOne => 0.75 + random.unit() / 2.0,
        Kind::Special => match random.next() % 40 {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            _ => random.unit() * 8.0 - 4.0,
        },
        Kind::Sparse => f64::from(random.next().is_multiple_of(200)),
    };
    let (re, im) = (part(random), part(random));
    let im = if kind == Kind::NearOne { im - 1.0 } else { im };
    let re = if !dtype.is_inexact() && kind == Kind::Special { re.clamp(-4.0, 4.0) } else { re };
    if dtype.is_complex() {
        Number::Complex(Complex::new(re, im)).cast(dtype)
    } else if dtype.kind() == tilework_ops::Kind::Unsigned {
        Number::Float(re.abs()).cast(dtype)
    } else {
        Number::Float(re).cast(dtype)
    }
}

pub(crate) fn view_of(scalars: &[Scalar], dtype: DType, layout: Layout) -> View {
    let storage = Storage::host(Cpu::ID, (scalars.len() * dtype.size()).max(1), true).unwrap();
    {
        let mut bytes = UserWrite::new("test", &storage).unwrap();
        for (i, scalar) in scalars.iter().enumerate() {
            bytes[i * dtype.size()..(i + 1) * dtype.size()].copy_from_slice(scalar.bytes());
        }
    }
    View::new(storage, layout, dtype).unwrap()
}

pub(crate) fn input(layout: Layout, dtype: DType, kind: Kind, seed: u64) -> View {
    let mut random = Rng(seed);
    let len = layout.span().map_or(0, |(_, high)| high + 1).max(layout.offset());
    let scalars: Vec<Scalar> = (0..len).map(|_| element(dtype, kind, &mut random)).collect();
    view_of(&scalars, dtype, layout)
}

pub(crate) fn bytes_of(view: &View) -> Vec<u8> {
    UserRead::new("test", view.storage()).unwrap().to_vec()
}

pub(crate) fn scalar_at(bytes: &[u8], dtype: DType, position: usize) -> Scalar {
    Scalar::from_bytes(dtype, &bytes[position * dtype.size()..])
}

pub(crate) fn read(view: &View) -> Vec<Scalar> {
    let bytes = bytes_of(view);
    positions(view.layout()).map(|at| scalar_at(&bytes, view.dtype(), at)).collect()
}

pub(crate) fn result_dtype(fold: FoldId, dtype: DType) -> Option<DType> {
    fold.row().accumulates(dtype).map(|a| fold.row().result(a))
}

pub(crate) fn kept_shape(shape: &[usize], axes: &[usize]) -> Vec<usize> {
    (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect()
}

pub(crate) fn reduce_as(
    fold: FoldId,
    input: &View,
    axes: &[usize],
    correction: f64,
    dtype: DType,
) -> View {
    let shape = kept_shape(input.layout().shape(), axes);
    let layout = Layout::contiguous(&shape).unwrap();
    let storage = Storage::host(Cpu::ID, (layout.len() * dtype.size()).max(1), false).unwrap();
    let mut fresh = Fresh::new(storage, layout, dtype).unwrap();
    let output = fresh.target();
    let request = Reduce { fold, input: input.borrow(), axes, correction, output };
    run(&Cpu, "test", &Request::Reduce(request)).unwrap();
    View::clone(&fresh.finish())
}

pub(crate) fn reduce(fold: FoldId, input: &View, axes: &[usize], correction: f64) -> View {
    let dtype = result_dtype(fold, input.dtype()).unwrap();
    reduce_as(fold, input, axes, correction, dtype)
}

/// The definition: elements in row-major order, cast, folded in pairs.
pub(crate) type Oracle = fn(&[Scalar], DType, f64) -> Scalar;
pub(crate) struct Oracles;
pub(crate) struct At<F>(std::marker::PhantomData<F>);

impl FoldColumn for Oracles {
    type Cell = Oracle;
    type At<F: Fold> = At<F>;
}

impl<F: Fold> Entry<Oracle> for At<F> {
    const VALUE: Oracle = oracle::<F>;
}

pub(crate) fn oracle<F: Fold>(elements: &[Scalar], accumulates: DType, correction: f64) -> Scalar {
    fn pairs<F: Fold, A: Element>(elements: &[Scalar], first: usize) -> F::State<A::V> {
        match elements {
            [] => F::init(),
            [one] => F::step(F::init(), one.get::<A>().widen(), first as i64),
            _ => {
                let half = elements.len() / 2;
                let (left, right) = elements.split_at(half);
                F::merge(pairs::<F, A>(left, first), pairs::<F, A>(right, first + half))
            }
        }
    }
    with_element!(accumulates, A => {
        let state = pairs::<F, A>(elements, 0);
        let value = F::finish::<<A as Element>::V>(state, elements.len(), correction);
        Scalar::new(<<F::Gives as Gives>::In<A> as Element>::narrow(value))
    })
}

pub(crate) fn epsilon(dtype: DType) -> f64 {
    dtype.finfo().map_or(0.0, |info| info.eps)
}

/// Whether two results agree up to rounding; `scale` is what errors are relative to.
pub(crate) fn agree(got: Scalar, want: Scalar, scale: f64, accumulates: DType) -> bool {
    if got.dtype() != want.dtype() {
        return false;
    }
    if !got.dtype().is_inexact() {
        return got == want;
    }
    let (a, b) = (got.get::<Complex<f64>>(), want.get::<Complex<f64>>());
    // Up to a few dozen elements are added one after another before pairs begin.
    let tolerance = (12.0 * epsilon(accumulates.computes_in()) + epsilon(got.dtype())) * scale;
    let close = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tolerance;
    close(a.re, b.re) && close(a.im, b.im)
}

/// Groups of elements that become one result each, in the order of results.
pub(crate) fn groups(view: &View, axes: &[usize]) -> Vec<Vec<Scalar>> {
    let (bytes, layout) = (bytes_of(view), view.layout());
    let kept = (0..layout.ndim()).filter(|axis| !axes.contains(axis));
    let order: Vec<isize> = kept.chain(axes.iter().copied()).map(usize::cast_signed).collect();
    let sorted = layout.permute(&order).unwrap();
    let results = kept_shape(layout.shape(), axes).iter().product::<usize>();
    let count = axes.iter().map(|&axis| layout.shape()[axis]).product::<usize>();
    let all: Vec<Scalar> =
        positions(&sorted).map(|at| scalar_at(&bytes, view.dtype(), at)).collect();
    (0..results).map(|i| all[i * count..(i + 1) * count].to_vec()).collect()
}

pub(crate) fn scale_of(fold: FoldId, group: &[Scalar], want: Scalar) -> f64 {
    let size = |s: &Scalar| s.get::<Complex<f64>>().norm();
    let want = size(&want);
    // Parts one by one: where one is infinite the other still counts.
    let parts = |s: &Scalar| {
        let z = s.get::<Complex<f64>>();
        [z.re, z.im].iter().map(|x| x.abs()).filter(|x| x.is_finite()).sum::<f64>()
    };
    let sum: f64 = group.iter().map(parts).sum();
    match fold {
        FoldId::Sum => sum.max(1e-30),
        FoldId::Mean => sum / group.len().max(1) as f64 + 1e-30,
        FoldId::Prod => want * group.len() as f64,
        // The mean is rounded, and the variance of equal numbers is as small as that.
        FoldId::Var => want * 4.0 + group.iter().map(size).fold(0.0, f64::max) * 1e-10,
        _ => want.max(1e-30) * 4.0,
    }
}

pub(crate) fn check(folds: &[FoldId], view: &View, axes: &[usize], what: &str) {
    let groups = groups(view, axes);
    for &fold in folds {
        check_groups(fold, view, axes, &groups, what);
    }
}

pub(crate) fn check_groups(
    fold: FoldId,
    view: &View,
    axes: &[usize],
    groups: &[Vec<Scalar>],
    what: &str,
) {
    let row = fold.row();
    let Some(accumulates) = row.accumulates(view.dtype()) else { return };
    let count = axes.iter().map(|&axis| view.layout().shape()[axis]).product::<usize>();
    if count == 0 && row.nothing == tilework_ops::fold::OverNothing::Error {
        return;
    }
    let oracle = fold_column::<Oracles>()[fold as usize];
    let correction = 1.0;
    let got = read(&reduce(fold, view, axes, correction));
    assert_eq!(got.len(), groups.len(), "{what}");
    for (i, (got, group)) in got.iter().zip(groups).enumerate() {
        let want = oracle(group, accumulates, correction);
        let scale = scale_of(fold, group, want);
        // Which of several complex NaN wins is not said.
        let nan = |s: Scalar| {
            let z = s.get::<Complex<f64>>();
            z.re.is_nan() || z.im.is_nan()
        };
        let either = matches!(fold, FoldId::Max | FoldId::Min) && nan(*got) && nan(want);
        assert!(
            either || agree(*got, want, scale, accumulates),
            "{} of {} {what} axes {axes:?}, result {i} of {}, {count} elements: {got:?} is not {want:?}",
            row.name,
            view.dtype(),
            groups.len()
        );
    }
}

/// Layouts of one shape that differ in every way that kernels care about.
pub(crate) fn layouts(shape: &[usize]) -> Vec<(&'static str, Layout)> {
    let plain = Layout::contiguous(shape).unwrap();
    let ndim = shape.len();
    let mut all = vec![("contiguous", plain.clone())];
    if ndim == 0 {
        all.push(("offset", plain.with_offset(3).unwrap()));
        return all;
    }
    let reversed: Vec<usize> = shape.iter().rev().copied().collect();
    all.push(("transposed", Layout::contiguous(&reversed).unwrap().transpose()));
    if !plain.is_empty() {
        all.push(("reversed", plain.flip(None).unwrap()));
        all.push(("last reversed", plain.flip(Some(&[-1])).unwrap()));
        let stepped: Vec<isize> = plain.strides().iter().map(|s| s * 2).collect();
        all.push(("stepped", Layout::new(shape, &stepped, 1).unwrap()));
        all.push(("all one", Layout::new(shape, &vec![0; ndim], 2).unwrap()));
        for axis in 0..ndim {
            let mut strides = Layout::contiguous(shape).unwrap().strides().to_vec();
            strides[axis] = 0;
            all.push(("one axis broadcast", Layout::new(shape, &strides, 0).unwrap()));
        }
        let wide: Vec<usize> = shape.iter().map(|n| n + 3).collect();
        let strides = Layout::contiguous(&wide).unwrap().strides().to_vec();
        all.push(("window", Layout::new(shape, &strides, 2).unwrap()));
    }
    all
}

pub(crate) fn subsets(ndim: usize) -> Vec<Vec<usize>> {
    (0..1usize << ndim).map(|mask| (0..ndim).filter(|a| mask >> a & 1 == 1).collect()).collect()
}

/// Folds together with the kind of elements that they are tested on.
pub(crate) const KINDS: [(Kind, &[FoldId]); 3] = [
    (Kind::NearOne, &[FoldId::Prod, FoldId::Mean]),
    (Kind::Sparse, &[FoldId::Any, FoldId::CountNonzero]),
    (
        Kind::Few,
        &[
            FoldId::Sum,
            FoldId::Norm,
            FoldId::Max,
            FoldId::Min,
            FoldId::ArgMax,
            FoldId::ArgMin,
            FoldId::All,
            FoldId::Var,
            FoldId::LogSumExp,
        ],
    ),
];

pub(crate) fn floats(values: impl Iterator<Item = f32>) -> View {
    let bytes: Vec<u8> = values.flat_map(f32::to_ne_bytes).collect();
    let storage = Storage::host(Cpu::ID, bytes.len(), false).unwrap();
    UserWrite::new("test", &storage).unwrap()[..bytes.len()].copy_from_slice(&bytes);
    View::new(storage, Layout::contiguous(&[bytes.len() / 4]).unwrap(), DType::Float32).unwrap()
}

pub(crate) fn scan(fold: FoldId, input: &View, axis: usize) -> View {
    let dtype = result_dtype(fold, input.dtype()).unwrap();
    let layout = Layout::contiguous(input.layout().shape()).unwrap();
    let storage = Storage::host(Cpu::ID, (layout.len() * dtype.size()).max(1), false).unwrap();
    let mut fresh = Fresh::new(storage, layout, dtype).unwrap();
    let output = fresh.target();
    run(&Cpu, "test", &Request::Scan(Scan { fold, input: input.borrow(), axis, output })).unwrap();
    View::clone(&fresh.finish())
}
