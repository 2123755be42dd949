//! What a running task and the launch gate share: identity and counters, readable and writable without the table's lock.

use super::name::Name;
use crate::counters::{Counter, Counters};
use crate::partition::{Activity, Figures, WorkKind};
use crate::sync::waits::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::waits::{Condvar, Mutex};
use std::ops::AddAssign;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// One per task, in an `Arc`: it outlives the task's record for as long as someone launches in it.
#[derive(Debug)]
pub struct TaskContext {
    /// Unique in the process.
    pub number: u64,
    pub id: Name,
    /// Share and limit in one, so that nobody sees the one of before and the other of now.
    shares: AtomicU64,
    launches: AtomicU64,
    slices: AtomicU64,
    activity: Activity,
    /// Of all tasks of its partition.
    partition: Option<Arc<Activity>>,
    paced: AtomicU64,
    asked_ns: AtomicU64,
    waited_ns: AtomicU64,
    others_ns: AtomicU64,
    throttles: AtomicU64,
    throttled_ns: AtomicU64,
    host_ns: AtomicU64,
    stopped: AtomicBool,
    /// Written under `waits`, so that nobody is between looking and waiting.
    paused: AtomicBool,
    waits: Mutex<()>,
    go_on: Condvar,
}

/// The counters of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub launches: u64,
    pub slices: u64,
    pub kernels: u64,
    pub transfers: u64,
    pub gpu_ns: u64,
    pub paced: u64,
    /// For so long it had work that was not done, with the device or waiting.
    pub asked_ns: u64,
    /// Device time that others had meanwhile.
    pub others_ns: u64,
    pub waited_ns: u64,
    /// How often its limit held it back, and for how long.
    pub throttles: u64,
    pub throttled_ns: u64,
    /// Of the device time, what its own thread spent in the device's stead.
    pub host_ns: u64,
}

impl AddAssign for Used {
    fn add_assign(&mut self, more: Used) {
        self.launches += more.launches;
        self.slices += more.slices;
        self.kernels += more.kernels;
        self.transfers += more.transfers;
        self.gpu_ns += more.gpu_ns;
        self.paced += more.paced;
        self.asked_ns += more.asked_ns;
        self.waited_ns += more.waited_ns;
        self.others_ns += more.others_ns;
        self.throttles += more.throttles;
        self.throttled_ns += more.throttled_ns;
        self.host_ns += more.host_ns;
    }
}

/// Work of a task that waits.
pub struct WaitingWork {
    context: Arc<TaskContext>,
    kind: WorkKind,
}

impl Drop for WaitingWork {
    fn drop(&mut self) {
        self.context.count(|activity| activity.end_wait(self.kind));
    }
}

fn packed(share_ppm: u32, limit_ppm: u32) -> u64 {
    u64::from(share_ppm) << 32 | u64::from(limit_ppm)
}

impl TaskContext {
    pub fn new(number: u64, id: Name, share_ppm: u32, limit_ppm: u32) -> TaskContext {
        TaskContext {
            number,
            id,
            shares: AtomicU64::new(packed(share_ppm, limit_ppm)),
            launches: AtomicU64::new(0),
            slices: AtomicU64::new(0),
            activity: Activity::default(),
            partition: None,
            paced: AtomicU64::new(0),
            asked_ns: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            others_ns: AtomicU64::new(0),
            throttles: AtomicU64::new(0),
            throttled_ns: AtomicU64::new(0),
            host_ns: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            waits: Mutex::new(()),
            go_on: Condvar::new(),
        }
    }

    /// The same task, counted with others.
    pub fn in_partition(self, activity: Arc<Activity>) -> TaskContext {
        TaskContext {
            partition: Some(activity),
            ..self
        }
    }

    fn count(&self, change: impl Fn(&Activity)) {
        change(&self.activity);
        self.partition.as_deref().into_iter().for_each(change);
    }

    /// The task submitted something.
    pub fn add_work(&self, kind: WorkKind) {
        self.count(|activity| activity.submit(kind, 1));
    }

    /// Something that the task submitted waits as long as the result lives.
    pub fn waiting(self: &Arc<Self>, kind: WorkKind) -> WaitingWork {
        self.count(|activity| activity.begin_wait(kind));
        WaitingWork {
            context: self.clone(),
            kind,
        }
    }

    /// What it submitted, and what of that waits.
    pub fn figures(&self) -> Figures {
        self.activity.figures()
    }

    /// Its share, and the most of the device's time that it may have, in parts per million.
    pub fn shares_ppm(&self) -> (u32, u32) {
        let shares = self.shares.load(Ordering::Relaxed);
        ((shares >> 32) as u32, shares as u32)
    }

    pub fn limit_ppm(&self) -> u32 {
        self.shares_ppm().1
    }

    pub fn set_shares(&self, share_ppm: u32, limit_ppm: u32) {
        self.shares.store(packed(share_ppm, limit_ppm), Ordering::Relaxed);
    }

    /// The gate let one launch through.
    pub fn add_launch(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// The gate let a part of a launch through.
    pub fn add_slice(&self) {
        self.slices.fetch_add(1, Ordering::Relaxed);
    }

    /// Measured device time of finished launches.
    pub fn add_gpu_ns(&self, ns: u64) {
        self.count(|activity| activity.add_gpu_ns(ns));
        Counters::global().add(Counter::TaskNs, ns);
    }

    /// The gate held a launch back.
    pub fn add_paced(&self) {
        self.paced.fetch_add(1, Ordering::Relaxed);
    }

    /// Time in which it had work that was not done, and what of the device's others had meanwhile.
    pub fn add_asked_ns(&self, ns: u64, others_ns: u64) {
        self.asked_ns.fetch_add(ns, Ordering::Relaxed);
        self.others_ns.fetch_add(others_ns, Ordering::Relaxed);
    }

    /// Time that its launches waited for a turn.
    pub fn add_waited_ns(&self, ns: u64) {
        self.waited_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Its limit held its launches back once more.
    pub fn add_throttle(&self) {
        self.throttles.fetch_add(1, Ordering::Relaxed);
    }

    /// Time that its limit held its launches back.
    pub fn add_throttled_ns(&self, ns: u64) {
        self.throttled_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Work that the task's own thread did in the device's stead.
    pub fn add_host_ns(&self, ns: u64) {
        self.add_gpu_ns(ns);
        self.host_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// What another process counted for it.
    pub fn add(&self, used: &Used) {
        self.launches.fetch_add(used.launches, Ordering::Relaxed);
        self.slices.fetch_add(used.slices, Ordering::Relaxed);
        self.paced.fetch_add(used.paced, Ordering::Relaxed);
        for (kind, count) in [(WorkKind::Kernel, used.kernels), (WorkKind::Transfer, used.transfers)] {
            self.count(|activity| activity.submit(kind, count));
        }
        self.add_gpu_ns(used.gpu_ns);
        self.add_asked_ns(used.asked_ns, used.others_ns);
        self.add_waited_ns(used.waited_ns);
        self.throttles.fetch_add(used.throttles, Ordering::Relaxed);
        self.throttled_ns.fetch_add(used.throttled_ns, Ordering::Relaxed);
        self.host_ns.fetch_add(used.host_ns, Ordering::Relaxed);
    }

    pub fn used(&self) -> Used {
        let Figures {
            kernels,
            transfers,
            gpu_ns,
            ..
        } = self.figures();
        Used {
            launches: self.launches(),
            slices: self.slices(),
            kernels,
            transfers,
            gpu_ns,
            paced: self.paced(),
            asked_ns: self.asked_ns.load(Ordering::Relaxed),
            waited_ns: self.waited_ns(),
            others_ns: self.others_ns.load(Ordering::Relaxed),
            throttles: self.throttles.load(Ordering::Relaxed),
            throttled_ns: self.throttled_ns(),
            host_ns: self.host_ns.load(Ordering::Relaxed),
        }
    }

    pub fn waited_ns(&self) -> u64 {
        self.waited_ns.load(Ordering::Relaxed)
    }

    pub fn throttled_ns(&self) -> u64 {
        self.throttled_ns.load(Ordering::Relaxed)
    }

    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    pub fn slices(&self) -> u64 {
        self.slices.load(Ordering::Relaxed)
    }

    pub fn gpu_ns(&self) -> u64 {
        self.activity.figures().gpu_ns
    }

    pub fn paced(&self) -> u64 {
        self.paced.load(Ordering::Relaxed)
    }

    /// True once the task was cancelled or expired while it ran: what it still launches is wasted.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub fn stop(&self) {
        self.tell(&self.stopped, true);
    }

    /// The task was paused, and not resumed since: what it has not launched waits.
    pub fn paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    pub fn set_paused(&self, paused: bool) {
        self.tell(&self.paused, paused);
    }

    /// Whether a launch of the task waits: it is paused, and somebody still wants what it does.
    pub fn held(&self) -> bool {
        self.paused() && !self.stopped()
    }

    /// Waits while launches of the task wait, at most so long.
    pub fn wait_while_held(&self, timeout: Duration) {
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let _waited = self.go_on.wait_timeout_while(waits, timeout, |()| self.held());
    }

    fn tell(&self, flag: &AtomicBool, value: bool) {
        let _waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        flag.store(value, Ordering::Release);
        self.go_on.notify_all();
    }
}
