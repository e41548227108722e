//! Mixtures as distributions of a label and an observation, and how far one is from another.

use std::ops::Range;

use ndarray::ArrayView2;

use crate::linalg::Cholesky;
use crate::model::Components;

/// Distributions that components are compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Independent Gaussian columns. Centres have variance 1 in all of them, whatever the draws.
    Product { fixed: bool },
    /// Gaussians with a covariance matrix each.
    Matrix,
    /// Independent columns that are 0 or 1.
    Bernoulli,
}

/// The mixtures of several draws, each as weights, means and what else there is, component after component: variances, matrices, or
/// nothing.
pub struct Draws {
    pub count: usize,
    pub columns: usize,
    components: Components,
    values: Vec<f64>,
    /// ∫ f log f of every component of every draw, with log π added.
    negentropies: Vec<f64>,
    /// What each draw counts.
    pub weights: Vec<f64>,
}

/// A weight may miss its interval by this much.
const ROUNDING: f64 = 1e-6;
/// A probability is no nearer to 0 or 1: logarithms stay finite.
const LEAST: f64 = 1e-12;

fn family(components: Components) -> Family {
    match components {
        Components::DiagonalGaussian { .. } | Components::SphericalGaussian { .. } => {
            Family::Product { fixed: false }
        }
        Components::Centres { .. } => Family::Product { fixed: true },
        Components::TiedGaussian { .. } | Components::FullGaussian { .. } => Family::Matrix,
        Components::Bernoulli { .. } => Family::Bernoulli,
    }
}

/// Entries of a component beside its weight and its means.
fn spread_of(family: Family, d: usize) -> usize {
    match family {
        Family::Product { .. } => d,
        Family::Matrix => d * d,
        Family::Bernoulli => 0,
    }
}

/// θ of one draw as weights, means, and variances or matrices of every component.
fn written_out(components: Components, theta: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (count, d) = (components.count(), components.columns());
    if let Components::Centres { .. } = components {
        return (vec![1.0 / count as f64; count], theta.to_vec(), vec![1.0; count * d]);
    }
    let (weights, rest) = theta.split_at(count);
    let (means, spread) = rest.split_at(count * d);
    let spread = match components {
        Components::SphericalGaussian { .. } => {
            spread.iter().flat_map(|v| std::iter::repeat_n(*v, d)).collect()
        }
        Components::TiedGaussian { .. } => spread.repeat(count),
        _ => spread.to_vec(),
    };
    (weights.to_vec(), means.to_vec(), spread)
}

fn factor(matrix: &[f64], d: usize) -> Option<Cholesky> {
    let matrix = ArrayView2::from_shape((d, d), matrix).expect("d × d entries");
    Cholesky::new(&matrix.to_owned())
}

/// p log q + (1 − p) log(1 − q).
fn bernoulli(p: f64, q: f64) -> f64 {
    let q = q.clamp(LEAST, 1.0 - LEAST);
    p * libm::log(q) + (1.0 - p) * libm::log1p(-q)
}

impl Draws {
    pub fn new(components: Components) -> Draws {
        let (count, columns) = (components.count(), components.columns());
        let (values, negentropies, weights) = (Vec::new(), Vec::new(), Vec::new());
        Draws { count, columns, components, values, negentropies, weights }
    }

    fn family(&self) -> Family {
        family(self.components)
    }

    /// Adds a draw. False if it is no mixture: something is not a number, a weight negative, a variance not positive, a matrix not
    /// positive definite or a probability none.
    pub fn add(&mut self, theta: &[f64], weight: f64) -> bool {
        let (weights, means, spread) = written_out(self.components, theta);
        self.add_written(&weights, &means, &spread, weight)
    }

    fn add_written(&mut self, weights: &[f64], means: &[f64], spread: &[f64], weight: f64) -> bool {
        let d = self.columns;
        let sound = weights.iter().all(|w| (-ROUNDING..=1.0 + ROUNDING).contains(w))
            && means.iter().all(|m| m.is_finite());
        // −∫ f log f of each component is half of this, and a constant; of Bernoullis it is minus this.
        let sizes: Option<Vec<f64>> = match self.family() {
            Family::Product { .. } => {
                let sound = spread.iter().all(|v| *v > 0.0 && v.is_finite());
                let logs = |v: &[f64]| v.iter().map(|v| libm::log(*v)).sum::<f64>();
                sound.then(|| spread.chunks_exact(d).map(logs).collect())
            }
            Family::Matrix => {
                let of = |m: &[f64]| factor(m, d).map(|l| l.log_det()).filter(|log_det| log_det.is_finite());
                spread.chunks_exact(d * d).map(of).collect()
            }
            Family::Bernoulli => {
                let sound = means.iter().all(|p| (-ROUNDING..=1.0 + ROUNDING).contains(p));
                let of = |p: &[f64]| p.iter().map(|p| bernoulli(*p, *p)).sum::<f64>();
                sound.then(|| means.chunks_exact(d).map(of).collect())
            }
        };
        let Some(sizes) = sizes.filter(|_| sound) else { return false };
        let bernoulli = self.family() == Family::Bernoulli;
        let of = |(size, w): (&f64, &f64)| {
            let own = if bernoulli { *size } else { -0.5 * (size + d as f64) };
            libm::log(w.max(f64::MIN_POSITIVE)) + own
        };
        self.negentropies.extend(sizes.iter().zip(weights).map(of));
        self.values.extend(weights.iter().map(|w| w.max(0.0)));
        self.values.extend_from_slice(means);
        self.values.extend_from_slice(spread);
        self.weights.push(weight);
        true
    }

    pub fn len(&self) -> usize {
        self.weights.len()
    }

    fn draw(&self, t: usize) -> &[f64] {
        let size = self.count * (1 + self.columns + spread_of(self.family(), self.columns));
        &self.values[t * size..][..size]
    }

    /// Where the means of a component are in a draw, and its variances or its matrix.
    fn ranges(&self, k: usize) -> (Range<usize>, Range<usize>) {
        let (d, each) = (self.columns, spread_of(self.family(), self.columns));
        let (means, spread) = (self.count, self.count * (1 + d));
        (means + k * d..means + (k + 1) * d, spread + k * each..spread + (k + 1) * each)
    }
}

/// A mixture that draws are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub weights: Vec<f64>,
    /// Row by row, a row per component.
    pub means: Vec<f64>,
    /// Variances or matrices, component after component.
    spread: Vec<f64>,
    components: Components,
    /// 1/σ² or Σ⁻¹, and log |Σ|/2 − log π of every component.
    precisions: Vec<f64>,
    constants: Vec<f64>,
}

/// No cost is larger; a double holds sums of them.
const LARGEST: f64 = 1e100;

impl Reference {
    fn new(components: Components, weights: Vec<f64>, means: Vec<f64>, spread: Vec<f64>) -> Reference {
        let d = means.len() / weights.len();
        let (sizes, precisions): (Vec<f64>, Vec<f64>) = match family(components) {
            Family::Product { .. } => {
                let logs = |v: &[f64]| v.iter().map(|v| libm::log(*v)).sum::<f64>();
                (spread.chunks_exact(d).map(logs).collect(), spread.iter().map(|v| v.recip()).collect())
            }
            Family::Matrix => {
                let inverses = spread.chunks_exact(d * d).map(|m| inverse(m, d));
                let (sizes, precisions): (Vec<f64>, Vec<Vec<f64>>) = inverses.unzip();
                (sizes, precisions.concat())
            }
            Family::Bernoulli => (vec![0.0; weights.len()], Vec::new()),
        };
        let constant = |(size, w): (&f64, &f64)| 0.5 * size - libm::log(w.max(f64::MIN_POSITIVE));
        let constants = sizes.iter().zip(&weights).map(constant).collect();
        Reference { weights, means, spread, components, precisions, constants }
    }

    /// The variance of component k in column j.
    pub fn variance(&self, k: usize, j: usize) -> f64 {
        let d = self.means.len() / self.weights.len();
        match family(self.components) {
            Family::Product { .. } => self.spread[k * d + j],
            Family::Matrix => self.spread[k * d * d + j * (d + 1)],
            Family::Bernoulli => self.means[k * d + j] * (1.0 - self.means[k * d + j]),
        }
    }

    /// One draw as it is.
    pub fn draw(draws: &Draws, t: usize) -> Reference {
        let (weights, rest) = draws.draw(t).split_at(draws.count);
        let (means, spread) = rest.split_at(draws.count * draws.columns);
        Reference::new(draws.components, weights.to_vec(), means.to_vec(), spread.to_vec())
    }

    /// The mixture nearest to all draws under these labels (`orders[t][l]` is the component of draw t with label l): weights
    /// are means of weights, and components have the mean and the variance of what the draws' components generate together.
    pub fn nearest(draws: &Draws, orders: &[Vec<usize>]) -> Reference {
        let (d, family) = (draws.columns, draws.family());
        let each = spread_of(family, d);
        let total: f64 = draws.weights.iter().sum();
        let weight = |l: usize, t: usize| draws.weights[t] / total * draws.draw(t)[orders[t][l]];
        let weights: Vec<f64> =
            (0..draws.count).map(|l| (0..draws.len()).map(|t| weight(l, t)).sum()).collect();
        let (mut means, mut spreads) = (vec![0.0; draws.count * d], vec![0.0; draws.count * each]);
        for l in 0..draws.count {
            // A component that no draw gives any weight is where the draws have it.
            let share = |t: usize| match weights[l] > 0.0 {
                true => weight(l, t) / weights[l],
                false => draws.weights[t] / total,
            };
            let (means, spreads) = (&mut means[l * d..][..d], &mut spreads[l * each..][..each]);
            for (t, order) in orders.iter().enumerate() {
                let (draw, share) = (draws.draw(t), share(t));
                let at = &draw[draws.ranges(order[l]).0];
                means.iter_mut().zip(at).for_each(|(m, x)| *m += share * x);
            }
            if family == (Family::Product { fixed: true }) {
                spreads.fill(1.0);
                continue;
            }
            for (t, order) in orders.iter().enumerate() {
                let (draw, share) = (draws.draw(t), share(t));
                let (at, spread) = draws.ranges(order[l]);
                for (e, v) in spreads.iter_mut().enumerate() {
                    let (i, j) = if family == Family::Matrix { (e / d, e % d) } else { (e, e) };
                    let away = |j: usize| draw[at.start + j] - means[j];
                    *v += share * (draw[spread.start + e] + away(i) * away(j));
                }
            }
        }
        Reference::new(draws.components, weights, means, spreads)
    }

    /// This mixture as a draw.
    pub fn as_draw(&self) -> Draws {
        let mut draws = Draws::new(self.components);
        draws.add_written(&self.weights, &self.means, &self.spread, 1.0);
        draws
    }

    /// The mixture with label l for the component `order[l]`.
    pub fn reordered(&self, order: &[usize]) -> Reference {
        let count = self.weights.len();
        let rows = |matrix: &[f64]| {
            let d = matrix.len() / count;
            order.iter().flat_map(|&k| matrix[k * d..][..d].to_vec()).collect()
        };
        Reference::new(self.components, rows(&self.weights), rows(&self.means), rows(&self.spread))
    }

    /// What it costs to give component k of draw t label l, row by row: πₖ log πₖ/ϖₗ + πₖ KL(fₖ ‖ gₗ). Under any labels the
    /// sum is the Kullback-Leibler divergence of the draw's (label, observation) from the reference's.
    pub fn costs(&self, draws: &Draws, t: usize, costs: &mut Vec<f64>) {
        let (draw, d, family) = (draws.draw(t), draws.columns, draws.family());
        costs.clear();
        for k in 0..draws.count {
            let (at, spread) = draws.ranges(k);
            let (at, spread) = (&draw[at], &draw[spread]);
            for l in 0..draws.count {
                let labelled = l * d..(l + 1) * d;
                let means = &self.means[labelled.clone()];
                let cross = match family {
                    Family::Product { .. } => 0.5 * squares(at, spread, means, &self.precisions[labelled]),
                    Family::Matrix => {
                        0.5 * trace(at, spread, means, &self.precisions[l * d * d..(l + 1) * d * d])
                    }
                    Family::Bernoulli => -at.iter().zip(means).map(|(p, q)| bernoulli(*p, *q)).sum::<f64>(),
                };
                let divergence = draws.negentropies[t * draws.count + k] + self.constants[l] + cross;
                costs.push((draw[k] * divergence).min(LARGEST));
            }
        }
    }
}

/// log |Σ| and Σ⁻¹. What is next to singular has precisions without bound.
fn inverse(matrix: &[f64], d: usize) -> (f64, Vec<f64>) {
    let Some(l) = factor(matrix, d) else { return (0.0, vec![f64::MAX.sqrt(); d * d]) };
    let unit = |j: usize| (0..d).map(|i| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    (l.log_det(), (0..d).flat_map(|j| l.solve(&unit(j))).collect())
}

/// tr P (Σ + (μ − m)(μ − m)ᵀ).
fn trace(means: &[f64], matrix: &[f64], centres: &[f64], precision: &[f64]) -> f64 {
    let d = means.len();
    let away = |j: usize| means[j] - centres[j];
    let entry = |e: usize| (matrix[e] + away(e / d) * away(e % d)) * precision[e];
    (0..d * d).map(entry).sum()
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

    const TWO: Components = Components::DiagonalGaussian { count: 2, columns: 1 };

    fn draws(mixtures: &[[f64; 6]]) -> Draws {
        let mut draws = Draws::new(TWO);
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
                TWO,
                vec![best.weights[0] + 0.01, best.weights[1] - 0.01],
                best.means.clone(),
                best.spread.clone(),
            ),
            Reference::new(
                TWO,
                best.weights.clone(),
                vec![best.means[0] + 0.01, best.means[1]],
                best.spread.clone(),
            ),
            Reference::new(
                TWO,
                best.weights.clone(),
                best.means.clone(),
                vec![best.spread[0] * 1.02, best.spread[1]],
            ),
            Reference::new(
                TWO,
                best.weights.clone(),
                best.means.clone(),
                vec![best.spread[0] * 0.98, best.spread[1]],
            ),
        ];
        assert!(near.iter().all(|other| total(other) > total(&best)));
    }

    #[test]
    fn what_is_no_mixture_is_not_taken() {
        let mut draws = Draws::new(TWO);
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

    /// Of whatever kind: a draw is nearest to itself, the loss of any other is above 0, and no reference is nearer than the nearest.
    #[test]
    fn every_kind_of_component_has_a_divergence() {
        let (count, columns) = (2, 2);
        let kinds = [
            (Components::SphericalGaussian { count, columns }, vec![0.3, 0.7, -1.0, 0.0, 2.0, 1.0, 0.5, 2.0]),
            (
                Components::TiedGaussian { count, columns },
                vec![0.3, 0.7, -1.0, 0.0, 2.0, 1.0, 1.0, 0.4, 0.4, 2.0],
            ),
            (
                Components::FullGaussian { count, columns },
                vec![0.3, 0.7, -1.0, 0.0, 2.0, 1.0, 1.0, 0.4, 0.4, 2.0, 1.0, -0.7, -0.7, 1.0],
            ),
            (Components::Bernoulli { count, columns }, vec![0.3, 0.7, 0.2, 0.9, 0.6, 0.5]),
            (Components::Centres { count, columns }, vec![-1.0, 0.0, 2.0, 1.0]),
        ];
        for (components, theta) in kinds {
            let mut all = Draws::new(components);
            let other: Vec<f64> = theta.iter().map(|t| 0.9 * t + 0.05).collect();
            assert!(all.add(&theta, 1.0) && all.add(&other, 1.0), "{components:?}");
            assert!(!all.add(&vec![f64::NAN; theta.len()], 1.0));
            let own = Reference::draw(&all, 0);
            assert!(loss(&own, &all, 0).abs() < 1e-14, "{components:?}: {}", loss(&own, &all, 0));
            assert!(loss(&own, &all, 1) > 1e-4, "{components:?}");
            assert_eq!(own.reordered(&[1, 0]).reordered(&[1, 0]), own);
            let total = |r: &Reference| (0..2).map(|t| loss(r, &all, t)).sum::<f64>();
            let best = Reference::nearest(&all, &vec![vec![0, 1]; 2]);
            let near = |change: &dyn Fn(&mut Reference)| {
                let mut near = best.clone();
                change(&mut near);
                Reference::new(components, near.weights, near.means, near.spread)
            };
            assert!(total(&near(&|r| r.means[1] += 0.01)) > total(&best), "{components:?}");
            assert!(total(&near(&|r| r.means[2] -= 0.01)) > total(&best), "{components:?}");
            if matches!(components, Components::FullGaussian { .. } | Components::TiedGaussian { .. }) {
                for by in [0.01, -0.01] {
                    let sheared =
                        near(&|r| (r.spread[1], r.spread[2]) = (r.spread[1] + by, r.spread[2] + by));
                    assert!(total(&sheared) > total(&best), "{components:?}");
                }
            }
        }
    }
}
