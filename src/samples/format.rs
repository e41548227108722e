//! How a file of draws is written: its name says it.

/// Bytes of a number as text, with its comma; and the same under gzip.
const CELL: f64 = 20.0;
const CELL_GZ: f64 = 10.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    CsvGz,
    /// An array of float64, a row per draw; the names of its columns are in a file beside it.
    Npy,
    Parquet,
}

impl Format {
    /// The format that a plain file name asks for, or what is wrong with the name.
    pub fn of(name: &str) -> Result<Format, String> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | '=');
        if name.len() > 128 || name.starts_with('.') || !name.chars().all(plain) {
            let rule = "letters, digits, `-`, `_`, `.` only, not starting with `.`";
            return Err(format!("is the name of a file in the run directory: {rule}"));
        }
        let endings = [
            (".csv", Format::Csv),
            (".csv.gz", Format::CsvGz),
            (".npy", Format::Npy),
            (".parquet", Format::Parquet),
        ];
        let found =
            endings.into_iter().find(|(ending, _)| name.len() > ending.len() && name.ends_with(ending));
        match found {
            Some((_, Format::Parquet)) if !cfg!(feature = "parquet") => {
                Err("needs an npl built with Parquet: `cargo build --release --features parquet`".into())
            }
            Some((_, format)) => Ok(format),
            None => {
                Err("must end in `.csv`, `.csv.gz`, `.npy` or `.parquet`: the ending is the format".into())
            }
        }
    }

    /// The file with the names of the columns, if there is one: a list in JSON.
    pub fn names_file(self, name: &str) -> Option<String> {
        let stem = name.strip_suffix(".npy").filter(|_| self == Format::Npy)?;
        Some(format!("{stem}.columns.json"))
    }

    /// About so many bytes.
    pub fn size(self, rows: usize, columns: usize) -> f64 {
        // Most statistics are numbers of one or two digits.
        let cells = rows as f64 * columns.saturating_sub(4) as f64;
        match self {
            Format::Csv => cells * CELL,
            Format::CsvGz => cells * CELL_GZ,
            Format::Npy | Format::Parquet => rows as f64 * columns as f64 * 8.0,
        }
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
