// resident.cpp: the functions of live kernels by name, and the driver's answer for one of them.
#include "bindings/resident.h"

#include <mutex>
#include <unordered_map>

#include "bindings/errors.h"
#include "launch/runtime.h"

namespace py = pybind11;

namespace pk {

static auto *g_mutex = new std::mutex;
static auto *g_functions = new std::unordered_map<uint32_t, uint64_t>;

void note_kernel(uint32_t name, uint64_t function) {
  std::lock_guard<std::mutex> lock(*g_mutex);
  (*g_functions)[name] = function;
}

void kernel_gone(uint32_t name, uint64_t function) {
  std::lock_guard<std::mutex> lock(*g_mutex);
  const auto entry = g_functions->find(name);
  if (entry != g_functions->end() && entry->second == function) g_functions->erase(entry);
}

// Under the mutex, so that the kernel is not unloaded meanwhile.
static int32_t resident_blocks(uint32_t name, uint32_t block_threads, uint32_t shared_bytes) {
  if (!ensure_backend()) throw py::error_already_set();  // also for this thread
  std::lock_guard<std::mutex> lock(*g_mutex);
  const auto entry = g_functions->find(name);
  int32_t blocks = 0;
  if (entry == g_functions->end() ||
      g_driver->function_occupancy(entry->second, block_threads, shared_bytes, &blocks) != PK_OK)
    return 0;
  return blocks;
}

void bind_residents(py::module_ &m) {
  m.def("resident_blocks", &resident_blocks, py::arg("name"), py::arg("block_threads"), py::arg("shared_bytes"),
        "Blocks that a multiprocessor of the current device holds at once of the newest kernel of an interned name; 0 "
        "where that is not known.");
}

}  // namespace pk
