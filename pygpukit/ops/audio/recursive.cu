// recursive.cu: filters that feed back, in chunks: what each chunk does to the state it begins with, the states along
// the chunks, then every chunk from its own state.
#include "numeric.cuh"

namespace pk {

struct RecursiveWork {
  long long lines, length;
  long long chunk, chunks;  // samples of a chunk, chunks of a line
  double decay;             // of DecayingPeak: what is left of the state after a sample
  double decay_chunk;       // and after a chunk
};

// The difference equation, transposed direct form II. table: b[0 .. N], a[1 .. N], and the matrix (N, N) that a state
// is multiplied with by a chunk of zeros.
template <int N>
struct Linear {
  static constexpr int kStates = N;
  const double *table;
  __device__ Linear(const double *table, const RecursiveWork &) : table(table) {}
  __device__ double step(double (&state)[N], double x) const {
    const double *const a = table + N;
    const double y = table[0] * x + state[0];
    for (int k = 1; k < N; ++k) state[k - 1] = table[k] * x + state[k] - a[k] * y;
    state[N - 1] = table[N] * x - a[N] * y;
    return y;
  }
  // By N neighbouring lanes, each with one number of the state. state: before a chunk; after: what a state of zeros is
  // after it.
  __device__ double advance(double state, double after) const {
    const double *const power = table + 2 * N + 1 + threadIdx.x % N * N;
    for (int k = 0; k < N; ++k) after += power[k] * __shfl_sync(~0u, state, k, N);
    return after;
  }
};

// y[n] = max(x[n], decay * y[n - 1]): follows peaks at once and lets go of them slowly.
struct DecayingPeak {
  static constexpr int kStates = 1;
  double decay, decay_chunk;
  __device__ DecayingPeak(const double *, const RecursiveWork &work)
      : decay(work.decay), decay_chunk(work.decay_chunk) {}
  __device__ double step(double (&state)[1], double x) const {
    const double held = decay * state[0];
    return state[0] = x > held || x != x ? x : held;
  }
  __device__ double advance(double state, double after) const {
    const double held = decay_chunk * state;
    return after > held || after != after ? after : held;
  }
};

struct LineChunk {
  long long line, index, begin, end;
};

__device__ __forceinline__ bool find(const RecursiveWork &work, LineChunk &chunk) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= work.lines * work.chunks) return false;
  chunk.line = i / work.chunks;
  chunk.index = i - chunk.line * work.chunks;
  chunk.begin = chunk.index * work.chunk;
  chunk.end = chunk.begin + work.chunk < work.length ? chunk.begin + work.chunk : work.length;
  return true;
}

// states: (lines, chunks, kStates), of each chunk what zeros become.
template <class T, class F>
__global__ void __launch_bounds__(128)
    chunk_states(const T *x, const double *table, double *states, const __grid_constant__ RecursiveWork work) {
  LineChunk chunk;
  if (!find(work, chunk)) return;
  const F filter(table, work);
  double state[F::kStates] = {};
  const T *const samples = x + chunk.line * work.length;
  for (long long i = chunk.begin; i < chunk.end; ++i) filter.step(state, static_cast<double>(samples[i]));
  double *const own = states + (chunk.line * work.chunks + chunk.index) * F::kStates;
  for (int k = 0; k < F::kStates; ++k) own[k] = state[k];
}

// In place: from what zeros become to what each chunk begins with. initial: (lines, kStates). A lane has one number of
// a line's state.
template <class F>
__global__ void __launch_bounds__(32) chain_states(const double *initial, const double *table, double *states,
                                                   const __grid_constant__ RecursiveWork work) {
  const long long lane = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long line = lane / F::kStates, k = lane % F::kStates;
  const bool there = line < work.lines;  // lanes of no line take part in what a warp does together
  const F filter(table, work);
  double state = there ? initial[lane] : 0.0;
  for (long long chunk = 0; chunk < work.chunks; ++chunk) {
    double *const own = states + (line * work.chunks + chunk) * F::kStates + k;
    const double after = there ? *own : 0.0;
    if (there) *own = state;
    state = filter.advance(state, after);
  }
}

// final: (lines, kStates), what the line leaves behind.
template <class T, class F>
__global__ void __launch_bounds__(128) filter_chunks(const T *x, const double *table, const double *states, T *out,
                                                     double *final, const __grid_constant__ RecursiveWork work) {
  LineChunk chunk;
  if (!find(work, chunk)) return;
  const F filter(table, work);
  double state[F::kStates];
  const double *const own = states + (chunk.line * work.chunks + chunk.index) * F::kStates;
  for (int k = 0; k < F::kStates; ++k) state[k] = own[k];
  const long long base = chunk.line * work.length;
  for (long long i = chunk.begin; i < chunk.end; ++i) {
    out[base + i] = static_cast<T>(filter.step(state, static_cast<double>(x[base + i])));
  }
  if (chunk.end < work.length) return;
  for (int k = 0; k < F::kStates; ++k) final[chunk.line * F::kStates + k] = state[k];
}

}  // namespace pk
