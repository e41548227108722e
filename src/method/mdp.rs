//! MDP-NPL (Lyddon, Walker and Holmes 2018, Algorithm 1): the posterior bootstrap with a mixture of Dirichlet processes, centred
//! on the model at draws from its conventional posterior.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::start::Start;
use super::{
    Case, Effort, Findings, Inference, Job, Machine, Prepared, ReadyTrial, Say, Trial, bootstrap, nuts,
};
use crate::bayes::ChainPlan;
use crate::config::printable;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::init::Init;
use crate::model::{Model, Sampled};
use crate::process::{BaseMeasure, Prior, Pseudo, Truncation};
use crate::report::{ChainReport, ChainSum};
use crate::rng::Rng;
use crate::samples::{Kinship, Relation, Samples};

/// NPL with a mixture of Dirichlet processes as its prior (Lyddon, Walker and Holmes 2018): the base measure of each
/// draw is the model at a draw from its posterior. `prior.alpha` and `prior.T` are those of the DP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where the posterior draws come from.
    #[serde(default)]
    pub centre: CentreConfig,
}

/// Posterior draws that centre the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CentreConfig {
    /// From NUTS, run first with the settings of `[nuts]`.
    #[default]
    Nuts,
    /// From an earlier run: its directory. Repeat i takes the draws of its repeat i.
    Run(String),
}

fn centre(experiment: &Experiment) -> CentreConfig {
    experiment.mdp.clone().unwrap_or_default().centre
}

pub struct MdpNpl;

impl Inference for MdpNpl {
    fn is_bootstrap(&self) -> bool {
        true
    }

    fn problems(&self, experiment: &Experiment, say: &mut Say) {
        if centre(experiment) == CentreConfig::Nuts {
            nuts::problems(experiment, say);
        }
    }

    fn write_out(
        &self,
        experiment: &mut Experiment,
        model: &dyn Model,
    ) -> std::result::Result<(), (&'static str, String)> {
        experiment.mdp.get_or_insert_default();
        if centre(experiment) == CentreConfig::Nuts {
            experiment.nuts.get_or_insert_default();
        }
        bootstrap::write_out(experiment, model)
    }

    /// The base measure is the model.
    fn idle(&self, _experiment: &Experiment) -> Vec<String> {
        vec!["prior.base".into(), "sampler.law".into()]
    }

    fn table(&self) -> Option<&'static str> {
        Some("mdp")
    }

    fn uses_table(&self, table: &str, experiment: &Experiment) -> bool {
        match table {
            "nuts" => centre(experiment) == CentreConfig::Nuts,
            "advi" => bootstrap::uses_advi(experiment),
            _ => false,
        }
    }

    fn inputs(&self, experiment: &Experiment) -> Vec<PathBuf> {
        match centre(experiment) {
            CentreConfig::Nuts => Vec::new(),
            CentreConfig::Run(run) => crate::store::samples_of(Path::new(&run)).into_iter().collect(),
        }
    }

    fn statistics(&self) -> &'static [&'static str] {
        bootstrap::STATISTICS
    }

    fn label(&self, experiment: &Experiment) -> String {
        let label = bootstrap::label(experiment).replacen("RR-NPL", "NPL", 1);
        bootstrap::with_alpha(format!("MDP-{label}"), experiment)
    }

    fn relation(&self, experiment: &Experiment, model: &dyn Model) -> Relation {
        bootstrap::relation(experiment, model)
    }

    fn not_extendable(&self, experiment: &Experiment) -> Option<&'static str> {
        let why = "the chains that centre it have as many draws as it has; with `mdp.centre = { run = … }` they would not";
        (centre(experiment) == CentreConfig::Nuts).then_some(why)
    }

    fn effort(&self, experiment: &Experiment) -> Effort {
        match centre(experiment) {
            CentreConfig::Nuts => nuts::effort(experiment, true),
            CentreConfig::Run(_) => Effort::Draws,
        }
    }

    fn prepare(&self, case: &Case) -> Result<Box<dyn Prepared>> {
        let start = case.start(&Prior::Noninformative)?;
        if !case.model.is_likelihood() {
            let message = "this loss is no likelihood: there is no model to centre the prior on";
            return Err(case.problem("method", message));
        }
        let Some(config) = case.experiment.prior.as_ref().filter(|p| p.alpha.get() > 0.0) else {
            let message = "\"mdp-npl\" needs `prior.alpha` above 0: the weight of the model in rows of data";
            return Err(case.problem("prior", message));
        };
        let Some(sampled) = case.model.sampled() else {
            let message = format!(
                "\"mdp-npl\" draws rows from the model at draws from its posterior, and rows of {} cannot be drawn",
                case.experiment.model.table()
            );
            return Err(case.problem("method", message));
        };
        let truncation = case.truncation(config, sampled == Sampled::Finite, case.train)?;
        let centre = match centre(case.experiment) {
            CentreConfig::Nuts => {
                case.posterior()?;
                let settings = case.experiment.nuts.clone().unwrap_or_default();
                let draws = case.experiment.sampler.draws.get();
                Centre::Nuts { init: case.begin(settings.begin)?, settings, draws }
            }
            CentreConfig::Run(path) => Centre::Draws(Arc::new(of_run(case, &path)?)),
        };
        Ok(Box::new(Mixture { alpha: config.alpha.get(), truncation, centre, start }))
    }
}

/// The draws of this repeat of an earlier run.
fn of_run(case: &Case, path: &str) -> Result<Vec<Vec<f64>>> {
    let key = "mdp.centre.run";
    let wrong = |e: Error| case.problem(key, e.to_string());
    let run = Path::new(path);
    let samples = crate::store::samples_of(run).and_then(|file| Samples::open(&file)).map_err(wrong)?;
    if crate::store::relation_of(run, &samples).draws == Kinship::Weighted {
        let message =
            format!("the draws of {} have weights, and a centre takes each for one", printable(path));
        return Err(case.problem(key, message));
    }
    let round = match (case.group, samples.grouping().map_err(wrong)?) {
        (None, None) => Some(case.repeat + 1),
        (Some(group), Some(all)) => {
            let of = |&(g, repeat): &(usize, usize)| all.names[g] == group && repeat == case.repeat + 1;
            all.rounds.iter().position(of).map(|round| round + 1)
        }
        (Some(_), None) => {
            let message =
                format!("the draws of {} are of no groups, and `data.by` makes some", printable(path));
            return Err(case.problem(key, message));
        }
        (None, Some(_)) => {
            let message =
                format!("the draws of {} are of groups, and this experiment has none", printable(path));
            return Err(case.problem(key, message));
        }
    };
    let draws = match round {
        Some(round) => samples.of_repeat(&case.model.names(), round).map_err(wrong)?,
        None => Vec::new(),
    };
    if draws.is_empty() {
        let message = format!("{} has no draws of repeat {}", printable(path), case.repeat + 1);
        return Err(case.problem(key, message));
    }
    Ok(draws)
}

/// A mixture of Dirichlet processes, before it has a centre.
struct Mixture {
    alpha: f64,
    truncation: Truncation,
    centre: Centre,
    start: Start,
}

type Draws = Arc<Vec<Vec<f64>>>;

/// Where the posterior draws that centre it come from.
enum Centre {
    Draws(Draws),
    Nuts { settings: nuts::Settings, draws: usize, init: Option<Init> },
}

impl Centre {
    fn draws(&self, at: &Trial, machine: Machine) -> Result<(Draws, Option<ChainReport>)> {
        let (settings, draws, init) = match self {
            Centre::Draws(draws) => return Ok((draws.clone(), None)),
            Centre::Nuts { settings, draws, init } => (settings, *draws, init.as_ref()),
        };
        let posterior = at.posterior()?;
        let mut chains =
            ChainSum::new(posterior.joint().names(), settings.chains.get(), settings.warmup.get());
        let parameters = at.model.names().len();
        let mut centre = Vec::new();
        let Machine { pool, cancel } = machine;
        let (tuning, seed, threads) = (settings.tuning(), at.seed, pool.current_num_threads());
        let wanted = 0..tuning.chains;
        let plan = ChainPlan { tuning, wanted, draws, init, seed, threads, cancel };
        posterior.nuts(&plan, |mut draw| {
            chains.add(&draw);
            draw.theta.truncate(parameters);
            centre.push(draw.theta);
            Ok(())
        })?;
        Ok((Arc::new(centre), Some(pool.install(|| chains.report()))))
    }
}

impl Prepared for Mixture {
    fn truncation(&self) -> Option<Truncation> {
        Some(self.truncation)
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
        let ready = || {
            let (scheme, mut findings) = self.start.scheme(at, machine, known)?;
            let (draws, chains) = match known.and_then(|known| known.fitted.centre.clone()) {
                Some(draws) => (draws, known.and_then(|known| known.chains.clone())),
                None => self.centre.draws(at, machine)?,
            };
            // The draws of an earlier run are there anyway.
            if let Centre::Nuts { .. } = self.centre {
                findings.fitted.centre = Some(draws.clone());
            }
            let base = Box::new(Centred { model: at.model.clone(), draws, rows: at.train.clone() });
            let prior = Prior::Dp { alpha: self.alpha, base, truncation: self.truncation };
            Ok(ReadyTrial::of(at, Arc::new(prior), scheme, Findings { chains, ..findings }))
        };
        Some(ready())
    }

    fn run(&self, job: &mut Job) -> Result<()> {
        bootstrap::run(self, job)
    }
}

/// f_θ̃ with θ̃ from the conventional posterior, another for each draw of the bootstrap.
struct Centred {
    model: Arc<dyn Model>,
    /// Draw b of the bootstrap takes draw b of these, from the first again after the last.
    draws: Draws,
    /// Where the covariates of pseudo-samples come from.
    rows: Arc<Dataset>,
}

impl Centred {
    fn at(&self, draw: usize) -> Box<dyn BaseMeasure> {
        self.model.sampling(&self.draws[draw], &self.rows).expect("rows can be drawn: checked with the study")
    }
}

impl BaseMeasure for Centred {
    /// From the mixture: all from one of its members.
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo {
        self.at(rng.random_range(0..self.draws.len())).sample(t, rng)
    }

    fn of_draw(&self, draw: u64) -> Option<Box<dyn BaseMeasure>> {
        Some(self.at((draw % self.draws.len() as u64) as usize))
    }
}
