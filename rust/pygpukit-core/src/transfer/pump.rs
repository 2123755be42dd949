//! What moves transfers along: one thread at a time ends what has landed and issues what may be.

use std::sync::PoisonError;
use std::time::Duration;

use super::books::{Next, Piece, Stop};
use super::{Direction, Engine};
use crate::counters::Counters;
use crate::driver::DriverResult;
use crate::ring::{kind, Event};

impl Engine {
    /// Ends what has landed and issues what may be. True while there is something to come back for.
    pub fn pump(&self) -> bool {
        let _one = self.pumping.lock().unwrap_or_else(PoisonError::into_inner);
        for direction in Direction::ALL {
            self.land(direction);
        }
        self.admit();
        for direction in Direction::ALL {
            while let Some(next) = self.next_piece(direction) {
                self.issue(direction, &next);
            }
        }
        let books = self.lock();
        !books.is_idle() || !books.waiting.is_empty()
    }

    fn next_piece(&self, direction: Direction) -> Option<Next> {
        let now = self.now();
        let mut books = self.lock();
        let ended = books.stats.sum(|s| s.completed);
        let next = books.next_piece(direction, &self.settings, now);
        if books.stats.sum(|s| s.completed) != ended {
            self.changed.notify_all(); // one of no bytes
        }
        next
    }

    fn land(&self, direction: Direction) {
        loop {
            let (piece, mark, stream) = {
                let books = self.lock();
                let lane = &books.lanes[direction as usize];
                let Some(&piece) = lane.pieces.front() else { return };
                (piece, lane.mark, lane.stream)
            };
            let how = match self.driver.event_done(piece.event) {
                Ok(false) => return,
                // Where the device cannot tell the time, the piece counts as no time.
                Ok(true) => Ok(self.driver.event_elapsed_ns(mark, piece.event).unwrap_or(0)),
                Err(error) => {
                    let _ = self.driver.stream_wait(stream); // the memory may be reused: nothing of the piece is under way
                    Err(error)
                }
            };
            let ok = how.is_ok();
            let mut books = self.lock();
            let lane = &mut books.lanes[direction as usize];
            lane.pieces.pop_front();
            lane.mark = piece.event;
            if lane.pieces.is_empty() {
                lane.mark = 0;
                books.spare_events.push(piece.event);
            }
            books.spare_events.push(mark);
            books.landed(direction, piece.transfer, piece.bytes, how, self.now());
            drop(books);
            self.changed.notify_all();
            if ok {
                self.record(direction, &piece);
            }
        }
    }

    /// Lets those go whose predecessors are over.
    fn admit(&self) {
        let waiting = self.lock().waiting.clone();
        for id in waiting {
            let events: Vec<u64> = {
                let books = self.lock();
                let Some(t) = books.get(id).filter(|_| books.comes_next(id)) else {
                    continue;
                };
                t.own_events.iter().chain(&t.after_events).copied().collect()
            };
            // The first that is not passed, or cannot be asked, decides.
            let unpassed = events.iter().map(|&event| self.driver.event_done(event));
            let undecided = unpassed.into_iter().find(|done| !matches!(done, Ok(true)));
            let mut books = self.lock();
            if !books.waiting.contains(&id) {
                continue; // cancelled meanwhile
            }
            match undecided {
                Some(Ok(_)) => {}
                None => books.make_ready(id),
                Some(Err(error)) => {
                    books.stop(id, Stop::Failed(error), self.now());
                    drop(books);
                    self.changed.notify_all();
                }
            }
        }
    }

    fn issue(&self, direction: Direction, next: &Next) {
        let issued = self.issue_piece(direction, next);
        let mut books = self.lock();
        books.issuing = None;
        match issued {
            Ok(event) => {
                let (transfer, bytes) = (next.transfer, next.bytes);
                books.lanes[direction as usize].pieces.push_back(Piece {
                    transfer,
                    peer: next.peer,
                    bytes,
                    event,
                });
                let all = books.get(transfer).is_some_and(|t| t.is_issued());
                drop(books);
                if all {
                    self.changed.notify_all();
                }
            }
            Err(error) => {
                books.landed(direction, next.transfer, next.bytes, Err(error), self.now());
                drop(books);
                self.changed.notify_all();
            }
        }
    }

    /// Enqueues a piece; the event behind it.
    fn issue_piece(&self, direction: Direction, next: &Next) -> DriverResult<u64> {
        let (stream, fresh) = {
            let books = self.lock();
            let lane = &books.lanes[direction as usize];
            (lane.stream, lane.mark == 0)
        };
        if fresh {
            let mark = self.recorded(stream)?;
            self.lock().lanes[direction as usize].mark = mark;
        }
        let (to, from, bytes) = (next.to, next.from, next.bytes);
        let copied = match direction {
            Direction::ToDevice => self.driver.copy_to_device(to, from, bytes, stream),
            Direction::ToHost => self.driver.copy_to_host(to, from, bytes, stream),
            Direction::OnDevice => self.driver.copy_on_device(to, from, bytes, stream),
            Direction::ToPeer => self.driver.copy_to_peer(next.peer, to, from, bytes, stream),
        };
        let event = copied.and_then(|()| {
            self.recorded(stream).inspect_err(|_| {
                let _ = self.driver.stream_wait(stream); // the copy may be under way
            })
        });
        if event.is_err() {
            let mut books = self.lock();
            let lane = &mut books.lanes[direction as usize];
            if lane.pieces.is_empty() {
                let mark = std::mem::take(&mut lane.mark);
                books.spare_events.push(mark);
            }
        }
        event
    }

    fn recorded(&self, stream: u64) -> DriverResult<u64> {
        let event = self.take_event()?;
        let recorded = self.driver.event_record(event, stream);
        recorded
            .map(|()| event)
            .inspect_err(|_| self.lock().spare_events.push(event))
    }

    fn record(&self, direction: Direction, piece: &Piece) {
        Counters::global().add(direction.counter(), piece.bytes);
        let event = Event {
            kind: kind::COPY,
            device: self.driver.device() as u16,
            a: piece.bytes,
            b: direction.record_number(),
            c: u64::try_from(piece.peer).unwrap_or(0),
            ..Event::default()
        };
        self.services.ring.push(self.now(), &event);
    }

    /// Pumps until the engine is closed and nothing is in flight.
    pub fn run(&self) {
        loop {
            self.lock().poked = false;
            let busy = self.pump();
            let books = self.lock();
            if books.poked {
                continue;
            }
            if books.closed && books.is_idle() {
                return;
            }
            let flying = !books.is_idle();
            if busy {
                let pause = self.settings.poll_ns * if flying { 1 } else { 4 };
                let waited = self.work.wait_timeout(books, Duration::from_nanos(pause));
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            } else {
                drop(self.work.wait(books).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }
}
