//! Text in and out: printing parses back, errors show their place, no text panics.

mod common;

use common::{ALIASES, cases, corpus, elementwise, random_formula};
use proptest::prelude::*;
use tilework_error::Error;
use tilework_formula::parse::{self, Meaning};
use tilework_formula::{Axis, Category, Expr, Variable, derive, functions};

fn formula(text: &str) -> Result<Expr, Error> {
    parse::formula(text, &ALIASES)
}

fn reparsed(expr: &Expr) -> Expr {
    let text = expr.to_string();
    parse::formula(&text, &[]).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn named(v: Variable) -> Option<String> {
    ALIASES.get(v.position).map(|alias| alias.split(' ').next().unwrap().to_string())
}

#[test]
fn every_function_prints_and_parses_back() {
    for (text, expr) in corpus() {
        assert_eq!(reparsed(&expr), expr, "{text} printed as {expr}");
        let with_names = expr.text(&named);
        assert_eq!(formula(&with_names).unwrap(), expr, "{text} printed as {with_names}");
        for v in expr.variables().unwrap() {
            let v = Expr::variable(v).unwrap();
            let e = Expr::vi(20, expr.dim()).unwrap();
            let g = derive::grad(&expr, &v, &e).unwrap();
            assert_eq!(reparsed(&g), g, "{g}");
        }
    }
    for (id, expr, _) in elementwise() {
        assert_eq!(reparsed(&expr), expr, "{id:?} printed as {expr}");
    }
}

#[test]
fn every_function_is_in_the_corpus() {
    for function in functions::FUNCTIONS {
        let called = [function.name, "("].concat();
        let used = common::CORPUS.iter().any(|text| text.contains(&called));
        let elsewhere = ["Zero", "Divide"].contains(&function.name);
        assert!(used || elsewhere, "{} is in no formula of the corpus", function.name);
        assert!(function.doc.ends_with(['.', 's']) || !function.doc.is_empty());
    }
}

#[test]
fn shared_and_deep_expressions_print_in_proportion() {
    let mut f = Expr::vi(0, 3).unwrap();
    for _ in 0..64 {
        f = f.add(&f.exp().unwrap()).unwrap().square().unwrap();
    }
    assert!(f.tree_size() > 1 << 60);
    let text = f.to_string();
    assert!(text.len() < 20_000, "{} bytes", text.len());
    assert_eq!(reparsed(&f), f);

    let mut deep = Expr::vi(0, 1).unwrap();
    for _ in 0..5000 {
        deep = deep.unary(tilework_ops::Id::Sin).unwrap();
    }
    assert_eq!(reparsed(&deep), deep);
    assert!(deep.brief().len() < 100 && f.brief().len() < 100);
}

#[test]
fn precedence_is_python_s() {
    let same = |a: &str, b: &str| assert_eq!(formula(a).unwrap(), formula(b).unwrap(), "{a}");
    same("x - y - s", "(x - y) - s");
    same("x / y * s", "(x / y) * s");
    same("-x ** 2", "-(x ** 2)");
    same("2 ** 3 ** 2 * x", "512 * x");
    same("x * -y", "-(x * y)");
    same("--x", "x");
    same("+x", "x");
    same("x + y | y * s", "((x + y) | (y * s))");
    same("x | y < s", "(x|y) < s");
    same("x > y", "y < x");
    same("x >= y", "LessOrEqual(y, x)");
    same("x == y", "Equal(x, y)");
    same("x ** 2", "Square(x)");
    same("x ** 0.5", "Sqrt(x)");
    same("x ** -0.5", "Rsqrt(x)");
    same("x ** 3", "Pow(x,3)");
    same("x ** s", "Powf(x, s)");
    same("0.5 * x", "x / 2");
    same("1 / x", "Inv(x)");
    same("IntInv(2) + IntCst(1)", "RatCst(3,2)");
    same("1_000 * x", "1e3 * x");
    same(" x\n + \t y ", "x+y");
    same(
        "TensorDot(M, M, Ind(2,3), Ind(3,2), Ind(1), Ind(0))",
        "TensorDot(M,M,[2,3],[3,2],[1],[0])",
    );
    same("d = x - y; (d|d) * Exp(-(d|d))", "SqDist(x,y) * Exp(-SqDist(x,y))");
}

#[test]
fn declarations_and_inline_variables() {
    let v = |position, dim, category| Variable { position, dim, category };
    let aliases = ["x = Vi(1,2)", "Vj(0,5)", "y = Pm( 2 , 7 )"];
    let parsed = parse::parse("x + Vi(3,2) * Var(4,1,2)", &aliases).unwrap();
    let wanted = [
        v(1, 2, Category::I),
        v(0, 5, Category::J),
        v(2, 7, Category::Parameter),
        v(3, 2, Category::I),
        v(4, 1, Category::Parameter),
    ];
    assert_eq!(parsed.variables, wanted);
}

#[test]
fn reductions_in_text() {
    let aliases = ["x = Vi(3)", "y = Vj(3)", "b = Vj(2)"];
    let reduction = |text: &str| match parse::parse(text, &aliases).unwrap().meaning {
        Meaning::Reduction(reduction) => reduction,
        Meaning::Formula(_) => panic!("{text} is no reduction"),
    };
    let sum = reduction("Sum_Reduction(Exp(-SqDist(x,y)) * b, 0)");
    assert_eq!((sum.axis(), sum.width()), (Axis::J, 2));
    let knn = reduction("ArgKMin_Reduction(SqDist(x,y), 5, 1)");
    assert_eq!((knn.axis(), knn.k(), knn.width()), (Axis::I, 5, 5));
    let lse = reduction("LogSumExp_Reduction((x|y), 0, b)");
    assert_eq!(lse.width(), 2);
    assert_eq!(reduction("SoftMax_Reduction((x|y), 0, b)").row().name, "SumSoftMaxWeight");
    for text in [&sum, &knn, &lse].map(ToString::to_string) {
        assert_eq!(reduction(&text).to_string(), text);
    }
    let grad = reduction(
        "Grad_WithSavedForward(Sum_Reduction((x|y) * b, 0), Var(1,3,1), Var(3,2,0), Var(4,2,0))",
    );
    assert_eq!((grad.axis(), grad.width()), (Axis::I, 3));
    let diff = reduction(
        "Diff_WithSavedForward(LogSumExp_Reduction((x|y), 0), Var(0,3,0), Var(3,3,0), Var(4,1,0))",
    );
    assert_eq!((diff.axis(), diff.width()), (Axis::J, 1));
}

/// Position of the error in a text.
fn position(text: &str) -> usize {
    match formula(text) {
        Err(Error::Formula { position: Some(position), message }) => {
            assert!(message.contains('^'), "{message}");
            position
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn errors_show_their_place() {
    assert_eq!(position("x + q"), 4);
    assert_eq!(position("x + "), 4);
    assert_eq!(position("x + y)"), 5);
    assert_eq!(position("Exp(x"), 5);
    assert_eq!(position("x + b"), 2);
    assert_eq!(position("Exp(x) * Sum(x, y)"), 9);
    assert_eq!(position("x $ y"), 2);
    assert_eq!(position("x < y < s"), 6);
    assert_eq!(position("x / 0"), 2);
    assert_eq!(position("Elem(x, 3)"), 0);
    assert_eq!(position("Elem(x, y)"), 0);
    assert_eq!(position("s + Vi(3)"), 4);
    assert_eq!(position("s + Vi(30,1048577)"), 4);
    assert_eq!(position("s + Vi(0,4)"), 4);
    assert_eq!(position("Vi(30,2) + Vj(30,2)"), 11);
    assert_eq!(position("x % y"), 2);
    assert_eq!(position("1 + [2,3]"), 4);
    assert_eq!(position("Sum_Reduction(x,0) + x"), 0);
    assert_eq!(position("Sum_Reduction(x,7)"), 0);
    assert_eq!(position("Summ_Reduction(x,0)"), 0);
    assert_eq!(position("x = 3; x"), 0);
    assert_eq!(position("é"), 0);
}

#[test]
fn messages_name_what_is_wrong() {
    let message = |text: &str| formula(text).unwrap_err().to_string();
    assert!(message("Exq(x)").contains("did you mean `Exp`?"));
    assert!(message("exp(x)").contains("did you mean `Exp`?"));
    assert!(message("X + 1").contains("did you mean `x`?"));
    assert!(message("elephant").contains("declare it"));
    let dims = message("x + b");
    assert!(dims.contains("Add: dimensions 3 and 2") && dims.contains("Vi(0,3)"), "{dims}");
    assert!(message("MatVecMult(M, Concat(x, a))").contains("dimensions 6 and 4"));
    assert!(message("Sum(x, y)").contains("takes 1 arguments, not 2"));
    assert!(message("Elem(x, 1.5)").contains("argument 2 must be an integer"));
    assert!(message("GaussKernel(s, x, y)").contains("write Exp"));
    for text in ["ComplexMult(x, y)", "SoftDTW_SqDist(x, y, s)"] {
        assert!(
            matches!(formula(text), Err(Error::Unsupported(m)) if m.contains("not supported yet"))
        );
    }
}

#[test]
fn wrong_declarations_are_refused() {
    for aliases in [
        &["x = Vi(1048577)"][..],
        &["x = Vi(3)", "x = Vj(3)"],
        &["x = Vi(0,3)", "y = Vj(0,3)"],
        &["x = Vq(3)"],
        &["x = Vi(3"],
        &["x = Vi(3) 4"],
        &["= Vi(3)"],
        &[""],
        &["x"],
        &["x = Var(1,2,3)"],
        &["x = Vi(-3)"],
        &["x = Vi(1.5)"],
        &["x = Vi()"],
        &["x = Vi(3,)"],
        &["x = Vi(99999999999999999999)"],
    ] {
        assert!(parse::formula("1", aliases).is_err(), "{aliases:?}");
    }
    assert!(formula("Vi(0,4) + 1").is_err(), "position 0 is declared with dimension 3");
}

#[test]
fn nesting_has_a_limit_and_length_has_none() {
    let parens = format!("{}x{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(position(&parens), parse::MAX_NESTING + 1);
    let calls = format!("{}x{}", "Exp(".repeat(10_000), ")".repeat(10_000));
    assert!(formula(&calls).is_err());
    let powers = format!("{}2", "s**".repeat(10_000));
    assert!(formula(&powers).is_err());
    assert!(formula(&"[".repeat(10_000)).is_err());
    assert!(formula(&format!("{}x", "-".repeat(10_001))).unwrap() == formula("-x").unwrap());
    let long = vec!["Sin(x)*y"; 3000].join("+");
    assert_eq!(formula(&long).unwrap().dim(), 3);
    let long: Vec<String> = (0..3000).map(|k| format!("Sin({k}*x)")).collect();
    assert_eq!(formula(&long.join("+")).unwrap().dim(), 3);
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn random_formulas_print_and_derive(text in random_formula()) {
        if let Ok(expr) = formula(&text) {
            prop_assert_eq!(&reparsed(&expr), &expr);
            let g = derive::grad(&expr, &Expr::vi(0, 3).unwrap(), &Expr::vi(20, expr.dim()).unwrap()).unwrap();
            prop_assert_eq!(&reparsed(&g), &g);
            prop_assert_eq!(g.dim(), 3);
        }
    }

    #[test]
    fn any_text_gives_an_answer(text in "\\PC{0,60}") {
        if let Err(error) = formula(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
        let _ = tilework_formula::declare::declaration(&text, 0);
    }

    #[test]
    fn text_made_of_words_gives_an_answer(
        words in proptest::collection::vec(prop_oneof![
            Just("x"), Just("y"), Just("s"), Just("("), Just(")"), Just(","), Just("["), Just("]"), Just("+"),
            Just("-"), Just("*"), Just("/"), Just("**"), Just("|"), Just("<"), Just("=="), Just("="), Just(";"),
            Just("Exp("), Just("Sum("), Just("Grad("), Just("Elem("), Just("TensorDot("), Just("Vi("), Just("Var("),
            Just("1"), Just("2"), Just("0"), Just("3.5"), Just("-1"), Just("1e300"), Just("BSpline("), Just("OneHot("),
            Just("Sum_Reduction("), Just("KMin_Reduction("), Just("Kron("), Just("Round("), Just("999999999"),
            Just("Laplacian("), Just("SumT("), Just("Permute("), Just("inf"), Just("Pow("),
        ], 0..24)
    ) {
        let _ = parse::parse(&words.concat(), &ALIASES);
        let _ = parse::parse(&words.join(" "), &ALIASES);
    }

    #[test]
    fn functions_with_any_numbers_give_an_answer(
        function in 0..functions::FUNCTIONS.len(),
        arguments in proptest::collection::vec(prop_oneof![
            Just("x"), Just("y"), Just("s"), Just("M"), Just("x*y"), Just("0"), Just("1"), Just("2"), Just("-1"),
            Just("1048576"), Just("4e15"), Just("[]"), Just("[2,3]"), Just("[0]"), Just("[1,0]"), Just("[3]"),
            Just("[4000000000,4000000000]"), Just("[99,1]"), Just("0.5"), Just("nan"),
        ], 0..8)
    ) {
        let text = format!("{}({})", functions::FUNCTIONS[function].name, arguments.join(","));
        let _ = formula(&text);
    }
}
