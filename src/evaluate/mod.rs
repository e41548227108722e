//! Predictive performance on test data (supplement E.3.1), and sparsity, summed up draw by draw: neither draws nor an
//! array of draws by test rows is kept.

mod means;
mod tally;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::bootstrap::Draw;
use crate::bytes::{Bytes, bytes};
use crate::data::Dataset;
use crate::kernel::Level;
use crate::kernel::log_sums::log_add;
use crate::math::{log_add_exp, mean};
use crate::model::{Model, Response};
pub use means::Means;
use tally::Tally;

/// A number and its Monte Carlo standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    #[serde(deserialize_with = "nan_for_null")]
    pub value: f64,
    #[serde(deserialize_with = "nan_for_null")]
    pub mcse: f64,
}

/// JSON has no NaN and writes it as null; this reads it back.
pub fn nan_for_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

/// How draws are dealt out over the groups behind a Monte Carlo error. Groups must be independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// In turn: for independent draws.
    InTurn,
    /// In runs of consecutive draws, of so many in all: for chains, whose neighbours are alike.
    InRuns(u64),
}

impl Dealing {
    fn group(self, draw: u64, groups: usize) -> usize {
        match self {
            Dealing::InTurn => (draw % groups as u64) as usize,
            Dealing::InRuns(draws) => (draw * groups as u64 / draws.max(1)).min(groups as u64 - 1) as usize,
        }
    }
}

impl Bytes for Dealing {
    fn put(&self, out: &mut Vec<u8>) {
        let draws = match self {
            Dealing::InTurn => None,
            Dealing::InRuns(draws) => Some(*draws),
        };
        draws.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Dealing> {
        <Option<u64> as Bytes>::take(from).map(|draws| draws.map_or(Dealing::InTurn, Dealing::InRuns))
    }
}

bytes!(Estimate { value, mcse });
bytes!(ByRestarts { restarts, lppd });
bytes!(Predictive { log_sums, rows, log_weights, dealing });
bytes!(Means { dealing, sums, log_scale });
bytes!(Sparsity { coefficients, epsilon, means });
bytes!(OnTest { all, means, by_restarts, most });

/// log Σ_b w_b f(ỹᵢ | θ_b) of every test row, draws dealt out over groups. The groups are independent parts of the
/// posterior sample, so leaving each out in turn gives the Monte Carlo error of what is smooth; that of a count: [`Tally`].
#[derive(Clone, Debug)]
pub struct Predictive {
    /// Of every group; empty for one without draws.
    log_sums: Vec<Vec<f64>>,
    rows: usize,
    /// log Σ_b w_b of every group.
    log_weights: Vec<f64>,
    dealing: Dealing,
}

impl Predictive {
    pub fn new(rows: usize, groups: usize, dealing: Dealing) -> Self {
        Predictive {
            log_sums: vec![Vec::new(); groups],
            rows,
            log_weights: vec![f64::NEG_INFINITY; groups],
            dealing,
        }
    }

    /// Adds a draw by its log densities; one without weights has log weight 0.
    pub fn add(&mut self, draw: u64, log_weight: f64, log_density: &[f64]) {
        let g = self.dealing.group(draw, self.log_weights.len());
        self.log_sums[g].resize(self.rows, f64::NEG_INFINITY);
        self.log_weights[g] = log_add_exp(self.log_weights[g], log_weight);
        log_add(Level::current(), &mut self.log_sums[g], log_weight, log_density);
    }

    /// Adds the draws that come next.
    pub fn fold(&mut self, next: &Predictive) {
        for (g, log_sums) in next.log_sums.iter().enumerate().filter(|(_, sums)| !sums.is_empty()) {
            self.log_weights[g] = log_add_exp(self.log_weights[g], next.log_weights[g]);
            match self.log_sums[g].is_empty() {
                true => self.log_sums[g].clone_from(log_sums),
                false => log_add(Level::current(), &mut self.log_sums[g], 0.0, log_sums),
            }
        }
    }

    /// log p(ỹᵢ) of every row, eq. (E.10), without group `left_out`.
    pub fn log_predictive(&self, left_out: Option<usize>) -> Vec<f64> {
        let kept: Vec<usize> = self.filled().into_iter().filter(|&g| Some(g) != left_out).collect();
        let log_weight = kept.iter().fold(f64::NEG_INFINITY, |sum, &g| log_add_exp(sum, self.log_weights[g]));
        let mut total = vec![f64::NEG_INFINITY; self.rows];
        kept.iter().for_each(|&g| log_add(Level::current(), &mut total, 0.0, &self.log_sums[g]));
        total.iter_mut().for_each(|sum| *sum -= log_weight);
        total
    }

    /// Smooth functions of the log predictive densities, each with its jackknife error over the groups.
    fn estimates<const M: usize>(&self, metrics: impl Fn(&[f64]) -> [f64; M]) -> [Estimate; M] {
        let without = self.filled().into_iter().map(|g| metrics(&self.log_predictive(Some(g))));
        let without: Vec<[f64; M]> = without.collect();
        let values = metrics(&self.log_predictive(None));
        std::array::from_fn(|m| {
            let leave_one_out: Vec<f64> = without.iter().map(|w| w[m]).collect();
            Estimate { value: values[m], mcse: jackknife(&leave_one_out) }
        })
    }

    /// Mean LPPD, eq. (E.11).
    pub fn lppd(&self) -> Estimate {
        let [lppd] = self.estimates(|log_p| [mean(log_p)]);
        lppd
    }

    /// Mean LPPD, mean squared error of the predictive probability of a response 1, eq. (E.12), and per cent of responses
    /// on the right side of ½, eq. (E.13). All follow from p, the predictive probability of the response that came.
    pub fn classification(&self, y: &[f64]) -> [Estimate; 3] {
        let [lppd, mse] = self.estimates(|log_p| {
            let squares: f64 = log_p.iter().map(|l| libm::exp(*l)).map(|p| (1.0 - p) * (1.0 - p)).sum();
            [mean(log_p), squares / y.len() as f64]
        });
        [lppd, mse, self.accuracy(y)]
    }

    /// Share of pairs of a response 1 and a response 0 in which the 1 has the higher predictive probability of a 1; ties count half.
    pub fn auc(&self, y: &[f64]) -> Estimate {
        let [auc] = self.estimates(|log_p| {
            // In terms of log odds: probabilities near 1 have no digits left.
            let odds = |(l, y): (&f64, &f64)| {
                let odds = l - libm::log(-libm::expm1(*l));
                (if *y == 1.0 { odds } else { -odds }, *y == 1.0)
            };
            [share_above(log_p.iter().zip(y).map(odds).collect())]
        });
        auc
    }

    fn accuracy(&self, y: &[f64]) -> Estimate {
        let groups = self.filled();
        let log_weight = self.log_weights.iter().copied().fold(f64::NEG_INFINITY, log_add_exp);
        let share = |log: f64| libm::exp(log - log_weight);
        let weights: Vec<f64> = groups.iter().map(|&g| share(self.log_weights[g])).collect();
        let mut tally = Tally::new(0.5..f64::INFINITY, groups.len(), y.len());
        for (i, (log_p, &y)) in self.log_predictive(None).iter().zip(y).enumerate() {
            let p = libm::exp(*log_p);
            let part = |(&g, weight): (&usize, &f64)| share(self.log_sums[g][i]) - p * weight;
            let parts: Vec<f64> = groups.iter().zip(&weights).map(part).collect();
            tally.add(p, if y == 1.0 { p > 0.5 } else { p >= 0.5 }, &parts);
        }
        tally.percent()
    }

    /// Groups that have a draw.
    pub fn groups(&self) -> impl Iterator<Item = usize> {
        self.filled().into_iter()
    }

    fn filled(&self) -> Vec<usize> {
        (0..self.log_weights.len()).filter(|&g| self.log_weights[g] > f64::NEG_INFINITY).collect()
    }
}

/// Share of pairs (one marked, one not) in which the marked value is higher, ties half; NaN without a pair.
fn share_above(mut values: Vec<(f64, bool)>) -> f64 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let marked = values.iter().filter(|(_, marked)| *marked).count() as f64;
    let (mut below, mut pairs) = (0.0, 0.0);
    for run in values.chunk_by(|a, b| a.0 == b.0) {
        let here = run.iter().filter(|(_, marked)| *marked).count() as f64;
        let others = run.len() as f64 - here;
        pairs += here * (below + 0.5 * others);
        below += others;
    }
    pairs / (marked * (values.len() as f64 - marked))
}

/// Standard error from the values without each of several equal parts; NaN for a single part.
pub fn jackknife(leave_one_out: &[f64]) -> f64 {
    let k = leave_one_out.len() as f64;
    let centre = mean(leave_one_out);
    let variance = (k - 1.0) / k * leave_one_out.iter().map(|v| (v - centre).powi(2)).sum::<f64>();
    // Values that are all the same differ by rounding alone.
    let error = if variance.sqrt() > 1e-12 * centre.abs() { variance.sqrt() } else { 0.0 };
    if k > 1.0 { error } else { f64::NAN }
}

/// Per cent of coefficients whose posterior mean is below `epsilon` in absolute value (supplement E.3.2).
#[derive(Clone, Debug)]
pub struct Sparsity {
    coefficients: Range<usize>,
    epsilon: f64,
    means: Means,
}

impl Sparsity {
    pub fn new(coefficients: Range<usize>, epsilon: f64, dealing: Dealing) -> Self {
        Sparsity { coefficients, epsilon, means: Means::new(dealing) }
    }

    pub fn add(&mut self, draw: u64, log_weight: f64, theta: &[f64]) {
        self.means.add(draw, log_weight, &theta[self.coefficients.clone()]);
    }

    /// Adds the draws that come next.
    pub fn fold(&mut self, next: &Sparsity) {
        self.means.fold(&next.means);
    }

    pub fn estimate(&self) -> Estimate {
        let filled = self.means.filled();
        let weight: f64 = filled.iter().map(|(_, weight)| weight).sum();
        let mut tally = Tally::new(-self.epsilon..self.epsilon, filled.len(), self.coefficients.len());
        for j in 0..self.coefficients.len() {
            let mean = filled.iter().map(|(sums, _)| sums[j]).sum::<f64>() / weight;
            let parts: Vec<f64> = filled.iter().map(|(sums, w)| (sums[j] - mean * w) / weight).collect();
            tally.add(mean, mean.abs() < self.epsilon, &parts);
        }
        tally.percent()
    }
}

/// Groups behind a Monte Carlo error: the error of the error is about 1/√(2 · 50).
const GROUPS: usize = 50;
/// Groups for the table over r, which needs one [`Predictive`] per line.
const GROUPS_BY_RESTARTS: usize = 20;

/// LPPD as it would have been with fewer restarts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByRestarts {
    pub restarts: usize,
    pub lppd: Estimate,
}

/// What a draw says of the test rows.
#[derive(Clone, Debug, Default)]
pub struct OnRows {
    /// log f_θ(ỹᵢ).
    pub log_density: Vec<f64>,
    /// E[ỹᵢ | x̃ᵢ, θ], where the squared error is one of it; the probabilities of all classes, where it is one; empty elsewhere.
    pub mean: Vec<f64>,
}

/// The expensive part of evaluating θ.
pub fn on_rows(model: &dyn Model, theta: &[f64], test: &Dataset) -> OnRows {
    let mut rows = OnRows { log_density: vec![0.0; test.n()], mean: Vec::new() };
    model.log_density(theta, test, &mut rows.log_density);
    if let Some(Response::Class(classes)) = model.response() {
        rows.mean.resize(test.n() * classes, 0.0);
        model.probabilities(theta, test, &mut rows.mean);
    } else if predicts(model, test) {
        rows.mean.resize(test.n(), 0.0);
        model.mean(theta, test, &mut rows.mean);
    }
    rows
}

/// Whether the squared error of a predicted mean can be told: that of a response 0 or 1 follows from its density, and a censored
/// response is not known.
pub fn predicts(model: &dyn Model, test: &Dataset) -> bool {
    let numbers =
        model.response().is_some_and(|response| !matches!(response, Response::Binary | Response::Class(_)));
    let known = test.event.as_ref().is_none_or(|event| event.iter().all(|&e| e == 1.0));
    numbers && known && model.has_mean()
}

/// The test rows at each point where a draw would have ended with fewer restarts, and the restart that found it. The last is
/// the draw itself, and it alone has means.
pub type Records = Vec<(usize, OnRows)>;

/// The expensive part of evaluating a draw.
pub fn records(model: &dyn Model, draw: &Draw, test: &Dataset) -> Records {
    // A restart that failed would have been made up for by the next.
    let found = |(r, _): &(usize, &[f64])| *r == draw.restart || !draw.values[r - 1].is_nan();
    let at = |(r, theta): (usize, &[f64])| match r == draw.restart {
        true => (r, on_rows(model, theta, test)),
        false => {
            let mut log_density = vec![0.0; test.n()];
            model.log_density(theta, test, &mut log_density);
            (r, OnRows { log_density, mean: Vec::new() })
        }
    };
    draw.records().filter(found).map(at).collect()
}

/// The predictive density of the draws on test data, and the predictive mean; and the density of the same draws cut off after r restarts, if they may make
/// more than one.
#[derive(Clone, Debug)]
pub struct OnTest {
    all: Predictive,
    /// E[ỹᵢ | x̃ᵢ], where it is asked for.
    means: Means,
    by_restarts: Vec<(usize, Predictive)>,
    most: usize,
}

impl OnTest {
    /// For draws that make at most `restarts`, those of a rescue not counted.
    pub fn new(rows: usize, restarts: usize, dealing: Dealing) -> Self {
        let grid = if restarts > 1 { restart_grid(restarts) } else { Vec::new() };
        let by_restarts = grid.into_iter().map(|r| (r, Predictive::new(rows, GROUPS_BY_RESTARTS, dealing)));
        let all = Predictive::new(rows, GROUPS, dealing);
        OnTest { all, means: Means::new(dealing), by_restarts: by_restarts.collect(), most: 1 }
    }

    /// Adds a draw that was found in one attempt.
    pub fn add_one(&mut self, draw: u64, log_weight: f64, rows: &OnRows) {
        self.all.add(draw, log_weight, &rows.log_density);
        if !rows.mean.is_empty() {
            self.means.add(draw, log_weight, &rows.mean);
        }
    }

    /// Adds a draw by its records.
    pub fn add(&mut self, draw: &Draw, records: &Records) {
        let (_, last) = records.last().expect("a draw ends somewhere");
        self.add_one(draw.index, 0.0, last);
        let restarts = self.by_restarts.last().map_or(1, |(r, _)| *r);
        self.most = self.most.max(draw.values.len().min(restarts));
        for (r, predictive) in &mut self.by_restarts {
            let made = records.iter().take_while(|(at, _)| at <= r).last().unwrap_or(&records[0]);
            let rows = if *r == restarts { last } else { &made.1 };
            predictive.add(draw.index, 0.0, &rows.log_density);
        }
    }

    /// Adds the draws that come next.
    pub fn fold(&mut self, next: &OnTest) {
        self.all.fold(&next.all);
        self.means.fold(&next.means);
        self.most = self.most.max(next.most);
        let lines = self.by_restarts.iter_mut().zip(&next.by_restarts);
        lines.for_each(|((_, line), (_, next))| line.fold(next));
    }

    pub fn predictive(&self) -> &Predictive {
        &self.all
    }

    /// Mean squared error of the predictive mean, if it was asked for.
    pub fn squared_error(&self, y: &[f64]) -> Option<Estimate> {
        self.means.estimate(|means| {
            let squares = means.iter().zip(y).map(|(m, y)| (y - m) * (y - m));
            squares.sum::<f64>() / y.len() as f64
        })
    }

    /// Per cent of responses whose class has the highest predictive probability, the first of equal ones.
    pub fn accuracy(&self, y: &[f64], classes: usize) -> Option<Estimate> {
        self.means.estimate(|means| {
            let best = |p: &[f64]| (0..p.len()).rev().max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap_or(0);
            let right = means.chunks(classes).zip(y).filter(|(p, y)| best(p) as f64 == **y).count();
            100.0 * right as f64 / y.len() as f64
        })
    }

    /// LPPD over r, up to the most restarts that a draw made; a stopping rule may have ended them all before R.
    pub fn by_restarts(&self) -> Vec<ByRestarts> {
        let fewer = self.by_restarts.iter().filter(|(r, _)| *r < self.most);
        let all = self.by_restarts.iter().find(|(r, _)| *r >= self.most && self.most > 1);
        fewer
            .map(|(r, predictive)| (*r, predictive))
            .chain(all.map(|(_, predictive)| (self.most, predictive)))
            .map(|(restarts, predictive)| ByRestarts { restarts, lppd: predictive.lppd() })
            .collect()
    }
}

/// 1, 2, 3, 5, 10, 20, 30, 50, 100, … and `most`.
fn restart_grid(most: usize) -> Vec<usize> {
    let decades = (0..).map(|e| 10usize.saturating_pow(e)).take_while(|&ten| ten <= most);
    let mut grid: Vec<usize> =
        decades.flat_map(|ten| [1, 2, 3, 5].map(|m| m * ten)).filter(|&r| r < most).collect();
    grid.push(most);
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::Minimum;

    #[test]
    fn lppd_is_the_mean_log_of_the_mean_density() {
        let densities = [[0.1, 0.4], [0.3, 0.2], [0.2, 0.6]];
        let mut predictive = Predictive::new(2, 3, Dealing::InTurn);
        for (b, d) in densities.iter().enumerate() {
            predictive.add(b as u64, 0.0, &d.map(f64::ln));
        }
        let exact = 0.5 * (0.2f64.ln() + 0.4f64.ln());
        assert!((predictive.lppd().value - exact).abs() < 1e-14);
    }

    /// Draws with weights 1, 2 and 1 are the same as the second one twice; weights may be of any size.
    #[test]
    fn weights_stand_for_repeated_draws() {
        let draws = [([0.1f64, 0.4], 0.3), ([0.3, 0.2], -0.05), ([0.2, 0.6], 0.04)];
        let (mut plain, mut weighted) =
            (Predictive::new(2, 2, Dealing::InTurn), Predictive::new(2, 2, Dealing::InTurn));
        let (mut plain_mean, mut weighted_mean) =
            (Sparsity::new(0..1, 0.08, Dealing::InTurn), Sparsity::new(0..1, 0.08, Dealing::InTurn));
        for (b, times) in [(0, 1), (1, 2), (2, 1)] {
            let (density, theta) = (draws[b].0.map(f64::ln), [draws[b].1]);
            let log_weight = -900.0 + libm::log(times as f64);
            weighted.add(b as u64, log_weight, &density);
            weighted_mean.add(b as u64, log_weight, &theta);
            for _ in 0..times {
                plain.add(b as u64, 0.0, &density);
                plain_mean.add(b as u64, 0.0, &theta);
            }
        }
        assert!((plain.lppd().value - weighted.lppd().value).abs() < 1e-12);
        assert!((plain.lppd().mcse - weighted.lppd().mcse).abs() < 1e-12);
        // Mean (0.3 - 0.1 + 0.04)/4 = 0.06 is below 0.08, which the plain mean of the three, 0.097, is not.
        assert_eq!((plain_mean.estimate().value, weighted_mean.estimate().value), (100.0, 100.0));
    }

    #[test]
    fn chains_are_dealt_out_in_runs() {
        let groups: Vec<usize> = (0..10).map(|b| Dealing::InRuns(10).group(b, 4)).collect();
        assert_eq!(groups, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!((0..5).map(|b| Dealing::InTurn.group(b, 2)).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn squared_error_and_accuracy_follow_from_the_predictive_probability() {
        // Predictive probabilities of a response 1: 0.9, 0.4, 0.5, 0.2; responses 1, 1, 0, 0.
        let y = [1.0, 1.0, 0.0, 0.0];
        let p = [0.9f64, 0.4, 0.5, 0.2];
        let mut predictive = Predictive::new(4, 2, Dealing::InTurn);
        for b in 0..2 {
            let log_p: Vec<f64> =
                p.iter().zip(y).map(|(p, y)| if y == 1.0 { p.ln() } else { (1.0 - p).ln() }).collect();
            predictive.add(b, 0.0, &log_p);
        }
        let [lppd, mse, accuracy] = predictive.classification(&y);
        assert!((lppd.value - (0.9f64 * 0.4 * 0.5 * 0.8).ln() / 4.0).abs() < 1e-14);
        assert!((mse.value - (0.01 + 0.36 + 0.25 + 0.04) / 4.0).abs() < 1e-14);
        assert_eq!(accuracy.value, 75.0, "0.5 is not above one half: it predicts a response 0");
    }

    #[test]
    fn the_area_under_the_curve_counts_pairs() {
        // 0.9 and 0.4 are responses 1; of the pairs with 0.5, 0.4 and 0.2 two of three and one and a half of three are right.
        let values = vec![(0.9, true), (0.4, true), (0.5, false), (0.4, false), (0.2, false)];
        assert_eq!(share_above(values), (3.0 + 1.5) / 6.0);
        assert!(share_above(vec![(1.0, true)]).is_nan());
    }

    #[test]
    fn sparsity_counts_posterior_means_not_draws() {
        let mut sparsity = Sparsity::new(0..3, 0.1, Dealing::InTurn);
        sparsity.add(0, 0.0, &[1.0, 0.3, 0.05, 9.0]);
        sparsity.add(1, 0.0, &[-1.0, 0.1, -0.01, 9.0]);
        assert!((sparsity.estimate().value - 200.0 / 3.0).abs() < 1e-12, "means 0, 0.2 and 0.02");
    }

    /// A draw of one test row, by the objectives of its restarts; the density at a record is its number.
    fn tested(index: u64, values: &[f64]) -> (Draw, Records) {
        let mut records: Vec<usize> = Vec::new();
        for (r, v) in values.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
            if records.last().is_none_or(|&best| *v < values[best - 1]) {
                records.push(r + 1);
            }
        }
        let row = |r: usize| OnRows { log_density: vec![libm::log(r as f64)], mean: vec![r as f64] };
        let found = records.iter().map(|&r| (r, row(r))).collect();
        let restart = *records.last().unwrap();
        let minimum = Minimum::closed_form(vec![0.0], values[restart - 1]);
        (
            Draw { index, minimum, restart, values: values.to_vec(), earlier: Vec::new(), distance: None },
            found,
        )
    }

    #[test]
    fn fewer_restarts_end_at_an_earlier_record() {
        let mut on_test = OnTest::new(1, 10, Dealing::InTurn);
        for (index, values) in
            [&[3.0, 2.0, 2.0, 1.0][..], &[f64::NAN, f64::NAN, 5.0, 6.0]].into_iter().enumerate()
        {
            let (draw, records) = tested(index as u64, values);
            on_test.add(&draw, &records);
        }
        // The second draw failed twice: with one restart or two it would have gone on to the third.
        let expected = [(1, 2.0), (2, 2.5), (3, 2.5), (4, 3.5)];
        let found = on_test.by_restarts();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (line, (r, mean)) in found.iter().zip(expected) {
            assert_eq!(line.restarts, r);
            assert!((line.lppd.value - libm::log(mean)).abs() < 1e-14, "{line:?}");
        }
        assert!((on_test.predictive().lppd().value - libm::log(3.5)).abs() < 1e-14);
        // Both draws end at restarts 4 and 3: the mean is 3.5, too.
        assert_eq!(on_test.squared_error(&[3.0]).unwrap().value, 0.25);
    }

    #[test]
    fn one_restart_has_no_table() {
        let mut on_test = OnTest::new(1, 1, Dealing::InTurn);
        let (rescued, records) = tested(0, &[f64::NAN, 1.0]);
        on_test.add(&rescued, &records);
        assert_eq!(on_test.by_restarts(), []);
    }

    /// log of a mean of exponentials: the delta method gives the exact error, the jackknife must agree.
    #[test]
    fn the_monte_carlo_error_is_right() {
        use crate::rng::{Purpose, Seed, log_uniform};
        let errors: Vec<(f64, f64)> = (0..200)
            .map(|s| {
                let mut rng = Seed(s).stream(Purpose::Auxiliary, 0, 0);
                let mut predictive = Predictive::new(1, 50, Dealing::InTurn);
                for b in 0..1000 {
                    predictive.add(b, 0.0, &[libm::log(-log_uniform(&mut rng))]);
                }
                let estimate = predictive.lppd();
                (estimate.value, estimate.mcse)
            })
            .collect();
        let values: Vec<f64> = errors.iter().map(|e| e.0).collect();
        let reported = mean(&errors.iter().map(|e| e.1).collect::<Vec<_>>());
        // Var(log mean of Exp(1)) ≈ 1/B; the sd over 200 runs is known to 5 %, the mean of the mcse to 1 %.
        assert!((crate::math::sd(&values) * 1000f64.sqrt() - 1.0).abs() < 0.25);
        assert!((reported * 1000f64.sqrt() - 1.0).abs() < 0.05, "{reported}");
    }

    #[test]
    fn the_grid_ends_at_the_most_restarts() {
        assert_eq!(restart_grid(10), [1, 2, 3, 5, 10]);
        assert_eq!(restart_grid(2), [1, 2]);
        assert_eq!(restart_grid(40), [1, 2, 3, 5, 10, 20, 30, 40]);
    }
}
