//! `--group`: one of the groups of a run.

use std::ops::Range;

use anyhow::Result;
use npl::config::{nearest, printable};
use npl::error::Error;
use npl::report::Report;

/// Groups that are named where one is wanted.
const LISTED: usize = 10;

/// The place of the group that is asked for, from 0; `None` if none is.
pub fn place(report: &Report, asked: Option<&str>) -> Result<Option<usize>> {
    let names: Vec<&str> = report.groups.iter().map(|group| group.name.as_str()).collect();
    asked.map(|name| named(&names, name, "--group")).transpose()
}

/// The place of a group by its name, from 0.
pub fn named(names: &[&str], name: &str, flag: &str) -> Result<usize> {
    if let Some(place) = names.iter().position(|known| *known == name) {
        return Ok(place);
    }
    let name = printable(name);
    let message = match nearest(&name, names.iter().copied()) {
        _ if names.is_empty() => format!("{flag} {name}: the run has no groups; `data.by` makes them"),
        Some(near) => {
            format!("{flag} {name}: the run has no such group; did you mean \"{}\"?", printable(near))
        }
        None => format!("{flag} {name}: the run has no such group; {}", few(names)),
    };
    Err(Error::input(message).into())
}

/// A few of their names.
fn few(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().map(|name| printable(name)).collect();
    format!("they are {}", npl::words::few(&shown, LISTED))
}

/// The round, from 1, of one repeat of one group: of runs with groups one has to be named.
pub fn round(names: &[&str], each: usize, group: Option<&str>, repeat: usize) -> Result<usize> {
    let group = match group {
        Some(name) => named(names, name, "--group")?,
        None if names.len() > 1 => {
            return Err(
                Error::input(format!("the run has groups: name one with --group; {}", few(names))).into()
            );
        }
        None => 0,
    };
    if !(1..=each).contains(&repeat) {
        return Err(Error::input(format!("--repeat {repeat}: the run has repeats 1 to {each}")).into());
    }
    Ok(group * each + repeat)
}

/// The rounds of a group, from 1.
pub fn rounds(report: &Report, group: usize) -> Range<usize> {
    let each = report.each();
    group * each + 1..(group + 1) * each + 1
}
