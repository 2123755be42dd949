// pk_sim_ptx_warp.h: shuffles and votes of inline PTX that are not one function of CUDA C++.
#pragma once
#pragma GCC system_header

// mode: up, down, bfly, idx. limits: the clamp, and from bit 8 on the mask of segments. inside: whether the source lane
// is within them; a lane whose source is not gets its own value.
PK_SIM_INLINE unsigned pk_ptx_shuffle(int mode, unsigned value, unsigned b, unsigned limits, unsigned mask,
                                      bool &inside, PK_SIM_HERE) {
  const unsigned lane = pk_ptx_lane(), segment = limits >> 8 & 31u, clamp = limits & 31u;
  const unsigned first = lane & segment, last = first | (clamp & ~segment);
  b &= 31u;
  const int source = mode == 0   ? (int)lane - (int)b
                     : mode == 1 ? (int)(lane + b)
                     : mode == 2 ? (int)(lane ^ b)
                                 : (int)(first | (b & ~segment));
  inside = mode == 0 ? source >= (int)last : source <= (int)last;
  return __shfl_sync(mask, value, inside ? source : (int)lane, 32, pk_sim_file, pk_sim_line);
}
// Whether all lanes of the mask said the same as this one.
PK_SIM_INLINE bool pk_ptx_same(unsigned mask, unsigned said, bool own) {
  return own ? (said & mask) == mask : said == 0;
}
