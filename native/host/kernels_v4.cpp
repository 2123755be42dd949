// kernels_v4.cpp: the kernels for processors with AVX-512.
#define PK_KERNELS "avx512"
namespace pk::host {
namespace {
constexpr int kTileRows = 4, kTileColumns = 3;
}  // namespace
}  // namespace pk::host
#include "host/kernels_body.h"

namespace pk::host {
const Kernels &kernels_v4() { return kKernels; }
}  // namespace pk::host
