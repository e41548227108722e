//! A batch of searches in step. Optimisers know the losses of a block of draws by [`BatchObjective`] alone: points go in as lines,
//! a lane for each search, so that an objective can answer all of them with one pass over the data.

use ndarray::Array2;

use crate::kernel::lanes::replace;
use crate::kernel::{LANES, Level, Line, Scalar};

/// The objectives of a batch, in lanes of doubles or singles. Values and gradients are all that a first-order search needs; what
/// is known of second derivatives, as a matrix H₀ to solve with, spares it steps.
pub trait BatchObjective<T: Scalar<L> = f64, const L: usize = LANES> {
    /// Number of parameters.
    fn p(&self) -> usize;

    /// Values and gradients at the points of the searches that have seats.
    fn evaluate(&mut self, trials: &mut [Trial<T, L>]);

    /// The size of a part of a search's values that no parameter moves. What it is added to is as large, near the minimum, and
    /// values have lost the digits that cancel.
    fn size(&self, _search: usize) -> f64 {
        0.0
    }

    /// Searches to be open at a time. More wait for a seat, so that few lanes are idle.
    fn seats(&self) -> usize {
        2 * L
    }

    /// Row i of `v` becomes H₀⁻¹v, with H₀ about the Hessian of search `searches[i]`, which is `far[i]` from its minimum or
    /// not; false if nothing is known of H₀.
    fn precondition(&mut self, _searches: &[usize], _far: &[bool], _v: &mut Array2<f64>) -> bool {
        false
    }

    /// Makes H₀ of a search anew at `theta`, which is `far` from the minimum or not; false if there is no better one.
    fn renew(&mut self, _search: usize, _theta: &[f64], _far: bool) -> bool {
        false
    }

    /// Whether a search should make H₀ anew before its first step.
    fn begins_alone(&self, _search: usize) -> bool {
        false
    }

    /// What a new Hessian costs, in evaluations.
    fn renewal_cost(&self) -> f64 {
        f64::INFINITY
    }
}

/// The searches of a line, or fewer, and what is found at their points.
pub struct Trial<T = f64, const L: usize = LANES> {
    pub seats: [Option<usize>; L],
    pub at: Points<T, L>,
}

/// A point of every lane, its value, and the gradient there. Entries beyond p are 0.
pub struct Points<T = f64, const L: usize = LANES> {
    pub theta: Vec<Line<T, L>>,
    pub values: [f64; L],
    pub gradient: Vec<Line<T, L>>,
    /// The gradient of the part that is not known in closed form; empty if nobody asks for it.
    pub smooth: Vec<Line<T, L>>,
}

impl<T: Scalar<L>, const L: usize> Trial<T, L> {
    /// No search, for `p` parameters.
    pub fn new(p: usize) -> Self {
        Trial { seats: [None; L], at: Points::new(p) }
    }

    /// No search, for `order` parameters or fewer, the gradient in both its parts.
    pub fn in_parts(order: usize) -> Self {
        Trial { seats: [None; L], at: Points::in_parts(order) }
    }

    /// Gives a search the seat of a lane, at a point.
    pub fn seat(&mut self, lane: usize, search: usize, theta: &[f64]) {
        self.seats[lane] = Some(search);
        self.at.theta.iter_mut().zip(theta).for_each(|(line, t)| line[lane] = T::of(*t));
    }
}

impl<T: Scalar<L>, const L: usize> Points<T, L> {
    fn new(p: usize) -> Self {
        let zeros = || vec![Line::default(); p];
        Points { theta: zeros(), values: [0.0; L], gradient: zeros(), smooth: Vec::new() }
    }

    pub fn in_parts(order: usize) -> Self {
        Points { smooth: vec![Line::default(); order], ..Points::new(order) }
    }

    /// Takes over the points of the chosen lanes.
    pub fn take(&mut self, level: Level, from: &Self, chosen: [bool; L]) {
        replace(level, chosen, 1.0, &from.theta, &mut self.theta);
        replace(level, chosen, 1.0, &from.smooth, &mut self.smooth);
        replace(level, chosen, 1.0, &from.gradient, &mut self.gradient);
        for lane in (0..L).filter(|&lane| chosen[lane]) {
            self.values[lane] = from.values[lane];
        }
    }

    /// The point of a lane.
    pub fn theta(&self, lane: usize, p: usize) -> Vec<f64> {
        self.theta[..p].iter().map(|line| line[lane].into()).collect()
    }

    /// The gradient of a lane.
    pub fn gradient(&self, lane: usize, p: usize) -> Vec<f64> {
        self.gradient[..p].iter().map(|line| line[lane].into()).collect()
    }
}

/// Values and gradients of some searches at the rows of `theta`.
pub fn evaluate_at(
    objective: &mut dyn BatchObjective,
    searches: &[usize],
    theta: &Array2<f64>,
) -> (Vec<f64>, Array2<f64>) {
    let p = theta.ncols();
    let mut trials: Vec<Trial> = (0..searches.len().div_ceil(LANES)).map(|_| Trial::new(p)).collect();
    for (i, (&search, theta)) in searches.iter().zip(theta.outer_iter()).enumerate() {
        trials[i / LANES].seat(i % LANES, search, &theta.to_vec());
    }
    objective.evaluate(&mut trials);
    let values = (0..searches.len()).map(|i| trials[i / LANES].at.values[i % LANES]).collect();
    let entry = |(i, j): (usize, usize)| trials[i / LANES].at.gradient[j][i % LANES];
    (values, Array2::from_shape_fn((searches.len(), p), entry))
}
