// arrays.cpp: arrays and copies to and from them.
#include "program/arrays.h"

#include <algorithm>

#include "program/allocations.h"
#include "program/copies.h"

namespace pk::program {
namespace {

std::map<const void *, std::unique_ptr<Array>> &arrays() {
  static auto &only = *new std::map<const void *, std::unique_ptr<Array>>;
  return only;
}

cudaError_t no_array() { return fail(cudaErrorInvalidResourceHandle, "there is no such array, or it was freed"); }

Array *keep(std::unique_ptr<Array> array) {
  Array *const created = array.get();
  arrays()[created] = std::move(array);
  return created;
}

cudaError_t make(const cudaChannelFormatDesc *format, cudaExtent extent, unsigned levels, unsigned flags,
                 Array **created) {
  if (const cudaError_t fault = standing(); fault != cudaSuccess) return fault;
  auto array = std::make_unique<Array>();
  pk_array &shape = array->shape;
  if (format == nullptr || !format_of(*format, &shape.format, &shape.channels))
    return fail(cudaErrorInvalidChannelDescriptor,
                "an element has 1, 2 or 4 numbers of 8, 16 or 32 bits, all of one kind");
  array->format = *format;
  shape.width = extent.width;
  shape.height = extent.height;
  shape.depth = extent.depth;
  shape.flags = flags & (PK_ARRAY_LAYERED | PK_ARRAY_SURFACE | PK_ARRAY_CUBEMAP | PK_ARRAY_GATHER);
  shape.levels = levels;
  const cudaError_t failed = check(driver().array_create(&shape, &array->handle));
  if (failed == cudaSuccess) *created = keep(std::move(array));
  return failed;
}

cudaError_t destroy(Array *array) {
  if (array == nullptr || array->is_level) return no_array();
  if (const cudaError_t failed = wait_device(); failed != cudaSuccess) return failed;
  const cudaError_t failed = check(driver().array_destroy(array->handle, array->shape.levels));
  for (Array *level : array->levels) arrays().erase(level);
  arrays().erase(array);
  return failed;
}

// All of an array as dense rows in memory of the device.
class Staging {
 public:
  Staging(Array &array, Stream &stream) : array_(array), stream_(stream) {}
  ~Staging() {
    if (memory_.address == 0) return;
    if (!state().simulated) driver().stream_wait(stream_.handle);
    release(memory_);
  }
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  cudaError_t take() {
    return allocate(Kind::kManaged, array_.row_bytes() * array_.rows() * array_.slices(), &memory_);
  }
  cudaError_t move(bool into_array) {
    const pk_array_copy copy = {
        array_.handle, memory_.address, array_.row_bytes(), array_.rows(), array_.slices(), into_array, 0};
    cudaError_t failed = check(driver().array_copy(&copy, stream_.handle));
    if (failed == cudaSuccess && state().simulated) failed = check(driver().stream_wait(stream_.handle));
    return failed;
  }
  Box box(const cudaPos &at) const {
    const uint64_t pitch = array_.row_bytes(), slice = pitch * array_.rows();
    return {memory_.address + at.x * array_.element_bytes() + at.y * pitch + at.z * slice, pitch, slice};
  }
  bool holds(const cudaPos &at, const cudaExtent &extent) const {
    return at.x + extent.width <= array_.shape.width && at.y + extent.height <= array_.rows() &&
           at.z + extent.depth <= array_.slices();
  }
  bool is_all(const cudaExtent &extent) const {
    return extent.width == array_.shape.width && extent.height == array_.rows() && extent.depth == array_.slices();
  }

 private:
  Array &array_;
  Stream &stream_;
  Allocation memory_ = {};
};

Box box_of(const cudaPitchedPtr &memory, const cudaPos &at) {
  const uint64_t slice = memory.pitch * memory.ysize;
  return {reinterpret_cast<uint64_t>(memory.ptr) + at.x + at.y * memory.pitch + at.z * slice, memory.pitch, slice};
}

cudaMemcpy3DParms rows_to_array(cudaArray_t to, size_t x_bytes, size_t y, const void *from, size_t pitch,
                                size_t width_bytes, size_t height, cudaMemcpyKind kind) {
  const Array *array = find_array(to);
  const size_t element = array != nullptr ? array->element_bytes() : 1;
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = {const_cast<void *>(from), pitch, width_bytes, height};
  copy.dstArray = to;
  copy.dstPos = {x_bytes / element, y, 0};
  copy.extent = {width_bytes / element, height, 1};
  copy.kind = kind;
  return copy;
}

cudaMemcpy3DParms array_to_rows(void *to, size_t pitch, cudaArray_const_t from, size_t x_bytes, size_t y,
                                size_t width_bytes, size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy =
      rows_to_array(const_cast<cudaArray_t>(from), x_bytes, y, to, pitch, width_bytes, height, kind);
  std::swap(copy.srcArray, copy.dstArray);
  std::swap(copy.srcPos, copy.dstPos);
  std::swap(copy.srcPtr, copy.dstPtr);
  return copy;
}

}  // namespace

Array *find_array(const void *array) {
  const auto at = arrays().find(array);
  return at == arrays().end() ? nullptr : at->second.get();
}

bool format_of(const cudaChannelFormatDesc &description, uint32_t *format, uint32_t *channels) {
  const int bits[] = {description.x, description.y, description.z, description.w};
  uint32_t count = 0;
  while (count < 4 && bits[count] != 0) ++count;
  for (uint32_t i = 0; i < count; ++i)
    if (bits[i] != bits[0]) return false;
  if (count != 1 && count != 2 && count != 4) return false;
  *channels = count;
  const uint32_t size = bits[0] == 8 ? 0 : bits[0] == 16 ? 1 : bits[0] == 32 ? 2 : 3;
  if (size == 3) return false;
  switch (description.f) {
    case cudaChannelFormatKindSigned:
      *format = PK_FORMAT_INT8 + size;
      return true;
    case cudaChannelFormatKindUnsigned:
      *format = PK_FORMAT_UINT8 + size;
      return true;
    case cudaChannelFormatKindFloat:
      *format = size == 1 ? PK_FORMAT_FLOAT16 : PK_FORMAT_FLOAT32;
      return size > 0;
    default:
      return false;
  }
}

cudaError_t copy_3d(Stream &stream, const cudaMemcpy3DParms &given) {
  Array *const to_array = given.dstArray != nullptr ? find_array(given.dstArray) : nullptr;
  Array *const from_array = given.srcArray != nullptr ? find_array(given.srcArray) : nullptr;
  if ((given.dstArray != nullptr && to_array == nullptr) || (given.srcArray != nullptr && from_array == nullptr))
    return no_array();
  const cudaExtent &size = given.extent;
  if (size.width == 0 || size.height == 0 || size.depth == 0) return cudaSuccess;
  const uint64_t element = to_array != nullptr     ? to_array->element_bytes()
                           : from_array != nullptr ? from_array->element_bytes()
                                                   : 1;
  const Extent extent = {size.width * element, size.height, size.depth};
  Box to = box_of(given.dstPtr, given.dstPos), from = box_of(given.srcPtr, given.srcPos);
  std::optional<Staging> to_staging, from_staging;
  if (from_array != nullptr) {
    from_staging.emplace(*from_array, stream);
    if (!from_staging->holds(given.srcPos, size))
      return fail(cudaErrorInvalidValue, "the copy leaves the source array");
    cudaError_t failed = from_staging->take();
    if (failed == cudaSuccess) failed = from_staging->move(false);
    if (failed != cudaSuccess) return failed;
    from = from_staging->box(given.srcPos);
  }
  if (to_array != nullptr) {
    to_staging.emplace(*to_array, stream);
    if (!to_staging->holds(given.dstPos, size)) return fail(cudaErrorInvalidValue, "the copy leaves the target array");
    cudaError_t failed = to_staging->take();
    if (failed == cudaSuccess && !to_staging->is_all(size)) failed = to_staging->move(false);
    if (failed != cudaSuccess) return failed;
    to = to_staging->box(given.dstPos);
  }
  const cudaError_t failed = copy(stream, to, from, extent, given.kind, "cudaMemcpy3D");
  return failed == cudaSuccess && to_array != nullptr ? to_staging->move(true) : failed;
}

void forget_arrays() {
  for (const auto &[key, array] : arrays())
    if (!array->is_level) driver().array_destroy(array->handle, array->shape.levels);
  arrays().clear();
}

// ---- the calls

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *format, cudaExtent extent,
                              unsigned flags) {
  Array *created = nullptr;
  const cudaError_t failed = make(format, extent, 0, flags, &created);
  if (failed == cudaSuccess) *array = reinterpret_cast<cudaArray_t>(created);
  return failed;
}

cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *format, size_t width, size_t height,
                            unsigned flags) {
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const cudaChannelFormatDesc *format,
                                     cudaExtent extent, unsigned levels, unsigned flags) {
  Array *created = nullptr;
  const cudaError_t failed = make(format, extent, levels, flags, &created);
  if (failed == cudaSuccess) *array = reinterpret_cast<cudaMipmappedArray_t>(created);
  return failed;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_const_t mipmapped, unsigned level) {
  Array *of = find_array(mipmapped);
  if (of == nullptr || of->shape.levels == 0) return no_array();
  auto created = std::make_unique<Array>(*of);
  if (const cudaError_t failed = check(driver().array_level(of->handle, level, &created->handle));
      failed != cudaSuccess)
    return failed;
  const auto halved = [level](uint64_t extent) { return extent == 0 ? 0 : std::max<uint64_t>(extent >> level, 1); };
  created->is_level = true;
  created->levels.clear();
  created->shape.levels = 0;
  created->shape.width = halved(of->shape.width);
  created->shape.height = halved(of->shape.height);
  if ((of->shape.flags & (PK_ARRAY_LAYERED | PK_ARRAY_CUBEMAP)) == 0) created->shape.depth = halved(of->shape.depth);
  Array *const kept = keep(std::move(created));
  of->levels.push_back(kept);
  *array = reinterpret_cast<cudaArray_t>(kept);
  return cudaSuccess;
}

cudaError_t cudaFreeArray(cudaArray_t array) { return array == nullptr ? cudaSuccess : destroy(find_array(array)); }

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return array == nullptr ? cudaSuccess : destroy(find_array(array));
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *format, cudaExtent *extent, unsigned *flags, cudaArray_t array) {
  const Array *of = find_array(array);
  if (of == nullptr) return no_array();
  if (format != nullptr) *format = of->format;
  if (extent != nullptr) *extent = {of->shape.width, of->shape.height, of->shape.depth};
  if (flags != nullptr) *flags = of->shape.flags;
  return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *format, cudaArray_const_t array) {
  return cudaArrayGetInfo(format, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *given, cudaStream_t stream) {
  if (given == nullptr) return fail(cudaErrorInvalidValue, "cudaMemcpy3D has no parameters");
  return put(stream, cudaGraphNodeTypeMemcpy, [of = *given](Stream &on) { return copy_3d(on, of); });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *given) {
  const cudaError_t failed = cudaMemcpy3DAsync(given, nullptr);
  return failed != cudaSuccess ? failed : wait_stream(*find_stream(nullptr));
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x_bytes, size_t y, const void *from, size_t pitch,
                                     size_t width_bytes, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  const cudaMemcpy3DParms copy = rows_to_array(to, x_bytes, y, from, pitch, width_bytes, height, kind);
  return cudaMemcpy3DAsync(&copy, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x_bytes, size_t y, const void *from, size_t pitch,
                                size_t width_bytes, size_t height, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms copy = rows_to_array(to, x_bytes, y, from, pitch, width_bytes, height, kind);
  return cudaMemcpy3D(&copy);
}

cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x_bytes, size_t y,
                                  size_t width_bytes, size_t height, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms copy = array_to_rows(to, pitch, from, x_bytes, y, width_bytes, height, kind);
  return cudaMemcpy3D(&copy);
}

// Of whole rows, or of a part of one.
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x_bytes, size_t y, const void *from, size_t bytes,
                              cudaMemcpyKind kind) {
  const Array *array = find_array(to);
  if (array == nullptr) return no_array();
  const size_t row = array->row_bytes();
  if (bytes <= row - x_bytes) return cudaMemcpy2DToArray(to, x_bytes, y, from, bytes, bytes, 1, kind);
  if (x_bytes != 0 || bytes % row != 0) return fail(cudaErrorInvalidValue, "bytes are whole rows, or a part of one");
  return cudaMemcpy2DToArray(to, 0, y, from, row, row, bytes / row, kind);
}

cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x_bytes, size_t y, size_t bytes,
                                cudaMemcpyKind kind) {
  const Array *array = find_array(from);
  if (array == nullptr) return no_array();
  const size_t row = array->row_bytes();
  if (bytes <= row - x_bytes) return cudaMemcpy2DFromArray(to, bytes, from, x_bytes, y, bytes, 1, kind);
  if (x_bytes != 0 || bytes % row != 0) return fail(cudaErrorInvalidValue, "bytes are whole rows, or a part of one");
  return cudaMemcpy2DFromArray(to, row, from, 0, y, row, bytes / row, kind);
}

}  // namespace pk::program
