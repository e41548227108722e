//! Files of which a part is used, and what is said of the part that is not.

use std::fmt::Write;
use std::time::Duration;

use crate::support::{Place, patience};

const MEAN: &str = r#"
name = "t"
seed = 1
model.mean = {}
sampler.B = 5

[data]
train = "d.csv"
"#;

fn with(more: &str) -> String {
    format!("{MEAN}{more}\n")
}

fn json(place: &Place, name: &str) -> serde_json::Value {
    serde_json::from_str(&place.read(name)).unwrap()
}

fn refused(place: &Place, says: &[&str]) {
    for command in ["check", "run"] {
        let ended = place.npl(&[command, "e.toml"]);
        assert_eq!(ended.code, Some(2), "{}{}", ended.stdout, ended.stderr);
        ended.assert_decent(command);
        says.iter().for_each(|text| assert!(ended.stderr.contains(text), "no {text:?} in {}", ended.stderr));
        assert!(ended.took < patience(Duration::from_secs(10)), "{:?}", ended.took);
    }
}

/// Text, missing values and anything else may be in columns that nobody asked for.
#[test]
fn columns_that_are_not_used_are_not_read() {
    let place = Place::new();
    let alone = "income,w\n1,1\n2,3\n4,2\n";
    let wide = "name,income,note,w\nAda,1,\"a,b\",1\nBob,2,?,3\n\u{e4},4,,2\n";
    let draws = |data: &str, more: &str| {
        place.write("d.csv", data).write("e.toml", with(more));
        place.ok(&["run", "e.toml", "--out", "out", "--force"]);
        place.read("out/samples.csv")
    };
    let expected = draws(alone, "columns = [\"income\"]\nweight = \"w\"");
    assert_eq!(draws(wide, "columns = [\"income\"]\nweight = \"w\""), expected);
    assert_eq!(draws(wide, "columns = [\"2\"]\nweight = \"4\""), expected, "by number in the file");
    let bare = wide.split_once('\n').unwrap().1;
    let unnamed = draws(bare, "header = false\ncolumns = [\"2\"]\nweight = \"4\"");
    assert_eq!(unnamed.replace("theta.x2", "theta.income"), expected, "without a header");
    let blanks = "format = \"whitespace\"\ncolumns = [\"income\"]\nweight = \"w\"";
    assert_eq!(draws("name income w\nAda 1 1\nBob 2 3\nEve 4 2\n", blanks), expected);
    place.write("d.csv", wide.replace(",?,", ",")).write("e.toml", with("columns = [\"income\"]"));
    refused(&place, &["d.csv:3: "]);
}

/// A test file needs the columns that are used, whatever its order and whatever else it has.
#[test]
fn a_test_file_is_known_by_the_names_of_the_training_data() {
    let place = Place::new();
    place.write("d.csv", "id,a,b\nx,1,2\ny,3,5\n").write("t.csv", "b,extra,a\n1,?,7\n2,?,8\n");
    place.write("e.toml", with("test = \"t.csv\"\ncolumns = [\"2\"]"));
    place.ok(&["export", "e.toml", "--draws", "1", "--out", "exported"]);
    assert_eq!(place.read("exported/test.csv").lines().skip(1).collect::<Vec<_>>(), ["7.0", "8.0"]);
    place.write("t.csv", "b,c\n1,2\n");
    refused(&place, &["t.csv: the data have no column \"a\"; they are b, c"]);
    // Without names, another width means other columns.
    place.write("d.csv", "1,1,2\n2,3,5\n").write("t.csv", "1,2\n3,4\n");
    refused(&place, &["2 cells a row, and 3 in the training data"]);
}

#[test]
fn rows_that_are_left_out_and_cells_that_are_imputed_are_said_everywhere() {
    let place = Place::new();
    place.write("d.csv", "a,b,w\n1,2,1\nNA,3,1\n4,NA,2\n5,6,0\n7,8,1\n");
    let more = "columns = [\"a\", \"b\"]\nweight = \"w\"\nmissing_values = [\"NA\"]\n";
    let dropped =
        "1 of 5 rows have weight 0 and are left out; 2 of 5 rows have missing values and are left out";
    let imputed = "1 of 5 rows have weight 0 and are left out; 2 missing cells get the mean of their column";
    for (policy, line, rows, cells) in [("drop", dropped, 2, 0), ("mean", imputed, 0, 2)] {
        place.write("e.toml", with(&format!("{more}missing = \"{policy}\"")));
        let ended = place.ok(&["run", "e.toml", "--out", "out", "--force"]);
        assert_eq!(ended.stderr, format!("{line}\n"));
        for file in ["out/report.json", "out/manifest.json"] {
            let data = &json(&place, file)["data"];
            assert_eq!(data["rows"], 5, "{file}: {data}");
            assert_eq!(data["rows_of_weight_0"], 1, "{file}: {data}");
            assert_eq!((&data["rows_dropped"], &data["cells_imputed"]), (&rows.into(), &cells.into()));
            assert_eq!(data["missing"], serde_json::json!({ "a": 1, "b": 1 }));
        }
    }
    let said = place.ok(&["check", "e.toml"]).stdout;
    assert!(said.contains("# weight 0    1 row of 5 left out\n"), "{said}");
    let quiet = place.ok(&["run", "e.toml", "--out", "out", "--quiet", "--force"]);
    assert_eq!(quiet.stderr, "");
}

/// Rows of the historical file count as much as others.
#[test]
fn rows_of_a_base_measure_do_not_vanish_quietly() {
    let place = Place::new();
    place.write("d.csv", "a\n1\n2\n").write("h.csv", "a,note\n1,x\nNA,y\n3,z\n");
    let base = "[prior]\nalpha = 1.0\nbase = { empirical = { file = \"h.csv\" } }";
    place.write("e.toml", with(&format!("missing_values = [\"NA\"]\nmissing = \"drop\"\n{base}")));
    let ended = place.ok(&["run", "e.toml", "--out", "out"]);
    assert_eq!(ended.stderr, "base measure: 1 of 3 rows have missing values and are left out\n");
    assert_eq!(json(&place, "out/report.json")["data"]["base"]["rows_dropped"], 1);
}

/// Runs of earlier versions say nothing of their data.
#[test]
fn reports_without_notes_are_read() {
    let place = Place::new();
    place.write("d.csv", "a\n1\n2\n").write("e.toml", MEAN).ok(&["run", "e.toml", "--out", "out"]);
    place.unseal("out");
    for file in ["out/report.json", "out/manifest.json"] {
        let mut value = json(&place, file);
        assert!(value.as_object_mut().unwrap().remove("data").is_some(), "{file}");
        place.write(file, value.to_string());
    }
    place.ok(&["summary", "out"]);
    place.ok(&["table", "out"]);
}

#[test]
fn what_would_vanish_in_silence_is_refused() {
    let place = Place::new();
    let arff = "@attribute a numeric\n@attribute g {u,v}\n@data\n1,u\n";
    let cases: [(&str, &str, String, &[&str]); 9] = [
        (
            "categorical = [\"g\"]",
            "d.csv",
            "x,g\n1,a\n2,\"b\n3,a\n4,b\n5,a\n".into(),
            &["d.csv:3: a quote opens"],
        ),
        (
            "categorical = [\"g\"]",
            "d.csv",
            "x,g\n1,\"b\n2,a\n3,\"b\n".into(),
            &["d.csv:4: text follows", "line 2"],
        ),
        (
            "train = \"d.arff\"",
            "d.arff",
            format!("{arff}2,w\n"),
            &["d.arff:5: column \"g\" (2): \"w\"", "declares"],
        ),
        ("train = \"d.arff\"", "d.arff", format!("{arff}2,?\n"), &["d.arff: row 2", "\"g\"", "data.missing"]),
        (
            "names = [\"q\", \"q\"]",
            "d.csv",
            "1,2\n3,4\n".into(),
            &["e.toml:9:15", "\"q\" is that of column 1 too"],
        ),
        ("names = [\"q\", \"\"]", "d.csv", "1,2\n3,4\n".into(), &["e.toml:9:15", "column 2 has no name"]),
        (
            "missing_values = [\"\"]\nmissing = \"mean\"",
            "d.csv",
            "a,b\n1,\n2,\n".into(),
            &["d.csv", "column \"b\" has no value in any training row", "leave it out of `data.columns`"],
        ),
        (
            "standardise = \"all\"\nconstant = \"drop\"",
            "d.csv",
            "a,b\n1,2\n1,2\n".into(),
            &["d.csv", "no column is left", "same value"],
        ),
        (
            "categorical = [\"a\"]",
            "d.csv",
            "a\nx\nx\n".into(),
            &["d.csv", "no column is left", "single level"],
        ),
    ];
    for (more, file, data, says) in cases {
        let text = with(more);
        let text = if more.starts_with("train") { text.replace("train = \"d.csv\"\n", "") } else { text };
        place.write("e.toml", text).write(file, data);
        refused(&place, says);
    }
}

#[test]
fn bytes_of_idx_files_that_are_no_data_are_refused() {
    let place = Place::new();
    place.write("e.toml", MEAN.replace("d.csv", "d.idx"));
    let header = [0, 0, 13, 1, 0, 0, 0, 2];
    let bytes = |last: f32| [&header[..], &1f32.to_be_bytes(), &last.to_be_bytes()].concat();
    place.write("d.idx", bytes(2.0)).ok(&["check", "e.toml"]);
    place.write("d.idx", [&bytes(2.0)[..], b"more"].concat());
    refused(&place, &["d.idx: 4 bytes follow the 8 bytes of data"]);
    place.write("d.idx", bytes(f32::NEG_INFINITY));
    refused(&place, &["d.idx: row 2, column \"y\": -inf at byte 12"]);
}

/// 1.3 MB of text must not ask for 80 GB.
#[test]
fn a_column_of_many_levels_is_refused_before_its_dummies_are_made() {
    let place = Place::new();
    let mut data = "x,town\n".to_owned();
    (0..100_000).for_each(|i| writeln!(data, "{},t{i}", i % 7).unwrap());
    place.write("d.csv", data).write("e.toml", with("categorical = [\"town\"]"));
    refused(
        &place,
        &[
            "d.csv: column \"town\" has 100000 levels",
            "100000 rows x 100000 columns are 10000000000 cells, which need 160.0 GB",
            "`data.cluster`",
        ],
    );
    place.write("e.toml", with("columns = [\"x\"]\ncluster = \"town\"")).ok(&["check", "e.toml"]);
}
