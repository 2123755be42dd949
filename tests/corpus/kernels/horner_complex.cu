// horner_complex.cu: a polynomial of complex numbers with its derivative, as a tuple.
#include <cuda/std/complex>
#include <cuda/std/tuple>

using Number = cuda::std::complex<float>;

__device__ cuda::std::tuple<Number, Number> horner(const float2 *coefficients, int degree, Number z) {
  Number value(0.0f, 0.0f), slope(0.0f, 0.0f);
  for (int k = 0; k <= degree; ++k) {
    slope = slope * z + value;
    value = value * z + Number(coefficients[k].x, coefficients[k].y);
  }
  return cuda::std::make_tuple(value, slope);
}

__global__ void horner_complex(const float2 *coefficients, const float2 *z, float4 *out, int degree, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  auto both = horner(coefficients, degree, Number(z[i].x, z[i].y));
  Number value = cuda::std::get<0>(both), slope = cuda::std::get<1>(both);
  out[i] = make_float4(value.real(), value.imag(), slope.real(), slope.imag());
}
