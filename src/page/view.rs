//! A run as the page sees it.

use super::Wanted;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::plot::{Options, Request, Source};
use crate::report::Report;
use crate::samples::{Relabelling, Summary};
use crate::store::{self, Manifest};

pub struct View {
    /// Its draws as they are.
    pub source: Source,
    /// Its draws with their components aligned, where labels mean nothing otherwise, and what that did.
    pub aligned: Option<(Source, Relabelling)>,
    /// Its draws with coefficients in the units of the data, where those of the runs beside it are in others.
    pub of_data: Option<Source>,
    pub manifest: Manifest,
    /// `config.toml` as it is written.
    pub config: String,
    /// The experiment, if this version can read it.
    pub experiment: Option<Experiment>,
    /// The repeat or setting that is shown.
    pub round: usize,
    /// Draws of all repeats count, not those of one.
    overall: bool,
}

impl View {
    /// `align`: components of a mixture are put in the same order in every draw.
    pub fn open(source: Source, wanted: &Wanted, align: bool) -> Result<View> {
        let options = Options { repeat: wanted.repeat, setting: wanted.setting, ..Options::default() };
        let round = Request { runs: &[], options: &options }.round(&source)?;
        let manifest = store::read_manifest(&source.folder)?;
        let config = std::fs::read_to_string(source.folder.join(store::CONFIG)).unwrap_or_default();
        let experiment = source.config().ok().map(|(_, experiment)| experiment);
        let aligned = match align && source.is_mixture() && source.path().is_none() {
            // Draws that cannot be aligned are shown as they are.
            true => source.again()?.relabelled_by_means().ok(),
            false => None,
        };
        let overall = wanted.repeat.is_none();
        Ok(View { source, aligned, of_data: None, manifest, config, experiment, round, overall })
    }

    pub fn report(&self) -> &Report {
        &self.source.report
    }

    pub fn label(&self) -> &str {
        &self.source.label
    }

    /// The draws whose parameters can be held against those of other runs: aligned ones, or in the units of the data, where
    /// there are such.
    pub fn comparable(&self) -> &Source {
        let aligned = self.aligned.as_ref().map(|(source, _)| source);
        aligned.or(self.of_data.as_ref()).unwrap_or(&self.source)
    }

    /// Numbers of all parameters, of all repeats together or of one.
    pub fn summaries(&self, source: &Source) -> Result<Vec<Summary>> {
        if self.overall { source.overall() } else { source.summaries(self.round) }
    }

    /// What the numbers of the parameters are of, where there are several repeats.
    pub fn which(&self) -> Option<String> {
        let rounds = self.source.rounds();
        match (rounds > 1, self.overall) {
            (false, _) => None,
            (true, true) => Some(format!("Draws of all {rounds} repeats together.")),
            (true, false) => Some(format!("Draws of repeat {} of {rounds}.", self.round)),
        }
    }
}
