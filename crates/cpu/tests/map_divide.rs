//! Divisions of integers against exact arithmetic: by one divisor for all elements, which becomes a
//! multiplier, and by divisors that change.

mod map_support;

use map_support::*;
use tilework_backend::Operand;
use tilework_layout::Layout;
use tilework_ops::{Element, Id, Scalar};
use tilework_tape::Tape;

/// An integer dtype, seen by exact arithmetic.
trait Whole: Element {
    fn wide(self) -> i128;
    fn wrapped(x: i128) -> Self;
}

macro_rules! wholes {
    ($($type:ident)*) => {$(
        impl Whole for $type {
            fn wide(self) -> i128 { self as i128 }
            fn wrapped(x: i128) -> $type { x as $type }
        }
    )*};
}

wholes!(i8 u8 i16 u16 i32 u32 i64 u64);

/// Quotient and rest by the definition: rounded down, the quotient modulo the width, 0 by zero.
fn exact<T: Whole>(x: T, divisor: T) -> [T; 2] {
    let (x, d) = (x.wide(), divisor.wide());
    if d == 0 {
        return [T::wrapped(0); 2];
    }
    let floor = x / d - i128::from(x % d != 0 && (x < 0) != (d < 0));
    [T::wrapped(floor), T::wrapped(x - floor * d)]
}

/// Divides arrays; one divisor is a value, or an array of stride 0 where `still`.
#[track_caller]
fn check<T: Whole>(x: &[T], divisors: &[T], still: bool) {
    let dtype = T::DTYPE;
    let layout = Layout::contiguous(&[x.len()]).unwrap();
    let scalars = |x: &[T]| x.iter().map(|x| Scalar::new(*x)).collect::<Vec<_>>();
    let left = array(layout.clone(), dtype, &scalars(x));
    let step = isize::from(divisors.len() > 1);
    let right = array(Layout::new(&[x.len()], &[step], 0).unwrap(), dtype, &scalars(divisors));
    for (id, which) in [(Id::FloorDivide, 0), (Id::Remainder, 1)] {
        let out = zeros(layout.clone(), dtype);
        let by = if divisors.len() == 1 && !still {
            Operand::Scalar(Scalar::new(divisors[0]))
        } else {
            Operand::View(right.borrow())
        };
        map(&Tape::apply(id, dtype), &[Operand::View(left.borrow()), by], &out).unwrap();
        for (i, got) in read(&out).iter().enumerate() {
            let (x, divisor) = (x[i], divisors[i % divisors.len()]);
            let want = exact(x, divisor)[which];
            assert!(got.get::<T>() == want, "{x:?} {id:?} {divisor:?}: {got:?}, not {want:?}");
        }
    }
}

/// Powers of two, their neighbours and opposites, ends of the range, and numbers of all sizes.
fn edges_of<T: Whole>(rng: &mut Rng) -> Vec<T> {
    let bits = T::DTYPE.size() * 8;
    let near = |x: i128| [x - 1, x, x + 1, -x - 1, -x, -x + 1];
    let mut edges: Vec<T> = (0..=bits).flat_map(|k| near(1i128 << k)).map(T::wrapped).collect();
    edges.extend([3, 7, 10, 100, -3, -7, -10, 0].map(T::wrapped));
    edges.extend((0..64).map(|_| sized::<T>(rng)));
    edges
}

/// A number with as many bits as chance says.
fn sized<T: Whole>(rng: &mut Rng) -> T {
    let shift = rng.next() % 64;
    T::wrapped(i128::from(rng.next() as i64 >> shift))
}

/// Every edge by every edge, and by each the multiples of it and their neighbours, where a quotient
/// changes.
fn edges_by_edges<T: Whole>() {
    let mut rng = Rng(T::DTYPE as u64 + 1);
    let edges = edges_of::<T>(&mut rng);
    let (mut all, mut by) = (Vec::new(), Vec::new());
    for (k, &divisor) in edges.iter().enumerate() {
        let mut x = edges.clone();
        for i in 0..100 {
            let factor: T = sized(&mut rng);
            x.push(T::wrapped(factor.wide().wrapping_mul(divisor.wide()).wrapping_add(i % 3 - 1)));
        }
        check(&x, &[divisor], k % 2 == 0);
        all.extend_from_slice(&x);
        by.extend(x.iter().map(|_| divisor));
    }
    // Shuffled, so that every block has many divisors; a last one may have few elements.
    for i in (1..all.len()).rev() {
        let j = rng.below(i + 1);
        all.swap(i, j);
        by.swap(i, j);
    }
    check(&all, &by, false);
}

#[test]
fn edges_by_edges_of_every_width() {
    edges_by_edges::<i8>();
    edges_by_edges::<u8>();
    edges_by_edges::<i16>();
    edges_by_edges::<u16>();
    edges_by_edges::<i32>();
    edges_by_edges::<u32>();
    edges_by_edges::<i64>();
    edges_by_edges::<u64>();
}

/// All bytes by all bytes, one divisor at a time and mixed.
fn bytes_by_bytes<T: Whole>() {
    let bytes: Vec<T> = (0..256).map(T::wrapped).collect();
    for divisor in &bytes {
        check(&bytes, &[*divisor], false);
    }
    let x: Vec<T> = bytes.iter().flat_map(|x| bytes.iter().map(|_| *x)).collect();
    let by: Vec<T> = bytes.iter().flat_map(|_| bytes.iter().copied()).collect();
    check(&x, &by, false);
}

#[test]
fn all_bytes_by_all_bytes() {
    bytes_by_bytes::<i8>();
    bytes_by_bytes::<u8>();
}

/// All numbers of 16 bits by divisors of all sizes.
fn words_by_words<T: Whole>() {
    let mut rng = Rng(T::DTYPE as u64);
    let words: Vec<T> = (0..1 << 16).map(T::wrapped).collect();
    let mut turned = words.clone();
    for by in [1, -1, 2, 3, -7, 255, 256, -257, 32_767, -32_768, 40_000, 65_535] {
        check(&words, &[T::wrapped(by)], false);
        turned.rotate_left(rng.below(1 << 16));
        check(&words, &turned, false);
    }
}

#[test]
fn all_words_by_many_words() {
    words_by_words::<i16>();
    words_by_words::<u16>();
}

/// Blocks of one divisor beside blocks of several: a single other one anywhere must be seen.
#[test]
fn one_divisor_that_differs() {
    fn of<T: Whole>() {
        for n in [1, 15, 16, 17, 1023, 1024, 1025, 2050] {
            let x: Vec<T> = (0..n).map(|i| T::wrapped(i as i128 * 37 - 500)).collect();
            for odd in [0, n / 2, n - 1] {
                let mut by = vec![T::wrapped(7); n];
                by[odd] = T::wrapped(5);
                check(&x, &by, false);
                by[odd] = T::wrapped(0);
                check(&x, &by, false);
            }
        }
    }
    of::<i8>();
    of::<i32>();
    of::<u64>();
    of::<i64>();
}
