//! `npl coverage`: data sets of which the truth is known.

use crate::support::{Place, cells};

const NORMAL: &str = "name = \"c\"\nseed = 7\n[data.simulate.normal]\nn = 30\nmean = [1.0, -2.0]\nsd = 1.5\n[model.normal]\n\
                      sigma2 = 2.25\nprior = { tau2 = 100.0 }\n[sampler]\nB = 200\n";

const LOGISTIC: &str = "name = \"l\"\nseed = 3\n[data.simulate.normal]\nn = 80\nmean = [0.0, 0.0]\nsd = 1.0\n\
                        [data.response.logistic]\ny1 = 1.0\n[model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 100\n";

const RESULTS: [&str; 4] = ["coverage.csv", "coverage.json", "datasets.csv", "config.toml"];

fn place() -> Place {
    let place = Place::new();
    place.write("c.toml", NORMAL).write("l.toml", LOGISTIC);
    place
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("{cell:?} is no number"))
}

fn results(place: &Place, folder: &str) -> Vec<String> {
    RESULTS.map(|name| place.read(&format!("{folder}/{name}"))).to_vec()
}

/// Data set i of seed s is the run with seed s + i − 1: the ends of its intervals are quantiles of those draws.
#[test]
fn a_data_set_is_a_run_with_a_seed_of_its_own() {
    let place = place();
    place.ok(&["coverage", "c.toml", "--datasets", "3", "--quiet", "--level", "0.9"]);
    let table = place.read("runs/c-coverage/datasets.csv");
    let table = cells(&table);
    assert_eq!(
        table[0],
        "dataset,seed,interval,level,parameter,mean,sd,lower,upper".split(',').collect::<Vec<_>>()
    );
    assert_eq!(table.len(), 1 + 3 * 2);
    for (i, seed) in ["7", "8", "9"].iter().enumerate() {
        let out = format!("runs/{seed}");
        place.ok(&["run", "c.toml", "--seed", seed, "--out", &out, "--quiet"]);
        let draws = place.read(&format!("{out}/samples.csv"));
        let draws = cells(&draws);
        for (j, name) in ["theta.y1", "theta.y2"].iter().enumerate() {
            let row = &table[1 + 2 * i + j];
            assert_eq!(row[..5], [&(i + 1).to_string(), *seed, "percentile", "0.9", name]);
            let column = draws[0].iter().position(|c| c == name).unwrap();
            let mut values: Vec<f64> = draws[1..].iter().map(|d| number(d[column])).collect();
            values.sort_by(f64::total_cmp);
            // Of 200 draws, 199 steps: 5 % are 9.95 of them.
            let at = |q: f64| {
                let (k, part) = ((199.0 * q) as usize, (199.0 * q).fract());
                values[k] + part * (values[k + 1] - values[k])
            };
            assert!((number(row[7]) - at(0.05)).abs() < 1e-12, "{row:?}");
            assert!((number(row[8]) - at(0.95)).abs() < 1e-12, "{row:?}");
        }
    }
    // And the rates are counts of these lines.
    let rates = place.read("runs/c-coverage/coverage.csv");
    let rates = cells(&rates);
    let covers = |row: &[&str], truth: f64| number(row[7]) <= truth && truth <= number(row[8]);
    for (j, truth) in [1.0, -2.0].into_iter().enumerate() {
        let count = (0..3).filter(|i| covers(&table[1 + 2 * i + j], truth)).count();
        assert_eq!(number(rates[1 + j][3]), truth);
        assert!((number(rates[1 + j][5]) - count as f64 / 3.0).abs() < 1e-15);
    }
    let both = (0..3).filter(|i| covers(&table[1 + 2 * i], 1.0) && covers(&table[2 + 2 * i], -2.0)).count();
    assert_eq!(rates[3][2], "all__");
    assert!((number(rates[3][5]) - both as f64 / 3.0).abs() < 1e-15);
}

#[test]
fn threads_interruptions_and_more_data_sets_change_no_byte() {
    let place = place();
    let asked = ["--interval", "percentile,hdi,simultaneous", "--quiet"];
    let run = |out: &str, more: &[&str]| {
        place.ok(&[&["coverage", "c.toml", "--out", out], &asked[..], more].concat());
        results(&place, out)
    };
    let whole = run("whole", &["--datasets", "40", "--threads", "1"]);
    assert_eq!(run("two", &["--datasets", "40", "--threads", "3"]), whole);
    // More data sets than a finished folder has; and nothing left to do.
    run("more", &["--datasets", "7"]);
    assert_eq!(run("more", &["--datasets", "40"]), whole);
    assert_eq!(run("more", &["--datasets", "40"]), whole);
    // Killed while it writes after each data set: what is there is gone on with.
    let killed =
        [&["coverage", "c.toml", "--out", "killed", "--keep-every", "0", "--datasets", "40"], &asked[..]]
            .concat();
    let mut child = place.command(&killed).spawn().unwrap();
    let parts =
        || place.exists("killed/.npl-chunks/1-of-1/00000003.part") || place.exists("killed/coverage.csv");
    assert!(crate::support::wait_until(std::time::Duration::from_secs(60), parts));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(run("killed", &["--datasets", "40"]), whole);
    // A part that is damaged is made again.
    let part = "killed/.npl-chunks/1-of-1/finished.part";
    let mut bytes = std::fs::read(place.path(part)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    place.write(part, bytes);
    let said =
        place.ok(&[&["coverage", "c.toml", "--out", "killed", "--datasets", "40"], &asked[..]].concat());
    assert!(said.stderr.contains("damaged"), "{}", said.stderr);
    assert_eq!(results(&place, "killed"), whole);
    // Another question is not answered by these data sets.
    let other =
        place.npl(&["coverage", "c.toml", "--out", "more", "--set", "sampler.B=100", "--datasets", "5"]);
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("--force"), "{}", other.stderr);
    place.ok(&[
        "coverage",
        "c.toml",
        "--out",
        "more",
        "--set",
        "sampler.B=100",
        "--datasets",
        "5",
        "--force",
        "--quiet",
    ]);
}

#[test]
fn the_truth_is_stated_found_or_given() {
    let place = place();
    let truth = |args: &[&str]| -> serde_json::Value {
        let said =
            place.ok(&[&["coverage"], args, &["--datasets", "2", "--json", "--quiet", "--force"]].concat());
        serde_json::from_str::<serde_json::Value>(&said.stdout).unwrap()["truth"].clone()
    };
    let stated = truth(&["c.toml"]);
    assert_eq!(
        stated,
        serde_json::json!({ "by": "stated", "values": [["theta.y1", 1.0], ["theta.y2", -2.0]] })
    );
    // A penalty moves the minimum: at the γ of 80 rows, not of the many.
    let many = ["--truth-n", "200000"];
    let few = truth(&[&["l.toml"], &many[..]].concat());
    assert_eq!((few["by"].as_str(), few["rows"].as_u64()), (Some("minimum"), Some(200_000)));
    let free = truth(
        &[&["l.toml", "--set", "model.logistic.penalty=none", "--truth", "minimum"], &many[..]].concat(),
    );
    let beta = |truth: &serde_json::Value| truth["values"][0][1].as_f64().unwrap();
    // Five standard errors of 1/√(200000 · 0.2); and what γ = 1/80 takes off is far more.
    assert!((beta(&free) - 1.0).abs() < 0.03, "{free}");
    assert!(beta(&few) < beta(&free) - 0.02, "{few}");
    assert_eq!(beta(&truth(&["l.toml", "--set", "model.logistic.penalty=none"])), 1.0);
    // Conventional Bayes has the penalty for its prior, and the truth is what it is.
    assert_eq!(beta(&truth(&["l.toml", "--set", "method=nuts", "--set", "nuts.warmup=50"])), 1.0);
    place
        .write("t.csv", "beta.y1\n0.75\n")
        .write("bad.csv", "intercept,beta.y3\n0,1\n")
        .write("no.csv", "beta.y1\nx\n");
    assert_eq!(
        truth(&["l.toml", "--truth", "t.csv"]),
        serde_json::json!({ "by": "file", "values": [["beta.y1", 0.75]] })
    );
    for (file, part) in
        [("bad.csv", "line 1, column 2"), ("no.csv", "line 2, column 1"), ("none.csv", "none.csv")]
    {
        let said = place.npl(&["coverage", "l.toml", "--truth", file]);
        assert_eq!(said.code, Some(2));
        assert!(said.stderr.contains(part), "{file}: {}", said.stderr);
    }
}

/// Of a file, the estimate on the whole of it is the truth, and data sets are rows of it.
#[test]
fn a_file_can_be_the_truth() {
    let place = Place::new();
    let values: Vec<f64> = (0..50).map(|i| ((i * 37) % 50) as f64 / 10.0).collect();
    let rows: String = values.iter().map(|v| format!("{v}\n")).collect();
    place.write("d.csv", format!("y\n{rows}"));
    place.write(
        "d.toml",
        "name = \"d\"\nseed = 1\n[data]\ntrain = \"d.csv\"\n[model.mean]\n[sampler]\nB = 100\n",
    );
    let said = place.ok(&["coverage", "d.toml", "--datasets", "60", "--json", "--quiet"]);
    let found: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((found["n"].as_u64(), found["truth"]["rows"].as_u64()), (Some(50), Some(50)));
    let mean = values.iter().sum::<f64>() / 50.0;
    assert!((found["truth"]["values"][0][1].as_f64().unwrap() - mean).abs() < 1e-12);
    // The mean of 20 rows drawn from the file has the variance of the file over 20: within 5 standard errors, of 60 data sets.
    let said = place.ok(&[
        "coverage",
        "d.toml",
        "--datasets",
        "60",
        "--json",
        "--quiet",
        "--resample",
        "20",
        "--out",
        "x",
    ]);
    let found: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(found["n"].as_u64(), Some(20));
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 50.0;
    let sampling = found["lines"][0]["sampling_sd"].as_f64().unwrap();
    // The posterior mean adds its Monte Carlo error of 100 draws, a hundredth of the variance.
    let expected = (variance / 20.0 * 1.01).sqrt();
    assert!((sampling / expected - 1.0).abs() < 5.0 / 120f64.sqrt(), "{sampling}, not {expected}");
    // `npl run` makes one of them again.
    place.ok(&["run", "d.toml", "--set", "data.resample=20", "--set", "repeats=2", "--quiet"]);
    let report = place.read("runs/d/report.csv");
    let report = cells(&report);
    let n = report[0].iter().position(|c| *c == "n_train").unwrap();
    assert_eq!((report[1][n], report[2][n]), ("20", "20"));
    let one = place.read("x/datasets.csv");
    let summary = place.ok(&["summary", "runs/d", "--repeat", "2", "--format", "csv"]).stdout;
    assert_eq!(number(cells(&one)[2][5]), number(cells(&summary)[1][1]));
}

#[test]
fn what_has_no_coverage_is_refused() {
    let place = place();
    place.write(
        "m.toml",
        "name = \"m\"\nseed = 1\n[data.simulate.mixture]\nn = 30\npi = [1.0, 1.0]\nmu = [0.0, 4.0]\nsigma2 = [1.0, 1.0]\n\
         [model.gmm]\nK = 2\nvariance_floor = 1e-3\n[sampler]\nB = 10\n",
    );
    let cases: [(&[&str], &str); 6] = [
        (&["m.toml"], "any order of them"),
        (&["c.toml", "--set", "repeats=3"], "`repeats`"),
        (&["c.toml", "--level", "1.5"], "probability"),
        (&["c.toml", "--only", "mu.*"], "no parameter"),
        (&["c.toml", "--resample", "10"], "data.resample"),
        (&["l.toml", "--truth", "stated"], "penalty"),
    ];
    for (args, part) in cases {
        let said = place.npl(&[&["coverage"], args].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.stderr);
        assert!(said.stderr.contains(part), "{args:?}: {}", said.stderr);
        said.assert_decent(part);
    }
    assert!(!place.exists("runs"));
    // A folder with a run in it is left alone.
    place.ok(&["run", "c.toml", "--out", "run", "--quiet"]);
    assert_eq!(place.npl(&["coverage", "c.toml", "--out", "run", "--datasets", "2"]).code, Some(2));
}

/// 95 % percentile intervals of a mean of 30: the bootstrap is too narrow by √(30/31) and has 29 degrees of freedom, not ∞, which
/// leaves P(|t₂₉| < 1.96 √(29/31)) = 0.932. 600 data sets: 4 Monte Carlo errors.
#[test]
fn the_mean_of_normals_is_covered_as_often_as_it_should_be() {
    let place = place();
    let said =
        place.ok(&["coverage", "c.toml", "--datasets", "600", "--json", "--quiet", "--set", "sampler.B=400"]);
    let found: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    for line in &found["lines"].as_array().unwrap()[..2] {
        let (rate, error) = (line["coverage"].as_f64().unwrap(), line["mcse_coverage"].as_f64().unwrap());
        assert!((rate - 0.932).abs() < 4.0 * error, "{line}");
        let ratio = line["posterior_sd"].as_f64().unwrap() / line["sampling_sd"].as_f64().unwrap();
        // Var_{F_n}(y)/(n + 1) over σ²/n: on average (n − 1)/(n + 1).
        assert!((ratio - (29.0f64 / 31.0).sqrt()).abs() < 4.0 / 1200f64.sqrt(), "{line}");
    }
}

#[test]
fn all_methods_that_make_draws_can_be_asked() {
    let place = place();
    for more in [
        &["--set", "method=nuts", "--set", "nuts.warmup=100", "--set", "sampler.B=200"][..],
        &["--set", "method=advi"],
        &["--set", "prior.alpha=1.0", "--set", "prior.base.normal={mean=0.0,sd=1.0}", "--set", "prior.T=10"],
    ] {
        let args =
            [&["coverage", "c.toml", "--datasets", "4", "--force", "--json", "--quiet"], more].concat();
        let found: serde_json::Value = serde_json::from_str(&place.ok(&args).stdout).unwrap();
        assert_eq!(
            (found["datasets"].as_u64(), found["without_answer"].as_u64()),
            (Some(4), Some(0)),
            "{more:?}"
        );
        assert!(found["lines"][0]["width"].as_f64().unwrap() > 0.5, "{found}");
    }
}

/// A column in other units is the same regression: what is told per unit of the file is what it is without standardising, in every
/// data set and in the truth.
#[test]
fn data_sets_that_standardise_are_told_in_the_units_of_the_file() {
    let place = Place::new();
    let row = |i: u32| {
        let x = f64::from(i * 37 % 101) * f64::from(i * 37 % 101) / 50.0;
        format!("{x},{}\n", 3.0 + 2.0 * x + f64::from(i * 53 % 97) / 10.0)
    };
    place.write("d.csv", String::from("x,y\n") + &(0..100).map(row).collect::<String>());
    let text = "name = \"s\"\nseed = 5\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\n[model.linear]\npenalty = \"none\"\n\
                [derived]\ndouble = \"2*beta.x\"\n[sampler]\nB = 50\n";
    place.write("s.toml", text);
    let numbers = |out: &str, more: &[&str]| -> Vec<(String, f64)> {
        let args = ["coverage", "s.toml", "--resample", "60", "--datasets", "4", "--quiet", "--out", out];
        place.ok(&[&args[..], more].concat());
        let (tables, mut found) = (["coverage.csv", "datasets.csv"], Vec::new());
        for table in tables {
            let text = place.read(&format!("{out}/{table}"));
            let rows = cells(&text);
            let name = rows[0].iter().position(|c| *c == "parameter").unwrap();
            for row in &rows[1..] {
                let numbers = row[name + 1..].iter().filter_map(|c| c.parse().ok());
                found.extend(numbers.map(|v: f64| (row[name].to_owned(), v)));
            }
        }
        found
    };
    let (plain, own) = (numbers("plain", &[]), numbers("own", &["--set", "data.standardise=numeric"]));
    assert_eq!(plain.len(), own.len());
    for ((name, a), (other, b)) in plain.iter().zip(&own) {
        assert!(name == other && (a - b).abs() < 1e-6 * (1.0 + a.abs()), "{name}: {a}, {b}");
    }
    let json: serde_json::Value = serde_json::from_str(&place.read("own/coverage.json")).unwrap();
    assert_eq!(json["truth"]["in_units_of_data"], true);
    place.write(
        "m.toml",
        text.replace("[model.linear]\npenalty = \"none\"", "[model.normal]\nsigma2 = 1.0")
            .replace("target = \"y\"\n[", "standardise = \"numeric\"\n[")
            .replace("[derived]\ndouble = \"2*beta.x\"\n", ""),
    );
    let refused = place.npl(&["coverage", "m.toml", "--resample", "60", "--datasets", "2"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("m.toml:5") && refused.stderr.contains("leave `standardise` out"),
        "{}",
        refused.stderr
    );
}
