// kernels_vnni.cpp: the kernels for processors with AVX-512 and its products of bytes (VNNI).
#define PK_KERNELS "avx512vnni"
namespace pk::host {
namespace {
constexpr int kTileRows = 4, kTileColumns = 3;
}  // namespace
}  // namespace pk::host
#include "host/kernels_body.h"

namespace pk::host {
const Kernels &kernels_vnni() { return kKernels; }
}  // namespace pk::host
