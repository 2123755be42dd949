// Resampling with 16.16 fixed-point positions: from position 32768 on they do not fit an int.
extern "C" __global__ void resample(const short* in, short* out, int n, int step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef FIXED
    long long position = (long long)i * step;
#else
    int position = i * step;
#endif
    out[i] = in[position >> 16];  // BUG
}
