//! Formulas over pairs: as methods, as text, and what is made of them.

use tilework::formula::functions::all_names;
use tilework::formula::reduction::REDUCTIONS;
use tilework::pairs::{
    Category, Columns, Genred, LazyArg, LazyTensor, Options, Partial, Solve, conjugate_gradient,
};
use tilework::{Array, DType, Device, Result};

use crate::arrays::Method;
use crate::dice::Dice;

/// Functions that take nothing that could be wrong, or that others call.
pub(crate) const EXCUSED: &[(&str, &str)] = &[
    (
        "nothing to get wrong",
        "only reduction arguments parts symbols wanted constant expr dim batch_axes extents array formula \
         arrays rows converged of",
    ),
    (
        "called by others of the list",
        "call call_with position merge finish vj pm power round elem extract \
      weighted_sqnorm weighted_sqdist grad logsumexp_weighted sumsoftmaxweight matmul_with",
    ),
];

/// Rows of points, mostly such that they fit each other.
pub(crate) fn points(dice: &mut Dice) -> Array {
    const ROWS: [usize; 5] = [4, 4, 4, 0, 1];
    const WIDTHS: [usize; 5] = [2, 2, 2, 1, 0];
    let shape = [ROWS[dice.roll(5)], WIDTHS[dice.roll(5)]];
    let dtype = if dice.roll(9) == 0 { dice.dtype() } else { DType::Float32 };
    let x = Array::arange(0, shape[0] * shape[1], 1, DType::Float64).expect("arange");
    let x = x.reshape(&shape.map(|n| n as isize)).and_then(|x| x.astype(dtype)).expect("points");
    let device = Device::all()[usize::from(dice.roll(9) == 0)];
    let x = x.to_device(device).expect("to_device");
    if dice.roll(6) == 0 { x.flip(None).expect("flip") } else { x }
}

fn done<T>(result: Result<T>) -> Result<()> {
    result.map(|_| ())
}

/// A formula of a random function on variables of all kinds.
fn formula(d: &mut Dice, x: &Array, y: &Array) -> Result<LazyTensor> {
    let names: Vec<&str> = all_names().collect();
    let (vi, vj) = (LazyTensor::vi(x)?, LazyTensor::vj(y)?);
    let pm = LazyTensor::pm(&Array::from_slice(&[0.5f32])?)?;
    let mut last = vi.clone();
    for _ in 0..1 + d.roll(3) {
        let operands: Vec<LazyArg<'_>> = (0..d.roll(4))
            .map(|_| match d.roll(5) {
                0 => LazyArg::from(&vi),
                1 => LazyArg::from(&vj),
                2 => LazyArg::from(&pm),
                3 => LazyArg::from(d.integer() as f64),
                _ => LazyArg::from(&last),
            })
            .collect();
        let (one, two) = (d.small_sizes(), d.small_sizes());
        let name = names[d.roll(names.len())];
        if let Ok(made) = LazyTensor::function(name, &operands, &[&one[..], &two][..d.roll(3)]) {
            last = made;
        }
    }
    Ok(last)
}

fn reduction(d: &mut Dice) -> &'static str {
    REDUCTIONS[d.roll(REDUCTIONS.len())].name
}

/// Options that ask for some values to be kept.
fn options(d: &mut Dice) -> Options<'static> {
    Options { k: (d.roll(3) > 0).then(|| d.roll(5)), ..Options::default() }
}

/// Text that is nearly a formula.
fn text(d: &mut Dice) -> String {
    const PIECES: [&str; 24] = [
        "x",
        "y",
        "Exp",
        "(",
        ")",
        "-",
        "SqDist(x,y)",
        ",",
        "*",
        "1.5",
        "Vi(2)",
        "[0,1]",
        "Sum",
        "Grad(",
        "1e999",
        "Extract(x,",
        "9999999999999999999999",
        "|",
        "^",
        "é",
        " ",
        "x+y",
        "IntCst(-3)",
        "/",
    ];
    (0..1 + d.roll(8)).map(|_| PIECES[d.roll(PIECES.len())]).collect()
}

/// Every public function that can be given something wrong, by its name.
pub(crate) const METHODS: &[(&str, Method)] = &[
    ("symbolic", |d, x, _| {
        let variable = LazyTensor::symbolic(d.size(), d.size(), Category::I)?;
        done(variable.fill(&[x][..d.roll(2)]))
    }),
    ("vi", |_, x, y| done(LazyTensor::vi(x)).and(done(LazyTensor::pm(y)))),
    ("from_array", |d, x, _| done(LazyTensor::from_array(&x.expand_dims(d.roll(3) as isize)?))),
    ("function", |d, x, y| done(formula(d, x, y)?.formula())),
    ("weak", |d, x, y| {
        let weak = LazyTensor::pm(&y.reshape(&[-1])?)?.weak();
        let made = formula(d, x, y)?.multiply(&weak)?;
        done(weak.sum(1)).and(done(made.reduce(reduction(d), d.roll(2), None, &options(d))))
    }),
    ("along", |d, x, y| done(formula(d, x, y)?.along(d.integer()))),
    ("t", |d, x, y| done(formula(d, x, y)?.t())),
    ("tensordot", |d, x, y| {
        let (a, b) = (LazyTensor::vi(x)?, LazyTensor::vj(y)?);
        let lists = [d.small_sizes(), d.small_sizes(), d.small_sizes(), d.small_sizes()];
        let [own, others, from, to] = &lists;
        done(a.tensordot(&b, (own, others), (from, to)))
    }),
    ("elem", |d, x, _| {
        let x = LazyTensor::vi(x)?;
        done(x.elem(d.size()))
            .and(done(x.extract(d.size(), d.size())))
            .and(done(x.one_hot(d.roll(9))))
            .and(done(x.round(d.roll(9) as i32 - 4)))
            .and(done(x.power(d.integer() as f64)))
    }),
    ("grad", |d, x, y| {
        let (a, b) = (LazyTensor::vi(x)?, LazyTensor::vj(y)?);
        done(formula(d, x, y)?.grad(&a, &b))
            .and(done(a.weighted_sqdist(&b, &a)))
            .and(done(a.weighted_sqnorm(&b)))
    }),
    ("outline", |d, x, y| {
        done(formula(d, x, y)?.outline(reduction(d), d.roll(3), None, &options(d)))
    }),
    ("explain", |d, x, y| {
        done(formula(d, x, y)?.explain(reduction(d), d.roll(3), None, &options(d)))
    }),
    ("block", |d, x, y| {
        let (a, b, c, e) = (d.roll(6), d.roll(6), d.size(), d.size());
        done(formula(d, x, y)?.block(a..b, c..e))
    }),
    ("dense", |d, x, y| done(formula(d, x, y)?.dense())),
    ("matmul", |d, x, y| done(formula(d, x, y)?.matmul(y))),
    ("matmul_outline", |d, x, y| done(formula(d, x, y)?.matmul_outline(y))),
    ("reduce", |d, x, y| {
        let weight = LazyTensor::vj(y)?;
        let weight = (d.roll(2) == 0).then_some(&weight);
        done(formula(d, x, y)?.reduce(reduction(d), d.roll(3), weight, &options(d)))
    }),
    ("logsumexp_weighted", |d, x, y| {
        let weight = LazyTensor::vj(y)?;
        let f = formula(d, x, y)?;
        done(f.logsumexp_weighted(&weight, d.roll(3))).and(done(f.sumsoftmaxweight(&weight, 1)))
    }),
    ("partial", |d, x, y| {
        let f = formula(d, x, y)?;
        let part = |d: &mut Dice| {
            f.partial(reduction(d), d.roll(3), None, d.integer() as i64, &options(d))
        };
        done(part(d)?.merge(&part(d)?)?.finish())
    }),
    ("from_arrays", |d, x, y| {
        let shape = (d.roll(5), d.size(), d.roll(3));
        let indices = (d.roll(2) == 0).then(|| y.clone());
        let state = (d.size() as u64, x.clone(), indices);
        done(Partial::from_arrays(reduction(d), shape, d.dtype(), state)?.finish())
    }),
    ("from_parts", |d, x, y| {
        let (mut parts, other) = (formula(d, x, y)?.parts()?, text(d));
        match d.roll(4) {
            0 => parts.formula = other,
            1 => parts.arrays.push((Category::ALL[d.roll(3)], y.clone())),
            2 => parts.arrays.truncate(d.roll(2)),
            _ => {}
        }
        done(LazyTensor::from_parts(&parts)?.sum(d.roll(3)))
    }),
    ("reduction_grad", |d, x, y| {
        let variable = LazyTensor::vi(x)?;
        done(formula(d, x, y)?.reduction_grad(reduction(d), 1, None, &variable, y, &options(d)))
    }),
    ("value_and_grad", |d, x, y| {
        let variable = LazyTensor::vi(x)?;
        let f = formula(d, x, y)?;
        done(f.value_and_grad(reduction(d), d.roll(3), None, &[&variable], Some(y), &options(d)))
    }),
    ("solve", |d, x, y| {
        let system = Solve { maxiter: Some(d.roll(4)), ..Solve::default() };
        done(formula(d, x, y)?.solve(y, &system, &options(d)))
    }),
    ("conjugate_gradient", |d, x, y| {
        let system = Solve { maxiter: Some(d.roll(4)), ..Solve::default() };
        let columns = if d.roll(2) == 0 { Columns::Apart } else { Columns::Mixed };
        done(conjugate_gradient(|v, _| v.matmul(x), y, columns, &system, &options(d)))
    }),
    ("new", |d, x, y| {
        let aliases = ["x = Vi(2)", "y = Vj(2)", "z = Pm(1)"];
        let made = Genred::new(&text(d), &aliases[..d.roll(4)], reduction(d), d.roll(3))?;
        let _ = made.position(&text(d));
        done(made.call(&[x, y])).and(done(made.explain(&[x, y], &options(d))))
    }),
    ("with", |d, x, y| {
        let aliases = [text(d), "y = Vj(2)".to_owned()];
        let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
        let k = (d.roll(2) == 0).then(|| d.size());
        let made = Genred::with("SqDist(x,y)", &aliases, reduction(d), 1, k, Some(&text(d)))?;
        done(made.call_with(&[x, y], &options(d)))
    }),
    ("pairs", |d, x, y| {
        let sum = Genred::new("Exp(-SqDist(x,y))", &["x = Vi(2)", "y = Vj(2)"], "Sum", d.roll(2))?;
        let part = sum.partial(&[x, y], d.integer() as i64, &options(d)).and_then(|it| it.finish());
        done(sum.pairs(&[x, y][..d.roll(3)])).and(done(part))
    }),
];
