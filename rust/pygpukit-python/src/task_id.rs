//! Tasks as arguments: wherever Python gives the id of a task it may give the task.

use std::ops::Deref;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A string, or the `id` of what has one that is a string. TypeError for anything else.
pub struct TaskId(pub String);

impl<'a, 'py> FromPyObject<'a, 'py> for TaskId {
    type Error = PyErr;

    fn extract(task: Borrowed<'a, 'py, PyAny>) -> PyResult<TaskId> {
        let own = task.extract::<String>();
        let id = own.or_else(|_| task.getattr("id").and_then(|id| id.extract()));
        id.map(TaskId)
            .map_err(|_: PyErr| PyTypeError::new_err(format!("{:?} is neither a task nor the id of one", *task)))
    }
}

impl Deref for TaskId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
