//! The conventional posterior by automatic differentiation variational inference.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Begin, Case, Effort, Findings, Fitted, Inference, Job, Made, Prepared, Unit, conventional, log_densities,
};
use crate::bayes::advi::{Fit, Tuning};
use crate::config::{Count, Positive};
use crate::data::Dataset;
use crate::error::Result;
use crate::experiment::Experiment;
use crate::init::Init;
use crate::model::Model;
use crate::optim::Status;
use crate::ordered::in_order;
use crate::report::AdviReport;
use crate::rng::Purpose;
use crate::samples::{self, Relation, Sample};

/// Draws from a variational fit that a thread makes at one time.
const BLOCK: u64 = 16;

/// Automatic differentiation variational inference (Kucukelbir et al. 2017): independent normals on the unconstrained
/// scale, fitted by stochastic gradient ascent of the evidence lower bound (ELBO). The defaults are Stan's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Iterations after which the fit ends, converged or not.
    #[serde(default = "Settings::default_max_iterations")]
    pub max_iterations: Count,
    /// Draws behind each gradient of the ELBO.
    #[serde(default = "Settings::default_gradient_samples")]
    pub gradient_samples: Count,
    /// Draws behind each estimate of the ELBO.
    #[serde(default = "Settings::default_elbo_samples")]
    pub elbo_samples: Count,
    /// Iterations between two estimates of the ELBO.
    #[serde(default = "Settings::default_elbo_every")]
    pub elbo_every: Count,
    /// The fit has converged when the mean or the median of the last relative changes of the ELBO is below this.
    #[serde(default = "Settings::default_tolerance")]
    pub tolerance: Positive,
    /// Scale η of the step sizes. Left out: the best of 100, 10, 1, 0.1 and 0.01 after `adapt_iterations` each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta: Option<Positive>,
    /// Iterations that each η is tried for.
    #[serde(default = "Settings::default_adapt_iterations")]
    pub adapt_iterations: Count,
    /// Where the means of the normals begin; their standard deviations begin at 1.
    #[serde(default)]
    pub begin: Begin,
}

impl Settings {
    fn default_max_iterations() -> Count {
        Count::new(10_000).expect("at least one")
    }

    fn default_gradient_samples() -> Count {
        Count::new(1).expect("at least one")
    }

    fn default_elbo_samples() -> Count {
        Count::new(100).expect("at least one")
    }

    fn default_elbo_every() -> Count {
        Count::new(100).expect("at least one")
    }

    fn default_tolerance() -> Positive {
        Positive::new(0.01).expect("positive")
    }

    fn default_adapt_iterations() -> Count {
        Count::new(50).expect("at least one")
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_iterations: Self::default_max_iterations(),
            gradient_samples: Self::default_gradient_samples(),
            elbo_samples: Self::default_elbo_samples(),
            elbo_every: Self::default_elbo_every(),
            tolerance: Self::default_tolerance(),
            eta: None,
            adapt_iterations: Self::default_adapt_iterations(),
            begin: Begin::default(),
        }
    }
}

impl Settings {
    pub fn tuning(&self) -> Tuning {
        Tuning {
            max_iterations: self.max_iterations.get(),
            gradient_samples: self.gradient_samples.get(),
            elbo_samples: self.elbo_samples.get(),
            elbo_every: self.elbo_every.get(),
            tolerance: self.tolerance.get(),
            eta: self.eta.map(Positive::get),
            adapt_iterations: self.adapt_iterations.get(),
        }
    }
}

fn settings(experiment: &Experiment) -> Settings {
    experiment.advi.clone().unwrap_or_default()
}

/// How a fit went.
pub fn findings(fit: Fit) -> Findings {
    Findings { advi: Some(AdviReport::of(&fit)), elbo: fit.trace, ..Findings::default() }
}

/// The same, with the fit, where draws come from it.
fn with_fit(fit: Fit) -> Findings {
    let fitted = Fitted { q: Some(fit.q.clone()), ..Fitted::default() };
    Findings { fitted, ..findings(fit) }
}

pub struct Advi;

impl Inference for Advi {
    fn sizes(&self, experiment: &Experiment) -> Vec<(&'static str, usize, usize)> {
        let of = |advi: &Settings| ("advi.elbo_samples", advi.elbo_samples.get(), 1_000_000);
        experiment.advi.iter().map(of).collect()
    }

    fn write_out(
        &self,
        experiment: &mut Experiment,
        _model: &dyn Model,
    ) -> std::result::Result<(), (&'static str, String)> {
        experiment.advi.get_or_insert_default();
        Ok(())
    }

    fn idle(&self, experiment: &Experiment) -> Vec<String> {
        conventional::idle(settings(experiment).begin)
    }

    fn table(&self) -> Option<&'static str> {
        Some("advi")
    }

    fn statistics(&self) -> &'static [&'static str] {
        &[samples::LOG_Q]
    }

    fn label(&self, _experiment: &Experiment) -> String {
        "ADVI".to_owned()
    }

    fn relation(&self, _experiment: &Experiment, model: &dyn Model) -> Relation {
        Relation { components: model.components(), ..Relation::INDEPENDENT }
    }

    fn not_extendable(&self, _experiment: &Experiment) -> Option<&'static str> {
        Some("the draws of ADVI cost nothing beside its fit: make as many as you like from the start")
    }

    fn unit(&self, _experiment: &Experiment) -> Unit {
        Unit::Fit
    }

    fn effort(&self, experiment: &Experiment) -> Effort {
        let advi = settings(experiment);
        let (most, every) = (advi.max_iterations.get(), advi.elbo_every.get());
        let in_fit = most * advi.gradient_samples.get() + most / every * advi.elbo_samples.get();
        Effort::Gradients(in_fit + experiment.sampler.draws.get())
    }

    fn parameters(&self, model: &dyn Model, train: &Dataset) -> Vec<String> {
        conventional::parameters(model, train)
    }

    fn prepare(&self, case: &Case) -> Result<Box<dyn Prepared>> {
        case.posterior()?;
        let settings = settings(case.experiment);
        Ok(Box::new(Variational { init: case.begin(settings.begin)?, settings }))
    }
}

struct Variational {
    settings: Settings,
    init: Option<Init>,
}

impl Prepared for Variational {
    fn run(&self, job: &mut Job) -> Result<()> {
        let (trial, test, machine, draws) = (job.trial, job.test, job.machine, job.range.clone());
        let (model, parameters) = (trial.model.as_ref(), trial.model.names().len());
        let posterior = trial.posterior()?;
        let init = self.init.as_ref();
        let q = match job.known.and_then(|known| known.fitted.q.clone()) {
            Some(q) => q,
            None => {
                let tuning = self.settings.tuning();
                let fit = posterior.advi(&tuning, init, trial.seed, machine.pool, machine.cancel)?;
                let q = fit.q.clone();
                job.open(&with_fit(fit))?;
                q
            }
        };
        let make = |index: u64| {
            let u = q.draw(&mut trial.seed.stream(Purpose::VariationalDraw, index, 0));
            let theta = posterior.constrain(&u);
            let densities = test.map(|test| log_densities(model, parameters, &theta, test));
            let sample = Sample {
                index,
                objective: -posterior.joint().log_density(&theta, None),
                restart: 1,
                iterations: 0,
                status: Status::Ok,
                extra: vec![q.log_density(&u)],
                theta,
            };
            Made::Drawn { sample, log_weight: 0.0, densities }
        };
        in_order(
            draws,
            BLOCK,
            machine.pool,
            machine.cancel,
            |ids, halted| ids.map(|i| (!halted()).then(|| make(i))).collect(),
            |made| job.sink.put(made),
        )
    }
}
