// array.cpp: pinning, and what makes arrays: empty / view / wrap.
#include "bindings/array.h"

#include <algorithm>
#include <string>

#include "bindings/checked.h"
#include "bindings/dtypes.h"
#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/recorder.h"
#include "bindings/transfers.h"

namespace pk {

static PyTypeObject *g_array_type = nullptr;  // GPUArray, once its module has registered it

// ---- pinning ----

bool pin(ArrayObject *array, uint64_t stream, uint64_t now_ns) {
  Storage *storage = array->storage;
  if (__builtin_expect(storage->moving, 0) && !await_transfers(array, stream)) return false;
  if (storage->state == nullptr) return true;
  auto *pins = reinterpret_cast<std::atomic<uint32_t> *>(&storage->state->pins);
  auto *resident = reinterpret_cast<std::atomic<uint32_t> *>(&storage->state->resident);
  auto *last_use = reinterpret_cast<std::atomic<uint64_t> *>(&storage->state->last_use);
  last_use->store(now_ns, std::memory_order_relaxed);
  pins->fetch_add(1, std::memory_order_seq_cst);
  if (__builtin_expect(resident->load(std::memory_order_seq_cst) == 0, 0)) {
    pins->fetch_sub(1, std::memory_order_seq_cst);
    int32_t status;
    {
      NoGil released;
      status = pk_pool_pin(storage->pool, storage->block, t_state.account);
    }
    pk_pool_tell(storage->pool);
    if (status != PK_POOL_OK) {
      pk_pool_raise();
      return false;
    }
  }
  if (__builtin_expect(storage->stream != stream, 0)) pk_pool_record_use(storage->pool, storage->block, stream);
  return true;
}

// ---- making arrays ----

static PyObject *register_array_type(PyObject *, PyObject *type) {
  if (!PyType_Check(type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(type), &ArrayBase_Type)) {
    PyErr_SetString(PyExc_TypeError, "register_array_type() needs a subclass of ArrayBase");
    return nullptr;
  }
  g_array_type = reinterpret_cast<PyTypeObject *>(Py_NewRef(type));
  Py_RETURN_NONE;
}

// shape product times itemsize, refusing more than 2^63 bytes.
static bool total_bytes(const int64_t *shape, int ndim, int64_t itemsize, int64_t *bytes) {
  int64_t total = itemsize;
  bool zero = false;
  for (int axis = 0; axis < ndim; ++axis) {
    if (shape[axis] == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(total, shape[axis], &total)) {
      raise_named("ShapeError", "the array would have more than 2^63 bytes; check the shape");
      return false;
    }
  }
  *bytes = zero ? 0 : total;
  return true;
}

// Size and contiguity from shape and strides; false with an exception set when the size overflows.
static bool finish_layout(ArrayObject *array) {
  int64_t bytes;
  int64_t expected = pk_dtype_bytes(array->dtype);
  if (!total_bytes(array->shape, array->ndim, expected, &bytes)) return false;
  array->size = bytes / expected;
  array->contiguous = true;
  if (array->size == 0) return true;
  for (int axis = array->ndim - 1; axis >= 0; --axis) {
    if (array->shape[axis] != 1 && array->strides[axis] != expected) array->contiguous = false;
    expected *= array->shape[axis];
  }
  return true;
}

// The first array brings its class, with the operations that are its methods.
static bool ensure_array_type() {
  if (__builtin_expect(g_array_type != nullptr, 1)) return true;
  PyObject *module = PyImport_ImportModule("pygpukit.ops.methods.bind");
  if (module == nullptr) return false;
  Py_DECREF(module);
  if (g_array_type != nullptr) return true;
  PyErr_SetString(PyExc_RuntimeError, "pygpukit.ops.methods.bind did not register the class of arrays");
  return false;
}

static ArrayObject *new_array(Storage *storage, int8_t dtype) {
  if (!ensure_array_type()) return nullptr;
  ArrayObject *array = reinterpret_cast<ArrayObject *>(g_array_type->tp_alloc(g_array_type, 0));
  if (array == nullptr) return nullptr;
  array->storage = storage;
  array->weakrefs = nullptr;
  array->offset = 0;
  array->dtype = dtype;
  return array;
}

ArrayLayout::ArrayLayout(const ArrayObject *array)
    : offset(array->offset), size(array->size), dtype(array->dtype), ndim(array->ndim), contiguous(array->contiguous) {
  std::copy_n(array->shape, ndim, shape);
  std::copy_n(array->strides, ndim, strides);
}

PyObject *array_over(Storage *storage, const ArrayLayout &layout) {
  ++storage->refs;
  ArrayObject *array = new_array(storage, layout.dtype);
  if (array == nullptr) {
    drop_storage(storage);
    return nullptr;
  }
  array->offset = layout.offset;
  array->size = layout.size;
  array->ndim = layout.ndim;
  array->contiguous = layout.contiguous;
  std::copy_n(layout.shape, layout.ndim, array->shape);
  std::copy_n(layout.strides, layout.ndim, array->strides);
  return reinterpret_cast<PyObject *>(array);
}

// Reads an int or a sequence of ints; negative extents are refused unless allowed (strides).
static bool read_extents(PyObject *object, int64_t *out, int8_t *count, const char *what, bool allow_negative) {
  bool one = PyLong_Check(object) || (!PySequence_Check(object) && PyIndex_Check(object));
  if (!one && PyIndex_Check(object) && PyObject_Size(object) < 0) {  // a 0-d array: it has no length
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    one = true;
  }
  if (one) {
    out[0] = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    *count = 1;
    if (out[0] == -1 && PyErr_Occurred()) return false;
  } else {
    PyObject *items = PySequence_Tuple(object);  // a list could change while its items are read
    if (items == nullptr) return false;
    const Py_ssize_t n = PyTuple_GET_SIZE(items);
    if (n > kMaxDims) {
      Py_DECREF(items);
      raise_named("ShapeError", std::string(what) + " has " + std::to_string(n) + " dimensions; at most " +
                                    std::to_string(kMaxDims) + " are supported");
      return false;
    }
    for (Py_ssize_t i = 0; i < n; ++i) {
      out[i] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(items, i), PyExc_OverflowError);
      if (out[i] == -1 && PyErr_Occurred()) {
        Py_DECREF(items);
        return false;
      }
    }
    *count = static_cast<int8_t>(n);
    Py_DECREF(items);
  }
  if (allow_negative) return true;
  for (int i = 0; i < *count; ++i) {
    if (out[i] >= 0) continue;
    raise_named("ShapeError", std::string(what) + ": extent " + std::to_string(out[i]) + " of axis " +
                                  std::to_string(i) + " is negative");
    return false;
  }
  return true;
}

// Size and C-contiguous strides of the array's shape.
static void set_dense(ArrayObject *array) {
  array->size = 1;
  array->contiguous = true;
  int64_t stride = itemsize_of(array);
  for (int axis = array->ndim - 1; axis >= 0; --axis) {
    array->strides[axis] = stride;
    array->size *= array->shape[axis];
    stride *= array->shape[axis] > 0 ? array->shape[axis] : 1;
  }
}

// A C-contiguous array over storage, whose reference it takes over. storage == null: allocates one of the right size.
static PyObject *make_dense(Storage *storage, PyObject *shape_object, int8_t code) {
  int64_t shape[kMaxDims];
  int8_t ndim;
  int64_t bytes;
  if (!read_extents(shape_object, shape, &ndim, "shape", false)) return nullptr;
  if (!total_bytes(shape, ndim, pk_dtype_bytes(code), &bytes)) return nullptr;
  const bool foreign = storage != nullptr;
  if (foreign && static_cast<uint64_t>(bytes) > storage->bytes) {
    PyErr_Format(PyExc_ValueError, "the array needs %lld bytes, the memory has %llu", static_cast<long long>(bytes),
                 static_cast<unsigned long long>(storage->bytes));
    return nullptr;
  }
  if (!foreign && (storage = allocate(static_cast<uint64_t>(bytes))) == nullptr) return nullptr;
  ArrayObject *array = new_array(storage, code);
  if (array == nullptr) {
    if (!foreign) drop_storage(storage);
    return nullptr;
  }
  array->ndim = ndim;
  std::copy(shape, shape + ndim, array->shape);
  set_dense(array);
  return reinterpret_cast<PyObject *>(array);
}

PyObject *empty_like(const ArrayObject *like, int8_t code) {
  if (like->size > INT64_MAX / pk_dtype_bytes(code)) {
    PyErr_SetString(PyExc_OverflowError, "the array is too large");
    return nullptr;
  }
  Storage *storage = allocate(static_cast<uint64_t>(like->size * pk_dtype_bytes(code)));
  if (storage == nullptr) return nullptr;
  ArrayObject *array = new_array(storage, code);
  if (array == nullptr) {
    drop_storage(storage);
    return nullptr;
  }
  array->ndim = like->ndim;
  std::copy(like->shape, like->shape + like->ndim, array->shape);
  set_dense(array);
  return reinterpret_cast<PyObject *>(array);
}

static PyObject *make_empty(PyObject *shape, PyObject *dtype) {
  int8_t code = PK_FLOAT32;
  if (!ensure_backend() || !ensure_dtypes()) return nullptr;
  if (dtype != nullptr && !dtype_code(dtype, &code)) return nullptr;
  PyObject *array = make_dense(nullptr, shape, code);
  if (t_recorder != nullptr && array != nullptr) t_recorder->note_new(as_array(array));
  return array;
}

// An array whose first axis is dense: the transpose of one of the reversed shape.
static PyObject *make_columns(PyObject *shape, PyObject *dtype) {
  int64_t extents[kMaxDims];
  int8_t ndim;
  if (!read_extents(shape, extents, &ndim, "shape", false)) return nullptr;
  PyObject *reversed = PyTuple_New(ndim);
  if (reversed == nullptr) return nullptr;
  for (int axis = 0; axis < ndim; ++axis) {
    PyObject *extent = PyLong_FromLongLong(extents[ndim - 1 - axis]);
    if (extent == nullptr) {
      Py_DECREF(reversed);
      return nullptr;
    }
    PyTuple_SET_ITEM(reversed, axis, extent);
  }
  PyObject *array = make_empty(reversed, dtype);
  Py_DECREF(reversed);
  if (array == nullptr) return nullptr;
  PyObject *transposed = PyObject_GetAttrString(array, "T");
  Py_DECREF(array);
  return transposed;
}

// Whether an order is columns first: 1, 0, or -1 with an exception set.
static int is_columns(PyObject *order) {
  if (order == nullptr || order == Py_None) return 0;
  if (PyUnicode_Check(order)) {
    if (PyUnicode_CompareWithASCIIString(order, "F") == 0) return 1;
    for (const char *rows : {"C", "A", "K"})
      if (PyUnicode_CompareWithASCIIString(order, rows) == 0) return 0;
  }
  PyErr_Format(PyExc_ValueError, "order is %R; it must be 'C', 'F', 'A' or 'K'", order);
  return -1;
}

// Of another device than the current one: seldom, so the switch is Python's.
static PyObject *empty_on(PyObject *device, PyObject *shape, PyObject *dtype, PyObject *order) {
  PyObject *module = PyImport_ImportModule("pygpukit.array.factory");
  if (module == nullptr) return nullptr;
  PyObject *array = PyObject_CallMethod(module, "empty_on", "OOOO", device, shape, dtype != nullptr ? dtype : Py_None,
                                        order != nullptr ? order : Py_None);
  Py_DECREF(module);
  return array;
}

static PyObject *empty(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  PyObject *shape = nargs > 0 ? args[0] : nullptr;
  PyObject *dtype = nargs > 1 ? args[1] : nullptr;
  PyObject *order = nargs > 2 ? args[2] : nullptr;
  PyObject *device = nullptr;
  const Py_ssize_t nkw = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < nkw; ++i) {
    PyObject *key = PyTuple_GET_ITEM(kwnames, i);
    if (PyUnicode_CompareWithASCIIString(key, "dtype") == 0 && nargs < 2) {
      dtype = args[nargs + i];
    } else if (PyUnicode_CompareWithASCIIString(key, "shape") == 0 && nargs < 1) {
      shape = args[nargs + i];
    } else if (PyUnicode_CompareWithASCIIString(key, "order") == 0 && nargs < 3) {
      order = args[nargs + i];
    } else if (PyUnicode_CompareWithASCIIString(key, "device") == 0) {
      device = args[nargs + i];
    } else {
      return PyErr_Format(PyExc_TypeError, "empty() got an unexpected argument '%U'", key);
    }
  }
  if (shape == nullptr || nargs > 3) {
    PyErr_SetString(PyExc_TypeError, "empty() takes a shape and an optional dtype and order");
    return nullptr;
  }
  if (device != nullptr && device != Py_None) return empty_on(device, shape, dtype, order);
  if (order == nullptr) return make_empty(shape, dtype);
  const int columns = is_columns(order);
  return columns < 0 ? nullptr : columns ? make_columns(shape, dtype) : make_empty(shape, dtype);
}

// Every element of the view lies inside [0, storage bytes), at a multiple of its own size: the device faults on others.
static bool check_bounds(const ArrayObject *array) {
  if (array->size == 0) return true;
  const int64_t itemsize = itemsize_of(array);
  int64_t low = array->offset, high = array->offset, unaligned = array->offset % itemsize;
  bool overflow = false;
  for (int axis = 0; axis < array->ndim; ++axis) {
    int64_t reach;
    int64_t &end = array->strides[axis] < 0 ? low : high;
    overflow |= __builtin_mul_overflow(array->shape[axis] - 1, array->strides[axis], &reach);
    overflow |= __builtin_add_overflow(end, reach, &end);
    if (array->shape[axis] > 1) unaligned |= array->strides[axis] % itemsize;
  }
  overflow |= __builtin_add_overflow(high, itemsize, &high);
  if (!overflow && low >= 0 && static_cast<uint64_t>(high) <= array->storage->bytes && unaligned == 0) return true;
  const std::string storage = " of a storage of " + std::to_string(array->storage->bytes) + " bytes";
  if (overflow) {
    raise_named("ShapeError", "the view would reach bytes past 2^63" + storage);
  } else if (low < 0 || static_cast<uint64_t>(high) > array->storage->bytes) {
    raise_named("ShapeError",
                "the view would reach bytes " + std::to_string(low) + " to " + std::to_string(high) + storage);
  } else {
    raise_named("ShapeError", "the view's offset and strides must be multiples of the element's " +
                                  std::to_string(itemsize) + " bytes");
  }
  return false;
}

static PyObject *make_view(Storage *storage, PyObject *shape, PyObject *strides, int64_t offset, int8_t dtype) {
  ++storage->refs;
  ArrayObject *array = new_array(storage, dtype);
  if (array == nullptr) {
    drop_storage(storage);
    return nullptr;
  }
  array->offset = offset;
  int8_t stride_count = 0;
  bool ok = read_extents(shape, array->shape, &array->ndim, "shape", false) &&
            read_extents(strides, array->strides, &stride_count, "strides", true);
  if (ok && stride_count != array->ndim) {
    raise_named("ShapeError", "shape and strides differ in length");
    ok = false;
  }
  if (!ok || !finish_layout(array) || !check_bounds(array)) {
    Py_DECREF(array);
    return nullptr;
  }
  return reinterpret_cast<PyObject *>(array);
}

static PyObject *view(PyObject *, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"array", "shape", "strides", "offset", "dtype", nullptr};
  PyObject *source, *shape, *strides, *dtype = Py_None;
  long long offset;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOL|O:view", const_cast<char **>(names), &ArrayBase_Type, &source,
                                   &shape, &strides, &offset, &dtype)) {
    return nullptr;
  }
  int8_t code = as_array(source)->dtype;
  if (dtype != Py_None && !dtype_code(dtype, &code)) return nullptr;
  PyObject *array = make_view(as_array(source)->storage, shape, strides, offset, code);
  if (t_recorder != nullptr && array != nullptr) t_recorder->viewed(as_array(array), source);
  return array;
}

static PyObject *shorten(PyObject *, PyObject *args) {
  PyObject *object;
  long long count;
  if (!PyArg_ParseTuple(args, "O!L:shorten", &ArrayBase_Type, &object, &count)) return nullptr;
  ArrayObject *array = as_array(object);
  Storage *storage = array->storage;
  spoil_record();
  if (array->ndim != 1 || !array->contiguous || array->offset != 0 || storage->state == nullptr || storage->refs != 1 ||
      count < 0 || count > array->size) {
    PyErr_Format(
        PyExc_ValueError,
        "shorten: %lld elements of an array of %lld; it must be 1-D, contiguous, the only one of memory of the "
        "pool, and no shorter",
        count, static_cast<long long>(array->size));
    return nullptr;
  }
  const uint64_t bytes = static_cast<uint64_t>(count) * static_cast<uint64_t>(itemsize_of(array));
  if (!ensure_backend()) return nullptr;
  if (pk_pool_shorten(storage->pool, storage->block, bytes + guard_of(bytes)) != PK_POOL_OK) {
    pk_pool_raise();
    return nullptr;
  }
  storage->bytes = bytes;
  array->shape[0] = array->size = count;
  Py_RETURN_NONE;
}

// PyArg converter: "K" would drop the upper bits and the sign.
static int read_uint64(PyObject *object, void *out) {
  PyObject *number = PyNumber_Index(object);
  if (number == nullptr) return 0;
  *static_cast<uint64_t *>(out) = PyLong_AsUnsignedLongLong(number);
  Py_DECREF(number);
  return PyErr_Occurred() == nullptr;
}

static PyObject *wrap(PyObject *, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"address", "nbytes", "shape", "dtype", "owner", "device", nullptr};
  uint64_t address, nbytes;
  int device = -1;
  PyObject *shape, *dtype, *owner = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&OO|Oi:wrap", const_cast<char **>(names), read_uint64, &address,
                                   read_uint64, &nbytes, &shape, &dtype, &owner, &device)) {
    return nullptr;
  }
  int8_t code;
  if (!ensure_backend() || !dtype_code(dtype, &code)) return nullptr;
  Storage *storage = new_storage();
  storage->address = address;
  storage->bytes = nbytes;
  storage->device = device >= 0 ? device : t_state.device;
  storage->keeper = Py_NewRef(owner);
  PyObject *array = make_dense(storage, shape, code);
  if (array == nullptr) drop_storage(storage);
  return array;
}

static PyMethodDef functions[] = {
    {"empty", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(empty)), METH_FASTCALL | METH_KEYWORDS,
     "empty(shape, dtype='float32', order='C', *, device=None)\n--\n\n"
     "A new C-contiguous array with undefined contents.\n\n"
     "shape: int or tuple of ints; dtype: DataType or its name; device: another than the current one. The memory comes "
     "from the device's pool, in the order "
     "of the\n"
     "current stream. Raises ShapeError, DTypeError, OutOfMemoryError."},
    {"shorten", shorten, METH_VARARGS,
     "shorten(array, count)\n--\n\nMakes a 1-D array shorter, in place; the memory behind its first elements goes back "
     "to "
     "the pool."},
    {"view", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(view)), METH_VARARGS | METH_KEYWORDS,
     "view(array, shape, strides, offset, dtype=None)\n--\n\nAnother view of the array's storage; strides and offset "
     "in bytes."},
    {"wrap", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(wrap)), METH_VARARGS | METH_KEYWORDS,
     "wrap(address, nbytes, shape, dtype, owner=None, device=-1)\n--\n\n"
     "A C-contiguous array over memory that the pool does not own; owner is kept alive with it, and until the work\n"
     "queued when the last view goes away has passed. device: -1 is the current one."},
    {"register_dtypes", register_dtypes, METH_VARARGS, "Set the dtype table (core/dtypes.py)."},
    {"register_array_type", register_array_type, METH_O, "Set the class of new arrays (ops/methods/bind.py)."},
    {nullptr, nullptr, 0, nullptr}};

bool init_array(PyObject *module) { return init_array_type(module) && PyModule_AddFunctions(module, functions) == 0; }

}  // namespace pk
