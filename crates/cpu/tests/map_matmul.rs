//! The `Matmul` request against its definition: batches, layouts and the three kernels, on small
//! whole numbers, whose products are exact in every dtype.

mod map_support;

use map_support::*;
use tilework_backend::{Matmul, MatmulKernel, Request, Target, View};
use tilework_cpu::Cpu;
use tilework_layout::Layout;
use tilework_ops::{Complex, DType, Scalar};

fn product(a: &View, b: &View, out: &View, kernel: MatmulKernel) {
    let output = Target::shared("test", out.borrow()).unwrap();
    run(&Cpu, "test", &Request::Matmul(Matmul { a: a.borrow(), b: b.borrow(), output, kernel }))
        .unwrap();
}

fn numbers(view: &View) -> Vec<Complex<f64>> {
    read(view).iter().map(Scalar::get).collect()
}

/// In order, or with the last two axes turned, or with gaps.
fn layouts(shape: &[usize]) -> Vec<Layout> {
    let order = Layout::contiguous(shape).unwrap();
    let axes = shape.len();
    let mut turned = shape.to_vec();
    turned.swap(axes - 2, axes - 1);
    let turned = Layout::contiguous(&turned).unwrap().swap_axes(-2, -1).unwrap();
    let apart: Vec<isize> = order.strides().iter().map(|s| s * 2).collect();
    let apart = Layout::new(shape, &apart, 1).unwrap();
    vec![order, turned, apart]
}

#[test]
fn batches_of_all_layouts() {
    let mut rng = Rng(1);
    for dtype in DType::ALL {
        for (m, k, n) in [(1, 1, 1), (3, 4, 5), (5, 0, 2), (1, 9, 3), (17, 3, 1), (8, 8, 8)] {
            for batch in [&[][..], &[3], &[2, 2]] {
                let shape = |rows, columns| [batch, &[rows, columns]].concat();
                let (of_a, of_b, of_c) =
                    (layouts(&shape(m, k)), layouts(&shape(k, n)), layouts(&shape(m, n)));
                for pick in 0..3 {
                    let fill = |layout: &Layout, rng: &mut Rng| {
                        let count = layout.len().max(1);
                        let domain = if dtype.is_integer() || dtype == DType::Bool {
                            0.0..3.0
                        } else {
                            -2.9..2.9
                        };
                        let whole: Vec<Scalar> = values(dtype, domain, count, rng)
                            .iter()
                            .map(|x| x.get::<Complex<f64>>())
                            .map(|z| {
                                Scalar::new(Complex::new(z.re.trunc(), z.im.trunc())).cast(dtype)
                            })
                            .collect();
                        array(layout.clone(), dtype, &whole)
                    };
                    let a = fill(&of_a[pick], &mut rng);
                    let b = fill(&of_b[(pick + 1) % 3], &mut rng);
                    let (x, y) = (numbers(&a), numbers(&b));
                    let count: usize = batch.iter().product();
                    let mut expected = Vec::new();
                    for p in 0..count {
                        for i in 0..m {
                            for j in 0..n {
                                let term =
                                    |l: usize| x[(p * m + i) * k + l] * y[(p * k + l) * n + j];
                                let sum: Complex<f64> = (0..k).map(term).sum();
                                expected.push(Scalar::new(sum).cast(dtype));
                            }
                        }
                    }
                    for kernel in [MatmulKernel::Best, MatmulKernel::Naive] {
                        let out = zeros(of_c[(2 * pick) % 3].clone(), dtype);
                        product(&a, &b, &out, kernel);
                        let got = read(&out);
                        // A sum of zeros may be either zero.
                        let equal = |x: &Scalar, y: &Scalar| {
                            x.get::<Complex<f64>>() == y.get::<Complex<f64>>()
                        };
                        assert!(
                            got.iter().zip(&expected).all(|(x, y)| equal(x, y)),
                            "{dtype} {batch:?} {m} {k} {n} {kernel:?}: {got:?} is not {expected:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn tiles_give_the_product_in_another_order() {
    let mut rng = Rng(2);
    let (m, k, n, t) = (2, 3, 4, 5);
    for dtype in [DType::Int32, DType::Float16, DType::Float32, DType::Complex64] {
        let fill = |rows: usize, columns: usize, rng: &mut Rng| {
            let count = rows * columns * t * t;
            let whole: Vec<Scalar> = (0..count)
                .map(|_| Scalar::new((rng.next() % 5) as f64 - 2.0).cast(dtype))
                .collect();
            array(Layout::contiguous(&[rows, columns, t, t]).unwrap(), dtype, &whole)
        };
        let (a, b) = (fill(m, k, &mut rng), fill(k, n, &mut rng));
        let out = zeros(Layout::contiguous(&[m, n, t, t]).unwrap(), dtype);
        product(&a, &b, &out, MatmulKernel::Tiled);
        let (x, y, got) = (numbers(&a), numbers(&b), numbers(&out));
        let at = |row: usize, column: usize, columns: usize| {
            ((row / t * columns + column / t) * t + row % t) * t + column % t
        };
        for i in 0..m * t {
            for j in 0..n * t {
                let sum: Complex<f64> = (0..k * t).map(|l| x[at(i, l, k)] * y[at(l, j, n)]).sum();
                assert_eq!(got[at(i, j, n)], sum, "{dtype} {i} {j}");
            }
        }
    }
}
