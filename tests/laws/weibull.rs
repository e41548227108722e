//! Weibull regression of censored times: score identities at every draw, scale and power equivariance, and what is refused.

use std::fmt::Write;

use crate::support::*;

use npl::config::Document;
use npl::study::Study;

/// Times of two groups, some censored: `t`, `event`, `g`.
const ROWS: [(f64, u8, u8); 12] = [
    (0.5, 1, 0),
    (1.2, 1, 0),
    (2.0, 0, 0),
    (0.9, 1, 0),
    (2.0, 0, 0),
    (1.7, 1, 0),
    (0.2, 1, 1),
    (0.8, 0, 1),
    (0.4, 1, 1),
    (1.1, 1, 1),
    (0.3, 1, 1),
    (0.6, 1, 1),
];

fn experiment(
    rows: impl Iterator<Item = (f64, u8, u8)>,
    rest: &str,
) -> (crate::tempfile::NamedTempFile, String) {
    let mut text = "t,event,g\n".to_owned();
    rows.for_each(|(t, event, g)| writeln!(text, "{t:?},{event},{g}").unwrap());
    let file = crate::tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let text = format!(
        "name = \"t\"\nseed = 1\n[data]\ntrain = {:?}\ntarget = \"t\"\nevent = \"event\"\n[sampler]\nB = 60\n\
         init.shape = {{ uniform = [0.8, 1.2] }}\n{rest}",
        file.path().display().to_string()
    );
    (file, text)
}

/// Σ w e^z = Σ w δ in each group of a saturated design, and Σ w z (e^z − δ) = Σ w δ: the derivatives by η and log k.
#[test]
fn score_identities_hold_at_every_draw() {
    let (_file, text) = experiment(ROWS.into_iter(), "[model.weibull]\npenalty = \"none\"");
    let study = study(&text);
    let trial = study.trial(0).unwrap().scheme(&pool(1), &std::sync::atomic::AtomicBool::new(false)).unwrap();
    for draw in 0..60 {
        let f = trial.plan().measure(draw);
        let minimum = trial.model.minimise(&f, &trial.plan().start(draw, 0));
        let [beta, intercept, shape] = minimum.theta[..] else { panic!("three parameters") };
        let (mut by_group, mut by_shape) = ([0.0; 2], 0.0);
        for ((t, event, g), w) in ROWS.into_iter().zip(f.weights().0) {
            let z = shape * (t.ln() - beta * f64::from(g) - intercept);
            by_group[usize::from(g)] += w * (z.exp() - f64::from(event));
            by_shape += w * (z * z.exp() - f64::from(event) * (1.0 + z));
        }
        assert!(by_group.iter().chain([&by_shape]).all(|s| s.abs() < 1e-7), "{by_group:?}, {by_shape}");
    }
}

/// Times in other units move the intercept alone; their squares double the coefficients and halve the shape.
#[test]
fn units_and_powers_of_time_act_as_they_should() {
    let theta = |map: fn(f64) -> f64| {
        let rows = ROWS.into_iter().map(|(t, event, g)| (map(t), event, g));
        let (_file, text) = experiment(rows, "[model.weibull]\npenalty = \"none\"");
        run(&text).into_iter().map(|d| d.theta).collect::<Vec<_>>()
    };
    let (plain, hours, square) = (theta(|t| t), theta(|t| 24.0 * t), theta(|t| t * t));
    for ((a, b), c) in plain.iter().zip(&hours).zip(&square) {
        let expected = [a[0], a[1] + 24f64.ln(), a[2]];
        assert!(b.iter().zip(expected).all(|(b, e)| (b - e).abs() < 1e-5), "{b:?} for {expected:?}");
        let expected = [2.0 * a[0], 2.0 * a[1], 0.5 * a[2]];
        assert!(c.iter().zip(expected).all(|(c, e)| (c - e).abs() < 1e-5), "{c:?} for {expected:?}");
    }
}

/// A column of events that nobody looks at is a mistake of the file.
#[test]
fn events_are_refused_where_they_have_no_use() {
    for model in ["[model.mean]", "[model.poisson]\npenalty = \"ridge\""] {
        let (_file, text) = experiment(ROWS.map(|(_, event, g)| (1.0, event, g)).into_iter(), model);
        let text = text.replace("init.shape = { uniform = [0.8, 1.2] }\n", "");
        let document = Document::parse("t.toml", &text, &[]).unwrap();
        let experiment = document.decode().unwrap();
        let refused = Study::new(document, experiment, Default::default()).err().unwrap().to_string();
        assert!(refused.contains("t.toml:6:") && refused.contains("`data.event` has no use"), "{refused}");
    }
}

#[test]
fn what_has_no_minimum_is_refused() {
    let none_is_event = ROWS.map(|(t, _, g)| (t, 0, g));
    let one_group_is_censored = ROWS.map(|(t, event, g)| (t, event * (1 - g), g));
    let negative = ROWS.map(|(t, event, g)| (t - 1.0, event, g));
    let three = ROWS.map(|(t, event, g)| (t, event * 3, g));
    let cases = [
        (none_is_event, "two times"),
        (one_group_is_censored, "without bound"),
        (negative, "a number above 0"),
        (three, "must be 0 or 1"),
    ];
    for (rows, says) in cases {
        let (_file, text) = experiment(rows.into_iter(), "[model.weibull]\npenalty = \"none\"");
        let document = Document::parse("t.toml", &text, &[]).unwrap();
        let experiment = document.decode().unwrap();
        let refused = Study::new(document, experiment, Default::default()).err().unwrap().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

/// Keys that all regressions share lead to another search, and to the same minimum; an offset takes the place of an intercept.
#[test]
fn shared_keys_have_the_minimum_of_the_plain_ones() {
    let minima = |rows: Vec<(f64, u8, u8)>, more: &str, model: &str| -> Vec<Vec<f64>> {
        let (_file, text) = experiment(rows.into_iter(), &format!("[model.weibull]\n{model}"));
        let study = study(&text.replace("[sampler]", &format!("{more}[sampler]")));
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let trial = study.trial(0).unwrap().scheme(&pool(1), &cancel).unwrap();
        let at = |draw| trial.model.minimise(&trial.plan().measure(draw), &trial.plan().start(draw, 0)).theta;
        (0..30).map(at).collect()
    };
    let rows = || ROWS.to_vec();
    for penalty in ["\"none\"", "\"ridge\"\ngamma = 0.1", "{ student_t = { a = 1.0, b = 1.0 } }"] {
        let plain = minima(rows(), "", &format!("penalty = {penalty}"));
        let law = minima(rows(), "", &format!("penalty = {penalty}\npenalty_factor = {{ g = 1.0 }}"));
        for (a, b) in plain.iter().flatten().zip(law.iter().flatten()) {
            assert!((a - b).abs() < 1e-7 * b.abs().max(1.0), "{penalty}: {a} {b}");
        }
    }
    // Nothing holds the column, as if there were no penalty.
    let free = minima(rows(), "", "penalty = \"ridge\"\ngamma = 3.0\npenalty_factor = { g = 0.0 }");
    let none = minima(rows(), "", "penalty = \"none\"");
    let apart = free.iter().flatten().zip(none.iter().flatten()).map(|(a, b)| (a - b).abs());
    assert!(apart.fold(0.0, f64::max) < 1e-7);
    // Exposure 2 is log 2 in every linear predictor: the times halve.
    let half = rows().into_iter().map(|(t, event, g)| (t / 2.0, event, g)).collect();
    let halved = minima(half, "", "penalty = \"none\"");
    for (a, b) in none.iter().zip(&halved) {
        assert!((a[1] - b[1] - 2f64.ln()).abs() < 1e-7 && (a[2] - b[2]).abs() < 1e-6, "{a:?} {b:?}");
    }
    let offset = minima(rows(), "offset = \"g\"\ncolumns = []\n", "penalty = \"none\"");
    let score = |theta: &[f64], draw: usize| -> f64 {
        let (_file, text) = experiment(ROWS.into_iter(), "[model.weibull]\npenalty = \"none\"");
        let study = study(&text);
        let cancel = std::sync::atomic::AtomicBool::new(false);
        let trial = study.trial(0).unwrap().scheme(&pool(1), &cancel).unwrap();
        let f = trial.plan().measure(draw as u64);
        let by_row = |((t, event, g), w): ((f64, u8, u8), &f64)| {
            w * ((theta[1] * (t.ln() - theta[0] - f64::from(g))).exp() - f64::from(event))
        };
        ROWS.into_iter().zip(f.weights().0).map(by_row).sum()
    };
    for (draw, theta) in offset.iter().enumerate().take(5) {
        assert!(theta.len() == 2 && score(theta, draw).abs() < 1e-7, "{theta:?}");
    }
}
