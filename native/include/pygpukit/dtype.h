/* dtype.h: element type codes, shared by C++ and Python (core/dtypes.py keeps the same order; a test compares them). */
#ifndef PYGPUKIT_DTYPE_H
#define PYGPUKIT_DTYPE_H

enum {
  PK_BOOL = 0,
  PK_INT8 = 1,
  PK_INT16 = 2,
  PK_INT32 = 3,
  PK_INT64 = 4,
  PK_UINT8 = 5,
  PK_UINT16 = 6,
  PK_UINT32 = 7,
  PK_UINT64 = 8,
  PK_FLOAT16 = 9,
  PK_BFLOAT16 = 10,
  PK_FLOAT32 = 11,
  PK_FLOAT64 = 12,
  PK_COMPLEX64 = 13,
  PK_COMPLEX128 = 14,
  PK_FLOAT8_E4M3 = 15,
  PK_FLOAT8_E5M2 = 16,
  PK_INT4 = 17,        /* storage: one value a byte */
  PK_FLOAT4_E2M1 = 18, /* storage: one value a byte */
  PK_DTYPE_COUNT = 19
};

static inline int pk_dtype_bytes(int code) {
  static const unsigned char bytes[PK_DTYPE_COUNT] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1, 1, 1};
  return code >= 0 && code < PK_DTYPE_COUNT ? bytes[code] : 0;
}

#endif
