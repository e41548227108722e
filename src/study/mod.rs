//! From an experiment file to a study: everything checked, data loaded, model and prior built.

mod centre;
mod load;
mod start;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::ThreadPool;
use rayon::prelude::*;

use centre::Centred;
pub use load::Input;
use load::{Rows, Sources};

use crate::bayes::importance::Proposal;
use crate::bayes::settings::{AdviSettings, CentreConfig, ImportanceSettings, MdpSettings, NutsSettings};
use crate::bayes::{Begin, ChainPlan, Posterior, advi::ElboPoint};
use crate::bootstrap::{Plan, Scheme};
use crate::config::{
    Count, Document, Experiment, FixedInitConfig, Method, Metric, PathConfig, PriorConfig, Problem, Scalar,
    TruncationConfig, nearest, printable,
};
use crate::data::Dataset;
use crate::data::files::SearchPath;
use crate::data::prepare::Notes;
use crate::error::{Error, Result};
use crate::init::{Dist, Init, default_dist};
use crate::model::{Context, Model, ModelConfig, Response};
use crate::process::{BaseMeasure, Measure, Prior, Truncation, base};
use crate::report::{AdviReport, ChainReport, ChainSum};
use crate::restarts::leaders;
use crate::rng::{Purpose, Seed};
use crate::samples::{Format, Samples};

/// Adaptive stick-breaking where the config leaves the truncation open.
const DEFAULT_EPSILON: f64 = 1e-6;

/// The most pseudo-samples that adaptive stick-breaking may be expected to make for a draw: a gigabyte for two threads, and a
/// second or so.
const MOST_STICKS: f64 = 1e7;

/// A checked experiment with its files read.
pub struct Study {
    /// Resolved: every default that matters is written out.
    pub experiment: Experiment,
    document: Document,
    sources: Arc<Sources>,
    inputs: Vec<Input>,
    search: SearchPath,
}

/// One repeat: data, model, prior, and how to start.
pub struct Trial {
    pub seed: Seed,
    pub train: Arc<Dataset>,
    pub test: Option<Arc<Dataset>>,
    pub model: Arc<dyn Model>,
    /// Of MDP-NPL it is known when its centre is.
    pub prior: Prior,
    start: Start,
    centre: Option<Mdp>,
}

/// What a scheme is made of, before any fit has been made.
enum Start {
    Ready(Scheme),
    BestOf {
        fits: usize,
        init: Init,
    },
    /// The centre of a variational fit.
    Advi {
        settings: AdviSettings,
        init: Option<Init>,
    },
    /// The draw of an earlier run with the smallest unweighted loss.
    BestDraw(Samples),
}

/// A mixture of Dirichlet processes, before it has a centre.
struct Mdp {
    alpha: f64,
    truncation: Truncation,
    source: CentreSource,
}

/// Where the posterior draws that centre an MDP come from.
enum CentreSource {
    Draws(Vec<Vec<f64>>),
    Nuts { settings: NutsSettings, draws: usize, init: Option<Init> },
}

impl Study {
    /// Checks all that can be checked, reads the data, and builds the first repeat once to be sure.
    pub fn new(document: Document, mut experiment: Experiment, search: SearchPath) -> Result<Study> {
        let problems = static_problems(&document, &experiment);
        if !problems.is_empty() {
            return Err(document.problems(problems).into());
        }
        experiment.seed = Some(experiment.seed.unwrap_or_else(crate::rng::drawn_seed));
        let sources = Arc::new(Sources::read(&experiment, &search)?);
        let study = Study::ready(document, experiment, sources, search)?;
        study.check_path()?;
        Ok(study)
    }

    fn ready(
        document: Document,
        experiment: Experiment,
        sources: Arc<Sources>,
        search: SearchPath,
    ) -> Result<Study> {
        let inputs = sources.inputs.clone();
        let mut study = Study { experiment, document, sources, inputs, search };
        study.record_starts()?;
        study.resolve()?;
        study.trial(0)?;
        study.check_data()?;
        Ok(study)
    }

    /// That the data of every repeat have a minimum to be found, before the first is sampled.
    fn check_data(&self) -> Result<()> {
        let data = &self.experiment.data;
        let alike = data.split.is_none() && data.simulate.is_none() && data.response.is_none();
        for repeat in 0..if alike { 1 } else { self.repeats() } {
            let seed = self.seed(repeat);
            let train = self.data(seed)?.train;
            let Some(mut flaws) = self.model(&train)?.flaws(&train) else { return Ok(()) };
            if self.repeats() > 1 && !alike {
                let place = format!(" (repeat {}, seed {})", repeat + 1, seed.0);
                flaws.iter_mut().for_each(|(_, why)| *why += &place);
            }
            if !flaws.is_empty() {
                return Err(self.model_problems(flaws));
            }
        }
        Ok(())
    }

    /// The values of the settings of the path; none if there is no path.
    pub fn settings(&self) -> Vec<Scalar> {
        self.experiment.path.as_ref().map_or(Vec::new(), PathConfig::settings)
    }

    /// The experiment with the value of setting `t`, from 0, of its path. Files are read again only if the value changes
    /// what is read.
    pub fn setting(&self, t: usize) -> Result<Study> {
        let (document, mut experiment) = self.decode_setting(t)?;
        experiment.seed = experiment.seed.or(self.experiment.seed);
        experiment.path = None;
        let base = |e: &Experiment| e.prior.as_ref().and_then(|p| p.base.clone());
        let same = experiment.data == self.experiment.data && base(&experiment) == base(&self.experiment);
        let sources = match same {
            true => self.sources.clone(),
            false => Arc::new(Sources::read(&experiment, &self.search)?),
        };
        Study::ready(document, experiment, sources, self.search.clone())
    }

    fn decode_setting(&self, t: usize) -> Result<(Document, Experiment)> {
        let path = self.experiment.path.as_ref().expect("settings are asked of a path");
        let document = self.document.setting(path, t, &path.settings()[t]).map_err(Error::from)?;
        let experiment: Experiment = document.decode().map_err(Error::from)?;
        let problems = static_problems(&document, &experiment);
        if problems.is_empty() { Ok((document, experiment)) } else { Err(document.problems(problems).into()) }
    }

    /// That every setting of the path is an experiment, and that the parameters to keep exist.
    fn check_path(&self) -> Result<()> {
        let Some(path) = &self.experiment.path else { return Ok(()) };
        for (t, value) in self.settings().iter().enumerate() {
            self.decode_setting(t)?;
            // Where a setting takes a penalty away, the data must do without.
            if matches!(value.to_string().as_str(), "0" | "0.0" | "none") {
                self.setting(t)?;
            }
        }
        let first = self.setting(0)?;
        let names = first.parameters(&first.trial(0)?);
        let unknown = path.keep.iter().enumerate().filter(|(_, name)| !names.contains(name));
        let problem = |(i, name): (usize, &String)| {
            let hint = nearest(name, names.iter().map(String::as_str));
            let hint = hint.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            let message = format!("the model has no parameter `{}`{hint}", printable(name));
            self.document.problem(&format!("path.keep[{i}]"), message)
        };
        let problems: Vec<Problem> = unknown.map(problem).collect();
        if problems.is_empty() { Ok(()) } else { Err(self.document.problems(problems).into()) }
    }

    /// Names of all entries of a draw: those of the model, and what its prior adds to them where that is sampled.
    pub fn parameters(&self, trial: &Trial) -> Vec<String> {
        match trial.model.joint(&trial.train) {
            Ok(joint) if !self.experiment.method.is_bootstrap() => joint.names(),
            _ => trial.model.names(),
        }
    }

    pub fn seed(&self, repeat: usize) -> Seed {
        Seed(
            self.experiment.seed.expect("the seed is set when the study is made").wrapping_add(repeat as u64),
        )
    }

    /// Neither the file nor an override named a seed.
    pub fn seed_was_drawn(&self) -> bool {
        !self.document.has("seed")
    }

    pub fn repeats(&self) -> usize {
        self.experiment.repeats.get()
    }

    pub fn draws(&self) -> usize {
        self.experiment.sampler.draws.get()
    }

    /// How often the draws are made: once for every repeat, or for every setting of the path.
    pub fn rounds(&self) -> usize {
        if self.experiment.path.is_some() { self.settings().len() } else { self.repeats() }
    }

    /// The files that went in.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// What the data became.
    pub fn notes(&self) -> &Notes {
        &self.sources.notes
    }

    /// The same, if there were files.
    pub fn file_notes(&self) -> Option<Notes> {
        Some(self.notes().clone()).filter(|notes| notes.rows > 0 || notes.base.is_some())
    }

    /// Records the files that starts are read from. One that is missing is reported where it is used, with its line.
    fn record_starts(&mut self) -> Result<()> {
        let sampler = &self.experiment.sampler;
        let mut files: Vec<PathBuf> = Vec::new();
        match &sampler.fixed_init {
            Some(FixedInitConfig::File(name)) => files.extend(self.search.find(name).ok()),
            Some(FixedInitConfig::Run { path, .. }) => {
                files.extend(crate::store::samples_of(Path::new(path)).ok())
            }
            Some(FixedInitConfig::BestOf(_) | FixedInitConfig::Advi) | None => {}
        }
        if let (Method::MdpNpl, Some(CentreConfig::Run(path))) =
            (self.experiment.method, self.experiment.mdp.as_ref().map(|mdp| &mdp.centre))
        {
            files.extend(crate::store::samples_of(Path::new(path)).ok());
        }
        for dist in sampler.init.values() {
            if let Dist::File(name) = dist {
                files.extend(self.search.find(name).ok());
            }
        }
        for path in files.iter().filter(|path| path.is_file()) {
            self.inputs.push(Input::of(path)?);
        }
        Ok(())
    }

    /// Writes defaults that depend on the model into the experiment.
    fn resolve(&mut self) -> Result<()> {
        let rows = self.data(self.seed(0))?;
        let model = self.model(&rows.train)?;
        self.resolve_methods();
        if !self.experiment.method.is_bootstrap() {
            return Ok(());
        }
        let blocks = model.blocks();
        let advi_begins_at_init = self.begins_at_init(Method::Advi);
        let sampler = &mut self.experiment.sampler;
        if blocks.is_empty() {
            if sampler.restarts.is_some_and(|r| r.get() > 1) || sampler.fixed_init.is_some() {
                let key = if sampler.fixed_init.is_some() { "sampler.fixed_init" } else { "sampler.R" };
                let message = "has no use: the minimum of this loss is known in closed form; leave it out";
                return Err(self.problem(key, message));
            }
        } else if sampler.fixed_init.is_none() {
            sampler.restarts = sampler.restarts.or(Count::new(1));
        }
        let uses_init = match sampler.fixed_init {
            None | Some(FixedInitConfig::BestOf(_)) => true,
            Some(FixedInitConfig::Advi) => advi_begins_at_init,
            Some(_) => false,
        };
        if uses_init {
            for block in &blocks {
                sampler.init.entry(block.name.to_string()).or_insert_with(|| default_dist(block));
            }
        }
        let truncation = match self.experiment.method {
            Method::MdpNpl => Some(self.mdp(model.as_ref(), &rows.train)?.1),
            _ => match self.prior(&rows, model.as_ref())? {
                Prior::Dp { truncation, .. } => Some(truncation),
                Prior::Noninformative => None,
            },
        };
        if let (Some(config), Some(truncation)) = (&mut self.experiment.prior, truncation) {
            config.truncation = Some(match truncation {
                Truncation::Dirichlet { .. } => TruncationConfig::Dirichlet,
                Truncation::StickBreaking { .. } => TruncationConfig::StickBreaking,
                Truncation::Adaptive { epsilon } => TruncationConfig::Adaptive(
                    crate::config::OpenUnit::new(epsilon).expect("checked with the config"),
                ),
                Truncation::Exact => TruncationConfig::Exact,
            });
        }
        Ok(())
    }

    /// Writes the settings of the methods in use out.
    fn resolve_methods(&mut self) {
        let experiment = &mut self.experiment;
        let centre = experiment.mdp.as_ref().map_or(CentreConfig::Nuts, |mdp| mdp.centre.clone());
        let mdp = experiment.method == Method::MdpNpl;
        if mdp {
            experiment.mdp.get_or_insert_default();
        }
        if experiment.method == Method::Nuts || mdp && centre == CentreConfig::Nuts {
            experiment.nuts.get_or_insert_default();
        }
        let starts =
            experiment.method.is_bootstrap() && experiment.sampler.fixed_init == Some(FixedInitConfig::Advi);
        if experiment.method == Method::Advi || starts {
            experiment.advi.get_or_insert_default();
        }
    }

    /// Keys of the file that the method has no use for: one file serves all methods.
    pub fn unused(&self) -> Vec<&'static str> {
        let method = self.experiment.method;
        let conventional = !method.is_bootstrap();
        let begins_at_init = matches!(method, Method::Nuts | Method::Advi) && self.begins_at_init(method);
        let idle = [
            ("prior", conventional),
            ("prior.base", method == Method::MdpNpl),
            ("sampler.R", conventional),
            ("sampler.init", conventional && !begins_at_init),
            ("sampler.fixed_init", conventional),
            ("sampler.stop", conventional),
            ("optimiser", conventional),
            ("nuts", self.experiment.nuts.is_some() && !matches!(method, Method::Nuts | Method::MdpNpl)),
            (
                "advi",
                method != Method::Advi && self.experiment.sampler.fixed_init != Some(FixedInitConfig::Advi),
            ),
            ("importance", method != Method::Importance),
            ("mdp", method != Method::MdpNpl),
        ];
        idle.into_iter().filter(|(key, idle)| *idle && self.document.has(key)).map(|(key, _)| key).collect()
    }

    pub fn nuts(&self) -> NutsSettings {
        self.experiment.nuts.clone().unwrap_or_default()
    }

    pub fn advi(&self) -> AdviSettings {
        self.experiment.advi.clone().unwrap_or_default()
    }

    /// Whether chains, or variational fits, begin at a draw from `sampler.init`.
    fn begins_at_init(&self, method: Method) -> bool {
        let begin = if method == Method::Advi { self.advi().begin } else { self.nuts().begin };
        begin == Begin::Init
    }

    /// The start of chains, or of variational fits, where it is that of restarts.
    pub fn begin(&self, method: Method, model: &dyn Model, train: &Dataset) -> Result<Option<Init>> {
        let at_init = self.begins_at_init(method);
        at_init.then(|| self.init(model, train, &Prior::Noninformative)).transpose()
    }

    /// Likelihood times prior of the conventional model.
    pub fn posterior<'a>(&self, model: &'a dyn Model, train: &'a Dataset) -> Result<Posterior<'a>> {
        let joint = model.joint(train).map_err(|(key, why)| {
            let name = self.experiment.model.name();
            let dot = if key.is_empty() { "" } else { "." };
            let key = format!("model.{name}{dot}{key}");
            self.problem(&key, format!("`{key}` {why}"))
        })?;
        Ok(Posterior::new(joint))
    }

    /// The proposal of importance sampling.
    pub fn proposal(&self, posterior: &Posterior) -> Result<Proposal> {
        let ImportanceSettings { proposal } = self.experiment.importance.clone().unwrap_or_default();
        Proposal::new(posterior.joint().blocks(), &proposal).map_err(|problems| {
            let place = |(block, why): (String, String)| {
                let key = format!("importance.proposal.{block}");
                self.document.problem(&key, format!("`{key}` {why}"))
            };
            self.document.problems(problems.into_iter().map(place).collect()).into()
        })
    }

    fn problem(&self, key: &str, message: impl Into<String>) -> Error {
        self.document.problems(vec![self.document.problem(key, message)]).into()
    }

    /// Training and test rows of one repeat.
    fn data(&self, seed: Seed) -> Result<Rows> {
        self.sources.rows(&self.experiment.data, seed)
    }

    fn model(&self, train: &Dataset) -> Result<Arc<dyn Model>> {
        let alpha = self.experiment.prior.as_ref().map_or(0.0, |p| p.alpha.get());
        let mass = train.mass() + alpha;
        // Conventional Bayes, which MDP-NPL begins with, has no pseudo-samples: what the data leave open stays open.
        let alpha = if self.experiment.method == Method::Npl { alpha } else { 0.0 };
        let context = Context { train, alpha, mass, optimiser: &self.experiment.optimiser };
        self.experiment.model.build(&context).map(Arc::from).map_err(|problems| self.model_problems(problems))
    }

    /// Keys below the model's table, and what is wrong with them.
    fn model_problems(&self, problems: Vec<(&'static str, String)>) -> Error {
        let name = self.experiment.model.name();
        let place = |(key, why): (&str, String)| {
            let key = format!("model.{name}.{key}");
            self.document.problem(&key, format!("`{key}` {why}"))
        };
        self.document.problems(problems.into_iter().map(place).collect()).into()
    }

    fn prior(&self, rows: &Rows, model: &dyn Model) -> Result<Prior> {
        if self.experiment.method != Method::Npl {
            return Ok(Prior::Noninformative);
        }
        let config = match &self.experiment.prior {
            Some(config) if config.alpha.get() > 0.0 => config,
            _ if rows.train.n() == 0 => {
                let message = "there are no rows of data and no prior: give `prior.alpha` a value above 0";
                return Err(self.problem("data", message));
            }
            _ => return Ok(Prior::Noninformative),
        };
        let base = self.base(config, rows, model)?;
        let truncation = self.truncation(config, base.shares().is_some(), &rows.train)?;
        Ok(Prior::Dp { alpha: config.alpha.get(), base, truncation })
    }

    /// α and truncation of MDP-NPL.
    fn mdp(&self, model: &dyn Model, train: &Dataset) -> Result<(f64, Truncation)> {
        let Some(config) = self.experiment.prior.as_ref().filter(|p| p.alpha.get() > 0.0) else {
            let message = "\"mdp-npl\" needs `prior.alpha` above 0: the weight of the model in rows of data";
            return Err(self.problem("prior", message));
        };
        // The covariates of a regression are the training rows; binary responses are finitely many.
        let finite = model.response() == Some(Response::Binary);
        Ok((config.alpha.get(), self.truncation(config, finite, train)?))
    }

    /// How the prior part becomes finite; `finite` if the base measure has finite support.
    fn truncation(&self, config: &PriorConfig, finite: bool, train: &Dataset) -> Result<Truncation> {
        let t = config.truncation_limit.map(Count::get);
        let chosen = config.truncation.unwrap_or(match (t, finite) {
            (Some(_), _) => TruncationConfig::Dirichlet,
            (None, true) => TruncationConfig::Exact,
            (None, false) => TruncationConfig::Adaptive(
                crate::config::OpenUnit::new(DEFAULT_EPSILON).expect("strictly between 0 and 1"),
            ),
        });
        match (chosen, t) {
            (TruncationConfig::Dirichlet, Some(t)) => Ok(Truncation::Dirichlet { t }),
            (TruncationConfig::StickBreaking, Some(t)) => Ok(Truncation::StickBreaking { t }),
            (TruncationConfig::Adaptive(epsilon), None) => {
                let truncation = Truncation::Adaptive { epsilon: epsilon.get() };
                let sticks = truncation.pseudo_samples(config.alpha.get(), train.mass());
                if sticks > MOST_STICKS {
                    let message = format!(
                        "`prior.alpha` is {:e}: sticks until less than {:e} of the mass is left are about {sticks:.1e} \
                         pseudo-samples a draw, and at most {MOST_STICKS:e} are possible; choose their number, `prior.T`, \
                         with `truncation = \"dirichlet\"`",
                        config.alpha.get(),
                        epsilon.get()
                    );
                    return Err(self.problem("prior.alpha", message));
                }
                Ok(truncation)
            }
            (TruncationConfig::Exact, None) if finite => Ok(Truncation::Exact),
            (TruncationConfig::Exact, None) => {
                let message = "\"exact\" needs a base measure with finite support (`empirical`, `response`)";
                Err(self.problem("prior.truncation", message))
            }
            (TruncationConfig::Dirichlet | TruncationConfig::StickBreaking, None) => {
                Err(self.problem("prior.T", "`prior.T`, the number of pseudo-samples, is missing"))
            }
            (TruncationConfig::Adaptive(_) | TruncationConfig::Exact, Some(_)) => {
                let message = "this truncation finds its own number of pseudo-samples; leave `prior.T` out";
                Err(self.problem("prior.T", message))
            }
        }
    }

    fn base(&self, config: &PriorConfig, rows: &Rows, model: &dyn Model) -> Result<Box<dyn BaseMeasure>> {
        let Some(base) = &config.base else {
            return Err(self.problem("prior", "alpha > 0 needs a base measure: `prior.base` is missing"));
        };
        let context = base::Context {
            train: &rows.train,
            covariates: &rows.covariates,
            response: rows.train.y.is_some(),
            history: self.sources.history.clone(),
            predictive: &|| model.prior_predictive(&rows.covariates),
        };
        let key = |key: &str| match key {
            "" => format!("prior.base.{}", base.name()),
            key => format!("prior.base.{}.{key}", base.name()),
        };
        let built = base.build(&context).map_err(|(at, why)| {
            let at = key(at);
            self.problem(&at, format!("`{at}` {why}"))
        })?;
        if let Some(response) = model.response() {
            let model = self.experiment.model.name();
            let why = match built.responses() {
                None => Some(format!(
                    "has no response, and [model.{model}] is a regression: see `response`, `empirical`"
                )),
                Some(y) => y.iter().find(|y| !response.admits(**y)).map(|y| {
                    format!("has a response {y}, and that of [model.{model}] is {}", response.what())
                }),
            };
            if let Some(why) = why {
                return Err(self.problem(&key(""), format!("`{}` {why}", key(""))));
            }
        }
        Ok(built)
    }

    /// Repeat `repeat`, counted from 0.
    pub fn trial(&self, repeat: usize) -> Result<Trial> {
        let seed = self.seed(repeat);
        let rows = self.data(seed)?;
        let model = self.model(&rows.train)?;
        let prior = self.prior(&rows, model.as_ref())?;
        let Rows { train, test, .. } = rows;
        let start = match self.experiment.method.is_bootstrap() {
            true => self.start(model.as_ref(), &train, &prior)?,
            false => Start::Ready(Scheme::FixedInit(Vec::new())),
        };
        let centre = self.check_conventional(repeat, model.as_ref(), &train)?;
        if self.experiment.data.split.is_some() && !model.is_likelihood() {
            let message = "`split` puts rows aside for testing, and this loss has nothing to be tested by; leave it out";
            return Err(self.problem("data.split", message));
        }
        self.check_metrics(model.as_ref(), test.as_deref())?;
        Ok(Trial { seed, train, test, model, prior, start, centre })
    }

    /// That the model has a conventional posterior, where the method wants one; and what centres MDP-NPL.
    fn check_conventional(&self, repeat: usize, model: &dyn Model, train: &Dataset) -> Result<Option<Mdp>> {
        match self.experiment.method {
            Method::Npl => {}
            Method::Nuts | Method::Advi => {
                self.posterior(model, train)?;
                self.begin(self.experiment.method, model, train)?;
            }
            Method::Importance => {
                self.proposal(&self.posterior(model, train)?)?;
            }
            Method::MdpNpl => {
                let MdpSettings { centre } = self.experiment.mdp.clone().unwrap_or_default();
                if !model.is_likelihood() {
                    let message = "this loss is no likelihood: there is no model to centre the prior on";
                    return Err(self.problem("method", message));
                }
                let (alpha, truncation) = self.mdp(model, train)?;
                let source = match centre {
                    CentreConfig::Nuts => {
                        self.posterior(model, train)?;
                        let init = self.begin(Method::Nuts, model, train)?;
                        CentreSource::Nuts { settings: self.nuts(), draws: self.draws(), init }
                    }
                    CentreConfig::Run(path) => CentreSource::Draws(self.centre_of_run(&path, repeat, model)?),
                };
                return Ok(Some(Mdp { alpha, truncation, source }));
            }
        }
        Ok(None)
    }

    /// The draws of repeat `repeat`, from 0, of an earlier run.
    fn centre_of_run(&self, path: &str, repeat: usize, model: &dyn Model) -> Result<Vec<Vec<f64>>> {
        let key = "mdp.centre.run";
        let wrong = |e: Error| self.problem(key, e.to_string());
        let samples = crate::store::samples_of(Path::new(path)).and_then(|file| Samples::open(&file));
        let draws = samples.and_then(|s| s.of_repeat(&model.names(), repeat + 1)).map_err(wrong)?;
        if draws.is_empty() {
            let message = format!("{} has no draws of repeat {}", printable(path), repeat + 1);
            return Err(self.problem(key, message));
        }
        Ok(draws)
    }

    fn check_metrics(&self, model: &dyn Model, test: Option<&Dataset>) -> Result<()> {
        let evaluate = &self.experiment.evaluate;
        for metric in evaluate.metrics.iter().flatten() {
            let why = match metric {
                Metric::Sparsity if model.coefficients().is_none() => {
                    "\"sparsity\" needs a model with coefficients"
                }
                Metric::Sparsity if evaluate.epsilon.is_none() => {
                    "\"sparsity\" needs `evaluate.epsilon`, below which a coefficient counts as zero"
                }
                Metric::Sparsity => continue,
                Metric::Lppd if !model.is_likelihood() => "\"lppd\" needs a model with a density",
                Metric::Mse | Metric::Accuracy if model.response() != Some(Response::Binary) => {
                    "\"mse\" and \"accuracy\" need a model of a response that is 0 or 1"
                }
                _ if test.is_none() => {
                    "metrics on test data need some: give `data.test`, `data.split` or `n_test`"
                }
                _ => continue,
            };
            return Err(self.problem("evaluate.metrics", why));
        }
        Ok(())
    }

    fn start(&self, model: &dyn Model, train: &Dataset, prior: &Prior) -> Result<Start> {
        let names = model.names();
        let sampler = &self.experiment.sampler;
        let blocks = model.blocks();
        if blocks.is_empty() {
            return Ok(Start::Ready(Scheme::FixedInit(Vec::new())));
        }
        let init = || self.init(model, train, prior);
        match &sampler.fixed_init {
            None => {
                let restarts = sampler.restarts.map_or(1, Count::get);
                let init = init()?;
                if restarts > 1 && init.is_constant() {
                    let message = "every restart would start at the same point: `sampler.init` is constant";
                    return Err(self.problem("sampler.R", message));
                }
                Ok(Start::Ready(Scheme::RandomRestart { restarts, init, stop: sampler.stop }))
            }
            Some(FixedInitConfig::BestOf(fits)) => {
                if train.n() == 0 {
                    let message = "`best_of` fits the unweighted data, and there are no rows";
                    return Err(self.problem("sampler.fixed_init", message));
                }
                Ok(Start::BestOf { fits: fits.get(), init: init()? })
            }
            Some(FixedInitConfig::Advi) => {
                self.posterior(model, train)?;
                let init = self.begin(Method::Advi, model, train)?;
                Ok(Start::Advi { settings: self.advi(), init })
            }
            Some(FixedInitConfig::File(name)) => {
                let theta = self
                    .read_parameters(name, &names)
                    .map_err(|why| self.problem("sampler.fixed_init.file", why))?;
                self.check_support(model, &theta, "sampler.fixed_init.file")?;
                Ok(Start::Ready(Scheme::FixedInit(theta)))
            }
            Some(FixedInitConfig::Run { path, draw }) => {
                let key = "sampler.fixed_init.run";
                let wrong = |e: Error| self.problem(key, e.to_string());
                let samples = crate::store::samples_of(Path::new(path))
                    .and_then(|file| Samples::open(&file))
                    .map_err(wrong)?;
                // Up to the draw, or to the first: there are draws, and they have our parameters.
                let (mut seen, mut last) = (0, None);
                let wanted = draw.map_or(1, Count::get);
                samples
                    .draws(&names, |theta| {
                        seen += 1;
                        last = (seen == wanted).then_some(theta);
                        seen < wanted
                    })
                    .map_err(wrong)?;
                match draw {
                    None => Ok(Start::BestDraw(samples)),
                    Some(draw) => match last {
                        Some(theta) if theta.iter().all(|t| t.is_finite()) => {
                            Ok(Start::Ready(Scheme::FixedInit(theta)))
                        }
                        Some(_) => Err(self.problem(key, format!("draw {} of {path} failed", draw.get()))),
                        None => Err(self.problem(key, format!("{path} has no draw {}", draw.get()))),
                    },
                }
            }
        }
    }

    fn init(&self, model: &dyn Model, train: &Dataset, prior: &Prior) -> Result<Init> {
        let read = |name: &str, names: &[String]| self.read_parameters(name, names);
        // Without data, what the data would tell of a start is asked of the prior.
        let pseudo;
        let train = match prior {
            Prior::Dp { base, .. } if train.n() == 0 => {
                pseudo = base.sample(1000, &mut self.seed(0).stream(Purpose::Auxiliary, 0, 0)).to_rows();
                &pseudo
            }
            _ => train,
        };
        Init::build(model.blocks(), &model.names(), &self.experiment.sampler.init, train, &read).map_err(
            |problems| {
                let place = |(block, why): (String, String)| {
                    let key = format!("sampler.init.{block}");
                    self.document.problem(&key, format!("`{key}`: {why}"))
                };
                self.document.problems(problems.into_iter().map(place).collect()).into()
            },
        )
    }

    /// Parameters from a CSV file, by their names.
    fn read_parameters(&self, name: &str, names: &[String]) -> std::result::Result<Vec<f64>, String> {
        let path = self.search.find(name).map_err(|e| e.to_string())?;
        start::read_parameters(&path, names).map_err(|e| e.to_string())
    }

    fn check_support(&self, model: &dyn Model, theta: &[f64], key: &str) -> Result<()> {
        for block in model.blocks() {
            crate::init::fits(&block, &theta[block.range.clone()]).map_err(|why| self.problem(key, why))?;
        }
        Ok(())
    }
}

impl Trial {
    /// The scheme of this repeat, with the fits that select its fixed start if it has one.
    pub fn scheme(self, pool: &ThreadPool, cancel: &AtomicBool) -> Result<ReadyTrial> {
        let Trial { seed, train, test, model, prior, start, centre } = self;
        let mut elbo = Vec::new();
        let mut advi = None;
        let scheme = match start {
            Start::Ready(scheme) => scheme,
            Start::Advi { settings, init } => {
                let joint = model.joint(&train).map_err(|(_, why)| Error::input(why))?;
                let posterior = Posterior::new(joint);
                let fit = posterior.advi(&settings, init.as_ref(), seed, pool, cancel)?;
                let mut theta = posterior.constrain(&fit.q.mean);
                theta.truncate(model.names().len());
                advi = Some(AdviReport::of(&fit));
                elbo = fit.trace;
                Scheme::FixedInit(theta)
            }
            Start::BestOf { fits, init } => {
                let f = Measure::empirical(&train);
                let fit = |m: usize| {
                    let start = init.draw(&mut seed.stream(Purpose::Selection, 0, m as u64));
                    (!cancel.load(Ordering::Relaxed)).then(|| model.minimise(&f, &start))
                };
                let minima: Option<Vec<_>> = pool.install(|| (0..fits).into_par_iter().map(fit).collect());
                let mut minima = minima.ok_or(Error::Interrupted)?;
                let best = leaders(&minima).pop().expect("at least one fit is asked for");
                let best = minima.swap_remove(best);
                if !best.value.is_finite() {
                    return Err(Error::Failed("every fit to the unweighted data failed".into()));
                }
                Scheme::FixedInit(best.theta)
            }
            Start::BestDraw(samples) => Scheme::FixedInit(best_draw(&samples, model.as_ref(), &train, pool)?),
        };
        let Some(Mdp { alpha, truncation, source }) = centre else {
            return Ok(ReadyTrial { seed, train, test, model, prior, scheme, chains: None, advi, elbo });
        };
        let (draws, chains) = match source {
            CentreSource::Draws(draws) => (draws, None),
            CentreSource::Nuts { settings, draws, init } => {
                let joint = model.joint(&train).map_err(|(_, why)| Error::input(why))?;
                let posterior = Posterior::new(joint);
                let mut chains = ChainSum::new(posterior.joint().names(), &settings);
                let parameters = model.names().len();
                let mut centre = Vec::new();
                let threads = pool.current_num_threads();
                let init = init.as_ref();
                let plan = ChainPlan { settings: &settings, draws, init, seed, threads, cancel };
                posterior.nuts(&plan, |mut draw| {
                    chains.add(&draw);
                    draw.theta.truncate(parameters);
                    centre.push(draw.theta);
                    Ok(())
                })?;
                (centre, Some(pool.install(|| chains.report())))
            }
        };
        let base = Box::new(Centred { model: model.clone(), draws, rows: train.clone() });
        let prior = Prior::Dp { alpha, base, truncation };
        Ok(ReadyTrial { seed, train, test, model, prior, scheme, chains, advi, elbo })
    }
}

/// Draws of an earlier run whose losses are computed at one time.
const CANDIDATES: usize = 256;

/// The draw with the smallest loss on the unweighted data, the first of them.
fn best_draw(samples: &Samples, model: &dyn Model, train: &Dataset, pool: &ThreadPool) -> Result<Vec<f64>> {
    let f = Measure::empirical(train);
    let mut best: Option<(f64, Vec<f64>)> = None;
    let mut candidates: Vec<Vec<f64>> = Vec::new();
    let mut choose = |candidates: &mut Vec<Vec<f64>>| {
        let losses: Vec<f64> =
            pool.install(|| candidates.par_iter().map(|theta| model.loss(theta, &f)).collect());
        for (loss, theta) in losses.into_iter().zip(candidates.drain(..)) {
            if loss.is_finite() && best.as_ref().is_none_or(|(lowest, _)| loss < *lowest) {
                best = Some((loss, theta));
            }
        }
    };
    samples.draws(&model.names(), |theta| {
        candidates.push(theta);
        if candidates.len() == CANDIDATES {
            choose(&mut candidates);
        }
        true
    })?;
    choose(&mut candidates);
    let (_, theta) = best.ok_or_else(|| Error::input("no draw of the earlier run has a finite loss here"))?;
    Ok(theta)
}

/// A repeat that can be sampled.
pub struct ReadyTrial {
    pub seed: Seed,
    pub train: Arc<Dataset>,
    pub test: Option<Arc<Dataset>>,
    pub model: Arc<dyn Model>,
    pub prior: Prior,
    pub scheme: Scheme,
    /// How the chains that centre an MDP went.
    pub chains: Option<ChainReport>,
    /// How the variational fit behind the start went.
    pub advi: Option<AdviReport>,
    pub elbo: Vec<ElboPoint>,
}

impl ReadyTrial {
    pub fn plan(&self) -> Plan<'_> {
        Plan {
            model: self.model.as_ref(),
            prior: &self.prior,
            data: &self.train,
            scheme: &self.scheme,
            seed: self.seed,
        }
    }
}

/// Everything that can be said without reading a file or building a model.
fn static_problems(document: &Document, experiment: &Experiment) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut say = |key: &str, message: String| found.push(document.problem(key, message));
    let name = &experiment.name;
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | '='));
    if name.is_empty() || name.len() > 128 || !plain || name.starts_with('.') {
        say(
            "name",
            "`name` becomes a folder: letters, digits, `-`, `_`, `.` only, not starting with `.`".into(),
        );
    }
    let data = &experiment.data;
    match (&data.train, &data.simulate) {
        (None, None) => {
            say("data", "[data] needs `train` (a file) or `simulate` (a truth to draw from)".into())
        }
        (Some(_), Some(_)) => say("data.simulate", "`train` and `simulate` exclude each other".into()),
        _ => {}
    }
    if data.simulate.is_some() {
        let keys = [
            ("data.test", data.test.is_some()),
            ("data.columns", data.columns.is_some()),
            ("data.header", data.header.is_some()),
            ("data.delimiter", data.delimiter.is_some()),
            ("data.split", data.split.is_some()),
            ("data.format", data.format.is_some()),
            ("data.target", data.target.is_some()),
            ("data.weight", data.weight.is_some()),
            ("data.cluster", data.cluster.is_some()),
            ("data.stratify", data.stratify.is_some()),
            ("data.labels", data.labels.is_some()),
            ("data.test_labels", data.test_labels.is_some()),
            ("data.classes", !data.classes.is_empty()),
            ("data.strip", data.strip.is_some()),
            ("data.names", data.names.is_some()),
            ("data.skip_lines", data.skip_lines.is_some()),
            ("data.comment", data.comment.is_some()),
            ("data.missing_values", !data.missing_values.is_empty()),
            ("data.categorical", data.categorical.is_some()),
            ("data.divide", data.divide.is_some()),
        ];
        for (key, _) in keys.iter().filter(|(_, set)| *set) {
            say(key, format!("`{key}` belongs to data from a file, and these are simulated"));
        }
    }
    for (key, why) in data.simulate.iter().flat_map(|s| s.problems()) {
        say(&format!("data.simulate.{key}"), format!("`data.simulate.{key}` {why}"));
    }
    if data.target.is_some() && data.labels.is_some() {
        say("data.labels", "`target` and `labels` exclude each other: the response is in one place".into());
    }
    if data.response.is_some() && (data.target.is_some() || data.labels.is_some()) {
        say("data.response", "`response` draws a response, and the data have one".into());
    }
    if data.labels.is_some() && data.test.is_some() && data.test_labels.is_none() {
        say("data.test_labels", "`test_labels` is missing: the responses of the test rows".into());
    }
    if data.cluster.is_some() && data.split.as_ref().is_some_and(|s| s.stratify()) {
        let message = "`data.split.stratify` shares out rows by class, and `data.cluster` keeps clusters whole: choose one";
        say("data.split.stratify", message.into());
    }
    if data.comment.as_ref().is_some_and(|c| c.len() != 1) {
        say("data.comment", "`data.comment` must be one ASCII character".into());
    }
    if data.test.is_some() && data.split.is_some() {
        say("data.split", "`test` and `split` exclude each other".into());
    }
    if data.delimiter.as_ref().is_some_and(|d| d.len() != 1 || matches!(d.as_str(), "\"" | "\n" | "\r")) {
        say("data.delimiter", "`data.delimiter` must be one ASCII character".into());
    }
    for (i, name) in data.names.iter().flatten().enumerate() {
        let before = data.names.iter().flatten().take(i).position(|other| other == name);
        if let Some(twin) = before {
            let message = format!("the name \"{}\" is that of column {} too", printable(name), twin + 1);
            say(&format!("data.names[{i}]"), message);
        } else if name.is_empty() {
            say(&format!("data.names[{i}]"), format!("column {} has no name", i + 1));
        }
    }
    let sampler = &experiment.sampler;
    if sampler.fixed_init.is_some() {
        if sampler.restarts.is_some_and(|r| r.get() > 1) {
            say("sampler.R", "`fixed_init` starts each draw once; leave `R` out".into());
        }
        if sampler.stop.is_some() {
            say("sampler.stop", "`stop` is a rule for random restarts, and `fixed_init` makes none".into());
        }
        let fits = matches!(sampler.fixed_init, Some(FixedInitConfig::BestOf(_)));
        if !fits && !sampler.init.is_empty() {
            say("sampler.init", "`init` has no use beside this `fixed_init`".into());
        }
    }
    if sampler.stop.is_some() && sampler.restarts.is_none_or(|r| r.get() < 2) && sampler.fixed_init.is_none()
    {
        say(
            "sampler.stop",
            "`stop` ends restarts early; set `R`, the most there may be, to 2 or more".into(),
        );
    }
    method_problems(experiment, &mut say);
    let samples = &experiment.output.samples;
    match Format::of(samples) {
        Err(why) => say("output.samples", format!("`output.samples` {why}")),
        Ok(_) if crate::store::RESERVED.contains(&samples.to_ascii_lowercase().as_str()) => {
            say("output.samples", "`output.samples` is the name of another result".into())
        }
        Ok(_) => {}
    }
    if let Some(path) = &experiment.path {
        path_problems(path, experiment.repeats, &mut say);
    }
    for (key, size, most) in sizes(experiment) {
        if size > most {
            say(key, format!("`{key}` is {size}; at most {most} are possible"));
        }
    }
    // The seed of the last repeat must be one that a file can hold, so that the repeat can be run on its own.
    let last = experiment.seed.map(|s| s.saturating_add(experiment.repeats.get() as u64 - 1));
    if last.is_some_and(|last| last > i64::MAX as u64) {
        say("seed", "`seed` + `repeats` is too large".into());
    }
    found
}

/// What is wrong with the settings of the method by themselves.
fn method_problems(experiment: &Experiment, say: &mut impl FnMut(&str, String)) {
    let method = experiment.method;
    let centre = experiment.mdp.as_ref().map_or(&CentreConfig::Nuts, |mdp| &mdp.centre);
    if method == Method::Nuts || method == Method::MdpNpl && *centre == CentreConfig::Nuts {
        if !cfg!(feature = "nuts") {
            say("method", crate::bayes::WITHOUT_NUTS.into());
        }
        let (draws, chains) = (experiment.sampler.draws.get(), experiment.nuts.as_ref());
        let chains = chains.map_or_else(|| NutsSettings::default().chains.get(), |nuts| nuts.chains.get());
        if draws % chains != 0 {
            let message = format!(
                "`sampler.B` = {draws} cannot be shared out evenly over {chains} chains (`nuts.chains`)"
            );
            say("sampler.B", message);
        }
    }
    if method == Method::Importance && experiment.path.is_some() {
        say("path", "a path summarises draws that count the same, and those of \"importance\" do not".into());
    }
    if method == Method::Importance && experiment.importance.is_none() {
        say(
            "method",
            "\"importance\" needs a proposal for every block of parameters: [importance.proposal]".into(),
        );
    }
}

/// What is wrong with a path by itself.
fn path_problems(path: &PathConfig, repeats: Count, say: &mut impl FnMut(&str, String)) {
    match (&path.values, &path.geometric) {
        (None, None) => say("path", "[path] needs `values` (a list) or `geometric` (a sequence)".into()),
        (Some(_), Some(_)) => {
            say("path.geometric", "`values` and `geometric` exclude each other".into());
        }
        (Some(values), None) if values.is_empty() => {
            say("path.values", "`path.values` must not be empty".into())
        }
        _ => {}
    }
    let table = path.parameter.split('.').next().unwrap_or_default();
    if matches!(table, "path" | "name" | "repeats" | "output") {
        say("path.parameter", format!("`{table}` cannot be varied along a path"));
    }
    if repeats.get() > 1 {
        say("repeats", "a path has one repeat; run it again with another seed for another".into());
    }
    let mut seen: Vec<&String> = Vec::new();
    for (i, name) in path.keep.iter().enumerate() {
        if seen.contains(&name) {
            say(&format!("path.keep[{i}]"), format!("`{}` is named twice", printable(name)));
        }
        seen.push(name);
    }
}

/// Numbers that decide how much memory is asked for, and the most they may be: beyond it no machine has enough.
fn sizes(experiment: &Experiment) -> Vec<(&'static str, usize, usize)> {
    let sampler = &experiment.sampler;
    let count = |c: Option<Count>| c.map_or(0, Count::get);
    let fits = match sampler.fixed_init {
        Some(FixedInitConfig::BestOf(fits)) => fits.get(),
        _ => 0,
    };
    let mut sizes = vec![
        ("repeats", experiment.repeats.get(), 1_000_000),
        ("sampler.B", sampler.draws.get(), 1_000_000_000),
        ("sampler.R", count(sampler.restarts), 1_000_000),
        ("sampler.fixed_init.best_of", fits, 1_000_000),
        ("prior.T", count(experiment.prior.as_ref().and_then(|p| p.truncation_limit)), 100_000_000),
    ];
    if let Some(geometric) = experiment.path.as_ref().and_then(|p| p.geometric.as_ref()) {
        sizes.push(("path.geometric.count", geometric.count.get(), 1_000_000));
    }
    if let Some(truth) = &experiment.data.simulate {
        let (n, n_test) = truth.sizes();
        let cells = n.saturating_add(n_test).saturating_mul(truth.columns());
        sizes.push(("data.simulate", cells, 1_000_000_000));
    }
    if let Some(nuts) = &experiment.nuts {
        sizes.push(("nuts.warmup", nuts.warmup.get(), 1_000_000_000));
        sizes.push(("nuts.chains", nuts.chains.get(), 10_000));
        sizes.push(("nuts.max_depth", nuts.max_depth.get(), 30));
    }
    if let Some(advi) = &experiment.advi {
        sizes.push(("advi.elbo_samples", advi.elbo_samples.get(), 1_000_000));
    }
    if let ModelConfig::Gmm(gmm) = &experiment.model {
        sizes.push(("model.gmm.K", gmm.K.get(), 1_000_000));
    }
    sizes
}
