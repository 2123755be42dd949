// cutlass_write.cuh: how CUTLASS's kernels for SM 9.0 write a result here: rounded, in pieces of 64 rows and 128 bytes
// that tensor copies store. It takes the place of their collective epilogue, and needs no operand of its own.
#pragma once
#include "hopper_out.cuh"

namespace pk {

constexpr int kWriters = 2, kPieceRows = 64, kPieceLine = 128;  // warp groups; of a piece
constexpr int kPieceBytes = kPieceRows * kPieceLine, kPieces = 2;  // of a group, in turn
constexpr int kBytesToWrite = kWriters * kPieces * kPieceBytes;

__device__ __forceinline__ void store_matrices(unsigned address, const unsigned (&four)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(four[0]),
               "r"(four[1]), "r"(four[2]), "r"(four[3])
               : "memory");
}

// Result: of 16 bits. Tile: rows, columns and depth of a block.
template <class Result, class Tile>
struct CutlassWriter {
  using ElementC = void;
  using ElementD = Result;
  using StrideC = cute::Stride<long long, cute::_1, long long>;
  using StrideD = StrideC;
  using LoadPipeline = cutlass::PipelineTransactionAsync<1>;  // nothing is loaded
  using LoadPipelineState = cutlass::PipelineState<1>;
  using PipelineStorage = typename LoadPipeline::SharedStorage;
  using StorePipeline = cutlass::PipelineTmaStore<kPieces>;
  using StorePipelineState = cutlass::PipelineState<kPieces>;
  static constexpr bool RequiresTransactionBytes = false;
  static constexpr int kColumns = kPieceLine / sizeof(Result);

  struct Arguments {};
  struct Params {
    const h::TensorMap *to;
  };
  struct alignas(1024) TensorStorage {
    unsigned char pieces[kWriters][kPieces][kPieceBytes];
  };

  const Params &params;
  __device__ __forceinline__ CutlassWriter(const Params &params, TensorStorage &) : params(params) {}

  static __device__ __forceinline__ void prefetch_tma_descriptors(const Params &params) { h::fetch_map(*params.to); }
  static constexpr int get_load_pipe_increment(Tile) { return 1; }
  static constexpr int get_store_pipe_increment(Tile) { return 1; }
  __device__ __forceinline__ bool is_producer_load_needed() const { return false; }
  template <class State, class... Rest>
  __device__ __forceinline__ State load(LoadPipeline, State state, const Rest &...) {
    return state;
  }
  template <class State>
  __device__ __forceinline__ void load_tail(LoadPipeline, State) {}

  // A group's part of a tile, whose sums it has. at: the tile's coordinates.
  template <class Shape, class At, class Sums, class Mma>
  __device__ __forceinline__ auto store(LoadPipeline, LoadPipelineState loads, StorePipeline,
                                        StorePipelineState stores, const Shape &, Tile, const At &at, Sums &sums, Mma,
                                        int thread, TensorStorage &room, int = 0) {
    constexpr int kOfThread = cute::size<1>(Tile{}) / 2, kGroupsOfTile = cute::size(Mma{}) / h::kGroup;
    const int group = cutlass::canonical_warp_group_idx() - 1, warp = thread % h::kGroup / 32, lane = thread % 32;
    const int row = warp * 16 + lane % 16, column = cute::get<1>(at) * cute::size<1>(Tile{});
    bool second = false;
#pragma unroll
    for (int part = 0; part < cute::size(sums) / kOfThread; ++part) {
      const int first =
          cute::get<0>(at) * cute::size<0>(Tile{}) + (part * kGroupsOfTile + thread / h::kGroup) * kPieceRows;
#pragma unroll
      for (int from = 0; from < cute::size<1>(Tile{}); from += kColumns) {
        unsigned char *const piece = room.pieces[group][second];
        if (thread % h::kGroup == 0) cute::tma_store_wait<kPieces - 1>();
        cutlass::arch::NamedBarrier::sync(h::kGroup, group);
        const unsigned line = h::shared_address(piece) + row * kPieceLine;
#pragma unroll
        for (int chunk = 0; chunk < 8; chunk += 2) {
          const int i = part * kOfThread + (from / 8 + chunk) * 4;
          const unsigned four[4] = {two(sums(i), sums(i + 1)), two(sums(i + 2), sums(i + 3)),
                                    two(sums(i + 4), sums(i + 5)), two(sums(i + 6), sums(i + 7))};
          store_matrices(line + ((chunk + lane / 16) ^ row % 8) * 16, four);
        }
        h::publish_to_stores();
        cutlass::arch::NamedBarrier::sync(h::kGroup, group);
        if (thread % h::kGroup == 0) {
          cute::SM90_TMA_STORE_3D::copy(params.to, piece, column + from, first, cute::get<3>(at));
          cute::tma_store_arrive();
        }
        second = !second;
      }
    }
    return cute::make_tuple(loads, stores);
  }

  __device__ __forceinline__ auto store_tail(LoadPipeline, LoadPipelineState loads, StorePipeline,
                                             StorePipelineState stores) {
    cute::tma_store_wait<0>();
    return cute::make_tuple(loads, stores);
  }

 private:
  static __device__ __forceinline__ unsigned two(float first, float second) {
    using Tag = cute::conditional_t<cute::is_same_v<Result, cutlass::half_t>, half_t, bfloat16_t>;
    return two_rounded(Tag{}, first, second);
  }
};

}  // namespace pk
