//! One task inside the table.

use super::context::TaskContext;
use super::phase::Phase;
use super::reason::Reason;
use super::record::{Detail, TaskRecord};
use super::spec::TaskSpec;
use super::tasks::Key;
use super::tenants::TenantUse;
use crate::partition::{Activity, Reservation};
use std::sync::Arc;

/// Whether something is so, and since when; 0 = ever.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flag {
    pub on: bool,
    pub since_ns: u64,
}

impl Flag {
    pub fn set(&mut self, on: bool, now: u64) {
        if self.on != on {
            *self = Flag { on, since_ns: now };
        }
    }
}

pub(super) struct Task {
    /// Unique in the process.
    pub number: u64,
    pub spec: TaskSpec,
    pub context: Arc<TaskContext>,
    /// Its partition's number; of no meaning once it has ended.
    pub slot: usize,
    /// It counts among the unfinished tasks of its partition.
    pub entered: bool,
    pub phase: Phase,
    pub reason: Reason,
    /// The numbers behind its rejection.
    pub refused: Option<Box<Detail>>,
    pub field: &'static str,
    pub error: String,
    /// Dependencies that have not succeeded yet.
    pub unmet: usize,
    /// Tasks that wait for this one, in submission order.
    pub dependants: Vec<Key>,
    /// What the ledger holds for it.
    pub reserved: Option<Reservation>,
    /// A dispatcher is inside it. What it reserved stays reserved until the dispatcher is out, whatever the phase.
    pub occupied: bool,
    /// Fell out of the history while still occupied.
    pub forgotten: bool,
    /// Not admitted again before this time; 0 = not held.
    pub held_until_ns: u64,
    /// Times it went back to the queue, by being taken off or to be retried; those of them that were retries; times it gave way
    /// to a higher priority; holds in a row since it was last admitted.
    pub requeues: u32,
    pub retries: u32,
    pub preemptions: u32,
    pub holds: u32,
    /// It went back to the queue after its worker was lost: that is granted once.
    pub lost: bool,
    /// It gave way, and waits for its room again.
    pub preempted: Flag,
    /// It went back to the queue after a dispatcher had it, or was taken off, and waits again.
    pub requeued: Flag,
    /// When `reserved` came or went; 0 = never.
    pub reserved_since_ns: u64,
    pub submitted_ns: u64,
    /// The first start, and that of the run under way.
    pub started_ns: u64,
    pub run_started_ns: u64,
    pub finished_ns: u64,
}

impl Task {
    /// limit_ppm: of the time on the multiprocessors that it runs on. activity: of its partition.
    pub fn new(spec: TaskSpec, slot: usize, limit_ppm: u32, activity: Arc<Activity>, number: u64, now: u64) -> Task {
        let context = TaskContext::new(number, spec.id.clone(), spec.share_ppm, limit_ppm);
        Task {
            number,
            context: Arc::new(context.in_partition(activity)),
            spec,
            slot,
            entered: false,
            phase: Phase::Submitted,
            reason: Reason::None,
            refused: None,
            field: "",
            error: String::new(),
            unmet: 0,
            dependants: Vec::new(),
            reserved: None,
            occupied: false,
            forgotten: false,
            held_until_ns: 0,
            requeues: 0,
            retries: 0,
            preemptions: 0,
            holds: 0,
            lost: false,
            preempted: Flag::default(),
            requeued: Flag::default(),
            reserved_since_ns: 0,
            submitted_ns: now,
            started_ns: 0,
            run_started_ns: 0,
            finished_ns: 0,
        }
    }

    /// Nothing but the ledger is in the way of it.
    pub fn waits_in_line(&self) -> bool {
        self.phase == Phase::Queued && self.unmet == 0 && self.held_until_ns == 0 && !self.context.paused()
    }

    /// What the ledger holds for it from now on; returns what it held before.
    pub fn hold(&mut self, reserved: Option<Reservation>, now: u64) -> Option<Reservation> {
        if self.reserved.is_some() != reserved.is_some() {
            self.reserved_since_ns = now;
        }
        std::mem::replace(&mut self.reserved, reserved)
    }

    pub fn used(&self) -> TenantUse {
        TenantUse {
            tasks: 1,
            requeues: self.requeues.into(),
            preemptions: self.preemptions.into(),
            used: self.context.used(),
        }
    }

    pub fn record(&self) -> TaskRecord {
        let count = |n: u32| (n > 0).then_some(n.into());
        TaskRecord {
            number: self.number,
            id: self.spec.id.clone(),
            name: self.spec.name.clone(),
            phase: self.phase,
            reason: self.reason,
            paused: self.context.paused() && !self.phase.is_terminal(),
            detail: Detail {
                requeues: count(self.requeues),
                preemptions: count(self.preemptions),
                ..self.refused.as_deref().copied().unwrap_or_default()
            },
            field: self.field,
            error: self.error.clone(),
            memory_bytes: self.spec.memory_bytes,
            share_ppm: self.spec.share_ppm,
            memory_limit: self.spec.memory_limit,
            share_limit_ppm: self.spec.share_limit_ppm,
            policy: self.spec.policy,
            partition: self.spec.partition.clone(),
            depends_on: self.spec.depends_on.clone(),
            priority: self.spec.priority,
            deadline_ns: self.spec.deadline_ns,
            submitted_ns: self.submitted_ns,
            started_ns: self.started_ns,
            finished_ns: self.finished_ns,
            launches: self.context.launches(),
            slices: self.context.slices(),
            kernels: self.context.figures().kernels,
            transfers: self.context.figures().transfers,
            gpu_ns: self.context.gpu_ns(),
            paced: self.context.paced(),
            waited_ns: self.context.waited_ns(),
            throttles: self.context.used().throttles,
            throttled_ns: self.context.throttled_ns(),
        }
    }
}
