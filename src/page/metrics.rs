//! Metrics over repeats, and in each of them.

use std::path::Path;

use super::html::Html;
use super::side_by_side;
use super::table::{Cell, Table};
use super::view::View;
use crate::evaluate::Estimate;
use crate::report::{OverRepeats, Repeat, Report};
use crate::store;
use crate::words::{number, setting};

/// Repeats or settings that are listed.
const LISTED: usize = 300;

const METRICS: [(&str, &str, &str); 7] = [
    ("lppd", "LPPD", "mean log predictive density of the test rows; higher is better"),
    ("mse", "MSE", "of the predictive mean; lower is better"),
    ("accuracy", "accuracy, %", "of test responses predicted"),
    ("sparsity", "sparsity, %", "of coefficients that are zero in the mean"),
    ("auc", "AUC", "how often a response 1 has the higher probability; higher is better"),
    ("log_loss", "log loss", "minus LPPD of a class; lower is better"),
    ("seconds", "seconds", "of a repeat"),
];

pub fn section(views: &[View]) -> Html {
    let labels: Vec<&str> = views.iter().map(View::label).collect();
    let mut table = Table::by_run(&labels, "mean");
    for (name, title, why) in METRICS {
        let cell = |view: &View| view.report().metrics.get(name).map_or_else(Cell::absent, over_repeats);
        table.explained(title, why, views.iter().map(cell).collect());
    }
    let mut out = if table.is_empty() { Html::none() } else { table.html() };
    let many = views.iter().any(|view| view.source.rounds() > 1 && view.source.path().is_none());
    if many {
        out.extend([Html::note(if views.iter().any(|view| view.report().folds.is_some()) {
            "Mean over the rows held out ± standard deviation over folds (standard error over folds); of repeats without folds, the \
             mean over them ± their standard deviation (standard error of the mean)."
        } else {
            "Mean ± standard deviation over repeats (standard error of the mean)."
        })]);
    } else if !table.is_empty() {
        out.extend([Html::note("Of one repeat; ± is the Monte Carlo error, which more draws make smaller.")]);
    }
    let reports: Vec<(&Path, &Report)> =
        views.iter().map(|view| (view.source.folder.as_path(), view.report())).collect();
    let groups = views.iter().any(|view| view.source.is_group());
    let apart = if groups { None } else { store::saw_different_rows(&reports) };
    if let Some((a, b)) = apart.filter(|_| !table.is_empty()) {
        out.extend([Html::note(&format!(
            "{} and {} saw different splits of the data, or different data: what they score on test rows differs by that, too.",
            views[a].label(),
            views[b].label()
        ))]);
    }
    out.extend([side_by_side(views, tuning)]);
    if views.iter().any(|view| view.source.rounds() > 1) {
        out.extend([side_by_side(views, rounds)]);
    }
    out
}

/// Which setting of a path is best, and which the simplest that is as good.
fn tuning(view: &View) -> Html {
    let (Some(path), Some(tuned)) = (view.source.path(), view.report().tuned(None, None)) else {
        return Html::none();
    };
    let told = |t: usize| setting(&path.values[t]);
    let mut words = format!("Best {}: {} = {}.", tuned.title, path.parameter, told(tuned.best));
    if let (Some(t), Some(simpler)) = (tuned.simplest, tuned.simpler) {
        words += &format!(
            " Simplest within one standard error of it: {} ({} is simpler).",
            told(t),
            simpler.name()
        );
    }
    let mut table = Table::sortable([&path.parameter, tuned.title, "error"]);
    for (t, metric) in tuned.values.iter().enumerate() {
        let pick = match (t == tuned.best, Some(t) == tuned.simplest) {
            (true, true) => ", best and simplest",
            (true, false) => ", best",
            (false, true) => ", simplest",
            (false, false) => "",
        };
        let error = metric.se.or(metric.mcse);
        let value = Cell::number(metric.mean, 0.1 * error.unwrap_or(f64::NAN));
        let error = error.map_or_else(Cell::absent, |error| Cell::number(error, 0.1 * error));
        table.row(&format!("{}{pick}", told(t)), vec![value, error]);
    }
    Html::paragraph(&words).and(table.html())
}

fn over_repeats(m: &OverRepeats) -> Cell {
    let words = match (m.sd, m.se, m.mcse) {
        (Some(sd), Some(se), _) => {
            format!("{} ± {} ({})", number(m.mean, se), number(sd, se), number(se, se))
        }
        (_, _, Some(mcse)) => format!("{} ± {}", number(m.mean, mcse), number(mcse, mcse)),
        _ => number(m.mean, 0.01),
    };
    Cell::value(words, m.mean)
}

/// Every repeat, or every setting of a path.
fn rounds(view: &View) -> Html {
    let report = view.report();
    if report.repeats.len() < 2 {
        return Html::none();
    }
    let metrics: Vec<&str> = METRICS[..6]
        .iter()
        .map(|(name, _, _)| *name)
        .filter(|name| report.repeats.iter().any(|r| of(r, name).is_some()))
        .collect();
    let path = report.path.as_ref();
    let settings = path.map_or(1, |p| p.values.len().max(1));
    // All settings of the first fold, then those of the second.
    let folds = report.folds.filter(|_| report.repeats.len() > settings);
    let first = match (path, folds) {
        (Some(_), None) => "setting",
        (Some(_), Some(_)) => "fold, setting",
        (None, Some(_)) => "fold",
        (None, None) => "repeat",
    };
    let second = path.map_or("seed".to_owned(), |p| p.parameter.clone());
    let titles =
        [first, &second, "training rows", "test rows", "draws"].into_iter().chain(metrics.iter().copied());
    let mut table = Table::sortable(titles.chain(["seconds"]));
    for (t, repeat) in report.repeats.iter().take(LISTED).enumerate() {
        let value = path.map_or(repeat.seed.to_string(), |p| {
            p.values.get(t % settings).map(|v| setting(v)).unwrap_or_default()
        });
        let counts = [repeat.n_train, repeat.n_test, repeat.draws].map(Cell::count);
        let metric =
            |name: &&str| of(repeat, name).map_or_else(Cell::absent, |e| Cell::number(e.value, e.mcse));
        let cells = std::iter::once(Cell::text(value)).chain(counts).chain(metrics.iter().map(metric));
        let time = Cell::value(format!("{:.2}", repeat.seconds), repeat.seconds);
        let name = match (path, folds) {
            (Some(_), Some(_)) => format!("{}, {}", t / settings + 1, t % settings + 1),
            _ => (t + 1).to_string(),
        };
        table.row(&name, cells.chain([time]).collect());
    }
    let mut inside = table.html();
    if report.repeats.len() > LISTED {
        inside.extend([Html::note(&format!(
            "The first {LISTED} of {}; report.csv has all.",
            report.repeats.len()
        ))]);
    }
    let title = match (path, folds) {
        (Some(_), None) => "Setting by setting",
        (Some(_), Some(_)) => "Fold by fold, setting by setting",
        (None, Some(_)) => "Fold by fold",
        (None, None) => "Repeat by repeat",
    };
    Html::folded(title, inside)
}

fn of(repeat: &Repeat, name: &str) -> Option<Estimate> {
    repeat.metrics().into_iter().find(|(metric, _)| *metric == name).and_then(|(_, estimate)| estimate)
}
