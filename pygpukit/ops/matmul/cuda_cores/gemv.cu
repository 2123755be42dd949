// gemv.cu: products of few rows with a large right operand, on CUDA cores: as fast as it can be read.
//
// What takes the time is how many bytes of b are on their way at once. So a block makes few columns of the result, and
// asks for b some steps ahead, by copies to shared memory that no register waits for. A sum stays with one thread and
// runs as in strided.cu, over k in ascending order: the same bits.
#include "ahead.cuh"
#include "epilogue.cuh"
#include "gemm.cuh"
#include "pack.cuh"

namespace pk {

constexpr int kGemvColumns = 32;  // that a block makes, one a lane
constexpr int kGemvWarps = 4;
constexpr int kGemvRows = 4;  // of a warp
constexpr int kGemvThreads = 32 * kGemvWarps;
constexpr int kStepBytes = 256;  // of a line along k, that are read a step
constexpr int kPackBytes = 16;
constexpr int kStages = 5;     // steps that shared memory holds: one in use, the others on their way
constexpr int kGemvBlocks = 3;  // that a multiprocessor's shared memory holds

// A matrix as copies walk it. packs: 16 bytes of neighbours along the inner axis can be copied as one.
template <class T>
struct Walk {
  const T *data;
  long long outers, inners, outer_stride, inner_stride;
  bool packs;
};

template <class T>
__device__ __forceinline__ Walk<T> walk(const T *data, long long outers, long long inners, long long outer_stride,
                                        long long inner_stride) {
  constexpr int kPack = kPackBytes / sizeof(T);
  const bool packs = inner_stride == 1 && outer_stride % kPack == 0 && aligned<kPack>(data);
  return {data, outers, inners, outer_stride, inner_stride, packs};
}

// Copies Outers x Inners elements to `to`, whose outer lines are Pitch apart; zeros outside.
template <int Outers, int Inners, int Pitch, class T>
__device__ __forceinline__ void copy_block(const Walk<T> &from, long long outer0, long long inner0, T *to) {
  constexpr int kPack = kPackBytes / sizeof(T), kAcross = Inners / kPack, kDown = kGemvThreads / kAcross;
  static_assert(kGemvThreads % kAcross == 0 && Outers % kDown == 0, "each thread copies from every kDown-th line");
  if (from.packs && inner0 + Inners <= from.inners) {  // most steps: little arithmetic, which copies would wait for
    const long long outer = outer0 + threadIdx.x / kAcross;
    const int inner = threadIdx.x % kAcross * kPack;
    const T *source = from.data + outer * from.outer_stride + (inner0 + inner);
    const long long step = kDown * from.outer_stride;
    T *const target = to + threadIdx.x / kAcross * Pitch + inner;
#pragma unroll
    for (int i = 0; i < Outers; i += kDown, source += step) {
      const bool there = outer + i < from.outers;
      copy_ahead<kPack>(target + i * Pitch, there ? source : from.data, there ? kPack : 0);
    }
    return;
  }
  for (int i = threadIdx.x; i < Outers * kAcross; i += kGemvThreads) {
    const int outer = i / kAcross, inner = i % kAcross * kPack;
    T *target = to + outer * Pitch + inner;
    const long long left = outer0 + outer < from.outers ? from.inners - (inner0 + inner) : 0;
    const int count = left < 0 ? 0 : left < kPack ? static_cast<int>(left) : kPack;
    const T *source = from.data;
    if (count) source += (outer0 + outer) * from.outer_stride + (inner0 + inner) * from.inner_stride;
    if (from.packs) {
      copy_ahead<kPack>(target, source, count);
    } else {
      for (int j = 0; j < kPack; ++j)
        copy_ahead<1>(target + j, j < count ? source + j * from.inner_stride : from.data, j < count);
    }
  }
}

// c = after(a @ b), but not of kSwiglu; a block makes kGemvWarps * kGemvRows rows. AlongK: elements of b that lie
// together along k are copied as one where they are dense, else those along n. The operands: a, b, c, residual.
template <class T, bool AlongK>
__global__ void __launch_bounds__(kGemvThreads, kGemvBlocks)
    gemv(const T *a, const T *b, const T *bias, const T *residual, T *c, const __grid_constant__ GemmLayout<4> p,
        const __grid_constant__ Epilogue after) {
  using A = accumulator_t<T>;
  constexpr int kPack = kPackBytes / sizeof(T), kStep = kStepBytes / sizeof(T), kPitch = kStep + kPack;
  constexpr int kWeight = AlongK ? kGemvColumns * kPitch : kStep * kGemvColumns;
  constexpr int kStage = kWeight + kGemvWarps * kGemvRows * kPitch;
  extern __shared__ __align__(16) unsigned char gemv_memory[];
  T *const stages = reinterpret_cast<T *>(gemv_memory);
  const long long column0 = static_cast<long long>(blockIdx.x) * kGemvColumns;
  const long long row0 = static_cast<long long>(blockIdx.z) * (kGemvWarps * kGemvRows);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = static_cast<int>((p.k + kStep - 1) / kStep);
  const long long own_row0 = row0 + warp * kGemvRows;
#pragma unroll 1
  for (long long batch = blockIdx.y; batch < p.batches; batch += gridDim.y) {
    long long at[4];
    batch_offsets(p, batch, at);
    const Walk<T> rows = walk(a + at[0], p.m, p.k, p.row[0], p.column[0]);
    const Walk<T> weight =
        AlongK ? walk(b + at[1], p.n, p.k, p.column[1], p.row[1]) : walk(b + at[1], p.k, p.n, p.row[1], p.column[1]);
    const auto ask = [&](int step) {
      T *const to = stages + step % kStages * kStage;
      const long long k0 = static_cast<long long>(step) * kStep;
      if (step < steps) {
        if constexpr (AlongK)
          copy_block<kGemvColumns, kStep, kPitch>(weight, column0, k0, to);
        else
          copy_block<kStep, kGemvColumns, kGemvColumns>(weight, k0, column0, to);
        copy_block<kGemvWarps * kGemvRows, kStep, kPitch>(rows, row0, k0, to + kWeight);
      }
      end_stage();
    };
    for (int step = 0; step < kStages - 1; ++step) ask(step);
    A sum[kGemvRows] = {};
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_stage<kStages - 2>();
      __syncthreads();
      ask(step + kStages - 1);
      const T *const own = stages + step % kStages * kStage, *const row = own + kWeight + warp * kGemvRows * kPitch;
      const long long left = (p.k - static_cast<long long>(step) * kStep + kDepth - 1) / kDepth * kDepth;
      const int depth = left < kStep ? static_cast<int>(left) : kStep;  // gemm.cuh adds zeros up to whole kDepth, too
      if (own_row0 >= p.m) continue;
#pragma unroll 4
      for (int d = 0; d < depth; d += kPack) {
        Pack<T, kPack> numbers;
        if constexpr (AlongK) {
          numbers = load<kPack>(own + lane * kPitch + d);
        } else {
          for (int j = 0; j < kPack; ++j) numbers.v[j] = own[(d + j) * kGemvColumns + lane];
        }
        Pack<T, kPack> others[kGemvRows];  // all are asked for before one is waited for
#pragma unroll
        for (int r = 0; r < kGemvRows; ++r) others[r] = load<kPack>(row + r * kPitch + d);
#pragma unroll
        for (int j = 0; j < kPack; ++j) {
          const A number = convert<A>::from(numbers.v[j]);
#pragma unroll
          for (int r = 0; r < kGemvRows; ++r) sum[r] = add_product(sum[r], convert<A>::from(others[r].v[j]), number);
        }
      }
    }
    __syncthreads();  // the stages are free for the next matrices
    const long long column = column0 + lane;
    for (int r = 0; r < kGemvRows; ++r) {
      const long long line = own_row0 + r;
      if (line >= p.m || column >= p.n) continue;
      const T *other = residual + (at[3] + line * p.row[3] + column * p.column[3]);
      c[at[2] + line * p.row[2] + column * p.column[2]] =
          convert<T>::from(finished(after, sum[r], A(0), bias, column, other));
    }
  }
}

}  // namespace pk
