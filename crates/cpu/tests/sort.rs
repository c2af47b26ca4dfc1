//! Sorting and searching on the CPU backend against the standard library's stable sort.

mod rng;
mod valid;

use std::cmp::Ordering;

use rng::Rng;
use tilework_backend::{Fresh, Request, Search, Sort, Storage, UserRead, UserWrite, View};
use tilework_cpu::{Cpu, pool};
use tilework_layout::{Layout, positions};
use tilework_ops::{Complex, DType, Element, Kind, Number, Scalar, Value, with_element};
use valid::run;

/// Numbers with ties, zeros of both signs, infinities and NaN.
fn number(random: &mut Rng) -> f64 {
    match random.next() % 24 {
        0 => 0.0,
        1 => -0.0,
        2 => f64::NAN,
        3 => -f64::NAN,
        4 => f64::INFINITY,
        5 => f64::NEG_INFINITY,
        6..12 => (random.next() % 9) as f64 - 4.0,
        _ => (random.next() as i64 >> 32) as f64 / 1e7,
    }
}

fn element(dtype: DType, random: &mut Rng) -> Scalar {
    match dtype.kind() {
        // All bits, so that every digit of a radix sort counts.
        Kind::Signed | Kind::Unsigned if random.next().is_multiple_of(2) => {
            let bytes = [random.next().to_ne_bytes(); 2].concat();
            Scalar::from_bytes(dtype, &bytes)
        }
        Kind::Unsigned => Number::Int((random.next() % 9).into()).cast(dtype),
        Kind::Bool => Scalar::new(random.next().is_multiple_of(2)),
        Kind::Complex => {
            Number::Complex(Complex::new(number(random).round(), number(random))).cast(dtype)
        }
        _ => Number::Float(number(random)).cast(dtype),
    }
}

fn input(layout: Layout, dtype: DType, seed: u64) -> View {
    let mut random = Rng(seed);
    filled(layout, dtype, |_| element(dtype, &mut random))
}

/// A view of the elements that `f` makes of the places in memory.
fn filled(layout: Layout, dtype: DType, mut f: impl FnMut(usize) -> Scalar) -> View {
    let len = layout.span().map_or(0, |(_, high)| high + 1);
    let storage = Storage::host(Cpu::ID, (len * dtype.size()).max(1), true).unwrap();
    {
        let mut bytes = UserWrite::new("test", &storage).unwrap();
        for i in 0..len {
            let scalar = f(i);
            bytes[i * dtype.size()..(i + 1) * dtype.size()].copy_from_slice(scalar.bytes());
        }
    }
    View::new(storage, layout, dtype).unwrap()
}

fn read(view: &View) -> Vec<Scalar> {
    let bytes = UserRead::new("test", view.storage()).unwrap();
    let size = view.dtype().size();
    positions(view.layout())
        .map(|at| Scalar::from_bytes(view.dtype(), &bytes[at * size..]))
        .collect()
}

/// The order of sorting, by its definition.
fn order(a: Scalar, b: Scalar, descending: bool) -> Ordering {
    /// Kinds of NaN come after each other, whatever the direction.
    fn kind<T: Element>(x: T) -> u8 {
        let z: Complex<f64> = x.widen().cast();
        u8::from(z.im.is_nan()) + 2 * u8::from(z.re.is_nan())
    }
    fn numbers(z: Complex<f64>) -> [f64; 2] {
        [z.re, z.im].map(|x| if x.is_nan() { 0.0 } else { x })
    }
    with_element!(a.dtype(), T => {
        let (x, y) = (a.get::<T>(), b.get::<T>());
        let kinds = kind(x).cmp(&kind(y));
        if kinds != Ordering::Equal {
            return kinds;
        }
        let (v, w) = (x.widen(), y.widen());
        let values = if kind(x) != 0 {
            numbers(v.cast()).partial_cmp(&numbers(w.cast())).unwrap()
        } else if v.precedes(w) {
            Ordering::Less
        } else if w.precedes(v) {
            Ordering::Greater
        } else {
            Ordering::Equal
        };
        if descending { values.reverse() } else { values }
    })
}

fn sort(view: &View, axis: usize, descending: bool, indices: bool) -> View {
    let layout = Layout::contiguous(view.layout().shape()).unwrap();
    let dtype = if indices { DType::Int64 } else { view.dtype() };
    let storage = Storage::host(Cpu::ID, (layout.len() * dtype.size()).max(1), false).unwrap();
    let mut fresh = Fresh::new(storage, layout, dtype).unwrap();
    let output = fresh.target();
    let request = Sort { input: view.borrow(), axis, descending, output, indices };
    run(&Cpu, "test", &Request::Sort(request)).unwrap();
    View::clone(&fresh.finish())
}

/// Lines along an axis, in row-major order of the others.
fn lines(view: &View, axis: usize) -> Vec<Vec<Scalar>> {
    let turned = view.layout().move_axis(axis as isize, -1).unwrap();
    let turned = view.with_layout(turned).unwrap();
    let len = view.layout().shape()[axis];
    read(&turned).chunks(len.max(1)).map(<[Scalar]>::to_vec).collect()
}

fn check(view: &View, axis: usize, what: &str) {
    for descending in [false, true] {
        let sorted = lines(&sort(view, axis, descending, false), axis);
        let indices = lines(&sort(view, axis, descending, true), axis);
        for (i, line) in lines(view, axis).iter().enumerate() {
            let mut want: Vec<usize> = (0..line.len()).collect();
            want.sort_by(|&a, &b| order(line[a], line[b], descending));
            let got: Vec<usize> = indices[i].iter().map(|s| s.get::<i64>() as usize).collect();
            let dtype = view.dtype();
            assert!(got == want, "indices of {dtype} {what} descending {descending}");
            // Bits, so that zeros of both signs and kinds of NaN show whether order was kept.
            let want: Vec<Scalar> = want.iter().map(|&at| line[at]).collect();
            assert!(sorted[i] == want, "values of {dtype} {what} descending {descending}");
        }
    }
}

#[test]
fn every_dtype_and_length() {
    for dtype in DType::ALL {
        for n in [1, 2, 3, 8, 17, 64, 500, 513, 3000] {
            check(&input(Layout::contiguous(&[n]).unwrap(), dtype, n as u64), 0, &format!("{n}"));
        }
    }
}

/// The element at a place of so many, by a pattern.
type Pattern = fn(DType, usize, usize, &mut Rng) -> Scalar;

fn int(dtype: DType, value: u64) -> Scalar {
    Number::Int(value.into()).cast(dtype)
}

/// Elements that repeat, that are in order here and there, that differ in few bits.
const PATTERNS: [(&str, Pattern); 19] = [
    ("one", |dtype, _, _, _| int(dtype, 3)),
    ("two values", |dtype, _, _, random| int(dtype, random.next() % 2)),
    ("ten values", |dtype, _, _, random| int(dtype, random.next() % 10)),
    // So few that they are counted, but that a sample misses some; and just too many.
    ("ten values, six of them rare", |dtype, _, _, random| match random.next() % 500 {
        0 => int(dtype, 4 + random.next() % 6),
        other => int(dtype, other % 4),
    }),
    ("sixteen values, or one more at the end", |dtype, i, n, random| match i + 1 == n {
        true => int(dtype, 5 + n as u64 % 16),
        false => int(dtype, random.next() % 16),
    }),
    ("thirty values, or four more at the end", |dtype, i, n, random| match i + 20 > n {
        true => int(dtype, random.next() % 34),
        false => int(dtype, random.next() % 30),
    }),
    // Integers that lie close together, on both sides of zero.
    ("a hundred values", |dtype, _, _, random| {
        Number::Int(i128::from(random.next() % 100) - 50).cast(dtype)
    }),
    ("two thousand values", |dtype, _, _, random| {
        Number::Int(i128::from(random.next() % 2000) - 1000).cast(dtype)
    }),
    ("almost the largest", |dtype, _, _, random| match dtype.kind() {
        Kind::Signed | Kind::Unsigned => {
            let bits = u64::MAX - random.next() % 1500;
            Scalar::from_bytes(dtype, &[bits.to_ne_bytes(); 2].concat())
        }
        _ => int(dtype, random.next() % 1500),
    }),
    // Numbers of few bits on both sides of zero, and zeros of both signs.
    ("rounded", |dtype, _, _, random| {
        let number = Number::Float(((random.next() % 41) as f64 - 20.2).round() / 8.0);
        match dtype.kind() {
            Kind::Bool | Kind::Unsigned => int(dtype, random.next() % 2),
            _ => number.cast(dtype),
        }
    }),
    ("special values", |dtype, _, _, random| match random.next() % 6 {
        0 if dtype.is_inexact() => Number::Float(f64::NAN).cast(dtype),
        1 if dtype.is_inexact() => Number::Float(-f64::NAN).cast(dtype),
        2 if dtype.is_inexact() => Number::Float(f64::NEG_INFINITY).cast(dtype),
        3 => Number::Float(-0.0).cast(dtype),
        4 => Number::Float(0.0).cast(dtype),
        _ => int(dtype, 1),
    }),
    ("rare others", |dtype, _, _, random| match random.next() % 50 {
        0 => element(dtype, random),
        other => int(dtype, other % 2),
    }),
    ("half NaN", |dtype, _, _, random| match random.next() % 2 {
        0 if dtype.is_inexact() => Number::Float(f64::NAN).cast(dtype),
        _ => element(dtype, random),
    }),
    ("half zeros", |dtype, _, _, random| match random.next() % 4 {
        0 => Number::Float(0.0).cast(dtype),
        1 => Number::Float(-0.0).cast(dtype),
        _ => element(dtype, random),
    }),
    ("ascending", |dtype, i, _, _| int(dtype, i as u64 / 3)),
    ("descending", |dtype, i, n, _| int(dtype, (n - i) as u64)),
    ("organ pipe", |dtype, i, n, _| int(dtype, i.min(n - i) as u64)),
    ("a tail", |dtype, i, n, random| match i + 5 < n {
        true => int(dtype, i as u64),
        false => int(dtype, random.next() % n as u64),
    }),
    // What an integer of key and index has no room for decides.
    ("high and low bits", |dtype, _, _, random| {
        let high = (random.next() % 3) << 61;
        let bits = high | (random.next() % 7) << 40 | (random.next() % 5);
        match dtype.kind() {
            Kind::Bool => int(dtype, bits % 2),
            _ => Scalar::from_bytes(dtype, &[bits.to_ne_bytes(); 2].concat()),
        }
    }),
];

#[test]
fn every_pattern_of_every_dtype() {
    for dtype in DType::ALL {
        for (name, pattern) in PATTERNS {
            for n in [2, 5, 127, 129, 257, 513, 3000] {
                let mut random = Rng(n as u64);
                let of = |i| pattern(dtype, i, n, &mut random);
                let view = filled(Layout::contiguous(&[n]).unwrap(), dtype, of);
                check(&view, 0, &format!("{n} {name}"));
            }
            let n = 600;
            let mut random = Rng(7);
            let of = |i| pattern(dtype, i, 3 * n, &mut random);
            let steps = filled(Layout::new(&[n], &[3], 0).unwrap(), dtype, of);
            check(&steps, 0, &format!("{n} {name} in steps"));
        }
    }
}

#[test]
fn every_pattern_of_long_lines() {
    let n = 70_001;
    for dtype in [DType::Float32, DType::Int64, DType::Int16] {
        for (name, pattern) in PATTERNS {
            let mut random = Rng(n as u64);
            let of = |i| pattern(dtype, i, n, &mut random);
            let view = filled(Layout::contiguous(&[n]).unwrap(), dtype, of);
            check(&view, 0, &format!("{n} {name}"));
        }
    }
}

#[test]
fn lines_that_threads_sort_in_pieces() {
    let before = pool::threads();
    for threads in [2, 3, 5] {
        pool::set_threads(threads);
        for (dtype, n) in [(DType::Float32, 8_192), (DType::Float64, 9_001), (DType::Int32, 40_001)]
        {
            for (name, pattern) in PATTERNS {
                let mut random = Rng(n as u64);
                let of = |i| pattern(dtype, i, n, &mut random);
                let view = filled(Layout::contiguous(&[n]).unwrap(), dtype, of);
                check(&view, 0, &format!("{n} {name} by {threads}"));
            }
        }
    }
    pool::set_threads(before);
}

#[test]
fn short_lines_of_every_length_and_number() {
    for dtype in DType::ALL {
        for len in 2..35 {
            // Few that are sorted one by one, and groups of them, the last one not whole.
            for count in [7, 8, 32, 75] {
                let [rows, columns] = [[count, len], [len, count]];
                for (axis, shape) in [(1, rows), (0, columns)] {
                    let layout = Layout::contiguous(&shape).unwrap();
                    let (_, few) = PATTERNS[2];
                    let mut random = Rng((len * count) as u64);
                    let plain = filled(layout.clone(), dtype, |i| few(dtype, i, len, &mut random));
                    check(&plain, axis, &format!("{shape:?} few values"));
                    let what = format!("{shape:?} axis {axis}");
                    check(&input(layout, dtype, len as u64), axis, &what);
                }
            }
        }
    }
}

#[test]
fn every_axis_and_layout() {
    for dtype in [DType::Float32, DType::Int8, DType::Complex64, DType::Float16] {
        for shape in [&[5, 7, 3][..], &[600, 2], &[2, 600], &[0, 3], &[3, 0], &[1, 1]] {
            let plain = Layout::contiguous(shape).unwrap();
            let mut layouts = vec![plain.clone()];
            if !plain.is_empty() {
                layouts.push(plain.flip(None).unwrap());
                let steps: Vec<isize> = plain.strides().iter().map(|s| s * 3).collect();
                layouts.push(Layout::new(shape, &steps, 0).unwrap());
                layouts.push(Layout::new(shape, &vec![0; shape.len()], 0).unwrap());
                let back: Vec<usize> = shape.iter().rev().copied().collect();
                layouts.push(Layout::contiguous(&back).unwrap().transpose());
            }
            for layout in layouts {
                let view = input(layout, dtype, 3);
                for axis in 0..shape.len() {
                    check(&view, axis, &format!("{:?} axis {axis}", view.layout()));
                }
            }
        }
    }
}

#[test]
fn a_single_number_is_sorted() {
    let view = input(Layout::scalar(), DType::Float32, 3);
    assert_eq!(read(&sort(&view, 0, false, false)), read(&view));
    assert_eq!(read(&sort(&view, 0, false, true)), [Scalar::new(0i64)]);
}

#[test]
fn long_lines_by_any_number_of_threads() {
    let before = pool::threads();
    for threads in [1, 2, 3] {
        pool::set_threads(threads);
        for dtype in [DType::Float32, DType::UInt64] {
            let view = input(Layout::contiguous(&[100_000]).unwrap(), dtype, 5);
            check(&view, 0, "long");
        }
    }
    pool::set_threads(before);
}

#[test]
fn zeros_and_nan_keep_their_order() {
    let values = [0.0, -0.0, f32::NAN, 1.0, -0.0, 0.0, -f32::NAN, -1.0, -0.0];
    let storage = Storage::host(Cpu::ID, values.len() * 4, true).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
    UserWrite::new("test", &storage).unwrap()[..bytes.len()].copy_from_slice(&bytes);
    let view =
        View::new(storage, Layout::contiguous(&[values.len()]).unwrap(), DType::Float32).unwrap();
    for (descending, order) in
        [(false, [7, 0, 1, 4, 5, 8, 3, 2, 6]), (true, [3, 0, 1, 4, 5, 8, 7, 2, 6])]
    {
        let indices: Vec<i64> =
            read(&sort(&view, 0, descending, true)).iter().map(|s| s.get::<i64>()).collect();
        assert_eq!(indices, order);
        let want: Vec<Scalar> = order.iter().map(|&i| Scalar::new(values[i as usize])).collect();
        assert_eq!(read(&sort(&view, 0, descending, false)), want);
    }
}

#[test]
fn searches_find_where_values_belong() {
    for dtype in DType::ALL {
        for n in [0, 1, 2, 7, 64, 1000] {
            let unsorted = input(Layout::contiguous(&[n]).unwrap(), dtype, 9);
            let ascending = sort(&unsorted, 0, false, false);
            let elements = read(&ascending);
            let values = input(Layout::contiguous(&[20, 3]).unwrap().transpose(), dtype, 10);
            // A descending array read backwards is ascending too.
            let mut turned = input(Layout::contiguous(&[n]).unwrap(), dtype, 1);
            if n > 0 {
                {
                    let mut bytes = UserWrite::new("test", turned.storage()).unwrap();
                    for (i, scalar) in elements.iter().rev().enumerate() {
                        let size = dtype.size();
                        bytes[i * size..(i + 1) * size].copy_from_slice(scalar.bytes());
                    }
                }
                turned = turned.with_layout(turned.layout().flip(Some(&[0])).unwrap()).unwrap();
            }
            for (sorted, right) in
                [(&ascending, false), (&ascending, true), (&turned, false), (&turned, true)]
            {
                let layout = Layout::contiguous(&[3, 20]).unwrap();
                let storage = Storage::host(Cpu::ID, 60 * 8, false).unwrap();
                let mut fresh = Fresh::new(storage, layout, DType::Int64).unwrap();
                let output = fresh.target();
                let request =
                    Search { sorted: sorted.borrow(), values: values.borrow(), right, output };
                run(&Cpu, "test", &Request::Search(request)).unwrap();
                for (got, value) in read(&fresh.finish()).iter().zip(read(&values)) {
                    let before = |x: &Scalar| {
                        let order = order(*x, value, false);
                        order == Ordering::Less || right && order == Ordering::Equal
                    };
                    let want = elements.partition_point(before) as i64;
                    assert_eq!(
                        got.get::<i64>(),
                        want,
                        "{value:?} in {n} of {dtype}, right {right}"
                    );
                }
            }
        }
    }
}
