//! Free memory and streams: lists of chunks that need no order, and what becomes of them without their stream.

use super::State;
use crate::pool::classes::Class;
use crate::pool::slab::Status;

impl State {
    #[inline]
    pub fn pop_quick(&mut self, class: Class, stream: u32) -> Option<u32> {
        self.streams[stream].pop(&self.slab, class)
    }

    /// A chunk whose work is ordered by its own stream alone: to that stream's lists, or to everyone when the stream is gone.
    #[inline]
    pub fn put_quick(&mut self, slot: u32, class: Class) {
        let stream = self.slab[slot].stream;
        if self.streams[stream].retired {
            self.slab[slot].streams.clear();
            self.insert_free(slot, Status::Free, false);
        } else {
            self.slab[slot].status = Status::Quick;
            self.streams[stream].push(&mut self.slab, class, slot);
        }
    }

    /// A stream's lists go back to the index; true when there was anything.
    pub fn flush_stream(&mut self, stream: u32) -> bool {
        let slots = self.streams[stream].drain(&self.slab);
        let after: &[u32] = if self.streams[stream].retired { &[] } else { &[stream] };
        for &slot in &slots {
            self.slab[slot].streams.clear();
            self.slab[slot].streams.extend_from_slice(after);
            self.insert_free(slot, Status::Free, false);
        }
        !slots.is_empty()
    }

    /// The stream is idle and about to go: its memory needs no order. No other call may be at work with indices of streams.
    pub fn retire_stream(&mut self, handle: u64) {
        let stream = self.streams.index_of(handle);
        if stream != 0 {
            self.streams.retire(stream);
            self.flush_stream(stream);
        }
        if self.streams.crowded() {
            self.streams.forget_unnamed(self.slab.named_streams());
        }
    }

    /// A pending chunk that nobody waits for any more: free, to be ordered after all its streams.
    pub fn insert_pending(&mut self, slot: u32) {
        let own = self.slab[slot].stream;
        let streams = &mut self.slab[slot].streams;
        streams.push(own);
        streams.sort_unstable();
        streams.dedup();
        self.insert_free(slot, Status::Free, false);
    }

    /// Everything free becomes as few chunks as there can be, whatever streams it was used on.
    pub fn merge_all(&mut self) {
        for stream in 0..self.streams.len() {
            self.flush_stream(stream);
        }
        let segments: Vec<u64> = self
            .segments
            .iter()
            .filter(|(_, s)| s.mapped)
            .map(|(&address, _)| address)
            .collect();
        for segment in segments {
            for slot in self.chunks(segment) {
                if self.slab[slot].status == Status::Free {
                    self.index.remove(&self.slab, slot);
                    self.insert_free(slot, Status::Free, true);
                }
            }
        }
    }
}
