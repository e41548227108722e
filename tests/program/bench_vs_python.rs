//! scripts/bench_vs_python.py, where there is a Python with numpy, scipy and joblib: $NPL_PYTHON, or python3 on the path.
//! Elsewhere these tests say that they were skipped. Times are not judged, minima are.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{Place, python, script};
use serde_json::Value;

const MODULES: &str = "numpy, scipy.optimize, joblib";

fn bench(python: &str, place: &Place, args: &[&str], data: Option<PathBuf>) -> Output {
    let mut command = Command::new(python);
    command.current_dir(place.path(".")).env_remove("NPL_DATA").env("PYTHONDONTWRITEBYTECODE", "1");
    let always = ["--npl", env!("CARGO_BIN_EXE_npl"), "--out", "out", "--rounds", "1"];
    command.arg(script("bench_vs_python.py")).args(always);
    data.into_iter().for_each(|folder| {
        command.env("NPL_DATA", folder);
    });
    command.args(args).output().unwrap()
}

fn results(output: &Output, place: &Place) -> Vec<Value> {
    assert!(place.exists("out/results.json"), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_str(&place.read("out/results.json")).unwrap();
    results["jobs"].as_array().unwrap().clone()
}

/// EM in numpy, one restart at a time and all in one array, finds the same minima; those of npl are as low, and lower by
/// no more than an early stop explains.
#[test]
fn em_in_numpy_ends_where_npl_does() {
    let Some(python) = python(MODULES) else { return };
    let place = Place::new();
    let args = ["--jobs", "toy,toy-array,toy-fi,adult", "--draws", "2", "--npl-draws", "3"];
    let output = bench(&python, &place, &args, None);
    let jobs = results(&output, &place);
    assert_eq!((output.status.code(), jobs.len()), (Some(0), 3));
    assert_eq!(jobs[0]["python_objective"], jobs[1]["python_objective"]);
    for job in &jobs {
        assert_eq!((&job["npl_draws"], &job["python_draws"]), (&3.into(), &2.into()));
        let excess = job["excess"].as_f64().unwrap();
        assert!((-1e-3..=1e-6).contains(&excess), "{job}");
        assert!(job["ratio"].as_f64().unwrap() > 0.0, "{job}");
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("skipped: Adult") && stderr.contains("adult/adult.data.gz"), "{stderr}");
    assert_eq!(place.read("out/table.md").lines().count(), 5);
    let unknown = bench(&python, &place, &["--jobs", "toys"], None);
    assert_eq!(unknown.status.code(), Some(2));
}

/// Every setting of the path is minimised with its own penalty: the script writes no results if the objectives that it
/// evaluates are not those that npl reports. Two draws may well end in different minima.
#[test]
fn every_setting_of_the_path_is_the_same_loss() {
    let Some(python) = python(MODULES) else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = std::env::var_os("NPL_DATA").map(PathBuf::from).into_iter();
    let mut folders = folders.chain([root.join("data"), root.join("../shared/data")]);
    let Some(data) = folders.find(|folder| folder.join("genetics/genotypes.csv").exists()) else {
        println!("skipped: genetics/genotypes.csv is in none of $NPL_DATA, ./data and ../shared/data");
        return;
    };
    let place = Place::new();
    let output = bench(&python, &place, &["--jobs", "path", "--draws", "2", "--npl-draws", "3"], Some(data));
    let jobs = results(&output, &place);
    assert_eq!((&jobs[0]["npl_draws"], &jobs[0]["python_draws"]), (&15.into(), &10.into()));
}
