//! Systems that are solved, and those that say why not.

use super::*;
use crate::pairs::Progress;

fn kernel(n: usize) -> LazyTensor {
    let x = Array::linspace(0.0..=1.0, n, DType::Float64).unwrap();
    let x = x.reshape(&[n as isize, 1]).unwrap();
    let d = LazyTensor::vi(&x).unwrap().sqdist(&LazyTensor::vj(&x).unwrap()).unwrap();
    (&d * -30.0).unwrap().exp().unwrap()
}

#[test]
fn columns_are_solved_apart_and_zeros_stay() {
    let (k, system) = (kernel(40), Solve { alpha: 1e-2, tol: 1e-9, maxiter: None });
    let ones = Array::ones(&[40, 1], DType::Float64).unwrap();
    let ramp = Array::linspace(-1.0..=1.0, 40, DType::Float64).unwrap();
    let ramp = (&ramp.reshape(&[40, 1]).unwrap() * 1e6).unwrap();
    let zeros = Array::zeros(&[40, 1], DType::Float64).unwrap();
    let b = crate::concat(&[&ones, &ramp, &zeros], 1).unwrap();
    let solved = k.solve(&b, &system, &Options::default()).unwrap();
    assert!(solved.failure.is_none() && solved.residual <= 1e-9 && solved.iterations > 1);
    let a = solved.converged().unwrap();
    let back = (&k.matmul(&a).unwrap() + &(&a * 1e-2).unwrap()).unwrap();
    let error = (&back - &b).unwrap().abs().unwrap().max(0).unwrap().to_vec::<f64>().unwrap();
    assert!(error[0] < 1e-7 && error[1] < 1e-1 && error[2] == 0.0, "{error:?}");
}

/// A matrix that mixes components: whether right-hand sides are alike, far apart or zero.
#[test]
fn columns_that_the_matrix_mixes_are_one_system() {
    let x = crate::Rng::new(5).normal(&[30, 2], DType::Float64).unwrap();
    let aliases = ["x = Vi(2)", "y = Vj(2)", "b = Vj(2)", "A = Pm(4)"];
    let formula = "Exp(-SqDist(x,y)) * MatVecMult(A,b)";
    let sum = Genred::new(formula, &aliases, "Sum", 1).unwrap();
    let system = Solve { alpha: 1.0, tol: 1e-10, maxiter: None };
    for mix in [0.9, 0.1, 1e-3] {
        let a = Array::from_slice(&[1.0, mix, mix, 1.0]).unwrap();
        for sizes in [[1.0, 1.0], [1.0, 1000.0], [1.0, 0.0]] {
            let sizes = Array::from_slice(&sizes).unwrap();
            let b = crate::Rng::new(6).normal(&[30, 2], DType::Float64).unwrap();
            let b = (&b * &sizes).unwrap();
            let arrays = [&x, &x, &b, &a];
            let solved = sum.solve(&arrays, 2, &system, &Options::default()).unwrap();
            let found = solved.converged().unwrap();
            let image = sum.call(&[&x, &x, &found, &a]).unwrap();
            let rest = (&(&image + &found).unwrap() - &b).unwrap();
            let norm = |v: &Array| v.norm((), 2.0).unwrap().item::<f64>().unwrap();
            assert!(norm(&rest) <= 1e-9 * norm(&b), "{mix} {sizes}");
        }
    }
}

/// A system of few rows may have many unknowns, and takes as many steps as these.
#[test]
fn one_row_of_many_components_is_solved() {
    let d = 40;
    let sum = Genred::new(
        "MatVecMult(A,b) + 0 * x",
        &["x = Vi(1)", "b = Vj(40)", "A = Pm(1600)"],
        "Sum",
        1,
    )
    .unwrap();
    let diagonal = Array::linspace(1.0..=1000.0, d, DType::Float64).unwrap();
    let a = Array::eye(d, d, 0, DType::Float64).unwrap();
    let a = (&a * &diagonal).unwrap().reshape(&[1600]).unwrap();
    let x = Array::ones(&[1, 1], DType::Float64).unwrap();
    let b = Array::ones(&[1, d], DType::Float64).unwrap();
    let system = Solve { alpha: 0.0, tol: 1e-8, maxiter: None };
    let solved = sum.solve(&[&x, &b, &a], 1, &system, &Options::default()).unwrap();
    assert!(solved.iterations > 10, "{}", solved.iterations);
    solved.converged().unwrap();
}

#[test]
fn progress_follows_the_residual_and_stops_the_work() {
    let (k, ones) = (kernel(40), Array::ones(&[40, 1], DType::Float64).unwrap());
    let system = Solve { alpha: 1e-3, tol: 1e-10, maxiter: None };
    let told = std::sync::Mutex::new(Vec::new());
    let listen = |fraction: f64| {
        told.lock().unwrap().push(fraction);
        true
    };
    let options = Options { progress: Some(Progress(&listen)), ..Options::default() };
    k.solve(&ones, &system, &options).unwrap().converged().unwrap();
    let told = told.into_inner().unwrap();
    assert!(told.is_sorted() && told.iter().any(|f| (0.1..0.9).contains(f)), "{told:?}");
    let stop = Options { progress: Some(Progress(&|_| false)), ..Options::default() };
    assert!(matches!(k.solve(&ones, &system, &stop), Err(Error::Interrupted(_))));
}

#[test]
fn right_hand_sides_of_any_size_are_solved() {
    let system = Solve { alpha: 1.0, tol: 1e-5, maxiter: None };
    let x = Array::linspace(0.0..=1.0, 30, DType::Float64).unwrap();
    let exact = kernel(30).solve(&x, &system, &Options::default()).unwrap().x;
    for (dtype, sizes) in [
        (DType::Float32, &[1e-38, 1e-24, 1.0, 1e20, 1e37][..]),
        (DType::Float16, &[1e-4, 1.0, 1e4]),
        (DType::Float64, &[1e-200, 1e200]),
    ] {
        let narrow = x.to_dtype(dtype).unwrap().reshape(&[30, 1]).unwrap();
        let (xi, yj) = (LazyTensor::vi(&narrow).unwrap(), LazyTensor::vj(&narrow).unwrap());
        let k = (&xi.sqdist(&yj).unwrap() * -30.0).unwrap().exp().unwrap();
        for &size in sizes {
            let b = (&x * size).unwrap().to_dtype(dtype).unwrap();
            let solved = k.solve(&b, &system, &Options::default()).unwrap();
            let found = solved.converged().unwrap().to_dtype(DType::Float64).unwrap();
            let off = (&(&found / size).unwrap() - &exact).unwrap().abs().unwrap();
            let limit = if dtype == DType::Float16 { 1e-2 } else { 1e-4 };
            assert!(off.max(()).unwrap().item::<f64>().unwrap() < limit, "{dtype} {size}");
        }
    }
}

/// What was solved is judged by the solution and not by what the steps say of it.
#[test]
fn the_residual_of_the_solution_decides() {
    let x = crate::Rng::new(3).uniform(&[300, 1], DType::Float32).unwrap();
    let (xi, xj) = (LazyTensor::vi(&x).unwrap(), LazyTensor::vj(&x).unwrap());
    let k = (&xi.sqdist(&xj).unwrap() * -30.0).unwrap().exp().unwrap();
    let b = crate::Rng::new(4).normal(&[300], DType::Float32).unwrap();
    let solved = |alpha: f64, tol: f64| {
        let system = Solve { alpha, tol, maxiter: Some(3000) };
        k.solve(&b, &system, &Options::default()).unwrap()
    };
    let own = |alpha: f64, a: &Array| {
        let [a, b, x] = [a, &b, &x].map(|array| array.to_dtype(DType::Float64).unwrap());
        let (xi, xj) = (LazyTensor::vi(&x).unwrap(), LazyTensor::vj(&x).unwrap());
        let k = (&xi.sqdist(&xj).unwrap() * -30.0).unwrap().exp().unwrap();
        let a = a.reshape(&[300, 1]).unwrap();
        let image = (&k.matmul(&a).unwrap() + &(&a * alpha).unwrap()).unwrap();
        let rest = (&b - &image.reshape(&[300]).unwrap()).unwrap();
        let norm = |v: &Array| v.norm((), 2.0).unwrap().item::<f64>().unwrap();
        norm(&rest) / norm(&b)
    };
    let mut told = Vec::new();
    for (alpha, tol) in [(1e-4, 1e-6), (1e-2, 1e-6), (1e-2, 1e-4), (1.0, 1e-6)] {
        let solution = solved(alpha, tol);
        let truth = own(alpha, &solution.x);
        // Half of the digits of float32 are the most that rounding may take.
        let close = solution.residual <= 3.5e-4;
        assert_eq!(solution.failure.is_none(), close, "{alpha}, {tol}: {}", solution.residual);
        assert!(truth < 1.5 * solution.residual.max(tol), "{alpha}, {tol}: {truth}");
        told.push(solution.failure);
    }
    assert_eq!(told, [Some(ROUNDING), None, None, None]);
}

/// Steps that were misled are taken once more from what is left.
#[test]
fn what_steps_left_over_is_solved_once_more() {
    let b = Array::linspace(1.0..=2.0, 10, DType::Float64).unwrap();
    let system = Solve { alpha: 0.0, tol: 1e-9, maxiter: None };
    for (wrong, right) in [(1, true), (usize::MAX, false)] {
        let products = std::cell::Cell::new(0);
        let product = |v: &Array, _: &Options<'_>| {
            products.set(products.get() + 1);
            v * if products.get() % 2 == 1 && products.get() <= wrong { 2.01 } else { 2.0 }
        };
        let solution =
            conjugate_gradient(product, &b, Columns::Apart, &system, &Options::default()).unwrap();
        assert_eq!(solution.failure, (!right).then_some(ROUNDING));
        assert_eq!((solution.residual < 1e-9, solution.iterations), (right, 2));
    }
}

#[test]
fn right_hand_sides_of_integers_are_refused() {
    let b = Array::ones(&[30], DType::Int64).unwrap();
    let refused = kernel(30).solve(&b, &Solve::default(), &Options::default());
    assert!(matches!(refused, Err(Error::DType(_))), "{refused:?}");
    let same = |v: &Array, _: &Options<'_>| Ok(v.clone());
    let refused =
        conjugate_gradient(same, &b, Columns::Apart, &Solve::default(), &Options::default());
    assert!(matches!(refused, Err(Error::DType(_))), "{refused:?}");
}

#[test]
fn failures_tell_the_residual() {
    let k = kernel(30);
    let b = Array::linspace(-1.0..=2.0, 30, DType::Float64).unwrap();
    let few = Solve { alpha: 0.0, tol: 1e-12, maxiter: Some(3) };
    let stopped = k.solve(&b, &few, &Options::default()).unwrap();
    assert!(stopped.residual > 1e-12 && stopped.iterations == 3);
    let message = stopped.converged().unwrap_err().to_string();
    assert!(message.contains("the limit of steps is reached: the residual is"), "{message}");
    let negative = (&k * -1.0).unwrap();
    let message = negative.solve(&b, &Solve::default(), &Options::default()).unwrap();
    assert_eq!(message.failure, Some("the matrix is not positive"));
    let nan = (&b * f64::NAN).unwrap();
    let message = k.solve(&nan, &Solve::default(), &Options::default()).unwrap();
    assert_eq!(message.failure, Some("numbers are not finite"));
    for (tol, alpha) in [(f64::NAN, 1.0), (-1.0, 1.0), (f64::INFINITY, 1.0), (1e-6, f64::NAN)] {
        let system = Solve { alpha, tol, maxiter: None };
        let message = k.solve(&b, &system, &Options::default()).unwrap_err().to_string();
        assert!(message.contains("tol at least 0"), "{message}");
    }
    let oblong = LazyTensor::vi(&b.reshape(&[30, 1]).unwrap()).unwrap();
    assert!(oblong.solve(&b, &few, &Options::default()).is_err());
}
