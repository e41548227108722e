//! `npl plot` of a program that was built without it.

use anyhow::Result;
use npl::error::Error;

use crate::cli::PlotArgs;

pub fn plot(_: PlotArgs) -> Result<()> {
    let message = "this npl was built without pictures: build it with --features plot (a default feature)";
    Err(Error::input(message).into())
}
