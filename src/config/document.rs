//! An experiment file as written: the TOML tree with the place of every value, and the overrides on top.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::numbers::Scalar;
use super::problem::{Place, Problem, Problems, Source, without_characters};
use super::schema_check;

/// An experiment file with its `--set` overrides, every value knowing where it was written.
#[derive(Clone)]
pub struct Document {
    source: Arc<Source>,
    root: Node,
}

/// A value of the tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Where its key stands.
    pub key: Place,
    /// Where the value stands; of a table, its header.
    pub place: Place,
    /// The last override that set it or something within it.
    pub touched: Option<usize>,
    pub data: Data,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Text(String),
    Integer(i64),
    /// An integer that does not fit in 64 bits, as written.
    Huge(String),
    Float(f64),
    Flag(bool),
    Date,
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Document {
    /// The largest text that is read.
    pub const MAX_BYTES: usize = 1 << 20;

    /// Reads `text`, the content of `file`; `sets` are the raw `key.path=value` arguments, later ones win.
    pub fn parse(file: &str, text: &str, sets: &[String]) -> Result<Document, Problems> {
        if text.len() > Self::MAX_BYTES {
            let message = format!("the file has {} bytes; at most {} are read", text.len(), Self::MAX_BYTES);
            return Err(Problems::new(
                Source::new(file, "", sets),
                vec![Problem::new("", &Place::Whole, message)],
            ));
        }
        let source = Source::new(file, text, sets);
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut problems = syntax_problems(&source, &errors);
        let data = Data::Table(entries(table.get_ref(), None));
        let mut root = Node { key: Place::Top, place: Place::Top, touched: None, data };
        for (index, set) in sets.iter().enumerate() {
            match split_override(set) {
                Some((path, value)) => root.set(&path, override_node(value, index)),
                None => problems.push(Problem::new(
                    "",
                    &Place::Override(index),
                    "must have the form `key.path=value`",
                )),
            }
        }
        if problems.is_empty() { Ok(Document { source, root }) } else { Err(Problems::new(source, problems)) }
    }

    /// Checks the whole tree against the schema of `T`, then decodes it.
    pub fn decode<T: DeserializeOwned + JsonSchema + 'static>(&self) -> Result<T, Problems> {
        match schema_check::check(schema_of::<T>(), &self.root) {
            Ok(value) => value.try_into().map_err(|error| self.problems(vec![self.decode_problem(&error)])),
            Err(problems) => Err(self.problems(problems)),
        }
    }

    /// What serde found beyond the schema, placed by the key that it names.
    fn decode_problem(&self, error: &toml::de::Error) -> Problem {
        let text = error.to_string();
        let named = text.rsplit_once("\nin `").and_then(|(_, rest)| rest.rsplit_once('`'));
        match named {
            Some((key, _)) => self.problem(key, format!("`{key}`: {}", error.message())),
            None => Problem::new("", &Place::Whole, error.message()),
        }
    }

    /// A problem at a dotted key path such as `prior.T`, `data.means[2]` or `stage.effect.target`, placed at its value, or at the
    /// deepest ancestor that is written; or at some characters of a text, see [`within`](super::within).
    pub fn problem(&self, key: &str, message: impl Into<String>) -> Problem {
        let (key, characters) = without_characters(key);
        let place = &self.find(key).0.place;
        match (place, characters) {
            (Place::File { start, end }, Some(span)) => {
                let inside = self.source.characters((*start, *end), &span);
                Problem::new(key, inside.as_ref().unwrap_or(place), message)
            }
            (Place::Override(_), Some(span)) => {
                Problem::new(key, place, format!("{} (character {})", message.into(), span.start + 1))
            }
            _ => Problem::new(key, place, message),
        }
    }

    /// The problems of this document as one error.
    pub fn problems(&self, list: Vec<Problem>) -> Problems {
        Problems::new(self.source.clone(), list)
    }

    /// Whether the user wrote this key, in the file or by `--set`.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).1
    }

    /// Where a key is written: `x.toml:6`, or the override that sets it.
    pub fn line(&self, key: &str) -> Option<String> {
        let (node, there) = self.find(key);
        if there { self.source.line_named(&node.place) } else { None }
    }

    /// The text at a key, if there is one.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.find(key) {
            (Node { data: Data::Text(text), .. }, true) => Some(text),
            _ => None,
        }
    }

    /// The document with another value at the key that is written at `named`; the value itself is written at `at`.
    pub fn with(&self, named: &str, at: &str, value: &Scalar) -> Result<Document, Problems> {
        let (name, value_node) = (self.find(named).0, self.find(at).0);
        let path = match &name.data {
            Data::Text(key) => key_path(key),
            _ => None,
        };
        let Some(path) = path else {
            let problem = self.problem(named, format!("`{named}` must be a key such as `prior.alpha`"));
            return Err(self.problems(vec![problem]));
        };
        let data = match value {
            Scalar::Flag(flag) => Data::Flag(*flag),
            Scalar::Integer(number) => Data::Integer(*number),
            Scalar::Number(number) => Data::Float(*number),
            Scalar::Text(text) => Data::Text(text.clone()),
        };
        // Later than any override.
        let touched = Some(usize::MAX);
        let mut root = self.root.clone();
        root.set(&path, Node { key: name.place.clone(), place: value_node.place.clone(), touched, data });
        Ok(Document { source: self.source.clone(), root })
    }

    /// The node at a dotted path, or its deepest ancestor; and whether it is the node itself.
    fn find(&self, key: &str) -> (&Node, bool) {
        let mut node = &self.root;
        for part in key.split(['.', '[']).filter(|part| !part.is_empty()) {
            let child = match &node.data {
                Data::Table(entries) => entries.iter().find(|(name, _)| name == part).map(|(_, child)| child),
                Data::List(items) => match part.strip_suffix(']') {
                    Some(i) => i.parse::<usize>().ok().and_then(|i| items.get(i)),
                    None => items.iter().find(|item| item.is_called(part)),
                },
                _ => None,
            };
            match child {
                Some(child) => node = child,
                None => return (node, false),
            }
        }
        (node, true)
    }
}

/// The schema of a type. It is made once: a path decodes an experiment for each of its settings.
pub fn schema_of<T: JsonSchema + 'static>() -> &'static Value {
    static MADE: OnceLock<Mutex<HashMap<TypeId, &'static Value>>> = OnceLock::new();
    let mut made = MADE.get_or_init(Mutex::default).lock().expect("making a schema does not panic");
    made.entry(TypeId::of::<T>()).or_insert_with(|| {
        let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>();
        Box::leak(Box::new(schema.to_value()))
    })
}

/// The syntax errors, one for each line: later ones on a line follow from the first.
fn syntax_problems(source: &Source, errors: &[toml::de::Error]) -> Vec<Problem> {
    let mut found: Vec<(usize, usize, &str)> = Vec::new();
    found.extend(
        errors.iter().map(|e| (e.span().map_or(0, |s| s.start), e.span().map_or(0, |s| s.end), e.message())),
    );
    found.sort();
    found.dedup_by_key(|(start, ..)| source.line_of(*start));
    let problem = |&(start, end, message): &(usize, usize, &str)| {
        Problem::new("", &Place::File { start, end }, format!("invalid TOML: {message}"))
    };
    found.iter().map(problem).collect()
}

/// The entries of a parsed table, placed in the file or, if given, at an override.
fn entries(table: &DeTable<'_>, set: Option<usize>) -> Vec<(String, Node)> {
    let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let name: &std::borrow::Cow<'_, str> = key.get_ref();
        (name.to_string(), node(value.get_ref(), place(key.span(), set), place(value.span(), set), set))
    };
    table.iter().map(entry).collect()
}

fn place(span: std::ops::Range<usize>, set: Option<usize>) -> Place {
    set.map_or(Place::File { start: span.start, end: span.end }, Place::Override)
}

fn node(value: &DeValue<'_>, key: Place, at: Place, set: Option<usize>) -> Node {
    let data = match value {
        DeValue::String(text) => Data::Text(text.to_string()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Data::Integer(number),
            Err(_) => Data::Huge(digits.to_string()),
        },
        DeValue::Float(digits) => Data::Float(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Data::Flag(*flag),
        DeValue::Datetime(_) => Data::Date,
        DeValue::Array(items) => Data::List(items.iter().map(|item| element(item, set)).collect()),
        DeValue::Table(table) => Data::Table(entries(table, set)),
    };
    Node { key, place: at, touched: set, data }
}

fn element(item: &toml::Spanned<DeValue<'_>>, set: Option<usize>) -> Node {
    let at = place(item.span(), set);
    node(item.get_ref(), at.clone(), at, set)
}

impl Node {
    /// Puts `value` at `path`, making the tables on the way.
    fn set(&mut self, path: &[String], value: Node) {
        let Some((name, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        self.touched = value.touched;
        if let Data::List(items) = &mut self.data
            && let Some(item) = items.iter_mut().find(|item| item.is_called(name))
        {
            return item.set(rest, value);
        }
        if !matches!(self.data, Data::Table(_)) {
            *self = value.empty_table();
        }
        if let Data::Table(entries) = &mut self.data {
            let at = entries.iter().position(|(key, _)| key == name).unwrap_or(entries.len());
            if at == entries.len() {
                entries.push((name.clone(), value.empty_table()));
            }
            entries[at].1.set(rest, value);
        }
    }

    /// Whether it is a table with this name: one of a list of them is known by it.
    fn is_called(&self, name: &str) -> bool {
        let Data::Table(entries) = &self.data else { return false };
        let named = |(key, node): &(String, Node)| {
            key == "name" && matches!(&node.data, Data::Text(text) if text == name)
        };
        entries.iter().any(named)
    }

    /// An empty table in the place of this value.
    fn empty_table(&self) -> Node {
        Node { data: Data::Table(Vec::new()), ..self.clone() }
    }
}

/// The key path and the raw value of a `key.path=value` argument. An `=` within a quoted key does not count.
fn split_override(set: &str) -> Option<(Vec<String>, &str)> {
    let cuts = set.match_indices('=').take(8);
    cuts.filter_map(|(at, _)| Some((key_path(&set[..at])?, &set[at + 1..]))).next()
}

/// The parts of a dotted TOML key.
fn key_path(key: &str) -> Option<Vec<String>> {
    let line = format!("{key} = 0");
    if key.contains(['\n', '\r']) {
        return None;
    }
    let table = DeTable::parse(&line).ok()?;
    let mut path = Vec::new();
    let mut level = table.get_ref();
    while let Some((name, value)) = level.iter().next() {
        path.push(name.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(next) => level = next,
            _ => return Some(path),
        }
    }
    None
}

/// The value of an override: TOML if it reads as such, else a bare string.
fn override_node(value: &str, index: usize) -> Node {
    let at = Place::Override(index);
    match DeValue::parse(value.trim()) {
        Ok(parsed) => node(parsed.get_ref(), at.clone(), at, Some(index)),
        Err(_) => Node {
            key: at.clone(),
            place: at,
            touched: Some(index),
            data: Data::Text(value.trim().to_owned()),
        },
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
