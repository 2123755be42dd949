//! The dispatcher: books what is over, issues what was deferred, and sleeps in between.

use super::{lock, Gate};
use crate::counters::{Counter, Counters};
use crate::pacing::command::{Batch, Refusal};
use crate::pacing::line::Line;
use crate::pacing::queue::Queue;
use crate::sync::waits::{sleep, yield_now};
use std::time::Duration;

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

/// How long the dispatcher waits at most while the device works, which may be done sooner than estimated.
const LONGEST_WAIT_NS: u64 = 100_000;
/// A sleep takes about so much longer than asked for, where the thread's timers are exact; a wait that is shorter spins.
const SLEEP_MORE_NS: u64 = 30_000;
/// So soon a task that was cancelled meanwhile is seen.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// How long the dispatcher stays awake with nothing to do.
const LINGER_NS: u64 = 200_000;

impl Gate {
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
        let min_ns = if line.has_unmeasured() {
            self.settings.direct_ns
        } else {
            0
        };
        let in_flight_ns = line.in_flight_ns(now).max(min_ns);
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
        let longest = Duration::from_nanos(ns - SLEEP_MORE_NS).min(LONGEST_PAUSE);
        if line.is_empty() {
            let queue = lock(&self.queue); // all are held by limits; others may come
            let _awake = self.work.wait_timeout(queue, longest);
        } else {
            sleep(longest);
        }
    }
}
