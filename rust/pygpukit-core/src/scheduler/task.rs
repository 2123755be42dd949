//! One task inside the table.

use super::context::TaskContext;
use super::ledger::Reservation;
use super::phase::Phase;
use super::reason::Reason;
use super::record::{Detail, TaskRecord};
use super::spec::TaskSpec;
use std::sync::Arc;

pub(super) struct Task {
    pub spec: TaskSpec,
    pub context: Arc<TaskContext>,
    pub phase: Phase,
    pub reason: Reason,
    pub detail: Detail,
    pub field: &'static str,
    pub error: String,
    /// Dependencies that have not succeeded yet.
    pub unmet: usize,
    /// Tasks that wait for this one, in submission order.
    pub dependants: Vec<u64>,
    /// What the ledger holds for it.
    pub reserved: Option<Reservation>,
    /// A dispatcher is inside it. What it reserved stays reserved until the dispatcher is out, whatever the phase.
    pub occupied: bool,
    /// Fell out of the history while still occupied.
    pub forgotten: bool,
    /// Not admitted again before this time; 0 = not held.
    pub held_until_ns: u64,
    pub requeues: u32,
    pub submitted_ns: u64,
    pub started_ns: u64,
    pub finished_ns: u64,
}

impl Task {
    pub fn new(spec: TaskSpec, number: u64, now: u64) -> Task {
        Task {
            context: Arc::new(TaskContext::new(
                number,
                spec.id.clone(),
                spec.reservation().share_ppm,
                spec.limit_ppm(),
            )),
            spec,
            phase: Phase::Submitted,
            reason: Reason::None,
            detail: Detail::default(),
            field: "",
            error: String::new(),
            unmet: 0,
            dependants: Vec::new(),
            reserved: None,
            occupied: false,
            forgotten: false,
            held_until_ns: 0,
            requeues: 0,
            submitted_ns: now,
            started_ns: 0,
            finished_ns: 0,
        }
    }

    pub fn record(&self) -> TaskRecord {
        let requeues = (self.requeues > 0).then_some(self.requeues.into());
        TaskRecord {
            number: self.context.number,
            id: self.spec.id.clone(),
            name: self.spec.name.clone(),
            phase: self.phase,
            reason: self.reason,
            detail: Detail {
                requeues,
                ..self.detail
            },
            field: self.field,
            error: self.error.clone(),
            memory_bytes: self.spec.memory_bytes,
            share_ppm: self.spec.share_ppm,
            policy: self.spec.policy,
            priority: self.spec.priority,
            deadline_ns: self.spec.deadline_ns,
            submitted_ns: self.submitted_ns,
            started_ns: self.started_ns,
            finished_ns: self.finished_ns,
            launches: self.context.launches(),
            gpu_ns: self.context.gpu_ns(),
            paced: self.context.paced(),
            waited_ns: self.context.waited_ns(),
            throttled_ns: self.context.throttled_ns(),
        }
    }
}
