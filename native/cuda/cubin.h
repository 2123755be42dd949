// cubin.h: is this buffer a whole CUBIN? The driver takes no length and would read past a truncated one.
#pragma once
#include <cstdint>

namespace pk::cuda {

// Null when the image is a 64-bit ELF file for CUDA whose tables and sections all lie inside `bytes`; else what is
// wrong.
const char *cubin_fault(const void *image, uint64_t bytes);

}  // namespace pk::cuda
