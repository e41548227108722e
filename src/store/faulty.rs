//! A disk that fails when it is told to.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Disk, Lock, Output, RealDisk};

/// Which of the calls fail.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The k-th, counted from 1, and no other.
    Once(usize),
    /// The k-th and all after it.
    From(usize),
    None,
}

/// Counts calls, those to its files too.
#[derive(Clone)]
pub struct FaultyDisk {
    fault: Fault,
    calls: Arc<AtomicUsize>,
}

impl FaultyDisk {
    pub fn new(fault: Fault) -> FaultyDisk {
        FaultyDisk { fault, calls: Arc::default() }
    }

    /// Calls so far.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    fn call(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let fails = match self.fault {
            Fault::Once(k) => call == k,
            Fault::From(k) => call >= k,
            Fault::None => false,
        };
        if fails { Err(io::Error::other("a fault that was asked for")) } else { Ok(()) }
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    inner: Box<dyn Output>,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.call()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.disk.call()?;
        self.inner.flush()
    }
}

impl Output for FaultyFile {
    /// No power is lost here: the call counts, and costs nothing.
    fn sync(&mut self) -> io::Result<()> {
        self.disk.call()
    }
}

impl Disk for FaultyDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.create_folder(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        self.call()?;
        Ok(Box::new(FaultyFile { disk: self.clone(), inner: RealDisk.create(path)? }))
    }

    fn reopen(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        self.call()?;
        Ok(Box::new(FaultyFile { disk: self.clone(), inner: RealDisk.reopen(path)? }))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.call()?;
        RealDisk.read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        path.read_dir().map(drop)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.remove(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.remove_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.call()?;
        RealDisk.list(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.call()?;
        RealDisk.lock(path)
    }
}
