//! Cross-validation: folds are those that a loop by hand would make, and what is pooled of them is what their rows say.

use std::collections::BTreeMap;

use crate::support::{Place, cells};

fn place() -> Place {
    let place = Place::new();
    let row = |i: usize| {
        let (x, z) = (((i * 7919) % 101) as f64 / 25.0 - 2.0, ((i * 104_729) % 97) as f64 / 97.0);
        let y = u8::from(((i * 31) % 53) as f64 / 53.0 < 1.0 / (1.0 + (-1.5 * x).exp()));
        format!("{x},{z},{},{y}\n", i % 12)
    };
    place.write("q.csv", format!("x,z,site,y\n{}", (0..83).map(row).collect::<String>()));
    for (name, columns) in [("both", "\"x\", \"z\""), ("one", "\"z\"")] {
        place.write(&format!("{name}.toml"), experiment(name, columns));
    }
    place
}

fn experiment(name: &str, columns: &str) -> String {
    format!(
        "name = \"{name}\"\nseed = 2\n[data]\ntrain = \"q.csv\"\ntarget = \"y\"\ncolumns = [{columns}]\nstandardise = \"numeric\"\n\
         [sampler]\nB = 60\n[model.logistic]\npenalty = \"ridge\"\n[evaluate]\nfolds = 4\n[output]\npointwise = true\n"
    )
}

/// Fold and log density of every row, by `pointwise.csv`.
fn pointwise(place: &Place, run: &str) -> BTreeMap<usize, (usize, f64)> {
    let text = place.read(&format!("{run}/pointwise.csv"));
    let row = |row: &Vec<&str>| (row[1].parse().unwrap(), (row[0].parse().unwrap(), row[2].parse().unwrap()));
    cells(&text)[1..].iter().map(row).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn column(text: &str, name: &str) -> Vec<f64> {
    let rows = cells(text);
    let j = rows[0].iter().position(|c| *c == name).unwrap();
    rows[1..].iter().map(|row| number(row[j])).collect()
}

#[test]
fn folds_are_a_loop_by_hand() {
    let place = place();
    place.ok(&["run", "both.toml", "--quiet"]);
    let rows = pointwise(&place, "runs/both");
    assert_eq!(
        rows.keys().copied().collect::<Vec<_>>(),
        (1..=83).collect::<Vec<_>>(),
        "every row is held out once"
    );
    // As many of each class as can be.
    let y = column(&place.read("q.csv"), "y");
    for k in 1..=4 {
        let ones = rows.iter().filter(|(i, (fold, _))| *fold == k && y[*i - 1] == 1.0).count();
        let all = y.iter().filter(|y| **y == 1.0).count();
        assert!((ones as f64 - all as f64 / 4.0).abs() < 1.0, "fold {k}: {ones} of {all}");
    }
    // The same folds as a file, and a run for each.
    let folds: String = rows.values().map(|(fold, _)| format!("{fold}\n")).collect();
    place.write("folds.txt", folds);
    let plain = experiment("hand", "\"x\", \"z\"").replace("[evaluate]\nfolds = 4\n", "");
    let (mut total, mut densities) = (0.0, BTreeMap::new());
    for k in 1..=4usize {
        let split =
            format!("standardise = \"numeric\"\nsplit = {{ file = \"folds.txt\", held_out = \"{k}\" }}");
        place.write("hand.toml", plain.replace("standardise = \"numeric\"", &split));
        let (out, seed) = (format!("hand{k}"), (2 + k - 1).to_string());
        place.ok(&["run", "hand.toml", "--quiet", "--out", &out, "--seed", &seed]);
        let report = place.read(&format!("{out}/report.csv"));
        total += column(&report, "lppd")[0] * column(&report, "n_test")[0];
        densities.extend(pointwise(&place, &out));
    }
    let report: serde_json::Value = serde_json::from_str(&place.read("runs/both/report.json")).unwrap();
    let lppd = &report["metrics"]["lppd"];
    assert!((lppd["mean"].as_f64().unwrap() - total / 83.0).abs() < 1e-12, "{lppd} and {}", total / 83.0);
    for (row, (_, density)) in &rows {
        assert_eq!(densities[row].1, *density, "row {row}");
    }
    let mean = rows.values().map(|(_, d)| d).sum::<f64>() / 83.0;
    assert!((lppd["mean"].as_f64().unwrap() - mean).abs() < 1e-12);
    assert!(lppd["se"].as_f64().unwrap() > 0.0 && lppd["repeats"] == 4);
    let table = place.ok(&["table", "runs/both"]).stdout;
    assert!(table.contains("4 folds"), "{table}");
}

/// The difference is that of the rows, each once, whatever fold held it out.
#[test]
fn runs_are_compared_over_all_rows() {
    let place = place();
    place.ok(&["run", "both.toml", "--quiet"]);
    place.ok(&["run", "one.toml", "--quiet"]);
    let (a, b) = (pointwise(&place, "runs/both"), pointwise(&place, "runs/one"));
    assert!(a.iter().all(|(row, (fold, _))| b[row].0 == *fold), "the same folds");
    let d: Vec<f64> = a.iter().map(|(row, (_, l))| l - b[row].1).collect();
    let mean = d.iter().sum::<f64>() / 83.0;
    let se = (d.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 82.0 / 83.0).sqrt();
    let said = place.ok(&["compare", "runs/both", "runs/one", "--format", "csv"]).stdout;
    let table = cells(&said);
    let row = table.iter().find(|row| row[0] == "runs/one" && row[1] == "LPPD").unwrap();
    assert!(
        (number(row[3]) - mean).abs() < 1e-12 && (number(row[4]) - se).abs() < 1e-12,
        "{row:?}: {mean} {se}"
    );
    let text = place.ok(&["compare", "runs/both", "runs/one"]).stdout;
    assert!(text.contains("LPPD: runs/both is better than runs/one by"), "{text}");
    assert!(text.contains("rows, each held out in one of 4 folds"), "{text}");
    place.ok(&["run", "one.toml", "--quiet", "--seed", "5", "--out", "runs/other"]);
    let refused = place.npl(&["compare", "runs/both", "runs/other"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("other test rows"), "{}", refused.stderr);
    // Two of the same name go by their directories, and it is said that their folds are others.
    let table = place.ok(&["table", "runs/one", "runs/other"]).stdout;
    assert_eq!(
        table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(),
        ["one", "other"],
        "{table}"
    );
    assert!(table.contains("saw different splits"), "{table}");
    let alike = place.ok(&["table", "runs/one", "runs/both"]).stdout;
    assert!(!alike.contains("saw different splits") && alike.contains("both"), "{alike}");
}

#[test]
fn folds_are_dealt_anew_and_by_clusters() {
    let place = place();
    place.ok(&["run", "both.toml", "--quiet", "--set", "repeats=2", "--out", "twice"]);
    let text = place.read("twice/pointwise.csv");
    let rows = cells(&text);
    assert_eq!(rows.len(), 1 + 2 * 83);
    let held_out = |from: usize| -> Vec<(usize, usize)> {
        let of = rows[1..].iter().map(|row| (row[1].parse().unwrap(), row[0].parse().unwrap()));
        let mut of: Vec<(usize, usize)> = of.filter(|(_, k)| (from..from + 4).contains(k)).collect();
        of.sort();
        of.into_iter().map(|(row, k)| (row, k - from)).collect()
    };
    assert_eq!(held_out(1).len(), 83);
    assert_ne!(held_out(1), held_out(5), "new folds");
    place.write("site.toml", place.read("both.toml").replace("target =", "cluster = \"site\"\ntarget ="));
    place.ok(&["run", "site.toml", "--quiet", "--out", "site"]);
    let rows = pointwise(&place, "site");
    assert!((1..=71).all(|i| rows[&i].0 == rows[&(i + 12)].0), "sites stay whole");
    for (set, says) in [
        ("evaluate.folds=1", "must be 2 at least"),
        ("evaluate.folds=84", "there are 83 rows to deal out"),
        ("data.split=0.2", "exclude each other"),
        ("data.resample=50", "a row drawn twice would be in two folds"),
        ("optimiser.subsample={batch=1000000000}", "at most 10000000 are possible"),
    ] {
        let said = place.npl(&["run", "both.toml", "--set", set, "--out", "x"]);
        assert!(said.code == Some(2) && said.stderr.contains(says), "{set}: {}", said.stderr);
    }
}

/// Every setting has the metric of its own folds, and both picks are told.
#[test]
fn a_path_over_folds_is_tuned() {
    let place = place();
    let path = "[path]\nparameter = \"model.logistic.gamma\"\nvalues = [0.001, 0.1, 30.0]\n";
    place.write("tune.toml", place.read("both.toml").replace("name = \"both\"", "name = \"tune\"") + path);
    place.ok(&["run", "tune.toml", "--quiet"]);
    let said = place.ok(&["table", "runs/tune", "--path", "--format", "csv"]).stdout;
    let table = cells(&said);
    assert_eq!(table[0], ["setting", "value", "LPPD", "se", "mcse", "pick"]);
    for (row, gamma) in table[1..].iter().zip(["0.001", "0.1", "30.0"]) {
        let set = format!("model.logistic.gamma={gamma}");
        place.ok(&["run", "both.toml", "--quiet", "--set", &set, "--out", gamma]);
        let report: serde_json::Value =
            serde_json::from_str(&place.read(&format!("{gamma}/report.json"))).unwrap();
        let lppd = &report["metrics"]["lppd"];
        for (j, key) in [(2, "mean"), (3, "se")] {
            assert_eq!(number(row[j]), lppd[key].as_f64().unwrap(), "{gamma}: {key}");
        }
    }
    let lppd: Vec<f64> = table[1..].iter().map(|row| number(row[2])).collect();
    let best = (0..3).max_by(|&a, &b| lppd[a].total_cmp(&lppd[b])).unwrap();
    let near = |t: &usize| lppd[*t] >= lppd[best] - number(table[1 + best][3]);
    let simplest = (0..3).rfind(near).unwrap();
    assert!(table[1 + best][5].contains("best") && table[1 + simplest][5].contains("simplest"), "{said}");
    let text = place.ok(&["table", "runs/tune", "--path"]).stdout;
    assert!(text.contains("(larger is simpler)"), "{text}");
    // Draws that are kept are those of the first fold, as a run of that setting makes them.
    place.ok(&["run", "tune.toml", "--quiet", "--set", "path.keep=[\"beta.x\"]", "--out", "kept"]);
    let of_first =
        |gamma| column(&place.read(&format!("{gamma}/samples.csv")), "beta.x").into_iter().take(60);
    let alone: Vec<f64> = ["0.001", "0.1", "30.0"].into_iter().flat_map(of_first).collect();
    assert_eq!(column(&place.read("kept/samples.csv"), "beta.x"), alone);
    // The posterior along the path is that of the first fold, and a picture has the metric.
    assert_eq!(cells(&place.ok(&["summary", "runs/tune", "--format", "csv"]).stdout).len(), 1 + 3 * 3);
    if cfg!(feature = "plot") {
        place.ok(&["plot", "runs/tune", "--kind", "tuning", "--out", "tune.svg"]);
        let svg = place.read("tune.svg");
        assert!(
            svg.contains("within one standard error of the best") && svg.contains("LPPD"),
            "both picks are named"
        );
    }
    let none = place.npl(&["table", "runs/tune"]);
    assert!(none.code == Some(2) && none.stderr.contains("--path"), "{}", none.stderr);
}

/// `log_lik.npy` has the log likelihood of every row by every draw of chains.
#[test]
fn chains_keep_their_log_likelihood() {
    let place = place();
    let text = place.read("both.toml").replace("[evaluate]\nfolds = 4\n", "");
    place.write("nuts.toml", text);
    let chains = ["--set", "method=nuts", "--set", "nuts.chains=2"];
    place.ok(&[&["run", "nuts.toml", "--quiet", "--out", "nuts"], &chains[..]].concat());
    let array = std::fs::read(place.path("nuts/log_lik.npy")).unwrap();
    let values = &array[array.len() - 60 * 83 * 8..];
    let at = |b: usize, i: usize| f64::from_le_bytes(values[(b * 83 + i) * 8..][..8].try_into().unwrap());
    let draws = place.ok(&["predict", "nuts", "q.csv", "--draws"]).stdout;
    let table = cells(&draws);
    let y = column(&place.read("q.csv"), "y");
    for (b, i) in [(0, 0), (17, 5), (59, 82)] {
        let p = number(table[1 + i][1 + b]);
        let expected = if y[i] == 1.0 { p.ln() } else { (1.0 - p).ln() };
        assert!((at(b, i) - expected).abs() < 1e-9, "{} and {expected}", at(b, i));
    }
    let refused = place.npl(&["run", "nuts.toml", "--quiet", "--out", "x"]);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("keeps log densities of test rows"),
        "{}",
        refused.stderr
    );
}

/// Folds of one's own are compared over all rows, each of which is held out once; test rows that are the same in every repeat are
/// no more rows for that.
#[test]
fn folds_of_ones_own_are_compared_row_by_row() {
    let place = place();
    let text = place.read("q.csv");
    let with_fold = |(i, line): (usize, &str)| match i {
        0 => format!("{line},fold\n"),
        i => format!("{line},{}\n", i % 4),
    };
    place.write("q.csv", text.lines().enumerate().map(with_fold).collect::<String>());
    let own = |split: &str| {
        for (name, columns) in [("both", "\"x\", \"z\""), ("one", "\"z\"")] {
            let text = experiment(name, columns).replace("[evaluate]\nfolds = 4\n", "");
            let text = text.replace("seed = 2", "seed = 2\nrepeats = 4");
            place.write(
                &format!("{name}.toml"),
                text.replace("standardise", &format!("{split}\nstandardise")),
            );
            place.ok(&["run", &format!("{name}.toml"), "--quiet", "--force"]);
        }
        // Every row, the mean over the repeats that held it out.
        let scores = |run: &str| -> BTreeMap<usize, f64> {
            let text = place.read(&format!("{run}/pointwise.csv"));
            let mut sums: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
            for row in &cells(&text)[1..] {
                sums.entry(row[1].parse().unwrap()).or_default().push(number(row[2]));
            }
            sums.into_iter().map(|(row, all)| (row, all.iter().sum::<f64>() / all.len() as f64)).collect()
        };
        let (a, b) = (scores("runs/both"), scores("runs/one"));
        let d: Vec<f64> = a.iter().map(|(row, a)| a - b[row]).collect();
        let n = d.len() as f64;
        let mean = d.iter().sum::<f64>() / n;
        let se = (d.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
        let csv = place.ok(&["compare", "runs/both", "runs/one", "--format", "csv"]).stdout;
        let table = cells(&csv);
        let row = table.iter().find(|row| row[0] == "runs/one" && row[1] == "LPPD").unwrap();
        assert!((number(row[3]) - mean).abs() < 1e-12, "{row:?}: {mean}");
        assert!((number(row[4]) - se).abs() < 1e-12, "{row:?}: {se}");
        (d.len(), place.ok(&["compare", "runs/both", "runs/one"]).stdout)
    };
    let (rows, said) = own("split = { column = \"fold\" }");
    assert_eq!(rows, 83);
    assert!(said.contains("standard error over rows, each held out in one of 4 repeats;"), "{said}");
    let (rows, said) = own("split = { column = \"fold\", held_out = \"2\" }");
    assert_eq!(rows, 21);
    assert!(said.contains("standard error over test rows, the same in 4 repeats;"), "{said}");
}
