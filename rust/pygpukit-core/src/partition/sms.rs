//! SmSplit: the multiprocessors of one device in small groups, and who has which. What is not given out is for all others.

use super::error::SpecError;
use super::WHOLE_SHARE_PPM;
use std::collections::BTreeMap;

/// What somebody has of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmGrant {
    /// In ascending order; no other grant has one of them.
    pub groups: Vec<u32>,
    pub sms: u32,
    /// Of the device's compute: what was asked for, and what the multiprocessors are, which is never less.
    pub asked_ppm: u32,
    pub share_ppm: u32,
}

/// Whole groups are given out, so that a grant is rounded up; the least part that is left over is one group.
#[derive(Clone, Debug)]
pub struct SmSplit {
    sizes: Vec<u32>,
    grants: BTreeMap<u64, SmGrant>,
}

impl SmSplit {
    /// sizes: multiprocessors of each group.
    pub fn new(sizes: Vec<u32>) -> SmSplit {
        SmSplit {
            sizes,
            grants: BTreeMap::new(),
        }
    }

    pub fn total(&self) -> u32 {
        self.sizes.iter().sum()
    }

    pub fn get(&self, owner: u64) -> Option<&SmGrant> {
        self.grants.get(&owner)
    }

    pub fn grants(&self) -> impl Iterator<Item = (u64, &SmGrant)> {
        self.grants.iter().map(|(&owner, grant)| (owner, grant))
    }

    /// The groups that no grant has.
    pub fn rest(&self) -> Vec<u32> {
        let taken = |group: &u32| self.grants.values().any(|grant| grant.groups.contains(group));
        (0..self.sizes.len() as u32).filter(|group| !taken(group)).collect()
    }

    pub fn sms_of(&self, groups: &[u32]) -> u32 {
        groups.iter().map(|&group| self.sizes[group as usize]).sum()
    }

    /// So many multiprocessors as a share of the device, rounded down.
    pub fn ppm(&self, sms: u32) -> u32 {
        let whole = u64::from(WHOLE_SHARE_PPM);
        (u64::from(sms) * whole / u64::from(self.total().max(1))) as u32
    }

    /// A share of the device for a new owner, or another one for one that has a grant, who keeps as many of its groups as it can.
    /// Err, and no change, when there are too few.
    pub fn take(&mut self, owner: u64, asked_ppm: u32) -> Result<SmGrant, SpecError> {
        let err = |message| Err(SpecError::new("isolation", message));
        if asked_ppm == 0 {
            return err("'sm' needs a share of the multiprocessors; give bandwidth more than 0".into());
        }
        let own = self.grants.get(&owner).map_or(Vec::new(), |grant| grant.groups.clone());
        let (rest, total) = (self.rest(), self.total());
        let available = self.sms_of(&own) + self.sms_of(&rest);
        let (asked, whole) = (u64::from(asked_ppm) * u64::from(total), u64::from(WHOLE_SHARE_PPM));
        let mut groups = Vec::new();
        let mut sms = 0;
        for &group in own.iter().chain(&rest) {
            if u64::from(sms) * whole >= asked {
                break;
            }
            groups.push(group);
            sms += self.sizes[group as usize];
        }
        if u64::from(sms) * whole < asked || groups.len() == own.len() + rest.len() {
            let asked = asked.div_ceil(whole);
            return err(format!(
                "'sm' asks for {asked} multiprocessors; {available} of {total} are free, and a group of them stays for tasks of no \
                 such partition: ask for less bandwidth, or delete another"
            ));
        }
        groups.sort_unstable();
        let share_ppm = self.ppm(sms).max(asked_ppm); // equal but for the rounding down
        let grant = SmGrant {
            groups,
            sms,
            asked_ppm,
            share_ppm,
        };
        self.grants.insert(owner, grant.clone());
        Ok(grant)
    }

    /// Gives back what an owner has; false when that is nothing.
    pub fn release(&mut self, owner: u64) -> bool {
        self.grants.remove(&owner).is_some()
    }
}
