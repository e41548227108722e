//! Metrics by the kind of response: what `report.csv` says is what its draws and test rows give by hand.

use crate::support::{Place, cells};

/// A column of x and one of responses, for training and for testing.
fn files(place: &Place, responses: [&str; 2]) {
    for (name, rows) in ["train.csv", "test.csv"].into_iter().zip(responses) {
        place.write(name, format!("x,y,seen\n{}", rows.replace(' ', "\n")));
    }
}

const COUNTS: [&str; 2] =
    ["0.1,1,1 0.9,4,1 -0.4,0,1 1.3,5,1 0.2,2,1 -1.1,1,1 0.7,3,1", "0.5,2,1 -0.3,1,1 1.0,6,1"];
const CENSORED: [&str; 2] =
    ["0.1,1.5,1 0.9,4.2,1 -0.4,0.3,0 1.3,5.1,1 0.2,2.2,1 -1.1,0.8,1", "0.5,2,1 -0.3,1.1,0"];

fn experiment(model: &str, more: &str) -> String {
    format!(
        "name = \"t\"\nseed = 3\n[data]\ntrain = \"train.csv\"\ntest = \"test.csv\"\ntarget = \"y\"\n{more}\n\
         [sampler]\nB = 40\n[model.{model}]\npenalty = \"ridge\"\n"
    )
}

/// Posterior mean of the predicted mean of every test row, then the mean of squared distances to the responses.
fn by_hand(place: &Place, mean: impl Fn(f64, &[f64]) -> f64) -> f64 {
    let (samples, test) = (place.read("runs/t/samples.csv"), place.read("test.csv"));
    let number = |cell: &&str| cell.parse::<f64>().unwrap();
    let draws: Vec<Vec<f64>> =
        cells(&samples)[1..].iter().map(|row| row[9..].iter().map(number).collect()).collect();
    let rows = cells(&test);
    let squares = rows[1..].iter().map(|row| {
        let predicted: f64 = draws.iter().map(|theta| mean(number(&row[0]), theta)).sum::<f64>() / 40.0;
        (number(&row[1]) - predicted).powi(2)
    });
    squares.sum::<f64>() / (rows.len() - 1) as f64
}

/// `mse` and `accuracy` of the one repeat.
fn reported(place: &Place) -> (String, String) {
    let text = place.read("runs/t/report.csv");
    let rows = cells(&text);
    let at = |name: &str| rows[1][rows[0].iter().position(|c| *c == name).unwrap()].to_owned();
    (at("mse"), at("accuracy"))
}

#[test]
fn counts_and_times_have_a_squared_error_in_their_own_units() {
    let rate = |x: f64, theta: &[f64]| (theta[0] * x + theta[1]).exp();
    let time = |x: f64, theta: &[f64]| rate(x, theta) * libm::tgamma(1.0 + 1.0 / theta[2]);
    for (model, mean) in [("poisson", &rate as &dyn Fn(f64, &[f64]) -> f64), ("weibull", &time)] {
        let place = Place::new();
        let rows = COUNTS
            .map(|rows| if model == "poisson" { rows.to_owned() } else { rows.replace(",0,", ",0.5,") });
        files(&place, rows.each_ref().map(String::as_str));
        place.write("x.toml", experiment(model, "columns = [\"x\"]"));
        place.ok(&["run", "x.toml"]);
        let (mse, accuracy) = reported(&place);
        let expected = by_hand(&place, mean);
        assert!(
            (mse.parse::<f64>().unwrap() / expected - 1.0).abs() < 1e-12,
            "{model}: {mse} for {expected}"
        );
        assert_eq!(accuracy, "", "{model}");
    }
}

/// A censored response is not known, so that there is no squared error; it is refused where it is asked for by name.
#[test]
fn censored_test_rows_have_no_squared_error() {
    let place = Place::new();
    files(&place, CENSORED);
    place.write("x.toml", experiment("weibull", "columns = [\"x\"]\nevent = \"seen\""));
    place.ok(&["run", "x.toml"]);
    assert_eq!(reported(&place).0, "");
    let refused = place.npl(&["run", "x.toml", "--set", "evaluate.metrics=[\"mse\"]", "--out", "other"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("some are censored"), "{}", refused.stderr);
    let refused = place.npl(&["run", "x.toml", "--set", "evaluate.metrics=[\"accuracy\"]", "--out", "other"]);
    assert!(refused.stderr.contains("0 or 1"), "{}", refused.stderr);
}

/// Without covariates there is still an intercept, and a shape, for every model with a response.
#[test]
fn a_response_alone_has_a_posterior() {
    let place = Place::new();
    files(&place, CENSORED);
    for (model, target) in
        [("weibull", "y"), ("exponential", "y"), ("gamma", "y"), ("linear", "y"), ("logistic", "seen")]
    {
        let text =
            experiment(model, "columns = []").replace("target = \"y\"", &format!("target = \"{target}\""));
        place.write("x.toml", text);
        let ended = place.npl(&["run", "x.toml", "--force", "--set", "evaluate.metrics=[]"]);
        assert_eq!(ended.code, Some(0), "{model}: {}", ended.stderr);
        ended.assert_decent(model);
    }
}
