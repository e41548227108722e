//! What the draws of a run are to each other: it decides what their errors are and what may be said of them.

use serde::{Deserialize, Serialize};

use super::{DIVERGENT, LOG_WEIGHT, NameStyle};
use crate::model::Components;

/// Kept with the run, in `report.json` and `manifest.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    pub draws: Kinship,
    /// The components of a mixture may stand in another order in each draw.
    pub exchangeable: bool,
    /// Of a mixture: what its components are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<Components>,
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
    pub const INDEPENDENT: Relation =
        Relation { draws: Kinship::Independent, exchangeable: false, components: None };

    /// Of a run that does not say it: by the columns of its draws and its label.
    pub fn guessed(columns: &[String], label: &str) -> Relation {
        let has = |name: &str| columns.iter().any(|c| c == name);
        let draws = match (has(LOG_WEIGHT), has(DIVERGENT)) {
            (true, _) => Kinship::Weighted,
            // How many does not matter to any reader of such a run.
            (false, true) => Kinship::Chains { chains: 0, each: 0 },
            (false, false) => Kinship::Independent,
        };
        let exchangeable = label.starts_with("RR-") && has("pi.2");
        Relation { draws, exchangeable, components: None }.with_components(columns)
    }

    /// With the components of a mixture, known by these columns if the run does not say what they are.
    pub fn with_components(self, columns: &[String]) -> Relation {
        let names: Vec<String> = columns.iter().map(|name| NameStyle::dotted(name)).collect();
        let last = |block: &str| {
            let index = |name: &String| name.strip_prefix(block)?.parse::<usize>().ok();
            names.iter().filter_map(index).max().unwrap_or(0)
        };
        let (count, columns) = (last("pi."), last("mu.1."));
        let found = (count > 0 && columns > 0).then_some(Components::DiagonalGaussian { count, columns });
        Relation { components: self.components.or(found), ..self }
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
        let mixture = Some(Components::DiagonalGaussian { count: 2, columns: 1 });
        assert_eq!(of(&["pi.1", "pi.2", "mu.1.1", "mu.2.1"], "NPL").components, mixture);
        assert_eq!(of(&["pi[1]", "pi[2]", "mu[1,1]"], "NPL").components, mixture);
        assert_eq!(of(&["pi.1", "pi.2"], "NPL").components, None);
        assert!(!of(&["pi.1", "pi.2"], "FI-NPL").exchangeable && !of(&["theta"], "RR-NPL R=1").exchangeable);
    }

    #[test]
    fn a_relation_is_written_in_words() {
        let chains = Relation {
            draws: Kinship::Chains { chains: 4, each: 500 },
            exchangeable: false,
            components: None,
        };
        let text = r#"{"draws":{"chains":{"chains":4,"each":500}},"exchangeable":false}"#;
        assert_eq!(serde_json::to_string(&chains).unwrap(), text);
        assert_eq!(serde_json::from_str::<Relation>(text).unwrap(), chains);
        assert!(serde_json::to_string(&Relation::INDEPENDENT).unwrap().contains(r#""independent""#));
    }
}
