// elementwise.cu: unary and binary kernels over any layout, one thread for 16 bytes where the operands are dense.
#include "numeric.cuh"

namespace pk {

// ---- operations: apply(compute values) -> compute value ----

struct Copy {
  template <class D, class S>
  static __device__ __forceinline__ D apply(S value) {
    return convert<D>::from(value);
  }
};

struct Negate {
  template <class D, class S>
  static __device__ __forceinline__ D apply(S value) {
    return convert<D>::from(negate(widen(value)));
  }
};

#define PK_ARITHMETIC(Name, function)                        \
  struct Name {                                              \
    template <class O, class T>                              \
    static __device__ __forceinline__ O apply(T a, T b) {    \
      return convert<O>::from(function(widen(a), widen(b))); \
    }                                                        \
  };
PK_ARITHMETIC(Add, add)
PK_ARITHMETIC(Subtract, subtract)
PK_ARITHMETIC(Multiply, multiply)
PK_ARITHMETIC(Divide, divide)
#undef PK_ARITHMETIC

#define PK_COMPARISON(Name, expression)                          \
  struct Name {                                                  \
    template <class O, class T>                                  \
    static __device__ __forceinline__ O apply(T left, T right) { \
      const auto a = widen(left);                                \
      const auto b = widen(right);                               \
      return expression;                                         \
    }                                                            \
  };
PK_COMPARISON(Equal, a == b)
PK_COMPARISON(NotEqual, !(a == b))
PK_COMPARISON(Less, a < b)
PK_COMPARISON(LessEqual, a <= b)
#undef PK_COMPARISON

// Operands the other way round: a scalar on the left.
template <class Op>
struct Swapped {
  template <class O, class T>
  static __device__ __forceinline__ O apply(T a, T b) {
    return Op::template apply<O>(b, a);
  }
};

// ---- dense operands ----

template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

template <class S, class D>
__device__ constexpr int pack_size() {
  constexpr int larger = sizeof(S) > sizeof(D) ? sizeof(S) : sizeof(D);
  return 16 / larger;
}

template <int N, class T>
__device__ __forceinline__ bool aligned(const T *pointer) {
  return reinterpret_cast<unsigned long long>(pointer) % (sizeof(T) * N) == 0;
}
template <int N, class T>
__device__ __forceinline__ Pack<T, N> load(const T *pointer) {
  return *reinterpret_cast<const Pack<T, N> *>(pointer);
}
template <int N, class T>
__device__ __forceinline__ void store(T *pointer, const Pack<T, N> &pack) {
  *reinterpret_cast<Pack<T, N> *>(pointer) = pack;
}

template <class S, class D, class Op>
__global__ void __launch_bounds__(256) unary_dense(const S *a, D *out, long long n) {
  constexpr int N = pack_size<S, D>();
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i + N <= n && aligned<N>(a) && aligned<N>(out)) {
    const Pack<S, N> x = load<N>(a + i);
    Pack<D, N> z;
    for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<D>(x.v[k]);
    store<N>(out + i, z);
  } else {
    for (long long k = i; k < i + N && k < n; ++k) out[k] = Op::template apply<D>(a[k]);
  }
}

template <class T, class O, class Op>
__global__ void __launch_bounds__(256) binary_dense(const T *a, const T *b, O *out, long long n) {
  constexpr int N = pack_size<T, O>();
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i + N <= n && aligned<N>(a) && aligned<N>(b) && aligned<N>(out)) {
    const Pack<T, N> x = load<N>(a + i);
    const Pack<T, N> y = load<N>(b + i);
    Pack<O, N> z;
    for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<O>(x.v[k], y.v[k]);
    store<N>(out + i, z);
  } else {
    for (long long k = i; k < i + N && k < n; ++k) out[k] = Op::template apply<O>(a[k], b[k]);
  }
}

template <class T, class O, class Op>
__global__ void __launch_bounds__(256) binary_scalar(const T *a, T scalar, O *out, long long n) {
  constexpr int N = pack_size<T, O>();
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i + N <= n && aligned<N>(a) && aligned<N>(out)) {
    const Pack<T, N> x = load<N>(a + i);
    Pack<O, N> z;
    for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<O>(x.v[k], scalar);
    store<N>(out + i, z);
  } else {
    for (long long k = i; k < i + N && k < n; ++k) out[k] = Op::template apply<O>(a[k], scalar);
  }
}

// ---- any layout: broadcast, transposed, stepped, reversed ----

template <class S, class D, class Op>
__global__ void __launch_bounds__(256) unary_strided(const S *a, D *out, const __grid_constant__ Layout<2> layout) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= layout.size) return;
  long long at[2];
  locate(layout, i, at);
  out[at[1]] = Op::template apply<D>(a[at[0]]);
}

template <class T, class O, class Op>
__global__ void __launch_bounds__(256)
    binary_strided(const T *a, const T *b, O *out, const __grid_constant__ Layout<3> layout) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= layout.size) return;
  long long at[3];
  locate(layout, i, at);
  out[at[2]] = Op::template apply<O>(a[at[0]], b[at[1]]);
}

}  // namespace pk
