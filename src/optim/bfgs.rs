//! Newton's method with a Hessian that is mended as it goes, for a block of searches with few parameters: eight in step,
//! each a lane, so that an objective can answer all of them with one pass over the data and a matrix of each is factored
//! at every step for little. A search does the same whatever its neighbours do.
//!
//! The objective is L(θ) = f(θ) + h(θ) + Σ gⱼ(θⱼ) with f and h convex. What is known of h and the gⱼ is not left to be
//! learned: H = A + ∇²h + D, D the curvature of the gⱼ at θ and A about the Hessian of f, mended by BFGS updates from
//! gradients of f alone (Dennis, Gay and Welsch 1981).

use super::lbfgs::{STALLED, Settings};
use super::line_search::{LineSearch, Verdict};
use super::progress::Progress;
use super::{Minimum, Status};
use crate::kernel::triangle::{self, Triangles, dots};
use crate::kernel::{LANES, Level, Line};

/// The objectives of a block.
pub trait LaneObjective {
    /// Number of parameters.
    fn p(&self) -> usize;

    /// Value and gradients at the points of the searches that have seats.
    fn evaluate(&mut self, trials: &mut [Trial]);

    /// Curvature of every gⱼ at θⱼ: the second derivative where `exact`, else that of a parabola that touches there and lies
    /// above elsewhere.
    fn curvatures(&self, theta: &[Line], exact: [bool; LANES], out: &mut [Line]);

    /// About the Hessian of f: its lower triangle, row after row.
    fn hessian(&mut self, search: usize, theta: &[f64], need: Need) -> Vec<f64>;

    /// The Hessian of h at θ, or, `far` from the minimum, of what lies above it; its lower triangle, row after row. `None`
    /// if there is no h, for all searches.
    fn known_hessian(&self, _search: usize, _theta: &[f64], _far: bool) -> Option<Vec<f64>> {
        None
    }

    /// What a Hessian of f at θ costs, in evaluations.
    fn hessian_cost(&self) -> f64;

    /// Searches to be open at a time. More wait for a seat, so that few lanes are idle.
    fn seats(&self) -> usize;
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

/// Eight searches, or fewer, and what is found at their points.
pub struct Trial {
    pub seats: [Option<usize>; LANES],
    pub at: Points,
}

/// A point of every lane, its value, the gradient of f there and that of L. Entries beyond p are 0.
pub struct Points {
    pub theta: Vec<Line>,
    pub values: [f64; LANES],
    pub smooth: Vec<Line>,
    pub gradient: Vec<Line>,
}

/// Squared distance to the minimum, in posterior variances per parameter, within which a search is near it.
const NEAR: f64 = 0.1;
/// D has at least this share of the largest entry of A: a direction without curvature would be given an infinite step.
const RIDGE: f64 = 1e-9;

/// One search half way.
struct Lane {
    search: usize,
    line: LineSearch,
    iterations: usize,
    /// Has been near.
    arrived: bool,
    /// Since A was made.
    progress: Progress,
    /// The largest gradient entry where the search was stuck last.
    stuck: f64,
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
    End(Status),
}

/// Eight searches.
struct Group {
    lanes: [Option<Lane>; LANES],
    here: Points,
    direction: Vec<Line>,
    a: Triangles,
    /// A + ∇²h, where there is an h.
    whole: Option<Triangles>,
    factor: Triangles,
    d: Vec<Line>,
}

/// Minimises all objectives of a block from their starts.
pub fn minimise_block(
    level: Level,
    objective: &mut dyn LaneObjective,
    starts: Vec<Vec<f64>>,
    settings: &Settings,
) -> Vec<Minimum> {
    let p = objective.p();
    let mut minima: Vec<Option<Minimum>> = starts.iter().map(|_| None).collect();
    let count = starts.len().min(objective.seats()).div_ceil(LANES);
    let mut waiting = starts.into_iter().enumerate();
    let mut groups: Vec<Group> = (0..count).map(|_| Group::new(p)).collect();
    let mut trials: Vec<Trial> =
        groups.iter().map(|g| Trial { seats: [None; LANES], at: Points::new(g.a.order()) }).collect();
    loop {
        for (group, trial) in groups.iter_mut().zip(&mut trials) {
            for (lane, place) in group.lanes.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
                let next = waiting.next();
                trial.seats[lane] = next.as_ref().map(|(search, _)| *search);
                *place = next.map(|(search, start)| {
                    trial.at.theta.iter_mut().zip(start).for_each(|(line, t)| line[lane] = t);
                    Lane::new(search)
                });
            }
        }
        groups.retain(|group| group.lanes.iter().any(Option::is_some));
        trials.retain(|trial| trial.seats.iter().any(Option::is_some));
        if groups.is_empty() {
            return minima.into_iter().map(|m| m.expect("every search has had a seat")).collect();
        }
        objective.evaluate(&mut trials);
        for (group, trial) in groups.iter_mut().zip(&mut trials) {
            group.receive(&trial.at, settings);
            group.learn(level, &trial.at);
            group.aim(level, objective, settings);
            group.set_off(&mut trial.at);
            for (lane, place) in group.lanes.iter_mut().enumerate() {
                if let Some((search, minimum)) = place.as_ref().and_then(|l| l.minimum(lane, &group.here, p))
                {
                    minima[search] = Some(minimum);
                    *place = None;
                }
            }
        }
    }
}

impl Points {
    fn new(order: usize) -> Points {
        let zeros = || vec![Line::default(); order];
        Points { theta: zeros(), values: [0.0; LANES], smooth: zeros(), gradient: zeros() }
    }

    fn take(&mut self, from: &Points, lane: usize) {
        let pairs = [
            (&mut self.theta, &from.theta),
            (&mut self.smooth, &from.smooth),
            (&mut self.gradient, &from.gradient),
        ];
        for (to, from) in pairs {
            to.iter_mut().zip(from).for_each(|(to, from)| to[lane] = from[lane]);
        }
        self.values[lane] = from.values[lane];
    }

    fn theta(&self, lane: usize, p: usize) -> Vec<f64> {
        self.theta[..p].iter().map(|line| line[lane]).collect()
    }
}

/// Largest absolute entry of every lane.
fn largest(lines: &[Line]) -> [f64; LANES] {
    let mut most = [0.0f64; LANES];
    for line in lines {
        (0..LANES).for_each(|l| most[l] = most[l].max(line[l].abs()));
    }
    most
}

impl Lane {
    fn new(search: usize) -> Lane {
        Lane {
            search,
            line: LineSearch::default(),
            iterations: 1,
            arrived: false,
            progress: Progress::new(),
            stuck: f64::INFINITY,
            turn: Turn::Begin,
        }
    }

    fn aims(&self) -> bool {
        matches!(self.turn, Turn::Aim | Turn::Stuck)
    }

    /// Judged by what the last step promised to gain.
    fn is_far(&self, p: usize, settings: &Settings) -> bool {
        let p = (p as f64).min(settings.mass);
        self.line.descent == 0.0 || -settings.mass * self.line.descent > NEAR * p
    }

    /// Another A for a search that comes near, is stuck, or has gained so little with this one that the rest of the way
    /// would cost more than making another.
    fn need(&mut self, p: usize, steepest: f64, cost: f64, settings: &Settings) -> Option<Need> {
        let far = self.is_far(p, settings);
        if self.turn == Turn::Stuck {
            Some(Need::Anew { far })
        } else if self.progress.is_first() {
            Some(Need::Start)
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
            let done = steepest <= STALLED * settings.gradient;
            self.turn = Turn::End(if done { Status::Ok } else { Status::MaxIter });
        }
    }

    /// Where the search ended, if it has.
    fn minimum(&self, lane: usize, here: &Points, p: usize) -> Option<(usize, Minimum)> {
        let Turn::End(status) = self.turn else { return None };
        let theta = here.theta(lane, p);
        let minimum = if status == Status::Failed {
            Minimum::failed(theta, self.iterations)
        } else {
            let gradient = largest(&here.gradient)[lane];
            Minimum { theta, value: here.values[lane], iterations: self.iterations, gradient, status }
        };
        Some((self.search, minimum))
    }
}

impl Group {
    fn new(p: usize) -> Group {
        let (a, factor) = (Triangles::new(p), Triangles::new(p));
        let zeros = || vec![Line::default(); a.order()];
        let (direction, d) = (zeros(), zeros());
        Group {
            lanes: Default::default(),
            here: Points::new(a.order()),
            direction,
            a,
            whole: None,
            factor,
            d,
        }
    }

    fn receive(&mut self, trial: &Points, settings: &Settings) {
        let (ascents, steepest) = (dots(&trial.gradient, &self.direction), largest(&self.here.gradient));
        for (l, lane) in self.lanes.iter_mut().enumerate() {
            let Some(lane) = lane else { continue };
            if lane.turn == Turn::Begin {
                let finite = trial.values[l].is_finite() && trial.gradient.iter().all(|g| g[l].is_finite());
                lane.turn = if finite { Turn::Aim } else { Turn::End(Status::Failed) };
                self.here.take(trial, l);
                continue;
            }
            lane.iterations += 1;
            match lane.line.judge(trial.values[l], Some(ascents[l])) {
                Verdict::Accept => lane.turn = Turn::Aim,
                Verdict::TryAgain => {}
                Verdict::Nothing => lane.give_up(steepest[l], settings),
            }
        }
    }

    /// Moves the searches that have found a lower point there, and mends their A.
    fn learn(&mut self, level: Level, trial: &Points) {
        let moved: [bool; LANES] =
            std::array::from_fn(|l| self.lanes[l].as_ref().is_some_and(|lane| lane.turn == Turn::Aim));
        if !moved.contains(&true) {
            return;
        }
        let difference = |to: &[Line], from: &[Line]| -> Vec<Line> {
            let entry = |l: usize, to: f64, from: f64| if moved[l] { to - from } else { 0.0 };
            let line = |(to, from): (&Line, &Line)| Line(std::array::from_fn(|l| entry(l, to[l], from[l])));
            to.iter().zip(from).map(line).collect()
        };
        let s = difference(&trial.theta, &self.here.theta);
        let mut y = difference(&trial.smooth, &self.here.smooth);
        let mut along = vec![Line::default(); s.len()];
        triangle::times(level, &self.a, &s, &mut along);
        let (sy, sas, ss, yy) = (dots(&s, &y), dots(&s, &along), dots(&s, &s), dots(&y, &y));
        let tells = |l: usize| sy[l] > 1e-12 * (ss[l] * yy[l]).sqrt() && sas[l] > 0.0;
        let scale = |lines: &mut [Line], by: &[f64; LANES]| {
            let by: [Option<f64>; LANES] = std::array::from_fn(|l| tells(l).then(|| 1.0 / by[l].sqrt()));
            let scaled = |line: &Line| Line(std::array::from_fn(|l| by[l].map_or(0.0, |by| by * line[l])));
            lines.iter_mut().for_each(|line| *line = scaled(line));
        };
        scale(&mut y, &sy);
        scale(&mut along, &sas);
        triangle::update(level, &mut self.a, &y, &along);
        for l in (0..LANES).filter(|&l| moved[l]) {
            self.here.take(trial, l);
            self.lanes[l].iter_mut().for_each(|lane| lane.progress.step());
        }
    }

    /// Gives every search that wants one a direction, or its end.
    fn aim(&mut self, level: Level, objective: &mut dyn LaneObjective, settings: &Settings) {
        let p = objective.p();
        let steepest = largest(&self.here.gradient);
        let cost = objective.hessian_cost();
        let mut exact = [false; LANES];
        for (l, lane) in self.lanes.iter_mut().enumerate() {
            let Some(lane) = lane.as_mut().filter(|lane| lane.aims()) else { continue };
            if let Some(need) = lane.need(p, steepest[l], cost, settings) {
                self.a.set(l, &objective.hessian(lane.search, &self.here.theta(l, p), need));
                lane.progress.begin(steepest[l]);
            }
            exact[l] = !lane.is_far(p, settings);
        }
        if !self.lanes.iter().flatten().any(Lane::aims) {
            return;
        }
        self.add_known(objective, settings);
        self.factor(level, objective, exact, steepest, settings);
        let mut step = self.here.gradient.clone();
        triangle::solve(level, &self.factor, &mut step);
        let gain = dots(&step, &self.here.gradient);
        for (l, lane) in self.lanes.iter_mut().enumerate() {
            let Some(lane) = lane.as_mut().filter(|lane| lane.aims()) else { continue };
            let close = settings.mass * gain[l] <= settings.tolerance * settings.tolerance;
            if steepest[l] == 0.0 || close && steepest[l] <= settings.gradient {
                lane.turn = Turn::End(Status::Ok);
            } else if lane.iterations >= settings.max_iterations {
                lane.turn = Turn::End(Status::MaxIter);
            } else if gain[l] > 0.0 {
                self.direction.iter_mut().zip(&step).for_each(|(to, step)| to[l] = -step[l]);
                lane.line = LineSearch::new(self.here.values[l], -gain[l], 1.0);
                lane.turn = Turn::Try;
            } else {
                lane.turn = Turn::End(Status::MaxIter);
            }
        }
    }

    /// Adds ∇²h to A for the searches that want a direction.
    fn add_known(&mut self, objective: &dyn LaneObjective, settings: &Settings) {
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
        objective: &mut dyn LaneObjective,
        mut exact: [bool; LANES],
        steepest: [f64; LANES],
        settings: &Settings,
    ) {
        let p = objective.p();
        loop {
            objective.curvatures(&self.here.theta[..p], exact, &mut self.d[..p]);
            let whole = self.whole.as_ref().unwrap_or(&self.a);
            let mut ridge = [0.0f64; LANES];
            for j in 0..p {
                (0..LANES).for_each(|l| ridge[l] = ridge[l].max(RIDGE * whole.diagonal(j)[l]));
            }
            self.d[..p].iter_mut().for_each(|d| (0..LANES).for_each(|l| d[l] += ridge[l]));
            triangle::factor(level, whole, &self.d, &mut self.factor);
            let last = self.factor.diagonal(self.a.order() - 1).0;
            let (mut again, mut renewed) = (false, false);
            for (l, lane) in self.lanes.iter_mut().enumerate() {
                let Some(lane) = lane.as_mut().filter(|lane| lane.aims() && !last[l].is_finite()) else {
                    continue;
                };
                again = true;
                if exact[l] {
                    exact[l] = false;
                } else if lane.progress.has_moved() {
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
    fn set_off(&self, trial: &mut Points) {
        for (l, lane) in self.lanes.iter().enumerate() {
            let Some(lane) = lane.as_ref().filter(|lane| lane.turn == Turn::Try) else { continue };
            let lines = trial.theta.iter_mut().zip(&self.here.theta).zip(&self.direction);
            lines.for_each(|((trial, here), direction)| trial[l] = here[l] + lane.line.step * direction[l]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    impl LaneObjective for Bowl {
        fn p(&self) -> usize {
            2
        }

        fn evaluate(&mut self, trials: &mut [Trial]) {
            for trial in trials {
                for (l, seat) in trial.seats.iter().enumerate() {
                    let Some(s) = *seat else { continue };
                    self.evaluated += 1;
                    let (a, b) = (trial.at.theta[0][l], trial.at.theta[1][l]);
                    let pull = a - 0.2 * s as f64;
                    let smooth = [(a + b).sinh() + pull, (a + b).sinh()];
                    let known = if self.known { (a + b).sinh() } else { 0.0 };
                    trial.at.values[l] = (a + b).cosh() + 0.5 * pull * pull + penalty(b)[0];
                    for (j, slope) in [0.0, penalty(b)[1]].into_iter().enumerate() {
                        trial.at.smooth[j][l] = smooth[j] - known;
                        trial.at.gradient[j][l] = smooth[j] + slope;
                    }
                }
            }
        }

        fn curvatures(&self, theta: &[Line], exact: [bool; LANES], out: &mut [Line]) {
            out[0] = Line::default();
            for l in 0..LANES {
                let t = theta[1][l];
                out[1][l] = if exact[l] { penalty(t)[2] } else { 10.0 / (1.0 + 10.0 * t * t) };
            }
        }

        fn hessian(&mut self, _search: usize, theta: &[f64], need: Need) -> Vec<f64> {
            let c = if need == Need::Start { 1.0 } else { (theta[0] + theta[1]).cosh() };
            if self.known { vec![1.0, 0.0, 0.0] } else { vec![c + 1.0, c, c] }
        }

        fn known_hessian(&self, _search: usize, theta: &[f64], _far: bool) -> Option<Vec<f64>> {
            self.known.then(|| vec![(theta[0] + theta[1]).cosh(); 3])
        }

        fn hessian_cost(&self) -> f64 {
            3.0
        }

        fn seats(&self) -> usize {
            16
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
            l1_len: 0,
        }
    }

    /// More searches than seats, of different lengths; each ends at a minimum, and as it would alone.
    #[test]
    fn every_search_of_a_block_finds_its_own_minimum() {
        for known in [false, true] {
            find_minima(known);
        }
    }

    fn find_minima(known: bool) {
        let starts: Vec<Vec<f64>> =
            (0..41).map(|s| vec![2.0 - 0.1 * s as f64, 0.3 * (s % 7) as f64 - 1.0]).collect();
        let mut bowl = Bowl { known, ..Bowl::default() };
        let minima = minimise_block(Level::Plain, &mut bowl, starts.clone(), &settings());
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
                minimise_block(Level::Plain, &mut Bowl { known, ..Bowl::default() }, starts, &settings())
                    .remove(search)
            };
            assert_eq!(alone(number, &starts[number]), minima[number]);
        }
    }

    #[test]
    fn a_start_that_is_not_finite_fails_alone() {
        let starts = vec![vec![f64::NAN, 0.0], vec![0.5, 0.5]];
        let minima = minimise_block(Level::Plain, &mut Bowl::default(), starts, &settings());
        assert_eq!([minima[0].status, minima[1].status], [Status::Failed, Status::Ok]);
    }
}
