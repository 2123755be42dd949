//! Back to the queue: tasks that failed and may run again, whose worker was lost, or that were taken off.

use super::error::TaskError;
use super::key::Key;
use super::phase::Phase;
use super::reason::Reason;
use super::retry::Backoff;
use super::table::TaskTable;

impl TaskTable {
    /// Sends a task that failed back to the queue, if it has retries left and the failure may pass.
    pub(super) fn retry(&mut self, key: Key, failure: Reason, now: u64) -> bool {
        self.tasks[key].spec.retry.applies_to(failure) && self.run_again(key, now)
    }

    /// Sends a task whose worker was lost back to the queue: once if it is idempotent, and as often as it has retries left. Not one
    /// that ran out of its kernel's time: it would take as long again, and the next worker with it.
    pub(super) fn start_over(&mut self, key: Key, failure: Reason, now: u64) -> bool {
        if failure == Reason::WatchdogTimeout {
            return false;
        }
        let task = &mut self.tasks[key];
        if task.spec.idempotent && !std::mem::replace(&mut task.lost, true) {
            let pause_ns = Backoff::default().pause_ns(0);
            self.requeue_for(key, Reason::WaitingForDevice, pause_ns, now);
            return true;
        }
        self.run_again(key, now)
    }

    /// Takes one of its retries, if any is left and there is a device to run on.
    fn run_again(&mut self, key: Key, now: u64) -> bool {
        let task = &self.tasks[key];
        let retry = task.spec.retry;
        if task.retries >= retry.retries || self.device_fault(task.slot()).is_some() {
            return false;
        }
        let task = &mut self.tasks[key];
        let pause_ns = retry.backoff.pause_ns(task.retries);
        task.retries += 1;
        self.requeue_for(key, Reason::WaitingForRetry, pause_ns, now);
        true
    }

    fn requeue_for(&mut self, key: Key, reason: Reason, pause_ns: u64, now: u64) {
        self.hold(key, reason, pause_ns, now);
        self.vacate(key, now);
        let task = &mut self.tasks[key];
        task.requeues = task.requeues.saturating_add(1);
        task.requeued.set(true, now);
    }

    /// Back to the queue with its old place: an Admitted task that was preempted, or an idempotent Running one whose worker was
    /// lost. It is held for 10 ms, doubled each time up to 1 s.
    pub fn requeue(&mut self, id: &str, reason: Reason, now: u64) -> Result<(), TaskError> {
        self.advance(now);
        let key = self.key_with_edge(id, Phase::Queued)?;
        let task = &self.tasks[key];
        self.check_reason(task.phase, Phase::Queued, reason)?;
        if task.phase != Phase::Admitted && !task.spec.idempotent {
            return Err(TaskError::NotIdempotent { id: id.to_string() });
        }
        let pause_ns = Backoff::default().pause_ns(task.requeues);
        self.requeue_for(key, reason, pause_ns, now);
        self.advance(now);
        Ok(())
    }
}
