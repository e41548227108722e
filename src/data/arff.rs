//! ARFF, as Weka and UCI write it: numeric and nominal attributes, `?` for missing whatever else is. By hand, because the only crate for
//! it has not been kept since 2018.

use std::collections::HashSet;
use std::io::Read;

use super::records::{Lines, Quotes, Records, Separator};
use super::table::{Header, MOST_COLUMNS, Table};
use super::text::{Reader, Rules};
use crate::config::printable;
use crate::error::{Error, Result};

/// A header longer than this is not one.
const MAX_HEADER_LINES: u64 = 1_000_000;

pub fn read(mut lines: Lines<impl Read>, file: &str, rules: &Rules) -> Result<Table> {
    let shown = printable(file);
    let wrong = |line: u64, what: &str| Error::input(format!("{shown}:{line}: {what}"));
    let (mut names, mut declared) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
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
        let (name, values) = parse_attribute(attribute).map_err(|what| wrong(line, &what))?;
        if !seen.insert(printable(&name)) {
            return Err(wrong(line, &format!("attribute {} occurs twice", printable(&name))));
        }
        if names.len() == MOST_COLUMNS {
            return Err(wrong(line, &format!("more than {MOST_COLUMNS} attributes")));
        }
        names.push(name);
        declared.push(values);
    }
    if names.is_empty() {
        return Err(wrong(lines.number(), "no @attribute before @data"));
    }
    let mut rules = Rules { comment: Some(b'%'), skip_lines: 0, ..rules.clone() };
    rules.missing.push("?".into());
    let reader = Reader::new(lines, file, &rules, Separator::Byte(b','));
    reader.with(Header::named(names), declared)?.read()
}

/// What follows a keyword, in any case.
fn keyword<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| text[word.len()..].trim())
}

/// The values of a nominal attribute; numbers have none.
type Declared = Option<HashSet<Vec<u8>>>;

/// Name, quoted or not, and type.
fn parse_attribute(text: &str) -> std::result::Result<(String, Declared), String> {
    let (name, rest) = match text.chars().next() {
        Some(quote @ ('\'' | '"')) => text[1..].split_once(quote).ok_or("the name has no closing quote")?,
        _ => text.split_once(char::is_whitespace).ok_or("the attribute has no type")?,
    };
    let rest = rest.trim();
    let values = match rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(values) => Some(parse_values(values)?),
        None if ["numeric", "real", "integer"].iter().any(|w| rest.eq_ignore_ascii_case(w)) => None,
        None => return Err(format!("attributes of type {} are not read", printable(rest))),
    };
    Ok((name.to_owned(), values))
}

/// Values between commas, quoted like cells.
fn parse_values(text: &str) -> std::result::Result<HashSet<Vec<u8>>, String> {
    let mut records = Records::new(Lines::new(text.as_bytes()), Separator::Byte(b','), Quotes::Arff, None);
    let record = records.next().map_err(|_| "a value has no closing quote")?;
    Ok(record.map(|(_, record)| record.to_vec().into_iter().collect()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table::Kind;
    use crate::data::text::Syntax;

    fn parse(text: &str, labels: &[&str]) -> std::result::Result<Table, String> {
        let rules = Rules {
            syntax: Syntax::Arff,
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
    fn a_nominal_value_is_declared_or_missing() {
        let header = "@attribute a {x, 'y, z',w}\n@attribute n numeric\n@data\n";
        let table = parse(&format!("{header}'y, z',1\n?,2\nx,?\n"), &[]).unwrap();
        assert!(matches!(&table.kinds[0], Kind::Levels(l) if l.names() == ["y, z", "x"]));
        assert!(table.cells[2].is_nan() && table.cells[5].is_nan());
        let error = parse(&format!("{header}x,1\nv,2\n"), &[]).unwrap_err();
        assert_eq!(
            error,
            "t.arff:5: column \"a\" (1): \"v\" is not among the values that its @attribute declares"
        );
    }

    #[test]
    fn only_the_columns_that_are_used_are_read() {
        let text = "@attribute a {x}\n@attribute b numeric\n@attribute c numeric\n@data\nundeclared,oops,3\n";
        let used = |columns: &[&str]| Rules {
            syntax: Syntax::Arff,
            columns: Some(columns.iter().map(|c| c.to_string()).collect()),
            ..Rules::default()
        };
        let table = read(Lines::new(text.as_bytes()), "t.arff", &used(&["3"])).unwrap();
        assert_eq!((&table.names[..], &table.cells[..]), (&["c".to_owned()][..], &[3.0][..]));
        let error = read(Lines::new(text.as_bytes()), "t.arff", &used(&["d"])).unwrap_err().to_string();
        assert!(error.starts_with("t.arff: the data have no column \"d\""), "{error}");
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
