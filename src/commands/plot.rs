//! `npl plot`: pictures of runs.

use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Result;
use npl::config::printable;
use npl::data::files::SearchPath;
use npl::error::Error;
use npl::plot::{self, Medium, Options, RESOLUTION, Scene, Source};
use npl::store::AtomicFile;

use super::{note, print, reading, ways};
use crate::cli::{PlotArgs, Units};

/// Cells of a terminal that does not say how large it is, and the largest that is filled.
const CELLS: (usize, usize) = (80, 24);
const MOST_CELLS: (usize, usize) = (120, 40);

/// Where a picture goes, and what it is made of there.
enum Target {
    Terminal,
    File(PathBuf, Format),
}

#[derive(Clone, Copy)]
enum Format {
    Svg,
    Png,
    Pdf,
}

impl Format {
    fn of(path: &Path) -> Result<Format, Error> {
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        match ending.as_str() {
            "svg" => Ok(Format::Svg),
            "png" => Ok(Format::Png),
            "pdf" => Ok(Format::Pdf),
            _ => {
                let shown = printable(&path.display().to_string());
                Err(Error::input(format!(
                    "--out {shown}: a picture ends in .svg, .png or .pdf; `-` is the terminal"
                )))
            }
        }
    }

    fn bytes(self, scene: &Scene) -> Vec<u8> {
        match self {
            Format::Svg => plot::svg(scene).into_bytes(),
            Format::Png => plot::png(scene, RESOLUTION),
            Format::Pdf => plot::pdf(scene),
        }
    }
}

pub fn plot(args: PlotArgs) -> Result<()> {
    reading(&args.reading);
    let target = target(&args)?;
    let mut options = options(&args, &target)?;
    let search = SearchPath::new(args.data_dir.as_deref());
    let told = Told { relabel: args.relabel, units: args.units };
    let sources = sources(&args.runs, &args.label, &args.group, told, &search)?;
    options.truth = truths(&args.truth, &sources)?;
    let kind = match &args.kind {
        Some(name) => plot::kind(name)?,
        None => plot::default_kind(&sources, &options)?,
    };
    let scene = plot::draw(kind, &sources, &options)?;
    match target {
        Target::Terminal => print(plot::terminal(&scene, colours()).as_bytes()),
        Target::File(path, format) => {
            let bytes = format.bytes(&scene);
            let mut file = AtomicFile::create(&path)?;
            file.put(|out| out.write_all(&bytes))?;
            file.commit()?;
            let shown = printable(&path.display().to_string());
            note(&format!("{shown}: {}", kind.name));
            let lacking: Vec<String> = plot::lacking(&scene).into_iter().map(String::from).collect();
            if !matches!(format, Format::Svg) && !lacking.is_empty() {
                let few = npl::words::few(&lacking, 8);
                note(&format!(
                    "{shown}: boxes stand for letters that its font lacks: {few}; an .svg has them"
                ));
            }
            Ok(())
        }
    }
}

fn target(args: &PlotArgs) -> Result<Target, Error> {
    match &args.out {
        Some(out) if out == Path::new("-") => Ok(Target::Terminal),
        Some(out) => Ok(Target::File(out.clone(), Format::of(out)?)),
        None if std::io::stdout().is_terminal() => Ok(Target::Terminal),
        None => Err(Error::input(
            "standard output is no terminal: name a file with --out x.svg, .png or .pdf, or draw text with --out -",
        )),
    }
}

/// Colour where a terminal shows it and nobody objects (no-color.org).
fn colours() -> bool {
    let objects = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && !objects && !dumb
}

/// Columns and rows of the terminal: asked of it, else as the environment has them.
fn cells() -> (usize, usize) {
    let from_env = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok().filter(|n| *n > 0);
    let size = terminal_size::terminal_size();
    let columns = size.map(|(w, _)| usize::from(w.0)).or(from_env("COLUMNS")).unwrap_or(CELLS.0);
    // One row is for the prompt.
    let rows =
        size.map(|(_, h)| usize::from(h.0)).or(from_env("LINES")).unwrap_or(CELLS.1 + 1).saturating_sub(1);
    (columns.clamp(30, MOST_CELLS.0), rows.clamp(12, MOST_CELLS.1))
}

fn options(args: &PlotArgs, target: &Target) -> Result<Options, Error> {
    let mut options = Options {
        parameters: args.parameters.clone(),
        repeat: args.repeat,
        setting: args.setting,
        title: args.title.as_deref().map(printable),
        truth: Vec::new(),
        normal: args.normal.as_deref().map(|text| pair("--normal", text)).transpose()?,
        x_limits: args.xlim.as_deref().map(|text| limits("--xlim", text)).transpose()?,
        y_limits: args.ylim.as_deref().map(|text| limits("--ylim", text)).transpose()?,
        log: args.log,
        absolute: args.absolute,
        most: args.top.map(usize::from),
        width: args.width.map(f64::from),
        height: args.height.map(f64::from),
        medium: Medium::Page,
    };
    if options.normal.is_some_and(|(_, sd)| sd <= 0.0) {
        return Err(Error::input("--normal: MEAN,SD wants a standard deviation above 0"));
    }
    if let Target::Terminal = target {
        let (columns, rows) = cells();
        let theme = plot::Theme::terminal(columns, rows);
        (options.width, options.height, options.medium) =
            (Some(theme.width), Some(theme.height), theme.medium);
    }
    Ok(options)
}

fn pair(flag: &str, text: &str) -> Result<(f64, f64), Error> {
    let numbers: Option<Vec<f64>> =
        text.split(',').map(|v| v.trim().parse().ok().filter(|v: &f64| v.is_finite())).collect();
    match numbers.as_deref() {
        Some([a, b]) => Ok((*a, *b)),
        _ => Err(Error::input(format!(
            "{flag} {}: two numbers with a comma between them are wanted",
            printable(text)
        ))),
    }
}

fn limits(flag: &str, text: &str) -> Result<(f64, f64), Error> {
    let (low, high) = pair(flag, text)?;
    if low < high {
        Ok((low, high))
    } else {
        Err(Error::input(format!("{flag} {}: the first must be below the second", printable(text))))
    }
}

/// True values: `name=value`, whose name must be a parameter of the runs, or a file, which may know of more than they have.
fn truths(given: &[String], sources: &[Source]) -> Result<Vec<(String, f64)>, Error> {
    let mut truths = Vec::new();
    for text in given {
        match text.rsplit_once('=') {
            Some((name, value)) => truths.push((name.trim().to_owned(), number_of(text, value)?)),
            None => truths.extend(in_runs(text, truths_of_file(text)?, sources)?),
        }
    }
    Ok(truths)
}

fn number_of(text: &str, value: &str) -> Result<f64, Error> {
    let wrong = || Error::input(format!("--truth {}: {} is not a number", printable(text), printable(value)));
    value.trim().parse().map_err(|_| wrong())
}

/// Lines `parameter,value` with a header.
fn truths_of_file(text: &str) -> Result<Vec<(String, f64)>, Error> {
    let shown = printable(text);
    let bad = |what: String| Error::input(format!("--truth {shown}: {what}"));
    let mut reader =
        csv::Reader::from_path(text).map_err(|e| bad(format!("neither name=value nor a file: {e}")))?;
    let headers = reader.headers().map_err(|e| bad(e.to_string()))?.clone();
    let place = |name: &str| headers.iter().position(|h| h.trim() == name);
    let (Some(names), Some(values)) = (place("parameter"), place("value")) else {
        return Err(bad("its header has no columns parameter and value".into()));
    };
    let mut truths = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| bad(e.to_string()))?;
        let (name, value) = (record.get(names).unwrap_or_default(), record.get(values).unwrap_or_default());
        truths.push((name.trim().to_owned(), number_of(text, value)?));
    }
    Ok(truths)
}

/// Those that the runs have; the others are named, and an error if they are all.
fn in_runs(file: &str, truths: Vec<(String, f64)>, sources: &[Source]) -> Result<Vec<(String, f64)>, Error> {
    let known: HashSet<String> = plot::known_parameters(sources)?.into_iter().collect();
    let (found, others): (Vec<_>, Vec<_>) = truths.into_iter().partition(|(name, _)| known.contains(name));
    let names: Vec<String> = others.iter().map(|(name, _)| printable(name)).collect();
    let (shown, few) = (printable(file), npl::words::few(&names, 5));
    match (found.is_empty(), others.is_empty()) {
        (true, true) => return Err(Error::input(format!("--truth {shown}: it has no true values"))),
        (true, false) => {
            return Err(Error::input(format!("--truth {shown}: the run has none of its parameters: {few}")));
        }
        (false, false) => note(&format!("{shown}: not of this run, and left out: {few}")),
        (false, true) => {}
    }
    Ok(found)
}

/// How the draws of runs are told: with components aligned, and in which units.
#[derive(Clone, Copy, Default)]
pub struct Told {
    pub relabel: bool,
    pub units: Units,
}

/// The runs, with components aligned if that is asked for, each with its label: as it is asked for, else its name; where names are
/// the same, its folder, or as much of the way there as differs.
pub fn sources(
    runs: &[PathBuf],
    labels: &[String],
    groups: &[String],
    told: Told,
    search: &SearchPath,
) -> Result<Vec<Source>> {
    if labels.len() > runs.len() {
        let (labels, runs) = (labels.len(), runs.len());
        let message = format!("--label is given {labels} times, and there are {runs} runs");
        return Err(Error::input(message).into());
    }
    let open = |run: &PathBuf| -> Result<Source> {
        let source = Source::open(run, search.clone())?;
        Ok(if told.units == Units::Data { source.in_units_of_data()? } else { source })
    };
    let opened = runs.iter().map(open).collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = opened.iter().map(|s| s.label.clone()).collect();
    let folder = |run: &PathBuf| run.file_name().map(|f| printable(&f.to_string_lossy())).unwrap_or_default();
    let folders: Vec<String> = runs.iter().map(folder).collect();
    let ways = ways(runs);
    let twins = |all: &[String], i: usize| all.iter().filter(|n| **n == all[i]).count() > 1;
    let label = |i: usize| match labels.get(i) {
        Some(label) => printable(label),
        None if !twins(&names, i) => names[i].clone(),
        None if !twins(&folders, i) && !folders[i].is_empty() => folders[i].clone(),
        None => ways[i].clone(),
    };
    let labels: Vec<String> = (0..opened.len()).map(label).collect();
    let mut sources = Vec::new();
    for (source, label) in opened.into_iter().zip(labels) {
        let places = self::groups(&source, groups)?;
        for source in source.groups(&places)? {
            let label = match (source.is_group(), runs.len()) {
                (false, _) => label.clone(),
                (true, 1) => source.label.clone(),
                (true, _) => format!("{label}, {}", source.label),
            };
            let source = if told.relabel { source.relabelled()? } else { source };
            sources.push(source.labelled(label));
        }
    }
    Ok(sources)
}

/// Groups of a run that are shown side by side without being named.
const MOST_GROUPS: usize = 8;

/// The groups of a run that are shown: those that are named, or all.
fn groups(source: &Source, named: &[String]) -> Result<Vec<usize>> {
    let names: Vec<&str> = source.report.groups.iter().map(|group| group.name.as_str()).collect();
    if named.is_empty() && names.len() > MOST_GROUPS {
        let message = format!(
            "the run has {} groups, and {MOST_GROUPS} are shown at most: name some with --group",
            names.len()
        );
        return Err(Error::input(message).into());
    }
    match named.is_empty() {
        true => Ok((0..names.len()).collect()),
        false => named.iter().map(|name| super::groups::named(&names, name, "--group")).collect(),
    }
}
