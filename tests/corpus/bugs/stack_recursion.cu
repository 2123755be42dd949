// The greatest common divisor by repeated subtraction, which never ends for a divisor of zero.
__device__ int divisor(int a, int b, int* trace)
{
    int kept[16];
    kept[a & 15] = b;
#ifdef FIXED
    if (b == 0) return a;
    return divisor(b, a % b, trace) + (kept[a & 15] - b);
#else
    if (a == b) return a;
    int found = a < b ? divisor(b, a, trace) : divisor(a - b, b, trace);  // BUG
    *trace += kept[a & 15] - b;
    return found;
#endif
}

extern "C" __global__ void divisors(const int* a, const int* b, int* out, int* trace, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = divisor(a[i], b[i], trace + i);
}
