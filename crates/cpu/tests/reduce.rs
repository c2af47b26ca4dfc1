//! Reductions and scans of the CPU backend against the definition of the folds: every fold, dtype,
//! choice of axes and kind of layout; accuracy; the same bits for any number of threads.

use tilework_backend::{Fresh, Reduce, Request, Scan, Storage, UserRead, UserWrite, View, run};
use tilework_cpu::{Cpu, pool};
use tilework_layout::{Layout, positions};
use tilework_ops::{
    Complex, DType, Element, Entry, Fold, FoldColumn, FoldId, Gives, Number, Scalar, fold_column,
    with_element,
};

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Uniform on [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What elements look like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Small numbers with many ties.
    Few,
    /// Numbers close to one, so that products stay in range.
    NearOne,
    /// Some NaN and infinities among others.
    Special,
    /// Mostly zero.
    Sparse,
}

fn element(dtype: DType, kind: Kind, random: &mut Random) -> Scalar {
    let part = |random: &mut Random| match kind {
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

fn view_of(scalars: &[Scalar], dtype: DType, layout: Layout) -> View {
    let storage = Storage::host(Cpu::ID, (scalars.len() * dtype.size()).max(1), true).unwrap();
    {
        let mut bytes = UserWrite::new("test", &storage).unwrap();
        for (i, scalar) in scalars.iter().enumerate() {
            bytes[i * dtype.size()..(i + 1) * dtype.size()].copy_from_slice(scalar.bytes());
        }
    }
    View::new(storage, layout, dtype).unwrap()
}

fn input(layout: Layout, dtype: DType, kind: Kind, seed: u64) -> View {
    let mut random = Random(seed);
    let len = layout.span().map_or(0, |(_, high)| high + 1).max(layout.offset());
    let scalars: Vec<Scalar> = (0..len).map(|_| element(dtype, kind, &mut random)).collect();
    view_of(&scalars, dtype, layout)
}

fn bytes_of(view: &View) -> Vec<u8> {
    UserRead::new("test", view.storage()).unwrap().to_vec()
}

fn scalar_at(bytes: &[u8], dtype: DType, position: usize) -> Scalar {
    Scalar::from_bytes(dtype, &bytes[position * dtype.size()..])
}

fn read(view: &View) -> Vec<Scalar> {
    let bytes = bytes_of(view);
    positions(view.layout()).map(|at| scalar_at(&bytes, view.dtype(), at)).collect()
}

fn result_dtype(fold: FoldId, dtype: DType) -> Option<DType> {
    fold.row().accumulates(dtype).map(|a| fold.row().result(a))
}

fn kept_shape(shape: &[usize], axes: &[usize]) -> Vec<usize> {
    (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect()
}

fn reduce_as(fold: FoldId, input: &View, axes: &[usize], correction: f64, dtype: DType) -> View {
    let shape = kept_shape(input.layout().shape(), axes);
    let layout = Layout::contiguous(&shape).unwrap();
    let storage = Storage::host(Cpu::ID, (layout.len() * dtype.size()).max(1), false).unwrap();
    let mut fresh = Fresh::new(storage, layout, dtype).unwrap();
    let output = fresh.target();
    let request = Reduce { fold, input: input.borrow(), axes, correction, output };
    run(&Cpu, "test", &Request::Reduce(request)).unwrap();
    View::clone(&fresh.finish())
}

fn reduce(fold: FoldId, input: &View, axes: &[usize], correction: f64) -> View {
    let dtype = result_dtype(fold, input.dtype()).unwrap();
    reduce_as(fold, input, axes, correction, dtype)
}

/// The definition: elements in row-major order, cast, folded in pairs.
type Oracle = fn(&[Scalar], DType, f64) -> Scalar;
struct Oracles;
struct At<F>(std::marker::PhantomData<F>);

impl FoldColumn for Oracles {
    type Cell = Oracle;
    type At<F: Fold> = At<F>;
}

impl<F: Fold> Entry<Oracle> for At<F> {
    const VALUE: Oracle = oracle::<F>;
}

fn oracle<F: Fold>(elements: &[Scalar], accumulates: DType, correction: f64) -> Scalar {
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

fn epsilon(dtype: DType) -> f64 {
    dtype.finfo().map_or(0.0, |info| info.eps)
}

/// Whether two results agree up to rounding; `scale` is what errors are relative to.
fn agree(got: Scalar, want: Scalar, scale: f64, accumulates: DType) -> bool {
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
fn groups(view: &View, axes: &[usize]) -> Vec<Vec<Scalar>> {
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

fn scale_of(fold: FoldId, group: &[Scalar], want: Scalar) -> f64 {
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

fn check(folds: &[FoldId], view: &View, axes: &[usize], what: &str) {
    let groups = groups(view, axes);
    for &fold in folds {
        check_groups(fold, view, axes, &groups, what);
    }
}

fn check_groups(fold: FoldId, view: &View, axes: &[usize], groups: &[Vec<Scalar>], what: &str) {
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
fn layouts(shape: &[usize]) -> Vec<(&'static str, Layout)> {
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

fn subsets(ndim: usize) -> Vec<Vec<usize>> {
    (0..1usize << ndim).map(|mask| (0..ndim).filter(|a| mask >> a & 1 == 1).collect()).collect()
}

/// Folds together with the kind of elements that they are tested on.
const KINDS: [(Kind, &[FoldId]); 3] = [
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

#[test]
fn every_fold_dtype_layout_and_choice_of_axes() {
    assert_eq!(KINDS.iter().map(|(_, folds)| folds.len()).sum::<usize>(), FoldId::ALL.len());
    let shapes: [&[usize]; 8] =
        [&[], &[1], &[7], &[0], &[3, 0], &[33, 10], &[4, 3, 5], &[2, 1, 9, 3]];
    for dtype in DType::ALL {
        for (kind, folds) in KINDS {
            for shape in shapes {
                for (name, layout) in layouts(shape) {
                    let view = input(layout, dtype, kind, 7);
                    for axes in subsets(shape.len()) {
                        check(folds, &view, &axes, &format!("{shape:?} {name}"));
                    }
                }
            }
        }
    }
}

#[test]
fn special_values() {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_inexact()) {
        // Infinite parts make products of complex numbers depend on how they are grouped.
        let folds: Vec<FoldId> = FoldId::ALL
            .into_iter()
            .filter(|&fold| fold != FoldId::Prod || !dtype.is_complex())
            .collect();
        for (seed, shape) in [(1, [40, 17]), (3, [2, 300]), (4, [70, 9])] {
            for (name, layout) in layouts(&shape) {
                let view = input(layout, dtype, Kind::Special, seed);
                for axes in subsets(2) {
                    check(&folds, &view, &axes, &format!("special {shape:?} {name}"));
                }
            }
        }
    }
}

#[test]
fn lengths_around_the_edges() {
    let lengths = [
        2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 66, 70, 127, 129, 257, 1000,
        1025, 2049, 4097,
    ];
    for dtype in DType::ALL {
        for (kind, folds) in KINDS {
            for n in lengths {
                let line = input(Layout::contiguous(&[n]).unwrap(), dtype, kind, n as u64);
                check(folds, &line, &[0], "line");
                if n < 70 {
                    let rows = input(Layout::contiguous(&[3, n]).unwrap(), dtype, kind, n as u64);
                    check(folds, &rows, &[0], "rows");
                    check(folds, &rows, &[1], "rows");
                    let tall = input(Layout::contiguous(&[n, 9]).unwrap(), dtype, kind, n as u64);
                    check(folds, &tall, &[0], "tall");
                }
            }
        }
    }
}

#[test]
fn long_ranges_are_split_and_merged_in_order() {
    let shapes: [(&[usize], &[usize]); 8] = [
        (&[140_001], &[0]),
        (&[2, 70_000], &[1]),
        (&[70_000, 2], &[0]),
        (&[20_000, 9], &[0]),
        (&[3, 10_000, 3], &[0, 1]),
        (&[600, 500], &[0]),
        (&[2, 33_000, 2], &[0, 2]),
        (&[66_000], &[0]),
    ];
    for dtype in [DType::Float32, DType::Int16, DType::Float16] {
        for (shape, axes) in shapes {
            if dtype != DType::Float32 && shape != [66_000] {
                continue;
            }
            for (kind, folds) in KINDS {
                // A product of so many numbers has no digits left to compare.
                let folds: Vec<FoldId> =
                    folds.iter().copied().filter(|&fold| fold != FoldId::Prod).collect();
                let view = input(Layout::contiguous(shape).unwrap(), dtype, kind, 11);
                check(&folds, &view, axes, &format!("long {shape:?}"));
            }
        }
    }
}

#[test]
fn one_element_far_away_is_found() {
    for n in [100, 5_000, 70_000] {
        for at in [0, 64, n / 2, n - 1] {
            let mut scalars = vec![Scalar::new(0f32); n];
            for (value, max) in [(5f32, true), (-5.0, false), (f32::NAN, true), (f32::NAN, false)] {
                scalars[at] = Scalar::new(value);
                let line = view_of(&scalars, DType::Float32, Layout::contiguous(&[n]).unwrap());
                let (arg, ext) =
                    if max { (FoldId::ArgMax, FoldId::Max) } else { (FoldId::ArgMin, FoldId::Min) };
                assert_eq!(read(&reduce(arg, &line, &[0], 0.0)), [Scalar::new(at as i64)]);
                let found = read(&reduce(ext, &line, &[0], 0.0))[0].get::<f32>();
                assert!(found == value || found.is_nan() && value.is_nan());
                let column =
                    view_of(&scalars, DType::Float32, Layout::contiguous(&[n / 10, 10]).unwrap());
                let places = read(&reduce(arg, &column, &[0], 0.0));
                assert_eq!(places[at % 10].get::<i64>(), (at / 10) as i64, "{n} {at}");
                assert!((0..10).all(|i| i == at % 10 || places[i].get::<i64>() == 0));
            }
            assert_eq!(
                read(&reduce(
                    FoldId::Any,
                    &view_of(&scalars, DType::Float32, Layout::contiguous(&[n]).unwrap()),
                    &[0],
                    0.0
                )),
                [Scalar::new(true)]
            );
        }
    }
}

fn floats(values: impl Iterator<Item = f32>) -> View {
    let bytes: Vec<u8> = values.flat_map(f32::to_ne_bytes).collect();
    let storage = Storage::host(Cpu::ID, bytes.len(), false).unwrap();
    UserWrite::new("test", &storage).unwrap()[..bytes.len()].copy_from_slice(&bytes);
    View::new(storage, Layout::contiguous(&[bytes.len() / 4]).unwrap(), DType::Float32).unwrap()
}

fn folded(fold: FoldId, view: &View, axes: &[usize]) -> f64 {
    read(&reduce(fold, view, axes, 0.0))[0].get::<f64>()
}

#[test]
fn sums_are_accurate() {
    let n = 10_000_000;
    let line = floats((0..n).map(|_| 0.1));
    let exact = f64::from(0.1f32) * n as f64;
    let error = |got: f64| ((got - exact) / exact).abs();
    assert!(error(folded(FoldId::Sum, &line, &[0])) < 5e-7);
    assert!(error(folded(FoldId::Mean, &line, &[0]) * n as f64) < 5e-7);
    let columns = line.with_layout(Layout::contiguous(&[n / 10, 10]).unwrap()).unwrap();
    assert!(error(folded(FoldId::Sum, &columns, &[0]) * 10.0) < 5e-7);
    let every_second = line.with_layout(Layout::new(&[n / 2], &[2], 0).unwrap()).unwrap();
    assert!(error(folded(FoldId::Sum, &every_second, &[0]) * 2.0) < 5e-7);

    // Large numbers that cancel beside small ones that must not be lost.
    let n = 1_000_000;
    let value = |i: usize| if i.is_multiple_of(2) { 1e4 + 0.5 } else { -1e4 };
    let line = floats((0..n).map(|i| value(i) as f32));
    let exact: f64 = (0..n).map(|i| f64::from(value(i) as f32)).sum();
    let bound = n as f64 * 1e4 * f64::from(f32::EPSILON) * 4.0;
    assert!((folded(FoldId::Sum, &line, &[0]) - exact).abs() < bound);
}

#[test]
fn variance_of_numbers_far_from_zero() {
    let mut random = Random(5);
    let n = 1_000_000;
    let values: Vec<f32> = (0..n).map(|_| 1e6 + random.unit() as f32 * 4.0).collect();
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
    let exact = values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n as f64;
    let line = floats(values.iter().copied());
    let error = |got: f64| ((got - exact) / exact).abs();
    assert!(error(folded(FoldId::Var, &line, &[0])) < 1e-6);
    let columns = line.with_layout(Layout::contiguous(&[n, 1]).unwrap()).unwrap();
    assert!(error(folded(FoldId::Var, &columns, &[0])) < 1e-6);
}

#[test]
fn results_are_cast_to_the_output() {
    let line = input(Layout::contiguous(&[3, 40]).unwrap(), DType::Int32, Kind::Few, 3);
    let want = read(&reduce(FoldId::Sum, &line, &[1], 0.0));
    for dtype in [DType::Int8, DType::Float32, DType::Complex128, DType::Int64] {
        let got = read(&reduce_as(FoldId::Sum, &line, &[1], 0.0, dtype));
        let cast: Vec<Scalar> = want.iter().map(|s| s.cast(dtype)).collect();
        assert_eq!(got, cast);
    }
}

#[test]
fn strided_outputs_are_written_in_place() {
    let view = input(Layout::contiguous(&[6, 50]).unwrap(), DType::Float32, Kind::Few, 3);
    for axis in [0, 1] {
        let want = read(&reduce(FoldId::Sum, &view, &[axis], 0.0));
        let n = want.len();
        let storage = Storage::host(Cpu::ID, 3 * n * 4, true).unwrap();
        let layout = Layout::new(&[n], &[-3], 3 * n - 1).unwrap();
        let mut fresh = Fresh::new(storage, layout, DType::Float32).unwrap();
        let output = fresh.target();
        let request = Reduce {
            fold: FoldId::Sum,
            input: view.borrow(),
            axes: &[axis],
            correction: 0.0,
            output,
        };
        run(&Cpu, "test", &Request::Reduce(request)).unwrap();
        assert_eq!(read(&fresh.finish()), want);
    }
}

/// Runs `f` with 1, 2 and 3 threads and checks that it gives the same each time.
fn same_for_any_threads<T: PartialEq + std::fmt::Debug>(f: impl Fn() -> T) {
    let before = pool::threads();
    pool::set_threads(1);
    let one = f();
    for threads in [2, 3] {
        pool::set_threads(threads);
        for _ in 0..3 {
            assert!(f() == one, "{threads} threads differ from one");
        }
    }
    pool::set_threads(before);
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::Complex64] {
        for (shape, axes) in [
            (&[300_001][..], &[0][..]),
            (&[300, 1001], &[0]),
            (&[300, 1001], &[1]),
            (&[90_000, 3], &[0]),
            (&[40, 80, 90], &[1]),
            (&[40, 80, 90], &[0, 2]),
        ] {
            let view = input(Layout::contiguous(shape).unwrap(), dtype, Kind::NearOne, 13);
            for fold in FoldId::ALL {
                if fold.row().accumulates(dtype).is_some() {
                    same_for_any_threads(|| bytes_of(&reduce(fold, &view, axes, 0.0)));
                }
            }
            for axis in 0..shape.len() {
                same_for_any_threads(|| bytes_of(&scan(FoldId::Sum, &view, axis)));
            }
        }
    }
}

fn scan(fold: FoldId, input: &View, axis: usize) -> View {
    let dtype = result_dtype(fold, input.dtype()).unwrap();
    let layout = Layout::contiguous(input.layout().shape()).unwrap();
    let storage = Storage::host(Cpu::ID, (layout.len() * dtype.size()).max(1), false).unwrap();
    let mut fresh = Fresh::new(storage, layout, dtype).unwrap();
    let output = fresh.target();
    run(&Cpu, "test", &Request::Scan(Scan { fold, input: input.borrow(), axis, output })).unwrap();
    View::clone(&fresh.finish())
}

fn check_scan(fold: FoldId, view: &View, axis: usize, what: &str) {
    let Some(accumulates) = fold.row().accumulates(view.dtype()) else { return };
    let oracle = fold_column::<Oracles>()[fold as usize];
    let got = scan(fold, view, axis);
    let got = groups(&got, &[axis]);
    for (got, line) in got.iter().zip(groups(view, &[axis])) {
        // Long lines are checked at a few places.
        let stride = (line.len() / 40).max(1);
        for i in (0..line.len()).filter(|i| i % stride == 0 || i + 1 == line.len()) {
            let want = oracle(&line[..=i], accumulates, 0.0);
            // A running sum cannot be taken in pairs.
            let scale = scale_of(fold, &line[..=i], want) * (i + 1).min(200) as f64;
            assert!(
                agree(got[i], want, scale, accumulates),
                "running {} of {} {what} axis {axis}, place {i}: {:?} is not {want:?}",
                fold.row().name,
                view.dtype(),
                got[i]
            );
        }
    }
}

#[test]
fn scans_of_every_dtype_and_layout() {
    for fold in [FoldId::Sum, FoldId::Prod, FoldId::Max, FoldId::Min] {
        for dtype in DType::ALL {
            for shape in [&[1][..], &[0], &[20, 17], &[4, 3, 5], &[2, 600]] {
                for (name, layout) in layouts(shape) {
                    let kind = if fold == FoldId::Prod { Kind::NearOne } else { Kind::Few };
                    let view = input(layout, dtype, kind, 7);
                    for axis in 0..shape.len() {
                        check_scan(fold, &view, axis, &format!("{shape:?} {name}"));
                    }
                }
            }
        }
    }
}

#[test]
fn long_scans() {
    for fold in [FoldId::Sum, FoldId::Max] {
        for dtype in [DType::Float32, DType::Int32, DType::Float16] {
            for (shape, axis) in
                [(&[300_000][..], 0), (&[2, 200_000], 1), (&[200_000, 2], 0), (&[2000, 90], 0)]
            {
                let view = input(Layout::contiguous(shape).unwrap(), dtype, Kind::Few, 17);
                check_scan(fold, &view, axis, &format!("long {shape:?}"));
            }
        }
    }
    let n = 1_000_000;
    let line = floats((0..n).map(|_| 0.1));
    let last = read(&scan(FoldId::Sum, &line, 0))[n - 1].get::<f64>();
    assert!((last / (f64::from(0.1f32) * n as f64) - 1.0).abs() < 1e-4);
}
