//! Column files and mapped rows: draws are those of the text, in memory or not, and damage is refused.

use crate::support::{Place, assert_decent};

/// Numbers, texts and missing cells, and a response that depends on them.
fn table(rows: usize) -> String {
    let mut text = "age,town,x,z,y\n".to_owned();
    let mut state = 7u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / 9_007_199_254_740_992.0
    };
    for i in 0..rows {
        let (age, x, z) = (20 + i * 7 % 50, uniform() * 4.0 - 2.0, uniform());
        let age = if i % 97 == 3 { "NA".to_owned() } else { age.to_string() };
        let town = ["York", "Hull", "Leeds"][(uniform() * 3.0) as usize];
        let y = if uniform() < 1.0 / (1.0 + (0.4 - x).exp()) { "yes" } else { "no" };
        text += &format!("{age},{town},{x:.5},{z},{y}\n");
    }
    text
}

const EXPERIMENT: &str = "name = \"e\"\nseed = 4\n[data]\ntrain = \"FILE\"\ntarget = \"y\"\nclasses = { yes = 1, no = 0 }\n\
                          missing_values = [\"NA\"]\nmissing = \"mean\"\ncategorical = [\"town\"]\nstandardise = \"numeric\"\n\
                          [model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 12\n";

fn draws(place: &Place, args: &[&str]) -> String {
    place.ok(&[&["run", "e.toml", "--quiet", "--out", "out", "--force", "--cache", "cache"], args].concat());
    place.read("out/samples.csv")
}

/// Of few rows and of so many that weights are made again in every pass.
#[test]
fn draws_are_the_same_from_text_and_columns_mapped_or_not() {
    for rows in [3000, 140_000] {
        let place = Place::new();
        place.write("d.csv", table(rows)).write("e.toml", EXPERIMENT.replace("FILE", "d.csv"));
        let said = place.ok(&["convert", "d.csv"]).stdout;
        assert!(said.contains(&format!("{rows} rows x 5 columns")), "{said}");
        let expected = draws(&place, &["--threads", "2"]);
        for settings in [
            &["--set", "data.mapped=true", "--threads", "1"][..],
            &["--set", "data.mapped=true", "--threads", "3"],
            &["--set", "data.train=d.nplc", "--threads", "2"],
            &["--set", "data.train=d.nplc", "--set", "data.mapped=true", "--threads", "2"],
            &["--set", "data.train=d.nplc", "--set", "data.format=columns", "--set", "data.mapped=false"],
        ] {
            assert_eq!(draws(&place, settings), expected, "{rows} rows, {settings:?}");
        }
        assert!(place.list("cache").is_empty(), "files of rows have no names");
        place.write("plain.csv", place.read("d.csv")).ok(&["convert", "plain.csv", "--out", "again"]);
        assert_eq!(std::fs::read(place.path("again")).unwrap(), std::fs::read(place.path("d.nplc")).unwrap());
        // By its first bytes, whatever it is called.
        assert_eq!(draws(&place, &["--set", "data.train=again"]), expected);
    }
}

/// Copies are found among mapped rows as among those in memory, and rows that are split or resampled stay what they are.
#[test]
fn what_is_done_to_rows_does_not_depend_on_where_they_are() {
    let place = Place::new();
    let copies = "x,y\n".to_owned() + &"1.5,1\n0.25,0\n-1,1\n2,0\n-0.5,0\n".repeat(4000);
    place.write("d.csv", copies);
    let text = "name = \"e\"\nseed = 4\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\n[model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 6\n";
    place.write("e.toml", text);
    for more in [
        "data.collapse=true",
        "data.split.test=0.25",
        "data.resample=500",
        "data.rows=700",
        "data.filter=x > 0",
    ] {
        let [memory, mapped] = ["data.mapped=false", "data.mapped=true"].map(|mapped| {
            let draws = draws(&place, &["--set", more, "--set", mapped]);
            let report: serde_json::Value = serde_json::from_str(&place.read("out/report.json")).unwrap();
            (draws, report["data"]["distinct"].clone(), report["metrics"]["lppd"].clone())
        });
        assert_eq!(memory, mapped, "{more}");
    }
    let distinct = |mapped: &str| {
        let said = place.ok(&["check", "e.toml", "--set", mapped, "--cache", "cache"]).stdout;
        said.lines().find(|line| line.contains("that differ")).expect("copies are one").to_owned()
    };
    assert_eq!(distinct("data.mapped=true"), distinct("data.mapped=false"));
}

#[test]
fn what_cannot_be_read_or_written_is_refused() {
    let place = Place::new();
    place.write("d.csv", table(200)).write("e.toml", EXPERIMENT.replace("FILE", "d.nplc"));
    place.ok(&["convert", "d.csv"]);
    let sound = std::fs::read(place.path("d.nplc")).unwrap();
    let refused = |args: &[&str], says: &[&str]| {
        let ended = place.npl(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        says.iter().for_each(|text| assert!(ended.stderr.contains(text), "no {text:?} in {}", ended.stderr));
        assert_decent("columns", &ended.stderr);
    };
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 4;
    for (bytes, says) in [
        (&flipped[..], "by its checksum"),
        (&sound[..sound.len() - 9], "cut short"),
        (&sound[..60], "cut short"),
    ] {
        place.write("d.nplc", bytes);
        refused(&["run", "e.toml"], &["d.nplc: ", says]);
    }
    place.write("d.nplc", &sound);
    refused(
        &["run", "e.toml", "--set", "data.header=true", "--set", "data.delimiter=;"],
        &["`data.header`", "`data.delimiter`"],
    );
    refused(
        &["run", "e.toml", "--set", "data.train=d.csv", "--set", "data.format=columns"],
        &["not a column file", "npl convert"],
    );
    refused(
        &["run", "e.toml", "--set", "data.missing_values=[]"],
        &["d.nplc: row 4: column \"age\"", "\"NA\""],
    );
    refused(&["run", "e.toml", "--set", "data.columns=[\"agee\"]"], &["did you mean \"age\""]);
    refused(&["convert", "d.csv"], &["d.nplc exists", "--force"]);
    refused(&["convert", "d.nplc", "--out", "x"], &["is a column file already"]);
    refused(&["convert", "nowhere.csv"], &["nowhere.csv"]);
    refused(&["convert", "d.csv", "--out", "x", "--text", "agee"], &["did you mean \"age\""]);
    refused(&["convert", "d.csv", "--out", "x", "--decimal", ","], &["--delimiter"]);
    place.write("ragged.csv", "a,b\n1,2\n3\n");
    refused(&["convert", "ragged.csv"], &["ragged.csv:3: 1 cells where 2 are expected"]);
    assert!(!place.exists("ragged.nplc") && !place.exists("x"));
    place.write("file", "x");
    refused(
        &["run", "e.toml", "--set", "data.mapped=true", "--cache", "file/in"],
        &["`data.mapped`", "--cache"],
    );
    let simulated = "name = \"s\"\n[data]\nmapped = true\nsimulate.normal = { n = 9, mean = 0.0, sd = 1.0 }\n[model.mean]\n[sampler]\nB = 2\n";
    place.write("s.toml", simulated);
    refused(&["run", "s.toml"], &["s.toml:3", "`data.mapped`"]);
}
