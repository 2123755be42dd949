//! Who is held back by its limit and for how long, who waits, and what the observer is told of it.

use super::Queue;
use crate::pacing::tenant::{TenantView, SHARES_NS};

/// A tenant was held back by its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    pub number: u64,
    pub from_ns: u64,
    pub until_ns: u64,
}

/// Throttles remembered.
const THROTTLES: usize = 256;

impl Queue {
    /// When a limit holds somebody back no more.
    pub fn next_release_ns(&self) -> Option<u64> {
        self.fair.next_release_ns()
    }

    pub(super) fn note_debt(&mut self, id: u32, now_ns: u64) {
        if self.fair.waits(id) && self.fair.in_debt(id, now_ns) {
            self.tenant(id).throttling.begin(now_ns);
        }
    }

    /// Once a period, at the first of its work in it that is measured.
    pub(super) fn tell_shares(&mut self, id: u32, now_ns: u64) {
        let period = now_ns / SHARES_NS;
        if period == std::mem::replace(&mut self.tenant(id).reported, period) {
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
    pub(super) fn count_held(&mut self, id: u32, now_ns: u64) {
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
    pub(super) fn count_wait(&mut self, id: u32, now_ns: u64) {
        self.count_held(id, now_ns);
        let tenant = self.tenant(id);
        tenant
            .context
            .add_waited_ns(now_ns.saturating_sub(tenant.waits_from_ns));
    }

    /// What everybody got, and who was throttled, oldest first. Books what still waits, so that one that waits for ever is seen to.
    pub fn view(&mut self, now_ns: u64) -> (Vec<TenantView>, Vec<Throttle>) {
        let all_ns = self.granted_ns;
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
