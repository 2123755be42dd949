// ptx_scan.cu: running sums of each warp: a lane adds what another one has as long as there is one so far below.
extern "C" __global__ void ptx_scan(const int *in, int *out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = in[i];
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2)
    asm volatile("{ .reg .s32 other;\n"
                 "  .reg .pred there;\n"
                 "  shfl.sync.up.b32 other|there, %0, %1, 0x0, 0xffffffff;\n"
                 "  @there add.s32 %0, %0, other; }"
                 : "+r"(sum)
                 : "r"(apart));
  out[i] = sum;
}
