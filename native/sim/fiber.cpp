// fiber.cpp: the context switch and the stacks.
#include "sim/fiber.h"

#include <sys/mman.h>

#include <cstdlib>

namespace pygpukit::sim {

#ifdef PK_SIM_UCONTEXT

static int Switch(Context *from, Context *to) { return swapcontext(&from->saved, &to->saved); }

[[noreturn]] static void Jump(Context *to) {
  setcontext(&to->saved);
  abort();
}

static void Make(Context *context, char *stack, size_t bytes, void (*entry)(void *), void *argument) {
  getcontext(&context->saved);
  context->saved.uc_stack.ss_sp = stack;
  context->saved.uc_stack.ss_size = bytes;
  context->saved.uc_link = nullptr;
  // makecontext() passes ints: the two pointers travel in halves.
  const auto start = [](unsigned entry_high, unsigned entry_low, unsigned high, unsigned low) {
    const auto whole = [](unsigned a, unsigned b) { return static_cast<uintptr_t>((uint64_t{a} << 32) | b); };
    reinterpret_cast<void (*)(void *)>(whole(entry_high, entry_low))(reinterpret_cast<void *>(whole(high, low)));
  };
  const uint64_t code = reinterpret_cast<uintptr_t>(entry), data = reinterpret_cast<uintptr_t>(argument);
  void (*const plain)(unsigned, unsigned, unsigned, unsigned) = start;
  makecontext(&context->saved, reinterpret_cast<void (*)()>(plain), 4, static_cast<unsigned>(code >> 32),
              static_cast<unsigned>(code), static_cast<unsigned>(data >> 32), static_cast<unsigned>(data));
}

#else

// Saves what the x86-64 calling convention asks a function to keep, and goes on where the other stack was left. The
// floating-point control words are not saved: kernels do not change them.
extern "C" int pk_sim_switch(void **save, void *load);
extern "C" [[noreturn]] void pk_sim_jump(void *load);
extern "C" void pk_sim_first_entry();
asm(R"(
.text
.globl pk_sim_switch
.hidden pk_sim_switch
.type pk_sim_switch, @function
pk_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  xorl %eax, %eax
  ret
.size pk_sim_switch, .-pk_sim_switch
.globl pk_sim_jump
.hidden pk_sim_jump
.type pk_sim_jump, @function
pk_sim_jump:
  movq %rdi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size pk_sim_jump, .-pk_sim_jump
.globl pk_sim_first_entry
.hidden pk_sim_first_entry
.type pk_sim_first_entry, @function
pk_sim_first_entry:
  movq %rbx, %rdi
  xorl %ebp, %ebp
  call *%r12
  ud2
.size pk_sim_first_entry, .-pk_sim_first_entry
)");

static int Switch(Context *from, Context *to) { return pk_sim_switch(&from->stack_pointer, to->stack_pointer); }
[[noreturn]] static void Jump(Context *to) { pk_sim_jump(to->stack_pointer); }

static void Make(Context *context, char *stack, size_t bytes, void (*entry)(void *), void *argument) {
  void **top = reinterpret_cast<void **>(reinterpret_cast<uintptr_t>(stack + bytes) & ~uintptr_t{15});
  *--top = nullptr;
  *--top = nullptr;  // a return address for whoever walks the stack
  *--top = reinterpret_cast<void *>(&pk_sim_first_entry);
  *--top = nullptr;                              // rbp
  *--top = argument;                             // rbx
  *--top = reinterpret_cast<void *>(entry);      // r12
  for (int i = 0; i < 3; ++i) *--top = nullptr;  // r13, r14, r15
  context->stack_pointer = top;
}

#endif

int SwitchContext(Context *from, Context *to) {
  KnownStack::Leave(&from->known, &to->known);
  const int zero = Switch(from, to);
  from->known.Arrive();
  return zero;
}

void JumpContext(Context *to) {
  KnownStack::Leave(nullptr, &to->known);
  Jump(to);
}

void MakeContext(Context *context, char *stack, size_t bytes, void (*entry)(void *), void *argument) {
  context->known.New(stack, bytes);
#if defined(PK_SIM_ADDRESS_SANITIZER) || defined(PK_SIM_THREAD_SANITIZER)
  context->entry = entry;
  context->argument = argument;
  entry = [](void *self) {
    Context *arrived = static_cast<Context *>(self);
    arrived->known.Arrive();
    arrived->entry(arrived->argument);
  };
  argument = context;
#endif
  Make(context, stack, bytes, entry, argument);
}

char *NewStack(bool guarded) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#ifdef MAP_STACK
  flags |= MAP_STACK;
#endif
  void *start = mmap(nullptr, kMappedStackBytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (start == MAP_FAILED) return nullptr;
#ifdef MADV_NOHUGEPAGE
  // Huge pages would make every touched stack cost 2 MiB.
  madvise(start, kMappedStackBytes, MADV_NOHUGEPAGE);
#endif
  if (guarded) {
    mprotect(start, kGuardBytes, PROT_NONE);
    mprotect(static_cast<char *>(start) + kGuardBytes + kStackBytes, kGuardAboveBytes, PROT_NONE);
  }
  return static_cast<char *>(start);
}

void DeleteStack(char *stack) {
  KnownStack::Clear(stack, kMappedStackBytes);
  munmap(stack, kMappedStackBytes);
}

}  // namespace pygpukit::sim
