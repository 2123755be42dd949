// real.cu: products of float32 and float64 on CUDA cores, where each matrix has a dense axis.
//
// A multiprocessor starts as many instructions as it can make multiply-adds. So a thread makes Down x Across results
// from elements that few wide loads bring, ahead of their use. A sum stays with one thread and runs as in strided.cu: the
// same bits.
#include "real.cuh"

namespace pk {

constexpr int kLanesDown = 4, kLanesAcross = 8;

// Elements of Count lines of one side, as a thread holds them: for Fragments of k, or what one load brings.
template <class Side, class T, int Count, int Lanes, int Fragments>
struct Held {
  static constexpr int kPack = 16 / sizeof(T), kDeep = Side::kRows ? kPack : 1;    // of k that a load brings
  static constexpr int kVector = Side::kRows ? 1 : Count < kPack ? Count : kPack;  // lines that it brings
  static constexpr int kRing = Fragments > kDeep ? Fragments / kDeep : 1, kAhead = (kRing - 1) * kDeep;
  T of[kRing][Count][kDeep];

  // The thread's line i, of its warp's.
  static __device__ __forceinline__ int line(int lane, int i) {
    return (i / kVector * Lanes + lane) * kVector + i % kVector;
  }
  __device__ __forceinline__ void load(const T *from, int lane, int d) {
    if (d % kDeep) return;
#pragma unroll
    for (int i = 0; i < Count; i += kVector) {
      if constexpr (Side::kRows) {
        const Pack<T, kDeep> numbers = pk::load<kDeep>(from + line(lane, i) * Side::kPitch + d);
#pragma unroll
        for (int e = 0; e < kDeep; ++e) of[d / kDeep % kRing][i][e] = numbers.v[e];
      } else {
        const Pack<T, kVector> numbers = pk::load<kVector>(from + d * Side::kPitch + line(lane, i));
#pragma unroll
        for (int e = 0; e < kVector; ++e) of[d % kRing][i + e][0] = numbers.v[e];
      }
    }
  }
  __device__ __forceinline__ T at(int i, int d) const { return of[d / kDeep % kRing][i][d % kDeep]; }
};

template <class T, class LeftSide, class RightSide, int Down, int Across, int Depth, int Fragments>
struct RealWarp {
  using Left = LeftSide;
  using Right = RightSide;
  using Rows = Held<Left, T, Down, kLanesDown, Fragments>;
  using Columns = Held<Right, T, Across, kLanesAcross, Fragments>;
  static constexpr int kRows = kLanesDown * Down, kColumns = kLanesAcross * Across, kDepth = Depth, kUnit = 1;
  static constexpr int kAhead = Rows::kAhead > Columns::kAhead ? Rows::kAhead : Columns::kAhead;
  static constexpr int kVector = Columns::kVector;
  static_assert(Depth % (Rows::kRing * Rows::kDeep) == 0 && Depth % (Columns::kRing * Columns::kDeep) == 0, "");

  T sum[Down][Across] = {};
  Rows rows;
  Columns columns;
  int row, column, first_row, first_column;  // the thread's among lanes; where the warp's lie in a piece

  __device__ __forceinline__ RealWarp(int own_row, int own_column) {
    const int lane = threadIdx.x % 32;  // so that eight lanes read whole 64 or 128 bytes
    row = lane / (2 * kLanesAcross) * 2 + lane % 2;
    column = lane / 2 % kLanesAcross;
    first_row = own_row * (Left::kRows ? Left::kPitch : 1);
    first_column = own_column * (Right::kRows ? Right::kPitch : 1) + Left::kSize;
  }
  __device__ __forceinline__ void load_first(const T *from, int d) {
    if (d < Rows::kAhead) rows.load(from + first_row, row, d);
    if (d < Columns::kAhead) columns.load(from + first_column, column, d);
  }
  __device__ __forceinline__ void load(const T *from, const T *next, int d) {
    const int of_rows = d + Rows::kAhead, of_columns = d + Columns::kAhead;
    rows.load((of_rows < Depth ? from : next) + first_row, row, of_rows % Depth);
    columns.load((of_columns < Depth ? from : next) + first_column, column, of_columns % Depth);
  }
  // In the order that lets neighbours share an operand, which then is read once.
  __device__ __forceinline__ void add(int d) {
#pragma unroll
    for (int i = 0; i < Down; ++i)
#pragma unroll
      for (int step = 0; step < Across; ++step) {
        const int j = i % 2 ? Across - 1 - step : step;
        sum[i][j] = add_product(sum[i][j], rows.at(i, d), columns.at(j, d));
      }
  }
  __device__ __forceinline__ int row_of(int i) const { return Rows::line(row, i); }
  __device__ __forceinline__ int column_of(int j) const { return Columns::line(column, j); }
};

// A thread makes Down x Across results, a block has WarpsDown x WarpsAcross warps. See real_product().
template <class T, int Down, int Across, int WarpsDown, int WarpsAcross, int Depth, int Stages, int Fragments,
          int Blocks, int ReadA, int ReadB>
__global__ void __launch_bounds__(32 * WarpsDown * WarpsAcross, Blocks)
    real(const T *a, const T *b, const T *bias, const T *residual, T *c, const __grid_constant__ GemmLayout<4> p,
         const __grid_constant__ Epilogue after) {
  constexpr int kThreads = 32 * WarpsDown * WarpsAcross, kPad = 16 / sizeof(T);
  using Left = RealSide<T, WarpsDown * kLanesDown * Down, Depth, kThreads, ReadA, kPad, 8>;
  using Right = RealSide<T, WarpsAcross * kLanesAcross * Across, Depth, kThreads, ReadB, kPad, 8>;
  extern __shared__ __align__(16) unsigned char real_memory[];
  real_product<RealWarp<T, Left, Right, Down, Across, Depth, Fragments>, WarpsDown, WarpsAcross, Stages>(
      a, b, bias, residual, c, p, after, reinterpret_cast<T *>(real_memory));
}

}  // namespace pk
