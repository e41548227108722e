//! Folders and files that go with the value that holds them. No crate: the one there is asks for features of crates that
//! the program is made of, so that `cargo test` would compile these, and the whole library, once more.
#![allow(dead_code)]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct TempDir(PathBuf);

/// A new folder. Another process, or one that died, may have left one of the same name: then the next.
pub fn tempdir() -> io::Result<TempDir> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static SWEEP: Once = Once::new();
    SWEEP.call_once(sweep);
    loop {
        let name = format!("npl-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| TempDir(path)),
        }
    }
}

/// Removes the folders of processes that were killed.
fn sweep() {
    let processes = Path::new("/proc");
    let dead = |name: &str| {
        let id = name.strip_prefix("npl-").and_then(|rest| rest.split_once('-')).map(|(id, _)| id);
        id.is_some_and(|id| id.parse::<u32>().is_ok() && !processes.join(id).exists())
    };
    if !processes.join("self").exists() {
        return;
    }
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(dead) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl TempDir {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file in a folder of its own.
pub struct NamedTempFile {
    path: PathBuf,
    file: File,
    _folder: TempDir,
}

impl NamedTempFile {
    pub fn new() -> io::Result<NamedTempFile> {
        let folder = tempdir()?;
        let path = folder.path().join("file");
        Ok(NamedTempFile { file: File::create(&path)?, path, _folder: folder })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Write for NamedTempFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
