// errors.cpp: names, explanations and remedies for the driver's error codes.
#include "cuda/errors.h"

#include <cstdio>

namespace pk::cuda {

namespace {

// A fault inside a kernel destroys the context for good: cuDevicePrimaryCtxReset succeeds, yet nothing works
// afterwards.
#define PK_CONTEXT_LOST \
  "; the CUDA context of this process is lost: start a new process (in a notebook, restart the kernel)"

struct Advice {
  Result status;
  const char *text;  // continues the driver's own description
};

constexpr Advice kAdvice[] = {
    {2, "free arrays, lower other processes' use of this device, or ask for less"},
    {3, "a process forked after CUDA was opened cannot use it: start child processes with the 'spawn' method"},
    {4, "the process is ending, no device call is possible any more"},
    {36, "this call needs a newer NVIDIA driver"},
    {46,
     "another process holds the device exclusively, or an earlier fault in this process made it unusable: wait, or "
     "start "
     "a new process"},
    {100, "check nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {101, "use an ordinal below device_count()"},
    {200, "the image is not a CUBIN that this driver can read: compile it again for this device"},
    {201, "no device is current on this thread: call device_use() first"},
    {209, "the image was compiled for another architecture: compile it again for this device's sm_XX"},
    {214, "the device's memory reported an uncorrectable error" PK_CONTEXT_LOST},
    {218, "the PTX is not valid for this device: compile it again to a CUBIN"},
    {220, "a link between devices reported an uncorrectable error" PK_CONTEXT_LOST},
    {222, "the PTX is newer than the driver: compile to a CUBIN, or update the NVIDIA driver"},
    {226, "the fault was contained to this process" PK_CONTEXT_LOST},
    {400, "the stream, event, module or function was destroyed before, or belongs to another device"},
    {500, "the module has no symbol of that name: declare it extern \"C\", or use its lowered (mangled) name"},
    {700, "a kernel read or wrote outside its arrays: check its indices against the sizes" PK_CONTEXT_LOST},
    {701,
     "registers or shared memory do not suffice for this block: use a smaller block, less shared memory, or "
     "__launch_bounds__"},
    {702, "the kernel ran longer than the display driver allows" PK_CONTEXT_LOST},
    {710, "an assert() in a kernel was false: its message is on the process's standard output" PK_CONTEXT_LOST},
    {714, "the device's stack was corrupted or overflowed" PK_CONTEXT_LOST},
    {715, "a kernel executed an instruction that this device does not have" PK_CONTEXT_LOST},
    {716, "a kernel read or wrote an address that is not a multiple of the element size" PK_CONTEXT_LOST},
    {717, "an instruction was given an address of the wrong kind (global, shared, local)" PK_CONTEXT_LOST},
    {718, "a kernel jumped outside its code, for example through a bad function pointer" PK_CONTEXT_LOST},
    {719, "a kernel failed while it ran (trap, or an invalid access to shared memory)" PK_CONTEXT_LOST},
    {720, "a cooperative grid must be resident at once: use at most occupancy() times multiprocessor_count blocks"},
    {802, "the system is not ready; on machines with NVSwitch, start the fabric manager service"},
    {803, "the kernel module and libcuda are of different versions: reboot, or reload the NVIDIA kernel module"},
    {804, "the CUDA compatibility package does not support this device: take it out of LD_LIBRARY_PATH"},
    {912, "the cluster is larger than this device can hold, or does not divide the grid"},
};

struct LastFailure {
  pk_status status = PK_OK;
  const char *call = nullptr;
  char detail[512] = "";
};

thread_local LastFailure t_last;
thread_local char t_text[1024];

const char *advice(pk_status status) {
  for (const Advice &entry : kAdvice) {
    if (entry.status == status) return entry.text;
  }
  return nullptr;
}

}  // namespace

const char *error_name(pk_status status) {
  const char *name = nullptr;
  if (g_api.cuGetErrorName == nullptr || g_api.cuGetErrorName(status, &name) != 0 || name == nullptr) {
    return "CUDA_ERROR_UNKNOWN";
  }
  return name;
}

const char *describe(pk_status status, const char *detail) {
  const char *driver = nullptr;
  if (g_api.cuGetErrorString == nullptr || g_api.cuGetErrorString(status, &driver) != 0) driver = nullptr;
  const char *more = detail != nullptr && detail[0] != '\0' ? detail : advice(status);
  std::snprintf(t_text, sizeof(t_text), "%s%s%s", driver != nullptr ? driver : "unknown CUDA error",
                more != nullptr ? ": " : "", more != nullptr ? more : "");
  return t_text;
}

pk_status fail(pk_status status, const char *call, const char *detail) {
  t_last.status = status;
  t_last.call = call;
  std::snprintf(t_last.detail, sizeof(t_last.detail), "%s", detail != nullptr ? detail : "");
  return status;
}

pk_status missing(const char *symbol) {
  char detail[160];
  std::snprintf(detail, sizeof(detail), "this driver has no %s: update the NVIDIA driver", symbol);
  return fail(PK_ERROR_NOT_SUPPORTED, symbol, detail);
}

const char *error_text(pk_status status) {
  if (t_last.status != status || t_last.call == nullptr) return describe(status, nullptr);
  char sentence[sizeof(t_text)];
  std::snprintf(sentence, sizeof(sentence), "%s failed: %s", t_last.call, describe(status, t_last.detail));
  std::snprintf(t_text, sizeof(t_text), "%s", sentence);
  return t_text;
}

}  // namespace pk::cuda
