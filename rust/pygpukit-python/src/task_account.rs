//! A task's account in the pool of its device, for as long as it runs.

use std::sync::Arc;

use pygpukit_core::pool::{Pool, Promise};

/// Closed when it is dropped: what the task leaves behind stays and counts for nobody's limit but the pool's.
pub struct TaskAccount {
    pool: Arc<Pool>,
    id: u32,
}

impl TaskAccount {
    /// tenant: the interned name of the task, for messages. limit: bytes of blocks.
    pub fn open(pool: Arc<Pool>, tenant: u32, limit: u64, promise: Promise) -> TaskAccount {
        let id = pool.open_account(tenant, limit, 0);
        pool.promise_account(id, promise);
        TaskAccount { pool, id }
    }

    pub fn promise(&self, promise: Promise) {
        self.pool.promise_account(self.id, promise);
    }

    pub fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for TaskAccount {
    fn drop(&mut self) {
        self.pool.close_account(self.id);
    }
}
