//! Accounts in the pools of devices: a task's, for as long as it runs, and those of partitions, which all their tasks count for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pygpukit_core::pool::{AccountUse, Pool, Promise};

/// Closed when it is dropped: what counts for it then stays, and counts for nobody's limit but the pool's.
struct Account {
    pool: Arc<Pool>,
    id: u32,
}

impl Account {
    /// tenant: the interned name, for messages. limit: bytes of blocks. parent: an account that all of it counts for as well, or 0.
    fn open(pool: Arc<Pool>, tenant: u32, limit: u64, parent: u32) -> Account {
        let id = pool.open_account(tenant, limit, parent);
        Account { pool, id }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.pool.close_account(self.id);
    }
}

pub struct TaskAccount(Account);

impl TaskAccount {
    /// As `Account::open`.
    pub fn open(pool: Arc<Pool>, tenant: u32, limit: u64, parent: u32, promise: Promise) -> TaskAccount {
        let account = TaskAccount(Account::open(pool, tenant, limit, parent));
        account.promise(promise);
        account
    }

    pub fn promise(&self, promise: Promise) {
        self.0.pool.promise_account(self.0.id, promise);
    }

    pub fn id(&self) -> u32 {
        self.0.id
    }

    pub fn held(&self) -> Option<AccountUse> {
        self.0.pool.account(self.0.id)
    }
}

/// The partitions of one scheduler whose tasks have run, by partition and device.
pub struct PartitionAccounts {
    open: Mutex<HashMap<String, HashMap<i32, Account>>>,
    process: u32,
}

impl Default for PartitionAccounts {
    fn default() -> Self {
        PartitionAccounts {
            open: Mutex::default(),
            process: std::process::id(),
        }
    }
}

impl PartitionAccounts {
    fn open(&self) -> MutexGuard<'_, HashMap<String, HashMap<i32, Account>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account of a partition, whose tasks may hold so many bytes together.
    pub fn enter(&self, partition: &str, pool: Arc<Pool>, tenant: u32, bound: u64) -> u32 {
        let mut open = self.open();
        let by_device = open.entry(partition.to_string()).or_default();
        let device = pool.device();
        let account = by_device
            .entry(device)
            .or_insert_with(|| Account::open(pool, tenant, bound, 0));
        account.pool.set_account_limit(account.id, bound);
        account.id
    }

    /// Another bound, u64::MAX for none. What its tasks hold above that they keep.
    pub fn resize(&self, partition: &str, bound: u64) {
        for account in self
            .open()
            .get(partition)
            .iter()
            .flat_map(|by_device| by_device.values())
        {
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

impl Drop for PartitionAccounts {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A forked child: a thread that it does not have may hold a pool's lock.
            std::mem::forget(std::mem::take(&mut *self.open()));
        }
    }
}
