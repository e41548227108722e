//! What the program does, from outside: files, messages, exit codes, and the scripts around it.

mod arviz;
mod bad_inputs;
mod bench_vs_python;
#[cfg(all(feature = "plot", unix))]
mod browser;
mod cli;
mod directions;
mod docs;
mod expressions;
mod facts;
#[cfg(unix)]
mod fetch;
mod formats;
mod matrix;
mod methods;
mod metrics;
#[cfg(unix)]
mod paper;
mod path;
#[cfg(feature = "plot")]
mod plot;
mod plotting;
mod relabel;
#[cfg(feature = "plot")]
mod report;
#[cfg(unix)]
mod resume;
mod samples;
mod scaling;
mod support;
mod tables;
mod tempfile;
mod warnings;
