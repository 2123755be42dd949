//! Python classes over the scheduler and over what the gates measured.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pygpukit_core::clock::MonotonicClock;
use pygpukit_core::intern::Interner;
use pygpukit_core::pacing::View;
use pygpukit_core::ring::{kind, Event, Ring};
use pygpukit_core::scheduler as core;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raise_with;
use crate::gate;

static NEXT_ORDINAL: AtomicU32 = AtomicU32::new(0);

/// A copy of one task's state.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct TaskRecord(core::TaskRecord);

#[pymethods]
impl TaskRecord {
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }
    #[getter]
    fn id(&self) -> &str {
        &self.0.id
    }
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }
    #[getter]
    fn phase(&self) -> &'static str {
        self.0.phase.name()
    }
    #[getter]
    fn reason(&self) -> &'static str {
        self.0.reason.name()
    }
    #[getter]
    fn detail<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for (name, value) in self.0.detail.fields() {
            fields.set_item(name, value)?;
        }
        Ok(fields)
    }
    #[getter]
    fn field(&self) -> &'static str {
        self.0.field
    }
    #[getter]
    fn error(&self) -> &str {
        &self.0.error
    }
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes
    }
    #[getter]
    fn share_ppm(&self) -> u32 {
        self.0.share_ppm
    }
    #[getter]
    fn policy(&self) -> &'static str {
        self.0.policy.name()
    }
    #[getter]
    fn priority(&self) -> i32 {
        self.0.priority
    }
    #[getter]
    fn deadline_ns(&self) -> u64 {
        self.0.deadline_ns
    }
    #[getter]
    fn submitted_ns(&self) -> u64 {
        self.0.submitted_ns
    }
    #[getter]
    fn started_ns(&self) -> u64 {
        self.0.started_ns
    }
    #[getter]
    fn finished_ns(&self) -> u64 {
        self.0.finished_ns
    }
    #[getter]
    fn launches(&self) -> u64 {
        self.0.launches
    }
    #[getter]
    fn gpu_ns(&self) -> u64 {
        self.0.gpu_ns
    }
    #[getter]
    fn paced(&self) -> u64 {
        self.0.paced
    }
    #[getter]
    fn waited_ns(&self) -> u64 {
        self.0.waited_ns
    }
    #[getter]
    fn throttled_ns(&self) -> u64 {
        self.0.throttled_ns
    }
    fn __repr__(&self) -> String {
        format!(
            "TaskRecord(id={:?}, phase={:?}, reason={:?})",
            self.0.id,
            self.phase(),
            self.reason()
        )
    }
}

/// The task state table, memory and share ledger, and queue. Thread-safe; no Python runs under its lock.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct SchedulerCore {
    scheduler: Arc<core::Scheduler>,
    /// Contexts handed out by number, kept alive until their task is finished.
    contexts: Mutex<HashMap<String, Arc<core::TaskContext>>>,
}

/// Live schedulers, for the gauges.
static LIVE: Mutex<Vec<Weak<core::Scheduler>>> = Mutex::new(Vec::new());

/// (running, queued) tasks over all schedulers of the process.
pub fn live_task_counts() -> (u64, u64) {
    let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    live.retain(|scheduler| scheduler.strong_count() > 0);
    live.iter()
        .filter_map(Weak::upgrade)
        .map(|scheduler| scheduler.stats())
        .fold((0, 0), |(running, queued), stats| {
            (running + stats.running, queued + stats.queued)
        })
}

/// Writes a TASK record for every transition.
fn record(transition: &core::Transition<'_>) {
    let event = Event {
        kind: kind::TASK,
        name: Interner::global().intern(transition.name),
        a: transition.number,
        b: transition.from.code() << 8 | transition.to.code(),
        c: transition.reason.code(),
        ..Event::default()
    };
    Ring::global().push(transition.t_ns, &event);
}

fn task_error(error: core::TaskError) -> PyErr {
    match error {
        core::TaskError::Unknown { .. } => PyKeyError::new_err(error.to_string()),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

#[pymethods]
impl SchedulerCore {
    #[new]
    #[pyo3(signature = (total_memory, total_share_ppm=1_000_000, max_queue=1000, max_finished=4096))]
    fn new(total_memory: u64, total_share_ppm: u32, max_queue: usize, max_finished: usize) -> SchedulerCore {
        let ordinal = NEXT_ORDINAL.fetch_add(1, Ordering::Relaxed);
        let config = core::Config {
            total_memory,
            total_share_ppm,
            max_queue,
            max_finished,
            ordinal,
        };
        let scheduler = Arc::new(core::Scheduler::new(config, Arc::new(MonotonicClock), Box::new(record)));
        LIVE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&scheduler));
        SchedulerCore {
            scheduler,
            contexts: Mutex::default(),
        }
    }

    #[pyo3(signature = (id, name, memory_bytes, share_ppm, policy, priority=0, depends_on=Vec::new(), deadline_ns=0, idempotent=false))]
    #[allow(clippy::too_many_arguments)] // the keyword arguments of one Python call
    fn submit(
        &self,
        py: Python<'_>,
        id: String,
        name: String,
        memory_bytes: u64,
        share_ppm: u32,
        policy: &str,
        priority: i32,
        depends_on: Vec<String>,
        deadline_ns: u64,
        idempotent: bool,
    ) -> PyResult<TaskRecord> {
        let policy = core::Policy::from_name(policy).ok_or_else(|| {
            PyValueError::new_err(format!(
                "unknown policy {policy:?}: Guaranteed, Burstable or BestEffort"
            ))
        })?;
        let spec = core::TaskSpec {
            id,
            name,
            memory_bytes,
            share_ppm,
            policy,
            priority,
            depends_on,
            deadline_ns,
            idempotent,
        };
        match self.scheduler.submit(spec) {
            Ok(record) => Ok(TaskRecord(record)),
            Err(error) => Err(raise_with(py, "InvalidSpecError", (error.to_string(), error.field))),
        }
    }

    /// Waits, without the GIL, for a task to run; marks it Running and returns its id, or None at the timeout.
    fn next(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let timeout = timeout(timeout_s)?;
        Ok(py
            .detach(|| self.scheduler.next(timeout))
            .map(|context| context.id.clone()))
    }

    #[pyo3(signature = (id, error=None, reason="UserError"))]
    fn finish(&self, py: Python<'_>, id: &str, error: Option<String>, reason: &str) -> PyResult<&'static str> {
        let outcome = match error {
            None => core::Outcome::Succeeded,
            Some(error) => {
                let reason = core::Reason::from_name(reason)
                    .ok_or_else(|| PyValueError::new_err(format!("unknown reason {reason:?}")))?;
                core::Outcome::Failed { reason, error }
            }
        };
        let context = self.contexts.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(context) = context {
            py.detach(|| gate::leave(&context)); // so that its record is complete when others see it end
        }
        let result = self.scheduler.finish(id, outcome);
        result.map(core::Phase::name).map_err(task_error)
    }

    fn cancel(&self, id: &str) -> PyResult<bool> {
        self.scheduler.cancel(id).map_err(task_error)
    }

    /// Tasks that ended after the first `since`, and how many have ended; waits without the GIL for one more.
    fn finished(&self, py: Python<'_>, since: u64, timeout_s: f64) -> PyResult<(Vec<TaskRecord>, u64)> {
        let timeout = timeout(timeout_s)?;
        let (records, count) = py.detach(|| self.scheduler.finished(since, timeout));
        Ok((records.into_iter().map(TaskRecord).collect(), count))
    }

    fn get(&self, id: &str) -> Option<TaskRecord> {
        self.scheduler.get(id).map(TaskRecord)
    }

    fn tasks(&self) -> Vec<TaskRecord> {
        self.scheduler.tasks().into_iter().map(TaskRecord).collect()
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        for (name, value) in self.scheduler.stats().fields() {
            stats.set_item(name, value)?;
        }
        Ok(stats)
    }

    /// Opaque handle for native.enter_context(), valid until the task is finished.
    fn context(&self, id: &str) -> PyResult<u64> {
        let context = self.scheduler.context(id).ok_or_else(|| {
            PyKeyError::new_err(format!("no scheduling context for task {id:?}: it is unknown or ended"))
        })?;
        let handle = Arc::as_ptr(&context) as u64;
        self.contexts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.to_string(), context);
        Ok(handle)
    }

    /// What the gate of each device measured: one dict a device that tasks have launched on.
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let views = py.detach(gate::views);
        views
            .iter()
            .map(|(device, view)| view_dict(py, *device, view))
            .collect()
    }

    fn wake(&self) {
        self.scheduler.wake();
    }

    fn close(&self) {
        self.scheduler.close();
    }
}

fn view_dict<'py>(py: Python<'py>, device: usize, view: &View) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("device", device)?;
    dict.set_item("now_ns", view.now_ns)?;
    dict.set_item("in_flight_ns", view.in_flight_ns)?;
    let tenants = PyDict::new(py);
    for tenant in &view.tenants {
        let fields = PyDict::new(py);
        fields.set_item("gpu_ns", tenant.gpu_ns)?;
        fields.set_item("joined_ns", tenant.joined_ns)?;
        fields.set_item("shares_ppm", tenant.shares_ppm)?;
        fields.set_item("waits", tenant.waits)?;
        tenants.set_item(tenant.number, fields)?;
    }
    dict.set_item("tenants", tenants)?;
    let throttles = view.throttles.iter().map(|t| (t.number, t.from_ns, t.until_ns));
    dict.set_item("throttles", throttles.collect::<Vec<_>>())?;
    Ok(dict)
}

fn timeout(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "timeout_s is {seconds}; it must be a number of seconds, 0 or more"
        ))
    })
}

/// The phase table as (from, to, reason group, when).
#[pyfunction]
pub fn task_edges() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    core::EDGES
        .iter()
        .map(|edge| (edge.from.name(), edge.to.name(), edge.reasons.name(), edge.when))
        .collect()
}
