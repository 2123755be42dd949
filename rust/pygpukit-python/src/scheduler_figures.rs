//! What the task tables and the gates counted, as Python dicts.

use std::collections::HashMap;

use pygpukit_core::pacing::View;
use pygpukit_core::partition::WHOLE_SHARE_PPM;
use pygpukit_core::scheduler as core;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::gate;
use crate::sms;

pub fn totals<'py>(py: Python<'py>, stats: &core::Stats) -> PyResult<Bound<'py, PyDict>> {
    fields(py, &stats.fields())
}

pub fn fields<'py>(py: Python<'py>, fields: &[(&'static str, u64)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in fields {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// What is reserved on each device and how many tasks are there.
pub fn reserved<'py>(py: Python<'py>, views: &[core::DeviceView]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    views.iter().map(|view| fields(py, &view.fields())).collect()
}

/// What the tasks of each name used and wait for, and what they got of the devices over the last 10 ms, 100 ms and 1 s.
pub fn tenants<'py>(py: Python<'py>, scheduler: &core::Scheduler) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let (tenants, shares) = py.detach(|| {
        let views = gate::views();
        let tenants = scheduler.call(|table, now| table.tenants(now));
        (tenants, shares(&views))
    });
    tenants.iter().map(|tenant| tenant_dict(py, tenant, &shares)).collect()
}

/// One dict for each gate: of a device that tasks have launched on, and of each set of multiprocessors there.
pub fn devices(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let views = py.detach(gate::views);
    views
        .iter()
        .map(|(device, lane, view)| view_dict(py, *device, sms::lane_ppm(*device, *lane), view))
        .collect()
}

/// By a task's number, over all gates.
fn shares(views: &[(usize, usize, View)]) -> HashMap<u64, [f64; 3]> {
    let of_device = |device: usize, lane: usize, ppm: u32| {
        f64::from(ppm) * f64::from(sms::lane_ppm(device, lane)) / f64::from(WHOLE_SHARE_PPM).powi(2)
    };
    let mut shares: HashMap<u64, [f64; 3]> = HashMap::new();
    for (device, lane, view) in views {
        for tenant in &view.tenants {
            let sum = shares.entry(tenant.number).or_default();
            for (sum, ppm) in sum.iter_mut().zip(tenant.shares_ppm) {
                *sum += of_device(*device, *lane, ppm);
            }
        }
    }
    shares
}

fn tenant_dict<'py>(
    py: Python<'py>,
    tenant: &core::TenantView,
    shares: &HashMap<u64, [f64; 3]>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let core::TenantUse {
        tasks,
        requeues,
        preemptions,
        used,
    } = tenant.total;
    dict.set_item("name", tenant.name.as_deref())?;
    for (name, value) in [
        ("tasks", tasks),
        ("requeues", requeues),
        ("preemptions", preemptions),
        ("launches", used.launches),
        ("slices", used.slices),
        ("gpu_ns", used.gpu_ns),
        ("paced", used.paced),
        ("waited_ns", used.waited_ns),
        ("throttles", used.throttles),
        ("throttled_ns", used.throttled_ns),
        ("waiting", tenant.waiting),
        ("position", tenant.place),
        ("running", tenant.running.len() as u64),
    ] {
        dict.set_item(name, value)?;
    }
    let mut sums = [0.0; 3];
    for share in tenant.running.iter().filter_map(|number| shares.get(number)) {
        for (sum, share) in sums.iter_mut().zip(share) {
            *sum += share;
        }
    }
    dict.set_item("shares", sums)?;
    Ok(dict)
}

fn view_dict<'py>(py: Python<'py>, device: usize, lane_ppm: u32, view: &View) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("device", device)?;
    dict.set_item("now_ns", view.now_ns)?;
    dict.set_item("in_flight_ns", view.in_flight_ns)?;
    let tenants = PyDict::new(py);
    for tenant in &view.tenants {
        let fields = PyDict::new(py);
        fields.set_item("gpu_ns", tenant.gpu_ns)?;
        fields.set_item("joined_ns", tenant.joined_ns)?;
        // Of the time on some of the multiprocessors, as a share of the device.
        let of_device = |ppm: u32| (u64::from(ppm) * u64::from(lane_ppm) / u64::from(WHOLE_SHARE_PPM)) as u32;
        fields.set_item("shares_ppm", tenant.shares_ppm.map(of_device))?;
        fields.set_item("waits", tenant.waits)?;
        tenants.set_item(tenant.number, fields)?;
    }
    dict.set_item("tenants", tenants)?;
    let throttles = view.throttles.iter().map(|t| (t.number, t.from_ns, t.until_ns));
    dict.set_item("throttles", throttles.collect::<Vec<_>>())?;
    Ok(dict)
}
