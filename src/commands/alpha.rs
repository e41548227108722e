//! `npl alpha`: how strong should the prior be? (Section 2.2 and supplement A.2.)

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use npl::config::printable;
use npl::error::Error;
use npl::process::{Prior, Truncation};
use npl::rng::Purpose;
use npl::run::run_repeat;
use npl::samples::{Sample, Summary};
use npl::study::Study;

use super::text::{number, render};
use super::{load, pool, print};
use crate::cli::{AlphaArgs, Format};

/// Pseudo-samples behind the moments of a base measure that does not know its own.
const MONTE_CARLO: usize = 100_000;

pub fn alpha(args: AlphaArgs) -> Result<()> {
    for (flag, value) in
        args.sd.iter().map(|v| ("--sd", v)).chain(args.base_sd.iter().map(|v| ("--base-sd", v)))
    {
        if !(value.is_finite() && *value > 0.0) {
            return Err(Error::input(format!("{flag} must be a number greater than 0, not {value}")).into());
        }
    }
    if let Some(bad) = args.values.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
        return Err(Error::input(format!("--values must be numbers greater than 0, not {bad}")).into());
    }
    match (&args.config, args.sd, args.base_sd, args.values.is_empty()) {
        (None, Some(sd), Some(base_sd), true) => {
            let dirichlet = |t: u32| Truncation::Dirichlet { t: t as usize };
            let truncation = args.truncation.map_or(Truncation::Exact, dirichlet);
            let group = (None, vec![("y".into(), base_sd)]);
            print(from_sd(&[group], truncation, sd, args.format)?.as_bytes())
        }
        (Some(config), sd, _, values_empty) if sd.is_some() || !values_empty => {
            let mut out = String::new();
            if let Some(sd) = sd {
                let (groups, truncation) = base_sds(config, &args)?;
                out += &from_sd(&groups, truncation, sd, args.format)?;
            }
            if !values_empty {
                out += if out.is_empty() { "" } else { "\n" };
                out += &simulate(config, &args)?;
            }
            print(out.as_bytes())
        }
        _ => {
            let message =
                "give --sd with --base-sd, or an experiment with --sd or --values; see npl alpha --help";
            Err(Error::input(message).into())
        }
    }
}

/// The sd of each column under F_π, by its name; and the group whose base measure it is, where there are groups.
type Spread = (Option<String>, Vec<(String, f64)>);

/// α from Var(θ_μ) = Var_{F_π}(y) / (1 + α) of supplement A.2, or what it is under a truncation.
fn from_sd(groups: &[Spread], truncation: Truncation, sd: f64, format: Format) -> Result<String> {
    let titles = ["column", "sd of F_pi", "wanted sd of the mean", "alpha"];
    let by_group = groups.iter().any(|(group, _)| group.is_some());
    let mut rows = vec![titled(by_group, &titles)];
    let each = groups.iter().flat_map(|(group, columns)| columns.iter().map(move |c| (group, c)));
    for (group, (name, base_sd)) in each {
        let wrong =
            |why: String| Error::input(format!("the mean of {name} cannot have prior sd {sd}: {why}"));
        if sd >= *base_sd {
            return Err(wrong(format!("under DP(alpha, F_pi) it is below the sd of F_pi, {base_sd}")).into());
        }
        let alpha = truncation.alpha_of_variance((sd / base_sd).powi(2)).map_err(|lowest| {
            let bound = base_sd * lowest.sqrt();
            let bound = number(bound, bound * 1e-4);
            wrong(match truncation {
                Truncation::Dirichlet { t } | Truncation::StickBreaking { t } => {
                    format!("with T = {t} it is above {bound} whatever alpha is; give a larger T, or none")
                }
                _ => format!("with this truncation it is above {bound} whatever alpha is"),
            })
        })?;
        let numbers = [number(*base_sd, 1e-4), number(sd, 1e-4), number(alpha, alpha * 1e-5)];
        let front = group.iter().cloned().chain([name.clone()]);
        rows.push(front.chain(numbers).collect());
    }
    Ok(render(&rows, format))
}

/// The titles of a table, after that of groups if there are any.
fn titled(by_group: bool, titles: &[&str]) -> Vec<String> {
    by_group.then_some("group").iter().chain(titles).map(|title| (*title).to_owned()).collect()
}

/// The first round of each group; one alone, without a name, where there are none.
fn first_rounds(study: &Study) -> Vec<(Option<String>, usize)> {
    let groups = study.groups();
    let each = study.each();
    match groups.is_empty() {
        true => vec![(None, 0)],
        false => groups.iter().enumerate().map(|(g, name)| (Some((*name).to_owned()), g * each)).collect(),
    }
}

/// The prior alone: no rows of data. It is that of the bootstrap, whatever the experiment's method.
fn prior_sets(alpha: Option<f64>, draws: u32) -> Vec<String> {
    let fixed = ["method=npl", "data.rows=0", "repeats=1"].map(String::from);
    let fixed = fixed.into_iter().chain([format!("sampler.B={draws}")]);
    fixed.chain(alpha.map(|a| format!("prior.alpha={a:?}"))).collect()
}

/// The sd of each column under F_π, of each group, and how the prior is made finite.
fn base_sds(config: &Path, args: &AlphaArgs) -> Result<(Vec<Spread>, Truncation)> {
    let study = load(config, &args.overrides, &["method=npl".to_owned()])?;
    let (mut found, mut made) = (Vec::new(), None);
    for (group, round) in first_rounds(&study) {
        let trial = study.trial(round)?;
        let Prior::Dp { base, truncation, .. } = trial.prior.as_ref() else {
            let message = format!(
                "{}: there is no base measure to choose alpha for; add a [prior] table with a `base` and any alpha above 0",
                printable(&config.display().to_string())
            );
            return Err(Error::input(message).into());
        };
        let moments = base.moments().unwrap_or_else(|| {
            base.sample(MONTE_CARLO, &mut trial.seed.stream(Purpose::Auxiliary, 0, 0)).to_rows().moments()
        });
        let sds = moments.into_iter().map(|(_, v)| v.sqrt());
        found.push((group, trial.train.columns.iter().cloned().zip(sds).collect()));
        made = Some(*truncation);
    }
    Ok((found, made.expect("there is a group at least")))
}

/// The run with n = 0, for each α.
fn simulate(config: &Path, args: &AlphaArgs) -> Result<String> {
    let pool = pool(&args.overrides.machine)?;
    let titles = ["parameter", "alpha", "mean", "sd", "2.5 %", "10 %", "50 %", "90 %", "97.5 %"];
    let (mut groups, mut by_value) = (Vec::new(), Vec::new());
    for &alpha in &args.values {
        let study = load(config, &args.overrides, &prior_sets(Some(alpha), args.draws))?;
        let names = study.trial(0)?.model.names();
        let first = first_rounds(&study);
        groups = first.iter().map(|(group, _)| group.clone()).collect::<Vec<Option<String>>>();
        let mut by_group = Vec::new();
        for (_, round) in first {
            let mut columns: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
            let mut on_draw = |draw: Sample| {
                if !draw.failed() {
                    columns.iter_mut().zip(&draw.theta).for_each(|(column, t)| column.push(*t));
                }
                Ok(())
            };
            run_repeat(&study, round, &pool, &AtomicBool::new(false), &mut on_draw)?;
            let summaries = names.iter().zip(columns).map(|(name, column)| Summary::of(name, column));
            by_group.push(summaries.collect::<Vec<_>>());
        }
        by_value.push(by_group);
    }
    let mut rows = vec![titled(groups.iter().any(Option::is_some), &titles)];
    for (g, group) in groups.iter().enumerate() {
        for j in 0..by_value[0][g].len() {
            for (alpha, by_group) in args.values.iter().zip(&by_value) {
                let s = &by_group[g][j];
                let front = group.iter().cloned().chain([s.parameter.clone(), alpha.to_string()]);
                let moments = [number(s.mean, s.mcse_mean), number(s.sd, s.mcse_sd)];
                let quantiles = s.quantiles.iter().zip(s.mcse_quantiles).map(|(&q, e)| number(q, e));
                rows.push(front.chain(moments).chain(quantiles).collect());
            }
        }
    }
    Ok(render(&rows, args.format))
}
