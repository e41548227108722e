//! What the draws of a run are to each other: it decides what their errors are and what may be said of them.

use serde::{Deserialize, Serialize};

use super::{DIVERGENT, LOG_WEIGHT};

/// Kept with the run, in `report.json` and `manifest.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    pub draws: Kinship,
    /// The components of a mixture may stand in another order in each draw.
    pub exchangeable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kinship {
    /// Each was made for itself.
    Independent,
    /// Neighbours in a chain, numbered by `restart__`, are alike: so many chains, of so many draws each.
    Chains { chains: usize, each: usize },
    /// Independent, and each counts by its weight, the exponential of `log_weight__`.
    Weighted,
}

impl Relation {
    pub const INDEPENDENT: Relation = Relation { draws: Kinship::Independent, exchangeable: false };

    /// Of a run that does not say it: by the columns of its draws and its label.
    pub fn guessed(columns: &[String], label: &str) -> Relation {
        let has = |name: &str| columns.iter().any(|c| c == name);
        let draws = match (has(LOG_WEIGHT), has(DIVERGENT)) {
            (true, _) => Kinship::Weighted,
            // How many does not matter to any reader of such a run.
            (false, true) => Kinship::Chains { chains: 0, each: 0 },
            (false, false) => Kinship::Independent,
        };
        Relation { draws, exchangeable: label.starts_with("RR-") && has("pi.2") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_runs_are_known_by_their_columns() {
        let columns = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        let of = |names: &[&str], label: &str| Relation::guessed(&columns(names), label);
        assert_eq!(of(&["draw__", "theta"], "NPL"), Relation::INDEPENDENT);
        assert_eq!(of(&["log_weight__", "theta"], "IS").draws, Kinship::Weighted);
        assert!(matches!(of(&["divergent__", "pi.1", "pi.2"], "NUTS").draws, Kinship::Chains { .. }));
        assert!(of(&["pi.1", "pi.2"], "RR-NPL R=10").exchangeable);
        assert!(!of(&["pi.1", "pi.2"], "FI-NPL").exchangeable && !of(&["theta"], "RR-NPL R=1").exchangeable);
    }

    #[test]
    fn a_relation_is_written_in_words() {
        let chains = Relation { draws: Kinship::Chains { chains: 4, each: 500 }, exchangeable: false };
        let text = r#"{"draws":{"chains":{"chains":4,"each":500}},"exchangeable":false}"#;
        assert_eq!(serde_json::to_string(&chains).unwrap(), text);
        assert_eq!(serde_json::from_str::<Relation>(text).unwrap(), chains);
        assert!(serde_json::to_string(&Relation::INDEPENDENT).unwrap().contains(r#""independent""#));
    }
}
