//! What must fail, and how well it fails: exit code, message, nothing written, nothing a terminal would obey.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Ended, Place, assert_decent, cells, config, patience, wait_for_work, wait_until};

/// An experiment without fault, for cases that break one thing. Lines matter: cases name them.
const GOOD: &str = r#"name = "good"
seed = 1
repeats = 1
method = "npl"

[data.simulate.mixture]
n = 30
n_test = 10
pi = [0.5, 0.5]
mu = [0.0, 3.0]
sigma2 = [1.0, 1.0]

[model.gmm]
K = 2
variance_floor = 1e-4

[prior]
alpha = 1.0
T = 5
base = { normal = { mean = 0.0, sd = 1.0 } }

[sampler]
B = 5
R = 2
init.pi = { dirichlet = 1.0 }
init.mu = { uniform = [-2.0, 6.0] }
init.sigma2 = { inverse_gamma = [1.0, 1.0] }

[optimiser]
tolerance = 1e-3

[evaluate]
metrics = ["lppd"]
"#;

/// The mean of the rows of `d.csv`; keys of [data] may follow.
const FROM_FILE: &str = r#"name = "f"
seed = 1
model.mean = {}
sampler.B = 5

[data]
train = "d.csv"
"#;

/// A run that takes far longer than any test.
const LONG: [&str; 4] = ["--set", "sampler.B=1000000", "--out", "out"];

/// Runs a case, which must be refused with all of `says`, leaving nothing behind.
fn refused(place: &Place, case: &str, args: &[&str], says: &[&str]) -> Ended {
    let before = place.list(".");
    let ended = place.npl(args);
    assert_eq!(ended.code, Some(2), "{case}: {} {}", ended.stdout, ended.stderr);
    assert!(!ended.stderr.trim().is_empty(), "{case}: no message");
    assert_eq!(ended.stdout, "", "{case}");
    ended.assert_decent(case);
    for text in says {
        assert!(ended.stderr.contains(text), "{case}: no {text:?} in\n{}", ended.stderr);
    }
    assert!(ended.stderr.ends_with('\n'), "{case}: {:?}", ended.stderr);
    assert_eq!(place.list("."), before, "{case}: something was written");
    // A loaded machine takes its time, and what hangs takes far more.
    assert!(ended.took < patience(Duration::from_secs(60)), "{case}: {:?}", ended.took);
    ended
}

#[test]
fn the_experiments_that_cases_break_are_good() {
    let place = Place::new();
    place.write("e.toml", GOOD).ok(&["run", "e.toml"]);
    place.write("e.toml", FROM_FILE).write("d.csv", "a\n1\n2\n").ok(&["run", "e.toml"]);
}

/// What stands in `GOOD`, what takes its place, and what the message must name.
type Edit = (&'static str, &'static str, &'static [&'static str]);

fn try_edits(edits: &[Edit]) {
    let place = Place::new();
    for (from, to, says) in edits {
        assert_eq!(GOOD.matches(from).count(), 1, "{from:?} must occur once");
        place.write("e.toml", GOOD.replace(from, to));
        refused(&place, &format!("{from:?} -> {to:?}"), &["run", "e.toml"], &[&["e.toml"], *says].concat());
    }
}

#[test]
fn broken_toml() {
    try_edits(&[
        ("name = \"good\"", "name = \"good", &["e.toml:1"]),
        ("name = \"good\"", "name = good", &["e.toml:1"]),
        ("name = \"good\"", "name", &["e.toml:1"]),
        ("name = \"good\"", "= \"good\"", &["e.toml:1"]),
        ("seed = 1", "seed = ", &["e.toml:2"]),
        ("seed = 1", "seed == 1", &["e.toml:2"]),
        ("seed = 1", "seed = 1 2", &["e.toml:2"]),
        ("seed = 1", "seed = 1\nseed = 2", &["e.toml:3", "seed"]),
        ("[sampler]", "[sampler", &["e.toml:22"]),
        ("[sampler]", "[sampler]]", &["e.toml:22"]),
        ("[sampler]", "[prior]", &["e.toml:22"]),
        ("[sampler]", "[[sampler]]", &["e.toml:22", "sampler"]),
        ("pi = [0.5, 0.5]", "pi = [0.5, 0.5", &["e.toml:"]),
        ("pi = [0.5, 0.5]", "pi = [0.5 0.5]", &["e.toml:9"]),
        ("B = 5", "B = 05", &["e.toml:23"]),
        ("B = 5", "B = 5_", &["e.toml:23"]),
        ("alpha = 1.0", "alpha = 1.", &["e.toml:18"]),
        ("alpha = 1.0", "alpha = .5", &["e.toml:18"]),
        ("alpha = 1.0", "alpha = 1,5", &["e.toml:18"]),
        ("method = \"npl\"", "method = \"\\q\"", &["e.toml:4"]),
        ("method = \"npl\"", "method = \"\u{1b}]0;x\u{7}\"", &["e.toml:4"]),
        ("sd = 1.0 } }", "sd = 1.0 }", &["e.toml:22"]),
        ("init.pi = { dirichlet = 1.0 }", "init = 3\ninit.pi = { dirichlet = 1.0 }", &["e.toml:26"]),
    ]);
}

#[test]
fn unknown_keys_in_every_table() {
    try_edits(&[
        ("seed = 1", "sede = 1", &["e.toml:2:1", "`sede`", "`seed`"]),
        ("repeats = 1", "repeat = 1", &["e.toml:3:1", "`repeats`"]),
        ("repeats = 1", "B = 100", &["e.toml:3:1", "`B` belongs in [sampler]"]),
        ("n = 30\n", "n = 30\nrows = 5\n", &["e.toml:8:1", "data.simulate.mixture.rows"]),
        ("n_test = 10", "ntest = 10", &["e.toml:8:1", "`n_test`"]),
        ("[data.simulate.mixture]", "[data.simulate.mixtur]", &["e.toml:6", "`mixture`"]),
        ("[data.simulate.mixture]", "[data.simulated.mixture]", &["e.toml:6", "`simulate`"]),
        ("[data.simulate.mixture]", "[dat.simulate.mixture]", &["e.toml:6", "`data`"]),
        ("[model.gmm]", "[model.gnm]", &["e.toml:13", "`gmm`"]),
        ("[model.gmm]", "[models.gmm]", &["e.toml:13", "`model`"]),
        ("K = 2", "k = 2", &["e.toml:14:1", "`K`"]),
        ("variance_floor", "variance_flor", &["e.toml:15:1", "`variance_floor`"]),
        ("alpha = 1.0", "alpah = 1.0", &["e.toml:18:1", "`alpha`"]),
        ("T = 5", "t = 5", &["e.toml:19:1", "`T`"]),
        ("mean = 0.0, sd", "mu = 0.0, sd", &["e.toml:20", "`prior.base.normal.mu`"]),
        ("{ normal =", "{ norm =", &["e.toml:20", "`normal`"]),
        ("B = 5", "b = 5", &["e.toml:23:1", "`B`"]),
        ("R = 2", "restarts = 2", &["e.toml:24:1", "`sampler.restarts`"]),
        ("init.pi = { dirichlet", "init.pi = { dirichle", &["e.toml:25", "`dirichlet`"]),
        ("init.pi =", "init.pie =", &["e.toml:25", "sampler.init.pie", "`pi`"]),
        ("init.mu = { uniform", "init.mu = { unifrom", &["e.toml:26", "`uniform`"]),
        ("tolerance", "tolerence", &["e.toml:30:1", "`tolerance`"]),
        ("metrics", "metric", &["e.toml:33:1", "`metrics`"]),
        ("[evaluate]", "[evalute]", &["e.toml:32", "`evaluate`"]),
        ("[optimiser]", "[optimizer]", &["e.toml:29", "`optimiser`"]),
        ("seed = 1", "\"\\u001b]0;x\\u0007\" = 1", &["e.toml:2:1"]),
        ("seed = 1", "\"\\u202egro.live\" = 1", &["e.toml:2:1", "\\u{202e}"]),
    ]);
}

#[test]
fn wrong_types() {
    try_edits(&[
        ("name = \"good\"", "name = 3", &["e.toml:1", "`name`", "string"]),
        ("seed = 1", "seed = \"one\"", &["e.toml:2", "`seed`", "integer"]),
        ("seed = 1", "seed = 1.5", &["e.toml:2", "`seed`", "integer"]),
        ("seed = 1", "seed = true", &["e.toml:2", "`seed`"]),
        ("seed = 1", "seed = 2026-11-16", &["e.toml:2", "`seed`"]),
        ("repeats = 1", "repeats = [1]", &["e.toml:3", "`repeats`"]),
        ("repeats = 1", "repeats = { n = 1 }", &["e.toml:3", "`repeats`"]),
        ("method = \"npl\"", "method = 1", &["e.toml:4", "`method`"]),
        ("n = 30\n", "n = \"thirty\"\n", &["e.toml:7", "data.simulate.mixture.n", "integer"]),
        ("n = 30\n", "n = 30.0\n", &["e.toml:7", "integer"]),
        ("pi = [0.5, 0.5]", "pi = 0.5", &["e.toml:9", "data.simulate.mixture.pi"]),
        ("pi = [0.5, 0.5]", "pi = [0.5, \"half\"]", &["e.toml:9", "pi[1]", "number"]),
        ("mu = [0.0, 3.0]", "mu = [[0.0, [1.0]], 3.0]", &["e.toml:10", "mu"]),
        ("[model.gmm]\nK = 2", "[model]\ngmm = 3\nK = 2", &["e.toml:14", "model"]),
        ("K = 2", "K = 2.5", &["e.toml:14", "model.gmm.K", "integer"]),
        ("K = 2", "K = []", &["e.toml:14", "model.gmm.K", "integer"]),
        (
            "K = 2",
            "K = 2\nvariance_added = 1e-6",
            &["e.toml:15", "model.gmm.variance_added", "`optimiser.change`"],
        ),
        ("K = 2", "K = 2\ncovariance = \"full\"\nvariance_added = 1e-6", &["e.toml:16", "diagonal"]),
        ("variance_floor = 1e-4", "variance_floor = \"small\"", &["e.toml:15", "number"]),
        ("alpha = 1.0", "alpha = \"1\"", &["e.toml:18", "`prior.alpha`", "number"]),
        ("T = 5", "T = 5.0", &["e.toml:19", "`prior.T`", "integer"]),
        ("T = 5", "T = 5\ntruncation = \"dirchlet\"", &["e.toml:20", "prior.truncation", "`dirichlet`"]),
        ("base = { normal = { mean = 0.0, sd = 1.0 } }", "base = \"normal\"", &["e.toml:20", "prior.base"]),
        ("base = { normal = { mean = 0.0, sd = 1.0 } }", "base = 3", &["e.toml:20", "prior.base"]),
        ("B = 5", "B = \"many\"", &["e.toml:23", "`sampler.B`", "integer"]),
        ("R = 2", "R = \"ten\"", &["e.toml:24", "`sampler.R`", "integer"]),
        ("init.pi = { dirichlet = 1.0 }", "init.pi = 0.5", &["e.toml:25", "sampler.init.pi"]),
        ("uniform = [-2.0, 6.0]", "uniform = [-2.0]", &["e.toml:26", "sampler.init.mu"]),
        ("uniform = [-2.0, 6.0]", "uniform = [-2.0, 6.0, 7.0]", &["e.toml:26", "sampler.init.mu"]),
        ("uniform = [-2.0, 6.0]", "uniform = 2.0", &["e.toml:26", "sampler.init.mu"]),
        ("metrics = [\"lppd\"]", "metrics = \"lppd\"", &["e.toml:33", "evaluate.metrics"]),
        ("metrics = [\"lppd\"]", "metrics = [\"lpd\"]", &["e.toml:33", "`lppd`"]),
        ("tolerance = 1e-3", "tolerance = \"1e-3\"", &["e.toml:30", "optimiser.tolerance"]),
    ]);
}

#[test]
fn out_of_range() {
    try_edits(&[
        ("seed = 1", "seed = -1", &["e.toml:2", "`seed`"]),
        ("seed = 1", "seed = 9223372036854775808", &["e.toml:2", "`seed`"]),
        ("seed = 1", "seed = 99999999999999999999999999", &["e.toml:2", "`seed`"]),
        ("repeats = 1", "repeats = 0", &["e.toml:3", "`repeats`", "at least 1"]),
        ("repeats = 1", "repeats = 9223372036854775807", &["e.toml:3", "`repeats`", "at most"]),
        ("method = \"npl\"", "method = \"hmc\"", &["e.toml:4", "`method`"]),
        ("n = 30\n", "n = -1\n", &["e.toml:7", "at least 0"]),
        ("n = 30\n", "n = 9223372036854775807\n", &["data.simulate", "at most"]),
        ("n_test = 10", "n_test = 1000000000000", &["data.simulate", "at most"]),
        ("pi = [0.5, 0.5]", "pi = [0.5, -0.5]", &["e.toml:9", "pi[1]"]),
        ("pi = [0.5, 0.5]", "pi = [0.0, 1.0]", &["e.toml:9", "pi[0]"]),
        ("pi = [0.5, 0.5]", "pi = []", &["e.toml:9", "mixture.pi"]),
        ("mu = [0.0, 3.0]", "mu = [0.0, inf]", &["e.toml:10", "finite"]),
        ("sigma2 = [1.0, 1.0]\n", "sigma2 = [1.0, 0.0]\n", &["e.toml:11", "sigma2"]),
        ("sigma2 = [1.0, 1.0]\n", "sigma2 = [1.0, nan]\n", &["e.toml:11", "finite"]),
        ("K = 2", "K = 0", &["e.toml:14", "model.gmm.K"]),
        ("K = 2", "K = 31", &["e.toml:14", "model.gmm.K", "30 rows"]),
        ("K = 2", "K = 9223372036854775807", &["e.toml:14", "model.gmm.K"]),
        ("variance_floor = 1e-4", "variance_floor = 0.0", &["e.toml:15", "variance_floor"]),
        ("variance_floor = 1e-4", "variance_floor = -1", &["e.toml:15", "variance_floor"]),
        ("variance_floor = 1e-4", "variance_floor = 1e400", &["e.toml:15"]),
        ("alpha = 1.0", "alpha = -1.0", &["e.toml:18", "`prior.alpha`", "at least 0"]),
        ("alpha = 1.0", "alpha = nan", &["e.toml:18", "`prior.alpha`", "finite"]),
        ("alpha = 1.0", "alpha = inf", &["e.toml:18", "`prior.alpha`", "finite"]),
        ("alpha = 1.0\nT = 5", "alpha = 1e12", &["e.toml:18", "`prior.alpha`", "prior.T"]),
        ("alpha = 1.0\nT = 5", "alpha = 1e300", &["e.toml:18", "`prior.alpha`", "prior.T"]),
        ("T = 5", "T = 0", &["e.toml:19", "`prior.T`", "at least 1"]),
        ("T = 5", "T = 9223372036854775807", &["e.toml:19", "`prior.T`", "at most"]),
        ("T = 5", "truncation = { adaptive = 0 }", &["e.toml:19", "prior.truncation.adaptive"]),
        ("T = 5", "truncation = { adaptive = 1 }", &["e.toml:19", "prior.truncation.adaptive"]),
        ("mean = 0.0, sd = 1.0", "mean = 0.0, sd = 0.0", &["e.toml:20", "prior.base.normal.sd"]),
        ("mean = 0.0, sd = 1.0", "mean = nan, sd = 1.0", &["e.toml:20", "prior.base.normal.mean"]),
        (
            "normal = { mean = 0.0, sd = 1.0 }",
            "uniform = { low = 1, high = 1 }",
            &["e.toml:20", "uniform.high"],
        ),
        ("B = 5", "B = 0", &["e.toml:23", "`sampler.B`", "at least 1"]),
        ("B = 5", "B = -5", &["e.toml:23", "`sampler.B`"]),
        ("B = 5", "B = 9223372036854775807", &["e.toml:23", "`sampler.B`", "at most"]),
        ("R = 2", "R = 0", &["e.toml:24", "`sampler.R`", "at least 1"]),
        ("R = 2", "R = 1000000000000", &["e.toml:24", "`sampler.R`", "at most"]),
        ("R = 2", "R = 2\nmax_failed = 1.5", &["e.toml:25", "max_failed"]),
        ("R = 2", "R = 2\nstop = { no_improvement = 0 }", &["e.toml:25", "no_improvement"]),
        ("R = 2", "R = 2\nstop = { good_turing = 2.0 }", &["e.toml:25", "good_turing"]),
        ("R = 2", "fixed_init = { best_of = 0 }", &["e.toml:24", "best_of"]),
        ("dirichlet = 1.0", "dirichlet = 0.0", &["e.toml:25", "dirichlet"]),
        ("uniform = [-2.0, 6.0]", "uniform = [6.0, -2.0]", &["e.toml:26", "sampler.init.mu"]),
        ("inverse_gamma = [1.0, 1.0]", "inverse_gamma = [1.0, 0.0]", &["e.toml:27", "inverse_gamma"]),
        ("inverse_gamma = [1.0, 1.0]", "uniform = [-1.0, 1.0]", &["e.toml:27", "sampler.init.sigma2"]),
        ("tolerance = 1e-3", "tolerance = 0", &["e.toml:30", "optimiser.tolerance"]),
        ("tolerance = 1e-3", "max_iterations = 0", &["e.toml:30", "optimiser.max_iterations"]),
    ]);
}

#[test]
fn missing_keys_and_contradictions() {
    try_edits(&[
        ("name = \"good\"\n", "", &["`name`"]),
        ("B = 5\n", "", &["`sampler.B`"]),
        ("K = 2\n", "", &["`model.gmm.K`"]),
        ("variance_floor = 1e-4\n", "", &["`model.gmm.variance_floor`"]),
        ("alpha = 1.0\n", "", &["`prior.alpha`"]),
        ("mean = 0.0, sd", "sd", &["`prior.base.normal.mean`"]),
        ("pi = [0.5, 0.5]\n", "", &["`data.simulate.mixture.pi`"]),
        ("[model.gmm]\nK = 2\nvariance_floor = 1e-4\n", "", &["`model`"]),
        ("K = 2\n", "K = 2\n[model.mean]\n", &["`model`", "one key only"]),
        ("base = { normal = { mean = 0.0, sd = 1.0 } }\n", "", &["e.toml:17", "prior.base"]),
        (
            "base = { normal = { mean = 0.0, sd = 1.0 } }",
            "base = \"prior_predictive\"",
            &["e.toml:20", "model.gmm.prior"],
        ),
        ("[data.simulate", "[data]\nstandardise = \"all\"\n[data.simulate", &["e.toml:", "from a file"]),
        ("[data.simulate", "[data]\nunseen = \"zero\"\n[data.simulate", &["e.toml:", "from a file"]),
        ("[data.simulate", "[data]\nmissing = \"drop\"\n[data.simulate", &["e.toml:", "from a file"]),
        ("[data.simulate", "[data]\nconstant = \"zero\"\n[data.simulate", &["e.toml:", "from a file"]),
        ("[data.simulate", "[data]\ndummies = \"keep_all\"\n[data.simulate", &["e.toml:", "from a file"]),
        ("[data.simulate", "[data]\nstandardise_by = \"each\"\n[data.simulate", &["e.toml:", "from a file"]),
        ("mean = 0.0, sd = 1.0", "mean = [0.0, 1.0], sd = 1.0", &["e.toml:20", "2 values for 1 columns"]),
        ("T = 5", "T = 5\ntruncation = { adaptive = 0.01 }", &["e.toml:19", "prior.T"]),
        ("T = 5", "truncation = \"dirichlet\"", &["prior.T"]),
        ("T = 5", "truncation = \"exact\"", &["e.toml:19", "finite support"]),
        ("mu = [0.0, 3.0]", "mu = [0.0, 3.0, 5.0]", &["e.toml:10", "3 entries for 2 components"]),
        ("mu = [0.0, 3.0]", "mu = [[0.0, 1.0], [3.0]]", &["e.toml:10", "columns"]),
        ("R = 2", "R = 2\nfixed_init = { best_of = 3 }", &["e.toml:24", "`fixed_init`"]),
        ("R = 2", "stop = { no_improvement = 2 }", &["e.toml:24", "`stop`"]),
        ("R = 2", "fixed_init = { file = \"start.csv\" }", &["e.toml:25", "`init` has no use"]),
        (
            "init.mu = { uniform = [-2.0, 6.0] }",
            "init.mu = { dirichlet = 1.0 }",
            &["e.toml:26", "sampler.init.mu"],
        ),
        (
            "init.mu = { uniform = [-2.0, 6.0] }",
            "init.mu = { constant = [1.0] }",
            &["e.toml:26", "sampler.init.mu"],
        ),
        ("init.pi = { dirichlet = 1.0 }", "init.pi = { constant = [0.5, 0.6] }", &["e.toml:25", "sum to 1"]),
        (
            "init.mu = { uniform = [-2.0, 6.0] }",
            "init.mu = { file = \"gone.csv\" }",
            &["e.toml:26", "gone.csv"],
        ),
        ("n = 30\n", "n = 1\n", &["e.toml:14", "model.gmm.K"]),
        ("n_test = 10", "n_test = 0", &["e.toml:33", "lppd", "test data"]),
        ("variance_floor = 1e-4", "variance_floor = 1e-4\ngamma = 1.0", &["e.toml:16", "`penalty`"]),
        (
            "variance_floor = 1e-4",
            "variance_floor = 1e-4\npenalty = { inverse_gamma = [1.0, 1.0] }",
            &["gamma"],
        ),
        (
            "[data.simulate.mixture]",
            "[data]\nsplit = 0.5\n[data.simulate.mixture]",
            &["e.toml:7", "`data.split`"],
        ),
        (
            "[data.simulate.mixture]",
            "[data]\ntrain = \"d.csv\"\n[data.simulate.mixture]",
            &["exclude each other"],
        ),
        ("seed = 1\nrepeats = 1", "seed = 9223372036854775807\nrepeats = 2", &["e.toml:2", "seed"]),
    ]);
}

#[test]
fn names_that_are_no_folder_names() {
    let place = Place::new();
    let long = "x".repeat(300);
    let names = [
        "",
        ".",
        "..",
        "../x",
        "/etc/x",
        "a/b",
        "a\\\\b",
        ".hidden",
        "a:b",
        "a*",
        "a\\nb",
        "a\\u0000b",
        "~",
        "\\u001b[31mred",
        "\\u202etxt.exe",
        "-\\t",
        "$HOME",
        "a|b",
        "<b>",
        &long,
    ];
    for name in names {
        place.write("e.toml", GOOD.replace("\"good\"", &format!("\"{name}\"")));
        refused(&place, &format!("name {name:?}"), &["run", "e.toml"], &["e.toml:1", "`name`"]);
    }
}

#[test]
fn three_mistakes_are_three_messages() {
    let place = Place::new();
    let text =
        GOOD.replace("alpha = 1.0", "alpah = 1").replace("B = 5", "B = 0").replace("R = 2", "R = \"ten\"");
    place.write("e.toml", text);
    let says = [
        "e.toml:18:1: unknown key `prior.alpah`; did you mean `alpha`?",
        "e.toml:23:5: `sampler.B` must be an integer of at least 1",
        "e.toml:24:5: `sampler.R` must be an integer",
    ];
    let ended = refused(&place, "three mistakes", &["run", "e.toml"], &says);
    let messages = ended.stderr.lines().filter(|line| line.starts_with("e.toml:")).count();
    assert_eq!(messages, 3, "{}", ended.stderr);
    assert_eq!(refused(&place, "check", &["check", "e.toml"], &says).stderr, ended.stderr);
}

#[test]
fn experiment_files_that_are_none() {
    let place = Place::new();
    fs::create_dir(place.path("folder.toml")).unwrap();
    let made = Command::new("mkfifo").arg(place.path("fifo.toml")).status().unwrap();
    assert!(made.success());
    place.write("empty.toml", "").write("blank.toml", "\n \n# nothing\n");
    place.write("latin.toml", b"name = \"caf\xe9\"\n").write("binary.toml", [0u8, 1, 2, 255, 254]);
    place.write("utf16.toml", b"\xff\xfen\0a\0m\0e\0");
    place.write("big.toml", format!("{GOOD}{}", "# padding\n".repeat(110_000)));
    place.write("deep.toml", format!("x = {}{}\n", "[".repeat(50_000), "]".repeat(50_000)));
    place.write("tables.toml", format!("x = {}1{}\n", "{ a = ".repeat(2_000), " }".repeat(2_000)));
    place.write("dots.toml", format!("{} = 1\n", vec!["a"; 20_000].join(".")));
    place.write("keys.toml", (0..20_000).map(|i| format!("k{i} = 1\n")).collect::<String>());
    place.write("nul.toml", GOOD.replace("good", "go\0od")).write("json.toml", "{ \"name\": \"x\" }");
    place.write("ctrl.toml", GOOD.replace("seed", "\u{1b}[2Jseed"));
    let sparse = File::create(place.path("sparse.toml")).unwrap();
    sparse.set_len(64 << 30).unwrap();
    let files = [
        "gone.toml",
        "folder.toml",
        "fifo.toml",
        "/dev/zero",
        "/dev/null",
        "empty.toml",
        "blank.toml",
        "latin.toml",
        "binary.toml",
        "utf16.toml",
        "big.toml",
        "deep.toml",
        "tables.toml",
        "dots.toml",
        "keys.toml",
        "nul.toml",
        "json.toml",
        "ctrl.toml",
        "sparse.toml",
    ];
    for file in files {
        refused(&place, file, &["run", file], &[file]);
        refused(&place, file, &["check", file], &[file]);
    }
    refused(&place, "escapes", &["run", "\u{1b}]0;x\u{7}.toml"], &["\\u{1b}]0;x\\u{7}.toml"]);
}

/// Data that must be refused: keys of [data], bytes of `d.csv`, what the message must say.
type Data = (&'static str, &'static [u8], &'static [&'static str]);

#[test]
fn data_that_are_no_clean_table() {
    let cases: &[Data] = &[
        ("", b"", &["empty"]),
        ("", b"a,b\n", &["no rows"]),
        ("", b"\n\n\n", &["d.csv"]),
        ("", b"a,b\n1,2\n3\n", &["d.csv:3", "1 cells where 2"]),
        ("", b"a,b\n1,2\n3,4,5\n", &["d.csv:3", "3 cells where 2"]),
        ("", b"1,2\n3,4,\n", &["d.csv:2", "3 cells where 2"]),
        ("", b"a,a\n1,2\n", &["d.csv:1", "\"a\""]),
        ("", b"a,\n1,2\n", &["d.csv:1", "no name"]),
        ("", b"a,b,\n1,2,3\n", &["d.csv:1", "no name"]),
        ("", b"a\n1\n\n2\n", &["d.csv:3", "blank"]),
        ("", b"a\n1\n   \n2\n", &["d.csv:3"]),
        ("", b"a\n\"1\n2\n", &["d.csv:2"]),
        ("", b"a,b\n\"1\"x,2\n", &["d.csv:2"]),
        ("", b"a\n1\nabc\n", &["d.csv:3", "\"abc\"", "\"a\" (1)"]),
        ("", b"a,b\n1,2\n3,\n", &["d.csv:3", "missing", "\"b\" (2)"]),
        ("", b"a\n1\nNA\n", &["d.csv:3", "missing"]),
        ("", b"a\n1\n?\n", &["d.csv:3", "missing"]),
        ("", b"a\n1\nNaN\n", &["d.csv:3", "missing"]),
        ("", b"a\n1\nnan\n", &["d.csv:3", "missing"]),
        ("", b"a\n1\nNAN\n", &["d.csv:3"]),
        ("", b"a\n1\ninf\n", &["d.csv:3", "finite"]),
        ("", b"a\n1\n-Infinity\n", &["d.csv:3", "finite"]),
        ("", b"a\n1\n1e400\n", &["d.csv:3", "finite"]),
        ("", b"a\n1\n-1e400\n", &["d.csv:3", "finite"]),
        ("", b"a\n1\n0x10\n", &["d.csv:3", "not a number"]),
        ("", b"a\n1\n1_000\n", &["d.csv:3", "not a number"]),
        ("", b"a\n1\n1 000\n", &["d.csv:3", "not a number"]),
        ("", b"a\n1\n\"1,5\"\n", &["d.csv:3", "not a number"]),
        ("", b"a\n1\n1e\n", &["d.csv:3", "not a number"]),
        ("", b"a\n1\n# note\n", &["d.csv:3", "not a number"]),
        ("", b"a\n1\n\xff\n", &["d.csv:3", "UTF-8"]),
        ("", b"a\n1\n2\0\n", &["d.csv:3"]),
        ("", b"a\n1\n\x1b]0;x\x07\n", &["d.csv:3", "\\u{1b}]0;x\\u{7}"]),
        ("", b"\x1b[31ma,\x1b[31ma\n1,2\n", &["d.csv:1", "\\u{1b}[31ma"]),
        ("", b"\xff,b\n1,2\n", &["d.csv:1", "UTF-8"]),
        ("", b"\xff\xfea\x00\n\x001\x00\n\x00", &["d.csv"]),
        ("", b"a;b\n1;2\n", &["d.csv:2"]),
        ("", b"a\tb\n1\t2\n", &["d.csv:2"]),
        ("", b"\x1f\x8b\x08\0not really gzip", &["d.csv"]),
        ("", b"PK\x03\x04\x14\x00\x08\x00\n1\n", &["d.csv"]),
        ("header = false", b"a\n1\n", &["d.csv:1", "\"a\""]),
        ("header = true", b"a\n", &["no rows"]),
        ("columns = [\"c\"]", b"a,b\n1,2\n", &["no column \"c\""]),
        ("columns = [\"incme\"]", b"age,income\n1,2\n", &["\"incme\"", "\"income\""]),
        ("columns = [\"3\"]", b"a,b\n1,2\n", &["no column \"3\""]),
        ("columns = [\"0\"]", b"a,b\n1,2\n", &["no column \"0\""]),
        ("columns = [\"a\"]", b"1,2\n3,4\n", &["no column \"a\"", "they are x1, x2"]),
        ("columns = []", b"a,b\n1,2\n", &["columns"]),
        ("columns = [\"a\", \"a\"]", b"a,b\n1,2\n", &["\"a\""]),
        ("columns = [\"a\", \"1\"]", b"a,b\n1,2\n", &["\"a\""]),
        ("columns = [1]", b"a,b\n1,2\n", &["e.toml:8", "columns"]),
        ("delimiter = \"\"", b"a\n1\n", &["e.toml:8", "data.delimiter"]),
        ("delimiter = \"ab\"", b"a\n1\n", &["e.toml:8", "data.delimiter"]),
        ("delimiter = \"ä\"", b"a\n1\n", &["e.toml:8", "data.delimiter"]),
        ("delimiter = \"\\n\"", b"a\n1\n", &["e.toml:8", "data.delimiter"]),
        ("delimiter = 3", b"a\n1\n", &["e.toml:8", "data.delimiter"]),
        ("split = 0.0", b"a\n1\n2\n", &["e.toml:8", "data.split"]),
        ("split = 1.0", b"a\n1\n2\n", &["e.toml:8", "data.split"]),
        ("split = 0.5", b"a\n1\n", &["e.toml"]),
        ("rows = -1", b"a\n1\n", &["e.toml:8", "data.rows"]),
        ("rows = 0", b"a\n1\n", &["e.toml", "prior.alpha"]),
        ("test = \"d.csv\"\nsplit = 0.5", b"a\n1\n2\n", &["e.toml:9", "exclude each other"]),
        ("test = \"t.csv\"", b"a,b\n1,2\n", &["d.csv", "t.csv", "columns"]),
        ("test = \"t.csv\"", b"b\n1\n", &["d.csv", "t.csv", "\"b\""]),
        ("test = \"gone.csv\"", b"a\n1\n", &["gone.csv", "no such file"]),
    ];
    let place = Place::new();
    place.write("t.csv", "a\n1\n2\n");
    for (more, data, says) in cases {
        place.write("d.csv", data).write("e.toml", format!("{FROM_FILE}{more}\n"));
        let case = format!("{more} {:?}", String::from_utf8_lossy(data));
        refused(&place, &case, &["run", "e.toml"], says);
    }
}

#[test]
fn many_bad_cells_are_counted_and_some_listed() {
    let place = Place::new();
    place.write("d.csv", format!("a\n{}", "x\n".repeat(500))).write("e.toml", FROM_FILE);
    let ended =
        refused(&place, "500 bad cells", &["run", "e.toml"], &["d.csv:2:", "d.csv:11:", "500 errors in all"]);
    assert!(!ended.stderr.contains("d.csv:12:"));
    place.write("d.csv", format!("a\n{}\n", "9".repeat(100_000)));
    let ended = refused(&place, "a long cell", &["run", "e.toml"], &["d.csv:2", "finite"]);
    assert!(ended.stderr.len() < 500);
}

#[test]
fn data_files_that_are_none() {
    let place = Place::new();
    fs::create_dir(place.path("folder.csv")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("fifo.csv")).status().unwrap().success());
    place.write("iris.csv", "a\n1\n");
    for (file, says) in [
        ("gone.csv", "no such file"),
        ("iriss.csv", "iris.csv"),
        ("/nowhere/gone.csv", "no such file"),
        ("folder.csv", "not a regular file"),
        ("fifo.csv", "not a regular file"),
        ("/dev/zero", "not a regular file"),
        ("/dev/stdin", "not a regular file"),
        ("", "regular file"),
        ("a\\u0000b", ""),
        ("\\u001b]0;x\\u0007", "\\u{1b}"),
    ] {
        place.write("e.toml", FROM_FILE.replace("d.csv", file));
        refused(&place, file, &["run", "e.toml"], &[says]);
        let history = format!("prior.base={{ empirical = {{ file = \"{file}\" }} }}");
        let args =
            ["run", "e.toml", "--set", "data.train=iris.csv", "--set", "prior.alpha=1", "--set", &history];
        refused(&place, file, &args, &[says]);
    }
}

#[test]
fn starts_that_do_not_fit() {
    let place = Place::new();
    let start = |values: &str| format!("pi.1,pi.2,mu.1.1,mu.2.1,sigma2.1.1,sigma2.2.1\n{values}\n");
    place.write("negative.csv", start("0.5,0.5,0,1,1,-1")).write("simplex.csv", start("0.5,0.6,0,1,1,1"));
    place.write("nan.csv", start("0.5,0.5,nan,1,1,1")).write("short.csv", "pi.1,pi.2\n0.5,0.5\n");
    place.write("header.csv", "pi.1,pi.2,mu.1.1,mu.2.1,sigma2.1.1,sigma2.2.1\n").write("empty.csv", "");
    place.write("other/samples.csv", "a,b\n1,2\n");
    let header =
        "repeat__,draw__,objective__,restart__,iterations__,status__,restarts__,hits__,gradient__,theta";
    place.write("draws/samples.csv", format!("{header}\n1,1,0,1,1,0,1,1,0,2\n"));
    let text = GOOD.lines().filter(|l| !l.starts_with("init.") && !l.starts_with("R =")).collect::<Vec<_>>();
    place.write("e.toml", text.join("\n"));
    for (init, says) in [
        ("{ file = \"gone.csv\" }", "gone.csv"),
        ("{ file = \"negative.csv\" }", "`sigma2` must be positive"),
        ("{ file = \"simplex.csv\" }", "sum to 1"),
        ("{ file = \"nan.csv\" }", "nan.csv:2"),
        ("{ file = \"short.csv\" }", "mu.1.1"),
        ("{ file = \"header.csv\" }", "no rows"),
        ("{ file = \"empty.csv\" }", "empty"),
        ("{ file = 3 }", "sampler.fixed_init.file"),
        ("{ run = { path = \"gone\" } }", "gone"),
        ("{ run = { path = \"other\" } }", "not a table of draws"),
        ("{ run = { path = \"draws\" } }", "pi.1"),
        ("{ run = { path = \"draws\", draw = 0 } }", "draw"),
        ("{ run = { pth = \"draws\" } }", "path"),
        ("{ best_off = 3 }", "best_of"),
        ("\"advy\"", "did you mean `advi`?"),
    ] {
        let set = format!("sampler.fixed_init={init}");
        refused(&place, init, &["run", "e.toml", "--set", &set], &["sampler.fixed_init", says]);
    }
}

#[test]
fn usage_that_is_wrong() {
    let place = Place::new();
    place.write("e.toml", GOOD).write("file", "x");
    let cases: &[(&[&str], &str)] = &[
        (&["runn", "e.toml"], "run"),
        (&["\u{1b}]0;x\u{7}"], "subcommand"),
        (&["run", "e.toml", "--\u{1b}]0;x\u{7}"], "argument"),
        (&["run", "e.toml", "--threads", "\u{1b}]0;x\u{7}"], "--threads"),
        (&["run"], "<CONFIG>"),
        (&["run", "e.toml", "--thread", "2"], "--threads"),
        (&["run", "e.toml", "--threads", "0"], "--threads"),
        (&["run", "e.toml", "--threads", "many"], "--threads"),
        (&["run", "e.toml", "--seed", "-1"], "--seed"),
        (&["run", "e.toml", "--seed", "18446744073709551615"], "seed"),
        (&["run", "e.toml", "--names", "latin"], "--names"),
        (&["run", "e.toml", "--samples", "draws.csv"], "--samples"),
        (&["run", "e.toml", "--samples", "\u{1b}[31m"], "--samples"),
        (&["run", "e.toml", "--samples", "-", "--json"], "--json"),
        (&["run", "e.toml", "--out", "file"], "file"),
        (&["run", "e.toml", "--out", ""], "--out"),
        (&["run", "e.toml", "--simd", "mmx"], "--simd"),
        (&["run", "e.toml", "--set", "\u{1b}]0;x\u{7}=1"], "--set"),
        (&["run", "e.toml", "--set", "name=\u{1b}]0;x\u{7}"], "name"),
        (&["run", "e.toml", "--set", "model={}"], "model"),
        (&["check"], "<CONFIG>"),
        (&["new"], "<MODEL>"),
        (&["new", "\u{1b}[31m"], "no model"),
        (&["summary", "gone"], "gone"),
        (&["summary", "."], "manifest.json"),
        (&["summary", "file"], "file"),
        (&["summary", "\u{1b}[31m"], "\\u{1b}[31m"),
        (&["table"], "<RUNS>"),
        (&["table", "gone"], "gone"),
        (&["alpha", "--sd", "-1", "--base-sd", "1"], "--sd"),
        (&["alpha", "--sd", "nan", "--base-sd", "1"], "--sd"),
        (&["alpha", "--sd", "1", "--base-sd", "inf"], "--base-sd"),
        (&["alpha", "e.toml", "--values", "0"], "--values"),
        (&["alpha", "e.toml", "--values", "1,x"], "--values"),
        (&["alpha", "e.toml", "--values", "1", "--draws", "1"], "--draws"),
        (&["completions", "tcsh"], "tcsh"),
    ];
    for (args, says) in cases {
        refused(&place, &args.join(" "), args, &[says]);
    }
}

#[test]
fn a_broken_run_directory_is_named() {
    let place = Place::new();
    place.write("e.toml", GOOD).ok(&["run", "e.toml", "--out", "r"]);
    place.write("r/report.json", "{ \"name\": ").write("r/samples.csv", "");
    refused(&place, "summary", &["summary", "r"], &["r/report.json"]);
    refused(&place, "table", &["table", "r"], &["r/report.json"]);
    place.ok(&["run", "e.toml", "--out", "r"]);
    place.write("r/samples.csv", "");
    refused(&place, "summary", &["summary", "r"], &["r/samples.csv", "0 bytes"]);
    refused(&place, "summary", &["summary", "r", "--no-verify"], &["r/samples.csv", "empty"]);
    place.ok(&["run", "e.toml", "--out", "r"]);
    place.write("r/samples.csv", place.read("r/samples.csv").replacen("\n1,1,", "\n1,x,", 1));
    refused(&place, "summary", &["summary", "r"], &["r/samples.csv", "SHA-256"]);
    refused(&place, "summary", &["summary", "r", "--no-verify"], &["r/samples.csv", "\"x\""]);
    fs::remove_file(place.path("r/manifest.json")).unwrap();
    refused(&place, "no manifest", &["summary", "r"], &["manifest.json"]);
}

#[test]
fn foreign_names_cannot_drive_a_terminal() {
    let place = Place::new();
    place.write("d.csv", b"\x1b]0;x\x07,b\n1,2\n3,5\n").write("e.toml", FROM_FILE);
    let prior = ["--set", "prior.alpha=1", "--set", "prior.base={ normal = { mean = 0, sd = 9 } }"];
    place.ok(&["run", "e.toml"]).assert_decent("run");
    for args in [vec!["check", "e.toml"], vec!["summary", "runs/f"], vec!["table", "runs/f"]] {
        place.ok(&args).assert_decent(args[0]);
    }
    let args = ["alpha", "e.toml", "--sd", "1"];
    place.ok(&[&args[..], &prior[..]].concat()).assert_decent("alpha");
    place.ok(&["run", "e.toml", "--out", "\u{1b}[31mred"]).assert_decent("out");
    let report = place.read("runs/f/report.json").replace("\"f\"", "\"\\u001b[2J|\"");
    place.write("runs/f/report.json", report).unseal("runs/f");
    place.ok(&["table", "runs/f"]).assert_decent("table");
    let markdown = place.ok(&["table", "runs/f", "--format", "markdown"]);
    markdown.assert_decent("markdown");
    assert!(markdown.stdout.contains("\\|"), "{}", markdown.stdout);
    place.ok(&["summary", "runs/f"]).assert_decent("summary");
}

#[test]
fn draws_that_fail_are_counted_kept_and_left_out_of_summaries() {
    let place = Place::new();
    // The squared error of such numbers is beyond any f64.
    place.write("d.csv", "a\n1e200\n-1e200\n3\n").write("e.toml", FROM_FILE);
    let ended = place.npl(&["run", "e.toml"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("5 of 5 draws failed"), "{}", ended.stderr);
    ended.assert_decent("failed draws");
    let rows = place.read("runs/f/samples.csv");
    assert!(cells(&rows)[1..].iter().all(|row| row[5] == "3"), "{rows}");
    assert!(place.read("runs/f/summary.csv").contains("\ntheta,,,"), "{}", place.read("runs/f/summary.csv"));
    assert!(place.read("runs/f/manifest.json").contains("\"failed\": 5"));
    place.ok(&["summary", "runs/f"]);
    place.ok(&["table", "runs/f"]);
    place.ok(&["run", "e.toml", "--set", "sampler.max_failed=1.0", "--out", "allowed"]);
}

/// Starts a run that would take hours, and waits until it is drawing.
fn long_run(place: &Place) -> Child {
    let path = config("gmm_toy.toml");
    let mut command = place.command(&[&["run", &path], &LONG[..]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = || place.exists("out/.npl-new");
    assert!(wait_until(Duration::from_secs(20), begun), "it never began");
    wait_for_work(&child, 0.3);
    child
}

fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Sends a signal to a long run; it must end soon, with this code, and leave no result.
fn interrupted_by(signal: &str, code: i32, says: &str) {
    let place = Place::new();
    let mut child = long_run(&place);
    let sent = Instant::now();
    send(signal, &child);
    let ended = wait_until(Duration::from_secs(10), || child.try_wait().unwrap().is_some());
    let took = sent.elapsed();
    if !ended {
        child.kill().unwrap();
    }
    let ended = Ended::of(child.wait_with_output().unwrap(), took);
    assert!(took < patience(Duration::from_secs(3)), "{signal}: {took:?}");
    assert_eq!(ended.code, Some(code), "{signal}: {}", ended.stderr);
    assert!(ended.stderr.contains(says) && ended.stderr.contains("--resume"), "{}", ended.stderr);
    ended.assert_decent(signal);
    assert_eq!(place.list("out"), [""; 0], "{signal}");
}

#[test]
fn ctrl_c_ends_a_run_cleanly() {
    interrupted_by("-INT", 130, "interrupted");
}

#[test]
fn sigterm_ends_a_run_cleanly() {
    interrupted_by("-TERM", 143, "terminated");
}

#[test]
fn ctrl_c_ends_the_fits_before_the_first_draw_too() {
    let place = Place::new();
    let path = config("gmm_toy_fi.toml");
    let args = ["run", &path, "--set", "sampler.fixed_init={ best_of = 1000000 }", "--out", "out"];
    let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait_until(Duration::from_secs(20), || place.exists("out/.npl-new")));
    wait_for_work(&child, 0.1);
    send("-INT", &child);
    let ended = wait_until(Duration::from_secs(3), || child.try_wait().unwrap().is_some());
    if !ended {
        child.kill().unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.list("out"), [""; 0]);
}

#[test]
fn two_runs_cannot_share_a_folder() {
    let place = Place::new();
    let mut first = long_run(&place);
    let path = config("gmm_toy.toml");
    let second = place.npl(&[&["run", &path], &LONG[..]].concat());
    send("-INT", &first);
    first.wait().unwrap();
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(second.stderr.contains("out: another npl"), "{}", second.stderr);
    second.assert_decent("second");
    assert!(second.took < patience(Duration::from_secs(3)), "{:?}", second.took);
    // The lock dies with its owner: the folder is free again.
    place.ok(&["run", &path, "--set", "sampler.B=2", "--out", "out", "--force"]);
}

#[test]
fn a_killed_run_leaves_no_lock_and_no_result() {
    let place = Place::new();
    let mut child = long_run(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(place.list("out").iter().all(|name| name.starts_with('.')), "{:?}", place.list("out"));
    place.ok(&["run", &config("gmm_toy.toml"), "--set", "sampler.B=2", "--out", "out", "--force"]);
    assert_eq!(place.read("out/samples.csv").lines().count(), 3);
    assert!(place.list("out").iter().all(|name| !name.starts_with('.')), "{:?}", place.list("out"));
}

#[test]
fn a_full_standard_error_is_no_panic() {
    let place = Place::new();
    place.write("e.toml", GOOD);
    let cases: &[(&[&str], i32)] = &[
        (&["run", "e.toml"], 0),
        (&["run", "e.toml", "--json"], 0),
        (&["run", "e.toml", "--samples", "-"], 0),
        (&["run", "gone.toml"], 2),
        (&["run", "e.toml", "--set", "sampler.B=0"], 2),
        (&["run", "e.toml", "--nonsense"], 2),
        (&["nonsense"], 2),
        (&["summary", "gone"], 2),
    ];
    for (args, code) in cases {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let status = place.command(args).stdout(Stdio::null()).stderr(full).status().unwrap();
        assert_eq!(status.code(), Some(*code), "{args:?}");
    }
}

#[test]
fn a_full_standard_output_is_a_failure_that_names_it() {
    let place = Place::new();
    place.write("e.toml", GOOD).ok(&["run", "e.toml", "--out", "r"]);
    let cases: &[&[&str]] = &[
        &["run", "e.toml", "--samples", "-"],
        &["run", "e.toml", "--json", "--out", "j"],
        &["check", "e.toml"],
        &["new", "gmm"],
        &["summary", "r"],
        &["table", "r"],
        &["completions", "bash"],
    ];
    for args in cases {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = place.command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains("standard output"), "{args:?}: {stderr}");
        assert_decent(args[0], &stderr);
    }
    assert_eq!(place.list("runs/good"), [""; 0], "draws that could not be delivered are no result");
}

#[test]
fn a_closed_standard_output_is_the_readers_right() {
    let place = Place::new();
    place.write("e.toml", GOOD).ok(&["run", "e.toml", "--out", "r"]);
    for args in
        ["completions bash", "new gmm", "check --schema", "summary r", "--help", "table r --format csv"]
    {
        let script =
            format!("{{ '{}' {args} 2>stderr; echo $? >status; }} | true", env!("CARGO_BIN_EXE_npl"));
        let done = Command::new("sh").arg("-c").arg(script).current_dir(place.path(".")).status().unwrap();
        assert!(done.success());
        // A pipe takes a little before anyone reads it: then there may be warnings, but no complaint.
        let said = place.read("stderr");
        assert_eq!(place.read("status").trim(), "0", "{args}: {said}");
        assert!(said.lines().all(|line| line.starts_with("warning: ")), "{args}: {said}");
    }
}

/// Runs a script where `m` is a file system of this size; `None` where that cannot be had.
fn on_small_disk(place: &Place, size: &str, script: &str) -> Option<i32> {
    fs::create_dir_all(place.path("m")).unwrap();
    let whole = format!("mount -t tmpfs -o size={size} t m || exit 99\n{script}");
    let ways: [&[&str]; 2] = [&["-m"], &["-Urm"]];
    for way in ways {
        let mut command = Command::new("unshare");
        command.args(way).args(["sh", "-c", &whole]).current_dir(place.path(".")).stderr(Stdio::null());
        command.env("NPL", env!("CARGO_BIN_EXE_npl"));
        match command.status().ok().and_then(|status| status.code()) {
            Some(code) if code != 99 && place.exists("mounted") => return Some(code),
            _ => {}
        }
    }
    println!("skipped: no small file system can be mounted here");
    None
}

#[test]
fn a_full_disk_is_named_and_leaves_no_half_file() {
    // Full in the middle of the run, where numbers fill it sooner than their text, and at its end.
    for (draws, file) in [("200000", "m/out/spool.npy"), ("1500", "m/out/samples.csv")] {
        let place = Place::new();
        place.write("e.toml", FROM_FILE).write("d.csv", "a\n1\n2\n4\n");
        let script = format!(
            "touch mounted; \"$NPL\" run e.toml --set sampler.B={draws} --out m/out 2>stderr >stdout; code=$?
             find m -type f >left; exit $code"
        );
        let Some(code) = on_small_disk(&place, "64k", &script) else { return };
        let stderr = place.read("stderr");
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains(file) && stderr.contains("space"), "{stderr}");
        assert_decent(draws, &stderr);
        let left = place.read("left");
        let hidden = |name: &str| name.ends_with(".npl.lock") || name.contains(".npl-chunks");
        assert!(left.lines().all(hidden), "files are left: {left}");
    }
}

#[test]
fn a_full_disk_spares_the_results_that_were_there() {
    let place = Place::new();
    place.write("e.toml", FROM_FILE).write("d.csv", "a\n1\n2\n4\n");
    let script = "touch mounted; \"$NPL\" run e.toml --out m/out >/dev/null || exit 50
        cp m/out/samples.csv before
        \"$NPL\" run e.toml --set sampler.B=1500 --out m/out --force 2>stderr >stdout; echo $? >status
        cmp m/out/samples.csv before && \"$NPL\" summary m/out >/dev/null && ls m/out >left";
    let Some(code) = on_small_disk(&place, "88k", script) else { return };
    assert_eq!((code, place.read("status").trim()), (0, "1"));
    assert!(place.read("stderr").contains("samples.csv"));
    assert_eq!(place.read("left").lines().count(), 7);
}
