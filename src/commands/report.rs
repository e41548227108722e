//! `npl report`: runs as one page of HTML.

use std::path::Path;

use anyhow::Result;
use npl::config::printable;
use npl::data::files::SearchPath;
use npl::error::Error;
use npl::page::{self, Wanted};
use npl::store;

use super::plot::{Told, sources};
use super::{note, print, reading};
use crate::cli::ReportArgs;

pub fn report(args: ReportArgs) -> Result<()> {
    reading(&args.reading);
    let out = args.out.clone().unwrap_or_else(|| args.runs[0].join(store::PAGE));
    let to_terminal = out == Path::new("-");
    let shown = printable(&out.display().to_string());
    let ending = out.extension().map(|e| e.to_string_lossy().to_lowercase());
    if !to_terminal && !matches!(ending.as_deref(), Some("html" | "htm")) {
        let message = format!("--out {shown}: a page ends in .html; `-` is standard output");
        return Err(Error::input(message).into());
    }
    let search = SearchPath::new(args.data_dir.as_deref());
    let runs = sources(&args.runs, &args.label, &args.group, Told::default(), &search)?;
    let wanted = Wanted { title: args.title, repeat: args.repeat, setting: args.setting };
    let page = page::page(runs, &wanted)?;
    if to_terminal {
        return print(page.as_bytes());
    }
    store::write_file(&out, &page)?;
    note(&format!("{shown}: {}", super::text::bytes(page.len() as f64)));
    Ok(())
}
