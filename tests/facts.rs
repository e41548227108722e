//! What the program says of its data, and what it hands to other tools.

#[path = "support/program.rs"]
mod support;

use support::Place;

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
