// mixed.cu: products of bfloat16 or float16 with a weight of 8-bit floats, or integers of 8 or 4 bits, by CUTLASS's
// kernels for SM 9.0.
//
// The weight is the left operand: a warp group reads its bytes from shared memory into registers, makes them, exactly,
// numbers of the other operand's type, and multiplies; by scales of groups of k first, rounded to that type, where
// there are any. Tensor cores sum all of k; scales of all, of rows and of columns follow at the end. Tiles of sums have
// a row for a column of the result, and are turned as they are written.
#define PK_TENSOR_MAPS_ELSEWHERE
#include <cute/tensor.hpp>  // first

#include <cutlass/numeric_types.h>

#include <cute/arch/copy_sm90.hpp>
#include <cute/atom/copy_traits_sm90_tma.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cutlass/gemm/collective/collective_mma_decl.hpp>
#include <cutlass/pipeline/pipeline.hpp>  // before the main loop

#include <cutlass/gemm/collective/sm90_mma_tma_gmma_rs_warpspecialized_mixed_input.hpp>
#include <cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp>

#include "cutlass_kernel.cuh"

namespace pk {

// A step apart, null for none: scales of the weight's lines, and of the other operand's.
// of_group: steps of 128 of k that share a scale of a group; groups: that there are.
struct MixedScales {
  int weight_step, row_step;
  int has_weight, has_row;
  int of_group, groups;
  float factor;
};

// A warp group's part of a tile, 64 lines of the weight, becomes rows of 64 columns: pieces of 64 rows, of 16 bits all
// columns each, of 32 bits half of them.
template <class Result, class Tile>
struct TransposingWriter : CutlassWriter<Result, Tile, kTimesScales> {
  using Base = CutlassWriter<Result, Tile, kTimesScales>;
  using typename Base::LoadPipeline;
  using typename Base::LoadPipelineState;
  using typename Base::StorePipeline;
  using typename Base::StorePipelineState;
  using typename Base::TensorStorage;
  using Base::Base;

  template <class Shape, class At, class Sums, class Mma>
  __device__ __forceinline__ auto store(LoadPipeline, LoadPipelineState loads, StorePipeline, StorePipelineState stores,
                                        const Shape &, Tile, const At &at, Sums &sums, Mma, int thread,
                                        TensorStorage &room, int = 0) {
    constexpr int kLines = cute::size<1>(Tile{}), kOfThread = kPieceRows / 2, kAcross = kPieceRows / Base::kColumns;
    static_assert(cute::size<0>(Tile{}) == kWriters * kPieceRows, "");
    static_assert(kLines / kPieceRows * kAcross % kPieces == 0, "a tile begins with the first piece");
    const auto &params = Base::params;
    const int group = thread / h::kGroup, warp = thread % h::kGroup / 32, lane = thread % 32;
    const int column = (cute::get<0>(at) * kWriters + group) * kPieceRows, row = cute::get<1>(at) * kLines;
    float of_columns[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) of_columns[r] = params.lines.of_row(column + warp * 16 + lane / 4 + 8 * r);
#pragma unroll
    for (int from = 0; from < kLines; from += kPieceRows) {
      float numbers[kOfThread];
#pragma unroll
      for (int i = 0; i < kOfThread; ++i)
        numbers[i] = sums(from / 2 + i) *
                     (of_columns[i / 2 % 2] * params.lines.of_column(row + from + i / 4 * 8 + lane % 4 * 2 + i % 2)) *
                     params.factor;
#pragma unroll
      for (int part = 0; part < kAcross; ++part) {
        unsigned char *const piece = room.pieces[group][(from / kPieceRows * kAcross + part) % kPieces];
        MappedResult::await<kPieces - 1>(thread % h::kGroup);
        cutlass::arch::NamedBarrier::sync(h::kGroup, group);
        if (warp * kAcross / 4 == part || kAcross == 1) transpose(numbers, piece, warp % (4 / kAcross), lane);
        h::publish_to_stores();
        cutlass::arch::NamedBarrier::sync(h::kGroup, group);
        params.store(piece, column + part * Base::kColumns, row + from, cute::get<3>(at), thread % h::kGroup);
      }
    }
    return cute::make_tuple(loads, stores);
  }

 private:
  // A warp's 16 columns of a piece: 4 i + 2 r + c is of column lane / 4 + 8 r and row 8 i + lane % 4 * 2 + c.
  static __device__ __forceinline__ void transpose(const float (&numbers)[kPieceRows / 2], unsigned char *piece,
                                                   int warp, int lane) {
    if constexpr (sizeof(Result) == 4) {
#pragma unroll
      for (int i = 0; i < kPieceRows / 2; ++i) {
        const int column = warp * 16 + lane / 4 + i / 2 % 2 * 8, row = i / 4 * 8 + lane % 4 * 2 + i % 2;
        *reinterpret_cast<float *>(piece + row * kPieceLine + (column / 4 ^ row % 8) * 16 + column % 4 * 4) =
            numbers[i];
      }
    } else {
      using Tag = cute::conditional_t<cute::is_same_v<Result, cutlass::half_t>, half_t, bfloat16_t>;
      const int chunk = warp * 2 + lane / 8 % 2, row = lane / 16 * 8 + lane % 8;
      const unsigned line = h::shared_address(piece) + row * kPieceLine + (chunk ^ row % 8) * 16;
#pragma unroll
      for (int i = 0; i < kPieceRows / 2; i += 8) {
        unsigned four[4];
#pragma unroll
        for (int two = 0; two < 4; ++two)
          four[two] = two_rounded(Tag{}, numbers[i + 2 * two], numbers[i + 2 * two + 1]);
        store_transposed_matrices(line + i * 2 * kPieceLine, four);
      }
    }
  }
  static __device__ __forceinline__ void store_transposed_matrices(unsigned address, const unsigned (&four)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(four[0]),
                 "r"(four[1]), "r"(four[2]), "r"(four[3])
                 : "memory");
  }
};

// Lines: of the other operand, that a tile has beside 128 of the weight; by a cluster of Blocks blocks that share them.
// Scale: of groups, void for none.
template <class Weight, class Scale, class Element, class Result, int Lines, int Blocks>
struct Mixed {
  static constexpr int kWeightLines = 128, kDepth = 128, kWeightBits = cute::sizeof_bits_v<Weight>;
  static constexpr bool kInGroups = !cute::is_void_v<Scale>;
  static constexpr int kScaleBytes = kInGroups ? kWeightLines * static_cast<int>(sizeof(Element)) : 0;
  static constexpr int kSteps =
      kStepsRoom / (kWeightLines * (kDepth * kWeightBits / 8) + 2 * Lines * kDepth + kScaleBytes + 16);
  using Operand = cute::conditional_t<kInGroups, cute::tuple<Weight, Scale>, cute::tuple<Weight>>;
  using WeightAtom = cute::conditional_t<kWeightBits == 8, Atom<Weight, false>, cute::GMMA::Layout_K_SW64_Atom<Weight>>;
  using B = Block<kWeightLines, Lines, kDepth, Blocks>;
  using FromRegisters = decltype(cute::make_tiled_mma(
      cute::GMMA::rs_op_selector<Element, Element, float, typename B::Tile, kMajor<false>, kMajor<false>>(),
      cute::Layout<cute::Shape<cute::_2, cute::_1, cute::_1>>{}));
  using Loop = cutlass::gemm::collective::CollectiveMma<
      cutlass::gemm::MainloopSm90TmaGmmaRmemAWarpSpecializedMixedInput<
          kSteps, typename B::Cluster, cutlass::gemm::KernelTmaWarpSpecializedCooperative>,
      typename B::Tile, Operand, Strides<false>, Element, Strides<false>, FromRegisters, Load<1>, WeightAtom,
      cute::Copy_Atom<cute::AutoVectorizingCopy, Weight>, cute::identity, Load<Blocks>, Atom<Element, false>, void,
      cute::identity>;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Loop,
                                                      TransposingWriter<Result, typename B::Tile>,
                                                      cutlass::gemm::PersistentScheduler>;
  static_assert(cute::size<1>(typename Loop::Params::TMA_A::BitLayoutSrc{}) == kWeightLines * kDepth * kWeightBits, "");
  static_assert(cute::size<1>(typename Loop::Params::TMA_B::BitLayoutSrc{}) == Lines * 128 * 8, "");
  static_assert(Kernel::SharedStorageSize <= kCutlassRoom, "");
};

// c = factor * (a scaled) @ (w scaled)^T, rounded once; w: n lines of k, a: m lines of k, s: the groups' scales, a line
// of n for each group, c: m lines of n, as the maps describe them. p's m and n are those of w and a.
template <class Weight, class Scale, class Element, class Result, int Lines, int Blocks>
__global__ void __launch_bounds__(384, 1)
    cutlass_mixed(const __grid_constant__ CutlassCall p, const void *const __grid_constant__ w,
                  const __grid_constant__ h::MapTail left, const void *const __grid_constant__ a,
                  const __grid_constant__ h::MapTail right, const void *const __grid_constant__ s,
                  const __grid_constant__ h::MapTail of_groups, const void *const __grid_constant__ c,
                  const __grid_constant__ h::MapTail result, const MixedScales scales, const float *of_weight,
                  const float *of_rows) {
  using Kernel = typename Mixed<Weight, Scale, Element, Result, Lines, Blocks>::Kernel;
  extern __shared__ __align__(1024) char cutlass_memory[];
  typename Kernel::Params params = params_of<Kernel, Blocks>(p);
  params.mainloop.tma_load_a.tma_desc_.at = map_at(w, left);
  params.mainloop.tma_load_b.tma_desc_.at = map_at(a, right);
  params.mainloop.tma_load_scale.tma_desc_.at = map_at(s, of_groups);
  params.mainloop.scale_k = scales.groups;
  params.mainloop.group_size = scales.of_group * 128;
  params.mainloop.reload_factor = scales.of_group;
  params.epilogue.to = &h::map_of(c, result);
  params.epilogue.factor = scales.factor;
  params.epilogue.lines = {scales.has_weight ? of_weight : nullptr,
                           scales.has_row ? of_rows : nullptr,
                           scales.weight_step,
                           scales.row_step,
                           p.m,
                           p.n};
  Kernel()(params, cutlass_memory);
}

}  // namespace pk
