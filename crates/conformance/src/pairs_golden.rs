//! The kernels whose text is in golden files compute what they should: the source of each call is its file, byte
//! for byte, and the numbers are those of the CPU, and of the float64 evaluator in two rows.
//!
//! What is called is the cuda crate's table, by which its own tests hold the printed text against the same files
//! without a card.

use tilework::formula::Reduction;
use tilework::pairs::{Accuracy, Genred, Options, SumScheme};
use tilework::{Array, DType, Device, Rng};

use crate::each;
use crate::pairs::{allowances, floats, oracle, within};
use crate::pairs_sizes::agree;
use cases::{ALIASES, CASES, Case, File};

#[path = "../../cuda/golden/cases.rs"]
mod cases;

macro_rules! texts {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../cuda/golden/pairs/", $name, ".cu")))),+]
    };
}

/// Names and texts of the files, which a machine with a card may not have.
#[rustfmt::skip]
const TEXTS: [(&str, &str); 79] = texts![
    "attention", "attention_wide", "points_again", "points_again_weighted", "products", "products_wide",
    "shifted", "shifted_expanded", "shifted_exponents", "shifted_exponents_wide",
    "shifted_fused", "shifted_fused_wide",
    "choices", "cosines", "counted", "extremes", "farthest_hundred", "gauss", "gauss_centred", "gauss_expanded", "gauss_float64",
    "gauss_float64_expanded", "gauss_half", "gauss_half_expanded", "gauss_strict", "gauss_strict_normal", "gradient",
    "half_columns", "half_columns_columns", "half_gradient", "half_gradient_weighted", "half_logarithm", "half_logarithm_wide", "half_nearest", "half_nearest_wide",
    "gradient_columns", "incoming", "incoming_weighted", "laplace", "laplace_columns", "laplace_columns_weighted", "laplace_scaled", "laplace_scaled_weighted", "little", "little_hundred", "little_long", "little_wide", "logarithm", "logarithm_expanded", "long_gradient",
    "long_gradient_weighted", "long_logarithm", "long_logarithm_wide", "long_nearest",
    "long_nearest_ten", "long_nearest_ten_wide", "long_nearest_wide", "long_vectors",
    "long_vectors_wide", "long_weighted", "long_weighted_wide", "many_components",
    "many_components_weighted", "nearest", "nearest_ten", "outer_products", "several_vectors", "sliced_components",
    "sliced_components_weighted", "sliced_gradient", "sliced_gradient_weighted", "sliced_ranks",
    "sliced_soft_mean", "soft_mean", "tensors", "two_columns", "two_columns_weighted", "two_lengths", "two_sums",
];

/// How far the clouds of far points are apart.
const APART: f64 = 300.0;

/// Every golden file is the source of a call, and that call is right.
pub fn golden(device: Device) {
    let files = CASES.iter().flat_map(|case| case.files.iter().map(move |file| (case, file)));
    each(files, |(case, file)| {
        let name = format!("{}{}", case.name, file.suffix);
        let (_, text) = TEXTS.iter().find(|(other, _)| *other == name).expect(&name);
        let source = right(device, &name, case, file);
        // Sizes of tiles are those of the card.
        if source.contains(&format!(", {} multiprocessors,", cases::MULTIPROCESSORS)) {
            assert_eq!(cases::outline(&source), *text, "{name}: another source than its file");
        } else {
            println!("{name}: numbers are right, but the file is of another card");
        }
    });
}

/// Compares a call with the evaluator, and gives the source of its kernels.
fn right(device: Device, name: &str, case: &Case, file: &File) -> String {
    let arrays = data(case, file);
    let aliases = ALIASES.map(|(alias, _)| alias);
    let made = |formula: &str| {
        Genred::with(formula, &aliases, case.reduction, 1, case.k, case.weight).expect(name)
    };
    let call = made(case.formula);
    let options = Options {
        sums: if case.compensated { SumScheme::Kahan } else { SumScheme::default() },
        accuracy: if case.strict { Accuracy::Strict } else { Accuracy::Declared },
        ..Options::default()
    };
    let there = arrays.each_ref().map(|x| x.to_device(device).expect(name));
    let there: Vec<&Array> = there.iter().collect();
    let got = call.call_with(&there, &options).expect(name);
    let here: Vec<&Array> = arrays.iter().collect();
    let expected = call.call_with(&here, &options).expect(name);
    let tolerance = match case.dtype {
        DType::Float64 => 1e-12,
        DType::Float32 => 2e-5,
        _ => 5e-3,
    };
    agree(name, &got, &expected, tolerance);
    // A row of either cloud.
    for row in [0, file.m as isize - 1] {
        let row = tilework::s![row..row + 1];
        let numbers: Vec<Vec<f64>> = (arrays.iter().zip(aliases))
            .map(|(x, alias)| match alias.contains("Vi") {
                true => floats(&x.slice(&row).expect(name)),
                false => floats(x),
            })
            .collect();
        let evaluated = |of: &Reduction| oracle(of, &numbers, 1, file.n);
        let (values, indices) = evaluated(call.reduction());
        if let Some(all) = &got.values {
            let allowed = match case.reduction {
                "Sum" | "Mean" => {
                    let terms = evaluated(made(&format!("Abs({})", case.formula)).reduction()).0;
                    allowances(case.dtype, &values, &terms)
                }
                // A product has the roundings of all its factors.
                "Prod" => {
                    let each = file.n as f64 * f64::from(f32::EPSILON);
                    values.iter().map(|b| each * b.abs()).collect()
                }
                _ => allowances(
                    case.dtype,
                    &values,
                    &values.iter().map(|b| 1.0 + b.abs()).collect::<Vec<_>>(),
                ),
            };
            within(name, &floats(&all.slice(&row).expect(name)), &values, &allowed);
        }
        if let Some(all) = &got.indices {
            let found = all.slice(&row).and_then(|x| x.to_vec::<i64>()).expect(name);
            assert_eq!(found, indices, "{name}: indices");
        }
    }
    call.explain(&there, &options).expect(name)
}

/// Arrays for all variables: points near the origin, wide ones as far apart as narrow ones; or half of each array
/// beside another cloud.
fn data(case: &Case, file: &File) -> [Array; 11] {
    let rng = Rng::new(16);
    ALIASES.map(|(alias, dim)| {
        let rows = if alias.contains("Vi") { file.m } else { file.n };
        let made = || -> tilework::Result<Array> {
            if alias.contains("Pm") {
                return Array::full_on(Device::cpu(), &[dim], 0.1, case.dtype);
            }
            let spread = 0.5 * (3.0 / dim.max(3) as f64).sqrt();
            let points = rng.normal(&[rows, dim], DType::Float64)?.multiply(spread)?;
            if file.far && !alias.contains('b') {
                let other = points.slice(&tilework::s![rows as isize / 2..])?;
                other.assign(&other.add(APART)?)?;
            }
            points.astype(case.dtype)
        };
        made().expect(alias)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a card nobody asks for them.
    #[test]
    fn every_file_has_its_text() {
        let name = |case: &Case, file: &File| format!("{}{}", case.name, file.suffix);
        let of_cases =
            CASES.iter().flat_map(|case| case.files.iter().map(move |file| (case, file)));
        let names: Vec<String> = of_cases.map(|(case, file)| name(case, file)).collect();
        for name in &names {
            assert!(TEXTS.iter().any(|(other, _)| other == name), "{name} is missing");
        }
        assert_eq!(names.len(), TEXTS.len());
    }
}
