//! How many blocks a slice has: whole waves that fill the quantum, by a moving average of what a block costs.

use std::collections::HashMap;
use std::hash::Hash;

pub const DEFAULT_QUANTUM_NS: u64 = 100_000;
/// Below this a slice costs more to launch than it gives others.
pub const MIN_QUANTUM_NS: u64 = 25_000;
pub const MAX_QUANTUM_NS: u64 = 5_000_000;

/// Part of a new measurement in the average, as a shift: 1/4. Two agreeing ones after a change halve the error.
const WEIGHT_SHIFT: u32 = 2;
/// A device time is kept in this fraction of a nanosecond: blocks of a large grid take less than one.
const PICO: u128 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    pub multiprocessors: u32,
    /// Of this kernel and launch: the occupancy.
    pub blocks_per_multiprocessor: u32,
}

impl Device {
    /// Blocks that run at once.
    pub fn wave(&self) -> u64 {
        u64::from(self.multiprocessors.max(1)) * u64::from(self.blocks_per_multiprocessor.max(1))
    }
}

/// Sizes of slices by kernel and shape (`K`).
#[derive(Clone, Debug)]
pub struct Sizer<K> {
    quantum_ns: u64,
    block_ps: HashMap<K, u64>,
}

impl<K: Hash + Eq> Sizer<K> {
    /// None when the quantum is out of range (MIN_QUANTUM_NS to MAX_QUANTUM_NS).
    pub fn new(quantum_ns: u64) -> Option<Sizer<K>> {
        (MIN_QUANTUM_NS..=MAX_QUANTUM_NS).contains(&quantum_ns).then(|| Sizer {
            quantum_ns,
            block_ps: HashMap::new(),
        })
    }

    /// What a launch or slice of `blocks` blocks took on the device.
    pub fn observe(&mut self, kernel: K, blocks: u64, device_ns: u64) {
        if blocks == 0 {
            return;
        }
        let new = u64::try_from(u128::from(device_ns) * PICO / u128::from(blocks)).unwrap_or(u64::MAX);
        let average = self.block_ps.entry(kernel).or_insert(new);
        *average = *average - (*average >> WEIGHT_SHIFT) + (new >> WEIGHT_SHIFT);
    }

    /// Picoseconds of device time for each block; None before the first measurement.
    pub fn block_ps(&self, kernel: &K) -> Option<u64> {
        self.block_ps.get(kernel).copied()
    }

    /// Blocks of a slice: the whole waves that fit into the quantum, at least one. One before the first measurement.
    pub fn blocks(&self, kernel: &K, device: Device) -> u64 {
        let wave = device.wave();
        let waves = match self.block_ps(kernel) {
            None => 1,
            Some(block_ps) => {
                let fitting = u128::from(self.quantum_ns) * PICO / u128::from(block_ps.max(1));
                u64::try_from(fitting).unwrap_or(u64::MAX) / wave
            }
        };
        wave.saturating_mul(waves.max(1))
    }
}
