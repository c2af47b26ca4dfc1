//! Maps over matrices and arrays of many axes: copies, fills and operations whose operands are turned,
//! reversed, repeated or full of gaps, small and cut into pieces.

mod map_support;

use map_support::*;
use tilework_backend::Operand;
use tilework_layout::Layout;
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::Tape;

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

/// Rows of a few bytes, of which few follow each other: repeated, parts of larger arrays, backwards.
#[test]
fn copies_of_many_short_rows() {
    let mut rng = Rng(6);
    for dtype in [DType::UInt8, DType::Float16, DType::Float32, DType::Int64, DType::Complex128] {
        for (n, burst, row) in [(64, 2, 4), (1000, 3, 3), (70, 2, 1), (3000, 15, 2), (129, 4, 7)] {
            let (tall, wide) = ((burst + 1) * (row + 2), row + 2);
            let [len, step, count] = [n, tall, wide].map(|x: usize| x.cast_signed());
            let shape = [n, burst, row];
            let outer = [2, n, burst, row];
            let layouts = [
                Layout::new(&shape, &[row.cast_signed(), 0, 1], 0),
                Layout::new(&shape, &[step, count, 1], 3),
                Layout::new(&shape, &[-step, count, 1], (n - 1) * tall),
                Layout::new(&shape, &[0, count, 1], 1),
                Layout::new(&outer, &[len * step, step, count, 1], 0),
                Layout::new(&outer, &[0, step, 0, 1], 0),
            ];
            for layout in layouts.map(Result::unwrap) {
                let target = Layout::contiguous(layout.shape()).unwrap();
                let source =
                    array(layout.clone(), dtype, &values(dtype, -9.0..9.0, layout.len(), &mut rng));
                let copied = zeros(target, dtype);
                map(&Tape::copy(dtype), &[Operand::View(source.borrow())], &copied).unwrap();
                assert!(read(&copied) == read(&source), "{dtype} {layout:?}");
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
