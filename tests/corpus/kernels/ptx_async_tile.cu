// ptx_async_tile.cu: tiles that copies bring: what lies behind the end counts as zero.
extern "C" __global__ void ptx_async_tile(const float *in, float *out, int n) {
  __shared__ __align__(16) float tile[256];
  const int i = threadIdx.x, at = blockIdx.x * 256 + 4 * i, left = n - at;
  const int given = left <= 0 ? 0 : left >= 4 ? 16 : 4 * left;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(tile + 4 * i)),
               "l"(in + at), "r"(given)
               : "memory");
  asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  for (int j = i; j < 256; j += 64) out[blockIdx.x * 256 + j] = tile[255 - j];
}
