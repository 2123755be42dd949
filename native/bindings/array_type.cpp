// array_type.cpp: ArrayBase, the class under GPUArray, and its attributes.
#include <algorithm>
#include <string>

#include "bindings/array.h"
#include "bindings/dtypes.h"
#include "bindings/errors.h"
#include "bindings/recorder.h"
#include "bindings/text.h"

namespace pk {

static void dealloc(PyObject *self) {
  ArrayObject *array = as_array(self);
  if (t_recorder != nullptr) t_recorder->gone(array);
  if (array->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  if (array->storage != nullptr) drop_storage(array->storage);
  Py_TYPE(self)->tp_free(self);  // a heap subtype is released by its own dealloc, which calls this one
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *, PyObject *) {
  return PyErr_Format(PyExc_TypeError, "%s is made by gp.empty(), gp.from_numpy() and the other factories",
                      type->tp_name);
}

static PyObject *tuple_of(const int64_t *values, int count) {
  PyObject *tuple = PyTuple_New(count);
  for (int i = 0; tuple != nullptr && i < count; ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
  return tuple;
}

#define GETTER(name, expression)                        \
  static PyObject *get_##name(PyObject *self, void *) { \
    [[maybe_unused]] ArrayObject *a = as_array(self);   \
    return expression;                                  \
  }
GETTER(shape, tuple_of(a->shape, a->ndim))
GETTER(strides, tuple_of(a->strides, a->ndim))
GETTER(dtype, dtype_object(a->dtype))
GETTER(dtype_code, PyLong_FromLong(a->dtype))
GETTER(ndim, PyLong_FromLong(a->ndim))
GETTER(size, PyLong_FromLongLong(a->size))
GETTER(itemsize, PyLong_FromLongLong(itemsize_of(a)))
GETTER(nbytes, PyLong_FromLongLong(nbytes_of(a)))
GETTER(device, PyLong_FromLong(a->storage->device))
GETTER(block, PyLong_FromUnsignedLongLong(a->storage->block))
GETTER(offset, PyLong_FromLongLong(a->offset))
GETTER(storage_nbytes, (spoil_record(), PyLong_FromUnsignedLongLong(a->storage->bytes)))
GETTER(stream_id, PyLong_FromUnsignedLong(a->storage->stream_id))
GETTER(resident, PyBool_FromLong(a->storage->state == nullptr ||
                                 __atomic_load_n(&a->storage->state->resident, __ATOMIC_SEQ_CST) != 0))
GETTER(last_use_ns, PyLong_FromUnsignedLongLong(a->storage->state == nullptr
                                                    ? 0
                                                    : __atomic_load_n(&a->storage->state->last_use, __ATOMIC_RELAXED)))
#undef GETTER

static PyObject *get_device_ptr(PyObject *self, void *) {
  spoil_record();
  ArrayObject *array = as_array(self);
  if (!ensure_backend() || !pin(array, array->storage->stream, pk_now_ns())) return nullptr;
  unpin(array);
  return PyLong_FromUnsignedLongLong(address_of(array));
}

static PyObject *get_name(PyObject *self, void *) {
  const Storage *storage = as_array(self)->storage;
  if (storage->block == 0) return PyUnicode_FromString("");
  if (!ensure_backend()) return nullptr;
  char text[256];
  const uint64_t length = pk_name_text(pk_pool_name(storage->pool, storage->block), text, sizeof text);
  return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::min<uint64_t>(length, sizeof text)), "replace");
}

static int set_name(PyObject *self, PyObject *value, void *) {
  const Storage *storage = as_array(self)->storage;
  if (value == nullptr) {
    PyErr_SetString(PyExc_AttributeError, "name cannot be deleted; set it to ''");
    return -1;
  }
  std::string text;
  if (!read_text(value, &text)) return -1;
  if (storage->block == 0) return 0;  // foreign memory is in no pool's report
  if (!ensure_backend()) return -1;
  if (pk_pool_set_name(storage->pool, storage->block, pk_intern(text.data(), text.size())) == PK_POOL_OK) return 0;
  pk_pool_raise();
  return -1;
}

static PyObject *is_contiguous(PyObject *self, PyObject *) { return PyBool_FromLong(as_array(self)->contiguous); }

static PyMethodDef methods[] = {
    {"is_contiguous", is_contiguous, METH_NOARGS, "True when the elements are dense in C order."},
    {nullptr, nullptr, 0, nullptr}};

#define ATTRIBUTE(name, doc) \
  { #name, get_##name, nullptr, doc, nullptr }
static PyGetSetDef attributes[] = {
    ATTRIBUTE(shape, "Extents, a tuple of ints."),
    ATTRIBUTE(strides, "Bytes from one element to the next along each axis."),
    ATTRIBUTE(dtype, "Element type, a DataType."),
    ATTRIBUTE(dtype_code, "Element type as the code in dtype.h."),
    ATTRIBUTE(ndim, "Number of axes."),
    ATTRIBUTE(size, "Number of elements."),
    ATTRIBUTE(itemsize, "Bytes of one element."),
    ATTRIBUTE(nbytes, "size * itemsize."),
    ATTRIBUTE(device, "Index of the device that holds the array."),
    ATTRIBUTE(device_ptr, "Device address of the first element; an evicted block is brought back first."),
    ATTRIBUTE(block, "Id of the pool block, 0 for foreign memory."),
    ATTRIBUTE(offset, "Bytes from the storage's start to the first element."),
    ATTRIBUTE(storage_nbytes, "Bytes of the storage that this array views."),
    ATTRIBUTE(stream_id, "Short id of the stream that the storage belongs to."),
    ATTRIBUTE(resident, "False while the storage is evicted to host memory."),
    ATTRIBUTE(last_use_ns, "When a launch or copy last used the storage, on the ring's clock."),
    {"name", get_name, set_name, "What the storage is called in memory reports; '' when unnamed.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
#undef ATTRIBUTE

PyTypeObject ArrayBase_Type = {PyVarObject_HEAD_INIT(nullptr, 0)};

bool init_array_type(PyObject *module) {
  PyTypeObject &type = ArrayBase_Type;
  type.tp_name = "pygpukit._core.native.ArrayBase";
  type.tp_basicsize = sizeof(ArrayObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type.tp_doc = "A strided view of device memory.";
  type.tp_new = refuse_new;
  type.tp_dealloc = dealloc;
  type.tp_methods = methods;
  type.tp_getset = attributes;
  type.tp_weaklistoffset = offsetof(ArrayObject, weakrefs);
  return PyType_Ready(&type) == 0 &&
         PyModule_AddObjectRef(module, "ArrayBase", reinterpret_cast<PyObject *>(&type)) == 0;
}

}  // namespace pk
