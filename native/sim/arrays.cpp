// arrays.cpp: arrays in the simulated device's memory, and copies of them.
#include "sim/arrays.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "sim/counters.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

// As a device of 9.0 has them.
constexpr uint64_t kMaxWidth = 131072, kMaxHeight = 65536, kMax3D = 16384, kMaxLayers = 2048;
constexpr uint64_t kMaxLayered = 32768;

// Empty, or what such a device would refuse.
std::string Refusal(const pk_array &shape) {
  const bool layered = shape.flags & (PK_ARRAY_LAYERED | PK_ARRAY_CUBEMAP);
  const bool volume = shape.depth && !layered;
  const uint64_t max_width = volume ? kMax3D : layered ? kMaxLayered : kMaxWidth;
  if (shape.width == 0 || shape.width > max_width || shape.height > std::min(max_width, kMaxHeight) ||
      shape.depth > (volume ? kMax3D : kMaxLayers))
    return Format("an array of %llu x %llu x %llu elements is none that the device has",
                  static_cast<unsigned long long>(shape.width), static_cast<unsigned long long>(shape.height),
                  static_cast<unsigned long long>(shape.depth));
  if (shape.channels != 1 && shape.channels != 2 && shape.channels != 4) return "an element has 1, 2 or 4 channels";
  if (shape.flags & PK_ARRAY_CUBEMAP && (shape.width != shape.height || shape.depth % 6 || shape.depth == 0 ||
                                         (shape.depth != 6 && !(shape.flags & PK_ARRAY_LAYERED))))
    return "a cubemap has six square faces";
  uint64_t largest = std::max({shape.width, shape.height, volume ? shape.depth : 1});
  unsigned levels = 1;
  for (; largest > 1; largest /= 2) ++levels;
  if (shape.levels > levels) return Format("an array of this size has at most %u levels", levels);
  return "";
}

uint64_t Halved(uint64_t extent, uint32_t level) { return std::max<uint64_t>(extent >> level, 1); }

}  // namespace

std::shared_ptr<Array> Array::Make(Device *device, const pk_array &shape, pk_status *status) {
  if (const std::string why = Refusal(shape); !why.empty()) {
    *status = Fail(PK_ERROR_INVALID_VALUE, "array_create: " + why);
    return nullptr;
  }
  std::shared_ptr<Array> created(new Array(device, shape, shape.channels * pk_format_bytes(shape.format)));
  const bool layered = shape.flags & (PK_ARRAY_LAYERED | PK_ARRAY_CUBEMAP);
  uint64_t bytes = 0;
  std::vector<uint64_t> starts;
  for (uint32_t level = 0; level < std::max(shape.levels, 1u); ++level) {
    Image image;
    image.width = Halved(shape.width, level);
    image.height = Halved(shape.height, level);
    image.depth = layered ? shape.depth : Halved(shape.depth, level);
    image.pitch_bytes = image.width * created->element_bytes;
    image.slice_bytes = image.pitch_bytes * image.height;
    starts.push_back(bytes);
    bytes += image.slice_bytes * image.depth;
    created->levels.push_back(image);
  }
  if ((*status = device->memory.TakeArray(bytes))) return nullptr;
  created->bytes_ = bytes;
  created->elements_.reset(new (std::nothrow) char[bytes]());
  if (!created->elements_) {
    *status = Fail(PK_ERROR_OUT_OF_MEMORY, "the system refused memory for an array");
    return nullptr;
  }
  for (size_t level = 0; level < starts.size(); ++level)
    created->levels[level].elements = created->elements_.get() + starts[level];
  *status = PK_OK;
  return created;
}

Array::~Array() { device_->memory.GiveArray(bytes_); }

pk_status EnqueueArrayCopy(Device *device, Stream *stream, std::shared_ptr<ArrayHandle> handle,
                           const pk_array_copy &copy) {
  if (pk_status bad = device->Fault()) return bad;
  const Image &image = handle->array->levels[handle->level];
  if (copy.row_bytes != image.pitch_bytes || copy.rows != image.height || copy.slices != image.depth)
    return Fail(PK_ERROR_INVALID_VALUE, "array_copy: rows and slices are not those of the array");
  const uint64_t bytes = image.slice_bytes * image.depth;
  if (std::string bad = device->memory.Check(copy.address, bytes); !bad.empty())
    return Fail(PK_ERROR_INVALID_VALUE, "array_copy: " + bad);
  Count(PK_SIM_COPIES);
  Count(PK_SIM_COPIED_BYTES, bytes);
  stream->Enqueue([device, handle = std::move(handle), copy, bytes] {
    if (device->Faulted()) return;
    std::shared_lock guard(device->memory.lock());
    if (std::string bad = device->memory.CheckLocked(copy.address, bytes); !bad.empty()) {
      device->SetFault(PK_ERROR_ILLEGAL_ADDRESS, "array_copy: " + bad + " any more");
      return;
    }
    char *elements = handle->array->levels[handle->level].elements;
    char *memory = reinterpret_cast<char *>(copy.address);
    memcpy(copy.into_array ? elements : memory, copy.into_array ? memory : elements, bytes);
  });
  return PK_OK;
}

}  // namespace pygpukit::sim
