// textures.h: arrays in the device's own layout, and texture and surface objects as kernels take them.
#pragma once
#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings/array.h"
#include "bindings/late.h"

namespace pk {

// Counted by the pool as memory of its owner.
class DeviceArray {
 public:
  DeviceArray(const pk_array &shape, const std::string &name);
  ~DeviceArray() { close(); }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  void close();
  // All of a level from a dense array of as many bytes, or to it, on the current stream.
  void copy(const pybind11::object &array, uint32_t level, bool into);

  const pk_array shape;
  const int32_t device;
  uint64_t handle = 0, bytes = 0;
  Uses uses;
  // The array of a level; itself where it has no levels.
  uint64_t level(uint32_t number);

 private:
  uint64_t pool_ = 0, block_ = 0;
  std::vector<uint64_t> levels_;
};

struct DeviceObject {
  const bool surface;
  const int32_t device;
  std::shared_ptr<DeviceArray> memory;       // or
  pybind11::object view = pybind11::none();  // the array whose memory it reads
  uint64_t handle = 0;
  Uses uses;

  DeviceObject(bool surface, int32_t device) : surface(surface), device(device) {}
  ~DeviceObject() { close(); }
  DeviceObject(const DeviceObject &) = delete;
  DeviceObject &operator=(const DeviceObject &) = delete;
  void close();
  const char *what() const { return surface ? "surface" : "texture"; }
};

// Null for anything else; no exception.
DeviceObject *device_object(PyObject *value);
// A launch on that stream uses it.
bool use_object(DeviceObject *object, uint64_t stream, Pins *pins);

void bind_textures(pybind11::module_ &m);

}  // namespace pk
