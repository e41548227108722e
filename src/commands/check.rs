//! `npl check`: validate only; the resolved experiment, and what it will cost.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ndarray::Array1;
use npl::bayes::LogDensity;
use npl::bootstrap::posterior_bootstrap;
use npl::config::printable;
use npl::data::Dataset;
use npl::data::prepare::Notes;
use npl::kernel::Level;
use npl::math::{mean, sd};
use npl::method::Effort;
use npl::run::most_shards;
use npl::samples::{Format, STATISTICS};
use npl::study::{Need, Study, Trial};

use super::text::{bytes, counted, few, number, percent, seconds, smaller};
use super::{load, pool, print};
use crate::cli::CheckArgs;

/// Draws, or densities, are timed for about this long, in seconds.
const TIMED: f64 = 0.4;
/// What is not known by then stays unknown.
const PATIENCE: Duration = Duration::from_millis(750);
/// So many draws for each thread cost as much as those of a run: enough to fill the lanes of the kernels.
const LANES_FULL: u64 = 32;
/// So many categorical columns are listed.
const LISTED: usize = 20;

pub fn check(args: CheckArgs) -> Result<()> {
    let Some(config) = args.config.filter(|_| !args.schema) else {
        return schema();
    };
    let study = load(&config, &args.overrides, &[])?;
    let pool = pool(&args.overrides.machine)?;
    let mut out = study.experiment.to_toml()?;
    out += "\n";
    for line in facts(&study, pool, args.shard_minutes)? {
        out += &format!("# {}\n", printable(&line));
    }
    print(out.as_bytes())
}

/// `npl schema`.
pub fn schema() -> Result<()> {
    print((serde_json::to_string_pretty(npl::experiment::schema())? + "\n").as_bytes())
}

fn facts(study: &Study, pool: rayon::ThreadPool, shard_minutes: Option<f64>) -> Result<Vec<String>> {
    let trial = study.trial(0)?;
    let names = study.parameters(&trial);
    let p = names.len();
    let mut lines = data(study, &trial);
    let shown =
        if p > 6 { format!("{}, …, {}", names[..3].join(", "), names[p - 1]) } else { names.join(", ") };
    lines.push(format!("parameters  {p}: {shown}"));
    let rounds = study.rounds();
    lines.push(match &study.experiment.path {
        None => {
            let what = if study.experiment.evaluate.folds.is_some() { "fold" } else { "repeat" };
            let groups = match study.groups().len() {
                0 => String::new(),
                count => format!(" x {}", counted(count, "group")),
            };
            let each = counted(study.each(), what);
            format!("sampler     {}, {} draws x {each}{groups}", study.label(), study.draws())
        }
        Some(path) => {
            let values = study.settings();
            let folds = study.experiment.evaluate.folds.map(|folds| format!(", {} folds", folds.get()));
            let folds = folds.unwrap_or_default();
            let ends = values.first().zip(values.last());
            let ends = ends.map(|(a, b)| format!(" from {a} to {b}")).unwrap_or_default();
            format!(
                "sampler     {}, {} draws x {} of {}{ends}",
                study.label(),
                study.draws(),
                counted(values.len(), "setting"),
                path.parameter
            ) + &folds
        }
    });
    let threads = pool.current_num_threads();
    let need = Need::new(study, &trial, threads);
    let total = match study.inference().effort(&study.experiment) {
        Effort::Draws => {
            let (said, total) = bootstrap_cost(study, trial, pool)?;
            lines.push(format!("time        {said}"));
            total
        }
        Effort::Sort => {
            lines.push("time        that of one sort of the data".into());
            None
        }
        effort => {
            let (said, total) = conventional_cost(study, &trial, effort)?;
            lines.extend(said);
            Some(total)
        }
    };
    lines.extend(shard_minutes.map(|minutes| shards(study, total, minutes)));
    let unused = study.unused();
    if !unused.is_empty() {
        lines.push(format!(
            "not used    by method \"{}\": {}",
            study.experiment.method.name(),
            unused.join(", ")
        ));
    }
    let fits = if need.fits(threads).is_err() { ", more than is allowed or free" } else { "" };
    lines.push(format!("memory      about {}{fits}", bytes(need.total())));
    // A path writes the draws of the parameters to keep.
    let written = study.experiment.path.as_ref().map_or(p, |path| path.keep.len());
    if written > 0 {
        let samples = &study.experiment.output.samples;
        let (rows, columns) =
            (study.draws() * rounds, written + STATISTICS.len() + study.inference().statistics().len());
        let size = smaller(samples, rows, columns).unwrap_or_else(|| {
            let format = Format::of(samples).expect("checked with the experiment");
            format!("about {}", bytes(format.size(rows, columns)))
        });
        lines.push(format!("{samples:<11} {size}"));
    }
    Ok(lines)
}

/// Into how many shards of so many minutes a run of so many seconds could be cut.
fn shards(study: &Study, total: Option<f64>, minutes: f64) -> String {
    let Some(total) = total else { return "shards      not known: neither is the time".to_owned() };
    let most = most_shards(study);
    let count = ((total / (60.0 * minutes)).ceil().max(1.0) as usize).min(most);
    let each = seconds(total / count as f64);
    let limit = if count == most { " (it cannot be cut in more)" } else { "" };
    format!(
        "shards      {count} of about {each} each{limit}: --array=1-{count}, `npl run … --shard auto/{count}`"
    )
}

/// What the data of the first repeat are, and how they came to be.
fn data(study: &Study, trial: &Trial) -> Vec<String> {
    let (train, notes) = (&trial.train, study.notes());
    let tests = trial.test.as_ref().map_or("no test rows".into(), |t| counted(t.n(), "test row"));
    let rows = counted(train.rows_before(), "training row");
    let groups = study.groups();
    let of = groups.first().map(|group| format!(" (group \"{group}\")")).unwrap_or_default();
    let mut lines = vec![format!("data        {rows} x {}, {tests}{of}", counted(train.d(), "column"))];
    if let Some(by) = study.by() {
        let each = groups.iter().zip(study.group_rows()).map(|(group, rows)| format!("{group} {rows}"));
        let each = few(&each.collect::<Vec<_>>(), LISTED);
        lines.push(format!("groups      {} of {by}, rows: {each}", groups.len()));
    }
    lines.extend(
        study.inputs().iter().map(|i| {
            format!("            {} ({}, sha256 {}…)", i.path, bytes(i.bytes as f64), &i.sha256[..12])
        }),
    );
    lines
        .extend(Some(train.design.to_string()).filter(|d| !d.is_empty()).map(|d| format!("design      {d}")));
    let config = &study.experiment.data;
    if !notes.levels.is_empty() {
        lines.extend(levels(notes));
    }
    if !config.missing_values.is_empty() || !notes.missing.is_empty() {
        lines.extend(missing(notes, &config.missing_values));
    }
    if notes.rows_of_weight_0 > 0 {
        let rows = counted(notes.rows_of_weight_0, "row");
        lines.push(format!("weight 0    {rows} of {} left out", notes.rows));
    }
    if let Some(distinct) = notes.distinct {
        lines.push(format!("collapsed   identical training rows are one: {distinct} that differ"));
    }
    lines.extend(notes.doubts.iter().map(|line| format!("doubtful    {line}")));
    lines.extend(notes.base.iter().flat_map(|base| base.changes()).map(|line| format!("base        {line}")));
    lines.extend(constants(notes, train));
    if let Some(y) = &train.y {
        let test = trial.test.as_ref().and_then(|t| t.y.as_ref());
        lines.extend(
            response(y, &trial.train, "training").into_iter().map(|what| format!("response    {what}")),
        );
        lines.extend(
            test.and_then(|y| response(y, &trial.train, "test")).map(|what| format!("            {what}")),
        );
    }
    lines
}

/// Categorical columns: how many levels, and which of them have no dummy.
fn levels(notes: &Notes) -> Vec<String> {
    let made: HashSet<&String> = notes.columns.iter().collect();
    let has_dummy = |name: &String, level: &String| made.contains(&format!("{name}_{level}"));
    let of = |(name, levels): &(String, Vec<String>)| {
        let shown = levels.iter().map(|level| match has_dummy(name, level) {
            true => level.clone(),
            false => format!("{level} (no dummy)"),
        });
        let shown: Vec<String> = shown.collect();
        format!("            {name}: {}: {}", counted(levels.len(), "level"), few(&shown, 5))
    };
    let dummies: usize =
        notes.levels.iter().map(|(name, of)| of.iter().filter(|level| has_dummy(name, level)).count()).sum();
    let others = notes.columns.len() - dummies;
    let title = format!("columns     {others} numeric, {} of text as {dummies} dummies", notes.levels.len());
    let more = notes.levels.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("            and {more} more"));
    [title].into_iter().chain(notes.levels.iter().take(LISTED).map(of)).chain(more).collect()
}

fn missing(notes: &Notes, markers: &[String]) -> Vec<String> {
    let cells: usize = notes.missing.values().sum();
    if cells == 0 {
        let markers: Vec<String> = markers.iter().map(|m| format!("\"{m}\"")).collect();
        return vec![format!("missing     none: no cell is {}", markers.join(" or "))];
    }
    let mut columns: Vec<(&String, &usize)> = notes.missing.iter().collect();
    columns.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let columns: Vec<String> = columns.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let rows = counted(notes.rows_with_missing, "row");
    let mut lines = vec![format!("missing     {} in {rows} of {}", counted(cells, "cell"), notes.rows)];
    lines.push(format!("            by column: {}", few(&columns, 5)));
    if notes.rows_dropped > 0 {
        lines.push(format!("            {} left out", counted(notes.rows_dropped, "row")));
    }
    if notes.cells_imputed > 0 {
        let cells = counted(notes.cells_imputed, "cell");
        lines.push(format!("            {cells} imputed by the mean of the column"));
    }
    lines
}

/// Columns that tell the model nothing: all training values are equal.
fn constants(notes: &Notes, train: &Dataset) -> Vec<String> {
    let constant = |j: &usize| train.n() > 1 && train.x.column(*j).all(|v| v == train.x[[0, *j]]);
    let kept: Vec<String> = (0..train.d()).filter(constant).map(|j| train.columns[j].clone()).collect();
    let used: HashSet<&String> = train.columns.iter().collect();
    let dropped: Vec<String> = notes.columns.iter().filter(|c| !used.contains(c)).cloned().collect();
    [(kept, "with one value in all training rows"), (dropped, "left out: one value in all training rows")]
        .into_iter()
        .filter(|(columns, _)| !columns.is_empty())
        .map(|(columns, why)| {
            format!("constant    {} {why}: {}", counted(columns.len(), "column"), few(&columns, 5))
        })
        .collect()
}

/// Classes whose shares are listed.
const CLASSES: usize = 10;

/// Shares of classes, or mean and sd; nothing of no rows.
fn response(y: &Array1<f64>, train: &Dataset, part: &str) -> Option<String> {
    let n = y.len();
    if n == 0 {
        return None;
    }
    if train.classes.len() > 2 {
        let share = |(k, name): (usize, &String)| {
            let count = y.iter().filter(|&&y| y == k as f64).count();
            format!("{} {}", printable(name), percent(count as f64 / n as f64))
        };
        let shares: Vec<String> = train.classes.iter().enumerate().take(CLASSES).map(share).collect();
        let more = if train.classes.len() > CLASSES { ", …" } else { "" };
        return Some(format!("{}{more} in {n} {part} rows", shares.join(", ")));
    }
    if y.iter().all(|&y| y == 0.0 || y == 1.0) {
        let ones = y.sum();
        return Some(format!("1 in {} of {n} {part} rows ({ones})", percent(ones / n as f64)));
    }
    let y = y.as_slice().expect("responses are contiguous");
    let (mean, sd) = (mean(y), sd(y));
    // As many digits as say something of numbers that are so far from each other.
    let shown = |value: f64| number(value, 0.01 * sd);
    Some(format!("mean {}, sd {} in {n} {part} rows", shown(mean), shown(sd)))
}

fn short(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.1} µs", seconds * 1e6) } else { format!("{:.1} ms", seconds * 1e3) }
}

/// What can be said of a cost that depends on the shape of a posterior: what one evaluation of it takes, and how many
/// there will be.
fn conventional_cost(study: &Study, trial: &Trial, effort: Effort) -> Result<(Vec<String>, f64)> {
    let posterior = trial.posterior()?;
    let origin = vec![0.0; posterior.dim()];
    let mut gradient = origin.clone();
    let (mut evaluations, started) = (0, Instant::now());
    while evaluations < 3 || started.elapsed().as_secs_f64() < TIMED {
        posterior.evaluate(&origin, &mut gradient);
        evaluations += 1;
    }
    let one = started.elapsed().as_secs_f64() / evaluations as f64;
    let (rounds, draws) = (study.rounds(), study.draws());
    let each = format!("the posterior density and its gradient take {}", short(one));
    let mut lines = vec![format!("time        {each}")];
    let total = match effort {
        Effort::Draws | Effort::Sort => 0.0,
        Effort::Trajectories { count, longest, chains, then_draws } => {
            let parallel = chains.min(std::thread::available_parallelism().map_or(1, |n| n.get())) as f64;
            let total = one * (count * rounds) as f64 * longest as f64 / parallel;
            let most = seconds(total);
            lines.push(format!(
                "            {count} trajectories of 1 to {longest} gradients a repeat: at most {most} in all"
            ));
            let then = format!("            then {draws} bootstrap draws x {}", counted(rounds, "repeat"));
            lines.extend(then_draws.then_some(then));
            total
        }
        Effort::Gradients(gradients) => {
            let total = one * (gradients * rounds) as f64;
            let most = seconds(total);
            lines.push(format!(
                "            at most {gradients} of them a repeat: {most} in all on one thread"
            ));
            total
        }
        Effort::Densities => {
            let total = one * (draws * rounds) as f64;
            let most = seconds(total);
            lines.push(format!("            a density for each draw: at most {most} in all on one thread"));
            total
        }
    };
    Ok((lines, total))
}

/// What is known of the cost of a draw, in seconds.
enum Pace {
    /// Draws have begun.
    Begun,
    /// It is less than this: draws made one by one lack what those of a block share.
    AtMost(f64),
    About(f64),
}

/// How long the bootstrap will take. Nothing here ends a search, so the thread that times them is left to itself when
/// patience is at its end, and goes with the process.
fn bootstrap_cost(
    study: &Study,
    trial: Arc<Trial>,
    pool: rayon::ThreadPool,
) -> Result<(String, Option<f64>)> {
    let (threads, draws) = (pool.current_num_threads(), study.draws());
    let all = (draws * study.rounds()) as f64;
    let (say, heard) = channel();
    let started = Instant::now();
    let time = move || {
        if let Err(error) = time_draws(trial, draws as u64, &pool, &say) {
            let _ = say.send(Err(error));
        }
    };
    std::thread::Builder::new().spawn(time).context("cannot start a thread")?;
    let (mut pace, mut begun) = (None, started);
    while let Ok(news) = heard.recv_timeout(PATIENCE.saturating_sub(started.elapsed())) {
        begun = if pace.is_none() { Instant::now() } else { begun };
        pace = Some(news?);
    }
    let on = format!("on {}", counted(threads, "thread"));
    let kernels = format!("({} kernels)", Level::current().name());
    let patience = seconds(PATIENCE.as_secs_f64());
    let total = match pace {
        None => None,
        Some(Pace::Begun) => Some(begun.elapsed().as_secs_f64() * all / threads.min(draws) as f64),
        Some(Pace::AtMost(one) | Pace::About(one)) => Some(one * all),
    };
    let said = match pace {
        None => format!("not known: what the draws start from is not found within {patience}"),
        Some(Pace::Begun) => {
            let first = threads.min(draws);
            let total = seconds(begun.elapsed().as_secs_f64() * all / first as f64);
            format!(
                "more than {total} {on}: the first {} take longer than {patience}",
                counted(first, "draw")
            )
        }
        Some(Pace::AtMost(one)) => {
            format!("at most {} {on}, {} a draw {kernels}", seconds(one * all), short(one))
        }
        Some(Pace::About(one)) => {
            format!("about {} {on}, {} a draw {kernels}", seconds(one * all), short(one))
        }
    };
    Ok((said, total))
}

/// Times the first draws of the real thing, more and more of them.
fn time_draws(
    trial: Arc<Trial>,
    draws: u64,
    pool: &rayon::ThreadPool,
    say: &Sender<npl::error::Result<Pace>>,
) -> npl::error::Result<()> {
    let never = AtomicBool::new(false);
    let trial = trial.scheme(pool, &never)?;
    // Nobody may be listening any more.
    let tell = |pace: Pace| drop(say.send(Ok(pace)));
    tell(Pace::Begun);
    let time = |range: Range<u64>, mut on_draw: Box<dyn FnMut(f64) + '_>| -> npl::error::Result<f64> {
        let started = Instant::now();
        let seconds = || started.elapsed().as_secs_f64();
        let sink = |_, ()| {
            on_draw(seconds());
            Ok(())
        };
        posterior_bootstrap(&trial.plan(), range, pool, &never, |_| (), sink)?;
        Ok(seconds())
    };
    // A draw for each thread: soonest done, but dearer than in blocks, and with what all draws share.
    let (threads, block) = (pool.current_num_threads() as u64, trial.model.block_size() as u64);
    let first = threads.min(draws);
    let mut most = time(0..first, Box::new(|_| ()))? / first as f64;
    tell(if first == draws || block == 1 { Pace::About(most) } else { Pace::AtMost(most) });
    let (mut done, mut batch) = (first, threads * block.min(LANES_FULL));
    let (mut timed, mut spent, mut last) = (0, 0.0, 0.0);
    while done < draws && (timed == 0 || spent + 2.0 * last <= TIMED) {
        let end = (done + batch).min(draws);
        let mut finished = 0.0;
        let on_draw = |seconds: f64| {
            finished += 1.0;
            most = most.min(seconds / finished);
            tell(Pace::AtMost(most));
        };
        // Later batches are counted as a whole: the first may not end in time.
        last = time(done..end, if timed == 0 && block > 1 { Box::new(on_draw) } else { Box::new(|_| ()) })?;
        spent += last;
        timed += end - done;
        tell(Pace::About(spent / timed as f64));
        (done, batch) = (end, batch * 2);
    }
    Ok(())
}
