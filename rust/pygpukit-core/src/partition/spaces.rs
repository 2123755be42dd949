//! Spaces: the multiprocessors of one device as its tasks use them. Each `sm` partition has a space of its own; all other tasks
//! share the rest, which is the whole device while there is no such partition.
//!
//! A space cannot be resized: a new one takes its place, for tasks that start from then on, and the old one goes when the last of
//! its tasks has ended and its streams are gone. Until then the two may overlap; `switching` tells so.

use super::error::SpecError;
use super::sms::{SmGrant, SmSplit};
use super::WHOLE_SHARE_PPM;
use crate::clock::Clock;
use crate::driver::{Driver, DriverResult};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The owner of what is left over.
pub const REST: u64 = 0;
/// Spaces of one device at a time, the rest included: each has a gate of its own.
pub const MAX_LANES: usize = 16;

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);

/// Multiprocessors that streams can be made for. It lives as long as its streams.
pub struct Space {
    driver: Arc<dyn Driver>,
    /// The driver's partition; 0 for the whole device, whose streams are ordinary ones.
    pub handle: u64,
    /// Unique in the process.
    pub serial: u64,
    pub owner: u64,
    /// Which of the device's gates its work passes; 0 for the rest.
    pub lane: usize,
    pub sms: u32,
    inside: AtomicU32,
    retired: AtomicBool,
}

impl Space {
    fn new(driver: &Arc<dyn Driver>, handle: u64, owner: u64, lane: usize, sms: u32) -> Space {
        Space {
            driver: driver.clone(),
            handle,
            serial: NEXT_SERIAL.fetch_add(1, Ordering::Relaxed),
            owner,
            lane,
            sms,
            inside: AtomicU32::new(0),
            retired: AtomicBool::new(false),
        }
    }

    pub fn device(&self) -> i32 {
        self.driver.device()
    }

    /// True once another has taken its place.
    pub fn retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.handle != 0 {
            let _ = self.driver.sm_partition_destroy(self.handle); // nobody is left to be told
        }
    }
}

/// A change of spaces: from when on, and when the last task of an old one had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch {
    from_ns: u64,
    until_ns: Option<u64>,
}

/// What is told of a partition's multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceView {
    pub sms: u32,
    pub asked_ppm: u32,
    pub share_ppm: u32,
    /// Tasks that started before the last change still use multiprocessors by the old division.
    pub switching: bool,
    /// How long that took, or takes so far.
    pub switch_ns: u64,
}

struct State {
    split: Option<SmSplit>,
    spaces: BTreeMap<u64, Arc<Space>>,
    rest: Arc<Space>,
    /// With tasks inside.
    retired: Vec<Arc<Space>>,
    switch: Option<Switch>,
}

pub struct Spaces {
    driver: Arc<dyn Driver>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Spaces {
    pub fn new(driver: Arc<dyn Driver>, clock: Arc<dyn Clock>) -> Spaces {
        let rest = Arc::new(Space::new(&driver, 0, REST, 0, 0));
        Spaces {
            driver,
            clock,
            state: Mutex::new(State {
                split: None,
                spaces: BTreeMap::new(),
                rest,
                retired: Vec::new(),
                switch: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A space for a new owner, or another one for one that has one. Err, naming `isolation`, and no change when it cannot be had.
    pub fn take(&self, owner: u64, asked_ppm: u32) -> Result<SmGrant, SpecError> {
        let mut state = self.state();
        let unavailable = |text: String| SpecError::new("isolation", format!("'sm' is not available: {text}"));
        let refused = |error: crate::driver::DriverError| unavailable(error.text);
        let mut split = match &state.split {
            Some(split) => split.clone(),
            None => SmSplit::new(self.driver.sm_groups().map_err(refused)?),
        };
        let mut grant = split.take(owner, asked_ppm)?;
        let used: Vec<usize> = state.spaces.values().map(|space| space.lane).collect();
        let lane = match state.spaces.get(&owner) {
            Some(space) => space.lane,
            None => (1..MAX_LANES)
                .find(|lane| !used.contains(lane))
                .ok_or_else(|| unavailable(format!("{} such partitions are the most", MAX_LANES - 1)))?,
        };
        let space = self.space(owner, lane, &grant.groups).map_err(refused)?;
        let rest = self.space(REST, 0, &split.rest()).map_err(refused)?;
        grant.sms = space.sms;
        state.split = Some(split);
        let old = state.spaces.insert(owner, Arc::new(space));
        let old_rest = std::mem::replace(&mut state.rest, Arc::new(rest));
        self.retire(&mut state, old.into_iter().chain([old_rest]));
        Ok(grant)
    }

    /// Gives an owner's multiprocessors to the rest.
    pub fn release(&self, owner: u64) {
        let mut state = self.state();
        let Some(old) = state.spaces.remove(&owner) else { return };
        let Some(split) = &mut state.split else { return };
        split.release(owner);
        let sms = split.total();
        let groups = split.rest();
        let rest = if state.spaces.is_empty() {
            Ok(Space::new(&self.driver, 0, REST, 0, sms))
        } else {
            self.space(REST, 0, &groups)
        };
        // When the driver refuses, the rest stays as it is: smaller than it could be, and never anybody else's.
        let old_rest = rest.ok().map(|rest| std::mem::replace(&mut state.rest, Arc::new(rest)));
        self.retire(&mut state, old_rest.into_iter().chain([old]));
    }

    fn space(&self, owner: u64, lane: usize, groups: &[u32]) -> DriverResult<Space> {
        let (handle, sms) = self.driver.sm_partition_create(groups)?;
        Ok(Space::new(&self.driver, handle, owner, lane, sms))
    }

    fn retire(&self, state: &mut State, old: impl Iterator<Item = Arc<Space>>) {
        for space in old {
            space.retired.store(true, Ordering::Release);
            if space.inside.load(Ordering::Acquire) > 0 {
                state.retired.push(space);
            }
        }
        let now = self.clock.now_ns();
        state.switch = Some(Switch {
            from_ns: now,
            until_ns: state.retired.is_empty().then_some(now),
        });
    }

    /// A task starts: in its partition's space, or in the rest. Every `enter` needs a `leave`.
    pub fn enter(&self, owner: u64) -> Arc<Space> {
        let state = self.state();
        let space = state.spaces.get(&owner).unwrap_or(&state.rest).clone();
        space.inside.fetch_add(1, Ordering::AcqRel);
        space
    }

    /// The task has ended, and its work with it.
    pub fn leave(&self, space: &Space) {
        let mut state = self.state();
        space.inside.fetch_sub(1, Ordering::AcqRel);
        state.retired.retain(|old| old.inside.load(Ordering::Acquire) > 0);
        if state.retired.is_empty() {
            let now = self.clock.now_ns();
            if let Some(switch) = &mut state.switch {
                switch.until_ns.get_or_insert(now);
            }
        }
    }

    /// What an owner has.
    pub fn view(&self, owner: u64) -> Option<SpaceView> {
        let state = self.state();
        let space = state.spaces.get(&owner)?;
        let grant = state.split.as_ref()?.get(owner)?;
        let switch = state.switch?;
        let until_ns = switch.until_ns.unwrap_or_else(|| self.clock.now_ns());
        Some(SpaceView {
            sms: space.sms,
            asked_ppm: grant.asked_ppm,
            share_ppm: grant.share_ppm,
            switching: switch.until_ns.is_none(),
            switch_ns: until_ns.saturating_sub(switch.from_ns),
        })
    }

    /// The part of the device's compute that the work of a lane can have.
    pub fn lane_ppm(&self, lane: usize) -> u32 {
        let state = self.state();
        let space = if lane == 0 {
            (!state.spaces.is_empty()).then_some(&state.rest)
        } else {
            state.spaces.values().find(|space| space.lane == lane)
        };
        let split = state.split.as_ref();
        space
            .zip(split)
            .map_or(WHOLE_SHARE_PPM, |(space, split)| split.ppm(space.sms))
    }
}
