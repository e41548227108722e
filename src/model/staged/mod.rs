//! Models in stages. Every stage is a loss of its own, minimised under the F of the draw, and what it predicts may be a column
//! or a weight of the stages after it: θₖ(F) = argmin ∫ vₖ lₖ dF with lₖ and vₖ known once θ₁(F), …, θₖ₋₁(F) are. So the
//! uncertainty of the first is in the second, as it should be, because all of them are functions of one F.

mod frame;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Context, Model, ModelConfig, Response, Search, Support};
use crate::config::{Complaint, brief, complaint, nearest, printable, within};
use crate::data::Dataset;
use crate::data::design::Design;
use crate::expression::Program;
use crate::optim::{Minimum, Optimiser, Status};
use crate::process::{BaseMeasure, Measure};
use crate::rng::Rng;
use frame::{Cell, Frame, Inputs, Names};

/// A model in a sequence of them. All are fitted under the weights of the same draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its name: parameters are called `propensity.beta.age`, and what it predicts `propensity.prediction`.
    pub name: String,
    /// The response: a column by its name. Left out: `data.target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Columns, by the names that they have once they are prepared; `"region_*"` for all whose names begin so, and
    /// `"propensity.prediction"` for what an earlier stage predicts. Left out: all that are the response of no stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// What the weight of a row is multiplied by, an expression of columns and of predictions of earlier stages. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// The model, one table per kind: `[stage.model.logistic]`.
    pub model: ModelConfig,
}

/// Draws of a block, where their weights and predictions do not take more than a few dozen megabytes.
const WEIGHTS: usize = 1 << 22;

/// The models of all stages on these data, or what is wrong: keys from the top of the experiment.
pub fn build(stages: &[Stage], context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
    let mut built = Staged {
        stages: Vec::new(),
        optimiser: context.optimiser.clone(),
        mass: context.mass,
        observations: context.train.mass(),
        block: (WEIGHTS / context.train.n().max(1)).max(1),
        may_be_flawed: false,
    };
    let mut names = Names::of(context.train);
    let mut predictions = Vec::new();
    for (k, stage) in stages.iter().enumerate() {
        let next = Builder { stages, k, stage, names: &names, context }.build(&mut built, &predictions)?;
        let frame = Frame { rows: context.train, predictions: &predictions };
        let made = next.predictions(&next.fit, &frame.data(&next.inputs));
        let outputs = next.model.predicted();
        names.predictions.extend(outputs.iter().map(|output| {
            let own = format!("{}.{output}", stage.name);
            let only = (outputs.len() == 1).then(|| format!("{}.prediction", stage.name));
            only.into_iter().chain([own]).collect::<Vec<_>>()
        }));
        predictions.extend(made);
        built.stages.push(next);
    }
    Ok(Box::new(built))
}

/// What one stage is made of.
struct Builder<'a> {
    stages: &'a [Stage],
    k: usize,
    stage: &'a Stage,
    names: &'a Names,
    context: &'a Context<'a>,
}

impl Builder<'_> {
    fn key(&self, key: &str) -> String {
        let dot = if key.is_empty() { "" } else { "." };
        format!("stage.{}{dot}{key}", self.stage.name)
    }

    fn wrong(&self, key: &str, why: impl Into<String>) -> Vec<Complaint> {
        vec![complaint(self.key(key), why)]
    }

    fn build(&self, before: &mut Staged, predictions: &[Vec<f64>]) -> Result<Built, Vec<Complaint>> {
        let (stage, train) = (self.stage, self.context.train);
        let mixture = matches!(
            stage.model,
            ModelConfig::Gmm(_) | ModelConfig::BernoulliMixture(_) | ModelConfig::Kmeans(_)
        );
        if mixture {
            let why = "cannot be a stage: what its components are called is another matter for each draw";
            return Err(self.wrong(&format!("model.{}", stage.model.name()), why));
        }
        let inputs = Inputs { target: self.target()?, columns: self.columns()? };
        let weight = match &stage.weight {
            Some(text) => Some(self.names.program(text).map_err(|fault| {
                let key = within(&self.key("weight"), &fault.span);
                vec![complaint(key, fault.message)]
            })?),
            None => None,
        };
        let frame = Frame { rows: train, predictions };
        let mut v = weight.as_ref().map(|weight| frame.evaluate(weight));
        let unfit = v.iter().flatten().position(|v| !(v.is_finite() && *v >= 0.0));
        // Pseudo-samples may give a minimum to stages that have none on the rows alone.
        let prior = self.context.alpha > 0.0;
        if prior && unfit.is_some() {
            v = None;
        } else if let (Some(i), Some(v)) = (unfit, &v) {
            let why = format!("is {} in row {}; it must be a number of at least 0", v[i], i + 1);
            return Err(self.wrong("weight", why));
        }
        let kept = v.as_ref().map_or(Kept::All, |v| Kept::of(v));
        if matches!(&kept, Kept::Some(rows) if rows.is_empty()) {
            return Err(self.wrong("weight", "is 0 in all rows"));
        }
        // The data of a stage count by its weights, and as many observations as there are.
        let mut data = kept.rows_of(frame.data(&inputs)).into_owned();
        if let Some(v) = &mut v {
            v.iter_mut().enumerate().for_each(|(i, v)| *v *= train.weight(i));
            let total: f64 = v.iter().sum();
            let weights = kept.numbers(train.n()).map(|i| v[i] * (train.mass() / total)).collect();
            data = data.with_design(Design::new(Some(weights), None, None));
        } else {
            let weights = train.design.weights().map(<[f64]>::to_vec);
            data = data.with_design(Design::new(weights, None, None));
        }
        let context = Context { train: &data, derived: None, ..*self.context };
        let name = stage.model.name();
        let below = |problems: Vec<Complaint>| -> Vec<Complaint> {
            let place = |(key, why): Complaint| {
                let dot = if key.is_empty() { "" } else { "." };
                (self.key(&format!("model.{name}{dot}{key}")).into(), why)
            };
            problems.into_iter().map(place).collect()
        };
        let model = stage.model.build(&context).map_err(below)?;
        if let Some(flaws) = model.flaws(&data).filter(|_| data.n() > 0) {
            before.may_be_flawed = true;
            if !flaws.is_empty() {
                return Err(below(flaws));
            }
        }
        let start = start(model.as_ref(), &data);
        let fit = match data.n() {
            // A model that only predicts.
            0 => vec![0.0; model.names().len()],
            _ => {
                let minimum = model.minimise(&Measure::empirical(&data), &start);
                if minimum.status.is_lost() && prior {
                    if start.is_empty() { vec![0.0; model.names().len()] } else { start.clone() }
                } else if minimum.status.is_lost() {
                    let why = format!("has no minimum on the unweighted data ({})", minimum.status.name());
                    return Err(self.wrong(&format!("model.{name}"), why));
                } else {
                    minimum.theta
                }
            }
        };
        let first = before.stages.last().map_or(0, |last| last.range.end);
        let range = first..first + model.names().len();
        let outputs = before.stages.last().map_or(0, |last| last.outputs.end);
        let outputs = outputs..outputs + model.predicted().len();
        let uses_response = |cell: &Cell| match cell {
            Cell::Response => true,
            Cell::Prediction(p) => before.stages.iter().any(|s| s.outputs.contains(p) && !s.predicts),
            Cell::Column(_) => false,
        };
        Ok(Built {
            name: stage.name.clone(),
            predicts: !inputs.columns.iter().any(|(_, cell)| uses_response(cell)),
            starts: !start.is_empty(),
            config: stage.model.clone(),
            model,
            range,
            outputs,
            inputs,
            weight,
            kept,
            fit,
        })
    }

    /// The column that a name stands for.
    fn find(&self, key: &str, name: &str) -> Result<Cell, Vec<Complaint>> {
        self.names.find(name).ok_or_else(|| {
            let hint = nearest(name, self.names.all());
            let hint = hint.map(|n| format!("; did you mean \"{}\"?", printable(n))).unwrap_or_default();
            let later = self.stages[self.k..].iter().find(|s| name.starts_with(&format!("{}.", s.name)));
            let hint = match later {
                Some(stage) => {
                    format!(
                        ": stage \"{}\" does not come before this one, or predicts no such number",
                        stage.name
                    )
                }
                None => hint,
            };
            self.wrong(key, format!("names \"{}\", which the prepared data lack{hint}", printable(name)))
        })
    }

    fn target(&self) -> Result<Option<(String, Cell)>, Vec<Complaint>> {
        let of_data = self.names.response.clone().or(self.context.train.y.as_ref().map(|_| "y".to_owned()));
        let Some(name) = &self.stage.target else {
            return Ok(of_data.map(|name| (name, Cell::Response)));
        };
        let cell = self.find("target", name)?;
        if self.stage.model.classifies() && cell != Cell::Response {
            let why = format!("must be `data.target`: [stage.model.{}] has classes", self.stage.model.name());
            return Err(self.wrong("target", why));
        }
        Ok(Some((name.clone(), cell)))
    }

    fn columns(&self) -> Result<Vec<(String, Cell)>, Vec<Complaint>> {
        let Some(patterns) = &self.stage.columns else {
            let is_target = |name: &String| self.stages.iter().any(|s| s.target.as_ref() == Some(name));
            let columns = self.names.columns.iter().enumerate().filter(|(_, name)| !is_target(name));
            return Ok(columns.map(|(j, name)| (name.clone(), Cell::Column(j))).collect());
        };
        let mut columns: Vec<(String, Cell)> = Vec::new();
        for (c, pattern) in patterns.iter().enumerate() {
            let key = format!("columns[{c}]");
            let names = self.names.matching(pattern);
            if names.is_empty() {
                return Err(self.wrong(&key, format!("\"{}\" is the name of no column", printable(pattern))));
            }
            for name in names {
                let cell = self.find(&key, &name)?;
                if self.stage.target.as_ref() == Some(&name) {
                    return Err(self.wrong(&key, format!("\"{}\" is the response", printable(&name))));
                }
                if columns.iter().any(|(_, known)| *known == cell) {
                    return Err(self.wrong(&key, format!("names \"{}\" twice", printable(&name))));
                }
                columns.push((name, cell));
            }
        }
        Ok(columns)
    }
}

/// A point where the fit to the unweighted data may start.
fn start(model: &dyn Model, data: &Dataset) -> Vec<f64> {
    let blocks = model.blocks();
    let mut start = vec![0.0; if blocks.is_empty() { 0 } else { model.names().len() }];
    for block in blocks {
        let entries = block.range.len() as f64;
        let means = || data.moments().into_iter().map(|(mean, _)| mean).collect::<Vec<_>>();
        let out = &mut start[block.range];
        match block.support {
            Support::Real => {}
            Support::Location if data.n() > 0 && data.d() > 0 => {
                out.iter_mut().zip(means().iter().cycle()).for_each(|(out, mean)| *out = *mean)
            }
            Support::Location => {}
            Support::Positive | Support::Scale | Support::Variance => out.fill(1.0),
            Support::Covariance(_) => block.support.diagonal(out.len()).for_each(|i| out[i] = 1.0),
            Support::Unit => out.fill(0.5),
            Support::Simplex => out.fill(1.0 / entries),
            Support::Ordered => out.iter_mut().zip(0..).for_each(|(out, i)| *out = f64::from(i)),
        }
    }
    start
}

/// The rows that have a weight in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    All,
    Some(Vec<usize>),
}

impl Kept {
    fn of(v: &[f64]) -> Kept {
        match v.iter().all(|v| *v > 0.0) {
            true => Kept::All,
            false => Kept::Some((0..v.len()).filter(|&i| v[i] > 0.0).collect()),
        }
    }

    fn rows_of(&self, data: Dataset) -> Cow<'static, Dataset> {
        match self {
            Kept::All => Cow::Owned(data),
            Kept::Some(rows) => Cow::Owned(data.select(rows)),
        }
    }

    fn numbers(&self, n: usize) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Kept::All => Box::new(0..n),
            Kept::Some(rows) => Box::new(rows.iter().copied()),
        }
    }
}

/// A stage, made for its data.
struct Built {
    name: String,
    config: ModelConfig,
    model: Box<dyn Model>,
    /// Its parameters in θ.
    range: Range<usize>,
    /// What it predicts, among the predictions of all stages.
    outputs: Range<usize>,
    inputs: Inputs,
    weight: Option<Program>,
    /// The rows that have a weight under the fit to the unweighted data.
    kept: Kept,
    /// That fit: where the search of every draw starts.
    fit: Vec<f64>,
    /// Whether searches have starts.
    starts: bool,
    /// What it predicts for a row does not take its response.
    predicts: bool,
}

impl Built {
    /// What is predicted, a vector for each number.
    fn predictions(&self, theta: &[f64], data: &Dataset) -> Vec<Vec<f64>> {
        let m = self.outputs.len();
        let mut all = vec![0.0; data.n() * m];
        if m > 0 {
            self.model.predict(theta, data, &mut all);
        }
        (0..m).map(|j| (0..data.n()).map(|i| all[i * m + j]).collect()).collect()
    }

    fn start(&self) -> Vec<f64> {
        if self.starts { self.fit.clone() } else { Vec::new() }
    }
}

struct Staged {
    stages: Vec<Built>,
    optimiser: Optimiser,
    mass: f64,
    /// Without those of the prior: n of γ = 1/n.
    observations: f64,
    block: usize,
    /// Some stage could have no minimum on some data.
    may_be_flawed: bool,
}

/// A draw on its way through the stages.
struct Draw<'a> {
    f: &'a Measure<'a>,
    predictions: Vec<Vec<f64>>,
    minimum: Minimum,
}

/// The rows and weights of a draw in a stage.
struct Weighed {
    kept: Kept,
    w: Vec<f64>,
}

impl Staged {
    fn last(&self) -> &Built {
        self.stages.last().expect("checked with the experiment: there is a stage")
    }

    /// The last stage, where test responses are responses of it, each as likely as it was in training.
    fn tested(&self) -> Option<&Built> {
        let of_data = |stage: &&Built| matches!(stage.inputs.target, Some((_, Cell::Response)));
        Some(self.last()).filter(of_data).filter(|stage| stage.weight.is_none() && stage.predicts)
    }

    /// F's weights times those of the stage; `None` if these are no weights.
    fn weigh(stage: &Built, frame: &Frame, w: &[f64]) -> Option<Weighed> {
        let Some(program) = &stage.weight else {
            return Some(Weighed { kept: Kept::All, w: w.to_vec() });
        };
        let v = frame.evaluate(program);
        if v.iter().any(|v| !(v.is_finite() && *v >= 0.0)) {
            return None;
        }
        let kept = Kept::of(&v);
        let mut w: Vec<f64> = kept.numbers(v.len()).map(|i| w[i] * v[i]).collect();
        let total: f64 = w.iter().sum();
        w.iter_mut().for_each(|w| *w /= total);
        (total > 0.0 && total.is_finite()).then_some(Weighed { kept, w })
    }

    /// Draws that live on the same rows, which are `own` if they are not those that the stages were made for.
    fn through(&self, rows: &Dataset, own: bool, measures: &[&Measure]) -> Vec<Minimum> {
        let theta: Vec<f64> = self.stages.iter().flat_map(|stage| stage.fit.clone()).collect();
        let begun = Minimum { theta, value: 0.0, iterations: 0, gradient: 0.0, status: Status::Ok };
        let mut draws: Vec<Draw> =
            measures.iter().map(|f| Draw { f, predictions: Vec::new(), minimum: begun.clone() }).collect();
        for k in 0..self.stages.len() {
            self.advance(k, rows, own, &mut draws);
        }
        draws.into_iter().map(|draw| draw.minimum).collect()
    }

    /// A search on rows of its own, by a model of its own, which remembers nothing of other draws. They count as many observations as
    /// there are; where pseudo-samples are among them, they may have no minimum.
    fn alone(&self, stage: &Built, f: &Measure, own: Dataset, w: Vec<f64>, prior: bool) -> Minimum {
        let weights = vec![self.observations.max(1.0) / own.n() as f64; own.n()];
        let own = own.with_design(Design::new(Some(weights), None, None));
        let Staged { mass, ref optimiser, .. } = *self;
        let context = Context { train: &own, alpha: 0.0, mass, optimiser, derived: None };
        match stage.config.build(&context) {
            Ok(model) if !prior || model.flaws(&own).is_none_or(|flaws| flaws.is_empty()) => {
                model.minimise(&f.on(&own, w), &stage.start())
            }
            _ => Minimum::failed(stage.fit.clone(), 0),
        }
    }

    /// One stage of draws that have come so far.
    fn advance(&self, k: usize, rows: &Dataset, own: bool, draws: &mut [Draw]) {
        let stage = &self.stages[k];
        let used = |p: &usize| self.stages[k + 1..].iter().any(|later| later.uses(*p));
        let used = stage.outputs.clone().any(|p| used(&p));
        let vary = own || stage.inputs.vary();
        // What draws share.
        let all = (!vary).then(|| Frame { rows, predictions: &[] }.data(&stage.inputs));
        let subset = all.as_ref().and_then(|all| match &stage.kept {
            Kept::All => None,
            Kept::Some(kept) => Some(all.select(kept)),
        });
        let mut together = Vec::new();
        for (b, draw) in draws.iter_mut().enumerate().filter(|(_, d)| !d.minimum.status.is_lost()) {
            let frame = Frame { rows, predictions: &draw.predictions };
            let Some(weighed) = Self::weigh(stage, &frame, draw.f.weights().0) else {
                draw.minimum.status = Status::Failed;
                draw.minimum.value = f64::NAN;
                continue;
            };
            if !vary && weighed.kept == stage.kept {
                together.push((b, weighed.w));
                continue;
            }
            let data = frame.data(&stage.inputs);
            let kept = weighed.kept.rows_of(data.clone()).into_owned();
            let minimum = self.alone(stage, draw.f, kept, weighed.w, own);
            draw.add(stage, minimum, used.then_some(&data));
        }
        let Some(all) = &all else { return };
        let data = subset.as_ref().unwrap_or(all);
        let measures: Vec<(usize, Measure)> =
            together.into_iter().map(|(b, w)| (b, draws[b].f.on(data, w))).collect();
        let searches: Vec<Search> = measures.iter().map(|(_, f)| Search::new(f, stage.start())).collect();
        let minima = if searches.is_empty() { Vec::new() } else { stage.model.minimise_block(&searches) };
        for ((b, _), minimum) in measures.iter().zip(minima) {
            draws[*b].add(stage, minimum, used.then_some(all));
        }
    }

    /// Data of every stage on rows of any kind, by what the stages before it predict at θ.
    fn on(&self, theta: &[f64], rows: &Dataset, mut see: impl FnMut(&Built, &Frame, &Dataset)) {
        let mut predictions: Vec<Vec<f64>> = Vec::new();
        for stage in &self.stages {
            let frame = Frame { rows, predictions: &predictions };
            let data = frame.data(&stage.inputs);
            see(stage, &frame, &data);
            predictions.extend(stage.predictions(&theta[stage.range.clone()], &data));
        }
    }

    /// `of` the last stage and its data, where test rows have a meaning.
    fn of_tested<T>(
        &self,
        theta: &[f64],
        at: &Dataset,
        of: impl FnOnce(&Built, &[f64], &Dataset) -> T,
    ) -> Option<T> {
        let tested = self.tested()?;
        let mut data = None;
        self.on(theta, at, |stage, _, of_stage| {
            if stage.range == tested.range {
                data = Some(of_stage.clone());
            }
        });
        Some(of(tested, &theta[tested.range.clone()], &data?))
    }
}

impl Built {
    /// Whether a prediction is one of its columns, or in its weight.
    fn uses(&self, prediction: usize) -> bool {
        self.weight.is_some()
            || self.inputs.columns.iter().any(|(_, cell)| *cell == Cell::Prediction(prediction))
    }
}

impl Draw<'_> {
    /// Takes what a stage found, and what it predicts for all rows, where that is used.
    fn add(&mut self, stage: &Built, found: Minimum, rows: Option<&Dataset>) {
        let so_far = &mut self.minimum;
        match rows {
            Some(rows) => self.predictions.extend(stage.predictions(&found.theta, rows)),
            None => self.predictions.extend(vec![Vec::new(); stage.outputs.len()]),
        }
        so_far.theta[stage.range.clone()].copy_from_slice(&found.theta);
        so_far.value += found.value;
        so_far.iterations += found.iterations;
        so_far.gradient = so_far.gradient.max(found.gradient);
        // The stage that has the least of a minimum says what the draw is.
        let rank = |status: Status| match status {
            Status::Ok => 0,
            Status::Collapsed => 1,
            Status::MaxIter | Status::Stuck => 2,
            _ => 3,
        };
        if rank(found.status) > rank(so_far.status) {
            so_far.status = found.status;
        }
    }
}

impl Model for Staged {
    fn names(&self) -> Vec<String> {
        let of_stage = |stage: &Built| {
            let prefix = stage.name.clone();
            stage.model.names().into_iter().map(move |name| format!("{prefix}.{name}")).collect::<Vec<_>>()
        };
        self.stages.iter().flat_map(of_stage).collect()
    }

    /// The sum of what the stages minimise, each under the weights that those before it lead to.
    fn loss(&self, theta: &[f64], f: &Measure) -> f64 {
        let (rows, w) = plain(f);
        let mut sum = 0.0;
        self.on(theta, &rows, |stage, frame, data| {
            sum += match Self::weigh(stage, frame, &w) {
                Some(weighed) => {
                    let kept = weighed.kept.rows_of(data.clone());
                    stage.model.loss(&theta[stage.range.clone()], &f.on(&kept, weighed.w))
                }
                None => f64::NAN,
            };
        });
        sum
    }

    fn minimise(&self, f: &Measure, start: &[f64]) -> Minimum {
        self.minimise_block(&[Search::new(f, start.to_vec())]).remove(0)
    }

    fn minimise_block(&self, searches: &[Search]) -> Vec<Minimum> {
        let alike =
            |s: &Search| std::ptr::eq(s.f.observed(), searches[0].f.observed()) && s.f.weights().1.is_empty();
        if !searches.iter().all(alike) {
            let alone = |s: &Search| {
                let (rows, w) = s.f.written_out();
                self.through(&rows, true, &[&s.f.on(&rows, w)]).remove(0)
            };
            return searches.iter().map(alone).collect();
        }
        let measures: Vec<&Measure> = searches.iter().map(|s| s.f).collect();
        self.through(searches[0].f.observed(), false, &measures)
    }

    fn block_size(&self) -> usize {
        let most = self.stages.iter().map(|stage| stage.model.block_size()).max().unwrap_or(1);
        most.min(self.block)
    }

    /// Looked for when stages are made, each on its own data.
    fn flaws(&self, _train: &Dataset) -> Option<Vec<Complaint>> {
        self.may_be_flawed.then(Vec::new)
    }

    /// That some stage cannot have such a response.
    fn refuses_atoms(&self, rows: &Dataset) -> Option<String> {
        let theta: Vec<f64> = self.stages.iter().flat_map(|stage| stage.fit.clone()).collect();
        let mut found = None;
        self.on(&theta, rows, |stage, _, data| {
            let response = stage.model.response();
            let unfit = || {
                let response = response?;
                let y = data.y.as_ref()?;
                let wrong = y.iter().find(|y| !response.admits(**y))?;
                Some(format!("has a response {}, and it must be {}", brief(*wrong), response.what()))
            };
            let lacks = || (response.is_some() && data.y.is_none()).then(|| "has no response".to_owned());
            let why = || lacks().or_else(unfit).or_else(|| stage.model.refuses(data));
            found = found.take().or_else(|| why().map(|why| format!("stage \"{}\" {why}", stage.name)));
        });
        found
    }

    fn prior_predictive(&self, _data: &Arc<Dataset>) -> Result<Box<dyn BaseMeasure>, String> {
        Err("needs a likelihood of all responses at once, and stages have none: see `response`, `empirical`"
            .into())
    }

    fn log_density(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) -> bool {
        self.of_tested(theta, at, |stage, theta, at| stage.model.log_density(theta, at, out)).unwrap_or(false)
    }

    fn is_likelihood(&self) -> bool {
        self.tested().is_some_and(|stage| stage.model.is_likelihood())
    }

    fn mean(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        self.of_tested(theta, at, |stage, theta, at| stage.model.mean(theta, at, out));
    }

    fn probabilities(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        self.of_tested(theta, at, |stage, theta, at| stage.model.probabilities(theta, at, out));
    }

    fn has_mean(&self) -> bool {
        self.tested().is_some_and(|stage| stage.model.has_mean())
    }

    /// What every stage predicts, but for those that would have to know a response.
    fn predicted(&self) -> Vec<String> {
        let names = |stage: &Built| {
            let prefix = stage.name.clone();
            let names = stage.model.predicted();
            names.into_iter().map(move |name| format!("{prefix}.{name}")).collect::<Vec<_>>()
        };
        self.stages.iter().filter(|stage| stage.predicts).flat_map(names).collect()
    }

    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        let mut columns = Vec::new();
        self.on(theta, at, |stage, _, data| {
            if stage.predicts {
                columns.extend(stage.predictions(&theta[stage.range.clone()], data));
            }
        });
        let m = columns.len();
        for (j, column) in columns.iter().enumerate() {
            column.iter().enumerate().for_each(|(i, value)| out[i * m + j] = *value);
        }
    }

    fn respond(&self, theta: &[f64], at: &Dataset, rng: &mut Rng, out: &mut [f64]) -> bool {
        self.of_tested(theta, at, |stage, theta, at| stage.model.respond(theta, at, rng, out))
            .unwrap_or(false)
    }

    fn coefficients(&self) -> Option<Range<usize>> {
        let last = self.last();
        last.model.coefficients().map(|c| c.start + last.range.start..c.end + last.range.start)
    }

    fn response(&self) -> Option<Response> {
        self.tested().and_then(|stage| stage.model.response())
    }

    fn joint<'a>(&'a self, _data: &'a Dataset) -> Result<Box<dyn super::Joint + 'a>, Complaint> {
        Err(complaint("", "are fitted one after the other, which is no likelihood of all of them"))
    }
}

/// F as rows with a weight each.
fn plain<'a>(f: &'a Measure) -> (Cow<'a, Dataset>, Cow<'a, [f64]>) {
    match f.weights() {
        (w, []) => (Cow::Borrowed(f.observed()), Cow::Borrowed(w)),
        _ => {
            let (rows, w) = f.written_out();
            (Cow::Owned(rows), Cow::Owned(w))
        }
    }
}
