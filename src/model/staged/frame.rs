//! What a stage sees of rows: their columns, their response, and what the stages before it predict for them.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2};

use crate::data::{Dataset, ResponseNames};
use crate::expression::{Columns, Compiler, Fault, Leaf, Meaning, Prepared, Program, Scope, parse};

/// Where a number of a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A column of the data.
    Column(usize),
    /// The response of the data.
    Response,
    /// A prediction of an earlier stage.
    Prediction(usize),
}

/// Rows with predictions, one vector for each number that is predicted.
pub struct Frame<'a> {
    pub rows: &'a Dataset,
    pub predictions: &'a [Vec<f64>],
}

impl Frame<'_> {
    pub fn get(&self, i: usize, cell: Cell) -> f64 {
        match cell {
            Cell::Column(j) => self.rows.x[[i, j]],
            Cell::Response => self.rows.y.as_ref().map_or(f64::NAN, |y| y[i]),
            Cell::Prediction(k) => self.predictions[k][i],
        }
    }

    /// The rows as data of a stage.
    pub fn data(&self, inputs: &Inputs) -> Dataset {
        let (n, d) = (self.rows.n(), inputs.columns.len());
        let x = Array2::from_shape_fn((n, d), |(i, c)| self.get(i, inputs.columns[c].1));
        let response = |cell: Cell| match (cell, &self.rows.y) {
            (Cell::Response, None) => None,
            _ => Some((0..n).map(|i| self.get(i, cell)).collect::<Array1<f64>>()),
        };
        let target = inputs.target.as_ref();
        let y = target.and_then(|(_, cell)| response(*cell));
        let classes = match target {
            Some((_, Cell::Response)) => self.rows.classes.clone(),
            _ => Vec::new(),
        };
        let names = inputs.columns.iter().map(|(name, _)| name.clone()).collect();
        Dataset::new(x, y, names)
            .with_classes(classes)
            .with_response_names(ResponseNames { target: target.map(|(name, _)| name.clone()), event: None })
    }

    /// A number for every row.
    pub fn evaluate(&self, program: &Program) -> Vec<f64> {
        let mut out = vec![0.0; self.rows.n()];
        program.each_row(0, &[], &Prepared::new(program, self, None), &mut out);
        out
    }
}

/// Columns, then the response, then predictions.
impl Columns for Frame<'_> {
    fn n(&self) -> usize {
        self.rows.n()
    }

    fn cell(&self, i: usize, j: usize) -> f64 {
        let d = self.rows.d();
        self.get(
            i,
            match j {
                j if j < d => Cell::Column(j),
                j if j == d => Cell::Response,
                j => Cell::Prediction(j - d - 1),
            },
        )
    }
}

/// The columns of a stage and its response, by name.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub columns: Vec<(String, Cell)>,
    pub target: Option<(String, Cell)>,
}

impl Inputs {
    /// Whether some column is another for each draw.
    pub fn vary(&self) -> bool {
        self.columns.iter().any(|(_, cell)| matches!(cell, Cell::Prediction(_)))
    }
}

/// What names stand for.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub columns: Vec<String>,
    pub response: Option<String>,
    /// The names of each prediction: `propensity.prediction` and `propensity.probability` are the same number.
    pub predictions: Vec<Vec<String>>,
}

impl Names {
    pub fn of(data: &Dataset) -> Names {
        let response = data.y.as_ref().and(data.response.target.clone());
        Names { columns: data.columns.clone(), response, predictions: Vec::new() }
    }

    pub fn find(&self, name: &str) -> Option<Cell> {
        let column = || self.columns.iter().position(|column| column == name).map(Cell::Column);
        let response = || (self.response.as_deref() == Some(name)).then_some(Cell::Response);
        let predicted = || self.predictions.iter().position(|names| names.iter().any(|n| n == name));
        column().or_else(response).or_else(|| predicted().map(Cell::Prediction))
    }

    /// The names that a pattern such as `region_*` stands for.
    pub fn matching(&self, pattern: &str) -> Vec<String> {
        match pattern.strip_suffix('*') {
            Some(head) => self.columns.iter().filter(|column| column.starts_with(head)).cloned().collect(),
            None => vec![pattern.to_owned()],
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        let predictions = self.predictions.iter().flatten();
        self.columns.iter().chain(&self.response).chain(predictions).map(String::as_str)
    }

    /// An expression of them.
    pub fn program(&self, text: &str) -> Result<Program, Fault> {
        let d = self.columns.len();
        let place = |cell: Cell| match cell {
            Cell::Column(j) => j,
            Cell::Response => d,
            Cell::Prediction(k) => d + 1 + k,
        };
        let meaning = |name: &str| self.find(name).map(|cell| Meaning::Number(Leaf::Column(place(cell))));
        let names: BTreeMap<String, Meaning> =
            self.all().filter_map(|name| Some((name.to_owned(), meaning(name)?))).collect();
        let known = "a column of the data, a prediction of an earlier stage or a constant";
        let scope = Scope { names, covariates: Vec::new(), known, hints: Vec::new() };
        let mut compiler = Compiler::new(&scope);
        let root = compiler.scalar(&parse(text)?)?;
        Ok(Program::new(compiler.tape, vec![root]))
    }
}
