// How many keys fall into each slot of a hash table: the product wraps, and the remainder of a negative is negative.
extern "C" __global__ void count_slots(const int* keys, int* counts, int n, int slots)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef FIXED
    int slot = (unsigned)(keys[i] * 40503) % (unsigned)slots;
#else
    int slot = keys[i] * 40503 % slots;
#endif
    atomicAdd(&counts[slot], 1);  // BUG
}
