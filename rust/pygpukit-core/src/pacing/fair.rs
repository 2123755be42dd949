//! FairQueue: which of the waiting tenants comes next, by virtual time, and how long a limit holds one back.
//!
//! Virtual time is device time over weight, in ns. Each tenant has a start tag: the virtual time at which its next turn starts. The
//! least tag goes first, equal ones in order of arrival; the queue's own virtual time is the greatest tag that ever went. A limit is
//! kept as debt: after work of c ns a tenant limited to the fraction l gets no turn before c / l ns have passed since it began, but for
//! a burst: so much of what a limit left unused may be used later, so that a request that fits in it runs at full speed.
//!
//! A promise goes before a limit. Work that cannot be cut makes others wait for longer than a burst makes up for, and a limit that
//! equals a promise would then turn into less than the promise. So a tenant that had less than it was promised is not held, as far
//! back as one round of everybody's turns.

use super::heap::IndexedHeap;

/// A share of everything, in parts per million.
pub const WHOLE_PPM: u32 = 1_000_000;
/// The weight of tenants that asked for nothing, and the least there is.
const MIN_WEIGHT_PPM: u32 = 1000;

#[derive(Clone, Copy, Debug)]
struct Flow {
    weight_ppm: u32,
    limit_ppm: u32,
    /// What it was promised, and no more than its limit; 0 = nothing.
    promise_ppm: u32,
    tag: i128,
    /// Not before this time, on account of the limit.
    ready_ns: i128,
    /// Until then it had what it was promised.
    promised_ns: i128,
    /// The longest of its last turns.
    turn_ns: u64,
    arrival: u64,
}

impl Flow {
    /// Until when its limit holds it.
    fn free_ns(&self) -> i128 {
        match self.promise_ppm {
            0 => self.ready_ns,
            _ => self.ready_ns.min(self.promised_ns),
        }
    }

    fn is_held(&self, now_ns: u64) -> bool {
        self.limit_ppm < WHOLE_PPM && self.free_ns() > now_ns.into()
    }

    fn share(&mut self, share_ppm: u32, limit_ppm: u32) {
        self.weight_ppm = share_ppm.clamp(MIN_WEIGHT_PPM, WHOLE_PPM);
        self.limit_ppm = limit_ppm.clamp(1, WHOLE_PPM);
        self.promise_ppm = share_ppm.min(self.limit_ppm);
    }
}

#[derive(Debug, Default)]
pub struct FairQueue {
    flows: Vec<Flow>,
    /// By (tag, arrival).
    ready: IndexedHeap<(i128, u64)>,
    /// Held by their limit, by (time, arrival).
    held: IndexedHeap<(i128, u64)>,
    now: i128,
    /// Device time that a tenant may lag behind without losing it.
    lag_ns: u64,
    /// Device time that a limited tenant may be ahead of its limit, after it used less.
    burst_ns: u64,
    /// One turn of everybody.
    round_ns: u64,
    arrivals: u64,
}

fn over(ns: i128, ppm: u32) -> i128 {
    ns * i128::from(WHOLE_PPM) / i128::from(ppm)
}

impl FairQueue {
    pub fn new(lag_ns: u64, burst_ns: u64) -> FairQueue {
        FairQueue {
            lag_ns,
            burst_ns,
            ..FairQueue::default()
        }
    }

    /// A tenant under an id of the caller's, small and unused.
    pub fn add(&mut self, id: u32, share_ppm: u32, limit_ppm: u32) {
        let mut flow = Flow {
            weight_ppm: 0,
            limit_ppm: 0,
            promise_ppm: 0,
            tag: self.now,
            ready_ns: i64::MIN.into(), // it has its whole burst
            promised_ns: i64::MIN.into(),
            turn_ns: 0,
            arrival: 0,
        };
        flow.share(share_ppm, limit_ppm);
        let ids = id as usize + 1;
        if self.flows.len() < ids {
            self.flows.resize(ids, flow);
        }
        self.flows[id as usize] = flow;
        self.ready.reserve_ids(ids);
        self.held.reserve_ids(ids);
    }

    /// Other shares from now on: its tag stays, so that nothing is lost or saved up by the change.
    #[inline]
    pub fn reshare(&mut self, id: u32, share_ppm: u32, limit_ppm: u32, now_ns: u64) {
        let flow = &mut self.flows[id as usize];
        let before = (flow.weight_ppm, flow.limit_ppm, flow.promise_ppm);
        flow.share(share_ppm, limit_ppm);
        if before != (flow.weight_ppm, flow.limit_ppm, flow.promise_ppm) && self.waits(id) {
            self.place(id, now_ns);
        }
    }

    /// A turn took so long. Longer ones than there were of late are remembered for some more turns.
    pub fn took_turn(&mut self, id: u32, ns: u64) {
        let flow = &mut self.flows[id as usize];
        let turn_ns = ns.max(flow.turn_ns - flow.turn_ns / 8);
        self.round_ns = self.round_ns - flow.turn_ns + turn_ns;
        flow.turn_ns = turn_ns;
    }

    /// The tenant is gone.
    pub fn remove(&mut self, id: u32) {
        self.withdraw(id);
        self.round_ns -= std::mem::take(&mut self.flows[id as usize].turn_ns);
    }

    /// The tenant waits from now on. `backlogged`: it waited before, too. Else its tag is raised to the present but for the lag that it
    /// may keep, so that nothing is saved up by sleeping.
    pub fn enqueue(&mut self, id: u32, now_ns: u64, backlogged: bool) {
        if !backlogged {
            self.wake(id);
        }
        self.arrivals += 1;
        self.flows[id as usize].arrival = self.arrivals;
        self.place(id, now_ns);
    }

    #[inline]
    fn wake(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        flow.tag = flow.tag.max(self.now - over(self.lag_ns.into(), flow.weight_ppm));
    }

    /// Puts a waiting tenant where it belongs.
    fn place(&mut self, id: u32, now_ns: u64) {
        let flow = self.flows[id as usize];
        if flow.is_held(now_ns) {
            self.ready.remove(id);
            self.held.set(id, (flow.free_ns(), flow.arrival));
        } else {
            self.held.remove(id);
            self.ready.set(id, (flow.tag, flow.arrival));
        }
    }

    /// The tenant waits no more; false when it did not.
    pub fn withdraw(&mut self, id: u32) -> bool {
        self.ready.remove(id).is_some() | self.held.remove(id).is_some()
    }

    pub fn waits(&self, id: u32) -> bool {
        self.ready.contains(id) || self.held.contains(id)
    }

    /// Whether a limit holds the tenant back now.
    pub fn in_debt(&self, id: u32, now_ns: u64) -> bool {
        self.flows[id as usize].is_held(now_ns)
    }

    /// One tenant whose limit holds it back no more joins the others; None when there is none.
    pub fn release(&mut self, now_ns: u64) -> Option<u32> {
        let ((ready_ns, _), id) = self.held.peek()?;
        (ready_ns <= now_ns.into()).then(|| {
            self.place(id, now_ns);
            id
        })
    }

    /// When the next held tenant is released.
    pub fn next_release_ns(&self) -> Option<u64> {
        self.held.peek().map(|((ready_ns, _), _)| ready_ns as u64)
    }

    /// Who is next, now out of the queue.
    #[inline]
    pub fn pick(&mut self) -> Option<u32> {
        let ((tag, _), id) = self.ready.peek()?;
        self.ready.remove(id);
        self.now = self.now.max(tag);
        Some(id)
    }

    /// Charges work that begins now.
    #[inline]
    pub fn charge(&mut self, id: u32, ns: u64, now_ns: u64) {
        let flow = &mut self.flows[id as usize];
        flow.tag += over(ns.into(), flow.weight_ppm);
        let earliest = i128::from(now_ns) - over(self.burst_ns.into(), flow.limit_ppm);
        flow.ready_ns = flow.ready_ns.max(earliest) + over(ns.into(), flow.limit_ppm);
        if flow.promise_ppm > 0 {
            let round_ns = self.round_ns + self.round_ns / 4; // turns vary
            let earliest = i128::from(now_ns) - i128::from(round_ns);
            flow.promised_ns = flow.promised_ns.max(earliest) + over(ns.into(), flow.promise_ppm);
        }
    }

    /// Charges work of a tenant that has the device to itself, as if it had been queued and picked: its tag is raised to the present,
    /// and virtual time goes on. Else whoever comes later would be served alone until it had had as much.
    #[inline]
    pub fn charge_alone(&mut self, id: u32, ns: u64, now_ns: u64) {
        self.wake(id);
        self.now = self.now.max(self.flows[id as usize].tag);
        self.charge(id, ns, now_ns);
    }

    /// Charges work that was done without a turn and ends now. `backlogged`: it has work waiting or in flight.
    pub fn charge_done(&mut self, id: u32, ns: u64, now_ns: u64, backlogged: bool) {
        if !backlogged {
            self.wake(id);
        }
        self.charge(id, ns, now_ns.saturating_sub(ns));
        if self.waits(id) {
            self.place(id, now_ns);
        }
    }

    /// Corrects a charge by the difference between what the work took and its estimate.
    pub fn correct(&mut self, id: u32, difference_ns: i64, now_ns: u64) {
        let flow = &mut self.flows[id as usize];
        flow.tag += over(difference_ns.into(), flow.weight_ppm);
        flow.ready_ns += over(difference_ns.into(), flow.limit_ppm);
        if flow.promise_ppm > 0 {
            flow.promised_ns += over(difference_ns.into(), flow.promise_ppm);
        }
        if self.waits(id) {
            self.place(id, now_ns);
        }
    }
}
