//! What files of strangers cannot do: write elsewhere, drive a terminal, be a formula of a spreadsheet, or reach a network.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::Place;

/// Names of columns and levels that mean harm.
const NAMES: [&str; 8] = [
    "=HYPERLINK(\"\"http://x\"\")",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "../../etc/passwd",
    "\u{1b}]0;x\u{7}\u{1b}[2J",
    "\u{202e}gpj.exe",
    "<script>alert(1)</script>",
];

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",")
}

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found
}

#[test]
fn names_of_columns_are_nothing_but_names() {
    let place = Place::new();
    let rows: String = (0..12).map(|i| format!("{},{}\n", ["1"; 8].join(","), i % 3)).collect();
    place.write("inner/d.csv", format!("{},y\n{rows}", quoted(&NAMES)));
    let text = "name = \"f\"\nseed = 1\nmodel.mean = {}\nsampler.B = 5\ndata.train = \"d.csv\"\n";
    place.write("inner/e.toml", text);
    let ended = place.npl(&["run", "inner/e.toml", "--data-dir", "inner", "--out", "inner/out"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.assert_decent("run");
    for args in
        [&["summary", "inner/out"][..], &["table", "inner/out", "--format", "csv"], &["samples", "inner/out"]]
    {
        place.ok(args).assert_decent(args[0]);
    }
    #[cfg(feature = "plot")]
    place.ok(&["report", "inner/out"]).assert_decent("report");
    assert_eq!(place.list("."), ["inner"], "something was written outside");
    for (name, bytes) in files(&place.path("inner/out")) {
        if name.contains(".npl-chunks") {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{name} has control characters");
        assert!(!name.ends_with(".html") || !text.contains("<script>alert"), "{name}");
        if name.ends_with(".csv") {
            let begins = |cell: &str| cell.trim_start_matches('"').starts_with(['=', '+', '@']);
            assert!(!text.split([',', '\n']).any(begins), "{name} has a formula:\n{text}");
        }
    }
    let header = place.read("inner/out/samples.csv").lines().next().unwrap().to_owned();
    assert!(
        header.contains("theta.\\u{1b}]0;x\\u{7}\\u{1b}[2J") && header.contains("theta.\\u{202e}gpj.exe"),
        "{header}"
    );
}

#[test]
fn levels_and_classes_are_nothing_but_names() {
    let place = Place::new();
    let row = |i: usize| format!("\"{}\",{}\n", NAMES[i % 8], i % 2);
    place.write("d.csv", format!("c,y\n{}", (0..64).map(row).collect::<String>()));
    let text = "name = \"f\"\nseed = 1\nsampler.B = 5\nmodel.logistic = { penalty = \"ridge\", gamma = 1.0 }\n\
                data = { train = \"d.csv\", target = \"y\", categorical = [\"c\"], dummies = \"keep_all\" }\n";
    place.write("e.toml", text);
    place.ok(&["run", "e.toml"]).assert_decent("run");
    place.ok(&["check", "e.toml"]).assert_decent("check");
    let text = place.read("runs/f/samples.csv");
    assert!(text.contains("beta.c_\\u{202e}gpj") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
}

/// Draws go to the run directory whatever their file is called.
#[test]
fn results_stay_in_their_folder() {
    let place = Place::new();
    let text = "name = \"f\"\nseed = 1\nmodel.mean = {}\nsampler.B = 5\ndata.simulate.normal = { n = 5, mean = 1.0, sd = 1.0 }\n";
    place.write("inner/e.toml", text);
    let names = [
        "../x.csv",
        "/tmp/npl-escaped.csv",
        "a/b.csv",
        "..",
        "x.csv/..",
        "manifest.json",
        "config.toml",
        "report.csv",
        "summary.csv",
        ".npl.lock",
        "\\u0000.csv",
        "\\u001b[2J.csv",
        "~/x.csv",
    ];
    for name in names {
        let set = format!("output.samples=\"{name}\"");
        let ended = place.npl(&["run", "inner/e.toml", "--out", "inner/out", "--set", &set]);
        assert_eq!(ended.code, Some(2), "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains("output.samples"), "{name}: {}", ended.stderr);
        ended.assert_decent(name);
        assert_eq!(
            (place.list("."), place.list("inner")),
            (vec!["inner".into()], vec!["e.toml".into()]),
            "{name}"
        );
    }
    assert!(!Path::new("/tmp/npl-escaped.csv").exists());
}

/// A link in the place of a result is replaced, not followed.
#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let place = Place::new();
    let text = "name = \"f\"\nseed = 1\nmodel.mean = {}\nsampler.B = 5\ndata.simulate.normal = { n = 5, mean = 1.0, sd = 1.0 }\n";
    place.write("e.toml", text).write("precious", "mine").ok(&["run", "e.toml", "--out", "out"]);
    for name in ["samples.csv", "summary.csv", "manifest.json"] {
        fs::remove_file(place.path("out").join(name)).unwrap();
        std::os::unix::fs::symlink(place.path("precious"), place.path("out").join(name)).unwrap();
        let _ = place.npl(&["run", "e.toml", "--out", "out", "--force"]);
        assert_eq!(place.read("precious"), "mine", "{name}");
    }
}

/// No library for a network among the crates of the program, and no socket opened by a run.
#[test]
fn there_is_no_network_in_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let networks =
        ["tokio", "mio", "socket2", "hyper", "reqwest", "ureq", "curl", "rustls", "native-tls", "openssl"];
    for (package, _) in crates().into_iter().flatten() {
        assert!(!networks.contains(&package.split(' ').next().unwrap()), "{package}");
    }
    let mut sources = Vec::new();
    sources_below(&root.join("src"), &mut sources);
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let words = ["std::net", "TcpStream", "UdpSocket", "UnixStream", "ToSocketAddrs"];
        assert!(!words.iter().any(|word| text.contains(word)), "{} names a network", path.display());
    }
    let place = Place::new();
    place.write("e.toml", "name = \"f\"\nseed = 1\nmodel.mean = {}\nsampler.B = 5\ndata.simulate.normal = { n = 5, mean = 1.0, sd = 1.0 }\n");
    let npl = place.command(&[]);
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "trace", "-e", "trace=network"]).arg(npl.get_program()).args(["run", "e.toml"]);
    match command.current_dir(place.path(".")).output() {
        Ok(done) if done.status.success() => {
            let trace = place.read("trace");
            // A pair of sockets between two threads, for signals, is none of a network.
            let opens = |line: &&str| ["socket(", "connect(", "bind("].iter().any(|call| line.contains(call));
            let calls = trace.lines().filter(opens);
            assert_eq!(calls.collect::<Vec<_>>(), [""; 0], "a call of the network");
        }
        _ => println!("skipped: strace is not installed, or may not trace here"),
    }
}

/// The crates that the program is made of, with their licences; `None` where cargo cannot be asked.
fn crates() -> Option<Vec<(String, String)>> {
    let mut command = Command::new("cargo");
    command.args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--no-dedupe"]);
    let done = command.args(["--format", "{p}|{l}"]).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    if !done.status.success() {
        println!("skipped: cargo tree cannot be had");
        return None;
    }
    let of = |line: &str| {
        let (package, licence) = line.split_once('|').unwrap();
        (package.split(' ').take(2).collect::<Vec<_>>().join(" "), licence.to_owned())
    };
    let mut found: Vec<_> = String::from_utf8(done.stdout).unwrap().lines().map(of).collect();
    found.sort();
    found.dedup();
    Some(found)
}

/// From the registry, in one version each, and under licences that ask for no more than to be named.
#[test]
fn crates_are_free_single_and_from_the_registry() {
    let lock: toml::Table = include_str!("../../Cargo.lock").parse().unwrap();
    for package in lock["package"].as_array().unwrap().iter().filter(|p| p["name"].as_str() != Some("npl")) {
        let source = package["source"].as_str().unwrap();
        assert!(source.starts_with("registry+") && package.get("checksum").is_some(), "{package}");
    }
    let Some(crates) = crates() else { return };
    for (package, licence) in &crates {
        let free = |part: &str| {
            part.replace('/', " OR ")
                .split(" OR ")
                .any(|one| FREE.contains(&one.trim().trim_matches(['(', ')'])))
        };
        assert!(licence.split(" AND ").all(free), "{package}: {licence}");
    }
    let names: Vec<&str> = crates.iter().map(|(package, _)| package.split(' ').next().unwrap()).collect();
    let twice: Vec<&[&str]> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "in several versions: {twice:?}");
    println!("{} crates", crates.len());
}

const FREE: [&str; 6] = ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "Zlib", "Unicode-3.0"];

fn sources_below(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}
