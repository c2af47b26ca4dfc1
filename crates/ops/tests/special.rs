//! Real functions and integers: the standard's special cases (`data/standard`) in both precisions,
//! and the values that NumPy 2.4 gives where the standard is silent.

use std::path::Path;
use tilework_ops::special;

#[path = "standard_table.rs"]
mod standard_table;

use standard_table::Kind;

/// The functions that have tables: ours, or the standard library's where that is what is used.
macro_rules! apply {
    ($type:ident, $name:expr, $x:expr) => {{
        let x: Vec<$type> = $x;
        let truth = |t: bool| if t { 1.0 as $type } else { 0.0 };
        let one: Option<fn($type) -> $type> = match $name {
            "abs" => Some($type::abs),
            "acos" => Some($type::acos),
            "acosh" => Some($type::acosh),
            "asin" => Some($type::asin),
            "asinh" => Some($type::asinh),
            "atan" => Some($type::atan),
            "atanh" => Some($type::atanh),
            "ceil" => Some($type::ceil),
            "cos" => Some($type::cos),
            "cosh" => Some($type::cosh),
            "exp" => Some($type::exp),
            "expm1" => Some($type::exp_m1),
            "floor" => Some($type::floor),
            "log" => Some($type::ln),
            "log1p" => Some($type::ln_1p),
            "log2" => Some($type::log2),
            "log10" => Some($type::log10),
            "reciprocal" => Some($type::recip),
            "round" => Some(special::round_half_even),
            "sign" => Some(special::sign),
            "sin" => Some($type::sin),
            "sinh" => Some($type::sinh),
            "sqrt" => Some($type::sqrt),
            "square" => Some(|x| x * x),
            "tan" => Some($type::tan),
            "tanh" => Some($type::tanh),
            "trunc" => Some($type::trunc),
            _ => None,
        };
        let two: Option<fn($type, $type) -> $type> = match $name {
            "add" => Some(|x, y| x + y),
            "atan2" => Some($type::atan2),
            "copysign" => Some(special::copysign),
            "divide" => Some(|x, y| x / y),
            "floor_divide" => Some(special::floor_divide),
            "hypot" => Some(special::hypot),
            "logaddexp" => Some(special::logaddexp),
            "maximum" => Some(special::maximum),
            "minimum" => Some(special::minimum),
            "multiply" => Some(|x, y| x * y),
            "nextafter" => Some(special::nextafter),
            "pow" => Some($type::powf),
            "remainder" => Some(special::remainder),
            "subtract" => Some(|x, y| x - y),
            _ => None,
        };
        let result = match (one, two, $name) {
            (Some(f), _, _) => Some(f(x[0])),
            (_, Some(f), _) => Some(f(x[0], x[1])),
            (_, _, "clip") => Some(special::clip(x[0], x[1], x[2])),
            (_, _, "equal") => Some(truth(x[0] == x[1])),
            (_, _, "not_equal") => Some(truth(x[0] != x[1])),
            (_, _, "isfinite") => Some(truth(x[0].is_finite())),
            (_, _, "isinf") => Some(truth(x[0].is_infinite())),
            (_, _, "isnan") => Some(truth(x[0].is_nan())),
            (_, _, "signbit") => Some(truth(x[0].is_sign_negative())),
            (_, _, "bool") => Some(truth(x[0] != 0.0)),
            _ => None,
        };
        // Widened by hand: a conversion need not keep the sign of a NaN, but this one must.
        result.map(|r| f64::from(r).copysign(if r.is_sign_negative() { -1.0 } else { 1.0 }))
    }};
}

#[test]
fn special_cases_are_those_of_the_standard() {
    let rows = standard_table::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let (mut checked, mut failures) = (0, Vec::new());
    for row in rows.iter().filter(|row| row.kind == Kind::Real) {
        let name = row.function.as_str();
        let double = apply!(f64, name, row.operands.iter().map(|o| o[0]).collect());
        let single = apply!(f32, name, row.operands.iter().map(|o| o[0] as f32).collect());
        let double = double.unwrap_or_else(|| panic!("no function for {}", row.text));
        let single = single.expect("the same functions");
        checked += 2;
        if !row.expected.admits(&[double], 4.0 * f64::EPSILON) {
            failures.push(format!("{} but got {double:?}", row.text));
        }
        if !row.expected.admits(&[single], 4.0 * f64::from(f32::EPSILON)) {
            failures.push(format!("f32: {} but got {single:?}", row.text));
        }
    }
    println!("{checked} special cases of real numbers");
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
}

#[track_caller]
fn same(got: f64, want: f64) {
    let equal = (got.is_nan() && want.is_nan()) || got.to_bits() == want.to_bits();
    assert!(equal, "{got:?}, not {want:?}");
}

#[test]
fn floored_division_is_pythons() {
    let inf = f64::INFINITY;
    for (x, y, quotient, rest) in [
        (7.0, 2.0, 3.0, 1.0),
        (-7.0, 2.0, -4.0, 1.0),
        (7.0, -2.0, -4.0, -1.0),
        (-7.0, -2.0, 3.0, -1.0),
        (6.0, -2.0, -3.0, -0.0),
        (1.0, 0.1, 9.0, 0.099_999_999_999_999_95),
        (1.0, inf, 0.0, 1.0),
        (1.0, -inf, -1.0, -inf),
        (-1.0, inf, -1.0, inf),
        (-1.0, -inf, 0.0, -1.0),
        (-0.0, 1.0, -0.0, 0.0),
        (0.0, -inf, -0.0, -0.0),
        (inf, 1.0, f64::NAN, f64::NAN),
        (1.0, 0.0, inf, f64::NAN),
        (-1.0, 0.0, -inf, f64::NAN),
        (0.0, 0.0, f64::NAN, f64::NAN),
    ] {
        same(special::floor_divide(x, y), quotient);
        same(special::remainder(x, y), rest);
    }
    // In single precision the quotient is rounded in single precision, as NumPy has it.
    assert_eq!(special::floor_divide(1.0f32, 0.1), 9.0);
    assert_eq!(special::floor_divide(0.6f32, 0.2), 3.0);
}

#[test]
fn neighbours() {
    same(special::nextafter(0.0, 1.0), 5e-324);
    same(special::nextafter(0.0, -1.0), -5e-324);
    same(special::nextafter(5e-324, 0.0), 0.0);
    same(special::nextafter(-5e-324, 0.0), -0.0);
    same(special::nextafter(f64::MAX, f64::INFINITY), f64::INFINITY);
    same(special::nextafter(f64::NEG_INFINITY, 0.0), f64::MIN);
    assert_eq!(special::next_after::f32(1.0, 2.0), 1.0 + f32::EPSILON);
    assert_eq!(special::next_after::f64(1.0, 0.0), 1.0 - 0.5 * f64::EPSILON);
}

#[test]
fn sums_of_exponentials_and_sigmoids_keep_their_tails() {
    let inf = f64::INFINITY;
    same(special::logaddexp(-inf, -inf), -inf);
    same(special::logaddexp(-inf, 3.0), 3.0);
    same(special::logaddexp(inf, -inf), inf);
    same(special::logaddexp(1000.0, 1000.0), 1000.0 + std::f64::consts::LN_2);
    same(special::sigmoid(-inf), 0.0);
    same(special::sigmoid(inf), 1.0);
    same(special::sigmoid(-700.0), (-700.0f64).exp());
    assert_eq!(special::sigmoid(-100.0f32), (-100.0f64).exp() as f32);
    assert!(special::sigmoid(f64::NAN).is_nan() && special::logaddexp(f64::NAN, inf).is_nan());
}

#[test]
fn steps() {
    same(special::sign(-0.0), 0.0);
    same(special::relu(-0.0), 0.0);
    same(special::relu(-3.0), 0.0);
    same(special::relu(f64::NAN), f64::NAN);
    same(special::maximum(-0.0, 0.0), 0.0);
    same(special::maximum(0.0, -0.0), 0.0);
    same(special::minimum(0.0, -0.0), -0.0);
    same(special::minimum(-0.0, 0.0), -0.0);
    same(special::erf(f64::INFINITY), 1.0);
    same(special::erf(-0.0), -0.0);
    assert!((special::erf(0.5f64) - 0.520_499_877_813_046_5).abs() < 2e-16);
    assert_eq!(special::erf(0.5f32), 0.520_499_9);
}

#[test]
fn integers_wrap_and_divide_downwards() {
    assert_eq!(special::int_floor_divide(-7i32, 2), -4);
    assert_eq!(special::int_remainder(-7i32, 2), 1);
    assert_eq!(special::int_floor_divide(7i64, -2), -4);
    assert_eq!(special::int_remainder(7i64, -2), -1);
    assert_eq!(special::int_floor_divide(250u8, 7), 35);
    assert_eq!(special::int_remainder(200u8, 150), 50);
    assert_eq!((special::int_floor_divide(5i8, 0), special::int_remainder(5i8, 0)), (0, 0));
    assert_eq!(special::int_floor_divide(i8::MIN, -1), i8::MIN);
    assert_eq!(special::int_remainder(i64::MIN, -1), 0);
    // Every pair of bytes, by the definition.
    for x in i8::MIN..=i8::MAX {
        for y in (i8::MIN..=i8::MAX).filter(|y| *y != 0) {
            let (wide, over) = (i32::from(x), i32::from(y));
            let floor = (f64::from(x) / f64::from(y)).floor() as i32;
            assert_eq!(special::int_floor_divide(x, y), floor as i8);
            assert_eq!(special::int_remainder(x, y), (wide - floor * over) as i8);
        }
    }
}

#[test]
fn shifts_and_powers() {
    assert_eq!((special::left_shift(1i8, 7), special::left_shift(1i8, 8)), (-128, 0));
    assert_eq!((special::left_shift(1i32, -1), special::left_shift(1u64, 64)), (0, 0));
    assert_eq!((special::right_shift(-5i8, 1), special::right_shift(-5i8, 8)), (-3, -1));
    assert_eq!((special::right_shift(-5i32, -1), special::right_shift(5i32, -1)), (-1, 0));
    assert_eq!((special::right_shift(255u8, 255), special::right_shift(u64::MAX, 63)), (0, 1));
    assert_eq!(
        (special::ipow(3i32, 5), special::ipow(2u8, 9), special::ipow(0i64, 0)),
        (243, 0, 1)
    );
    assert_eq!(special::ipow(-3i8, 5), (-243i32) as i8);
}

#[test]
fn floats_become_integers_by_saturation() {
    assert_eq!(special::float_to_int::<f64, i8>(300.0), 127);
    assert_eq!(special::float_to_int::<f64, u8>(-1.5), 0);
    assert_eq!(special::float_to_int::<f32, i32>(-2.9), -2);
    assert_eq!(special::float_to_int::<f32, u64>(f32::INFINITY), u64::MAX);
    assert_eq!(special::float_to_int::<f64, i64>(f64::NAN), 0);
}
