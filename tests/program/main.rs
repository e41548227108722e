//! What the program does, from outside: files, messages, exit codes, and the scripts around it.

mod arviz;
mod bad_inputs;
mod bench_vs_python;
#[cfg(all(feature = "plot", unix))]
mod browser;
mod cache;
mod cli;
mod columns;
mod comfort;
mod compare;
mod copies;
mod coverage;
mod crossed;
mod directions;
mod docs;
mod expressions;
mod facts;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(unix)]
mod fetch;
mod folds;
mod formats;
mod fuzz;
mod groups;
mod hard_data;
#[cfg(target_arch = "x86_64")]
mod kernels;
mod matrix;
#[cfg(target_os = "linux")]
mod memory;
mod methods;
mod metrics;
#[cfg(unix)]
mod paper;
mod parquet_data;
mod path;
#[cfg(feature = "plot")]
mod plot;
mod plotting;
mod predict;
mod questions;
mod relabel;
#[cfg(feature = "plot")]
mod report;
#[cfg(unix)]
mod resume;
mod same_bytes;
mod samples;
#[cfg(unix)]
mod scale;
mod scaling;
mod security;
mod stages;
mod support;
mod tables;
mod tempfile;
mod tutorial;
mod values;
mod warm;
mod warnings;
