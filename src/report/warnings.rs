//! What a reader of a run's numbers must know first. Made in one place, from the facts of its repeats, so that `run`, `summary`,
//! `table` and `report.json` say the same.

use std::collections::BTreeMap;

use crate::bayes::importance::Weights;
use crate::optim::Status;
use crate::report::{AdviReport, ChainReport, Diagnostics, Distance, FEW, Observations, Repeat};

/// R̂ up to which chains count as mixed (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, section 4).
const MIXED: f64 = 1.01;
/// Effective draws, bulk and tail, below which neither quantiles nor R̂ itself can be relied on: 100 of each chain, and 400 in
/// all, which is four chains of them (the same; rstan's `Rhat` page asks for 100 a chain too).
const ESS_OF_A_CHAIN: f64 = 100.0;
const ESS: f64 = 400.0;
/// Effective draws of importance sampling, which are independent: as many as one chain should have.
const ESS_OF_WEIGHTS: f64 = 100.0;
/// Factor between the sum of case weights and the rows from which standard deviations are off by more than a fifth.
const FAR: f64 = 1.5;
/// Share of draws on a singularity of the likelihood that is no accident.
const COLLAPSED: f64 = 0.1;
/// Distance of searches by mini-batches to the minimum, in posterior standard deviations, from which these are a twentieth too wide.
const NOISY: f64 = 0.3;

/// " in 3 of 10 repeats", where there are several.
type Within<'a> = &'a dyn Fn(usize, usize) -> String;

/// Plain sentences, the gravest first. `rounds` is what there are several of: repeats, or settings of a path.
pub fn warnings(repeats: &[Repeat], rounds: &str) -> Vec<String> {
    let within = |some: usize, all: usize| {
        if all > 1 { format!(" in {some} of {all} {rounds}") } else { String::new() }
    };
    let each: Vec<&Diagnostics> = repeats.iter().map(|r| &r.diagnostics).collect();
    let mut found = searches(&each, repeats.iter().map(|r| r.draws).sum());
    let observations: Vec<(usize, &Observations)> =
        repeats.iter().filter_map(|r| Some((r.n_train, r.observations.as_ref()?))).collect();
    found.extend(spread(&observations, &within));
    found.extend(many_parameters(&observations, &within));
    found.extend(case_weights(&observations));
    found.extend(chains(&each.iter().filter_map(|d| d.chains.as_ref()).collect::<Vec<_>>(), &within));
    found.extend(variational(&each.iter().filter_map(|d| d.advi.as_ref()).collect::<Vec<_>>(), &within));
    found.extend(importance(&each.iter().filter_map(|d| d.importance.as_ref()).collect::<Vec<_>>(), &within));
    found.extend(subsampling(&each.iter().filter_map(|d| d.subsample).collect::<Vec<_>>(), &within));
    found.extend(collapse(&each));
    found.extend(dispersion(&each, repeats.iter().map(|r| r.draws).sum()));
    found.extend(undefined(&each, repeats.iter().map(|r| r.draws).sum()));
    found
}

/// Derived quantities that some draws do not have: a summary of the others is of another posterior.
fn undefined(each: &[&Diagnostics], draws: usize) -> Vec<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    each.iter()
        .flat_map(|d| &d.undefined)
        .for_each(|(name, count)| *counts.entry(name).or_default() += count);
    let sentence = |(name, count): (&String, usize)| {
        format!(
            "`{}` is no number in {count} of {draws} draws: numbers that are told of it leave them out",
            name
        )
    };
    counts.into_iter().map(sentence).collect()
}

/// Mini-batches whose noise shows in the spread of the draws.
fn subsampling(each: &[Distance], within: Within) -> Option<String> {
    let far: Vec<f64> = each.iter().map(|d| d.rms).filter(|rms| *rms > NOISY).collect();
    let worst = far.iter().copied().reduce(f64::max)?;
    let wider = 100.0 * ((1.0 + worst * worst).sqrt() - 1.0);
    let within = within(far.len(), each.len());
    Some(format!(
        "mini-batches end {worst:.2} posterior standard deviations from the minimum{within}: draws are about {wider:.0} % too far \
         apart; lower `optimiser.subsample.change`, raise `batch` or `steps`, or leave the table out"
    ))
}

/// Draws that are none, and draws that are not at a minimum.
fn searches(each: &[&Diagnostics], draws: usize) -> Vec<String> {
    let count = |status: Status| each.iter().map(|d| d.count(status)).sum::<usize>();
    let why = |status: Status| match status {
        Status::Failed => "failed: the loss was not a finite number, and summaries leave them out",
        Status::Separated => {
            "are separated: their responses can be told apart without error, the loss has no minimum, and summaries leave \
             them out; a penalty would give it one, if there are responses of both classes"
        }
        Status::Unidentified => {
            "are not identified: columns depend on each other, or different rows are fewer than centres; the loss has no single \
             minimum, and summaries leave them out; a penalty, or fewer centres, would give it one"
        }
        Status::MaxIter => {
            "ran out of iterations: they are not at a minimum, and summaries have them as they are; raise \
             `optimiser.max_iterations`"
        }
        Status::Stuck => {
            "could make no further step: they are not at a minimum, and summaries have them as they are; columns in very \
             different units are the usual reason: `data.standardise = \"numeric\"` brings them to one"
        }
        Status::Flat => {
            "have no row within reach: their loss does not grow for ever, and is flat where they are; summaries leave them \
             out; a larger `sigma` would reach more rows"
        }
        Status::Ok | Status::Collapsed | Status::Divergent => "",
    };
    let grave = [
        Status::Failed,
        Status::Separated,
        Status::Unidentified,
        Status::Flat,
        Status::Stuck,
        Status::MaxIter,
    ];
    let hit = grave.into_iter().filter(|s| count(*s) > 0);
    hit.map(|s| format!("{} of {draws} draws {}", count(s), why(s))).collect()
}

/// A posterior of one weight is a point.
fn spread(observations: &[(usize, &Observations)], within: Within) -> Option<String> {
    let fixed = observations.iter().filter(|(_, o)| o.free_weights == Some(0)).count();
    (fixed > 0).then(|| {
        format!(
            "one row (or cluster, or one in each stratum) is all there is to learn from{}: every draw gives it the same \
             weight, so that all draws are the same; that is too little data, not certainty",
            within(fixed, observations.len())
        )
    })
}

/// Where the rows of a draw are fitted too well, its minimum moves less than an estimate on new rows would.
fn many_parameters(observations: &[(usize, &Observations)], within: Within) -> Option<String> {
    let hit: Vec<(usize, usize)> =
        observations.iter().filter_map(|(_, o)| Some((o.free_weights? + 1, o.many_parameters?))).collect();
    let (free, parameters) = hit.first()?;
    Some(format!(
        "few rows for so many parameters{}: {free} that weigh by themselves, {parameters} parameters and no penalty; below \
         {FEW} rows for each the posterior bootstrap is too narrow (at 2 for each it has half the variance of the estimate), and \
         its intervals cover too seldom (docs/calibration.md); a penalty or fewer columns would help",
        within(hit.len(), observations.len())
    ))
}

/// Weights that look like shares of a population taken for counts of observations.
fn case_weights(observations: &[(usize, &Observations)]) -> Option<String> {
    let far = |(n, o): &&(usize, &Observations)| {
        let factor = o.mass / *n as f64;
        !o.whole_weights && !o.clustered && !(1.0 / FAR..=FAR).contains(&factor)
    };
    let (n, o) = observations.iter().find(far)?;
    // Six digits, and no more than are there.
    let short = |v: f64| format!("{v:.5e}").parse().unwrap_or(v);
    Some(format!(
        "case weights are counts of observations, and these are not whole numbers and sum to {} for {n} rows: standard \
         deviations are those of so many observations; if the weights are relative, divide them by their mean, {} \
         (docs/sampling.md)",
        short(o.mass),
        short(o.mass / *n as f64)
    ))
}

fn chains(all: &[&ChainReport], within: Within) -> Vec<String> {
    let mut found = Vec::new();
    let Some(first) = all.first() else { return found };
    let unknown: Vec<&&ChainReport> = all.iter().filter(|c| c.max_rhat.is_nan()).collect();
    found.extend(unknown.first().map(|first| {
        format!(
            "nothing is known of the chains{}: R-hat of {} is no number, for which every half of a chain needs two draws at least, and \
             to have moved; raise `sampler.B`",
            within(unknown.len(), all.len()),
            first.worst
        )
    }));
    let unmixed: Vec<&&ChainReport> = all.iter().filter(|c| c.max_rhat > MIXED).collect();
    let worst = unmixed.iter().max_by(|a, b| a.max_rhat.total_cmp(&b.max_rhat));
    found.extend(worst.map(|worst| {
        format!(
            "the chains have not mixed{}: R-hat of {} is {:.3}, above {MIXED}; their draws are not the posterior, only where \
             chains went",
            within(unmixed.len(), all.len()),
            worst.worst,
            worst.max_rhat
        )
    }));
    let divergences: usize = all.iter().map(|c| c.divergences).sum();
    found.extend((divergences > 0).then(|| {
        format!(
            "{} of NUTS diverged: part of the posterior may not have been reached; raise `nuts.target_accept`, or write the \
             model another way",
            if divergences == 1 { "1 trajectory".to_owned() } else { format!("{divergences} trajectories") }
        )
    }));
    let least = ESS.max(ESS_OF_A_CHAIN * first.chains as f64);
    let size = |c: &ChainReport| c.min_ess_bulk.min(c.min_ess_tail);
    let short = all.iter().filter(|c| size(c) < least).count();
    let smallest = all.iter().map(|c| size(c)).fold(f64::NAN, f64::min);
    found.extend((short > 0).then(|| {
        format!(
            "few effective draws{}: {smallest:.0} of the worst parameter (the smaller of bulk and tail ESS), below {least:.0}; \
             raise `sampler.B`",
            within(short, all.len())
        )
    }));
    found.extend((first.chains == 1).then(|| {
        "one chain: R-hat compares its halves alone, and a mode that it never visited would go unseen; `nuts.chains = 4` \
         would tell"
            .to_owned()
    }));
    found
}

fn variational(fits: &[&AdviReport], within: Within) -> Option<String> {
    let open = fits.iter().filter(|f| !f.converged).count();
    (open > 0).then(|| {
        format!(
            "the variational fit did not converge{}; raise `advi.max_iterations`",
            within(open, fits.len())
        )
    })
}

fn importance(weights: &[&Weights], within: Within) -> Option<String> {
    let short = weights.iter().filter(|w| w.ess < ESS_OF_WEIGHTS).count();
    let smallest = weights.iter().map(|w| w.ess).fold(f64::NAN, f64::min);
    (short > 0).then(|| {
        format!(
            "the weights of importance sampling are worth {smallest:.2} draws{}, below {ESS_OF_WEIGHTS}: its numbers hang on \
             a few of them, and their errors cannot be told",
            within(short, weights.len())
        )
    })
}

fn collapse(each: &[&Diagnostics]) -> Option<String> {
    let shares: Vec<f64> = each.iter().filter_map(|d| d.collapse.map(|c| c.at_floor)).collect();
    let share = shares.iter().sum::<f64>() / shares.len() as f64;
    (share > COLLAPSED).then(|| {
        format!(
            "{:.1} % of draws have a variance on its floor: they are singularities of the likelihood, unless the data \
             vary less than that, and where they are is decided by `variance_floor` and the starts (docs/models.md)",
            100.0 * share
        )
    })
}

/// Counts that vary less than a negative binomial distribution can: α ends at 0, which is no minimum inside its range.
fn dispersion(each: &[&Diagnostics], draws: usize) -> Option<String> {
    let count: usize = each.iter().filter_map(|d| d.undispersed).sum();
    (count > 0).then(|| {
        format!(
            "{count} of {draws} draws have dispersion 0: counts vary no more than Poisson's there, and the other parameters are \
             those of `[model.poisson]`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A repeat of 100 draws with these diagnostics beside the counts.
    fn repeat(status: Value, more: Value) -> Repeat {
        let mut diagnostics = json!({ "status": status, "mean_iterations": 1.0, "max_iterations": 1 });
        diagnostics.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let facts = json!({
            "repeat": 1, "seed": 1, "n_train": 10, "n_test": 0, "draws": 100, "seconds": 0.1, "diagnostics": diagnostics
        });
        serde_json::from_value(facts).unwrap()
    }

    fn chains(rhat: f64, bulk: f64, tail: f64, divergences: usize) -> Value {
        json!({ "chains": {
            "chains": 4, "warmup": 10, "divergences": divergences, "mean_steps": 3.0, "max_rhat": rhat,
            "min_ess_bulk": bulk, "min_ess_tail": tail, "worst": "mu.1"
        } })
    }

    #[test]
    fn nothing_is_said_of_a_run_without_fault() {
        let sound = [
            repeat(json!({ "ok": 100 }), json!({})),
            repeat(json!({ "ok": 100 }), chains(1.01, 400.0, 400.0, 0)),
        ];
        assert_eq!(warnings(&sound, "repeats"), Vec::<String>::new());
    }

    #[test]
    fn draws_are_counted_over_repeats_by_what_happened_to_them() {
        let one = repeat(json!({ "ok": 90, "max_iter": 4, "separated": 6 }), json!({}));
        let other = repeat(json!({ "failed": 1, "separated": 1, "unidentified": 2, "ok": 96 }), json!({}));
        let found = warnings(&[one, other], "repeats");
        let begins = [
            "1 of 200 draws failed",
            "7 of 200 draws are sep",
            "2 of 200 draws are not",
            "4 of 200 draws ran",
        ];
        assert!(found.iter().zip(begins).all(|(f, b)| f.starts_with(b)) && found.len() == 4, "{found:#?}");
    }

    #[test]
    fn counts_that_vary_too_little_are_told() {
        let all = [json!({ "undispersed": 7 }), json!({})].map(|more| repeat(json!({ "ok": 100 }), more));
        let found = warnings(&all, "repeats");
        assert!(found.len() == 1 && found[0].starts_with("7 of 200 draws have dispersion 0"), "{found:?}");
    }

    #[test]
    fn chains_are_held_to_the_published_limits() {
        let says = |more: Value| warnings(&[repeat(json!({ "ok": 100 }), more)], "repeats");
        for (facts, part) in [
            (chains(1.02, 500.0, 500.0, 0), "R-hat of mu.1 is 1.020"),
            (chains(f64::NAN, 500.0, 500.0, 0), "nothing is known of the chains"),
            (chains(1.0, 399.0, 500.0, 0), "399 of the worst"),
            (chains(1.0, 500.0, 399.0, 0), "399 of the worst"),
            (chains(1.0, 500.0, 500.0, 2), "2 trajectories"),
        ] {
            let found = says(facts);
            assert!(found.len() == 1 && found[0].contains(part), "{part}: {found:?}");
        }
        let two = [repeat(json!({}), chains(1.2, 9e3, 9e3, 0)), repeat(json!({}), chains(1.0, 9e3, 9e3, 0))];
        assert!(warnings(&two, "settings")[0].contains("in 1 of 2 settings"));
        let ends = warnings(&[repeat(json!({ "ok": 90, "stuck": 6, "flat": 4 }), json!({}))], "repeats");
        assert!(ends[0].contains("4 of 100 draws have no row within reach"), "{ends:?}");
        assert!(ends[1].contains("6 of 100 draws could make no further step"), "{ends:?}");
        assert!(ends[1].contains("data.standardise"), "{ends:?}");
    }
}
