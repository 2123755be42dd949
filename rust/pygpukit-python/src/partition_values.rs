//! What the documented partition classes take and give: limits, configuration, and copies of a partition's state.

use pygpukit_core::partition as core;
use pyo3::prelude::*;

use crate::errors::raise_with;
use crate::text::OwnText;
use crate::units::{fraction, ppm};

/// Quota and bounds of a partition; shares are fractions of the device. The three of memory(), compute() and bandwidth() return
/// changed copies. bandwidth_share, of the memory's bandwidth, is planned with alone: sums beyond the device are refused, and nothing
/// measures or bounds what tasks move.
#[pyclass(frozen, get_all, skip_from_py_object, module = "pygpukit._core")]
#[derive(Clone)]
pub struct PartitionLimits {
    pub memory_quota: u64,
    pub compute_share: f64,
    pub bandwidth_share: f64,
    pub max_streams: u32,
    /// Lowest and highest priority of its tasks.
    pub priorities: (i32, i32),
    /// Turns at the dispatcher against other partitions.
    pub weight: u32,
    pub isolation: String,
    /// (bytes, share) over the quota, and of an unused quota for others.
    pub borrow: (u64, f64),
    pub lend: (u64, f64),
    /// The device that it is a part of.
    pub device: u32,
}

impl PartitionLimits {
    pub fn of(limits: &core::Limits) -> PartitionLimits {
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
            device: limits.device,
        }
    }

    pub fn to_core(&self, py: Python<'_>) -> PyResult<core::Limits> {
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
            device: self.device,
        })
    }
}

#[pymethods]
impl PartitionLimits {
    #[new]
    #[pyo3(signature = (memory_quota=0, compute_share=1.0, bandwidth_share=1.0, max_streams=16, *, priorities=(i32::MIN, i32::MAX),
        weight=1, isolation=OwnText("shared".to_string()), borrow=(0, 0.0), lend=(0, 0.0), device=0))]
    #[allow(clippy::too_many_arguments)] // the keyword arguments of one Python call
    fn new(
        py: Python<'_>,
        memory_quota: u64,
        compute_share: f64,
        bandwidth_share: f64,
        max_streams: u32,
        priorities: (i32, i32),
        weight: u32,
        isolation: OwnText,
        borrow: (u64, f64),
        lend: (u64, f64),
        device: u32,
    ) -> PyResult<PartitionLimits> {
        let limits = PartitionLimits {
            memory_quota,
            compute_share,
            bandwidth_share,
            max_streams,
            priorities,
            weight,
            isolation: isolation.0,
            borrow,
            lend,
            device,
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
    pub total_memory: u64,
    pub allow_overcommit: bool,
    pub overcommit_ratio: f64,
}

#[pymethods]
impl PartitionConfig {
    #[new]
    #[pyo3(signature = (total_memory=8 << 30, allow_overcommit=false, overcommit_ratio=1.0))]
    pub fn new(
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
    pub memory_used: u64,
    pub compute_used: f64,
    /// Tasks that run; each has a stream.
    pub active_streams: u32,
    pub unfinished_tasks: usize,
    /// Kernels that its tasks submitted so far, each of a graph, and of those the ones that wait for their turn, where a graph counts once.
    pub total_kernels: u64,
    pub pending_kernels: u64,
    /// Copies that they submitted so far, and of those the ones that wait for their turn, or that a transfer engine has not finished.
    pub total_transfers: u64,
    pub pending_transfers: u64,
    /// Device time that they were charged with so far.
    pub compute_time_ms: f64,
}

/// A copy of one partition's state.
#[pyclass(frozen, get_all, module = "pygpukit._core")]
pub struct Partition {
    pub id: String,
    pub name: String,
    pub limits: PartitionLimits,
    pub usage: PartitionUsage,
    /// Ids given to assign_task().
    pub tasks: Vec<String>,
    pub enabled: bool,
    /// With isolation="sm": the multiprocessors that its tasks have to themselves, and which part of the device's they are. Else 0.
    pub sms: u32,
    pub sm_share: f64,
    /// Tasks that started before the last change of such a partition still use multiprocessors by the old division; how long the
    /// change took, or takes so far.
    pub sm_switching: bool,
    pub sm_switch_ns: u64,
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
    pub partition_count: usize,
    pub active_partitions: usize,
    pub total_memory_allocated: u64,
    pub total_compute_allocated: f64,
    pub total_bandwidth_allocated: f64,
    pub available_memory: u64,
    pub available_compute: f64,
    pub available_bandwidth: f64,
}
