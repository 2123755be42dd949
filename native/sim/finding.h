// finding.h: what is known of a failure of a kernel, field by field.
#pragma once

#include <cstdint>
#include <string>

#include "sim/include/pk_sim_abi.h"

namespace pygpukit::sim {

struct Finding {
  std::string kind;     // "race", "out of bounds", ...: see pygpukit.core.errors.Finding
  std::string message;  // without kernel, block and thread
  std::string kernel;
  pk_sim_dim block = {}, thread = {};
  int line = 0;        // as the user counts, 0 = unknown
  std::string place;   // "file:line", where the file may be one that the unit includes; "" = line of the unit
  std::string array;   // parameter or variable, "" = none
  int64_t index = -1;  // element, meaningful when has_index
  bool has_index = false;
};

}  // namespace pygpukit::sim
