// product.cu: matrix products by CUTLASS's kernels for SM 9.0, of bfloat16 and float16.
//
// The kernel and its main loop are CUTLASS's: one warp group has tiles of the operands copied, two make products, and
// blocks go from tile to tile. Its parameters are made here, from few numbers: the maps of the arrays lie among this
// kernel's parameters, and CUTLASS is told where.
#define PK_TENSOR_MAPS_ELSEWHERE
#include <cute/tensor.hpp>

#include <cutlass/numeric_types.h>

#include <cute/arch/copy_sm90.hpp>
#include <cute/atom/copy_traits_sm90_tma.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cutlass/gemm/collective/collective_mma_decl.hpp>
#include <cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp>
#include <cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp>

#include "cutlass_write.cuh"

namespace pk {

// A division by multiplication, as CUTLASS has it.
struct Division {
  unsigned long long divisor, multiplier;
  unsigned shift, more;
};

// batch, line: divisions by the tiles of a product, and by the clusters of a line of them. along_m: lines go along m.
struct alignas(64) CutlassCall {
  Division batch, line;
  int m, n, k, products;
  int tiles;    // of all products
  int swizzle;  // 2^swizzle lines take turns
  int along_m;
};

template <class Element, bool Transposed>
using Atom = cute::conditional_t<Transposed, cute::GMMA::Layout_MN_SW128_Atom<Element>,
                                 cute::GMMA::Layout_K_SW128_Atom<Element>>;
template <bool Transposed>
constexpr cute::GMMA::Major kMajor = Transposed ? cute::GMMA::Major::MN : cute::GMMA::Major::K;
template <bool Transposed>  // of the summed axis second: m or n, k, product
using Strides = cute::conditional_t<Transposed, cute::Stride<cute::_1, long long, long long>,
                                    cute::Stride<long long, cute::_1, long long>>;
template <int Blocks>
using Load = cute::conditional_t<Blocks == 1, cute::SM90_TMA_LOAD, cute::SM90_TMA_LOAD_MULTICAST>;

// What a block makes: Rows x Columns, by a cluster of Blocks blocks below each other. ATransposed: a's rows lie along
// m, BTransposed: b's along n.
template <class Element, int Rows, int Columns, int Blocks, bool ATransposed, bool BTransposed>
struct Product {
  static constexpr int kDepth = 128 / sizeof(Element), kRoom = 232448;
  static constexpr int kSteps = (kRoom - 1024 - kBytesToWrite) / ((Rows + Columns) * 128 + 16);
  using Tile = cute::Shape<cute::Int<Rows>, cute::Int<Columns>, cute::Int<kDepth>>;
  using Cluster = cute::Shape<cute::Int<Blocks>, cute::_1, cute::_1>;
  using Schedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
  using Mma = decltype(cute::make_tiled_mma(
      cute::GMMA::ss_op_selector<Element, Element, float, Tile, kMajor<ATransposed>, kMajor<BTransposed>>(),
      cute::Layout<cute::Shape<cute::_2, cute::_1, cute::_1>>{}));
  using Loop = cutlass::gemm::collective::CollectiveMma<
      cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<kSteps, Cluster, Schedule>, Tile, Element, Strides<ATransposed>,
      Element, Strides<BTransposed>, Mma, Load<1>, Atom<Element, ATransposed>, void, cute::identity, Load<Blocks>,
      Atom<Element, BTransposed>, void, cute::identity>;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Loop, CutlassWriter<Element, Tile>,
                                                      cutlass::gemm::PersistentScheduler>;
  // Lines of 128 bytes of a copy, of all blocks that share it: product.py has the maps made for one block's part.
  static constexpr int kLinesA = ATransposed ? 64 : Rows, kLinesB = BTransposed ? 64 : Columns;
  static_assert(cute::size<1>(typename Loop::Params::TMA_A::BitLayoutSrc{}) == kLinesA * 128 * 8, "");
  static_assert(cute::size<1>(typename Loop::Params::TMA_B::BitLayoutSrc{}) == kLinesB * 128 * 8, "");
  static_assert(Kernel::SharedStorageSize <= kRoom, "");
};

inline void divide_by(cutlass::FastDivmodU64 &by, const Division &division) {
  by.divisor = division.divisor;
  by.multiplier = division.multiplier;
  by.shift_right = division.shift;
  by.round_up = division.more;
}

inline const cute::TmaDescriptor *map_at(const void *const &array) {
  return reinterpret_cast<const cute::TmaDescriptor *>(__builtin_addressof(array));
}

// c = a @ b^T, rounded once; a: m lines of k, b: n lines of k, c: m lines of n, as the maps describe them.
template <class Element, int Rows, int Columns, int Blocks, bool ATransposed, bool BTransposed>
__global__ void __launch_bounds__(384, 1)
    cutlass_product(const __grid_constant__ CutlassCall p, const void *const __grid_constant__ a,
                    const __grid_constant__ h::MapTail left, const void *const __grid_constant__ b,
                    const __grid_constant__ h::MapTail right, const void *const __grid_constant__ c,
                    const __grid_constant__ h::MapTail result) {
  using Kernel = typename Product<Element, Rows, Columns, Blocks, ATransposed, BTransposed>::Kernel;
  using Scheduler = typename Kernel::TileSchedulerParams;
  using Order = typename Scheduler::RasterOrder;
  extern __shared__ __align__(1024) char cutlass_memory[];
  typename Kernel::Params params;
  params.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  params.problem_shape = cute::make_shape(p.m, p.n, p.k, p.products);
  params.mainloop.tma_load_a.tma_desc_.at = map_at(a);
  params.mainloop.tma_load_b.tma_desc_.at = map_at(b);
  params.epilogue.to = &h::map_of(c, result);
  Scheduler &scheduler = params.scheduler;
  divide_by(scheduler.divmod_batch_, p.batch);
  divide_by(scheduler.divmod_cluster_blk_major_, p.line);
  scheduler.blocks_per_problem_ = p.tiles;
  scheduler.log_swizzle_size_ = p.swizzle;
  scheduler.raster_order_ = p.along_m ? Order::AlongM : Order::AlongN;
  scheduler.divmod_cluster_shape_major_.divisor = p.along_m ? Blocks : 1;
  scheduler.divmod_cluster_shape_major_.shift_right = p.along_m ? Blocks / 2 : 0;
  scheduler.divmod_cluster_shape_minor_.divisor = p.along_m ? 1 : Blocks;
  scheduler.divmod_cluster_shape_minor_.shift_right = p.along_m ? 0 : Blocks / 2;
  Kernel()(params, cutlass_memory);
}

}  // namespace pk
