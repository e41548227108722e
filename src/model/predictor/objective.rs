//! The weighted losses of a block of draws for L-BFGS, in unconstrained coordinates, and the second-order information that all draws
//! share: the Hessian at the fit to the unweighted data.

use ndarray::{Array2, ArrayView1};

use super::known::{Passed, Sums};
use super::{At, Known, Outcome, Predictor, level};
use crate::data::Dataset;
use crate::kernel::products::{add_gradients, add_margins, cross_products};
use crate::kernel::{LANES, Line, Panel, load};
use crate::linalg::Cholesky;
use crate::model::Transform;
use crate::optim::Status;
use crate::optim::batch::{BatchObjective, Trial, evaluate_at};
use crate::optim::lbfgs::{self, Settings};
use crate::penalty::Shape;
use crate::process::{Measure, Part};

/// Groups of eight rows of a tile.
const TILE: usize = 32;
/// Beyond so many parameters no Hessian is formed.
const LARGEST: usize = 400;
/// Change of a linear predictor over which its gradient is differenced.
const STEP: f64 = 1e-4;
/// Shares of the diagonal that are added to a Hessian until it is positive definite.
const SHIFTS: [f64; 4] = [1e-10, 1e-3, 0.1, 10.0];

/// Iterations in which a fit from 0 that is worth having is found.
const PATIENCE: usize = 500;

/// H₀ that all searches share, in unconstrained coordinates; unknown where parameters are too many.
pub(super) struct Metric {
    factor: Option<Cholesky>,
    /// The unweighted data could not be fitted from 0.
    lost: bool,
}

impl Metric {
    pub fn none() -> Metric {
        Metric { factor: None, lost: false }
    }

    pub fn is_lost(&self) -> bool {
        self.lost
    }
}

/// Σ w l over the atoms of a part, one by one; its derivatives are added to `gradient`.
pub(super) fn add_part(model: &Predictor, part: &Part, theta: &[f64], gradient: &mut [f64]) -> f64 {
    let (d, m, linear) = (model.d(), model.m(), model.linear());
    let at = model.law.at(model.phi(theta));
    let (mut eta, mut by_eta, mut by_phi) = (vec![0.0; m], vec![0.0; m], vec![0.0; theta.len() - linear]);
    let mut sum = 0.0;
    for (k, &w) in part.w.iter().enumerate() {
        let x = part.row(k);
        model.eta(theta, x, part.offset(k), &mut eta);
        sum += w * at.loss(outcome(part, k), &eta, &mut by_eta, &mut by_phi);
        for (p, by) in by_eta.iter().enumerate() {
            gradient[p * d..(p + 1) * d].iter_mut().zip(x).for_each(|(g, x)| *g += w * by * x);
            if model.intercept {
                gradient[m * d + p] += w * by;
            }
        }
        gradient[linear..].iter_mut().zip(&by_phi).for_each(|(g, by)| *g += w * by);
    }
    sum
}

pub(super) fn outcome(part: &Part, k: usize) -> Outcome {
    Outcome { y: part.response(k).expect("regression data have responses"), event: part.is_event(k) }
}

/// ∫ h(y) dF.
pub(super) fn carrier(law: &dyn Known, f: &Measure) -> f64 {
    let of_part =
        |part: Part| part.w.iter().enumerate().map(|(k, w)| w * law.carrier(outcome(&part, k))).sum::<f64>();
    f.parts().map(of_part).sum()
}

impl Predictor {
    /// The observed rows, with a column of ones if there is an intercept.
    fn panel<'d>(&self, data: &'d Dataset) -> &'d Panel {
        if self.intercept { data.x.panel_with_intercept() } else { data.x.panel() }
    }

    /// H₀ of the data, made when it is first asked for.
    pub(super) fn metric(&self, data: &Dataset) -> &Metric {
        self.metric.get_or_init(|| {
            let transform = self.transform();
            let plain = self.optimiser.change.is_some() || self.kink() > 0.0;
            if plain || data.n() == 0 || transform.dim() > LARGEST {
                return Metric::none();
            }
            let start = self.rough_start();
            let rough = Metric { factor: self.rough(data, &transform), lost: false };
            let f = Measure::empirical(data);
            let block = [&f];
            let mut objective = Objective::new(self, &transform, &rough, &block);
            let settings = self.settings();
            let settings = Settings { max_iterations: settings.max_iterations.min(PATIENCE), ..settings };
            let fit = lbfgs::minimise_block(&mut objective, vec![transform.unconstrain(&start)], &settings)
                .remove(0);
            let lost = fit.status != Status::Ok;
            if fit.theta.iter().any(|t| !t.is_finite()) {
                return Metric { lost, ..rough };
            }
            let hessian = self.hessian(data, &transform, &f, &fit.theta);
            let factor = positive(&hessian).or(rough.factor);
            Metric { factor, lost }
        })
    }

    pub(super) fn rough_start(&self) -> Vec<f64> {
        let phi = self.law.extras().into_iter().flat_map(|extra| extra.start);
        std::iter::repeat_n(0.0, self.linear()).chain(phi).collect()
    }

    /// XᵀX/n and the curvature of the penalty at 0: sizes of columns, if not of losses.
    fn rough(&self, data: &Dataset, transform: &Transform) -> Option<Cholesky> {
        let (d, m, n) = (self.d(), self.m(), data.mass());
        let x = self.panel(data);
        let weights: Vec<f64> = (0..data.n()).map(|i| data.weight(i) / n).collect();
        let lines: Vec<Line> = (0..x.groups()).map(|g| Line(load(&weights, g))).collect();
        let products = cross_products(level(), x, &[&lines]).remove(0);
        let mut h = Array2::eye(transform.dim());
        // The place of column j of predictor k; the last column is the intercept.
        let place = |k: usize, j: usize| if j < d { k * d + j } else { m * d + k };
        for k in 0..m {
            for i in 0..x.d() {
                for j in 0..=i {
                    let entry = products[i * (i + 1) / 2 + j];
                    (h[[place(k, i), place(k, j)]], h[[place(k, j), place(k, i)]]) = (entry, entry);
                }
            }
            for j in 0..d {
                h[[k * d + j, k * d + j]] += self.penalty.majorant(self.gamma * self.factors[j], 0.0);
            }
        }
        positive(&h)
    }

    /// Differences of gradients at `u`.
    fn hessian(&self, data: &Dataset, transform: &Transform, f: &Measure, u: &[f64]) -> Array2<f64> {
        let (p, d, betas) = (u.len(), self.d(), self.m() * self.d());
        let sizes: Vec<f64> = self.panel(data).sizes().collect();
        let step = |j: usize| if j < betas && sizes[j % d] > 0.0 { STEP / sizes[j % d] } else { STEP };
        let moved = |(i, j): (usize, usize)| {
            let by = if i < p { step(i) } else { -step(i - p) };
            u[j] + if i % p == j { by } else { 0.0 }
        };
        let points = Array2::from_shape_fn((2 * p, p), moved);
        let nothing = Metric::none();
        let block = [f];
        let mut objective = Objective::new(self, transform, &nothing, &block);
        let (_, gradients) = evaluate_at(&mut objective, &vec![0; 2 * p], &points);
        let slope = |i: usize, j: usize| (gradients[[i, j]] - gradients[[p + i, j]]) / (2.0 * step(i));
        Array2::from_shape_fn((p, p), |(i, j)| 0.5 * (slope(i, j) + slope(j, i)))
    }
}

/// The factor of a matrix with as much added to its diagonal as it takes.
fn positive(h: &Array2<f64>) -> Option<Cholesky> {
    let largest = h.diag().iter().fold(0.0f64, |most, v| most.max(v.abs()));
    let shifted = |shift: &f64| {
        let mut h = h.clone();
        h.diag_mut().mapv_inplace(|v| v + shift * v.abs().max(1e-3 * largest));
        Cholesky::new(&h)
    };
    SHIFTS.iter().find_map(shifted)
}

pub(super) struct Objective<'a> {
    model: &'a Predictor,
    transform: &'a Transform,
    metric: &'a Metric,
    /// Draws on the same observed rows: weights, other atoms, what no parameter moves.
    block: &'a [&'a Measure<'a>],
    carriers: Vec<f64>,
    observed: &'a Dataset,
}

impl<'a> Objective<'a> {
    pub fn new(
        model: &'a Predictor,
        transform: &'a Transform,
        metric: &'a Metric,
        block: &'a [&'a Measure<'a>],
    ) -> Self {
        let carriers = block.iter().map(|f| carrier(&*model.law, f)).collect();
        Objective { model, transform, metric, block, carriers, observed: block[0].observed() }
    }

    /// Losses of a draw are divided by the weight of its penalty, which has weight 1 then.
    pub fn scale(&self, search: usize) -> f64 {
        1.0 / self.model.weight(self.block[search])
    }

    /// The coefficients of every predictor, its intercept last, as lines.
    fn coefficients(&self, at: &[Line]) -> Vec<Vec<Line>> {
        let (d, m) = (self.model.d(), self.model.m());
        let of_predictor = |k: usize| {
            let intercept = if self.model.intercept { &at[m * d + k..m * d + k + 1] } else { &[] };
            [&at[k * d..(k + 1) * d], intercept].concat()
        };
        (0..m).map(of_predictor).collect()
    }
}

/// A search, its law at φ, and the derivatives by φ.
type Seat<'a> = (usize, Box<dyn At + 'a>, Vec<f64>);

/// A line of searches on its way through the rows.
struct Pass<'a> {
    /// Of every predictor.
    theta: Vec<Vec<Line>>,
    margins: Vec<Vec<Line>>,
    gradient: Vec<Vec<Line>>,
    /// Of every lane that is taken.
    seats: Vec<Option<Seat<'a>>>,
    values: [f64; LANES],
}

impl Objective<'_> {
    fn pass(&self, trial: &Trial, theta: &[Option<Vec<f64>>]) -> Pass<'_> {
        let coefficients = self.coefficients(&trial.at.theta);
        let gradient = coefficients.iter().map(|theta| vec![Line::default(); theta.len()]).collect();
        let seat = |lane: usize| {
            let theta = theta[lane].as_ref()?;
            let phi = self.model.phi(theta);
            Some((trial.seats[lane]?, self.model.law.at(phi), vec![0.0; phi.len()]))
        };
        let margins = vec![Vec::new(); coefficients.len()];
        Pass {
            theta: coefficients,
            margins,
            gradient,
            seats: (0..LANES).map(seat).collect(),
            values: [0.0; LANES],
        }
    }

    /// Adds up the observed rows of all searches, tile by tile.
    fn observe(&self, passes: &mut [Pass]) {
        if self.observed.n() == 0 {
            return;
        }
        let x = self.model.panel(self.observed);
        for first in (0..x.groups()).step_by(TILE) {
            let groups = first..(first + TILE).min(x.groups());
            for pass in passes.iter_mut() {
                for margins in &mut pass.margins {
                    margins.clear();
                    margins.resize(groups.len() * LANES, Line::default());
                }
            }
            let (theta, mut margins): (Vec<&[Line]>, Vec<&mut [Line]>) = passes
                .iter_mut()
                .flat_map(|pass| {
                    pass.theta.iter().map(|t| &t[..]).zip(pass.margins.iter_mut().map(|m| &mut m[..]))
                })
                .unzip();
            add_margins(level(), x, groups.clone(), 0..x.d(), &theta, &mut margins);
            for pass in passes.iter_mut() {
                self.slopes(pass, groups.start * LANES);
            }
            let (slopes, mut gradients): (Vec<&[Line]>, Vec<&mut [Line]>) = passes
                .iter_mut()
                .flat_map(|pass| {
                    pass.margins.iter().map(|m| &m[..]).zip(pass.gradient.iter_mut().map(|g| &mut g[..]))
                })
                .unzip();
            add_gradients(level(), x, groups, 0..x.d(), &slopes, &mut gradients);
        }
    }

    /// Turns the margins of the rows from `first` on into weighted slopes.
    fn slopes(&self, pass: &mut Pass, first: usize) {
        for (lane, seat) in pass.seats.iter_mut().enumerate() {
            let Some((search, at, by_phi)) = seat else { continue };
            let rows = Passed { data: self.observed, first, w: self.block[*search].weights().0 };
            at.slopes(&rows, lane, &mut pass.margins, Sums { value: &mut pass.values[lane], by_phi });
        }
    }

    /// Value and gradient of a search, with its other atoms, its penalty and the transform.
    fn finish(&self, pass: &Pass, lane: usize, u: &[f64], theta: &[f64]) -> (f64, Vec<f64>) {
        let (search, _, by_phi) = pass.seats[lane].as_ref().expect("a seat that is taken");
        let (d, m) = (self.model.d(), self.model.m());
        let mut by_theta = vec![0.0; theta.len()];
        for (k, gradient) in pass.gradient.iter().enumerate() {
            by_theta[k * d..(k + 1) * d].iter_mut().zip(gradient).for_each(|(g, line)| *g = line[lane]);
            if self.model.intercept {
                by_theta[m * d + k] = gradient[d][lane];
            }
        }
        by_theta[self.model.linear()..].copy_from_slice(by_phi);
        let mut value = pass.values[lane] + self.carriers[*search];
        for part in self.block[*search].parts().skip(usize::from(self.observed.n() > 0)) {
            value += add_part(self.model, &part, theta, &mut by_theta);
        }
        let scale = self.scale(*search);
        by_theta.iter_mut().for_each(|g| *g *= scale);
        value = scale * value + self.model.penalise(theta, &mut by_theta);
        let mut by_u = vec![0.0; u.len()];
        self.transform.pull_back(u, &by_theta, &mut by_u);
        (value, by_u)
    }
}

impl BatchObjective for Objective<'_> {
    fn p(&self) -> usize {
        self.transform.dim()
    }

    fn evaluate(&mut self, trials: &mut [Trial]) {
        let p = self.p();
        let points = |trial: &Trial| -> Vec<Option<Vec<f64>>> {
            (0..LANES).map(|lane| trial.seats[lane].map(|_| trial.at.theta(lane, p))).collect()
        };
        let u: Vec<Vec<Option<Vec<f64>>>> = trials.iter().map(points).collect();
        let constrain = |u: &Option<Vec<f64>>| u.as_ref().map(|u| self.transform.constrain(u).0);
        let theta: Vec<Vec<_>> = u.iter().map(|lanes| lanes.iter().map(constrain).collect()).collect();
        let mut passes: Vec<Pass> =
            trials.iter().zip(&theta).map(|(trial, theta)| self.pass(trial, theta)).collect();
        self.observe(&mut passes);
        for (t, trial) in trials.iter_mut().enumerate() {
            for lane in 0..LANES {
                let (Some(u), Some(theta)) = (&u[t][lane], &theta[t][lane]) else { continue };
                let (value, by_u) = self.finish(&passes[t], lane, u, theta);
                trial.at.values[lane] = value;
                trial.at.gradient.iter_mut().zip(by_u).for_each(|(line, g)| line[lane] = g);
            }
        }
    }

    fn size(&self, search: usize) -> f64 {
        self.scale(search) * self.carriers[search].abs()
    }

    fn precondition(&mut self, searches: &[usize], _far: &[bool], v: &mut Array2<f64>) -> bool {
        let Some(factor) = &self.metric.factor else { return false };
        for (&search, mut row) in searches.iter().zip(v.outer_iter_mut()) {
            let solved = factor.solve(row.as_slice().expect("rows of a matrix are contiguous"));
            row.assign(&ArrayView1::from(&solved));
            row.mapv_inplace(|v| v / self.scale(search));
        }
        true
    }
}
