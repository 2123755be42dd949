//! The documented admission classes, over the core's task table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pygpukit_core::clock::MonotonicClock;
use pygpukit_core::partition::words::percent;
use pygpukit_core::partition::Reservation;
use pygpukit_core::scheduler as core;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::spec_error;
use crate::text::TaskId;
use crate::units::{fraction, ppm};

/// Why a request was rejected.
#[pyclass(frozen, eq, eq_int, hash, from_py_object, module = "pygpukit._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectReason {
    InsufficientMemory,
    InsufficientBandwidth,
    QueueFull,
    UnsatisfiableDependencies,
    Custom,
}

/// The reason with its numbers; those of a share are in parts per million.
#[pyclass(frozen, get_all, from_py_object, module = "pygpukit._core")]
#[derive(Clone)]
pub struct RejectReasonDetails {
    reason_type: &'static str,
    requested_memory: Option<u64>,
    available_memory: Option<u64>,
    text: String,
}

#[pymethods]
impl RejectReasonDetails {
    fn message(&self) -> &str {
        &self.text
    }
}

/// Admitted, Queued or Rejected, with the numbers that go with it.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
#[derive(Default)]
pub struct AdmissionDecision {
    decision_type: &'static str,
    reserved_memory: Option<u64>,
    reserved_bandwidth: Option<f64>,
    queue_position: Option<u64>,
    estimated_wait_ms: Option<f64>,
    rejection_reason: Option<RejectReasonDetails>,
    reason: Option<RejectReason>,
}

impl AdmissionDecision {
    /// What a phase, reason and detail of the table mean here.
    pub fn of(
        phase: core::Phase,
        reason: core::Reason,
        detail: &core::Detail,
        request: Reservation,
    ) -> AdmissionDecision {
        match phase {
            core::Phase::Rejected => {
                let kind = match reason {
                    core::Reason::ExceedsDevice | core::Reason::ExceedsPartition => RejectReason::InsufficientMemory,
                    core::Reason::ShareOversubscribed => RejectReason::InsufficientBandwidth,
                    core::Reason::QueueFull => RejectReason::QueueFull,
                    _ => RejectReason::Custom,
                };
                rejected(kind, reason.name(), detail)
            }
            core::Phase::Submitted | core::Phase::Queued => AdmissionDecision {
                decision_type: "Queued",
                queue_position: detail.position,
                estimated_wait_ms: detail.estimated_wait_ns.map(|ns| ns as f64 / 1e6),
                ..AdmissionDecision::default()
            },
            _ => AdmissionDecision {
                decision_type: "Admitted",
                reserved_memory: Some(request.memory_bytes),
                reserved_bandwidth: Some(fraction(request.share_ppm.into())),
                ..AdmissionDecision::default()
            },
        }
    }
}

fn rejected(kind: RejectReason, name: &str, detail: &core::Detail) -> AdmissionDecision {
    let names = [
        "InsufficientMemory",
        "InsufficientBandwidth",
        "QueueFull",
        "UnsatisfiableDependencies",
        "Custom",
    ];
    let words = |field, value: u64| match (kind, field) {
        (RejectReason::InsufficientBandwidth, "asked" | "available") => percent(value),
        _ => value.to_string(),
    };
    let numbers: String = detail
        .fields()
        .map(|(field, value)| format!(", {field} {}", words(field, value)))
        .collect();
    let memory = |value: Option<u64>| value.filter(|_| kind == RejectReason::InsufficientMemory);
    AdmissionDecision {
        decision_type: "Rejected",
        rejection_reason: Some(RejectReasonDetails {
            reason_type: names[kind as usize],
            requested_memory: memory(detail.asked),
            available_memory: memory(detail.available),
            text: format!("{name}{numbers}"),
        }),
        reason: Some(kind),
        ..AdmissionDecision::default()
    }
}

#[pymethods]
impl AdmissionDecision {
    #[staticmethod]
    #[pyo3(name = "Admitted")]
    fn admitted() -> AdmissionDecision {
        AdmissionDecision {
            decision_type: "Admitted",
            ..AdmissionDecision::default()
        }
    }

    #[staticmethod]
    #[pyo3(name = "Queued")]
    fn queued() -> AdmissionDecision {
        AdmissionDecision {
            decision_type: "Queued",
            ..AdmissionDecision::default()
        }
    }

    fn is_admitted(&self) -> bool {
        self.decision_type == "Admitted"
    }
    fn is_rejected(&self) -> bool {
        self.decision_type == "Rejected"
    }
    fn is_queued(&self) -> bool {
        self.decision_type == "Queued"
    }
    fn reject_reason(&self) -> Option<RejectReason> {
        self.reason
    }
    fn __repr__(&self) -> String {
        format!("AdmissionDecision({})", self.decision_type)
    }
}

/// Totals and bounds: bytes, a fraction of the device, tasks. Without best effort, what does not fit now is rejected, not queued.
#[pyclass(frozen, get_all, from_py_object, module = "pygpukit._core")]
#[derive(Clone)]
pub struct AdmissionConfig {
    max_memory: u64,
    max_bandwidth: f64,
    max_pending_tasks: usize,
    enable_best_effort: bool,
}

#[pymethods]
impl AdmissionConfig {
    #[new]
    #[pyo3(signature = (max_memory, max_bandwidth, max_pending_tasks=1000, enable_best_effort=true))]
    fn new(
        py: Python<'_>,
        max_memory: u64,
        max_bandwidth: f64,
        max_pending_tasks: usize,
        enable_best_effort: bool,
    ) -> PyResult<AdmissionConfig> {
        ppm(py, "max_bandwidth", max_bandwidth)?;
        Ok(AdmissionConfig {
            max_memory,
            max_bandwidth,
            max_pending_tasks,
            enable_best_effort,
        })
    }
}

/// Counts since the start, except pending; bytes and fractions now.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct AdmissionStats {
    admitted_count: u64,
    rejected_count: u64,
    queued_count: u64,
    pending_count: u64,
    reserved_memory: u64,
    used_memory: u64,
    reserved_bandwidth: f64,
    used_bandwidth: f64,
    available_memory: u64,
    available_bandwidth: f64,
}

#[derive(Default)]
struct Counts {
    admitted: u64,
    rejected: u64,
    queued: u64,
}

impl AdmissionStats {
    pub fn of(stats: &core::Stats, total_share_ppm: u32, counts: (u64, u64, u64)) -> AdmissionStats {
        let (admitted_count, rejected_count, queued_count) = counts;
        let share = fraction(stats.reserved_share_ppm);
        AdmissionStats {
            admitted_count,
            rejected_count,
            queued_count,
            pending_count: stats.queued,
            reserved_memory: stats.reserved_memory,
            used_memory: stats.reserved_memory,
            reserved_bandwidth: share,
            used_bandwidth: share,
            available_memory: stats.available_memory,
            available_bandwidth: fraction(u64::from(total_share_ppm) - stats.reserved_share_ppm),
        }
    }
}

/// Reserves memory and share for named requests until they are released; what does not fit waits in order.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct AdmissionController {
    config: AdmissionConfig,
    share_ppm: u32,
    scheduler: core::Scheduler,
    /// The task of each request that is not released yet: a name may be used again afterwards.
    tasks: Mutex<(HashMap<String, core::Name>, Counts)>,
}

#[pymethods]
impl AdmissionController {
    #[new]
    fn new(py: Python<'_>, config: AdmissionConfig) -> PyResult<AdmissionController> {
        let share_ppm = ppm(py, "max_bandwidth", config.max_bandwidth)?;
        let limits = core::Config {
            total_share_ppm: share_ppm,
            max_queue: config.max_pending_tasks,
            max_finished: 1,
            ..core::Config::new(config.max_memory)
        };
        let observer = Box::new(|_: &core::Transition<'_>| {});
        Ok(AdmissionController {
            config,
            share_ppm,
            scheduler: core::Scheduler::new(limits, Arc::new(MonotonicClock), observer),
            tasks: Mutex::default(),
        })
    }

    /// Asks for bytes and a fraction of the device under an id. An id that is in use is a ValueError.
    fn try_admit(&self, py: Python<'_>, task_id: TaskId, memory: u64, bandwidth: f64) -> PyResult<AdmissionDecision> {
        let request = Reservation {
            memory_bytes: memory,
            share_ppm: ppm(py, "bandwidth", bandwidth)?,
        };
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let (open, counts) = &mut *tasks;
        if open.contains_key(&*task_id) {
            return Err(PyValueError::new_err(format!(
                "task_id={:?} is in use; release it first",
                task_id.0
            )));
        }
        let number = counts.admitted + counts.rejected + counts.queued;
        let mut spec = core::TaskSpec {
            memory_bytes: memory,
            share_ppm: request.share_ppm,
            ..core::TaskSpec::new(number.to_string())
        };
        spec.policy = spec.demand().class();
        let id = spec.id.clone();
        let decided = self.scheduler.call(|table, now| {
            let (phase, reason, detail) = table.evaluate(spec.clone(), now)?;
            if phase == core::Phase::Queued && !self.config.enable_best_effort {
                let kind = match reason {
                    core::Reason::WaitingForMemory => RejectReason::InsufficientMemory,
                    core::Reason::WaitingForShare => RejectReason::InsufficientBandwidth,
                    _ => RejectReason::Custom,
                };
                return Ok(rejected(kind, reason.name(), &detail));
            }
            let record = table.submit(spec, now)?;
            while table.next(now).is_some() {}
            Ok(AdmissionDecision::of(
                record.phase,
                record.reason,
                &record.detail,
                request,
            ))
        });
        let decision = decided.map_err(|error| spec_error(py, error))?;
        match decision.decision_type {
            "Admitted" => counts.admitted += 1,
            "Queued" => counts.queued += 1,
            _ => counts.rejected += 1,
        }
        if decision.decision_type != "Rejected" {
            open.insert(task_id.0, id);
        }
        Ok(decision)
    }

    /// Gives back what a request holds, or takes it out of the queue. ValueError for an unknown id.
    fn release(&self, task_id: TaskId) -> PyResult<()> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(id) = tasks.0.remove(&*task_id) else {
            return Err(PyValueError::new_err(format!(
                "task_id={:?} is not admitted or queued here",
                task_id.0
            )));
        };
        self.scheduler.call(|table, now| {
            if table.finish(&id, core::Outcome::Succeeded, now).is_err() {
                // It was still in the queue.
                _ = table.cancel(&id, now);
            }
            while table.next(now).is_some() {}
        });
        Ok(())
    }

    fn stats(&self) -> AdmissionStats {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = (tasks.1.admitted, tasks.1.rejected, tasks.1.queued);
        AdmissionStats::of(&self.scheduler.stats(), self.share_ppm, counts)
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AdmissionConfig>()?;
    module.add_class::<AdmissionController>()?;
    module.add_class::<AdmissionDecision>()?;
    module.add_class::<AdmissionStats>()?;
    module.add_class::<RejectReason>()?;
    module.add_class::<RejectReasonDetails>()
}
