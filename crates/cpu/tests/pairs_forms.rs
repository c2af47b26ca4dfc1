//! Forms of a formula that are not the formula as written: neighbour searches by a filter must give
//! the direct form's values and indices to the last bit, on data made to mislead the filter.

mod rng;
mod valid;

use rng::Rng;
use tilework_backend::{
    Accuracy, PairReduce, Request, Scheme, Storage, SumScheme, Target, UserRead, UserWrite, View,
};
use tilework_cpu::Cpu;
use tilework_layout::Layout;
use tilework_ops::{DType, Element, Id, PairFoldId, Scalar};
use tilework_tape::{Builder, Per, Slot, SlotId, Tape};
use valid::{explain, run};

/// Numbers that the tests compute in.
trait Number: Element<V = Self, Raw = Self> + PartialOrd {
    fn of(x: f64) -> Self;
    fn distance(x: &[Self], y: &[Self]) -> Self;
    fn root(self) -> Self;
    fn times(self, factor: f64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! number {
    ($T:ty) => {
        impl Number for $T {
            fn of(x: f64) -> $T {
                x as $T
            }
            fn distance(x: &[$T], y: &[$T]) -> $T {
                x.iter().zip(y).fold(0.0, |sum, (x, y)| (x - y).mul_add(x - y, sum))
            }
            fn root(self) -> $T {
                self.sqrt()
            }
            fn times(self, factor: f64) -> $T {
                self * factor as $T
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    };
}

number!(f32);
number!(f64);

/// A row-major array of its own.
fn array<T: Number>(shape: &[usize], numbers: &[T]) -> View {
    let storage = Storage::host(Cpu::ID, size_of_val(numbers).max(1), true).unwrap();
    {
        let mut bytes = UserWrite::new("test", &storage).unwrap();
        for (to, number) in bytes.chunks_exact_mut(size_of::<T>()).zip(numbers) {
            to.copy_from_slice(Scalar::new(*number).bytes());
        }
    }
    View::new(storage, Layout::contiguous(shape).unwrap(), T::DTYPE).unwrap()
}

fn read<T: Element>(view: &View) -> Vec<T> {
    let bytes = UserRead::new("test", view.storage()).unwrap();
    let number = |bytes: &[u8]| Scalar::from_bytes(view.dtype(), bytes).get::<T>();
    bytes.chunks_exact(size_of::<T>()).map(number).collect()
}

/// What is done to the squared distance.
#[derive(Debug, Clone, Copy)]
enum Then {
    Nothing,
    Root,
    NegatedHalf,
}

fn tape<T: Number>(components: usize, then: Then) -> Tape {
    let mut build = Builder::new();
    let slot = Slot { dtype: T::DTYPE, len: components as u32 };
    let (x, y) = (build.input(slot, Per::I), build.input(slot, Per::J));
    let difference = build.apply(Id::Subtract, &[x, y]).unwrap();
    let square = build.dot(difference, difference).unwrap();
    let result: SlotId = match then {
        Then::Nothing => square,
        Then::Root => build.apply(Id::SqrtFlat, &[square]).unwrap(),
        Then::NegatedHalf => {
            let factor = build.constant(Scalar::new(-0.5f64).cast(T::DTYPE), 1);
            build.apply(Id::Multiply, &[square, factor]).unwrap()
        }
    };
    build.finish(&[result]).unwrap()
}

struct Case<T> {
    what: String,
    m: usize,
    n: usize,
    components: usize,
    x: Vec<T>,
    y: Vec<T>,
}

/// What a test asks for.
struct Ask<'a> {
    tape: &'a Tape,
    fold: PairFoldId,
    k: usize,
    inputs: &'a [View],
    sizes: (usize, usize),
    start: i64,
    accuracy: Accuracy,
}

/// What the backend gives for it, and how it says it did that.
struct Answer<T> {
    values: Vec<T>,
    indices: Vec<i64>,
    how: String,
}

fn ask<T: Number>(ask: &Ask<'_>) -> Answer<T> {
    let (m, n) = ask.sizes;
    let row = ask.fold.row();
    let values = array(&[m, ask.k], &vec![T::of(0.0); m * ask.k]);
    let storage = Storage::host(Cpu::ID, m * ask.k * 8, true).unwrap();
    let layout = Layout::contiguous(&[m, ask.k]).unwrap();
    let indices = View::new(storage, layout, DType::Int64).unwrap();
    let inputs: Vec<_> = ask.inputs.iter().map(View::borrow).collect();
    let target = |wanted: bool, view| wanted.then(|| Target::shared("test", view).unwrap());
    let request = Request::PairReduce(PairReduce {
        tape: ask.tape,
        fold: ask.fold,
        k: ask.k,
        inputs: &inputs,
        n,
        start: ask.start,
        sums: SumScheme::Blocks,
        accuracy: ask.accuracy,
        scheme: Scheme::Auto,
        finish: true,
        values: target(row.gives_values, values.borrow()),
        indices: target(row.gives_indices, indices.borrow()),
        progress: None,
    });
    run(&Cpu, "test", &request).unwrap();
    let how = explain(&Cpu, "test", &request).unwrap();
    Answer { values: read(&values), indices: read(&indices), how }
}

/// Values and indices by the backend.
fn search<T: Number>(case: &Case<T>, k: usize, then: Then, start: i64) -> Answer<T> {
    let (m, n, components) = (case.m, case.n, case.components);
    let inputs = [array(&[m, components], &case.x), array(&[n, components], &case.y)];
    let fold = match (then, k) {
        (Then::NegatedHalf, _) => PairFoldId::KMaxArgKMax,
        (_, 1) => PairFoldId::MinArgMin,
        _ => PairFoldId::KMinArgKMin,
    };
    ask(&Ask {
        tape: &tape::<T>(components, then),
        fold,
        k,
        inputs: &inputs,
        sizes: (m, n),
        start,
        accuracy: Accuracy::Declared,
    })
}

/// The same by the definition.
fn expected<T: Number>(case: &Case<T>, k: usize, then: Then, start: i64) -> (Vec<T>, Vec<i64>) {
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    let c = case.components;
    for x in case.x.chunks_exact(c) {
        let value = |(j, y): (usize, &[T])| {
            let square = T::distance(x, y);
            let value = match then {
                Then::Nothing => square,
                Then::Root => square.root(),
                Then::NegatedHalf => square.times(-0.5),
            };
            (value, j as i64 + start)
        };
        let mut all: Vec<(T, i64)> = case.y.chunks_exact(c).enumerate().map(value).collect();
        all.retain(|(value, _)| value.partial_cmp(value).is_some());
        // Stable, so equal values stay in the order of their indices.
        all.sort_by(|a, b| match then {
            Then::NegatedHalf => b.0.partial_cmp(&a.0).unwrap(),
            _ => a.0.partial_cmp(&b.0).unwrap(),
        });
        let nothing = match then {
            Then::NegatedHalf => T::of(f64::NEG_INFINITY),
            _ => T::of(f64::INFINITY),
        };
        all.resize(k.max(all.len()), (nothing, -1));
        values.extend(all[..k].iter().map(|(value, _)| *value));
        indices.extend(all[..k].iter().map(|(_, index)| *index));
    }
    (values, indices)
}

/// Points whose distances mislead: by name, what fills component `c` of point `row`.
fn cases<T: Number>(m: usize, n: usize, components: usize) -> Vec<Case<T>> {
    type Draw = fn(&mut Rng, usize, usize) -> f64;
    let draws: &[(&str, Draw)] = &[
        ("normal", |rng, _, _| rng.normal()),
        ("far from the origin", |rng, _, c| 1000.0 * (c + 1) as f64 + rng.normal()),
        ("a grid full of ties", |rng, _, _| (rng.unit() * 3.0).floor()),
        ("all equal", |_, _, c| 0.1 * (c as f64 + 1.0)),
        ("two far clusters", |rng, row, _| (row % 2) as f64 * 1e4 + 1e-3 * rng.normal()),
        ("one point far out", |rng, row, _| if row == 7 { 1e6 } else { rng.normal() }),
        ("subnormal", |rng, _, _| 1e-41 * rng.normal()),
        ("squares that underflow", |rng, _, _| 1e-22 * rng.normal()),
        ("squares that overflow", |rng, _, _| 1e30 * rng.normal()),
        ("large", |rng, _, _| 1e8 * rng.normal()),
        ("an infinity", |rng, row, _| if row == 100 { f64::INFINITY } else { rng.normal() }),
        ("a NaN", |rng, row, c| if row == 100 && c == 0 { f64::NAN } else { rng.normal() }),
        ("doubles", |rng, row, c| {
            let mut own = Rng((row / 2 * 64 + c) as u64);
            own.normal() + 0.0 * rng.unit()
        }),
    ];
    let case = |(what, draw): &(&str, Draw)| {
        let mut rng = Rng(42);
        let mut draw_all = |rows: usize| -> Vec<T> {
            let index = |k: usize| (k / components, k % components);
            (0..rows * components).map(|k| T::of(draw(&mut rng, index(k).0, index(k).1))).collect()
        };
        let (x, y) = (draw_all(m), draw_all(n));
        let what = format!("{what}, {}, {m} x {n} x {components}", T::DTYPE);
        Case { what, m, n, components, x, y }
    };
    draws.iter().map(case).collect()
}

fn check<T: Number>(case: &Case<T>, k: usize, then: Then) {
    let what = format!("{} nearest ({then:?}), {}", k, case.what);
    let start = 1 << 40;
    let Answer { values, indices, how } = search(case, k, then, start);
    assert!(how.contains("filtered by"), "{what}: {how}");
    let (expected_values, expected_indices) = expected(case, k, then, start);
    assert_eq!(indices, expected_indices, "{what}");
    for (row, (got, wanted)) in values.iter().zip(&expected_values).enumerate() {
        assert_eq!(got.bits(), wanted.bits(), "{what}: value {row}: {got:?}, not {wanted:?}");
    }
}

fn exact<T: Number>() {
    for (m, n, components) in [(33, 6200, 3), (70, 2300, 10), (40, 513, 64), (32, 8200, 2)] {
        for case in cases::<T>(m, n, components) {
            check(&case, 1, Then::Nothing);
            check(&case, 10, Then::Nothing);
            check(&case, 10, Then::Root);
            check(&case, 3, Then::NegatedHalf);
            check(&case, n / 16, Then::Nothing);
            check(&case, 129.min(n / 16), Then::Root);
            check(&case, 65.min(n / 16), Then::NegatedHalf);
        }
    }
}

#[test]
fn nearest_are_those_of_the_direct_form_in_float32() {
    exact::<f32>();
}

#[test]
fn nearest_are_those_of_the_direct_form_in_float64() {
    exact::<f64>();
}

#[test]
fn pieces_of_a_long_search_agree() {
    // Few i and many j: ranges of j are pieces of their own.
    for case in cases::<f32>(40, 40_000, 3).into_iter().take(3) {
        check(&case, 1, Then::Nothing);
        check(&case, 10, Then::Nothing);
        check(&case, 200, Then::Nothing);
        check(&case, 600, Then::Root);
    }
}

/// exp(-d2 / s) b or, without b, -d2 / s, where s is a parameter and d2 a squared distance.
fn gauss<T: Number>(components: usize, with_b: bool) -> Tape {
    let mut build = Builder::new();
    let slot = Slot { dtype: T::DTYPE, len: components as u32 };
    let (x, y) = (build.input(slot, Per::I), build.input(slot, Per::J));
    let s = build.input(Slot::scalar(T::DTYPE), Per::Once);
    let b = with_b.then(|| build.input(Slot::scalar(T::DTYPE), Per::J));
    let difference = build.apply(Id::Subtract, &[x, y]).unwrap();
    let square = build.dot(difference, difference).unwrap();
    let negative = build.apply(Id::Negative, &[square]).unwrap();
    let mut result = build.apply(Id::Divide, &[negative, s]).unwrap();
    if let Some(b) = b {
        result = build.apply(Id::Exp, &[result]).unwrap();
        result = build.apply(Id::Multiply, &[result, b]).unwrap();
    }
    build.finish(&[result]).unwrap()
}

/// A Gaussian sum and a logsumexp: error against float64 relative to the sum of terms, and how.
fn gaussian_error<T: Number>(case: &Case<T>, s: f64, accuracy: Accuracy) -> [(f64, String); 2] {
    let (m, n, components) = (case.m, case.n, case.components);
    let b: Vec<T> = (0..n).map(|j| T::of(1.0 + (j % 7) as f64)).collect();
    let mut inputs = vec![array(&[m, components], &case.x), array(&[n, components], &case.y)];
    inputs.extend([array(&[1], &[T::of(s)]), array(&[n, 1], &b)]);
    let number = |x: &T| Scalar::new(*x).cast(DType::Float64).get::<f64>();
    let s = number(&T::of(s));
    [true, false].map(|with_b| {
        let fold = if with_b { PairFoldId::Sum } else { PairFoldId::LogSumExp };
        let answer = ask::<T>(&Ask {
            tape: &gauss::<T>(components, with_b),
            fold,
            k: 1,
            inputs: &inputs[..if with_b { 4 } else { 3 }],
            sizes: (m, n),
            start: 0,
            accuracy,
        });
        let mut worst: f64 = 0.0;
        // Some rows of those that have thousands of components.
        let rows = case.x.chunks_exact(components).zip(&answer.values);
        for (x, got) in rows.step_by(1 + components / 512) {
            let term = |(y, b): (&[T], &T)| {
                let square = x.iter().zip(y).map(|(x, y)| (number(x) - number(y)).powi(2));
                (-square.sum::<f64>() / s).exp() * if with_b { number(b) } else { 1.0 }
            };
            let sum: f64 = case.y.chunks_exact(components).zip(&b).map(term).sum();
            let error = if with_b { number(got) / sum - 1.0 } else { number(got) - sum.ln() };
            worst = worst.max(error.abs());
        }
        (worst, answer.how)
    })
}

#[test]
fn expanded_squares_keep_their_bound() {
    let wide = [(300, 517, 64), (257, 1000, 33), (300, 300, 96), (256, 300, 301)];
    for (m, n, components) in wide.into_iter().chain([(300, 3517, 3), (257, 4100, 10)]) {
        let form = if components < 16 { "expanded square in" } else { "expanded square given" };
        let case = &cases::<f32>(m, n, components)[0];
        for (error, how) in gaussian_error(case, components as f64, Accuracy::Declared) {
            assert!(how.contains(form), "{}: {how}", case.what);
            // The bound of the form, and some roundings of exponents and sums.
            assert!(error < 1e-5 + 2e-6, "{}: {error:e}", case.what);
        }
        let case = &cases::<f64>(m, n, components)[0];
        for (error, how) in gaussian_error(case, components as f64, Accuracy::Declared) {
            assert!(how.contains(form), "{}: {how}", case.what);
            assert!(error < 2e-14 + 4e-15, "{}: {error:e}", case.what);
        }
    }
}

/// Sums of sums of sums, and a filter whose bound is wide: what distances of so many components have.
#[test]
fn thousands_of_components() {
    let case = &cases::<f32>(256, 256, 4160)[0];
    let [(error, how), _] = gaussian_error(case, 4160.0, Accuracy::Declared);
    assert!(how.contains("expanded square given"), "{how}");
    assert!(error < 1e-5 + 2e-6, "{error:e}");
    check(&cases::<f32>(32, 100, 4160)[0], 3, Then::Nothing);
}

#[test]
fn expanded_squares_are_not_used_where_they_would_cancel() {
    for components in [3, 16] {
        let all = cases::<f32>(300, 3500, components);
        for (case, s) in
            [(&all[1], 1e-4), (&all[4], 1.0), (&all[8], 16.0), (&all[10], 16.0), (&all[11], 16.0)]
        {
            for (_, how) in gaussian_error(case, s, Accuracy::Declared) {
                assert!(how.contains("direct: R^2"), "{}: {how}", case.what);
            }
        }
    }
    let all = cases::<f32>(300, 400, 16);
    // Far from the origin is no matter once the points are centred.
    let declared = gaussian_error(&all[1], 16.0, Accuracy::Declared);
    let strict = gaussian_error(&all[1], 16.0, Accuracy::Strict);
    for ((declared, how), (strict, why)) in declared.iter().zip(&strict) {
        assert!(how.contains("expanded square given"), "{how}");
        assert!(why.contains("direct: accuracy is strict"), "{why}");
        assert!(*declared <= 1e-5 + 2.0 * strict, "{declared:e} against {strict:e}");
    }
}

#[test]
fn exponents_with_a_summand_are_expanded_too() {
    // The score of optimal transport: (g - d2) / eps under a logsumexp.
    let case = &cases::<f32>(300, 3500, 3)[0];
    let mut build = Builder::new();
    let slot = Slot { dtype: DType::Float32, len: 3 };
    let (x, y) = (build.input(slot, Per::I), build.input(slot, Per::J));
    let g = build.input(Slot::scalar(DType::Float32), Per::J);
    let difference = build.apply(Id::Subtract, &[x, y]).unwrap();
    let square = build.dot(difference, difference).unwrap();
    let score = build.apply(Id::Subtract, &[g, square]).unwrap();
    let eighth = build.constant(Scalar::new(0.125f32), 1);
    let score = build.apply(Id::Multiply, &[score, eighth]).unwrap();
    let tape = build.finish(&[score]).unwrap();
    let of_j: Vec<f32> = (0..3500).map(|j| (j % 5) as f32).collect();
    let inputs = [array(&[300, 3], &case.x), array(&[3500, 3], &case.y), array(&[3500, 1], &of_j)];
    let answer = |accuracy| {
        let (fold, k, sizes) = (PairFoldId::LogSumExp, 1, (300, 3500));
        ask::<f32>(&Ask { tape: &tape, fold, k, inputs: &inputs, sizes, start: 0, accuracy })
    };
    let (declared, strict) = (answer(Accuracy::Declared), answer(Accuracy::Strict));
    assert!(declared.how.contains("expanded square in the loop"), "{}", declared.how);
    for (a, b) in declared.values.iter().zip(&strict.values) {
        assert!((a - b).abs() < 1e-5, "{a} against {b}");
    }
}

#[test]
fn wide_inner_products_keep_their_bits() {
    // Beside a long vector of j, blocks of j do not begin where tiles do.
    let beside = [1, 700]
        .into_iter()
        .flat_map(|len| cases::<f32>(270, 600, 40).into_iter().map(move |case| (case, len)));
    for (case, len) in beside {
        let mut build = Builder::new();
        let slot = |len| Slot { dtype: DType::Float32, len };
        let (x, y) = (build.input(slot(40), Per::I), build.input(slot(40), Per::J));
        let w = build.input(slot(len), Per::J);
        let (product, of_j) = (build.dot(x, y).unwrap(), build.dot(w, w).unwrap());
        let sum = build.apply(Id::Add, &[product, of_j]).unwrap();
        let tape = build.finish(&[sum]).unwrap();
        let numbers: Vec<f32> = (0..600 * len).map(|k| (k % 13) as f32 * 0.125).collect();
        let mut inputs = vec![array(&[270, 40], &case.x), array(&[600, 40], &case.y)];
        inputs.push(array(&[600, len as usize], &numbers));
        let answer = |accuracy| {
            let (fold, k, sizes) = (PairFoldId::MaxArgMax, 1, (270, 600));
            ask::<f32>(&Ask { tape: &tape, fold, k, inputs: &inputs, sizes, start: 0, accuracy })
        };
        let (declared, strict) = (answer(Accuracy::Declared), answer(Accuracy::Strict));
        assert!(declared.how.contains("given by matrix products"), "{}", declared.how);
        let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|x| x.to_bits()).collect() };
        assert_eq!(bits(&declared.values), bits(&strict.values), "{}", case.what);
        assert_eq!(declared.indices, strict.indices, "{}", case.what);
    }
}
