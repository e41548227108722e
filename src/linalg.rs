//! The little dense linear algebra that npl needs, in one place. The default is pure Rust; with the `openblas`
//! feature the same functions call LAPACK through `ndarray-linalg`.

use ndarray::{Array1, Array2};

use crate::math::dot;

/// Solves A x = b for a symmetric positive definite A; `None` if A is not (numerically) positive definite.
pub fn solve_spd(a: &Array2<f64>, b: &Array1<f64>) -> Option<Array1<f64>> {
    debug_assert!(a.is_square() && a.nrows() == b.len());
    if a.is_empty() {
        return Some(b.clone());
    }
    backend::solve_spd(a, b).filter(|x| x.iter().all(|v| v.is_finite()))
}

/// A factored symmetric positive definite matrix.
#[derive(Clone)]
pub struct Cholesky(Array2<f64>);

impl Cholesky {
    /// `None` if the matrix is not (numerically) positive definite.
    pub fn new(a: &Array2<f64>) -> Option<Cholesky> {
        pure::cholesky(a).map(Cholesky)
    }

    /// A⁻¹ b.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        pure::substitute(&self.0, b)
    }

    /// L of A = L Lᵀ.
    pub fn factor(&self) -> &Array2<f64> {
        &self.0
    }

    /// L⁻¹, its lower triangle by rows.
    pub fn inverse_factor(&self) -> Vec<f64> {
        let (l, n) = (&self.0, self.0.nrows());
        let mut inverse = Vec::with_capacity(n * (n + 1) / 2);
        for i in 0..n {
            for j in 0..=i {
                let sum: f64 = (j..i).map(|m| l[[i, m]] * inverse[m * (m + 1) / 2 + j]).sum();
                inverse.push((f64::from(u8::from(i == j)) - sum) / l[[i, i]]);
            }
        }
        inverse
    }

    /// log |A|.
    pub fn log_det(&self) -> f64 {
        2.0 * self.0.diag().iter().map(|l| libm::log(*l)).sum::<f64>()
    }

    /// L⁻¹ b with A = L Lᵀ.
    pub fn half(&self, b: &[f64]) -> Vec<f64> {
        pure::forward(&self.0, b)
    }

    /// bᵀ A⁻¹ b.
    pub fn inverse_square(&self, b: &[f64]) -> f64 {
        let half = self.half(b);
        dot(&half, &half)
    }
}

/// Eigenvalues of a symmetric matrix, and their vectors as columns, by Jacobi's rotations (Golub and Van Loan 2013, 8.5): small
/// matrices only, and small eigenvalues to all the digits that the entries have.
pub fn eigen(a: &Array2<f64>) -> (Vec<f64>, Array2<f64>) {
    debug_assert!(a.is_square());
    let n = a.nrows();
    let (mut a, mut vectors) = (a.clone(), Array2::<f64>::eye(n));
    for _ in 0..MOST_SWEEPS {
        let mut rotated = false;
        for (p, q) in (0..n).flat_map(|p| (p + 1..n).map(move |q| (p, q))) {
            // Not a number ends a rotation, too.
            let size = (a[[p, p]].abs() * a[[q, q]].abs()).sqrt().max(f64::MIN_POSITIVE);
            let large = a[[p, q]].abs() > 0.5 * f64::EPSILON * size;
            if !large {
                continue;
            }
            rotated = true;
            let tau = (a[[q, q]] - a[[p, p]]) / (2.0 * a[[p, q]]);
            let t = if tau.abs() < 1e150 {
                tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt())
            } else {
                0.5 / tau
            };
            let c = 1.0 / (1.0 + t * t).sqrt();
            let s = t * c;
            for m in 0..n {
                let (x, y) = (a[[m, p]], a[[m, q]]);
                (a[[m, p]], a[[m, q]]) = (c * x - s * y, s * x + c * y);
            }
            for m in 0..n {
                let (x, y) = (a[[p, m]], a[[q, m]]);
                (a[[p, m]], a[[q, m]]) = (c * x - s * y, s * x + c * y);
                let (x, y) = (vectors[[m, p]], vectors[[m, q]]);
                (vectors[[m, p]], vectors[[m, q]]) = (c * x - s * y, s * x + c * y);
            }
        }
        if !rotated {
            break;
        }
    }
    (a.diag().to_vec(), vectors)
}

/// Convergence is quadratic: ten sweeps are many.
const MOST_SWEEPS: usize = 60;

/// Written by hand because no pure-Rust LAPACK is light enough for the default build, and a Cholesky factor of a
/// few dozen rows is thirty lines.
#[cfg_attr(feature = "openblas", allow(dead_code))]
mod pure {
    use super::*;

    /// A pivot below this share of its diagonal entry has lost all its digits.
    const PIVOT: f64 = 1e-13;
    const ROWS: &str = "a factor is stored by rows";

    pub fn solve_spd(a: &Array2<f64>, b: &Array1<f64>) -> Option<Array1<f64>> {
        let l = cholesky(a)?;
        Some(Array1::from(substitute(&l, b.as_slice()?)))
    }

    /// (L Lᵀ)⁻¹ b. The second pass goes by rows of L too: columns would jump through memory.
    pub fn substitute(l: &Array2<f64>, b: &[f64]) -> Vec<f64> {
        let mut x = forward(l, b);
        for i in (0..b.len()).rev() {
            let l = l.row(i).to_slice().expect(ROWS);
            x[i] /= l[i];
            let (before, at) = x.split_at_mut(i);
            before.iter_mut().zip(&l[..i]).for_each(|(x, l)| *x -= l * at[0]);
        }
        x
    }

    /// L⁻¹ b.
    pub fn forward(l: &Array2<f64>, b: &[f64]) -> Vec<f64> {
        let mut x = b.to_vec();
        for i in 0..b.len() {
            let l = l.row(i).to_slice().expect(ROWS);
            x[i] = (x[i] - dot(&l[..i], &x[..i])) / l[i];
        }
        x
    }

    /// The lower Cholesky factor.
    pub fn cholesky(a: &Array2<f64>) -> Option<Array2<f64>> {
        let n = a.nrows();
        let mut l = Array2::<f64>::zeros((n, n));
        for j in 0..n {
            let sum = dot(&l.row(j).to_slice().expect(ROWS)[..j], &l.row(j).to_slice().expect(ROWS)[..j]);
            let pivot: f64 = a[[j, j]] - sum;
            if pivot.is_nan() || pivot <= PIVOT * a[[j, j]].abs() {
                return None;
            }
            l[[j, j]] = pivot.sqrt();
            for i in j + 1..n {
                let sum = dot(&l.row(i).to_slice().expect(ROWS)[..j], &l.row(j).to_slice().expect(ROWS)[..j]);
                l[[i, j]] = (a[[i, j]] - sum) / l[[j, j]];
            }
        }
        Some(l)
    }
}

#[cfg(not(feature = "openblas"))]
use pure as backend;

#[cfg(feature = "openblas")]
mod backend {
    use super::*;
    use ndarray_linalg::{FactorizeC, SolveC, UPLO};

    pub fn solve_spd(a: &Array2<f64>, b: &Array1<f64>) -> Option<Array1<f64>> {
        a.factorizec(UPLO::Lower).ok()?.solvec(b).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn solves_a_positive_definite_system() {
        let a = array![[4.0, 2.0, 0.6], [2.0, 5.0, 1.0], [0.6, 1.0, 3.0]];
        let x = array![1.0, -2.0, 0.5];
        let solved = solve_spd(&a, &a.dot(&x)).expect("the matrix is positive definite");
        assert!((&solved - &x).iter().all(|e| e.abs() < 1e-12), "{solved}");
    }

    #[test]
    fn refuses_an_indefinite_matrix() {
        assert!(solve_spd(&array![[1.0, 2.0], [2.0, 1.0]], &array![1.0, 1.0]).is_none());
        assert!(solve_spd(&array![[f64::NAN]], &array![1.0]).is_none());
    }

    #[test]
    fn eigenvalues_and_vectors_make_up_the_matrix() {
        for n in [1, 2, 5, 12] {
            let root = Array2::from_shape_fn((n, n), |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 11.0 - 0.4);
            let a = root.dot(&root.t());
            let (values, v) = eigen(&a);
            let again = v.dot(&Array2::from_diag(&Array1::from(values.clone()))).dot(&v.t());
            assert!((&again - &a).iter().all(|e| e.abs() < 1e-14), "n = {n}");
            assert!((&v.t().dot(&v) - &Array2::<f64>::eye(n)).iter().all(|e| e.abs() < 1e-14), "n = {n}");
            assert!((values.iter().sum::<f64>() - a.diag().sum()).abs() < 1e-13);
        }
        assert_eq!(eigen(&array![[2.0, 0.0], [0.0, 3.0]]).0, [2.0, 3.0]);
    }

    #[test]
    fn the_inverse_of_a_factor_whitens() {
        let a = array![[4.0, 2.0, 0.6], [2.0, 5.0, 1.0], [0.6, 1.0, 3.0]];
        let cholesky = Cholesky::new(&a).unwrap();
        let mut w = Array2::zeros((3, 3));
        let places = (0..3).flat_map(|i| (0..=i).map(move |j| [i, j]));
        places.zip(cholesky.inverse_factor()).for_each(|(at, value)| w[at] = value);
        assert!((&w.dot(&a).dot(&w.t()) - &Array2::<f64>::eye(3)).iter().all(|e| e.abs() < 1e-15));
        // 4 · 5 · 3 + 2 · 2 · 1 · 0.6 − 4 · 1 − 5 · 0.36 − 3 · 4 by Sarrus.
        assert!((cholesky.log_det() - 44.6f64.ln()).abs() < 1e-14);
    }

    #[test]
    fn both_backends_agree() {
        let root = Array2::from_shape_fn((9, 9), |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 11.0);
        let a = root.dot(&root.t()) + Array2::<f64>::eye(9);
        let b = Array1::from_shape_fn(9, |i| (i as f64).sin());
        let (one, two) = (solve_spd(&a, &b).unwrap(), pure::solve_spd(&a, &b).unwrap());
        assert!((&one - &two).iter().all(|e| e.abs() < 1e-12));
    }
}
