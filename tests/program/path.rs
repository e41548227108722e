//! A path: one posterior per value of a key, each the one that a run of its own would give.

use crate::support::Place;

const EXPERIMENT: &str = r#"name = "p"
seed = 3
[data]
train = "x.csv"
target = "y"
[model.logistic]
penalty = { student_t = { a = 1.0, b = 1.0 } }
gamma = 0.01
[path]
parameter = "model.logistic.penalty.student_t.b"
geometric = { first = 1.0, ratio = 0.5, count = 4 }
near_zero = 0.2
keep = ["beta.c", "beta.a"]
[sampler]
B = 60
init.beta = { normal = [0.0, 1.0] }
init.intercept = { normal = [0.0, 1.0] }
"#;

fn place() -> Place {
    let mut text = String::from("a,b,c,y\n");
    for i in 0..50u32 {
        let (a, b, c) = (i * 37 % 61, i * 17 % 59, i * 29 % 31);
        text += &format!("{a},{b},{c},{}\n", u8::from(a + i * 13 % 43 > 50));
    }
    let place = Place::new();
    place.write("x.csv", text).write("p.toml", EXPERIMENT);
    place
}

/// Rows of a CSV file, header first.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn every_setting_is_the_run_it_stands_for() {
    let place = place();
    let ended = place.npl(&["run", "p.toml"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let files = place.list("runs/p");
    assert_eq!(
        files,
        [
            "config.toml",
            "manifest.json",
            "path.csv",
            "preparation.json",
            "report.csv",
            "report.json",
            "samples.csv"
        ]
    );
    let path = rows(&place.read("runs/p/path.csv"));
    assert_eq!(path[0], ["setting", "value", "parameter", "q10", "q50", "q90", "near_zero"]);
    assert_eq!(path.len(), 1 + 4 * 4, "four settings of four parameters");
    assert_eq!(rows(&place.read("runs/p/report.csv")).len(), 1 + 4, "a line per setting");
    let kept = rows(&place.read("runs/p/samples.csv"));
    assert_eq!(kept[0][9..], ["beta.c", "beta.a"]);
    assert_eq!(kept.len(), 1 + 4 * 60);

    for (t, b) in ["1.0", "0.5", "0.25", "0.125"].iter().enumerate() {
        let text = EXPERIMENT.replace("b = 1.0", &format!("b = {b}"));
        let (before, rest) = text.split_once("[path]").unwrap();
        let sampler = rest.split_once("[sampler]").unwrap().1;
        place.write("one.toml", format!("{before}[sampler]{sampler}"));
        let out = format!("runs/one{t}");
        assert_eq!(place.npl(&["run", "one.toml", "--out", &out]).code, Some(0));
        let draws = rows(&place.read(&format!("{out}/samples.csv")));
        // Kept draws: the same numbers, statistics included; the setting stands where the repeat does.
        for (kept, single) in kept[1 + 60 * t..].iter().zip(&draws[1..]) {
            assert_eq!(kept[0], (t + 1).to_string());
            assert_eq!(kept[1..9], single[1..9]);
            assert_eq!(kept[9..], [single[11].clone(), single[9].clone()]);
        }
        // Quantiles: those of the summary; shares: counted from the draws.
        let summary = rows(&place.read(&format!("{out}/summary.csv")));
        for (j, point) in path[1 + 4 * t..1 + 4 * (t + 1)].iter().enumerate() {
            assert_eq!(point[..3], [(t + 1).to_string(), b.to_string(), summary[j + 1][0].clone()]);
            assert_eq!(point[3..6], summary[j + 1][4..7]);
            let near = draws[1..].iter().filter(|d| d[9 + j].parse::<f64>().unwrap().abs() < 0.2).count();
            assert_eq!(point[6].parse::<f64>().unwrap(), near as f64 / 60.0);
        }
    }
}

#[test]
fn a_path_does_not_depend_on_threads_and_config_toml_repeats_it() {
    let place = place();
    for (out, config, threads) in
        [("a", "p.toml", "1"), ("b", "p.toml", "3"), ("c", "runs/a/config.toml", "2")]
    {
        let out = format!("runs/{out}");
        let ended = place.npl(&["run", config, "--threads", threads, "--out", &out]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    for file in ["path.csv", "samples.csv", "config.toml"] {
        let first = place.read(&format!("runs/a/{file}"));
        assert_eq!(first, place.read(&format!("runs/b/{file}")));
        assert_eq!(first, place.read(&format!("runs/c/{file}")));
    }
}

#[test]
fn any_key_can_be_varied_and_nothing_need_be_kept() {
    let place = place();
    for (parameter, values) in [
        ("sampler.B", "[60, 40]"),
        ("model.logistic.gamma", "[0.0, \"1/n\"]"),
        ("model.logistic.penalty", "[\"ridge\", \"lasso\"]"),
        ("data.standardise", "[\"none\", \"all\"]"),
        ("optimiser.tolerance", "[0.1, 1e-4]"),
    ] {
        let text = EXPERIMENT
            .replace("model.logistic.penalty.student_t.b", parameter)
            .replace("geometric = { first = 1.0, ratio = 0.5, count = 4 }", &format!("values = {values}"))
            .replace("keep = [\"beta.c\", \"beta.a\"]\n", "");
        place.write("v.toml", text);
        let ended = place.npl(&["run", "v.toml", "--out", "runs/v", "--force"]);
        assert_eq!(ended.code, Some(0), "{parameter}: {}", ended.stderr);
        assert!(!place.exists("runs/v/samples.csv"), "nothing is kept");
        let path = rows(&place.read("runs/v/path.csv"));
        assert_eq!(path.len(), 1 + 2 * 4);
        let medians = |t: usize| path[1 + 4 * t..5 + 4 * t].iter().map(|p| p[4].clone()).collect::<Vec<_>>();
        assert_ne!(medians(0), medians(1), "{parameter}");
    }
}

#[test]
fn a_path_can_be_looked_at() {
    let place = place();
    assert_eq!(place.npl(&["run", "p.toml", "--quiet"]).code, Some(0));
    let summary = place.npl(&["summary", "runs/p"]);
    assert_eq!(summary.code, Some(0), "{}", summary.stderr);
    for text in ["beta.a", "0.125", "4 settings of model.logistic.penalty.student_t.b", "240 in"] {
        assert!(summary.stdout.contains(text), "{text}: {}", summary.stdout);
    }
    let csv = place.npl(&["summary", "runs/p", "--format", "csv"]);
    assert_eq!(csv.stdout, place.read("runs/p/path.csv"));
    // Some parameters, in every format; and nothing that it cannot tell is passed over.
    let one = place.ok(&["summary", "runs/p", "--only", "beta.b"]).stdout;
    assert!(one.contains("beta.b") && !one.contains("beta.a"), "{one}");
    let one = place.ok(&["summary", "runs/p", "--only", "beta.b", "--format", "csv"]).stdout;
    let expected: Vec<&str> =
        csv.stdout.lines().filter(|line| line.contains(",beta.b,") || line.starts_with("setting")).collect();
    assert!(one.lines().eq(expected) && one.lines().count() == 1 + 4, "{one}");
    let json = place.ok(&["summary", "runs/p", "--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), csv.stdout.lines().count() - 1);
    assert!(json[0]["q50"].is_number() && json[0]["parameter"].is_string(), "{}", json[0]);
    for asked in [
        &["--interval", "hdi"][..],
        &["--level", "0.9"],
        &["--above", "0"],
        &["--between=0,1"],
        &["--sort", "mean"],
        &["--repeat", "1"],
        &["--only", "beta.q"],
    ] {
        let said = place.npl(&[&["summary", "runs/p"], asked].concat());
        let flag = asked[0].split('=').next().unwrap();
        assert!(said.code == Some(2) && said.stderr.contains(flag), "{asked:?}: {}", said.stderr);
    }
    let table = place.npl(&["table", "runs/p"]);
    assert_eq!(table.code, Some(2));
    assert!(table.stderr.contains("is a path"), "{}", table.stderr);
    let check = place.npl(&["check", "p.toml"]);
    assert!(check.stdout.contains("60 draws x 4 settings"), "{}", check.stdout);
    // A plain run in the same folder leaves nothing of the path behind.
    let plain = EXPERIMENT.split_once("[path]").unwrap().0.to_owned() + "[sampler]\nB = 5\n";
    place.write("plain.toml", plain);
    assert_eq!(place.npl(&["run", "plain.toml"]).code, Some(2), "another experiment");
    assert_eq!(place.npl(&["run", "plain.toml", "--force"]).code, Some(0));
    assert!(!place.exists("runs/p/path.csv") && place.exists("runs/p/summary.csv"));
}

#[test]
fn a_wrong_path_is_pointed_at() {
    let cases = [
        ("student_t.b\"", "student_t.c\"", 2, "unknown key"),
        ("\"model.logistic.penalty.student_t.b\"", "\"path.near_zero\"", 2, "cannot be varied"),
        (
            "\"model.logistic.penalty.student_t.b\"",
            "\"evaluate.folds\"",
            2,
            "`evaluate.folds` cannot be varied",
        ),
        ("\"model.logistic.penalty.student_t.b\"", "\"a b\"", 2, "path.parameter"),
        ("first = 1.0", "first = -1.0", 2, "student_t.b"),
        ("geometric = { first = 1.0, ratio = 0.5, count = 4 }", "values = [1.0, 0.0]", 2, "student_t.b"),
        ("geometric = { first = 1.0, ratio = 0.5, count = 4 }", "values = []", 2, "must not be empty"),
        ("geometric = { first = 1.0, ratio = 0.5, count = 4 }", "", 2, "needs `values`"),
        ("near_zero", "values = [1.0]\nnear_zero", 2, "exclude each other"),
        ("\"beta.a\"", "\"beta.aa\"", 2, "did you mean `beta.a`?"),
        ("\"beta.a\"", "\"beta.c\"", 2, "twice"),
        ("seed = 3", "seed = 3\nrepeats = 2", 2, "one repeat"),
    ];
    for (old, new, code, message) in cases {
        let place = place();
        place.write("p.toml", EXPERIMENT.replacen(old, new, 1));
        let ended = place.npl(&["run", "p.toml"]);
        assert_eq!(ended.code, Some(code), "{new}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{new}: {}", ended.stderr);
        assert!(ended.stderr.contains("p.toml:"), "{new}: a place in the file: {}", ended.stderr);
        assert!(!place.exists("runs"), "{new}");
    }
}

/// What a pattern means is settled before the first draw, and kept by name; one that fits nothing is refused at its place.
#[test]
fn parameters_to_keep_are_named_by_patterns() {
    let place = place();
    let with = |keep: &str| {
        let sets = format!("path.keep={keep}");
        place.npl(&["run", "p.toml", "--quiet", "--force", "--set", &sets])
    };
    assert_eq!(with(r#"["beta.c", "beta.*"]"#).code, Some(0));
    let names = &rows(&place.read("runs/p/samples.csv"))[0];
    let kept: Vec<&str> = names.iter().filter(|n| !n.ends_with("__")).map(String::as_str).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert!(
        place.read("runs/p/config.toml").contains("beta.a")
            && !place.read("runs/p/config.toml").contains("beta.*")
    );
    let refused = with(r#"["gamma.*"]"#);
    assert!(
        refused.code == Some(2) && refused.stderr.contains("no parameter `gamma.*`"),
        "{}",
        refused.stderr
    );
    let none = place.npl(&["run", "p.toml", "--quiet", "--out", "none", "--set", "path.keep=[]"]);
    assert_eq!(none.code, Some(0), "{}", none.stderr);
    let asked = place.npl(&["predict", "none", "x.csv", "--setting", "1"]);
    assert!(asked.code == Some(2) && asked.stderr.contains("kept no draws"), "{}", asked.stderr);
}
