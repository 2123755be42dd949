//! Memory that the driver lays out itself, outside the pool's segments: counted as blocks, under the same limits.

use std::collections::BTreeMap;

use super::{BlockInfo, Owner, Pool, PoolError, PoolResult};
use crate::ring::{kind, Event};

/// In the ids of such blocks; those of the slab never have it.
const MARK: u64 = 1 << 63;
/// What stands for their addresses, each its own: where no device has memory, and a JavaScript number is exact.
const ADDRESSES: u64 = 1 << 52;

fn address_of(block: u64) -> u64 {
    ADDRESSES | (block & !MARK)
}

#[derive(Default)]
pub(super) struct Outside {
    last: u64,
    held: BTreeMap<u64, (u64, Owner)>,
}

impl Outside {
    pub fn infos(&self) -> impl Iterator<Item = BlockInfo> + '_ {
        self.held.iter().map(|(&block, &(bytes, owner))| BlockInfo {
            block,
            address: address_of(block),
            bytes,
            owner,
            stream: 0,
            resident: true,
            pins: 1,
            last_use: 0,
        })
    }
}

impl Pool {
    /// Counts `bytes` that the driver is about to be asked for as a block without an address, which is never evicted. May wait and evict
    /// others. Errors: as `alloc`.
    pub fn take_outside(&self, bytes: u64, owner: Owner) -> PoolResult<u64> {
        let whole = bytes.next_multiple_of(self.granularity);
        let mut slow = self.lock_slow();
        self.poll_pending()?;
        let mut merged = false;
        loop {
            let (free, _) = self.driver.memory_info()?;
            let mut st = self.lock();
            if bytes > st.limit {
                drop(st);
                return Err(self.out_of_memory(bytes));
            }
            if let Some(account) = st.accounts.refusal(owner, bytes) {
                drop(st);
                return Err(self.over_account(bytes, account));
            }
            let over = (st.counts.used + bytes).saturating_sub(st.limit);
            let backed = st.counts.reserved.saturating_add(bytes) <= self.reserved_limit(&st) && bytes <= free;
            if over == 0 && backed {
                let c = &mut st.counts;
                c.used += bytes;
                c.reserved += bytes;
                c.peak_used = c.peak_used.max(c.used);
                c.live += 1;
                c.allocations += 1;
                st.accounts.add(owner, bytes);
                st.outside.last += 1;
                let block = st.outside.last | MARK;
                st.outside.held.insert(block, (bytes, owner));
                drop(st);
                self.record_outside(kind::ALLOC, block, bytes, owner);
                return Ok(block);
            }
            drop(st);
            let more = if over > 0 {
                self.eviction && self.evict_used(&mut slow, over, owner.account)?
            } else if !merged {
                self.merge_everything();
                merged = true;
                true
            } else {
                self.make_room(&mut slow, whole, owner.account)?
            };
            if !more {
                return Err(self.out_of_memory(bytes));
            }
        }
    }

    /// The driver has taken the memory back. Errors: `BadBlock`.
    pub fn give_outside(&self, block: u64) -> PoolResult<()> {
        let mut st = self.lock();
        let (bytes, owner) = st.outside.held.remove(&block).ok_or(PoolError::BadBlock(block))?;
        st.counts.used -= bytes;
        st.counts.reserved -= bytes;
        st.counts.live -= 1;
        st.accounts.remove(owner, bytes);
        drop(st);
        self.record_outside(kind::FREE, block, bytes, owner);
        Ok(())
    }

    fn record_outside(&self, kind: u16, block: u64, bytes: u64, owner: Owner) {
        let event = Event {
            kind,
            device: self.device,
            tenant: owner.tenant,
            name: owner.name,
            a: address_of(block),
            b: bytes,
            c: block,
            cell: owner.cell,
            line: owner.line,
            ..Event::default()
        };
        self.services.ring.push(self.services.clock.now_ns(), &event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::{PoolConfig, Services};
    use crate::sim_driver::{SimConfig, SimDriver};
    use std::sync::Arc;

    fn pool(limit_bytes: u64) -> Pool {
        let config = PoolConfig {
            limit_bytes,
            eviction: true,
            ..PoolConfig::default()
        };
        let driver = Arc::new(SimDriver::new(SimConfig::default()));
        Pool::new(driver, config, Services::default()).unwrap()
    }

    #[test]
    fn it_counts_under_the_limit_and_for_its_account_until_it_is_given_back() {
        let pool = pool(16 << 20);
        let account = pool.open_account(0, 6 << 20, 0);
        let owner = Owner {
            account,
            ..Owner::default()
        };
        let (first, second) = (
            pool.take_outside(5 << 20, owner).unwrap(),
            pool.take_outside(100, Owner::default()).unwrap(),
        );
        assert_eq!((pool.stats().used, pool.stats().active_blocks), ((5 << 20) + 100, 2));
        assert_eq!(pool.account(account).unwrap().used, 5 << 20);
        let (a, b) = (pool.blocks()[0], pool.blocks()[1]);
        assert!(a.block != b.block && a.address != b.address);
        pool.audit().unwrap();
        assert!(matches!(
            pool.take_outside(2 << 20, owner),
            Err(PoolError::OutOfMemory(_))
        ));
        assert!(matches!(
            pool.take_outside(12 << 20, Owner::default()),
            Err(PoolError::OutOfMemory(_))
        ));
        pool.give_outside(first).unwrap();
        assert!(matches!(pool.give_outside(first), Err(PoolError::BadBlock(_))));
        pool.give_outside(second).unwrap();
        assert_eq!(
            (pool.stats().used, pool.stats().reserved, pool.stats().active_blocks),
            (0, 0, 0)
        );
        pool.audit().unwrap();
    }

    #[test]
    fn blocks_that_nothing_uses_give_way_to_it() {
        let pool = pool(16 << 20);
        let block = pool.alloc(12 << 20, 0, Owner::default()).unwrap();
        let outside = pool.take_outside(8 << 20, Owner::default()).unwrap();
        assert!(!pool.block(block.block).unwrap().resident);
        pool.audit().unwrap();
        pool.give_outside(outside).unwrap();
        pool.restore(block.block).unwrap();
        pool.audit().unwrap();
    }
}
