//! The engine as everybody sees it: submission, order, waits and figures. What moves transfers along is in `pump`.

use crate::sync::waits::{Condvar, Mutex, MutexGuard};
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::books::Books;
use super::{Direction, Info, Request, Settings, SettingsError, Stats};
use crate::driver::{Driver, DriverError, DriverResult};
use crate::pool::Services;

/// Transfers go before kernels of the least urgent streams where the device has to choose.
const STREAM_PRIORITY: i32 = -5;

/// Why a transfer was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitError {
    Closed,
    /// An address is null, or the range passes the end of the address space.
    Range {
        address: u64,
        bytes: u64,
    },
    Driver(DriverError),
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Closed => write!(f, "the transfer engine is closed; make another"),
            SubmitError::Range { address, bytes } => {
                write!(f, "{bytes} bytes at {address:#x} are not a range of memory")
            }
            SubmitError::Driver(error) => write!(f, "{error}"),
        }
    }
}

/// How a stream stands to a transfer that its work is to come after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The transfer had ended.
    Ended(Box<Info>),
    /// Work queued on the stream from now on starts after it.
    Ordered,
    /// Not all of it is issued yet: ask again.
    NotYet,
    /// Nobody knows it any more.
    Unknown,
}

/// Transfers of one device. All methods may be called from any thread.
pub struct Engine {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) services: Services,
    pub(super) settings: Settings,
    books: Mutex<Books>,
    /// A transfer ended, or all of one is issued.
    pub(super) changed: Condvar,
    /// For the thread in `run`.
    pub(super) work: Condvar,
    /// Held by the one who pumps.
    pub(super) pumping: Mutex<()>,
}

impl Engine {
    /// An engine with streams of its own.
    pub fn new(driver: Arc<dyn Driver>, services: Services, settings: Settings) -> Result<Engine, EngineError> {
        settings.check().map_err(EngineError::Settings)?;
        let engine = Engine {
            driver,
            services,
            settings,
            books: Mutex::new(Books::default()),
            changed: Condvar::new(),
            work: Condvar::new(),
            pumping: Mutex::new(()),
        };
        for direction in Direction::ALL {
            let stream = engine.driver.stream_create(STREAM_PRIORITY);
            engine.lock().lanes[direction as usize].stream = stream.map_err(EngineError::Driver)?;
        }
        Ok(engine)
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> u64 {
        self.services.clock.now_ns()
    }

    /// Takes a transfer; its number. It begins once the work that its streams have by now, its events and its transfers are over.
    pub fn submit(&self, request: Request) -> Result<u64, SubmitError> {
        for address in [request.to, request.from] {
            if request.bytes > 0 && (address == 0 || address.checked_add(request.bytes).is_none()) {
                let bytes = request.bytes;
                return Err(SubmitError::Range { address, bytes });
            }
        }
        let mut events = Vec::with_capacity(request.after_streams.len());
        for &stream in &request.after_streams {
            let recorded = self.take_event().and_then(|event| {
                events.push(event);
                self.driver.event_record(event, stream)
            });
            if let Err(error) = recorded {
                self.lock().spare_events.append(&mut events);
                return Err(SubmitError::Driver(error));
            }
        }
        let now = self.now();
        let mut books = self.lock();
        if books.closed {
            books.spare_events.append(&mut events);
            return Err(SubmitError::Closed);
        }
        let id = books.add(request, events, now);
        self.poke(&mut books);
        Ok(id)
    }

    fn poke(&self, books: &mut Books) {
        books.poked = true;
        self.work.notify_all();
    }

    pub(super) fn take_event(&self) -> DriverResult<u64> {
        if let Some(event) = self.lock().spare_events.pop() {
            return Ok(event);
        }
        self.driver.event_create_timed()
    }

    pub fn info(&self, id: u64) -> Option<Info> {
        self.lock().get(id).map(|t| t.info.clone())
    }

    /// What is remembered, by number.
    pub fn transfers(&self) -> Vec<Info> {
        self.lock().all()
    }

    /// Those not begun, in the order in which they go.
    pub fn queued(&self) -> Vec<Info> {
        self.lock().queued()
    }

    pub fn stats(&self) -> Stats {
        self.lock().stats
    }

    /// Issues no more of a transfer. False when nothing of it was left to issue.
    pub fn cancel(&self, id: u64) -> bool {
        let now = self.now();
        let mut books = self.lock();
        let cancelled = books.cancel(id, now);
        self.poke(&mut books);
        drop(books);
        self.changed.notify_all();
        cancelled
    }

    /// Forgets one that has ended; false otherwise.
    pub fn forget(&self, id: u64) -> bool {
        self.lock().forget(id)
    }

    /// Forgets all that have ended.
    pub fn forget_ended(&self) {
        self.lock().forget_ended();
    }

    /// Waits until the transfer has ended; how it stands then, or after the timeout. None when it is unknown.
    pub fn wait(&self, id: u64, timeout: Duration) -> Option<Info> {
        let until = Instant::now() + timeout;
        let mut books = self.lock();
        loop {
            let info = books.get(id)?.info.clone();
            let left = until.saturating_duration_since(Instant::now());
            if info.state.is_terminal() || left.is_zero() {
                return Some(info);
            }
            books = self.wait_for_change(books, left);
        }
    }

    /// Waits for transfers that were to be reported and have ended: each once, in the order of their ends.
    pub fn ended(&self, timeout: Duration) -> Vec<Info> {
        let until = Instant::now() + timeout;
        let mut books = self.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if !books.ended.is_empty() || books.closed || left.is_zero() {
                return books.ended.drain(..).collect();
            }
            books = self.wait_for_change(books, left);
        }
    }

    fn wait_for_change<'a>(&'a self, books: MutexGuard<'a, Books>, longest: Duration) -> MutexGuard<'a, Books> {
        let (books, _) = self
            .changed
            .wait_timeout(books, longest)
            .unwrap_or_else(PoisonError::into_inner);
        books
    }

    /// Makes work that is queued on the stream of a device from now on start after the transfer. Waits at most so long until all of it is
    /// issued.
    pub fn order_after(&self, id: u64, device: i32, stream: u64, timeout: Duration) -> DriverResult<Order> {
        let until = Instant::now() + timeout;
        let mut books = self.lock();
        loop {
            let Some(t) = books.get(id) else {
                return Ok(Order::Unknown);
            };
            if t.info.state.is_terminal() {
                return Ok(Order::Ended(Box::new(t.info.clone())));
            }
            if t.is_issued() && books.issuing != Some(id) {
                let lane = &books.lanes[t.info.direction as usize];
                if let Some(piece) = lane.pieces.iter().rev().find(|piece| piece.transfer == id) {
                    // With the lock, so that the event is not used again before.
                    return self
                        .driver
                        .stream_of_wait_event(device, stream, piece.event)
                        .map(|()| Order::Ordered);
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Order::NotYet);
            }
            books = self.wait_for_change(books, left);
        }
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Cancels what is not issued and takes nothing more. What is in flight ends as it would.
    pub fn close(&self) {
        let now = self.now();
        let mut books = self.lock();
        books.closed = true;
        for info in books.all() {
            books.cancel(info.id, now);
        }
        self.poke(&mut books);
        drop(books);
        self.changed.notify_all();
    }
}

/// Why there is no engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    Settings(SettingsError),
    Driver(DriverError),
}

impl Drop for Engine {
    /// Waits for what is in flight and gives everything back; what a broken device refuses is lost with its context.
    fn drop(&mut self) {
        let books = self.books.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut events = std::mem::take(&mut books.spare_events);
        for info in books.all() {
            events.extend(
                books
                    .get_mut(info.id)
                    .map(|t| std::mem::take(&mut t.own_events))
                    .unwrap_or_default(),
            );
        }
        for lane in &mut books.lanes {
            events.extend(lane.pieces.drain(..).map(|piece| piece.event));
            if lane.stream != 0 {
                let _ = self.driver.stream_wait(lane.stream);
                let _ = self.driver.stream_destroy(lane.stream);
            }
            events.extend((lane.mark != 0).then_some(lane.mark));
        }
        for event in events {
            let _ = self.driver.event_destroy(event);
        }
    }
}
