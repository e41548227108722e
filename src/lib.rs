//! Bayesian nonparametric learning with the posterior bootstrap (Fong, Lyddon and Holmes 2019).
//!
//! Data flow one way: TOML → [`experiment`] → [`study`] (data, model, prior) → [`bootstrap`] → draws → [`evaluate`] →
//! [`report`] → files. Read [`bootstrap`] first.
//!
//! - [`config`], [`experiment`]: a file that remembers its lines; the experiment as the user writes it
//! - [`data`]: observed atoms: readers, simulators, splits
//! - [`process`]: the Dirichlet process posterior; one draw of it is a weighted set of atoms
//! - [`penalty`]: what a loss may have added to it
//! - [`model`]: parameters of interest: a loss with a way to minimise it
//! - [`optim`]: what a local search is told and what it answers
//! - [`init`], [`restarts`]: where searches start, and when enough have been made
//! - [`bootstrap`]: Algorithms 1 to 4
//! - [`bayes`]: conventional Bayes, for comparison: NUTS, ADVI, importance sampling
//! - [`method`]: the ways to make draws, one file each
//! - [`ordered`]: work on all threads, results in order
//! - [`samples`], [`evaluate`], [`report`]: draws, numbers made of them, and how far to trust those
//! - [`path`]: the posterior at one setting of a path
//! - [`study`]: an experiment, checked
//! - [`run`]: its rounds, in chunks of draws that are folded in order
//! - [`coverage`]: how often intervals cover, over data sets of which the truth is known
//! - [`predict`], [`compare`]: what a finished run says of new rows; which of several predicts better
//! - `plot`: pictures of runs; a default feature
//! - `page`: runs as one page of HTML; with `plot`
//! - [`store`]: the run directory; the only place that writes files
//! - [`storage`]: vectors in memory or in mapped files
//! - [`bytes`]: values as bytes and back, bit by bit
//! - [`kernel`]: the hot loops, compiled for AVX-512, AVX2 and plain code
//! - [`linalg`], [`rng`], [`math`], [`words`], [`error`]: what all of them need

#![deny(unsafe_code)]

pub mod bayes;
pub mod bootstrap;
pub mod bytes;
pub mod compare;
pub mod config;
pub mod coverage;
pub mod data;
pub mod error;
pub mod evaluate;
pub mod experiment;
pub mod expression;
pub mod influence;
pub mod init;
pub mod kernel;
pub mod linalg;
pub mod math;
pub mod method;
pub mod model;
pub mod optim;
pub mod ordered;
#[cfg(feature = "plot")]
pub mod page;
pub mod path;
pub mod penalty;
#[cfg(feature = "plot")]
pub mod plot;
pub mod predict;
pub mod process;
pub mod report;
pub mod restarts;
pub mod rng;
pub mod run;
pub mod samples;
pub mod storage;
pub mod store;
pub mod study;
#[cfg(test)]
#[path = "../tests/program/tempfile.rs"]
mod tempfile;
pub mod words;
