//! How parameters are called on a picture, where they can lie, and which of them a pattern means.
//!
//! A symbol of the paper is written as its letter, with numbers as indices: `mu.1` is μ₁, `sigma2.1.2` σ²₁,₂, `beta.age` β age. All
//! other names stay as they are.

use super::kde::Bounds;
use crate::config::{nearest, printable};
use crate::error::{Error, Result};
use crate::samples::fits;

const LETTERS: [(&str, &str); 11] = [
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("pi", "π"),
    ("Sigma", "Σ"),
    ("sigma", "σ"),
    ("sigma2", "σ²"),
    ("tau", "τ"),
    ("theta", "θ"),
];

/// Head of a name and its indices: `mu.1.2` and `mu[1,2]` are `mu` and 1, 2.
fn parts(name: &str) -> (&str, Option<&str>) {
    match name.split_once('[') {
        Some((head, rest)) if rest.ends_with(']') && head.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            (head, Some(&rest[..rest.len() - 1]))
        }
        _ => name.split_once('.').map_or((name, None), |(head, rest)| (head, Some(rest))),
    }
}

/// The name on a picture.
pub fn label(name: &str) -> String {
    let safe = printable(name);
    let (head, rest) = parts(&safe);
    let Some((_, letter)) = LETTERS.iter().find(|(word, _)| *word == head) else { return safe };
    let Some(rest) = rest else { return (*letter).to_owned() };
    let indices: Vec<&str> = rest.split(['.', ',']).collect();
    let whole = indices.iter().all(|i| !i.is_empty() && i.bytes().all(|b| b.is_ascii_digit()));
    if !whole {
        return format!("{letter} {rest}");
    }
    let small = |digit: char| char::from_u32(0x2080 + digit.to_digit(10).unwrap_or(0)).expect("an index");
    let indices: Vec<String> = indices.iter().map(|i| i.chars().map(small).collect()).collect();
    format!("{letter}{}", indices.join(","))
}

/// The same for a coefficient among coefficients: the name of its covariate.
pub fn covariate(name: &str) -> String {
    match name.strip_prefix("beta.") {
        Some(rest) if !rest.bytes().all(|b| b.is_ascii_digit()) => printable(rest),
        _ => label(name),
    }
}

/// Where values of a parameter of this name lie, by what the models call theirs.
pub fn bounds(name: &str) -> Bounds {
    match parts(name).0 {
        "pi" => Bounds::UNIT,
        "sigma2" | "sigma" | "lambda" | "shape" => Bounds::POSITIVE,
        _ => Bounds::NONE,
    }
}

/// The names that any of the patterns means, in the order of the patterns; `*` is any text, `?` any letter.
pub fn choose(patterns: &[String], names: &[String]) -> Result<Vec<String>> {
    choose_among("parameter", patterns, names)
}

/// The same among names of something else.
pub fn choose_among(what: &str, patterns: &[String], names: &[String]) -> Result<Vec<String>> {
    let mut chosen: Vec<String> = Vec::new();
    for pattern in patterns {
        let found: Vec<&String> = match names.contains(pattern) {
            true => vec![pattern],
            false => names.iter().filter(|name| matches(pattern, name)).collect(),
        };
        if found.is_empty() {
            return Err(unknown(what, pattern, names));
        }
        found.into_iter().for_each(|name| {
            if !chosen.contains(name) {
                chosen.push(name.clone())
            }
        });
    }
    Ok(chosen)
}

fn unknown(what: &str, pattern: &str, names: &[String]) -> Error {
    let shown = printable(pattern);
    if let Some(near) = nearest(pattern, names.iter().map(String::as_str)) {
        return Error::input(format!("no {what} `{shown}`; did you mean `{}`?", printable(near)));
    }
    let some: Vec<String> = names.iter().take(8).map(|n| printable(n)).collect();
    let more = if names.len() > 8 { format!(", … ({} in all)", names.len()) } else { String::new() };
    Error::input(format!("no {what} `{shown}`; there are {}{more}", some.join(", ")))
}

/// Whether the whole text is as the pattern says.
fn matches(pattern: &str, text: &str) -> bool {
    fits(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_become_letters_and_names_stay() {
        let labels = [
            "mu.1",
            "mu.1.12",
            "sigma2.3",
            "mu[1,2]",
            "beta.age",
            "intercept",
            "theta",
            "mu.x.1",
            "theta.größe [cm]",
        ];
        let expected = ["μ₁", "μ₁,₁₂", "σ²₃", "μ₁,₂", "β age", "intercept", "θ", "μ x.1", "θ größe [cm]"];
        assert_eq!(labels.map(label), expected);
        assert_eq!(
            [covariate("beta.age"), covariate("beta.14"), covariate("intercept")],
            ["age", "β₁₄", "intercept"]
        );
    }

    #[test]
    fn patterns_choose_in_order_and_mistakes_get_a_hint() {
        let names: Vec<String> = ["pi.1", "mu.1", "mu.2", "a*b"].map(String::from).to_vec();
        let chosen = |p: &[&str]| choose(&p.iter().map(|s| s.to_string()).collect::<Vec<_>>(), &names);
        assert_eq!(chosen(&["mu.*", "pi.1"]).unwrap(), ["mu.1", "mu.2", "pi.1"]);
        assert_eq!(chosen(&["*"]).unwrap().len(), 4);
        assert_eq!(chosen(&["a*b"]).unwrap(), ["a*b"]);
        assert_eq!(chosen(&["?i.1"]).unwrap(), ["pi.1"]);
        assert!(chosen(&["mu.l"]).unwrap_err().to_string().contains("did you mean `mu.1`?"));
        assert!(chosen(&["zeta.*"]).unwrap_err().to_string().contains("there are pi.1, mu.1"));
    }
}
