// join.cu: rows of up to eight arrays side by side in one array, in one launch.
#include "shifted.cuh"

namespace pk {

constexpr int kParts = 8;
constexpr int kEnds = 9;   // one more
constexpr int kPacks = 4;  // of a thread, at most: loads that are under way together

struct Join {
  long long size, width;  // elements of the result, and of its rows
  long long packs;        // of a thread
  long long begin[kEnds];       // where parts begin in a row; those that are not there at its end
  long long step[kParts];       // elements from one row of a part to the next
};

template <class T>
struct Parts {
  const T *first[kParts];
};

// Where element `at` of the result comes from, and which element of how many in a row of its part that is.
template <class T>
struct Origin {
  const T *from;
  long long in_row, size;
};

template <class Index, class T>
__device__ __forceinline__ Origin<T> origin(const Parts<T> &parts, const Join &join, Index at) {
  const Index row = at / static_cast<Index>(join.width);
  const long long column = static_cast<long long>(at - row * static_cast<Index>(join.width));
  const T *first = parts.first[0];
  long long begin = 0, end = join.begin[1], step = join.step[0];
#pragma unroll
  for (int k = 1; k < kParts; ++k) {
    if (column < join.begin[k]) break;
    first = parts.first[k];
    begin = join.begin[k];
    end = join.begin[k + 1];
    step = join.step[k];
  }
  return {first + static_cast<long long>(row) * step + (column - begin), column - begin, end - begin};
}

template <class T>
__device__ __forceinline__ Origin<T> origin_of(const Parts<T> &parts, const Join &join, long long at) {
  return join.size <= 0x7fffffffLL ? origin(parts, join, static_cast<unsigned>(at))
                                   : origin(parts, join, static_cast<unsigned long long>(at));
}

// A thread makes packs of 16 bytes of the result that lie there in memory, one by one the elements of those that lie
// across parts or at the ends of their rows.
template <class T>
__global__ void __launch_bounds__(256)
    join(const T *a, const T *b, const T *c, const T *d, const T *e, const T *f, const T *g, const T *h, T *out,
         const __grid_constant__ Join join) {
  constexpr int N = sizeof(T) < 16 ? per_load<T>() : 1;
  const Parts<T> parts{{a, b, c, d, e, f, g, h}};
  const int lead = phase<N>(out);
  const long long first = static_cast<long long>(blockIdx.x) * (256 * join.packs) + threadIdx.x;
  Held<T, N> low[kPacks], high[kPacks];
  int by[kPacks];  // -1: element by element
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    by[k] = -1;
    const long long at = (first + k * 256) * N - lead;
    if (k >= join.packs || at < 0 || at + N > join.size) continue;
    const Origin<T> own = origin_of(parts, join, at);
    const int phase_of = phase<N>(own.from);
    if (own.in_row + N > own.size || !within<N, long long>(own.in_row, phase_of, own.size)) continue;
    by[k] = phase_of;
    low[k].load(own.from - phase_of);
    high[k].load(own.from + (phase_of ? N - phase_of : 0));
  }
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (k >= join.packs) break;
    const long long at = (first + k * 256) * N - lead;
    if (by[k] >= 0) {
      if constexpr (N > 1) {
        store_pack<N>(out + at, shifted(low[k].bits, high[k].bits, by[k]).pack);
      } else {
        out[at] = low[k].pack().v[0];
      }
      continue;
    }
    for (int j = 0; j < N; ++j) {
      if (at + j >= 0 && at + j < join.size) out[at + j] = *origin_of(parts, join, at + j).from;
    }
  }
}

}  // namespace pk
