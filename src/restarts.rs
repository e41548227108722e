//! Restarts: when to stop making them, and whether those made were enough (supplement B).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bytes::bytes;
use crate::config::{Count, OpenUnit};
use crate::optim::{Minimum, Status};

/// When the restarts of a draw may end before R is reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StopRule {
    /// Stop after this many restarts in a row without a lower objective.
    NoImprovement(Count),
    /// Stop when the Good-Turing estimate of the mass of unseen basins, the share of restarts whose minimum was
    /// found once, is at most this (Good 1953; for restarts: Dick, Wong and Dann 2014).
    GoodTuring(OpenUnit),
    /// Stop when the posterior expectation of the mass of unseen basins, w(w + 1)/(r(r − 1)) with w distinct minima
    /// in r restarts, is at most this (Boender and Rinnooy Kan 1987; compared by Betrò and Schoen 1987).
    BoenderRinnooyKan(OpenUnit),
}

impl StopRule {
    /// Whether these restarts, in the order they were made, are enough.
    pub fn enough(self, values: &[f64]) -> bool {
        match self {
            StopRule::NoImprovement(m) => since_best(values) >= m.get(),
            StopRule::GoodTuring(share) => values.len() > 1 && unseen_good_turing(values) <= share.get(),
            StopRule::BoenderRinnooyKan(share) => unseen_boender_rinnooy_kan(values) <= share.get(),
        }
    }
}

/// Restarts since the best was found.
fn since_best(values: &[f64]) -> usize {
    let best = values.iter().copied().filter(|v| !v.is_nan()).fold(f64::INFINITY, f64::min);
    let improved = values.iter().position(|&v| same_minimum(v, best));
    improved.map_or(0, |at| values.len() - 1 - at)
}

/// Two searches of one draw ended in the same minimum if their objectives agree to this, relative to max(1, |L|):
/// far above what a converged search leaves, far below what two different minima differ by.
pub const SAME_MINIMUM: f64 = 1e-6;

pub fn same_minimum(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_MINIMUM * a.abs().max(1.0)
}

/// The searches, in the order they were made, that took the lead over all before them, by number from 0; the last of them
/// wins. The lead is taken by a lower minimum, or by converging to the same one where the leader had not. Finding it again
/// is not enough: equal minima, a mixture under other labels, differ by rounding, and rounding must not choose a draw.
pub fn leaders(minima: &[Minimum]) -> Vec<usize> {
    let mut leaders = vec![0];
    let mut leader = minima.first().expect("at least one search was made");
    let mut lowest = leader;
    for (r, minimum) in minima.iter().enumerate().skip(1) {
        lowest = if minimum.beats(lowest) { minimum } else { lowest };
        let known = [minimum, leader, lowest].iter().all(|m| m.status != Status::Failed);
        let same = |other: &Minimum| known && same_minimum(minimum.value, other.value);
        let takes = match same(leader) {
            true => minimum.status.converged() && !leader.status.converged() && same(lowest),
            false => minimum.beats(leader),
        };
        if takes {
            leaders.push(r);
            leader = minimum;
        }
    }
    leaders
}

/// How often each distinct minimum was found, best first. A failed search found none.
pub fn hits(values: &[f64]) -> Vec<usize> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut hits: Vec<usize> = Vec::new();
    let mut last = f64::NAN;
    for value in sorted {
        match hits.last_mut() {
            Some(count) if same_minimum(last, value) => *count += 1,
            _ => hits.push(1),
        }
        last = value;
    }
    hits
}

/// Share of restarts whose minimum was found once: the Good-Turing estimate of the probability that another
/// restart ends in a minimum not seen so far.
pub fn unseen_good_turing(values: &[f64]) -> f64 {
    let hits = hits(values);
    let found: usize = hits.iter().sum();
    if found == 0 { 1.0 } else { hits.iter().filter(|&&h| h == 1).count() as f64 / found as f64 }
}

/// Posterior expectation of the same probability under the prior of Boender and Rinnooy Kan (1987): w(w+1)/(r(r−1)).
pub fn unseen_boender_rinnooy_kan(values: &[f64]) -> f64 {
    let hits = hits(values);
    let (w, r) = (hits.len() as f64, hits.iter().sum::<usize>() as f64);
    if r < 2.0 { 1.0 } else { (w * (w + 1.0) / (r * (r - 1.0))).min(1.0) }
}

/// Whether R was enough, from the restarts of all draws of a repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Adequacy {
    /// Restarts per draw, on average.
    pub restarts: f64,
    /// Share of draws whose best minimum was found by one restart only.
    pub best_found_once: f64,
    /// Distinct minima per draw, on average.
    pub minima: f64,
    /// Estimated mass of basins not seen, averaged over draws.
    pub unseen_good_turing: f64,
    pub unseen_boender_rinnooy_kan: f64,
    /// Share of draws that found a lower objective in their last restart.
    pub improved_by_last: f64,
}

/// Sums an [`Adequacy`] up, draw by draw.
#[derive(Clone, Debug, Default)]
pub struct AdequacySum {
    sum: Adequacy,
    draws: f64,
}

bytes!(Adequacy {
    restarts,
    best_found_once,
    minima,
    unseen_good_turing,
    unseen_boender_rinnooy_kan,
    improved_by_last,
});
bytes!(AdequacySum { sum, draws });

impl AdequacySum {
    /// `values`: the objective of every restart of one draw.
    pub fn add(&mut self, values: &[f64]) {
        let hits = hits(values);
        self.draws += 1.0;
        self.sum.restarts += values.len() as f64;
        self.sum.minima += hits.len() as f64;
        self.sum.best_found_once += f64::from(hits.first() == Some(&1));
        self.sum.unseen_good_turing += unseen_good_turing(values);
        self.sum.unseen_boender_rinnooy_kan += unseen_boender_rinnooy_kan(values);
        self.sum.improved_by_last += f64::from(values.len() > 1 && since_best(values) == 0);
    }

    /// Adds the draws that come next.
    pub fn fold(&mut self, next: &AdequacySum) {
        self.draws += next.draws;
        let (sum, next) = (&mut self.sum, &next.sum);
        sum.restarts += next.restarts;
        sum.best_found_once += next.best_found_once;
        sum.minima += next.minima;
        sum.unseen_good_turing += next.unseen_good_turing;
        sum.unseen_boender_rinnooy_kan += next.unseen_boender_rinnooy_kan;
        sum.improved_by_last += next.improved_by_last;
    }

    /// `None` unless some draw had more than one restart.
    pub fn mean(&self) -> Option<Adequacy> {
        let s = &self.sum;
        let mean = |x: f64| x / self.draws;
        (s.restarts > self.draws).then(|| Adequacy {
            restarts: mean(s.restarts),
            best_found_once: mean(s.best_found_once),
            minima: mean(s.minima),
            unseen_good_turing: mean(s.unseen_good_turing),
            unseen_boender_rinnooy_kan: mean(s.unseen_boender_rinnooy_kan),
            improved_by_last: mean(s.improved_by_last),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_count_each_minimum() {
        assert_eq!(hits(&[2.0, 1.0, 1.0 + 1e-9, 3.0, 2.0, f64::NAN]), [2, 2, 1]);
        assert_eq!(hits(&[f64::NAN]), Vec::<usize>::new());
    }

    fn ended(value: f64, status: Status) -> Minimum {
        Minimum { theta: vec![], value, iterations: 1, gradient: 0.0, status }
    }

    #[test]
    fn rounding_never_takes_the_lead() {
        let ok = |value: f64| ended(value, Status::Ok);
        assert_eq!(leaders(&[ok(1.0), ok(1.0 - 1e-10), ok(1.0 - 2e-10)]), [0]);
        assert_eq!(leaders(&[ok(2.0), ok(1.0), ok(1.0 - 1e-10), ok(0.5)]), [0, 1, 3]);
        assert_eq!(
            leaders(&[ok(-3e6), ok(-3e6 - 1.0), ok(-3e6 - 10.0)]),
            [0, 2],
            "relative to the objective"
        );
        let failed = || ended(-5.0, Status::Failed);
        assert_eq!(leaders(&[failed(), ok(1.0), failed(), ok(f64::NAN)]), [0, 1]);
        assert_eq!(leaders(&[failed(), failed()]), [0]);
    }

    #[test]
    fn a_converged_search_goes_before_one_that_is_not() {
        let (ok, open) = (|value| ended(value, Status::Ok), |value| ended(value, Status::MaxIter));
        assert_eq!(leaders(&[open(1.0), ok(1.0 + 1e-8), ok(1.0)]), [0, 1]);
        assert_eq!(leaders(&[open(1.0), ended(1.0, Status::Collapsed)]), [0, 1]);
        assert_eq!(leaders(&[ok(1.0), open(1.0 - 1e-8)]), [0]);
        assert_eq!(leaders(&[ok(1.0), open(0.9)]), [0, 1], "a lower minimum is another one");
        // Twice the tolerance above the lowest is not the same, though it is the same as the leader.
        assert_eq!(leaders(&[open(1.0 + 8e-7), open(1.0), ok(1.0 + 1.6e-6)]), [0]);
    }

    #[test]
    fn unseen_mass_follows_the_published_formulas() {
        let values = [1.0, 1.0, 2.0, 3.0, 1.0];
        assert_eq!(unseen_good_turing(&values), 2.0 / 5.0);
        assert_eq!(unseen_boender_rinnooy_kan(&values), 3.0 * 4.0 / (5.0 * 4.0));
        assert_eq!(unseen_boender_rinnooy_kan(&[1.0]), 1.0);
        assert_eq!(unseen_good_turing(&[f64::NAN]), 1.0);
    }

    #[test]
    fn rules_stop_where_they_should() {
        let patience = StopRule::NoImprovement(Count::new(2).unwrap());
        assert!(!patience.enough(&[3.0]) && !patience.enough(&[3.0, 2.0, 2.5]));
        assert!(patience.enough(&[3.0, 2.0, 2.5, 2.0]), "finding the best again is no improvement");
        assert!(
            !patience.enough(&[f64::NAN, f64::NAN, f64::NAN]),
            "failures are not restarts without improvement"
        );
        let tenth = OpenUnit::new(0.1).unwrap();
        assert!(!StopRule::GoodTuring(tenth).enough(&[1.0]));
        assert!(StopRule::GoodTuring(tenth).enough(&[1.0, 1.0]));
        assert!(!StopRule::BoenderRinnooyKan(tenth).enough(&[1.0; 4]));
        assert!(StopRule::BoenderRinnooyKan(tenth).enough(&[1.0; 5]), "2/(5·4) = 0.1");
    }

    #[test]
    fn adequacy_needs_more_than_one_restart() {
        let mut sum = AdequacySum::default();
        sum.add(&[1.0]);
        assert_eq!(sum.mean(), None);
        sum.add(&[2.0, 1.0]);
        let mean = sum.mean().unwrap();
        assert_eq!((mean.restarts, mean.best_found_once, mean.improved_by_last), (1.5, 1.0, 0.5));
    }
}
