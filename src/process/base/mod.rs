//! Base measures F_π: where prior pseudo-samples come from (sections 2.2 and 3.2). Adding one is a file and a line below.

pub mod columns;
pub mod empirical;
pub mod normal;
pub mod prior_predictive;
pub mod response;
pub mod uniform;

pub use empirical::Empirical;
pub use normal::Normal;
pub use prior_predictive::PriorPredictive;
pub use response::{BernoulliResponse, DrawnResponse};
pub use uniform::Uniform;

use std::sync::Arc;

use ndarray::Array2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Numbers;
use crate::data::Dataset;
use crate::rng::{Purpose, Rng, Seed};

/// A key below `prior.base.<name>`, empty for the whole of it, and what is wrong there.
pub type Problem = (&'static str, String);

/// The registry: a line gives `prior.base.<name>` in a TOML file, its schema, and its place in the laws. A base measure
/// that has settings is a table with the module's `Config`, one that has none is a word.
macro_rules! bases {
    (
        tables { $($(#[$doc:meta])* $table:ident => $module:ident),* $(,)? }
        words { $($(#[$word_doc:meta])* $word:ident => $word_module:ident),* $(,)? }
    ) => {
        /// The base measure F_π.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum BaseConfig {
            $($(#[$doc])* $table($module::Config),)*
            $($(#[$word_doc])* $word,)*
        }

        impl BaseConfig {
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$table(_) => stringify!($module),)*
                    $(Self::$word => stringify!($word_module),)*
                }
            }

            pub fn build(&self, context: &Context) -> Result<Box<dyn BaseMeasure>, Problem> {
                match self {
                    $(Self::$table(config) => config.build(context),)*
                    $(Self::$word => $word_module::build(context),)*
                }
            }
        }

        /// Experiments' `prior.base` for data of these columns: examples of every base measure.
        pub fn examples(columns: &[String]) -> Vec<String> {
            let of_each = [$($module::examples(columns),)* $($word_module::examples(columns),)*];
            of_each.into_iter().flatten().collect()
        }
    };
}

bases! {
    tables {
        /// Independent normal columns.
        Normal => normal,
        /// Independent uniform columns.
        Uniform => uniform,
        /// A density for every column, by name, any mix of them.
        Columns => columns,
        /// The rows of a file with historical data.
        Empirical => empirical,
        /// For regression: a response that is independent of the covariates.
        Response => response,
    }
    words {
        /// The model's prior predictive ∫ f_θ(y) dπ(θ); the model must have a prior.
        PriorPredictive => prior_predictive,
    }
}

/// What a base measure is built for.
pub struct Context<'a> {
    pub train: &'a Dataset,
    /// The training rows before `data.rows` leaves any out: with n = 0 they are what there is to know of covariates.
    pub covariates: &'a Arc<Dataset>,
    /// The data have responses.
    pub response: bool,
    /// The rows of `empirical`.
    pub history: Option<Arc<Dataset>>,
    /// The prior predictive of the model, or why it has none.
    pub predictive: &'a dyn Fn() -> Result<Box<dyn BaseMeasure>, String>,
}

impl Context<'_> {
    /// One number for every column.
    fn spread(&self, numbers: &Numbers, key: &'static str) -> Result<Vec<f64>, Problem> {
        let d = self.train.d();
        let len = numbers.as_slice().len();
        numbers.for_columns(d).ok_or_else(|| (key, format!("has {len} values for {d} columns of data")))
    }
}

/// Pseudo-samples.
pub enum Pseudo {
    /// Rows of their own.
    Own(Box<Dataset>),
    /// Rows of a set that all draws share, by number; with responses of their own, or else those of the set.
    Shared { rows: Arc<Dataset>, picked: Vec<usize>, y: Option<Vec<f64>> },
}

impl Pseudo {
    /// No pseudo-samples.
    pub fn none() -> Pseudo {
        own(Dataset::default())
    }

    pub fn len(&self) -> usize {
        match self {
            Pseudo::Own(rows) => rows.n(),
            Pseudo::Shared { picked, .. } => picked.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As rows of their own.
    pub fn to_rows(&self) -> Dataset {
        match self {
            Pseudo::Own(rows) => rows.as_ref().clone(),
            Pseudo::Shared { rows, picked, y } => {
                let mut data = rows.select(picked);
                if let Some(y) = y {
                    // A response that was drawn is an event.
                    (data.y, data.event) = (Some(y.iter().copied().collect()), None);
                }
                data
            }
        }
    }
}

/// F_π.
pub trait BaseMeasure: Send + Sync {
    /// `t` independent pseudo-samples.
    fn sample(&self, t: usize, rng: &mut Rng) -> Pseudo;

    /// Probabilities of the atoms, where there are finitely many: then weights need no truncation.
    fn shares(&self) -> Option<&[f64]> {
        None
    }

    /// Atoms of a finite support, by number.
    fn atoms(&self, _numbers: Vec<usize>) -> Pseudo {
        Pseudo::none()
    }

    /// Responses that pseudo-samples may have, all or a good sample of them; `None` if they have none.
    fn responses(&self) -> Option<Vec<f64>> {
        None
    }

    /// Mean and variance of each column, where they are known; for choosing α (supplement A.2).
    fn moments(&self) -> Option<Vec<(f64, f64)>> {
        None
    }

    /// The base measure of one draw, where each has another: a mixture of Dirichlet processes.
    fn of_draw(&self, _draw: u64) -> Option<Box<dyn BaseMeasure>> {
        None
    }
}

/// Responses of some pseudo-samples, to see of what kind they are.
fn tried(base: &dyn BaseMeasure) -> Vec<f64> {
    let rows = base.sample(100, &mut Seed(0).stream(Purpose::Auxiliary, 1, 0)).to_rows();
    rows.y.map_or(Vec::new(), |y| y.to_vec())
}

fn random_rows(t: usize, data: &Dataset, rng: &mut Rng) -> Vec<usize> {
    (0..t).map(|_| data.random_row(rng)).collect()
}

/// `t` rows of `d` cells, drawn row by row.
fn table(t: usize, d: usize, mut cell: impl FnMut(usize) -> f64) -> Array2<f64> {
    Array2::from_shape_fn((t, d), |(_, j)| cell(j))
}

/// The same as pseudo-samples.
fn fill(t: usize, d: usize, cell: impl FnMut(usize) -> f64) -> Pseudo {
    own(Dataset::unnamed(table(t, d, cell), None))
}

fn own(rows: Dataset) -> Pseudo {
    Pseudo::Own(Box::new(rows))
}
