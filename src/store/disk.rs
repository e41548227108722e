//! What a run does to files, so that faults can be put in its way.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A file that is being written.
pub trait Output: Write + Send {
    /// To disk: what is there afterwards survives a loss of power.
    fn sync(&mut self) -> io::Result<()>;
}

/// A hold on a folder.
pub enum Lock {
    /// It lasts as long as this value; the operating system lets go of it if we die.
    Held(Hold),
    /// Another process has it.
    Taken,
}

/// A file that is locked. It is unlocked in so many words: a process that was forked meanwhile has the file open too, until it becomes
/// another program, and the lock would outlast our closing of it by as long.
pub struct Hold(File);

impl Drop for Hold {
    fn drop(&mut self) {
        // A file system without locks has none to give back.
        let _ = self.0.unlock();
    }
}

/// Everything that changes files, and what is read back of them.
pub trait Disk: Send + Sync {
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// A new file: what is there is not followed and not replaced.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;

    /// A file that is there, to be written over from its first byte.
    fn reopen(&self, path: &Path) -> io::Result<Box<dyn Output>>;

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// The names in a folder to disk: a file that was renamed stays so after a loss of power.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// A folder without content.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// The file is made if need be, and never removed: whoever removed it would let two others hold two files of this name.
    fn lock(&self, path: &Path) -> io::Result<Lock>;
}

/// The disk of this machine.
pub struct RealDisk;

impl Output for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for RealDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(path)?))
    }

    fn reopen(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(OpenOptions::new().write(true).open(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        // Only Unix opens folders.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let irregular = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file; remove it");
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(irregular());
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        // What was put there since is neither followed nor waited for.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(irregular());
        }
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(Lock::Taken),
            // A file system without locks: nothing to hold.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Lock::Held(Hold(file))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As one that is forked before the hold ends, and is slow to become another program.
    #[test]
    fn a_hold_ends_though_another_process_has_the_file_open() {
        let folder = crate::tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        for _ in 0..3 {
            let Ok(Lock::Held(hold)) = RealDisk.lock(&path) else { panic!("nobody has it") };
            let forked = hold.0.try_clone().unwrap();
            assert!(matches!(RealDisk.lock(&path), Ok(Lock::Taken)));
            drop(hold);
            assert!(matches!(RealDisk.lock(&path), Ok(Lock::Held(_))));
            drop(forked);
        }
    }
}
