//! Simplification: a table of named rules that [`Expr::build`] asks in order.
//!
//! A rule sees a node that is about to be made and may give a simpler expression with the same
//! value. Values may change in rounding, and for infinities and NaN only where users of KeOps
//! know it: `x - x` and `0 * x` are 0, products of exponentials are exponentials of sums, sums of
//! products are inner products. Constants are only multiplied with each other where the product
//! is far from the ends of float32, and moved past other factors where they are near to 1: elsewhere
//! plain float32 would give another number. A rule looks at structure alone, so that what is simplest
//! does not depend on who asks. To add one: a row here with its example, a function in one of the rooms
//! below; the test runs the example and sees that this rule, and no other, made it so.

mod arithmetic;
mod structure;
mod vector;

use tilework_error::Result;
use tilework_ops::Id;

use crate::expr::{Expr, Kind};

/// A node that is about to be made.
pub struct Candidate<'a> {
    /// What it does.
    pub kind: &'a Kind,
    /// With what.
    pub operands: &'a [Expr],
    /// The dimension that the result must have.
    pub dim: usize,
}

impl<'a> Candidate<'a> {
    /// The operands, if it is this operation of one operand.
    fn one(&self, id: Id) -> Option<&'a Expr> {
        (*self.kind == Kind::Apply(id)).then(|| &self.operands[0])
    }

    /// The operands, if it is this operation of two operands.
    fn two(&self, id: Id) -> Option<(&'a Expr, &'a Expr)> {
        (*self.kind == Kind::Apply(id)).then(|| (&self.operands[0], &self.operands[1]))
    }
}

/// One rule.
pub struct Rule {
    /// What to call it.
    pub name: &'static str,
    /// What it does, as a sentence.
    pub doc: &'static str,
    /// A formula over x, y = Vi(3), s, t = Pm(1) and what it becomes.
    pub example: (&'static str, &'static str),
    /// Whether it is asked below [`MAX_DEPTH`] too: rules that give what is there, and build
    /// nothing that other rules would have to look at.
    pub any_depth: bool,
    /// Gives the simpler expression, if it applies.
    pub apply: fn(&Candidate) -> Result<Option<Expr>>,
}

/// Up to this depth of nodes all rules are asked. Most build what they give and so lead to others
/// one level further down; this bounds how far.
pub const MAX_DEPTH: usize = 200;

macro_rules! reach {
    (any) => {
        true
    };
    (near) => {
        false
    };
}

macro_rules! table {
    ($($room:ident::$name:ident $reach:ident $doc:literal $before:literal => $after:literal;)+) => {
        /// The rules, in the order in which they are asked.
        pub static RULES: &[Rule] = &[$(Rule {
            name: stringify!($name),
            doc: $doc,
            example: ($before, $after),
            any_depth: reach!($reach),
            apply: $room::$name,
        }),+];
    };
}

table! {
    arithmetic::fold_constants any "An operation on constants is a constant." "Exp(IntCst(0)) * x" => "x";
    arithmetic::identities any "Operations that real numbers do not feel are dropped." "Positive(x)" => "x";
    structure::repeat_broadcasts near "A repeated number broadcasts by itself." "SumT(s,3) * x" => "s * x";
    arithmetic::add_zero any "x + 0 is x." "x + 0" => "x";
    arithmetic::subtract_zero any "x - 0 is x, 0 - x is -x." "0 - x" => "-x";
    arithmetic::subtract_self any "x - x is 0." "x - x" => "Zero(3)";
    arithmetic::multiply_zero any "0 * x is 0." "0 * x" => "Zero(3)";
    arithmetic::multiply_one any "1 * x is x, -1 * x is -x." "1 * x" => "x";
    arithmetic::constant_first near "A constant factor stands first." "x * 3" => "3 * x";
    arithmetic::constants_together near "Constant factors are multiplied with each other." "2 * (3 * x)" => "6 * x";
    arithmetic::constant_inside near "A constant goes to the factor of a product that costs least." "2 * (s * x)" => "(2 * s) * x";
    arithmetic::constant_outside near "A constant factor moves out of any other factor." "(3 * x) * Sin(x)" => "3 * (x * Sin(x))";
    arithmetic::negative_negative any "-(-x) is x." "-(-x)" => "x";
    arithmetic::negative_constant near "-(c * x) is (-c) * x." "-(3 * x)" => "-3 * x";
    arithmetic::negative_inside near "A sign goes to the factor of a product that costs least." "-(s * x)" => "(-s) * x";
    arithmetic::negative_factor near "A sign moves out of any other factor." "(-x) * Sin(x)" => "-(x * Sin(x))";
    arithmetic::negative_quotient near "A sign moves out of a quotient." "(-x) / y" => "-(x / y)";
    arithmetic::add_negative near "x + (-y) is x - y, (-x) + y is y - x." "x + (-y)" => "x - y";
    arithmetic::subtract_negative near "x - (-y) is x + y." "x - (-y)" => "x + y";
    arithmetic::add_self near "x + x is 2 * x, and constant multiples of one thing are added." "x + x" => "2 * x";
    arithmetic::common_factor near "a * b + a * c is a * (b + c)." "x * y + x * s" => "x * (y + s)";
    arithmetic::exp_product near "Exp(a) * Exp(b) is Exp(a + b)." "Exp(x) * Exp(y)" => "Exp(x + y)";
    arithmetic::self_product any "x * x is Square(x)." "x * x" => "Square(x)";
    arithmetic::even_of_negative near "Square, Abs and Cos do not see a sign." "Square(-x)" => "Square(x)";
    arithmetic::divide_simply near "x / 1 is x, 0 / x is 0, 1 / x is Inv(x), powers of 2 divide by multiplying." "x / 4" => "0.25 * x";
    arithmetic::simple_powers near "Powers 0, 1, 2 and -1 have simpler names." "Pow(x,2)" => "Square(x)";
    structure::place_product near "A product with a placed part is the product of the part, placed." "ElemT(s,3,1) * x" => "ElemT(s * Elem(x,1),3,1)";
    structure::place_sum near "Parts placed alike are added, then placed." "ElemT(s,3,1) + ElemT(t,3,1)" => "ElemT(s + t,3,1)";
    structure::place_negative near "The opposite of a placed part is the part's, placed." "-ElemT(s,3,1)" => "ElemT(-s,3,1)";
    structure::select_known any "A choice with a known answer, or between equals, is no choice." "Where(1, x, y)" => "x";
    vector::fold_of_number any "Sum, Max and Min of a number are the number, its index is 0." "Sum(s)" => "s";
    vector::fold_of_repeat near "Sum, Max and Min of a repeated number." "Sum(SumT(s,3))" => "3 * s";
    vector::sum_of_placed near "A sum does not see zeros around a part." "Sum(ExtractT(x,1,5))" => "Sum(x)";
    vector::sum_factor near "Sum(s * x) is s * Sum(x) for a number s." "Sum(s * x)" => "s * Sum(x)";
    vector::sum_sign near "Sum(-x) is -Sum(x)." "Sum(-x)" => "-Sum(x)";
    vector::sum_product near "Sum(x * y) is (x | y), Sum(Square(x)) is (x | x)." "Sum(x * y)" => "(x | y)";
    vector::dot_zero any "(0 | x) is 0." "(Zero(3) | x)" => "Zero(1)";
    vector::dot_number near "(s | x) for a number s is s * Sum(x)." "(s | x)" => "s * Sum(x)";
    vector::dot_placed near "An inner product with a placed part needs only that part." "(ElemT(s,3,1) | x)" => "s * Elem(x,1)";
    vector::dot_factor near "(s * x | y) is s * (x | y) for a number s." "(s * x | y)" => "s * (x | y)";
    vector::dot_sign near "(-x | y) is -(x | y)." "(-x | y)" => "-(x | y)";
    structure::repeat_once any "A number repeated once is itself; zeros repeated are zeros." "SumT(s,1)" => "s";
    structure::extract_all any "All components are the vector." "Extract(x,0,3)" => "x";
    structure::extract_inside near "A part of a part, of repeated numbers or of zeros." "Elem(Extract(x,1,2),1)" => "Elem(x,2)";
    structure::extract_placed near "A part of a placed vector." "Extract(ExtractT(x,1,5),1,3)" => "x";
    structure::extract_concat near "A part of a concatenation that lies in one piece." "Extract(Concat(x,y),3,3)" => "y";
    structure::elem_sum near "A component of a sum with a placed part, of a multiple or of an opposite." "Elem(s * x + ElemT(t,3,1),1)" => "s * Elem(x,1) + t";
    structure::place_all any "A vector in its own room is itself; zeros placed are zeros." "ExtractT(x,0,3)" => "x";
    structure::place_placed near "A placed part, placed again." "ExtractT(ExtractT(x,1,5),1,7)" => "ExtractT(x,2,7)";
    structure::concat_flat near "Concatenations do not nest." "Concat(Concat(x,y),s)" => "Concat(x,y,s)";
    structure::concat_whole near "Neighbouring parts of one vector are one part." "Concat(Elem(x,0),Extract(x,1,2))" => "x";
    structure::permute_nothing any "An exchange that moves nothing is dropped." "Permute(x,[1,3],[1,0])" => "x";
    structure::permute_twice near "Two exchanges are one." "Permute(Permute(TensorProd(x,y),[3,3],[1,0]),[3,3],[1,0])" => "TensorProd(x,y)";
    structure::contract_zero any "A contraction with zeros is zero." "TensorProd(x,Zero(2))" => "Zero(6)";
}

/// The simpler expression for a node that is about to be made, if a rule has one.
pub(crate) fn simplify(kind: &Kind, operands: &[Expr], dim: usize) -> Result<Option<Expr>> {
    if operands.is_empty() {
        return Ok(None);
    }
    #[cfg(test)]
    if tests::OFF.get() {
        return Ok(None);
    }
    let deep = operands.iter().any(|operand| operand.depth() >= MAX_DEPTH);
    let candidate = Candidate { kind, operands, dim };
    for rule in RULES.iter().filter(|rule| rule.any_depth || !deep) {
        if let Some(simpler) = (rule.apply)(&candidate)? {
            debug_assert_eq!(simpler.dim(), dim, "rule {} changed the dimension", rule.name);
            #[cfg(test)]
            tests::FIRED.with_borrow_mut(|fired| fired.push(rule.name));
            return Ok(Some(simpler));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::formula;
    use std::cell::{Cell, RefCell};
    use tilework_ops::{DType, Scalar};

    thread_local! {
        pub(super) static OFF: Cell<bool> = const { Cell::new(false) };
        pub(super) static FIRED: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    #[test]
    fn every_rule_does_what_its_example_says() {
        let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "t = Pm(1)"];
        for rule in RULES {
            FIRED.with_borrow_mut(Vec::clear);
            let before = formula(rule.example.0, &aliases).unwrap();
            let fired = FIRED.with_borrow(Clone::clone);
            assert!(fired.contains(&rule.name), "{} was not asked: {fired:?}", rule.name);
            let after = formula(rule.example.1, &aliases).unwrap();
            assert_eq!(before, after, "{}: {before} is not {after}", rule.name);
        }
    }

    /// A formula of random shape, as text, of dimension 1 or 3.
    fn random(numbers: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
        let leaves = ["x", "y", "s", "t", "0", "1", "-2", "0.5", "Zero(3)", "3", "x"];
        if depth == 0 {
            return leaves[numbers(leaves.len())].to_string();
        }
        let mut part = || random(numbers, depth - 1);
        let (a, b) = (part(), part());
        match numbers(26) {
            0 | 1 => format!("({a} + {b})"),
            2 => format!("({a} - {b})"),
            3..=6 => format!("({a} * {b})"),
            7 => format!("({a} / (2 + Square({b})))"),
            8 | 9 => format!("-({a})"),
            10 => format!("Exp(Tanh({a}))"),
            11 => format!("Square({a})"),
            12 => format!("Sum({a})"),
            13 | 14 => format!("({a} | {b})"),
            15 => format!("SumT(Sum({a}), 3)"),
            16 => format!("Extract(ExtractT({a} + x, 1, 5), {}, 3)", numbers(3)),
            17 => format!("ElemT(Sum({a}), 3, {})", numbers(3)),
            18 => format!("Extract(Concat({a} * x, {b} + x), {}, 3)", numbers(4)),
            19 => format!("Where({a}, {b}, x)"),
            20 => format!("Concat(Elem({a} + x, 0), Extract({a} + x, 1, 2))"),
            21 => format!("Extract(Permute(TensorProd({a} + x, {b}+x), [3,3], [1,0]), 1, 3)"),
            22 => format!("Pow({a}, {})", numbers(4)),
            23 => format!("Max({a})"),
            24 => format!("Cos({a})"),
            _ => format!("SqDist({a}, {b})"),
        }
    }

    #[test]
    fn rules_keep_values() {
        let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "t = Pm(1)"];
        let point: [&[f64]; 4] = [&[0.5, -1.25, 0.75], &[1.5, 0.25, -0.5], &[0.625], &[-1.5]];
        let mut state = 1u64;
        let mut numbers = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(12_345);
            (state >> 33) as usize % below
        };
        let mut compared = 0;
        for round in 0..4000 {
            let text = random(&mut numbers, 1 + round % 4);
            let Ok(simple) = formula(&text, &aliases) else { continue };
            OFF.set(true);
            let plain = formula(&text, &aliases);
            OFF.set(false);
            let (simple, plain) = (simple.evaluate(&point), plain.unwrap().evaluate(&point));
            for (a, b) in simple.unwrap().iter().zip(plain.unwrap()) {
                let scale = 1.0 + b.abs();
                assert!((a - b).abs() <= 1e-9 * scale || !b.is_finite(), "{text}: {a} is not {b}");
                compared += 1;
            }
        }
        assert!(compared > 3000, "only {compared} numbers were compared");
    }

    /// Products of positive numbers and constants near the ends of float32: what plain float32 can
    /// compute, the simpler formula can.
    #[test]
    fn what_float32_can_compute_stays_in_range() {
        let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "t = Pm(1)"];
        let point: [&[f64]; 4] = [&[0.5, 1.25, 0.75], &[1.5, 0.25, 0.5], &[0.625], &[1.5]];
        let mut state = 7u64;
        let mut numbers = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(12_345);
            (state >> 33) as usize % below
        };
        fn product(numbers: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
            let leaves = ["x", "y", "s", "t", "1e30", "1e-30", "1e20", "1e-20", "3", "0.5"];
            if depth == 0 {
                return leaves[numbers(leaves.len())].to_string();
            }
            let (a, b) = (product(numbers, depth - 1), product(numbers, depth - 1));
            match numbers(10) {
                0 => format!("-({a})"),
                1 => format!("Sum({a})"),
                2 => format!("({a} | {b})"),
                3 => format!("({a} / {b})"),
                4 => format!("({a} + {a})"),
                _ => format!("({a} * {b})"),
            }
        }
        let value = |expr: &Expr| -> Vec<f32> {
            let lowered = crate::lower(std::slice::from_ref(expr), DType::Float32).unwrap();
            let scalar = |x: &f64| Scalar::new(*x as f32);
            let inputs: Vec<Vec<Scalar>> = lowered
                .variables
                .iter()
                .map(|variable| point[variable.position].iter().map(scalar).collect())
                .collect();
            let inputs: Vec<&[Scalar]> = inputs.iter().map(|input| &input[..]).collect();
            lowered.tape.evaluate(&inputs).unwrap()[0].iter().map(|x| x.get::<f32>()).collect()
        };
        let mut compared = 0;
        for round in 0..6000 {
            let text = product(&mut numbers, 2 + round % 3);
            let Ok(simple) = formula(&text, &aliases) else { continue };
            let simple_value = value(&simple);
            OFF.set(true);
            let plain_value = formula(&text, &aliases).map(|plain| value(&plain));
            OFF.set(false);
            for (a, b) in simple_value.iter().zip(plain_value.unwrap()) {
                if b.is_normal() {
                    assert!((a - b).abs() <= 1e-4 * b.abs(), "{text} is {simple}: {a} is not {b}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 3000, "only {compared} numbers were compared");
    }

    #[test]
    fn constants_stay_in_range() {
        let aliases = ["x = Vi(3)", "y = Vj(3)", "s = Pm(1)", "t = Pm(1)"];
        for c in ["1e30", "1e-30", "1e25", "1e-25", "1e200", "1e-200"] {
            for text in [
                "C*(C*x)*y",
                "C*(x*(C*y))",
                "(C*x)*(C*y)",
                "Sum(C*(C*x))",
                "(C*x|C*y)",
                "-(C*(C*s))*x",
                "C*(C*(s*t))*x",
                "SqDist(C*x,y)*C",
            ] {
                let text = text.replace('C', c);
                let simple = formula(&text, &aliases).unwrap();
                // Joined constants are numbers in float32, or else they are those of the text.
                for constant in Expr::order(&[simple]).iter().filter_map(Expr::as_constant) {
                    let written = constant.abs() == c.parse::<f64>().unwrap();
                    let ordinary = crate::build::is_ordinary(&constant);
                    assert!(written || ordinary, "{text} has the constant {constant}");
                }
            }
        }
    }

    #[test]
    fn deep_chains_do_not_recurse() {
        let (x, y) = (Expr::vi(0, 3).unwrap(), Expr::vj(1, 3).unwrap());
        let (mut a, mut b) = (x.clone(), y.clone());
        for k in 0..20_000 {
            let s = Expr::pm(2 + k % 50, 1).unwrap();
            a = s.multiply(&a).unwrap();
            b = s.multiply(&b).unwrap();
        }
        assert_eq!(a.add(&b).unwrap().sum().unwrap().dim(), 1);
    }
}
