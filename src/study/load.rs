//! The files of an experiment, read and prepared once; and the rows of each repeat.

use std::sync::Arc;

use rand::RngExt;

use super::response::with_response;
use crate::config::{Count, Document, nearest, printable, within};
use crate::data::by::{Grouped, in_order};
use crate::data::collapse::{Collapsed, FEWEST};
use crate::data::columns::ENDING;
use crate::data::design::DesignColumns;
use crate::data::files::{Input, PARQUET_ENDING, SearchPath};
use crate::data::preparation::{MadeColumn, Preparation, ReadColumn};
use crate::data::prepare::{self, Frame, Notes, Recipe, Scales, StandardiseBy};
use crate::data::shape::{Shape, ShapeFault};
use crate::data::split::{deal, split, split_clusters};
use crate::data::table::Table;
use crate::data::text::{Categorical, Rules, Syntax};
use crate::data::{Dataset, Format, read};
use crate::error::{Error, Result};
use crate::experiment::{
    CategoricalConfig, DataConfig, Experiment, FileFormat, Files, GivenSplit, SplitConfig,
};
use crate::expression::Fault;
use crate::process::base::BaseConfig;
use crate::rng::{Purpose, Rng, Seed};
use crate::storage::{self, Place};

/// The rows of a repeat.
#[derive(Clone)]
pub struct Rows {
    pub train: Arc<Dataset>,
    /// Test rows, if there are any.
    pub test: Option<Arc<Dataset>>,
    /// Where covariates come from: the training rows, or, where `data.rows` leaves none, those that there were.
    pub covariates: Arc<Dataset>,
}

/// Which rows of the files a round is about.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Of the round.
    pub seed: Seed,
    /// The seed that groups share.
    pub common: Seed,
    /// The fold that is held out, from 0, of so many, and the seed that folds are dealt by.
    pub fold: Option<(usize, usize, Seed)>,
}

/// Everything read from files.
#[derive(Default)]
pub struct Sources {
    pub inputs: Vec<Input>,
    pub notes: Notes,
    /// Historical rows for an empirical base measure.
    history: History,
    data: Source,
    recipe: Recipe,
    /// Columns of the training file, where it has no line of names.
    places: Option<Vec<String>>,
    /// Characters that are cut off the end of responses.
    strip: String,
    shape: Shape,
    /// What makes the columns that are made by expressions, and what it reads.
    made: (Vec<MadeColumn>, Vec<ReadColumn>),
    /// Columns of text by their names.
    categorical: Vec<String>,
    /// The group that the rows are of, where there are groups.
    pub group: Option<String>,
    /// Means and standard deviations, where they are not those of the training rows of a round.
    scales: Option<Scales>,
    /// How many folds there are, if any.
    folds: Option<usize>,
    /// Identical rows are one where at most one of so many is left.
    pays: usize,
    /// Identical rows are counted while they are read, where at most one of so many is left.
    gather: Option<usize>,
}

/// What the rows of a repeat are made of.
#[derive(Default)]
enum Source {
    /// Drawn by the seed of the repeat.
    #[default]
    Simulated,
    /// Split anew in each repeat, and prepared after that.
    Split(Box<Frame>),
    /// Drawn anew from the rows in each repeat, and prepared after that.
    Resampled(Box<Frame>, Option<Box<Frame>>),
    /// The same in each repeat.
    Fixed(Rows, Box<Preparation>),
}

/// Historical rows: they are prepared as new rows are, by the training rows.
#[derive(Default)]
enum History {
    #[default]
    None,
    /// The same in each repeat.
    Fixed(Arc<Dataset>),
    /// Prepared anew by the training rows of each repeat.
    Frame(Box<Frame>),
}

impl Sources {
    /// One for each group, or for all rows where there are none.
    pub fn read(
        experiment: &Experiment,
        document: &Document,
        search: &SearchPath,
    ) -> Result<Vec<Arc<Sources>>> {
        let gather = experiment.data.train.as_ref().is_some_and(|files| may_gather(experiment, files));
        let sources = Sources::read_as(experiment, document, search, gather)?;
        // Rows that were counted, and of which too many are left when they are prepared, are read as others are.
        match sources[0].is_scattered(&experiment.data) {
            true => Sources::read_as(experiment, document, search, false),
            false => Ok(sources),
        }
    }

    fn read_as(
        experiment: &Experiment,
        document: &Document,
        search: &SearchPath,
        gather: bool,
    ) -> Result<Vec<Arc<Sources>>> {
        let config = &experiment.data;
        let shape = Shape::new(&config.derive, config.filter.as_deref(), config.formula.as_deref());
        let shape = shape.unwrap_or_else(|_| unreachable!("checked with the experiment"));
        // A closed form is hardly more than its weights, and those of rows that stand for several cost more.
        let pays = if experiment.model.is_closed_form() { 32 } else { 2 };
        let mut sources =
            Sources { recipe: recipe_of(experiment, config, &shape), shape, pays, ..Sources::default() };
        sources.gather = gather.then_some(pays.min(MOST_LEFT));
        sources.folds = experiment.evaluate.folds.map(|folds| folds.get());
        if let Some(CategoricalConfig::Columns(columns)) = &config.categorical {
            sources.categorical.clone_from(columns);
        }
        let located = |(key, fault): ShapeFault| {
            let key = format!("data.{key}");
            let problem = document.problem(&within(&key, &fault.span), format!("`{key}`: {fault}"));
            Error::from(document.problems(vec![problem]))
        };
        if config.mapped == Some(true) {
            storage::check().map_err(|why| Error::input(format!("`data.mapped`: {why}")))?;
        }
        let mut groups = Vec::new();
        if let Some(files) = &config.train {
            let train = sources.read_part(files, config.labels.as_ref(), config, config.rows, search);
            let train = train.map_err(|error| sources.taken_for_numbers(error, config))?;
            sources.gather = None;
            sources.made = sources.shape.kept(&train);
            let train = sources.shaped(train).map_err(located)?;
            let in_train =
                |e: Error| Error::input(format!("{}: {e}", printable(&files.as_slice().join(", "))));
            let named = config.names.is_none() && config.header != Some(false) && !train.header.numbered;
            let of_file = |name: &&String| *name != FOLDS && !sources.shape.makes(name);
            let places = || train.header.names.iter().filter(of_file).cloned().collect();
            sources.places = (!named).then(places);
            sources.strip = config.strip.clone().unwrap_or_default();
            // By name from here on: a column that a test file lacks changes the numbers of the others.
            let config = &by_name(config, &train, &sources.shape).map_err(in_train)?;
            sources.recipe = recipe_of(experiment, config, &sources.shape);
            let test = match &config.test {
                Some(test) => {
                    let labels = config.test_labels.as_ref();
                    let table = sources.read_part(test, labels, config, config.test_rows, search)?;
                    Some(sources.shaped(table).map_err(located)?)
                }
                None => None,
            };
            let names = files.as_slice().iter().chain(config.test.iter().flat_map(Files::as_slice));
            let names = printable(&names.cloned().collect::<Vec<_>>().join(", "));
            let in_files = |e: Error| Error::input(format!("{names}: {e}"));
            let in_formula = |fault: Fault| located(("formula".to_owned(), fault));
            let design = prepare::layout_fault(&train, &sources.recipe);
            design.map_or(Ok(()), |fault| Err(in_formula(fault)))?;
            let history = match historical(experiment) {
                Some(file) => {
                    let inputs = prepare::inputs(&train, &sources.recipe).map_err(in_files)?;
                    Some((file, sources.read_history(file, inputs, config, search)?))
                }
                None => None,
            };
            let history = history.as_ref().map(|(file, table)| (*file, table));
            match &config.by {
                Some(_) => {
                    let grouped = sources.by_group(train, test, history, experiment, config);
                    groups = grouped.map_err(in_files)?;
                }
                None => {
                    let (train, test, notes) =
                        prepare::frames(train, test, &sources.recipe).map_err(in_files)?;
                    sources.notes = notes;
                    sources.hold(train, test, history, experiment, config).map_err(in_files)?;
                }
            }
            let tests = config.test.iter().flat_map(Files::as_slice);
            let twice = tests.filter(|name| files.as_slice().contains(name)).map(|name| {
                let name = printable(name);
                format!("{name} is a file of `data.train` and of `data.test`: its test rows are rows that were learnt from")
            });
            groups.first_mut().unwrap_or(&mut sources).notes.doubts.extend(twice);
        }
        if let (Some(file), None) = (historical(experiment), &config.train) {
            sources.read_plain_history(file, config, search)?;
        }
        if groups.is_empty() {
            return Ok(vec![Arc::new(sources)]);
        }
        let whole = |group| Arc::new(Sources { inputs: sources.inputs.clone(), ..group });
        Ok(groups.into_iter().map(whole).collect())
    }

    /// What holds for every group, and none of its rows.
    fn of_group(&self, name: &str) -> Sources {
        Sources {
            inputs: Vec::new(),
            notes: Notes::default(),
            history: History::None,
            data: Source::Simulated,
            group: Some(name.to_owned()),
            scales: None,
            recipe: self.recipe.clone(),
            places: self.places.clone(),
            strip: self.strip.clone(),
            shape: self.shape.clone(),
            made: self.made.clone(),
            categorical: self.categorical.clone(),
            folds: self.folds,
            pays: self.pays,
            gather: None,
        }
    }

    /// Rows were counted while they were read, and should not have been.
    fn is_scattered(&self, config: &DataConfig) -> bool {
        let Source::Fixed(Rows { train, .. }, _) = &self.data else { return false };
        let judged = |before: Collapsed| {
            config.collapse.is_none() && (before.rows < FEWEST || train.n() > before.rows / self.pays)
        };
        train.collapsed.is_some_and(judged)
    }

    /// The rows of every group.
    fn by_group(
        &self,
        train: Table,
        test: Option<Table>,
        history: Option<(&str, &Table)>,
        experiment: &Experiment,
        config: &DataConfig,
    ) -> Result<Vec<Sources>> {
        let grouped = Grouped::new(&train, test.as_ref(), &self.recipe)?;
        let mut groups = Vec::with_capacity(grouped.names.len());
        if config.prepares_overall() {
            let (train, test, notes) = prepare::frames(train, test, &self.recipe)?;
            // Means are those of the rows that are used.
            let used = config.rows.filter(|&rows| rows > 0).map(|rows| train.heads(rows));
            let scales = used.as_ref().unwrap_or(&train).scales_of_all(&self.recipe);
            for (name, value) in grouped.names.iter().zip(&grouped.values) {
                let mut group = Sources { scales: Some(scales.clone()), ..self.of_group(name) };
                let test = test.as_ref().map(|test| test.of_group(*value));
                let held = group.hold(train.of_group(*value), test, history, experiment, config);
                held.map_err(|error| in_group(error, name))?;
                groups.push(group);
            }
            groups[0].notes = Notes { base: groups[0].notes.base.take(), ..notes };
            return Ok(groups);
        }
        for (g, name) in grouped.names.iter().enumerate() {
            let mut group = self.of_group(name);
            let own = train.select(&grouped.train[g]);
            let test = test.as_ref().zip(grouped.test.as_ref()).map(|(test, rows)| test.select(&rows[g]));
            let made = prepare::frames(own, test, &self.recipe).and_then(|(train, test, notes)| {
                group.notes = notes;
                group.hold(train, test, history, experiment, config)
            });
            made.map_err(|error| in_group(error, name))?;
            groups.push(group);
        }
        groups[0].notes = std::mem::take(&mut groups[0].notes).and(&grouped.notes);
        Ok(groups)
    }

    /// Keeps these rows for all rounds.
    fn hold(
        &mut self,
        train: Frame,
        test: Option<Frame>,
        history: Option<(&str, &Table)>,
        experiment: &Experiment,
        config: &DataConfig,
    ) -> Result<()> {
        let mut history = match history {
            Some((file, table)) => {
                let in_file = |e: Error| Error::input(format!("{}: {e}", printable(file)));
                let (frame, notes) = train.beside(table.clone()).map_err(in_file)?;
                self.notes.base = Some(Box::new(notes));
                Some(frame)
            }
            None => None,
        };
        if let (Some(folds), Some(given)) = (train.folds(), config.split.as_ref().and_then(|s| s.given())) {
            check_folds(folds, given, experiment.repeats.get())?;
        }
        let whole = config.split.is_none() && self.folds.is_none();
        if let Some(folds) = self.folds {
            let (units, what) = match train.design().clusters() {
                Some(clusters) => (clusters.count, "clusters"),
                None => (train.n(), "rows"),
            };
            if folds > units {
                let message =
                    format!("`evaluate.folds` is {folds}, and there are {units} {what} to deal out");
                return Err(Error::input(message));
            }
        }
        self.data = match config.split {
            Some(_) if train.design().clusters().is_some_and(|clusters| clusters.count < 2) => {
                let message = "`data.split` keeps clusters whole, and all rows are in one `data.cluster`";
                return Err(Error::input(message));
            }
            _ if !whole => Source::Split(Box::new(train)),
            _ if config.resample.is_some() => {
                let test = test.map(|t| Box::new(t.head(config.test_rows)));
                Source::Resampled(Box::new(train.head(config.rows)), test)
            }
            _ => {
                let cut = config.rows.filter(|&rows| rows < train.n());
                let preparation = match cut {
                    Some(_) => self.preparation_of(&train.clone().head(cut)),
                    None => self.preparation_of(&train),
                };
                let by = history.is_some().then(|| train.clone().head(those_there_were(config)));
                let test = test.map(|t| t.head(config.test_rows));
                let rows = self.finish(train, test, config.rows, config)?;
                if let (Some(by), Some(history)) = (by, history.take()) {
                    self.history = History::Fixed(self.finished_history(by, history, experiment)?);
                }
                Source::Fixed(rows, Box::new(preparation))
            }
        };
        if let Some(history) = history {
            self.history = History::Frame(Box::new(history));
        }
        Ok(())
    }

    /// Historical rows with what the columns of the training rows are made of.
    fn read_history(
        &mut self,
        file: &str,
        inputs: Vec<String>,
        config: &DataConfig,
        search: &SearchPath,
    ) -> Result<Table> {
        let mut rules = rules(config, &self.recipe, &self.shape, None);
        // What the data do not use may be anything.
        let of_file = || inputs.into_iter().filter(|name| !self.shape.makes(name)).collect();
        rules.columns.get_or_insert_with(of_file);
        let table = self.read_file(file, &rules, config, search)?;
        let in_file = |why: String| Error::input(format!("{}: {why}", printable(file)));
        self.shaped(table).map_err(|(key, fault)| in_file(format!("`data.{key}`: {fault}")))
    }

    /// Historical rows beside rows that are simulated, and so not prepared: they are as they are written.
    fn read_plain_history(&mut self, file: &str, config: &DataConfig, search: &SearchPath) -> Result<()> {
        let rules = rules(config, &self.recipe, &Shape::default(), None);
        let table = self.read_file(file, &rules, config, search)?;
        let in_file = |e: Error| Error::input(format!("{}: {e}", printable(file)));
        let (frame, _, notes) = prepare::frames(table, None, &self.recipe).map_err(in_file)?;
        self.notes.base = Some(Box::new(notes));
        let rows = prepare::finish(frame, None, &self.recipe, None).map_err(in_file)?.0;
        self.history = History::Fixed(Arc::new(rows));
        Ok(())
    }

    /// By the training rows, whatever standardises test rows.
    fn finished_history(&self, by: Frame, history: Frame, experiment: &Experiment) -> Result<Arc<Dataset>> {
        let recipe = Recipe { standardise_by: StandardiseBy::Train, ..self.recipe.clone() };
        let file = historical(experiment).unwrap_or_default();
        let in_file = |e: Error| Error::input(format!("{}: {e}", printable(file)));
        let (_, rows) = prepare::finish(by, Some(history), &recipe, self.scales.as_ref()).map_err(in_file)?;
        Ok(Arc::new(rows.unwrap_or_default()))
    }

    /// Historical rows as the training rows of this round prepare them.
    pub fn history(&self, experiment: &Experiment, part: Part) -> Result<Option<Arc<Dataset>>> {
        let history = match &self.history {
            History::None => return Ok(None),
            History::Fixed(rows) => return Ok(Some(rows.clone())),
            History::Frame(history) => history.as_ref().clone(),
        };
        let config = &experiment.data;
        let by = self.training_frame(config, those_there_were(config), part);
        let by = by.expect("rows of files are split or drawn");
        self.finished_history(by, history, experiment).map(Some)
    }

    /// The training rows of a round before they are prepared, where rounds differ.
    fn training_frame(&self, config: &DataConfig, rows: Option<usize>, part: Part) -> Option<Frame> {
        match &self.data {
            Source::Simulated | Source::Fixed(..) => None,
            Source::Split(frame) => {
                let (train, _) = parts(frame, config, part);
                Some(frame.split(&train, &[]).0.head(rows))
            }
            Source::Resampled(frame, _) => Some(frame.split(&resampled(frame, config, part.seed), &[]).0),
        }
    }

    /// Of a column of text that only an expression reads, and does not hold against a text.
    fn taken_for_numbers(&self, error: Error, config: &DataConfig) -> Error {
        let Error::Input(message) = error else { return error };
        let found = self.shape.reads().1.into_iter().find_map(|name| {
            let named = message.contains(&format!("column \"{}\" (", printable(&name)));
            let chosen = config.columns.as_ref().is_none_or(|columns| columns.contains(&name));
            let read = named && message.contains("is not a number") && !chosen;
            read.then(|| self.shape.reader(&name)).flatten().map(|key| (key, name))
        });
        let Some((key, name)) = found else { return Error::Input(message) };
        let name = printable(&name);
        let why = format!(
            "`data.{key}` takes the column \"{name}\" for numbers, and it has others; texts stand in quotes, as in {name} == 'a'"
        );
        Error::Input(format!("{why}\n{message}"))
    }

    fn read_part(
        &mut self,
        files: &Files,
        labels: Option<&Files>,
        config: &DataConfig,
        rows: Option<usize>,
        search: &SearchPath,
    ) -> Result<Table> {
        // Rows may be limited while reading only where no later step needs the others.
        let whole =
            config.split.is_none() && self.folds.is_none() && config.by.is_none() && !self.shape.drops_rows();
        let limit = rows.filter(|&r| r > 0 && files.as_slice().len() == 1 && whole);
        let mut table = Table::default();
        for file in files.as_slice() {
            let rules = Rules { gather: self.gather, ..rules(config, &self.recipe, &self.shape, limit) };
            table.append(self.read_file(file, &rules, config, search)?, file)?;
        }
        if let Some(labels) = labels {
            let mut responses = Table::default();
            for file in labels.as_slice() {
                let rules = Rules {
                    names: Some(vec![LABELS.into()]),
                    header: Some(false),
                    labels: vec![LABELS.into()],
                    strip: config.strip.clone().unwrap_or_default(),
                    comma: config.has_decimal_commas(),
                    syntax: Syntax::Whitespace,
                    rows: limit,
                    ..Rules::default()
                };
                responses.append(self.read_file(file, &rules, config, search)?, file)?;
            }
            table = beside(table, responses, LABELS)?;
        }
        if let Some(file) =
            config.split.as_ref().and_then(|split| split.given()).and_then(|given| given.file.as_ref())
        {
            let rules = Rules {
                names: Some(vec![FOLDS.into()]),
                header: Some(false),
                labels: vec![FOLDS.into()],
                syntax: Syntax::Whitespace,
                ..Rules::default()
            };
            let folds = self.read_file(file, &rules, config, search)?;
            table = beside(table, folds, FOLDS)?;
        }
        Ok(table)
    }

    /// With the columns that expressions make, and without the rows that they leave out.
    fn shaped(&self, table: Table) -> std::result::Result<Table, ShapeFault> {
        let mut table = self.shape.apply(table)?;
        // Texts that were read to be compared are no covariates.
        let (texts, _) = self.shape.reads();
        let used = |name: &String| {
            let named = self.recipe.columns.as_ref().is_some_and(|columns| columns.contains(name));
            named || self.categorical.contains(name) || self.recipe.names_text(name)
        };
        texts.iter().filter(|name| !used(name)).for_each(|name| table.remove(name));
        Ok(table)
    }

    fn read_file(
        &mut self,
        name: &str,
        rules: &Rules,
        config: &DataConfig,
        search: &SearchPath,
    ) -> Result<Table> {
        let path = search.find(name)?;
        let format = config.format.unwrap_or_else(|| guess(name));
        let is_label_file = rules.names.as_deref().is_some_and(|n| n == [LABELS] || n == [FOLDS]);
        let (table, fingerprint) = match format {
            FileFormat::Idx => read(&path, Format::Idx, rules),
            FileFormat::Columns => read(&path, Format::Columns, rules),
            FileFormat::Parquet => read(&path, Format::Parquet, rules),
            _ if is_label_file => read(&path, Format::Text, rules),
            FileFormat::Csv => read(&path, Format::Text, rules),
            FileFormat::Whitespace => {
                read(&path, Format::Text, &Rules { syntax: Syntax::Whitespace, ..rules.clone() })
            }
            FileFormat::Arff => read(&path, Format::Text, &Rules { syntax: Syntax::Arff, ..rules.clone() }),
        }?;
        self.inputs.push(Input::new(&path, fingerprint));
        Ok(table)
    }

    /// The column by which rows are in groups.
    pub fn by(&self) -> Option<&str> {
        self.recipe.by.as_deref()
    }

    /// Rows that repeats are made of.
    pub fn rows_held(&self) -> usize {
        match &self.data {
            Source::Simulated => 0,
            Source::Split(frame) | Source::Resampled(frame, _) => frame.n(),
            Source::Fixed(rows, _) => rows.train.rows_before(),
        }
    }

    /// By a formula.
    pub fn leaves_out_the_intercept(&self) -> bool {
        self.shape.formula.as_ref().is_some_and(|formula| !formula.has_intercept())
    }

    /// Rounds are made of rows that are kept for all of them.
    pub fn keeps_frame(&self) -> bool {
        matches!(self.data, Source::Split(_) | Source::Resampled(..))
    }

    /// Prepares the first `rows` training rows, and the test rows by them.
    fn finish(
        &self,
        train: Frame,
        test: Option<Frame>,
        rows: Option<usize>,
        config: &DataConfig,
    ) -> Result<Rows> {
        let scales = self.scales.as_ref();
        let all = if rows == Some(0) {
            Some(prepare::finish(train.clone(), None, &self.recipe, scales)?.0)
        } else {
            None
        };
        let (train, test) = prepare::finish(train.head(rows), test, &self.recipe, scales)?;
        // Rows whose response is drawn later are not identical yet.
        let train = Arc::new(if config.response.is_none() { self.collapsed(train, config) } else { train });
        let covariates = all.map_or(train.clone(), Arc::new);
        Ok(Rows { train, test: test.filter(|t| t.n() > 0).map(Arc::new), covariates })
    }

    /// With identical rows as one, if that is asked for, or pays.
    fn collapsed(&self, train: Dataset, config: &DataConfig) -> Dataset {
        let collapsed = match config.collapse {
            Some(false) => None,
            Some(true) => train.collapsed(train.n()),
            None => train.collapsed_if_it_pays(self.pays),
        };
        collapsed.unwrap_or(train)
    }

    /// Whether the response is one of several classes.
    pub fn classifies(&self) -> bool {
        self.recipe.classifies
    }

    fn preparation_of(&self, train: &Frame) -> Preparation {
        let mut preparation = prepare::preparation(train, &self.recipe, self.scales.as_ref());
        preparation.places.clone_from(&self.places);
        (preparation.made, preparation.reads) = self.made.clone();
        preparation.inputs.iter_mut().for_each(|input| input.made = self.shape.makes(&input.name));
        if let Some(target) = &mut preparation.target {
            target.strip.clone_from(&self.strip);
        }
        preparation
    }

    /// How new rows are prepared like the training rows of this round; `None` where the data are no files.
    pub fn preparation(&self, config: &DataConfig, part: Part) -> Option<Preparation> {
        match &self.data {
            Source::Simulated => None,
            Source::Fixed(_, preparation) => Some(preparation.as_ref().clone()),
            _ => self.training_frame(config, config.rows, part).map(|train| self.preparation_of(&train)),
        }
    }

    /// The same of the rows that all repeats are drawn from, where each repeat standardises the rows that it drew by themselves. A
    /// response that is drawn from prepared columns knows those of its repeat, and no others.
    pub fn preparation_of_all(&self, config: &DataConfig) -> Option<Preparation> {
        match &self.data {
            Source::Resampled(frame, _) if config.response.is_none() => {
                Some(self.preparation_of(frame)).filter(Preparation::standardises)
            }
            _ => None,
        }
    }

    /// Places of the test rows of this round, from 0, among the rows that are used, where they are put aside of them.
    pub fn test_rows(&self, config: &DataConfig, part: Part) -> Option<Vec<usize>> {
        let Source::Split(frame) = &self.data else { return None };
        let (_, mut test) = parts(frame, config, part);
        test.truncate(config.test_rows.unwrap_or(usize::MAX));
        Some(test)
    }

    /// The rows of this round.
    pub fn rows(&self, config: &DataConfig, part: Part) -> Result<Rows> {
        let seed = part.seed;
        let rows = match (&self.data, &config.simulate) {
            (Source::Simulated, Some(truth)) => {
                let (train, test) = truth.draw(&mut seed.stream(Purpose::Data, ROWS, 0));
                let cut = |data: Dataset, rows: Option<usize>| match rows {
                    Some(rows) if rows < data.n() => data.head(rows),
                    _ => data,
                };
                let test = test.map(|t| cut(t, config.test_rows)).filter(|t| t.n() > 0);
                let all = (config.rows == Some(0)).then(|| Arc::new(train.clone()));
                let train = cut(train, config.rows);
                let later = config.response.is_some();
                let train = Arc::new(if later { train } else { self.collapsed(train, config) });
                Rows { covariates: all.unwrap_or(train.clone()), train, test: test.map(Arc::new) }
            }
            (Source::Simulated, None) => return Err(Error::input("the experiment has no data")),
            (Source::Fixed(rows, _), _) => rows.clone(),
            (Source::Split(frame), _) => {
                let (train, test) = parts(frame, config, part);
                let (train, test) = frame.split(&train, &test);
                self.finish(train, Some(test.head(config.test_rows)), config.rows, config)?
            }
            (Source::Resampled(frame, test), _) => {
                let (train, _) = frame.split(&resampled(frame, config, seed), &[]);
                self.finish(train, test.as_deref().cloned(), None, config)?
            }
        };
        let Some(response) = &config.response else { return Ok(rows) };
        let mut rng = seed.stream(Purpose::Data, RESPONSES, 0);
        let Rows { train, test, covariates } = rows;
        let drawn = |rows: &Dataset, rng: &mut Rng| with_response(rows, response, rng).map(Arc::new);
        let with = with_response(&train, response, &mut rng)?;
        let test = test.map(|t| drawn(&t, &mut rng)).transpose()?;
        let all = match Arc::ptr_eq(&train, &covariates) {
            true => None,
            false => Some(drawn(&covariates, &mut rng)?),
        };
        let train = Arc::new(self.collapsed(with, config));
        Ok(Rows { covariates: all.unwrap_or(train.clone()), train, test })
    }

    /// What the rows of all repeats are drawn from: the file that they are drawn from; or at least so many rows, simulated, where it
    /// is known only by what can be drawn. `None` where repeats differ by no draw of rows or responses.
    pub fn population(&self, config: &DataConfig, seed: Seed, rows: usize) -> Result<Option<Dataset>> {
        let drawn = match (&self.data, &config.simulate) {
            (Source::Simulated, Some(truth)) => {
                Some(truth.rows(rows, &mut seed.stream(Purpose::Data, POPULATION, 0)))
            }
            (Source::Resampled(frame, _), _) => {
                let all = self.finish(frame.as_ref().clone(), None, None, config)?.train;
                let copies = if config.response.is_some() { rows.div_ceil(all.n().max(1)) } else { 1 };
                Some(copied(&all, copies))
            }
            (Source::Fixed(all, _), _) if config.response.is_some() => {
                Some(copied(&all.train, rows.div_ceil(all.train.n().max(1))))
            }
            _ => None,
        };
        match (drawn, &config.response) {
            (Some(rows), Some(response)) => {
                let mut rng = seed.stream(Purpose::Data, POPULATION_RESPONSES, 0);
                with_response(&rows, response, &mut rng).map(Some)
            }
            (drawn, _) => Ok(drawn),
        }
    }
}

/// All rows so many times.
fn copied(rows: &Dataset, copies: usize) -> Dataset {
    if copies == 1 {
        return rows.clone();
    }
    let numbers: Vec<usize> = (0..copies).flat_map(|_| 0..rows.n()).collect();
    rows.select(&numbers)
}

/// Identical rows are counted while they are read where one of so many is left of the first ones: of more rows, fewer will be.
const MOST_LEFT: usize = 8;

/// What the streams of data of a repeat are for.
const ROWS: u64 = 0;
const RESPONSES: u64 = 1;
const RESAMPLING: u64 = 2;
/// Those of the very large sample that stands for the truth: no repeat has its rows.
const POPULATION: u64 = 3;
const POPULATION_RESPONSES: u64 = 4;

/// Numbers of the rows that are drawn for a repeat, with replacement.
fn resampled(frame: &Frame, config: &DataConfig, seed: Seed) -> Vec<usize> {
    let mut rng = seed.stream(Purpose::Data, RESAMPLING, 0);
    let (n, rows) = (frame.n(), config.resample.map_or(frame.n(), Count::get));
    (0..rows).map(|_| rng.random_range(0..n)).collect()
}

/// Row numbers of the two parts of a round.
fn parts(frame: &Frame, config: &DataConfig, part: Part) -> (Vec<usize>, Vec<usize>) {
    let seed = part.seed;
    if let Some((held_out, folds, dealt_by)) = part.fold {
        let y = frame.y().map(|y| y.to_vec());
        let mut rng = dealt_by.stream(Purpose::Split, 1, 0);
        let fold = deal(frame.n(), y.as_deref(), frame.design().clusters(), folds, &mut rng);
        return (0..frame.n()).partition(|&i| fold[i] != held_out);
    }
    let spec = config.split.as_ref().expect("a frame is kept only to be split");
    let classes = frame.y().filter(|_| spec.stratify()).map(|y| y.to_vec());
    let mut rng = seed.stream(Purpose::Split, 0, 0);
    match (frame.folds(), spec, frame.design().clusters()) {
        (Some(folds), SplitConfig::Given(given), _) => split_as_given(folds, given, part.common),
        (_, _, None) => split(frame.n(), classes.as_deref(), spec.share().unwrap_or(0.0), &mut rng),
        (_, _, Some(clusters)) => split_clusters(clusters, spec.share().unwrap_or(0.0), &mut rng),
    }
}

/// Name of the column that a file of labels becomes.
const LABELS: &str = "label";
/// Name of the column that a file of folds becomes.
const FOLDS: &str = "fold__";

/// What is wrong with a split that the data say.
fn check_folds(folds: &[String], given: &GivenSplit, repeats: usize) -> Result<()> {
    let names = in_order(folds.iter());
    if names.len() < 2 {
        return Err(Error::input(
            "`data.split` has one value for all rows: none are left to train on, or to test by",
        ));
    }
    match &given.held_out {
        Some(held_out) if !names.contains(&held_out) => {
            let near = nearest(held_out, names.iter().map(|name| name.as_str()));
            let hint = near.map_or(String::new(), |near| format!("; did you mean \"{}\"?", printable(near)));
            Err(Error::input(format!(
                "`data.split.held_out` is \"{}\", which no row has{hint}",
                printable(held_out)
            )))
        }
        None if repeats > names.len() => {
            let message = format!(
                "`data.split` has {} folds, and `repeats` asks for {repeats}: at most one for each",
                names.len()
            );
            Err(Error::input(message))
        }
        _ => Ok(()),
    }
}

/// Rows for training and for testing. Repeat i of seed s is repeat 1 of seed s + i − 1: folds go by the seed.
fn split_as_given(folds: &[String], given: &GivenSplit, seed: Seed) -> (Vec<usize>, Vec<usize>) {
    let names = in_order(folds.iter());
    let held_out = given.held_out.as_ref().unwrap_or(names[(seed.0 % names.len() as u64) as usize]);
    (0..folds.len()).partition(|&i| folds[i] != *held_out)
}

/// What is wrong with the rows of a group.
fn in_group(error: Error, name: &str) -> Error {
    Error::input(format!("{error}\n  in group \"{}\" of `data.by`", printable(name)))
}

/// How many training rows others are prepared by: as many as are used, or, where that is none, all that there were.
fn those_there_were(config: &DataConfig) -> Option<usize> {
    config.rows.filter(|&rows| rows > 0)
}

/// The file of historical rows, if there is one.
fn historical(experiment: &Experiment) -> Option<&str> {
    match experiment.prior.as_ref().and_then(|prior| prior.base.as_ref()) {
        Some(BaseConfig::Empirical(base)) => Some(&base.file),
        _ => None,
    }
}

/// The format that a file's name suggests.
fn guess(name: &str) -> FileFormat {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    match name {
        n if n.ends_with(".arff") => FileFormat::Arff,
        n if n.ends_with(ENDING) => FileFormat::Columns,
        n if n.ends_with(PARQUET_ENDING) => FileFormat::Parquet,
        n if n.ends_with("-ubyte") || n.ends_with(".idx") => FileFormat::Idx,
        _ => FileFormat::Csv,
    }
}

fn rules(config: &DataConfig, recipe: &Recipe, shape: &Shape, rows: Option<usize>) -> Rules {
    let (texts, also) = shape.reads();
    let byte = |text: &Option<String>| text.as_ref().and_then(|t| t.bytes().next());
    Rules {
        syntax: Syntax::Delimited(byte(&config.delimiter).unwrap_or(b',')),
        header: config.header,
        names: config.names.clone(),
        skip_lines: config.skip_lines.unwrap_or(0),
        comment: byte(&config.comment),
        missing: config.missing_values.clone(),
        columns: file_columns(config, shape),
        categorical: match &config.categorical {
            None if shape.formula.is_some() => Categorical::Auto,
            None => Categorical::Columns(Vec::new()),
            Some(CategoricalConfig::Columns(columns)) => Categorical::Columns(columns.clone()),
            Some(CategoricalConfig::Auto(_)) => Categorical::Auto,
        },
        labels: file_target(config, shape).into_iter().collect(),
        groups: (recipe.design.texts().into_iter().chain(config.split_column().cloned()))
            .chain(recipe.by.iter().filter(|by| !shape.makes(by)).cloned())
            .chain(texts)
            .collect(),
        also,
        weight: recipe.design.weight.clone(),
        beside: [&recipe.event, &recipe.offset, &recipe.exposure].into_iter().flatten().cloned().collect(),
        strip: config.strip.clone().unwrap_or_default(),
        comma: config.has_decimal_commas(),
        rows,
        gather: None,
        place: place(config),
    }
}

/// Rows that are alike may be counted while they are read: nobody asks for the others by their number, or adds to them.
fn may_gather(experiment: &Experiment, files: &Files) -> bool {
    let config = &experiment.data;
    let apart = config.labels.is_some() || config.by.is_some() || config.weight.is_some();
    let drawn = config.split.is_some() || config.resample.is_some() || config.response.is_some();
    let cut = config.rows.is_some() || experiment.evaluate.folds.is_some();
    let kept = config.collapse != Some(false) && files.as_slice().len() == 1;
    kept && !apart && !drawn && !cut && historical(experiment).is_none()
}

/// Where rows are to be, where that is said.
fn place(config: &DataConfig) -> Option<Place> {
    config.mapped.map(|mapped| if mapped { Place::File } else { Place::Memory })
}

/// The columns of the file that covariates are read from; `None`: all.
fn file_columns(config: &DataConfig, shape: &Shape) -> Option<Vec<String>> {
    match &shape.formula {
        Some(formula) => (!formula.rest).then(Vec::new),
        None => {
            let derived = |name: &String| config.derive.0.iter().any(|(derived, _)| derived == name);
            config
                .columns
                .as_ref()
                .map(|columns| columns.iter().filter(|name| !derived(name)).cloned().collect())
        }
    }
}

/// The column of the file that is the response, as text: none, if an expression makes it.
fn file_target(config: &DataConfig, shape: &Shape) -> Option<String> {
    let target = match &shape.formula {
        Some(formula) => formula.target().map(str::to_owned),
        None => config.target.clone(),
    };
    target.filter(|name| !shape.makes(name))
}

/// The same with the names that columns have in the training data for their numbers, and without the texts of columns
/// that are not used.
fn by_name(config: &DataConfig, train: &Table, shape: &Shape) -> Result<DataConfig> {
    let header = &train.header;
    let name = |column: &String| header.find(column).map(|j| header.names[j].clone());
    let names = |columns: &Vec<String>| columns.iter().map(name).collect::<Result<Vec<String>>>();
    let design = recipe(config, shape).design.find(train)?.names(train);
    let categorical = match &config.categorical {
        Some(CategoricalConfig::Columns(columns)) => {
            let used = |name: &String| train.names.contains(name);
            Some(CategoricalConfig::Columns(names(columns)?.into_iter().filter(used).collect()))
        }
        other => other.clone(),
    };
    let split = match &config.split {
        Some(SplitConfig::Given(given)) => {
            let column = given.column.as_ref().map(name).transpose()?;
            Some(SplitConfig::Given(GivenSplit { column, ..given.clone() }))
        }
        other => other.clone(),
    };
    Ok(DataConfig {
        split,
        columns: config.columns.as_ref().map(names).transpose()?,
        target: config.target.as_ref().map(name).transpose()?,
        event: config.event.as_ref().map(name).transpose()?,
        offset: config.offset.as_ref().map(name).transpose()?,
        exposure: config.exposure.as_ref().map(name).transpose()?,
        weight: design.weight,
        cluster: design.cluster,
        stratify: design.stratify,
        by: config.by.as_ref().map(name).transpose()?,
        categorical,
        ..config.clone()
    })
}

/// With what the model wants its response to be.
fn recipe_of(experiment: &Experiment, config: &DataConfig, shape: &Shape) -> Recipe {
    let responses = experiment.model.stages().iter().filter_map(|stage| stage.target.clone()).collect();
    Recipe { classifies: experiment.model.classifies(), responses, ..recipe(config, shape) }
}

fn recipe(config: &DataConfig, shape: &Shape) -> Recipe {
    let formula = shape.formula.as_ref();
    let target = config.target.clone().or_else(|| formula.and_then(|f| f.target().map(str::to_owned)));
    let columns = formula.filter(|formula| !formula.rest).map(|formula| formula.columns());
    Recipe {
        columns: config.columns.clone().or(columns),
        formula: formula.cloned(),
        target: target.or_else(|| config.labels.as_ref().map(|_| LABELS.to_owned())),
        responses: Vec::new(),
        event: config.event.clone(),
        offset: config.offset.clone(),
        exposure: config.exposure.clone(),
        fold: config
            .split
            .as_ref()
            .and_then(|split| split.given())
            .map(|given| given.column.clone().unwrap_or(FOLDS.into())),
        by: config.by.clone(),
        design: DesignColumns {
            weight: config.weight.clone(),
            cluster: config.cluster.clone(),
            stratify: config.stratify.clone(),
        },
        classes: config.classes.clone(),
        classifies: false,
        dummies: config.dummies,
        unseen: config.unseen,
        missing: config.missing,
        constant: config.constant,
        standardise: config.standardise,
        standardise_by: config.standardise_by,
        divide: config.divide.map(|d| d.get()),
        place: place(config),
    }
}

/// A column from a file of its own to the right of the others.
fn beside(mut table: Table, labels: Table, name: &str) -> Result<Table> {
    if table.rows() != labels.rows() {
        let message = format!("{} rows of data and {} of `{name}`", table.rows(), labels.rows());
        return Err(Error::input(message));
    }
    if table.header.names.iter().any(|n| n == name) {
        return Err(Error::input(format!("the data have a column \"{name}\" besides the file of such")));
    }
    // From the last row to the first, each moves up by the labels before it: no second copy of the table.
    let (width, wider) = (table.width(), table.width() + 1);
    let mut cells = std::mem::take(&mut table.cells);
    cells.resize(labels.cells.len() * wider, 0.0);
    for (i, &label) in labels.cells.iter().enumerate().rev() {
        cells.copy_within(i * width..(i + 1) * width, i * wider);
        cells[i * wider + width] = label;
    }
    table.cells = cells;
    table.places.push(table.header.width());
    table.header.names.push(name.to_owned());
    table.names.extend(labels.names);
    table.kinds.extend(labels.kinds);
    Ok(table)
}
