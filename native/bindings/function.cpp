// function.cpp: loading images, finding functions and globals, reading their properties.
#include "bindings/function.h"

#include <cxxabi.h>
#include <pybind11/stl.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bindings/demand.h"
#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/text.h"
#include "launch/slices.h"

namespace py = pybind11;

namespace pk {

// Unloading waits for the kernels of a module. So a dropped module is put aside, and unloaded once the device is idle
// anyway.
static std::vector<uint64_t> *g_dropped = new std::vector<uint64_t>;  // under the GIL
static constexpr size_t kMaxDropped = 256;

void unload_dropped() {
  std::vector<uint64_t> modules;
  modules.swap(*g_dropped);
  if (modules.empty()) return;
  NoGil released;
  if (bind_device() != PK_OK) return;
  for (const uint64_t module : modules) g_driver->module_unload(module);
}

Module::Module(const std::string &image) {
  need_backend();
  if (g_dropped->size() >= kMaxDropped) unload_dropped();
  pk_status status;
  {
    NoGil released;
    status = g_driver->module_load(image.data(), image.size(), &handle);
  }
  check(status, "loading a module of " + std::to_string(image.size()) + " bytes");
}

// The CUBIN that the driver's compiler makes of PTX.
static py::bytes assemble_ptx(const py::bytes &text) {
  need_backend();
  const std::string ptx = text;
  std::string cubin;
  const auto take = [](void *to, const void *bytes, uint64_t count) {
    static_cast<std::string *>(to)->assign(static_cast<const char *>(bytes), count);
  };
  pk_status status;
  {
    NoGil released;
    status = g_driver->ptx_assemble(ptx.data(), ptx.size(), take, &cubin);
  }
  check(status, "assembling " + std::to_string(ptx.size()) + " bytes of PTX");
  return cubin;
}

Module::~Module() {
  if (handle != 0) g_dropped->push_back(handle);
}

static pk_function_info info_of(const Function &function) {
  need_backend();
  pk_function_info info = {};
  check(g_driver->function_info(function.handle, &info), "reading the properties of " + function.name);
  return info;
}

static py::dict info_dict(const Function &function) {
  const pk_function_info info = info_of(function);
  py::dict result;
  result["max_threads_per_block"] = info.max_threads_per_block;
  result["static_shared_bytes"] = info.static_shared_bytes;
  result["const_bytes"] = info.const_bytes;
  result["local_bytes"] = info.local_bytes;
  result["registers"] = info.registers;
  result["binary_version"] = info.binary_version;
  result["param_count"] = info.param_count;
  return result;
}

// Byte sizes of the parameters, None when the driver cannot tell.
static std::optional<std::vector<uint64_t>> param_sizes(const Function &function) {
  const int32_t count = info_of(function).param_count;
  std::vector<uint64_t> sizes;
  for (uint32_t i = 0; count < 0 || i < static_cast<uint32_t>(count); ++i) {
    uint64_t offset = 0, bytes = 0;
    const pk_status status = g_driver->function_param(function.handle, i, &offset, &bytes);
    if (status == PK_ERROR_INVALID_VALUE) break;
    if (status == PK_ERROR_NOT_SUPPORTED) return std::nullopt;
    check(status, "reading the parameters of " + function.name);
    sizes.push_back(bytes);
  }
  return sizes;
}

// Without consent a block has 48 KiB, of which its __shared__ arrays take their part.
static constexpr uint64_t kSharedWithoutConsent = 48 << 10;

static pk_status allow(const Function &function, uint32_t bytes) {
  pk_function_info info = {};
  if (const pk_status status = g_driver->function_info(function.handle, &info)) return status;
  if (static_cast<uint64_t>(info.static_shared_bytes) + bytes <= kSharedWithoutConsent) return PK_OK;
  uint32_t &allowed = function.module->dynamic_shared[function.handle];
  if (bytes <= allowed) return PK_OK;
  const pk_status status = g_driver->function_set_dynamic_shared(function.handle, bytes);
  if (status == PK_OK) allowed = bytes;
  return status;
}

pk_status allow_dynamic_shared(PyObject *function, uint32_t bytes) {
  return allow(py::handle(function).cast<const Function &>(), bytes);
}

bool function_handle(PyObject *object, uint64_t *handle, uint64_t *max_threads) {
  try {
    const Function &function = py::handle(object).cast<const Function &>();
    *handle = function.handle;
    *max_threads = static_cast<uint64_t>(info_of(function).max_threads_per_block);
    return true;
  } catch (py::error_already_set &error) {
    error.restore();
  } catch (const py::cast_error &) {
    PyErr_SetString(PyExc_TypeError, "Kernel() needs a Function");
  }
  return false;
}

// Of every kernel that was looked up in this process: which kernels are the package's, in what other tools record.
static std::set<std::string> &symbols() {
  static std::set<std::string> *all = new std::set<std::string>;  // the interpreter may be gone before it
  return *all;
}

// A C++ symbol as it was declared; anything else as it is.
static std::string demangled(const Text &symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void *)> text(
      abi::__cxa_demangle(symbol.utf8.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : symbol.utf8;
}

void bind_functions(py::module_ &m) {
  m.def("demangled", demangled, py::arg("symbol"), "A C++ symbol as it was declared; anything else as it is.");
  m.def("kernel_symbols", symbols,
        "Symbols of all kernels that were looked up in this process, in modules loaded here.");
  py::class_<Function>(m, "Function", "A kernel in a loaded module.")
      .def_readonly("name", &Function::name)
      .def_readonly("handle", &Function::handle)
      .def_property_readonly("info", info_dict)
      .def("param_sizes", param_sizes)
      .def(
          "occupancy",
          [](const Function &self, uint32_t block_threads, uint32_t shared_bytes) {
            need_backend();
            int32_t blocks = 0;
            if (shared_bytes > 0 && allow(self, shared_bytes) != PK_OK) return blocks;  // more than the device has
            check(g_driver->function_occupancy(self.handle, block_threads, shared_bytes, &blocks),
                  "computing the occupancy of " + self.name);
            return blocks;
          },
          py::arg("block_threads"), py::arg("shared_bytes") = 0);
  m.def("assemble_ptx", assemble_ptx, py::arg("text"),
        "PTX that ends in its only NUL as a CUBIN for the current device. GIL released; launches go on meanwhile.");
  m.def(
      "next_wanted_slices",
      [](double timeout_s) {
        NoGil released;
        return next_request(static_cast<uint64_t>(timeout_s * 1e9));
      },
      py::arg("timeout_s"), "The handle of a kernel that a gate would like to launch in slices; 0 after the timeout.");
  m.def(
      "set_slices", [](uint64_t function, uint64_t variant) { set_slices(function, variant); }, py::arg("function"),
      py::arg("variant"),
      "Which kernel runs slices of one, by handles; 0: it stays whole. Whoever calls keeps the variant alive.");
  py::class_<Module, std::shared_ptr<Module>>(m, "Module", "Loaded device code.")
      .def(py::init([](const py::bytes &image) { return std::make_shared<Module>(std::string(image)); }),
           py::arg("image"))
      .def(
          "function",
          [](const std::shared_ptr<Module> &self, const Text &text) {
            need_backend();
            const std::string &name = text.utf8;
            Function function{self, name, 0};
            pk_status status;
            {
              // Reading properties loads the code, which may wait for kernels that wait for those of other threads.
              NoGil released;
              pk_function_info info = {};
              status = g_driver->module_function(self->handle, name.c_str(), &function.handle);
              if (status == PK_OK) g_driver->function_info(function.handle, &info);
            }
            check(status, "looking up kernel '" + name + "'");
            symbols().insert(name);
            return function;
          },
          py::arg("name"))
      .def(
          "global_",
          [](const Module &self, const Text &text) {
            need_backend();
            const std::string &name = text.utf8;
            uint64_t address = 0, bytes = 0;
            check(g_driver->module_global(self.handle, name.c_str(), &address, &bytes),
                  "looking up global '" + name + "'");
            return py::make_tuple(address, bytes);
          },
          py::arg("name"));
}

}  // namespace pk
