// kernels_v3.cpp: the kernels for processors with AVX2, FMA and F16C.
#define PK_KERNELS "avx2"
namespace pk::host {
namespace {
constexpr int kTileRows = 2, kTileColumns = 1;
}  // namespace
}  // namespace pk::host
#include "host/kernels_body.h"

namespace pk::host {
const Kernels &kernels_v3() { return kKernels; }
}  // namespace pk::host
