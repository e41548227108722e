//! The same draws in every format: bytes, names, what reads them, and what is said of files that are broken.

use std::fs;
use std::io::Read;
use std::process::Command;

use crate::support::{Place, cells};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A mixture with two repeats; some of its names have two indices.
const MIXTURE: &str = r#"
name = "g"
seed = 7
repeats = 2
data.simulate.mixture = { n = 60, n_test = 20, pi = [0.3, 0.7], mu = [0.0, 3.0], sigma2 = [1.0, 1.0] }
model.gmm = { K = 2, variance_floor = 1e-4 }

[sampler]
B = 9
"#;

/// The mean of the rows of `d.csv`.
const MEAN: &str = "name = \"f\"\nseed = 1\nmodel.mean = {}\nsampler.B = 20\n[data]\ntrain = \"d.csv\"\n";

/// Formats other than CSV, and the files that each is made of.
fn formats() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut formats = vec![
        ("samples.csv.gz", vec!["samples.csv.gz"]),
        ("samples.npy", vec!["samples.columns.json", "samples.npy"]),
        ("draws of g.npy", vec!["draws of g.columns.json", "draws of g.npy"]),
    ];
    if cfg!(feature = "parquet") {
        formats.push(("samples.parquet", vec!["samples.parquet"]));
    }
    formats
}

fn run(place: &Place, out: &str, samples: &str, more: &[&str]) {
    let set = format!("output.samples={samples}");
    place.ok(&[&["run", "g.toml", "--out", out, "--set", &set], more].concat());
}

fn manifest(place: &Place, run: &str) -> Value {
    serde_json::from_str(&place.read(&format!("{run}/manifest.json"))).unwrap()
}

/// An array as `numpy.load` sees it: shape and values.
fn array(bytes: &[u8]) -> ([usize; 2], Vec<f64>) {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let header = 10 + u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let text = std::str::from_utf8(&bytes[10..header]).unwrap();
    let shape = text.strip_prefix("{'descr': '<f8', 'fortran_order': False, 'shape': (").unwrap();
    let shape: Vec<usize> =
        shape.split_once(')').unwrap().0.split(", ").map(|n| n.parse().unwrap()).collect();
    let values = bytes[header..].as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b));
    ([shape[0], shape[1]], values.collect())
}

#[test]
fn every_format_holds_the_same_draws() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    run(&place, "csv", "samples.csv", &[]);
    let csv = place.read("csv/samples.csv");
    let summary = |run: &str| place.ok(&["summary", run, "--format", "csv", "--repeat", "2"]).stdout;
    // Draws under a name of the user's own stay: a manifest, which can be anybody's, names no file to remove.
    let mut left: Vec<&str> = Vec::new();
    for (name, files) in formats() {
        run(&place, "o", name, &["--force"]);
        let others =
            ["config.toml", "manifest.json", "preparation.json", "report.csv", "report.json", "summary.csv"];
        let mut expected: Vec<&str> =
            files.iter().copied().chain(others).chain(left.iter().copied()).collect();
        expected.sort();
        assert_eq!(place.list("o"), expected, "{name}: the files of a run, and no draws of the run before");
        left.extend(files.iter().filter(|file| !file.starts_with("samples.")));
        assert_eq!(place.read("o/summary.csv"), place.read("csv/summary.csv"), "{name}");
        assert_eq!(summary("o"), summary("csv"), "{name}");
        assert!(place.ok(&["table", "o"]).stdout.contains("LPPD"));
        let manifest = manifest(&place, "o");
        assert_eq!(manifest["samples"], name);
        for file in files {
            let bytes = fs::read(place.path(&format!("o/{file}"))).unwrap();
            let hash: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(manifest["outputs"][file], hash, "{file}");
        }
    }
    // Decoded by other means than ours.
    run(&place, "gz", "samples.csv.gz", &[]);
    let mut text = String::new();
    let file = fs::read(place.path("gz/samples.csv.gz")).unwrap();
    GzDecoder::new(&file[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, csv);
    assert_eq!(file[4..8], [0; 4], "a time in the header would change the bytes");
    run(&place, "npy", "samples.npy", &[]);
    let (shape, values) = array(&fs::read(place.path("npy/samples.npy")).unwrap());
    let names: Vec<String> = serde_json::from_str(&place.read("npy/samples.columns.json")).unwrap();
    let rows = cells(&csv);
    assert_eq!(shape, [18, names.len()]);
    assert_eq!(rows[0], names);
    let numbers = rows[1..].iter().flatten().map(|cell| cell.parse::<f64>().unwrap().to_bits());
    assert!(numbers.eq(values.iter().map(|v| v.to_bits())), "the same numbers to the last bit");
}

#[test]
fn every_format_is_the_same_bytes_again() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    for (name, files) in formats() {
        run(&place, "one", name, &["--force", "--threads", "1"]);
        // What a run writes down is an experiment that makes it again.
        place.ok(&["run", "one/config.toml", "--out", "two", "--force", "--threads", "3"]);
        for file in files.iter().chain(&["config.toml"]) {
            let bytes = |run: &str| fs::read(place.path(&format!("{run}/{file}"))).unwrap();
            assert_eq!(bytes("one"), bytes("two"), "{file}");
        }
    }
}

#[test]
fn an_earlier_run_may_have_any_format() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    run(&place, "csv", "samples.csv", &[]);
    let started = |run: &str, draw: &str, out: &str| {
        let set = format!("sampler.fixed_init={{ run = {{ path = \"{run}\"{draw} }} }}");
        place.ok(&["run", "g.toml", "--set", &set, "--out", out]);
        place.read(&format!("{out}/samples.csv"))
    };
    for draw in ["", ", draw = 3"] {
        let expected = started("csv", draw, &format!("from csv{draw}"));
        for (name, _) in formats() {
            run(&place, "o", name, &["--force"]);
            assert_eq!(started("o", draw, &format!("from {name}{draw}")), expected, "{name}{draw}");
        }
    }
    run(&place, "o", "samples.npy", &["--force"]);
    let set = "sampler.fixed_init={ run = { path = \"o\", draw = 19 } }";
    let ended = place.npl(&["run", "g.toml", "--set", set]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no draw 19"), "{}", ended.stderr);
}

#[test]
fn a_name_that_cannot_be_is_refused() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    let mut cases = vec![
        ("\"\"", "must end in"),
        ("samples", "must end in"),
        ("samples.txt", "must end in"),
        ("samples.npy.gz", "must end in"),
        (".npy", "not starting with"),
        ("a/samples.csv", "letters"),
        ("../samples.csv", "not starting with"),
        ("\"a\\\\b.csv\"", "letters"),
        ("\"a\\nb.csv\"", "letters"),
        ("summary.csv", "another result"),
        ("Report.csv", "another result"),
        ("7", "string"),
    ];
    if !cfg!(feature = "parquet") {
        cases.push(("samples.parquet", "--features parquet"));
    }
    for (name, says) in cases {
        let set = format!("output.samples={name}");
        for command in ["run", "check"] {
            let ended = place.npl(&[command, "g.toml", "--set", &set]);
            assert_eq!(ended.code, Some(2), "{name}: {}", ended.stderr);
            assert!(
                ended.stderr.contains("output.samples") && ended.stderr.contains(says),
                "{name}: {}",
                ended.stderr
            );
            ended.assert_decent(name);
        }
    }
    assert!(!place.exists("runs"));
}

#[test]
fn broken_draws_are_named() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    let refused = |says: &[&str]| {
        let ended = place.npl(&["summary", "o"]);
        assert_eq!(ended.code, Some(2), "{says:?}: {}", ended.stderr);
        assert!(says.iter().all(|s| ended.stderr.contains(s)), "{says:?}: {}", ended.stderr);
        ended.assert_decent("summary");
    };
    run(&place, "o", "samples.npy", &[]);
    let (draws, names) =
        (fs::read(place.path("o/samples.npy")).unwrap(), place.read("o/samples.columns.json"));
    place.unseal("o").write("o/samples.npy", &draws[..draws.len() - 8]);
    refused(&["o/samples.npy", "not whole"]);
    place.write("o/samples.npy", "repeat__,draw__\n1,2\n");
    refused(&["o/samples.npy", "not a table of draws"]);
    place.write("o/samples.npy", &draws).write("o/samples.columns.json", "[\"repeat__\"]");
    refused(&["o/samples.npy", "1 names"]);
    place.write("o/samples.columns.json", names.replace("draw__", "x"));
    refused(&["o/samples.npy", "not a table of draws"]);
    place.write("o/samples.columns.json", "{}");
    refused(&["o/samples.columns.json"]);
    fs::remove_file(place.path("o/samples.columns.json")).unwrap();
    refused(&["o/samples.columns.json"]);
    place.write("o/samples.columns.json", names);
    place.ok(&["summary", "o"]);
    let manifest = place.read("o/manifest.json");
    for foreign in ["../../x.npy", "report.csv", "x"] {
        place.write("o/manifest.json", manifest.replacen("\"samples.npy\"", &format!("\"{foreign}\""), 1));
        refused(&["o/manifest.json", foreign]);
    }
    run(&place, "o", "samples.csv.gz", &["--force"]);
    let draws = fs::read(place.path("o/samples.csv.gz")).unwrap();
    place.write("o/samples.csv.gz", &draws[..draws.len() / 2]);
    refused(&["o/samples.csv.gz"]);
}

#[test]
fn draws_of_your_own_are_not_overwritten() {
    let place = Place::new();
    place.write("g.toml", MIXTURE).write("o/samples.npy", "mine");
    let ended = place.npl(&["run", "g.toml", "--out", "o", "--set", "output.samples=samples.npy"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(place.read("o/samples.npy"), "mine");
    run(&place, "o", "other.npy", &[]);
    assert_eq!(place.read("o/samples.npy"), "mine", "not ours, and not in the way");
}

#[test]
fn what_a_killed_run_left_is_swept() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    let left = [".samples.npy.1.tmp", ".x.columns.json.22.tmp", ".spool.npy.333.tmp", ".a.csv.gz.4.tmp"];
    let kept = [".samples.npy.x.tmp", ".notes.txt.1.tmp", "samples.npy.1.tmp"];
    left.iter().chain(&kept).for_each(|name| {
        place.write(&format!("o/{name}"), "half");
    });
    run(&place, "o", "samples.csv", &[]);
    let found = place.list("o");
    assert!(left.iter().all(|name| !found.iter().any(|f| f == name)), "{found:?}");
    assert!(kept.iter().all(|name| found.iter().any(|f| f == name)), "{found:?}");
}

#[test]
fn a_large_text_is_advised_against() {
    let place = Place::new();
    place.write("e.toml", MEAN).write("d.csv", "a\n1\n2\n4\n");
    let advice = "--set output.samples=samples.npy";
    let large = "sampler.B=3000000";
    let check = |sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["check", "e.toml"].into_iter().chain(sets).collect();
        place.ok(&args).stdout
    };
    // 6 numbers of 20 bytes: one θ, and the longer half of the statistics.
    let said = check(&[large]);
    assert!(said.contains("# samples.csv about 360.0 MB of text") && said.contains(advice), "{said}");
    assert!(said.contains("makes 240.0 MB of it"), "{said}");
    let said = check(&[]);
    assert!(said.contains("# samples.csv about 2.4 kB\n") && !said.contains(advice), "{said}");
    let said = check(&[large, "output.samples=samples.npy"]);
    assert!(said.contains("# samples.npy about 240.0 MB\n") && !said.contains(advice), "{said}");
    for (quiet, lines) in [("", 1), ("--quiet", 0)] {
        let npl = env!("CARGO_BIN_EXE_npl");
        let script =
            format!("'{npl}' run e.toml --set {large} --samples - {quiet} 2>stderr | head -3 >stdout");
        let done = Command::new("sh").arg("-c").arg(script).current_dir(place.path(".")).status().unwrap();
        assert!(done.success() && place.read("stdout").lines().count() == 3);
        let stderr = place.read("stderr");
        assert_eq!(stderr.lines().filter(|line| line.contains(advice)).count(), lines, "{stderr}");
        assert_eq!(place.list("runs/f"), [""; 0], "nothing is left of a run whose reader went away");
    }
}
