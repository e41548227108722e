//! What is wrong with a document, and where: messages with file, line, column and an excerpt.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};
use std::sync::Arc;

/// Characters of a source line shown in an excerpt.
const EXCERPT_WIDTH: usize = 100;
/// Problems printed in full; a file with more of them is no experiment file.
const MAX_SHOWN: usize = 30;

/// The texts that places refer to.
pub(super) struct Source {
    file: String,
    text: String,
    line_starts: Vec<usize>,
    sets: Vec<String>,
}

/// Where a key or value was written. The order is that of the report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The file, nowhere in particular.
    Whole,
    /// The top of the file.
    Top,
    /// Bytes of the file.
    File { start: usize, end: usize },
    /// The `--set` argument of this index.
    Override(usize),
}

/// One thing that is wrong with a document.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Dotted path of the key concerned; empty if there is none.
    pub key: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    pub(super) place: Place,
}

/// What is wrong with the table of a model or a base measure: the key below it, empty for the table itself, and why.
pub type Complaint = (Cow<'static, str>, String);

pub fn complaint(key: impl Into<Cow<'static, str>>, why: impl Into<String>) -> Complaint {
    (key.into(), why.into())
}

/// The key of some characters of a text: `model.custom.loss{4..7}`. A problem with such a key points at them.
pub fn within(key: &str, characters: &std::ops::Range<usize>) -> String {
    format!("{key}{{{}..{}}}", characters.start, characters.end)
}

/// A key as it is written in a file, and the characters of its text, if it names some.
pub fn without_characters(key: &str) -> (&str, Option<std::ops::Range<usize>>) {
    let named = || {
        let (bare, span) = key.strip_suffix('}')?.rsplit_once('{')?;
        let (start, end) = span.split_once("..")?;
        Some((bare, start.parse().ok()?..end.parse().ok()?))
    };
    named().map_or((key, None), |(bare, span)| (bare, Some(span)))
}

/// All that is wrong with a document, in the order of the file and then of the overrides.
pub struct Problems {
    source: Arc<Source>,
    list: Vec<Problem>,
}

impl Source {
    pub(super) fn new(file: &str, text: &str, sets: &[String]) -> Arc<Source> {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Arc::new(Source { file: file.to_owned(), text: text.to_owned(), line_starts, sets: sets.to_vec() })
    }

    /// Where some characters of the text that is written at `start..end` stand.
    pub(super) fn characters(
        &self,
        (start, end): (usize, usize),
        span: &std::ops::Range<usize>,
    ) -> Option<Place> {
        let offsets = text_offsets(self.text.get(start..end)?)?;
        let at = |character: usize| start + offsets[character.min(offsets.len() - 1)];
        let first = at(span.start);
        let last = if span.end > span.start { at(span.end - 1) } else { first };
        let width = self.text[last..].chars().next().map_or(1, char::len_utf8);
        Some(Place::File { start: first, end: last + width })
    }

    /// Zero-based line of a byte offset.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// File and line of a place, or the override that it is.
    pub(super) fn line_named(&self, place: &Place) -> Option<String> {
        match place {
            Place::Whole | Place::Top => None,
            Place::File { start, .. } => {
                Some(format!("{}:{}", printable(&self.file), self.line_of(*start) + 1))
            }
            Place::Override(i) => self.sets.get(*i).map(|set| format!("--set {}", shown(set))),
        }
    }

    /// A line without its line break.
    fn line(&self, index: usize) -> &str {
        let start = self.line_starts[index];
        let end = self.line_starts.get(index + 1).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }

    /// Line, first column and the column after the last (from zero, in characters) of a span.
    fn columns(&self, start: usize, end: usize) -> (usize, usize, usize) {
        let line = self.line_of(start);
        let text = self.line(line);
        let count = |offset: usize| {
            let inside = offset.saturating_sub(self.line_starts[line]);
            text.char_indices().take_while(|(i, _)| *i < inside).count()
        };
        let first = count(start);
        (line, first, count(end).max(first + 1))
    }

    fn write(&self, out: &mut impl Write, problem: &Problem) -> fmt::Result {
        let (file, message) = (printable(&self.file), printable(&problem.message));
        let mut width = 3;
        match problem.place {
            Place::Whole => write!(out, "{file}: {message}")?,
            Place::Top => write!(out, "{file}:1:1: {message}")?,
            Place::Override(i) => {
                write!(out, "--set {}: {message}", shown(self.sets.get(i).map_or("", |s| s)))?
            }
            Place::File { start, end } => {
                let (line, first, last) = self.columns(start, end);
                write!(out, "{file}:{}:{}: {message}", line + 1, first + 1)?;
                width = width.max((line + 1).to_string().len());
                write_excerpt(out, self.line(line), &(line + 1).to_string(), (first, last), width)?;
            }
        }
        match &problem.help {
            Some(help) => write!(out, "\n{:width$} = help: {}", "", printable(help)),
            None => Ok(()),
        }
    }
}

/// A text that stands in no file, on a line of its own, with carets under some of its characters.
pub fn pointed(text: &str, characters: &std::ops::Range<usize>) -> String {
    let line = text.replace(['\n', '\r'], " ");
    let mut out = String::new();
    let at = (characters.start, characters.end.max(characters.start + 1));
    write_excerpt(&mut out, &line, "", at, 3).expect("a string takes all");
    out
}

/// The line with its number, clipped around the carets below it.
fn write_excerpt(
    out: &mut impl Write,
    line: &str,
    number: &str,
    at: (usize, usize),
    width: usize,
) -> fmt::Result {
    if line.trim().is_empty() {
        return Ok(());
    }
    let chars: Vec<char> = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let clipped = chars.len() > EXCERPT_WIDTH;
    let from = if clipped { at.0.saturating_sub(30).min(chars.len() - EXCERPT_WIDTH) } else { 0 };
    let to = (from + EXCERPT_WIDTH).min(chars.len());
    let piece = |a: usize, b: usize| printable(&chars[a.min(to)..b.min(to)].iter().collect::<String>());
    let (lead, mark, rest) = (piece(from, at.0), piece(at.0, at.1), piece(at.1, to));
    let (left, right) = (if from > 0 { "…" } else { "" }, if to < chars.len() { "…" } else { "" });
    let indent = left.chars().count() + lead.chars().count();
    let carets = mark.chars().count().max(1);
    write!(out, "\n{number:>width$} | {left}{lead}{mark}{rest}{right}")?;
    write!(out, "\n{:width$} | {:indent$}{:^<carets$}", "", "", "")
}

/// Where each character of a TOML string is written within it, escapes and quotes included, and where its end is; `None` if it
/// is no string.
fn text_offsets(raw: &str) -> Option<Vec<usize>> {
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| raw.starts_with(quote))?;
    let (escapes, long) = (quote.starts_with('"'), quote.len() == 3);
    let inside = raw.len().checked_sub(quote.len()).filter(|end| *end >= quote.len())?;
    let mut at = quote.len();
    if long {
        at += ["\r\n", "\n"].into_iter().find(|end| raw[at..].starts_with(end)).map_or(0, str::len);
    }
    let mut offsets = Vec::new();
    while at < inside {
        let rest = &raw[at..inside];
        let first = rest.chars().next()?;
        if escapes && first == '\\' {
            let sign = rest.chars().nth(1)?;
            if sign.is_whitespace() {
                at += 1 + (rest.len() - 1 - rest[1..].trim_start().len());
                continue;
            }
            offsets.push(at);
            at += 1 + match sign {
                'x' => 3,
                'u' => 5,
                'U' => 9,
                other => other.len_utf8(),
            };
        } else {
            offsets.push(at);
            at += first.len_utf8();
        }
    }
    offsets.push(inside);
    Some(offsets)
}

impl Problem {
    pub(super) fn new(key: impl Into<String>, place: &Place, message: impl Into<String>) -> Problem {
        Problem { key: key.into(), message: message.into(), help: None, place: place.clone() }
    }

    /// The same problem with advice.
    pub fn with_help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }
}

impl Problems {
    pub(super) fn new(source: Arc<Source>, mut list: Vec<Problem>) -> Problems {
        list.sort_by(|a, b| a.place.cmp(&b.place));
        Problems { source, list }
    }

    /// The same, of one of several things.
    pub fn of(mut self, what: &str) -> Problems {
        self.list.iter_mut().for_each(|problem| problem.message += &format!(" ({what})"));
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems in the order of the report.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }
}

impl Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.list.iter().take(MAX_SHOWN).enumerate() {
            if i > 0 {
                f.write_char('\n')?;
            }
            self.source.write(f, problem)?;
        }
        match self.list.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n... and {more} more"),
        }
    }
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl std::error::Error for Problems {}

/// Foreign text made safe for a terminal: control and bidirectional formatting characters as `\u{..}`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible_format(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters that reorder, break or hide what surrounds them.
fn is_invisible_format(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A number within a message: with an exponent where it would be a line of zeros.
pub fn brief(number: f64) -> String {
    match number.abs() {
        0.0 | 1e-5..1e16 => number.to_string(),
        _ => format!("{number:e}"),
    }
}

/// Foreign text quoted within a message: printable, and clipped where it is long.
pub(super) fn shown(text: &str) -> String {
    const LIMIT: usize = 80;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => printable(&text[..end]) + "…",
        None => printable(text),
    }
}
