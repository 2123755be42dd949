// status.h: statuses with a sentence, kept per thread as driver.h asks for.
#pragma once

#include <string>

#include "pygpukit/driver.h"

namespace pygpukit::sim {

// Remembers the sentence on this thread and returns the status.
pk_status Fail(pk_status status, std::string text);
// printf for std::string.
[[gnu::format(printf, 1, 2)]] std::string Format(const char *format, ...);

const char *ErrorName(pk_status status);
const char *ErrorText(pk_status status);

}  // namespace pygpukit::sim
