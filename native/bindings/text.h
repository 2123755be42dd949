// text.h: text from Python as UTF-8 that cannot fail, and bytes of unknown origin as text that cannot fail.
#pragma once
#include <Python.h>
#include <pybind11/pybind11.h>

#include <string>

namespace pk {

// The str as UTF-8; half characters (surrogates, as os.fsdecode() makes of foreign bytes) become \udcff, as in Rust.
// False with TypeError for anything else.
bool read_text(PyObject *value, std::string *out);

// A converter for PyArg_Parse's "O&" into a std::string.
inline int text_argument(PyObject *value, void *out) { return read_text(value, static_cast<std::string *>(out)); }

// UTF-8 as far as it is; a new reference.
PyObject *text_of(const std::string &bytes);

// An argument of a bound function.
struct Text {
  std::string utf8;
};

}  // namespace pk

namespace pybind11::detail {

template <>
struct type_caster<pk::Text> {
  PYBIND11_TYPE_CASTER(pk::Text, const_name("str"));

  bool load(handle source, bool) {
    if (pk::read_text(source.ptr(), &value.utf8)) return true;
    PyErr_Clear();
    return false;
  }
};

}  // namespace pybind11::detail
