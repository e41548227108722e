//! One repeat from start to finish: sample, evaluate, report.

mod conventional;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::ThreadPool;

use crate::bootstrap::{Draw, posterior_bootstrap};
use crate::config::{Experiment, FixedInitConfig, Method, Metric};
use crate::data::Dataset;
use crate::error::Result;
use crate::evaluate::{Dealing, Densities, OnTest, Sparsity, densities};
use crate::model::{Model, Response};
use crate::report::{Diagnostics, DiagnosticsSum, Observations, Repeat};
use crate::samples::{self, Sample};
use crate::study::{Study, Trial};

/// Runs repeat `repeat` (from 0). Every draw is given to `on_draw`, in order, as soon as it and all before it are done.
/// `on_progress` hears how many more of `sampler.B` are done.
pub fn run_repeat(
    study: &Study,
    repeat: usize,
    pool: &ThreadPool,
    cancel: &AtomicBool,
    mut on_draw: impl FnMut(Sample) -> Result<()>,
    mut on_progress: impl FnMut(u64),
) -> Result<Repeat> {
    let trial = study.trial(repeat)?;
    let started = Instant::now();
    let bootstrap = study.experiment.method.is_bootstrap() && trial.prior.alpha() == 0.0;
    let facts = Repeat {
        repeat: repeat + 1,
        seed: trial.seed.0,
        n_train: trial.train.n(),
        n_test: trial.test.as_ref().map_or(0, |t| t.n()),
        draws: study.draws(),
        seconds: 0.0,
        lppd: None,
        mse: None,
        accuracy: None,
        sparsity: None,
        diagnostics: Diagnostics::default(),
        observations: Some(Observations::of(&trial.train, bootstrap)),
        by_restarts: Vec::new(),
        elbo: Vec::new(),
    };
    let mut job = Job { study, pool, cancel, on_draw: &mut on_draw, on_progress: &mut on_progress };
    let done = match study.experiment.method {
        Method::Npl | Method::MdpNpl => job.bootstrap(trial, facts),
        Method::Nuts => job.nuts(&trial, facts),
        Method::Advi => job.advi(&trial, facts),
        Method::Importance => job.importance(&trial, facts),
    }?;
    Ok(Repeat { seconds: started.elapsed().as_secs_f64(), ..done })
}

/// Statistics of a draw that are the method's own.
pub fn statistics(method: Method) -> &'static [&'static str] {
    match method {
        Method::Npl | Method::MdpNpl => &Draw::STATISTICS,
        Method::Nuts => &[samples::DIVERGENT, samples::STEP_SIZE],
        Method::Advi => &[samples::LOG_Q],
        Method::Importance => &[samples::LOG_WEIGHT],
    }
}

/// Where and how the draws of one repeat are made.
struct Job<'a> {
    study: &'a Study,
    pool: &'a ThreadPool,
    cancel: &'a AtomicBool,
    on_draw: &'a mut dyn FnMut(Sample) -> Result<()>,
    on_progress: &'a mut dyn FnMut(u64),
}

impl Job<'_> {
    /// Algorithms 3 and 4.
    fn bootstrap(&mut self, trial: Trial, facts: Repeat) -> Result<Repeat> {
        let trial = trial.scheme(self.pool, self.cancel)?;
        let model = trial.model.as_ref();
        let restarts = trial.scheme.restarts();
        let mut scores = Scores::new(self.study, model, trial.test.as_deref(), restarts, Dealing::InTurn);
        let test = scores.test;
        let evaluate = |draw: &Draw| {
            let test = test.filter(|_| !draw.failed())?;
            Some(densities(model, draw, test))
        };
        let draws = 0..self.study.draws() as u64;
        let (on_draw, on_progress) = (&mut self.on_draw, &mut self.on_progress);
        posterior_bootstrap(&trial.plan(), draws, self.pool, self.cancel, evaluate, |draw, densities| {
            scores.add(&draw, densities.as_ref());
            on_progress(1);
            on_draw(draw.into_sample())
        })?;
        let mut done = scores.report(facts);
        done.diagnostics.chains = trial.chains.clone();
        done.diagnostics.advi = trial.advi.clone();
        Ok(Repeat { elbo: trial.elbo.clone(), ..done })
    }
}

/// What is computed of the draws of a repeat, as they come.
struct Scores<'a> {
    wanted: Option<&'a [Metric]>,
    model: &'a dyn Model,
    /// Entries of θ.
    parameters: usize,
    /// The test rows, if anything is asked of them.
    test: Option<&'a Dataset>,
    on_test: Option<OnTest>,
    sparsity: Option<Sparsity>,
    diagnostics: DiagnosticsSum,
}

impl<'a> Scores<'a> {
    /// All metrics that are asked for, or, if none are named, that apply.
    fn new(
        study: &'a Study,
        model: &'a dyn Model,
        test: Option<&'a Dataset>,
        restarts: usize,
        dealing: Dealing,
    ) -> Self {
        let evaluate = &study.experiment.evaluate;
        let mut scores = Scores {
            wanted: evaluate.metrics.as_deref(),
            model,
            parameters: model.names().len(),
            test: None,
            on_test: None,
            sparsity: None,
            diagnostics: DiagnosticsSum::default(),
        };
        if [Metric::Lppd, Metric::Mse, Metric::Accuracy].into_iter().any(|m| scores.wants(m)) {
            scores.test = test.filter(|_| model.is_likelihood());
            scores.on_test = scores.test.map(|test| OnTest::new(test.n(), restarts, dealing));
        }
        if let (Some(range), Some(epsilon)) = (model.coefficients(), evaluate.epsilon) {
            let sparsity = || Sparsity::new(range, epsilon.get(), dealing);
            scores.sparsity = scores.wants(Metric::Sparsity).then(sparsity);
        }
        scores
    }

    fn wants(&self, metric: Metric) -> bool {
        self.wanted.is_none_or(|m| m.contains(&metric))
    }

    fn add(&mut self, draw: &Draw, densities: Option<&Densities>) {
        self.diagnostics.add(self.model, draw);
        if let (Some(on_test), Some(densities)) = (&mut self.on_test, densities) {
            on_test.add(draw, densities);
        }
        if let Some(sparsity) = self.sparsity.as_mut().filter(|_| !draw.failed()) {
            sparsity.add(draw.index, 0.0, &draw.minimum.theta);
        }
    }

    /// Log densities of the test rows at θ, if anything is asked of them. What a prior adds to θ is no part of the density.
    fn densities(&self, theta: &[f64]) -> Option<Vec<f64>> {
        let test = self.test?;
        let mut out = vec![0.0; test.n()];
        self.model.log_density(&theta[..self.parameters], test, &mut out);
        Some(out)
    }

    /// Adds a draw that no search has found.
    fn add_sample(&mut self, draw: &Sample, log_weight: f64, densities: Option<&[f64]>) {
        self.diagnostics.add_sample(draw);
        if let (Some(on_test), Some(densities)) = (&mut self.on_test, densities) {
            on_test.add_one(draw.index, log_weight, densities);
        }
        if let Some(sparsity) = &mut self.sparsity {
            sparsity.add(draw.index, log_weight, &draw.theta);
        }
    }

    fn report(&self, facts: Repeat) -> Repeat {
        let mut report = Repeat {
            sparsity: self.sparsity.as_ref().map(Sparsity::estimate),
            diagnostics: self.diagnostics.diagnostics(),
            by_restarts: self.on_test.as_ref().map(OnTest::by_restarts).unwrap_or_default(),
            ..facts
        };
        if let (Some(on_test), Some(test)) = (&self.on_test, self.test) {
            let predictive = on_test.predictive();
            match test.y.as_ref().filter(|_| self.model.response() == Some(Response::Binary)) {
                Some(y) => {
                    let [lppd, mse, accuracy] =
                        predictive.classification(y.as_slice().expect("responses are contiguous"));
                    report.lppd = self.wants(Metric::Lppd).then_some(lppd);
                    report.mse = self.wants(Metric::Mse).then_some(mse);
                    report.accuracy = self.wants(Metric::Accuracy).then_some(accuracy);
                }
                None => report.lppd = Some(predictive.lppd()),
            }
        }
        report
    }
}

/// A few words on how draws are made: `RR-NPL R=10`, `FI-NPL`, `NPL`, `MDP-NPL`, with α where it is not 0; `NUTS`, `ADVI`,
/// `IS`.
pub fn label(experiment: &Experiment) -> String {
    let sampler = &experiment.sampler;
    let bootstrap = || match (&sampler.fixed_init, sampler.restarts) {
        (Some(FixedInitConfig::Advi), _) => "FI-NPL from ADVI".to_owned(),
        (Some(FixedInitConfig::BestOf(_) | FixedInitConfig::File(_) | FixedInitConfig::Run { .. }), _) => {
            "FI-NPL".to_owned()
        }
        (None, Some(restarts)) => format!("RR-NPL R={}", restarts.get()),
        (None, None) => "NPL".to_owned(),
    };
    let mut label = match experiment.method {
        Method::Npl => bootstrap(),
        Method::MdpNpl => format!("MDP-{}", bootstrap().replacen("RR-NPL", "NPL", 1)),
        Method::Nuts => return "NUTS".to_owned(),
        Method::Advi => return "ADVI".to_owned(),
        Method::Importance => return "IS".to_owned(),
    };
    match &experiment.prior {
        Some(prior) if prior.alpha.get() > 0.0 => label += &format!(" alpha={}", prior.alpha.get()),
        _ => {}
    }
    label
}
