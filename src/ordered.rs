//! Work in blocks on all threads, results in order: what makes any number of threads give the same bytes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::Builder;

use rayon::ThreadPool;

use crate::error::{Error, Result};

/// Items that may wait, made but not yet taken, for one before them that takes longer.
const AHEAD: u64 = 512;

/// Items `range`, in order, into `sink`, made in blocks of `size` by all threads of `pool`. Ends early with the error of the
/// sink, whereupon `make` is told to halt and answers `None`; or, when `cancel` is set, with [`Error::Interrupted`]: no block
/// is begun any more, and those that are in the making are finished and taken.
pub fn in_order<T: Send>(
    range: Range<u64>,
    size: u64,
    pool: &ThreadPool,
    cancel: &AtomicBool,
    make: impl Fn(Range<u64>, &(dyn Fn() -> bool + Sync)) -> Option<Vec<T>> + Sync,
    mut sink: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let threads = pool.current_num_threads();
    let stop = AtomicBool::new(false);
    let halted = || stop.load(Ordering::Relaxed);
    let queue = Queue::new(range, size, threads as u64, cancel);
    let blocks = queue.state().blocks;
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads {
            let (queue, make, halted, sender) = (&queue, &make, &halted, sender.clone());
            let worker = move || {
                let _closed = ClosedAtTheEnd(queue);
                while let Some(mut block) = queue.claim(true) {
                    // Waiting is done out here: a thread of the pool that waits for the sink might be the one that
                    // took this up while it waited for a part of the very block the sink is waiting for.
                    let go_on = pool.install(|| {
                        loop {
                            let (b, ids) = block;
                            let Some(items) = make(ids, halted) else { break false };
                            if sender.send((b, items)).is_err() {
                                break false;
                            }
                            match queue.claim(false) {
                                Some(next) => block = next,
                                None => break true,
                            }
                        }
                    });
                    if !go_on {
                        break;
                    }
                }
            };
            started += usize::from(Builder::new().spawn_scoped(scope, worker).is_ok());
        }
        drop(sender);
        // Fewer than asked for do as well; no result depends on it.
        if started == 0 {
            return Err(Error::Failed("cannot start a thread: the system has no more, or no memory".into()));
        }
        // Blocks arrive in any order; the sink sees them in theirs.
        let mut waiting: BTreeMap<u64, Vec<T>> = BTreeMap::new();
        let mut due = 0;
        let mut outcome = Ok(());
        for (b, items) in receiver {
            waiting.insert(b, items);
            while let Some(items) = waiting.remove(&due) {
                due += 1;
                if outcome.is_ok() {
                    outcome = items.into_iter().try_for_each(&mut sink);
                    stop.store(outcome.is_err(), Ordering::Relaxed);
                }
                queue.advance();
            }
        }
        outcome?;
        if due < blocks { Err(Error::Interrupted) } else { Ok(()) }
    })
}

/// The blocks still to be made. Workers run ahead of the sink, but only so far: what waits for its turn is in memory.
struct Queue<'a> {
    range: Range<u64>,
    size: u64,
    cancel: &'a AtomicBool,
    state: Mutex<QueueState>,
    moved: Condvar,
}

struct QueueState {
    next: u64,
    /// No block from here on may be begun yet.
    limit: u64,
    /// Number of blocks; 0 once the queue is closed.
    blocks: u64,
}

impl Queue<'_> {
    fn new(range: Range<u64>, size: u64, threads: u64, cancel: &AtomicBool) -> Queue<'_> {
        let blocks = (range.end - range.start).div_ceil(size);
        let limit = (AHEAD / size).max(4 * threads);
        let state = Mutex::new(QueueState { next: 0, limit, blocks });
        Queue { range, size, cancel, state, moved: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().expect("nothing panics while it is held")
    }

    /// The next block and its draws. `None` if there is none, or, without `wait`, none that may be begun now.
    fn claim(&self, wait: bool) -> Option<(u64, Range<u64>)> {
        let mut state = self.state();
        while wait && state.limit <= state.next && state.next < state.blocks {
            state = self.moved.wait(state).expect("nothing panics while it is held");
        }
        let b = state.next;
        // Under the lock: after one block that is not begun none is, or those behind it would be made in vain.
        let go_on = !self.cancel.load(Ordering::Relaxed);
        (go_on && b < state.blocks.min(state.limit)).then(|| {
            state.next += 1;
            let start = self.range.start + b * self.size;
            (b, start..(start + self.size).min(self.range.end))
        })
    }

    /// The sink has taken a block.
    fn advance(&self) {
        self.state().limit += 1;
        self.moved.notify_one();
    }
}

/// Closes the queue when a worker ends for whatever reason, or others might wait for a block that never comes. One that
/// ends because there are no more blocks does no harm.
struct ClosedAtTheEnd<'a>(&'a Queue<'a>);

impl Drop for ClosedAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.state().blocks = 0;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_run_ahead_of_the_sink_only_so_far() {
        let never = AtomicBool::new(false);
        let queue = Queue::new(10..1_000_010, 2, 1, &never);
        let ahead: Vec<_> = std::iter::from_fn(|| queue.claim(false)).collect();
        assert_eq!(ahead.len() as u64, AHEAD / 2);
        assert_eq!((ahead[0].clone(), ahead[1].clone()), ((0, 10..12), (1, 12..14)));
        queue.advance();
        assert_eq!(queue.claim(true).map(|(b, _)| b), Some(AHEAD / 2));
        assert_eq!(queue.claim(false), None);
        // One that waits is let go when another worker ends.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.claim(true));
            drop(ClosedAtTheEnd(&queue));
            assert_eq!(waiting.join().unwrap(), None);
        });
        let last = Queue::new(0..5, 2, 1, &never);
        assert_eq!((0..4).map_while(|_| last.claim(true)).last(), Some((2, 4..5)));
    }

    /// Blocks that were begun are taken, all of them; none is begun after that.
    #[test]
    fn what_is_in_the_making_is_finished() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let (cancel, made) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let mut taken = Vec::new();
        let make = |ids: Range<u64>, _: &(dyn Fn() -> bool + Sync)| {
            if ids.start == 40 {
                cancel.store(true, Ordering::Relaxed);
            }
            made.lock().unwrap().extend(ids.clone());
            Some(ids.collect())
        };
        let ended = in_order(0..1000, 4, &pool, &cancel, make, |i| {
            taken.push(i);
            Ok(())
        });
        assert!(matches!(ended, Err(Error::Interrupted)));
        let mut made = made.into_inner().unwrap();
        made.sort_unstable();
        assert_eq!(taken, made);
        assert!(taken.len() >= 44 && taken.len() < 100 && taken.iter().copied().eq(0..taken.len() as u64));
        let all =
            in_order(0..3, 4, &pool, &AtomicBool::new(false), |ids, _| Some(ids.collect()), |_: u64| Ok(()));
        assert!(all.is_ok());
    }
}
