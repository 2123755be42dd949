// transfer.cpp: moving bytes. The host's memory is the device's, so a copy is a memcpy that takes the modelled time.
#include "sim/transfer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "sim/counters.h"
#include "sim/state.h"
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

bool BetweenDevices(const Copy &copy) {
  return copy.target_device && copy.source_device && copy.target_device != copy.source_device;
}

// Straight over the link; else by way of the host.
bool IsDirect(const Device *device, const Copy &copy) {
  const Device *other = device == copy.source_device ? copy.target_device : copy.source_device;
  return BetweenDevices(copy) && device->Reaches(other->index());
}

// How long it should take without a link, 0 for as long as it takes.
uint64_t OwnNanoseconds(const Device *device, const Copy &copy) {
  const uint64_t once = device->CopyNanoseconds(copy.bytes);
  return BetweenDevices(copy) ? IsDirect(device, copy) ? 0 : 2 * once : once;
}

// The locks of the memories concerned, in one order for all.
class MemoryLocks {
 public:
  explicit MemoryLocks(const Copy &copy) {
    Device *first = copy.source_device, *second = copy.target_device == first ? nullptr : copy.target_device;
    if (first && second && first->index() > second->index()) std::swap(first, second);
    if (first) first_ = std::shared_lock(first->memory.lock());
    if (second) second_ = std::shared_lock(second->memory.lock());
  }

 private:
  std::shared_lock<std::shared_mutex> first_, second_;
};

// Empty, or what is not mapped.
std::string CheckLocked(const Copy &copy, uint64_t offset, uint64_t bytes) {
  std::string bad;
  if (copy.target_device) bad = copy.target_device->memory.CheckLocked(copy.target + offset, bytes);
  if (bad.empty() && copy.source_device) bad = copy.source_device->memory.CheckLocked(copy.source + offset, bytes);
  return bad;
}

// Calls move(offset, bytes) piece by piece while the device memory concerned is mapped.
template <class Move>
void MovePieces(Device *device, const char *what, const Copy &copy, Move move) {
  if (device->Faulted()) return;
  uint64_t end = MonotonicNanoseconds() + OwnNanoseconds(device, copy);
  if (IsDirect(device, copy)) {
    const int from = copy.source_device->index(), to = copy.target_device->index();
    if (state->links.Fails(from, to)) {
      device->SetFault(PK_ERROR_NVLINK_UNCORRECTABLE,
                       Format("%s: the link from device %d to device %d failed", what, from, to));
      return;
    }
    end = state->links.Take(from, to, copy.bytes, end);
  }
  for (uint64_t offset = 0; offset < copy.bytes; offset += kPieceBytes) {
    const uint64_t bytes = std::min(kPieceBytes, copy.bytes - offset);
    MemoryLocks guard(copy);
    const std::string bad = CheckLocked(copy, offset, bytes);
    if (!bad.empty()) {
      device->SetFault(PK_ERROR_ILLEGAL_ADDRESS, Format("%s: ", what) + bad + " any more");
      return;
    }
    move(offset, bytes);
  }
  SleepUntil(device, end);
}

pk_status Check(Device *device, const char *what, const Copy &copy) {
  if (pk_status bad = device->Fault()) return bad;
  if (copy.bytes) {
    MemoryLocks guard(copy);
    const std::string bad = CheckLocked(copy, 0, copy.bytes);
    if (!bad.empty()) return Fail(PK_ERROR_INVALID_VALUE, Format("%s: ", what) + bad);
  }
  if (copy.bytes && (!copy.target || !copy.source))
    return Fail(PK_ERROR_INVALID_VALUE, Format("%s: null pointer", what));
  return PK_OK;
}

void Enqueue(Device *device, Stream *stream, const Copy &copy, std::function<void()> work) {
  const bool timed = OwnNanoseconds(device, copy) > 0 || (IsDirect(device, copy) && state->links.Timed());
  if (copy.bytes <= kAtOnceBytes && !timed) {
    stream->EnqueueShort(std::move(work));
  } else {
    stream->Enqueue(std::move(work));
  }
}

}  // namespace

pk_status EnqueueCopy(Device *device, Stream *stream, const Copy &copy) {
  const char *what = BetweenDevices(copy)  ? "copy to another device"
                     : !copy.source_device ? "copy to the device"
                     : copy.target_device  ? "copy on the device"
                                           : "copy to the host";
  if (pk_status bad = Check(device, what, copy)) return bad;
  Count(PK_SIM_COPIES);
  Count(PK_SIM_COPIED_BYTES, copy.bytes);
  Enqueue(device, stream, copy, [device, copy, what] {
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
  const Copy range = {target, target, device, nullptr, count * width_bytes};
  if (pk_status bad = Check(device, "fill", range)) return bad;
  Count(PK_SIM_FILLS);
  Enqueue(device, stream, range, [device, range, pattern, width_bytes] {
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
