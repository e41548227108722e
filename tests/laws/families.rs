//! Regressions beyond the exponential core: saturated designs have the laws of Dirichlet weights, scores vanish at every draw, vertices of
//! quantile regressions are optimal, offsets, factors and weights of penalties count as they should, and what has no minimum is refused.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::support::*;

use npl::config::Document;
use npl::optim::Status;
use npl::process::Measure;
use npl::study::{ReadyTrial, Study};
use statrs::distribution::{Beta, ContinuousCDF};

/// x1 and x2 without a pattern, a group 0 or 1, an exposure, an event, and responses of every kind.
fn rows() -> Vec<BTreeMap<&'static str, f64>> {
    // No lattice: no three rows are on a line, no four on a plane.
    let noise =
        |i: usize| 2.0 * ((i as f64 + 1.0) * 12.9898).sin().mul_add(43758.5453, 0.0).rem_euclid(1.0) - 1.0;
    let row = |i: usize| {
        let (a, b, g) = (noise(3 * i), noise(5 * i + 1), i.is_multiple_of(3) as u8);
        let number = 1.0 + a - 0.5 * b + 0.4 * noise(11 * i + 2) + f64::from(g);
        BTreeMap::from([
            ("a", a),
            ("b", b),
            ("g", f64::from(g)),
            ("exposure", 1.0 + (i % 4) as f64),
            ("event", f64::from(!i.is_multiple_of(5))),
            ("number", number),
            ("positive", number.exp()),
            ("count", (number.max(0.0) * 2.0).floor()),
            ("unit", 1.0 / (1.0 + (-number).exp())),
            ("class", ((i * i + i / 3) % 3) as f64),
            ("binary", ((i * i + i / 3) % 2) as f64),
        ])
    };
    (0..40).map(row).collect()
}

fn experiment(columns: &str, target: &str, rest: &str) -> (crate::tempfile::NamedTempFile, String) {
    let rows = rows();
    let header: Vec<&str> = rows[0].keys().copied().collect();
    let mut text = header.join(",") + "\n";
    for row in &rows {
        let cells: Vec<String> = row.values().map(|v| format!("{v:?}")).collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    let file = crate::tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let text = format!(
        "name = \"t\"\nseed = 1\n[sampler]\nB = 40\n[data]\ntrain = {:?}\ntarget = \"{target}\"\ncolumns = {columns}\n{rest}",
        file.path().display().to_string()
    );
    (file, text)
}

fn trial(text: &str) -> ReadyTrial {
    let cancel = std::sync::atomic::AtomicBool::new(false);
    study(text).trial(0).unwrap().scheme(&pool(1), &cancel).unwrap()
}

fn refused(text: &str) -> String {
    let document = Document::parse("t.toml", text, &[]).unwrap();
    let decoded = document.decode().map_err(|e| e.to_string());
    match decoded {
        Err(why) => why,
        Ok(experiment) => Study::new(document, experiment, Default::default()).err().unwrap().to_string(),
    }
}

/// The minima of some draws with their measures.
fn minima(trial: &ReadyTrial, mut see: impl FnMut(&Measure, &[f64])) {
    for draw in 0..40 {
        let f = trial.plan().measure(draw);
        let minimum = trial.model.minimise(&f, &trial.plan().start(draw, 0));
        assert_eq!(minimum.status, Status::Ok, "draw {draw}: {:?}", trial.model.names());
        see(&f, &minimum.theta);
    }
}

/// Σ w v over the rows that are chosen.
fn sum(f: &Measure, v: impl Fn(&BTreeMap<&'static str, f64>) -> f64) -> f64 {
    rows().iter().zip(f.weights().0).map(|(row, w)| w * v(row)).sum()
}

/// With a dummy for each of two groups, functions of η are ratios of sums under Dirichlet weights: of responses, of times to
/// events, of counts to exposures.
#[test]
fn saturated_designs_are_ratios_of_weighted_sums() {
    type Row = BTreeMap<&'static str, f64>;
    type Case = (&'static str, &'static str, fn(&Row) -> f64, fn(&Row) -> f64, fn(f64) -> f64);
    let cases: [Case; 8] = [
        ("linear]", "number", |r| r["number"], |_| 1.0, |eta| eta),
        ("linear]\nsigma = \"estimated\"", "number", |r| r["number"], |_| 1.0, |eta| eta),
        ("gamma]", "positive", |r| r["positive"], |_| 1.0, f64::exp),
        ("negative_binomial]", "count", |r| r["count"], |_| 1.0, f64::exp),
        ("exponential]", "positive", |r| r["positive"], |r| r["event"], f64::exp),
        ("robust]\nsigma = 1.0\nloss.huber = 1e6", "number", |r| r["number"], |_| 1.0, |eta| eta),
        ("poisson]", "count", |r| r["count"], |r| r["exposure"], f64::exp),
        ("negative_binomial]", "count", |r| r["count"], |r| r["exposure"], f64::exp),
    ];
    for (i, (model, target, above, below, link)) in cases.into_iter().enumerate() {
        let data = match i {
            4 => "event = \"event\"\n",
            6 | 7 => "exposure = \"exposure\"\n",
            _ => "",
        };
        let (_file, text) =
            experiment("[\"g\"]", target, &format!("{data}[model.{model}\npenalty = \"none\"\n"));
        // A negative binomial mean under exposure is no ratio of sums: its score has weights of its own.
        let weigh = |r: &Row, mean: f64, alpha: f64| {
            if i == 7 { 1.0 / (1.0 + alpha * mean * r["exposure"]) } else { 1.0 }
        };
        minima(&trial(&text), |f, theta| {
            for group in [0.0, 1.0] {
                let mean = link(theta[1] + theta[0] * group);
                let alpha = theta.get(2).copied().unwrap_or(0.0);
                let here = |r: &Row| f64::from(r["g"] == group) * weigh(r, mean, alpha);
                let expected = sum(f, |r| here(r) * above(r)) / sum(f, |r| here(r) * below(r));
                assert_close(model, mean, expected, 1e-7);
            }
        });
    }
}

/// Without covariates the probabilities of classes are their weights: Beta(nₖ, n − nₖ).
#[test]
fn probabilities_of_classes_have_beta_laws() {
    let count = |k: f64| rows().iter().filter(|r| r["class"] == k).count() as f64;
    let n = rows().len() as f64;
    for model in ["ordered", "multinomial"] {
        let (_file, text) = experiment("[]", "class", &format!("[model.{model}]\npenalty = \"none\"\n"));
        let draws = run(&text.replace("B = 40", "B = 2000"));
        let of_draw = |theta: &[f64]| match model {
            "ordered" => 1.0 / (1.0 + (-theta[0]).exp()),
            _ => 1.0 / (1.0 + theta[0].exp() + theta[1].exp()),
        };
        let shares: Vec<f64> = draws.iter().map(|d| of_draw(&d.theta)).collect();
        let law = Beta::new(count(0.0), n - count(0.0)).unwrap();
        assert_distribution(model, &shares, |x| law.cdf(x));
        if model == "ordered" {
            let first_two: Vec<f64> = draws.iter().map(|d| 1.0 / (1.0 + (-d.theta[1]).exp())).collect();
            let law = Beta::new(count(0.0) + count(1.0), count(2.0)).unwrap();
            assert_distribution(model, &first_two, |x| law.cdf(x));
        }
    }
}

/// The gradient vanishes at every draw, whatever the family, the penalty and the prior; at a kink it may be as steep as the kink.
#[test]
fn scores_vanish_at_every_draw() {
    let families = [
        ("linear]", "number", "normal = [0.0, 1.0]"),
        ("linear]\nsigma = 0.7", "number", "normal = [0.0, 1.0]"),
        ("linear]\nsigma = \"estimated\"", "number", "normal = [0.0, 1.0]"),
        ("robust]\nloss.student_t = 3.0", "number", "normal = [0.0, 1.0]"),
        ("robust]\nloss.huber = 1.345", "number", "normal = [0.0, 1.0]"),
        ("robust]\nloss.huber = 1.0\nsigma = 0.3", "number", "normal = [0.0, 1.0]"),
        ("robust]\nloss.tukey = 4.7\nsigma = 1.0", "number", "normal = [0.0, 1.0]"),
        ("robust]\nloss.welsch = 3.0\nsigma = 1.0", "number", "normal = [0.0, 1.0]"),
        ("negative_binomial]", "count", "poisson = 2.0"),
        ("gamma]", "positive", "gamma = [2.0, 1.0]"),
        ("beta]", "unit", "beta = [2.0, 2.0]"),
        ("exponential]", "positive", "gamma = [2.0, 1.0]"),
        ("multinomial]", "class", "categorical = [[0.0, 0.5], [1.0, 0.25], [2.0, 0.25]]"),
        ("ordered]", "class", "categorical = [[0.0, 0.5], [1.0, 0.25], [2.0, 0.25]]"),
        ("logistic]\nintercept = false", "binary", "bernoulli = 0.5"),
        ("poisson]\npenalty_weight = \"exponential\"", "count", "poisson = 2.0"),
    ];
    let penalties = [
        ("\"none\"", 0.0),
        ("\"ridge\"\ngamma = 0.05", 0.0),
        ("{ student_t = { a = 1.0, b = 1.0 } }\ngamma = 0.05", 0.0),
        ("{ elastic_net = { ratio = 0.6 } }\ngamma = 0.1", 0.06),
        ("\"lasso\"\ngamma = 0.05\npenalty_factor = { b = 0.0 }", 0.05),
    ];
    for (model, target, base) in families {
        for (penalty, kink) in penalties {
            for prior in [false, true] {
                let prior = match prior {
                    true => format!(
                        "[prior]\nalpha = 5.0\nT = 6\nbase.response = {{ {base}, covariates = \"empirical\" }}\n"
                    ),
                    false => String::new(),
                };
                let (_file, text) = experiment(
                    "[\"a\", \"b\"]",
                    target,
                    &format!("[model.{model}\npenalty = {penalty}\n{prior}"),
                );
                // As its starter does: from far away a search may get lost where the dispersion is 0 and the mean is not finite.
                let near =
                    "B = 40\ninit.beta = { normal = [0.0, 0.1] }\ninit.intercept = { normal = [0.0, 0.1] }\n";
                let text = if model.starts_with("negative") { text.replace("B = 40\n", near) } else { text };
                let trial = trial(&text);
                let names = trial.model.names();
                minima(&trial, |f, theta| {
                    let weight = if model.contains("exponential\"") { f.penalty_weight() } else { 1.0 };
                    let gradient = trial.model.gradient(theta, f).unwrap();
                    for ((g, t), name) in gradient.iter().zip(theta).zip(&names) {
                        let free = name.starts_with("beta") && *t == 0.0;
                        // What is positive by its logarithm: counts that vary little send the dispersion to 0.
                        let scale = ["sigma", "dispersion", "shape", "precision"].contains(&name.as_str());
                        let g = if scale { &(g * t) } else { g };
                        let (slack, g) = if free { (weight * kink, g - weight * kink) } else { (0.0, *g) };
                        assert!(g.abs() <= slack + 2e-6, "{model}, {penalty}, {name} = {t}: {g}");
                    }
                });
            }
        }
    }
}

/// Σ w r², and the normal equations, to rounding.
#[test]
fn least_squares_is_exact() {
    let (_file, text) =
        experiment("[\"a\", \"b\"]", "number", "[model.linear]\nsigma = \"estimated\"\npenalty = \"none\"\n");
    minima(&trial(&text), |f, theta| {
        let residual =
            |r: &BTreeMap<&str, f64>| r["number"] - theta[0] * r["a"] - theta[1] * r["b"] - theta[2];
        for score in [sum(f, |r| residual(r) * r["a"]), sum(f, |r| residual(r) * r["b"]), sum(f, residual)] {
            assert!(score.abs() < 1e-14, "{score}");
        }
        assert_close("sigma", theta[3] * theta[3], sum(f, |r| residual(r).powi(2)), 1e-13);
    });
}

/// At a vertex as many rows are met as there are coefficients, and slopes between those of both sides make the rest vanish.
#[test]
fn vertices_of_quantile_regressions_are_optimal() {
    for (penalty, gamma) in [("\"none\"", 0.0), ("\"lasso\"", 0.05)] {
        let model =
            format!("[model.quantile_regression]\nq = [0.2, 0.5, 0.9]\npenalty = {penalty}\ngamma = 0.05\n");
        let (_file, text) = experiment("[\"a\", \"b\"]", "number", &model);
        minima(&trial(&text), |f, theta| {
            for (k, q) in [0.2, 0.5, 0.9].into_iter().enumerate() {
                let (beta, intercept) = (&theta[2 * k..2 * k + 2], theta[6 + k]);
                let mut pull = [gamma * beta[0].signum(), gamma * beta[1].signum(), 0.0].map(|v| -v);
                let mut room = [0.0; 3];
                let mut met = 0;
                for (j, b) in beta.iter().enumerate().filter(|(_, b)| **b == 0.0) {
                    (pull[j], room[j]) = (0.0, gamma + b);
                    met += usize::from(gamma > 0.0);
                }
                let mut free = Vec::new();
                for (row, w) in rows().iter().zip(f.weights().0) {
                    let x = [row["a"], row["b"], 1.0];
                    let r = row["number"] - beta[0] * x[0] - beta[1] * x[1] - intercept;
                    if r.abs() < 1e-12 {
                        met += 1;
                        free.push((x, *w));
                        continue;
                    }
                    let slope = if r > 0.0 { q * w } else { (q - 1.0) * w };
                    (0..3).for_each(|j| pull[j] += slope * x[j]);
                }
                assert_eq!(met, 3, "q = {q}");
                if free.len() == 3 {
                    let m = ndarray::arr2(&[0, 1, 2].map(|i| free[i].0));
                    let u = solve3(&m.t().to_owned(), pull.map(|v| -v));
                    for (u, (_, w)) in u.into_iter().zip(&free) {
                        assert!(u <= q * w + 1e-12 && u >= (q - 1.0) * w - 1e-12, "{u} of {w} at {q}");
                    }
                }
            }
        });
    }
}

/// Cramer's rule.
fn solve3(a: &ndarray::Array2<f64>, b: [f64; 3]) -> [f64; 3] {
    let det = |m: &ndarray::Array2<f64>| {
        m[[0, 0]] * (m[[1, 1]] * m[[2, 2]] - m[[1, 2]] * m[[2, 1]])
            - m[[0, 1]] * (m[[1, 0]] * m[[2, 2]] - m[[1, 2]] * m[[2, 0]])
            + m[[0, 2]] * (m[[1, 0]] * m[[2, 1]] - m[[1, 1]] * m[[2, 0]])
    };
    std::array::from_fn(|j| {
        let mut m = a.clone();
        (0..3).for_each(|i| m[[i, j]] = b[i]);
        det(&m) / det(a)
    })
}

/// Without covariates it is a weighted quantile: the same number as that of the location model, ties or not.
#[test]
fn quantiles_without_covariates_are_weighted_quantiles() {
    for target in ["number", "count"] {
        let model = "[model.quantile_regression]\nq = [0.25, 0.6]\npenalty = \"none\"\n";
        let (_file, regression) = experiment("[]", target, model);
        let location = "[model.quantile]\nq = [0.25, 0.6]\n";
        let (_other, location) = experiment(&format!("[\"{target}\"]"), target, location);
        let location = location.replace(&format!("target = \"{target}\"\n"), "");
        let (a, b) = (run(&regression), run(&location));
        assert!(a.iter().zip(&b).all(|(a, b)| a.theta == b.theta), "{target}");
    }
}

/// A factor of all columns is a factor of γ; a column with factor 0 has the score of one without a penalty; an offset is a coefficient 1.
#[test]
fn factors_and_offsets_count_as_they_should() {
    let theta = |text: &str| run(text).into_iter().map(|d| d.theta).collect::<Vec<_>>();
    let alike = |a: &[Vec<f64>], b: &[Vec<f64>], error: f64| {
        a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() <= error * b.abs().max(1.0))
    };
    for (model, target) in
        [("logistic", "binary"), ("poisson", "count"), ("linear", "number"), ("gamma", "positive")]
    {
        let with = |keys: &str| {
            let (_file, text) = experiment(
                "[\"a\", \"b\"]",
                target,
                &format!("[model.{model}]\npenalty = \"ridge\"\n{keys}"),
            );
            theta(&text)
        };
        let (plain, factor) =
            (with("gamma = 0.2\n"), with("gamma = 0.1\npenalty_factor = { a = 2.0, b = 2.0 }\n"));
        assert!(alike(&plain, &factor, 1e-7), "{model}");
        assert!(!alike(&plain, &with("gamma = 0.2\npenalty_factor = { a = 0.0 }\n"), 1e-3), "{model}");
        assert!(!alike(&plain, &with("gamma = 0.2\npenalty_weight = \"exponential\"\n"), 1e-3), "{model}");
    }
    // y − b as a response, or b as an offset.
    let (_file, text) =
        experiment("[\"a\"]", "number", "offset = \"b\"\n[model.linear]\npenalty = \"none\"\n");
    minima(&trial(&text), |f, theta| {
        let residual = |r: &BTreeMap<&str, f64>| r["number"] - r["b"] - theta[0] * r["a"] - theta[1];
        assert!(sum(f, residual).abs() < 1e-13 && sum(f, |r| residual(r) * r["a"]).abs() < 1e-13);
    });
}

/// Texts of a response are classes in the order of the alphabet, or of numbers, and name the coefficients.
#[test]
fn classes_are_named_by_their_texts() {
    let file = crate::tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "x,y\n1,red\n2,blue\n3,green\n1.5,red\n2.5,blue\n0.5,green\n").unwrap();
    let text = format!(
        "name = \"t\"\nseed = 1\n[sampler]\nB = 3\n[data]\ntrain = {:?}\ntarget = \"y\"\n[model.multinomial]\npenalty = \"ridge\"\n",
        file.path().display().to_string()
    );
    assert_eq!(
        trial(&text).model.names(),
        ["beta.green.x", "beta.red.x", "intercept.green", "intercept.red"]
    );
    std::fs::write(file.path(), "x,y\n1,10\n2,9\n3,8\n1.5,10\n2.5,8\n0.5,9\n").unwrap();
    assert_eq!(trial(&text).model.names(), ["beta.9.x", "beta.10.x", "intercept.9", "intercept.10"]);
}

#[test]
fn what_cannot_be_honoured_is_refused() {
    let cases = [
        ("[\"a\"]", "number", "[model.robust]\nloss.tukey = 4.0\npenalty = \"none\"\n", "no minimum in σ"),
        ("[\"a\"]", "number", "[model.robust]\nloss.huber = 0.5\npenalty = \"none\"\n", "above 1"),
        ("[\"a\"]", "number", "[model.gamma]\npenalty = \"none\"\n", "a number above 0"),
        ("[\"a\"]", "number", "[model.beta]\npenalty = \"none\"\n", "between 0 and 1"),
        ("[\"a\"]", "number", "[model.quantile_regression]\nq = 0.5\npenalty = \"ridge\"\n", "no vertex"),
        (
            "[\"a\"]",
            "number",
            "[model.quantile_regression]\nq = [0.5, 0.5]\npenalty = \"none\"\n",
            "each above",
        ),
        ("[\"a\"]", "class", "[model.ordered]\nintercept = true\npenalty = \"none\"\n", "cut points"),
        (
            "[\"a\"]",
            "number",
            "[model.linear]\npenalty = \"ridge\"\npenalty_factor = { q = 1.0 }\n",
            "no such column",
        ),
        (
            "[\"a\", \"g\"]",
            "number",
            "offset = \"g\"\n[model.linear]\npenalty = \"ridge\"\n",
            "`data.columns`",
        ),
        ("[\"a\"]", "number", "exposure = \"b\"\n[model.linear]\npenalty = \"ridge\"\n", "must be above 0"),
        ("[\"a\"]", "number", "offset = \"b\"\n[model.mean]\n", "no use"),
        (
            "[\"a\"]",
            "number",
            "[model.linear]\npenalty = \"ridge\"\nintercept_prior = [0.0, 1.0]\n",
            "no likelihood",
        ),
        ("[\"a\"]", "positive", "event = \"event\"\n[model.gamma]\npenalty = \"none\"\n", "no use"),
    ];
    for (columns, target, rest, says) in cases {
        let (_file, text) = experiment(columns, target, rest);
        let text = if rest.contains("model.mean") { text.replace("target = \"number\"\n", "") } else { text };
        let why = refused(&text);
        assert!(why.contains(says) && why.contains("t.toml") || why.contains(says), "{rest}: {why}");
    }
}

/// Counts of 3 and 4 alone vary less than Poisson's: every draw ends at dispersion 0, and says so; geometric ones never do.
#[test]
fn counts_that_vary_too_little_are_noticed() {
    let file = crate::tempfile::NamedTempFile::new().unwrap();
    let of = |count: fn(i32) -> i32| {
        let rows: String = (0..60).map(|i| format!("{},{}\n", (i * 7) % 11, count(i))).collect();
        std::fs::write(file.path(), format!("a,y\n{rows}")).unwrap();
        let trial = trial(&format!(
            "name = \"t\"\nseed = 1\nsampler.B = 40\n[data]\ntrain = {:?}\ntarget = \"y\"\n[model.negative_binomial]\npenalty = \"none\"\n",
            file.path().display().to_string()
        ));
        let mut found = 0;
        minima(&trial, |_, theta| found += usize::from(trial.model.is_undispersed(theta)));
        found
    };
    assert_eq!(of(|i| 3 + i % 2), 40);
    assert_eq!(of(|i| [0, 0, 0, 1, 0, 2, 0, 12, 1, 30][(i % 10) as usize]), 0);
}

/// Classes that a column tells apart have no minimum without a penalty: the experiment is refused, with the column. Two classes that are
/// mixed and a third apart from both are separated for a predictor of each class, and not for cut points.
#[test]
fn separated_classes_are_refused_with_the_column() {
    let file = crate::tempfile::NamedTempFile::new().unwrap();
    let text = |classes: [usize; 8], model: &str, penalty: &str| {
        let noise = [3, 1, 4, 1, 5, 9, 2, 6];
        let rows = classes.iter().enumerate().map(|(i, y)| format!("{i},{},{y}\n", noise[i]));
        std::fs::write(file.path(), format!("size,noise,y\n{}", rows.collect::<String>())).unwrap();
        format!(
            "name = \"t\"\nseed = 1\n[sampler]\nB = 20\n[data]\ntrain = {:?}\ntarget = \"y\"\n[model.{model}]\npenalty = {penalty}",
            file.path().display().to_string()
        )
    };
    let converge = |text: &str| run(text).iter().all(|draw| draw.status == Status::Ok);
    let (apart, partly, mixed) =
        ([0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 1, 2, 1, 2, 1], [2, 0, 2, 1, 1, 2, 0, 2]);
    for model in ["multinomial", "ordered"] {
        let why = refused(&text(apart, model, "\"none\""));
        assert!(why.contains("separated by `size`"), "{why}");
        assert!(converge(&text(apart, model, "\"ridge\"")), "{model}");
        assert!(converge(&text(mixed, model, "\"none\"")), "{model}");
    }
    assert!(refused(&text(partly, "multinomial", "\"none\"")).contains("separated by `size`"));
    assert!(converge(&text(partly, "ordered", "\"none\"")));
}

/// A column or a file says which rows are tested on, or in which fold: fold (seed mod folds) + 1 of each repeat.
#[test]
fn splits_are_as_given() {
    let folder = crate::tempfile::tempdir().unwrap();
    let rows: String = (0..30).map(|i| format!("{},{},{}\n", i, i % 2, ["x", "y", "z"][i % 3])).collect();
    std::fs::write(folder.path().join("d.csv"), format!("a,y,set\n{rows}")).unwrap();
    let folds: String = (0..30).map(|i| format!("{}\n", if i < 10 { 10 } else { 9 })).collect();
    std::fs::write(folder.path().join("folds.txt"), folds).unwrap();
    let tested = |split: &str, seed: u64, columns: &str| {
        let text = format!(
            "name = \"t\"\nseed = {seed}\n[sampler]\nB = 3\n[data]\ntrain = {:?}\ntarget = \"y\"\n{columns}split = {split}\n\
             [model.logistic]\npenalty = \"ridge\"\n",
            folder.path().join("d.csv").display().to_string()
        );
        let text = text.replace("FOLDS", &folder.path().join("folds.txt").display().to_string());
        let trial = trial(&text);
        let test = trial.test.as_ref().unwrap();
        assert_eq!((test.n() + trial.train.n(), test.d()), (30, 1));
        (0..test.n()).map(|i| test.x.row(i)[0] as usize).collect::<Vec<_>>()
    };
    let every = |first: usize| (first..30).step_by(3).collect::<Vec<_>>();
    assert_eq!(tested("{ column = \"set\", held_out = \"y\" }", 7, ""), every(1));
    for seed in 0..4 {
        assert_eq!(tested("{ column = \"set\" }", seed, ""), every(seed as usize % 3));
    }
    // In the order of numbers 9 comes first.
    let columns = "columns = [\"a\"]\n";
    assert_eq!(tested("{ file = \"FOLDS\" }", 2, columns), (10..30).collect::<Vec<_>>());
    assert_eq!(tested("{ file = \"FOLDS\", held_out = \"10\" }", 2, columns), (0..10).collect::<Vec<_>>());
}
