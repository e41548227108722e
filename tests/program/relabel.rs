//! `npl relabel`, `summary --relabel` and `samples --relabel`: components under the same labels in every draw.

use std::fs;

use crate::support::{Place, cells};

/// Three components that are well apart, in any order in each draw.
const TOY: &str = r#"
name = "g"
seed = 3
data.simulate.mixture = { n = 600, pi = [0.2, 0.3, 0.5], mu = [0.0, 2.0, 4.0], sigma2 = [0.1, 0.1, 0.1] }
model.gmm = { K = 3, variance_floor = 1e-3 }

[sampler]
B = 60
R = 8
init.mu = { uniform = [-1.0, 5.0] }
"#;

fn run(toml: &str, more: &[&str]) -> Place {
    let place = Place::new();
    place.write("g.toml", toml).ok(&[&["run", "g.toml", "--out", "o"], more].concat());
    place
}

/// The values of a column.
fn column(text: &str, name: &str) -> Vec<f64> {
    let rows = cells(text);
    let at = rows[0].iter().position(|n| *n == name).unwrap_or_else(|| panic!("no {name} in {:?}", rows[0]));
    rows[1..].iter().map(|row| row[at].parse().unwrap()).collect()
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)))
}

#[test]
fn aligned_components_are_the_modes() {
    let place = run(TOY, &[]);
    let before: Vec<(String, Vec<u8>)> = place
        .list("o")
        .into_iter()
        .map(|name| (name.clone(), fs::read(place.path("o").join(&name)).unwrap()))
        .collect();
    let said = place.ok(&["relabel", "o"]).stdout;
    assert!(said.starts_with("written to o/samples.relabelled.csv\n"), "{said}");
    for word in ["label  weight", "ambiguous  0.0 % of draws", "permuted", "from draw", "iterations"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // What there was is there, to the byte, and nothing else is new.
    for (name, bytes) in &before {
        assert_eq!(&fs::read(place.path("o").join(name)).unwrap(), bytes, "{name}");
    }
    assert_eq!(place.list("o").len(), before.len() + 1);
    let (plain, text) = (place.read("o/samples.csv"), place.read("o/samples.relabelled.csv"));
    for (k, centre) in [(1, 0.0), (2, 2.0), (3, 4.0)] {
        let (lowest, highest) = range(&column(&text, &format!("mu.{k}.1")));
        assert!(centre - 0.5 < lowest && highest < centre + 0.5, "mu.{k}: {lowest} to {highest}");
        let (lowest, highest) = range(&column(&plain, &format!("mu.{k}.1")));
        assert!(highest - lowest > 1.5, "the draws as they are mix components: {lowest} to {highest}");
    }
    assert!(column(&text, "alignment__").iter().all(|code| *code == 0.0));
    // Each draw has the same numbers, whole components having changed places.
    let triples = |text: &str, row: usize| {
        let of = |block: &str, end: &str, k: usize| column(text, &format!("{block}.{k}{end}"))[row].to_bits();
        let mut all: Vec<_> =
            (1..=3).map(|k| (of("pi", "", k), of("mu", ".1", k), of("sigma2", ".1", k))).collect();
        all.sort_unstable();
        all
    };
    for row in [0, 17, 59] {
        assert_eq!(triples(&plain, row), triples(&text, row));
    }
    assert_eq!(column(&plain, "objective__"), column(&text, "objective__"));
    // Again, the same bytes; to standard output too, with what was done on standard error.
    let piped = place.ok(&["relabel", "o", "--out", "-"]);
    assert_eq!(piped.stdout, text);
    assert!(piped.stderr.contains("ambiguous  0.0 %"), "{}", piped.stderr);
    let summary = place.ok(&["summary", "o", "--relabel", "--format", "csv"]);
    for (k, centre) in [(1, 0.0), (2, 2.0), (3, 4.0)] {
        let mu = cells(&summary.stdout).into_iter().find(|row| row[0] == format!("mu.{k}.1")).unwrap();
        let (mean, sd): (f64, f64) = (mu[1].parse().unwrap(), mu[2].parse().unwrap());
        assert!((mean - centre).abs() < 0.2 && sd < 0.2, "{mu:?}");
    }
    assert!(summary.stderr.contains("0.0 % of draws are ambiguous"), "{}", summary.stderr);
    let said = place.ok(&["summary", "o", "--relabel"]).stdout;
    assert!(said.contains("components aligned") && !said.contains("exchangeable"), "{said}");
    assert!(place.ok(&["summary", "o"]).stdout.contains("--relabel aligns them"));
    // Of another seed the copy would be stale.
    place.ok(&["run", "g.toml", "--out", "o", "--seed", "4", "--force"]);
    assert!(!place.exists("o/samples.relabelled.csv"));
}

#[test]
fn every_format_and_name_style_is_aligned_alike() {
    let place = run(TOY, &["--set", "repeats=2", "--set", "sampler.B=20"]);
    let text = place.ok(&["relabel", "o", "--out", "-"]).stdout;
    assert!(range(&column(&text, "mu.2.1")).1 < 2.5, "both repeats have one order");
    let samples = |run: &str| place.ok(&["samples", run, "--relabel"]).stdout;
    assert_eq!(samples("o"), text);
    let mut endings = vec!["csv.gz", "npy"];
    endings.extend(cfg!(feature = "parquet").then_some("parquet"));
    for ending in endings {
        let set = format!("output.samples=draws.{ending}");
        let args =
            ["run", "g.toml", "--out", ending, "--set", "repeats=2", "--set", "sampler.B=20", "--set", &set];
        place.ok(&args);
        place.ok(&["relabel", ending]);
        assert!(place.exists(&format!("{ending}/draws.relabelled.{ending}")));
        assert_eq!(samples(ending), text, "{ending}");
        place.ok(&["relabel", "o", "--format", ending]);
        place.ok(&["relabel", "o", "--out", &format!("other.{ending}")]);
        let bytes = |name: String| fs::read(place.path(&name)).unwrap();
        let copy = bytes(format!("{ending}/draws.relabelled.{ending}"));
        assert_eq!(bytes(format!("o/samples.relabelled.{ending}")), copy, "{ending}");
        assert_eq!(bytes(format!("other.{ending}")), copy, "{ending}");
    }
    assert!(place.exists("o/samples.relabelled.columns.json") && place.exists("other.columns.json"));
    let args =
        ["run", "g.toml", "--out", "b", "--names", "bracket", "--set", "repeats=2", "--set", "sampler.B=20"];
    place.ok(&args);
    let bracket = samples("b");
    assert_eq!(bracket.split_once('\n').unwrap().1, text.split_once('\n').unwrap().1);
    // A run of a version that did not say what its components are.
    for file in ["o/report.json", "o/manifest.json"] {
        let mut json: serde_json::Value = serde_json::from_str(&place.read(file)).unwrap();
        json["relation"].as_object_mut().unwrap().remove("components").unwrap();
        place.write(file, json.to_string());
    }
    assert_eq!(samples("o"), text);
}

#[test]
fn draws_that_cannot_be_aligned_are_refused() {
    let place = run(TOY, &["--set", "sampler.B=4", "--set", "sampler.R=1"]);
    place
        .write("d.csv", "x\n1\n2\n4\n")
        .write("m.toml", "name = \"m\"\nseed = 1\nmodel.mean = {}\nsampler.B = 4\ndata.train = \"d.csv\"\n");
    place.ok(&["run", "m.toml", "--out", "m"]);
    place.ok(&["run", "g.toml", "--out", "one", "--set", "model.gmm.K=1", "--set", "sampler.B=4"]);
    let path = "[path]\nparameter = \"model.gmm.variance_floor\"\nvalues = [1e-3, 1e-2]\n";
    for (name, keep) in [("some", r#"keep = ["mu.1.1", "mu.2.1"]"#), ("none", "keep = []")] {
        place.write("p.toml", TOY.replace("B = 60", "B = 4") + path + keep + "\n");
        place.ok(&["run", "p.toml", "--out", name]);
    }
    for (args, why) in [
        (vec!["relabel", "m"], "not those of a mixture"),
        (vec!["summary", "m", "--relabel"], "not those of a mixture"),
        (vec!["relabel", "one"], "one component"),
        (vec!["relabel", "some"], "no column pi.1: components can only be aligned if all"),
        (vec!["relabel", "none"], "kept no draws"),
        (vec!["summary", "some", "--relabel"], "the summary of a path"),
        (vec!["relabel", "nowhere"], "no such run directory"),
        (vec!["relabel", "o", "--out", "o/samples.csv"], "is a result of a run"),
        (vec!["relabel", "o", "--out", "o/summary.csv"], "is a result of a run"),
        (vec!["relabel", "o", "--out", "x.txt"], "must end in"),
        (vec!["relabel", "o", "--out", "x.npy", "--format", "csv"], "another format"),
        (vec!["relabel", "o", "--out", "-", "--format", "npy"], "standard output gets CSV"),
    ] {
        let ended = place.npl(&args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{args:?}: {}", ended.stderr);
        ended.assert_decent(&args.join(" "));
    }
}

/// All of a path was kept: each setting has a reference, and labels mean the same along the path.
#[test]
fn settings_of_a_path_have_the_same_labels() {
    let keep: Vec<String> = (1..=3)
        .flat_map(|k| [format!("\"pi.{k}\""), format!("\"mu.{k}.1\""), format!("\"sigma2.{k}.1\"")])
        .collect();
    let path = format!(
        "[path]\nparameter = \"model.gmm.variance_floor\"\nvalues = [1e-3, 2e-3, 4e-3]\nkeep = [{}]\n",
        keep.join(", ")
    );
    let place = run(&(TOY.replace("B = 60", "B = 20") + &path), &[]);
    let said = place.ok(&["relabel", "o"]).stdout;
    assert!(said.contains("2 more have references of their own"), "{said}");
    let text = place.read("o/samples.relabelled.csv");
    for (k, centre) in [(1, 0.0), (2, 2.0), (3, 4.0)] {
        let (lowest, highest) = range(&column(&text, &format!("mu.{k}.1")));
        assert!(centre - 0.5 < lowest && highest < centre + 0.5, "mu.{k}: {lowest} to {highest}");
    }
}

/// Chains and weighted draws are aligned as they are, by their weights.
#[test]
fn other_methods_are_aligned_too() {
    let prior = "model.gmm = { K = 3, variance_floor = 1e-3, prior = { mu = [2.0, 2.0] } }";
    let toml = TOY.replace("model.gmm = { K = 3, variance_floor = 1e-3 }", prior).replace("R = 8\n", "");
    let toml = toml.replace("init.mu = { uniform = [-1.0, 5.0] }\n", "");
    let place = Place::new();
    place.write("g.toml", toml + "\n[nuts]\nchains = 3\nwarmup = 200\n");
    place.ok(&["run", "g.toml", "--out", "nuts", "--set", "method=nuts"]);
    let aligned = place.ok(&["relabel", "nuts", "--out", "-"]).stdout;
    let middle = |name: &str| {
        let mut values = column(&aligned, name);
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let mut middles = ["mu.1.1", "mu.2.1", "mu.3.1"].map(middle);
    middles.sort_by(f64::total_cmp);
    for (found, centre) in middles.iter().zip([0.0, 2.0, 4.0]) {
        assert!((found - centre).abs() < 0.5, "{middles:?}");
    }
    let header = place.ok(&["summary", "nuts", "--relabel", "--format", "csv"]).stdout;
    assert!(header.lines().next().unwrap().ends_with("rhat,ess_bulk,ess_tail"), "{header}");
    let proposal =
        "{ pi = { dirichlet = 1.0 }, mu = { normal = [2.0, 2.0] }, sigma2 = { log_normal = [-1.0, 1.0] } }";
    let set = format!("importance.proposal={proposal}");
    let importance = [
        "run",
        "g.toml",
        "--out",
        "is",
        "--set",
        "method=importance",
        "--set",
        "sampler.B=5000",
        "--set",
        &set,
    ];
    let toml: String = place.read("g.toml").split("\n[nuts]").next().unwrap().to_owned();
    place.write("g.toml", toml);
    place.ok(&importance);
    assert!(place.ok(&["relabel", "is"]).stdout.contains("permuted"));
    assert!(place.ok(&["summary", "is", "--relabel"]).stdout.contains("components aligned"));
}
