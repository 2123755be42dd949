// clamp.cu: a template over the element type and a constant, launched by name expression.
namespace ranges {
template <typename T, int Low>
__global__ void clamp(const T *in, T *out, T high, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    T value = in[i];
    T at_least = value < (T)Low ? (T)Low : value;
    out[i] = high < at_least ? high : at_least;
  }
}
}  // namespace ranges
