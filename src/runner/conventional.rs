//! Conventional Bayes, drawn and evaluated like everything else.

use super::{Job, Scores};
use crate::bayes::ChainPlan;
use crate::bayes::importance::{Weighing, WeightedDraw};
use crate::error::Result;
use crate::evaluate::Dealing;
use crate::init::Init;
use crate::optim::Status;
use crate::ordered::in_order;
use crate::report::{AdviReport, ChainSum, Repeat};
use crate::rng::Purpose;
use crate::samples::Sample;
use crate::study::Trial;

/// Draws from a variational fit that a thread makes at one time.
const BLOCK: u64 = 16;

impl Job<'_> {
    pub(super) fn nuts(&mut self, trial: &Trial, facts: Repeat) -> Result<Repeat> {
        let (study, model) = (self.study, trial.model.as_ref());
        let settings = study.nuts();
        let posterior = study.posterior(model, &trial.train)?;
        let init: Option<Init> = study.begin(study.experiment.method, model, &trial.train)?;
        let dealing = Dealing::InRuns(study.draws() as u64);
        let mut scores = Scores::new(study, model, trial.test.as_deref(), 1, dealing);
        let mut chains = ChainSum::new(posterior.joint().names(), &settings);
        let plan = ChainPlan {
            settings: &settings,
            draws: study.draws(),
            init: init.as_ref(),
            seed: trial.seed,
            threads: self.pool.current_num_threads(),
            cancel: self.cancel,
        };
        let mut index = 0;
        posterior.nuts(&plan, |draw| {
            chains.add(&draw);
            let sample = Sample {
                index,
                objective: -draw.log_density,
                restart: draw.chain + 1,
                iterations: draw.steps,
                status: if draw.divergent { Status::Divergent } else { Status::Ok },
                extra: vec![f64::from(draw.divergent), draw.step_size],
                theta: draw.theta,
            };
            index += 1;
            let densities = scores.densities(&sample.theta);
            scores.add_sample(&sample, 0.0, densities.as_deref());
            (self.on_progress)(1);
            (self.on_draw)(sample)
        })?;
        let mut done = scores.report(facts);
        done.diagnostics.chains = Some(self.pool.install(|| chains.report()));
        Ok(done)
    }

    pub(super) fn advi(&mut self, trial: &Trial, facts: Repeat) -> Result<Repeat> {
        let (study, model) = (self.study, trial.model.as_ref());
        let posterior = study.posterior(model, &trial.train)?;
        let init: Option<Init> = study.begin(study.experiment.method, model, &trial.train)?;
        let fit = posterior.advi(&study.advi(), init.as_ref(), trial.seed, self.pool, self.cancel)?;
        let mut scores = Scores::new(study, model, trial.test.as_deref(), 1, Dealing::InTurn);
        let make = |index: u64, scores: &Scores| {
            let u = fit.q.draw(&mut trial.seed.stream(Purpose::VariationalDraw, index, 0));
            let theta = posterior.constrain(&u);
            let sample = Sample {
                index,
                objective: -posterior.joint().log_density(&theta, None),
                restart: 1,
                iterations: 0,
                status: Status::Ok,
                extra: vec![fit.q.log_density(&u)],
                theta,
            };
            let densities = scores.densities(&sample.theta);
            (sample, densities)
        };
        let evaluator = Scores::new(study, model, trial.test.as_deref(), 1, Dealing::InTurn);
        let (on_draw, on_progress) = (&mut self.on_draw, &mut self.on_progress);
        in_order(
            0..study.draws() as u64,
            BLOCK,
            self.pool,
            self.cancel,
            |ids, halted| ids.map(|i| (!halted()).then(|| make(i, &evaluator))).collect(),
            |(sample, densities)| {
                scores.add_sample(&sample, 0.0, densities.as_deref());
                on_progress(1);
                on_draw(sample)
            },
        )?;
        let mut done = scores.report(facts);
        done.diagnostics.advi = Some(AdviReport::of(&fit));
        Ok(Repeat { elbo: fit.trace, ..done })
    }

    pub(super) fn importance(&mut self, trial: &Trial, facts: Repeat) -> Result<Repeat> {
        let (study, model) = (self.study, trial.model.as_ref());
        let posterior = study.posterior(model, &trial.train)?;
        let proposal = study.proposal(&posterior)?;
        let mut scores = Scores::new(study, model, trial.test.as_deref(), 1, Dealing::InTurn);
        let evaluator = Scores::new(study, model, trial.test.as_deref(), 1, Dealing::InTurn);
        let (on_draw, on_progress) = (&mut self.on_draw, &mut self.on_progress);
        let weighing = Weighing {
            joint: posterior.joint(),
            proposal: &proposal,
            draws: study.draws() as u64,
            seed: trial.seed,
            pool: self.pool,
            cancel: self.cancel,
        };
        let weights = weighing.sample(
            |theta| evaluator.densities(theta),
            |draw: WeightedDraw<Option<Vec<f64>>>| {
                let sample = Sample {
                    index: draw.index,
                    theta: draw.theta,
                    objective: -draw.log_joint,
                    restart: 1,
                    iterations: 0,
                    status: Status::Ok,
                    extra: vec![draw.log_weight],
                };
                scores.add_sample(&sample, draw.log_weight, draw.result.as_deref());
                on_draw(sample)
            },
            on_progress,
        )?;
        let mut done = scores.report(facts);
        done.diagnostics.importance = Some(weights);
        Ok(done)
    }
}
