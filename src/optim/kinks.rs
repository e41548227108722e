//! A parabola with kinks, gᵀδ + ½ δᵀHδ + Σ λⱼ|θⱼ + δⱼ|: what a Newton step minimises where an objective has an L1 part.
//! Coordinate descent finds which entries are 0, and the others are solved for (as in the feature-sign search of Lee, Battle, Raina and
//! Ng 2006), so that no correlation of columns makes it slow.

use ndarray::Array2;

use crate::linalg::Cholesky;
use crate::math::dot;

/// Sweeps over all entries, each with the faces that follow it. Every one of them goes down, and faces are finite in number.
const SWEEPS: usize = 100;
/// Faces that are left for another after one sweep.
const FACES: usize = 100;
/// Share of λⱼ by which rounding may let the slope of an entry that is 0 exceed it.
const ROUNDING: f64 = 1e-10;

/// One parabola, and where the search for its minimum is.
pub struct Kinked<'a> {
    /// H, whole.
    pub h: &'a Array2<f64>,
    pub gradient: &'a [f64],
    /// λⱼ; 0 where there is no kink.
    pub l1: &'a [f64],
    pub theta: &'a [f64],
}

impl Kinked<'_> {
    /// θ + δ at the minimum. What is 0 there is 0 exactly.
    pub fn minimise(&self) -> Vec<f64> {
        let mut at = self.theta.to_vec();
        let mut slope = self.gradient.to_vec();
        for _ in 0..SWEEPS {
            self.sweep(&mut at, &mut slope);
            let mut faces = (0..FACES).map(|_| self.cross_face(&mut at, &mut slope));
            let solved = faces.find(|face| *face != Face::Left) == Some(Face::Solved);
            let excess = |j: usize| at[j] == 0.0 && slope[j].abs() > self.l1[j] * (1.0 + ROUNDING);
            if solved && !(0..at.len()).any(excess) {
                break;
            }
        }
        at
    }

    /// −(gᵀδ + Σ λⱼ(|θⱼ + δⱼ| − |θⱼ|)) at θ + δ: about twice what the step gains, and never less than δᵀHδ at the minimum.
    pub fn gain(&self, at: &[f64]) -> f64 {
        let terms = at.iter().zip(self.theta).zip(self.gradient).zip(self.l1);
        -terms.map(|(((a, t), g), l1)| g * (a - t) + l1 * (a.abs() - t.abs())).sum::<f64>()
    }

    /// Every entry to its minimum given the others.
    fn sweep(&self, at: &mut [f64], slope: &mut [f64]) {
        for j in 0..at.len() {
            let row = self.row(j);
            let wanted = at[j] * row[j] - slope[j];
            let to = (wanted.abs() - self.l1[j]).max(0.0).copysign(wanted) / row[j];
            let change = to - at[j];
            if change != 0.0 {
                at[j] = if to == 0.0 { 0.0 } else { to };
                slope.iter_mut().zip(row).for_each(|(s, h)| *s += change * h);
            }
        }
    }

    /// Towards the minimum of the entries that are not 0 with their signs, and as far as the parabola goes down that way.
    fn cross_face(&self, at: &mut [f64], slope: &mut [f64]) -> Face {
        let open: Vec<usize> = (0..at.len()).filter(|&j| at[j] != 0.0 || self.l1[j] == 0.0).collect();
        let sub = Array2::from_shape_fn((open.len(), open.len()), |(a, b)| self.h[[open[a], open[b]]]);
        let Some(factor) = Cholesky::new(&sub) else { return Face::Flat };
        let side = |j: usize| if self.l1[j] == 0.0 { 0.0 } else { self.l1[j].copysign(at[j]) };
        let uphill: Vec<f64> = open.iter().map(|&j| slope[j] + side(j)).collect();
        let step: Vec<f64> = factor.solve(&uphill).into_iter().map(|s| -s).collect();
        let descent = dot(&step, &uphill);
        // Where entries change their signs, and by how much that bends the parabola.
        let mut bends: Vec<(f64, usize)> = (0..open.len())
            .filter(|&a| self.l1[open[a]] > 0.0 && step[a] * at[open[a]] < 0.0)
            .map(|a| (-at[open[a]] / step[a], a))
            .filter(|(t, _)| *t < 1.0)
            .collect();
        bends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut length, mut stop, mut bent) = (1.0, None, 0.0);
        for (t, a) in &bends {
            // The slope along the way is descent (1 − t) and what the signs have added.
            if descent * (1.0 - t) + bent >= 0.0 {
                break;
            }
            bent += 2.0 * self.l1[open[*a]] * step[*a].abs();
            if descent * (1.0 - t) + bent >= 0.0 {
                (length, stop) = (*t, Some(*a));
                break;
            }
        }
        if stop.is_none() && bent > 0.0 {
            length = (1.0 + bent / descent).clamp(0.0, 1.0);
        }
        for (a, &j) in open.iter().enumerate() {
            at[j] = if stop == Some(a) { 0.0 } else { at[j] + length * step[a] };
        }
        slope.copy_from_slice(self.gradient);
        for (j, (a, t)) in at.iter().zip(self.theta).enumerate().filter(|(_, (a, t))| a != t) {
            slope.iter_mut().zip(self.row(j)).for_each(|(s, h)| *s += (a - t) * h);
        }
        if length == 1.0 { Face::Solved } else { Face::Left }
    }

    fn row(&self, j: usize) -> &[f64] {
        self.h.row(j).to_slice().expect("a matrix is stored by rows")
    }
}

/// What became of a face, the points with the same entries 0 and the same signs.
#[derive(PartialEq)]
enum Face {
    /// At its minimum.
    Solved,
    /// For another.
    Left,
    /// Rounding hides its minimum: sweeps have to do.
    Flat,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern.
    fn noise(i: usize) -> f64 {
        ((i * 7919 + 13) % 997) as f64 / 500.0 - 1.0
    }

    /// Columns that are nearly sums of others, at many strengths and starts: |slope| ≤ λ where an entry is 0, and the slope is
    /// −λ sign elsewhere.
    #[test]
    fn the_minimum_meets_its_optimality_conditions_whatever_the_correlations() {
        let (n, p) = (40, 13);
        for (case, mix) in [0.0, 0.9, 0.9999, 1.0 - 1e-7].into_iter().enumerate() {
            let x = Array2::from_shape_fn((n, p), |(i, j)| {
                mix * noise(i + 300 * (j % 4)) + (1.0 - mix) * noise(17 * i + 31 * j + case)
            });
            // As searches have it: a direction without curvature has a little.
            let h = x.t().dot(&x) / n as f64 + Array2::<f64>::eye(p) * 1e-9;
            for (start, l1) in [0.0, 1e-4, 0.02, 0.3, 10.0].into_iter().enumerate() {
                let gradient: Vec<f64> = (0..p).map(|j| noise(5 * j + 70 * case) / 3.0).collect();
                let theta: Vec<f64> =
                    (0..p).map(|j| if j % 3 == 0 { 0.0 } else { noise(j * start + case) }).collect();
                let l1: Vec<f64> = (0..p).map(|j| if j == p - 1 { 0.0 } else { l1 }).collect();
                let parabola = Kinked { h: &h, gradient: &gradient, l1: &l1, theta: &theta };
                let at = parabola.minimise();
                let step: Vec<f64> = at.iter().zip(&theta).map(|(a, t)| a - t).collect();
                for j in 0..p {
                    let slope = gradient[j] + dot(parabola.row(j), &step);
                    let size = step.iter().fold(1.0f64, |m, s| m.max(s.abs()));
                    if at[j] == 0.0 {
                        assert!(slope.abs() <= l1[j] + 1e-9 * size, "{slope} of {} at {j}, mix {mix}", l1[j]);
                    } else {
                        let wanted = if l1[j] == 0.0 { 0.0 } else { -l1[j] * at[j].signum() };
                        assert!(
                            (slope - wanted).abs() < 1e-9 * size,
                            "{slope} for {wanted} at {j}, mix {mix}"
                        );
                    }
                }
                assert!(parabola.gain(&at) >= -1e-12);
            }
        }
    }
}
