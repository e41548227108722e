//! `data.by`: groups that know nothing of each other, from the draws to what is said of them.

use std::process::Stdio;
use std::time::Duration;

use crate::support::{Ended, Place, cells, wait_until};

const MEAN: &str = "name = \"m\"\nseed = 5\n[data]\ntrain = \"d.csv\"\ncolumns = [\"y\"]\nby = \"region\"\n[model.mean]\n\
                    [sampler]\nB = 400\n";
const LINEAR: &str = "name = \"l\"\nseed = 5\nrepeats = 2\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\nby = \"region\"\n\
                      categorical = [\"c\"]\nstandardise = \"numeric\"\nsplit = 0.25\n[model.linear]\npenalty = \"ridge\"\n\
                      [sampler]\nB = 60\n";

/// Rows of these groups, in turn; the last column is the only one that a group decides.
fn rows(groups: &[&str]) -> String {
    let row = |i: usize| {
        let x = ((i * 7919) % 101) as f64 / 25.0 - 2.0;
        let z = ((i * 104_729) % 97) as f64 / 97.0;
        let group = ["east", "north, far", "south"][i % 3];
        let slope = [1.0, -1.0, 3.0][i % 3];
        let y = slope * x + z + (i % 3) as f64;
        (group, format!("{group:?},{x},{},{y}\n", if i % 5 < 2 { "u" } else { "v" }))
    };
    let kept = (0..150).map(row).filter(|(group, _)| groups.contains(group)).map(|(_, line)| line);
    format!("region,x,c,y\n{}", kept.collect::<String>())
}

const ALL: [&str; 3] = ["east", "north, far", "south"];

fn place() -> Place {
    let place = Place::new();
    place.write("d.csv", rows(&ALL)).write("m.toml", MEAN).write("l.toml", LINEAR);
    place
}

/// The draws of one group, as they are written.
fn draws(place: &Place, run: &str, group: &str) -> String {
    let text = place.read(&format!("{run}/samples.csv"));
    let own = |line: &&str| line.contains(&format!(",{group},"));
    text.lines().filter(own).map(|line| format!("{line}\n")).collect()
}

fn refused(place: &Place, args: &[&str]) -> String {
    let ended = place.npl(args);
    ended.assert_decent(&args.join(" "));
    assert_eq!(ended.code, Some(2), "npl {}\n{}", args.join(" "), ended.stderr);
    ended.stderr
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("{cell:?} is no number"))
}

/// Rows of a CSV, with quoted cells.
fn table(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(|row| row.unwrap().iter().map(String::from).collect()).collect()
}

/// With fewer groups in the file, with a filter, with more threads: the same bytes. A group that comes later is no neighbour.
#[test]
fn draws_of_a_group_do_not_depend_on_the_others() {
    let place = place();
    place.write("two.csv", rows(&["north, far", "south"]));
    place.write("one.csv", rows(&["north, far"]));
    for file in ["m.toml", "l.toml"] {
        place.ok(&["run", file, "--quiet", "--out", "all", "--force", "--threads", "2"]);
        let expected = draws(&place, "all", "\"north, far\"");
        assert!(expected.lines().count() > 100, "{expected}");
        let filter = "data.filter=region == 'north, far'";
        for sets in [
            &["--threads", "1"][..],
            &["--set", "data.train=two.csv"],
            &["--set", "data.train=one.csv", "--threads", "1"],
            &["--set", filter],
        ] {
            place.ok(&[&["run", file, "--quiet", "--out", "some", "--force"], sets].concat());
            assert_eq!(draws(&place, "some", "\"north, far\""), expected, "{file} {sets:?}");
        }
    }
}

/// The seed of a group is in `report.csv`: an experiment on its rows alone that has it makes the same draws.
#[test]
fn a_group_is_an_experiment_of_its_own() {
    let place = place();
    place.ok(&["run", "l.toml", "--quiet", "--out", "all"]);
    place.ok(&["samples", "all", "--group", "south", "--out", "south.csv"]);
    let own = place.read("south.csv");
    assert!(!own.contains("group__"), "{own}");
    let alone = LINEAR.replace("by = \"region\"\n", "").replace("split", "columns = [\"x\", \"c\"]\nsplit");
    let alone = alone.replace("repeats = 2\n", "").replace("split", "filter = \"region == 'south'\"\nsplit");
    place.write("alone.toml", alone);
    let report = table(&place.read("all/report.csv"));
    assert_eq!(report[0][..3], ["group", "repeat", "seed"]);
    for repeat in ["1", "2"] {
        let line = report.iter().find(|row| row[0] == "south" && row[1] == repeat).unwrap();
        let seed = format!("seed={}", line[2]);
        place.ok(&["run", "alone.toml", "--quiet", "--out", "alone", "--force", "--set", &seed]);
        let without_repeat = |text: &str, wanted: &str| -> Vec<String> {
            let rows = cells(text).into_iter().skip(1).filter(|row| row[0] == wanted);
            rows.map(|row| row[1..].join(",")).collect()
        };
        let (expected, found) =
            (without_repeat(&place.read("alone/samples.csv"), "1"), without_repeat(&own, repeat));
        assert!(expected.len() == 60 && expected == found, "repeat {repeat}");
    }
}

/// Closed forms: the Bayesian bootstrap of a mean has mean ȳ and variance s²/(n + 1), with s² of divisor n; groups are independent.
#[test]
fn means_and_contrasts_of_groups_are_those_of_the_formula() {
    let place = place();
    let draws = 4000.0f64;
    place.ok(&["run", "m.toml", "--quiet", "--set", "sampler.B=4000"]);
    let exact = |group: &str| {
        let y: Vec<f64> = table(&rows(&[group]))[1..].iter().map(|row| number(&row[3])).collect();
        let n = y.len() as f64;
        let mean = y.iter().sum::<f64>() / n;
        (mean, y.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n / (n + 1.0))
    };
    // Four standard errors of the run: of a mean, and of a standard deviation of values that are nearly normal.
    let holds = |mean: f64, sd: f64, (m, v): (f64, f64), what: &str| {
        let sigma = v.sqrt();
        assert!((mean - m).abs() < 4.0 * sigma / draws.sqrt(), "{what}: mean {mean}, not {m}");
        assert!(
            (sd - sigma).abs() < 4.0 * sigma / (2.0 * draws).sqrt() * 1.1,
            "{what}: sd {sd}, not {sigma}"
        );
    };
    let summary = table(&place.read("runs/m/summary.csv"));
    assert_eq!(summary[0][..4], ["group__", "parameter", "mean", "sd"]);
    assert_eq!(summary.len(), 4);
    for row in &summary[1..] {
        holds(number(&row[2]), number(&row[3]), exact(&row[0]), &row[0]);
    }
    let contrast = place.ok(&["summary", "runs/m", "--contrast", "east", "--format", "csv"]).stdout;
    let contrast = table(&contrast);
    let place_of = |title: &str| contrast[0].iter().position(|known| known == title).unwrap();
    assert_eq!(contrast[0][..3], ["group__", "minus__", "parameter"]);
    assert_eq!(contrast.len(), 3);
    for row in &contrast[1..] {
        let ((a, va), (b, vb)) = (exact(&row[0]), exact(&row[1]));
        assert_eq!(row[1], "east");
        let (mean, sd) = (number(&row[place_of("mean")]), number(&row[place_of("sd")]));
        holds(mean, sd, (a - b, va + vb), &row[0]);
        // Nearly normal: P(> 0) and its interval are those of that normal distribution, within its errors and the skewness.
        let z = (a - b) / (va + vb).sqrt();
        let above = number(&row[place_of("P(> 0)")]);
        let normal = 0.5 * libm::erfc(-z / 2f64.sqrt());
        assert!((above - normal).abs() < 0.04, "{above}, not {normal}");
        let (lower, upper) = (number(&row[place_of("lower")]), number(&row[place_of("upper")]));
        let half = 1.96 * (va + vb).sqrt();
        let off = (lower - (a - b - half)).abs().max((upper - (a - b + half)).abs());
        assert!(off < 0.2 * half, "[{lower}, {upper}]");
    }
    let pairs = place.ok(&["summary", "runs/m", "--pairwise", "--format", "csv"]).stdout;
    let pairs = table(&pairs);
    let names: Vec<[&str; 2]> = pairs[1..].iter().map(|row| [row[0].as_str(), row[1].as_str()]).collect();
    assert_eq!(names, [["north, far", "east"], ["south", "east"], ["south", "north, far"]]);
    assert_eq!(pairs[1..3], contrast[1..], "the same differences");
}

/// Draws of the chains of NUTS are paired, too; those of importance sampling count differently.
#[test]
fn contrasts_are_of_draws_that_can_be_paired() {
    let place = place();
    place.write("nuts.toml", "name = \"n\"\nseed = 5\nmethod = \"nuts\"\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\ncolumns = [\"x\"]\n\
                              by = \"region\"\n[model.poisson]\npenalty = \"ridge\"\n[sampler]\nB = 200\n[nuts]\nchains = 2\nwarmup = 100\n");
    let all = rows(&ALL);
    let counts = all.lines().enumerate().map(|(i, line)| {
        let (front, _) = line.rsplit_once(',').unwrap();
        if i == 0 { format!("{front},y\n") } else { format!("{front},{}\n", (i * 31) % 7) }
    });
    place.write("d.csv", counts.collect::<String>());
    place.ok(&["run", "nuts.toml", "--quiet", "--out", "n"]);
    let ended = place.ok(&["summary", "n", "--contrast", "south"]);
    assert!(ended.stdout.contains("east - south"), "{}", ended.stdout);
    let mixture = "name = \"g\"\nseed = 5\n[data]\ntrain = \"d.csv\"\ncolumns = [\"x\"]\nby = \"region\"\n[model.gmm]\nK = 2\nvariance_floor = 1e-3\n[sampler]\n\
                   B = 20\nR = 2\n";
    place.write("g.toml", mixture);
    place.ok(&["run", "g.toml", "--quiet", "--out", "g"]);
    let why = refused(&place, &["summary", "g", "--contrast", "south"]);
    assert!(why.contains("--relabel aligns them"), "{why}");
    place.ok(&["summary", "g", "--contrast", "south", "--relabel"]);
    place.ok(&["relabel", "g"]);
    assert!(place.read("g/samples.relabelled.csv").lines().nth(1).unwrap().contains(",east,"));
}

fn bytes(place: &Place, run: &str) -> Vec<String> {
    ["samples.csv", "summary.csv", "preparation.json", "config.toml"]
        .map(|name| place.read(&format!("{run}/{name}")))
        .to_vec()
}

#[test]
fn shards_of_groups_join_to_the_same_bytes() {
    let place = place();
    place.ok(&["run", "l.toml", "--quiet", "--out", "whole"]);
    for shard in ["2/4", "4/4", "1/4", "3/4"] {
        place.ok(&["run", "l.toml", "--quiet", "--out", "cut", "--shard", shard]);
    }
    place.ok(&["merge", "cut"]);
    assert_eq!(bytes(&place, "cut"), bytes(&place, "whole"));
    let ended = place.ok(&["verify", "cut", "--draws", "40"]);
    assert!(ended.stdout.contains("every bit the same"), "{}", ended.stdout);
    // More draws, of all groups.
    place.ok(&["run", "l.toml", "--quiet", "--out", "cut", "--more", "30"]);
    place.ok(&["run", "l.toml", "--quiet", "--out", "longer", "--set", "sampler.B=90"]);
    assert_eq!(bytes(&place, "cut"), bytes(&place, "longer"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_of_groups_goes_on() {
    let place = place();
    let args =
        ["run", "m.toml", "--set", "sampler.B=40000", "--quiet", "--keep-every", "0.02", "--threads", "1"];
    place.ok(&[&args[..], &["--out", "whole"]].concat());
    let mut interrupted = 0;
    for round in 0..3 {
        let out = format!("cut{round}");
        let args = [&args[..], &["--out", &out, "--resume"]].concat();
        let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // There is a part of it, in one group or another.
        let parts = || {
            place.exists(&format!("{out}/.npl-chunks"))
                && place.list_all(&format!("{out}/.npl-chunks")).len() > 1 + round
        };
        wait_until(Duration::from_secs(20), || parts() || child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        let ended = Ended::of(child.wait_with_output().unwrap(), Duration::ZERO);
        interrupted += usize::from(ended.code.is_none());
        place.ok(&args);
        assert_eq!(bytes(&place, &out), bytes(&place, "whole"), "{round}");
    }
    println!("{interrupted} of 3 runs were interrupted");
}

#[test]
fn levels_survive_in_every_format() {
    let place = place();
    place.ok(&["run", "m.toml", "--quiet", "--out", "csv", "--set", "sampler.B=20"]);
    let plain = place.read("csv/samples.csv");
    let header = "repeat__,draw__,objective__,restart__,iterations__,status__,group__,";
    assert!(plain.starts_with(header), "{plain}");
    let summary = place.read("csv/summary.csv");
    for file in ["samples.csv.gz", "d.npy"] {
        let set = format!("output.samples={file}");
        place.ok(&["run", "m.toml", "--quiet", "--out", file, "--set", "sampler.B=20", "--set", &set]);
        assert_eq!(place.ok(&["samples", file]).stdout, plain, "{file}");
        assert_eq!(place.read(&format!("{file}/summary.csv")), summary, "{file}");
    }
    let names: serde_json::Value = serde_json::from_str(&place.read("d.npy/d.columns.json")).unwrap();
    assert_eq!(names["groups"], serde_json::json!(ALL));
    assert_eq!(names["columns"][6], "group__");
    let lines = place
        .ok(&["samples", "csv", "--format", "ndjson", "--columns", "group__", "--columns", "theta"])
        .stdout;
    let line: serde_json::Value = serde_json::from_str(lines.lines().nth(20).unwrap()).unwrap();
    assert_eq!(line["group__"], "north, far");
    let second = place.ok(&["samples", "csv", "--group", "south", "--draws", "3"]).stdout;
    assert_eq!(second.lines().count(), 2);
    assert!(second.lines().nth(1).unwrap().starts_with("1,3,"), "{second}");
}

#[test]
fn report_and_summary_have_a_line_for_each_group() {
    let place = place();
    let told = place.ok(&["run", "l.toml", "--json", "--out", "l"]).stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["by"], "region");
    assert_eq!(told["groups"].as_array().unwrap().len(), 3);
    let report = table(&place.read("l/report.csv"));
    let which: Vec<[&str; 2]> = report[1..].iter().map(|row| [row[0].as_str(), row[1].as_str()]).collect();
    let expected = ALL.iter().flat_map(|group| [[*group, "1"], [*group, "2"]]).collect::<Vec<_>>();
    assert_eq!(which, expected);
    // The metric of all is that of the rows of all groups.
    let j = report[0].iter().position(|title| title == "mse").unwrap();
    let rows: Vec<(f64, f64)> = report[1..].iter().map(|row| (number(&row[5]), number(&row[j]))).collect();
    let total: f64 = rows.iter().map(|(n, _)| n).sum();
    let pooled = rows.iter().map(|(n, mse)| n * mse).sum::<f64>() / total;
    let found = told["metrics"]["mse"]["mean"].as_f64().unwrap();
    assert!((found - pooled).abs() < 1e-12 * pooled, "{found}, not {pooled}");
    // All groups at once say what each says by itself.
    let all = table(&place.ok(&["summary", "l", "--format", "csv"]).stdout);
    for group in ALL {
        let one = table(&place.ok(&["summary", "l", "--format", "csv", "--group", group]).stdout);
        let own: Vec<Vec<String>> =
            all[1..].iter().filter(|row| row[0] == group).map(|row| row[1..].to_vec()).collect();
        assert_eq!(own, one[1..], "{group}");
    }
    let shown = place.ok(&["summary", "l", "--contrast", "east"]).stdout;
    assert!(shown.contains("--units data"), "units are those of each group: {shown}");
    place.ok(&["table", "l"]);
    place.ok(&["check", "l.toml"]);
    place.ok(&["explain", "l", "--draw", "3", "--group", "south"]);
    place.ok(&["export", "l.toml", "--out", "x", "--group", "south"]);
}

/// New rows are those of their groups: what a run of one group alone says of its rows.
#[test]
fn new_rows_are_predicted_by_their_groups() {
    let place = place();
    place.ok(&["run", "l.toml", "--quiet", "--out", "l"]);
    let new = rows(&ALL).lines().take(31).map(|line| format!("{line}\n")).collect::<String>();
    place.write("new.csv", &new);
    let all = table(&place.ok(&["predict", "l", "new.csv", "--keep", "region", "--draws"]).stdout);
    assert_eq!(all.len(), 31);
    for group in ALL {
        let file = format!("{}.csv", &group[..4]);
        place.write(
            &file,
            rows(&[group]).lines().take(11).map(|line| format!("{line}\n")).collect::<String>(),
        );
        let own = table(
            &place.ok(&["predict", "l", &file, "--keep", "region", "--draws", "--group", group]).stdout,
        );
        let of_all: Vec<&[String]> = all.iter().filter(|row| row[1] == group).map(|row| &row[1..]).collect();
        let of_own: Vec<&[String]> = own[1..].iter().map(|row| &row[1..]).collect();
        assert_eq!(of_all, of_own, "{group}");
    }
    place.ok(&["predict", "l", "new.csv"]);
    for (text, says) in [
        (
            "region,x,c\nsouht,1,u\n",
            "new.csv:2: column \"region\" (1): \"souht\" is a group that the run does not have; did you mean \"south\"?",
        ),
        ("region,x,c\n,1,u\n", "new.csv:2: column \"region\" (1): \"\" is"),
        ("x,c\n1,u\n", "it says which group a row belongs to, and --group NAME"),
        ("region,x,c\nsouth,1,w\n", "new.csv:2: column \"c\" (3): \"w\" is a level"),
    ] {
        place.write("new.csv", text);
        let why = refused(&place, &["predict", "l", "new.csv"]);
        assert!(why.contains(says), "{why}");
    }
    place.write("new.csv", "x,c\n1,u\n");
    place.ok(&["predict", "l", "new.csv", "--group", "south"]);
}

/// By an expression: new rows get their group by it, too.
#[test]
fn groups_may_be_made_by_an_expression() {
    let place = place();
    let derived = LINEAR
        .replace("by = \"region\"", "by = \"high\"")
        .replace("split", "columns = [\"x\", \"c\"]\nderive = { high = \"x > 0\" }\nsplit");
    place.write("e.toml", derived);
    place.ok(&["run", "e.toml", "--quiet", "--out", "e"]);
    let groups = table(&place.read("e/summary.csv"));
    assert_eq!((groups[1][0].as_str(), groups.last().unwrap()[0].as_str()), ("0", "1"));
    place.write("new.csv", "x,c\n-1,u\n1,v\n");
    let both = table(&place.ok(&["predict", "e", "new.csv"]).stdout);
    for (row, group) in [(1, "0"), (2, "1")] {
        let own = table(&place.ok(&["predict", "e", "new.csv", "--group", group]).stdout);
        assert_eq!(both[row][1..3], own[row][1..3], "{group}");
    }
}

#[test]
fn groups_are_prepared_within_or_overall() {
    let place = place();
    let fixed = LINEAR.replace("split = 0.25\n", "").replace("repeats = 2\n", "");
    place.write("w.toml", &fixed);
    place.write("o.toml", fixed.replace("by =", "by_prepare = \"overall\"\nby ="));
    for name in ["w", "o"] {
        place.ok(&["run", &format!("{name}.toml"), "--quiet", "--out", name]);
    }
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&place.read(&format!("{name}/preparation.json"))).unwrap()
    };
    let (within, overall) = (read("w"), read("o"));
    assert_eq!(within["preparations"].as_array().unwrap().len(), 3);
    assert_eq!(overall["preparations"].as_array().unwrap().len(), 1);
    let moments = |group: &[&str]| {
        let x: Vec<f64> = table(&rows(group))[1..].iter().map(|row| number(&row[1])).collect();
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        (mean, (x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
    };
    let of = |preparation: &serde_json::Value| {
        let column = &preparation["rounds"][0][0];
        (column["mean"].as_f64().unwrap(), column["sd"].as_f64().unwrap())
    };
    let close = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12;
    for (g, group) in ALL.iter().enumerate() {
        assert!(close(of(&within["preparations"][g]), moments(&[group])), "{group}");
    }
    assert!(close(of(&overall["preparations"][0]), moments(&ALL)));
    // Coefficients per unit of the data do not know how columns were prepared, but for the penalty.
    let shown = place.ok(&["summary", "o", "--contrast", "east"]).stdout;
    assert!(!shown.contains("--units data"), "{shown}");
    place.ok(&["predict", "o", "d.csv"]);
    place.ok(&["verify", "o"]);
}

#[test]
fn what_cannot_be_grouped_is_refused_with_its_line() {
    let place = place();
    let with = |from: &str, to: &str| {
        place.write("x.toml", LINEAR.replace(from, to));
        refused(&place, &["run", "x.toml", "--out", "x"])
    };
    for (from, to, says) in [
        ("by = \"region\"", "by = \"regoin\"\ncolumns = [\"x\"]", "did you mean \"region\"?"),
        ("by = \"region\"", "by = \"y\"\ncolumns = [\"x\"]", "the target and `data.by` are the same column"),
        (
            "split = 0.25",
            "columns = [\"x\", \"region\"]\nsplit = 0.25",
            "`data.by`, \"region\", is among `data.columns`",
        ),
        ("by = \"region\"", "by = \"region\"\nweight = \"x\"", "in group \""),
        ("by = \"region\"", "by = \"region\"\ncluster = \"c\"", "lies in two groups of `data.by`"),
        (
            "by = \"region\"",
            "by_prepare = \"overall\"",
            "x.toml:7:14: `data.by_prepare` has no use without `data.by`",
        ),
        (
            "by = \"region\"",
            "by = \"region\"\nby_prepare = \"overall\"",
            "x.toml:8:14: `data.by_prepare = \"overall\"` takes means",
        ),
        ("by = \"region\"", "by = \"region\"\nby_prepare = \"both\"", "x.toml:8:14:"),
        (
            "repeats = 2\n",
            "[path]\nparameter = \"seed\"\nvalues = [1, 2]\n",
            "[path] and `data.by` exclude each other",
        ),
    ] {
        let why = with(from, to);
        assert!(why.contains(says) && why.contains("x.toml:"), "{to}: {why}");
    }
    assert!(!place.exists("x"), "nothing is written");
    let ended = place.npl(&["coverage", "m.toml", "--datasets", "2"]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("`data.filter` chooses one group"),
        "{}",
        ended.stderr
    );
}

/// A group whose rows are no data for the model is named, and so is one that has another column.
#[test]
fn a_group_that_has_no_minimum_is_named() {
    let place = place();
    let logistic = "name = \"x\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\nby = \"g\"\n[model.logistic]\npenalty = \"none\"\n\
                    [sampler]\nB = 10\n";
    place.write("x.toml", logistic);
    let line = |i: usize, y: usize| format!("{},{},{y}\n", ["a", "b"][i % 2], (i * 7) % 11);
    let sound = (0..40).map(|i| line(i, (i / 2 + i / 7) % 2)).collect::<String>();
    place.write("d.csv", format!("g,x,y\n{sound}"));
    place.ok(&["run", "x.toml", "--quiet", "--out", "fine"]);
    // Separated in b alone.
    let apart = (0..40).map(|i| {
        if i % 2 == 1 { line(i, usize::from((i * 7) % 11 > 5)) } else { line(i, (i / 2 + i / 7) % 2) }
    });
    place.write("d.csv", format!("g,x,y\n{}", apart.collect::<String>()));
    let why = refused(&place, &["run", "x.toml", "--out", "x"]);
    assert!(why.contains("(group \"b\")"), "{why}");
    // Constant in a alone, and to be standardised.
    let flat = (0..40)
        .map(|i| if i % 2 == 0 { format!("a,3,{}\n", (i / 2) % 2) } else { line(i, (i / 2 + i / 7) % 2) });
    place.write("d.csv", format!("g,x,y\n{}", flat.collect::<String>()));
    let why = refused(&place, &["run", "x.toml", "--out", "x", "--set", "data.standardise=numeric"]);
    assert!(why.contains("column \"x\" has the same value") && why.contains("in group \"a\""), "{why}");
    // A level that one group has and the other has not.
    let levels = (0..60).map(|i| {
        let (g, c) = (
            ["a", "b"][i % 2],
            if i % 2 == 0 { ["u", "v"][(i / 2) % 2] } else { ["u", "v", "w"][(i / 2) % 3] },
        );
        format!("{g},{c},{}\n", (i / 3 + i / 7) % 2)
    });
    place.write("d.csv", format!("g,c,y\n{}", levels.collect::<String>()));
    let set = ["--set", "data.categorical=[\"c\"]", "--set", "model.logistic.penalty=ridge"];
    let why = refused(&place, &[&["run", "x.toml", "--out", "x"][..], &set].concat());
    assert!(why.contains("group \"a\" has no `beta.c_w`, which group \"b\" has"), "{why}");
    assert!(why.contains("x.toml:6:6"), "{why}");
    place
        .ok(&[&["run", "x.toml", "--out", "x", "--quiet", "--set", "data.by_prepare=overall"][..], &set]
            .concat());
}

#[test]
fn rows_without_a_group_follow_the_policy() {
    let place = place();
    let holey = rows(&ALL).replacen("\"south\"", "?", 2);
    place.write("d.csv", holey);
    let sets = ["--set", "data.missing_values=[\"?\"]"];
    let why = refused(&place, &[&["run", "m.toml", "--out", "x"][..], &sets].concat());
    assert!(why.contains("row 3 of the data has no value in column \"region\", its `data.by`"), "{why}");
    let ended =
        place.ok(&[&["run", "m.toml", "--out", "x", "--set", "data.missing=drop"][..], &sets].concat());
    assert!(ended.stderr.contains("2 of 150 rows have missing values"), "{}", ended.stderr);
    // Rows are numbered as in the file, whatever group they are of.
    let all = rows(&ALL);
    let seventh = all.lines().nth(7).unwrap();
    let cells: Vec<&str> = seventh.split(',').collect();
    place.write("d.csv", all.replace(seventh, &format!("{},?,{},{}", cells[0], cells[2], cells[3])));
    let why = refused(&place, &[&["run", "l.toml", "--out", "y"][..], &sets].concat());
    assert!(why.contains("row 7 of the data has no value in column \"x\""), "{why}");
    // Too many.
    place.write("d.csv", format!("region,y\n{}", (0..1001).map(|i| format!("{i},1\n")).collect::<String>()));
    let why = refused(&place, &["run", "m.toml", "--out", "z"]);
    assert!(why.contains("1001 different values, and at most 1000 groups"), "{why}");
}

#[test]
fn groups_are_named_with_hints() {
    let place = place();
    place.ok(&["run", "m.toml", "--quiet", "--out", "m", "--set", "sampler.B=20"]);
    for args in [
        &["summary", "m", "--group", "suoth"][..],
        &["summary", "m", "--contrast", "suoth"],
        &["samples", "m", "--group", "suoth"],
        &["explain", "m", "--draw", "1", "--group", "suoth"],
    ] {
        let why = refused(&place, args);
        assert!(why.contains("did you mean \"south\"?"), "{args:?}: {why}");
    }
    let why = refused(&place, &["explain", "m", "--draw", "1"]);
    assert!(why.contains("name one with --group; they are east, north, far, south"), "{why}");
    place.write("one.toml", MEAN.replace("by = \"region\"\n", ""));
    place.ok(&["run", "one.toml", "--quiet", "--out", "one", "--set", "sampler.B=20"]);
    for args in [&["summary", "one", "--group", "a"][..], &["summary", "one", "--pairwise"]] {
        let why = refused(&place, args);
        assert!(why.contains("the run has no groups"), "{args:?}: {why}");
    }
}

#[cfg(feature = "plot")]
#[test]
fn groups_are_shown_side_by_side() {
    let place = place();
    place.ok(&["run", "l.toml", "--quiet", "--out", "l"]);
    place.ok(&["plot", "l", "--kind", "forest", "--out", "all.svg"]);
    let picture = place.read("all.svg");
    assert!(ALL.iter().all(|group| picture.contains(group)), "a legend of groups");
    place.ok(&[
        "plot",
        "l",
        "--kind",
        "correlation",
        "--group",
        "south",
        "--repeat",
        "2",
        "--out",
        "one.svg",
    ]);
    let why = refused(&place, &["plot", "l", "--kind", "correlation", "--out", "x.svg"]);
    assert!(why.contains("shows one group; name it with --group"), "{why}");
    place.ok(&["report", "l", "--out", "l.html"]);
    let page = place.read("l.html");
    assert!(ALL.iter().all(|group| page.contains(group)) && page.contains("each group of region by itself"));
}

/// Every method knows groups, on one thread and on two.
#[test]
fn every_method_makes_draws_of_groups() {
    let place = place();
    let rows = (0..90).map(|i| format!("{},{},{}\n", ["a", "b"][i % 2], (i * 7) % 11, (i / 2 + i / 7) % 2));
    place.write("d.csv", format!("g,x,y\n{}", rows.collect::<String>()));
    place.write(
        "x.toml",
        "name = \"x\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\nby = \"g\"\nstandardise = \"numeric\"\nsplit = 0.2\n\
         [model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 24\n[evaluate]\nmetrics = [\"lppd\"]\n",
    );
    for method in ["npl", "mdp-npl", "nuts", "advi", "importance"] {
        let (set, out) = (format!("method={method}"), format!("{method}-2"));
        let short = ["nuts.chains=2", "nuts.warmup=30", "advi.max_iterations=40", "advi.eta=0.1"];
        let proposal =
            "importance.proposal={ beta = { normal = [0.0, 1.0] }, intercept = { normal = [0.0, 1.0] } }";
        let own = match method {
            "mdp-npl" => &["--set", "prior.alpha=5"][..],
            "importance" => &["--set", proposal],
            _ => &[],
        };
        let sets = short.iter().flat_map(|set| ["--set", set]).chain(["--set", &set, "--quiet"]);
        let sets = sets.chain(own.iter().copied());
        let args: Vec<&str> = ["run", "x.toml"].into_iter().chain(sets).collect();
        place.ok(&[&args[..], &["--threads", "1", "--out", method]].concat());
        place.ok(&[&args[..], &["--threads", "2", "--out", &out]].concat());
        assert_eq!(bytes(&place, method), bytes(&place, &out), "{method}");
        let report = table(&place.read(&format!("{method}/report.csv")));
        assert!(
            report.len() == 3 && report[1..].iter().all(|row| !row[7].is_empty()),
            "{method}: {report:?}"
        );
        place.ok(&["summary", method]);
        place.ok(&["predict", method, "d.csv"]);
    }
    let why = refused(&place, &["summary", "importance", "--pairwise"]);
    assert!(why.contains("count by weights of their own"), "{why}");
}

/// The influences of a group are those of an experiment on its rows alone, and so are its corrected intervals, in the units of the file.
#[test]
fn corrected_intervals_of_a_group_are_its_own() {
    let place = place();
    let keep = ["--set", "output.influence=true", "--quiet"];
    place.ok(&[&["run", "l.toml", "--out", "all"], &keep[..]].concat());
    place.ok(&[&["run", "l.toml", "--out", "one", "--threads", "1", "--shard", "1/2"], &keep[..]].concat());
    place.ok(&[&["run", "l.toml", "--out", "two", "--threads", "1", "--shard", "2/2"], &keep[..]].concat());
    place.ok(&["merge", "one", "two", "--out", "joined", "--quiet"]);
    let text = place.read("all/influence.csv");
    assert_eq!(place.read("joined/influence.csv"), text);
    let rows = table(&text);
    assert_eq!(rows[0], ["group__", "beta.x", "beta.c_v", "intercept"]);
    let asked = ["--interval", "bca", "--units", "data", "--repeat", "1", "--format", "csv"];
    let all = table(&place.ok(&[&["summary", "all"], &asked[..]].concat()).stdout);
    let report = table(&place.read("all/report.csv"));
    let alone = LINEAR.replace("by = \"region\"\n", "").replace("split", "columns = [\"x\", \"c\"]\nsplit");
    let alone = alone.replace("repeats = 2\n", "");
    for group in ALL {
        let of_group = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
            rows.iter().filter(|row| row[0] == group).map(|row| row[1..].to_vec()).collect()
        };
        let seed = report.iter().find(|row| row[0] == group && row[1] == "1").unwrap()[2].clone();
        place
            .write("alone.toml", alone.replace("split", &format!("filter = \"region == '{group}'\"\nsplit")));
        let seed = format!("seed={seed}");
        place.ok(&[&["run", "alone.toml", "--out", "alone", "--force", "--set", &seed], &keep[..]].concat());
        let own = table(&place.read("alone/influence.csv"));
        assert_eq!(own[1..], of_group(&rows[1..]), "{group}");
        let own = table(&place.ok(&[&["summary", "alone"], &asked[..]].concat()).stdout);
        assert_eq!(own[1..], of_group(&all), "{group}");
        let asked = [&["summary", "all", "--group", group], &asked[..]].concat();
        assert_eq!(table(&place.ok(&asked).stdout)[1..], own[1..], "{group}");
    }
    let refused = refused(&place, &["summary", "all", "--interval", "bca", "--contrast", "east"]);
    assert!(refused.contains("--group"), "{refused}");
}

/// α = Var_{F_π}(y)/s² − 1, with the variance of the covariates in the rows of the group; and its prior of θ is that of the group alone.
#[test]
fn alpha_is_chosen_for_every_group() {
    let place = place();
    let prior = "[prior]\nalpha = 1.0\nT = 200\nbase = { response = { normal = [0.0, 2.0], covariates = \"empirical\" } }\n";
    let text = LINEAR
        .replace("repeats = 2\n", "")
        .replace("split = 0.25\n", "")
        .replace("standardise = \"numeric\"\n", "");
    place.write("a.toml", text.replace("[sampler]", &format!("{prior}[sampler]")));
    let asked = ["--format", "csv", "--set", "prior.T=2000000"];
    let found = table(&place.ok(&[&["alpha", "a.toml", "--sd", "0.3"], &asked[..]].concat()).stdout);
    assert_eq!(found[0], ["group", "column", "sd of F_pi", "wanted sd of the mean", "alpha"]);
    let data = table(&place.read("d.csv"));
    for group in ALL {
        let x: Vec<f64> = data.iter().filter(|row| row[0] == group).map(|row| number(&row[1])).collect();
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        let row = found.iter().find(|row| row[0] == group && row[1] == "x").unwrap();
        let expected = variance / 0.09 - 1.0;
        assert!((number(&row[4]) / expected - 1.0).abs() < 0.02, "{row:?}, not {expected}");
    }
    let asked = ["--values", "2,20", "--draws", "50", "--format", "csv"];
    let found = table(&place.ok(&[&["alpha", "a.toml"], &asked[..]].concat()).stdout);
    assert_eq!(found.len(), 1 + 3 * 2 * 3, "groups, values, parameters");
    let filter = ["--set", "data.filter=region == 'north, far'"];
    let alone = table(&place.ok(&[&["alpha", "a.toml"], &asked[..], &filter].concat()).stdout);
    let own: Vec<_> = found.iter().filter(|row| row[0] == "north, far").cloned().collect();
    assert_eq!(alone[1..], own);
    assert!(own.iter().flat_map(|row| &row[2..]).all(|cell| number(cell).is_finite()), "{own:?}");
}

/// The test rows of all groups are one set of rows, by hand; those of one are what runs of that group alone are compared by.
#[test]
fn runs_of_groups_are_compared_by_their_rows() {
    let place = place();
    let likelihood = LINEAR.replace("penalty = \"ridge\"", "penalty = \"ridge\"\nsigma = \"estimated\"");
    let text =
        likelihood.replace("repeats = 2\n", "").replace("[sampler]", "[output]\npointwise = true\n[sampler]");
    place.write("a.toml", text);
    let other = ["--set", "data.columns=[\"c\"]"];
    place.ok(&["run", "a.toml", "--quiet", "--out", "a"]);
    place.ok(&[&["run", "a.toml", "--quiet", "--out", "b"], &other[..]].concat());
    let compared = |runs: [&str; 2], more: &[&str]| -> Vec<Vec<String>> {
        table(&place.ok(&[&["compare", runs[0], runs[1], "--format", "csv"], more].concat()).stdout)
    };
    let densities = |run: &str| -> Vec<f64> {
        table(&place.read(&format!("{run}/pointwise.csv")))[1..].iter().map(|row| number(&row[3])).collect()
    };
    let d: Vec<f64> = densities("a").iter().zip(densities("b")).map(|(a, b)| a - b).collect();
    let (n, mean) = (d.len() as f64, d.iter().sum::<f64>() / d.len() as f64);
    let se = (d.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    let found = compared(["a", "b"], &[]);
    let row = found.iter().find(|row| row[0] == "b" && row[1] == "LPPD").unwrap();
    assert!(
        (number(&row[3]) - mean).abs() < 1e-12 && (number(&row[4]) - se).abs() < 1e-12,
        "{row:?}: {mean} {se}"
    );
    assert!(number(&row[5]) > 0.0 && number(&row[5]) < se, "{row:?}");
    let filter = ["--set", "data.filter=region == 'south'"];
    place.ok(&[&["run", "a.toml", "--quiet", "--out", "south-a"], &filter[..]].concat());
    place.ok(&[&["run", "a.toml", "--quiet", "--out", "south-b"], &filter[..], &other].concat());
    let without_name =
        |rows: Vec<Vec<String>>| rows.into_iter().map(|row| row[1..].to_vec()).collect::<Vec<_>>();
    let (one, alone) = (compared(["a", "b"], &["--group", "south"]), compared(["south-a", "south-b"], &[]));
    assert_eq!(without_name(one.clone()), without_name(alone));
    assert_ne!(without_name(one), without_name(found));
    for (args, says) in [
        (["a", "south-a", "--format", "csv"], "other groups"),
        (["a", "b", "--group", "sout"], "did you mean \"south\"?"),
        (["south-a", "south-b", "--group", "east"], "no such group"),
    ] {
        let said = refused(&place, &[&["compare"], &args[..]].concat());
        assert!(said.contains(says), "{args:?}: {said}");
    }
    // Folds of all groups: every row once, and the difference that of the pooled metrics.
    place.write(
        "f.toml",
        likelihood.replace("repeats = 2\n", "evaluate.folds = 3\n").replace("split = 0.25\n", ""),
    );
    place.ok(&["run", "f.toml", "--quiet", "--out", "f"]);
    place.ok(&[&["run", "f.toml", "--quiet", "--out", "g"], &other[..]].concat());
    let told = place.ok(&["compare", "f", "g", "--format", "csv"]).stdout;
    let told = table(&told);
    let lppd = |run: &str| number(&told.iter().find(|row| row[0] == run && row[1] == "LPPD").unwrap()[2]);
    for run in ["f", "g"] {
        let report = table(&place.read(&format!("{run}/report.csv")));
        let j = |name: &str| report[0].iter().position(|c| c == name).unwrap();
        let sums = report[1..].iter().map(|row| (number(&row[j("n_test")]), number(&row[j("lppd")])));
        let (n, sum) = sums.fold((0.0, 0.0), |(n, sum), (m, lppd)| (n + m, sum + m * lppd));
        assert!(n == 150.0 && (lppd(run) - sum / n).abs() < 1e-12, "{run}: {n} {}", sum / n);
    }
}
