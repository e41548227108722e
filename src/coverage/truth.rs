//! The true value of every parameter: by what the data are drawn from, where the parameter is known exactly; else at the minimum of
//! the loss over a very large sample; or as the user says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::config::{nearest, printable};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Link, SimulatedResponse};
use crate::init::Init;
use crate::model::{Model, ModelConfig};
use crate::optim::Status;
use crate::process::Measure;
use crate::restarts::leaders;
use crate::rng::Purpose;
use crate::samples::{Sample, Units};
use crate::study::Study;

/// Which truth is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// The stated one where it is exact, else the minimum of the loss.
    Best,
    Stated,
    /// The minimum of the loss over what data sets are drawn from.
    Minimum,
    /// As a file says: a column for each parameter.
    File(std::path::PathBuf),
}

/// True values of parameters.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Truth {
    /// `stated`, `minimum` or `file`.
    pub by: String,
    /// Rows that the loss was made small over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// Coefficients, and what is derived of them, are in the units of the file, and not those of the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_units_of_data: bool,
    pub values: Vec<(String, f64)>,
}

impl Truth {
    /// Of a study; where rows have to be simulated for it, at least so many are.
    pub fn of(study: &Study, wanted: &Wanted, rows: usize) -> Result<Truth> {
        let first = study.trial(0)?;
        let names = first.model.names();
        let units = units(study, &names, None)?;
        let in_units_of_data = units.is_some();
        match wanted {
            Wanted::File(path) => {
                let values = read(path, &study.parameters(&first))?;
                Ok(Truth { by: "file".into(), rows: None, in_units_of_data, values })
            }
            Wanted::Best | Wanted::Stated => match stated(&study.experiment, first.model.as_ref()) {
                Ok(theta) => {
                    let values = all(study, &theta)?;
                    Ok(Truth { by: "stated".into(), rows: None, in_units_of_data, values })
                }
                Err(why) if *wanted == Wanted::Stated => Err(Error::input(format!(
                    "the truth is not known exactly: {why}; `--truth minimum` finds the parameter by a very large sample"
                ))),
                Err(_) => Truth::of(study, &Wanted::Minimum, rows),
            },
            Wanted::Minimum => {
                let Some((all_rows, model)) = study.population(rows)? else {
                    let message = "data sets must be drawn anew: from `data.simulate`, `data.response`, or the rows of a file \
                                   (`data.resample`, or --resample N)";
                    return Err(Error::input(message));
                };
                debug_assert_eq!(names, model.names());
                let mut theta = minimum(&study.experiment, model.as_ref(), &all_rows, study.seed(0))?;
                units.iter().for_each(|units| units.apply(0, &mut theta));
                let values = all(study, &theta)?;
                Ok(Truth { by: "minimum".into(), rows: Some(all_rows.n()), in_units_of_data, values })
            }
        }
    }
}

/// What tells parameters in the units of the file, where data sets have units of their own and so no truth in common: those of a
/// data set, or of all rows.
pub fn units(study: &Study, parameters: &[String], dataset: Option<usize>) -> Result<Option<Units>> {
    let Some(preparation) = study.own_units(dataset) else { return Ok(None) };
    Units::new(parameters, &preparation, true, false).map(Some).map_err(|why| study.no_units(&why))
}

/// With what is derived of them, and without what has no true value: a parameter that only the prior has.
fn all(study: &Study, theta: &[f64]) -> Result<Vec<(String, f64)>> {
    let trial = study.trial(0)?;
    let own = study.inference().parameters(trial.model.as_ref(), &trial.train).len();
    let mut theta = theta.to_vec();
    theta.resize(own, f64::NAN);
    let mut sample = Sample {
        index: 0,
        theta,
        objective: 0.0,
        restart: 1,
        iterations: 0,
        status: Status::Ok,
        extra: Vec::new(),
    };
    study.extend(&mut sample);
    let named = study.parameters(&trial).into_iter().zip(sample.theta);
    Ok(named.filter(|(_, value)| value.is_finite()).collect())
}

/// θ as the simulation says it, if the model's parameters are those of the simulation; else why not.
fn stated(experiment: &Experiment, model: &dyn Model) -> std::result::Result<Vec<f64>, String> {
    let data = &experiment.data;
    let columns = || -> Vec<String> {
        let names = model.names();
        names.iter().filter_map(|name| name.strip_prefix("beta.")).map(String::from).collect()
    };
    let regression = |beta: &BTreeMap<String, f64>, intercept: f64, more: &[(&str, f64)]| {
        let value = |name: &String| match name.strip_prefix("beta.") {
            Some(column) => Some(beta.get(column).copied().unwrap_or(0.0)),
            None if name == "intercept" => Some(intercept),
            None => more.iter().find(|(other, _)| other == name).map(|(_, value)| *value),
        };
        if let Some(absent) = beta.iter().find(|(name, value)| **value != 0.0 && !columns().contains(name)) {
            return Err(format!("the model has no coefficient of \"{}\"", printable(absent.0)));
        }
        model.names().iter().map(value).collect::<Option<Vec<f64>>>().ok_or_else(|| other(experiment))
    };
    // A penalty of weight 1/n moves the minimum; conventional Bayes has it as its prior, which moves no truth.
    if experiment.method.is_bootstrap() && experiment.is_penalised() {
        return Err("the loss has a penalty".to_owned());
    }
    match (&experiment.model, &data.response, &data.simulate) {
        (ModelConfig::Normal(_) | ModelConfig::Mean(_), None, Some(truth)) => Ok(truth.means()),
        (ModelConfig::Linear(_), Some(SimulatedResponse::Linear(truth)), _) => {
            let sigma = truth.sigma.get();
            regression(&truth.beta, 0.0, &[("sigma", sigma), ("sigma2", sigma * sigma)])
        }
        (ModelConfig::Logistic(_), Some(SimulatedResponse::Logistic(beta)), _) => regression(beta, 0.0, &[]),
        (ModelConfig::Logistic(_), Some(SimulatedResponse::Binary(truth)), _)
            if truth.link == Link::Logit =>
        {
            regression(&truth.beta, truth.intercept, &[])
        }
        (ModelConfig::Poisson(_), Some(SimulatedResponse::Poisson(beta)), _) => regression(beta, 0.0, &[]),
        _ => Err(other(experiment)),
    }
}

fn other(experiment: &Experiment) -> String {
    format!("the parameters of {} are not those of the simulation", experiment.model.table())
}

/// The minimum of the unweighted loss, the lowest of as many searches as a draw has.
fn minimum(
    experiment: &Experiment,
    model: &dyn Model,
    rows: &Dataset,
    seed: crate::rng::Seed,
) -> Result<Vec<f64>> {
    let no_files = |_: &str, _: &[String]| Err("starts from files are not read here".to_owned());
    let init = Init::build(
        model.blocks(),
        &model.names(),
        &experiment.sampler.init,
        &Arc::new(rows.clone()),
        &no_files,
    )
    .map_err(|found| {
        Error::input(found.into_iter().map(|(key, why)| format!("{key} {why}")).collect::<String>())
    })?;
    let f = Measure::empirical(rows);
    let searches = experiment.sampler.restarts.map_or(1, |r| r.get());
    let search = |r: u64| model.minimise(&f, &init.draw(&mut seed.stream(Purpose::Selection, 1, r)));
    let mut minima: Vec<_> = (0..searches as u64).map(search).collect();
    let best = minima.swap_remove(leaders(&minima).pop().expect("one search at least"));
    match best.status.is_lost() || !best.value.is_finite() {
        true => Err(Error::Failed("the loss has no minimum over the very large sample".into())),
        false => Ok(best.theta),
    }
}

/// A column for each parameter, of which the first row counts.
fn read(path: &Path, names: &[String]) -> Result<Vec<(String, f64)>> {
    let shown = printable(&path.display().to_string());
    let wrong = |what: String| Error::input(format!("{shown}: {what}"));
    let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| wrong(e.to_string()))?.clone();
    let row = reader.records().next().ok_or_else(|| wrong("no row below the names".into()))?;
    let row = row.map_err(|e| wrong(e.to_string()))?;
    let mut values = Vec::new();
    for (column, (name, cell)) in header.iter().zip(row.iter()).enumerate() {
        if name.ends_with("__") {
            continue;
        }
        let Some(known) = names.iter().find(|n| *n == name) else {
            let hint = nearest(name, names.iter().map(String::as_str));
            let hint = hint.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            return Err(wrong(format!(
                "line 1, column {}: the model has no parameter `{}`{hint}",
                column + 1,
                printable(name)
            )));
        };
        let value = cell.trim().parse::<f64>().ok().filter(|v| v.is_finite());
        let value = value.ok_or_else(|| {
            wrong(format!("line 2, column {}: \"{}\" is not a finite number", column + 1, printable(cell)))
        })?;
        values.push((known.clone(), value));
    }
    Ok(values)
}
