//! The experiment in words.

use serde::Serialize;

use super::html::Html;
use super::run_by_run;
use super::view::View;
use crate::experiment::{DataConfig, Experiment, FixedInitConfig, Metric, PriorConfig, SamplerConfig};
use crate::restarts::StopRule;
use crate::words::{counted, few, percent, setting};

/// Settings that are listed of one table.
const LISTED: usize = 12;

pub fn section(views: &[View]) -> Html {
    run_by_run(views, |view| match &view.experiment {
        Some(experiment) => {
            let pair = |(term, words): (&str, String)| {
                Html::tag("dt", Html::text(term)).and(Html::tag("dd", Html::text(&words)))
            };
            Html::tag("dl", words(view, experiment).into_iter().map(pair).collect())
        }
        None => Html::paragraph(&format!(
            "{}. Its config is not one that this version of npl reads; it stands below as it was written.",
            view.report().label
        )),
    })
}

fn words(view: &View, experiment: &Experiment) -> Vec<(&'static str, String)> {
    let bootstrap = experiment.method.inference().is_bootstrap();
    let mut out = vec![("Parameter", parameter(experiment)), ("Data", data(&experiment.data))];
    if bootstrap {
        let made = "each draw gives the rows random weights and minimises the weighted loss";
        out.push(("Posterior", format!("The posterior bootstrap ({}): {made}.", view.report().label)));
        out.push(("Prior", prior(experiment.prior.as_ref(), experiment.method.name() == "mdp-npl")));
        out.push(("Searches", searches(&experiment.sampler)));
    } else {
        let words = format!(
            "Conventional Bayes ({}): the model as a likelihood, with its own prior.",
            view.report().label
        );
        out.push(("Posterior", words));
    }
    out.push(("Draws", draws(view, experiment)));
    if let Some(path) = &experiment.path {
        let values: Vec<String> = path.settings().iter().map(|v| setting(&v.to_string())).collect();
        let ends = values.first().zip(values.last());
        let ends = ends.map(|(a, b)| format!(" from {a} to {b}")).unwrap_or_default();
        let settings = counted(values.len(), "setting");
        out.push((
            "Path",
            format!("{settings} of {}{ends}, with the same weights and starts.", path.parameter),
        ));
    }
    if let Some(folds) = view.report().folds {
        let words = format!("{folds} folds of the rows, each scored by draws given the others.");
        out.push(("Cross-validation", words));
    }
    out.extend(metrics(experiment).map(|words| ("Evaluated by", words)));
    out
}

/// What is estimated.
fn parameter(experiment: &Experiment) -> String {
    let settings = settings(&experiment.model);
    let settings =
        if settings.is_empty() { String::new() } else { format!(" With {}.", few(&settings, LISTED)) };
    format!("{}{settings}", experiment.model.about())
}

fn data(config: &DataConfig) -> String {
    let files = |files: &crate::experiment::Files| few(files.as_slice(), 4);
    let mut out = match (&config.train, &config.simulate) {
        (Some(train), _) => format!("Rows of {}", files(train)),
        (None, Some(simulate)) => {
            format!("Simulated anew in each repeat: {}", few(&self::settings(simulate), LISTED))
        }
        (None, None) => "None".to_owned(),
    };
    if let Some(test) = &config.test {
        out += &format!("; tested on {}", files(test));
    }
    if let Some(target) = &config.target {
        out += &format!("; the response is {target}");
    }
    if let Some(split) = &config.split {
        let kept = if split.stratify() { ", class by class" } else { "" };
        out += &match split.share() {
            Some(share) => {
                format!("; {} of the rows, at random, are put aside for testing{kept}", percent(share))
            }
            None => "; the rows for testing are given".to_owned(),
        };
    }
    if let Some(by) = &config.by {
        let prepared = if config.prepares_overall() { ", all prepared together" } else { "" };
        out += &format!("; each group of {by} by itself{prepared}");
    }
    out + "."
}

fn prior(prior: Option<&PriorConfig>, mixture: bool) -> String {
    match prior.filter(|p| p.alpha.get() > 0.0) {
        None => "None (α = 0): the Bayesian bootstrap.".to_owned(),
        Some(prior) => {
            let alpha = prior.alpha.get();
            let base = match (&prior.base, mixture) {
                (_, true) => "the model itself, over draws of its conventional posterior".to_owned(),
                (Some(base), false) => few(&settings(base), LISTED),
                (None, false) => "none".to_owned(),
            };
            let rows = if alpha == 1.0 { "one row".to_owned() } else { format!("{alpha} rows") };
            format!(
                "A Dirichlet process with α = {alpha}, which weighs as much as {rows}. Base measure: {base}."
            )
        }
    }
}

fn searches(sampler: &SamplerConfig) -> String {
    let restarts = sampler.restarts.map_or(1, |r| r.get());
    match (&sampler.fixed_init, &sampler.stop) {
        (Some(FixedInitConfig::BestOf(count)), _) => {
            format!("Every draw starts from the best of {} fits to the unweighted data.", count.get())
        }
        (Some(FixedInitConfig::Advi), _) => {
            "Every draw starts from the centre of a variational fit.".to_owned()
        }
        (Some(FixedInitConfig::File(file)), _) => format!("Every draw starts from the point in {file}."),
        (Some(FixedInitConfig::Run { path, .. }), _) => format!("Every draw starts from a draw of {path}."),
        (None, None) if restarts == 1 => "One random start for each draw.".to_owned(),
        (None, None) => format!("{restarts} random starts for each draw; the lowest minimum wins."),
        (None, Some(rule)) => format!("Up to {restarts} random starts for each draw, until {}.", until(rule)),
    }
}

fn until(rule: &StopRule) -> String {
    match rule {
        StopRule::NoImprovement(count) => format!("{} in a row bring nothing better", count.get()),
        StopRule::GoodTuring(share) => {
            format!("the unseen basins are {} by Good and Turing", percent(share.get()))
        }
        StopRule::BoenderRinnooyKan(share) => {
            format!("the unseen basins are {} by Boender and Rinnooy Kan", percent(share.get()))
        }
    }
}

fn draws(view: &View, experiment: &Experiment) -> String {
    let each = view.report().repeats.first().map_or(0, |r| r.draws);
    let rounds = view.source.rounds();
    let seed = experiment.seed.unwrap_or(view.manifest.seed);
    let many = match (view.source.path().is_some(), rounds) {
        (true, _) => format!(" at each of {}", counted(rounds, "setting")),
        (false, 1) => String::new(),
        (false, _) => format!(" in each of {rounds} repeats"),
    };
    let groups = if view.source.is_group() { " for each group" } else { "" };
    format!("{}{many}{groups}; seed {seed}.", counted(each, "draw"))
}

fn metrics(experiment: &Experiment) -> Option<String> {
    let name = |metric: &Metric| match metric {
        Metric::Lppd => "LPPD (mean log predictive density of the test rows)",
        Metric::Mse => "MSE of the predictive mean",
        Metric::Accuracy => "accuracy",
        Metric::Sparsity => "sparsity",
        Metric::Auc => "AUC",
        Metric::LogLoss => "log loss",
    };
    let wanted = experiment.evaluate.metrics.as_ref()?;
    let names: Vec<&str> = wanted.iter().map(name).collect();
    (!names.is_empty()).then(|| {
        let near = experiment.evaluate.epsilon.filter(|_| wanted.contains(&Metric::Sparsity));
        let near = near.map(|e| format!(" (a coefficient below {} is zero)", e.get())).unwrap_or_default();
        format!("{}{near}.", names.join(", "))
    })
}

/// `K = 3`, `prior.tau2 = 1.0`: the settings of a table, the name of its kind first where it has one.
fn settings(table: &impl Serialize) -> Vec<String> {
    let mut out = Vec::new();
    if let Ok(value) = toml::Value::try_from(table) {
        match value.as_table().filter(|t| t.len() == 1).and_then(|t| t.iter().next()) {
            Some((_, inside @ toml::Value::Table(_))) => flatten("", inside, &mut out),
            _ => flatten("", &value, &mut out),
        }
    }
    out
}

fn flatten(prefix: &str, value: &toml::Value, out: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&key, value, out);
            }
        }
        toml::Value::String(text) => out.push(join(prefix, text)),
        value => out.push(join(prefix, &value.to_string())),
    }
}

fn join(key: &str, value: &str) -> String {
    if key.is_empty() { value.to_owned() } else { format!("{key} = {value}") }
}
