// tridiagonal.cu: many tridiagonal systems by Thomas's elimination, one thread a system, interleaved in memory.
__global__ void tridiagonal(const double *low, const double *middle, const double *high, const double *right,
                            double *factors, double *x, int systems, int size) {
  int system = blockIdx.x * blockDim.x + threadIdx.x;
  if (system >= systems) return;
  double factor = high[system] / middle[system];
  double value = right[system] / middle[system];
  factors[system] = factor;
  x[system] = value;
  for (int k = 1; k < size; ++k) {
    int at = k * systems + system;
    double pivot = middle[at] - low[at] * factor;
    factor = high[at] / pivot;
    value = (right[at] - low[at] * value) / pivot;
    factors[at] = factor;
    x[at] = value;
  }
  for (int k = size - 2; k >= 0; --k) {
    int at = k * systems + system;
    value = x[at] - factors[at] * value;
    x[at] = value;
  }
}
