//! Which setting of a path predicts best, and which is the simplest that predicts as well, by the rule of one standard error (Breiman,
//! Friedman, Olshen and Stone 1984, section 3.4.3).

use super::{OverRepeats, Report};

/// Metrics by which settings are chosen, the first that there is if none is named, and whether more is better.
pub const METRICS: [(&str, &str, bool); 5] = [
    ("lppd", "LPPD", true),
    ("mse", "MSE", false),
    ("accuracy", "accuracy %", true),
    ("auc", "AUC", true),
    ("log_loss", "log loss", false),
];

/// Which values of the key that is varied are the simpler ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Simpler {
    Larger,
    Smaller,
}

impl Simpler {
    pub fn name(self) -> &'static str {
        match self {
            Simpler::Larger => "larger",
            Simpler::Smaller => "smaller",
        }
    }

    /// What is known of some keys: more penalty, or more weight of a prior, is simpler; fewer components, or a narrower prior of
    /// coefficients, are.
    fn of_key(key: &str) -> Option<Simpler> {
        match key.rsplit('.').next()? {
            "gamma" | "alpha" => Some(Simpler::Larger),
            "K" => Some(Simpler::Smaller),
            "b" if key.ends_with("student_t.b") => Some(Simpler::Smaller),
            _ => None,
        }
    }
}

/// A metric along a path, and two settings, counted from 0.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// What the metric is called.
    pub title: &'static str,
    /// Of every setting.
    pub values: Vec<OverRepeats>,
    pub best: usize,
    /// The simplest whose metric is within one standard error of the best; `None` where no error is known, or not what is simpler.
    pub simplest: Option<usize>,
    pub simpler: Option<Simpler>,
}

impl Report {
    /// By a metric, or the first that there is; with the simpler values of the key, unless they are known.
    pub fn tuned(&self, metric: Option<&str>, simpler: Option<Simpler>) -> Option<Tuned> {
        let path = self.path.as_ref()?;
        let wanted = METRICS.iter().filter(|(name, ..)| metric.is_none_or(|metric| metric == *name));
        let found = wanted.filter_map(|known| Some((known, self.along_path(known.0)?)));
        let (&(_, title, more), values) = found.into_iter().next()?;
        let score = |t: usize| if more { values[t].mean } else { -values[t].mean };
        let best = (0..values.len()).fold(0, |best, t| if score(t) > score(best) { t } else { best });
        let simpler = simpler.or_else(|| Simpler::of_key(&path.parameter));
        let numbers: Option<Vec<f64>> = path.values.iter().map(|v| v.parse().ok()).collect();
        let simplest = simpler.zip(numbers).zip(values[best].se).map(|((simpler, numbers), se)| {
            let ease = |t: usize| if simpler == Simpler::Larger { numbers[t] } else { -numbers[t] };
            let near = (0..values.len()).filter(|&t| score(t) >= score(best) - se);
            near.fold(best, |simplest, t| if ease(t) > ease(simplest) { t } else { simplest })
        });
        Some(Tuned { title, values, best, simplest, simpler })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Estimate;
    use crate::report::{PathReport, Repeat};

    fn report(key: &str, lppd: &[[f64; 2]]) -> Report {
        let repeat = |value: f64| {
            let text = r#"{"repeat":1,"seed":1,"n_train":9,"n_test":5,"draws":2,"seconds":1.0,
                           "diagnostics":{"status":{},"mean_iterations":0.0,"max_iterations":0}}"#;
            let repeat: Repeat = serde_json::from_str(text).unwrap();
            Repeat { lppd: Some(Estimate { value, mcse: 0.0 }), ..repeat }
        };
        // All settings of the first fold, then those of the second.
        let folds = [0, 1].map(|k| lppd.iter().map(move |of| repeat(of[k])));
        let repeats: Vec<Repeat> = folds.into_iter().flatten().collect();
        let values = (1..=lppd.len()).map(|v| v.to_string()).collect();
        let path = PathReport { parameter: key.into(), values };
        Report::new("x", "npl", "NPL".into(), repeats).of_folds(Some(2)).of_path(path)
    }

    #[test]
    fn the_simplest_within_one_standard_error_is_picked() {
        // Means -3, -1, -1.5, -2.5; the best has standard error 0.6: folds at -0.4 and -1.6.
        let lppd = [[-3.0, -3.0], [-0.4, -1.6], [-1.5, -1.5], [-2.5, -2.5]];
        let tuned = report("model.logistic.gamma", &lppd).tuned(None, None).unwrap();
        assert!((tuned.values[1].se.unwrap() - 0.6).abs() < 1e-12);
        assert_eq!((tuned.title, tuned.best, tuned.simplest), ("LPPD", 1, Some(2)));
        assert_eq!(report("model.gmm.K", &lppd).tuned(None, None).unwrap().simplest, Some(1));
        let unknown = report("optimiser.tolerance", &lppd);
        assert_eq!(unknown.tuned(None, None).unwrap().simplest, None);
        assert_eq!(unknown.tuned(Some("lppd"), Some(Simpler::Larger)).unwrap().simplest, Some(2));
        assert!(unknown.tuned(Some("mse"), None).is_none());
    }
}
