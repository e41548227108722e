//! Settings of a path that begin where their neighbours ended.

use crate::support::{Place, cells};

const EXPERIMENT: &str = r#"name = "p"
seed = 3
[data]
train = "x.csv"
target = "y"
[model.logistic]
penalty = "ridge"
gamma = 1.0
[path]
parameter = "model.logistic.gamma"
geometric = { first = 1.0, ratio = 0.5, count = 6 }
keep = ["beta.a", "beta.b", "beta.c", "intercept"]
warm = true
[optimiser]
tolerance = 1e-6
[sampler]
B = 70
"#;

fn place(text: &str) -> Place {
    let mut rows = String::from("a,b,c,y\n");
    for i in 0..50u32 {
        let (a, b, c) = (i * 37 % 61, i * 17 % 59, i * 29 % 31);
        rows += &format!("{a},{b},{c},{}\n", u8::from(a + i * 13 % 43 > 50));
    }
    let place = Place::new();
    place.write("x.csv", rows).write("p.toml", text);
    place
}

fn student_t() -> String {
    EXPERIMENT
        .replace(
            "penalty = \"ridge\"\ngamma = 1.0",
            "penalty = { student_t = { a = 1.0, b = 1.0 } }\ngamma = 0.05",
        )
        .replace("model.logistic.gamma", "model.logistic.penalty.student_t.b")
        .replace("train = \"x.csv\"", "train = \"x.csv\"\nstandardise = \"all\"")
}

/// A column of a table of draws.
fn column(text: &str, name: &str) -> Vec<f64> {
    let rows = cells(text);
    let j = rows[0].iter().position(|cell| *cell == name).unwrap();
    rows[1..].iter().map(|row| row[j].parse().unwrap()).collect()
}

/// A loss with one minimum ends in it from anywhere, in fewer steps from nearby.
#[test]
fn one_minimum_is_the_same_and_costs_less() {
    for penalty in ["\"ridge\"", "\"lasso\"", "{ elastic_net = { ratio = 0.5 } }"] {
        let text = EXPERIMENT.replace("\"ridge\"", penalty).replace("first = 1.0", "first = 0.1");
        let place = place(&text);
        place.write("cold.toml", text.replace("warm = true\n", ""));
        place.ok(&["run", "p.toml", "--out", "warm"]);
        place.ok(&["run", "cold.toml", "--out", "cold"]);
        let (warm, cold) = (place.read("warm/samples.csv"), place.read("cold/samples.csv"));
        for name in ["beta.a", "beta.b", "beta.c", "intercept", "objective__"] {
            for (a, b) in column(&warm, name).iter().zip(column(&cold, name)) {
                assert!((a - b).abs() <= 1e-8 * b.abs().max(1.0), "{penalty}, {name}: {a} {b}");
            }
        }
        let steps = |text: &str| column(text, "iterations__")[70..].iter().sum::<f64>();
        assert!(steps(&warm) < steps(&cold), "{penalty}: {} {}", steps(&warm), steps(&cold));
        // The first setting has nothing to go on from.
        let first = |text: &str| text.lines().take(71).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(first(&warm), first(&cold), "{penalty}");
    }
}

/// Where there are several minima the bytes still depend on nothing but the experiment.
#[test]
fn threads_shards_and_stops_change_no_byte() {
    for text in [student_t(), student_t().replace("B = 70", "B = 70\nR = 3")] {
        let place = place(&text);
        place.ok(&["run", "p.toml", "--out", "a", "--threads", "1"]);
        let expected = place.read("a/samples.csv");
        place.ok(&["run", "p.toml", "--out", "b", "--threads", "3"]);
        for shard in ["3/3", "1/3", "2/3"] {
            let ended = place.ok(&["run", "p.toml", "--out", "s", "--shard", shard]);
            // Shards are of draws: 3 chunks of them, 32, 32 and 6, through 6 settings.
            let draws = if shard == "3/3" { "36 draws" } else { "192 draws" };
            assert!(ended.stdout.contains(draws), "{}", ended.stdout);
        }
        place.ok(&["merge", "s"]);
        place.ok(&["run", "p.toml", "--out", "fewer", "--set", "sampler.B=40"]);
        place.ok(&["run", "p.toml", "--out", "fewer", "--resume"]);
        for other in ["b", "s", "fewer"] {
            assert_eq!(place.read(&format!("{other}/samples.csv")), expected, "{other}");
            assert_eq!(place.read(&format!("{other}/path.csv")), place.read("a/path.csv"), "{other}");
        }
        let verified = place.ok(&["verify", "a", "--draws", "40"]);
        assert!(verified.stdout.contains("40 draws made again"), "{}", verified.stdout);
        let cold = text.replace("warm = true\n", "");
        place.write("cold.toml", cold);
        place.ok(&["run", "cold.toml", "--out", "cold"]);
        assert_ne!(place.read("cold/samples.csv"), expected);
        let refused = place.npl(&["run", "p.toml", "--out", "cold", "--resume"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    }
}

#[test]
fn a_draw_explains_where_it_began() {
    let place = place(&student_t());
    place.ok(&["run", "p.toml", "--out", "a"]);
    let objectives = column(&place.read("a/samples.csv"), "objective__");
    for setting in [1, 2, 6] {
        let t = setting.to_string();
        let told = place.ok(&["explain", "a", "--repeat", &t, "--draw", "5"]).stdout;
        let objective = format!("{:.9}", objectives[70 * (setting - 1) + 4]);
        assert!(told.contains(&objective), "setting {setting}: {objective} is not in\n{told}");
    }
}

/// What cannot begin at a neighbour's minimum is refused, at its line.
#[test]
fn what_has_no_neighbour_is_refused() {
    let path = |parameter: &str, values: &str| {
        EXPERIMENT
            .replace("model.logistic.gamma", parameter)
            .replace("geometric = { first = 1.0, ratio = 0.5, count = 6 }", &format!("values = {values}"))
    };
    let plain = |model: &str, parameter: &str, values: &str| {
        format!(
            "name = \"p\"\nseed = 3\n[data]\ntrain = \"x.csv\"\ncolumns = [\"a\", \"b\"]\n{model}\n[path]\nparameter = \
             \"{parameter}\"\nvalues = {values}\nwarm = true\n[sampler]\nB = 20\n"
        )
    };
    let gmm = "[model.gmm]\nK = 2\nvariance_floor = 1e-6";
    let cases = [
        (path("sampler.B", "[60, 40]"), "no part of it"),
        (path("data.standardise", "[\"none\", \"all\"]"), "the same rows and weights"),
        (path("seed", "[1, 2]"), "the same rows and weights"),
        (path("method", "[\"npl\", \"npl\"]"), "no part of it"),
        (format!("method = \"nuts\"\n{EXPERIMENT}"), "\"nuts\""),
        (format!("method = \"mdp-npl\"\n{EXPERIMENT}"), "\"mdp-npl\""),
        (plain("[model.quantile]\nq = 0.5", "model.quantile.q", "[0.4, 0.5]"), "without a start"),
        (plain("[model.normal]\nsigma2 = 1.0", "model.normal.sigma2", "[1.0, 2.0]"), "without a start"),
        (plain(gmm, "model.gmm.K", "[2, 3]"), "the same parameters"),
        (EXPERIMENT.replace("warm = true", "warm = \"yes\""), "warm"),
        (EXPERIMENT.replace("warm = true", "worm = true"), "did you mean `warm`?"),
    ];
    for (text, message) in cases {
        let place = place(&text);
        let ended = place.npl(&["run", "p.toml"]);
        assert_eq!(ended.code, Some(2), "{message}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{message}: {}", ended.stderr);
        assert!(ended.stderr.contains("p.toml:"), "{message}: a place in the file: {}", ended.stderr);
    }
    // What differs in its loss alone is not.
    for text in
        [plain(gmm, "model.gmm.variance_floor", "[1e-3, 1e-6]"), path("optimiser.tolerance", "[0.1, 1e-4]")]
    {
        let place = place(&text);
        place.ok(&["run", "p.toml"]);
    }
}
