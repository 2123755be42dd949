// aligned.cu: products on tensor cores of matrices whose lines begin at multiples of 16 bytes, from SM 8.0 on.
//
// cp.async keeps some stages of both operands on their way to shared memory. ldmatrix reads the fragments of the next
// 32 bytes of k while mma.sync multiplies those of the last, across stages too. The sum of bfloat16 and float16 over k
// runs as in half.cu and unaligned.cu, by steps of 16 in ascending order in float32: the same bits. int8 is summed in
// int32, exactly. float32 is rounded to tf32, middles away from zero, and summed by steps of 8 in ascending order.
#include "epilogue.cuh"
#include "mma_loop.cuh"
#include "mma_result.cuh"
#include "swizzled.cuh"

namespace pk {

// Of a and b: elements from the pointer to the first element, between lines and between matrices. matrices, repeat:
// product i has matrix i / repeat % matrices. c: dense. group: of grouped_tile().
struct AlignedCall {
  long long start[2], line[2], step[2];
  int matrices[2], repeat[2], m, n, k, group;
};

// The type of a result.
template <class T>
struct ResultOf {
  using Result = T;
};
template <>
struct ResultOf<signed char> {
  using Result = int;
};

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
    mma_aligned(const T *a, const T *b, const T *bias, const T *residual, typename ResultOf<T>::Result *c,
                const __grid_constant__ AlignedCall p, const __grid_constant__ Epilogue epilogue) {
  using Sum = typename SumOf<T>::Sum;
  using Result = typename ResultOf<T>::Result;
  using Block = Warps<Rows, Columns, Down, Across>;
  using Left = SwizzledSide<T, Rows, Depth, AAlongK, Block::kThreads>;
  using Right = SwizzledSide<T, Columns, Depth, BAlongK, Block::kThreads>;
  constexpr int kPitch = Columns + Left::kPack;
  static_assert(sizeof(T) == 2 || (AAlongK && BAlongK), "ldmatrix transposes elements of 16 bits");
  static_assert(sizeof(T) != 2 || Stages * (Left::kSize + Right::kSize) >= Rows * kPitch, "the result fits");
  extern __shared__ __align__(128) unsigned char aligned_memory[];
  T *const stages = reinterpret_cast<T *>(aligned_memory);
  const TilePlace place = grouped_tile((p.m + Rows - 1) / Rows, (p.n + Columns - 1) / Columns, p.group);
  const int row0 = place.down * Rows, column0 = place.across * Columns, product = blockIdx.y;
  Left left(matrix_of(a, p, 0, product) + row0 * (AAlongK ? p.line[0] : 1), p.line[0], p.m - row0, p.k);
  Right right(matrix_of(b, p, 1, product) + column0 * (BAlongK ? p.line[1] : 1), p.line[1], p.n - column0, p.k);
  typename Block::template Sums<Sum> sums = {};
  sum_stages<T, Left, Right, Block, Depth, Stages>(stages, left, right, (p.k + Depth - 1) / Depth, sums, [](int) {});

  const long long first = (static_cast<long long>(product) * p.m + row0) * p.n + column0;
  const int rows_left = p.m - row0, columns_left = p.n - column0;
  if constexpr (sizeof(T) == 2) {
    __syncthreads();
    Block::each_pair(sums, [&](int row, int column, float one, float two) {
      store_pack<2>(stages + row * kPitch + column, Pack<T, 2>{convert<T>::from(one), convert<T>::from(two)});
    });
    __syncthreads();
    if (epilogue.alpha != 1 || epilogue.activation || epilogue.has_bias || epilogue.has_residual)
      finish_tile<Rows, Columns, kPitch, Block::kThreads>(stages, bias + column0, residual + first, p.n, rows_left,
                                                          columns_left, epilogue);
    store_tile<Rows, Columns, kPitch, Block::kThreads>(stages, c + first, p.n, rows_left, columns_left);
  } else {
    Block::each_pair(sums, PairStore<Result>(c + first, p.n, rows_left, columns_left));
  }
}

}  // namespace pk
