//! Room for a task: whether it fits on the devices that it asks for, which it gets where it leaves the choice, and what it holds there.

use super::key::Key;
use super::placement::Candidate;
use super::queue::Place;
use super::spec::TaskSpec;
use super::table::TaskTable;
use super::task::Task;
use crate::partition::{DeviceList, Reservation, Scope, Shortage, Site, Slots};
use std::cmp::Reverse;

/// What the table keeps of one device beside its ledger.
#[derive(Default)]
pub(super) struct DeviceState {
    /// The first waiting task that is short of what the device's partitions share.
    pub blocked: Option<Place>,
    /// The first task of several devices that waits only for `seat`.
    pub awaited: Option<Place>,
    /// The one task of several devices that may be on it: those that share a device come one after the other, so that what they launch
    /// is in one order on all their devices, and none waits on one for what is behind it on another.
    pub seat: Option<Key>,
    /// Tasks that hold what they reserved.
    pub tasks: u64,
}

/// Whether a task fits.
pub(super) enum Fit {
    Here(Slots),
    /// An earlier task, which it may not pass, waits for the same.
    Behind,
    /// It is short of memory or share on some of these, which it waits for: later ones do not get them.
    Short(Slots),
    /// It waits for other tasks of several devices to end on these.
    Seat(Slots),
}

impl TaskTable {
    /// Whether a task fits, and where it goes then. place: its place in service order.
    pub(super) fn fit(&self, site: &Site, request: Reservation, place: Place) -> Fit {
        match site {
            Site::One(slot) => {
                if self.is_behind_on(*slot, request, place, false) {
                    Fit::Behind
                } else if self.lacks(*slot, request).is_some() {
                    Fit::Short(Slots::one(*slot))
                } else {
                    Fit::Here(Slots::one(*slot))
                }
            }
            Site::All(slots) => {
                let all = Slots::of(slots.iter().copied());
                if slots.iter().any(|&slot| self.is_behind_on(slot, request, place, true)) {
                    Fit::Behind
                } else if slots.iter().any(|&slot| self.lacks(slot, request).is_some()) {
                    Fit::Short(all)
                } else if slots.iter().any(|&slot| self.seat_of(slot).is_some()) {
                    Fit::Seat(all)
                } else {
                    Fit::Here(all)
                }
            }
            Site::Any(count) => self.fit_anywhere(*count, request, place),
        }
    }

    fn fit_anywhere(&self, count: usize, request: Reservation, place: Place) -> Fit {
        let gang = count > 1;
        let mut open: Vec<usize> = (0..self.partitions.devices())
            .filter(|&slot| !self.is_behind_on(slot, request, place, gang))
            .collect();
        let fits = |slot: &usize| self.lacks(*slot, request).is_none() && !(gang && self.seat_of(*slot).is_some());
        let mut fitting: Vec<usize> = open.iter().copied().filter(fits).collect();
        if fitting.len() >= count {
            fitting.sort_by_cached_key(|&slot| self.placement.rank(&self.candidate(slot)));
            fitting.truncate(count);
            fitting.sort_unstable();
            return Fit::Here(Slots::of(fitting.into_iter()));
        }
        if open.len() < count {
            return Fit::Behind;
        }
        // Those that lack the least: what later tasks get elsewhere changes nothing there, so that the choice stays or gets better.
        open.sort_by_cached_key(|&slot| {
            let lack_ppm = self.partitions.ledger(slot).lack_ppm(slot, request);
            let possible = self.lacks_when_empty(slot, request).is_none();
            (!possible, lack_ppm, gang && self.seat_of(slot).is_some(), slot)
        });
        open.truncate(count);
        let short = open.iter().any(|&slot| self.lacks(slot, request).is_some());
        let slots = Slots::of(open.into_iter());
        if short {
            Fit::Short(slots)
        } else {
            Fit::Seat(slots)
        }
    }

    pub(super) fn lacks(&self, slot: usize, request: Reservation) -> Option<Shortage> {
        self.partitions.ledger(slot).shortage(slot, request)
    }

    pub(super) fn lacks_when_empty(&self, slot: usize, request: Reservation) -> Option<Shortage> {
        self.partitions.ledger(slot).shortage_when_empty(slot, request)
    }

    /// What stands in the way of a task on the devices that it asks for, even when nothing at all is reserved.
    pub(super) fn shortage_for_ever(&self, site: &Site, request: Reservation) -> Option<Shortage> {
        match site {
            Site::One(slot) => self.lacks_when_empty(*slot, request),
            Site::All(slots) => slots.iter().find_map(|&slot| self.lacks_when_empty(slot, request)),
            Site::Any(count) => {
                let all = (0..self.partitions.devices()).map(|slot| self.lacks_when_empty(slot, request));
                let mut short: Vec<Shortage> = all.flatten().collect();
                short.sort_by_key(|short| short.available);
                let enough = self.partitions.devices() - short.len() >= *count;
                short.pop().filter(|_| !enough)
            }
        }
    }

    /// The devices where a task that leaves the choice is behind no earlier one, those first that its placement prefers.
    pub(super) fn open_slots(&self, key: Key, gang: bool) -> Vec<usize> {
        let task = &self.tasks[key];
        let (request, place) = (task.spec.reservation(), (Reverse(task.spec.priority), key));
        let mut open: Vec<usize> = (0..self.partitions.devices())
            .filter(|&slot| !self.is_behind_on(slot, request, place, gang))
            .collect();
        open.sort_by_cached_key(|&slot| self.placement.rank(&self.candidate(slot)));
        open
    }

    /// What a task is short of now, if it is short of memory or share and not of its turn.
    pub(super) fn shortage_now(&self, site: &Site, request: Reservation) -> Option<Shortage> {
        match site {
            Site::One(slot) => self.lacks(*slot, request),
            Site::All(slots) => slots.iter().find_map(|&slot| self.lacks(slot, request)),
            Site::Any(count) => {
                let lack = |slot: &usize| self.partitions.ledger(*slot).lack_ppm(*slot, request);
                let mut slots: Vec<usize> = (0..self.partitions.devices()).collect();
                slots.sort_by_cached_key(lack);
                self.lacks(slots[count - 1], request)
            }
        }
    }

    /// The first of the tasks that wait for what a task's devices share.
    pub(super) fn blocked_for(&self, site: &Site) -> Option<Place> {
        let blocked = |slot: usize| self.devices[self.partitions.device_of(slot)].blocked;
        match site {
            Site::One(slot) => blocked(*slot),
            Site::All(slots) => slots.iter().filter_map(|&slot| blocked(slot)).min(),
            Site::Any(_) => self.devices.iter().filter_map(|device| device.blocked).min(),
        }
    }

    /// An earlier task waits for what is shared on a device, or one of several devices for its seat, and is not passed.
    fn is_behind_on(&self, slot: usize, request: Reservation, place: Place, gang: bool) -> bool {
        let device = &self.devices[self.partitions.device_of(slot)];
        let earlier = |other: Option<Place>| other.is_some_and(|other| other < place);
        let blocked = earlier(device.blocked) && !self.partitions.ledger(slot).within_kept(slot, request);
        (blocked || (gang && earlier(device.awaited))) && !self.may_be_passed()
    }

    pub(super) fn seat_of(&self, slot: usize) -> Option<Key> {
        self.devices[self.partitions.device_of(slot)].seat
    }

    /// A task waits for these devices, and no longer for others: later ones do not take them away from it. One that is short of its
    /// partition's own bound holds back nobody but its own line.
    pub(super) fn hold_back(&mut self, key: Key, fit: &Fit) {
        let task = &self.tasks[key];
        let (request, place) = (task.spec.reservation(), (Reverse(task.spec.priority), key));
        if !matches!(task.site, Site::One(_)) {
            self.withdraw(place, fit);
        }
        match fit {
            Fit::Short(slots) => {
                for slot in slots.iter() {
                    let own = |short: Shortage| short.scope == Scope::Partition && !self.partitions.is_rest(slot);
                    if !self.lacks(slot, request).is_some_and(own) {
                        self.wait_on(slot, place, |device| &mut device.blocked);
                    }
                }
            }
            Fit::Seat(slots) => slots
                .iter()
                .for_each(|slot| self.wait_on(slot, place, |device| &mut device.awaited)),
            Fit::Here(_) | Fit::Behind => {}
        }
    }

    /// Notes a place where it is the first one. Those after it on a device that nothing else has changed are looked at once more.
    fn wait_on(&mut self, slot: usize, place: Place, of: impl Fn(&mut DeviceState) -> &mut Option<Place>) {
        let number = self.partitions.device_of(slot);
        let first = of(&mut self.devices[number]);
        if first.map_or(true, |earlier| place < earlier) {
            *first = Some(place);
            if !self.settling.contains(number) {
                self.again.mark(number);
            }
        }
    }

    /// A task does not wait any more.
    pub(super) fn let_through(&mut self, place: Place) {
        self.withdraw(place, &Fit::Behind);
    }

    /// Who was behind a task may go on, on the devices that it has waited for so far and does not by `fit`.
    fn withdraw(&mut self, place: Place, fit: &Fit) {
        let [short, seat]: [Option<&Slots>; 2] = match fit {
            Fit::Short(slots) => [Some(slots), None],
            Fit::Seat(slots) => [None, Some(slots)],
            Fit::Here(_) | Fit::Behind => [None, None],
        };
        for (number, device) in self.devices.iter_mut().enumerate() {
            for (first, of) in [(&mut device.blocked, short), (&mut device.awaited, seat)] {
                // Only what no partition keeps of a device is waited for on several: its slot has the device's number.
                let stays = of.is_some_and(|slots| slots.iter().any(|slot| slot == number));
                if *first == Some(place) && !stays {
                    *first = None;
                    self.again.mark(number);
                }
            }
        }
    }

    /// Memory and share are the task's, on all of the slots.
    pub(super) fn take_room(&mut self, key: Key, slots: Slots, now: u64) {
        let task = &mut self.tasks[key];
        let (request, before, entered) = (task.spec.reservation(), task.slots.first, task.entered);
        if entered && before != slots.first {
            self.partitions.at_mut(before).tasks -= 1;
            self.partitions.at_mut(slots.first).tasks += 1;
        }
        let gang = !slots.others.is_empty();
        for slot in slots.iter() {
            self.partitions.ledger_mut(slot).take(slot, request);
            let number = self.partitions.device_of(slot);
            let device = &mut self.devices[number];
            // One of several devices that waits for this one may have to wait for others, or for something else here.
            let wide = |(_, key): Place| !matches!(self.tasks[key].site, Site::One(_));
            if device.blocked.into_iter().chain(device.awaited).any(wide) {
                self.unsettled.mark(number);
                self.again.mark(number);
            }
            device.tasks += 1;
            if gang {
                device.seat = Some(key);
            }
        }
        let device = self.partitions.device_of(slots.first) as u32;
        let task = &mut self.tasks[key];
        (task.slots, task.device) = (slots, device);
        task.hold(Some(request), now);
    }

    /// What a task holds goes back; false when it held nothing.
    pub(super) fn give_back(&mut self, key: Key, now: u64) -> bool {
        let task = &mut self.tasks[key];
        let Some(reserved) = task.hold(None, now) else {
            return false;
        };
        let gang = !task.slots.others.is_empty();
        for slot in self.tasks[key].slots.iter() {
            self.partitions.ledger_mut(slot).release(slot, reserved);
            let number = self.partitions.device_of(slot);
            let device = &mut self.devices[number];
            device.tasks -= 1;
            if gang {
                device.seat = None;
            }
            self.unsettled.mark(number);
        }
        true
    }

    /// Something has changed on the devices of a task, or may have.
    pub(super) fn unsettle(&mut self, key: Key) {
        let task = &self.tasks[key];
        if let Site::Any(_) = task.site {
            return self.unsettle_all();
        }
        for slot in task.slots.iter() {
            self.unsettled.mark(self.partitions.device_of(slot));
        }
    }

    pub(super) fn unsettle_all(&mut self) {
        (0..self.partitions.devices()).for_each(|device| self.unsettled.mark(device));
    }

    /// What a task is on; nothing while it leaves the choice and waits.
    pub(super) fn devices_of(&self, task: &Task) -> DeviceList {
        if !task.is_placed() {
            return DeviceList::default();
        }
        // Slots beside the first have their devices' numbers: no partition is of several.
        DeviceList {
            first: Some(task.device),
            others: task.slots.others.iter().map(|&slot| slot as u32).collect(),
        }
    }

    fn candidate(&self, slot: usize) -> Candidate {
        Candidate {
            device: slot,
            reserved_ppm: self.partitions.ledger(slot).reserved_ppm(),
            tasks: self.devices[slot].tasks,
        }
    }

    /// It waits for none: it asks for nothing that others could have.
    pub(super) fn asks_nothing(spec: &TaskSpec, site: &Site) -> bool {
        spec.reservation().is_empty() && site.count() == 1
    }
}
