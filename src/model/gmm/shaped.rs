//! Gaussian mixtures whose covariances are not diagonal: spherical σₖ²I, one Σ for all components, or a full Σₖ for each. Weighted EM
//! as in the diagonal case; the floor holds for the eigenvalues.

use std::f64::consts::TAU;
use std::sync::Arc;

use ndarray::{Array2, ArrayView2};

use super::shaped_joint::{GaussianMeasure, SphericalJoint};
use super::{Covariance, MixturePrior, NARROW, Shrinkage, predictive_row};
use crate::config::{Complaint, complaint};
use crate::data::Dataset;
use crate::kernel::Level;
use crate::kernel::components::{Gaussians, Moments, gaussian_density, gaussian_step, gaussian_sums};
use crate::kernel::mixture::{self, Mixture, Sums};
use crate::linalg::{Cholesky, eigen};
use crate::math::log_sum_exp;
use crate::model::em::{Em, Expectation};
use crate::model::{Block, Collapse, Components, Joint, Model, Sampled, Support};
use crate::optim::Minimum;
use crate::process::{BaseMeasure, Measure};

/// The mixture on data of d columns. θ is π (K), then μ (K × d by rows), then σ² (K) or all entries of Σ (d × d by rows, one or K).
pub(super) struct Shaped {
    pub covariance: Covariance,
    pub k: usize,
    pub d: usize,
    pub floor: f64,
    pub penalty: Option<Shrinkage>,
    pub prior: Option<MixturePrior>,
    /// Covariance of the data, where there are any.
    pub spread: Option<Array2<f64>>,
    pub em: Em,
    pub level: Level,
}

/// A variance, or an eigenvalue, counts as on the floor up to this share of it, and of the largest.
const AT_FLOOR: f64 = 1e-9;
const ROUNDING: f64 = 1e-14;
/// 1/π of a component that has all but died.
const LEAST_ROOT: f64 = 1e-5;

/// Covariance of the rows by their case weights.
pub(super) fn covariance_of(data: &Dataset) -> Array2<f64> {
    let (n, d, means) = (data.mass(), data.d(), data.moments());
    let mut sums = Array2::zeros((d, d));
    for (i, row) in data.x.iter().enumerate() {
        let c = data.weight(i) / n;
        for a in 0..d {
            let away = c * (row[a] - means[a].0);
            for b in 0..=a {
                sums[[a, b]] += away * (row[b] - means[b].0);
            }
        }
    }
    mirrored(sums)
}

/// With the lower triangle above the diagonal, too.
fn mirrored(mut a: Array2<f64>) -> Array2<f64> {
    for i in 0..a.nrows() {
        for j in 0..i {
            a[[j, i]] = a[[i, j]];
        }
    }
    a
}

/// W a Wᵀ for a lower triangle W by rows.
fn sandwich(w: &[f64], a: ArrayView2<f64>) -> Array2<f64> {
    let d = a.nrows();
    let row = |i: usize| &w[i * (i + 1) / 2..][..i + 1];
    let half = Array2::from_shape_fn((d, d), |(i, j)| {
        row(i).iter().enumerate().map(|(m, w)| w * a[[m, j]]).sum::<f64>()
    });
    Array2::from_shape_fn((d, d), |(i, j)| row(j).iter().enumerate().map(|(m, w)| w * half[[i, m]]).sum())
}

/// The entries of a lower triangular matrix, by rows.
fn lower(l: &Array2<f64>) -> Vec<f64> {
    (0..l.nrows()).flat_map(|i| (0..=i).map(move |j| l[[i, j]])).collect()
}

impl Shaped {
    fn is_spherical(&self) -> bool {
        self.covariance == Covariance::Spherical
    }

    /// How many covariances there are.
    fn shapes(&self) -> usize {
        if self.covariance == Covariance::Tied { 1 } else { self.k }
    }

    pub fn pi<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[..self.k]
    }

    pub fn mu<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[self.k..self.k + self.k * self.d]
    }

    /// Variances, or entries of matrices.
    pub fn shape<'t>(&self, theta: &'t [f64]) -> &'t [f64] {
        &theta[self.k + self.k * self.d..]
    }

    /// Covariance number s.
    fn sigma<'t>(&self, theta: &'t [f64], s: usize) -> ArrayView2<'t, f64> {
        let cells = &self.shape(theta)[s * self.d * self.d..][..self.d * self.d];
        ArrayView2::from_shape((self.d, self.d), cells).expect("d × d entries")
    }

    /// The factors of all covariances; `None` if one has none.
    fn factors(&self, theta: &[f64]) -> Option<Vec<Cholesky>> {
        (0..self.shapes()).map(|s| Cholesky::new(&self.sigma(theta, s).to_owned())).collect()
    }

    /// L of component k.
    fn of<'f>(&self, factors: &'f [Cholesky], k: usize) -> &'f Cholesky {
        &factors[if self.covariance == Covariance::Tied { 0 } else { k }]
    }

    /// θ prepared for the kernels of matrices; false if a covariance is not positive definite.
    fn prepare(&self, theta: &[f64], gaussians: &mut Gaussians) -> bool {
        let Some(factors) = self.factors(theta) else { return false };
        gaussians.mean.clear();
        gaussians.mean.extend_from_slice(self.mu(theta));
        gaussians.log_constant.clear();
        gaussians.whitening.clear();
        let inverses: Vec<Vec<f64>> = factors.iter().map(Cholesky::inverse_factor).collect();
        let constants: Vec<f64> =
            factors.iter().map(|l| 0.5 * (self.d as f64 * libm::log(TAU) + l.log_det())).collect();
        for (k, pi) in self.pi(theta).iter().enumerate() {
            let s = if self.covariance == Covariance::Tied { 0 } else { k };
            gaussians.log_constant.push(libm::log(*pi) - constants[s]);
            gaussians.whitening.extend_from_slice(&inverses[s]);
        }
        true
    }

    /// θ prepared for the kernels of diagonal mixtures.
    fn prepare_spherical(&self, theta: &[f64], mixture: &mut Mixture) {
        let sigma2 = self.shape(theta);
        let d = self.d as f64;
        let constant = |(pi, s): (&f64, &f64)| libm::log(*pi) - 0.5 * d * libm::log(TAU * s);
        mixture.log_constant.clear();
        mixture.log_constant.extend(self.pi(theta).iter().zip(sigma2).map(constant));
        mixture.mean.clear();
        mixture.mean.extend_from_slice(self.mu(theta));
        mixture.inverse_sd.clear();
        mixture.inverse_sd.extend(sigma2.iter().flat_map(|s| std::iter::repeat_n(1.0 / s.sqrt(), self.d)));
    }

    /// γ g(θ): shape · log |Σ| + scale · tr Σ⁻¹ of every covariance; log σ² and 1/σ² of a spherical one.
    pub fn penalty(&self, theta: &[f64]) -> f64 {
        let Some(p) = self.penalty else { return 0.0 };
        if self.is_spherical() {
            return self.shape(theta).iter().map(|s| p.shape * libm::log(*s) + p.scale / s).sum();
        }
        let of = |l: &Cholesky| {
            let trace: f64 = l.inverse_factor().iter().map(|w| w * w).sum();
            p.shape * l.log_det() + p.scale * trace
        };
        self.factors(theta).map_or(f64::NAN, |factors| factors.iter().map(of).sum())
    }

    /// Eigenvalues below the floor become the floor: of all matrices above it this one maximises −log |Σ| − tr Σ⁻¹S, whose maximiser has
    /// the eigenvectors of S.
    fn clamp(&self, sigma: &mut Array2<f64>) {
        let mut above = sigma.clone();
        above.diag_mut().iter_mut().for_each(|v| *v -= self.floor);
        if Cholesky::new(&above).is_some() {
            return;
        }
        let (values, vectors) = eigen(sigma);
        if values.iter().all(|v| *v >= self.floor) {
            return;
        }
        let clamped: Vec<f64> = values.iter().map(|v| v.max(self.floor)).collect();
        let entry = |(i, j): (usize, usize)| -> f64 {
            clamped.iter().enumerate().map(|(m, v)| v * vectors[[i, m]] * vectors[[j, m]]).sum()
        };
        *sigma = mirrored(Array2::from_shape_fn(sigma.dim(), entry));
    }

    fn put(&self, theta: &mut [f64], s: usize, mut sigma: Array2<f64>) {
        self.clamp(&mut sigma);
        let start = self.k + self.k * self.d + s * self.d * self.d;
        theta[start..start + self.d * self.d].iter_mut().zip(&sigma).for_each(|(t, v)| *t = *v);
    }

    /// The start within the constraints: no variance, and no eigenvalue, below the floor.
    fn admissible(&self, start: &[f64]) -> Vec<f64> {
        let mut theta = start.to_vec();
        if self.is_spherical() {
            let first = self.k + self.k * self.d;
            theta[first..].iter_mut().for_each(|s| *s = s.max(self.floor));
        } else if start.iter().all(|t| t.is_finite()) {
            (0..self.shapes()).for_each(|s| self.put(&mut theta, s, self.sigma(start, s).to_owned()));
        }
        theta
    }

    fn at_floor(&self, theta: &[f64]) -> bool {
        if self.is_spherical() {
            return self.shape(theta).iter().any(|s| *s <= self.floor * (1.0 + AT_FLOOR));
        }
        (0..self.shapes()).any(|s| {
            let (values, _) = eigen(&self.sigma(theta, s).to_owned());
            let most = values.iter().copied().fold(0.0, f64::max);
            values.iter().any(|v| *v <= self.floor * (1.0 + AT_FLOOR) + ROUNDING * most)
        })
    }

    /// In some direction a component is narrower than a tenth of the data: Σ − S/100 is not positive definite.
    fn is_narrow(&self, theta: &[f64]) -> bool {
        let Some(spread) = &self.spread else { return false };
        let share = NARROW * NARROW;
        if self.is_spherical() {
            let widest = spread.diag().iter().copied().fold(0.0, f64::max);
            return self.shape(theta).iter().any(|s| *s < share * widest);
        }
        (0..self.shapes()).any(|s| Cholesky::new(&(&self.sigma(theta, s) - &(spread * share))).is_none())
    }

    fn components_kind(&self) -> Components {
        let (count, columns) = (self.k, self.d);
        match self.covariance {
            Covariance::Spherical => Components::SphericalGaussian { count, columns },
            Covariance::Tied => Components::TiedGaussian { count, columns },
            Covariance::Full => Components::FullGaussian { count, columns },
            Covariance::Diagonal => Components::DiagonalGaussian { count, columns },
        }
    }

    pub fn pass<'a>(&'a self, f: &'a Measure<'a>) -> Pass<'a> {
        Pass {
            model: self,
            f,
            mixture: Mixture::default(),
            sums: Sums::default(),
            gaussians: Gaussians::default(),
            moments: Moments::default(),
        }
    }
}

/// EM of the mixture on F.
pub(super) struct Pass<'a> {
    model: &'a Shaped,
    f: &'a Measure<'a>,
    mixture: Mixture,
    sums: Sums,
    gaussians: Gaussians,
    moments: Moments,
}

impl Pass<'_> {
    /// Σ w r, Σ w r zⱼ …, Σ w r zⱼ² … of component c of a spherical mixture, z = (y − μ)/σ.
    pub fn spherical(&self, c: usize) -> &[f64] {
        self.sums.em(c, self.model.d)
    }

    fn m_step_spherical(&self, theta: &mut [f64]) {
        let Shaped { k, d, floor, penalty, .. } = *self.model;
        let mut total = 0.0;
        for c in 0..k {
            let em = self.sums.em(c, d);
            let (mass, first, second) = (em[0], &em[1..1 + d], &em[1 + d..]);
            total += mass;
            theta[c] = mass;
            let v = k + k * d + c;
            let (mut scatter, mut count) = (0.0, mass * d as f64);
            // A component without mass stays where it is.
            if mass > f64::MIN_POSITIVE {
                for j in 0..d {
                    let shift = first[j] / mass;
                    theta[k + c * d + j] += theta[v].sqrt() * shift;
                    scatter += mass * theta[v] * (second[j] / mass - shift * shift).max(0.0);
                }
            }
            if let Some(p) = penalty {
                scatter += 2.0 * p.scale;
                count += 2.0 * p.shape;
            }
            if count > f64::MIN_POSITIVE {
                theta[v] = (scatter / count).max(floor);
            }
        }
        theta[..k].iter_mut().for_each(|p| *p /= total);
    }

    fn m_step_matrices(&self, theta: &mut [f64]) {
        let (k, d) = (self.model.k, self.model.d);
        let each = gaussian_sums(d);
        let Some(factors) = self.model.factors(theta) else { return };
        let (mut total, mut pooled, mut moved) = (0.0, Array2::zeros((d, d)), Vec::new());
        for c in 0..k {
            let sums = self.moments.of(c, each);
            let (mass, first, second) = (sums[0], &sums[1..1 + d], &sums[1 + d..]);
            total += mass;
            let l = lower(self.model.of(&factors, c).factor());
            theta[c] = mass;
            let mut scatter = Array2::zeros((d, d));
            if mass > f64::MIN_POSITIVE {
                for i in 0..d {
                    let shift =
                        l[i * (i + 1) / 2..][..i + 1].iter().zip(first).map(|(l, f)| l * f).sum::<f64>();
                    theta[k + c * d + i] += shift / mass;
                    for j in 0..=i {
                        scatter[[i, j]] = second[i * (i + 1) / 2 + j] - first[i] * first[j] / mass;
                    }
                }
                scatter = sandwich(&l, mirrored(scatter).view());
            }
            if self.model.covariance == Covariance::Tied {
                pooled += &scatter;
            } else {
                moved.push((c, mass, scatter));
            }
        }
        if self.model.covariance == Covariance::Tied {
            moved.push((0, total, pooled));
        }
        for (s, mass, mut scatter) in moved {
            let mut count = mass;
            if let Some(p) = self.model.penalty {
                scatter.diag_mut().iter_mut().for_each(|v| *v += 2.0 * p.scale);
                count += 2.0 * p.shape;
            }
            if count > f64::MIN_POSITIVE {
                self.model.put(theta, s, mirrored(scatter / count));
            }
        }
        theta[..k].iter_mut().for_each(|p| *p /= total);
    }
}

impl Expectation for Pass<'_> {
    fn e_step(&mut self, theta: &[f64]) -> f64 {
        let model = self.model;
        let log_lik = if model.is_spherical() {
            model.prepare_spherical(theta, &mut self.mixture);
            self.sums.reset(model.k, model.d, false);
            for atoms in self.f.atoms() {
                mixture::e_step(model.level, atoms.x.panel(), atoms.w, &self.mixture, &mut self.sums);
            }
            self.sums.finish();
            self.sums.log_lik()
        } else {
            if !model.prepare(theta, &mut self.gaussians) {
                return f64::NAN;
            }
            self.moments.reset(model.k, gaussian_sums(model.d));
            for atoms in self.f.atoms() {
                gaussian_step(model.level, atoms.x.panel(), atoms.w, &self.gaussians, &mut self.moments);
            }
            self.moments.finish();
            self.moments.log_lik()
        };
        model.penalty(theta) - log_lik
    }

    fn m_step(&mut self, theta: &mut [f64]) {
        if self.model.is_spherical() { self.m_step_spherical(theta) } else { self.m_step_matrices(theta) }
    }

    /// √π, then 1/σ or L⁻¹.
    fn metric(&self, theta: &[f64]) -> Vec<f64> {
        let model = self.model;
        let mut metric: Vec<f64> = model.pi(theta).iter().map(|p| p.sqrt()).collect();
        if model.is_spherical() {
            metric.extend(model.shape(theta).iter().map(|s| 1.0 / s.sqrt()));
        } else if let Some(factors) = model.factors(theta) {
            factors.iter().for_each(|l| metric.extend(l.inverse_factor()));
        }
        metric
    }

    fn measure(&self, metric: &[f64], step: &[f64]) -> Vec<f64> {
        let (model, d) = (self.model, self.model.d);
        let (roots, inverses) = metric.split_at(model.k);
        let mut out: Vec<f64> =
            model.pi(step).iter().zip(roots).map(|(s, root)| s / root.max(LEAST_ROOT)).collect();
        if model.is_spherical() {
            for (c, root) in roots.iter().enumerate() {
                out.extend(model.mu(step)[c * d..][..d].iter().map(|s| root * inverses[c] * s));
                out.push(root * (0.5 * d as f64).sqrt() * inverses[c] * inverses[c] * model.shape(step)[c]);
            }
            return out;
        }
        let triangle = d * (d + 1) / 2;
        let tied = model.covariance == Covariance::Tied;
        for (c, root) in roots.iter().enumerate() {
            let w = &inverses[if tied { 0 } else { c * triangle }..][..triangle];
            let mu = &model.mu(step)[c * d..][..d];
            out.extend((0..d).map(|i| {
                root * w[i * (i + 1) / 2..][..i + 1].iter().zip(mu).map(|(w, s)| w * s).sum::<f64>()
            }));
        }
        for s in 0..model.shapes() {
            let root = if tied { 1.0 } else { roots[s] } * 0.5f64.sqrt();
            let whitened = sandwich(&inverses[s * triangle..][..triangle], model.sigma(step, s));
            out.extend(whitened.iter().map(|v| root * v));
        }
        out
    }

    fn admit(&self, theta: &mut [f64]) -> bool {
        let sound = theta.iter().all(|t| t.is_finite()) && self.model.pi(theta).iter().all(|p| *p >= 0.0);
        if sound {
            let inside = self.model.admissible(theta);
            theta.copy_from_slice(&inside);
        }
        sound
    }

    fn is_collapsed(&self, theta: &[f64]) -> bool {
        self.model.at_floor(theta)
    }
}

impl Model for Shaped {
    fn names(&self) -> Vec<String> {
        self.components_kind().names()
    }

    fn components(&self) -> Option<Components> {
        Some(self.components_kind())
    }

    fn blocks(&self) -> Vec<Block> {
        let (k, d) = (self.k, self.d);
        let (pi, mu) = (0..k, k..k + k * d);
        let rest = |len: usize| k + k * d..k + k * d + len;
        let last = match self.covariance {
            Covariance::Spherical => {
                Block { name: "sigma2".into(), range: rest(k), support: Support::Variance }
            }
            _ => Block {
                name: "Sigma".into(),
                range: rest(self.shapes() * d * d),
                support: Support::Covariance(d),
            },
        };
        vec![
            Block { name: "pi".into(), range: pi, support: Support::Simplex },
            Block { name: "mu".into(), range: mu, support: Support::Location },
            last,
        ]
    }

    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        self.pass(f).e_step(theta)
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.em.minimise(&self.admissible(start), &mut self.pass(f))
    }

    fn is_likelihood(&self) -> bool {
        true
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        if self.is_spherical() {
            let mut mixture = Mixture::default();
            self.prepare_spherical(theta, &mut mixture);
            mixture::log_density(self.level, at.x.panel(), &mixture, out);
            return true;
        }
        let mut gaussians = Gaussians::default();
        if self.prepare(theta, &mut gaussians) {
            gaussian_density(self.level, at.x.panel(), &gaussians, out);
        } else {
            out.fill(f64::NAN);
        }
        true
    }

    fn predicted(&self) -> Vec<String> {
        (1..=self.k).map(|k| format!("component.{k}")).collect()
    }

    /// The posterior probabilities of the components that a row may come from.
    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        let (d, tied) = (self.d, self.covariance == Covariance::Tied);
        let of_sphere = |s: &f64| -> (f64, Vec<f64>) {
            let whitening = (0..d).flat_map(|i| (0..=i).map(move |j| f64::from(u8::from(i == j)) / s.sqrt()));
            (d as f64 * libm::log(*s), whitening.collect())
        };
        let shapes: Option<Vec<(f64, Vec<f64>)>> = match self.is_spherical() {
            true => Some(self.shape(theta).iter().map(of_sphere).collect()),
            false => {
                self.factors(theta).map(|all| all.iter().map(|l| (l.log_det(), l.inverse_factor())).collect())
            }
        };
        let Some(shapes) = shapes else { return out.fill(f64::NAN) };
        for (x, out) in at.x.iter().zip(out.chunks_exact_mut(self.k)) {
            for (k, out) in out.iter_mut().enumerate() {
                let (log_det, w) = &shapes[if tied { 0 } else { k }];
                let mu = &self.mu(theta)[k * d..][..d];
                let z = |i: usize| -> f64 {
                    let row = &w[i * (i + 1) / 2..][..i + 1];
                    row.iter().zip(x.iter().zip(mu)).map(|(w, (x, m))| w * (x - m)).sum()
                };
                let squares: f64 = (0..d).map(|i| z(i) * z(i)).sum();
                *out = libm::log(self.pi(theta)[k]) - 0.5 * (log_det + squares);
            }
            let total = log_sum_exp(out);
            out.iter_mut().for_each(|p| *p = libm::exp(*p - total));
        }
    }

    fn collapse(&self, theta: &[f64]) -> Option<Collapse> {
        Some(Collapse { at_floor: self.at_floor(theta), narrow: self.is_narrow(theta) })
    }

    fn prior_predictive(&self, _data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        predictive_row(self.d, self.prior.as_ref(), self.is_spherical())
    }

    fn joint<'a>(&'a self, data: &'a Dataset) -> Result<Box<dyn Joint + 'a>, Complaint> {
        if !self.is_spherical() {
            let message = "has no conventional Bayes: the prior of [model.gmm.prior] is one of standard deviations, and a \
                           covariance matrix would need one of matrices; \"diagonal\" and \"spherical\" have it";
            return Err(complaint("covariance", message));
        }
        let prior = self.prior.as_ref().ok_or_else(super::no_prior)?;
        Ok(Box::new(SphericalJoint { model: self, prior, data, empirical: Measure::empirical(data) }))
    }

    fn sampled(&self) -> Option<Sampled> {
        Some(Sampled::Endless)
    }

    fn sampling(&self, theta: &[f64], _data: &Arc<Dataset>) -> Option<Box<dyn BaseMeasure>> {
        let d = self.d;
        let factors: Vec<Array2<f64>> = match self.is_spherical() {
            true => self.shape(theta).iter().map(|s| Array2::<f64>::eye(d) * s.sqrt()).collect(),
            false => {
                let factors = self.factors(theta)?;
                (0..self.k).map(|k| self.of(&factors, k).factor().clone()).collect()
            }
        };
        let mean = self.mu(theta).to_vec();
        Some(Box::new(GaussianMeasure { pi: self.pi(theta).to_vec(), d, mean, factors }))
    }
}
