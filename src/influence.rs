//! How much each row moves an estimate: I(yᵢ) = −H⁻¹ (∇l(yᵢ, θ) − ∇l̄), the derivative of θ(F) towards a point mass at yᵢ, with H the
//! second derivatives of the loss at equal weights.

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use crate::data::Dataset;
use crate::linalg::Cholesky;
use crate::model::Model;
use crate::process::Measure;

/// Steps of differences by a gradient, and by the loss alone, in units of the parameter, which counts for this at least.
const STEP: (f64, f64) = (1e-5, 1e-2);
const STEP_TWICE: (f64, f64) = (1e-4, 1e-1);

/// The influence of every row (rows) on every parameter (columns) where the loss at equal weights is smallest; `None` where its second
/// derivatives are not positive definite: there is no single smooth minimum.
pub fn influence(model: &dyn Model, train: &Dataset, theta: &[f64]) -> Option<Array2<f64>> {
    let f = Measure::empirical(train);
    let [whole, half] = [1.0, 0.5].map(|part| hessian(model, &f, theta, part));
    let (whole, half) = (whole?, half?);
    // A loss that bends at rows alone is steeper the nearer one looks.
    let bends = (0..theta.len()).any(|j| (whole[[j, j]] / half[[j, j]] - 1.0).abs() > 0.05);
    let hessian = Cholesky::new(&half).filter(|_| !bends)?;
    let of_row = |i: usize| {
        let row = train.select(&[i]);
        gradient(model, &Measure::empirical(&row), theta)
    };
    let mut gradients: Vec<Vec<f64>> = (0..train.n()).into_par_iter().map(of_row).collect();
    let n = train.n() as f64;
    for j in 0..theta.len() {
        let mean = gradients.iter().map(|g| g[j]).sum::<f64>() / n;
        gradients.iter_mut().for_each(|g| g[j] -= mean);
    }
    let moved: Vec<f64> =
        gradients.into_par_iter().flat_map_iter(|g| hessian.solve(&g).into_iter().map(|v| -v)).collect();
    let known = moved.iter().all(|v| v.is_finite());
    Array2::from_shape_vec((train.n(), theta.len()), moved).ok().filter(|_| known)
}

/// The acceleration of BCa intervals: Σ I³ / (6 (Σ I²)^1.5), Efron (1987), of one parameter; 0 if no row moves it.
pub fn acceleration(influence: &[f64]) -> f64 {
    let (squares, cubes) = influence.iter().fold((0.0, 0.0), |(s, c), i| (s + i * i, c + i * i * i));
    if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 }
}

fn stepped(theta: &[f64], j: usize, by: f64) -> Vec<f64> {
    let mut theta = theta.to_vec();
    theta[j] += by;
    theta
}

fn gradient(model: &dyn Model, f: &Measure, theta: &[f64]) -> Vec<f64> {
    let by_differences = || {
        let slope = |j: usize| {
            let h = STEP.0 * theta[j].abs().max(STEP.1);
            (model.loss(&stepped(theta, j, h), f) - model.loss(&stepped(theta, j, -h), f)) / (2.0 * h)
        };
        (0..theta.len()).map(slope).collect()
    };
    model.gradient(theta, f).unwrap_or_else(by_differences)
}

/// Second derivatives, by steps of which this part is made.
fn hessian(model: &dyn Model, f: &Measure, theta: &[f64], part: f64) -> Option<Array2<f64>> {
    let d = theta.len();
    let mut hessian = Array2::zeros((d, d));
    let has_gradient = model.gradient(theta, f).is_some();
    for j in 0..d {
        let h = match has_gradient {
            true => part * STEP.0 * theta[j].abs().max(STEP.1),
            false => part * STEP_TWICE.0 * theta[j].abs().max(STEP_TWICE.1),
        };
        if has_gradient {
            let up = Array1::from(model.gradient(&stepped(theta, j, h), f)?);
            let down = Array1::from(model.gradient(&stepped(theta, j, -h), f)?);
            hessian.column_mut(j).assign(&((up - down) / (2.0 * h)));
            continue;
        }
        for k in 0..=j {
            let t = part * STEP_TWICE.0 * theta[k].abs().max(STEP_TWICE.1);
            let at = |a: f64, b: f64| model.loss(&stepped(&stepped(theta, j, a), k, b), f);
            let slope = (at(h, t) - at(h, -t) - at(-h, t) + at(-h, -t)) / (4.0 * h * t);
            (hessian[[j, k]], hessian[[k, j]]) = (slope, slope);
        }
    }
    let symmetric = 0.5 * (&hessian + &hessian.t());
    let curved = (0..d).all(|j| symmetric[[j, j]] > 0.0);
    curved.then_some(symmetric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Context, ModelConfig};
    use crate::optim::Optimiser;

    fn built(model: &str, train: &Dataset) -> Box<dyn Model> {
        let config: ModelConfig = toml::from_str(model).unwrap();
        let optimiser = Optimiser::default();
        config.build(&Context { train, alpha: 0.0, mass: train.mass(), optimiser: &optimiser }).unwrap()
    }

    /// A row moves a mean by its distance from it.
    #[test]
    fn the_influence_on_a_mean_is_the_deviation() {
        let values: Vec<f64> = (0..40).map(|i| ((i * i) % 17) as f64).collect();
        let mean = crate::math::mean(&values);
        let train = Dataset::from_values(values.clone());
        for model in ["[mean]", "[normal]\nsigma2 = 2.5"] {
            let model = built(model, &train);
            let found = influence(model.as_ref(), &train, &[mean]).unwrap();
            let off =
                values.iter().zip(found.column(0)).map(|(v, i)| (v - mean - i).abs()).fold(0.0, f64::max);
            assert!(off < 1e-4, "{off}");
            // Skewness over 6 √n.
            let centred: Vec<f64> = values.iter().map(|v| v - mean).collect();
            let found = acceleration(found.column(0).to_vec().as_slice());
            assert!((found - acceleration(&centred)).abs() < 1e-6);
        }
    }

    /// What bends at rows alone has no second derivatives.
    #[test]
    fn a_median_has_no_influence_of_this_kind() {
        let train = Dataset::from_values((0..41).map(f64::from).collect());
        assert!(influence(built("[median]", &train).as_ref(), &train, &[20.0]).is_none());
    }
}
