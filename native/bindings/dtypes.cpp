// dtypes.cpp: the table of dtypes, which Python fills.
#include "bindings/dtypes.h"

#include "pygpukit/dtype.h"

namespace pk {

static PyObject *g_dtype_table = nullptr;    // dict: spelling -> code
static PyObject *g_dtype_objects = nullptr;  // tuple: code -> DataType
static PyObject *g_dtype_resolve = nullptr;  // fallback for other spellings

bool ensure_dtypes() {
  if (__builtin_expect(g_dtype_table != nullptr, 1)) return true;
  PyObject *module = PyImport_ImportModule("pygpukit.core.dtypes");  // registers them
  if (module == nullptr) return false;
  Py_DECREF(module);
  if (g_dtype_table != nullptr) return true;
  PyErr_SetString(PyExc_RuntimeError, "pygpukit.core.dtypes did not register the dtypes");
  return false;
}

bool dtype_code(PyObject *spelling, int8_t *code) {
  if (!ensure_dtypes()) return false;
  PyObject *value = PyDict_GetItemWithError(g_dtype_table, spelling);
  if (value == nullptr) {
    if (PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;  // an interrupt that came while it was hashed
      PyErr_Clear();                                               // unhashable: let the resolver say so
    }
    PyObject *resolved = PyObject_CallOneArg(g_dtype_resolve, spelling);
    if (resolved == nullptr) return false;
    *code = static_cast<int8_t>(PyLong_AsLong(resolved));
    Py_DECREF(resolved);
    return !PyErr_Occurred();
  }
  *code = static_cast<int8_t>(PyLong_AsLong(value));
  return true;
}

PyObject *dtype_object(int8_t code) {
  if (g_dtype_objects == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "dtypes are not registered");
    return nullptr;
  }
  PyObject *object = PyTuple_GetItem(g_dtype_objects, code);
  Py_XINCREF(object);
  return object;
}

int8_t code_of_dtype(PyObject *object) {
  for (int8_t code = 0; g_dtype_objects != nullptr && code < PK_DTYPE_COUNT; ++code)
    if (PyTuple_GET_ITEM(g_dtype_objects, code) == object) return code;
  return -1;
}

PyObject *register_dtypes(PyObject *, PyObject *args) {
  PyObject *table, *objects, *resolve;
  if (!PyArg_ParseTuple(args, "O!OO:register_dtypes", &PyDict_Type, &table, &objects, &resolve)) return nullptr;
  PyObject *tuple = PySequence_Tuple(objects);
  if (tuple == nullptr) return nullptr;
  if (PyTuple_GET_SIZE(tuple) != PK_DTYPE_COUNT) {
    Py_DECREF(tuple);
    return PyErr_Format(PyExc_ValueError, "expected %d dtypes in the order of dtype.h", PK_DTYPE_COUNT);
  }
  Py_XSETREF(g_dtype_table, Py_NewRef(table));
  Py_XSETREF(g_dtype_objects, tuple);
  Py_XSETREF(g_dtype_resolve, Py_NewRef(resolve));
  Py_RETURN_NONE;
}

}  // namespace pk
