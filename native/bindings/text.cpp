// text.cpp: text between Python and C++ that neither way can fail.
#include "bindings/text.h"

namespace pk {

bool read_text(PyObject *value, std::string *out) {
  if (!PyUnicode_Check(value)) {
    PyErr_Format(PyExc_TypeError, "expected a str, got a value of type %s", Py_TYPE(value)->tp_name);
    return false;
  }
  Py_ssize_t length = 0;
  if (const char *text = PyUnicode_AsUTF8AndSize(value, &length)) {
    out->assign(text, static_cast<size_t>(length));
    return true;
  }
  PyErr_Clear();
  PyObject *bytes = PyUnicode_AsEncodedString(value, "utf-8", "backslashreplace");
  if (bytes == nullptr) return false;
  out->assign(PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes)));
  Py_DECREF(bytes);
  return true;
}

PyObject *text_of(const std::string &bytes) {
  return PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace");
}

}  // namespace pk
