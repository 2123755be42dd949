//! Which devices a task asks for, and the slots that it may have there.

use std::sync::Arc;

/// The devices that a task asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Devices {
    /// That of its partition.
    #[default]
    OfPartition,
    /// These, all together or none.
    All(Vec<u32>),
    /// So many, whichever.
    Any(u32),
}

/// The numbers of a task's devices, ascending: one costs no memory of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceList {
    /// None while none is chosen.
    pub first: Option<u32>,
    pub others: Box<[u32]>,
}

impl DeviceList {
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.first.into_iter().chain(self.others.iter().copied())
    }
}

/// The slots that a task may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Site {
    One(usize),
    /// Of several devices, all together or none.
    All(Arc<[usize]>),
    /// Of so many devices, whichever, what no partition keeps there.
    Any(usize),
}

impl Site {
    /// How many devices it comes to.
    pub fn count(&self) -> usize {
        match self {
            Site::One(_) => 1,
            Site::All(slots) => slots.len(),
            Site::Any(count) => *count,
        }
    }

    /// The slots that a task has before any is chosen for it.
    pub fn first(&self) -> Slots {
        match self {
            Site::One(slot) => Slots::one(*slot),
            Site::All(slots) => Slots::of(slots.iter().copied()),
            Site::Any(_) => Slots::one(0),
        }
    }
}

/// The slots of one task, one at least: a task of one device needs no memory of its own for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    pub first: usize,
    pub others: Box<[usize]>,
}

impl Slots {
    pub fn one(slot: usize) -> Slots {
        Slots {
            first: slot,
            others: Box::default(),
        }
    }

    /// Panics where there are none.
    pub fn of(mut slots: impl Iterator<Item = usize>) -> Slots {
        Slots {
            first: slots.next().expect("a task has a slot"),
            others: slots.collect(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}
