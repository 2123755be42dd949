//! What next() hands over, as a Python object.

use pygpukit_core::scheduler as core;
use pyo3::prelude::*;

/// What whoever runs a task needs of it to begin.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct TaskStart(pub(crate) core::TaskStart);

#[pymethods]
impl TaskStart {
    #[getter]
    fn id(&self) -> &str {
        &self.0.context.id
    }
    #[getter]
    fn number(&self) -> u64 {
        self.0.context.number
    }
    /// "" for the default.
    #[getter]
    fn partition(&self) -> &str {
        &self.0.partition
    }
    /// Those that it is on, ascending.
    #[getter]
    fn devices(&self) -> Vec<u32> {
        self.0.devices.iter().collect()
    }
    /// It is of the class Guaranteed.
    #[getter]
    fn guaranteed(&self) -> bool {
        self.0.policy == core::Policy::Guaranteed
    }
    #[getter]
    fn memory_limit(&self) -> Option<u64> {
        self.0.memory_limit
    }
    #[getter]
    fn share_limit_ppm(&self) -> Option<u32> {
        self.0.share_limit_ppm
    }
}
