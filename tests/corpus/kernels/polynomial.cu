// polynomial.cu: Horner's rule in double precision over a table in constant memory.
__constant__ double coefficients[6] = {1.0, -0.5, 0.25, 3.0, -2.0, 0.125};

__global__ void polynomial(const double *x, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double sum = 0.0;
    for (int k = 5; k >= 0; --k) sum = sum * x[i] + coefficients[k];
    out[i] = sum;
  }
}
