//! scripts/npl_to_arviz.py, where there is a Python with ArviZ: $NPL_PYTHON, or python3 on the path. Elsewhere this test
//! says that it was skipped.

use std::path::Path;
use std::process::Command;

use crate::support::{Place, cells};
use serde_json::Value;

/// Two chains of a mixture; `mu` is an array, components by columns.
const MIXTURE: &str = r#"
name = "g"
seed = 7
repeats = 2
data.simulate.mixture = { n = 60, pi = [0.3, 0.7], mu = [[0.0, 1.0], [3.0, 2.0]], sigma2 = [[1.0, 1.0], [1.0, 1.0]] }
model.gmm = { K = 2, variance_floor = 1e-4 }
sampler.B = 5
"#;

/// Means of columns that have names, of which one is a number.
const MEANS: &str = "name = \"m\"\nseed = 1\nmodel.mean = {}\nsampler.B = 4\n[data]\ntrain = \"d.csv\"\n";

/// Every variable of every run as JSON: its shape, its values as text that reads back exactly, its last labels.
const SHOW: &str = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
from npl_to_arviz import load
def show(run):
    data = load(run)
    groups = {group: data[group] for group in ("posterior", "sample_stats")}
    return {f"{group}/{name}": [list(values.shape), [repr(float(v)) for v in values.values.ravel()],
                [str(label) for label in values.coords[values.dims[-1]].values]]
            for group, variables in groups.items() for name, values in variables.data_vars.items()}
print(json.dumps({run: show(run) for run in sys.argv[2:]}))
"#;

/// Whether this Python has a module.
fn has(python: &str, module: &str) -> bool {
    let output = Command::new(python).args(["-c", &format!("import {module}")]).output();
    output.is_ok_and(|o| o.status.success())
}

#[test]
fn arviz_gets_every_draw_in_its_place() {
    let Some(python) = crate::support::python("arviz") else { return };
    let place = Place::new();
    place.write("g.toml", MIXTURE).write("m.toml", MEANS).write("d.csv", "age,3\n1,2\n3,5\n4,4\n");
    let mut runs = vec!["csv", "csv.gz", "npy"];
    if cfg!(feature = "parquet") && has(&python, "pyarrow") {
        runs.push("parquet");
    }
    for format in &runs {
        let set = format!("output.samples=draws.{format}");
        place.ok(&["run", "g.toml", "--out", format, "--set", &set]);
    }
    place.ok(&["run", "g.toml", "--out", "bracket", "--names", "bracket"]);
    place.ok(&["run", "m.toml", "--out", "means"]);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut command = Command::new(&python);
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(place.path("."))
        .args(["-c", SHOW])
        .arg(&scripts)
        .args(&runs);
    let output = command.args(["bracket", "means"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
    let first = &shown["csv"];
    assert_eq!(first["posterior/pi"][0], serde_json::json!([2, 5, 2]), "{first}");
    assert_eq!(first["posterior/mu"][0], serde_json::json!([2, 5, 2, 2]), "{first}");
    assert_eq!(first["sample_stats/objective"][0], serde_json::json!([2, 5]), "{first}");
    let text = place.read("csv/draws.csv");
    let rows = cells(&text);
    let of = |names: &[&str]| -> Vec<f64> {
        let place = |name: &&str| rows[0].iter().position(|n| n == name).unwrap();
        let places: Vec<usize> = names.iter().map(place).collect();
        rows[1..].iter().flat_map(|row| places.iter().map(|&j| row[j].parse().unwrap())).collect()
    };
    let values = |shown: &Value| -> Vec<f64> {
        shown[1].as_array().unwrap().iter().map(|v| v.as_str().unwrap().parse().unwrap()).collect()
    };
    assert_eq!(values(&first["posterior/mu"]), of(&["mu.1.1", "mu.1.2", "mu.2.1", "mu.2.2"]));
    assert_eq!(values(&first["sample_stats/objective"]), of(&["objective__"]));
    for run in runs.iter().chain(&["bracket"]) {
        assert_eq!(shown[run], *first, "{run}");
    }
    let theta = &shown["means"]["posterior/theta"];
    assert_eq!(theta[0], serde_json::json!([1, 4, 2]), "{theta}");
    assert_eq!(theta[2], serde_json::json!(["age", "3"]), "{theta}");
    if !has(&python, "h5py") {
        println!("skipped: {python} has no h5py to write netCDF with");
        return;
    }
    let mut command = Command::new(&python);
    command.current_dir(place.path(".")).arg(scripts.join("npl_to_arviz.py")).args(["csv", "out.nc"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(place.exists("out.nc"));
}

/// Chains are chains, divergences have ArviZ's name, and its R̂ and effective sizes are ours.
#[test]
fn arviz_sees_the_same_chains() {
    let python = std::env::var("NPL_PYTHON").unwrap_or_else(|_| "python3".into());
    if !has(&python, "arviz") {
        println!("skipped: {python} has no ArviZ; set NPL_PYTHON to one that has");
        return;
    }
    let place = Place::new();
    let nuts = "method = \"nuts\"\nmodel.gmm.prior = {}\nnuts = { chains = 3, warmup = 50 }\n";
    let toml =
        MIXTURE.replace("sampler.B = 5", &format!("sampler.B = 60\n{nuts}")).replace("repeats = 2\n", "");
    let toml =
        toml.replace("model.gmm = {", "model.gmm = { prior = {},").replace("model.gmm.prior = {}\n", "");
    place.write("n.toml", toml).ok(&["run", "n.toml", "--out", "nuts"]);
    let script = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
import arviz as az
from npl_to_arviz import load
data = load("nuts")
pi = data["posterior"]["pi"].values[:, :, 0]
tail = float(az.ess(pi, method="tail")) if az.__version__.startswith("0") else None
print(json.dumps([list(pi.shape), str(data["sample_stats"]["diverging"].dtype), float(az.rhat(pi)), float(az.ess(pi)), tail]))
"#;
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let output = Command::new(&python)
        .args(["-c", script, scripts.to_str().unwrap()])
        .current_dir(place.path("."))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let found: Value =
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!((&found[0], &found[1]), (&serde_json::json!([3, 20]), &serde_json::json!("bool")));
    let summary = place.read("nuts/summary.csv");
    let line: Vec<f64> =
        summary.lines().nth(1).unwrap().split(',').skip(1).map(|c| c.parse().unwrap()).collect();
    for (ours, theirs) in line[line.len() - 3..].iter().zip(2..5) {
        if let Some(theirs) = found[theirs].as_f64() {
            assert!((ours / theirs - 1.0).abs() < 1e-8, "{ours} for {theirs}");
        }
    }
}
