//! `npl predict`: what a finished run says of new rows.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

use anyhow::Result;
use npl::config::printable;
use npl::data::files::{self, InputFile, Kind, PARQUET_ENDING};
use npl::data::incoming::{self, Incoming, NewRows, Stopgaps};
use npl::data::parquet;
use npl::data::preparation::Preparations;
use npl::data::text::{Rules, Syntax};
use npl::error::Error;
use npl::experiment::FileFormat;
use npl::predict::{self, Asked, Places, Posterior, Question, Told};
use npl::samples::{npy_header, quoted};
use npl::store::{self, AtomicFile};

use super::text::counted;
use super::{groups, note, pin, pool, reading, round};
use crate::cli::{PredictArgs, PredictionFormat};

pub fn predict(args: PredictArgs) -> Result<()> {
    reading(&args.reading);
    pin(&args.machine)?;
    let report = store::read_report(&args.run)?;
    let own = round(&report, args.repeat, args.setting)?.unwrap_or(1) - 1;
    let group = groups::place(&report, args.group.as_deref())?;
    let preparations = predict::preparations(&args.run)?;
    let asked: Vec<Asked> = args.value.iter().map(|text| Asked::of(text)).collect();
    let source = Source {
        run: &args.run,
        preparations: &preparations,
        group,
        each: report.each(),
        round: own,
        asked: &asked,
    };
    let mut posteriors = BTreeMap::new();
    let mut posterior = source.posterior(group.unwrap_or(0))?;
    if posterior.model.predicted().is_empty() && asked.is_empty() {
        let message = format!(
            "{}: its model tells nothing of a row but its parameters; see npl summary, or --value for expressions of them",
            printable(&args.run.display().to_string())
        );
        return Err(Error::input(message).into());
    }
    say_first(&posterior);
    if report.folds.is_some() {
        note(
            "note: the run is a cross-validation: these are the draws of one of its folds, without the rows that it held out; those \
             given all rows are of a run without `evaluate.folds`",
        );
    }
    let responses = !args.draws && asked.is_empty() && posterior.responds();
    let question = Question { level: args.level, responses, draws: args.draws };
    let rules = rules(&posterior, &args.new);
    let shown = if is_standard(&args.new) { "standard input".into() } else { args.new.display().to_string() };
    let rows = match args.format {
        PredictionFormat::Npy => count(&args, &rules, &source, &shown)?,
        _ => 0,
    };
    let mut incoming = open(&args, &rules, &source, &shown)?;
    let has_response = incoming.has_response();
    source.ask(&mut posterior, has_response)?;
    let scored = !args.draws && asked.is_empty() && posterior.model.is_likelihood() && has_response;
    let mut draws = posterior.count();
    if args.draws && source.has_several() {
        for g in 0..report.groups.len() {
            let mut posterior = source.posterior(g)?;
            source.ask(&mut posterior, has_response)?;
            draws = draws.max(posterior.count());
            posteriors.insert(g, posterior);
        }
    }
    let mut sheet = Sheet::new(&posterior, question, scored, draws, &args)?;
    sheet.begin(rows)?;
    let pool = pool(&args.machine)?;
    let (mut before, mut score) = (0, Score::default());
    while let Some(rows) = incoming.next(posterior.rows_at_once())? {
        // Rows that lack something are told nothing of, whatever else is in them.
        let whole = || rows.data.select(&(0..rows.n()).filter(|&i| rows.whole[i]).collect::<Vec<_>>());
        let refused = posterior.model.refuses(&rows.data).and_then(|_| posterior.model.refuses(&whole()));
        if let Some(why) = refused {
            let from =
                if before == 0 { String::new() } else { format!(" (counted from row {})", before + 1) };
            return Err(Error::input(format!("{}: the model {why}{from}", printable(&shown))).into());
        }
        let told = match source.has_several() {
            false => pool.install(|| posterior.tell(Places::After(before), &rows, question)),
            true => {
                let mut told: Vec<Option<Told>> = vec![None; rows.n()];
                for (group, places) in rows.by_group() {
                    let posterior = match posteriors.entry(group) {
                        Entry::Occupied(there) => there.into_mut(),
                        Entry::Vacant(place) => {
                            let mut posterior = source.posterior(group)?;
                            source.ask(&mut posterior, has_response)?;
                            place.insert(posterior)
                        }
                    };
                    let (own, at) = (rows.select(&places), places.iter().map(|i| before + i));
                    let at: Vec<usize> = at.collect();
                    let all = pool.install(|| posterior.tell(Places::Each(&at), &own, question));
                    places.into_iter().zip(all).for_each(|(i, one)| told[i] = one);
                }
                told
            }
        };
        score.add(&posterior, &rows, &told);
        sheet.rows(before, &rows, &told)?;
        before += rows.n();
    }
    if before == 0 {
        return Err(Error::input(format!("{}: no rows", printable(&shown))).into());
    }
    sheet.end()?;
    score.said().iter().for_each(|line| note(line));
    Ok(())
}

/// What a reader must know, before anything else.
fn say_first(posterior: &Posterior) {
    if posterior.standardised_by_each() {
        note(
            "note: the run standardised its test rows by their own mean and sd (`data.standardise_by = \"each\"`); new rows are \
             standardised by those of the training rows",
        );
    }
    if posterior.data.filter.is_some() {
        note(
            "note: the run was trained on the rows that its `data.filter` keeps; new rows are predicted whatever they are",
        );
    }
    if let Some(ambiguous) = posterior.ambiguous {
        let share = super::text::percent(ambiguous);
        note(&format!(
            "note: components aligned over draws; the labels of {share} of draws are ambiguous (docs/relabelling.md)"
        ));
    }
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// New rows are text as the training rows were, whatever their file was.
fn rules(posterior: &Posterior, new: &Path) -> Rules {
    let config = &posterior.data;
    let byte = |text: &Option<String>| text.as_ref().and_then(|t| t.bytes().next());
    let name = new.to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let syntax = match config.format {
        _ if name.ends_with(".arff") => Syntax::Arff,
        Some(FileFormat::Whitespace) if !name.ends_with(".csv") => Syntax::Whitespace,
        _ => Syntax::Delimited(byte(&config.delimiter).unwrap_or(b',')),
    };
    Rules {
        syntax,
        skip_lines: config.skip_lines.unwrap_or(0),
        comment: byte(&config.comment),
        missing: config.missing_values.clone(),
        comma: config.has_decimal_commas(),
        ..Rules::default()
    }
}

/// What new rows are predicted by.
struct Source<'a> {
    run: &'a Path,
    preparations: &'a Preparations,
    /// That of all rows, if one was named.
    group: Option<usize>,
    /// Instead of what the model predicts.
    asked: &'a [Asked],
    /// Repeats of each group, and which of them, from 0.
    each: usize,
    round: usize,
}

impl Source<'_> {
    fn posterior(&self, group: usize) -> Result<Posterior> {
        Ok(Posterior::open(self.run, group * self.each + self.round)?)
    }

    /// For the values that are asked for, of rows with a response or without.
    fn ask(&self, posterior: &mut Posterior, has_response: bool) -> Result<()> {
        match self.asked.is_empty() {
            true => Ok(()),
            false => Ok(posterior.ask(self.run, self.asked, has_response)?),
        }
    }

    /// Rows are predicted by the draws of several groups.
    fn has_several(&self) -> bool {
        self.group.is_none() && self.preparations.by().is_some()
    }
}

fn open<'a>(
    args: &PredictArgs,
    rules: &Rules,
    source: &Source<'a>,
    shown: &str,
) -> Result<Incoming<'a, Box<dyn Read>>> {
    let kind = if is_standard(&args.new) { Kind::Other } else { InputFile::open(&args.new)?.kind() };
    let by_name = args.new.to_string_lossy().ends_with(PARQUET_ENDING);
    let input: incoming::Source<Box<dyn Read>> = match kind {
        Kind::Columns => {
            let message = format!("{shown} is a column file, and new rows are read from text or Parquet");
            return Err(Error::input(message).into());
        }
        Kind::Other if is_standard(&args.new) => incoming::Source::Text(Box::new(std::io::stdin().lock())),
        Kind::Other if !by_name => incoming::Source::Text(files::open(&args.new)?),
        Kind::Other | Kind::Parquet => incoming::Source::Parquet(parquet::Rows::open(&args.new)?),
    };
    Ok(Incoming::new(input, shown, rules, source.preparations, (source.group, source.round), &args.keep)?)
}

/// An array says first how many rows it has.
fn count(args: &PredictArgs, rules: &Rules, source: &Source, shown: &str) -> Result<usize> {
    if is_standard(&args.new) {
        let message = "--format npy: an array says first how many rows it has, and standard input can be read only once";
        return Err(Error::input(message).into());
    }
    let mut incoming = open(args, rules, source, shown)?;
    let mut rows = 0;
    while let Some(some) = incoming.next(4096)? {
        rows += some.n();
    }
    Ok(rows)
}

/// The table that is written.
struct Sheet {
    out: Out,
    shown: String,
    format: PredictionFormat,
    keep: Vec<String>,
    columns: Vec<String>,
    /// How many draws a number has columns for, where they are told one by one.
    draws: usize,
}

enum Out {
    Standard(BufWriter<std::io::Stdout>),
    File(AtomicFile),
}

impl Sheet {
    fn new(
        posterior: &Posterior,
        question: Question,
        scored: bool,
        draws: usize,
        args: &PredictArgs,
    ) -> Result<Sheet> {
        let mut columns = Vec::new();
        for name in posterior.told() {
            match question.draws {
                true => columns.extend((1..=draws).map(|b| format!("{name}.{b}"))),
                false => columns.extend(["", "_sd", "_lower", "_upper"].map(|end| format!("{name}{end}"))),
            }
        }
        if question.responses {
            columns.extend(["response_lower", "response_upper"].map(String::from));
        }
        if scored {
            columns.push("log_density".into());
        }
        let twin = |i: &usize| columns[*i] == "row" || columns[..*i].contains(&columns[*i]);
        if let Some(twin) = (0..columns.len()).find(twin) {
            let message = format!(
                "--value: two columns would be called {}; name values by `NAME = EXPR`",
                printable(&columns[twin])
            );
            return Err(Error::input(message).into());
        }
        if let Some(twin) = args.keep.iter().find(|name| columns.contains(name) || *name == "row") {
            let message = format!("--keep {}: a column of the predictions has this name", printable(twin));
            return Err(Error::input(message).into());
        }
        let file = args.out.as_deref().filter(|out| !is_standard(out));
        let (out, shown) = match file {
            Some(path) => {
                store::refuse_output(path, &args.run, &[&args.new])?;
                (Out::File(AtomicFile::create(path)?), path.display().to_string())
            }
            None if args.format == PredictionFormat::Npy => {
                return Err(Error::input("--format npy: name a file with --out").into());
            }
            None => (
                Out::Standard(BufWriter::with_capacity(1 << 16, std::io::stdout())),
                "standard output".into(),
            ),
        };
        if args.format == PredictionFormat::Npy && !args.keep.is_empty() {
            return Err(Error::input("--keep: an array has numbers alone; use --format csv or ndjson").into());
        }
        Ok(Sheet { out, shown, format: args.format, keep: args.keep.clone(), columns, draws })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.out {
            Out::Standard(out) => out.write_all(bytes),
            Out::File(out) => out.write_all(bytes),
        };
        Ok(written.map_err(|e| Error::write(Path::new(&self.shown), e))?)
    }

    fn begin(&mut self, rows: usize) -> Result<()> {
        match self.format {
            PredictionFormat::Csv => {
                let names =
                    ["row".to_owned()].into_iter().chain(self.keep.clone()).chain(self.columns.clone());
                let line = names.map(|name| quoted(&name)).collect::<Vec<_>>().join(",") + "\n";
                self.put(line.as_bytes())
            }
            PredictionFormat::Npy => {
                let mut header = Vec::new();
                npy_header(&mut header, rows, self.columns.len())?;
                self.put(&header)
            }
            PredictionFormat::Ndjson => Ok(()),
        }
    }

    fn rows(&mut self, before: usize, rows: &NewRows, told: &[Option<Told>]) -> Result<()> {
        let mut bytes = Vec::new();
        for (i, told) in told.iter().enumerate() {
            let numbers = told.as_ref().map(|told| numbers(told, self.columns.len(), self.draws));
            let numbers = numbers.unwrap_or_else(|| vec![f64::NAN; self.columns.len()]);
            match self.format {
                PredictionFormat::Csv => {
                    let kept = rows.kept[i].iter().map(|cell| quoted(cell));
                    let numbers = numbers.iter().map(|v| if v.is_nan() { String::new() } else { cell(*v) });
                    let line = [(before + i + 1).to_string()].into_iter().chain(kept).chain(numbers);
                    bytes.extend(line.collect::<Vec<_>>().join(",").bytes());
                    bytes.push(b'\n');
                }
                PredictionFormat::Ndjson => {
                    let mut line = serde_json::Map::new();
                    line.insert("row".into(), (before + i + 1).into());
                    line.extend(
                        self.keep.iter().cloned().zip(rows.kept[i].iter().map(|c| c.as_str().into())),
                    );
                    line.extend(
                        self.columns.iter().cloned().zip(numbers.into_iter().map(serde_json::Value::from)),
                    );
                    bytes.extend(serde_json::Value::Object(line).to_string().bytes());
                    bytes.push(b'\n');
                }
                PredictionFormat::Npy => numbers.iter().for_each(|v| bytes.extend(v.to_le_bytes())),
            }
        }
        self.put(&bytes)
    }

    fn end(self) -> Result<()> {
        match self.out {
            Out::Standard(mut out) => Ok(out.flush().map_err(|e| Error::write(Path::new(&self.shown), e))?),
            Out::File(file) => {
                file.commit()?;
                if self.format == PredictionFormat::Npy {
                    let names = serde_json::to_string_pretty(&self.columns)? + "\n";
                    let file = Path::new(&self.shown).with_extension("columns.json");
                    store::write_file(&file, &names)?;
                }
                Ok(())
            }
        }
    }
}

/// A number with all its digits, and no row of zeros beside them.
fn cell(value: f64) -> String {
    let plain = value == 0.0 || !value.is_finite() || (1e-5..1e16).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// What is told of a row, in the order of the columns; NaN where nothing is.
fn numbers(told: &Told, width: usize, draws: usize) -> Vec<f64> {
    if !told.draws.is_empty() {
        // A group may have fewer draws than another.
        let of =
            |own: &Vec<f64>| (0..draws).map(|b| own.get(b).copied().unwrap_or(f64::NAN)).collect::<Vec<_>>();
        return told.draws.iter().flat_map(of).collect();
    }
    let of_numbers = told.numbers.iter().flat_map(|n| [n.mean, n.sd, n.lower, n.upper]);
    let of_response = told.response.iter().flat_map(|n| [n.lower, n.upper]);
    let mut numbers: Vec<f64> = of_numbers.chain(of_response).collect();
    numbers.extend(told.log_density);
    numbers.resize(width, f64::NAN);
    numbers
}

/// How well responses were predicted that came.
#[derive(Default)]
struct Score {
    rows: usize,
    left_out: usize,
    stopgaps: Stopgaps,
    log_density: f64,
    squares: f64,
    right: usize,
    binary: bool,
    classes: bool,
    single: bool,
    undefined: usize,
}

impl Score {
    fn add(&mut self, posterior: &Posterior, rows: &NewRows, told: &[Option<Told>]) {
        self.left_out += rows.whole.iter().filter(|whole| !**whole).count();
        self.stopgaps += rows.stopgaps;
        self.binary = posterior.model.response() == Some(npl::model::Response::Binary);
        self.classes = matches!(posterior.model.response(), Some(npl::model::Response::Class(_)));
        self.single = posterior.model.predicted().len() == 1;
        self.undefined += told.iter().flatten().map(|told| told.undefined).sum::<usize>();
        let Some(y) = &rows.data.y else { return };
        for (y, told) in y.iter().zip(told) {
            let Some((told, log_density)) = told.as_ref().and_then(|told| Some((told, told.log_density?)))
            else {
                continue;
            };
            let mean = told.numbers.first().map_or(f64::NAN, |n| n.mean);
            self.rows += 1;
            self.log_density += log_density;
            self.squares += (y - mean) * (y - mean);
            let best = || {
                let highest = |best: usize, k: usize| {
                    if told.numbers[k].mean > told.numbers[best].mean { k } else { best }
                };
                (0..told.numbers.len()).fold(0, highest)
            };
            self.right += usize::from(match self.classes {
                true => best() as f64 == *y,
                false if *y == 1.0 => mean > 0.5,
                false => mean <= 0.5,
            });
        }
    }

    fn said(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.left_out > 0 {
            lines.push(format!("{} with missing values and no prediction", counted(self.left_out, "row")));
        }
        if self.stopgaps.imputed > 0 {
            let cells = counted(self.stopgaps.imputed, "missing cell");
            lines
                .push(format!("{cells} taken for the mean of the training rows (`data.missing = \"mean\"`)"));
        }
        if self.stopgaps.unseen > 0 {
            let cells = counted(self.stopgaps.unseen, "cell");
            lines.push(format!("{cells} with a level that no training row has, whose dummies are 0 (`data.unseen = \"zero\"`)"));
        }
        if self.undefined > 0 {
            let values = counted(self.undefined, "value");
            lines.push(format!("{values} of single draws are no finite numbers; means and intervals are those of the other draws"));
        }
        if self.rows > 0 {
            let n = self.rows as f64;
            let mut line =
                format!("{} with responses: LPPD {:.6}", counted(self.rows, "row"), self.log_density / n);
            if self.single {
                line += &format!(", MSE {:.6}", self.squares / n);
            }
            if self.binary || self.classes {
                line += &format!(", accuracy {:.2} %", 100.0 * self.right as f64 / n);
            }
            lines.push(line);
        }
        lines
    }
}
