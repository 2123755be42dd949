// kernels.cpp: which kernels this processor takes. PYGPUKIT_HOST_KERNELS names others, for tests.
#include "host/kernels.h"

#include <cstdlib>
#include <cstring>

namespace pk::host {

const Kernels &kernels_plain();
#if defined(PK_X86_KERNELS)
const Kernels &kernels_v3();
const Kernels &kernels_v4();
const Kernels &kernels_vnni();
#endif

static const Kernels &chosen() {
  const char *said = std::getenv("PYGPUKIT_HOST_KERNELS");
  const auto allowed = [said](const char *name) { return said == nullptr || std::strcmp(said, name) == 0; };
#if defined(PK_X86_KERNELS)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                  __builtin_cpu_supports("f16c");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  if (v4 && __builtin_cpu_supports("avx512vnni") && allowed("avx512vnni")) return kernels_vnni();
  if (v4 && allowed("avx512")) return kernels_v4();
  if (v3 && allowed("avx2")) return kernels_v3();
#endif
  (void)allowed;
  return kernels_plain();
}

const Kernels &kernels() {
  static const Kernels &table = chosen();
  return table;
}

const Format &format_of(Kind kind) {
  static const Format formats[] = {{"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},    {"Q4_0", 32, 18},
                                   {"Q4_1", 32, 20},   {"Q5_0", 32, 22},   {"Q5_1", 32, 24},  {"Q8_0", 32, 34},
                                   {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210}};
  return formats[static_cast<int>(kind)];
}

}  // namespace pk::host
