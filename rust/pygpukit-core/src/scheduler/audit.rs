//! Recounts everything that the task table keeps incrementally: for tests and for bug reports.

use super::key::Key;
use super::phase::Phase;
use super::table::TaskTable;
use std::collections::HashMap;

impl TaskTable {
    /// An Err is a defect of this module.
    pub fn audit(&self) -> Result<(), String> {
        let mut reserved: HashMap<usize, (u64, u64)> = HashMap::new();
        let mut places: HashMap<usize, (usize, u32)> = HashMap::new();
        let mut devices: Vec<(u64, Option<Key>)> = vec![(0, None); self.devices.len()];
        let (mut admitted, mut waiting) = (0, 0);
        let keys = self.tasks.keys();
        for &key in &keys {
            let (number, task) = (key.number, &self.tasks[key]);
            if let Some(held) = task.reserved {
                for slot in task.slots.iter() {
                    let sum = reserved.entry(slot).or_default();
                    *sum = (sum.0 + held.memory_bytes, sum.1 + u64::from(held.share_ppm));
                    let device = &mut devices[self.partitions.device_of(slot)];
                    device.0 += 1;
                    if task.site.count() > 1 && device.1.replace(key).is_some() {
                        return Err(format!("task {number} of several devices is not alone on one of them"));
                    }
                }
                if task.slots.iter().count() != task.site.count() {
                    return Err(format!("task {number} holds {:?} of {:?}", task.slots, task.site));
                }
            }
            let holds = matches!(task.phase, Phase::Admitted | Phase::Running | Phase::Suspended) || task.occupied;
            if task.reserved.is_some() != holds {
                return Err(format!(
                    "task {number} is {:?}, occupied {}: holds {:?}",
                    task.phase, task.occupied, task.reserved
                ));
            }
            if self.find(&task.spec.id) != Some(key) {
                return Err(format!("task {number} is not listed under its id '{}'", task.spec.id));
            }
            if task.entered == task.phase.is_terminal() {
                return Err(format!("task {number} is {:?}, entered {}", task.phase, task.entered));
            }
            let place = places.entry(task.slot()).or_default();
            *place = (place.0 + usize::from(task.entered), place.1 + u32::from(task.occupied));
            admitted += usize::from(task.phase == Phase::Admitted);
            waiting += usize::from(task.waits_in_line());
            if (task.phase == Phase::Suspended) != (task.paused() && task.occupied && !task.phase.is_terminal()) {
                return Err(format!("task {number} is {:?}, paused {}", task.phase, task.paused()));
            }
        }
        for (slot, sum) in reserved {
            let books = self.partitions.ledger(slot).used(slot);
            if (books.memory_bytes, u64::from(books.share_ppm)) != sum {
                return Err(format!("the ledger has {books:?} in slot {slot}, tasks hold {sum:?}"));
            }
        }
        for (number, (state, device)) in self.devices.iter().zip(&devices).enumerate() {
            if (state.tasks, state.seat) != *device {
                return Err(format!(
                    "device {number}: {device:?} by recount, {:?} kept",
                    (state.tasks, state.seat)
                ));
            }
        }
        for (slot, (tasks, occupied)) in places.into_iter().filter(|(_, place)| *place != (0, 0)) {
            let partition = self.partitions.at(slot);
            if (partition.tasks, partition.occupied) != (tasks, occupied) {
                return Err(format!("{tasks} tasks, {occupied} occupied in {partition:?}"));
            }
        }
        for device in 0..self.devices.len() {
            let inside = |slot: &usize| self.partitions.at(*slot).occupied > 0;
            let turns: Vec<usize> = self.partitions.turns(device).filter(inside).collect();
            if turns.len() > 1 {
                return Err(format!(
                    "the workers of slots {turns:?} have their turn at a time on device {device}"
                ));
            }
        }
        let inside = keys.iter().filter(|&&key| self.tasks[key].occupied).count();
        if self.occupied.len() != inside || !self.occupied.iter().all(|&key| self.tasks[key].occupied) {
            return Err(format!(
                "{inside} tasks are occupied, {} are listed",
                self.occupied.len()
            ));
        }
        if (self.ids.len(), self.admitted.len()) != (keys.len(), admitted) {
            let (ids, tasks) = (self.ids.len(), keys.len());
            return Err(format!("{ids} ids of {tasks} tasks, {admitted} admitted"));
        }
        if self.waiting.places().count() != waiting {
            return Err(format!(
                "{waiting} tasks wait, {} are in line",
                self.waiting.places().count()
            ));
        }
        self.partitions.ledgers().iter().try_for_each(|ledger| ledger.audit())
    }
}
