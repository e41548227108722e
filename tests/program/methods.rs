//! One experiment, every method: what is written, what is said, what is refused.

use crate::support::Place;

const TOY: &str = r#"
name = "toy"
seed = 5
[data.simulate.mixture]
n = 120
n_test = 40
pi = [0.4, 0.6]
mu = [0.0, 4.0]
sigma2 = [1.0, 1.0]
[model.gmm]
K = 2
variance_floor = 1e-6
[model.gmm.prior]
[prior]
alpha = 20.0
T = 50
base = { normal = { mean = 0.0, sd = 1.0 } }
[sampler]
B = 40
R = 2
[nuts]
chains = 2
warmup = 60
[advi]
max_iterations = 300
[importance]
proposal.pi = { dirichlet = 1.0 }
proposal.mu = { normal = [2.0, 3.0] }
proposal.sigma2 = { log_normal = [0.0, 1.0] }
"#;

const METHODS: [(&str, &str, &str); 5] = [
    ("npl", "RR-NPL R=2 alpha=20", "restarts__,hits__,gradient__"),
    ("nuts", "NUTS", "divergent__,stepsize__"),
    ("advi", "ADVI", "log_q__"),
    ("importance", "IS", "log_weight__"),
    ("mdp-npl", "MDP-NPL R=2 alpha=20", "restarts__,hits__,gradient__"),
];

fn toy() -> Place {
    let place = Place::new();
    place.write("toy.toml", TOY);
    place
}

#[test]
fn one_word_changes_the_method() {
    let place = toy();
    let common = "repeat__,draw__,objective__,restart__,iterations__,status__";
    let names = "pi.1,pi.2,mu.1.1,mu.2.1,sigma2.1.1,sigma2.2.1";
    for (method, label, own) in METHODS {
        let set = format!("method={method}");
        place.ok(&["run", "toy.toml", "--set", &set, "--out", method]);
        let samples = place.read(&format!("{method}/samples.csv"));
        assert_eq!(samples.lines().next(), Some(&format!("{common},{own},{names}")[..]), "{method}");
        let report = place.read(&format!("{method}/report.csv"));
        let line: Vec<&str> = report.lines().nth(1).unwrap().split(',').collect();
        assert_eq!(line[..6], ["1", "5", method, "120", "40", "40"], "{method}");
        let lppd: f64 = line[6].parse().unwrap();
        assert!((-2.6..-1.7).contains(&lppd), "{method}: {lppd}");
        assert!(place.read(&format!("{method}/report.json")).contains(&format!("{label:?}")), "{method}");
        assert_eq!(place.exists(&format!("{method}/elbo.csv")), method == "advi", "{method}");
        let said = place.ok(&["summary", method]).stdout;
        assert_eq!(said.contains("R-hat at most"), matches!(method, "nuts" | "mdp-npl"), "{said}");
        assert_eq!(said.contains("log marginal likelihood"), method == "importance", "{said}");
        // The resolved experiment gives the same bytes again.
        place.ok(&["run", &format!("{method}/config.toml"), "--out", "again", "--force"]);
        assert_eq!(place.read("again/samples.csv"), samples, "{method}");
    }
    let table = place.ok(&["table", "npl", "nuts", "advi", "importance", "mdp-npl"]).stdout;
    for (_, label, _) in METHODS {
        assert!(table.contains(label), "{table}");
    }
    assert!(table.contains("ESS of weights") && table.contains("R-hat at most"), "{table}");
}

#[test]
fn threads_change_nothing() {
    let place = toy();
    for (method, _, _) in METHODS {
        let run = |threads: &str| {
            let set = format!("method={method}");
            place.ok(&["run", "toy.toml", "--set", &set, "--out", "o", "--force", "--threads", threads]);
            (place.read("o/samples.csv"), place.read("o/summary.csv"))
        };
        let one = run("1");
        assert_eq!(run("2"), one, "{method}");
        assert_eq!(run("5"), one, "{method}");
    }
}

/// Draws of one chain are the first of more, and chains stand one after the other.
#[test]
fn chains_are_told_apart() {
    let place = toy();
    place.ok(&["run", "toy.toml", "--set", "method=nuts", "--out", "o"]);
    let samples = place.read("o/samples.csv");
    let cell = |line: &str, j: usize| line.split(',').nth(j).unwrap().to_owned();
    let chains: Vec<String> = samples.lines().skip(1).map(|l| cell(l, 3)).collect();
    assert_eq!(chains, [vec!["1"; 20], vec!["2"; 20]].concat());
    let header = place.read("o/summary.csv").lines().next().unwrap().to_owned();
    assert!(header.ends_with(",rhat,ess_bulk,ess_tail"), "{header}");
    place.ok(&["run", "toy.toml", "--set", "method=nuts", "--set", "nuts.chains=1", "--out", "one"]);
    let one = place.read("one/samples.csv");
    let theta = |text: &str| text.lines().skip(1).take(20).map(|l| l.to_owned()).collect::<Vec<_>>();
    assert_eq!(theta(&one), theta(&samples));
}

/// What draws are to each other is written with the run; of a run that does not say it, its columns tell.
#[test]
fn a_run_says_what_its_draws_are_to_each_other() {
    let place = toy();
    for (method, relation) in [
        ("npl", r#""draws": "independent","exchangeable": true"#),
        ("nuts", r#""draws": {"chains": {"chains": 2,"each": 20}},"exchangeable": false"#),
        ("importance", r#""draws": "weighted","exchangeable": false"#),
        ("mdp-npl", r#""draws": "independent","exchangeable": true"#),
    ] {
        place.ok(&["run", "toy.toml", "--set", &format!("method={method}"), "--out", method]);
        let flat = |text: String| text.lines().map(str::trim).collect::<String>();
        for file in ["report.json", "manifest.json"] {
            let text = flat(place.read(&format!("{method}/{file}")));
            let components = r#""components": {"diagonal_gaussian": {"count": 2,"columns": 1}}"#;
            let whole = format!(r#""relation": {{{relation},{components}}}"#);
            assert!(text.contains(&whole), "{method} {file}: {text}");
        }
        let said = place.ok(&["summary", method]).stdout;
        assert_eq!(said.contains("components are exchangeable"), relation.ends_with("true"), "{said}");
        if method == "mdp-npl" {
            continue;
        }
        // As earlier versions left it.
        place.unseal(method);
        for file in ["report.json", "manifest.json"] {
            let name = format!("{method}/{file}");
            let mut text: serde_json::Value = serde_json::from_str(&place.read(&name)).unwrap();
            text.as_object_mut().unwrap().remove("relation").unwrap();
            place.write(&name, text.to_string());
        }
        assert_eq!(place.ok(&["summary", method]).stdout, said, "{method}");
    }
}

/// Draws that count by their weights are no draws from the posterior one by one.
#[test]
fn a_centre_has_no_weights() {
    let place = toy();
    place.ok(&["run", "toy.toml", "--set", "method=importance", "--out", "is"]);
    let set = "mdp.centre={ run = \"is\" }";
    let ended = place.npl(&["check", "toy.toml", "--set", "method=mdp-npl", "--set", set]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("the draws of is have weights"), "{}", ended.stderr);
}

/// Only draws with weight are written, in every format, with a header that counts them.
#[test]
fn importance_sampling_writes_what_counts() {
    let place = toy();
    let run = |name: &str| {
        let set = format!("output.samples={name}");
        let args =
            ["run", "toy.toml", "--set", "method=importance", "--set", "sampler.B=3000", "--set", &set];
        place.ok(&[&args[..], &["--out", "o", "--force"]].concat());
        let summary = place.read("o/summary.csv");
        // `npl summary` reads the file back: a header with the wrong number of rows would be refused.
        assert_eq!(place.ok(&["summary", "o", "--format", "csv"]).stdout, summary, "{name}");
        summary
    };
    let summary = run("samples.csv");
    let rows = place.read("o/samples.csv").lines().count() - 1;
    assert!((1..2999).contains(&rows), "{rows}");
    assert!(place.read("o/report.json").contains(&format!("\"kept\": {rows}")));
    assert_eq!(run("samples.npy"), summary);
    assert_eq!(run("samples.csv.gz"), summary);
}

#[test]
fn mdp_npl_takes_the_draws_of_a_run() {
    let place = toy();
    place.ok(&["run", "toy.toml", "--set", "method=nuts", "--out", "nuts"]);
    let set = "mdp.centre={ run = \"nuts\" }";
    place.ok(&["run", "toy.toml", "--set", "method=mdp-npl", "--set", set, "--out", "named"]);
    place.ok(&["run", "toy.toml", "--set", "method=mdp-npl", "--out", "first"]);
    // The same chains, run first or named: the same draws.
    assert_eq!(place.read("named/samples.csv"), place.read("first/samples.csv"));
    let manifest = place.read("named/manifest.json");
    assert!(manifest.contains("samples.csv") && manifest.contains("nuts"), "the run is an input: {manifest}");
    // More draws than the run has take them from the first again, with new weights.
    place.ok(&[
        "run",
        "toy.toml",
        "--set",
        "method=mdp-npl",
        "--set",
        set,
        "--set",
        "sampler.B=60",
        "--out",
        "more",
    ]);
    let (more, named) = (place.read("more/samples.csv"), place.read("named/samples.csv"));
    assert_eq!(more.lines().take(41).collect::<Vec<_>>(), named.lines().collect::<Vec<_>>());
    let two =
        ["run", "toy.toml", "--set", "method=mdp-npl", "--set", set, "--set", "repeats=2", "--out", "two"];
    let ended = place.npl(&two);
    assert!(ended.stderr.contains("no draws of repeat 2"), "{}", ended.stderr);
}

#[test]
fn fi_npl_starts_from_a_variational_fit() {
    let place = toy();
    let set = ["--set", "sampler.fixed_init=advi", "--set", "sampler.R=1"];
    place.ok(&[&["run", "toy.toml", "--out", "o"], &set[..]].concat());
    assert!(place.read("o/report.json").contains("\"FI-NPL from ADVI alpha=20\""));
    assert!(place.exists("o/elbo.csv"));
    let samples = place.read("o/samples.csv");
    let column = |line: &str, j: usize| line.split(',').nth(j).unwrap().parse::<f64>().unwrap();
    let ordered = |line: &str| column(line, 11) < column(line, 12);
    let first = ordered(samples.lines().nth(1).unwrap());
    assert!(samples.lines().skip(1).all(|l| ordered(l) == first), "one start keeps its labels");
}

#[test]
fn a_check_says_what_a_method_costs_and_does_not_use() {
    let place = toy();
    for (method, says) in [
        ("npl", &["time        about", "not used    by method \"npl\": model.gmm.prior, nuts"][..]),
        ("nuts", &["trajectories of 1 to 1023 gradients", "prior, sampler.R", "advi, importance"]),
        ("advi", &["at most", "on one thread", "nuts"]),
        ("importance", &["a density for each draw"]),
        ("mdp-npl", &["trajectories", "then 40 bootstrap draws", "prior.base"]),
    ] {
        let said = place.ok(&["check", "toy.toml", "--set", &format!("method={method}")]).stdout;
        for text in says {
            assert!(said.contains(text), "{method}: no {text:?} in\n{said}");
        }
    }
}

/// The prior on θ is no part of the bootstrap, unless pseudo-samples or starts are made of it.
#[test]
fn a_prior_that_the_bootstrap_does_not_use_is_said_to_be_idle() {
    let place = toy();
    place.write("l.toml", place.ok(&["new", "logistic"]).stdout);
    let idle = |args: &[&str]| {
        let said = place.ok(&[&["check"], args].concat()).stdout;
        said.lines().find(|line| line.contains("not used")).unwrap_or_default().to_owned()
    };
    for used in ["prior.base=\"prior_predictive\"", "sampler.fixed_init=\"advi\""] {
        let said = idle(&["toy.toml", "--set", used, "--set", "sampler.R=1"]);
        assert!(said.contains("importance") && !said.contains("model.gmm.prior"), "{used}: {said}");
    }
    let said = idle(&[
        "l.toml",
        "--set",
        "model.logistic.intercept_prior=[0, 2]",
        "--set",
        "model.logistic.ard=marginal",
    ]);
    assert!(said.contains("model.logistic.ard, model.logistic.intercept_prior"), "{said}");
}

#[test]
fn what_a_method_cannot_do_is_refused() {
    let place = toy();
    let median =
        TOY.replace("[model.gmm]\nK = 2\nvariance_floor = 1e-6\n[model.gmm.prior]", "[model.median]");
    let no_prior = TOY.replace("[model.gmm.prior]\n", "");
    let no_proposal = TOY.split("[importance]").next().unwrap();
    place.write("median.toml", median.replace("R = 2\n", "")).write("no_prior.toml", no_prior);
    place.write("no_proposal.toml", no_proposal);
    for (file, sets, says) in [
        ("toy.toml", &["method=nut"][..], "did you mean `nuts`?"),
        ("median.toml", &["method=nuts"], "loss without a likelihood"),
        ("median.toml", &["method=mdp-npl"], "no likelihood"),
        ("no_prior.toml", &["method=advi"], "`model.gmm.prior` is missing"),
        ("no_prior.toml", &["sampler.fixed_init=advi", "sampler.R=1"], "`model.gmm.prior` is missing"),
        ("toy.toml", &["method=nuts", "sampler.B=41"], "cannot be shared out evenly over 2 chains"),
        ("toy.toml", &["method=nuts", "nuts.target_accept=1.0"], "nuts.target_accept"),
        ("toy.toml", &["method=nuts", "nuts.max_depth=40"], "nuts.max_depth"),
        ("toy.toml", &["method=nuts", "nuts.warmpu=4"], "did you mean `warmup`?"),
        ("no_proposal.toml", &["method=importance"], "[importance.proposal]"),
        (
            "toy.toml",
            &["method=importance", "importance.proposal={ mu = { normal = [0.0, 1.0] } }"],
            "`importance.proposal.pi` is missing",
        ),
        (
            "toy.toml",
            &["method=importance", "importance.proposal.sigma2={ normal = [0.0, 1.0] }"],
            "is positive",
        ),
        ("toy.toml", &["method=importance", "importance.proposal.pi=\"data\""], "`dirichlet`"),
        (
            "toy.toml",
            &["method=importance", "importance.proposal.tau={ normal = [0.0, 1.0] }"],
            "its blocks are `pi`, `mu`, `sigma2`",
        ),
        ("toy.toml", &["method=mdp-npl", "prior.alpha=0"], "prior.alpha"),
        ("toy.toml", &["method=mdp-npl", "mdp.centre={ run = \"nowhere\" }"], "nowhere"),
    ] {
        let mut args = vec!["run", file, "--out", "o"];
        sets.iter().for_each(|set| args.extend(["--set", set]));
        let ended = place.npl(&args);
        assert_eq!(ended.code, Some(2), "{sets:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{sets:?}: no {says:?} in\n{}", ended.stderr);
        assert!(!place.exists("o"), "{sets:?}");
    }
    let ended = place.npl(&["export", "toy.toml", "--set", "method=nuts", "--out", "o"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("weights of the bootstrap"), "{}", ended.stderr);
}

/// What a centre cannot draw is refused before a draw is made.
#[test]
fn a_process_is_centred_on_what_can_be_drawn() {
    let place = Place::new();
    place.write(
        "d.csv",
        "y,x,off\n1,0.5,2.0\n3,-1.0,-1.0\n2,2.0,0.5\n4,1.1,-2.0\n2,0.2,1.0\n1,0.9,0.0\n3,-0.4,0.5\n",
    );
    let experiment = |data: &str, model: &str, prior: &str| {
        format!(
            "name = \"m\"\nseed = 1\nmethod = \"mdp-npl\"\n[data]\ntrain = \"d.csv\"\n{data}\n{model}\n[prior]\nalpha = 2.0\n{prior}\n\
             [sampler]\nB = 4\n[nuts]\nwarmup = 50\nchains = 1\n"
        )
    };
    let models = [
        "[model.weibull]\npenalty = \"ridge\"",
        "[model.custom]\nparameters = { theta = { real = \"x\" }, scale = { positive = \"x\" } }\nlikelihood = true\n\
         loss = \"-sum(student_lpdf(x, 4, theta, scale))\"",
    ];
    for model in models {
        place.write("m.toml", experiment("target = \"y\"", model, "T = 10"));
        for command in ["check", "run"] {
            let ended = place.npl(&[command, "m.toml"]);
            assert_eq!(ended.code, Some(2), "{command} {model}: {}", ended.stderr);
            assert!(ended.stderr.contains("m.toml:3"), "{}", ended.stderr);
            assert!(ended.stderr.contains("cannot be drawn"), "{}", ended.stderr);
        }
        assert!(!place.exists("runs/m"));
    }
}

/// What is known of its atoms is of the base measure that is there: offsets, intercepts and weights of the penalty make another.
#[test]
fn truncation_is_of_the_base_measure_that_is_drawn_from() {
    let place = Place::new();
    place.write("d.csv", "y,x,off\n1,0.5,2.0\n0,-1.0,-1.0\n1,2.0,0.5\n0,1.1,-2.0\n0,0.2,1.0\n1,0.9,0.0\n0,-0.4,0.5\n1,-0.2,1.5\n");
    let cases = [
        ("columns = [\"x\"]\noffset = \"off\"", ""),
        ("columns = [\"x\"]", "intercept = false"),
        ("columns = [\"x\"]", "penalty_factor = { x = 0.5 }"),
        ("columns = [\"x\"]", ""),
    ];
    for (data, model) in cases {
        for truncation in ["", "truncation = \"exact\""] {
            let exact = !truncation.is_empty();
            place.write(
                "m.toml",
                format!(
                    "name = \"m\"\nseed = 1\nmethod = \"mdp-npl\"\n[data]\ntrain = \"d.csv\"\ntarget = \"y\"\n{data}\n[model.logistic]\n\
                     penalty = \"ridge\"\n{model}\n[prior]\nalpha = 2.0\n{truncation}\n[sampler]\nB = 4\n[nuts]\nwarmup = 50\nchains = 1\n"
                ),
            );
            let ended = place.npl(&["run", "m.toml", "--force"]);
            let plain = data == "columns = [\"x\"]" && model.is_empty();
            let code = if exact && !plain { 2 } else { 0 };
            assert_eq!(ended.code, Some(code), "{data} {model} {truncation}: {}", ended.stderr);
            assert!(code == 0 || ended.stderr.contains("finite support"), "{}", ended.stderr);
        }
    }
}

/// The longest step size raises the ELBO over its trial here, and then leads far from all data, where the ELBO no longer changes.
#[test]
fn a_variational_fit_that_goes_astray_is_made_again_or_refused() {
    let place = Place::new();
    let text = "name = \"a\"\nseed = 310\n[data.simulate.mixture]\nn = 200\npi = [0.8, 0.2]\nmu = [[0.0, 0.0], [3.0, 0.0]]\nsigma2 = [1.0, 1.0]\n\
                [data.response.binary]\nlink = \"logit\"\nbeta = { y1 = 1.0, y2 = -0.5 }\nintercept = -0.5\n\
                [model.logistic]\npenalty = \"ridge\"\n[sampler]\nB = 500\n";
    place.write("a.toml", text);
    place.ok(&["run", "a.toml", "--quiet", "--set", "method=advi"]);
    let summary = place.read("runs/a/summary.csv");
    let slope = summary.lines().find(|line| line.starts_with("beta.y1,")).unwrap();
    let cells: Vec<f64> = slope.split(',').skip(1).map(|cell| cell.parse().unwrap()).collect();
    // NPL says 1.36 with sd 0.22.
    assert!((cells[0] - 1.36).abs() < 0.2 && (0.1..0.4).contains(&cells[1]), "{slope}");
    let refused =
        place.npl(&["run", "a.toml", "--force", "--set", "method=advi", "--set", "advi.eta=1000.0"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("went astray"), "{}", refused.stderr);
}
