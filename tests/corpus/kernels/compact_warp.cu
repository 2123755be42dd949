// compact_warp.cu: positive elements kept: each warp ballots, reserves room by one atomic addition, and writes in
// order.
__global__ void compact_warp(const float *in, float *out, int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x % 32;
  float value = i < n ? in[i] : 0.0f;
  bool keep = value > 0.0f;
  unsigned kept = __ballot_sync(0xffffffffu, keep);
  int base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(kept));
  base = __shfl_sync(0xffffffffu, base, 0);
  if (keep) out[base + __popc(kept & ((1u << lane) - 1u))] = value;
}
