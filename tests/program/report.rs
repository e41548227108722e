//! The page of runs: well-formed whatever names are, complete, and with the numbers of the run.

use std::sync::OnceLock;

use crate::support::{Place, cells};

const MIXTURE: &str = r#"
name = "mix"
seed = 3
[data.simulate.mixture]
n = 80
n_test = 30
pi = [0.4, 0.6]
mu = [0.0, 3.0]
sigma2 = [1.0, 1.0]
[model.gmm]
K = 2
variance_floor = 1e-3
[model.gmm.prior]
[sampler]
B = 40
R = 4
[importance.proposal]
pi = { dirichlet = 1.0 }
mu = { normal = [1.5, 2.0] }
sigma2 = { inverse_gamma = [2.0, 2.0] }
"#;

const LOGISTIC: &str = r#"
name = "logit"
seed = 5
repeats = 3
[data]
train = "d.csv"
target = "y"
missing_values = ["?"]
missing = "drop"
categorical = ["colour"]
split = { test = 0.3 }
[model.logistic]
penalty = { student_t = { a = 1.0, b = 1.0 } }
gamma = "1/n"
[sampler]
B = 40
R = 2
[evaluate]
epsilon = 0.01
"#;

const MEAN: &str = "name = \"mean\"\nseed = 1\n[data.simulate.normal]\nn = 20\nmean = 1.0\nsd = 1.0\n[model.mean]\n[sampler]\nB = 50\n";

/// Names that attack a page.
const EVIL: &str = "</title><script>alert(1)</script>\"'&\u{202e}";

fn rows() -> String {
    let mut text = "\"</th><script>alert(2)</script>\",\"a'b\"\"c & d\",colour,y\n".to_owned();
    for i in 0..120_u32 {
        let value = |j: u32| f64::from((i * (7 + 3 * j) + j * j) % 17) / 8.0 - 1.0;
        let y = u32::from(value(0) + f64::from(i % 5) / 4.0 - 0.5 > 0.0);
        let second = if i % 40 == 7 { "?".to_owned() } else { value(1).to_string() };
        let colour = ["red", "<b>blue</b>", "green"][i as usize % 3];
        text += &format!("{},{second},{colour},{y}\n", value(0));
    }
    text
}

/// Runs of several models and methods, made once.
fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Place::new();
        place.write("d.csv", rows()).write("mix.toml", MIXTURE).write("logit.toml", LOGISTIC).write("mean.toml", MEAN);
        let path = "[path]\nparameter = \"model.logistic.penalty.student_t.b\"\nvalues = [1.0, 0.1, 0.01]\nkeep = [\"beta.colour_red\"]\n";
        let path = LOGISTIC.replace("repeats = 3\n", "").replace("name = \"logit\"", "name = \"path\"") + path;
        place.write("path.toml", path);
        for name in ["mean", "mix", "logit", "path"] {
            place.ok(&["run", &format!("{name}.toml"), "--out", name]);
        }
        place.ok(&["run", "mix.toml", "--set", "method=importance", "--out", "weighted"]);
        place.ok(&["run", "mix.toml", "--set", "method=advi", "--out", "advi"]);
        place.ok(&["run", "mix.toml", "--set", "method=nuts", "--set", "sampler.B=80", "--out", "chains"]);
        // Two classes that are told apart unless a pseudo-sample stands between them: draws without one have no minimum.
        let separable: String = (0..12).map(|i| format!("{},{}\n", i, u32::from(i > 5))).collect();
        place.write("s.csv", "x,y\n".to_owned() + &separable);
        let failing = "name = \"failing\"\nseed = 2\n[data]\ntrain = \"s.csv\"\ntarget = \"y\"\n[model.logistic]\npenalty = \"none\"\n[prior]\nalpha = 1.0\nT = 3\nbase.response = { bernoulli = 0.5, covariates = \"empirical\" }\n[sampler]\nB = 60\nmax_failed = 1.0\nmax_unconverged = 1.0\n";
        place.write("failing.toml", failing);
        place.ok(&["run", "failing.toml", "--out", "failing"]);
        place
    })
}

fn runs() -> Vec<&'static str> {
    vec!["mean", "mix", "logit", "path", "weighted", "advi", "failing", "chains"]
}

fn page(args: &[&str]) -> String {
    let args: Vec<&str> = [&["report", "--out", "-", "--data-dir", "."], args].concat();
    place().ok(&args).stdout
}

/// Elements that have no end.
const VOID: [&str; 1] = ["meta"];

/// That every element is closed in its turn, no attribute runs code, no name is used twice, and nothing comes from outside.
fn assert_well_formed(page: &str, case: &str) {
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap_or_else(|| panic!("{case}: no doctype"));
    let mut open: Vec<String> = Vec::new();
    let (mut rest, mut ids, mut scripts) = (body, std::collections::HashSet::new(), 0);
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        let raw = matches!(open.last().map(String::as_str), Some("script" | "style"));
        assert!(raw || !text.contains('>'), "{case}: a bare > in {text:?}");
        if raw && !rest[start..].starts_with("</") {
            rest = &rest[start + 1..];
            continue;
        }
        let end = start + rest[start..].find('>').unwrap_or_else(|| panic!("{case}: a tag without end"));
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{case}: </{name}>");
            continue;
        }
        let name: String = tag.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        assert!(!name.is_empty() && tag.matches('"').count() % 2 == 0, "{case}: <{tag}>");
        let attributes: Vec<&str> = tag.split('"').step_by(2).collect();
        for (k, attribute) in attributes.iter().enumerate() {
            let attribute = attribute.trim_end_matches('=').rsplit(' ').next().unwrap();
            assert!(!attribute.starts_with("on") && attribute != "src", "{case}: <{tag}>");
            let value = tag.split('"').nth(2 * k + 1).unwrap_or_default();
            assert!(attribute != "id" || ids.insert(value.to_owned()), "{case}: id {value} is used twice");
            assert!(
                attribute != "href" || value.starts_with('#') || value.starts_with("data:image/png"),
                "{case}: <{tag}>"
            );
        }
        scripts += usize::from(name == "script");
        if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{case}: {open:?} left open");
    assert_eq!(scripts, 1, "{case}");
    assert!(!page.contains("://") && !page.contains("@import"), "{case}: something comes from outside");
    assert!(!page.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{case}");
    // Every clip path that is used is there.
    for used in page.split("url(#").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(ids.contains(used), "{case}: {used}");
    }
}

/// Every section in its order, warnings before all of them.
fn assert_complete(page: &str, case: &str) {
    let places: Vec<usize> = [
        "warnings",
        "experiment",
        "data",
        "diagnostics",
        "metrics",
        "parameters",
        "figures",
        "config",
        "reproduce",
    ]
    .iter()
    .map(|id| page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{case}: no {id}")))
    .collect();
    assert!(places.is_sorted(), "{case}: {places:?}");
    assert!(!page.contains(">NaN") && !page.contains("\"NaN") || case == "failing", "{case}");
    assert!(page.contains("<svg") || case == "failing", "{case}: no figure");
}

#[test]
fn pages_of_all_kinds_of_runs_are_whole() {
    for run in runs() {
        let page = page(&[run]);
        assert_well_formed(&page, run);
        assert_complete(&page, run);
        let report: serde_json::Value =
            serde_json::from_str(&place().read(&format!("{run}/report.json"))).unwrap();
        let warnings = report["warnings"].as_array().unwrap();
        assert_eq!(page.contains("class=\"warnings\""), !warnings.is_empty(), "{run}");
        // Nothing that is said of the run is left out for want of a figure.
        assert!(run == "failing" || !page.contains("figure: "), "{run}");
    }
    let failing = page(&["failing"]);
    assert!(failing.contains("of 60 draws are separated"), "the warning of draws without a minimum");
}

/// Whether a cell of the page has this number in full, but for the last digit, which JSON may round.
fn has(page: &str, number: &str) -> bool {
    let number: f64 = number.parse().unwrap();
    let cells =
        page.split("<td title=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
    cells.into_iter().any(|cell| (cell - number).abs() <= 1e-15 * number.abs())
}

#[test]
fn numbers_are_those_of_the_files() {
    let page = page(&["logit"]);
    let report = place().read("logit/report.csv");
    let lines = cells(&report);
    for row in &lines[1..] {
        for metric in ["lppd", "mse", "accuracy", "sparsity"] {
            let value = row[lines[0].iter().position(|c| *c == metric).unwrap()];
            assert!(has(&page, value), "{metric} {value}");
        }
    }
    let json: serde_json::Value = serde_json::from_str(&place().read("logit/report.json")).unwrap();
    assert!(has(&page, &json["metrics"]["lppd"]["mean"].to_string()));
    let summary = place().read("mean/summary.csv");
    let line = cells(&summary)[1].clone();
    let page = self::page(&["mean"]);
    for value in &line[1..8] {
        assert!(has(&page, value), "{value}");
    }
}

#[test]
fn the_data_are_described_where_they_are() {
    let here = page(&["logit"]);
    for words in [
        "3 levels: &lt;b&gt;blue&lt;/b&gt;, green, red",
        "3 cells in 3 rows",
        " are 1 (",
        "3 of 120 rows have missing values",
        "rows read",
    ] {
        assert!(here.contains(words), "{words}");
    }
    let place = Place::new();
    place.write("d.csv", rows()).write("logit.toml", LOGISTIC);
    place.ok(&["run", "logit.toml", "--out", "run"]);
    std::fs::remove_file(place.path("d.csv")).unwrap();
    let gone = place.ok(&["report", "run", "--out", "-"]).stdout;
    assert!(
        gone.contains("The data are not there to be looked at again") && gone.contains("3 cells in 3 rows")
    );
    assert!(gone.contains("class=\"fine\"") && gone.contains("<svg"));
    assert_well_formed(&gone, "without data");
    place.write("d.csv", rows().replace("red", "rot"));
    let other = place.ok(&["report", "run", "--out", "-"]).stdout;
    assert!(other.contains("d.csv has changed since the run"), "a warning");
}

#[test]
fn several_runs_stand_side_by_side() {
    let two = page(&["mix", "weighted"]);
    assert_well_formed(&two, "two");
    assert!(two.contains("All 2 runs are of the same data.") && two.contains("colspan=\"3\""));
    let three = page(&["mix", "advi", "logit", "--label", "first", "second"]);
    assert_well_formed(&three, "three");
    assert_complete(&three, "three");
    assert!(
        !three.contains("of the same data")
            && three.contains("<h3>first</h3>")
            && three.contains("<h3>logit</h3>")
    );
    // The same run twice has figures of its own each time.
    assert_well_formed(&page(&["mix", "./mix"]), "twice");
    assert_well_formed(&page(&["path", "mix"]), "a path and a mixture");
}

/// A run whose figures are all in a picture with others has no card of its own that would be empty.
#[test]
fn no_card_is_empty() {
    for runs in [&["mix", "weighted", "advi", "chains"][..], &["logit", "failing", "mean"]] {
        let page = page(runs);
        assert!(!page.contains("</h3></article>"), "{runs:?}");
        // Each picture of several runs is there for a wide screen and for a narrow one.
        let of = |class: &str| page.matches(&format!("<div class=\"{class}\"><svg")).count();
        assert_eq!(of("wide"), of("narrow"), "{runs:?}");
    }
}

#[test]
fn coefficients_side_by_side_are_in_the_same_units() {
    let place = Place::new();
    let row = |i: u32| format!("{},{},{}\n", i * 13 % 29 * 100, i % 7, u32::from(i * 5 % 11 > 4));
    place.write("d.csv", "a,b,y\n".to_owned() + &(0..80).map(row).collect::<String>());
    let config = "name = \"n\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\nsplit = { test = 0.2 }\n[model.logistic]\npenalty = \"ridge\"\ngamma = 0.001\n[sampler]\nB = 40\n";
    place.write("n.toml", config);
    for (name, set) in [("plain", "none"), ("scaled", "all"), ("again", "all")] {
        let set = [format!("name={name}"), format!("data.standardise={set}")];
        place.ok(&["run", "n.toml", "--set", &set[0], "--set", &set[1], "--out", name]);
    }
    place.ok(&["run", "n.toml", "--set", "data.standardise=all", "--set", "seed=9", "--out", "other"]);
    let page = |runs: &[&str]| place.ok(&[&["report", "--out", "-"], runs].concat()).stdout;
    let both = page(&["plain", "scaled"]);
    assert!(both.contains("all coefficients are told in the units of the data"));
    assert!(both.contains("β per unit of the data"), "the figure says so too");
    let text = place.ok(&["summary", "scaled", "--units", "data", "--format", "csv"]).stdout;
    cells(&text)[1..].iter().for_each(|line| assert!(has(&both, line[1]), "{line:?}"));
    assert!(!both.contains("different splits"));
    let alike = page(&["scaled", "again"]);
    assert!(
        alike.contains("Coefficients are per standard deviation of the column.")
            && !alike.contains("units of the data,")
    );
    assert!(page(&["scaled", "other"]).contains("scaled and n saw different splits of the data"));
}

#[test]
fn a_tuned_path_says_which_setting_is_best() {
    let place = Place::new();
    let row = |i: u32| format!("{},{},{}\n", i * 13 % 29, i % 7, u32::from(i * 13 % 29 + i % 5 > 15));
    place.write("d.csv", "a,b,y\n".to_owned() + &(0..60).map(row).collect::<String>());
    place.write("t.toml", "name = \"t\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\n[model.logistic]\npenalty = \"ridge\"\ngamma = 0.1\n[evaluate]\nfolds = 3\n[path]\nparameter = \"model.logistic.gamma\"\ngeometric = { first = 0.001, ratio = 2.3, count = 5 }\n[sampler]\nB = 20\n");
    place.ok(&["run", "t.toml", "--out", "t"]);
    let page = place.ok(&["report", "t", "--out", "-"]).stdout;
    assert_well_formed(&page, "tuned");
    assert!(page.contains("LPPD along the path"), "the figure");
    assert!(page.contains("Fold by fold, setting by setting") && page.contains(">3, 5</th>"));
    // 0.001 x 2.3 x 2.3 in floating point has digits that nobody wrote.
    assert!(page.contains("0.00529") && !page.contains("0.005289"));
    let table = place.ok(&["table", "t", "--path"]).stdout;
    let best = |text: &str| {
        text.lines().find(|l| l.starts_with("best LPPD: ")).map(|l| l["best LPPD: ".len()..].to_owned())
    };
    assert!(page.contains(&format!("Best LPPD: {}.", best(&table).unwrap())), "{table}");
}

#[test]
fn exchangeable_components_are_aligned_and_the_page_says_so() {
    let page = page(&["mix"]);
    assert!(page.contains("aligned over draws and ordered by their means"));
    let place = place();
    let aligned = place.ok(&["summary", "mix", "--relabel", "--format", "csv"]).stdout;
    let raw = place.ok(&["summary", "mix", "--format", "csv"]).stdout;
    for table in [aligned, raw] {
        for line in cells(&table)[1..].iter() {
            assert!(has(&page, line[1]), "{line:?}");
        }
    }
}

#[test]
fn names_of_users_are_no_markup() {
    let place = place();
    let title = page(&["logit", "--title", EVIL, "--label", EVIL]);
    assert_well_formed(&title, "evil");
    assert!(!title.contains("<script>alert") && title.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(title.contains("&lt;/th&gt;&lt;script&gt;alert(2)&lt;/script&gt;"), "the name of a column");
    let named = MEAN.replace("\"mean\"", "\"a<img src=x onerror=alert(3)>\\u001b[31m\"");
    place.write("named.toml", named);
    let ended = place.npl(&["run", "named.toml", "--out", "named"]);
    if ended.code == Some(0) {
        let page = page(&["named"]);
        assert_well_formed(&page, "named");
        assert!(!page.contains("<img"));
    }
}

#[test]
fn the_page_is_a_file_that_goes_with_its_run() {
    let place = Place::new();
    place.write("mean.toml", MEAN);
    place.ok(&["run", "mean.toml", "--out", "run"]);
    let before = place.list("run");
    let ended = place.ok(&["report", "run"]);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("report.html"), "{}", ended.stderr);
    let mut after = before.clone();
    after.push("report.html".to_owned());
    after.sort();
    assert_eq!(place.list("run"), after, "nothing else is written");
    let first = place.read("run/report.html");
    place.ok(&["report", "run"]);
    assert_eq!(place.read("run/report.html"), first, "the same run, the same bytes");
    place.ok(&["summary", "run"]);
    // Other results have no page yet; a page of someone else stays.
    place.ok(&["run", "mean.toml", "--set", "seed=2", "--out", "run", "--force"]);
    assert_eq!(place.list("run"), before);
    place.write("run/report.html", "<p>mine</p>");
    place.ok(&["run", "mean.toml", "--set", "seed=3", "--out", "run", "--force"]);
    assert_eq!(place.read("run/report.html"), "<p>mine</p>");
    for (args, said) in [
        (&["report", "run", "--out", "page.pdf"][..], "a page ends in .html"),
        (&["report", "nowhere"], "no such run directory"),
        (&["report", "run", "--repeat", "9"], "repeats 1 to 1"),
        (&["report", "run", "--setting", "1"], "it has no path"),
        (&["report", "run", "--label", "a", "b"], "--label is given 2 times"),
    ] {
        let ended = place.npl(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
    }
}

/// Seconds of work, whatever else the machine does meanwhile: the shell counts those of its children.
#[cfg(unix)]
fn seconds_of(place: &Place, args: &[&str]) -> f64 {
    let npl = place.command(args);
    let mut shell = std::process::Command::new("sh");
    shell
        .args(["-c", "\"$@\" && times", "sh"])
        .arg(npl.get_program())
        .args(npl.get_args())
        .current_dir(place.path(""));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let seconds = |time: &str| -> f64 {
        let (minutes, seconds) = time.split_once('m').unwrap();
        60.0 * minutes.parse::<f64>().unwrap() + seconds.trim_end_matches('s').parse::<f64>().unwrap()
    };
    said.lines().last().unwrap().split_whitespace().map(seconds).sum()
}

#[cfg(unix)]
#[test]
fn ten_thousand_coefficients_make_a_small_page_soon() {
    let place = Place::new();
    let names: Vec<String> = (0..10_000).map(|j| format!("x{j}")).collect();
    let mut rows = format!("{},y\n", names.join(","));
    for i in 0..30_u64 {
        let cells: Vec<String> =
            (0..10_000_u64).map(|j| ((i * i * 31 + j * 17 + i * j) % 23).to_string()).collect();
        rows += &format!("{},{}\n", cells.join(","), i % 2);
    }
    place.write("wide.csv", rows);
    place.write("wide.toml", "name = \"wide\"\nseed = 1\n[data]\ntrain = \"wide.csv\"\ntarget = \"y\"\nstandardise = \"all\"\nsplit = 0.3\n[model.logistic]\npenalty = \"ridge\"\ngamma = \"1/n\"\n[sampler]\nB = 50\n");
    place.ok(&["run", "wide.toml", "--out", "wide"]);
    let spent = seconds_of(&place, &["report", "wide"]);
    let page = place.read("wide/report.html");
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(spent < 2.0 || cfg!(debug_assertions), "{spent} seconds");
    assert!(page.contains("The 300 of 10001 parameters") && page.matches("<tr>").count() < 600);
    assert_well_formed(&page, "wide");
}
