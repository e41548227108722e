//! NUTS through nuts-rs, the engine of nutpie: it tunes a diagonal mass matrix and the step size in the warm-up. The
//! chains here only lend it a density and a stream of random numbers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use nuts_rs::{
    Chain as _, CpuLogpFunc, CpuMath, CpuMathError, DiagNutsSettings, HasDims, LogpError, Settings,
};

use super::{ChainTuning, LogDensity};
use crate::error::{Error, Result};
use crate::rng::{Purpose, Seed};

/// One draw of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Counted from 0.
    pub chain: usize,
    pub u: Vec<f64>,
    pub steps: usize,
    pub step_size: f64,
    /// The trajectory met an energy error too large to trust.
    pub divergent: bool,
}

/// The density as nuts-rs wants it.
struct Target<'a>(&'a dyn LogDensity);

/// The density was not a number: the sampler turns back.
#[derive(Debug)]
struct NotFinite;

impl std::fmt::Display for NotFinite {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("the log density is not finite")
    }
}

impl std::error::Error for NotFinite {}

impl LogpError for NotFinite {
    fn is_recoverable(&self) -> bool {
        true
    }
}

impl HasDims for Target<'_> {
    fn dim_sizes(&self) -> HashMap<String, u64> {
        HashMap::from([("unconstrained_parameter".to_owned(), self.0.dim() as u64)])
    }
}

impl CpuLogpFunc for Target<'_> {
    type LogpError = NotFinite;
    type FlowParameters = ();
    type ExpandedVector = Vec<f64>;

    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn logp(&mut self, position: &[f64], gradient: &mut [f64]) -> std::result::Result<f64, NotFinite> {
        let value = self.0.evaluate(position, gradient);
        let finite = value.is_finite() && gradient.iter().all(|g| g.is_finite());
        if finite { Ok(value) } else { Err(NotFinite) }
    }

    fn expand_vector<R: nuts_rs::rand::Rng + ?Sized>(
        &mut self,
        _rng: &mut R,
        position: &[f64],
    ) -> std::result::Result<Vec<f64>, CpuMathError> {
        Ok(position.to_vec())
    }
}

/// Chains to be run.
pub struct Chains<'a> {
    pub target: &'a dyn LogDensity,
    pub tuning: ChainTuning,
    /// Which of them are run, counted from 0.
    pub wanted: Range<usize>,
    /// Draws of every chain after its warm-up.
    pub draws: usize,
    pub seed: Seed,
    pub threads: usize,
    pub cancel: &'a AtomicBool,
}

impl Chains<'_> {
    /// The draws, chain by chain, into `sink`. Each chain has a stream of random numbers of its own, so that nothing
    /// depends on the number of threads. `start` is where a chain, counted from 0, begins.
    pub fn sample(
        &self,
        start: impl Fn(usize) -> Result<Vec<f64>> + Sync,
        mut sink: impl FnMut(Step) -> Result<()>,
    ) -> Result<()> {
        let chains = self.wanted.len();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let halted = || stop.load(Ordering::Relaxed) || self.cancel.load(Ordering::Relaxed);
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..chains).map(|_| mpsc::channel()).unzip();
        let senders: Vec<_> = senders.into_iter().map(|s| Mutex::new(Some(s))).collect();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.min(chains) {
                scope.spawn(|| {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(sender) = senders.get(place) else { break };
                        let c = self.wanted.start + place;
                        let sender = sender.lock().expect("taken once").take().expect("taken once");
                        let send = |step| sender.send(Ok(step)).is_ok() && !halted();
                        let done = start(c).and_then(|u| self.run(c, &u, &halted, send));
                        if let Err(error) = done {
                            let _ = sender.send(Err(error));
                        }
                    }
                });
            }
            let mut chains = receivers.into_iter();
            let outcome = chains.try_for_each(|chain| chain.into_iter().try_for_each(|step| sink(step?)));
            stop.store(true, Ordering::Relaxed);
            if self.cancel.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { outcome }
        })
    }

    /// One chain from `start`, until `send` or `halted` says that it is enough.
    fn run(
        &self,
        chain: usize,
        start: &[f64],
        halted: &impl Fn() -> bool,
        send: impl Fn(Step) -> bool,
    ) -> Result<()> {
        let warmup = self.tuning.warmup as u64;
        let mut options = DiagNutsSettings { num_tune: warmup, ..DiagNutsSettings::default() };
        options.num_draws = self.draws as u64;
        options.maxdepth = self.tuning.max_depth as u64;
        options.adapt_options.step_size_settings.target_accept = self.tuning.target_accept;
        let mut rng = self.seed.stream(Purpose::Chain, chain as u64, 0);
        let failed = |e: anyhow::Error| Error::Failed(format!("chain {}: {e:#}", chain + 1));
        let math = CpuMath::new(Target(self.target));
        let mut sampler = options.new_chain(chain as u64, math, &mut rng).map_err(failed)?;
        sampler.set_position(start).map_err(failed)?;
        for draw in 0..warmup + self.draws as u64 {
            if halted() {
                break;
            }
            let (u, progress) = sampler.draw().map_err(failed)?;
            let step = Step {
                chain,
                u: u.into_vec(),
                steps: progress.num_steps as usize,
                step_size: progress.step_size,
                divergent: progress.diverging,
            };
            if draw >= warmup && !send(step) {
                break;
            }
        }
        Ok(())
    }
}
