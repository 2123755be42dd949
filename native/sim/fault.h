// fault.h: signals that kernels cause, and the one that ends an endless kernel.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace pygpukit::sim {

class Module;

// For every thread that may run kernels: an own signal stack, and no signals but those below.
void PrepareThreadForFaults();
// Makes sure that the handlers are in place. Cheap when they are; a handler found there is called for other threads.
void InstallFaultHandlers();
// In a signal handler: where the interrupted stack is in code of the module, innermost first, each an address within
// the instruction or the call. Returns how many of the places it filled.
size_t PlacesIn(const Module &module, uintptr_t *places, size_t count);
// Interrupts whatever kernel runs on the thread.
void InterruptThread(pthread_t thread);

}  // namespace pygpukit::sim
