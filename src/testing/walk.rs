//! Concurrent execution of work items that depend on each other.

use std::collections::BTreeSet;
use std::sync::mpsc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Dependencies between work items, which are numbers from 0.
struct Waiting {
    /// Number of unfinished dependencies for each item.
    open: Vec<usize>,
    /// Items that depend on each item.
    after: Vec<Vec<usize>>,
    ready: BTreeSet<usize>,
}

impl Waiting {
    fn new(before: &[BTreeSet<usize>]) -> Waiting {
        let open: Vec<usize> = before.iter().map(BTreeSet::len).collect();
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
        for (i, all) in before.iter().enumerate() {
            all.iter().for_each(|j| after[*j].push(i));
        }
        let ready = (0..before.len()).filter(|i| open[*i] == 0).collect();
        Waiting { open, after, ready }
    }

    fn done(&mut self, done: usize) {
        for i in &self.after[done] {
            self.open[*i] -= 1;
            if self.open[*i] == 0 {
                self.ready.insert(*i);
            }
        }
    }
}

/// Carries out all work items, at most `at_a_time` at the same time; items that are ready start in the order of their
/// numbers. `before` has the dependencies of each item, without cycles. Independent items run on threads of their own
/// if possible.
pub(crate) async fn walk<F>(before: &[BTreeSet<usize>], at_a_time: usize, work: F)
where
    F: AsyncFn(usize) + Sync,
{
    let waiting = Waiting::new(before);
    let handle = Handle::current();
    let one_by_one = waiting.ready.len() < 2 && waiting.after.iter().all(|after| after.len() < 2);
    // Threads are used only if several runs can be carried out at the same time. A current-thread runtime, as in
    // tests, has no threads that may block.
    if one_by_one || at_a_time < 2 || handle.runtime_flavor() != RuntimeFlavor::MultiThread {
        beside_each_other(waiting, at_a_time.max(1), &work).await;
    } else {
        tokio::task::block_in_place(|| in_threads(waiting, at_a_time, &handle, &work));
    }
}

async fn beside_each_other<F: AsyncFn(usize)>(mut waiting: Waiting, at_a_time: usize, work: &F) {
    let mut going = FuturesUnordered::new();
    loop {
        while going.len() < at_a_time
            && let Some(i) = waiting.ready.pop_first()
        {
            going.push(async move {
                work(i).await;
                i
            });
        }
        let Some(done) = going.next().await else { return };
        waiting.done(done);
    }
}

/// Reports that an item is done when this value is dropped. A panic of the work drops it, too, so that no item waits
/// forever.
struct Told(mpsc::Sender<usize>, usize);

impl Drop for Told {
    fn drop(&mut self) {
        // After a panic, the receiver may have been dropped.
        let _ = self.0.send(self.1);
    }
}

fn in_threads<F: AsyncFn(usize) + Sync>(mut waiting: Waiting, at_a_time: usize, handle: &Handle, work: &F) {
    let (sender, done) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut going = 0;
        loop {
            while going < at_a_time
                && let Some(i) = waiting.ready.pop_first()
            {
                let told = Told(sender.clone(), i);
                let task = move || {
                    let _told = told;
                    handle.block_on(work(i));
                };
                going += 1;
                let thread = std::thread::Builder::new().name("run".to_owned());
                if thread.spawn_scoped(scope, task).is_err() {
                    // No thread could be started, so the item is processed on this one. The closure was dropped and has
                    // sent its report that the item is done. This thread reads the report only after it has processed
                    // the item.
                    handle.block_on(work(i));
                }
            }
            if going == 0 {
                return;
            }
            let Ok(i) = done.recv() else { return };
            going -= 1;
            waiting.done(i);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn before() -> Vec<BTreeSet<usize>> {
        [&[][..], &[], &[0, 1], &[2], &[2], &[3, 4]]
            .iter()
            .map(|all| all.iter().copied().collect())
            .collect()
    }

    async fn walked(at_a_time: usize) -> (Vec<usize>, usize) {
        let (seen, going, most) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicUsize::new(0));
        walk(&before(), at_a_time, async |i| {
            most.fetch_max(going.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            seen.lock().unwrap().push(i);
            going.fetch_sub(1, Ordering::SeqCst);
        })
        .await;
        (seen.into_inner().unwrap(), most.into_inner())
    }

    fn in_order(seen: &[usize]) {
        let place = |i: usize| seen.iter().position(|s| *s == i).unwrap();
        for (i, before) in before().iter().enumerate() {
            assert!(before.iter().all(|j| place(*j) < place(i)), "{seen:?}");
        }
        assert_eq!(seen.len(), 6);
    }

    #[tokio::test]
    async fn on_one_thread() {
        let (seen, _) = walked(10).await;
        in_order(&seen);
        assert_eq!(walked(1).await, (vec![0, 1, 2, 3, 4, 5], 1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_many_threads() {
        let (seen, most) = walked(2).await;
        in_order(&seen);
        assert!(most <= 2);
        assert_eq!(walked(1).await, (vec![0, 1, 2, 3, 4, 5], 1));
    }
}
