//! Historical rows are rows like any others: the training rows prepare them, as they do test rows.

use std::path::Path;

use npl::data::Dataset;
use npl::study::ReadyTrial;

use crate::measure::try_study;
use crate::support::assert_close;

const TRAIN: &str =
    "y,a,w,g\n1,0.5,2,u\n0,-1,1,v\n1,2,4,w\n0,1.1,3,u\n0,0.2,1.5,v\n1,0.9,2.5,w\n0,-0.4,1,u\n1,-0.2,7,v\n";
/// Columns in another order, one that nobody asked for, far from the training rows, a level less.
const HISTORY: &str = "more,g,w,a,y\nq,v,3,10.5,1\nr,u,9,9,0\nq,v,2,12,1\nr,v,1,11.1,0\n";

fn write(folder: &Path) {
    std::fs::write(folder.join("train.csv"), TRAIN).unwrap();
    std::fs::write(folder.join("history.csv"), HISTORY).unwrap();
    let gaps = HISTORY.replace("9,9,0", "9,NA,0");
    std::fs::write(folder.join("gaps.csv"), gaps).unwrap();
    // The same rows as test rows.
    for name in ["history", "gaps"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.csv"))).unwrap();
        let rows = text.lines().map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [cells[4], cells[3], cells[2], cells[1]].join(",")
        });
        let rows: Vec<String> = rows.collect();
        std::fs::write(folder.join(format!("{name}_test.csv")), rows.join("\n") + "\n").unwrap();
    }
}

fn trial(folder: &Path, data: &str, file: &str) -> Result<ReadyTrial, String> {
    let test = if data.contains("split") { String::new() } else { format!("test = \"{file}_test.csv\"\n") };
    let text = format!(
        "name = \"h\"\nseed = 3\n[data]\ntrain = \"train.csv\"\n{test}{data}\n[model.logistic]\npenalty = \"ridge\"\n\
         gamma = 0.1\n[prior]\nalpha = 8\nT = 60\nbase = {{ empirical = {{ file = \"{file}.csv\" }} }}\n[sampler]\nB = 5\n"
    );
    try_study(&text, folder)
}

fn rows(data: &Dataset) -> Vec<Vec<f64>> {
    let y = data.y.as_ref().unwrap();
    let mut rows: Vec<Vec<f64>> =
        data.x.iter().zip(y).map(|(x, y)| x.iter().copied().chain([*y]).collect()).collect();
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    rows.dedup();
    rows
}

fn pseudo(trial: &ReadyTrial) -> Vec<Vec<f64>> {
    rows(&trial.prior.posterior_draw(&trial.train, trial.seed, 0).pseudo_samples())
}

#[test]
fn historical_rows_are_prepared_like_test_rows() {
    let folder = crate::tempfile::tempdir().unwrap();
    write(folder.path());
    let shapes = [
        "target = \"y\"\ncolumns = [\"a\", \"w\"]",
        "target = \"y\"\ncolumns = [\"a\", \"w\"]\ndivide = 4.0",
        "target = \"y\"\ncategorical = [\"g\"]",
        "target = \"y\"\ncategorical = \"auto\"\ndummies = \"keep_all\"",
        "formula = \"y ~ a + I(a^2)\"",
        "formula = \"y ~ a + log(w)\"",
        "formula = \"y ~ a + g\"",
        "formula = \"y ~ a:w\"",
        "formula = \"y ~ a*g\"",
        "target = \"y\"\ncolumns = [\"a\", \"q\"]\nderive = { q = \"a^2\" }",
    ];
    for shape in shapes {
        for scale in ["", "standardise = \"numeric\"", "standardise = \"all\""] {
            for (file, more) in [("history", ""), ("gaps", "missing_values = [\"NA\"]\nmissing = \"mean\"")] {
                let data = [shape, scale, more].join("\n");
                let ready = trial(folder.path(), &data, file);
                let trial = ready.unwrap_or_else(|why| panic!("{data}: {why}"));
                assert_eq!(pseudo(&trial), rows(trial.test.as_ref().unwrap()), "{data}");
            }
        }
    }
}

/// Of each repeat its own training part, and of that whatever standardises test rows.
#[test]
fn historical_rows_are_prepared_by_the_training_part() {
    let folder = crate::tempfile::tempdir().unwrap();
    write(folder.path());
    let data = "target = \"y\"\ncolumns = [\"a\"]\nsplit = { test = 0.5 }";
    for by in ["train", "each"] {
        let scaled = format!("{data}\nstandardise = \"all\"\nstandardise_by = \"{by}\"");
        let raw = trial(folder.path(), data, "history").unwrap();
        let scaled = trial(folder.path(), &scaled, "history").unwrap();
        let a: Vec<f64> = raw.train.x.column(0).collect();
        let mean = npl::math::mean(&a);
        let sd = (a.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (a.len() as f64 - 1.0)).sqrt();
        let (raw, scaled) = (pseudo(&raw), pseudo(&scaled));
        assert_eq!(raw.len(), scaled.len());
        for (raw, scaled) in raw.iter().zip(&scaled) {
            assert_close(by, scaled[0], (raw[0] - mean) / sd, 1e-12);
        }
    }
}

#[test]
fn what_the_training_rows_cannot_prepare_names_the_file_of_history() {
    let folder = crate::tempfile::tempdir().unwrap();
    write(folder.path());
    let why = |data: &str, file: &str| trial(folder.path(), data, file).err().unwrap();
    std::fs::write(folder.path().join("short.csv"), "y,w\n1,2\n").unwrap();
    std::fs::write(folder.path().join("new.csv"), "y,a,w,g\n1,2,3,z\n").unwrap();
    for name in ["short", "new"] {
        std::fs::copy(folder.path().join("history_test.csv"), folder.path().join(format!("{name}_test.csv")))
            .unwrap();
    }
    for shape in ["target = \"y\"\ncolumns = [\"a\"]", "formula = \"y ~ a + I(a^2)\""] {
        let why = why(shape, "short");
        assert!(why.contains("short.csv") && (why.contains("\"a\"") || why.contains("`a`")), "{why}");
    }
    let why = why("formula = \"y ~ a + g\"", "new");
    assert!(why.contains("new.csv: level \"z\" of column \"g\" occurs only in the historical rows"), "{why}");
}
