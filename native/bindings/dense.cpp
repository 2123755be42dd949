// dense.cpp: most calls of an operation have dense operands of one shape and type. DenseCall serves those without going
// through Python, and declines all others, which the operation then treats with every check and conversion it has.
#include "bindings/dense.h"

#include <structmember.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bindings/arguments.h"
#include "bindings/array.h"
#include "bindings/errors.h"
#include "bindings/graph.h"
#include "bindings/kernel.h"
#include "bindings/recorder.h"

namespace pk {

constexpr int kMaxOperands = 3;
constexpr uint32_t kBlockThreads = 256;
enum Form { kArrays, kScalarRight, kScalarLeft, kForms };

// The kernel for operands of one type, once it was launched through Python.
struct Plan {
  PyObject *kernel;
  int32_t device;
  int8_t result;      // dtype
  uint32_t elements;  // of a thread
};

struct DenseObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  int operands;
  Plan plans[kForms][PK_DTYPE_COUNT];
};

static PyTypeObject Dense_Type = {PyVarObject_HEAD_INIT(nullptr, 0)};

static bool plain(const ArrayObject *array) {
  return array->contiguous && array->size > 0 && array->storage->device == t_state.device;
}

static bool alike(const ArrayObject *a, const ArrayObject *b) {
  return a->ndim == b->ndim && std::equal(a->shape, a->shape + a->ndim, b->shape);
}

// Whether work on elements in any order may read one and write the other: no byte in common, or the very same places.
static bool may_write(const ArrayObject *out, const ArrayObject *read) {
  if (out->storage != read->storage) return true;
  if (out->offset == read->offset) return itemsize_of(out) == itemsize_of(read);
  return out->offset + nbytes_of(out) <= read->offset || read->offset + nbytes_of(read) <= out->offset;
}

// A float, or an int that a double holds exactly, as an element of a floating type: what NumPy's weak scalars become.
static bool read_scalar(PyObject *value, int8_t dtype, Pins *pins, unsigned char *slot) {
  if (dtype != PK_FLOAT16 && dtype != PK_BFLOAT16 && dtype != PK_FLOAT32 && dtype != PK_FLOAT64) return false;
  if (PyLong_CheckExact(value)) {
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow != 0 || number > (1ll << 53) || number < -(1ll << 53)) return false;
  } else if (!PyFloat_CheckExact(value)) {
    return false;
  }
  const Param param = {"", nullptr, ParamKind::kScalar, dtype, static_cast<uint32_t>(pk_dtype_bytes(dtype)), 0};
  return write_argument("", param, value, 0, pins, slot);
}

// Everything is checked but the scalar. A scalar comes second, on whichever side it stands: the kernel knows.
static PyObject *run(PyObject *const *args, int operands, int scalar, const ArrayObject *first, PyObject *result,
                     PyObject *kernel, const Plan &plan) {
  Pins pins;
  alignas(16) unsigned char number[16];
  if (scalar >= 0 && !read_scalar(args[scalar], first->dtype, &pins, number)) {
    if (PyErr_Occurred()) return nullptr;
    Py_RETURN_NONE;
  }
  PyObject *target = result != Py_None ? Py_NewRef(result) : empty_like(first, plan.result);
  if (target == nullptr) return nullptr;
  uint64_t addresses[kMaxOperands + 1];
  void *pointers[kMaxOperands + 2];
  int64_t size = first->size;
  int count = 0;
  bool ok = true;
  for (int i = 0; i <= operands && ok; ++i) {
    if (i == scalar) continue;
    ArrayObject *array = as_array(i < operands ? args[i] : target);
    ok = pins.add(array, t_state.stream);
    addresses[count] = address_of(array);
    pointers[count + (scalar >= 0 && count > 0)] = &addresses[count];
    ++count;
  }
  if (scalar >= 0) {
    pointers[1] = number;
    ++count;
  }
  pointers[count] = &size;
  const int64_t of_block = int64_t{kBlockThreads} * plan.elements;
  const uint32_t grid[3] = {static_cast<uint32_t>((size + of_block - 1) / of_block), 1, 1};
  const uint32_t block[3] = {kBlockThreads, 1, 1};
  if (ok && launch_raw(kernel, grid, block, pointers)) return target;
  Py_DECREF(target);
  return nullptr;
}

// dense(operand, ..., out): the result, or None for operands that are not plain.
static PyObject *dense_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  DenseObject *dense = reinterpret_cast<DenseObject *>(self);
  const int operands = dense->operands;
  if (PyVectorcall_NARGS(nargsf) != operands + 1 || kwnames != nullptr)
    return PyErr_Format(PyExc_TypeError, "DenseCall takes %d operands and an output", operands);
  if (capturing() || t_recorder != nullptr) Py_RETURN_NONE;  // what is written down goes the usual way
  if (!ensure_backend()) return nullptr;
  PyObject *const result = args[operands];
  const ArrayObject *first = nullptr;
  int scalar = -1;
  for (int i = 0; i < operands; ++i) {
    if (!is_array(args[i])) {
      if (operands != 2 || scalar >= 0) Py_RETURN_NONE;
      scalar = i;
      continue;
    }
    const ArrayObject *array = as_array(args[i]);
    if (!plain(array)) Py_RETURN_NONE;
    if (first == nullptr) first = array;
    if (array->dtype != first->dtype || !alike(array, first)) Py_RETURN_NONE;
  }
  if (first == nullptr) Py_RETURN_NONE;
  const Form form = scalar < 0 ? kArrays : scalar == 1 ? kScalarRight : kScalarLeft;
  const Plan plan = dense->plans[form][first->dtype];
  if (plan.kernel == nullptr || plan.device != t_state.device) Py_RETURN_NONE;
  if (result != Py_None) {
    if (!is_array(result)) Py_RETURN_NONE;
    const ArrayObject *out = as_array(result);
    if (!plain(out) || out->dtype != plan.result || !alike(out, first)) Py_RETURN_NONE;
    for (int i = 0; i < operands; ++i)
      if (i != scalar && !may_write(out, as_array(args[i]))) Py_RETURN_NONE;
  }
  PyObject *kernel = Py_NewRef(plan.kernel);  // allocating may let other threads run, which may replace the plan
  PyObject *target = run(args, operands, scalar, first, result, kernel, plan);
  Py_DECREF(kernel);
  return target;
}

static PyObject *dense_learn(PyObject *self, PyObject *args) {
  DenseObject *dense = reinterpret_cast<DenseObject *>(self);
  int form, operand, result;
  unsigned int elements;
  PyObject *kernel;
  if (!PyArg_ParseTuple(args, "iiOiI:learn", &form, &operand, &kernel, &result, &elements)) return nullptr;
  const auto code = [](int dtype) { return dtype >= 0 && dtype < PK_DTYPE_COUNT; };
  if (form < 0 || form >= kForms || !code(operand) || !code(result) || elements == 0) {
    PyErr_SetString(PyExc_ValueError, "learn(): form, data types or elements out of range");
    return nullptr;
  }
  if (!is_kernel(kernel)) {
    PyErr_SetString(PyExc_TypeError, "learn(): kernel must be a Kernel");
    return nullptr;
  }
  if (is_checked_kernel(kernel)) Py_RETURN_NONE;  // its launches describe their arrays, which the usual way does
  Plan &plan = dense->plans[form][operand];
  PyObject *before = plan.kernel;
  plan = {Py_NewRef(kernel), t_state.device, static_cast<int8_t>(result), elements};
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

static void dense_dealloc(PyObject *self) {
  DenseObject *dense = reinterpret_cast<DenseObject *>(self);
  for (auto &form : dense->plans)
    for (Plan &plan : form) Py_XDECREF(plan.kernel);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *dense_new(PyTypeObject *type, PyObject *args, PyObject *) {
  int operands;
  if (!PyArg_ParseTuple(args, "i:DenseCall", &operands)) return nullptr;
  if (operands < 1 || operands > kMaxOperands)
    return PyErr_Format(PyExc_ValueError, "DenseCall takes 1 to %d operands, not %d", kMaxOperands, operands);
  DenseObject *dense = reinterpret_cast<DenseObject *>(type->tp_alloc(type, 0));
  if (dense == nullptr) return nullptr;
  dense->vectorcall = dense_call;
  dense->operands = operands;
  return reinterpret_cast<PyObject *>(dense);
}

static PyMethodDef dense_methods[] = {{"learn", dense_learn, METH_VARARGS,
                                       "learn(form, operand_dtype, kernel, result_dtype, elements)\n--\n\nThe kernel "
                                       "for plain operands of a type: form 0 "
                                       "arrays, 1 and 2 a number on the right and left; elements a thread."},
                                      {nullptr, nullptr, 0, nullptr}};

bool init_dense(PyObject *module) {
  Dense_Type.tp_name = "pygpukit._core.native.DenseCall";
  Dense_Type.tp_basicsize = sizeof(DenseObject);
  Dense_Type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  Dense_Type.tp_vectorcall_offset = offsetof(DenseObject, vectorcall);
  Dense_Type.tp_call = PyVectorcall_Call;
  Dense_Type.tp_doc = "An element-wise operation on dense operands; called with them and the output or None.";
  Dense_Type.tp_new = dense_new;
  Dense_Type.tp_dealloc = dense_dealloc;
  Dense_Type.tp_methods = dense_methods;
  return PyType_Ready(&Dense_Type) == 0 &&
         PyModule_AddObjectRef(module, "DenseCall", reinterpret_cast<PyObject *>(&Dense_Type)) == 0;
}

}  // namespace pk
