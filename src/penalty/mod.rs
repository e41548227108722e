//! Penalties g(β) of loss-NPL (section 2.6): a loss plus γ g(β). Any regression can use any of them; adding one is a file and
//! a line below.

mod elastic_net;
mod lasso;
mod none;
mod ridge;
mod student_t;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{LANES, Level, Line, Scalar};
use crate::rng::Rng;

pub use elastic_net::ElasticNet;
pub use lasso::Lasso;
pub use none::None;
pub use ridge::Ridge;
pub use student_t::StudentT;

/// What a penalty is, entry by entry of β.
pub trait Shape {
    /// γ g(β) of every lane, its gradient added to `gradient`; of what is smooth in it, if anything is.
    fn penalise<T: Scalar<L>, const L: usize>(
        &self,
        _level: Level,
        _gamma: f64,
        _beta: &[Line<T, L>],
        _gradient: &mut [Line<T, L>],
    ) -> [f64; L] {
        [0.0; L]
    }

    /// γ g″(β) of every lane where `exact`, else [`Shape::majorant`].
    fn curvatures<T: Scalar<L>, const L: usize>(
        &self,
        _level: Level,
        gamma: f64,
        _beta: &[Line<T, L>],
        _exact: [bool; L],
        out: &mut [Line<T, L>],
    ) {
        out.fill(Line([T::of(self.majorant(gamma, 0.0)); L]));
    }

    /// γ g′(β)/β: the curvature of the parabola that touches the smooth part at ±β and lies above it elsewhere, for it is
    /// concave in β². At 0 it is the second derivative.
    fn majorant(&self, _gamma: f64, _beta: f64) -> f64 {
        0.0
    }

    /// With a convex loss there is one minimum.
    fn is_convex(&self) -> bool {
        true
    }

    /// Weight of Σ|β| in g, which has a kink and is the optimiser's to deal with.
    fn kink(&self) -> f64 {
        0.0
    }

    /// As a prior exp(−s g(β)): log of its normalising constant for one coefficient; 0 if it has none.
    fn log_normaliser(&self, strength: f64) -> f64;

    /// A coefficient from that prior; `None` if it is improper.
    fn draw(&self, strength: f64, rng: &mut Rng) -> Option<f64>;

    /// Shape a and rate b of the precisions λ ~ Gamma(a, b) behind it, β ~ N(0, 1/λ), at strength 1.
    fn precisions(&self) -> Option<[f64; 2]> {
        Option::None
    }
}

macro_rules! penalties {
    (
        tables { $($(#[$doc:meta])* $table:ident),* $(,)? }
        words { $($(#[$word_doc:meta])* $word:ident),* $(,)? }
    ) => {
        /// The penalty g(β).
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum Penalty {
            $($(#[$doc])* $table($table),)*
            $($(#[$word_doc])* $word,)*
        }

        impl Shape for Penalty {
            fn penalise<T: Scalar<L>, const L: usize>(
                &self, level: Level, gamma: f64, beta: &[Line<T, L>], gradient: &mut [Line<T, L>],
            ) -> [f64; L] {
                match self {
                    $(Penalty::$table(g) => g.penalise(level, gamma, beta, gradient),)*
                    $(Penalty::$word => $word.penalise(level, gamma, beta, gradient),)*
                }
            }

            fn curvatures<T: Scalar<L>, const L: usize>(
                &self, level: Level, gamma: f64, beta: &[Line<T, L>], exact: [bool; L], out: &mut [Line<T, L>],
            ) {
                match self {
                    $(Penalty::$table(g) => g.curvatures(level, gamma, beta, exact, out),)*
                    $(Penalty::$word => $word.curvatures(level, gamma, beta, exact, out),)*
                }
            }

            fn majorant(&self, gamma: f64, beta: f64) -> f64 {
                match self {
                    $(Penalty::$table(g) => g.majorant(gamma, beta),)*
                    $(Penalty::$word => $word.majorant(gamma, beta),)*
                }
            }

            fn is_convex(&self) -> bool {
                match self { $(Penalty::$table(g) => g.is_convex(),)* $(Penalty::$word => $word.is_convex(),)* }
            }

            fn kink(&self) -> f64 {
                match self { $(Penalty::$table(g) => g.kink(),)* $(Penalty::$word => $word.kink(),)* }
            }

            fn log_normaliser(&self, strength: f64) -> f64 {
                match self {
                    $(Penalty::$table(g) => g.log_normaliser(strength),)*
                    $(Penalty::$word => $word.log_normaliser(strength),)*
                }
            }

            fn draw(&self, strength: f64, rng: &mut Rng) -> Option<f64> {
                match self {
                    $(Penalty::$table(g) => g.draw(strength, rng),)*
                    $(Penalty::$word => $word.draw(strength, rng),)*
                }
            }

            fn precisions(&self) -> Option<[f64; 2]> {
                match self { $(Penalty::$table(g) => g.precisions(),)* $(Penalty::$word => $word.precisions(),)* }
            }
        }
    };
}

penalties! {
    tables {
        /// Σ (2a + 1)/2 log(1 + β²/2b): minus the log density of a Student-t, the marginal of the ARD prior of eq. (12).
        StudentT,
        /// Σ r |β| + (1 − r) β²/2.
        ElasticNet,
    }
    words {
        /// Σ |β|.
        Lasso,
        /// Σ β²/2.
        Ridge,
        /// 0.
        None,
    }
}

impl Penalty {
    /// γ Σ fⱼ g(βⱼ) without its kinks, its gradient added to `gradient`.
    pub fn weighted(&self, gamma: f64, factors: &[f64], beta: &[f64], gradient: &mut [f64]) -> f64 {
        let level = Level::current();
        let mut sum = 0.0;
        // Eight coefficients of the same factor in the lanes of a line; where there are fewer, the others are 0.
        for ((beta, by), factors) in
            beta.chunks(LANES).zip(gradient.chunks_mut(LANES)).zip(factors.chunks(LANES))
        {
            let mut rest: Vec<usize> = (0..beta.len()).collect();
            while let Some(&first) = rest.first() {
                let (here, others) =
                    rest.into_iter().partition::<Vec<_>, _>(|&j| factors[j] == factors[first]);
                rest = others;
                let (mut line, mut slope) = (Line::<f64, LANES>::default(), [Line::<f64, LANES>::default()]);
                here.iter().for_each(|&j| line[j] = beta[j]);
                let values = self.penalise(level, gamma * factors[first], &[line], &mut slope);
                sum += here.iter().map(|&j| values[j]).sum::<f64>();
                here.iter().for_each(|&j| by[j] += slope[0][j]);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{OpenUnit, Positive};
    use crate::rng::{Purpose, Seed};

    fn all() -> [Penalty; 6] {
        let positive = |v| Positive::new(v).unwrap();
        [
            Penalty::StudentT(StudentT { a: positive(1.0), b: positive(0.7) }),
            Penalty::ElasticNet(ElasticNet { ratio: OpenUnit::new(0.3).unwrap() }),
            Penalty::ElasticNet(ElasticNet { ratio: OpenUnit::new(0.9).unwrap() }),
            Penalty::Ridge,
            Penalty::Lasso,
            Penalty::None,
        ]
    }

    fn value(g: &Penalty, beta: f64) -> (f64, f64) {
        let mut slope = [Line::<f64, LANES>::default()];
        let smooth = g.penalise(Level::PLAIN, 0.3, &[Line([beta; LANES])], &mut slope)[0];
        (smooth + 0.3 * g.kink() * beta.abs(), slope[0][0] + 0.3 * g.kink() * beta.signum())
    }

    #[test]
    fn slopes_are_derivatives() {
        for g in all() {
            for beta in [-3.0, -0.2, 0.4, 2.0] {
                let (up, down) = (value(&g, beta + 1e-6).0, value(&g, beta - 1e-6).0);
                assert!((value(&g, beta).1 - (up - down) / 2e-6).abs() < 1e-8, "{g:?} at {beta}");
            }
        }
    }

    /// exp(−s g) integrates to one over its normaliser, and draws have its distribution: by the mean of |β| below a bound.
    #[test]
    fn as_priors_they_integrate_to_one_and_are_drawn_from() {
        for g in all() {
            let strength = 2.5;
            let mut rng = Seed(1).stream(Purpose::Auxiliary, 0, 0);
            let Some(_) = g.draw(strength, &mut rng) else {
                assert_eq!((g, g.log_normaliser(strength)), (Penalty::None, 0.0));
                continue;
            };
            let density = |b: f64| (g.log_normaliser(strength) - strength / 0.3 * value(&g, b).0).exp();
            let step = 1e-3;
            let cells = || (-60_000..60_000).map(|i| (i as f64 + 0.5) * step);
            let total: f64 = cells().map(|b| density(b) * step).sum();
            assert!((total - 1.0).abs() < 1e-4, "{g:?}: {total}");
            let inside: f64 = cells().filter(|b| b.abs() < 0.5).map(|b| density(b) * step).sum();
            let n = 40_000;
            let hits = (0..n).filter(|_| g.draw(strength, &mut rng).unwrap().abs() < 0.5).count() as f64;
            let z = (hits / n as f64 - inside) / (inside * (1.0 - inside) / n as f64).sqrt();
            assert!(z.abs() < 5.0, "{g:?}: {z}");
        }
    }
}
