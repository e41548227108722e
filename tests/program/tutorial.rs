//! docs/tutorial.md, typed: its files are written, its commands run in order in one folder, and what they print is what the page
//! says, but for `…`, which stands for anything. `BLESS=1 cargo test --release --test program tutorial` writes what they print now.
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

/// A line as a page can say it: times and sizes are other ones tomorrow, and the last digits on another machine.
fn lasting(line: &str) -> String {
    let until = |mark: &str| line.find(mark).map(|at| line[..at + mark.len()].to_owned() + "…");
    if ["# time", "# memory", "seconds "].iter().any(|head| line.starts_with(head)) {
        return line
            .split(' ')
            .take_while(|word| !word.is_empty())
            .chain(["…"])
            .collect::<Vec<_>>()
            .join(" ");
    }
    if let Some(cut) =
        until("report.html: ").or_else(|| line.contains(" a second)").then(|| until(" in ")).flatten())
    {
        return cut;
    }
    let cell = |cell: &str| match cell.split_once('.') {
        Some((whole, decimals)) if decimals.len() > 8 && decimals.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{whole}.{}…", &decimals[..4])
        }
        _ => cell.to_owned(),
    };
    line.split(',').map(cell).collect::<Vec<_>>().join(",")
}

/// A folder with what the page says there is, and the program on the path.
fn shell(place: &Place, command: &str) -> std::process::Output {
    let program = Path::new(env!("CARGO_BIN_EXE_npl")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", &format!("{command} 2>&1")]).current_dir(place.path("")).env("PATH", path);
    bash.env("NO_COLOR", "1").env("COLUMNS", "80").env_remove("NPL_DATA").env_remove("RAYON_NUM_THREADS");
    bash.stdin(std::process::Stdio::null()).output().unwrap()
}

#[test]
fn every_command_of_the_tutorial_does_what_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/tutorial.md")).unwrap();
    let place = Place::new();
    for file in ["data/treatment.csv", "configs/examples/ipw.toml"] {
        place.write(file, std::fs::read(root.join(file)).unwrap());
    }
    let (mut typed, mut told) = (0, page.clone());
    for (fence, text) in blocks(&page) {
        if let Some((_, file)) = fence.split_once(' ') {
            place.write(file, text);
            continue;
        }
        assert_eq!(fence, "console", "a file has a name, and commands are in a console");
        let mut new = String::new();
        for part in format!("\n{text}").split("\n$ ").skip(1) {
            let (command, expected) = part.split_once('\n').unwrap_or((part, ""));
            let output = shell(&place, command);
            let said = tidy(&String::from_utf8(output.stdout).unwrap());
            let wrong = said.contains("did you mean");
            assert_eq!(output.status.code(), Some(if wrong { 2 } else { 0 }), "{command}\n{said}");
            let expected = tidy(expected);
            let holds = matches(&said, &expected);
            let lasting = said.lines().map(lasting).collect::<Vec<_>>().join("\n");
            assert!(matches(&said, &lasting), "{said}\n{lasting}");
            let shown = if holds { &expected } else { &lasting };
            new += &format!("$ {command}\n{shown}{}", if shown.is_empty() { "" } else { "\n" });
            if std::env::var_os("BLESS").is_none() {
                assert!(holds, "$ {command}\n{said}\n--- the page says\n{expected}");
            }
            typed += 1;
        }
        told = told.replacen(&format!("```console\n{text}"), &format!("```console\n{new}"), 1);
    }
    assert!(typed >= 16, "{typed} commands");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(root.join("docs/tutorial.md"), told).unwrap();
    }
}

#[test]
fn dots_stand_for_anything() {
    assert!(matches("a 12 s b", "a … s b") && matches("x", "…") && matches("", ""));
    assert!(!matches("a 12 s c", "a … s b") && !matches("xy", "x") && !matches("ab", "a…ab"));
}
