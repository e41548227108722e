//! Newton's method with steps by conjugate gradients (Nocedal and Wright 2006, Algorithm 7.1), for a block of searches that have one
//! minimum each and too many parameters for a matrix of each to be factored. Values and gradients are in doubles. The systems
//! behind the steps are solved in singles, sixteen in step to a line: a step is mended by the next, and need not be exact. A search does
//! the same whatever its neighbours do.

use super::batch::{BatchObjective, Trial};
use super::lbfgs::Settings;
use super::line_search::{LineSearch, Verdict};
use super::{Minimum, Status};
use crate::kernel::lanes::{along, dots};
use crate::kernel::{LANES, Level, Line, SINGLES};
use crate::math::{dot, largest};

/// Entry j of sixteen vectors.
pub type Narrow = Line<f32, SINGLES>;

/// Objectives whose Hessians are known by their products.
pub trait Products: BatchObjective {
    /// Gives a lane of a line to a search: its Hessian is that where it was evaluated last.
    fn hold(&mut self, line: usize, lane: usize, search: usize, theta: &[f64]);

    /// H v of every lane of some lines.
    fn multiply(&mut self, lines: &[usize], v: &[&[Narrow]], out: &mut [&mut [Narrow]]);

    /// About H⁻¹v, by a matrix that all searches share.
    fn solve(&self, v: &[&[Narrow]], out: &mut [&mut [Narrow]]);
}

/// Where a search came to.
pub enum End {
    Minimum(Minimum),
    /// Singles do not show the way from here.
    Left {
        theta: Vec<f64>,
        iterations: usize,
    },
}

/// Lines of systems that are solved together.
const LINES: usize = 4;
/// Products for one step.
const MOST: usize = 300;
/// Share of the gradient that a step leaves at most; the nearer the minimum, the less, as far as singles go.
const SHARE: f64 = 0.1;
const LEAST_SHARE: f64 = 1e-3;
/// Share that is left of what is wanted where a step is to be the last.
const LAST: f64 = 0.3;
/// Steps after which a search has found no way.
const STEPS: usize = 60;

struct Point {
    theta: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// One search half way.
struct Search {
    /// Of the part of its values that no parameter moves.
    size: f64,
    here: Point,
    direction: Vec<f64>,
    line: LineSearch,
    /// √(gᵀH₀⁻¹g) at the start.
    first: Option<f64>,
    /// Evaluations and products.
    iterations: usize,
    steps: usize,
    turn: Turn,
}

/// What a search does next.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    /// Tries a point along its direction.
    Try,
    /// Looks for a direction from `here`.
    Aim,
    Leave,
    End(Status),
}

/// Minimises all objectives of a block from their starts.
pub fn minimise_block(
    level: Level,
    objective: &mut dyn Products,
    starts: Vec<Vec<f64>>,
    settings: &Settings,
) -> Vec<End> {
    let searches = starts.into_iter().enumerate();
    let mut searches: Vec<Search> =
        searches.map(|(i, theta)| Search::new(theta, objective.size(i))).collect();
    loop {
        let with = |turn: Turn| -> Vec<usize> {
            (0..searches.len()).filter(|&i| searches[i].turn == turn).collect()
        };
        let (trying, aiming) = (with(Turn::Try), with(Turn::Aim));
        if !trying.is_empty() {
            evaluate(objective, &mut searches, &trying);
        } else if !aiming.is_empty() {
            aim(level, objective, &mut searches, &aiming, settings);
        } else {
            return searches.into_iter().map(Search::end).collect();
        }
    }
}

/// A trial of each of these searches.
fn evaluate(objective: &mut dyn Products, searches: &mut [Search], trying: &[usize]) {
    let p = objective.p();
    for numbers in trying.chunks(objective.seats()) {
        let mut trials: Vec<Trial> = numbers.chunks(LANES).map(|_| Trial::new(p)).collect();
        for (i, &number) in numbers.iter().enumerate() {
            trials[i / LANES].seat(i % LANES, number, &searches[number].trial());
        }
        objective.evaluate(&mut trials);
        for (i, &number) in numbers.iter().enumerate() {
            let (at, lane) = (&trials[i / LANES].at, i % LANES);
            let (theta, gradient) = (at.theta(lane, p), at.gradient(lane, p));
            searches[number].receive(Point { theta, value: at.values[lane], gradient });
        }
    }
}

impl Search {
    fn new(theta: Vec<f64>, size: f64) -> Search {
        Search {
            size,
            here: Point { theta, value: f64::NAN, gradient: Vec::new() },
            direction: Vec::new(),
            line: LineSearch::default(),
            first: None,
            iterations: 1,
            steps: 0,
            turn: Turn::Try,
        }
    }

    /// The next point to evaluate, the start to begin with.
    fn trial(&self) -> Vec<f64> {
        match self.direction.is_empty() {
            true => self.here.theta.clone(),
            false => {
                let step = self.line.step;
                self.here.theta.iter().zip(&self.direction).map(|(t, d)| t + step * d).collect()
            }
        }
    }

    fn receive(&mut self, point: Point) {
        let known = point.gradient.iter().all(|g| g.is_finite());
        if self.direction.is_empty() {
            let finite = point.value.is_finite() && known;
            self.turn = if finite { Turn::Aim } else { Turn::End(Status::Failed) };
            self.here = point;
            return;
        }
        self.iterations += 1;
        let value = if known { point.value } else { f64::NAN };
        let ascent = dot(&point.gradient, &self.direction);
        match self.line.judge(value, Some(ascent)) {
            Verdict::Accept => {
                self.here = point;
                self.turn = Turn::Aim;
            }
            Verdict::TryAgain => {}
            Verdict::Nothing => self.turn = Turn::Leave,
        }
    }

    /// How much of its gradient the next step may leave, given √(gᵀH₀⁻¹g); `None` where the search has ended.
    fn share(&mut self, size: f64, settings: &Settings) -> Option<f64> {
        let steepest = largest(&self.here.gradient);
        let enough = (settings.gradient / steepest).min(settings.tolerance / (settings.mass.sqrt() * size));
        self.steps += 1;
        self.turn = if steepest == 0.0 || enough >= 1.0 {
            Turn::End(Status::Ok)
        } else if self.iterations >= settings.max_iterations {
            Turn::End(Status::MaxIter)
        } else if self.steps > STEPS || !size.is_finite() {
            Turn::Leave
        } else {
            let near = (size / *self.first.get_or_insert(size)).sqrt();
            return Some(near.clamp(LEAST_SHARE, SHARE).max(LAST * enough));
        };
        None
    }

    /// Takes a direction, if it leads down.
    fn set_off(&mut self, direction: Vec<f64>, products: usize) {
        let descent = dot(&direction, &self.here.gradient);
        self.turn = if descent < 0.0 { Turn::Try } else { Turn::Leave };
        self.line = LineSearch::new(self.here.value, self.size, descent, 1.0);
        self.direction = direction;
        self.iterations += products;
    }

    fn end(self) -> End {
        let Search { here: Point { theta, value, gradient }, iterations, turn, .. } = self;
        match turn {
            Turn::End(Status::Failed) => End::Minimum(Minimum::failed(theta, iterations)),
            Turn::End(status) => {
                End::Minimum(Minimum { theta, value, iterations, gradient: largest(&gradient), status })
            }
            _ => End::Left { theta, iterations },
        }
    }
}

/// A system H s = −g in its lane, g divided by its largest entry.
struct Seat {
    search: usize,
    scale: f64,
    /// rᵀH₀⁻¹r to begin with, if that is known, and at present.
    first: Option<f64>,
    rest: f64,
    /// Share of √`first` to leave.
    share: f64,
    products: usize,
}

/// Sixteen systems in step.
struct Systems {
    seats: [Option<Seat>; SINGLES],
    solution: Vec<Narrow>,
    residual: Vec<Narrow>,
    direction: Vec<Narrow>,
    /// H₀⁻¹ `residual`, then H `direction`.
    product: Vec<Narrow>,
    spare: Vec<Narrow>,
}

/// Gives each of these searches a direction, or its end.
fn aim(
    level: Level,
    objective: &mut dyn Products,
    searches: &mut [Search],
    aiming: &[usize],
    settings: &Settings,
) {
    let p = objective.p();
    let mut waiting = aiming.iter().copied();
    let lines = aiming.len().div_ceil(SINGLES).min(LINES);
    let mut lines: Vec<Systems> = (0..lines).map(|_| Systems::new(p)).collect();
    loop {
        for (at, line) in lines.iter_mut().enumerate() {
            for lane in (0..SINGLES).filter(|&lane| line.seats[lane].is_none()).collect::<Vec<_>>() {
                let Some(search) = waiting.next() else { break };
                objective.hold(at, lane, search, &searches[search].here.theta);
                line.seat(lane, search, &searches[search].here.gradient);
            }
        }
        let mut open: Vec<(usize, &mut Systems)> =
            lines.iter_mut().enumerate().filter(|(_, line)| line.is_open()).collect();
        if open.is_empty() {
            return;
        }
        let (v, mut out) =
            open.iter_mut().map(|(_, line)| line.residual_and_product()).unzip::<_, _, Vec<_>, Vec<_>>();
        objective.solve(&v, &mut out);
        open.iter_mut().for_each(|(_, line)| line.turn(level, searches, settings));
        open.retain(|(_, line)| line.is_open());
        let numbers: Vec<usize> = open.iter().map(|(at, _)| *at).collect();
        let (v, mut out) =
            open.iter_mut().map(|(_, line)| line.direction_and_product()).unzip::<_, _, Vec<_>, Vec<_>>();
        objective.multiply(&numbers, &v, &mut out);
        open.iter_mut().for_each(|(_, line)| line.step(level, searches));
    }
}

impl Systems {
    fn new(p: usize) -> Systems {
        let zeros = || vec![Line::default(); p];
        Systems {
            seats: std::array::from_fn(|_| None),
            solution: zeros(),
            residual: zeros(),
            direction: zeros(),
            product: zeros(),
            spare: zeros(),
        }
    }

    fn is_open(&self) -> bool {
        self.seats.iter().any(Option::is_some)
    }

    fn residual_and_product(&mut self) -> (&[Narrow], &mut [Narrow]) {
        (&self.residual, &mut self.product)
    }

    fn direction_and_product(&mut self) -> (&[Narrow], &mut [Narrow]) {
        (&self.direction, &mut self.product)
    }

    fn seat(&mut self, lane: usize, search: usize, gradient: &[f64]) {
        let scale = largest(gradient);
        let by = if scale > 0.0 { -1.0 / scale } else { 0.0 };
        self.seats[lane] = Some(Seat { search, scale, first: None, rest: 0.0, share: 0.0, products: 0 });
        for (j, g) in gradient.iter().enumerate() {
            self.residual[j][lane] = (by * g) as f32;
            (self.solution[j][lane], self.direction[j][lane]) = (0.0, 0.0);
        }
    }

    /// The next direction of every system, H₀⁻¹r made conjugate to the last; those that are solved leave.
    fn turn(&mut self, level: Level, searches: &mut [Search], settings: &Settings) {
        let rest = dots(level, &self.residual, &self.product);
        let mut beta = [0.0; SINGLES];
        for lane in 0..SINGLES {
            let Some(seat) = &mut self.seats[lane] else { continue };
            let before = std::mem::replace(&mut seat.rest, rest[lane]);
            let search = &mut searches[seat.search];
            match seat.first {
                None => {
                    seat.first = Some(rest[lane]);
                    match search.share(seat.scale * rest[lane].sqrt(), settings) {
                        Some(share) => seat.share = share,
                        None => self.seats[lane] = None,
                    }
                }
                Some(first) if rest[lane] <= seat.share * seat.share * first || seat.products >= MOST => {
                    self.leave(lane, searches);
                }
                // What is not a number leaves with the next step.
                Some(_) => beta[lane] = rest[lane] / before,
            }
        }
        along(level, &self.product, beta, &self.direction, &mut self.spare);
        std::mem::swap(&mut self.direction, &mut self.spare);
    }

    /// One step of every system.
    fn step(&mut self, level: Level, searches: &mut [Search]) {
        let curvature = dots(level, &self.direction, &self.product);
        let mut alpha = [0.0; SINGLES];
        for lane in 0..SINGLES {
            let Some(seat) = &mut self.seats[lane] else { continue };
            let step = seat.rest / curvature[lane];
            if step > 0.0 && step.is_finite() {
                alpha[lane] = step;
                seat.products += 1;
            } else {
                self.leave(lane, searches);
            }
        }
        along(level, &self.solution, alpha, &self.direction, &mut self.spare);
        std::mem::swap(&mut self.solution, &mut self.spare);
        along(level, &self.residual, alpha.map(|a| -a), &self.product, &mut self.spare);
        std::mem::swap(&mut self.residual, &mut self.spare);
    }

    /// The system of a lane is solved as far as it will be.
    fn leave(&mut self, lane: usize, searches: &mut [Search]) {
        let seat = self.seats[lane].take().expect("who leaves has had a seat");
        let step = self.solution.iter().map(|s| seat.scale * f64::from(s[lane])).collect();
        searches[seat.search].set_off(step, seat.products);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: usize = 5;

    /// Σⱼ (j + 1) log cosh(θⱼ − s) + ½ Σ θⱼ² for search s; what is said of its Hessian is `sign` times the truth.
    struct Valley {
        sign: f64,
        at: Vec<Vec<f64>>,
        held: Vec<Vec<Narrow>>,
    }

    impl Valley {
        fn new(sign: f64) -> Valley {
            Valley { sign, at: vec![vec![0.0; P]; 40], held: vec![vec![Line::default(); P]; LINES] }
        }
    }

    fn slope(search: usize, j: usize, theta: f64) -> f64 {
        (j + 1) as f64 * libm::tanh(theta - search as f64) + theta
    }

    impl BatchObjective for Valley {
        fn p(&self) -> usize {
            P
        }

        fn evaluate(&mut self, trials: &mut [Trial]) {
            for Trial { seats, at } in trials {
                for (lane, search) in seats.iter().enumerate().filter_map(|(lane, s)| Some((lane, (*s)?))) {
                    self.at[search] = at.theta(lane, P);
                    let value = |(j, &t): (usize, &f64)| {
                        (j + 1) as f64 * libm::log(libm::cosh(t - search as f64)) + 0.5 * t * t
                    };
                    at.values[lane] = self.at[search].iter().enumerate().map(value).sum();
                    (0..P).for_each(|j| at.gradient[j][lane] = slope(search, j, self.at[search][j]));
                }
            }
        }
    }

    impl Products for Valley {
        fn hold(&mut self, line: usize, lane: usize, search: usize, theta: &[f64]) {
            assert_eq!(theta, self.at[search], "it was evaluated there last");
            for (j, held) in self.held[line].iter_mut().enumerate() {
                let steep = libm::tanh(theta[j] - search as f64);
                held[lane] = (self.sign * ((j + 1) as f64 * (1.0 - steep * steep) + 1.0)) as f32;
            }
        }

        fn multiply(&mut self, lines: &[usize], v: &[&[Narrow]], out: &mut [&mut [Narrow]]) {
            for ((out, v), &line) in out.iter_mut().zip(v).zip(lines) {
                for ((out, v), held) in out.iter_mut().zip(*v).zip(&self.held[line]) {
                    out.0 = std::array::from_fn(|lane| v[lane] * held[lane]);
                }
            }
        }

        fn solve(&self, v: &[&[Narrow]], out: &mut [&mut [Narrow]]) {
            out.iter_mut().zip(v).for_each(|(out, v)| out.copy_from_slice(v));
        }
    }

    fn settings() -> Settings {
        Settings {
            max_iterations: 500,
            tolerance: 1e-6,
            mass: 1.0,
            gradient: 1e-9,
            change: None,
            l1: 0.0,
            l1_factors: Vec::new(),
        }
    }

    fn start(search: usize) -> Vec<f64> {
        (0..P).map(|j| 30.0 - (7 * search + j) as f64).collect()
    }

    #[test]
    fn every_search_finds_its_own_minimum_whatever_is_beside_it() {
        let found = |searches: usize, settings: &Settings| -> Vec<Minimum> {
            let starts = (0..searches).map(start).collect();
            let ends = minimise_block(Level::current(), &mut Valley::new(1.0), starts, settings);
            let minimum = |end| match end {
                End::Minimum(minimum) => minimum,
                End::Left { .. } => panic!("singles show the way"),
            };
            ends.into_iter().map(minimum).collect()
        };
        let minima = found(40, &settings());
        for (search, minimum) in minima.iter().enumerate() {
            assert_eq!(minimum.status, Status::Ok);
            assert!(minimum.gradient <= 1e-9 && minimum.iterations > 2);
            let steepest = minimum.theta.iter().enumerate().map(|(j, t)| slope(search, j, *t).abs());
            assert!(steepest.fold(0.0, f64::max) <= 1e-9);
        }
        for few in [1, 17] {
            assert_eq!(found(few, &settings()), minima[..few]);
        }
        let hurried = found(2, &Settings { max_iterations: 3, ..settings() });
        assert!(hurried.iter().all(|minimum| minimum.status == Status::MaxIter));
    }

    #[test]
    fn a_search_that_is_shown_no_way_is_left_where_it_is() {
        let ends = minimise_block(Level::current(), &mut Valley::new(-1.0), vec![start(0)], &settings());
        assert!(matches!(&ends[..], [End::Left { theta, .. }] if *theta == start(0)));
        let nowhere = vec![f64::NAN; P];
        let ends = minimise_block(Level::current(), &mut Valley::new(1.0), vec![nowhere], &settings());
        assert!(matches!(&ends[..], [End::Minimum(minimum)] if minimum.status == Status::Failed));
    }
}
