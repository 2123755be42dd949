//! Raises the package's own exceptions (pygpukit.core.errors) from Rust, and warns.

use pygpukit_core::partition::SpecError;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

/// An instance of `pygpukit.core.errors.<class>` made with `args`; the lookup's own error when that fails.
pub fn raise_with<'py>(py: Python<'py>, class: &str, args: impl PyCallArgs<'py>) -> PyErr {
    let built = py
        .import("pygpukit.core.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1(args));
    match built {
        Ok(instance) => PyErr::from_value(instance),
        Err(error) => error,
    }
}

/// The core's SpecError as InvalidSpecError, which is a ValueError.
pub fn spec_error(py: Python<'_>, error: SpecError) -> PyErr {
    raise_with(py, "InvalidSpecError", (error.to_string(), error.field))
}

/// Warns that what the caller called is deprecated. Where warnings are errors, that.
pub fn deprecated(py: Python<'_>, message: &str) -> PyResult<()> {
    let category = py.get_type::<pyo3::exceptions::PyDeprecationWarning>();
    let message = crate::native::c_string(message);
    PyErr::warn(py, &category, &message, 2)
}

// ---- the default pools ----
