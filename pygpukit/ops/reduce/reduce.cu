// reduce.cu: reductions of any axes of any layout: along rows of memory, across them, and parts of either merged.
//
// Which thread takes which element depends on shapes and strides only. Long reductions are cut into chunks, whose
// states go to `partials`; a second launch, rows<Merge<Op>, true>, makes results of them. It is made while the first
// still runs.
#include "overlap.cuh"
#include "reductions.cuh"

namespace pk {

constexpr int kThreads = 128;
constexpr int kBlocks = 8;  // on an SM: with more, a compiler keeps too few loads in flight

struct Reduction {
  Layout<2> kept;     // one result each: input and output; for columns() without the axis of the columns
  Layout<1> reduced;  // the elements of one result
  long long columns, column_stride, column_out_stride;
  long long lanes;          // rows: threads a result; columns: threads side by side; a power of two
  long long chunk, chunks;  // elements of a result in one part, parts of a result
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

// Up to 256 threads a result, side by side along its elements, each with 16 bytes of them at a time.
// Dense: neighbours in memory and rows that start at multiples of 16 bytes.
template <class Op, bool Dense>
__global__ void __launch_bounds__(kThreads, kBlocks)
    rows(const typename Op::Input *in, typename Op::Output *out, typename Op::State *partials,
         const __grid_constant__ Reduction plan) {
  await_previous();
  let_next_begin();
  using T = typename Op::Input;
  constexpr int N = per_load<T>();
  constexpr int Loads = 8;  // in flight, a thread
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
  if (row < plan.kept.size) {
    place(plan.kept, row, at);
    const T *first = in + at[0] + plan.reduced.start[0];
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
      const auto fetch = [&](long long k) { return first[k]; };
      if (i < end) enter<N>(op, state, i, end, fetch);
      settle<N>(op, state, end, fetch);
    } else if (plan.reduced.ndim <= 1) {
      const long long step = plan.reduced.stride[0][0];
      const auto fetch = [&](long long k) { return first[k * step]; };
      for (; i < end; i += stride) enter<N>(op, state, i, end, fetch);
      settle<N>(op, state, end, fetch);
    } else {
      const auto fetch = [&](long long k) {
        long long place[1];
        place_by_axes(plan.reduced, k, place);
        return in[at[0] + place[0]];
      };
#pragma unroll 1
      for (; i < end; i += stride) enter<N>(op, state, i, end, fetch);
      settle<N>(op, state, end, fetch);
    }
  }
  state = fold(op, state, lanes);
  if (lane == 0 && row < plan.kept.size) deliver(op, state, plan.chunks, part, partials, out + at[1]);
}

// A thread for a few neighbouring results, 256 / lanes threads for the elements of each, by their number.
// Dense: one axis is reduced; `columns` and the strides of the others are multiples of the few, which are neighbours at
// such a multiple.
template <class Op, bool Dense>
__global__ void __launch_bounds__(kThreads, kBlocks)
    columns(const typename Op::Input *in, typename Op::Output *out, typename Op::State *partials,
            const __grid_constant__ Reduction plan) {
  let_next_begin();
  using T = typename Op::Input;
  using State = typename Op::State;
  constexpr int N = !Dense ? 1 : per_load<T>() < 4 ? per_load<T>() : 4;
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
  const bool present = column < plan.columns;
  long long at[2];
  place(plan.kept, outer, at);
  const T *first = in + at[0] + column * plan.column_stride;
  const auto row_at = [&](long long row) {
    if constexpr (Dense) return first + plan.reduced.start[0] + row * plan.reduced.stride[0][0];
    long long where[1] = {plan.reduced.start[0] + row * plan.reduced.stride[0][0]};
    if (plan.reduced.ndim > 1) place_by_axes(plan.reduced, row, where);
    return first + where[0];
  };
  State state[N];
  for (int k = 0; k < N; ++k) state[k] = op.identity();
  long long row = chunk * plan.chunk;
  long long end = row + plan.chunk;
  if (end > plan.reduced.size) end = plan.reduced.size;
  row += y;
  if (present) {
    for (; row + (Loads - 1) * height < end; row += Loads * height) {
      Pack<T, N> packs[Loads];
#pragma unroll
      for (int u = 0; u < Loads; ++u) packs[u] = load_once<N>(row_at(row + u * height));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        T values[Loads];
        for (int u = 0; u < Loads; ++u) values[u] = packs[u].v[k];
        state[k] = op.combine(state[k], op.batch(values, row, height));
      }
    }
#pragma unroll 1
    for (; row < end; row += height) {
      const Pack<T, N> pack = load_once<N>(row_at(row));
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const T one[1] = {pack.v[k]};
        state[k] = op.combine(state[k], op.batch(one, row, height));
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
    if (y == 0 && present) {
      const long long result = (outer * plan.columns + column + k) * plan.chunks + chunk;
      deliver(op, state[k], plan.chunks, result, partials, out + at[1] + (column + k) * plan.column_out_stride);
    }
  }
}

}  // namespace pk
