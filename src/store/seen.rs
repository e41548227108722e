//! Which rows runs saw, as their folders tell.

use std::path::Path;

use super::{CONFIG, file_of, read_manifest};
use crate::report::Report;

/// Two of these runs, by their places, whose test rows or training rows are not the same: what they score differs by that, too.
pub fn saw_different_rows(runs: &[(&Path, &Report)]) -> Option<(usize, usize)> {
    let tested: Vec<usize> =
        (0..runs.len()).filter(|&i| runs[i].1.repeats.iter().any(|repeat| repeat.n_test > 0)).collect();
    let seen = |i: usize| {
        let (folder, report) = runs[i];
        let drawn = is_drawn(folder);
        let repeats = report.repeats.iter().map(|r| (drawn.then_some(r.seed), r.n_train, r.n_test));
        let files = read_manifest(folder).map(|m| m.inputs).unwrap_or_default();
        let mut files: Vec<String> = files.into_iter().map(|input| input.sha256).collect();
        files.sort();
        (report.folds, repeats.collect::<Vec<_>>(), files)
    };
    let first = *tested.first()?;
    let other = tested.into_iter().find(|&i| seen(i) != seen(first))?;
    Some((first, other))
}

/// Whether the seed of a run decides which rows are test rows.
fn is_drawn(run: &Path) -> bool {
    let text = file_of(run, CONFIG).ok().and_then(|file| std::fs::read_to_string(file).ok());
    let config: toml::Table = text.and_then(|text| text.parse().ok()).unwrap_or_default();
    let has = |table: &str, key: &str| config.get(table).and_then(|table| table.get(key)).is_some();
    has("data", "split") || has("data", "simulate") || has("data", "response") || has("evaluate", "folds")
}
