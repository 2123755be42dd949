//! The in-memory front of the cache: least recently used goes first, above a number of bytes or after a time to live.

use super::entry::Key;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

struct Slot {
    payload: Arc<[u8]>,
    used: u64,
    expires_ns: u64,
}

pub struct Memory {
    slots: HashMap<Key, Slot>,
    /// Key by last use; uses are numbered.
    order: BTreeMap<u64, Key>,
    uses: u64,
    bytes: u64,
    capacity_bytes: u64,
    ttl_ns: u64,
}

impl Memory {
    pub fn new(capacity_bytes: u64, ttl_ns: u64) -> Memory {
        Memory {
            slots: HashMap::new(),
            order: BTreeMap::new(),
            uses: 0,
            bytes: 0,
            capacity_bytes,
            ttl_ns,
        }
    }

    pub fn get(&mut self, key: &Key, now: u64) -> Option<Arc<[u8]>> {
        let slot = self.slots.get_mut(key)?;
        if slot.expires_ns <= now {
            self.remove(key);
            return None;
        }
        self.order.remove(&slot.used);
        self.uses += 1;
        slot.used = self.uses;
        self.order.insert(self.uses, *key);
        Some(slot.payload.clone())
    }

    /// A payload larger than the whole capacity is not kept.
    pub fn put(&mut self, key: Key, payload: Arc<[u8]>, now: u64) {
        self.remove(&key);
        let bytes = payload.len() as u64;
        if bytes > self.capacity_bytes {
            return;
        }
        while self.bytes + bytes > self.capacity_bytes {
            let Some((_, oldest)) = self.order.first_key_value() else {
                break;
            };
            let oldest = *oldest;
            self.remove(&oldest);
        }
        self.uses += 1;
        self.bytes += bytes;
        self.order.insert(self.uses, key);
        self.slots.insert(
            key,
            Slot {
                payload,
                used: self.uses,
                expires_ns: now.saturating_add(self.ttl_ns),
            },
        );
    }

    pub fn remove(&mut self, key: &Key) -> bool {
        let Some(slot) = self.slots.remove(key) else {
            return false;
        };
        self.order.remove(&slot.used);
        self.bytes -= slot.payload.len() as u64;
        true
    }

    /// Least recently used first.
    pub fn keys(&self) -> Vec<Key> {
        self.order.values().copied().collect()
    }

    pub fn clear(&mut self) {
        (self.slots, self.order, self.bytes) = (HashMap::new(), BTreeMap::new(), 0);
    }

    /// (entries, bytes).
    pub fn usage(&self) -> (u64, u64) {
        (self.slots.len() as u64, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::digest;

    fn payload(bytes: usize) -> Arc<[u8]> {
        vec![7; bytes].into()
    }

    #[test]
    fn least_recently_used_goes_first() {
        let mut memory = Memory::new(100, u64::MAX);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|k| digest([k]));
        memory.put(a, payload(40), 0);
        memory.put(b, payload(40), 0);
        assert!(memory.get(&a, 0).is_some());
        memory.put(c, payload(40), 0);
        assert!(memory.get(&b, 0).is_none() && memory.get(&a, 0).is_some() && memory.get(&c, 0).is_some());
        memory.put(d, payload(101), 0);
        assert!(memory.get(&d, 0).is_none());
        assert_eq!(memory.usage(), (2, 80));
        memory.put(a, payload(10), 0);
        assert_eq!(memory.usage(), (2, 50));
        assert!(memory.remove(&a) && !memory.remove(&a));
        memory.clear();
        assert_eq!((memory.usage(), memory.get(&c, 0)), ((0, 0), None));
    }

    #[test]
    fn entries_live_as_long_as_told() {
        let mut memory = Memory::new(100, 50);
        let a = digest(["a"]);
        memory.put(a, payload(10), 100);
        assert!(memory.get(&a, 149).is_some());
        assert!(memory.get(&a, 150).is_none());
        assert_eq!(memory.usage(), (0, 0));
    }
}
