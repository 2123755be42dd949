// status_codes.cu: the runtime's types and names in device code, without a header.
struct Status {
  cudaError_t code;
  cudaStream_t stream;
};

__global__ void status_codes(const float *in, int *codes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Status status = {cudaSuccess, NULL};
  if (!(in[i] >= 0.0f)) status.code = cudaErrorInvalidValue;
  if (in[i] > 1.0f) status.code = cudaErrorIllegalAddress;
  if (status.stream == NULL) codes[i] = status.code + cudaMemcpyDeviceToHost;
}
