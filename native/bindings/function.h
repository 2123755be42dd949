// function.h: Module and Function: loaded device code.
#pragma once
#include <pybind11/pybind11.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "pygpukit/driver.h"

namespace pk {

struct Module {
  uint64_t handle = 0;
  std::map<uint64_t, uint32_t> dynamic_shared;  // by function: the most dynamic shared memory it was allowed
  explicit Module(const std::string &image);
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;
  ~Module();
};

struct Function {
  std::shared_ptr<Module> module;  // a function lives as long as its module
  std::string name;
  uint64_t handle = 0;
};

// Handle and thread limit of a Function object; false with an exception set.
bool function_handle(PyObject *object, uint64_t *handle, uint64_t *max_threads);

// Lets launches of a Function object have so much dynamic shared memory. What was allowed before stays allowed:
// launchers that were bound for more may still be called. With the GIL.
pk_status allow_dynamic_shared(PyObject *function, uint32_t bytes);

// Unloads the modules that were dropped since the last call; waits for kernels of theirs that still run. With the GIL.
void unload_dropped();

void bind_functions(pybind11::module_ &m);

}  // namespace pk
