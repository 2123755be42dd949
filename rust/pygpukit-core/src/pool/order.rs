//! Order among streams: events that say when freed memory may be reused, and who waits for them.

use super::state::Pending;
use super::{class_of, Pool, PoolResult};
use crate::driver::DriverResult;

impl Pool {
    pub(super) fn recycle(&self, events: Vec<u64>) {
        self.lock_events().extend(events);
    }

    /// One recorded event for each stream that still exists. Holding the events keeps `retire_stream` away meanwhile.
    pub(super) fn record_events(&self, streams: &[u32]) -> DriverResult<Vec<u64>> {
        let mut cached = self.lock_events();
        let handles: Vec<u64> = {
            let st = self.lock();
            let alive = streams.iter().filter(|&&s| !st.streams[s].retired);
            alive.map(|&s| st.streams[s].handle).collect()
        };
        let mut events = Vec::with_capacity(handles.len());
        for stream in handles {
            let event = cached.pop().map_or_else(|| self.driver.event_create(), Ok);
            let recorded = event.and_then(|event| {
                events.push(event);
                self.driver.event_record(event, stream)
            });
            if let Err(error) = recorded {
                cached.extend(events);
                return Err(error);
            }
        }
        Ok(events)
    }

    /// One event, recorded on a stream that exists.
    pub(super) fn record_event(&self, stream: u64) -> DriverResult<u64> {
        let cached = self.lock_events().pop();
        let event = cached.map_or_else(|| self.driver.event_create(), Ok)?;
        let recorded = self.driver.event_record(event, stream);
        recorded.map(|()| event).inspect_err(|_| self.recycle(vec![event]))
    }

    /// Work enqueued on the stream of handle `stream` from now on comes after all that the streams `after` have now.
    pub(super) fn order(&self, stream: u64, after: &[u32]) -> DriverResult<()> {
        let events = self.record_events(after)?;
        let waited = events
            .iter()
            .try_for_each(|&event| match self.driver.event_done(event)? {
                true => Ok(()),
                false => self.driver.stream_wait_event(stream, event),
            });
        self.recycle(events);
        waited
    }

    /// To be called before a stream is destroyed: waits for it, and gives the memory cached for it to every stream. After a fault on
    /// the stream, which is returned, it is gone all the same.
    pub fn retire_stream(&self, stream: u64) -> PoolResult<()> {
        let waited = self.wait_for_copy(stream);
        let _slow = self.lock_slow();
        let _events = self.lock_events(); // nobody is about to record an event on it
        self.lock().retire_stream(stream);
        Ok(waited?)
    }

    /// Pending blocks whose streams have passed go to their own stream's lists.
    pub(super) fn poll_pending(&self) -> DriverResult<()> {
        let waiting = std::mem::take(&mut self.lock().pending);
        let mut failed = None;
        for pending in waiting {
            let done = match failed {
                None => pending
                    .events
                    .iter()
                    .try_fold(true, |done, &event| Ok(done && self.driver.event_done(event)?)),
                Some(_) => Ok(false),
            };
            let mut st = self.lock();
            if let Ok(true) = done {
                let slot = pending.slot;
                st.slab[slot].streams.clear();
                let class = class_of(st.slab[slot].bytes).expect("a block's size is a class");
                st.put_quick(slot, class);
                drop(st);
                self.recycle(pending.events);
            } else {
                st.pending.push(pending);
                failed = failed.or(done.err());
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Everything free, pending or cached becomes as few chunks as there can be; whoever takes one is ordered after its streams.
    pub(super) fn merge_everything(&self) {
        let mut unused = Vec::new();
        let mut st = self.lock();
        for Pending { slot, events } in std::mem::take(&mut st.pending) {
            st.insert_pending(slot);
            unused.extend(events);
        }
        st.merge_all();
        drop(st);
        self.recycle(unused);
    }
}
