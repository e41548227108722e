//! What needs more memory than there is ends with a message: no abort, nothing half written.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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

/// Bytes that a run has in memory at most, as the system tells until it ends.
fn peak(place: &Place, args: &[&str]) -> f64 {
    let mut command = place.command(args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0.0f64;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
        most = most.max(kilobytes.unwrap_or(0.0) * 1024.0);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success(), "{args:?}");
    most
}

/// Bytes that `npl check` says of it.
fn estimate(place: &Place, args: &[&str]) -> f64 {
    let said = place.ok(args).stdout;
    let line = said.lines().find(|line| line.starts_with("# memory")).expect("it says so");
    let [number, unit] = line.split("about ").nth(1).unwrap().split(' ').take(2).collect::<Vec<_>>()[..]
    else {
        panic!("{line}")
    };
    number.parse::<f64>().unwrap() * if unit.starts_with("GB") { 1e9 } else { 1e6 }
}

/// Of every kind of working: closed forms, regressions, searches without a penalty, mixtures, losses of one's own.
#[test]
fn what_a_run_takes_is_what_check_says_and_no_more_than_four_times_the_data() {
    const ROWS: usize = 200_000;
    const COLUMNS: usize = 20;
    let place = Place::new();
    let mut text: String = (1..=COLUMNS).map(|j| format!("x{j},")).collect::<String>() + "y,b,k\n";
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / 9_007_199_254_740_992.0
    };
    for _ in 0..ROWS {
        let x: Vec<f64> = (0..COLUMNS).map(|_| uniform() * 4.0 - 2.0).collect();
        x.iter().for_each(|v| text += &format!("{v:.4},"));
        let y = x[0] - x[1] + uniform();
        text += &format!("{y:.4},{},{}\n", u8::from(y > uniform()), (uniform() * 3.0) as u8);
    }
    place.write("d.csv", text);
    let columns: Vec<String> = (1..=COLUMNS).map(|j| format!("x{j}")).collect();
    let data = 8.0 * (ROWS * COLUMNS) as f64;
    let ridge = "penalty = \"ridge\"\ngamma = \"1/n\"";
    let own = "parameters = { a = { real = 1 }, t = { real = \"x\" } }\nloss = \"(y - a - dot(t, x))^2\"";
    let mut wrong = Vec::new();
    for (model, target, settings) in [
        ("mean", "", ""),
        ("logistic", "b", ridge),
        ("logistic", "b", "penalty = \"none\""),
        ("linear", "y", ridge),
        ("linear", "y", "penalty = \"none\""),
        ("robust", "y", &format!("loss = {{ student_t = 4.0 }}\n{ridge}")),
        ("multinomial", "k", ridge),
        ("quantile_regression", "y", "q = 0.5\npenalty = \"none\""),
        ("gmm", "", "K = 2\nvariance_floor = 1e-4"),
        ("kmeans", "", "K = 2"),
        ("custom", "y", own),
    ] {
        let target = if target.is_empty() { String::new() } else { format!("target = \"{target}\"\n") };
        let text = format!(
            "name = \"e\"\nseed = 1\n[data]\ntrain = \"d.csv\"\ncolumns = {columns:?}\n{target}[model.{model}]\n{settings}\n\
             [sampler]\nB = 12\n[optimiser]\nmax_iterations = 3\n"
        );
        place.write("e.toml", text);
        let on = ["e.toml", "--threads", "2", "--no-cache"];
        let said = estimate(&place, &[&["check"], &on[..]].concat());
        // Cut short, searches are said not to have converged.
        let rest = ["--set", "sampler.max_unconverged=1.0", "--quiet", "--out", "out", "--force"];
        let took = peak(&place, &[&["run"], &on[..], &rest].concat());
        println!("{model} {settings:?}: {:.0} MB, check says {:.0}", took / 1e6, said / 1e6);
        if !(took < 1.2 * said && said < 1.2 * took && took < 4.0 * data + 15e6) {
            wrong.push(format!("{model} {settings:?}: {:.0} MB, check says {:.0}", took / 1e6, said / 1e6));
        }
    }
    assert!(wrong.is_empty(), "of {:.0} MB of data:\n{}", data / 1e6, wrong.join("\n"));
}
