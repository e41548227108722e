//! Metrics over repeats, and in each of them.

use super::html::Html;
use super::side_by_side;
use super::table::{Cell, Table};
use super::view::View;
use crate::evaluate::Estimate;
use crate::report::{OverRepeats, Repeat};
use crate::words::number;

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
    let titles = std::iter::once(String::new()).chain(views.iter().map(|view| match views.len() {
        1 => "mean".to_owned(),
        _ => view.label().to_owned(),
    }));
    let mut table = Table::new(titles);
    for (name, title, why) in METRICS {
        let cell = |view: &View| view.report().metrics.get(name).map_or_else(Cell::absent, over_repeats);
        table.explained(title, why, views.iter().map(cell).collect());
    }
    let mut out = if table.is_empty() { Html::none() } else { table.html() };
    let many = views.iter().any(|view| view.source.rounds() > 1 && view.source.path().is_none());
    if many {
        out.extend([Html::note("Mean ± standard deviation over repeats (standard error of the mean).")]);
    } else if !table.is_empty() {
        out.extend([Html::note("Of one repeat; ± is the Monte Carlo error, which more draws make smaller.")]);
    }
    if views.iter().any(|view| view.source.rounds() > 1) {
        out.extend([side_by_side(views, rounds)]);
    }
    out
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
    let metrics: Vec<&str> = METRICS[..6]
        .iter()
        .map(|(name, _, _)| *name)
        .filter(|name| report.repeats.iter().any(|r| of(r, name).is_some()))
        .collect();
    let path = report.path.as_ref();
    let first = if path.is_some() { "setting" } else { "repeat" };
    let second = path.map_or("seed".to_owned(), |p| p.parameter.clone());
    let titles =
        [first, &second, "training rows", "test rows", "draws"].into_iter().chain(metrics.iter().copied());
    let mut table = Table::sortable(titles.chain(["seconds"]));
    for (t, repeat) in report.repeats.iter().take(LISTED).enumerate() {
        let value = path.map_or(repeat.seed.to_string(), |p| {
            p.values.get(t % p.values.len().max(1)).cloned().unwrap_or_default()
        });
        let counts = [repeat.n_train, repeat.n_test, repeat.draws].map(Cell::count);
        let metric =
            |name: &&str| of(repeat, name).map_or_else(Cell::absent, |e| Cell::number(e.value, e.mcse));
        let cells = std::iter::once(Cell::text(value)).chain(counts).chain(metrics.iter().map(metric));
        let time = Cell::value(format!("{:.2}", repeat.seconds), repeat.seconds);
        table.row(&(t + 1).to_string(), cells.chain([time]).collect());
    }
    let mut inside = table.html();
    if report.repeats.len() > LISTED {
        inside.extend([Html::note(&format!(
            "The first {LISTED} of {}; report.csv has all.",
            report.repeats.len()
        ))]);
    }
    Html::folded(if path.is_some() { "Setting by setting" } else { "Repeat by repeat" }, inside)
}

fn of(repeat: &Repeat, name: &str) -> Option<Estimate> {
    repeat.metrics().into_iter().find(|(metric, _)| *metric == name).and_then(|(_, estimate)| estimate)
}
