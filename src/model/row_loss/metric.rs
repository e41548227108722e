//! H₀ of losses that know their gradients alone: the Hessian at the fit to the data as they are, by differences of the exact
//! gradient. It decides how many steps a search takes, and not where it ends.

use std::sync::OnceLock;

use ndarray::Array2;

use super::{Objective, RowLoss, Rows, Transform, objective};
use crate::data::Dataset;
use crate::linalg::Cholesky;
use crate::math::dot;
use crate::process::Measure;

/// With more coordinates than this a Hessian costs more than it spares.
const MOST: usize = 600;
/// Points that are evaluated at once.
const AT_ONCE: usize = 16;
/// The first step of a difference, relative; it need only tell the order of a curvature.
const FIRST_STEP: f64 = 1e-10;
/// The second, per square root of that curvature.
const STEP: f64 = 1e-4;

/// Newton steps to the fit, at most, and the squared distance to it, in posterior variances, that is near enough.
const STEPS: usize = 40;
const NEAR: f64 = 1e-2;

/// A Hessian that the searches of a model share, made when the first of them asks for it.
#[derive(Default)]
pub struct Metric(OnceLock<Option<Cholesky>>);

impl Metric {
    pub(super) fn get<L: RowLoss>(
        &self,
        model: &Rows<L>,
        transform: &Transform,
        data: &Dataset,
    ) -> Option<&Cholesky> {
        let make = || {
            if data.n() == 0 || transform.dim() > MOST || model.optimiser.change.is_some() {
                return None;
            }
            fitted(model, transform, data).map(|(_, factor)| factor)
        };
        self.0.get_or_init(make).as_ref()
    }
}

/// The fit to the unweighted data, and the Hessian there.
pub(super) fn fitted<L: RowLoss>(
    model: &Rows<L>,
    transform: &Transform,
    data: &Dataset,
) -> Option<(Vec<f64>, Cholesky)> {
    if data.n() == 0 || transform.dim() > MOST {
        return None;
    }
    let f = Measure::empirical(data);
    let on = model.loss.on(&[&f]);
    let objective = objective(on.as_ref(), transform, None);
    let at = |u: &[f64]| {
        let (values, mut gradients) = objective.at(&[0], &[u.to_vec()]);
        (values[0], gradients.remove(0))
    };
    fit(transform.dim(), model.mass, at, |u| matrix(&objective, 0, u))
}

/// The minimum of a loss, by damped Newton steps from 0, and the Hessian near it; `None` if they do not come near.
pub fn fit(
    p: usize,
    mass: f64,
    at: impl Fn(&[f64]) -> (f64, Vec<f64>),
    hessian: impl Fn(&[f64]) -> Array2<f64>,
) -> Option<(Vec<f64>, Cholesky)> {
    fit_from(vec![0.0; p], mass, at, hessian)
}

/// The same from another point.
pub fn fit_from(
    mut u: Vec<f64>,
    mass: f64,
    at: impl Fn(&[f64]) -> (f64, Vec<f64>),
    hessian: impl Fn(&[f64]) -> Array2<f64>,
) -> Option<(Vec<f64>, Cholesky)> {
    let p = u.len();
    let (mut value, mut gradient) = at(&u);
    for _ in 0..STEPS {
        let h = hessian(&u);
        if !value.is_finite() || h.iter().any(|h| !h.is_finite()) {
            return None;
        }
        let exact = Cholesky::new(&h);
        let largest = (0..p).map(|j| h[[j, j]].abs()).fold(f64::MIN_POSITIVE, f64::max);
        let raised = (0..20).map(|k| {
            let mut h = h.clone();
            (0..p).for_each(|j| h[[j, j]] += largest * 1e-8 * libm::pow(8.0, f64::from(k)));
            h
        });
        let factor = exact.clone().or_else(|| raised.into_iter().find_map(|h| Cholesky::new(&h)))?;
        let step = factor.solve(&gradient);
        let gain = dot(&gradient, &step);
        if mass * gain <= NEAR && exact.is_some() {
            return exact.map(|factor| (u, factor));
        }
        let lower = (0..30).map(|k| libm::pow(0.5, f64::from(k))).find_map(|t| {
            let next: Vec<f64> = u.iter().zip(&step).map(|(u, s)| u - t * s).collect();
            let found = at(&next);
            (found.0 <= value - 1e-4 * t * gain).then_some((next, found))
        });
        let Some((next, found)) = lower else { return exact.map(|factor| (u, factor)) };
        (u, (value, gradient)) = (next, found);
    }
    None
}

/// The Hessian of a search at a point, if it is positive definite.
pub(super) fn hessian(objective: &Objective, search: usize, at: &[f64]) -> Option<Cholesky> {
    Cholesky::new(&matrix(objective, search, at))
}

fn matrix(objective: &Objective, search: usize, at: &[f64]) -> Array2<f64> {
    let p = at.len();
    let rough: Vec<f64> = at.iter().map(|u| FIRST_STEP * u.abs().max(1.0)).collect();
    let order = differences(objective, search, at, &rough);
    let step = |j: usize| STEP / order[[j, j]].abs().sqrt();
    let steps: Vec<f64> = (0..p).map(step).map(|h| if h.is_finite() { h } else { STEP }).collect();
    let slopes = differences(objective, search, at, &steps);
    Array2::from_shape_fn((p, p), |(i, j)| 0.5 * (slopes[[i, j]] + slopes[[j, i]]))
}

/// Row j: how the gradient changes with coordinate j, by a step to either side.
fn differences(objective: &Objective, search: usize, at: &[f64], steps: &[f64]) -> Array2<f64> {
    let p = at.len();
    let mut slopes = Array2::zeros((p, p));
    let all: Vec<usize> = (0..p).collect();
    for some in all.chunks(AT_ONCE / 2) {
        let moved = |&j: &usize| {
            [1.0, -1.0].map(|side| {
                let mut u = at.to_vec();
                u[j] += side * steps[j];
                u
            })
        };
        let points: Vec<Vec<f64>> = some.iter().flat_map(moved).collect();
        let (_, gradients) = objective.at(&vec![search; points.len()], &points);
        for (k, &j) in some.iter().enumerate() {
            let width = points[2 * k][j] - points[2 * k + 1][j];
            let sides = gradients[2 * k].iter().zip(&gradients[2 * k + 1]);
            slopes.row_mut(j).iter_mut().zip(sides).for_each(|(to, (up, down))| *to = (up - down) / width);
        }
    }
    slopes
}
