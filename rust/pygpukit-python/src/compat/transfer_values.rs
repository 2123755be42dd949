//! The documented values of transfers: kinds, states, streams, operations and figures.

use pygpukit_core::transfer::{Direction, Info, State, Stats};
use pyo3::prelude::*;

/// Which way a transfer goes.
#[pyclass(frozen, eq, eq_int, hash, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransferType {
    H2D,
    D2H,
    D2D,
}

impl From<Direction> for TransferType {
    fn from(direction: Direction) -> TransferType {
        [
            TransferType::H2D,
            TransferType::D2H,
            TransferType::D2D,
            TransferType::D2D,
        ][direction as usize]
    }
}

/// The life of a transfer: Queued, InProgress, then one of the others.
#[pyclass(frozen, eq, eq_int, hash, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransferState {
    Queued,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

impl From<State> for TransferState {
    fn from(state: State) -> TransferState {
        match state {
            State::Queued => TransferState::Queued,
            State::InProgress => TransferState::InProgress,
            State::Completed => TransferState::Completed,
            State::Failed => TransferState::Failed,
            State::Cancelled => TransferState::Cancelled,
        }
    }
}

#[pymethods]
impl TransferState {
    fn is_terminal(&self) -> bool {
        !matches!(self, TransferState::Queued | TransferState::InProgress)
    }
}

const COMPUTE: u32 = 0;
const H2D: u32 = 1;
const D2H: u32 = 2;
/// Copies on the device have a stream of their own, which the documentation has no number for.
const D2D: u32 = 3;

pub fn stream_number(direction: Direction) -> u32 {
    [H2D, D2H, D2D, D2D][direction as usize]
}

/// A kind of stream, by its number: compute 0, H2D 1, D2H 2.
#[pyclass(frozen, eq, hash, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamType(u32);

#[pymethods]
#[allow(non_snake_case)] // the documented names
impl StreamType {
    #[classattr]
    fn Compute() -> StreamType {
        StreamType(COMPUTE)
    }

    #[classattr]
    fn MemcpyH2D() -> StreamType {
        StreamType(H2D)
    }

    #[classattr]
    fn MemcpyD2H() -> StreamType {
        StreamType(D2H)
    }

    #[staticmethod]
    fn Custom(id: u32) -> StreamType {
        StreamType(id)
    }

    #[allow(clippy::wrong_self_convention)] // the documented name; Python has the object
    fn to_id(&self) -> u32 {
        self.0
    }

    fn __repr__(&self) -> String {
        match self.0 {
            COMPUTE => "StreamType.Compute".to_string(),
            H2D => "StreamType.MemcpyH2D".to_string(),
            D2H => "StreamType.MemcpyD2H".to_string(),
            id => format!("StreamType.Custom({id})"),
        }
    }
}

/// A transfer at one moment; times in seconds of the process's monotonic clock.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct TransferOp {
    id: u64,
    transfer_type: TransferType,
    src_ptr: u64,
    dst_ptr: u64,
    size: u64,
    state: TransferState,
    stream_id: u32,
    queued_at: f64,
    started_at: Option<f64>,
    completed_at: Option<f64>,
    priority: i32,
    error: Option<String>,
    task_id: Option<String>,
    device_time: f64,
}

impl From<Info> for TransferOp {
    fn from(info: Info) -> TransferOp {
        let reached = |ns: u64| (ns > 0).then_some(ns as f64 * 1e-9);
        TransferOp {
            id: info.id,
            transfer_type: info.direction.into(),
            src_ptr: info.from,
            dst_ptr: info.to,
            size: info.bytes,
            state: info.state.into(),
            stream_id: stream_number(info.direction),
            queued_at: info.queued_ns as f64 * 1e-9,
            started_at: reached(info.started_ns),
            completed_at: reached(info.ended_ns),
            priority: info.priority,
            error: info.error.map(|error| error.text),
            task_id: None,
            device_time: info.device_ns as f64 * 1e-9,
        }
    }
}

#[pymethods]
impl TransferOp {
    /// Seconds from its submission to its first piece; to its end, when it had none.
    fn wait_time(&self) -> f64 {
        let until = self.started_at.or(self.completed_at);
        until.map_or(0.0, |until| until - self.queued_at)
    }

    /// Seconds from its first piece to its end; None before.
    fn duration(&self) -> Option<f64> {
        Some(self.completed_at? - self.started_at?)
    }

    /// GB/s while its pieces were copied; None until it is complete.
    fn bandwidth_gbps(&self) -> Option<f64> {
        let complete = self.state == TransferState::Completed && self.device_time > 0.0;
        complete.then(|| self.size as f64 / self.device_time * 1e-9)
    }

    fn __repr__(&self) -> String {
        format!("TransferOp(id={}, size={})", self.id, self.size)
    }
}

/// Figures of an engine; bytes, counts, and GB/s while a direction was busy.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct TransferStats {
    total_queued: u64,
    completed_count: u64,
    failed_count: u64,
    total_bytes: u64,
    h2d_bytes: u64,
    d2h_bytes: u64,
    avg_h2d_bandwidth: f64,
    avg_d2h_bandwidth: f64,
    pending_count: u64,
    in_progress_count: u64,
}

impl From<Stats> for TransferStats {
    fn from(stats: Stats) -> TransferStats {
        let (h2d, d2h) = (stats.of(Direction::ToDevice), stats.of(Direction::ToHost));
        TransferStats {
            total_queued: stats.sum(|s| s.submitted),
            completed_count: stats.sum(|s| s.completed),
            failed_count: stats.sum(|s| s.failed),
            total_bytes: stats.sum(|s| s.bytes),
            h2d_bytes: h2d.bytes,
            d2h_bytes: d2h.bytes,
            avg_h2d_bandwidth: h2d.bytes_per_s() * 1e-9,
            avg_d2h_bandwidth: d2h.bytes_per_s() * 1e-9,
            pending_count: stats.queued,
            in_progress_count: stats.in_progress,
        }
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StreamType>()?;
    module.add_class::<TransferOp>()?;
    module.add_class::<TransferState>()?;
    module.add_class::<TransferStats>()?;
    module.add_class::<TransferType>()
}
