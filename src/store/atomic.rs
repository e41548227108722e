//! A file that is whole or absent.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, Output, RealDisk};
use crate::config::printable;
use crate::error::{Error, Result};

/// A file that appears under its name only when it is complete and on disk.
pub struct AtomicFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    pub(super) temporary: PathBuf,
    /// What it is called in messages.
    shown: PathBuf,
    writer: Option<BufWriter<Box<dyn Output>>>,
}

impl AtomicFile {
    /// Refused where there is something that is no file and no link, as a device: it would be replaced by a file.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        let kind = std::fs::symlink_metadata(path).map(|there| there.file_type());
        if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink() && !kind.is_dir()) {
            let shown = printable(&path.display().to_string());
            return Err(Error::input(format!("{shown}: not a regular file; `-` is standard output")));
        }
        AtomicFile::create_on(Arc::new(RealDisk), path, path)
    }

    /// A file at `path` that messages call `shown`.
    pub fn create_on(disk: Arc<dyn Disk>, path: &Path, shown: &Path) -> Result<AtomicFile> {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        // A left-over of a dead process with our number is ours to remove; anything else is not followed.
        let _ = disk.remove(&temporary);
        let file = disk.create(&temporary).map_err(|e| Error::write(shown, e))?;
        let writer = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(AtomicFile { disk, path: path.to_owned(), temporary, shown: shown.to_owned(), writer })
    }

    fn writer(&mut self) -> &mut BufWriter<Box<dyn Output>> {
        self.writer.as_mut().expect("open until it is committed")
    }

    /// What went wrong, by the name that the file has for people.
    pub(super) fn failed(&self, error: io::Error) -> Error {
        Error::write(&self.shown, error)
    }

    /// Writes over the first bytes.
    pub(super) fn mend(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let flushed = self.writer().flush();
        let mended = flushed.and_then(|()| write(&mut self.disk.reopen(&self.temporary)?));
        mended.map_err(|e| self.failed(e))
    }

    /// Writes, naming the file in any error.
    pub fn put(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        write(self.writer()).map_err(|e| self.failed(e))
    }

    /// To disk, but not yet under its name: a full disk shows here, while older results are still untouched.
    pub fn settle(&mut self) -> Result<()> {
        let writer = self.writer();
        let settled = writer.flush().and_then(|()| writer.get_mut().sync());
        settled.map_err(|e| self.failed(e))
    }

    /// To disk, then under its name. The buffer is flushed by hand: dropping it would swallow a full disk.
    pub fn commit(mut self) -> Result<()> {
        let writer = self.writer.take().expect("open until it is committed");
        let finish = || -> io::Result<()> {
            writer.into_inner().map_err(|e| e.into_error())?.sync()?;
            self.disk.rename(&self.temporary, &self.path)?;
            self.disk.sync_folder(folder_of(&self.path))
        };
        finish().map_err(|e| self.failed(e))
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        drop(self.writer.take());
        // Gone already if the file was committed.
        let _ = self.disk.remove(&self.temporary);
    }
}

/// Writes a whole small file.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    write_whole(AtomicFile::create(path)?, text.as_bytes())
}

pub(super) fn write_whole(mut file: AtomicFile, bytes: &[u8]) -> Result<()> {
    file.put(|out| out.write_all(bytes))?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_not_committed_leaves_nothing() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        write_file(&path, "whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_replaced_by_one() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let refused = AtomicFile::create(&path).err().expect("a socket is no file");
        assert!(refused.to_string().contains("not a regular file") && refused.exit_code() == 2, "{refused}");
        assert!(write_file(&path, "whole").is_err() && !path.is_file());
    }

    #[test]
    fn a_full_disk_is_an_error_with_the_name_of_the_file() {
        if !Path::new("/dev/full").exists() {
            return;
        }
        let file: Box<dyn Output> = Box::new(fs::File::options().write(true).open("/dev/full").unwrap());
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.csv");
        let temporary = folder.path().join("t");
        let writer = Some(BufWriter::new(file));
        let (disk, shown) = (Arc::new(RealDisk), path.clone());
        let mut full = AtomicFile { disk, path: path.clone(), temporary, shown, writer };
        full.write_all(b"lost?").unwrap();
        let error = full.commit().unwrap_err();
        assert!(error.to_string().contains("samples.csv"), "{error}");
        assert_eq!(error.exit_code(), 1);
        assert!(!path.exists());
    }
}
