//! The schedulers of the process: how their tasks are numbered, and which there are.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pygpukit_core::scheduler::Scheduler;

static NEXT_ORDINAL: AtomicU32 = AtomicU32::new(0);
static LIVE: Mutex<Vec<Weak<Scheduler>>> = Mutex::new(Vec::new());

/// Whoever numbers tenants of the gate puts one of these in the upper half.
pub fn next_ordinal() -> u32 {
    NEXT_ORDINAL.fetch_add(1, Ordering::Relaxed)
}

/// Counts it among the schedulers of the process as long as it lives.
pub fn register(scheduler: &Arc<Scheduler>) {
    LIVE.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(Arc::downgrade(scheduler));
}

pub fn live() -> impl Iterator<Item = Arc<Scheduler>> {
    let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    live.retain(|scheduler| scheduler.strong_count() > 0);
    let alive: Vec<_> = live.iter().filter_map(Weak::upgrade).collect();
    alive.into_iter()
}

/// (running, queued) tasks over all schedulers of the process.
pub fn task_counts() -> (u64, u64) {
    live()
        .map(|scheduler| scheduler.stats())
        .fold((0, 0), |(running, queued), stats| {
            (running + stats.running, queued + stats.queued)
        })
}
