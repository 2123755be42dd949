//! Chunk slots: one for each piece of a segment, free or live, with ids that are never given out twice.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::host::HostCopy;
use super::Owner;

/// No slot.
pub(super) const NIL: u32 = u32::MAX;
const STATES_A_CHUNK: usize = if cfg!(loom) { 2 } else { 256 };

/// What launchers and the pool share about a block without a lock. A launcher pins, checks resident, launches, unpins; the evictor
/// clears resident first and backs off when pins != 0 (both sequentially consistent).
#[repr(C)]
#[derive(Default)]
pub struct BlockState {
    pub pins: AtomicU32,
    pub resident: AtomicU32,
    /// Any increasing tick (the pool writes clock nanoseconds): the key of eviction order.
    pub last_use: AtomicU64,
}

/// What a chunk is. Only Free chunks are in the best-fit index, and only they may be split or merged there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Slot without a chunk.
    Vacant,
    /// In the best-fit index.
    Free,
    /// Free, in a segment without physical memory.
    Unbacked,
    /// In a stream's list, at its class size.
    Quick,
    /// Freed, but other streams have not passed their last use.
    Pending,
    /// A block on the device.
    Live,
    /// A block on its way to or from the host.
    Moving,
    /// A block whose contents are in host memory.
    Host,
}

pub(super) struct Slot {
    pub generation: u32,
    pub status: Status,
    pub small: bool,
    /// Index of the stream that a block belongs to, or that a Quick chunk was freed on.
    pub stream: u32,
    /// Next in a quick list or in the list of vacant slots.
    pub next: u32,
    pub address: u64,
    pub bytes: u64,
    pub owner: Owner,
    /// Neighbours in the segment.
    pub left: u32,
    pub right: u32,
    /// Of a block: other streams that use it. Of a Free chunk: streams whose work the memory must be ordered after.
    pub streams: Vec<u32>,
    /// The host copy while Host.
    pub host: HostCopy,
}

/// All slots. Block states live in chunks that never move, so that their addresses stay valid as long as the pool.
pub(super) struct Slab {
    slots: Vec<Slot>,
    vacant: u32,
    states: Vec<Box<[BlockState; STATES_A_CHUNK]>>,
}

impl std::ops::Index<u32> for Slab {
    type Output = Slot;
    #[inline]
    fn index(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Slab {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }
}

impl Slab {
    pub fn new() -> Slab {
        Slab {
            slots: Vec::new(),
            vacant: NIL,
            states: Vec::new(),
        }
    }

    /// Every stream that a chunk names, as often as one does.
    pub fn named_streams(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter()
            .flat_map(|(_, s)| s.streams.iter().copied().chain([s.stream]))
    }

    /// A slot for a chunk, with no neighbours.
    pub fn take(&mut self, address: u64, bytes: u64, small: bool, status: Status) -> u32 {
        let mut slot = self.vacant;
        if slot == NIL {
            slot = self.slots.len() as u32;
            if self.slots.len() % STATES_A_CHUNK == 0 {
                self.states
                    .push(Box::new(std::array::from_fn(|_| BlockState::default())));
            }
            self.slots.push(Slot {
                generation: 1,
                status,
                small,
                stream: 0,
                next: NIL,
                address,
                bytes,
                owner: Owner::default(),
                left: NIL,
                right: NIL,
                streams: Vec::new(),
                host: HostCopy::default(),
            });
        } else {
            let s = &mut self.slots[slot as usize];
            self.vacant = s.next;
            (s.address, s.bytes, s.small, s.status) = (address, bytes, small, status);
            (s.next, s.left, s.right) = (NIL, NIL, NIL);
            s.streams.clear();
        }
        slot
    }

    pub fn give_back(&mut self, slot: u32) {
        self.slots[slot as usize].status = Status::Vacant;
        self.slots[slot as usize].next = self.vacant;
        self.vacant = slot;
    }

    /// Makes the slot's present id invalid for ever. When a slot has used up its generations, its chunk moves to another slot and the
    /// old one stays empty; returns the slot that the chunk is in now.
    #[inline]
    pub fn retire_id(&mut self, slot: u32) -> u32 {
        match self.slots[slot as usize].generation.checked_add(1) {
            Some(next) => {
                self.slots[slot as usize].generation = next;
                slot
            }
            None => self.relocate(slot),
        }
    }

    #[cold]
    fn relocate(&mut self, old: u32) -> u32 {
        let (address, bytes, small, status) = {
            let s = &self[old];
            (s.address, s.bytes, s.small, s.status)
        };
        let new = self.take(address, bytes, small, status);
        let (left, right) = (self[old].left, self[old].right);
        let streams = std::mem::take(&mut self[old].streams);
        let (stream, owner) = (self[old].stream, self[old].owner);
        self[old].status = Status::Vacant;
        let s = &mut self[new];
        (s.left, s.right, s.streams, s.stream, s.owner) = (left, right, streams, stream, owner);
        if left != NIL {
            self[left].right = new;
        }
        if right != NIL {
            self[right].left = new;
        }
        new
    }

    #[inline]
    pub fn id(&self, slot: u32) -> u64 {
        u64::from(self.slots[slot as usize].generation) << 32 | u64::from(slot)
    }

    /// The slot of a block (Live, Moving or Host) by its id.
    #[inline]
    pub fn find(&self, id: u64) -> Option<u32> {
        let slot = id as u32;
        let s = self.slots.get(slot as usize)?;
        let block = matches!(s.status, Status::Live | Status::Moving | Status::Host);
        (block && u64::from(s.generation) == id >> 32).then_some(slot)
    }

    #[inline]
    pub fn state(&self, slot: u32) -> &BlockState {
        &self.states[slot as usize / STATES_A_CHUNK][slot as usize % STATES_A_CHUNK]
    }

    pub fn pins(&self, slot: u32) -> u32 {
        self.state(slot).pins.load(Ordering::SeqCst)
    }

    /// Every slot that holds a chunk.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0u32..)
            .zip(self.slots.iter())
            .filter(|(_, s)| s.status != Status::Vacant)
    }

    #[cfg(test)]
    pub fn set_generation(&mut self, slot: u32, generation: u32) {
        self[slot].generation = generation;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_never_reused() {
        let mut slab = Slab::new();
        let a = slab.take(0, 256, true, Status::Live);
        let b = slab.take(256, 256, true, Status::Live);
        (slab[a].right, slab[b].left) = (b, a);
        let first = slab.id(a);
        assert_eq!(slab.find(first), Some(a));
        assert_eq!(slab.retire_id(a), a);
        assert_eq!(slab.find(first), None);
        slab.set_generation(a, u32::MAX);
        let last = slab.id(a);
        let moved = slab.retire_id(a);
        assert_ne!(moved, a);
        assert_eq!(slab.find(last), None);
        assert_eq!((slab[b].left, slab[moved].right, slab[moved].address), (moved, b, 0));
        slab.give_back(moved);
        assert_ne!(slab.take(0, 256, true, Status::Live), a, "a used-up slot stays empty");
    }
}
