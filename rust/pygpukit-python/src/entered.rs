//! The tasks of one scheduler that threads of this process are in: the context of each, and the account that its memory counts for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pygpukit_core::intern::Interner;
use pygpukit_core::pool::{AccountUse, Promise};
use pygpukit_core::scheduler::{Name, Scheduler, TaskContext};
use pyo3::prelude::*;

use crate::default_pools::default_pool;
use crate::task_account::{PartitionAccounts, TaskAccount};

struct Entered {
    /// Handed out by address.
    context: Arc<TaskContext>,
    /// Of one that asked for memory, is limited in it, has a priority or a partition: one for each device that it is on.
    accounts: Vec<TaskAccount>,
}

/// From their start to their end.
#[derive(Default)]
pub struct EnteredTasks {
    entered: Mutex<HashMap<Name, Entered>>,
    accounts: Arc<PartitionAccounts>,
}

impl EnteredTasks {
    pub fn accounts(&self) -> Arc<PartitionAccounts> {
        self.accounts.clone()
    }

    /// The handle of the task's context, and its account on the device, 0 when it has none; both are valid until leave(). Once for each of
    /// its devices.
    pub fn enter(
        &self,
        py: Python<'_>,
        scheduler: &Scheduler,
        context: Arc<TaskContext>,
        tenant: u32,
        device: i32,
    ) -> PyResult<(u64, u64)> {
        let id = context.id.clone();
        let account = self.open_account(py, scheduler, &id, tenant, device)?;
        let handles = (
            Arc::as_ptr(&context) as u64,
            account.as_ref().map_or(0, TaskAccount::id),
        );
        let mut entered = self.lock();
        let entry = entered.entry(id.clone()).or_insert_with(|| Entered {
            context,
            accounts: Vec::new(),
        });
        entry.accounts.extend(account);
        drop(entered);
        self.promise(scheduler, &id); // it may have been adjusted since its terms were read
        Ok(handles)
    }

    /// Closes the account of a task, after `last` with its context; does nothing for one that was not entered.
    pub fn leave(&self, id: &str, last: impl FnOnce(&TaskContext)) {
        let entered = self.lock().remove(id);
        if let Some(entered) = entered {
            last(&entered.context);
        }
    }

    /// What a task under way may count on is what its terms say now. One that began without an account gets one with its next run.
    pub fn promise(&self, scheduler: &Scheduler, id: &str) {
        let entered = self.lock();
        for account in entered.get(id).iter().flat_map(|entered| &entered.accounts) {
            account.promise(
                scheduler
                    .memory_terms(id)
                    .map_or(Promise::default(), |(_, promise)| promise),
            );
        }
    }

    /// What the accounts of a task hold together: None where no thread of this process is in the task, Some(None) where it has none.
    pub fn held(&self, id: &str) -> Option<Option<AccountUse>> {
        let entered = self.lock();
        let entered = entered.get(id)?;
        let held = entered.accounts.iter().filter_map(TaskAccount::held);
        Some(held.reduce(|sum, more| AccountUse {
            used: sum.used + more.used,
            blocks: sum.blocks + more.blocks,
            evicted: sum.evicted + more.evicted,
            evicted_since_ns: sum.evicted_since_ns.max(more.evicted_since_ns),
            ..sum
        }))
    }

    /// The account that what a task allocates counts for; None where nothing is said of its memory.
    fn open_account(
        &self,
        py: Python<'_>,
        scheduler: &Scheduler,
        id: &str,
        tenant: u32,
        device: i32,
    ) -> PyResult<Option<TaskAccount>> {
        let (terms, partition) =
            scheduler.call(|table, _| (table.memory_terms(id), table.partition_here(id).map(str::to_string)));
        if terms.is_none() && partition.is_none() {
            return Ok(None);
        }
        let pool = default_pool(py, device)?;
        let parent = partition.map_or(0, |partition| {
            let name = Interner::global().intern(&partition);
            let bound = || scheduler.call(|table, _| table.partitions().memory_bound(&partition));
            self.accounts.enter(&partition, pool.clone(), name, bound)
        });
        let (limit, promise) = terms.unwrap_or((u64::MAX, Promise::default()));
        Ok(Some(TaskAccount::open(pool, tenant, limit, parent, promise)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Entered>> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
