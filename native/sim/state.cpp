// state.cpp: the devices of the process, and the one that each thread made current.
#include "sim/state.h"

#include <pthread.h>

namespace pygpukit::sim {

State *state = nullptr;

namespace {

volatile bool forked = false;
thread_local int current_device = -1;

}  // namespace

bool MakeState(const Config &config, const char *link, const char *peers, std::string *why) {
  auto fresh = std::make_unique<State>();
  fresh->config = config;
  if (!fresh->links.Parse(link, peers, config.devices, why)) return false;
  for (int i = 0; i < config.devices; ++i) fresh->devices.push_back(new Device(i, config));
  state = fresh.release();
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  return true;
}

bool State::HoldsHost(uint64_t address, uint64_t bytes) {
  std::lock_guard guard(host_mutex);
  const auto after = host_blocks.upper_bound(address);
  if (after == host_blocks.begin()) return false;
  const auto &[start, size] = *std::prev(after);
  return address - start <= size && bytes <= size - (address - start);
}

pk_status CheckProcess() {
  if (!forked) return PK_OK;
  return Fail(
      PK_ERROR_NOT_INITIALIZED,
      "this process was forked after the simulated device was opened, and has none of its threads: start processes "
      "with the \"spawn\" method");
}

void MakeCurrent(int device) { current_device = device; }

Device *Current(pk_status *status) {
  if ((*status = CheckProcess())) return nullptr;
  if (current_device < 0) {
    *status = Fail(PK_ERROR_NOT_INITIALIZED, "no device is current on this thread: device_use() comes first");
    return nullptr;
  }
  return state->devices[static_cast<size_t>(current_device)];
}

Place Find(uint64_t handle) {
  Place place;
  place.device = Current(&place.status);
  if (!place.device) return place;
  if (handle == 0) {
    place.stream = place.device->default_stream;
  } else if (auto owned = state->streams.Find(handle)) {
    place.device = owned->device;
    place.stream = owned->stream;
  } else {
    place.status =
        Fail(PK_ERROR_INVALID_HANDLE, Format("0x%llx is no stream", static_cast<unsigned long long>(handle)));
  }
  return place;
}
Place FindWorking(uint64_t handle) {
  Place place = Find(handle);
  if (place.status == PK_OK) place.status = place.device->Fault();
  return place;
}

Place FindFree(uint64_t handle) {
  Place place = FindWorking(handle);
  if (place.status == PK_OK && place.stream->Captured())
    place.status = Fail(PK_ERROR_CAPTURE_UNSUPPORTED, "the stream is captured: it takes launches only");
  return place;
}

}  // namespace pygpukit::sim
