//! The matrix product against plain loops: every dtype, instruction set, layout and tile edge.
//!
//! Most cases use small integers, for which every order of summation is exact, so results must be
//! equal; gaps of the operands hold poison, and the gaps of C must survive. Real data are compared
//! with sums in float64, and bit for bit between thread counts.

use half::{bf16, f16};
use num_complex::Complex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilework_cpu::gemm::{Blocking, Element, Parallel, Product, Serial, batched, gemm};
use tilework_cpu::isa::Isa;

/// Pieces claimed by threads that live for one call.
struct Threads(usize);

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

/// A small generator: the tests must be the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// In -1..1.
    fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// How a matrix lies in memory.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lie {
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

const LIES: [Lie; 10] = [
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
const DISTINCT: usize = 8;

/// A matrix in memory: address of (0, 0) as an index, strides, and the block.
#[derive(Clone)]
struct Matrix<T> {
    block: Vec<T>,
    start: isize,
    rows: isize,
    cols: isize,
}

impl<T: Copy> Matrix<T> {
    fn new(m: usize, n: usize, lie: Lie, poison: T) -> Matrix<T> {
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

    fn index(&self, i: usize, j: usize) -> usize {
        (self.start + i as isize * self.rows + j as isize * self.cols) as usize
    }

    fn get(&self, i: usize, j: usize) -> T {
        self.block[self.index(i, j)]
    }

    fn fill(&mut self, m: usize, n: usize, mut value: impl FnMut() -> T) {
        for i in 0..m {
            for j in 0..n {
                let index = self.index(i, j);
                self.block[index] = value();
            }
        }
    }
}

fn product<T>(
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
trait Exact: Element + PartialEq + std::fmt::Debug {
    /// A type in which sums of products are exact.
    type Sum: Copy;
    const POISON: Self;
    fn small(random: &mut Random) -> Self;
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
            fn small(random: &mut Random) -> Self {
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
            fn small(random: &mut Random) -> Self {
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
    fn small(random: &mut Random) -> bool {
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
            fn small(random: &mut Random) -> Self {
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

fn isas() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// Equal, where a NaN of poison equals itself.
fn same<T: Exact>(left: T, right: T) -> bool {
    left == right || left.bits() == right.bits()
}

/// One case on every instruction set, with `threads` threads.
fn check<T: Exact>(
    random: &mut Random,
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
fn check_dtype<T: Exact>(seed: u64, cases: usize) {
    let mut random = Random(seed);
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

#[test]
fn float32_is_exact_on_small_integers() {
    check_dtype::<f32>(1, 600);
}

#[test]
fn float64_is_exact_on_small_integers() {
    check_dtype::<f64>(2, 600);
}

#[test]
fn half_floats_round_once() {
    check_dtype::<f16>(3, 250);
    check_dtype::<bf16>(4, 250);
}

#[test]
fn integers_wrap() {
    check_dtype::<i8>(5, 150);
    check_dtype::<i16>(6, 150);
    check_dtype::<i32>(7, 150);
    check_dtype::<i64>(8, 150);
    check_dtype::<u8>(9, 80);
    check_dtype::<u16>(10, 80);
    check_dtype::<u32>(11, 80);
    check_dtype::<u64>(12, 80);
}

#[test]
fn bools_are_an_or_of_ands() {
    check_dtype::<bool>(13, 200);
}

#[test]
fn complex_numbers_multiply() {
    check_dtype::<Complex<f32>>(14, 250);
    check_dtype::<Complex<f64>>(15, 250);
}

/// Every tile height and every rest of a vector, without and with packing.
#[test]
fn every_tile_edge() {
    let mut random = Random(16);
    for m in 1..=30 {
        let lies = (Lie::Rows, Lie::Rows, Lie::Rows);
        check::<f32>(&mut random, (m, 33 + m, 7), lies, m % 2 == 0, 1);
        check::<f64>(&mut random, (m, 17 + m, 9), lies, m % 2 == 1, 1);
    }
    for n in 1..=66 {
        let lies = (Lie::Columns, Lie::Columns, Lie::Rows);
        check::<f32>(&mut random, (15, n, 18), lies, n % 2 == 0, 1);
        check::<f64>(&mut random, (13, n, 10), lies, n % 2 == 1, 1);
    }
}

/// Shapes of the special paths: long K, vectors, thin matrices, several blocks of everything.
#[test]
fn long_thin_and_large() {
    let mut random = Random(17);
    let shapes = [
        (1, 1, 1),
        (1, 1, 70_000),
        (1, 700, 300),
        (700, 1, 300),
        (1, 33, 5000),
        (2, 600, 700),
        (600, 3, 700),
        (4, 1100, 40),
        (5, 530, 650),
        (20, 20, 3000),
        (65, 33, 1300),
        (300, 600, 10),
        (530, 50, 530),
        (150, 1100, 70),
    ];
    for (case, sizes) in shapes.into_iter().enumerate() {
        for pass in 0..6 {
            let lies =
                (random.pick(&LIES[..4]), random.pick(&LIES[..4]), random.pick(&LIES[..DISTINCT]));
            let threads = 1 + (case + pass) % 3;
            check::<f32>(&mut random, sizes, lies, pass % 2 == 0, threads);
            match pass {
                0 => check::<f64>(&mut random, sizes, lies, true, threads),
                1 => check::<bf16>(&mut random, sizes, lies, true, threads),
                2 => check::<i8>(&mut random, sizes, lies, false, threads),
                3 => check::<Complex<f32>>(&mut random, sizes, lies, false, threads),
                4 => check::<i32>(&mut random, sizes, lies, true, threads),
                _ => check::<f16>(&mut random, sizes, lies, false, threads),
            }
        }
    }
}

/// Real data, compared with float64 sums; and the same bits for any number of threads.
#[test]
fn real_data_and_thread_counts() {
    let mut random = Random(18);
    let shapes = [
        (64, 64, 64),
        (129, 200, 1300),
        (70, 70, 2600),
        (1, 900, 1500),
        (900, 1, 1500),
        (3, 40, 4000),
        (1, 2, 100_000),
        (300, 300, 300),
    ];
    for sizes in shapes {
        let (m, n, k) = sizes;
        for lies in
            [(Lie::Rows, Lie::Rows), (Lie::Columns, Lie::Columns), (Lie::Rows, Lie::Columns)]
        {
            let mut a = Matrix::new(m, k, lies.0, 0f32);
            let mut b = Matrix::new(k, n, lies.1, 0f32);
            a.fill(m, k, || random.real() as f32);
            b.fill(k, n, || random.real() as f32);
            for isa in isas() {
                let mut first: Option<Vec<u32>> = None;
                for threads in [1, 2, 3] {
                    let mut c = Matrix::new(m, n, Lie::Rows, f32::NAN);
                    let product = product(sizes, &a, &b, &mut c, false);
                    // SAFETY: the matrices hold every element that the strides reach.
                    unsafe { gemm(isa, &Threads(threads), &product) }.unwrap();
                    let bits: Vec<u32> = c.block.iter().map(|x| x.to_bits()).collect();
                    match &first {
                        Some(first) => assert!(*first == bits, "{sizes:?} {isa:?} {threads}"),
                        None => first = Some(bits),
                    }
                    if threads > 1 {
                        continue;
                    }
                    for i in (0..m).step_by(1 + m / 40) {
                        for j in (0..n).step_by(1 + n / 40) {
                            let mut sum = 0f64;
                            let mut size = 0f64;
                            for p in 0..k {
                                let term = f64::from(a.get(i, p)) * f64::from(b.get(p, j));
                                sum += term;
                                size += term.abs();
                            }
                            let error = (f64::from(c.get(i, j)) - sum).abs();
                            assert!(error <= 1e-6 * size, "{sizes:?} {isa:?} {i} {j}: {error:e}");
                        }
                    }
                }
            }
        }
    }
}

/// On the vector units, the rule of the module in one loop: chains of fused multiply-adds over
/// blocks of K, added in order. Packed, unpacked, cut and batched products must all follow it.
#[test]
fn every_path_sums_by_the_same_rule() {
    let mut random = Random(19);
    for sizes in [(17, 33, 40), (64, 64, 700), (30, 600, 900), (600, 40, 600), (20, 20, 5000)] {
        let (m, n, k) = sizes;
        for (lies, accumulate) in
            [((Lie::Rows, Lie::Rows), true), ((Lie::Columns, Lie::Columns), false)]
        {
            let mut a = Matrix::new(m, k, lies.0, 0f32);
            let mut b = Matrix::new(k, n, lies.1, 0f32);
            let mut c = Matrix::new(m, n, Lie::Rows, 0f32);
            a.fill(m, k, || random.real() as f32);
            b.fill(k, n, || random.real() as f32);
            c.fill(m, n, || random.real() as f32);
            let kc = Blocking::block_of_k(k, 4);
            for isa in isas().filter(|isa| *isa != Isa::Scalar) {
                for threads in [1, 3] {
                    let mut result = c.clone();
                    let product = product(sizes, &a, &b, &mut result, accumulate);
                    // SAFETY: the matrices hold every element that the strides reach.
                    unsafe { gemm(isa, &Threads(threads), &product) }.unwrap();
                    for i in (0..m).step_by(3) {
                        for j in (0..n).step_by(3) {
                            let mut total = accumulate.then(|| c.get(i, j));
                            for start in (0..k).step_by(kc) {
                                let chain = (start..(start + kc).min(k))
                                    .fold(0f32, |sum, p| a.get(i, p).mul_add(b.get(p, j), sum));
                                total = Some(total.map_or(chain, |total| total + chain));
                            }
                            let got = result.get(i, j);
                            assert_eq!(Some(got), total, "{sizes:?} {lies:?} {isa:?} {i} {j}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn infinities_and_nans_travel_as_in_plain_loops() {
    for isa in isas() {
        for (m, n, k) in [(3, 5, 7), (1, 40, 20), (40, 1, 20), (70, 70, 70), (20, 20, 1500)] {
            let mut a = Matrix::new(m, k, Lie::Rows, 0f32);
            let mut b = Matrix::new(k, n, Lie::Rows, 0f32);
            a.fill(m, k, || 0.0);
            b.fill(k, n, || 1.0);
            // Row 0 of A is zeros: against an infinity in B it must become NaN there.
            let index = b.index(k - 1, n - 1);
            b.block[index] = f32::INFINITY;
            let mut c = Matrix::new(m, n, Lie::Rows, 0f32);
            let p = product((m, n, k), &a, &b, &mut c, false);
            // SAFETY: the matrices hold every element that the strides reach.
            unsafe { gemm(isa, &Serial, &p) }.unwrap();
            for i in 0..m {
                for j in 0..n {
                    assert_eq!(c.get(i, j).is_nan(), j == n - 1, "{isa:?} {m} {n} {k}");
                }
            }
            let mut a = Matrix::new(m, k, Lie::Columns, bf16::ONE);
            let b = Matrix::new(k, n, Lie::Columns, bf16::ONE);
            let index = a.index(m - 1, 0);
            a.block[index] = bf16::NEG_INFINITY;
            let mut c = Matrix::new(m, n, Lie::Rows, bf16::ZERO);
            let p = product((m, n, k), &a, &b, &mut c, false);
            // SAFETY: the matrices hold every element that the strides reach.
            unsafe { gemm(isa, &Serial, &p) }.unwrap();
            for i in 0..m {
                let wanted =
                    if i == m - 1 { f32::NEG_INFINITY } else { bf16::from_f32(k as f32).to_f32() };
                assert_eq!(c.get(i, n - 1).to_f32(), wanted);
            }
        }
    }
}

#[test]
fn empty_sizes() {
    for isa in isas() {
        for accumulate in [false, true] {
            let a = [1f32; 16];
            let mut c = [5f32; 16];
            for (m, n, k) in [(0, 4, 4), (4, 0, 4), (4, 4, 0)] {
                let p = Product {
                    m,
                    n,
                    k,
                    a: a.as_ptr(),
                    a_rows: 4,
                    a_cols: 1,
                    b: a.as_ptr(),
                    b_rows: 4,
                    b_cols: 1,
                    c: c.as_mut_ptr(),
                    c_rows: 4,
                    c_cols: 1,
                    accumulate,
                };
                // SAFETY: all blocks hold 4 x 4 elements.
                unsafe { gemm(isa, &Threads(2), &p) }.unwrap();
                let zeroed = (m, n) == (4, 4) && !accumulate;
                assert!(c.iter().all(|x| *x == if zeroed { 0.0 } else { 5.0 }));
            }
        }
    }
}

#[test]
fn batches_equal_single_products() {
    let mut random = Random(20);
    for (m, n, k, count) in [(3, 5, 4, 50), (64, 64, 64, 7), (130, 90, 140, 3), (1, 9, 30, 11)] {
        let mut a = Matrix::new(count * m, k, Lie::Rows, 0f32);
        let mut b = Matrix::new(k, n, Lie::Columns, 0f32);
        a.fill(count * m, k, || random.real() as f32);
        b.fill(k, n, || random.real() as f32);
        // All products share B, and C runs from the last to the first.
        let offset = |i: usize| ((i * m * k) as isize, 0, ((count - 1 - i) * m * n) as isize);
        let offsets: Vec<_> = (0..count).map(offset).collect();
        for isa in isas() {
            let mut results = [vec![f32::NAN; count * m * n], vec![f32::NAN; count * m * n]];
            for (which, result) in results.iter_mut().enumerate() {
                let p = Product {
                    m,
                    n,
                    k,
                    a: a.block.as_ptr(),
                    a_rows: k as isize,
                    a_cols: 1,
                    b: b.block.as_ptr(),
                    b_rows: 1,
                    b_cols: k as isize,
                    c: result.as_mut_ptr(),
                    c_rows: n as isize,
                    c_cols: 1,
                    accumulate: false,
                };
                // SAFETY: the blocks hold all products of the batch.
                unsafe {
                    if which == 0 {
                        batched(isa, &Threads(3), &p, &offsets).unwrap();
                    } else {
                        for offset in &offsets {
                            batched(isa, &Serial, &p, &[*offset]).unwrap();
                        }
                    }
                }
            }
            assert!(results[0] == results[1], "{m} {n} {k} {count} {isa:?}");
        }
    }
}

/// The tile unit flushes subnormal numbers; results must not show it.
#[test]
fn tiny_half_floats_survive() {
    let (m, n, k) = (64, 70, 80);
    for exponent in [-20, -45, -55, -70, -100, -126, -130] {
        let value = bf16::from_f32(1.5) * bf16::from_f64(f64::from(exponent).exp2());
        for accumulate in [false, true] {
            let mut a = Matrix::new(m, k, Lie::Rows, bf16::ZERO);
            let b = Matrix::new(k, n, Lie::Columns, value);
            let mut random = Random(21);
            a.fill(m, k, || bf16::from_f32(random.below(3) as f32));
            for isa in isas() {
                let mut c = Matrix::new(m, n, Lie::Rows, bf16::ZERO);
                let p = product((m, n, k), &a, &b, &mut c, accumulate);
                // SAFETY: the matrices hold every element that the strides reach.
                unsafe { gemm(isa, &Threads(2), &p) }.unwrap();
                for i in 0..m {
                    let sum: f64 = (0..k).map(|p| a.get(i, p).to_f64() * value.to_f64()).sum();
                    assert_eq!(c.get(i, 3), bf16::from_f64(sum), "2^{exponent} on {isa:?}");
                }
            }
        }
    }
}

/// The tile unit finds a number that it cannot multiply when most of C is written: the product is
/// done over, and what is added to C is added once.
#[test]
fn a_tiny_number_at_the_end_is_seen_in_time() {
    let (m, n, k) = (200, 96, 64);
    let (one, tiny) = (bf16::ONE, bf16::from_f64((-130f64).exp2()));
    for lie in [Lie::Rows, Lie::Columns] {
        let mut a = Matrix::new(m, k, lie, one);
        let b = Matrix::new(k, n, Lie::Rows, one);
        for j in 0..k {
            let index = a.index(m - 1, j);
            a.block[index] = if j == k - 1 { tiny } else { bf16::ZERO };
        }
        for (isa, accumulate) in isas().flat_map(|isa| [(isa, false), (isa, true)]) {
            let mut c = Matrix::new(m, n, Lie::Rows, one);
            let p = product((m, n, k), &a, &b, &mut c, accumulate);
            // SAFETY: the matrices hold every element that the strides reach.
            unsafe { gemm(isa, &Threads(2), &p) }.unwrap();
            let (old, sum) = (f64::from(u8::from(accumulate)), k as f64);
            for i in 0..m {
                let expected = if i == m - 1 { tiny.to_f64() + old } else { sum + old };
                assert_eq!(c.get(i, 5), bf16::from_f64(expected), "{i} {accumulate} {isa:?}");
            }
        }
    }
}
