//! What is asked of a figure.

use super::canvas::Stroke;
use super::names;
use super::palette::{INK, category};
use super::sheet::{Entry, Mark, Surroundings};
use super::source::{Draws, Source};
use super::theme::{Medium, Theme};
use crate::config::printable;
use crate::error::{Error, Result};
use crate::samples::Kinship;
use crate::words::setting;

#[derive(Clone, Debug)]
pub struct Options {
    /// Names or patterns; none for what the kind finds best.
    pub parameters: Vec<String>,
    /// Counted from 1.
    pub repeat: Option<usize>,
    pub setting: Option<usize>,
    pub title: Option<String>,
    /// True values, drawn as references.
    pub truth: Vec<(String, f64)>,
    /// Mean and standard deviation of a normal density to compare with.
    pub normal: Option<(f64, f64)>,
    pub x_limits: Option<(f64, f64)>,
    pub y_limits: Option<(f64, f64)>,
    pub log: bool,
    /// Absolute medians along a path.
    pub absolute: bool,
    /// At most so many parameters, where the figure chooses.
    pub most: Option<usize>,
    /// In points; what the kind finds best if left open.
    pub width: Option<f64>,
    pub height: Option<f64>,
    pub medium: Medium,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            parameters: Vec::new(),
            repeat: None,
            setting: None,
            title: None,
            truth: Vec::new(),
            normal: None,
            x_limits: None,
            y_limits: None,
            log: false,
            absolute: false,
            most: None,
            width: None,
            height: None,
            medium: Medium::Page,
        }
    }
}

impl Options {
    /// The options that are set, each as its kind calls it and as it is typed.
    pub fn given(&self) -> Vec<(&'static str, &'static str)> {
        let set = [
            (self.repeat.is_some(), "round", "--repeat"),
            (self.setting.is_some(), "round", "--setting"),
            (!self.parameters.is_empty(), "parameters", "--parameters"),
            (self.normal.is_some(), "normal", "--normal"),
            (!self.truth.is_empty(), "truth", "--truth"),
            (self.x_limits.is_some(), "xlim", "--xlim"),
            (self.y_limits.is_some(), "ylim", "--ylim"),
            (self.log, "log", "--log"),
            (self.absolute, "absolute", "--absolute"),
            (self.most.is_some(), "top", "--top"),
        ];
        set.into_iter().filter(|(given, ..)| *given).map(|(_, name, flag)| (name, flag)).collect()
    }
}

/// Runs, and what is to be shown of them.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub runs: &'a [Source],
    pub options: &'a Options,
}

impl<'a> Request<'a> {
    pub fn first(&self) -> &'a Source {
        &self.runs[0]
    }

    /// The size of the picture, where `width` and `height` are best for what it shows.
    pub fn theme(&self, width: f64, height: f64) -> Theme {
        let Options { width: w, height: h, medium, .. } = self.options;
        Theme { width: w.unwrap_or(width), height: h.unwrap_or(height), medium: *medium }
    }

    /// Which repeat of a run is meant, or which setting of its path; counted from 1.
    pub fn round(&self, run: &Source) -> Result<usize> {
        let (asked, flag, what) = match run.path() {
            Some(_) => (self.options.setting, "--setting", "settings"),
            None => (self.options.repeat, "--repeat", "repeats"),
        };
        let wrong = match run.path() {
            Some(_) if self.options.repeat.is_some() => {
                Some("--repeat: it is a path, and has settings: --setting")
            }
            None if self.options.setting.is_some() => {
                Some("--setting: it has no path; --repeat chooses a repeat")
            }
            _ => None,
        };
        let shown = printable(&run.folder.display().to_string());
        if let Some(wrong) = wrong {
            return Err(Error::input(format!("{shown}: {wrong}")));
        }
        match asked {
            Some(round) if round == 0 || round > run.rounds() => Err(Error::input(format!(
                "{shown}: {flag} {round}: the run has {what} 1 to {}",
                run.rounds()
            ))),
            _ if run.rounds() == 0 => Err(Error::input(format!("{shown}: the run has no {what}"))),
            asked => Ok(asked.unwrap_or(1)),
        }
    }

    /// The parameters that are asked for; `None` if none are.
    pub fn chosen(&self, among: &[String]) -> Result<Option<Vec<String>>> {
        let patterns = &self.options.parameters;
        if patterns.is_empty() { Ok(None) } else { names::choose(patterns, among).map(Some) }
    }

    /// Draws of a run, at least one of them.
    pub fn draws(&self, run: &Source, names: &[String]) -> Result<Draws> {
        let draws = run.draws(names, self.round(run)?)?;
        let shown = printable(&run.folder.display().to_string());
        if draws.count() == 0 {
            let why =
                if draws.lost > 0 { format!("all {} draws failed", draws.lost) } else { "no draws".into() };
            return Err(Error::input(format!("{shown}: there is nothing to draw: {why}")));
        }
        Ok(draws)
    }

    pub fn truth(&self, name: &str) -> Option<f64> {
        self.options.truth.iter().find(|(n, _)| n == name).map(|(_, v)| *v)
    }

    /// Title, and which run and round it is.
    pub fn surroundings(&self, title: &str) -> Result<Surroundings> {
        let title = self.options.title.clone().unwrap_or_else(|| title.to_owned());
        let subtitle = match self.runs {
            [run] => self.about(run)?,
            runs => {
                let rounds: Vec<Option<String>> =
                    runs.iter().map(|run| self.which(run)).collect::<Result<_>>()?;
                let alike = rounds.iter().all(|round| *round == rounds[0]);
                let named = |(run, round): (&Source, &Option<String>)| {
                    round.as_ref().map(|round| format!("{}: {round}", run.label))
                };
                match alike {
                    true => rounds[0].clone().unwrap_or_default(),
                    false => runs.iter().zip(&rounds).filter_map(named).collect::<Vec<_>>().join(", "),
                }
            }
        };
        Ok(Surroundings { title, subtitle, legend: self.legend(), notes: Vec::new() })
    }

    /// A run in a few words.
    pub fn about(&self, run: &Source) -> Result<String> {
        let parts = [Some(run.label.clone()), Some(printable(&run.report.label)), self.which(run)?];
        Ok(parts.into_iter().flatten().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(" · "))
    }

    /// `repeat 1 of 30`, `setting 3 of 450 (b = 0.96)`; nothing if there is one only.
    pub fn which(&self, run: &Source) -> Result<Option<String>> {
        let round = self.round(run)?;
        let count = run.rounds();
        Ok(match run.path() {
            Some(path) => {
                let value = path.values.get(round - 1).map(|v| printable(&setting(v))).unwrap_or_default();
                let key = printable(path.parameter.rsplit('.').next().unwrap_or_default());
                Some(format!("setting {round} of {count} ({key} = {value})"))
            }
            None if count > 1 => Some(format!("repeat {round} of {count}")),
            None => None,
        })
    }

    /// A line for each run, where there are several.
    pub fn legend(&self) -> Vec<Entry> {
        if self.runs.len() < 2 {
            return Vec::new();
        }
        let entry = |(i, run): (usize, &Source)| Entry::new(Mark::Line(run_stroke(i)), run.label.clone());
        self.runs.iter().enumerate().map(entry).collect()
    }

    /// Where any of these parameters has its true value drawn.
    pub fn truth_entry(&self, names: &[String]) -> Option<Entry> {
        let drawn = names.iter().any(|name| self.truth(name).is_some());
        drawn.then(|| Entry::new(Mark::Line(truth_stroke()), "true value"))
    }

    /// What coefficients among these parameters are effects of, once where all runs say the same.
    pub fn units(&self, names: &[String]) -> Vec<String> {
        if !names.iter().any(|name| is_coefficient(name)) {
            return Vec::new();
        }
        let pers: Vec<Option<&'static str>> = self.runs.iter().map(Source::per).collect();
        match pers[0] {
            per if pers.iter().all(|other| *other == per) => {
                per.map(|per| format!("Coefficients are {per}.")).into_iter().collect()
            }
            _ => {
                let told = |per: &Option<&'static str>| per.unwrap_or("in the units that the file has");
                let line = |(run, per): (&Source, &Option<&'static str>)| {
                    format!("{}: coefficients are {}.", run.label, told(per))
                };
                self.runs.iter().zip(&pers).map(line).collect()
            }
        }
    }

    /// What a reader must know of the draws.
    pub fn notes(&self, run: &Source, draws: &Draws) -> Vec<String> {
        let name = if self.runs.len() > 1 { format!("{}: ", run.label) } else { String::new() };
        let mut notes = Vec::new();
        if draws.lost > 0 {
            let all = draws.lost + draws.count();
            notes.push(format!("{name}{} of {all} draws have no minimum and are left out.", draws.lost));
        }
        let size = super::axes::short(draws.worth.unwrap_or(f64::NAN));
        match run.relation.draws {
            Kinship::Weighted if draws.worth.is_some() => {
                notes.push(format!(
                    "{name}{} weighted draws are worth {size} independent ones.",
                    draws.count()
                ));
            }
            Kinship::Chains { .. } if draws.worth.is_some() => notes.push(format!(
                "{name}{} draws of chains are worth {size} independent ones{}.",
                draws.count(),
                if draws.names.len() > 1 { ", for the worst of these parameters" } else { "" }
            )),
            _ => {}
        }
        let mixture = draws.names.iter().any(|n| ["pi", "mu", "sigma2"].iter().any(|h| n.starts_with(h)));
        if run.relation.exchangeable && mixture {
            notes.push(format!(
                "{name}Components stand in any order from draw to draw, so their posteriors are alike."
            ));
        }
        if let Some(ambiguous) = run.ambiguous.filter(|_| mixture) {
            notes.push(format!(
                "{name}Components are aligned over draws; in {:.1} % of them another order would do as well.",
                100.0 * ambiguous
            ));
        }
        notes
    }
}

/// Whether a parameter is a coefficient of a regression.
pub fn is_coefficient(name: &str) -> bool {
    name.starts_with("beta.") || name.starts_with("beta[")
}

/// The line of the i-th run.
pub fn run_stroke(i: usize) -> Stroke {
    let (colour, dashes) = category(i);
    Stroke::new(colour, 1.8).dashed(dashes)
}

pub fn truth_stroke() -> Stroke {
    Stroke::new(INK, 1.1).dashed(&[4.0, 3.0])
}
