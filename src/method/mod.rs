//! How posterior draws are made. A method is a file and a line below: its settings, what can be wrong with them, its columns
//! in the table of draws, what its draws are to each other, and how they are made.

pub mod advi;
pub mod bootstrap;
mod conventional;
pub mod importance;
mod law;
pub mod mdp;
pub mod npl;
pub mod nuts;
mod parameters;
pub mod prior;
mod start;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::ThreadPool;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bayes::advi::{ElboPoint, MeanField};
use crate::bayes::{ChainTuning, Posterior};
use crate::bootstrap::{Draw, Minima, Scheme};
use crate::bytes::bytes;
use crate::config::{Document, Problem};
use crate::data::Dataset;
use crate::data::files::SearchPath;
use crate::error::{Error, Result};
use crate::evaluate::{OnRows, Records, on_rows};
use crate::experiment::Experiment;
use crate::model::Model;
use crate::optim::Minimum;
use crate::optim::descent::Subsample;
use crate::process::{Measure, Prior, Truncation};
use crate::report::{AdviReport, ChainReport};
use crate::restarts::leaders;
use crate::rng::{Purpose, Seed};
use crate::samples::{Relation, Sample};

pub use bootstrap::ReadyTrial;
pub use conventional::Begin;
pub use start::files as start_files;

/// The registry: `methods! { Variant => module, … }` gives `method = "variant"` in a TOML file, its schema, and its place in
/// everything that is done with all methods. A module has a type `Inference` of this name. A method with settings has them as
/// a table of [`Experiment`].
macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident => $module:ident $name:literal),* $(,)?) => {
        /// The inference scheme.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Method {
            $($(#[$doc])* $variant),*
        }

        impl Method {
            pub const ALL: &[Method] = &[$(Method::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// All that is known of it.
            pub fn inference(self) -> &'static dyn Inference {
                match self { $(Self::$variant => &$module::$variant),* }
            }
        }
    };
}

methods! {
    /// The posterior bootstrap.
    #[default]
    Npl => npl "npl",
    /// The conventional posterior of the model and its prior, by the No-U-Turn Sampler.
    Nuts => nuts "nuts",
    /// The same, by a mean-field variational approximation.
    Advi => advi "advi",
    /// The same, by self-normalised importance sampling.
    Importance => importance "importance",
    /// The posterior bootstrap with a mixture of Dirichlet processes, centred on the conventional posterior.
    MdpNpl => mdp "mdp-npl",
}

/// Takes a key of the experiment and what is wrong with it.
pub type Say<'a> = dyn FnMut(&str, String) + 'a;

/// A way to make posterior draws.
pub trait Inference: Sync {
    /// Draws are minimisers of weighted losses: `prior`, restarts, starts and the optimiser are used.
    fn is_bootstrap(&self) -> bool {
        false
    }

    /// What is wrong with the settings by themselves, when this is the method.
    fn problems(&self, _experiment: &Experiment, _say: &mut Say) {}

    /// Settings of the method, whether it is in use or not, that decide how much memory is asked for, and the most they may
    /// be.
    fn sizes(&self, _experiment: &Experiment) -> Vec<(&'static str, usize, usize)> {
        Vec::new()
    }

    /// Writes out the settings that are in use, and defaults that depend on the model; or what has no use with this model.
    fn write_out(
        &self,
        _experiment: &mut Experiment,
        _model: &dyn Model,
    ) -> std::result::Result<(), (&'static str, String)> {
        Ok(())
    }

    /// Keys of an experiment that have no use under this method, of those that every method knows.
    fn idle(&self, experiment: &Experiment) -> Vec<String>;

    /// Its table of settings.
    fn table(&self) -> Option<&'static str> {
        None
    }

    /// Whether it uses the table of another method: "mdp-npl" runs NUTS.
    fn uses_table(&self, _table: &str, _experiment: &Experiment) -> bool {
        false
    }

    /// Files and runs that draws are made from, beside the data.
    fn inputs(&self, _experiment: &Experiment) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Columns of its own in the table of draws.
    fn statistics(&self) -> &'static [&'static str];

    /// A few words for tables.
    fn label(&self, experiment: &Experiment) -> String;

    /// What its draws are to each other.
    fn relation(&self, experiment: &Experiment, model: &dyn Model) -> Relation;

    /// Why more draws cannot be added to those that were made, if they cannot.
    fn not_extendable(&self, _experiment: &Experiment) -> Option<&'static str> {
        None
    }

    /// What of a repeat can be made apart from the rest.
    fn unit(&self, _experiment: &Experiment) -> Unit {
        Unit::Draws
    }

    /// What a repeat costs.
    fn effort(&self, experiment: &Experiment) -> Effort;

    /// Names of all entries of a draw.
    fn parameters(&self, model: &dyn Model, _train: &Dataset) -> Vec<String> {
        model.names()
    }

    /// Concentration of the process that pseudo-samples of every draw come from, as far as the model has to know it.
    fn alpha(&self, _experiment: &Experiment) -> f64 {
        0.0
    }

    /// Checks model and data, and gets hold of all that a repeat is made from but what has to be fitted.
    fn prepare(&self, case: &Case) -> Result<Box<dyn Prepared>>;
}

impl Method {
    /// Draws are minimisers of weighted losses.
    pub fn is_bootstrap(self) -> bool {
        self.inference().is_bootstrap()
    }

    /// Keys that a file may have and this method has no use for: one file serves all methods.
    pub fn idle(self, experiment: &Experiment) -> Vec<String> {
        let inference = self.inference();
        let others = Method::ALL.iter().filter(|other| **other != self);
        let tables = others.filter_map(|other| other.inference().table());
        let unused = tables.filter(|table| !inference.uses_table(table, experiment));
        inference.idle(experiment).into_iter().chain(unused.map(String::from)).collect()
    }
}

/// What of a repeat can be made apart from the rest, on another machine or after an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A few draws.
    Draws,
    /// A chain of so many draws.
    Chain(u64),
    /// All draws are of one fit, which costs more than they do.
    Fit,
}

/// What a repeat costs beyond reading data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Its draws: only trying tells what they take.
    Draws,
    /// So many trajectories, each of at most so many gradients of the log posterior, on so many chains; and, if `then_draws`,
    /// the draws of the bootstrap after them.
    Trajectories { count: usize, longest: u64, chains: usize, then_draws: bool },
    /// At most so many gradients of the log posterior.
    Gradients(usize),
    /// A density of the posterior for each draw.
    Densities,
    /// One sort of the data, and next to nothing for each draw.
    Sort,
}

/// One repeat as a method sees it before any draw: what is asked for, and what there is.
pub struct Case<'a> {
    pub experiment: &'a Experiment,
    pub document: &'a Document,
    pub search: &'a SearchPath,
    /// Counted from 0.
    pub repeat: usize,
    pub seed: Seed,
    /// That of the first repeat.
    pub first_seed: Seed,
    /// The group that the rows are of, where there are groups.
    pub group: Option<&'a str>,
    pub train: &'a Arc<Dataset>,
    /// The training rows before `data.rows` leaves any out.
    pub covariates: &'a Arc<Dataset>,
    /// Historical rows for an empirical base measure.
    pub history: Option<&'a Arc<Dataset>>,
    pub model: &'a Arc<dyn Model>,
}

impl Case<'_> {
    fn problem(&self, key: &str, message: impl Into<String>) -> Error {
        self.document.problems(vec![self.document.problem(key, message)]).into()
    }

    /// Names below a table of the experiment, and what is wrong with them; `colon` is what stands between key and message.
    fn problems_below(&self, table: &str, colon: &str, found: Vec<(String, String)>) -> Error {
        let place = |(name, why): (String, String)| {
            let key = format!("{table}.{name}");
            self.document.problem(&key, format!("`{key}`{colon} {why}"))
        };
        let problems: Vec<Problem> = found.into_iter().map(place).collect();
        self.document.problems(problems).into()
    }
}

/// A repeat that its method has found nothing wrong with.
pub trait Prepared: Send + Sync {
    /// The prior of the bootstrap; of MDP-NPL it is known when its centre is.
    fn prior(&self) -> Arc<Prior> {
        Arc::new(Prior::Noninformative)
    }

    /// How that prior is made finite.
    fn truncation(&self) -> Option<Truncation> {
        None
    }

    /// The most restarts that a draw is meant to have.
    fn restarts(&self) -> usize {
        1
    }

    /// The bootstrap, with the fits that its start and its centre ask for, unless they are known; `None` if the method is
    /// another.
    fn bootstrap(
        &self,
        _at: &Trial,
        _machine: Machine,
        _known: Option<&Findings>,
    ) -> Option<Result<ReadyTrial>> {
        None
    }

    /// How chains are run, if draws are from some.
    fn chains(&self) -> Option<ChainTuning> {
        None
    }

    /// Makes the draws.
    fn run(&self, job: &mut Job) -> Result<()>;
}

/// One repeat: data, model, prior, and what its method has made ready.
pub struct Trial {
    pub seed: Seed,
    pub train: Arc<Dataset>,
    pub test: Option<Arc<Dataset>>,
    pub model: Arc<dyn Model>,
    /// Of MDP-NPL it is known when its centre is.
    pub prior: Arc<Prior>,
    /// What the draws will be to each other.
    pub relation: Relation,
    /// Searches by mini-batches.
    pub subsample: Option<Subsample>,
    pub(crate) prepared: Box<dyn Prepared>,
}

impl Trial {
    /// The scheme of this repeat, with the fits that select its fixed start if it has one.
    pub fn scheme(&self, pool: &ThreadPool, cancel: &AtomicBool) -> Result<ReadyTrial> {
        let none = || {
            Err(Error::input(
                "there are no weights: draws are not those of the bootstrap, or made by `sampler.law`",
            ))
        };
        self.prepared.bootstrap(self, Machine { pool, cancel }, None).unwrap_or_else(none)
    }

    /// The minimum of the loss at equal weights, the best of as many starts as a draw has; `None` if none was reached, or the method
    /// is not the bootstrap.
    pub fn estimate(&self, machine: Machine, known: Option<&Findings>) -> Option<Minimum> {
        if self.train.n() == 0 {
            return None;
        }
        let ready = self.prepared.bootstrap(self, machine, known)?.ok()?;
        let f = Measure::empirical(&self.train);
        let start = |restart: usize| match ready.scheme.as_ref() {
            Scheme::RandomRestart { init, .. } => {
                init.draw(&mut self.seed.stream(Purpose::Selection, 1, restart as u64))
            }
            Scheme::FixedInit(start) => start.clone(),
        };
        let fit = |restart: usize| self.model.minimise(&f, &start(restart)).sound();
        let restarts = ready.scheme.restarts();
        let mut minima: Vec<Minimum> =
            machine.pool.install(|| (0..restarts).into_par_iter().map(fit).collect());
        let best = leaders(&minima).pop().map(|best| minima.swap_remove(best))?;
        best.status.converged().then_some(best)
    }

    /// The most restarts that a draw is meant to have.
    pub fn restarts(&self) -> usize {
        self.prepared.restarts()
    }

    /// How chains are run, if draws are from some.
    pub fn chains(&self) -> Option<ChainTuning> {
        self.prepared.chains()
    }

    /// Makes draws.
    pub fn run(&self, job: &mut Job) -> Result<()> {
        self.prepared.run(job)
    }

    /// How the prior is made finite.
    pub fn truncation(&self) -> Option<Truncation> {
        self.prepared.truncation()
    }

    /// Likelihood times prior of the conventional model.
    pub fn posterior(&self) -> Result<Posterior<'_>> {
        let joint = self.model.joint(&self.train).map_err(|(_, why)| Error::input(why))?;
        Ok(Posterior::new(joint))
    }
}

/// What computes, and what stops it.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    pub pool: &'a ThreadPool,
    pub cancel: &'a AtomicBool,
}

/// Draws of one repeat, to be made.
pub struct Job<'a> {
    pub experiment: &'a Experiment,
    pub trial: &'a Trial,
    /// Which of them, counted from 0; of chains, whole ones.
    pub range: Range<u64>,
    /// What had to be fitted before the first draw, if that was done already.
    pub known: Option<&'a Findings>,
    /// The same draws at the setting before, if searches begin there.
    pub before: Option<&'a Minima>,
    /// The largest log weight of the draws before these, as far as it is known.
    pub largest: f64,
    /// The test rows, if their densities are asked for.
    pub test: Option<&'a Dataset>,
    pub machine: Machine<'a>,
    pub sink: &'a mut dyn Sink,
}

/// Takes what a method makes.
pub trait Sink {
    /// What had to be fitted before the first draw, if anything; not where it was known.
    fn open(&mut self, findings: Findings) -> Result<()>;

    /// Every draw, in order, as soon as it and all before it are done.
    fn put(&mut self, made: Made) -> Result<()>;
}

impl Job<'_> {
    /// All draws of the repeat.
    pub fn draws(&self) -> u64 {
        self.experiment.sampler.draws.get() as u64
    }

    fn open(&mut self, findings: &Findings) -> Result<()> {
        if self.known.is_some() { Ok(()) } else { self.sink.open(findings.clone()) }
    }
}

/// A draw, and what the thread that made it has computed of it.
pub enum Made {
    /// By searches, with the test rows at each of its records.
    Found(Draw, Option<Records>),
    /// In another way.
    Drawn { sample: Sample, log_weight: f64, densities: Option<OnRows> },
    /// One that weighs too little to be kept.
    Dropped { index: u64, log_weight: f64 },
}

impl Made {
    /// Counted from 0.
    pub fn index(&self) -> u64 {
        match self {
            Made::Found(draw, _) => draw.index,
            Made::Drawn { sample, .. } => sample.index,
            Made::Dropped { index, .. } => *index,
        }
    }

    /// Its row of the table.
    pub fn into_sample(self) -> Option<Sample> {
        match self {
            Made::Found(draw, _) => Some(draw.into_sample()),
            Made::Drawn { sample, .. } => Some(sample),
            Made::Dropped { .. } => None,
        }
    }
}

/// What a method finds out before its first draw: how the chains went that it is centred on, and the variational fit that
/// it starts at or draws from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    pub chains: Option<ChainReport>,
    pub advi: Option<AdviReport>,
    pub elbo: Vec<ElboPoint>,
    pub fitted: Fitted,
}

/// What was fitted: enough to make draws without fitting again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitted {
    /// θ_init of FI-NPL.
    pub start: Option<Vec<f64>>,
    /// The variational fit that draws come from.
    pub q: Option<MeanField>,
    /// The posterior draws that centre an MDP.
    pub centre: Option<Arc<Vec<Vec<f64>>>>,
}

bytes!(Fitted { start, q, centre });
bytes!(Findings { chains, advi, elbo, fitted });

/// What θ says of the test rows. What a prior adds to θ is no part of the density.
pub fn log_densities(model: &dyn Model, parameters: usize, theta: &[f64], test: &Dataset) -> OnRows {
    on_rows(model, &theta[..parameters], test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_an_experiment_says() {
        for method in Method::ALL {
            assert_eq!(serde_json::to_value(method).unwrap(), method.name());
        }
    }
}
