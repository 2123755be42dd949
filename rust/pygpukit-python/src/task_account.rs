//! Accounts in the pools of devices: a task's, for as long as it runs, and those of partitions, which all their tasks count for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pygpukit_core::pool::{AccountUse, Pool, Promise};

/// Closed when it is dropped: what counts for it then stays, and counts for nobody's limit but the pool's.
struct Account {
    pool: Arc<Pool>,
    id: u64,
    process: u32,
}

impl Account {
    /// tenant: the interned name, for messages. limit: bytes of blocks. parent: an account that all of it counts for as well, or 0.
    fn open(pool: Arc<Pool>, tenant: u32, limit: u64, parent: u64) -> Account {
        let id = pool.open_account(tenant, limit, parent);
        Account {
            pool,
            id,
            process: std::process::id(),
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        // In a forked child it is the parent's, and a thread that the child does not have may hold the pool's lock.
        if self.process == std::process::id() {
            self.pool.close_account(self.id);
        }
    }
}

pub struct TaskAccount(Account);

impl TaskAccount {
    /// As `Account::open`.
    pub fn open(pool: Arc<Pool>, tenant: u32, limit: u64, parent: u64, promise: Promise) -> TaskAccount {
        let account = TaskAccount(Account::open(pool, tenant, limit, parent));
        account.promise(promise);
        account
    }

    pub fn promise(&self, promise: Promise) {
        self.0.pool.promise_account(self.0.id, promise);
    }

    pub fn id(&self) -> u64 {
        self.0.id
    }

    pub fn held(&self) -> Option<AccountUse> {
        self.0.pool.account(self.0.id)
    }
}

/// The partitions of one scheduler whose tasks have run, by partition and device.
#[derive(Default)]
pub struct PartitionAccounts {
    open: Mutex<HashMap<String, HashMap<i32, Account>>>,
}

impl PartitionAccounts {
    fn open(&self) -> MutexGuard<'_, HashMap<String, HashMap<i32, Account>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account of a partition, whose tasks may hold `bound()` bytes together (u64::MAX: any). That is read while no `resize` is under
    /// way: the last one counts.
    pub fn enter(&self, partition: &str, pool: Arc<Pool>, tenant: u32, bound: impl FnOnce() -> u64) -> u64 {
        let mut open = self.open();
        let bound = bound();
        let by_device = open.entry(partition.to_string()).or_default();
        let device = pool.device();
        let account = by_device
            .entry(device)
            .or_insert_with(|| Account::open(pool, tenant, bound, 0));
        account.pool.set_account_limit(account.id, bound);
        account.id
    }

    /// Another bound, for tasks under way too. What they hold above it they keep.
    pub fn resize(&self, partition: &str, bound: impl FnOnce() -> u64) {
        let open = self.open();
        let bound = bound();
        for account in open.get(partition).iter().flat_map(|by_device| by_device.values()) {
            account.pool.set_account_limit(account.id, bound);
        }
    }

    pub fn close(&self, partition: &str) {
        let closed = self.open().remove(partition);
        drop(closed);
    }

    pub fn close_all(&self) {
        let closed = std::mem::take(&mut *self.open());
        drop(closed);
    }
}
