//! The figures that these runs call for.

use super::html::Html;
use super::side_by_side;
use super::view::View;
use crate::error::Result;
use crate::plot::{self, Options, Scene, Source};

/// In points: the width of a telephone, so that letters are there as large as they are meant; a page has several beside each other.
const WIDTH: f64 = 330.0;
/// Of runs in one picture, where there is room for it.
const WIDE: f64 = 560.0;
/// Rows of a forest.
const ROWS: usize = 30;
/// Figures that make draws again are left out where that takes longer, in seconds.
const PATIENCE: f64 = 3.0;
/// Draws that such a figure makes again.
const AGAIN: f64 = 12.0;

pub fn section(views: &[View]) -> Html {
    let together = if views.len() > 1 { together(views) } else { Vec::new() };
    let shown: Vec<&str> = together.iter().map(|(kind, _)| *kind).collect();
    let alone = side_by_side(views, |view| {
        let place = views.iter().position(|v| std::ptr::eq(v, view)).unwrap_or_default();
        let wanted = wanted(view).into_iter().filter(|want| !shown.contains(&want.kind));
        wanted.enumerate().map(|(i, want)| figure(&want, &format!("r{place}f{i}-"))).collect()
    });
    let class = if views.len() == 1 { "figures" } else { "columns" };
    let together: Html = together.into_iter().map(|(_, picture)| picture).collect();
    Html::with("div", &[("class", "together")], together).and(Html::with("div", &[("class", class)], alone))
}

/// One figure: its kind, the draws that it is of, and its title if it has one of its own.
struct Want<'a> {
    kind: &'static str,
    run: &'a Source,
    view: &'a View,
    title: Option<&'static str>,
}

const ALIGNED: &str = "Marginal posteriors, components aligned";

/// What says something about this run, the most telling first.
fn wanted(view: &View) -> Vec<Want<'_>> {
    let run = &view.source;
    let options = Options::default();
    let first = plot::default_kind(std::slice::from_ref(run), &options).map_or("marginal", |kind| kind.name);
    // A forest is of coefficients, whatever units they are told in; other figures are of the draws as they are.
    let told = |kind| if kind == "forest" { view.comparable() } else { run };
    let plain = |kind| Want { kind, run: told(kind), view, title: None };
    let applies = |kind: &str| plot::kind(kind).is_ok_and(|kind| (kind.applies)(run));
    let regression = applies("forest");
    let mut out = vec![plain(first)];
    if let Some((aligned, _)) = &view.aligned {
        out.push(Want { kind: "marginal", run: aligned, title: Some(ALIGNED), view });
    } else if first != "marginal" && !regression && applies("marginal") {
        out.push(plain("marginal"));
    }
    let joint = run.is_mixture() || run.parameters().len() == 2;
    out.extend((joint && applies("bivariate")).then(|| plain("bivariate")));
    let others = ["tuning", "surface", "calibration", "restarts", "lppd"];
    out.extend(others.into_iter().filter(|kind| applies(kind)).map(plain));
    out
}

/// Runs in one picture, where they have parameters in common.
fn together(views: &[View]) -> Vec<(&'static str, Html)> {
    if views.iter().any(|view| view.source.path().is_some()) {
        return Vec::new();
    }
    let runs: Result<Vec<Source>> = views
        .iter()
        .map(|view| match view.aligned {
            Some(_) => Ok(view.source.again()?.relabelled_by_means()?.0),
            None => view.comparable().again(),
        })
        .collect();
    let Ok(runs) = runs else { return Vec::new() };
    let regression = runs.iter().all(|run| run.coefficients().len() > 1);
    let title = views.iter().any(|v| v.aligned.is_some()).then(|| ALIGNED.to_owned());
    let kinds = if regression { ["forest", "calibration"] } else { ["marginal", "lppd"] };
    let picture = |name: &'static str| {
        let kind = plot::kind(name).ok().filter(|kind| runs.iter().all(|run| (kind.applies)(run)))?;
        let title = title.clone().filter(|_| name == "marginal");
        let narrow = Options { title, most: most(name), ..options(name, &views[0]) };
        let wide = Options { width: Some(WIDE), height: None, ..narrow.clone() };
        let drawn = |class, options: &Options| {
            let scene = plot::draw(kind, &runs, options).ok()?;
            Some(Html::with(
                "div",
                &[("class", class)],
                Html::picture(&scene, &format!("all-{name}-{class}-")),
            ))
        };
        let both = drawn("wide", &wide)?.and(drawn("narrow", &narrow)?);
        Some((name, Html::tag("figure", both)))
    };
    kinds.into_iter().filter_map(picture).collect()
}

fn most(kind: &str) -> Option<usize> {
    (kind == "forest").then_some(ROWS)
}

fn options(kind: &str, view: &View) -> Options {
    let (repeat, setting) = match view.source.path() {
        // All settings are in them.
        Some(_) if ["path", "surface", "tuning"].contains(&kind) => (None, None),
        Some(_) => (None, Some(view.round)),
        None => (Some(view.round), None),
    };
    // What is as wide as it is high stays so.
    let height = ["bivariate", "calibration"].contains(&kind).then_some(WIDTH);
    Options { repeat, setting, width: Some(WIDTH), height, ..Options::default() }
}

fn figure(want: &Want, prefix: &str) -> Html {
    if let Some(words) = too_slow(want) {
        return Html::note(&words);
    }
    let title = want.title.map(str::to_owned);
    let options = Options { title, most: most(want.kind), ..options(want.kind, want.view) };
    let drawn =
        plot::kind(want.kind).and_then(|kind| plot::draw(kind, std::slice::from_ref(want.run), &options));
    match drawn {
        Ok(scene) => framed(&scene, prefix),
        Err(why) => Html::note(&format!("No {} figure: {}", want.kind, why.to_string().replace('\n', " "))),
    }
}

/// Why a figure that makes draws again is left out.
fn too_slow(want: &Want) -> Option<String> {
    let repeat = want.view.report().repeats.get(want.view.round - 1)?;
    let of_a_draw = repeat.seconds * want.view.manifest.threads as f64 / repeat.draws.max(1) as f64;
    (want.kind == "restarts" && of_a_draw * AGAIN > PATIENCE).then(|| {
        "Restarts: not drawn here, because draws would have to be made again, which takes long; `npl plot --kind restarts` \
         does it."
            .to_owned()
    })
}

fn framed(scene: &Scene, prefix: &str) -> Html {
    Html::tag("figure", Html::picture(scene, prefix))
}
