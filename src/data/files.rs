//! Finding and opening data files.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::columns::MAGIC;
use super::sealed::hex;
use crate::config::{nearest, printable};
use crate::error::{Error, Result, plainly};

/// A compressed file is read up to so many bytes, or so many for each of its own, whichever is more: a small gzip file can hold terabytes
/// of zeros.
const MAX_BYTES: u64 = 8 << 30;
const MAX_RATIO: u64 = 100;

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

/// A regular file and the hash of what has been read of it: data and their fingerprint come from one reading.
pub struct InputFile {
    file: Hashed,
    /// The most that it may become, if it is compressed.
    limit: Option<u64>,
    kind: Kind,
}

/// What the first bytes of a file say that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Columns,
    Parquet,
    /// Text, or something else that is known by its name.
    Other,
}

/// What Parquet files begin and end with.
const PARQUET: &[u8] = b"PAR1";
/// What their names end with.
pub const PARQUET_ENDING: &str = ".parquet";

/// What identifies the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub bytes: u64,
    pub sha256: String,
}

impl InputFile {
    pub fn open(path: &Path) -> Result<InputFile> {
        let shown = printable(&path.display().to_string());
        let fail = |e: io::Error| Error::Input(format!("{shown}: {}", plainly(&e)));
        let meta = std::fs::metadata(path).map_err(fail)?;
        if !meta.is_file() {
            return Err(Error::Input(format!("{shown}: not a regular file")));
        }
        if meta.len() == 0 {
            return Err(Error::Input(format!("{shown}: the file is empty")));
        }
        let (mut magic, mut end) = (Vec::new(), Vec::new());
        let mut ends = File::open(path).map_err(fail)?;
        (&mut ends).take(8).read_to_end(&mut magic).map_err(fail)?;
        ends.seek(SeekFrom::Start(meta.len().saturating_sub(4))).map_err(fail)?;
        ends.take(4).read_to_end(&mut end).map_err(fail)?;
        let kind = match &magic[..] {
            magic if magic == MAGIC => Kind::Columns,
            // A text may have a first column of that name.
            magic if magic.starts_with(PARQUET) && end == PARQUET => Kind::Parquet,
            _ => Kind::Other,
        };
        let file = Hashed::open(path).map_err(fail)?;
        let gzip = magic.starts_with(&[0x1f, 0x8b]);
        let limit = gzip.then(|| MAX_BYTES.max(meta.len().saturating_mul(MAX_RATIO)));
        Ok(InputFile { file, limit, kind })
    }

    /// It begins as gzip does.
    pub fn is_compressed(&self) -> bool {
        self.limit.is_some()
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The content, through gzip if the first bytes say so.
    pub fn content(&mut self) -> impl Read {
        decoded(&mut self.file, self.limit)
    }

    /// Of all bytes, those that were not asked for too.
    pub fn fingerprint(self) -> io::Result<Fingerprint> {
        self.file.finish()
    }
}

/// The fingerprint of a file that is read by someone else.
pub fn fingerprint(path: &Path) -> io::Result<Fingerprint> {
    Hashed::open(path)?.finish()
}

/// The content of a regular file whose fingerprint is of no interest.
pub fn open(path: &Path) -> Result<Box<dyn Read>> {
    let InputFile { file, limit, .. } = InputFile::open(path)?;
    Ok(Box::new(decoded(file.file, limit)))
}

/// Through gzip, where there is a limit to what that may become.
fn decoded<'a>(file: impl Read + 'a, limit: Option<u64>) -> Box<dyn Read + 'a> {
    let file = BufReader::with_capacity(1 << 16, file);
    match limit {
        Some(left) => Box::new(Limited { inner: Box::new(MultiGzDecoder::new(file)), left, limit: left }),
        None => Box::new(file),
    }
}

/// Hashes what passes.
struct Hashed {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Hashed {
    fn open(path: &Path) -> io::Result<Hashed> {
        Ok(Hashed { file: File::open(path)?, hash: Sha256::new(), bytes: 0 })
    }

    fn finish(mut self) -> io::Result<Fingerprint> {
        let mut rest = vec![0; 1 << 16];
        while self.read(&mut rest)? > 0 {}
        let sha256 = hex(&self.hash.finalize());
        Ok(Fingerprint { bytes: self.bytes, sha256 })
    }
}

impl Read for Hashed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.hash.update(&out[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Ends with an error, not quietly, where the limit is.
struct Limited<'a> {
    inner: Box<dyn Read + 'a>,
    left: u64,
    limit: u64,
}

impl Read for Limited<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => {
                let limit = self.limit >> 30;
                return Err(io::Error::other(format!("more than {limit} GiB of data in a small gzip file")));
            }
        }
        Ok(read)
    }
}

/// A file that went into the study.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Input {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

impl Input {
    pub fn new(path: &Path, fingerprint: Fingerprint) -> Input {
        let Fingerprint { bytes, sha256 } = fingerprint;
        Input { path: path.display().to_string(), bytes, sha256 }
    }

    /// A file that is read by someone else.
    pub fn of(path: &Path) -> Result<Input> {
        let fail = |e: std::io::Error| {
            Error::input(format!("{}: {}", printable(&path.display().to_string()), plainly(&e)))
        };
        Ok(Input::new(path, fingerprint(path).map_err(fail)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_compressed_or_not() {
        let (first, second) = (crate::tempfile::tempdir().unwrap(), crate::tempfile::tempdir().unwrap());
        let search = SearchPath(vec![first.path().to_owned(), second.path().to_owned()]);
        let write =
            |folder: &crate::tempfile::TempDir, name: &str| std::fs::write(folder.path().join(name), "x");
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
    fn a_fingerprint_is_of_the_whole_file_however_much_was_read() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        for read in 0..=3 {
            let mut source = InputFile::open(&path).unwrap();
            source.content().read_exact(&mut vec![0; read]).unwrap();
            let found = source.fingerprint().unwrap();
            // FIPS 180-2, appendix B.1.
            let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
            assert_eq!((found.bytes, found.sha256.as_str()), (3, expected), "after {read} bytes");
        }
    }

    #[test]
    fn too_much_data_is_an_error_not_an_end() {
        let mut limited = Limited { inner: Box::new(io::repeat(0)), left: 10, limit: 10 };
        assert!(limited.read(&mut [0; 8]).is_ok());
        assert!(limited.read(&mut [0; 8]).is_err());
    }
}
