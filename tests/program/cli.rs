//! What the program does when all is well: the files it writes, and the promises on their bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::{Place, cells, config, patience};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

const RESULTS: [&str; 7] = [
    "config.toml",
    "manifest.json",
    "preparation.json",
    "report.csv",
    "report.json",
    "samples.csv",
    "summary.csv",
];

const MODELS: [&str; 5] = ["gmm", "mean", "median", "quantile", "normal"];

/// A mean of twenty numbers: the fastest experiment there is.
const MEAN: &str = r#"
name = "m"
seed = 1

[data.simulate.normal]
n = 20
mean = 1.0
sd = 2.0

[model.mean]

[sampler]
B = 20
"#;

/// The mean of the rows of `d.csv`; keys of [data] may follow.
const FROM_FILE: &str = r#"
name = "f"
seed = 1
model.mean = {}
sampler.B = 20

[data]
train = "d.csv"
"#;

/// A small mixture; keys of [sampler] may follow.
const MIXTURE: &str = r#"
name = "g"
seed = 7
data.simulate.mixture = { n = 120, n_test = 20, pi = [0.3, 0.7], mu = [0.0, 3.0], sigma2 = [1.0, 1.0] }
model.gmm = { K = 2, variance_floor = 1e-4 }

[sampler]
B = 12
"#;

/// Runs the toy mixture with these `--set`s and returns its draws.
fn toy(place: &Place, out: &str, sets: &[&str], more: &[&str]) -> String {
    let path = config("gmm_toy.toml");
    let mut args = vec!["run", &path, "--out", out];
    sets.iter().for_each(|set| args.extend(["--set", set]));
    args.extend(more);
    place.ok(&args);
    place.read(&format!("{out}/samples.csv"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Column of a CSV text by its name, as numbers.
fn column(text: &str, name: &str) -> Vec<f64> {
    let rows = cells(text);
    let j = rows[0].iter().position(|n| *n == name).unwrap_or_else(|| panic!("no {name} in {:?}", rows[0]));
    rows[1..].iter().map(|row| row[j].parse().unwrap()).collect()
}

#[test]
fn a_run_writes_its_files_and_nothing_else() {
    let place = Place::new();
    let samples = toy(&place, "out", &["sampler.B=40"], &[]);
    assert_eq!(place.list("out"), RESULTS);
    assert_eq!(place.list_all("out").len(), RESULTS.len() + 2, "the lock, and what more draws are added to");
    assert_eq!(place.list("."), ["out"]);
    let rows = cells(&samples);
    assert_eq!(rows.len(), 41);
    assert_eq!(rows[0][..6], ["repeat__", "draw__", "objective__", "restart__", "iterations__", "status__"]);
    let first = rows[0].iter().position(|n| !n.ends_with("__")).unwrap();
    assert_eq!(
        rows[0][first..],
        ["pi.1", "pi.2", "pi.3", "mu.1.1", "mu.2.1", "mu.3.1", "sigma2.1.1", "sigma2.2.1", "sigma2.3.1"]
    );
    for (i, row) in rows[1..].iter().enumerate() {
        assert_eq!(row[..2], ["1", (i + 1).to_string().as_str()]);
        assert_eq!(row.len(), rows[0].len());
        assert!(row.iter().all(|cell| cell.parse::<f64>().unwrap().is_finite()), "{row:?}");
        let pi: f64 = row[first..first + 3].iter().map(|c| c.parse::<f64>().unwrap()).sum();
        assert!((pi - 1.0).abs() < 1e-9);
    }
    let report = place.read("out/report.csv");
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines[0], "repeat,seed,method,n_train,n_test,draws,lppd,mse,accuracy,sparsity,seconds");
    assert!(lines[1].starts_with("1,100,npl,1000,250,40,-") && lines.len() == 2, "{report}");
    let summary = place.read("out/summary.csv");
    assert!(summary.starts_with("parameter,mean,sd,q2.5,q10,q50,q90,q97.5"), "{summary}");
    assert_eq!(summary.lines().count(), 10);
    let mu = column(&samples, "mu.2.1");
    let mean = mu.iter().sum::<f64>() / mu.len() as f64;
    let line = cells(&summary).into_iter().find(|row| row[0] == "mu.2.1").unwrap()[1].parse::<f64>().unwrap();
    assert!((line - mean).abs() < 1e-12 * mean.abs().max(1.0));
}

#[test]
fn the_manifest_has_the_hash_of_every_file() {
    let place = Place::new();
    place.write("d.csv", "a\n1\n2\n4\n").write("e.toml", FROM_FILE);
    place.ok(&["run", "e.toml", "--threads", "2"]);
    let hash = |path: &str| {
        let digest = Sha256::digest(fs::read(place.path(path)).unwrap());
        digest.iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    let manifest = json(&place.read("runs/f/manifest.json"));
    let outputs = manifest["outputs"].as_object().unwrap();
    let named: BTreeSet<&str> = outputs.keys().map(String::as_str).collect();
    assert_eq!(named, RESULTS.into_iter().filter(|n| *n != "manifest.json").collect());
    for (name, sum) in outputs {
        assert_eq!(sum, &hash(&format!("runs/f/{name}")), "{name}");
    }
    assert_eq!(manifest["inputs"][0]["sha256"], hash("d.csv"));
    assert_eq!(manifest["inputs"][0]["bytes"], 8);
    assert_eq!(manifest["status"]["ok"], 20);
    assert_eq!((&manifest["seed"], &manifest["threads"]), (&1.into(), &2.into()));
}

#[test]
fn every_file_that_went_in_is_in_the_manifest() {
    let place = Place::new();
    place.write("d.csv", "1\n2\n4\n5\n").write("h.csv", "1\n3\n").write("start.csv", START);
    let text = "name = \"i\"\nseed = 1\ndata.train = \"d.csv\"\nmodel.gmm = { K = 2, variance_floor = 0.01 }\n\
                sampler = { B = 2, fixed_init = { file = \"start.csv\" } }\n\
                prior = { alpha = 1.0, base = { empirical = { file = \"h.csv\" } } }\n";
    place.write("e.toml", text).ok(&["run", "e.toml"]);
    let inputs = |run: &str| -> Vec<String> {
        let manifest = json(&place.read(&format!("runs/{run}/manifest.json")));
        let paths = manifest["inputs"].as_array().unwrap().iter();
        paths.map(|i| i["path"].as_str().unwrap().trim_start_matches("./").to_owned()).collect()
    };
    assert_eq!(inputs("i"), ["d.csv", "h.csv", "start.csv"]);
    let set = "sampler.fixed_init={ run = { path = \"runs/i\" } }";
    place.ok(&["run", "e.toml", "--set", "name=j", "--set", set]);
    assert_eq!(inputs("j"), ["d.csv", "h.csv", "runs/i/samples.csv"]);
}

#[test]
fn draws_are_starts_whatever_style_their_names_have() {
    let place = Place::new();
    let first = toy(&place, "dots", &["sampler.B=20", "sampler.R=2"], &[]);
    let second = toy(&place, "brackets", &["sampler.B=20", "sampler.R=2"], &["--names", "bracket"]);
    assert!(first.contains(",mu.1.1,") && second.contains(",\"mu[1,1]\","), "{second}");
    let fixed = config("gmm_toy_fi.toml");
    let from = |run: &str| {
        let sampler = format!("sampler={{ B = 20, fixed_init = {{ run = {{ path = \"{run}\" }} }} }}");
        place.ok(&["run", &fixed, "--set", &sampler, "--out", "next", "--force"]);
        place.read("next/samples.csv")
    };
    assert_eq!(from("dots"), from("brackets"));
}

/// A start for two components in one column.
const START: &str = "pi.1,pi.2,mu.1.1,mu.2.1,sigma2.1.1,sigma2.2.1\n0.5,0.5,0,3,1,1\n";

#[test]
fn the_resolved_experiment_gives_the_same_bytes() {
    let place = Place::new();
    let first = toy(&place, "a", &["sampler.B=20", "sampler.R=2"], &[]);
    place.ok(&["run", "a/config.toml", "--out", "b"]);
    assert_eq!(place.read("b/samples.csv"), first);
    assert_eq!(place.read("b/config.toml"), place.read("a/config.toml"));
    for model in MODELS {
        place.write("n.toml", place.ok(&["new", model]).stdout);
        place.ok(&["run", "n.toml", "--set", "sampler.B=5", "--out", "c", "--force"]);
        place.ok(&["run", "c/config.toml", "--out", "d", "--force"]);
        assert_eq!(place.read("d/samples.csv"), place.read("c/samples.csv"), "{model}");
    }
}

#[test]
fn no_byte_depends_on_the_number_of_threads() {
    let place = Place::new();
    let sets = ["sampler.B=30", "sampler.R=3"];
    let one = toy(&place, "t1", &sets, &["--threads", "1"]);
    for threads in ["2", "8"] {
        assert_eq!(toy(&place, &format!("t{threads}"), &sets, &["--threads", threads]), one, "{threads}");
    }
    // Few draws, many threads, a stopping rule: restarts are made side by side.
    let sets = ["sampler.B=3", "sampler.R=9", "sampler.stop={no_improvement=2}"];
    let one = toy(&place, "s1", &sets, &["--threads", "1"]);
    assert_eq!(toy(&place, "s8", &sets, &["--threads", "8"]), one);
}

#[test]
fn fewer_draws_are_the_first_of_more() {
    let place = Place::new();
    let few = toy(&place, "few", &["sampler.B=30", "sampler.R=2"], &[]);
    let many = toy(&place, "many", &["sampler.B=60", "sampler.R=2"], &[]);
    assert_eq!((few.lines().count(), many.lines().count()), (31, 61));
    assert!(many.starts_with(&few));
}

#[test]
fn a_restart_is_the_same_however_many_there_are() {
    let place = Place::new();
    let two = toy(&place, "r2", &["sampler.B=40", "sampler.R=2"], &[]);
    let three = toy(&place, "r3", &["sampler.B=40", "sampler.R=3"], &[]);
    let (two, three) = (cells(&two), cells(&three));
    let at = |name: &str| two[0].iter().position(|n| *n == name).unwrap();
    let objective = |row: &[&str]| row[at("objective__")].parse::<f64>().unwrap();
    // Counts over all restarts may differ; what the winner left may not.
    let counts = [at("restarts__"), at("hits__")];
    let mut kept = 0;
    for (a, b) in two.iter().zip(&three).skip(1) {
        assert!(objective(b) <= objective(a), "{a:?} {b:?}");
        if b[at("restart__")] != "3" {
            kept += 1;
            (0..a.len())
                .filter(|j| !counts.contains(j))
                .for_each(|j| assert_eq!(a[j], b[j], "{}", two[0][j]));
        }
    }
    assert!((1..40).contains(&kept), "{kept} of 40 draws won by the first two restarts");
}

#[test]
fn a_repeat_is_a_run_with_the_next_seed() {
    let place = Place::new();
    let both = toy(&place, "both", &["sampler.B=8", "sampler.R=2", "repeats=2"], &["--seed", "100"]);
    let next = toy(&place, "next", &["sampler.B=8", "sampler.R=2"], &["--seed", "101"]);
    let second: Vec<&str> = both.lines().skip(9).map(|l| l.strip_prefix("2,").unwrap()).collect();
    let first: Vec<&str> = next.lines().skip(1).map(|l| l.strip_prefix("1,").unwrap()).collect();
    assert_eq!(second, first);
    let report = place.read("both/report.csv");
    assert!(report.lines().nth(2).unwrap().starts_with("2,101,npl,1000,250,8,"), "{report}");
    assert_eq!(both.lines().count(), 17);
    let text = place.ok(&["summary", "both", "--repeat", "2", "--format", "csv"]).stdout;
    assert_eq!(text, place.ok(&["summary", "next", "--format", "csv"]).stdout);
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_run_quietly() {
    let place = Place::new();
    let script = format!(
        "{{ '{}' run '{}' --set sampler.B=500000 --samples - 2>stderr; echo $? >status; }} | head -3",
        env!("CARGO_BIN_EXE_npl"),
        config("gmm_toy.toml")
    );
    let started = Instant::now();
    let output =
        std::process::Command::new("sh").arg("-c").arg(script).current_dir(place.path(".")).output().unwrap();
    let took = started.elapsed();
    assert!(took < patience(Duration::from_secs(10)), "{took:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert_eq!(place.read("status"), "0\n");
    assert_eq!(place.read("stderr"), "");
    assert_eq!(place.list("runs/gmm_toy"), [""; 0], "half a run is no run");
    assert!(
        !place.exists("runs/gmm_toy/.npl-chunks/1-of-1/00000001.part"),
        "and nobody wants to go on with it"
    );
    assert!(toy(&place, "solo", &["sampler.B=2"], &[]).starts_with(&text));
}

#[test]
fn draws_on_standard_output_are_those_of_the_file() {
    let place = Place::new();
    place.write("e.toml", MEAN);
    let ended = place.ok(&["run", "e.toml", "--samples", "-"]);
    assert_eq!(ended.stdout, place.read("runs/m/samples.csv"));
    assert!(ended.stderr.contains("written to runs/m"), "{}", ended.stderr);
    let ended = place.ok(&["run", "e.toml", "--samples", "-", "--quiet"]);
    assert_eq!((ended.stdout, ended.stderr), (place.read("runs/m/samples.csv"), String::new()));
}

#[test]
fn json_is_the_report_and_quiet_is_quiet() {
    let place = Place::new();
    place.write("g.toml", MIXTURE).write("m.toml", MEAN);
    let ended = place.ok(&["run", "g.toml", "--json", "--quiet"]);
    assert_eq!(ended.stderr, "");
    let report = json(&ended.stdout);
    assert!(report["metrics"]["lppd"]["mean"].as_f64().unwrap() < 0.0);
    assert!(report["metrics"]["lppd"]["mcse"].as_f64().unwrap() > 0.0);
    // And what the draws say, in the numbers of summary.csv.
    let mut told = report.clone();
    let posterior = told.as_object_mut().unwrap().remove("posterior").unwrap();
    assert_eq!(told, json(&place.read("runs/g/report.json")));
    let summary = place.read("runs/g/summary.csv");
    let (names, means) = (cells(&summary), column(&summary, "mean"));
    for (i, mean) in means.iter().enumerate() {
        assert_eq!(
            (posterior[i]["parameter"].as_str().unwrap(), posterior[i]["mean"].as_f64()),
            (names[1 + i][0], Some(*mean))
        );
    }
    let ended = place.ok(&["run", "m.toml", "--quiet"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

#[test]
fn a_run_of_one_draw_can_be_read_again() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    place.ok(&["run", "g.toml", "--set", "sampler.B=1"]);
    assert!(place.ok(&["summary", "runs/g"]).stdout.contains("mu.1.1"));
    assert!(place.ok(&["table", "runs/g"]).stdout.contains("LPPD"));
}

#[test]
fn names_in_brackets_are_for_r() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    place.ok(&["run", "g.toml", "--names", "bracket"]);
    let samples = place.read("runs/g/samples.csv");
    assert!(
        samples
            .lines()
            .next()
            .unwrap()
            .ends_with("pi[1],pi[2],\"mu[1,1]\",\"mu[2,1]\",\"sigma2[1,1]\",\"sigma2[2,1]\"")
    );
    assert!(place.read("runs/g/summary.csv").contains("\n\"mu[1,1]\","));
    assert!(place.ok(&["summary", "runs/g"]).stdout.contains("mu[1,1]"));
}

#[test]
fn every_starter_is_a_valid_experiment() {
    let place = Place::new();
    for model in MODELS {
        let starter = place.ok(&["new", model]).stdout;
        assert!(starter.starts_with('#') && starter.contains(&format!("[model.{model}]")));
        place.write("n.toml", starter);
        place.ok(&["check", "n.toml", "--set", "sampler.B=3"]);
        place.ok(&["run", "n.toml", "--set", "sampler.B=3"]);
        assert_eq!(place.list(&format!("runs/{model}")), RESULTS);
    }
    let ended = place.npl(&["new", "gmn"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("did you mean `gmm`?"), "{}", ended.stderr);
    let ended = place.npl(&["new", "zzzzzzzz"]);
    assert!(ended.code == Some(2) && MODELS.iter().all(|m| ended.stderr.contains(m)), "{}", ended.stderr);
    assert!(!ended.stderr.contains("did you mean"), "{}", ended.stderr);
}

#[test]
fn what_check_prints_is_an_experiment() {
    let place = Place::new();
    place.write("e.toml", MIXTURE);
    let text = place.ok(&["check", "e.toml", "--set", "prior.alpha=2", "--set", NORMAL_BASE]).stdout;
    for line in [
        "# data        120 training rows x 1 column, 20 test rows",
        "# parameters  6: pi.1",
        "# time ",
        "# memory ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!place.exists("runs"));
    place.write("c.toml", &text).ok(&["run", "c.toml", "--out", "c"]);
    place.ok(&["run", "e.toml", "--out", "e", "--set", "prior.alpha=2", "--set", NORMAL_BASE]);
    assert_eq!(place.read("c/samples.csv"), place.read("e/samples.csv"));
    let again = place.ok(&["check", "c.toml"]).stdout;
    let resolved =
        |text: &str| text.lines().take_while(|l| !l.starts_with('#')).collect::<Vec<_>>().join("\n");
    assert_eq!(resolved(&again), resolved(&text));
}

/// Draws that take minutes: the estimate of their cost does not.
#[test]
fn a_check_does_not_wait_for_slow_draws() {
    let place = Place::new();
    let pi: Vec<String> = (0..40).map(|_| "1.0".into()).collect();
    let mu: Vec<String> = (0..40).map(|k| format!("{k}.0")).collect();
    let (pi, mu, sigma2) = (pi.join(", "), mu.join(", "), pi.join(", "));
    place.write(
        "slow.toml",
        format!(
            "name = \"slow\"\nseed = 1\n\
             data.simulate.mixture = {{ n = 20000, pi = [{pi}], mu = [{mu}], sigma2 = [{sigma2}] }}\n\
             [model.gmm]\nK = 40\nvariance_floor = 1e-6\n[sampler]\nB = 1000\nR = 100\n\
             [optimiser]\ntolerance = 1e-9\n"
        ),
    );
    let ended = place.ok(&["check", "slow.toml"]);
    assert!(ended.took.as_secs_f64() < 15.0, "{:?}", ended.took);
    assert!(ended.stdout.contains("# time        more than "), "{}", ended.stdout);
    let fits = ["--set", "sampler.fixed_init.best_of=1000", "--set", "sampler.R=1"];
    let ended = place.ok(&[&["check", "slow.toml"], &fits[..]].concat());
    assert!(ended.took.as_secs_f64() < 15.0, "{:?}", ended.took);
    assert!(ended.stdout.contains("# time        not known: "), "{}", ended.stdout);
}

const NORMAL_BASE: &str = "prior.base={ normal = { mean = 0.0, sd = 2.0 } }";

#[test]
fn the_schema_knows_every_key_of_the_configs() {
    let place = Place::new();
    let schema = json(&place.ok(&["check", "--schema"]).stdout);
    let mut known = BTreeSet::new();
    collect_properties(&schema, &mut known);
    let mut files = 0;
    for folder in [config(""), config("starters")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                files += 1;
                let table: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
                let mut used = BTreeSet::new();
                collect_keys(&toml::Value::Table(table), &mut used);
                let unknown: Vec<_> = used.difference(&known).collect();
                assert!(unknown.is_empty(), "{}: {unknown:?}", path.display());
            }
        }
    }
    assert!(files >= 10);
    assert!(!known.contains("alpah"));
}

/// Names of all properties anywhere in a schema.
fn collect_properties(schema: &Value, out: &mut BTreeSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        out.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(map) => map.values().for_each(|v| collect_properties(v, out)),
        Value::Array(list) => list.iter().for_each(|v| collect_properties(v, out)),
        _ => {}
    }
}

fn collect_keys(value: &toml::Value, out: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            out.extend(table.keys().cloned());
            // Below these, keys are names of the user's own: classes, blocks, columns.
            let own = |key: &str| {
                matches!(key, "classes" | "init" | "response" | "parameters" | "derived" | "derive")
            };
            table.iter().filter(|(key, _)| !own(key)).for_each(|(_, v)| collect_keys(v, out));
        }
        toml::Value::Array(list) => list.iter().for_each(|v| collect_keys(v, out)),
        _ => {}
    }
}

#[test]
fn summary_and_table_come_in_three_forms() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    place.ok(&["run", "g.toml", "--set", "repeats=2", "--out", "a"]);
    place.ok(&["run", "g.toml", "--set", "name=h", "--set", "sampler.R=3", "--out", "b"]);
    let text = place.ok(&["summary", "b"]).stdout;
    for word in ["parameter", "97.5 %", "sigma2.2.1", "LPPD", "restarts", "unseen basins", "RR-NPL R=3"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(place.ok(&["summary", "b", "--format", "csv"]).stdout, place.read("b/summary.csv"));
    assert!(place.ok(&["summary", "b", "--format", "markdown"]).stdout.starts_with("| parameter |"));
    let text = place.ok(&["table", "a", "b"]).stdout;
    assert!(text.contains(" ± ") && text.contains("RR-NPL R=3") && text.contains("mcse"), "{text}");
    let markdown = place.ok(&["table", "a", "b", "--format", "markdown"]).stdout;
    assert_eq!(markdown.lines().nth(1), Some("|---|---:|---:|"));
    let csv = place.ok(&["table", "a", "b", "--format", "csv"]).stdout;
    let rows = cells(&csv);
    assert_eq!(rows[0], ["run", "method", "label", "metric", "repeats", "mean", "sd", "se", "mcse"]);
    let report = place.read("a/report.csv");
    let lppd = column(&report, "lppd");
    let mean: f64 = rows[1][5].parse().unwrap();
    assert_eq!(rows[1][..5], ["g", "npl", "RR-NPL R=1", "lppd", "2"]);
    assert!((mean - (lppd[0] + lppd[1]) / 2.0).abs() < 1e-12);
    let sd: f64 = rows[1][6].parse().unwrap();
    assert!((sd - (lppd[0] - lppd[1]).abs() / 2f64.sqrt()).abs() < 1e-12);
    assert!(rows.iter().any(|r| r[0] == "h" && r[3] == "lppd" && r[6].is_empty()), "one repeat has no sd");
}

#[test]
fn alpha_in_its_three_forms() {
    let place = Place::new();
    let alpha =
        |args: &[&str]| column(&place.ok(&[&["alpha", "--format", "csv"], args].concat()).stdout, "alpha");
    let close = |found: f64, exact: f64| (found / exact - 1.0).abs() < 1e-5;
    assert!(close(alpha(&["--sd", "0.5", "--base-sd", "2"])[0], 15.0));
    assert!(close(alpha(&["--sd", "0.3", "--base-sd", "1.7"])[0], 1.7 * 1.7 / 0.09 - 1.0));
    place.write("m.toml", MEAN);
    let prior = ["--set", "prior.alpha=1", "--set", NORMAL_BASE];
    assert!(close(alpha(&[&["m.toml", "--sd", "0.5"], &prior[..]].concat())[0], 15.0));
    let uniform = "prior.base={ uniform = { low = -3, high = 3 } }";
    assert!(close(alpha(&["m.toml", "--sd", "0.5", "--set", "prior.alpha=1", "--set", uniform])[0], 11.0));
    // That experiment has T = 1000 and a base measure with variance 2.
    let exact = (2.0 - 0.25) / (0.25 - 2.0 / 1000.0);
    assert!(close(alpha(&[&config("normal_location.toml"), "--sd", "0.5"])[0], exact));
    let values = ["m.toml", "--values", "3,15", "--draws", "2000", "--format", "csv"];
    let text = place.ok(&[&["alpha"], &values[..], &prior[..]].concat()).stdout;
    // sd of the mean is 2/√(1 + α); the error of a sd from 2000 draws is 1.6 %.
    for (sd, exact) in column(&text, "sd").into_iter().zip([1.0, 0.5]) {
        assert!((sd / exact - 1.0).abs() < 0.08, "{text}");
    }
    assert!(!place.exists("runs"));
    for args in [vec!["alpha"], vec!["alpha", "--sd", "1"], vec!["alpha", "m.toml"]] {
        assert_eq!(place.npl(&args).code, Some(2), "{args:?}");
    }
    assert!(place.npl(&["alpha", "--sd", "2", "--base-sd", "1"]).stderr.contains("cannot have prior sd 2"));
}

/// The α that is answered gives the sd that was asked for, by the run with n = 0 and whatever makes the prior finite.
#[test]
fn alpha_minds_the_truncation() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    let exact = |t: f64| (4.0 - 2.25) / (2.25 - 4.0 / t);
    let cases = [
        (&["prior.T=4"][..], 1.5, Some(exact(4.0))),
        (&["prior.T=50"], 1.5, Some(exact(50.0))),
        (&["prior.T=6", "prior.truncation=stick_breaking"], 1.3, None),
        (&["prior.truncation={ adaptive = 0.5 }"], 1.2, None),
        (&[], 1.0, Some(3.0)),
    ];
    for (sets, sd, exact) in cases {
        let sets = ["prior.alpha=1", NORMAL_BASE].iter().chain(sets).flat_map(|s| ["--set", s]);
        let sets: Vec<&str> = sets.collect();
        let wanted = sd.to_string();
        let asked = place.ok(&[&["alpha", "m.toml", "--format", "csv", "--sd", &wanted], &sets[..]].concat());
        let alpha = column(&asked.stdout, "alpha")[0];
        assert!(exact.is_none_or(|exact| (alpha / exact - 1.0).abs() < 1e-5), "{sets:?}: {alpha}");
        let values = alpha.to_string();
        let run = ["alpha", "m.toml", "--format", "csv", "--draws", "40000", "--values", &values];
        let found = column(&place.ok(&[&run[..], &sets[..]].concat()).stdout, "sd")[0];
        // Heavy tails and all, the error of a sd from 40,000 draws is below 0.5 %.
        assert!((found / sd - 1.0).abs() < 0.02, "{sets:?}: alpha {alpha} gives {found}, not {sd}");
    }
    let by_flag = place.ok(&["alpha", "--format", "csv", "--sd", "1.5", "--base-sd", "2", "--T", "4"]).stdout;
    assert!((column(&by_flag, "alpha")[0] / exact(4.0) - 1.0).abs() < 1e-5, "{by_flag}");
    let refused = |args: &[&str]| {
        let ended = place.npl(&[&["alpha"], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ended.stderr);
        ended.stderr
    };
    // Below 2/√4 there is none, and T sticks do not get everywhere either.
    let bounds = refused(&["--sd", "0.9", "--base-sd", "2", "--T", "4"]);
    assert!(bounds.contains("above 1.000") && bounds.contains("T = 4"), "{bounds}");
    let sticks = ["--set", "prior.T=4", "--set", "prior.truncation=stick_breaking"];
    let prior = ["m.toml", "--sd", "0.5", "--set", "prior.alpha=1", "--set", NORMAL_BASE];
    assert!(refused(&[&prior[..], &sticks].concat()).contains("T = 4"));
    assert_eq!(
        place.npl(&["alpha", "m.toml", "--sd", "1", "--T", "4"]).code,
        Some(2),
        "the file has its own T"
    );
}

#[test]
fn completions_and_help_are_there() {
    let place = Place::new();
    for (shell, mark) in [("bash", "_npl()"), ("zsh", "#compdef npl"), ("fish", "complete -c npl")] {
        assert!(place.ok(&["completions", shell]).stdout.contains(mark), "{shell}");
    }
    for command in ["run", "check", "new", "summary", "table", "alpha", "completions"] {
        let help = place.ok(&[command, "--help"]).stdout;
        assert!(help.contains("Examples") && help.contains(&format!("npl {command}")), "{command}: {help}");
    }
    let help = place.ok(&["--help"]).stdout;
    assert!(help.contains("Exit codes") && help.contains("npl new gmm"));
    assert!(place.ok(&["--version"]).stdout.contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_verbose_version_says_what_would_compute() {
    let place = Place::new();
    let line = |args: &[&str], name: &str| {
        let text = place.ok(args).stdout;
        let found = text.lines().find_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_owned());
        found.unwrap_or_else(|| panic!("no {name}: {text}"))
    };
    assert_eq!(place.ok(&["-V"]).stdout, format!("npl {}\n", env!("CARGO_PKG_VERSION")));
    for flag in ["-V", "--version"] {
        assert_eq!(line(&[flag, "--verbose"], "npl"), env!("CARGO_PKG_VERSION"));
    }
    let levels: Vec<&str> = npl::kernel::available().map(|level| level.name()).collect();
    let best = levels.last().unwrap();
    let kernels = line(&["--version", "--verbose"], "kernels");
    assert_eq!(kernels, format!("{best} (the best this CPU has; possible: {})", levels.join(", ")));
    let kernels = line(&["--version", "--verbose", "--simd", "plain"], "kernels");
    assert_eq!(kernels, format!("plain (--simd; possible: {})", levels.join(", ")));
    assert_eq!(line(&["--version", "--verbose", "--threads", "3"], "threads"), "3 (--threads)");
    let slurm = place.command(&["--version", "--verbose"]).env("SLURM_CPUS_PER_TASK", "5").output().unwrap();
    assert!(String::from_utf8_lossy(&slurm.stdout).contains("threads   5 (SLURM_CPUS_PER_TASK)\n"));
    let features = line(&["--version", "--verbose"], "features");
    assert_eq!(features.contains("parquet"), cfg!(feature = "parquet"));
    assert_eq!(features.contains("openblas"), cfg!(feature = "openblas"));
    for wrong in [&["--verbose"][..], &["--simd", "plain"], &["--version", "run", "m.toml"]] {
        assert_eq!(place.npl(wrong).code, Some(2), "{wrong:?}");
    }
}

/// Every level by name, on every command that computes: recorded if this CPU has it, refused by name if not.
#[test]
fn the_level_of_the_kernels_is_pinned_or_refused() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    for level in ["plain", "avx2", "avx512"] {
        let possible = npl::kernel::available().any(|l| l.name() == level);
        let out = format!("out-{level}");
        for command in [
            &["run", "m.toml", "--out", &out][..],
            &["check", "m.toml"],
            &["export", "m.toml", "--out", &format!("export-{level}")],
            &["--version", "--verbose"],
        ] {
            let ended = place.npl(&[command, &["--simd", level]].concat());
            if possible {
                assert_eq!(ended.code, Some(0), "{command:?} {level}: {}", ended.stderr);
            } else {
                assert_eq!(ended.code, Some(2), "{command:?} {level}");
                assert!(ended.stderr.contains(&format!("--simd {level}: this CPU has ")), "{}", ended.stderr);
            }
        }
        if possible {
            let manifest: Value = serde_json::from_str(&place.read(&format!("{out}/manifest.json"))).unwrap();
            assert_eq!(manifest["simd"], level);
            let check = place.ok(&["check", "m.toml", "--simd", level]).stdout;
            assert!(check.contains(&format!("({level} kernels)")), "{check}");
            // Weights are the same bits at every level, and a mean is made of nothing else.
            assert_eq!(place.read(&format!("{out}/samples.csv")), place.read("out-plain/samples.csv"));
        }
    }
    let alpha = place.npl(&["alpha", "--sd", "0.5", "--base-sd", "1", "--simd", "plain"]);
    assert_eq!(alpha.code, Some(2), "nothing is computed by kernels there: {}", alpha.stdout);
}

/// Kernels round differently, and which of equal minima is lower by a rounding error must not choose a draw. A search may
/// go another way altogether, which is seen by how many found the best minimum.
#[test]
fn every_level_of_the_kernels_picks_the_same_restarts() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    let runs = npl::kernel::available().map(|level| {
        let out = format!("out-{}", level.name());
        let size = ["--set", "sampler.B=400", "--set", "sampler.R=5"];
        place.ok(&[&["run", "g.toml", "--out", &out, "--simd", level.name()], &size[..]].concat());
        let samples = place.read(&format!("{out}/samples.csv"));
        column(&samples, "restart__").into_iter().zip(column(&samples, "hits__")).collect()
    });
    let runs: Vec<Vec<(f64, f64)>> = runs.collect();
    for other in &runs[1..] {
        let found_alike = runs[0].iter().zip(other).filter(|(a, b)| a.1 == b.1);
        let (same, alike) = found_alike.fold((0, 0), |(s, n), (a, b)| (s + usize::from(a.0 == b.0), n + 1));
        assert!(same == alike && alike > 390, "{same} of {alike}");
    }
    assert!(runs[0].iter().any(|(restart, _)| *restart > 1.0), "restarts matter on these data");
}

#[test]
fn the_seed_is_given_or_drawn_and_always_recorded() {
    let place = Place::new();
    place.write("m.toml", MEAN).write("n.toml", MEAN.replace("seed = 1\n", ""));
    let silent = place.ok(&["run", "m.toml", "--out", "one"]);
    assert!(!silent.stderr.contains("seed"));
    place.ok(&["run", "m.toml", "--out", "two", "--seed", "2"]);
    assert!(place.read("two/config.toml").contains("seed = 2\n"));
    assert_ne!(place.read("one/samples.csv"), place.read("two/samples.csv"));
    let given = place.ok(&["run", "n.toml", "--out", "given", "--seed", "1"]);
    assert!(!given.stderr.contains("drawn"));
    assert_eq!(place.read("given/samples.csv"), place.read("one/samples.csv"));
    let drawn = place.ok(&["run", "n.toml", "--out", "drawn"]).stderr;
    let seed: u64 = drawn.strip_prefix("seed ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(drawn.contains("drawn"));
    assert!(place.read("drawn/config.toml").contains(&format!("seed = {seed}\n")));
    place.ok(&["run", "drawn/config.toml", "--out", "again"]);
    assert_eq!(place.read("again/samples.csv"), place.read("drawn/samples.csv"));
    place.ok(&["run", "n.toml", "--out", "other"]);
    assert_ne!(place.read("other/samples.csv"), place.read("drawn/samples.csv"));
}

#[test]
fn overrides_are_checked_like_the_file() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    for (set, says) in [
        ("sampler.BB=3", "sampler.B"),
        ("sampler.B=many", "sampler.B"),
        ("sampler.B=0", "at least 1"),
        ("sampler.B", "key.path=value"),
        ("=3", "key.path=value"),
        ("nothing.like.it=3", "nothing"),
        ("seed=-1", "seed"),
        ("model.mean.x=1", "model.mean.x"),
    ] {
        let ended = place.npl(&["run", "m.toml", "--set", set]);
        assert_eq!(ended.code, Some(2), "{set}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(&format!("--set {set}")) && ended.stderr.contains(says),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.ends_with('\n'));
    }
    place.ok(&["run", "m.toml", "--set", "sampler.B=3", "--set", "sampler.B=4", "--set", "name=x y"]);
    assert_eq!(place.read("runs/x y/samples.csv").lines().count(), 5, "the last one wins");
}

#[test]
fn fixed_starts_come_from_fits_a_file_or_a_run() {
    let place = Place::new();
    place.write("g.toml", MIXTURE).write("start.csv", START);
    let swapped = "mu.2.1,mu.1.1,pi.1,pi.2,other,sigma2.1.1,sigma2.2.1\n0,3,0.5,0.5,9,1,1\n";
    place.write("swapped.csv", swapped);
    let run = |out: &str, init: &str| {
        place.ok(&["run", "g.toml", "--out", out, "--set", &format!("sampler.fixed_init={init}")]);
        place.read(&format!("{out}/samples.csv"))
    };
    let best = run("best", "{ best_of = 5 }");
    assert_eq!(best.lines().count(), 13);
    assert!(place.read("best/report.json").contains("FI-NPL"));
    let file = run("file", "{ file = \"start.csv\" }");
    let other = run("swapped", "{ file = \"swapped.csv\" }");
    // Started at (0, 3) or at (3, 0), every draw stays in its labelling.
    let pairs = column(&file, "mu.1.1").into_iter().zip(column(&file, "mu.2.1"));
    assert!(pairs.into_iter().all(|(a, b)| a < b));
    let pairs = column(&other, "mu.1.1").into_iter().zip(column(&other, "mu.2.1"));
    assert!(pairs.into_iter().all(|(a, b)| a > b));
    // A row per component says the same.
    place.write("rows.csv", "component,weight,mean,var\n1,0.5,3,1\n0,0.5,0,1\n");
    assert_eq!(run("rows", "{ file = \"rows.csv\" }"), file);
    place.write("short.csv", "component,weight,mean,var\n0,1,0,1\n");
    let set = "sampler.fixed_init={ file = \"short.csv\" }";
    let ended = place.npl(&["run", "g.toml", "--set", set]);
    assert!(ended.code == Some(2) && ended.stderr.contains("short.csv: 1 rows"), "{}", ended.stderr);
    run("earlier", "{ run = { path = \"file\" } }");
    let third = run("third", "{ run = { path = \"file\", draw = 3 } }");
    let names = "pi.1,pi.2,mu.1.1,mu.2.1,sigma2.1.1,sigma2.2.1";
    let row = cells(&file)[3][9..].join(",");
    place.write("third.csv", format!("{names}\n{row}\n"));
    assert_eq!(run("same", "{ file = \"third.csv\" }"), third);
    let set = "sampler.fixed_init={ run = { path = \"file\", draw = 13 } }";
    let ended = place.npl(&["run", "g.toml", "--set", set]);
    assert!(ended.code == Some(2) && ended.stderr.contains("no draw 13"), "{}", ended.stderr);
}

#[test]
fn stopping_rules_make_fewer_restarts() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    for rule in ["no_improvement = 2", "good_turing = 0.3", "boender_rinnooy_kan = 0.3"] {
        let stop = format!("sampler.stop={{ {rule} }}");
        place.ok(&["run", "g.toml", "--set", "sampler.R=8", "--set", &stop, "--force"]);
        let made = column(&place.read("runs/g/samples.csv"), "restarts__");
        assert!(made.iter().all(|r| (1.0..=8.0).contains(r)), "{rule}: {made:?}");
        assert!(made.iter().any(|&r| r < 8.0), "{rule}: {made:?}");
    }
    place.ok(&["run", "g.toml", "--set", "sampler.R=8", "--force"]);
    assert_eq!(column(&place.read("runs/g/samples.csv"), "restarts__"), [8.0; 12]);
}

#[test]
fn data_come_from_files_of_many_forms() {
    let place = Place::new();
    place.write("e.toml", FROM_FILE);
    let means = |data: &[u8], more: &str| {
        place.write("d.csv", data).write("x.toml", format!("{FROM_FILE}{more}"));
        place.ok(&["run", "x.toml", "--force"]);
        place.read("runs/f/samples.csv").lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let clean = means(b"a\n1\n2\n7\n", "");
    let forms: [(&[u8], &str); 8] = [
        (b"1\n2\n7\n", ""),
        (b"\xef\xbb\xbfa\r\n1\r\n2\r\n7", ""),
        (b"a,b\n1,5\n2,6\n7,8\n", "columns = [\"a\"]"),
        (b"b,a\n5,1\n6,2\n8,7\n", "columns = [\"2\"]"),
        (b"a;b\n1;5\n2;6\n7;8\n", "delimiter = \";\"\ncolumns = [\"a\"]"),
        (b"1\n2\n7\n", "header = false"),
        (b"0\n1\n2\n7\n", "header = true"),
        (b"1\n2\n7\n9\n", "rows = 3"),
    ];
    for (data, more) in forms {
        assert_eq!(means(data, more), clean, "{more} {}", String::from_utf8_lossy(data));
    }
    assert_ne!(means(b"1\n2\n8\n", ""), clean);
    means(b"a,b\n1,5\n2,6\n7,8\n", "");
    assert!(place.read("runs/f/samples.csv").lines().next().unwrap().ends_with("theta.a,theta.b"));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(b"a\n1\n2\n7\n").unwrap();
    assert_eq!(means(&gzip.finish().unwrap(), ""), clean);
    place.write("elsewhere/d.csv", "a\n1\n2\n7\n").write("d.csv", "a\n100\n");
    place.ok(&["run", "e.toml", "--force", "--data-dir", "elsewhere"]);
    assert_eq!(place.read("runs/f/samples.csv").lines().skip(1).collect::<Vec<_>>(), clean);
}

#[test]
fn results_of_changed_data_are_not_overwritten_unasked() {
    let place = Place::new();
    place.write("d.csv", "a\n1\n2\n7\n").write("e.toml", FROM_FILE).ok(&["run", "e.toml"]);
    place.ok(&["run", "e.toml"]);
    let before = place.read("runs/f/samples.csv");
    place.write("d.csv", "a\n1\n2\n8\n");
    let refused = place.npl(&["run", "e.toml"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("an earlier version of") && refused.stderr.contains("d.csv"),
        "{}",
        refused.stderr
    );
    assert_eq!(place.read("runs/f/samples.csv"), before);
    place.ok(&["run", "e.toml", "--force"]);
    assert_ne!(place.read("runs/f/samples.csv"), before);
}

/// A mean has nothing to be tested by: rows must not be put aside for that without a word.
#[test]
fn a_split_without_a_use_is_refused() {
    let place = Place::new();
    place.write("d.csv", "a\n1\n2\n7\n").write("e.toml", FROM_FILE);
    let refused = place.npl(&["run", "e.toml", "--set", "data.split=0.3"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("split"), "{}", refused.stderr);
}

#[test]
fn test_rows_are_a_file_or_a_share() {
    let place = Place::new();
    let base = FROM_FILE.replace("model.mean = {}", "model.normal = { sigma2 = 1.0 }");
    place.write("d.csv", "a\n1\n2\n3\n4\n5\n6\n7\n8\n").write("t.csv", "a\n1\n2\n3\n");
    let report = |more: &str| {
        place.write("e.toml", format!("{base}{more}")).ok(&["run", "e.toml", "--force"]);
        let text = place.read("runs/f/report.csv");
        cells(&text)[1][3..7].iter().map(|c| c.to_string()).collect::<Vec<_>>()
    };
    let none = report("");
    assert_eq!(none, ["8", "0", "20", ""], "no test rows, no LPPD");
    for (more, train, test) in [
        ("test = \"t.csv\"", "8", "3"),
        ("test = \"t.csv\"\ntest_rows = 2", "8", "2"),
        ("split = 0.25", "6", "2"),
    ] {
        let found = report(more);
        assert_eq!(found[..3], [train, test, "20"], "{more}");
        assert!(found[3].parse::<f64>().unwrap() < 0.0, "{more}");
    }
    place.ok(&["run", "e.toml", "--force", "--set", "repeats=2"]);
    let lppd = column(&place.read("runs/f/report.csv"), "lppd");
    assert_ne!(lppd[0], lppd[1], "a new split in each repeat");
}

#[test]
fn without_rows_the_prior_speaks() {
    let place = Place::new();
    place.write("d.csv", "a\n1\n2\n").write("e.toml", FROM_FILE);
    let prior = ["--set", "prior.alpha=3", "--set", "prior.T=50", "--set", NORMAL_BASE];
    let args = ["run", "e.toml", "--set", "data.rows=0", "--set", "sampler.B=2000"];
    place.ok(&[&args[..], &prior[..]].concat());
    let theta = column(&place.read("runs/f/samples.csv"), "theta");
    let variance = theta.iter().map(|t| t * t).sum::<f64>() / 2000.0;
    // τ²(1 + α/T)/(1 + α) = 1.06, and 15 % is five standard errors.
    assert!((variance / 1.06 - 1.0).abs() < 0.16, "{variance}");
    let refused = place.npl(&["run", "e.toml", "--set", "data.rows=0", "--out", "o"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("prior.alpha"), "{}", refused.stderr);
}

#[test]
fn all_truncations_and_base_measures_run() {
    let place = Place::new();
    place.write("h.csv", "1\n2\n5\n").write("m.toml", MEAN).write("g.toml", MIXTURE);
    let text = MEAN.replace("[model.mean]", "[model.normal]\nsigma2 = 1.0\nprior.tau2 = 1.0");
    place.write("n.toml", text);
    let bases = [
        ("m.toml", "{ normal = { mean = 0.0, sd = 2.0 } }"),
        ("m.toml", "{ uniform = { low = -1.0, high = 1.0 } }"),
        ("m.toml", "{ empirical = { file = \"h.csv\" } }"),
        ("n.toml", "\"prior_predictive\""),
        ("g.toml", "\"prior_predictive\""),
    ];
    let mut seen = BTreeSet::new();
    for (file, base) in bases {
        let model_prior = if file == "g.toml" { "model.gmm.prior={}" } else { "repeats=1" };
        let base_set = format!("prior.base={base}");
        let exact = base.contains("empirical");
        let schemes: [&[&str]; 5] = [
            &["prior.T=10"],
            &["prior.T=10", "prior.truncation=stick_breaking"],
            &["prior.truncation={ adaptive = 0.01 }"],
            &["prior.truncation=exact"],
            &[],
        ];
        for scheme in schemes {
            let sets = [&[model_prior, "prior.alpha=4", &base_set], scheme].concat();
            let mut args = vec!["run", file, "--force", "--out", "o"];
            sets.iter().for_each(|set| args.extend(["--set", set]));
            let ended = place.npl(&args);
            if scheme == ["prior.truncation=exact"] && !exact {
                assert!(ended.code == Some(2) && ended.stderr.contains("finite support"), "{}", ended.stderr);
                continue;
            }
            assert_eq!(ended.code, Some(0), "{sets:?}: {}", ended.stderr);
            let new = seen.insert(place.read("o/samples.csv"));
            // Without a truncation, finite support means the exact one, which has been seen by then.
            assert_eq!(new, !(scheme.is_empty() && exact), "{sets:?} gives the draws of another prior");
            if scheme.is_empty() {
                let chosen = if exact { "truncation = \"exact\"" } else { "adaptive = " };
                let resolved = place.read("o/config.toml");
                assert!(resolved.contains(chosen), "{resolved}");
            }
        }
    }
}

#[test]
fn a_folder_keeps_one_experiment_unless_forced() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    place.ok(&["run", "m.toml"]);
    let before = place.read("runs/m/samples.csv");
    place.ok(&["run", "m.toml"]);
    assert_eq!(place.read("runs/m/samples.csv"), before);
    let refused = place.npl(&["run", "m.toml", "--seed", "5"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("runs/m") && refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(place.read("runs/m/samples.csv"), before);
    place.ok(&["run", "m.toml", "--seed", "5", "--force"]);
    assert_ne!(place.read("runs/m/samples.csv"), before);
    assert_eq!(place.list("runs/m"), RESULTS);
    assert!(place.read("runs/m/config.toml").contains("seed = 5\n"));
}

#[test]
fn the_environment_changes_no_byte() {
    let place = Place::new();
    place.write("g.toml", MIXTURE);
    place.ok(&["run", "g.toml", "--out", "plain", "--quiet"]);
    let mut command = place.command(&["run", "g.toml", "--out", "bare", "--quiet"]);
    assert!(command.env_clear().status().unwrap().success());
    let mut command = place.command(&["run", "g.toml", "--out", "odd", "--quiet"]);
    command.env("LC_ALL", "de_DE.UTF-8").env("TZ", "Pacific/Kiritimati").env_remove("HOME");
    command.env("RAYON_NUM_THREADS", "3").env("NPL_DATA", "/nowhere").env("COLUMNS", "20");
    assert!(command.status().unwrap().success());
    let elsewhere = Place::new();
    elsewhere.ok(&["run", &place.path("g.toml").display().to_string(), "--out", "far", "--quiet"]);
    for file in ["samples.csv", "summary.csv", "config.toml"] {
        let plain = place.read(&format!("plain/{file}"));
        assert_eq!(place.read(&format!("bare/{file}")), plain);
        assert_eq!(place.read(&format!("odd/{file}")), plain);
        assert_eq!(elsewhere.read(&format!("far/{file}")), plain);
    }
}
