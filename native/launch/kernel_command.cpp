// kernel_command.cpp: copies of launches. How large each argument is the driver tells once a function.
#include "launch/kernel_command.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "launch/ordered.h"
#include "launch/slices.h"

namespace pk {

using Sizes = std::vector<uint64_t>;  // of each argument, in bytes

static auto *g_mutex = new std::mutex;
static auto *g_sizes = new std::unordered_map<uint64_t, std::shared_ptr<const Sizes>>;  // by function

// Null when the driver cannot tell.
static std::shared_ptr<const Sizes> sizes_of(uint64_t function) {
  std::lock_guard<std::mutex> lock(*g_mutex);
  std::shared_ptr<const Sizes> &known = (*g_sizes)[function];
  if (known != nullptr) return known;
  Sizes sizes;
  for (uint32_t i = 0;; ++i) {
    uint64_t offset = 0, bytes = 0;
    const pk_status status = g_raw_driver->function_param(function, i, &offset, &bytes);
    if (status == PK_ERROR_INVALID_VALUE) break;
    if (status != PK_OK) return nullptr;
    sizes.push_back(bytes);
  }
  known = std::make_shared<const Sizes>(std::move(sizes));
  return known;
}

void forget_parameters() {
  std::lock_guard<std::mutex> lock(*g_mutex);
  g_sizes->clear();
}

namespace {

struct Kept {
  pk_launch launch;
  uint64_t variant;  // runs parts of it, if any does
  std::vector<void *> params;
  std::unique_ptr<unsigned char[]> bytes;  // aligned as arguments need
};

uint64_t rounded(uint64_t bytes) { return (bytes + 15) & ~uint64_t{15}; }

void *keep(void *self) {
  const auto &[launch, variant] = *static_cast<const KernelCommand::Request *>(self);
  Sizes sizes = *sizes_of(launch.function);
  // On sim a slice comes after the parameters, on cuda it is the last of them.
  if ((launch.flags & PK_LAUNCH_SLICE) != 0 && driver_name() == "sim") sizes.push_back(sizeof(pk_slice));
  uint64_t total = 0;
  for (const uint64_t bytes : sizes) total += rounded(bytes);
  auto kept = std::make_unique<Kept>();
  kept->launch = launch;
  kept->variant = variant;
  kept->bytes = std::make_unique<unsigned char[]>(total);
  unsigned char *to = kept->bytes.get();
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::memcpy(to, launch.params[i], sizes[i]);
    kept->params.push_back(to);
    to += rounded(sizes[i]);
  }
  kept->launch.params = kept->params.data();
  return kept.release();
}

pk_status issue_part(void *self, const uint32_t first[3], const uint32_t extent[3]) {
  Kept &kept = *static_cast<Kept *>(self);
  pk_launch part = kept.launch;
  pk_slice slice = {};
  for (int axis = 0; axis < 3; ++axis) {
    slice.first[axis] = first[axis];
    slice.whole[axis] = part.grid[axis];
    part.grid[axis] = extent[axis];
  }
  part.function = kept.variant;
  part.flags |= PK_LAUNCH_SLICE;
  std::vector<void *> params = kept.params;
  params.push_back(&slice);
  part.params = params.data();
  return g_raw_driver->launch(&part);
}

void want_parts(void *self) {
  const pk_launch &launch = *static_cast<const pk_launch *>(self);
  if (launch.flags == 0) want_slices(launch.function);
}

}  // namespace

bool KernelCommand::can_keep() const { return sizes_of(request_.launch.function) != nullptr; }

pk_gate_work KernelCommand::work(uint32_t name) {
  const pk_launch &launch = request_.launch;
  const Slices slices = slices_of(launch);
  request_.variant = slices.function;
  return {.stream = launch.stream,
          .size = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2],
          .name = name,
          .device = t_state.device,
          .grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
          .kind = PK_WORK_KERNEL,
          .wave = slices.wave};
}

pk_command KernelCommand::as_command() {
  // Both begin with the launch, so that both are issued, and want parts, alike.
  static_assert(offsetof(Kept, launch) == 0 && offsetof(KernelCommand::Request, launch) == 0);
  return {.self = &request_,
          .issue = [](void *self) { return g_raw_driver->launch(static_cast<const pk_launch *>(self)); },
          .keep = keep,
          .drop = [](void *kept) { delete static_cast<Kept *>(kept); },
          .issue_part = issue_part,
          .want_parts = want_parts};
}

}  // namespace pk
