//! The documented classes of slicing, over the core's slice queue.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pygpukit_core::slicing as core;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::text::TaskId;

type Extent = (u32, u32, u32);

/// How a SliceScheduler cuts kernels: into min_slices or more slices of at most max_items_per_slice items. Where these would be more than
/// max_slices, slices are larger. They are whole blocks, except the last, and except where a slice may have less than a block: then it is
/// one block, of which `count` items are meant. adaptive: later slices are shortened, down to a block, so that one takes max_duration_ms.
#[pyclass(frozen, from_py_object, module = "pygpukit._core")]
#[derive(Clone)]
pub struct SliceConfig(core::QueueConfig);

#[pymethods]
impl SliceConfig {
    #[new]
    #[pyo3(signature = (max_items_per_slice=65536, max_duration_ms=1.0, min_slices=1, max_slices=256, adaptive=true))]
    fn new(
        max_items_per_slice: u64,
        max_duration_ms: f64,
        min_slices: u64,
        max_slices: u64,
        adaptive: bool,
    ) -> PyResult<SliceConfig> {
        let wrong = |what: &str| Err(PyValueError::new_err(what.to_string()));
        if max_items_per_slice == 0 {
            return wrong("max_items_per_slice is 0; it must be at least 1");
        }
        if min_slices == 0 || min_slices > max_slices {
            return wrong(&format!(
                "min_slices is {min_slices} and max_slices is {max_slices}; 1 <= min_slices <= max_slices"
            ));
        }
        Ok(SliceConfig(core::QueueConfig {
            max_items: max_items_per_slice,
            max_duration_ns: nanoseconds(max_duration_ms, "max_duration_ms")?,
            min_slices,
            max_slices,
            adaptive,
        }))
    }
    #[getter]
    fn max_items_per_slice(&self) -> u64 {
        self.0.max_items
    }
    #[getter]
    fn max_duration_ms(&self) -> f64 {
        self.0.max_duration_ns as f64 / 1e6
    }
    #[getter]
    fn min_slices(&self) -> u64 {
        self.0.min_slices
    }
    #[getter]
    fn max_slices(&self) -> u64 {
        self.0.max_slices
    }
    #[getter]
    fn adaptive(&self) -> bool {
        self.0.adaptive
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0).replace("QueueConfig", "SliceConfig")
    }
}

fn nanoseconds(ms: f64, what: &str) -> PyResult<u64> {
    if ms.is_finite() && ms > 0.0 && ms < 1e12 {
        return Ok((ms * 1e6) as u64);
    }
    Err(PyValueError::new_err(format!(
        "{what} is {ms}; give a number of milliseconds above 0"
    )))
}

/// A slice to launch: items offset to offset + count - 1, over `grid` blocks.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct SliceInfo(core::Slice);

#[pymethods]
impl SliceInfo {
    #[getter]
    fn kernel_handle(&self) -> u64 {
        self.0.handle
    }
    #[getter]
    fn block(&self) -> Extent {
        (self.0.block[0], self.0.block[1], self.0.block[2])
    }
    #[getter]
    fn shared_mem(&self) -> u32 {
        self.0.shared_bytes
    }
    #[getter]
    fn slice_id(&self) -> u64 {
        self.0.id
    }
    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }
    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }
    #[getter]
    fn grid(&self) -> Extent {
        (self.0.blocks, 1, 1)
    }
    #[getter]
    fn task_id(&self) -> Option<&str> {
        self.0.task.as_deref()
    }
    #[getter]
    fn priority(&self) -> i32 {
        self.0.priority
    }
    fn __repr__(&self) -> String {
        let slice = &self.0;
        format!(
            "SliceInfo(slice_id={}, kernel_handle={}, offset={}, count={})",
            slice.id, slice.handle, slice.offset, slice.count
        )
    }
}

/// A slice that was handed out, and how long it took.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct KernelSlice(core::Handed);

#[pymethods]
impl KernelSlice {
    #[getter]
    fn id(&self) -> u64 {
        self.0.id
    }
    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }
    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }
    #[getter]
    fn grid(&self) -> Extent {
        (self.0.blocks, 1, 1)
    }
    #[getter]
    fn executed(&self) -> bool {
        self.0.duration_ns.is_some()
    }
    #[getter]
    fn exec_time_ms(&self) -> Option<f64> {
        self.0.duration_ns.map(|ns| ns as f64 / 1e6)
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0).replace("Handed", "KernelSlice")
    }
}

#[pyclass(frozen, module = "pygpukit._core")]
pub struct SliceStats(core::QueueStats);

#[pymethods]
impl SliceStats {
    #[getter]
    fn total_slices(&self) -> u64 {
        self.0.total_slices
    }
    #[getter]
    fn completed_slices(&self) -> u64 {
        self.0.completed_slices
    }
    #[getter]
    fn pending_slices(&self) -> u64 {
        self.0.pending_slices
    }
    #[getter]
    fn total_kernels(&self) -> u64 {
        self.0.total_kernels
    }
    #[getter]
    fn completed_kernels(&self) -> u64 {
        self.0.completed_kernels
    }
    #[getter]
    fn pending_kernels(&self) -> u64 {
        self.0.pending_kernels
    }
    fn __repr__(&self) -> String {
        format!("{:?}", self.0).replace("QueueStats", "SliceStats")
    }
}

/// Cuts one-dimensional kernels into slices and hands these out in turn, higher priorities first; the caller launches
/// them in that order and says how long each took.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct SliceScheduler(Mutex<core::SliceQueue>);

impl SliceScheduler {
    fn queue(&self) -> MutexGuard<'_, core::SliceQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(
        &self,
        task: Option<String>,
        handle: u64,
        items: u64,
        block: Extent,
        shared: u32,
        priority: i32,
    ) -> PyResult<u64> {
        let threads = u64::from(block.0) * u64::from(block.1) * u64::from(block.2);
        if threads == 0 || threads > 1024 {
            return Err(PyValueError::new_err(format!(
                "block is {block:?}, {threads} threads; a block has 1 to 1024"
            )));
        }
        let block = [block.0, block.1, block.2];
        let number = self.queue().submit(handle, items, block, shared, task, priority);
        number.ok_or_else(|| PyValueError::new_err("total_items is 0; a kernel has at least 1"))
    }
}

#[pymethods]
impl SliceScheduler {
    #[new]
    #[pyo3(signature = (config=None))]
    fn new(config: Option<SliceConfig>) -> SliceScheduler {
        let config = config.map_or_else(core::QueueConfig::default, |config| config.0);
        SliceScheduler(Mutex::new(core::SliceQueue::new(config)))
    }

    /// A kernel over total_items items, one a thread; returns its number.
    fn submit(&self, kernel_handle: u64, total_items: u64, block: Extent, shared_mem: u32) -> PyResult<u64> {
        self.add(None, kernel_handle, total_items, block, shared_mem, 0)
    }

    fn submit_for_task(
        &self,
        task_id: TaskId,
        kernel_handle: u64,
        total_items: u64,
        block: Extent,
        shared_mem: u32,
        priority: i32,
    ) -> PyResult<u64> {
        self.add(Some(task_id.0), kernel_handle, total_items, block, shared_mem, priority)
    }

    fn get_next_slice(&self) -> Option<SliceInfo> {
        self.queue().next_slice().map(SliceInfo)
    }

    /// The oldest slice handed out took so long.
    fn complete_slice(&self, exec_time_ms: f64) -> PyResult<()> {
        let duration_ns = nanoseconds(exec_time_ms, "exec_time_ms")?;
        if self.queue().complete(duration_ns) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "complete_slice() without a slice from get_next_slice() that has not ended",
        ))
    }

    /// Slices of a kernel (the number that submit() gave) that were handed out, in their order.
    fn slices(&self, kernel: u64) -> Vec<KernelSlice> {
        self.queue().handed(kernel).into_iter().map(KernelSlice).collect()
    }

    fn pending_slices(&self) -> u64 {
        self.queue().pending_slices()
    }

    fn pending_kernels(&self) -> u64 {
        self.queue().pending_kernels()
    }

    fn stats(&self) -> SliceStats {
        SliceStats(self.queue().stats())
    }

    fn clear(&self) {
        self.queue().clear();
    }

    fn config(&self) -> SliceConfig {
        SliceConfig(self.queue().config())
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<KernelSlice>()?;
    module.add_class::<SliceConfig>()?;
    module.add_class::<SliceInfo>()?;
    module.add_class::<SliceScheduler>()?;
    module.add_class::<SliceStats>()
}
