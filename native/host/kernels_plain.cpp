// kernels_plain.cpp: the kernels for every processor.
#define PK_KERNELS "plain"
namespace pk::host {
namespace {
constexpr int kTileRows = 1, kTileColumns = 1;
}  // namespace
}  // namespace pk::host
#include "host/kernels_body.h"

namespace pk::host {
const Kernels &kernels_plain() { return kKernels; }
}  // namespace pk::host
