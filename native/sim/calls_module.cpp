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
  const auto held = FindObject(state->modules, module, "module", &status);
  if (!held) return status;
  state->functions.RemoveIf([&](const Function &function) { return function.module == held; });
  state->modules.Remove(module);  // launches under way keep it
  return PK_OK;
}

pk_status ModuleFunction(uint64_t module, const char *name, uint64_t *function) {
  pk_status status;
  const auto held = FindObject(state->modules, module, "module", &status);
  if (!held) return status;
  std::shared_ptr<Function> created;
  status = held->FindFunction(name, &created);
  if (status == PK_OK) *function = state->functions.Add(std::move(created));
  return status;
}

pk_status ModuleGlobal(uint64_t module, const char *name, uint64_t *address, uint64_t *bytes) {
  pk_status status;
  const auto held = FindObject(state->modules, module, "module", &status);
  return held ? held->FindGlobal(name, address, bytes) : status;
}

pk_status FunctionInfo(uint64_t function, pk_function_info *info) {
  pk_status status;
  const auto held = FindObject(state->functions, function, "function", &status);
  return held ? held->Info(info) : status;
}

pk_status FunctionParam(uint64_t function, uint32_t index, uint64_t *offset, uint64_t *bytes) {
  pk_status status;
  const auto held = FindObject(state->functions, function, "function", &status);
  return held ? held->Parameter(index, offset, bytes) : status;
}

pk_status FunctionSetDynamicShared(uint64_t function, uint32_t bytes) {
  pk_status status;
  const auto held = FindObject(state->functions, function, "function", &status);
  return held ? held->SetDynamicShared(bytes) : status;
}

pk_status FunctionOccupancy(uint64_t function, uint32_t block_threads, uint32_t shared_bytes, int32_t *blocks) {
  pk_status status;
  const auto held = FindObject(state->functions, function, "function", &status);
  return held ? held->Occupancy(block_threads, shared_bytes, blocks) : status;
}

pk_status PtxAssemble(const void *, uint64_t, void (*)(void *, const void *, uint64_t), void *) {
  return Fail(PK_ERROR_NOT_SUPPORTED, "ptx_assemble: the simulated device has no PTX; it runs what its compiler makes");
}

// ---- launches

static void Enqueue(const std::shared_ptr<Stream> &stream, const std::shared_ptr<Launch> &launch) {
  Count(PK_SIM_LAUNCHES);
  stream->Enqueue([launch] { launch->Run(); });
}

pk_status LaunchKernel(const pk_launch *request) {
  const Place place = FindWorking(request->stream);
  if (place.status) return place.status;
  pk_status status;
  const auto function = FindObject(state->functions, request->function, "function", &status);
  if (!function) return status;
  std::shared_ptr<Launch> launch;
  status = Launch::Make(place.device, *place.stream, function, *request, &launch);
  if (status || place.stream->Keep(launch)) return status;
  Enqueue(place.stream, launch);
  return PK_OK;
}

pk_status LaunchHost(uint64_t stream, void (*fn)(void *), void *arg) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  Count(PK_SIM_HOST_LAUNCHES);
  place.stream->Enqueue([device = place.device, fn, arg] {
    if (!device->Faulted()) fn(arg);
  });
  return PK_OK;
}

// ---- graphs

pk_status CaptureBegin(uint64_t stream) {
  const Place place = FindWorking(stream);
  if (place.status) return place.status;
  if (stream == 0) return Fail(PK_ERROR_CAPTURE_UNSUPPORTED, "the default stream cannot be captured");
  if (place.stream->BeginCapture()) return PK_OK;
  return Fail(PK_ERROR_CAPTURE_UNSUPPORTED, "the stream is captured already");
}

pk_status CaptureEnd(uint64_t stream, uint64_t *graph) {
  const Place place = Find(stream);
  if (place.status) return place.status;
  auto captured = place.stream->EndCapture();
  if (!captured) return Fail(PK_ERROR_INVALID_VALUE, "the stream is not captured");
  *graph = state->graphs.Add(std::move(captured));
  return PK_OK;
}

pk_status GraphLaunch(uint64_t graph, uint64_t stream) {
  const Place place = FindFree(stream);
  if (place.status) return place.status;
  pk_status status;
  const auto held = FindObject(state->graphs, graph, "graph", &status);
  if (!held) return status;
  std::vector<std::shared_ptr<Launch>> launches;  // all of them or none
  for (const auto &kept : held->launches) {
    if ((status = kept->Again(*place.stream, &launches.emplace_back()))) return status;
  }
  for (const auto &launch : launches) Enqueue(place.stream, launch);
  return PK_OK;
}

pk_status GraphDestroy(uint64_t graph) {
  pk_status status;
  if (!FindObject(state->graphs, graph, "graph", &status)) return status;
  state->graphs.Remove(graph);
  return PK_OK;
}

}  // namespace pygpukit::sim
