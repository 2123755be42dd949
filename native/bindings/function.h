// function.h: Module and Function: loaded device code.
#pragma once
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>

namespace pk {

struct Module {
  uint64_t handle = 0;
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

// Unloads the modules that were dropped since the last call; waits for kernels of theirs that still run. With the GIL.
void unload_dropped();

void bind_functions(pybind11::module_ &m);

}  // namespace pk
