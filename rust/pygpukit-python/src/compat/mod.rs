//! Classes that exist only for the older public project, reached as `_pygpukit_rust`: thin views of what the core decides.

mod admission;
mod pinned;
mod qos;
mod slicing;
mod tasks;
mod transfer_values;
mod transfer_view;

use pyo3::prelude::*;

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    qos::add(module)?;
    admission::add(module)?;
    tasks::add(module)?;
    pinned::add(module)?;
    slicing::add(module)?;
    transfer_values::add(module)?;
    transfer_view::add(module)
}
