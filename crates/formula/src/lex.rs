//! Text to tokens, with positions; and messages that show the place.
//!
//! Called by the parser. Any text gives tokens or an error, never a panic; positions are bytes.

use tilework_error::{Error, Result};

/// What a piece of text is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// A name.
    Name(String),
    /// A number.
    Number(f64),
    /// An operator or a bracket.
    Sign(&'static str),
    /// After the last token.
    End,
}

impl Token {
    /// As people would name it in a message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Token::Name(name) => format!("`{name}`"),
            Token::Number(value) => format!("the number {value}"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end of the text".into(),
        }
    }
}

/// Signs, the longer before their beginnings.
const SIGNS: [&str; 25] = [
    "**", "<=", ">=", "==", "!=", "//", "<", ">", "=", "+", "-", "*", "/", "|", "(", ")", "[", "]",
    ",", ";", "%", "@", "^", "&", "~",
];

/// The tokens of a text, each with its first byte, ended by [`Token::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, usize)>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if first.is_ascii_alphabetic() || first == '_' {
            let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &rest[..len.unwrap_or(rest.len())];
            found.push((Token::Name(name.to_string()), at));
            at += name.len();
        } else if first.is_ascii_digit() || starts_with_fraction(rest) {
            let literal = number_literal(rest);
            match literal.replace('_', "").parse::<f64>() {
                Ok(value) if value.is_finite() => found.push((Token::Number(value), at)),
                _ => return Err(error(text, at, format!("`{literal}` is no number"))),
            }
            at += literal.len();
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            found.push((Token::Sign(sign), at));
            at += sign.len();
        } else {
            return Err(error(text, at, format!("{first:?} has no meaning in a formula")));
        }
    }
    found.push((Token::End, text.len()));
    Ok(found)
}

fn starts_with_fraction(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('.') && chars.next().is_some_and(|c| c.is_ascii_digit())
}

/// The longest beginning that looks like a Python number.
fn number_literal(rest: &str) -> &str {
    let bytes = rest.as_bytes();
    let digits = |from: usize| {
        let more = bytes[from..].iter().take_while(|b| b.is_ascii_digit() || **b == b'_');
        from + more.count()
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    &rest[..end]
}

/// The error at a byte of the text, with the line and a caret below the place.
pub(crate) fn error(text: &str, at: usize, message: impl std::fmt::Display) -> Error {
    Error::formula(format!("{message}\n{}", shown(text, at)), Some(at))
}

/// The text around a byte, and a caret below it.
pub(crate) fn shown(text: &str, at: usize) -> String {
    const AROUND: usize = 36;
    let before: Vec<char> = text[..floor_boundary(text, at)].chars().collect();
    let after: Vec<char> = text[floor_boundary(text, at)..].chars().take(AROUND + 1).collect();
    let skipped = before.len() > AROUND;
    let kept = &before[before.len().saturating_sub(AROUND)..];
    let plain = |c: &char| if c.is_control() { ' ' } else { *c };
    let mut line = String::from(if skipped { "  ..." } else { "  " });
    let indent = line.chars().count() + kept.len();
    line.extend(kept.iter().map(plain));
    line.extend(after.iter().take(AROUND).map(plain));
    if after.len() > AROUND {
        line.push_str("...");
    }
    format!("{line}\n{}^", " ".repeat(indent))
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_signs() {
        let kinds: Vec<Token> =
            tokens("2.5e-3*x_1**.5<=1_000.").unwrap().into_iter().map(|t| t.0).collect();
        assert_eq!(
            kinds,
            [
                Token::Number(0.0025),
                Token::Sign("*"),
                Token::Name("x_1".into()),
                Token::Sign("**"),
                Token::Number(0.5),
                Token::Sign("<="),
                Token::Number(1000.0),
                Token::End
            ]
        );
        assert!(tokens("1e999").is_err());
        assert!(matches!(tokens("x $ y"), Err(Error::Formula { position: Some(2), .. })));
        assert!(matches!(tokens("é"), Err(Error::Formula { position: Some(0), .. })));
    }

    #[test]
    fn the_caret_stands_below_the_place() {
        assert_eq!(shown("Exp(x) + q", 9), "  Exp(x) + q\n           ^");
        let long = format!("{}q{}", "x+".repeat(60), "+x".repeat(60));
        let text = shown(&long, 120);
        let (line, caret) = text.split_once('\n').unwrap();
        assert_eq!(line.chars().nth(caret.chars().count() - 1), Some('q'));
    }
}
