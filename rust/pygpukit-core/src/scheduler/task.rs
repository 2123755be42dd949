//! One task inside the table.

use super::context::{TaskContext, Used};
use super::key::Key;
use super::phase::Phase;
use super::reason::Reason;
use super::record::{Detail, TaskRecord, TaskStart};
use super::spec::TaskSpec;
use super::tenants::TenantUse;
use crate::partition::{Activity, DeviceList, Reservation, Site, Slots};
use std::cell::OnceCell;
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

/// What was wrong with a task: few have any.
#[derive(Default)]
pub(super) struct Trouble {
    /// The numbers behind its rejection.
    pub refused: Detail,
    pub field: &'static str,
    pub error: String,
}

pub(super) struct Task {
    /// Unique in the process.
    pub number: u64,
    pub spec: TaskSpec,
    /// Made when somebody first needs it: one that only waits has done nothing, and a submission is to write little.
    context: OnceCell<Arc<TaskContext>>,
    /// Of the time on the multiprocessors that it runs on.
    limit_ppm: u32,
    /// Where it may be, and the line that it waits in, of no meaning once it has ended.
    pub site: Site,
    pub line: usize,
    /// Where it is: numbers of partitions. Of one that leaves the choice, of no meaning before it is first admitted.
    pub slots: Slots,
    /// That of its first slot, whose partition may be gone once it has ended.
    pub device: u32,
    /// It counts among the unfinished tasks of its partition.
    pub entered: bool,
    pub phase: Phase,
    pub reason: Reason,
    trouble: Option<Box<Trouble>>,
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
    /// device: of its first slot. limit_ppm: of the time on the multiprocessors that it runs on.
    pub fn new(spec: TaskSpec, site: Site, device: usize, limit_ppm: u32, number: u64, now: u64) -> Task {
        Task {
            number,
            context: OnceCell::new(),
            limit_ppm,
            spec,
            slots: site.first(),
            device: device as u32,
            site,
            line: 0,
            entered: false,
            phase: Phase::Submitted,
            reason: Reason::None,
            trouble: None,
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

    /// Its partition's number: on its first device, where it has several.
    pub fn slot(&self) -> usize {
        self.slots.first
    }

    /// It has a place, for now or to its end: one that leaves the choice has none before it is admitted, and while it waits again.
    pub fn is_placed(&self) -> bool {
        let chosen = !matches!(self.site, Site::Any(_));
        chosen || self.reserved.is_some() || (self.phase.is_terminal() && self.started_ns > 0)
    }

    /// activity: of its partition, asked for when it is made.
    pub fn context(&self, activity: impl FnOnce() -> Option<Arc<Activity>>) -> &Arc<TaskContext> {
        self.context.get_or_init(|| {
            let context = TaskContext::new(self.number, self.spec.id.clone(), self.spec.share_ppm, self.limit_ppm);
            Arc::new(match activity() {
                Some(activity) => context.in_partition(activity),
                None => context,
            })
        })
    }

    pub fn paused(&self) -> bool {
        self.context.get().is_some_and(|context| context.paused())
    }

    pub fn trouble(&mut self) -> &mut Trouble {
        self.trouble.get_or_insert_with(Box::default)
    }

    /// Another specification under way, and the limit that follows from it.
    pub fn change(&mut self, spec: TaskSpec, limit_ppm: u32) {
        (self.spec, self.limit_ppm) = (spec, limit_ppm);
        if let Some(context) = self.context.get() {
            context.set_shares(self.spec.share_ppm, limit_ppm);
        }
    }

    /// Nothing but the ledger is in the way of it.
    pub fn waits_in_line(&self) -> bool {
        self.phase == Phase::Queued && self.unmet == 0 && self.held_until_ns == 0 && !self.paused()
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
            used: self.work(),
        }
    }

    /// What the gate and the device did for it.
    fn work(&self) -> Used {
        self.context.get().map_or(Used::default(), |context| context.used())
    }

    /// devices: that it is on.
    pub fn start(&self, context: Arc<TaskContext>, devices: DeviceList) -> TaskStart {
        TaskStart {
            context,
            partition: self.spec.partition.clone(),
            devices,
            policy: self.spec.policy,
            memory_limit: self.spec.memory_limit,
            share_limit_ppm: self.spec.share_limit_ppm,
        }
    }

    /// devices: that it is on.
    pub fn record(&self, devices: DeviceList) -> TaskRecord {
        let (work, trouble) = (self.work(), self.trouble.as_deref());
        let count = |n: u32| (n > 0).then_some(n.into());
        TaskRecord {
            number: self.number,
            id: self.spec.id.clone(),
            name: self.spec.name.clone(),
            phase: self.phase,
            reason: self.reason,
            paused: self.paused() && !self.phase.is_terminal(),
            detail: Detail {
                requeues: count(self.requeues),
                preemptions: count(self.preemptions),
                ..trouble.map_or(Detail::default(), |trouble| trouble.refused)
            },
            field: trouble.map_or("", |trouble| trouble.field),
            error: trouble.map_or(String::new(), |trouble| trouble.error.clone()),
            memory_bytes: self.spec.memory_bytes,
            share_ppm: self.spec.share_ppm,
            memory_limit: self.spec.memory_limit,
            share_limit_ppm: self.spec.share_limit_ppm,
            policy: self.spec.policy,
            partition: self.spec.partition.clone(),
            devices,
            depends_on: self.spec.depends_on.clone(),
            priority: self.spec.priority,
            deadline_ns: self.spec.deadline_ns,
            submitted_ns: self.submitted_ns,
            started_ns: self.started_ns,
            finished_ns: self.finished_ns,
            launches: work.launches,
            slices: work.slices,
            kernels: work.kernels,
            transfers: work.transfers,
            gpu_ns: work.gpu_ns,
            paced: work.paced,
            asked_ns: work.asked_ns,
            waited_ns: work.waited_ns,
            others_ns: work.others_ns,
            throttles: work.throttles,
            throttled_ns: work.throttled_ns,
            host_ns: work.host_ns,
        }
    }
}
