// aligned.cu: products on tensor cores of matrices whose lines begin at multiples of 16 bytes, from SM 8.0 on.
//
// cp.async keeps some stages of both operands on their way to shared memory. ldmatrix reads the fragments of the next
// 32 bytes of k while mma.sync multiplies those of the last, across stages too. The sum of bfloat16 and float16 over k
// runs as in half.cu and unaligned.cu, by steps of 16 in ascending order in float32: the same bits. int8 is summed in
// int32, exactly. float32 is rounded to tf32, middles away from zero, and summed by steps of 8 in ascending order.
#include "epilogue.cuh"
#include "mma_result.cuh"
#include "swizzled.cuh"

namespace pk {

// Of a and b: elements from the pointer to the first element, between lines and between matrices. matrices, repeat:
// product i has matrix i / repeat % matrices. c: dense. group: of grouped_tile().
struct AlignedCall {
  long long start[2], line[2], step[2];
  int matrices[2], repeat[2], m, n, k, group;
};

// The types that elements are summed in, and of the result.
template <class T>
struct SumOf {
  using Sum = float;
  using Result = T;
};
template <>
struct SumOf<signed char> {
  using Sum = int;
  using Result = int;
};

// A fragment as mma() takes it.
template <class T>
__device__ __forceinline__ void prepare(T, Pair (&)[4]) {}
__device__ __forceinline__ void prepare(float, Pair (&fragment)[4]) {
#pragma unroll
  for (Pair &element : fragment) element = to_tf32(__uint_as_float(element));
}

template <class T>
__device__ __forceinline__ const T *matrix_of(const T *operand, const AlignedCall &p, int which, int product) {
  return operand + (p.start[which] + product / p.repeat[which] % p.matrices[which] * p.step[which]);
}

// The epilogue of rounded sums in shared memory, by the threads that store_tile() lets store them. bias, residual: at
// the tile's first column and element.
template <int Rows, int Columns, int Pitch, int Threads, class T>
__device__ __forceinline__ void finish_tile(T *tile, const T *bias, const T *residual, long long row, int rows,
                                            int columns, const Epilogue &epilogue) {
  constexpr int kPack = Piece<T>::kNumbers;
  const float alpha = static_cast<float>(epilogue.alpha),
              beta = epilogue.has_residual ? static_cast<float>(epilogue.beta) : 1;
  with_activation(epilogue.activation, [&](auto activation) {
#pragma unroll 1
    for (int i = threadIdx.x; i < Rows * Columns / kPack; i += Threads) {
      const int line = i / (Columns / kPack), column = i % (Columns / kPack) * kPack;
      if (line >= rows || column >= columns) continue;
      Piece<T> *const sums = reinterpret_cast<Piece<T> *>(tile + line * Pitch + column);
      Piece<T> done = *sums;
      finish_piece<decltype(activation)::value>(done, piece_at(bias + column, epilogue.has_bias),
                                                piece_at(residual + line * row + column, epilogue.has_residual), alpha,
                                                beta);
      *sums = done;
    }
  });
}

// A block makes Rows x Columns of a product, its warps Down x Across of them.
template <class T, int Rows, int Columns, int Depth, int Down, int Across, int Stages, int Blocks, bool AAlongK,
          bool BAlongK>
__global__ void __launch_bounds__(32 * Down * Across, Blocks)
    mma_aligned(const T *a, const T *b, const T *bias, const T *residual, typename SumOf<T>::Result *c,
                const __grid_constant__ AlignedCall p, const __grid_constant__ Epilogue epilogue) {
  using Sum = typename SumOf<T>::Sum;
  using Result = typename SumOf<T>::Result;
  constexpr int kThreads = 32 * Down * Across, kOwnRows = Rows / Down, kOwnColumns = Columns / Across;
  constexpr int kTilesDown = kOwnRows / 16, kTilesAcross = kOwnColumns / 16;
  constexpr int kStep = 32 / sizeof(T), kSteps = Depth / kStep;  // of k, that one instruction takes
  using Left = SwizzledSide<T, Rows, Depth, AAlongK, kThreads>;
  using Right = SwizzledSide<T, Columns, Depth, BAlongK, kThreads>;
  constexpr int kStage = Left::kSize + Right::kSize, kPitch = Columns + Left::kPack;
  static_assert(kSteps % 2 == 0 && Stages > 1, "fragments take turns");
  static_assert(sizeof(T) == 2 || (AAlongK && BAlongK), "ldmatrix transposes elements of 16 bits");
  static_assert(sizeof(T) != 2 || Stages * kStage >= Rows * kPitch, "the result fits");
  extern __shared__ __align__(128) unsigned char aligned_memory[];
  T *const stages = reinterpret_cast<T *>(aligned_memory);
  const TilePlace place = grouped_tile((p.m + Rows - 1) / Rows, (p.n + Columns - 1) / Columns, p.group);
  const int row0 = place.down * Rows, column0 = place.across * Columns, product = blockIdx.y;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pieces = (p.k + Depth - 1) / Depth;
  const int own_row = warp / Across * kOwnRows, own_column = warp % Across * kOwnColumns;
  Left left(matrix_of(a, p, 0, product) + row0 * (AAlongK ? p.line[0] : 1), p.line[0], p.m - row0, p.k);
  Right right(matrix_of(b, p, 1, product) + column0 * (BAlongK ? p.line[1] : 1), p.line[1], p.n - column0, p.k);

  // Asks for one part of the copies of a stage, of so many.
  const auto copy = [&](int stage, int part, int parts) {
    T *const to = stages + stage * kStage;
#pragma unroll
    for (int i = Left::kCopies * part / parts; i < Left::kCopies * (part + 1) / parts; ++i) left.copy(to, i);
#pragma unroll
    for (int i = Right::kCopies * part / parts; i < Right::kCopies * (part + 1) / parts; ++i)
      right.copy(to + Left::kSize, i);
    if (part == parts - 1) {
      left.advance();
      right.advance();
    }
  };
  Pair rows[2][kTilesDown][4], columns[2][kTilesAcross][4];
  const auto read = [&](int stage, int step) {
    const T *const from = stages + stage * kStage;
#pragma unroll
    for (int i = 0; i < kTilesDown; ++i)
      Left::template fragment<false>(rows[step % 2][i], from, own_row + 16 * i, step * kStep);
#pragma unroll
    for (int j = 0; j < kTilesAcross; ++j)
      Right::template fragment<true>(columns[step % 2][j], from + Left::kSize, own_column + 16 * j, step * kStep);
  };

#pragma unroll
  for (int stage = 0; stage < Stages - 1; ++stage) {
    if (stage < pieces) copy(stage, 0, 1);
    end_stage();
  }
  wait_for_stage<Stages - 2>();
  __syncthreads();
  read(0, 0);
  Sum sums[kTilesDown][2 * kTilesAcross][4] = {};
  int stage = 0, asked = Stages - 1;
#pragma unroll 1
  for (int piece = 0; piece < pieces; ++piece) {
    const int next = stage + 1 < Stages ? stage + 1 : 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + 1 < kSteps) {
        read(stage, step + 1);
        if (piece + Stages - 1 < pieces) copy(asked, step, kSteps - 1);
      } else {
        end_stage();
        wait_for_stage<Stages - 2>();
        __syncthreads();  // the next stage has arrived for all, and nobody reads this one any more
        if (piece + 1 < pieces) read(next, 0);
      }
#pragma unroll
      for (int i = 0; i < kTilesDown; ++i) {
        prepare(T{}, rows[step % 2][i]);
#pragma unroll
        for (int at = 0; at < 2 * kTilesAcross; ++at) {
          const int j = i % 2 ? 2 * kTilesAcross - 1 - at : at;  // to and fro: a fragment is used twice in a row
          Pair(&pair)[4] = columns[step % 2][j / 2];
          if (i == 0 && j % 2 == 0) prepare(T{}, pair);
          const Pair column[2] = {pair[j % 2 * 2], pair[j % 2 * 2 + 1]};
          mma(T{}, sums[i][j], rows[step % 2][i], column);
        }
      }
    }
    asked = stage;
    stage = next;
  }

  const long long first = (static_cast<long long>(product) * p.m + row0) * p.n + column0;
  const int rows_left = p.m - row0, columns_left = p.n - column0;
  // Calls what takes two sums side by side, with the place of the first one in the tile.
  const auto each_pair = [&](const auto &take) {
#pragma unroll
    for (int i = 0; i < kTilesDown; ++i)
#pragma unroll
      for (int j = 0; j < 2 * kTilesAcross; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          take(own_row + 16 * i + 8 * half + lane / 4, own_column + 8 * j + lane % 4 * 2,
               Pack<Result, 2>{convert<Result>::from(sums[i][j][2 * half]),
                               convert<Result>::from(sums[i][j][2 * half + 1])});
  };
  if constexpr (sizeof(T) == 2) {
    __syncthreads();
    each_pair(
        [&](int row, int column, const Pack<T, 2> &pair) { store_pack<2>(stages + row * kPitch + column, pair); });
    __syncthreads();
    if (epilogue.alpha != 1 || epilogue.activation || epilogue.has_bias || epilogue.has_residual)
      finish_tile<Rows, Columns, kPitch, kThreads>(stages, bias + column0, residual + first, p.n, rows_left,
                                                   columns_left, epilogue);
    store_tile<Rows, Columns, kPitch, kThreads>(stages, c + first, p.n, rows_left, columns_left);
  } else {  // four lanes have whole 32 bytes of a row
    const bool whole = p.n % 2 == 0 && phase<2>(c) == 0;
    each_pair([&](int row, int column, const Pack<Result, 2> &pair) {
      if (row >= rows_left) return;
      Result *const to = c + first + row * static_cast<long long>(p.n) + column;
      if (whole && column < columns_left) {
        store_pack<2>(to, pair);
      } else {
        if (column < columns_left) to[0] = pair.v[0];
        if (column + 1 < columns_left) to[1] = pair.v[1];
      }
    });
  }
}

}  // namespace pk
