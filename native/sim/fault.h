// fault.h: signals that kernels cause, and the one that ends an endless kernel.
#pragma once

#include <pthread.h>

namespace pygpukit::sim {

// For every thread that may run kernels: an own signal stack, and no signals but those below.
void PrepareThreadForFaults();
// Makes sure that the handlers are in place. Cheap when they are; a handler found there is called for other threads.
void InstallFaultHandlers();
// Interrupts whatever kernel runs on the thread.
void InterruptThread(pthread_t thread);

}  // namespace pygpukit::sim
