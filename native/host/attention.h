// attention.h: rows of queries, keys and values into their places, and what rows of a step see of the cache.
#pragma once
#include "host/linear.h"

namespace pk::host {

// qkv: rows of `width` elements, heads of queries first, then those of keys and of values, where place() finds them. k,
// v: (slots, kv_heads, size, dim): a sequence lies in `blocks` of them, whose numbers are in slots, (rows, blocks).
// cos, sin: (positions, half) or null: the first 2 half elements of a head are rotated.
struct Attention {
  float *qkv;
  const int32_t *positions, *slots;
  float *k, *v;
  const float *cos, *sin;
  Norm q_norm, k_norm;
  float *out;  // (rows, heads dim)
  int64_t rows, width, heads, kv_heads, dim, half, size, slot_count, blocks, table_rows;
  int64_t window;      // 0: all keys are seen
  int64_t chunk;       // keys are seen from the last multiple of this on; 0: all
  float scale;         // that scores are multiplied by
  float cap;           // c of the soft cap c * tanh(score / c); 0: none
  const float *sinks;  // of each head of queries a score without a value, or null

  // False where a position or a slot is none of the cache; nothing was done then.
  bool sound() const;
  // Turns queries (in place) and keys by their positions, and puts keys and values into the cache.
  void place() const;
  // out of rows whose keys are in the cache, those of prompts and of steps alike: a row sees what is up to its
  // position.
  void step() const;
};

}  // namespace pk::host
