//! Draws once more, in a file of their own: beside those of a run, or anywhere but in their place.

use std::io::Write;
use std::path::Path;

use super::{AtomicFile, MANIFEST, RESERVED, draw_files, read_manifest};
use crate::config::printable;
use crate::data::files::Input;
use crate::error::{Error, Result};
use crate::samples::{Format, Samples, npy_names};

/// Name of the relabelled copy of a file of draws.
pub fn relabelled(samples: &str, format: Format) -> String {
    let own = Format::ALL.iter().map(|f| f.ending()).filter(|ending| samples.ends_with(ending));
    let stem =
        own.max_by_key(|ending| ending.len()).map_or(samples, |ending| samples.trim_end_matches(ending));
    format!("{stem}.relabelled{}", format.ending())
}

/// All files that relabelled copies of a file of draws may be.
pub(super) fn relabelled_files(samples: &str) -> Vec<String> {
    let copies = Format::ALL.iter().map(|format| relabelled(samples, *format));
    copies.flat_map(|name| draw_files(&name)).collect()
}

/// Refuses to write where a run has one of its results.
fn refuse_result(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut files = draw_files(&name);
    files.push(name);
    let listed = read_manifest(folder).map(|manifest| manifest.outputs).unwrap_or_default();
    let is_result = |name: &String| listed.contains_key(name) || RESERVED.contains(&name.as_str());
    match folder.join(MANIFEST).exists() && files.iter().any(is_result) {
        true => {
            let shown = printable(&path.display().to_string());
            Err(Error::input(format!(
                "{shown} is a result of a run, which is never written over; choose another name"
            )))
        }
        false => Ok(()),
    }
}

/// Refuses to write where a run has one of its results, or over what is read: files that draws of this run were made from, and others.
pub fn refuse_output(path: &Path, run: &Path, read: &[&Path]) -> Result<()> {
    refuse_result(path)?;
    let (Ok(place), Ok(size)) = (path.canonicalize(), std::fs::metadata(path).map(|file| file.len())) else {
        return Ok(());
    };
    let is_there = |other: &Path| other.canonicalize().is_ok_and(|other| other == place);
    // Paths of inputs are those of the folder where the run was made.
    let has_its_bytes =
        |input: &Input| input.bytes == size && Input::of(path).is_ok_and(|own| own.sha256 == input.sha256);
    let inputs = read_manifest(run).map(|manifest| manifest.inputs).unwrap_or_default();
    let of_run = inputs.iter().any(|input| is_there(Path::new(&input.path)) || has_its_bytes(input));
    let what = match of_run {
        true => "is a file that the run was made from",
        false if read.iter().any(|other| is_there(other)) => "is read here",
        false => return Ok(()),
    };
    let shown = printable(&path.display().to_string());
    Err(Error::input(format!("{shown} {what}, and never written over; choose another name")))
}

/// All draws into a file, whose name tells the format; whole or absent, and the names of an array beside it.
pub fn write_draws(samples: &Samples, path: &Path) -> Result<()> {
    let shown = printable(&path.display().to_string());
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let format = Format::of(&name).map_err(|why| Error::input(format!("{shown}: the name {why}")))?;
    refuse_result(path)?;
    let file = samples.copy(AtomicFile::create(path)?, format)?.map_err(|e| Error::write(path, e))?;
    if let Some(names) = format.names_file(&name) {
        let beside = path.with_file_name(names);
        let mut names = AtomicFile::create(&beside)?;
        let grouping = samples.grouping()?;
        let written = npy_names(samples.columns(), grouping.as_ref()).map_err(Into::into);
        written.and_then(|text| names.write_all(text.as_bytes())).map_err(|e| Error::write(&beside, e))?;
        names.commit()?;
    }
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_named_after_the_draws() {
        assert_eq!(relabelled("samples.csv", Format::Csv), "samples.relabelled.csv");
        assert_eq!(relabelled("a.b.csv.gz", Format::CsvGz), "a.b.relabelled.csv.gz");
        assert_eq!(relabelled("a.csv.gz", Format::Npy), "a.relabelled.npy");
        let files = relabelled_files("samples.csv");
        assert!(files.contains(&"samples.relabelled.npy".to_owned()), "{files:?}");
        assert!(files.contains(&"samples.relabelled.columns.json".to_owned()), "{files:?}");
    }

    #[test]
    fn results_are_not_written_over() {
        let folder = crate::tempfile::tempdir().unwrap();
        refuse_result(&folder.path().join("report.csv")).unwrap();
        std::fs::write(folder.path().join(MANIFEST), "{}").unwrap();
        assert!(refuse_result(&folder.path().join("report.csv")).is_err());
        refuse_result(&folder.path().join("other.csv")).unwrap();
    }
}
