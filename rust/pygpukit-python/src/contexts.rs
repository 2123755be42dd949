//! Python classes over the contexts of several models: the table of what is promised, and each context at the gate and in the pool.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pygpukit_core::intern::Interner;
use pygpukit_core::pool::{AccountUse, Pool};
use pygpukit_core::scheduler::{ModelError, ModelSpec, ModelTable, Name, TaskContext};
use pyo3::prelude::*;

use crate::default_pools::default_pool;
use crate::errors::raise_with;
use crate::text::Text;
use crate::{abi, gate, live};

fn model_error(py: Python<'_>, error: ModelError) -> PyErr {
    match error {
        ModelError::Spec(error) => raise_with(py, "InvalidSpecError", (error.to_string(), error.field)),
        ModelError::OverBudget {
            asked,
            promised,
            budget,
        } => {
            let text = format!(
                "max_vram: {asked} bytes asked, contexts of the device may have {promised} of the budget of {budget} bytes; ask for less, or \
                 raise total_vram_budget"
            );
            let free = budget.saturating_sub(promised);
            let nobody: [(u64, String, String, String, u32); 0] = [];
            raise_with(
                py,
                "OutOfMemoryError",
                (text, asked, budget, free, nobody, "contexts", promised),
            )
        }
    }
}

/// What a pool holds for an account: bytes, the most so far, blocks, and the limit.
type Held = (u64, u64, u64, u64);

fn held(account: Option<AccountUse>) -> Held {
    let account = account.unwrap_or_default();
    (account.used, account.peak_used, account.blocks, account.limit)
}

/// The contexts of a process and what of each device they were promised. Thread-safe.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct ModelContexts {
    table: Mutex<ModelTable>,
    /// By device, what all its contexts count for.
    totals: Mutex<HashMap<i32, u64>>,
    process: u32,
}

impl ModelContexts {
    /// Python is never called while this is held: it may let another thread run, which would wait here.
    fn table(&self) -> MutexGuard<'_, ModelTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn total(&self, pool: &Pool, device: i32, budget: u64) -> u64 {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || pool.open_account(Interner::global().intern("contexts"), budget, 0);
        *totals.entry(device).or_insert_with(open)
    }
}

impl Drop for ModelContexts {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return; // a forked child: a thread that it does not have may hold the locks
        }
        let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        for (&device, &total) in totals.iter() {
            if let Ok(pool) = abi::default_pool(device) {
                pool.close_account(total); // gone with the last array that counts for it
            }
        }
    }
}

#[pymethods]
impl ModelContexts {
    #[new]
    fn new() -> ModelContexts {
        ModelContexts {
            table: Mutex::new(ModelTable::new(live::next_ordinal())),
            totals: Mutex::default(),
            process: std::process::id(),
        }
    }

    /// What the contexts of a device may have together, in bytes. OutOfMemoryError when they were promised more already.
    fn set_budget(&self, py: Python<'_>, device: i32, bytes: u64) -> PyResult<()> {
        let pool = default_pool(py, device)?;
        let set = self.table().set_budget(device, bytes);
        set.map_err(|error| model_error(py, error))?;
        pool.set_account_limit(self.total(&pool, device, bytes), bytes);
        Ok(())
    }

    /// Bytes, None where none was set.
    fn budget(&self, device: i32) -> Option<u64> {
        self.table().budget(device)
    }

    /// (bytes held, the most so far, blocks, limit) of all contexts of a device together.
    fn held(&self, py: Python<'_>, device: i32) -> PyResult<Held> {
        let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let total = totals.get(&device).copied();
        drop(totals); // Python may be called from here on
        match total {
            Some(total) => Ok(held(default_pool(py, device)?.account(total))),
            None => Ok((0, 0, 0, 0)),
        }
    }

    /// max_memory: 0 = no limit of its own. InvalidSpecError names the field, OutOfMemoryError is told of a budget.
    fn create(
        &self,
        py: Python<'_>,
        id: Text<'_>,
        max_memory: u64,
        share_ppm: u32,
        device: i32,
    ) -> PyResult<ModelContext> {
        let pool = default_pool(py, device)?;
        let spec = ModelSpec {
            id: Name::from(&*id),
            device,
            max_memory,
            share_ppm,
        };
        let created = {
            let mut table = self.table();
            let budget = table.budget(device).unwrap_or(u64::MAX);
            table.create(spec).map(|context| (context, budget))
        };
        let (context, budget) = created.map_err(|error| model_error(py, error))?;
        let limit = if max_memory == 0 { u64::MAX } else { max_memory };
        let tenant = Interner::global().intern(&id);
        let account = pool.open_account(tenant, limit, self.total(&pool, device, budget));
        Ok(ModelContext {
            context,
            pool,
            tenant,
            account,
            process: std::process::id(),
        })
    }

    /// Other limits for a context, None: as it is; (max_memory, share_ppm) from now on. As create(), and InvalidSpecError also for less
    /// memory than it holds; nothing changes then.
    #[pyo3(signature = (context, max_memory, share_ppm))]
    fn resize(
        &self,
        py: Python<'_>,
        context: &ModelContext,
        max_memory: Option<u64>,
        share_ppm: Option<u32>,
    ) -> PyResult<(u64, u32)> {
        let hold = |limit: Option<u64>| context.pool.hold_account(context.account, limit.unwrap_or(u64::MAX));
        let id = context.context.id.as_str();
        let resized = self.table().resize(id, max_memory, share_ppm, hold);
        resized.map_err(|error| model_error(py, error))
    }

    /// Forgets a context; its work is stopped. False when there is none of that name.
    fn destroy(&self, id: Text<'_>) -> bool {
        self.table().destroy(&id)
    }

    fn ids(&self) -> Vec<String> {
        self.table().ids().map(|id| id.to_string()).collect()
    }
}

/// One context: a tenant of its device's gate with an account in its pool.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct ModelContext {
    context: Arc<TaskContext>,
    pool: Arc<Pool>,
    /// Interned name.
    #[pyo3(get)]
    tenant: u32,
    #[pyo3(get)]
    account: u64,
    process: u32,
}

impl ModelContext {
    fn end(&self) {
        self.context.stop();
        self.pool.close_account(self.account);
        gate::leave(&self.context);
    }
}

impl Drop for ModelContext {
    /// It may not have been closed: the gate must not remember it for ever. In a forked child it is the parent's.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            self.end();
        }
    }
}

#[pymethods]
impl ModelContext {
    /// Unique among the tenants of the process.
    #[getter]
    fn number(&self) -> u64 {
        self.context.number
    }

    /// For native.Session, valid as long as this object.
    #[getter]
    fn handle(&self) -> u64 {
        Arc::as_ptr(&self.context) as u64
    }

    /// What the gate shares the device out by.
    #[getter]
    fn share_ppm(&self) -> u32 {
        self.context.shares_ppm().0
    }

    /// (bytes held, the most so far, blocks, limit); zeros once it is closed and empty.
    fn held(&self) -> Held {
        held(self.pool.account(self.account))
    }

    /// [launches, those held back, device ns, ns with work that was not done, device ns of others meanwhile, ns waited for a turn], as far
    /// as measured.
    fn work(&self, py: Python<'_>) -> [u64; 6] {
        py.detach(gate::views); // which books what is over
        let used = self.context.used();
        let [asked, others] = [used.asked_ns, used.others_ns];
        [used.launches, used.paced, used.gpu_ns, asked, others, used.waited_ns]
    }

    /// Its parts per million of the device in the last 10 ms, 100 ms and 1 s.
    fn shares_ppm(&self, py: Python<'_>) -> [u32; 3] {
        let views = py.detach(gate::views);
        let mut tenants = views.iter().flat_map(|(_, _, view)| view.tenants.iter());
        let tenant_of_context = tenants.find(|tenant| tenant.number == self.context.number);
        tenant_of_context.map_or([0; 3], |tenant| tenant.shares_ppm)
    }

    /// It launches and allocates nothing more. Waits a moment for its last device time.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.end());
    }
}
