//! Maps against their definition: every operation and dtype along one axis, casts, and tapes.

mod map_support;

use map_support::*;
use tilework_backend::{Operand, View};
use tilework_layout::Layout;
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::{Builder, Per, Slot, Tape};

const LONGEST: usize = 70;

/// Layouts of one axis whose elements lie in all sorts of ways.
fn lines(n: usize) -> Vec<Layout> {
    let high = |step: usize| n.saturating_sub(1) * step;
    vec![
        Layout::new(&[n], &[1], 5).unwrap(),
        Layout::new(&[n], &[2], 1).unwrap(),
        Layout::new(&[n], &[3], 0).unwrap(),
        Layout::new(&[n], &[-1], high(1)).unwrap(),
        Layout::new(&[n], &[-2], high(2)).unwrap(),
    ]
}

struct Case {
    id: Id,
    dtype: DType,
    tape: Tape,
    operands: Vec<Vec<Scalar>>,
    expected: Vec<Scalar>,
}

fn case(id: Id, dtype: DType, n: usize) -> Case {
    let mut rng = Rng(id as u64 * 100 + dtype as u64);
    let row = id.row();
    let operands: Vec<Vec<Scalar>> = (0..row.arity)
        .map(|k| {
            let mut values = values(dtype, row.domain_of(k), n, &mut rng);
            // Edges meet each other at different distances.
            let edges = edges(dtype);
            for i in 0..n / 2 {
                values[2 * i] = edges[(i * (k + 1) + k) % edges.len()];
            }
            values
        })
        .collect();
    let expected = expected(id, &operands.iter().map(|x| &x[..]).collect::<Vec<_>>(), n);
    Case { id, dtype, tape: Tape::apply(id, dtype), operands, expected }
}

impl Case {
    fn check(&self, what: &str, got: &[Scalar], expected: &[Scalar]) {
        assert_eq!(got.len(), expected.len());
        for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
            let operands: Vec<_> = self.operands.iter().map(|x| x[i % x.len()]).collect();
            assert!(
                is_near(self.id.row(), self.dtype, got, expected),
                "{} {} {what}, element {i} of {operands:?}: {got:?} is not {expected:?}",
                self.id.row().name,
                self.dtype,
            );
        }
    }

    fn gives(&self) -> DType {
        self.expected[0].dtype()
    }

    fn run(&self, layouts: &[&Layout], out: &Layout) -> Vec<Scalar> {
        let arrays: Vec<View> = self
            .operands
            .iter()
            .zip(layouts)
            .map(|(values, layout)| {
                array((*layout).clone(), self.dtype, &values[..layout.len().max(1)])
            })
            .collect();
        let inputs: Vec<Operand> = arrays.iter().map(|view| Operand::View(view.borrow())).collect();
        let out = zeros(out.clone(), self.gives());
        map(&self.tape, &inputs, &out).unwrap();
        read(&out)
    }
}

fn each_case(n: usize, mut f: impl FnMut(Case)) {
    for id in Id::ALL {
        for dtype in DType::ALL.into_iter().filter(|dtype| id.row().takes(*dtype)) {
            f(case(id, dtype, n));
        }
    }
}

#[test]
fn every_operation_on_contiguous_arrays_of_every_length() {
    each_case(LONGEST, |case| {
        for n in 0..=LONGEST {
            let layout = Layout::contiguous(&[n]).unwrap();
            let got = case.run(&[&layout, &layout, &layout], &layout);
            case.check(&format!("of length {n}"), &got, &case.expected[..n]);
        }
    });
}

#[test]
fn every_operation_on_strided_and_reversed_arrays() {
    each_case(LONGEST, |case| {
        for n in [1, 2, 67] {
            let lines = lines(n);
            for (k, out) in lines.iter().enumerate() {
                let of = |i: usize| &lines[(k + i) % lines.len()];
                for shift in [0, 1, 3] {
                    let got = case.run(&[of(shift), of(2 * shift + 1), of(shift + 3)], out);
                    case.check(&format!("layouts {k} {shift}"), &got, &case.expected[..n]);
                }
            }
        }
    });
}

#[test]
fn every_operation_with_scalars_and_broadcast_operands() {
    each_case(LONGEST, |case| {
        let n = 65;
        let arity = case.operands.len();
        let layout = Layout::contiguous(&[n]).unwrap();
        for still in 0..arity {
            for as_scalar in [false, true] {
                for column in [0, 1] {
                    let value = case.operands[still][column];
                    let mut operands: Vec<&[Scalar]> =
                        case.operands.iter().map(|x| &x[..n]).collect();
                    let one = [value];
                    operands[still] = &one;
                    let expected = expected(case.id, &operands, n);
                    let arrays: Vec<View> = operands
                        .iter()
                        .map(|x| {
                            let shape = if x.len() == 1 {
                                Layout::new(&[n], &[0], 2).unwrap()
                            } else {
                                layout.clone()
                            };
                            array(shape, case.dtype, x)
                        })
                        .collect();
                    let inputs: Vec<Operand> = arrays
                        .iter()
                        .enumerate()
                        .map(|(k, view)| match as_scalar && k == still {
                            true => Operand::Scalar(value),
                            false => Operand::View(view.borrow()),
                        })
                        .collect();
                    let out = zeros(layout.clone(), case.gives());
                    map(&case.tape, &inputs, &out).unwrap();
                    for (got, expected) in read(&out).iter().zip(&expected) {
                        assert!(
                            is_near(case.id.row(), case.dtype, got, expected),
                            "{} {} with operand {still} {value:?}: {got:?} is not {expected:?}",
                            case.id.row().name,
                            case.dtype
                        );
                    }
                }
            }
        }
        // All of them at once.
        let scalars: Vec<Operand> = case.operands.iter().map(|x| Operand::Scalar(x[3])).collect();
        let out = zeros(layout.clone(), case.gives());
        map(&case.tape, &scalars, &out).unwrap();
        for got in read(&out) {
            assert!(is_near(case.id.row(), case.dtype, &got, &case.expected[3]));
        }
    });
}

#[test]
fn every_operation_in_place() {
    each_case(LONGEST, |case| {
        if case.gives().size() != case.dtype.size() {
            return;
        }
        for layout in lines(LONGEST) {
            for same in 0..case.operands.len() {
                let arrays: Vec<View> = case
                    .operands
                    .iter()
                    .map(|values| array(layout.clone(), case.dtype, values))
                    .collect();
                let storage = arrays[same].storage().clone();
                let out = View::new(storage, layout.clone(), case.gives()).unwrap();
                let inputs: Vec<Operand> =
                    arrays.iter().map(|view| Operand::View(view.borrow())).collect();
                map(&case.tape, &inputs, &out).unwrap();
                case.check("in place", &read(&out), &case.expected);
            }
        }
    });
}

#[test]
fn every_cast_of_edges_and_random_bits() {
    let mut rng = Rng(11);
    for from in DType::ALL {
        let mut values = edges(from);
        for _ in 0..180 {
            let bits = [rng.next().to_le_bytes(), rng.next().to_le_bytes()].concat();
            // A bool is read from any byte.
            values.push(Scalar::from_bytes(from, &bits));
        }
        let shifts: Vec<f64> = (0..20).map(|e| 2f64.powi(4 * e - 8)).collect();
        if from.is_float() {
            values.extend(shifts.iter().map(|x| Scalar::new(x * rng.unit()).cast(from)));
            values.extend(shifts.iter().map(|x| Scalar::new(-x * rng.unit()).cast(from)));
        }
        let n = values.len();
        for to in DType::ALL {
            let expected: Vec<Scalar> = values.iter().map(|x| x.cast(to)).collect();
            let tape = Tape::cast(from, to);
            for (k, layout) in lines(n).into_iter().enumerate() {
                let source = array(layout.clone(), from, &values);
                let out = zeros(lines(n)[(k * 2) % 5].clone(), to);
                map(&tape, &[Operand::View(source.borrow())], &out).unwrap();
                for (i, (got, expected)) in read(&out).iter().zip(&expected).enumerate() {
                    assert!(
                        same(got, expected),
                        "{from} {:?} to {to}: {got:?} is not {expected:?}",
                        values[i]
                    );
                }
                if from.size() == to.size() {
                    let out = View::new(source.storage().clone(), layout.clone(), to).unwrap();
                    map(&tape, &[Operand::View(source.borrow())], &out).unwrap();
                    assert!(read(&out).iter().zip(&expected).all(|(a, b)| same(a, b)));
                }
            }
        }
    }
}

#[test]
fn select_moves_bits() {
    let mut rng = Rng(13);
    for dtype in DType::ALL {
        for n in [0, 1, 7, 64, 300] {
            let mask: Vec<Scalar> = (0..n.max(1))
                .map(|_| Scalar::from_bytes(DType::Bool, &[rng.next() as u8 & 2]))
                .collect();
            let random = |rng: &mut Rng| {
                let bits = [rng.next().to_le_bytes(), rng.next().to_le_bytes()].concat();
                Scalar::from_bytes(dtype, &bits)
            };
            let a: Vec<Scalar> = (0..n.max(1)).map(|_| random(&mut rng)).collect();
            let b: Vec<Scalar> = (0..n.max(1)).map(|_| random(&mut rng)).collect();
            let lines = lines(n);
            for k in 0..5 {
                let mask_view = array(lines[k].clone(), DType::Bool, &mask);
                let (x, y) = (
                    array(lines[(k + 1) % 5].clone(), dtype, &a),
                    array(lines[(2 * k) % 5].clone(), dtype, &b),
                );
                let out = zeros(lines[(3 * k) % 5].clone(), dtype);
                let inputs = [&mask_view, &x, &y].map(|view| Operand::View(view.borrow()));
                map(&Tape::select(dtype), &inputs, &out).unwrap();
                for (i, got) in read(&out).iter().enumerate() {
                    let expected = if mask[i].bytes()[0] != 0 { a[i] } else { b[i] };
                    assert_eq!(got.bytes(), expected.bytes());
                }
            }
        }
    }
}

#[test]
fn tapes_of_many_steps() {
    let mut rng = Rng(17);
    for dtype in [DType::Float16, DType::Float32] {
        let mut build = Builder::new();
        let number = Slot::scalar(dtype);
        let [x, y] = [(); 2].map(|()| build.input(number, Per::I));
        let k = build.input(Slot::scalar(DType::Int32), Per::I);
        let c = build.constant(Scalar::new(0.75f64).cast(dtype), 1);
        let two_c = build.apply(Id::Add, &[c, c]).unwrap();
        let mut value = build.apply(Id::Multiply, &[x, y]).unwrap();
        let unused = build.apply(Id::Subtract, &[x, y]).unwrap();
        let _ = unused;
        // Enough live values to need the heap.
        let mut kept = Vec::new();
        for _ in 0..9 {
            value = build.apply(Id::Add, &[value, c]).unwrap();
            kept.push(value);
        }
        let integer = build.cast(k, dtype);
        for other in kept {
            value = build.apply(Id::Subtract, &[value, other]).unwrap();
        }
        let less = build.apply(Id::Less, &[value, integer]).unwrap();
        let scaled = build.apply(Id::Multiply, &[two_c, x]).unwrap();
        let chosen = build.select(less, scaled, value).unwrap();
        let wide = build.cast(chosen, DType::Complex64);
        let square = build.apply(Id::Multiply, &[wide, wide]).unwrap();
        let tape = build.finish(&[square]).unwrap();
        for (rows, columns) in [(1, 1), (2, 300), (60, 5), (40, 30)] {
            let n = rows * columns;
            let planes = planes(rows, columns);
            for shift in 0..planes.len() {
                let of = |i: usize| planes[(shift + i) % planes.len()].clone();
                let a = array(of(0), dtype, &values(dtype, -3.0..3.0, n, &mut rng));
                let b = array(of(1), dtype, &values(dtype, -3.0..3.0, n, &mut rng));
                let i = array(of(2), DType::Int32, &values(DType::Int32, -9.0..9.0, n, &mut rng));
                let out = zeros(planes[shift % 5].clone(), DType::Complex64);
                let inputs = [&a, &b, &i].map(|view| Operand::View(view.borrow()));
                map(&tape, &inputs, &out).unwrap();
                let (a, b, i) = (read(&a), read(&b), read(&i));
                for (e, got) in read(&out).iter().enumerate() {
                    let expected = tape.evaluate(&[&a[e..=e], &b[e..=e], &i[e..=e]]).unwrap();
                    assert!(same(got, &expected[0][0]), "{dtype} {rows}x{columns} {shift}");
                }
            }
        }
    }
}

#[test]
fn a_result_that_is_an_input_a_constant_or_not_the_last_step() {
    let n = 1000;
    let layout = Layout::contiguous(&[n]).unwrap();
    let ones = array(layout.clone(), DType::Float32, &[Scalar::new(1f32)]);
    let out = zeros(layout, DType::Float32);
    let mut build = Builder::new();
    let x = build.input(Slot::scalar(DType::Float32), Per::I);
    let y = build.input(Slot::scalar(DType::Float32), Per::I);
    let c = build.constant(Scalar::new(3f32), 1);
    let d = build.apply(Id::Add, &[c, y]).unwrap();
    let e = build.apply(Id::Add, &[x, d]).unwrap();
    let f = build.apply(Id::Exp, &[e]).unwrap();
    let _ = f;
    for (slot, value) in [(x, 1.0), (y, 2.0), (c, 3.0), (d, 5.0), (e, 6.0)] {
        let mut again = Builder::new();
        let x = again.input(Slot::scalar(DType::Float32), Per::I);
        let y = again.input(Slot::scalar(DType::Float32), Per::I);
        let c = again.constant(Scalar::new(3f32), 1);
        let d = again.apply(Id::Add, &[c, y]).unwrap();
        let e = again.apply(Id::Add, &[x, d]).unwrap();
        again.apply(Id::Exp, &[e]).unwrap();
        let tape = again.finish(&[slot]).unwrap();
        let inputs = [Operand::View(ones.borrow()), Operand::Scalar(Scalar::new(2f32))];
        map(&tape, &inputs, &out).unwrap();
        assert!(read(&out).iter().all(|x| x.get::<f32>() == value), "slot {slot}");
    }
}
