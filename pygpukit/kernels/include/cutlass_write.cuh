// cutlass_write.cuh: how CUTLASS's kernels for SM 9.0 write a result here: scaled and rounded, in pieces of 64 rows and
// 128 bytes that tensor copies store, or threads. It takes the place of their collective epilogue, and needs no operand
// of its own.
#pragma once
#include "hopper_out.cuh"

namespace pk {

constexpr int kWriters = 2, kPieceRows = 64, kPieceLine = 128;     // warp groups; of a piece
constexpr int kPieceBytes = kPieceRows * kPieceLine, kPieces = 2;  // of a group, in turn
constexpr int kBytesToWrite = kWriters * kPieces * kPieceBytes;

// What becomes of the sums before they are rounded: nothing; times a number; times scales of lines and a number.
enum Finish { kSums, kTimesNumber, kTimesScales };

// Scales of the rows and columns of a result, null for none. step: elements from one to the next.
struct LineScales {
  const float *row, *column;
  int row_step, column_step, m, n;
  __device__ __forceinline__ float of_row(int at) const {
    return row != nullptr && at < m ? row[static_cast<long long>(at) * row_step] : 1.0f;
  }
  __device__ __forceinline__ float of_column(int at) const {
    return column != nullptr && at < n ? column[static_cast<long long>(at) * column_step] : 1.0f;
  }
};

__device__ __forceinline__ void store_matrices(unsigned address, const unsigned (&four)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(four[0]),
               "r"(four[1]), "r"(four[2]), "r"(four[3])
               : "memory");
}

// A result as a tensor map describes it: tensor copies store its pieces, and none of what lies beyond it.
struct MappedResult {
  const h::TensorMap *to;
  __device__ __forceinline__ void prefetch() const { h::fetch_map(*to); }
  template <int Rows>
  static __device__ __forceinline__ int row_of(int tile) {
    return tile * Rows;
  }
  static __device__ __forceinline__ float kept(float sum, int) { return sum; }
  // Until all of a warp group's pieces but the last KeptBack have left.
  template <int KeptBack>
  static __device__ __forceinline__ void await(int thread) {
    if (thread == 0) cute::tma_store_wait<KeptBack>();
  }
  __device__ __forceinline__ void store(unsigned char *piece, int column, int row, int matrix, int thread) const {
    if (thread == 0) {
      cute::SM90_TMA_STORE_3D::copy(to, piece, column, row, matrix);
      cute::tma_store_arrive();
    }
  }
};

// Result: of 16 or 32 bits. Tile: rows, columns and depth of a block. To: where a group's pieces go.
template <class Result, class Tile, int How = kSums, class To = MappedResult>
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
  struct Params : To {
    float factor;
    LineScales lines;
  };
  struct alignas(1024) TensorStorage {
    unsigned char pieces[kWriters][kPieces][kPieceBytes];
  };

  const Params &params;
  __device__ __forceinline__ CutlassWriter(const Params &params, TensorStorage &) : params(params) {}

  static __device__ __forceinline__ void prefetch_tma_descriptors(const Params &params) { params.prefetch(); }
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
  __device__ __forceinline__ auto store(LoadPipeline, LoadPipelineState loads, StorePipeline, StorePipelineState stores,
                                        const Shape &, Tile, const At &at, Sums &sums, Mma, int thread,
                                        TensorStorage &room, int = 0) {
    constexpr int kOfThread = cute::size<1>(Tile{}) / 2, kGroupsOfTile = cute::size(Mma{}) / h::kGroup;
    const int group = cutlass::canonical_warp_group_idx() - 1, warp = thread % h::kGroup / 32, lane = thread % 32;
    const int column = cute::get<1>(at) * cute::size<1>(Tile{});
    bool second = false;
#pragma unroll
    for (int part = 0; part < cute::size(sums) / kOfThread; ++part) {
      const int first = To::template row_of<cute::size<0>(Tile{})>(cute::get<0>(at)) +
                        (part * kGroupsOfTile + thread / h::kGroup) * kPieceRows;
      float of_rows[2] = {1.0f, 1.0f};
      if (How == kTimesScales)
        for (int r = 0; r < 2; ++r) of_rows[r] = params.lines.of_row(first + warp * 16 + lane / 4 + 8 * r);
#pragma unroll
      for (int from = 0; from < cute::size<1>(Tile{}); from += kColumns) {
        unsigned char *const piece = room.pieces[group][second];
        To::template await<kPieces - 1>(thread % h::kGroup);
        cutlass::arch::NamedBarrier::sync(h::kGroup, group);
        float numbers[kColumns / 2];
#pragma unroll
        for (int i = 0; i < kColumns / 2; ++i) {
          numbers[i] = params.kept(sums(part * kOfThread + from / 2 + i), cute::get<3>(at));
          if (How == kTimesScales)
            numbers[i] *= of_rows[i / 2 % 2] * params.lines.of_column(column + from + i / 4 * 8 + lane % 4 * 2 + i % 2);
          if (How != kSums) numbers[i] *= params.factor;
        }
        write(numbers, piece, warp, lane);
        h::publish_to_stores();
        cutlass::arch::NamedBarrier::sync(h::kGroup, group);
        params.store(piece, column + from, first, cute::get<3>(at), thread % h::kGroup);
        second = !second;
      }
    }
    // The next tile begins with the first piece, which is then still on its way where this one has an odd number.
    if (cute::size<1>(Tile{}) / kColumns % kPieces != 0) To::template await<0>(thread % h::kGroup);
    return cute::make_tuple(loads, stores);
  }

  __device__ __forceinline__ auto store_tail(LoadPipeline, LoadPipelineState loads, StorePipeline,
                                             StorePipelineState stores) {
    To::template await<0>(threadIdx.x % h::kGroup);
    return cute::make_tuple(loads, stores);
  }

 private:
  // A warp's 16 rows of a piece: 4 i + 2 r + c is of row lane / 4 + 8 r and column 8 i + lane % 4 * 2 + c.
  static __device__ __forceinline__ void write(const float (&numbers)[kColumns / 2], unsigned char *piece, int warp,
                                               int lane) {
    if constexpr (sizeof(Result) == 4) {
#pragma unroll
      for (int i = 0; i < kColumns / 2; i += 2) {
        const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, chunk = i / 4 * 2 + lane % 4 / 2;
        *reinterpret_cast<float2 *>(piece + row * kPieceLine + (chunk ^ row % 8) * 16 + lane % 2 * 8) =
            make_float2(numbers[i], numbers[i + 1]);
      }
    } else {
      using Tag = cute::conditional_t<cute::is_same_v<Result, cutlass::half_t>, half_t, bfloat16_t>;
      const int row = warp * 16 + lane % 16;
      const unsigned line = h::shared_address(piece) + row * kPieceLine;
#pragma unroll
      for (int i = 0; i < kColumns / 2; i += 8) {
        unsigned four[4];
#pragma unroll
        for (int two = 0; two < 4; ++two)
          four[two] = two_rounded(Tag{}, numbers[i + 2 * two], numbers[i + 2 * two + 1]);
        store_matrices(line + ((i / 4 + lane / 16) ^ row % 8) * 16, four);
      }
    }
  }
};

}  // namespace pk
