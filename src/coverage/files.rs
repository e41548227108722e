//! The results in a directory: whole or absent, as those of a run, and the manifest last.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::lines::spelled;
use super::{Coverage, Outcome, Plan};
use crate::error::{Error, Result};
use crate::kernel::Level;
use crate::samples::quoted;
use crate::store::{self, Machine, Manifest, RunDir};

impl Plan<'_> {
    /// Writes all results; `resolved` is the experiment with every default written out.
    pub fn into_folder(
        &self,
        folder: &RunDir,
        found: &Coverage,
        outcomes: &[Outcome],
        resolved: &str,
        command: Vec<String>,
        (threads, took): (usize, Duration),
    ) -> Result<()> {
        let json = serde_json::to_string_pretty(found).map_err(|e| Error::Failed(e.to_string()))? + "\n";
        let texts = [
            (store::CONFIG, resolved.to_owned()),
            (store::DATASETS, self.datasets(outcomes)),
            (store::COVERAGE, found.table()),
            (store::COVERAGE_JSON, json),
        ];
        let (mut outputs, mut sizes) = (BTreeMap::new(), BTreeMap::new());
        for (name, text) in &texts {
            folder.write(name, text)?;
            let (size, hash) = folder.fingerprint(name)?;
            outputs.insert(name.to_string(), hash);
            sizes.insert(name.to_string(), size);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        let manifest = Manifest {
            npl: env!("CARGO_PKG_VERSION").into(),
            seed: self.study.seed(0).0,
            repeats: outcomes.len(),
            draws: self.study.draws(),
            threads,
            simd: Level::current().name().into(),
            machine: Machine::current(),
            started: store::utc(now.saturating_sub(took.as_secs())),
            finished: store::utc(now),
            seconds: took.as_secs_f64(),
            command,
            samples: String::new(),
            relation: None,
            inputs: self.study.inputs().to_vec(),
            data: self.study.file_notes(),
            status: BTreeMap::new(),
            outputs,
            sizes,
        };
        folder.write(store::MANIFEST, &store::seal(&manifest))?;
        folder.publish()
    }

    /// `datasets.csv`: a line for each data set, interval and parameter.
    fn datasets(&self, outcomes: &[Outcome]) -> String {
        let mut out = String::from("dataset,seed,interval,level,parameter,mean,sd,lower,upper\n");
        // What a data set has not is an empty cell.
        let cell = |v: f64| if v.is_finite() { format!("{v:?}") } else { String::new() };
        for (i, outcome) in outcomes.iter().enumerate() {
            let head = format!("{},{}", i + 1, self.study.seed(i).0);
            for ((kind, level), ends) in self.asked.iter().zip(&outcome.ends) {
                let kind = spelled(*kind);
                for (j, ((name, _), (lower, upper))) in self.truth.values.iter().zip(ends).enumerate() {
                    let numbers = [outcome.mean[j], outcome.sd[j], *lower, *upper].map(cell).join(",");
                    out += &format!("{head},{kind},{level:?},{},{numbers}\n", quoted(name));
                }
            }
        }
        out
    }
}
