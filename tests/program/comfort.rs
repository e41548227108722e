//! What makes the program pleasant: decimal commas, completions, the manual, the schema, and messages that can be acted on.

use crate::support::Place;

const EXPERIMENT: &str = "name = \"x\"\nseed = 1\n[data]\ntrain = \"x.csv\"\ntarget = \"y\"\n[model.linear]\n\
                          penalty = \"none\"\n[sampler]\nB = 5\n";

fn rows(delimiter: &str, decimal: &str) -> String {
    let number = |v: f64| format!("{v:.3}").replace('.', decimal);
    let row = |i: usize| {
        let x = ((i * 37) % 23) as f64 / 7.0;
        [number(x), number(2.0 * x + ((i * 11) % 5) as f64 / 9.0)].join(delimiter) + "\n"
    };
    format!("x{delimiter}y\n") + &(0..30).map(row).collect::<String>()
}

#[test]
fn decimal_commas_are_read_as_points_are() {
    let place = Place::new();
    place.write("x.csv", rows(",", ".")).write("e.toml", EXPERIMENT);
    place.ok(&["run", "e.toml", "--quiet", "--out", "points"]);
    place.write("new.csv", "x\n1.5\n").ok(&["predict", "points", "new.csv"]);
    let told = place.ok(&["predict", "points", "new.csv"]).stdout;
    let commas = EXPERIMENT.replace("[model", "delimiter = \";\"\ndecimal = \",\"\n[model");
    place.write("x.csv", rows(";", ",")).write("c.toml", &commas);
    place.ok(&["run", "c.toml", "--quiet", "--out", "commas"]);
    assert_eq!(place.read("points/samples.csv"), place.read("commas/samples.csv"));
    place.write("new.csv", "x;z\n1,5;2\n");
    assert_eq!(place.ok(&["predict", "commas", "new.csv"]).stdout, told);
    // A point is then a mistake, and so is a file whose first line is numbers a header.
    place.write("x.csv", rows(";", ",").replacen("\n0,000;", "\n0.500;", 1));
    let ended = place.npl(&["run", "c.toml", "--out", "no"]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("has a point before its decimals"),
        "{}",
        ended.stderr
    );
    let bare: String = rows(";", ",").lines().skip(1).map(|line| line.to_owned() + "\n").collect();
    place.write("x.csv", bare).write("c.toml", commas.replace("target = \"y\"", "target = \"2\""));
    place.ok(&["run", "c.toml", "--quiet", "--out", "bare"]);
    for (keys, says) in [
        ("decimal = \",\"", "so is what separates cells"),
        ("delimiter = \";\"\ndecimal = \"x\"", "must be"),
        ("format = \"arff\"\ndecimal = \",\"", "belongs to delimited text"),
    ] {
        place.write("c.toml", EXPERIMENT.replace("[model", &format!("{keys}\n[model")));
        let ended = place.npl(&["check", "c.toml"]);
        assert!(ended.code == Some(2) && ended.stderr.contains(says), "{keys}: {}", ended.stderr);
        assert!(ended.stderr.contains("c.toml:"), "{}", ended.stderr);
    }
}

#[test]
fn messages_can_be_acted_on() {
    let place = Place::new();
    let gone = place.npl(&["run", "gone.toml"]);
    assert!(gone.code == Some(2) && gone.stderr.contains("gone.toml: no such file"), "{}", gone.stderr);
    assert!(!gone.stderr.contains("os error"), "{}", gone.stderr);
    place.write("x.csv", rows(",", ".").replacen("\n0.000,", "\nzero,", 1)).write("e.toml", EXPERIMENT);
    let wrong = place.npl(&["check", "e.toml"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("x.csv:2:"), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("see e.toml:4, `data.train`"), "{}", wrong.stderr);
    place.write("x.csv", rows(",", "."));
    // Where a name was given on the command line, it is to be mended there.
    let named = place.npl(&["check", "e.toml", "--set", "data.target=nowhere"]);
    let says = "see --set data.target=nowhere, `data.target`";
    assert!(named.code == Some(2) && named.stderr.contains(says), "{}", named.stderr);
    let loss = "name = \"x\"\n[data]\ntrain = \"x.csv\"\ntarget = \"y\"\n[sampler]\nB = 2\nR = 2\n";
    place.write("m.toml", loss.replace("target = \"y\"\n", "") + "[model.mean]\n");
    let idle = place.npl(&["check", "m.toml"]);
    assert!(idle.stderr.contains("m.toml:6:5: `sampler.R` has no use"), "{}", idle.stderr);
    let own =
        "[model.custom]\nparameters = { m = { real = 1 } }\nloss = \"sq(y - m)\"\n[evaluate]\nfolds = 2\n";
    place.write("c.toml", loss.replace("R = 2\n", "") + own);
    let untested = place.npl(&["check", "c.toml"]);
    assert!(untested.stderr.contains("by `model.custom.predict`"), "{}", untested.stderr);
    let run = place.ok(&["run", "e.toml", "--out", "sp ace/it's"]);
    assert!(run.stdout.contains("`npl summary 'sp ace/it'\\''s'`"), "{}", run.stdout);
}

#[test]
fn the_manual_has_every_command_and_no_line_that_roff_would_take_for_a_request() {
    let page = Place::new().ok(&["man"]).stdout;
    for words in [".TH NPL 1", "npl run", "npl predict", "\\-\\-resume", ".SH NPL EXPORT", "143"] {
        assert!(page.contains(words), "{words}");
    }
    let requests = [".TH", ".SH", ".B", ".I", ".TP", ".PP", ".nf", ".fi"];
    for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
        assert!(requests.contains(&line.split(' ').next().unwrap()), "{line}");
    }
    assert!(page.is_ascii(), "roff reads bytes");
    assert!(!page.contains("npl complete\n"), "what only shells ask is hidden");
}

#[test]
fn the_schema_is_printed_and_starters_name_it() {
    let place = Place::new();
    let schema = place.ok(&["schema"]).stdout;
    assert_eq!(schema, place.ok(&["check", "--schema"]).stdout);
    assert!(schema.contains("\"stage\""));
    assert!(place.ok(&["schema", "--help"]).stdout.contains("#:schema ./npl.schema.json"));
    for (name, starter) in npl::model::STARTERS {
        assert!(starter.lines().any(|line| line == "#:schema ./npl.schema.json"), "{name}");
    }
}

/// The script for bash, asked as bash asks it.
#[test]
#[cfg(unix)]
fn bash_completes_models_keys_files_and_runs() {
    let place = Place::new();
    place.write("completions", place.ok(&["completions", "bash"]).stdout).write("e.toml", EXPERIMENT);
    place.write("x.csv", rows(",", ".")).ok(&["run", "e.toml", "--quiet"]);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_npl")).parent().unwrap();
    let ask = |line: &str| -> Vec<String> {
        let script = format!(
            "PATH={}:$PATH; source ./completions; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; _npl; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            program.display()
        );
        let mut bash = std::process::Command::new("bash");
        let output = bash.args(["--norc", "-c", &script]).current_dir(place.path("")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    assert_eq!(ask("npl new quantile_"), ["quantile_regression"]);
    assert_eq!(ask("npl ru"), ["run"]);
    assert_eq!(ask("npl run "), ["e.toml", "runs/"]);
    assert_eq!(ask("npl summary "), ["runs/x"]);
    assert_eq!(ask("npl run e.toml --set sampler.max_u"), ["sampler.max_unconverged="]);
    assert_eq!(ask("npl run e.toml --set method=nu"), ["nuts"]);
}

/// Tables, remarks and facts have at most 80 columns; a sentence of a warning is broken by whoever shows it.
#[test]
fn summaries_fit_a_terminal() {
    let place = Place::new();
    let path = "[path]\nparameter = \"model.multinomial.gamma\"\nvalues = [0.001, 0.1]\n";
    for (name, more, args) in [
        ("gmm", "", &["sampler.B=30"][..]),
        ("multinomial", path, &["sampler.B=30"]),
        ("multinomial", "", &["sampler.B=30", "sampler.R=3"]),
        ("gamma", "", &["sampler.B=30", "repeats=2"]),
        ("poisson", "", &["sampler.B=40", "method=advi", "advi.max_iterations=40", "advi.eta=0.1"]),
        ("poisson", "", &["sampler.B=40", "method=nuts", "nuts.warmup=40", "nuts.chains=2"]),
    ] {
        place.write("s.toml", place.ok(&["new", name]).stdout + more);
        let set: Vec<&str> = args.iter().flat_map(|set| ["--set", set]).collect();
        let run = place.npl(&[&["run", "s.toml", "--out", "r", "--force"], &set[..]].concat());
        assert!(matches!(run.code, Some(0 | 3)), "{name} {args:?}: {}", run.stderr);
        let said = place.ok(&["summary", "r"]).stdout;
        let lines = || said.lines().filter(|line| !line.starts_with("warning:"));
        assert!(lines().all(|line| line.chars().count() <= 80), "{name} {args:?}:\n{said}");
        // The ends of an interval are both there, or neither.
        let titles = lines().find(|line| line.starts_with("parameter")).unwrap_or_default();
        assert_eq!(titles.contains(" 10 %"), titles.contains(" 90 %"), "{titles}");
    }
}
