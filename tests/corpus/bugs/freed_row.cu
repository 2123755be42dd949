// The sums of rows that a table of addresses names: a row that was given back is marked as such, but nobody looks.
extern "C" __global__ void sum_rows(const unsigned long long* rows, const int* alive, float* sums, int count, int width)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= count) return;
#ifdef FIXED
    if (!alive[row]) return;
#endif
    const float* values = reinterpret_cast<const float*>(rows[row]);
    float sum = 0.0f;
    for (int k = 0; k < width; ++k) sum += values[k];  // BUG
    sums[row] = sum;
}
