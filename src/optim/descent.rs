//! Stochastic descent (supplement C of the paper): steps along gradients of mini-batches, with looks at all rows in between that
//! decide whether it went down, and when to stop. No model is known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Status;
use crate::config::{Count, NonNegative, Positive};

/// `[optimiser.subsample]`: searches by mini-batches of rows that are drawn from the weights, instead of all rows in every step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subsample {
    /// Rows of a mini-batch.
    #[serde(default = "Subsample::default_batch")]
    pub batch: Count,
    /// How a gradient becomes a step.
    #[serde(default)]
    pub rule: Rule,
    /// The first step size.
    #[serde(default = "Subsample::default_step")]
    pub step: Positive,
    /// Steps between two looks at all rows; as many as see every row once, and at most 1000, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Count>,
    /// The step size after r looks is `step`/(1 + r)^`decay`.
    #[serde(default = "Subsample::default_decay")]
    pub decay: NonNegative,
    /// A look is taken at the average of the later half of the steps before it, not at the last one (Polyak and Ruppert).
    #[serde(default = "yes")]
    pub average: bool,
    /// Gradients of mini-batches are corrected by what the same rows said where all rows were last looked at (SVRG, Johnson and
    /// Zhang 2013): without noise in the end, at twice the price of a step.
    #[serde(default = "yes")]
    pub anchor: bool,
    /// The objective must fall by more than this between looks, relative to max(1, |objective|), or the search ends.
    #[serde(default = "Subsample::default_change")]
    pub change: Positive,
    /// Most looks at all rows; a search that wants more ends with `max_iter`.
    #[serde(default = "Subsample::default_looks")]
    pub looks: Count,
    /// Every so many draws is minimised over all rows too, to tell how far from the minimum searches end; 0 for none.
    #[serde(default = "Subsample::default_check")]
    pub check: u64,
}

/// From gradients to steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Stochastic gradient descent.
    Sgd,
    /// Steps divided by the root of the sum of squared gradients (Duchi, Hazan and Singer 2011).
    Adagrad,
    /// Running means of gradients, divided by the root of those of their squares (Kingma and Ba 2015).
    #[default]
    Adam,
}

fn yes() -> bool {
    true
}

impl Subsample {
    fn default_batch() -> Count {
        Count::new(256).expect("at least one")
    }

    fn default_step() -> Positive {
        Positive::new(0.05).expect("positive")
    }

    fn default_decay() -> NonNegative {
        NonNegative::new(0.5).expect("not negative")
    }

    fn default_change() -> Positive {
        Positive::new(1e-5).expect("positive")
    }

    fn default_looks() -> Count {
        Count::new(100).expect("at least one")
    }

    fn default_check() -> u64 {
        20
    }
}

/// Most steps between two looks where the experiment names no number.
const STEPS: usize = 1000;

/// Looks in a row that may find less than `change` before a search ends.
const PATIENCE: usize = 3;

/// Halvings of the step size before a search that only goes up ends.
const HALVINGS: usize = 12;

/// A loss whose gradient is known exactly, or by samples.
pub trait Sampled {
    /// Value and gradient over all rows.
    fn look(&mut self, u: &[f64]) -> (f64, Vec<f64>);

    /// Draws a mini-batch.
    fn next(&mut self);

    /// The gradient over the mini-batch.
    fn gradient(&mut self, u: &[f64]) -> Vec<f64>;
}

/// Where a descent ended.
pub struct Descended {
    pub u: Vec<f64>,
    pub value: f64,
    pub gradient: Vec<f64>,
    pub steps: usize,
    pub status: Status,
}

/// Descends from `start`; `rows` are those of the loss, for the number of steps between looks. Never ends above a look.
pub fn descend(objective: &mut dyn Sampled, start: Vec<f64>, rows: usize, rule: &Subsample) -> Descended {
    let steps = rule.steps.map_or_else(|| rows.div_ceil(rule.batch.get()).clamp(1, STEPS), Count::get);
    let (value, gradient) = objective.look(&start);
    let mut best = Descended { u: start, value, gradient, steps: 0, status: Status::MaxIter };
    if !best.value.is_finite() {
        return Descended { status: Status::Failed, ..best };
    }
    let (mut walk, mut halvings, mut idle) = (Walk::new(rule.rule, best.u.len()), 0, 0);
    for look in 0..rule.looks.get() {
        let size = rule.step.get() / libm::pow(1.0 + look as f64, rule.decay.get());
        let end = walk.walk(objective, &best, steps, size / f64::from(1u32 << halvings), rule);
        best.steps += steps;
        let (value, gradient) = objective.look(&end);
        let fell = best.value - value;
        if fell.is_nan() || fell < 0.0 {
            // Too far for this noise, or for this curvature: back, and on in smaller steps.
            (walk, halvings) = (Walk::new(rule.rule, end.len()), halvings + 1);
            if halvings > HALVINGS {
                return Descended { status: Status::Ok, ..best };
            }
            continue;
        }
        let enough = fell <= rule.change.get() * best.value.abs().max(1.0);
        idle = if enough { idle + 1 } else { 0 };
        best = Descended { u: end, value, gradient, ..best };
        if idle == PATIENCE {
            return Descended { status: Status::Ok, ..best };
        }
    }
    best
}

/// The running sums of a rule.
struct Walk {
    rule: Rule,
    steps: i32,
    mean: Vec<f64>,
    square: Vec<f64>,
}

impl Walk {
    fn new(rule: Rule, dim: usize) -> Walk {
        Walk { rule, steps: 0, mean: vec![0.0; dim], square: vec![0.0; dim] }
    }

    /// Some steps from where all rows were last looked at; their end, or the average of the later half.
    fn walk(
        &mut self,
        objective: &mut dyn Sampled,
        from: &Descended,
        steps: usize,
        size: f64,
        rule: &Subsample,
    ) -> Vec<f64> {
        let (mut u, mut sum) = (from.u.clone(), vec![0.0; from.u.len()]);
        let averaged = steps - steps / 2;
        for step in 0..steps {
            objective.next();
            let mut gradient = objective.gradient(&u);
            if rule.anchor {
                let there = objective.gradient(&from.u);
                let known = there.iter().zip(&from.gradient);
                gradient.iter_mut().zip(known).for_each(|(g, (there, all))| *g += all - there);
            }
            self.step(&mut u, &gradient, size);
            if step >= steps - averaged {
                sum.iter_mut().zip(&u).for_each(|(sum, u)| *sum += u / averaged as f64);
            }
        }
        if rule.average { sum } else { u }
    }

    fn step(&mut self, u: &mut [f64], gradient: &[f64], size: f64) {
        /// What running means keep, and what no root is divided by less than.
        const KEPT: (f64, f64) = (0.9, 0.999);
        const LEAST: f64 = 1e-8;
        self.steps = self.steps.saturating_add(1);
        match self.rule {
            Rule::Sgd => u.iter_mut().zip(gradient).for_each(|(u, g)| *u -= size * g),
            Rule::Adagrad => {
                for ((u, g), square) in u.iter_mut().zip(gradient).zip(&mut self.square) {
                    *square += g * g;
                    *u -= size * g / (square.sqrt() + LEAST);
                }
            }
            Rule::Adam => {
                let begun = |kept: f64| 1.0 - libm::pow(kept, f64::from(self.steps));
                let (first, second) = (begun(KEPT.0), begun(KEPT.1));
                let state = self.mean.iter_mut().zip(&mut self.square);
                for ((u, g), (mean, square)) in u.iter_mut().zip(gradient).zip(state) {
                    *mean = KEPT.0 * *mean + (1.0 - KEPT.0) * g;
                    *square = KEPT.1 * *square + (1.0 - KEPT.1) * g * g;
                    *u -= size * (*mean / first) / ((*square / second).sqrt() + LEAST);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ½ Σ cⱼ (u − a)² over the rows a of a list, one after the other.
    struct Bowl {
        rows: Vec<[f64; 2]>,
        at: usize,
    }

    const CURVATURE: [f64; 2] = [4.0, 0.25];

    impl Sampled for Bowl {
        fn look(&mut self, u: &[f64]) -> (f64, Vec<f64>) {
            let n = self.rows.len() as f64;
            let mut gradient = vec![0.0; 2];
            let mut value = 0.0;
            for row in &self.rows {
                for j in 0..2 {
                    let r = u[j] - row[j];
                    value += 0.5 * CURVATURE[j] * r * r / n;
                    gradient[j] += CURVATURE[j] * r / n;
                }
            }
            (value, gradient)
        }

        fn next(&mut self) {
            self.at = (self.at * 13 + 7) % self.rows.len();
        }

        fn gradient(&mut self, u: &[f64]) -> Vec<f64> {
            (0..2).map(|j| CURVATURE[j] * (u[j] - self.rows[self.at][j])).collect()
        }
    }

    fn rule(text: &str) -> Subsample {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn every_rule_finds_the_minimum_of_a_sum() {
        let rows: Vec<[f64; 2]> = (0..64).map(|i| [f64::from(i % 7), f64::from(i % 5) - 2.0]).collect();
        let mean = |j: usize| rows.iter().map(|r| r[j]).sum::<f64>() / 64.0;
        for text in [
            "rule = \"sgd\"\nstep = 0.2",
            "rule = \"adagrad\"\nstep = 4.0\ndecay = 0",
            "rule = \"adam\"\nstep = 0.3",
        ] {
            let rule = rule(&format!("{text}\nbatch = 1\nchange = 1e-12\nlooks = 400"));
            let mut bowl = Bowl { rows: rows.clone(), at: 0 };
            let lowest = bowl.look(&[mean(0), mean(1)]).0;
            let end = descend(&mut bowl, vec![30.0, -20.0], 64, &rule);
            assert_eq!(end.status, Status::Ok, "{text}");
            assert!(end.value - lowest < 1e-9, "{text}: {} above the minimum", end.value - lowest);
            assert_eq!(end.value, bowl.look(&end.u).0);
        }
    }

    #[test]
    fn without_an_anchor_noise_remains_and_no_end_is_above_the_start() {
        let rows: Vec<[f64; 2]> = (0..64).map(|i| [f64::from(i % 7), f64::from(i % 5) - 2.0]).collect();
        let mut bowl = Bowl { rows, at: 0 };
        let noisy = rule("rule = \"sgd\"\nstep = 100\nbatch = 1\nanchor = false\nlooks = 5");
        let start = vec![3.0, 0.1];
        let first = bowl.look(&start).0;
        let end = descend(&mut bowl, start, 64, &noisy);
        assert!(end.value <= first && end.status == Status::MaxIter);
    }

    #[test]
    fn a_start_at_infinity_fails() {
        let mut bowl = Bowl { rows: vec![[0.0, 0.0]], at: 0 };
        let end = descend(&mut bowl, vec![f64::INFINITY, 0.0], 1, &rule(""));
        assert_eq!(end.status, Status::Failed);
    }
}
