//! Vectors that lie in memory, or, where memory is too small for them, in a file without a name that is mapped into the address
//! space: the system reads and writes its pages as they are needed, and gives the disk back when the vector or the program ends.
//!
//! Mapping is by hand, with `libc`, which is here anyway. The `unsafe` of this file rests on two things: the file loses its name
//! before it is mapped, so that no other process can change or shorten it; and its space is reserved beforehand, so that a full
//! disk is an error here and not a signal on some later write.

#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::RwLock;

use crate::config::printable;

/// Vectors of fewer bytes than this are in memory, wherever others like them are.
const SMALL: usize = 1 << 24;

/// Where vectors are that are not to be in memory.
static FOLDER: RwLock<Option<PathBuf>> = RwLock::new(None);

/// From now on files of vectors are made in this folder.
pub fn use_folder(folder: PathBuf) {
    *FOLDER.write().expect("nothing panics while it is held") = Some(folder);
}

/// The folder for files of vectors: the one that was asked for, or `npl` in the user's cache folder.
pub fn folder() -> Option<PathBuf> {
    let chosen = FOLDER.read().expect("nothing panics while it is held").clone();
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let home = || Some(set("HOME")?.join(".cache"));
    chosen.or_else(|| Some(cache().or_else(home)?.join("npl")))
}

/// That a file for a vector can be made.
pub fn check() -> Result<(), String> {
    let folder = folder().ok_or("there is no home folder to keep files in; --cache says another")?;
    let tried = Mapped::<u64>::new().reserve(1);
    tried.map_err(|e| {
        format!(
            "no file can be made in {} ({e}); --cache says another folder",
            printable(&folder.display().to_string())
        )
    })
}

/// Bytes that are free on the disk of a folder; `None` where the system does not say.
#[cfg(unix)]
pub fn space(folder: &std::path::Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero, and the answer has room for what is written there.
    let done = unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } == 0;
    // SAFETY: the call has filled it.
    let found = done.then(|| unsafe { found.assume_init() })?;
    #[allow(clippy::unnecessary_cast, reason = "the types of these fields differ from system to system")]
    Some((found.f_bavail as u64).saturating_mul(found.f_frsize as u64))
}

#[cfg(not(unix))]
pub fn space(_: &std::path::Path) -> Option<u64> {
    None
}

/// Where a vector is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    #[default]
    Memory,
    File,
}

/// A vector.
pub enum Buffer<T> {
    Memory(Vec<T>),
    File(Mapped<T>),
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Buffer::Memory(Vec::new())
    }
}

impl<T: Copy> Buffer<T> {
    /// An empty one that grows there.
    pub fn new(place: Place) -> Buffer<T> {
        match place {
            Place::Memory => Buffer::default(),
            Place::File => Buffer::File(Mapped::new()),
        }
    }

    pub fn place(&self) -> Place {
        match self {
            Buffer::Memory(_) => Place::Memory,
            Buffer::File(_) => Place::File,
        }
    }

    /// `len` times the same, in memory if that is little or there is no room elsewhere.
    pub fn filled(place: Place, len: usize, with: T) -> Buffer<T> {
        let mut buffer = Buffer::sized(place, len);
        buffer.resize(len, with);
        buffer
    }

    /// An empty one with room for so many, in memory if that is little or there is no room elsewhere.
    pub fn sized(place: Place, len: usize) -> Buffer<T> {
        let little = len.saturating_mul(size_of::<T>()) < SMALL;
        let mut buffer = Buffer::new(if little { Place::Memory } else { place });
        if buffer.try_reserve(len).is_err() {
            buffer = Buffer::Memory(Vec::with_capacity(len));
        }
        buffer
    }

    /// Room for so many more.
    pub fn try_reserve(&mut self, more: usize) -> std::io::Result<()> {
        match self {
            Buffer::Memory(vector) => vector.try_reserve(more).map_err(std::io::Error::other),
            Buffer::File(file) => file.reserve(more),
        }
    }

    /// Moves what there is to a file, where it grows on.
    pub fn move_to_file(&mut self) -> std::io::Result<()> {
        if let Buffer::Memory(vector) = self {
            let mut file = Mapped::new();
            file.reserve(vector.len().max(1))?;
            file.extend(vector);
            *self = Buffer::File(file);
        }
        Ok(())
    }

    /// Room for so many more, in memory where there is none in a file.
    fn reserve(&mut self, more: usize) {
        if let Buffer::File(file) = self
            && file.reserve(more).is_err()
        {
            *self = Buffer::Memory(self.to_vec());
        }
    }

    pub fn push(&mut self, value: T) {
        self.extend_from_slice(&[value]);
    }

    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.reserve(values.len());
        match self {
            Buffer::Memory(vector) => vector.extend_from_slice(values),
            Buffer::File(file) => file.extend(values),
        }
    }

    pub fn resize(&mut self, len: usize, with: T) {
        self.reserve(len.saturating_sub(self.len()));
        match self {
            Buffer::Memory(vector) => vector.resize(len, with),
            Buffer::File(file) => {
                file.len = file.len.min(len);
                while file.len < len {
                    file.extend(&[with; 64][..(len - file.len).min(64)]);
                }
            }
        }
    }

    pub fn truncate(&mut self, len: usize) {
        match self {
            Buffer::Memory(vector) => vector.truncate(len),
            Buffer::File(file) => file.len = file.len.min(len),
        }
    }

    pub fn shrink_to_fit(&mut self) {
        if let Buffer::Memory(vector) = self {
            vector.shrink_to_fit();
        }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Buffer::Memory(vector) => vector,
            Buffer::File(file) => file.all(),
        }
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Buffer::Memory(vector) => vector,
            Buffer::File(file) => file.all_mut(),
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(vector: Vec<T>) -> Self {
        Buffer::Memory(vector)
    }
}

impl<T> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Buffer::Memory(values.into_iter().collect())
    }
}

impl<T: Copy> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        let mut copy = Buffer::sized(self.place(), self.len());
        copy.extend_from_slice(self);
        copy
    }
}

impl<T: fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq, A: AsRef<[T]>> PartialEq<A> for Buffer<T> {
    fn eq(&self, other: &A) -> bool {
        **self == *other.as_ref()
    }
}

impl<T> AsRef<[T]> for Buffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

/// A vector in a mapped file.
pub struct Mapped<T> {
    pages: Option<pages::Pages>,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T> Mapped<T> {
    fn new() -> Mapped<T> {
        Mapped { pages: None, len: 0, of: std::marker::PhantomData }
    }

    fn all(&self) -> &[T] {
        match &self.pages {
            // SAFETY: `len` values of T have been written from the beginning on, which is that of a page, and no reference that
            // could change them lives.
            Some(pages) => unsafe { std::slice::from_raw_parts(pages.start().cast(), self.len) },
            None => &[],
        }
    }

    fn all_mut(&mut self) -> &mut [T] {
        match &mut self.pages {
            // SAFETY: as above, and `self` is borrowed for as long as the reference lives.
            Some(pages) => unsafe { std::slice::from_raw_parts_mut(pages.start().cast(), self.len) },
            None => &mut [],
        }
    }
}

impl<T: Copy> Mapped<T> {
    fn capacity(&self) -> usize {
        self.pages.as_ref().map_or(0, |pages| pages.bytes() / size_of::<T>())
    }

    fn reserve(&mut self, more: usize) -> std::io::Result<()> {
        assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0, "pages are aligned for it");
        let needed = self.len.checked_add(more).and_then(|len| len.checked_mul(size_of::<T>()));
        let needed = needed.ok_or_else(|| std::io::Error::other("a vector of that size fits nowhere"))?;
        if needed > self.capacity() * size_of::<T>() {
            match &mut self.pages {
                // Half as much again, so that a vector that grows is mapped anew a few times only.
                Some(pages) => pages.grow((needed / 2 * 3).next_multiple_of(1 << 16))?,
                None => self.pages = Some(pages::Pages::new(needed.next_multiple_of(1 << 16))?),
            }
        }
        Ok(())
    }

    fn extend(&mut self, values: &[T]) {
        let before = self.len;
        assert!(before + values.len() <= self.capacity(), "there is room");
        if let Some(pages) = &self.pages {
            // SAFETY: the pages have room for so many values after the first `before`, and `values` is not among them.
            unsafe {
                let to = pages.start().cast::<T>().add(before);
                std::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len());
            }
        }
        self.len += values.len();
    }
}

#[cfg(unix)]
mod pages {
    use std::fs::File;
    use std::io::{Error, Result};
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicU64, Ordering};

    static COUNT: AtomicU64 = AtomicU64::new(0);

    /// Pages of a file without a name.
    pub struct Pages {
        file: File,
        start: *mut libc::c_void,
        bytes: usize,
    }

    // SAFETY: the pages belong to one value, which hands them out as Rust's borrowing has it.
    unsafe impl Send for Pages {}
    // SAFETY: as above.
    unsafe impl Sync for Pages {}

    impl Pages {
        pub fn new(bytes: usize) -> Result<Pages> {
            let file = nameless()?;
            reserve(&file, bytes)?;
            let start = map(&file, bytes)?;
            Ok(Pages { file, start, bytes })
        }

        pub fn start(&self) -> *mut libc::c_void {
            self.start
        }

        pub fn bytes(&self) -> usize {
            self.bytes
        }

        pub fn grow(&mut self, bytes: usize) -> Result<()> {
            reserve(&self.file, bytes)?;
            let start = map(&self.file, bytes)?;
            self.unmap();
            (self.start, self.bytes) = (start, bytes);
            Ok(())
        }

        fn unmap(&mut self) {
            // SAFETY: these are the pages that were mapped, and nothing points at them: `grow` and `drop` have them to themselves.
            unsafe { libc::munmap(self.start, self.bytes) };
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            self.unmap();
        }
    }

    /// A new file that has lost its name.
    fn nameless() -> Result<File> {
        let folder = super::folder().ok_or_else(|| Error::other("there is no folder for it"))?;
        std::fs::create_dir_all(&folder)?;
        let name = format!(".npl-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(name);
        // What a dead process with our number has left.
        let _ = std::fs::remove_file(&path);
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }

    /// Space on the disk for so many bytes.
    fn reserve(file: &File, bytes: usize) -> Result<()> {
        let bytes = libc::off_t::try_from(bytes).map_err(Error::other)?;
        loop {
            // SAFETY: the file is open.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
                0 => return Ok(()),
                libc::EINTR => {}
                code => return Err(Error::from_raw_os_error(code)),
            }
        }
    }

    fn map(file: &File, bytes: usize) -> Result<*mut libc::c_void> {
        let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of an open file, wherever there is room for it.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, read_write, shared, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(start) }
    }
}

/// Elsewhere there are no such files: everything is in memory.
#[cfg(not(unix))]
mod pages {
    use std::ffi::c_void;
    use std::io::{Error, Result};

    pub enum Pages {}

    impl Pages {
        pub fn new(_: usize) -> Result<Pages> {
            Err(Error::other("files are not mapped on this system"))
        }

        pub fn start(&self) -> *mut c_void {
            match *self {}
        }

        pub fn bytes(&self) -> usize {
            match *self {}
        }

        pub fn grow(&mut self, _: usize) -> Result<()> {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_in_a_file_is_like_one_in_memory() {
        let folder = crate::tempfile::tempdir().unwrap();
        use_folder(folder.path().to_owned());
        let (mut file, mut memory) = (Buffer::new(Place::File), Buffer::new(Place::Memory));
        for buffer in [&mut file, &mut memory] {
            (0..200_000).for_each(|i| buffer.push(f64::from(i)));
            buffer.extend_from_slice(&[1.5; 7]);
            buffer.truncate(150_001);
            buffer.resize(150_010, 2.5);
            buffer.resize(150_005, 0.0);
            buffer[3] = -1.0;
            buffer.copy_within(0..10, 100);
        }
        assert_eq!((file.place(), memory.place()), (Place::File, Place::Memory));
        assert_eq!(file, memory);
        assert_eq!(file.len(), 150_005);
        let mut moved = memory.clone();
        moved.move_to_file().unwrap();
        assert_eq!((moved.place(), &moved[..]), (Place::File, &memory[..]));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files have no names");
        assert_eq!(Buffer::filled(Place::File, 10, 1.0).place(), Place::Memory, "little is in memory");
        assert_eq!(Buffer::filled(Place::File, SMALL, 1u8).place(), Place::File);
    }
}
