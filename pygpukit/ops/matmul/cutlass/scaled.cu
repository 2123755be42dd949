// scaled.cu: products of 8-bit floats with scales by CUTLASS's kernels for SM 9.0.
//
// Tensor cores sum 128 of k at a time, from zero, and these sums are added in float32, in ascending order. Scales of
// all, of a row and of a column follow at the end; those of blocks of k scale each of these sums: CUTLASS has two main
// loops for that.
#define PK_TENSOR_MAPS_ELSEWHERE
#include <cute/tensor.hpp>  // first

#include <cutlass/numeric_types.h>

#include <cute/arch/copy_sm90.hpp>
#include <cute/atom/copy_traits_sm90_tma.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cutlass/gemm/collective/collective_mma_decl.hpp>
#include <cutlass/pipeline/pipeline.hpp>  // before the main loops

#include <cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized_fp8.hpp>
#include <cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized_fp8_blockwise_scaling.hpp>
#include <cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp>

#include "cutlass_kernel.cuh"

namespace pk {

constexpr int kOfBlock = 128;   // of k, and columns, that share a scale
constexpr int kAddedEvery = 4;  // instructions along k, of 32 each, whose sum is added

// line, depth: elements from the scale of a line to the next, and from one 128 of k to the next.
struct Scales {
  int line[2], depth[2];
  int has[2];
  float factor;
};

// Layouts of scales: of Lines lines and 128 of k.
template <int Lines>
using ScaleLayout =
    cute::Layout<cute::Shape<cute::Shape<cute::Int<Lines>, int>, cute::Shape<cute::Int<kOfBlock>, int>, int>,
                 cute::Stride<cute::Stride<cute::_0, int>, cute::Stride<cute::_0, int>, int>>;

template <int Lines>
__device__ __forceinline__ ScaleLayout<Lines> scales_of(const Scales &scales, int operand, int lines, int k) {
  const int groups = (lines + Lines - 1) / Lines, blocks = (k + kOfBlock - 1) / kOfBlock;
  return cute::make_layout(cute::make_shape(cute::make_shape(cute::Int<Lines>{}, groups),
                                            cute::make_shape(cute::Int<kOfBlock>{}, blocks), 1),
                           cute::make_stride(cute::make_stride(cute::_0{}, scales.line[operand]),
                                             cute::make_stride(cute::_0{}, scales.depth[operand]), 0));
}

// Columns: of a block's tile, kOfBlock with scales of blocks.
template <class Element, class Result, int Columns, int Blocks, bool ByBlock>
struct Scaled {
  static_assert(!ByBlock || Columns == kOfBlock, "a tile's columns share a scale");
  static constexpr int kRows = 128, kColumns = Columns, kScaleBytes = ByBlock ? 1024 : 0;
  static constexpr int kSteps = kStepsRoom / ((kRows + kColumns) * 128 + kScaleBytes + 16);
  using B = Block<kRows, kColumns, 128, Blocks>;
  using Policy = cute::conditional_t<
      ByBlock,
      cutlass::gemm::MainloopSm90TmaGmmaWarpSpecializedBlockwiseFP8<
          kSteps, typename B::Cluster, cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8Blockwise>,
      cutlass::gemm::MainloopSm90TmaGmmaWarpSpecializedFP8<kSteps, typename B::Cluster,
                                                           cutlass::gemm::KernelTmaWarpSpecializedCooperative>>;
  template <int Lines>
  using Described = cute::conditional_t<ByBlock, cute::tuple<Strides<false>, ScaleLayout<Lines>>, Strides<false>>;
  using Loop =
      cutlass::gemm::collective::CollectiveMma<Policy, typename B::Tile, Element, Described<1>, Element,
                                               Described<kOfBlock>, Multiply<Element, typename B::Tile, false, false>,
                                               Load<1>, Atom<Element, false>, void, cute::identity, Load<Blocks>,
                                               Atom<Element, false>, void, cute::identity>;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<
      cute::Shape<int, int, int, int>, Loop,
      CutlassWriter<Result, typename B::Tile, ByBlock ? kTimesNumber : kTimesScales>,
      cutlass::gemm::PersistentScheduler>;
  static_assert(cute::size<1>(typename Loop::Params::TMA_A::BitLayoutSrc{}) == kRows * 128 * 8, "");
  static_assert(cute::size<1>(typename Loop::Params::TMA_B::BitLayoutSrc{}) == kColumns * 128 * 8, "");
  static_assert(Kernel::SharedStorageSize <= kCutlassRoom, "");
};

// c = factor * (a scaled) @ (b scaled)^T, rounded once; a: m lines of k, b: n lines of k, c: m lines of n, as the maps
// describe them.
template <class Element, class Result, int Columns, int Blocks, bool ByBlock>
__global__ void __launch_bounds__(384, 1)
    cutlass_scaled(const __grid_constant__ CutlassCall p, const void *const __grid_constant__ a,
                   const __grid_constant__ h::MapTail left, const void *const __grid_constant__ b,
                   const __grid_constant__ h::MapTail right, const void *const __grid_constant__ c,
                   const __grid_constant__ h::MapTail result, const Scales scales, const float *scale_a,
                   const float *scale_b) {
  using Kernel = typename Scaled<Element, Result, Columns, Blocks, ByBlock>::Kernel;
  extern __shared__ __align__(1024) char cutlass_memory[];
  typename Kernel::Params params = params_of<Kernel, Blocks>(p);
  params.mainloop.tma_load_a.tma_desc_.at = map_at(a, left);
  params.mainloop.tma_load_b.tma_desc_.at = map_at(b, right);
  params.epilogue.to = &h::map_of(c, result);
  params.epilogue.factor = scales.factor;
  if constexpr (ByBlock) {
    params.mainloop.ptr_SFA = scale_a;
    params.mainloop.ptr_SFB = scale_b;
    params.mainloop.layout_SFA = scales_of<1>(scales, 0, p.m, p.k);
    params.mainloop.layout_SFB = scales_of<kOfBlock>(scales, 1, p.n, p.k);
  } else {
    params.mainloop.mma_promotion_interval = kAddedEvery;
    params.epilogue.lines = {
        scales.has[0] ? scale_a : nullptr, scales.has[1] ? scale_b : nullptr, scales.line[0], scales.line[1], p.m, p.n};
  }
  Kernel()(params, cutlass_memory);
}

}  // namespace pk
