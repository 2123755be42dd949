// grouped.cu: products of groups of rows, each with a weight of its own, by CUTLASS's kernel and main loop for SM 9.0;
// where groups end stands on the device.
//
// What is here of CUTLASS's place is the order of tiles and how they are written. A cluster's tile is of one group and
// begins at its rows, wherever these begin: rows after the group's end are multiplied and not written. Rows of no group
// are one more, of zeros. Sums are those of product.cu: a row's bits depend on k and the types alone.
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

constexpr int kGroupBlocks = 2;  // of a cluster, below each other

struct alignas(64) GroupsOfRows {
  int rows, n, k, groups;
  long long line;  // elements from a row of the result to the next, whole 16 bytes
};

// Tiles of `Rows` rows a block in the order of the groups, of a group those below each other first.
template <int Rows, int Columns>
struct GroupTiles : cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90 {
  using Base = cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90;
  using WorkTileInfo = typename Base::WorkTileInfo;
  struct Params : Base::Params {
    const long long *ends;  // of the groups, ascending and at most `rows`
    int groups, rows, across;
  };
  Params of;
  int turn, group = 0, begin = 0, before = 0;  // begin: of the group; before: tiles of the groups before it

  __device__ __forceinline__ explicit GroupTiles(const Params &params) : of(params), turn(blockIdx.x / kGroupBlocks) {}

  // M_idx: the tile's first row.
  __device__ __forceinline__ WorkTileInfo find() {
    for (; group <= of.groups; ++group) {
      const int end = group < of.groups ? static_cast<int>(of.ends[group]) : of.rows;
      const int below = (end - begin + Rows * kGroupBlocks - 1) / (Rows * kGroupBlocks), own = below * of.across;
      if (turn - before < own) {
        const int place = turn - before,
                  block = place % below * kGroupBlocks + static_cast<int>(blockIdx.x) % kGroupBlocks;
        return {begin + block * Rows, place / below, group, true};
      }
      begin = end, before += own;
    }
    return WorkTileInfo::invalid_work_tile();
  }
  template <class Cluster>
  __device__ __forceinline__ WorkTileInfo initial_work_tile_info(Cluster) {
    return find();
  }
  __device__ __forceinline__ auto fetch_next_work(WorkTileInfo) {
    turn += gridDim.x / kGroupBlocks;
    return cute::make_tuple(find(), true);
  }
  template <class Pipeline, class State>
  __device__ __forceinline__ auto fetch_next_work(WorkTileInfo now, Pipeline &, State) {
    return fetch_next_work(now);
  }
  __device__ __forceinline__ bool is_last_tile(WorkTileInfo &) const { return false; }  // no launch waits for it
};
struct InGroups {};  // the order of tiles, by which CUTLASS finds GroupTiles

}  // namespace pk

namespace cutlass::gemm::kernel::detail {
template <class Arch, class Tile, class Cluster, uint32_t Stages>
struct TileSchedulerSelector<pk::InGroups, Arch, Tile, Cluster, Stages> {
  using Scheduler = pk::GroupTiles<cute::size<0>(Tile{}), cute::size<1>(Tile{})>;
};
}  // namespace cutlass::gemm::kernel::detail

namespace pk {

// A main loop whose left operand has one matrix, and tiles that begin at any row.
template <class Loop>
struct FromAnyRow : Loop {
  template <class Extents>
  __device__ __forceinline__ auto load_init(const Extents &extents, const typename Loop::Params &params) const {
    const auto both = Loop::load_init(extents, params);
    const auto a = cute::get<0>(both);  // coordinates of (rows, depth, tile down, step, group)
    const auto steps = cute::replace<4>(cute::replace<2>(a.stride(), cute::E<1>{}), cute::E<2>{} * cute::Int<0>{});
    return cute::make_tuple(cute::make_tensor(a.data(), cute::make_layout(a.shape(), steps)), cute::get<1>(both));
  }
};

// Rows of the result up to their group's end, stored by threads.
template <class Element>
struct GroupResult {
  Element *out;
  const long long *ends;
  long long line;
  int groups, rows, n;
  __device__ __forceinline__ void prefetch() const {}
  template <int Rows>
  static __device__ __forceinline__ int row_of(int row) {
    return row;
  }
  __device__ __forceinline__ float kept(float sum, int group) const { return group < groups ? sum : 0.0f; }
  template <int KeptBack>
  static __device__ __forceinline__ void await(int) {}
  __device__ __forceinline__ void store(const unsigned char *piece, int column, int row, int group, int thread) const {
    constexpr int kChunk = 16 / sizeof(Element), kChunks = kPieceLine / 16;
    const int end = group < groups ? static_cast<int>(ends[group]) : rows;
#pragma unroll
    for (int i = thread; i < kPieceRows * kChunks; i += h::kGroup) {
      const int down = i / kChunks, chunk = i % kChunks;
      if (row + down < end && column + chunk * kChunk < n)
        *reinterpret_cast<uint4 *>(out + (row + down) * line + column + chunk * kChunk) =
            *reinterpret_cast<const uint4 *>(piece + down * kPieceLine + (chunk ^ down % 8) * 16);
    }
  }
};

template <class Element, int Rows, int Columns, bool BTransposed>
struct Grouped {
  using B = Block<Rows, Columns, 128 / sizeof(Element), kGroupBlocks>;
  static constexpr int kSteps = kStepsRoom / ((Rows + Columns) * 128 + 16);
  using Loop = FromAnyRow<cutlass::gemm::collective::CollectiveMma<
      cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<kSteps, typename B::Cluster,
                                                        cutlass::gemm::KernelTmaWarpSpecializedCooperative>,
      typename B::Tile, Element, Strides<false>, Element, Strides<BTransposed>,
      Multiply<Element, typename B::Tile, false, BTransposed>, Load<1>, Atom<Element, false>, void, cute::identity,
      Load<kGroupBlocks>, Atom<Element, BTransposed>, void, cute::identity>>;
  using Writer = CutlassWriter<Element, typename B::Tile, kSums, GroupResult<Element>>;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Loop, Writer, InGroups>;
  static_assert(cute::size<1>(typename Loop::Params::TMA_A::BitLayoutSrc{}) == Rows * 128 * 8, "");
  static_assert(cute::size<1>(typename Loop::Params::TMA_B::BitLayoutSrc{}) == (BTransposed ? 64 : Columns) * 128 * 8,
                "");
  static_assert(Kernel::SharedStorageSize <= kCutlassRoom, "");
};

// out = the rows of a, those of each group times its matrix b^T. a: rows of k, b: n lines of k for each group, as the
// maps describe them.
template <class Element, int Rows, int Columns, bool BTransposed>
__global__ void __launch_bounds__(384, 1)
    cutlass_grouped(const __grid_constant__ GroupsOfRows p, const void *const __grid_constant__ a,
                    const __grid_constant__ h::MapTail left, const void *const __grid_constant__ b,
                    const __grid_constant__ h::MapTail right, const long long *ends, Element *out) {
  using Kernel = typename Grouped<Element, Rows, Columns, BTransposed>::Kernel;
  extern __shared__ __align__(1024) char cutlass_memory[];
  typename Kernel::Params params;
  params.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  params.problem_shape = cute::make_shape(p.rows, p.n, p.k, p.groups);
  params.scheduler.ends = ends;
  params.scheduler.groups = p.groups;
  params.scheduler.rows = p.rows;
  params.scheduler.across = (p.n + Columns - 1) / Columns;
  params.mainloop.tma_load_a.tma_desc_.at = map_at(a, left);
  params.mainloop.tma_load_b.tma_desc_.at = map_at(b, right);
  static_cast<GroupResult<Element> &>(params.epilogue) = {out, ends, p.line, p.groups, p.rows, p.n};
  Kernel()(params, cutlass_memory);
}

}  // namespace pk
