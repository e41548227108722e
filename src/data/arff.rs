//! ARFF, as Weka and UCI write it: numeric and nominal attributes, `?` for missing. By hand, because the only crate for
//! it has not been kept since 2018.

use std::io::Read;

use super::records::{Lines, Separator};
use super::table::{Kind, Levels, Table};
use super::text::{Reader, Rules};
use crate::config::printable;
use crate::error::{Error, Result};

/// A header longer than this is not one.
const MAX_HEADER_LINES: u64 = 1_000_000;

pub fn read(mut lines: Lines<impl Read>, file: &str, rules: &Rules) -> Result<Table> {
    let shown = printable(file);
    let wrong = |line: u64, what: &str| Error::input(format!("{shown}:{line}: {what}"));
    let mut table = Table::default();
    loop {
        let taken = lines.take().map_err(|e| Error::input(format!("{shown}: {e}")))?;
        let line = lines.number();
        let bytes = taken.filter(|_| line <= MAX_HEADER_LINES).map(|taken| lines.text(taken));
        let bytes = bytes.ok_or_else(|| wrong(line, "no @data line: not an ARFF file"))?;
        let text = std::str::from_utf8(bytes).map_err(|_| wrong(line, "not valid UTF-8"))?.trim();
        if text.is_empty() || text.starts_with('%') || keyword(text, "@relation").is_some() {
            continue;
        }
        if keyword(text, "@data").is_some() {
            break;
        }
        let attribute =
            keyword(text, "@attribute").ok_or_else(|| wrong(line, "@attribute or @data is expected"))?;
        let (name, kind) = parse_attribute(attribute).map_err(|what| wrong(line, &what))?;
        if table.names.contains(&name) {
            return Err(wrong(line, &format!("attribute {} occurs twice", printable(&name))));
        }
        table.names.push(name);
        table.kinds.push(kind);
    }
    if table.names.is_empty() {
        return Err(wrong(lines.number(), "no @attribute before @data"));
    }
    let rules = Rules { comment: Some(b'%'), skip_lines: 0, ..rules.clone() };
    Reader::new(lines, file, &rules, Separator::Byte(b',')).with(table)?.read()
}

/// What follows a keyword, in any case.
fn keyword<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| text[word.len()..].trim())
}

/// Name, quoted or not, and type.
fn parse_attribute(text: &str) -> std::result::Result<(String, Kind), String> {
    let (name, rest) = match text.chars().next() {
        Some(quote @ ('\'' | '"')) => text[1..].split_once(quote).ok_or("the name has no closing quote")?,
        _ => text.split_once(char::is_whitespace).ok_or("the attribute has no type")?,
    };
    let kind = match rest.trim() {
        nominal if nominal.starts_with('{') && nominal.ends_with('}') => Kind::Levels(Levels::default()),
        word if ["numeric", "real", "integer"].iter().any(|w| word.eq_ignore_ascii_case(w)) => Kind::Number,
        other => return Err(format!("attributes of type {} are not read", printable(other))),
    };
    Ok((name.to_owned(), kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::text::Syntax;

    fn parse(text: &str, labels: &[&str]) -> std::result::Result<Table, String> {
        let rules = Rules {
            syntax: Syntax::Arff,
            missing: vec!["?".into()],
            labels: labels.iter().map(|l| l.to_string()).collect(),
            ..Rules::default()
        };
        read(Lines::new(text.as_bytes()), "t.arff", &rules).map_err(|e| e.to_string())
    }

    #[test]
    fn attributes_and_rows_are_read() {
        let text = "% c\n@RELATION 'x y'\n\n@attribute a numeric\n@attribute 'b c' REAL\r\n@attribute class {0,1}\n@data\n1,2.5E-001,0\r\n?,3,1\r\n";
        let table = parse(text, &["class"]).unwrap();
        assert_eq!(table.names, ["a", "b c", "class"]);
        assert_eq!(table.cells[..3], [1.0, 0.25, 0.0]);
        assert!(table.cells[3].is_nan());
        assert!(matches!(&table.kinds[2], Kind::Levels(l) if l.names() == ["0", "1"]));
    }

    #[test]
    fn what_is_not_arff_is_named_by_line() {
        assert!(parse("hello\n", &[]).unwrap_err().starts_with("t.arff:1: @attribute or @data"));
        assert!(parse("@attribute a string\n@data\n", &[]).unwrap_err().contains("type string"));
        assert!(
            parse("@attribute a numeric\n@data\n1,2\n", &[]).unwrap_err().starts_with("t.arff:3: 2 cells")
        );
        assert!(parse("@attribute a numeric\n", &[]).unwrap_err().contains("no @data"));
        assert!(
            parse("@attribute a numeric\n@attribute a numeric\n@data\n1,1\n", &[])
                .unwrap_err()
                .contains("twice")
        );
    }
}
