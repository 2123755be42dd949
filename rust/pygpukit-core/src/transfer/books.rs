//! The books of an engine: who waits, who is next, what is in flight. No device call is made here.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};

use super::{Direction, Info, Request, Settings, State, Stats};
use crate::driver::DriverError;

pub(super) enum Stop {
    Cancelled,
    Failed(DriverError),
}

pub(super) struct Transfer {
    pub info: Info,
    /// Bytes of pieces that were taken to be issued.
    pub taken: u64,
    /// Pieces that were taken and have not landed.
    pieces: u32,
    stop: Option<Stop>,
    /// Events of its own that come first, then those that others keep.
    pub own_events: Vec<u64>,
    pub after_events: Vec<u64>,
    after: Vec<u64>,
    keep: Option<Box<dyn Send>>,
    report: bool,
}

impl Transfer {
    /// No further piece will be taken.
    pub fn is_issued(&self) -> bool {
        self.taken == self.info.bytes || self.stop.is_some()
    }
}

/// A piece on its way. Pieces of a lane land in their order.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub transfer: u64,
    pub peer: i32,
    pub bytes: u64,
    pub event: u64,
}

/// What is to be issued.
pub(super) struct Next {
    pub transfer: u64,
    pub peer: i32,
    pub to: u64,
    pub from: u64,
    pub bytes: u64,
}

#[derive(Default)]
pub(super) struct Lane {
    pub stream: u64,
    ready: BTreeSet<(Reverse<i32>, u64)>,
    pub pieces: VecDeque<Piece>,
    /// The event that the first of the pieces began after; 0 when none is in flight.
    pub mark: u64,
    in_flight: u64,
}

#[derive(Default)]
pub(super) struct Books {
    transfers: HashMap<u64, Transfer>,
    pub lanes: [Lane; 4],
    /// Those that come after something, in the order of submission.
    pub waiting: Vec<u64>,
    /// Whose piece is being issued at this moment.
    pub issuing: Option<u64>,
    pub spare_events: Vec<u64>,
    pub stats: Stats,
    pub closed: bool,
    /// Something changed that the pump has not seen.
    pub poked: bool,
    /// Ended transfers that are to be told.
    pub ended: VecDeque<Info>,
    last: u64,
}

impl Books {
    pub fn add(&mut self, request: Request, own_events: Vec<u64>, now_ns: u64) -> u64 {
        self.last += 1;
        let id = self.last;
        let waits = !(own_events.is_empty() && request.after_events.is_empty() && request.after.is_empty());
        let info = Info {
            id,
            direction: request.direction,
            peer: request.peer,
            to: request.to,
            from: request.from,
            bytes: request.bytes,
            priority: request.priority,
            state: State::Queued,
            landed_bytes: 0,
            queued_ns: now_ns,
            started_ns: 0,
            ended_ns: 0,
            device_ns: 0,
            error: None,
        };
        let transfer = Transfer {
            info,
            taken: 0,
            pieces: 0,
            stop: None,
            own_events,
            after_events: request.after_events,
            after: request.after,
            keep: request.keep,
            report: request.report,
        };
        self.stats.queued += 1;
        self.stats.directions[request.direction as usize].submitted += 1;
        self.transfers.insert(id, transfer);
        if waits {
            self.waiting.push(id);
        } else {
            self.make_ready(id);
        }
        id
    }

    pub fn get(&self, id: u64) -> Option<&Transfer> {
        self.transfers.get(&id)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Transfer> {
        self.transfers.get_mut(&id)
    }

    /// By id.
    pub fn all(&self) -> Vec<Info> {
        let mut all: Vec<Info> = self.transfers.values().map(|t| t.info.clone()).collect();
        all.sort_unstable_by_key(|info| info.id);
        all
    }

    /// Queued transfers in the order in which they would go if nothing came first.
    pub fn queued(&self) -> Vec<Info> {
        let mut all = self.all();
        all.retain(|info| info.state == State::Queued);
        all.sort_by_key(|info| Reverse(info.priority));
        all
    }

    /// Every transfer that it comes after has ended.
    pub fn comes_next(&self, id: u64) -> bool {
        let ended = |other: &u64| self.get(*other).map_or(true, |t| t.info.state.is_terminal());
        self.get(id).is_some_and(|t| t.after.iter().all(ended))
    }

    /// It no longer waits for anything.
    pub fn make_ready(&mut self, id: u64) {
        self.waiting.retain(|&other| other != id);
        if let Some(t) = self.transfers.get_mut(&id) {
            self.spare_events.append(&mut t.own_events);
            self.lanes[t.info.direction as usize]
                .ready
                .insert((Reverse(t.info.priority), id));
        }
    }

    fn enter(&mut self, id: u64, state: State, now_ns: u64) {
        let Some(t) = self.transfers.get_mut(&id) else { return };
        let from = t.info.state;
        debug_assert!(from.allows(state), "transfer {id}: {from:?} to {state:?}");
        if state.is_terminal() {
            t.keep = None; // who sees the end finds it gone
        }
        t.info.state = state;
        match from {
            State::Queued => self.stats.queued -= 1,
            _ => self.stats.in_progress -= 1,
        }
        if state == State::InProgress {
            t.info.started_ns = now_ns;
            self.stats.in_progress += 1;
            self.stats.begun(t.info.direction, now_ns - t.info.queued_ns);
            return;
        }
        t.info.ended_ns = now_ns;
        self.stats.ended(&t.info);
        self.spare_events.append(&mut t.own_events);
        if t.report {
            self.ended.push_back(t.info.clone());
        }
    }

    /// Takes the next piece of a lane, if one may be issued now.
    pub fn next_piece(&mut self, direction: Direction, settings: &Settings, now_ns: u64) -> Option<Next> {
        let bounds = settings.lane(direction);
        loop {
            let full = self.stats.in_progress as usize >= settings.max_in_progress;
            let lane = &self.lanes[direction as usize];
            let may_go = |id: u64| !full || self.transfers[&id].info.state == State::InProgress;
            let &(rank, id) = lane.ready.iter().find(|(_, id)| may_go(*id))?;
            let t = &self.transfers[&id];
            let bytes = (t.info.bytes - t.taken).min(bounds.chunk_bytes);
            if lane.in_flight + bytes > bounds.in_flight_bytes {
                return None;
            }
            if t.info.state == State::Queued {
                self.enter(id, State::InProgress, now_ns);
            }
            let (t, lane) = (self.transfers.get_mut(&id)?, &mut self.lanes[direction as usize]);
            let (to, from, peer) = (t.info.to + t.taken, t.info.from + t.taken, t.info.peer);
            t.taken += bytes;
            if t.taken == t.info.bytes {
                lane.ready.remove(&(rank, id));
            }
            if bytes == 0 {
                self.conclude(id, now_ns);
                continue;
            }
            t.pieces += 1;
            lane.in_flight += bytes;
            let peak = &mut self.stats.directions[direction as usize].peak_in_flight_bytes;
            *peak = lane.in_flight.max(*peak);
            self.issuing = Some(id);
            let transfer = id;
            return Some(Next {
                transfer,
                peer,
                to,
                from,
                bytes,
            });
        }
    }

    /// A piece is not in flight any more: it took so long on the device, or it failed.
    pub fn landed(&mut self, direction: Direction, id: u64, bytes: u64, how: Result<u64, DriverError>, now_ns: u64) {
        self.lanes[direction as usize].in_flight -= bytes;
        let Some(t) = self.transfers.get_mut(&id) else { return };
        t.pieces -= 1;
        match how {
            Ok(device_ns) => {
                t.info.landed_bytes += bytes;
                t.info.device_ns += device_ns;
                let stats = &mut self.stats.directions[direction as usize];
                stats.bytes += bytes;
                stats.busy_ns += device_ns;
                self.conclude(id, now_ns);
            }
            Err(error) => self.stop(id, Stop::Failed(error), now_ns),
        }
    }

    /// Nothing more of it is issued. The first reason stands, but a failure is told even of one that was cancelled.
    pub fn stop(&mut self, id: u64, stop: Stop, now_ns: u64) {
        let Some(t) = self.transfers.get_mut(&id) else { return };
        if !matches!(t.stop, Some(Stop::Failed(_))) {
            t.stop = Some(stop);
        }
        let rank = (Reverse(t.info.priority), id);
        self.lanes[t.info.direction as usize].ready.remove(&rank);
        self.waiting.retain(|&other| other != id);
        self.conclude(id, now_ns);
    }

    /// Ends it if nothing of it is in flight and nothing will be.
    fn conclude(&mut self, id: u64, now_ns: u64) {
        let Some(t) = self.transfers.get_mut(&id) else { return };
        if t.pieces > 0 || !t.is_issued() {
            return;
        }
        let state = match t.stop.take() {
            Some(Stop::Failed(error)) => {
                t.info.error = Some(error);
                State::Failed
            }
            Some(Stop::Cancelled) => State::Cancelled,
            None => State::Completed,
        };
        self.enter(id, state, now_ns);
    }

    /// False when it had ended, when all of it is issued, or when it is unknown.
    pub fn cancel(&mut self, id: u64, now_ns: u64) -> bool {
        let possible = self.get(id).is_some_and(|t| {
            let untouched = t.info.state == State::Queued;
            !t.info.state.is_terminal() && t.stop.is_none() && (untouched || t.taken < t.info.bytes)
        });
        if possible {
            self.stop(id, Stop::Cancelled, now_ns);
        }
        possible
    }

    /// Nobody will ask for it again. False unless it had ended.
    pub fn forget(&mut self, id: u64) -> bool {
        let ended = self.get(id).is_some_and(|t| t.info.state.is_terminal());
        if ended {
            self.transfers.remove(&id);
        }
        ended
    }

    pub fn forget_ended(&mut self) {
        self.transfers.retain(|_, t| !t.info.state.is_terminal());
    }

    pub fn is_idle(&self) -> bool {
        self.lanes.iter().all(|lane| lane.pieces.is_empty()) && self.issuing.is_none()
    }
}
