//! The documented AsyncTransferEngine: transfers by bare addresses, which are checked against the pools.

use std::sync::{Arc, OnceLock};

use pygpukit_core::transfer::{Direction, Info, Request, Settings, State};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::transfer_values::{stream_number, TransferOp, TransferStats};
use crate::default_pools::pool_error;
use crate::errors::deprecated;
use crate::errors::raise_with;
use crate::text::Text;
use crate::transfer::{direction_of, Runner};
use crate::{abi, held, pinned};

/// Copies by bare addresses, on streams of its own, at most `max_concurrent` in progress at a time.
///
/// A transfer begins by itself; nothing has to be called to move it along. Host addresses must be of pinned memory of this process,
/// device addresses of live blocks of a memory pool: InvalidSpecError otherwise. Both stay where they are until the transfer has ended.
#[pyclass(frozen, module = "pygpukit._core", weakref)]
pub struct AsyncTransferEngine {
    max_concurrent: usize,
    runner: OnceLock<Arc<Runner>>,
}

impl AsyncTransferEngine {
    /// Opened on the first call that needs a device.
    fn open(&self, py: Python<'_>) -> PyResult<&Runner> {
        if let Some(runner) = self.runner.get() {
            return Ok(runner);
        }
        let settings = Settings {
            max_in_progress: self.max_concurrent,
            ..Settings::default()
        };
        let runner = Runner::new(py, 0, settings)?;
        Ok(self.runner.get_or_init(|| runner))
    }

    fn enqueue(
        &self,
        py: Python<'_>,
        direction: Direction,
        (from_name, from): (&'static str, u64),
        (to_name, to): (&'static str, u64),
        size: u64,
        priority: i32,
    ) -> PyResult<u64> {
        let wrong = |field, text| Err(raise_with(py, "InvalidSpecError", (text, field)));
        if size == 0 {
            return wrong("size", "size is 0; a transfer has at least one byte".to_string());
        }
        let runner = self.open(py)?;
        let mut request = Request::new(direction, to, from, size);
        request.priority = priority;
        let mut kept: Vec<Box<dyn Send>> = Vec::new();
        for (name, address, on_host) in [
            (from_name, from, direction == Direction::ToDevice),
            (to_name, to, direction == Direction::ToHost),
        ] {
            if on_host {
                let Some(hold) = pinned::hold(address, size) else {
                    let text = format!(
                        "{name}: {size} bytes at {address:#x} are not inside one block of pinned memory; \
                         allocate with PinnedMemoryManager or gp.memory.pinned_empty()"
                    );
                    return wrong(name, text);
                };
                kept.push(Box::new(hold));
                continue;
            }
            let held_block = py.detach(|| held::hold(runner.device, address, size));
            let Some((hold, stream)) = held_block.map_err(|error| pool_error(py, error))? else {
                let text = format!(
                    "{name}: {size} bytes at {address:#x} are not inside one live block of device memory; \
                     give the address of a block of a MemoryPool, or of an array"
                );
                return wrong(name, text);
            };
            kept.push(Box::new(hold));
            if abi::stream_lives(stream) && !request.after_streams.contains(&stream) {
                request.after_streams.push(stream);
            }
        }
        request.keep = Some(Box::new(kept));
        runner.submit(py, request)
    }

    fn notified(&self, py: Python<'_>, op_id: u64, call: &str, state: State) -> PyResult<bool> {
        deprecated(
            py,
            &format!("AsyncTransferEngine.{call}() changes nothing: transfers begin and end by themselves"),
        )?;
        let info = self.open(py)?.here()?.info(op_id);
        Ok(info.is_some_and(|info| info.state == state))
    }
}

#[pymethods]
impl AsyncTransferEngine {
    #[new]
    #[pyo3(signature = (max_concurrent=4))]
    fn new(py: Python<'_>, max_concurrent: usize) -> PyResult<AsyncTransferEngine> {
        if max_concurrent == 0 {
            let text = "max_concurrent is 0; at least 1 is needed";
            return Err(raise_with(py, "InvalidSpecError", (text, "max_concurrent")));
        }
        Ok(AsyncTransferEngine {
            max_concurrent,
            runner: OnceLock::new(),
        })
    }

    /// Copies pinned host memory to the device; the transfer's number.
    fn enqueue_h2d(&self, py: Python<'_>, host_ptr: u64, device_ptr: u64, size: u64) -> PyResult<u64> {
        let (from, to) = (("host_ptr", host_ptr), ("device_ptr", device_ptr));
        self.enqueue(py, Direction::ToDevice, from, to, size, 0)
    }

    /// Copies device memory to pinned host memory; the transfer's number.
    fn enqueue_d2h(&self, py: Python<'_>, device_ptr: u64, host_ptr: u64, size: u64) -> PyResult<u64> {
        let (from, to) = (("device_ptr", device_ptr), ("host_ptr", host_ptr));
        self.enqueue(py, Direction::ToHost, from, to, size, 0)
    }

    /// Copies on the device; the transfer's number.
    fn enqueue_d2d(&self, py: Python<'_>, src_ptr: u64, dst_ptr: u64, size: u64) -> PyResult<u64> {
        let (from, to) = (("src_ptr", src_ptr), ("dst_ptr", dst_ptr));
        self.enqueue(py, Direction::OnDevice, from, to, size, 0)
    }

    /// transfer_type: "H2D", "D2H" or "D2D". Higher priorities go first, in front of what is not issued of lower ones.
    fn enqueue_with_priority(
        &self,
        py: Python<'_>,
        transfer_type: Text<'_>,
        src_ptr: u64,
        dst_ptr: u64,
        size: u64,
        priority: i32,
    ) -> PyResult<u64> {
        let direction = direction_of(py, &transfer_type.to_uppercase())?;
        let (from, to) = (("src_ptr", src_ptr), ("dst_ptr", dst_ptr));
        self.enqueue(py, direction, from, to, size, priority)
    }

    /// Transfers that have not begun, in the order in which they will.
    fn get_ready_transfers(&self, py: Python<'_>, max_transfers: usize) -> PyResult<Vec<TransferOp>> {
        let queued = self.open(py)?.here()?.queued();
        Ok(queued.into_iter().take(max_transfers).map(TransferOp::from).collect())
    }

    /// Deprecated, changes nothing: whether the transfer is in progress.
    fn start_transfer(&self, py: Python<'_>, op_id: u64) -> PyResult<bool> {
        self.notified(py, op_id, "start_transfer", State::InProgress)
    }

    /// Deprecated, changes nothing: whether the transfer is complete.
    fn complete_transfer(&self, py: Python<'_>, op_id: u64) -> PyResult<bool> {
        self.notified(py, op_id, "complete_transfer", State::Completed)
    }

    /// Deprecated, changes nothing: whether the transfer has failed.
    #[allow(unused_variables)] // the documented name
    fn fail_transfer(&self, py: Python<'_>, op_id: u64, error: Text<'_>) -> PyResult<bool> {
        self.notified(py, op_id, "fail_transfer", State::Failed)
    }

    /// Issues no more of a transfer; False when nothing of it was left to issue.
    fn cancel_transfer(&self, py: Python<'_>, op_id: u64) -> PyResult<bool> {
        Ok(self.open(py)?.here()?.cancel(op_id))
    }

    fn get_operation(&self, py: Python<'_>, op_id: u64) -> PyResult<Option<TransferOp>> {
        Ok(self.open(py)?.here()?.info(op_id).map(TransferOp::from))
    }

    /// Waits until a transfer has ended, or `timeout` seconds: how it stands. Interruptible. ValueError for an unknown number.
    #[pyo3(signature = (op_id, timeout=None))]
    fn wait(&self, py: Python<'_>, op_id: u64, timeout: Option<f64>) -> PyResult<TransferOp> {
        let info = self.open(py)?.wait(py, op_id, crate::transfer::duration(timeout)?)?;
        let unknown = || {
            PyValueError::new_err(format!(
                "there is no transfer {op_id}; gc() forgets those that have ended"
            ))
        };
        info.map(TransferOp::from).ok_or_else(unknown)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<TransferStats> {
        Ok(self.open(py)?.here()?.stats().into())
    }

    /// Numbers of the transfers in progress on a stream (StreamType.to_id(); copies on the device are on 3).
    fn get_in_progress_for_stream(&self, py: Python<'_>, stream_id: u32) -> PyResult<Vec<u64>> {
        let all = self.open(py)?.here()?.transfers();
        let here = |info: &Info| info.state == State::InProgress && stream_number(info.direction) == stream_id;
        Ok(all.into_iter().filter(here).map(|info| info.id).collect())
    }

    fn has_pending_work(&self, py: Python<'_>) -> PyResult<bool> {
        let stats = self.open(py)?.here()?.stats();
        Ok(stats.queued + stats.in_progress > 0)
    }

    /// Forgets the transfers that have ended.
    fn gc(&self, py: Python<'_>) -> PyResult<()> {
        self.open(py)?.here()?.forget_ended();
        Ok(())
    }

    /// Cancels what is not issued, and forgets the transfers that have ended.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.open(py)?.here()?;
        for info in engine.transfers() {
            engine.cancel(info.id);
        }
        engine.forget_ended();
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("AsyncTransferEngine(max_concurrent={})", self.max_concurrent)
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AsyncTransferEngine>()
}
