// late.h: what is destroyed once the work that uses it is done.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace pk {

// Who has used something on the device. All under the GIL.
class Uses {
 public:
  void on(uint64_t stream) {
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
  }
  bool held_by_graph() const { return graphs_ > 0; }
  void hold(int more) { graphs_ += more, in_graph_ = true; }
  // Calls destroy() with the device current: now when all of it is done, else later, in a call of collect_late().
  void end(int32_t device, std::function<void()> destroy);

 private:
  std::vector<uint64_t> streams_;
  bool in_graph_ = false;  // graphs run on any stream
  int graphs_ = 0;
};

// Destroys what nothing uses any more. wait: waits for what is still used. True when there was anything.
bool collect_late(bool wait);

}  // namespace pk
