//! How the local searches of the bootstrap are started: from the experiment to a [`Scheme`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::parameters::read_parameters;
use super::{Case, Findings, Fitted, Machine, Trial, advi};
use crate::bootstrap::Scheme;
use crate::config::Count;
use crate::data::Dataset;
use crate::data::files::SearchPath;
use crate::error::{Error, Result};
use crate::experiment::{Experiment, FixedInitConfig};
use crate::init::{Dist, Init};
use crate::model::Model;
use crate::process::{Measure, Prior};
use crate::restarts::leaders;
use crate::rng::Purpose;
use crate::samples::Samples;

/// What a scheme is made of, before any fit has been made.
pub enum Start {
    Ready(Arc<Scheme>),
    BestOf {
        fits: usize,
        init: Init,
    },
    /// The centre of a variational fit.
    Advi {
        settings: advi::Settings,
        init: Option<Init>,
    },
    /// The draw of an earlier run with the smallest unweighted loss.
    BestDraw(Samples),
}

/// Files that starts are read from; one that is missing is reported where it is used, with its line.
pub fn files(experiment: &Experiment, search: &SearchPath) -> Vec<PathBuf> {
    let sampler = &experiment.sampler;
    let fixed = match &sampler.fixed_init {
        Some(FixedInitConfig::File(name)) => search.find(name).ok(),
        Some(FixedInitConfig::Run { path, .. }) => crate::store::samples_of(Path::new(path)).ok(),
        Some(FixedInitConfig::BestOf(_) | FixedInitConfig::Advi) | None => None,
    };
    let of_block = |dist: &Dist| match dist {
        Dist::File(name) => search.find(name).ok(),
        _ => None,
    };
    fixed.into_iter().chain(sampler.init.values().filter_map(of_block)).collect()
}

impl Case<'_> {
    pub(super) fn start(&self, prior: &Prior) -> Result<Start> {
        let (model, train) = (self.model.as_ref(), self.train);
        let names = model.names();
        let sampler = &self.experiment.sampler;
        let blocks = model.blocks();
        if blocks.is_empty() {
            return Ok(Start::ready(Scheme::FixedInit(Vec::new())));
        }
        let init = || self.init(prior);
        match &sampler.fixed_init {
            None => {
                let restarts = sampler.restarts.map_or(1, Count::get);
                let init = init()?;
                if restarts > 1 && init.is_constant() {
                    let message = "every restart would start at the same point: `sampler.init` is constant";
                    return Err(self.problem("sampler.R", message));
                }
                Ok(Start::ready(Scheme::RandomRestart { restarts, init, stop: sampler.stop }))
            }
            Some(FixedInitConfig::BestOf(fits)) => {
                if train.n() == 0 {
                    let message = "`best_of` fits the unweighted data, and there are no rows";
                    return Err(self.problem("sampler.fixed_init", message));
                }
                Ok(Start::BestOf { fits: fits.get(), init: init()? })
            }
            Some(FixedInitConfig::Advi) => {
                self.posterior()?;
                let settings = self.experiment.advi.clone().unwrap_or_default();
                Ok(Start::Advi { init: self.begin(settings.begin)?, settings })
            }
            Some(FixedInitConfig::File(name)) => {
                let theta = self
                    .read_parameters(name, &names)
                    .map_err(|why| self.problem("sampler.fixed_init.file", why))?;
                self.check_support(&theta, "sampler.fixed_init.file")?;
                Ok(Start::ready(Scheme::FixedInit(theta)))
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
                            Ok(Start::ready(Scheme::FixedInit(theta)))
                        }
                        Some(_) => Err(self.problem(key, format!("draw {} of {path} failed", draw.get()))),
                        None => Err(self.problem(key, format!("{path} has no draw {}", draw.get()))),
                    },
                }
            }
        }
    }

    /// π₀.
    pub(super) fn init(&self, prior: &Prior) -> Result<Init> {
        let (model, train) = (self.model.as_ref(), self.train);
        let read = |name: &str, names: &[String]| self.read_parameters(name, names);
        // Without data, what the data would tell of a start is asked of the prior.
        let pseudo;
        let train = match prior {
            Prior::Dp { base, .. } if train.n() == 0 => {
                let some = base.sample(1000, &mut self.first_seed.stream(Purpose::Auxiliary, 0, 0));
                pseudo = Arc::new(some.to_rows());
                &pseudo
            }
            _ => train,
        };
        Init::build(model.blocks(), &model.names(), &self.experiment.sampler.init, train, &read)
            .map_err(|problems| self.problems_below("sampler.init", ":", problems))
    }

    /// Parameters from a CSV file, by their names.
    fn read_parameters(&self, name: &str, names: &[String]) -> std::result::Result<Vec<f64>, String> {
        let path = self.search.find(name).map_err(|e| e.to_string())?;
        read_parameters(&path, names).map_err(|e| e.to_string())
    }

    fn check_support(&self, theta: &[f64], key: &str) -> Result<()> {
        for block in self.model.blocks() {
            crate::init::fits(&block, &theta[block.range.clone()]).map_err(|why| self.problem(key, why))?;
        }
        Ok(())
    }
}

impl Start {
    fn ready(scheme: Scheme) -> Start {
        Start::Ready(Arc::new(scheme))
    }

    /// The most restarts that a draw is meant to have.
    pub fn restarts(&self) -> usize {
        match self {
            Start::Ready(scheme) => scheme.restarts(),
            _ => 1,
        }
    }

    /// The scheme, with the fits that select its fixed start, unless that is known; and how a variational one went.
    pub fn scheme(
        &self,
        at: &Trial,
        machine: Machine,
        known: Option<&Findings>,
    ) -> Result<(Arc<Scheme>, Findings)> {
        let (model, Machine { pool, cancel }) = (at.model.as_ref(), machine);
        let fixed = |theta: Vec<f64>| {
            let fitted = Fitted { start: Some(theta.clone()), ..Fitted::default() };
            (Arc::new(Scheme::FixedInit(theta)), Findings { fitted, ..Findings::default() })
        };
        if let Some(start) = known.and_then(|known| known.fitted.start.clone()) {
            let (scheme, findings) = fixed(start);
            let Findings { advi, elbo, .. } = known.cloned().unwrap_or_default();
            return Ok((scheme, Findings { advi, elbo, ..findings }));
        }
        match self {
            Start::Ready(scheme) => Ok((scheme.clone(), Findings::default())),
            Start::Advi { settings, init } => {
                let posterior = at.posterior()?;
                let fit = posterior.advi(&settings.tuning(), init.as_ref(), at.seed, pool, cancel)?;
                let mut theta = posterior.constrain(&fit.q.mean);
                theta.truncate(model.names().len());
                let (scheme, Findings { fitted, .. }) = fixed(theta);
                Ok((scheme, Findings { fitted, ..advi::findings(fit) }))
            }
            Start::BestOf { fits, init } => {
                let f = Measure::empirical(&at.train);
                let fit = |m: usize| {
                    let start = init.draw(&mut at.seed.stream(Purpose::Selection, 0, m as u64));
                    (!cancel.load(Ordering::Relaxed)).then(|| model.minimise(&f, &start))
                };
                let minima: Option<Vec<_>> = pool.install(|| (0..*fits).into_par_iter().map(fit).collect());
                let mut minima = minima.ok_or(Error::Interrupted)?;
                let best = leaders(&minima).pop().expect("at least one fit is asked for");
                let best = minima.swap_remove(best);
                if !best.value.is_finite() {
                    return Err(Error::Failed("every fit to the unweighted data failed".into()));
                }
                Ok(fixed(best.theta))
            }
            Start::BestDraw(samples) => Ok(fixed(best_draw(samples, model, &at.train, pool)?)),
        }
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
