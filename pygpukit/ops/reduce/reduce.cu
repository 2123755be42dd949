// reduce.cu: reductions of any axes of any layout: along rows of memory, across them, and parts of either merged.
//
// Which thread takes which element depends on shapes and strides only. Long reductions are cut into chunks, whose
// states go to `partials`; a second launch, rows<Merge<Op>, true>, makes results of them. It is made while the first
// still runs.
#include "overlap.cuh"
#include "reductions.cuh"
#include "span.cuh"

namespace pk {

constexpr int kThreads = 128;
constexpr int kSlots = 4;  // loads of a thread that are under way together where rows are no packs

// On an SM, at least. With more a compiler keeps too few loads in flight.
template <bool Dense>
__host__ __device__ constexpr int blocks_of() {
  return Dense ? 8 : 5;
}

struct Reduction {
  Layout<2> kept;     // one result each: input and output; for columns() without the axis of the columns
  Layout<1> reduced;  // the elements of one result
  long long columns, column_stride, column_out_stride;
  long long lanes;          // rows: threads a result; columns: threads side by side; a power of two
  long long height;         // columns: threads that share a result; a power of two
  long long each;           // columns: of a thread
  long long chunk, chunks;  // elements of a result in one part, parts of a result
  long long span;           // elements from the pointer on that are the input's, between its rows too
  Setting setting;
};

template <class Op>
__device__ __forceinline__ void deliver(const Op &op, const typename Op::State &state, long long chunks, long long part,
                                        typename Op::State *partials, typename Op::Output *out) {
  if (chunks == 1) {
    *out = op.finish(state);
  } else {
    partials[part] = state;
  }
}

// Elements i to i + N of a result, fewer at the end.
template <int N, class Op, class Fetch>
__device__ __forceinline__ void enter(const Op &op, typename Op::State &state, long long i, long long end,
                                      Fetch fetch) {
  using T = typename Op::Input;
  if (i + N <= end) {
    T values[N];
    for (int k = 0; k < N; ++k) values[k] = fetch(i + k);
    absorb(op, state, values, i);
  } else {
#pragma unroll 1
    for (; i < end; ++i) {
      const T one[1] = {fetch(i)};
      absorb(op, state, one, i);
    }
  }
}

// N elements on their way: dense ones 16 bytes at once.
template <bool Dense, class T, int N>
struct Coming {
  Across<T, N> own;
  __device__ __forceinline__ void load(const T *from) { own.load(from); }
  __device__ __forceinline__ void keep(const Pack<T, N> &pack) { own.keep(pack); }
  __device__ __forceinline__ Pack<T, N> arrived() const { return own.arrived().pack(); }
};
template <class T, int N>
struct Coming<true, T, N> {
  Pack<T, N> own;
  __device__ __forceinline__ void load(const T *from) { own = load_once<N>(from); }
  __device__ __forceinline__ void keep(const Pack<T, N> &pack) { own = pack; }
  __device__ __forceinline__ Pack<T, N> arrived() const { return own; }
};

// Elements i to end of a result, a pack for each `stride` of them, where neighbours lie side by side: fetch() gives an
// element, begin_of() where a pack begins, or nullptr where it does not lie side by side. Safe: all of them do, within
// the span, so that nothing stands between their loads. The loads of a thread that has a few packs are all under way
// before the first is looked at, and those of the last pack, which may have fewer elements, before all others.
template <bool Dense, bool Safe, int Loads, class Op, class Fetch, class Begin>
__device__ __forceinline__ void enter_packs(const Op &op, typename Op::State &state, long long i, long long end,
                                            long long stride, const Span<typename Op::Input> &span, const Fetch &fetch,
                                            const Begin &begin_of) {
  using T = typename Op::Input;
  constexpr int N = per_load<T>();
  const int rest = i < end ? static_cast<int>((end - i) % stride) : 0;  // of this thread's last pack, if fewer than N
  Pack<T, N> last{};
  if (rest > 0 && rest < N) {
#pragma unroll
    for (int k = 0; k < N - 1; ++k) {
      if (k < rest) last.v[k] = fetch(end - rest + k);
    }
  }
#pragma unroll 1
  for (; i + N <= end; i += Loads * stride) {
    Coming<Dense, T, N> coming[Loads];
#pragma unroll
    for (int u = 0; u < Loads; ++u) {
      const long long at = i + u * stride;
      if (at + N > end) continue;
      const T *from = begin_of(at);
      if (Safe || (from && span.template holds<N>(from))) {
        coming[u].load(from);
      } else {
        coming[u].keep(read_single<T, N>(fetch, at, N));
      }
    }
#pragma unroll
    for (int u = 0; u < Loads; ++u) {
      const long long at = i + u * stride;
      if (at + N <= end) absorb(op, state, coming[u].arrived().v, at);
    }
  }
  if (rest > 0 && rest < N) {
#pragma unroll 1
    for (int k = 0; k < rest; ++k) {
      const T one[1] = {last.v[0]};
      absorb(op, state, one, end - rest + k);
      rotate(last.v);
    }
  }
}

// Up to 128 threads a result, side by side along its elements, each with 16 bytes of them at a time.
// Dense: neighbours in memory and rows that start at multiples of 16 bytes.
template <class Op, bool Dense>
__global__ void __launch_bounds__(kThreads, Dense ? 8 : 6)
    rows(const typename Op::Input *in, typename Op::Output *out, typename Op::State *partials,
         const __grid_constant__ Reduction plan) {
  await_previous();
  let_next_begin();
  using T = typename Op::Input;
  constexpr int N = per_load<T>();
  constexpr int Loads = Dense ? 8 : 4;  // in flight, a thread
  const Op op{plan.setting};
  const int lanes = static_cast<int>(plan.lanes);
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const long long part = static_cast<long long>(blockIdx.x) * (kThreads / lanes) + threadIdx.x / lanes;
  const long long row = plan.chunks == 1 ? part : part / plan.chunks;
  const long long begin = (part - row * plan.chunks) * plan.chunk;
  long long end = begin + plan.chunk;
  if (end > plan.reduced.size) end = plan.reduced.size;
  typename Op::State state = op.identity();
  long long at[2] = {0, 0};
  const bool present = row < plan.kept.size;
  if (present) place(plan.kept, row, at);
  const T *first = in + at[0] + plan.reduced.start[0];
  const int axes = static_cast<int>(plan.reduced.ndim);
  const long long step = Dense || axes == 0 ? 1 : plan.reduced.stride[0][axes - 1];
  const auto fetch = [&](long long k) {
    if (Dense || axes <= 1) return first[k * step];
    long long where[1];
    place_by_axes(plan.reduced, k, where);
    return in[at[0] + where[0]];
  };
  if (present) {
    const long long stride = static_cast<long long>(lanes) * N;
    long long i = begin + lane * N;
    const Span<T> span{in, in + plan.span};
    const auto linear = [&](long long k) { return first + k; };
    const bool safe = Dense || (axes <= 1 && step == 1 && span.template holds<N>(first + begin) &&
                                span.template holds<N>(first + end - N));
    if (safe) {
      const auto side_by_side = [&](long long k) { return first[k]; };
      enter_packs<Dense, true, Loads>(op, state, i, end, stride, span, side_by_side, linear);
    } else if (step == 1) {
      const long long extent = axes > 1 ? plan.reduced.shape[axes - 1] : plan.reduced.size;
      const bool small = plan.reduced.size <= 0x7fffffffLL;
      const auto begin_of = [&](long long k) -> const T * {
        if (axes <= 1) return linear(k);
        const long long above = small ? static_cast<unsigned>(k) / static_cast<unsigned>(extent) : k / extent;
        const long long in_row = k - above * extent;
        if (in_row + N > extent) return nullptr;
        if (axes == 2) return first + above * plan.reduced.stride[0][0] + in_row;
        long long where[1];
        place_by_axes(plan.reduced, k, where);
        return in + at[0] + where[0];
      };
      enter_packs<false, false, kSlots>(op, state, i, end, stride, span, fetch, begin_of);
    } else if (axes <= 1) {
      const auto next = [&](long long k) { return first[k * step]; };
      for (; i < end; i += stride) enter<N>(op, state, i, end, next);
    } else {
#pragma unroll 1
      for (; i < end; i += stride) enter<N>(op, state, i, end, fetch);
    }
  }
  state = fold(op, state, lanes);
  if (lane == 0 && present) {
    settle<N>(op, state, end, fetch);
    deliver(op, state, plan.chunks, part, partials, out + at[1]);
  }
}

// The columns of a few rows, `height` apart: neighbours of dense rows, of others `apart` from the first, `each` of
// them. Of more rows than there are the first is loaded again. All places are known before the first load.
template <bool Dense, int Count, int N, class T, class Linear, class Begin>
__device__ __forceinline__ void load_rows(Pack<T, N> (&packs)[Count], bool linear, const Linear &linear_at,
                                          const Begin &row_at, long long row, int height, int rows, int each,
                                          const long long (&apart)[N]) {
  const T *from[Count];
  if (Dense || linear) {
#pragma unroll
    for (int u = 0; u < Count; ++u) from[u] = linear_at(u < rows ? row + u * height : row);
  } else {
#pragma unroll
    for (int u = 0; u < Count; ++u) from[u] = row_at(u < rows ? row + u * height : row);
  }
#pragma unroll
  for (int u = 0; u < Count; ++u) {
    if constexpr (Dense) {
      packs[u] = load_once<N>(from[u]);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) packs[u].v[k] = k < each ? from[u][apart[k]] : T{};
    }
  }
}

// A thread for up to four columns of results, or two where twice as many of their small elements enter together,
// `height` threads for the elements of each, by their number. Dense: one axis is reduced; `columns` and the strides of
// the others are multiples of the few, which are neighbours at such a multiple. Else a thread's columns are as far
// apart as there are lanes, so that a warp's loads lie side by side wherever rows begin.
template <class Op, bool Dense>
__global__ void __launch_bounds__(kThreads, blocks_of<Dense>())
    columns(const typename Op::Input *in, typename Op::Output *out, typename Op::State *partials,
            const __grid_constant__ Reduction plan) {
  let_next_begin();
  using T = typename Op::Input;
  using State = typename Op::State;
  constexpr int Max = !Dense && per_load<T>() > 4 ? 2 : 4;
  constexpr int N = per_load<T>() < Max ? per_load<T>() : Max;
  constexpr int Loads = per_load<T>() > 4 ? 16 : 8;  // in flight, a thread; also how many elements enter together
  constexpr int kLeft = Loads / 2;                   // in flight where fewer rows are left
  const Op op{plan.setting};
  const int lanes = static_cast<int>(plan.lanes), height = static_cast<int>(plan.height);
  const int each = static_cast<int>(plan.each), apart = Dense ? 1 : lanes;
  const int x = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int y = static_cast<int>(threadIdx.x) / lanes & (height - 1);
  const int group = static_cast<int>(threadIdx.x) / (lanes * height), groups = kThreads / (lanes * height);
  const unsigned tiles = static_cast<unsigned>((plan.columns + lanes * each - 1) / (lanes * each));
  const unsigned above = blockIdx.x / tiles;
  const long long column = static_cast<long long>(blockIdx.x - above * tiles) * lanes * each + (Dense ? x * N : x);
  const long long part = static_cast<long long>(above) * groups + group;
  const long long outer = part / plan.chunks;
  const long long chunk = part - outer * plan.chunks;
  const auto present = [&](int k) { return outer < plan.kept.size && k < each && column + k * apart < plan.columns; };
  long long at[2] = {0, 0};
  if (present(0)) place(plan.kept, outer, at);
  const T *first = in + at[0] + column * plan.column_stride;
  long long offsets[N];
  for (int k = 0; k < N; ++k) offsets[k] = present(k) ? k * apart * plan.column_stride : 0;
  const bool linear = plan.reduced.ndim <= 1;
  const auto linear_at = [&](long long row) { return first + plan.reduced.start[0] + row * plan.reduced.stride[0][0]; };
  const auto row_at = [&](long long row) {
    long long where[1];
    place_by_axes(plan.reduced, row, where);
    return first + where[0];
  };
  State state[N];
  for (int k = 0; k < N; ++k) state[k] = op.identity();
  long long row = chunk * plan.chunk;
  long long end = row + plan.chunk;
  if (end > plan.reduced.size) end = plan.reduced.size;
  row += y;
  if (present(0)) {
#pragma unroll 1
    for (; row + (Loads - 1) * height < end; row += Loads * height) {
      Pack<T, N> packs[Loads];
      load_rows<Dense>(packs, linear, linear_at, row_at, row, height, Loads, each, offsets);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        T values[Loads];
        for (int u = 0; u < Loads; ++u) values[u] = packs[u].v[k];
        state[k] = op.combine(state[k], op.batch(values, row, height));
      }
    }
#pragma unroll 1
    while (row < end) {  // what is left enters one by one; some of their loads are under way together
      int rows = 1;
      for (int u = 1; u < kLeft; ++u) rows += row + u * height < end;
      Pack<T, N> packs[kLeft];
      load_rows<Dense>(packs, linear, linear_at, row_at, row, height, rows, each, offsets);
#pragma unroll
      for (int u = 0; u < kLeft; ++u) {
        if (u < rows) {
#pragma unroll
          for (int k = 0; k < N; ++k) {
            const T one[1] = {packs[u].v[k]};
            state[k] = op.combine(state[k], op.batch(one, row + u * height, height));
          }
        }
      }
      row += rows * height;
    }
  }
  __shared__ State parts[kThreads];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (k >= each) break;
    if (height > 1) {
      __syncthreads();
      parts[threadIdx.x] = state[k];
#pragma unroll 1
      for (int distance = height / 2; distance > 0; distance /= 2) {
        __syncthreads();
        if (y < distance) {
          state[k] = op.combine(state[k], parts[threadIdx.x + distance * lanes]);
          parts[threadIdx.x] = state[k];
        }
      }
    }
    if (y == 0 && present(k)) {
      const long long own = column + k * apart;
      const long long result = (outer * plan.columns + own) * plan.chunks + chunk;
      deliver(op, state[k], plan.chunks, result, partials, out + at[1] + own * plan.column_out_stride);
    }
  }
}

}  // namespace pk
