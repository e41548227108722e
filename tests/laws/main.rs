//! What the library promises: exact laws of the sampler, identities of every fit, and what must not matter.
//!
//! One program for all of them: a test program of its own would be linked, with all kernels, for each.

mod chains;
mod chunks;
mod conformance;
mod conventional;
mod custom;
mod design;
mod digits;
mod families;
mod functionals;
mod history;
mod invariance;
#[cfg(feature = "plot")]
mod kde;
mod large;
mod logistic;
mod measure;
mod mixture;
mod mixtures;
mod monte_carlo;
mod nuts;
mod one_minimum;
mod poisson;
#[path = "../program/support.rs"]
mod program;
mod raw_columns;
mod real_data;
mod resume;
mod sparse_mixture;
mod stream;
mod subsample;
mod support;
#[path = "../program/tempfile.rs"]
mod tempfile;
mod weibull;
mod weights;
