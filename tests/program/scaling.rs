//! scripts/scaling.py, where there is a Python with numpy and matplotlib: $NPL_PYTHON, or python3 on the path. Elsewhere
//! this test says that it was skipped.

use std::process::Command;

use crate::support::{Place, cells, python, script};

#[test]
fn a_point_of_each_model_is_timed_and_drawn() {
    let Some(python) = python("numpy, matplotlib") else { return };
    let place = Place::new();
    let sweeps = |names: &str| {
        let mut command = Command::new(&python);
        command.current_dir(place.path(".")).arg(script("scaling.py"));
        command.args(["--npl", env!("CARGO_BIN_EXE_npl"), "--out", "out", "--repeat", "1", "--threads", "1"]);
        command.args(["--sweeps", names]).output().unwrap()
    };
    let output = sweeps("mixture:threads,logistic:threads");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = place.read("out/scaling.csv");
    let rows = cells(&text);
    let column = |name: &str| rows[0].iter().position(|n| *n == name).unwrap();
    assert_eq!(rows[1..].iter().map(|row| row[0]).collect::<Vec<_>>(), ["mixture", "logistic"]);
    for row in &rows[1..] {
        let number = |name: &str| row[column(name)].parse::<f64>().unwrap();
        assert!(number("mean_iterations") > 1.0, "{row:?}");
        assert!(
            (number("seconds_per_draw") * number("draws") / number("seconds") - 1.0).abs() < 1e-12,
            "{row:?}"
        );
    }
    assert!(place.read("out/scaling.svg").contains("<svg"));
    assert_eq!(sweeps("mixture:q").status.code(), Some(2));
}
