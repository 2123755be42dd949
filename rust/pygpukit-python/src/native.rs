//! Starts the C++ submodule inside this extension module.

use std::ffi::CString;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyModule;

extern "C" {
    /// pybind11's module definition (multi-phase initialisation).
    fn PyInit_native() -> *mut ffi::PyObject;
}

/// Creates `pygpukit._core.native` and adds it to `parent` and `sys.modules`.
///
/// pybind11 reads `__spec__.name` while the module executes, so the spec is set before.
pub fn add_native(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = parent.py();
    let name = "pygpukit._core.native";
    let spec = py
        .import("importlib.machinery")?
        .getattr("ModuleSpec")?
        .call1((name, py.None()))?;
    // SAFETY: called with the GIL; PyInit_native returns a static PyModuleDef (borrowed), as multi-phase modules do.
    let module = unsafe {
        let definition = PyInit_native() as *mut ffi::PyModuleDef;
        if definition.is_null() {
            return Err(PyErr::fetch(py));
        }
        let module = ffi::PyModule_FromDefAndSpec(definition, spec.as_ptr());
        let module = Bound::from_owned_ptr_or_err(py, module)?;
        module.setattr("__spec__", &spec)?;
        if ffi::PyModule_ExecDef(module.as_ptr(), definition) != 0 {
            return Err(PyErr::fetch(py));
        }
        module
    };
    py.import("sys")?.getattr("modules")?.set_item(name, &module)?;
    parent.add("native", module)
}

/// A Rust string as a C string, with interior NULs cut off.
pub fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}
