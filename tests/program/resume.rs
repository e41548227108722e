//! Runs that are killed, stopped, extended, cut into shards and damaged, from outside.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::support::{Ended, Place, config, patience, wait_for_work, wait_until};

/// A few seconds of work, that is there in parts.
fn experiment(place: &Place) -> &'static str {
    let text = fs::read_to_string(config("gmm_toy.toml")).unwrap();
    place.write("e.toml", text);
    "e.toml"
}

const SETS: [&str; 6] = ["--set", "sampler.B=600", "--set", "sampler.R=4", "--threads", "2"];

/// A second of work.
const MEAN: &str = "name = \"m\"\nseed = 3\n[data.simulate.normal]\nn = 50\nmean = 1.0\nsd = 1.0\n[model.mean]\n\
                    [sampler]\nB = 100\n";

fn hash(place: &Place, file: &str) -> String {
    Sha256::digest(fs::read(place.path(file)).unwrap()).iter().map(|b| format!("{b:02x}")).collect()
}

fn start(place: &Place, args: &[&str]) -> Child {
    place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn send(signal: &str, child: &Child) {
    let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
}

fn end(mut child: Child, limit: Duration) -> Ended {
    let started = Instant::now();
    if !wait_until(limit, || child.try_wait().unwrap().is_some()) {
        child.kill().unwrap();
        panic!("it did not end within {limit:?}");
    }
    Ended::of(child.wait_with_output().unwrap(), started.elapsed())
}

/// Waits until a run into this folder is drawing, and has been for a while.
fn begun(place: &Place, out: &str, child: &Child) {
    let new = format!("{out}/.npl-new");
    assert!(wait_until(Duration::from_secs(30), || place.exists(&new)), "it never began");
    wait_for_work(child, 0.3);
}

/// A run that would take hours, once it is drawing.
fn long(place: &Place, more: &[&str]) -> Child {
    let path = config("gmm_toy.toml");
    let args = ["run", &path, "--set", "sampler.B=1000000", "--out", "out"];
    let child = start(place, &[&args, more].concat());
    begun(place, "out", &child);
    child
}

/// Killed at some moment, and gone on with: the short form of `scripts/kill_test.py`.
#[test]
fn a_killed_run_ends_with_the_same_bytes() {
    let place = Place::new();
    let file = experiment(&place);
    let args = [&["run", file], &SETS[..]].concat();
    let started = Instant::now();
    place.ok(&[&args[..], &["--out", "whole"]].concat());
    let whole = started.elapsed();
    let expected = hash(&place, "whole/samples.csv");
    for (i, signal) in ["-KILL", "-TERM", "-KILL", "-INT", "-USR1", "-KILL"].into_iter().enumerate() {
        let out = format!("k{i}");
        let args = [&args[..], &["--out", &out, "--resume"]].concat();
        // Twice each, at moments that differ.
        for share in [0.15 * (i + 1) as f64, 0.05 + 0.1 * i as f64] {
            let child = start(&place, &args);
            std::thread::sleep(whole.mul_f64(share));
            send(signal, &child);
            let ended = end(child, Duration::from_secs(20));
            let code = match signal {
                "-KILL" => None,
                "-INT" => Some(130),
                _ => Some(143),
            };
            // It may have been done before, or not yet minding its signals.
            assert!(
                [Some(0), code, None].contains(&ended.code),
                "{signal}: {:?} {}",
                ended.code,
                ended.stderr
            );
        }
        place.ok(&args);
        assert_eq!(hash(&place, &format!("{out}/samples.csv")), expected, "{signal}");
        assert_eq!(place.list(&out), place.list("whole"));
    }
}

#[test]
fn a_stopped_run_says_how_to_go_on() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-USR1", 143), ("-HUP", 143)] {
        let place = Place::new();
        let child = long(&place, &["--force"]);
        send(signal, &child);
        let ended = end(child, Duration::from_secs(15));
        assert_eq!(ended.code, Some(code), "{signal}: {}", ended.stderr);
        let command = ended.stderr.lines().last().unwrap().trim();
        assert!(command.starts_with("npl run ") && command.ends_with(" --out out --resume"), "{command}");
        let kept = ended.stderr.split(" of 1000000 draws are kept in out").next().unwrap();
        let kept: Option<u64> = kept.rsplit(' ').next().and_then(|number| number.parse().ok());
        assert!(kept.is_some_and(|kept| kept < 1_000_000), "{}", ended.stderr);
        assert!(place.exists("out/.npl-chunks/1-of-1/00000001.part"));
        let left = place.list("out/.npl-chunks/1-of-1");
        assert!(!left.iter().any(|name| name.ends_with(".tmp")), "{left:?}");
        ended.assert_decent(signal);
        // Readers say what it is, and a run that would start from the first draw is refused.
        let summary = place.npl(&["summary", "out"]);
        assert!(summary.code == Some(2) && summary.stderr.contains("not finished"), "{}", summary.stderr);
        let again =
            place.npl(&["run", &config("gmm_toy.toml"), "--set", "sampler.B=1000000", "--out", "out"]);
        assert!(again.code == Some(2) && again.stderr.contains("--resume"), "{}", again.stderr);
    }
}

#[test]
fn a_time_limit_stops_a_run_by_itself() {
    let place = Place::new();
    let path = config("gmm_toy.toml");
    // Time enough for some draws.
    let limit = format!("{}s", patience(Duration::from_secs(2)).as_secs());
    let args = ["run", &path, "--set", "sampler.B=1000000", "--out", "out", "--time-limit", &limit];
    let ended = end(start(&place, &args), Duration::from_secs(20));
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    assert!(ended.stderr.contains("the time limit is reached"), "{}", ended.stderr);
    let command = format!("--time-limit {limit} --resume");
    assert!(ended.stderr.trim_end().ends_with(&command), "{}", ended.stderr);
    for wrong in ["0", "soon", "-5m"] {
        let ended = place.npl(&["run", &path, &format!("--time-limit={wrong}")]);
        assert_eq!(ended.code, Some(2), "{wrong}");
    }
}

/// A draw that takes long is not waited for for ever.
#[test]
fn slow_draws_are_abandoned() {
    let place = Place::new();
    let text = fs::read_to_string(config("gmm_toy.toml")).unwrap();
    place.write("slow.toml", text);
    // One draw of so many restarts takes longer than any grace.
    let sets = ["--set", "sampler.R=1000000", "--set", "sampler.B=3", "--threads", "1"];
    let child = start(&place, &[&["run", "slow.toml", "--out", "out"], &sets[..]].concat());
    begun(&place, "out", &child);
    let sent = Instant::now();
    send("-TERM", &child);
    let ended = end(child, Duration::from_secs(20));
    let took = sent.elapsed();
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    assert!(took < patience(Duration::from_secs(20)) && took > Duration::from_secs(8), "{took:?}");
    // And the second Ctrl-C ends it at once, as soon as the first has been seen.
    let mut child = start(&place, &[&["run", "slow.toml", "--out", "two"], &sets[..]].concat());
    begun(&place, "two", &child);
    send("-INT", &child);
    let again = || {
        std::thread::sleep(Duration::from_millis(300));
        send("-INT", &child);
        child.try_wait().unwrap().is_some()
    };
    assert!(wait_until(Duration::from_secs(3), again), "it minds no second Ctrl-C");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// `nohup` means it.
#[test]
fn an_ignored_signal_stays_ignored() {
    let place = Place::new();
    let script = format!(
        "trap '' HUP; exec '{}' run '{}' --set sampler.B=1000000 --out out",
        env!("CARGO_BIN_EXE_npl"),
        config("gmm_toy.toml")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(place.path(".")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    begun(&place, "out", &child);
    send("-HUP", &child);
    wait_for_work(&child, 1.5);
    assert!(child.try_wait().unwrap().is_none(), "it died of a signal that it was told to ignore");
    send("-TERM", &child);
    assert_eq!(end(child, Duration::from_secs(15)).code, Some(143));
}

#[test]
fn a_finished_run_is_given_more() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    place.ok(&["run", "m.toml", "--set", "sampler.B=350", "--out", "whole"]);
    let none = place.npl(&["run", "m.toml", "--more", "50"]);
    assert!(none.code == Some(2) && none.stderr.contains("holds none"), "{}", none.stderr);
    place.ok(&["run", "m.toml", "--resume"]);
    place.ok(&["run", "m.toml", "--more", "200"]);
    place.ok(&["run", "m.toml", "--set", "sampler.B=350", "--resume"]);
    for file in ["samples.csv", "summary.csv", "config.toml"] {
        assert_eq!(place.read(&format!("runs/m/{file}")), place.read(&format!("whole/{file}")), "{file}");
    }
    let done = place.ok(&["run", "m.toml", "--set", "sampler.B=350", "--resume", "--samples", "-"]);
    assert_eq!(done.stdout, place.read("whole/samples.csv"));
    assert!(done.stderr.contains("finished already"), "{}", done.stderr);
    let fewer = place.npl(&["run", "m.toml", "--resume"]);
    assert!(fewer.code == Some(2) && fewer.stderr.contains("never taken away"), "{}", fewer.stderr);
    let simd = place.npl(&["run", "m.toml", "--set", "sampler.B=400", "--resume", "--simd", "plain"]);
    if npl::kernel::Level::detected() != npl::kernel::Level::PLAIN {
        assert!(simd.code == Some(2) && simd.stderr.contains("SIMD"), "{}", simd.stderr);
    }
}

/// The seed that was drawn for a run is that of the run.
#[test]
fn a_drawn_seed_is_kept() {
    let place = Place::new();
    place.write("m.toml", MEAN.replace("seed = 3\n", ""));
    place.ok(&["run", "m.toml"]);
    let before = place.read("runs/m/samples.csv");
    place.ok(&["run", "m.toml", "--more", "50"]);
    assert!(place.read("runs/m/samples.csv").starts_with(&before));
    let shard = place.npl(&["run", "m.toml", "--shard", "1/2", "--out", "s"]);
    assert!(shard.code == Some(2) && shard.stderr.contains("needs a seed"), "{}", shard.stderr);
}

/// A report without its times.
fn without_times(text: &str) -> serde_json::Value {
    fn timeless(tree: &mut serde_json::Value) {
        match tree {
            serde_json::Value::Object(map) => {
                map.retain(|key, _| key != "seconds");
                map.values_mut().for_each(timeless);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(timeless),
            _ => {}
        }
    }
    let mut tree = serde_json::from_str(text).unwrap();
    timeless(&mut tree);
    tree
}

#[test]
fn shards_are_joined_by_name_or_by_folder() {
    let place = Place::new();
    place.write("m.toml", MEAN.replace("seed = 3", "seed = 3\nrepeats = 3"));
    place.ok(&["run", "m.toml", "--out", "whole"]);
    // All in one folder …
    for i in ["1", "3", "4"] {
        let ended = place.ok(&["run", "m.toml", "--shard", &format!("{i}/4")]);
        assert!(ended.stdout.contains("npl merge runs/m"), "{}", ended.stdout);
    }
    let early = place.npl(&["merge", "runs/m"]);
    assert!(
        early.code == Some(2)
            && early.stderr.contains("`npl run … --shard I/4`, I = 2\n(under Slurm: --array=2 "),
        "{}",
        early.stderr
    );
    let read = place.npl(&["summary", "runs/m"]);
    assert!(read.code == Some(2) && read.stderr.contains("shards 1,3-4 of 4"), "{}", read.stderr);
    let other = place.npl(&["run", "m.toml", "--shard", "1/5"]);
    assert!(other.code == Some(2) && other.stderr.contains("cut in 4"), "{}", other.stderr);
    // A shard of another experiment is refused before its work, wherever it lies.
    for shard in ["2/4", "3/4"] {
        let other = place.npl(&["run", "m.toml", "--seed", "9", "--shard", shard]);
        let says = ["of another run", "`seed` is 3 there, and 9 here", "--out", "--force"];
        assert!(
            other.code == Some(2) && says.iter().all(|word| other.stderr.contains(word)),
            "{}",
            other.stderr
        );
        assert!(!place.exists("runs/m/.npl-chunks/2-of-4"));
    }
    let mut wrong = place.command(&["run", "m.toml", "--shard", "auto/4"]);
    let wrong = wrong.env("SLURM_ARRAY_TASK_ID", "2x").output().unwrap();
    assert!(
        wrong.status.code() == Some(2)
            && String::from_utf8_lossy(&wrong.stderr).contains("SLURM_ARRAY_TASK_ID is `2x`")
    );
    let mut scheduled = place.command(&["run", "m.toml", "--shard", "auto/4"]);
    assert!(scheduled.env("SLURM_ARRAY_TASK_ID", "2").output().unwrap().status.success());
    place.ok(&["merge", "runs/m"]);
    // … or each in its own.
    for i in ["1", "2"] {
        place.ok(&["run", "m.toml", "--shard", &format!("{i}/2"), "--out", &format!("s{i}")]);
    }
    let one = place.npl(&["merge", "whole"]);
    assert!(one.code == Some(2) && one.stderr.contains("nothing to join"), "{}", one.stderr);
    let nowhere = place.npl(&["merge", "s1", "s2"]);
    assert!(nowhere.code == Some(2) && nowhere.stderr.contains("--out"), "{}", nowhere.stderr);
    place.ok(&["merge", "s2", "s1", "--out", "joined"]);
    for run in ["runs/m", "joined"] {
        for file in ["samples.csv", "summary.csv", "config.toml"] {
            assert_eq!(
                place.read(&format!("{run}/{file}")),
                place.read(&format!("whole/{file}")),
                "{run}/{file}"
            );
        }
        let report = |run: &str| without_times(&place.read(&format!("{run}/report.json")));
        assert_eq!(report(run), report("whole"));
    }
    let twice = place.npl(&["merge", "s1", "s1", "s2", "--out", "x"]);
    assert!(twice.code == Some(2) && twice.stderr.contains("there twice"), "{}", twice.stderr);
    place.ok(&["run", "m.toml", "--seed", "9", "--shard", "2/2", "--out", "s3"]);
    let mixed = place.npl(&["merge", "s1", "s3", "--out", "x"]);
    assert!(
        mixed.code == Some(2) && mixed.stderr.contains("`seed` is 9 there, and 3 here"),
        "{}",
        mixed.stderr
    );
    assert!(!place.exists("x"));
    place.ok(&["run", "joined/config.toml", "--out", "joined", "--more", "10"]);
}

/// A run may have more shards than a process may have files open.
#[test]
fn many_shards_are_joined_with_few_open_files() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    for i in 1..=40 {
        place.ok(&[
            "run",
            "m.toml",
            "--out",
            "out",
            "--quiet",
            "--threads",
            "1",
            "--shard",
            &format!("{i}/40"),
        ]);
    }
    let limited = "ulimit -n 24; exec \"$0\" merge out --quiet --threads 1";
    let mut command = Command::new("sh");
    command.current_dir(place.path(".")).args(["-c", limited, env!("CARGO_BIN_EXE_npl")]);
    let ended = Ended::of(command.output().unwrap(), Duration::ZERO);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    place.ok(&["run", "m.toml", "--out", "whole", "--quiet"]);
    assert_eq!(hash(&place, "out/samples.csv"), hash(&place, "whole/samples.csv"));
}

#[test]
fn check_says_how_many_shards() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    let ended = place.ok(&["check", "m.toml", "--shard-minutes", "10"]);
    assert!(ended.stdout.contains("shards      1 of about"), "{}", ended.stdout);
    let many = place.ok(&[
        "check",
        &config("gmm_toy.toml"),
        "--set",
        "sampler.B=100000000",
        "--shard-minutes",
        "10",
    ]);
    let line = many.stdout.lines().find(|line| line.contains("shards ")).unwrap().to_owned();
    assert!(line.contains("--array=1-") && !line.contains("--array=1-1,"), "{line}");
    assert_eq!(place.npl(&["check", "m.toml", "--shard-minutes", "0"]).code, Some(2));
}

#[test]
fn a_run_is_verified_by_making_draws_again() {
    let place = Place::new();
    let path = config("gmm_toy.toml");
    for (out, sets) in [
        ("rr", &["--set", "sampler.B=40", "--set", "repeats=2"][..]),
        ("npy", &["--set", "sampler.B=40", "--set", "output.samples=s.npy"]),
        ("advi", &["--set", "sampler.B=40", "--set", "method=advi"]),
    ] {
        place.ok(&[&["run", &path, "--out", out], sets].concat());
        let ended = place.ok(&["verify", out, "--draws", "5"]);
        assert!(ended.stdout.contains("5 draws made again, every bit the same"), "{}", ended.stdout);
    }
    let samples = place.read("rr/samples.csv");
    place.write("rr/samples.csv", samples.replacen("0.", "0.1", 1));
    let ended = place.npl(&["verify", "rr"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("samples.csv"), "{}", ended.stderr);
    // A run that was made by another program, or another way, is found out by its draws.
    place.ok(&["run", &path, "--out", "other", "--set", "sampler.B=40", "--set", "repeats=2", "--seed", "9"]);
    let file = |run: &str, name: &str| place.path(&format!("{run}/{name}"));
    let mut manifest: serde_json::Value = serde_json::from_str(&place.read("other/manifest.json")).unwrap();
    fs::copy(file("rr", "config.toml"), file("other", "config.toml")).unwrap();
    manifest["outputs"]["config.toml"] = hash(&place, "other/config.toml").into();
    manifest["sizes"]["config.toml"] = fs::metadata(file("other", "config.toml")).unwrap().len().into();
    place.write("other/manifest.json", npl::store::seal(&manifest));
    let ended = place.npl(&["verify", "other"]);
    assert!(
        ended.code == Some(1) && ended.stderr.contains("10 of 10 draws are not what they were"),
        "{}",
        ended.stderr
    );
}

#[test]
fn damage_is_noticed_by_whoever_reads() {
    let place = Place::new();
    place.write("m.toml", MEAN).ok(&["run", "m.toml"]);
    let samples = place.read("runs/m/samples.csv");
    place.write("runs/m/samples.csv", samples.replacen('1', "2", 1));
    let ended = place.npl(&["summary", "runs/m"]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("runs/m/samples.csv is damaged"),
        "{}",
        ended.stderr
    );
    place.ok(&["summary", "runs/m", "--no-verify"]);
    place.write("runs/m/samples.csv", &samples[..samples.len() - 1]);
    let ended = place.npl(&["summary", "runs/m"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("bytes"), "{}", ended.stderr);
    place.ok(&["table", "runs/m"]);
    let report = place.read("runs/m/report.json");
    place.write("runs/m/report.json", report.replacen("100", "101", 1));
    assert_eq!(place.npl(&["table", "runs/m"]).code, Some(2));
    place.ok(&["table", "runs/m", "--no-verify"]);
    // Going on with it makes it whole.
    let mended = place.ok(&["run", "m.toml", "--resume"]);
    let says = ["runs/m/report.json is damaged", "; its draws are made again"];
    assert!(says.iter().all(|words| mended.stderr.contains(words)), "{}", mended.stderr);
    assert_eq!(mended.stderr.matches("damaged").count(), 1, "{}", mended.stderr);
    assert_eq!(place.read("runs/m/samples.csv"), samples);
    // Of a manifest that was cut off nothing is believed, and nothing is replaced unasked.
    for text in ["", "{}", "[1, "] {
        place.write("runs/m/manifest.json", text);
        for args in [&["summary", "runs/m"][..], &["verify", "runs/m"], &["run", "m.toml", "--resume"]] {
            let ended = place.npl(args);
            let says = ["runs/m/manifest.json: ", "or a damaged one", "--force"];
            assert!(
                ended.code == Some(2) && says.iter().all(|word| ended.stderr.contains(word)),
                "{}",
                ended.stderr
            );
        }
    }
    place.ok(&["run", "m.toml", "--force"]);
    assert_eq!(place.read("runs/m/samples.csv"), samples);
}

#[test]
fn a_draw_is_explained() {
    let place = Place::new();
    let path = config("gmm_toy.toml");
    place.ok(&["run", &path, "--out", "r", "--set", "sampler.B=20", "--set", "sampler.R=3"]);
    let text = place.ok(&["explain", "r", "--draw", "7"]).stdout;
    for part in [
        "draw 7 of repeat 1 of r",
        "1000 rows with 1.0",
        "3 restarts",
        "converged, won",
        "objective by iteration",
        "mu.1.1",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let row = place.read("r/samples.csv").lines().nth(7).unwrap().to_owned();
    let last = row.split(',').next_back().unwrap().to_owned();
    assert!(text.contains(&last), "the same draw: {last}\n{text}");
    assert_eq!(place.npl(&["explain", "r", "--draw", "21"]).code, Some(2));
    assert_eq!(place.npl(&["explain", "r", "--draw", "0"]).code, Some(2));
    place.ok(&["run", &path, "--out", "a", "--set", "sampler.B=20", "--set", "method=advi"]);
    assert!(place.npl(&["explain", "a", "--draw", "1"]).stderr.contains("no weights"));
}

/// Results are replaced all at once, and never those that a run reads.
#[test]
fn a_run_does_not_write_over_what_it_reads() {
    let place = Place::new();
    place.write("m.toml", MEAN).ok(&["run", "m.toml", "--out", "o"]);
    let before = (place.read("o/samples.csv"), place.read("o/config.toml"));
    let own = "name = \"x\"\nseed = 1\n[data]\ntrain = \"o/samples.csv\"\ncolumns = [\"theta\"]\n[model.mean]\n[sampler]\nB = 5\n";
    place.write("own.toml", own);
    let ended = place.npl(&["run", "own.toml", "--out", "o", "--force"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("o/samples.csv"), "{}", ended.stderr);
    let ended = place.npl(&["run", "o/config.toml", "--out", "o", "--seed", "8", "--force"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("o/config.toml"), "{}", ended.stderr);
    assert_eq!((place.read("o/samples.csv"), place.read("o/config.toml")), before);
    // A manifest that someone planted names no file for us to remove.
    let manifest = place.read("o/manifest.json").replace("\"summary.csv\"", "\"thesis.csv\"");
    place.write("o/manifest.json", manifest).write("o/thesis.csv", "years");
    place.ok(&["run", "m.toml", "--out", "o", "--seed", "8", "--force"]);
    assert_eq!(place.read("o/thesis.csv"), "years");
}

#[test]
fn a_folder_that_goes_away_is_named() {
    let place = Place::new();
    let child = long(&place, &[]);
    fs::remove_dir_all(place.path("out")).unwrap();
    let ended = end(child, Duration::from_secs(30));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("out: the run directory was removed"), "{}", ended.stderr);
}

#[test]
fn threads_have_a_limit_wherever_they_are_asked_for() {
    let place = Place::new();
    place.write("m.toml", MEAN);
    let output = place.command(&["run", "m.toml"]).env("RAYON_NUM_THREADS", "5000").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("1024"), "{said}");
    assert!(!place.exists("runs"));
}
