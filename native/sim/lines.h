// lines.h: from an address in a kernel image to a line of the user's source.
#pragma once

#include <cstdint>
#include <string>

#include "sim/elf.h"

namespace pygpukit::sim {

// "In[5]:12" for an address relative to where the image is loaded, or "". Rows that belong to the simulator's own
// headers, which are inlined everywhere, are passed over: the nearest row of the user's before them answers, in the
// same function or, for an endless loop of which nothing else is left there, anywhere.
std::string SourceLine(const ElfFile &file, uint64_t address, bool same_function = true);

}  // namespace pygpukit::sim
