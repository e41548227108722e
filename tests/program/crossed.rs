//! Features crossed with one another and with every model: each has tests of its own, and what breaks, breaks between two. Whatever is
//! asked of whatever run is answered in numbers, or refused in words.

use std::sync::Mutex;

use crate::matrix::on_all_cores;
use crate::support::{Ended, Place, assert_decent, cells};

/// A name, and what is set for it.
type Feature = (&'static str, &'static [&'static str]);

const FEATURES: [Feature; 13] = [
    ("standardise", &["data.standardise=numeric"]),
    ("own units", &["data.standardise=numeric", "data.standardise_by=each"]),
    ("groups", &["data.by=g"]),
    ("groups prepared together", &["data.by=g", "data.by_prepare=overall", "data.standardise=numeric"]),
    ("folds", &["evaluate.folds=3"]),
    ("split", &["data.split=0.3"]),
    ("row by row", &["data.split=0.3", "output.pointwise=true"]),
    ("repeats", &["repeats=2"]),
    ("case weights", &["data.weight=c"]),
    ("influence", &["output.influence=true"]),
    ("an array", &["output.samples=draws.npy"]),
    ("a path", &["path.parameter=seed", "path.values=[1, 2]", "path.keep=[\"*\"]"]),
    ("variational", &["method=advi", "advi.max_iterations=40", "advi.eta=0.1"]),
];

/// What is asked of a run, and whether the answer is a table of comma-separated cells.
const QUESTIONS: [(&[&str], bool); 14] = [
    (&["summary", "r"], false),
    (&["summary", "r", "--format", "csv"], true),
    (&["summary", "r", "--interval", "hdi", "--above", "0", "--format", "csv"], true),
    (&["summary", "r", "--interval", "bc", "--repeat", "1", "--format", "csv"], true),
    (&["summary", "r", "--interval", "bca", "--repeat", "1", "--units", "data", "--format", "csv"], true),
    (&["summary", "r", "--interval", "simultaneous", "--ratios", "--format", "csv"], true),
    (&["summary", "r", "--units", "data", "--ratios"], false),
    (&["summary", "r", "--contrast", "a", "--format", "csv"], true),
    (&["predict", "r", "d.csv", "--keep", "g"], true),
    (&["predict", "r", "d.csv", "--draws"], true),
    (&["compare", "r", "r", "--format", "csv"], true),
    (&["table", "r"], false),
    (&["table", "r", "--path"], false),
    (&["verify", "r"], false),
];

/// Two regressions, one of which the other reads.
const STAGES: &str = "name = \"stages\"\nseed = 3\n[data]\ntrain = \"d.csv\"\ncolumns = [\"y1\", \"y2\", \"y3\"]\ntarget = \"response\"\n\
                      [[stage]]\nname = \"one\"\ntarget = \"y1\"\ncolumns = [\"y2\"]\nmodel.linear.penalty = \"none\"\n\
                      [[stage]]\nname = \"two\"\ncolumns = [\"y3\", \"one.prediction\"]\nmodel.linear.penalty = \"ridge\"\n";

/// The experiment of a starter on a file: rows that it simulates, with a group and a weight for each.
pub fn on_a_file(place: &Place, name: &str, starter: &str) {
    place.write("s.toml", starter);
    place.ok(&["export", "s.toml", "--out", "x", "--draws", "1", "--set", "sampler.B=2"]);
    let text = place.read("x/train.csv");
    let rows = cells(&text);
    let header: Vec<String> = rows[0].iter().map(|name| name.replace("__", "")).collect();
    let row =
        |(i, row): (usize, &Vec<&str>)| format!("{},{},{}\n", row.join(","), ["a", "b"][i % 2], 1 + i % 3);
    let lines: String = rows[1..].iter().take(120).enumerate().map(row).collect();
    place.write("d.csv", format!("{},g,c\n{lines}", header.join(",")));
    if name == "stages" {
        place.write("d.toml", STAGES);
        return;
    }
    // Everything of the starter but its data, and the tables below them.
    let mut own = true;
    let kept = starter.lines().filter(|line| {
        if line.starts_with('[') {
            own = !line.starts_with("[data");
        }
        own
    });
    let mut text: String = kept.map(|line| format!("{line}\n")).collect();
    let columns: Vec<&str> = rows[0].iter().copied().filter(|name| !name.ends_with("__")).collect();
    text += &format!("[data]\ntrain = \"d.csv\"\ncolumns = {columns:?}\n");
    for (column, key) in [("response", "target"), ("event", "event")] {
        if header.iter().any(|name| name == column) {
            text += &format!("{key} = \"{column}\"\n");
        }
    }
    place.write("d.toml", text);
}

/// Pairs of features for the model of this number: every pair has some models, and every model some pairs.
fn pairs(model: usize) -> Vec<[Feature; 2]> {
    let count = FEATURES.len();
    let all = (0..count).flat_map(|i| (i..count).map(move |j| (i, j)));
    let chosen = all.filter(|(i, j)| (i + 2 * j + model).is_multiple_of(7));
    chosen.map(|(i, j)| [FEATURES[i], FEATURES[j]]).collect()
}

/// What is wrong with an answer, if anything is.
fn flaw(said: &Ended, is_table: bool) -> Option<String> {
    match said.code {
        Some(2) if said.stderr.trim().is_empty() => return Some("refused without a word".into()),
        Some(0 | 2 | 3) => {}
        code => return Some(format!("exit {code:?}")),
    }
    let words = said.stdout.split(|c: char| c.is_whitespace() || ",;()[]".contains(c));
    if let Some(word) = words.into_iter().find(|word| matches!(*word, "NaN" | "nan" | "inf" | "-inf")) {
        return Some(format!("{word} is no answer"));
    }
    let widths: Vec<usize> = cells(&said.stdout).iter().map(Vec::len).collect();
    let uneven = is_table && said.code == Some(0) && widths.iter().any(|width| *width != widths[0]);
    uneven.then(|| "rows of other lengths".into())
}

#[test]
fn whatever_is_asked_of_whatever_run_is_answered_or_refused() {
    let starters: Vec<(&str, &str)> = npl::model::STARTERS.to_vec();
    let linear = starters.iter().find(|(name, _)| *name == "linear").expect("a model").1;
    let models: Vec<(usize, &str, &str)> = starters
        .into_iter()
        .chain([("stages", linear)])
        .enumerate()
        .map(|(m, (name, text))| (m, name, text))
        .collect();
    let (found, made) = (Mutex::new(Vec::new()), Mutex::new(0));
    on_all_cores(&models, |&(m, name, starter)| {
        let place = Place::new();
        on_a_file(&place, name, starter);
        let lines = place.read("d.csv").lines().count();
        for [one, two] in pairs(m) {
            let mut sets: Vec<&str> = one.1.iter().chain(two.1).copied().collect();
            sets.dedup();
            let mut args = vec!["run", "d.toml", "--out", "r", "--quiet", "--force", "--threads", "1"];
            args.extend(
                ["sampler.B=20", "sampler.max_failed=1.0"].iter().chain(&sets).flat_map(|s| ["--set", s]),
            );
            let case = format!("{name}: {} with {}", one.0, two.0);
            let tell = |args: &[&str], is_table: bool| -> Option<Ended> {
                let said = place.npl(args);
                assert_decent(&case, &said.stderr);
                if let Some(why) = flaw(&said, is_table) {
                    let text =
                        format!("{case}: npl {}: {why}\n{}{}", args.join(" "), said.stdout, said.stderr);
                    found.lock().unwrap().push(text);
                }
                (said.code != Some(2)).then_some(said)
            };
            if tell(&args, false).is_none() {
                continue;
            }
            *made.lock().unwrap() += 1;
            for (question, is_table) in QUESTIONS {
                let Some(said) = tell(question, is_table) else { continue };
                let wrong = match question[0] {
                    "predict" => said.stdout.lines().count() != lines,
                    "verify" => said.code != Some(0),
                    // A run is no better than itself.
                    "compare" => cells(&said.stdout)[1..].iter().any(|row| row[3] != "0.0"),
                    _ => false,
                };
                if wrong {
                    let text = format!("{case}: npl {}\n{}{}", question.join(" "), said.stdout, said.stderr);
                    found.lock().unwrap().push(text);
                }
            }
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} answers are none:\n{}", found.len(), found.join("\n"));
    let made = made.into_inner().unwrap();
    assert!(made > 150, "{made} runs were asked");
}
