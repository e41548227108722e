//! The configs, and how to make the same draws again.

use super::html::Html;
use super::run_by_run;
use super::table::{Cell, Table};
use super::view::View;
use crate::store;
use crate::words::{bytes, seconds};

pub fn configs(views: &[View]) -> Html {
    let config = |view: &View| Html::with("pre", &[("tabindex", "0")], Html::lines(&view.config));
    let all = run_by_run(views, config);
    let words = format!("Resolved: every default that matters is written out ({}).", store::CONFIG);
    Html::note(&words).and(all)
}

pub fn section(views: &[View]) -> Html {
    run_by_run(views, |view| {
        let m = &view.manifest;
        let folder = view.source.folder.display().to_string();
        let config = view.source.folder.join(store::CONFIG).display().to_string();
        let again = format!("npl run {} --simd {} --out again", quoted(&config), m.simd);
        let pre = |text: &str| Html::with("pre", &[("tabindex", "0")], Html::lines(text));
        let first = Html::paragraph(
            "The resolved config and the same data give the same draws, to the last byte, whatever the number of threads:",
        );
        let typed: Vec<String> = m.command.iter().map(|word| quoted(word)).collect();
        let second = Html::paragraph("What was typed:");
        let mut table = Table::new(["", ""]);
        let machine = format!(
            "{} ({}, {}), {} of {} cores",
            m.machine.cpu, m.machine.os, m.machine.arch, m.threads, m.machine.cores
        );
        for (name, words) in [
            ("npl", m.npl.clone()),
            ("seed", m.seed.to_string()),
            ("kernels", m.simd.clone()),
            ("machine", machine),
            ("started", m.started.clone()),
            ("took", seconds(m.seconds)),
            ("run directory", folder),
        ] {
            table.row(name, vec![Cell::text(words)]);
        }
        for input in &m.inputs {
            let words = format!("{}, {}", bytes(input.bytes as f64), input.sha256);
            table.row(&format!("input {}", input.path), vec![Cell::text(words)]);
        }
        for (name, hash) in &m.outputs {
            table.row(&format!("output {name}"), vec![Cell::text(hash.clone())]);
        }
        first
            .and(pre(&again))
            .and(second)
            .and(pre(&typed.join(" ")))
            .and(Html::folded("Versions, machine and checksums (SHA-256)", table.html()))
    })
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
