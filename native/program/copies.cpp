// copies.cpp: copies and fills. What a copy's kind says is compared with where its addresses are.
#include "program/copies.h"

#include <algorithm>
#include <cstring>

#include "program/allocations.h"
#include "program/report.h"
#include "program/times.h"

namespace pk::program {
namespace {

uint64_t bytes_of(const Extent &extent) { return extent.width_bytes * extent.rows * extent.slices; }

// From the first byte to behind the last one.
uint64_t span_of(const Box &box, const Extent &extent) {
  return (extent.slices - 1) * box.slice_pitch + (extent.rows - 1) * box.pitch + extent.width_bytes;
}

cudaError_t wrong(const char *kind, cudaError_t error, const std::string &why) {
  tell_finding(kind, why, thread().place);
  return fail(error, why);
}

enum class Where { kHost, kDevice, kEither };

Where where_is(const Allocation *allocation) {
  if (allocation == nullptr) return Where::kHost;
  return allocation->kind == Kind::kDevice || allocation->kind == Kind::kSymbol ? Where::kDevice : Where::kEither;
}

// What an address that belongs to nobody was, or one whose allocation the copy leaves.
cudaError_t check_range(const Box &box, const Extent &extent, const Allocation *found, const char *side,
                        const char *call) {
  if (box.address == 0) return fail(cudaErrorInvalidValue, std::string(call) + ": the " + side + " is a null pointer");
  const uint64_t bytes = span_of(box, extent);
  if (found != nullptr && box.address + bytes > found->address + found->bytes)
    return wrong("out of bounds", cudaErrorInvalidValue,
                 std::string(call) + " of " + std::to_string(bytes) + " bytes: the " + side + " is " +
                     describe_address(box.address) + ", " +
                     std::to_string(box.address + bytes - found->address - found->bytes) + " bytes too few");
  if (found == nullptr)
    if (const Freed *freed = find_freed(box.address); freed != nullptr && freed->was.kind == Kind::kDevice)
      return wrong("use after free", cudaErrorInvalidValue,
                   std::string(call) + ": the " + side + " is " + describe_address(box.address));
  return cudaSuccess;
}

cudaError_t check_side(const Box &box, const Allocation *found, bool on_device, const char *side, const char *kind,
                       const char *call) {
  const Where where = where_is(found);
  if (where == Where::kEither || (where == Where::kDevice) == on_device) return cudaSuccess;
  const std::string is = where == Where::kDevice ? "device memory (" + describe_address(box.address) + ")"
                                                 : std::string("host memory that no kernel sees");
  return wrong(
      "wrong direction", cudaErrorInvalidValue,
      std::string(call) + "(..., " + kind + "): the " + side + " is " + is + "; the order is (to, from, bytes, kind)");
}

constexpr const char *kKinds[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost",
                                  "cudaMemcpyDeviceToDevice", "cudaMemcpyDefault"};

const char *direction(bool from_device, bool to_device) {
  if (from_device) return to_device ? "device to device" : "device to host";
  return to_device ? "host to device" : "host to host";
}

cudaError_t move_row(Stream &stream, uint64_t to, bool to_device, uint64_t from, bool from_device, uint64_t bytes) {
  void *const to_host = reinterpret_cast<void *>(to);
  const void *const from_host = reinterpret_cast<const void *>(from);
  if (state().simulated) {
    std::memmove(to_host, from_host, bytes);
    return cudaSuccess;
  }
  if (to_device && from_device) return check(driver().copy_d2d(to, from, bytes, stream.handle));
  if (to_device) return check(driver().copy_h2d(to, from_host, bytes, stream.handle));
  if (from_device) return check(driver().copy_d2h(to_host, from, bytes, stream.handle));
  const cudaError_t failed = check(driver().stream_wait(stream.handle));
  if (failed == cudaSuccess) std::memmove(to_host, from_host, bytes);
  return failed;
}

template <class Each>
cudaError_t each_row(const Extent &extent, Each each) {
  for (uint64_t slice = 0; slice < extent.slices; ++slice)
    for (uint64_t row = 0; row < extent.rows; ++row)
      if (const cudaError_t failed = each(slice, row); failed != cudaSuccess) return failed;
  return cudaSuccess;
}

// Rows that follow one another without gaps are one.
Extent joined(Extent extent, const Box &one, const Box &other) {
  if (extent.rows > 1 && one.pitch == extent.width_bytes && other.pitch == extent.width_bytes) {
    if (extent.slices > 1 && one.slice_pitch == one.pitch * extent.rows && other.slice_pitch == one.slice_pitch) {
      extent.rows *= extent.slices;
      extent.slices = 1;
    }
    extent.width_bytes *= extent.rows;
    extent.rows = 1;
  }
  return extent;
}

}  // namespace

cudaError_t copy(Stream &stream, const Box &to, const Box &from, const Extent &extent, cudaMemcpyKind kind,
                 const char *call) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return fail(cudaErrorInvalidMemcpyDirection,
                std::string(call) + ": " + std::to_string(kind) + " is no cudaMemcpyKind");
  if (bytes_of(extent) == 0) return cudaSuccess;
  const Allocation *to_found = find_allocation(to.address), *from_found = find_allocation(from.address);
  bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    to_device = to_found != nullptr;
    from_device = from_found != nullptr;
  }
  cudaError_t bad = check_range(to, extent, to_found, "target", call);
  if (bad == cudaSuccess) bad = check_range(from, extent, from_found, "source", call);
  if (bad == cudaSuccess) bad = check_side(to, to_found, to_device, "target", kKinds[kind], call);
  if (bad == cudaSuccess) bad = check_side(from, from_found, from_device, "source", kKinds[kind], call);
  if (bad != cudaSuccess) return bad;
  const Gate to_open(to_found), from_open(from_found == to_found ? nullptr : from_found);
  Timing timing(stream);
  const cudaError_t failed = each_row(joined(extent, to, from), [&](uint64_t slice, uint64_t row) {
    const Extent rows = joined(extent, to, from);
    return move_row(stream, to.address + slice * to.slice_pitch + row * to.pitch, to_device,
                    from.address + slice * from.slice_pitch + row * from.pitch, from_device, rows.width_bytes);
  });
  count_copy(direction(from_device, to_device), bytes_of(extent));
  timing.end({"copy", direction(from_device, to_device), 0, 0, bytes_of(extent)});
  return failed;
}

cudaError_t fill(Stream &stream, const Box &to, const Extent &extent, uint32_t pattern, uint32_t width_bytes,
                 const char *call) {
  if (bytes_of(extent) == 0) return cudaSuccess;
  const Allocation *found = find_allocation(to.address);
  const cudaError_t bad = check_range(to, extent, found, "memory", call);
  if (bad != cudaSuccess) return bad;
  if (found == nullptr)
    return wrong(
        "wrong memory", cudaErrorInvalidValue,
        std::string(call) + ": the address is in memory of the host that no kernel sees: memset() is for that");
  const Gate open(found);
  const Extent rows = joined(extent, to, to);
  Timing timing(stream);
  const cudaError_t failed = each_row(rows, [&](uint64_t slice, uint64_t row) {
    const uint64_t at = to.address + slice * to.slice_pitch + row * to.pitch, count = rows.width_bytes / width_bytes;
    if (!state().simulated) return check(driver().fill(at, pattern, width_bytes, count, stream.handle));
    if (width_bytes == 1) std::memset(reinterpret_cast<void *>(at), static_cast<int>(pattern & 255), count);
    if (width_bytes == 2) std::fill_n(reinterpret_cast<uint16_t *>(at), count, static_cast<uint16_t>(pattern));
    if (width_bytes == 4) std::fill_n(reinterpret_cast<uint32_t *>(at), count, pattern);
    return cudaSuccess;
  });
  timing.end({"fill", "fill", 0, 0, bytes_of(extent)});
  return failed;
}

// ---- the calls

namespace {

Box flat(const void *pointer) { return {reinterpret_cast<uint64_t>(pointer), 0, 0}; }
Box rows(const void *pointer, size_t pitch) { return {reinterpret_cast<uint64_t>(pointer), pitch, 0}; }

cudaError_t put_copy(cudaStream_t stream, Box to, Box from, Extent extent, cudaMemcpyKind kind, const char *call) {
  return put(stream, cudaGraphNodeTypeMemcpy, [=](Stream &on) { return copy(on, to, from, extent, kind, call); });
}

cudaError_t put_fill(cudaStream_t stream, Box to, Extent extent, int value, const char *call) {
  return put(stream, cudaGraphNodeTypeMemset,
             [=](Stream &on) { return fill(on, to, extent, static_cast<uint32_t>(value) & 255u, 1, call); });
}

// Copies that the host waits for are on the default stream.
cudaError_t now(cudaError_t failed) {
  if (failed != cudaSuccess) return failed;
  Stream *stream = find_stream(nullptr);
  return wait_stream(*stream);
}

cudaError_t check_pitch(size_t width_bytes, size_t pitch, size_t height, const char *call) {
  if (width_bytes <= pitch || height <= 1) return cudaSuccess;
  return fail(cudaErrorInvalidPitchValue, std::string(call) + ": rows of " + std::to_string(width_bytes) +
                                              " bytes are longer than the pitch, " + std::to_string(pitch));
}

}  // namespace

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return now(put_copy(nullptr, flat(to), flat(from), {bytes}, kind, "cudaMemcpy"));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return put_copy(stream, flat(to), flat(from), {bytes}, kind, "cudaMemcpyAsync");
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width_bytes,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  const char *const call = "cudaMemcpy2D";
  if (height == 0 || width_bytes == 0) return cudaSuccess;
  cudaError_t bad = check_pitch(width_bytes, to_pitch, height, call);
  if (bad == cudaSuccess) bad = check_pitch(width_bytes, from_pitch, height, call);
  if (bad != cudaSuccess) return bad;
  return put_copy(stream, rows(to, to_pitch), rows(from, from_pitch), {width_bytes, height}, kind, call);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width_bytes,
                         size_t height, cudaMemcpyKind kind) {
  return now(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width_bytes, height, kind, nullptr));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, cudaStream_t stream) {
  return put_copy(stream, flat(to), flat(from), {bytes}, cudaMemcpyDeviceToDevice, "cudaMemcpyPeer");
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
  return now(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr));
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream) {
  return put_fill(stream, flat(pointer), {bytes}, value, "cudaMemset");
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) {
  return cudaMemsetAsync(pointer, value, bytes, nullptr);
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width_bytes, size_t height,
                              cudaStream_t stream) {
  if (height == 0 || width_bytes == 0) return cudaSuccess;
  if (const cudaError_t bad = check_pitch(width_bytes, pitch, height, "cudaMemset2D"); bad != cudaSuccess) return bad;
  return put_fill(stream, rows(pointer, pitch), {width_bytes, height}, value, "cudaMemset2D");
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width_bytes, size_t height) {
  return cudaMemset2DAsync(pointer, pitch, value, width_bytes, height, nullptr);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent, cudaStream_t stream) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
  return put_fill(stream, {reinterpret_cast<uint64_t>(pointer.ptr), pointer.pitch, pointer.pitch * pointer.ysize},
                  {extent.width, extent.height, extent.depth}, value, "cudaMemset3D");
}

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return cudaMemset3DAsync(pointer, value, extent, nullptr);
}

}  // namespace pk::program
