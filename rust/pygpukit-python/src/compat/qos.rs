//! The documented QoS classes, over the core's derivation of classes and its ledger.

use std::sync::{Mutex, PoisonError};

use pygpukit_core::partition::words::{bytes, percent, Words};
use pygpukit_core::partition::{Account, Ledger, Reservation, Resource, WHOLE_SHARE_PPM};
use pygpukit_core::scheduler::{Demand, Policy};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raise_with;
use crate::errors::spec_error;
use crate::text::OwnText;
use crate::units::{fraction, ppm};

/// The class of a task, derived from its requests and limits as in Kubernetes.
#[pyclass(frozen, eq, eq_int, hash, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum QosClass {
    Guaranteed,
    Burstable,
    BestEffort,
}

impl From<Policy> for QosClass {
    fn from(policy: Policy) -> QosClass {
        match policy {
            Policy::Guaranteed => QosClass::Guaranteed,
            Policy::Burstable => QosClass::Burstable,
            Policy::BestEffort => QosClass::BestEffort,
        }
    }
}

#[pymethods]
impl QosClass {
    /// The documented rank of the class. Scheduling goes by a task's own priority, which is independent of its class.
    fn priority(&self) -> i32 {
        [100, 50, 0][*self as usize]
    }

    fn can_preempt(&self, other: PyRef<'_, QosClass>) -> bool {
        self.priority() > other.priority()
    }

    fn memory_overcommit_ratio(&self) -> f64 {
        [1.0, 1.5, 2.0][*self as usize]
    }

    fn bandwidth_ratio(&self) -> f64 {
        [1.0, 0.8, 0.5][*self as usize]
    }
}

/// A task to evaluate: bytes and fractions. One of the three constructors makes it.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct QosTaskMeta {
    id: String,
    name: String,
    qos_class: QosClass,
    memory_request: u64,
    memory_limit: u64,
    burst_ratio: f64,
    bandwidth_request: f64,
}

/// Memory up to which a burst may go; a ratio of 1 or more.
fn burst_limit(py: Python<'_>, request: u64, ratio: f64) -> PyResult<u64> {
    if ratio.is_finite() && ratio >= 1.0 {
        return Ok((request as f64 * ratio) as u64);
    }
    let text = format!("burst_ratio={ratio}; give 1 or more");
    Err(raise_with(py, "InvalidSpecError", (text, "burst_ratio")))
}

impl QosTaskMeta {
    fn demand(&self) -> Demand {
        let request = Reservation {
            memory_bytes: self.memory_request,
            share_ppm: (self.bandwidth_request * f64::from(WHOLE_SHARE_PPM)).round() as u32,
        };
        Demand {
            request,
            memory_limit: (self.memory_limit > 0).then_some(self.memory_limit),
            share_limit_ppm: (self.qos_class == QosClass::Guaranteed).then_some(request.share_ppm),
        }
    }

    fn checked(self, py: Python<'_>) -> PyResult<QosTaskMeta> {
        let demand = self.demand();
        let policy = match self.qos_class {
            QosClass::Guaranteed => Policy::Guaranteed,
            QosClass::Burstable => Policy::Burstable,
            QosClass::BestEffort => Policy::BestEffort,
        };
        match demand.filled(policy) {
            Ok(_) => Ok(self),
            Err(error) => Err(spec_error(py, error)),
        }
    }
}

#[pymethods]
impl QosTaskMeta {
    /// Memory and share are reserved in full. bandwidth: fraction of the device; the whole of it unless given.
    #[staticmethod]
    #[pyo3(signature = (id, name, memory, bandwidth=1.0))]
    fn guaranteed(py: Python<'_>, id: OwnText, name: OwnText, memory: u64, bandwidth: f64) -> PyResult<QosTaskMeta> {
        ppm(py, "bandwidth", bandwidth)?;
        let meta = QosTaskMeta {
            id: id.0,
            name: name.0,
            qos_class: QosClass::Guaranteed,
            memory_request: memory,
            memory_limit: memory,
            burst_ratio: 1.0,
            bandwidth_request: bandwidth,
        };
        meta.checked(py)
    }

    /// The request is reserved; up to burst_ratio times as much may be used where there is more.
    #[staticmethod]
    fn burstable(
        py: Python<'_>,
        id: OwnText,
        name: OwnText,
        memory_request: u64,
        burst_ratio: f64,
    ) -> PyResult<QosTaskMeta> {
        let meta = QosTaskMeta {
            id: id.0,
            name: name.0,
            qos_class: QosClass::Burstable,
            memory_request,
            memory_limit: burst_limit(py, memory_request, burst_ratio)?,
            burst_ratio,
            bandwidth_request: 0.0,
        };
        meta.checked(py)
    }

    #[staticmethod]
    fn best_effort(id: OwnText, name: OwnText) -> QosTaskMeta {
        QosTaskMeta {
            id: id.0,
            name: name.0,
            qos_class: QosClass::BestEffort,
            memory_request: 0,
            memory_limit: 0,
            burst_ratio: 1.0,
            bandwidth_request: 0.0,
        }
    }

    fn effective_priority(&self) -> i32 {
        self.qos_class.priority()
    }
}

/// What a class of task reserves.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct QosPolicy {
    #[pyo3(get)]
    qos_class: QosClass,
    memory: u64,
}

#[pymethods]
impl QosPolicy {
    #[staticmethod]
    fn guaranteed(memory: u64) -> QosPolicy {
        QosPolicy {
            qos_class: QosClass::Guaranteed,
            memory,
        }
    }

    #[staticmethod]
    fn burstable(py: Python<'_>, memory_request: u64, burst_ratio: f64) -> PyResult<QosPolicy> {
        burst_limit(py, memory_request, burst_ratio)?;
        Ok(QosPolicy {
            qos_class: QosClass::Burstable,
            memory: memory_request,
        })
    }

    #[staticmethod]
    fn best_effort() -> QosPolicy {
        QosPolicy {
            qos_class: QosClass::BestEffort,
            memory: 0,
        }
    }

    fn memory_to_reserve(&self) -> u64 {
        self.memory
    }

    /// The whole device for Guaranteed, which names no share here; nothing for the others.
    fn bandwidth_to_reserve(&self) -> f64 {
        f64::from(u8::from(self.qos_class == QosClass::Guaranteed))
    }
}

/// Requests and limits: bytes and fractions.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct ResourceRequirements {
    memory_request: u64,
    memory_limit: u64,
    bandwidth_request: f64,
    bandwidth_limit: f64,
}

#[pymethods]
impl ResourceRequirements {
    #[new]
    #[pyo3(signature = (memory_request, memory_limit=None, bandwidth_request=0.0, bandwidth_limit=1.0))]
    fn new(
        py: Python<'_>,
        memory_request: u64,
        memory_limit: Option<u64>,
        bandwidth_request: f64,
        bandwidth_limit: f64,
    ) -> PyResult<ResourceRequirements> {
        let request = ppm(py, "bandwidth_request", bandwidth_request)?;
        let limit = ppm(py, "bandwidth_limit", bandwidth_limit)?;
        let memory_limit = memory_limit.unwrap_or(memory_request);
        let wrong = if memory_limit < memory_request {
            Some("memory_limit")
        } else {
            (limit < request).then_some("bandwidth_limit")
        };
        if let Some(field) = wrong {
            return Err(raise_with(
                py,
                "InvalidSpecError",
                (format!("{field} is less than the request"), field),
            ));
        }
        Ok(ResourceRequirements {
            memory_request,
            memory_limit,
            bandwidth_request,
            bandwidth_limit,
        })
    }

    #[staticmethod]
    fn guaranteed(py: Python<'_>, memory: u64) -> PyResult<ResourceRequirements> {
        ResourceRequirements::new(py, memory, None, 1.0, 1.0)
    }

    #[staticmethod]
    fn burstable(py: Python<'_>, memory_request: u64, burst_ratio: f64) -> PyResult<ResourceRequirements> {
        let limit = burst_limit(py, memory_request, burst_ratio)?;
        ResourceRequirements::new(py, memory_request, Some(limit), 0.0, 1.0)
    }

    #[staticmethod]
    fn best_effort(py: Python<'_>) -> PyResult<ResourceRequirements> {
        ResourceRequirements::new(py, 0, None, 0.0, 1.0)
    }
}

/// Admitted; Throttled (the request fits, its burst does not); Queued (not now); or Rejected (never).
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct QosEvaluation {
    decision_type: &'static str,
    qos_class: Option<QosClass>,
    reserved_memory: Option<u64>,
    reserved_bandwidth: Option<f64>,
    reject_reason: Option<String>,
}

#[pymethods]
impl QosEvaluation {
    fn is_admitted(&self) -> bool {
        self.decision_type == "Admitted"
    }
    fn is_throttled(&self) -> bool {
        self.decision_type == "Throttled"
    }
    fn is_queued(&self) -> bool {
        self.decision_type == "Queued"
    }
    fn is_rejected(&self) -> bool {
        self.decision_type == "Rejected"
    }
    fn __repr__(&self) -> String {
        format!("QosEvaluation({})", self.decision_type)
    }
}

/// Bytes and fractions in the evaluator's ledger.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct QosStats {
    total_memory: u64,
    total_bandwidth: f64,
    guaranteed_memory: u64,
    guaranteed_bandwidth: f64,
    burstable_memory: u64,
    best_effort_queue: u64,
    available_memory: u64,
    available_bandwidth: f64,
}

struct Books {
    /// Accounts 0 and 1: Guaranteed and Burstable.
    ledger: Ledger,
    best_effort: u64,
}

/// Says what would become of a task, and keeps the ledger of those one reserves for.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct QosPolicyEvaluator {
    total: Reservation,
    books: Mutex<Books>,
}

const ACCOUNTS: [QosClass; 2] = [QosClass::Guaranteed, QosClass::Burstable];

impl QosPolicyEvaluator {
    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn empty(total: Reservation) -> Books {
    let mut ledger = Ledger::new(total.memory_bytes, total.share_ppm);
    for account in 0..ACCOUNTS.len() {
        let bounds = Account {
            kept: Reservation::default(),
            cap: total,
            ..Account::default()
        };
        ledger.open(account, bounds).expect("it keeps nothing");
    }
    Books { ledger, best_effort: 0 }
}

fn account(class: QosClass) -> Option<usize> {
    ACCOUNTS.iter().position(|&with| with == class)
}

#[pymethods]
impl QosPolicyEvaluator {
    #[new]
    #[pyo3(signature = (total_memory, total_bandwidth=1.0))]
    fn new(py: Python<'_>, total_memory: u64, total_bandwidth: f64) -> PyResult<QosPolicyEvaluator> {
        let total = Reservation {
            memory_bytes: total_memory,
            share_ppm: ppm(py, "total_bandwidth", total_bandwidth)?,
        };
        Ok(QosPolicyEvaluator {
            total,
            books: Mutex::new(empty(total)),
        })
    }

    /// Changes nothing: reserve() does.
    fn evaluate(&self, task: &QosTaskMeta) -> QosEvaluation {
        let books = self.books();
        let request = task.demand().request;
        let evaluation = |decision_type, reject_reason| QosEvaluation {
            decision_type,
            qos_class: Some(task.qos_class),
            reserved_memory: (decision_type == "Admitted" || decision_type == "Throttled")
                .then_some(request.memory_bytes),
            reserved_bandwidth: (decision_type == "Admitted" || decision_type == "Throttled")
                .then_some(fraction(request.share_ppm.into())),
            reject_reason,
        };
        let Some(account) = account(task.qos_class) else {
            // Best effort asks for nothing; where nothing is left it has to wait.
            let left = books.ledger.available().memory_bytes > 0;
            return evaluation(if left { "Admitted" } else { "Queued" }, None);
        };
        if let Some(short) = books.ledger.shortage_when_empty(account, request) {
            let (words, what): (Words, _) = match short.resource {
                Resource::Memory => (bytes, "memory"),
                Resource::Share => (percent, "the device"),
            };
            let (asked, available) = (words(short.asked), words(short.available));
            let reason = format!("{asked} of {what} asked, {available} in all");
            return evaluation("Rejected", Some(reason));
        }
        if books.ledger.shortage(account, request).is_some() {
            return evaluation("Queued", None);
        }
        let burst = Reservation {
            memory_bytes: task.memory_limit.max(request.memory_bytes),
            ..request
        };
        let fits = books.ledger.shortage(account, burst).is_none();
        evaluation(if fits { "Admitted" } else { "Throttled" }, None)
    }

    /// Takes what an evaluation said; ValueError, and no change, when it was not admitted or does not fit any more.
    fn reserve(&self, py: Python<'_>, evaluation: &QosEvaluation) -> PyResult<()> {
        let mut books = self.books();
        let (Some(class), Some(memory_bytes), Some(bandwidth)) = (
            evaluation.qos_class,
            evaluation.reserved_memory,
            evaluation.reserved_bandwidth,
        ) else {
            let text = format!("{} is not admitted: there is nothing to reserve", evaluation.__repr__());
            return Err(PyValueError::new_err(text));
        };
        let Some(account) = account(class) else {
            books.best_effort += 1;
            return Ok(());
        };
        let request = Reservation {
            memory_bytes,
            share_ppm: ppm(py, "bandwidth", bandwidth)?,
        };
        books.ledger.reserve(account, request).map_err(|short| {
            let (asked, available) = (short.asked, short.available);
            let text = format!("{asked} asked, {available} available now; evaluate again");
            PyValueError::new_err(text)
        })
    }

    /// Gives back what reserve() took; ValueError, and no change, when the class has not reserved so much.
    fn release(&self, py: Python<'_>, qos_class: PyRef<'_, QosClass>, memory: u64, bandwidth: f64) -> PyResult<()> {
        let mut books = self.books();
        let request = Reservation {
            memory_bytes: memory,
            share_ppm: ppm(py, "bandwidth", bandwidth)?,
        };
        let Some(account) = account(*qos_class) else {
            let left = books.best_effort.checked_sub(1);
            books.best_effort = left.ok_or_else(|| PyValueError::new_err("no best-effort task is reserved"))?;
            return Ok(());
        };
        let used = books.ledger.used(account);
        if memory > used.memory_bytes || request.share_ppm > used.share_ppm {
            let text = format!("{request:?} given back, {used:?} reserved by the class");
            return Err(PyValueError::new_err(text));
        }
        books.ledger.release(account, request);
        Ok(())
    }

    fn stats(&self) -> QosStats {
        let books = self.books();
        let (guaranteed, burstable) = (books.ledger.used(0), books.ledger.used(1));
        let available = books.ledger.available();
        QosStats {
            total_memory: self.total.memory_bytes,
            total_bandwidth: fraction(self.total.share_ppm.into()),
            guaranteed_memory: guaranteed.memory_bytes,
            guaranteed_bandwidth: fraction(guaranteed.share_ppm.into()),
            burstable_memory: burstable.memory_bytes,
            best_effort_queue: books.best_effort,
            available_memory: available.memory_bytes,
            available_bandwidth: fraction(available.share_ppm.into()),
        }
    }

    fn reset(&self) {
        *self.books() = empty(self.total);
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<QosClass>()?;
    module.add_class::<QosEvaluation>()?;
    module.add_class::<QosPolicy>()?;
    module.add_class::<QosPolicyEvaluator>()?;
    module.add_class::<QosStats>()?;
    module.add_class::<QosTaskMeta>()?;
    module.add_class::<ResourceRequirements>()
}
