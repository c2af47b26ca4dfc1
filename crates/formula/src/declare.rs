//! Declarations of variables: `x = Vi(3)`, `Vi(2,3)`, `Var(2,3,0)`.
//!
//! A list of declarations says what names mean and how many arguments a call takes. The parser
//! uses the same words inside formulas.

use tilework_error::Result;

use crate::expr::{Category, POSITIONS, Variable, check_positions};
use crate::infer::MAX_DIM;
use crate::lex::{self, Token};

/// A declared variable, with its name where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub variable: Variable,
}

/// The category that a word of the syntax names; `Vx` and `Vy` are words of old KeOps.
pub(crate) fn category(word: &str) -> Option<Category> {
    match word {
        "Vi" | "Vx" => Some(Category::I),
        "Vj" | "Vy" => Some(Category::J),
        "Pm" => Some(Category::Parameter),
        _ => None,
    }
}

/// The variable that a word with these numbers means; `place` stands for a position left out.
pub(crate) fn variable(
    word: &str,
    numbers: &[f64],
    place: Option<usize>,
) -> std::result::Result<Variable, String> {
    let whole =
        |x: f64| (x.fract() == 0.0 && (0.0..POSITIONS as f64).contains(&x)).then_some(x as usize);
    let Some(numbers) = numbers.iter().map(|x| whole(*x)).collect::<Option<Vec<usize>>>() else {
        return Err(format!("{word} takes integers from 0 to {}", POSITIONS - 1));
    };
    let variable = match (category(word), &numbers[..], place) {
        (Some(category), [dim], Some(position)) => Variable { position, dim: *dim, category },
        (Some(_), [dim], None) => {
            return Err(format!("inside a formula the position comes first: {word}(0,{dim})"));
        }
        (Some(category), [position, dim], _) => {
            Variable { position: *position, dim: *dim, category }
        }
        (None, [position, dim, category @ 0..=2], _) => {
            Variable { position: *position, dim: *dim, category: Category::ALL[*category] }
        }
        (None, [_, _, category], _) => {
            return Err(format!("the category {category} is not 0 (i), 1 (j) or 2 (parameter)"));
        }
        (None, _, _) => return Err("Var takes position, dimension and category".into()),
        (Some(_), _, _) => return Err(format!("{word} takes a position and a dimension")),
    };
    match variable.dim {
        0..=MAX_DIM => Ok(variable),
        dim => Err(format!("a variable has dimension 0 to {MAX_DIM}, not {dim}")),
    }
}

/// The declaration in a text, at this place of the list.
///
/// ```
/// use tilework_formula::declare::declaration;
/// let y = declaration("y = Vj(3)", 1)?;
/// assert_eq!((y.name.as_deref(), y.variable.to_string().as_str()), (Some("y"), "Vj(1,3)"));
/// assert_eq!(declaration("Var(2,3,0)", 0)?.variable.to_string(), "Vi(2,3)");
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn declaration(text: &str, place: usize) -> Result<Declaration> {
    let tokens = lex::tokens(text)?;
    let fail = |at: usize| {
        let message = "a declaration reads `x = Vi(3)`, `x = Vi(0,3)` or `Var(0,3,0)`";
        lex::error(text, tokens[at.min(tokens.len() - 1)].1, message)
    };
    let (name, start) = match &tokens[..] {
        [(Token::Name(name), _), (Token::Sign("="), _), ..] => (Some(name.clone()), 2),
        _ => (None, 0),
    };
    let Some((Token::Name(word), at)) = tokens.get(start) else { return Err(fail(start)) };
    if category(word).is_none() && word != "Var" {
        return Err(fail(start));
    }
    let mut numbers = Vec::new();
    let mut next = start + 1;
    let mut expected = "(";
    loop {
        match &tokens.get(next).unwrap_or(&(Token::End, text.len())).0 {
            Token::Sign(sign) if *sign == expected => {}
            Token::Sign(")") if expected == "," => break,
            _ => return Err(fail(next)),
        }
        match tokens.get(next + 1) {
            Some((Token::Number(number), _)) => numbers.push(*number),
            _ => return Err(fail(next + 1)),
        }
        next += 2;
        expected = ",";
    }
    if tokens[next + 1].0 != Token::End {
        return Err(fail(next + 1));
    }
    let variable =
        variable(word, &numbers, Some(place)).map_err(|message| lex::error(text, *at, message))?;
    Ok(Declaration { name, variable })
}

/// A list of declarations: names are unique, and variables of one position agree.
pub fn declarations(texts: &[&str]) -> Result<Vec<Declaration>> {
    let mut found: Vec<Declaration> = Vec::with_capacity(texts.len());
    for (place, text) in texts.iter().enumerate() {
        let new = declaration(text, place)?;
        if new.name.is_some() && found.iter().any(|old| old.name == new.name) {
            return Err(lex::error(text, 0, "this name is declared twice"));
        }
        found.push(new);
    }
    let mut variables: Vec<Variable> = found.iter().map(|declared| declared.variable).collect();
    variables.sort_unstable();
    check_positions(&variables)?;
    Ok(found)
}
