//! No byte of the draws depends on threads, on where rows are, on what they were read from, or on what has stopped a run: for every model.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use npl::model::STARTERS;

use crate::crossed::on_a_file;
use crate::matrix::on_all_cores;
use crate::support::Place;

/// Draws of every run below: more than a block of the kernels, and some that end in the middle of one.
const DRAWS: &str = "sampler.B=70";
const SOME: &str = "sampler.B=27";

fn draws(place: &Place, out: &str, more: &[&str]) -> String {
    place.ok(&[&["run", "d.toml", "--quiet", "--out", out, "--set", DRAWS, "--cache", "cache"], more].concat());
    place.read(&format!("{out}/samples.csv"))
}

#[cfg(feature = "parquet")]
fn parquet_of(csv: &str) -> Vec<u8> {
    crate::parquet_data::of_csv(csv, 97, parquet::basic::Compression::SNAPPY)
}

#[test]
fn draws_depend_on_nothing_but_the_experiment() {
    let told = std::sync::Mutex::new(Vec::new());
    let linear = STARTERS.iter().find(|(name, _)| *name == "linear").expect("a model").1;
    let models: Vec<(&str, &str)> = STARTERS.iter().copied().chain([("stages", linear)]).collect();
    on_all_cores(&models, |(name, starter)| {
        let place = Place::new();
        on_a_file(&place, name, starter);
        // Classes go by their texts, and a number of a table has no zeros behind its point.
        place.write("d.csv", place.read("d.csv").replace(".0,", ","));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(place.read("d.csv").as_bytes()).unwrap();
        place.write("z.csv.gz", gzip.finish().unwrap()).ok(&["convert", "d.csv"]);
        let expected = draws(&place, "one", &["--threads", "1"]);
        assert!(expected.lines().count() >= 71, "{name}");
        let ways: [&[&str]; 6] = [
            &["--threads", "2"],
            &["--threads", "8"],
            &["--threads", "3", "--set", "data.mapped=true"],
            &["--set", "data.train=d.nplc", "--threads", "2"],
            &["--set", "data.train=d.nplc", "--set", "data.mapped=true", "--threads", "1"],
            &["--set", "data.train=z.csv.gz", "--threads", "2", "--no-cache"],
        ];
        // The table of another format, where the program has it.
        #[cfg(feature = "parquet")]
        place.write("d.parquet", parquet_of(&place.read("d.csv")));
        let tables: &[&[&str]] = match cfg!(feature = "parquet") {
            true => &[
                &["--set", "data.train=d.parquet", "--threads", "2"],
                &["--set", "data.train=d.parquet", "--set", "data.mapped=true", "--threads", "1"],
            ],
            false => &[],
        };
        for (k, way) in ways.iter().chain(tables).enumerate() {
            if draws(&place, &format!("way{k}"), way) != expected {
                told.lock().unwrap().push(format!("{name}: {way:?}"));
            }
        }
        // Stopped after some draws, and gone on with by other threads.
        let stopped = ["run", "d.toml", "--quiet", "--out", "on", "--set", SOME, "--threads", "2"];
        place.ok(&stopped);
        if draws(&place, "on", &["--resume", "--threads", "1"]) != expected {
            told.lock().unwrap().push(format!("{name}: gone on with"));
        }
        // Killed at some moment, whatever was written by then.
        let moment = Duration::from_millis(20 + 37 * (name.len() as u64 % 7));
        let killed = ["run", "d.toml", "--quiet", "--out", "dead", "--set", DRAWS, "--threads", "2"];
        let mut child = place.command(&killed).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        if draws(&place, "dead", &["--resume", "--threads", "3"]) != expected {
            told.lock().unwrap().push(format!("{name}: killed after {moment:?}"));
        }
        // Cut into shards, as a queue does that loses its nodes.
        for shard in ["1/3", "2/3", "3/3"] {
            let args = ["run", "d.toml", "--quiet", "--out", "cut", "--set", DRAWS, "--shard", shard];
            place.ok(&args);
        }
        place.ok(&["merge", "cut"]);
        if place.read("cut/samples.csv") != expected {
            told.lock().unwrap().push(format!("{name}: shards"));
        }
    });
    let told = told.into_inner().unwrap();
    assert!(told.is_empty(), "other bytes:\n{}", told.join("\n"));
}
