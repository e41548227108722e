//! How much each row moves an estimate: I(yᵢ) = −H⁻¹ (∇l(yᵢ, θ) − ∇l̄), the derivative of θ(F) towards a point mass at yᵢ, with H the
//! second derivatives of the loss at equal weights, or at case weights where rows have them: there ∇l̄ is their weighted mean.

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use crate::data::Dataset;
use crate::data::design::Design;
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
    for j in 0..theta.len() {
        let mean =
            gradients.iter().enumerate().map(|(i, g)| train.weight(i) * g[j]).sum::<f64>() / train.mass();
        gradients.iter_mut().for_each(|g| g[j] -= mean);
    }
    let moved: Vec<f64> =
        gradients.into_par_iter().flat_map_iter(|g| hessian.solve(&g).into_iter().map(|v| -v)).collect();
    let known = moved.iter().all(|v| v.is_finite());
    Array2::from_shape_vec((train.n(), theta.len()), moved).ok().filter(|_| known)
}

/// The same of quantities g(θ), by dg/dθ in differences: `of` makes them, θ before them, of θ.
pub fn carried(influence: &Array2<f64>, theta: &[f64], of: impl Fn(&mut Vec<f64>)) -> Array2<f64> {
    let at = |theta: Vec<f64>| {
        let mut all = theta;
        of(&mut all);
        Array1::from(all)
    };
    let slope = |j: usize| {
        let h = STEP.0 * theta[j].abs().max(STEP.1);
        (at(stepped(theta, j, h)) - at(stepped(theta, j, -h))) / (2.0 * h)
    };
    let slopes: Vec<Array1<f64>> = (0..theta.len()).map(slope).collect();
    let entries = at(theta.to_vec()).len();
    let slopes = Array2::from_shape_fn((theta.len(), entries), |(j, k)| match k < theta.len() {
        true => f64::from(j == k),
        false => slopes[j][k],
    });
    influence.dot(&slopes)
}

/// The acceleration of BCa intervals: Σ J³ / (6 (Σ J²)^1.5), Efron (1987), of one parameter; 0 if no row moves it. J is the derivative by
/// what is drawn: of a row its influence, less the mean of its stratum, for a stratum keeps its share; a row of case weight c is c rows; and
/// rows of a cluster move together.
pub fn acceleration(influence: &[f64], design: &Design) -> f64 {
    let weight = |i: usize| design.weights().map_or(1.0, |c| c[i]);
    let mut moved = influence.to_vec();
    if let Some((strata, _)) = design.strata() {
        let mut sums = vec![(0.0, 0.0); strata.count];
        for (i, &s) in strata.of.iter().enumerate() {
            sums[s] = (sums[s].0 + weight(i) * moved[i], sums[s].1 + weight(i));
        }
        moved.iter_mut().zip(&strata.of).for_each(|(v, &s)| *v -= sums[s].0 / sums[s].1);
    }
    let each: Vec<(f64, f64)> = match design.clusters() {
        None => moved.iter().enumerate().map(|(i, v)| (weight(i), *v)).collect(),
        Some(clusters) => {
            let mut sums = vec![(1.0, 0.0); clusters.count];
            moved.iter().enumerate().for_each(|(i, v)| sums[clusters.of[i]].1 += weight(i) * v);
            sums
        }
    };
    let (squares, cubes) = each.iter().fold((0.0, 0.0), |(s, t), (c, v)| (s + c * v * v, t + c * v * v * v));
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
    use crate::data::design::Groups;
    use crate::model::{Context, ModelConfig};
    use crate::optim::Optimiser;

    fn built(model: &str, train: &Dataset) -> Box<dyn Model> {
        let config: ModelConfig = toml::from_str(model).unwrap();
        let optimiser = Optimiser::default();
        let context = Context { train, alpha: 0.0, mass: train.mass(), optimiser: &optimiser, derived: None };
        config.build(&context).unwrap()
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
            let none = Design::default();
            let found = acceleration(found.column(0).to_vec().as_slice(), &none);
            assert!((found - acceleration(&centred, &none)).abs() < 1e-6);
        }
    }

    /// Rows with a case weight are so many rows: influence and acceleration are those of the copies.
    #[test]
    fn a_row_of_case_weight_c_counts_as_c_rows() {
        let values: Vec<f64> = (0..30).map(|i| f64::from((i * i) % 17) + f64::from(i)).collect();
        let counts: Vec<usize> = (0..30).map(|i| 1 + (i * 7) % 4).collect();
        let copies: Vec<f64> = values.iter().zip(&counts).flat_map(|(v, c)| vec![*v; *c]).collect();
        let theta = crate::math::mean(&copies);
        let weights = Design::new(Some(counts.iter().map(|c| *c as f64).collect()), None, None);
        let weighted = Dataset::from_values(values).with_design(weights);
        let copied = Dataset::from_values(copies);
        let of = |train: &Dataset| {
            let found =
                influence(built("[mean]", train).as_ref(), train, &[theta]).unwrap().column(0).to_vec();
            let acceleration = acceleration(&found, &train.design);
            (found, acceleration)
        };
        let ((few, a), (many, b)) = (of(&weighted), of(&copied));
        let spread = few.iter().zip(&counts).flat_map(|(v, c)| vec![*v; *c]);
        assert!(spread.zip(&many).all(|(a, b)| (a - b).abs() < 1e-8));
        assert!((a - b).abs() < 1e-10 && a.abs() > 1e-3, "{a} {b}");
    }

    /// J is the derivative of θ by the weight that is drawn, taken here by differences of weighted means.
    #[test]
    fn clusters_and_strata_move_together_and_apart() {
        let n = 24;
        let values: Vec<f64> = (0..n).map(|i| (((i * i) % 13) as f64).powf(1.5)).collect();
        let weights: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
        // Two strata of four clusters each.
        let cluster = |i: usize| i / 3;
        let stratum = |i: usize| i / 12;
        let design = Design::new(
            Some(weights.clone()),
            Some(Groups::new((0..n).map(|i| cluster(i) as u64))),
            Some(Groups::new((0..n).map(|i| stratum(i) as u64))),
        );
        let shares = design.strata().unwrap().1.to_vec();
        // θ(F) with the mass g of each cluster, every stratum with its share.
        let theta = |g: &[f64]| -> f64 {
            let mean = |s: usize| {
                let rows = (0..n).filter(|&i| stratum(i) == s);
                let (sum, mass) = rows.fold((0.0, 0.0), |(sum, mass), i| {
                    let w = weights[i] * g[cluster(i)];
                    (sum + w * values[i], mass + w)
                });
                shares[s] * sum / mass
            };
            mean(0) + mean(1)
        };
        let slopes: Vec<f64> = (0..8)
            .map(|k| {
                let at =
                    |h: f64| theta(&(0..8).map(|j| if j == k { 1.0 + h } else { 1.0 }).collect::<Vec<_>>());
                (at(1e-5) - at(-1e-5)) / 2e-5
            })
            .collect();
        let by_hand = acceleration(&slopes, &Design::default());
        let train = Dataset::from_values(values.clone()).with_design(design);
        let mean = theta(&[1.0; 8]);
        let found = influence(built("[mean]", &train).as_ref(), &train, &[mean]).unwrap().column(0).to_vec();
        let of_design = acceleration(&found, &train.design);
        assert!((of_design - by_hand).abs() < 1e-6 && by_hand.abs() > 1e-3, "{of_design} {by_hand}");
        assert!((acceleration(&found, &Design::default()) - by_hand).abs() > 1e-3);
    }

    /// What bends at rows alone has no second derivatives.
    #[test]
    fn a_median_has_no_influence_of_this_kind() {
        let train = Dataset::from_values((0..41).map(f64::from).collect());
        assert!(influence(built("[median]", &train).as_ref(), &train, &[20.0]).is_none());
    }
}
