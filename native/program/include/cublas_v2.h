// cublas_v2.h: the functions of cuBLAS that this package's operations cover: products, sums and norms of float and
// double. Matrices lie column after column.
#pragma once
#include "pk_program_library.h"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
typedef struct cublasContext {
  cudaStream_t stream;
  cublasPointerMode_t mode;
} * cublasHandle_t;

inline cublasStatus_t cublasCreate(cublasHandle_t *handle) {
  *handle = new cublasContext();
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
// Scalars are read, and results written, wherever their address is.
inline cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
inline const char *cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "success"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed to the function"
                                                 : "the function failed";
}

inline cublasStatus_t cublasSetVector(int count, int element_bytes, const void *from, int from_step, void *to,
                                      int to_step, pk_place at = pk_place()) {
  const size_t size = static_cast<size_t>(element_bytes);
  return cudaMemcpy2D(to, to_step * size, from, from_step * size, size, static_cast<size_t>(count),
                      cudaMemcpyHostToDevice, at) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_MAPPING_ERROR;
}
inline cublasStatus_t cublasGetVector(int count, int element_bytes, const void *from, int from_step, void *to,
                                      int to_step, pk_place at = pk_place()) {
  const size_t size = static_cast<size_t>(element_bytes);
  return cudaMemcpy2D(to, to_step * size, from, from_step * size, size, static_cast<size_t>(count),
                      cudaMemcpyDeviceToHost, at) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_MAPPING_ERROR;
}
inline cublasStatus_t cublasSetMatrix(int rows, int columns, int element_bytes, const void *from, int from_leading,
                                      void *to, int to_leading, pk_place at = pk_place()) {
  const size_t size = static_cast<size_t>(element_bytes);
  return cudaMemcpy2D(to, to_leading * size, from, from_leading * size, rows * size, static_cast<size_t>(columns),
                      cudaMemcpyHostToDevice, at) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_MAPPING_ERROR;
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int element_bytes, const void *from, int from_leading,
                                      void *to, int to_leading, pk_place at = pk_place()) {
  const size_t size = static_cast<size_t>(element_bytes);
  return cudaMemcpy2D(to, to_leading * size, from, from_leading * size, rows * size, static_cast<size_t>(columns),
                      cudaMemcpyDeviceToHost, at) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_MAPPING_ERROR;
}

namespace pk_program {

// From the first element to the last one of a matrix whose columns begin this far apart, or of a vector.
inline size_t span(long long length, long long count, long long leading) {
  return count > 0 && length > 0 ? static_cast<size_t>((count - 1) * leading + length) : 0;
}
template <class T>
T scalar(const T *place, const pk_place &at) {
  T value = T();
  cudaMemcpy(&value, place, sizeof value, cudaMemcpyDefault, at);
  return value;
}
inline cublasStatus_t blas_status(bool done) { return done ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED; }

template <class T>
cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t a_is, cublasOperation_t b_is, int m, int n, int k,
                    const T *alpha, const T *a, int a_leading, const T *b, int b_leading, const T *beta, T *c,
                    int c_leading, const pk_place &at) {
  const bool a_turned = a_is != CUBLAS_OP_N, b_turned = b_is != CUBLAS_OP_N;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || k < 0 || a_leading < (a_turned ? k : m) || b_leading < (b_turned ? n : k) || c_leading < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  cudaStreamSynchronize(handle->stream, at);
  Operand<T> left(a, a_turned ? span(k, m, a_leading) : span(m, k, a_leading), at);
  Operand<T> right(b, b_turned ? span(n, k, b_leading) : span(k, n, b_leading), at);
  Operand<T> sum(c, span(m, n, c_leading), at);
  left.fetch();
  right.fetch();
  sum.fetch();
  if (left.failed() || right.failed() || sum.failed()) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool done = library("gemm", {left.memory(), right.memory(), sum.memory()},
                            {sizeof(T), a_turned, b_turned, m, n, k, a_leading, b_leading, c_leading},
                            {static_cast<double>(scalar(alpha, at)), static_cast<double>(scalar(beta, at))}, at);
  sum.send();
  return blas_status(done && !sum.failed());
}

template <class T>
cublasStatus_t gemv(cublasHandle_t handle, cublasOperation_t a_is, int m, int n, const T *alpha, const T *a,
                    int leading, const T *x, int x_step, const T *beta, T *y, int y_step, const pk_place &at) {
  const bool turned = a_is != CUBLAS_OP_N;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || leading < m || x_step <= 0 || y_step <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  cudaStreamSynchronize(handle->stream, at);
  Operand<T> matrix(a, span(m, n, leading), at), from(x, span(1, turned ? m : n, x_step), at),
      to(y, span(1, turned ? n : m, y_step), at);
  matrix.fetch();
  from.fetch();
  to.fetch();
  if (matrix.failed() || from.failed() || to.failed()) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool done =
      library("gemv", {matrix.memory(), from.memory(), to.memory()}, {sizeof(T), turned, m, n, leading, x_step, y_step},
              {static_cast<double>(scalar(alpha, at)), static_cast<double>(scalar(beta, at))}, at);
  to.send();
  return blas_status(done && !to.failed());
}

// A number from one vector, or from two.
template <class T>
cublasStatus_t reduce(const char *function, cublasHandle_t handle, int n, const T *x, int x_step, const T *y,
                      int y_step, T *result, const pk_place &at) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n < 0 || x_step <= 0 || y_step <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  cudaStreamSynchronize(handle->stream, at);
  Operand<T> first(x, span(1, n, x_step), at), second(y, span(1, n, y_step), at), out(result, 1, at);
  if (n > 0) {
    first.fetch();
    second.fetch();
    if (first.failed() || second.failed()) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!library(function, {first.memory(), second.memory(), out.memory()}, {sizeof(T), n, x_step, y_step}, {}, at))
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  out.send();
  return blas_status(!out.failed());
}

template <class T>
cublasStatus_t axpy(cublasHandle_t handle, int n, const T *alpha, const T *x, int x_step, T *y, int y_step,
                    const pk_place &at) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (x_step <= 0 || y_step <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  cudaStreamSynchronize(handle->stream, at);
  Operand<T> from(x, span(1, n, x_step), at), to(y, span(1, n, y_step), at);
  from.fetch();
  to.fetch();
  if (from.failed() || to.failed()) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool done = library("axpy", {from.memory(), to.memory()}, {sizeof(T), n, x_step, y_step},
                            {static_cast<double>(scalar(alpha, at))}, at);
  to.send();
  return blas_status(done && !to.failed());
}

}  // namespace pk_program

#define PK_BLAS(L, T)                                                                                                  \
  inline cublasStatus_t cublas##L##gemm(cublasHandle_t handle, cublasOperation_t a_is, cublasOperation_t b_is, int m,  \
                                        int n, int k, const T *alpha, const T *a, int a_leading, const T *b,           \
                                        int b_leading, const T *beta, T *c, int c_leading, pk_place at = pk_place()) { \
    return pk_program::gemm(handle, a_is, b_is, m, n, k, alpha, a, a_leading, b, b_leading, beta, c, c_leading, at);   \
  }                                                                                                                    \
  inline cublasStatus_t cublas##L##gemv(cublasHandle_t handle, cublasOperation_t a_is, int m, int n, const T *alpha,   \
                                        const T *a, int leading, const T *x, int x_step, const T *beta, T *y,          \
                                        int y_step, pk_place at = pk_place()) {                                        \
    return pk_program::gemv(handle, a_is, m, n, alpha, a, leading, x, x_step, beta, y, y_step, at);                    \
  }                                                                                                                    \
  inline cublasStatus_t cublas##L##dot(cublasHandle_t handle, int n, const T *x, int x_step, const T *y, int y_step,   \
                                       T *result, pk_place at = pk_place()) {                                          \
    return pk_program::reduce("dot", handle, n, x, x_step, y, y_step, result, at);                                     \
  }                                                                                                                    \
  inline cublasStatus_t cublas##L##nrm2(cublasHandle_t handle, int n, const T *x, int x_step, T *result,               \
                                        pk_place at = pk_place()) {                                                    \
    return pk_program::reduce("nrm2", handle, n, x, x_step, x, x_step, result, at);                                    \
  }                                                                                                                    \
  inline cublasStatus_t cublas##L##axpy(cublasHandle_t handle, int n, const T *alpha, const T *x, int x_step, T *y,    \
                                        int y_step, pk_place at = pk_place()) {                                        \
    return pk_program::axpy(handle, n, alpha, x, x_step, y, y_step, at);                                               \
  }
PK_BLAS(S, float)
PK_BLAS(D, double)
#undef PK_BLAS
