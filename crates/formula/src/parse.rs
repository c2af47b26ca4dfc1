//! The text syntax: Python expressions over the names of formulas, parsed and never evaluated.
//!
//! ```text
//! text       = { name "=" comparison ";" } comparison
//! comparison = dot [ ("<" | "<=" | ">" | ">=" | "==" | "!=") dot ]
//! dot        = sum { "|" sum }            sum   = product { ("+" | "-") product }
//! product    = sign { ("*" | "/") sign }  sign  = { "-" | "+" } power
//! power      = atom [ "**" sign ]
//! atom       = number | name | name "(" arguments ")" | "(" comparison ")" | "[" numbers "]"
//! ```
//!
//! Derivatives in directions (`Diff`) take several variables and directions in brackets, as in `(x,y)`.
//! Any text gives an expression or an error that shows the place. Nesting is bounded, since each
//! level is a level of the stack.

use tilework_error::{Error, Result};
use tilework_ops::Id;

use crate::declare::{self, Declaration, declarations};
use crate::expr::{Expr, Variable};
use crate::functions::{self, Argument};
use crate::lex::{self, Token};
use crate::reduction::Reduction;
use crate::suggest;

mod reductions;
mod several;

/// Brackets, powers and signs may nest this deep.
pub const MAX_NESTING: usize = 128;

/// What a text means.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// A formula.
    Formula(Expr),
    /// A reduction of a formula.
    Reduction(Reduction),
}

/// A text with its declarations.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// What it means.
    pub meaning: Meaning,
    /// The declared variables, in the order of the list, then those that the text itself
    /// introduces, by position.
    pub variables: Vec<Variable>,
}

/// The formula in a text, with names as declared.
///
/// ```
/// use tilework_formula::parse;
/// let f = parse::formula("Exp(-SqDist(x,y)/2) * b", &["x = Vi(3)", "y = Vj(3)", "b = Vj(1)"])?;
/// assert_eq!(f.dim(), 1);
/// let error = parse::formula("Exp(-SqDits(x,y))", &["x = Vi(3)", "y = Vj(3)"]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "there is no function `SqDits`; did you mean `SqDist`?\n  Exp(-SqDits(x,y))\n       ^"
/// );
/// # Ok::<(), tilework_error::Error>(())
/// ```
pub fn formula(text: &str, aliases: &[&str]) -> Result<Expr> {
    match parse(text, aliases)?.meaning {
        Meaning::Formula(expr) => Ok(expr),
        Meaning::Reduction(_) => {
            Err(lex::error(text, 0, "a formula is expected here, not a reduction"))
        }
    }
}

/// The formula or reduction in a text, with names as declared.
pub fn parse(text: &str, aliases: &[&str]) -> Result<Parsed> {
    let declared = declarations(aliases)?;
    let mut parser = Parser {
        text,
        tokens: lex::tokens(text)?,
        next: 0,
        nesting: 0,
        declared: &declared,
        defined: Vec::new(),
        inline: Vec::new(),
    };
    let (value, at) = parser.whole()?;
    let meaning = match value {
        Value::Formula(expr) => Meaning::Formula(expr),
        Value::Reduction(reduction) => Meaning::Reduction(*reduction),
        Value::List(_) | Value::Tuple(_) => {
            return Err(lex::error(text, at, "a list is no formula"));
        }
    };
    let mut variables: Vec<Variable> = declared.iter().map(|declared| declared.variable).collect();
    let mut inline = parser.inline;
    inline.sort_unstable();
    inline.dedup();
    inline.retain(|variable| !variables.contains(variable));
    variables.extend(inline);
    Ok(Parsed { meaning, variables })
}

#[derive(Clone)]
enum Value {
    Formula(Expr),
    List(Vec<f64>),
    Tuple(Vec<Expr>),
    Reduction(Box<Reduction>),
}

/// A value and where it began.
type Placed = (Value, usize);

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, usize)>,
    next: usize,
    nesting: usize,
    declared: &'a [Declaration],
    defined: Vec<(String, Expr)>,
    inline: Vec<Variable>,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn at(&self) -> usize {
        self.tokens[self.next].1
    }

    /// Goes past the next token; the end is never passed.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(next) if *next == sign);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.accept(sign) {
            return Ok(());
        }
        Err(self.error(format!("`{sign}` is expected, not {}", self.peek().describe())))
    }

    fn error(&self, message: impl std::fmt::Display) -> Error {
        lex::error(self.text, self.at(), message)
    }

    /// Gives an error that arose from a part of the text the place of that part.
    fn place<T>(&self, result: Result<T>, at: usize) -> Result<T> {
        result.map_err(|error| match error {
            Error::Formula { message, position: None } => lex::error(self.text, at, message),
            other => other,
        })
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(format!("this is nested more than {MAX_NESTING} deep")));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    fn formula(&self, (value, at): Placed) -> Result<Expr> {
        match value {
            Value::Formula(expr) => Ok(expr),
            Value::List(_) => Err(lex::error(self.text, at, "a formula is expected, not a list")),
            Value::Tuple(_) => Err(lex::error(self.text, at, "a formula is expected, not several")),
            Value::Reduction(_) => {
                Err(lex::error(self.text, at, "a reduction stands alone, not inside a formula"))
            }
        }
    }

    fn whole(&mut self) -> Result<Placed> {
        while let (Token::Name(name), Some((Token::Sign("="), _))) =
            (self.peek().clone(), self.tokens.get(self.next + 1))
        {
            let known = self.declared.iter().any(|declared| declared.name.as_ref() == Some(&name))
                || self.defined.iter().any(|(defined, _)| *defined == name);
            if known {
                return Err(self.error(format!("`{name}` has a meaning already")));
            }
            self.advance();
            self.advance();
            let value = self.comparison()?;
            let value = self.formula(value)?;
            self.expect(";")?;
            self.defined.push((name, value));
        }
        let value = self.comparison()?;
        match self.peek() {
            Token::End => Ok(value),
            Token::Sign(sign @ ("%" | "//" | "@" | "^" | "&" | "~")) => {
                Err(self.error(format!("formulas have no operator `{sign}`")))
            }
            token => Err(self.error(format!("{} is not expected here", token.describe()))),
        }
    }

    fn binary(
        &self,
        left: Placed,
        right: Placed,
        at: usize,
        build: impl FnOnce(&Expr, &Expr) -> Result<Expr>,
    ) -> Result<Placed> {
        let start = left.1;
        let (left, right) = (self.formula(left)?, self.formula(right)?);
        let result = self.place(build(&left, &right), at)?;
        Ok((Value::Formula(result), start))
    }

    fn comparison(&mut self) -> Result<Placed> {
        let left = self.dot()?;
        let Some(id) = self.comparison_sign() else { return Ok(left) };
        let at = self.at();
        self.advance();
        let right = self.dot()?;
        if self.comparison_sign().is_some() {
            return Err(self.error("comparisons do not chain; use parentheses"));
        }
        self.binary(left, right, at, |a, b| a.binary(id, b))
    }

    fn comparison_sign(&self) -> Option<Id> {
        match self.peek() {
            Token::Sign("<") => Some(Id::Less),
            Token::Sign("<=") => Some(Id::LessEqual),
            Token::Sign(">") => Some(Id::Greater),
            Token::Sign(">=") => Some(Id::GreaterEqual),
            Token::Sign("==") => Some(Id::Equal),
            Token::Sign("!=") => Some(Id::NotEqual),
            _ => None,
        }
    }

    fn dot(&mut self) -> Result<Placed> {
        let mut left = self.sum()?;
        loop {
            let at = self.at();
            if !self.accept("|") {
                return Ok(left);
            }
            let right = self.sum()?;
            left = self.binary(left, right, at, Expr::dot)?;
        }
    }

    fn sum(&mut self) -> Result<Placed> {
        let mut left = self.product()?;
        loop {
            let at = self.at();
            let build = match self.peek() {
                Token::Sign("+") => Expr::add,
                Token::Sign("-") => Expr::subtract,
                _ => return Ok(left),
            };
            self.advance();
            let right = self.product()?;
            left = self.binary(left, right, at, build)?;
        }
    }

    fn product(&mut self) -> Result<Placed> {
        let mut left = self.sign()?;
        loop {
            let at = self.at();
            let build = match self.peek() {
                Token::Sign("*") => Expr::multiply,
                Token::Sign("/") => Expr::divide,
                _ => return Ok(left),
            };
            self.advance();
            let right = self.sign()?;
            left = self.binary(left, right, at, build)?;
        }
    }

    fn sign(&mut self) -> Result<Placed> {
        let at = self.at();
        let (mut any, mut negative) = (false, false);
        loop {
            if self.accept("-") {
                negative = !negative;
            } else if !self.accept("+") {
                break;
            }
            any = true;
        }
        let value = self.power()?;
        if !any {
            return Ok(value);
        }
        let expr = self.formula(value)?;
        let expr = if negative { self.place(expr.negative(), at)? } else { expr };
        Ok((Value::Formula(expr), at))
    }

    fn power(&mut self) -> Result<Placed> {
        let base = self.atom()?;
        let at = self.at();
        if !self.accept("**") {
            return Ok(base);
        }
        let exponent = self.nested(Self::sign)?;
        self.binary(base, exponent, at, |base, exponent| match exponent.as_constant() {
            Some(number) => base.power(number),
            None => base.binary(Id::Pow, exponent),
        })
    }

    fn atom(&mut self) -> Result<Placed> {
        let at = self.at();
        match self.peek().clone() {
            Token::Number(value) => {
                self.advance();
                Ok((Value::Formula(Expr::constant(value)), at))
            }
            Token::Name(name) => {
                self.advance();
                if self.accept("(") {
                    self.nested(|parser| parser.call(&name, at))
                } else {
                    Ok((Value::Formula(self.name(&name, at)?), at))
                }
            }
            Token::Sign("(") => {
                self.advance();
                Ok((self.nested(Self::bracket)?, at))
            }
            Token::Sign("[") => {
                self.advance();
                let list = self.nested(|parser| parser.list("]"))?;
                Ok((Value::List(list), at))
            }
            token => Err(self.error(format!("a formula is expected, not {}", token.describe()))),
        }
    }

    fn name(&self, name: &str, at: usize) -> Result<Expr> {
        let declared = self.declared.iter().find(|it| it.name.as_deref() == Some(name));
        if let Some(declared) = declared {
            return self.place(Expr::variable(declared.variable), at);
        }
        if let Some((_, value)) = self.defined.iter().find(|(defined, _)| defined == name) {
            return Ok(value.clone());
        }
        match name {
            "inf" => return Ok(Expr::constant(f64::INFINITY)),
            "nan" => return Ok(Expr::constant(f64::NAN)),
            _ => {}
        }
        let names = self.declared.iter().filter_map(|it| it.name.as_deref());
        let names = names.chain(self.defined.iter().map(|(name, _)| name.as_str()));
        let hint = suggest::nearest(name, names)
            .unwrap_or_else(|| format!("; declare it, as in \"{name} = Vi(3)\""));
        Err(lex::error(self.text, at, format!("there is no variable `{name}`{hint}")))
    }

    /// Numbers up to a closing sign.
    fn list(&mut self, close: &str) -> Result<Vec<f64>> {
        let mut numbers = Vec::new();
        while !self.accept(close) {
            let negative = self.accept("-");
            let Token::Number(value) = *self.peek() else {
                return Err(
                    self.error(format!("a number is expected, not {}", self.peek().describe()))
                );
            };
            self.advance();
            numbers.push(if negative { -value } else { value });
            if !self.accept(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(numbers)
    }

    fn call(&mut self, name: &str, at: usize) -> Result<Placed> {
        // Variables and the list of old KeOps take numbers, not formulas.
        if name == "Ind" {
            return Ok((Value::List(self.list(")")?), at));
        }
        if declare::category(name).is_some() || name == "Var" {
            let numbers = self.list(")")?;
            let variable = declare::variable(name, &numbers, None)
                .map_err(|message| lex::error(self.text, at, message))?;
            let others = self.declared.iter().map(|declared| &declared.variable);
            let mut others = others.chain(&self.inline);
            let clash = |it: &&Variable| it.position == variable.position && **it != variable;
            if let Some(other) = others.find(clash) {
                let message = format!("argument {} is {other} elsewhere", variable.position);
                return Err(lex::error(self.text, at, message));
            }
            self.inline.push(variable);
            return Ok((Value::Formula(self.place(Expr::variable(variable), at)?), at));
        }
        if let Some(message) = functions::absent(name) {
            let message = format!("{message}\n{}", lex::shown(self.text, at));
            return Err(Error::Unsupported(message));
        }
        let mut arguments = Vec::new();
        while !self.accept(")") {
            arguments.push(self.comparison()?);
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        if let Some(reduced) = name.strip_suffix("_Reduction") {
            return Ok((self.reduction(reduced, arguments, at)?, at));
        }
        if matches!(name, "Grad_WithSavedForward" | "Diff_WithSavedForward") {
            return Ok((self.derivative(name, arguments, at)?, at));
        }
        if name == "Diff" && arguments.iter().any(|(value, _)| matches!(value, Value::Tuple(_))) {
            return Ok((self.diff_of_several(arguments, at)?, at));
        }
        let mut plain = Vec::with_capacity(arguments.len());
        for (value, start) in arguments {
            plain.push(match value {
                Value::List(numbers) => Argument::List(numbers),
                value => Argument::Formula(self.formula((value, start))?),
            });
        }
        match functions::call(name, &plain) {
            Some(result) => Ok((Value::Formula(self.place(result, at)?), at)),
            None => {
                let hint = suggest::nearest(name, functions::all_names()).unwrap_or_default();
                let message = format!("there is no function `{name}`{hint}");
                Err(lex::error(self.text, at, message))
            }
        }
    }
}
