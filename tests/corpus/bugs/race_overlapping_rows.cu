// Each block writes its rows and, by a wrong row count, the first row of the next block.
#define ROWS 4

extern "C" __global__ void fill_rows(int* out, int width, int height)
{
#ifdef FIXED
    int end = ROWS;
#else
    int end = ROWS + 1;
#endif
    for (int r = 0; r < end; ++r) {
        int row = blockIdx.x * ROWS + r;
        if (row < height && threadIdx.x < width) out[row * width + threadIdx.x] = blockIdx.x;  // BUG
    }
}
