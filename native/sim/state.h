// state.h: what lives as long as the process, and how the calls of the driver table find what they act on.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/config.h"
#include "sim/device.h"
#include "sim/handles.h"
#include "sim/links.h"
#include "sim/module.h"
#include "sim/registry.h"
#include "sim/status.h"
#include "sim/stream.h"
#include "sim/textures.h"

namespace pygpukit::sim {

struct OwnedStream {
  Device *device;
  std::shared_ptr<Stream> stream;
};

struct SmPartition {
  Device *device;
  std::shared_ptr<SmSet> set;
};

// Never destroyed: work may be under way when the process exits.
struct State {
  Config config;
  Links links;
  std::vector<Device *> devices;
  Handles<OwnedStream> streams{1};
  Handles<Event> events{2};
  Handles<Module> modules{3};
  Handles<Function> functions{4};
  Handles<Graph> graphs{5};
  Handles<SmPartition> partitions{6};
  std::mutex host_mutex;
  std::map<uint64_t, uint64_t> host_blocks;  // bytes of pinned memory of the host, by address
  bool HoldsHost(uint64_t address, uint64_t bytes);
  Handles<ArrayHandle> arrays{7};
  Registry<Texture> textures{8};
  Registry<Surface> surfaces{9};
};
extern State *state;  // null until the device is opened

// Opens the devices. False and a sentence where the links are not understood.
bool MakeState(const Config &config, const char *link, const char *peers, std::string *why);

// An error in a process that was forked after that: it has none of the threads.
pk_status CheckProcess();
void MakeCurrent(int device);
// The calling thread's device. Null: the status tells why.
Device *Current(pk_status *status);

// The stream of a handle, and its device.
struct Place {
  pk_status status = PK_OK;
  Device *device = nullptr;
  std::shared_ptr<Stream> stream;
};
Place Find(uint64_t handle);
Place FindWorking(uint64_t handle);  // a fault of the device is an error, too
Place FindFree(uint64_t handle);     // and a stream that is captured

// A stream of its own; set: null for all multiprocessors.
pk_status MakeStream(Device &device, int32_t priority, std::shared_ptr<SmSet> set, uint64_t *stream);

template <class T>
std::shared_ptr<T> FindObject(Handles<T> &handles, uint64_t handle, const char *what, pk_status *status) {
  if (!Current(status)) return nullptr;
  auto object = handles.Find(handle);
  if (!object)
    *status = Fail(PK_ERROR_INVALID_HANDLE, Format("0x%llx is no %s", static_cast<unsigned long long>(handle), what));
  return object;
}

// Calls method(device) with the calling thread's device.
template <class Method>
pk_status OnDevice(Method method) {
  pk_status status;
  Device *device = Current(&status);
  return device ? method(*device) : status;
}

}  // namespace pygpukit::sim
