//! Where free memory waits: per-stream lists by class (a hit is a pop) and one best-fit index.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::classes::{Class, INDEXED};
use super::slab::{Slab, NIL};

/// Retired streams that need not be looked for.
const MIN_RETIRED: usize = 64;

/// What the pool knows of one stream.
pub(super) struct Stream {
    pub handle: u64,
    /// The number that records carry.
    pub id: u32,
    /// The stream was waited for and is gone: nothing needs ordering after it.
    pub retired: bool,
    heads: [u32; INDEXED],
    large: BTreeMap<u64, u32>,
    count: usize,
}

impl Stream {
    fn new(handle: u64, id: u32) -> Stream {
        Stream {
            handle,
            id,
            retired: false,
            heads: [NIL; INDEXED],
            large: BTreeMap::new(),
            count: 0,
        }
    }

    #[inline]
    pub fn push(&mut self, slab: &mut Slab, class: Class, slot: u32) {
        self.count += 1;
        match class.index {
            Some(index) => {
                slab[slot].next = self.heads[index];
                self.heads[index] = slot;
            }
            None => slab[slot].next = self.large.insert(class.bytes, slot).unwrap_or(NIL),
        }
    }

    #[inline]
    pub fn pop(&mut self, slab: &Slab, class: Class) -> Option<u32> {
        let slot = match class.index {
            Some(index) => {
                let slot = self.heads[index];
                if slot == NIL {
                    return None;
                }
                self.heads[index] = slab[slot].next;
                slot
            }
            None => {
                let slot = self.large.remove(&class.bytes)?;
                if slab[slot].next != NIL {
                    self.large.insert(class.bytes, slab[slot].next);
                }
                slot
            }
        };
        self.count -= 1;
        Some(slot)
    }

    /// Empties every list.
    pub fn drain(&mut self, slab: &Slab) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.count);
        if self.count > 0 {
            let large = std::mem::take(&mut self.large).into_values();
            let heads = std::mem::replace(&mut self.heads, [NIL; INDEXED]);
            for head in heads.into_iter().chain(large) {
                let mut slot = head;
                while slot != NIL {
                    slots.push(slot);
                    slot = slab[slot].next;
                }
            }
            self.count = 0;
        }
        slots
    }
}

/// All streams by index; index 0 is the default stream.
pub(super) struct Streams {
    all: Vec<Stream>,
    by_handle: HashMap<u64, u32>,
    last: (u64, u32),
    /// How many are retired and may still be named by a chunk.
    retired: usize,
    /// More than so many are worth a look through all chunks.
    max_retired: usize,
    /// Indices that nothing names any more.
    vacant: Vec<u32>,
}

impl std::ops::Index<u32> for Streams {
    type Output = Stream;
    #[inline]
    fn index(&self, stream: u32) -> &Stream {
        &self.all[stream as usize]
    }
}

impl std::ops::IndexMut<u32> for Streams {
    #[inline]
    fn index_mut(&mut self, stream: u32) -> &mut Stream {
        &mut self.all[stream as usize]
    }
}

impl Streams {
    pub fn new() -> Streams {
        Streams {
            all: vec![Stream::new(0, 0)],
            by_handle: HashMap::from([(0, 0)]),
            last: (0, 0),
            retired: 0,
            max_retired: MIN_RETIRED,
            vacant: Vec::new(),
        }
    }

    /// The index of a handle; a new one when it was never seen. A handle that was retired is a new stream now.
    #[inline]
    pub fn index_of(&mut self, handle: u64) -> u32 {
        if self.last.0 != handle {
            self.last = (handle, self.look_up(handle));
        }
        self.last.1
    }

    #[cold]
    fn look_up(&mut self, handle: u64) -> u32 {
        if let Some(&index) = self.by_handle.get(&handle) {
            let again = std::mem::replace(&mut self.all[index as usize].retired, false);
            self.retired -= usize::from(again);
            return index;
        }
        let index = self.vacant.pop().unwrap_or(self.all.len() as u32);
        let stream = Stream::new(handle, index);
        match self.all.get_mut(index as usize) {
            Some(place) => *place = stream,
            None => self.all.push(stream),
        }
        self.by_handle.insert(handle, index);
        index
    }

    pub fn retire(&mut self, stream: u32) {
        let before = std::mem::replace(&mut self.all[stream as usize].retired, true);
        self.retired += usize::from(!before);
        self.last = (0, 0);
    }

    /// Whether so many are retired that `forget_unnamed` is worth its while.
    pub fn crowded(&self) -> bool {
        self.retired > self.max_retired
    }

    /// Forgets every retired stream that no chunk names: its index is another stream's from now on. named: what chunks name, each as
    /// often as one does.
    pub fn forget_unnamed(&mut self, named: impl Iterator<Item = u32>) {
        let mut kept = vec![false; self.all.len()];
        let mut looked_at = 0;
        for stream in named {
            kept[stream as usize] = true;
            looked_at += 1;
        }
        let Streams { all, vacant, .. } = self;
        let before = vacant.len();
        self.by_handle.retain(|_, &mut index| {
            let keep = kept[index as usize] || !all[index as usize].retired;
            if !keep {
                vacant.push(index);
            }
            keep
        });
        self.retired -= vacant.len() - before;
        self.max_retired = MIN_RETIRED + 2 * self.retired + looked_at / 8;
    }

    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    /// The handle to enqueue work on for memory of this stream: the default stream once it is gone.
    pub fn handle(&self, stream: u32) -> u64 {
        let s = &self[stream];
        if s.retired {
            0
        } else {
            s.handle
        }
    }
}

/// Free chunks by (bytes, address): shared segments apart from large ones.
#[derive(Default)]
pub(super) struct FreeIndex([BTreeSet<(u64, u64, u32)>; 2]);

impl FreeIndex {
    pub fn insert(&mut self, slab: &Slab, slot: u32) {
        let s = &slab[slot];
        self.0[usize::from(s.small)].insert((s.bytes, s.address, slot));
    }

    pub fn remove(&mut self, slab: &Slab, slot: u32) {
        let s = &slab[slot];
        self.0[usize::from(s.small)].remove(&(s.bytes, s.address, slot));
    }

    /// The smallest chunk of at least `bytes`, lowest address first, that `accept` takes.
    pub fn best_fit(&self, bytes: u64, small: bool, mut accept: impl FnMut(u32) -> bool) -> Option<u32> {
        self.0[usize::from(small)]
            .range((bytes, 0, 0)..)
            .map(|entry| entry.2)
            .find(|&slot| accept(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_retired_streams_are_used_again_once_nothing_names_them() {
        let mut streams = Streams::new();
        let named = streams.index_of(1);
        streams.retire(named);
        for handle in 2..10_000 {
            let index = streams.index_of(handle);
            assert_ne!(index, named, "a chunk names it");
            streams.retire(index);
            if streams.crowded() {
                streams.forget_unnamed([0, named, named].into_iter());
            }
        }
        assert!(streams.len() < 200, "{} streams for one that lives", streams.len());
        assert_eq!((streams[named].handle, streams[named].retired), (1, true));
        assert_eq!(streams.index_of(1), named);
        assert!(!streams[named].retired, "it lives again");
    }
}
