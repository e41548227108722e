//! More columns than rows: majorise and minimise (Hunter and Lange 2004). The parabolas ½ Dⱼβⱼ² + const that touch the
//! penalty at ±β lie above it. With them in its place the loss is that of a ridge regression, whose minimum has
//! β = −D⁻¹Xᵀc with one number c for each row: c is the slope of the loss in the row's margin. Newton's method finds it in
//! as many dimensions as there are rows. No step goes up, and where most of β ends near 0, as sparse regressions do, the
//! parabolas are so close that three steps are enough.

use ndarray::{Array1, ArrayView1};

use super::metric::Gram;
use super::objective::InLanes;
use super::{Family, Regression};
use crate::kernel::{LANES, Panel};
use crate::math::largest;
use crate::optim::batch::evaluate_at;
use crate::optim::lbfgs::Settings;
use crate::optim::{Minimum, Status};

/// Draws that are worked on together.
const SEATS: usize = 16;
/// The gradient is to shrink at least so much in every step.
const GAIN: f64 = 0.25;
/// Share of the wanted gradient that the minimum of a ridge regression may be off.
const EXACT: f64 = 1e-3;
/// Newton steps of one ridge regression.
const NEWTON: usize = 50;
/// Halvings of one of them.
const HALVINGS: usize = 30;

/// A search, from its start to its minimum or to where steps gain too little.
pub struct Descent {
    number: usize,
    pub theta: Vec<f64>,
    dual: Dual,
    value: f64,
    steepest: f64,
    pub iterations: usize,
    /// How it ended; `None` if another way has to be found from here.
    pub status: Option<Status>,
}

impl Descent {
    pub fn minimum(self) -> Option<Minimum> {
        let Descent { theta, value, iterations, steepest, .. } = self;
        self.status.map(|status| Minimum { theta, value, iterations, gradient: steepest, status })
    }
}

/// Descends from every start.
pub fn descend<F: Family>(
    model: &Regression<F>,
    lanes: &mut InLanes<F, f64, LANES>,
    columns: &Panel,
    starts: Vec<Vec<f64>>,
    settings: &Settings,
) -> Vec<Descent> {
    let n = columns.d();
    let new = |(number, theta): (usize, Vec<f64>)| {
        let dual = Dual { c: vec![0.0; n], intercept: 0.0 };
        Descent {
            number,
            theta,
            dual,
            value: f64::INFINITY,
            steepest: f64::INFINITY,
            iterations: 0,
            status: None,
        }
    };
    let mut descents: Vec<Descent> = starts.into_iter().enumerate().map(new).collect();
    for seats in descents.chunks_mut(SEATS) {
        let mut open: Vec<&mut Descent> =
            seats.iter_mut().filter(|s| s.theta.iter().all(|t| t.is_finite())).collect();
        while !open.is_empty() {
            open = round(model, lanes, columns, open, settings);
        }
    }
    descents
}

/// One step of every search; those that go on.
fn round<'a, F: Family>(
    model: &Regression<F>,
    lanes: &mut InLanes<F, f64, LANES>,
    columns: &Panel,
    open: Vec<&'a mut Descent>,
    settings: &Settings,
) -> Vec<&'a mut Descent> {
    let d = model.d();
    let betas: Vec<&[f64]> = open.iter().map(|s| &s.theta[..d]).collect();
    let grams = Gram::new(model, columns, &betas);
    let solved = open.into_iter().zip(grams).filter_map(|(search, gram)| {
        let [mass, ones] = lanes.of.responses(search.number);
        let found = gram.minimise_ridge::<F>(&mass, &ones, &mut search.dual, EXACT * settings.gradient);
        found.then_some((search, gram))
    });
    let (open, grams): (Vec<_>, Vec<_>) = solved.unzip();
    let numbers: Vec<usize> = open.iter().map(|s| s.number).collect();
    let mut theta = lanes.of.combine(open.iter().map(|s| &s.dual.c[..]));
    for ((mut theta, gram), search) in theta.outer_iter_mut().zip(&grams).zip(&open) {
        theta.iter_mut().zip(&gram.inverse).for_each(|(t, inverse)| *t *= -inverse);
        theta[d] = search.dual.intercept;
    }
    let (values, gradients) = evaluate_at(lanes, &numbers, &theta);
    let mut going = Vec::new();
    for (i, search) in open.into_iter().enumerate() {
        let gradient = gradients.row(i).to_vec();
        let steepest = largest(&gradient);
        // Only rounding makes a step go up: it is not taken.
        if values[i].is_nan() || values[i] > search.value {
            continue;
        }
        let before = std::mem::replace(&mut search.steepest, steepest);
        search.theta = theta.row(i).to_vec();
        search.value = values[i];
        search.iterations += 1;
        // At least twice what a Newton step would gain: the Hessian of the regression is above D.
        let gain: f64 = gradient.iter().zip(&grams[i].inverse).map(|(g, inverse)| g * g * inverse).sum();
        let close = settings.mass * gain <= settings.tolerance * settings.tolerance;
        if steepest <= settings.gradient && close {
            search.status = Some(Status::Ok);
        } else if search.iterations >= settings.max_iterations {
            search.status = Some(Status::MaxIter);
        } else if steepest <= GAIN * before {
            going.push(search);
        }
    }
    going
}

/// c and the intercept.
#[derive(Clone, Debug)]
pub struct Dual {
    pub c: Vec<f64>,
    pub intercept: f64,
}

impl Gram {
    /// Moves `at` to the minimum of the ridge regression, to where |s − c| is at most `tolerance`; false if it cannot be found.
    fn minimise_ridge<F: Family>(&self, mass: &[f64], ones: &[f64], at: &mut Dual, tolerance: f64) -> bool {
        let n = mass.len();
        let mut here = self.point::<F>(mass, ones, at.clone());
        for _ in 0..NEWTON {
            let slopes = here.margins.mapv(F::slopes);
            let slope = slopes.mapv(|[slope, _]| slope) * ArrayView1::from(mass) - ArrayView1::from(ones);
            let worst = slope.iter().zip(&here.dual.c).fold(0.0f64, |w, (s, c)| w.max((s - c).abs()));
            if worst <= tolerance {
                break;
            }
            // With V = R² the curvature in the margins, e their change and b the new intercept, c becomes s + V e, which
            // sums to 0, and (1 + R K R) R e = R (b − m − K s).
            let root = Array1::from_shape_fn(n, |i| (mass[i] * slopes[i][0] * slopes[i][1]).sqrt());
            let Some(system) = self.system(&root, 0.0) else { return false };
            let right = (-&here.margins - self.product.dot(&slope)) * &root;
            let solve =
                |right: &Array1<f64>| Array1::from(system.solve(right.as_slice().expect("contiguous")));
            let (fixed, by_intercept) = (solve(&right), solve(&root));
            let intercept = -(slope.sum() + root.dot(&fixed)) / root.dot(&by_intercept);
            let c = slope + (fixed + by_intercept * intercept) * &root;
            let target = self.point::<F>(mass, ones, Dual { c: c.to_vec(), intercept });
            let mut step = 1.0;
            let next = (0..HALVINGS).find_map(|_| {
                let trial = here.towards::<F>(&target, step, mass, ones);
                step *= 0.5;
                (trial.value <= here.value).then_some(trial)
            });
            // Rounding is all that is left to gain, or numbers overflowed.
            let Some(next) = next else { break };
            here = next;
        }
        *at = here.dual;
        at.intercept.is_finite() && at.c.iter().all(|c| c.is_finite())
    }

    fn point<F: Family>(&self, mass: &[f64], ones: &[f64], dual: Dual) -> Point {
        let margins = dual.intercept - self.product.dot(&ArrayView1::from(&dual.c));
        Point::new::<F>(margins, mass, ones, dual)
    }
}

/// A point of a ridge regression.
struct Point {
    dual: Dual,
    margins: Array1<f64>,
    value: f64,
}

impl Point {
    fn new<F: Family>(margins: Array1<f64>, mass: &[f64], ones: &[f64], dual: Dual) -> Point {
        let of_row = |(i, &m): (usize, &f64)| {
            // ½ βᵀDβ = ½ cᵀKc.
            mass[i] * F::partition(m) - ones[i] * m + 0.5 * dual.c[i] * (dual.intercept - m)
        };
        let value = margins.iter().enumerate().map(of_row).sum();
        Point { dual, margins, value }
    }

    /// Part of the way to another point.
    fn towards<F: Family>(&self, to: &Point, step: f64, mass: &[f64], ones: &[f64]) -> Point {
        let between = |a: f64, b: f64| if step == 1.0 { b } else { a + step * (b - a) };
        let c = self.dual.c.iter().zip(&to.dual.c).map(|(a, b)| between(*a, *b)).collect();
        let dual = Dual { c, intercept: between(self.dual.intercept, to.dual.intercept) };
        let margins = self.margins.iter().zip(&to.margins).map(|(a, b)| between(*a, *b)).collect();
        Point::new::<F>(margins, mass, ones, dual)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_model;
    use super::*;
    use crate::config::Positive;
    use crate::data::Dataset;
    use crate::model::Logistic;
    use crate::model::regression::metric::Shared;
    use crate::model::{Model, Search};
    use crate::penalty::{Penalty, StudentT};
    use crate::process::Measure;
    use ndarray::Array2;

    const N: usize = 12;
    const D: usize = 40;

    /// Numbers without a pattern.
    fn noise(i: usize) -> f64 {
        ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0
    }

    fn data() -> Dataset {
        let x = Array2::from_shape_fn((N, D), |(i, j)| noise(i * D + j));
        Dataset::unnamed(x, Some(Array1::from_shape_fn(N, |i| (i % 2) as f64)))
    }

    fn responses() -> (Vec<f64>, Vec<f64>) {
        let mass: Vec<f64> = (0..N).map(|i| (1 + i % 3) as f64 / 24.0).collect();
        let ones = mass.iter().enumerate().map(|(i, m)| m * [0.0, 1.0, 0.3][i % 3]).collect();
        (mass, ones)
    }

    #[test]
    fn a_ridge_regression_has_no_slope_at_its_minimum() {
        let (data, (mass, ones)) = (data(), responses());
        let model = test_model(D, Penalty::Ridge);
        let beta: Vec<f64> = (0..D).map(|j| noise(j + 300)).collect();
        let ridge = Gram::new(&model, &Panel::new(data.x.whole().t()), &[&beta]).remove(0);
        let mut dual = Dual { c: vec![0.0; N], intercept: 0.0 };
        assert!(ridge.minimise_ridge::<Logistic>(&mass, &ones, &mut dual, 1e-14));
        let c = ArrayView1::from(&dual.c);
        let beta = -data.x.whole().t().dot(&c) * ArrayView1::from(&ridge.inverse);
        let margins = data.x.whole().dot(&beta) + dual.intercept;
        let slope = Array1::from_shape_fn(N, |i| mass[i] / (1.0 + (-margins[i]).exp()) - ones[i]);
        let by_beta = data.x.whole().t().dot(&slope) + &beta / &ArrayView1::from(&ridge.inverse);
        assert!(by_beta.iter().all(|g| g.abs() < 1e-13), "{by_beta}");
        assert!(slope.sum().abs() < 1e-13);
    }

    /// Where coefficients stay small a few steps are enough; where the penalty is sharp another way has to be found. Either
    /// way searches end in a minimum, no matter which are beside them.
    #[test]
    fn searches_end_in_a_minimum_by_either_way() {
        let data = data();
        let student_t =
            |b| Penalty::StudentT(StudentT { a: Positive::new(1.0).unwrap(), b: Positive::new(b).unwrap() });
        for (b, gamma, few) in [(1.0, 0.05, true), (1e-4, 0.002, false)] {
            let model = Regression { gamma, ..test_model(D, student_t(b)) };
            assert!(matches!(model.metric(&data), Shared::Rows(..)));
            let f = Measure::empirical(&data);
            let starts: Vec<Vec<f64>> =
                (0..19).map(|s| (0..=D).map(|j| noise(41 * s + j)).collect()).collect();
            let searches: Vec<Search> = starts.iter().map(|s| Search::new(&f, s.clone())).collect();
            let minima = model.minimise_block(&searches);
            assert!(minima.iter().all(|m| m.status == Status::Ok && m.gradient <= 1e-9), "b = {b}");
            assert_eq!(minima.iter().all(|m| m.iterations < 15), few, "b = {b}");
            assert_eq!(model.minimise_block(&searches[17..])[0], minima[17]);
        }
    }

    #[test]
    fn a_start_that_is_not_finite_fails_alone() {
        let data = data();
        let model = test_model(D, Penalty::Ridge);
        let f = Measure::empirical(&data);
        let starts = [vec![f64::NAN; D + 1], vec![0.5; D + 1]];
        let searches: Vec<Search> = starts.iter().map(|s| Search::new(&f, s.clone())).collect();
        let found: Vec<Status> = model.minimise_block(&searches).iter().map(|m| m.status).collect();
        assert_eq!(found, [Status::Failed, Status::Ok]);
    }
}
