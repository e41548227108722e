//! What a run claims about its draws: refusals before the first, counts that decide the exit code, and warnings that stand
//! wherever its numbers do.

use crate::support::{Ended, Place};

const LOGISTIC: &str = r#"
name = "l"
seed = 1
[data]
train = "d.csv"
target = "y"
[model.logistic]
penalty = "none"
[sampler]
B = 20
"#;

const OVERLAPPING: &str = "a,b,y\n1,0.3,0\n2,-1,1\n3,0.5,0\n4,0.1,1\n5,2,1\n6,-0.4,0\n7,1,1\n8,-2,1\n";

fn logistic(data: &str) -> Place {
    let place = Place::new();
    place.write("d.csv", data).write("e.toml", LOGISTIC);
    place
}

/// Every warning of a run contains one of `says`, each of which is in one; and run, report.json, summary and table agree.
fn warned(place: &Place, ended: &Ended, run: &str, says: &[&str]) {
    let report: serde_json::Value = serde_json::from_str(&place.read(&format!("{run}/report.json"))).unwrap();
    let warnings: Vec<&str> =
        report["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(warnings.len(), says.len(), "{warnings:#?}");
    for (warning, says) in warnings.iter().zip(says) {
        assert!(warning.contains(says), "{warning}\n{says}");
    }
    let lines: String = warnings.iter().map(|w| format!("warning: {w}\n")).collect();
    assert!(ended.stdout.starts_with(&lines), "{}", ended.stdout);
    let summary = place.ok(&["summary", run]);
    // In lines that a terminal has room for.
    let unwrapped = summary.stdout.replace("\n         ", " ");
    assert!(unwrapped.starts_with(&lines), "{}", summary.stdout);
    let csv = place.ok(&["summary", run, "--format", "csv"]);
    assert!(csv.stdout.starts_with("parameter,") && csv.stderr == lines, "{}", csv.stderr);
    let table = place.ok(&["table", run]).stdout;
    let name = report["name"].as_str().unwrap();
    for warning in &warnings {
        assert!(table.contains(&format!("\nwarning: {name}: {warning}\n")), "{table}");
    }
}

#[test]
fn data_without_a_minimum_are_refused_with_the_line_and_the_columns() {
    let cases: [(&str, &[&str], &[&str]); 6] = [
        ("a,b,y\n1,0.3,0\n2,-1,0\n3,0.5,0\n4,0.1,1\n5,2,1\n", &[], &["separated", "`a` alone"]),
        (
            "a,b,y\n1,5,0\n1,6,1\n2,3,0\n2,4,1\n3,2,0\n3,1,0\n",
            &[],
            &["separated", "`a`", "`b`", "combination"],
        ),
        ("a,b,y\n1,0,0\n2,0,1\n3,0,0\n4,0,1\n", &[], &["`b` is constant", "not identified"]),
        ("a,b,c,d,y\n1,2,1,7,0\n2,1,0,3,1\n3,5,2,2,0\n", &[], &["4 columns and an intercept", "3 rows"]),
        (
            "a,b,y\n1,5,1\n2,3,1\n3,4,1\n",
            &[r#"model.logistic.penalty="ridge""#],
            &["every training response is 1"],
        ),
        (
            "a,b,y\n1,0.3,0\n2,-1,0\n3,0.5,0\n4,0.1,1\n5,2,1\n",
            &[r#"model.logistic.penalty="lasso""#, "model.logistic.gamma=0"],
            &["separated", "`gamma` above 0"],
        ),
    ];
    for (data, sets, says) in cases {
        let place = logistic(data);
        let sets = sets.iter().flat_map(|s| ["--set", s]);
        for command in ["run", "check"] {
            let ended = place.npl(&[command, "e.toml"].into_iter().chain(sets.clone()).collect::<Vec<_>>());
            assert_eq!(ended.code, Some(2), "{data}\n{}", ended.stderr);
            assert!(ended.stderr.contains("model.logistic.penalty"), "{}", ended.stderr);
            assert!(says.iter().all(|s| ended.stderr.contains(s)), "{says:?}\n{}", ended.stderr);
            ended.assert_decent(data);
        }
        let plain = place.npl(&["run", "e.toml"]);
        assert!(plain.stderr.contains("e.toml:8"), "{}", plain.stderr);
        assert!(!place.exists("runs"));
    }
    logistic(OVERLAPPING).ok(&["run", "e.toml"]);
}

/// Repeats have splits of their own: all are looked at before the first is sampled.
#[test]
fn a_later_repeat_without_a_minimum_is_refused_before_the_first() {
    // One row keeps the classes from being separated; a repeat that holds it out has no minimum.
    let rows: String = (0..12).map(|i| format!("{i},{}\n", u8::from(i > 5))).collect();
    let place = logistic(&format!("a,y\n{rows}11.5,0\n"));
    let args = ["run", "e.toml", "--set", "data.split={ test = 0.25 }", "--set", "repeats=20"];
    let ended = place.npl(&args);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("repeat ") && ended.stderr.contains("separated"), "{}", ended.stderr);
    assert!(!place.exists("runs"));
}

#[test]
fn a_path_that_takes_the_penalty_away_is_refused_at_once() {
    let place = logistic("a,y\n1,0\n2,0\n3,1\n4,1\n");
    let path = LOGISTIC.replace("\"none\"", "\"ridge\"\ngamma = 1.0")
        + "[path]\nparameter = \"model.logistic.gamma\"\nvalues = [1.0, 0.1, 0.0]\n";
    place.write("e.toml", path);
    let ended = place.npl(&["run", "e.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("separated") && !place.exists("runs"), "{}", ended.stderr);
}

#[test]
fn draws_without_a_minimum_count_as_failed_and_lead_the_output() {
    let place = logistic("a,y\n1,0\n2,0\n3,1\n4,1\n");
    let prior = "alpha=0.5, T=2, base={ response = { bernoulli = 0.5, covariates = \"empirical\" } }";
    let set = format!("prior={{ {prior} }}");
    let ended = place.npl(&["run", "e.toml", "--set", &set]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("of 20 draws have no minimum"), "{}", ended.stderr);
    assert!(ended.stderr.contains("sampler.max_failed = 0 "), "{}", ended.stderr);
    warned(&place, &ended, "runs/l", &["of 20 draws are separated"]);
    let table = place.ok(&["table", "runs/l"]).stdout;
    assert!(!table.lines().any(|l| l.starts_with("failed") && l.ends_with(" 0")), "{table}");
    let allowed = ["--set", &set, "--set", "sampler.max_failed=1", "--out", "allowed"];
    place.ok(&[&["run", "e.toml"], &allowed[..]].concat());
}

#[test]
fn draws_that_run_out_of_iterations_are_counted_and_limited() {
    let place = logistic(OVERLAPPING);
    let few = ["run", "e.toml", "--set", "optimiser.max_iterations=1"];
    let ended = place.npl(&few);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("20 of 20 draws ran out of iterations"), "{}", ended.stderr);
    assert!(ended.stderr.contains("sampler.max_unconverged = 0.01 "), "{}", ended.stderr);
    // Eight rows for three parameters.
    warned(
        &place,
        &ended,
        "runs/l",
        &["20 of 20 draws ran out of iterations", "few rows for so many parameters: 8 "],
    );
    // A penalty holds what few rows do not.
    let held = place.ok(&["run", "e.toml", "--set", "model.logistic.penalty=ridge", "--out", "held"]);
    assert!(!held.stdout.contains("few rows"), "{}", held.stdout);
    place.ok(&[&few[..], &["--set", "sampler.max_unconverged=1", "--out", "allowed"]].concat());
}

const MEAN: &str = r#"
name = "m"
seed = 1
[data]
train = "d.csv"
weight = "w"
[model.mean]
[sampler]
B = 20
"#;

/// Whole weights are counts, and weights whose mean is 1 say what is meant: nothing to warn of.
#[test]
fn case_weights_that_are_no_counts_are_warned_of() {
    let rows = |scale: f64| -> String {
        let row = |i: u32| format!("{},{}\n", i * 7 % 11, scale * f64::from(10 + i % 3));
        String::from("v,w\n") + &(0..30).map(row).collect::<String>()
    };
    for (scale, says) in [(23.45, &["sum to 7738.5 for 30 rows"][..]), (1.0 / 11.0, &[]), (20.0, &[])] {
        let place = Place::new();
        place.write("d.csv", rows(scale)).write("e.toml", MEAN);
        warned(&place, &place.ok(&["run", "e.toml"]), "runs/m", says);
    }
}

#[test]
fn a_posterior_without_spread_is_warned_of() {
    let place = Place::new();
    place.write("d.csv", "v,w\n3.5,1\n").write("e.toml", MEAN);
    warned(&place, &place.ok(&["run", "e.toml"]), "runs/m", &["all draws are the same"]);
    place.write("d.csv", "v,w\n3.5,1\n4.5,1\n");
    warned(&place, &place.ok(&["run", "e.toml", "--out", "two"]), "two", &[]);
}

const MIXTURE: &str = r#"
name = "g"
seed = 5
[data.simulate.mixture]
n = 120
pi = [0.4, 0.6]
mu = [0.0, 4.0]
sigma2 = [1.0, 1.0]
[model.gmm]
K = 2
variance_floor = 1e-6
[model.gmm.prior]
[sampler]
B = 40
[nuts]
chains = 1
warmup = 60
[advi]
max_iterations = 100
[importance]
proposal.pi = { dirichlet = 1.0 }
proposal.mu = { normal = [2.0, 3.0] }
proposal.sigma2 = { log_normal = [0.0, 1.0] }
"#;

#[test]
fn draws_of_conventional_bayes_that_are_worth_little_say_so() {
    let place = Place::new();
    place.write("e.toml", MIXTURE);
    for (method, says) in [("advi", "did not converge"), ("importance", "below 100")] {
        let ended = place.ok(&["run", "e.toml", "--set", &format!("method={method}"), "--out", method]);
        warned(&place, &ended, method, &[says]);
    }
    let one = place.ok(&["run", "e.toml", "--set", "method=nuts", "--out", "nuts"]).stdout;
    assert!(one.contains("warning: one chain") && one.contains("below 400"), "{one}");
}

/// Reports of older versions have no warnings of their own, but the facts behind some.
#[test]
fn a_report_without_warnings_is_read_and_judged() {
    let place = logistic(OVERLAPPING);
    let args = ["run", "e.toml", "--set", "optimiser.max_iterations=1", "--set", "sampler.max_unconverged=1"];
    place.ok(&args);
    let mut report: serde_json::Value = serde_json::from_str(&place.read("runs/l/report.json")).unwrap();
    report.as_object_mut().unwrap().remove("warnings").unwrap();
    place.write("runs/l/report.json", report.to_string()).unseal("runs/l");
    assert!(place.ok(&["summary", "runs/l"]).stdout.starts_with("warning: 20 of 20 draws"));
}

const PAIN: &str = "dose,pain\n1,severe\n2,severe\n3,moderate\n4,severe\n5,moderate\n6,mild\n7,moderate\n8,mild\n9,mild\n10,moderate\n\
                    11,mild\n12,none\n13,none\n14,mild\n15,none\n16,none\n";

#[test]
fn nobody_guesses_the_order_of_texts() {
    let place = Place::new();
    let text = "name = \"p\"\nseed = 1\nsampler.B = 20\nmodel.ordered.penalty = \"ridge\"\n[data]\ntrain = \"pain.csv\"\ntarget = \"pain\"\n";
    place.write("pain.csv", PAIN).write("p.toml", text);
    let refused = place.npl(&["run", "p.toml"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for says in ["p.toml:7", "\"mild\", \"moderate\", \"none\", \"severe\"", "data.classes"] {
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
    place.write("p.toml", text.to_owned() + "classes = { none = 0, mild = 1, moderate = 2, severe = 3 }\n");
    let checked = place.ok(&["check", "p.toml"]).stdout;
    assert!(checked.contains("none 25.0 %, mild 31.2 %, moderate 25.0 %, severe 18.8 %"), "{checked}");
}

#[test]
fn quantities_that_are_no_numbers_are_counted_and_have_no_probability() {
    let place = logistic(OVERLAPPING);
    let more = "[derived]\nlg = \"log(beta.b)\"\nnone = \"1/0\"\n";
    place.write("e.toml", LOGISTIC.replace("\"none\"", "\"ridge\"") + more);
    let ended = place.npl(&["run", "e.toml", "--out", "o"]);
    assert!(ended.stdout.contains("`none` is no number in 20 of 20 draws"), "{}", ended.stdout);
    let table = place.ok(&["summary", "o", "--format", "csv", "--above", "-100"]).stdout;
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("none,").split(',').skip(1).all(str::is_empty), "{table}");
    assert!(row("lg,").contains(",1.0,"), "P(lg > -100) is 1 where lg is a number: {table}");
    let plain = place.ok(&["summary", "o", "--format", "csv"]).stdout;
    let row = plain.lines().find(|line| line.starts_with("none,")).unwrap();
    assert!(row.split(',').skip(1).all(str::is_empty), "{plain}");
}

/// With "auto", a marker among numbers makes no text of them: it is asked for by name, as it is without "auto".
#[test]
fn numbers_with_a_marker_among_them_stay_numbers() {
    let place = logistic(
        &("a,y\n".to_owned()
            + &(0..40)
                .map(|i| if i == 7 { "NA,1\n".to_owned() } else { format!("{},{}\n", i % 9, i % 2) })
                .collect::<String>()),
    );
    let auto = ["run", "e.toml", "--set", "data.categorical=auto", "--set", "data.missing=drop"];
    let asked = place.npl(&auto);
    assert_eq!(asked.code, Some(2), "{}", asked.stderr);
    assert!(asked.stderr.contains("name the marker in `data.missing_values`"), "{}", asked.stderr);
    let named = place.ok(&[&auto[..], &["--set", "data.missing_values=[\"NA\"]"]].concat());
    assert!(named.stderr.contains("1 of 40 rows have missing values"), "{}", named.stderr);
}

#[test]
fn texts_that_look_like_dates_are_told() {
    let place = logistic(
        &("day,y\n".to_owned()
            + &(0..60).map(|i| format!("2021-03-{:02},{}\n", i % 6 + 1, i % 2)).collect::<String>()),
    );
    let auto = ["--set", "data.categorical=auto", "--set", "model.logistic.penalty=ridge"];
    for command in ["run", "check"] {
        let said = place.ok(&[&[command, "e.toml"], &auto[..]].concat());
        let all = said.stdout.clone() + &said.stderr;
        assert!(all.contains("column \"day\" is read as text") && all.contains("look like dates"), "{all}");
    }
}
