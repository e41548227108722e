//! `npl convert`: text, or Parquet, into a column file.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::Result;
use npl::config::printable;
use npl::data::columns::{self, Conversion, ENDING};
use npl::data::files::{InputFile, Kind, PARQUET_ENDING, fingerprint};
use npl::data::memory::bytes;
use npl::data::parquet;
use npl::data::text::Syntax;
use npl::error::Error;
use npl::store::{AtomicFile, refuse_output};

use super::print;
use super::stop::{Leaves, Minder};
use crate::cli::ConvertArgs;

pub fn convert(args: ConvertArgs) -> Result<()> {
    let minder = Minder::new(Leaves::default(), None)?;
    let cancel = minder.cancel.clone();
    let out = args.out.clone().unwrap_or_else(|| beside(&args.data));
    let (shown, from) = (shown(&out), shown(&args.data));
    let settings = conversion(&args)?;
    if out.exists() && !args.force {
        return Err(Error::input(format!(
            "{shown} exists; choose another --out, or replace it with --force"
        ))
        .into());
    }
    refuse_output(&out, out.parent().unwrap_or(Path::new("")), &[&args.data])?;
    let mut input = InputFile::open(&args.data)?;
    let kind = input.kind();
    if kind == Kind::Columns {
        return Err(Error::input(format!("{from} is a column file already")).into());
    }
    if kind == Kind::Parquet {
        refuse_flags_of_text(&args)?;
    }
    let mut file = AtomicFile::create(&out)?;
    let mut put = |bytes: &[u8]| match cancel.load(Ordering::Relaxed) {
        true => Err(Error::Interrupted),
        false => file.put(|out| out.write_all(bytes)),
    };
    let name = args.data.display().to_string();
    let converted = match kind {
        Kind::Parquet => {
            columns::convert_parquet(parquet::Rows::open(&args.data)?, &name, &settings, &mut put)
        }
        _ => columns::convert(input.content(), &name, &settings, &mut put),
    };
    let converted = converted.map_err(|error| minder.explain(error))?;
    file.commit()?;
    let written = fingerprint(&out).map_err(|e| Error::input(format!("{shown}: {e}")))?;
    let columns::Converted { rows, columns, numbers } = converted;
    let kept = match numbers {
        0 => "how every cell is written is kept".to_owned(),
        _ => format!("of {numbers} columns of many numbers these are kept, and not how they are written"),
    };
    print(
        format!(
            "written to {shown}: {rows} rows x {columns} columns, {}, sha256 {}…; {kept}\n",
            bytes(written.bytes as f64),
            &written.sha256[..12]
        )
        .as_bytes(),
    )
}

fn shown(path: &Path) -> String {
    printable(&path.display().to_string())
}

/// Where the file goes if nobody says: beside the text, by its name.
fn beside(data: &Path) -> PathBuf {
    let name = data.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = [".csv", ".tsv", ".txt", ".dat", ".data", PARQUET_ENDING]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    data.with_file_name(format!("{}{ENDING}", stem.unwrap_or(name)))
}

/// What says how text is written is of no use where there is none.
fn refuse_flags_of_text(args: &ConvertArgs) -> Result<()> {
    let flags = [
        ("--delimiter", args.delimiter.is_some()),
        ("--whitespace", args.whitespace),
        ("--header", args.header.is_some()),
        ("--skip-lines", args.skip_lines > 0),
        ("--comment", args.comment.is_some()),
        ("--decimal", args.decimal == ","),
    ];
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            let message =
                format!("{flag} says how text is read, and {} is a Parquet file", shown(&args.data));
            Err(Error::input(message).into())
        }
        None => Ok(()),
    }
}

fn conversion(args: &ConvertArgs) -> Result<Conversion> {
    let byte = |flag: &str, text: &Option<String>| -> Result<Option<u8>> {
        let Some(text) = text else { return Ok(None) };
        let one =
            <[u8; 1]>::try_from(text.as_bytes()).ok().filter(|[b]| b.is_ascii() && !b"\"\r\n".contains(b));
        let wrong = || Error::input(format!("--{flag} must be one ASCII character"));
        Ok(Some(one.ok_or_else(wrong)?[0]))
    };
    let (delimiter, comment) = (byte("delimiter", &args.delimiter)?, byte("comment", &args.comment)?);
    let comma = args.decimal == ",";
    if comma && !args.whitespace && delimiter.is_none_or(|d| d == b',') {
        let message = "--decimal is a comma, and so is what separates cells: give --delimiter, ';' for one";
        return Err(Error::input(message).into());
    }
    let delimited = Syntax::Delimited(delimiter.unwrap_or(b','));
    Ok(Conversion {
        syntax: if args.whitespace { Syntax::Whitespace } else { delimited },
        header: args.header,
        skip_lines: args.skip_lines,
        comment,
        comma,
        texts: args.text.clone(),
        ..Conversion::default()
    })
}
