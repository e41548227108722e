//! `npl export`: what the draws of a repeat are made of, for checking npl with other tools.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use npl::bootstrap::Scheme;
use npl::config::printable;
use npl::data::Dataset;
use npl::error::Error;
use npl::process::Prior;
use npl::samples::quoted;
use npl::store::{self, AtomicFile};
use npl::study::ReadyTrial;

use super::stop::{Leaves, Minder};
use super::{groups, load, pool, print};
use crate::cli::ExportArgs;

const FILES: [&str; 6] = ["train.csv", "test.csv", "weights.csv", "pseudo.csv", "starts.csv", store::CONFIG];
/// Names of the columns after those of the data: what is added to the linear predictor, whether a time is an event, the response.
const BESIDE: [&str; 3] = ["offset__", "event__", "response__"];

pub fn export(args: ExportArgs) -> Result<()> {
    let minder = Minder::new(Leaves::default(), None)?;
    let cancel = minder.cancel.clone();
    write(args, &cancel).map_err(|error| match error.downcast::<Error>() {
        Ok(error) => minder.explain(error).into(),
        Err(error) => error,
    })
}

fn write(args: ExportArgs, cancel: &AtomicBool) -> Result<()> {
    let study = load(&args.config, &args.overrides, &[])?;
    if !(1..=study.each()).contains(&args.repeat) {
        let message = format!("--repeat {}: the experiment has repeats 1 to {}", args.repeat, study.each());
        return Err(Error::input(message).into());
    }
    let round = match study.groups()[..] {
        [] if args.group.is_none() => args.repeat,
        ref groups => groups::round(groups, study.each(), args.group.as_deref(), args.repeat)?,
    };
    let method = study.experiment.method;
    if !method.is_bootstrap() {
        let message =
            format!("export writes the weights of the bootstrap, and method \"{}\" has none", method.name());
        return Err(Error::input(message).into());
    }
    refuse_other_files(&args.out, args.force)?;
    let trial = study.trial(round - 1)?.scheme(&pool(&args.overrides.machine)?, cancel)?;
    let folder = Folder { path: &args.out, cancel };
    std::fs::create_dir_all(&args.out).map_err(|e| Error::write(&args.out, e))?;
    folder.data("train.csv", &trial.train)?;
    if let Some(test) = &trial.test {
        folder.data("test.csv", test)?;
    }
    let draws = u64::from(args.draws);
    folder.weights(&trial, draws)?;
    if let Prior::Dp { .. } = *trial.prior {
        folder.pseudo_samples(&trial, draws)?;
    }
    if !trial.model.blocks().is_empty() {
        folder.starts(&trial, draws)?;
    }
    store::write_file(&args.out.join(store::CONFIG), &study.experiment.to_toml()?)?;
    let written: Vec<&str> = FILES.into_iter().filter(|name| args.out.join(name).exists()).collect();
    let shown = printable(&args.out.display().to_string());
    print(format!("written to {shown}: {}\n", written.join(", ")).as_bytes())
}

fn refuse_other_files(folder: &Path, force: bool) -> Result<()> {
    let shown = printable(&folder.display().to_string());
    if folder.exists() && !folder.is_dir() {
        return Err(Error::input(format!("{shown}: not a folder")).into());
    }
    match FILES.iter().find(|name| !force && folder.join(name).exists()) {
        Some(name) => {
            let message =
                format!("{shown} holds {name} already; choose another --out, or replace it with --force");
            Err(Error::input(message).into())
        }
        None => Ok(()),
    }
}

/// A row of a table: counts, then numbers.
type Row = (Vec<u64>, Vec<f64>);

/// Where tables go.
struct Folder<'a> {
    path: &'a Path,
    cancel: &'a AtomicBool,
}

impl Folder<'_> {
    fn table(&self, name: &str, header: Vec<String>, mut rows: impl Iterator<Item = Row>) -> Result<()> {
        let mut file = AtomicFile::create(&self.path.join(name))?;
        let header: Vec<String> = header.iter().map(|cell| quoted(cell)).collect();
        file.put(|out| writeln!(out, "{}", header.join(",")))?;
        rows.try_for_each(|row| match self.cancel.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => file.put(|out| write_row(out, &row)),
        })?;
        Ok(file.commit()?)
    }

    fn data(&self, name: &str, data: &Dataset) -> Result<()> {
        self.table(name, columns(data), (0..data.n()).map(|i| (vec![], cells(data, i).collect())))
    }

    fn weights(&self, trial: &ReadyTrial, draws: u64) -> Result<()> {
        let header = ["draw".to_owned()].into_iter().chain((1..=trial.train.n()).map(|i| format!("w.{i}")));
        let row = |draw| (vec![draw + 1], trial.plan().measure(draw).weights().0.to_vec());
        self.table("weights.csv", header.collect(), (0..draws).map(row))
    }

    fn pseudo_samples(&self, trial: &ReadyTrial, draws: u64) -> Result<()> {
        let header = ["draw", "weight"].map(String::from).into_iter().chain(columns(&trial.train));
        let rows = |draw| {
            let f = trial.plan().measure(draw);
            let pseudo = f.pseudo_samples();
            let row = |(k, &v): (usize, &f64)| {
                let cells = pseudo.x.row(k).into_iter().copied().chain(beside_as(&trial.train, &pseudo, k));
                (vec![draw + 1], [v].into_iter().chain(cells).collect())
            };
            f.weights().1.iter().enumerate().map(row).collect::<Vec<Row>>()
        };
        self.table("pseudo.csv", header.collect(), (0..draws).flat_map(rows))
    }

    fn starts(&self, trial: &ReadyTrial, draws: u64) -> Result<()> {
        let restarts = match trial.scheme.as_ref() {
            Scheme::RandomRestart { restarts, .. } => *restarts,
            Scheme::FixedInit(_) => 1,
        };
        let header = ["draw", "restart"].map(String::from).into_iter().chain(trial.model.names());
        let row = |draw, r| (vec![draw + 1, r as u64 + 1], trial.plan().start(draw, r));
        let rows = (0..draws).flat_map(|draw| (0..restarts).map(move |r| row(draw, r)));
        self.table("starts.csv", header.collect(), rows)
    }
}

fn columns(data: &Dataset) -> Vec<String> {
    let beside =
        BESIDE.iter().zip(beside(data)).filter_map(|(name, column)| column.map(|_| (*name).to_owned()));
    data.columns.iter().cloned().chain(beside).collect()
}

fn beside(data: &Dataset) -> [Option<&ndarray::Array1<f64>>; 3] {
    [data.offset.as_ref(), data.event.as_ref(), data.y.as_ref()]
}

/// What stands beside a row of `data`, for every column that rows of `like` have: a row without has no offset, and was observed.
fn beside_as(like: &Dataset, data: &Dataset, i: usize) -> impl Iterator<Item = f64> {
    let all = beside(data).into_iter().zip([0.0, 1.0, f64::NAN]);
    let there = all.zip(beside(like)).filter(|(_, column)| column.is_some());
    there.map(move |((column, otherwise), _)| column.map_or(otherwise, |column| column[i]))
}

/// A row of data, its response last.
fn cells(data: &Dataset, i: usize) -> impl Iterator<Item = f64> {
    data.x.row(i).into_iter().copied().chain(beside(data).into_iter().flatten().map(move |column| column[i]))
}

/// Numbers are the shortest that read back exactly.
fn write_row(out: &mut dyn Write, (counts, numbers): &Row) -> io::Result<()> {
    let counts = counts.iter().map(u64::to_string);
    let numbers = numbers.iter().map(|v| format!("{v:?}"));
    writeln!(out, "{}", counts.chain(numbers).collect::<Vec<_>>().join(","))
}
