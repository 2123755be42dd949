//! Queue: what each tenant has submitted and the device has not been given, who comes next, and what each one got. No call waits.

mod account;
mod batch;
mod report;

pub use report::Throttle;

use super::command::{Command, Refusal, Work};
use super::cost::{Cost, CostTable};
use super::fair::{FairQueue, WHOLE_PPM};
use super::observer::Observer;
use super::settings::Settings;
use super::tenant::{is_long, Tenant, Waiting};
use crate::scheduler::TaskContext;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What becomes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Nobody else wants the device: issue it now.
    Direct,
    /// Push it.
    Defer,
    /// Wait for room, then offer it again.
    Full,
    /// The task was cancelled or expired.
    Stopped,
    /// An earlier command was refused; reported once.
    Refused(Refusal),
}

#[derive(Default)]
pub struct Queue {
    settings: Settings,
    fair: FairQueue,
    costs: CostTable,
    tenants: Vec<Option<Tenant>>,
    ids: HashMap<u64, u32>,
    throttles: VecDeque<Throttle>,
    observer: Option<Box<dyn Observer>>,
    /// Commands deferred and not yet issued or dropped, and refusals not yet reported.
    deferred: u64,
    /// Device time that was given to all, as far as it is measured.
    granted_ns: u64,
}

impl Queue {
    pub fn new(settings: Settings) -> Queue {
        Queue {
            settings,
            fair: FairQueue::new(settings.lag_ns, settings.burst_ns),
            ..Queue::default()
        }
    }

    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// The id of a task here; new ones join. Its shares are from now on what its context says.
    pub fn id(&mut self, context: &Arc<TaskContext>, now_ns: u64) -> u32 {
        let (share_ppm, limit_ppm) = context.shares_ppm();
        if let Some(&id) = self.ids.get(&context.number) {
            self.fair.reshare(id, share_ppm, limit_ppm, now_ns);
            return id;
        }
        let free = self.tenants.iter().position(Option::is_none);
        let id = free.unwrap_or_else(|| {
            self.tenants.push(None);
            self.tenants.len() - 1
        });
        self.tenants[id] = Some(Tenant::new(context.clone(), now_ns));
        self.fair.add(id as u32, share_ppm, limit_ppm);
        self.ids.insert(context.number, id as u32);
        id as u32
    }

    pub fn find(&self, number: u64) -> Option<u32> {
        self.ids.get(&number).copied()
    }

    fn tenant(&mut self, id: u32) -> &mut Tenant {
        self.tenants[id as usize]
            .as_mut()
            .expect("ids are given out for tenants")
    }

    /// Commands that the device was not given yet, and refusals that were not reported yet.
    pub fn deferred(&self) -> u64 {
        self.deferred
    }

    /// What becomes of a command that the tenant's thread has now.
    pub fn offer(&mut self, id: u32, work: Work, now_ns: u64) -> Offer {
        let settings = self.settings;
        let tenant = self.tenant(id);
        (tenant.seen_ns, tenant.left) = (now_ns, false);
        if tenant.context.stopped() {
            self.drop_line(id, now_ns);
            return Offer::Stopped;
        }
        if let Some(refusal) = tenant.refusal.take() {
            self.deferred -= 1;
            return Offer::Refused(refusal);
        }
        let first = tenant.line.is_empty() && tenant.issuing.is_none();
        if tenant.line_ns >= tenant.bound_ns(&settings) || tenant.line.len() >= settings.line_commands {
            return Offer::Full;
        }
        if self.has_deferred_elsewhere(id, work.stream) {
            return Offer::Full; // a stream is in one line at a time, so that its order stays
        }
        let away = |t: &Tenant| !t.is_busy() && (t.left || t.seen_ns + settings.alone_ns < now_ns);
        if !first || !self.others(id).all(away) {
            return Offer::Defer;
        }
        // What nobody has measured could be any number of times over a limit before it is seen.
        if self.is_limited(id) && (self.fair.in_debt(id, now_ns) || !self.estimate(work).known) {
            return Offer::Defer;
        }
        Offer::Direct
    }

    fn others(&self, id: u32) -> impl Iterator<Item = &Tenant> {
        let others = self
            .tenants
            .iter()
            .enumerate()
            .filter(move |&(other, _)| other != id as usize);
        others.filter_map(|(_, tenant)| tenant.as_ref())
    }

    /// Whether a limit is set that could hold the tenant back.
    pub fn is_limited(&self, id: u32) -> bool {
        let tenant = self.tenants[id as usize].as_ref();
        tenant.is_some_and(|tenant| tenant.context.limit_ppm() < WHOLE_PPM)
    }

    /// Whether another tenant has deferred commands for the stream.
    pub fn has_deferred_elsewhere(&self, id: u32, stream: u64) -> bool {
        self.others(id).any(|t| t.uses(stream))
    }

    /// Defers a command that was offered.
    pub fn push(&mut self, id: u32, work: Work, command: Arc<dyn Command>, now_ns: u64) {
        let cost = self.estimate(work);
        self.deferred += 1;
        let tenant = self.tenant(id);
        let first = tenant.line.is_empty();
        tenant.line.push_back(Waiting {
            work,
            ns: cost.ns,
            command,
            next: 0,
            parts_asked: false,
            _counted: tenant.context.waiting(work.kind),
        });
        tenant.line_ns += cost.ns;
        tenant.pushed += 1;
        tenant.context.add_paced();
        if first {
            tenant.waits_from_ns = now_ns;
            // Nothing of it waited while others were picked, also where the device is still busy with it.
            self.fair.enqueue(id, now_ns, false);
            self.note_debt(id, now_ns);
        }
        self.note_asking(id, now_ns);
    }

    fn note_asking(&mut self, id: u32, at_ns: u64) {
        let all_ns = self.granted_ns;
        self.tenant(id).note_asking(at_ns, all_ns);
    }

    pub fn estimate(&mut self, work: Work) -> Cost {
        self.costs.estimate(work.name, work.size, self.settings.guess_ns)
    }

    /// Whether the work keeps a tenant that comes now from the device for longer than its turn, as it cannot come in parts yet.
    pub fn wants_parts(&self, work: Work, cost: Cost) -> bool {
        work.wave == 0 && work.size > 1 && is_long(cost, self.settings.short_span_ns)
    }

    /// Whether the tenant's thread may go on to fill its line.
    pub fn has_room(&self, id: u32) -> bool {
        let settings = &self.settings;
        self.tenants[id as usize].as_ref().map_or(true, |t| {
            t.context.stopped()
                || t.refusal.is_some()
                || (t.line_ns <= t.bound_ns(settings) / 2 && t.line.len() <= settings.line_commands / 2)
        })
    }

    /// Whether commands for the stream, or for any with None, are deferred.
    pub fn has_deferred(&self, stream: Option<u64>) -> bool {
        let mut tenants = self.tenants.iter().flatten();
        tenants.any(|t| stream.map_or(!t.line.is_empty() || t.issuing.is_some(), |stream| t.uses(stream)))
    }

    /// What is deferred now for the stream, or for any with None: per task how many of its commands must be gone until it is not. What
    /// comes later does not count, or a task that never stops would keep others waiting for ever.
    pub fn mark(&self, stream: Option<u64>) -> Vec<(u64, u64)> {
        let waiting = |t: &&Tenant| stream.map_or(!t.line.is_empty() || t.issuing.is_some(), |stream| t.uses(stream));
        let tenants = self.tenants.iter().flatten().filter(waiting);
        tenants.map(|t| (t.context.number, t.pushed)).collect()
    }

    /// Whether all that was marked is gone.
    pub fn is_past(&self, mark: &[(u64, u64)]) -> bool {
        mark.iter().all(|&(number, pushed)| {
            let tenant = self.find(number).and_then(|id| self.tenants[id as usize].as_ref());
            tenant.map_or(true, |t| t.gone() >= pushed)
        })
    }

    /// The refusal of a command for the stream, reported once.
    pub fn take_refusal(&mut self, stream: u64) -> Option<Refusal> {
        let mut tenants = self.tenants.iter_mut().flatten();
        let refusal = tenants.find_map(|t| t.refusal.take_if(|r| r.stream == stream))?;
        self.deferred -= 1;
        Some(refusal)
    }
}
