// signature.cpp: arguments as bytes. Every value begins with a letter for its kind, so no two calls have the same
// bytes.
#include "bindings/signature.h"

#include <algorithm>

#include "bindings/dtypes.h"

namespace pk {

bool Signature::add_array(PyObject *object) {
  const ArrayObject *array = as_array(object);
  if (array->storage->block == 0 || array->storage->device != t_state.device) return false;  // foreign, or an error
  uint8_t sharing = static_cast<uint8_t>(count_);
  for (int i = count_ - 1; i >= 0; --i) {
    if (arrays_[i] == object) return put('=', i);
    if (as_array(arrays_[i])->storage == array->storage) sharing = static_cast<uint8_t>(i);
  }
  if (count_ == kMaxArrays) return false;
  arrays_[count_++] = object;
  const unsigned char head[] = {'a', static_cast<unsigned char>(array->dtype), static_cast<unsigned char>(array->ndim),
                                sharing};
  const size_t extents = static_cast<size_t>(array->ndim) * sizeof(int64_t);
  return put(head, sizeof head) && put(&array->offset, sizeof array->offset) && put(array->shape, extents) &&
         put(array->strides, extents);
}

bool Signature::add_items(PyObject *const *items, Py_ssize_t count, int depth) {
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!add(items[i], depth + 1)) return false;
  return true;
}

bool Signature::add(PyObject *value, int depth) {
  if (is_array(value)) return add_array(value);
  if (value == Py_None) return put("n", 1);
  if (value == Py_True) return put("t", 1);
  if (value == Py_False) return put("f", 1);
  if (PyLong_CheckExact(value)) {
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 && put('i', number);
  }
  if (PyFloat_CheckExact(value)) return put('d', PyFloat_AS_DOUBLE(value));
  if (PyComplex_CheckExact(value)) return put('c', PyComplex_AsCComplex(value));
  if (PyUnicode_CheckExact(value)) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == nullptr) PyErr_Clear();
    return text != nullptr && put('s', size) && put(text, static_cast<size_t>(size));
  }
  if (depth < 4 && (PyTuple_CheckExact(value) || PyList_CheckExact(value))) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
    return put(PyList_CheckExact(value) ? 'l' : 'u', count) && add_items(PySequence_Fast_ITEMS(value), count, depth);
  }
  if (PySlice_Check(value)) {
    const PySliceObject *slice = reinterpret_cast<PySliceObject *>(value);
    PyObject *const parts[] = {slice->start, slice->stop, slice->step};
    return put("r", 1) && add_items(parts, 3, depth);
  }
  if (value == Py_Ellipsis) return put("e", 1);
  const int8_t code = code_of_dtype(value);
  return code >= 0 && put('y', code);
}

bool Signature::add_call(uint64_t operation, PyObject *const *args, size_t nargs, PyObject *kwnames) {
  const Py_ssize_t named = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  const uint64_t head[] = {operation, static_cast<uint64_t>(t_state.device), nargs, static_cast<uint64_t>(named)};
  if (!put(head, sizeof head) || !add_items(args, static_cast<Py_ssize_t>(nargs) + named, 0)) return false;
  for (Py_ssize_t i = 0; i < named; ++i)
    if (!add(PyTuple_GET_ITEM(kwnames, i), 0)) return false;
  return true;
}

uint64_t Signature::hash() const {
  uint64_t mixed = size_;
  for (size_t at = 0; at < size_; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes_ + at, std::min<size_t>(8, size_ - at));
    mixed = (mixed ^ word) * 0x9e3779b97f4a7c15ull;
    mixed ^= mixed >> 32;
  }
  return mixed;
}

}  // namespace pk
