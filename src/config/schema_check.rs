//! The walk of a document's tree against a JSON schema: all mistakes in one go, and the value for serde.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::document::{Data, Node};
use super::nearest::nearest;
use super::problem::{Problem, shown};

/// Tables deeper than this are not searched for the home of a misplaced key.
const HOME_DEPTH: usize = 4;
/// References followed from one schema before it counts as circular.
const MAX_LAYERS: usize = 32;
/// The schema that allows everything.
static ANYTHING: Value = Value::Bool(true);

/// The tree as a TOML value, integers turned into floats where the schema says number; or all that is wrong.
pub(super) fn check(schema: &Value, root: &Node) -> Result<toml::Value, Vec<Problem>> {
    let mut checker = Checker { schema, problems: Vec::new(), homes: OnceCell::new() };
    let value = checker.node(root, schema, "");
    match value {
        Some(value) if checker.problems.is_empty() => Ok(value),
        _ => Err(checker.problems),
    }
}

/// The entries of a table of the document.
type Entries = [(String, Node)];

/// The walk with what it has found so far.
struct Checker<'s> {
    schema: &'s Value,
    problems: Vec<Problem>,
    /// The tables in which each key name of the schema is known, made on first use.
    homes: OnceCell<HashMap<&'s str, Vec<String>>>,
}

/// A schema with what it refers to: the first layer that has a keyword decides, bounds hold together.
#[derive(Default)]
struct View<'s> {
    layers: Vec<&'s Map<String, Value>>,
}

/// One form that a value may take.
enum Form<'s> {
    /// Exactly this string: a unit variant.
    Word(&'s str),
    /// A table with this single key: a variant with content.
    Variant(&'s str, &'s Value),
    /// Anything of a plain type.
    Plain(View<'s>),
}

impl<'s> View<'s> {
    fn get(&self, keyword: &str) -> Option<&'s Value> {
        self.layers.iter().find_map(|layer| layer.get(keyword))
    }

    fn list(&self, keyword: &str) -> &'s [Value] {
        self.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn properties(&self) -> Option<&'s Map<String, Value>> {
        self.get("properties").and_then(Value::as_object)
    }

    fn required(&self) -> impl Iterator<Item = &'s str> {
        self.list("required").iter().filter_map(Value::as_str)
    }

    fn count(&self, keyword: &str) -> Option<u64> {
        self.get(keyword).and_then(Value::as_u64)
    }

    /// The schemas of a tuple's elements.
    fn tuple(&self) -> Option<&'s [Value]> {
        let items = self.get("prefixItems").or_else(|| self.get("items"));
        items.and_then(Value::as_array).map(Vec::as_slice)
    }

    /// Whether a JSON type is among those named; a schema without a type allows each.
    fn allows(&self, name: &str) -> bool {
        match self.get("type") {
            Some(Value::String(only)) => only == name,
            Some(Value::Array(types)) => types.iter().any(|t| t == name),
            _ => true,
        }
    }

    fn is_null(&self) -> bool {
        self.get("type").is_some_and(|t| t == "null")
    }

    fn accepts(&self, data: &Data) -> bool {
        match data {
            Data::Text(_) => self.allows("string"),
            Data::Integer(_) => self.allows("integer") || self.allows("number"),
            Data::Float(_) => self.allows("number"),
            Data::Flag(_) => self.allows("boolean"),
            Data::List(_) => self.allows("array"),
            Data::Table(_) => self.allows("object"),
            Data::Huge(_) | Data::Date => false,
        }
    }

    /// The variant that this schema describes, if it is one of an externally tagged enum.
    fn variant(&self) -> Option<Form<'s>> {
        let (name, content) = self.properties().filter(|p| p.len() == 1)?.iter().next()?;
        let closed = self.get("additionalProperties") == Some(&Value::Bool(false));
        let sole = self.required().eq([name.as_str()]) && content.get("const").is_none();
        (closed && sole).then_some(Form::Variant(name, content))
    }
}

impl<'s> Checker<'s> {
    /// A schema with its references laid open.
    fn view(&self, schema: &'s Value) -> View<'s> {
        let mut view = View::default();
        let mut open = vec![schema];
        while let Some(next) = open.pop() {
            let Some(layer) = next.as_object().filter(|_| view.layers.len() < MAX_LAYERS) else {
                continue;
            };
            view.layers.push(layer);
            let target = layer.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#'));
            open.extend(target.and_then(|path| self.schema.pointer(path)));
            open.extend(layer.get("allOf").and_then(Value::as_array).into_iter().flatten().rev());
        }
        view
    }

    /// All forms that a schema allows, nested alternatives included.
    fn forms(&self, schema: &'s Value) -> Vec<Form<'s>> {
        let mut forms = Vec::new();
        self.collect_forms(schema, false, 0, &mut forms);
        forms
    }

    fn collect_forms(&self, schema: &'s Value, tagged: bool, depth: usize, forms: &mut Vec<Form<'s>>) {
        let view = self.view(schema);
        let [one_of, any_of] = ["oneOf", "anyOf"].map(|keyword| view.list(keyword));
        let words: Vec<&str> =
            view.get("const").into_iter().chain(view.list("enum")).filter_map(Value::as_str).collect();
        if !one_of.is_empty() && depth < MAX_LAYERS {
            one_of.iter().for_each(|branch| self.collect_forms(branch, true, depth + 1, forms));
        } else if !any_of.is_empty() && depth < MAX_LAYERS {
            any_of.iter().for_each(|branch| self.collect_forms(branch, false, depth + 1, forms));
        } else if !words.is_empty() {
            forms.extend(words.into_iter().map(Form::Word));
        } else if !view.is_null() {
            forms.push(if tagged { view.variant() } else { None }.unwrap_or(Form::Plain(view)));
        }
    }

    fn report(&mut self, node: &Node, path: &str, message: String) {
        self.problems.push(Problem::new(path, &node.place, message));
    }

    fn node(&mut self, node: &Node, schema: &'s Value, path: &str) -> Option<toml::Value> {
        if let Data::Huge(digits) = &node.data {
            let range = "between -9223372036854775808 and 9223372036854775807";
            self.report(node, path, format!("`{path}` must be a number {range}, not {}", shown(digits)));
            return None;
        }
        let forms = self.forms(schema);
        let fits = |form: &Form| matches!(form, Form::Plain(view) if view.accepts(&node.data));
        let plain = forms.iter().any(fits);
        match &node.data {
            Data::Text(word) if !plain && has_names(&forms) => self.word(node, word, &forms, path),
            Data::Table(entries) if is_tagged(&forms, entries, plain) => {
                self.variants(node, entries, &forms, path)
            }
            _ if plain => self.best(node, &forms, path),
            _ => {
                let is = describe(&node.data);
                // A column whose name is a number, say.
                let number = matches!(node.data, Data::Integer(_) | Data::Float(_));
                let text = matches!(&forms[..], [Form::Plain(view)] if view.allows("string"));
                let hint =
                    if number && text { format!("; in quotes, \"{is}\", it is one") } else { String::new() };
                self.report(node, path, format!("`{path}` must be {}, not {is}{hint}", self.name(&forms)));
                None
            }
        }
    }

    /// Checks against each plain form of the value's type, and keeps the result with the fewest problems.
    fn best(&mut self, node: &Node, forms: &[Form<'s>], path: &str) -> Option<toml::Value> {
        let start = self.problems.len();
        let mut best: Option<(Vec<Problem>, Option<toml::Value>)> = None;
        for form in forms {
            let Form::Plain(view) = form else { continue };
            if !view.accepts(&node.data) {
                continue;
            }
            let value = self.plain(node, view, path);
            let found = self.problems.split_off(start);
            if best.as_ref().is_none_or(|(fewest, _)| found.len() < fewest.len()) {
                best = Some((found, value));
            }
        }
        let (problems, value) = best?;
        self.problems.extend(problems);
        value
    }

    fn plain(&mut self, node: &Node, view: &View<'s>, path: &str) -> Option<toml::Value> {
        match &node.data {
            Data::Text(text) => Some(toml::Value::String(text.clone())),
            Data::Flag(flag) => Some(toml::Value::Boolean(*flag)),
            Data::Integer(number) => {
                self.range(node, *number as f64, view, path)?;
                let kept = view.allows("integer");
                Some(if kept { toml::Value::Integer(*number) } else { toml::Value::Float(*number as f64) })
            }
            Data::Float(number) => {
                self.range(node, *number, view, path)?;
                Some(toml::Value::Float(*number))
            }
            Data::List(items) => self.items(node, items, view, path),
            Data::Table(entries) => self.table(node, entries, view, path),
            Data::Huge(_) | Data::Date => None,
        }
    }

    /// Reports a number that is not finite or out of range.
    fn range(&mut self, node: &Node, number: f64, view: &View<'s>, path: &str) -> Option<()> {
        let declared = Bounds::declared(view);
        let noun = match (number.is_finite(), view.allows("number")) {
            (false, _) => "a finite number",
            (true, true) => "a number",
            (true, false) => "an integer",
        };
        let bounds = if declared.contain(number) { declared.within_format(view) } else { declared };
        if number.is_finite() && bounds.contain(number) {
            return Some(());
        }
        self.report(node, path, format!("`{path}` must be {noun}{bounds}, not {}", describe(&node.data)));
        None
    }

    fn items(&mut self, node: &Node, items: &[Node], view: &View<'s>, path: &str) -> Option<toml::Value> {
        let count = items.len() as u64;
        let few = view.count("minItems").is_some_and(|least| count < least);
        if few || view.count("maxItems").is_some_and(|most| count > most) {
            let (wanted, noun) = (self.name_plain(view), if count == 1 { "element" } else { "elements" });
            self.report(node, path, format!("`{path}` must be {wanted}, not one of {count} {noun}"));
            return None;
        }
        let each = view.get("items").filter(|items| !items.is_array()).unwrap_or(&ANYTHING);
        let tuple = view.tuple().unwrap_or(&[]);
        let mut list = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            list.extend(self.node(item, tuple.get(i).unwrap_or(each), &format!("{path}[{i}]")));
        }
        Some(toml::Value::Array(list))
    }

    fn table(&mut self, node: &Node, entries: &Entries, view: &View<'s>, path: &str) -> Option<toml::Value> {
        let others = view.get("additionalProperties").unwrap_or(&ANYTHING);
        let mut table = toml::Table::new();
        let mut unknown = Vec::new();
        for (key, child) in entries {
            let schema = view.properties().and_then(|known| known.get(key)).unwrap_or(others);
            if schema == &Value::Bool(false) {
                unknown.push((key.as_str(), child));
            } else if let Some(value) = self.node(child, schema, &join(path, key)) {
                table.insert(key.clone(), value);
            }
        }
        let written = |name: &str| entries.iter().any(|(key, _)| key == name);
        let meant = self.unknown_keys(&unknown, written, view, path);
        for name in view.required().filter(|name| !written(name) && !meant.contains(name)) {
            self.missing(node, view, path, name);
        }
        Some(toml::Value::Table(table))
    }

    /// Reports unknown keys, and returns the known ones that were probably meant.
    fn unknown_keys(
        &mut self,
        unknown: &[(&str, &Node)],
        written: impl Fn(&str) -> bool,
        view: &View<'s>,
        path: &str,
    ) -> Vec<&'s str> {
        let known: Vec<&str> =
            view.properties().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let free: Vec<&str> = known.iter().copied().filter(|name| !written(name)).collect();
        let mut meant = Vec::new();
        for (key, child) in unknown {
            let hint = nearest(key, free.iter().copied()).or_else(|| nearest(key, known.iter().copied()));
            self.unknown(child, path, key, hint, "");
            meant.extend(hint);
        }
        meant
    }

    fn unknown(&mut self, child: &Node, path: &str, key: &str, hint: Option<&str>, more: &str) {
        let full = join(path, key);
        let hint = hint.map(|name| format!("; did you mean `{}`?", quoted(name))).unwrap_or_default();
        let mut problem =
            Problem::new(&full, &child.key, format!("unknown key `{}`{hint}{more}", shown(&full)));
        problem.help = self.home(path, key);
        self.problems.push(problem);
    }

    fn missing(&mut self, node: &Node, view: &View<'s>, path: &str, name: &str) {
        let full = join(path, name);
        let table =
            if path.is_empty() { "at the top of the file".to_owned() } else { format!("in [{path}]") };
        let mut problem = Problem::new(&full, &node.place, format!("missing key `{full}` {table}"));
        let schema = view.properties().and_then(|known| known.get(name));
        let text = schema.and_then(|schema| self.view(schema).get("description")).and_then(Value::as_str);
        // A choice is hard to guess; a number or a text is what the sentence says it is.
        let forms = schema.map(|schema| self.forms(schema)).unwrap_or_default();
        let is_choice = words(&forms).count() + variants(&forms).count() > 1;
        let choice = is_choice.then(|| format!("It must be {}.", self.name(&forms)));
        let help = [text.map(first_sentence), choice].into_iter().flatten().collect::<Vec<_>>().join(" ");
        problem.help = Some(help).filter(|help| !help.is_empty());
        self.problems.push(problem);
    }

    /// A string where names are wanted.
    fn word(&mut self, node: &Node, word: &str, forms: &[Form<'s>], path: &str) -> Option<toml::Value> {
        if words(forms).any(|name| name == word) {
            return Some(toml::Value::String(word.to_owned()));
        }
        let message = match variants(forms).find(|(name, _)| *name == word) {
            Some((name, _)) => {
                let key = path.rsplit('.').next().unwrap_or(path);
                let table = format!("{} = {{ ... }}", quoted(name));
                format!("`{path}` must give `{name}` as a table, `{table}`: write `{key} = {{ {table} }}`")
            }
            None => {
                let names = words(forms).chain(variants(forms).map(|(name, _)| name));
                let hint = nearest(word, names).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
                format!("`{path}` must be {}, not {}{hint}", self.name(forms), describe(&node.data))
            }
        };
        self.report(node, path, message);
        None
    }

    /// A table that names one variant of an enum.
    fn variants(
        &mut self,
        node: &Node,
        entries: &Entries,
        forms: &[Form<'s>],
        path: &str,
    ) -> Option<toml::Value> {
        let mut chosen: Vec<(&str, &Node, &'s Value)> = Vec::new();
        for (key, child) in entries {
            match variants(forms).find(|(name, _)| name == key) {
                Some((_, content)) => chosen.push((key, child, content)),
                None => self.no_variant(child, path, key, forms),
            }
        }
        if let Some(last) = chosen.iter().map(|(_, child, _)| child.touched).max().filter(Option::is_some) {
            chosen.retain(|(_, child, _)| child.touched == last);
        }
        if let [(key, child, content)] = chosen[..] {
            let value = self.node(child, content, &join(path, key))?;
            return Some(toml::Value::Table([(key.to_owned(), value)].into_iter().collect()));
        }
        if let Some((_, second, _)) = chosen.get(1) {
            let names = listed(chosen.iter().map(|(name, ..)| *name), " and ");
            let message = format!("`{path}` must have one key only, but has {names}");
            self.problems.push(Problem::new(path, &second.key, message));
        } else if entries.is_empty() {
            let names = listed(variants(forms).map(|(name, _)| name), " or ");
            self.report(node, path, format!("missing key in [{path}]: it needs {names}"));
        }
        None
    }

    /// A key that is no variant with content.
    fn no_variant(&mut self, child: &Node, path: &str, key: &str, forms: &[Form<'s>]) {
        if words(forms).any(|name| name == key) {
            let (full, own) = (join(path, key), path.rsplit('.').next().unwrap_or(path));
            let message = format!("`{full}` takes no table: write `{own} = \"{key}\"`");
            self.problems.push(Problem::new(full, &child.key, message));
            return;
        }
        let names = || variants(forms).map(|(name, _)| name);
        let choice = format!(" (one of {})", listed(names(), ", "));
        self.unknown(child, path, key, nearest(key, names()), &choice);
    }

    /// Says in which other tables a key is known.
    fn home(&self, path: &str, key: &str) -> Option<String> {
        let homes = self.homes.get_or_init(|| {
            let mut homes = HashMap::new();
            self.collect_homes(self.schema, "", 0, &mut homes);
            homes
        });
        let others = homes.get(key)?.iter().filter(|home| *home != path).take(3);
        let named = |home: &String| match home.as_str() {
            "" => "at the top of the file, before the first [table]".to_owned(),
            home => format!("in [{home}]"),
        };
        let named: Vec<String> = others.map(named).collect();
        (!named.is_empty()).then(|| format!("`{}` belongs {}", quoted(key), named.join(" or ")))
    }

    fn collect_homes(
        &self,
        schema: &'s Value,
        path: &str,
        depth: usize,
        homes: &mut HashMap<&'s str, Vec<String>>,
    ) {
        if depth > HOME_DEPTH {
            return;
        }
        let mut visit = |name: &'s str, content: &'s Value| {
            let tables = homes.entry(name).or_default();
            if !tables.iter().any(|known| known == path) {
                tables.push(path.to_owned());
            }
            self.collect_homes(content, &join(path, name), depth + 1, homes);
        };
        for form in self.forms(schema) {
            match form {
                Form::Word(_) => {}
                Form::Variant(name, content) => visit(name, content),
                Form::Plain(view) => view.properties().into_iter().flatten().for_each(|(k, v)| visit(k, v)),
            }
        }
    }

    /// All forms in words.
    fn name(&self, forms: &[Form<'s>]) -> String {
        let plain =
            forms.iter().filter_map(|form| if let Form::Plain(view) = form { Some(view) } else { None });
        let mut names: Vec<String> = plain.map(|view| self.name_plain(view)).collect();
        let quoted: Vec<String> = words(forms).map(|word| format!("`{word:?}`")).collect();
        let tables = listed(variants(forms).map(|(name, _)| name), ", ");
        match quoted.len() {
            0 => {}
            1 => names.extend(quoted),
            _ => names.push(format!("one of {}", quoted.join(", "))),
        }
        match variants(forms).count() {
            0 => {}
            1 => names.push(format!("a table with the key {tables}")),
            _ => names.push(format!("a table with one of the keys {tables}")),
        }
        names.dedup();
        names.join(" or ")
    }

    fn name_plain(&self, view: &View<'s>) -> String {
        let mut names = Vec::new();
        if view.allows("number") {
            names.push(format!("a number{}", Bounds::declared(view)));
        } else if view.allows("integer") {
            names.push(format!("an integer{}", Bounds::declared(view)));
        }
        if view.allows("string") {
            names.push("a string".to_owned());
        }
        if view.allows("boolean") {
            names.push("true or false".to_owned());
        }
        if view.allows("array") {
            names.push(self.name_list(view));
        }
        if view.allows("object") {
            names.push("a table".to_owned());
        }
        if view.get("type").is_none() { "a plain value".to_owned() } else { names.join(" or ") }
    }

    fn name_list(&self, view: &View<'s>) -> String {
        let (least, most) = (view.count("minItems").filter(|n| *n > 0), view.count("maxItems"));
        let (count, last) = match (least, most) {
            (Some(a), Some(b)) if a == b => (format!("{a} "), b),
            (Some(a), Some(b)) => (format!("{a} to {b} "), b),
            (Some(a), None) => (format!("at least {a} "), a),
            (None, Some(b)) => (format!("at most {b} "), b),
            (None, None) => (String::new(), 0),
        };
        let noun = self.item_noun(view.get("items"));
        format!("a list of {count}{noun}{}", if last == 1 { "" } else { "s" })
    }

    /// What the items of a list are called.
    fn item_noun(&self, items: Option<&'s Value>) -> &'static str {
        let forms =
            items.filter(|items| items.is_object()).map(|items| self.forms(items)).unwrap_or_default();
        let kinds = [("number", "number"), ("integer", "integer"), ("string", "string"), ("array", "list")];
        match &forms[..] {
            [Form::Plain(view)] if view.get("type").is_some() => {
                kinds.iter().find(|(kind, _)| view.allows(kind)).map_or("value", |(_, noun)| noun)
            }
            _ if !forms.is_empty() && words(&forms).count() == forms.len() => "name",
            _ => "value",
        }
    }
}

/// The limits of a number, each with whether it is excluded. Displays as what follows "a number".
#[derive(Clone, Copy, Default)]
struct Bounds {
    low: Option<(f64, bool)>,
    high: Option<(f64, bool)>,
}

impl Bounds {
    /// What the schema's keywords say, the narrowest of all layers.
    fn declared(view: &View<'_>) -> Bounds {
        let mut bounds = Bounds::default();
        for layer in &view.layers {
            let number = |keyword: &str| layer.get(keyword).and_then(Value::as_f64);
            for (keyword, strict) in [("minimum", false), ("exclusiveMinimum", true)] {
                bounds.raise(number(keyword).map(|limit| (limit, strict)));
            }
            for (keyword, strict) in [("maximum", false), ("exclusiveMaximum", true)] {
                bounds.lower(number(keyword).map(|limit| (limit, strict)));
            }
        }
        bounds
    }

    /// The same, narrowed to what the Rust type can hold.
    fn within_format(mut self, view: &View<'_>) -> Bounds {
        let (low, high) = match view.get("format").and_then(Value::as_str) {
            Some("int8") => (f64::from(i8::MIN), f64::from(i8::MAX)),
            Some("int16") => (f64::from(i16::MIN), f64::from(i16::MAX)),
            Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
            Some("uint8") => (0.0, f64::from(u8::MAX)),
            Some("uint16") => (0.0, f64::from(u16::MAX)),
            Some("uint32") => (0.0, f64::from(u32::MAX)),
            Some("float") => (f64::from(f32::MIN), f64::from(f32::MAX)),
            _ => return self,
        };
        self.raise(Some((low, false)));
        self.lower(Some((high, false)));
        self
    }

    fn raise(&mut self, limit: Option<(f64, bool)>) {
        let narrower = |new: (f64, bool), old: (f64, bool)| new.0 > old.0 || (new.0 == old.0 && new.1);
        self.low = limit.filter(|new| self.low.is_none_or(|old| narrower(*new, old))).or(self.low);
    }

    fn lower(&mut self, limit: Option<(f64, bool)>) {
        let narrower = |new: (f64, bool), old: (f64, bool)| new.0 < old.0 || (new.0 == old.0 && new.1);
        self.high = limit.filter(|new| self.high.is_none_or(|old| narrower(*new, old))).or(self.high);
    }

    fn contain(&self, number: f64) -> bool {
        let above = self.low.is_none_or(|(limit, strict)| number > limit || (!strict && number == limit));
        above && self.high.is_none_or(|(limit, strict)| number < limit || (!strict && number == limit))
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.low, self.high) {
            (None, None) => Ok(()),
            (Some((a, false)), None) => write!(f, " of at least {a}"),
            (Some((a, true)), None) => write!(f, " greater than {a}"),
            (None, Some((b, false))) => write!(f, " of at most {b}"),
            (None, Some((b, true))) => write!(f, " less than {b}"),
            (Some((a, false)), Some((b, false))) => write!(f, " between {a} and {b}"),
            (Some((a, true)), Some((b, true))) => write!(f, " strictly between {a} and {b}"),
            (Some((a, true)), Some((b, false))) => write!(f, " greater than {a} and at most {b}"),
            (Some((a, false)), Some((b, true))) => write!(f, " of at least {a} and less than {b}"),
        }
    }
}

fn words<'a, 's>(forms: &'a [Form<'s>]) -> impl Iterator<Item = &'s str> + use<'a, 's> {
    forms.iter().filter_map(|form| if let Form::Word(word) = form { Some(*word) } else { None })
}

fn variants<'a, 's>(forms: &'a [Form<'s>]) -> impl Iterator<Item = (&'s str, &'s Value)> + use<'a, 's> {
    forms.iter().filter_map(|form| {
        if let Form::Variant(name, content) = form { Some((*name, *content)) } else { None }
    })
}

fn has_names(forms: &[Form<'_>]) -> bool {
    forms.iter().any(|form| !matches!(form, Form::Plain(_)))
}

/// Whether a table is to be read as a variant, and not as a plain table that is allowed as well.
fn is_tagged(forms: &[Form<'_>], entries: &Entries, plain: bool) -> bool {
    let named = |name: &str| entries.iter().any(|(key, _)| key == name);
    variants(forms).any(|(name, _)| !plain || named(name))
}

/// A key as TOML writes it.
fn quoted(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { key.to_owned() } else { format!("{key:?}") }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { quoted(key) } else { format!("{path}.{}", quoted(key)) }
}

/// Names in backticks.
fn listed<'a>(names: impl Iterator<Item = &'a str>, separator: &str) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(separator)
}

/// A value as messages call it.
fn describe(data: &Data) -> String {
    match data {
        Data::Text(text) => format!("the string \"{}\"", shown(text)),
        Data::Integer(number) => number.to_string(),
        Data::Huge(digits) => shown(digits),
        Data::Float(number) => format!("{number:?}").to_lowercase(),
        Data::Flag(flag) => flag.to_string(),
        Data::Date => "a date or time".to_owned(),
        Data::List(_) => "a list".to_owned(),
        Data::Table(_) => "a table".to_owned(),
    }
}

/// The first sentence of a description, on one line.
fn first_sentence(text: &str) -> String {
    let paragraph =
        text.split("\n\n").next().unwrap_or(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |at| at + 1);
    paragraph[..end].to_owned()
}
