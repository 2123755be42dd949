//! Traffic: the bytes that went to host memory and came back, by whom they belong to.

use std::collections::HashMap;
use std::ops::AddAssign;

use super::Pool;

/// Tenants that are counted each by itself; all later ones are counted together.
pub const MAX_TENANTS: usize = 64;

/// Bytes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub evicted: u64,
    pub restored: u64,
}

impl AddAssign for Moved {
    fn add_assign(&mut self, more: Moved) {
        self.evicted += more.evicted;
        self.restored += more.restored;
    }
}

#[derive(Default)]
pub(super) struct Traffic {
    tenants: HashMap<u32, Moved>,
    others: Moved,
}

impl Traffic {
    /// tenant: the interned name.
    pub fn of(&mut self, tenant: u32) -> &mut Moved {
        if self.tenants.len() < MAX_TENANTS || self.tenants.contains_key(&tenant) {
            return self.tenants.entry(tenant).or_default();
        }
        &mut self.others
    }
}

impl Pool {
    /// What was moved by interned tenant, 0 for what belongs to none, in ascending order; and of those that came when there were tenants
    /// enough, together.
    pub fn traffic(&self) -> (Vec<(u32, Moved)>, Moved) {
        let st = self.lock();
        let mut tenants: Vec<_> = st
            .traffic
            .tenants
            .iter()
            .map(|(&tenant, &moved)| (tenant, moved))
            .collect();
        let others = st.traffic.others;
        drop(st);
        tenants.sort_unstable_by_key(|&(tenant, _)| tenant);
        (tenants, others)
    }
}
