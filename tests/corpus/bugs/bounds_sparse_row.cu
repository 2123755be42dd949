// Sparse matrix times vector: the row's end counts as part of the row, which only the last row cannot get away with.
extern "C" __global__ void spmv(const int* starts, const int* columns, const float* values, const float* x, float* y,
                                int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int end = starts[row + 1];
#ifndef FIXED
    end = end + 1;
#endif
    float sum = 0.0f;
    for (int k = starts[row]; k < end; ++k) {
        int column = columns[k];  // BUG
        sum += values[k] * x[column];
    }
    y[row] = sum;
}
