//! A loss of one's own: ∫ l(row, θ) dF with l an expression of columns and parameters, eq. (1) as it stands. Gradients are exact,
//! by reverse mode over the tape of the expression.

mod curved;
mod kinks;
mod names;
mod parameters;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::row_loss::{Metric, OnBlock, Ready, RowLoss, Rows};
use super::{Block, Context, Model, Response, Search, Support, Transform};
use crate::config::{Complaint, Gamma, InOrder, complaint, within};
use crate::data::Dataset;
use crate::expression::{
    Compiler, Definitions, Fault, Id, Point, Prepared, Program, Scope, Weighted, in_lines, parse,
};
use crate::kernel::Line;
use crate::optim::Minimum;
use crate::process::Measure;
use curved::Curvature;
pub use names::{DataColumns, named_columns};
use names::{EVENT, TARGET, scope};
use parameters::{Domain, lay_out};

pub const STARTER: &str = include_str!("../../../configs/starters/custom.toml");

/// Every parameter must occur, and every name be known: see docs/losses.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The parameters: the support and the length of each, `{ beta = { real = "x" }, scale = { positive = 1 } }`.
    pub parameters: InOrder<Domain>,
    /// The loss of a row, an expression of columns and parameters.
    pub loss: String,
    /// A penalty on the parameters, an expression of them alone. It counts once, times gamma.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalty: Option<String>,
    /// Strength γ of the penalty: a number, or "1/n". Left out: "1/n".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<Gamma>,
    /// Whether the loss is −log f, with f a density: LPPD, NUTS and ADVI then have a meaning.
    #[serde(default)]
    pub likelihood: bool,
    /// What is predicted for a row, an expression of columns, parameters and quantities of `[derived]`. Test responses are held against it by their squared error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predict: Option<String>,
}

impl Config {
    pub fn build(&self, context: &Context) -> Result<Box<dyn Model>, Vec<Complaint>> {
        let columns = &context.train.columns;
        let (blocks, names) = lay_out(&self.parameters, columns)?;
        let scope = scope(context.train, &blocks, &names);
        let program = self.program(&scope)?;
        self.check(&program, &blocks, &names)?;
        let predict = self.predict.as_ref().map(|text| prediction(&scope, &names, context, text));
        let predict = predict.transpose().map_err(|c| vec![c])?;
        let gamma = self.gamma.as_ref().map_or(context.one_over_n(), |g| g.value(context.one_over_n()));
        let d = columns.len();
        let uses = |column: usize| program.reads(column) || predict.as_ref().is_some_and(|p| p.reads(column));
        let loss = Custom {
            names,
            columns: d,
            gamma,
            likelihood: self.likelihood,
            response: uses(d + TARGET),
            events: uses(d + EVENT),
            coefficients: blocks
                .iter()
                .find(|b| b.name == "beta" && b.range.len() == d && d > 0)
                .map(|b| b.range.clone()),
            curvature: Curvature::new(&program, &blocks),
            kinks: program.kinks(),
            blocks,
            program,
            predict,
            metric: Metric::default(),
        };
        let (optimiser, n) = (context.optimiser.clone(), context.train.mass());
        Ok(Box::new(Rows { loss, optimiser, mass: context.mass, n }))
    }

    /// Loss and penalty, which is 0 if there is none.
    fn program(&self, scope: &Scope) -> Result<Program, Vec<Complaint>> {
        let mut compiler = Compiler::new(scope);
        let mut faults = Vec::new();
        let mut root = |key: &str, text: &str| {
            let found = compile(&mut compiler, text);
            found.map_err(|fault| faults.push(at(key, &fault))).ok()
        };
        let loss = root("loss", &self.loss);
        let penalty = root("penalty", self.penalty.as_deref().unwrap_or("0"));
        match (loss, penalty) {
            (Some(loss), Some(penalty)) => Ok(Program::new(compiler.tape, vec![loss, penalty])),
            _ => Err(faults),
        }
    }

    /// That the loss is one of rows, the penalty of parameters, and no parameter without both.
    fn check(&self, program: &Program, blocks: &[Block], names: &[String]) -> Result<(), Vec<Complaint>> {
        let mut found = Vec::new();
        let (of_rows, of_parameters) = program.depends(0);
        if !of_rows || !of_parameters {
            let missing = if of_rows { "no parameter" } else { "no column of the data" };
            found.push(complaint(
                "loss",
                format!("must be a loss of rows and parameters, and {missing} occurs in it"),
            ));
        }
        if program.depends(1).0 {
            found.push(complaint(
                "penalty",
                "counts once, and not for every row: columns of the data cannot occur in it",
            ));
        }
        for block in blocks {
            if let Some(j) = block.range.clone().find(|&j| !program.uses(j)) {
                let what = if block.range.len() == 1 { "it".to_owned() } else { format!("`{}`", names[j]) };
                let why = format!("has no use: {what} occurs neither in the loss nor in the penalty");
                found.push(complaint(format!("parameters.{}", block.name), why));
            }
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }
}

fn compile(compiler: &mut Compiler, text: &str) -> Result<Id, Fault> {
    compiler.scalar(&parse(text)?)
}

fn at(key: &str, fault: &Fault) -> Complaint {
    complaint(within(key, &fault.span), fault.message.clone())
}

/// What is derived of a draw has a name here, too.
fn prediction(
    scope: &Scope,
    parameters: &[String],
    context: &Context,
    text: &str,
) -> Result<Program, Complaint> {
    let mut scope = scope.clone();
    let definitions = context.derived.map(|texts| Definitions::new(texts, parameters));
    if let Some(definitions) = definitions.as_ref().filter(|definitions| !definitions.is_empty()) {
        definitions.mark_twins(&mut scope);
        scope.known = "a column of the data, a parameter, a derived quantity or a constant";
    }
    let mut compiler = match &definitions {
        Some(definitions) => definitions.compiler(&scope),
        None => Compiler::new(&scope),
    };
    let root = compile(&mut compiler, text).map_err(|fault| at("predict", &fault))?;
    Ok(Program::new(compiler.tape, vec![root]))
}

pub struct Custom {
    names: Vec<String>,
    /// Of the data.
    columns: usize,
    blocks: Vec<Block>,
    /// The loss, and the penalty.
    program: Program,
    predict: Option<Program>,
    /// What changes its sign where the loss bends.
    kinks: Vec<Program>,
    gamma: f64,
    likelihood: bool,
    /// Whether the response is used, and whether censoring is.
    response: bool,
    events: bool,
    coefficients: Option<std::ops::Range<usize>>,
    metric: Metric,
    /// Second derivatives, where there are and where they are worth having.
    curvature: Option<Curvature>,
}

fn prepare<'a>(program: &Program, data: &'a Dataset) -> Prepared<'a> {
    let panel = program.has_margins().then(|| data.x.panel());
    Prepared::new(program, &DataColumns(data), panel)
}

/// The measures of a block, made ready.
struct OnMeasures<'a> {
    loss: &'a Custom,
    /// Rows that several searches share, and that belong to one.
    rows: Vec<(&'a Dataset, Prepared<'a>)>,
    /// For each search, which of them, and with what weights.
    searches: Vec<Vec<(usize, Vec<Line>)>>,
}

impl<'a> OnMeasures<'a> {
    fn new(loss: &'a Custom, block: &[&'a Measure<'a>]) -> Self {
        let mut on = OnMeasures { loss, rows: Vec::new(), searches: Vec::new() };
        for f in block {
            let observed = (f.observed(), f.weights().0);
            let parts =
                [Some(observed), f.pseudo_part()].into_iter().flatten().filter(|(data, _)| data.n() > 0);
            let parts = parts.map(|(data, w)| (on.place(data), in_lines(w))).collect();
            on.searches.push(parts);
        }
        on
    }

    fn place(&mut self, data: &'a Dataset) -> usize {
        let known = self.rows.iter().position(|(known, _)| std::ptr::eq(*known, data));
        known.unwrap_or_else(|| {
            self.rows.push((data, prepare(&self.loss.program, data)));
            self.rows.len() - 1
        })
    }

    fn points<'b>(&'b self, searches: &[usize], theta: &'b [Vec<f64>]) -> Vec<Point<'b>> {
        let on = |&s: &usize| {
            let weighted =
                |(place, weights): &'b (usize, Vec<Line>)| Weighted { rows: &self.rows[*place].1, weights };
            self.searches[s].iter().map(weighted).collect()
        };
        searches.iter().zip(theta).map(|(s, theta)| Point { theta, on: on(s) }).collect()
    }
}

impl OnBlock for OnMeasures<'_> {
    fn add(&self, searches: &[usize], theta: &[Vec<f64>], gradients: &mut [Vec<f64>]) -> Vec<f64> {
        let mut by_theta: Vec<Vec<f64>> = theta.iter().map(|theta| vec![0.0; theta.len()]).collect();
        let values = self.loss.program.add(&self.points(searches, theta), self.loss.gamma, &mut by_theta);
        for ((gradient, by_theta), theta) in gradients.iter_mut().zip(&mut by_theta).zip(theta) {
            self.loss.by_logarithms(theta, by_theta);
            gradient.iter_mut().zip(by_theta).for_each(|(g, by)| *g += *by);
        }
        values
    }

    fn rows(&self, search: usize) -> Vec<&Dataset> {
        self.searches[search].iter().map(|(place, _)| self.rows[*place].0).collect()
    }
}

impl Custom {
    /// The loss at a point, and γ of the penalty; derivatives are added, by log θ where θ is positive or on a simplex.
    fn at(&self, point: Point, gamma: f64, gradient: &mut [f64]) -> f64 {
        let (theta, mut by_theta) = (point.theta, [vec![0.0; gradient.len()]]);
        let value = self.program.add(&[point], gamma, &mut by_theta)[0];
        self.by_logarithms(theta, &mut by_theta[0]);
        gradient.iter_mut().zip(&by_theta[0]).for_each(|(g, by)| *g += by);
        value
    }

    /// Derivatives by log θ where θ is positive or on a simplex.
    fn by_logarithms(&self, theta: &[f64], gradient: &mut [f64]) {
        let logarithmic =
            |b: &&Block| matches!(b.support, Support::Positive | Support::Scale | Support::Simplex);
        self.blocks
            .iter()
            .filter(logarithmic)
            .flat_map(|b| b.range.clone())
            .for_each(|j| gradient[j] *= theta[j]);
    }
}

impl RowLoss for Custom {
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn blocks(&self) -> Vec<Block> {
        self.blocks.clone()
    }

    fn on<'a>(&'a self, block: &[&'a Measure<'a>]) -> Box<dyn OnBlock + 'a> {
        Box::new(OnMeasures::new(self, block))
    }

    fn sum(&self, f: &Measure, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let (on, theta) = (OnMeasures::new(self, &[f]), [theta.to_vec()]);
        self.at(on.points(&[0], &theta).remove(0), 0.0, gradient)
    }

    fn ready<'a>(&'a self, data: &'a Dataset, w: &[f64]) -> Option<Box<Ready<'a>>> {
        let (rows, weights) = (prepare(&self.program, data), in_lines(w));
        Some(Box::new(move |theta, gradient| {
            let on = vec![Weighted { rows: &rows, weights: &weights }];
            self.at(Point { theta, on }, 0.0, gradient)
        }))
    }

    /// Margins have a layout; weights are kept as they are and as the tape wants them, and so are the columns that it reads, once for the
    /// loss and once for its second derivatives.
    fn takes(&self, rows: &Dataset, draws: usize) -> [f64; 2] {
        let n = rows.n() as f64;
        let layouts = if self.program.has_margins() { n * rows.d() as f64 } else { 0.0 };
        [layouts, n * (2 * (draws + self.program.columns_read()) + 4) as f64]
    }

    fn penalise(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        self.at(Point { theta, on: Vec::new() }, self.gamma, gradient)
    }

    fn losses(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        self.program.each_row(0, theta, &prepare(&self.program, at), out);
    }

    fn predicted(&self) -> Option<String> {
        self.predict.as_ref().map(|_| "prediction".to_owned())
    }

    fn predict(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        if let Some(program) = &self.predict {
            program.each_row(0, theta, &prepare(program, at), out);
        }
    }

    /// Test responses are held against what is predicted, unless that takes the response to know it.
    fn has_mean(&self) -> bool {
        let d = self.columns;
        let knows = |p: &Program| p.reads(d + TARGET) || p.reads(d + EVENT);
        self.response && self.predict.as_ref().is_some_and(|p| !knows(p))
    }

    fn means(&self, theta: &[f64], at: &Dataset, out: &mut [f64]) {
        self.predict(theta, at, out);
    }

    /// A Hessian says nothing of kinks.
    fn metric(&self) -> Option<&Metric> {
        self.kinks.is_empty().then_some(&self.metric)
    }

    fn by_curvature(
        &self,
        model: &Rows<Custom>,
        transform: &Transform,
        searches: &[Search],
    ) -> Option<Vec<Minimum>> {
        let curvature = self.curvature.as_ref().filter(|_| self.kinks.is_empty())?;
        curved::minimise(self, curvature, model, transform, searches)
    }

    fn gradient_tolerance(&self) -> f64 {
        GRADIENT
    }

    fn patience(&self) -> usize {
        if self.kinks.is_empty() { usize::MAX } else { PATIENCE * (self.names.len() + 1) }
    }

    fn finish(&self, on: &dyn OnBlock, search: usize, transform: &Transform, minimum: Minimum) -> Minimum {
        if self.kinks.is_empty() { minimum } else { kinks::finish(self, on, search, transform, minimum) }
    }

    fn response(&self) -> Option<Response> {
        self.response.then_some(Response::Real)
    }

    fn coefficients(&self) -> Option<std::ops::Range<usize>> {
        self.coefficients.clone()
    }

    fn is_likelihood(&self) -> bool {
        self.likelihood
    }

    fn knows_events(&self) -> bool {
        self.events
    }
}

/// Iterations for each parameter, and one more, before a loss with kinks is looked at as such.
const PATIENCE: usize = 30;

/// Largest gradient entry of a converged search, per unit of the tolerance: nothing is known of the scale of a loss.
const GRADIENT: f64 = 1e-7;
