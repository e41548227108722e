//! What a run says about itself: one entry per repeat, and mean, sd and standard error over repeats.

mod influences;
mod tuning;
mod warnings;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use rayon::prelude::*;

use crate::bayes::ChainDraw;
use crate::bayes::advi::{ElboPoint, Fit};
use crate::bayes::convergence::Convergence;
use crate::bayes::importance::Weights;
use crate::bootstrap::Draw;
use crate::bytes::bytes;
use crate::data::Dataset;
use crate::data::prepare::Notes;
use crate::evaluate::{ByRestarts, Estimate, nan_for_null};
use crate::math::{mean, sd};
use crate::model::Model;
use crate::optim::Status;
use crate::restarts::{Adequacy, AdequacySum};
use crate::samples::{Relation, Sample};
pub use influences::Influences;
pub use tuning::{METRICS, Simpler, Tuned};
use warnings::warnings;

/// Header of `report.csv`.
const HEADER: &str = "repeat,seed,method,n_train,n_test,draws,lppd,mse,accuracy,sparsity,seconds";

/// Metrics that always have a column.
const COLUMNS: usize = 4;

/// One repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    pub repeat: usize,
    pub seed: u64,
    pub n_train: usize,
    pub n_test: usize,
    pub draws: usize,
    /// Wall-clock time of making, evaluating and writing the draws, without reading data.
    pub seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lppd: Option<Estimate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mse: Option<Estimate>,
    /// In per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Estimate>,
    /// In per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparsity: Option<Estimate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc: Option<Estimate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<Estimate>,
    pub diagnostics: Diagnostics,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observations: Option<Observations>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_restarts: Vec<ByRestarts>,
    /// The ELBO on the way of a variational fit: `elbo.csv`.
    #[serde(skip)]
    pub elbo: Vec<ElboPoint>,
    /// The log predictive density of every test row, where it is asked for: `pointwise.csv`.
    #[serde(skip)]
    pub pointwise: Vec<f64>,
    /// The minimum of the loss at equal weights, parameter by parameter; of the bootstrap only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub estimate: BTreeMap<String, f64>,
    /// How much every training row moves each parameter, where it is asked for: `influence.csv`.
    #[serde(skip)]
    pub influence: Influences,
}

/// What the training rows count for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observations {
    /// Σ cᵢ, the number of observations.
    pub mass: f64,
    /// Every case weight is a whole number.
    pub whole_weights: bool,
    /// Rows are drawn by clusters.
    pub clustered: bool,
    /// Weights of a draw that are free: rows, or clusters, but one in each stratum. Of the bootstrap without pseudo-samples
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_weights: Option<usize>,
    /// Parameters that are fitted to the rows alone, without a penalty, where they are many for the rows: [`FEW`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub many_parameters: Option<usize>,
}

/// Rows (or clusters) for each parameter below which the posterior of an unpenalised regression is too narrow: at 5 the 95 % intervals
/// of linear coefficients cover 0.89, at 3 0.85, at 2 0.80 (docs/calibration.md).
pub const FEW: usize = 5;

impl Observations {
    /// Of these rows; `bootstrap` if the weights of a draw are all there is to it.
    pub fn of(train: &Dataset, bootstrap: bool) -> Observations {
        let design = &train.design;
        // A cluster lies in one stratum.
        let units = design.clusters().map_or(train.rows_before(), |groups| groups.count);
        let whole = || design.weights().is_none_or(|c| c.iter().all(|c| c.fract() == 0.0));
        let strata = design.strata().map_or(1, |(groups, _)| groups.count);
        Observations {
            mass: train.mass(),
            whole_weights: train.collapsed.map_or_else(whole, |before| before.whole_weights),
            clustered: design.clusters().is_some(),
            free_weights: bootstrap.then(|| units.saturating_sub(strata)),
            many_parameters: None,
        }
    }
}

/// How the draws of a repeat were found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Number of draws by status.
    pub status: BTreeMap<String, usize>,
    pub mean_iterations: f64,
    pub max_iterations: usize,
    /// Largest gradient entry left in any draw that did not fail; of the bootstrap only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gradient: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapse: Option<CollapseShares>,
    /// Draws whose dispersion cannot be told from 0, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undispersed: Option<usize>,
    /// Draws with a number that is not finite: a derived quantity has none there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infinite: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Adequacy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains: Option<ChainReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advi: Option<AdviReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<Weights>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subsample: Option<Distance>,
}

/// How far from the minimum over all rows searches by mini-batches have ended, in posterior standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distance {
    /// Draws that were minimised over all rows too.
    pub draws: usize,
    /// Root of the mean square.
    pub rms: f64,
    pub max: f64,
}

bytes!(Distance { draws, rms, max });

/// Whether the chains of NUTS have mixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainReport {
    pub chains: usize,
    pub warmup: usize,
    pub divergences: usize,
    /// Steps of a trajectory, on average.
    pub mean_steps: f64,
    /// Of the parameter that is worst in each.
    #[serde(deserialize_with = "nan_for_null")]
    pub max_rhat: f64,
    #[serde(deserialize_with = "nan_for_null")]
    pub min_ess_bulk: f64,
    #[serde(deserialize_with = "nan_for_null")]
    pub min_ess_tail: f64,
    /// The parameter with the largest R̂.
    pub worst: String,
}

/// How a variational fit went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviReport {
    pub eta: f64,
    pub iterations: usize,
    pub converged: bool,
    #[serde(deserialize_with = "nan_for_null")]
    pub elbo: f64,
}

bytes!(Repeat {
    repeat,
    seed,
    n_train,
    n_test,
    draws,
    seconds,
    lppd,
    mse,
    accuracy,
    sparsity,
    auc,
    log_loss,
    diagnostics,
    observations,
    by_restarts,
    elbo,
    pointwise,
    estimate,
    influence,
});
bytes!(Observations { mass, whole_weights, clustered, free_weights, many_parameters });
bytes!(Diagnostics {
    status,
    mean_iterations,
    max_iterations,
    max_gradient,
    collapse,
    undispersed,
    infinite,
    restarts,
    chains,
    advi,
    importance,
    subsample,
});
bytes!(CollapseShares { at_floor, narrow });
bytes!(ChainReport { chains, warmup, divergences, mean_steps, max_rhat, min_ess_bulk, min_ess_tail, worst });
bytes!(AdviReport { eta, iterations, converged, elbo });

impl AdviReport {
    pub fn of(fit: &Fit) -> AdviReport {
        let elbo = fit.trace.last().map_or(f64::NAN, |point| point.elbo);
        AdviReport { eta: fit.eta, iterations: fit.iterations, converged: fit.converged, elbo }
    }
}

/// Collects the draws of chains for a [`ChainReport`]: it needs them all.
pub struct ChainSum {
    names: Vec<String>,
    warmup: usize,
    /// Parameter by parameter, chain by chain.
    values: Vec<Vec<Vec<f64>>>,
    divergences: usize,
    steps: usize,
    draws: usize,
}

impl ChainSum {
    pub fn new(names: Vec<String>, chains: usize, warmup: usize) -> ChainSum {
        let values = vec![vec![Vec::new(); chains]; names.len()];
        ChainSum { names, warmup, values, divergences: 0, steps: 0, draws: 0 }
    }

    pub fn add(&mut self, draw: &ChainDraw) {
        self.draws += 1;
        self.divergences += usize::from(draw.divergent);
        self.steps += draw.steps;
        self.values.iter_mut().zip(&draw.theta).for_each(|(chains, value)| chains[draw.chain].push(*value));
    }

    /// Adds a draw by its row of the table.
    pub fn add_sample(&mut self, draw: &Sample) {
        self.draws += 1;
        self.divergences += usize::from(draw.status == Status::Divergent);
        self.steps += draw.iterations;
        let chain = draw.restart - 1;
        self.values.iter_mut().zip(&draw.theta).for_each(|(chains, value)| chains[chain].push(*value));
    }

    pub fn report(&self) -> ChainReport {
        let found: Vec<Convergence> = self.values.par_iter().map(|chains| Convergence::of(chains)).collect();
        let worst = (0..found.len()).max_by(|&a, &b| found[a].rhat.total_cmp(&found[b].rhat));
        let smallest = |size: fn(&Convergence) -> f64| found.iter().map(size).fold(f64::NAN, f64::min);
        ChainReport {
            chains: self.values.first().map_or(0, Vec::len),
            warmup: self.warmup,
            divergences: self.divergences,
            mean_steps: self.steps as f64 / self.draws as f64,
            max_rhat: worst.map_or(f64::NAN, |w| found[w].rhat),
            min_ess_bulk: smallest(|c| c.ess_bulk),
            min_ess_tail: smallest(|c| c.ess_tail),
            worst: worst.map_or(String::new(), |w| self.names[w].clone()),
        }
    }
}

/// Shares of draws that sit on, or near, a singularity of the likelihood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CollapseShares {
    /// A variance on the floor.
    pub at_floor: f64,
    /// A standard deviation below a tenth of the data's.
    pub narrow: f64,
}

/// Sums [`Diagnostics`] up, draw by draw.
#[derive(Clone, Debug)]
pub struct DiagnosticsSum {
    draws: usize,
    status: BTreeMap<Status, usize>,
    iterations: f64,
    max_iterations: usize,
    max_gradient: f64,
    /// Draws of a model that knows singularities, that did not fail.
    judged: usize,
    at_floor: usize,
    narrow: usize,
    undispersed: usize,
    infinite: usize,
    restarts: AdequacySum,
    /// Of mini-batches: draws that were looked at, squares of their distances, and the largest.
    looked_at: usize,
    squares: f64,
    farthest: f64,
}

impl Default for DiagnosticsSum {
    fn default() -> Self {
        DiagnosticsSum {
            draws: 0,
            status: BTreeMap::new(),
            iterations: 0.0,
            max_iterations: 0,
            // The larger of NaN and a number is the number.
            max_gradient: f64::NAN,
            judged: 0,
            at_floor: 0,
            narrow: 0,
            undispersed: 0,
            infinite: 0,
            restarts: AdequacySum::default(),
            looked_at: 0,
            squares: 0.0,
            farthest: 0.0,
        }
    }
}

bytes!(DiagnosticsSum {
    draws,
    status,
    iterations,
    max_iterations,
    max_gradient,
    judged,
    at_floor,
    narrow,
    undispersed,
    infinite,
    restarts,
    looked_at,
    squares,
    farthest,
});

impl DiagnosticsSum {
    pub fn add(&mut self, model: &dyn Model, draw: &Draw) {
        let minimum = &draw.minimum;
        self.draws += 1;
        *self.status.entry(minimum.status).or_default() += 1;
        self.iterations += minimum.iterations as f64;
        self.max_iterations = self.max_iterations.max(minimum.iterations);
        self.restarts.add(&draw.values);
        if draw.failed() {
            return;
        }
        self.max_gradient = self.max_gradient.max(minimum.gradient);
        if let Some(collapse) = model.collapse(&minimum.theta) {
            self.judged += 1;
            self.at_floor += usize::from(collapse.at_floor);
            self.narrow += usize::from(collapse.narrow);
        }
        if let Some(distance) = draw.distance {
            self.looked_at += 1;
            self.squares += distance * distance;
            self.farthest = self.farthest.max(distance);
        }
        self.undispersed += usize::from(model.is_undispersed(&minimum.theta));
    }

    /// Adds a draw that no search has found: a prior keeps it from the singularities of a likelihood.
    pub fn add_sample(&mut self, draw: &Sample) {
        self.draws += 1;
        *self.status.entry(draw.status).or_default() += 1;
        self.iterations += draw.iterations as f64;
        self.max_iterations = self.max_iterations.max(draw.iterations);
    }

    /// Adds what the row of a draw shows.
    pub fn see(&mut self, row: &Sample) {
        self.infinite += usize::from(!row.failed() && row.theta.iter().any(|t| !t.is_finite()));
    }

    /// Adds the draws that come next.
    pub fn fold(&mut self, next: &DiagnosticsSum) {
        self.draws += next.draws;
        for (status, count) in &next.status {
            *self.status.entry(*status).or_default() += count;
        }
        self.iterations += next.iterations;
        self.max_iterations = self.max_iterations.max(next.max_iterations);
        self.max_gradient = self.max_gradient.max(next.max_gradient);
        self.judged += next.judged;
        self.at_floor += next.at_floor;
        self.narrow += next.narrow;
        self.undispersed += next.undispersed;
        self.infinite += next.infinite;
        self.restarts.fold(&next.restarts);
        self.looked_at += next.looked_at;
        self.squares += next.squares;
        self.farthest = self.farthest.max(next.farthest);
    }

    pub fn diagnostics(&self) -> Diagnostics {
        let share = |hit: usize| hit as f64 / self.judged as f64;
        Diagnostics {
            status: self.status.iter().map(|(s, n)| (s.name().to_owned(), *n)).collect(),
            mean_iterations: self.iterations / self.draws as f64,
            max_iterations: self.max_iterations,
            max_gradient: (!self.max_gradient.is_nan()).then_some(self.max_gradient),
            collapse: (self.judged > 0)
                .then(|| CollapseShares { at_floor: share(self.at_floor), narrow: share(self.narrow) }),
            undispersed: (self.undispersed > 0).then_some(self.undispersed),
            infinite: (self.infinite > 0).then_some(self.infinite),
            restarts: self.restarts.mean(),
            chains: None,
            advi: None,
            importance: None,
            subsample: (self.looked_at > 0).then(|| Distance {
                draws: self.looked_at,
                rms: (self.squares / self.looked_at as f64).sqrt(),
                max: self.farthest,
            }),
        }
    }
}

impl Diagnostics {
    /// Draws with this status.
    pub fn count(&self, status: Status) -> usize {
        self.status.get(status.name()).copied().unwrap_or(0)
    }
}

impl Repeat {
    /// Line of `report.csv`; a metric that does not apply is left empty.
    pub fn line(&self, method: &str) -> String {
        let cell = |m: Option<Estimate>| m.map(|e| format!("{:?}", e.value)).unwrap_or_default();
        let cells: Vec<String> = self.metrics()[..COLUMNS].iter().map(|(_, m)| cell(*m)).collect();
        let more = self.more().into_iter().map(|(_, m)| format!(",{}", cell(Some(m)))).collect::<String>();
        format!(
            "{},{},{method},{},{},{},{},{:.3}{more}",
            self.repeat,
            self.seed,
            self.n_train,
            self.n_test,
            self.draws,
            cells.join(","),
            self.seconds
        )
    }

    /// The metrics by name, in the order of `report.csv`.
    pub fn metrics(&self) -> [(&'static str, Option<Estimate>); 6] {
        [
            ("lppd", self.lppd),
            ("mse", self.mse),
            ("accuracy", self.accuracy),
            ("sparsity", self.sparsity),
            ("auc", self.auc),
            ("log_loss", self.log_loss),
        ]
    }

    /// Those that have a column only where they are asked for.
    fn more(&self) -> Vec<(&'static str, Estimate)> {
        self.metrics()[COLUMNS..].iter().filter_map(|(name, m)| Some((*name, (*m)?))).collect()
    }

    /// Header of `report.csv`.
    pub fn header(&self) -> String {
        self.more().iter().fold(HEADER.to_owned(), |header, (name, _)| format!("{header},{name}"))
    }
}

/// Everything a program may want to know of a run: `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub name: String,
    pub method: String,
    /// A few words on how the draws were made, for tables.
    pub label: String,
    /// What the draws are to each other; earlier versions did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
    /// What a reader must know before any of the numbers: plain sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// One per repeat; of a path, one per setting.
    pub repeats: Vec<Repeat>,
    /// Over repeats; nothing is averaged over the settings of a path.
    pub metrics: BTreeMap<String, OverRepeats>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathReport>,
    /// Folds of each repeat, where repeats are those of a cross-validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,
    /// What the files became; absent where data are simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Notes>,
}

/// What was varied along a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    pub parameter: String,
    /// One value per setting.
    pub values: Vec<String>,
}

/// A metric over the repeats of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverRepeats {
    pub repeats: usize,
    #[serde(deserialize_with = "nan_for_null")]
    pub mean: f64,
    /// Standard deviation over repeats; what the paper calls one standard error. Absent for a single repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
    /// Standard error of the mean over repeats. Absent for a single repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub se: Option<f64>,
    /// Monte Carlo error of the mean, from the errors within repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcse: Option<f64>,
}

/// A metric that was measured on test rows, of every round that has it, and on how many.
fn measured(rounds: &[Repeat], name: &str) -> Vec<(usize, Estimate)> {
    let of_round = |round: &Repeat| {
        let (_, value) =
            round.metrics().into_iter().find(|(metric, _)| *metric == name && name != "sparsity")?;
        Some((round.n_test, value?))
    };
    rounds.iter().filter_map(of_round).collect()
}

impl OverRepeats {
    /// Of folds of one data set, so many to a repeat, with their numbers of test rows: pooled over rows. The standard error is that of
    /// the folds of a repeat, averaged over repeats: dealing again adds no rows.
    pub fn of_folds(values: &[(usize, Estimate)], folds: usize) -> Option<OverRepeats> {
        if values.is_empty() || !values.len().is_multiple_of(folds) {
            return None;
        }
        let rows: f64 = values.iter().map(|(n, _)| *n as f64).sum();
        let pooled = |of: &[(usize, Estimate)]| {
            let rows: f64 = of.iter().map(|(n, _)| *n as f64).sum();
            of.iter().map(|(n, e)| *n as f64 / rows * e.value).sum::<f64>()
        };
        let squares = values.chunks_exact(folds).map(|of| {
            let (mean, rows) = (pooled(of), of.iter().map(|(n, _)| *n as f64).sum::<f64>());
            let square = |(n, e): &(usize, Estimate)| (*n as f64 / rows * (e.value - mean)).powi(2);
            of.iter().map(square).sum::<f64>() * folds as f64 / (folds as f64 - 1.0)
        });
        let repeats = values.len() / folds;
        let se = (squares.sum::<f64>() / repeats as f64).sqrt();
        let numbers: Vec<f64> = values.iter().map(|(_, e)| e.value).collect();
        let mcse = values.iter().map(|(n, e)| (*n as f64 / rows * e.mcse).powi(2)).sum::<f64>().sqrt();
        Some(OverRepeats {
            repeats: values.len(),
            mean: pooled(values),
            sd: Some(sd(&numbers)),
            se: Some(se),
            mcse: mcse.is_finite().then_some(mcse),
        })
    }

    pub fn of(values: &[Estimate]) -> Option<OverRepeats> {
        if values.is_empty() {
            return None;
        }
        let k = values.len() as f64;
        let numbers: Vec<f64> = values.iter().map(|e| e.value).collect();
        let many = values.len() > 1;
        let mcse = values.iter().map(|e| e.mcse * e.mcse).sum::<f64>().sqrt() / k;
        Some(OverRepeats {
            repeats: values.len(),
            mean: mean(&numbers),
            sd: many.then(|| sd(&numbers)),
            se: many.then(|| sd(&numbers) / k.sqrt()),
            mcse: mcse.is_finite().then_some(mcse),
        })
    }
}

impl Report {
    pub fn new(name: &str, method: &str, label: String, repeats: Vec<Repeat>) -> Report {
        let mut values: BTreeMap<String, Vec<Estimate>> = BTreeMap::new();
        for repeat in &repeats {
            let seconds = ("seconds", Some(Estimate { value: repeat.seconds, mcse: f64::NAN }));
            for (name, value) in repeat.metrics().into_iter().chain([seconds]) {
                values.entry(name.to_owned()).or_default().extend(value);
            }
        }
        let metrics = values.into_iter().filter_map(|(name, v)| Some((name, OverRepeats::of(&v)?))).collect();
        let (name, method) = (name.to_owned(), method.to_owned());
        let (relation, warnings, path, folds, data) = (None, Vec::new(), None, None, None);
        Report { name, method, label, relation, warnings, repeats, metrics, path, folds, data }.judged()
    }

    /// The report of a cross-validation, whose folds stand where repeats do: what was measured on test rows is pooled over rows.
    pub fn of_folds(mut self, folds: Option<usize>) -> Report {
        self.folds = folds;
        for (name, metric) in &mut self.metrics {
            if let Some(pooled) =
                folds.and_then(|folds| OverRepeats::of_folds(&measured(&self.repeats, name), folds))
            {
                *metric = pooled;
            }
        }
        self
    }

    /// A metric of every setting of a path, over its folds if there are any.
    pub fn along_path(&self, name: &str) -> Option<Vec<OverRepeats>> {
        let settings = self.path.as_ref()?.values.len();
        let of_setting = |t: usize| {
            let rounds: Vec<Repeat> = self.repeats.iter().skip(t).step_by(settings).cloned().collect();
            let values = measured(&rounds, name);
            match self.folds {
                Some(folds) => OverRepeats::of_folds(&values, folds),
                None => OverRepeats::of(&values.iter().map(|(_, estimate)| *estimate).collect::<Vec<_>>()),
            }
        };
        (0..settings).map(of_setting).collect()
    }

    /// The report of draws that are this to each other.
    pub fn of_draws(self, relation: Relation) -> Report {
        Report { relation: Some(relation), ..self }
    }

    /// The report with what the files of the study became.
    pub fn of_data(self, data: Option<Notes>) -> Report {
        Report { data, ..self }
    }

    /// The report of a path, whose settings stand where repeats do.
    pub fn of_path(self, path: PathReport) -> Report {
        Report { metrics: BTreeMap::new(), path: Some(path), ..self }.judged()
    }

    /// The report with the warnings that its facts call for.
    pub fn judged(self) -> Report {
        let rounds = if self.path.is_some() { "settings" } else { "repeats" };
        Report { warnings: warnings(&self.repeats, rounds), ..self }
    }

    /// `elbo.csv`, if there was a variational fit.
    pub fn elbo(&self) -> Option<String> {
        let line = |(repeat, p): (usize, &ElboPoint)| {
            let ElboPoint { iteration, elbo, change_mean, change_median } = p;
            format!("{repeat},{iteration},{elbo:?},{change_mean:?},{change_median:?}\n")
        };
        let points = self.repeats.iter().flat_map(|r| r.elbo.iter().map(move |point| (r.repeat, point)));
        let lines: String = points.map(line).collect();
        let header = "repeat,iteration,elbo,change_mean,change_median\n";
        (!lines.is_empty()).then(|| header.to_owned() + &lines)
    }

    pub fn draws(&self) -> usize {
        self.repeats.iter().map(|r| r.draws).sum()
    }

    /// Draws with this status.
    pub fn count(&self, status: Status) -> usize {
        self.repeats.iter().map(|r| r.diagnostics.count(status)).sum()
    }

    /// Draws that are none: failed, separated or not identified.
    pub fn lost(&self) -> usize {
        Status::ALL.into_iter().filter(|s| s.is_lost()).map(|s| self.count(s)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that are all alike in number: the mean of the folds and its standard error. Otherwise a fold counts by its rows.
    #[test]
    fn folds_are_pooled_over_rows() {
        let estimate = |value| Estimate { value, mcse: 0.3 };
        let alike = [1.0, 2.0, 6.0].map(|v| (10, estimate(v)));
        let pooled = OverRepeats::of_folds(&alike, 3).unwrap();
        assert!((pooled.mean - 3.0).abs() < 1e-15);
        // Variance 7, over three folds.
        assert!((pooled.se.unwrap() - (7.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((pooled.mcse.unwrap() - 0.3 / 3.0f64.sqrt()).abs() < 1e-15);
        let pooled = OverRepeats::of_folds(&[(30, estimate(1.0)), (10, estimate(5.0))], 2).unwrap();
        assert!((pooled.mean - 2.0).abs() < 1e-15, "80 over 40 rows");
        // Dealt out twice, with the same numbers: no more is known.
        let twice = OverRepeats::of_folds(&[alike, alike].concat(), 3).unwrap();
        assert!((twice.se.unwrap() - (7.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!(OverRepeats::of_folds(&alike, 2).is_none(), "a fold is missing");
    }
}
