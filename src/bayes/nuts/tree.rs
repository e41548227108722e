//! One transition: a trajectory that is doubled, forwards or backwards in time, until it turns round, and one of its states,
//! by their weights e^{−H} (Hoffman and Gelman 2014, Algorithm 3; Betancourt 2017, appendix A).

use std::rc::Rc;

use rand::RngExt;

use super::hamiltonian::{Hamiltonian, State};
use crate::math::{dot, log_add_exp};
use crate::rng::Rng;

/// An energy error beyond this is a divergence: the trajectory has left the level set that it should follow. Δ_max of
/// Hoffman and Gelman (2014, section 3.1.1).
const DIVERGENCE: f64 = 1000.0;

/// Where a trajectory led.
pub struct Transition {
    pub state: Rc<State>,
    /// Leapfrog steps.
    pub steps: usize,
    /// Mean of min(1, e^{H₀ − H}) over the steps, those of a part that was thrown away included.
    pub acceptance: f64,
    pub divergent: bool,
}

/// Some 2ʲ successive states, of which one is proposed.
struct Tree {
    first: Rc<State>,
    last: Rc<State>,
    /// ρ, the sum of their momenta.
    rho: Vec<f64>,
    proposal: Rc<State>,
    /// log Σ e^{H₀ − H}.
    log_weight: f64,
}

impl Tree {
    fn leaf(state: Rc<State>, log_weight: f64) -> Tree {
        let rho = state.momentum.clone();
        Tree { first: state.clone(), last: state.clone(), rho, proposal: state, log_weight }
    }

    /// The same states from the other end.
    fn reversed(self) -> Tree {
        Tree { first: self.last, last: self.first, ..self }
    }

    /// Whether the states of both do not turn round: as a whole, and each tree with the state of the other that is next to
    /// it, for two halves of a circle may fail to see that they are one (Stan since 2.21).
    fn goes_on_in(&self, next: &Tree) -> bool {
        moves_apart(&self.first, &next.last, [&self.rho, &next.rho])
            && moves_apart(&self.first, &next.first, [&self.rho, &next.first.momentum])
            && moves_apart(&self.last, &next.last, [&self.last.momentum, &next.rho])
    }

    fn joined(self, next: Tree, proposal: Rc<State>) -> Tree {
        let rho = self.rho.iter().zip(&next.rho).map(|(a, b)| a + b).collect();
        let log_weight = log_add_exp(self.log_weight, next.log_weight);
        Tree { first: self.first, last: next.last, rho, proposal, log_weight }
    }
}

/// vᵀρ > 0 with the velocity v of both ends: the generalised criterion (Betancourt 2017, A.4.2). ρ is the sum of two parts.
fn moves_apart(first: &State, last: &State, rho: [&[f64]; 2]) -> bool {
    [first, last].iter().all(|end| dot(&end.velocity, rho[0]) + dot(&end.velocity, rho[1]) > 0.0)
}

/// What trajectories are made with.
pub struct Sampler<'a> {
    pub hamiltonian: &'a Hamiltonian<'a>,
    pub epsilon: f64,
    pub max_depth: usize,
    pub rng: &'a mut Rng,
    /// Asked before each step.
    pub halted: &'a dyn Fn() -> bool,
}

impl Sampler<'_> {
    /// From `state` with a new momentum. Cut short, and of no use, if it was told to halt.
    pub fn transition(&mut self, state: &State) -> Transition {
        let start = Rc::new(self.hamiltonian.kicked(state, self.rng));
        let mut walk = Walk { energy: start.energy, steps: 0, acceptance: 0.0, divergent: false };
        let mut tree = Tree::leaf(start, 0.0);
        for depth in 0..self.max_depth {
            let forwards: bool = self.rng.random();
            let grown = match forwards {
                true => self.grow(&mut walk, depth, &tree.last, self.epsilon),
                false => self.grow(&mut walk, depth, &tree.first, -self.epsilon).map(Tree::reversed),
            };
            let Some(grown) = grown else { break };
            // Biased towards the new half, away from the start (Betancourt 2017, A.3.2).
            let is_taken = self.happens(grown.log_weight - tree.log_weight);
            let proposal = if is_taken { grown.proposal.clone() } else { tree.proposal.clone() };
            let (earlier, later) = if forwards { (tree, grown) } else { (grown, tree) };
            let goes_on = earlier.goes_on_in(&later);
            tree = earlier.joined(later, proposal);
            if !goes_on {
                break;
            }
        }
        let Walk { steps, acceptance, divergent, .. } = walk;
        Transition { state: tree.proposal, steps, acceptance: acceptance / steps.max(1) as f64, divergent }
    }

    /// The 2^depth states that follow `from`; `None` if they turn round, or diverge.
    fn grow(&mut self, walk: &mut Walk, depth: usize, from: &State, epsilon: f64) -> Option<Tree> {
        if depth == 0 {
            if (self.halted)() {
                return None;
            }
            let state = self.hamiltonian.leapfrog(from, epsilon);
            let log_weight = walk.visit(&state)?;
            return Some(Tree::leaf(Rc::new(state), log_weight));
        }
        let near = self.grow(walk, depth - 1, from, epsilon)?;
        let far = self.grow(walk, depth - 1, &near.last, epsilon)?;
        if !near.goes_on_in(&far) {
            return None;
        }
        // By their weights (Betancourt 2017, A.3.1).
        let is_taken = self.happens(far.log_weight - log_add_exp(near.log_weight, far.log_weight));
        let proposal = if is_taken { far.proposal.clone() } else { near.proposal.clone() };
        Some(near.joined(far, proposal))
    }

    /// True with a probability, given by its logarithm; always if that is above 0.
    fn happens(&mut self, log_probability: f64) -> bool {
        self.rng.random::<f64>() < libm::exp(log_probability)
    }
}

/// What was seen on the way.
struct Walk {
    /// H₀, at the start.
    energy: f64,
    steps: usize,
    acceptance: f64,
    divergent: bool,
}

impl Walk {
    /// The log weight of a state; `None` if it is too far off.
    fn visit(&mut self, state: &State) -> Option<f64> {
        let log_weight = self.energy - state.energy;
        self.steps += 1;
        self.acceptance += libm::exp(log_weight.min(0.0));
        self.divergent = log_weight < -DIVERGENCE;
        (!self.divergent).then_some(log_weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::LogDensity;
    use crate::math::mean;
    use crate::rng::{Purpose, Seed};
    use rand::distr::Distribution;
    use rand_distr::{Gamma, StandardNormal};

    /// −½ Σ u².
    struct Normal(usize);

    impl LogDensity for Normal {
        fn dim(&self) -> usize {
            self.0
        }

        fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
            gradient.iter_mut().zip(u).for_each(|(g, u)| *g = -u);
            -0.5 * dot(u, u)
        }
    }

    /// −¼ Σ u⁴.
    struct Quartic(usize);

    impl LogDensity for Quartic {
        fn dim(&self) -> usize {
            self.0
        }

        fn evaluate(&self, u: &[f64], gradient: &mut [f64]) -> f64 {
            gradient.iter_mut().zip(u).for_each(|(g, u)| *g = -u.powi(3));
            -0.25 * u.iter().map(|u| u.powi(4)).sum::<f64>()
        }
    }

    /// One transition from each of many independent draws of the target, with steps that are far too long and a metric that is not
    /// the target's. Where it leads has the law of the target, exactly: mean, and moments of u² and u⁴ with their standard errors.
    fn assert_kept(target: &dyn LogDensity, exact: [f64; 3], draw: impl Fn(&mut Rng) -> f64, epsilon: f64) {
        let mut hamiltonian = Hamiltonian::new(target);
        hamiltonian.variances = vec![1.0, 0.4, 2.0];
        let n = 60_000;
        for seed in [1, 2, 3] {
            let mut rng = Seed(seed).stream(Purpose::Auxiliary, 0, 0);
            let mut ends = Vec::new();
            let mut steps = 0;
            for _ in 0..n {
                let start = hamiltonian.at((0..3).map(|_| draw(&mut rng)).collect());
                let hamiltonian = &hamiltonian;
                let mut sampler =
                    Sampler { hamiltonian, epsilon, max_depth: 6, rng: &mut rng, halted: &|| false };
                let found = sampler.transition(&start);
                steps += found.steps;
                ends.push(found.state.u.clone());
            }
            assert!((2 * n..30 * n).contains(&steps), "{steps} steps");
            for coordinate in 0..3 {
                for power in [1, 2, 4] {
                    let values: Vec<f64> = ends.iter().map(|u| u[coordinate].powi(power)).collect();
                    let expected = if power == 1 { 0.0 } else { exact[power as usize / 2 - 1] };
                    let z = (mean(&values) - expected) / (crate::math::sd(&values) / (n as f64).sqrt());
                    assert!(z.abs() < 5.0, "seed {seed}, u[{coordinate}]^{power}: z = {z}");
                }
                let products: Vec<f64> =
                    ends.iter().map(|u| u[coordinate] * u[(coordinate + 1) % 3]).collect();
                let z = mean(&products) / (exact[0] / (n as f64).sqrt());
                assert!(z.abs() < 5.0, "seed {seed}, product of {coordinate}: z = {z}");
            }
        }
    }

    #[test]
    fn a_transition_keeps_a_normal_target() {
        assert_kept(&Normal(3), [1.0, 3.0, 15.0], |rng| StandardNormal.sample(rng), 0.9);
    }

    /// u⁴/4 ~ Gamma(1/4): E u² = 2 Γ(3/4)/Γ(1/4), E u⁴ = 1.
    #[test]
    fn a_transition_keeps_a_target_that_is_not_normal() {
        let gamma = Gamma::new(0.25, 1.0).unwrap();
        let draw = |rng: &mut Rng| {
            let size: f64 = gamma.sample(rng);
            let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
            sign * (4.0 * size).powf(0.25)
        };
        let square = 2.0 * libm::tgamma(0.75) / libm::tgamma(0.25);
        assert_kept(&Quartic(3), [square, 1.0, 0.0], draw, 0.7);
    }

    /// Half a period of all coordinates takes time π: a trajectory turns round after that, and was not yet due when it was
    /// doubled last. Without the checks between halves some step sizes go round and round.
    #[test]
    fn trajectories_turn_round_in_time() {
        let (target, mut rng) = (Normal(100), Seed(1).stream(Purpose::Auxiliary, 0, 0));
        let hamiltonian = Hamiltonian::new(&target);
        for epsilon in (4..=44).map(|i| 0.025 * f64::from(i)) {
            let (mut shortest, mut longest) = (f64::INFINITY, 0.0f64);
            for _ in 0..20 {
                let start = hamiltonian.at((0..100).map(|_| StandardNormal.sample(&mut rng)).collect());
                let hamiltonian = &hamiltonian;
                let mut sampler =
                    Sampler { hamiltonian, epsilon, max_depth: 10, rng: &mut rng, halted: &|| false };
                let time = sampler.transition(&start).steps as f64 * epsilon;
                (shortest, longest) = (shortest.min(time), longest.max(time));
            }
            let pi = std::f64::consts::PI;
            assert!(shortest > 0.5 * pi && longest < 4.0 * pi, "ε = {epsilon}: {shortest} to {longest}");
        }
    }

    /// Successive states as one tree.
    fn tree_of(states: &[State]) -> Tree {
        let leaf = |state: &State| Tree::leaf(Rc::new(state.clone()), 0.0);
        let join = |tree: Tree, next: Tree| {
            let proposal = tree.proposal.clone();
            tree.joined(next, proposal)
        };
        states.iter().map(leaf).reduce(join).unwrap()
    }

    /// Whether the first half of these states goes on in the second.
    fn goes_on(states: &[State]) -> bool {
        let (near, far) = states.split_at(states.len() / 2);
        tree_of(near).goes_on_in(&tree_of(far))
    }

    /// Time runs the other way.
    fn backwards(states: &[State]) -> Vec<State> {
        let mut states: Vec<State> = states.iter().rev().cloned().collect();
        for state in &mut states {
            state.momentum.iter_mut().chain(&mut state.velocity).for_each(|v| *v = -*v);
        }
        states
    }

    /// Dynamics are the same backwards in time, and so is whether they turn round. Of the two looks between halves each is the other one
    /// backwards: often one alone sees the turn.
    #[test]
    fn states_turn_round_backwards_in_time_if_they_do_forwards() {
        let mut rng = Seed(1).stream(Purpose::Auxiliary, 0, 0);
        let mut hamiltonian = Hamiltonian::new(&Normal(3));
        hamiltonian.variances = vec![1.0, 0.1, 3.0];
        let mut counts = [0, 0];
        for length in [2, 4, 8, 16] {
            for _ in 0..2000 {
                let start = hamiltonian.at((0..3).map(|_| StandardNormal.sample(&mut rng)).collect());
                let first = hamiltonian.kicked(&start, &mut rng);
                let epsilon = rng.random_range(0.05..1.1);
                let next = |state: &State| Some(hamiltonian.leapfrog(state, epsilon));
                let states: Vec<State> = std::iter::successors(Some(first), next).take(length).collect();
                let forwards = goes_on(&states);
                assert_eq!(forwards, goes_on(&backwards(&states)), "{length} states, ε = {epsilon}");
                counts[usize::from(forwards)] += 1;
            }
        }
        assert!(counts[0] > 1000 && counts[1] > 1000, "{counts:?}");
    }

    /// Leapfrog steps on a normal go round an ellipse by an angle ω with cos ω = 1 − ε²/2 each: momenta that start at a right angle to
    /// the position, and as far out, go round a circle. Of four that are more than a quarter apart the ends see nothing, as they are
    /// nearly home again, nor do two at a time; three in a row see it.
    #[test]
    fn halves_of_a_circle_are_seen_to_be_one() {
        let (target, pi) = (Normal(2), std::f64::consts::PI);
        let hamiltonian = Hamiltonian::new(&target);
        for (angle, turns) in [(0.3 * pi, false), (0.51 * pi, true), (0.6 * pi, true), (0.66 * pi, true)] {
            let epsilon = 2.0 * libm::sin(0.5 * angle);
            let mut first = hamiltonian.at(vec![1.0 / libm::cos(0.5 * angle), 0.0]);
            (first.momentum[1], first.velocity[1]) = (1.0, 1.0);
            let next = |state: &State| Some(hamiltonian.leapfrog(state, epsilon));
            let states: Vec<State> = std::iter::successors(Some(first), next).take(4).collect();
            let cosines: Vec<f64> = states.iter().map(|s| s.momentum[1]).collect();
            (0..4).for_each(|k| {
                assert!((cosines[k] - libm::cos(k as f64 * angle)).abs() < 1e-12, "{cosines:?}")
            });
            let whole = tree_of(&states);
            assert!(moves_apart(&whole.first, &whole.last, [&whole.rho, &[0.0, 0.0]]), "{angle}");
            assert!(goes_on(&states[..2]) && goes_on(&states[2..]), "{angle}");
            assert_eq!(goes_on(&states), !turns, "{angle}");
        }
    }

    #[test]
    fn steps_are_as_many_as_the_depth_allows() {
        let (target, mut rng) = (Normal(2), Seed(1).stream(Purpose::Auxiliary, 0, 0));
        let hamiltonian = &Hamiltonian::new(&target);
        let start = hamiltonian.at(vec![0.3, -1.0]);
        for max_depth in 1..6 {
            let mut sampler =
                Sampler { hamiltonian, epsilon: 1e-3, max_depth, rng: &mut rng, halted: &|| false };
            let found = sampler.transition(&start);
            assert_eq!((found.steps, found.divergent), ((1 << max_depth) - 1, false));
            assert!(found.acceptance > 0.999);
        }
    }

    #[test]
    fn a_divergence_ends_a_trajectory_and_is_never_drawn() {
        let (target, mut rng) = (Normal(2), Seed(1).stream(Purpose::Auxiliary, 0, 0));
        let hamiltonian = &Hamiltonian::new(&target);
        let start = hamiltonian.at(vec![0.3, -1.0]);
        let mut sampler =
            Sampler { hamiltonian, epsilon: 1e3, max_depth: 10, rng: &mut rng, halted: &|| false };
        let found = sampler.transition(&start);
        assert_eq!((found.steps, found.divergent, &found.state.u), (1, true, &start.u));
        assert!(found.acceptance < 1e-300);
    }
}
