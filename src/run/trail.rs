//! What the settings of a path leave to those that follow them, where searches begin at their neighbour's minima.

use crate::bootstrap::Minima;
use crate::samples::Sample;

/// The minima of the setting before, and those of the one in the making.
#[derive(Default)]
pub struct Trail {
    before: Minima,
    pub made: Taker,
}

/// Takes the draws of a setting.
#[derive(Default)]
pub struct Taker {
    /// Parameters of the model, which come first in a draw; `None` where nothing is left to anyone.
    parameters: Option<usize>,
    minima: Minima,
}

impl Trail {
    pub fn new(parameters: Option<usize>) -> Trail {
        Trail { made: Taker { parameters, ..Taker::default() }, ..Trail::default() }
    }

    /// Settings do not follow each other.
    pub fn is_idle(&self) -> bool {
        self.made.parameters.is_none()
    }

    /// Setting `t`, counted from 0, begins. Before the first there is none.
    pub fn turn(&mut self, t: usize) {
        let made = std::mem::take(&mut self.made.minima);
        self.before = if t == 0 { Minima::default() } else { made };
    }

    pub fn into_before(self) -> Minima {
        self.before
    }

    /// Where searches begin, and who takes what is made of it.
    pub fn halves(&mut self) -> (Option<&Minima>, &mut Taker) {
        (self.made.parameters.map(|_| &self.before), &mut self.made)
    }
}

impl Taker {
    pub fn add(&mut self, draw: &Sample) {
        if let Some(parameters) = self.parameters {
            self.minima.add(draw, parameters);
        }
    }
}
