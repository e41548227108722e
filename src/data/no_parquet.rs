//! Stands where Parquet would in a build without it: such a file is known, and refused.

use std::convert::Infallible;
use std::path::Path;

use super::table::{Header, Table};
use super::text::Rules;
use crate::config::printable;
use crate::error::{Error, Result};

/// There are none.
pub struct Rows(Infallible);

impl Rows {
    pub fn open(path: &Path) -> Result<Rows> {
        Err(Error::input(format!(
            "{}: reading Parquet needs an npl built with it, by `cargo build --release --features parquet`; or save it as CSV, which \
             `npl convert` makes a column file of",
            printable(&path.display().to_string())
        )))
    }

    pub fn header(&self) -> &Header {
        match self.0 {}
    }

    pub fn only(&mut self, _places: &[usize]) -> Result<()> {
        match self.0 {}
    }

    pub fn next_texts(&mut self) -> Result<Option<(u64, Vec<Vec<u8>>)>> {
        match self.0 {}
    }
}

pub fn read(path: &Path, _file: &str, _rules: &Rules) -> Result<Table> {
    match Rows::open(path)?.0 {}
}
