//! Delimited text into numbers. What is not a clean table of finite numbers is refused with its place; nothing is
//! repaired silently.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use ndarray::{Array2, Axis};

use super::Dataset;
use crate::config::{nearest, printable};
use crate::error::{Error, Result};

/// At most this many bytes are read from one file, counted after decompression: a small gzip file can hold
/// terabytes of zeros.
const MAX_BYTES: u64 = 8 << 30;
/// So many bad cells are listed; all are counted.
const LISTED: usize = 10;

/// How to read a delimited file.
#[derive(Clone, Debug)]
pub struct Format {
    pub delimiter: u8,
    /// `None`: the first line is a header if one of its cells is not a number.
    pub header: Option<bool>,
    /// Columns to keep, by name or 1-based number; `None`: all.
    pub columns: Option<Vec<String>>,
}

impl Default for Format {
    fn default() -> Self {
        Format { delimiter: b',', header: None, columns: None }
    }
}

/// Where data files are looked for, in this order, when a path is relative.
#[derive(Clone, Debug, Default)]
pub struct SearchPath(pub Vec<PathBuf>);

impl SearchPath {
    /// `--data-dir`, `$NPL_DATA`, `./data`, and the current folder.
    pub fn new(data_dir: Option<&Path>) -> Self {
        let env = std::env::var_os("NPL_DATA").map(PathBuf::from);
        let fixed = [PathBuf::from("data"), PathBuf::from(".")];
        SearchPath(data_dir.map(Path::to_owned).into_iter().chain(env).chain(fixed).collect())
    }

    /// The first place that holds `name`.
    pub fn find(&self, name: &str) -> Result<PathBuf> {
        let path = Path::new(name);
        if path.is_absolute() {
            return if path.exists() { Ok(path.to_owned()) } else { Err(self.not_found(name, &[])) };
        }
        let tried: Vec<PathBuf> = self.0.iter().map(|dir| dir.join(path)).collect();
        match tried.iter().find(|p| p.exists()) {
            Some(found) => Ok(found.clone()),
            None => Err(self.not_found(name, &tried)),
        }
    }

    fn not_found(&self, name: &str, tried: &[PathBuf]) -> Error {
        let mut message = format!("{}: no such file", printable(name));
        if !tried.is_empty() {
            let places: Vec<String> = tried.iter().map(|p| printable(&p.display().to_string())).collect();
            message += &format!(" (looked for {})", places.join(", "));
        }
        let similar = tried.iter().find_map(|path| similar_file(path));
        if let Some(similar) = similar {
            message += &format!("; did you mean {}?", printable(&similar));
        }
        Error::Input(message)
    }
}

/// A file beside `path` with nearly its name.
fn similar_file(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let names: Vec<String> =
        std::fs::read_dir(folder).ok()?.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    let found = nearest(wanted, names.iter().map(String::as_str))?;
    Some(folder.join(found).display().to_string())
}

/// Opens a regular file, through gzip if its first bytes say so.
pub fn open(path: &Path) -> Result<Box<dyn Read>> {
    let shown = printable(&path.display().to_string());
    let fail = |e: std::io::Error| Error::Input(format!("{shown}: {e}"));
    let meta = std::fs::metadata(path).map_err(fail)?;
    if !meta.is_file() {
        return Err(Error::Input(format!("{shown}: not a regular file")));
    }
    if meta.len() == 0 {
        return Err(Error::Input(format!("{shown}: the file is empty")));
    }
    let mut magic = [0u8; 2];
    let read = File::open(path).and_then(|mut f| f.read(&mut magic)).map_err(fail)?;
    let file = BufReader::with_capacity(1 << 20, File::open(path).map_err(fail)?);
    Ok(if read == 2 && magic == [0x1f, 0x8b] { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

/// A file of numbers: all rows of the chosen columns.
pub fn read(path: &Path, format: &Format) -> Result<Dataset> {
    let shown = printable(&path.display().to_string());
    Table::new(open(path)?, shown, format.clone()).read()
}

/// A reader half way through a file.
struct Table<R: Read> {
    reader: ::csv::Reader<std::io::Take<R>>,
    file: String,
    format: Format,
    bad: Vec<String>,
    bad_count: usize,
}

impl<R: Read> Table<R> {
    fn new(input: R, file: String, format: Format) -> Self {
        let reader = ::csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(format.delimiter)
            .trim(::csv::Trim::All)
            .from_reader(input.take(MAX_BYTES + 1));
        Table { reader, file, format, bad: Vec::new(), bad_count: 0 }
    }

    fn read(mut self) -> Result<Dataset> {
        let mut record = ::csv::ByteRecord::new();
        let mut header: Option<Vec<String>> = None;
        let mut keep: Vec<usize> = Vec::new();
        let mut width = 0;
        let mut values: Vec<f64> = Vec::new();
        let mut first = true;
        while let Some(line) = self.next(&mut record)? {
            if first {
                first = false;
                strip_bom(&mut record);
                width = record.len();
                let is_header = self.format.header.unwrap_or_else(|| looks_like_header(&record));
                if is_header {
                    header = Some(self.header(&record)?);
                }
                keep = self.choose(header.as_deref(), width)?;
                if is_header {
                    continue;
                }
            }
            if record.len() != width {
                self.refuse(format!(
                    "{}:{line}: {} cells where {width} are expected",
                    self.file,
                    record.len()
                ));
                continue;
            }
            for &j in &keep {
                match number(&record[j]) {
                    Ok(v) => values.push(v),
                    Err(why) => self.refuse(self.cell(line, header.as_deref(), j, &record[j], why)),
                }
            }
        }
        self.finish(header, keep, values)
    }

    /// Reads a record and says on which line it starts; `None` at the end.
    fn next(&mut self, record: &mut ::csv::ByteRecord) -> Result<Option<u64>> {
        let start = self.reader.position().line();
        let more = self.reader.read_byte_record(record).map_err(|e| self.broken(&e))?;
        if self.reader.position().byte() > MAX_BYTES {
            return Err(Error::Input(format!("{}: more than {} GiB of text", self.file, MAX_BYTES >> 30)));
        }
        if !more {
            return Ok(None);
        }
        // A lone blank line is a missing value to one reader and nothing to another: ask instead of guessing.
        let lines = self.reader.position().line() - start;
        let inside = record.iter().map(|c| c.iter().filter(|&&b| b == b'\n').count() as u64).sum::<u64>();
        if lines > 1 + inside && !self.reader.is_done() {
            self.refuse(format!("{}:{start}: blank line", self.file));
        }
        Ok(Some(self.reader.position().line().saturating_sub(1 + inside).max(start)))
    }

    fn broken(&self, error: &::csv::Error) -> Error {
        Error::Input(format!("{}: {error}", self.file))
    }

    fn refuse(&mut self, message: String) {
        self.bad_count += 1;
        if self.bad.len() < LISTED {
            self.bad.push(message);
        }
    }

    fn cell(&self, line: u64, header: Option<&[String]>, j: usize, cell: &[u8], why: &str) -> String {
        let name = header.map(|h| format!(" \"{}\"", printable(&h[j]))).unwrap_or_default();
        let text = printable(&String::from_utf8_lossy(cell));
        format!("{}:{line}: column{name} ({}): \"{}\" {why}", self.file, j + 1, clip(&text))
    }

    fn header(&self, record: &::csv::ByteRecord) -> Result<Vec<String>> {
        let at = |j: usize, what: String| Error::Input(format!("{}:1: column {}: {what}", self.file, j + 1));
        let mut names: Vec<String> = Vec::new();
        for (j, cell) in record.iter().enumerate() {
            let name = std::str::from_utf8(cell).map_err(|_| at(j, "its name is not valid UTF-8".into()))?;
            if name.is_empty() || name.contains('\0') {
                return Err(at(j, "it has no name".into()));
            }
            if let Some(twin) = names.iter().position(|n| n == name) {
                let message = format!("the name \"{}\" is that of column {} too", printable(name), twin + 1);
                return Err(at(j, message));
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    /// Indices of the columns that are kept.
    fn choose(&self, header: Option<&[String]>, width: usize) -> Result<Vec<usize>> {
        let Some(wanted) = &self.format.columns else { return Ok((0..width).collect()) };
        let keep: Vec<usize> =
            wanted.iter().map(|name| self.find_column(name, header, width)).collect::<Result<_>>()?;
        if keep.is_empty() {
            return Err(Error::Input(format!("{}: no columns are chosen: the list is empty", self.file)));
        }
        match (1..keep.len()).find(|&i| keep[..i].contains(&keep[i])) {
            Some(i) => {
                let name = header.map_or(&wanted[i], |h| &h[keep[i]]);
                Err(Error::Input(format!("{}: column \"{}\" is chosen twice", self.file, printable(name))))
            }
            None => Ok(keep),
        }
    }

    fn find_column(&self, name: &str, header: Option<&[String]>, width: usize) -> Result<usize> {
        if let Some(found) = header.and_then(|h| h.iter().position(|n| n == name)) {
            return Ok(found);
        }
        if let Some(j) = name.parse::<usize>().ok().filter(|j| (1..=width).contains(j)) {
            return Ok(j - 1);
        }
        let mut message = format!("{}: no column \"{}\"", self.file, printable(name));
        match header.map(|h| (h, nearest(name, h.iter().map(String::as_str)))) {
            Some((_, Some(near))) => message += &format!("; did you mean \"{}\"?", printable(near)),
            Some((h, None)) => message += &format!(" among {}", printable(&h.join(", "))),
            None => message += &format!("; it has {width} columns and no header"),
        }
        Err(Error::Input(message))
    }

    fn finish(self, header: Option<Vec<String>>, keep: Vec<usize>, values: Vec<f64>) -> Result<Dataset> {
        if self.bad_count > 0 {
            let mut message = self.bad.join("\n");
            if self.bad_count > self.bad.len() {
                message += &format!("\n{}: {} errors in all", self.file, self.bad_count);
            }
            return Err(Error::Input(message));
        }
        if values.is_empty() {
            return Err(Error::Input(format!("{}: no rows of data", self.file)));
        }
        let names = match header {
            Some(names) => keep.iter().map(|&j| names[j].clone()).collect(),
            None if keep.len() == 1 => vec!["y".to_owned()],
            None => keep.iter().map(|j| format!("x{}", j + 1)).collect(),
        };
        let rows = values.len() / keep.len();
        let x = Array2::from_shape_vec((rows, keep.len()), values).expect("every kept row has every column");
        Ok(Dataset::new(x, None, names))
    }
}

/// Two parts of one data set must have the same columns.
pub fn same_columns(train: &Dataset, test: &Dataset, train_file: &str, test_file: &str) -> Result<()> {
    if train.x.len_of(Axis(1)) != test.x.len_of(Axis(1)) {
        return Err(Error::Input(format!(
            "{} has {} columns and {} has {}",
            printable(train_file),
            train.d(),
            printable(test_file),
            test.d()
        )));
    }
    match train.columns.iter().zip(&test.columns).find(|(a, b)| a != b) {
        Some((a, b)) => Err(Error::Input(format!(
            "column \"{}\" of {} is \"{}\" in {}",
            printable(a),
            printable(train_file),
            printable(b),
            printable(test_file)
        ))),
        None => Ok(()),
    }
}

fn strip_bom(record: &mut ::csv::ByteRecord) {
    if record.get(0).is_some_and(|c| c.starts_with(b"\xef\xbb\xbf")) {
        let cells: Vec<Vec<u8>> = record.iter().map(<[u8]>::to_vec).collect();
        *record = ::csv::ByteRecord::new();
        for (j, cell) in cells.iter().enumerate() {
            let cell = if j == 0 { cell[3..].trim_ascii() } else { &cell[..] };
            record.push_field(cell.strip_prefix(b"\"").and_then(|c| c.strip_suffix(b"\"")).unwrap_or(cell));
        }
    }
}

/// A first line with a cell that no one would take for a number, good or bad.
fn looks_like_header(record: &::csv::ByteRecord) -> bool {
    record.iter().any(|cell| {
        let text = String::from_utf8_lossy(cell);
        !text.is_empty() && text.parse::<f64>().is_err() && !matches!(&*text, "?" | "NA" | "na" | ".")
            || text.contains('\0')
    })
}

/// A finite number. `f64::from_str` also takes `nan`, `inf` and literals that overflow to infinity.
fn number(cell: &[u8]) -> std::result::Result<f64, &'static str> {
    if cell.is_empty() {
        return Err("is a missing value");
    }
    if matches!(cell, b"?" | b"NA" | b"na" | b"." | b"NaN" | b"nan") {
        return Err("marks a missing value");
    }
    let text = std::str::from_utf8(cell).map_err(|_| "is not valid UTF-8")?;
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok(v),
        Ok(_) => Err("is not a finite number"),
        Err(_) => Err("is not a number"),
    }
}

fn clip(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8], format: Format) -> std::result::Result<Dataset, String> {
        Table::new(text, "t.csv".into(), format).read().map_err(|e| e.to_string())
    }

    fn values(text: &[u8]) -> Vec<f64> {
        parse(text, Format::default()).unwrap().x.into_raw_vec_and_offset().0
    }

    fn error(text: &[u8]) -> String {
        parse(text, Format::default()).unwrap_err()
    }

    #[test]
    fn clean_forms_read_alike() {
        let clean = values(b"a,b\n1,2\n3,4\n");
        assert_eq!(clean, [1.0, 2.0, 3.0, 4.0]);
        let forms: [&[u8]; 8] = [
            b"a,b\r\n1,2\r\n3,4\r\n",
            b"a,b\n1,2\n3,4",
            b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
            b"\xef\xbb\xbf\"a\",b\n1,2\n3,4\n",
            b"\"a\",\"b\"\n\"1\",\"2\"\n3,4\n",
            b"a , b\n 1, 2 \n3,4\n",
            b"1,2\n3,4\n",
            b"a,b\n1,2\n3,4\n\n",
        ];
        for form in forms {
            assert_eq!(values(form), clean, "{}", String::from_utf8_lossy(form));
        }
    }

    #[test]
    fn columns_are_chosen_by_name_or_number() {
        let pick = |columns: &[&str]| {
            let columns = Some(columns.iter().map(|c| c.to_string()).collect());
            parse(b"age,income\n1,2\n3,4\n", Format { columns, ..Format::default() })
        };
        assert_eq!(pick(&["income"]).unwrap().x.column(0).to_vec(), [2.0, 4.0]);
        assert_eq!(pick(&["2", "1"]).unwrap().columns, ["income", "age"]);
        assert_eq!(pick(&["incme"]).unwrap_err(), "t.csv: no column \"incme\"; did you mean \"income\"?");
        assert!(pick(&["3"]).unwrap_err().contains("no column \"3\""));
    }

    #[test]
    fn bad_cells_are_named_by_line_and_column() {
        assert_eq!(error(b"a,b\n1,2\n3,abc\n"), "t.csv:3: column \"b\" (2): \"abc\" is not a number");
        assert_eq!(error(b"1,2\n3,\n"), "t.csv:2: column (2): \"\" is a missing value");
        for (cell, why) in [
            ("nan", "marks a missing value"),
            ("?", "marks a missing value"),
            ("inf", "is not a finite number"),
            ("1e400", "is not a finite number"),
            ("0x10", "is not a number"),
            ("1;5", "is not a number"),
        ] {
            assert_eq!(
                error(format!("a\n1\n{cell}\n").as_bytes()),
                format!("t.csv:3: column \"a\" (1): \"{cell}\" {why}")
            );
        }
        assert!(error(b"a\n\xff\n").contains("not valid UTF-8"));
        assert!(!error(b"a\n\x1b]0;x\x07\n").contains('\x1b'));
    }

    #[test]
    fn broken_tables_are_refused() {
        assert!(error(b"a,b\n1,2\n3\n").contains("t.csv:3: 1 cells where 2 are expected"));
        assert!(error(b"a,a\n1,2\n").contains("the name \"a\" is that of column 1 too"));
        assert!(error(b"a,\n1,2\n").contains("it has no name"));
        assert!(error(b"a,b\n").contains("no rows of data"));
        assert!(error(b"a\n1\n\n2\n").contains("t.csv:3: blank line"));
        assert!(error(b"a\n\n\n1\n2\n").contains("blank line"));
        assert!(error(b"a,b\n\"1,2\n3,4\n").contains("t.csv:2"));
        let many = "x\n".repeat(30);
        assert!(error(format!("a\n{many}").as_bytes()).ends_with("30 errors in all"));
    }
}
