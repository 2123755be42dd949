//! Transfer engines with a thread each: Python's TransferCore, and what C++ asks before it uses an array (core.h).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pygpukit_core::driver::DriverError;
use pygpukit_core::partition::WorkKind;
use pygpukit_core::pool::{PoolError, Services};
use pygpukit_core::transfer::{
    Direction, Engine, EngineError, Info, Order, Request, Settings, SettingsError, State, SubmitError,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::abi;
use crate::default_pools::{ensure_backend, pool_error};
use crate::errors::raise_with;
use crate::gate;
use crate::table;
use crate::text::Text;

type Engines = HashMap<u64, Weak<Runner>>;
static ENGINES: Mutex<Option<Engines>> = Mutex::new(None);
static LAST: AtomicU64 = AtomicU64::new(0);

/// Between two looks at signals.
const SIGNAL_PERIOD: Duration = Duration::from_millis(20);

/// An engine and the thread that moves its transfers along.
pub struct Runner {
    pub number: u64,
    pub device: i32,
    pub engine: Arc<Engine>,
    process: u32,
    worker: Mutex<Option<JoinHandle<()>>>,
}

fn settings_error(py: Python<'_>, error: SettingsError) -> PyErr {
    raise_with(py, "InvalidSpecError", (error.text, error.field))
}

pub fn driver_error(py: Python<'_>, error: &DriverError) -> PyErr {
    raise_with(py, "driver_error", (error.text.as_str(), error.code))
}

fn submit_error(py: Python<'_>, error: SubmitError) -> PyErr {
    let text = error.to_string();
    match error {
        SubmitError::Closed => PyRuntimeError::new_err(text),
        SubmitError::Range { .. } => raise_with(py, "InvalidSpecError", (text, "size")),
        SubmitError::Driver(error) => driver_error(py, &error),
    }
}

impl Runner {
    pub fn new(py: Python<'_>, device: i32, settings: Settings) -> PyResult<Arc<Runner>> {
        ensure_backend(py)?;
        let driver = abi::driver(device).map_err(|error| pool_error(py, error))?;
        let engine = Engine::new(driver, Services::default(), settings).map_err(|error| match error {
            EngineError::Settings(error) => settings_error(py, error),
            EngineError::Driver(error) => driver_error(py, &error),
        })?;
        let runner = Arc::new(Runner {
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            device,
            engine: Arc::new(engine),
            process: std::process::id(),
            worker: Mutex::new(None),
        });
        let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        let engines = engines.get_or_insert_with(Engines::default);
        if engines.is_empty() {
            let close = wrap_pyfunction!(close_transfers, py)?;
            py.import("atexit")?.call_method1("register", (close,))?;
        }
        engines.retain(|_, runner| runner.strong_count() > 0);
        engines.insert(runner.number, Arc::downgrade(&runner));
        Ok(runner)
    }

    /// The engine. Errors: in a forked child, which has no thread of it.
    pub fn here(&self) -> PyResult<&Engine> {
        if self.process == std::process::id() {
            return Ok(&self.engine);
        }
        Err(PyRuntimeError::new_err(
            "this transfer engine belongs to the process that forked this one; make one here",
        ))
    }

    pub fn submit(&self, py: Python<'_>, mut request: Request) -> PyResult<u64> {
        let engine = self.here()?;
        let task = gate::current_context();
        let waiting = task.as_ref().map(|task| task.waiting(WorkKind::Transfer));
        request.keep = Some(Box::new((request.keep.take(), waiting)));
        {
            let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
            if worker.is_none() && !engine.is_closed() {
                let (name, engine) = (format!("pygpukit-copy-{}", self.number), self.engine.clone());
                *worker = Some(std::thread::Builder::new().name(name).spawn(move || engine.run())?);
            }
        }
        // Without the GIL: what is deferred for the streams goes to the device first.
        let id = py
            .detach(|| engine.submit(request))
            .map_err(|error| submit_error(py, error))?;
        task.into_iter().for_each(|task| task.add_work(WorkKind::Transfer));
        Ok(id)
    }

    /// As it stands when it has ended, or after the timeout. Interruptible.
    pub fn wait(&self, py: Python<'_>, id: u64, timeout: Option<Duration>) -> PyResult<Option<Info>> {
        let engine = self.here()?;
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = until.map_or(SIGNAL_PERIOD, |until| until.saturating_duration_since(Instant::now()));
            let info = py.detach(|| engine.wait(id, left.min(SIGNAL_PERIOD)));
            let over = info.as_ref().map_or(true, |info| info.state.is_terminal());
            if over || left.is_zero() {
                return Ok(info);
            }
            py.check_signals()?;
        }
    }

    /// Issues nothing more, waits for what is in flight, ends the thread.
    pub fn close(&self) {
        if self.process != std::process::id() {
            return;
        }
        self.engine.close();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            let _ = worker.join(); // one that panicked told so on stderr
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.engine.close(); // the thread ends by itself
        }
    }
}

/// Closes every engine of the process. Called when the interpreter ends; in a forked process they are the parent's.
#[pyfunction]
pub fn close_transfers(py: Python<'_>) {
    if table::forked() {
        return;
    }
    let engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    py.detach(|| {
        for runner in engines.unwrap_or_default().values().filter_map(Weak::upgrade) {
            runner.close();
        }
    });
}

pub fn duration(timeout_s: Option<f64>) -> PyResult<Option<Duration>> {
    let parsed = timeout_s.map(Duration::try_from_secs_f64).transpose();
    parsed.map_err(|_| PyValueError::new_err("timeout must be a number of seconds, 0 or more"))
}

/// A transfer at one moment; times on the ring's clock, 0 = not yet.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct TransferInfo {
    id: u64,
    direction: &'static str,
    state: &'static str,
    nbytes: u64,
    landed: u64,
    priority: i32,
    queued_ns: u64,
    started_ns: u64,
    ended_ns: u64,
    device_ns: u64,
    error: Option<(i32, String)>,
}

impl From<Info> for TransferInfo {
    fn from(info: Info) -> TransferInfo {
        TransferInfo {
            id: info.id,
            direction: info.direction.name(),
            state: info.state.name(),
            nbytes: info.bytes,
            landed: info.landed_bytes,
            priority: info.priority,
            queued_ns: info.queued_ns,
            started_ns: info.started_ns,
            ended_ns: info.ended_ns,
            device_ns: info.device_ns,
            error: info.error.map(|error| (error.code, error.text)),
        }
    }
}

pub fn direction_of(py: Python<'_>, name: &str) -> PyResult<Direction> {
    let known = Direction::ALL.into_iter().find(|direction| direction.name() == name);
    known.ok_or_else(|| {
        let text = format!("transfer_type {name:?} is unknown; use 'H2D', 'D2H', 'D2D' or 'P2P'");
        raise_with(py, "InvalidSpecError", (text, "transfer_type"))
    })
}

/// What gp.memory.TransferEngine stands on: transfers by address. The caller keeps the memory alive until each has ended.
#[pyclass(frozen, module = "pygpukit._core", weakref)]
pub struct TransferCore(Arc<Runner>);

#[pymethods]
impl TransferCore {
    #[new]
    fn new(py: Python<'_>, device: i32, chunk_bytes: u64, in_flight_bytes: u64) -> PyResult<TransferCore> {
        let mut settings = Settings::default();
        settings.host.chunk_bytes = chunk_bytes;
        settings.host.in_flight_bytes = in_flight_bytes;
        Runner::new(py, device, settings).map(TransferCore)
    }

    /// Of this engine in the process.
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    #[getter]
    fn device(&self) -> i32 {
        self.0.device
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.engine.is_closed()
    }

    /// A transfer's number. It begins after what the streams have by now, the events, and the transfers of this engine. peer: of "P2P".
    #[pyo3(signature = (direction, to, from_, nbytes, priority, streams, events, after, peer=-1))]
    #[allow(clippy::too_many_arguments)] // as Python calls it
    fn submit(
        &self,
        py: Python<'_>,
        direction: Text<'_>,
        to: u64,
        from_: u64,
        nbytes: u64,
        priority: i32,
        streams: Vec<u64>,
        events: Vec<u64>,
        after: Vec<u64>,
        peer: i32,
    ) -> PyResult<u64> {
        let mut request = Request::new(direction_of(py, &direction)?, to, from_, nbytes);
        request.priority = priority;
        request.peer = peer;
        request.after_streams = streams;
        request.after_events = events;
        request.after = after;
        request.report = true;
        self.0.submit(py, request)
    }

    /// Waits until it has ended, or so long: how it stands. None when it is unknown. Interruptible, GIL released.
    #[pyo3(signature = (id, timeout_s=None))]
    fn wait(&self, py: Python<'_>, id: u64, timeout_s: Option<f64>) -> PyResult<Option<TransferInfo>> {
        Ok(self.0.wait(py, id, duration(timeout_s)?)?.map(TransferInfo::from))
    }

    /// Waits, GIL released, for transfers that have ended: each once.
    fn ended(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Vec<TransferInfo>> {
        let (engine, timeout) = (self.0.here()?, duration(Some(timeout_s))?.unwrap_or_default());
        let ended = py.detach(|| engine.ended(timeout));
        Ok(ended.into_iter().map(TransferInfo::from).collect())
    }

    fn info(&self, id: u64) -> PyResult<Option<TransferInfo>> {
        Ok(self.0.here()?.info(id).map(TransferInfo::from))
    }

    /// False when nothing of it was left to issue.
    fn cancel(&self, id: u64) -> PyResult<bool> {
        Ok(self.0.here()?.cancel(id))
    }

    /// Forgets one that has ended.
    fn forget(&self, id: u64) -> PyResult<bool> {
        Ok(self.0.here()?.forget(id))
    }

    /// By direction: submitted, completed, failed, cancelled, bytes, busy_ns, waited_ns, longest_wait_ns,
    /// peak_in_flight_bytes, bytes_per_s; and queued and in_progress now.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.0.here()?.stats();
        let all = PyDict::new(py);
        for direction in Direction::ALL {
            let s = stats.of(direction);
            let one = PyDict::new(py);
            one.set_item("submitted", s.submitted)?;
            one.set_item("completed", s.completed)?;
            one.set_item("failed", s.failed)?;
            one.set_item("cancelled", s.cancelled)?;
            one.set_item("bytes", s.bytes)?;
            one.set_item("busy_ns", s.busy_ns)?;
            one.set_item("waited_ns", s.waited_ns)?;
            one.set_item("longest_wait_ns", s.longest_wait_ns)?;
            one.set_item("peak_in_flight_bytes", s.peak_in_flight_bytes)?;
            one.set_item("bytes_per_s", s.bytes_per_s())?;
            all.set_item(direction.name(), one)?;
        }
        all.set_item("queued", stats.queued)?;
        all.set_item("in_progress", stats.in_progress)?;
        Ok(all)
    }

    /// Cancels what is not issued, waits for the rest, and takes nothing more. GIL released.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

// ---- what C++ asks (core.h) ----

const ENDED: i32 = 0;
const ORDERED: i32 = 1;
const NOT_YET: i32 = 2;

/// Orders a stream after a transfer, or waits for its end when `host` is not 0; at most so long.
#[no_mangle]
pub extern "C" fn pk_transfer_order(
    engine: u64,
    transfer: u64,
    device: i32,
    stream: u64,
    host: i32,
    timeout_ns: u64,
) -> i32 {
    let runner = {
        let engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        engines.as_ref().and_then(|engines| engines.get(&engine)?.upgrade())
    };
    let Some(runner) = runner.filter(|runner| runner.process == std::process::id()) else {
        return ENDED;
    };
    let timeout = Duration::from_nanos(timeout_ns);
    let order = if host != 0 {
        Ok(match runner.engine.wait(transfer, timeout) {
            None => Order::Unknown,
            Some(info) if info.state.is_terminal() => Order::Ended(Box::new(info)),
            Some(_) => Order::NotYet,
        })
    } else {
        runner.engine.order_after(transfer, device, stream, timeout)
    };
    match order {
        Err(error) => abi::fail(PoolError::Driver(error)),
        Ok(Order::Ordered) => ORDERED,
        Ok(Order::NotYet) => NOT_YET,
        Ok(Order::Unknown) => ENDED,
        Ok(Order::Ended(info)) => match info.error {
            Some(error) if info.state == State::Failed => {
                runner.engine.forget(transfer); // it is told once
                let text = format!(
                    "a transfer of this array failed ({}): {}",
                    info.direction.name(),
                    error.text
                );
                let code = error.code;
                abi::fail(PoolError::Driver(DriverError { code, text }))
            }
            _ => ENDED,
        },
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TransferCore>()?;
    module.add_class::<TransferInfo>()?;
    module.add_function(wrap_pyfunction!(close_transfers, module)?)
}
