//! Raises the package's own exceptions (pygpukit.core.errors) from Rust.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

/// An instance of `pygpukit.core.errors.<class>` made with `args`; the lookup's own error when that fails.
pub fn raise_with<'py>(py: Python<'py>, class: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let made = py
        .import("pygpukit.core.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1(args));
    match made {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}
