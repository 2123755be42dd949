//! What a tenant submits: issued at once where it is alone, else deferred.

use super::{lock, Gate};
use crate::driver::DriverResult;
use crate::pacing::command::{Command, Refusal, Work};
use crate::pacing::cost::Cost;
use crate::pacing::line::Line;
use crate::pacing::queue::{Offer, Queue};
use crate::scheduler::TaskContext;
use std::sync::Arc;

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

impl Gate {
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
}
