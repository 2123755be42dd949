// select.cu: the k first elements of each row in order, for small k, without sorting rows: digit by digit, the highest
// first, a block counts how many elements have each one, and goes on with those of the digit that the k-th one has.
#include "choose.cuh"
#include "order.cuh"

namespace pk {

constexpr int kMaxK = 64;  // the largest k
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xffffffffu;

struct SelectCall {
  long long length;  // of a row
  long long pieces;  // a block takes one piece of a row, of at least k elements
  long long k;
  long long flip;     // 255: descending
  long long indexed;  // the elements' indices are given; else they are their positions
};

// Less than, equal to or greater than 0, as a comes before, with or after b.
template <class T, class Other>
__device__ __forceinline__ int compare_digits(T a, Other digit_of_b, unsigned flip, int lowest) {
  for (int pass = Digits<T>::kPasses - 1; pass >= lowest; --pass) {
    const int difference = static_cast<int>(Digits<T>::of(a, pass) ^ flip) - static_cast<int>(digit_of_b(pass));
    if (difference) return difference;
  }
  return 0;
}

template <class T>
__global__ void __launch_bounds__(kThreads) select_first(const T *in, const long long *in_index, T *out,
                                                         long long *out_index, const __grid_constant__ SelectCall p) {
  constexpr int kPasses = Digits<T>::kPasses;
  __shared__ unsigned counts[256];
  __shared__ unsigned char chosen[kPasses];  // digits of the k-th element
  __shared__ unsigned rest;
  __shared__ unsigned ahead[2][kWarps];
  __shared__ double held[kMaxK * sizeof(T) / 8 + 1];
  __shared__ long long held_index[kMaxK];
  T *const best = reinterpret_cast<T *>(held);
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const long long row = blockIdx.x / p.pieces, piece = blockIdx.x % p.pieces;
  const long long first = piece * p.length / p.pieces, count = (piece + 1) * p.length / p.pieces - first;
  const T *const own = in + row * p.length + first;
  const unsigned flip = static_cast<unsigned>(p.flip), k = static_cast<unsigned>(p.k);
  const auto digit_of_chosen = [&](int pass) { return chosen[pass]; };

  if (thread < kPasses) chosen[thread] = 0;  // compilers load digits ahead of the loop that reads them
  unsigned needed = k;
  for (int pass = kPasses - 1; pass >= 0; --pass) {
    counts[thread] = 0;
    __syncthreads();
    for (long long start = 0; start < count; start += kThreads) {
      const long long i = start + thread;
      unsigned digit = 256;  // no candidate
      if (i < count) {
        const T x = own[i];
        if (compare_digits(x, digit_of_chosen, flip, pass + 1) == 0) digit = Digits<T>::of(x, pass) ^ flip;
      }
      const unsigned peers = __match_any_sync(kAll, digit);
      if (digit < 256 && lane == __ffs(peers) - 1) atomicAdd(&counts[digit], static_cast<unsigned>(__popc(peers)));
    }
    __syncthreads();
    if (warp == 0) {
      choose_digit(counts, needed, [&](unsigned digit, unsigned of_it, unsigned) {
        chosen[pass] = static_cast<unsigned char>(digit);
        rest = of_it;
      });
    }
    __syncthreads();
    needed = rest;
  }

  // Those before the k-th element, then as many equal to it as are needed, each in the order of their positions.
  unsigned taken[2] = {0, k - needed};
  for (long long start = 0; start < count; start += kThreads) {
    const long long i = start + thread;
    int order = 1;
    if (i < count) order = compare_digits(own[i], digit_of_chosen, flip, 0);
    if (!__syncthreads_or(order <= 0)) continue;
    const unsigned lanes[2] = {__ballot_sync(kAll, order < 0), __ballot_sync(kAll, order == 0)};
    if (lane < 2) ahead[lane][warp] = __popc(lanes[lane]);
    __syncthreads();
    const int own_class = order < 0 ? 0 : 1;
    unsigned slot = taken[own_class] + __popc(lanes[own_class] & ((1u << lane) - 1u));
    for (int w = 0; w < warp; ++w) slot += ahead[own_class][w];
    if (order <= 0 && slot < k) {
      best[slot] = own[i];
      held_index[slot] = p.indexed ? in_index[row * p.length + first + i] : first + i;
    }
    for (int w = 0; w < kWarps; ++w) {
      taken[0] += ahead[0][w];
      taken[1] += ahead[1][w];
    }
    __syncthreads();
  }
  __syncthreads();
  if (static_cast<unsigned>(thread) >= k) return;
  const T x = best[thread];
  unsigned rank = 0;
  for (unsigned other = 0; other < k; ++other) {
    const T y = best[other];
    const int order = compare_digits(
        y, [&](int pass) { return Digits<T>::of(x, pass) ^ flip; }, flip, 0);
    rank += order < 0 || (order == 0 && other < static_cast<unsigned>(thread));
  }
  const long long to = blockIdx.x * p.k + rank;
  out[to] = x;
  out_index[to] = held_index[thread];
}

}  // namespace pk
