// signature.h: everything about a call's arguments that decides what the call does.
#pragma once
#include <Python.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "bindings/array.h"

namespace pk {

// Of arrays: type, shape, strides, place in their memory, and which of them share memory. Of all else that it takes
// (numbers, text, dtypes, slices, lists and tuples of such): the value and its type.
class Signature {
 public:
  static constexpr int kMaxArrays = 24;

  // False: there is something that it does not take, or too much.
  bool add_call(uint64_t operation, PyObject *const *args, size_t nargs, PyObject *kwnames);
  std::string_view text() const { return {reinterpret_cast<const char *>(bytes_), size_}; }
  uint64_t hash() const;
  PyObject *const *arrays() const { return arrays_; }
  int count() const { return count_; }

 private:
  bool add(PyObject *value, int depth);
  bool add_array(PyObject *object);
  bool add_items(PyObject *const *items, Py_ssize_t count, int depth);
  bool put(const void *data, size_t size) {
    if (size > sizeof bytes_ - size_) return false;
    std::memcpy(bytes_ + size_, data, size);
    size_ += size;
    return true;
  }
  template <typename T>
  bool put(char kind, const T &value) {
    return put(&kind, 1) && put(&value, sizeof value);
  }

  alignas(8) unsigned char bytes_[2048];
  size_t size_ = 0;
  PyObject *arrays_[kMaxArrays];  // borrowed
  int count_ = 0;
};

}  // namespace pk
