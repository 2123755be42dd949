// host_access.cpp: the handler of faults of the host text.
#include "program/host_access.h"

#include <dlfcn.h>
#include <ucontext.h>
#include <unwind.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "program/allocations.h"
#include "program/report.h"
#include "sim/elf.h"
#include "sim/lines.h"

namespace pk::program {
namespace {

struct sigaction g_before;

// True where the access was a write; where nobody says, it is called an access.
enum class Access { kRead, kWrite, kUnknown };
Access access_of(const void *context) {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long long kWriteBit = 2;
  const auto *machine = static_cast<const ucontext_t *>(context);
  return (machine->uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0 ? Access::kWrite : Access::kRead;
#else
  (void)context;
  return Access::kUnknown;
#endif
}

// "a.cu:12" of an address in a library that was compiled with its lines; or "".
std::string line_of(uintptr_t address) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(address), &info) == 0 || info.dli_fname == nullptr) return "";
  std::ifstream file(info.dli_fname, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  pygpukit::sim::ElfFile elf;
  if (!elf.Parse(bytes)) return "";
  return pygpukit::sim::SourceLine(elf, address - reinterpret_cast<uintptr_t>(info.dli_fbase));
}

// The innermost of the frames whose library has lines: the program's.
_Unwind_Reason_Code visit(_Unwind_Context *frame, void *result) {
  int interrupted = 0;  // else a return address, which may already belong to the next line
  const uintptr_t address = _Unwind_GetIPInfo(frame, &interrupted);
  auto &line = *static_cast<std::string *>(result);
  line = line_of(address - !interrupted);
  return line.empty() ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void end_as_before(int signal) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
}

// The process ends here, so that nothing is lost by what a handler should not do.
void tell(const Allocation &allocation, uint64_t address, const void *context) {
  std::string line;
  _Unwind_Backtrace(visit, &line);
  static std::string file;  // a place points into it
  Place place;
  if (const size_t colon = line.rfind(':'); colon != std::string::npos) {
    file = line.substr(0, colon);
    place = {file.c_str(), std::atoi(line.c_str() + colon + 1)};
  }
  const Access access = access_of(context);
  tell_finding("host access to device memory",
               std::string(access == Access::kWrite  ? "the host writes to"
                           : access == Access::kRead ? "the host reads"
                                                     : "the host touches") +
                   " device memory, " + describe_address(address) +
                   (allocation.kind == Kind::kDevice ? ": copy with cudaMemcpy(), or take cudaMallocManaged()" : ""),
               place);
}

void handle(int signal, siginfo_t *info, void *context) {
  const uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
  if (const Allocation *closed = info->si_code > 0 ? find_closed(address) : nullptr) {
    end_as_before(signal);  // a fault in what follows ends the process, too
    tell(*closed, address, context);
    return;  // the access is repeated, and ends the process
  }
  if ((g_before.sa_flags & SA_SIGINFO) != 0) {
    g_before.sa_sigaction(signal, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(signal);
  } else {
    end_as_before(signal);
  }
}

}  // namespace

void watch_host_access() {
  struct sigaction ours = {};
  ours.sa_sigaction = handle;
  // As the simulator's: a handler behind this one may leave by switching stacks.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, &g_before);
}

}  // namespace pk::program
