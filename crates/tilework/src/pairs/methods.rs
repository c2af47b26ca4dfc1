//! The operators, functions and reductions of `LazyTensor`, from lists of names.

use tilework_error::{Error, Result};
use tilework_formula::derive;

use super::call::Options;
use super::lazy::{self, LazyArg, LazyTensor};
use crate::array::Array;

macro_rules! functions {
    ($($(#[doc = $doc:literal])+ $method:ident $name:literal ($($operand:ident),*);)+) => {
        impl LazyTensor {
            $($(#[doc = $doc])+
            pub fn $method<'a>(&self $(, $operand: impl Into<LazyArg<'a>>)*) -> Result<LazyTensor> {
                self.function_of($name, &[$($operand.into()),*])
            })+
        }

        /// The names of the functions of several tensors.
        #[cfg(test)]
        const SEVERAL: &[&str] = &[$(stringify!($method)),+];
    };
}

functions! {
    /// Sum.
    add "Add" (other);
    /// Difference.
    subtract "Subtract" (other);
    /// Product.
    multiply "Mult" (other);
    /// Quotient.
    divide "Divide" (other);
    /// Inner product of the components.
    dot "Scalprod" (other);
    /// Squared distance.
    sqdist "SqDist" (other);
    /// To the power of another formula.
    powf "Powf" (exponent);
    /// Angle of the point with this as y and `x` as x.
    atan2 "Atan2" (x);
    /// 1 where less, else 0.
    less "LessThan" (other);
    /// 1 where less or equal, else 0.
    less_equal "LessOrEqual" (other);
    /// 1 where greater, else 0.
    greater "GreaterThan" (other);
    /// 1 where greater or equal, else 0.
    greater_equal "GreaterOrEqual" (other);
    /// 1 where equal, else 0.
    equal "Equal" (other);
    /// 1 where not equal, else 0.
    not_equal "NotEqual" (other);
    /// The larger.
    maximum "Maximum" (other);
    /// The smaller.
    minimum "Minimum" (other);
    /// This matrix times a vector.
    matvecmult "MatVecMult" (vector);
    /// This vector times a matrix.
    vecmatmult "VecMatMult" (matrix);
    /// All products of components.
    tensorprod "TensorProd" (other);
    /// All differences of components.
    difference_matrix "DifferenceMatrix" (other);
    /// The components of both, one after the other.
    concat "Concat" (other);
    /// `then` where this is at least 0, else `otherwise`.
    ifelse "IfElse" (then, otherwise);
    /// `then` where this is not 0, else `otherwise`.
    select "Where" (then, otherwise);
    /// Held between `low` and `high`.
    clamp "Clamp" (low, high);
    /// This modulo `modulus`, in the interval that begins at `offset`.
    modulo "Mod" (modulus, offset);
}

macro_rules! plain_functions {
    ($($(#[doc = $doc:literal])+ $method:ident $name:literal;)+) => {
        impl LazyTensor {
            $($(#[doc = $doc])+
            pub fn $method(&self) -> Result<LazyTensor> {
                self.function_of($name, &[])
            })+
        }

        /// The functions of one tensor, each with its own name.
        #[cfg(test)]
        const PLAIN: &[(fn(&LazyTensor) -> Result<LazyTensor>, &str)] =
            &[$((LazyTensor::$method, stringify!($method))),+];
    };
}

plain_functions! {
    /// Opposite.
    negative "Minus";
    /// Exponential.
    exp "Exp";
    /// Exponential less one.
    expm1 "Expm1";
    /// Logarithm.
    log "Log";
    /// Logarithm of one plus this.
    log1p "Log1p";
    /// x log x, 0 at 0.
    xlogx "XLogX";
    /// Sine.
    sin "Sin";
    /// Cosine.
    cos "Cos";
    /// sin(x) / x, 1 at 0.
    sinxdivx "SinXDivX";
    /// Inverse sine.
    asin "Asin";
    /// Inverse cosine.
    acos "Acos";
    /// Inverse tangent.
    atan "Atan";
    /// Hyperbolic tangent.
    tanh "Tanh";
    /// The error function.
    erf "Erf";
    /// Logistic function.
    sigmoid "Sigmoid";
    /// Square root, of slope 0 at 0.
    sqrt "Sqrt";
    /// One over the square root, 0 at 0.
    rsqrt "Rsqrt";
    /// One over this.
    reciprocal "Inv";
    /// Square.
    square "Square";
    /// -1, 0 or 1.
    sign "Sign";
    /// 0 where negative, else 1.
    step "Step";
    /// 0 where negative, else this.
    relu "ReLU";
    /// Absolute value.
    abs "Abs";
    /// Rounded down.
    floor "Floor";
    /// Sum of squares of the components.
    sqnorm2 "SqNorm2";
    /// Length of the vector.
    norm2 "Norm2";
    /// Divided by its length; zero stays.
    normalize "Normalize";
    /// Sum of the components.
    sum_components "Sum";
    /// The largest component.
    max_components "Max";
    /// The smallest component.
    min_components "Min";
    /// Index of the largest component, as a number.
    argmax_components "ArgMax";
    /// Index of the smallest component, as a number.
    argmin_components "ArgMin";
}

macro_rules! reductions {
    ($($(#[doc = $doc:literal])+ $method:ident $name:literal;)+) => {
        impl LazyTensor {
            $($(#[doc = $doc])+
            pub fn $method(&self, axis: usize) -> Result<Array> {
                self.reduce($name, axis, None, &Options::default())?.only()
            })+
        }
    };
}

reductions! {
    /// Sum over i (axis 0) or j (axis 1); 0 over nothing.
    sum "Sum";
    /// Mean over i or j; NaN over nothing.
    mean "Mean";
    /// Product over i or j; 1 over nothing.
    prod "Prod";
    /// 1 if a value is not 0.
    any "Any";
    /// 1 if no value is 0.
    all "All";
    /// How many values are not 0, in int64.
    count "Count";
    /// The smallest value; infinity over nothing.
    min "Min";
    /// The largest value; minus infinity over nothing.
    max "Max";
    /// Index of the smallest value, the first of equals; -1 over nothing.
    argmin "ArgMin";
    /// Index of the largest value, the first of equals; -1 over nothing.
    argmax "ArgMax";
    /// Logarithm of the sum of exponentials; minus infinity over nothing.
    logsumexp "LogSumExp";
}

macro_rules! selections {
    ($($(#[doc = $doc:literal])+ $method:ident $name:literal;)+) => {
        impl LazyTensor {
            $($(#[doc = $doc])+
            pub fn $method(&self, k: usize, axis: usize) -> Result<Array> {
                let options = Options { k: Some(k), ..Options::default() };
                self.reduce($name, axis, None, &options)?.only()
            })+
        }
    };
}

selections! {
    /// The K smallest values, ascending; infinity where there are fewer.
    kmin "KMin";
    /// Indices of the K smallest values; -1 where there are fewer.
    argkmin "ArgKMin";
    /// The K largest values, descending; minus infinity where there are fewer.
    kmax "KMax";
    /// Indices of the K largest values; -1 where there are fewer.
    argkmax "ArgKMax";
}

macro_rules! both {
    ($($(#[doc = $doc:literal])+ $method:ident $name:literal ($($k:ident)?);)+) => {
        impl LazyTensor {
            $($(#[doc = $doc])+
            pub fn $method(&self, $($k: usize,)? axis: usize) -> Result<(Array, Array)> {
                #[allow(unused_mut)]
                let mut options = Options::default();
                $(options.k = Some($k);)?
                let reduced = self.reduce($name, axis, None, &options)?;
                reduced.values.zip(reduced.indices)
                    .ok_or_else(|| Error::value($name, "there is no result"))
            })+
        }
    };
}

both! {
    /// The smallest value and its index.
    min_argmin "Min_ArgMin" ();
    /// The largest value and its index.
    max_argmax "Max_ArgMax" ();
    /// The K smallest values and their indices.
    kmin_argkmin "KMin_ArgKMin" (k);
    /// The K largest values and their indices.
    kmax_argkmax "KMax_ArgKMax" (k);
}

impl LazyTensor {
    fn function_of(&self, name: &str, others: &[LazyArg<'_>]) -> Result<LazyTensor> {
        let mut operands = vec![LazyArg::Tensor(self)];
        operands.extend(others.iter().map(|other| match other {
            LazyArg::Tensor(tensor) => LazyArg::Tensor(tensor),
            LazyArg::Number(number) => LazyArg::Number(*number),
        }));
        LazyTensor::function(name, &operands, &[])
    }

    /// To the power of a number; integers are products, halves are square roots.
    pub fn power(&self, exponent: f64) -> Result<LazyTensor> {
        self.with_expr("power", &[], |expr| expr.power(exponent))
    }

    /// Rounded to so many decimals, halves away from zero.
    pub fn round(&self, decimals: i32) -> Result<LazyTensor> {
        self.with_expr("round", &[], |expr| expr.round(decimals))
    }

    /// One component.
    pub fn elem(&self, index: usize) -> Result<LazyTensor> {
        self.with_expr("elem", &[], |expr| expr.elem(index))
    }

    /// Components `start..start + len`.
    pub fn extract(&self, start: usize, len: usize) -> Result<LazyTensor> {
        self.with_expr("extract", &[], |expr| expr.extract(start, len))
    }

    /// 1 at this index, else 0, in `dim` components.
    pub fn one_hot(&self, dim: usize) -> Result<LazyTensor> {
        self.with_expr("one_hot", &[], |expr| expr.one_hot(dim))
    }

    /// The norm of this weighted by `weight`, squared: by 1 component, by as many as this has, or
    /// by a matrix.
    pub fn weighted_sqnorm(&self, weight: &LazyTensor) -> Result<LazyTensor> {
        let operands = [weight.into(), self.into()];
        LazyTensor::function("WeightedSqNorm", &operands, &[])
    }

    /// The weighted squared norm of the difference.
    pub fn weighted_sqdist(&self, other: &LazyTensor, weight: &LazyTensor) -> Result<LazyTensor> {
        let operands = [weight.into(), self.into(), other.into()];
        LazyTensor::function("WeightedSqDist", &operands, &[])
    }

    /// A contraction as NumPy's `tensordot`: shapes of both, axes that are summed over.
    pub fn tensordot(
        &self,
        other: &LazyTensor,
        shapes: (&[usize], &[usize]),
        axes: (&[usize], &[usize]),
    ) -> Result<LazyTensor> {
        let lists = [shapes.0, shapes.1, axes.0, axes.1];
        LazyTensor::function("TensorDot", &[self.into(), other.into()], &lists)
    }

    /// The adjoint of the derivative with respect to a variable, applied to `e`, which has the
    /// components of this.
    ///
    /// ```
    /// use tilework::Array;
    /// use tilework::pairs::LazyTensor;
    /// let x = LazyTensor::vi(&Array::from_nested(&[[3.0f64]])?)?;
    /// let slope = x.square()?.grad(&x, &LazyTensor::constant(1.0))?;
    /// assert_eq!(slope.sum(1)?.to_vec::<f64>()?, [6.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn grad(&self, variable: &LazyTensor, e: &LazyTensor) -> Result<LazyTensor> {
        lazy::check_has(&self.bound, &variable.bound)?;
        self.with_expr("grad", &[variable, e], |expr| derive::grad(expr, variable.expr(), e.expr()))
    }

    /// Logarithm of the sum of exponentials times a weight.
    pub fn logsumexp_weighted(&self, weight: &LazyTensor, axis: usize) -> Result<Array> {
        self.reduce("LogSumExp", axis, Some(weight), &Options::default())?.only()
    }

    /// Mean of the weight, weighed by the exponential of this.
    pub fn sumsoftmaxweight(&self, weight: &LazyTensor, axis: usize) -> Result<Array> {
        self.reduce("SumSoftMaxWeight", axis, Some(weight), &Options::default())?.only()
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $name:literal),+) => {$(
        impl<'a, B: Into<LazyArg<'a>>> std::ops::$trait<B> for &LazyTensor {
            type Output = Result<LazyTensor>;
            fn $method(self, other: B) -> Result<LazyTensor> {
                self.function_of($name, &[other.into()])
            }
        }
        impl std::ops::$trait<&LazyTensor> for f64 {
            type Output = Result<LazyTensor>;
            fn $method(self, other: &LazyTensor) -> Result<LazyTensor> {
                LazyTensor::function($name, &[self.into(), other.into()], &[])
            }
        }
    )+};
}

operators!(Add add "Add", Sub sub "Subtract", Mul mul "Mult", Div div "Divide", BitOr bitor "Scalprod");

impl std::ops::Neg for &LazyTensor {
    type Output = Result<LazyTensor>;
    fn neg(self) -> Result<LazyTensor> {
        self.negative()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a function of one tensor makes of two components.
    fn plain(name: &str, [a, b]: [f64; 2]) -> Vec<f64> {
        let each = |f: fn(f64) -> f64| vec![f(a), f(b)];
        let largest = f64::from(b > a);
        match name {
            "negative" => each(|v| -v),
            "exp" => each(f64::exp),
            "expm1" => each(f64::exp_m1),
            "log" => each(f64::ln),
            "log1p" => each(f64::ln_1p),
            "xlogx" => each(|v| v * v.ln()),
            "sin" => each(f64::sin),
            "cos" => each(f64::cos),
            "sinxdivx" => each(|v| v.sin() / v),
            "asin" => each(f64::asin),
            "acos" => each(f64::acos),
            "atan" => each(f64::atan),
            "tanh" => each(f64::tanh),
            "erf" => each(|v| match v {
                0.25 => 0.276_326_390_168_236_9,
                0.5 => 0.520_499_877_813_046_5,
                -0.75 => -0.711_155_633_653_515_1,
                _ => unreachable!("{v} has no value here"),
            }),
            "sigmoid" => each(|v| 1.0 / (1.0 + (-v).exp())),
            "sqrt" => each(f64::sqrt),
            "rsqrt" => each(|v| 1.0 / v.sqrt()),
            "reciprocal" => each(f64::recip),
            "square" => each(|v| v * v),
            "sign" => each(f64::signum),
            "step" => each(|v| f64::from(v >= 0.0)),
            "relu" => each(|v| v.max(0.0)),
            "abs" => each(f64::abs),
            "floor" => each(f64::floor),
            "sqnorm2" => vec![a * a + b * b],
            "norm2" => vec![a.hypot(b)],
            "normalize" => each(|v| v).iter().map(|v| v / a.hypot(b)).collect(),
            "sum_components" => vec![a + b],
            "max_components" => vec![a.max(b)],
            "min_components" => vec![a.min(b)],
            "argmax_components" => vec![largest],
            "argmin_components" => vec![1.0 - largest],
            _ => panic!("{name} has no value to compare with"),
        }
    }

    fn assert_near(name: &str, found: Result<LazyTensor>, expected: &[f64]) {
        let found = found.and_then(|formula| formula.sum(1)?.to_vec::<f64>()).unwrap();
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-14 || (a.is_nan() && b.is_nan());
        let alike = found.len() == expected.len() && found.iter().zip(expected).all(near);
        assert!(alike, "{name}: {found:?}, expected {expected:?}");
    }

    #[test]
    fn every_function_of_one_tensor_is_what_its_name_says() {
        for point in [[0.25, 0.5], [0.5, -0.75]] {
            let x = LazyTensor::vi(&Array::from_nested(&[point]).unwrap()).unwrap();
            // A sum over one j.
            let one =
                LazyTensor::vj(&Array::ones(&[1, 1], crate::DType::Float64).unwrap()).unwrap();
            for (function, name) in PLAIN {
                let value = function(&x).and_then(|value| value.multiply(&one));
                assert_near(name, value, &plain(name, point));
            }
        }
    }

    #[test]
    fn every_function_of_several_tensors_is_what_its_name_says() {
        let (a, b) = ([0.25, 3.0], [0.5, 3.0]);
        let x = LazyTensor::vi(&Array::from_nested(&[a]).unwrap()).unwrap();
        let y = LazyTensor::vj(&Array::from_nested(&[b]).unwrap()).unwrap();
        let matrix = LazyTensor::vj(&Array::from_nested(&[[1.0, 2.0, 3.0, 5.0]]).unwrap()).unwrap();
        let each = |f: fn(f64, f64) -> f64| vec![f(a[0], b[0]), f(a[1], b[1])];
        let truth = |f: fn(&f64, &f64) -> bool| {
            vec![f64::from(f(&a[0], &b[0])), f64::from(f(&a[1], &b[1]))]
        };
        let all = [
            ("add", x.add(&y), each(|a, b| a + b)),
            ("subtract", x.subtract(&y), each(|a, b| a - b)),
            ("multiply", x.multiply(&y), each(|a, b| a * b)),
            ("divide", x.divide(&y), each(|a, b| a / b)),
            ("dot", x.dot(&y), vec![9.125]),
            ("sqdist", x.sqdist(&y), vec![0.0625]),
            ("powf", x.powf(&y), each(f64::powf)),
            ("atan2", x.atan2(&y), each(f64::atan2)),
            ("less", x.less(&y), truth(f64::lt)),
            ("less_equal", x.less_equal(&y), truth(f64::le)),
            ("greater", y.greater(&x), truth(f64::lt)),
            ("greater_equal", x.greater_equal(&y), truth(f64::ge)),
            ("equal", x.equal(&y), truth(f64::eq)),
            ("not_equal", x.not_equal(&y), truth(f64::ne)),
            ("maximum", x.maximum(&y), each(f64::max)),
            ("minimum", x.minimum(&y), each(f64::min)),
            ("matvecmult", matrix.matvecmult(&x), vec![6.25, 15.75]),
            ("vecmatmult", x.vecmatmult(&matrix), vec![9.25, 15.5]),
            ("tensorprod", x.tensorprod(&y), vec![0.125, 0.75, 1.5, 9.0]),
            ("difference_matrix", x.difference_matrix(&y), vec![-0.25, -2.75, 2.5, 0.0]),
            ("concat", x.concat(&y), vec![0.25, 3.0, 0.5, 3.0]),
            ("ifelse", x.subtract(&y).and_then(|d| d.ifelse(&x, -1.0)), vec![-1.0, 3.0]),
            ("select", x.subtract(&y).and_then(|d| d.select(&x, -1.0)), vec![0.25, -1.0]),
            ("clamp", x.clamp(&y, 2.0), vec![0.5, 2.0]),
            ("modulo", x.modulo(&y, -0.375), vec![-0.25, 0.0]),
        ];
        assert_eq!(all.each_ref().map(|(name, ..)| *name)[..], *SEVERAL);
        for (name, found, expected) in all {
            assert_near(name, found, &expected);
        }
    }

    #[test]
    fn mismatches_say_what_is_wrong() {
        let x = LazyTensor::vi(&Array::zeros(&[4, 3], crate::DType::Float32).unwrap()).unwrap();
        let z = LazyTensor::vi(&Array::zeros(&[5, 3], crate::DType::Float32).unwrap()).unwrap();
        let d = LazyTensor::vj(&Array::zeros(&[5, 3], crate::DType::Float64).unwrap()).unwrap();
        let message = |result: Result<LazyTensor>| result.unwrap_err().to_string();
        assert_eq!(message(&x + &z), "Add: variables have 4 and 5 rows of i");
        assert_eq!(
            message(&x * &d),
            "Mult: variables are float32 and float64; cast one with astype"
        );
        assert!(x.sum(2).unwrap_err().to_string().contains("over i"));
    }
}
