// Where each row begins, from the rows' lengths: "not greater" where "less" was meant.
extern "C" __global__ void row_offsets(const int* lengths, int* offsets, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
    if (row >= rows) return;
#else
    if (row > rows) return;
#endif
    int sum = 0;
    for (int k = 0; k < row; ++k) sum += lengths[k];
    offsets[row] = sum;  // BUG
}
