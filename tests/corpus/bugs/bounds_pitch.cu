// Rows that are padded to a pitch: the pitch in bytes is used as one in elements.
extern "C" __global__ void invert(const float* in, float* out, int width, int height, int pitch_bytes)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
#ifdef FIXED
    const float* row = reinterpret_cast<const float*>(reinterpret_cast<const char*>(in) + y * pitch_bytes);
#else
    const float* row = in + y * pitch_bytes;
#endif
    float value = row[x];  // BUG
    out[y * width + x] = 1.0f - value;
}
