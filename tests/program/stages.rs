//! Models in stages: every stage is fitted under the weights of the same draw, which a loop over exported weights makes again.

use std::path::Path;

use crate::support::{Place, cells};

/// The worked example of docs/stages.md, and a third stage that has the first's prediction for a column.
fn place() -> Place {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = Place::new();
    let example = std::fs::read_to_string(root.join("configs/examples/ipw.toml")).unwrap();
    place.write("treatment.csv", std::fs::read(root.join("data/treatment.csv")).unwrap());
    let adjusted = "[[stage]]\nname = \"adjusted\"\ncolumns = [\"treated\", \"propensity.prediction\"]\n\
                    model.linear.penalty = \"none\"\n";
    place.write("more.toml", example.replace("[sampler]", &format!("{adjusted}\n[sampler]")));
    place.write("ipw.toml", example);
    place
}

/// The rows of a table of numbers, by the names of their columns.
struct Table(Vec<String>, Vec<Vec<f64>>);

impl Table {
    fn read(text: &str) -> Table {
        let rows = cells(text);
        let numbers = |row: &Vec<&str>| row.iter().map(|c| c.parse().unwrap_or(f64::NAN)).collect();
        Table(rows[0].iter().map(|c| (*c).to_owned()).collect(), rows[1..].iter().map(numbers).collect())
    }

    fn column(&self, name: &str) -> Vec<f64> {
        let j = self.0.iter().position(|c| c == name).unwrap_or_else(|| panic!("no {name}: {:?}", self.0));
        self.1.iter().map(|row| row[j]).collect()
    }
}

/// The solution of A x = b, by elimination with pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            (k..n).for_each(|j| a[i][j] -= factor * a[k][j]);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - rest) / a[k][k];
    }
    b
}

/// Σ w x xᵀ and Σ w x r.
fn sums(x: &[Vec<f64>], w: &[f64], r: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let d = x[0].len();
    let (mut a, mut b) = (vec![vec![0.0; d]; d], vec![0.0; d]);
    for ((x, w), r) in x.iter().zip(w).zip(r) {
        for j in 0..d {
            b[j] += x[j] * r;
            (0..d).for_each(|k| a[j][k] += w * x[j] * x[k]);
        }
    }
    (a, b)
}

/// Weighted least squares.
fn least_squares(x: &[Vec<f64>], y: &[f64], w: &[f64]) -> Vec<f64> {
    let wy: Vec<f64> = y.iter().zip(w).map(|(y, w)| y * w).collect();
    let (a, b) = sums(x, w, &wy);
    solve(a, b)
}

/// Weighted logistic regression by Newton's method, and the probabilities of the rows.
fn logistic(x: &[Vec<f64>], y: &[f64], w: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut beta = vec![0.0; x[0].len()];
    let at = |beta: &[f64]| -> Vec<f64> {
        let eta = |x: &Vec<f64>| x.iter().zip(beta).map(|(x, b)| x * b).sum::<f64>();
        x.iter().map(|x| 1.0 / (1.0 + (-eta(x)).exp())).collect()
    };
    for _ in 0..30 {
        let p = at(&beta);
        let v: Vec<f64> = p.iter().zip(w).map(|(p, w)| w * p * (1.0 - p)).collect();
        let r: Vec<f64> = p.iter().zip(w).zip(y).map(|((p, w), y)| w * (y - p)).collect();
        let (a, b) = sums(x, &v, &r);
        beta.iter_mut().zip(solve(a, b)).for_each(|(beta, step)| *beta += step);
    }
    let p = at(&beta);
    (beta, p)
}

#[test]
fn stages_are_what_a_loop_over_the_exported_weights_makes() {
    let place = place();
    place.ok(&["run", "more.toml", "--quiet", "--set", "sampler.B=10", "--out", "run"]);
    place.ok(&["export", "more.toml", "--draws", "10", "--out", "export"]);
    let (train, weights) =
        (Table::read(&place.read("export/train.csv")), Table::read(&place.read("export/weights.csv")));
    let draws = Table::read(&place.read("run/samples.csv"));
    let (age, severity) = (train.column("age"), train.column("severity"));
    let (treated, outcome) = (train.column("treated"), train.column("response__"));
    let n = age.len();
    let rows = |columns: &[&[f64]]| -> Vec<Vec<f64>> {
        (0..n).map(|i| columns.iter().map(|c| c[i]).chain([1.0]).collect()).collect()
    };
    let mut seen = 0;
    for (b, w) in weights.1.iter().map(|row| &row[1..]).enumerate() {
        let (propensity, p) = logistic(&rows(&[&age, &severity]), &treated, w);
        let weight = |i: usize| w[i] * (treated[i] / p[i] + (1.0 - treated[i]) / (1.0 - p[i]));
        let ipw: Vec<f64> = (0..n).map(weight).collect();
        let effect = least_squares(&rows(&[&treated]), &outcome, &ipw);
        let adjusted = least_squares(&rows(&[&treated, &p]), &outcome, w);
        let names = [
            ("propensity.beta.age", propensity[0]),
            ("propensity.beta.severity", propensity[1]),
            ("propensity.intercept", propensity[2]),
            ("effect.beta.treated", effect[0]),
            ("effect.intercept", effect[1]),
            ("adjusted.beta.treated", adjusted[0]),
            ("adjusted.beta.propensity.prediction", adjusted[1]),
            ("adjusted.intercept", adjusted[2]),
        ];
        for (name, by_hand) in names {
            let found = draws.column(name)[b];
            assert!(
                (found - by_hand).abs() < 1e-8 * by_hand.abs().max(1.0),
                "{b} {name}: {found}, {by_hand}"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 80);
}

/// Rows of the prior, whole ones with a treatment and an outcome, are rows of every stage.
#[test]
fn pseudo_samples_are_rows_of_all_stages() {
    let place = place();
    let bases = [
        r#"prior={ alpha = 60, T = 80, base = { response = { normal = [9.0, 4.0], covariates = "empirical" } } }"#,
        r#"prior={ alpha = 25, base = { empirical = { file = "treatment.csv" } } }"#,
        r#"prior={ alpha = 40, T = 30, base = { response = { normal = [9.0, 4.0], covariates = { age = { normal = [50.0, 10.0] }, severity = { normal = [0.0, 1.0] }, treated = { bernoulli = 0.5 } } } } }"#,
    ];
    for (k, prior) in bases.into_iter().enumerate() {
        let (run, export) = (format!("run{k}"), format!("export{k}"));
        place.ok(&["run", "more.toml", "--quiet", "--set", "sampler.B=5", "--set", prior, "--out", &run]);
        place.ok(&["export", "more.toml", "--draws", "5", "--set", prior, "--out", &export]);
        let read = |name: &str| Table::read(&place.read(&format!("{export}/{name}")));
        let (train, weights, pseudo) = (read("train.csv"), read("weights.csv"), read("pseudo.csv"));
        let draws = Table::read(&place.read(&format!("{run}/samples.csv")));
        let (of_draw, v) = (pseudo.column("draw"), pseudo.column("weight"));
        for b in 0..5 {
            let own: Vec<usize> = (0..v.len()).filter(|&i| of_draw[i] == (b + 1) as f64).collect();
            let both = |name: &str| -> Vec<f64> {
                let of_prior = pseudo.column(name);
                train.column(name).into_iter().chain(own.iter().map(|&i| of_prior[i])).collect()
            };
            let w: Vec<f64> = weights.1[b][1..].iter().copied().chain(own.iter().map(|&i| v[i])).collect();
            assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-12 && own.len() > 10);
            let (age, severity, treated) = (both("age"), both("severity"), both("treated"));
            let outcome = both("response__");
            let rows = |columns: &[&[f64]]| -> Vec<Vec<f64>> {
                (0..w.len()).map(|i| columns.iter().map(|c| c[i]).chain([1.0]).collect()).collect()
            };
            let (propensity, p) = logistic(&rows(&[&age, &severity]), &treated, &w);
            let weight = |i: usize| w[i] * (treated[i] / p[i] + (1.0 - treated[i]) / (1.0 - p[i]));
            let ipw: Vec<f64> = (0..w.len()).map(weight).collect();
            let effect = least_squares(&rows(&[&treated]), &outcome, &ipw);
            let adjusted = least_squares(&rows(&[&treated, &p]), &outcome, &w);
            for (name, by_hand) in [
                ("propensity.beta.age", propensity[0]),
                ("propensity.intercept", propensity[2]),
                ("effect.beta.treated", effect[0]),
                ("effect.intercept", effect[1]),
                ("adjusted.beta.propensity.prediction", adjusted[1]),
            ] {
                let found = draws.column(name)[b];
                let off = (found - by_hand).abs() / by_hand.abs().max(1.0);
                assert!(off < 1e-8, "{prior}, draw {b}, {name}: {found}, {by_hand}");
            }
        }
    }
    // On the first seven rows alone the treated and the others are separated: only the prior gives these draws a minimum.
    let few = ["--set", "data.rows=7", "--set", "sampler.B=20"];
    let said = place.npl(&[&["run", "ipw.toml", "--quiet", "--out", "few"], &few[..]].concat());
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    place.ok(&[&["run", "ipw.toml", "--quiet", "--out", "few", "--set", bases[1]], &few[..]].concat());
}

#[test]
fn the_effect_is_found_where_a_difference_of_means_is_wrong() {
    let place = place();
    place.ok(&["run", "ipw.toml", "--quiet", "--set", "sampler.B=400", "--out", "run"]);
    let effect = Table::read(&place.read("run/samples.csv")).column("effect.beta.treated");
    let mean = effect.iter().sum::<f64>() / 400.0;
    let sd = (effect.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>() / 399.0).sqrt();
    // The truth is 2; the treated did 0.93 worse than the others.
    assert!((mean - 2.0).abs() < 3.0 * sd && sd < 0.5 && mean - 3.0 * sd > 0.0, "{mean} {sd}");
}

#[test]
fn draws_in_stages_are_the_same_bytes_however_they_are_made() {
    let place = place();
    let run = |out: &str, more: &[&str]| {
        let args = ["run", "more.toml", "--quiet", "--set", "sampler.B=40", "--out", out];
        place.ok(&args.iter().chain(more).copied().collect::<Vec<_>>());
    };
    run("one", &["--threads", "1"]);
    run("three", &["--threads", "3"]);
    let whole = place.read("one/samples.csv");
    assert_eq!(whole, place.read("three/samples.csv"));
    run("few", &["--set", "sampler.B=7"]);
    assert_eq!(
        place.read("few/samples.csv"),
        whole.lines().take(8).map(|l| l.to_owned() + "\n").collect::<String>()
    );
    for shard in ["1/2", "2/2"] {
        run("sharded", &["--shard", shard]);
    }
    place.ok(&["merge", "sharded", "--quiet"]);
    assert_eq!(place.read("sharded/samples.csv"), whole);
    place.ok(&["verify", "one"]);
    let explained = place.ok(&["explain", "one", "--draw", "3"]).stdout;
    assert!(explained.contains("effect.beta.treated"), "{explained}");
    // The resolved experiment is an experiment, with the same draws.
    place.write("again.toml", place.read("one/config.toml"));
    place.ok(&["run", "again.toml", "--quiet", "--out", "again"]);
    assert_eq!(place.read("again/samples.csv"), whole);
}

#[test]
fn rows_of_weight_0_are_no_rows_of_a_stage() {
    let place = place();
    let text = "name = \"x\"\nseed = 1\n[data]\ntrain = \"treatment.csv\"\n[[stage]]\nname = \"treated_mean\"\n\
                columns = [\"outcome\"]\nweight = \"treated\"\nmodel.mean = {}\n[sampler]\nB = 5\n";
    place.write("x.toml", text);
    place.ok(&["run", "x.toml", "--quiet", "--out", "run"]);
    place.ok(&["export", "x.toml", "--draws", "5", "--out", "export"]);
    let train = Table::read(&place.read("export/train.csv"));
    let (treated, outcome) = (train.column("treated"), train.column("outcome"));
    let found = Table::read(&place.read("run/samples.csv")).column("treated_mean.theta");
    for (w, found) in Table::read(&place.read("export/weights.csv")).1.iter().zip(found) {
        let sum = |of: &dyn Fn(usize) -> f64| {
            (0..treated.len()).map(|i| w[i + 1] * treated[i] * of(i)).sum::<f64>()
        };
        let by_hand = sum(&|i| outcome[i]) / sum(&|_| 1.0);
        assert!((found - by_hand).abs() < 1e-12 * by_hand.abs(), "{found} {by_hand}");
    }
}

#[test]
fn one_stage_is_its_model() {
    let place = place();
    let head = "name = \"x\"\nseed = 1\n[data]\ntrain = \"treatment.csv\"\ntarget = \"treated\"\nsplit = 0.25\n\
                standardise = \"numeric\"\n[sampler]\nB = 20\n";
    place.write("plain.toml", format!("{head}[model.logistic]\npenalty = \"ridge\"\n"));
    place
        .write("staged.toml", format!("{head}[[stage]]\nname = \"a\"\nmodel.logistic.penalty = \"ridge\"\n"));
    let run = |name: &str| {
        place.ok(&["run", &format!("{name}.toml"), "--quiet", "--out", name]);
        (
            Table::read(&place.read(&format!("{name}/samples.csv"))),
            Table::read(&place.read(&format!("{name}/report.csv"))),
        )
    };
    let ((plain, of_plain), (staged, of_staged)) = (run("plain"), run("staged"));
    for name in ["beta.age", "beta.severity", "beta.outcome", "intercept"] {
        for (a, b) in plain.column(name).iter().zip(staged.column(&format!("a.{name}"))) {
            assert!((a - b).abs() < 1e-6, "{name}: {a} {b}");
        }
    }
    for metric in ["lppd", "mse", "accuracy"] {
        let (a, b) = (of_plain.column(metric)[0], of_staged.column(metric)[0]);
        assert!((a - b).abs() < 1e-6, "{metric}: {a} {b}");
    }
}

#[test]
fn stages_predict_new_rows_one_after_the_other() {
    let place = place();
    place.ok(&["run", "more.toml", "--quiet", "--set", "sampler.B=9", "--out", "run"]);
    place.write("new.csv", "age,severity,treated\n50,0.5,1\n60,-1,0\n");
    let told = place.ok(&["predict", "run", "new.csv", "--draws"]).stdout;
    let text = place.ok(&["predict", "run", "new.csv"]).stdout;
    assert!(text.contains("propensity.probability") && text.contains("adjusted"), "{text}");
    assert!(told.contains("propensity.probability"), "{told}");
    // The first row's propensity in the first draw, by hand.
    let draws = Table::read(&place.read("run/samples.csv"));
    let of = |name: &str| draws.column(name)[0];
    let eta =
        50.0 * of("propensity.beta.age") + 0.5 * of("propensity.beta.severity") + of("propensity.intercept");
    let p = 1.0 / (1.0 + (-eta).exp());
    let mean = of("adjusted.beta.treated")
        + p * of("adjusted.beta.propensity.prediction")
        + of("adjusted.intercept");
    for value in [p, mean] {
        let digits = format!("{value:.6}");
        assert!(told.contains(&digits[..7.min(digits.len())]), "{digits}: {told}");
    }
}

#[test]
fn a_key_of_a_stage_is_set_and_varied_by_its_name() {
    let place = place();
    let set = "stage.effect.weight=\"1\"";
    place.ok(&["run", "ipw.toml", "--quiet", "--set", set, "--set", "sampler.B=3", "--out", "run"]);
    assert!(place.read("run/config.toml").contains("weight = \"1\""), "{}", place.read("run/config.toml"));
    let path = "\n[path]\nparameter = \"stage.propensity.model.logistic.gamma\"\nvalues = [0.001, 0.1]\n";
    let ridge = place.read("ipw.toml").replacen("penalty = \"none\"", "penalty = \"ridge\"", 1);
    place.write("path.toml", ridge + path);
    place.ok(&["run", "path.toml", "--quiet", "--set", "sampler.B=3", "--out", "path"]);
    assert!(place.read("path/path.csv").contains("propensity.beta.age"));
}

#[test]
fn mistakes_in_stages_are_pointed_at() {
    let place = place();
    let example = place.read("ipw.toml");
    let line_of = |text: &str, what: &str| 1 + text[..text.find(what).unwrap()].matches('\n').count();
    for (from, to, at, says) in [
        (
            "treated/propensity.prediction",
            "treated/propensty.prediction",
            "weight = ",
            "did you mean `propensity.prediction`?",
        ),
        (
            "\"treated/propensity.prediction",
            "\"-treated/propensity.prediction",
            "weight = ",
            "must be a number of at least 0",
        ),
        (
            "columns = [\"treated\"]",
            "columns = [\"traeted\"]",
            "columns = [\"traeted",
            "did you mean \"treated\"?",
        ),
        (
            "columns = [\"treated\"]",
            "columns = [\"effect.mean\"]",
            "columns = [\"effect",
            "does not come before this one",
        ),
        ("target = \"treated\"", "target = \"outcome\"", "[stage.model.logistic]", "cannot have a response"),
        (
            "name = \"effect\"",
            "name = \"propensity\"",
            "name = \"propensity\"\ncolumns = [\"treated",
            "two stages are called",
        ),
        ("name = \"effect\"", "name = \"the effect\"", "name = \"the", "letters, digits"),
        ("seed = 100", "method = \"nuts\"", "method", "no likelihood of all of them"),
        ("B = 2000", "B = 20\nR = 3", "R = 3", "starts at its fit to the unweighted data"),
        (
            "[sampler]",
            "[prior]\nalpha = 1.0\nbase = \"prior_predictive\"\n[sampler]",
            "base",
            "needs a likelihood of all responses at once",
        ),
        (
            "[sampler]",
            "[prior]\nalpha = 1.0\nbase = { normal = { mean = 0.0, sd = 1.0 } }\n[sampler]",
            "base",
            "stage \"propensity\" has a response",
        ),
        (
            "[sampler]",
            "[output]\ninfluence = true\n[sampler]",
            "influence",
            "the later move with the earlier",
        ),
        (
            "[stage.model.linear]\npenalty = \"none\"",
            "[stage.model.kmeans]\nK = 2",
            "[stage.model.kmeans]",
            "cannot be a stage",
        ),
        ("[sampler]", "[model.mean]\n[sampler]", "[[stage]]", "exclude each other"),
        ("target = \"outcome\"", "target = \"outcome\"\nsplit = 0.5", "split", "nothing to be tested by"),
        (
            "target = \"outcome\"",
            "target = \"outcome\"\noffset = \"age\"",
            "offset",
            "has no use with stages",
        ),
        (
            "[stage.model.linear]\npenalty = \"none\"",
            "[stage.model.gmm]\nK = 2\nvariance_floor = 1e-3",
            "[stage.model.gmm]",
            "cannot be a stage",
        ),
    ] {
        let text = example.replacen(from, to, 1);
        assert_ne!(text, example, "{from}");
        place.write("x.toml", &text);
        let ended = place.npl(&["check", "x.toml"]);
        ended.assert_decent(to);
        let place = format!("x.toml:{}:", line_of(&text, at));
        assert!(ended.code == Some(2) && ended.stderr.contains(says), "{to}: {}", ended.stderr);
        assert!(ended.stderr.contains(&place), "{to}: not at {place} {}", ended.stderr);
    }
    let neither = "name = \"x\"\n[data]\ntrain = \"treatment.csv\"\n[sampler]\nB = 3\n";
    place.write("x.toml", neither);
    let ended = place.npl(&["check", "x.toml"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("missing key `model`"), "{}", ended.stderr);
}
