//! From an experiment file to a study: everything checked, data loaded, model and prior built.

mod checks;
mod load;
mod memory;
mod response;

use std::sync::{Arc, Mutex, MutexGuard};

use load::{Part, Rows, Sources};
pub use memory::Need;

use crate::config::{
    Complaint, Count, Document, Problem, Scalar, nearest, printable, within, without_characters,
};
use crate::data::Dataset;
use crate::data::design::Design;
use crate::data::files::{Input, SearchPath};
use crate::data::preparation::{Preparation, Preparations};
use crate::data::prepare::Notes;
use crate::error::{Error, Result};
use crate::evaluate::predicts;
use crate::experiment::{Experiment, Metric, PathConfig};
use crate::expression::{Derived, Fault};
use crate::method::{Case, Inference, prior, start_files};
pub use crate::method::{ReadyTrial, Trial};
use crate::model::{Context, Model, ModelConfig, Response, subsample};
use crate::rng::Seed;
use crate::samples::{Grouping, Kinship, Sample, fits};

const STAGE_IS_NOT_TESTED: &str = "`split` puts rows aside for testing, and these stages have nothing to be tested by: the last of them would \
                                   need `data.target` for its response, and no `weight`; leave it out";

/// The rows that stand for the truth, and the model on them.
type Population = (Arc<Dataset>, Arc<dyn Model>);

/// A checked experiment with its files read.
pub struct Study {
    /// Resolved: every default that matters is written out.
    pub experiment: Experiment,
    document: Document,
    sources: Arc<Sources>,
    /// Those of the other groups, where there are groups: this one is that of the first.
    others: Vec<Study>,
    inputs: Vec<Input>,
    search: SearchPath,
    /// The first repeat, built for the checks, until it is run.
    first: Mutex<Option<Arc<Trial>>>,
    /// The experiments of the settings of a path.
    settings: Vec<(Document, Experiment)>,
    /// The first setting of a path, built for the checks, until it is run.
    first_setting: Mutex<Option<Box<Study>>>,
    derived: Option<Derived>,
    /// What the data became.
    notes: Notes,
}

impl Study {
    /// Checks all that can be checked, reads the data, and builds the first repeat once to be sure.
    pub fn new(document: Document, mut experiment: Experiment, search: SearchPath) -> Result<Study> {
        let problems = checks::problems(&document, &experiment);
        if !problems.is_empty() {
            return Err(document.problems(problems).into());
        }
        experiment.seed = Some(experiment.seed.unwrap_or_else(crate::rng::drawn_seed));
        let read = Sources::read(&experiment, &document, &search);
        let mut sources = read.map_err(|error| named_in(&document, error))?.into_iter();
        let first = sources.next().expect("there is a group at least");
        let others: Vec<Arc<Sources>> = sources.collect();
        let mut study = Study::ready(document.clone(), experiment.clone(), first, search.clone())?;
        for sources in others {
            let other = Study::ready(document.clone(), experiment.clone(), sources, search.clone())?;
            study.join(other)?;
        }
        study.check_path()?;
        Ok(study)
    }

    /// Adds another group.
    fn join(&mut self, other: Study) -> Result<()> {
        self.check_alike(&other)?;
        // They share a table of draws, and memory has room for the first round of one of them.
        *other.kept_first() = None;
        self.notes = std::mem::take(&mut self.notes).and(&other.notes);
        self.notes.distinct = self.notes.distinct.zip(other.notes.distinct).map(|(a, b)| a + b);
        self.others.push(other);
        Ok(())
    }

    /// That another group has the parameters of this one: draws of all groups stand in one table.
    fn check_alike(&self, other: &Study) -> Result<()> {
        let (here, there) = (self.parameters(&*self.trial(0)?), other.parameters(&*other.trial(0)?));
        if here == there {
            return Ok(());
        }
        let lacks = |of: &[String], other: &[String]| other.iter().find(|name| !of.contains(name)).cloned();
        let name = |study: &Study| printable(study.group().unwrap_or_default());
        let (who, what, whose) = match (lacks(&here, &there), lacks(&there, &here)) {
            (Some(what), _) => (self, what, other),
            (None, Some(what)) => (other, what, self),
            (None, None) => (other, there.first().cloned().unwrap_or_default(), self),
        };
        let message = format!(
            "the groups of `data.by` must have the same parameters, and group \"{}\" has no `{}`, which group \"{}\" has: not every level or \
             class occurs in both; `data.by_prepare = \"overall\"` makes the columns of all rows together",
            name(who),
            printable(&what),
            name(whose)
        );
        Err(self.problem("data.by", message))
    }

    /// The group that the rows are of, where there are groups.
    fn group(&self) -> Option<&str> {
        self.sources.group.as_deref()
    }

    /// The names of the groups, in their order; empty where there are none.
    pub fn groups(&self) -> Vec<&str> {
        std::iter::once(self).chain(&self.others).filter_map(Study::group).collect()
    }

    /// How many rows each group has, those for testing aside if they are in a file of their own.
    pub fn group_rows(&self) -> Vec<usize> {
        std::iter::once(self).chain(&self.others).map(|study| study.sources.rows_held()).collect()
    }

    /// The column that groups are values of.
    pub fn by(&self) -> Option<&str> {
        self.sources.by()
    }

    /// Which rounds are those of which group, where there are groups.
    pub fn grouping(&self) -> Option<Grouping> {
        Grouping::new(self.groups().into_iter().map(str::to_owned).collect(), self.each())
    }

    /// The group of a round, from 0, and which repeat of it the round is, from 0.
    pub fn place(&self, round: usize) -> (Option<&str>, usize) {
        let (study, repeat) = self.of_round(round);
        (study.group(), repeat)
    }

    /// The study of the group of a round, and which repeat of it the round is: all repeats of a group, then those of the next.
    fn of_round(&self, round: usize) -> (&Study, usize) {
        let each = self.each();
        match (round / each).checked_sub(1) {
            Some(other) if other < self.others.len() => (&self.others[other], round % each),
            _ => (self, if self.others.is_empty() { round } else { round % each }),
        }
    }

    /// Repeats of each group, folds counted one by one.
    pub fn each(&self) -> usize {
        self.experiment.repeats.get() * self.experiment.folds()
    }

    fn ready(
        document: Document,
        experiment: Experiment,
        sources: Arc<Sources>,
        search: SearchPath,
    ) -> Result<Study> {
        let group = sources.group.clone();
        let study = Study::checked(document, experiment, sources, search);
        study.map_err(|error| match &group {
            Some(group) => in_group(error, group),
            None => error,
        })
    }

    fn checked(
        document: Document,
        mut experiment: Experiment,
        sources: Arc<Sources>,
        search: SearchPath,
    ) -> Result<Study> {
        experiment.derived = experiment.derived.flat();
        let (inputs, notes) = (sources.inputs.clone(), sources.notes.clone());
        let (first, settings, first_setting) = (Mutex::default(), Vec::new(), Mutex::default());
        let mut study = Study {
            experiment,
            document,
            sources,
            others: Vec::new(),
            inputs,
            search,
            first,
            settings,
            first_setting,
            derived: None,
            notes,
        };
        study.record_starts()?;
        let first = study.resolve()?;
        study.notes.distinct = first.train.collapsed.map(|_| first.train.n());
        study.derived = study.derive(&first)?;
        study.check_data(&first)?;
        *study.kept_first() = Some(Arc::new(first));
        Ok(study)
    }

    fn kept_first(&self) -> MutexGuard<'_, Option<Arc<Trial>>> {
        self.first.lock().expect("nothing panics while it is held")
    }

    /// That the data of every repeat have a minimum to be found, before the first is sampled.
    fn check_data(&self, first: &Trial) -> Result<()> {
        let data = &self.experiment.data;
        let alike = data.split.is_none()
            && data.simulate.is_none()
            && data.response.is_none()
            && data.resample.is_none()
            && self.experiment.evaluate.folds.is_none();
        for repeat in 0..if alike { 1 } else { self.each() } {
            let seed = self.seed(repeat);
            let flaws = if repeat == 0 {
                first.model.flaws(&first.train)
            } else {
                let train = self.data(repeat)?.train;
                self.model(&train)?.flaws(&train)
            };
            let Some(mut flaws) = flaws else { return Ok(()) };
            if self.each() > 1 && !alike {
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
        let first = self.first_setting.lock().expect("nothing panics while it is held").take();
        match first.filter(|_| t == 0) {
            Some(study) => Ok(*study),
            None => self.make_setting(t),
        }
    }

    fn make_setting(&self, t: usize) -> Result<Study> {
        let (document, mut experiment) = self.settings[t].clone();
        experiment.seed = experiment.seed.or(self.experiment.seed);
        experiment.path = None;
        let base = |e: &Experiment| e.prior.as_ref().and_then(|p| p.base.clone());
        let same = experiment.data == self.experiment.data && base(&experiment) == base(&self.experiment);
        let sources = match same {
            true => self.sources.clone(),
            false => {
                let read = Sources::read(&experiment, &document, &self.search);
                let mut read = read.map_err(|error| named_in(&document, error))?;
                read.pop().expect("a path has no groups")
            }
        };
        Study::ready(document, experiment, sources, self.search.clone())
    }

    fn decode_setting(&self, t: usize) -> Result<(Document, Experiment)> {
        let path = self.experiment.path.as_ref().expect("settings are asked of a path");
        let document = self.document.setting(path, t, &path.settings()[t]).map_err(Error::from)?;
        let experiment = Experiment::read(&document).map_err(Error::from)?;
        let problems = checks::problems(&document, &experiment);
        if problems.is_empty() { Ok((document, experiment)) } else { Err(document.problems(problems).into()) }
    }

    /// That every setting of the path is an experiment, and that the parameters to keep exist.
    fn check_path(&mut self) -> Result<()> {
        self.settings = (0..self.settings().len()).map(|t| self.decode_setting(t)).collect::<Result<_>>()?;
        let Some(path) = &self.experiment.path else { return Ok(()) };
        let first = self.make_setting(0)?;
        for (t, value) in self.settings().iter().enumerate().skip(1) {
            // Where a setting takes a penalty away, the data must do without.
            if matches!(value.to_string().as_str(), "0" | "0.0" | "none") {
                self.make_setting(t)?;
            }
        }
        let names = first.parameters(first.trial(0)?.as_ref());
        let meant: Vec<Vec<String>> = path.keep.iter().map(|name| like(name, &names)).collect();
        let unknown = path.keep.iter().enumerate().filter(|(i, _)| meant[*i].is_empty());
        let problem = |(i, name): (usize, &String)| {
            let hint = nearest(name, names.iter().map(String::as_str));
            let hint = hint.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            let message = format!("the model has no parameter `{}`{hint}", printable(name));
            self.document.problem(&format!("path.keep[{i}]"), message)
        };
        let problems: Vec<Problem> = unknown.map(problem).collect();
        if !problems.is_empty() {
            return Err(self.document.problems(problems).into());
        }
        if path.warm {
            self.check_warm(&first)?;
        }
        self.first_setting = Mutex::new(Some(Box::new(first)));
        // As names, each once: what a pattern means is settled.
        let mut keep: Vec<String> = Vec::new();
        meant.into_iter().flatten().for_each(|name| {
            if !keep.contains(&name) {
                keep.push(name)
            }
        });
        self.experiment.path.iter_mut().for_each(|path| path.keep = std::mem::take(&mut keep));
        Ok(())
    }

    /// That searches have a start to be given, and that every setting has the parameters of the first.
    fn check_warm(&self, first: &Study) -> Result<()> {
        let path = self.experiment.path.as_ref().expect("there is a path to be checked");
        let trial = first.trial(0)?;
        if trial.model.blocks().is_empty() {
            let message =
                "`path.warm` has no use: this minimum is found without a start; leave it out".to_owned();
            return Err(self.problem("path.warm", message));
        }
        // No number of a penalty makes another parameter of it.
        let last = path.parameter.rsplit('.').next();
        if path.parameter.contains(".penalty")
            || last == Some("gamma")
            || !path.parameter.starts_with("model.")
        {
            return Ok(());
        }
        let names = trial.model.names();
        for (t, (_, experiment)) in self.settings.iter().enumerate().skip(1) {
            let alpha = self.inference().alpha(experiment);
            let context = Context {
                train: &trial.train,
                alpha,
                mass: trial.train.mass(),
                optimiser: &experiment.optimiser,
                derived: Some(&experiment.derived),
            };
            let same = experiment.model.build(&context).is_ok_and(|model| model.names() == names);
            if !same {
                let value = &self.settings()[t];
                let message = format!(
                    "`path.warm` needs the same parameters at every setting, and those at {value} are others than at {}: a \
                     minimum there is no start here",
                    self.settings()[0]
                );
                return Err(self.problem("path.warm", message));
            }
        }
        Ok(())
    }

    /// How draws are made.
    pub fn inference(&self) -> &'static dyn Inference {
        self.experiment.method.inference()
    }

    /// Names of all entries of a draw: those of the model, and what its prior adds to them where that is sampled.
    /// Then what is derived from them.
    pub fn parameters(&self, trial: &Trial) -> Vec<String> {
        let mut names = self.inference().parameters(trial.model.as_ref(), &trial.train);
        names.extend(self.derived.iter().flat_map(|derived| derived.names.clone()));
        names
    }

    fn derive(&self, first: &Trial) -> Result<Option<Derived>> {
        let parameters = self.inference().parameters(first.model.as_ref(), &first.train);
        Derived::new(&self.experiment.derived, &parameters).map_err(|faults| {
            let problem = |(name, fault): (String, Fault)| {
                let key = format!("derived.{name}");
                self.document.problem(&within(&key, &fault.span), format!("`{key}`: {fault}"))
            };
            self.document.problems(faults.into_iter().map(problem).collect()).into()
        })
    }

    /// Adds to a draw what is derived from its parameters.
    pub fn extend(&self, draw: &mut Sample) {
        self.extend_parameters(&mut draw.theta);
    }

    /// The same, to its parameters.
    pub fn extend_parameters(&self, theta: &mut Vec<f64>) {
        self.derived.iter().for_each(|derived| derived.extend(theta));
    }

    /// A few words on how draws are made: `RR-NPL R=10`, `FI-NPL`, `NPL`, `MDP-NPL`, with α where it is not 0; `NUTS`, `ADVI`,
    /// `IS`.
    pub fn label(&self) -> String {
        self.inference().label(&self.experiment)
    }

    /// That of a round. A group has its own, by its name.
    pub fn seed(&self, round: usize) -> Seed {
        let (study, repeat) = self.of_round(round);
        let common = study.common_seed(repeat);
        study.group().map_or(common, |group| common.of_group(group))
    }

    /// That of the experiment, of which the others are made.
    pub fn first_seed(&self) -> Seed {
        self.common_seed(0)
    }

    /// That of a repeat, whatever the group.
    fn common_seed(&self, repeat: usize) -> Seed {
        Seed(
            self.experiment.seed.expect("the seed is set when the study is made").wrapping_add(repeat as u64),
        )
    }

    /// Neither the file nor an override named a seed.
    pub fn seed_was_drawn(&self) -> bool {
        !self.document.has("seed")
    }

    /// All of them, folds counted one by one: those of the first repeat, then those of the second; and of every group.
    pub fn repeats(&self) -> usize {
        self.each() * (1 + self.others.len())
    }

    /// What repeat `repeat`, from 0, is about.
    fn part(&self, repeat: usize) -> Part {
        let deal = |folds: Count| {
            let folds = folds.get();
            (repeat % folds, folds, self.seed(repeat / folds))
        };
        let fold = self.experiment.evaluate.folds.map(deal);
        Part { seed: self.seed(repeat), common: self.common_seed(repeat), fold }
    }

    /// Places of the test rows of a round, from 0, among the rows of its group that are used, where they are put aside of them.
    pub fn test_rows(&self, round: usize) -> Option<Vec<usize>> {
        let (study, repeat) = self.of_round(round);
        study.sources.test_rows(&study.experiment.data, study.part(repeat))
    }

    /// Setting of a path and repeat of it that a round is, all from 0: all settings of a fold, then those of the next.
    pub fn setting_of(&self, round: usize) -> (usize, usize) {
        let settings = self.settings.len().max(1);
        (round % settings, round / settings)
    }

    /// Settings of the path follow each other: a search begins at the minimum of the setting before.
    pub fn is_warm(&self) -> bool {
        self.experiment.path.as_ref().is_some_and(|path| path.warm)
    }

    pub fn draws(&self) -> usize {
        self.experiment.sampler.draws.get()
    }

    /// Draws of a round: of a path, `sampler.B` may be what it is about.
    pub fn draws_of(&self, round: usize) -> u64 {
        let of_setting =
            self.settings.get(self.setting_of(round).0).map(|(_, experiment)| experiment.sampler.draws.get());
        of_setting.unwrap_or_else(|| self.draws()) as u64
    }

    /// How often the draws are made: once for every repeat, or for every setting of the path, and every fold.
    pub fn rounds(&self) -> usize {
        if self.experiment.path.is_some() {
            self.settings().len() * self.experiment.folds()
        } else {
            self.repeats()
        }
    }

    /// The files that went in.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// What the data became.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The same, if there were files.
    pub fn file_notes(&self) -> Option<Notes> {
        Some(self.notes().clone()).filter(|notes| notes.rows > 0 || notes.base.is_some())
    }

    /// Records the files that draws are started and centred from.
    fn record_starts(&mut self) -> Result<()> {
        let mut files = self.inference().inputs(&self.experiment);
        files.splice(0..0, start_files(&self.experiment, &self.search));
        for path in files.iter().filter(|path| path.is_file()) {
            self.inputs.push(Input::of(path)?);
        }
        Ok(())
    }

    /// How new rows are prepared like the training rows of every round.
    pub fn preparations(&self) -> Result<Preparations> {
        let own = self.preparation()?;
        let Some(by) = self.by() else { return Ok(Preparations::One(Box::new(own))) };
        let names = self.groups().into_iter().map(str::to_owned).collect();
        let mut all = vec![own];
        if !self.experiment.data.prepares_overall() {
            for other in &self.others {
                all.push(other.preparation()?);
            }
        }
        Ok(Preparations::of_groups(by, names, all))
    }

    /// The same, of one group.
    fn preparation(&self) -> Result<Preparation> {
        let path = self.experiment.path.as_ref();
        let by_setting = path.is_some_and(|path| path.parameter.starts_with("data."));
        let of_round = |round: usize| -> Result<Preparation> {
            let (setting, repeat) = if path.is_some() { self.setting_of(round) } else { (0, round) };
            if by_setting {
                let mut all = self.setting(setting)?.preparation()?;
                all.rounds = vec![all.columns(repeat).to_vec()];
                return Ok(all);
            }
            match self.sources.preparation(&self.experiment.data, self.part(repeat)) {
                Some(preparation) => Ok(preparation),
                None => {
                    let train = self.data(repeat)?.train;
                    let classes = if self.sources.classifies() { train.class_names() } else { Vec::new() };
                    Ok(Preparation::plain(&train.columns, classes))
                }
            }
        };
        let folded = self.experiment.evaluate.folds.is_some();
        let data = &self.experiment.data;
        let drawn = data.split.is_some() || data.resample.is_some();
        let alike = !by_setting && !folded && (path.is_some() || !drawn);
        let mut preparation = of_round(0)?;
        let rounds = if path.is_some() { self.rounds() } else { self.each() };
        for round in 1..if alike { 1 } else { rounds } {
            preparation.rounds.extend(of_round(round)?.rounds);
        }
        Ok(preparation)
    }

    /// How the columns of a repeat were made of the rows that it drew, where repeats do not share the units of their columns; with
    /// `None` for the repeat, those of all the rows that are drawn from.
    pub fn own_units(&self, repeat: Option<usize>) -> Option<Preparation> {
        let data = &self.experiment.data;
        let all = self.sources.preparation_of_all(data)?;
        match repeat {
            Some(repeat) => self.sources.preparation(data, self.part(repeat)),
            None => Some(all),
        }
    }

    /// Why coefficients cannot be told in units that repeats share, at the line that says so.
    pub fn no_units(&self, why: &str) -> Error {
        let message = format!(
            "`data.standardise` gives every data set units of its own, and these parameters cannot be told in those of the file: \
             {why}; leave `standardise` out"
        );
        self.problem("data.standardise", message)
    }

    /// Writes defaults that depend on the model into the experiment; and the first repeat.
    fn resolve(&mut self) -> Result<Trial> {
        let rows = self.data(0)?;
        let model = self.model(&rows.train)?;
        self.inference()
            .write_out(&mut self.experiment, model.as_ref())
            .map_err(|(key, message)| self.problem(key, message))?;
        let first = self.assemble(0, rows, model)?;
        if let (Some(config), Some(truncation)) = (&mut self.experiment.prior, first.truncation()) {
            config.truncation = Some(prior::config(truncation));
        }
        Ok(first)
    }

    /// Keys of the file that the method has no use for: one file serves all methods.
    pub fn unused(&self) -> Vec<String> {
        let mut idle = self.experiment.method.idle(&self.experiment);
        let own_start = |trial: &Arc<Trial>| trial.model.has_its_own_start(&trial.train);
        if self.inference().is_bootstrap() && self.kept_first().as_ref().is_some_and(own_start) {
            idle.push("sampler.init".to_owned());
        }
        idle.into_iter().filter(|key| self.document.has(key)).collect()
    }

    /// What cannot be had with a key of the experiment, and where that is written.
    pub fn refused(&self, key: &str, why: &str) -> Error {
        self.problem(key, why)
    }

    fn problem(&self, key: &str, message: impl Into<String>) -> Error {
        self.document.problems(vec![self.document.problem(key, message)]).into()
    }

    /// Training and test rows of one repeat.
    fn data(&self, repeat: usize) -> Result<Rows> {
        #[cfg(test)]
        tests::count(|built| built.0 += 1);
        self.sources.rows(&self.experiment.data, self.part(repeat))
    }

    fn model(&self, train: &Dataset) -> Result<Arc<dyn Model>> {
        #[cfg(test)]
        tests::count(|built| built.1 += 1);
        let mass = train.mass() + self.experiment.prior.as_ref().map_or(0.0, |p| p.alpha.get());
        // Conventional Bayes, which MDP-NPL begins with, has no pseudo-samples: what the data leave open stays open.
        let alpha = self.inference().alpha(&self.experiment);
        self.check_order(train)?;
        let Experiment { optimiser, derived, .. } = &self.experiment;
        let context = Context { train, alpha, mass, optimiser, derived: Some(derived) };
        let model: Arc<dyn Model> = self
            .experiment
            .model
            .build(&context)
            .map(Arc::from)
            .map_err(|problems| self.model_problems(problems))?;
        let bare = self.sources.leaves_out_the_intercept()
            && !matches!(self.experiment.model, ModelConfig::Custom(_));
        if bare && model.blocks().iter().any(|block| block.name == "intercept") {
            let name = self.experiment.model.table();
            let message = format!(
                "`data.formula` leaves the intercept out, and {name} has one of its own: write the formula \
                                   without `- 1` or `+ 0`"
            );
            return Err(self.problem("data.formula", message));
        }
        if self.experiment.data.event.is_some() && !model.knows_events() {
            let name = self.experiment.model.table();
            let message = format!("`data.event` has no use: {name} knows no censored responses");
            return Err(self.problem("data.event", message));
        }
        for key in ["offset", "exposure"] {
            let data = &self.experiment.data;
            let given = if key == "offset" { &data.offset } else { &data.exposure };
            if given.is_some() && !model.knows_offsets() {
                let name = self.experiment.model.table();
                let message = format!("`data.{key}` has no use: {name} takes no offset");
                return Err(self.problem(&format!("data.{key}"), message));
            }
        }
        if self.experiment.optimiser.subsample.is_some() && self.inference().is_bootstrap() {
            subsample::possible(model.as_ref(), train)
                .map_err(|why| self.problem("optimiser.subsample", format!("`optimiser.subsample` {why}")))?;
        }
        Ok(model)
    }

    /// Keys below the model's table, and what is wrong with them.
    /// That somebody has said in which order the texts of ordered classes stand: the alphabet does not know.
    fn check_order(&self, train: &Dataset) -> Result<()> {
        let told = !self.experiment.data.classes.is_empty() || !self.sources.classifies();
        if told || self.experiment.model.name() != "ordered" || train.classes.is_empty() {
            return Ok(());
        }
        let classes = train.class_names();
        if classes.iter().all(|class| class.parse::<f64>().is_ok()) {
            return Ok(());
        }
        let known: Vec<String> = classes.iter().map(|class| format!("\"{}\"", printable(class))).collect();
        let example: Vec<String> =
            known.iter().enumerate().map(|(k, class)| format!("{class} = {k}")).collect();
        let message = format!(
            "`model.ordered` needs the order of its classes, and the response has the texts {}: say it from the lowest to the \
             highest, as in `data.classes = {{ {} }}` if it is this one",
            known.join(", "),
            example.join(", ")
        );
        Err(self.problem("data.target", message))
    }

    fn model_problems(&self, problems: Vec<Complaint>) -> Error {
        let place = |(key, why): Complaint| {
            let key = self.experiment.model.key(&key);
            let (bare, characters) = without_characters(&key);
            let colon = if characters.is_some() { ":" } else { "" };
            self.document.problem(&key, format!("`{bare}`{colon} {why}"))
        };
        self.document.problems(problems.into_iter().map(place).collect()).into()
    }

    /// What the data of all repeats are drawn from, as rows, at least so many where they have to be simulated; and its model. They
    /// count for as many observations as a repeat has, so that γ = 1/n is that of its few rows. `None` where nothing is drawn anew.
    pub fn population(&self, rows: usize) -> Result<Option<Population>> {
        let mass = self.trial(0)?.train.mass();
        let Some(all) = self.sources.population(&self.experiment.data, self.seed(0), rows)? else {
            return Ok(None);
        };
        let unit = mass / all.mass();
        let weights = (0..all.n()).map(|i| unit * all.weight(i)).collect();
        let all = all.with_design(Design::new(Some(weights), None, None));
        let model = self.model(&all)?;
        Ok(Some((Arc::new(all), model)))
    }

    /// What is wrong with the data of a repeat, if its loss has no minimum on them.
    pub fn flaws(&self, trial: &Trial) -> Vec<String> {
        let flaws = trial.model.flaws(&trial.train).unwrap_or_default();
        flaws.into_iter().map(|(_, why)| why).collect()
    }

    /// A round, counted from 0.
    pub fn trial(&self, round: usize) -> Result<Arc<Trial>> {
        let (study, repeat) = self.of_round(round);
        study.own_trial(repeat)
    }

    fn own_trial(&self, repeat: usize) -> Result<Arc<Trial>> {
        if let Some(first) = self.kept_first().as_ref().filter(|_| repeat == 0) {
            return Ok(first.clone());
        }
        let rows = self.data(repeat)?;
        let model = self.model(&rows.train)?;
        self.assemble(repeat, rows, model).map(Arc::new)
    }

    /// The same for good: nothing is kept of it here.
    pub fn take_trial(&self, round: usize) -> Result<Arc<Trial>> {
        let trial = self.trial(round);
        *self.kept_first() = None;
        trial
    }

    fn assemble(&self, repeat: usize, rows: Rows, model: Arc<dyn Model>) -> Result<Trial> {
        let seed = self.seed(repeat);
        let history = self.sources.history(&self.experiment, self.part(repeat))?;
        let case = Case {
            experiment: &self.experiment,
            document: &self.document,
            search: &self.search,
            repeat,
            seed,
            first_seed: self.seed(0),
            group: self.group(),
            train: &rows.train,
            covariates: &rows.covariates,
            history: history.as_ref(),
            model: &model,
        };
        let prepared = self.inference().prepare(&case)?;
        let relation = self.inference().relation(&self.experiment, model.as_ref());
        let Rows { train, test, .. } = rows;
        if self.experiment.data.split.is_some() && !model.is_likelihood() && !model.has_mean() {
            let message = match self.experiment.model.is_staged() {
                true => STAGE_IS_NOT_TESTED,
                false => &self.untested("split"),
            };
            return Err(self.problem("data.split", message));
        }
        if let Some(why) = test.as_ref().and_then(|test| model.refuses(test)) {
            let name = self.experiment.model.table();
            let key = if self.experiment.data.test.is_some() { "data.test" } else { "data" };
            return Err(self.problem(key, format!("the test rows: {name} {why}")));
        }
        if self.experiment.evaluate.folds.is_some() && !model.is_likelihood() && !model.has_mean() {
            let message = self.untested("folds");
            return Err(self.problem("evaluate.folds", message));
        }
        self.check_metrics(model.as_ref(), test.as_deref())?;
        if self.experiment.output.pointwise {
            let scored = test.is_some()
                && self
                    .experiment
                    .evaluate
                    .metrics
                    .as_ref()
                    .is_none_or(|m| m.iter().any(|m| *m != Metric::Sparsity));
            let chains = matches!(relation.draws, Kinship::Chains { .. });
            let why = match () {
                _ if !model.is_likelihood() => "keeps log densities, and this loss is no likelihood",
                _ if !scored && !chains => {
                    "keeps log densities of test rows: give `data.test`, `data.split` or `evaluate.folds`, and \"lppd\" among \
                     the metrics"
                }
                _ => "",
            };
            if !why.is_empty() {
                return Err(self.problem("output.pointwise", format!("`pointwise` {why}")));
            }
        }
        let subsample = self.experiment.optimiser.subsample.clone();
        Ok(Trial { seed, train, test, model, prior: prepared.prior(), relation, subsample, prepared })
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
                Metric::Accuracy | Metric::LogLoss
                    if !matches!(model.response(), Some(Response::Binary | Response::Class(_))) =>
                {
                    "\"accuracy\" and \"log_loss\" need a model of a response that is 0 or 1, or a class"
                }
                Metric::Auc if model.response() != Some(Response::Binary) => {
                    "\"auc\" needs a model of a response that is 0 or 1"
                }
                Metric::Mse if matches!(model.response(), Some(Response::Class(_))) => {
                    "\"mse\" needs a response that is a number, and this one is a class"
                }
                Metric::Mse if model.response().is_none() => "\"mse\" needs a model of a response",
                Metric::Mse
                    if matches!(self.experiment.model, ModelConfig::Custom(_)) && !model.has_mean() =>
                {
                    "\"mse\" needs `model.custom.predict`, what is predicted for a row without its response"
                }
                Metric::Mse if !model.has_mean() => {
                    "\"mse\" needs an expectation of the response, and this model has none"
                }
                Metric::Mse
                    if model.response() != Some(Response::Binary)
                        && test.is_some_and(|test| !predicts(model, test)) =>
                {
                    "\"mse\" needs test responses that are known, and some are censored"
                }
                _ if test.is_none() => {
                    "metrics on test data need some: give `data.test`, `data.split`, `evaluate.folds` or `n_test`"
                }
                _ => continue,
            };
            return Err(self.problem("evaluate.metrics", why));
        }
        Ok(())
    }

    /// Rows are put aside for nothing.
    fn untested(&self, key: &str) -> String {
        let way = match self.experiment.model {
            ModelConfig::Custom(_) => {
                "; say what is predicted for a row without its response, by `model.custom.predict`, or leave it out"
            }
            _ => "; leave it out",
        };
        format!("`{key}` puts rows aside for testing, and this loss has nothing to be tested by{way}")
    }
}

/// What is wrong with a group.
fn in_group(error: Error, group: &str) -> Error {
    let what = format!("group \"{}\"", printable(group));
    match error {
        Error::Config(problems) => Error::Config(problems.of(&what)),
        Error::Input(message) => Error::Input(format!("{message}\n  in {what} of `data.by`")),
        other => other,
    }
}

/// The parameter of this name, or those that fit it as a pattern.
fn like(pattern: &str, names: &[String]) -> Vec<String> {
    if names.iter().any(|name| name == pattern) {
        return vec![pattern.to_owned()];
    }
    let characters = |text: &str| text.chars().collect::<Vec<char>>();
    let pattern = characters(pattern);
    names.iter().filter(|name| fits(&pattern, &characters(name))).cloned().collect()
}

/// What is wrong with the data, and the line of the experiment that it is about: that of the key that the message names, or of the
/// files.
fn named_in(document: &Document, error: Error) -> Error {
    let Error::Input(message) = error else { return error };
    let keys = message.split('`').skip(1).step_by(2).filter(|key| key.starts_with("data."));
    // A column that is not there is named where it is asked for.
    let named = |key: &&str| {
        let absent = |text: &str| message.contains(&format!("no column \"{}\"", printable(text)));
        document.text(key).is_some_and(absent)
    };
    let columns = ["target", "event", "offset", "exposure", "weight", "cluster", "stratify"];
    let columns = columns.map(|name| format!("data.{name}"));
    let asked = columns.iter().map(String::as_str).filter(named);
    let place = keys.chain(asked).chain(["data.train"]).find_map(|key| Some((key, document.line(key)?)));
    let place = place.map(|(key, line)| format!("\n  see {line}, `{key}`")).unwrap_or_default();
    Error::Input(message.clone() + &place)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::run::run_repeat;

    thread_local! {
        /// How often this thread has built data and models.
        static BUILT: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }

    pub fn count(change: impl FnOnce(&mut (usize, usize))) {
        let mut built = BUILT.get();
        change(&mut built);
        BUILT.set(built);
    }

    /// What was built by checking the experiment and running all its rounds.
    fn built(text: &str) -> (usize, usize) {
        BUILT.set((0, 0));
        let document = Document::parse("x.toml", text, &[]).unwrap();
        let experiment = document.decode().unwrap();
        let study = Study::new(document, experiment, SearchPath::default()).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let run = |study: &Study, repeat: usize| {
            run_repeat(study, repeat, &pool, &AtomicBool::new(false), &mut |_: Sample| Ok(())).unwrap();
        };
        match study.settings().len() {
            0 => (0..study.repeats()).for_each(|repeat| run(&study, repeat)),
            settings => (0..settings).for_each(|t| run(&study.setting(t).unwrap(), 0)),
        }
        BUILT.get()
    }

    #[test]
    fn every_round_is_built_once() {
        let text = "name = \"x\"\nseed = 1\nrepeats = 3\n[data.simulate.normal]\nn = 20\nmean = 0.0\nsd = 1.0\n\
                    [model.normal]\nsigma2 = 1.0\n[sampler]\nB = 5\n";
        assert_eq!(built(text), (3, 3));
        let path = "[path]\nparameter = \"model.normal.sigma2\"\nvalues = [1.0, 2.0, 3.0]\n";
        // The experiment as it stands is checked too.
        assert_eq!(built(&(text.replace("repeats = 3\n", "") + path)), (4, 4));
    }
}
