//! Runs as one page of HTML that needs nothing but itself: a file of words, tables and figures, each section a file here. Nothing
//! is written; the page is a text.

mod data;
mod diagnostics;
mod experiment;
mod figures;
mod html;
mod metrics;
mod parameters;
mod reproduce;
mod table;
mod units;
mod view;

use html::Html;
use view::View;

use crate::error::{Error, Result};
use crate::plot::Source;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What is asked of a page.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub title: Option<String>,
    /// Counted from 1; of runs without a path.
    pub repeat: Option<usize>,
    /// Counted from 1; of paths.
    pub setting: Option<usize>,
}

/// The page of these runs, side by side.
pub fn page(runs: Vec<Source>, wanted: &Wanted) -> Result<String> {
    if runs.is_empty() {
        return Err(Error::input("no run to report on"));
    }
    // Labels of several mixtures are compared only if all of them are put in the same order.
    let align = runs.iter().any(|run| run.is_mixture() && run.relation.exchangeable);
    let mut views: Vec<View> =
        runs.into_iter().map(|run| View::open(run, wanted, align)).collect::<Result<_>>()?;
    units::settle(&mut views);
    let names: Vec<&str> = views.iter().map(View::label).collect();
    let title = wanted.title.clone().unwrap_or_else(|| names.join(", "));
    let sections = [
        ("experiment", "The experiment", experiment::section(&views)),
        ("data", "Data", data::section(&views)),
        ("diagnostics", "Diagnostics", diagnostics::section(&views)),
        ("metrics", "Metrics", metrics::section(&views)),
        ("parameters", "Parameters", parameters::section(&views)?),
        ("figures", "Figures", figures::section(&views)),
        ("config", "Config", reproduce::configs(&views)),
        ("reproduce", "How to reproduce it", reproduce::section(&views)),
    ];
    let present: Vec<&(&str, &str, Html)> =
        sections.iter().filter(|(_, _, inside)| !inside.is_empty()).collect();
    let link = |(id, title, _): &&(&'static str, &str, Html)| {
        Html::tag("li", Html::with("a", &[("href", &format!("#{id}"))], Html::text(title)))
    };
    let contents =
        Html::with("nav", &[("aria-label", "contents")], Html::tag("ul", present.iter().map(link).collect()));
    let section = |(id, title, inside): &&(&str, &str, Html)| {
        Html::with("section", &[("id", id)], Html::tag("h2", Html::text(title)).and(inside.clone()))
    };
    let body = header(&title, &views).and(warnings(&views)).and(contents);
    let body = body.and(Html::tag("main", present.iter().map(section).collect()));
    Ok(html::document(&title, STYLE, SCRIPT, body))
}

fn header(title: &str, views: &[View]) -> Html {
    let about = |view: &View| {
        let report = view.report();
        let finished = view.manifest.finished.replace('T', " ").replace('Z', " UTC");
        let words = format!("{} · {} draws · finished {finished}", report.label, report.draws());
        let words = if views.len() > 1 { format!("{}: {words}", view.label()) } else { words };
        Html::with("p", &[("class", "subtitle")], Html::text(&words))
    };
    let title = Html::tag("h1", Html::text(title));
    Html::tag("header", std::iter::once(title).chain(views.iter().map(about)).collect())
}

/// What a reader must know first, of every run.
fn warnings(views: &[View]) -> Html {
    let several = views.len() > 1;
    let of = |view: &View| -> Vec<Html> {
        let line = |warning: &String| {
            let name = Html::tag("b", Html::text(&format!("{}: ", view.label())));
            let name = if several { name } else { Html::none() };
            Html::tag("li", name.and(Html::marked(warning)))
        };
        let changed = data::changed(view);
        view.report().warnings.iter().chain(&changed).map(line).collect()
    };
    let lines: Vec<Html> = views.iter().flat_map(of).collect();
    if lines.is_empty() {
        let attributes = [("class", "fine"), ("id", "warnings")];
        let words = if several {
            "No warnings: nothing in these runs asks for caution."
        } else {
            "No warnings: nothing in this run asks for caution."
        };
        return Html::with("div", &attributes, Html::paragraph(words));
    }
    let title = format!("Read first: {}", crate::words::counted(lines.len(), "warning"));
    let attributes = [("class", "warnings"), ("id", "warnings"), ("role", "note")];
    Html::with(
        "div",
        &attributes,
        Html::tag("h2", Html::text(&title)).and(Html::tag("ul", lines.into_iter().collect())),
    )
}

/// A piece for each run: groups of a run share what is not of their rows.
fn run_by_run(views: &[View], piece: impl Fn(&View) -> Html) -> Html {
    let is_first = |i: &usize| views[..*i].iter().all(|other| other.source.folder != views[*i].source.folder);
    let firsts: Vec<&View> = (0..views.len()).filter(is_first).map(|i| &views[i]).collect();
    let article = |view: &&View| {
        Html::tag("article", Html::tag("h3", Html::text(&view.report().name)).and(piece(view)))
    };
    match firsts[..] {
        [only] => piece(only),
        _ if firsts.len() == views.len() => side_by_side(views, piece),
        _ => Html::with("div", &[("class", "runs")], firsts.iter().map(article).collect()),
    }
}

/// A piece for each run, side by side where there is room, with its name above it if there are several.
fn side_by_side(views: &[View], piece: impl Fn(&View) -> Html) -> Html {
    let article = |view: &View| {
        let inside = piece(view);
        match views.len() {
            1 => inside,
            _ if inside.is_empty() => inside,
            _ => Html::tag("article", Html::tag("h3", Html::text(view.label())).and(inside)),
        }
    };
    let all: Html = views.iter().map(article).collect();
    if views.len() == 1 || all.is_empty() { all } else { Html::with("div", &[("class", "runs")], all) }
}
