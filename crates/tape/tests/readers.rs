//! The forms that both doors need, held against values worked out by hand.

use smallvec::smallvec;
use tilework_ops::{DType, FoldId, Id, Number, Scalar, f16};
use tilework_tape::{Action, Builder, Contraction, Per, Slot, Tape};

fn vector(values: &[f64]) -> Vec<Scalar> {
    values.iter().map(|&x| Scalar::new(x)).collect()
}

fn numbers(scalars: &[Scalar]) -> Vec<f64> {
    scalars.iter().map(Scalar::get::<f64>).collect()
}

fn real(len: u32) -> Slot {
    Slot { dtype: DType::Float64, len }
}

#[test]
fn gaussian_of_a_squared_distance() {
    let mut build = Builder::new();
    let x = build.input(real(3), Per::I);
    let y = build.input(real(3), Per::J);
    let s = build.input(real(1), Per::Once);
    let d = build.apply(Id::Subtract, &[x, y]).unwrap();
    let d2 = build.dot(d, d).unwrap();
    let scaled = build.apply(Id::Multiply, &[d2, s]).unwrap();
    let minus = build.apply(Id::Negative, &[scaled]).unwrap();
    let k = build.apply(Id::Exp, &[minus]).unwrap();
    let tape = build.finish(&[k]).unwrap();
    let given = [vector(&[1.0, 2.0, 3.0]), vector(&[1.0, 0.0, 4.0]), vector(&[0.5])];
    let inputs: Vec<&[Scalar]> = given.iter().map(|v| &v[..]).collect();
    assert_eq!(numbers(&tape.evaluate(&inputs).unwrap()[0]), [(-2.5f64).exp()]);
    assert_eq!(
        tape.to_string(),
        "per i     %0: float64[3] = input 0\n\
         per j     %1: float64[3] = input 1\n\
         once      %2: float64 = input 2\n\
         per pair  %3: float64[3] = subtract %0 %1\n\
         per pair  %4: float64 = dot %3 %3\n\
         per pair  %5: float64 = multiply %4 %2\n\
         per pair  %6: float64 = negative %5\n\
         per pair  %7: float64 = exp %6\n\
         gives     %7\n"
    );
}

#[test]
fn contraction_is_a_matrix_product() {
    let mut build = Builder::new();
    let a = build.input(real(6), Per::I);
    let b = build.input(real(6), Per::J);
    let product =
        Contraction { left: smallvec![2, 3], right: smallvec![3, 2], over: smallvec![(1, 0)] };
    let c = build.contract(a, b, product).unwrap();
    let tape = build.finish(&[c]).unwrap();
    let (a, b) = (vector(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), vector(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]));
    assert_eq!(numbers(&tape.evaluate(&[&a, &b]).unwrap()[0]), [4.0, 5.0, 10.0, 11.0]);
}

#[test]
fn structure_and_folds_along_a_slot() {
    let mut build = Builder::new();
    let x = build.input(real(3), Per::I);
    let two = build.constant(Scalar::new(2.0), 1);
    let tail = build.extract(x, 1, 2).unwrap();
    let both = build.concat(&[tail, two]).unwrap();
    let placed = build.place(two, 2, 4).unwrap();
    let top = build.fold(FoldId::Max, both).unwrap();
    let place = build.fold(FoldId::ArgMax, both).unwrap();
    let tape = build.finish(&[both, placed, top, place]).unwrap();
    let results = tape.evaluate(&[&vector(&[9.0, -1.0, 5.0])]).unwrap();
    assert_eq!(numbers(&results[0]), [-1.0, 5.0, 2.0]);
    assert_eq!(numbers(&results[1]), [0.0, 0.0, 2.0, 0.0]);
    assert_eq!((numbers(&results[2]), numbers(&results[3])), (vec![5.0], vec![1.0]));
    assert_eq!(results[3][0].dtype(), DType::Int64);
}

#[test]
fn select_moves_halves_without_touching_their_bits() {
    let tape = Tape::select(DType::Float16);
    let strange = f16::from_bits(0x7d01);
    let inputs = [Scalar::new(true), Scalar::new(strange), Scalar::new(f16::ONE)];
    let result = tape.evaluate(&[&inputs[..1], &inputs[1..2], &inputs[2..]]).unwrap();
    assert_eq!(result[0][0].bytes(), 0x7d01u16.to_le_bytes());
}

#[test]
fn one_operation_on_mixed_dtypes_casts_first() {
    let tape = Tape::apply_to(Id::Add, &[DType::Int8, DType::Float32], DType::Float32);
    assert!(tape.check().is_ok() && tape.single().is_none());
    assert_eq!(Tape::apply(Id::Add, DType::Int8).single(), Some(Id::Add));
    let result =
        tape.evaluate(&[&[Scalar::new(2i8)], &[Number::from(0.5).cast(DType::Float32)]]).unwrap();
    assert_eq!(result[0][0], Scalar::new(2.5f32));
}

#[test]
fn malformed_steps_are_refused() {
    let mut build = Builder::new();
    let x = build.input(real(3), Per::I);
    let y = build.input(Slot { dtype: DType::Float32, len: 3 }, Per::J);
    let z = build.input(real(2), Per::J);
    assert!(build.apply(Id::Add, &[x, y]).is_err());
    assert!(build.apply(Id::Add, &[x, z]).is_err());
    assert!(build.apply(Id::Add, &[x]).is_err());
    assert!(build.extract(x, 2, 2).is_err());
    assert!(build.place(x, 2, 4).is_err());
    assert!(build.dot(x, z).is_err());
    assert!(build.select(x, x, x).is_err());
    assert!(build.finish(&[9]).is_err());
    assert!(matches!(Tape::cast(DType::Int8, DType::Bool).steps()[0].action, Action::Cast));
}
