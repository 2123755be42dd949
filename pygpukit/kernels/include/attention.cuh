// attention.cuh: where the arrays of attention lie, and what changes its scores.
#pragma once
#include "numeric.cuh"

namespace pk {

struct AttentionPlace {
  long long start;
  long long step[4];  // of batch, head, position and dimension, in elements; of a mask the last two: query and key
};

struct AttentionExtras {
  long long ahead, behind;  // keys after and before its own place that a query sees
  long long has_mask, has_sinks;
  AttentionPlace mask;
  double scale;  // of scores, times log2(e); with a cap: divided by the cap instead
  double cap;    // times log2(e); none when 0
};

constexpr float kLog2E = 1.44269504088896340736f;

// A score, times `scale` already, as the power of two that is its weight. mask: of the batch element and head.
__device__ __forceinline__ float adjusted(const AttentionExtras &more, float score, const float *mask, long long query,
                                          long long key) {
  if (more.cap != 0) score = static_cast<float>(more.cap) * tanhf(score);
  if (more.has_mask) score += mask[query * more.mask.step[2] + key * more.mask.step[3]] * kLog2E;
  return score;
}

}  // namespace pk
