//! The matrix product against plain loops: every dtype, instruction set, layout and tile edge.
//!
//! Most cases use small integers, for which every order of summation is exact, so results must be
//! equal; gaps of the operands hold poison, and the gaps of C must survive. Real data are compared
//! with sums in float64, and bit for bit between thread counts.
mod gemm_support;

use gemm_support::*;
use half::{bf16, f16};
use num_complex::Complex;
use tilework_cpu::gemm::{Blocking, Product, Serial, batched, gemm};
use tilework_cpu::isa::Isa;

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
    let mut random = Rng(16);
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
    let mut random = Rng(17);
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

/// Few columns against long rows, which are read from end to end where they lie.
#[test]
fn few_columns_along_rows() {
    let mut random = Rng(19);
    for (case, sizes) in
        [(530, 8, 1300), (200, 31, 1400), (171, 16, 2000), (64, 5, 1500)].into_iter().enumerate()
    {
        for (pass, a) in [LIES[0], LIES[2], LIES[1]].into_iter().enumerate() {
            let lies = (a, LIES[0], random.pick(&LIES[..DISTINCT]));
            let threads = 1 + (case + pass) % 3;
            check::<f32>(&mut random, sizes, lies, pass % 2 == 0, threads);
            check::<f64>(&mut random, sizes, lies, pass % 2 == 1, threads);
        }
    }
}

/// Real data, compared with float64 sums; and the same bits for any number of threads.
#[test]
fn real_data_and_thread_counts() {
    let mut random = Rng(18);
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
    let mut random = Rng(19);
    for sizes in [
        (17, 33, 40),
        (64, 64, 700),
        (30, 600, 900),
        (600, 40, 600),
        (20, 20, 5000),
        (30, 570, 700),
    ] {
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
    let mut random = Rng(20);
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
            let mut random = Rng(21);
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
