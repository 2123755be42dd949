// fiber.h: stacks that a thread switches between by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/known_stack.h"

#if !defined(__x86_64__) || defined(PK_SIM_PORTABLE_FIBERS)
#define PK_SIM_UCONTEXT 1
#include <ucontext.h>
#endif

namespace pygpukit::sim {

// Where a stack was left. Switching costs about 2 ns with the x86-64 code; elsewhere ucontext does it, at about 200 ns.
struct Context {
#ifdef PK_SIM_UCONTEXT
  ucontext_t saved;
#else
  void *stack_pointer;
#endif
  [[no_unique_address]] KnownStack known;
#if defined(PK_SIM_ADDRESS_SANITIZER) || defined(PK_SIM_THREAD_SANITIZER)
  void (*entry)(void *);  // what the first switch calls once the sanitizer knows of it
  void *argument;
#endif
};

// Returns 0, when `from` is switched to: a function that ends with it needs no stack of its own.
int SwitchContext(Context *from, Context *to);
// Leaves the running stack for good.
[[noreturn]] void JumpContext(Context *to);
// The next switch to the context calls entry(argument) on the stack, whose end is stack + bytes. It must never return.
void MakeContext(Context *context, char *stack, size_t bytes, void (*entry)(void *), void *argument);

constexpr size_t kStackBytes = 256 << 10;  // only touched pages cost memory
constexpr size_t kGuardBytes = 68 << 10;
constexpr size_t kGuardAboveBytes = 8 << 10;
constexpr size_t kMappedStackBytes = kGuardBytes + kStackBytes + kGuardAboveBytes;

// kGuardBytes, inaccessible when guarded, a stack of kStackBytes above them, and kGuardAboveBytes, inaccessible too,
// for loops that run past the end of a local array; null when the system refuses. Together an odd number of pages, so
// that the tops of many stacks do not compete for the same places in caches of translations.
char *NewStack(bool guarded);
void DeleteStack(char *stack);

}  // namespace pygpukit::sim
