//! Identical rows of a large file are counted while it is read: draws are those of the rows that differ with their numbers as weights, and
//! what cannot be counted is read as it stands.

use std::fmt::Write;

use crate::support::Place;

/// Rows are counted from so many on.
const FROM: usize = 1 << 20;

fn run(place: &Place, more: &[&str]) -> (String, serde_json::Value) {
    let args = ["run", "e.toml", "--quiet", "--out", "out", "--force", "--cache", "cache"];
    place.ok(&[&args, more].concat());
    let report = serde_json::from_str(&place.read("out/report.json")).unwrap();
    (place.read("out/samples.csv"), report)
}

/// Draws without the numbers that tell how they were found: a closed form has none.
fn draws(place: &Place, more: &[&str]) -> String {
    run(place, more).0
}

#[test]
fn rows_that_are_counted_while_they_are_read_are_rows_with_weights() {
    let place = Place::new();
    // Row k of 12 comes back with different distances; some cells are missing.
    let row = |k: usize| {
        let town = ["York", "Hull", "Leeds"][k % 3];
        let x = if k == 7 { "NA".to_owned() } else { format!("{}.25", k * k) };
        format!("{x},{town},{}", usize::from(k % 5 > 1))
    };
    let (mut text, mut counts, mut order) = ("x,town,y\n".to_owned(), [0usize; 12], Vec::new());
    for i in 0..FROM + 3000 {
        let k = (i * i + i / 7) % 12;
        counts[k] += 1;
        if counts[k] == 1 {
            order.push(k);
        }
        writeln!(text, "{}", row(k)).unwrap();
    }
    let mut weighted = "x,town,y,c\n".to_owned();
    order.iter().for_each(|&k| writeln!(weighted, "{},{}", row(k), counts[k]).unwrap());
    let experiment = "name = \"e\"\nseed = 4\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\nmissing_values = [\"NA\"]\nmissing = \"mean\"\n\
                      categorical = [\"town\"]\nstandardise = \"numeric\"\nfilter = \"town != 'Leeds' or y == 1\"\n\
                      [model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 20\n";
    place.write("d.csv", &text).write("w.csv", weighted).write("e.toml", experiment);
    place.ok(&["convert", "d.csv"]);
    let (expected, report) =
        run(&place, &["--set", "data.train=w.csv", "--set", "data.weight=c", "--set", "data.collapse=false"]);
    for way in [
        &["--threads", "1"][..],
        &["--threads", "2"],
        &["--threads", "2", "--set", "data.mapped=true"],
        &["--set", "data.train=d.nplc"],
    ] {
        let (draws, counted) = run(&place, way);
        assert_eq!(draws, expected, "{way:?}");
        let data = &counted["data"];
        assert_eq!(data["distinct"], report["data"]["rows"], "{data}");
        let kept = |k: &&usize| **k % 3 != 2 || **k % 5 > 1;
        let rows: usize = order.iter().filter(kept).map(|&k| counts[k]).sum();
        assert_eq!((&data["rows"], &data["cells_imputed"]), (&rows.into(), &counts[7].into()), "{data}");
    }
    // A row that is refused has the number that it has in the file.
    let first = (0..).find(|i: &usize| (i * i + i / 7) % 12 == 7).unwrap() + 1;
    let ended = place.npl(&["check", "e.toml", "--set", "data.missing=error", "--set", "data.filter=y >= 0"]);
    let says = format!("row {first} of the data has no value in column \"x\"");
    assert!(ended.code == Some(2) && ended.stderr.contains(&says), "{says}: {}", ended.stderr);
}

/// Those that differ come after the others; or too many are left for a closed form; or the others are left out.
#[test]
fn rows_that_turn_out_to_differ_are_read_as_they_stand() {
    let place = Place::new();
    let file = |rows: usize, value: &dyn Fn(usize) -> usize| {
        let mut text = "v\n".to_owned();
        (0..rows).for_each(|i| writeln!(text, "{}", value(i)).unwrap());
        text
    };
    let experiment = |filter: &str| {
        format!(
            "name = \"e\"\nseed = 4\n[data]\ntrain = \"d.csv\"\n{filter}\n[model.mean]\n[sampler]\nB = 3\n"
        )
    };
    let few = FROM / 20;
    for (rows, value, filter) in [
        (FROM + FROM / 4, &(|i: usize| if i < FROM { i % 9 } else { i }) as &dyn Fn(usize) -> usize, ""),
        (FROM + 10, &|i| i % few, ""),
        (FROM + 10, &|i| if i % 15 == 0 { i } else { 2 }, "filter = \"v != 2\""),
    ] {
        place.write("d.csv", file(rows, value)).write("e.toml", experiment(filter));
        let expected = draws(&place, &["--set", "data.collapse=false"]);
        assert_eq!(draws(&place, &["--threads", "2"]), expected, "{filter}");
        assert_eq!(draws(&place, &["--threads", "1"]), expected, "{filter}");
    }
}
