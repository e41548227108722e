//! What needs more memory than there is ends with a message: no abort, nothing half written.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{Ended, Place};

/// The program with so many bytes of address space; `None` where that cannot be had.
fn within(place: &Place, bytes: u64, args: &[&str]) -> Option<Ended> {
    let able = Command::new("prlimit").arg("--version").stdout(Stdio::null()).status();
    if !able.is_ok_and(|status| status.success()) {
        println!("skipped: prlimit is not installed");
        return None;
    }
    let npl = place.command(args);
    let mut command = Command::new("prlimit");
    command.arg(format!("--as={bytes}")).arg(npl.get_program()).args(args).current_dir(place.path("."));
    let started = Instant::now();
    Some(Ended::of(
        command.env_remove("NPL_DATA").env_remove("RUST_BACKTRACE").output().unwrap(),
        started.elapsed(),
    ))
}

fn mean_of(place: &Place, file: &str) {
    place.write(
        "e.toml",
        format!("name = \"f\"\nseed = 1\nmodel.mean = {{}}\nsampler.B = 2\ndata.train = \"{file}\"\n"),
    );
}

/// Ended with a message, and without a result.
fn refused(place: &Place, case: &str, ended: &Ended, says: &[&str]) {
    assert!(matches!(ended.code, Some(1 | 2)), "{case}: {:?} {}", ended.code, ended.stderr);
    says.iter()
        .for_each(|text| assert!(ended.stderr.contains(text), "{case}: no {text:?} in {}", ended.stderr));
    ended.assert_decent(case);
    assert!(!place.exists("runs/f/manifest.json") && !place.exists("runs/f/samples.csv"), "{case}");
}

/// A gzip file of a hundred kilobytes that holds one line of 100 MB.
#[test]
fn a_line_without_end_is_refused_in_little_memory() {
    let place = Place::new();
    let mut file = GzEncoder::new(b"".to_vec(), Compression::fast());
    file.write_all(b"a\n").unwrap();
    (0..100).for_each(|_| file.write_all(&[b'1'; 1_000_000]).unwrap());
    place.write("d.csv.gz", file.finish().unwrap());
    mean_of(&place, "d.csv.gz");
    let Some(ended) = within(&place, 400_000_000, &["run", "e.toml", "--threads", "1"]) else { return };
    refused(&place, "one long line", &ended, &["d.csv.gz", "line 2 has more than 64 MiB"]);
}

#[test]
fn a_line_of_too_many_cells_is_refused_in_little_memory() {
    let place = Place::new();
    place.write("d.csv", "1,".repeat(3_000_000));
    mean_of(&place, "d.csv");
    let Some(ended) = within(&place, 400_000_000, &["run", "e.toml", "--threads", "1"]) else { return };
    refused(&place, "3e6 cells", &ended, &["d.csv", "line 1 has more than 1048576 cells"]);
}

/// Time by the number of attributes, not by its square.
#[test]
fn many_attributes_are_read() {
    let place = Place::new();
    let names: String = (0..100_000).map(|j| format!("@attribute a{j} numeric\n")).collect();
    let cells = vec!["1"; 100_000].join(",");
    place.write("d.arff", format!("{names}@data\n{cells}\n{cells}\n"));
    mean_of(&place, "d.arff");
    place.ok(&["check", "e.toml", "--threads", "1"]);
}

/// More rows than fit, in every format that may have them.
#[test]
fn data_that_do_not_fit_are_refused() {
    let place = Place::new();
    place.write("d.csv", "1,2,3,4,5,6,7,8,9,0\n".repeat(600_000));
    place.write(
        "d.idx",
        [&[0, 0, 8, 2, 0, 0, 0x75, 0x30, 0, 0, 3, 0x10][..], &vec![7; 30_000 * 784]].concat(),
    );
    for file in ["d.csv", "d.idx"] {
        mean_of(&place, file);
        for megabytes in [40, 60, 100] {
            let limit = megabytes * 1_000_000;
            let Some(ended) = within(&place, limit, &["run", "e.toml", "--threads", "1"]) else { return };
            refused(&place, &format!("{file} in {megabytes} MB"), &ended, &["memory"]);
        }
    }
    mean_of(&place, "d.csv");
    // In memory, that is: a file takes more.
    let ended = place.npl(&["run", "e.toml", "--max-memory", "30M", "--set", "data.mapped=false"]);
    refused(&place, "--max-memory", &ended, &["d.csv:", "are all that fits into the free memory"]);
    assert_eq!(ended.code, Some(2));
}

/// The data are there; what draws would need is not.
#[test]
fn a_run_that_would_need_too_much_is_refused_with_numbers() {
    let place = Place::new();
    let text = "name = \"f\"\nseed = 1\nmodel.mean = {}\nsampler.B = 5\ndata.simulate.normal = { n = 400000, mean = 1.0, sd = 1.0 }\n";
    place.write("e.toml", text);
    let ended = place.npl(&["run", "e.toml", "--max-memory", "18M", "--threads", "2"]);
    refused(&place, "--max-memory", &ended, &["needs about", "MB", "2 threads", "--threads", "--max-memory"]);
    assert_eq!(ended.code, Some(2));
    assert!(!place.exists("runs"), "refused before anything is written");
    let said = place.ok(&["check", "e.toml", "--max-memory", "18M"]).stdout;
    assert!(said.contains("more than is allowed or free"), "{said}");
    // The program itself is more than that.
    let ended = place.npl(&["run", "e.toml", "--set", "data.simulate.normal.n=10", "--max-memory", "1M"]);
    refused(&place, "--max-memory 1M", &ended, &["needs about 10.", "and 1.0 MB are allowed"]);
    place.ok(&["run", "e.toml", "--max-memory", "2G"]);
}

/// Whatever allocation fails: a line that says so, and exit code 1.
#[test]
fn running_out_of_memory_is_no_abort() {
    let place = Place::new();
    let path = crate::support::config("gmm_toy.toml");
    for megabytes in [24, 32, 40, 48, 64, 80, 96] {
        let args = ["run", &path, "--set", "sampler.B=40", "--threads", "4", "--out", "out"];
        let Some(ended) = within(&place, megabytes << 20, &args) else { return };
        // The smallest may not even load the program.
        let known = matches!(ended.code, Some(0 | 1 | 2 | 127));
        assert!(known, "{megabytes} MB: {:?} {}", ended.code, ended.stderr);
        assert!(ended.code == Some(0) || !ended.stderr.is_empty(), "{megabytes} MB: no message");
        if ended.code == Some(0) {
            std::fs::remove_dir_all(place.path("out")).unwrap();
        }
        assert!(!place.exists("out/samples.csv"), "{megabytes} MB");
    }
}
