// rows.cuh: what kernels over rows share: 16-byte loads, shuffles of any state, fixed trees over the threads of a row.
#pragma once
#include "numeric.cuh"

namespace pk {

// ---- several elements at once ----

template <class T>
__device__ constexpr int per_load() {  // elements in 16 bytes
  return sizeof(T) <= 8 ? 16 / static_cast<int>(sizeof(T)) : 1;
}

template <class T, int N>
struct alignas(N == 1 ? alignof(T) : N * sizeof(T)) Pack {
  T v[N];
};

template <int Count>
struct alignas(4 * Count) Words {
  unsigned v[Count];
};

template <class T, int N>
union Bits {  // elements as the words that one instruction moves
  static constexpr int kWords = static_cast<int>(sizeof(T)) * N / 4;
  Words<kWords> words;
  Pack<T, N> pack;
};

template <class T, int N>
__device__ constexpr bool by_words() {
  return N * sizeof(T) == 4 || N * sizeof(T) == 8 || N * sizeof(T) == 16;
}

// Elements that nobody reads again. For kernels that only read; those that also write are faster without.
template <int N, class T>
__device__ __forceinline__ Pack<T, N> load_once(const T *pointer) {
  if constexpr (N > 1 && by_words<T, N>()) {
    Bits<T, N> bits;
    if constexpr (bits.kWords == 4) {
      asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(bits.words.v[0]), "=r"(bits.words.v[1]), "=r"(bits.words.v[2]), "=r"(bits.words.v[3])
                   : "l"(pointer));
    } else if constexpr (bits.kWords == 2) {
      asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                   : "=r"(bits.words.v[0]), "=r"(bits.words.v[1])
                   : "l"(pointer));
    } else {
      asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(bits.words.v[0]) : "l"(pointer));
    }
    return bits.pack;
  }
  return *reinterpret_cast<const Pack<T, N> *>(pointer);
}

template <int N, class T>
__device__ __forceinline__ Pack<T, N> load_pack(const T *pointer) {
  if constexpr (N > 1 && by_words<T, N>()) {
    Bits<T, N> bits;
    bits.words = *reinterpret_cast<const Words<Bits<T, N>::kWords> *>(pointer);
    return bits.pack;
  }
  return *reinterpret_cast<const Pack<T, N> *>(pointer);
}

template <int N, class T>
__device__ __forceinline__ void store_pack(T *pointer, const Pack<T, N> &pack) {
  if constexpr (N > 1 && by_words<T, N>()) {
    Bits<T, N> bits;
    bits.pack = pack;
    *reinterpret_cast<Words<Bits<T, N>::kWords> *>(pointer) = bits.words;
  } else {
    *reinterpret_cast<Pack<T, N> *>(pointer) = pack;
  }
}

// ---- what a pack becomes in registers, and back; two elements of 16 bits take one instruction ----

template <class T, int N>
__device__ __forceinline__ void widen_pack(const Pack<T, N> &pack, compute_t<T> (&values)[N]) {
  for (int j = 0; j < N; ++j) values[j] = widen(pack.v[j]);
}

template <class T, int N>
__device__ __forceinline__ Pack<T, N> narrow_pack(const compute_t<T> (&values)[N]) {
  Pack<T, N> pack;
  for (int j = 0; j < N; ++j) pack.v[j] = convert<T>::from(values[j]);
  return pack;
}

template <>
__device__ __forceinline__ void widen_pack<bfloat16_t, 8>(const Pack<bfloat16_t, 8> &pack, float (&values)[8]) {
  Bits<bfloat16_t, 8> bits;
  bits.pack = pack;
  for (int k = 0; k < 4; ++k) {
    values[2 * k] = __uint_as_float(bits.words.v[k] << 16);
    values[2 * k + 1] = __uint_as_float(bits.words.v[k] & 0xffff0000u);
  }
}

template <>
__device__ __forceinline__ Pack<bfloat16_t, 8> narrow_pack<bfloat16_t, 8>(const float (&values)[8]) {
  Bits<bfloat16_t, 8> bits;
  for (int k = 0; k < 4; ++k) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits.words.v[k]) : "f"(values[2 * k + 1]), "f"(values[2 * k]));
  }
  return bits.pack;
}

template <>
__device__ __forceinline__ Pack<half_t, 8> narrow_pack<half_t, 8>(const float (&values)[8]) {
  Bits<half_t, 8> bits;
  for (int k = 0; k < 4; ++k) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits.words.v[k]) : "f"(values[2 * k + 1]), "f"(values[2 * k]));
  }
  return bits.pack;
}

// A pack that is kept for later, as whole words where it has some: their halves would take registers of their own, and
// putting them together would wait for each load before the next.
template <class T, int N, bool Whole = (N > 1 && by_words<T, N>())>
struct Held {
  Bits<T, N> bits;
  __device__ __forceinline__ void load(const T *pointer) {
    bits.words = *reinterpret_cast<const Words<Bits<T, N>::kWords> *>(pointer);
  }
  __device__ __forceinline__ void keep(const Pack<T, N> &pack) {
    Bits<T, N> other;
    other.pack = pack;
    bits.words = other.words;
  }
  __device__ __forceinline__ const Pack<T, N> &pack() const { return bits.pack; }
  // What was made of it is made again, where the compiler would keep that in more registers.
  __device__ __forceinline__ void again() {
    if constexpr (sizeof(T) == 2) {
      for (unsigned &word : bits.words.v) asm volatile("" : "+r"(word));
    }
  }
};
template <class T, int N>
struct Held<T, N, false> {
  Pack<T, N> kept;
  __device__ __forceinline__ void load(const T *pointer) { kept = load_pack<N>(pointer); }
  __device__ __forceinline__ void keep(const Pack<T, N> &pack) { kept = pack; }
  __device__ __forceinline__ const Pack<T, N> &pack() const { return kept; }
  __device__ __forceinline__ void again() {}
};

template <class A, class B>
constexpr bool same_type = false;
template <class A>
constexpr bool same_type<A, A> = true;

// ---- offsets; layouts of one axis, the common ones, without a division ----

template <class Index, int Operands>
__device__ __forceinline__ void place_in(const Layout<Operands> &layout, Index index, long long *at) {
  for (int k = 0; k < Operands; ++k) at[k] = layout.start[k];
#pragma unroll 1
  for (int axis = static_cast<int>(layout.ndim) - 1; axis >= 0; --axis) {
    const Index extent = static_cast<Index>(layout.shape[axis]);
    const Index above = index / extent;
    for (int k = 0; k < Operands; ++k) at[k] += static_cast<long long>(index - above * extent) * layout.stride[k][axis];
    index = above;
  }
}

// As locate(), kept short and out of line: for what is read element by element.
template <int Operands>
__device__ __noinline__ void place_by_axes(const Layout<Operands> &layout, long long index, long long *at) {
  if (layout.size <= 0x7fffffffLL) {
    place_in(layout, static_cast<unsigned>(index), at);
  } else {
    place_in(layout, static_cast<unsigned long long>(index), at);
  }
}

// As locate(), inline: for what is done once a row. A call would cost a short row's kernel a tenth of its time.
template <int Operands>
__device__ __forceinline__ void place(const Layout<Operands> &layout, long long index, long long (&at)[Operands]) {
  if (layout.ndim > 1) {
    place_in(layout, static_cast<unsigned long long>(index), at);
  } else {
    for (int k = 0; k < Operands; ++k) at[k] = layout.start[k] + index * layout.stride[k][0];
  }
}

// ---- trees; a is always the part with the lower indices ----

template <class S>
__device__ __forceinline__ S shuffle_down(const S &state, int distance) {
  constexpr int words = (sizeof(S) + 3) / 4;
  union {
    unsigned v[words];
    S state;
  } mine{}, other{};
  mine.state = state;
  for (int k = 0; k < words; ++k) other.v[k] = __shfl_down_sync(0xffffffffu, mine.v[k], distance);
  return other.state;
}

// Combines the states of `lanes` neighbouring threads (a power of two up to 256, groups start at multiples of it).
// Every thread of the block must call it; the first of each group gets the result.
template <class Op>
__device__ __forceinline__ typename Op::State fold(const Op &op, typename Op::State state, int lanes) {
  using State = typename Op::State;
  for (int distance = (lanes < 32 ? lanes : 32) / 2; distance > 0; distance /= 2) {
    state = op.combine(state, shuffle_down(state, distance));
  }
  if (lanes <= 32) return state;
  __shared__ State parts[8];
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = state;
  __syncthreads();
  if (threadIdx.x % lanes == 0) {
    const int first = static_cast<int>(threadIdx.x / 32);
    for (int k = 1; k < lanes / 32; ++k) state = op.combine(state, parts[first + k]);
  }
  return state;
}

// Over the lanes of a warp, or a power of two of them: each gets the result.
template <class Op, class A, int Count>
__device__ __forceinline__ void fold_warp(const Op &op, A (&values)[Count], int lanes) {
  if (lanes == 32) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      for (int c = 0; c < Count; ++c) values[c] = op(values[c], __shfl_xor_sync(0xffffffffu, values[c], distance));
    }
  } else {
#pragma unroll 1
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      for (int c = 0; c < Count; ++c) values[c] = op(values[c], __shfl_xor_sync(0xffffffffu, values[c], distance));
    }
  }
}

// Sums or maxima over `lanes` neighbouring threads (a power of two up to 1024); every thread gets them, with the same
// bits. `parts`: shared memory for the values of each warp, not used again before a barrier.
template <class Op, class A, int Count>
__device__ __forceinline__ void all_fold(const Op &op, A (&values)[Count], int lanes, A (*parts)[Count]) {
  fold_warp(op, values, lanes < 32 ? lanes : 32);
  if (lanes <= 32) return;
  if (threadIdx.x % 32 == 0) {
    for (int c = 0; c < Count; ++c) parts[threadIdx.x / 32][c] = values[c];
  }
  __syncthreads();
  const int warps = lanes / 32;
  const int first = static_cast<int>(threadIdx.x / lanes) * warps;
  for (int c = 0; c < Count; ++c) values[c] = parts[first + threadIdx.x % warps][c];
  fold_warp(op, values, warps);
}

template <class Op, class A>
__device__ __forceinline__ A all_fold(const Op &op, A value, int lanes, A *parts) {
  A values[1] = {value};
  all_fold(op, values, lanes, reinterpret_cast<A(*)[1]>(parts));
  return values[0];
}

struct Plus {
  template <class A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return a + b;
  }
};

struct Larger {  // a NaN wins
  __device__ __forceinline__ float operator()(float a, float b) const {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
  template <class A>
  __device__ __forceinline__ A operator()(A a, A b) const {
    return !(b <= a) && a == a ? b : a;
  }
};

}  // namespace pk
