//! Matrix products of complex numbers, and of so few elements that they take no plan: every tile edge,
//! few rows and columns, batches, infinities, and the order of sums.
mod gemm_support;

use gemm_support::*;
use half::{bf16, f16};
use num_complex::Complex;
use tilework_cpu::gemm::{Blocking, Product, Serial, batched, gemm};
use tilework_cpu::isa::Isa;

/// Every tile height and every rest of a vector, for all ways to pack.
#[test]
fn every_tile_edge_of_complex_numbers() {
    let mut random = Rng(31);
    for m in 5..=14 {
        let lies = (Lie::Rows, Lie::Rows, Lie::Rows);
        check::<Complex<f32>>(&mut random, (m, 33 + m, 7), lies, m % 2 == 0, 1);
        check::<Complex<f64>>(&mut random, (m, 17 + m, 9), lies, m % 2 == 1, 1);
    }
    for n in 5..=68 {
        let lies = (Lie::Columns, Lie::Columns, LIES[n % DISTINCT]);
        check::<Complex<f32>>(&mut random, (7, n, 18), lies, n % 2 == 0, 1);
        check::<Complex<f64>>(&mut random, (8, n, 10), lies, n % 2 == 1, 1);
    }
}

/// One to five rows or columns of complex numbers: sums along rows, dot products, narrow tiles.
#[test]
fn few_rows_and_columns_of_complex_numbers() {
    let mut random = Rng(32);
    for few in 1..=5 {
        for (n, k) in [(few, 1), (9, 70), (40, 64), (33, 67), (150, 300), (301, 129), (7, 33_000)] {
            if few * k > 60_000 && few > 2 {
                continue;
            }
            for pass in 0..4 {
                let lies = (
                    random.pick(&LIES),
                    random.pick(&LIES[..2 + 2 * pass]),
                    random.pick(&LIES[..DISTINCT]),
                );
                let (accumulate, threads) = (pass % 2 == 0, 1 + (n + pass) % 3);
                check::<Complex<f32>>(&mut random, (few, n, k), lies, accumulate, threads);
                check::<Complex<f64>>(&mut random, (n, few, k), lies, accumulate, threads);
            }
        }
    }
}

/// All sizes up to a few elements in all layouts.
#[test]
fn tiny_products_of_every_dtype() {
    fn tiny<T: Exact>(seed: u64) {
        let mut random = Rng(seed);
        for m in 1..=4 {
            for n in 1..=4 {
                for k in 1..=9 {
                    let lies =
                        (random.pick(&LIES), random.pick(&LIES), random.pick(&LIES[..DISTINCT]));
                    check::<T>(&mut random, (m, n, k), lies, (m + n + k) % 2 == 0, 1);
                }
            }
        }
    }
    tiny::<f32>(33);
    tiny::<f64>(34);
    tiny::<f16>(35);
    tiny::<bf16>(36);
    tiny::<Complex<f32>>(37);
    tiny::<Complex<f64>>(38);
    tiny::<bool>(39);
    tiny::<i8>(40);
    tiny::<i16>(41);
    tiny::<u32>(42);
    tiny::<i64>(43);
}

/// Batches of small products, which threads share, against each product on its own.
#[test]
fn batches_of_small_products_equal_single_ones() {
    let mut random = Rng(44);
    for (m, n, k) in [(1, 1, 3), (3, 3, 3), (4, 1, 4), (1, 4, 4), (5, 5, 5), (6, 7, 8), (1, 2, 64)]
    {
        let count = 3000;
        let (a_size, b_size, c_size) = (m * k, k * n, m * n);
        let a: Vec<f32> = (0..count * a_size).map(|_| random.real() as f32).collect();
        let b: Vec<f32> = (0..count * b_size).map(|_| random.real() as f32).collect();
        let offsets: Vec<_> = (0..count)
            .map(|i| ((i * a_size) as isize, (i * b_size) as isize, (i * c_size) as isize))
            .collect();
        for isa in isas() {
            let mut results = [vec![f32::NAN; count * c_size], vec![f32::NAN; count * c_size]];
            for (which, result) in results.iter_mut().enumerate() {
                let p = Product {
                    m,
                    n,
                    k,
                    a: a.as_ptr(),
                    a_rows: k as isize,
                    a_cols: 1,
                    b: b.as_ptr(),
                    b_rows: n as isize,
                    b_cols: 1,
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
            assert!(results[0] == results[1], "{m} {n} {k} {isa:?}");
        }
    }
}

/// The chain of the module's rule for one element of C.
fn chain(
    a: &Matrix<Complex<f32>>,
    b: &Matrix<Complex<f32>>,
    (i, j): (usize, usize),
    k: usize,
) -> Complex<f32> {
    let kc = Blocking::block_of_k(k, 8);
    let mut total: Option<Complex<f32>> = None;
    for start in (0..k).step_by(kc) {
        let mut sum = Complex { re: 0f32, im: 0f32 };
        for p in start..(start + kc).min(k) {
            let (x, y) = (a.get(i, p), b.get(p, j));
            let re = x.re.mul_add(y.re, sum.re);
            let im = x.re.mul_add(y.im, sum.im);
            sum = Complex { re: (-x.im).mul_add(y.im, re), im: x.im.mul_add(y.re, im) };
        }
        total = Some(total.map_or(sum, |total| total + sum));
    }
    total.unwrap_or_default()
}

/// Packed, cut, few rows and tiny: one rule, and the same bits for any number of threads.
#[test]
fn complex_sums_follow_the_rule() {
    let mut random = Rng(45);
    for sizes in [
        (17, 33, 40),
        (64, 40, 700),
        (3, 100, 300),
        (1, 700, 90),
        (20, 20, 3000),
        (5, 5, 5),
        (2, 3, 4),
    ] {
        let (m, n, k) = sizes;
        for lies in [(Lie::Rows, Lie::Rows), (Lie::Columns, Lie::RowsWithGap)] {
            let mut a = Matrix::new(m, k, lies.0, Complex::default());
            let mut b = Matrix::new(k, n, lies.1, Complex::default());
            let mut value = || Complex { re: random.real() as f32, im: random.real() as f32 };
            a.fill(m, k, &mut value);
            b.fill(k, n, &mut value);
            for isa in isas().filter(|isa| *isa != Isa::Scalar) {
                for threads in [1, 2, 3] {
                    let mut c = Matrix::new(m, n, Lie::Rows, Complex::default());
                    let p = product(sizes, &a, &b, &mut c, false);
                    // SAFETY: the matrices hold every element that the strides reach.
                    unsafe { gemm(isa, &Threads(threads), &p) }.unwrap();
                    for i in (0..m).step_by(1 + m / 7) {
                        for j in (0..n).step_by(1 + n / 15) {
                            let want = chain(&a, &b, (i, j), k);
                            assert_eq!(c.get(i, j), want, "{sizes:?} {lies:?} {isa:?} {i} {j}");
                        }
                    }
                }
            }
        }
    }
}

/// An infinity in one part reaches what plain arithmetic lets it reach, and nothing else; what lies
/// beside the operands is never multiplied.
#[test]
fn infinities_of_complex_numbers_stay_where_they_belong() {
    let one = Complex { re: 1f32, im: 0.0 };
    for isa in isas() {
        for (m, n, k) in
            [(2, 2, 3), (1, 40, 70), (40, 1, 70), (3, 33, 80), (40, 3, 80), (20, 37, 50)]
        {
            for (lie_a, lie_b) in [(Lie::Rows, Lie::Rows), (Lie::Columns, Lie::Columns)] {
                let poison = Complex { re: f32::NAN, im: f32::NAN };
                let mut a = Matrix::new(m, k, lie_a, poison);
                let mut b = Matrix::new(k, n, lie_b, poison);
                a.fill(m, k, || one);
                b.fill(k, n, || one);
                let index = b.index(k - 1, n - 1);
                b.block[index] = Complex { re: f32::INFINITY, im: 0.0 };
                let mut c = Matrix::new(m, n, Lie::Rows, poison);
                let p = product((m, n, k), &a, &b, &mut c, false);
                // SAFETY: the matrices hold every element that the strides reach.
                unsafe { gemm(isa, &Serial, &p) }.unwrap();
                for i in 0..m {
                    for j in 0..n {
                        let got = c.get(i, j);
                        if j == n - 1 {
                            // Infinity times the zero of the other factor's imaginary part.
                            assert!(got.re == f32::INFINITY && got.im.is_nan(), "{isa:?} {got}");
                        } else {
                            assert_eq!(got, Complex { re: k as f32, im: 0.0 }, "{isa:?} {m} {n}");
                        }
                    }
                }
            }
        }
    }
}
