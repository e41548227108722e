//! How a file of draws is written: its name says it. Adding a format is a file and a line below.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use super::{Grouping, csv, csv_gz, npy, parquet};
use crate::error::Result;

/// Goes through rows: statistics, then parameters; whether to go on.
pub type Each<'a> = dyn FnMut(&[f64], &[f64]) -> bool + 'a;

/// A table of draws in a file, open for reading.
pub trait Table: Send + Sync {
    /// How many draws there are, if the file says it.
    fn rows(&self) -> Option<usize>;

    /// Goes through the draws: their first `statistics` columns, and `range` of those after them. Ends when `each` says
    /// false.
    fn scan(&self, statistics: usize, range: Range<usize>, each: &mut Each) -> Result<()>;

    /// Which rounds are those of which group, where the table has groups; rounds are what `scan` tells in the place of repeats.
    fn grouping(&self) -> Result<Option<Grouping>> {
        Ok(None)
    }

    /// What the numbers in the column of groups stand for, from 1; none where a table has no such column.
    fn levels(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// A file of draws as it was found: the names of its columns, and the table.
pub type Opened = (Vec<String>, Box<dyn Table>);

/// The registry: `formats! { Variant => module, … }`. A module has its `ENDING`; `MISSING`, what a build without it says;
/// `NAMES`, the ending of the file with the names of the columns, if they are in one of their own; a `size` in bytes; an
/// `Encoder`; and `open`.
macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident => $module:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $($(#[$doc])* $variant),*
        }

        impl Format {
            pub const ALL: &[Format] = &[$(Format::$variant),*];

            /// How names of its files end.
            pub fn ending(self) -> &'static str {
                match self { $(Self::$variant => $module::ENDING),* }
            }

            fn missing(self) -> Option<&'static str> {
                match self { $(Self::$variant => $module::MISSING),* }
            }

            fn names_ending(self) -> Option<&'static str> {
                match self { $(Self::$variant => $module::NAMES),* }
            }

            /// About so many bytes.
            pub fn size(self, rows: usize, columns: usize) -> f64 {
                match self { $(Self::$variant => $module::size(rows, columns)),* }
            }

            /// Opens a file of this format.
            pub(super) fn open(self, path: &Path) -> Result<Opened> {
                match self { $(Self::$variant => $module::open(path)),* }
            }
        }

        /// Turns rows into bytes.
        pub(super) enum Encoder<W: Write + Send> {
            $($variant($module::Encoder<W>)),*
        }

        impl<W: Write + Send> Encoder<W> {
            /// `rows` is how many there will be: an array says it first, other formats do not ask. `levels`: what the numbers of the
            /// column of groups stand for, if there is one.
            pub fn new(
                out: W,
                format: Format,
                columns: &[String],
                rows: usize,
                levels: &[String],
            ) -> io::Result<Self> {
                Ok(match format {
                    $(Format::$variant => Encoder::$variant($module::Encoder::new(out, columns, rows, levels)?)),*
                })
            }

            pub fn put(&mut self, statistics: &[f64], theta: &[f64]) -> io::Result<()> {
                match self { $(Self::$variant(out) => out.put(statistics, theta)),* }
            }

            /// What is below, after the last row.
            pub fn finish(self) -> io::Result<W> {
                match self { $(Self::$variant(out) => out.finish()),* }
            }

            /// Passes on what has been written so far, as far as the format can.
            pub fn flush(&mut self) -> io::Result<()> {
                match self { $(Self::$variant(out) => out.flush()),* }
            }
        }
    };
}

formats! {
    Csv => csv,
    CsvGz => csv_gz,
    /// An array of float64, a row per draw; the names of its columns are in a file beside it.
    Npy => npy,
    Parquet => parquet,
}

impl Format {
    /// The format that a plain file name asks for, or what is wrong with the name.
    pub fn of(name: &str) -> std::result::Result<Format, String> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | '=');
        if name.len() > 128 || name.starts_with('.') || !name.chars().all(plain) {
            let rule = "letters, digits, `-`, `_`, `.` only, not starting with `.`";
            return Err(format!("is the name of a file in the run directory: {rule}"));
        }
        let ends = |format: &&Format| name.len() > format.ending().len() && name.ends_with(format.ending());
        let Some(&format) = Format::ALL.iter().find(ends) else {
            let endings: Vec<String> = Format::ALL.iter().map(|f| format!("`{}`", f.ending())).collect();
            let (last, others) = endings.split_last().expect("there are formats");
            return Err(format!("must end in {} or {last}: the ending is the format", others.join(", ")));
        };
        format.missing().map_or(Ok(format), |why| Err(why.into()))
    }

    /// The file with the names of the columns, if there is one: a list in JSON.
    pub fn names_file(self, name: &str) -> Option<String> {
        let stem = name.strip_suffix(self.ending())?;
        self.names_ending().map(|ending| format!("{stem}{ending}"))
    }

    /// The file of draws that a file of names belongs to.
    pub fn named_by(name: &str) -> Option<String> {
        let of = |format: &Format| {
            let stem = name.strip_suffix(format.names_ending()?)?;
            Some(format!("{stem}{}", format.ending()))
        };
        Format::ALL.iter().find_map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_is_the_format() {
        assert_eq!(Format::of("samples.csv"), Ok(Format::Csv));
        assert_eq!(Format::of("a.b.csv.gz"), Ok(Format::CsvGz));
        assert_eq!(Format::of("draws.npy"), Ok(Format::Npy));
        assert_eq!(Format::of("x.parquet").is_ok(), cfg!(feature = "parquet"));
        for name in
            ["", ".csv", "samples", "samples.CSV", "a/b.csv", "..", "../x.npy", ".x.csv", "x.gz", "a\nb.csv"]
        {
            assert!(Format::of(name).is_err(), "{name}");
        }
        assert!(Format::of(&format!("{}.csv", "x".repeat(128))).is_err());
    }

    #[test]
    fn an_array_has_its_names_beside_it() {
        assert_eq!(Format::Npy.names_file("draws.npy").as_deref(), Some("draws.columns.json"));
        assert_eq!(Format::Csv.names_file("draws.csv"), None);
    }
}
