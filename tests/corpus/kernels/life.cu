// life.cu: one generation of the game of life on a torus.
__global__ void life(const unsigned char *now, unsigned char *next, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int alive = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      int column = (x + dx + width) % width;
      int row = (y + dy + height) % height;
      if (dx != 0 || dy != 0) alive += now[row * width + column];
    }
  }
  int self = now[y * width + x];
  next[y * width + x] = alive == 3 || (alive == 2 && self == 1);
}
