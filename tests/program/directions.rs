//! Which module knows which: the source is held to the lines that docs/architecture.md says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Graph = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The lines `room -> rooms` of the block that is marked `directions`.
fn declared() -> Graph {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let block =
        page.split("```directions\n").nth(1).expect("a block of directions").split("```").next().unwrap();
    let line = |line: &str| {
        let (from, to) = line.split_once("->").expect("room -> rooms");
        (from.trim().to_owned(), to.split_whitespace().map(str::to_owned).collect())
    };
    block.lines().map(line).collect()
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, into),
            false if path.extension().is_some_and(|e| e == "rs") => into.push(path),
            false => {}
        }
    }
}

/// The modules that a source names after `crate::`, tests and comments aside.
fn named(source: &str) -> BTreeSet<String> {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = code.flat_map(|line| line.split("crate::").skip(1));
    // One name, or several in braces.
    let names = |text: &str| {
        let text = text.strip_prefix('{').map_or(text, |inside| inside.split('}').next().unwrap_or(inside));
        let first = |part: &str| {
            part.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        };
        text.split(", ").map(first).collect::<Vec<String>>()
    };
    let braced = |text: &&str| text.starts_with('{');
    let (several, single): (Vec<&str>, Vec<&str>) = after.partition(braced);
    let single = single.into_iter().filter_map(|text| names(text).into_iter().next());
    several.into_iter().flat_map(names).chain(single).filter(|word| !word.is_empty()).collect()
}

/// What the library does.
fn found() -> Graph {
    let (root, mut paths) = (root().join("src"), Vec::new());
    files(&root, &mut paths);
    let mut graph = Graph::new();
    for path in paths {
        let inside = path.strip_prefix(&root).unwrap();
        let room = inside.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        if matches!(room, "commands" | "cli" | "main" | "lib") || inside.ends_with("document_tests.rs") {
            continue;
        }
        let mut named = named(&fs::read_to_string(&path).unwrap());
        named.remove(room);
        graph.entry(room.to_owned()).or_default().extend(named);
    }
    graph.retain(|_, to| !to.is_empty());
    graph
}

/// Steps of `found` that `declared` does not allow.
fn strays(found: &Graph, declared: &Graph) -> Vec<String> {
    let none = BTreeSet::new();
    let stray = |(from, to): (&String, &BTreeSet<String>)| {
        let allowed = declared.get(from).unwrap_or(&none);
        to.difference(allowed).map(|to| format!("{from} -> {to}")).collect::<Vec<_>>()
    };
    found.iter().flat_map(stray).collect()
}

#[test]
fn modules_know_whom_the_architecture_says_and_no_others() {
    let (found, declared) = (found(), declared());
    assert_eq!(
        strays(&found, &declared),
        Vec::<String>::new(),
        "steps that docs/architecture.md does not know"
    );
    assert_eq!(
        strays(&declared, &found),
        Vec::<String>::new(),
        "docs/architecture.md allows what nobody needs"
    );
}

/// No way leads back, but for an experiment and its method.
#[test]
fn directions_have_no_cycles() {
    let mut graph = declared();
    graph.get_mut("experiment").unwrap().remove("method");
    while !graph.is_empty() {
        let free: Vec<String> = graph
            .iter()
            .filter(|(_, to)| to.iter().all(|t| !graph.contains_key(t)))
            .map(|(from, _)| from.clone())
            .collect();
        assert!(!free.is_empty(), "a cycle among {:?}", graph.keys());
        free.iter().for_each(|room| drop(graph.remove(room)));
    }
}

/// The test above can fail.
#[test]
fn a_step_back_is_noticed() {
    let mut found = found();
    let back = named(
        "//! use crate::run;\nuse crate::{study, data};\nuse crate::study::Study;\n#[cfg(test)]\nmod tests { use crate::run; }",
    );
    assert_eq!(back, BTreeSet::from(["data".to_owned(), "study".to_owned()]));
    found.get_mut("store").unwrap().extend(back);
    assert_eq!(strays(&found, &declared()), ["store -> study"]);
}
