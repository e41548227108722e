//! A finished run as a posterior to predict with: its draws, its model, and how its rows were prepared. No training data are needed.

use std::path::Path;

use ndarray::{Array1, Array2};

use crate::config::{Document, printable};
use crate::data::Dataset;
use crate::data::preparation::{Column, Preparation, Preparations};
use crate::data::prepare::StandardiseBy;
use crate::error::{Error, Result};
use crate::experiment::{DataConfig, Experiment};
use crate::math::log_sum_exp;
use crate::model::{Context, Model, ModelConfig, Response};
use crate::rng::{Purpose, Seed};
use crate::samples::{Kinship, LOG_WEIGHT, Samples};
use crate::store;

use super::value::Values;

/// The draws of one repeat, or of one setting of a path.
pub struct Posterior {
    pub model: Box<dyn Model>,
    pub preparation: Preparation,
    /// How the training file was written.
    pub data: DataConfig,
    /// Of the mixtures among its draws, if labels were aligned: the share of them where labels are ambiguous.
    pub ambiguous: Option<f64>,
    pub(super) draws: Vec<Vec<f64>>,
    pub(super) weights: Option<Vec<f64>>,
    /// Their logarithms, those of equal weights too.
    pub(super) log_weights: Vec<f64>,
    pub(super) seed: Seed,
    /// Of its group, where there are groups.
    round: usize,
    /// Among the rounds of all groups.
    pub(super) place: usize,
    /// What is asked for instead of what the model predicts.
    pub(super) values: Option<Values>,
}

impl Posterior {
    /// Of a round of a run, counted from 0; over all groups, where there are groups.
    pub fn open(run: &Path, round: usize) -> Result<Posterior> {
        let wrong = |what: String| in_run(run, &what);
        let (preparations, experiment) = (preparations(run)?, experiment(run, round)?);
        let each = experiment.repeats.get() * experiment.folds();
        let (group, own) =
            if preparations.by().is_some() { (round / each, round % each) } else { (0, round) };
        let preparation = preparations.of(group).clone();
        let names = preparation.columns(own).iter().map(|column| column.name.clone()).collect();
        let model = model(&experiment, names, &preparation)?;
        let samples = Samples::open(&store::samples_of(run)?)?;
        let relation = store::relation_of(run, &samples);
        let mixture = relation.components.is_some_and(|components| components.count() > 1);
        let (samples, ambiguous) = match mixture {
            true => samples.relabelled(relation).map(|(samples, done)| (samples, Some(done.ambiguous())))?,
            false => (samples, None),
        };
        let names = model.names();
        let names = samples.named(&names).map_err(|name| {
            let name = printable(name);
            wrong(format!("no draws of {name}: prediction needs all parameters; name them in `path.keep`"))
        })?;
        let weighted = relation.draws == Kinship::Weighted;
        let statistics: &[&str] = if weighted { &[LOG_WEIGHT] } else { &[] };
        let mut table = samples.table(statistics, &names, Some(round + 1))?;
        let count = table.parameters.first().map_or(0, Vec::len);
        if count == 0 {
            return Err(wrong("it has no draws to predict with: all of them failed".into()));
        }
        let log_weights = match weighted {
            true => {
                let logs = table.statistics.remove(0);
                let total = log_sum_exp(&logs);
                logs.into_iter().map(|l| l - total).collect()
            }
            false => vec![-libm::log(count as f64); count],
        };
        let weights = weighted.then(|| log_weights.iter().map(|l| libm::exp(*l)).collect());
        let draws = (0..count).map(|b| table.parameters.iter().map(|column| column[b]).collect()).collect();
        let common = Seed(experiment.seed.unwrap_or(0).wrapping_add(own as u64));
        let name = preparations.by().and_then(|(_, groups)| groups.get(group));
        let seed = name.map_or(common, |name| common.of_group(name));
        Ok(Posterior {
            model,
            preparation,
            data: experiment.data,
            ambiguous,
            draws,
            weights,
            log_weights,
            seed,
            round: own,
            place: round,
            values: None,
        })
    }

    pub fn count(&self) -> usize {
        self.draws.len()
    }

    pub(super) fn columns(&self) -> &[Column] {
        self.preparation.columns(self.round)
    }

    /// No rows, named as new ones are.
    pub(super) fn rows_like(&self, has_response: bool) -> Dataset {
        let names: Vec<String> = self.columns().iter().map(|column| column.name.clone()).collect();
        let y = has_response.then(|| Array1::zeros(0));
        Dataset::new(Array2::zeros((0, names.len())), y, names)
            .with_response_names(self.preparation.response_names())
    }

    /// Whether responses that may come can be drawn, and an interval of them says something.
    pub fn responds(&self) -> bool {
        let width = self.columns().len();
        let probe = Dataset::new(Array2::zeros((1, width)), None, vec![String::new(); width]);
        let mut rng = self.seed.stream(Purpose::Prediction, 0, 0);
        self.model
            .response()
            .is_some_and(|response| !matches!(response, Response::Binary | Response::Class(_)))
            && self.model.respond(&self.draws[0], &probe, &mut rng, &mut [0.0])
    }

    /// The run standardised its test rows by themselves, which new rows cannot be.
    pub fn standardised_by_each(&self) -> bool {
        self.data.standardise_by == StandardiseBy::Each
            && self.preparation.rounds.iter().flatten().any(|column| column.sd.is_some())
    }
}

fn in_run(run: &Path, what: &str) -> Error {
    Error::input(format!("{}: {what}", printable(&run.display().to_string())))
}

/// How the rows of a run were prepared.
pub fn preparations(run: &Path) -> Result<Preparations> {
    if !store::read_manifest(run)?.outputs.contains_key(store::PREPARATION) {
        let why = "it was made by a version of npl that did not keep how rows are prepared: run the experiment again";
        return Err(in_run(run, why));
    }
    let file = store::file_of(run, store::PREPARATION)?;
    let text = std::fs::read_to_string(&file).map_err(|e| in_run(run, &e.to_string()))?;
    let unknown = || in_run(run, "its preparation.json is not one that this version of npl knows");
    Preparations::of_text(&text).ok_or_else(unknown)
}

/// That coefficients are those of columns: what the parameters of a loss of one's own are, it alone knows.
pub fn check_units(run: &Path) -> Result<()> {
    match experiment(run, 0)?.model {
        ModelConfig::Custom(_) => {
            let why = "--units: what the parameters of [model.custom] are to columns is known to its loss alone; leave \
                       `data.standardise` out where units matter";
            Err(in_run(run, why))
        }
        _ => Ok(()),
    }
}

/// That e^β is a ratio: of odds or of rates, where the expectation of the response is no line.
pub fn check_ratios(run: &Path) -> Result<()> {
    let experiment = experiment(run, 0)?;
    let preparations = preparations(run)?;
    let preparation = preparations.of(0);
    let names = preparation.columns(0).iter().map(|column| column.name.clone()).collect();
    let model = model(&experiment, names, preparation)?;
    match model.response().filter(|_| model.coefficients().is_some()) {
        // Of classes: of the odds of a later one, or of one against the first.
        Some(Response::Binary | Response::Count | Response::Positive | Response::Class(_)) => Ok(()),
        _ => Err(in_run(
            run,
            "--ratios: they are told of regressions with one coefficient a column, of a response that is 0 or 1, a class, a count or \
              positive; `[derived]` makes others: r = \"exp(beta.x)\"",
        )),
    }
}

/// What a run derives of its parameters, by name.
pub fn derived(run: &Path) -> Result<Vec<String>> {
    Ok(experiment(run, 0)?.derived.texts().into_iter().map(|(name, _)| name).collect())
}

/// The experiment of a round as the run resolved it.
fn experiment(run: &Path, round: usize) -> Result<Experiment> {
    let file = store::file_of(run, store::CONFIG)?;
    let shown = file.display().to_string();
    let text =
        std::fs::read_to_string(&file).map_err(|e| Error::input(format!("{}: {e}", printable(&shown))))?;
    let document = Document::parse(&shown, &text, &[])?;
    let experiment = Experiment::read(&document)?;
    let Some(path) = &experiment.path else { return Ok(experiment) };
    match path.settings().get(round) {
        Some(value) => Ok(Experiment::read(&document.setting(path, round, value)?)?),
        None => Ok(experiment),
    }
}

/// The model of an experiment, made of no rows: its parameters and densities do not depend on them.
fn model(experiment: &Experiment, columns: Vec<String>, preparation: &Preparation) -> Result<Box<dyn Model>> {
    // Some models are made another way where rows have an offset.
    let has_offset = preparation.offset.is_some() || preparation.exposure.is_some();
    let none = Dataset::new(Array2::zeros((0, columns.len())), Some(Array1::zeros(0)), columns)
        .with_classes(preparation.classes.clone())
        .with_response_names(preparation.response_names())
        .with_offset(has_offset.then(|| Array1::zeros(0)));
    let Experiment { optimiser, derived, .. } = experiment;
    let context = Context { train: &none, alpha: 0.0, mass: 1.0, optimiser, derived: Some(derived) };
    experiment.model.build(&context).map_err(|complaints| {
        let (key, why) = &complaints[0];
        Error::input(format!("`{}` {why}", experiment.model.key(key)))
    })
}
