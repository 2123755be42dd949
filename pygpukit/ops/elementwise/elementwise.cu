// elementwise.cu: unary, binary and ternary kernels over any layout, one thread for 16 bytes of neighbours.
#include "operations.cuh"
#include "storage.cuh"
#include "walk.cuh"

namespace pk {

// ---- dense operands, each form in a kernel of its own: copies and arithmetic ----

template <class S, class D, class Op>
__global__ void __launch_bounds__(256) unary_dense(const S *a, D *out, long long n) {
  constexpr int N = together<S, D>();
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i + N <= n && phase<N>(out) == 0 && reaches<N>(a + i, i, n - i)) {
    const Pack<S, N> x = Coming<S, N>(a + i).arrived();
    Pack<D, N> z;
    for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<D>(x.v[k]);
    store_pack<N>(out + i, z);
  } else {
    for (long long k = i; k < i + N && k < n; ++k) out[k] = Op::template apply<D>(a[k]);
  }
}

template <class T, class O, class Op>
__global__ void __launch_bounds__(256) binary_dense(const T *a, const T *b, O *out, long long n) {
  constexpr int N = together<T, O>();
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i + N <= n && phase<N>(out) == 0 && reaches<N>(a + i, i, n - i) && reaches<N>(b + i, i, n - i)) {
    const Coming<T, N> first(a + i), second(b + i);
    const Pack<T, N> x = first.arrived(), y = second.arrived();
    Pack<O, N> z;
    for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<O>(x.v[k], y.v[k]);
    store_pack<N>(out + i, z);
  } else {
    for (long long k = i; k < i + N && k < n; ++k) out[k] = Op::template apply<O>(a[k], b[k]);
  }
}

template <class T, class O, class Op>
__global__ void __launch_bounds__(256) binary_scalar(const T *a, T scalar, O *out, long long n) {
  constexpr int N = together<T, O>();
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i + N <= n && phase<N>(out) == 0 && reaches<N>(a + i, i, n - i)) {
    const Pack<T, N> x = Coming<T, N>(a + i).arrived();
    Pack<O, N> z;
    for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<O>(x.v[k], scalar);
    store_pack<N>(out + i, z);
  } else {
    for (long long k = i; k < i + N && k < n; ++k) out[k] = Op::template apply<O>(a[k], scalar);
  }
}

// ---- any operation, any layout: broadcast, transposed, stepped, reversed, dense ----

// Operands that are Python numbers rather than arrays, by value: bit k of `numbers_mask` says that number k is one.
struct alignas(16) Numbers {
  unsigned long long numbers_mask, unused;
  unsigned char value[2][16];
};

template <class T>
__device__ __forceinline__ T number(const Numbers &numbers, int k) {
  return *reinterpret_cast<const T *>(numbers.value[k]);
}

// Elements i to i + N of a dense operand of `size`, or a number repeated.
template <int N, class T>
__device__ __forceinline__ bool reaches_or_number(const T *pointer, long long i, long long size, const Numbers &numbers,
                                                  int k) {
  return numbers.numbers_mask >> k & 1 || reaches<N>(pointer + i, i, size - i);
}
template <int N, class T>
__device__ __forceinline__ Coming<T, N> begin_or_repeat(const T *pointer, long long i, const Numbers &numbers, int k) {
  if (!(numbers.numbers_mask >> k & 1)) return Coming<T, N>(pointer + i);
  Pack<T, N> pack;
  for (T &element : pack.v) element = number<T>(numbers, k);
  return Coming<T, N>(pack);
}
template <class T>
__device__ __forceinline__ T element_or_number(const T *pointer, long long i, const Numbers &numbers, int k) {
  return numbers.numbers_mask >> k & 1 ? number<T>(numbers, k) : pointer[i];
}
// A thread's elements of operand k of a walk, or number `which` repeated.
template <int N, int Operands, class T>
__device__ __forceinline__ Taken<T, N> take_or_repeat(const Share<N, Operands> &share, const T *operand, int k,
                                                      const Numbers &numbers, int which) {
  if (!(numbers.numbers_mask >> which & 1)) return share.begin(operand, k);
  Taken<T, N> taken;
  taken.step = 0;
  taken.one(number<T>(numbers, which));
  return taken;
}

// Blocks that a multiprocessor shall hold: with elements of two and four bytes all that it can, which bounds a thread
// to 32 registers where it holds 2048 threads; fewer where that would spill.
template <class T>
__host__ __device__ constexpr int resident_blocks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && __CUDA_ARCH__ != 1000
  constexpr int max_blocks = 6;  // 1536 threads
#else
  constexpr int max_blocks = 8;
#endif
  return sizeof(compute_t<T>) == 4 || sizeof(T) == 2 ? max_blocks : 5;
}

template <class Op, class S, class D>
__device__ __forceinline__ void walk_one(const S *a, D *out, const Walk<2> &walk) {
  constexpr int N = together<S, D>();
  const Share<N, 2> share(walk);
  if (share.none()) return;
  const Pack<S, N> x = share.begin(a, 0).arrived();
  Pack<D, N> z;
  for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<D>(x.v[k]);
  share.store(out, z);
}

template <class Op, class T, class O>
__device__ __forceinline__ void walk_two(const T *a, const T *b, O *out, const Walk<3> &walk, const Numbers &numbers) {
  constexpr int N = together<T, O>();
  const Share<N, 3> share(walk);
  if (share.none()) return;
  const Taken<T, N> first = take_or_repeat(share, a, 0, numbers, 0), second = take_or_repeat(share, b, 1, numbers, 1);
  const Pack<T, N> x = first.arrived(), y = second.arrived();
  Pack<O, N> z;
  for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<O>(x.v[k], y.v[k]);
  share.store(out, z);
}

// Of operations that have other kernels for dense operands. Blocks: of elements of two bytes fewer, whose walk would
// spill.
template <class T>
__host__ __device__ constexpr int walking_blocks() {
  return sizeof(T) == 2 ? 6 : resident_blocks<T>();
}
template <class S, class D, class Op>
__global__ void __launch_bounds__(256, walking_blocks<S>())
    unary_strided(const S *a, D *out, const __grid_constant__ Walk<2> walk) {
  walk_one<Op>(a, out, walk);
}
template <class T, class O, class Op>
__global__ void __launch_bounds__(256, walking_blocks<T>())
    binary_strided(const T *a, const T *b, O *out, const __grid_constant__ Walk<3> walk,
                   const __grid_constant__ Numbers numbers) {
  walk_two<Op>(a, b, out, walk, numbers);
}

// Of all others: dense operands, too.
template <class S, class D, class Op>
__global__ void __launch_bounds__(256, resident_blocks<S>())
    unary(const S *a, D *out, const __grid_constant__ Walk<2> walk) {
  constexpr int N = together<S, D>();
  if (is_dense(walk)) {
    const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N, size = walk.size;
    if (i + N <= size && phase<N>(out) == 0 && reaches<N>(a + i, i, size - i)) {
      const Pack<S, N> x = Coming<S, N>(a + i).arrived();
      Pack<D, N> z;
      for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<D>(x.v[k]);
      store_pack<N>(out + i, z);
    } else {
      for (long long k = i; k < i + N && k < size; ++k) out[k] = Op::template apply<D>(a[k]);
    }
    return;
  }
  walk_one<Op>(a, out, walk);
}

template <class T, class O, class Op>
__global__ void __launch_bounds__(256, resident_blocks<T>())
    binary(const T *a, const T *b, O *out, const __grid_constant__ Walk<3> walk,
           const __grid_constant__ Numbers numbers) {
  constexpr int N = together<T, O>();
  if (is_dense(walk)) {
    const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N, size = walk.size;
    if (i + N <= size && phase<N>(out) == 0 && reaches_or_number<N>(a, i, size, numbers, 0) &&
        reaches_or_number<N>(b, i, size, numbers, 1)) {
      const Coming<T, N> first = begin_or_repeat<N>(a, i, numbers, 0), second = begin_or_repeat<N>(b, i, numbers, 1);
      const Pack<T, N> x = first.arrived(), y = second.arrived();
      Pack<O, N> z;
      for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<O>(x.v[k], y.v[k]);
      store_pack<N>(out + i, z);
    } else {
      for (long long k = i; k < i + N && k < size; ++k) {
        const T x = element_or_number(a, k, numbers, 0), y = element_or_number(b, k, numbers, 1);
        out[k] = Op::template apply<O>(x, y);
      }
    }
    return;
  }
  walk_two<Op>(a, b, out, walk, numbers);
}

// C: the first operand's type, always an array. Number 0 stands for a, number 1 for b.
template <class C, class T, class O, class Op>
__global__ void __launch_bounds__(256, sizeof(T) == 2 ? 6 : 5)
    ternary(const C *c, const T *a, const T *b, O *out, const __grid_constant__ Walk<4> walk,
            const __grid_constant__ Numbers numbers) {
  constexpr int N = together<T, O>() < together<C, O>() ? together<T, O>() : together<C, O>();
  if (is_dense(walk)) {
    const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * N, size = walk.size;
    if (i + N <= size && phase<N>(out) == 0 && reaches<N>(c + i, i, size - i) &&
        reaches_or_number<N>(a, i, size, numbers, 0) && reaches_or_number<N>(b, i, size, numbers, 1)) {
      const Coming<C, N> choice(c + i);
      const Coming<T, N> first = begin_or_repeat<N>(a, i, numbers, 0), second = begin_or_repeat<N>(b, i, numbers, 1);
      const Pack<C, N> w = choice.arrived();
      const Pack<T, N> x = first.arrived(), y = second.arrived();
      Pack<O, N> z;
      for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<O>(w.v[k], x.v[k], y.v[k]);
      store_pack<N>(out + i, z);
    } else {
      for (long long k = i; k < i + N && k < size; ++k) {
        const T x = element_or_number(a, k, numbers, 0), y = element_or_number(b, k, numbers, 1);
        out[k] = Op::template apply<O>(c[k], x, y);
      }
    }
    return;
  }
  const Share<N, 4> share(walk);
  if (share.none()) return;
  const Taken<C, N> choice = share.begin(c, 0);
  const Taken<T, N> first = take_or_repeat(share, a, 1, numbers, 0), second = take_or_repeat(share, b, 2, numbers, 1);
  const Pack<C, N> w = choice.arrived();
  const Pack<T, N> x = first.arrived(), y = second.arrived();
  Pack<O, N> z;
  for (int k = 0; k < N; ++k) z.v[k] = Op::template apply<O>(w.v[k], x.v[k], y.v[k]);
  share.store(out, z);
}

}  // namespace pk
