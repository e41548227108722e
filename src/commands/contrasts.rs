//! What groups of a run differ by: their posteriors are independent, so that a difference of draws is a draw of the difference.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::predict;
use npl::report::Report;
use npl::samples::{GROUP, Interval, Kinship, Question, Samples};

use super::groups;
use super::summary::{Told, is_for_people, question};
use crate::cli::SummaryArgs;

/// Pairs of groups, from 0: the second is taken from the first.
pub fn pairs(args: &SummaryArgs, report: &Report) -> Result<Option<Vec<(usize, usize)>>> {
    let (count, flag) = (report.groups.len(), if args.pairwise { "--pairwise" } else { "--contrast" });
    let refuse = |why: &str| Err(Error::input(format!("{flag}: {why}")).into());
    let pairs: Vec<(usize, usize)> = match &args.contrast {
        Some(name) => {
            let names: Vec<&str> = report.groups.iter().map(|group| group.name.as_str()).collect();
            let reference = groups::named(&names, name, flag)?;
            (0..count).filter(|&g| g != reference).map(|g| (g, reference)).collect()
        }
        None if args.pairwise => (0..count).flat_map(|a| (a + 1..count).map(move |b| (b, a))).collect(),
        None => return Ok(None),
    };
    if count == 0 {
        return refuse("the run has no groups; `data.by` makes them");
    }
    if pairs.is_empty() {
        return refuse("the run has one group alone, and nothing to compare it with");
    }
    if matches!(args.interval, Some(Interval::Bc | Interval::Bca)) {
        return refuse(
            "corrected intervals are those of one group, whose estimate its draws spread around; see --group",
        );
    }
    Ok(Some(pairs))
}

/// A row for each pair and parameter, below their titles.
pub fn table(
    all: &Told,
    report: &Report,
    parts: &[Samples],
    pairs: &[(usize, usize)],
) -> Result<Vec<Vec<String>>> {
    let run = printable(&all.args.run.display().to_string());
    let refuse = |why: &str| Err(Error::input(format!("{run}: {why}")).into());
    if all.relation.draws == Kinship::Weighted {
        return refuse("the draws of groups count by weights of their own, and cannot be paired");
    }
    if all.relation.exchangeable && !all.args.relabel {
        return refuse(
            "components have other labels in every draw, and nothing to do with those of another group; --relabel aligns them",
        );
    }
    let asked = question(all.args).unwrap_or(Question {
        interval: Interval::default(),
        level: 0.95,
        above: None,
        between: None,
        corrections: BTreeMap::new(),
    });
    let asked = Question { above: asked.above.or(Some(0.0)), ..asked };
    let mut joined = Vec::new();
    for &(a, b) in pairs {
        let [first, second] = [a, b].map(|g| report.groups[g].name.as_str());
        let table = all.answered(&parts[a].less(&parts[b])?, &asked)?;
        match is_for_people(all.args) {
            true => add(&mut joined, &["contrast"], &[&format!("{first} - {second}")], table),
            false => add(&mut joined, &[GROUP, "minus__"], &[first, second], table),
        }
    }
    Ok(joined)
}

/// Adds a table to others of its kind, with cells of the same before each of its rows.
pub fn add(joined: &mut Vec<Vec<String>>, titles: &[&str], cells: &[&str], table: Vec<Vec<String>>) {
    let skip = usize::from(!joined.is_empty());
    for (i, row) in table.into_iter().enumerate().skip(skip) {
        let front = if i == 0 { titles } else { cells };
        joined.push(front.iter().map(|cell| (*cell).to_owned()).chain(row).collect());
    }
}

/// Whether a coefficient is the effect of another unit in each group.
pub fn in_own_units(run: &Path) -> bool {
    let Ok(preparations) = predict::preparations(run) else { return false };
    let scales = |g: usize| preparations.of(g).columns(0).iter().map(|column| column.sd).collect::<Vec<_>>();
    let count = preparations.by().map_or(1, |(_, names)| names.len());
    (1..count).any(|g| scales(g) != scales(0))
}
