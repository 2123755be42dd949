//! Segments: the chunks of each, and whether its free memory can be handed out.

use super::{Segment, State};
use crate::pool::slab::{Status, NIL};

impl State {
    /// Address of the segment that holds a chunk's address.
    pub fn segment_of(&self, address: u64) -> u64 {
        self.segment_holding(address).expect("every chunk lies in a segment")
    }

    pub fn segment_holding(&self, address: u64) -> Option<u64> {
        let (&start, segment) = self.segments.range(..=address).next_back()?;
        (address < start + segment.bytes).then_some(start)
    }

    /// Slots of a segment's chunks in address order.
    pub fn chunks_of(&self, segment: &Segment) -> impl Iterator<Item = u32> + '_ {
        let there = |slot: u32| (slot != NIL).then_some(slot);
        std::iter::successors(there(segment.first), move |&slot| there(self.slab[slot].right))
    }

    /// As `chunks_of`, for who changes them.
    pub fn chunks(&self, segment: u64) -> Vec<u32> {
        let entry = self.segments.get(&segment);
        entry.map_or_else(Vec::new, |segment| self.chunks_of(segment).collect())
    }

    /// A new mapped segment: one Free chunk. Its memory is counted already.
    pub fn add_segment(&mut self, address: u64, bytes: u64, small: bool, physical: u64) {
        let first = self.slab.take(address, bytes, small, Status::Free);
        self.index.insert(&self.slab, first);
        let segment = Segment {
            bytes,
            first,
            physical: Some(physical),
            mapped: true,
            exports: 0,
        };
        self.segments.insert(address, segment);
        self.counts.cached += bytes;
        self.counts.free_chunks += 1;
        self.counts.segments_created += 1;
    }

    /// An address range that never got memory and that the device does not take back yet.
    pub fn add_address(&mut self, address: u64, bytes: u64, small: bool) {
        let first = self.slab.take(address, bytes, small, Status::Unbacked);
        let segment = Segment {
            bytes,
            first,
            physical: None,
            mapped: false,
            exports: 0,
        };
        self.segments.insert(address, segment);
        self.counts.free_chunks += 1;
    }

    /// Takes a segment without blocks and without physical memory out of the books.
    pub fn remove_segment(&mut self, address: u64) {
        for slot in self.chunks(address) {
            self.slab.give_back(slot);
            self.counts.free_chunks -= 1;
        }
        self.segments.remove(&address);
    }

    /// Counts one more process that may map a segment; returns the export's number.
    pub fn begin_export(&mut self, segment: u64) -> u64 {
        self.exports.last += 1;
        self.exports.segments.insert(self.exports.last, segment);
        self.segments.get_mut(&segment).expect("a segment").exports += 1;
        self.exports.last
    }

    /// The process of an export no longer maps its segment; false if the export has ended already.
    pub fn end_export(&mut self, number: u64) -> bool {
        let Some(segment) = self.exports.segments.remove(&number) else {
            return false;
        };
        self.segments
            .get_mut(&segment)
            .expect("exports end with their segment")
            .exports -= 1;
        true
    }

    /// The segment's physical memory is gone: whoever maps it still has it alone.
    pub fn end_exports_of(&mut self, segment: u64) {
        self.exports.segments.retain(|_, of| *of != segment);
        if let Some(segment) = self.segments.get_mut(&segment) {
            segment.exports = 0;
        }
    }

    /// The segment's free memory can no longer be handed out.
    pub fn detach(&mut self, segment: u64) {
        for slot in self.chunks(segment) {
            if self.slab[slot].status == Status::Free {
                self.index.remove(&self.slab, slot);
                self.slab[slot].status = Status::Unbacked;
                self.counts.cached -= self.slab[slot].bytes;
            }
        }
    }

    /// Undoes `detach`.
    pub fn attach(&mut self, segment: u64) {
        for slot in self.chunks(segment) {
            if self.slab[slot].status == Status::Unbacked {
                self.slab[slot].status = Status::Free;
                self.counts.cached += self.slab[slot].bytes;
                self.index.insert(&self.slab, slot);
            }
        }
    }
}
