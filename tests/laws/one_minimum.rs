//! Losses with one minimum: optimality conditions of the lasso and the elastic net to the tolerance of a search, on columns that nearly
//! depend on each other; another way to the same minimum; starts and blocks that do not matter.

use std::io::Write;

use crate::support::{run, study};
use crate::tempfile::NamedTempFile;
use npl::optim::Status;
use npl::samples::Sample;
use npl::study::Trial;

const D: usize = 7;
const N: usize = 150;

/// Numbers without a pattern between −1 and 1.
fn noise(i: usize) -> f64 {
    ((i * 7919 + 13) % 997) as f64 / 498.5 - 1.0
}

/// Three columns, and four that are sums of these but for a part in `1 / apart`.
fn data(apart: f64, counts: bool) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "a,b,c,d,e,f,g,y").unwrap();
    for i in 0..N {
        let [a, b, c] = [noise(i), noise(3 * i + 400), noise(5 * i + 90)];
        let near = |k: usize| apart * noise(11 * i + 170 * k);
        let x = [a, b, c, a + b + near(1), a - c + near(2), b + near(3), 0.5 * (a + b + c) + near(4)];
        let eta = x[3] - 0.5 * x[2] + 0.8 * noise(13 * i + 7);
        // One response in eleven is the other one, so that nothing separates them.
        let y =
            if counts { (1.5 * eta).exp().floor().min(9.0) } else { f64::from((eta > 0.1) != (i % 11 == 3)) };
        let cells: Vec<String> = x.iter().chain([&y]).map(f64::to_string).collect();
        writeln!(file, "{}", cells.join(",")).unwrap();
    }
    file
}

fn experiment(file: &NamedTempFile, family: &str, model: &str, draws: usize, rest: &str) -> String {
    format!(
        "name = \"t\"\nseed = 5\n[data]\ntrain = {:?}\ntarget = \"y\"\n[model.{family}]\n{model}\n[sampler]\nB = {draws}\n{rest}",
        file.path().display().to_string()
    )
}

/// The mass of every row of a draw and Σ w y there.
fn masses(trial: &Trial, draw: &Sample) -> (Vec<f64>, Vec<f64>) {
    let f = trial.prior.posterior_draw(&trial.train, trial.seed, draw.index);
    let (masses, _) = f.masses();
    (masses.mass, masses.response)
}

/// A(η), A′(η) and A″(η).
fn partition(family: &str, eta: f64) -> [f64; 3] {
    if family == "poisson" {
        return [eta.exp(); 3];
    }
    let s = 1.0 / (1.0 + (-eta).exp());
    [eta.max(0.0) + (-eta.abs()).exp().ln_1p(), s, s * (1.0 - s)]
}

/// A weighted regression, the definition.
struct Loss<'a> {
    trial: &'a Trial,
    family: &'a str,
    mass: Vec<f64>,
    sums: Vec<f64>,
    l1: f64,
    l2: f64,
}

impl Loss<'_> {
    fn x(&self, i: usize, j: usize) -> f64 {
        if j == D { 1.0 } else { self.trial.train.x[[i, j]] }
    }

    fn margin(&self, theta: &[f64], i: usize) -> f64 {
        (0..=D).map(|j| theta[j] * self.x(i, j)).sum()
    }

    /// Without the kinks.
    fn slope(&self, theta: &[f64], j: usize) -> f64 {
        let of_row = |i: usize| {
            let [_, slope, _] = partition(self.family, self.margin(theta, i));
            (self.mass[i] * slope - self.sums[i]) * self.x(i, j)
        };
        (0..N).map(of_row).sum::<f64>() + if j < D { self.l2 * theta[j] } else { 0.0 }
    }

    fn value(&self, theta: &[f64]) -> f64 {
        let of_row = |i: usize| {
            let margin = self.margin(theta, i);
            self.mass[i] * partition(self.family, margin)[0] - self.sums[i] * margin
        };
        let penalty = |t: &f64| self.l1 * t.abs() + 0.5 * self.l2 * t * t;
        (0..N).map(of_row).sum::<f64>() + theta[..D].iter().map(penalty).sum::<f64>()
    }

    /// By Newton steps of one coordinate after another, each with its kink, until none moves: slow, and nothing like what is tested.
    fn by_coordinates(&self) -> Vec<f64> {
        let mut theta = vec![0.0; D + 1];
        let mut margins = [0.0; N];
        for _ in 0..60_000 {
            let before = theta.clone();
            (0..=D).for_each(|j| self.move_one(j, &mut theta, &mut margins));
            if theta.iter().zip(&before).all(|(a, b)| (a - b).abs() < 1e-13) {
                break;
            }
        }
        theta
    }

    fn move_one(&self, j: usize, theta: &mut [f64], margins: &mut [f64; N]) {
        let (mut slope, mut curve) = (0.0, 1e-300);
        for (i, margin) in margins.iter().enumerate() {
            let [_, by_margin, bend] = partition(self.family, *margin);
            slope += (self.mass[i] * by_margin - self.sums[i]) * self.x(i, j);
            curve += self.mass[i] * bend * self.x(i, j) * self.x(i, j);
        }
        let (l1, l2) = if j < D { (self.l1, self.l2) } else { (0.0, 0.0) };
        let (slope, curve) = (slope + l2 * theta[j], curve + l2);
        let wanted = curve * theta[j] - slope;
        let to = (wanted.abs() - l1).max(0.0).copysign(wanted) / curve;
        for (i, margin) in margins.iter_mut().enumerate() {
            *margin += (to - theta[j]) * self.x(i, j);
        }
        theta[j] = to;
    }
}

const PENALTIES: [(&str, f64, f64); 4] = [
    ("penalty = \"lasso\"\ngamma = 0.003", 0.003, 0.0),
    ("penalty = \"lasso\"\ngamma = 0.05", 0.05, 0.0),
    ("penalty = { elastic_net = { ratio = 0.7 } }\ngamma = 0.01", 0.007, 0.003),
    ("penalty = { elastic_net = { ratio = 0.1 } }\ngamma = 0.04", 0.004, 0.036),
];

/// Calls with the loss of every draw and where its search ended.
fn each_draw(apart: f64, draws: usize, mut check: impl FnMut(&Loss, &Sample, &str)) {
    for (family, counts) in [("logistic", false), ("poisson", true)] {
        let file = data(apart, counts);
        for (model, l1, l2) in PENALTIES {
            let text = experiment(&file, family, model, draws, "");
            let trial = study(&text).trial(0).unwrap();
            for draw in run(&text) {
                let (mass, sums) = masses(&trial, &draw);
                let loss = Loss { trial: &trial, family, mass, sums, l1, l2 };
                check(&loss, &draw, &format!("{family}, {model}, apart {apart}, draw {}", draw.index));
            }
        }
    }
}

/// |slope| ≤ λ where a coefficient is 0, −λ sign β where not, to 10⁻⁸: a search ends at 10⁻⁹.
#[test]
fn the_lasso_and_the_elastic_net_meet_their_optimality_conditions_whatever_the_correlations() {
    for apart in [0.3, 1e-3, 1e-6] {
        let (mut zeros, mut others) = (0, 0);
        each_draw(apart, 20, |loss, draw, which| {
            assert_eq!(draw.status, Status::Ok, "{which}");
            assert!(loss.slope(&draw.theta, D).abs() < 1e-8, "{which}: intercept");
            for (j, beta) in draw.theta[..D].iter().enumerate() {
                let slope = loss.slope(&draw.theta, j);
                if *beta == 0.0 {
                    zeros += 1;
                    assert!(slope.abs() <= loss.l1 + 1e-8, "{which}: {slope} at {j}");
                } else {
                    others += 1;
                    assert!((slope + loss.l1 * beta.signum()).abs() < 1e-8, "{which}: {slope} at {j}");
                }
            }
        });
        assert!(zeros > 200 && others > 200, "{zeros} and {others}");
    }
}

#[test]
fn another_way_leads_to_the_same_minimum() {
    each_draw(2.0, 2, |loss, draw, which| {
        let other = loss.by_coordinates();
        let (ours, theirs) = (loss.value(&draw.theta), loss.value(&other));
        assert!((ours - theirs).abs() < 1e-10, "{which}: {ours} and {theirs}");
        let apart = draw.theta.iter().zip(&other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-5, "{which}: {apart}");
    });
}

/// Starts and neighbours are not seen in a single bit.
#[test]
fn neither_starts_nor_blocks_matter_where_there_is_one_minimum() {
    let file = data(0.1, false);
    for penalty in
        ["penalty = \"lasso\"\ngamma = 0.01", "penalty = \"ridge\"\ngamma = 0.01", "penalty = \"none\""]
    {
        let theta = |draws: usize, rest: &str| -> Vec<Vec<f64>> {
            run(&experiment(&file, "logistic", penalty, draws, rest)).into_iter().map(|d| d.theta).collect()
        };
        let long = theta(40, "");
        for draws in [1, 7, 16, 33] {
            assert_eq!(theta(draws, ""), long[..draws], "{penalty}: B = {draws}");
        }
        assert_eq!(theta(9, "init.beta = { uniform = [-3.0, 9.0] }"), long[..9], "{penalty}");
    }
    let sharp = "penalty = { student_t = { a = 1.0, b = 0.001 } }";
    let ends = |rest: &str| run(&experiment(&file, "logistic", sharp, 9, rest))[3].theta.clone();
    assert_ne!(
        ends(""),
        ends("init.beta = { uniform = [-3.0, 9.0] }"),
        "of several minima a start chooses one"
    );
}
