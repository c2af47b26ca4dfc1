//! Maps against their definition: every operation, dtype and kind of layout.

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

fn expected(id: Id, operands: &[&[Scalar]], n: usize) -> Vec<Scalar> {
    let at = |i: usize| operands.iter().map(|x| x[i % x.len()]).collect::<Vec<_>>();
    (0..n).map(|i| id.evaluate(&at(i)).unwrap()).collect()
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

/// Layouts of a matrix: in order, turned, with gaps, reversed, rows and columns repeated.
fn planes(rows: usize, columns: usize) -> Vec<Layout> {
    let (r, c) = (rows as isize, columns as isize);
    let shape = [rows, columns];
    let last = |a: isize, b: isize| ((r - 1) * a + (c - 1) * b) as usize;
    vec![
        Layout::contiguous(&shape).unwrap(),
        Layout::new(&shape, &[1, r], 3).unwrap(),
        Layout::new(&shape, &[2 * c, 2], 1).unwrap(),
        Layout::new(&shape, &[-c, -1], last(c, 1)).unwrap(),
        Layout::new(&shape, &[1, -(r + 2)], ((c - 1) * (r + 2)) as usize).unwrap(),
        Layout::new(&shape, &[0, 1], 2).unwrap(),
        Layout::new(&shape, &[1, 0], 2).unwrap(),
        Layout::new(&shape, &[0, 2], 2).unwrap(),
        Layout::new(&shape, &[-1, 0], rows).unwrap(),
    ]
}

#[test]
fn matrices_of_all_layouts() {
    let ids = [Id::Subtract, Id::Less];
    for dtype in [DType::UInt8, DType::Float16, DType::Float32, DType::Complex128] {
        for (rows, columns) in [(1, 1), (2, 3), (50, 3), (3, 50), (33, 17), (5, 300)] {
            let n = rows * columns;
            let mut rng = Rng(n as u64);
            for id in ids.into_iter().filter(|id| id.row().takes(dtype)) {
                let a = values(dtype, -9.0..9.0, n, &mut rng);
                let b = values(dtype, -9.0..9.0, n, &mut rng);
                let planes = planes(rows, columns);
                for (i, out) in planes.iter().take(5).enumerate() {
                    for (j, left) in planes.iter().enumerate() {
                        let right = &planes[(i + 2 * j) % planes.len()];
                        let (a, b) =
                            (array(left.clone(), dtype, &a), array(right.clone(), dtype, &b));
                        let operands = [read(&a), read(&b)];
                        let arity = id.row().arity;
                        let operands: Vec<&[Scalar]> =
                            operands.iter().take(arity).map(|x| &x[..]).collect();
                        let expected = expected(id, &operands, n);
                        let inputs = [Operand::View(a.borrow()), Operand::View(b.borrow())];
                        let out = zeros(out.clone(), expected[0].dtype());
                        map(&Tape::apply(id, dtype), &inputs[..arity], &out).unwrap();
                        for (k, (got, expected)) in read(&out).iter().zip(&expected).enumerate() {
                            assert!(
                                is_near(id.row(), dtype, got, expected),
                                "{} {dtype} {rows}x{columns} layouts {i} {j}, element {k}: {got:?} is not {expected:?}",
                                id.row().name
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn arrays_of_many_axes() {
    let mut rng = Rng(5);
    let shape = [3, 2, 4, 1, 5, 2];
    let n: usize = shape.iter().product();
    let base = Layout::contiguous(&shape).unwrap();
    let orders = [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 5, 3, 1, 4], [4, 5, 0, 1, 2, 3]];
    for dtype in [DType::Int16, DType::Float32, DType::Complex64] {
        let tape = Tape::apply(Id::Multiply, dtype);
        for out in orders {
            for left in orders {
                for right in orders {
                    let of = |order: [usize; 6]| {
                        // An order of axes in memory, seen with the shape of the first.
                        let memory: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
                        let strides = Layout::contiguous(&memory).unwrap();
                        let mut inverse = [0; 6];
                        order.iter().enumerate().for_each(|(k, &axis)| {
                            inverse[axis] = strides.strides()[k];
                        });
                        Layout::new(&shape, &inverse, 0).unwrap()
                    };
                    let a = values(dtype, -9.0..9.0, n, &mut rng);
                    let b = values(dtype, -9.0..9.0, n, &mut rng);
                    let expected = expected(Id::Multiply, &[&a, &b], n);
                    let (a, b) = (array(of(left), dtype, &a), array(of(right), dtype, &b));
                    let out = zeros(of(out), dtype);
                    let inputs = [Operand::View(a.borrow()), Operand::View(b.borrow())];
                    map(&tape, &inputs, &out).unwrap();
                    assert_eq!(read(&out), expected);
                    let copied = zeros(base.clone(), dtype);
                    map(&Tape::copy(dtype), &[Operand::View(out.borrow())], &copied).unwrap();
                    assert_eq!(read(&copied), expected);
                }
            }
        }
    }
}

#[test]
fn copies_and_fills_of_all_layouts_and_widths() {
    let mut rng = Rng(9);
    for dtype in [DType::Bool, DType::Float16, DType::Int32, DType::Complex64, DType::Complex128] {
        for (rows, columns) in
            [(0, 4), (1, 1), (3, 5), (16, 16), (33, 70), (70, 33), (4, 200), (129, 130)]
        {
            for from in planes(rows.max(1), columns.max(1)) {
                for to in planes(rows.max(1), columns.max(1)).into_iter().take(5) {
                    let values = values(dtype, -99.0..99.0, 31, &mut rng);
                    let narrow = |layout: &Layout| layout.narrow(0, 0, rows).unwrap();
                    let from = array(from.clone(), dtype, &values);
                    let from = from.with_layout(narrow(from.layout())).unwrap();
                    let block = zeros(to.clone(), dtype);
                    let out = block.with_layout(narrow(block.layout())).unwrap();
                    map(&Tape::copy(dtype), &[Operand::View(from.borrow())], &out).unwrap();
                    assert_eq!(read(&out), read(&from), "{dtype} {rows}x{columns}");
                    let value = values[3];
                    map(&Tape::copy(dtype), &[Operand::Scalar(value)], &out).unwrap();
                    assert!(read(&out).iter().all(|x| *x == value));
                }
            }
        }
    }
}

#[test]
fn what_lies_between_the_elements_of_a_target_is_left_alone() {
    for one in [Scalar::new(1i16), Scalar::new(1i32), Scalar::new(1f64)] {
        for turned in [false, true] {
            only_elements_are_written(one, turned);
        }
    }
}

/// Copies and negatives of ones, in order or turned around, into targets with gaps.
fn only_elements_are_written(one: Scalar, turned: bool) {
    let dtype = one.dtype();
    for layout in [
        Layout::new(&[40, 3], &[7, 2], 1).unwrap(),
        Layout::new(&[3, 40], &[2, 7], 1).unwrap(),
        Layout::new(&[20, 20], &[50, -2], 45).unwrap(),
        Layout::new(&[37, 19], &[50, 1], 5).unwrap(),
    ] {
        let whole = Layout::contiguous(&[2000]).unwrap();
        let &[rows, columns] = layout.shape() else { unreachable!() };
        let strides = if turned { [1, rows.cast_signed()] } else { [columns.cast_signed(), 1] };
        let order = Layout::new(layout.shape(), &strides, 0).unwrap();
        for tape in [Tape::copy(dtype), Tape::apply(Id::Negative, dtype)] {
            let block = zeros(whole.clone(), dtype);
            let out = block.with_layout(layout.clone()).unwrap();
            let from = array(order.clone(), dtype, &[one]);
            map(&tape, &[Operand::View(from.borrow())], &out).unwrap();
            let written = read(&block).iter().filter(|x| x.is_true()).count();
            assert_eq!((written, read(&out).iter().all(Scalar::is_true)), (layout.len(), true));
        }
    }
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

#[test]
fn large_arrays_are_cut_into_pieces() {
    // Larger than a piece, so that threads take part; the length is odd on purpose.
    let n = 300_007;
    let mut rng = Rng(23);
    for dtype in [DType::UInt8, DType::Float32, DType::Complex128] {
        let few = values(dtype, -50.0..50.0, 1009, &mut rng);
        let line = Layout::contiguous(&[n]).unwrap();
        let back = Layout::new(&[n], &[-1], n - 1).unwrap();
        let (a, b) = (array(line.clone(), dtype, &few), array(back.clone(), dtype, &few));
        let out = zeros(line.clone(), dtype);
        let inputs = [Operand::View(a.borrow()), Operand::View(b.borrow())];
        map(&Tape::apply(Id::Add, dtype), &inputs, &out).unwrap();
        let sums: Vec<Scalar> = few.iter().map(|x| Id::Add.evaluate(&[*x, *x]).unwrap()).collect();
        assert!(read(&out).iter().enumerate().all(|(i, x)| *x == sums[i % 1009]));
        let copied = zeros(back, dtype);
        map(&Tape::copy(dtype), &[Operand::View(out.borrow())], &copied).unwrap();
        assert_eq!(read(&copied), read(&out));
    }
    let (rows, columns) = (517, 771);
    let few = values(DType::Float32, -5.0..5.0, 1009, &mut rng);
    let a =
        array(Layout::new(&[rows, columns], &[1, rows as isize], 0).unwrap(), DType::Float32, &few);
    let b = array(Layout::contiguous(&[rows, columns]).unwrap(), DType::Float32, &few);
    let out = zeros(Layout::contiguous(&[rows, columns]).unwrap(), DType::Float32);
    map(
        &Tape::apply(Id::Subtract, DType::Float32),
        &[&a, &b].map(|v| Operand::View(v.borrow())),
        &out,
    )
    .unwrap();
    assert!(read(&out).iter().all(|x| x.get::<f32>() == 0.0));
    map(&Tape::copy(DType::Float32), &[Operand::View(a.borrow())], &out).unwrap();
    assert_eq!(read(&out), read(&b));
}

#[test]
fn operands_that_run_across_the_output() {
    // Large enough for boxes, odd enough for their edges.
    let (rows, columns) = (131, 97);
    let n = rows * columns;
    let mut rng = Rng(29);
    for dtype in [DType::UInt8, DType::Float16, DType::Float32, DType::Complex128] {
        let a = values(dtype, -9.0..9.0, n, &mut rng);
        let b = values(dtype, -9.0..9.0, n, &mut rng);
        let expected = expected(Id::Subtract, &[&a, &b], n);
        let planes = planes(rows, columns);
        for out in &planes[..5] {
            for (left, right) in [(1, 0), (0, 1), (1, 4), (4, 3), (1, 1)] {
                let a = array(planes[left].clone(), dtype, &a);
                let b = array(planes[right].clone(), dtype, &b);
                let out = zeros(out.clone(), dtype);
                let inputs = [&a, &b].map(|view| Operand::View(view.borrow()));
                map(&Tape::apply(Id::Subtract, dtype), &inputs, &out).unwrap();
                assert!(read(&out) == expected, "{dtype} {left} {right}");
            }
        }
    }
}

#[test]
fn large_transposes() {
    let mut rng = Rng(31);
    for (dtype, rows, columns) in [
        (DType::UInt8, 300, 4301),
        (DType::Float32, 270, 1100),
        (DType::Complex128, 300, 257),
        (DType::Int16, 3, 200_000),
    ] {
        let few = values(dtype, 0.0..100.0, 1013, &mut rng);
        let order = Layout::contiguous(&[rows, columns]).unwrap();
        let turned = Layout::new(&[rows, columns], &[1, rows as isize], 0).unwrap();
        for (from, to) in [(&turned, &order), (&order, &turned)] {
            let source = array(from.clone(), dtype, &few);
            let out = zeros(to.clone(), dtype);
            map(&Tape::copy(dtype), &[Operand::View(source.borrow())], &out).unwrap();
            assert!(read(&out).iter().enumerate().all(|(i, x)| *x == few[i % 1013]));
        }
    }
}
