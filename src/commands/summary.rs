//! `npl summary`: the posterior in numbers, and how far to trust them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use npl::bayes::importance::Weights;
use npl::config::{nearest, printable};
use npl::error::Error;
use npl::math::{mean, sd};
use npl::predict;
use npl::report::{AdviReport, ChainReport, Diagnostics, OverRepeats, PathReport, Repeat, Report};
use npl::samples::{GROUP, Question, Relation, Samples, Summary, fits};
use npl::store;

use super::text::{counted, error, number, percent, render, seconds, warnings};
use super::{contrasts, corrections, groups, note, note_warnings, print, questions, reading, relabel};
use crate::cli::{Format, Order, SummaryArgs, Units};

/// More parameters than this are not listed for people; the files have them all.
const LISTED: usize = 60;
/// Groups that are told of one by one.
const GROUPS_LISTED: usize = 12;
/// Settings and parameters of a path that are listed for people.
const SETTINGS_LISTED: usize = 12;
const PARAMETERS_LISTED: usize = 5;

pub fn summary(args: SummaryArgs) -> Result<()> {
    reading(&args.reading);
    let report = store::read_report(&args.run)?;
    if let Some(path) = &report.path {
        if args.units != Units::Model || args.ratios {
            let message =
                "--units, --ratios: the summary of a path is made while it runs, in the units of the model";
            return Err(Error::input(message).into());
        }
        groups::place(&report, args.group.as_deref().or(args.contrast.as_deref()))?;
        contrasts::pairs(&args, &report)?;
        if args.relabel {
            let message = "--relabel: the summary of a path is made while it runs; `npl relabel` and `npl samples \
                           --relabel` align the draws that it kept";
            return Err(Error::input(message).into());
        }
        let unused = [
            ("--interval", args.interval.is_some()),
            ("--level", args.level.is_some()),
            ("--above", args.above.is_some()),
            ("--between", args.between.is_some()),
            ("--sort", args.sort.is_some()),
            ("--repeat", args.repeat.is_some()),
        ];
        if let Some((flag, _)) = unused.into_iter().find(|(_, given)| *given) {
            let message = format!(
                "{flag}: the summary of a path is made while it runs: medians and 80 % intervals at every setting; for anything else run \
                 that setting by itself"
            );
            return Err(Error::input(message).into());
        }
        return along_path(&args, &report, path);
    }
    let (group, contrasts) =
        (groups::place(&report, args.group.as_deref())?, contrasts::pairs(&args, &report)?);
    let repeats = report.each();
    if let Some(repeat) = args.repeat.filter(|&r| r == 0 || r > repeats) {
        let message = format!("--repeat {repeat}: the run has repeats 1 to {repeats}");
        return Err(Error::input(message).into());
    }
    let samples = Samples::open(&store::samples_of(&args.run)?)?;
    let relation = store::relation_of(&args.run, &samples);
    let (samples, relabelled) = match args.relabel {
        true => samples.relabelled(relation).map(|(samples, done)| (samples, Some(done)))?,
        false => (samples, None),
    };
    let parameters = samples.parameters().to_vec();
    let (samples, units) = match (args.units, args.ratios) {
        (Units::Model, false) => (samples, None),
        (units, ratios) => {
            if ratios {
                predict::check_ratios(&args.run)?;
            }
            if units == Units::Data {
                predict::check_units(&args.run)?;
            }
            let preparation = predict::preparations(&args.run)?.joined(repeats);
            let (samples, units) = samples.in_units(&preparation, units == Units::Data, ratios)?;
            (samples, Some(units))
        }
    };
    let chosen = match &units {
        None => samples.parameters_like(&args.only)?,
        // Told by another name, a parameter is known by its own, too.
        Some(_) => chosen(samples.parameters(), &parameters, &args.only)?,
    };
    let all = Told { args: &args, relation, chosen, parameters, units };
    let report = group.map_or(report.clone(), |group| report.group(group));
    let table = match (group, report.groups.len()) {
        (Some(group), _) => {
            let first = group * repeats;
            let samples = samples.of_rounds(first + 1..first + repeats + 1);
            all.table(&samples, &report, first, &all.estimates(&report, first))?
        }
        (None, 0) => all.table(&samples, &report, 0, &all.estimates(&report, 0))?,
        (None, count) => {
            let rounds: Vec<_> = (0..count).map(|group| groups::rounds(&report, group)).collect();
            let parts = samples.of_each(&rounds)?;
            match &contrasts {
                Some(pairs) => contrasts::table(&all, &report, &parts, pairs)?,
                None => all.by_group(&parts, &report)?,
            }
        }
    };
    if !is_for_people(&args) {
        print(render(&table, args.format).as_bytes())?;
        relabelled.iter().for_each(|done| note(&relabel::trust(done)));
        return note_warnings(&report);
    }
    let table = without_nan(table);
    let listed = &table[..table.len().min(LISTED + 1)];
    let mut out = heading(&report);
    match args.format {
        Format::Text => blocks(&narrowed(listed)).iter().for_each(|block| out += &render(block, args.format)),
        _ => out += &render(listed, args.format),
    }
    if table.len() > LISTED + 1 {
        out += &format!(
            "… and {} more; --only chooses some, --format csv tells all\n",
            table.len() - LISTED - 1
        );
    }
    if all.units.is_some() && args.units == Units::Data {
        let derived = predict::derived(&args.run)?;
        let shown: Vec<String> = derived.into_iter().filter(|name| all.chosen.contains(name)).collect();
        if !shown.is_empty() {
            let shown = printable(&shown.join(", ")).to_string();
            out +=
                &wrapped(&format!("(of [derived], in the units of the model and not of the data: {shown})"));
        }
    }
    match &relabelled {
        Some(done) => out += &wrapped(&format!("({})", relabel::trust(done))),
        None if relation.exchangeable => {
            out += &wrapped(
                "(components are exchangeable under random restarts: these numbers mix all of them; --relabel aligns \
                 them, FI-NPL keeps labels)",
            );
        }
        None => {}
    }
    if repeats > 1 && args.repeat.is_none() {
        out += &wrapped(match report.folds {
            Some(_) => {
                "(draws of all folds together, whose training rows overlap: the posterior of no data set; --repeat N for one)"
            }
            None => "(draws of all repeats together; --repeat N for one)",
        });
    }
    if contrasts.is_some() {
        out += "(groups are independent of each other: their draws are paired by their numbers)\n";
        if args.units == Units::Model && contrasts::in_own_units(&args.run) {
            out += &wrapped(
                "(columns were standardised within each group, so that coefficients are in units of its own; --units data, \
                 or `data.by_prepare = \"overall\"`, makes them comparable)",
            );
        }
    }
    out += "\n";
    out += &diagnostics(&report);
    print(out.as_bytes())
}

/// What all tables of a summary have in common.
pub struct Told<'a> {
    pub args: &'a SummaryArgs,
    pub relation: Relation,
    /// Parameters that are told, by the names that they are told by.
    pub chosen: Vec<String>,
    /// All of them, as the file of draws has them, and what they are told in.
    pub parameters: Vec<String>,
    pub units: Option<npl::samples::Units>,
}

impl Told<'_> {
    /// Names of all parameters as they are told.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.parameters.clone();
        self.units.iter().for_each(|units| units.rename(&mut names));
        names
    }

    /// At equal weights, of rounds from the `first` on; of labels of components that draws mix there are none.
    fn estimates(&self, report: &Report, first: usize) -> BTreeMap<String, f64> {
        match self.relation.exchangeable {
            true => BTreeMap::new(),
            false => corrections::estimate(self, report, first),
        }
    }

    /// A row for each parameter, below their titles.
    fn table(
        &self,
        samples: &Samples,
        report: &Report,
        first: usize,
        estimates: &BTreeMap<String, f64>,
    ) -> Result<Vec<Vec<String>>> {
        let Told { args, relation, chosen, .. } = self;
        if let Some(mut question) = question(args) {
            question.corrections = corrections::corrections(self, report, first)?;
            return self.answered(samples, &question);
        }
        let mut parameters = samples.summarise(relation.draws, args.repeat)?;
        if !args.only.is_empty() {
            parameters.retain(|s| chosen.contains(&s.parameter));
        }
        sort(args, &mut parameters, |s| (&s.parameter, s.mean, s.sd));
        Ok(match is_for_people(args) {
            true => rows(&parameters, estimates),
            false => with_estimates(cells(&Summary::table(&parameters)), &parameters, estimates),
        })
    }

    /// The same, of what is asked beyond the usual table.
    pub fn answered(&self, samples: &Samples, question: &Question) -> Result<Vec<Vec<String>>> {
        let Told { args, relation, chosen, .. } = self;
        let mut answers = samples.answers(chosen, relation.draws, args.repeat, question)?;
        sort(args, &mut answers, |a| (&a.parameter, a.mean.0, a.sd.0));
        Ok(questions::rows(&answers, question, is_for_people(args)))
    }

    /// The tables of all groups as one.
    fn by_group(&self, parts: &[Samples], report: &Report) -> Result<Vec<Vec<String>>> {
        let reports: Vec<Report> = (0..parts.len()).map(|group| report.group(group)).collect();
        let mut estimates: Vec<BTreeMap<String, f64>> =
            reports.iter().enumerate().map(|(g, group)| self.estimates(group, g * report.each())).collect();
        if estimates.iter().any(BTreeMap::is_empty) {
            estimates.iter_mut().for_each(BTreeMap::clear);
        }
        let title = if is_for_people(self.args) { "group" } else { GROUP };
        let mut joined: Vec<Vec<String>> = Vec::new();
        for (g, samples) in parts.iter().enumerate() {
            let table = self.table(samples, &reports[g], g * report.each(), &estimates[g])?;
            contrasts::add(&mut joined, &[title], &[report.groups[g].name.as_str()], table);
        }
        Ok(joined)
    }
}

/// The summary of a finished run, an object for each parameter; `None` of a path, and where it cannot be read.
pub fn posterior(run: &Path, report: &Report) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(store::file_of(run, store::SUMMARY).ok()?).ok()?;
    let mut table = cells(&text);
    // Of one repeat, or of one of each group, whose lines begin with its name.
    let grouped = !report.groups.is_empty();
    if report.each() == 1 && report.repeats.iter().all(|repeat| !repeat.estimate.is_empty()) {
        table[0].push("estimate".into());
        for row in &mut table[1..] {
            let of_row = |repeat: &&Repeat| !grouped || repeat.group.as_ref() == Some(&row[0]);
            let repeat = report.repeats.iter().find(of_row);
            let estimate = repeat.and_then(|repeat| repeat.estimate.get(&row[usize::from(grouped)]));
            let estimate = estimate.map_or(String::new(), |v| format!("{v:?}"));
            row.push(estimate);
        }
    }
    serde_json::from_str(&render(&table, Format::Json)).ok()
}

/// What is asked beyond the usual table.
pub fn question(args: &SummaryArgs) -> Option<Question> {
    let asked =
        args.level.is_some() || args.interval.is_some() || args.above.is_some() || args.between.is_some();
    asked.then(|| Question {
        interval: args.interval.unwrap_or_default(),
        level: args.level.unwrap_or(0.95),
        above: args.above,
        between: args.between.clone(),
        corrections: BTreeMap::new(),
    })
}

pub fn is_for_people(args: &SummaryArgs) -> bool {
    matches!(args.format, Format::Text | Format::Markdown)
}

/// Puts parameters in order by name, mean and standard deviation.
fn sort<T>(args: &SummaryArgs, all: &mut [T], of: impl Fn(&T) -> (&String, f64, f64)) {
    let down = |of: &dyn Fn(&T) -> f64, a: &T, b: &T| of(b).total_cmp(&of(a));
    match args.sort {
        None => {}
        Some(Order::Name) => all.sort_by(|a, b| of(a).0.cmp(of(b).0)),
        Some(Order::Mean) => all.sort_by(|a, b| down(&|t| of(t).1, a, b)),
        Some(Order::Sd) => all.sort_by(|a, b| down(&|t| of(t).2, a, b)),
        Some(Order::Distance) => all.sort_by(|a, b| down(&|t| (of(t).1 / of(t).2).abs(), a, b)),
    }
}

/// The cells of comma-separated text that npl wrote.
fn cells(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().flatten().map(|row| row.iter().map(String::from).collect()).collect()
}

/// What is no number says nothing.
fn without_nan(mut table: Vec<Vec<String>>) -> Vec<Vec<String>> {
    table.iter_mut().skip(1).flatten().filter(|cell| *cell == "NaN").for_each(String::clear);
    table
}

/// The warnings, before anything that they are about.
fn heading(report: &Report) -> String {
    let warnings: String = warnings(report).lines().map(|line| hanging(line, "warning: ".len())).collect();
    if warnings.is_empty() { warnings } else { warnings + "\n" }
}

/// The parameters of such names, by what they are told as or their own; all, if no pattern is given.
fn chosen(told: &[String], own: &[String], patterns: &[String]) -> Result<Vec<String>> {
    let patterns: Vec<(&String, Vec<char>)> = patterns.iter().map(|p| (p, p.chars().collect())).collect();
    let like = |pattern: &[char], j: usize| {
        [&told[j], &own[j]].into_iter().any(|name| fits(pattern, &name.chars().collect::<Vec<char>>()))
    };
    for (pattern, characters) in &patterns {
        if !(0..told.len()).any(|j| like(characters, j)) {
            let hint = nearest(pattern, told.iter().chain(own).map(String::as_str));
            let hint = hint.map_or(String::new(), |name| format!("; did you mean `{}`?", printable(name)));
            let message = format!("--only: there is no parameter `{}`{hint}", printable(pattern));
            return Err(Error::input(message).into());
        }
    }
    let takes = |j: &usize| patterns.is_empty() || patterns.iter().any(|(_, pattern)| like(pattern, *j));
    Ok((0..told.len()).filter(takes).map(|j| told[j].clone()).collect())
}

/// Medians and 80 % intervals along a path: some settings of some parameters; the file has them all.
fn along_path(args: &SummaryArgs, report: &Report, path: &PathReport) -> Result<()> {
    let file = store::file_of(&args.run, store::PATH)?;
    let mut points = npl::path::read(&file)?;
    // A setting of another K has other parameters.
    let mut seen = BTreeSet::new();
    let all = points.iter().map(|(_, point)| &point.parameter);
    let names: Vec<String> = all.filter(|name| seen.insert(*name)).cloned().collect();
    let chosen: BTreeSet<String> = chosen(&names, &names, &args.only)?.into_iter().collect();
    if !is_for_people(args) {
        let text = std::fs::read_to_string(&file)
            .map_err(|e| Error::input(format!("{}: {e}", printable(&file.display().to_string()))))?;
        let mut table = cells(&text);
        table.retain(|row| row[2] == "parameter" || chosen.contains(&row[2]));
        print(render(&table, args.format).as_bytes())?;
        return note_warnings(report);
    }
    points.retain(|(_, point)| chosen.contains(&point.parameter));
    let settings = path.values.len();
    let shown = settings.min(SETTINGS_LISTED);
    let at = |i: usize| if shown > 1 { i * (settings - 1) / (shown - 1) } else { 0 };
    let table = |parameters: &[String]| {
        let titles = ["setting".to_owned(), "value".to_owned()];
        let mut rows: Vec<Vec<String>> = vec![titles.into_iter().chain(parameters.iter().cloned()).collect()];
        for t in (0..shown).map(at) {
            let cell = |parameter: &String| {
                let point = points.iter().find(|(setting, p)| *setting == t + 1 && p.parameter == *parameter);
                point.map_or(String::new(), |(_, p)| {
                    let [q10, q50, q90] = p.quantiles;
                    format!("{q50:.3} [{q10:.3}, {q90:.3}]")
                })
            };
            let front = [(t + 1).to_string(), path.values[t].clone()];
            rows.push(front.into_iter().chain(parameters.iter().map(cell)).collect());
        }
        rows
    };
    let fits = |count: &usize| {
        args.format != Format::Text || width(&table(&npl::path::widest(&points, *count))) <= wide()
    };
    let count = (1..=PARAMETERS_LISTED).rev().find(fits).unwrap_or(1);
    let parameters = npl::path::widest(&points, count);
    let rows = table(&parameters);
    let mut out = heading(report);
    out += &render(&rows, args.format);
    let fold = if report.folds.is_some() { ", of the first fold" } else { "" };
    let all = if parameters.len() < chosen.len() { "of the widest parameters" } else { "of each parameter" };
    out += &wrapped(&format!("(median [10 %, 90 %] {all}{fold}; {} has all)", store::PATH));
    out += "\n";
    out += &diagnostics(report);
    print(out.as_bytes())
}

/// Characters of a line, where nothing is known of who reads it; and the fewest that there is room for.
const WIDE: usize = 80;
const NARROW: usize = 40;
/// What is left out of a table for people, in this order, until it fits; csv and json have it. A bias is the distance of two numbers
/// beside it.
const SPARED: [&[&str]; 5] = [&["10 %", "90 %"], &["bias"], &["ESS tail"], &["50 %"], &["estimate"]];

/// What the terminal has room for.
fn wide() -> usize {
    terminal_size::terminal_size().map_or(WIDE, |(columns, _)| usize::from(columns.0).max(NARROW))
}

/// Characters of a line of a table as text.
fn width(table: &[Vec<String>]) -> usize {
    widths(table).iter().map(|w| w + 2).sum::<usize>().saturating_sub(2)
}

fn widths(table: &[Vec<String>]) -> Vec<usize> {
    let of_column =
        |j: usize| table.iter().filter_map(|row| row.get(j)).map(|c| printable(c).chars().count()).max();
    (0..table[0].len()).map(|j| of_column(j).unwrap_or(0)).collect()
}

/// A remark below a table, in lines that a terminal has room for.
fn wrapped(text: &str) -> String {
    hanging(text, 0)
}

/// A line as several, as far as it is too long: those after the first are indented.
fn hanging(line: &str, indent: usize) -> String {
    let (mut out, mut length, wide) = (String::new(), 0, wide());
    for (i, word) in line.split(' ').enumerate() {
        let more = word.chars().count();
        if i > 0 && length + 1 + more > wide {
            out = format!("{}\n{}", out.trim_end(), " ".repeat(indent));
            length = indent;
        } else if i > 0 {
            out.push(' ');
            length += 1;
        }
        out += word;
        length += more;
    }
    out + "\n"
}

/// Without the columns that a terminal has no room for, as far as others tell enough.
fn narrowed(table: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut table = table.to_vec();
    for titles in SPARED {
        // An end of an interval by itself says nothing.
        if width(&table) > wide() {
            let kept: Vec<bool> = table[0].iter().map(|known| !titles.contains(&known.as_str())).collect();
            table.iter_mut().for_each(|row| {
                let mut kept = kept.iter();
                row.retain(|_| *kept.next().unwrap_or(&true));
            });
        }
    }
    table
}

/// Columns that still have no room go on below, after the names of their rows. A number and its error stay together.
fn blocks(table: &[Vec<String>]) -> Vec<Vec<Vec<String>>> {
    let (widths, titles) = (widths(table), &table[0]);
    let names = titles.iter().position(|title| title == "parameter").map_or(1, |place| place + 1);
    let front: usize = widths[..names].iter().map(|w| w + 2).sum();
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let (mut room, mut j) = (0, names);
    while j < titles.len() {
        let end = j + if titles.get(j + 1).is_some_and(|next| next == "mcse") { 2 } else { 1 };
        let wanted: usize = widths[j..end].iter().map(|w| w + 2).sum();
        if parts.is_empty() || wanted > room {
            parts.push(Vec::new());
            room = (wide() + 2).saturating_sub(front);
        }
        room = room.saturating_sub(wanted);
        parts.iter_mut().last().into_iter().for_each(|part| part.extend(j..end));
        j = end;
    }
    let block = |part: &Vec<usize>| -> Vec<Vec<String>> {
        let cell = |row: &Vec<String>, j: usize| row.get(j).cloned().unwrap_or_default();
        table
            .iter()
            .map(|row| (0..names).chain(part.iter().copied()).map(|j| cell(row, j)).collect())
            .collect()
    };
    parts.iter().map(block).collect()
}

/// With the estimate at equal weights and the distance of the mean from it, where there is one.
fn with_estimates(
    mut table: Vec<Vec<String>>,
    parameters: &[Summary],
    estimates: &BTreeMap<String, f64>,
) -> Vec<Vec<String>> {
    if estimates.is_empty() {
        return table;
    }
    table[0].extend(["estimate", "bias"].map(String::from));
    for (row, summary) in table[1..].iter_mut().zip(parameters) {
        let estimate = estimates.get(&summary.parameter);
        row.extend(
            [estimate.copied(), estimate.map(|e| summary.mean - e)]
                .map(|v| v.map_or(String::new(), |v| format!("{v:?}"))),
        );
    }
    table
}

fn rows(parameters: &[Summary], estimates: &BTreeMap<String, f64>) -> Vec<Vec<String>> {
    let known = !estimates.is_empty();
    let front = if known {
        &["parameter", "estimate", "mean", "mcse", "bias", "sd"][..]
    } else {
        &["parameter", "mean", "mcse", "sd"]
    };
    let titles = front.iter().copied().chain(["2.5 %", "10 %", "50 %", "90 %", "97.5 %"]);
    let chains = parameters.first().is_some_and(|s| s.convergence.is_some());
    let more: &[&str] = if chains { &["R-hat", "ESS bulk", "ESS tail"] } else { &[] };
    let titles: Vec<String> = titles.chain(more.iter().copied()).map(|t| t.to_string()).collect();
    let line = |s: &Summary| {
        let e = s.mcse_mean;
        let estimate = estimates.get(&s.parameter).copied();
        // The estimate has no Monte Carlo error; more digits than those of the mean beside it say nothing.
        let told = |v: Option<f64>| v.map_or(String::new(), |v| number(v, e));
        let there = |value: f64, shown: String| if value.is_nan() { String::new() } else { shown };
        let mut row = vec![s.parameter.clone()];
        row.extend(known.then(|| told(estimate)));
        row.extend([number(s.mean, e), there(e, error(e, 2))]);
        row.extend(known.then(|| told(estimate.map(|estimate| s.mean - estimate))));
        row.push(there(s.sd, number(s.sd, s.mcse_sd)));
        row.extend(s.quantiles.iter().zip(s.mcse_quantiles).map(|(&q, e)| number(q, e)));
        row.extend(s.convergence.iter().flat_map(|c| {
            [format!("{:.3}", c.rhat), format!("{:.0}", c.ess_bulk), format!("{:.0}", c.ess_tail)]
        }));
        row
    };
    std::iter::once(titles).chain(parameters.iter().map(line)).collect()
}

/// Where what is told begins, after what it is called.
const TOLD_AT: usize = 12;

/// What a person needs to know of a run, in a few lines.
pub fn diagnostics(report: &Report) -> String {
    facts(report).lines().map(|line| hanging(line, TOLD_AT)).collect()
}

fn facts(report: &Report) -> String {
    let Some(first) = report.repeats.first() else { return String::new() };
    let total: f64 = report.repeats.iter().map(|r| r.seconds).sum();
    let mut out = format!("{}: {}", printable(&report.name), printable(&report.label));
    // Groups have seeds of their own.
    if report.groups.is_empty() {
        out += &format!(", seed {}", first.seed);
    }
    match &report.path {
        Some(path) => {
            out += &format!(", {} settings of {}", path.values.len(), printable(&path.parameter));
            out += &report.folds.map(|folds| format!(", {folds} folds")).unwrap_or_default();
        }
        None if report.folds.is_some() => {
            let folds = report.folds.unwrap_or(1);
            let times = report.each() / folds;
            out +=
                &format!(", {folds} folds{}", if times > 1 { format!(" x {times}") } else { String::new() });
        }
        None if report.each() > 1 => out += &format!(", {} repeats", report.each()),
        None => {}
    }
    let rows = |repeat: &Repeat| match repeat.n_test {
        0 => repeat.n_train.to_string(),
        tests => format!("{} + {tests} test", repeat.n_train),
    };
    let data = match &report.by {
        None => format!("{} rows", rows(first)),
        Some(by) => {
            let of = |repeat: &Repeat| {
                let name = printable(repeat.group.as_deref().unwrap_or_default());
                format!("{name} {}", rows(repeat))
            };
            let groups: Vec<String> = report.repeats.iter().step_by(report.each()).map(of).collect();
            let (count, few) = (groups.len(), npl::words::few(&groups, GROUPS_LISTED));
            format!("{} of {}, rows: {few}", counted(count, "group"), printable(by))
        }
    };
    out += &format!(
        "\n  data      {data}\n  draws     {} in {} ({:.0} a second)\n",
        report.draws(),
        seconds(total),
        report.draws() as f64 / total.max(1e-9)
    );
    for (title, name) in [
        ("LPPD", "lppd"),
        ("MSE", "mse"),
        ("accuracy", "accuracy"),
        ("sparsity", "sparsity"),
        ("AUC", "auc"),
        ("log loss", "log_loss"),
    ] {
        let what = if report.folds.is_some() { "folds" } else { "repeats" };
        if let Some(metric) = report.metrics.get(name) {
            let pooled = if report.groups.is_empty() { "" } else { "  over the test rows of all groups" };
            out += &format!("  {title:<9} {}{pooled}\n", over_repeats(metric, what));
        }
        for group in report.groups.iter().take(GROUPS_LISTED) {
            if let Some(metric) = group.metrics.get(name) {
                let told = over_repeats(metric, what);
                out += &format!("  {title:<9} {told}  in {}\n", printable(&group.name));
            }
        }
    }
    out + &found(report)
}

fn over_repeats(m: &OverRepeats, what: &str) -> String {
    let mcse = m.mcse.unwrap_or(f64::NAN);
    // Of one draw there is none that could be told, and a share that all draws agree on has none.
    let told = if mcse > 0.0 { format!("Monte Carlo error {}", error(mcse, 2)) } else { String::new() };
    match (m.sd, m.se) {
        (Some(sd), Some(se)) => format!(
            "{:.4}  sd {sd:.4}, se {se:.4} over {} {what}{}",
            m.mean,
            m.repeats,
            if told.is_empty() { told } else { format!(", {told}") }
        ),
        _ => format!("{}  {told}", number(m.mean, mcse)).trim_end().to_owned(),
    }
}

/// How the draws were found: status, singularities, restarts.
fn found(report: &Report) -> String {
    let each: Vec<&Diagnostics> = report.repeats.iter().map(|r| &r.diagnostics).collect();
    let average =
        |f: &dyn Fn(&Diagnostics) -> f64| each.iter().map(|d| f(d)).sum::<f64>() / each.len() as f64;
    let mut status = std::collections::BTreeMap::new();
    for (name, count) in each.iter().flat_map(|d| &d.status) {
        *status.entry(name.as_str()).or_insert(0) += count;
    }
    let counts: Vec<String> = status.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let mut out = conventional(&each);
    // Only the bootstrap searches, and only it has gradients left.
    if each.iter().any(|d| d.max_gradient.is_some()) {
        out += &format!(
            "  searches  {}; {:.0} iterations on average\n",
            counts.join(", "),
            average(&|d| d.mean_iterations)
        );
    }
    let distances: Vec<npl::report::Distance> = each.iter().filter_map(|d| d.subsample).collect();
    if !distances.is_empty() {
        let rms = distances.iter().map(|d| d.rms * d.rms).sum::<f64>() / distances.len() as f64;
        out += &format!(
            "  batches   {:.3} posterior standard deviations from the minimum over all rows ({} draws looked at)\n",
            rms.sqrt(),
            distances.iter().map(|d| d.draws).sum::<usize>()
        );
    }
    if each.iter().all(|d| d.collapse.is_some()) {
        let share =
            |f: &dyn Fn(npl::report::CollapseShares) -> f64| average(&|d| f(d.collapse.unwrap_or_default()));
        out += &format!(
            "  collapse  {} of draws have a variance on the floor, {} a component narrower than a tenth of the data\n            \
             (docs/models.md says why, and what to do)\n",
            percent(share(&|c| c.at_floor)),
            percent(share(&|c| c.narrow))
        );
    }
    if each.iter().all(|d| d.restarts.is_some()) {
        let value =
            |f: &dyn Fn(&npl::restarts::Adequacy) -> f64| average(&|d| d.restarts.as_ref().map_or(0.0, f));
        out += &format!(
            "  restarts  {:.1} a draw, {:.1} distinct minima; best found once in {} of draws; improved by the last \
             in {}\n            unseen basins: {} (Good-Turing), {} (Boender-Rinnooy Kan)\n",
            value(&|a| a.restarts),
            value(&|a| a.minima),
            percent(value(&|a| a.best_found_once)),
            percent(value(&|a| a.improved_by_last)),
            percent(value(&|a| a.unseen_good_turing)),
            percent(value(&|a| a.unseen_boender_rinnooy_kan))
        );
    }
    out + &by_restarts(report)
}

/// Chains, variational fits and weights: what their draws are worth.
fn conventional(each: &[&Diagnostics]) -> String {
    let mut out = String::new();
    let chains: Vec<&ChainReport> = each.iter().filter_map(|d| d.chains.as_ref()).collect();
    if let Some(first) = chains.first() {
        let worst = chains.iter().max_by(|a, b| a.max_rhat.total_cmp(&b.max_rhat)).unwrap_or(first);
        let smallest = |f: fn(&ChainReport) -> f64| chains.iter().map(|c| f(c)).fold(f64::NAN, f64::min);
        let divergences: usize = chains.iter().map(|c| c.divergences).sum();
        let steps = chains.iter().map(|c| c.mean_steps).sum::<f64>() / chains.len() as f64;
        out += &format!(
            "  chains    {} after {} draws of warm-up; {}; {} a draw\n            {}\n",
            first.chains,
            first.warmup,
            counted(divergences, "divergence"),
            counted(steps.round() as usize, "step"),
            match worst.max_rhat.is_nan() {
                true => format!("R-hat and ESS are no numbers ({})", printable(&worst.worst)),
                false => format!(
                    "R-hat at most {:.3} ({}), ESS at least {:.0} bulk, {:.0} tail",
                    worst.max_rhat,
                    printable(&worst.worst),
                    smallest(|c| c.min_ess_bulk),
                    smallest(|c| c.min_ess_tail)
                ),
            }
        );
    }
    let fits: Vec<&AdviReport> = each.iter().filter_map(|d| d.advi.as_ref()).collect();
    if let Some(first) = fits.first() {
        let converged = fits.iter().filter(|f| f.converged).count();
        let elbo = match first.elbo.is_nan() {
            true => "too few for an ELBO (`advi.elbo_every`)".to_owned(),
            false => format!("ELBO {:.1} (elbo.csv has the way there)", first.elbo),
        };
        out += &format!(
            "  ADVI      {converged} of {} fits converged; {} iterations, {elbo}\n",
            fits.len(),
            first.iterations
        );
    }
    let weights: Vec<&Weights> = each.iter().filter_map(|d| d.importance.as_ref()).collect();
    if let Some(first) = weights.first() {
        let sizes: Vec<f64> = weights.iter().map(|w| w.ess).collect();
        let spread =
            if sizes.len() > 1 { format!(", sd {:.2} over repeats", sd(&sizes)) } else { String::new() };
        out += &format!(
            "  weights   ESS {:.2}{spread}; the largest has {} of all; {} of {} draws kept, the others weigh nothing\n            log marginal likelihood {:.2}\n",
            mean(&sizes),
            percent(first.largest),
            first.kept,
            first.draws,
            first.log_evidence
        );
    }
    out
}

/// LPPD had there been fewer restarts.
fn by_restarts(report: &Report) -> String {
    let Some(first) = report
        .repeats
        .first()
        .filter(|r| !r.by_restarts.is_empty() && report.path.is_none() && report.groups.is_empty())
    else {
        return String::new();
    };
    let cell = |i: usize| {
        let values: Vec<_> =
            report.repeats.iter().filter_map(|r| r.by_restarts.get(i)).map(|b| b.lppd).collect();
        let mean = OverRepeats::of(&values)?;
        Some(format!("{} {:.4}", first.by_restarts[i].restarts, mean.mean))
    };
    let cells: Vec<String> = (0..first.by_restarts.len()).filter_map(cell).collect();
    format!("  LPPD by R {}\n", cells.join(" | "))
}
