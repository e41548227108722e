//! Draws on their way into the run directory.

use std::io::Write;
use std::path::PathBuf;

use super::{AtomicFile, RunDir};
use crate::error::{Error, Result};
use crate::samples::{self, Format, Grouping, Kinship, Sample, Samples, Summary, Writer};

/// Of every group, by its name; of one without a name where there are none.
type Summaries = Vec<(Option<String>, Vec<Summary>)>;

/// Where draws are kept as numbers while they are written as something else.
const SPOOL: &str = "spool.npy";

/// The file of draws of a run, not yet under its name. Draws are also kept as an array, in a file that goes with this
/// value: summaries need them by column, and a text would have to be parsed for that.
pub struct DrawFile {
    columns: Vec<String>,
    grouping: Option<Grouping>,
    samples: Target,
    names: Option<AtomicFile>,
    spool: Option<Target>,
    kinship: Kinship,
    announced: usize,
    written: usize,
}

struct Target {
    path: PathBuf,
    format: Format,
    writer: Writer<AtomicFile>,
}

impl Target {
    fn create(
        folder: &RunDir,
        name: &str,
        format: Format,
        columns: &[String],
        rows: usize,
        grouping: &Option<Grouping>,
    ) -> Result<Target> {
        let (path, file) = (folder.file(name), folder.create(name)?);
        let writer =
            Writer::new(file, format, columns, rows, grouping.clone()).map_err(|e| Error::write(&path, e))?;
        Ok(Target { path, format, writer })
    }

    fn put(&mut self, round: usize, draw: &Sample) -> Result<()> {
        self.writer.put(round, draw).map_err(|e| Error::write(&self.path, e))
    }

    /// After the last row. An array begins with its number of rows, which may have turned out another than announced.
    fn finish(self, rows: Option<(usize, usize)>) -> Result<AtomicFile> {
        let failed = |e| Error::write(&self.path, e);
        let mut file = self.writer.finish().map_err(failed)?;
        if let (Format::Npy, Some((rows, columns))) = (self.format, rows) {
            file.mend(|start| samples::npy_header(start, rows, columns))?;
        }
        Ok(file)
    }
}

impl DrawFile {
    /// For so many draws, more or less, with these columns, and that of the groups if there are any. The format is the ending of
    /// `name`.
    pub fn create(
        folder: &RunDir,
        name: &str,
        columns: Vec<String>,
        grouping: Option<Grouping>,
        kinship: Kinship,
        rows: usize,
    ) -> Result<DrawFile> {
        let format = Format::of(name).map_err(|why| Error::input(format!("{name}: the name {why}")))?;
        let samples = Target::create(folder, name, format, &columns, rows, &grouping)?;
        let names = match format.names_file(name) {
            Some(names) => {
                let path = folder.file(&names);
                let mut file = folder.create(&names)?;
                let written = samples::npy_names(&columns, grouping.as_ref()).map_err(Into::into);
                written
                    .and_then(|text| file.write_all(text.as_bytes()))
                    .map_err(|e| Error::write(&path, e))?;
                Some(file)
            }
            None => None,
        };
        let spool = match format {
            Format::Npy => None,
            _ => Some(Target::create(folder, SPOOL, Format::Npy, &columns, rows, &grouping)?),
        };
        Ok(DrawFile { columns, grouping, samples, names, spool, kinship, announced: rows, written: 0 })
    }

    /// Adds a draw; rounds are counted from 1.
    pub fn put(&mut self, round: usize, draw: &Sample) -> Result<()> {
        self.written += 1;
        self.samples.put(round, draw)?;
        self.spool.as_mut().map_or(Ok(()), |spool| spool.put(round, draw))
    }

    /// To disk, but not yet under its name; and a summary of every parameter, of every group.
    pub fn settle(self) -> Result<(SettledDraws, Summaries)> {
        let width = self.columns.len() + usize::from(self.grouping.is_some());
        let rows = (self.written != self.announced).then_some((self.written, width));
        let mut file = self.samples.finish(rows)?;
        file.settle()?;
        let mut spool = self.spool.map(|spool| spool.finish(rows)).transpose()?;
        let array = spool.as_mut().unwrap_or(&mut file);
        array.flush().map_err(|e| array.failed(e))?;
        let samples = Samples::array(&array.temporary, self.columns, self.grouping.as_ref())?;
        let summaries = samples.summarise_groups(self.kinship)?;
        Ok((SettledDraws { samples: file, names: self.names }, summaries))
    }
}

/// Draws that only need their name.
pub struct SettledDraws {
    samples: AtomicFile,
    names: Option<AtomicFile>,
}

impl SettledDraws {
    pub fn commit(self) -> Result<()> {
        self.names.map_or(Ok(()), AtomicFile::commit)?;
        self.samples.commit()
    }
}
