//! A quick hasher for tables of short keys: folded multiplication, eight bytes at a time, from a random start for each table.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The fractional part of the golden ratio: odd, with its bits well mixed.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Makes hashers; tables that are made apart differ in their start.
#[derive(Clone, Copy, Debug)]
pub struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Seeded {
        Seeded(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// The state is the product's upper half folded onto its lower one.
#[derive(Clone, Copy, Debug)]
pub struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.write_u64(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let last = words
            .remainder()
            .iter()
            .fold(bytes.len() as u64, |last, &byte| last << 8 | u64::from(byte));
        self.write_u64(last);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(FACTOR);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn neighbours_fall_apart() {
        let seed = Seeded(12345);
        let texts = (0..20_000).map(|i| seed.hash_one(format!("task-{i}").as_str()));
        let hashes: HashSet<u64> = texts.chain((0..20_000u64).map(|i| seed.hash_one(i))).collect();
        assert_eq!(hashes.len(), 40_000);
        for shift in [0, 57] {
            let buckets: HashSet<u64> = hashes.iter().map(|hash| hash >> shift & 127).collect();
            assert_eq!(buckets.len(), 128, "the bits that tables look at, from {shift}");
        }
    }

    #[test]
    fn lengths_and_starts_count() {
        let seed = Seeded(1);
        let hashes: HashSet<u64> = ["", "\0", "\0\0", "\0\0\0\0\0\0\0\0", "a", "a\0"]
            .map(|text| seed.hash_one(text))
            .into();
        assert_eq!(hashes.len(), 6);
        assert_ne!(Seeded(1).hash_one("a"), Seeded(2).hash_one("a"));
        assert_ne!(Seeded::default().hash_one("a"), Seeded::default().hash_one("a"));
    }
}
