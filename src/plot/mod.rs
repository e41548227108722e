//! Pictures of runs. A kind of figure is a function from runs to a [`Scene`], and a line in [`KINDS`]; backends turn a scene
//! into SVG, PNG, PDF or text for a terminal. Nothing here writes a file.

mod axes;
mod canvas;
pub mod contour;
mod fft;
mod font;
pub mod kde;
pub mod kde2;
mod kinds;
mod names;
mod options;
mod palette;
mod pdf;
mod png;
mod sheet;
mod source;
mod svg;
mod terminal;
mod theme;

pub use canvas::{Anchor, Item, Paint, Point, Rect, Scene, Shape, Stroke, Text};
pub use kinds::{KINDS, Kind};
pub use options::{Options, Request};
pub use palette::Colour;
pub use pdf::pdf;
pub use png::png;
pub use source::{Draws, Source};
pub(crate) use svg::base64;
pub use svg::{svg, svg_element};
pub use terminal::terminal;
pub use theme::{Medium, Theme};

use std::collections::BTreeSet;

use crate::config::{nearest, printable};
use crate::error::{Error, Result};

/// Pixels for a point of a PNG.
pub const RESOLUTION: f64 = 3.0;

/// The kind of figure with this name.
pub fn kind(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names = || KINDS.iter().map(|kind| kind.name);
        let hint = nearest(name, names()).map(|n| format!("; did you mean `{n}`?")).unwrap_or(".".into());
        let list = names().collect::<Vec<_>>().join(", ");
        Error::input(format!("no kind of figure `{}`{hint} There are {list}.", printable(name)))
    })
}

/// The kind that says most about these runs.
pub fn default_kind(runs: &[Source], options: &Options) -> Result<&'static Kind> {
    let Some(first) = runs.first() else { return Ok(&KINDS[0]) };
    let named = |name: &str| KINDS.iter().find(|kind| kind.name == name).expect("a registered kind");
    if first.path().is_some() {
        return Ok(named("path"));
    }
    let chosen = names::choose(&options.parameters, first.parameters())?;
    Ok(match chosen.len() {
        _ if options.normal.is_some() => named("marginal"),
        0 if first.coefficients().len() > 1 => named("forest"),
        0 if runs.len() == 1 && kinds::mixture::applies(first) && options.truth.is_empty() => {
            named("mixture")
        }
        2 => named("bivariate"),
        n if n > 12 => named("forest"),
        _ => named("marginal"),
    })
}

/// A figure of one kind.
pub fn draw(kind: &Kind, runs: &[Source], options: &Options) -> Result<Scene> {
    if runs.is_empty() {
        return Err(Error::input("no run to draw"));
    }
    if runs.len() > 1 && !kind.overlays {
        let groups = runs.iter().any(Source::is_group);
        let which = if groups { "one group; name it with --group" } else { "one run; give one" };
        let message = format!("a {} figure shows {which}, or draw the others for themselves", kind.name);
        return Err(Error::input(message));
    }
    if let Some((_, flag)) =
        options.given().iter().find(|(name, _)| !kind.uses.split(' ').any(|u| u == *name))
    {
        return Err(Error::input(format!("{flag} has no meaning for a {} figure", kind.name)));
    }
    if runs.iter().any(Source::is_in_units_of_data) && !kind.uses.split(' ').any(|u| u == "units") {
        return Err(Error::input(format!("--units has no meaning for a {} figure", kind.name)));
    }
    check_truth(runs, options)?;
    (kind.draw)(&Request { runs, options })
}

/// That true values are of parameters that there are.
fn check_truth(runs: &[Source], options: &Options) -> Result<()> {
    if options.truth.is_empty() {
        return Ok(());
    }
    let known = known_parameters(runs)?;
    let unknown = options.truth.iter().map(|(name, _)| name).find(|name| !known.contains(name));
    unknown.map_or(Ok(()), |name| names::choose(std::slice::from_ref(name), &known).map(drop))
}

/// Parameters that any of the runs knows: those of its draws, and those of the quantiles along its path.
pub fn known_parameters(runs: &[Source]) -> Result<Vec<String>> {
    let mut known: Vec<String> = runs.iter().flat_map(|run| run.parameters().iter().cloned()).collect();
    for run in runs.iter().filter(|run| run.path().is_some()) {
        known.extend(run.points()?.into_iter().map(|(_, point)| point.parameter));
    }
    Ok(known)
}

/// Letters of a picture that the embedded font lacks: boxes in PNG and PDF, themselves in SVG.
pub fn lacking(scene: &Scene) -> BTreeSet<char> {
    let letters = scene.texts().flat_map(|text| text.text.chars());
    letters.filter(|&c| font::glyph(c) == 0).collect()
}

/// The figures that a run calls for: kind, title and picture. What cannot be drawn is left out.
pub fn figures_for(run: &Source, theme: Theme) -> Vec<(&'static str, String, Scene)> {
    let options = Options { medium: theme.medium, ..Options::default() };
    let first = default_kind(std::slice::from_ref(run), &options).map_or("", |kind| kind.name);
    let mut wanted: Vec<&Kind> = KINDS.iter().filter(|kind| (kind.applies)(run)).collect();
    wanted.sort_by_key(|kind| kind.name != first);
    let figure = |kind: &Kind| {
        let scene = draw(kind, std::slice::from_ref(run), &options).ok()?;
        Some((kind.name, scene.description.clone(), scene))
    };
    wanted.into_iter().filter_map(figure).collect()
}
