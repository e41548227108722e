//! Every shipped experiment and starter, by every method, with and without test rows, on every SIMD level of the machine,
//! at tiny B: what breaks, breaks between features. A cell may end with 0, 2 or 3 and a message, nothing else; its exit code
//! and the bytes of its draws are those of `matrix.txt`, so that nothing changes by accident.
//!
//! `BLESS=1 cargo test --release --test program matrix` rewrites `matrix.txt`; the commit that does says why.
//!
//! AVX2 and AVX-512 give the same bits, plain code its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

use npl::kernel::{Level, available};

use crate::support::Place;

const METHODS: [&str; 5] = ["npl", "mdp-npl", "nuts", "advi", "importance"];
/// As small as experiments can be made without being others.
const TINY: [&str; 11] = [
    "repeats=1",
    "sampler.B=6",
    "nuts.chains=1",
    "nuts.warmup=4",
    "nuts.max_depth=4",
    "advi.max_iterations=8",
    "advi.eta=0.1",
    "advi.elbo_samples=2",
    "advi.elbo_every=4",
    "output.samples=samples.csv",
    "sampler.max_failed=1.0",
];

/// One experiment by one method.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    config: String,
    method: &'static str,
    tested: bool,
}

impl Cell {
    fn key(&self, class: &str) -> String {
        let rows = if self.tested { "test" } else { "alone" };
        format!("{} {} {rows} {class}", self.config, self.method)
    }
}

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    code: i32,
    /// The start of the SHA-256 of the draws, times aside; `-` if there are none.
    draws: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Names of all experiment files below `configs/`.
fn experiments() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["", "starters/"] {
        for entry in fs::read_dir(root().join("configs").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".toml") {
                found.push(format!("{folder}{name}"));
            }
        }
    }
    found.sort();
    found
}

/// Where the paper's data are, if they are at hand.
fn data() -> Option<PathBuf> {
    let places = [std::env::var("NPL_DATA").ok().map(PathBuf::from), Some(root().join("../shared/data"))];
    places.into_iter().flatten().find(|folder| folder.join("toy").is_dir())
}

/// Runs a cell; `None` if its data are missing, or what is wrong with how it ended.
fn run(cell: &Cell, level: Level) -> Option<Result<Outcome, String>> {
    let place = Place::new();
    let config = root().join("configs").join(&cell.config);
    let text = fs::read_to_string(&config).unwrap();
    let reads_files = text.lines().any(|line| line.starts_with("train = "));
    let mut command = place.command(&["run"]);
    command.arg(&config).args(["--threads", "1", "--quiet", "--out", "run", "--simd", level.name()]);
    match data() {
        Some(folder) => command.arg("--data-dir").arg(folder),
        None if reads_files => return None,
        None => &mut command,
    };
    let method = format!("method={}", cell.method);
    let rows = if cell.tested { "data.test_rows=20" } else { "data.test_rows=0" };
    let path = text.contains("[path]").then_some("path.geometric.count=2");
    // Files that are split have rare classes, of which few rows have none.
    let few = (!text.contains("split = ")).then_some("data.rows=60");
    for set in TINY.into_iter().chain([&*method, rows]).chain(path).chain(few) {
        command.args(["--set", set]);
    }
    let output = command.output().unwrap();
    let code = output.status.code().expect("no signal");
    let said = String::from_utf8_lossy(&output.stderr);
    let shown = format!("{} on {}: exit {code}, {said}", cell.key("any class"), level.name());
    if !matches!(code, 0 | 2 | 3) || code != 0 && said.trim().is_empty() || said.contains("panicked") {
        return Some(Err(shown));
    }
    let draws = fs::read(place.path("run/samples.csv")).map_or("-".to_owned(), |bytes| digest(&bytes));
    Some(Ok(Outcome { code, draws }))
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The levels that give the same bits.
fn class(level: Level) -> &'static str {
    if level == Level::PLAIN { "plain" } else { "vector" }
}

fn recorded() -> BTreeMap<String, Outcome> {
    let text = fs::read_to_string(root().join("tests/program/matrix.txt")).unwrap_or_default();
    let parse = |line: &str| {
        let (key, rest) = line.rsplit_once(" exit ").expect("cell, then exit code and digest");
        let (code, draws) = rest.split_once(' ').expect("exit code, then digest");
        (key.to_owned(), Outcome { code: code.parse().unwrap(), draws: draws.to_owned() })
    };
    text.lines().filter(|line| !line.starts_with('#')).map(parse).collect()
}

/// All tasks on all cores.
pub fn on_all_cores<T: Sync>(tasks: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(task);
                }
            });
        }
    });
}

#[test]
fn every_experiment_by_every_method_ends_as_recorded() {
    let bless = std::env::var_os("BLESS").is_some();
    let expected = recorded();
    let cells: Vec<(Cell, Level)> = experiments()
        .iter()
        .flat_map(|config| METHODS.map(|method| (config.clone(), method)))
        .flat_map(|(config, method)| {
            [true, false].map(|tested| Cell { config: config.clone(), method, tested })
        })
        .flat_map(|cell| available().map(move |level| (cell.clone(), level)))
        .collect();
    let found: Mutex<BTreeMap<String, Outcome>> = Mutex::new(BTreeMap::new());
    let wrong: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let missing = AtomicUsize::new(0);
    on_all_cores(&cells, |(cell, level)| {
        let key = cell.key(class(*level));
        let outcome = match run(cell, *level) {
            Some(Ok(outcome)) => outcome,
            Some(Err(why)) => return wrong.lock().unwrap().push(why),
            None => {
                missing.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
        let before = found.lock().unwrap().insert(key.clone(), outcome.clone());
        if before.as_ref().is_some_and(|before| *before != outcome) {
            wrong.lock().unwrap().push(format!("{key}: levels differ, {before:?} and {outcome:?}"));
        }
        if !bless && expected.get(&key) != Some(&outcome) {
            let recorded = expected.get(&key);
            wrong.lock().unwrap().push(format!("{key}: {outcome:?}, recorded {recorded:?}"));
        }
    });
    let (found, wrong) = (found.into_inner().unwrap(), wrong.into_inner().unwrap());
    let ended = |code: i32| found.values().filter(|o| o.code == code).count();
    println!(
        "{} cells (experiment, method, test rows, level): of {} classes {} end with 0, {} with 2, {} with 3; {} skipped: their \
         data are missing",
        cells.len(),
        found.len(),
        ended(0),
        ended(2),
        ended(3),
        missing.into_inner(),
    );
    if bless {
        let lines = found.iter().map(|(key, o)| format!("{key} exit {} {}\n", o.code, o.draws));
        let head = "# Made by BLESS=1 cargo test --release --test program matrix\n".to_owned();
        fs::write(root().join("tests/program/matrix.txt"), head + &lines.collect::<String>()).unwrap();
    }
    assert!(wrong.is_empty(), "{} cells differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_experiment_can_be_checked() {
    let configs = experiments();
    on_all_cores(&configs, |config| {
        let path = root().join("configs").join(config);
        let text = fs::read_to_string(&path).unwrap();
        let place = Place::new();
        let mut command = place.command(&["check"]);
        command.arg(&path);
        match data() {
            Some(folder) => command.arg("--data-dir").arg(folder),
            None if text.lines().any(|line| line.starts_with("train = ")) => {
                println!("skipped: the data of {config} are missing");
                return;
            }
            None => &mut command,
        };
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{config}: {said}");
    });
}
