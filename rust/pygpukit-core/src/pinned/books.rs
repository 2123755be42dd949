//! The books of a pinned pool. No device call is made here.

use std::collections::BTreeMap;

use super::{PinnedConfig, PinnedError, PinnedResult};

/// A block of pinned memory at one moment. Times on the pool's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedBlock {
    pub id: u64,
    pub address: u64,
    /// As asked for.
    pub bytes: u64,
    /// As rounded.
    pub class_bytes: u64,
    pub task: Option<String>,
    pub allocated_ns: u64,
    pub last_use_ns: u64,
    holds: u32,
    freed: bool,
}

/// Bytes unless named otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PinnedStats {
    /// Of blocks in use, as rounded.
    pub used: u64,
    pub peak_used: u64,
    /// Kept for reuse.
    pub kept: u64,
    pub kept_blocks: u64,
    pub blocks: u64,
    pub allocations: u64,
    pub frees: u64,
    /// Allocations that found a kept block, and those that had to pin.
    pub hits: u64,
    pub misses: u64,
}

#[derive(Default)]
pub(super) struct Books {
    blocks: BTreeMap<u64, PinnedBlock>,
    by_address: BTreeMap<u64, u64>,
    kept: BTreeMap<u64, Vec<u64>>,
    /// Bytes that somebody is pinning at this moment.
    pub promised: u64,
    stats: PinnedStats,
    last: u64,
}

impl Books {
    pub fn in_use(&self) -> u64 {
        self.stats.used + self.promised
    }

    pub fn stats(&self) -> PinnedStats {
        let blocks = self.blocks.values().filter(|block| !block.freed).count() as u64;
        PinnedStats { blocks, ..self.stats }
    }

    pub fn take_kept(&mut self, class: u64) -> Option<u64> {
        let host = self.unkeep(class)?;
        self.stats.hits += 1;
        Some(host)
    }

    fn unkeep(&mut self, class: u64) -> Option<u64> {
        let hosts = self.kept.get_mut(&class)?;
        let host = hosts.pop();
        if hosts.is_empty() {
            self.kept.remove(&class);
        }
        self.stats.kept -= class;
        self.stats.kept_blocks -= 1;
        host
    }

    /// Room for a block to pin: what has to be unpinned for it, the largest first. Errors: the bytes in use leave none.
    pub fn make_room(&mut self, class: u64, limit: u64) -> Result<Vec<u64>, u64> {
        if class > limit.saturating_sub(self.in_use()) {
            return Err(self.in_use());
        }
        self.stats.misses += 1;
        let mut gone = Vec::new();
        while self.in_use() + self.stats.kept + class > limit {
            let Some((&largest, _)) = self.kept.last_key_value() else {
                break;
            };
            gone.extend(self.unkeep(largest));
        }
        Ok(gone)
    }

    pub fn add(&mut self, address: u64, bytes: u64, class_bytes: u64, now_ns: u64) -> PinnedBlock {
        self.last += 1;
        let block = PinnedBlock {
            id: self.last,
            address,
            bytes,
            class_bytes,
            task: None,
            allocated_ns: now_ns,
            last_use_ns: now_ns,
            holds: 0,
            freed: false,
        };
        self.stats.allocations += 1;
        self.stats.used += class_bytes;
        self.stats.peak_used = self.stats.peak_used.max(self.stats.used);
        self.by_address.insert(address, block.id);
        self.blocks.insert(block.id, block.clone());
        block
    }

    pub fn get_mut(&mut self, id: u64) -> PinnedResult<&mut PinnedBlock> {
        let block = self.blocks.get_mut(&id).filter(|block| !block.freed);
        block.ok_or(PinnedError::BadBlock(id))
    }

    pub fn blocks(&self, task: Option<&str>) -> Vec<PinnedBlock> {
        let matches = |block: &&PinnedBlock| !block.freed && (task.is_none() || block.task.as_deref() == task);
        self.blocks.values().filter(matches).cloned().collect()
    }

    /// Memory to unpin, if the block is not kept.
    pub fn free(&mut self, id: u64, config: &PinnedConfig) -> PinnedResult<Option<u64>> {
        let block = self.get_mut(id)?;
        block.freed = true;
        let held = block.holds > 0;
        self.stats.frees += 1;
        Ok(if held { None } else { self.recycle(id, config) })
    }

    fn recycle(&mut self, id: u64, config: &PinnedConfig) -> Option<u64> {
        let block = self.blocks.remove(&id)?;
        self.by_address.remove(&block.address);
        self.stats.used -= block.class_bytes;
        if !config.pooling {
            return Some(block.address);
        }
        self.kept.entry(block.class_bytes).or_default().push(block.address);
        self.stats.kept += block.class_bytes;
        self.stats.kept_blocks += 1;
        None
    }

    pub fn hold(&mut self, address: u64, bytes: u64) -> Option<u64> {
        let (&start, &id) = self.by_address.range(..=address).next_back()?;
        let block = self.blocks.get_mut(&id).filter(|block| !block.freed)?;
        if address.checked_add(bytes)? > start + block.bytes {
            return None;
        }
        block.holds += 1;
        Some(id)
    }

    /// Memory to unpin, if the block was freed meanwhile and is not kept.
    pub fn let_go(&mut self, id: u64, config: &PinnedConfig) -> Option<u64> {
        let block = self.blocks.get_mut(&id)?;
        block.holds -= 1;
        let over = block.freed && block.holds == 0;
        over.then(|| self.recycle(id, config)).flatten()
    }

    pub fn take_all_kept(&mut self) -> Vec<u64> {
        self.stats.kept = 0;
        self.stats.kept_blocks = 0;
        std::mem::take(&mut self.kept).into_values().flatten().collect()
    }

    pub fn take_everything(&mut self) -> Vec<u64> {
        let mut all = self.take_all_kept();
        all.extend(
            std::mem::take(&mut self.blocks)
                .into_values()
                .map(|block| block.address),
        );
        self.by_address.clear();
        all
    }
}
