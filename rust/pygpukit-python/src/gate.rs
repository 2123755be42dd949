//! The gates of this process, one for each set of multiprocessors of a device, as C++ calls them (native/include/pygpukit/core.h),
//! and what they measured for Python.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void, CString};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use pygpukit_core::clock::MonotonicClock;
use pygpukit_core::driver::{DriverError, DriverResult};
use pygpukit_core::intern::Interner;
use pygpukit_core::pacing::{Command, Gate, Refusal, Settings, Submitted, View, Work};
use pygpukit_core::partition::{WorkKind, MAX_LANES};
use pygpukit_core::scheduler::TaskContext;
use pygpukit_core::slicing::SubGrid;

use crate::table::TableDriver;
use crate::task_events::GateLog;

/// A gate and the driver that its commands run on.
struct Place {
    gate: Gate,
    driver: Arc<TableDriver>,
    dispatcher: Mutex<Option<JoinHandle<()>>>,
}

extern "C" {
    /// core.h
    fn pk_sleep_exactly();
    fn pk_current_context() -> u64;
}

const DEVICES: usize = 64;
/// By device and lane; lane 0 is for work that no `sm` partition has to itself.
static PLACES: [[OnceLock<Place>; MAX_LANES]; DEVICES] = [const { [const { OnceLock::new() }; MAX_LANES] }; DEVICES];
/// Those that exist, with device and lane.
static OPENED: Mutex<Vec<(usize, usize, &Place)>> = Mutex::new(Vec::new());
/// The lanes of streams in other lanes than 0, and how many they are.
static LANES: RwLock<BTreeMap<u64, usize>> = RwLock::new(BTreeMap::new());
static IN_LANES: AtomicUsize = AtomicUsize::new(0);
static DEFERRED: AtomicU64 = AtomicU64::new(0);

const STOPPED: i32 = -1;
const FULL: i32 = -2;
const ANY_STREAM: u64 = u64::MAX;

fn lane_of(stream: u64) -> usize {
    if IN_LANES.load(Ordering::Acquire) == 0 {
        return 0;
    }
    let lanes = LANES.read().unwrap_or_else(PoisonError::into_inner);
    lanes.get(&stream).copied().unwrap_or(0)
}

/// A stream was made for the multiprocessors of a partition.
#[no_mangle]
pub extern "C" fn pk_gate_lane(stream: u64, lane: u32) {
    let mut lanes = LANES.write().unwrap_or_else(PoisonError::into_inner);
    if lane > 0 {
        lanes.insert(stream, lane as usize);
    }
    IN_LANES.store(lanes.len(), Ordering::Release);
}

/// A stream is about to go.
pub fn forget_stream(stream: u64) {
    if lane_of(stream) > 0 {
        let mut lanes = LANES.write().unwrap_or_else(PoisonError::into_inner);
        lanes.remove(&stream);
        IN_LANES.store(lanes.len(), Ordering::Release);
    }
}

/// The gate that a stream's work passes; None for a device that cannot exist.
fn place(device: i32, stream: u64) -> Option<&'static Place> {
    let lanes = usize::try_from(device).ok().and_then(|device| PLACES.get(device))?;
    let lane = lane_of(stream);
    let slot = lanes.get(lane)?;
    if let Some(place) = slot.get() {
        return Some(place);
    }
    let driver = Arc::new(TableDriver::raw(device)?);
    let place = slot.get_or_init(|| Place {
        gate: Gate::new(driver.clone(), Arc::new(MonotonicClock), Settings::default(), &DEFERRED).observed_by(
            Box::new(GateLog {
                device: device as u16,
                lane: lane as u32,
            }),
        ),
        driver,
        dispatcher: Mutex::new(None),
    });
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if !opened.iter().any(|&(_, _, other)| std::ptr::eq(other, place)) {
        opened.push((device as usize, lane, place));
    }
    Some(place)
}

/// The gates that a stream's work passes, or that of any stream of the device, as far as they had something to do before.
fn known(device: i32, stream: u64) -> impl Iterator<Item = &'static Place> {
    let lanes = usize::try_from(device).ok().and_then(|device| PLACES.get(device));
    let range = stream_in(stream).map_or(0..MAX_LANES, |stream| {
        let lane = lane_of(stream);
        lane..lane + 1
    });
    lanes
        .into_iter()
        .flat_map(move |lanes| &lanes[range.clone()])
        .filter_map(OnceLock::get)
}

/// With device and lane.
fn places() -> impl Iterator<Item = (usize, usize, &'static Place)> {
    OPENED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
        .into_iter()
}

impl Place {
    fn ensure_dispatcher(&'static self) {
        let mut dispatcher = self.dispatcher.lock().unwrap_or_else(PoisonError::into_inner);
        if dispatcher.is_none() && !self.gate.is_closed() {
            let name = format!("pygpukit-gate-{}", self.gate.device());
            let thread = std::thread::Builder::new().name(name).spawn(|| {
                // SAFETY: changes nothing but how this thread sleeps.
                unsafe { pk_sleep_exactly() };
                self.gate.run();
            });
            // Without a thread nothing that is deferred would ever run, so that every wait would be endless.
            *dispatcher = Some(thread.expect("the system has no thread for the gate of a device"));
        }
    }
}

/// What the gates measured, by device and lane.
pub fn views() -> Vec<(usize, usize, View)> {
    places()
        .map(|(device, lane, place)| (device, lane, place.gate.view()))
        .collect()
}

/// Whether a limit holds a task back at any gate, and since when that is so; 0 = ever.
pub fn throttled(number: u64) -> (bool, u64) {
    let stretches = places().filter_map(|(_, _, place)| place.gate.throttled(number));
    stretches.fold((false, 0), |(on, since_ns), (here, here_ns)| match (on, here) {
        (true, true) => (true, since_ns.min(here_ns)),
        (false, true) => (true, here_ns),
        (true, false) => (true, since_ns),
        (false, false) => (false, since_ns.max(here_ns)),
    })
}

/// Writes records of what limits held back so far, for somebody who is about to read them.
pub fn tell_throttles() {
    places().for_each(|(_, _, place)| place.gate.tell_throttles());
}

/// The task launches nothing more: waits a moment for its last device time.
pub fn leave(context: &TaskContext) {
    places().for_each(|(_, _, place)| place.gate.leave(context));
}

/// pk_gate_work
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WorkIn {
    stream: u64,
    size: u64,
    name: u32,
    device: i32,
    grid: [u32; 3],
    kind: u32,
    wave: u64,
}

impl WorkIn {
    fn work(&self) -> Work {
        Work {
            stream: self.stream,
            name: self.name,
            size: self.size,
            grid: self.grid,
            wave: self.wave,
            kind: WorkKind::from_number(self.kind),
        }
    }
}

/// pk_command
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CommandIn {
    this: *mut c_void,
    issue: extern "C" fn(*mut c_void) -> i32,
    keep: extern "C" fn(*mut c_void) -> *mut c_void,
    drop: extern "C" fn(*mut c_void),
    issue_part: Option<extern "C" fn(*mut c_void, *const [u32; 3], *const [u32; 3]) -> i32>,
    want_parts: Option<extern "C" fn(*mut c_void)>,
}

/// A copy of a command, which owns all it needs.
struct Kept {
    command: CommandIn,
    driver: Arc<TableDriver>,
}

// SAFETY: core.h promises that a kept command may be issued and dropped on any thread.
unsafe impl Send for Kept {}
// SAFETY: as before; the gate issues one after the other.
unsafe impl Sync for Kept {}

impl Command for Kept {
    fn issue(&self) -> DriverResult<()> {
        self.driver
            .with_device("launching", || (self.command.issue)(self.command.this))
    }

    fn issue_part(&self, part: SubGrid) -> DriverResult<()> {
        let issue = self.command.issue_part.expect("only work with a wave comes in parts");
        self.driver.with_device("launching a part", || {
            issue(self.command.this, &part.first, &part.extent)
        })
    }

    fn want_parts(&self) {
        if let Some(want) = self.command.want_parts {
            want(self.command.this);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        (self.command.drop)(self.command.this);
    }
}

thread_local! {
    /// What the thread was told of a refusal, until it asks for the text; and the text it asked for last.
    static REFUSED: RefCell<(Option<DriverError>, CString)> = RefCell::default();
}

fn refused(refusal: Refusal) -> i32 {
    let name = Interner::global().name(refusal.name).unwrap_or_default();
    let mut error = refusal.error;
    let code = error.code;
    error.text = format!("{name}, launched before and deferred, was refused: {}", error.text);
    REFUSED.with(|refused| refused.borrow_mut().0 = Some(error));
    code
}

/// # Safety
/// `context` is a handle from `SchedulerCore.enter()` whose task is not finished.
unsafe fn context_at(context: u64) -> Arc<TaskContext> {
    let context = context as *const TaskContext;
    // SAFETY: SchedulerCore keeps the Arc until finish(); this takes a share of it.
    unsafe {
        Arc::increment_strong_count(context);
        Arc::from_raw(context)
    }
}

/// The task, or the context, that the calling thread works for.
pub fn current_context() -> Option<Arc<TaskContext>> {
    // SAFETY: it only reads what the calling thread carries.
    let context = unsafe { pk_current_context() };
    // SAFETY: a thread carries a context only until its task is finished, or its session left.
    (context != 0).then(|| unsafe { context_at(context) })
}

/// # Safety
/// As `pk_gate_enter`.
#[no_mangle]
pub unsafe extern "C" fn pk_task_count(context: u64, kind: u32) {
    // SAFETY: the contract above.
    let context = unsafe { &*(context as *const TaskContext) };
    context.add_work(WorkKind::from_number(kind));
}

/// Issues work or keeps it for its turn; never waits.
///
/// # Safety
/// As core.h: a context whose task is not finished, valid work and a valid command.
#[no_mangle]
pub unsafe extern "C" fn pk_gate_submit(context: u64, work: *const WorkIn, command: *const CommandIn) -> i32 {
    // SAFETY: the contract above.
    let (context, work, command) = unsafe { (context_at(context), *work, *command) };
    let Some(place) = place(work.device, work.stream) else {
        return (command.issue)(command.this); // which tells what is wrong
    };
    let issue = || match (command.issue)(command.this) {
        0 => Ok(()),
        code => Err(DriverError {
            code,
            text: String::new(), // the driver keeps it for this thread
        }),
    };
    let keep = || -> Arc<dyn Command> {
        Arc::new(Kept {
            command: CommandIn {
                this: (command.keep)(command.this),
                ..command
            },
            driver: place.driver.clone(),
        })
    };
    let want_parts = || command.want_parts.into_iter().for_each(|want| want(command.this));
    match place.gate.submit(&context, work.work(), issue, keep, want_parts) {
        Submitted::Issued => 0,
        Submitted::Deferred => {
            place.ensure_dispatcher();
            0
        }
        Submitted::Full => FULL,
        Submitted::Stopped => STOPPED,
        Submitted::Refused(refusal) if refusal.error.text.is_empty() => refusal.error.code,
        Submitted::Refused(refusal) => refused(refusal),
    }
}

/// Waits until it makes sense to submit again, at most so long.
///
/// # Safety
/// As `pk_gate_submit`.
#[no_mangle]
pub unsafe extern "C" fn pk_gate_wait(context: u64, work: *const WorkIn, timeout_ns: u64) {
    // SAFETY: the contract above.
    let (context, work) = unsafe { (context_at(context), *work) };
    if let Some(place) = place(work.device, work.stream) {
        place.gate.wait_for_room(&context, work.stream, timeout_ns);
    }
}

/// Whether work of the context that does not pass the gate may happen now: as `pk_gate_submit`. Waits for that at most so long.
///
/// # Safety
/// `context` is a handle from `SchedulerCore.enter()` whose task is not finished.
#[no_mangle]
pub unsafe extern "C" fn pk_gate_enter(context: u64, timeout_ns: u64) -> i32 {
    // SAFETY: the contract above.
    let context = unsafe { context_at(context) };
    if timeout_ns > 0 {
        context.wait_while_held(Duration::from_nanos(timeout_ns));
    }
    match (context.stopped(), context.paused()) {
        (true, _) => STOPPED,
        (_, true) => FULL,
        _ => 0,
    }
}

/// Work that did not pass the gate was done.
///
/// # Safety
/// As `pk_gate_enter`.
#[no_mangle]
pub unsafe extern "C" fn pk_gate_note(context: u64, device: i32, stream: u64, ns: u64) {
    // SAFETY: the contract above.
    let context = unsafe { context_at(context) };
    if let Some(place) = place(device, stream) {
        place.gate.ran_on_host(&context, ns);
    }
}

#[no_mangle]
pub extern "C" fn pk_gate_deferred() -> *const AtomicU64 {
    &DEFERRED
}

fn stream_in(stream: u64) -> Option<u64> {
    (stream != ANY_STREAM).then_some(stream)
}

#[no_mangle]
pub extern "C" fn pk_gate_has_deferred(device: i32, stream: u64) -> i32 {
    i32::from(known(device, stream).any(|place| place.gate.has_deferred(stream_in(stream))))
}

#[no_mangle]
pub extern "C" fn pk_gate_drain(device: i32, stream: u64) -> i32 {
    known(device, stream).for_each(|place| place.gate.drain(stream_in(stream)));
    pk_gate_refusal(device, stream)
}

#[no_mangle]
pub extern "C" fn pk_gate_refusal(device: i32, stream: u64) -> i32 {
    known(device, stream)
        .find_map(|place| place.gate.take_refusal(stream))
        .map_or(0, refused)
}

#[no_mangle]
pub extern "C" fn pk_gate_error_text(status: i32) -> *const c_char {
    REFUSED.with(|refused| {
        let mut refused = refused.borrow_mut();
        let Some(error) = refused.0.take_if(|error| error.code == status) else {
            return std::ptr::null();
        };
        refused.1 = CString::new(error.text.replace('\0', " ")).unwrap_or_default();
        refused.1.as_ptr()
    })
}

#[no_mangle]
pub extern "C" fn pk_gate_close() {
    for (_, _, place) in places() {
        place.gate.close();
        let thread = place.dispatcher.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join(); // it panicked at worst, which it has told
        }
    }
}
