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
constexpr int kSlots = 4;  // loads of a thread that are under way together where they may begin anywhere

// On an SM, at least. With more a compiler keeps too few loads in flight; loads that begin anywhere take two packs
// each.
template <bool Dense>
__host__ __device__ constexpr int blocks_of() {
  return Dense ? 8 : 5;
}

struct Reduction {
  Layout<2> kept;     // one result each: input and output; for columns() without the axis of the columns
  Layout<1> reduced;  // the elements of one result
  long long columns, column_stride, column_out_stride;
  long long lanes;          // rows: threads a result; columns: threads side by side; a power of two
  long long chunk, chunks;  // elements of a result in one part, parts of a result
  long long together;       // rows: short ones that a group of threads takes at once; kSlots is a multiple
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

// The first elements of a pack, fewer than all, which nothing comes after.
template <int N, class Op>
__device__ __forceinline__ void enter_last(const Op &op, typename Op::State &state, Pack<typename Op::Input, N> pack,
                                           long long i, long long end) {
#pragma unroll 1
  for (; i < end; ++i) {
    const typename Op::Input one[1] = {pack.v[0]};
    absorb(op, state, one, i);
    rotate(pack.v);
  }
}

// Rows of neighbouring elements, kSlots packs a thread or fewer, several for each group of threads: all loads are under
// way before the first row is added up.
template <class Op>
__device__ __forceinline__ void short_rows(const Op &op, const typename Op::Input *in, typename Op::Output *out,
                                           const Reduction &plan) {
  using T = typename Op::Input;
  constexpr int N = per_load<T>();
  const int lanes = static_cast<int>(plan.lanes);
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int groups = kThreads / lanes, together = static_cast<int>(plan.together), each = kSlots / together;
  const long long first = static_cast<long long>(blockIdx.x) * groups * together + threadIdx.x / lanes;
  const long long size = plan.reduced.size;
  const Span<T> span{in, in + plan.span};
  const auto row_of = [&](long long row) {
    return in + plan.kept.start[0] + row * plan.kept.stride[0][0] + plan.reduced.start[0];
  };
  Across<T, N> coming[kSlots];
  const T *from[kSlots];
  bool near[kSlots];
  int left[kSlots];  // elements of a pack, all or fewer; 0: there is none
#pragma unroll
  for (int s = 0; s < kSlots; ++s) {
    const long long row = first + s / each * groups, i = static_cast<long long>(s % each * lanes + lane) * N;
    const bool present = row < plan.kept.size && i < size;
    left[s] = !present ? 0 : size - i < N ? static_cast<int>(size - i) : N;
    from[s] = row_of(row) + i;
    near[s] = present && span.template holds<N>(from[s]);
    if (near[s]) coming[s].load(from[s]);
  }
  Held<T, N> packs[kSlots];
#pragma unroll
  for (int s = 0; s < kSlots; ++s) {
    const T *own = from[s];
    if (left[s] && !near[s]) coming[s].keep(read_few<T, N>([&](long long k) { return own[k]; }, 0, left[s]));
    packs[s] = coming[s].arrived();
  }
  typename Op::State state = op.identity();
#pragma unroll 1
  for (int s = 0; s < kSlots; ++s) {
    const long long i = static_cast<long long>(s % each * lanes + lane) * N;
    if (left[0] == N) {
      absorb(op, state, packs[0].pack().v, i);
    } else {
      enter_last(op, state, packs[0].pack(), i, i + left[0]);
    }
    rotate(packs);
    rotate(left);
    if ((s + 1) % each) continue;
    const long long row = first + s / each * groups;
    state = fold(op, state, lanes);
    if (lane == 0 && row < plan.kept.size) {
      settle<N>(op, state, size, [&](long long k) { return row_of(row)[k]; });
      out[plan.kept.start[1] + row * plan.kept.stride[1][0]] = op.finish(state);
    }
    state = op.identity();
  }
}

// Elements i to end of a result, a pack for each `stride` of them, where neighbours lie side by side but for the ends
// of rows: fetch() gives an element, begin_of() where a pack of them begins, or nullptr.
template <class Op, class Fetch, class Begin>
__device__ __forceinline__ void enter_packs(const Op &op, typename Op::State &state, long long i, long long end,
                                            long long stride, const Span<typename Op::Input> &span, const Fetch &fetch,
                                            const Begin &begin_of) {
  using T = typename Op::Input;
  constexpr int N = per_load<T>();
  Pack<T, N> last{};
  long long last_at = end;
#pragma unroll 1
  for (; i < end; i += kSlots * stride) {
    Across<T, N> coming[kSlots];
    bool near[kSlots];
#pragma unroll
    for (int u = 0; u < kSlots; ++u) {
      const long long at = i + u * stride;
      const T *from = at < end ? begin_of(at) : nullptr;
      near[u] = from && span.template holds<N>(from);
      if (near[u]) coming[u].load(from);
    }
#pragma unroll
    for (int u = 0; u < kSlots; ++u) {
      const long long at = i + u * stride;
      const int left = end - at < N ? static_cast<int>(end - at) : N;
      if (left > 0 && !near[u]) coming[u].keep(read_few<T, N>(fetch, at, left));
    }
#pragma unroll
    for (int u = 0; u < kSlots; ++u) {
      const long long at = i + u * stride;
      if (at >= end) continue;
      const Pack<T, N> pack = coming[u].arrived().pack();
      if (at + N <= end) {
        absorb(op, state, pack.v, at);
      } else {
        last = pack;
        last_at = at;
      }
    }
  }
  enter_last(op, state, last, last_at, end);
}

// Up to 256 threads a result, side by side along its elements, each with 16 bytes of them at a time.
// Dense: neighbours in memory and rows that start at multiples of 16 bytes.
template <class Op, bool Dense>
__global__ void __launch_bounds__(kThreads, blocks_of<Dense>())
    rows(const typename Op::Input *in, typename Op::Output *out, typename Op::State *partials,
         const __grid_constant__ Reduction plan) {
  await_previous();
  let_next_begin();
  using T = typename Op::Input;
  constexpr int N = per_load<T>();
  constexpr int Loads = 8;  // in flight, a thread
  const Op op{plan.setting};
  if constexpr (!Dense) {
    if (plan.together > 1) {
      short_rows(op, in, out, plan);
      return;
    }
  }
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
    if constexpr (Dense) {
      for (; i + (Loads - 1) * stride + N <= end; i += Loads * stride) {
        Pack<T, N> packs[Loads];
#pragma unroll
        for (int u = 0; u < Loads; ++u) packs[u] = load_once<N>(first + i + u * stride);
#pragma unroll
        for (int u = 0; u < Loads; ++u) absorb(op, state, packs[u].v, i + u * stride);
      }
      for (; i + N <= end; i += stride) {
        const Pack<T, N> pack = load_once<N>(first + i);
        absorb(op, state, pack.v, i);
      }
      if (i < end) enter<N>(op, state, i, end, fetch);
    } else if (step == 1) {
      const auto begin_of = [&](long long k) -> const T * {
        if (axes <= 1) return first + k;
        const long long extent = plan.reduced.shape[axes - 1];
        const long long in_row =
            plan.reduced.size <= 0x7fffffffLL ? static_cast<unsigned>(k) % static_cast<unsigned>(extent) : k % extent;
        if (in_row + N > extent) return nullptr;
        long long where[1];
        place_by_axes(plan.reduced, k, where);
        return in + at[0] + where[0];
      };
      enter_packs(op, state, i, end, stride, Span<T>{in, in + plan.span}, fetch, begin_of);
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

// The packs of a few rows, `height` apart, that are there. columns: elements of a pack that are a result's. linear:
// rows lie one after the other, so that the others' packs are within the span where those of the first and the last
// are.
template <bool Dense, int Count, int N, class T, class Begin>
__device__ __forceinline__ void load_rows(Pack<T, N> (&packs)[Count], const Begin &row_at, long long row, int height,
                                          int rows, int columns, long long step, bool linear, const Span<T> &span) {
  const T *from[Count];
#pragma unroll
  for (int u = 0; u < Count; ++u) from[u] = row_at(u < rows ? row + u * height : row);
  bool near = step == 1;
  if constexpr (!Dense) {
    if (linear) {
      near = near && span.template holds<N>(from[0]) && span.template holds<N>(row_at(row + (rows - 1) * height));
    } else {
#pragma unroll
      for (int u = 0; u < Count; ++u) near = near && span.template holds<N>(from[u]);
    }
  }
  if (Dense) {
#pragma unroll
    for (int u = 0; u < Count; ++u) packs[u] = load_once<N>(from[u]);
  } else if (near) {
    constexpr int Half = Count > kSlots ? Count / 2 : Count;  // of their registers, while the others are on their way
#pragma unroll
    for (int first = 0; first < Count; first += Half) {
      Across<T, N> coming[Half];
#pragma unroll
      for (int u = 0; u < Half; ++u) coming[u].load(from[first + u]);
#pragma unroll
      for (int u = 0; u < Half; ++u) packs[first + u] = coming[u].arrived().pack();
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) {
#pragma unroll
      for (int u = 0; u < Count; ++u) packs[u].v[k] = from[u][k < columns ? k * step : 0];
    }
  }
}

// A thread for a few neighbouring results, 128 / lanes threads for the elements of each, by their number.
// Dense: one axis is reduced; `columns` and the strides of the others are multiples of the few, which are neighbours at
// such a multiple.
template <class Op, bool Dense>
__global__ void __launch_bounds__(kThreads, blocks_of<Dense>())
    columns(const typename Op::Input *in, typename Op::Output *out, typename Op::State *partials,
            const __grid_constant__ Reduction plan) {
  let_next_begin();
  using T = typename Op::Input;
  using State = typename Op::State;
  constexpr int N = per_load<T>() < 4 ? per_load<T>() : 4;
  constexpr int Loads = per_load<T>() > 4 ? 16 : 8;  // in flight, a thread; also how many elements enter together
  const Op op{plan.setting};
  const int lanes = static_cast<int>(plan.lanes);
  const int x = static_cast<int>(threadIdx.x) & (lanes - 1);
  const int y = static_cast<int>(threadIdx.x) / lanes;
  const int height = kThreads / lanes;
  const unsigned tiles = static_cast<unsigned>((plan.columns + lanes * N - 1) / (lanes * N));
  const unsigned above = blockIdx.x / tiles;
  const long long column = (static_cast<long long>(blockIdx.x - above * tiles) * lanes + x) * N;
  const long long outer = above / static_cast<unsigned>(plan.chunks);
  const long long chunk = above - outer * plan.chunks;
  const long long left = plan.columns - column;
  const int present = left <= 0 ? 0 : left < N ? static_cast<int>(left) : N;
  long long at[2];
  place(plan.kept, outer, at);
  const T *first = in + at[0] + column * plan.column_stride;
  const Span<T> span{in, in + plan.span};
  const bool linear = plan.reduced.ndim <= 1;
  const auto row_at = [&](long long row) {
    if constexpr (Dense) return first + plan.reduced.start[0] + row * plan.reduced.stride[0][0];
    long long where[1] = {plan.reduced.start[0] + row * plan.reduced.stride[0][0]};
    if (!linear) place_by_axes(plan.reduced, row, where);
    return first + where[0];
  };
  State state[N];
  for (int k = 0; k < N; ++k) state[k] = op.identity();
  long long row = chunk * plan.chunk;
  long long end = row + plan.chunk;
  if (end > plan.reduced.size) end = plan.reduced.size;
  row += y;
  if (present) {
#pragma unroll 1
    for (; row + (Loads - 1) * height < end; row += Loads * height) {
      Pack<T, N> packs[Loads];
      load_rows<Dense>(packs, row_at, row, height, Loads, present, plan.column_stride, linear, span);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        T values[Loads];
        for (int u = 0; u < Loads; ++u) values[u] = packs[u].v[k];
        state[k] = op.combine(state[k], op.batch(values, row, height));
      }
    }
#pragma unroll 1
    while (row < end) {  // what is left enters one by one; a few of their loads are under way together
      int rows = 1;
      for (int u = 1; u < kSlots; ++u) rows += row + u * height < end;
      Pack<T, N> packs[kSlots];
      load_rows<Dense>(packs, row_at, row, height, rows, present, plan.column_stride, linear, span);
#pragma unroll 1
      for (int u = 0; u < rows; ++u, row += height) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const T one[1] = {packs[0].v[k]};
          state[k] = op.combine(state[k], op.batch(one, row, height));
        }
        rotate(packs);
      }
    }
  }
  __shared__ State parts[kThreads];
#pragma unroll
  for (int k = 0; k < N; ++k) {
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
    if (y == 0 && k < present) {
      const long long result = (outer * plan.columns + column + k) * plan.chunks + chunk;
      deliver(op, state[k], plan.chunks, result, partials, out + at[1] + (column + k) * plan.column_out_stride);
    }
  }
}

}  // namespace pk
