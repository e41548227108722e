//! The kinds of figures, a file each.

mod bivariate;
mod calibration;
mod correlation;
mod forest;
mod lppd;
mod marginal;
pub mod mixture;
mod pairs;
mod path;
mod restarts;
mod surface;
mod tuning;

use super::canvas::Scene;
use super::options::Request;
use super::source::Source;
use crate::error::Result;

pub struct Kind {
    pub name: &'static str,
    /// What it shows, for `--help` and the documentation.
    pub about: &'static str,
    /// Several runs in one picture.
    pub overlays: bool,
    /// The options that mean something to it, as [`Options::given`](super::Options::given) calls them.
    pub uses: &'static str,
    /// Whether it says something about this run.
    pub applies: fn(&Source) -> bool,
    pub draw: fn(&Request) -> Result<Scene>,
}

/// Every kind, in the order of the documentation. One more is a file and a line.
pub const KINDS: &[Kind] = &[
    marginal::KIND,
    bivariate::KIND,
    pairs::KIND,
    forest::KIND,
    path::KIND,
    surface::KIND,
    tuning::KIND,
    mixture::KIND,
    calibration::KIND,
    correlation::KIND,
    restarts::KIND,
    lppd::KIND,
];
