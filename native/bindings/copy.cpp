// copy.cpp: copies between host and device, fills, and host launches on the simulated device.
#include "bindings/copy.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "bindings/array.h"
#include "bindings/checked.h"
#include "bindings/demand.h"
#include "bindings/errors.h"
#include "bindings/gil.h"
#include "bindings/graph.h"
#include "bindings/recorder.h"
#include "bindings/stream.h"
#include "bindings/text.h"
#include "bindings/wait.h"
#include "launch/busy.h"
#include "launch/launch.h"
#include "launch/submit.h"

namespace py = pybind11;

namespace pk {

// Large host copies go piece by piece, so that Ctrl-C is seen between pieces.
static constexpr uint64_t kChunkBytes = 32ull << 20;

static ArrayObject *checked(const py::handle &object, const char *what) {
  if (!is_array(object.ptr())) throw py::type_error(std::string(what) + " must be a GPUArray");
  ArrayObject *array = as_array(object.ptr());
  if (!array->contiguous) {
    raise_named("ShapeError", std::string(what) + " is not contiguous; pass .contiguous()");
    throw py::error_already_set();
  }
  if (array->storage->device != t_state.device) {
    raise_named("DeviceMismatchError", std::string(what) + " is on device " + std::to_string(array->storage->device) +
                                           ", the current device is " + std::to_string(t_state.device));
    throw py::error_already_set();
  }
  return array;
}

// The current stream, which must not be captured.
static StreamRef free_stream(const char *doing) {
  spoil_record();
  const StreamRef stream = stream_or_current(nullptr);
  need(refuse_captured(stream.handle, doing));
  return stream;
}

// A buffer view that is released with the GIL held.
struct Buffer {
  Py_buffer view;
  Buffer(const py::handle &object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) throw py::error_already_set();
  }
  ~Buffer() { PyBuffer_Release(&view); }
};

// What the gate knows copies on the device as.
static uint32_t copy_name(CopyDirection direction) {
  static const uint32_t copies = pk_intern("copy", 4), fills = pk_intern("fill", 4);
  return direction == kFill ? fills : copies;
}

// Runs copy(offset, bytes) over the range. The stream is idle before each piece and the piece is finished after it, so
// the host memory may be reused or freed whenever this returns or throws. Returns when the first piece began.
template <typename Copy>
static uint64_t copy_in_chunks(uint64_t bytes, uint64_t stream, const char *doing, const Copy &copy) {
  // A paused task waits here. One that was cancelled may still save what it has.
  if (const pk_status refused = enter(); refused != PK_GATE_STOPPED) check(refused, doing);
  uint64_t begin_ns = 0;
  for (uint64_t done = 0; done < bytes; done += kChunkBytes) {
    need(wait_stream(stream, doing));
    if (done == 0) begin_ns = pk_now_ns();
    const uint64_t piece = std::min(kChunkBytes, bytes - done);
    pk_status status;
    {
      NoGil released;
      status = copy(done, piece);
      if (status == PK_OK) status = g_driver->stream_wait(stream);
    }
    check(status, doing);
  }
  return begin_ns;
}

static void copy_from_host(const py::object &dst, const py::object &src) {
  need(ensure_backend());
  ArrayObject *array = checked(dst, "dst");
  Buffer buffer(src, PyBUF_C_CONTIGUOUS);
  const uint64_t bytes = static_cast<uint64_t>(nbytes_of(array));
  if (static_cast<uint64_t>(buffer.view.len) != bytes) throw py::value_error("src and dst differ in bytes");
  if (bytes == 0) return;
  const StreamRef stream = free_stream("copying to the device");
  Pins pins;
  need(pins.add(array, stream.handle));
  const auto *source = static_cast<const unsigned char *>(buffer.view.buf);
  const uint64_t address = address_of(array);
  const uint64_t begin_ns =
      copy_in_chunks(bytes, stream.handle, "copying to the device", [&](uint64_t offset, uint64_t piece) {
        return g_driver->copy_h2d(address + offset, source + offset, piece, stream.handle);
      });
  record_copy(kH2D, bytes, stream.id, begin_ns);
}

static void copy_to_host(const py::object &dst, const py::object &src) {
  need(ensure_backend());
  ArrayObject *array = checked(src, "src");
  Buffer buffer(dst, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE);
  const uint64_t bytes = static_cast<uint64_t>(nbytes_of(array));
  if (static_cast<uint64_t>(buffer.view.len) != bytes) throw py::value_error("src and dst differ in bytes");
  if (bytes == 0) return;
  const StreamRef stream = free_stream("copying from the device");
  Pins pins;
  need(pins.add(array, stream.handle));
  auto *target = static_cast<unsigned char *>(buffer.view.buf);
  const uint64_t address = address_of(array);
  const uint64_t begin_ns =
      copy_in_chunks(bytes, stream.handle, "copying from the device", [&](uint64_t offset, uint64_t piece) {
        return g_driver->copy_d2h(target + offset, address + offset, piece, stream.handle);
      });
  record_copy(kD2H, bytes, stream.id, begin_ns);
}

class CopyStep : public Step {
 public:
  pk_status issue(uint64_t stream) override {
    const ArrayObject *to = as_array(arrays[0].ptr());
    return g_driver->copy_d2d(address_of(to), address_of(as_array(arrays[1].ptr())),
                              static_cast<uint64_t>(nbytes_of(to)), stream);
  }
  void count(uint32_t stream_id) override {
    record_copy(kD2D, static_cast<uint64_t>(nbytes_of(as_array(arrays[0].ptr()))), stream_id);
  }
  bool each_time() const override { return driver_name() == "sim"; }  // it keeps launches only
};

static void copy(const py::object &dst, const py::object &src) {
  need(ensure_backend());
  ArrayObject *to = checked(dst, "dst");
  ArrayObject *from = checked(src, "src");
  const uint64_t bytes = static_cast<uint64_t>(nbytes_of(to));
  if (static_cast<uint64_t>(nbytes_of(from)) != bytes) throw py::value_error("src and dst differ in bytes");
  if (bytes == 0) return;
  const StreamRef stream = stream_or_current(nullptr);
  if (capture_of(stream.handle) != nullptr) {
    auto step = std::make_unique<CopyStep>();
    need(step->keep(dst.ptr(), stream.handle) && step->keep(src.ptr(), stream.handle));
    add_step(stream.handle, std::move(step));
    return;
  }
  Pins pins;
  need(pins.add(to, stream.handle) && pins.add(from, stream.handle));
  const auto work = [to = address_of(to), from = address_of(from), bytes, on = stream.handle] {
    return g_raw_driver->copy_d2d(to, from, bytes, on);
  };
  check(paced(stream.handle, PK_WORK_TRANSFER, copy_name(kD2D), bytes, work), "copying on the device");
  record_copy(kD2D, bytes, stream.id);
  if (t_recorder != nullptr) t_recorder->copied(dst.ptr(), src.ptr());
}

// Patterns wider than 4 bytes that do not repeat a word: write one element, then double the written part by device
// copies.
static pk_status fill_wide(const pk_driver *driver, uint64_t address, const std::string &pattern, uint64_t bytes,
                           uint64_t stream) {
  const uint64_t width = pattern.size();
  for (uint64_t word = 0; word < width; word += 4) {
    uint32_t value;
    std::memcpy(&value, pattern.data() + word, 4);
    const pk_status status = driver->fill(address + word, value, 4, 1, stream);
    if (status != PK_OK) return status;
  }
  for (uint64_t written = width; written < bytes;) {
    const uint64_t piece = std::min(written, bytes - written);
    const pk_status status = driver->copy_d2d(address + written, address, piece, stream);
    if (status != PK_OK) return status;
    written += piece;
  }
  return PK_OK;
}

static bool repeats_word(const std::string &pattern) {
  return pattern.size() % 4 == 0 && std::equal(pattern.begin() + 4, pattern.end(), pattern.begin());
}

static pk_status fill_dense(const pk_driver *driver, uint64_t address, const std::string &pattern, uint64_t bytes,
                            uint64_t stream) {
  if (pattern.size() > 4 && !repeats_word(pattern)) return fill_wide(driver, address, pattern, bytes, stream);
  const uint32_t unit = static_cast<uint32_t>(std::min<size_t>(pattern.size(), 4));
  uint32_t value = 0;
  std::memcpy(&value, pattern.data(), unit);
  return driver->fill(address, value, unit, bytes / unit, stream);
}

class FillStep : public Step {
 public:
  explicit FillStep(const std::string &pattern) : pattern_(pattern) {}
  pk_status issue(uint64_t stream) override {
    const ArrayObject *array = as_array(arrays[0].ptr());
    return fill_dense(g_driver, address_of(array), pattern_, static_cast<uint64_t>(nbytes_of(array)), stream);
  }
  void count(uint32_t stream_id) override {
    record_copy(kFill, static_cast<uint64_t>(nbytes_of(as_array(arrays[0].ptr()))), stream_id);
  }
  bool each_time() const override { return driver_name() == "sim"; }

 private:
  std::string pattern_;
};

static void fill(const py::object &dst, const py::bytes &pattern_object) {
  need(ensure_backend());
  ArrayObject *array = checked(dst, "dst");
  const std::string pattern = pattern_object;
  const int64_t width = static_cast<int64_t>(pattern.size());
  if (width != itemsize_of(array)) throw py::value_error("the pattern must have one element's bytes");
  if (array->size == 0) return;
  const StreamRef stream = stream_or_current(nullptr);
  if (capture_of(stream.handle) != nullptr) {
    auto step = std::make_unique<FillStep>(pattern);
    need(step->keep(dst.ptr(), stream.handle));
    add_step(stream.handle, std::move(step));
    return;
  }
  Pins pins;
  need(pins.add(array, stream.handle));
  const uint64_t bytes = static_cast<uint64_t>(nbytes_of(array));
  const auto work = [address = address_of(array), pattern, bytes, on = stream.handle] {
    return fill_dense(g_raw_driver, address, pattern, bytes, on);
  };
  check(paced(stream.handle, PK_WORK_FILL, copy_name(kFill), bytes, work), "filling an array");
  record_copy(kFill, bytes, stream.id);
  if (t_recorder != nullptr) t_recorder->filled(dst.ptr(), pattern_object.ptr());
}

// Calls from C++: false with an exception set.
template <typename Work>
static bool without_throwing(const Work &work) {
  try {
    work();
  } catch (py::error_already_set &error) {
    error.restore();
    return false;
  } catch (const py::builtin_exception &error) {
    error.set_error();
    return false;
  }
  return true;
}

bool copy_array(PyObject *dst, PyObject *src) {
  return without_throwing(
      [&] { copy(py::reinterpret_borrow<py::object>(dst), py::reinterpret_borrow<py::object>(src)); });
}

bool fill_array(PyObject *dst, PyObject *pattern) {
  return without_throwing(
      [&] { fill(py::reinterpret_borrow<py::object>(dst), py::reinterpret_borrow<py::bytes>(pattern)); });
}

// ---- host launches: the simulated device's own operators ----

static void need_sim(const char *what) {
  spoil_record();
  need(ensure_backend());
  if (driver_name() == "sim") return;
  raise_named("GPUError",
              std::string(what) + " works on the simulated device only; this process runs on '" + driver_name() + "'");
  throw py::error_already_set();
}

static py::memoryview host_buffer(const py::object &object) {
  need_sim("host_buffer()");
  if (!is_array(object.ptr())) throw py::type_error("host_buffer() needs a GPUArray");
  const Storage *storage = as_array(object.ptr())->storage;
  return py::memoryview::from_memory(reinterpret_cast<void *>(storage->address),
                                     static_cast<py::ssize_t>(storage->bytes));
}

// Runs on the calling thread once the stream is idle: in stream order, without a second interpreter thread. On failure
// there may be a Python exception.
static pk_status run_on_host(const std::string &name, const HostWork &work, uint64_t stream, uint32_t stream_id) {
  if (!wait_stream(stream, name.c_str())) return PK_ERROR_LAUNCH_FAILED;
  busy_rest(stream);
  if (const pk_status refused = enter()) return refused;
  HostLaunch launch(pk_intern(name.data(), name.size()), stream_id);
  const bool done = work();
  launch.end(done);
  return done ? PK_OK : PK_ERROR_LAUNCH_FAILED;
}

class HostStep : public Step {
 public:
  HostStep(const std::string &name, HostWork work) : name_(name), work_(std::move(work)) {}
  pk_status issue(uint64_t stream) override { return run_on_host(name_, work_, stream, 0); }
  void count(uint32_t) override {}  // counted as it runs
  bool each_time() const override { return true; }
  bool is_launch() const override { return true; }

 private:
  std::string name_;
  HostWork work_;
};

void host_work(const std::string &name, HostWork work, const std::vector<py::object> &arrays) {
  need_sim("host_launch()");
  spoil_record();  // Python code, which may do anything
  const StreamRef stream = stream_or_current(nullptr);
  for (const py::object &item : arrays)
    if (!is_array(item.ptr())) throw py::type_error("host_launch() needs GPUArrays");
  if (capture_of(stream.handle) != nullptr) {
    auto step = std::make_unique<HostStep>(name, std::move(work));
    for (const py::object &item : arrays) need(step->keep(item.ptr(), stream.handle));
    add_step(stream.handle, std::move(step));
    return;
  }
  Pins pins;
  for (const py::object &item : arrays) need(pins.add(as_array(item.ptr()), stream.handle));
  const pk_status status = run_on_host(name, work, stream.handle, stream.id);
  if (status != PK_OK && PyErr_Occurred()) throw py::error_already_set();
  check(status, name.c_str());
}

static void host_launch(const Text &name, const py::function &function, const py::sequence &arrays) {
  std::vector<py::object> kept;
  for (py::handle item : arrays) kept.push_back(py::reinterpret_borrow<py::object>(item));
  const auto work = [function] {
    PyObject *result = PyObject_CallNoArgs(function.ptr());
    Py_XDECREF(result);
    return result != nullptr;
  };
  host_work(name.utf8, work, kept);
}

void bind_copies(py::module_ &m) {
  m.def("copy_from_host", copy_from_host, py::arg("dst"), py::arg("src"));
  m.def("copy_to_host", copy_to_host, py::arg("dst"), py::arg("src"));
  m.def("copy", copy, py::arg("dst"), py::arg("src"));
  m.def("fill", fill, py::arg("dst"), py::arg("pattern"));
  m.def("host_buffer", host_buffer, py::arg("array"));
  m.def("host_launch", host_launch, py::arg("name"), py::arg("fn"), py::arg("arrays"));
  m.def(
      "pin",
      [](const py::object &object) {
        need(ensure_backend());
        if (!is_array(object.ptr())) throw py::type_error("pin() needs a GPUArray");
        spoil_record();
        need(pin(as_array(object.ptr()), as_array(object.ptr())->storage->stream, pk_now_ns()));
      },
      py::arg("array"), "Bring the array's block to the device and keep it there until unpin().");
  m.def(
      "unpin",
      [](const py::object &object) {
        if (!is_array(object.ptr())) throw py::type_error("unpin() needs a GPUArray");
        ArrayObject *array = as_array(object.ptr());
        const pk_block_state *state = array->storage->state;
        if (state != nullptr && __atomic_load_n(&state->pins, __ATOMIC_SEQ_CST) == 0)
          throw py::value_error("unpin(): the array is not pinned");
        unpin(array);
      },
      py::arg("array"));
  m.def("release_quarantine", release_quarantine, "Free the blocks that wait because checked kernels exist.");
}

}  // namespace pk
