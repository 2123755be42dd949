//! The documented PartitionManager: a view of the core's, by itself or that of a scheduler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pygpukit_core::partition as core;
use pygpukit_core::scheduler::Scheduler;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::spec_error;
use crate::partition_values::{Partition, PartitionConfig, PartitionLimits, PartitionStats, PartitionUsage};
use crate::sms::Holdings;
use crate::task_account::PartitionAccounts;
use crate::text::{OwnText, TaskId, Text};
use crate::units::{fraction, PPM};

enum Source {
    Own(Box<Mutex<core::PartitionManager>>),
    Of(Arc<Scheduler>, Arc<Holdings>, Arc<PartitionAccounts>),
}

/// Partitions of a device: their quotas never add up to more than there is. That of a scheduler bounds what it admits.
#[pyclass(frozen, module = "pygpukit._core")]
pub struct PartitionManager {
    source: Source,
    /// Task id to partition id, as told by assign_task().
    assigned: Mutex<BTreeMap<String, String>>,
}

impl PartitionManager {
    pub fn of(
        scheduler: Arc<Scheduler>,
        holdings: Arc<Holdings>,
        accounts: Arc<PartitionAccounts>,
    ) -> PartitionManager {
        PartitionManager {
            source: Source::Of(scheduler, holdings, accounts),
            assigned: Mutex::default(),
        }
    }

    fn read<T>(&self, call: impl FnOnce(&core::PartitionManager) -> T) -> T {
        match &self.source {
            Source::Own(manager) => call(&manager.lock().unwrap_or_else(PoisonError::into_inner)),
            Source::Of(scheduler, ..) => scheduler.call(|table, _| call(table.partitions())),
        }
    }

    fn with<T>(&self, call: impl FnOnce(&mut core::PartitionManager) -> T) -> T {
        match &self.source {
            Source::Own(manager) => call(&mut manager.lock().unwrap_or_else(PoisonError::into_inner)),
            Source::Of(scheduler, ..) => scheduler.partitions(call),
        }
    }

    fn change(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut core::PartitionManager) -> Result<(), core::SpecError>,
    ) -> PyResult<()> {
        self.with(call).map_err(|error| spec_error(py, error))
    }

    fn holdings(&self) -> Option<&Holdings> {
        match &self.source {
            Source::Own(_) => None,
            Source::Of(_, holdings, _) => Some(holdings),
        }
    }

    fn accounts(&self) -> Option<&PartitionAccounts> {
        match &self.source {
            Source::Own(_) => None,
            Source::Of(_, _, accounts) => Some(accounts),
        }
    }

    /// Makes or resizes a partition, and sees to its multiprocessors: all of it or, with an Err, nothing.
    fn set(
        &self,
        id: &str,
        limits: core::Limits,
        call: impl Fn(&mut core::PartitionManager, core::Limits) -> Result<(), core::SpecError>,
    ) -> Result<(), core::SpecError> {
        let Some(holdings) = self.holdings() else {
            return self.with(|manager| call(manager, limits));
        };
        let _changing = holdings.changing();
        let alone = limits.isolation == core::Isolation::Sm;
        let before = holdings.view(id);
        if !alone && before.is_none() {
            return self.with(|manager| call(manager, limits));
        }
        call(&mut self.read(core::PartitionManager::clone), limits.clone())?; // or they would be moved in vain
        if alone {
            holdings.take(id, limits.share_ppm, limits.device as i32)?;
        }
        let device = limits.device as i32; // no change has moved it: `call` has been tried
        if let Err(error) = self.with(|manager| call(manager, limits)) {
            match before {
                Some(before) => drop(holdings.take(id, before.asked_ppm, device)),
                None => holdings.release(id),
            }
            return Err(error);
        }
        if !alone {
            holdings.release(id);
        }
        let sm_ppm = holdings.view(id).map_or(0, |view| view.share_ppm);
        self.with(|manager| manager.set_sm_ppm(id, sm_ppm))
    }

    fn find(&self, id: &str) -> Option<Partition> {
        let (partition, used) = self.read(|manager| Some((manager.get(id)?.clone(), manager.used(id)?)))?;
        Some(self.view(&partition, used))
    }

    fn view(&self, partition: &core::Partition, used: core::Reservation) -> Partition {
        let space = self.holdings().and_then(|holdings| holdings.view(&partition.id));
        let did = partition.activity.figures();
        let assigned = self.assigned.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = assigned.iter().filter(|(_, id)| **id == partition.id);
        Partition {
            id: partition.id.clone(),
            name: partition.name.clone(),
            limits: PartitionLimits::of(&partition.limits),
            usage: PartitionUsage {
                memory_used: used.memory_bytes,
                compute_used: fraction(used.share_ppm.into()),
                active_streams: partition.occupied,
                unfinished_tasks: partition.tasks,
                total_kernels: did.kernels,
                pending_kernels: did.pending_kernels,
                total_transfers: did.transfers,
                pending_transfers: did.pending_transfers,
                compute_time_ms: did.gpu_ns as f64 * 1e-6,
            },
            tasks: tasks.map(|(task, _)| task.clone()).collect(),
            enabled: true,
            sms: space.map_or(0, |space| space.sms),
            sm_share: space.map_or(0.0, |space| fraction(space.share_ppm.into())),
            sm_switching: space.is_some_and(|space| space.switching),
            sm_switch_ns: space.map_or(0, |space| space.switch_ns),
        }
    }
}

#[pymethods]
impl PartitionManager {
    #[new]
    #[pyo3(signature = (config=None))]
    fn new(py: Python<'_>, config: Option<&PartitionConfig>) -> PyResult<PartitionManager> {
        let default = PartitionConfig::new(py, 8 << 30, false, 1.0)?;
        let config = config.unwrap_or(&default);
        let mut settings = core::PartitionConfig::new(config.total_memory, core::WHOLE_SHARE_PPM);
        if config.allow_overcommit {
            settings.promise_ppm = (config.overcommit_ratio * PPM) as u64;
        }
        Ok(PartitionManager {
            source: Source::Own(Box::new(Mutex::new(core::PartitionManager::new(settings)))),
            assigned: Mutex::default(),
        })
    }

    #[staticmethod]
    fn with_memory(py: Python<'_>, total_memory: u64) -> PyResult<PartitionManager> {
        PartitionManager::new(py, Some(&PartitionConfig::new(py, total_memory, false, 1.0)?))
    }

    fn create_partition(&self, py: Python<'_>, id: Text<'_>, name: Text<'_>, limits: &PartitionLimits) -> PyResult<()> {
        let limits = limits.to_core(py)?;
        self.set(&id, limits, |manager, limits| manager.create(&id, &name, limits))
            .map_err(|error| spec_error(py, error))
    }

    /// New limits, whatever runs in it: tasks that hold more keep it to their end; waiting ones that can never fit are rejected.
    fn resize_partition(&self, py: Python<'_>, id: Text<'_>, limits: &PartitionLimits) -> PyResult<()> {
        let limits = limits.to_core(py)?;
        self.set(&id, limits, |manager, limits| manager.resize(&id, limits))
            .map_err(|error| spec_error(py, error))?;
        if let Some(accounts) = self.accounts() {
            accounts.resize(&id, || self.read(|manager| manager.memory_bound(&id)));
        }
        Ok(())
    }

    fn delete_partition(&self, py: Python<'_>, id: Text<'_>) -> PyResult<Partition> {
        let gone = self
            .with(|manager| manager.delete(&id))
            .map_err(|error| spec_error(py, error))?;
        if let Some(holdings) = self.holdings() {
            holdings.release(&id);
        }
        if let Some(accounts) = self.accounts() {
            accounts.close(&id);
        }
        let view = self.view(&gone, core::Reservation::default());
        self.assigned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, partition| **partition != *id);
        Ok(view)
    }

    fn get(&self, id: Text<'_>) -> Option<Partition> {
        self.find(&id)
    }

    /// Notes which partition a task belongs to; a scheduler's tasks are placed by submit(partition=) instead.
    fn assign_task(&self, task_id: TaskId, partition_id: OwnText) -> PyResult<()> {
        let OwnText(partition_id) = partition_id;
        if self.read(|manager| manager.get(&partition_id).is_none()) {
            return Err(PyValueError::new_err(format!("no partition {partition_id:?}")));
        }
        self.assigned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(task_id.0, partition_id);
        Ok(())
    }

    fn get_task_partition(&self, task_id: TaskId) -> Option<Partition> {
        let id = self
            .assigned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&*task_id)
            .cloned();
        id.map_or_else(|| self.default_partition(), |id| self.find(&id))
    }

    fn unassign_task(&self, task_id: TaskId) {
        self.assigned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&*task_id);
    }

    fn set_default(&self, py: Python<'_>, id: Text<'_>) -> PyResult<()> {
        self.change(py, |manager| manager.set_default(Some(&id)))
    }

    fn default_partition(&self) -> Option<Partition> {
        let id = self.read(|manager| manager.default_partition().map(|p| p.id.clone()))?;
        self.find(&id)
    }

    fn partition_ids(&self) -> Vec<String> {
        self.read(|manager| manager.ids().map(str::to_string).collect())
    }

    fn stats(&self) -> PartitionStats {
        let stats = self.read(|manager| manager.stats());
        let ([memory, compute, bandwidth], left) = (stats.promised, stats.left);
        PartitionStats {
            partition_count: stats.partitions,
            active_partitions: stats.active,
            total_memory_allocated: memory,
            total_compute_allocated: fraction(compute),
            total_bandwidth_allocated: fraction(bandwidth),
            available_memory: left[0],
            available_compute: fraction(left[1]),
            available_bandwidth: fraction(left[2]),
        }
    }

    /// Removes every partition, or, when one has unfinished tasks, none.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.with(core::PartitionManager::clear)
            .map_err(|error| spec_error(py, error))?;
        if let Some(holdings) = self.holdings() {
            holdings.release_all();
        }
        if let Some(accounts) = self.accounts() {
            accounts.close_all();
        }
        self.assigned.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Ok(())
    }
}

/// What each isolation level keeps apart: a Markdown table.
#[pyfunction]
fn isolation_table() -> String {
    core::isolation_as_markdown()
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Partition>()?;
    module.add_class::<PartitionConfig>()?;
    module.add_class::<PartitionLimits>()?;
    module.add_class::<PartitionManager>()?;
    module.add_class::<PartitionStats>()?;
    module.add_class::<PartitionUsage>()?;
    module.add_function(pyo3::wrap_pyfunction!(isolation_table, module)?)
}
