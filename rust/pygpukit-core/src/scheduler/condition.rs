//! Conditions: what else is true of a task, beside its phase. Each is read off what the table, the gate or the pool keeps anyway.

use super::key::Key;
use super::phase::Phase;
use super::table::TaskTable;
use super::task::{Flag, Task};
use crate::partition::words::{bytes, percent};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionKind {
    /// The ledger holds what it requested for it.
    QuotaReserved,
    /// All that it holds is on the device.
    MemoryResident,
    /// Its limit holds it back.
    Throttled,
    /// Some of what it holds is in host memory.
    Evicted,
    /// It gave way to a higher priority, and waits to be admitted again.
    Preempted,
    /// It went back to the queue after a dispatcher had it, or was taken off, and waits to be admitted again.
    Requeued,
    /// As far as run times tell, it cannot end by its deadline.
    DeadlineAtRisk,
}

impl ConditionKind {
    pub const ALL: [ConditionKind; 7] = [
        ConditionKind::QuotaReserved,
        ConditionKind::MemoryResident,
        ConditionKind::Throttled,
        ConditionKind::Evicted,
        ConditionKind::Preempted,
        ConditionKind::Requeued,
        ConditionKind::DeadlineAtRisk,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            ConditionKind::QuotaReserved => "QuotaReserved",
            ConditionKind::MemoryResident => "MemoryResident",
            ConditionKind::Throttled => "Throttled",
            ConditionKind::Evicted => "Evicted",
            ConditionKind::Preempted => "Preempted",
            ConditionKind::Requeued => "Requeued",
            ConditionKind::DeadlineAtRisk => "DeadlineAtRisk",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    pub const fn name(self) -> &'static str {
        match self {
            Status::True => "True",
            Status::False => "False",
            Status::Unknown => "Unknown",
        }
    }

    const fn of(on: bool) -> Status {
        if on {
            Status::True
        } else {
            Status::False
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub kind: ConditionKind,
    pub status: Status,
    /// One word; "" when there is nothing to say.
    pub reason: &'static str,
    /// A sentence with numbers, or "".
    pub message: String,
    /// When the status changed last; the submission if it never did.
    pub since_ns: u64,
}

impl Condition {
    pub fn new(kind: ConditionKind, on: bool, reason: &'static str, message: String, since_ns: u64) -> Condition {
        Condition {
            status: Status::of(on),
            ..Condition::unknown(kind, reason, message, since_ns)
        }
    }

    pub fn unknown(kind: ConditionKind, reason: &'static str, message: String, since_ns: u64) -> Condition {
        let status = Status::Unknown;
        Condition {
            kind,
            status,
            reason,
            message,
            since_ns,
        }
    }
}

impl TaskTable {
    /// Those that the table itself knows of, in the order of `ConditionKind`; None for an unknown task. The gate and the pool know the
    /// others.
    pub fn conditions(&mut self, id: &str, now: u64) -> Option<Vec<Condition>> {
        self.advance(now);
        let key = self.find(id)?;
        let task = &self.tasks[key];
        let reason = self.record(key).reason.name();
        Some(vec![
            quota_reserved(task, reason),
            again(ConditionKind::Preempted, task.preempted, task.preemptions, task, reason),
            again(ConditionKind::Requeued, task.requeued, task.requeues, task, reason),
            self.deadline_at_risk(key, now),
        ])
    }

    /// Nothing is kept of it: it began when no more time was left than is needed.
    fn deadline_at_risk(&self, key: Key, now: u64) -> Condition {
        let task = &self.tasks[key];
        let risk = |on, reason, message, since_ns| {
            Condition::new(ConditionKind::DeadlineAtRisk, on, reason, message, since_ns)
        };
        let deadline_ns = task.spec.deadline_ns;
        if deadline_ns == 0 {
            return risk(false, "NoDeadline", String::new(), task.submitted_ns);
        }
        match task.phase {
            Phase::Expired => return risk(true, "DeadlinePassed", String::new(), task.finished_ns),
            phase if phase.is_terminal() => return risk(false, "Ended", String::new(), task.finished_ns),
            _ => {}
        }
        let Some(run_ns) = self.runs.expected_ns(&task.spec) else {
            let message = "no task of its name has succeeded yet, and estimate= was not given".to_string();
            return Condition::unknown(ConditionKind::DeadlineAtRisk, "NoEstimate", message, task.submitted_ns);
        };
        // One under way may end that long after its start; the start of one that waits is that far away.
        let (from_ns, needed_ns) = match task.phase {
            Phase::Running | Phase::Suspended => (task.run_started_ns, run_ns),
            _ => {
                let place = self.waiting.ahead_of(task.line, task.spec.priority, key) as u64 + 1;
                let wait_ns = task.waits_in_line().then(|| self.estimated_wait_ns(place)).flatten();
                (now, run_ns.saturating_add(wait_ns.unwrap_or(0)))
            }
        };
        let on = from_ns.saturating_add(needed_ns) > deadline_ns;
        let left_ns = deadline_ns.saturating_sub(from_ns);
        let message = format!("it takes {needed_ns} ns as far as run times tell, of {left_ns} ns");
        let latest_ns = deadline_ns.saturating_sub(needed_ns);
        let (reason, since_ns) = match on {
            true => ("EstimateBeyondDeadline", latest_ns.max(task.submitted_ns)),
            false => ("EstimateWithinDeadline", task.submitted_ns),
        };
        risk(on, reason, message, since_ns)
    }
}

fn quota_reserved(task: &Task, reason: &'static str) -> Condition {
    let since_ns = task.reserved_since_ns.max(task.submitted_ns);
    let (on, why, message) = match task.reserved {
        Some(held) => {
            let (memory, share) = (bytes(held.memory_bytes), percent(held.share_ppm.into()));
            let message = format!("{memory} and {share} of the device");
            (true, "Reserved", message)
        }
        None if task.phase == Phase::Queued => (false, reason, String::new()),
        None if task.phase == Phase::Rejected => (false, "Rejected", String::new()),
        None => (false, "Released", String::new()),
    };
    Condition::new(ConditionKind::QuotaReserved, on, why, message, since_ns)
}

fn again(kind: ConditionKind, flag: Flag, times: u32, task: &Task, reason: &'static str) -> Condition {
    let message = match times {
        0 => String::new(),
        n => format!("{n} so far"),
    };
    let why = match (flag.on, times) {
        (true, _) => reason,
        (false, 0) => "Never",
        (false, _) if task.phase.is_terminal() => "Ended",
        (false, _) => "AdmittedAgain",
    };
    Condition::new(kind, flag.on, why, message, flag.since_ns.max(task.submitted_ns))
}
