//! Expressions as text: exact text that parses back to the same expression, and brief text for
//! messages.
//!
//! Plain text of an expression that shares a lot, or is very deep, would be longer than memory or
//! deeper than the parser goes; such text begins with definitions: `t0 = Exp(x); t0 * y + t0`.
//! Text is a function of the expression alone. `Display` is the exact text.

use std::fmt;

use tilework_ops::Id;

use crate::expr::{Expr, Kind, Map, Set, Variable};
use crate::names;

/// Trees up to this size are written without definitions.
const PLAIN_SIZE: u64 = 400;
/// Text nests no deeper than this; the parser goes deeper.
const MAX_NESTING: usize = 40;

/// How strongly an operator binds, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Comparison,
    Sum,
    Product,
    Sign,
    Atom,
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&|_| None))
    }
}

impl Expr {
    /// Text that parses back to the same expression when the names are declared as these
    /// variables; variables without a name are written `Vi(0,3)`.
    ///
    /// ```
    /// use tilework_formula::parse;
    /// let f = parse::formula("Exp(-SqDist(x, y) / 4) * y", &["x = Vi(3)", "y = Vj(3)"])?;
    /// let names = ["x", "y"];
    /// let text = f.text(&|v| names.get(v.position).map(|name| name.to_string()));
    /// assert_eq!(text, "Exp(-0.25 * SqDist(x, y)) * y");
    /// # Ok::<(), tilework_error::Error>(())
    /// ```
    pub fn text(&self, name: &dyn Fn(Variable) -> Option<String>) -> String {
        let (definitions, texts) = with_definitions(std::slice::from_ref(self), name);
        definitions + &texts[0]
    }

    /// A few words of text, for messages: what is deep inside is left out.
    pub fn brief(&self) -> String {
        let text = brief(self, 4).1;
        match text.char_indices().nth(70) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    }
}

/// The definitions that these expressions need, each ended by `; `, and their text over them.
pub(crate) fn with_definitions(
    roots: &[Expr],
    name: &dyn Fn(Variable) -> Option<String>,
) -> (String, Vec<String>) {
    let order = Expr::order(roots);
    let defined = to_define(roots, &order);
    let mut prefix = String::from("t");
    let names: Vec<String> = order.iter().filter_map(Expr::as_variable).filter_map(name).collect();
    while names.iter().any(|name| name.starts_with(&prefix)) {
        prefix.push('_');
    }
    let mut written: Map<(Binding, String)> = Map::default();
    let mut definitions = String::new();
    let mut count = 0;
    for node in &order {
        let (binding, line) = write(node, name, &written);
        let entry = if defined.contains(node) {
            let label = format!("{prefix}{count}");
            count += 1;
            definitions.push_str(&format!("{label} = {line}; "));
            (Binding::Atom, label)
        } else {
            (binding, line)
        };
        written.insert(node.clone(), entry);
    }
    (definitions, roots.iter().map(|root| written[root].1.clone()).collect())
}

/// The nodes that get a definition of their own.
fn to_define(roots: &[Expr], order: &[Expr]) -> Set {
    let mut uses: Map<usize> = Map::default();
    for node in order {
        for operand in node.operands() {
            *uses.entry(operand.clone()).or_default() += 1;
        }
    }
    let size = roots.iter().fold(0u64, |size, root| size.saturating_add(root.tree_size()));
    let large = size > PLAIN_SIZE;
    let mut nesting: Map<usize> = Map::default();
    let mut defined = Set::default();
    for node in order {
        let inside = node.operands().iter().map(|operand| nesting[operand]).max().unwrap_or(0) + 1;
        let shared =
            large && node.tree_size() > 2 && uses.get(node).is_some_and(|count| *count > 1);
        if (shared || inside >= MAX_NESTING) && !roots.contains(node) {
            defined.insert(node.clone());
            nesting.insert(node.clone(), 0);
        } else {
            nesting.insert(node.clone(), inside);
        }
    }
    defined
}

/// A node over the text of its operands.
fn write(
    node: &Expr,
    name: &dyn Fn(Variable) -> Option<String>,
    written: &Map<(Binding, String)>,
) -> (Binding, String) {
    let operand = |operand: &Expr, least: Binding| {
        let (binding, text) = &written[operand];
        if *binding >= least { text.clone() } else { format!("({text})") }
    };
    layout(node, name, &operand)
}

/// The form of a node: how it is written over its operands.
fn layout(
    node: &Expr,
    name: &dyn Fn(Variable) -> Option<String>,
    operand: &dyn Fn(&Expr, Binding) -> String,
) -> (Binding, String) {
    let x = node.operands();
    let loose = |expr: &Expr| operand(expr, Binding::Comparison);
    let call = |head: &str, arguments: &[String]| {
        (Binding::Atom, format!("{head}({})", arguments.join(", ")))
    };
    let infix = |sign: &str, own: Binding, left: Binding, right: Binding| {
        (own, format!("{} {sign} {}", operand(&x[0], left), operand(&x[1], right)))
    };
    let compare = |sign| infix(sign, Binding::Comparison, Binding::Sum, Binding::Sum);
    match node.kind() {
        Kind::Variable(variable) => {
            (Binding::Atom, name(*variable).unwrap_or_else(|| variable.to_string()))
        }
        Kind::Constant(bits) => constant(bits.value()),
        Kind::Zero(1) => (Binding::Atom, "0".into()),
        Kind::Zero(len) => (Binding::Atom, format!("Zero({len})")),
        Kind::Range(len) => (Binding::Atom, format!("Range({len})")),
        Kind::Apply(id) => match id {
            Id::Add => infix("+", Binding::Sum, Binding::Sum, Binding::Product),
            Id::Subtract => infix("-", Binding::Sum, Binding::Sum, Binding::Product),
            Id::Multiply => infix("*", Binding::Product, Binding::Product, Binding::Sign),
            Id::Divide => infix("/", Binding::Product, Binding::Product, Binding::Sign),
            // A number is negated by folding, so a sign before a number cannot be a node.
            Id::Negative => (Binding::Sign, format!("-{}", operand(&x[0], Binding::Atom))),
            Id::Less => compare("<"),
            Id::LessEqual => compare("<="),
            Id::Equal => compare("=="),
            Id::NotEqual => compare("!="),
            Id::Pow if x[1].as_constant().is_some_and(|m| m.fract() == 0.0 && m.abs() < 1e9) => {
                call("Pow", &[loose(&x[0]), loose(&x[1])])
            }
            _ => call(names::of(*id), &x.iter().map(loose).collect::<Vec<_>>()),
        },
        Kind::Select => match x[0].operands_of(Id::LessEqual) {
            Some([zero, tested]) if zero.as_constant() == Some(0.0) => {
                call("IfElse", &[loose(tested), loose(&x[1]), loose(&x[2])])
            }
            _ => call("Where", &x.iter().map(loose).collect::<Vec<_>>()),
        },
        Kind::Fold(fold) => call(names::of_fold(*fold), &[loose(&x[0])]),
        Kind::Repeat(len) => call("SumT", &[loose(&x[0]), len.to_string()]),
        Kind::Extract { start, len: 1 } => call("Elem", &[loose(&x[0]), start.to_string()]),
        Kind::Extract { start, len } => {
            call("Extract", &[loose(&x[0]), start.to_string(), len.to_string()])
        }
        Kind::Place { start, len } if x[0].dim() == 1 => {
            call("ElemT", &[loose(&x[0]), len.to_string(), start.to_string()])
        }
        Kind::Place { start, len } => {
            call("ExtractT", &[loose(&x[0]), start.to_string(), len.to_string()])
        }
        Kind::Concat => call("Concat", &x.iter().map(loose).collect::<Vec<_>>()),
        Kind::Permute(p) => call("Permute", &[loose(&x[0]), list(&p.shape), list(&p.to)]),
        Kind::Dot if x[0] == x[1] => match x[0].operands_of(Id::Subtract) {
            Some([a, b]) if a.dim() == b.dim() => call("SqDist", &[loose(a), loose(b)]),
            _ => call("SqNorm2", &[loose(&x[0])]),
        },
        Kind::Dot => {
            let (a, b) = (operand(&x[0], Binding::Sum), operand(&x[1], Binding::Sum));
            (Binding::Atom, format!("({a} | {b})"))
        }
        Kind::Contract(c) => {
            let (left, right): (Vec<u8>, Vec<u8>) = c.over.iter().copied().unzip();
            let lists = [list(&c.left), list(&c.right), list(&left), list(&right)];
            let [a, b, l, r] = lists;
            call("TensorDot", &[loose(&x[0]), loose(&x[1]), a, b, l, r])
        }
    }
}

fn list<T: fmt::Display>(numbers: &[T]) -> String {
    let numbers: Vec<String> = numbers.iter().map(T::to_string).collect();
    format!("[{}]", numbers.join(","))
}

fn constant(value: f64) -> (Binding, String) {
    let binding =
        if value.is_sign_negative() && !value.is_nan() { Binding::Sign } else { Binding::Atom };
    let text = match value {
        x if x.is_nan() => "nan".into(),
        // Beyond 2^53 and below 1e-5 exponents are shorter; all forms read back exactly.
        x if x.fract() == 0.0 && x.abs() < 9e15 => format!("{x:.0}"),
        x if x.is_finite() => format!("{x:?}"),
        x if x > 0.0 => "inf".into(),
        _ => "-inf".into(),
    };
    (binding, text)
}

fn brief(node: &Expr, levels: usize) -> (Binding, String) {
    if levels == 0 && !node.operands().is_empty() {
        return (Binding::Atom, "..".into());
    }
    // Long concatenations are cut here, before they become long text.
    if node.operands().len() > 8 {
        return (Binding::Atom, format!("{}(..)", names::of_kind(node.kind())));
    }
    let operand = |operand: &Expr, least: Binding| {
        let (binding, text) = brief(operand, levels.saturating_sub(1));
        if binding >= least { text } else { format!("({text})") }
    };
    layout(node, &|_| None, &operand)
}
