// ptx_compact.cu: each warp moves what is positive of its numbers to the front, in order, and counts it.
extern "C" __global__ void ptx_compact(const int *in, int *out, int *counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, first = i - i % 32;
  const int value = in[i];
  unsigned positive, below, place, count;
  asm volatile("{ .reg .pred p;\n"
               "  setp.gt.s32 p, %1, 0;\n"
               "  vote.sync.ballot.b32 %0, p, 0xffffffff; }"
               : "=r"(positive)
               : "r"(value));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  asm("{ .reg .b32 mine;\n  and.b32 mine, %1, %2;\n  popc.b32 %0, mine; }" : "=r"(place) : "r"(positive), "r"(below));
  asm("popc.b32 %0, %1;" : "=r"(count) : "r"(positive));
  if (value > 0) out[first + place] = value;
  counts[i] = count;
}
