// pk_sim_copy.h: what asynchronous copies come down to: each of the calling threads copies a part, at once.
#pragma once
#pragma GCC system_header

PK_SIM_INLINE void pk_sim_copy(void *to, const void *from, size_t bytes, size_t rank, size_t threads) {
  size_t words = 0;
  if (((size_t)to | (size_t)from) % 4 == 0) {
    words = bytes / 4;
    for (size_t i = rank; i < words; i += threads) ((unsigned *)to)[i] = ((const unsigned *)from)[i];
  }
  for (size_t i = words * 4 + rank; i < bytes; i += threads) ((char *)to)[i] = ((const char *)from)[i];
}
