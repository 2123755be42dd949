// Binary search whose range stops shrinking at two elements.
extern "C" __global__ void rank(const int* sorted, const int* keys, int* ranks, int n, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int low = 0, high = n;
    while (low < high) {                 // BUG
        int middle = (low + high) / 2;   // BUG
#ifdef FIXED
        if (sorted[middle] < keys[i]) low = middle + 1;
#else
        if (sorted[middle] < keys[i]) low = middle;  // BUG
#endif
        else high = middle;              // BUG
    }
    ranks[i] = low;
}
