// stream.h: Stream and Event as C++ objects shared with Python.
#pragma once
#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

namespace pk {

// Some of a device's multiprocessors, for streams whose kernels run on those only.
struct Space {
  uint64_t partition = 0;  // the driver's; 0 for the whole device
  int32_t device = 0;
  uint32_t lane = 0;
  PyObject *owner = nullptr;  // who keeps the partition alive
};

// Where the calling thread's new streams run.
const Space &space_here();

struct Stream {
  uint64_t handle;
  uint32_t id;  // short id for records; 0 = the default stream
  int32_t priority;
  int32_t device;  // where it was made, or current where it was taken over
  bool owned;
  PyObject *keeper = nullptr;  // what keeps another library's stream, or the partition of ours, alive

  Stream(int32_t priority, const Space &space);
  Stream(uint64_t handle, uint32_t id);
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  ~Stream();
};

struct Event {
  uint64_t handle;
  bool timing;

  explicit Event(bool timing);
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  ~Event();
};

// The stream that a call works on: the given one, or the thread's current stream.
struct StreamRef {
  uint64_t handle;
  uint32_t id;
};
// Handles of the default stream and of all others that are alive. With the GIL held.
std::vector<uint64_t> live_streams();
// Work queued on `then` from now on starts after what is queued on `first`; nothing waits here. Throws.
void order_streams(uint64_t first, uint64_t then);
// The thread's current stream as an object, and making one current, whatever session the running code is in.
pybind11::object used_stream();
void use_stream(const pybind11::object &stream_or_none);
StreamRef stream_or_current(PyObject *stream_or_none);  // throws py::type_error on another type

void bind_streams(pybind11::module_ &m);

}  // namespace pk
