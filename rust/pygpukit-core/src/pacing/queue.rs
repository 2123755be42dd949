//! Queue: what each tenant has submitted and the device has not been given, who comes next, and what each one got. No call waits.

use super::command::{Batch, Command, Item, Refusal, Work};
use super::cost::{Cost, CostTable};
use super::fair::{FairQueue, WHOLE_PPM};
use super::line::Retired;
use super::observer::Observer;
use super::settings::{Pace, Settings};
use super::tenant::{is_long, Tenant, TenantView, Waiting, SHARES_NS};
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

/// A tenant was held back by its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    pub number: u64,
    pub from_ns: u64,
    pub until_ns: u64,
}

/// Throttles remembered.
const THROTTLES: usize = 256;
/// Commands of a batch, so that a batch of very short ones ends, too.
const BATCH_COMMANDS: usize = 128;

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
    given_ns: u64,
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
            wanted: false,
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
        let all_ns = self.given_ns;
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

    /// A task that was cancelled and still has commands here.
    fn stopped(&self) -> Option<u32> {
        let stopped = |t: &Tenant| t.context.stopped() && !t.line.is_empty();
        let found = self.tenants.iter().position(|t| t.as_ref().is_some_and(stopped));
        found.map(|id| id as u32)
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
            too_few,
        } = self.pace(now_ns);
        // Behind long work that cannot be cut one more turn would keep others waiting for as long again, and gains nothing.
        let plenty = in_flight_ns > near_ns.max(self.settings.direct_ns);
        let enough = plenty || (in_flight_ns > near_ns && flying > too_few);
        if enough || flying >= self.settings.flying {
            return None;
        }
        let id = self.fair.pick()?;
        self.count_wait(id, now_ns);
        let (mut items, mut batch_ns): (Vec<Item>, u64) = (Vec::new(), 0);
        while let Some(first) = self.tenant(id).line.front() {
            let (work, wanted) = (first.work, first.wanted);
            let cost = self.estimate(work); // measured meanwhile, perhaps
            let wants = !wanted && self.wants_parts(work, cost);
            let tenant = self.tenant(id);
            let first = &mut tenant.line[0];
            if wants {
                first.wanted = true;
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
        let (span_ns, near_ns, too_few) = match (waiting, idle) {
            (_, 1..) => (settings.short_span_ns, settings.lead_ns, 0),
            (0 | 1, 0) => (settings.direct_span_ns, settings.direct_span_ns, 1),
            _ => (settings.span_ns, settings.span_ns, 1),
        };
        Pace {
            span_ns,
            near_ns,
            too_few,
        }
    }

    /// The batch that was taken is with the device, as far as nothing was refused. issued: commands of which nothing is left.
    /// is_flying: it will retire.
    pub fn issued(&mut self, id: u32, issued: u32, is_flying: bool, refusal: Option<Refusal>, now_ns: u64) {
        let tenant = self.tenant(id);
        let (_, taken) = tenant.issuing.take().unwrap_or_default();
        tenant.batches += u32::from(is_flying);
        for _ in 0..issued {
            tenant.context.add_launch();
        }
        self.note_asking(id, now_ns);
        self.deferred -= u64::from(taken);
        if let Some(refusal) = refusal {
            self.drop_line(id, now_ns);
            let replaced = self.tenant(id).refusal.replace(refusal);
            self.deferred += u64::from(replaced.is_none());
        }
        self.let_go(id, now_ns);
    }

    fn drop_line(&mut self, id: u32, now_ns: u64) {
        self.count_held(id, now_ns);
        self.fair.withdraw(id);
        let tenant = self.tenant(id);
        tenant.line_ns = 0;
        let dropped: Vec<Waiting> = tenant.line.drain(..).collect();
        self.deferred -= dropped.len() as u64;
        self.note_asking(id, now_ns);
    }

    /// A command of so much was issued directly, in a new batch or in the one before.
    pub fn charge_direct(&mut self, id: u32, ns: u64, is_first: bool, now_ns: u64) {
        self.fair.charge_alone(id, ns, now_ns);
        self.tenant(id).batches += u32::from(is_first);
        self.note_asking(id, now_ns);
    }

    pub fn count_launch(&mut self, id: u32) {
        self.tenant(id).context.add_launch();
    }

    /// Work that ran on the host in the device's stead.
    pub fn charge_host(&mut self, id: u32, ns: u64, now_ns: u64) {
        self.given_ns += ns;
        let tenant = self.tenant(id);
        let backlogged = tenant.is_busy();
        if !backlogged {
            tenant.context.add_asked_ns(ns, 0);
        }
        tenant.note_given(ns);
        (tenant.seen_ns, tenant.left) = (now_ns, false);
        tenant.context.add_launch();
        tenant.context.add_host_ns(ns);
        tenant.meter.add(now_ns.saturating_sub(ns), now_ns);
        self.fair.charge_done(id, ns, now_ns, backlogged);
        self.tell_shares(id, now_ns);
    }

    /// Books what a batch took.
    pub fn retire(&mut self, retired: Retired, now_ns: u64) {
        let (id, actual_ns) = (retired.tenant, retired.actual_ns);
        let difference = actual_ns as i64 - retired.estimated_ns as i64;
        self.fair.took_turn(id, actual_ns);
        self.fair.correct(id, difference, now_ns);
        if let Some(parts) = retired.parts {
            let parts = parts.into_iter().flatten();
            match retired.stalled {
                true => self.costs.note_stall(parts),
                false => self.costs.learn(parts, retired.estimated_ns, actual_ns),
            }
        }
        self.note_debt(id, now_ns);
        self.given_ns += actual_ns;
        let ended_ns = retired.ended_ns;
        let tenant = self.tenant(id);
        tenant.batches -= 1;
        tenant.context.add_gpu_ns(actual_ns);
        tenant.note_given(actual_ns);
        tenant.meter.add(ended_ns.saturating_sub(actual_ns), ended_ns);
        self.note_asking(id, ended_ns);
        self.tell_shares(id, now_ns);
        self.let_go(id, now_ns);
    }

    /// A batch was forgotten after the device failed.
    pub fn forget_batch(&mut self, id: u32, now_ns: u64) {
        self.tenant(id).batches -= 1;
        self.note_asking(id, now_ns);
        self.let_go(id, now_ns);
    }

    /// The task submits nothing more. True once all that it submitted is measured.
    pub fn leave(&mut self, id: u32, now_ns: u64) -> bool {
        self.tenant(id).left = true;
        if self.tenant(id).context.stopped() {
            self.drop_line(id, now_ns);
        }
        self.let_go(id, now_ns)
    }

    fn let_go(&mut self, id: u32, now_ns: u64) -> bool {
        let mut gone = self.tenants[id as usize].take_if(|tenant| tenant.left && !tenant.is_busy());
        if let Some(tenant) = &mut gone {
            if let Some(observer) = &self.observer {
                let number = tenant.context.number;
                if let Some(stretch) = tenant.throttling.tell() {
                    observer.throttled(number, &stretch);
                }
                observer.shares(number, now_ns, tenant.meter.shares_ppm(now_ns));
            }
            self.ids.remove(&tenant.context.number);
            self.fair.remove(id);
            self.deferred -= u64::from(tenant.refusal.is_some());
        }
        gone.is_some()
    }

    /// When a limit holds somebody back no more.
    pub fn next_release_ns(&self) -> Option<u64> {
        self.fair.next_release_ns()
    }

    fn note_debt(&mut self, id: u32, now_ns: u64) {
        if self.fair.waits(id) && self.fair.in_debt(id, now_ns) {
            self.tenant(id).throttling.begin(now_ns);
        }
    }

    /// Once a period, at the first of its work in it that is measured.
    fn tell_shares(&mut self, id: u32, now_ns: u64) {
        let period = now_ns / SHARES_NS;
        if period == std::mem::replace(&mut self.tenant(id).told, period) {
            return;
        }
        if let (Some(observer), Some(tenant)) = (&self.observer, &self.tenants[id as usize]) {
            observer.shares(tenant.context.number, now_ns, tenant.meter.shares_ppm(now_ns));
        }
    }

    /// Whether its limit holds a task back, and since when that is so, 0 = ever; None for one that is not here.
    pub fn throttled(&self, number: u64, now_ns: u64) -> Option<(bool, u64)> {
        let tenant = self.tenants[self.find(number)? as usize].as_ref()?;
        Some(tenant.throttling.state(now_ns))
    }

    /// Tells of what throttled tenants so far, however short a time ago, for somebody who looks now.
    pub fn tell_throttles(&mut self) {
        let Some(observer) = &self.observer else { return };
        for tenant in self.tenants.iter_mut().flatten() {
            if let Some(stretch) = tenant.throttling.tell() {
                observer.throttled(tenant.context.number, &stretch);
            }
        }
    }

    /// Books the time since it was held by its limit.
    fn count_held(&mut self, id: u32, now_ns: u64) {
        let tenant = self.tenant(id);
        if let Some((from_ns, over)) = tenant.throttling.end(now_ns) {
            tenant.context.add_throttle();
            let since_ns = from_ns.max(tenant.booked_ns);
            tenant.context.add_throttled_ns(now_ns.saturating_sub(since_ns));
            tenant.waits_from_ns = now_ns;
            let number = tenant.context.number;
            if let (Some(observer), Some(stretch)) = (&self.observer, over) {
                observer.throttled(number, &stretch);
            }
            if self.throttles.len() == THROTTLES {
                self.throttles.pop_front();
            }
            self.throttles.push_back(Throttle {
                number,
                from_ns,
                until_ns: now_ns,
            });
        }
    }

    /// Books the time that its first command waited.
    fn count_wait(&mut self, id: u32, now_ns: u64) {
        self.count_held(id, now_ns);
        let tenant = self.tenant(id);
        tenant
            .context
            .add_waited_ns(now_ns.saturating_sub(tenant.waits_from_ns));
    }

    /// What everybody got, and who was throttled, oldest first. Books what still waits, so that one that waits for ever is seen to.
    pub fn view(&mut self, now_ns: u64) -> (Vec<TenantView>, Vec<Throttle>) {
        let all_ns = self.given_ns;
        self.tenants
            .iter_mut()
            .flatten()
            .for_each(|tenant| tenant.book_wait(now_ns, all_ns));
        let tenants = self.tenants.iter().flatten().map(|tenant| TenantView {
            number: tenant.context.number,
            gpu_ns: tenant.context.gpu_ns(),
            joined_ns: tenant.joined_ns,
            shares_ppm: tenant.meter.shares_ppm(now_ns),
            waits: !tenant.line.is_empty(),
        });
        (tenants.collect(), self.throttles.iter().copied().collect())
    }
}
