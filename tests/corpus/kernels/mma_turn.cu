// mma_turn.cu: tiles of 16-bit words turned: read by ldmatrix as they are, turned in registers by movmatrix.

__device__ unsigned read_tile(const unsigned short *row) {
  unsigned to;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(to)
               : "r"((unsigned)__cvta_generic_to_shared(row))
               : "memory");
  return to;
}
__device__ unsigned turned(unsigned pair) {
  unsigned to;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(pair));
  return to;
}

__global__ void mma_turn(const unsigned short *in, unsigned *out, int width, int height) {
  __shared__ __align__(16) unsigned short tile[8][8];
  const int lane = threadIdx.x, x = blockIdx.x * 8, y = blockIdx.y * 8;
  for (int i = lane; i < 64; i += 32) {
    const bool inside = x + i % 8 < width && y + i / 8 < height;
    tile[i / 8][i % 8] = inside ? in[(y + i / 8) * width + x + i % 8] : 0;
  }
  __syncwarp();
  const unsigned pair = turned(read_tile(tile[lane % 8]));
  if (x + lane / 4 < width && y + lane % 4 * 2 < height) out[((x + lane / 4) * height + y) / 2 + lane % 4] = pair;
}
