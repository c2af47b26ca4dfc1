//! Results large enough to go past the caches: maps, copies and transposes, from the start of a cache
//! line and from the middle of one, against plain arithmetic on indices.

mod map_support;

use map_support::{array, map, read, zeros};
use tilework_backend::{Operand, View};
use tilework_layout::Layout;
use tilework_ops::{DType, Id, Scalar};
use tilework_tape::Tape;

/// Values repeat with this period, which no size of a block divides.
const PERIOD: usize = 100_003;

/// A little more than what goes past the caches, in float32, and not whole lines.
const COUNT: usize = (16 << 20) / 4 + 7;

fn value(i: usize) -> f32 {
    (i % PERIOD) as f32 * 0.5
}

fn filled(layout: Layout) -> View {
    let values: Vec<Scalar> = (0..PERIOD).map(|i| Scalar::new(value(i))).collect();
    array(layout, DType::Float32, &values)
}

fn check(tape: &Tape, inputs: &[&View], out: &View, expected: impl Fn(usize) -> f32) {
    let inputs: Vec<Operand<'_>> = inputs.iter().map(|view| Operand::View(view.borrow())).collect();
    map(tape, &inputs, out).unwrap();
    for (i, got) in read(out).iter().enumerate() {
        assert_eq!(got.get::<f32>(), expected(i), "element {i}");
    }
}

#[test]
fn sums_are_whole_wherever_they_begin() {
    let x = filled(Layout::contiguous(&[COUNT]).unwrap());
    for offset in [0, 5] {
        let y = filled(Layout::new(&[COUNT], &[1], offset).unwrap());
        let out = zeros(Layout::new(&[COUNT], &[1], offset).unwrap(), DType::Float32);
        check(&Tape::apply(Id::Add, DType::Float32), &[&x, &y], &out, |i| 2.0 * value(i));
    }
}

#[test]
fn in_place_sums_read_before_they_write() {
    let x = filled(Layout::contiguous(&[COUNT]).unwrap());
    check(&Tape::apply(Id::Add, DType::Float32), &[&x, &x], &x, |i| 2.0 * value(i));
}

#[test]
fn values_meet_every_element_on_either_side() {
    for offset in [0, 5] {
        let x = filled(Layout::new(&[COUNT], &[1], offset).unwrap());
        let out = zeros(Layout::contiguous(&[COUNT]).unwrap(), DType::Float32);
        let tape = Tape::apply(Id::Subtract, DType::Float32);
        let three = Operand::Scalar(Scalar::new(3.0f32));
        map(&tape, &[three, Operand::View(x.borrow())], &out).unwrap();
        for (i, got) in read(&out).iter().enumerate() {
            assert_eq!(got.get::<f32>(), 3.0 - value(i), "element {i} from {offset}");
        }
        // And into itself.
        map(&tape, &[Operand::View(x.borrow()), three], &x).unwrap();
        for (i, got) in read(&x).iter().enumerate() {
            assert_eq!(got.get::<f32>(), value(i) - 3.0, "element {i} from {offset}, in place");
        }
    }
}

#[test]
fn results_wider_and_narrower_than_their_operand() {
    for (dtype, offset) in [(DType::Float64, 3), (DType::Float16, 0), (DType::UInt8, 1)] {
        let count = 2 * (16 << 20) / dtype.size() + 3;
        let values: Vec<Scalar> = (0..251).map(|i| Scalar::new(i as f32)).collect();
        let x = array(Layout::contiguous(&[count]).unwrap(), DType::Float32, &values);
        let out = zeros(Layout::new(&[count], &[1], offset).unwrap(), dtype);
        map(&Tape::cast(DType::Float32, dtype), &[Operand::View(x.borrow())], &out).unwrap();
        for (i, got) in read(&out).iter().enumerate() {
            assert_eq!(*got, values[i % 251].cast(dtype), "element {i} in {dtype}");
        }
    }
}

#[test]
fn copies_are_whole_wherever_they_begin() {
    let x = filled(Layout::contiguous(&[COUNT]).unwrap());
    for offset in [0, 5] {
        let out = zeros(Layout::new(&[COUNT], &[1], offset).unwrap(), DType::Float32);
        check(&Tape::copy(DType::Float32), &[&x], &out, value);
    }
}

#[test]
fn operands_with_gaps_and_backwards() {
    for step in [2isize, 3, 4, 7, 40, -1, -2, -5] {
        // As many as a copy needs whose lines are read whole.
        let count = (33 << 20) / (4 + 64.min(4 * step.unsigned_abs())) - 3;
        let first = if step < 0 { step.unsigned_abs() * (count - 1) } else { 0 };
        let x = filled(Layout::new(&[count], &[step], first).unwrap());
        let y = filled(Layout::contiguous(&[count]).unwrap());
        for offset in [0, 5] {
            let out = zeros(Layout::new(&[count], &[1], offset).unwrap(), DType::Float32);
            check(&Tape::copy(DType::Float32), &[&x], &out, value);
            let tape = Tape::apply(Id::Add, DType::Float32);
            check(&tape, &[&x, &x], &out, |i| 2.0 * value(i));
            check(&tape, &[&y, &x], &out, |i| 2.0 * value(i));
        }
    }
}

#[test]
fn transposes_with_rows_of_whole_lines_and_others() {
    for (rows, columns) in [(2064, 2048), (2051, 2055), (70_001, 64)] {
        // Its rows are the columns of the source.
        let x = filled(Layout::contiguous(&[columns, rows]).unwrap());
        let turned = x.with_layout(x.layout().permute(&[1, 0]).unwrap()).unwrap();
        let out = zeros(Layout::contiguous(&[rows, columns]).unwrap(), DType::Float32);
        check(&Tape::copy(DType::Float32), &[&turned], &out, |i| {
            value(i % columns * rows + i / columns)
        });
    }
}
