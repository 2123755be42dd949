// A filter with one tap more in the loop than in the table.
#define TAPS 5
__constant__ float taps[TAPS] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};

#ifdef FIXED
#define LAST (TAPS - 1)
#else
#define LAST TAPS
#endif

extern "C" __global__ void filter(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k <= LAST; ++k) {
        float weight = taps[k];  // BUG
        sum += weight * in[i + k];
    }
    out[i] = sum;
}
