// refused.h: what an image may not have: code that runs when it is loaded, and functions that no device has.
#pragma once

#include <string>
#include <vector>

#include "sim/elf.h"

namespace pygpukit::sim {

// Functions that the image takes from the process and may not: a kernel's C library is a list.
std::vector<std::string> RefusedFunctions(const ElfFile &file);
// Why the image may not be loaded; empty when it may.
std::string RefusedCode(const ElfFile &file);

}  // namespace pygpukit::sim
