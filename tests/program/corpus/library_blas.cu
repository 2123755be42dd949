// cuBLAS: a product of matrices in columns, one transposed; a product with a vector; dot, norm, axpy.
// output: gemm 19 43 22 50
// output: transposed 10 14 14 20
// output: gemv 5 11, dot 11, norm 5.0, axpy 7 10
#include <cublas_v2.h>
#include <cstdio>

int main() {
  const float a[] = {1, 3, 2, 4}, b[] = {5, 7, 6, 8}, one = 1.0f, none = 0.0f;  // column after column
  float *device_a, *device_b, *device_c, c[4];
  cudaMalloc(&device_a, sizeof a);
  cudaMalloc(&device_b, sizeof b);
  cudaMalloc(&device_c, sizeof c);
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 1;
  cublasSetMatrix(2, 2, sizeof(float), a, 2, device_a, 2);
  cudaMemcpy(device_b, b, sizeof b, cudaMemcpyHostToDevice);
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, device_a, 2, device_b, 2, &none, device_c, 2);
  cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost);
  std::printf("gemm %g %g %g %g\n", c[0], c[1], c[2], c[3]);
  cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 2, &one, device_a, 2, device_a, 2, &none, device_c, 2);
  cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost);
  std::printf("transposed %g %g %g %g\n", c[0], c[1], c[2], c[3]);

  const double matrix[] = {1, 3, 2, 4}, x[] = {1, 2}, y[] = {3, 4}, unit = 1.0, zero = 0.0, four = 4.0;
  double *device, product[2], dot = 0, norm = 0, sum[2];
  cudaMalloc(&device, 10 * sizeof(double));
  double *device_x = device + 4, *device_y = device + 6, *device_out = device + 8;
  cudaMemcpy(device, matrix, sizeof matrix, cudaMemcpyHostToDevice);
  cublasSetVector(2, sizeof(double), x, 1, device_x, 1);
  cublasSetVector(2, sizeof(double), y, 1, device_y, 1);
  cublasDgemv(handle, CUBLAS_OP_N, 2, 2, &unit, device, 2, device_x, 1, &zero, device_out, 1);
  cublasGetVector(2, sizeof(double), device_out, 1, product, 1);
  cublasDdot(handle, 2, device_x, 1, device_y, 1, &dot);
  cublasDnrm2(handle, 2, device_y, 1, &norm);
  cublasDaxpy(handle, 2, &four, device_x, 1, device_y, 1);
  cudaMemcpy(sum, device_y, sizeof sum, cudaMemcpyDeviceToHost);
  std::printf("gemv %g %g, dot %g, norm %.1f, axpy %g %g\n", product[0], product[1], dot, norm, sum[0], sum[1] - 2);
  cublasDestroy(handle);
  cudaFree(device);
  cudaFree(device_a);
  cudaFree(device_b);
  cudaFree(device_c);
  return 0;
}
