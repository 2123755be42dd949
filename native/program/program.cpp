// program.cpp: the beginning and the end of a program.
#include "program/program.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "program/allocations.h"
#include "program/host_access.h"
#include "program/report.h"
#include "program/streams.h"
#include "program/symbols.h"
#include "program/times.h"
#include "sim/sim.h"

namespace pk::program {

namespace {

std::atomic<bool> g_running{false};

// However the program ends.
#ifdef __GLIBC__
void at_exit(int exit_code, void *) { finish(exit_code); }
void finish_at_exit() { on_exit(at_exit, nullptr); }
#else
void at_exit() { finish(0); }  // how is not known
void finish_at_exit() { std::atexit(at_exit); }
#endif

// A device shows what kernels print when somebody waits.
void tell_unshown_output() {
  if (!state().simulated || pk_sim_take_output(nullptr, 0) == 0) return;
  tell_finding("output never shown",
               "kernels have printed what nobody waited for: call cudaDeviceSynchronize() before the program ends", {});
}

}  // namespace

std::string start(const std::string &backend, int report_descriptor, uint32_t times) {
  open_report(report_descriptor);
  keep_times(times);
  std::string why = open(backend);
  if (!why.empty()) return why;
  if (state().simulated) watch_host_access();
  g_running = true;
  finish_at_exit();
  return "";
}

void finish(int exit_code) {
  if (!g_running.exchange(false)) return;
  const std::lock_guard guard(state().mutex);
  std::fflush(stdout);
  if (exit_code != 0) note_looked();
  tell_unshown_output();
  bool faulted = false;
  for (const DeviceState &device : state().devices) faulted |= device.fault != cudaSuccess;
  if (!faulted) tell_leaks();
  settle_times();
  close_report();
  tell_times();
}

uint64_t calls() { return reinterpret_cast<uint64_t>(&table()); }

void give_image(const std::string &unit, const std::string &image) { add_image(unit, image); }

void give_symbol(const std::string &library, uint64_t offset, int kind, const std::string &name,
                 const std::string &unit, uint64_t bytes, const std::string &file, int line) {
  add_symbol(library, offset, {static_cast<SymbolKind>(kind), name, unit, bytes, {file.c_str(), line}, {}});
}

}  // namespace pk::program
