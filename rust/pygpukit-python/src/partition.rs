//! The documented partition classes: views of the core's PartitionManager, by itself or that of a scheduler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use pygpukit_core::partition as core;
use pygpukit_core::scheduler::Scheduler;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raise_with;
use crate::sms::Holdings;
use crate::task_account::PartitionAccounts;
use crate::task_id::TaskId;

const PPM: f64 = core::WHOLE_SHARE_PPM as f64;

/// The core's SpecError as InvalidSpecError, which is a ValueError.
pub fn spec_error(py: Python<'_>, error: core::SpecError) -> PyErr {
    raise_with(py, "InvalidSpecError", (error.to_string(), error.field))
}

/// Parts per million of a fraction from 0 to 1.
pub fn ppm(py: Python<'_>, field: &'static str, fraction: f64) -> PyResult<u32> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok((fraction * PPM).round() as u32);
    }
    let text = format!("{field}={fraction}; give a fraction of the device from 0 to 1");
    Err(raise_with(py, "InvalidSpecError", (text, field)))
}

pub fn fraction(ppm: u64) -> f64 {
    ppm as f64 / PPM
}

/// Quota and bounds of a partition; shares are fractions of the device. The three of memory(), compute() and bandwidth() return
/// changed copies. bandwidth_share, of the memory's bandwidth, is planned with alone: sums beyond the device are refused, and nothing
/// measures or bounds what tasks move.
#[pyclass(frozen, get_all, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone)]
pub struct PartitionLimits {
    memory_quota: u64,
    compute_share: f64,
    bandwidth_share: f64,
    max_streams: u32,
    /// Lowest and highest priority of its tasks.
    priorities: (i32, i32),
    /// Turns at the dispatcher against other partitions.
    weight: u32,
    isolation: String,
    /// (bytes, share) over the quota, and of an unused quota for others.
    borrow: (u64, f64),
    lend: (u64, f64),
}

impl PartitionLimits {
    fn of(limits: &core::Limits) -> PartitionLimits {
        let pair = |r: core::Reservation| (r.memory_bytes, fraction(r.share_ppm.into()));
        PartitionLimits {
            memory_quota: limits.memory_bytes,
            compute_share: fraction(limits.share_ppm.into()),
            bandwidth_share: fraction(limits.bandwidth_ppm.into()),
            max_streams: limits.max_streams,
            priorities: limits.priorities,
            weight: limits.weight,
            isolation: limits.isolation.name().to_string(),
            borrow: pair(limits.borrow),
            lend: pair(limits.lend),
        }
    }

    fn to_core(&self, py: Python<'_>) -> PyResult<core::Limits> {
        let isolation = core::Isolation::from_name(&self.isolation).ok_or_else(|| {
            let known = core::Isolation::ALL.map(|level| level.name()).join(", ");
            let text = format!("isolation={:?} is unknown; use one of {known}", self.isolation);
            raise_with(py, "InvalidSpecError", (text, "isolation"))
        })?;
        let pair = |field, (memory_bytes, share): (u64, f64)| {
            PyResult::Ok(core::Reservation {
                memory_bytes,
                share_ppm: ppm(py, field, share)?,
            })
        };
        Ok(core::Limits {
            memory_bytes: self.memory_quota,
            share_ppm: ppm(py, "compute", self.compute_share)?,
            bandwidth_ppm: ppm(py, "bandwidth", self.bandwidth_share)?,
            borrow: pair("borrow", self.borrow)?,
            lend: pair("lend", self.lend)?,
            max_streams: self.max_streams,
            priorities: self.priorities,
            weight: self.weight,
            isolation,
        })
    }
}

#[pymethods]
impl PartitionLimits {
    #[new]
    #[pyo3(signature = (memory_quota=0, compute_share=1.0, bandwidth_share=1.0, max_streams=16, *, priorities=(i32::MIN, i32::MAX),
        weight=1, isolation="shared".to_string(), borrow=(0, 0.0), lend=(0, 0.0)))]
    #[allow(clippy::too_many_arguments)] // the keyword arguments of one Python call
    fn new(
        py: Python<'_>,
        memory_quota: u64,
        compute_share: f64,
        bandwidth_share: f64,
        max_streams: u32,
        priorities: (i32, i32),
        weight: u32,
        isolation: String,
        borrow: (u64, f64),
        lend: (u64, f64),
    ) -> PyResult<PartitionLimits> {
        let limits = PartitionLimits {
            memory_quota,
            compute_share,
            bandwidth_share,
            max_streams,
            priorities,
            weight,
            isolation,
            borrow,
            lend,
        };
        limits.to_core(py).map(|_| limits)
    }

    #[staticmethod]
    fn with_memory(memory_quota: u64) -> PartitionLimits {
        PartitionLimits {
            memory_quota,
            ..default_limits()
        }
    }

    #[staticmethod]
    fn with_compute(py: Python<'_>, compute_share: f64) -> PyResult<PartitionLimits> {
        default_limits().compute(py, compute_share)
    }

    fn memory(&self, quota: u64) -> PartitionLimits {
        PartitionLimits {
            memory_quota: quota,
            ..self.clone()
        }
    }

    fn compute(&self, py: Python<'_>, share: f64) -> PyResult<PartitionLimits> {
        ppm(py, "compute", share)?;
        Ok(PartitionLimits {
            compute_share: share,
            ..self.clone()
        })
    }

    fn bandwidth(&self, py: Python<'_>, share: f64) -> PyResult<PartitionLimits> {
        ppm(py, "bandwidth", share)?;
        Ok(PartitionLimits {
            bandwidth_share: share,
            ..self.clone()
        })
    }
}

fn default_limits() -> PartitionLimits {
    PartitionLimits::of(&core::Limits {
        bandwidth_ppm: core::WHOLE_SHARE_PPM,
        ..core::Limits::new(0, core::WHOLE_SHARE_PPM)
    })
}

/// What there is to divide. With allow_overcommit, quotas may add up to overcommit_ratio times as much, and are bounds only.
#[pyclass(frozen, get_all, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone)]
pub struct PartitionConfig {
    total_memory: u64,
    allow_overcommit: bool,
    overcommit_ratio: f64,
}

#[pymethods]
impl PartitionConfig {
    #[new]
    #[pyo3(signature = (total_memory=8 << 30, allow_overcommit=false, overcommit_ratio=1.0))]
    fn new(
        py: Python<'_>,
        total_memory: u64,
        allow_overcommit: bool,
        overcommit_ratio: f64,
    ) -> PyResult<PartitionConfig> {
        if !(1.0..=1000.0).contains(&overcommit_ratio) {
            let text = format!("overcommit_ratio={overcommit_ratio}; give 1 to 1000");
            return Err(raise_with(py, "InvalidSpecError", (text, "overcommit_ratio")));
        }
        Ok(PartitionConfig {
            total_memory,
            allow_overcommit,
            overcommit_ratio,
        })
    }
}

/// What the tasks of a partition use, as far as its scheduler knows.
#[pyclass(frozen, get_all, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone)]
pub struct PartitionUsage {
    memory_used: u64,
    compute_used: f64,
    /// Tasks that run; each has a stream.
    active_streams: u32,
    unfinished_tasks: usize,
    /// Kernels that its tasks submitted so far, each of a graph, and of those the ones that wait for their turn, where a graph counts once.
    total_kernels: u64,
    pending_kernels: u64,
    /// Copies that they submitted so far, and of those the ones that wait for their turn, or that a transfer engine has not finished.
    total_transfers: u64,
    pending_transfers: u64,
    /// Device time that they were charged with so far.
    compute_time_ms: f64,
}

/// A copy of one partition's state.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct Partition {
    id: String,
    name: String,
    limits: PartitionLimits,
    usage: PartitionUsage,
    /// Ids given to assign_task().
    tasks: Vec<String>,
    enabled: bool,
    /// With isolation="sm": the multiprocessors that its tasks have to themselves, and which part of the device's they are. Else 0.
    sms: u32,
    sm_share: f64,
    /// Tasks that started before the last change of such a partition still use multiprocessors by the old division; how long the
    /// change took, or takes so far.
    sm_switching: bool,
    sm_switch_ns: u64,
}

#[pymethods]
impl Partition {
    /// Reserved memory as a fraction of the quota; 0 without one.
    fn memory_utilization(&self) -> f64 {
        match self.limits.memory_quota {
            0 => 0.0,
            quota => self.usage.memory_used as f64 / quota as f64,
        }
    }
}

/// Sums over the partitions.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct PartitionStats {
    partition_count: usize,
    active_partitions: usize,
    total_memory_allocated: u64,
    total_compute_allocated: f64,
    total_bandwidth_allocated: f64,
    available_memory: u64,
    available_compute: f64,
    available_bandwidth: f64,
}

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
            holdings.take(id, limits.share_ppm)?;
        }
        if let Err(error) = self.with(|manager| call(manager, limits)) {
            match before {
                Some(before) => drop(holdings.take(id, before.asked_ppm)),
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
        let mut made = core::PartitionConfig::new(config.total_memory, core::WHOLE_SHARE_PPM);
        if config.allow_overcommit {
            made.promise_ppm = (config.overcommit_ratio * PPM) as u64;
        }
        Ok(PartitionManager {
            source: Source::Own(Box::new(Mutex::new(core::PartitionManager::new(made)))),
            assigned: Mutex::default(),
        })
    }

    #[staticmethod]
    fn with_memory(py: Python<'_>, total_memory: u64) -> PyResult<PartitionManager> {
        PartitionManager::new(py, Some(&PartitionConfig::new(py, total_memory, false, 1.0)?))
    }

    fn create_partition(&self, py: Python<'_>, id: &str, name: &str, limits: &PartitionLimits) -> PyResult<()> {
        let limits = limits.to_core(py)?;
        self.set(id, limits, |manager, limits| manager.create(id, name, limits))
            .map_err(|error| spec_error(py, error))
    }

    /// New limits, whatever runs in it: tasks that hold more keep it to their end; waiting ones that can never fit are rejected.
    fn resize_partition(&self, py: Python<'_>, id: &str, limits: &PartitionLimits) -> PyResult<()> {
        let limits = limits.to_core(py)?;
        self.set(id, limits, |manager, limits| manager.resize(id, limits))
            .map_err(|error| spec_error(py, error))?;
        if let Some(accounts) = self.accounts() {
            accounts.resize(id, || self.read(|manager| manager.memory_bound(id)));
        }
        Ok(())
    }

    fn delete_partition(&self, py: Python<'_>, id: &str) -> PyResult<Partition> {
        let gone = self
            .with(|manager| manager.delete(id))
            .map_err(|error| spec_error(py, error))?;
        if let Some(holdings) = self.holdings() {
            holdings.release(id);
        }
        if let Some(accounts) = self.accounts() {
            accounts.close(id);
        }
        let view = self.view(&gone, core::Reservation::default());
        self.assigned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, partition| partition != id);
        Ok(view)
    }

    fn get(&self, id: &str) -> Option<Partition> {
        let (partition, used) = self.read(|manager| Some((manager.get(id)?.clone(), manager.used(id)?)))?;
        Some(self.view(&partition, used))
    }

    /// Notes which partition a task belongs to; a scheduler's tasks are placed by submit(partition=) instead.
    fn assign_task(&self, task_id: TaskId, partition_id: String) -> PyResult<()> {
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
        id.map_or_else(|| self.default_partition(), |id| self.get(&id))
    }

    fn unassign_task(&self, task_id: TaskId) {
        self.assigned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&*task_id);
    }

    fn set_default(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.change(py, |manager| manager.set_default(Some(id)))
    }

    fn default_partition(&self) -> Option<Partition> {
        let id = self.read(|manager| manager.default_partition().map(|p| p.id.clone()))?;
        self.get(&id)
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
