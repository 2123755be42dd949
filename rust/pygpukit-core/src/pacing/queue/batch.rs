//! Who is given the device next, and how much of its line at once.

use super::Queue;
use crate::pacing::command::{Batch, Item};
use crate::pacing::settings::Pace;
use crate::pacing::tenant::Tenant;

/// Commands of a batch, so that a batch of very short ones ends, too.
const BATCH_COMMANDS: usize = 128;

impl Queue {
    /// A task that was cancelled and still has commands here.
    fn stopped(&self) -> Option<u32> {
        let stopped = |t: &Tenant| t.context.stopped() && !t.line.is_empty();
        let index = self.tenants.iter().position(|t| t.as_ref().is_some_and(stopped));
        index.map(|id| id as u32)
    }

    /// Commands that may be issued now, given what is unfinished on the device.
    pub fn take(&mut self, in_flight_ns: u64, flying: usize, now_ns: u64) -> Option<Batch> {
        while let Some(id) = self.fair.release(now_ns) {
            self.count_held(id, now_ns);
        }
        while let Some(id) = self.stopped() {
            // Whatever its limit: those who wait for its line to be empty must not wait for its turn.
            self.drop_line(id, now_ns);
            self.let_go(id, now_ns);
        }
        let Pace {
            span_ns,
            near_ns,
            min_flying,
        } = self.pace(now_ns);
        // Behind long work that cannot be cut one more turn would keep others waiting for as long again, and gains nothing.
        let plenty = in_flight_ns > near_ns.max(self.settings.direct_ns);
        let enough = plenty || (in_flight_ns > near_ns && flying > min_flying);
        if enough || flying >= self.settings.flying {
            return None;
        }
        let id = self.fair.pick()?;
        self.count_wait(id, now_ns);
        let (mut items, mut batch_ns): (Vec<Item>, u64) = (Vec::new(), 0);
        while let Some(first) = self.tenant(id).line.front() {
            let (work, parts_asked) = (first.work, first.parts_asked);
            let cost = self.estimate(work); // measured meanwhile, perhaps
            let wants = !parts_asked && self.wants_parts(work, cost);
            let tenant = self.tenant(id);
            let first = &mut tenant.line[0];
            if wants {
                first.parts_asked = true;
                first.command.want_parts();
            }
            let (part, cost) = first.next_part(cost, span_ns);
            let same = items.first().map_or(true, |i: &Item| i.work.stream == work.stream);
            let fits =
                items.is_empty() || (batch_ns + cost.ns <= span_ns && cost.known && items.len() < BATCH_COMMANDS);
            if !same || !fits {
                break;
            }
            batch_ns += cost.ns;
            items.extend(tenant.take_front(part, cost));
            if !cost.known || part.is_some() {
                break;
            }
        }
        let stream = items.first().map_or(0, |i| i.work.stream);
        let ending = items.iter().filter(|item| item.ends).count();
        self.tenant(id).issuing = Some((stream, ending as u32));
        let (share_ppm, limit_ppm) = self.tenant(id).context.shares_ppm();
        self.fair.reshare(id, share_ppm, limit_ppm, now_ns); // one that submits nothing tells nobody of a change
        self.fair.charge(id, batch_ns, now_ns);
        if !self.tenant(id).line.is_empty() {
            self.tenant(id).waits_from_ns = now_ns;
            self.fair.enqueue(id, now_ns, true);
            self.note_debt(id, now_ns);
        }
        Some(Batch { tenant: id, items })
    }

    /// Batches are long for one alone, and short while somebody may come who has nothing in its line and waits for all that is
    /// unfinished.
    pub fn pace(&self, now_ns: u64) -> Pace {
        let settings = &self.settings;
        let here = |t: &&Tenant| !t.left && t.seen_ns + settings.alone_ns >= now_ns;
        let (mut waiting, mut idle) = (0, 0);
        for tenant in self.tenants.iter().flatten() {
            waiting += u32::from(!tenant.line.is_empty());
            idle += u32::from(tenant.line.is_empty() && here(&tenant));
        }
        let (span_ns, near_ns, min_flying) = match (waiting, idle) {
            (_, 1..) => (settings.short_span_ns, settings.lead_ns, 0),
            (0 | 1, 0) => (settings.direct_span_ns, settings.direct_span_ns, 1),
            _ => (settings.span_ns, settings.span_ns, 1),
        };
        Pace {
            span_ns,
            near_ns,
            min_flying,
        }
    }
}
