// wait.h: waits that release the GIL and stay interruptible (Ctrl-C within 20 ms).
#pragma once
#include <Python.h>

#include <cstdint>
#include <functional>

#include "launch/runtime.h"

namespace pk {

// Polls done() (PK_ERROR_NOT_READY = go on) without the GIL. Returns false with a Python exception set when a signal
// handler raised or the poll reported a fault. Call with the GIL held.
bool wait_until(const std::function<pk_status()> &done, const char *doing);

// What kernels of the simulated device printed so far goes to where Python shows it: every wait ends so. An exception
// that is set stays.
void show_output();
bool wait_stream(uint64_t stream, const char *doing);
// What was queued on a stream before this time (the ring's clock) is known to be done: when the last successful wait
// for it began. 0 = never waited. With the GIL held.
void note_waited(uint64_t stream, uint64_t begin_ns);
uint64_t waited_ns(uint64_t stream);
void forget_waited(uint64_t stream);

bool wait_event(uint64_t event, const char *doing);

}  // namespace pk
