//! The posterior bootstrap with a Dirichlet process prior (Algorithms 1 to 4).

use std::sync::Arc;

use super::start::Start;
use super::{Case, Effort, Findings, Inference, Job, Machine, Prepared, ReadyTrial, Trial, bootstrap, law};
use crate::error::Result;
use crate::experiment::Experiment;
use crate::model::{Model, PRIOR_KEYS, Stage};
use crate::process::base::BaseConfig;
use crate::process::{Prior, Truncation};
use crate::samples::Relation;

pub struct Npl;

impl Inference for Npl {
    fn is_bootstrap(&self) -> bool {
        true
    }

    fn write_out(
        &self,
        experiment: &mut Experiment,
        model: &dyn Model,
    ) -> std::result::Result<(), (&'static str, String)> {
        bootstrap::write_out(experiment, model)?;
        law::write_out(experiment, model)
    }

    /// The prior on θ, but where pseudo-samples or starts are made of it.
    fn idle(&self, experiment: &Experiment) -> Vec<String> {
        let base = experiment.prior.as_ref().and_then(|prior| prior.base.as_ref());
        if bootstrap::uses_advi(experiment) || base == Some(&BaseConfig::PriorPredictive) {
            return Vec::new();
        }
        let of_stage = |stage: &Stage| format!("stage.{}.model.{}", stage.name, stage.model.name());
        let mut tables: Vec<String> = experiment.model.stages().iter().map(of_stage).collect();
        tables.push(experiment.model.key(""));
        tables.iter().flat_map(|table| PRIOR_KEYS.iter().map(move |key| format!("{table}.{key}"))).collect()
    }

    fn uses_table(&self, table: &str, experiment: &Experiment) -> bool {
        table == "advi" && bootstrap::uses_advi(experiment)
    }

    fn statistics(&self) -> &'static [&'static str] {
        bootstrap::STATISTICS
    }

    fn label(&self, experiment: &Experiment) -> String {
        bootstrap::with_alpha(bootstrap::label(experiment), experiment)
    }

    fn relation(&self, experiment: &Experiment, model: &dyn Model) -> Relation {
        bootstrap::relation(experiment, model)
    }

    fn effort(&self, experiment: &Experiment) -> Effort {
        if law::is_asked_for(experiment) { Effort::Sort } else { Effort::Draws }
    }

    fn alpha(&self, experiment: &Experiment) -> f64 {
        experiment.prior.as_ref().map_or(0.0, |p| p.alpha.get())
    }

    fn prepare(&self, case: &Case) -> Result<Box<dyn Prepared>> {
        let prior = Arc::new(case.prior()?);
        if law::is_asked_for(case.experiment) {
            return law::prepare(case);
        }
        let start = case.start(&prior)?;
        Ok(Box::new(Bootstrap { prior, start }))
    }
}

struct Bootstrap {
    prior: Arc<Prior>,
    start: Start,
}

impl Prepared for Bootstrap {
    fn prior(&self) -> Arc<Prior> {
        self.prior.clone()
    }

    fn truncation(&self) -> Option<Truncation> {
        match *self.prior {
            Prior::Dp { truncation, .. } => Some(truncation),
            Prior::Noninformative => None,
        }
    }

    fn restarts(&self) -> usize {
        self.start.restarts()
    }

    fn bootstrap(
        &self,
        at: &Trial,
        machine: Machine,
        known: Option<&Findings>,
    ) -> Option<Result<ReadyTrial>> {
        let started = self.start.scheme(at, machine, known);
        Some(started.map(|(scheme, findings)| ReadyTrial::of(at, self.prior.clone(), scheme, findings)))
    }

    fn run(&self, job: &mut Job) -> Result<()> {
        bootstrap::run(self, job)
    }
}
