// The mean of a pixel's three by three neighbourhood, also taken where part of it lies outside the picture.
extern "C" __global__ void box_blur(const float* in, float* out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
#ifdef FIXED
            int row = min(max(y + dy, 0), height - 1), column = min(max(x + dx, 0), width - 1);
#else
            int row = y + dy, column = x + dx;
#endif
            sum += in[row * width + column];  // BUG
        }
    out[y * width + x] = sum / 9.0f;
}
