// kernel_api.cpp: the functions that kernel images call, as the table they are bound to.
#include <cstdarg>
#include <cstdlib>
#include <ctime>

#include "sim/check.h"
#include "sim/core.h"
#include "sim/format.h"
#include "sim/heap.h"
#include "sim/output.h"
#include "sim/status.h"
#include "sim/textures.h"

namespace pygpukit::sim {
namespace {

constexpr size_t kMaxPrintedBytes = 4096;  // by one call
constexpr const char *kKinds[] = {"assert",         "assert",        "integer division by zero",
                                  "stack overflow", "out of bounds", "warp matrix"};

// While it lives, an interrupt of the running kernel waits: locks of the C library may be held.
class InRuntime {
 public:
  explicit InRuntime(void *core) : core_(static_cast<Core *>(core)) {
    core_->AskForStack();
    core_->in_runtime = 1;
  }
  ~InRuntime() { core_->in_runtime = 0; }

 private:
  Core *core_;
};

int OnBarrier(const pk_sim_self *self, pk_sim_barrier_kind kind, int predicate) {
  return static_cast<Core *>(self->core)->Barrier(*self, kind, predicate);
}

pk_sim_u64 OnWarp(const pk_sim_self *self, const pk_sim_warp_call *call) {
  return static_cast<Core *>(self->core)->WarpCall(*self, *call);
}

void OnYield(const pk_sim_self *self) { static_cast<Core *>(self->core)->Yield(*self); }

int OnPrint(void *core, const char *format, va_list arguments) {
  if (!format) return -1;
  InRuntime scope(core);
  std::string text;
  const int taken = FormatPrinted(format, arguments, kMaxPrintedBytes, &text);
  AppendOutput(text);
  return taken;
}

void OnFail(void *core, pk_sim_failure kind, const char *what, const char *function, const char *file, int line) {
  Core *self = static_cast<Core *>(core);
  if (kind == PK_SIM_FAIL_ASSERT)
    self->Abort(PK_ERROR_ASSERT, "assert", Format("%s:%d: %s: Assertion `%s` failed.", file, line, function, what),
                line);
  const std::string at = *file ? Format(" at %s:%d", file, line) : "";
  self->Abort(kind == PK_SIM_FAIL_MEMORY ? PK_ERROR_ILLEGAL_ADDRESS : PK_ERROR_LAUNCH_FAILED, kKinds[kind], what + at,
              line);
}

pk_sim_u64 OnNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<pk_sim_u64>(now.tv_sec) * 1000000000u + static_cast<pk_sim_u64>(now.tv_nsec);
}

void *OnHeap(void *core, void *block, pk_sim_u64 bytes) {
  InRuntime scope(core);
  Checker *checker = static_cast<Core *>(core)->checker();
  if (block) {
    bool twice = false;  // kept until the launch ends: who goes there is told
    if (checker && checker->HeapFreed(block, &twice)) return twice ? block : nullptr;
    return HeapGive(block) ? nullptr : block;
  }
  void *memory = HeapTake(bytes);
  if (checker && memory) checker->HeapTaken(memory, bytes);
  return memory;
}

void *OnMapShared(void *core, const void *address, unsigned rank) {
  return static_cast<Core *>(core)->MapShared(address, rank);
}

unsigned OnSharedRank(void *core, const void *address) { return static_cast<Core *>(core)->SharedRank(address); }

unsigned OnMultiprocessor(void *core) { return static_cast<Core *>(core)->sm; }

void *OnScratch(void *block, pk_sim_u64 bytes) {
  if (!block) return aligned_alloc(64, bytes);
  free(block);
  return nullptr;
}

void OnTexture(void *core, const pk_sim_texture_call *call, unsigned *channels) {
  FetchTexture(*static_cast<Core *>(core), *call, channels);
}

void OnSurface(void *core, const pk_sim_surface_call *call, void *element) {
  AccessSurface(*static_cast<Core *>(core), *call, element);
}

void OnExit(const pk_sim_self *self) { static_cast<Core *>(self->core)->ExitThread(*self); }

}  // namespace

const pk_sim_api &KernelApi() {
  static const pk_sim_api api = {PK_SIM_ABI, sizeof(pk_sim_api), OnBarrier, OnWarp,      OnYield,      OnPrint,
                                 OnFail,     OnNanoseconds,      OnHeap,    OnMapShared, OnSharedRank, OnMultiprocessor,
                                 OnScratch,  OnTexture,          OnSurface, OnExit};
  return api;
}

}  // namespace pygpukit::sim
