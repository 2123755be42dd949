//! Gate: queue and line of one device, for threads. Tenants submit; one dispatcher issues what they deferred.
//!
//! Locks: the line before the queue. The queue's is held for moments only, except while a tenant that is alone issues directly.

mod direct;
mod dispatcher;

pub use direct::Submitted;
pub use dispatcher::Next;

use super::command::Refusal;
use super::line::Line;
use super::observer::Observer;
use super::queue::{Queue, Throttle};
use super::settings::Settings;
use super::tenant::TenantView;
use crate::clock::Clock;
use crate::driver::{Driver, DriverResult};
use crate::scheduler::TaskContext;
use crate::sync::waits::atomic::AtomicBool;
use crate::sync::waits::{sleep, Condvar, Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// What everybody got so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub now_ns: u64,
    pub in_flight_ns: u64,
    pub tenants: Vec<TenantView>,
    /// Oldest first.
    pub throttles: Vec<Throttle>,
}

pub struct Gate {
    driver: Arc<dyn Driver>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    line: Mutex<Line>,
    queue: Mutex<Queue>,
    /// For the dispatcher: there is something to issue.
    work: Condvar,
    /// For tenants: something was issued.
    room: Condvar,
    closed: AtomicBool,
    /// Commands deferred on all devices, for those who must look before they touch a stream.
    deferred: &'static AtomicU64,
}

/// How often a departing tenant looks whether its last work was measured, and how often at most.
const LEAVE_STEP: Duration = Duration::from_micros(20);
const LEAVE_STEPS: u32 = 500;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    /// deferred: counts what all gates together hold back; it may start at any value.
    pub fn new(
        driver: Arc<dyn Driver>,
        clock: Arc<dyn Clock>,
        settings: Settings,
        deferred: &'static AtomicU64,
    ) -> Gate {
        Gate {
            line: Mutex::new(Line::new(driver.clone(), clock.clone())),
            driver,
            clock,
            settings,
            queue: Mutex::new(Queue::new(settings)),
            work: Condvar::new(),
            room: Condvar::new(),
            closed: AtomicBool::new(false),
            deferred,
        }
    }

    /// Tells somebody what it makes of its tasks, from now on.
    pub fn observed_by(self, observer: Box<dyn Observer>) -> Gate {
        lock(&self.queue).observe(observer);
        self
    }

    /// Whether a limit holds a task back, and since when that is so, 0 = ever; None for one that is not here.
    pub fn throttled(&self, number: u64) -> Option<(bool, u64)> {
        lock(&self.queue).throttled(number, self.clock.now_ns())
    }

    /// Tells its observer of what limits held back so far.
    pub fn tell_throttles(&self) {
        lock(&self.queue).tell_throttles();
    }

    /// Does something with the queue, and tells what it changed.
    fn change<T>(&self, queue: &mut Queue, act: impl FnOnce(&mut Queue) -> T) -> T {
        let before = queue.deferred();
        let done = act(queue);
        let after = queue.deferred();
        self.deferred.fetch_add(after.wrapping_sub(before), Ordering::SeqCst);
        if after > before {
            self.work.notify_one();
        } else if after < before {
            self.room.notify_all();
        }
        done
    }

    /// Books all batches that are over.
    fn retire(&self, line: &mut Line, queue: &mut Queue) -> DriverResult<()> {
        let now = self.clock.now_ns();
        while let Some(retired) = line.poll(now)? {
            self.change(queue, |queue| queue.retire(retired, now));
        }
        Ok(())
    }

    /// After the device failed. Commands go on, and meet the failure themselves.
    fn forget(&self, line: &mut Line, queue: &mut Queue) {
        let now = self.clock.now_ns();
        for id in line.reset() {
            self.change(queue, |queue| queue.forget_batch(id, now));
        }
    }

    /// Waits until the task's thread may submit again, at most so long. False at the timeout.
    pub fn wait_for_room(&self, context: &Arc<TaskContext>, stream: u64, timeout_ns: u64) -> bool {
        if context.held() {
            context.wait_while_held(Duration::from_nanos(timeout_ns));
            return !context.held();
        }
        let ready = |queue: &mut Queue, id| queue.has_room(id) && !queue.has_deferred_elsewhere(id, stream);
        let mut queue = lock(&self.queue);
        let id = queue.id(context, self.clock.now_ns());
        let waits = |queue: &mut Queue| !context.stopped() && !ready(queue, id);
        let timeout = Duration::from_nanos(timeout_ns);
        let (_queue, waited) = self
            .room
            .wait_timeout_while(queue, timeout, waits)
            .unwrap_or_else(PoisonError::into_inner);
        !waited.timed_out()
    }

    /// Whether commands for the stream, or for any stream with None, wait here.
    pub fn has_deferred(&self, stream: Option<u64>) -> bool {
        lock(&self.queue).has_deferred(stream)
    }

    /// Waits until what is deferred now for the stream, or for any stream with None, is issued. They keep their turns.
    pub fn drain(&self, stream: Option<u64>) {
        let queue = lock(&self.queue);
        let mark = queue.mark(stream);
        let _drained = self
            .room
            .wait_while(queue, |queue| !queue.is_past(&mark) && !self.is_closed());
    }

    /// The refusal of a command for the stream, reported once.
    pub fn take_refusal(&self, stream: u64) -> Option<Refusal> {
        let mut queue = lock(&self.queue);
        self.change(&mut queue, |queue| queue.take_refusal(stream))
    }

    /// Work of the task that ran on the host in the device's stead.
    pub fn ran_on_host(&self, context: &Arc<TaskContext>, ns: u64) {
        let mut queue = lock(&self.queue);
        let now = self.clock.now_ns();
        let id = queue.id(context, now);
        queue.charge_host(id, ns, now);
    }

    /// The task submits nothing more. Once this returns its device time is measured, unless the device is still busy with it.
    pub fn leave(&self, context: &TaskContext) {
        for _ in 0..LEAVE_STEPS {
            if let Ok(mut line) = self.line.try_lock() {
                let mut queue = lock(&self.queue);
                if line
                    .close(false)
                    .and_then(|()| self.retire(&mut line, &mut queue))
                    .is_err()
                {
                    self.forget(&mut line, &mut queue);
                }
            }
            let mut queue = lock(&self.queue);
            let Some(id) = queue.find(context.number) else { return };
            let now = self.clock.now_ns();
            if self.change(&mut queue, |queue| queue.leave(id, now)) {
                return;
            }
            drop(queue);
            sleep(LEAVE_STEP);
        }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends the dispatcher; nobody waits here any longer, and what is deferred is never issued.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let _queue = lock(&self.queue); // so that nobody is between looking and waiting
        self.work.notify_all();
        self.room.notify_all();
    }

    pub fn view(&self) -> View {
        if let Ok(mut line) = self.line.try_lock() {
            let mut queue = lock(&self.queue);
            if self.retire(&mut line, &mut queue).is_err() {
                self.forget(&mut line, &mut queue);
            }
        }
        let in_flight_ns = self
            .line
            .try_lock()
            .map_or(0, |line| line.in_flight_ns(self.clock.now_ns()));
        let now_ns = self.clock.now_ns();
        let (tenants, throttles) = lock(&self.queue).view(now_ns);
        View {
            now_ns,
            in_flight_ns,
            tenants,
            throttles,
        }
    }

    pub fn device(&self) -> i32 {
        self.driver.device()
    }
}
