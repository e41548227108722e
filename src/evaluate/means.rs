//! Posterior means of the entries of some vector of a draw, from sums that are dealt out over groups.

use super::{Dealing, Estimate, GROUPS, jackknife};

#[derive(Clone, Debug)]
pub struct Means {
    pub(super) dealing: Dealing,
    /// Σ w v of every group, empty for one without draws, with its Σ w.
    pub(super) sums: Vec<(Vec<f64>, f64)>,
    /// Weights are relative to this one, the largest so far.
    pub(super) log_scale: f64,
}

impl Means {
    pub fn new(dealing: Dealing) -> Self {
        Means { dealing, sums: vec![(Vec::new(), 0.0); GROUPS], log_scale: f64::NEG_INFINITY }
    }

    /// Adds a draw; one without weights has log weight 0.
    pub fn add(&mut self, draw: u64, log_weight: f64, v: &[f64]) {
        self.rescale(log_weight);
        let w = libm::exp(log_weight - self.log_scale);
        let (sums, weight) = &mut self.sums[self.dealing.group(draw, GROUPS)];
        sums.resize(v.len(), 0.0);
        sums.iter_mut().zip(v).for_each(|(s, v)| *s += w * v);
        *weight += w;
    }

    /// Makes room for weights of this size.
    fn rescale(&mut self, log_scale: f64) {
        if log_scale > self.log_scale {
            let shrink = libm::exp(self.log_scale - log_scale);
            for (sums, weight) in &mut self.sums {
                sums.iter_mut().for_each(|s| *s *= shrink);
                *weight *= shrink;
            }
            self.log_scale = log_scale;
        }
    }

    /// Adds the draws that come next.
    pub fn fold(&mut self, next: &Means) {
        self.rescale(next.log_scale);
        let w = libm::exp(next.log_scale - self.log_scale);
        for ((sums, weight), (more, by)) in self.sums.iter_mut().zip(&next.sums) {
            if !more.is_empty() {
                sums.resize(more.len(), 0.0);
                sums.iter_mut().zip(more).for_each(|(s, v)| *s += w * v);
                *weight += w * by;
            }
        }
    }

    /// The sums of the groups that have a draw, with their weights.
    pub fn filled(&self) -> Vec<&(Vec<f64>, f64)> {
        self.sums.iter().filter(|(_, weight)| *weight > 0.0).collect()
    }

    /// The means, without group `left_out` of those that are filled.
    pub fn without(&self, left_out: Option<usize>) -> Vec<f64> {
        let filled = self.filled();
        let kept = || filled.iter().enumerate().filter(|(g, _)| Some(*g) != left_out).map(|(_, group)| group);
        let weight: f64 = kept().map(|(_, weight)| weight).sum();
        let mut means = vec![0.0; filled[0].0.len()];
        for (sums, _) in kept() {
            means.iter_mut().zip(sums).for_each(|(mean, sum)| *mean += sum / weight);
        }
        means
    }

    /// A smooth function of the means with its jackknife error over the groups; `None` without a draw.
    pub fn estimate(&self, of: impl Fn(&[f64]) -> f64) -> Option<Estimate> {
        let groups = self.filled().len();
        let without: Vec<f64> = (0..groups).map(|g| of(&self.without(Some(g)))).collect();
        (groups > 0).then(|| Estimate { value: of(&self.without(None)), mcse: jackknife(&without) })
    }
}
