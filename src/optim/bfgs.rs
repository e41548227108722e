//! Newton's method with a Hessian that is mended as it goes, for a block of searches with few parameters: eight in step,
//! each a lane, so that an objective can answer all of them with one pass over the data and a matrix of each is factored
//! at every step for little. A search does the same whatever its neighbours do. As long as steps gain much singles will do,
//! sixteen in step.
//!
//! The objective is L(θ) = f(θ) + h(θ) + Σ gⱼ(θⱼ) with f and h convex; the smooth part of a gradient is that of f. What is known of h and the gⱼ is not left to be
//! learned: H = A + ∇²h + D, D the curvature of the gⱼ at θ and A about the Hessian of f, mended by BFGS updates from
//! gradients of f alone (Dennis, Gay and Welsch 1981).
//!
//! Where there is an L1 part, a step minimises it together with the parabola of the rest: proximal Newton (Lee, Sun and Saunders
//! 2014).

use ndarray::Array2;

use super::batch::{BatchObjective, Points, Trial};
use super::kinks::Kinked;
use super::lbfgs::{STALLED, Settings, pseudo_slope};
use super::line_search::{LineSearch, Verdict};
use super::progress::{Progress, Stall};
use super::{Minimum, Status};
use crate::kernel::lanes::{along, differences, dots, largest, replace, scale};
use crate::kernel::triangle::{self, Triangles};
use crate::kernel::{LANES, Level, Line, Scalar};

/// Objectives that hand out second derivatives, part by part.
pub trait Curved<T: Scalar<L> = f64, const L: usize = LANES>: BatchObjective<T, L> {
    /// Curvature of every gⱼ at θⱼ: the second derivative where `exact`, else that of a parabola that touches there and lies
    /// above elsewhere.
    fn curvatures(&self, theta: &[Line<T, L>], exact: [bool; L], out: &mut [Line<T, L>]);

    /// About the Hessian of f: its lower triangle, row after row.
    fn hessian(&mut self, search: usize, theta: &[f64], need: Need) -> Vec<f64>;

    /// The Hessian of h at θ, or, `far` from the minimum, of what lies above it; its lower triangle, row after row. `None`
    /// if there is no h, for all searches.
    fn known_hessian(&self, _search: usize, _theta: &[f64], _far: bool) -> Option<Vec<f64>> {
        None
    }
}

/// What a Hessian is for.
#[derive(Clone, Copy, PartialEq)]
pub enum Need {
    /// The first steps: long ones lead out of the basin of the start, so it should rather be too large.
    Start,
    /// The minimum is near.
    Near,
    /// Steps have gained little, far from the minimum or not: the one at θ.
    Anew { far: bool },
}

/// Where a search begins, or has come to on the way.
#[derive(Clone)]
pub struct Stage {
    theta: Vec<f64>,
    /// Evaluations so far.
    iterations: usize,
    /// The minimum is near.
    near: bool,
    /// A, if there is one that has served well.
    a: Option<Vec<f64>>,
}

impl Stage {
    pub fn start(theta: Vec<f64>) -> Stage {
        Stage { theta, iterations: 0, near: false, a: None }
    }

    /// A start that is known to be near the minimum.
    pub fn near(theta: Vec<f64>) -> Stage {
        Stage { near: true, ..Stage::start(theta) }
    }
}

/// Squared distance to the minimum, in posterior variances per parameter, within which a search is near it.
const NEAR: f64 = 0.1;
/// D has at least this share of the largest entry of A: a direction without curvature would be given an infinite step.
const RIDGE: f64 = 1e-9;
/// What a step in singles must promise to gain: their noise is a tenth of this.
const ROUGH_GAIN: f64 = 1e-5;

/// One search half way.
struct Lane {
    search: usize,
    line: LineSearch,
    iterations: usize,
    /// Has been near.
    arrived: bool,
    /// A to begin with, if there is one.
    first: Option<Vec<f64>>,
    /// A is still that of another format, whose rounding may have spoilt it.
    carried: bool,
    /// Since A was made.
    progress: Progress,
    /// The largest gradient entry where the search was stuck last.
    stuck: f64,
    stall: Stall,
    turn: Turn,
}

/// What a search does next.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    /// Is evaluated at its start.
    Begin,
    /// Tries a point along its direction.
    Try,
    /// Found a lower point, and looks for a direction from there.
    Aim,
    /// Found nothing lower, or no direction: needs another A.
    Stuck,
    /// The next step gains so little that it is the last in singles.
    Leave,
    End(Status),
}

/// Where a search ended, or was left.
struct Ended {
    theta: Vec<f64>,
    value: f64,
    gradient: f64,
    iterations: usize,
    turn: Turn,
    near: bool,
    a: Option<Vec<f64>>,
}

/// The searches of a line.
struct Group<T, const L: usize> {
    lanes: [Option<Lane>; L],
    here: Points<T, L>,
    direction: Vec<Line<T, L>>,
    a: Triangles<T, L>,
    /// A + ∇²h, where there is an h.
    whole: Option<Triangles<T, L>>,
    factor: Triangles<T, L>,
    d: Vec<Line<T, L>>,
    /// Steps and changes of gradients, while A is mended.
    steps: Vec<Line<T, L>>,
    changes: Vec<Line<T, L>>,
    products: Vec<Line<T, L>>,
}

/// Takes all searches of a block from their starts to where steps gain too little for singles.
pub fn approach<T: Scalar<L>, const L: usize>(
    level: Level,
    objective: &mut dyn Curved<T, L>,
    starts: Vec<Stage>,
    settings: &Settings,
) -> Vec<Stage> {
    let ends = run(level, objective, starts.clone(), settings, ROUGH_GAIN);
    let stage = |(end, start): (Ended, Stage)| {
        let Ended { theta, iterations, near, a, turn, .. } = end;
        match turn {
            // Perhaps for want of digits.
            Turn::End(Status::Failed) => Stage { iterations, ..start },
            // At kinks columns may be so alike that singles do not tell them apart.
            _ => Stage { theta, iterations, near, a: a.filter(|_| settings.l1 == 0.0) },
        }
    };
    ends.into_iter().zip(starts).map(stage).collect()
}

/// Minimises all objectives of a block from where their searches are.
pub fn minimise_block<T: Scalar<L>, const L: usize>(
    level: Level,
    objective: &mut dyn Curved<T, L>,
    from: Vec<Stage>,
    settings: &Settings,
) -> Vec<Minimum> {
    let minimum = |end: Ended| {
        let Ended { theta, value, gradient, iterations, turn, .. } = end;
        match turn {
            Turn::End(status) if status != Status::Failed => {
                Minimum { theta, value, iterations, gradient, status }
            }
            _ => Minimum::failed(theta, iterations),
        }
    };
    run(level, objective, from, settings, 0.0).into_iter().map(minimum).collect()
}

/// Searches end at their minima, or are left where the next step promises to gain no more than `least`.
fn run<T: Scalar<L>, const L: usize>(
    level: Level,
    objective: &mut dyn Curved<T, L>,
    from: Vec<Stage>,
    settings: &Settings,
    least: f64,
) -> Vec<Ended> {
    let p = objective.p();
    let mut ends: Vec<Option<Ended>> = from.iter().map(|_| None).collect();
    let count = from.len().min(objective.seats()).div_ceil(L);
    let mut waiting = from.into_iter().enumerate();
    let mut groups: Vec<Group<T, L>> = (0..count).map(|_| Group::new(p)).collect();
    let mut trials: Vec<Trial<T, L>> = groups.iter().map(|g| Trial::in_parts(g.a.order())).collect();
    loop {
        for (group, trial) in groups.iter_mut().zip(&mut trials) {
            for (lane, place) in group.lanes.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
                trial.seats[lane] = None;
                *place = waiting.next().map(|(search, stage)| {
                    trial.seat(lane, search, &stage.theta);
                    Lane::new(search, stage)
                });
            }
        }
        groups.retain(|group| group.lanes.iter().any(Option::is_some));
        trials.retain(|trial| trial.seats.iter().any(Option::is_some));
        if groups.is_empty() {
            return ends.into_iter().map(|end| end.expect("every search has had a seat")).collect();
        }
        objective.evaluate(&mut trials);
        for (group, trial) in groups.iter_mut().zip(&mut trials) {
            add_l1(&mut trial.at, settings);
            group.receive(level, &trial.at, settings);
            group.aim(level, objective, settings, least);
            group.set_off(level, &mut trial.at);
            for lane in 0..L {
                if let Some((search, end)) = group.end(lane, p, settings) {
                    ends[search] = Some(end);
                    group.lanes[lane] = None;
                }
            }
        }
    }
}

/// The L1 part of the values.
fn add_l1<T: Scalar<L>, const L: usize>(at: &mut Points<T, L>, settings: &Settings) {
    if settings.l1 == 0.0 {
        return;
    }
    let mut norms = [0.0; L];
    for (theta, factor) in at.theta.iter().zip(&settings.l1_factors) {
        norms.iter_mut().zip(theta.0).for_each(|(norm, t)| *norm += factor * t.into().abs());
    }
    at.values.iter_mut().zip(norms).for_each(|(value, norm)| *value += settings.l1 * norm);
}

impl Lane {
    fn new(search: usize, from: Stage) -> Lane {
        Lane {
            search,
            line: LineSearch::default(),
            iterations: from.iterations + 1,
            arrived: from.near,
            carried: from.a.is_some(),
            first: from.a,
            progress: Progress::new(),
            stuck: f64::INFINITY,
            stall: Stall::new(),
            turn: Turn::Begin,
        }
    }

    fn aims(&self) -> bool {
        matches!(self.turn, Turn::Aim | Turn::Stuck)
    }

    /// Judged by what the last step promised to gain, or before the first by where the search comes from.
    fn is_far(&self, p: usize, settings: &Settings) -> bool {
        match self.line.descent {
            0.0 => !self.arrived,
            descent => -settings.mass * descent > NEAR * (p as f64).min(settings.mass),
        }
    }

    /// Another A for a search that comes near, is stuck, or has gained so little with this one that the rest of the way
    /// would cost more than making another.
    fn need(&mut self, p: usize, steepest: f64, cost: f64, settings: &Settings) -> Option<Need> {
        let far = self.is_far(p, settings);
        if self.turn == Turn::Stuck {
            Some(Need::Anew { far })
        } else if self.progress.is_first() {
            Some(if self.arrived { Need::Near } else { Need::Start })
        } else if steepest <= settings.gradient {
            None
        } else if !far && !self.arrived {
            self.arrived = true;
            Some(Need::Near)
        } else {
            self.progress.is_slow(steepest, settings.gradient, cost).then_some(Need::Anew { far })
        }
    }

    /// Nothing lower was found with this A: says so if it is fresh, or the last that was asked for did not help; else asks
    /// for another.
    fn give_up(&mut self, steepest: f64, settings: &Settings) {
        if self.progress.has_moved() && steepest < 0.5 * self.stuck {
            (self.turn, self.stuck) = (Turn::Stuck, steepest);
        } else {
            let done = steepest <= STALLED * settings.gradient || settings.is_there(-self.line.descent);
            self.turn = Turn::End(Status::without_a_step(done));
        }
    }
}

impl<T: Scalar<L>, const L: usize> Group<T, L> {
    fn new(p: usize) -> Self {
        let (a, factor) = (Triangles::<T, L>::new(p), Triangles::new(p));
        let order = a.order();
        let zeros = || vec![Line::default(); order];
        Group {
            lanes: std::array::from_fn(|_| None),
            here: Points::in_parts(order),
            direction: zeros(),
            a,
            whole: None,
            factor,
            d: zeros(),
            steps: zeros(),
            changes: zeros(),
            products: zeros(),
        }
    }

    /// Judges the points that were tried, moves to those that are lower, and mends A.
    fn receive(&mut self, level: Level, trial: &Points<T, L>, settings: &Settings) {
        let ascents = dots(level, &trial.gradient, &self.direction);
        let steepest = self.steepest(level, settings);
        let (mut begun, mut moved) = ([false; L], [false; L]);
        // Of lanes without a search nothing is asked.
        let known: [bool; L] =
            std::array::from_fn(|l| trial.gradient.iter().all(|g| g[l].into().is_finite()));
        for (l, lane) in self.lanes.iter_mut().enumerate() {
            let Some(lane) = lane else { continue };
            if lane.turn == Turn::Begin {
                let finite = trial.values[l].is_finite() && known[l];
                lane.turn = if finite { Turn::Aim } else { Turn::End(Status::Failed) };
                begun[l] = true;
                continue;
            }
            lane.iterations += 1;
            // Nothing can be said of a point whose gradient is not finite, whatever its value: no search goes there.
            let value = if known[l] { trial.values[l] } else { f64::NAN };
            match lane.line.judge(value, (settings.l1 == 0.0).then_some(ascents[l])) {
                Verdict::Accept => {
                    (lane.turn, moved[l]) = (Turn::Aim, true);
                    lane.progress.step();
                }
                Verdict::TryAgain => {}
                Verdict::Nothing => lane.give_up(steepest[l], settings),
            }
        }
        if moved.contains(&true) {
            self.mend(level, trial, moved);
        }
        let either = std::array::from_fn(|l| begun[l] || moved[l]);
        self.here.take(level, trial, either);
    }

    /// Mends A of the searches that move, by what the gradient of f changes on the way.
    fn mend(&mut self, level: Level, trial: &Points<T, L>, moved: [bool; L]) {
        let (s, y, along) = (&mut self.steps, &mut self.changes, &mut self.products);
        differences(level, moved, &trial.theta, &self.here.theta, s);
        differences(level, moved, &trial.smooth, &self.here.smooth, y);
        triangle::times(level, &self.a, s, along);
        let (sy, sas) = (dots(level, s, y), dots(level, s, along));
        let (ss, yy) = (dots(level, s, s), dots(level, y, y));
        // A change that is all rounding tells nothing.
        let tells = |l: usize| sy[l] > T::NOTHING * 10.0 * (ss[l] * yy[l]).sqrt() && sas[l] > 0.0;
        let roots = |of: [f64; L]| -> [f64; L] {
            std::array::from_fn(|l| if tells(l) { 1.0 / of[l].sqrt() } else { 0.0 })
        };
        scale(level, roots(sy), y);
        scale(level, roots(sas), along);
        triangle::update(level, &mut self.a, y, along);
    }

    /// Gives every search that wants one a direction, or its end.
    fn aim(&mut self, level: Level, objective: &mut dyn Curved<T, L>, settings: &Settings, least: f64) {
        let p = objective.p();
        let steepest = self.steepest(level, settings);
        let cost = objective.renewal_cost();
        let mut exact = [false; L];
        for (l, lane) in self.lanes.iter_mut().enumerate() {
            let Some(lane) = lane.as_mut().filter(|lane| lane.aims()) else { continue };
            let a = lane.first.take().or_else(|| {
                let need = lane.need(p, steepest[l], cost, settings)?;
                lane.carried = false;
                Some(objective.hessian(lane.search, &self.here.theta(l, p), need))
            });
            if let Some(a) = a {
                self.a.set(l, &a);
                lane.progress.begin(steepest[l]);
            }
            exact[l] = !lane.is_far(p, settings);
        }
        if !self.lanes.iter().flatten().any(Lane::aims) {
            return;
        }
        self.add_known(objective, settings);
        self.factor(level, objective, exact, steepest, settings);
        let gain = if settings.l1 == 0.0 {
            self.steps.copy_from_slice(&self.here.gradient);
            triangle::solve(level, &self.factor, &mut self.steps);
            dots(level, &self.steps, &self.here.gradient)
        } else {
            self.step_with_kinks(p, settings)
        };
        let mut set = [false; L];
        for (l, lane) in self.lanes.iter_mut().enumerate() {
            let Some(lane) = lane.as_mut().filter(|lane| lane.aims()) else { continue };
            let size = objective.size(lane.search);
            let small = settings.is_close(gain[l]) && steepest[l] <= settings.gradient;
            lane.turn = if steepest[l] == 0.0 || small || lane.stall.is_over(steepest[l], gain[l], settings) {
                Turn::End(Status::Ok)
            } else if lane.iterations >= settings.max_iterations || gain[l].is_nan() || gain[l] <= 0.0 {
                Turn::End(Status::MaxIter)
            } else if gain[l] <= least * size.max(1.0) {
                Turn::Leave
            } else {
                lane.line = LineSearch::new(self.here.values[l], size, -gain[l], 1.0);
                Turn::Try
            };
            set[l] = true;
        }
        replace(level, set, -1.0, &self.steps, &mut self.direction);
    }

    /// Minus the step of every search that wants one, to the minimum of its parabola with the L1 part, and what it promises to gain.
    fn step_with_kinks(&mut self, p: usize, settings: &Settings) -> [f64; L] {
        let factors = settings.l1_factors.iter().copied().chain(std::iter::repeat(0.0));
        let l1: Vec<f64> = factors.take(p).map(|factor| settings.l1 * factor).collect();
        let mut gain = [0.0; L];
        self.steps.fill(Line::default());
        for (l, _) in self.lanes.iter().enumerate().filter(|(_, lane)| lane.as_ref().is_some_and(Lane::aims))
        {
            let lower = self.whole.as_ref().unwrap_or(&self.a).lower(l, p);
            let mut h = Array2::zeros((p, p));
            for (j, k) in (0..p).flat_map(|j| (0..=j).map(move |k| (j, k))) {
                let entry = lower[j * (j + 1) / 2 + k];
                (h[[j, k]], h[[k, j]]) = (entry, entry);
            }
            for j in 0..p {
                h[[j, j]] += self.d[j][l].into();
            }
            let (theta, gradient) = (self.here.theta(l, p), self.here.gradient(l, p));
            let parabola = Kinked { h: &h, gradient: &gradient, l1: &l1, theta: &theta };
            let at = parabola.minimise();
            gain[l] = parabola.gain(&at);
            for (step, (to, from)) in self.steps.iter_mut().zip(at.iter().zip(&theta)) {
                step[l] = T::of(from - to);
            }
        }
        gain
    }

    /// The largest entry of the gradient of every lane, or of its pseudo-gradient.
    fn steepest(&self, level: Level, settings: &Settings) -> [f64; L] {
        if settings.l1 == 0.0 {
            return largest(level, &self.here.gradient);
        }
        let factors = settings.l1_factors.iter().copied().chain(std::iter::repeat(0.0));
        let mut steepest = [0.0f64; L];
        for ((gradient, theta), factor) in self.here.gradient.iter().zip(&self.here.theta).zip(factors) {
            for (l, steepest) in steepest.iter_mut().enumerate() {
                let slope = pseudo_slope(gradient[l].into(), theta[l].into(), settings.l1 * factor);
                *steepest = steepest.max(slope.abs());
            }
        }
        steepest
    }

    /// Adds ∇²h to A for the searches that want a direction.
    fn add_known(&mut self, objective: &dyn Curved<T, L>, settings: &Settings) {
        let p = objective.p();
        self.whole = None;
        for (l, lane) in self.lanes.iter().enumerate() {
            let Some(lane) = lane.as_ref().filter(|lane| lane.aims()) else { continue };
            let known =
                objective.known_hessian(lane.search, &self.here.theta(l, p), lane.is_far(p, settings));
            let Some(known) = known else { return };
            self.whole.get_or_insert_with(|| self.a.clone()).add(l, &known);
        }
    }

    /// Factors A + ∇²h + D. Where that is not positive definite with the second derivatives in D, parabolas from above take their
    /// place; where it still is not, A was spoilt by rounding.
    fn factor(
        &mut self,
        level: Level,
        objective: &mut dyn Curved<T, L>,
        mut exact: [bool; L],
        steepest: [f64; L],
        settings: &Settings,
    ) {
        let p = objective.p();
        loop {
            objective.curvatures(&self.here.theta[..p], exact, &mut self.d[..p]);
            let whole = self.whole.as_ref().unwrap_or(&self.a);
            triangle::add_ridge(level, whole, RIDGE.max(T::NOTHING), &mut self.d[..p]);
            triangle::factor(level, whole, &self.d, &mut self.factor);
            let last: [f64; L] = self.factor.diagonal(self.a.order() - 1).map(Into::into);
            let (mut again, mut renewed) = (false, false);
            for (l, lane) in self.lanes.iter_mut().enumerate() {
                let Some(lane) = lane.as_mut().filter(|lane| lane.aims() && !last[l].is_finite()) else {
                    continue;
                };
                again = true;
                if exact[l] {
                    exact[l] = false;
                } else if lane.progress.has_moved() || std::mem::take(&mut lane.carried) {
                    self.a.set(l, &objective.hessian(lane.search, &self.here.theta(l, p), Need::Start));
                    lane.progress.begin(steepest[l]);
                    renewed = true;
                } else {
                    lane.give_up(steepest[l], settings);
                }
            }
            if !again {
                return;
            }
            if renewed {
                self.add_known(objective, settings);
            }
        }
    }

    /// The points to try next.
    fn set_off(&self, level: Level, trial: &mut Points<T, L>) {
        let step = |lane: &Option<Lane>| lane.as_ref().map_or(0.0, |lane| lane.line.step);
        let steps = std::array::from_fn(|l| step(&self.lanes[l]));
        along(level, &self.here.theta, steps, &self.direction, &mut trial.theta);
    }

    /// Where a search ended, or was left, if it was.
    fn end(&self, lane: usize, p: usize, settings: &Settings) -> Option<(usize, Ended)> {
        let Lane { search, iterations, arrived: near, turn, .. } = *self.lanes[lane].as_ref()?;
        if !matches!(turn, Turn::End(_) | Turn::Leave) {
            return None;
        }
        let (value, mut theta, mut a) = (self.here.values[lane], self.here.theta(lane, p), None);
        if turn == Turn::Leave {
            theta.iter_mut().zip(&self.direction).for_each(|(t, d)| *t += d[lane].into());
            a = Some(self.a.lower(lane, p));
        }
        let factors = settings.l1_factors.iter().copied().chain(std::iter::repeat(0.0));
        let entries = self.here.gradient.iter().zip(&self.here.theta).zip(factors);
        let slopes =
            entries.map(|((g, t), f)| pseudo_slope(g[lane].into(), t[lane].into(), settings.l1 * f).abs());
        let gradient = slopes.fold(0.0, f64::max);
        Some((search, Ended { theta, value, gradient, iterations, turn, near, a }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::SINGLES;

    /// f = cosh(θ₀ + θ₁) + ½(θ₀ − s)², g = ½ log(1 + 10 θ₁²) for search s: two minima for some s. The hyperbolic part
    /// may be `known`.
    #[derive(Default)]
    struct Bowl {
        evaluated: usize,
        known: bool,
    }

    fn penalty(t: f64) -> [f64; 3] {
        let below = 1.0 + 10.0 * t * t;
        [0.5 * below.ln(), 10.0 * t / below, 10.0 * (1.0 - 10.0 * t * t) / (below * below)]
    }

    impl<T: Scalar<L>, const L: usize> BatchObjective<T, L> for Bowl {
        fn p(&self) -> usize {
            2
        }

        fn evaluate(&mut self, trials: &mut [Trial<T, L>]) {
            for trial in trials {
                for (l, seat) in trial.seats.iter().enumerate() {
                    let Some(s) = *seat else { continue };
                    self.evaluated += 1;
                    let (a, b): (f64, f64) = (trial.at.theta[0][l].into(), trial.at.theta[1][l].into());
                    let pull = a - 0.2 * s as f64;
                    let smooth = [(a + b).sinh() + pull, (a + b).sinh()];
                    let known = if self.known { (a + b).sinh() } else { 0.0 };
                    trial.at.values[l] = (a + b).cosh() + 0.5 * pull * pull + penalty(b)[0];
                    for (j, slope) in [0.0, penalty(b)[1]].into_iter().enumerate() {
                        trial.at.smooth[j][l] = T::of(smooth[j] - known);
                        trial.at.gradient[j][l] = T::of(smooth[j] + slope);
                    }
                }
            }
        }

        fn renewal_cost(&self) -> f64 {
            3.0
        }

        fn seats(&self) -> usize {
            16
        }
    }

    impl<T: Scalar<L>, const L: usize> Curved<T, L> for Bowl {
        fn curvatures(&self, theta: &[Line<T, L>], exact: [bool; L], out: &mut [Line<T, L>]) {
            out[0] = Line::default();
            for l in 0..L {
                let t: f64 = theta[1][l].into();
                out[1][l] = T::of(if exact[l] { penalty(t)[2] } else { 10.0 / (1.0 + 10.0 * t * t) });
            }
        }

        fn hessian(&mut self, _search: usize, theta: &[f64], need: Need) -> Vec<f64> {
            let c = if need == Need::Start { 1.0 } else { (theta[0] + theta[1]).cosh() };
            if self.known { vec![1.0, 0.0, 0.0] } else { vec![c + 1.0, c, c] }
        }

        fn known_hessian(&self, _search: usize, theta: &[f64], _far: bool) -> Option<Vec<f64>> {
            self.known.then(|| vec![(theta[0] + theta[1]).cosh(); 3])
        }
    }

    fn settings() -> Settings {
        Settings {
            max_iterations: 200,
            tolerance: 1e-6,
            mass: 1.0,
            gradient: 1e-10,
            change: None,
            l1: 0.0,
            l1_factors: Vec::new(),
        }
    }

    fn starts() -> Vec<Vec<f64>> {
        (0..41).map(|s| vec![2.0 - 0.1 * s as f64, 0.3 * (s % 7) as f64 - 1.0]).collect()
    }

    /// In doubles alone, or with the first part of the way in singles.
    fn minimise(bowl: &mut Bowl, starts: Vec<Vec<f64>>, singles: bool) -> Vec<Minimum> {
        let mut stages = starts.into_iter().map(Stage::start).collect();
        if singles {
            stages = approach::<f32, SINGLES>(Level::PLAIN, bowl, stages, &settings());
        }
        minimise_block::<f64, LANES>(Level::PLAIN, bowl, stages, &settings())
    }

    /// More searches than seats, of different lengths; each ends at a minimum, and as it would alone.
    #[test]
    fn every_search_of_a_block_finds_its_own_minimum() {
        for (known, singles) in [(false, false), (false, true), (true, false), (true, true)] {
            find_minima(known, singles);
        }
    }

    fn find_minima(known: bool, singles: bool) {
        let starts = starts();
        let mut bowl = Bowl { known, ..Bowl::default() };
        let minima = minimise(&mut bowl, starts.clone(), singles);
        assert_eq!(bowl.evaluated, minima.iter().map(|m| m.iterations).sum::<usize>(), "no point twice");
        for (s, m) in minima.iter().enumerate() {
            assert_eq!(m.status, Status::Ok, "search {s}");
            let (a, b) = (m.theta[0], m.theta[1]);
            let slope = [(a + b).sinh() + a - 0.2 * s as f64, (a + b).sinh() + penalty(b)[1]];
            assert!(slope.iter().all(|g| g.abs() < 1e-10), "search {s}: {slope:?}");
            let c = (a + b).cosh();
            assert!((c + 1.0) * (c + penalty(b)[2]) > c * c, "search {s} ended on a saddle");
            assert!(m.iterations < 40, "search {s} took {}", m.iterations);
        }
        for number in [0, 20, 40] {
            let alone = |search: usize, theta: &[f64]| {
                let starts = (0..=search).map(|_| theta.to_vec()).collect();
                minimise(&mut Bowl { known, ..Bowl::default() }, starts, singles).remove(search)
            };
            assert_eq!(alone(number, &starts[number]), minima[number]);
        }
    }

    /// The way in singles leads into the basin that doubles would find, nearly to its bottom, and leaves little to do.
    #[test]
    fn singles_lead_where_doubles_would() {
        let from = starts().into_iter().map(Stage::start).collect();
        let stages = approach::<f32, SINGLES>(Level::PLAIN, &mut Bowl::default(), from, &settings());
        let minima = minimise(&mut Bowl::default(), starts(), false);
        let in_two = minimise(&mut Bowl::default(), starts(), true);
        for ((stage, minimum), end) in stages.iter().zip(&minima).zip(&in_two) {
            assert!(stage.near && stage.a.is_some());
            let distance = stage.theta.iter().zip(&minimum.theta).map(|(a, b)| (a - b).abs());
            assert!(distance.fold(0.0, f64::max) < 1e-2, "{:?}, {:?}", stage.theta, minimum.theta);
            assert!(end.iterations <= stage.iterations + 5, "{} more", end.iterations - stage.iterations);
        }
    }

    #[test]
    fn a_start_that_is_not_finite_fails_alone() {
        for singles in [false, true] {
            let starts = vec![vec![f64::NAN, 0.0], vec![0.5, 0.5], vec![1e60, 0.0]];
            let minima = minimise(&mut Bowl::default(), starts, singles);
            assert_eq!([minima[0].status, minima[1].status], [Status::Failed, Status::Ok]);
            assert_eq!(minima[2].status, Status::Failed, "its loss overflows");
        }
    }

    /// ½ Σ (xᵢᵀθ − yᵢ)² + log cosh of it, columns of which are nearly sums of others, and an L1 part that spares the last entry.
    struct Columns(Vec<[f64; 4]>);

    impl Columns {
        fn new() -> Columns {
            let noise = |i: usize| ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0;
            let row = |i: usize| {
                let (a, b) = (noise(i), noise(3 * i + 100));
                [a, a + 1e-4 * noise(7 * i), b, 1.0]
            };
            Columns((0..30).map(row).collect())
        }

        /// The margin of a row less its response, which depends on the search.
        fn margin(&self, s: usize, i: usize, theta: &[f64]) -> f64 {
            let y = self.0[i][0] + 0.1 * s as f64 * self.0[i][2] - 0.2;
            self.0[i].iter().zip(theta).map(|(x, t)| x * t).sum::<f64>() - y
        }

        fn gradient(&self, s: usize, theta: &[f64]) -> [f64; 4] {
            let mut gradient = [0.0; 4];
            for (i, x) in self.0.iter().enumerate() {
                let m = self.margin(s, i, theta);
                gradient.iter_mut().zip(x).for_each(|(g, x)| *g += (m + m.tanh()) * x);
            }
            gradient
        }
    }

    impl<T: Scalar<L>, const L: usize> BatchObjective<T, L> for Columns {
        fn p(&self) -> usize {
            4
        }

        fn evaluate(&mut self, trials: &mut [Trial<T, L>]) {
            for Trial { seats, at } in trials {
                for (l, seat) in seats.iter().enumerate() {
                    let Some(s) = *seat else { continue };
                    let theta = at.theta(l, 4);
                    let loss = |m: f64| 0.5 * m * m + m.abs() + (-2.0 * m.abs()).exp().ln_1p() - 2f64.ln();
                    at.values[l] = (0..self.0.len()).map(|i| loss(self.margin(s, i, &theta))).sum();
                    for (j, g) in self.gradient(s, &theta).into_iter().enumerate() {
                        (at.smooth[j][l], at.gradient[j][l]) = (T::of(g), T::of(g));
                    }
                }
            }
        }

        fn renewal_cost(&self) -> f64 {
            3.0
        }
    }

    impl<T: Scalar<L>, const L: usize> Curved<T, L> for Columns {
        fn curvatures(&self, _theta: &[Line<T, L>], _exact: [bool; L], out: &mut [Line<T, L>]) {
            out.fill(Line::default());
        }

        fn hessian(&mut self, s: usize, theta: &[f64], _need: Need) -> Vec<f64> {
            let mut lower = vec![0.0; 10];
            for (i, x) in self.0.iter().enumerate() {
                let v = 2.0 - self.margin(s, i, theta).tanh().powi(2);
                for (j, k) in (0..4).flat_map(|j| (0..=j).map(move |k| (j, k))) {
                    lower[j * (j + 1) / 2 + k] += v * x[j] * x[k];
                }
            }
            lower
        }
    }

    /// Slopes are λ where an entry is not 0 and below it where it is, which many are exactly; as it would alone.
    #[test]
    fn searches_with_kinks_meet_their_optimality_conditions() {
        for l1 in [0.5, 4.0, 100.0] {
            let settings = Settings {
                l1,
                l1_factors: vec![1.0, 1.0, 0.5],
                gradient: 1e-9,
                tolerance: 1e-5,
                ..settings()
            };
            let stages: Vec<Stage> =
                (0..21).map(|s| Stage::start(vec![0.3 * s as f64, -1.0, 1.0, 0.1])).collect();
            for singles in [false, true] {
                let end = |stages: Vec<Stage>| {
                    let stages = match singles {
                        true => {
                            approach::<f32, SINGLES>(Level::PLAIN, &mut Columns::new(), stages, &settings)
                        }
                        false => stages,
                    };
                    minimise_block::<f64, LANES>(Level::PLAIN, &mut Columns::new(), stages, &settings)
                };
                let minima = end(stages.clone());
                assert_eq!(end(stages[..1].to_vec())[0], minima[0]);
                let mut zeros = 0;
                for (s, m) in minima.iter().enumerate() {
                    assert!(m.status == Status::Ok && m.iterations < 60, "{s} at {l1}: {m:?}");
                    for (j, slope) in Columns::new().gradient(s, &m.theta).into_iter().enumerate() {
                        let weight = l1 * [1.0, 1.0, 0.5, 0.0][j];
                        let worst = pseudo_slope(slope, m.theta[j], weight).abs();
                        assert!(worst <= 1e-8, "{s} at {l1}: {slope} of {weight} in {j}");
                        zeros += usize::from(m.theta[j] == 0.0);
                    }
                }
                assert!(if l1 == 100.0 { zeros == 63 } else { (10..63).contains(&zeros) }, "{zeros} at {l1}");
            }
        }
    }
}
