//! What the tests of the program share: a folder of its own for each test, and the binary run inside it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
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

/// Waits until `done`, at most `limit`; whether it came to that.
pub fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < limit {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    done()
}

/// Cells of a simple CSV text, line by line.
pub fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}
