//! Documents that live: docs/config.md is made from the same structs that read experiment files, and what README and
//! docs tell people to type is typed here. `BLESS=1 cargo test --release --test program docs` rewrites docs/config.md.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

const MARKER: &str =
    "<!-- Generated from the config structs: BLESS=1 cargo test --release --test program docs -->\n";

/// The reference: a section per table, a row per key.
struct Reference<'a> {
    schema: &'a Value,
    out: String,
    /// How deep in a value the words are; tables may hold tables like themselves.
    depth: std::cell::Cell<usize>,
}

impl<'a> Reference<'a> {
    /// Follows `$ref`, `allOf` of one and `anyOf` with null.
    fn resolve(&self, node: &'a Value) -> &'a Value {
        if let Some(name) = node["$ref"].as_str() {
            return self.resolve(&self.schema["definitions"][name.trim_start_matches("#/definitions/")]);
        }
        if let Some([one]) = node["allOf"].as_array().map(Vec::as_slice) {
            return self.resolve(one);
        }
        let real: Vec<&Value> =
            node["anyOf"].as_array().into_iter().flatten().filter(|v| v["type"] != "null").collect();
        if let [one] = real[..] { self.resolve(one) } else { node }
    }

    fn describe(node: &Value) -> String {
        node["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
    }

    /// A few words on what a value looks like.
    fn form(&self, node: &'a Value) -> String {
        if self.depth.get() > 3 {
            return "…".into();
        }
        self.depth.set(self.depth.get() + 1);
        let form = self.form_of(self.resolve(node));
        self.depth.set(self.depth.get() - 1);
        form
    }

    fn form_of(&self, node: &'a Value) -> String {
        if let Some(branches) = node["oneOf"].as_array() {
            return branches.iter().map(|b| self.variant(b)).collect::<Vec<_>>().join(" or ");
        }
        if let Some(branches) = node["anyOf"].as_array() {
            let real = branches.iter().filter(|b| b["type"] != "null");
            return real.map(|b| self.form(b)).collect::<Vec<_>>().join(" or ");
        }
        match node["type"].as_str().or_else(|| node["type"][0].as_str()) {
            Some("array") => self.list(node),
            Some("object") if node["additionalProperties"].is_object() => {
                format!("table of {}", self.form(&node["additionalProperties"]))
            }
            Some("object") => "table".into(),
            Some("boolean") => "true or false".into(),
            Some("string") => "string".into(),
            Some(kind) => format!("{kind}{}", Self::range(node)),
            None => "value".into(),
        }
    }

    fn list(&self, node: &'a Value) -> String {
        match node["items"].as_array() {
            Some(items) => format!("[{}]", items.iter().map(|i| self.form(i)).collect::<Vec<_>>().join(", ")),
            None => match node["maxItems"].as_u64() {
                Some(n) => format!("[{}]", vec![self.form(&node["items"]); n as usize].join(", ")),
                None => format!("list of {}", self.form(&node["items"])),
            },
        }
    }

    fn range(node: &Value) -> String {
        let bound = |key: &str, sign: &str| node[key].as_f64().map(|v| format!("{sign} {v}"));
        let bounds = [
            bound("minimum", "≥"),
            bound("exclusiveMinimum", ">"),
            bound("maximum", "≤").filter(|_| node["maximum"].as_f64() < Some(1e9)),
            bound("exclusiveMaximum", "<"),
        ];
        let bounds: Vec<String> = bounds.into_iter().flatten().collect();
        if bounds.is_empty() { String::new() } else { format!(" {}", bounds.join(", ")) }
    }

    /// `"name"` for a word, `{ name = … }` for a table.
    fn variant(&self, branch: &'a Value) -> String {
        let words = branch["enum"].as_array().into_iter().flatten().chain([&branch["const"]]);
        let words: Vec<String> =
            words.filter_map(Value::as_str).map(|word| format!("`\"{word}\"`")).collect();
        match branch["properties"].as_object().and_then(|p| p.iter().next()) {
            Some((name, _)) => format!("`{{ {name} = … }}`"),
            None => words.join(" or "),
        }
    }

    fn table(&mut self, title: &str, node: &'a Value) {
        let node = self.resolve(node);
        let level = "#".repeat(2 + title.matches('.').count().min(3));
        writeln!(self.out, "\n{level} `{title}`\n").unwrap();
        let about = Self::describe(node);
        if !about.is_empty() {
            writeln!(self.out, "{about}\n").unwrap();
        }
        if let Some(branches) = node["oneOf"].as_array() {
            self.variants(title, branches);
        } else if let Some(properties) = node["properties"].as_object() {
            self.properties(title, properties, &node["required"]);
        }
    }

    fn properties(&mut self, title: &str, properties: &'a serde_json::Map<String, Value>, required: &Value) {
        self.out += "| key | value | default | meaning |\n|---|---|---|---|\n";
        let needed = |key: &str| required.as_array().is_some_and(|r| r.iter().any(|k| k == key));
        for (key, node) in properties {
            let default = match &node["default"] {
                _ if needed(key) => "required".to_owned(),
                Value::Null | Value::Object(_) | Value::Array(_) => String::new(),
                value => format!("`{value}`"),
            };
            let meaning = match Self::describe(node) {
                text if text.is_empty() => Self::describe(self.resolve(node)),
                text => text,
            };
            writeln!(self.out, "| `{key}` | {} | {default} | {meaning} |", self.form(node)).unwrap();
        }
        // The model of a stage is one of those above.
        for (key, node) in properties.iter().filter(|(key, _)| title != "stage" || *key != "model") {
            let place = if title == "experiment" { key.clone() } else { format!("{title}.{key}") };
            self.descend(&place, node);
        }
    }

    /// A section of its own for what has keys of its own.
    fn descend(&mut self, place: &str, node: &'a Value) {
        let node = self.resolve(node);
        // A list of tables, each as the others are.
        if node["type"] == "array" && self.resolve(&node["items"])["properties"].is_object() {
            return self.table(place, &node["items"]);
        }
        let tables = |branches: &Vec<Value>| branches.iter().any(|b| b["properties"].is_object());
        if node["properties"].is_object() || node["oneOf"].as_array().is_some_and(tables) {
            self.table(place, node);
        } else if node["additionalProperties"].is_object() {
            self.table(&format!("{place}.<block>"), &node["additionalProperties"]);
        }
    }

    fn variants(&mut self, title: &str, branches: &'a [Value]) {
        self.out += "| one of | value | meaning |\n|---|---|---|\n";
        for branch in branches {
            let form = match branch["properties"].as_object().and_then(|p| p.iter().next()) {
                Some((_, inner)) => self.form(inner),
                None => String::new(),
            };
            writeln!(self.out, "| {} | {form} | {} |", self.variant(branch), Self::describe(branch)).unwrap();
        }
        for (name, inner) in branches.iter().filter_map(|b| b["properties"].as_object()?.iter().next()) {
            let keys = &self.resolve(inner)["properties"];
            if keys.as_object().is_some_and(|k| !k.is_empty()) {
                self.table(&format!("{title}.{name}"), inner);
            }
        }
    }
}

#[test]
fn the_config_reference_is_current() {
    let schema = npl::experiment::schema();
    let mut reference = Reference { schema, out: String::new(), depth: std::cell::Cell::default() };
    reference.table("experiment", schema);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/config.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (intro, old) = text.split_once(MARKER).expect("docs/config.md has the marker line");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{intro}{MARKER}{}", reference.out)).unwrap();
    } else {
        assert!(
            old == reference.out,
            "docs/config.md is out of date: run BLESS=1 cargo test --release --test program docs"
        );
    }
}

/// Every experiment file that the project ships passes the checks, up to data that are not here.
#[test]
fn every_shipped_experiment_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for folder in ["configs", "configs/starters"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let document = npl::config::Document::parse("x.toml", &text, &[]).unwrap();
            document
                .decode::<npl::experiment::Experiment>()
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen} experiments");
}

/// Links between documents lead somewhere.
#[test]
fn every_relative_link_leads_to_a_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in [
        "README.md",
        "docs/architecture.md",
        "docs/calibration.md",
        "docs/columns.md",
        "docs/comparison.md",
        "docs/config.md",
        "docs/draws.md",
        "docs/losses.md",
        "docs/methods.md",
        "docs/models.md",
        "docs/performance.md",
        "docs/plots.md",
        "docs/plotting.md",
        "docs/prediction.md",
        "docs/relabelling.md",
        "docs/reliability.md",
        "docs/reproduction.md",
        "docs/sampling.md",
        "docs/stages.md",
        "docs/subsampling.md",
        "docs/summary.md",
        "docs/scale.md",
        "docs/tutorial.md",
        "scripts/README.md",
    ] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let folder = root.join(page).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{page}: {link}");
            }
        }
    }
}
