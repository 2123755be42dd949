//! Line: batches of work on the device, one after the other, each between two events.
//!
//! A batch's stream first waits for the end of the batch before, then passes the start event: batches never run together, what lies
//! between two of them is charged to nobody, and the times of all add up to no more than the time that passed. One that is enqueued
//! behind an unfinished batch of its own stream needs no start: it begins where that ends. From one event to the next passes more than a
//! microsecond, of which short batches have no more than some tens.
//!
//! Where the host stands still inside a batch, as while the driver loads another kernel's code, the device runs dry, and that is not
//! charged either. But a call that takes as long as its work looks the same, as all do where launches are made to wait. So it counts as
//! standing still only if it takes far longer than the work is known to, and not twice in a row for work of one kind.

use super::cost::Cost;
use crate::clock::Clock;
use crate::driver::{Driver, DriverResult};
use std::collections::VecDeque;
use std::sync::Arc;

/// Kinds of work that one batch can hold.
const PARTS: usize = 8;
/// Shorter stalls are charged: they hardly matter, and a busy host has them all the time.
const STALL_NS: u64 = 200_000;

#[derive(Clone, Copy)]
struct Batch {
    tenant: u32,
    stream: u64,
    start: u64,
    /// `start` is the end of the batch before.
    follows: bool,
    /// 0 until an end is recorded.
    end: u64,
    /// `end` is behind all of its work.
    marked: bool,
    late: bool,
    /// How long the host stood still since it recorded the start, and until when.
    stall_ns: u64,
    stall_until_ns: u64,
    estimated_ns: u64,
    parts: [Option<Cost>; PARTS],
}

impl Batch {
    fn own_start(&self) -> Option<u64> {
        (!self.follows).then_some(self.start)
    }
}

/// A batch whose time is known.
#[derive(Clone, Copy, Debug)]
pub struct Retired {
    pub tenant: u32,
    pub estimated_ns: u64,
    pub actual_ns: u64,
    /// On the host's clock, as far as the host can tell.
    pub ended_ns: u64,
    /// None when the time is only an upper bound, from which nothing can be learnt.
    pub parts: Option<[Option<Cost>; PARTS]>,
    /// It is charged without what the host stood still for.
    pub stalled: bool,
}

pub struct Line {
    driver: Arc<dyn Driver>,
    clock: Arc<dyn Clock>,
    free: Vec<u64>,
    flying: VecDeque<Batch>,
    open: Option<Batch>,
    /// The end of the last batch that is over: the next one may begin there.
    passed: Option<u64>,
    /// When the oldest batch began, on the host's clock, as far as the host can tell.
    head_from_ns: u64,
    /// When it was last seen to be unfinished.
    looked_ns: u64,
    pending_ns: u64,
}

impl Line {
    pub fn new(driver: Arc<dyn Driver>, clock: Arc<dyn Clock>) -> Line {
        Line {
            driver,
            clock,
            free: Vec::new(),
            flying: VecDeque::new(),
            open: None,
            passed: None,
            head_from_ns: 0,
            looked_ns: 0,
            pending_ns: 0,
        }
    }

    /// Tenant and stream of the open batch, and the estimate of what is in it.
    pub fn open_batch(&self) -> Option<(u32, u64, u64)> {
        self.open.map(|b| (b.tenant, b.stream, b.estimated_ns))
    }

    /// Whether the open batch can hold work of this kind, too.
    pub fn has_room(&self, cost: Cost) -> bool {
        self.open
            .is_some_and(|b| b.parts.iter().any(|p| p.map_or(true, |p| p.slot == cost.slot)))
    }

    /// Batches that are closed and not known to be over.
    pub fn flying(&self) -> usize {
        self.flying.len()
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_none() && self.flying.is_empty()
    }

    /// Unfinished device time by the estimates. The oldest batch may be overdue, those behind it have not begun.
    pub fn in_flight_ns(&self, now_ns: u64) -> u64 {
        let head_ns = self.flying.front().or(self.open.as_ref()).map_or(0, |b| b.estimated_ns);
        (self.head_from_ns + head_ns).saturating_sub(now_ns) + self.pending_ns - head_ns
    }

    /// Whether unfinished work is of a kind that nobody has measured: it could take any number of times what it is estimated at.
    pub fn has_unmeasured(&self) -> bool {
        let mut unfinished = self.flying.iter().chain(&self.open);
        unfinished.any(|batch| batch.parts.iter().flatten().any(|part| !part.known))
    }

    /// Whether unfinished work is of this kind.
    pub fn holds(&self, cost: Cost) -> bool {
        let mut unfinished = self.flying.iter().chain(&self.open);
        unfinished.any(|batch| batch.parts.iter().flatten().any(|part| part.slot == cost.slot))
    }

    /// Whether the device has nothing left to do by the estimates, those of the batches behind the oldest one, too.
    pub fn runs_dry(&self, now_ns: u64) -> bool {
        self.head_from_ns + self.pending_ns <= now_ns
    }

    fn event(&mut self) -> DriverResult<u64> {
        match self.free.pop() {
            Some(event) => Ok(event),
            None => self.driver.event_create_timed(),
        }
    }

    fn recorded(&mut self, stream: u64) -> DriverResult<u64> {
        let event = self.event()?;
        self.driver
            .event_record(event, stream)
            .inspect_err(|_| self.free.push(event))?;
        Ok(event)
    }

    /// Opens a batch. None may be open.
    pub fn open(&mut self, tenant: u32, stream: u64, now_ns: u64) -> DriverResult<()> {
        let before = self.flying.back().map(|before| (before.stream, before.end));
        let unfinished = match before {
            Some((on, end)) if on == stream => (!self.driver.event_done(end)?).then_some(end),
            Some((_, end)) => self.driver.stream_wait_event(stream, end).map(|()| None)?,
            None => None,
        };
        let start = match unfinished {
            Some(end) => end,
            None => self.recorded(stream)?,
        };
        if self.flying.is_empty() {
            (self.head_from_ns, self.looked_ns) = (now_ns, now_ns);
        }
        self.open = Some(Batch {
            tenant,
            stream,
            start,
            follows: unfinished.is_some(),
            end: 0,
            marked: false,
            late: false,
            stall_ns: 0,
            stall_until_ns: 0,
            estimated_ns: 0,
            parts: [None; PARTS],
        });
        Ok(())
    }

    /// Notes work that was enqueued in the open batch since `from_ns`.
    pub fn add(&mut self, cost: Cost, from_ns: u64) {
        if cost.detects_stalls() {
            self.note_stall(from_ns, cost.ns);
        }
        let Some(batch) = &mut self.open else { return };
        batch.estimated_ns += cost.ns;
        batch.marked = false;
        self.pending_ns += cost.ns;
        if let Some(part) = batch.parts.iter_mut().find(|p| p.map_or(true, |p| p.slot == cost.slot)) {
            part.get_or_insert(cost);
        }
    }

    /// The host was in a call of the driver since `from_ns`, for work that takes `usual_ns`.
    fn note_stall(&mut self, from_ns: u64, usual_ns: u64) {
        let now_ns = self.clock.now_ns();
        let call_ns = now_ns.saturating_sub(from_ns);
        if let Some(batch) = self.open.as_mut().filter(|_| call_ns > STALL_NS.max(4 * usual_ns)) {
            batch.stall_ns += call_ns;
            batch.stall_until_ns = now_ns;
        }
    }

    /// Closes the open batch. `at_once`: right after its work was enqueued. Else its stream may have run dry before, and its time
    /// tells only how long it took at most.
    pub fn close(&mut self, at_once: bool) -> DriverResult<()> {
        let Some(batch) = self.open else { return Ok(()) };
        let late = !at_once && !batch.marked && self.driver.stream_done(batch.stream)?;
        self.mark()?;
        self.flying
            .extend(self.open.take().map(|batch| Batch { late, ..batch }));
        Ok(())
    }

    /// Records the end of the open batch as it is now, right after its work was enqueued. Work that is added later moves it.
    pub fn mark(&mut self) -> DriverResult<()> {
        let Some(batch) = self.open.filter(|batch| !batch.marked) else {
            return Ok(());
        };
        let from_ns = self.clock.now_ns();
        let end = match batch.end {
            0 => self.recorded(batch.stream)?,
            end => self.driver.event_record(end, batch.stream).map(|()| end)?,
        };
        self.open = Some(Batch {
            end,
            marked: true,
            ..batch
        });
        if batch.parts.iter().flatten().all(Cost::detects_stalls) {
            self.note_stall(from_ns, batch.estimated_ns);
        }
        Ok(())
    }

    /// The oldest batch, if it is over.
    pub fn poll(&mut self, now_ns: u64) -> DriverResult<Option<Retired>> {
        let Some(batch) = self.flying.front().copied() else {
            return Ok(None);
        };
        if !self.driver.event_done(batch.end)? {
            self.looked_ns = now_ns;
            return Ok(None);
        }
        let measured_ns = self.driver.event_elapsed_ns(batch.start, batch.end)?;
        self.flying.pop_front();
        self.free
            .extend(batch.own_start().into_iter().chain(self.passed.replace(batch.end)));
        self.pending_ns -= batch.estimated_ns;
        let max_ns = if batch.late { batch.estimated_ns } else { u64::MAX };
        let took_ns = measured_ns.min(max_ns);
        // It began when the one before ended, which may have been after the host stood still.
        let idle_ns = batch
            .stall_ns
            .min(batch.stall_until_ns.saturating_sub(self.head_from_ns));
        let actual_ns = took_ns.saturating_sub(idle_ns).max(took_ns.min(batch.estimated_ns));
        // It ended since the last look, about so long after it began; the next began then.
        self.head_from_ns = (self.head_from_ns + took_ns).clamp(self.looked_ns.min(now_ns), now_ns);
        Ok(Some(Retired {
            tenant: batch.tenant,
            estimated_ns: batch.estimated_ns,
            actual_ns,
            ended_ns: self.head_from_ns,
            parts: (!batch.late).then_some(batch.parts),
            stalled: idle_ns > 0,
        }))
    }

    /// Forgets everything in flight, after the device failed. The tenants of the batches forgotten, one entry each.
    pub fn reset(&mut self) -> Vec<u32> {
        let forgotten: Vec<Batch> = self.flying.drain(..).chain(self.open.take()).collect();
        let ends = forgotten.iter().map(|batch| batch.end).filter(|&end| end != 0);
        let starts = forgotten.iter().filter_map(Batch::own_start);
        for event in starts.chain(ends).chain(self.passed.take()) {
            let _ = self.driver.event_destroy(event); // of a device that failed: there is nothing else to do
        }
        self.pending_ns = 0;
        forgotten.iter().map(|batch| batch.tenant).collect()
    }
}
