//! The components of a mixture: which entries of θ belong to which of them.

use serde::{Deserialize, Serialize};

/// What the components of a mixture are, and so which entries of θ change places when two of them do. Kept with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Components {
    /// Weight `pi.k`, means `mu.k.j` and variances `sigma2.k.j`.
    DiagonalGaussian { count: usize, columns: usize },
}

impl Components {
    pub fn count(self) -> usize {
        let Components::DiagonalGaussian { count, .. } = self;
        count
    }

    pub fn columns(self) -> usize {
        let Components::DiagonalGaussian { columns, .. } = self;
        columns
    }

    /// The weights, then the means, then the variances, component by component: dotted, 1-based.
    pub fn names(self) -> Vec<String> {
        let Components::DiagonalGaussian { count, columns } = self;
        let matrix = |symbol: &'static str| {
            (1..=count).flat_map(move |k| (1..=columns).map(move |j| format!("{symbol}.{k}.{j}")))
        };
        (1..=count).map(|k| format!("pi.{k}")).chain(matrix("mu")).chain(matrix("sigma2")).collect()
    }
}
