// calls_module.cpp: calls of the driver table about modules and launches.
#include "sim/calls.h"
#include "sim/counters.h"
#include "sim/launch.h"
#include "sim/state.h"

namespace pygpukit::sim {

pk_status ModuleLoad(const void *image, uint64_t bytes, uint64_t *module) {
  return OnDevice([&](Device &device) {
    std::shared_ptr<Module> loaded;
    const pk_status status = Module::Load(image, bytes, &device.memory, &loaded);
    if (status == PK_OK) *module = state->modules.Add(std::move(loaded));
    return status;
  });
}

pk_status ModuleUnload(uint64_t module) {
  pk_status status;
  const auto found = FindObject(state->modules, module, "module", &status);
  if (!found) return status;
  state->functions.RemoveIf([&](const Function &function) { return function.module == found; });
  state->modules.Remove(module);  // launches under way keep it
  return PK_OK;
}

pk_status ModuleFunction(uint64_t module, const char *name, uint64_t *function) {
  pk_status status;
  const auto found = FindObject(state->modules, module, "module", &status);
  if (!found) return status;
  std::shared_ptr<Function> made;
  status = found->FindFunction(name, &made);
  if (status == PK_OK) *function = state->functions.Add(std::move(made));
  return status;
}

pk_status ModuleGlobal(uint64_t module, const char *name, uint64_t *address, uint64_t *bytes) {
  pk_status status;
  const auto found = FindObject(state->modules, module, "module", &status);
  return found ? found->FindGlobal(name, address, bytes) : status;
}

pk_status FunctionInfo(uint64_t function, pk_function_info *info) {
  pk_status status;
  const auto found = FindObject(state->functions, function, "function", &status);
  return found ? found->Info(info) : status;
}

pk_status FunctionParam(uint64_t function, uint32_t index, uint64_t *offset, uint64_t *bytes) {
  pk_status status;
  const auto found = FindObject(state->functions, function, "function", &status);
  return found ? found->Parameter(index, offset, bytes) : status;
}

pk_status FunctionSetDynamicShared(uint64_t function, uint32_t bytes) {
  pk_status status;
  const auto found = FindObject(state->functions, function, "function", &status);
  return found ? found->SetDynamicShared(bytes) : status;
}

pk_status FunctionOccupancy(uint64_t function, uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks) {
  pk_status status;
  const auto found = FindObject(state->functions, function, "function", &status);
  return found ? found->Occupancy(block_threads, shared_bytes, blocks) : status;
}

// ---- launches

pk_status LaunchKernel(const pk_launch *request) {
  const Place place = FindWorking(request->stream);
  if (place.status) return place.status;
  pk_status status;
  const auto function = FindObject(state->functions, request->function, "function", &status);
  if (!function) return status;
  std::shared_ptr<Launch> launch;
  status = Launch::Make(place.device, function, *request, &launch);
  if (status) return status;
  Count(PK_SIM_LAUNCHES);
  place.stream->Enqueue([launch, priority = place.stream->priority] { launch->Run(priority); });
  return PK_OK;
}

pk_status LaunchHost(uint64_t stream, void (*fn)(void *), void *arg) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  Count(PK_SIM_HOST_LAUNCHES);
  place.stream->Enqueue([device = place.device, fn, arg] {
    if (!device->Faulted()) fn(arg);
  });
  return PK_OK;
}

}  // namespace pygpukit::sim
