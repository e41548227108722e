//! The commands of docs/plotting.md, each as it stands there, where its tool is installed. $NPL_PYTHON stands in for python3.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::Place;

/// A block of commands of the page, and what it needs beside npl: a program, and modules for it.
struct Block {
    needs: Option<(String, Option<String>)>,
    commands: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut needs, mut commands) = (None, None::<String>);
    for line in page.lines() {
        if let Some(words) = line.strip_prefix("<!-- needs ").and_then(|rest| rest.strip_suffix(" -->")) {
            let (program, modules) = words.split_once(' ').unwrap_or((words, ""));
            needs = Some((program.to_owned(), (!modules.is_empty()).then(|| modules.to_owned())));
        } else if line == "```sh" {
            commands = Some(String::new());
        } else if line == "```" {
            blocks.extend(commands.take().map(|commands| Block { needs: needs.take(), commands }));
        } else if let Some(commands) = &mut commands {
            *commands += line;
            *commands += "\n";
        }
    }
    blocks
}

/// A folder with the run's surroundings, and `npl` and `python3` in front of the path.
struct Shell(Place);

impl Shell {
    fn new() -> Shell {
        let place = Place::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in ["configs", "scripts"] {
            fs::create_dir(place.path(folder)).unwrap();
            for entry in fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap) {
                if entry.path().is_file() {
                    fs::copy(entry.path(), place.path(folder).join(entry.file_name())).unwrap();
                }
            }
        }
        let python = std::env::var("NPL_PYTHON").unwrap_or_default();
        for (name, program) in [("npl", env!("CARGO_BIN_EXE_npl")), ("python3", &python)] {
            if !program.is_empty() {
                place.write(&format!("bin/{name}"), format!("#!/bin/sh\nexec '{program}' \"$@\"\n"));
                let made = Command::new("chmod").arg("+x").arg(place.path(&format!("bin/{name}"))).status();
                assert!(made.unwrap().success());
            }
        }
        Shell(place)
    }

    fn run(&self, commands: &str) -> Output {
        let path = format!("{}:{}", self.0.path("bin").display(), std::env::var("PATH").unwrap());
        Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", commands])
            .current_dir(self.0.path("."))
            .env("PATH", path)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("MPLBACKEND", "agg")
            .output()
            .unwrap()
    }

    /// Why a block cannot be run here.
    fn lacks(&self, needs: &(String, Option<String>)) -> Option<String> {
        let succeeds = |commands: &str| self.run(commands).status.success();
        let (program, modules) = needs;
        if !succeeds(&format!("command -v {program}")) {
            return Some(format!("{program} is not installed"));
        }
        let modules = modules.as_ref()?;
        let found = match program.as_str() {
            "Rscript" => succeeds(&format!("Rscript -e 'library({modules})'")),
            _ => succeeds(&format!("{program} -c 'import {modules}'")),
        };
        (!found).then(|| format!("{program} has no {modules}"))
    }
}

#[cfg(unix)]
#[test]
fn the_commands_of_the_page_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/plotting.md");
    let blocks = blocks(&fs::read_to_string(page).unwrap());
    let tools: Vec<&str> = blocks.iter().filter_map(|b| Some(b.needs.as_ref()?.0.as_str())).collect();
    for tool in ["gnuplot", "Rscript", "python3", "duckdb"] {
        assert!(tools.contains(&tool), "the page has commands for {tool}: {tools:?}");
    }
    let shell = Shell::new();
    for block in &blocks {
        if let Some(why) = block.needs.as_ref().and_then(|needs| shell.lacks(needs)) {
            println!("skipped: {why}");
            continue;
        }
        let output = shell.run(&block.commands);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}\n{out}\n{err}", block.commands);
        println!("$ {}{out}{err}", block.commands);
        let written = block.commands.split(['"', '\'', ' ', ';', ')']);
        let pictures = written.filter(|word| [".svg", ".png", ".pdf"].iter().any(|end| word.ends_with(end)));
        let pictures: Vec<&str> = pictures.collect();
        for picture in &pictures {
            let size = fs::metadata(shell.0.path(picture)).map_or(0, |m| m.len());
            assert!(size > 1000, "{picture} has {size} bytes after {}", block.commands);
        }
        assert!(block.needs.is_none() || !out.is_empty() || !pictures.is_empty(), "{}", block.commands);
    }
}
