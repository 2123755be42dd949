//! What one partition is promised and what bounds it.

use super::error::SpecError;
use super::isolation::Isolation;
use super::ledger::{Account, Reservation};
use super::words::percent;
use super::WHOLE_SHARE_PPM;

/// Largest weight of a partition.
pub const MAX_WEIGHT: u32 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The quota: what its tasks may request together without borrowing.
    pub memory_bytes: u64,
    pub share_ppm: u32,
    /// Part of the memory bandwidth it is meant to use. Quotas of it are not to add up to more than there is; no task requests it, and
    /// nothing measures or bounds it: no level but `mig` can.
    pub bandwidth_ppm: u32,
    /// How far its tasks may go over the quota together, out of what others lend.
    pub borrow: Reservation,
    /// How much of an unused quota others may borrow. A task of this partition then waits for them to end.
    pub lend: Reservation,
    /// Most tasks that may run in it at a time; each has a stream of its own.
    pub max_streams: u32,
    /// The lowest and highest priority that its tasks may have.
    pub priorities: (i32, i32),
    /// Turns at the dispatcher, relative to other partitions with Admitted tasks of the same priority.
    pub weight: u32,
    pub isolation: Isolation,
    /// The device that it is a part of.
    pub device: u32,
}

impl Limits {
    /// A quota that is neither lent nor exceeded.
    pub fn new(memory_bytes: u64, share_ppm: u32) -> Limits {
        Limits {
            memory_bytes,
            share_ppm,
            bandwidth_ppm: 0,
            borrow: Reservation::default(),
            lend: Reservation::default(),
            max_streams: 16,
            priorities: (i32::MIN, i32::MAX),
            weight: 1,
            isolation: Isolation::Shared,
            device: 0,
        }
    }

    pub fn quota(&self) -> Reservation {
        Reservation {
            memory_bytes: self.memory_bytes,
            share_ppm: self.share_ppm,
        }
    }

    /// Most bytes that its tasks may hold together, what they borrow included; None for one without a quota of memory, which bounds nothing.
    pub fn memory_bound(&self) -> Option<u64> {
        (self.memory_bytes > 0).then(|| self.memory_bytes.saturating_add(self.borrow.memory_bytes))
    }

    /// Most tasks inside it at a time: a worker process runs one after the other.
    pub fn streams(&self) -> u32 {
        if self.isolation.in_worker() {
            1
        } else {
            self.max_streams
        }
    }

    /// Its quota is of an instance of its own, and nobody else's.
    pub(super) fn brings(&self) -> bool {
        self.isolation == Isolation::Mig
    }

    pub(super) fn account(&self) -> Account {
        Account {
            kept: Reservation {
                memory_bytes: self.memory_bytes - self.lend.memory_bytes,
                share_ppm: self.share_ppm - self.lend.share_ppm,
            },
            cap: Reservation {
                memory_bytes: self.memory_bytes.saturating_add(self.borrow.memory_bytes),
                share_ppm: self.share_ppm.saturating_add(self.borrow.share_ppm),
            },
            brings: if self.brings() {
                self.quota()
            } else {
                Reservation::default()
            },
        }
    }

    /// Checks that need no knowledge of other partitions.
    pub(super) fn check(&self, available: &[Isolation]) -> Result<(), SpecError> {
        let err = |field, message| Err(SpecError::new(field, message));
        for (field, ppm) in [("compute", self.share_ppm), ("bandwidth", self.bandwidth_ppm)] {
            if ppm > WHOLE_SHARE_PPM {
                return err(field, format!("{} is more than a device, 100 %", percent(ppm.into())));
            }
        }
        if self.lend.memory_bytes > self.memory_bytes || self.lend.share_ppm > self.share_ppm {
            let (lend, quota) = (self.lend, self.quota());
            return err("lend", format!("{lend:?} is more than the quota, {quota:?}"));
        }
        if self.brings() && !(self.lend.is_empty() && self.borrow.is_empty()) {
            let field = if self.lend.is_empty() { "borrow" } else { "lend" };
            return err(field, "an instance has nothing in common with others; give 0".into());
        }
        let (lowest, highest) = self.priorities;
        if lowest > highest {
            return err("priorities", format!("{lowest} to {highest}; the lowest comes first"));
        }
        if !(1..=MAX_WEIGHT).contains(&self.weight) {
            return err("weight", format!("{}; give 1 to {MAX_WEIGHT}", self.weight));
        }
        if self.max_streams == 0 {
            return err("max_streams", "0; nothing could ever run: give 1 or more".into());
        }
        if !available.contains(&self.isolation) {
            let names: Vec<_> = available.iter().map(|level| level.name()).collect();
            let asked = self.isolation.name();
            return err(
                "isolation",
                format!("'{asked}' is not available here; use {}", names.join(" or ")),
            );
        }
        Ok(())
    }
}
