//! `npl report` of a program that was built without pictures.

use anyhow::Result;
use npl::error::Error;

use crate::cli::ReportArgs;

pub fn report(_: ReportArgs) -> Result<()> {
    let message = "this npl was built without pictures, which pages have: build it with --features plot (a default feature)";
    Err(Error::input(message).into())
}
