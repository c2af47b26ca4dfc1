//! float32 products by bfloat16 pieces: float32's accuracy, whatever the layout, and plain float32
//! products wherever values cannot be split. On CPUs without a tile unit both are one.

use tilework_cpu::gemm::{Parallel, Product, Serial, batched_by_pieces, gemm};
use tilework_cpu::isa::Isa;
use tilework_cpu::pool;

/// The pool of the process.
struct Pool;

impl Parallel for Pool {
    fn threads(&self) -> usize {
        pool::threads()
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        pool::run(pieces, work);
    }
}

/// Numbers in [-1, 1) that look random and are the same in every run.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// A matrix in a block with gaps: element (i, j) at `i * rows + j * cols`.
struct Matrix {
    data: Vec<f32>,
    rows: isize,
    cols: isize,
}

fn matrix(m: usize, n: usize, by_columns: bool, step: usize, seed: u64) -> Matrix {
    let data = numbers((m * n * step).max(1), seed);
    let (m, n, step) = (m as isize, n as isize, step as isize);
    if by_columns {
        Matrix { data, rows: step, cols: m * step }
    } else {
        Matrix { data, rows: n * step, cols: step }
    }
}

impl Matrix {
    fn get(&self, i: usize, j: usize) -> f32 {
        self.data[(i as isize * self.rows + j as isize * self.cols) as usize]
    }
}

fn product(
    a: &Matrix,
    b: &Matrix,
    c: &mut Matrix,
    (m, k, n): (usize, usize, usize),
    accumulate: bool,
) -> Product<f32> {
    Product {
        m,
        n,
        k,
        a: a.data.as_ptr(),
        a_rows: a.rows,
        a_cols: a.cols,
        b: b.data.as_ptr(),
        b_rows: b.rows,
        b_cols: b.cols,
        c: c.data.as_mut_ptr(),
        c_rows: c.rows,
        c_cols: c.cols,
        accumulate,
    }
}

fn by_pieces(parallel: &dyn Parallel, p: &Product<f32>) {
    // SAFETY: all matrices have the elements that sizes and strides reach, and are apart.
    unsafe { batched_by_pieces(Isa::current(), parallel, p, &[(0, 0, 0)]) }.unwrap();
}

#[test]
fn as_accurate_as_float32_in_every_layout() {
    let sizes =
        [(64, 64, 64), (65, 100, 33), (129, 31, 97), (40, 1100, 72), (8, 2000, 8), (7, 900, 300)];
    for (m, k, n) in sizes {
        for layout in 0..8 {
            let step = 1 + usize::from(layout == 7);
            let a = matrix(m, k, layout & 1 != 0, step, 1);
            let b = matrix(k, n, layout & 2 != 0, step, 2);
            for accumulate in [false, true] {
                let mut c = matrix(m, n, layout & 4 != 0, step, 3);
                let old = c.data.clone();
                let p = product(&a, &b, &mut c, (m, k, n), accumulate);
                by_pieces(&Pool, &p);
                let threads = std::mem::replace(&mut c.data, old.clone());
                let p = product(&a, &b, &mut c, (m, k, n), accumulate);
                by_pieces(&Serial, &p);
                assert!(threads == c.data, "{m}x{k}x{n}: threads change the result");
                for i in 0..m {
                    for j in 0..n {
                        let terms = (0..k).map(|l| f64::from(a.get(i, l)) * f64::from(b.get(l, j)));
                        let mut magnitude: f64 = terms.clone().map(f64::abs).sum();
                        let mut exact: f64 = terms.sum();
                        let at = (i as isize * c.rows + j as isize * c.cols) as usize;
                        if accumulate {
                            exact += f64::from(old[at]);
                            magnitude += f64::from(old[at]).abs();
                        }
                        // One rounding of float32 for each of 512 terms at most, far from all the
                        // same way; multiply-adds stay below this too.
                        let error = (f64::from(c.data[at]) - exact).abs();
                        let bound = 1e-6 * magnitude;
                        assert!(
                            error <= bound,
                            "{m}x{k}x{n} layout {layout} ({i}, {j}): {error:e}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_split_is_multiplied_as_usual() {
    let (m, k, n) = (70, 80, 90);
    let awkward = [
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        3.4e38,
        1e-40,
        f32::MIN_POSITIVE,
        1.2e-33,
    ];
    for value in awkward {
        for in_b in [false, true] {
            let (mut a, mut b) = (matrix(m, k, false, 1, 1), matrix(k, n, true, 1, 2));
            let data = if in_b { &mut b.data } else { &mut a.data };
            data[k + 5] = value;
            let (mut c, mut plain) = (matrix(m, n, false, 1, 3), matrix(m, n, false, 1, 4));
            by_pieces(&Pool, &product(&a, &b, &mut c, (m, k, n), false));
            let p = product(&a, &b, &mut plain, (m, k, n), false);
            // SAFETY: as in `by_pieces`.
            unsafe { gemm(Isa::current(), &Pool, &p) }.unwrap();
            let bits = |m: &Matrix| m.data.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert!(bits(&c) == bits(&plain), "{value:e} in {}", if in_b { "B" } else { "A" });
        }
    }
}

#[test]
fn zeros_and_sums_near_the_limit() {
    let (m, k, n) = (64, 64, 64);
    let zero = Matrix { data: vec![0.0; m * k], rows: k as isize, cols: 1 };
    let b = matrix(k, n, false, 1, 2);
    let mut c = matrix(m, n, false, 1, 3);
    by_pieces(&Pool, &product(&zero, &b, &mut c, (m, k, n), false));
    assert!(c.data.iter().all(|&x| x == 0.0));
    // Sums that overflow float32 do so here too.
    let large = Matrix { data: vec![1e19; m * k], rows: k as isize, cols: 1 };
    let mut c = matrix(m, n, false, 1, 3);
    by_pieces(&Pool, &product(&large, &large, &mut c, (m, k, n), false));
    assert!(c.data.iter().all(|&x| x == f32::INFINITY), "64e38 is infinite");
}
