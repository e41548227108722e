//! Chunks folded in their order: what a round has to say.

use super::{Chunk, Opening, Scores, Sums};
use crate::method::{Findings, Trial};
use crate::path::{PathPoint, SettingDraws};
use crate::report::{ChainSum, Diagnostics, Repeat};

/// A round of which some chunks are known.
pub struct Fold<'a> {
    scores: &'a Scores<'a>,
    sums: Sums,
    findings: Findings,
    /// What needs the draws themselves has them from the rows.
    chains: Option<ChainSum>,
    setting: Option<SettingDraws>,
}

impl<'a> Fold<'a> {
    /// Of draws with these parameters; `along_path` if they are a setting of a path.
    pub fn new(scores: &'a Scores, trial: &Trial, names: Vec<String>, along_path: bool) -> Fold<'a> {
        let chains = trial.chains().map(|tuning| ChainSum::new(names.clone(), tuning.chains, tuning.warmup));
        let setting = along_path.then(|| SettingDraws::new(names));
        Fold { scores, sums: scores.none(), findings: Findings::default(), chains, setting }
    }

    pub fn open(&mut self, opening: &Opening) {
        self.findings = opening.findings.clone();
    }

    /// The chunk that comes next.
    pub fn add(&mut self, chunk: &Chunk) {
        self.sums.fold(&chunk.sums);
        for row in &chunk.rows {
            self.chains.iter_mut().for_each(|chains| chains.add_sample(row));
            self.setting.iter_mut().filter(|_| !row.failed()).for_each(|setting| setting.add(&row.theta));
        }
    }

    /// The numbers of the round; and its points, if it is a setting of a path that counts numbers below `near_zero` as near
    /// zero.
    pub fn finish(self, facts: Repeat, near_zero: f64) -> (Repeat, Vec<PathPoint>) {
        let done = self.scores.report(&self.sums, facts);
        let Findings { chains, advi, elbo } = self.findings;
        let chains = self.chains.map(|chains| chains.report()).or(chains);
        let diagnostics = Diagnostics { chains, advi, ..done.diagnostics };
        let points = self.setting.map(|setting| setting.points(near_zero)).unwrap_or_default();
        (Repeat { elbo, diagnostics, ..done }, points)
    }
}
