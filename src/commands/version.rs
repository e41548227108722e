//! `npl --version`, and what the program is made of and would use here.

use anyhow::Result;
use npl::kernel::{Level, available};

use super::{pin, print, threads};
use crate::cli::VersionArgs;

pub fn version(args: &VersionArgs) -> Result<()> {
    pin(&args.machine)?;
    let mut out = format!("npl {}\n", env!("CARGO_PKG_VERSION"));
    if args.verbose {
        let why = if args.machine.simd.is_some() { "--simd" } else { "the best this CPU has" };
        let levels: Vec<&str> = available().map(Level::name).collect();
        let (count, source) = threads(&args.machine);
        let features = [
            ("openblas", cfg!(feature = "openblas")),
            ("parquet", cfg!(feature = "parquet")),
            ("plot", cfg!(feature = "plot")),
        ];
        let features: Vec<&str> = features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
        out += &format!("kernels   {} ({why}; possible: {})\n", Level::current().name(), levels.join(", "));
        out += &format!("threads   {count} ({source})\n");
        out += &format!(
            "features  {}\n",
            if features.is_empty() { "none".to_owned() } else { features.join(", ") }
        );
        out += &format!("target    {} {}\n", std::env::consts::ARCH, std::env::consts::OS);
    }
    print(out.as_bytes())
}
