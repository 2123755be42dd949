//! Multiprocessors of the process's devices: which space a task runs in, and what the `sm` partitions of a scheduler hold.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pygpukit_core::clock::MonotonicClock;
use pygpukit_core::partition as core;
use pyo3::prelude::*;

use crate::table::TableDriver;

static DEVICES: Mutex<Option<HashMap<i32, Arc<core::Spaces>>>> = Mutex::new(None);
static NEXT_OWNER: AtomicU64 = AtomicU64::new(core::REST + 1);

/// None while no backend is open.
fn device(device: i32) -> Option<Arc<core::Spaces>> {
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let devices = devices.get_or_insert_with(HashMap::new);
    if let Some(spaces) = devices.get(&device) {
        return Some(spaces.clone());
    }
    let driver = Arc::new(TableDriver::new(device)?);
    let spaces = Arc::new(core::Spaces::new(driver, Arc::new(MonotonicClock)));
    devices.insert(device, spaces.clone());
    Some(spaces)
}

/// The part of a device's compute behind one of its gates.
pub fn lane_ppm(of: usize, lane: usize) -> u32 {
    let devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let spaces = devices.as_ref().and_then(|devices| devices.get(&(of as i32)).cloned());
    drop(devices);
    spaces.map_or(core::WHOLE_SHARE_PPM, |spaces| spaces.lane_ppm(lane))
}

/// The multiprocessors that a task runs on, from its start to its end.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct Space {
    space: Arc<core::Space>,
}

#[pymethods]
impl Space {
    /// The driver's partition; 0 for the whole device.
    #[getter]
    fn handle(&self) -> u64 {
        self.space.handle
    }
    /// Unique in the process.
    #[getter]
    fn serial(&self) -> u64 {
        self.space.serial
    }
    #[getter]
    fn device(&self) -> i32 {
        self.space.device()
    }
    /// Which of the device's gates its work passes.
    #[getter]
    fn lane(&self) -> usize {
        self.space.lane
    }
    /// Another has taken its place: tasks that start now do not run here.
    #[getter]
    fn retired(&self) -> bool {
        self.space.retired()
    }
}

/// The owners behind the `sm` partitions of one scheduler, by partition.
#[derive(Default)]
pub struct Holdings {
    /// (device, owner).
    owners: Mutex<BTreeMap<String, (i32, u64)>>,
    /// Held over a change of a partition, from the first look to the last step.
    changing: Mutex<()>,
}

impl Holdings {
    pub fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owners(&self) -> MutexGuard<'_, BTreeMap<String, (i32, u64)>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owner(&self, id: &str) -> Option<(i32, u64)> {
        self.owners().get(id).copied()
    }

    /// Multiprocessors for a partition, new or other ones.
    pub fn take(&self, id: &str, share_ppm: u32, on: i32) -> Result<core::SmGrant, core::SpecError> {
        let spaces = device(on).ok_or_else(|| core::SpecError {
            field: "isolation",
            message: "'sm' is not available: no backend is open".into(),
        })?;
        let owner = self
            .owner(id)
            .map_or_else(|| NEXT_OWNER.fetch_add(1, Ordering::Relaxed), |(_, owner)| owner);
        let grant = spaces.take(owner, share_ppm)?;
        self.owners().insert(id.to_string(), (on, owner));
        Ok(grant)
    }

    pub fn release(&self, id: &str) {
        let owner = self.owners().remove(id);
        if let Some((on, owner)) = owner {
            if let Some(spaces) = device(on) {
                spaces.release(owner);
            }
        }
    }

    pub fn release_all(&self) {
        let ids: Vec<String> = self.owners().keys().cloned().collect();
        ids.iter().for_each(|id| self.release(id));
    }

    pub fn view(&self, id: &str) -> Option<core::SpaceView> {
        let (on, owner) = self.owner(id)?;
        device(on)?.view(owner)
    }

    /// Where a task of a partition runs on a device; with None, where those of no partition do.
    pub fn enter(&self, id: Option<&str>, on: i32) -> Option<Space> {
        let owner = id.and_then(|id| self.owner(id)).filter(|(device, _)| *device == on);
        let space = device(on)?.enter(owner.map_or(core::REST, |(_, owner)| owner));
        Some(Space { space })
    }

    pub fn leave(&self, space: &Space) {
        if let Some(spaces) = device(space.space.device()) {
            spaces.leave(&space.space);
        }
    }
}

impl Drop for Holdings {
    fn drop(&mut self) {
        self.release_all();
    }
}
