// output.h: what kernels print, until Python takes it.
#pragma once

#include <cstdint>
#include <string_view>

namespace pygpukit::sim {

void AppendOutput(std::string_view text);
// See pk_sim_take_output().
uint64_t TakeOutput(char *buffer, uint64_t capacity);

}  // namespace pygpukit::sim
