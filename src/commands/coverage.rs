//! `npl coverage`: how often intervals cover on data sets of which the truth is known.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget};
use npl::config::printable;
use npl::coverage::{Archive, Coverage, Line, Plan, Settings, Truth, Wanted};
use npl::error::Error;
use npl::run::identity;
use npl::samples::{Interval, fits};
use npl::store::{self, Existing, RunDir, Shard, Shelf};
use npl::study::Study;

use super::run::seed_there;
use super::stop::{Leaves, Minder, goes_on};
use super::text::{counted, number, render};
use super::{load, note, print, read, threads};
use crate::cli::{CoverageArgs, Format};

pub fn coverage(args: CoverageArgs) -> Result<()> {
    let begun = Instant::now();
    let (document, experiment) = read(&args.config, &args.overrides, &[])?;
    let out =
        args.out.clone().unwrap_or_else(|| Path::new("runs").join(format!("{}-coverage", experiment.name)));
    let mut sets: Vec<String> =
        args.resample.map(|rows| format!("data.resample={rows}")).into_iter().collect();
    if !document.has("seed") && !args.force {
        sets.extend(seed_there(&out).map(|seed| format!("seed={seed}")));
    }
    let study = fresh(&args, load(&args.config, &args.overrides, &sets)?, sets)?;
    if study.by().is_some() {
        let message = "coverage makes data sets of one experiment, and `data.by` makes several; `data.filter` chooses one group";
        return Err(study.refused("data.by", message).into());
    }
    if study.experiment.path.is_some() || study.repeats() > 1 {
        let what = if study.repeats() > 1 { "repeats" } else { "path" };
        let message = format!("coverage makes data sets of one experiment; leave `{what}` out");
        return Err(Error::input(message).into());
    }
    let plan = plan(&args, &study)?;
    let resolved = study.experiment.to_toml()?;
    let existing = if args.force { Existing::Replace } else { Existing::Continue };
    let shown = printable(&out.display().to_string());
    if !args.force && store::is_finished(&out) && !out.join(store::COVERAGE_JSON).exists() {
        let message = format!("{shown} holds results of a run; choose another folder with --out");
        return Err(Error::input(message).into());
    }
    let folder = Arc::new(RunDir::open(&out, store::COVERAGE, &resolved, study.inputs(), existing)?);
    let shelf = Shelf::of_run(&folder);
    if args.force {
        shelf.clear(true);
    }
    let asked = asked_as_text(&resolved, &plan)?;
    let ours = store::Identity { draws: Some(study.draws()), ..identity(&study, &asked, Shard::WHOLE) };
    let archive = Arc::new(Archive::open(shelf, ours, args.keep_every)?);
    archive.damaged.iter().for_each(|what| note(&format!("{what}: damaged; its data sets are made again")));
    if study.seed_was_drawn() && !args.quiet {
        note(&format!("seed {} (drawn; recorded in config.toml)", study.seed(0).0));
    }
    let bar = bar(&args, &study);
    let (far, for_writing) = (bar.clone(), archive.clone());
    let leaves = Leaves {
        keeper: None,
        folder: Some(folder.clone()),
        progress: Some(Box::new(move || {
            format!("{} of {} data sets are kept in {shown}", far.position(), far.length().unwrap_or(0))
        })),
        goes_on: goes_on(None),
        archive: Some(for_writing),
    };
    let limit = args.time_limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    let minder = Minder::new(leaves, limit)?;
    let workers = threads(&args.overrides.machine)?.0;
    let mut progress = |more: usize| bar.inc(more as u64);
    let outcomes = plan.outcomes(args.datasets as usize, workers, &minder.cancel, &archive, &mut progress);
    bar.finish_and_clear();
    let outcomes = outcomes.map_err(|error| {
        drop(archive.write());
        minder.explain(error)
    })?;
    let trial = study.trial(0)?;
    let settings = Settings {
        name: study.experiment.name.clone(),
        method: study.experiment.method.name().to_owned(),
        label: study.label(),
        seed: study.seed(0).0,
        n: trial.train.n(),
        draws: study.draws(),
    };
    let found = Coverage::new(settings, &plan, &outcomes);
    if found.lines.is_empty() {
        drop(archive.write());
        let why = found.fault.unwrap_or_else(|| format!("none has an interval {}", found.absent.join(", ")));
        return Err(Error::Failed(format!("no data set has an answer: {why}")).into());
    }
    let command: Vec<String> = std::env::args().collect();
    let done = plan.into_folder(&folder, &found, &outcomes, &resolved, command, (workers, begun.elapsed()));
    done.and_then(|()| archive.finish()).map_err(|error| folder.blame(error))?;
    announce(&args, &found, &out)
}

/// A study whose data sets are drawn anew: of a file that is the same for all, as many of its rows as it has, at random.
fn fresh(args: &CoverageArgs, study: Study, mut sets: Vec<String>) -> Result<Study> {
    let data = &study.experiment.data;
    let same = data.simulate.is_none() && data.response.is_none() && data.resample.is_none();
    if !same {
        return Ok(study);
    }
    sets.push(format!("data.resample={}", study.trial(0)?.train.n()));
    load(&args.config, &args.overrides, &sets)
}

fn plan<'a>(args: &CoverageArgs, study: &'a Study) -> Result<Plan<'a>> {
    let wanted = match args.truth.as_deref() {
        None => Wanted::Best,
        Some("stated") => Wanted::Stated,
        Some("minimum") => Wanted::Minimum,
        Some(file) => Wanted::File(PathBuf::from(file)),
    };
    let truth = Truth::of(study, &wanted, args.truth_n as usize)?;
    let kinds = if args.interval.is_empty() { vec![Interval::default()] } else { args.interval.clone() };
    let levels = if args.level.is_empty() { vec![0.95] } else { args.level.clone() };
    let mut asked: Vec<(Interval, f64)> = Vec::new();
    for pair in levels.iter().flat_map(|level| kinds.iter().map(|kind| (*kind, *level))) {
        if !asked.contains(&pair) {
            asked.push(pair);
        }
    }
    let characters = |text: &str| text.chars().collect::<Vec<char>>();
    let patterns: Vec<Vec<char>> = args.only.iter().map(|p| characters(p)).collect();
    let only = |name: &str| patterns.is_empty() || patterns.iter().any(|p| fits(p, &characters(name)));
    Ok(Plan::new(study, asked, truth, only)?)
}

/// The experiment and what is asked of it, as one text: data sets that were made for another question are not these.
fn asked_as_text(resolved: &str, plan: &Plan) -> Result<String> {
    let mut table: toml::Table = resolved.parse()?;
    let asked = plan.asked.iter().map(|(kind, level)| format!("{kind:?} {level:?}").into()).collect();
    let parameters = plan.truth.values.iter().map(|(name, _)| name.clone().into()).collect();
    let mut coverage = toml::Table::new();
    coverage.insert("intervals".into(), toml::Value::Array(asked));
    coverage.insert("parameters".into(), toml::Value::Array(parameters));
    if plan.truth.in_units_of_data {
        coverage.insert("units".into(), "data".into());
    }
    // What is kept of a data set depends on the truth only by the parameters that have one.
    table.insert("coverage".into(), toml::Value::Table(coverage));
    Ok(table.to_string())
}

fn bar(args: &CoverageArgs, study: &Study) -> ProgressBar {
    let bar = ProgressBar::new(u64::from(args.datasets));
    let hidden = args.quiet || !std::io::stderr().is_terminal();
    bar.set_draw_target(match hidden {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(8),
    });
    bar.set_message(study.experiment.name.clone());
    bar
}

fn announce(args: &CoverageArgs, found: &Coverage, out: &Path) -> Result<()> {
    if args.json {
        print((serde_json::to_string_pretty(found)? + "\n").as_bytes())?;
    }
    if args.quiet {
        return Ok(());
    }
    let text = text(found) + &format!("written to {}\n", printable(&out.display().to_string()));
    match args.json {
        true => note(text.trim_end()),
        false => print(text.as_bytes())?,
    }
    Ok(())
}

fn text(found: &Coverage) -> String {
    let settings = &found.settings;
    let mut out = String::new();
    if found.without_answer > 0 {
        let why = found.fault.as_deref().unwrap_or_default();
        let few = counted(found.without_answer, "data set");
        out += &format!(
            "warning: {few} of {} have no answer and count for nothing; {}\n",
            found.datasets,
            printable(why)
        );
    }
    for (count, what) in [
        (found.with_lost_draws, "lost some of their draws, and their intervals are those of the others"),
        (found.not_converged, "have a variational fit that did not converge; raise `advi.max_iterations`"),
    ] {
        if count > 0 {
            out += &format!("warning: {} of {} {what}\n", counted(count, "data set"), found.datasets);
        }
    }
    const NONE: &str = "all their draws lie on one side of the estimate, or are no numbers";
    for line in found.lines.iter().filter(|line| line.without_interval > 0) {
        let Some(name) = &line.parameter else { continue };
        out += &format!(
            "warning: {} of {} have no {} interval of {} and count for nothing in its line: {NONE}\n",
            counted(line.without_interval, "data set"),
            found.datasets - found.without_answer,
            line.interval,
            printable(name)
        );
    }
    for what in &found.absent {
        out += &format!("warning: no data set has an interval {}: {NONE}\n", printable(what));
    }
    let by = match (found.truth.by.as_str(), found.truth.rows) {
        ("minimum", Some(rows)) => format!("minimum of the loss over {rows} rows"),
        (by, _) => by.to_owned(),
    };
    let units = if found.truth.in_units_of_data { "; coefficients per unit of the file" } else { "" };
    out += &format!(
        "{}: {}, {} of {} rows each, {} draws, seed {}\ntruth: {by}{units}\n\n",
        printable(&settings.name),
        printable(&settings.label),
        counted(found.datasets, "data set"),
        settings.n,
        settings.draws,
        settings.seed
    );
    let titles = [
        "interval",
        "parameter",
        "truth",
        "coverage",
        "mcse",
        "below",
        "above",
        "width",
        "score",
        "sd ratio",
    ];
    let mut rows: Vec<Vec<String>> = vec![titles.map(String::from).to_vec()];
    rows.extend(found.lines.iter().map(row));
    out += &render(&rows, Format::Text);
    out + "(score: Winkler's interval score; sd ratio: mean posterior sd over the sd of the posterior means between data sets)\n"
}

fn row(line: &Line) -> Vec<String> {
    let share = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.4}"));
    let measured = |value: Option<f64>, error: Option<f64>| {
        value.zip(error).map_or(String::new(), |(value, error)| number(value, error))
    };
    let ratio = line.posterior_sd.zip(line.sampling_sd).map(|(posterior, sampling)| posterior / sampling);
    // One data set has no spread between data sets.
    let ratio = ratio.filter(|ratio| ratio.is_finite());
    vec![
        format!("{} {} %", line.interval, (1e6 * line.level).round() / 1e4),
        line.parameter.clone().unwrap_or_else(|| "all at once".into()),
        line.truth.map_or(String::new(), |truth| format!("{truth:.4}")),
        format!("{:.4}", line.coverage),
        format!("{:.4}", line.mcse_coverage),
        share(line.below),
        share(line.above),
        measured(line.width, line.mcse_width),
        measured(line.score, line.mcse_score),
        ratio.map_or(String::new(), |ratio| format!("{ratio:.3}")),
    ]
}
