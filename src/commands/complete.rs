//! What may come next on a command line: the scripts of `npl completions` ask for it whenever the key is pressed, so that models,
//! keys of experiments, files and runs are known as they are.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, Command, CommandFactory};
use npl::model::STARTERS;
use npl::store;
use serde_json::Value;

use super::print;
use crate::cli::{Cli, Shell};

/// The script that makes a shell ask `npl complete`; for shells that cannot, a list of commands and options.
pub fn script(shell: Shell) -> Result<()> {
    let fixed = |shell: clap_complete::Shell| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "npl", &mut script);
        print(&script)
    };
    match shell {
        Shell::Bash => print(include_bytes!("completions/npl.bash")),
        Shell::Zsh => print(include_bytes!("completions/npl.zsh")),
        Shell::Fish => print(include_bytes!("completions/npl.fish")),
        Shell::Elvish => fixed(clap_complete::Shell::Elvish),
        Shell::Powershell => fixed(clap_complete::Shell::PowerShell),
    }
}

/// `npl complete -- WORD...`: what the last word may become, a line each.
pub fn complete(words: &[String]) -> Result<()> {
    let found = candidates(words);
    print(found.iter().map(|word| format!("{word}\n")).collect::<String>().as_bytes())
}

fn candidates(words: &[String]) -> Vec<String> {
    let mut cli = Cli::command();
    cli.build();
    let (last, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let Some((name, rest)) = before.split_first() else {
        let names = cli.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name().to_owned());
        return beginning(names.chain(flags(&cli)), last);
    };
    let Some(command) = cli.find_subcommand(name) else { return Vec::new() };
    let option = |word: &str| {
        let long = word.strip_prefix("--");
        command.get_arguments().find(|arg| arg.get_long().is_some() && arg.get_long() == long)
    };
    // The value of an option, after a blank or after `=`.
    let takes = |arg: &&Arg| arg.get_action().takes_values();
    if let Some(arg) = rest.last().and_then(|word| option(word)).filter(takes) {
        return of_argument(arg, last);
    }
    if let Some((head, value)) = last.split_once('=')
        && let Some(arg) = option(head).filter(takes)
    {
        let whole = |word: String| format!("{head}={word}");
        return of_argument(arg, value).into_iter().map(whole).collect();
    }
    if last.starts_with('-') {
        return beginning(flags(command), last);
    }
    let mut given = 0;
    let mut words = rest.iter().peekable();
    while let Some(word) = words.next() {
        match option(word) {
            Some(arg) if takes(&arg) => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => given += 1,
        }
    }
    let positionals: Vec<&Arg> = command.get_positionals().collect();
    // The last one may be given several times.
    let arg = positionals
        .get(given)
        .or(positionals.last().filter(|arg| arg.get_num_args().is_some_and(|count| count.max_values() > 1)));
    arg.map_or(Vec::new(), |arg| of_argument(arg, last))
}

fn flags(command: &Command) -> impl Iterator<Item = String> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(|arg| arg.get_long().map(|long| format!("--{long}")))
}

fn beginning(words: impl IntoIterator<Item = String>, head: &str) -> Vec<String> {
    words.into_iter().filter(|word| word.starts_with(head)).collect()
}

/// What the value of an argument may be.
fn of_argument(arg: &Arg, head: &str) -> Vec<String> {
    let known = arg.get_possible_values();
    if !known.is_empty() {
        return beginning(known.iter().map(|value| value.get_name().to_owned()), head);
    }
    match arg.get_id().as_str() {
        "model" => beginning(STARTERS.iter().map(|(name, _)| (*name).to_owned()), head),
        "set" => keys(npl::experiment::schema(), head),
        "config" => files(head, &|path| path.extension().is_some_and(|e| e == "toml")),
        "run" | "runs" | "shards" => runs(head),
        "data_dir" | "cache" => files(head, &|_| false),
        "new" | "out" | "data" => files(head, &|_| true),
        _ => Vec::new(),
    }
}

/// Finished runs, those of `runs/` where nothing is typed yet; and folders on the way to some.
fn runs(head: &str) -> Vec<String> {
    let head = if head.is_empty() && Path::new("runs").is_dir() { "runs/" } else { head };
    let finished = |folder: &String| store::is_finished(Path::new(folder.trim_end_matches('/')));
    let folders = files(head, &|_| false);
    folders.into_iter().map(|f| if finished(&f) { f.trim_end_matches('/').to_owned() } else { f }).collect()
}

/// Files that are wanted and folders, which end with `/`, that begin so.
fn files(head: &str, wanted: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let (folder, start) =
        head.rsplit_once('/').map_or(("", head), |(f, start)| (&head[..f.len() + 1], start));
    let place = if folder.is_empty() { PathBuf::from(".") } else { PathBuf::from(folder) };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.to_owned();
            let hidden = name.starts_with('.') && !start.starts_with('.');
            if hidden || !name.starts_with(start) || name.contains(char::is_control) {
                return None;
            }
            match path.is_dir() {
                true => Some(format!("{folder}{name}/")),
                false => wanted(&path).then(|| format!("{folder}{name}")),
            }
        })
        .collect();
    found.sort();
    found
}

/// Keys of an experiment file, up to the next dot; a key that takes a value ends with `=`, and words that it may have follow.
fn keys(schema: &Value, head: &str) -> Vec<String> {
    let (path, value) = head.split_once('=').map_or((head, None), |(path, value)| (path, Some(value)));
    let mut parts: Vec<&str> = path.split('.').collect();
    let start = if value.is_none() { parts.pop().unwrap_or_default() } else { "" };
    let mut node = schema;
    for part in &parts {
        let Some((_, next)) = children(schema, node).into_iter().find(|(name, _)| name == part) else {
            return Vec::new();
        };
        node = next;
    }
    if let Some(value) = value {
        let whole = |word: String| format!("{path}={word}");
        return beginning(words(schema, node), value).into_iter().map(whole).collect();
    }
    let before: String = parts.iter().map(|part| format!("{part}.")).collect();
    let mut found = Vec::new();
    for (name, child) in children(schema, node).into_iter().filter(|(name, _)| name.starts_with(start)) {
        let has_words = !words(schema, child).is_empty();
        if !children(schema, child).is_empty() {
            found.push(format!("{before}{name}."));
        }
        if children(schema, child).is_empty() || has_words {
            found.push(format!("{before}{name}="));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The branches of a value that may be several things.
fn branches<'a>(schema: &'a Value, node: &'a Value) -> Vec<&'a Value> {
    if let Some(name) = node["$ref"].as_str() {
        let target = &schema["definitions"][name.trim_start_matches("#/definitions/")];
        return branches(schema, target);
    }
    let lists = ["oneOf", "anyOf", "allOf"].iter().filter_map(|key| node[*key].as_array());
    let inner: Vec<&Value> = lists.flatten().flat_map(|branch| branches(schema, branch)).collect();
    if inner.is_empty() { vec![node] } else { [vec![node], inner].concat() }
}

/// The keys of a table, of whatever kind it may be.
fn children<'a>(schema: &'a Value, node: &'a Value) -> Vec<(String, &'a Value)> {
    let tables = branches(schema, node).into_iter().filter_map(|branch| branch["properties"].as_object());
    tables.flat_map(|table| table.iter().map(|(name, child)| (name.clone(), child))).collect()
}

/// The words that a value may be.
fn words(schema: &Value, node: &Value) -> Vec<String> {
    let of_branch = |branch: &Value| -> Vec<String> {
        let listed = branch["enum"].as_array().cloned().unwrap_or_default();
        let flags = if branch["type"] == "boolean" { vec!["true", "false"] } else { Vec::new() };
        let words = listed.iter().chain([&branch["const"]]).filter_map(Value::as_str);
        words.chain(flags).map(str::to_owned).collect()
    };
    branches(schema, node).into_iter().flat_map(of_branch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(words: &[&str]) -> Vec<String> {
        candidates(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn commands_models_and_options_are_known() {
        assert_eq!(after(&["su"]), ["summary"]);
        assert!(after(&["new", ""]).contains(&"gmm".to_owned()));
        assert_eq!(after(&["new", "quantile_"]), ["quantile_regression"]);
        assert_eq!(after(&["run", "x.toml", "--resu"]), ["--resume"]);
        assert_eq!(after(&["completions", "z"]), ["zsh"]);
        assert!(after(&["run", "x.toml", "--simd", ""]).len() > 1);
        assert!(after(&["nothing", ""]).is_empty());
    }

    #[test]
    fn keys_and_their_words_are_known() {
        assert_eq!(after(&["run", "x.toml", "--set", "sampler.max_f"]), ["sampler.max_failed="]);
        assert_eq!(after(&["run", "--set", "see"]), ["seed="]);
        assert!(after(&["run", "--set", "model.log"]).contains(&"model.logistic.".to_owned()));
        assert_eq!(after(&["run", "--set", "method=n"]), ["method=npl", "method=nuts"]);
        assert_eq!(after(&["run", "--set=seed"]), ["--set=seed="]);
        assert!(after(&["run", "--set", "no.such.key"]).is_empty());
    }
}
