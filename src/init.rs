//! Starts of local searches: θ_init ~ π₀ of Algorithm 3, one distribution per block of parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::distr::Distribution;
use rand_distr::{Gamma, Open01, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Numbers, Positive};
use crate::data::Dataset;
use crate::model::{Block, Support, is_covariance};
use crate::rng::Rng;

/// The distribution of a start, for one block of parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Dist {
    /// Dirichlet with this parameter for every entry.
    Dirichlet(Positive),
    /// Uniform between low and high.
    Uniform([f64; 2]),
    /// Normal with mean and standard deviation.
    Normal((f64, Positive)),
    /// exp of a normal with mean and standard deviation.
    LogNormal((f64, Positive)),
    /// Gamma with shape and rate.
    Gamma([Positive; 2]),
    /// Inverse gamma with shape and scale.
    InverseGamma([Positive; 2]),
    /// The same value in every restart: a number, or a list with one number per entry.
    Constant(Numbers),
    /// The same values in every restart, from a CSV file with a column per parameter, named as in `samples.csv`.
    File(String),
    /// From the data: a random row for a location, the variance of the column for a variance, the mean of these for one of all
    /// columns, a diagonal matrix of them for a covariance. The default for these; that
    /// of a coefficient is a standard normal distribution, as for the real and increasing parameters of a custom loss. Its
    /// positive ones start from `log_normal = [0, 1]`, those between 0 and 1 from `uniform = [0, 1]`.
    Data,
}

/// A start distribution checked against its block, with what it needs of the data.
enum Source {
    Dist(Dist),
    Fixed(Vec<f64>),
    /// Random rows: `d` entries of θ at a time come from one row.
    Rows(Arc<Dataset>),
}

/// π₀: how θ_init is drawn.
pub struct Init {
    blocks: Vec<(Block, Source)>,
    len: usize,
}

/// What is wrong with a start distribution: the block, and why.
pub type InitProblem = (String, String);

/// Fetches the values of parameters from a file, by their names.
pub type ReadFile<'a> = dyn Fn(&str, &[String]) -> Result<Vec<f64>, String> + 'a;

impl Init {
    /// Every block of the model has a distribution: that of the config, or [`Dist::Data`] and its like.
    /// `read_file` fetches the values of a block from a file, by parameter name.
    pub fn build(
        blocks: Vec<Block>,
        names: &[String],
        config: &BTreeMap<String, Dist>,
        train: &Arc<Dataset>,
        read_file: &ReadFile,
    ) -> Result<Init, Vec<InitProblem>> {
        let mut problems: Vec<InitProblem> = Vec::new();
        for name in config.keys().filter(|name| !blocks.iter().any(|b| b.name == name.as_str())) {
            let known: Vec<String> = blocks.iter().map(|b| format!("`{}`", b.name)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            problems.push((name.clone(), format!("is not a block of this model; its blocks are {known}")));
        }
        let len = blocks.iter().map(|b| b.range.len()).sum();
        let mut built = Vec::new();
        for block in blocks {
            let dist = config.get(block.name.as_ref()).cloned().unwrap_or_else(|| default_dist(&block));
            let source = match dist {
                Dist::File(path) => read_file(&path, &names[block.range.clone()])
                    .and_then(|values| fits(&block, &values).map(|()| Source::Fixed(values))),
                dist => source(&block, dist, train),
            };
            match source {
                Ok(source) => built.push((block, source)),
                Err(why) => problems.push((block.name.to_string(), why)),
            }
        }
        if problems.is_empty() { Ok(Init { blocks: built, len }) } else { Err(problems) }
    }

    /// θ_init ~ π₀.
    pub fn draw(&self, rng: &mut Rng) -> Vec<f64> {
        let mut theta = vec![0.0; self.len];
        for (block, source) in &self.blocks {
            let out = &mut theta[block.range.clone()];
            match source {
                Source::Fixed(values) => out.copy_from_slice(values),
                Source::Rows(data) => {
                    // Without columns a row says nothing, and an intercept starts at 0.
                    for entry in out.chunks_mut(data.d().max(1)) {
                        let row = data.random_row(rng);
                        entry.iter_mut().zip(data.x.row(row)).for_each(|(e, x)| *e = *x);
                    }
                }
                // Of a matrix the variances: off the diagonal it starts at 0.
                Source::Dist(dist) if matches!(block.support, Support::Covariance(_)) => {
                    block.support.diagonal(out.len()).for_each(|i| out[i] = variate(dist, rng));
                }
                Source::Dist(dist) => {
                    out.iter_mut().for_each(|e| *e = variate(dist, rng));
                    match block.support {
                        Support::Simplex => normalise(out),
                        Support::Ordered => out.sort_unstable_by(f64::total_cmp),
                        _ => {}
                    }
                }
            }
        }
        theta
    }

    /// True if every start is the same, so that restarts would repeat each other.
    pub fn is_constant(&self) -> bool {
        self.blocks.iter().all(|(_, source)| matches!(source, Source::Fixed(_)))
    }
}

/// π₀ of a block for which the config has none.
pub fn default_dist(block: &Block) -> Dist {
    match block.support {
        Support::Simplex => Dist::Dirichlet(Positive::new(1.0).expect("positive")),
        Support::Location | Support::Positive | Support::Variance | Support::Covariance(_) => Dist::Data,
        Support::Scale => Dist::LogNormal((0.0, Positive::new(0.5).expect("positive"))),
        Support::Real | Support::Ordered => Dist::Normal((0.0, Positive::new(1.0).expect("positive"))),
        Support::Unit => Dist::Uniform([0.0, 1.0]),
    }
}

fn source(block: &Block, dist: Dist, train: &Arc<Dataset>) -> Result<Source, String> {
    use Support::{Covariance, Location, Ordered, Positive, Real, Scale, Simplex, Unit, Variance};
    let needs =
        |what: &str| Err(format!("{what} cannot start `{}`, which {}", block.name, describe(block.support)));
    match (&dist, block.support) {
        // A number is the variance of every column.
        (Dist::Constant(Numbers::One(v)), Covariance(_)) => {
            let mut values = vec![0.0; block.range.len()];
            block.support.diagonal(values.len()).for_each(|i| values[i] = *v);
            fits(block, &values).map(|()| Source::Fixed(values))
        }
        (Dist::Constant(numbers), _) => {
            let len = block.range.len();
            let values = numbers.for_columns(len).ok_or_else(|| {
                format!("has {} values for the {len} entries of `{}`", numbers.as_slice().len(), block.name)
            })?;
            fits(block, &values).map(|()| Source::Fixed(values))
        }
        (Dist::Dirichlet(_), Simplex) => Ok(Source::Dist(dist)),
        (Dist::Dirichlet(_), _) => needs("a Dirichlet distribution"),
        (_, Simplex) => needs("anything but `dirichlet`, `constant` or `file`"),
        (Dist::Uniform([low, high]), _) if low >= high => {
            Err(format!("uniform from {low} to {high} is empty"))
        }
        (Dist::Uniform([low, _]), Positive | Scale | Variance | Covariance(_)) if *low < 0.0 => {
            needs("a uniform distribution with negative values")
        }
        (Dist::Normal(_), Positive | Scale | Variance | Covariance(_)) => needs("a normal distribution"),
        (Dist::Uniform([low, high]), Unit) if *low < 0.0 || *high > 1.0 => {
            needs("a uniform distribution beyond 0 or 1")
        }
        (Dist::Normal(_) | Dist::LogNormal(_) | Dist::Gamma(_) | Dist::InverseGamma(_), Unit) => {
            needs("anything but `uniform`, `constant` or `file`")
        }
        (Dist::Data, _) if train.n() == 0 => Err("`data` needs data, and there are no rows".into()),
        (Dist::Data, Location) => Ok(Source::Rows(train.clone())),
        (Dist::Data, Real | Scale | Unit | Ordered) => needs("a row of the data"),
        (Dist::Data, Variance) => {
            let variances: Vec<f64> = train.moments().into_iter().map(|(_, v)| v).collect();
            let mean = variances.iter().sum::<f64>() / variances.len().max(1) as f64;
            Ok(Source::Fixed(vec![mean.max(f64::MIN_POSITIVE); block.range.len()]))
        }
        (Dist::Data, Covariance(_)) => {
            let mut values = vec![0.0; block.range.len()];
            let variances = train.moments().into_iter().map(|(_, v)| v.max(f64::MIN_POSITIVE));
            let variances: Vec<f64> = variances.collect();
            let places = block.support.diagonal(values.len());
            places.zip(variances.iter().cycle()).for_each(|(i, v)| values[i] = *v);
            Ok(Source::Fixed(values))
        }
        (Dist::Data, Positive) => {
            // A response alone has no columns, and 1 is as good a start as any.
            let variances = train.moments().into_iter().map(|(_, v)| v.max(f64::MIN_POSITIVE));
            let variances: Vec<f64> = if train.d() == 0 { vec![1.0] } else { variances.collect() };
            let variances = variances.into_iter().cycle();
            Ok(Source::Fixed(variances.take(block.range.len()).collect()))
        }
        _ => Ok(Source::Dist(dist)),
    }
}

fn describe(support: Support) -> &'static str {
    match support {
        Support::Real => "is no location in the data",
        Support::Location => "takes any real value",
        Support::Positive => "is positive",
        Support::Scale => "is positive, and no variance of the data",
        Support::Variance => "is positive",
        Support::Covariance(_) => "is a matrix with positive variances",
        Support::Unit => "lies between 0 and 1",
        Support::Simplex => "sums to 1",
        Support::Ordered => "is increasing",
    }
}

/// Fixed values must lie in the support of their block.
pub fn fits(block: &Block, values: &[f64]) -> Result<(), String> {
    let sum: f64 = values.iter().sum();
    match block.support {
        support if support.is_positive() && values.iter().any(|&v| v <= 0.0) => {
            Err(format!("`{}` must be positive", block.name))
        }
        Support::Covariance(d) if !values.chunks(d * d).all(|matrix| is_covariance(matrix, d)) => Err(
            format!("`{}` must be symmetric and positive definite, all {d} × {d} entries of it", block.name),
        ),
        Support::Unit if values.iter().any(|v| !(0.0..=1.0).contains(v)) => {
            Err(format!("`{}` must lie between 0 and 1", block.name))
        }
        Support::Ordered if values.windows(2).any(|pair| pair[0] >= pair[1]) => {
            Err(format!("`{}` must be increasing", block.name))
        }
        Support::Simplex if values.iter().any(|&v| v < 0.0) || (sum - 1.0).abs() > 1e-6 => {
            Err(format!("`{}` must be non-negative and sum to 1, not to {sum}", block.name))
        }
        _ => Ok(()),
    }
}

pub(crate) fn variate(dist: &Dist, rng: &mut Rng) -> f64 {
    let normal = |(m, s): (f64, Positive), rng: &mut Rng| {
        let z: f64 = StandardNormal.sample(rng);
        m + s.get() * z
    };
    let gamma = |shape: Positive, scale: f64, rng: &mut Rng| {
        Gamma::new(shape.get(), scale).expect("shape and scale are positive").sample(rng)
    };
    let value = match *dist {
        Dist::Dirichlet(a) => gamma(a, 1.0, rng),
        Dist::Uniform([low, high]) => {
            let u: f64 = Open01.sample(rng);
            low + (high - low) * u
        }
        Dist::Normal(pair) => normal(pair, rng),
        Dist::LogNormal(pair) => libm::exp(normal(pair, rng)),
        Dist::Gamma([shape, rate]) => gamma(shape, 1.0 / rate.get(), rng),
        Dist::InverseGamma([shape, scale]) => scale.get() / gamma(shape, 1.0, rng),
        Dist::Constant(_) | Dist::File(_) | Dist::Data => unreachable!("resolved when the start is built"),
    };
    // A gamma variate of tiny shape may underflow, its inverse overflow; searches start from finite points.
    match dist {
        Dist::Gamma(_) | Dist::InverseGamma(_) | Dist::LogNormal(_) | Dist::Dirichlet(_) => {
            value.clamp(f64::MIN_POSITIVE, f64::MAX)
        }
        _ => value,
    }
}

pub(crate) fn normalise(out: &mut [f64]) {
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|v| *v /= sum);
}
