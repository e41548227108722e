//! The scripts of the paper's tables and figures: each has one, what they make, that they make it once, and how they judge.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::support::{Ended, Place, cells, config, script};

/// Runs a script in `place` on the program under test; without data sets but those below `data`.
fn call(place: &Place, name: &str, args: &[&str], data: Option<&Path>) -> Ended {
    let interpreter = if name.ends_with(".py") { "python3" } else { "bash" };
    let mut command = Command::new(interpreter);
    command.current_dir(place.path(".")).arg(script(name)).args(args);
    command.env("NPL", env!("CARGO_BIN_EXE_npl")).env("NPL_THREADS", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    match data {
        Some(folder) => command.env("NPL_DATA", folder),
        None => command.env_remove("NPL_DATA"),
    };
    let started = Instant::now();
    Ended::of(command.output().unwrap(), started.elapsed())
}

/// Where the paper's toy data are, if they are at hand.
fn toy_data() -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let places = [std::env::var("NPL_DATA").ok().map(PathBuf::from), Some(shared)];
    places.into_iter().flatten().find(|folder| folder.join("toy").is_dir())
}

/// `Table 1` … `Table E.6` and `Figure 1` … `Figure E.13`, as the paper counts them.
fn of_the_paper() -> BTreeSet<String> {
    let count = |kind: &str, main: u32, more: u32| {
        let supplement = (1..=more).map(|i| format!("{kind} E.{i}"));
        (1..=main).map(|i| format!("{kind} {i}")).chain(supplement).collect::<Vec<String>>()
    };
    count("Table", 6, 6).into_iter().chain(count("Figure", 5, 13)).collect()
}

#[test]
fn every_table_and_figure_has_a_script_that_can_be_run() {
    let page = fs::read_to_string(script("README.md")).unwrap();
    let mut found = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| Table ") || line.starts_with("| Figure")) {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let (kind, numbers) = parts[1].split_once(' ').unwrap();
        let kind = kind.trim_end_matches('s');
        found.extend(numbers.split(", ").map(|number| format!("{kind} {number}")));
        let name = parts[3].split(['(', ')']).nth(1).expect("a link to the script");
        let mode = fs::metadata(script(name)).unwrap_or_else(|e| panic!("{name}: {e}")).permissions().mode();
        assert!(mode & 0o111 != 0, "{name} cannot be run");
    }
    assert_eq!(found, of_the_paper());
    let heads = |file: &str, kind: &str| {
        let text = fs::read_to_string(script(file)).unwrap();
        let heads = text.lines().skip(1).filter_map(|line| line.split(',').next());
        let numbers: BTreeSet<String> =
            heads.filter(|h| !h.starts_with("text")).map(|h| format!("{kind} {h}")).collect();
        numbers
    };
    let listed: BTreeSet<String> =
        heads("paper/tables.csv", "Table").into_iter().chain(heads("paper/figures.csv", "Figure")).collect();
    assert_eq!(listed, of_the_paper());
}

#[test]
fn wrong_options_say_what_is_right() {
    let place = Place::new();
    for args in [&["--slow"][..], &["--out"]] {
        let ended = call(&place, "table1_gmm_lppd.sh", args, None);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
    }
    let help = call(&place, "figure1_toy_mu.sh", &["--help"], None);
    assert!(help.code == Some(0) && help.stdout.starts_with("Figure 1: "), "{}", help.stdout);
}

/// In a folder with a blank in its name; everything once, and nothing when called again.
#[test]
fn the_smoke_setting_makes_all_that_needs_no_real_data_and_makes_it_once() {
    let (place, data) = (Place::new(), toy_data());
    let all = || {
        let ended = call(&place, "reproduce_all.sh", &["--smoke", "--out", "my results"], data.as_deref());
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        ended.stdout
    };
    let said = all();
    assert!(said.contains("running toy_rr, seed 101"), "{said}");
    let text = place.read("my results/summary.csv");
    let rows = cells(&text);
    let names: BTreeSet<String> = rows[1..]
        .iter()
        .map(|row| if row[0].starts_with("Figure") { row[0].to_owned() } else { format!("Table {}", row[0]) })
        .filter(|name| !name.starts_with("Table text"))
        .collect();
    assert_eq!(names, of_the_paper());
    let line = text.lines().find(|line| line.starts_with("1,Toy,RR-NPL,-1.909,0.040,-1.")).expect("a number");
    assert!(line.contains("agrees; short run"), "{line}");
    assert!(text.contains("4,Adult,NUTS,-0.326,0.004,,,,,,not run: real data,"), "{text}");
    assert!(place.read("my results/summary.md").contains("| 1 | Toy | RR-NPL | -1.909 ± 0.040 |"));
    let real = ["2", "3", "4", "5", "E.12", "E.13"].map(|number| format!("Figure {number}"));
    for row in rows.iter().filter(|row| row[0].starts_with("Figure")) {
        let made = row.iter().any(|cell| cell.starts_with("made: ") || cell.starts_with("\"made: "));
        assert_eq!(made, !real.contains(&row[0].to_owned()), "{row:?}");
    }
    assert!(place.read("my results/smoke/figure_E.1_n0.svg").starts_with("<svg"));
    let again = all();
    assert!(!again.contains("running "), "{again}");
}

#[test]
fn a_run_of_other_settings_is_made_anew() {
    let place = Place::new();
    let table = || call(&place, "tableE1_restarts_runtime.sh", &["--smoke", "--out", "r"], None).stdout;
    assert_eq!(table().matches("running ").count(), 8);
    place.write("r/smoke/runs/toy_rr_R2/101.key", "another experiment\n");
    fs::remove_file(place.path("r/smoke/runs/toy_rr/100/manifest.json")).unwrap();
    let said = table();
    assert_eq!(said.matches("running ").count(), 2, "{said}");
    assert!(
        said.contains("running toy_rr_R2, seed 101") && said.contains("running toy_rr, seed 100"),
        "{said}"
    );
    assert!(place.exists("r/smoke/runs/toy_rr/100/samples.csv"), "the first repeat keeps its draws");
    assert!(!place.exists("r/smoke/runs/toy_rr/101/samples.csv"));
    let dry =
        call(&place, "tableE1_restarts_runtime.sh", &["--smoke", "--out", "r", "--dry-run"], None).stdout;
    assert_eq!(dry.lines().filter(|line| line.starts_with("finished: ")).count(), 8, "{dry}");
}

#[test]
fn data_that_are_not_there_are_skipped_with_the_way_to_get_them() {
    let place = Place::new();
    let ended =
        call(&place, "table6_logistic_runtime.sh", &["--quick", "--out", "r"], Some(&place.path(".")));
    let written = place.read("r/quick/table_6.csv");
    // A checkout may have data of its own.
    if !script("../data/adult").exists() {
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(written.contains("skipped: no adult/adult.data; scripts/fetch_data.sh adult"), "{written}");
    }
}

/// A finished repeat of a run with this LPPD.
fn finished(place: &Place, run: &str, seed: u32, lppd: f64) {
    let folder = format!("r/full/runs/{run}/{seed}");
    let report = format!(
        r#"{{"repeats": [{{"draws": 10, "seconds": 2.0, "lppd": {{"value": {lppd}, "mcse": 0.0}}}}]}}"#
    );
    place.write(&format!("{folder}/report.json"), report).write(&format!("{folder}/manifest.json"), "{}");
    place.write(&format!("{folder}.key"), "");
}

/// The paper: RR-NPL -1.909, spread 0.040 over 30. Four repeats: the band is 3 (0.04 sqrt(1/4 + 1/30)) + 0.0005 = 0.0644.
#[test]
fn a_number_agrees_within_three_standard_errors_of_the_difference() {
    for (mean, verdict) in
        [(-1.909 - 0.0642, "agrees"), (-1.909 - 0.0646, "differs"), (-1.909 + 0.0642, "agrees")]
    {
        let place = Place::new();
        for (seed, off) in [(100, -0.1), (101, 0.1), (102, -0.1), (103, 0.1)] {
            finished(&place, "toy_rr", seed, mean + off);
        }
        for table in ["1", "2"] {
            let ended =
                call(&place, "lib/compare.py", &["table", table, "--out", "r", "--setting", "full"], None);
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        }
        let text = place.read("r/full/table_1.csv");
        let rows = cells(&text);
        let column = |name: &str| rows[0].iter().position(|n| *n == name).unwrap();
        assert_eq!((rows[1][column("repeats")], rows[1][column("verdict")]), ("4", verdict), "{text}");
        assert_eq!(rows[1][column("measured_spread")], "0.1155");
        assert_eq!(rows[1][column("band_in_spreads")], "1.61");
        assert_eq!(rows[2][column("verdict")], "not run");
        assert!(place.read("r/full/table_2.csv").contains("19 times as fast (other hardware)"));
    }
}

#[test]
fn the_test_of_symmetry_knows_a_symmetric_cloud_from_another() {
    let cloud = |pairs: &[(f64, f64)]| {
        let rows = pairs.iter().map(|(a, b)| format!("{a},{b}\n")).collect::<String>();
        let place = Place::new();
        place.write("run/samples.csv", format!("mu.1.1,mu.2.1\n{rows}"));
        call(&place, "lib/symmetry.py", &["run"], None).stdout
    };
    let both: Vec<(f64, f64)> = (0..200).map(|i| if i % 2 == 0 { (0.1, 3.9) } else { (3.9, 0.1) }).collect();
    assert!(cloud(&both).ends_with("mu.1.1 and mu.2.1,200,1,0.00,1,symmetric\n"), "{}", cloud(&both));
    let more: Vec<(f64, f64)> = (0..200).map(|i| if i % 3 == 0 { (0.1, 3.9) } else { (3.9, 0.1) }).collect();
    assert!(cloud(&more).ends_with(",not symmetric\n"), "{}", cloud(&more));
    assert!(cloud(&both[..4]).ends_with(",not judged: too few draws\n"));
}

/// The picture of (μ₁, μ₂) is symmetric about the diagonal because the draws are; those of a fixed start are in one mode.
#[test]
fn random_restarts_give_a_symmetric_posterior_and_a_fixed_start_does_not() {
    let place = Place::new();
    for (name, sets, verdict) in [
        ("gmm_toy.toml", &["sampler.B=2000", "sampler.R=3"][..], "symmetric"),
        ("gmm_toy_fi.toml", &["sampler.B=500"], "not symmetric"),
    ] {
        let config = config(name);
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["run", &config, "--quiet", "--out", name].into_iter().chain(sets).collect();
        place.ok(&args);
        let said = call(&place, "lib/symmetry.py", &[name], None).stdout;
        let cells = cells(&said);
        assert_eq!(cells[1][5], verdict, "{said}");
        assert!(cells[1][2].parse::<u32>().unwrap() >= 5, "{said}");
    }
}

#[test]
fn tables_and_pictures_go_where_the_page_has_room_for_them() {
    let place = Place::new();
    place.write("r/full/table_4.md", "| new |\n");
    for panel in ["E.1_n10", "E.1_n0", "E.1_n5", "E.3_a", "E.3_b"] {
        place.write(&format!("r/full/figure_{panel}.svg"), "<svg/>");
    }
    place.write("r/full/figure_E.3.panels", "figure_E.3_b\nfigure_E.3_a\n");
    place.write("r/full/figure_E.10.svg", "<svg></svg>").write("r/full/figure_E.10.png", "png");
    let page = "A\n<!-- table 4 -->\nold\n<!-- end -->\nB\n<!-- figure E.1 -->\n<!-- end -->\n<!-- figure E.3 -->\n<!-- end -->\n<!-- figure E.10 -->\n<!-- end -->\n<!-- table 5 -->\nkept\n<!-- end -->\n";
    place.write("docs/page.md", page);
    let args = ["--out", "r", "--setting", "full", "--page", "docs/page.md"];
    let ended = call(&place, "lib/update_docs.py", &args, None);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "kept as they were, for want of results: table 5\n"));
    let text = place.read("docs/page.md");
    assert!(text.contains("| new |") && !text.contains("old") && text.contains("kept"), "{text}");
    let shown: Vec<&str> =
        text.split("img/paper/figure_").skip(1).filter_map(|rest| rest.split(['"', ')']).next()).collect();
    // Panels have the order of their list; without one numbers are in their order, whichever picture was made last.
    assert_eq!(
        shown,
        ["E.1_n0.svg", "E.1_n5.svg", "E.1_n10.svg", "E.3_b.svg", "E.3_a.svg", "E.10.png"],
        "{text}"
    );
    assert_eq!(place.list("docs/img/paper").len(), shown.len());
}
