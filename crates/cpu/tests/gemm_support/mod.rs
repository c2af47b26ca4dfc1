//! What the tests of the matrix product share: matrices that lie in memory in all sorts of ways, exact
//! arithmetic for every dtype, and the check of one product on every instruction set.

#![allow(dead_code, reason = "each test file uses a part of it")]

#[path = "../rng/mod.rs"]
mod rng;

pub(crate) use rng::Rng;

use half::{bf16, f16};
use num_complex::Complex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilework_cpu::gemm::{Element, Parallel, Product, gemm};
use tilework_cpu::isa::Isa;

/// Pieces claimed by threads that live for one call.
pub(crate) struct Threads(pub(crate) usize);

impl Parallel for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let claim = || {
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    return;
                }
                work(piece);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.0 {
                scope.spawn(claim);
            }
            claim();
        });
    }
}

/// How a matrix lies in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Lie {
    Rows,
    Columns,
    RowsWithGap,
    ColumnsWithGap,
    RowsBackwards,
    ColumnsBackwards,
    AllBackwards,
    Steps,
    SameRow,
    SameColumn,
}

pub(crate) const LIES: [Lie; 10] = [
    Lie::Rows,
    Lie::Columns,
    Lie::RowsWithGap,
    Lie::ColumnsWithGap,
    Lie::RowsBackwards,
    Lie::ColumnsBackwards,
    Lie::AllBackwards,
    Lie::Steps,
    Lie::SameRow,
    Lie::SameColumn,
];
/// Those in which all elements are distinct.
pub(crate) const DISTINCT: usize = 8;

/// A matrix in memory: address of (0, 0) as an index, strides, and the block.
#[derive(Clone)]
pub(crate) struct Matrix<T> {
    pub(crate) block: Vec<T>,
    pub(crate) start: isize,
    pub(crate) rows: isize,
    pub(crate) cols: isize,
}

impl<T: Copy> Matrix<T> {
    pub(crate) fn new(m: usize, n: usize, lie: Lie, poison: T) -> Matrix<T> {
        let (m, n) = (m as isize, n as isize);
        let (rows, cols) = match lie {
            Lie::Rows => (n, 1),
            Lie::Columns => (1, m),
            Lie::RowsWithGap => (n + 3, 1),
            Lie::ColumnsWithGap => (1, m + 5),
            Lie::RowsBackwards => (-n - 1, 1),
            Lie::ColumnsBackwards => (n, -1),
            Lie::AllBackwards => (-1, -m),
            Lie::Steps => (2 * n * 3 + 1, 3),
            Lie::SameRow => (0, 1),
            Lie::SameColumn => (1, 0),
        };
        let low = (m - 1).max(0) * rows.min(0) + (n - 1).max(0) * cols.min(0);
        let high = (m - 1).max(0) * rows.max(0) + (n - 1).max(0) * cols.max(0);
        Matrix { block: vec![poison; (high - low + 1) as usize], start: -low, rows, cols }
    }

    pub(crate) fn index(&self, i: usize, j: usize) -> usize {
        (self.start + i as isize * self.rows + j as isize * self.cols) as usize
    }

    pub(crate) fn get(&self, i: usize, j: usize) -> T {
        self.block[self.index(i, j)]
    }

    pub(crate) fn fill(&mut self, m: usize, n: usize, mut value: impl FnMut() -> T) {
        for i in 0..m {
            for j in 0..n {
                let index = self.index(i, j);
                self.block[index] = value();
            }
        }
    }
}

pub(crate) fn product<T>(
    (m, n, k): (usize, usize, usize),
    a: &Matrix<T>,
    b: &Matrix<T>,
    c: &mut Matrix<T>,
    accumulate: bool,
) -> Product<T> {
    Product {
        m,
        n,
        k,
        a: a.block.as_ptr().wrapping_offset(a.start),
        a_rows: a.rows,
        a_cols: a.cols,
        b: b.block.as_ptr().wrapping_offset(b.start),
        b_rows: b.rows,
        b_cols: b.cols,
        c: c.block.as_mut_ptr().wrapping_offset(c.start),
        c_rows: c.rows,
        c_cols: c.cols,
        accumulate,
    }
}

/// What a dtype must tell for exact tests: small values, poison, and plain arithmetic.
pub(crate) trait Exact: Element + PartialEq + std::fmt::Debug {
    /// A type in which sums of products are exact.
    type Sum: Copy;
    const POISON: Self;
    fn small(random: &mut Rng) -> Self;
    fn zero() -> Self::Sum;
    fn fma(sum: Self::Sum, a: Self, b: Self) -> Self::Sum;
    fn plus(c: Self, sum: Self::Sum) -> Self::Sum;
    fn round(sum: Self::Sum) -> Self;
    fn bits(self) -> u128;
}

/// The float dtypes: small integers, sums in float64.
macro_rules! exact_float {
    ($type:ty, $poison:expr, $from:expr, $to:expr) => {
        impl Exact for $type {
            type Sum = f64;
            const POISON: Self = $poison;
            fn small(random: &mut Rng) -> Self {
                $from(random.below(9) as f64 - 4.0)
            }
            fn zero() -> f64 {
                0.0
            }
            fn fma(sum: f64, a: Self, b: Self) -> f64 {
                sum + $to(a) * $to(b)
            }
            fn plus(c: Self, sum: f64) -> f64 {
                $to(c) + sum
            }
            fn round(sum: f64) -> Self {
                $from(sum)
            }
            fn bits(self) -> u128 {
                self.to_bits().into()
            }
        }
    };
}
exact_float!(f32, f32::NAN, |x: f64| x as f32, |x: f32| f64::from(x));
exact_float!(f64, f64::NAN, |x: f64| x, |x: f64| x);
exact_float!(f16, f16::NAN, |x: f64| f16::from_f64(x), |x: f16| x.to_f64());
exact_float!(bf16, bf16::NAN, |x: f64| bf16::from_f64(x), |x: bf16| x.to_f64());

/// The integer dtypes: any values, wrapping.
macro_rules! exact_integer {
    ($($type:ty)*) => {
        $(impl Exact for $type {
            type Sum = $type;
            const POISON: Self = 77;
            fn small(random: &mut Rng) -> Self {
                random.next() as $type
            }
            fn zero() -> Self {
                0
            }
            fn fma(sum: Self, a: Self, b: Self) -> Self {
                sum.wrapping_add(a.wrapping_mul(b))
            }
            fn plus(c: Self, sum: Self) -> Self {
                c.wrapping_add(sum)
            }
            fn round(sum: Self) -> Self {
                sum
            }
            fn bits(self) -> u128 {
                self as u128
            }
        })*
    };
}
exact_integer!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Exact for bool {
    type Sum = bool;
    const POISON: bool = true;
    fn small(random: &mut Rng) -> bool {
        random.below(8) == 0
    }
    fn zero() -> bool {
        false
    }
    fn fma(sum: bool, a: bool, b: bool) -> bool {
        sum | (a & b)
    }
    fn plus(c: bool, sum: bool) -> bool {
        c | sum
    }
    fn round(sum: bool) -> bool {
        sum
    }
    fn bits(self) -> u128 {
        self.into()
    }
}

/// The complex dtypes: small Gaussian integers.
macro_rules! exact_complex {
    ($real:ty) => {
        impl Exact for Complex<$real> {
            type Sum = Complex<f64>;
            const POISON: Self = Complex { re: <$real>::NAN, im: <$real>::NAN };
            fn small(random: &mut Rng) -> Self {
                let mut part = || random.below(9) as $real - 4.0;
                Complex { re: part(), im: part() }
            }
            fn zero() -> Complex<f64> {
                Complex { re: 0.0, im: 0.0 }
            }
            fn fma(sum: Complex<f64>, a: Self, b: Self) -> Complex<f64> {
                let wide = |z: Self| Complex { re: z.re as f64, im: z.im as f64 };
                sum + wide(a) * wide(b)
            }
            fn plus(c: Self, sum: Complex<f64>) -> Complex<f64> {
                Complex { re: c.re as f64 + sum.re, im: c.im as f64 + sum.im }
            }
            fn round(sum: Complex<f64>) -> Self {
                Complex { re: sum.re as $real, im: sum.im as $real }
            }
            fn bits(self) -> u128 {
                (u128::from(self.re.to_bits()) << 64) | u128::from(self.im.to_bits())
            }
        }
    };
}
exact_complex!(f32);
exact_complex!(f64);

pub(crate) fn isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// Equal, where a NaN of poison equals itself.
pub(crate) fn same<T: Exact>(left: T, right: T) -> bool {
    left == right || left.bits() == right.bits()
}

/// One case on every instruction set, with `threads` threads.
pub(crate) fn check<T: Exact>(
    random: &mut Rng,
    sizes: (usize, usize, usize),
    (lie_a, lie_b, lie_c): (Lie, Lie, Lie),
    accumulate: bool,
    threads: usize,
) {
    let (m, n, k) = sizes;
    let mut a = Matrix::new(m, k, lie_a, T::POISON);
    let mut b = Matrix::new(k, n, lie_b, T::POISON);
    let mut c = Matrix::new(m, n, lie_c, T::POISON);
    a.fill(m, k, || T::small(random));
    b.fill(k, n, || T::small(random));
    if accumulate {
        c.fill(m, n, || T::small(random));
    }
    let mut expected = c.clone();
    let mut sums = vec![T::zero(); n];
    for i in 0..m {
        sums.fill(T::zero());
        for p in 0..k {
            let left = a.get(i, p);
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = T::fma(*sum, left, b.get(p, j));
            }
        }
        for (j, sum) in sums.iter().enumerate() {
            let index = c.index(i, j);
            let sum = if accumulate { T::plus(c.block[index], *sum) } else { *sum };
            expected.block[index] = T::round(sum);
        }
    }
    for isa in isas() {
        let mut result = c.clone();
        let product = product(sizes, &a, &b, &mut result, accumulate);
        // SAFETY: the matrices hold every element that the strides reach.
        unsafe { gemm(isa, &Threads(threads), &product) }.unwrap();
        for (index, (got, wanted)) in result.block.iter().zip(&expected.block).enumerate() {
            assert!(
                same(*got, *wanted),
                "{} {isa:?} {m} x {k} x {n}, {lie_a:?} {lie_b:?} {lie_c:?}, accumulate \
                 {accumulate}, threads {threads}: at {index} {got:?}, not {wanted:?}",
                std::any::type_name::<T>(),
            );
        }
    }
}

/// Random sizes around tile edges in random layouts.
pub(crate) fn check_dtype<T: Exact>(seed: u64, cases: usize) {
    let mut random = Rng(seed);
    let near = [15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 130];
    for case in 0..cases {
        let mut side = || {
            let small = random.below(3) > 0;
            if small { 1 + random.below(17) } else { random.pick(&near) }
        };
        let sizes = (side(), side(), side());
        let lies = (random.pick(&LIES), random.pick(&LIES), random.pick(&LIES[..DISTINCT]));
        let accumulate = random.below(2) == 0;
        check::<T>(&mut random, sizes, lies, accumulate, 1 + case % 3);
    }
}
