// fault.cpp: signal handlers that act only while this thread runs a kernel, and pass everything else on.
#include "sim/fault.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

#include <csignal>
#include <mutex>

#include "sim/core.h"
#include "sim/division.h"
#include "sim/module.h"

namespace pygpukit::sim {
namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
// Ignored by default, so that a late one does no harm.
constexpr int kInterrupt = SIGURG;
constexpr size_t kSignalStackBytes = 64 << 10;

struct sigaction previous[NSIG];
volatile sig_atomic_t passing_on[NSIG];

uintptr_t ProgramCounter(void *context) {
#if defined(__linux__) && defined(__x86_64__)
  return static_cast<uintptr_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__linux__) && defined(__aarch64__)
  return static_cast<uintptr_t>(static_cast<ucontext_t *>(context)->uc_mcontext.pc);
#else
  (void)context;
  return 0;
#endif
}

struct Search {
  const Module *module;
  uintptr_t *places;
  size_t count, filled;
};

_Unwind_Reason_Code Visit(_Unwind_Context *frame, void *data) {
  Search *search = static_cast<Search *>(data);
  int interrupted = 0;  // else a return address, which may already belong to the next line
  const uintptr_t address = _Unwind_GetIPInfo(frame, &interrupted) - !interrupted;
  if (search->module->Contains(address)) search->places[search->filled++] = address;
  return search->filled < search->count ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// The faulting instruction is repeated, and ends the process as it would have without us.
void GiveUp(int signal, const siginfo_t *info) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  if (info->si_code <= 0) raise(signal);
}

void PassOn(int signal, siginfo_t *info, void *context) {
  const struct sigaction &before = previous[signal];
  const bool plain = !(before.sa_flags & SA_SIGINFO);
  if (plain && (before.sa_handler == SIG_IGN || (before.sa_handler == SIG_DFL && signal == kInterrupt))) return;
  // A handler that was put in place after ours may itself pass on to us: once is enough.
  if (passing_on[signal] || (plain && before.sa_handler == SIG_DFL)) {
    GiveUp(signal, info);
    return;
  }
  passing_on[signal] = 1;
  plain ? before.sa_handler(signal) : before.sa_sigaction(signal, info, context);
  passing_on[signal] = 0;
}

void Handle(int signal, siginfo_t *info, void *context) {
  Core *core = Core::Current();
  if (core && core->Interruptible(signal)) {
    if (signal == SIGFPE && FinishDivision(context)) return;
#ifdef PK_SIM_THREAD_SANITIZER
    // It blocks all signals while a handler runs, whatever the flags say, and this one does not return.
    pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t *>(context)->uc_sigmask, nullptr);
#endif
    core->Interrupted(signal, ProgramCounter(context), reinterpret_cast<uintptr_t>(info->si_addr));
  }
  if (core && signal == kInterrupt) return;  // comes again
  PassOn(signal, info, context);
}

void Install(int signal) {
  struct sigaction now = {};
  sigaction(signal, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == Handle) return;
  struct sigaction ours = {};
  ours.sa_sigaction = Handle;
  // No signal is blocked meanwhile: the handler may leave by switching stacks, and the mask must be right then.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  previous[signal] = now;
  sigaction(signal, &ours, nullptr);
}

}  // namespace

void PrepareThreadForFaults() {
  void *memory = mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = kSignalStackBytes;
    sigaltstack(&stack, nullptr);
  }
  sigset_t blocked;
  sigfillset(&blocked);
  for (int signal : kFaults) sigdelset(&blocked, signal);
  sigdelset(&blocked, kInterrupt);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

void InstallFaultHandlers() {
  static std::mutex &mutex = *new std::mutex;
  std::lock_guard guard(mutex);
  for (int signal : kFaults) Install(signal);
  Install(kInterrupt);
}

// The call frame tables say exactly where each function keeps its return address; what else lies on a stack may be left
// over from earlier calls.
size_t PlacesIn(const Module &module, uintptr_t *places, size_t count) {
  Search search = {&module, places, count, 0};
  _Unwind_Backtrace(Visit, &search);
  return search.filled;
}

void InterruptThread(pthread_t thread) { pthread_kill(thread, kInterrupt); }

}  // namespace pygpukit::sim
