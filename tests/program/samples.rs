//! `npl samples`: draws of any stored format as text.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Place, cells};
use serde_json::Value;

const MIXTURE: &str = r#"
name = "g"
seed = 7
repeats = 2
data.simulate.mixture = { n = 60, pi = [0.3, 0.7], mu = [[0.0, 1.0], [3.0, 2.0]], sigma2 = [[1.0, 1.0], [1.0, 1.0]] }
model.gmm = { K = 2, variance_floor = 1e-4 }
sampler.B = 9
"#;

fn mixture() -> Place {
    let place = Place::new();
    place.write("g.toml", MIXTURE).ok(&["run", "g.toml", "--out", "csv"]);
    place
}

#[test]
fn every_format_streams_the_same_text() {
    let place = mixture();
    let text = place.read("csv/samples.csv");
    assert_eq!(place.ok(&["samples", "csv"]).stdout, text);
    let mut endings = vec!["csv.gz", "npy"];
    endings.extend(cfg!(feature = "parquet").then_some("parquet"));
    for ending in endings {
        let set = format!("output.samples=draws.{ending}");
        place.ok(&["run", "g.toml", "--out", ending, "--set", &set]);
        assert_eq!(place.ok(&["samples", ending]).stdout, text, "{ending}");
        let some = ["--columns", "mu.*.2", "--columns", "draw__"];
        let of = |run: &str| place.ok(&[&["samples", run], &some[..]].concat()).stdout;
        assert_eq!(of(ending), of("csv"), "{ending}");
    }
    assert_eq!(place.ok(&["samples", "csv", "--format", "tsv"]).stdout, text.replace(',', "\t"));
    let lines = place.ok(&["samples", "csv", "--format", "ndjson"]).stdout;
    let rows = cells(&text);
    for (line, row) in lines.lines().zip(&rows[1..]) {
        let object: Value = serde_json::from_str(line).unwrap();
        assert_eq!(object.as_object().unwrap().len(), rows[0].len());
        // Digit by digit what the file of draws has.
        let members: Vec<String> =
            rows[0].iter().zip(row).map(|(name, cell)| format!("\"{name}\":{cell}")).collect();
        assert_eq!(line, format!("{{{}}}", members.join(",")));
    }
    assert_eq!(lines.lines().count(), 18);
}

#[test]
fn columns_and_draws_are_chosen() {
    let place = mixture();
    let text = |more: &[&str]| place.ok(&[&["samples", "csv", "--no-verify"], more].concat()).stdout;
    let header = |more: &[&str]| text(more).lines().next().unwrap().to_owned();
    // In the order of the file, whatever the order of the patterns.
    assert_eq!(header(&["--columns", "mu.*", "--columns", "pi.?"]), "pi.1,pi.2,mu.1.1,mu.1.2,mu.2.1,mu.2.2");
    assert_eq!(header(&["--columns", "status__", "--columns", "*.2.2"]), "status__,mu.2.2,sigma2.2.2");
    assert_eq!(header(&["--columns", "*2", "--no-statistics"]), "pi.2,mu.1.2,mu.2.2,sigma2.1.2,sigma2.2.2");
    assert!(header(&["--no-statistics"]).starts_with("pi.1,"));
    let numbers = |more: &[&str]| {
        let text = text(&[&["--columns", "repeat__", "--columns", "draw__"], more].concat());
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&["--repeat", "2", "--draws", "3..4"]), ["2,3", "2,4"]);
    assert_eq!(numbers(&["--draws", "9.."]), ["1,9", "2,9"]);
    assert_eq!(numbers(&["--draws", "..1"]), ["1,1", "2,1"]);
    assert_eq!(numbers(&["--draws", "5", "--repeat", "1"]), ["1,5"]);
    place.ok(&["samples", "csv", "--columns", "pi.1", "--out", "x.csv"]);
    assert_eq!(place.read("x.csv"), text(&["--columns", "pi.1"]));
    // A draw that failed, as a run would have left it.
    let samples = place.read("csv/samples.csv");
    let mut lines: Vec<String> = samples.lines().map(str::to_owned).collect();
    let mut row: Vec<&str> = lines[3].split(',').collect();
    (row[5], row[9]) = ("3", "NaN");
    lines[3] = row.join(",");
    place.write("csv/samples.csv", lines.join("\n") + "\n");
    assert_eq!(text(&[]).lines().count(), 19);
    assert_eq!(text(&["--drop-failed"]).lines().count(), 18);
    assert!(text(&["--format", "ndjson"]).lines().nth(2).unwrap().contains("\"pi.1\":null"));
    // It is left as it is, and marked.
    let aligned = text(&["--relabel"]);
    let row: Vec<&str> = aligned.lines().nth(3).unwrap().split(',').collect();
    let before: Vec<&str> = lines[3].split(',').collect();
    assert_eq!((&row[..9], row[9], &row[10..]), (&before[..9], "2", &before[9..]));
}

#[test]
fn what_is_not_there_is_named() {
    let place = mixture();
    place.write("d.csv", "\"a,b\",\"c\"\"d\",e\tf\n1,2,3\n4,5,7\n2,2,2\n");
    place.write("m.toml", "name = \"m\"\nseed = 1\nmodel.mean = {}\nsampler.B = 2\ndata.train = \"d.csv\"\n");
    place.ok(&["run", "m.toml", "--out", "m"]);
    assert_eq!(place.ok(&["samples", "m"]).stdout, place.read("m/samples.csv"));
    for (args, why) in [
        (vec!["--columns", "mu.1.3"], "no column `mu.1.3`; did you mean `mu.1.1`?"),
        (vec!["--columns", "mu.*", "--columns", "sigma.1.1"], "did you mean `sigma2.1.1`?"),
        (vec!["--columns", "nonsense*"], "they are repeat__, draw__"),
        (vec!["--columns", "draw__", "--no-statistics"], "all columns that were asked for are statistics"),
        (vec!["--repeat", "3"], "repeats 1 to 2"),
        (vec!["--repeat", "0"], "repeats 1 to 2"),
        (vec!["--setting", "1"], "is not a path"),
        (vec!["--draws", "5..2"], "the first comes before the last"),
        (vec!["--draws", "x"], "expected a number"),
        (vec!["--out", "csv/samples.csv"], "is a result of a run"),
        (vec!["--format", "xml"], "ndjson"),
    ] {
        let ended = place.npl(&[&["samples", "csv"], &args[..]].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{args:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{args:?}");
        ended.assert_decent(&args.join(" "));
    }
}

/// `npl samples … | head`.
#[test]
fn a_closed_pipe_is_success() {
    let place = mixture();
    place.ok(&["run", "g.toml", "--out", "many", "--set", "sampler.B=3000", "--set", "repeats=1"]);
    let mut child =
        place.command(&["samples", "many"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}
