// lambda_map.cu: device lambdas and function objects handed to a device function template.
struct AddConstant {
  int amount;
  __device__ int operator()(int x) const { return x + amount; }
};

template <class First, class Second>
__device__ int compose(First first, Second second, int x) {
  return second(first(x));
}

__global__ void lambda_map(const int *in, int *out, int factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto square_and_scale = [factor](int x) { return factor * x * x; };
  if (i < n) out[i] = compose(square_and_scale, AddConstant{7}, in[i]);
}
