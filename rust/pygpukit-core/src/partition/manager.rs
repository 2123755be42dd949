//! PartitionManager: the partitions of all devices, their numbers ("slots") and a ledger a device of what their tasks reserve.

use super::activity::Activity;
use super::devices::{Devices, Site};
use super::error::SpecError;
use super::isolation::Isolation;
use super::ledger::{Account, Ledger, Reservation, Resource, Shortage};
use super::limits::Limits;
use super::words::{bytes, percent, Words};
use super::{MAX_TEXT_BYTES, WHOLE_SHARE_PPM};
use crate::hash::Seeded;
use std::collections::HashMap;
use std::sync::Arc;

/// The slot of tasks that name neither a partition nor a device, while no default is set. Device k's tasks without a partition have
/// slot k, and there what no partition of the device keeps for itself.
pub const DEFAULT_SLOT: usize = 0;

#[derive(Clone, Debug)]
pub struct PartitionConfig {
    /// Of device 0.
    pub total_memory: u64,
    /// Of devices 1, 2 and so on.
    pub further_memory: Vec<u64>,
    /// Of each device.
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
            further_memory: Vec::new(),
            total_share_ppm,
            promise_ppm: WHOLE_SHARE_PPM.into(),
            isolation: vec![Isolation::Shared],
        }
    }

    pub fn devices(&self) -> usize {
        1 + self.further_memory.len()
    }

    pub fn memory_of(&self, device: usize) -> u64 {
        match device {
            0 => self.total_memory,
            device => self.further_memory[device - 1],
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
    /// By device.
    ledgers: Vec<Ledger>,
    slots: Vec<Option<Partition>>,
    ids: HashMap<String, usize, Seeded>,
    default: usize,
}

impl PartitionManager {
    pub fn new(config: PartitionConfig) -> PartitionManager {
        let (ledgers, rests) = (0..config.devices()).map(|device| opened(&config, device)).unzip();
        PartitionManager {
            config,
            ledgers,
            slots: rests,
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

    /// Partitions may have a worker process: whoever runs their tasks starts it.
    pub fn offer_workers(&mut self) {
        let levels = Isolation::ALL.into_iter().filter(|level| level.in_worker());
        levels.for_each(|level| self.offer(level));
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
        let (device, asked) = (self.at(slot).limits.device, limits.device);
        if device != asked {
            let message = format!("'{id}' is on device {device} and cannot move to {asked}; create another partition");
            return Err(SpecError::new("device", message));
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
        self.ledger_mut(slot)
            .open(slot, Account::default())
            .expect("it keeps nothing");
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
        let slot = *self.ids.get(id)?;
        Some(self.ledger(slot).used(slot))
    }

    pub fn stats(&self) -> PartitionStats {
        let mut promised = [0u64; 3];
        for &slot in self.ids.values().filter(|&&slot| !self.at(slot).limits.brings()) {
            for (sum, (_, of, _)) in promised.iter_mut().zip(QUOTAS) {
                *sum += of(&self.at(slot).limits);
            }
        }
        let totals = (0..self.config.devices())
            .map(|device| self.promisable(device))
            .reduce(|sum, more| std::array::from_fn(|i| sum[i].saturating_add(more[i])))
            .expect("there is a device");
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

    /// Where a task of a partition (the empty id is the default) that asks for these devices may be. An Err says what cannot be.
    pub(crate) fn site_of(&self, id: &str, devices: &Devices) -> Result<Site, SpecError> {
        let slot = self.slot_of(id)?;
        let (home, count) = (self.at(slot).limits.device as usize, self.config.devices());
        let mut asked: Vec<usize> = match devices {
            Devices::OfPartition => return Ok(Site::One(slot)),
            Devices::Any(n) if (1..=count).contains(&(*n as usize)) => match *n as usize {
                1 if count == 1 || !id.is_empty() => return Ok(Site::One(slot)),
                n if n == count => (0..count).collect(),
                n if id.is_empty() => return Ok(Site::Any(n)),
                _ => Vec::new(), // of a partition, which has one: refused below
            },
            Devices::Any(n) => {
                let message = format!("{n} asked for; give 1 to {count}, as many as this scheduler has");
                return Err(SpecError::new("devices", message));
            }
            Devices::All(asked) => asked.iter().map(|&device| device as usize).collect(),
        };
        asked.sort_unstable();
        asked.dedup();
        if let Some(unknown) = asked.iter().find(|&&device| device >= count) {
            let message = format!("no device {unknown}; this scheduler has {count}, from 0 on");
            return Err(SpecError::new("devices", message));
        }
        if asked == [home] {
            return Ok(Site::One(slot));
        }
        if !id.is_empty() {
            let message = format!("partition '{id}' is on device {home} alone; ask for that, or for no partition");
            return Err(SpecError::new("devices", message));
        }
        match asked[..] {
            [] => Err(SpecError::new("devices", "none; give a device or several".into())),
            [device] => Ok(Site::One(device)),
            _ => Ok(Site::All(asked.into())),
        }
    }

    pub(crate) fn devices(&self) -> usize {
        self.config.devices()
    }

    pub(crate) fn device_of(&self, slot: usize) -> usize {
        self.at(slot).limits.device as usize
    }

    /// The slots of the partitions of a device whose workers take turns.
    pub(crate) fn turns(&self, device: usize) -> impl Iterator<Item = usize> + '_ {
        let there =
            move |limits: &Limits| limits.isolation == Isolation::Timesliced && limits.device as usize == device;
        self.all_slots().filter(move |&slot| there(&self.at(slot).limits))
    }

    /// Of every partition, in their order.
    pub(crate) fn all_slots(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.slots.len()).filter(|&slot| self.slots[slot].is_some())
    }

    /// It is no partition's: its tasks have what none keeps.
    pub(crate) fn is_rest(&self, slot: usize) -> bool {
        slot < self.config.devices()
    }

    /// The partition whose tasks those of this id are (the empty one is the default), if they run in a worker process.
    pub fn worker_partition(&self, id: &str) -> Option<&str> {
        let partition = self.at(self.slot_of(id).ok()?);
        partition.limits.isolation.in_worker().then_some(&*partition.id)
    }

    pub(crate) fn at(&self, slot: usize) -> &Partition {
        self.slots[slot].as_ref().expect("a partition with tasks stays")
    }

    pub(crate) fn at_mut(&mut self, slot: usize) -> &mut Partition {
        self.slots[slot].as_mut().expect("a partition with tasks stays")
    }

    /// Of a slot's device.
    pub(crate) fn ledger(&self, slot: usize) -> &Ledger {
        &self.ledgers[self.device_of(slot)]
    }

    pub(crate) fn ledger_mut(&mut self, slot: usize) -> &mut Ledger {
        let device = self.device_of(slot);
        &mut self.ledgers[device]
    }

    /// By device.
    pub(crate) fn ledgers(&self) -> &[Ledger] {
        &self.ledgers
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

    /// How much of each quota may be promised in all on a device.
    fn promisable(&self, device: usize) -> [u64; 3] {
        let config = &self.config;
        let totals = [
            config.memory_of(device),
            config.total_share_ppm.into(),
            WHOLE_SHARE_PPM.into(),
        ];
        totals.map(|total| {
            let scaled = u128::from(total) * u128::from(config.promise_ppm) / u128::from(WHOLE_SHARE_PPM);
            u64::try_from(scaled).unwrap_or(u64::MAX)
        })
    }

    /// The limits by themselves, and the sums of quotas with them in the place of `slot`.
    fn check(&self, limits: &Limits, slot: Option<usize>) -> Result<(), SpecError> {
        limits.check(&self.config.isolation)?;
        let (device, count) = (limits.device, self.config.devices());
        if device as usize >= count {
            let message = format!("no device {device}; this scheduler has {count}, from 0 on");
            return Err(SpecError::new("device", message));
        }
        if limits.brings() {
            return Ok(()); // out of an instance of its own
        }
        let there = |&&other: &&usize| {
            let others = &self.at(other).limits;
            Some(other) != slot && others.device == device && !others.brings()
        };
        for (total, (field, of, words)) in self.promisable(device as usize).into_iter().zip(QUOTAS) {
            let others = self.ids.values().filter(there);
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
        self.ledgers[limits.device as usize]
            .open(slot, account)
            .map_err(|short: Shortage| {
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

/// The ledger of a device, and the partition of tasks that name none.
fn opened(config: &PartitionConfig, device: usize) -> (Ledger, Option<Partition>) {
    let cap = Reservation {
        memory_bytes: config.memory_of(device),
        share_ppm: config.total_share_ppm,
    };
    let everything = Account {
        cap,
        ..Account::default()
    };
    let mut ledger = Ledger::new(cap.memory_bytes, cap.share_ppm);
    ledger.open(device, everything).expect("it keeps nothing");
    let rest = Partition {
        id: String::new(),
        name: String::new(),
        limits: Limits {
            max_streams: u32::MAX,
            device: device as u32,
            ..Limits::new(cap.memory_bytes, cap.share_ppm)
        },
        tasks: 0,
        occupied: 0,
        sm_ppm: 0,
        activity: Arc::default(),
    };
    (ledger, Some(rest))
}
