//! From characters to words.

use super::Fault;

/// Characters `start` to `end` of the text.
pub type Span = std::ops::Range<usize>;

/// The longest text that is read.
pub const MAX_LENGTH: usize = 20_000;

#[derive(Clone, Debug, PartialEq)]
pub enum Word {
    Number(f64),
    Name(String),
    /// In quotes.
    Text(String),
    /// An operator, a bracket or another sign.
    Sign(&'static str),
    End,
}

impl Word {
    /// As messages call it.
    pub fn shown(&self, text: &[char], span: &Span) -> String {
        match self {
            Word::End => "the end".to_owned(),
            _ => format!("`{}`", text[span.clone()].iter().take(40).collect::<String>()),
        }
    }
}

/// Longer ones first.
const SIGNS: [&str; 22] = [
    "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "^", "(", ")", "[", "]", ",", ";", "=", "<", ">", "~",
    ":", ".",
];

/// All words of a text, the last of them [`Word::End`].
pub fn words(text: &[char]) -> Result<Vec<(Word, Span)>, Fault> {
    if text.len() > MAX_LENGTH {
        let message = format!("is {} characters long, and at most {MAX_LENGTH} are read", text.len());
        return Err(Fault::new(MAX_LENGTH..MAX_LENGTH + 1, message));
    }
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(&c) = text.get(at) {
        let start = at;
        let word = match c {
            c if c.is_whitespace() => {
                at += 1;
                continue;
            }
            '0'..='9' => number(text, &mut at)?,
            '.' if text.get(at + 1).is_some_and(char::is_ascii_digit) => number(text, &mut at)?,
            '`' => Word::Name(enclosed(text, &mut at, "a name in backticks")?),
            '\'' | '"' => Word::Text(enclosed(text, &mut at, "a text in quotes")?),
            c if begins_name(c) => name(text, &mut at),
            _ => sign(text, &mut at)?,
        };
        found.push((word, start..at));
    }
    found.push((Word::End, text.len()..text.len() + 1));
    Ok(found)
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn goes_on(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Letters, digits and `_`; a dot belongs to a name if the name goes on after it.
fn name(text: &[char], at: &mut usize) -> Word {
    let start = *at;
    while let Some(&c) = text.get(*at) {
        let dotted = c == '.' && text.get(*at + 1).is_some_and(|&next| goes_on(next));
        if !goes_on(c) && !dotted {
            break;
        }
        *at += 1;
    }
    Word::Name(text[start..*at].iter().collect())
}

/// Up to the same sign again.
fn enclosed(text: &[char], at: &mut usize, what: &str) -> Result<String, Fault> {
    let (start, quote) = (*at, text[*at]);
    let Some(length) = text[start + 1..].iter().position(|&c| c == quote) else {
        return Err(Fault::new(
            start..start + 1,
            format!("{what} begins here and has no end: `{quote}` is missing"),
        ));
    };
    *at = start + length + 2;
    let inside: String = text[start + 1..start + 1 + length].iter().collect();
    if inside.is_empty() && quote == '`' {
        return Err(Fault::new(start..*at, "expected a name between the backticks"));
    }
    Ok(inside)
}

fn number(text: &[char], at: &mut usize) -> Result<Word, Fault> {
    let start = *at;
    let digits = |at: &mut usize| {
        while text.get(*at).is_some_and(char::is_ascii_digit) {
            *at += 1
        }
    };
    digits(at);
    if text.get(*at) == Some(&'.') {
        *at += 1;
        digits(at);
    }
    if matches!(text.get(*at), Some('e' | 'E')) {
        let signed = usize::from(matches!(text.get(*at + 1), Some('+' | '-')));
        if text.get(*at + 1 + signed).is_some_and(char::is_ascii_digit) {
            *at += 1 + signed;
            digits(at);
        }
    }
    if text.get(*at).is_some_and(|&c| goes_on(c) || c == '.') {
        let message = "expected an operator after the number, such as `*`; a name that begins with a digit needs backticks";
        return Err(Fault::new(*at..*at + 1, message));
    }
    let written: String = text[start..*at].iter().collect();
    match written.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Word::Number(value)),
        _ => Err(Fault::new(start..*at, "expected a number that a double can hold")),
    }
}

fn sign(text: &[char], at: &mut usize) -> Result<Word, Fault> {
    let found =
        SIGNS.iter().find(|sign| sign.chars().enumerate().all(|(i, c)| text.get(*at + i) == Some(&c)));
    if let Some(sign) = found {
        *at += sign.len();
        return Ok(Word::Sign(sign));
    }
    let instead = match text[*at] {
        '&' => "; the word is `and`",
        '|' => "; the word is `or`",
        '!' => "; the word is `not`",
        '%' => "; there is no remainder",
        '{' | '}' => "; brackets are round",
        '−' | '–' | '—' => "; the minus sign is `-`",
        '×' | '·' => "; the sign of a product is `*`",
        _ => "",
    };
    Err(Fault::new(
        *at..*at + 1,
        format!("expected a number, a name or an operator, not `{}`{instead}", text[*at]),
    ))
}
