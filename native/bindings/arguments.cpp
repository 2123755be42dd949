// arguments.cpp: conversion of Python values to declared parameter types; everything is checked before a launch.
#include "bindings/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bindings/errors.h"
#include "bindings/textures.h"

namespace pk {

static const char *type_name(int8_t dtype) {
  static const char *names[PK_DTYPE_COUNT] = {"bool",        "int8",        "int16",   "int32",      "int64",
                                              "uint8",       "uint16",      "uint32",  "uint64",     "float16",
                                              "bfloat16",    "float32",     "float64", "complex64",  "complex128",
                                              "float8_e4m3", "float8_e5m2", "int4",    "float4_e2m1"};
  return dtype >= 0 && dtype < PK_DTYPE_COUNT ? names[dtype] : "void";
}

static std::string described(PyObject *value) { return std::string("a value of type ") + Py_TYPE(value)->tp_name; }

// Replaces a conversion's own TypeError, ValueError or OverflowError; anything else (an interrupt) goes on as it is.
static bool refuse(const std::string &kernel, const Param &param, const std::string &message) {
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
        !PyErr_ExceptionMatches(PyExc_OverflowError))
      return false;
    PyErr_Clear();
  }
  raise_argument_error(kernel, param.name, message);
  return false;
}

static bool write_pointer(const std::string &kernel, const Param &param, PyObject *value, uint64_t stream, Pins *pins,
                          unsigned char *slot) {
  uint64_t address = 0;
  if (value != Py_None) {
    if (!is_array(value)) {
      return refuse(kernel, param,
                    std::string("expected a GPUArray of ") + type_name(param.dtype) + ", got " + described(value) +
                        "; use gp.from_numpy() to bring host data to the device");
    }
    ArrayObject *array = as_array(value);
    if (param.dtype >= 0 && array->dtype != param.dtype) {
      return refuse(kernel, param,
                    std::string("declared as ") + type_name(param.dtype) + "*, got an array of " +
                        type_name(array->dtype) + "; use .astype(\"" + type_name(param.dtype) + "\")");
    }
    if (!array->contiguous) return refuse(kernel, param, "the array is not contiguous; pass .contiguous()");
    if (array->storage->device != t_state.device) {
      raise_named("DeviceMismatchError", kernel + "(): parameter '" + param.name + "' is on device " +
                                             std::to_string(array->storage->device) + ", the launch is on device " +
                                             std::to_string(t_state.device));
      return false;
    }
    if (!pins->add(array, stream)) return false;
    address = address_of(array);
  }
  std::memcpy(slot, &address, sizeof address);
  return true;
}

// ---- scalars ----

template <typename T>
static void store(unsigned char *slot, T value) {
  std::memcpy(slot, &value, sizeof value);
}

// The 16 bits of a binary float with `digits` bits of fraction and exponent bias `bias`, rounded to nearest even
// straight from double; what is too large becomes infinity.
template <int digits, int bias>
static uint16_t short_float(double value) {
  constexpr uint32_t kInfinity = 0x7fffu >> digits << digits;
  constexpr int kMinExponent = 1 - bias - digits;  // weight of a subnormal's last bit
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | kInfinity | 1u << (digits - 1);
  if (std::isinf(value)) return sign | kInfinity;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(e-1), 2^e)
  const int unit = std::max(exponent - digits - 1, kMinExponent);
  const auto scaled = static_cast<uint32_t>(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
  const uint32_t bits = (static_cast<uint32_t>(unit - kMinExponent) << digits) + scaled;  // a carry raises the exponent
  return static_cast<uint16_t>(sign | std::min(bits, kInfinity));
}

// NumPy's complex scalars turn into floats by dropping their imaginary part.
static bool is_complex(PyObject *value) {
  return PyComplex_Check(value) || std::strncmp(Py_TYPE(value)->tp_name, "numpy.c", 7) == 0;
}

static bool write_float(const std::string &kernel, const Param &param, PyObject *value, unsigned char *slot) {
  double number = 0;
  const bool exact = PyFloat_CheckExact(value);
  if (exact) {
    number = PyFloat_AS_DOUBLE(value);
  } else if (!is_complex(value)) {
    number = PyFloat_AsDouble(value);
  }
  if (!exact && (is_complex(value) || (number == -1.0 && PyErr_Occurred()))) {
    if (PyLong_Check(value))
      return refuse(kernel, param, std::string("the value does not fit ") + type_name(param.dtype));
    return refuse(kernel, param,
                  std::string("expected a real number for ") + type_name(param.dtype) + ", got " + described(value));
  }
  if (param.dtype == PK_FLOAT32) {
    store(slot, static_cast<float>(number));
  } else if (param.dtype == PK_FLOAT64) {
    store(slot, number);
  } else {
    store(slot, param.dtype == PK_FLOAT16 ? short_float<10, 15>(number) : short_float<7, 127>(number));
  }
  return true;
}

// NumPy's bool has no __index__; its type is called so since NumPy 2 and before.
static bool is_numpy_bool(PyObject *value) {
  const char *name = Py_TYPE(value)->tp_name;
  return std::strcmp(name, "numpy.bool") == 0 || std::strcmp(name, "numpy.bool_") == 0;
}

// An exact integer from an int, a bool, a NumPy integer or bool, or a float with an integral value. New reference, or
// null with or without an exception.
static PyObject *as_integer(PyObject *value) {
  if (PyLong_Check(value)) return Py_NewRef(value);
  if (is_numpy_bool(value)) return PyLong_FromLong(PyObject_IsTrue(value));
  if (PyIndex_Check(value)) return PyNumber_Index(value);
  if (PyFloat_Check(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    if (std::floor(number) == number) return PyLong_FromDouble(number);
  }
  return nullptr;
}

static bool write_integer(const std::string &kernel, const Param &param, PyObject *value, unsigned char *slot) {
  static constexpr struct {
    int64_t low;
    uint64_t high;
  } kRange[] = {
      {0, 1},         {INT8_MIN, INT8_MAX}, {INT16_MIN, INT16_MAX}, {INT32_MIN, INT32_MAX}, {INT64_MIN, INT64_MAX},
      {0, UINT8_MAX}, {0, UINT16_MAX},      {0, UINT32_MAX},        {0, UINT64_MAX}};
  const auto range = kRange[static_cast<size_t>(param.dtype)];
  PyObject *integer = as_integer(value);
  if (integer == nullptr) {
    return refuse(kernel, param,
                  std::string("expected an integer for ") + type_name(param.dtype) + ", got " +
                      (PyFloat_Check(value) ? "a float that is not integral" : described(value)));
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  uint64_t bits = static_cast<uint64_t>(number);
  bool fits = overflow == 0 && number >= range.low && (number < 0 || static_cast<uint64_t>(number) <= range.high);
  if (overflow > 0 && param.dtype == PK_UINT64) {
    bits = PyLong_AsUnsignedLongLong(integer);
    fits = !PyErr_Occurred();
    PyErr_Clear();
  }
  Py_DECREF(integer);
  if (!fits) return refuse(kernel, param, std::string("the value does not fit ") + type_name(param.dtype));
  std::memcpy(slot, &bits, param.bytes);  // little endian: the low bytes
  return true;
}

static bool write_complex(const std::string &kernel, const Param &param, PyObject *value, unsigned char *slot) {
  const Py_complex number = PyComplex_AsCComplex(value);
  if (number.real == -1.0 && PyErr_Occurred()) {
    return refuse(kernel, param, std::string("expected a complex number, got ") + described(value));
  }
  if (param.dtype == PK_COMPLEX64) {
    store(slot, static_cast<float>(number.real));
    store(slot + 4, static_cast<float>(number.imag));
  } else {
    store(slot, number.real);
    store(slot + 8, number.imag);
  }
  return true;
}

static bool write_struct(const std::string &kernel, const Param &param, PyObject *value, unsigned char *slot) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) != 0) {
    if (PyErr_ExceptionMatches(PyExc_BufferError)) PyErr_Clear();
    return refuse(kernel, param,
                  "a struct parameter takes a bytes-like object of " + std::to_string(param.bytes) + " bytes, got " +
                      described(value));
  }
  const bool fits = static_cast<uint64_t>(buffer.len) == param.bytes;
  if (fits) std::memcpy(slot, buffer.buf, param.bytes);
  const Py_ssize_t got = buffer.len;
  PyBuffer_Release(&buffer);
  return fits ||
         refuse(kernel, param,
                "a struct parameter takes " + std::to_string(param.bytes) + " bytes, got " + std::to_string(got));
}

// Textures and surfaces, and where nothing else is declared their numbers, which other libraries may have made.
static bool write_object(const std::string &kernel, const Param &param, PyObject *value, uint64_t stream, Pins *pins,
                         unsigned char *slot) {
  const char *kind_name = param.kind == ParamKind::kSurface ? "surface" : "texture";
  DeviceObject *object = device_object(value);
  if (object == nullptr) {
    if (PyIndex_Check(value) && !is_array(value)) return write_integer(kernel, param, value, slot);
    return refuse(kernel, param,
                  std::string("expected a ") + kind_name + ", got " + described(value) + "; make one: gp." +
                      (param.kind == ParamKind::kSurface ? "Surface" : "Texture") + "(array)");
  }
  if (param.kind != ParamKind::kScalar && object->surface != (param.kind == ParamKind::kSurface))
    return refuse(kernel, param, std::string("expected a ") + kind_name + ", got a " + object->what());
  if (object->handle == 0) return refuse(kernel, param, std::string("the ") + object->what() + " was closed");
  if (object->device != t_state.device) {
    raise_named("DeviceMismatchError", kernel + "(): parameter '" + param.name + "' is on device " +
                                           std::to_string(object->device) + ", the launch is on device " +
                                           std::to_string(t_state.device));
    return false;
  }
  if (!use_object(object, stream, pins)) return false;
  std::memcpy(slot, &object->handle, sizeof object->handle);
  return true;
}

bool write_argument(const std::string &kernel, const Param &param, PyObject *value, uint64_t stream, Pins *pins,
                    unsigned char *slot) {
  switch (param.kind) {
    case ParamKind::kPointer:
      return write_pointer(kernel, param, value, stream, pins, slot);
    case ParamKind::kStruct:
      return write_struct(kernel, param, value, slot);
    case ParamKind::kTexture:
    case ParamKind::kSurface:
      return write_object(kernel, param, value, stream, pins, slot);
    case ParamKind::kScalar:
      break;
  }
  if (is_array(value))
    return refuse(kernel, param, std::string("expected a ") + type_name(param.dtype) + " value, got an array");
  if (param.dtype == PK_UINT64 && !PyLong_Check(value) && device_object(value) != nullptr)
    return write_object(kernel, param, value, stream, pins, slot);
  if (param.dtype <= PK_UINT64) return write_integer(kernel, param, value, slot);
  if (param.dtype <= PK_FLOAT64) return write_float(kernel, param, value, slot);
  return write_complex(kernel, param, value, slot);
}

}  // namespace pk
