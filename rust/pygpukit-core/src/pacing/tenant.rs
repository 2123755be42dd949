//! Tenant: one task's line of commands, how much of the first one is issued next, and what the task got.

use super::command::{Command, Item, Refusal, Work};
use super::cost::Cost;
use super::fair::WHOLE_PPM;
use super::meter::Meter;
use super::settings::Settings;
use super::stretch::Throttling;
use crate::scheduler::{TaskContext, WaitingWork};
use crate::slicing::{Plan, SubGrid};
use std::collections::VecDeque;
use std::sync::Arc;

/// How often at most the shares of a tenant are told.
pub(super) const SHARES_NS: u64 = 100_000_000;

/// Whether work takes far longer than a turn of so much.
pub(super) fn is_long(cost: Cost, span_ns: u64) -> bool {
    cost.known && cost.ns > span_ns + span_ns / 2
}

/// A command in its tenant's line.
pub(super) struct Waiting {
    pub work: Work,
    /// What it counts in the line.
    pub ns: u64,
    pub command: Arc<dyn Command>,
    /// Blocks that were issued in parts.
    pub next: u64,
    pub parts_asked: bool,
    /// Counts it among what its task waits for.
    pub _counted: WaitingWork,
}

impl Waiting {
    /// How much of it is issued next, and what that costs: None for all of it. A command that takes far longer than a batch goes in
    /// parts of whole waves; what is left of one goes so in any case.
    pub fn next_part(&self, cost: Cost, span_ns: u64) -> (Option<SubGrid>, Cost) {
        let Work { size, grid, wave, .. } = self.work;
        if wave == 0 || (self.next == 0 && !is_long(cost, span_ns)) {
            return (None, cost);
        }
        let fitting = u128::from(size) * u128::from(span_ns) / u128::from(cost.ns.max(1));
        let blocks = (u64::try_from(fitting).unwrap_or(u64::MAX) / wave)
            .max(1)
            .saturating_mul(wave);
        if self.next == 0 && blocks >= size {
            return (None, cost);
        }
        let part = Plan::new(grid, blocks).from(self.next).next();
        let issued = part.map_or(0, |part| part.blocks());
        let ns = u128::from(cost.ns) * u128::from(issued) / u128::from(size.max(1));
        (
            part,
            Cost {
                ns: ns.max(1) as u64,
                ..cost
            },
        )
    }
}

pub(super) struct Tenant {
    pub context: Arc<TaskContext>,
    pub meter: Meter,
    pub joined_ns: u64,
    pub seen_ns: u64,
    pub line: VecDeque<Waiting>,
    pub line_ns: u64,
    /// Commands that ever came into the line.
    pub pushed: u64,
    /// Taken out of the line and not all issued: stream and number.
    pub issuing: Option<(u64, u32)>,
    /// Batches that are unfinished.
    pub batches: u32,
    pub refusal: Option<Refusal>,
    pub waits_from_ns: u64,
    /// Device time that it was given, as far as it is measured.
    granted_ns: u64,
    /// Since when it has work that is not done and is not booked, and what others had been given of the device then.
    asks_from_ns: Option<u64>,
    others_then_ns: u64,
    pub throttling: Throttling,
    /// Until when the hold under way is booked.
    pub booked_ns: u64,
    /// The period in which its shares were told last, counted in `SHARES_NS`.
    pub reported: u64,
    pub left: bool,
}

impl Tenant {
    pub fn new(context: Arc<TaskContext>, now_ns: u64) -> Tenant {
        Tenant {
            context,
            meter: Meter::default(),
            joined_ns: now_ns,
            seen_ns: now_ns,
            line: VecDeque::new(),
            line_ns: 0,
            pushed: 0,
            issuing: None,
            batches: 0,
            refusal: None,
            waits_from_ns: now_ns,
            granted_ns: 0,
            asks_from_ns: None,
            others_then_ns: 0,
            throttling: Throttling::default(),
            booked_ns: 0,
            reported: now_ns / SHARES_NS,
            left: false,
        }
    }

    /// It was given so much of the device.
    pub fn note_granted(&mut self, ns: u64) {
        self.granted_ns += ns;
    }

    /// Books the time in which it had work that was not done, as far as that is known; from now on it has some or has not. all_ns: what
    /// the device gave everybody so far.
    pub fn note_asking(&mut self, at_ns: u64, all_ns: u64) {
        if let Some(from_ns) = self.asks_from_ns {
            let asked_ns = at_ns.saturating_sub(from_ns);
            // It is measured at its end: what is more than this stretch belongs to the next one.
            let others_ns = (all_ns - self.granted_ns)
                .saturating_sub(self.others_then_ns)
                .min(asked_ns);
            self.context.add_asked_ns(asked_ns, others_ns);
            self.others_then_ns += others_ns;
        } else {
            self.others_then_ns = all_ns - self.granted_ns;
        }
        let from_ns = self.asks_from_ns.map_or(at_ns, |from_ns| from_ns.max(at_ns));
        self.asks_from_ns = self.is_busy().then_some(from_ns);
    }

    /// Books what its first command has waited so far: for a turn, or held by its limit.
    pub fn book_wait(&mut self, now_ns: u64, all_ns: u64) {
        if self.line.is_empty() {
            return; // how long what the device has took is known at its end
        }
        self.note_asking(now_ns, all_ns);
        match self.throttling.held_ns {
            Some(from_ns) => {
                let since_ns = from_ns.max(self.booked_ns);
                self.context.add_throttled_ns(now_ns.saturating_sub(since_ns));
                self.booked_ns = now_ns;
            }
            None => {
                self.context.add_waited_ns(now_ns.saturating_sub(self.waits_from_ns));
                self.waits_from_ns = now_ns;
            }
        }
    }

    pub fn is_busy(&self) -> bool {
        !self.line.is_empty() || self.issuing.is_some() || self.batches > 0
    }

    /// Of the commands that ever came into its line, those that left it for the device, or were dropped.
    pub fn gone(&self) -> u64 {
        let issuing = self.issuing.map_or(0, |(_, commands)| u64::from(commands));
        self.pushed - self.line.len() as u64 - issuing
    }

    /// What its line may hold: less under a limit, so that no line takes longer than another to be issued.
    pub fn bound_ns(&self, settings: &Settings) -> u64 {
        settings.line_ns * u64::from(self.context.limit_ppm().min(WHOLE_PPM)) / u64::from(WHOLE_PPM)
    }

    /// Takes the first command of the line, or a part of it, for a batch. None where the line is empty.
    pub fn take_front(&mut self, part: Option<SubGrid>, cost: Cost) -> Option<Item> {
        let first = self.line.front_mut()?;
        first.next += part.map_or(first.work.size, |part| part.blocks());
        let ends = part.is_none() || first.next >= first.work.size;
        let gone_ns = if ends { first.ns } else { first.ns.min(cost.ns) };
        first.ns -= gone_ns;
        let item = Item {
            work: first.work,
            cost,
            command: first.command.clone(),
            part,
            ends,
        };
        self.line_ns -= gone_ns;
        if part.is_some() {
            self.context.add_slice();
        }
        if ends {
            self.line.pop_front();
        }
        Some(item)
    }

    pub fn uses(&self, stream: u64) -> bool {
        self.issuing.is_some_and(|(other, _)| other == stream) || self.line.iter().any(|i| i.work.stream == stream)
    }
}

/// What a tenant got, in device time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantView {
    pub number: u64,
    pub gpu_ns: u64,
    pub joined_ns: u64,
    /// Shares of the last 10 ms, 100 ms and 1 s.
    pub shares_ppm: [u32; 3],
    /// It has commands that the device was not given yet.
    pub waits: bool,
}
