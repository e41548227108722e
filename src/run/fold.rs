//! Chunks folded in their order: what a round has to say.

use super::{Scores, Sums};
use crate::method::{Findings, Trial};
use crate::path::{PathPoint, SettingDraws};
use crate::report::{ChainSum, Diagnostics, Repeat};
use crate::samples::Sample;

/// What of a round needs the draws themselves.
pub struct Fold {
    chains: Option<ChainSum>,
    setting: Option<SettingDraws>,
    /// Entries of a draw, and in how many draws each is no number.
    undefined: Vec<(String, usize)>,
}

impl Fold {
    /// Of draws with these parameters; `along_path` if they are a setting of a path.
    pub fn new(trial: &Trial, names: Vec<String>, along_path: bool) -> Fold {
        let chains = trial.chains().map(|tuning| ChainSum::new(names.clone(), tuning.chains, tuning.warmup));
        let undefined = names.iter().map(|name| (name.clone(), 0)).collect();
        let setting = along_path.then(|| SettingDraws::new(names));
        Fold { chains, setting, undefined }
    }

    /// The draw that comes next.
    pub fn add(&mut self, row: &Sample) {
        self.chains.iter_mut().for_each(|chains| chains.add_sample(row));
        if row.failed() {
            return;
        }
        self.setting.iter_mut().for_each(|setting| setting.add(&row.theta));
        let entries = self.undefined.iter_mut().zip(&row.theta);
        entries.for_each(|((_, count), value)| *count += usize::from(!value.is_finite()));
    }

    /// The numbers of the round, with the sums of all its chunks; and its points, if it is a setting of a path that counts
    /// numbers below `near_zero` as near zero.
    pub fn finish(
        self,
        scores: &Scores,
        sums: &Sums,
        findings: Findings,
        facts: Repeat,
        near_zero: f64,
    ) -> (Repeat, Vec<PathPoint>) {
        let done = scores.report(sums, facts);
        let Findings { chains, advi, elbo, .. } = findings;
        let chains = self.chains.map(|chains| chains.report()).or(chains);
        let undefined = self.undefined.into_iter().filter(|(_, count)| *count > 0).collect();
        let diagnostics = Diagnostics { chains, advi, undefined, ..done.diagnostics };
        let points = self.setting.map(|setting| setting.points(near_zero)).unwrap_or_default();
        (Repeat { elbo, diagnostics, ..done }, points)
    }
}
