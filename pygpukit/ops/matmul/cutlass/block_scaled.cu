// block_scaled.cu: products of NVFP4 with NVFP4 and of MXFP4 with MXFP4 by CUTLASS's main loop for SM 12.0.
//
// A block has one group of warps that asks for copies and two that multiply: 128 x 128 of the result, from 128 of k at
// a time. Codes come by tensor copies, as bytes; scales lie in memory as shared memory has them, 512 bytes for 128 lines
// and four scales of each, and come by plain bulk copies. Tensor cores scale and sum all of k.
#include <cute/tensor.hpp>  // first

#include <cutlass/numeric_types.h>

#include <cute/arch/copy_sm90.hpp>
#include <cute/atom/copy_traits_sm90_tma.hpp>
#include <cute/atom/mma_traits_sm100.hpp>
#include <cute/atom/mma_traits_sm120.hpp>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/detail/sm100_blockscaled_layout.hpp>
#include <cutlass/gemm/collective/collective_mma_decl.hpp>
#include <cutlass/pipeline/pipeline.hpp>  // before the main loop

#include <cutlass/gemm/collective/sm120_blockscaled_mma_tma.hpp>

#include "conversion.cuh"
#include "hopper.cuh"

namespace pk {

namespace h = hopper;

constexpr int kFp4Side = 128, kFp4Depth = 128;  // lines of both operands, and of k, of a step
constexpr int kFp4Codes = kFp4Side * kFp4Depth / 2, kFp4Steps = 4;
constexpr int kAtom = 512;  // bytes of the scales of 128 lines, four of each

// steps: of 128 of k, rounded up. scaled: by *scale_a, by *scale_b.
struct alignas(64) Fp4Call {
  int m, n, steps, across;  // across: tiles of a line of them
  int tiles;
  float factor;
  int scaled[2];
};

// Scale: of Vector numbers.
template <class Scale, int Vector>
struct Fp4Loop {
  template <int N>
  using Int = cute::Int<N>;
  using Tile = cute::Shape<Int<kFp4Side>, Int<kFp4Side>, Int<kFp4Depth>>;
  using Code = cutlass::float_e2m1_t;
  static constexpr int kOfProduct = 64 / Vector, kAtoms = kFp4Depth / Vector / 4;
  using Columns = cute::Layout<cute::Shape<cute::_8, cute::_2, cute::_2>, cute::Stride<cute::_1, cute::_16, cute::_8>>;
  using Multiply = decltype(cute::make_tiled_mma(
      cute::SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<Code, Code, float, Scale, Vector>{},
      cute::Layout<cute::Shape<cute::_4, cute::_2, cute::_1>>{}, cute::Tile<cute::_128, Columns, cute::_64>{}));
  using Lines = cute::UMMA::Layout_K_SW64_Atom<cute::uint4_t>;
  using FromShared = cute::Copy_Atom<cute::SM75_U32x4_LDSM_N, cute::uint4_t>;
  using OfScales = cute::Copy_Atom<cute::UniversalCopy<Scale>, Scale>;
  // Scales of 128 lines and kAtoms atoms along k, as they lie.
  using Scales = cute::Layout<
      cute::Shape<cute::Shape<cute::Shape<cute::_32, cute::_4>, cute::_1>,
                  cute::Shape<cute::Shape<Int<Vector>, Int<kOfProduct>>, Int<4 / kOfProduct>, Int<kAtoms>>>,
      cute::Stride<cute::Stride<cute::Stride<cute::_16, cute::_4>, Int<kAtom>>,
                   cute::Stride<cute::Stride<cute::_0, cute::_1>, Int<kOfProduct>, Int<kAtom>>>>;
  using InMemory = typename cutlass::detail::Sm1xxBlockScaledConfig<Vector>::LayoutSF;
  using Stride = cute::Stride<long long, cute::_1, long long>;
  using Pair = cute::tuple<cute::SM90_TMA_LOAD, cute::SM90_TMA_LOAD>;
  using Loop = cutlass::gemm::collective::CollectiveMma<
      cutlass::gemm::MainloopSm120TmaWarpSpecializedBlockScaled<
          kFp4Steps, 3, cute::Shape<cute::_1, cute::_1, cute::_1>,
          cutlass::gemm::KernelTmaWarpSpecializedCooperativeBlockScaledSm120<3>>,
      Tile, cute::tuple<Code, Scale>, cute::tuple<Stride, InMemory>, cute::tuple<Code, Scale>,
      cute::tuple<Stride, InMemory>, Multiply, Pair, cute::tuple<Lines, Scales>, cute::tuple<FromShared, OfScales>,
      cute::identity, Pair, cute::tuple<Lines, Scales>, cute::tuple<FromShared, OfScales>, cute::identity>;
  using Shared = typename Loop::SharedStorage;
  using Pipeline = typename Loop::MainloopPipeline;
  static constexpr int kScaleBytes = kAtoms * kAtom;
  static_assert(Loop::TmaTransactionBytes == 2 * (kFp4Codes + kScaleBytes), "");
};

// Bytes of memory, from a multiple of 16 on, into this block's shared memory; they count at the barrier.
__device__ __forceinline__ void copy_bytes(void *to, const void *from, unsigned bytes, h::Barrier *barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   h::shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(h::shared_address(barrier))
               : "memory");
}

// c = factor * a @ b^T, dense: codes of m and n lines, as the maps describe them, and scales of whole 128 lines and
// steps.
template <class Result, class Scale, int Vector>
__global__ void __launch_bounds__(384, 1)
    cutlass_block_scaled(const __grid_constant__ Fp4Call p, const void *const __grid_constant__ a,
                         const __grid_constant__ h::MapTail left, const void *const __grid_constant__ b,
                         const __grid_constant__ h::MapTail right, const unsigned char *a_scales,
                         const unsigned char *b_scales, const float *scale_a, const float *scale_b, Result *c) {
  using F = Fp4Loop<Scale, Vector>;
  using Loop = typename F::Loop;
  extern __shared__ __align__(1024) char cutlass_memory[];
  typename F::Shared &shared = *reinterpret_cast<typename F::Shared *>(cutlass_memory);
  const bool copies = threadIdx.x < h::kGroup;
  typename F::Pipeline::Params roles;
  roles.role = copies ? F::Pipeline::ThreadCategory::Producer : F::Pipeline::ThreadCategory::Consumer;
  roles.is_leader = threadIdx.x == 0;
  roles.num_consumers = 2 * h::kGroup;
  roles.transaction_bytes = Loop::TmaTransactionBytes;
  typename F::Pipeline pipeline(shared.pipeline_storage, roles, cute::Shape<cute::_1, cute::_1, cute::_1>{});
  __syncthreads();
  if (copies) {
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (threadIdx.x != 0) return;
    auto step = cutlass::make_producer_start_state<typename F::Pipeline>();
    const auto codes_of = [&](auto &room) { return reinterpret_cast<unsigned char *>(&room) + step.index() * kFp4Codes; };
    const auto scales_of = [&](auto &room) {
      return reinterpret_cast<unsigned char *>(&room) + step.index() * F::kScaleBytes;
    };
    for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
      const int row = tile / p.across, column = tile % p.across;
      for (int k = 0; k < p.steps; ++k, ++step) {
        pipeline.producer_acquire(step);
        h::Barrier *const full = reinterpret_cast<h::Barrier *>(pipeline.producer_get_barrier(step));
        h::copy_box(codes_of(shared.tensors.smem_A), h::map_of(a, left), k * (kFp4Depth / 2), row * kFp4Side, 0, full);
        h::copy_box(codes_of(shared.tensors.smem_B), h::map_of(b, right), k * (kFp4Depth / 2), column * kFp4Side, 0,
                    full);
        copy_bytes(scales_of(shared.tensors.smem_SFA),
                   a_scales + (static_cast<long long>(row) * p.steps + k) * F::kScaleBytes, F::kScaleBytes, full);
        copy_bytes(scales_of(shared.tensors.smem_SFB),
                   b_scales + (static_cast<long long>(column) * p.steps + k) * F::kScaleBytes, F::kScaleBytes, full);
      }
    }
    pipeline.producer_tail(step);
    return;
  }
  cutlass::arch::warpgroup_reg_alloc<232>();
  const int thread = threadIdx.x - h::kGroup;
  float factor = p.factor;
  if (p.scaled[0]) factor *= *scale_a;
  if (p.scaled[1]) factor *= *scale_b;
  typename F::Pipeline::PipelineState step;
  typename F::Multiply multiply;
  const auto places = multiply.get_slice(thread).partition_C(
      cute::make_identity_tensor(cute::make_shape(cute::Int<kFp4Side>{}, cute::Int<kFp4Side>{})));
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    auto sums = cute::partition_fragment_C(multiply, cute::Shape<cute::Int<kFp4Side>, cute::Int<kFp4Side>>{});
    Loop().mma(pipeline, step, sums, p.steps, thread, shared.tensors, typename Loop::Params{});
    step.advance(p.steps);
    const int row0 = tile / p.across * kFp4Side, column0 = tile % p.across * kFp4Side;
#pragma unroll
    for (int i = 0; i < cute::size(sums); ++i) {
      const int row = row0 + cute::get<0>(places(i)), column = column0 + cute::get<1>(places(i));
      if (row < p.m && column < p.n)
        c[static_cast<long long>(row) * p.n + column] = convert<Result>::from(factor * sums(i));
    }
  }
}

}  // namespace pk
