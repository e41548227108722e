//! Shards by engines that people have: GNU parallel and Snakemake, where they are installed ($NPL_SNAKEMAKE, or `snakemake` on
//! the path); elsewhere a test says that it was skipped. Slurm has scripts/slurm/test_cluster.sh.

use std::process::Command;

use crate::support::{Place, config, python, script};

/// A path and 30 repeats: draws of many rounds, cut anywhere.
const PATH: [&str; 3] = [
    "sampler.B=50",
    "sampler.R=2",
    r#"path={ parameter = "model.gmm.variance_floor", geometric = { first = 1e-6, ratio = 3.0, count = 7 }, keep = ["mu.1.1"] }"#,
];
const REPEATS: [&str; 3] = ["sampler.B=40", "sampler.R=2", "repeats=30"];

fn sets<'a>(changes: &[&'a str]) -> Vec<&'a str> {
    changes.iter().flat_map(|change| ["--set", *change]).collect()
}

/// Runs a program, if it is there.
fn runs(name: &str, mut command: Command) -> bool {
    match command.output() {
        Err(_) => {
            println!("skipped: {name} is not installed");
            false
        }
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
    }
}

/// That what was joined is what one machine writes.
fn is_whole(place: &Place, run: &str, changes: &[&str]) {
    let Some(python) = python("json") else { return };
    place.ok(&[&["run", &config("gmm_toy.toml"), "--out", "whole", "--quiet"], &sets(changes)[..]].concat());
    let mut same = Command::new(python);
    same.current_dir(place.path(".")).arg(script("lib/same_run.py")).args([run, "whole"]);
    let output = same.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn parallel_makes_the_bytes_of_one_machine() {
    for (changes, shards) in [(PATH, "5"), (REPEATS, "7")] {
        let place = Place::new();
        let mut command = Command::new("parallel");
        command.current_dir(place.path(".")).args(["--quote", "-j", "2", env!("CARGO_BIN_EXE_npl"), "run"]);
        command
            .args([&config("gmm_toy.toml"), "--out", "out", "--threads", "1", "--quiet"])
            .args(sets(&changes));
        let shard = format!("{{}}/{shards}");
        command
            .args(["--shard", &shard, ":::"])
            .args((1..=shards.parse().unwrap()).map(|i: u32| i.to_string()));
        if !runs("GNU parallel", command) {
            return;
        }
        place.ok(&["merge", "out", "--quiet"]);
        is_whole(&place, "out", &changes);
    }
}

#[test]
fn snakemake_makes_the_bytes_of_one_machine() {
    let place = Place::new();
    let program = std::env::var("NPL_SNAKEMAKE").unwrap_or_else(|_| "snakemake".into());
    let mut command = Command::new(program);
    command
        .current_dir(place.path("."))
        .arg("-s")
        .arg(script("snakemake/Snakefile"))
        .args(["-j", "2", "--config"]);
    command.args([
        &format!("npl={}", env!("CARGO_BIN_EXE_npl")),
        &format!("experiment={}", config("gmm_toy.toml")),
    ]);
    command.args(["out=out", "shards=4", &format!("set={}", REPEATS.join(" "))]);
    if runs("Snakemake", command) {
        is_whole(&place, "out", &REPEATS);
    }
}

/// An Indexed Job does not say how many pods it has: two numbers in the file must be one.
#[test]
fn the_job_for_kubernetes_says_twice_how_many_shards_there_are() {
    let text = std::fs::read_to_string(script("kubernetes/job.yaml")).unwrap();
    let after = |word: &str| {
        let rest = text.split_once(word).unwrap_or_else(|| panic!("no {word}")).1;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    assert_eq!(after("completions: "), after("NPL_SHARDS, value: \""));
}
