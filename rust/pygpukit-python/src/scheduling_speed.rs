//! What calls on the task table cost, for the benchmark suite.

use pygpukit_core::scheduler::speed;
use pyo3::prelude::*;

/// Nanoseconds a call on the task table, by name; tenants: partitions that take turns. Without the GIL.
#[pyfunction]
pub fn scheduling_ns(py: Python<'_>, tenants: usize, rounds: usize) -> Vec<(&'static str, f64)> {
    let speed = py.detach(|| speed::one_by_one(tenants, rounds.max(1)));
    vec![
        ("submit p50", speed.submit_p50),
        ("submit p99", speed.submit_p99),
        ("next p50", speed.next_p50),
        ("next p99", speed.next_p99),
        ("finish p50", speed.finish_p50),
    ]
}

/// Nanoseconds of so many submissions in a row into a new table. Without the GIL.
#[pyfunction]
pub fn submissions_ns(py: Python<'_>, tenants: usize, tasks: usize) -> u64 {
    py.detach(|| speed::in_a_row(tenants, tasks))
}
