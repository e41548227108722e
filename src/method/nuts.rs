//! The conventional posterior by the No-U-Turn Sampler.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Begin, Case, Effort, Inference, Job, Made, Prepared, Say, Unit, conventional, log_densities};
use crate::bayes::{ChainPlan, ChainTuning};
use crate::config::{Count, OpenUnit};
use crate::data::Dataset;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::init::Init;
use crate::model::Model;
use crate::optim::Status;
use crate::samples::{self, Kinship, Relation, Sample};

/// The No-U-Turn Sampler (Hoffman and Gelman 2014). `sampler.B` draws in all, as many from each chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Draws of each chain that tune step size and mass matrix, and are not kept.
    #[serde(default = "Settings::default_warmup")]
    pub warmup: Count,
    /// Independent chains; they run in parallel.
    #[serde(default = "Settings::default_chains")]
    pub chains: Count,
    /// Mean acceptance statistic that the step size is tuned to. Nearer to 1: smaller steps, fewer divergences.
    #[serde(default = "Settings::default_target_accept")]
    pub target_accept: OpenUnit,
    /// A trajectory has at most 2 to the power of this many steps.
    #[serde(default = "Settings::default_max_depth")]
    pub max_depth: Count,
    /// Where chains begin.
    #[serde(default)]
    pub begin: Begin,
}

impl Settings {
    fn default_warmup() -> Count {
        Count::new(1000).expect("at least one")
    }

    fn default_chains() -> Count {
        Count::new(4).expect("at least one")
    }

    fn default_target_accept() -> OpenUnit {
        OpenUnit::new(0.8).expect("strictly between 0 and 1")
    }

    fn default_max_depth() -> Count {
        Count::new(10).expect("at least one")
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            warmup: Self::default_warmup(),
            chains: Self::default_chains(),
            target_accept: Self::default_target_accept(),
            max_depth: Self::default_max_depth(),
            begin: Begin::default(),
        }
    }
}

impl Settings {
    pub fn tuning(&self) -> ChainTuning {
        ChainTuning {
            warmup: self.warmup.get(),
            chains: self.chains.get(),
            target_accept: self.target_accept.get(),
            max_depth: self.max_depth.get(),
        }
    }
}

fn settings(experiment: &Experiment) -> Settings {
    experiment.nuts.clone().unwrap_or_default()
}

/// What keeps chains from being run.
pub fn problems(experiment: &Experiment, say: &mut Say) {
    let (draws, chains) = (experiment.sampler.draws.get(), settings(experiment).chains.get());
    if draws % chains != 0 {
        let message =
            format!("`sampler.B` = {draws} cannot be shared out evenly over {chains} chains (`nuts.chains`)");
        say("sampler.B", message);
    }
}

/// Trajectories, and, if `then_draws`, what they are made for.
pub fn effort(experiment: &Experiment, then_draws: bool) -> Effort {
    let settings = settings(experiment);
    let (chains, draws) = (settings.chains.get(), experiment.sampler.draws.get());
    let count = settings.warmup.get() * chains + draws;
    Effort::Trajectories { count, longest: (1u64 << settings.max_depth.get()) - 1, chains, then_draws }
}

pub struct Nuts;

impl Inference for Nuts {
    fn problems(&self, experiment: &Experiment, say: &mut Say) {
        problems(experiment, say);
    }

    fn sizes(&self, experiment: &Experiment) -> Vec<(&'static str, usize, usize)> {
        let Some(nuts) = &experiment.nuts else { return Vec::new() };
        vec![
            ("nuts.warmup", nuts.warmup.get(), 1_000_000_000),
            ("nuts.chains", nuts.chains.get(), 10_000),
            ("nuts.max_depth", nuts.max_depth.get(), 30),
        ]
    }

    fn write_out(
        &self,
        experiment: &mut Experiment,
        _model: &dyn Model,
    ) -> std::result::Result<(), (&'static str, String)> {
        experiment.nuts.get_or_insert_default();
        Ok(())
    }

    fn idle(&self, experiment: &Experiment) -> Vec<String> {
        conventional::idle(settings(experiment).begin)
    }

    fn table(&self) -> Option<&'static str> {
        Some("nuts")
    }

    fn statistics(&self) -> &'static [&'static str] {
        &[samples::DIVERGENT, samples::STEP_SIZE]
    }

    fn label(&self, _experiment: &Experiment) -> String {
        "NUTS".to_owned()
    }

    fn relation(&self, experiment: &Experiment, model: &dyn Model) -> Relation {
        let chains = settings(experiment).chains.get();
        let each = experiment.sampler.draws.get() / chains;
        Relation {
            draws: Kinship::Chains { chains, each },
            exchangeable: false,
            components: model.components(),
        }
    }

    fn not_extendable(&self, _experiment: &Experiment) -> Option<&'static str> {
        Some(
            "the chains of NUTS end where they end: longer ones are other chains, and more of them are other runs",
        )
    }

    fn unit(&self, experiment: &Experiment) -> Unit {
        Unit::Chain((experiment.sampler.draws.get() / settings(experiment).chains.get()) as u64)
    }

    fn effort(&self, experiment: &Experiment) -> Effort {
        effort(experiment, false)
    }

    fn parameters(&self, model: &dyn Model, train: &Dataset) -> Vec<String> {
        conventional::parameters(model, train)
    }

    fn prepare(&self, case: &Case) -> Result<Box<dyn Prepared>> {
        case.posterior()?;
        let settings = settings(case.experiment);
        Ok(Box::new(Chains { init: case.begin(settings.begin)?, settings }))
    }
}

struct Chains {
    settings: Settings,
    init: Option<Init>,
}

impl Prepared for Chains {
    fn chains(&self) -> Option<ChainTuning> {
        Some(self.settings.tuning())
    }

    fn run(&self, job: &mut Job) -> Result<()> {
        let trial = job.trial;
        let posterior = trial.posterior()?;
        let parameters = trial.model.names().len();
        let each = job.draws() / self.settings.chains.get() as u64;
        let plan = ChainPlan {
            tuning: self.settings.tuning(),
            wanted: (job.range.start / each) as usize..(job.range.end / each) as usize,
            draws: job.draws() as usize,
            init: self.init.as_ref(),
            seed: trial.seed,
            threads: job.machine.pool.current_num_threads(),
            cancel: job.machine.cancel,
        };
        let (mut chain, mut made) = (usize::MAX, 0);
        posterior.nuts(&plan, |draw| {
            // A chain that is interrupted ends early; those behind it may be whole.
            if chain != draw.chain {
                (chain, made) = (draw.chain, 0);
            }
            let index = chain as u64 * each + made;
            made += 1;
            let sample = Sample {
                index,
                objective: -draw.log_density,
                restart: draw.chain + 1,
                iterations: draw.steps,
                status: if draw.divergent { Status::Divergent } else { Status::Ok },
                extra: vec![f64::from(draw.divergent), draw.step_size],
                theta: draw.theta,
            };
            let model = trial.model.as_ref();
            let densities = job.test.map(|test| log_densities(model, parameters, &sample.theta, test));
            job.sink.put(Made::Drawn { sample, log_weight: 0.0, densities })
        })
    }
}
