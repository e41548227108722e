//! The posterior bootstrap, Algorithms 1 to 4: for each draw a random measure F from the posterior, then the
//! parameter that minimises the loss under F. This is the file to read first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::data::Dataset;
use crate::error::Result;
use crate::init::Init;
use crate::model::{Model, Search, subsample};
use crate::optim::descent::Subsample;
use crate::optim::{Minimum, Status};
use crate::ordered::in_order;
use crate::process::{Measure, Prior};
use crate::restarts::{StopRule, hits, leaders};
use crate::rng::{Purpose, Seed};
use crate::samples::{self, Sample};

/// How the local searches of one draw are started.
pub enum Scheme {
    /// RR-NPL, Algorithm 3: up to `restarts` starts from π₀, fewer if `stop` says so; the best minimum is kept.
    RandomRestart { restarts: usize, init: Init, stop: Option<StopRule> },
    /// FI-NPL, Algorithm 4: every draw starts at the same θ_init. Empty for a model with a closed form.
    FixedInit(Vec<f64>),
}

impl Scheme {
    /// The most restarts a draw is meant to have.
    pub fn restarts(&self) -> usize {
        match self {
            Scheme::RandomRestart { restarts, .. } => *restarts,
            Scheme::FixedInit(_) => 1,
        }
    }
}

/// Everything that one repeat of the bootstrap needs.
pub struct Plan<'a> {
    pub model: &'a dyn Model,
    pub prior: &'a Prior,
    pub data: &'a Dataset,
    pub scheme: &'a Scheme,
    pub seed: Seed,
    /// Searches by mini-batches, supplement C.
    pub subsample: Option<&'a Subsample>,
    /// The draws of the setting before, on a path whose settings follow each other.
    pub before: Option<&'a Minima>,
}

/// Minima of draws, by their numbers: those of one setting of a path, where the searches of the next may begin.
#[derive(Default)]
pub struct Minima(BTreeMap<u64, Vec<f64>>);

impl Minima {
    /// Adds a draw of so many parameters, and what is derived from them; one that is lost is no start.
    pub fn add(&mut self, draw: &Sample, parameters: usize) {
        let theta = &draw.theta[..parameters];
        if !draw.failed() && theta.iter().all(|t| t.is_finite()) {
            self.0.insert(draw.index, theta.to_vec());
        }
    }

    pub fn of(&self, draw: u64) -> Option<&[f64]> {
        self.0.get(&draw).map(|theta| &theta[..])
    }
}

/// One draw from the NPL posterior, and how it was found.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Counted from 0.
    pub index: u64,
    pub minimum: Minimum,
    /// Which restart won, counted from 1.
    pub restart: usize,
    /// The objective at the end of every restart; NaN where one failed.
    pub values: Vec<f64>,
    /// Restarts before the winner that took the lead over all before them, and where they ended.
    pub earlier: Vec<(usize, Vec<f64>)>,
    /// How far from the minimum over all rows a search by mini-batches has ended, of draws that were looked at: √(2 (n + α)/p times
    /// what its objective is above it), for p parameters: in posterior standard deviations, the root of the mean square over parameters.
    pub distance: Option<f64>,
}

impl Draw {
    /// No search found a minimum: θ is no draw.
    pub fn failed(&self) -> bool {
        self.minimum.status.is_lost()
    }

    /// How many restarts ended in the minimum that won.
    pub fn hits(&self) -> usize {
        hits(&self.values).first().copied().unwrap_or(0)
    }

    /// Restarts that took the lead over all before them, and where they ended; the last is the winner.
    pub fn records(&self) -> impl Iterator<Item = (usize, &[f64])> {
        let earlier = self.earlier.iter().map(|(r, theta)| (*r, &theta[..]));
        earlier.chain([(self.restart, &self.minimum.theta[..])])
    }

    /// Columns of its own in the table of draws.
    pub const STATISTICS: [&'static str; 3] = [samples::RESTARTS, samples::HITS, samples::GRADIENT];

    /// Its row in the table of draws.
    pub fn into_sample(self) -> Sample {
        let extra = vec![self.values.len() as f64, self.hits() as f64, self.minimum.gradient];
        let Minimum { theta, value, iterations, status, .. } = self.minimum;
        Sample {
            index: self.index,
            theta,
            objective: value,
            restart: self.restart,
            iterations,
            status,
            extra,
        }
    }

    /// The draw as it would be with `restarts` restarts.
    pub fn with_restarts(&self, restarts: usize) -> &[f64] {
        let made = self.records().take_while(|(r, _)| *r <= restarts).last();
        made.map_or(&self.minimum.theta, |(_, theta)| theta)
    }
}

/// More restarts that a draw gets when all of its own have failed: on the same F, for drawing a new F would condition
/// the posterior on success.
const RESCUES: usize = 10;

/// Draws `range` of the posterior, in order, into `sink`, using all threads of `pool`. `per_draw` is applied by the
/// thread that made the draw, so that what is expensive about a draw need not wait for its turn. No result depends on
/// the number of threads. Ends early with [`Error::Interrupted`] when `cancel` is set, or with the error of the sink.
///
/// [`Error::Interrupted`]: crate::error::Error::Interrupted
pub fn posterior_bootstrap<T: Send>(
    plan: &Plan,
    range: Range<u64>,
    pool: &ThreadPool,
    cancel: &AtomicBool,
    per_draw: impl Fn(&Draw) -> T + Sync,
    mut sink: impl FnMut(Draw, T) -> Result<()>,
) -> Result<()> {
    let few = (range.end - range.start) < 4 * pool.current_num_threads() as u64;
    let make = |ids: Range<u64>, halted: &(dyn Fn() -> bool + Sync)| -> Option<Vec<(Draw, T)>> {
        let draws = if halted() { None } else { plan.block(ids, few, halted) };
        let finish = |draw: Draw| (!halted()).then(|| per_draw(&draw)).map(|result| (draw, result));
        draws?.into_iter().map(finish).collect()
    };
    // Blocks as the model likes them, unless some threads would have none.
    let share = (range.end - range.start).div_ceil(2 * pool.current_num_threads() as u64).max(1);
    let size = share.min(plan.model.block_size() as u64);
    in_order(range, size, pool, cancel, make, |(draw, result)| sink(draw, result))
}

impl<'a> Plan<'a> {
    /// F ~ DP(α + n, G_n) of a draw.
    pub fn measure(&self, draw: u64) -> Measure<'a> {
        self.prior.posterior_draw(self.data, self.seed, draw)
    }

    /// θ_init of a restart, counted from 0, where no setting comes before. It has a stream of its own, so it is the same whatever R is.
    pub fn start(&self, draw: u64, restart: usize) -> Vec<f64> {
        match self.scheme {
            Scheme::RandomRestart { init, .. } => {
                init.draw(&mut self.seed.stream(Purpose::Init, draw, restart as u64))
            }
            Scheme::FixedInit(start) => start.clone(),
        }
    }

    /// The search of a restart, counted from 0. The first one begins at the minimum of the setting before, if there is one.
    pub fn search<'f>(&self, f: &'f Measure<'f>, draw: u64, restart: usize) -> Search<'f> {
        let before = self.before.filter(|_| restart == 0).and_then(|before| before.of(draw));
        match before {
            Some(theta) => Search { f, start: theta.to_vec(), warm: true },
            None => Search::new(f, self.start(draw, restart)),
        }
    }

    /// The draws of one block; `None` if told to halt half way. A panic is one block's misfortune: its draws fail, the
    /// run goes on and says so.
    fn block(&self, ids: Range<u64>, few: bool, halted: &(dyn Fn() -> bool + Sync)) -> Option<Vec<Draw>> {
        let attempt = catch_unwind(AssertUnwindSafe(|| {
            // Algorithm 1: F ~ DP(α + n, G_n) …
            let measures: Vec<Measure> = ids.clone().map(|i| self.measure(i)).collect();
            // … then θ = argmin ∫ l(y, θ) dF(y).
            match self.scheme {
                Scheme::FixedInit(_) => Some(self.fixed_init(&ids, &measures)),
                Scheme::RandomRestart { restarts, stop, .. } => {
                    self.random_restart(&ids, &measures, *restarts, *stop, few, halted)
                }
            }
        }));
        attempt.unwrap_or_else(|_| Some(ids.map(|i| self.broken(i)).collect()))
    }

    /// A draw whose search panicked.
    fn broken(&self, index: u64) -> Draw {
        let theta = vec![f64::NAN; self.model.names().len()];
        Trials { minima: vec![Minimum::failed(theta, 0)] }.draw(index)
    }

    /// Algorithm 4.
    fn fixed_init(&self, ids: &Range<u64>, measures: &[Measure]) -> Vec<Draw> {
        let search = |(i, f)| self.search(f, i, 0);
        let searches: Vec<Search> = ids.clone().zip(measures).map(search).collect();
        let minima = self.searches(&ids.clone().collect::<Vec<_>>(), 0, &searches);
        let draws = ids.clone().zip(minima).map(|(i, minimum)| Trials { minima: vec![minimum] }.draw(i));
        draws.zip(measures).map(|(draw, f)| self.looked_at(draw, f)).collect()
    }

    /// Algorithm 3.
    fn random_restart(
        &self,
        ids: &Range<u64>,
        measures: &[Measure],
        restarts: usize,
        stop: Option<StopRule>,
        few: bool,
        halted: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Draw>> {
        let ids: Vec<u64> = ids.clone().collect();
        let mut trials: Vec<Trials> = ids.iter().map(|_| Trials { minima: Vec::new() }).collect();
        // With a stopping rule restarts are made one by one, or, when draws are too few to keep the machine busy, as
        // many at once as it has threads; what comes after the stopping point is dropped.
        let batch = match stop {
            None => restarts,
            Some(_) if few => rayon::current_num_threads(),
            Some(_) => 1,
        };
        let mut first = 0;
        while first < restarts + RESCUES {
            let open: Vec<usize> = (0..ids.len()).filter(|&s| !trials[s].enough(restarts, stop)).collect();
            if open.is_empty() {
                break;
            }
            // A batch ends at R: which restart a rescue is must not depend on the number of threads.
            let last = (first + batch).min(if first < restarts { restarts } else { restarts + RESCUES });
            let rounds: Vec<Option<Vec<Minimum>>> = (first..last)
                .into_par_iter()
                .map(|r| {
                    let search = |&s: &usize| self.search(&measures[s], ids[s], r);
                    let searches: Vec<Search> = open.iter().map(search).collect();
                    let ids: Vec<u64> = open.iter().map(|&s| ids[s]).collect();
                    (!halted()).then(|| self.searches(&ids, r, &searches))
                })
                .collect();
            for round in rounds {
                for (&s, minimum) in open.iter().zip(round?) {
                    if !trials[s].enough(restarts, stop) {
                        trials[s].minima.push(minimum);
                    }
                }
            }
            first = last;
        }
        let draws = ids.iter().zip(trials).map(|(&i, t)| t.draw(i));
        Some(draws.zip(measures).map(|(draw, f)| self.looked_at(draw, f)).collect())
    }

    /// The local searches of a restart, counted from 0, of these draws.
    pub fn searches(&self, ids: &[u64], restart: usize, searches: &[Search]) -> Vec<Minimum> {
        let Some(rule) = self.subsample else {
            return self.model.minimise_block(searches).into_iter().map(Minimum::sound).collect();
        };
        let search = |(&i, s): (&u64, &Search)| {
            let batches = self.seed.stream(Purpose::Batches, i, restart as u64);
            subsample::minimise(self.model, s.f, &s.start, rule, batches).sound()
        };
        ids.iter().zip(searches).map(search).collect()
    }

    /// The draw, with its distance to the minimum over all rows if it is one of those that are looked at.
    fn looked_at(&self, draw: Draw, f: &Measure) -> Draw {
        let every = self.subsample.map_or(0, |rule| rule.check);
        if every == 0 || !draw.index.is_multiple_of(every) || draw.failed() {
            return draw;
        }
        let lowest = self.model.minimise(f, &draw.minimum.theta).value;
        let above = (draw.minimum.value - lowest).max(0.0);
        let mass = self.data.mass() + self.prior.alpha();
        let parameters = draw.minimum.theta.len() as f64;
        Draw { distance: Some((2.0 * mass * above / parameters).sqrt()), ..draw }
    }
}

/// The searches of one draw, in the order of their restarts.
struct Trials {
    minima: Vec<Minimum>,
}

/// A restart that another one may do better than: separation, say, is the same from every start.
fn found_none(minimum: &Minimum) -> bool {
    matches!(minimum.status, Status::Failed | Status::Flat)
}

impl Trials {
    fn values(&self) -> Vec<f64> {
        let value = |m: &Minimum| if found_none(m) { f64::NAN } else { m.value };
        self.minima.iter().map(value).collect()
    }

    /// No further restart is wanted.
    fn enough(&self, restarts: usize, stop: Option<StopRule>) -> bool {
        let failed = self.minima.iter().all(found_none);
        let made = self.minima.len();
        if made >= restarts {
            return !failed || made >= restarts + RESCUES;
        }
        made > 0 && stop.is_some_and(|rule| rule.enough(&self.values()))
    }

    /// θ of the best restart; the same minimum found again goes to the earlier one.
    fn draw(self, index: u64) -> Draw {
        let values = self.values();
        let mut leaders = leaders(&self.minima);
        let best = leaders.pop().expect("the first search leads at first");
        let earlier = leaders.into_iter().map(|r| (r + 1, self.minima[r].theta.clone())).collect();
        let minimum = self.minima.into_iter().nth(best).expect("leaders are searches");
        Draw { index, minimum, restart: best + 1, values, earlier, distance: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minimum(value: f64, status: Status) -> Minimum {
        Minimum { theta: vec![value], value, iterations: 1, gradient: 0.0, status }
    }

    #[test]
    fn the_best_restart_wins_and_leaves_its_records() {
        let minima = vec![
            minimum(f64::NAN, Status::Failed),
            minimum(2.0, Status::Ok),
            minimum(3.0, Status::Ok),
            minimum(1.0, Status::MaxIter),
            minimum(1.0, Status::Ok),
        ];
        let draw = Trials { minima }.draw(7);
        assert_eq!((draw.restart, draw.minimum.value, draw.hits()), (5, 1.0, 2));
        assert_eq!(draw.records().map(|(r, _)| r).collect::<Vec<_>>(), [1, 2, 4, 5]);
        assert_eq!(draw.with_restarts(3), [2.0]);
        assert_eq!(draw.with_restarts(9), [1.0]);
    }

    #[test]
    fn a_draw_is_rescued_only_if_every_restart_failed() {
        let failed = || minimum(f64::NAN, Status::Failed);
        assert!(!Trials { minima: vec![failed(), failed()] }.enough(2, None));
        assert!(Trials { minima: vec![failed(), minimum(1.0, Status::Ok)] }.enough(2, None));
        let exhausted = (0..2 + RESCUES).map(|_| failed()).collect();
        assert!(Trials { minima: exhausted }.enough(2, None));
    }
}
