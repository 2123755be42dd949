//! Device blocks that a transfer by bare addresses uses: they stay on the device, and one freed meanwhile is freed when it ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pygpukit_core::pool::{Pool, PoolError, PoolResult};

use crate::abi;
use crate::table;

/// Pools of Python's own making; those of arrays are `abi::default_pools`.
static POOLS: Mutex<Vec<Weak<Pool>>> = Mutex::new(Vec::new());

extern "C" {
    /// core.h
    fn pk_current_account() -> u64;
}

#[derive(Default)]
struct Held {
    holds: u32,
    freed: bool,
}

type Table = HashMap<(usize, u64), Held>;
static HELD: Mutex<Option<Table>> = Mutex::new(None);
/// Entries of the table: freeing looks into it only when there are any.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn held() -> MutexGuard<'static, Option<Table>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a pool known by address.
pub fn register(pool: &Arc<Pool>) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|other| other.strong_count() > 0);
    pools.push(Arc::downgrade(pool));
}

fn key(pool: &Pool, block: u64) -> (usize, u64) {
    (std::ptr::from_ref(pool) as usize, block)
}

/// Frees a block, now or when the last transfer that uses it has ended.
#[inline]
pub fn free(pool: &Pool, block: u64) -> PoolResult<()> {
    if COUNT.load(Ordering::Acquire) > 0 {
        if let Some(entry) = held().as_mut().and_then(|table| table.get_mut(&key(pool, block))) {
            if entry.freed {
                return Err(PoolError::BadBlock(block));
            }
            entry.freed = true;
            return Ok(());
        }
    }
    pool.free(block)
}

/// A block in use.
pub struct Hold {
    pool: Arc<Pool>,
    block: u64,
}

/// Holds the block of a device's pools that has the whole range, on the device; also its stream. None when no block has it. Errors: as
/// `Pool::pin`, and in a forked process.
pub fn hold(device: i32, address: u64, bytes: u64) -> PoolResult<Option<(Hold, u64)>> {
    table::refuse_forked("using the device's memory")?;
    let own = POOLS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let pools = abi::default_pools()
        .into_iter()
        .chain(own.iter().filter_map(Weak::upgrade));
    for pool in pools.filter(|pool| pool.device() == device) {
        let inside = |b: &pygpukit_core::pool::BlockInfo| {
            b.address <= address && address.checked_add(bytes).is_some_and(|end| end <= b.address + b.bytes)
        };
        let Some(info) = pool.blocks().into_iter().find(inside) else {
            continue;
        };
        // SAFETY: it only reads what the calling thread carries.
        pool.pin(info.block, unsafe { pk_current_account() })?;
        let mut table = held();
        let table = table.get_or_insert_with(Table::default);
        let entry = table.entry(key(&pool, info.block)).or_default();
        entry.holds += 1;
        COUNT.store(table.len(), Ordering::Release);
        let (block, stream) = (info.block, info.stream);
        return Ok(Some((Hold { pool, block }, stream)));
    }
    Ok(None)
}

impl Drop for Hold {
    fn drop(&mut self) {
        let freed = {
            let mut guard = held();
            let Some(table) = guard.as_mut() else { return };
            let key = key(&self.pool, self.block);
            let Some(entry) = table.get_mut(&key) else { return };
            entry.holds -= 1;
            let (last, freed) = (entry.holds == 0, entry.freed);
            self.pool.unpin(self.block);
            if last {
                table.remove(&key);
                COUNT.store(table.len(), Ordering::Release);
            }
            last && freed
        };
        if freed {
            let _ = self.pool.free(self.block); // refused only when the pool was cleared meanwhile
        }
    }
}
