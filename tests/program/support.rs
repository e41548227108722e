//! What the tests of the program share: a folder of its own for each test, and the binary run inside it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::tempfile::{TempDir, tempdir};

/// A temporary folder that the program runs in.
pub struct Place(TempDir);

/// How a run ended, as text.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Place {
    pub fn new() -> Place {
        Place(tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Place {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Makes the manifest of a run one that knows nothing of the bytes of its results: they can be changed for a test.
    pub fn unseal(&self, run: &str) -> &Place {
        let name = format!("{run}/manifest.json");
        let mut manifest: serde_json::Value = serde_json::from_str(&self.read(&name)).unwrap();
        let entries = manifest.as_object_mut().unwrap();
        ["sizes", "checksum"].iter().for_each(|key| drop(entries.remove(*key)));
        entries.insert("outputs".to_owned(), serde_json::json!({}));
        self.write(&name, manifest.to_string())
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Names in a folder, hidden ones too, sorted; but for what a run keeps for itself.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.list_all(name).into_iter().filter(|name| name != ".npl.lock" && name != ".npl-chunks").collect()
    }

    /// All names in a folder, sorted.
    pub fn list_all(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program in this folder, nothing of the environment changing what it does.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_npl"));
        command.current_dir(self.0.path()).args(args).stdin(Stdio::null());
        for name in
            ["NPL_DATA", "NPL_SHARDS", "RAYON_NUM_THREADS", "SLURM_CPUS_PER_TASK", "SLURM_ARRAY_TASK_ID"]
        {
            command.env_remove(name);
        }
        command
    }

    pub fn npl(&self, args: &[&str]) -> Ended {
        let started = Instant::now();
        let output = self.command(args).output().unwrap();
        Ended::of(output, started.elapsed())
    }

    /// Runs the program, which must succeed.
    pub fn ok(&self, args: &[&str]) -> Ended {
        let ended = self.npl(args);
        assert_eq!(ended.code, Some(0), "npl {}\n{}", args.join(" "), ended.stderr);
        ended
    }
}

impl Ended {
    pub fn of(output: Output, took: Duration) -> Ended {
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            took,
        }
    }

    /// Neither panic nor backtrace, and nothing a terminal would obey.
    pub fn assert_decent(&self, case: &str) {
        assert_decent(case, &self.stderr);
        assert_decent(case, &self.stdout);
    }
}

pub fn assert_decent(case: &str, text: &str) {
    for word in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
        assert!(!text.contains(word), "{case}: {text}");
    }
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{case}: {text:?}");
}

/// An experiment of the repository.
pub fn config(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs").join(name).display().to_string()
}

/// A Python 3.11 that can import `modules`: $NPL_PYTHON, or python3 on the path. Says so if there is none.
pub fn python(modules: &str) -> Option<String> {
    let python = std::env::var("NPL_PYTHON").unwrap_or_else(|_| "python3".into());
    let able = Command::new(&python).args(["-c", &format!("import tomllib, {modules}")]).output();
    let able = able.is_ok_and(|out| out.status.success());
    if !able {
        println!("skipped: {python} ($NPL_PYTHON) is no Python 3.11 with {modules}");
    }
    able.then_some(python)
}

/// A script of the repository.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

/// What a machine with nothing else to do may take, stretched by how many others want its cores at this moment, or did during the last
/// minute: a limit is about the program, and not about who else is at work.
pub fn patience(limit: Duration) -> Duration {
    // As in "12.20 8.31 4.02 31/845 4711".
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut words = load.split([' ', '/']).map(|word| word.parse::<f64>().unwrap_or(0.0));
    let (minute, now) = (words.next().unwrap_or(0.0), words.nth(2).unwrap_or(0.0));
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    limit.mul_f64(1.0 + minute.max(now) / cores as f64)
}

/// Waits until `done`, at most `limit`, with [`patience`]; whether it came to that.
pub fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < patience(limit) {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    done()
}

/// Waits until a process has worked for so long from now on, whatever else the machine does meanwhile; where nobody counts that, for
/// that long by the clock.
pub fn wait_for_work(child: &Child, seconds: f64) {
    // User and system time in ticks, behind the name of the program in its brackets.
    let spent = || {
        let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
        let words = text.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
        Some(words.map(|ticks| ticks.parse::<f64>().unwrap_or(0.0)).sum::<f64>() / TICKS)
    };
    match spent() {
        Some(before) => {
            let worked = || spent().is_none_or(|now| now - before >= seconds);
            assert!(wait_until(Duration::from_secs(60), worked), "it does not work");
        }
        None => std::thread::sleep(Duration::from_secs_f64(seconds)),
    }
}

/// Of a second, on every Linux.
const TICKS: f64 = 100.0;

/// Cells of a simple CSV text, line by line.
pub fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}
