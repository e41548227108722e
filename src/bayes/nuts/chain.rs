//! One chain: it looks for a step size, learns a metric, and goes on.

use std::rc::Rc;

use super::hamiltonian::{Hamiltonian, State};
use super::metric::{self, Metric};
use super::step_size::DualAveraging;
use super::tree::{Sampler, Transition};
use crate::bayes::{ChainTuning, LogDensity};
use crate::rng::Rng;

/// log 0.8, of the acceptance probability that a first step size should have.
const LOG_ACCEPTANCE: f64 = -0.223_143_551_314_209_76;
/// A density that does not change over such steps has no scale.
const LONGEST: f64 = 1e7;

/// Why a chain cannot go on.
type Outcome<T> = Result<T, &'static str>;

pub struct Chain<'a> {
    hamiltonian: Hamiltonian<'a>,
    state: Rc<State>,
    pub epsilon: f64,
    tuning: ChainTuning,
    rng: Rng,
    halted: &'a dyn Fn() -> bool,
}

impl<'a> Chain<'a> {
    pub fn new(
        target: &'a dyn LogDensity,
        start: Vec<f64>,
        tuning: ChainTuning,
        rng: Rng,
        halted: &'a dyn Fn() -> bool,
    ) -> Outcome<Self> {
        let mut hamiltonian = Hamiltonian::new(target);
        let state = Rc::new(hamiltonian.at(start));
        if state.energy.is_infinite() {
            return Err("the log density is not finite where it begins");
        }
        hamiltonian.variances = metric::guess(&state);
        Ok(Chain { hamiltonian, state, epsilon: 1.0, tuning, rng, halted })
    }

    /// The next draw; of no use if it was told to halt.
    pub fn transition(&mut self) -> Transition {
        let Chain { hamiltonian, epsilon, tuning, rng, halted, .. } = self;
        let max_depth = tuning.max_depth;
        let mut sampler = Sampler { hamiltonian, epsilon: *epsilon, max_depth, rng, halted };
        let transition = sampler.transition(&self.state);
        self.state = transition.state.clone();
        transition
    }

    /// Learns step size and metric.
    pub fn warm_up(&mut self) -> Outcome<()> {
        let ChainTuning { warmup, target_accept, .. } = self.tuning;
        self.find_step()?;
        let mut averaging = DualAveraging::new(self.epsilon, target_accept);
        let mut metric = Metric::new(warmup);
        let mut is_guess = true;
        for _ in 0..warmup {
            let acceptance = self.transition().acceptance;
            if (self.halted)() {
                break;
            }
            self.epsilon = averaging.learn(acceptance);
            let is_new = metric.learn(&self.state, &mut self.hamiltonian.variances);
            // From one metric to the next step sizes keep their meaning, but not from the guess to the first.
            if is_new && is_guess {
                is_guess = false;
                self.find_step()?;
                averaging = DualAveraging::new(self.epsilon, target_accept);
            }
        }
        self.epsilon = averaging.settled();
        Ok(())
    }

    /// A step size of the right order: doubled or halved until the acceptance of one step crosses 0.8 (Hoffman and Gelman 2014,
    /// Algorithm 4, with another momentum for each trial and 0.8 for their 0.5, as Stan has it).
    fn find_step(&mut self) -> Outcome<()> {
        let is_short = self.is_accepted();
        while self.is_accepted() == is_short && !(self.halted)() {
            self.epsilon *= if is_short { 2.0 } else { 0.5 };
            if self.epsilon > LONGEST {
                return Err("the density hardly changes, however long the step: the posterior is improper");
            }
            if self.epsilon == 0.0 {
                return Err("the density jumps, however short the step: it is not continuous there");
            }
        }
        Ok(())
    }

    /// Whether one step changes the energy by little.
    fn is_accepted(&mut self) -> bool {
        let start = self.hamiltonian.kicked(&self.state, &mut self.rng);
        start.energy - self.hamiltonian.leapfrog(&start, self.epsilon).energy > LOG_ACCEPTANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Seed};

    /// Any function of one coordinate at a time, with its slope.
    struct Sum<F>(usize, F);

    impl<F: Fn(f64) -> (f64, f64) + Sync> LogDensity for Sum<F> {
        fn dim(&self) -> usize {
            self.0
        }

        fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
            let (values, slopes): (Vec<f64>, Vec<f64>) = u.iter().map(|&u| (self.1)(u)).unzip();
            gradient.copy_from_slice(&slopes);
            values.iter().sum()
        }
    }

    fn chain(
        target: &dyn LogDensity,
        start: Vec<f64>,
        warmup: usize,
        target_accept: f64,
    ) -> Outcome<Chain<'_>> {
        let tuning = ChainTuning { warmup, chains: 1, target_accept, max_depth: 10 };
        Chain::new(target, start, tuning, Seed(3).stream(Purpose::Chain, 0, 0), &|| false)
    }

    /// Within 0.05: the step size that is kept is a mean of logarithms, and acceptance bends downwards in those, so that it ends
    /// a little high.
    #[test]
    fn the_acceptance_that_is_asked_for_is_reached() {
        let normal = Sum(10, |u: f64| (-0.5 * u * u, -u));
        let logistic = Sum(10, |u: f64| (-u - 2.0 * (-u).exp().ln_1p(), -(0.5 * u).tanh()));
        for target in [&normal as &dyn LogDensity, &logistic] {
            for wanted in [0.6, 0.8, 0.95] {
                let mut chain = chain(target, vec![1.0; 10], 1000, wanted).unwrap();
                chain.warm_up().unwrap();
                let n = 4000;
                let found = (0..n).map(|_| chain.transition().acceptance).sum::<f64>() / n as f64;
                assert!((found - wanted).abs() < 0.05, "{found} for {wanted}");
            }
        }
    }

    #[test]
    fn a_first_step_is_of_the_order_of_the_target() {
        for scale in [1e-3, 1.0, 1e3] {
            let target = Sum(3, |u: f64| (-0.5 * (u / scale) * (u / scale), -u / scale / scale));
            let mut chain = chain(&target, vec![1.0, -1.0, 0.5], 1, 0.8).unwrap();
            chain.find_step().unwrap();
            assert!((0.1..10.0).contains(&chain.epsilon), "{} at {scale}", chain.epsilon);
        }
    }

    #[test]
    fn densities_without_scale_or_continuity_are_refused() {
        let flat = Sum(2, |_: f64| (0.0, 0.0));
        let found = chain(&flat, vec![0.0; 2], 10, 0.8).unwrap().warm_up().unwrap_err();
        assert!(found.contains("improper"), "{found}");
        let spike = Sum(2, |u: f64| (if u == 0.0 { 0.0 } else { -1e300 }, 0.0));
        let found = chain(&spike, vec![0.0; 2], 10, 0.8).unwrap().warm_up().unwrap_err();
        assert!(found.contains("not continuous"), "{found}");
        let nowhere = Sum(2, |_: f64| (f64::NAN, 0.0));
        assert!(chain(&nowhere, vec![0.0; 2], 10, 0.8).is_err_and(|why| why.contains("where it begins")));
    }
}
