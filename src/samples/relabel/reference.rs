//! Mixtures as distributions of a label and an observation, and how far one is from another.

use std::ops::Range;

/// The mixtures of several draws, each as weights, means and variances, component after component.
pub struct Draws {
    pub count: usize,
    pub columns: usize,
    values: Vec<f64>,
    /// ∫ f log f of every component of every draw, with log π added.
    negentropies: Vec<f64>,
    /// What each draw counts.
    pub weights: Vec<f64>,
}

/// A weight may miss its interval by this much.
const ROUNDING: f64 = 1e-6;

impl Draws {
    pub fn new(count: usize, columns: usize) -> Draws {
        Draws { count, columns, values: Vec::new(), negentropies: Vec::new(), weights: Vec::new() }
    }

    /// Adds a draw. False if it is no mixture: something is not a number, a weight negative or a variance not positive.
    pub fn add(&mut self, mixture: &[f64], weight: f64) -> bool {
        let (weights, rest) = mixture.split_at(self.count);
        let (means, variances) = rest.split_at(self.count * self.columns);
        let sound = weights.iter().all(|w| (-ROUNDING..=1.0 + ROUNDING).contains(w))
            && means.iter().all(|m| m.is_finite())
            && variances.iter().all(|v| *v > 0.0 && v.is_finite());
        if sound {
            let of = |(variances, w): (&[f64], &f64)| {
                let logs: f64 = variances.iter().map(|v| libm::log(*v)).sum();
                libm::log(w.max(f64::MIN_POSITIVE)) - 0.5 * (logs + self.columns as f64)
            };
            self.negentropies.extend(variances.chunks_exact(self.columns).zip(weights).map(of));
            self.values.extend(weights.iter().map(|w| w.max(0.0)));
            self.values.extend_from_slice(rest);
            self.weights.push(weight);
        }
        sound
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    fn draw(&self, t: usize) -> &[f64] {
        let size = self.count * (1 + 2 * self.columns);
        &self.values[t * size..][..size]
    }

    /// Where the means of a component are in a draw, and its variances.
    fn ranges(&self, k: usize) -> (Range<usize>, Range<usize>) {
        let (means, variances) = (self.count, self.count * (1 + self.columns));
        let of = |start: usize| start + k * self.columns..start + (k + 1) * self.columns;
        (of(means), of(variances))
    }
}

/// A mixture that draws are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub weights: Vec<f64>,
    /// Row by row, a row per component.
    pub means: Vec<f64>,
    pub variances: Vec<f64>,
    /// 1/σ², and log |Σ|/2 − log π of every component.
    precisions: Vec<f64>,
    constants: Vec<f64>,
}

/// No cost is larger; a double holds sums of them.
const LARGEST: f64 = 1e100;

impl Reference {
    fn new(weights: Vec<f64>, means: Vec<f64>, variances: Vec<f64>) -> Reference {
        let columns = means.len() / weights.len();
        let constant = |(variances, w): (&[f64], &f64)| {
            let logs: f64 = variances.iter().map(|v| libm::log(*v)).sum();
            0.5 * logs - libm::log(w.max(f64::MIN_POSITIVE))
        };
        let constants = variances.chunks_exact(columns).zip(&weights).map(constant).collect();
        let precisions = variances.iter().map(|v| v.recip()).collect();
        Reference { weights, means, variances, precisions, constants }
    }

    /// One draw as it is.
    pub fn draw(draws: &Draws, t: usize) -> Reference {
        let (weights, rest) = draws.draw(t).split_at(draws.count);
        let (means, variances) = rest.split_at(rest.len() / 2);
        Reference::new(weights.to_vec(), means.to_vec(), variances.to_vec())
    }

    /// The mixture nearest to all draws under these labels (`orders[t][l]` is the component of draw t with label l): weights
    /// are means of weights, and components have the mean and the variance of what the draws' components generate together.
    pub fn nearest(draws: &Draws, orders: &[Vec<usize>]) -> Reference {
        let d = draws.columns;
        let total: f64 = draws.weights.iter().sum();
        let weight = |l: usize, t: usize| draws.weights[t] / total * draws.draw(t)[orders[t][l]];
        let weights: Vec<f64> =
            (0..draws.count).map(|l| (0..draws.len()).map(|t| weight(l, t)).sum()).collect();
        let (mut means, mut variances) = (vec![0.0; draws.count * d], vec![0.0; draws.count * d]);
        for l in 0..draws.count {
            // A component that no draw gives any weight is where the draws have it.
            let share = |t: usize| match weights[l] > 0.0 {
                true => weight(l, t) / weights[l],
                false => draws.weights[t] / total,
            };
            let (means, variances) = (&mut means[l * d..][..d], &mut variances[l * d..][..d]);
            for (t, order) in orders.iter().enumerate() {
                let (draw, share) = (draws.draw(t), share(t));
                let at = &draw[draws.ranges(order[l]).0];
                means.iter_mut().zip(at).for_each(|(m, x)| *m += share * x);
            }
            for (t, order) in orders.iter().enumerate() {
                let (draw, share) = (draws.draw(t), share(t));
                let (at, spread) = draws.ranges(order[l]);
                for (j, v) in variances.iter_mut().enumerate() {
                    let away = draw[at.start + j] - means[j];
                    *v += share * (draw[spread.start + j] + away * away);
                }
            }
        }
        Reference::new(weights, means, variances)
    }

    /// This mixture as a draw.
    pub fn as_draw(&self) -> Draws {
        let mut draws = Draws::new(self.weights.len(), self.means.len() / self.weights.len());
        draws.add(&[&self.weights[..], &self.means, &self.variances].concat(), 1.0);
        draws
    }

    /// The mixture with label l for the component `order[l]`.
    pub fn reordered(&self, order: &[usize]) -> Reference {
        let d = self.means.len() / self.weights.len();
        let rows = |matrix: &[f64]| order.iter().flat_map(|&k| matrix[k * d..][..d].to_vec()).collect();
        let weights = order.iter().map(|&k| self.weights[k]).collect();
        Reference::new(weights, rows(&self.means), rows(&self.variances))
    }

    /// What it costs to give component k of draw t label l, row by row: πₖ log πₖ/ϖₗ + πₖ KL(Nₖ ‖ Nₗ). Under any labels the
    /// sum is the Kullback-Leibler divergence of the draw's (label, observation) from the reference's.
    pub fn costs(&self, draws: &Draws, t: usize, costs: &mut Vec<f64>) {
        let (draw, d) = (draws.draw(t), draws.columns);
        costs.clear();
        for k in 0..draws.count {
            let (at, spread) = draws.ranges(k);
            let (at, spread) = (&draw[at], &draw[spread]);
            for l in 0..draws.count {
                let labelled = l * d..(l + 1) * d;
                let squares = squares(at, spread, &self.means[labelled.clone()], &self.precisions[labelled]);
                let divergence = draws.negentropies[t * draws.count + k] + self.constants[l] + 0.5 * squares;
                costs.push((draw[k] * divergence).min(LARGEST));
            }
        }
    }
}

/// Σ (σ² + (μ − m)²) p, in eight sums that the compiler may keep in one register.
fn squares(means: &[f64], variances: &[f64], centres: &[f64], precisions: &[f64]) -> f64 {
    const LANES: usize = 8;
    let term = |j: usize| {
        let away = means[j] - centres[j];
        (variances[j] + away * away) * precisions[j]
    };
    let mut sums = [0.0; LANES];
    let whole = means.len() - means.len() % LANES;
    for first in (0..whole).step_by(LANES) {
        let (m, v) = (&means[first..][..LANES], &variances[first..][..LANES]);
        let (c, p) = (&centres[first..][..LANES], &precisions[first..][..LANES]);
        for (i, sum) in sums.iter_mut().enumerate() {
            let away = m[i] - c[i];
            *sum += (v[i] + away * away) * p[i];
        }
    }
    sums.iter().sum::<f64>() + (whole..means.len()).map(term).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(mixtures: &[[f64; 6]]) -> Draws {
        let mut draws = Draws::new(2, 1);
        mixtures.iter().for_each(|m| assert!(draws.add(m, 1.0)));
        draws
    }

    /// Σ of the costs under labels as they are.
    fn loss(reference: &Reference, draws: &Draws, t: usize) -> f64 {
        let mut costs = Vec::new();
        reference.costs(draws, t, &mut costs);
        costs[0] + costs[3]
    }

    #[test]
    fn the_divergence_is_that_of_the_joint_distribution() {
        let both = draws(&[[0.3, 0.7, -1.0, 2.0, 0.5, 2.0], [0.6, 0.4, 0.0, 2.5, 1.0, 1.5]]);
        let reference = Reference::draw(&both, 1);
        assert!(loss(&reference, &both, 1).abs() < 1e-15);
        // ∫ Σ π N log (π N / ϖ M) by the trapezium rule.
        let normal = |x: f64, m: f64, v: f64| {
            (-0.5 * (x - m) * (x - m) / v).exp() / (2.0 * std::f64::consts::PI * v).sqrt()
        };
        let (p, q) = (both.draw(0), both.draw(1));
        let integrand = |x: f64| {
            let term = |k: usize| {
                let (f, g) = (p[k] * normal(x, p[2 + k], p[4 + k]), q[k] * normal(x, q[2 + k], q[4 + k]));
                if f > 0.0 { f * (f / g).ln() } else { 0.0 }
            };
            term(0) + term(1)
        };
        let integral: f64 = (-20_000..20_000).map(|i| integrand(1e-3 * f64::from(i)) * 1e-3).sum();
        assert!((loss(&reference, &both, 0) - integral).abs() < 1e-6, "{integral}");
    }

    #[test]
    fn nothing_is_nearer_than_the_nearest() {
        let all = draws(&[
            [0.3, 0.7, -1.0, 2.0, 0.5, 2.0],
            [0.2, 0.8, -1.5, 2.5, 1.0, 1.5],
            [0.1, 0.9, 0.0, 2.2, 0.1, 1.0],
        ]);
        let orders = vec![vec![0, 1]; 3];
        let total = |r: &Reference| (0..3).map(|t| loss(r, &all, t)).sum::<f64>();
        let best = Reference::nearest(&all, &orders);
        let near = [
            Reference::new(
                vec![best.weights[0] + 0.01, best.weights[1] - 0.01],
                best.means.clone(),
                best.variances.clone(),
            ),
            Reference::new(
                best.weights.clone(),
                vec![best.means[0] + 0.01, best.means[1]],
                best.variances.clone(),
            ),
            Reference::new(
                best.weights.clone(),
                best.means.clone(),
                vec![best.variances[0] * 1.02, best.variances[1]],
            ),
            Reference::new(
                best.weights.clone(),
                best.means.clone(),
                vec![best.variances[0] * 0.98, best.variances[1]],
            ),
        ];
        assert!(near.iter().all(|other| total(other) > total(&best)));
    }

    #[test]
    fn what_is_no_mixture_is_not_taken() {
        let mut draws = Draws::new(2, 1);
        for bad in [
            [f64::NAN, 0.5, 0.0, 1.0, 1.0, 1.0],
            [-0.1, 1.1, 0.0, 1.0, 1.0, 1.0],
            [0.5, 0.5, f64::INFINITY, 1.0, 1.0, 1.0],
            [0.5, 0.5, 0.0, 1.0, 0.0, 1.0],
        ] {
            assert!(!draws.add(&bad, 1.0), "{bad:?}");
        }
        assert_eq!(draws.len(), 0);
        // A component without weight is one, and costs nothing anywhere; rounding may take it below zero.
        assert!(draws.add(&[-1e-25, 1.0, 5.0, 1.0, 1.0, 1.0], 1.0));
        let mut costs = Vec::new();
        Reference::draw(&draws, 0).costs(&draws, 0, &mut costs);
        assert!(costs[..2].iter().all(|c| *c == 0.0) && costs.iter().all(|c| c.is_finite()), "{costs:?}");
    }
}
