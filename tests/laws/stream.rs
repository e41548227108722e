//! Draws as a stream: in order, each with what its own thread made of it, and stopped at once when asked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use npl::bootstrap::{Draw, Plan, Scheme, posterior_bootstrap};
use npl::data::Dataset;
use npl::error::{Error, Result};
use npl::process::Prior;
use npl::rng::Seed;

/// Runs `count` draws of a mean with these two functions.
fn stream<T: Send>(
    count: u64,
    threads: usize,
    cancel: &AtomicBool,
    per_draw: impl Fn(&Draw) -> T + Sync,
    sink: impl FnMut(Draw, T) -> Result<()>,
) -> Result<()> {
    let data = Dataset::from_values(vec![0.0, 1.0, 5.0]);
    let model = crate::support::model("[mean]", &data);
    let scheme = Scheme::FixedInit(Vec::new());
    let plan = Plan {
        model: model.as_ref(),
        prior: &Prior::Noninformative,
        data: &data,
        scheme: &scheme,
        seed: Seed(1),
        subsample: None,
        before: None,
    };
    posterior_bootstrap(&plan, 0..count, &crate::support::pool(threads), cancel, per_draw, sink)
}

#[test]
fn every_draw_comes_in_order_with_its_own_result() {
    for threads in [1, 4] {
        let mut seen = 0;
        let never = AtomicBool::new(false);
        // The first of every 64 takes long: the others must wait for it, and there are more than may.
        let slow = |draw: &Draw| {
            if draw.index.is_multiple_of(64) {
                std::thread::sleep(Duration::from_millis(2));
            }
            (draw.index, draw.minimum.theta[0])
        };
        stream(2000, threads, &never, slow, |draw, (index, theta)| {
            assert_eq!((draw.index, draw.index, draw.minimum.theta[0]), (seen, index, theta));
            seen += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, 2000);
    }
}

#[test]
fn what_is_made_ahead_of_the_sink_is_bounded() {
    let never = AtomicBool::new(false);
    let (made, mut taken, mut most) = (AtomicUsize::new(0), 0, 0);
    let first_is_slow = |draw: &Draw| {
        if draw.index == 0 {
            // Until the others have come as far as they may, which on a busy machine is late; and a moment longer, to see them stop.
            let begun = Instant::now();
            while made.load(Ordering::Relaxed) < 450 && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        made.fetch_add(1, Ordering::Relaxed);
    };
    stream(20_000, 3, &never, first_is_slow, |_, ()| {
        most = most.max(made.load(Ordering::Relaxed) - taken);
        taken += 1;
        Ok(())
    })
    .unwrap();
    // 512 may be ahead, and three threads may each be at one more by the time we look.
    assert!((500..=515).contains(&most), "{most} draws were made while one took long");
}

#[test]
fn evaluation_stops_when_it_is_told_to() {
    let cancel = AtomicBool::new(false);
    let (evaluated, mut taken) = (AtomicUsize::new(0), 0);
    let evaluate = |draw: &Draw| {
        evaluated.fetch_add(1, Ordering::Relaxed);
        if draw.index == 100 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let ended = stream(1_000_000, 3, &cancel, evaluate, |_, ()| {
        taken += 1;
        Ok(())
    });
    assert!(matches!(ended, Err(Error::Interrupted)));
    // What was begun is finished, and taken.
    assert_eq!(taken, evaluated.into_inner());
    assert!((101..1000).contains(&taken), "{taken} draws");
}

#[test]
fn an_error_of_the_sink_ends_the_run() {
    let never = AtomicBool::new(false);
    let mut taken = 0;
    let ended = stream(
        1_000_000,
        3,
        &never,
        |_| (),
        |draw, ()| {
            taken += 1;
            if draw.index == 10 { Err(Error::Failed("full".into())) } else { Ok(()) }
        },
    );
    assert!(matches!(ended, Err(Error::Failed(why)) if why == "full"));
    assert_eq!(taken, 11);
}

#[test]
fn a_panic_in_evaluation_leaves_nobody_waiting() {
    let never = AtomicBool::new(false);
    let broken = |draw: &Draw| assert!(draw.index != 700, "broken on purpose");
    let ended = catch_unwind(AssertUnwindSafe(|| stream(1_000_000, 3, &never, broken, |_, ()| Ok(()))));
    assert!(ended.is_err());
}
