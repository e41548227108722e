//! Calls of the operating system that fail, on the program itself: what `no_fault_of_the_disk_loses_or_spoils_anything` does within
//! the library, from outside.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::support::{Ended, Place};

/// Calls, how they fail, and how many of them are tried.
const CALLS: &[(&str, &str, usize)] = &[
    ("write", "ENOSPC", 12),
    ("write", "EIO", 4),
    ("fsync", "EIO", 16),
    ("rename", "ENOSPC", 12),
    ("openat", "EACCES", 30),
    ("mkdir", "ENOSPC", 6),
    ("flock", "EIO", 2),
    ("clone3", "EAGAIN", 3),
];

fn traced(place: &Place, call: &str, error: &str, when: usize, args: &[&str]) -> Ended {
    let npl = place.command(args);
    let mut command = Command::new("strace");
    let inject = format!("inject={call}:error={error}:when={when}");
    command.args(["-f", "--seccomp-bpf", "-o", "trace", "-e", &format!("trace={call}"), "-e", &inject]);
    command.arg(npl.get_program()).args(args).current_dir(place.path(".")).env_remove("NPL_DATA");
    let started = Instant::now();
    Ended::of(command.output().unwrap(), started.elapsed())
}

#[test]
fn calls_of_the_system_may_fail_one_by_one() {
    let place = Place::new();
    place.write("d.csv", "a,b\n1,2\n3,5\n4,4\n");
    place
        .write("e.toml", "name = \"f\"\nseed = 1\nmodel.mean = {}\nsampler.B = 40\ndata.train = \"d.csv\"\n");
    place.ok(&["run", "e.toml", "--out", "whole"]);
    let expected = fs::read(place.path("whole/samples.csv")).unwrap();
    let args = ["run", "e.toml", "--out", "out", "--threads", "1"];
    let able = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    if !able.is_ok_and(|status| status.success()) {
        println!("skipped: strace is not installed, or may not trace here");
        return;
    }
    let (mut injected, mut advised) = (0, 0);
    for (call, error, most) in CALLS {
        for when in 1..=*most {
            let case = format!("{call} {when} fails with {error}");
            let _ = fs::remove_dir_all(place.path("out"));
            let ended = traced(&place, call, error, when, &args);
            if !place.read("trace").contains("INJECTED") {
                break;
            }
            // What the loader cannot open never becomes a program.
            if ended.code == Some(127) && ended.stderr.contains("shared libraries") {
                continue;
            }
            injected += 1;
            assert!(matches!(ended.code, Some(0..=2)), "{case}: {:?} {}", ended.code, ended.stderr);
            ended.assert_decent(&case);
            let whole = |name: &str| place.exists(&format!("out/{name}"));
            // Results on their way from there to their names are whole.
            let sound = whole(".npl-swap") || whole("samples.csv") == whole("manifest.json");
            assert!(sound, "{case}: half a result");
            assert!(
                ended.code != Some(0) || whole("manifest.json") || *call == "write",
                "{case}: {}",
                ended.stderr
            );
            advised += usize::from(
                ended.stderr.contains("go on with:\n  npl run e.toml --out out --threads 1 --resume\n"),
            );
            let named = ["out", "e.toml", "d.csv", "thread", "standard output"];
            let says = ended.code == Some(0) || named.iter().any(|name| ended.stderr.contains(name));
            assert!(says || *call == "write" && ended.stderr.is_empty(), "{case}: {}", ended.stderr);
            place.ok(&["run", "e.toml", "--out", "out", "--resume"]);
            assert!(fs::read(place.path("out/samples.csv")).unwrap() == expected, "{case}: other bytes");
        }
    }
    println!("{injected} calls of the system made to fail: none lost or spoilt anything");
    assert!(injected > 40, "{injected}");
    // Once the run has begun, whoever cannot write says how to go on.
    assert!(advised >= 10, "{advised} of {injected}");
}
