//! `npl predict --value` and derived quantities in `model.custom.predict`: what they say of a row and a draw is what the table of
//! draws says of the draw, by hand.

use std::fmt::Write;

use crate::support::{Ended, Place, cells};

fn rows() -> String {
    let mut out = "id,x,z,region,y,count\n".to_owned();
    for i in 0..60 {
        let x = ((i * 7919) % 101) as f64 / 25.0 - 2.0;
        let z = ((i * 104_729) % 97) as f64 / 97.0;
        let region = ["north", "south"][(i / 3) % 2];
        let y = u8::from(((i * 31) % 53) as f64 / 53.0 < 1.0 / (1.0 + (-1.2 * x).exp()));
        writeln!(out, "{i},{x},{z},{region},{y},{}", (z * 5.0 + x * x).round()).unwrap();
    }
    out
}

const CUSTOM: &str = "name = \"c\"\nseed = 2\n[data]\ntrain = \"d.csv\"\ntarget = \"count\"\ncolumns = [\"x\"]\n\
                      [derived]\nslope.two = \"2*b\"\nmid = \"slope.two + a\"\n[sampler]\nB = 30\n[model.custom]\n\
                      parameters = { a = { real = 1 }, b = { real = 1 } }\nloss = \"sq(count - a - b*x)\"\n\
                      predict = \"mid + slope.two*x\"\n";
const LOGISTIC: &str = "name = \"l\"\nseed = 2\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\ncolumns = [\"z\", \"region\"]\n\
                        categorical = [\"region\"]\nstandardise = \"numeric\"\n[derived]\nodds.z = \"exp(beta.z)\"\n\
                        root = \"sqrt(intercept)\"\n[sampler]\nB = 40\n[model.logistic]\npenalty = \"ridge\"\n";

fn place() -> Place {
    let place = Place::new();
    place.write("d.csv", rows()).write("c.toml", CUSTOM).write("l.toml", LOGISTIC);
    place
}

/// Columns of a table as numbers; empty cells are NaN.
fn column(text: &str, name: &str) -> Vec<f64> {
    let rows = cells(text);
    let at = rows[0].iter().position(|c| *c == name).unwrap_or_else(|| panic!("no {name} in {:?}", rows[0]));
    rows[1..].iter().map(|row| row[at].parse().unwrap_or(f64::NAN)).collect()
}

fn draws(place: &Place, run: &str, more: &[&str], name: &str) -> Vec<f64> {
    let args: Vec<&str> = ["samples", run, "--drop-failed"].iter().chain(more).copied().collect();
    column(&place.ok(&args).stdout, name)
}

/// What every draw says of every row, row by row.
fn told(place: &Place, run: &str, value: &str, more: &[&str]) -> Vec<Vec<f64>> {
    let mut args = vec!["predict", run, "d.csv", "--draws"];
    if !value.is_empty() {
        args.extend(["--value", value]);
    }
    args.extend(more);
    let text = place.ok(&args).stdout;
    cells(&text)[1..]
        .iter()
        .map(|row| row[1..].iter().map(|c| c.parse().unwrap_or(f64::NAN)).collect())
        .collect()
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-12 * expected.abs().max(1.0) || (found.is_nan() && expected.is_nan())
}

fn refused(ended: Ended, says: &str, caret: &str) {
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    ended.assert_decent(says);
    assert!(ended.stderr.contains(says) && ended.stderr.contains(caret), "{says}\n{}", ended.stderr);
}

#[test]
fn derived_quantities_are_known_where_a_loss_predicts() {
    let place = place();
    place.ok(&["run", "c.toml", "--quiet"]);
    let x = column(&place.read("d.csv"), "x");
    let (slope, mid) = (draws(&place, "runs/c", &[], "slope.two"), draws(&place, "runs/c", &[], "mid"));
    assert!(slope.iter().zip(&draws(&place, "runs/c", &[], "b")).all(|(s, b)| near(*s, 2.0 * b)));
    for (row, x) in told(&place, "runs/c", "", &[]).iter().zip(&x) {
        assert_eq!(row.len(), 30);
        assert!((0..30).all(|b| near(row[b], mid[b] + slope[b] * x)));
    }
    // What the prediction is scored by knows them, too.
    place.write("split.toml", CUSTOM.replace("columns = [\"x\"]", "columns = [\"x\"]\nsplit = 0.3"));
    place.write("plain.toml", place.read("split.toml").replace("mid + slope.two*x", "2*b + a + 2*b*x"));
    let mse = ["split", "plain"].map(|name| {
        place.ok(&["run", &format!("{name}.toml"), "--out", name, "--quiet"]);
        column(&place.read(&format!("{name}/report.csv")), "mse")[0]
    });
    assert!(near(mse[0], mse[1]), "{mse:?}");
}

/// The order of definitions counts; what is wrong is pointed at, once.
#[test]
fn wrong_names_of_derived_quantities_are_pointed_at() {
    let place = place();
    let cases = [
        (
            "mid = \"slope.two + a\"",
            "mid = \"mid + a\"",
            "`mid` is derived here or later",
            "| mid = \"mid + a\"\n    |        ^^^\n",
        ),
        ("slope.two = \"2*b\"", "slope.two = \"2*mid\"", "`mid` is derived here or later", "^^^"),
        ("slope.two = \"2*b\"", "slope.two = \"2*bb\"", "`bb` is not a parameter", "^^"),
        ("mid + slope.two*x", "midd + x", "did you mean `mid`?", "^^^^"),
        (
            "mid = \"slope.two + a\"",
            "mid = \"slope.two + a\"\nx = \"a\"",
            "`x` is both a column of the data and a derived",
            "^",
        ),
        ("mid = \"slope.two + a\"", "mid = \"slope.two + a\"\na = \"b\"", "the name `a` is taken", "^"),
        (
            "sq(count - a - b*x)",
            "sq(count - a - b*x) + mid",
            "`mid` is not a column of the data, a parameter or",
            "^^^",
        ),
    ];
    for (from, to, says, caret) in cases {
        assert!(CUSTOM.contains(from), "{from}");
        place.write("w.toml", CUSTOM.replace(from, to));
        let ended = place.npl(&["run", "w.toml", "--quiet"]);
        assert_eq!(ended.stderr.matches("w.toml:").count(), 1, "told once: {}", ended.stderr);
        refused(ended, says, caret);
    }
    // A definition within an expression may have the name that the quantity gets.
    place.write("let.toml", CUSTOM.replace("\"slope.two + a\"", "\"let mid = slope.two + a; mid\""));
    place.ok(&["run", "let.toml", "--quiet"]);
}

#[test]
fn values_are_those_of_the_table_of_draws() {
    let place = place();
    place.ok(&["run", "c.toml", "--quiet"]).assert_decent("c");
    place.ok(&["run", "l.toml", "--quiet"]);
    let (x, y) = (column(&place.read("d.csv"), "x"), column(&place.read("d.csv"), "count"));
    let (a, mid) = (draws(&place, "runs/c", &[], "a"), draws(&place, "runs/c", &[], "mid"));
    let predicted = told(&place, "runs/c", "", &[]);
    let found = told(&place, "runs/c", "(count - prediction)*mid + if(x > 0, a, 1)", &[]);
    for (i, row) in found.iter().enumerate() {
        for b in 0..30 {
            let expected = (y[i] - predicted[i][b]) * mid[b] + if x[i] > 0.0 { a[b] } else { 1.0 };
            assert!(near(row[b], expected), "{i} {b}: {} {expected}", row[b]);
        }
    }
    // Odds of a row, by its linear predictor on prepared columns and by what is predicted.
    let (odds, beta) = (draws(&place, "runs/l", &[], "odds.z"), draws(&place, "runs/l", &[], "intercept"));
    let p = told(&place, "runs/l", "", &[]);
    let found = told(&place, "runs/l", "odds.z*probability/(1 - prediction)", &[]);
    let linear = told(&place, "runs/l", "odds.z*exp(dot(beta, x) + intercept)", &[]);
    let at_mean = told(&place, "runs/l", "let eta = z*0 + intercept; eta*1", &[]);
    for i in 0..60 {
        for b in 0..40 {
            assert!(near(found[i][b], odds[b] * p[i][b] / (1.0 - p[i][b])));
            assert!((found[i][b] / linear[i][b] - 1.0).abs() < 1e-9);
            assert!(near(at_mean[i][b], beta[b]));
        }
    }
    // Means and intervals are those of the draws that are numbers, and it is said how many are not.
    let said = place.ok(&["predict", "runs/l", "d.csv", "--value", "root", "--value", "one = 1 + 0*z"]);
    let lost = beta.iter().filter(|b| **b < 0.0).count();
    assert!(0 < lost && lost < 40, "{lost}");
    assert!(
        said.stderr.contains(&format!("{} values of single draws are no finite numbers", 60 * lost)),
        "{}",
        said.stderr
    );
    let left: Vec<f64> = beta.iter().filter(|b| **b >= 0.0).map(|b| b.sqrt()).collect();
    let mean = left.iter().sum::<f64>() / left.len() as f64;
    assert!(column(&said.stdout, "value").iter().all(|v| near(*v, mean)));
    assert!(column(&said.stdout, "one").iter().chain(&column(&said.stdout, "one_upper")).all(|v| *v == 1.0));
    assert!(!said.stdout.contains("log_density") && !said.stderr.contains("LPPD"));
}

/// Components have the labels that predictions have; what does not depend on labels is what the table of draws has. A model that
/// predicts nothing has its parameters.
#[test]
fn mixtures_and_models_without_predictions_have_values() {
    let place = place();
    place.write(
        "m.toml",
        "name = \"m\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ncolumns = [\"x\"]\n[derived]\nspread = \"max(mu) - min(mu)\"\n\
         [model.gmm]\nK = 2\nvariance_floor = 1e-3\n[sampler]\nB = 25\nR = 3\ninit.pi = { dirichlet = 1.0 }\n\
         init.mu = { uniform = [-2.0, 2.0] }\ninit.sigma2 = { inverse_gamma = [1.0, 1.0] }\n",
    );
    place.ok(&["run", "m.toml", "--quiet"]);
    let (one, two) = (
        draws(&place, "runs/m", &["--relabel"], "mu.1.1"),
        draws(&place, "runs/m", &["--relabel"], "mu.2.1"),
    );
    let spread = draws(&place, "runs/m", &[], "spread");
    let more = [
        "--value",
        "b = mu.2.1",
        "--value",
        "c = spread",
        "--value",
        "d = sum(prediction)",
        "--value",
        "e = component.1",
    ];
    let p = told(&place, "runs/m", "", &[]);
    for (row, p) in told(&place, "runs/m", "mu.1.1", &more).iter().zip(&p) {
        assert_eq!(row.len(), 5 * 25);
        for b in 0..25 {
            assert!(near(row[b], one[b]) && near(row[25 + b], two[b]) && near(row[50 + b], spread[b]));
            assert!(near(row[50 + b], (one[b] - two[b]).abs()));
            assert!(near(row[75 + b], 1.0) && near(row[100 + b], p[b]));
        }
    }
    place.write("mean.toml", "name = \"mean\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ncolumns = [\"x\", \"z\"]\n[model.mean]\n[sampler]\nB = 20\n");
    place.ok(&["run", "mean.toml", "--quiet"]);
    refused(place.npl(&["predict", "runs/mean", "d.csv"]), "tells nothing of a row", "--value");
    let (x, theta) = (column(&place.read("d.csv"), "x"), draws(&place, "runs/mean", &[], "theta.x"));
    for (row, x) in told(&place, "runs/mean", "x - theta.x", &[]).iter().zip(x) {
        assert!((0..20).all(|b| near(row[b], x - theta[b])));
    }
    refused(
        place.npl(&["predict", "runs/mean", "d.csv", "--value", "prediction"]),
        "`prediction` is not a column",
        "^^^^^^^^^^",
    );
}

/// Numbers are the same in all formats; rows of groups are told by their own draws, repeats and settings by theirs, and draws that
/// count by weights count by them.
#[test]
fn every_format_group_repeat_and_setting_has_values() {
    let place = place();
    let grouped = LOGISTIC.replace("columns = [\"z\", \"region\"]", "columns = [\"z\"]\nby = \"region\"");
    let grouped =
        grouped.replace("categorical = [\"region\"]\n", "").replace("seed = 2", "seed = 2\nrepeats = 2");
    place.write("g.toml", grouped.replace("standardise", "split = 0.2\nstandardise"));
    place.ok(&["run", "g.toml", "--out", "runs/g", "--quiet"]);
    let value = ["--value", "odds.z", "--value", "r = y - prediction", "--repeat", "2", "--keep", "region"];
    let args = |more: &[&str]| -> String {
        let all: Vec<&str> =
            ["predict", "runs/g", "d.csv"].iter().chain(&value).chain(more).copied().collect();
        place.ok(&all).stdout
    };
    let (csv, json) = (args(&[]), args(&["--format", "ndjson"]));
    let rows: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let regions: Vec<&str> = cells(&csv)[1..].iter().map(|row| row[1]).collect();
    for name in ["value", "value_sd", "r_lower"] {
        let numbers = column(&csv, name);
        assert!(numbers.len() == 60 && numbers.iter().all(|v| v.is_finite()));
        assert!(rows.iter().zip(&numbers).all(|(row, v)| row[name].as_f64() == Some(*v)), "{name}");
    }
    for group in ["north", "south"] {
        let odds = draws(&place, "runs/g", &["--group", group, "--repeat", "2"], "odds.z");
        let mean = odds.iter().sum::<f64>() / odds.len() as f64;
        let own = column(&csv, "value").into_iter().zip(&regions).filter(|(_, region)| **region == group);
        assert!(own.clone().count() == 30 && own.clone().all(|(v, _)| near(v, mean)), "{group}");
    }
    let array: Vec<&str> = ["predict", "runs/g", "d.csv"]
        .into_iter()
        .chain(value[..6].iter().copied())
        .chain(["--format", "npy", "--out", "v.npy"])
        .collect();
    place.ok(&array);
    let bytes = std::fs::read(place.path("v.npy")).unwrap();
    let first = f64::from_le_bytes(bytes[bytes.len() - 60 * 8 * 8..][..8].try_into().unwrap());
    assert_eq!(first, column(&csv, "value")[0]);
    // A setting of a path.
    let path = LOGISTIC.to_owned()
        + "gamma = 1.0\n[path]\nparameter = \"model.logistic.gamma\"\nvalues = [0.01, 5.0]\nkeep = [\"*\"]\n";
    place.write("p.toml", path);
    place.ok(&["run", "p.toml", "--quiet"]);
    for setting in ["1", "2"] {
        let odds = draws(&place, "runs/l", &["--setting", setting], "odds.z");
        let found = told(&place, "runs/l", "odds.z", &["--setting", setting]);
        assert!(found.iter().all(|row| row.iter().zip(&odds).all(|(v, o)| near(*v, *o))));
    }
    // By weights.
    let weighted = CUSTOM.replace(
        "[derived]",
        "[importance.proposal]\na = { normal = [1.0, 2.0] }\nb = { normal = [0.0, 2.0] }\n[derived]",
    );
    let weighted = weighted.replace("predict =", "likelihood = true\npredict =");
    place.write("w.toml", format!("method = \"importance\"\n{weighted}"));
    place.ok(&["run", "w.toml", "--out", "w", "--quiet"]);
    let mid = column(&place.ok(&["summary", "w", "--only", "mid", "--format", "csv"]).stdout, "mean")[0];
    let said =
        place.ok(&["predict", "w", "d.csv", "--value", "mid", "--value", "p = prediction - slope.two*x"]);
    for name in ["value", "p"] {
        assert!(column(&said.stdout, name).iter().all(|v| (v - mid).abs() < 1e-9), "{name}");
    }
}

/// Values that cannot be: exit 2, the characters that are wrong, and what was expected.
#[test]
fn wrong_values_are_pointed_at() {
    let place = place();
    place.ok(&["run", "l.toml", "--quiet"]);
    place.write("short.csv", "z,region\n1,south\n");
    let cases = [
        ("exp(beta.zz)", "did you mean `beta.z`?", "| exp(beta.zz)\n    |     ^^^^^^^\n"),
        ("ratio = odds.zz", "did you mean `odds.z`?", "| ratio = odds.zz\n    |         ^^^^^^^\n"),
        ("beta", "this is a vector with 2 entries", "| beta\n    | ^^^^"),
        ("", "found the end", "--value"),
        ("z +", "found the end", "|    ^"),
        ("region == 'south'", "`region` is not a column of the new rows", "^^^^^^"),
        ("z = 2 = 3", "`==` compares", "|       ^"),
        ("sd(z)", "`sd` is no function", "| ^^"),
        ("prediction*status__", "`status__` is not", "^^^^^^^^"),
        ("z\u{1b}[31m", "--value", "^"),
        ("row = 1", "two columns would be called row", ""),
        ("id = 1", "a column of the predictions has this name", ""),
    ];
    for (value, says, caret) in cases {
        refused(place.npl(&["predict", "runs/l", "d.csv", "--keep", "id", "--value", value]), says, caret);
    }
    refused(
        place.npl(&["predict", "runs/l", "d.csv", "--value", "1", "--value", "2"]),
        "would be called value",
        "NAME = EXPR",
    );
    refused(
        place.npl(&["predict", "runs/l", "d.csv", "--value", "a=1", "--value", "a_sd=2"]),
        "would be called a_sd",
        "",
    );
    refused(
        place.npl(&["predict", "runs/l", "short.csv", "--value", "y - prediction"]),
        "which have no response",
        "| ^",
    );
}

/// Where some draws of one group failed, rows of that group have empty cells for them, and not fewer columns.
#[test]
fn groups_with_fewer_draws_keep_their_columns() {
    let place = Place::new();
    let plenty: String = (0..12).map(|i| format!("a,{},{}\n", i % 5, (i / 2) % 2)).collect();
    place.write("s.csv", format!("g,w,y\n{plenty}b,1,0\nb,2,0\nb,3,1\nb,4,1\n"));
    place.write(
        "s.toml",
        "name = \"s\"\nseed = 1\n[data]\ntrain = \"s.csv\"\ntarget = \"y\"\ncolumns = [\"w\"]\nby = \"g\"\n[prior]\nalpha = 0.5\nT = 2\n\
         base = { response = { bernoulli = 0.5, covariates = \"empirical\" } }\n[sampler]\nB = 30\nmax_failed = 1.0\n\
         [model.logistic]\npenalty = \"none\"\n",
    );
    place.ok(&["run", "s.toml", "--quiet"]);
    let failed = 30 - draws(&place, "runs/s", &["--group", "b"], "intercept").len();
    assert!(0 < failed && failed < 30, "{failed}");
    let args = ["predict", "runs/s", "s.csv", "--draws", "--value", "p = prediction", "--value", "q = 2*p"];
    refused(place.npl(&args), "`p` is not a column of the new rows", "^");
    let args =
        ["predict", "runs/s", "s.csv", "--draws", "--value", "p = prediction", "--value", "q = 2*prediction"];
    let text = place.ok(&args).stdout;
    let rows = cells(&text);
    assert!(rows.iter().all(|row| row.len() == 61), "{text}");
    for row in &rows[13..] {
        let (p, q) = row[1..].split_at(30);
        for (p, q) in p.iter().zip(q) {
            assert_eq!(p.is_empty(), q.is_empty(), "{row:?}");
            assert!(p.is_empty() || near(2.0 * p.parse::<f64>().unwrap(), q.parse().unwrap()), "{row:?}");
        }
        assert_eq!(p.iter().filter(|p| p.is_empty()).count(), failed);
    }
    place.ok(&["predict", "runs/s", "s.csv", "--draws", "--format", "npy", "--out", "s.npy"]);
    let bytes = std::fs::read(place.path("s.npy")).unwrap().len();
    assert_eq!(bytes % 64, (16 * 30 * 8) % 64, "an array of 16 rows and 30 columns");
}
