//! The documented Scheduler class and its kin: the core's task table, driven by hand.

use std::ops::Add;
use std::sync::{Arc, Mutex, PoisonError};

use pygpukit_core::clock::{Clock, MonotonicClock};
use pygpukit_core::scheduler as core;
use pyo3::prelude::*;

use super::admission::{AdmissionDecision, AdmissionStats};
use crate::errors::raise_with;
use crate::errors::spec_error;
use crate::text::{OwnText, TaskId};

const NS: f64 = 1e9;

/// The documented names of phases: Pending is everything before the start, Failed everything that ended badly but was not cancelled.
#[pyclass(frozen, eq, eq_int, hash, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    Pending,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl From<core::Phase> for TaskState {
    fn from(phase: core::Phase) -> TaskState {
        use core::Phase::*;
        match phase {
            Submitted | Queued | Admitted => TaskState::Pending,
            Running | Suspended => TaskState::Running,
            Succeeded => TaskState::Completed,
            Failed | Rejected | Expired => TaskState::Failed,
            Cancelled => TaskState::Cancelled,
        }
    }
}

/// In which order tasks run. There is one: by priority, and first come, first served inside a priority.
#[pyclass(frozen, eq, eq_int, hash, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskPolicy {
    Fifo,
    Sjf,
    Priority,
}

/// A task to submit, or a copy of one's state. memory_estimate: bytes to reserve. Times are seconds on the scheduler's clock.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct TaskMeta {
    id: String,
    name: String,
    state: TaskState,
    policy: TaskPolicy,
    priority: i32,
    memory_estimate: u64,
    submitted_at: f64,
    started_at: Option<f64>,
    completed_at: Option<f64>,
    error: Option<String>,
    dependencies: Vec<String>,
}

impl TaskMeta {
    fn of(record: core::TaskRecord) -> TaskMeta {
        let seconds = |ns: u64| (ns > 0).then_some(ns as f64 / NS);
        let rejected = record.phase == core::Phase::Rejected && record.error.is_empty();
        let error = if rejected {
            record.reason.name().to_string()
        } else {
            record.error
        };
        TaskMeta {
            id: record.id.to_string(),
            name: record.name.to_string(),
            state: record.phase.into(),
            policy: TaskPolicy::Priority,
            priority: record.priority,
            memory_estimate: record.memory_bytes,
            submitted_at: record.submitted_ns as f64 / NS,
            started_at: seconds(record.started_ns),
            completed_at: seconds(record.finished_ns),
            error: (!error.is_empty()).then_some(error),
            dependencies: record.depends_on.iter().map(|id| id.to_string()).collect(),
        }
    }

    fn spec(&self) -> core::TaskSpec {
        let mut spec = core::TaskSpec {
            name: self.name.as_str().into(),
            memory_bytes: self.memory_estimate,
            priority: self.priority,
            depends_on: self.dependencies.iter().map(|id| id.as_str().into()).collect(),
            ..core::TaskSpec::new(self.id.as_str())
        };
        spec.policy = spec.demand().class();
        spec
    }
}

#[pymethods]
impl TaskMeta {
    #[new]
    #[pyo3(signature = (id, name, memory_estimate=0, priority=0, dependencies=None))]
    fn new(
        id: OwnText,
        name: OwnText,
        memory_estimate: u64,
        priority: i32,
        dependencies: Option<Vec<TaskId>>,
    ) -> TaskMeta {
        TaskMeta {
            id: id.0,
            name: name.0,
            state: TaskState::Pending,
            policy: TaskPolicy::Priority,
            priority,
            memory_estimate,
            submitted_at: MonotonicClock.now_ns() as f64 / NS,
            started_at: None,
            completed_at: None,
            error: None,
            dependencies: dependencies.into_iter().flatten().map(|task| task.0).collect(),
        }
    }

    fn is_terminal(&self) -> bool {
        !matches!(self.state, TaskState::Pending | TaskState::Running)
    }

    /// Seconds since it was submitted, up to its end.
    fn elapsed(&self) -> f64 {
        let now = MonotonicClock.now_ns() as f64 / NS;
        self.completed_at.unwrap_or(now) - self.submitted_at
    }

    /// Seconds from its start to its end; None before.
    fn duration(&self) -> Option<f64> {
        Some(self.completed_at? - self.started_at?)
    }
}

/// Times of one task in seconds, and the bytes it asked for.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct TaskStats {
    id: String,
    name: String,
    state: TaskState,
    wait_time: f64,
    exec_time: f64,
    memory_used: u64,
}

impl TaskStats {
    fn of(record: core::TaskRecord, now: u64) -> TaskStats {
        let until = |ns: u64| if ns > 0 { ns } else { now };
        let first = if record.started_ns > 0 {
            record.started_ns
        } else {
            until(record.finished_ns)
        };
        let ran = if record.started_ns > 0 {
            until(record.finished_ns).saturating_sub(record.started_ns)
        } else {
            0
        };
        TaskStats {
            wait_time: first.saturating_sub(record.submitted_ns) as f64 / NS,
            exec_time: ran as f64 / NS,
            state: record.phase.into(),
            memory_used: record.memory_bytes,
            id: record.id.to_string(),
            name: record.name.to_string(),
        }
    }
}

/// Counts since the start, except pending and running; bytes now; mean seconds of the tasks remembered.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct SchedulerStats {
    total_submitted: u64,
    pending_count: u64,
    running_count: u64,
    completed_count: u64,
    failed_count: u64,
    cancelled_count: u64,
    reserved_memory: u64,
    available_memory: u64,
    avg_wait_time: f64,
    avg_exec_time: f64,
}

/// The task table without threads: the caller starts tasks and says how they ended. total_memory: bytes; None = no bound.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct Scheduler {
    #[pyo3(get)]
    total_memory: Option<u64>,
    #[pyo3(get)]
    sched_tick_ms: f64,
    #[pyo3(get)]
    window_ms: f64,
    table: Mutex<Arc<core::Scheduler>>,
}

fn fresh(total_memory: Option<u64>) -> Arc<core::Scheduler> {
    let observer = Box::new(|_: &core::Transition<'_>| {});
    let config = core::Config::new(total_memory.unwrap_or(u64::MAX));
    Arc::new(core::Scheduler::new(config, Arc::new(MonotonicClock), observer))
}

impl Scheduler {
    fn table(&self) -> Arc<core::Scheduler> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn finish(&self, task_id: &str, from: &[core::Phase], outcome: core::Outcome) -> bool {
        self.table().call(|table, now| {
            let fits = table
                .get(task_id, now)
                .is_some_and(|record| from.contains(&record.phase));
            fits && table.finish(task_id, outcome, now).is_ok()
        })
    }

    fn enter(&self, py: Python<'_>, task: &TaskMeta) -> PyResult<core::TaskRecord> {
        let entered = self.table().call(|table, now| {
            let spec = task.spec();
            if table.get(&spec.id, now).is_none() {
                table.evaluate(spec.clone(), now)?; // so that nothing is kept of a malformed one
            }
            table.submit(spec, now)
        });
        entered.map_err(|error| spec_error(py, error))
    }
}

#[pymethods]
impl Scheduler {
    #[new]
    #[pyo3(signature = (total_memory=None, sched_tick_ms=10.0, window_ms=100.0))]
    fn new(py: Python<'_>, total_memory: Option<u64>, sched_tick_ms: f64, window_ms: f64) -> PyResult<Scheduler> {
        for (field, ms) in [("sched_tick_ms", sched_tick_ms), ("window_ms", window_ms)] {
            if !(ms.is_finite() && ms > 0.0) {
                let text = format!("{field}={ms}; give a number more than 0");
                return Err(raise_with(py, "InvalidSpecError", (text, field)));
            }
        }
        Ok(Scheduler {
            total_memory,
            sched_tick_ms,
            window_ms,
            table: Mutex::new(fresh(total_memory)),
        })
    }

    /// Takes a task in and returns its id. InvalidSpecError (a ValueError) for a malformed one; one that can never run has Failed.
    fn submit(&self, py: Python<'_>, task: &TaskMeta) -> PyResult<String> {
        Ok(self.enter(py, task)?.id.to_string())
    }

    /// Takes a task in and says what became of it.
    fn admit(&self, py: Python<'_>, task: &TaskMeta) -> PyResult<AdmissionDecision> {
        let record = self.enter(py, task)?;
        let request = task.spec().reservation();
        Ok(AdmissionDecision::of(
            record.phase,
            record.reason,
            &record.detail,
            request,
        ))
    }

    /// What would become of a task; nothing changes.
    fn evaluate_admission(&self, py: Python<'_>, task: &TaskMeta) -> PyResult<AdmissionDecision> {
        let spec = task.spec();
        let request = spec.reservation();
        let (phase, reason, detail) = self
            .table()
            .call(|table, now| table.evaluate(spec, now))
            .map_err(|error| spec_error(py, error))?;
        Ok(AdmissionDecision::of(phase, reason, &detail, request))
    }

    fn admission_stats(&self) -> AdmissionStats {
        let stats = self.table().stats();
        let admitted = stats.admitted + stats.running + stats.suspended + stats.succeeded;
        let counts = (admitted, stats.rejected, stats.queued);
        AdmissionStats::of(&stats, pygpukit_core::partition::WHOLE_SHARE_PPM, counts)
    }

    /// Ids of tasks that may be started now, in order.
    #[pyo3(signature = (max_tasks=1))]
    fn get_runnable_tasks(&self, max_tasks: usize) -> Vec<String> {
        let ids = self.table().call(|table, now| table.admitted_ids(max_tasks, now));
        ids.iter().map(|id| id.to_string()).collect()
    }

    fn should_run(&self, task_id: TaskId) -> bool {
        let record = self.table().get(&task_id);
        record.is_some_and(|record| matches!(record.phase, core::Phase::Admitted | core::Phase::Running))
    }

    /// False, and no change, unless it may be started now.
    fn start_task(&self, task_id: TaskId) -> bool {
        self.table().call(|table, now| table.start(&task_id, now).is_ok())
    }

    /// False, and no change, unless it runs.
    fn complete_task(&self, task_id: TaskId) -> bool {
        self.finish(&task_id, &[core::Phase::Running], core::Outcome::Succeeded)
    }

    /// False, and no change, unless it runs or may be started.
    fn fail_task(&self, task_id: TaskId, error: OwnText) -> bool {
        let (reason, error) = (core::Reason::UserError, error.0);
        let from = [core::Phase::Running, core::Phase::Admitted];
        self.finish(&task_id, &from, core::Outcome::Failed { reason, error })
    }

    /// False when it is unknown or had ended.
    fn cancel_task(&self, task_id: TaskId) -> bool {
        self.table().call(|table, now| {
            let cancelled = table.cancel(&task_id, now) == Ok(true);
            if cancelled {
                // The caller is the dispatcher, and out of it.
                _ = table.finish(&task_id, core::Outcome::Succeeded, now);
            }
            cancelled
        })
    }

    fn get_task(&self, task_id: TaskId) -> Option<TaskMeta> {
        self.table().get(&task_id).map(TaskMeta::of)
    }

    fn get_task_state(&self, task_id: TaskId) -> Option<TaskState> {
        self.table().get(&task_id).map(|record| record.phase.into())
    }

    fn task_stats(&self, task_id: TaskId) -> Option<TaskStats> {
        let now = MonotonicClock.now_ns();
        self.table().get(&task_id).map(|record| TaskStats::of(record, now))
    }

    fn stats(&self) -> SchedulerStats {
        let (table, now) = (self.table(), MonotonicClock.now_ns());
        let stats = table.stats();
        let started = table.tasks().into_iter().filter(|record| record.started_ns > 0);
        let times: Vec<TaskStats> = started.map(|record| TaskStats::of(record, now)).collect();
        // From 0.0: the sum of nothing would be -0.0.
        let mean = |of: fn(&TaskStats) -> f64| times.iter().map(of).fold(0.0, f64::add) / times.len().max(1) as f64;
        SchedulerStats {
            total_submitted: stats.submitted,
            pending_count: stats.queued + stats.admitted,
            running_count: stats.running + stats.suspended,
            completed_count: stats.succeeded,
            failed_count: stats.failed + stats.rejected + stats.expired,
            cancelled_count: stats.cancelled,
            reserved_memory: stats.reserved_memory,
            available_memory: stats.available_memory,
            avg_wait_time: mean(|t| t.wait_time),
            avg_exec_time: mean(|t| t.exec_time),
        }
    }

    /// Forgets every task.
    fn clear(&self) {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = fresh(self.total_memory);
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Scheduler>()?;
    module.add_class::<SchedulerStats>()?;
    module.add_class::<TaskMeta>()?;
    module.add_class::<TaskPolicy>()?;
    module.add_class::<TaskState>()?;
    module.add_class::<TaskStats>()
}
