// cutlass_kernel.cuh: what products by CUTLASS on SM 9.0 share: types for its templates, and its parameters made of few
// numbers. The maps of the arrays lie among a kernel's parameters; CUTLASS is told where (PK_TENSOR_MAPS_ELSEWHERE).
#pragma once
#include "cutlass_write.cuh"

namespace pk {

constexpr int kCutlassRoom = 232448;  // bytes of shared memory
constexpr int kStepsRoom = kCutlassRoom - 1024 - kBytesToWrite;

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
template <bool Transposed>  // of an operand: m or n, k, product
using Strides = cute::conditional_t<Transposed, cute::Stride<cute::_1, long long, long long>,
                                    cute::Stride<long long, cute::_1, long long>>;
template <int Blocks>  // that share what is copied
using Load = cute::conditional_t<Blocks == 1, cute::SM90_TMA_LOAD, cute::SM90_TMA_LOAD_MULTICAST>;

// By a cluster of Blocks blocks below each other.
template <int Rows, int Columns, int Depth, int Blocks>
struct Block {
  using Tile = cute::Shape<cute::Int<Rows>, cute::Int<Columns>, cute::Int<Depth>>;
  using Cluster = cute::Shape<cute::Int<Blocks>, cute::_1, cute::_1>;
};
template <class Element, class Tile, bool ATransposed, bool BTransposed>
using Multiply = decltype(cute::make_tiled_mma(
    cute::GMMA::ss_op_selector<Element, Element, float, Tile, kMajor<ATransposed>, kMajor<BTransposed>>(),
    cute::Layout<cute::Shape<cute::_2, cute::_1, cute::_1>>{}));

__device__ __forceinline__ void divide_by(cutlass::FastDivmodU64 &by, const Division &division) {
  by.divisor = division.divisor;
  by.multiplier = division.multiplier;
  by.shift_right = division.shift;
  by.round_up = division.more;
}

__device__ __forceinline__ const cute::TmaDescriptor *map_at(const void *const &array, const h::MapTail &tail) {
  return reinterpret_cast<const cute::TmaDescriptor *>(&h::map_of(array, tail));
}

// Parameters of a kernel of CUTLASS but for the arrays.
template <class Kernel, int Blocks>
__device__ __forceinline__ typename Kernel::Params params_of(const CutlassCall &p) {
  using Scheduler = typename Kernel::TileSchedulerParams;
  using Order = typename Scheduler::RasterOrder;
  constexpr unsigned kShift = Blocks / 2;
  static_assert(Blocks == 1 || Blocks == 2, "");
  typename Kernel::Params params;
  params.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  params.problem_shape = cute::make_shape(p.m, p.n, p.k, p.products);
  Scheduler &scheduler = params.scheduler;
  divide_by(scheduler.divmod_batch_, p.batch);
  divide_by(scheduler.divmod_cluster_blk_major_, p.line);
  scheduler.blocks_per_problem_ = p.tiles;
  scheduler.log_swizzle_size_ = p.swizzle;
  scheduler.raster_order_ = p.along_m ? Order::AlongM : Order::AlongN;
  scheduler.divmod_cluster_shape_major_.divisor = p.along_m ? Blocks : 1;
  scheduler.divmod_cluster_shape_major_.shift_right = p.along_m ? kShift : 0;
  scheduler.divmod_cluster_shape_minor_.divisor = p.along_m ? 1 : Blocks;
  scheduler.divmod_cluster_shape_minor_.shift_right = p.along_m ? 0 : kShift;
  return params;
}

}  // namespace pk
