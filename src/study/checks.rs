//! Everything that can be said of an experiment without reading a file or building a model.

use crate::config::{Count, Document, Problem, printable, within};
use crate::data::columns;
use crate::data::files::PARQUET_ENDING;
use crate::data::prepare::{Missing, Standardise, StandardiseBy};
use crate::data::shape::Shape;
use crate::experiment::{Experiment, FileFormat, FixedInitConfig, PathConfig};
use crate::method::Method;
use crate::model::ModelConfig;
use crate::process::base::BaseConfig;
use crate::samples::Format;

/// All that is wrong with an experiment by itself.
pub fn problems(document: &Document, experiment: &Experiment) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut say = |key: &str, message: String| found.push(document.problem(key, message));
    let name = &experiment.name;
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '+' | '='));
    if name.is_empty() || name.len() > 128 || !plain || name.starts_with('.') {
        say(
            "name",
            "`name` becomes a folder: letters, digits, `-`, `_`, `.` only, not starting with `.`".into(),
        );
    }
    let data = &experiment.data;
    match (&data.train, &data.simulate) {
        (None, None) => {
            say("data", "[data] needs `train` (a file) or `simulate` (a truth to draw from)".into())
        }
        (Some(_), Some(_)) => say("data.simulate", "`train` and `simulate` exclude each other".into()),
        _ => {}
    }
    let tests = data.test.is_some() || data.split.is_some() || experiment.evaluate.folds.is_some();
    if data.test_rows.is_some_and(|rows| rows > 0) && data.simulate.is_none() && !tests {
        let why = "`data.test_rows` has no use: there are no test rows; give `data.test`, `data.split` or `evaluate.folds`";
        say("data.test_rows", why.into());
    }
    if data.simulate.is_some() {
        // What is missing in a file of historical rows.
        let base = experiment.prior.as_ref().and_then(|prior| prior.base.as_ref());
        let historical = matches!(base, Some(BaseConfig::Empirical(_)));
        let keys = [
            ("data.test", data.test.is_some()),
            ("data.columns", data.columns.is_some()),
            ("data.header", data.header.is_some()),
            ("data.delimiter", data.delimiter.is_some()),
            ("data.decimal", data.decimal.is_some()),
            ("data.split", data.split.is_some()),
            ("data.format", data.format.is_some()),
            ("data.mapped", data.mapped.is_some()),
            ("data.target", data.target.is_some()),
            ("data.event", data.event.is_some()),
            ("data.offset", data.offset.is_some()),
            ("data.exposure", data.exposure.is_some()),
            ("data.weight", data.weight.is_some()),
            ("data.cluster", data.cluster.is_some()),
            ("data.stratify", data.stratify.is_some()),
            ("data.by", data.by.is_some()),
            ("data.labels", data.labels.is_some()),
            ("data.test_labels", data.test_labels.is_some()),
            ("data.classes", !data.classes.is_empty()),
            ("data.strip", data.strip.is_some()),
            ("data.names", data.names.is_some()),
            ("data.skip_lines", data.skip_lines.is_some()),
            ("data.comment", data.comment.is_some()),
            ("data.missing_values", !data.missing_values.is_empty()),
            ("data.categorical", data.categorical.is_some()),
            ("data.divide", data.divide.is_some()),
            ("data.dummies", data.dummies != Default::default()),
            ("data.unseen", data.unseen != Default::default()),
            ("data.missing", data.missing != Default::default() && !historical),
            ("data.constant", data.constant != Default::default()),
            ("data.standardise", data.standardise != Default::default()),
            ("data.standardise_by", data.standardise_by != Default::default()),
            ("data.formula", data.formula.is_some()),
            ("data.derive", !data.derive.is_empty()),
            ("data.filter", data.filter.is_some()),
            ("data.resample", data.resample.is_some()),
        ];
        for (key, _) in keys.iter().filter(|(_, set)| *set) {
            say(key, format!("`{key}` belongs to data from a file, and these are simulated"));
        }
    }
    for (key, why) in data.simulate.iter().flat_map(|s| s.problems()) {
        say(&format!("data.simulate.{key}"), format!("`data.simulate.{key}` {why}"));
    }
    if data.formula.is_some() {
        let others = [("data.target", data.target.is_some()), ("data.columns", data.columns.is_some())];
        for (key, _) in others.iter().filter(|(_, set)| *set) {
            say(key, format!("`{key}` and `data.formula` exclude each other: a formula says both"));
        }
    }
    if let Err(faults) = Shape::new(&data.derive, data.filter.as_deref(), data.formula.as_deref()) {
        for (key, fault) in faults {
            let key = format!("data.{key}");
            say(&within(&key, &fault.span), format!("`{key}`: {fault}"));
        }
    }
    if data.target.is_some() && data.labels.is_some() {
        say("data.labels", "`target` and `labels` exclude each other: the response is in one place".into());
    }
    if data.response.is_some() && (data.target.is_some() || data.labels.is_some()) {
        say("data.response", "`response` draws a response, and the data have one".into());
    }
    if data.labels.is_some() && data.test.is_some() && data.test_labels.is_none() {
        say("data.test_labels", "`test_labels` is missing: the responses of the test rows".into());
    }
    if data.cluster.is_some() && data.split.as_ref().is_some_and(|s| s.stratify()) {
        let message = "`data.split.stratify` shares out rows by class, and `data.cluster` keeps clusters whole: choose one";
        say("data.split.stratify", message.into());
    }
    let given = data.split.as_ref().and_then(|split| split.given());
    if given.is_some_and(|given| given.column.is_some() == given.file.is_some()) {
        say("data.split", "`data.split` needs one of `column` and `file`".into());
    }
    if data.resample.is_some() {
        let others = [
            ("data.split", data.split.is_some(), "a row drawn twice would be in both parts"),
            (
                "evaluate.folds",
                experiment.evaluate.folds.is_some(),
                "a row drawn twice would be in two folds",
            ),
            ("data.weight", data.weight.is_some(), "a row may stand for several observations"),
            ("data.cluster", data.cluster.is_some(), "rows that are drawn one by one keep no cluster whole"),
            (
                "data.stratify",
                data.stratify.is_some(),
                "rows that are drawn one by one keep no stratum's share",
            ),
        ];
        for (key, _, why) in others.iter().filter(|(_, set, _)| *set) {
            say("data.resample", format!("`data.resample` and `{key}` exclude each other: {why}"));
        }
    }
    if data.comment.as_ref().is_some_and(|c| c.len() != 1) {
        say("data.comment", "`data.comment` must be one ASCII character".into());
    }
    if data.test.is_some() && data.split.is_some() {
        say("data.split", "`test` and `split` exclude each other".into());
    }
    if data.delimiter.as_ref().is_some_and(|d| d.len() != 1 || matches!(d.as_str(), "\"" | "\n" | "\r")) {
        say("data.delimiter", "`data.delimiter` must be one ASCII character".into());
    }
    let files = || data.train.iter().chain(&data.test).flat_map(|files| files.as_slice());
    let all = |ending| files().next().is_some() && files().all(|name: &String| name.ends_with(ending));
    let why = match data.format {
        Some(FileFormat::Columns) => Some("column files: it was said to `npl convert`"),
        Some(FileFormat::Parquet) => Some("Parquet files"),
        _ if all(columns::ENDING) => Some("column files: it was said to `npl convert`"),
        _ if all(PARQUET_ENDING) => Some("Parquet files"),
        _ => None,
    };
    if let Some(why) = why {
        let keys = [
            ("data.header", data.header.is_some()),
            ("data.delimiter", data.delimiter.is_some()),
            ("data.decimal", data.decimal.is_some()),
            ("data.skip_lines", data.skip_lines.is_some()),
            ("data.comment", data.comment.is_some()),
        ];
        for (key, _) in keys.iter().filter(|(_, set)| *set) {
            say(key, format!("`{key}` says how text is read, and these are {why}; leave it out"));
        }
    }
    let tables = matches!(data.format, Some(FileFormat::Columns | FileFormat::Parquet));
    let text = !tables && !matches!(data.format, Some(FileFormat::Arff | FileFormat::Idx));
    match data.decimal.as_deref() {
        Some(",")
            if text
                && data.format != Some(FileFormat::Whitespace)
                && data.delimiter.as_deref().is_none_or(|d| d == ",") =>
        {
            let message = "`data.decimal` is a comma, and so is what separates cells: set `data.delimiter`, to \";\" for one";
            say("data.decimal", message.into());
        }
        Some(",") if !text && !tables => {
            say("data.decimal", "`data.decimal` belongs to delimited text: this format has points".into());
        }
        Some("." | ",") | None => {}
        Some(_) => say("data.decimal", "`data.decimal` must be \".\" or \",\"".into()),
    }
    for (i, name) in data.names.iter().flatten().enumerate() {
        let before = data.names.iter().flatten().take(i).position(|other| other == name);
        if let Some(twin) = before {
            let message = format!("the name \"{}\" is that of column {} too", printable(name), twin + 1);
            say(&format!("data.names[{i}]"), message);
        } else if name.is_empty() {
            say(&format!("data.names[{i}]"), format!("column {} has no name", i + 1));
        }
    }
    let sampler = &experiment.sampler;
    if sampler.fixed_init.is_some() {
        if sampler.restarts.is_some_and(|r| r.get() > 1) {
            say("sampler.R", "`fixed_init` starts each draw once; leave `R` out".into());
        }
        if sampler.stop.is_some() {
            say("sampler.stop", "`stop` is a rule for random restarts, and `fixed_init` makes none".into());
        }
        let fits = matches!(sampler.fixed_init, Some(FixedInitConfig::BestOf(_)));
        if !fits && !sampler.init.is_empty() {
            say("sampler.init", "`init` has no use beside this `fixed_init`".into());
        }
    }
    if sampler.stop.is_some() && sampler.restarts.is_none_or(|r| r.get() < 2) && sampler.fixed_init.is_none()
    {
        say(
            "sampler.stop",
            "`stop` ends restarts early; set `R`, the most there may be, to 2 or more".into(),
        );
    }
    stage_problems(document, experiment, &mut say);
    group_problems(experiment, &mut say);
    experiment.method.inference().problems(experiment, &mut say);
    let samples = &experiment.output.samples;
    match Format::of(samples) {
        Err(why) => say("output.samples", format!("`output.samples` {why}")),
        Ok(_) if crate::store::RESERVED.contains(&samples.to_ascii_lowercase().as_str()) => {
            say("output.samples", "`output.samples` is the name of another result".into())
        }
        Ok(_) => {}
    }
    if experiment.output.influence {
        let alpha = experiment.prior.as_ref().is_some_and(|prior| prior.alpha.get() > 0.0);
        let why = match () {
            _ if !experiment.method.is_bootstrap() => {
                "is of the bootstrap: other draws have no equal weights to move"
            }
            _ if alpha || experiment.method.name() == "mdp-npl" => {
                "is of rows alone, and `prior.alpha` adds others"
            }
            _ if experiment.model.is_staged() => {
                "is of one minimum, and stages have one each, of which the later move with the earlier"
            }
            _ if experiment.path.is_some() => "is of one experiment, and [path] makes several",
            _ => "",
        };
        if !why.is_empty() {
            say("output.influence", format!("`output.influence` {why}"));
        }
    }
    if let Some(folds) = experiment.evaluate.folds {
        let why = match () {
            _ if folds.get() < 2 => "must be 2 at least: what is held out is trained on in the other folds",
            _ if data.simulate.is_some() => {
                "deals out the rows of files, and these are simulated; `n_test` draws test rows"
            }
            _ if data.test.is_some() => "and `data.test` exclude each other: there are test rows already",
            _ if data.split.is_some() => "and `data.split` exclude each other: choose one",
            _ if data.response.is_some() => "needs responses that stay, and `data.response` draws them anew",
            _ => "",
        };
        if !why.is_empty() {
            say("evaluate.folds", format!("`evaluate.folds` {why}"));
        }
    }
    if let Some(path) = &experiment.path {
        path_problems(path, experiment, &mut say);
    }
    for (key, size, most) in sizes(experiment) {
        if size > most {
            say(key, format!("`{key}` is {size}; at most {most} are possible"));
        }
    }
    // The seed of the last repeat must be one that a file can hold, so that the repeat can be run on its own.
    let last = experiment.seed.map(|s| {
        let repeats = experiment.repeats.get() as u64;
        s.saturating_add(repeats.saturating_mul(experiment.folds() as u64) - 1)
    });
    if last.is_some_and(|last| last > i64::MAX as u64) {
        say("seed", "`seed` + `repeats` is too large".into());
    }
    found
}

/// What is wrong with stages by themselves, and what has no use beside them.
fn stage_problems(document: &Document, experiment: &Experiment, say: &mut impl FnMut(&str, String)) {
    let stages = experiment.model.stages();
    match (experiment.model.is_staged(), document.has("model")) {
        (true, false) if stages.is_empty() => {
            return say(
                "",
                "missing key `model`: the table of a model, `[model.logistic]`, or `[[stage]]`".into(),
            );
        }
        (true, true) => {
            say(
                "stage",
                "[model] and [[stage]] exclude each other: each stage has a model of its own".into(),
            );
        }
        (true, false) => {}
        (false, _) => return,
    }
    for (k, stage) in stages.iter().enumerate() {
        let key = format!("stage[{k}].name");
        let plain = stage.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plain || !stage.name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            say(&key, "`name` of a stage begins names of parameters: letters, digits and `_` only".into());
        } else if stages[..k].iter().any(|other| other.name == stage.name) {
            say(&key, format!("two stages are called \"{}\"", stage.name));
        }
    }
    if !matches!(experiment.method, Method::Npl) {
        let message = format!(
            "stages are fitted one after the other, which is no likelihood of all of them, and method \"{}\" needs one",
            experiment.method.name()
        );
        say("method", message);
    }
    let (data, sampler) = (&experiment.data, &experiment.sampler);
    let idle = [
        ("data.event", data.event.is_some(), "it is not known which of them it is of"),
        ("data.offset", data.offset.is_some(), "it is not known which of them it is of"),
        ("data.exposure", data.exposure.is_some(), "it is not known which of them it is of"),
        ("data.divide", data.divide.is_some(), "it would divide the responses of stages"),
        ("sampler.R", sampler.restarts.is_some_and(|r| r.get() > 1), STARTS),
        ("sampler.stop", sampler.stop.is_some(), STARTS),
        ("sampler.init", !sampler.init.is_empty(), STARTS),
        ("sampler.fixed_init", sampler.fixed_init.is_some(), STARTS),
    ];
    for (key, _, why) in idle.iter().filter(|(_, given, _)| *given) {
        say(key, format!("`{key}` has no use with stages: {why}"));
    }
}

/// What is wrong with groups by themselves, and what cannot be had beside them.
fn group_problems(experiment: &Experiment, say: &mut impl FnMut(&str, String)) {
    let (data, output) = (&experiment.data, &experiment.output);
    if data.by.is_none() {
        if data.by_prepare.is_some() {
            say(
                "data.by_prepare",
                "`data.by_prepare` has no use without `data.by`: there are no groups".into(),
            );
        }
        return;
    }
    if experiment.path.is_some() {
        let message = "[path] and `data.by` exclude each other: run the path for one group at a time, which `data.filter` chooses";
        say("path", message.into());
    }
    if output.pointwise && experiment.method == Method::Nuts {
        let message = "`output.pointwise` keeps the log likelihood of one set of rows for method \"nuts\", and `data.by` makes several; \
                       `data.filter` chooses one group";
        say("output.pointwise", message.into());
    }
    if !data.prepares_overall() {
        return;
    }
    // Means and standard deviations are those of training rows, and these are not known before all groups are split.
    let measured = data.standardise != Standardise::None || data.missing == Missing::Mean;
    let drawn = [
        ("data.split", data.split.is_some()),
        ("data.resample", data.resample.is_some()),
        ("evaluate.folds", experiment.evaluate.folds.is_some()),
    ];
    for (key, _) in drawn.iter().filter(|(_, set)| *set && measured) {
        say(
            "data.by_prepare",
            format!(
                "`data.by_prepare = \"overall\"` takes means and standard deviations of the training rows of all groups, which `{key}` \
                 draws group by group; leave one of them out"
            ),
        );
    }
    if measured && data.standardise_by == StandardiseBy::Each {
        let message = "`data.by_prepare = \"overall\"` and `data.standardise_by = \"each\"` exclude each other: the one takes means of all \
                       groups, the other of the test rows of one";
        say("data.by_prepare", message.into());
    }
}

/// Where the searches of stages start.
const STARTS: &str = "the search of each starts at its fit to the unweighted data";

/// What is wrong with a path by itself.
fn path_problems(path: &PathConfig, experiment: &Experiment, say: &mut impl FnMut(&str, String)) {
    match (&path.values, &path.geometric) {
        (None, None) => say("path", "[path] needs `values` (a list) or `geometric` (a sequence)".into()),
        (Some(_), Some(_)) => {
            say("path.geometric", "`values` and `geometric` exclude each other".into());
        }
        (Some(values), None) if values.is_empty() => {
            say("path.values", "`path.values` must not be empty".into())
        }
        _ => {}
    }
    let table = path.parameter.split('.').next().unwrap_or_default();
    // Folds stand where repeats do, in every setting alike.
    let fixed = match within_folds(&path.parameter) {
        true => Some("evaluate.folds"),
        false => Some(table).filter(|table| matches!(*table, "path" | "name" | "repeats" | "output")),
    };
    if let Some(fixed) = fixed {
        say("path.parameter", format!("`{fixed}` cannot be varied along a path"));
    }
    if path.warm {
        warm_problems(path, experiment, say);
    }
    if experiment.repeats.get() > 1 {
        say("repeats", "a path has one repeat; run it again with another seed for another".into());
    }
    let mut seen: Vec<&String> = Vec::new();
    for (i, name) in path.keep.iter().enumerate() {
        if seen.contains(&name) {
            say(&format!("path.keep[{i}]"), format!("`{}` is named twice", printable(name)));
        }
        seen.push(name);
    }
}

fn within_folds(key: &str) -> bool {
    key.strip_prefix("evaluate.folds").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Why searches cannot begin at the minima of the setting before.
fn warm_problems(path: &PathConfig, experiment: &Experiment, say: &mut impl FnMut(&str, String)) {
    let varied = printable(&path.parameter);
    let why = match path.parameter.split('.').next().unwrap_or_default() {
        _ if !matches!(experiment.method, Method::Npl) => {
            format!("is of searches, and method \"{}\" is not made of them alone", experiment.method.name())
        }
        _ if experiment.model.is_staged() => format!("has no use with stages: {STARTS}"),
        "model" | "prior" | "optimiser" => return,
        "data" | "seed" => {
            format!("needs the same rows and weights at every setting, and `{varied}` changes them")
        }
        _ => format!("needs settings that differ in their loss, and `{varied}` is no part of it"),
    };
    say("path.warm", format!("`path.warm` {why}"));
}

/// Numbers that decide how much memory is asked for, and the most they may be: beyond it no machine has enough.
fn sizes(experiment: &Experiment) -> Vec<(&'static str, usize, usize)> {
    let sampler = &experiment.sampler;
    let count = |c: Option<Count>| c.map_or(0, Count::get);
    let fits = match sampler.fixed_init {
        Some(FixedInitConfig::BestOf(fits)) => fits.get(),
        _ => 0,
    };
    let mut sizes = vec![
        ("repeats", experiment.repeats.get(), 1_000_000),
        ("evaluate.folds", experiment.folds(), 1_000_000),
        ("sampler.B", sampler.draws.get(), 1_000_000_000),
        ("sampler.R", count(sampler.restarts), 1_000_000),
        ("sampler.fixed_init.best_of", fits, 1_000_000),
        ("prior.T", count(experiment.prior.as_ref().and_then(|p| p.truncation_limit)), 100_000_000),
    ];
    let batch = experiment.optimiser.subsample.as_ref().map_or(0, |rule| rule.batch.get());
    sizes.push(("optimiser.subsample.batch", batch, 10_000_000));
    sizes.push(("data.resample", count(experiment.data.resample), 1_000_000_000));
    if let Some(geometric) = experiment.path.as_ref().and_then(|p| p.geometric.as_ref()) {
        sizes.push(("path.geometric.count", geometric.count.get(), 1_000_000));
    }
    if let Some(truth) = &experiment.data.simulate {
        let (n, n_test) = truth.sizes();
        let cells = n.saturating_add(n_test).saturating_mul(truth.columns());
        sizes.push(("data.simulate", cells, 1_000_000_000));
    }
    sizes.extend(Method::ALL.iter().flat_map(|method| method.inference().sizes(experiment)));
    match &experiment.model {
        ModelConfig::Gmm(gmm) => sizes.push(("model.gmm.K", gmm.K.get(), 1_000_000)),
        ModelConfig::BernoulliMixture(mixture) => {
            sizes.push(("model.bernoulli_mixture.K", mixture.K.get(), 1_000_000));
        }
        ModelConfig::Kmeans(kmeans) => sizes.push(("model.kmeans.K", kmeans.K.get(), 1_000_000)),
        _ => {}
    }
    sizes
}
