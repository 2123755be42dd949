// handles.h: opaque 64-bit handles. A handle of one kind, or of something destroyed, is never taken for another.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace pygpukit::sim {

template <class T>
class Handles {
 public:
  explicit Handles(uint64_t kind) : next_(kind << 48) {}

  uint64_t Add(std::shared_ptr<T> object) {
    std::lock_guard guard(mutex_);
    objects_[++next_] = std::move(object);
    return next_;
  }
  std::shared_ptr<T> Find(uint64_t handle) {
    std::lock_guard guard(mutex_);
    const auto at = objects_.find(handle);
    return at == objects_.end() ? nullptr : at->second;
  }
  std::shared_ptr<T> Remove(uint64_t handle) {
    std::lock_guard guard(mutex_);
    const auto at = objects_.find(handle);
    if (at == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(at->second);
    objects_.erase(at);
    return object;
  }
  template <class Which>
  void RemoveIf(Which which) {
    std::lock_guard guard(mutex_);
    std::erase_if(objects_, [&](const auto &entry) { return which(*entry.second); });
  }

 private:
  std::mutex mutex_;
  uint64_t next_;
  std::unordered_map<uint64_t, std::shared_ptr<T>> objects_;
};

}  // namespace pygpukit::sim
