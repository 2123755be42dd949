//! Gate: queue and line of one device, for threads. Tenants submit; one dispatcher issues what they deferred.
//!
//! Locks: the line before the queue. The queue's is held for moments only, except while a tenant that is alone issues directly.

use super::command::{Batch, Command, Refusal, Work};
use super::cost::Cost;
use super::line::Line;
use super::observer::Observer;
use super::queue::{Offer, Queue, Throttle};
use super::settings::Settings;
use super::tenant::TenantView;
use crate::clock::Clock;
use crate::counters::{Counter, Counters};
use crate::driver::{Driver, DriverResult};
use crate::scheduler::TaskContext;
use crate::sync::waits::atomic::AtomicBool;
use crate::sync::waits::{sleep, yield_now, Condvar, Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The device has it.
    Issued,
    /// The dispatcher will issue it.
    Deferred,
    /// Wait for room, or until its task is resumed, then submit it again.
    Full,
    /// Its task was cancelled or expired.
    Stopped,
    /// The device refused it, or an earlier one of the task.
    Refused(Refusal),
}

/// What the dispatcher should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Step again at once.
    Again,
    /// Step again at this time at the latest.
    At(u64),
    /// Nothing is deferred and nothing unfinished.
    Idle,
}

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
/// How long the dispatcher waits at most while the device works, which may be done sooner than estimated.
const LONGEST_WAIT_NS: u64 = 100_000;
/// A sleep takes about so much longer than asked for, where the thread's timers are exact; a wait that is shorter spins.
const SLEEP_MORE_NS: u64 = 30_000;
/// So soon a task that was cancelled meanwhile is seen.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// How long the dispatcher stays awake with nothing to do.
const LINGER_NS: u64 = 200_000;

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

    /// Issues a command now, or keeps what `keep` makes of it. Never waits. `want_parts` is called before a long one is issued
    /// whole to a tenant that is alone: who comes then should find that it can be cut.
    pub fn submit(
        &self,
        context: &Arc<TaskContext>,
        work: Work,
        issue: impl FnOnce() -> DriverResult<()>,
        keep: impl FnOnce() -> Arc<dyn Command>,
        want_parts: impl FnOnce(),
    ) -> Submitted {
        if context.held() {
            return Submitted::Full; // and the queue does not see it, so that nobody is paced for its sake
        }
        let mut queue = lock(&self.queue);
        let now = self.clock.now_ns();
        let id = queue.id(context, now);
        match self.change(&mut queue, |queue| queue.offer(id, work, now)) {
            Offer::Stopped => return Submitted::Stopped,
            Offer::Refused(refusal) => return Submitted::Refused(refusal),
            Offer::Full => return Submitted::Full,
            Offer::Direct => {
                let mut cost = queue.estimate(work);
                let mut line = self.line.try_lock().ok();
                if let Some(line) = line.as_mut().filter(|line| !cost.known && line.holds(cost)) {
                    if self.retire(line, &mut queue).is_err() {
                        self.forget(line, &mut queue);
                    }
                    cost = queue.estimate(work); // measured meanwhile, perhaps
                }
                if queue.wants_parts(work, cost) {
                    want_parts();
                }
                // A tenant alone may not bury the device in work either: somebody may come. Of work that nobody has measured the
                // first tells how much the others are.
                let near = line.filter(|line| {
                    line.in_flight_ns(now) <= self.settings.direct_ns && (cost.known || !line.holds(cost))
                });
                if let Some(mut line) = near {
                    let (stream, name) = (work.stream, work.name);
                    let issued = self.issue_directly(&mut queue, &mut line, id, work, cost, issue);
                    let refused = |error| Submitted::Refused(Refusal { stream, name, error });
                    return issued.map_or_else(refused, |()| Submitted::Issued);
                }
            }
            Offer::Defer => {}
        }
        self.change(&mut queue, |queue| queue.push(id, work, keep(), now));
        Submitted::Deferred
    }

    fn issue_directly(
        &self,
        queue: &mut Queue,
        line: &mut Line,
        id: u32,
        work: Work,
        cost: Cost,
        issue: impl FnOnce() -> DriverResult<()>,
    ) -> DriverResult<()> {
        let now = self.clock.now_ns();
        let placed = self.place_directly(queue, line, id, work.stream, cost, now);
        let from_ns = self.clock.now_ns();
        if let Err(error) = issue() {
            if placed.is_ok_and(|is_first| is_first) {
                queue.charge_direct(id, 0, true, now); // the batch is open and empty
            }
            return Err(error);
        }
        let Ok(is_first) = placed else {
            self.forget(line, queue);
            return Ok(());
        };
        let was_idle = is_first && line.flying() == 0;
        line.add(cost, from_ns);
        queue.charge_direct(id, cost.ns, is_first, now);
        queue.count_launch(id);
        // Where nobody knows when the next work comes, the end is marked while the device cannot have reached it. What a limit
        // counts is always measured: marked late, work that takes longer than it did before would be charged as before for ever.
        let marked = if was_idle || !cost.known {
            line.close(true)
        } else if queue.is_limited(id) {
            line.mark()
        } else {
            Ok(())
        };
        if marked.is_err() {
            self.forget(line, queue);
        }
        Ok(())
    }

    /// Sees to it that a batch is open for the work. True: a new one.
    fn place_directly(
        &self,
        queue: &mut Queue,
        line: &mut Line,
        id: u32,
        stream: u64,
        cost: Cost,
        now: u64,
    ) -> DriverResult<bool> {
        if let Some((tenant, open_on, ns)) = line.open_batch() {
            let same = tenant == id && open_on == stream && ns < self.settings.direct_span_ns;
            // What lies between two works of one batch is charged with them, so that one that sleeps in between needs two.
            if same && !line.runs_dry(now) && cost.known && line.has_room(cost) {
                return Ok(false);
            }
            line.close(false)?;
        }
        self.retire(line, queue)?;
        line.open(id, stream, self.clock.now_ns()).map(|()| true)
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

    /// One step of the dispatcher: books what is over and issues the next batch.
    pub fn step(&self) -> Next {
        self.step_with(&mut lock(&self.line))
    }

    fn step_with(&self, line: &mut Line) -> Next {
        let mut queue = lock(&self.queue);
        // What a tenant issued directly ends here.
        if line.close(false).and_then(|()| self.retire(line, &mut queue)).is_err() {
            self.forget(line, &mut queue);
        }
        let now = self.clock.now_ns();
        let least_ns = if line.has_unmeasured() {
            self.settings.direct_ns
        } else {
            0
        };
        let in_flight_ns = line.in_flight_ns(now).max(least_ns);
        let taken = self.change(&mut queue, |queue| queue.take(in_flight_ns, line.flying(), now));
        let Some(batch) = taken else {
            let idle = line.is_empty() && !queue.has_deferred(None);
            let room_ns = in_flight_ns
                .saturating_sub(queue.pace(now).near_ns)
                .min(LONGEST_WAIT_NS);
            let room = (!line.is_empty()).then_some(now + room_ns);
            let at = room.into_iter().chain(queue.next_release_ns()).min();
            return if idle { Next::Idle } else { Next::At(at.unwrap_or(now)) };
        };
        drop(queue);
        let tenant = batch.tenant;
        let flying = line.flying();
        let (issued, refusal) = self.issue(line, batch);
        let failed = line.close(true).is_err();
        let is_flying = failed || line.flying() > flying;
        let mut queue = lock(&self.queue);
        let now = self.clock.now_ns();
        self.change(&mut queue, |queue| {
            queue.issued(tenant, issued, is_flying, refusal, now)
        });
        if failed {
            self.forget(line, &mut queue);
        }
        Next::Again
    }

    /// How many commands the device got to their end, and the refusal of the next one.
    fn issue(&self, line: &mut Line, batch: Batch) -> (u32, Option<Refusal>) {
        let Some(first) = batch.items.first() else {
            return (0, None);
        };
        let (stream, mut name, mut issued) = (first.work.stream, first.work.name, 0);
        let done = line.open(batch.tenant, stream, self.clock.now_ns()).and_then(|()| {
            for item in batch.items {
                name = item.work.name;
                let from_ns = self.clock.now_ns();
                match item.part {
                    None => item.command.issue()?,
                    Some(part) => {
                        item.command.issue_part(part)?;
                        Counters::global().add(Counter::LaterParts, u64::from(part.first != [0; 3]));
                    }
                }
                line.add(item.cost, from_ns);
                issued += u32::from(item.ends);
            }
            Ok(())
        });
        (issued, done.err().map(|error| Refusal { stream, name, error }))
    }

    /// The dispatcher: returns once the gate is closed.
    pub fn run(&self) {
        while !self.is_closed() {
            {
                let queue = lock(&self.queue);
                let waits = |queue: &mut Queue| !queue.has_deferred(None) && !self.is_closed();
                let _awake = self.work.wait_while(queue, waits);
            }
            let mut line = lock(&self.line);
            let mut idle_from = None;
            while !self.is_closed() {
                let now = self.clock.now_ns();
                match self.step_with(&mut line) {
                    Next::Again => idle_from = None,
                    Next::At(at) => {
                        idle_from = None;
                        self.pause(&line, at.saturating_sub(now));
                    }
                    Next::Idle => {
                        if now - *idle_from.get_or_insert(now) > LINGER_NS {
                            break;
                        }
                        yield_now();
                    }
                }
            }
        }
    }

    fn pause(&self, line: &Line, ns: u64) {
        if ns <= SLEEP_MORE_NS {
            return yield_now();
        }
        let most = Duration::from_nanos(ns - SLEEP_MORE_NS).min(LONGEST_PAUSE);
        if line.is_empty() {
            let queue = lock(&self.queue); // all are held by limits; others may come
            let _awake = self.work.wait_timeout(queue, most);
        } else {
            sleep(most);
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
