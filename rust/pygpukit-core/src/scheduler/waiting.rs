//! Tasks that wait for memory or share: a line for each place where they may be, and the heads of all lines in service order.

use super::key::Key;
use super::queue::{Place, ServiceQueue};
use crate::hash::Seeded;
use crate::partition::Site;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// Numbers from here on are of lines of several devices; those below are slots, each with a line of its own.
const WIDE: usize = 1 << 32;

/// The devices on which a line waits for something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Reach {
    #[default]
    Nothing,
    On(usize),
    Several(Arc<[usize]>),
    Every,
}

#[derive(Default)]
struct Line {
    queue: ServiceQueue,
    reach: Reach,
    /// Unfinished tasks whose line it is, in it or not: of lines of several devices.
    users: usize,
}

type Heads = BTreeSet<(Place, usize)>;

/// A task waits behind the earlier ones of its own line; which heads may pass which is the caller's business.
#[derive(Default)]
pub(super) struct WaitingLines {
    slots: Vec<Line>,
    wide: Vec<Line>,
    numbers: HashMap<Site, usize, Seeded>,
    /// Lines of several devices that nobody uses.
    spare: Vec<usize>,
    /// By device, of the lines that reach it and not every other; and of those that reach every device.
    heads: Vec<Heads>,
    everywhere: Heads,
}

impl WaitingLines {
    /// The line of a task that comes; `leave` when it has ended. device: of a slot.
    pub fn enter(&mut self, site: &Site, device: impl Fn(usize) -> usize) -> usize {
        if let Site::One(slot) = site {
            if self.slots.len() <= *slot {
                self.slots.resize_with(slot + 1, Line::default);
            }
            self.slots[*slot].reach = Reach::On(device(*slot));
            return *slot;
        }
        let number = self.numbers.get(site).copied().unwrap_or_else(|| {
            let index = self.spare.pop().unwrap_or_else(|| {
                self.wide.push(Line::default());
                self.wide.len() - 1
            });
            self.wide[index].reach = match site {
                Site::All(slots) => Reach::Several(slots.iter().map(|&slot| device(slot)).collect()),
                _ => Reach::Every,
            };
            self.numbers.insert(site.clone(), WIDE + index);
            WIDE + index
        });
        self.wide[number - WIDE].users += 1;
        number
    }

    pub fn leave(&mut self, site: &Site, line: usize) {
        let Some(index) = line.checked_sub(WIDE) else { return };
        self.wide[index].users -= 1;
        if self.wide[index].users == 0 {
            self.numbers.remove(site);
            self.spare.push(index);
        }
    }

    /// The line of a site, if it has one.
    pub fn line_of(&self, site: &Site) -> Option<usize> {
        match site {
            Site::One(slot) => Some(*slot),
            site => self.numbers.get(site).copied(),
        }
    }

    pub fn insert(&mut self, line: usize, priority: i32, key: Key) {
        let before = self.head(line);
        self.line_mut(line).queue.insert(priority, key);
        self.relist(line, before);
    }

    pub fn remove(&mut self, line: usize, priority: i32, key: Key) -> bool {
        let before = self.head(line);
        let removed = self.line(line).is_some() && self.line_mut(line).queue.remove(priority, key);
        if removed {
            self.relist(line, before);
        }
        removed
    }

    /// The number as events have it: of several devices from 2^31 on.
    pub fn short(line: usize) -> u32 {
        match line.checked_sub(WIDE) {
            None => line as u32,
            Some(index) => 1 << 31 | index as u32,
        }
    }

    /// How many tasks of its line are served before one of this priority and key.
    pub fn ahead_of(&self, line: usize, priority: i32, key: Key) -> usize {
        self.line(line).map_or(0, |line| line.queue.ahead_of(priority, key))
    }

    /// Tasks in a line.
    pub fn len(&self, line: usize) -> usize {
        self.line(line).map_or(0, |line| line.queue.len())
    }

    /// The first task of a line.
    pub fn first(&self, line: usize) -> Option<Key> {
        Some(self.head(line)?.1)
    }

    /// The first head after a place, or the very first, of the lines that reach one of the devices.
    pub fn head_after(&self, place: Option<Place>, devices: &[usize]) -> Option<(Place, usize)> {
        let first = |heads: &Heads| match place {
            None => heads.first().copied(),
            Some(place) => {
                let later = (Bound::Excluded((place, usize::MAX)), Bound::Unbounded);
                heads.range(later).next().copied()
            }
        };
        let on_devices = devices.iter().filter_map(|&device| first(self.heads.get(device)?));
        on_devices.chain(first(&self.everywhere)).min()
    }

    /// Tasks in lines of one device, and in those of this one among others.
    pub fn on_device(&self, device: usize) -> (usize, usize) {
        let (mut own, mut wide) = (0, 0);
        for line in self.lines() {
            match &line.reach {
                Reach::On(on) if *on == device => own += line.queue.len(),
                Reach::Several(devices) if devices.contains(&device) => wide += line.queue.len(),
                Reach::Every => wide += line.queue.len(),
                _ => {}
            }
        }
        (own, wide)
    }

    /// Every task, of whichever line.
    pub fn in_service_order(&self) -> Vec<Key> {
        let mut all: Vec<_> = self.lines().flat_map(|line| line.queue.places()).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, key)| key).collect()
    }

    /// (key, tasks ahead of it in its line) of every task.
    pub fn places(&self) -> impl Iterator<Item = (Key, usize)> + '_ {
        self.lines()
            .flat_map(|line| line.queue.iter().enumerate().map(|(ahead, key)| (key, ahead)))
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.slots.iter().chain(&self.wide)
    }

    fn line(&self, line: usize) -> Option<&Line> {
        match line.checked_sub(WIDE) {
            None => self.slots.get(line),
            Some(index) => self.wide.get(index),
        }
    }

    fn line_mut(&mut self, line: usize) -> &mut Line {
        match line.checked_sub(WIDE) {
            None => &mut self.slots[line],
            Some(index) => &mut self.wide[index],
        }
    }

    fn head(&self, line: usize) -> Option<Place> {
        let (priority, key) = self.line(line)?.queue.first()?;
        Some((Reverse(priority), key))
    }

    fn relist(&mut self, line: usize, before: Option<Place>) {
        let after = self.head(line);
        if before == after {
            return;
        }
        let reach = self.line(line).map_or(Reach::Nothing, |line| line.reach.clone());
        let relist_on = |heads: &mut Heads| {
            if let Some(place) = before {
                heads.remove(&(place, line));
            }
            if let Some(place) = after {
                heads.insert((place, line));
            }
        };
        let devices: &[usize] = match &reach {
            Reach::Nothing => &[],
            Reach::On(device) => std::slice::from_ref(device),
            Reach::Several(devices) => devices,
            Reach::Every => return relist_on(&mut self.everywhere),
        };
        for &device in devices {
            if self.heads.len() <= device {
                self.heads.resize_with(device + 1, Heads::default);
            }
            relist_on(&mut self.heads[device]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(waiting: &WaitingLines, devices: &[usize]) -> Vec<u64> {
        let mut place = None;
        let mut heads = Vec::new();
        while let Some((next, _)) = waiting.head_after(place, devices) {
            heads.push(next.1.number);
            place = Some(next);
        }
        heads
    }

    #[test]
    fn heads_are_in_service_order() {
        let mut waiting = WaitingLines::default();
        for (slot, priority, number) in [(0, 0, 1), (2, 5, 2), (0, 7, 3), (2, 5, 4), (1, 0, 5)] {
            let line = waiting.enter(&Site::One(slot), |_| 0);
            waiting.insert(line, priority, Key::of(number));
        }
        assert_eq!(heads(&waiting, &[0]), [3, 2, 5]);
        assert_eq!((waiting.first(0), waiting.first(3)), (Some(Key::of(3)), None));
        assert_eq!(
            (waiting.ahead_of(0, 0, Key::of(1)), waiting.ahead_of(2, 0, Key::LAST)),
            (1, 2)
        );
        assert!(
            waiting.remove(0, 7, Key::of(3)) && !waiting.remove(0, 7, Key::of(3)) && !waiting.remove(9, 0, Key::of(1))
        );
        assert_eq!(waiting.head_after(None, &[0]), Some(((Reverse(5), Key::of(2)), 2)));
        assert_eq!(
            waiting.places().collect::<Vec<_>>(),
            [(1, 0), (5, 0), (2, 0), (4, 1)].map(|(number, ahead)| (Key::of(number), ahead))
        );
    }

    #[test]
    fn a_line_of_several_devices_is_listed_on_each_and_goes_with_its_last_task() {
        let mut waiting = WaitingLines::default();
        let pair = Site::All([0, 2].into());
        let sites = [Site::One(0), pair.clone(), Site::Any(2), Site::One(1), pair.clone()];
        let lines: Vec<usize> = sites.iter().map(|site| waiting.enter(site, |slot| slot)).collect();
        for (number, &line) in lines.iter().enumerate() {
            waiting.insert(line, 0, Key::of(number as u64));
        }
        assert_eq!(lines[1], lines[4]);
        assert_eq!(heads(&waiting, &[0]), [0, 1, 2]);
        assert_eq!(heads(&waiting, &[2, 0, 1]), [0, 1, 2, 3]);
        assert_eq!(heads(&waiting, &[7]), [2]);
        assert!(waiting.remove(lines[1], 0, Key::of(1)));
        assert_eq!(heads(&waiting, &[2]), [2, 4]);
        assert!(waiting.remove(lines[4], 0, Key::of(4)));
        waiting.leave(&pair, lines[1]);
        assert_eq!(waiting.line_of(&pair), Some(lines[1]));
        waiting.leave(&pair, lines[4]);
        assert_eq!(waiting.line_of(&pair), None);
        let other = Site::All([1, 2].into());
        assert_eq!(waiting.enter(&other, |slot| slot), lines[1], "its number is used again");
    }
}
