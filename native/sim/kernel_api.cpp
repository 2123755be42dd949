// kernel_api.cpp: the functions that kernel images call, as the table they are bound to.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "sim/check.h"
#include "sim/core.h"
#include "sim/output.h"
#include "sim/status.h"

namespace pygpukit::sim {
namespace {

// While it lives, an interrupt of the running kernel waits: locks of the C library may be held.
class InRuntime {
 public:
  explicit InRuntime(void *core) : core_(static_cast<Core *>(core)) { core_->in_runtime = 1; }
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
  InRuntime scope(core);
  char text[4096];
  const int length = vsnprintf(text, sizeof text, format, arguments);
  if (length > 0)
    AppendOutput({text, static_cast<size_t>(length) < sizeof text ? static_cast<size_t>(length) : sizeof text - 1});
  return length;
}

void OnFail(void *core, pk_sim_failure kind, const char *what, const char *function, const char *file, int line) {
  Core *self = static_cast<Core *>(core);
  if (kind == PK_SIM_FAIL_ASSERT)
    self->Abort(PK_ERROR_ASSERT, "assert", Format("%s:%d: %s: Assertion `%s` failed.", file, line, function, what),
                line);
  self->Abort(PK_ERROR_LAUNCH_FAILED, "assert", Format("%s at %s:%d", what, file, line), line);
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
    if (checker && checker->HeapFreed(block)) return nullptr;  // kept until the launch ends: who goes there is told
    free(block);
    return nullptr;
  }
  void *made = malloc(bytes);
  if (checker && made) checker->HeapTaken(made, bytes);
  return made;
}

void *OnMapShared(void *core, const void *address, unsigned rank) {
  return static_cast<Core *>(core)->MapShared(address, rank);
}

unsigned OnSharedRank(void *core, const void *address) { return static_cast<Core *>(core)->SharedRank(address); }

unsigned OnMultiprocessor(void *core) { return static_cast<Core *>(core)->sm; }

}  // namespace

const pk_sim_api &KernelApi() {
  static const pk_sim_api api = {
      PK_SIM_ABI, sizeof(pk_sim_api), OnBarrier, OnWarp,      OnYield,      OnPrint,
      OnFail,     OnNanoseconds,      OnHeap,    OnMapShared, OnSharedRank, OnMultiprocessor};
  return api;
}

}  // namespace pygpukit::sim
