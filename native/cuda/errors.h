// errors.h: a failed libcuda call becomes a status with this thread's one-sentence explanation.
#pragma once
#include "cuda/loader.h"
#include "pygpukit/driver.h"

namespace pk::cuda {

const char *error_name(pk_status status);
const char *error_text(pk_status status);

// Remembers what failed on this thread, for error_text(); returns `status`. call and detail may be null.
pk_status fail(pk_status status, const char *call, const char *detail);

// A function that this driver does not have.
pk_status missing(const char *symbol);

// The driver's description and the remedy, as one sentence without a full stop. Valid until the thread's next call.
const char *describe(pk_status status, const char *detail);

inline pk_status check(Result status, const char *call) {
  if (status == PK_OK || status == PK_ERROR_NOT_READY) [[likely]]
    return status;
  return fail(status, call, nullptr);
}

// Calls a libcuda function by name and checks it.
#define PK_CU(name, ...) ::pk::cuda::check(::pk::cuda::g_api.name(__VA_ARGS__), #name)

}  // namespace pk::cuda
