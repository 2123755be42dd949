//! Text from Python as an argument that cannot fail to be read: what UTF-8 cannot hold is written as an escape.

use std::borrow::Cow;
use std::ops::Deref;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A str. Half characters (surrogates, as `os.fsdecode()` makes of foreign bytes) become `\udcff`; TypeError for anything but a str.
pub struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Text<'a> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Text<'a>> {
        if let Ok(whole) = value.extract::<&'a str>() {
            return Ok(Text::from(whole));
        }
        escaped(value.cast::<PyString>()?.as_any()).map(|text| Text(Cow::Owned(text)))
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text(Cow::Borrowed(text))
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

fn escaped(text: &Bound<'_, PyAny>) -> PyResult<String> {
    let str_type = text.py().get_type::<PyString>(); // a subclass may have an encode() of its own
    let encoded = str_type.call_method1("encode", (text, "utf-8", "backslashreplace"))?;
    let bytes = encoded.cast_into::<PyBytes>()?;
    Ok(String::from_utf8_lossy(bytes.as_bytes()).into_owned())
}

/// As `Text`, for where it is to be kept, or one of many.
pub struct OwnText(pub String);

impl<'a, 'py> FromPyObject<'a, 'py> for OwnText {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<OwnText> {
        value.extract::<Text<'_>>().map(|text| OwnText(text.into_string()))
    }
}

/// A task as an argument: its id or, where Python gives the task, the `id` of it. TypeError for anything else.
pub struct TaskId(pub String);

impl<'a, 'py> FromPyObject<'a, 'py> for TaskId {
    type Error = PyErr;

    fn extract(task: Borrowed<'a, 'py, PyAny>) -> PyResult<TaskId> {
        let own = task.extract::<OwnText>();
        let id = own.or_else(|_| task.getattr("id").and_then(|id| id.extract()));
        id.map(|OwnText(id)| TaskId(id))
            .map_err(|_: PyErr| PyTypeError::new_err(format!("{:?} is neither a task nor the id of one", *task)))
    }
}

impl Deref for TaskId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
