// kernel_plan.cpp: reading a kernel's parameters, and the checks of a call's arguments and extents.
#include "bindings/kernel_plan.h"

#include <algorithm>

#include "bindings/errors.h"

namespace pk {

int read_uint32(PyObject *object, void *out) {
  PyObject *number = PyNumber_Index(object);
  if (number == nullptr) return 0;
  int overflow;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  Py_DECREF(number);
  if (overflow != 0 || value < 0 || value > UINT32_MAX) {
    PyErr_Format(PyExc_OverflowError, "%R is not in 0 to 2^32 - 1", object);
    return 0;
  }
  *static_cast<uint32_t *>(out) = static_cast<uint32_t>(value);
  return 1;
}

bool read_params(PyObject *specs, KernelPlan *plan) {
  PyObject *items = PySequence_Tuple(specs);
  if (items == nullptr) return false;
  uint32_t offset = 0;
  bool ok = static_cast<size_t>(PyTuple_GET_SIZE(items)) <= kMaxParams;
  if (!ok) PyErr_Format(PyExc_ValueError, "a kernel has at most %zu parameters", kMaxParams);
  for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(items); ++i) {
    const char *name, *kind;
    int dtype;
    uint32_t bytes;
    PyObject *spec = PyTuple_GET_ITEM(items, i);
    ok = PyTuple_Check(spec);
    if (!ok) PyErr_SetString(PyExc_TypeError, "params is a sequence of tuples (name, kind, dtype code, bytes)");
    ok = ok && PyArg_ParseTuple(spec, "ssiO&", &name, &kind, &dtype, read_uint32, &bytes);
    if (!ok) break;
    Param param = {name, PyUnicode_InternFromString(name), ParamKind::kScalar, static_cast<int8_t>(dtype), bytes, 0};
    const std::string text = kind;
    if (text == "pointer") {
      param.kind = ParamKind::kPointer;
      param.bytes = 8;
      ok = dtype >= -1 && dtype < PK_DTYPE_COUNT;
    } else if (text == "struct") {
      param.kind = ParamKind::kStruct;
    } else if (text == "texture" || text == "surface") {
      param.kind = text == "texture" ? ParamKind::kTexture : ParamKind::kSurface;
      param.bytes = 8;
      ok = dtype == PK_UINT64;
    } else {
      ok = text == "scalar" && dtype >= 0 && dtype <= PK_COMPLEX128;
      param.bytes = static_cast<uint32_t>(pk_dtype_bytes(dtype));
    }
    if (!ok) PyErr_Format(PyExc_ValueError, "parameter '%s': unknown kind '%s' or dtype %d", name, kind, dtype);
    const uint32_t alignment = param.kind == ParamKind::kStruct ? 16 : param.bytes;
    offset = (offset + alignment - 1) & ~(alignment - 1);
    param.offset = offset;
    if (ok && param.bytes > kMaxArgumentBytes - std::min(offset, kMaxArgumentBytes)) {
      PyErr_Format(PyExc_ValueError, "parameter '%s' passes the limit of %u bytes of arguments", name,
                   kMaxArgumentBytes);
      ok = false;
    }
    offset += param.bytes;
    plan->params.push_back(param);
  }
  Py_DECREF(items);
  return ok;
}

bool collect(const KernelPlan &plan, PyObject *const *args, size_t nargs, PyObject *kwnames, PyObject **values) {
  const size_t count = plan.params.size();
  const size_t nkw = kwnames != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(kwnames)) : 0;
  if (nargs > count) {
    raise_argument_error(plan.name, "",
                         "takes " + std::to_string(count) + " arguments, got " + std::to_string(nargs + nkw));
    return false;
  }
  for (size_t i = 0; i < count; ++i) values[i] = i < nargs ? args[i] : nullptr;
  for (size_t k = 0; k < nkw; ++k) {
    PyObject *key = PyTuple_GET_ITEM(kwnames, static_cast<Py_ssize_t>(k));
    size_t i = 0;
    while (i < count && plan.params[i].key != key) ++i;
    if (i == count) {
      for (i = 0; i < count && PyUnicode_Compare(plan.params[i].key, key) != 0;) ++i;
    }
    const char *text = PyUnicode_AsUTF8(key);
    if (text == nullptr) return false;
    if (i == count) {
      raise_argument_error(plan.name, text, "no such parameter");
      return false;
    }
    if (values[i] != nullptr) {
      raise_argument_error(plan.name, text, "given twice");
      return false;
    }
    values[i] = args[nargs + k];
  }
  for (size_t i = 0; i < count; ++i) {
    if (values[i] != nullptr) continue;
    raise_argument_error(plan.name, plan.params[i].name, "missing");
    return false;
  }
  return true;
}

bool fill_slots(const KernelPlan &plan, PyObject *const *values, uint64_t stream, Pins *pins, unsigned char *buffer,
                void **pointers) {
  for (size_t i = 0; i < plan.params.size(); ++i) {
    const Param &param = plan.params[i];
    pointers[i] = buffer + param.offset;
    if (!write_argument(plan.name, param, values[i], stream, pins, buffer + param.offset)) return false;
  }
  return true;
}

bool check_extents(const KernelPlan &plan, const pk_launch &launch) {
  const char *axes[] = {"x", "y", "z"};
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] == 0) {
      raise_argument_error(plan.name, "grid",
                           std::string("extent ") + axes[i] + " is 0; a launch needs at least one block");
      return false;
    }
    if (launch.block[i] == 0) {
      raise_argument_error(plan.name, "block",
                           std::string("extent ") + axes[i] + " is 0; a block needs at least one thread");
      return false;
    }
  }
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads <= plan.max_threads) return true;
  raise_argument_error(
      plan.name, "block",
      std::to_string(threads) + " threads; this kernel runs with at most " + std::to_string(plan.max_threads));
  return false;
}

void raise_launch_error(const KernelPlan &plan, const pk_launch &l, pk_status status) {
  const auto extent = [](const uint32_t e[3]) {
    return "(" + std::to_string(e[0]) + ", " + std::to_string(e[1]) + ", " + std::to_string(e[2]) + ")";
  };
  raise_driver_error(status, "launching " + plan.name + "[" + extent(l.grid) + ", " + extent(l.block) + "] with " +
                                 std::to_string(l.shared_bytes) + " bytes of dynamic shared memory");
}

}  // namespace pk
