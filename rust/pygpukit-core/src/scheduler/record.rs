//! What the outside sees of a task: its record, the numbers behind a reason, transitions and totals.

use super::context::TaskContext;
use super::name::Name;
use super::phase::Phase;
use super::reason::Reason;
use super::spec::Policy;
use crate::partition::DeviceList;
use std::sync::Arc;

/// The numbers behind a reason; None where a number has no meaning for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Bytes, parts per million, tasks or nanoseconds, as the reason says.
    pub asked: Option<u64>,
    pub available: Option<u64>,
    /// Place in the queue, from 1.
    pub position: Option<u64>,
    /// From the mean run time so far; None before any task has succeeded.
    pub estimated_wait_ns: Option<u64>,
    /// How often the task went back to the queue after a dispatcher had it, or was taken off.
    pub requeues: Option<u64>,
    /// How often it was admitted and gave way to a higher priority before its start.
    pub preemptions: Option<u64>,
}

impl Detail {
    pub(super) fn shortage(asked: u64, available: u64) -> Detail {
        Detail {
            asked: Some(asked),
            available: Some(available),
            ..Detail::default()
        }
    }

    /// The numbers that are there, by name.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("asked", self.asked),
            ("available", self.available),
            ("position", self.position),
            ("estimated_wait_ns", self.estimated_wait_ns),
            ("requeues", self.requeues),
            ("preemptions", self.preemptions),
        ]
        .into_iter()
        .filter_map(|(name, value)| value.map(|v| (name, v)))
    }
}

/// A copy of one task's state. Times are on the scheduler's clock; 0 = not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Unique in the process; `a` of TASK event records.
    pub number: u64,
    pub id: Name,
    pub name: Name,
    pub phase: Phase,
    pub reason: Reason,
    /// It is held back until it is resumed, whatever its phase.
    pub paused: bool,
    pub detail: Detail,
    /// The field at fault when the reason is InvalidSpec, else "".
    pub field: &'static str,
    pub error: String,
    pub memory_bytes: u64,
    pub share_ppm: u32,
    pub memory_limit: Option<u64>,
    pub share_limit_ppm: Option<u32>,
    pub policy: Policy,
    pub partition: Name,
    /// Those that it is on, ascending; none while it leaves the choice and waits.
    pub devices: DeviceList,
    pub depends_on: Vec<Name>,
    pub priority: i32,
    pub deadline_ns: u64,
    pub submitted_ns: u64,
    pub started_ns: u64,
    pub finished_ns: u64,
    pub launches: u64,
    /// Parts that launches were cut into.
    pub slices: u64,
    /// Kernels that it submitted, each of a graph, whether the device was given them or not; and copies.
    pub kernels: u64,
    pub transfers: u64,
    pub gpu_ns: u64,
    pub paced: u64,
    pub asked_ns: u64,
    pub waited_ns: u64,
    pub others_ns: u64,
    pub throttles: u64,
    pub throttled_ns: u64,
    pub host_ns: u64,
}

/// What whoever runs a task needs of it to begin; its whole record would cost more.
#[derive(Clone, Debug)]
pub struct TaskStart {
    pub context: Arc<TaskContext>,
    pub partition: Name,
    pub devices: DeviceList,
    pub policy: Policy,
    pub memory_limit: Option<u64>,
    pub share_limit_ppm: Option<u32>,
}

/// One edge taken by one task.
#[derive(Clone, Copy, Debug)]
pub struct Transition<'a> {
    pub number: u64,
    pub id: &'a str,
    pub name: &'a str,
    /// The first that the task is on; None while it leaves the choice and waits.
    pub device: Option<u32>,
    pub from: Phase,
    pub to: Phase,
    pub reason: Reason,
    pub t_ns: u64,
}

/// A task came into its partition's line, or left it: those behind it moved by one. All moves in order tell who was where when.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    pub number: u64,
    /// "" for the default.
    pub partition: &'a str,
    pub device: Option<u32>,
    /// The number of the line: device k's own, without a partition, has k; from 2^31 on they are of several devices.
    pub line: u32,
    pub came: bool,
    /// The place that it took or left, from 1.
    pub place: u64,
    /// Tasks in the line from then on.
    pub depth: u64,
    pub t_ns: u64,
}

/// Told of every transition and of every move, in order, under the table's lock: it must be quick and must not call the scheduler.
pub trait Observer: Send {
    fn transition(&mut self, transition: &Transition<'_>);

    fn moved(&mut self, _move: &Move<'_>) {}
}

impl<F: FnMut(&Transition<'_>) + Send> Observer for F {
    fn transition(&mut self, transition: &Transition<'_>) {
        self(transition);
    }
}

/// Totals. The phases that tasks leave again count the tasks in them now; the terminal ones count since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub submitted: u64,
    pub queued: u64,
    pub admitted: u64,
    pub running: u64,
    pub suspended: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub rejected: u64,
    pub expired: u64,
    pub reserved_memory: u64,
    pub available_memory: u64,
    pub reserved_share_ppm: u64,
}

impl Stats {
    pub fn fields(&self) -> [(&'static str, u64); 13] {
        [
            ("submitted", self.submitted),
            ("queued", self.queued),
            ("admitted", self.admitted),
            ("running", self.running),
            ("suspended", self.suspended),
            ("succeeded", self.succeeded),
            ("failed", self.failed),
            ("cancelled", self.cancelled),
            ("rejected", self.rejected),
            ("expired", self.expired),
            ("reserved_memory", self.reserved_memory),
            ("available_memory", self.available_memory),
            ("reserved_share_ppm", self.reserved_share_ppm),
        ]
    }
}
