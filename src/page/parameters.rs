//! The parameters: posterior means, standard deviations and quantiles, each with no more digits than its Monte Carlo error allows.

use std::collections::{HashMap, HashSet};

use super::html::Html;
use super::side_by_side;
use super::table::{Cell, Table};
use super::units;
use super::view::View;
use crate::error::Result;
use crate::path::{self, PathPoint};
use crate::plot::Source;
use crate::samples::Summary;
use crate::store;
use crate::words::{error, number, percent, setting};

/// Parameters that are listed.
const LISTED: usize = 300;
/// Settings and parameters of a path that are listed.
const SETTINGS: usize = 25;
const OF_A_PATH: usize = 5;

pub fn section(views: &[View]) -> Result<Html> {
    let paths = views.iter().any(|view| view.source.path().is_some());
    let mut out: Html = units::said(views).into_iter().collect();
    if views.len() > 1 && !paths {
        out.extend([compared(views)?]);
    }
    let mut tables =
        views.iter().map(|view| of(view, views.len() > 1)).collect::<Result<Vec<_>>>()?.into_iter();
    Ok(out.and(match views.len() {
        1 => tables.collect(),
        // Whole tables are wide: below each other, not side by side.
        _ => views
            .iter()
            .zip(&mut tables)
            .map(|(view, table)| match view.source.path() {
                Some(_) => Html::tag("h3", Html::text(view.label())).and(table),
                None => Html::folded(&format!("{}: all numbers", view.label()), table),
            })
            .collect(),
    }))
}

fn of(view: &View, several: bool) -> Result<Html> {
    if view.source.path().is_some() {
        return along_path(view);
    }
    let mut out = Html::none();
    out.extend(view.which().map(|words| Html::note(&words)));
    if let Some((aligned, _)) = &view.aligned {
        if !several {
            out.extend(said(view));
        }
        out.extend([whole(&view.summaries(aligned)?, aligned)]);
        let title = "The same without aligning: components in any order";
        return Ok(out.and(Html::folded(title, whole(&view.summaries(&view.source)?, &view.source))));
    }
    let source = view.comparable();
    Ok(out.and(whole(&view.summaries(source)?, source)))
}

/// What aligning did, and how far to trust it.
fn said(view: &View) -> Option<Html> {
    let (_, done) = view.aligned.as_ref()?;
    let why = match view.source.relation.exchangeable {
        true => "The components of a draw stand in any order",
        false => "The components of this run have labels of their own",
    };
    Some(Html::paragraph(&format!(
        "{why}; here they are aligned over draws and ordered by their means (npl relabel). {} of the draws had them in another \
         order, and the labels of {} are ambiguous: other labels would fit nearly as well.",
        percent(done.permuted()),
        percent(done.ambiguous())
    )))
}

/// All names; where there are too many, those with the largest |mean|/sd, the largest first.
fn chosen<'a>(summaries: &[&'a [Summary]]) -> Vec<&'a str> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let (mut names, mut sizes): (Vec<&str>, Vec<f64>) = (Vec::new(), Vec::new());
    for summary in summaries.iter().copied().flatten() {
        let size = (summary.mean / summary.sd).abs();
        let size = if size.is_nan() { 0.0 } else { size };
        let place = *known.entry(&summary.parameter).or_insert_with(|| {
            names.push(&summary.parameter);
            sizes.push(0.0);
            names.len() - 1
        });
        sizes[place] = sizes[place].max(size);
    }
    if names.len() <= LISTED {
        return names;
    }
    let mut places: Vec<usize> = (0..names.len()).collect();
    places.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]));
    places.into_iter().take(LISTED).map(|j| names[j]).collect()
}

/// What is not listed, and where it is.
fn rest(listed: usize, all: usize) -> Html {
    if listed == all {
        return Html::none();
    }
    Html::note(&format!(
        "The {listed} of {all} parameters that are furthest from 0 for their spread (|mean|/sd); {} has all.",
        store::SUMMARY
    ))
}

fn whole(summaries: &[Summary], source: &Source) -> Html {
    if summaries.iter().all(|s| s.mean.is_nan()) {
        return Html::paragraph("No draw has a minimum: there is nothing to summarise.");
    }
    let names: Vec<&str> = chosen(&[summaries]);
    let by_name: HashMap<&str, &Summary> = summaries.iter().map(|s| (s.parameter.as_str(), s)).collect();
    let chains = summaries.first().is_some_and(|s| s.convergence.is_some());
    let more: &[&str] = if chains { &["R-hat", "ESS bulk", "ESS tail"] } else { &[] };
    let titles = ["parameter", "mean", "error", "sd", "2.5 %", "10 %", "50 %", "90 %", "97.5 %"];
    let mut table = Table::sortable(titles.iter().chain(more).copied());
    for s in names.iter().filter_map(|name| by_name.get(name)) {
        let of_mean = Cell::value(error(s.mcse_mean, 2), s.mcse_mean);
        let mut cells = vec![Cell::number(s.mean, s.mcse_mean), of_mean, Cell::number(s.sd, s.mcse_sd)];
        cells.extend(s.quantiles.iter().zip(s.mcse_quantiles).map(|(&q, e)| Cell::number(q, e)));
        cells.extend(s.convergence.iter().flat_map(|c| {
            [(c.rhat, 3), (c.ess_bulk, 0), (c.ess_tail, 0)]
                .map(|(value, digits)| Cell::value(format!("{value:.digits$}"), value))
        }));
        table.row(&s.parameter, cells);
    }
    let weighted = source.relation.draws == crate::samples::Kinship::Weighted;
    let weighted = if weighted { " Draws count by their weights." } else { "" };
    let about =
        format!("Posterior mean with its Monte Carlo error, standard deviation and quantiles.{weighted}");
    Html::note(&about).and(table.html()).and(rest(names.len(), summaries.len()))
}

/// The runs beside each other: mean, sd and 95 % interval.
fn compared(views: &[View]) -> Result<Html> {
    let all: Vec<Vec<Summary>> =
        views.iter().map(|view| view.summaries(view.comparable())).collect::<Result<_>>()?;
    let names = chosen(&all.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let by_name: Vec<HashMap<&str, &Summary>> =
        all.iter().map(|run| run.iter().map(|s| (s.parameter.as_str(), s)).collect()).collect();
    let titles =
        std::iter::once("parameter").chain(views.iter().flat_map(|_| ["mean", "sd", "95 % interval"]));
    let groups = views.iter().map(|view| (view.label().to_owned(), 3)).collect();
    let mut table = Table::sortable(titles).grouped(groups);
    for name in &names {
        let cells = |run: &HashMap<&str, &Summary>| match run.get(name).filter(|s| !s.mean.is_nan()) {
            Some(s) => {
                let [low, .., high] = s.quantiles;
                let [low_error, .., high_error] = s.mcse_quantiles;
                let interval = format!("{} to {}", number(low, low_error), number(high, high_error));
                [Cell::number(s.mean, s.mcse_mean), Cell::number(s.sd, s.mcse_sd), Cell::value(interval, low)]
            }
            None => [Cell::absent(), Cell::absent(), Cell::absent()],
        };
        table.row(name, by_name.iter().flat_map(cells).collect());
    }
    let count = by_name.iter().flat_map(|run| run.keys()).collect::<HashSet<_>>().len();
    let notes = side_by_side(views, |view| {
        view.which().map(|w| Html::note(&w)).into_iter().chain(said(view)).collect()
    });
    let notes =
        if views.iter().any(|v| v.aligned.is_some() || v.which().is_some()) { notes } else { Html::none() };
    Ok(notes.and(table.html()).and(rest(names.len(), count)))
}

/// Medians and 80 % intervals of the widest parameters at some settings of a path.
fn along_path(view: &View) -> Result<Html> {
    let points = view.source.points()?;
    let Some(report) = view.source.path() else { return Ok(Html::none()) };
    let settings = report.values.len();
    let shown = settings.min(SETTINGS);
    let at = |i: usize| if shown > 1 { i * (settings - 1) / (shown - 1) } else { 0 };
    let names = path::widest(&points, OF_A_PATH);
    let by_place: HashMap<(usize, &str), &PathPoint> =
        points.iter().map(|(t, p)| ((*t, p.parameter.as_str()), p)).collect();
    let titles = ["setting".to_owned(), report.parameter.clone()].into_iter().chain(names.iter().cloned());
    let mut table = Table::sortable(titles);
    for t in (0..shown).map(at) {
        let cell = |name: &String| match by_place.get(&(t + 1, name.as_str())) {
            Some(p) => {
                let [q10, q50, q90] = p.quantiles;
                Cell::value(format!("{q50:.3} [{q10:.3}, {q90:.3}]"), q50)
            }
            None => Cell::absent(),
        };
        let value = Cell::text(setting(&report.values[t]));
        table.row(&(t + 1).to_string(), std::iter::once(value).chain(names.iter().map(cell)).collect());
    }
    let words = format!(
        "Median [10 %, 90 %] of the widest parameters at {shown} of {settings} settings; {} has all.",
        store::PATH
    );
    Ok(Html::note(&words).and(table.html()))
}
