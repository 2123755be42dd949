// backend.cpp: opening a backend, device properties, thread settings (device, tenant, scheduling context), foreign
// segments.
#include "bindings/backend.h"

#include <pybind11/stl.h>

#include <cstdio>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "bindings/checked.h"
#include "bindings/demand.h"
#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/owner.h"
#include "bindings/sources.h"
#include "bindings/text.h"
#include "sim/refused.h"
#include "sim/sim.h"

namespace py = pybind11;

namespace pk {

static py::object cuda_probe() {
  const char *why;
  {
    NoGil released;
    why = pk_cuda_probe();
  }
  return why != nullptr ? py::object(py::str(why)) : py::none();
}

static void open_backend(const Text &text) {
  const std::string &name = text.utf8;
  std::string why;
  {
    NoGil released;
    why = open_driver(name);
  }
  if (why.empty()) return read_guard();
  raise_named("BackendUnavailableError", why);
  throw py::error_already_set();
}

static py::object backend_name() { return g_driver != nullptr ? py::object(py::str(driver_name())) : py::none(); }

static int32_t device_count() {
  need_backend();
  int32_t count = 0;
  check(g_driver->device_count(&count), "counting devices");
  return count;
}

static py::dict device_info(int32_t device) {
  need_backend();
  pk_device_info info = {};
  check(g_driver->device_info(device, &info), "reading device properties");
  py::dict d;
  d["name"] = info.name;
  d["total_memory_bytes"] = info.total_memory_bytes;
  d["uuid"] = py::bytes(reinterpret_cast<const char *>(info.uuid), sizeof info.uuid);
#define FIELD(field) d[#field] = info.field
  FIELD(compute_major);
  FIELD(compute_minor);
  FIELD(multiprocessor_count);
  FIELD(warp_size);
  FIELD(max_threads_per_block);
  FIELD(max_threads_per_multiprocessor);
  FIELD(max_shared_per_block_bytes);
  FIELD(max_shared_per_block_optin_bytes);
  FIELD(max_shared_per_multiprocessor_bytes);
  FIELD(registers_per_multiprocessor);
  FIELD(l2_bytes);
  FIELD(clock_khz);
  FIELD(memory_clock_khz);
  FIELD(memory_bus_bits);
  FIELD(driver_version);
  FIELD(mps);
#undef FIELD
  d["max_block"] = py::make_tuple(info.max_block[0], info.max_block[1], info.max_block[2]);
  d["max_grid"] = py::make_tuple(info.max_grid[0], info.max_grid[1], info.max_grid[2]);
  return d;
}

static py::tuple memory_info() {
  need_backend();
  uint64_t free_bytes = 0, total_bytes = 0;
  check(g_driver->memory_info(&free_bytes, &total_bytes), "reading free memory");
  return py::make_tuple(free_bytes, total_bytes);
}

static py::dict device_counters() {
  need_backend();
  py::dict d;
  if (driver_name() != "sim") return d;
  uint64_t values[8];
  pk_sim_counters(values);
  d["physical_bytes"] = values[0];
  d["physical_created_bytes"] = values[1];
  d["launches"] = values[2];
  d["host_launches"] = values[3];
  return d;
}

static void set_device(int32_t device) {
  const int32_t count = device_count();
  if (device < 0 || device >= count) {
    throw py::value_error("device " + std::to_string(device) + " does not exist; there are " + std::to_string(count));
  }
  const int32_t previous = std::exchange(t_state.device, device);
  if (ensure_backend()) return;
  t_state.device = previous;
  throw py::error_already_set();
}

// ---- segments of another process ----

struct Segment {
  uint64_t bytes;
  uint64_t physical;
};
static auto *g_segments = new std::unordered_map<uint64_t, Segment>;

static uint64_t import_segment(int32_t fd, uint64_t nbytes) {
  need_backend();
  uint64_t physical = 0, address = 0;
  check(g_driver->physical_import(fd, nbytes, &physical), "importing a segment");
  pk_status status = g_driver->address_reserve(nbytes, &address);
  if (status == PK_OK) {
    status = g_driver->map(address, nbytes, physical);
    if (status != PK_OK) g_driver->address_free(address, nbytes);
  }
  if (status != PK_OK) g_driver->physical_release(physical);
  check(status, "mapping an imported segment");
  (*g_segments)[address] = Segment{nbytes, physical};
  return address;
}

static void release_segment(uint64_t address) {
  need_backend();
  const auto segment_at = g_segments->find(address);
  if (segment_at == g_segments->end()) throw py::value_error("not an imported segment: " + std::to_string(address));
  const Segment segment = segment_at->second;
  g_segments->erase(segment_at);
  pk_status status;
  {
    NoGil released;
    status = g_driver->device_wait();
    if (status == PK_OK) status = g_driver->unmap(address, segment.bytes);
    if (status == PK_OK) status = g_driver->physical_release(segment.physical);
    if (status == PK_OK) status = g_driver->address_free(address, segment.bytes);
  }
  check(status, "releasing an imported segment");
}

static py::dict sources() {
  py::dict result;
  for (const EmbeddedSource *source = embedded_sources(); source->name != nullptr; ++source) {
    result[source->name] = py::str(source->text, source->bytes);
  }
  return result;
}

// The CUDA driver keeps what kernels print until something waits: here a stream of the device that has no work. It
// writes to C's stdout, which may hold it too. A fault is not reported here: the next real wait tells it.
static void flush_cuda_output() {
  static auto *idle_streams = new std::unordered_map<int32_t, uint64_t>;  // by device; under the GIL
  if (bind_device() != PK_OK) return;
  const auto [entry, is_new] = idle_streams->try_emplace(t_state.device, 0);
  if (is_new && g_driver->stream_create(0, &entry->second) != PK_OK) {
    idle_streams->erase(entry);
    return;
  }
  const uint64_t stream = entry->second;
  NoGil released;
  g_driver->stream_wait(stream);
  std::fflush(stdout);
}

static py::object take_device_output() {
  if (g_driver == nullptr) return py::str("");
  if (driver_name() != "sim") {
    flush_cuda_output();
    return py::str("");
  }
  std::string text(1 << 16, '\0');
  std::string all;
  for (;;) {
    const uint64_t bytes = pk_sim_take_output(text.data(), text.size());
    if (bytes == 0) return py::bytes(all).attr("decode")("utf-8", "replace");
    all.append(text.data(), bytes);
  }
}

void bind_backend(py::module_ &m) {
  m.def("cuda_probe", cuda_probe);
  m.def("open_backend", open_backend, py::arg("name"));
  m.def("backend_name", backend_name);
  m.def("device_count", device_count);
  m.def("device_info", device_info, py::arg("device"));
  m.def("memory_info", memory_info);
  m.def("device_counters", device_counters);
  m.def("set_device", set_device, py::arg("device"));
  m.def("current_device", [] {
    if (!follow_session()) throw py::error_already_set();
    return t_state.device;
  });
  m.def(
      "set_cell",
      [](uint32_t cell, const std::optional<py::str> &filename) {
        set_cell(cell, filename ? filename->ptr() : Py_None);
      },
      py::arg("cell"), py::arg("filename").none(true));
  m.def(
      "set_tenant", [](uint32_t tenant) { t_state.tenant = tenant; }, py::arg("tenant"));
  m.def(
      "enter_context",
      [](uint64_t context, uint64_t account) {
        t_state.context = context;
        t_state.account = account;
      },
      py::arg("context"), py::arg("account"));
  m.def("import_segment", import_segment, py::arg("fd"), py::arg("nbytes"));
  m.def("release_segment", release_segment, py::arg("address"));
  m.def("sources", sources, "Text files compiled into the extension module, by path relative to native/.");
  m.def("take_device_output", take_device_output,
        "What kernels printed on the simulated device since the last call; on cuda the driver writes it out.");
  m.def(
      "driver_table",
      [] {
        need_backend();
        return reinterpret_cast<uintptr_t>(static_cast<const pk_driver *>(g_driver));
      },
      "Address of the open backend's pk_driver table: for tests that go past the pool and the launch function.");
  m.def("sim_cancel", pk_sim_cancel, py::call_guard<NoGil>(),
        "Ends every kernel of the simulated device that this thread made current; how many.");
  m.def("sim_clear_fault", pk_sim_clear_fault, py::call_guard<NoGil>(),
        "Forgets the fault of the simulated device that this thread made current; its status.");
  m.def(
      "sim_refused_functions",
      [](const py::bytes &image) {
        pygpukit::sim::ElfFile file;
        const std::string_view bytes = image;
        return file.Parse(bytes) ? pygpukit::sim::RefusedFunctions(file) : std::vector<std::string>();
      },
      py::arg("image"), "Functions that an image of the simulated device takes from the process and may not.");
  m.def(
      "sim_take_traffic",
      [] {
        uint64_t out[5];
        pk_sim_take_traffic(out);
        return py::make_tuple(out[0], out[1], out[2], out[3], out[4]);
      },
      "What counting kernels moved and computed since the last call: bytes of global loads, global stores, shared "
      "loads and shared stores, and floating-point operations.");
}

}  // namespace pk
