//! The derivative in every row against finite differences, at points of the row's own domain.

use std::cell::RefCell;

use tilework::{DType, Id, Scalar};
use tilework_ops::random::{block, uniform_f64};
use tilework_ops::{Algebra, Term};

/// Numbers as an algebra: a term is a place in a list of values.
#[derive(Default)]
struct Numbers(RefCell<Vec<f64>>);

impl Numbers {
    fn push(&self, value: f64) -> u32 {
        self.0.borrow_mut().push(value);
        self.0.borrow().len() as u32 - 1
    }

    fn value(&self, id: u32) -> f64 {
        self.0.borrow()[id as usize]
    }
}

impl Algebra for Numbers {
    fn constant(&self, value: f64) -> u32 {
        self.push(value)
    }

    fn apply(&self, op: Id, operands: &[u32]) -> u32 {
        let operands: Vec<f64> = operands.iter().map(|&id| self.value(id)).collect();
        self.push(evaluate(op, &operands))
    }

    fn choose(&self, mask: u32, then: u32, otherwise: u32) -> u32 {
        self.push(if self.value(mask) != 0.0 { self.value(then) } else { self.value(otherwise) })
    }
}

fn evaluate(op: Id, operands: &[f64]) -> f64 {
    let scalars: Vec<Scalar> = operands.iter().map(|&x| Scalar::new(x)).collect();
    op.evaluate(&scalars).expect("derivatives use operations on reals").get()
}

/// The same in float32, where cancellation shows.
#[derive(Default)]
struct Narrow(Numbers);

impl Algebra for Narrow {
    fn constant(&self, value: f64) -> u32 {
        self.0.push((value as f32).into())
    }

    fn apply(&self, op: Id, operands: &[u32]) -> u32 {
        let scalars: Vec<Scalar> =
            operands.iter().map(|&id| Scalar::new(self.0.value(id) as f32)).collect();
        self.0.push(op.evaluate(&scalars).expect("an operation on reals").get())
    }

    fn choose(&self, mask: u32, then: u32, otherwise: u32) -> u32 {
        self.0.choose(mask, then, otherwise)
    }
}

#[test]
fn the_slope_of_sinc_does_not_cancel() {
    for size in [1e-30f32, 1e-5, 1e-4, 3e-4, 1e-2, 0.1, 0.3, 0.4999, 0.5, 0.6, 2.0] {
        for a in [size, -size] {
            let numbers = Narrow::default();
            let of = |value: f64| Term::new(&numbers, numbers.0.push(value));
            let y = (f64::from(a).sin() / f64::from(a)) as f32;
            let slope = (Id::SinXDivX.row().grad)(&[of(a.into())], of(y.into()), of(1.0))[0];
            let (got, a) = (numbers.0.value(slope.id()), f64::from(a));
            let exact = match a.abs() < 0.02 {
                true => a * (a * a / 30.0 - 1.0 / 3.0),
                false => (a.cos() - a.sin() / a) / a,
            };
            assert!((got / exact - 1.0).abs() < 4e-6, "{a}: {got} is not {exact}");
        }
    }
}

/// Whether a small step in one operand jumps: differences say nothing there.
fn is_smooth(op: Id, x: &[f64], k: usize, h: f64) -> bool {
    let at = |d: f64| {
        let mut moved = x.to_vec();
        moved[k] += d;
        evaluate(op, &moved)
    };
    let (forward, backward) = (at(h) - at(0.0), at(0.0) - at(-h));
    (forward - backward).abs() <= 1e-3 * (forward.abs() + backward.abs()) + 1e-12
}

#[test]
fn every_row_agrees_with_finite_differences() {
    for op in Id::ALL {
        let row = op.row();
        if !row.takes(DType::Float64) {
            continue;
        }
        let mut checked = vec![0; row.arity];
        for point in 0..60u64 {
            let draw = |k: usize| {
                let range = row.domain_of(k);
                range.start
                    + uniform_f64(block(op as u64 * 7 + k as u64, point))
                        * (range.end - range.start)
            };
            let x: Vec<f64> = (0..row.arity).map(draw).collect();
            let numbers = Numbers::default();
            let terms: Vec<Term<'_>> =
                x.iter().map(|&x| Term::new(&numbers, numbers.push(x))).collect();
            let y = Term::new(&numbers, numbers.push(evaluate(op, &x)));
            let g = Term::new(&numbers, numbers.push(1.5));
            let gradient = (row.grad)(&terms, y, g);
            assert_eq!(gradient.len(), row.arity, "{} has no derivative", row.name);
            for k in 0..row.arity {
                let h = 1e-5 * x[k].abs().max(1e-2);
                if !is_smooth(op, &x, k, h) {
                    continue;
                }
                let (mut up, mut down) = (x.clone(), x.clone());
                up[k] += h;
                down[k] -= h;
                let slope = (evaluate(op, &up) - evaluate(op, &down)) / (up[k] - down[k]);
                let got = numbers.value(gradient[k].id());
                let scale = slope.abs().max(evaluate(op, &x).abs() / x[k].abs().max(1.0)).max(1e-6);
                // nextafter moves by rounding: its slope is one, but no difference can show it.
                let close = (got - 1.5 * slope).abs() <= 2e-4 * scale || op == Id::NextAfter;
                assert!(
                    close,
                    "{} by operand {k} at {x:?}: {got} is not {}",
                    row.name,
                    1.5 * slope
                );
                checked[k] += 1;
            }
        }
        // Most points of a domain are smooth; a row without any would pass unseen.
        assert!(checked.iter().all(|&n| n >= 30), "{}: {checked:?} of 60 points", row.name);
    }
}
