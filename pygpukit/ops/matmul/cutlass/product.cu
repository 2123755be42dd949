// product.cu: matrix products by CUTLASS's kernels for SM 9.0, of bfloat16, float16 and float32 as
// tf32, to which copies round it.
//
// The kernel and its main loop are CUTLASS's: one warp group has tiles of the operands copied, two make products, and
// blocks go from tile to tile. Its parameters are made here, from few numbers: the maps of the arrays lie among this
// kernel's parameters, and CUTLASS is told where.
#define PK_TENSOR_MAPS_ELSEWHERE
#include <cute/tensor.hpp>  // first

#include <cutlass/numeric_types.h>

#include <cute/arch/copy_sm90.hpp>
#include <cute/atom/copy_traits_sm90_tma.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cutlass/gemm/collective/collective_mma_decl.hpp>
#include <cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp>
#include <cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp>

#include "cutlass_kernel.cuh"

namespace pk {

// What a block makes: Rows x Columns, by a cluster of Blocks blocks below each other. ATransposed: a's rows lie along
// m, BTransposed: b's along n.
template <class Element, int Rows, int Columns, int Blocks, bool ATransposed, bool BTransposed>
struct Product {
  using Number = cute::conditional_t<cute::is_same_v<Element, float>, cutlass::tfloat32_t, Element>;
  using B = Block<Rows, Columns, 128 / sizeof(Element), Blocks>;
  static constexpr int kSteps = kStepsRoom / ((Rows + Columns) * 128 + 16);
  using Loop = cutlass::gemm::collective::CollectiveMma<
      cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<kSteps, typename B::Cluster,
                                                        cutlass::gemm::KernelTmaWarpSpecializedCooperative>,
      typename B::Tile, Element, Strides<ATransposed>, Element, Strides<BTransposed>,
      Multiply<Number, typename B::Tile, ATransposed, BTransposed>, Load<1>, Atom<Number, ATransposed>, void,
      cute::identity, Load<Blocks>, Atom<Number, BTransposed>, void, cute::identity>;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Loop,
                                                      CutlassWriter<Element, typename B::Tile>,
                                                      cutlass::gemm::PersistentScheduler>;
  // Lines of 128 bytes of a copy, of all blocks that share it: product.py has the maps made for one block's part.
  static constexpr int kLinesA = ATransposed ? 64 : Rows, kLinesB = BTransposed ? 64 : Columns;
  static_assert(cute::size<1>(typename Loop::Params::TMA_A::BitLayoutSrc{}) == kLinesA * 128 * 8, "");
  static_assert(cute::size<1>(typename Loop::Params::TMA_B::BitLayoutSrc{}) == kLinesB * 128 * 8, "");
  static_assert(Kernel::SharedStorageSize <= kCutlassRoom, "");
};

// c = a @ b^T, rounded once; a: m lines of k, b: n lines of k, c: m lines of n, as the maps describe them.
template <class Element, int Rows, int Columns, int Blocks, bool ATransposed, bool BTransposed>
__global__ void __launch_bounds__(384, 1)
    cutlass_product(const __grid_constant__ CutlassCall p, const void *const __grid_constant__ a,
                    const __grid_constant__ h::MapTail left, const void *const __grid_constant__ b,
                    const __grid_constant__ h::MapTail right, const void *const __grid_constant__ c,
                    const __grid_constant__ h::MapTail result) {
  using Kernel = typename Product<Element, Rows, Columns, Blocks, ATransposed, BTransposed>::Kernel;
  extern __shared__ __align__(1024) char cutlass_memory[];
  typename Kernel::Params params = params_of<Kernel, Blocks>(p);
  params.mainloop.tma_load_a.tma_desc_.at = map_at(a, left);
  params.mainloop.tma_load_b.tma_desc_.at = map_at(b, right);
  params.epilogue.to = &h::map_of(c, result);
  Kernel()(params, cutlass_memory);
}

}  // namespace pk
