//! A run as figures see it: its draws without those that are none, its report, and its study where data are needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::kde::Bounds;
use super::names;
use super::options::is_coefficient;
use crate::config::{Document, printable};
use crate::data::files::SearchPath;
use crate::data::preparation::Column;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::math::log_sum_exp;
use crate::path::PathPoint;
use crate::predict;
use crate::report::{PathReport, Report};
use crate::samples::{Columns, Kinship, LOG_WEIGHT, Relabelling, Relation, Samples, Summary};
use crate::store;
use crate::study::{Study, Trial};

/// Draws of one repeat, or of one setting of a path.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    pub names: Vec<String>,
    /// One per name, all of the same length.
    pub columns: Vec<Vec<f64>>,
    /// Of draws that do not count alike; they sum to 1.
    pub weights: Option<Vec<f64>>,
    /// Of draws that are no independent ones: how many of those they are worth, for the column that is worth least.
    pub worth: Option<f64>,
    /// Draws that were left out because they are none.
    pub lost: usize,
}

impl Draws {
    pub fn count(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    pub fn weight(&self, i: usize) -> f64 {
        self.weights.as_ref().map_or(1.0 / self.count() as f64, |w| w[i])
    }

    pub fn column(&self, name: &str) -> Option<&[f64]> {
        self.names.iter().position(|n| n == name).map(|j| &self.columns[j][..])
    }

    /// Draws, evenly spaced, and no more than so many.
    pub fn thinned(&self, most: usize) -> Vec<usize> {
        let n = self.count();
        if n <= most { (0..n).collect() } else { (0..most).map(|i| i * n / most).collect() }
    }
}

/// A run directory that is read.
pub struct Source {
    pub folder: PathBuf,
    /// How it is called in legends.
    pub label: String,
    pub report: Report,
    pub relation: Relation,
    /// None of a path that kept no parameters.
    samples: Option<Samples>,
    search: SearchPath,
    /// Of a mixture whose components were put under the same labels in every draw: the share of draws where it might be otherwise.
    pub ambiguous: Option<f64>,
    /// The place of the group that its draws and its report are of, from 0, if they are those of one group alone.
    group: Option<usize>,
    /// Its coefficients are told in the units of the data.
    of_data: bool,
    study: Arc<std::sync::OnceLock<std::result::Result<Arc<Study>, String>>>,
}

impl Source {
    pub fn open(folder: &Path, search: SearchPath) -> Result<Source> {
        let report = store::read_report(folder)?;
        let samples = match (store::samples_of(folder).and_then(|file| Samples::open(&file)), &report.path) {
            (Ok(samples), _) => Some(samples),
            (Err(_), Some(_)) => None,
            (Err(error), None) => return Err(error),
        };
        let relation = samples.as_ref().map_or(Relation::INDEPENDENT, |s| store::relation_of(folder, s));
        let label = printable(&report.name);
        let (folder, study) = (folder.to_owned(), Arc::default());
        let (ambiguous, group, of_data) = (None, None, false);
        Ok(Source { folder, label, report, relation, samples, search, ambiguous, group, of_data, study })
    }

    /// The same run, or one group of it, read once more.
    fn reopened(&self, group: Option<usize>) -> Result<Source> {
        let whole = Source::open(&self.folder, self.search.clone())?;
        let again = match group {
            Some(group) => Source { study: self.study.clone(), ..whole.of_group(group) },
            None => whole,
        };
        if self.of_data { again.in_units_of_data() } else { Ok(again) }
    }

    /// The same run, read once more, under the same label.
    pub fn again(&self) -> Result<Source> {
        Ok(self.reopened(self.group)?.labelled(self.label.clone()))
    }

    /// The run with the coefficients of its regression in the units of its data, intercept included.
    pub fn in_units_of_data(mut self) -> Result<Source> {
        if self.path().is_some() {
            let shown = printable(&self.folder.display().to_string());
            let why = "--units: the summary of a path is made while it runs, in the units of the model";
            return Err(Error::input(format!("{shown}: {why}")));
        }
        predict::check_units(&self.folder)?;
        let kept = predict::preparations(&self.folder)?;
        let preparation = match self.group {
            Some(group) => kept.of(group).clone(),
            None => kept.joined(self.report.each()),
        };
        self.samples()?;
        let samples = self.samples.take().expect("looked at just now");
        let (samples, _) = samples.in_units(&preparation, true, false)?;
        Ok(Source { samples: Some(samples), of_data: true, ..self })
    }

    /// Whether its coefficients are told in the units of the data.
    pub fn is_in_units_of_data(&self) -> bool {
        self.of_data
    }

    /// How many units of the file are one unit of each column of the model; nothing where the run did not keep it.
    pub fn scales(&self) -> Option<Vec<(String, f64)>> {
        let kept = predict::preparations(&self.folder).ok()?;
        let preparation = kept.of(self.group.unwrap_or(0));
        let divide = preparation.divide.unwrap_or(1.0);
        let scale = |column: &Column| {
            let sd = column.sd.filter(|sd| *sd > 0.0).map_or(1.0, |sd| sd / column.unit);
            sd * if column.level.is_none() { divide } else { 1.0 }
        };
        Some(preparation.columns(0).iter().map(|column| (column.name.clone(), scale(column))).collect())
    }

    /// What its coefficients are effects of, where that has to be said.
    pub fn per(&self) -> Option<&'static str> {
        if self.of_data {
            return Some("per unit of the data");
        }
        let kept = predict::preparations(&self.folder).ok()?;
        let columns = kept.of(self.group.unwrap_or(0)).columns(0);
        match columns.iter().filter(|column| column.sd.is_some()).count() {
            0 => None,
            n if n == columns.len() => Some("per standard deviation of the column"),
            _ => Some("per standard deviation of the column, those of levels as they are"),
        }
    }

    /// One of its groups, from 0, as a run of its own, under the name of the group.
    fn of_group(self, group: usize) -> Source {
        let each = self.report.each();
        let rounds = group * each + 1..(group + 1) * each + 1;
        Source {
            label: printable(&self.report.groups[group].name),
            report: self.report.group(group),
            samples: self.samples.map(|samples| samples.of_rounds(rounds)),
            group: Some(group),
            ..self
        }
    }

    /// These of its groups, each as a run of its own; itself, if it has none.
    pub fn groups(self, places: &[usize]) -> Result<Vec<Source>> {
        if self.report.groups.is_empty() {
            return Ok(vec![self]);
        }
        places.iter().map(|&group| self.reopened(Some(group))).collect()
    }

    /// Whether it is one group of a run that has several.
    pub fn is_group(&self) -> bool {
        self.group.is_some()
    }

    pub fn labelled(self, label: impl Into<String>) -> Source {
        Source { label: label.into(), ..self }
    }

    /// The run with the components of its mixture under the same labels in every draw.
    pub fn relabelled(self) -> Result<Source> {
        let relation = self.relation;
        self.aligned(relation).map(|(source, _)| source)
    }

    /// The same with labels in the order of the means of the first column, so that those of several runs can be compared; and
    /// what that did to the draws.
    pub fn relabelled_by_means(self) -> Result<(Source, Relabelling)> {
        let by_means = Relation { exchangeable: true, ..self.relation };
        self.aligned(by_means)
    }

    fn aligned(mut self, relation: Relation) -> Result<(Source, Relabelling)> {
        self.samples()?;
        let samples = self.samples.take().expect("looked at just now");
        let (aligned, done) = samples.relabelled(relation)?;
        let relation = Relation { exchangeable: false, ..self.relation };
        let ambiguous = Some(done.ambiguous());
        Ok((Source { samples: Some(aligned), relation, ambiguous, ..self }, done))
    }

    /// Whether its draws are mixtures of several components.
    pub fn is_mixture(&self) -> bool {
        self.relation.components.is_some_and(|components| components.count() > 1)
    }

    /// Those whose draws are there.
    pub fn parameters(&self) -> &[String] {
        self.samples.as_ref().map_or(&[], |s| s.parameters())
    }

    fn samples(&self) -> Result<&Samples> {
        let none = || {
            let shown = printable(&self.folder.display().to_string());
            Error::input(format!(
                "{shown}: the path kept no draws; name parameters in `path.keep` and run it again"
            ))
        };
        self.samples.as_ref().ok_or_else(none)
    }

    /// Repeats, or settings of the path.
    pub fn rounds(&self) -> usize {
        self.path().map_or(self.report.repeats.len(), |path| path.values.len())
    }

    pub fn path(&self) -> Option<&PathReport> {
        self.report.path.as_ref()
    }

    /// Parameters that are regression coefficients.
    pub fn coefficients(&self) -> Vec<String> {
        self.parameters().iter().filter(|name| is_coefficient(name)).cloned().collect()
    }

    /// These parameters of the draws of a round, counted from 1.
    pub fn draws(&self, names: &[String], round: usize) -> Result<Draws> {
        let kinship = self.relation.draws;
        let statistics: &[&str] = match kinship {
            Kinship::Independent => &[],
            Kinship::Chains { .. } => &["restart__"],
            Kinship::Weighted => &[LOG_WEIGHT],
        };
        let Columns { statistics, parameters: columns, lost } =
            self.samples()?.table(statistics, names, Some(round))?;
        let names = names.to_vec();
        let (weights, worth) = match (kinship, statistics.first()) {
            (Kinship::Weighted, Some(logs)) => {
                let total = log_sum_exp(logs);
                let weights: Vec<f64> = logs.iter().map(|l| libm::exp(l - total)).collect();
                let squares: f64 = weights.iter().map(|w| w * w).sum();
                (Some(weights), Some(1.0 / squares))
            }
            (Kinship::Chains { .. }, Some(chains)) => {
                let sizes = columns.iter().map(|column| crate::samples::worth(chains, column));
                (None, sizes.filter(|size| size.is_finite()).min_by(f64::total_cmp))
            }
            _ => (None, None),
        };
        Ok(Draws { names, columns, weights, worth, lost })
    }

    /// Statistics of the draws of a round, and how many draws are none.
    pub fn statistics(&self, names: &[&str], round: usize) -> Result<(Vec<Vec<f64>>, usize)> {
        let table = self.samples()?.table(names, &[], Some(round))?;
        Ok((table.statistics, table.lost))
    }

    /// A parameter of the draws of every round.
    pub fn by_round(&self, name: &str) -> Result<Vec<Draws>> {
        let mut table = self.samples()?.table(&["repeat__"], &[name.to_owned()], None)?;
        let mut rounds =
            vec![
                Draws { names: vec![name.to_owned()], columns: vec![Vec::new()], ..Draws::default() };
                self.rounds()
            ];
        for (round, value) in table.statistics.remove(0).into_iter().zip(table.parameters.remove(0)) {
            if let Some(draws) = rounds.get_mut((round as usize).wrapping_sub(1)) {
                draws.columns[0].push(value);
            }
        }
        Ok(rounds)
    }

    pub fn has_statistic(&self, name: &str) -> bool {
        self.samples.iter().flat_map(|s| s.columns()).any(|c| c == name)
    }

    /// Numbers of all parameters of a round.
    pub fn summaries(&self, round: usize) -> Result<Vec<Summary>> {
        self.samples()?.summarise(self.relation.draws, Some(round))
    }

    /// Numbers of all parameters of the draws of all rounds together.
    pub fn overall(&self) -> Result<Vec<Summary>> {
        self.samples()?.summarise(self.relation.draws, None)
    }

    /// Points of the path: settings from 1.
    pub fn points(&self) -> Result<Vec<(usize, PathPoint)>> {
        crate::path::read(&store::file_of(&self.folder, store::PATH)?)
    }

    /// The experiment, checked, with its data; made once.
    pub fn study(&self) -> Result<Arc<Study>> {
        let made = self.study.get_or_init(|| self.make_study().map(Arc::new).map_err(|e| e.to_string()));
        made.clone().map_err(Error::Input)
    }

    fn make_study(&self) -> Result<Study> {
        let (document, experiment) = self.config()?;
        Study::new(document, experiment, self.search.clone())
    }

    /// The experiment as the run resolved it.
    pub fn config(&self) -> Result<(Document, Experiment)> {
        let file = self.folder.join(store::CONFIG);
        let shown = file.display().to_string();
        let text = std::fs::read_to_string(&file)
            .map_err(|e| Error::input(format!("{}: {e}", printable(&shown))))?;
        let document = Document::parse(&shown, &text, &[])?;
        let experiment = Experiment::read(&document)?;
        Ok((document, experiment))
    }

    /// Data, model and prior of a round, counted from 1.
    pub fn trial(&self, round: usize) -> Result<Arc<Trial>> {
        let study = self.study()?;
        match self.path() {
            Some(_) => study.setting(round - 1)?.trial(0),
            None => study.trial(self.group.unwrap_or(0) * study.each() + round - 1),
        }
    }

    /// Parameters of the model as the draws call them: with dots or brackets.
    pub fn named(&self, names: &[String]) -> Result<Vec<String>> {
        let lacking =
            |name: &String| Error::input(format!("{}: no draws of {}", self.label, printable(name)));
        self.samples()?.named(names).map_err(lacking)
    }

    /// A number of the experiment, by its dotted key.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        let file = self.folder.join(store::CONFIG);
        let shown = printable(&file.display().to_string());
        let text = std::fs::read_to_string(&file).map_err(|e| Error::input(format!("{shown}: {e}")))?;
        let table: toml::Table = text.parse().map_err(|_| Error::input(format!("{shown}: not TOML")))?;
        let mut value = toml::Value::Table(table);
        for part in key.split('.') {
            match value.get(part) {
                Some(inner) => value = inner.clone(),
                None => return Ok(None),
            }
        }
        Ok(value.as_float().or(value.as_integer().map(|i| i as f64)))
    }

    /// Where a parameter can lie.
    pub fn bounds(&self, name: &str) -> Bounds {
        names::bounds(name)
    }
}
