// The transpose of a picture that is wider than high, with row and column of the source swapped.
extern "C" __global__ void transpose(const float* in, float* out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
#ifdef FIXED
    float value = in[y * width + x];
#else
    float value = in[x * width + y];  // BUG
#endif
    out[x * height + y] = value;
}
