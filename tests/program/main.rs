//! What the program does, from outside: files, messages, exit codes, and the scripts around it.

mod arviz;
mod bad_inputs;
mod bench_vs_python;
mod cli;
mod directions;
mod docs;
mod facts;
#[cfg(unix)]
mod fetch;
mod formats;
mod matrix;
#[cfg(feature = "nuts")]
mod methods;
mod path;
#[cfg(unix)]
mod resume;
mod scaling;
mod support;
mod tables;
mod tempfile;
mod warnings;
