//! The draws of one repeat under the same labels.

use rayon::prelude::*;

use super::assignment::Assignment;
use super::reference::{Draws, Reference};
use super::table::Labels;
use crate::model::Components;

/// How the draws of one repeat were aligned.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignedRepeat {
    /// Counted from 1.
    pub repeat: usize,
    pub draws: usize,
    /// Draws that were left as they are: failed ones.
    pub left: usize,
    /// The draw that the first reference was, as `draw__` has it.
    pub pivot: usize,
    pub iterations: usize,
    /// Whether it ended because no label changed.
    pub converged: bool,
    /// Shares of the draws that were aligned, by their weights if they have any.
    pub permuted: f64,
    pub ambiguous: f64,
    /// By label: share of the draws for which it is one of those that could as well be others.
    pub ambiguous_components: Vec<f64>,
    /// Weights, means and variances that the labels stand for; none if there was nothing to align.
    pub reference: Option<Reference>,
}

/// More iterations than any run should need: each lowers the loss, most settle in fewer than ten.
const MAX_ITERATIONS: usize = 200;
/// Draws that may be the first reference, and draws that they are compared by.
const CANDIDATES: usize = 20;
const JUDGES: usize = 100;
/// A loss that is zero but for rounding.
const TINY: f64 = 1e-12;

/// The draws of one repeat.
pub struct Group {
    pub repeat: usize,
    draws: Draws,
    log_weights: Vec<f64>,
    /// For each row of the file: the number of the draw, and where it is among those that are aligned.
    rows: Vec<(usize, Option<usize>)>,
    /// Draws that may be the first reference.
    converged: Vec<usize>,
}

/// Labels of all rows, and how they were found.
pub struct Aligned {
    pub repeat: AlignedRepeat,
    pub labels: Vec<Labels>,
}

/// How a draw was labelled: `order[l]` is the component with label l.
struct Found {
    order: Vec<usize>,
    loss: f64,
    /// Labels that could be others at less than twice the loss.
    ambiguous: Vec<usize>,
}

impl Group {
    pub fn new(repeat: usize, components: Components) -> Group {
        let draws = Draws::new(components);
        Group { repeat, draws, log_weights: Vec::new(), rows: Vec::new(), converged: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row; without a mixture it is one that failed.
    pub fn add(&mut self, number: f64, mixture: Option<&Vec<f64>>, converged: bool, log_weight: f64) {
        let place = self.draws.len();
        let taken = mixture.is_some_and(|mixture| self.draws.add(mixture, 1.0));
        if taken {
            self.log_weights.push(log_weight);
        }
        if taken && converged {
            self.converged.push(place);
        }
        self.rows.push((number as usize, taken.then_some(place)));
    }

    /// Labels for all draws; those of `before` where there is one. Where no draw has a better claim to its order than others
    /// (`exchangeable`) the first reference is ordered by its means, elsewhere it keeps the order of the pivot.
    pub fn aligned(mut self, before: Option<&Reference>, exchangeable: bool) -> Aligned {
        let left = self.rows.iter().filter(|(_, place)| place.is_none()).count();
        let mut repeat = AlignedRepeat {
            repeat: self.repeat,
            draws: self.rows.len(),
            left,
            pivot: 0,
            iterations: 0,
            converged: true,
            permuted: 0.0,
            ambiguous: 0.0,
            ambiguous_components: vec![0.0; self.draws.count],
            reference: None,
        };
        if self.draws.len() == 0 {
            return Aligned { repeat, labels: self.rows.iter().map(|_| Labels::Left).collect() };
        }
        let heaviest = self.log_weights.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        self.draws.weights = self.log_weights.iter().map(|l| libm::exp(l - heaviest)).collect();
        let pivot = self.pivot();
        repeat.pivot = self.rows.iter().find(|(_, place)| *place == Some(pivot)).map_or(0, |(n, _)| *n);
        let mut reference = Reference::draw(&self.draws, pivot);
        let mut orders = self.orders(&reference);
        repeat.converged = false;
        while !repeat.converged && repeat.iterations < MAX_ITERATIONS {
            repeat.iterations += 1;
            reference = Reference::nearest(&self.draws, &orders);
            let next = self.orders(&reference);
            repeat.converged = next == orders;
            orders = next;
        }
        let order = match before {
            Some(before) => best(before, &reference.as_draw(), 0).order,
            None if exchangeable => by_means(&reference),
            None => (0..self.draws.count).collect(),
        };
        let reference = reference.reordered(&order);
        let found = self.found(&reference);
        self.count(&found, &mut repeat);
        repeat.reference = Some(reference);
        Aligned {
            labels: self.rows.iter().map(|(_, place)| labels(place.map(|t| &found[t]))).collect(),
            repeat,
        }
    }

    /// Of some draws, evenly spread, the one that is nearest to others.
    fn pivot(&self) -> usize {
        let all: Vec<usize> = (0..self.draws.len()).collect();
        let candidates = if self.converged.is_empty() { &all } else { &self.converged };
        let judges = spread(&all, JUDGES);
        let loss = |&candidate: &usize| {
            let reference = Reference::draw(&self.draws, candidate);
            let of = |&t: &usize| self.draws.weights[t] * best(&reference, &self.draws, t).loss;
            judges.iter().map(of).sum::<f64>()
        };
        let candidates = spread(candidates, CANDIDATES);
        let losses: Vec<f64> = candidates.par_iter().map(loss).collect();
        let nearest = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        candidates[nearest.expect("there are draws")]
    }

    fn orders(&self, reference: &Reference) -> Vec<Vec<usize>> {
        (0..self.draws.len()).into_par_iter().map(|t| best(reference, &self.draws, t).order).collect()
    }

    fn found(&self, reference: &Reference) -> Vec<Found> {
        let one = |t: usize| {
            let (costs, assignment) = solve(reference, &self.draws, t);
            let change = assignment.next_best(&costs, assignment.cost.max(TINY));
            let rows = change.map_or(Vec::new(), |change| change.rows);
            let ambiguous = rows.into_iter().map(|k| assignment.columns[k]).collect();
            Found { ambiguous, ..Found::of(&assignment) }
        };
        (0..self.draws.len()).into_par_iter().map(one).collect()
    }

    fn count(&self, found: &[Found], repeat: &mut AlignedRepeat) {
        let total: f64 = self.draws.weights.iter().sum();
        for (found, weight) in found.iter().zip(&self.draws.weights) {
            let share = weight / total;
            repeat.permuted += if found.order.is_sorted() { 0.0 } else { share };
            repeat.ambiguous += if found.ambiguous.is_empty() { 0.0 } else { share };
            found.ambiguous.iter().for_each(|&l| repeat.ambiguous_components[l] += share);
        }
    }
}

impl Found {
    fn of(assignment: &Assignment) -> Found {
        let mut order = vec![0; assignment.columns.len()];
        assignment.columns.iter().enumerate().for_each(|(k, &l)| order[l] = k);
        Found { order, loss: assignment.cost, ambiguous: Vec::new() }
    }
}

fn solve(reference: &Reference, draws: &Draws, t: usize) -> (Vec<f64>, Assignment) {
    let mut costs = Vec::with_capacity(draws.count * draws.count);
    reference.costs(draws, t, &mut costs);
    let assignment = Assignment::of(&costs, draws.count);
    (costs, assignment)
}

/// The labels of a draw that are nearest to a reference.
fn best(reference: &Reference, draws: &Draws, t: usize) -> Found {
    Found::of(&solve(reference, draws, t).1)
}

fn labels(found: Option<&Found>) -> Labels {
    match found {
        None => Labels::Left,
        Some(found) => Labels::Order {
            order: found.order.iter().map(|&k| k as u32).collect(),
            ambiguous: !found.ambiguous.is_empty(),
        },
    }
}

/// At most so many, evenly spread.
fn spread(of: &[usize], most: usize) -> Vec<usize> {
    let n = most.min(of.len());
    (0..n).map(|i| of[i * of.len() / n]).collect()
}

/// Components by their means: of the first column, of the next where these are the same.
fn by_means(reference: &Reference) -> Vec<usize> {
    let (count, d) = (reference.weights.len(), reference.means.len() / reference.weights.len());
    let means = |k: usize| &reference.means[k * d..][..d];
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| {
        let differing = means(a).iter().zip(means(b)).map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne());
        differing.unwrap_or(std::cmp::Ordering::Equal)
    });
    order
}

#[cfg(test)]
mod tests {
    use rand::distr::Distribution;
    use rand_distr::StandardNormal;

    use super::*;
    use crate::rng::{Purpose, Rng, Seed};

    fn rng(seed: u64) -> Rng {
        Seed(seed).stream(Purpose::Auxiliary, 0, 0)
    }

    fn permutations(k: usize) -> Vec<Vec<usize>> {
        if k == 0 {
            return vec![vec![]];
        }
        let longer = |p: Vec<usize>| {
            (0..k).map(move |at| {
                let mut p = p.clone();
                p.insert(at, k - 1);
                p
            })
        };
        permutations(k - 1).into_iter().flat_map(longer).collect()
    }

    /// A mixture of so many components on two columns, around these means, with noise in everything.
    fn draw(means: &[[f64; 2]], noise: f64, rng: &mut Rng) -> Vec<f64> {
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let weights: Vec<f64> =
            (0..means.len()).map(|k| (1.0 + k as f64) * (noise * normal()).exp()).collect();
        let total: f64 = weights.iter().sum();
        let mut mixture: Vec<f64> = weights.iter().map(|w| w / total).collect();
        mixture.extend(means.iter().flatten().map(|m| m + noise * normal()));
        mixture.extend((0..2 * means.len()).map(|_| (noise * normal()).exp()));
        mixture
    }

    /// The mixture with component `order[l]` at place l.
    fn permuted(mixture: &[f64], order: &[usize]) -> Vec<f64> {
        let k = order.len();
        let rows = |first: usize| order.iter().flat_map(move |&c| mixture[first + 2 * c..][..2].to_vec());
        order.iter().map(|&c| mixture[c]).chain(rows(k)).chain(rows(3 * k)).collect()
    }

    fn aligned(mixtures: &[Vec<f64>], exchangeable: bool) -> (AlignedRepeat, Vec<Vec<f64>>) {
        let components = Components::DiagonalGaussian { count: mixtures[0].len() / 5, columns: 2 };
        let mut group = Group::new(1, components);
        mixtures.iter().enumerate().for_each(|(t, m)| group.add(t as f64 + 1.0, Some(m), true, 0.0));
        let Aligned { repeat, labels } = group.aligned(None, exchangeable);
        let apply = |(labels, mixture): (&Labels, &Vec<f64>)| match labels {
            Labels::Order { order, .. } => {
                permuted(mixture, &order.iter().map(|&k| k as usize).collect::<Vec<_>>())
            }
            Labels::Left => panic!("all are draws"),
        };
        (repeat, labels.iter().zip(mixtures).map(apply).collect())
    }

    const SEPARATED: [[f64; 2]; 4] = [[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0]];

    #[test]
    fn every_order_of_the_components_is_undone() {
        let (mut rng, orders) = (rng(1), permutations(4));
        assert_eq!(orders.len(), 24);
        let sources: Vec<Vec<f64>> = (0..24 * 8).map(|_| draw(&SEPARATED, 0.2, &mut rng)).collect();
        let shuffled: Vec<Vec<f64>> =
            sources.iter().enumerate().map(|(t, m)| permuted(m, &orders[t % 24])).collect();
        let (repeat, found) = aligned(&shuffled, true);
        // By the first mean, so that labels may differ from the source by one order, the same in all draws.
        let order = orders.iter().find(|order| permuted(&sources[0], order) == found[0]).unwrap();
        for (source, found) in sources.iter().zip(&found) {
            assert_eq!(&permuted(source, order), found);
        }
        assert_eq!((repeat.ambiguous, repeat.left, repeat.converged), (0.0, 0, true));
        assert!((repeat.permuted - 23.0 / 24.0).abs() < 1e-12, "{}", repeat.permuted);
    }

    #[test]
    fn labels_of_the_draws_do_not_matter() {
        // So near each other that assignments are a close matter.
        let means = [[0.0, 0.0], [0.6, 0.2], [1.0, 0.5]];
        let (mut rng, orders) = (rng(2), permutations(3));
        let sources: Vec<Vec<f64>> = (0..200).map(|_| draw(&means, 0.3, &mut rng)).collect();
        let shuffled: Vec<Vec<f64>> =
            sources.iter().enumerate().map(|(t, m)| permuted(m, &orders[t * t % 6])).collect();
        let ((one, first), (other, second)) = (aligned(&sources, true), aligned(&shuffled, true));
        assert_eq!(first, second);
        assert!((one.ambiguous - other.ambiguous).abs() < 1e-12);
        assert_eq!((one.pivot, one.iterations), (other.pivot, other.iterations));
    }

    #[test]
    fn components_that_are_alike_are_ambiguous() {
        let mut rng = rng(3);
        let alike: Vec<Vec<f64>> = (0..300)
            .map(|_| {
                let mut mixture = draw(&[[0.0, 0.0]; 2], 0.1, &mut rng);
                let mean = 0.5 * (mixture[0] + mixture[1]);
                (mixture[0], mixture[1]) = (mean, mean);
                mixture
            })
            .collect();
        let (repeat, _) = aligned(&alike, true);
        // Not all: a draw in which chance has set them apart is nearer to one order of a reference that chance has split.
        assert!(repeat.ambiguous > 0.7, "{}", repeat.ambiguous);
        assert_eq!(repeat.ambiguous_components, [repeat.ambiguous; 2]);
        // Two that are alike beside one that is not: its label is clear.
        let mixed: Vec<Vec<f64>> =
            (0..300).map(|_| draw(&[[0.0, 0.0], [0.0, 0.0], [9.0, 9.0]], 0.1, &mut rng)).collect();
        let (repeat, _) = aligned(&mixed, true);
        assert_eq!(repeat.ambiguous_components[2], 0.0);
        let (repeat, _) =
            aligned(&(0..300).map(|_| draw(&SEPARATED, 0.1, &mut rng)).collect::<Vec<_>>(), true);
        assert_eq!(repeat.ambiguous, 0.0);
    }

    #[test]
    fn labels_that_were_kept_are_kept() {
        let mut rng = rng(4);
        let descending = [[4.0, 0.0], [0.0, 0.0]];
        let sources: Vec<Vec<f64>> = (0..50).map(|_| draw(&descending, 0.1, &mut rng)).collect();
        assert_eq!(aligned(&sources, false).1, sources);
        assert_eq!(aligned(&sources, false).0.permuted, 0.0);
        // Where all orders are alike, the reference is in the order of its means.
        assert!(aligned(&sources, true).1.iter().all(|m| m[2] < 1.0));
    }

    #[test]
    fn failed_draws_stay_and_weights_count() {
        let components = Components::DiagonalGaussian { count: 2, columns: 2 };
        let means = [[0.0, 0.0], [4.0, 0.0]];
        let (mut group, mut rng) = (Group::new(1, components), rng(5));
        let straight: Vec<Vec<f64>> = (0..30).map(|_| draw(&means, 0.1, &mut rng)).collect();
        for (t, mixture) in straight.iter().enumerate() {
            let swapped = permuted(mixture, &[1, 0]);
            // Draws in the other order weigh three times as much.
            let (mixture, weight) = if t % 2 == 0 { (mixture, 1.0f64) } else { (&swapped, 3.0) };
            group.add(t as f64, (t != 7).then_some(mixture), true, 700.0 + weight.ln());
        }
        let Aligned { repeat, labels } = group.aligned(None, true);
        assert_eq!((repeat.draws, repeat.left, labels[7].clone()), (30, 1, Labels::Left));
        assert!((repeat.permuted - 42.0 / 57.0).abs() < 1e-12, "{}", repeat.permuted);
        let nothing = {
            let mut group = Group::new(1, components);
            group.add(1.0, None, false, 0.0);
            group.aligned(None, true)
        };
        assert_eq!((nothing.labels, nothing.repeat.reference), (vec![Labels::Left], None));
    }
}
