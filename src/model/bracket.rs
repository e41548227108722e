//! Where a quantile of a draw will lie: the mass below is one sum, and only the rows of a narrow bracket have to be put in order.

use super::quantile::{select, weighted_quantile};
use crate::data::Dataset;
use crate::kernel::Level;
use crate::kernel::column::{CHOICES, choice, mass_of, masses_of};
use crate::process::Measure;

/// Two values that a quantile of a draw will lie between.
#[derive(Clone, Copy, Debug)]
pub struct Bracket {
    low: f64,
    high: f64,
}

impl Bracket {
    fn holds(&self, y: f64) -> bool {
        self.low <= y && y <= self.high
    }

    /// All values inside are one.
    fn is_point(&self) -> bool {
        self.low == self.high
    }

    /// The rows inside and their values; none where these are all alike.
    fn rows(&self, y: impl Iterator<Item = f64>) -> Vec<(usize, f64)> {
        if self.is_point() { Vec::new() } else { y.enumerate().filter(|(_, y)| self.holds(*y)).collect() }
    }

    /// Values that the mass below is wanted of.
    fn limits(&self) -> impl Iterator<Item = f64> {
        [self.low].into_iter().chain(self.is_point().then(|| self.high.next_up()))
    }
}

/// The first of some rows in order at which their masses have summed up to `target`; `None` where that is not beyond the rounding of sums that
/// are made in any order, of masses that are no more than `all`.
fn reached(rows: &[(usize, f64)], w: &[f64], target: f64, all: f64) -> Option<f64> {
    let slack = 4.0 * rows.len() as f64 * f64::EPSILON * all;
    let mut mass = 0.0;
    for &(i, y) in rows {
        if mass + slack >= target {
            return None;
        }
        mass += w[i];
        if mass > target + slack {
            return Some(y);
        }
    }
    None
}

/// A quantile of a column, where it will lie, and the rows there.
pub struct Wanted {
    pub q: f64,
    bracket: Bracket,
    inside: Vec<(usize, f64)>,
    /// The same in the order of their values.
    ordered: Vec<(usize, f64)>,
    /// The rows below each of its [limits](Bracket::limits).
    below: Vec<Vec<u8>>,
}

impl Wanted {
    /// Of a column with values `y`.
    pub fn new(q: f64, bracket: Bracket, y: impl Iterator<Item = f64> + Clone) -> Wanted {
        let of_limit = |limit: f64| choice(y.clone().map(|y| y < limit));
        let below = bracket.limits().map(of_limit).collect();
        let inside = bracket.rows(y);
        let mut ordered = inside.clone();
        ordered.sort_by(|a, b| a.1.total_cmp(&b.1));
        Wanted { q, bracket, inside, ordered, below }
    }

    /// The lower q-quantile of column j under F, of which the mass of all observed rows and of those below each of the
    /// [limits](Bracket::limits) is known: only the rows inside are looked at.
    fn quantile(&self, f: &Measure, j: usize, all: f64, masses: &[f64]) -> f64 {
        let Wanted { q, bracket, inside, ordered, .. } = self;
        let mut parts = f.atoms().peekable();
        let observed = parts.next().expect("there are rows");
        let (mut all, mut below) = (all, masses[0]);
        let alone = parts.peek().is_none();
        if let Some(found) = alone.then(|| reached(ordered, observed.w, q * all - below, all)).flatten() {
            return found;
        }
        let mut mass = if bracket.is_point() { masses[1] - below } else { 0.0 };
        let mut atoms: Vec<(f64, f64)> = inside.iter().map(|&(i, y)| (y, observed.w[i])).collect();
        for (y, &w) in parts.flat_map(|part| part.x.column(j).zip(part.w)) {
            all += w;
            below += if y < bracket.low { w } else { 0.0 };
            if bracket.holds(y) {
                atoms.push((y, w));
            }
        }
        mass += atoms.iter().map(|(_, w)| w).sum::<f64>();
        let target = q * all - below;
        match target > 0.0 && target <= mass {
            true if bracket.is_point() => bracket.low,
            true => select(&mut atoms, target),
            false => weighted_quantile(f, j, *q),
        }
    }
}

/// The lower quantiles of column j under F, whose observed rows are those that the brackets know. The masses below all brackets are of one
/// pass, or few.
pub fn quantiles(f: &Measure, j: usize, wanted: &[&Wanted]) -> Vec<f64> {
    let below: Vec<&[u8]> = wanted.iter().flat_map(|one| &one.below).map(|rows| &rows[..]).collect();
    // The mass of a row, with that of the pseudo-samples that are this row.
    let w = f.atoms().next().expect("there are rows").w;
    let (mut all, mut masses) = (0.0, Vec::with_capacity(below.len()));
    for below in below.chunks(CHOICES) {
        match below {
            &[rows] => {
                let (of_all, mass) = mass_of(Level::current(), w, rows);
                all = of_all;
                masses.push(mass);
            }
            some => {
                let padded = std::array::from_fn(|k| some[k.min(some.len() - 1)]);
                let (of_all, of_some) = masses_of(Level::current(), w, &padded);
                all = of_all;
                masses.extend_from_slice(&of_some[..some.len()]);
            }
        }
    }
    let mut masses = &masses[..];
    let of_one = |one: &&Wanted| {
        let (own, rest) = masses.split_at(one.below.len());
        masses = rest;
        one.quantile(f, j, all, own)
    };
    wanted.iter().map(of_one).collect()
}

/// How far the mass below a value is from what the data say.
pub struct Spread {
    /// Rows that would have it if each had a weight of its own.
    rows: f64,
    /// The share of pseudo-samples.
    prior: f64,
}

impl Spread {
    /// Brackets go so many standard deviations to each side.
    const WIDTH: f64 = 5.0;
    /// They are found on at most about so many rows.
    const ROWS: usize = 1 << 18;

    pub fn of(train: &Dataset, alpha: f64) -> Spread {
        let mass = train.mass();
        let rows = match train.design.clusters() {
            None => mass,
            Some(clusters) => {
                let mut sizes = vec![0.0; clusters.count];
                clusters.of.iter().enumerate().for_each(|(i, &k)| sizes[k] += train.weight(i));
                mass * mass / sizes.iter().map(|s| s * s).sum::<f64>().max(f64::MIN_POSITIVE)
            }
        };
        Spread { rows: rows.max(1.0), prior: alpha / (alpha + mass).max(f64::MIN_POSITIVE) }
    }

    pub fn bracket(&self, train: &Dataset, j: usize, q: f64) -> Bracket {
        let step = train.n().div_ceil(Self::ROWS).max(1);
        let seen = self.rows / step as f64;
        let both = 1.0 / self.rows + if step > 1 { 1.0 / seen } else { 0.0 };
        let half = Self::WIDTH * (q * (1.0 - q) * both).sqrt() + self.prior;
        let picked = train.x.column(j).enumerate().step_by(step);
        let mut atoms: Vec<(f64, f64)> = picked.map(|(i, y)| (y, train.weight(i))).collect();
        let mass: f64 = atoms.iter().map(|(_, w)| w).sum();
        let mut at = |share: f64| select(&mut atoms, share * mass);
        let low = if q - half > 0.0 { at(q - half) } else { f64::NEG_INFINITY };
        let high = if q + half < 1.0 { at(q + half) } else { f64::INFINITY };
        Bracket { low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a bracket says, right or wrong, the quantile is that of all atoms.
    #[test]
    fn a_bracket_saves_time_and_changes_nothing() {
        let y: Vec<f64> = (0..500).map(|i| ((i * 7919) % 211) as f64).collect();
        let data = Dataset::from_values(y.clone());
        let spread = Spread::of(&data, 0.0);
        for draw in 0..50 {
            let f = crate::process::Prior::Noninformative.posterior_draw(&data, crate::rng::Seed(3), draw);
            for q in [0.01, 0.3, 0.5, 0.97] {
                let found = |bracket: Bracket| {
                    let wanted = Wanted::new(q, bracket, y.iter().copied());
                    let both = quantiles(&f, 0, &[&wanted, &wanted]);
                    assert_eq!(both, [quantiles(&f, 0, &[&wanted])[0]; 2]);
                    both[0]
                };
                let exact = weighted_quantile(&f, 0, q);
                let away = [(-5.0, -1.0), (300.0, 400.0), (f64::NEG_INFINITY, f64::INFINITY), (exact, exact)];
                let wrong = away.map(|(low, high)| Bracket { low, high });
                for bracket in wrong.into_iter().chain([spread.bracket(&data, 0, q)]) {
                    assert_eq!(found(bracket), exact, "q {q}, {bracket:?}");
                }
            }
        }
    }
    /// A sum that comes as near to the target as rounding may take it decides nothing.
    #[test]
    fn a_target_in_doubt_is_left_to_the_sums_of_all_atoms() {
        let (rows, w) = ([(2, 1.0), (0, 4.0), (1, 9.0)], [0.25, 0.25, 0.5]);
        let at = |target: f64| reached(&rows, &w, target, 1.0);
        assert_eq!([0.1, 0.6, 0.9].map(at), [Some(1.0), Some(4.0), Some(9.0)]);
        for near in [0.0, 0.5, 0.75, 1.0] {
            assert_eq!([near, near - 1e-15, near + 1e-15].map(at), [None; 3], "{near}");
        }
        assert_eq!([-0.1, 1.1].map(at), [None; 2]);
    }
}
