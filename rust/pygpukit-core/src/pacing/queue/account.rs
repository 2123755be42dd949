//! What tenants got: batches that were issued, work that was measured, and tenants that leave.

use super::Queue;
use crate::pacing::command::Refusal;
use crate::pacing::line::Retired;
use crate::pacing::tenant::Waiting;

impl Queue {
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

    pub(super) fn drop_line(&mut self, id: u32, now_ns: u64) {
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
        self.granted_ns += ns;
        let tenant = self.tenant(id);
        let backlogged = tenant.is_busy();
        if !backlogged {
            tenant.context.add_asked_ns(ns, 0);
        }
        tenant.note_granted(ns);
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
        self.granted_ns += actual_ns;
        let ended_ns = retired.ended_ns;
        let tenant = self.tenant(id);
        tenant.batches -= 1;
        tenant.context.add_gpu_ns(actual_ns);
        tenant.note_granted(actual_ns);
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

    pub(super) fn let_go(&mut self, id: u32, now_ns: u64) -> bool {
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
}
