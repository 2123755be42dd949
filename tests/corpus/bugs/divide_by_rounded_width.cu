// Row and column from the width of a level of detail, which at the last level rounds down to nothing.
extern "C" __global__ void rows_of_level(int* rows, int width, int level, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef FIXED
    int width_of_level = max(width >> level, 1);
#else
    int width_of_level = width >> level;
#endif
    rows[i] = i % width_of_level;  // BUG
}
