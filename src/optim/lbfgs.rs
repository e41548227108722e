//! L-BFGS (Nocedal and Wright 2006, Algorithm 7.4) for a block of searches in step: each round evaluates one trial point
//! of every search that is still open, so that an objective can answer all of them with one pass over the data. By
//! hand, because no crate evaluates several problems at once; a search does the same whatever its neighbours do.

use std::collections::VecDeque;

use ndarray::Array2;

use super::batch::{BatchObjective, Trial};
use super::line_search::{LineSearch, Verdict};
use super::progress::{Progress, Stall};
use super::{Minimum, Status};
use crate::kernel::{LANES, Level, entries};
use crate::math::largest;

/// When searches end.
pub struct Settings {
    pub max_iterations: usize,
    /// √(n gᵀH⁻¹g) that is close enough, with n = `mass`.
    pub tolerance: f64,
    pub mass: f64,
    /// Largest gradient entry that is close enough.
    pub gradient: f64,
    /// Instead of both: decrease of the objective in an iteration, relative to max(1, |L|), below which a search ends.
    pub change: Option<f64>,
    /// Weight of Σ fⱼ|θⱼ|, added to the objective (OWL-QN, Andrew and Gao 2007).
    pub l1: f64,
    /// fⱼ of the first entries; the others have none.
    pub l1_factors: Vec<f64>,
}

/// Pairs of steps and gradient changes that are kept: without H₀, and with one, which leaves them less to say; from near the minimum
/// they stay true, and save steps where H₀ is poor.
const MEMORY: usize = 10;
const MEMORY_WITH_METRIC: usize = 5;
const MEMORY_NEAR: usize = 40;
/// A search that rounding stops within this factor of the wanted gradient has converged.
pub const STALLED: f64 = 1e3;
/// Share of the tolerance within which a search whose gradient shrinks no further is at its minimum.
const ROUNDING: f64 = 1e-3;
/// Squared distance to the minimum, in posterior variances per parameter, beyond which a search is far from it.
const FAR: f64 = 10.0;
/// Under `change`, a search ends where no gradient entry is above this, too, as scipy's L-BFGS-B does.
const PLAIN_GRADIENT: f64 = 1e-5;

/// A point with its loss and gradient.
#[derive(Clone)]
struct Point {
    theta: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// One search half way.
struct Search {
    number: usize,
    here: Point,
    /// Pseudo-gradient: the gradient, with the steepest subgradient of the L1 part.
    slope: Vec<f64>,
    pairs: VecDeque<(Vec<f64>, Vec<f64>, f64)>,
    direction: Vec<f64>,
    line: LineSearch,
    /// Decrease of the objective by the last step.
    drop: f64,
    iterations: usize,
    /// Since H₀ was made.
    progress: Progress,
    stall: Stall,
    /// Its start is near the minimum.
    begins_near: bool,
    /// The direction is one by H₀.
    knows_its_scale: bool,
    turn: Turn,
}

/// What a search does next.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    /// Tries a point along its direction.
    Try,
    /// Looks for a direction from `here`.
    Aim,
    End(Status),
}

/// Minimises all objectives of a block from their starts.
pub fn minimise_block(
    objective: &mut dyn BatchObjective,
    starts: Vec<Vec<f64>>,
    settings: &Settings,
) -> Vec<Minimum> {
    minimise_block_from(objective, starts, false, settings)
}

/// The same, from starts that are known to be `near` their minima or not.
pub fn minimise_block_from(
    objective: &mut dyn BatchObjective,
    starts: Vec<Vec<f64>>,
    near: bool,
    settings: &Settings,
) -> Vec<Minimum> {
    let p = objective.p();
    let mut minima: Vec<Option<Minimum>> = starts.iter().map(|_| None).collect();
    let mut waiting = starts.into_iter().enumerate().map(|(number, start)| Search::new(number, start, near));
    let mut open: Vec<Search> = waiting.by_ref().take(objective.seats()).collect();
    let mut trials: Vec<Trial> = (0..open.len().div_ceil(LANES)).map(|_| Trial::new(p)).collect();
    while !open.is_empty() {
        trials.truncate(open.len().div_ceil(LANES));
        trials.iter_mut().for_each(|trial| trial.seats = [None; LANES]);
        for (i, search) in open.iter().enumerate() {
            trials[i / LANES].seat(i % LANES, search.number, &search.trial(settings));
        }
        objective.evaluate(&mut trials);
        for (i, search) in open.iter_mut().enumerate() {
            let (at, lane) = (&trials[i / LANES].at, i % LANES);
            let theta = at.theta(lane, p);
            let value = at.values[lane] + settings.l1_norm(&theta);
            search.receive(Point { theta, value, gradient: at.gradient(lane, p) }, settings);
        }
        aim(objective, &mut open, settings);
        // Searches keep their places as far as they can: an objective may have made room for them there.
        for i in (0..open.len()).rev().filter(|&i| open[i].turn != Turn::Try).collect::<Vec<_>>() {
            let ended = match waiting.next() {
                Some(next) => std::mem::replace(&mut open[i], next),
                None => open.swap_remove(i),
            };
            let number = ended.number;
            minima[number] = Some(ended.minimum());
        }
    }
    minima.into_iter().map(|m| m.expect("every search has had a seat")).collect()
}

/// Gives every search that wants one a direction, or its end. H₀⁻¹ is applied to all of them at once.
fn aim(objective: &mut dyn BatchObjective, open: &mut [Search], settings: &Settings) {
    loop {
        let mut aiming: Vec<&mut Search> = open.iter_mut().filter(|s| s.turn == Turn::Aim).collect();
        let Some(p) = aiming.first().map(|s| s.here.theta.len()) else { return };
        let mut q = Array2::zeros((aiming.len(), p));
        let mut alphas = Vec::with_capacity(aiming.len());
        for (mut row, search) in q.outer_iter_mut().zip(&mut aiming) {
            search.slope = search.pseudo_gradient(settings);
            search.renew(objective, settings);
            let row = row.as_slice_mut().expect(ROWS);
            row.copy_from_slice(&search.slope);
            alphas.push(search.backward(row));
        }
        let numbers: Vec<usize> = aiming.iter().map(|s| s.number).collect();
        let far: Vec<bool> = aiming.iter().map(|s| s.is_far(settings)).collect();
        let known = settings.uses_metric() && objective.precondition(&numbers, &far, &mut q);
        for ((mut row, search), alphas) in q.outer_iter_mut().zip(aiming).zip(alphas) {
            let row = row.as_slice_mut().expect(ROWS);
            search.forward(row, alphas, known);
            search.set_off(row, known, objective.size(search.number), settings);
        }
    }
}

const ROWS: &str = "rows of a fresh array are contiguous";

impl Settings {
    pub fn l1_norm(&self, theta: &[f64]) -> f64 {
        let terms = || theta.iter().zip(&self.l1_factors).map(|(t, f)| f * t.abs());
        if self.l1 == 0.0 { 0.0 } else { self.l1 * terms().sum::<f64>() }
    }

    /// A step that promises this gain begins close enough to the minimum.
    pub fn is_close(&self, gain: f64) -> bool {
        self.mass * gain <= self.tolerance * self.tolerance
    }

    /// So close that only rounding can keep the gradient from being as small as it should.
    pub fn is_there(&self, gain: f64) -> bool {
        self.is_close(gain / (ROUNDING * ROUNDING))
    }

    /// Under `change` searches are plain, and at kinks a Hessian of the smooth part misleads.
    fn uses_metric(&self) -> bool {
        self.change.is_none() && self.l1 == 0.0
    }
}

impl Search {
    fn new(number: usize, theta: Vec<f64>, begins_near: bool) -> Search {
        Search {
            number,
            here: Point { theta, value: f64::NAN, gradient: Vec::new() },
            slope: Vec::new(),
            pairs: VecDeque::new(),
            direction: Vec::new(),
            line: LineSearch::default(),
            drop: f64::INFINITY,
            iterations: 1,
            progress: Progress::new(),
            stall: Stall::new(),
            begins_near,
            knows_its_scale: false,
            turn: Turn::Try,
        }
    }

    /// The next point to evaluate, the start to begin with; under L1 it stays in the orthant of `here`.
    fn trial(&self, settings: &Settings) -> Vec<f64> {
        if self.direction.is_empty() {
            return self.here.theta.clone();
        }
        let mut trial: Vec<f64> =
            self.here.theta.iter().zip(&self.direction).map(|(t, d)| t + self.line.step * d).collect();
        if settings.l1 > 0.0 {
            for (j, (t, _)) in
                trial.iter_mut().zip(&settings.l1_factors).enumerate().filter(|(_, (_, f))| **f > 0.0)
            {
                let side = if self.here.theta[j] != 0.0 { self.here.theta[j] } else { -self.slope[j] };
                if *t * side <= 0.0 {
                    *t = 0.0;
                }
            }
        }
        trial
    }

    fn receive(&mut self, point: Point, settings: &Settings) {
        if self.direction.is_empty() {
            let finite = point.value.is_finite() && point.gradient.iter().all(|g| g.is_finite());
            self.turn = if finite { Turn::Aim } else { Turn::End(Status::Failed) };
            self.here = point;
            return;
        }
        self.iterations += 1;
        // Nothing can be said of a point whose gradient is not finite, whatever its value: no search goes there.
        let known = point.gradient.iter().all(|g| g.is_finite());
        let value = if known { point.value } else { f64::NAN };
        let ascent = (settings.l1 == 0.0).then(|| dot(&point.gradient, &self.direction));
        match self.line.judge(value, ascent) {
            Verdict::Accept => self.accept(point, settings),
            Verdict::TryAgain => {}
            // Forget the curvature once, then say so.
            Verdict::Nothing if self.pairs.is_empty() => {
                let small = largest(&self.slope) <= STALLED * settings.gradient;
                let done = small || self.knows_its_scale && settings.is_there(-self.line.descent);
                self.turn = Turn::End(Status::without_a_step(done));
            }
            Verdict::Nothing => {
                self.pairs.clear();
                self.turn = Turn::Aim;
            }
        }
    }

    fn accept(&mut self, point: Point, settings: &Settings) {
        let s: Vec<f64> = point.theta.iter().zip(&self.here.theta).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = point.gradient.iter().zip(&self.here.gradient).map(|(a, b)| a - b).collect();
        let sy = dot(&s, &y);
        if sy > 1e-12 * (dot(&s, &s) * dot(&y, &y)).sqrt() {
            let memory = match (settings.uses_metric(), self.begins_near) {
                (false, _) => MEMORY,
                (true, false) => MEMORY_WITH_METRIC,
                (true, true) => MEMORY_NEAR,
            };
            if self.pairs.len() == memory {
                self.pairs.pop_front();
            }
            self.pairs.push_back((s, y, 1.0 / sy));
        }
        self.drop = self.here.value - point.value;
        self.here = point;
        self.progress.step();
        self.turn = Turn::Aim;
    }

    /// A new H₀ where the gradient has shrunk so slowly under the present one that the rest of the way would cost more
    /// than making another.
    fn renew(&mut self, objective: &mut dyn BatchObjective, settings: &Settings) {
        let number = self.number;
        let steepest = largest(&self.slope);
        let first = self.progress.is_first();
        if first {
            self.progress.begin(steepest);
        }
        if !settings.uses_metric() {
            return;
        }
        if first && !self.begins_near && objective.begins_alone(number) {
            objective.renew(number, &self.here.theta, true);
        }
        let slow = self.progress.is_slow(steepest, settings.gradient, objective.renewal_cost());
        let far = self.is_far(settings);
        if slow && steepest > settings.gradient && objective.renew(number, &self.here.theta, far) {
            self.progress.begin(steepest);
        }
    }

    /// Judged by what the last step promised to gain.
    fn is_far(&self, settings: &Settings) -> bool {
        let p = (self.here.theta.len() as f64).min(settings.mass);
        match self.line.descent {
            0.0 => !self.begins_near,
            descent => -settings.mass * descent > FAR * p,
        }
    }

    /// Takes the direction −`step`, or ends the search.
    fn set_off(&mut self, step: &[f64], known: bool, size: f64, settings: &Settings) {
        let mut direction: Vec<f64> = step.iter().map(|d| -d).collect();
        if settings.l1 > 0.0 {
            for (d, g) in direction.iter_mut().zip(&self.slope) {
                if *d * g > 0.0 {
                    *d = 0.0;
                }
            }
        }
        let descent = dot(&direction, &self.slope);
        self.turn = if self.has_converged(descent, known, settings) {
            Turn::End(Status::Ok)
        } else if self.iterations >= settings.max_iterations {
            Turn::End(Status::MaxIter)
        } else if descent.is_nan() || descent >= 0.0 {
            if self.pairs.is_empty() {
                let done = largest(&self.slope) <= STALLED * settings.gradient;
                Turn::End(if descent.is_nan() { Status::Failed } else { Status::without_a_step(done) })
            } else {
                self.pairs.clear();
                Turn::Aim
            }
        } else {
            Turn::Try
        };
        let scaled = self.pairs.is_empty() && !known;
        let step = if scaled { 1.0 / dot(&self.slope, &self.slope).sqrt().max(1.0) } else { 1.0 };
        self.line = LineSearch::new(self.here.value, size, descent, step);
        self.knows_its_scale = known;
        self.direction = direction;
    }

    fn has_converged(&mut self, descent: f64, known: bool, settings: &Settings) -> bool {
        let steepest = largest(&self.slope);
        if let Some(change) = settings.change {
            let size = self.here.value.abs().max((self.here.value + self.drop).abs()).max(1.0);
            return steepest <= PLAIN_GRADIENT || self.drop.is_finite() && self.drop <= change * size;
        }
        let small = settings.is_close(-descent) && steepest <= settings.gradient;
        // Without H₀ nobody knows how near a promise is, least of all at a kink.
        let stalled = known && self.stall.is_over(steepest, -descent, settings);
        steepest == 0.0 || small || stalled
    }

    fn pseudo_gradient(&self, settings: &Settings) -> Vec<f64> {
        let mut slope = self.here.gradient.clone();
        if settings.l1 > 0.0 {
            for ((g, theta), factor) in slope.iter_mut().zip(&self.here.theta).zip(&settings.l1_factors) {
                *g = pseudo_slope(*g, *theta, settings.l1 * factor);
            }
        }
        slope
    }

    /// The first half of the two-loop recursion (Nocedal and Wright 2006, Algorithm 7.4).
    fn backward(&self, q: &mut [f64]) -> Vec<f64> {
        let mut alphas = Vec::with_capacity(self.pairs.len());
        for (s, y, rho) in self.pairs.iter().rev() {
            let alpha = rho * dot(s, q);
            add_scaled(q, -alpha, y);
            alphas.push(alpha);
        }
        alphas
    }

    /// The second half; H₀ is a multiple of the identity unless it is `known`.
    fn forward(&self, q: &mut [f64], alphas: Vec<f64>, known: bool) {
        if let Some((_, y, rho)) = self.pairs.back().filter(|_| !known) {
            let scale = 1.0 / (rho * dot(y, y));
            q.iter_mut().for_each(|v| *v *= scale);
        }
        for ((s, y, rho), alpha) in self.pairs.iter().zip(alphas.into_iter().rev()) {
            let beta = rho * dot(y, q);
            add_scaled(q, alpha - beta, s);
        }
    }

    fn minimum(self) -> Minimum {
        let Turn::End(status) = self.turn else { unreachable!("a search is left alone when it has ended") };
        if status == Status::Failed {
            return Minimum::failed(self.here.theta, self.iterations);
        }
        let gradient = largest(&self.slope);
        Minimum {
            theta: self.here.theta,
            value: self.here.value,
            iterations: self.iterations,
            gradient,
            status,
        }
    }
}

/// Of L + λ|θ|: where θ = 0 the steeper side, or 0 if both go up.
pub fn pseudo_slope(slope: f64, theta: f64, l1: f64) -> f64 {
    match theta {
        t if t > 0.0 => slope + l1,
        t if t < 0.0 => slope - l1,
        _ => (slope - l1).max(0.0) + (slope + l1).min(0.0),
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    entries::dot(Level::current(), a, b)
}

fn add_scaled(a: &mut [f64], scale: f64, b: &[f64]) {
    entries::add_scaled(Level::current(), a, scale, b);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley in pairs of coordinates, shifted by the number of the search.
    struct Rosenbrock;

    impl BatchObjective for Rosenbrock {
        fn p(&self) -> usize {
            2
        }

        fn evaluate(&mut self, trials: &mut [Trial]) {
            each(trials, |s, theta, gradient| {
                let (x, y) = (theta[0] - s as f64, theta[1]);
                gradient[0] = -2.0 * (1.0 - x) - 400.0 * x * (y - x * x);
                gradient[1] = 200.0 * (y - x * x);
                (1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2)
            });
        }
    }

    /// Every search at its point: its value, and its gradient into the last argument.
    fn each(trials: &mut [Trial], evaluate: impl Fn(usize, &[f64], &mut [f64]) -> f64) {
        for Trial { seats, at } in trials {
            for (lane, seat) in seats.iter().enumerate() {
                let Some(search) = *seat else { continue };
                let p = at.theta.len();
                let (theta, mut gradient) = (at.theta(lane, p), vec![0.0; p]);
                at.values[lane] = evaluate(search, &theta, &mut gradient);
                (0..p).for_each(|j| at.gradient[j][lane] = gradient[j]);
            }
        }
    }

    fn settings() -> Settings {
        Settings {
            max_iterations: 500,
            tolerance: 1e-6,
            mass: 1.0,
            gradient: 1e-8,
            change: None,
            l1: 0.0,
            l1_factors: Vec::new(),
        }
    }

    #[test]
    fn every_search_of_a_block_finds_its_own_minimum() {
        let starts: Vec<Vec<f64>> = (0..5).map(|s| vec![s as f64 - 1.2, 1.0 + 0.1 * s as f64]).collect();
        let minima = minimise_block(&mut Rosenbrock, starts.clone(), &settings());
        for (s, m) in minima.iter().enumerate() {
            assert_eq!(m.status, Status::Ok);
            assert!((m.theta[0] - 1.0 - s as f64).abs() < 1e-7 && (m.theta[1] - 1.0).abs() < 1e-7);
            assert!(m.iterations < 80, "{}", m.iterations);
        }
        // Search 0 does the same alone.
        assert_eq!(minimise_block(&mut Rosenbrock, starts[..1].to_vec(), &settings())[0], minima[0]);
    }

    /// ½(θ − c)² + λ|θ|: soft thresholding.
    struct Quadratic([f64; 3]);

    impl BatchObjective for Quadratic {
        fn p(&self) -> usize {
            3
        }

        fn evaluate(&mut self, trials: &mut [Trial]) {
            each(trials, |_, theta, gradient| {
                (0..3).for_each(|j| gradient[j] = theta[j] - self.0[j]);
                0.5 * dot(gradient, gradient)
            });
        }
    }

    #[test]
    fn l1_thresholds_softly_and_spares_the_last_entry() {
        let settings = Settings { l1: 1.0, l1_factors: vec![1.0; 2], ..settings() };
        let minimum =
            minimise_block(&mut Quadratic([3.0, 0.5, 0.5]), vec![vec![-1.0, 2.0, 0.0]], &settings).remove(0);
        let exact = [2.0, 0.0, 0.5];
        assert!(minimum.theta.iter().zip(exact).all(|(t, e)| (t - e).abs() < 1e-7), "{:?}", minimum.theta);
        assert_eq!(minimum.theta[1], 0.0, "exactly zero");
        assert!((minimum.value - (0.5 + 2.0 + 0.125)).abs() < 1e-9);
    }

    #[test]
    fn a_start_that_is_not_finite_fails() {
        let minimum = minimise_block(&mut Rosenbrock, vec![vec![f64::NAN, 0.0]], &settings()).remove(0);
        assert_eq!(minimum.status, Status::Failed);
    }
}
