//! `npl explain`: one draw of a finished run, and how it came to be.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use npl::bootstrap::{Draw, Plan, posterior_bootstrap};
use npl::config::{Count, printable};
use npl::data::Dataset;
use npl::error::Error;
use npl::experiment::Experiment;
use npl::model::{Context, Model, Search};
use npl::optim::{Minimum, Optimiser, Status};
use npl::process::Measure;
use npl::run::Run;
use npl::study::{ReadyTrial, Study};

use super::text::render;
use super::{groups, load_run, pool, print, reading};
use crate::cli::{ExplainArgs, Format};

/// Columns of the data that are shown of a row.
const SHOWN: usize = 6;

pub fn explain(args: ExplainArgs) -> Result<()> {
    reading(&args.reading);
    let (_, study) = load_run(&args.run, args.data_dir.as_deref(), &args.machine)?;
    let method = study.experiment.method;
    if !method.is_bootstrap() {
        let message =
            format!("draws of method \"{}\" have no weights and no searches to show", method.name());
        return Err(Error::input(message).into());
    }
    let rounds = study.rounds();
    let number = match study.groups()[..] {
        [] if args.group.is_none() => args.repeat,
        ref groups => groups::round(groups, study.each(), args.group.as_deref(), args.repeat)?,
    };
    if !(1..=rounds).contains(&number) {
        return Err(Error::input(format!("--repeat {number}: the run has repeats 1 to {rounds}")).into());
    }
    let draws = study.draws_of(number - 1);
    if !(1..=draws).contains(&args.draw) {
        return Err(Error::input(format!("--draw {}: the run has draws 1 to {draws}", args.draw)).into());
    }
    let (pool, never) = (pool(&args.machine)?, AtomicBool::new(false));
    let (round, index) = (number - 1, args.draw - 1);
    let before = Run::new(&study, &pool, &never)?.before(round, index)?;
    let path = study.experiment.path.as_ref().map(|_| study.setting_of(round));
    let setting = path.map(|(setting, _)| study.setting(setting)).transpose()?;
    let (study, repeat) = match (&setting, path) {
        (Some(setting), Some((_, repeat))) => (setting, repeat),
        _ => (&study, round),
    };
    let trial = study.trial(repeat)?.scheme(&pool, &never)?;
    let plan = Plan { before: before.as_ref(), ..trial.plan() };
    let mut found: Option<Draw> = None;
    posterior_bootstrap(
        &plan,
        index..index + 1,
        &pool,
        &never,
        |_| (),
        |draw, ()| {
            found = Some(draw);
            Ok(())
        },
    )?;
    let draw = found.expect("one draw was asked for");
    let shown = printable(&args.run.display().to_string());
    let round = if setting.is_some() { "setting" } else { "repeat" };
    let group =
        args.group.iter().map(|group| format!(" of group \"{}\"", printable(group))).collect::<String>();
    let mut out =
        format!("draw {} of {round} {}{group} of {shown}: {}\n\n", args.draw, args.repeat, study.label());
    let f = plan.measure(index);
    out += &weights(&trial, &f, args.top);
    out += &searches(study, &trial, &plan, &f, &draw, args.top);
    out += &theta(&trial, &draw);
    print(out.as_bytes())
}

fn columns(data: &Dataset) -> Vec<String> {
    let response = data.y.iter().map(|_| "response".to_owned());
    response.chain(data.columns.iter().take(SHOWN).cloned()).collect()
}

fn cells(data: &Dataset, i: usize) -> Vec<String> {
    let row = data.x.row(i);
    let response = data.y.iter().map(|y| y[i]);
    response.chain(row.iter().take(SHOWN).copied()).map(|v| format!("{v:.5}")).collect()
}

/// Places of the largest, and them.
fn largest(weights: &[f64], top: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
    order.truncate(top);
    order
}

/// The masses of F: of the rows, and of the pseudo-samples if it has some.
fn weights(trial: &ReadyTrial, f: &Measure, top: usize) -> String {
    let (w, v) = f.weights();
    let mut out = String::new();
    let pseudo;
    let mut parts: Vec<(&str, &[f64], &Dataset)> = vec![("rows", w, &trial.train)];
    if !v.is_empty() {
        pseudo = f.pseudo_samples();
        parts.push(("pseudo-samples", v, &pseudo));
    }
    for (what, weights, data) in parts {
        let (total, squares): (f64, f64) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
        let worth = if squares > 0.0 { total * total / squares } else { 0.0 };
        out +=
            &format!("{} {what} with {total:.5} of the mass, worth {worth:.1} equal ones\n", weights.len());
        let mut rows = vec![["row".to_owned(), "weight".into(), "weight x n".into()].to_vec()];
        rows[0].extend(columns(data));
        for i in largest(weights, top) {
            let mass = weights[i];
            let front = [
                (i + 1).to_string(),
                format!("{mass:.3e}"),
                format!("{:.3}", mass * trial.train.mass().max(1.0)),
            ];
            // A base measure without rows of its own has none to show.
            let back = if i < data.n() { cells(data, i) } else { Vec::new() };
            rows.push(front.into_iter().chain(back).collect());
        }
        out += &render(&rows, Format::Text);
        out += "\n";
    }
    out
}

fn why(status: Status) -> &'static str {
    match status {
        Status::Ok => "converged",
        Status::Collapsed => "converged to a variance on its floor",
        Status::MaxIter => "ran out of iterations",
        Status::Failed => "the loss was not a finite number",
        Status::Separated => "the responses are separable: there is no minimum",
        Status::Divergent => "diverged",
        Status::Stuck => "no step lowered the loss, and its gradient is not small",
        Status::Flat => "no row is within reach of the loss, which is flat there",
        Status::Unidentified => {
            "columns depend on each other, or different rows are fewer than centres: there is no single minimum"
        }
    }
}

/// Every restart: where it began and ended, and the way between.
fn searches(study: &Study, trial: &ReadyTrial, plan: &Plan, f: &Measure, draw: &Draw, top: usize) -> String {
    let model = trial.model.as_ref();
    if model.blocks().is_empty() {
        return format!(
            "there is one minimum, found without a start that could be another: objective {:?}\n\n",
            draw.minimum.value
        );
    }
    let mut rows = vec![
        ["restart", "at the start", "objective", "iterations", "gradient", "why it ended"]
            .map(String::from)
            .to_vec(),
    ];
    let mut ways = String::new();
    for r in 0..draw.values.len().min(top.max(draw.restart)) {
        let search = plan.search(f, draw.index, r);
        let start = search.start.clone();
        let minimum = plan
            .searches(&[draw.index], r, std::slice::from_ref(&search))
            .pop()
            .expect("an answer for each search");
        let won = if r + 1 == draw.restart { ", won" } else { "" };
        let first = model.loss(&start, f);
        rows.push(vec![
            (r + 1).to_string(),
            format!("{first:.6}"),
            format!("{:.9}", minimum.value),
            minimum.iterations.to_string(),
            format!("{:.1e}", minimum.gradient),
            why(minimum.status).to_owned() + won,
        ]);
        if plan.subsample.is_none() {
            ways += &way(&study.experiment, trial, (r + 1, &search, first), &minimum);
        }
    }
    let more = draw.values.len().saturating_sub(rows.len() - 1);
    let more = if more > 0 { format!("… and {more} more restarts (--top)\n") } else { String::new() };
    let hits = draw.hits();
    // Mini-batches go another way when they are cut short.
    let ways = if ways.is_empty() { ways } else { format!("objective by iteration\n{ways}\n") };
    format!(
        "{} restarts; {hits} ended in the minimum that won\n{}{more}\n{ways}",
        draw.values.len(),
        render(&rows, Format::Text)
    )
}

/// One search, as those of a block are made.
fn search(model: &dyn Model, search: &Search) -> Minimum {
    model.minimise_block(std::slice::from_ref(search)).pop().expect("an answer for each search")
}

/// The objective after 1, 2, 4, … iterations: searches that are cut short there go the same way.
fn way(
    experiment: &Experiment,
    trial: &ReadyTrial,
    (restart, from, first): (usize, &Search, f64),
    end: &Minimum,
) -> String {
    let mut points = vec![format!("0: {first:.6}")];
    let mut k = 1;
    while k < end.iterations {
        let value = cut_short(experiment, trial, k).map(|model| search(model.as_ref(), from).value);
        points.extend(value.map(|value| format!("{k}: {value:.6}")));
        k *= 2;
    }
    points.push(format!("{}: {:.6}", end.iterations, end.value));
    format!("  restart {restart}   {}\n", points.join("  "))
}

/// The model with searches of so many iterations.
fn cut_short(experiment: &Experiment, trial: &ReadyTrial, iterations: usize) -> Option<Box<dyn Model>> {
    let optimiser = Optimiser { max_iterations: Count::new(iterations)?, ..experiment.optimiser.clone() };
    let alpha = experiment.method.inference().alpha(experiment);
    let prior = experiment.prior.as_ref().map_or(0.0, |p| p.alpha.get());
    let mass = trial.train.mass() + prior;
    let derived = Some(&experiment.derived);
    let context = Context { train: &trial.train, alpha, mass, optimiser: &optimiser, derived };
    experiment.model.build(&context).ok()
}

fn theta(trial: &ReadyTrial, draw: &Draw) -> String {
    let names = trial.model.names();
    let shown = names.iter().zip(&draw.minimum.theta).take(60);
    let rows = shown.map(|(name, value)| vec![name.clone(), format!("{value:?}")]);
    let rows: Vec<Vec<String>> =
        [vec!["parameter".to_owned(), "value".into()]].into_iter().chain(rows).collect();
    let more = names.len().saturating_sub(60);
    let more = if more > 0 { format!("… and {more} more\n") } else { String::new() };
    render(&rows, Format::Text) + &more
}
