// arguments.h: one kernel parameter's plan, and writing a Python value into its slot.
#pragma once
#include <Python.h>

#include <string>
#include <vector>

#include "bindings/array.h"

namespace pk {

enum class ParamKind : uint8_t { kPointer, kScalar, kStruct, kTexture, kSurface };

struct Param {
  std::string name;
  PyObject *key;  // interned str
  ParamKind kind;
  int8_t dtype;     // -1: any element type (void*)
  uint32_t bytes;   // 8 for pointers
  uint32_t offset;  // in the argument buffer
};

// Writes value into slot (param.bytes). Arrays are pinned through pins. False with KernelArgumentError set.
bool write_argument(const std::string &kernel, const Param &param, PyObject *value, uint64_t stream, Pins *pins,
                    unsigned char *slot);

}  // namespace pk
