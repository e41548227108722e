//! Draws as lines of text, chosen columns of chosen draws, one after the other: what other programs read from a pipe.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use super::read::Samples;
use super::{COUNTS, DRAW, GROUP, Grouping, REPEAT, STATUS, quoted};
use crate::config::{nearest, printable};
use crate::error::{Error, Result};
use crate::optim::Status;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Text {
    /// Comma-separated, names first.
    #[default]
    Csv,
    /// Separated by tabs, names first.
    Tsv,
    /// An object of JSON on every line; what is no number is null.
    Ndjson,
}

/// Which columns.
#[derive(Clone, Debug, Default)]
pub struct Pick {
    /// Patterns of names, `*` for any characters and `?` for one; none for all columns.
    pub patterns: Vec<String>,
    /// Without those that end in `__`.
    pub no_statistics: bool,
}

/// Which draws.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Counted from 1; of every group, where there are groups.
    pub repeat: Option<usize>,
    /// By their numbers in a repeat, from 1.
    pub draws: Option<RangeInclusive<usize>>,
    /// Without those that are lost.
    pub drop_failed: bool,
}

impl Choice {
    fn takes(&self, statistics: &[f64], repeat: usize) -> bool {
        let draw = statistics[DRAW] as usize;
        self.repeat.is_none_or(|wanted| wanted == repeat)
            && self.draws.as_ref().is_none_or(|draws| draws.contains(&draw))
            && !(self.drop_failed && Status::is_lost_code(statistics[STATUS]))
    }
}

/// A column of the lines.
struct Column {
    cell: Cell,
    /// As the format writes it.
    name: String,
}

/// What a cell of a column holds.
#[derive(Clone, Copy)]
enum Cell {
    Repeat,
    Group,
    /// By its place; a count or not.
    Statistic(usize, bool),
    /// By its place among those that are read.
    Parameter(usize),
}

/// The repeat of a draw, and its group as the format writes it.
struct Place<'a> {
    repeat: usize,
    group: &'a str,
}

impl Samples {
    /// Writes chosen columns of chosen draws, in the order of the file. Numbers are the shortest that read back exactly.
    /// Holds one draw at a time.
    pub fn stream(
        &self,
        pick: &Pick,
        choice: &Choice,
        text: Text,
        out: &mut dyn Write,
    ) -> Result<io::Result<()>> {
        let grouping = self.grouping()?;
        let stored = match &grouping {
            Some(_) => Grouping::columns(&self.columns),
            None => self.columns.clone(),
        };
        let statistics = stored.len() - self.parameters().len();
        let chosen = self.pick(&stored, statistics, pick)?;
        let parameters = || chosen.iter().filter(|&&j| j >= statistics).map(|j| j - statistics);
        let range = parameters().min().unwrap_or(0)..parameters().max().map_or(0, |j| j + 1);
        let column = |&j: &usize| {
            let name = &stored[j];
            let cell = match name.as_str() {
                _ if j >= statistics => Cell::Parameter(j - statistics - range.start),
                _ if j == REPEAT => Cell::Repeat,
                GROUP if grouping.is_some() => Cell::Group,
                name => {
                    let place = self.columns.iter().position(|known| known == name);
                    Cell::Statistic(place.expect("a column of the table"), COUNTS.contains(&name))
                }
            };
            Column { cell, name: text.name(name) }
        };
        let columns: Vec<Column> = chosen.iter().map(column).collect();
        let names: Vec<String> =
            grouping.iter().flat_map(|all| &all.names).map(|name| text.name(name)).collect();
        let mut written = text.header(&columns, out);
        if written.is_err() {
            return Ok(written);
        }
        self.scan(range.clone(), |statistics, theta| {
            let round = statistics[REPEAT] as usize;
            let (group, repeat) = grouping.as_ref().map_or((0, round), |all| all.of(round));
            if choice.takes(statistics, repeat) {
                let place = Place { repeat, group: names.get(group).map_or("", String::as_str) };
                written = text.line(&columns, &place, statistics, theta, out);
            }
            written.is_ok()
        })?;
        Ok(written.and_then(|()| out.flush()))
    }

    /// The parameters of such names, `*` for any characters and `?` for one; all, if no pattern is given.
    pub fn parameters_like(&self, patterns: &[String]) -> Result<Vec<String>> {
        let pick = Pick { patterns: patterns.to_vec(), no_statistics: true };
        let places = self.pick(&self.columns, self.statistics, &pick)?;
        Ok(places.into_iter().map(|j| self.columns[j].clone()).collect())
    }

    /// The places of the columns that are asked for, in the order of the file, of which so many are statistics.
    fn pick(&self, columns: &[String], statistics: usize, pick: &Pick) -> Result<Vec<usize>> {
        let patterns: Vec<Vec<char>> = pick.patterns.iter().map(|p| p.chars().collect()).collect();
        let mut used = vec![false; patterns.len()];
        let mut takes = |name: &str| {
            let name: Vec<char> = name.chars().collect();
            let mut any = patterns.is_empty();
            for (pattern, used) in patterns.iter().zip(&mut used) {
                let fits = fits(pattern, &name);
                (any, *used) = (any || fits, *used || fits);
            }
            any
        };
        let mut chosen: Vec<usize> = (0..columns.len()).filter(|&j| takes(&columns[j])).collect();
        if let Some(unused) = used.iter().position(|used| !used) {
            return Err(self.no_column(&pick.patterns[unused]));
        }
        chosen.retain(|&j| !(pick.no_statistics && j < statistics));
        if chosen.is_empty() {
            return Err(Error::input(
                "all columns that were asked for are statistics, and --no-statistics leaves them out",
            ));
        }
        Ok(chosen)
    }

    fn no_column(&self, pattern: &str) -> Error {
        let names = self.columns.iter().map(String::as_str);
        let hint = match nearest(pattern, names) {
            Some(name) => format!("did you mean `{}`?", printable(name)),
            None => {
                let some: Vec<String> = self.parameters().iter().take(3).map(|n| printable(n)).collect();
                format!("they are {} and {}, …", self.columns[..self.statistics].join(", "), some.join(", "))
            }
        };
        Error::input(format!("the draws have no column `{}`; {hint}", printable(pattern)))
    }
}

impl Text {
    /// A name as it is written.
    fn name(self, name: &str) -> String {
        match self {
            Text::Csv => quoted(name),
            // Quotes around what would be taken for the end of a cell, as in comma-separated text.
            Text::Tsv if name.contains(['\t', '"', '\n', '\r']) => {
                format!("\"{}\"", name.replace('"', "\"\""))
            }
            Text::Tsv => name.to_owned(),
            Text::Ndjson => serde_json::Value::from(name).to_string(),
        }
    }

    fn header(self, columns: &[Column], out: &mut dyn Write) -> io::Result<()> {
        let names = || columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>();
        match self {
            Text::Csv => writeln!(out, "{}", names().join(",")),
            Text::Tsv => writeln!(out, "{}", names().join("\t")),
            Text::Ndjson => Ok(()),
        }
    }

    fn line(
        self,
        columns: &[Column],
        place: &Place,
        statistics: &[f64],
        theta: &[f64],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let (first, between, last) = match self {
            Text::Csv => ("", ",", "\n"),
            Text::Tsv => ("", "\t", "\n"),
            Text::Ndjson => ("{", ",", "}\n"),
        };
        for (j, column) in columns.iter().enumerate() {
            out.write_all(if j > 0 { between } else { first }.as_bytes())?;
            if self == Text::Ndjson {
                write!(out, "{}:", column.name)?;
            }
            let (value, count) = match column.cell {
                Cell::Repeat => (place.repeat as f64, true),
                Cell::Group => {
                    out.write_all(place.group.as_bytes())?;
                    continue;
                }
                Cell::Statistic(j, count) => (statistics[j], count),
                Cell::Parameter(j) => (theta[j], false),
            };
            match value {
                value if self == Text::Ndjson && !value.is_finite() => out.write_all(b"null")?,
                value if count => write!(out, "{value}")?,
                value => write!(out, "{value:?}")?,
            }
        }
        out.write_all(last.as_bytes())
    }
}

/// Whether a name is one of those that a pattern stands for.
pub fn fits(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The last `*`, and where in the name it was last tried to end.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, end)) => {
                    star = Some((at, end + 1));
                    (p, n) = (at + 1, end + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    #[test]
    fn patterns_stand_for_names() {
        let fits = |pattern: &str, name: &str| {
            super::fits(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
        };
        for (pattern, name) in [
            ("mu.*", "mu.1.2"),
            ("mu.*.2", "mu.1.2"),
            ("*", ""),
            ("*", "x"),
            ("mu[1,*]", "mu[1,2]"),
            ("a*b*c", "aXbbXc"),
            ("beta.?", "beta.é"),
            ("**", "x"),
            ("*__", "draw__"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("mu.*", "mu"), ("mu.?", "mu.12"), ("", "x"), ("mu", "mu.1"), ("*b", "abc"), ("MU.*", "mu.1")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
