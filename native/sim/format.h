// format.h: printf as kernels have it: CUDA's conversions, and the number of arguments as the result.
#pragma once

#include <cstdarg>
#include <string>

namespace pygpukit::sim {

// Appends the formatted text to `out`, at most `max_bytes` bytes of it, and returns how many arguments the format
// takes. A conversion that CUDA does not have stands in the text as it is.
int FormatPrinted(const char *format, va_list arguments, size_t max_bytes, std::string *out);

}  // namespace pygpukit::sim
