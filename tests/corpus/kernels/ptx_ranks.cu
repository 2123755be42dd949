// ptx_ranks.cu: for each number, which one of its equals in the warp it is, and how many these are.
extern "C" __global__ void ptx_ranks(const int *in, int2 *out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned equals, below;
  asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(equals) : "r"(in[i]));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  int2 result;
  asm("{ .reg .b32 before;\n  and.b32 before, %2, %3;\n  popc.b32 %0, before;\n  popc.b32 %1, %2; }"
      : "=&r"(result.x), "=r"(result.y)
      : "r"(equals), "r"(below));
  out[i] = result;
}
