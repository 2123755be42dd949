// double.cu: products of float64 on the tensor cores of SM 9.0, where each matrix has a dense axis.
//
// These sum in float64 as multiply-adds over k in ascending order, each rounded once: the bits of strided.cu.
#include "real.cuh"

namespace pk {

// sum += a @ b of 16 rows, 8 columns and 8 of k. A lane has of a rows lane / 4 and 8 further at k = lane % 4 and at 4
// further, of b column lane / 4 there; of the sum two columns from 2 (lane % 4) on, of both rows.
__device__ __forceinline__ void mma_double(double &top0, double &top1, double &low0, double &low1,
                                           const double (&top)[2], const double (&low)[2], const double (&column)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+d"(top0), "+d"(top1), "+d"(low0), "+d"(low1)
      : "d"(top[0]), "d"(low[0]), "d"(top[1]), "d"(low[1]), "d"(column[0]), "d"(column[1]));
}

constexpr int kDoublePad = 4;  // with it 16 lanes read and store as many pairs of banks

// A warp makes 16 Down rows of 8 Across columns.
template <class LeftSide, class RightSide, int Down, int Across, int Depth, int Ring>
struct DoubleWarp {
  using Left = LeftSide;
  using Right = RightSide;
  static constexpr int kRows = 16 * Down, kColumns = 8 * Across, kDepth = Depth, kUnit = 8, kVector = 2;
  static constexpr int kAhead = (Ring - 1) * kUnit;
  static_assert(Depth % (Ring * kUnit) == 0, "");

  double sum[2 * Down][2 * Across] = {};
  double rows[Ring][2 * Down][2], columns[Ring][Across][2];
  int group, four, row, column;  // where the thread's first elements lie in a piece

  __device__ __forceinline__ DoubleWarp(int own_row, int own_column) {
    group = threadIdx.x % 32 / 4;
    four = threadIdx.x % 4;
    row = (own_row + group) * (Left::kRows ? Left::kPitch : 1) + four * (Left::kRows ? 1 : Left::kPitch);
    column = (own_column + group) * (Right::kRows ? Right::kPitch : 1) + four * (Right::kRows ? 1 : Right::kPitch) +
             Left::kSize;
  }
  __device__ __forceinline__ void load_first(const double *from, int d) {
    const int ring = d / kUnit % Ring;
#pragma unroll
    for (int further = 0; further < 2; ++further) {
      const int k = d + 4 * further;
#pragma unroll
      for (int i = 0; i < 2 * Down; ++i)
        rows[ring][i][further] = from[row + (Left::kRows ? 8 * i * Left::kPitch + k : 8 * i + k * Left::kPitch)];
#pragma unroll
      for (int j = 0; j < Across; ++j)
        columns[ring][j][further] =
            from[column + (Right::kRows ? 8 * j * Right::kPitch + k : 8 * j + k * Right::kPitch)];
    }
  }
  __device__ __forceinline__ void load(const double *from, const double *next, int d) {
    load_first(d + kAhead < Depth ? from : next, (d + kAhead) % Depth);
  }
  __device__ __forceinline__ void add(int d) {
    const int ring = d / kUnit % Ring;
#pragma unroll
    for (int i = 0; i < Down; ++i)
#pragma unroll
      for (int j = 0; j < Across; ++j)
        mma_double(sum[2 * i][2 * j], sum[2 * i][2 * j + 1], sum[2 * i + 1][2 * j], sum[2 * i + 1][2 * j + 1],
                   rows[ring][2 * i], rows[ring][2 * i + 1], columns[ring][j]);
  }
  __device__ __forceinline__ int row_of(int i) const { return 8 * i + group; }
  __device__ __forceinline__ int column_of(int j) const { return 8 * (j / 2) + 2 * four + j % 2; }
};

// A warp makes 16 Down rows of 8 Across columns, a block has WarpsDown x WarpsAcross warps. See real_product().
template <class T, int Down, int Across, int WarpsDown, int WarpsAcross, int Depth, int Stages, int Ring, int Blocks,
          int ReadA, int ReadB>
__global__ void __launch_bounds__(32 * WarpsDown * WarpsAcross, Blocks)
    real(const T *a, const T *b, const T *bias, const T *residual, T *c, const __grid_constant__ GemmLayout<4> p,
         const __grid_constant__ Epilogue after) {
  constexpr int kThreads = 32 * WarpsDown * WarpsAcross;
  using Left = RealSide<T, WarpsDown * 16 * Down, Depth, kThreads, ReadA, kDoublePad, 4>;
  using Right = RealSide<T, WarpsAcross * 8 * Across, Depth, kThreads, ReadB, kDoublePad, 4>;
  extern __shared__ __align__(16) unsigned char double_memory[];
  real_product<DoubleWarp<Left, Right, Down, Across, Depth, Ring>, WarpsDown, WarpsAcross, Stages>(
      a, b, bias, residual, c, p, after, reinterpret_cast<T *>(double_memory));
}

}  // namespace pk
