//! What the tasks of each name used, from the start on: the counters outlive the tasks.

use super::context::Used;
use super::name::Name;
use crate::hash::Seeded;
use std::collections::HashMap;
use std::ops::AddAssign;

/// Names that are counted each by itself; all later ones are counted together.
pub const MAX_TENANTS: usize = 64;

/// Counters of some tasks together; none ever falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantUse {
    /// Submitted.
    pub tasks: u64,
    pub requeues: u64,
    pub preemptions: u64,
    pub used: Used,
}

impl AddAssign for TenantUse {
    fn add_assign(&mut self, more: TenantUse) {
        self.tasks += more.tasks;
        self.requeues += more.requeues;
        self.preemptions += more.preemptions;
        self.used += more.used;
    }
}

/// A name keeps its place for good, so that no counter of a name is ever lost to the others.
#[derive(Default)]
pub(super) struct Tenants {
    pub places: HashMap<Name, usize, Seeded>,
    pub totals: Vec<TenantUse>,
    pub others: TenantUse,
}

impl Tenants {
    pub fn of(&mut self, name: &Name) -> &mut TenantUse {
        match self.place(name) {
            Some(place) => &mut self.totals[place],
            None => &mut self.others,
        }
    }

    pub fn place(&mut self, name: &Name) -> Option<usize> {
        if let Some(&place) = self.places.get(name) {
            return Some(place);
        }
        let place = self.totals.len();
        (place < MAX_TENANTS).then(|| {
            self.places.insert(name.clone(), place);
            self.totals.push(TenantUse::default());
            place
        })
    }
}
