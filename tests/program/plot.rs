//! Pictures of runs: every kind, every format, and what is said when there is nothing to draw.

use std::sync::OnceLock;

use npl::data::files::SearchPath;
use npl::plot::{self, KINDS, Medium, Options, Rect, Scene, Shape, Source, Theme};

use crate::support::Place;

const MIXTURE: &str = r#"
name = "mix"
seed = 3
[data.simulate.mixture]
n = 80
n_test = 30
pi = [0.4, 0.6]
mu = [0.0, 3.0]
sigma2 = [1.0, 1.0]
[model.gmm]
K = 2
variance_floor = 1e-3
[model.gmm.prior]
[sampler]
B = 40
R = 4
[importance]
proposal.pi = { dirichlet = 1.0 }
proposal.mu = { normal = [2.0, 3.0] }
proposal.sigma2 = { log_normal = [0.0, 1.0] }
"#;

const LOGISTIC: &str = r#"
name = "logit"
seed = 5
repeats = 2
[data]
train = "d.csv"
target = "y"
split = { test = 0.3 }
[model.logistic]
penalty = { student_t = { a = 1.0, b = 1.0 } }
gamma = "1/n"
[sampler]
B = 40
R = 2
"#;

/// Coefficients that are 0 in many draws, of columns that were brought to other units.
const LASSO: &str = r#"
name = "lasso"
seed = 5
[data]
train = "d.csv"
target = "y"
standardise = "all"
split = { test = 0.3 }
[model.logistic]
penalty = "lasso"
gamma = 0.04
[sampler]
B = 60
"#;

const TUNING: &str = r#"
[evaluate]
folds = 3
[path]
parameter = "model.logistic.gamma"
geometric = { first = 0.003, ratio = 2.3, count = 4 }
keep = ["beta.plain"]
"#;

const NORMAL: &str = r#"
name = "normal"
seed = 1
[data.simulate.normal]
n = 20
mean = 1.0
sd = 1.0
[model.normal]
sigma2 = 1.0
[sampler]
B = 50
"#;

/// Responses that follow the first column, and names that are hard on a picture.
fn rows() -> String {
    let names =
        ["größe [cm]", "a very long name of a covariate, with <markup> & a comma", "µ²", "漢字", "plain"];
    let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
    let mut text = format!("{},y\n", quoted.join(","));
    for i in 0..120_u32 {
        let value = |j: u32| f64::from((i * (7 + 3 * j) + j * j) % 17) / 8.0 - 1.0;
        let y = u32::from(value(0) + 0.5 * value(2) + f64::from(i % 5) / 4.0 - 0.5 > 0.0);
        let cells: Vec<String> = (0..5).map(|j| format!("{}", value(j))).collect();
        text += &format!("{},{y}\n", cells.join(","));
    }
    text
}

/// Runs of several models and methods, made once.
fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Place::new();
        place.write("d.csv", rows()).write("mix.toml", MIXTURE).write("logit.toml", LOGISTIC).write("normal.toml", NORMAL);
        let path = "[path]\nparameter = \"model.logistic.penalty.student_t.b\"\nvalues = [1.0, 0.1, 0.01]\nkeep = [\"beta.plain\"]\n";
        place.write("path.toml", LOGISTIC.replace("repeats = 2\n", "") + path);
        for name in ["mix", "logit", "normal", "path"] {
            place.ok(&["run", &format!("{name}.toml"), "--out", name]);
        }
        place.ok(&["run", "mix.toml", "--set", "method=importance", "--out", "weighted"]);
        place.ok(&["run", "normal.toml", "--set", "sampler.B=2", "--out", "two"]);
        place.write("seven.csv", "v\n7\n7\n7\n7\n");
        place.write("constant.toml", "name = \"constant\"\nseed = 1\n[data]\ntrain = \"seven.csv\"\n[model.mean]\n[sampler]\nB = 30\n");
        place.ok(&["run", "constant.toml", "--out", "constant"]);
        place.ok(&["run", "mix.toml", "--set", "model.gmm.K=12", "--set", "sampler.B=15", "--out", "twelve"]);
        place.ok(&["run", "mix.toml", "--set", "method=nuts", "--set", "sampler.B=80", "--out", "chains"]);
        place.write("lasso.toml", LASSO);
        for (name, gamma) in [("lasso", "0.04"), ("looser", "0.02"), ("sharper", "0.1")] {
            place.ok(&["run", "lasso.toml", "--set", &format!("model.logistic.gamma={gamma}"), "--out", name]);
        }
        place.write("tuned.toml", format!("{LASSO}{TUNING}").replace("split = { test = 0.3 }\n", ""));
        place.ok(&["run", "tuned.toml", "--out", "tuned"]);
        place
    })
}

fn runs() -> Vec<&'static str> {
    vec![
        "mix", "logit", "normal", "path", "weighted", "two", "constant", "twelve", "chains", "lasso", "tuned",
    ]
}

fn source(name: &str) -> Source {
    let place = place();
    Source::open(&place.path(name), SearchPath(vec![place.path("")])).unwrap()
}

/// Whether a line of this width passes through a rectangle.
fn crosses(room: &Rect, a: (f64, f64), b: (f64, f64), width: f64) -> bool {
    let (left, right) = (room.left - 0.5 * width, room.right + 0.5 * width);
    let (top, bottom) = (room.top - 0.5 * width, room.bottom + 0.5 * width);
    // The part of the line that is between both pairs of sides (Liang and Barsky 1984).
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    let sides = [(b.0 - a.0, left - a.0, right - a.0), (b.1 - a.1, top - a.1, bottom - a.1)];
    for (step, low, high) in sides {
        if step == 0.0 {
            if low > 0.0 || high < 0.0 {
                return false;
            }
        } else {
            let (s, t) = (low / step, high / step);
            (from, to) = (from.max(s.min(t)), to.min(s.max(t)));
        }
    }
    from < to
}

/// Texts that lie on a line, a dot or an area of the data.
fn covered(scene: &Scene, theme: &Theme) -> Vec<String> {
    let mut wrong = Vec::new();
    for text in scene.texts() {
        let room = theme.box_of(text);
        // Above the tallest letter and below the line of writing is air.
        let (air, deep) = (0.2 * text.size, 0.22 * text.size);
        let room = match text.upright {
            false => Rect::new(room.left, room.top + air, room.right, room.bottom - deep),
            true => Rect::new(room.left + air, room.top, room.right - deep, room.bottom),
        };
        let lies_on = |item: &plot::Item| match &item.shape {
            Shape::Line { points, stroke } => points.windows(2).any(|pair| {
                let inside = item.clip.is_none_or(|clip| clip.overlaps(&room, 0.0));
                inside && crosses(&room, pair[0], pair[1], stroke.width)
            }),
            Shape::Circle { centre: (x, y), radius, .. } => {
                Rect::new(x - radius, y - radius, x + radius, y + radius).overlaps(&room, 0.0)
            }
            Shape::Polygon { points, .. } => {
                points.iter().any(|(x, y)| Rect::new(*x, *y, *x, *y).overlaps(&room, 0.0))
            }
            // Numbers of pairs stand on their own field.
            Shape::Image { rect, .. } => {
                rect.overlaps(&room, 0.0) && item.clip.is_none_or(|c| c.overlaps(&room, 0.0))
            }
            Shape::Box { .. } | Shape::Text(_) => false,
        };
        if let Some(item) = scene.items.iter().find(|item| lies_on(item)) {
            wrong.push(format!("{:?} lies on {:?}", text.text, format!("{:?}", item.shape).get(..90)));
        }
    }
    wrong
}

/// Texts that lie on another or are cut off.
fn illegible(scene: &Scene, theme: &Theme) -> Vec<String> {
    let texts: Vec<_> = scene.texts().map(|text| (&text.text, theme.box_of(text))).collect();
    let mut wrong = Vec::new();
    for (i, (text, room)) in texts.iter().enumerate() {
        if !scene.bounds().contains(room, 0.6) {
            wrong.push(format!("{text:?} leaves the picture: {room:?}"));
        }
        let under = texts[..i].iter().filter(|(_, other)| room.overlaps(other, 0.3));
        wrong.extend(under.map(|(other, _)| format!("{text:?} lies on {other:?}")));
    }
    wrong
}

#[test]
fn every_kind_draws_legible_pictures_of_all_runs_it_is_for() {
    let mut wrong: Vec<String> = Vec::new();
    for kind in KINDS {
        let mut drawn = 0;
        for name in runs() {
            let run = source(name);
            for (medium, size) in [
                (Medium::Page, None),
                (Medium::Page, Some((260.0, 240.0))),
                (Medium::Cells, Some((400.0, 240.0))),
            ] {
                let (width, height) = (size.map(|s| s.0), size.map(|s| s.1));
                let options = Options { medium, width, height, ..Options::default() };
                let case = format!("{} of {name}, {medium:?} {size:?}", kind.name);
                match plot::draw(kind, std::slice::from_ref(&run), &options) {
                    Ok(scene) => {
                        let theme = Theme { width: scene.width, height: scene.height, medium };
                        assert!(scene.texts().count() > 0, "{case}");
                        let under = if medium == Medium::Page { covered(&scene, &theme) } else { Vec::new() };
                        let what = illegible(&scene, &theme).into_iter().chain(under);
                        wrong.extend(what.map(|what| format!("{case}: {what}")));
                        drawn += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.exit_code(), 2, "{case}: {error}");
                        assert!(!(kind.applies)(&run), "{case}: {error}");
                    }
                }
            }
        }
        assert!(drawn > 0, "no run shows a {}", kind.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Several runs in one picture leave as much room for words.
#[test]
fn pictures_of_several_runs_are_legible() {
    let runs: Vec<Source> =
        ["lasso", "looser", "sharper"].iter().map(|name| source(name).labelled(*name)).collect();
    let mut wrong: Vec<String> = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.overlays && (kind.applies)(&runs[0])) {
        let names = if kind.name == "bivariate" { vec!["beta.plain", "intercept"] } else { Vec::new() };
        let parameters: Vec<String> = names.into_iter().map(String::from).collect();
        for (width, truth) in [(None, Vec::new()), (Some(330.0), vec![("beta.plain".to_owned(), 0.5)])] {
            let truth = if kind.name == "calibration" { Vec::new() } else { truth };
            let options = Options { width, truth, parameters: parameters.clone(), ..Options::default() };
            for count in 1..=runs.len() {
                let scene = plot::draw(kind, &runs[..count], &options).unwrap();
                let theme = Theme::page(scene.width, scene.height);
                let what = illegible(&scene, &theme).into_iter().chain(covered(&scene, &theme));
                wrong.extend(what.map(|what| format!("{} of {count}, {width:?}: {what}", kind.name)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The shares of spikes are written.
    let options = Options { parameters: vec!["beta.plain".into()], ..Options::default() };
    let svg = |count: usize| {
        plot::svg(&plot::draw(plot::kind("marginal").unwrap(), &runs[..count], &options).unwrap())
    };
    assert_eq!([svg(1), svg(3)].map(|svg| svg.matches(" % at 0<").count()), [1, 3]);
}

/// Coefficients in units of the data are those that `summary --units data` tells.
#[test]
fn coefficients_can_be_drawn_in_units_of_the_data() {
    let place = place();
    let told = source("lasso").in_units_of_data().unwrap();
    let summaries = told.summaries(1).unwrap();
    let text = place.ok(&["summary", "lasso", "--units", "data", "--format", "csv"]).stdout;
    let mut rows = 0;
    for line in csv::Reader::from_reader(text.as_bytes()).records().map(Result::unwrap) {
        let Some(of) = summaries.iter().find(|s| s.parameter == line[0]) else { continue };
        let mean: f64 = line[1].parse().unwrap();
        assert!((of.mean - mean).abs() <= 1e-12 * mean.abs(), "{line:?}: {}", of.mean);
        rows += 1;
    }
    assert_eq!(rows, 6, "{text}");
    let plain = source("lasso").summaries(1).unwrap();
    assert!(plain.iter().zip(&summaries).any(|(a, b)| (a.mean - b.mean).abs() > 0.1 * b.mean.abs()));
    let out = |units: &str, kind: &str| {
        place.ok(&["plot", "lasso", "--units", units, "--kind", kind, "--out", "u.svg"]);
        place.read("u.svg")
    };
    assert!(out("data", "forest").contains("β per unit of the data"));
    assert!(out("model", "forest").contains("β per standard deviation of the column"));
    assert!(out("data", "marginal").contains("Coefficients are per unit of the data."));
    // It is one and the same run, also when it is read again.
    assert!(told.again().unwrap().is_in_units_of_data());
    for (run, kind, says) in [
        ("lasso", "calibration", "--units has no meaning for a calibration figure"),
        ("tuned", "path", "a path is made while it runs"),
        ("mix", "marginal", "its parameters are not the coefficients of its columns"),
    ] {
        let ended = place.npl(&["plot", run, "--units", "data", "--kind", kind, "--out", "x.svg"]);
        assert!(ended.code == Some(2) && ended.stderr.contains(says), "{run}: {}", ended.stderr);
    }
    let ended = place.npl(&["plot", "lasso", "--units", "dat", "--out", "x.svg"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("model, data"), "{}", ended.stderr);
}

/// The numbers of restarts that were looked at are those at the axis.
#[test]
fn the_axis_of_restarts_has_their_numbers() {
    let run = source("mix");
    let restarts: Vec<String> =
        run.report.repeats[0].by_restarts.iter().map(|b| b.restarts.to_string()).collect();
    let draw = |x_limits| {
        let options = Options { x_limits, ..Options::default() };
        let scene = plot::draw(plot::kind("lppd").unwrap(), &[source("mix")], &options).unwrap();
        scene.texts().map(|text| text.text.clone()).collect::<Vec<_>>()
    };
    assert!(restarts.len() > 2 && restarts.iter().all(|r| draw(None).contains(r)), "{restarts:?}");
    assert!(!draw(Some((1.5, 9.0))).contains(&"1".to_owned()));
}

#[test]
fn every_format_is_what_its_ending_says() {
    let place = place();
    for kind in KINDS {
        let run = runs().into_iter().find(|name| (kind.applies)(&source(name))).unwrap();
        let out = |ending: &str| format!("{}.{ending}", kind.name);
        for ending in ["svg", "png", "pdf"] {
            place.ok(&["plot", run, "--kind", kind.name, "--out", &out(ending), "--data-dir", "."]);
        }
        let svg = place.read(&out("svg"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{}", kind.name);
        // The bytes of an image are letters in any order.
        let words: String =
            svg.split("base64,").map(|part| part.split_once('"').map_or(part, |(_, rest)| rest)).collect();
        assert!(!words.contains("NaN") && !words.contains("inf"), "{}", kind.name);
        let bytes = std::fs::read(place.path(&out("png"))).unwrap();
        let size = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert!(
            bytes.starts_with(b"\x89PNG\r\n\x1a\n") && size(16) >= 900 && size(20) >= 500,
            "{}",
            kind.name
        );
        let pdf = std::fs::read(place.path(&out("pdf"))).unwrap();
        assert!(pdf.starts_with(b"%PDF-1.5") && pdf.ends_with(b"%%EOF\n"), "{}", kind.name);
        // The table of objects is where the last lines say.
        let tail = String::from_utf8_lossy(&pdf[pdf.len() - 40..]).into_owned();
        let start: usize = tail.split("startxref\n").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
        assert!(pdf[start..].starts_with(b"xref\n"), "{}", kind.name);
        let text = place.ok(&["plot", run, "--kind", kind.name, "--out", "-", "--data-dir", "."]).stdout;
        assert!(text.lines().count() >= 12 && !text.contains('\x1b'), "{}: {text}", kind.name);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{}: {text}", kind.name);
    }
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let place = place();
    for name in ["a.svg", "b.svg", "a.pdf", "b.pdf"] {
        place.ok(&["plot", "mix", "--out", name]);
    }
    assert_eq!(place.read("a.svg"), place.read("b.svg"));
    assert_eq!(std::fs::read(place.path("a.pdf")).unwrap(), std::fs::read(place.path("b.pdf")).unwrap());
}

#[test]
fn wrong_requests_are_told_what_would_be_right() {
    let place = place();
    place.write("truth.csv", "name,x\nmu.1,0\n");
    let cases: [(&[&str], &str); 19] = [
        (&["mix", "--kind", "lppd", "--absolute"], "--absolute has no meaning for a lppd figure"),
        (&["path", "--setting", "2"], "--setting has no meaning for a path figure"),
        (&["mix", "--kind", "mixture", "--parameters", "z"], "no column `z`"),
        (&["mix", "--kind", "margnal"], "did you mean `marginal`?"),
        (&["mix", "--parameters", "mu.1.l"], "did you mean `mu.1.1`?"),
        (&["mix", "--parameters", "zeta*"], "there are pi.1"),
        (&["nowhere"], "no such run directory"),
        (&["mix", "--kind", "path"], "the run has no path"),
        (&["mix", "--kind", "surface"], "the run has no path"),
        (&["normal", "--kind", "mixture"], "no mixture"),
        (&["normal", "--kind", "bivariate"], "two parameters"),
        (&["mix", "--kind", "calibration"], "0 or 1"),
        (&["normal", "--kind", "restarts"], "one start each"),
        (&["normal", "--kind", "lppd"], "no LPPD by restarts"),
        (&["logit", "--repeat", "3"], "repeats 1 to 2"),
        (&["path", "--repeat", "1", "--kind", "marginal"], "it is a path, and has settings: --setting"),
        (&["mix", "--truth", "mu.1.9=3"], "did you mean `mu.1.1`?"),
        (&["mix", "--truth", "truth.csv"], "no columns parameter and value"),
        (&["mix", "logit", "--kind", "pairs"], "shows one run"),
    ];
    for (args, says) in cases {
        let args: Vec<&str> =
            ["plot"].into_iter().chain(args.iter().copied()).chain(["--out", "x.svg"]).collect();
        let ended = place.npl(&args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{args:?}: no {says:?} in {}", ended.stderr);
        ended.assert_decent(&args.join(" "));
    }
    assert!(!place.exists("x.svg"));
    for (out, says) in [("x.gif", ".svg, .png or .pdf"), ("missing/x.svg", "cannot write")] {
        let ended = place.npl(&["plot", "mix", "--out", out]);
        assert!(ended.code != Some(0) && ended.stderr.contains(says), "{out}: {}", ended.stderr);
    }
    // Standard output of a test is no terminal.
    let ended = place.npl(&["plot", "mix"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("--out -"), "{}", ended.stderr);
}

#[test]
fn data_that_are_not_here_are_named() {
    let place = Place::new();
    place.write("d.csv", rows()).write("logit.toml", LOGISTIC);
    place.ok(&["run", "logit.toml", "--out", "run"]);
    std::fs::remove_file(place.path("d.csv")).unwrap();
    for kind in ["correlation", "calibration"] {
        let ended = place.npl(&["plot", "run", "--kind", kind, "--out", "x.svg"]);
        assert!(ended.code == Some(2) && ended.stderr.contains("d.csv"), "{kind}: {}", ended.stderr);
    }
    // Coefficients need none.
    place.ok(&["plot", "run", "--out", "x.svg"]);
}

#[test]
fn draws_that_failed_are_left_out_and_said() {
    let place = Place::new();
    place.write("normal.toml", NORMAL);
    place.ok(&["run", "normal.toml", "--out", "run"]);
    let text = place.read("run/samples.csv");
    let columns: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let status = columns.iter().position(|c| *c == "status__").unwrap();
    let failed = npl::optim::Status::Failed.code().to_string();
    let spoil = |count: usize| -> String {
        let line = |(i, line): (usize, &str)| {
            let mut cells: Vec<&str> = line.split(',').collect();
            if i > 0 && i <= count {
                cells[status] = &failed;
            }
            cells.join(",") + "\n"
        };
        text.lines().enumerate().map(line).collect()
    };
    place.write("run/samples.csv", spoil(7));
    place.ok(&["plot", "run", "--no-verify", "--out", "x.svg"]);
    assert!(place.read("x.svg").contains("7 of 50 draws have no minimum and are left out."));
    place.write("run/samples.csv", spoil(50));
    for kind in ["marginal", "forest"] {
        let ended = place.npl(&["plot", "run", "--no-verify", "--kind", kind, "--out", "y.svg"]);
        assert!(
            ended.code == Some(2) && ended.stderr.contains("all 50 draws failed"),
            "{kind}: {}",
            ended.stderr
        );
    }
}

#[test]
fn the_default_is_the_figure_that_says_most() {
    let kind = |runs: &[&str]| {
        let sources: Vec<Source> = runs.iter().map(|name| source(name)).collect();
        plot::default_kind(&sources, &Options::default()).unwrap().name
    };
    assert_eq!(
        [kind(&["logit"]), kind(&["path"]), kind(&["mix"]), kind(&["normal"])],
        ["forest", "path", "mixture", "marginal"]
    );
    assert_eq!(kind(&["mix", "weighted"]), "marginal");
    let figures = plot::figures_for(&source("mix"), Theme::default());
    assert_eq!(figures[0].0, "mixture");
    assert!(figures.len() > 4 && figures.iter().all(|(_, title, _)| !title.is_empty()));
}

/// Aligned draws have their components apart, and the picture says how far to trust them.
#[test]
fn components_can_be_aligned_before_they_are_drawn() {
    let run = source("mix").relabelled().unwrap();
    let summaries = run.summaries(1).unwrap();
    let median = |name: &str| summaries.iter().find(|s| s.parameter == name).unwrap().quantiles[2];
    assert!(median("mu.1.1") + 1.0 < median("mu.2.1"), "{summaries:?}");
    let options = Options { parameters: vec!["mu.*".into()], ..Options::default() };
    let scene = plot::draw(plot::kind("marginal").unwrap(), &[run], &options).unwrap();
    assert!(plot::svg(&scene).contains("aligned over draws"));
    let place = place();
    place.ok(&["plot", "mix", "--relabel", "--kind", "marginal", "--out", "aligned.svg"]);
    assert!(place.read("aligned.svg").contains("aligned over draws"));
    let refused = place.npl(&["plot", "logit", "--relabel", "--out", "x.svg"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

/// What a picture says of draws that are not as many independent ones.
#[test]
fn pictures_say_what_draws_are_worth() {
    let svg = |name: &str| {
        let options = Options { parameters: vec!["*".into()], ..Options::default() };
        plot::svg(&plot::draw(plot::kind("marginal").unwrap(), &[source(name)], &options).unwrap())
    };
    assert!(svg("chains").contains("80 draws of chains are worth "));
    assert!(svg("weighted").contains(" weighted draws are worth "));
    assert!(svg("two").contains("2 draws, marked below"));
    assert!(svg("constant").contains("all draws at 7.00"));
    assert!(!svg("normal").contains("worth") && !svg("normal").contains("marked below"));
}

/// A field of colour leaves the lines of the axes alone.
#[test]
fn shading_is_clear_of_the_axes() {
    let scene = |kind: &str, run: &str| {
        plot::draw(plot::kind(kind).unwrap(), &[source(run)], &Options::default()).unwrap()
    };
    for (kind, run) in [("bivariate", "mix"), ("mixture", "mix"), ("surface", "path")] {
        let scene = scene(kind, run);
        let is_field =
            |shape: &Shape| matches!(shape, Shape::Image { .. } | Shape::Box { .. } | Shape::Polygon { .. });
        let fields: Vec<Rect> =
            scene.items.iter().filter(|item| is_field(&item.shape)).filter_map(|item| item.clip).collect();
        assert!(!fields.is_empty(), "{kind}");
        let lines =
            scene.items.iter().filter(|item| item.clip.is_none()).filter_map(|item| match &item.shape {
                Shape::Line { points, stroke } if points.len() == 2 => {
                    Some((points[0], points[1], stroke.width))
                }
                _ => None,
            });
        let lines: Vec<_> = lines.filter(|((_, y), (_, v), _)| y == v).collect();
        let axis = lines.iter().map(|((_, y), ..)| *y).fold(0.0, f64::max);
        let width = lines.iter().find(|((_, y), ..)| *y == axis).unwrap().2;
        assert!(
            fields.iter().all(|clip| clip.bottom <= axis - 0.5 * width + 1e-9),
            "{kind}: {axis} {fields:?}"
        );
    }
}

#[test]
fn true_values_of_a_file_may_be_of_more_than_the_run() {
    let place = place();
    place
        .write("some.csv", "parameter,value\nmu.1.1,0\nmu.9.1,3\n")
        .write("none.csv", "parameter,value\nnu,1\n");
    let plot = |file: &str| {
        place.npl(&[
            "plot",
            "mix",
            "--kind",
            "marginal",
            "--parameters",
            "mu.*",
            "--truth",
            file,
            "--out",
            "t.svg",
        ])
    };
    let ended = plot("some.csv");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("some.csv: not of this run, and left out: mu.9.1"), "{}", ended.stderr);
    assert!(place.read("t.svg").contains("true value"));
    let ended = plot("none.csv");
    assert!(ended.code == Some(2) && ended.stderr.contains("none of its parameters: nu"), "{}", ended.stderr);
    // True values of parameters that a figure does not show are not in its legend.
    place.ok(&["plot", "mix", "--parameters", "pi.1", "pi.2", "--truth", "some.csv", "--out", "t.svg"]);
    assert!(!place.read("t.svg").contains("true value"));
}

#[test]
fn letters_that_the_font_lacks_are_named() {
    let place = place();
    let noted = |out: &str| place.ok(&["plot", "logit", "--out", out]).stderr;
    assert!(noted("l.png").contains("l.png: boxes stand for letters that its font lacks: 字, 漢"));
    assert!(!noted("l.svg").contains("boxes"));
}

#[test]
fn help_knows_every_kind() {
    let help = place().ok(&["plot", "--help"]).stdout;
    KINDS.iter().for_each(|kind| assert!(help.contains(&format!("  {} ", kind.name)), "{}", kind.name));
}
