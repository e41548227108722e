//! loss(θ, F) is the loss of F written out as plain weighted rows, for every model, base measure and truncation; what cannot
//! be honoured is refused, with its place in the experiment file.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::support::*;

use npl::config::Document;
use npl::data::files::SearchPath;
use npl::experiment::Experiment;
use npl::model::STARTERS;
use npl::process::{Measure, base};
use npl::study::{ReadyTrial, Study};

const TRUNCATIONS: [&str; 4] = [
    "T = 7\ntruncation = \"dirichlet\"",
    "T = 7\ntruncation = \"stick_breaking\"",
    "truncation = { adaptive = 1e-3 }",
    "truncation = \"exact\"",
];

/// Rows of two covariates, and a response that is 0 or 1 where it is `labelled`, without a pattern.
fn write_rows(path: &Path, rows: usize, shift: usize, labelled: bool) {
    write_cells(path, rows, shift, labelled, |v| v);
}

fn write_cells(path: &Path, rows: usize, shift: usize, labelled: bool, cell: impl Fn(f64) -> f64) {
    let noise = |i: usize| cell(((i * 7919 + 13 * shift + 5) % 997) as f64 / 250.0 - 2.0);
    let mut text = if labelled { "a,b,t\n" } else { "a,b\n" }.to_owned();
    for i in 0..rows {
        write!(text, "{},{}", noise(3 * i), noise(5 * i + 1)).unwrap();
        let response = if labelled { format!(",{}", (i * i + shift) % 3 % 2) } else { String::new() };
        writeln!(text, "{response}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}

/// The model's table of its starter, on the rows of `folder`, with this prior.
fn experiment(starter: &str, labelled: bool, base: &str, truncation: &str, rows: &str) -> String {
    let table: toml::Table = toml::from_str(starter).unwrap();
    let mut model = toml::Table::new();
    model.insert("model".into(), table["model"].clone());
    let base = if base.starts_with('"') { format!("base = {base}") } else { format!("base = {{ {base} }}") };
    let target = if labelled { "target = \"t\"" } else { "" };
    format!(
        "name = \"law\"\nseed = 1\n[data]\ntrain = \"train.csv\"\n{target}\n{rows}\n[sampler]\nB = 5\n[prior]\nalpha = 6.0\n\
         {truncation}\n{base}\n{}",
        toml::to_string(&model).unwrap()
    )
}

pub fn try_study(text: &str, folder: &Path) -> Result<ReadyTrial, String> {
    let document = Document::parse("law.toml", text, &[]).map_err(|e| e.to_string())?;
    let experiment: Experiment = document.decode().map_err(|e| e.to_string())?;
    let study = Study::new(document, experiment, SearchPath::new(Some(folder))).map_err(|e| e.to_string())?;
    let trial = study.trial(0).map_err(|e| e.to_string())?;
    trial.scheme(&pool(1), &AtomicBool::new(false)).map_err(|e| e.to_string())
}

/// How many combinations are sampled, and how many are refused.
#[derive(Debug, Default, PartialEq)]
struct Count {
    honoured: usize,
    refused: usize,
}

fn for_all(rows: &str, mut law: impl FnMut(&str, &ReadyTrial)) -> Count {
    let folder = crate::tempfile::tempdir().unwrap();
    let mut count = Count::default();
    for labelled in [false, true] {
        for (model, starter) in starters() {
            // Of the models of rows alone one takes cells of 0 and 1, and nothing else.
            let coin = |v: f64| if model == "bernoulli_mixture" { f64::from(u8::from(v > 0.2)) } else { v };
            write_cells(&folder.path().join("train.csv"), 23, 0, labelled, coin);
            write_cells(&folder.path().join("history.csv"), 11, 3, labelled, coin);
            let starter = starter.replace("# prior = { a0", "prior = { a0");
            for base in base::examples(&["a".into(), "b".into()]) {
                for truncation in TRUNCATIONS {
                    let text = experiment(&starter, labelled, &base, truncation, rows);
                    let name = format!("{model}, {base}, {truncation}, labelled {labelled}, {rows}");
                    match try_study(&text, folder.path()) {
                        Ok(trial) => {
                            law(&name, &trial);
                            count.honoured += 1;
                        }
                        Err(why) => {
                            let place =
                                ["prior", "model", "base", "data"].iter().any(|word| why.contains(word));
                            assert!(why.contains("law.toml") && place, "{name}: {why}");
                            count.refused += 1;
                        }
                    }
                }
            }
        }
    }
    count
}

fn holds(name: &str, trial: &ReadyTrial) {
    for draw in 0..3 {
        let f = trial.prior.posterior_draw(&trial.train, trial.seed, draw);
        let (w, v) = f.weights();
        assert_close(name, w.iter().chain(v).sum(), 1.0, 1e-13);
        let (rows, weights) = f.written_out();
        let plain = Measure::weighted(&rows, weights);
        let start = trial.plan().start(draw, 0);
        let minimum = trial.model.minimise(&f, &start);
        assert_close(name, trial.model.loss(&minimum.theta, &f), minimum.value, 1e-12);
        if trial.model.blocks().is_empty() && minimum.value.is_finite() {
            // A minimum that is not searched for is that of all atoms, whichever rows they are.
            let written = trial.model.minimise(&plain, &start).value;
            assert_close(name, minimum.value, written, 1e-10);
        }
        // At the minimum, and at a point that is none.
        let other: Vec<f64> = minimum.theta.iter().map(|t| 0.5 * t + 0.25).collect();
        for theta in [minimum.theta, other] {
            assert_close(name, trial.model.loss(&theta, &f), trial.model.loss(&theta, &plain), 1e-12);
        }
    }
}

#[test]
fn the_loss_of_a_measure_is_that_of_its_atoms_written_out() {
    let count = for_all("", holds);
    println!("{count:?}");
    assert!(count.honoured >= 150, "{count:?}");
}

/// Bernoulli mixtures are among them: by historical rows, by their prior predictive, by uniform columns of a density never.
#[test]
fn rows_of_0_and_1_have_measures_of_their_own() {
    let mut seen = std::collections::BTreeSet::new();
    for_all("", |name, trial| {
        if name.starts_with("bernoulli_mixture") {
            let f = trial.prior.posterior_draw(&trial.train, trial.seed, 0);
            assert!(f.pseudo_samples().x.iter().flatten().all(|v| *v == 0.0 || *v == 1.0), "{name}");
            seen.insert(name.split(", ").nth(1).unwrap_or_default().to_owned());
        }
    });
    assert!(seen.len() >= 2, "{seen:?}");
}

/// The prior alone: no rows of data, and yet covariates.
#[test]
fn the_loss_of_a_prior_is_that_of_its_atoms_written_out() {
    let count = for_all("rows = 0", holds);
    println!("{count:?}");
    assert!(count.honoured >= 100, "{count:?}");
}

/// Whether all pseudo-samples have covariates of an observed row; if there are any.
fn on_observed_rows(f: &Measure) -> bool {
    let among = |row: ndarray::ArrayView1<f64>| f.observed().x.iter().any(|observed| observed == row);
    f.pseudo_part().is_some_and(|(rows, _)| rows.x.iter().all(among))
}

/// Atom by atom, as rows, and as masses of rows: each has all of F, and none has a part without atoms. Pseudo-samples that are
/// observed rows are no rows besides.
#[test]
fn f_is_whole_however_it_is_seen() {
    let (mut folded, mut beside) = (0, 0);
    for_all("", |name, trial| {
        assert_eq!(trial.prior.alpha(), 6.0, "{name}");
        let f = trial.prior.posterior_draw(&trial.train, trial.seed, 0);
        let whole = |w: &mut dyn Iterator<Item = &[f64]>| {
            let sums: Vec<f64> = w.map(|w| if w.is_empty() { f64::NAN } else { w.iter().sum() }).collect();
            assert_close(name, sums.iter().sum(), 1.0, 1e-13);
        };
        whole(&mut f.parts().map(|part| part.w));
        whole(&mut f.atoms().map(|atoms| atoms.w));
        // Cells of 0 and 1 are those of an observed row wherever they come from.
        if f.parts().any(|part| part.response(0).is_none()) || name.starts_with("bernoulli_mixture") {
            return;
        }
        let (observed, others) = f.masses();
        let masses: Vec<_> = [Some(observed), others].into_iter().flatten().collect();
        whole(&mut masses.iter().map(|m| &m.mass[..]));
        let of_part = |part: npl::process::Part| -> f64 {
            part.w.iter().enumerate().map(|(k, w)| w * part.response(k).unwrap()).sum()
        };
        let response: f64 = masses.iter().flat_map(|m| &m.response).sum();
        assert_close(name, response, f.parts().map(of_part).sum(), 1e-13);
        let own = on_observed_rows(&f);
        assert_eq!(masses.len(), if own || f.pseudo_part().is_none() { 1 } else { 2 }, "{name}");
        (folded, beside) = (folded + usize::from(own), beside + usize::from(!own));
    });
    assert!(folded >= 20 && beside >= 20, "{folded} {beside}");
}

/// Draws that share their rows are worked on in one block: those whose pseudo-samples are rows of their own share none.
#[test]
fn measures_share_rows_if_they_have_the_same() {
    let (mut alike, mut unlike) = (0, 0);
    for_all("", |name, trial| {
        // As above.
        if name.starts_with("bernoulli_mixture") {
            return;
        }
        let draw = |b| trial.prior.posterior_draw(&trial.train, trial.seed, b);
        let (f, g, plain) = (draw(0), draw(1), Measure::empirical(&trial.train));
        let other = Measure::empirical(&trial.train);
        assert!(plain.shares_rows_with(&other) && other.shares_rows_with(&plain), "{name}");
        let copy = trial.train.head(trial.train.n());
        assert!(!plain.shares_rows_with(&Measure::empirical(&copy)), "{name}");
        if f.pseudo_part().is_none() || g.pseudo_part().is_none() {
            return;
        }
        assert!(!f.shares_rows_with(&plain) && !plain.shares_rows_with(&f), "{name}");
        let shared = f.shares_rows_with(&g);
        assert_eq!(shared, on_observed_rows(&f) || name.contains("empirical = {"), "{name}");
        (alike, unlike) = (alike + usize::from(shared), unlike + usize::from(!shared));
    });
    assert!(alike >= 20 && unlike >= 20, "{alike} {unlike}");
}

/// What a model learns of some rows on its way serves no others: searches are the same in whatever order the draws and the fit to
/// the data alone are asked for, however much the historical rows weigh.
#[test]
fn no_search_depends_on_those_before_it() {
    let folder = crate::tempfile::tempdir().unwrap();
    let mut honoured = 0;
    for (labelled, rows) in [(false, 23), (true, 23), (true, 8)] {
        write_rows(&folder.path().join("train.csv"), rows, 0, labelled);
        write_cells(&folder.path().join("history.csv"), 4, 3, labelled, |v| v + 10.0);
        for (model, starter) in starters() {
            let starter = starter.replace("# prior = { a0", "prior = { a0");
            for truncation in ["T = 7", "truncation = \"exact\""] {
                let base = "empirical = { file = \"history.csv\" }";
                let text = experiment(&starter, labelled, base, truncation, "")
                    .replace("alpha = 6.0", "alpha = 4000.0");
                let ready = || try_study(&text, folder.path());
                let (Ok(first), Ok(second)) = (ready(), ready()) else { continue };
                let draws = |trial: &ReadyTrial| -> Vec<_> {
                    let minimise = |draw| {
                        let f = trial.prior.posterior_draw(&trial.train, trial.seed, draw);
                        trial.model.minimise(&f, &trial.plan().start(draw, 0))
                    };
                    (0..3).map(minimise).collect()
                };
                let fit = |trial: &ReadyTrial| {
                    let f = Measure::empirical(&trial.train);
                    trial.model.minimise(&f, &trial.plan().start(0, 0))
                };
                let (draws_first, fit_last) = (draws(&first), fit(&first));
                let (fit_first, draws_last) = (fit(&second), draws(&second));
                // Not by equality: what failed is no number.
                let shown = |found: &dyn std::fmt::Debug| format!("{found:?}");
                let name = format!("{model}, {rows} rows, {truncation}");
                assert_eq!(shown(&fit_last), shown(&fit_first), "{name}");
                assert_eq!(shown(&draws_last), shown(&draws_first), "{name}");
                honoured += 1;
            }
        }
    }
    assert!(honoured >= 20, "{honoured}");
}

/// A prior that says y = 1 pulls the intercept: the mass of historical rows is not lost.
#[test]
fn historical_rows_count_in_a_regression() {
    let folder = crate::tempfile::tempdir().unwrap();
    write_rows(&folder.path().join("train.csv"), 200, 0, true);
    let rows: String =
        (0..50).map(|i| format!("{},{},1\n", i as f64 / 25.0 - 1.0, (i % 7) as f64 / 7.0)).collect();
    std::fs::write(folder.path().join("history.csv"), format!("a,b,t\n{rows}")).unwrap();
    let (_, starter) = STARTERS.iter().find(|(name, _)| *name == "logistic").unwrap();
    let intercept = |base: &str| {
        let text = experiment(starter, true, base, "", "").replace("alpha = 6.0", "alpha = 400.0");
        let trial = try_study(&text, folder.path()).unwrap();
        let draws: Vec<f64> = (0..40)
            .map(|draw| {
                let f = trial.plan().measure(draw);
                let minimum = trial.model.minimise(&f, &trial.plan().start(draw, 0));
                assert!(minimum.value > 0.2, "no mass is lost: {}", minimum.value);
                minimum.theta[2]
            })
            .collect();
        npl::math::mean(&draws)
    };
    // 400 of 600 observations say 1, and 67 of the 200 others do.
    let (history, half) = (
        intercept("empirical = { file = \"history.csv\" }"),
        intercept("response = { bernoulli = 0.5, covariates = \"empirical\" }"),
    );
    assert!(history > 0.9 && half.abs() < 0.4, "{history}, {half}");
}
