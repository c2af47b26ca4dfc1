//! The functions of formulas as methods of tensors, from the rows of both tables.
//!
//! A function of `functions.rs` says itself how it is called; an operation of the op table is a
//! method under its own name, unless KeOps users know it by another. Tensors of any language make
//! their methods, signatures and documentation from this list, so that a new row is a new method.

use tilework_fork::ForkOnce;
use tilework_ops::Id;

use crate::functions::{FUNCTIONS, Takes};
use crate::names;

/// Operations whose method is not called as their row is, with the names of the operands; an empty
/// text is no method: what differs from NumPy only in special points, makes sense on complex
/// numbers only, or is a cheaper form that plans choose by themselves.
const OWN: &[(Id, &str, &[&str])] = &[
    (Id::Clip, "clamp(a, b)", &["f", "a", "b"]),
    (Id::ModFrom, "mod(modulus, offset=0)", &["f", "modulus", "offset"]),
    (Id::SqrtFlat, "sqrt()", &["f"]),
    (Id::RsqrtOrZero, "rsqrt()", &["f"]),
    (Id::Round, "rint()", &["f"]),
    (Id::Sqrt, "", &[]),
    (Id::Rsqrt, "", &[]),
    (Id::RoundAway, "", &[]),
    (Id::Pow, "", &[]),
    (Id::Conj, "", &[]),
    (Id::RealPart, "", &[]),
    (Id::ImagPart, "", &[]),
    (Id::Exp2Pair, "", &[]),
    (Id::RcpPair, "", &[]),
    (Id::RsqrtPair, "", &[]),
    (Id::SqrtPair, "", &[]),
];

/// An argument of a method besides the tensor itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub takes: Takes,
    /// Its place among the arguments of the function.
    pub place: usize,
    /// The number that it is where it is left out.
    pub default: Option<i64>,
    /// Whether it may be left out.
    pub optional: bool,
}

/// A function as a method.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Its name as a method.
    pub name: &'static str,
    /// The name of the function in text.
    pub function: &'static str,
    /// What it means, as a sentence.
    pub doc: &'static str,
    /// The place of the tensor itself among the arguments of the function.
    pub own: usize,
    /// The other arguments, in the order of the method.
    pub parameters: Vec<Parameter>,
    /// The arguments as they are written: `g, s`.
    pub signature: &'static str,
}

fn make() -> Vec<Method> {
    let functions = FUNCTIONS.iter().filter(|function| !function.method.is_empty());
    let functions = functions.map(|f| read(f.name, f.method, f.doc, f.arguments, f.takes));
    let rows = Id::ALL.into_iter().filter(|id| names::is_real(*id)).filter_map(of_row);
    let mut methods: Vec<Method> = functions.chain(rows).collect();
    methods.sort_by_key(|method| method.name);
    // Functions come first and win, since the order of equal names is kept.
    methods.dedup_by_key(|method| method.name);
    methods
}

/// All methods, by name.
///
/// ```
/// let round = tilework_formula::methods::named("round").unwrap();
/// assert_eq!((round.function, round.parameters[0].default), ("Round", Some(0)));
/// ```
pub fn all() -> &'static [Method] {
    static METHODS: ForkOnce<Vec<Method>> = ForkOnce::new();
    METHODS.get_or_make(make)
}

/// The method with this name.
pub fn named(name: &str) -> Option<&'static Method> {
    let all = all();
    all.binary_search_by_key(&name, |method| method.name).ok().map(|at| &all[at])
}

fn of_row(id: Id) -> Option<Method> {
    const SIGNATURES: [&str; 3] = ["", "other", "other, third"];
    const OPERANDS: &[&str] = &["f", "other", "third"];
    let row = id.row();
    let takes = &[Takes::Formula; 3][..row.arity];
    match OWN.iter().find(|(own, ..)| *own == id) {
        Some((_, "", _)) => None,
        Some((_, text, arguments)) => {
            Some(read(names::of(id), text, row.doc.trim(), arguments, takes))
        }
        None => {
            let (text, operands) = (SIGNATURES[row.arity - 1], &OPERANDS[..row.arity]);
            let method = read(names::of(id), text, row.doc.trim(), operands, takes);
            Some(Method { name: row.name, ..method })
        }
    }
}

/// Reads `name(arguments)`, or the arguments alone, which are some of the function's.
fn read(
    function: &'static str,
    text: &'static str,
    doc: &'static str,
    arguments: &'static [&'static str],
    takes: &[Takes],
) -> Method {
    let (name, rest) = text.split_once('(').unwrap_or(("", text));
    let signature = rest.trim_end_matches(')');
    let mut parameters = Vec::new();
    for written in signature.split(',').map(str::trim).filter(|written| !written.is_empty()) {
        let (name, default) = written.split_once('=').unwrap_or((written, ""));
        let name = name.trim_start_matches('*');
        let found = arguments.iter().position(|argument| *argument == name);
        let Some(place) = found else { continue };
        parameters.push(Parameter {
            name,
            takes: takes[place],
            place,
            default: default.parse().ok(),
            optional: !default.is_empty() || takes[place] == Takes::Formulas,
        });
    }
    let taken = |place: &usize| parameters.iter().any(|parameter| parameter.place == *place);
    let own = (0..arguments.len()).find(|place| !taken(place)).unwrap_or(0);
    Method { name, function, doc, own, parameters, signature }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_of_a_function_is_the_tensor_or_an_argument_of_its_method() {
        for function in FUNCTIONS.iter().filter(|function| !function.method.is_empty()) {
            let (name, _) = function.method.split_once('(').unwrap();
            let method = named(name).unwrap();
            let mut places: Vec<usize> = method.parameters.iter().map(|p| p.place).collect();
            places.push(method.own);
            places.sort_unstable();
            let all: Vec<usize> = (0..function.arguments.len()).collect();
            assert_eq!(places, all, "{}", function.name);
        }
    }

    #[test]
    fn operations_are_methods_under_the_names_of_their_users() {
        for (name, function) in
            [("exp", "Exp"), ("sqrt", "Sqrt"), ("clamp", "Clamp"), ("log1p", "Log1p")]
        {
            assert_eq!(named(name).unwrap().function, function);
        }
        let weighted = named("weightedsqdist").unwrap();
        let places: Vec<usize> = weighted.parameters.iter().map(|p| p.place).collect();
        assert_eq!((weighted.own, places), (1, vec![2, 0]));
        assert_eq!(named("mod").unwrap().parameters[1].default, Some(0));
        assert_eq!(named("hypot").unwrap().signature, "other");
    }
}
