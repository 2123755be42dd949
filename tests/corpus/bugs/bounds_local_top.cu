// The four largest of each row: making room in the list pushes the last one out of the array.
#define TOP 4

extern "C" __global__ void largest(const int* in, int* out, int width)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int best[TOP];
    for (int k = 0; k < TOP; ++k) best[k] = -1;
    for (int i = 0; i < width; ++i) {
        int value = in[row * width + i], at = 0;
        while (at < TOP && best[at] >= value) ++at;
        if (at == TOP) continue;
#ifdef FIXED
        for (int k = TOP - 1; k > at; --k) best[k] = best[k - 1];
#else
        for (int k = TOP; k > at; --k) best[k] = best[k - 1];  // BUG
#endif
        best[at] = value;
    }
    for (int k = 0; k < TOP; ++k) out[row * TOP + k] = best[k];
}
