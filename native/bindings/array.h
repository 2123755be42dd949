// array.h: ArrayBase, the hand-written CPython type under GPUArray: a strided view of one storage.
#pragma once
#include <Python.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "bindings/storage.h"
#include "launch/runtime.h"
#include "pygpukit/dtype.h"

namespace pk {

constexpr int kMaxDims = 16;

struct ArrayObject {
  PyObject_HEAD Storage *storage;
  PyObject *weakrefs;
  int64_t offset;  // bytes from the storage's start
  int64_t size;    // elements
  int8_t dtype;
  int8_t ndim;
  bool contiguous;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];  // bytes
};

extern PyTypeObject ArrayBase_Type;

inline bool is_array(PyObject *object) {
  return Py_TYPE(object) == &ArrayBase_Type || PyType_IsSubtype(Py_TYPE(object), &ArrayBase_Type);
}
inline ArrayObject *as_array(PyObject *object) { return reinterpret_cast<ArrayObject *>(object); }
inline uint64_t address_of(const ArrayObject *array) {
  return array->storage->address + static_cast<uint64_t>(array->offset);
}
inline int64_t itemsize_of(const ArrayObject *array) { return pk_dtype_bytes(array->dtype); }
inline int64_t nbytes_of(const ArrayObject *array) { return array->size * itemsize_of(array); }

// Pins the array's block for a launch or copy on `stream`: resident afterwards, not reused before that stream has
// passed, and what is queued there from now on comes after the array's transfers. False with an exception set. Every
// true is paired with unpin().
bool pin(ArrayObject *array, uint64_t stream, uint64_t now_ns);
inline void unpin(ArrayObject *array) {
  if (array->storage->state != nullptr) {
    reinterpret_cast<std::atomic<uint32_t> *>(&array->storage->state->pins)->fetch_sub(1, std::memory_order_seq_cst);
  }
}

// Pins several arrays, unpins what it pinned when it goes away.
class Pins {
 public:
  ~Pins() {
    for (int i = 0; i < count_; ++i) unpin(first_[i]);
    for (ArrayObject *array : more_) unpin(array);
  }
  bool add(ArrayObject *array, uint64_t stream) {
    if (count_ == 0) now_ns_ = pk_now_ns();  // one reading of the clock serves them all
    if (!pin(array, stream, now_ns_)) return false;
    if (count_ < kFirst) {
      first_[count_++] = array;
    } else {
      more_.push_back(array);
    }
    return true;
  }

 private:
  static constexpr int kFirst = 32;  // as many need no heap memory
  ArrayObject *first_[kFirst];
  std::vector<ArrayObject *> more_;
  int count_ = 0;
  uint64_t now_ns_ = 0;
};

// An array without its storage.
struct ArrayLayout {
  int64_t offset, size;
  int8_t dtype, ndim;
  bool contiguous;
  int64_t shape[kMaxDims], strides[kMaxDims];

  explicit ArrayLayout(const ArrayObject *array);
};
// A new array over a storage, which reaches that far; null with an exception set.
PyObject *array_over(Storage *storage, const ArrayLayout &layout);

// A new dense array of the shape of another on the current device and stream; null with an exception set.
PyObject *empty_like(const ArrayObject *array, int8_t dtype);

// Adds ArrayBase to the module (array_type.cpp). False with an exception set.
bool init_array_type(PyObject *module);
// Adds ArrayBase and the functions that make arrays to the module. False with an exception set.
bool init_array(PyObject *module);

}  // namespace pk
