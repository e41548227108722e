//! Hessians Xᵀ V X + D of a block of draws by their products with vectors, in singles: every product is two matrix products that
//! all draws share.

use ndarray::Array2;

use super::Family;
use super::metric::Inverse;
use super::objective::{COLUMNS, InLanes, pieces, tile};
use crate::kernel::lanes::{add_products, multiply};
use crate::kernel::products::{add_gradients, add_margins};
use crate::kernel::regression::curvatures_at;
use crate::kernel::{LANES, Line, Panel, SINGLES};
use crate::optim::batch::{BatchObjective, Trial};
use crate::optim::truncated::{Narrow, Products};

/// Draws in lanes, with the curvatures of some of them.
pub struct Curvatures<'l, 'o, 'a, F: Family> {
    lanes: &'l mut InLanes<'o, 'a, F, f64, LANES>,
    x: &'l Panel<f32, SINGLES>,
    inverse: &'l Inverse,
    lines: Vec<Held>,
}

/// V and D of sixteen draws.
struct Held {
    v: Vec<Narrow>,
    d: Vec<Narrow>,
}

impl<'l, 'o, 'a, F: Family> Curvatures<'l, 'o, 'a, F> {
    pub fn new(lanes: &'l mut InLanes<'o, 'a, F, f64, LANES>, inverse: &'l Inverse) -> Self
    where
        'o: 'l,
    {
        let x = lanes.of.singles();
        lanes.keep_margins();
        Curvatures { lanes, x, inverse, lines: Vec::new() }
    }
}

impl<F: Family> BatchObjective for Curvatures<'_, '_, '_, F> {
    fn p(&self) -> usize {
        self.lanes.p()
    }

    fn evaluate(&mut self, trials: &mut [Trial]) {
        self.lanes.evaluate(trials);
    }

    fn seats(&self) -> usize {
        self.lanes.seats()
    }

    fn precondition(&mut self, searches: &[usize], far: &[bool], v: &mut Array2<f64>) -> bool {
        self.lanes.precondition(searches, far, v)
    }
}

impl<F: Family> Products for Curvatures<'_, '_, '_, F> {
    fn hold(&mut self, line: usize, lane: usize, search: usize, theta: &[f64]) {
        while self.lines.len() <= line {
            let zeros = |len: usize| vec![Line::default(); len];
            self.lines.push(Held { v: zeros(self.x.rows()), d: zeros(self.x.d()) });
        }
        let (held, model) = (&mut self.lines[line], self.lanes.of.model());
        let margins = self.lanes.margins(search);
        let mass = self.lanes.of.mass(search);
        let v = curvatures_at::<F>(model.level, margins, &mass, false);
        held.v.iter_mut().zip(v).for_each(|(line, v)| line[lane] = v as f32);
        let beta = &theta[..model.d()];
        held.d.iter_mut().zip(beta).for_each(|(line, beta)| line[lane] = model.majorant(*beta) as f32);
    }

    fn multiply(&mut self, lines: &[usize], v: &[&[Narrow]], out: &mut [&mut [Narrow]]) {
        let (level, x) = (self.lanes.of.model().level, self.x);
        out.iter_mut().for_each(|out| out.fill(Line::default()));
        let mut margins: Vec<Vec<Narrow>> = vec![Vec::new(); lines.len()];
        for groups in pieces(x.groups(), tile(x.d()) / LANES) {
            let rows = groups.start * SINGLES..groups.end * SINGLES;
            for margins in &mut margins {
                margins.clear();
                margins.resize(rows.len(), Line::default());
            }
            for columns in pieces(x.d(), COLUMNS) {
                let v: Vec<&[_]> = v.iter().map(|v| &v[columns.clone()]).collect();
                let mut margins: Vec<&mut [_]> = margins.iter_mut().map(|m| &mut m[..]).collect();
                add_margins(level, x, groups.clone(), columns, &v, &mut margins);
            }
            for (margins, &line) in margins.iter_mut().zip(lines) {
                multiply(level, &self.lines[line].v[rows.clone()], margins);
            }
            for columns in pieces(x.d(), COLUMNS) {
                let slopes: Vec<&[_]> = margins.iter().map(|m| &m[..]).collect();
                let mut out: Vec<&mut [_]> = out.iter_mut().map(|out| &mut out[columns.clone()]).collect();
                add_gradients(level, x, groups.clone(), columns, &slopes, &mut out);
            }
        }
        for ((out, v), &line) in out.iter_mut().zip(v).zip(lines) {
            add_products(level, &self.lines[line].d, v, out);
        }
    }

    fn solve(&self, v: &[&[Narrow]], out: &mut [&mut [Narrow]]) {
        self.inverse.apply_in_singles(self.lanes.of.model().level, v, out);
    }
}
