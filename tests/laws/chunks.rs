//! A run is a fold over chunks: what is kept of it, as bytes, says all that the run said.

use std::sync::atomic::AtomicBool;

use npl::bytes::Bytes;
use npl::error::Result;
use npl::report::Repeat;
use npl::run::{CHUNK, Chunk, Opening, Watch, fold, run_repeat};

use crate::support::{pool, study};

const MIXTURE: &str = r#"
name = "toy"
seed = 5
repeats = 2
[data.simulate.mixture]
n = 60
n_test = 20
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
B = 100
R = 3
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

const REGRESSION: &str = r#"
name = "toy"
seed = 5
[data.simulate.normal]
n = 60
n_test = 40
mean = [0.0, 0.0, 0.0]
sd = [1.0, 1.0, 1.0]
[data.response.logistic]
y1 = 2.0
[model.logistic]
penalty = "ridge"
[evaluate]
epsilon = 0.3
[sampler]
B = 100
[nuts]
chains = 2
warmup = 60
"#;

/// Keeps a run as bytes.
#[derive(Default)]
struct Kept {
    openings: Vec<Vec<u8>>,
    chunks: Vec<Vec<u8>>,
}

impl Watch for Kept {
    fn opening(&mut self, opening: &Opening) -> Result<()> {
        self.openings.push(opening.to_bytes());
        Ok(())
    }

    fn chunk(&mut self, chunk: &Chunk) -> Result<()> {
        self.chunks.push(chunk.to_bytes());
        Ok(())
    }
}

/// A report without the time it took; what is equal here is equal in every bit that is a number.
fn said(report: Repeat) -> String {
    format!("{:?}", Repeat { seconds: 0.0, ..report })
}

fn methods() -> Vec<(String, u64)> {
    let set = |text: &str, method: &str| format!("method = {method:?}\n{text}");
    let mixture = ["npl", "nuts", "advi", "importance", "mdp-npl"].map(|m| (set(MIXTURE, m), m));
    let regression = ["npl", "nuts"].map(|m| (set(REGRESSION, m), m));
    let length = |m: &str| if m == "nuts" { 50 } else { CHUNK };
    mixture.into_iter().chain(regression).map(|(text, m)| (text, length(m))).collect()
}

#[test]
fn chunks_that_were_kept_fold_to_the_report_of_the_run() {
    let never = AtomicBool::new(false);
    for (text, length) in methods() {
        let study = study(&text);
        for repeat in 0..study.repeats() {
            let mut kept = Kept::default();
            let direct = run_repeat(&study, repeat, &pool(2), &never, &mut kept).unwrap();
            let openings: Vec<Opening> = kept.openings.iter().map(|b| Bytes::of_bytes(b).unwrap()).collect();
            let chunks: Vec<Chunk> = kept.chunks.iter().map(|b| Bytes::of_bytes(b).unwrap()).collect();
            assert!(chunks.iter().zip(&kept.chunks).all(|(chunk, bytes)| chunk.to_bytes() == *bytes));
            let starts = (0..100).step_by(length as usize);
            let expected: Vec<_> = starts.map(|s| (repeat, s..(s + length).min(100))).collect();
            assert_eq!(chunks.iter().map(|c| (c.round, c.draws.clone())).collect::<Vec<_>>(), expected);
            let folded = fold(&study, repeat, openings.first(), &chunks, &pool(1)).unwrap();
            assert_eq!(said(folded), said(direct), "{text}");
        }
    }
}

#[test]
fn no_number_of_a_report_depends_on_threads() {
    let never = AtomicBool::new(false);
    for (text, _) in methods() {
        let run = |threads: usize| {
            let mut kept = Kept::default();
            let report = run_repeat(&study(&text), 0, &pool(threads), &never, &mut kept).unwrap();
            (said(report), kept.chunks)
        };
        let one = run(1);
        assert!(run(2) == one && run(5) == one, "{text}");
    }
}

/// A chunk that is cut short, or has something behind it, is none.
#[test]
fn a_part_of_a_chunk_is_nothing() {
    let mut kept = Kept::default();
    run_repeat(&study(REGRESSION), 0, &pool(1), &AtomicBool::new(false), &mut kept).unwrap();
    let bytes = &kept.chunks[0];
    assert!(Chunk::of_bytes(bytes).is_some());
    for end in (0..bytes.len()).step_by(97) {
        assert!(Chunk::of_bytes(&bytes[..end]).is_none(), "{end} of {}", bytes.len());
    }
    assert!(Chunk::of_bytes(&[&bytes[..], &[0; 8]].concat()).is_none());
}
