//! Stands where Parquet would in a build without it: its name is known, and refused.

use std::convert::Infallible;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::Path;

use super::format::Opened;
use super::wrong;
use crate::error::Result;

pub const ENDING: &str = ".parquet";
const WHY: &str = "needs an npl built with Parquet: `cargo build --release --features parquet`";
pub const MISSING: Option<&str> = Some(WHY);
pub const NAMES: Option<&str> = None;

pub fn size(rows: usize, columns: usize) -> f64 {
    8.0 * rows as f64 * columns as f64
}

/// There is none.
pub struct Encoder<W>(Infallible, PhantomData<W>);

impl<W: Write> Encoder<W> {
    pub fn new(_out: W, _columns: &[String], _rows: usize, _levels: &[String]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn put(&mut self, _statistics: &[f64], _theta: &[f64]) -> io::Result<()> {
        match self.0 {}
    }

    pub fn finish(self) -> io::Result<W> {
        match self.0 {}
    }

    pub fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

pub fn open(path: &Path) -> Result<Opened> {
    Err(wrong(path, WHY))
}
