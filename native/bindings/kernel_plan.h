// kernel_plan.h: a kernel's name, parameters and limits, and the arguments of a call by them.
#pragma once
#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/array.h"
#include "launch/launch.h"

namespace pk {

constexpr uint32_t kMaxArgumentBytes = 4096;  // CUDA's limit for kernel parameters on every supported device
constexpr size_t kMaxParams = 512;

struct KernelPlan {
  std::string name;
  uint32_t name_id;
  uint64_t function;
  std::vector<Param> params;
  uint32_t max_threads;
  bool checked;
};

// PyArg converter: "I" would drop the upper bits and the sign.
int read_uint32(PyObject *object, void *out);

// Reads the parameters of a kernel: tuples of name, kind, dtype code and bytes. False with an exception set.
bool read_params(PyObject *specs, KernelPlan *plan);

// Orders positional and keyword arguments by parameter into values. False with KernelArgumentError set.
bool collect(const KernelPlan &plan, PyObject *const *args, size_t nargs, PyObject *kwnames, PyObject **values);

// Writes arguments as the device takes them, and pins the arrays among them. False with KernelArgumentError set.
bool fill_slots(const KernelPlan &plan, PyObject *const *values, uint64_t stream, Pins *pins, unsigned char *buffer,
                void **pointers);

// The grid and the block are ones that this kernel can run with. False with KernelArgumentError set.
bool check_extents(const KernelPlan &plan, const pk_launch &launch);

void raise_launch_error(const KernelPlan &plan, const pk_launch &launch, pk_status status);

}  // namespace pk
