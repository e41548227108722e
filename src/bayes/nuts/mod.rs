//! The No-U-Turn Sampler (Hoffman and Gelman 2014): trajectories that double until they turn round, and multinomial sampling of
//! their states, as in Stan (Betancourt 2017); step size and diagonal metric are learnt in the warm-up, the metric as in nutpie.
//! Written here because the crate that has it brings a library of matrices, chooses instructions by the machine that it
//! runs on, and cannot be stopped within a chain.

mod chain;
mod hamiltonian;
mod metric;
mod step_size;
mod tree;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::Builder;

use self::chain::Chain;
use self::tree::Transition;
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
            let mut started = 0;
            for _ in 0..self.threads.min(chains) {
                let worker = || {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(sender) = senders.get(place) else { break };
                        let c = self.wanted.start + place;
                        let sender = sender.lock().expect("taken once").take().expect("taken once");
                        let send = |step| sender.send(Ok(step)).is_ok() && !halted();
                        let done = start(c).and_then(|u| self.run(c, u, &halted, send));
                        if let Err(error) = done {
                            let _ = sender.send(Err(error));
                        }
                    }
                };
                started += usize::from(Builder::new().spawn_scoped(scope, worker).is_ok());
            }
            if started == 0 {
                return Err(Error::Failed(
                    "cannot start a thread: the system has no more, or no memory".into(),
                ));
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
        index: usize,
        start: Vec<f64>,
        halted: &dyn Fn() -> bool,
        send: impl Fn(Step) -> bool,
    ) -> Result<()> {
        let failed = |why: &str| Error::Failed(format!("chain {}: {why}", index + 1));
        let rng = self.seed.stream(Purpose::Chain, index as u64, 0);
        let mut chain = Chain::new(self.target, start, self.tuning, rng, halted).map_err(failed)?;
        chain.warm_up().map_err(failed)?;
        for _ in 0..self.draws {
            let Transition { state, steps, divergent, .. } = chain.transition();
            let step = Step { chain: index, u: state.u.clone(), steps, step_size: chain.epsilon, divergent };
            if halted() || !send(step) {
                break;
            }
        }
        Ok(())
    }
}
