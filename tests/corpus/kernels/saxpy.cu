// saxpy.cu: y += factor * x by a grid-stride loop, so that any grid covers any size.
__global__ void saxpy(const float *x, float *y, float factor, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    y[i] = factor * x[i] + y[i];
  }
}
