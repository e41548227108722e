//! docs/tutorial.md, typed: its files are written, its commands run in order in one folder, and what they print is what the page
//! says, but for `…`, which stands for anything.
#![cfg(unix)]

use std::path::Path;

use crate::support::Place;

/// A block of the page: what its fence says, and its lines.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut parts = page.split("\n```").skip(1);
    while let (Some(block), after) = (parts.next(), parts.next()) {
        let (fence, text) = block.split_once('\n').expect("a fence is a line");
        blocks.push((fence.to_owned(), text.to_owned() + "\n"));
        assert!(after.is_some(), "{fence}: no end");
    }
    blocks
}

/// Whether a text is what a pattern says, where `…` stands for anything.
fn matches(text: &str, pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split('…').collect();
    let Some(mut rest) = text.strip_prefix(parts[0]) else { return false };
    for (i, part) in parts.iter().enumerate().skip(1) {
        rest = match (i == parts.len() - 1, rest.find(part)) {
            (true, _) => return rest.ends_with(part),
            (false, Some(at)) => &rest[at + part.len()..],
            (false, None) => return false,
        };
    }
    rest.is_empty()
}

/// Lines of output, blanks at their ends and empty lines aside.
fn tidy(text: &str) -> String {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_command_of_the_tutorial_does_what_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/tutorial.md")).unwrap();
    let place = Place::new();
    for file in ["data/treatment.csv", "configs/examples/ipw.toml"] {
        place.write(file, std::fs::read(root.join(file)).unwrap());
    }
    let program = Path::new(env!("CARGO_BIN_EXE_npl")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut typed = 0;
    for (fence, text) in blocks(&page) {
        if let Some((_, file)) = fence.split_once(' ') {
            place.write(file, text);
            continue;
        }
        assert_eq!(fence, "console", "a file has a name, and commands are in a console");
        for command in text.split("\n$ ").map(|part| part.strip_prefix("$ ").unwrap_or(part)) {
            let (command, expected) = command.split_once('\n').unwrap_or((command, ""));
            let mut shell = std::process::Command::new("bash");
            shell.args(["-c", &format!("{command} 2>&1")]).current_dir(place.path(""));
            shell.env("PATH", &path).env("NO_COLOR", "1").env("COLUMNS", "80").env_remove("NPL_DATA");
            let output = shell.stdin(std::process::Stdio::null()).output().unwrap();
            let said = tidy(&String::from_utf8(output.stdout).unwrap());
            let wrong = expected.contains("did you mean");
            assert_eq!(output.status.code(), Some(if wrong { 2 } else { 0 }), "{command}\n{said}");
            let expected = tidy(expected);
            assert!(matches(&said, &expected), "$ {command}\n{said}\n--- the page says\n{expected}");
            typed += 1;
        }
    }
    assert!(typed >= 16, "{typed} commands");
}

#[test]
fn dots_stand_for_anything() {
    assert!(matches("a 12 s b", "a … s b") && matches("x", "…") && matches("", ""));
    assert!(!matches("a 12 s c", "a … s b") && !matches("xy", "x") && !matches("ab", "a…ab"));
}
