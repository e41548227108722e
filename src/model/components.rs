//! The components of a mixture: which entries of θ belong to which of them.

use serde::{Deserialize, Serialize};

/// What the components of a mixture are, and so which entries of θ change places when two of them do. Kept with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Components {
    /// Weight `pi.k`, means `mu.k.j` and variances `sigma2.k.j`.
    DiagonalGaussian { count: usize, columns: usize },
    /// Weight `pi.k`, means `mu.k.j` and the variance `sigma2.k` of all columns.
    SphericalGaussian { count: usize, columns: usize },
    /// Weight `pi.k`, means `mu.k.j` and covariances `Sigma.i.j` of all components.
    TiedGaussian { count: usize, columns: usize },
    /// Weight `pi.k`, means `mu.k.j` and covariances `Sigma.k.i.j`.
    FullGaussian { count: usize, columns: usize },
    /// Weight `pi.k` and probabilities `p.k.j`.
    Bernoulli { count: usize, columns: usize },
    /// Centres `mu.k.j`.
    Centres { count: usize, columns: usize },
}

impl Components {
    fn sizes(self) -> (usize, usize) {
        match self {
            Components::DiagonalGaussian { count, columns }
            | Components::SphericalGaussian { count, columns }
            | Components::TiedGaussian { count, columns }
            | Components::FullGaussian { count, columns }
            | Components::Bernoulli { count, columns }
            | Components::Centres { count, columns } => (count, columns),
        }
    }

    pub fn count(self) -> usize {
        self.sizes().0
    }

    pub fn columns(self) -> usize {
        self.sizes().1
    }

    /// The blocks of θ, each with its symbol and how many entries each component has there, and last how many entries all have
    /// together.
    pub fn blocks(self) -> (Vec<(&'static str, usize)>, usize) {
        let d = self.columns();
        match self {
            Components::DiagonalGaussian { .. } => (vec![("pi", 1), ("mu", d), ("sigma2", d)], 0),
            Components::SphericalGaussian { .. } => (vec![("pi", 1), ("mu", d), ("sigma2", 1)], 0),
            Components::TiedGaussian { .. } => (vec![("pi", 1), ("mu", d)], d * d),
            Components::FullGaussian { .. } => (vec![("pi", 1), ("mu", d), ("Sigma", d * d)], 0),
            Components::Bernoulli { .. } => (vec![("pi", 1), ("p", d)], 0),
            Components::Centres { .. } => (vec![("mu", d)], 0),
        }
    }

    /// Block by block, component by component within a block: dotted, 1-based. Matrices by rows.
    pub fn names(self) -> Vec<String> {
        let d = self.columns();
        let matrix = move |head: String| {
            (1..=d).flat_map(move |i| {
                let head = head.clone();
                (1..=d).map(move |j| format!("{head}.{i}.{j}"))
            })
        };
        let mut names = Vec::new();
        let (blocks, shared) = self.blocks();
        for (symbol, _) in blocks {
            for k in 1..=self.count() {
                match (symbol, self) {
                    ("pi", _) | ("sigma2", Components::SphericalGaussian { .. }) => {
                        names.push(format!("{symbol}.{k}"));
                    }
                    ("Sigma", _) => names.extend(matrix(format!("Sigma.{k}"))),
                    _ => names.extend((1..=d).map(|j| format!("{symbol}.{k}.{j}"))),
                }
            }
        }
        if shared > 0 {
            names.extend(matrix("Sigma".to_owned()));
        }
        names
    }
}
