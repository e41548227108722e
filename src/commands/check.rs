//! `npl check`: validate only; the resolved experiment, and what it will cost.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use npl::bootstrap::posterior_bootstrap;
use npl::config::printable;
use npl::kernel::Level;
use npl::runner::label;
use npl::samples::STATISTICS;
use npl::study::Study;

use super::text::{bytes, seconds};
use super::{load, pool, print};
use crate::cli::CheckArgs;

/// Draws are timed for about this long.
const TIMED: f64 = 0.5;
/// Bytes of a number as text, with its comma.
const CELL: f64 = 20.0;

pub fn check(args: CheckArgs) -> Result<()> {
    let Some(config) = args.config.filter(|_| !args.schema) else {
        return print((serde_json::to_string_pretty(&npl::config::schema())? + "\n").as_bytes());
    };
    let study = load(&config, &args.overrides, &[])?;
    let pool = pool(&args.overrides)?;
    let mut out = toml::to_string(&study.experiment)?;
    out += "\n";
    for line in facts(&study, &pool)? {
        out += &format!("# {}\n", printable(&line));
    }
    print(out.as_bytes())
}

fn facts(study: &Study, pool: &rayon::ThreadPool) -> Result<Vec<String>> {
    let trial = study.trial(0)?;
    let names = trial.model.names();
    let (n, d, p) = (trial.train.n(), trial.train.d(), names.len());
    let tests = trial.test.as_ref().map_or("no test rows".into(), |t| format!("{} test rows", t.n()));
    let files: Vec<String> = study
        .inputs()
        .iter()
        .map(|i| format!("{} ({}, sha256 {}…)", i.path, bytes(i.bytes as f64), &i.sha256[..12]))
        .collect();
    let mut lines = vec![format!("data        {n} rows x {d} columns, {tests}")];
    lines.extend(files.into_iter().map(|f| format!("            {f}")));
    let shown =
        if p > 6 { format!("{}, …, {}", names[..3].join(", "), names[p - 1]) } else { names.join(", ") };
    lines.push(format!("parameters  {p}: {shown}"));
    lines.push(format!(
        "sampler     {}, {} draws x {} repeats",
        label(&study.experiment),
        study.draws(),
        study.repeats()
    ));
    let per_draw = time_draws(study, pool)?;
    let total = per_draw * (study.draws() * study.repeats()) as f64;
    let threads = pool.current_num_threads();
    lines.push(format!(
        "time        about {} on {threads} threads, {} a draw ({} kernels)",
        seconds(total),
        if per_draw < 1e-3 {
            format!("{:.1} µs", per_draw * 1e6)
        } else {
            format!("{:.1} ms", per_draw * 1e3)
        },
        Level::current().name()
    ));
    let rows = (study.draws() * study.repeats()) as f64;
    let memory =
        8.0 * (2.0 * (n * d) as f64 + 2.0 * study.draws() as f64 * p as f64 + (threads * n) as f64 * 2.0);
    lines.push(format!("memory      about {}", bytes(memory + 1e7)));
    lines.push(format!("samples.csv about {}", bytes(rows * (p + STATISTICS.len() / 2) as f64 * CELL)));
    Ok(lines)
}

/// Seconds per draw, from the first draws of the real thing.
fn time_draws(study: &Study, pool: &rayon::ThreadPool) -> Result<f64> {
    let trial = study.trial(0)?.scheme(pool, &AtomicBool::new(false))?;
    let (started, mut done) = (Instant::now(), 0);
    let mut batch = pool.current_num_threads() as u64;
    while done < study.draws() as u64 && started.elapsed().as_secs_f64() < TIMED {
        let end = (done + batch).min(study.draws() as u64);
        posterior_bootstrap(&trial.plan(), done..end, pool, &AtomicBool::new(false), |_| Ok(()))?;
        (done, batch) = (end, batch * 2);
    }
    Ok(started.elapsed().as_secs_f64() / done as f64)
}
