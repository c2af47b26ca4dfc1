//! Forms of a formula that are not the formula as written: neighbour searches by a filter must give
//! the direct form's values and indices to the last bit, on data made to mislead the filter.

use tilework_backend::{
    Accuracy, PairReduce, Request, Scheme, Storage, SumScheme, Target, UserRead, UserWrite, View,
    run,
};
use tilework_cpu::Cpu;
use tilework_layout::Layout;
use tilework_ops::{DType, Element, Id, PairFoldId, Scalar};
use tilework_tape::{Builder, Per, Slot, SlotId, Tape};

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

/// Small, fast, and good enough to choose test values.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }

    /// Close to normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

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

/// Values and indices by the backend.
fn search<T: Number>(case: &Case<T>, k: usize, then: Then, start: i64) -> (Vec<T>, Vec<i64>) {
    let (m, n, components) = (case.m, case.n, case.components);
    let tape = tape::<T>(components, then);
    let (x, y) = (array(&[m, components], &case.x), array(&[n, components], &case.y));
    let values = array(&[m, k], &vec![T::of(0.0); m * k]);
    let indices = {
        let storage = Storage::host(Cpu::ID, m * k * 8, true).unwrap();
        View::new(storage, Layout::contiguous(&[m, k]).unwrap(), DType::Int64).unwrap()
    };
    let fold = match (then, k) {
        (Then::NegatedHalf, _) => PairFoldId::KMaxArgKMax,
        (_, 1) => PairFoldId::MinArgMin,
        _ => PairFoldId::KMinArgKMin,
    };
    let request = PairReduce {
        tape: &tape,
        fold,
        k,
        inputs: &[x.borrow(), y.borrow()],
        n,
        start,
        sums: SumScheme::Blocks,
        accuracy: Accuracy::Declared,
        scheme: Scheme::Auto,
        finish: true,
        values: Some(Target::shared("test", values.borrow()).unwrap()),
        indices: Some(Target::shared("test", indices.borrow()).unwrap()),
        progress: None,
    };
    run(&Cpu, &Request::PairReduce(request)).unwrap();
    (read(&values), read(&indices))
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
    let (values, indices) = search(case, k, then, start);
    let (expected_values, expected_indices) = expected(case, k, then, start);
    assert_eq!(indices, expected_indices, "{what}");
    for (row, (got, wanted)) in values.iter().zip(&expected_values).enumerate() {
        assert_eq!(got.bits(), wanted.bits(), "{what}: value {row}: {got:?}, not {wanted:?}");
    }
}

fn exact<T: Number>() {
    for (m, n, components) in [(33, 300, 3), (70, 1100, 10), (40, 513, 64), (32, 1030, 2)] {
        for case in cases::<T>(m, n, components) {
            check(&case, 1, Then::Nothing);
            check(&case, 10, Then::Nothing);
            check(&case, 10, Then::Root);
            check(&case, 3, Then::NegatedHalf);
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
    }
}
