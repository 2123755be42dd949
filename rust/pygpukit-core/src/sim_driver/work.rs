//! Simulated streams and events: when work is done in virtual time, and what is ordered after what.
//!
//! Time decides what an event query answers and when bytes change. Order is kept apart from time, as vector clocks: two accesses to
//! the same bytes must be ordered by streams, events or host waits, however the times happen to fall.

use std::collections::{BTreeMap, HashMap, HashSet};

/// For each stream, the number of its last operation that is known to be over.
#[derive(Clone, Default)]
pub(super) struct Order(HashMap<u64, u64>);

impl Order {
    fn join(&mut self, other: &Order) {
        for (&stream, &number) in &other.0 {
            let known = self.0.entry(stream).or_default();
            *known = (*known).max(number);
        }
    }

    fn covers(&self, op: &Op) -> bool {
        self.0.get(&op.stream).is_some_and(|&number| number >= op.number)
    }
}

/// What an operation does to bytes when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Fill(u8),
    ToHost(u64),
    FromHost(u64),
    FromDevice(u64),
}

#[derive(Clone)]
pub(super) struct Op {
    stream: u64,
    number: u64,
    pub address: u64,
    pub bytes: u64,
    pub effect: Effect,
}

impl Op {
    fn touches(&self, address: u64, bytes: u64) -> bool {
        self.address < address + bytes && address < self.address + self.bytes
    }

    fn host_range(&self) -> Option<u64> {
        match self.effect {
            Effect::ToHost(host) | Effect::FromHost(host) => Some(host),
            _ => None,
        }
    }

    fn writes(&self) -> bool {
        matches!(
            self.effect,
            Effect::Fill(_) | Effect::FromHost(_) | Effect::FromDevice(_)
        )
    }
}

#[derive(Default)]
struct Stream {
    end: u64,
    order: Order,
    count: u64,
}

#[derive(Clone, Default)]
struct Mark {
    end: u64,
    order: Order,
}

#[derive(Default)]
pub(super) struct Work {
    pub now: u64,
    streams: HashMap<u64, Stream>,
    events: HashMap<u64, Option<Mark>>,
    host: Order,
    next_event: u64,
    created: HashSet<u64>,
    serial: u64,
    /// Operations whose bytes have not changed yet, by (end, order of arrival).
    due: BTreeMap<(u64, u64), Op>,
    /// Operations that the host does not know to be over.
    unseen: Vec<Op>,
}

impl Work {
    /// Enqueues an operation; a sentence when it is not ordered after an earlier one on the same bytes.
    pub fn enqueue(
        &mut self,
        stream: u64,
        address: u64,
        bytes: u64,
        effect: Effect,
        duration: u64,
    ) -> Result<(), String> {
        let s = self.streams.entry(stream).or_default();
        s.order.join(&self.host);
        s.count += 1;
        let op = Op {
            stream,
            number: s.count,
            address,
            bytes,
            effect,
        };
        let racing =
            |other: &&Op| other.touches(address, bytes) && (op.writes() || other.writes()) && !s.order.covers(other);
        let race = self.unseen.iter().find(racing).map(|other| {
            let (a, b) = (other.effect, other.stream);
            format!("{effect:?} on stream {stream} at {address:#x} is not ordered after {a:?} on stream {b}")
        });
        s.order.0.insert(stream, op.number);
        s.end = s.end.max(self.now) + duration;
        self.serial += 1;
        self.due.insert((s.end, self.serial), op.clone());
        self.unseen.push(op);
        race.map_or(Ok(()), Err)
    }

    /// The next operation that is over by now.
    pub fn next_due(&mut self) -> Option<Op> {
        let first = self.due.first_entry()?;
        (first.key().0 <= self.now).then(|| first.remove())
    }

    /// Work on a range that the host does not know to be over.
    pub fn unfinished(&self, address: u64, bytes: u64) -> bool {
        self.unseen.iter().any(|op| op.touches(address, bytes))
    }

    pub fn unfinished_host(&self, host: u64) -> bool {
        self.unseen.iter().any(|op| op.host_range() == Some(host))
    }

    fn seen(&mut self, order: &Order) {
        self.host.join(order);
        let host = &self.host;
        self.unseen.retain(|op| !host.covers(op));
    }

    /// The host waits: time goes on to the end of the stream's work.
    pub fn wait(&mut self, stream: u64) {
        let Some(s) = self.streams.get(&stream) else { return };
        let (end, order) = (s.end, s.order.clone());
        self.now = self.now.max(end);
        self.seen(&order);
    }

    pub fn wait_all(&mut self) {
        let streams: Vec<u64> = self.streams.keys().copied().collect();
        streams.into_iter().for_each(|stream| self.wait(stream));
    }

    /// Streams need not be created here; those that are have numbers that nobody else chooses.
    pub fn create_stream(&mut self) -> u64 {
        self.serial += 1;
        let stream = (1 << 32) + self.serial;
        self.created.insert(stream);
        stream
    }

    pub fn destroy_stream(&mut self, stream: u64) -> bool {
        self.created.remove(&stream)
    }

    pub fn created_streams(&self) -> usize {
        self.created.len()
    }

    pub fn events(&self) -> usize {
        self.events.len()
    }

    pub fn create_event(&mut self) -> u64 {
        self.next_event += 1;
        self.events.insert(self.next_event, None);
        self.next_event
    }

    pub fn destroy_event(&mut self, event: u64) -> bool {
        self.events.remove(&event).is_some()
    }

    pub fn record(&mut self, event: u64, stream: u64) -> bool {
        let host = &self.host;
        let s = self.streams.entry(stream).or_default();
        s.order.join(host);
        let mark = Mark {
            end: s.end.max(self.now),
            order: s.order.clone(),
        };
        self.events.get_mut(&event).map(|e| *e = Some(mark)).is_some()
    }

    /// None for an unknown event; an event never recorded is done.
    pub fn done(&mut self, event: u64) -> Option<bool> {
        let Some(mark) = self.events.get(&event)?.clone() else {
            return Some(true);
        };
        let done = mark.end <= self.now;
        if done {
            self.seen(&mark.order);
        }
        Some(done)
    }

    /// The host waits for an event: time goes on to its end. False for an unknown one.
    pub fn wait_event(&mut self, event: u64) -> bool {
        let Some(mark) = self.events.get(&event) else {
            return false;
        };
        if let Some(mark) = mark.clone() {
            self.now = self.now.max(mark.end);
            self.seen(&mark.order);
        }
        true
    }

    /// When an event was passed; None before, or when it was never recorded.
    pub fn passed_ns(&self, event: u64) -> Option<u64> {
        let mark = self.events.get(&event)?.as_ref()?;
        (mark.end <= self.now).then_some(mark.end)
    }

    /// No work of the stream is unfinished. The host learns nothing about its order.
    pub fn idle(&self, stream: u64) -> bool {
        self.streams.get(&stream).map_or(true, |s| s.end <= self.now)
    }

    pub fn stream_wait(&mut self, stream: u64, event: u64) -> bool {
        let Some(mark) = self.events.get(&event) else {
            return false;
        };
        if let Some(mark) = mark {
            let s = self.streams.entry(stream).or_default();
            s.end = s.end.max(mark.end);
            s.order.join(&mark.order);
        }
        true
    }
}
