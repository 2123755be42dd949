// scan_chunks.cu: the scan of a Mamba-2 layer over a part of a prompt, its chunks side by side.
//
// chunk_states() gives what each chunk that ends in the part adds to the state, pass_states() carries the state from
// chunk to chunk, and scan_chunks() computes rows by products within their chunk and with the state where it began.
// Each sum goes over all positions of a chunk, those before the part out of the cache: a row's bits do not depend on
// how a prompt was cut.
#include "mamba.cuh"

namespace pk {

constexpr int kTile = 64;  // rows and columns of a tile of an output, of which a thread has 4 by 4
constexpr int kEach = 4;

struct alignas(16) Tile {  // an operand: 64 of the summed index by 64 rows, or columns
  float at[kTile][kTile + 4];
};

// tile[k][c] = value(k, c). AlongK: neighbours in memory have neighbouring k, else neighbouring c.
template <bool AlongK, class F>
__device__ __forceinline__ void fill(Tile &tile, F value) {
  for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
    const int k = AlongK ? i % kTile : i / kTile, c = AlongK ? i / kTile : i % kTile;
    tile.at[k][c] = value(k, c);
  }
}

__device__ __forceinline__ int first_row() { return static_cast<int>(threadIdx.x) / (kTile / kEach) * kEach; }
__device__ __forceinline__ int first_column() { return static_cast<int>(threadIdx.x) % (kTile / kEach) * kEach; }

// sum[i][j] += a[k][row i] b[k][column j], for k upwards. Causal: of row i, k up to i; what lies behind is not looked
// at.
template <bool Causal>
__device__ __forceinline__ void accumulate(const Tile &a, const Tile &b, float (&sum)[kEach][kEach]) {
  const int row = first_row(), column = first_column();
  const auto add = [&](int k, int skipped) {
    const Pack<float, kEach> left = load_pack<kEach>(&a.at[k][row]), right = load_pack<kEach>(&b.at[k][column]);
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
      for (int j = 0; j < kEach; ++j)
        if (i >= skipped) sum[i][j] += left.v[i] * right.v[j];
  };
  const int whole = Causal ? row : kTile;
#pragma unroll 4
  for (int k = 0; k < whole; ++k) add(k, 0);
  if constexpr (Causal) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) add(row + i, i);
  }
}

// The chunk of a part that a block's y stands for: of its positions `filled` are known, the first `-own` before the
// part.
template <class T>
struct Chunk {
  const T *rows, *kept_rows;
  const float *steps, *kept_steps;
  long long own, filled, channels, heads;

  __device__ __forceinline__ const T *row(int s) const {
    return own + s >= 0 ? rows + (own + s) * channels : kept_rows + s * channels;
  }
  __device__ __forceinline__ float step(int s, long long head) const {
    return own + s >= 0 ? steps[(own + s) * heads + head] : kept_steps[s * heads + head];
  }
};

template <class T>
__device__ __forceinline__ Chunk<T> chunk_of(const Part &part, const T *rows, const float *steps, const T *kept_rows,
                                             const float *kept_steps, const MambaCall &call) {
  const long long begin = (part.start / kChunk + blockIdx.y) * kChunk, left = part.start + part.count - begin;
  return {rows + part.first * call.channels,
          kept_rows + part.slot * kChunk * call.channels,
          steps + part.first * call.heads,
          kept_steps + part.slot * kChunk * call.heads,
          begin - part.start,
          left < kChunk ? left : kChunk,
          call.channels,
          call.heads};
}

// Lengths of a chunk's steps, 0 where there is no position yet, and their running sums.
template <class T>
__device__ __forceinline__ void load_steps(const Chunk<T> &chunk, long long head, float rate_log, float *length,
                                           Total *total) {
  for (int s = threadIdx.x; s < kChunk; s += kThreads) length[s] = s < chunk.filled ? chunk.step(s, head) : 0.0f;
  __syncthreads();
  sum_steps(length, rate_log, total);
  __syncthreads();
}

// What a chunk adds to the state, (dim, state) of each head, and the factor by which what was there before falls.
// Blocks in x are heads, in y chunks, in z tiles.
template <class T>
__global__ void __launch_bounds__(kThreads)
    chunk_states(const int *positions, const int *slots, const T *rows, const float *steps, const T *kept_rows,
                 const float *kept_steps, const float *rate_logs, float *added, float *falls,
                 const __grid_constant__ MambaCall call) {
  __shared__ Tile x, b;
  __shared__ float length[kChunk];
  __shared__ Total total[kChunk];
  const long long head = blockIdx.x, group = head / (call.heads / call.groups), dim = call.dim, n = call.state;
  const long long across = (n + kTile - 1) / kTile, p0 = blockIdx.z / across * kTile, n0 = blockIdx.z % across * kTile;
  const Part part = part_of(positions, slots, 0, call);
  const Chunk<T> chunk = chunk_of(part, rows, steps, kept_rows, kept_steps, call);
  load_steps(chunk, head, rate_logs[head], length, total);
  fill<false>(x, [&](int s, int p) {
    if (p0 + p >= dim) return 0.0f;
    return widen(chunk.row(s)[head * dim + p0 + p]) * (fall(total[kChunk - 1], total[s]) * length[s]);
  });
  fill<false>(b,
              [&](int s, int i) { return n0 + i < n ? widen(chunk.row(s)[call.inner + group * n + n0 + i]) : 0.0f; });
  __syncthreads();
  float sum[kEach][kEach] = {};
  accumulate<false>(x, b, sum);
  const long long place = blockIdx.y * call.heads + head;
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const long long p = p0 + first_row() + i, column = n0 + first_column() + j;
      if (p < dim && column < n) added[(place * dim + p) * n + column] = sum[i][j];
    }
  if (blockIdx.z == 0 && threadIdx.x == 0) falls[place] = fall(total[kChunk - 1]);
}

// A thread for each number of the state: what `chunks` chunks add becomes the state where each begins, and the cache's
// state the one behind the last of them.
__global__ void __launch_bounds__(kThreads)
    pass_states(const int *positions, const int *slots, const float *falls, float *added, float *states,
                const __grid_constant__ MambaCall call) {
  const long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  const long long each = call.dim * call.state, size = call.heads * each;
  const Part part = part_of(positions, slots, 0, call);
  if (i >= size) return;
  const long long chunks = (part.start + part.count) / kChunk - part.start / kChunk;
  float *kept = states + part.slot * size + i;
  float state = part.start >= kChunk ? *kept : 0.0f;
  for (long long chunk = 0; chunk < chunks; ++chunk) {
    const float more = added[chunk * size + i];
    added[chunk * size + i] = state;
    state = falls[chunk * call.heads + i / each] * state + more;
  }
  *kept = state;
}

// The part's rows: out = (what the state where the chunk began gives, what the chunk's rows up to this one give, and
// D x), times silu(z), float32. begun: the states where chunks begin that end in the part, the one behind them is the
// cache's. Blocks in x are heads, in y chunks, in z tiles of a head's elements.
template <class T>
__global__ void __launch_bounds__(kThreads)
    scan_chunks(const T *projected, const int *positions, const int *slots, const T *rows, const float *steps,
                const T *kept_rows, const float *kept_steps, const float *begun, const float *states,
                const float *rate_logs, const T *skips, float *out, const __grid_constant__ MambaCall call) {
  __shared__ Tile a, b;
  __shared__ float length[kChunk];
  __shared__ Total total[kChunk];
  const long long head = blockIdx.x, group = head / (call.heads / call.groups), dim = call.dim, n = call.state;
  const long long p0 = static_cast<long long>(blockIdx.z) * kTile, of_b = call.inner + group * n,
                  of_c = of_b + call.groups * n, of_x = head * dim + p0;
  const Part part = part_of(positions, slots, 0, call);
  const Chunk<T> chunk = chunk_of(part, rows, steps, kept_rows, kept_steps, call);
  const int filled = static_cast<int>(chunk.filled), row = first_row(), column = first_column();
  load_steps(chunk, head, rate_logs[head], length, total);
  float scores[kEach][kEach] = {}, sum[kEach][kEach] = {}, before[kEach][kEach] = {};
  for (long long n0 = 0; n0 < n; n0 += kTile) {
    fill<true>(a, [&](int i, int q) { return q < filled && n0 + i < n ? widen(chunk.row(q)[of_c + n0 + i]) : 0.0f; });
    fill<true>(b, [&](int i, int s) { return s < filled && n0 + i < n ? widen(chunk.row(s)[of_b + n0 + i]) : 0.0f; });
    __syncthreads();
    accumulate<false>(a, b, scores);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int q = row + i, s = column + j;
      a.at[s][q] = s <= q ? scores[i][j] * fall(total[q], total[s]) * length[s] : 0.0f;
    }
  fill<false>(b, [&](int s, int p) { return s < filled && p0 + p < dim ? widen(chunk.row(s)[of_x + p]) : 0.0f; });
  __syncthreads();
  accumulate<true>(a, b, sum);
  if (part.start + chunk.own > 0) {  // the chunk's first position: a state is there
    const bool ends = filled == kChunk;
    const float *state =
        ends ? begun + (blockIdx.y * call.heads + head) * dim * n : states + (part.slot * call.heads + head) * dim * n;
    for (long long n0 = 0; n0 < n; n0 += kTile) {
      __syncthreads();
      fill<true>(a, [&](int i, int q) { return q < filled && n0 + i < n ? widen(chunk.row(q)[of_c + n0 + i]) : 0.0f; });
      fill<true>(b, [&](int i, int p) { return p0 + p < dim && n0 + i < n ? state[(p0 + p) * n + n0 + i] : 0.0f; });
      __syncthreads();
      accumulate<false>(a, b, before);
    }
  }
  const float skip = widen(skips[head]);
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int q = row + i, p = column + j;
      const long long own = chunk.own + q;
      if (q >= filled || own < 0 || p0 + p >= dim) continue;
      const float y = fall(total[q]) * before[i][j] + sum[i][j] + skip * widen(chunk.row(q)[of_x + p]);
      out[(part.first + own) * call.inner + of_x + p] =
          y * silu(widen(projected[(part.first + own) * call.width + of_x + p]));
    }
}

}  // namespace pk
