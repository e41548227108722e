//! Finding and opening data files.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::config::{nearest, printable};
use crate::error::{Error, Result};

/// At most this many bytes are read from one file, counted after decompression: a small gzip file can hold
/// terabytes of zeros.
const MAX_BYTES: u64 = 8 << 30;

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

    /// The first place that holds `name`, or its twin: `x.gz` where `x` is named, and the other way round.
    pub fn find(&self, name: &str) -> Result<PathBuf> {
        let path = Path::new(name);
        let twin = match name.strip_suffix(".gz") {
            Some(plain) => plain.to_owned(),
            None => format!("{name}.gz"),
        };
        let place = |folder: &Path| {
            [folder.join(path), folder.join(&twin)].into_iter().find(|candidate| candidate.exists())
        };
        if path.is_absolute() {
            return place(Path::new("")).ok_or_else(|| self.not_found(name, &[]));
        }
        self.0.iter().find_map(|folder| place(folder)).ok_or_else(|| {
            let tried: Vec<PathBuf> = self.0.iter().map(|folder| folder.join(path)).collect();
            self.not_found(name, &tried)
        })
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
    let gzip = read == 2 && magic == [0x1f, 0x8b];
    let inner: Box<dyn Read> = if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(Box::new(Limited { inner, left: MAX_BYTES }))
}

/// Ends with an error, not quietly, where the limit is.
struct Limited {
    inner: Box<dyn Read>,
    left: u64,
}

impl Read for Limited {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other(format!("more than {} GiB of data", MAX_BYTES >> 30))),
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_compressed_or_not() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let search = SearchPath(vec![first.path().to_owned(), second.path().to_owned()]);
        let write = |folder: &tempfile::TempDir, name: &str| std::fs::write(folder.path().join(name), "x");
        write(&second, "a.csv").unwrap();
        assert_eq!(search.find("a.csv.gz").unwrap(), second.path().join("a.csv"));
        write(&second, "a.csv.gz").unwrap();
        assert_eq!(search.find("a.csv.gz").unwrap(), second.path().join("a.csv.gz"));
        write(&first, "a.csv.gz").unwrap();
        assert_eq!(
            search.find("a.csv").unwrap(),
            first.path().join("a.csv.gz"),
            "folders come in their order"
        );
        let absolute = second.path().join("a.csv.gz.gz").display().to_string();
        assert_eq!(search.find(&absolute).unwrap(), second.path().join("a.csv.gz"));
        let error = search.find("b.csv").unwrap_err().to_string();
        assert!(error.contains("b.csv: no such file") && !error.contains(".gz"), "{error}");
    }

    #[test]
    fn too_much_data_is_an_error_not_an_end() {
        let mut limited = Limited { inner: Box::new(io::repeat(0)), left: 10 };
        assert!(limited.read(&mut [0; 8]).is_ok());
        assert!(limited.read(&mut [0; 8]).is_err());
    }
}
