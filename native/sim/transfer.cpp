// transfer.cpp: moving bytes. The host's memory is the device's, so a copy is a memcpy that takes the modelled time.
#include "sim/transfer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "sim/counters.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

// Less than this is not worth handing to another thread when the stream is idle.
constexpr uint64_t kAtOnceBytes = 64 << 10;
// The memory's lock is held for one piece at a time.
constexpr uint64_t kPieceBytes = 16 << 20;

// In short naps, so that a copy can be cancelled.
void SleepUntil(Device *device, uint64_t end_ns) {
  constexpr uint64_t kNapNanoseconds = 20'000'000;
  for (uint64_t now = MonotonicNanoseconds(); now < end_ns && !device->Faulted(); now = MonotonicNanoseconds())
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(end_ns - now, kNapNanoseconds)));
}

// Calls move(offset, bytes) piece by piece while the device memory concerned is mapped.
template <class Move>
void MovePieces(Device *device, const char *what, const Copy &copy, Move move) {
  if (device->Faulted()) return;
  const uint64_t start = MonotonicNanoseconds();
  for (uint64_t offset = 0; offset < copy.bytes; offset += kPieceBytes) {
    const uint64_t bytes = std::min(kPieceBytes, copy.bytes - offset);
    std::shared_lock guard(device->memory.lock());
    std::string bad;
    if (copy.target_on_device) bad = device->memory.CheckLocked(copy.target + offset, bytes);
    if (bad.empty() && copy.source_on_device) bad = device->memory.CheckLocked(copy.source + offset, bytes);
    if (!bad.empty()) {
      device->SetFault(PK_ERROR_ILLEGAL_ADDRESS, Format("%s: ", what) + bad + " any more");
      return;
    }
    move(offset, bytes);
  }
  SleepUntil(device, start + device->CopyNanoseconds(copy.bytes));
}

pk_status Check(Device *device, const char *what, const Copy &copy) {
  if (pk_status bad = device->Fault()) return bad;
  std::string bad;
  if (copy.target_on_device && copy.bytes) bad = device->memory.Check(copy.target, copy.bytes);
  if (bad.empty() && copy.source_on_device && copy.bytes) bad = device->memory.Check(copy.source, copy.bytes);
  if (!bad.empty()) return Fail(PK_ERROR_INVALID_VALUE, Format("%s: ", what) + bad);
  if (copy.bytes && (!copy.target || !copy.source))
    return Fail(PK_ERROR_INVALID_VALUE, Format("%s: null pointer", what));
  return PK_OK;
}

void Enqueue(Device *device, Stream *stream, uint64_t bytes, std::function<void()> work) {
  if (bytes <= kAtOnceBytes && device->CopyNanoseconds(bytes) == 0) {
    stream->EnqueueShort(std::move(work));
  } else {
    stream->Enqueue(std::move(work));
  }
}

}  // namespace

pk_status EnqueueCopy(Device *device, Stream *stream, const Copy &copy) {
  const char *what = !copy.source_on_device  ? "copy to the device"
                     : copy.target_on_device ? "copy on the device"
                                             : "copy to the host";
  if (pk_status bad = Check(device, what, copy)) return bad;
  Count(PK_SIM_COPIES);
  Count(PK_SIM_COPIED_BYTES, copy.bytes);
  Enqueue(device, stream, copy.bytes, [device, copy, what] {
    MovePieces(device, what, copy, [&](uint64_t offset, uint64_t bytes) {
      memmove(reinterpret_cast<char *>(copy.target) + offset, reinterpret_cast<const char *>(copy.source) + offset,
              bytes);
    });
  });
  return PK_OK;
}

pk_status EnqueueFill(Device *device, Stream *stream, uint64_t target, uint32_t pattern, uint32_t width_bytes,
                      uint64_t count) {
  if ((width_bytes != 1 && width_bytes != 2 && width_bytes != 4) || target % width_bytes)
    return Fail(PK_ERROR_INVALID_VALUE, "fill: the width must be 1, 2 or 4 bytes, and the address a multiple of it");
  if (count > ~uint64_t{0} / width_bytes) return Fail(PK_ERROR_INVALID_VALUE, "fill: too many elements");
  const Copy range = {target, target, true, false, count * width_bytes};
  if (pk_status bad = Check(device, "fill", range)) return bad;
  Count(PK_SIM_FILLS);
  Enqueue(device, stream, range.bytes, [device, range, pattern, width_bytes] {
    MovePieces(device, "fill", range, [&](uint64_t offset, uint64_t bytes) {
      char *start = reinterpret_cast<char *>(range.target) + offset;
      if (width_bytes == 1) memset(start, static_cast<int>(pattern & 255), bytes);
      if (width_bytes == 2) std::fill_n(reinterpret_cast<uint16_t *>(start), bytes / 2, static_cast<uint16_t>(pattern));
      if (width_bytes == 4) std::fill_n(reinterpret_cast<uint32_t *>(start), bytes / 4, pattern);
    });
  });
  return PK_OK;
}

}  // namespace pygpukit::sim
