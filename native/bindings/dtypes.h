// dtypes.h: element types by spelling, code and object, as core/dtypes.py registers them.
#pragma once
#include <Python.h>

#include <cstdint>

namespace pk {

// Has Python register the dtypes and the class of arrays, if it has not. False with an exception set.
bool ensure_dtypes();
bool dtype_code(PyObject *spelling, int8_t *code);  // false with an exception set
PyObject *dtype_object(int8_t code);                // new reference

int8_t code_of_dtype(PyObject *object);  // -1 where it is no DataType

// A function for Python: sets the table.
PyObject *register_dtypes(PyObject *, PyObject *args);

}  // namespace pk
