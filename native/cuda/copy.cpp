// copy.cpp: copies and fills in stream order. Nothing is asked of the driver for zero bytes, whose address may be
// anything.
#include <cstdio>

#include "cuda/table.h"

namespace pk::cuda {

pk_status copy_h2d(uint64_t dst, const void *src, uint64_t bytes, uint64_t stream) {
  return bytes == 0 ? PK_OK : PK_CU(cuMemcpyHtoDAsync, dst, src, bytes, stream);
}

pk_status copy_d2h(void *dst, uint64_t src, uint64_t bytes, uint64_t stream) {
  return bytes == 0 ? PK_OK : PK_CU(cuMemcpyDtoHAsync, dst, src, bytes, stream);
}

pk_status copy_d2d(uint64_t dst, uint64_t src, uint64_t bytes, uint64_t stream) {
  return bytes == 0 ? PK_OK : PK_CU(cuMemcpyDtoDAsync, dst, src, bytes, stream);
}

pk_status fill(uint64_t dst, uint32_t pattern, uint32_t width_bytes, uint64_t count, uint64_t stream) {
  if (count == 0) return PK_OK;
  switch (width_bytes) {
    case 1:
      return PK_CU(cuMemsetD8Async, dst, static_cast<uint8_t>(pattern), count, stream);
    case 2:
      return PK_CU(cuMemsetD16Async, dst, static_cast<uint16_t>(pattern), count, stream);
    case 4:
      return PK_CU(cuMemsetD32Async, dst, pattern, count, stream);
    default: {
      char detail[64];
      std::snprintf(detail, sizeof(detail), "width_bytes is %u, not 1, 2 or 4", width_bytes);
      return fail(PK_ERROR_INVALID_VALUE, "fill", detail);
    }
  }
}

}  // namespace pk::cuda
