// arrays.h: arrays for textures and surfaces. Here their layout is plain rows, one level of a mipmap after the other.
#pragma once

#include <memory>
#include <vector>

#include "sim/device.h"

namespace pygpukit::sim {

// What a texture or a surface looks at: rows of elements, and slices of rows.
struct Image {
  char *elements = nullptr;
  uint64_t width = 0, height = 1, depth = 1;  // depth: of layers and faces, too
  uint64_t pitch_bytes = 0, slice_bytes = 0;
};

class Array {
 public:
  // Null and a status when the device has no room, or would not make such an array.
  static std::shared_ptr<Array> Make(Device *device, const pk_array &shape, pk_status *status);
  ~Array();
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;

  const pk_array shape;
  const unsigned element_bytes;
  std::vector<Image> levels;

 private:
  Array(Device *device, const pk_array &shape, unsigned element_bytes)
      : shape(shape), element_bytes(element_bytes), device_(device) {}
  Device *device_;
  uint64_t bytes_ = 0;
  std::unique_ptr<char[]> elements_;
};

// What a handle of an array means: the first of its levels, or one of them.
struct ArrayHandle {
  std::shared_ptr<Array> array;
  uint32_t level = 0;
};

pk_status EnqueueArrayCopy(Device *device, Stream *stream, std::shared_ptr<ArrayHandle> handle,
                           const pk_array_copy &copy);

}  // namespace pygpukit::sim
