// heap.cpp: first fit over a reserved range; neighbours that are free become one.
#include "sim/heap.h"

#include <sys/mman.h>

#include <iterator>
#include <map>
#include <mutex>

#include "sim/pages.h"

namespace pygpukit::sim {
namespace {

constexpr uint64_t kGuard = 1 << 20, kAlign = 16, kKeptBytes = 1 << 20;

class Heap {
 public:
  Heap() {
    char *start = ReserveRange(kHeapBytes + 2 * kGuard);
    if (!start || mprotect(start + kGuard, kHeapBytes, PROT_READ | PROT_WRITE) != 0) return;
    free_[reinterpret_cast<uintptr_t>(start) + kGuard] = kHeapBytes;
  }

  void *Take(uint64_t bytes) {
    if (bytes > kHeapBytes) return nullptr;
    bytes = bytes ? (bytes + kAlign - 1) / kAlign * kAlign : kAlign;
    std::lock_guard guard(mutex_);
    for (auto room = free_.begin(); room != free_.end(); ++room) {
      if (room->second < bytes) continue;
      const auto [address, whole] = *room;
      free_.erase(room);
      if (whole > bytes) free_[address + bytes] = whole - bytes;
      used_[address] = bytes;
      return reinterpret_cast<void *>(address);
    }
    return nullptr;
  }

  bool Give(uintptr_t address) {
    std::lock_guard guard(mutex_);
    const auto entry = used_.find(address);
    if (entry == used_.end()) return false;
    uint64_t bytes = entry->second;
    used_.erase(entry);
    if (bytes > kKeptBytes) {  // the whole pages in it
      const uint64_t first = (address + 4095) / 4096 * 4096, last = (address + bytes) / 4096 * 4096;
      ForgetPages(reinterpret_cast<void *>(first), last - first);
    }
    auto after = free_.lower_bound(address);
    if (after != free_.end() && after->first == address + bytes) {
      bytes += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin() && std::prev(after)->first + std::prev(after)->second == address) {
      std::prev(after)->second += bytes;
    } else {
      free_[address] = bytes;
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, uint64_t> free_, used_;  // address to bytes
};

Heap &TheHeap() {
  static Heap &heap = *new Heap;
  return heap;
}

}  // namespace

void *HeapTake(uint64_t bytes) { return TheHeap().Take(bytes); }

bool HeapGive(void *block) { return TheHeap().Give(reinterpret_cast<uintptr_t>(block)); }

}  // namespace pygpukit::sim
