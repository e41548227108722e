//! What the data are: rows, columns, levels, missing cells, classes.

use ndarray::Array1;

use super::html::Html;
use super::side_by_side;
use super::table::{Cell, Table};
use super::view::View;
use crate::data::Dataset;
use crate::data::prepare::Notes;
use crate::math::{mean, sd};
use crate::study::{Study, Trial};
use crate::words::{bytes, counted, few, percent};

/// Columns and levels that are listed.
const COLUMNS: usize = 12;
const LEVELS: usize = 8;

pub fn section(views: &[View]) -> Html {
    let first = &views[0];
    if views.len() > 1 && views.iter().all(|view| same(first, view)) {
        let words = format!("All {} runs are of the same data.", views.len());
        return Html::paragraph(&words).and(of(first));
    }
    side_by_side(views, of)
}

/// Whether two runs have the same rows in the same repeats.
fn same(a: &View, b: &View) -> bool {
    let rows =
        |v: &View| v.report().repeats.iter().map(|r| (r.seed, r.n_train, r.n_test)).collect::<Vec<_>>();
    let data = |v: &View| v.experiment.as_ref().map(|e| e.data.clone());
    let files = |v: &View| v.manifest.inputs.iter().map(|i| i.sha256.clone()).collect::<Vec<_>>();
    data(a).is_some() && data(a) == data(b) && rows(a) == rows(b) && files(a) == files(b)
}

/// That the files are not those of the run any more; what is shown of them would not be what the run saw.
pub fn changed(view: &View) -> Option<String> {
    let study = view.source.study().ok()?;
    let (then, now) = (&view.manifest.inputs, study.inputs());
    let differ = then.iter().zip(now).find(|(then, now)| then.sha256 != now.sha256);
    differ.map(|(_, now)| {
        format!(
            "{} has changed since the run; what this page shows of the data is of the file as it is now",
            now.path
        )
    })
}

fn of(view: &View) -> Html {
    let mut facts = Table::new(["", ""]);
    rows(view, &mut facts);
    let found = view.source.study().and_then(|study| Ok((study, view.source.trial(view.round)?)));
    let notes = match &found {
        Ok((study, _)) => Some(study.notes().clone()),
        Err(_) => view.report().data.clone().or(view.manifest.data.clone()),
    };
    if let Some(notes) = notes.as_ref().filter(|_| !view.manifest.inputs.is_empty()) {
        missing(notes, &mut facts);
    }
    let mut out = Html::none();
    match &found {
        Ok((study, trial)) => {
            contents(study, trial, &mut facts);
            out.extend([facts.html(), columns(trial)]);
        }
        Err(why) => {
            let why = why.to_string().replace('\n', " ");
            let words = "The data are not there to be looked at again, so that this is what the run recorded";
            out.extend([facts.html(), Html::note(&format!("{words}: {why}"))]);
        }
    }
    out
}

fn rows(view: &View, facts: &mut Table) {
    let report = view.report();
    let Some(first) = report.repeats.get(view.round - 1) else { return };
    let which = if report.repeats.len() > 1 && report.path.is_none() {
        format!(" (repeat {})", view.round)
    } else {
        String::new()
    };
    facts.row(&format!("training rows{which}"), vec![Cell::count(first.n_train)]);
    facts.row(&format!("test rows{which}"), vec![Cell::count(first.n_test)]);
    for input in &view.manifest.inputs {
        let words =
            format!("{}, sha256 {}…", bytes(input.bytes as f64), input.sha256.get(..12).unwrap_or_default());
        facts.row(&input.path, vec![Cell::text(words)]);
    }
}

fn missing(notes: &Notes, facts: &mut Table) {
    facts.row("rows read", vec![Cell::count(notes.rows)]);
    let cells: usize = notes.missing.values().sum();
    let mut columns: Vec<(&String, &usize)> = notes.missing.iter().collect();
    columns.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let columns: Vec<String> = columns.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let words = match cells {
        0 => "none".to_owned(),
        _ => format!(
            "{} in {}: {}",
            counted(cells, "cell"),
            counted(notes.rows_with_missing, "row"),
            few(&columns, COLUMNS)
        ),
    };
    facts.row("missing", vec![Cell::text(words)]);
    for line in notes.changes() {
        facts.row("changed", vec![Cell::text(line)]);
    }
}

/// What only the rows themselves tell.
fn contents(study: &Study, trial: &Trial, facts: &mut Table) {
    let train = &trial.train;
    facts.row("columns of the model", vec![Cell::count(train.d())]);
    let notes = study.notes();
    for (name, levels) in notes.levels.iter().take(COLUMNS) {
        let words = format!("{}: {}", counted(levels.len(), "level"), few(levels, LEVELS));
        facts.row(name, vec![Cell::text(words)]);
    }
    if notes.levels.len() > COLUMNS {
        let more = format!("{} columns of text more", notes.levels.len() - COLUMNS);
        facts.row("…", vec![Cell::text(more)]);
    }
    let design = train.design.to_string();
    if !design.is_empty() {
        facts.row("design", vec![Cell::text(design)]);
    }
    let test = trial.test.as_ref().and_then(|t| t.y.as_ref());
    for (part, y) in [("training", train.y.as_ref()), ("test", test)] {
        let counts = if part == "training" { copies(train) } else { None };
        if let Some(words) = y.and_then(|y| response(y, counts, &train.classes)) {
            facts.row(&format!("response, {part}"), vec![Cell::text(words)]);
        }
    }
}

/// How many identical rows each training row stands for, where they are one.
fn copies(train: &Dataset) -> Option<&[f64]> {
    train.design.weights().filter(|_| train.collapsed.is_some())
}

/// Mean and sd, of each value as often as it counts.
fn moments(values: &[f64], counts: Option<&[f64]>) -> (f64, f64) {
    let Some(counts) = counts else { return (mean(values), sd(values)) };
    let n: f64 = counts.iter().sum();
    let sum = |of: &dyn Fn(f64) -> f64| values.iter().zip(counts).map(|(&v, c)| c * of(v)).sum::<f64>();
    let mean = sum(&|v| v) / n;
    (mean, (sum(&|v| (v - mean) * (v - mean)) / (n - 1.0)).sqrt())
}

/// Classes whose shares are listed.
const CLASSES: usize = 10;

/// Shares of classes, or mean and sd.
fn response(y: &Array1<f64>, counts: Option<&[f64]>, classes: &[String]) -> Option<String> {
    if y.is_empty() {
        return None;
    }
    let n = counts.map_or(y.len() as f64, |counts| counts.iter().sum());
    if classes.len() > 2 {
        let of = |k: usize| (0..y.len()).filter(move |&i| y[i] == k as f64);
        let count = |k: usize| of(k).map(|i| counts.map_or(1.0, |counts| counts[i])).sum::<f64>();
        let share = |(k, name): (usize, &String)| format!("{name} {}", percent(count(k) / n));
        let shares: Vec<String> = classes.iter().enumerate().take(CLASSES).map(share).collect();
        return Some(shares.join(", ") + if classes.len() > CLASSES { ", …" } else { "" });
    }
    let whole = y.iter().all(|&y| y == 0.0 || y == 1.0);
    let values = y.to_vec();
    Some(match whole {
        true => {
            let ones = counts.map_or(y.sum(), |counts| y.iter().zip(counts).map(|(y, c)| y * c).sum());
            let share = ones / n;
            format!("{} are 1 ({ones}), {} are 0 ({})", percent(share), percent(1.0 - share), n - ones)
        }
        false => {
            let (mean, sd) = moments(&values, counts);
            format!("mean {mean:.4}, sd {sd:.4}")
        }
    })
}

/// The first columns of the training rows as the model sees them.
fn columns(trial: &Trial) -> Html {
    let train: &Dataset = &trial.train;
    if train.n() == 0 || train.d() == 0 {
        return Html::none();
    }
    let mut table = Table::new(["column", "mean", "sd", "least", "largest"]);
    for j in 0..train.d().min(COLUMNS) {
        let values: Vec<f64> = train.x.column(j).collect();
        let (least, largest) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
        let (mean, sd) = moments(&values, copies(train));
        let numbers = [mean, sd, least, largest];
        let name = train.columns.get(j).map_or("", String::as_str);
        table.row(name, numbers.map(|v| Cell::number(v, 0.0)).to_vec());
    }
    let shown = match train.d() > COLUMNS {
        true => format!(
            "The first {COLUMNS} of {} columns of the training rows, as the model sees them",
            train.d()
        ),
        false => "The training rows, as the model sees them".to_owned(),
    };
    Html::folded(&shown, table.html())
}
