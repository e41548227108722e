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
    fn both_backends_agree() {
        let root = Array2::from_shape_fn((9, 9), |(i, j)| ((i * 7 + j * 3) % 11) as f64 / 11.0);
        let a = root.dot(&root.t()) + Array2::<f64>::eye(9);
        let b = Array1::from_shape_fn(9, |i| (i as f64).sin());
        let (one, two) = (solve_spd(&a, &b).unwrap(), pure::solve_spd(&a, &b).unwrap());
        assert!((&one - &two).iter().all(|e| e.abs() < 1e-12));
    }
}
