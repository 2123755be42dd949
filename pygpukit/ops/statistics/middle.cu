// middle.cu: the middle of each row, or the mean of the two in the middle, without sorting it.
#include "choose.cuh"
#include "order.cuh"

namespace pk {

constexpr unsigned kAll = 0xffffffffu;

template <class T>
struct Key {
  using type = decltype(key_of(T()));
  static constexpr bool kFloat = T(0.5) != T(0);
};
template <>
struct Key<half_t> {
  using type = unsigned short;
  static constexpr bool kFloat = true;
};
template <>
struct Key<bfloat16_t> {
  using type = unsigned short;
  static constexpr bool kFloat = true;
};

// The element that a key was made of; of the zeros 0.0.
template <class T>
__device__ __forceinline__ T element_of(typename Key<T>::type key) {
  using U = typename Key<T>::type;
  constexpr U sign = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  U bits = key;
  if constexpr (Key<T>::kFloat)
    bits = key & sign ? key ^ sign : ~key;
  else if constexpr (T(-1) < T(0))
    bits = key ^ sign;
  return reinterpret_cast<const T &>(bits);
}

template <class T, class D>
__device__ __forceinline__ D middle_of(typename Key<T>::type low, typename Key<T>::type high, bool single, bool nan) {
  using A = compute_t<D>;
  const A first = static_cast<A>(widen(element_of<T>(low)));
  if (nan) return convert<D>::from(A(0) / (first - first));
  if (single) return convert<D>::from(first);
  return convert<D>::from((first + static_cast<A>(widen(element_of<T>(high)))) / A(2));
}

struct MiddleCall {
  long long rows, length;
  long long lanes;  // middle_of_short: threads of a row, a power of two
};

// Rows of up to 32 elements: a thread for each counts how many come before its own.
template <class T, class D>
__global__ void __launch_bounds__(128) middle_of_short(const T *in, D *out, const __grid_constant__ MiddleCall p) {
  using U = typename Key<T>::type;
  const int lanes = static_cast<int>(p.lanes), length = static_cast<int>(p.length);
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const long long row = static_cast<long long>(blockIdx.x) * (128 / lanes) + threadIdx.x / lanes;
  const bool present = row < p.rows && lane < length;
  const U own = present ? key_of(in[row * p.length + lane]) : static_cast<U>(~U(0));
  int rank = 0;
  for (int j = 0; j < length; ++j) {
    const U other = static_cast<U>(__shfl_sync(kAll, own, j, lanes));
    rank += other < own || (other == own && j < lane);
  }
  const unsigned group = (lanes == 32 ? kAll : (1u << lanes) - 1u) << (threadIdx.x & 31 & ~(lanes - 1));
  const bool nan = __ballot_sync(kAll, Key<T>::kFloat && present && own == static_cast<U>(~U(0))) & group;
  const int low = __ffs(__ballot_sync(kAll, present && rank == (length - 1) / 2) & group) - 1;
  const int high = __ffs(__ballot_sync(kAll, present && rank == length / 2) & group) - 1;
  const U first = static_cast<U>(__shfl_sync(kAll, own, low & 31)),
          second = static_cast<U>(__shfl_sync(kAll, own, high & 31));
  if (present && lane == 0) out[row] = middle_of<T, D>(first, second, length % 2, nan);
}

// The digit of the needed-th of the counted elements, how many of its equals are needed, and how many there are.
struct Chosen {
  unsigned digit, needed, equal;
};

// A block has a row. Digit by digit, the highest first, it counts how many candidates have each one, and goes on with
// those of the digit that the middle has. Held: the row's keys fit shared memory.
template <class T, class D, int Threads, bool Held>
__global__ void __launch_bounds__(Threads) middle_of_row(const T *in, D *out, const __grid_constant__ MiddleCall p) {
  using U = typename Key<T>::type;
  constexpr int kUnderWay = 8;
  extern __shared__ double2 middle_memory[];
  U *const keys = reinterpret_cast<U *>(middle_memory);
  __shared__ unsigned counts[256];
  __shared__ Chosen chosen;
  __shared__ unsigned long long varying[2], next_above;
  const int thread = threadIdx.x;
  const unsigned length = static_cast<unsigned>(p.length);
  const T *const own = in + blockIdx.x * p.length;
  if (thread == 0) {
    varying[0] = varying[1] = 0;
    next_above = ~0ull;
  }
  __syncthreads();
  // Bits that are set in some key, and that are not set in some.
  U ones = 0, zeros = 0;
  bool nan = false;
#pragma unroll 1
  for (unsigned start = thread; start < length; start += kUnderWay * Threads) {
    U key[kUnderWay];
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u)
      key[u] = key_of(own[start + u * Threads < length ? start + u * Threads : start]);
#pragma unroll
    for (int u = 0; u < kUnderWay; ++u) {
      if (Held && start + u * Threads < length) keys[start + u * Threads] = key[u];
      ones |= key[u];
      zeros |= static_cast<U>(~key[u]);
      nan |= Key<T>::kFloat && key[u] == static_cast<U>(~U(0));
    }
  }
  unsigned long long set = ones, clear = zeros;
  for (int distance = 16; distance > 0; distance /= 2) {
    set |= __shfl_xor_sync(kAll, set, distance);
    clear |= __shfl_xor_sync(kAll, clear, distance);
  }
  if (thread % 32 == 0) {
    atomicOr(&varying[0], set);
    atomicOr(&varying[1], clear);
  }
  nan = __syncthreads_or(nan);
  const U differ = static_cast<U>(varying[0] & varying[1]);
  U middle = static_cast<U>(varying[0] & ~varying[1]);  // bits of the middle so far
  unsigned needed = (length - 1) / 2 + 1, equal = length;
  const auto fetch = [&](unsigned i) { return Held ? keys[i] : key_of(own[i]); };
#pragma unroll 1
  for (int shift = 8 * static_cast<int>(sizeof(U)) - 8; shift >= 0; shift -= 8) {
    if (!(static_cast<unsigned>(differ >> shift) & 255u)) continue;
    for (int k = thread; k < 256; k += Threads) counts[k] = 0;
    __syncthreads();
    const U above =
        static_cast<U>(shift + 8 < 8 * static_cast<int>(sizeof(U)) ? ~U(0) << (shift + 8) % (8 * sizeof(U)) : 0);
#pragma unroll 1
    for (unsigned start = thread; start < length; start += kUnderWay * Threads) {
      U key[kUnderWay];
#pragma unroll
      for (int u = 0; u < kUnderWay; ++u) key[u] = fetch(start + u * Threads < length ? start + u * Threads : start);
#pragma unroll
      for (int u = 0; u < kUnderWay; ++u) {
        const bool counted = start + u * Threads < length && !((key[u] ^ middle) & above);
        if (counted) atomicAdd(&counts[static_cast<unsigned>(key[u] >> shift) & 255u], 1u);
      }
    }
    __syncthreads();
    if (thread < 32) {
      choose_digit(counts, needed, [&](unsigned digit, unsigned rest, unsigned all) { chosen = {digit, rest, all}; });
    }
    __syncthreads();
    const U digit = static_cast<U>(U(255) << shift);
    middle = static_cast<U>((middle & ~digit) | (U(chosen.digit) << shift));
    needed = chosen.needed;
    equal = chosen.equal;
  }
  U next = middle;
  if (length % 2 == 0 && needed == equal) {  // the other one is the least above it
    U smallest = static_cast<U>(~U(0));
#pragma unroll 4
    for (unsigned i = thread; i < length; i += Threads) {
      const U key = fetch(i);
      if (key > middle && key < smallest) smallest = key;
    }
    unsigned long long low = smallest;
    for (int distance = 16; distance > 0; distance /= 2) {
      const unsigned long long other = __shfl_xor_sync(kAll, low, distance);
      low = other < low ? other : low;
    }
    if (thread % 32 == 0) atomicMin(&next_above, low);
    __syncthreads();
    next = static_cast<U>(next_above);
  }
  if (thread == 0) out[blockIdx.x] = middle_of<T, D>(middle, next, length % 2, nan);
}

}  // namespace pk
