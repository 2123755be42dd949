// registry.h: objects that kernels name by a 64-bit handle, found without a lock. No handle is given out twice.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace pygpukit::sim {

template <class T>
class Registry {
 public:
  explicit Registry(uint64_t kind) : base_(kind << 48) {}

  // 0 when there have been too many.
  uint64_t Add(std::unique_ptr<T> object) {
    std::lock_guard guard(mutex_);
    const uint64_t number = last_ + 1;
    if (number >= kChunks * kInChunk) return 0;
    auto &chunk = chunks_[number / kInChunk];
    if (!chunk.load(std::memory_order_relaxed))
      chunk.store(new std::atomic<T *>[kInChunk](), std::memory_order_release);
    chunk.load(std::memory_order_relaxed)[number % kInChunk].store(object.release(), std::memory_order_release);
    last_ = number;
    return base_ + number;
  }
  T *Find(uint64_t handle) const {
    const auto *at = Place(handle);
    return at ? at->load(std::memory_order_acquire) : nullptr;
  }
  // Nobody may be using it.
  bool Remove(uint64_t handle) {
    auto *at = Place(handle);
    return at && std::unique_ptr<T>(at->exchange(nullptr));
  }

 private:
  static constexpr uint64_t kInChunk = 4096, kChunks = 16384;
  std::atomic<T *> *Place(uint64_t handle) const {
    const uint64_t number = handle - base_;
    if (number >= kChunks * kInChunk) return nullptr;
    auto *chunk = chunks_[number / kInChunk].load(std::memory_order_acquire);
    return chunk ? chunk + number % kInChunk : nullptr;
  }

  const uint64_t base_;
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::atomic<std::atomic<T *> *> chunks_[kChunks] = {};
};

}  // namespace pygpukit::sim
