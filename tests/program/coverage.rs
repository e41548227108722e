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

const SPREAD: &str = "name = \"s\"\nseed = 4\n[data.simulate.normal]\nn = 25\nmean = 1.0\nsd = 2.0\n[model.custom]\n\
                      parameters = { m = { real = 1 }, s = { positive = 1 } }\nloss = \"log(s) + (y - m)^2/(2*s^2)\"\n\
                      likelihood = true\n[derived]\nvariance = \"s^2\"\n[sampler]\nB = 150\ninit = { s = { constant = 1.0 } }\n";

/// 40 rows with a weight each, of which data sets are made: by rows drawn of it, each brought to units of its own, and by new responses.
fn rows_of_a_file() -> Place {
    let place = Place::new();
    let row = |i: u32| {
        let x = f64::from(i * 37 % 41) * f64::from(i * 37 % 41) / 50.0;
        format!("{x},{},{}\n", u8::from((i * 53 % 40) < 12 + i / 4), 1 + i % 3)
    };
    place.write("d.csv", String::from("x,y,c\n") + &(0..40).map(row).collect::<String>());
    let text = |name: &str, data: &str| {
        format!(
            "name = \"{name}\"\nseed = 4\n[data]\ntrain = \"d.csv\"\ncolumns = [\"x\"]\n{data}\n[model.logistic]\n\
             penalty = \"ridge\"\n[sampler]\nB = 150\n"
        )
    };
    place.write("u.toml", text("u", "target = \"y\"\nstandardise = \"numeric\"\nresample = 50"));
    place.write("w.toml", text("w", "weight = \"c\"\nresponse.logistic = { x = 0.1 }"));
    place.write("s.toml", SPREAD);
    place
}

/// Both ends of BC and BCa intervals are those that `npl summary` tells of the run that is this data set: of derived quantities, case
/// weights, and coefficients in the units of the file, too.
#[test]
fn corrected_intervals_of_a_data_set_are_those_of_summary() {
    let place = rows_of_a_file();
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("s", &["m", "s", "variance"], &[]),
        ("w", &["beta.x", "intercept"], &[]),
        ("u", &["beta.x", "intercept"], &["--units", "data"]),
    ];
    for (name, parameters, units) in cases {
        let (config, out) = (format!("{name}.toml"), format!("runs/{name}-coverage"));
        let kinds = ["percentile", "bc", "bca"];
        let asked = ["--interval", "percentile,bc,bca", "--level", "0.9", "--datasets", "3", "--quiet"];
        place.ok(&[&["coverage", &config], &asked[..]].concat());
        let told = place.read(&format!("{out}/datasets.csv"));
        let told = cells(&told);
        assert_eq!(told.len(), 1 + 3 * 3 * parameters.len(), "{name}");
        let mut moved = 0;
        for dataset in 0..3 {
            let (seed, run) = ((4 + dataset).to_string(), format!("{name}{dataset}"));
            let more = ["--seed", &seed, "--out", &run, "--set", "output.influence=true", "--quiet"];
            place.ok(&[&["run", &config], &more[..]].concat());
            let mut percentile = Vec::new();
            for kind in kinds {
                let asked = ["summary", &run, "--interval", kind, "--level", "0.9", "--format", "csv"];
                let summary = place.ok(&[&asked[..], units].concat()).stdout;
                let summary = cells(&summary);
                for (j, parameter) in parameters.iter().enumerate() {
                    let of = |row: &&Vec<&str>| {
                        row[0] == (dataset + 1).to_string() && row[2] == kind && row[4] == *parameter
                    };
                    let found = told.iter().find(of).unwrap_or_else(|| panic!("{kind} {parameter}"));
                    let row = summary.iter().find(|row| row[0] == *parameter).unwrap();
                    let ends = [number(found[7]), number(found[8])];
                    for (end, cell) in ends.into_iter().zip([row[4], row[6]]) {
                        let expected = number(cell);
                        assert!(
                            (end - expected).abs() < 1e-7 * expected.abs().max(0.1),
                            "{name} {found:?} {row:?}"
                        );
                    }
                    if kind == "percentile" {
                        percentile.push(ends);
                    } else {
                        moved += usize::from(percentile[j] != ends);
                    }
                }
            }
        }
        assert!(moved > 4 * parameters.len(), "{name}: {moved} intervals are corrected");
    }
    let all = place.read("runs/s-coverage/coverage.csv");
    let all = cells(&all);
    let kinds: Vec<&str> = all[1..].iter().filter(|row| row[2] == "all__").map(|row| row[0]).collect();
    assert_eq!(kinds, ["percentile", "bc", "bca"]);
    // And they are kept, gone on with, and the same for any number of threads.
    place.ok(&["coverage", "s.toml", "--out", "x", "--interval", "bca,bc", "--datasets", "2", "--quiet"]);
    place.ok(&["coverage", "s.toml", "--out", "x", "--interval", "bca,bc", "--datasets", "9", "--quiet"]);
    let args = ["--out", "y", "--interval", "bca,bc", "--datasets", "9", "--threads", "1", "--quiet"];
    place.ok(&[&["coverage", "s.toml"], &args[..]].concat());
    assert_eq!(results(&place, "x"), results(&place, "y"));
}

/// Where `npl summary` refuses them, for the same reasons.
#[test]
fn corrected_intervals_are_refused_where_they_mean_nothing() {
    let place = place();
    let stages = "name = \"t\"\nseed = 1\n[data.simulate.normal]\nn = 30\nmean = [0.0, 0.0]\nsd = 1.0\n[[stage]]\nname = \"one\"\n\
                  target = \"y1\"\ncolumns = []\nmodel.linear.penalty = \"none\"\n[[stage]]\nname = \"two\"\ntarget = \"y2\"\n\
                  columns = [\"y1\"]\nmodel.linear.penalty = \"none\"\n[sampler]\nB = 60\n";
    let median = "name = \"q\"\nseed = 1\n[data.simulate.normal]\nn = 30\nmean = 0.0\nsd = 1.0\n[model.median]\n[sampler]\nB = 60\n";
    place.write("t.toml", stages).write("q.toml", median);
    let prior = "prior={ alpha = 1.0, T = 10, base = { normal = { mean = 0.0, sd = 1.0 } } }";
    let cases: [(&[&str], &str, &str); 6] = [
        (&["c.toml", "--set", "method=nuts"], "bc", "these are others"),
        (&["c.toml", "--set", "method=advi"], "percentile,bca", "these are others"),
        (&["c.toml", "--set", prior], "bc", "alpha > 0"),
        (&["c.toml", "--set", prior], "bca", "alpha > 0"),
        (&["t.toml"], "bca", "stages have one each"),
        (&["q.toml"], "bca", "no single smooth minimum"),
    ];
    for (args, kind, says) in cases {
        let said = place.npl(&[&["coverage"], args, &["--interval", kind, "--datasets", "2"]].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.stderr);
        assert!(
            said.stderr.contains(says) && said.stderr.contains("--interval b"),
            "{args:?}: {}",
            said.stderr
        );
        said.assert_decent(says);
    }
    assert!(!place.exists("runs"));
    for config in ["t.toml", "q.toml"] {
        place.ok(&["coverage", config, "--interval", "bc", "--datasets", "2", "--quiet"]);
    }
}

/// A quantity that is no number in any draw of some data sets has no interval there: these neither cover nor miss.
#[test]
fn data_sets_without_an_interval_count_for_nothing() {
    let place = place();
    // Above 0 in the truth, and below it in every draw of about half of the data sets.
    let derived = "[derived]\nroot = \"sqrt(theta.y1 - 0.99)\"\n[sampler]";
    let text =
        NORMAL.replace("[sampler]\nB = 200", &format!("{derived}\nB = 20")).replace("sd = 1.5", "sd = 0.01");
    place.write("n.toml", text.replace("mean = [1.0, -2.0]", "mean = [0.9901, -2.0]"));
    let said = place.ok(&["coverage", "n.toml", "--datasets", "40", "--out", "n"]);
    let table = place.read("n/coverage.csv");
    let table = cells(&table);
    let of = |name: &str| table.iter().find(|row| row[2] == name).unwrap();
    let datasets = place.read("n/datasets.csv");
    let known = cells(&datasets)[1..].iter().filter(|row| row[4] == "root" && !row[7].is_empty()).count();
    assert!(0 < known && known < 40, "{known}");
    for name in ["root", "all__"] {
        assert_eq!(of(name)[4], known.to_string(), "{name}");
    }
    assert_eq!(of("theta.y1")[4], "40");
    assert!(of("root")[5..].iter().all(|cell| number(cell).is_finite()), "{:?}", of("root"));
    let warned = format!("warning: {} data sets of 40 have no percentile interval of root", 40 - known);
    assert!(said.stdout.contains(&warned), "{}", said.stdout);
    assert!(!datasets.contains("NaN") && !said.stdout.contains("NaN"));
    // One data set has no spread between data sets.
    let one = place.ok(&["coverage", "n.toml", "--datasets", "1", "--out", "one"]).stdout;
    assert!(!one.contains("NaN") && !place.read("one/coverage.csv").contains("NaN"), "{one}");
}
