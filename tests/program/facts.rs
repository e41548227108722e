//! What the program says of its data, and what it hands to other tools.

use std::process::Command;

use crate::support::{Place, cells};

const MIXED: &str = "\
age,sex,town,income,zero,bought
23,f,Oslo,12.5,1,yes
31,m,Bergen,NA,1,no
45,f,Oslo,30.1,1,yes
NA,m,Narvik,22.0,1,no
52,m,Bergen,41.7,1,yes
38,f,NA,28.3,1,no
29,f,Oslo,19.9,1,no
61,m,Bergen,NA,1,yes
44,f,Narvik,33.3,1,no
35,m,Oslo,25.0,1,no
";

const REGRESSION: &str = r#"
name = "mixed"
seed = 1

[data]
train = "mixed.csv"
target = "bought"
classes = { "yes" = 1, "no" = 0 }
categorical = ["sex", "town"]
missing_values = ["NA"]
missing = "mean"
standardise = "numeric"
constant = "drop"
split = { test = 0.3, stratify = true }

[model.logistic]
penalty = "ridge"

[sampler]
B = 4
init.beta = { normal = [0.0, 1.0] }
init.intercept = { normal = [0.0, 1.0] }
"#;

fn mixed() -> Place {
    let place = Place::new();
    place.write("mixed.csv", MIXED).write("x.toml", REGRESSION);
    place
}

/// The facts that `npl check` prints below the experiment, up to those that depend on the machine.
fn facts(place: &Place, sets: &[&str]) -> Vec<String> {
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let args: Vec<&str> = ["check", "x.toml"].into_iter().chain(sets).collect();
    let out = place.ok(&args).stdout;
    let facts = out.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned);
    facts.take_while(|line| !line.starts_with("parameters")).collect()
}

#[test]
fn check_says_what_the_data_became() {
    let place = mixed();
    let said = facts(&place, &[]);
    assert!(said[1].starts_with("            ./mixed.csv (240 bytes, sha256 "), "{said:?}");
    let expected = [
        "data        6 training rows x 5 columns, 3 test rows",
        "columns     3 numeric, 2 of text as 3 dummies",
        "            sex: 2 levels: f (no dummy), m",
        "            town: 3 levels: Bergen (no dummy), Narvik, Oslo",
        "missing     4 cells in 4 rows of 10",
        "            by column: income 2, age 1, town 1",
        "            1 row left out",
        "            3 cells imputed by the mean of the column",
        "constant    1 column left out: one value in all training rows: zero",
        "response    1 in 50.0 % of 6 training rows (3)",
        "            1 in 33.3 % of 3 test rows (1)",
    ];
    assert_eq!([&said[..1], &said[2..]].concat(), expected);
}

#[test]
fn check_follows_the_policies() {
    let place = mixed();
    let said =
        facts(&place, &["data.missing=drop", "data.dummies=keep_all", "data.constant=zero"]).join("\n");
    for line in [
        "columns     3 numeric, 2 of text as 5 dummies",
        "            sex: 2 levels: f, m\n",
        "            4 rows left out",
        "constant    1 column with one value in all training rows: zero",
    ] {
        assert!(said.contains(line), "no {line:?} in\n{said}");
    }
    assert!(!said.contains("imputed"), "{said}");
    // A marker that does not occur may be misspelt.
    place.write("mixed.csv", MIXED.replace("NA", "30"));
    assert!(facts(&place, &[]).contains(&"missing     none: no cell is \"NA\"".to_owned()));
}

/// A formula chooses which level has no dummy.
#[test]
fn check_names_the_level_that_a_formula_leaves_out() {
    let place = Place::new();
    let rows = "y,town,z\n0,Bergen,1\n1,Narvik,2\n1,Oslo,4\n0,Oslo,3\n1,Bergen,5\n0,Narvik,1\n";
    place.write("towns.csv", rows);
    let data = "train = \"towns.csv\"\nformula = \"y ~ z*C(town, ref='Narvik')\"";
    let rest = "[model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 4\n";
    place.write("x.toml", format!("name = \"x\"\nseed = 1\n[data]\n{data}\n{rest}"));
    let said = facts(&place, &[]).join("\n");
    for line in [
        "columns     3 numeric, 1 of text as 2 dummies",
        "            town: 3 levels: Bergen, Narvik (no dummy), Oslo",
    ] {
        assert!(said.contains(line), "no {line:?} in\n{said}");
    }
}

/// Images and labels in the format of MNIST: digits become classes.
#[test]
fn idx_labels_are_a_response() {
    let place = mixed();
    let images =
        [[0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2], [1, 2, 3, 4, 5, 6, 7, 9, 0, 0, 0, 0, 0, 0, 0, 0]];
    place.write("i-ubyte", &images.concat()[..24]).write("l-ubyte", [0, 0, 8, 1, 0, 0, 0, 4, 3, 8, 8, 3]);
    let data = r#"data={ train = "i-ubyte", labels = "l-ubyte", classes = { 3 = 0, 8 = 1 } }"#;
    let said = facts(&place, &[data]);
    assert_eq!(said[0], "data        4 training rows x 2 columns, no test rows");
    assert!(said.contains(&"response    1 in 50.0 % of 4 training rows (2)".to_owned()), "{said:?}");
}

#[test]
fn misspelt_columns_classes_and_separators_are_named() {
    let place = mixed();
    for (set, says) in [
        ("data.target=bougt", "no column \"bougt\"; did you mean \"bought\"?"),
        ("data.categorical=[\"sx\"]", "no column \"sx\"; did you mean \"sex\"?"),
        ("data.columns=[\"agee\"]", "no column \"agee\"; did you mean \"age\"?"),
        (
            "data.classes={ yess = 1, no = 0 }",
            "the value \"yes\", not in `data.classes`, which has \"no\", \"yess\"",
        ),
        ("data.delimiter=\";\"", "only one called \"age,sex,town,income,zero,bought\"; `data.delimiter`"),
    ] {
        let ended = place.npl(&["check", "x.toml", "--set", set]);
        assert_eq!(ended.code, Some(2), "{set}");
        assert!(ended.stderr.contains(says), "{set}: {}", ended.stderr);
    }
}

/// A mean with a prior: θ = Σ w y + Σ v ỹ.
const MEAN: &str = r#"
name = "m"
seed = 3
repeats = 2
data.simulate.normal = { n = 12, mean = [1.0, -2.0], sd = 2.0 }
model.mean = {}
prior = { alpha = 4.0, T = 6, base = { normal = { mean = 0.0, sd = 1.0 } } }
sampler.B = 5
"#;

/// A file of an export as numbers, with its header.
fn table(place: &Place, name: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let text = place.read(name);
    let mut lines = cells(&text).into_iter();
    let header = lines.next().unwrap().into_iter().map(str::to_owned).collect();
    (header, lines.map(|row| row.into_iter().map(|c| c.parse().unwrap()).collect()).collect())
}

#[test]
fn draws_can_be_made_again_from_an_export() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    place.ok(&["run", "m.toml", "--quiet", "--out", "run"]);
    place.ok(&["export", "m.toml", "--draws", "5", "--repeat", "2", "--out", "x"]);
    assert_eq!(place.list("x"), ["config.toml", "pseudo.csv", "train.csv", "weights.csv"]);
    let (header, weights) = table(&place, "x/weights.csv");
    assert_eq!(
        (header.len(), &header[..2], weights.len()),
        (13, &["draw".to_owned(), "w.1".to_owned()][..], 5)
    );
    let (_, rows) = table(&place, "x/train.csv");
    let (header, pseudo) = table(&place, "x/pseudo.csv");
    assert_eq!(header, ["draw", "weight", "y1", "y2"]);
    let (names, draws) = table(&place, "run/samples.csv");
    let second: Vec<&Vec<f64>> = draws.iter().filter(|d| d[0] == 2.0).collect();
    for (i, draw) in second.iter().enumerate() {
        let own = || pseudo.iter().filter(|p| p[0] == i as f64 + 1.0);
        let mass = weights[i][1..].iter().sum::<f64>() + own().map(|p| p[1]).sum::<f64>();
        assert!((mass - 1.0).abs() < 1e-14, "{mass}");
        for j in 0..2 {
            let observed: f64 = weights[i][1..].iter().zip(&rows).map(|(w, y)| w * y[j]).sum();
            let theta = observed + own().map(|p| p[1] * p[2 + j]).sum::<f64>();
            let column = names.len() - 2 + j;
            assert!((theta - draw[column]).abs() < 1e-13, "draw {i}: {theta} and {}", draw[column]);
        }
    }
}

#[test]
fn exported_pseudo_samples_have_a_cell_for_every_column() {
    let place = Place::new();
    let row = |i: usize| format!("{},{},{}\n", 1 + i * 7 % 11, i * 5 % 13, u8::from(!i.is_multiple_of(4)));
    place.write("d.csv", "time,x,seen\n".to_owned() + &(0..30).map(row).collect::<String>());
    let text = "name = \"e\"\nseed = 1\ndata = { train = \"d.csv\", target = \"time\", event = \"seen\" }\n\
                model.exponential.penalty = \"ridge\"\nsampler.B = 3\n\
                prior = { alpha = 2.0, T = 5, base = { response = { gamma = [2.0, 1.0], covariates = \"empirical\" } } }\n";
    place.write("e.toml", text);
    place.ok(&["export", "e.toml", "--draws", "2", "--out", "x"]);
    let (header, pseudo) = table(&place, "x/pseudo.csv");
    assert_eq!(header, ["draw", "weight", "x", "event__", "response__"]);
    assert_eq!(pseudo.len(), 10);
    // Whoever is not there was observed to the end.
    assert!(pseudo.iter().all(|row| row.len() == 5 && row[3] == 1.0 && row[4] > 0.0), "{pseudo:?}");
}

#[test]
fn an_export_has_both_parts_of_the_data_and_every_start() {
    let place = mixed();
    place.ok(&["export", "x.toml", "--out", "one"]);
    assert_eq!(place.list("one"), ["config.toml", "starts.csv", "test.csv", "train.csv", "weights.csv"]);
    let (header, train) = table(&place, "one/train.csv");
    assert_eq!(header, ["age", "sex_m", "town_Narvik", "town_Oslo", "income", "response__"]);
    let (_, test) = table(&place, "one/test.csv");
    assert_eq!((train.len(), test.len()), (6, 3));
    assert_eq!(train.iter().map(|row| row[5]).sum::<f64>(), 3.0);
    let age: f64 = train.iter().map(|row| row[0]).sum();
    assert!(age.abs() < 1e-14, "standardised: {age}");
    // Restart 1 does not depend on how many there are.
    place.ok(&["export", "x.toml", "--out", "two", "--draws", "3", "--set", "sampler.R=2"]);
    let ((header, one), (_, two)) = (table(&place, "one/starts.csv"), table(&place, "two/starts.csv"));
    assert_eq!((header.len(), one.len(), two.len()), (8, 10, 6));
    for draw in 0..3 {
        assert_eq!(one[draw], two[2 * draw]);
        assert_ne!(one[draw][2..], two[2 * draw + 1][2..]);
    }
    // The resolved experiment gives the same bytes.
    place.ok(&["export", "one/config.toml", "--out", "again"]);
    for name in place.list("one") {
        assert_eq!(place.read(&format!("one/{name}")), place.read(&format!("again/{name}")), "{name}");
    }
}

#[test]
fn an_export_does_not_replace_files_unasked() {
    let place = Place::new();
    place.write("m.toml", MEAN).write("x/weights.csv", "mine").write("file", "");
    for (args, says) in [
        (&["--out", "x"][..], "x holds weights.csv already"),
        (&["--out", "file"], "file: not a folder"),
        (&["--out", "y", "--repeat", "3"], "--repeat 3: the experiment has repeats 1 to 2"),
        (&["--out", "y", "--repeat", "0"], "--repeat 0"),
    ] {
        let ended = place.npl(&[&["export", "m.toml"], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}");
        assert!(ended.stderr.contains(says), "{args:?}: {}", ended.stderr);
    }
    assert_eq!((place.list("x"), place.exists("y")), (vec!["weights.csv".to_owned()], false));
    place.ok(&["export", "m.toml", "--out", "x", "--force"]);
    assert_ne!(place.read("x/weights.csv"), "mine");
}

/// The same losses from the same starts, minimised by scipy: with and without pseudo-samples; and a search that is
/// stopped after one step is found out.
#[test]
fn scipy_finds_the_same_minima() {
    let Some(python) = crate::support::python("numpy, scipy.optimize") else { return };
    let script = crate::support::script("check_scipy.py");
    let prior = r#"prior={ alpha = 20, T = 50, base = { response = { bernoulli = 0.5, covariates = "empirical" } } }"#;
    for (set, code) in [("sampler.R=2", 0), (prior, 0), ("optimiser.max_iterations=1", 1)] {
        let output = Command::new(&python)
            .arg(&script)
            .arg(crate::support::config("starters/logistic.toml"))
            .args(["--draws", "4", "--set", set, "--npl", env!("CARGO_BIN_EXE_npl")])
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{set}\n{out}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(out.contains(if code == 0 { "4 of 4 draws" } else { "FAILED" }), "{set}\n{out}");
    }
}
