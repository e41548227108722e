//! What a run says about itself: one entry per repeat, and mean, sd and standard error over repeats.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bootstrap::Draw;
use crate::evaluate::{ByRestarts, Estimate, nan_for_null};
use crate::math::{mean, sd};
use crate::model::Model;
use crate::optim::Status;
use crate::restarts::{Adequacy, AdequacySum};

/// Header of `report.csv`.
pub const HEADER: &str = "repeat,seed,method,n_train,n_test,draws,lppd,mse,accuracy,sparsity,seconds";

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
    pub diagnostics: Diagnostics,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_restarts: Vec<ByRestarts>,
}

/// How the draws of a repeat were found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Number of draws by status.
    pub status: BTreeMap<String, usize>,
    pub mean_iterations: f64,
    pub max_iterations: usize,
    /// Largest gradient entry left in any draw that did not fail.
    pub max_gradient: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapse: Option<CollapseShares>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Adequacy>,
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
#[derive(Default)]
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
    restarts: AdequacySum,
}

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
    }

    pub fn draws(&self) -> usize {
        self.draws
    }

    pub fn diagnostics(&self) -> Diagnostics {
        let share = |hit: usize| hit as f64 / self.judged as f64;
        Diagnostics {
            status: self.status.iter().map(|(s, n)| (s.name().to_owned(), *n)).collect(),
            mean_iterations: self.iterations / self.draws as f64,
            max_iterations: self.max_iterations,
            max_gradient: self.max_gradient,
            collapse: (self.judged > 0)
                .then(|| CollapseShares { at_floor: share(self.at_floor), narrow: share(self.narrow) }),
            restarts: self.restarts.mean(),
        }
    }
}

impl Diagnostics {
    pub fn failed(&self) -> usize {
        self.status.get(Status::Failed.name()).copied().unwrap_or(0)
    }
}

impl Repeat {
    /// Line of `report.csv`; a metric that does not apply is left empty.
    pub fn line(&self, method: &str) -> String {
        let cells = self.metrics().map(|(_, m)| m.map(|e| format!("{:?}", e.value)).unwrap_or_default());
        format!(
            "{},{},{method},{},{},{},{},{:.3}",
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
    pub fn metrics(&self) -> [(&'static str, Option<Estimate>); 4] {
        [("lppd", self.lppd), ("mse", self.mse), ("accuracy", self.accuracy), ("sparsity", self.sparsity)]
    }
}

/// Everything a program may want to know of a run: `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub name: String,
    pub method: String,
    /// A few words on how the draws were made, for tables.
    pub label: String,
    /// One per repeat; of a path, one per setting.
    pub repeats: Vec<Repeat>,
    /// Over repeats; nothing is averaged over the settings of a path.
    pub metrics: BTreeMap<String, OverRepeats>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathReport>,
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

impl OverRepeats {
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
        Report { name: name.to_owned(), method: method.to_owned(), label, repeats, metrics, path: None }
    }

    /// The report of a path, whose settings stand where repeats do.
    pub fn of_path(self, path: PathReport) -> Report {
        Report { metrics: BTreeMap::new(), path: Some(path), ..self }
    }

    pub fn draws(&self) -> usize {
        self.repeats.iter().map(|r| r.draws).sum()
    }

    pub fn failed(&self) -> usize {
        self.repeats.iter().map(|r| r.diagnostics.failed()).sum()
    }
}
