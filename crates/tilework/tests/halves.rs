//! Half types store, float32 computes: what lies between two steps of one call is never rounded to
//! half, so that every result is as near as one rounding leaves it.

use tilework::pairs::{LazyTensor, Options};
use tilework::{Array, DType, Result, Rng};

const HALVES: [DType; 2] = [DType::Float16, DType::BFloat16];

/// The largest difference, relative to the largest number that is wanted.
fn error(got: &Array, wanted: &Array) -> Result<f64> {
    let far = (&got.astype(DType::Float64)? - wanted)?.abs()?.max(())?.item::<f64>()?;
    Ok(far / wanted.abs()?.max(())?.item::<f64>()?)
}

/// Two clouds, weights and a parameter.
struct Clouds {
    x: Array,
    y: Array,
    weight: Array,
    scale: Array,
}

impl Clouds {
    fn new(dtype: DType) -> Result<Clouds> {
        let rng = Rng::new(5);
        let cloud = |rows: usize, dim: usize, at: f64| {
            (&rng.normal(&[rows, dim], DType::Float64)? + at)?.astype(dtype)
        };
        Ok(Clouds {
            x: cloud(20, 3, 0.0)?,
            y: cloud(30, 3, 1.0)?,
            weight: rng.uniform(&[30, 2], DType::Float64)?.astype(dtype)?,
            scale: Array::from_slice(&[1.0f64])?.astype(dtype)?,
        })
    }

    fn astype(&self, dtype: DType) -> Result<Clouds> {
        let cast = |array: &Array| array.astype(dtype);
        let (x, y) = (cast(&self.x)?, cast(&self.y)?);
        Ok(Clouds { x, y, weight: cast(&self.weight)?, scale: cast(&self.scale)? })
    }

    /// Gradients towards everything by either door, of a reduction of exponents or of factors near 1.
    fn gradients(
        &self,
        name: &str,
        is_weighted: bool,
        shift: f64,
    ) -> Result<Vec<(&'static str, Array)>> {
        let (x, y) = (LazyTensor::vi(&self.x)?, LazyTensor::vj(&self.y)?);
        let (weight, scale) = (LazyTensor::vj(&self.weight)?, LazyTensor::pm(&self.scale)?);
        let exponent = x.sqdist(&y)?.multiply(&scale)?.negative()?;
        let f = if name == "Prod" { (&exponent * 1e-3)? } else { exponent };
        let f = (&f + if name == "Prod" { 1.2 } else { shift })?;
        let options = Options { k: name.starts_with('K').then_some(3), ..Options::default() };
        let weights = is_weighted.then_some(&weight);
        let mut variables = vec![("x", &x), ("y", &y), ("scale", &scale)];
        variables.extend(weights.map(|weight| ("weight", weight)));
        let tensors: Vec<&LazyTensor> = variables.iter().map(|(_, tensor)| *tensor).collect();
        let shape = f.outline(name, 1, weights, &options)?.shape;
        let e = Array::full(&shape, 0.0625, self.x.dtype())?;
        let (value, together) = f.value_and_grad(name, 1, weights, &tensors, Some(&e), &options)?;
        let mut all = vec![("value", value)];
        for ((of, tensor), gradient) in variables.into_iter().zip(together) {
            all.push((of, f.reduction_grad(name, 1, weights, tensor, &e, &options)?));
            all.push((of, gradient));
        }
        Ok(all)
    }
}

#[test]
fn gradients_of_reductions_are_rounded_once() -> Result<()> {
    for dtype in HALVES {
        let clouds = Clouds::new(dtype)?;
        let exact = clouds.astype(DType::Float64)?;
        // Exponents of hundreds, as logarithms in optimal transport have them, and of about -6.
        for shift in [-400.0, 0.0] {
            for (name, is_weighted) in [
                ("Sum", false),
                ("Mean", false),
                ("Prod", false),
                ("Min", false),
                ("KMax", false),
                ("LogSumExp", false),
                ("LogSumExp", true),
                ("SumSoftMaxWeight", true),
                ("Max_SumShiftExp", false),
                ("Max_SumShiftExpWeight", true),
            ] {
                let got = clouds.gradients(name, is_weighted, shift)?;
                let wanted = exact.gradients(name, is_weighted, shift)?;
                for ((of, got), (_, wanted)) in got.iter().zip(&wanted) {
                    assert_eq!(got.dtype(), dtype, "{name} towards {of}");
                    let error = error(got, wanted)?;
                    // Half a unit in the last place, and what float32 makes of such exponents.
                    let bound = 0.75 * dtype.finfo()?.eps;
                    assert!(error < bound, "{dtype} {name} at {shift} towards {of}: {error}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn sums_beyond_the_largest_half_are_not_infinite_on_the_way() -> Result<()> {
    let count = 70_000;
    let x = LazyTensor::vi(&Array::zeros(&[3, 1], DType::Float16)?)?;
    let y = LazyTensor::vj(&Array::ones(&[count, 1], DType::Float16)?)?;
    let f = x.multiply(&y)?;
    let (value, gradients) =
        f.value_and_grad("LogSumExp", 1, None, &[&x], None, &Options::default())?;
    assert!((value.max(())?.item::<f64>()? - (count as f64).ln()).abs() < 4e-3);
    assert!(gradients[0].equal(1.0)?.all(())?.item::<bool>()?);
    Ok(())
}

/// What comes to a parameter, or to a cloud that several batches share, is a sum of rows that may be larger.
#[test]
fn rows_are_added_before_they_are_rounded() -> Result<()> {
    let count = 70_000;
    let ones = |shape: &[usize]| Array::ones(shape, DType::Float16);
    let (y, options) = (LazyTensor::vj(&ones(&[count, 1])?)?, Options::default());
    let signs = Array::from_slice(&[1.0f64, -1.0, 1.0, -1.0])?.astype(DType::Float16)?;
    let (x, scale) = (LazyTensor::vi(&ones(&[4, 1])?)?, LazyTensor::pm(&ones(&[1])?)?);
    let f = x.multiply(&y)?.multiply(&scale)?;
    let e = signs.reshape(&[4, 1])?;
    let one = f.reduction_grad("Sum", 1, None, &scale, &e, &options)?;
    let both = f.value_and_grad("Sum", 1, None, &[&x, &scale], Some(&e), &options)?;
    assert_eq!((one.item::<f64>()?, both.1[1].item::<f64>()?), (0.0, 0.0));
    let (x, scale) = (LazyTensor::vi(&ones(&[1, 1])?)?, LazyTensor::vi(&ones(&[4, 1, 1])?)?);
    let f = x.multiply(&y)?.multiply(&scale)?;
    let e = signs.reshape(&[4, 1, 1])?;
    let one = f.reduction_grad("Sum", 1, None, &x, &e, &options)?;
    let both = f.value_and_grad("Sum", 1, None, &[&x], Some(&e), &options)?;
    assert_eq!((one.item::<f64>()?, both.1[0].item::<f64>()?), (0.0, 0.0));
    assert_eq!(both.1[0].shape(), [1, 1]);
    Ok(())
}

#[test]
fn deviations_and_shares_are_rounded_once() -> Result<()> {
    let normal = Rng::new(3).normal(&[2, 5_000], DType::Float64)?;
    for dtype in HALVES {
        let once = |wanted: &Array, got: &Array, what: &str| -> Result<()> {
            assert_eq!((got.dtype(), got.shape()), (dtype, wanted.shape()), "{what}");
            let far = (&got.astype(DType::Float64)? - wanted)?.abs()?;
            // Half a unit in the last place; next to zero units are no smaller.
            let info = dtype.finfo()?;
            let unit = wanted.abs()?.maximum(info.smallest_normal)?.multiply(info.eps)?;
            let far = far.divide(&unit)?.max(())?.item::<f64>()?;
            assert!(far < 0.51, "{dtype}: {what} is {far} units off");
            Ok(())
        };
        for spread in [1e-4, 3e-4, 1.0, 300.0, 1e4] {
            let x = (&normal * spread)?.astype(dtype)?;
            let exact = x.astype(DType::Float64)?;
            once(&exact.std((), 0.0)?, &x.std((), 0.0)?, "std")?;
            once(&exact.std_keepdims(1, 1.0)?, &x.std_keepdims(1, 1.0)?, "std_keepdims")?;
            once(&exact.softmax(1)?, &x.softmax(1)?, "softmax")?;
            once(&exact.logsumexp(1)?, &x.logsumexp(1)?, "logsumexp")?;
            for order in [1.0, 2.0, 3.0, f64::INFINITY] {
                let norm = exact.norm(1, order)?;
                if norm.max(())?.item::<f64>()? < dtype.finfo()?.max {
                    once(&norm, &x.norm(1, order)?, "norm")?;
                }
            }
        }
        let many = Array::zeros(&[100_000], dtype)?;
        once(&Array::full(&[100_000], 1e-5, DType::Float64)?, &many.softmax(0)?, "softmax")?;
    }
    Ok(())
}
