//! The scheduler that threads share: the task table behind a mutex, and waits for work and for endings.

use super::adjust::Change;
use super::context::TaskContext;
use super::error::{Outcome, TaskError};
use super::phase::Phase;
use super::reason::Reason;
use super::record::{Observer, Stats, TaskRecord, TaskStart};
use super::spec::{Config, TaskSpec};
use super::table::TaskTable;
use crate::clock::Clock;
use crate::partition::{PartitionManager, SpecError};
use crate::pool::Promise;
use crate::sync::waits::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Shared {
    table: TaskTable,
    /// Raised by `wake`: waits that began before it return.
    wakes: u64,
    /// Threads in `next` and in `finished` that sleep: a signal is a system call, so none is sent to nobody.
    sleepers: [u32; 2],
}

/// What a thread waits for; the index of its condition variable and of the count of those that sleep.
#[derive(Clone, Copy)]
enum For {
    Work = 0,
    Endings = 1,
}

/// What waiters look at, to tell whether a call gave them something to do.
#[derive(PartialEq)]
struct Signs {
    finished: u64,
    timer: Option<u64>,
}

pub struct Scheduler {
    shared: Mutex<Shared>,
    /// By `For`.
    conditions: [Condvar; 2],
    clock: Arc<dyn Clock>,
}

impl Scheduler {
    pub fn new(config: Config, clock: Arc<dyn Clock>, observer: Box<dyn Observer>) -> Scheduler {
        let shared = Mutex::new(Shared {
            table: TaskTable::new(config, observer),
            wakes: 0,
            sleepers: [0; 2],
        });
        Scheduler {
            shared,
            conditions: Default::default(),
            clock,
        }
    }

    pub fn submit(&self, spec: TaskSpec) -> Result<TaskRecord, SpecError> {
        self.with(|table, now| table.submit(spec, now))
    }

    pub fn submit_new(&self, spec: TaskSpec) -> Result<Phase, SpecError> {
        self.with(|table, now| table.submit_new(spec, now))
    }

    /// Waits for the next Admitted task and marks it Running. None at the timeout, after `wake`, and from `close` on.
    pub fn next(&self, timeout: Duration) -> Option<TaskStart> {
        self.wait(For::Work, None, timeout, |table, now| {
            if table.is_closed() {
                None
            } else {
                table.next(now)
            }
        })
    }

    /// Waits until more than `since` tasks have ended: those (oldest first), and the number to ask with next. Empty at the
    /// timeout, after `wake`, and from `close` on. Also keeps the time: someone waiting here lets deadlines pass when they do.
    /// `woken`: what `wakes` said before the caller looked at what it is woken for; a `wake` since then ends the wait, too.
    pub fn finished(&self, since: u64, woken: Option<u64>, timeout: Duration) -> (Vec<TaskRecord>, u64) {
        let new = |table: &mut TaskTable, now| {
            table.advance(now);
            (table.finished_count() > since).then(|| table.finished(since))
        };
        self.wait(For::Endings, woken, timeout, new)
            .unwrap_or((Vec::new(), since))
    }

    pub fn finish(&self, id: &str, outcome: Outcome) -> Result<Phase, TaskError> {
        self.with(|table, now| table.finish(id, outcome, now))
    }

    pub fn cancel(&self, id: &str) -> Result<bool, TaskError> {
        self.with(|table, now| table.cancel(id, now))
    }

    pub fn adjust(&self, id: &str, change: Change) -> Result<(), TaskError> {
        self.with(|table, now| table.adjust(id, change, now))
    }

    pub fn requeue(&self, id: &str, reason: Reason) -> Result<(), TaskError> {
        self.with(|table, now| table.requeue(id, reason, now))
    }

    pub fn pause(&self, id: &str) -> Result<bool, TaskError> {
        self.with(|table, now| table.pause(id, now))
    }

    pub fn resume(&self, id: &str) -> Result<bool, TaskError> {
        self.with(|table, now| table.resume(id, now))
    }

    pub fn get(&self, id: &str) -> Option<TaskRecord> {
        self.with(|table, now| table.get(id, now))
    }

    pub fn tasks(&self) -> Vec<TaskRecord> {
        self.with(|table, now| table.snapshot(now))
    }

    pub fn stats(&self) -> Stats {
        self.with(|table, now| table.stats(now))
    }

    /// Reads or changes the partitions; waiting tasks are looked at again afterwards.
    pub fn partitions<T>(&self, call: impl FnOnce(&mut PartitionManager) -> T) -> T {
        self.with(|table, now| table.with_partitions(now, call))
    }

    /// Any other call on the table, with the time.
    pub fn call<T>(&self, call: impl FnOnce(&mut TaskTable, u64) -> T) -> T {
        self.with(call)
    }

    pub fn context(&self, id: &str) -> Option<Arc<TaskContext>> {
        self.lock().table.context(id)
    }

    pub fn memory_terms(&self, id: &str) -> Option<(u64, Promise)> {
        self.lock().table.memory_terms(id)
    }

    /// How often `wake` was called.
    pub fn wakes(&self) -> u64 {
        self.lock().wakes
    }

    /// Every wait under way returns empty-handed.
    pub fn wake(&self) {
        let mut shared = self.lock();
        shared.wakes += 1;
        self.notify(For::Work, &shared);
        self.notify(For::Endings, &shared);
    }

    /// Submissions are rejected and waits return at once from now on. Tasks already here can still be finished and read.
    pub fn close(&self) {
        self.lock().table.close();
        self.wake();
    }

    /// One call on the table; waiters are woken only when it left something for them.
    fn with<T>(&self, call: impl FnOnce(&mut TaskTable, u64) -> T) -> T {
        let mut shared = self.lock();
        let before = signs(&shared.table);
        let result = call(&mut shared.table, self.clock.now_ns());
        self.signal(&before, &shared);
        result
    }

    fn wait<T>(
        &self,
        what: For,
        woken: Option<u64>,
        timeout: Duration,
        mut look: impl FnMut(&mut TaskTable, u64) -> Option<T>,
    ) -> Option<T> {
        let end = Instant::now().checked_add(timeout);
        let mut shared = self.lock();
        let wakes = woken.unwrap_or(shared.wakes);
        loop {
            let before = signs(&shared.table);
            let now = self.clock.now_ns();
            let outcome = look(&mut shared.table, now);
            self.signal(&before, &shared);
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if outcome.is_some() || shared.table.is_closed() || shared.wakes != wakes || left.is_zero() {
                return outcome;
            }
            // An hour at most: Condvar implementations may not take any Duration.
            let timer = shared
                .table
                .timer()
                .map_or(3_600_000_000_000, |t| t.saturating_sub(now).min(3_600_000_000_000));
            shared.sleepers[what as usize] += 1;
            let (guard, _) = self.conditions[what as usize]
                .wait_timeout(shared, left.min(Duration::from_nanos(timer.max(1))))
                .expect("the scheduler's table panicked in another thread");
            shared = guard;
            shared.sleepers[what as usize] -= 1;
        }
    }

    fn signal(&self, before: &Signs, shared: &Shared) {
        let after = signs(&shared.table);
        let timer_changed = before.timer != after.timer;
        if shared.table.has_admitted() || timer_changed {
            self.notify(For::Work, shared);
        }
        if before.finished != after.finished || timer_changed {
            self.notify(For::Endings, shared);
        }
    }

    fn notify(&self, what: For, shared: &Shared) {
        if shared.sleepers[what as usize] > 0 {
            self.conditions[what as usize].notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared
            .lock()
            .expect("the scheduler's table panicked in another thread")
    }
}

fn signs(table: &TaskTable) -> Signs {
    Signs {
        finished: table.finished_count(),
        timer: table.timer(),
    }
}
