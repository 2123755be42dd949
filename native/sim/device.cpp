// device.cpp: the properties of a simulated device, and its streams and fault.
#include "sim/device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "sim/counters.h"
#include "sim/module.h"
#include "sim/status.h"

namespace pygpukit::sim {

Device::Device(int index, const Config &config)
    : memory(config.memory_bytes),
      cores(config.workers, config.sms),
      default_stream(std::make_shared<Stream>(0)),
      index_(index),
      config_(config) {
  streams_.push_back(default_stream);
}

// Limits are those of compute capability 9.0, so that what is refused here is refused there; clocks and widths are
// nominal and mean nothing for speed.
void Device::Info(pk_device_info *info) const {
  *info = {};
  snprintf(info->name, sizeof info->name, "pygpukit simulated GPU");
  info->total_memory_bytes = config_.memory_bytes;
  memcpy(info->uuid, "pygpukit-sim-", 13);
  info->uuid[15] = static_cast<uint8_t>(index_);
  info->compute_major = 9;
  info->multiprocessor_count = config_.sms;
  info->warp_size = 32;
  info->max_threads_per_block = kMaxThreads;
  info->max_threads_per_multiprocessor = 2048;
  info->max_block[0] = info->max_block[1] = 1024;
  info->max_block[2] = 64;
  info->max_grid[0] = 0x7fffffff;
  info->max_grid[1] = info->max_grid[2] = 65535;
  info->max_shared_per_block_bytes = kSharedBytes;
  info->max_shared_per_block_optin_bytes = kSharedOptinBytes;
  info->max_shared_per_multiprocessor_bytes = kSharedOptinBytes + (1 << 10);
  info->registers_per_multiprocessor = 65536;
  info->l2_bytes = 32 << 20;
  info->clock_khz = 1000000;
  info->memory_clock_khz = 1000000;
  info->memory_bus_bits = 64;
}

uint64_t Device::CopyNanoseconds(uint64_t bytes) const {
  return config_.copy_gbps > 0 ? static_cast<uint64_t>(static_cast<double>(bytes) / config_.copy_gbps) : 0;
}

std::shared_ptr<Stream> Device::NewStream(int priority, std::shared_ptr<SmSet> set) {
  auto stream = std::make_shared<Stream>(priority, std::move(set));
  std::lock_guard guard(mutex_);
  streams_.erase(std::remove_if(streams_.begin(), streams_.end(), [](const auto &known) { return known.expired(); }),
                 streams_.end());
  streams_.push_back(stream);
  return stream;
}

std::vector<std::shared_ptr<Stream>> Device::LiveStreams() {
  std::lock_guard guard(mutex_);
  std::vector<std::shared_ptr<Stream>> live;
  for (const auto &known : streams_)
    if (auto stream = known.lock()) live.push_back(std::move(stream));
  return live;
}

void Device::WaitIdle() {
  for (const auto &stream : LiveStreams()) stream->Wait();
}

bool Device::Idle() {
  const auto streams = LiveStreams();
  return std::all_of(streams.begin(), streams.end(), [](const auto &stream) { return stream->Idle(); });
}

pk_status Device::Fault() {
  if (!Faulted()) return PK_OK;
  std::lock_guard guard(mutex_);
  return Fail(fault_, fault_text_);
}

void Device::SetFault(pk_status status, const std::string &text, Finding finding) {
  std::lock_guard guard(mutex_);
  if (fault_ != PK_OK) return;
  Count(PK_SIM_FAULTS);
  fault_text_ = text;
  finding_ = std::move(finding);
  fault_ = status;
}

Finding Device::FaultFinding() {
  if (!Faulted()) return {};
  std::lock_guard guard(mutex_);
  return finding_;
}

pk_status Device::ClearFault() {
  WaitIdle();
  std::lock_guard guard(mutex_);
  halted_ = false;
  return fault_.exchange(PK_OK);
}

}  // namespace pygpukit::sim
