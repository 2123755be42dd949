//! PartitionManager: the partitions of one device, their numbers ("slots") and the ledger of what their tasks reserve.

use super::activity::Activity;
use super::error::SpecError;
use super::isolation::Isolation;
use super::ledger::{Account, Ledger, Reservation, Resource, Shortage};
use super::limits::Limits;
use super::words::{bytes, percent, Words};
use super::{MAX_TEXT_BYTES, WHOLE_SHARE_PPM};
use crate::hash::Seeded;
use std::collections::HashMap;
use std::sync::Arc;

/// The slot of tasks that name no partition while no default is set: they have what no partition keeps for itself.
pub const DEFAULT_SLOT: usize = 0;

#[derive(Clone, Debug)]
pub struct PartitionConfig {
    pub total_memory: u64,
    pub total_share_ppm: u32,
    /// How much may be promised, in parts per million of the device. Over 10^6, quotas are bounds and no promises: none keeps
    /// anything for itself.
    pub promise_ppm: u64,
    /// Isolation levels that this device and build can really give.
    pub isolation: Vec<Isolation>,
}

impl PartitionConfig {
    pub fn new(total_memory: u64, total_share_ppm: u32) -> PartitionConfig {
        PartitionConfig {
            total_memory,
            total_share_ppm,
            promise_ppm: WHOLE_SHARE_PPM.into(),
            isolation: vec![Isolation::Shared],
        }
    }

    fn overcommits(&self) -> bool {
        self.promise_ppm > WHOLE_SHARE_PPM.into()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub id: String,
    pub name: String,
    pub limits: Limits,
    /// Unfinished tasks in it.
    pub tasks: usize,
    /// Tasks that a dispatcher is inside of.
    pub occupied: u32,
    /// The part of the device's multiprocessors that its tasks have to themselves; 0 when they share.
    pub sm_ppm: u32,
    /// What its tasks had the device do so far, those that are forgotten included.
    pub activity: Arc<Activity>,
}

impl Partition {
    /// A task's limit, of the device, as a limit of the time on the multiprocessors that it runs on. Those are rounded up; where the
    /// quota cannot be exceeded, the time makes up for it.
    pub fn time_limit_ppm(&self, limit_ppm: u32) -> u32 {
        if self.sm_ppm == 0 {
            return limit_ppm;
        }
        let cap_ppm = limit_ppm.min(self.limits.account().cap.share_ppm);
        let scaled = u64::from(cap_ppm) * u64::from(WHOLE_SHARE_PPM) / u64::from(self.sm_ppm);
        scaled.clamp(1, WHOLE_SHARE_PPM.into()) as u32
    }
}

/// Sums over the named partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionStats {
    pub partitions: usize,
    /// Those with unfinished tasks.
    pub active: usize,
    /// Memory in bytes, compute share and memory bandwidth in parts per million.
    pub promised: [u64; 3],
    /// What can still be promised of each.
    pub left: [u64; 3],
}

/// What is promised in sums: the field's name, the value and how it reads.
type Quota = (&'static str, fn(&Limits) -> u64, Words);
const QUOTAS: [Quota; 3] = [
    ("memory", |limits| limits.memory_bytes, bytes),
    ("compute", |limits| limits.share_ppm as u64, percent),
    ("bandwidth", |limits| limits.bandwidth_ppm as u64, percent),
];

#[derive(Clone, Debug)]
pub struct PartitionManager {
    config: PartitionConfig,
    ledger: Ledger,
    slots: Vec<Option<Partition>>,
    ids: HashMap<String, usize, Seeded>,
    default: usize,
}

impl PartitionManager {
    pub fn new(config: PartitionConfig) -> PartitionManager {
        let mut ledger = Ledger::new(config.total_memory, config.total_share_ppm);
        let cap = Reservation {
            memory_bytes: config.total_memory,
            share_ppm: config.total_share_ppm,
        };
        let everything = Account {
            kept: Reservation::default(),
            cap,
        };
        ledger.open(DEFAULT_SLOT, everything).expect("it keeps nothing");
        let rest = Partition {
            id: String::new(),
            name: String::new(),
            limits: Limits {
                max_streams: u32::MAX,
                ..Limits::new(cap.memory_bytes, cap.share_ppm)
            },
            tasks: 0,
            occupied: 0,
            sm_ppm: 0,
            activity: Arc::default(),
        };
        PartitionManager {
            config,
            ledger,
            slots: vec![Some(rest)],
            ids: HashMap::default(),
            default: DEFAULT_SLOT,
        }
    }

    pub fn config(&self) -> &PartitionConfig {
        &self.config
    }

    /// Partitions may be of this level too: whoever runs their tasks can give it.
    pub fn offer(&mut self, level: Isolation) {
        if !self.config.isolation.contains(&level) {
            self.config.isolation.push(level);
        }
    }

    /// A new partition. Err, and no change, when an id is taken, a limit makes no sense, more would be promised than there is, or
    /// tasks hold what it is to keep.
    pub fn create(&mut self, id: &str, name: &str, limits: Limits) -> Result<(), SpecError> {
        for (field, text) in [("id", id), ("name", name)] {
            if text.len() > MAX_TEXT_BYTES || (field == "id" && text.is_empty()) {
                return Err(SpecError::new(
                    field,
                    format!("{} bytes; 1 to {MAX_TEXT_BYTES}", text.len()),
                ));
            }
        }
        if self.ids.contains_key(id) {
            return Err(SpecError::new(
                "id",
                format!("partition '{id}' exists; resize it instead"),
            ));
        }
        self.check(&limits, None)?;
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        self.open(free, &limits)?;
        let partition = Partition {
            id: id.into(),
            name: name.into(),
            limits,
            tasks: 0,
            occupied: 0,
            sm_ppm: 0,
            activity: Arc::default(),
        };
        if free == self.slots.len() {
            self.slots.push(Some(partition));
        } else {
            self.slots[free] = Some(partition);
        }
        self.ids.insert(id.into(), free);
        Ok(())
    }

    /// New limits for a partition, whatever runs in it: tasks that hold more than the new ones allow keep it to their end. Its
    /// level of isolation stays.
    pub fn resize(&mut self, id: &str, limits: Limits) -> Result<(), SpecError> {
        let slot = self.slot(id)?;
        let (level, asked) = (self.at(slot).limits.isolation.name(), limits.isolation.name());
        if level != asked {
            let message = format!("'{id}' is '{level}' and cannot become '{asked}'; create another partition");
            return Err(SpecError::new("isolation", message));
        }
        self.check(&limits, Some(slot))?;
        self.open(slot, &limits)?;
        self.at_mut(slot).limits = limits;
        Ok(())
    }

    /// Notes what its tasks have to themselves: for tasks submitted from then on.
    pub fn set_sm_ppm(&mut self, id: &str, sm_ppm: u32) -> Result<(), SpecError> {
        let slot = self.slot(id)?;
        self.at_mut(slot).sm_ppm = sm_ppm;
        Ok(())
    }

    /// Removes a partition without unfinished tasks.
    pub fn delete(&mut self, id: &str) -> Result<Partition, SpecError> {
        let slot = self.slot(id)?;
        let Partition { tasks, occupied, .. } = *self.at(slot);
        if tasks > 0 || occupied > 0 {
            let message = format!(
                "'{id}' has {tasks} unfinished tasks, and {occupied} inside it; let them end or cancel them first"
            );
            return Err(SpecError::new("partition", message));
        }
        let nothing = Account {
            kept: Reservation::default(),
            cap: Reservation::default(),
        };
        self.ledger.open(slot, nothing).expect("it keeps nothing");
        self.ids.remove(id);
        if self.default == slot {
            self.default = DEFAULT_SLOT;
        }
        Ok(self.slots[slot].take().expect("a listed partition"))
    }

    /// Removes all partitions, or none when one has unfinished tasks.
    pub fn clear(&mut self) -> Result<(), SpecError> {
        let mut emptied = self.clone();
        for id in self.ids() {
            emptied.delete(id)?;
        }
        *self = emptied;
        Ok(())
    }

    pub fn get(&self, id: &str) -> Option<&Partition> {
        Some(self.at(*self.ids.get(id)?))
    }

    /// The ids, in alphabetical order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let mut ids: Vec<&str> = self.ids.keys().map(String::as_str).collect();
        ids.sort_unstable();
        ids.into_iter()
    }

    /// Tasks that name no partition go here; None: they share what no partition keeps.
    pub fn set_default(&mut self, id: Option<&str>) -> Result<(), SpecError> {
        self.default = id.map_or(Ok(DEFAULT_SLOT), |id| self.slot(id))?;
        Ok(())
    }

    pub fn default_partition(&self) -> Option<&Partition> {
        (self.default != DEFAULT_SLOT).then(|| self.at(self.default))
    }

    /// What the tasks of a partition have reserved.
    pub fn used(&self, id: &str) -> Option<Reservation> {
        Some(self.ledger.used(*self.ids.get(id)?))
    }

    pub fn stats(&self) -> PartitionStats {
        let mut promised = [0u64; 3];
        for &slot in self.ids.values() {
            for (sum, (_, of, _)) in promised.iter_mut().zip(QUOTAS) {
                *sum += of(&self.at(slot).limits);
            }
        }
        let totals = self.promisable();
        PartitionStats {
            partitions: self.ids.len(),
            active: self.ids.values().filter(|&&slot| self.at(slot).tasks > 0).count(),
            promised,
            left: std::array::from_fn(|i| totals[i] - promised[i]),
        }
    }

    /// The most bytes that the tasks of a partition may hold together; u64::MAX where nothing bounds them.
    pub fn memory_bound(&self, id: &str) -> u64 {
        let partition = self.get(id);
        partition
            .and_then(|partition| partition.limits.memory_bound())
            .unwrap_or(u64::MAX)
    }

    /// The slot of a task's partition; the empty id is the default.
    pub(crate) fn slot_of(&self, id: &str) -> Result<usize, SpecError> {
        if id.is_empty() {
            Ok(self.default)
        } else {
            self.slot(id)
        }
    }

    /// The partition whose tasks those of this id are (the empty one is the default), if they run in a worker process.
    pub fn worker_partition(&self, id: &str) -> Option<&str> {
        let partition = self.at(self.slot_of(id).ok()?);
        (partition.limits.isolation == Isolation::Process).then_some(&*partition.id)
    }

    pub(crate) fn at(&self, slot: usize) -> &Partition {
        self.slots[slot].as_ref().expect("a partition with tasks stays")
    }

    pub(crate) fn at_mut(&mut self, slot: usize) -> &mut Partition {
        self.slots[slot].as_mut().expect("a partition with tasks stays")
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn slot(&self, id: &str) -> Result<usize, SpecError> {
        self.ids.get(id).copied().ok_or_else(|| {
            let known: Vec<_> = self.ids().map(|id| format!("'{id}'")).collect();
            let known = if known.is_empty() {
                "none".into()
            } else {
                known.join(", ")
            };
            SpecError::new("partition", format!("no partition '{id}'; there is {known}"))
        })
    }

    /// How much of each quota may be promised in all.
    fn promisable(&self) -> [u64; 3] {
        let device = &self.config;
        let totals = [
            device.total_memory,
            device.total_share_ppm.into(),
            WHOLE_SHARE_PPM.into(),
        ];
        totals.map(|total| {
            let scaled = u128::from(total) * u128::from(device.promise_ppm) / u128::from(WHOLE_SHARE_PPM);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        })
    }

    /// The limits by themselves, and the sums of quotas with them in the place of `slot`.
    fn check(&self, limits: &Limits, slot: Option<usize>) -> Result<(), SpecError> {
        limits.check(&self.config.isolation)?;
        for (total, (field, of, words)) in self.promisable().into_iter().zip(QUOTAS) {
            let others = self.ids.values().filter(|&&other| Some(other) != slot);
            let left = total - others.map(|&other| of(&self.at(other).limits)).sum::<u64>();
            let asked = of(limits);
            if asked > left {
                let (asked, left, total) = (words(asked), words(left), words(total));
                let message = format!("{asked} asked, {left} of {total} not promised yet");
                return Err(SpecError::new(field, message));
            }
        }
        Ok(())
    }

    fn open(&mut self, slot: usize, limits: &Limits) -> Result<(), SpecError> {
        let mut account = limits.account();
        if self.config.overcommits() {
            account.kept = Reservation::default();
        }
        self.ledger.open(slot, account).map_err(|short: Shortage| {
            let (field, words): (_, Words) = match short.resource {
                Resource::Memory => ("memory", bytes),
                Resource::Share => ("compute", percent),
            };
            let (asked, available) = (words(short.asked), words(short.available));
            let message = format!("{asked} to keep, {available} not in use by tasks now; wait or lend more");
            SpecError::new(field, message)
        })
    }
}
