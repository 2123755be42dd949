//! A task's record as a Python object.

use pygpukit_core::scheduler as core;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A copy of one task's state.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct TaskRecord(pub(crate) core::TaskRecord);

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
    fn paused(&self) -> bool {
        self.0.paused
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
    fn memory_limit(&self) -> Option<u64> {
        self.0.memory_limit
    }
    #[getter]
    fn share_limit_ppm(&self) -> Option<u32> {
        self.0.share_limit_ppm
    }
    #[getter]
    fn partition(&self) -> &str {
        &self.0.partition
    }
    /// The first device that it is on; None while it leaves the choice and waits.
    #[getter]
    fn device(&self) -> Option<u32> {
        self.0.devices.first
    }
    /// All that it is on, ascending.
    #[getter]
    fn devices(&self) -> Vec<u32> {
        self.0.devices.iter().collect()
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
    fn slices(&self) -> u64 {
        self.0.slices
    }
    #[getter]
    fn kernels(&self) -> u64 {
        self.0.kernels
    }
    #[getter]
    fn transfers(&self) -> u64 {
        self.0.transfers
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
    fn asked_ns(&self) -> u64 {
        self.0.asked_ns
    }
    #[getter]
    fn waited_ns(&self) -> u64 {
        self.0.waited_ns
    }
    #[getter]
    fn others_ns(&self) -> u64 {
        self.0.others_ns
    }
    #[getter]
    fn throttles(&self) -> u64 {
        self.0.throttles
    }
    #[getter]
    fn throttled_ns(&self) -> u64 {
        self.0.throttled_ns
    }
    #[getter]
    fn host_ns(&self) -> u64 {
        self.0.host_ns
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
