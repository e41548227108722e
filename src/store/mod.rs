//! The run directory, and the only place that writes files: a result file is absent or whole.

mod atomic;
mod copy;
mod disk;
mod draws;
#[cfg(test)]
pub mod faulty;
mod folder;
mod manifest;
mod parts;
mod seen;

pub use atomic::{AtomicFile, write_file};
pub use copy::{refuse_output, relabelled, write_draws};
pub use disk::{Disk, Lock, Output, RealDisk};
pub use draws::DrawFile;
pub use folder::{Existing, RunDir, Shelf};
pub use manifest::{
    Machine, Manifest, believe_all, damage, file_of, is_finished, read_manifest, read_report, relation_of,
    samples_of, utc,
};
pub use parts::{Identity, Part, PartWriter, Record, Shard, ranges, record, seal, sealed, shards};
pub use seen::saw_different_rows;

use crate::samples::Format;

/// Where draws are if nothing else is asked for.
pub const SAMPLES: &str = "samples.csv";
pub const REPORT: &str = "report.csv";
pub const REPORT_JSON: &str = "report.json";
pub const SUMMARY: &str = "summary.csv";
pub const PATH: &str = "path.csv";
pub const CONFIG: &str = "config.toml";
pub const MANIFEST: &str = "manifest.json";
/// How new rows are prepared like the training rows.
pub const PREPARATION: &str = "preparation.json";
/// The ELBO of a variational fit.
pub const ELBO: &str = "elbo.csv";
/// The log predictive density of every test row.
pub const POINTWISE: &str = "pointwise.csv";
/// The log likelihood of every training row by every draw of chains.
pub const LOG_LIK: &str = "log_lik.npy";
/// How much every training row moves each parameter.
pub const INFLUENCE: &str = "influence.csv";
/// How often intervals cover, and what came of every data set.
pub const COVERAGE: &str = "coverage.csv";
pub const COVERAGE_JSON: &str = "coverage.json";
pub const DATASETS: &str = "datasets.csv";
/// Names that no file of draws may have.
pub const RESERVED: [&str; 14] = [
    REPORT,
    REPORT_JSON,
    SUMMARY,
    PATH,
    ELBO,
    POINTWISE,
    LOG_LIK,
    INFLUENCE,
    CONFIG,
    PREPARATION,
    MANIFEST,
    COVERAGE,
    COVERAGE_JSON,
    DATASETS,
];
/// A page about the run, which is no result: no manifest lists it.
pub const PAGE: &str = "report.html";
/// What such a page says made it, among its first so many bytes.
pub const GENERATOR: &str = "npl report";
const PAGE_HEAD: u64 = 1024;
/// Whoever holds it writes to the folder. It stays when they are done.
pub const LOCK: &str = ".npl.lock";
/// What is kept of a run while it goes on, and what more draws are added to.
pub const CHUNKS: &str = ".npl-chunks";
/// Results that are being made.
const NEW: &str = ".npl-new";
/// Results that are made, on their way to their names: they count from here on.
const SWAP: &str = ".npl-swap";

/// The files that draws of this name are made of; none if it is not a name for draws.
pub fn draw_files(samples: &str) -> Vec<String> {
    match Format::of(samples) {
        Ok(format) if !RESERVED.contains(&samples) => {
            [samples.to_owned()].into_iter().chain(format.names_file(samples)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a run may have written a file of this name.
fn is_ours(name: &str) -> bool {
    let names = Format::named_by(name).is_some_and(|draws| !draw_files(&draws).is_empty());
    name == PAGE || RESERVED.contains(&name) || !draw_files(name).is_empty() || names
}

/// The names that results have if nothing else is asked for: a run may remove these, whoever wrote them, and no others.
fn usual_names() -> Vec<String> {
    let of = |format: &Format| draw_files(&format!("samples{}", format.ending()));
    Format::ALL.iter().flat_map(of).chain(RESERVED.map(String::from)).collect()
}
