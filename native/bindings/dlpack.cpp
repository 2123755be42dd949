// dlpack.cpp: the DLPack 1.1 structures, defined here from the specification, and the capsules that carry them.
#include "bindings/dlpack.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bindings/array.h"
#include "bindings/dtypes.h"
#include "bindings/errors.h"
#include "bindings/stream.h"

namespace py = pybind11;

namespace pk {

// ---- the binary interface ----

struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;  // in elements; null = C order
  uint64_t byte_offset;
};
struct DLManagedTensor {  // capsule "dltensor"
  DLTensor tensor;
  void *context;
  void (*deleter)(DLManagedTensor *);
};
struct DLManagedTensorVersioned {  // capsule "dltensor_versioned"
  uint32_t major, minor;
  void *context;
  void (*deleter)(DLManagedTensorVersioned *);
  uint64_t flags;
  DLTensor tensor;
};

enum : uint64_t { kReadOnly = 1, kIsCopied = 2, kSubbytePadded = 4 };
static constexpr uint32_t kMajor = 1, kMinor = 1;
static constexpr char kLegacy[] = "dltensor", kVersioned[] = "dltensor_versioned";
static constexpr char kUsedLegacy[] = "used_dltensor", kUsedVersioned[] = "used_dltensor_versioned";
static constexpr char kKeeper[] = "pygpukit.dlpack";

// Position = code in dtype.h.
static constexpr DLDataType kTypes[PK_DTYPE_COUNT] = {{6, 8, 1},  {0, 8, 1},  {0, 16, 1}, {0, 32, 1}, {0, 64, 1},
                                                      {1, 8, 1},  {1, 16, 1}, {1, 32, 1}, {1, 64, 1}, {2, 16, 1},
                                                      {4, 16, 1}, {2, 32, 1}, {2, 64, 1}, {5, 64, 1}, {5, 128, 1},
                                                      {10, 8, 1}, {12, 8, 1}, {0, 4, 1},  {17, 4, 1}};

[[noreturn]] static void refuse(const std::string &message) {
  PyErr_SetString(PyExc_BufferError, ("DLPack: " + message).c_str());
  throw py::error_already_set();
}

// ---- out ----

// What a consumer holds: the structure, its extents, and what keeps the memory in place.
struct Export {
  DLManagedTensor legacy{};
  DLManagedTensorVersioned versioned{};
  int64_t shape[kMaxDims], strides[kMaxDims];
  PyObject *array = nullptr;  // pinned: the pool neither evicts nor reuses its block
  Py_buffer host{};           // instead of the array, for a copy on the host
};

// Consumers call it from any thread, with or without the GIL.
static void drop(Export *exported) {
  if (!Py_IsInitialized()) return;  // the process ends, its memory with it
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *traceback;  // a pending exception is the caller's
  PyErr_Fetch(&type, &value, &traceback);
  if (exported->array != nullptr) {
    unpin(as_array(exported->array));
    Py_DECREF(exported->array);
  }
  if (exported->host.obj != nullptr) PyBuffer_Release(&exported->host);
  delete exported;
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
}

// The destructor of a capsule that nobody took.
static void drop_unused(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, kVersioned)) {
    auto *managed = static_cast<DLManagedTensorVersioned *>(PyCapsule_GetPointer(capsule, kVersioned));
    managed->deleter(managed);
  } else if (PyCapsule_IsValid(capsule, kLegacy)) {
    auto *managed = static_cast<DLManagedTensor *>(PyCapsule_GetPointer(capsule, kLegacy));
    managed->deleter(managed);
  }
}

// The consumer's stream waits for what the array may still be written by: the current stream's work, and its own
// stream's. A handle that lives as long as the process is kept in mind: the memory is reused after that stream.
static void order_for_consumer(const Storage *storage, uint64_t consumer) {
  order_streams(t_state.stream, consumer);
  const std::vector<uint64_t> alive = live_streams();
  const auto lives = [&alive](uint64_t stream) { return std::find(alive.begin(), alive.end(), stream) != alive.end(); };
  if (storage->stream != t_state.stream && lives(storage->stream)) order_streams(storage->stream, consumer);
  if (storage->block != 0 && consumer != storage->stream && lives(consumer))
    pk_pool_record_use(storage->pool, storage->block, consumer);
}

static py::object dlpack_export(const py::object &object, int32_t device_type, bool versioned, bool copied,
                                int64_t stream, const py::object &host) {
  if (!ensure_backend()) throw py::error_already_set();
  if (!is_array(object.ptr())) throw py::type_error("dlpack_export() needs a GPUArray");
  ArrayObject *array = as_array(object.ptr());
  Storage *storage = array->storage;
  auto exported = std::make_unique<Export>();
  DLTensor tensor{};
  tensor.device = {device_type, host.is_none() ? storage->device : 0};
  tensor.ndim = array->ndim;
  tensor.dtype = kTypes[array->dtype];
  tensor.shape = exported->shape;
  tensor.strides = exported->strides;
  int64_t dense = 1;
  for (int axis = array->ndim - 1; axis >= 0; --axis) {
    exported->shape[axis] = array->shape[axis];
    exported->strides[axis] = host.is_none() ? array->strides[axis] / itemsize_of(array) : dense;
    dense *= std::max<int64_t>(array->shape[axis], 1);
  }
  if (host.is_none() && stream >= 0) order_for_consumer(storage, static_cast<uint64_t>(stream));
  if (!host.is_none()) {
    if (PyObject_GetBuffer(host.ptr(), &exported->host, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0)
      throw py::error_already_set();
    if (exported->host.len != nbytes_of(array)) {
      PyBuffer_Release(&exported->host);
      throw py::value_error("dlpack_export(): the host copy and the array differ in bytes");
    }
    tensor.data = exported->host.buf;
  } else {
    if (!pin(array, storage->stream, pk_now_ns())) throw py::error_already_set();
    exported->array = object.inc_ref().ptr();
    tensor.data = reinterpret_cast<void *>(address_of(array));
  }
  if (array->size == 0) tensor.data = nullptr;
  Export *owned = exported.release();
  PyObject *capsule;
  if (versioned) {
    const uint64_t padded = tensor.dtype.bits < 8 ? kSubbytePadded : 0;
    owned->versioned = {kMajor, kMinor, owned, nullptr, padded | (copied ? kIsCopied : 0), tensor};
    owned->versioned.deleter = [](DLManagedTensorVersioned *self) { drop(static_cast<Export *>(self->context)); };
    capsule = PyCapsule_New(&owned->versioned, kVersioned, drop_unused);
  } else {
    owned->legacy = {tensor, owned, nullptr};
    owned->legacy.deleter = [](DLManagedTensor *self) { drop(static_cast<Export *>(self->context)); };
    capsule = PyCapsule_New(&owned->legacy, kLegacy, drop_unused);
  }
  if (capsule == nullptr) {
    drop(owned);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(capsule);
}

// ---- in ----

// The destructor of what keeps a producer's memory alive.
static void drop_keeper(PyObject *keeper) {
  void *managed = PyCapsule_GetPointer(keeper, kKeeper);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (PyCapsule_GetContext(keeper) != nullptr) {
    auto *versioned = static_cast<DLManagedTensorVersioned *>(managed);
    if (versioned->deleter != nullptr) versioned->deleter(versioned);
  } else {
    auto *legacy = static_cast<DLManagedTensor *>(managed);
    if (legacy->deleter != nullptr) legacy->deleter(legacy);
  }
  PyErr_Restore(type, value, traceback);
}

static int8_t type_code(const DLTensor &tensor, uint64_t flags) {
  const DLDataType type = tensor.dtype;
  for (int8_t code = 0; code < PK_DTYPE_COUNT; ++code) {
    const DLDataType &known = kTypes[code];
    if (known.code != type.code || known.bits != type.bits || type.lanes != 1) continue;
    if (type.bits < 8 && (flags & kSubbytePadded) == 0)
      refuse("elements of " + std::to_string(type.bits) + " bits are packed; only one a byte is supported");
    return code;
  }
  refuse("no data type for code " + std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits and " +
         std::to_string(type.lanes) + " lanes; convert in the other library first");
}

// Where the elements are: lowest byte, bytes from it to the end, the first element's offset; shape, strides in bytes.
struct Extent {
  uint64_t address = 0, bytes = 0;
  int64_t offset = 0;
  py::tuple shape, strides;
};

static Extent extent_of(const DLTensor &tensor, int64_t itemsize) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxDims)
    refuse(std::to_string(tensor.ndim) + " dimensions; at most " + std::to_string(kMaxDims) + " are supported");
  Extent extent{0, 0, 0, py::tuple(tensor.ndim), py::tuple(tensor.ndim)};
  int64_t low = 0, high = 0, dense = itemsize;
  bool overflow = false, empty = false;
  for (int axis = tensor.ndim - 1; axis >= 0; --axis) {
    const int64_t count = tensor.shape[axis];
    if (count < 0) refuse("extent " + std::to_string(count) + " of axis " + std::to_string(axis) + " is negative");
    int64_t stride = dense, reach = 0;
    if (tensor.strides != nullptr) overflow |= __builtin_mul_overflow(tensor.strides[axis], itemsize, &stride);
    overflow |= __builtin_mul_overflow(dense, std::max<int64_t>(count, 1), &dense);
    overflow |= __builtin_mul_overflow(std::max<int64_t>(count, 1) - 1, stride, &reach);
    int64_t &end = reach < 0 ? low : high;
    overflow |= __builtin_add_overflow(end, reach, &end);
    empty |= count == 0;
    extent.shape[axis] = count;
    extent.strides[axis] = stride;
  }
  overflow |= __builtin_add_overflow(high, itemsize, &high);
  if (overflow) refuse("the tensor would reach past 2^63 bytes");
  if (empty) return extent;
  const uint64_t first = reinterpret_cast<uint64_t>(tensor.data) + tensor.byte_offset;
  if (tensor.data == nullptr) refuse("the tensor has elements and no address");
  if (first % static_cast<uint64_t>(itemsize) != 0)
    refuse("the address is not a multiple of the element's " + std::to_string(itemsize) + " bytes; copy it first");
  extent.address = first + static_cast<uint64_t>(low);
  extent.bytes = static_cast<uint64_t>(high - low);
  extent.offset = -low;
  return extent;
}

static py::tuple dlpack_import(const py::object &capsule) {
  const bool versioned = PyCapsule_IsValid(capsule.ptr(), kVersioned) != 0;
  if (!versioned && PyCapsule_IsValid(capsule.ptr(), kLegacy) == 0) {
    refuse("__dlpack__() gave no capsule that can be taken (" + py::repr(capsule).cast<std::string>() +
           "); a capsule can be taken once only");
  }
  void *managed = PyCapsule_GetPointer(capsule.ptr(), versioned ? kVersioned : kLegacy);
  auto *newer = versioned ? static_cast<DLManagedTensorVersioned *>(managed) : nullptr;
  if (versioned && newer->major != kMajor)
    refuse("version " + std::to_string(newer->major) + "." + std::to_string(newer->minor) +
           " is not understood; ask for " + std::to_string(kMajor) + "." + std::to_string(kMinor));
  const DLTensor &tensor = versioned ? newer->tensor : static_cast<DLManagedTensor *>(managed)->tensor;
  const uint64_t flags = versioned ? newer->flags : 0;
  const int8_t code = type_code(tensor, flags);
  const Extent extent = extent_of(tensor, pk_dtype_bytes(code));

  // From here on the tensor is ours, and the keeper calls its deleter.
  const py::object keeper = py::reinterpret_steal<py::object>(PyCapsule_New(managed, kKeeper, nullptr));
  if (!keeper || PyCapsule_SetContext(keeper.ptr(), newer) != 0 ||
      PyCapsule_SetName(capsule.ptr(), versioned ? kUsedVersioned : kUsedLegacy) != 0 ||
      PyCapsule_SetDestructor(keeper.ptr(), drop_keeper) != 0)
    throw py::error_already_set();
  return py::make_tuple(keeper, py::make_tuple(tensor.device.type, tensor.device.id), extent.address, extent.bytes,
                        extent.shape, extent.strides, extent.offset,
                        py::reinterpret_steal<py::object>(dtype_object(code)), (flags & kReadOnly) != 0);
}

static py::memoryview host_memory(uint64_t address, uint64_t bytes) {
  return py::memoryview::from_memory(reinterpret_cast<const void *>(address), static_cast<py::ssize_t>(bytes));
}

void bind_dlpack(py::module_ &m) {
  m.def("dlpack_export", dlpack_export, py::arg("array"), py::arg("device_type"), py::arg("versioned"),
        py::arg("copied"), py::arg("stream"), py::arg("host") = py::none());
  m.def("dlpack_import", dlpack_import, py::arg("capsule"));
  m.def("host_memory", host_memory, py::arg("address"), py::arg("nbytes"));
}

}  // namespace pk
