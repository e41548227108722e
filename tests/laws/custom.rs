//! Losses in the experiment file: those that are built in too, draw by draw; kinks; and rows of several origins.

use std::fmt::Write;

use crate::support::*;

use npl::data::Dataset;
use npl::optim::Status;
use npl::samples::Sample;

/// Two covariates, a continuous response and a binary one, without a pattern.
fn rows(n: usize) -> crate::tempfile::NamedTempFile {
    let noise = |i: usize| ((i * 7919 + 13) % 9973) as f64 / 2500.0 - 2.0;
    let mut text = "a,b,r,c\n".to_owned();
    for i in 0..n {
        let (a, b, e) = (noise(3 * i), noise(5 * i + 1), noise(11 * i + 4));
        writeln!(text, "{a:?},{b:?},{:?},{}", 1.0 + 2.0 * a - b + e, u8::from(a + e > 0.2)).unwrap();
    }
    let file = crate::tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn draws(file: &crate::tempfile::NamedTempFile, data: &str, rest: &str) -> Vec<Sample> {
    run(&format!(
        "name = \"t\"\nseed = 3\n[data]\ntrain = {:?}\n{data}\n[optimiser]\ntolerance = 1e-6\n[sampler]\nB = 40\n{rest}",
        file.path().display().to_string()
    ))
}

/// Every entry of every draw, to `within`.
fn agree(custom: &[Sample], built_in: &[Sample], within: f64) {
    assert_eq!(custom.len(), built_in.len());
    for (ours, theirs) in custom.iter().zip(built_in) {
        assert_eq!(ours.status, Status::Ok, "draw {}", ours.index);
        assert_eq!(ours.theta.len(), theirs.theta.len());
        for (a, b) in ours.theta.iter().zip(&theirs.theta) {
            assert!((a - b).abs() <= within * b.abs().max(1.0), "draw {}: {a} for {b}", ours.index);
        }
    }
}

#[test]
fn what_is_built_in_can_be_written() {
    let file = rows(300);
    let one = "columns = [\"r\"]";
    let theta = "[model.custom]\nparameters = { theta = { real = 1 } }\n";
    let custom = |loss: &str| draws(&file, one, &format!("{theta}loss = {loss:?}"));
    agree(&custom("sq(r - theta)"), &draws(&file, one, "[model.mean]"), 1e-8);
    agree(&custom("-normal_lpdf(r, theta, 1.3)"), &draws(&file, one, "[model.normal]\nsigma2 = 1.69"), 1e-8);
    let median = draws(&file, one, "[model.median]");
    agree(&custom("abs(r - theta)"), &median, 0.0);
    agree(&custom("max(r - theta, theta - r)"), &median, 0.0);
    let quantile = draws(&file, one, "[model.quantile]\nq = 0.9");
    agree(&custom("(r - theta)*(0.9 - (r < theta))"), &quantile, 0.0);
    agree(&custom("if(r < theta, 0.1*(theta - r), 0.9*(r - theta))"), &quantile, 0.0);
    agree(&custom("max(0.9*(r - theta), 0.1*(theta - r))"), &quantile, 0.0);
}

const BETA: &str = "[model.custom]\nparameters = { beta = { real = \"x\" }, intercept = { real = 1 } }\n";

#[test]
fn logistic_regression_can_be_written() {
    let file = rows(300);
    let data = "columns = [\"a\", \"b\"]\ntarget = \"c\"";
    let loss = "loss = \"let eta = intercept + dot(beta, x); softplus(eta) - y*eta\"\n";
    let student = "penalty = \"1.5*sum(log(1 + beta^2/2))\"\ngamma = 0.02\nlikelihood = true\n";
    let built_in = "[model.logistic]\npenalty = { student_t = { a = 1.0, b = 1.0 } }\ngamma = 0.02";
    let theirs = draws(&file, data, built_in);
    agree(&draws(&file, data, &format!("{BETA}{loss}{student}")), &theirs, 1e-8);
    // By name, and with the covariates one by one.
    let named = "[model.custom]\nparameters = { b1 = { real = 1 }, b2 = { real = 1 }, intercept = { real = 1 } }\n\
                 loss = \"-(c*log(expit(intercept + b1*a + b2*b)) + (1 - c)*log1p(-expit(intercept + b1*a + b2*b)))\"\n\
                 penalty = \"1.5*(log1p(b1^2/2) + log1p(b2^2/2))\"\ngamma = 0.02";
    agree(&draws(&file, data, named), &theirs, 1e-8);
}

/// A row with so much leverage that its weight decides on the Hessian, and a penalty with a sharp bend: with second derivatives a loss of
/// one's own takes about as many evaluations as the one that is built in, 12 for 11 here..
#[test]
fn a_loss_takes_no_more_steps_than_the_built_in_one() {
    let file = rows(300);
    let text = std::fs::read_to_string(file.path()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut cells: Vec<&str> = lines[8].split(',').collect();
    cells[1] = "60.0";
    lines[8] = cells.join(",");
    std::fs::write(file.path(), lines.join("\n")).unwrap();
    let data = "columns = [\"a\", \"b\"]\ntarget = \"c\"";
    let loss = "loss = \"let eta = intercept + dot(beta, x); softplus(eta) - y*eta\"\n";
    let ours =
        draws(&file, data, &format!("{BETA}{loss}penalty = \"1.5*sum(log(1 + beta^2/2))\"\ngamma = 0.02"));
    let theirs =
        draws(&file, data, "[model.logistic]\npenalty = { student_t = { a = 1.0, b = 1.0 } }\ngamma = 0.02");
    agree(&ours, &theirs, 1e-8);
    let steps = |draws: &[Sample]| draws.iter().map(|draw| draw.iterations).sum::<usize>();
    assert!(2 * steps(&ours) <= 3 * steps(&theirs), "{} for {}", steps(&ours), steps(&theirs));
}

#[test]
fn linear_regression_can_be_written() {
    let file = rows(300);
    let data = "columns = [\"a\", \"b\"]\ntarget = \"r\"";
    let custom = |rest: &str| draws(&file, data, &format!("{BETA}{rest}"));
    let least = draws(&file, data, "[model.linear]\npenalty = \"none\"");
    agree(&custom("loss = \"sq(y - intercept - dot(beta, x))\""), &least, 1e-8);
    let normal = "[model.custom]\nparameters = { beta = { real = \"x\" }, intercept = { real = 1 }, sigma = { positive = 1 } }\n\
                  loss = \"-normal_lpdf(y, intercept + dot(beta, x), sigma)\"\npenalty = \"sum(sq(beta))/2\"\ngamma = 0.02\n";
    let ridge = "[model.linear]\nsigma = \"estimated\"\npenalty = \"ridge\"\ngamma = 0.02";
    agree(&draws(&file, data, normal), &draws(&file, data, ridge), 1e-8);
}

/// The normal equations of every draw.
#[test]
fn least_squares_solve_their_normal_equations() {
    let file = rows(300);
    let data = "columns = [\"a\", \"b\"]\ntarget = \"r\"";
    let text = format!(
        "name = \"t\"\nseed = 3\n[data]\ntrain = {:?}\n{data}\n[sampler]\nB = 20\n{BETA}loss = \"sq(y - intercept - dot(beta, x))\"",
        file.path().display().to_string()
    );
    let trial =
        study(&text).trial(0).unwrap().scheme(&pool(1), &std::sync::atomic::AtomicBool::new(false)).unwrap();
    let y = trial.train.y.as_ref().unwrap();
    for draw in 0..20 {
        let f = trial.plan().measure(draw);
        let theta = trial.model.minimise(&f, &trial.plan().start(draw, 0)).theta;
        let mut scores = [0.0; 3];
        for (i, w) in f.weights().0.iter().enumerate() {
            let x = trial.train.x.row(i);
            let r = y[i] - theta[2] - theta[0] * x[0] - theta[1] * x[1];
            [x[0], x[1], 1.0].iter().zip(&mut scores).for_each(|(x, s)| *s += w * x * r);
        }
        assert!(scores.iter().all(|s| s.abs() < 1e-9), "{scores:?}");
    }
}

/// Least absolute deviations: as many residuals of 0 as parameters, and no neighbouring line is better.
#[test]
fn least_absolute_deviations_end_at_a_vertex() {
    let file = rows(120);
    let data = "columns = [\"a\", \"b\"]\ntarget = \"r\"";
    let found = draws(&file, data, &format!("{BETA}loss = \"abs(y - intercept - dot(beta, x))\""));
    let text = std::fs::read_to_string(file.path()).unwrap();
    let cells: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    for draw in &found {
        assert_eq!(draw.status, Status::Ok, "draw {}", draw.index);
        let residual =
            |row: &Vec<f64>| row[2] - draw.theta[2] - draw.theta[0] * row[0] - draw.theta[1] * row[1];
        let zeros = cells.iter().filter(|row| residual(row).abs() < 1e-12).count();
        assert!(zeros >= 3, "draw {}: {zeros} residuals are 0", draw.index);
    }
}

/// Supports are kept to, and entries of a simplex and of an increasing vector are what they should be: closed forms.
#[test]
fn every_support_has_its_minimum() {
    let data = Dataset::from_values(vec![1.0, 2.0, 4.0, 1.5, 0.5]);
    let fit = |parameters: &str, loss: &str, start: &[f64]| {
        let text = format!("[custom]\nparameters = {{ p = {{ {parameters} }} }}\nloss = {loss:?}");
        let model = model_with(&text, &data, &optimiser("tolerance = 1e-6"));
        let minimum = model.minimise(&npl::process::Measure::empirical(&data), start);
        assert_eq!(minimum.status, Status::Ok, "{loss}");
        minimum.theta
    };
    let close = |found: Vec<f64>, wanted: &[f64]| {
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-7), "{found:?} for {wanted:?}");
    };
    // The mean is 1.8, and below 2 are three of five.
    close(fit("positive = 1", "y/p + log(p)", &[0.3]), &[1.8]);
    close(fit("unit = 1", "-if(y < 2, log(p), log1p(-p))", &[0.5]), &[0.6]);
    let shares = "-if(y < 1, log(p.1), if(y < 2, log(p.2), log(p.3)))";
    close(fit("simplex = 3", shares, &[0.2, 0.3, 0.5]), &[0.2, 0.4, 0.4]);
    close(fit("ordered = 2", "sq(y - p.1) + sq(y + 1 - p.2)", &[0.0, 1.0]), &[1.8, 2.8]);
    close(fit("real = 2", "sum((y*[1, 2] - p)^2)", &[0.0, 9.0]), &[1.8, 3.6]);
}

/// NUTS and ADVI on a likelihood of one's own: normal with known mean and variance has a known posterior.
#[test]
fn a_likelihood_serves_conventional_bayes() {
    let file = rows(50);
    let rest = "[model.custom]\nparameters = { theta = { real = 1 } }\nloss = \"-normal_lpdf(r, theta, 2)\"\n\
                penalty = \"theta^2/2/9\"\nlikelihood = true\n";
    let of = |method: &str, draws: usize, rest: &str| {
        run(&format!(
            "name = \"t\"\nseed = 5\nmethod = \"{method}\"\n[data]\ntrain = {:?}\ncolumns = [\"r\"]\n[sampler]\nB = {draws}\n{rest}",
            file.path().display().to_string()
        ))
    };
    let ours = of("nuts", 2000, rest);
    let theirs = of("nuts", 2000, "[model.normal]\nsigma2 = 4.0\nprior.tau2 = 9.0\n");
    let (a, b) = (entry(&ours, 0), entry(&theirs, 0));
    // The same log density, the same streams: the same chain, up to rounding.
    assert!(
        (npl::math::mean(&a) - npl::math::mean(&b)).abs() < 0.02,
        "{} {}",
        npl::math::mean(&a),
        npl::math::mean(&b)
    );
    assert!((npl::math::sd(&a) / npl::math::sd(&b) - 1.0).abs() < 0.1);
}
