//! What may go wrong at any time: device calls that fail, lost workers, tasks that are cancelled, paused and changed, a partition resized.

use super::{quota, System};
use pygpukit_core::scheduler::{Change, Name, Outcome, Reason};
use pygpukit_core::sim_driver::Call;

/// Device calls that fail now and then.
const FAILING: [Call; 17] = [
    Call::MemoryInfo,
    Call::AddressReserve,
    Call::AddressFree,
    Call::PhysicalCreate,
    Call::PhysicalRelease,
    Call::Map,
    Call::Unmap,
    Call::HostAlloc,
    Call::CopyToHost,
    Call::CopyToDevice,
    Call::StreamWait,
    Call::EventCreate,
    Call::EventRecord,
    Call::EventDone,
    Call::EventElapsed,
    Call::StreamWaitEvent,
    Call::StreamDone,
];

impl System {
    fn any_recent(&mut self) -> Option<Name> {
        let at = self.random.below(self.recent.len().max(1) as u64);
        self.recent.get(at as usize).cloned()
    }

    pub(super) fn resume(&mut self, id: &str) {
        _ = self.table.resume(id, self.now()); // it may have ended
    }

    /// What may go wrong at any time.
    pub(super) fn disturb(&mut self) {
        let now = self.now();
        if self.random.one_in(60) {
            if let Some(id) = self.any_recent() {
                _ = self.table.cancel(&id, now); // it may be forgotten
            }
        }
        if self.random.one_in(80) {
            if let Some(id) = self.any_recent() {
                if self.table.pause(&id, now) == Ok(true) {
                    self.tally.paused += 1;
                    self.paused.push(id);
                }
            }
        }
        if self.random.one_in(60) && !self.paused.is_empty() {
            let at = self.random.below(self.paused.len() as u64);
            let id = self.paused.swap_remove(at as usize);
            self.resume(&id);
        }
        if self.random.one_in(80) {
            if let Some(id) = self.any_recent() {
                let change = Change {
                    priority: Some(self.random.below(4) as i32 - 2),
                    ..Change::default()
                };
                _ = self.table.adjust(&id, change, now); // refused for one that has ended
            }
        }
        if self.random.one_in(400) {
            let limits = quota(4 + self.random.below(6), true);
            let bound = limits.memory_bound().expect("it has a quota of memory");
            // Refused while too much of it is in use by others.
            let resized = self
                .table
                .with_partitions(now, |partitions| partitions.resize("a", limits));
            if resized.is_ok() {
                assert!(self.pool.set_account_limit(self.accounts["a"], bound));
            }
        }
        if self.random.one_in(150) {
            let call = FAILING[self.random.below(FAILING.len() as u64) as usize];
            let code = if self.random.one_in(2) { 2 } else { 700 };
            self.sim.heal(); // one at a time: what is refused twice in a row is lost with its device
            self.sim.fail(call, 1 + self.random.below(3), code);
        }
        if self.random.one_in(300) {
            self.sim.heal();
        }
        if self.random.one_in(50) && !self.workers.is_empty() {
            let at = self.random.below(self.workers.len() as u64) as usize;
            let reason = if self.random.one_in(2) {
                Reason::WorkerLost
            } else {
                Reason::StickyDeviceError
            };
            let error = "injected".to_string();
            if self.workers[at].outcome.is_none() {
                self.tally.lost += 1;
                self.workers[at].outcome = Some(Outcome::Lost { reason, error });
            }
        }
    }
}
