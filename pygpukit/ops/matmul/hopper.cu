// hopper.cu: matrix products on the tensor cores of SM 9.0, of floats of 8, 16 and 32 (tf32) bits.
//
// A block makes 256 x 128 of the result, step by step of 128 bytes along k. One thread of the first warp group has
// operands copied to shared memory, four steps ahead; the other two groups make 128 rows each. Two blocks of a cluster
// have neighbouring columns: each copies one half of their common rows to both. Blocks go from tile to tile, so that
// copies for the next one arrive while a result is written.
//
// The tile and the order of k are the same for every product: an element's bits depend on its row, its column and the
// types alone. Tensor cores sum floats of 8 bits with fewer bits than float32 has: they sum 128 of k at a time, from
// zero, and these sums are added in float32, in ascending order. The others they sum over all of k.
#include "hopper.cuh"

namespace pk {

namespace h = hopper;

constexpr int kBoxLines = 128, kBoxBytes = kBoxLines * h::kLine;  // of one copy
constexpr int kSteps = 4;                                         // that are in shared memory
constexpr int kStepBytes = 3 * kBoxBytes;                         // two boxes that the pair shares, and the block's own
constexpr int kPair = 2;                                          // blocks of a cluster
constexpr int kPairLines = kPair * kBoxLines;                     // rows and columns that they make
constexpr int kMakers = 8;                                        // warps that make products
constexpr int kBlockThreads = kMakers * 32 + h::kGroup;
constexpr int kLineOut = 256, kRowsOut = 16;  // bytes and rows that a warp writes at a time
constexpr int kPitchOut = kLineOut + 16;      // bytes from one of these rows to the next: eight lie in different banks
constexpr int kBytesOut = kPitchOut * kRowsOut;
constexpr int kRaster = 8;             // tiles of rows that take turns, for the second-level cache
constexpr int kHopperShared = 232448;  // bytes: steps, what is written, barriers, and up to where a tile begins
static_assert(h::kTileStart - 128 + kSteps * (kStepBytes + 16) + kMakers * kBytesOut <= kHopperShared, "");

enum Scaling { kUnscaled, kByLine, kByBlock };

// Product i of a stack has matrix i / repeat % matrices of an operand. A scale is for 2^line_shift lines; scale_line:
// elements from one to the next, scale_depth: from one 128 of k to the next.
struct alignas(64) HopperCall {
  long long row, matrix;  // of c, in elements, from one to the next
  long long scale_line[2], scale_depth[2];
  int m, n, k, products;
  int matrices[2], repeat[2];
  int line_shift[2], has_scale[2];
  float factor;
  int whole;  // rows of c are whole pieces of 16 bytes
};

struct HopperTile {
  int product, row, column;
  __device__ __forceinline__ int matrix(const HopperCall &p, int operand) const {
    return product / p.repeat[operand] % p.matrices[operand];
  }
};

__device__ __forceinline__ int pairs_of(const HopperCall &p) {
  return (p.m + kPairLines - 1) / kPairLines * ((p.n + kPairLines - 1) / kPairLines);
}

template <bool Wide>
__device__ __forceinline__ HopperTile tile_of(const HopperCall &p, int pair, int rank) {
  const int rows = (p.m + kPairLines - 1) / kPairLines, pairs = pairs_of(p), columns = pairs / rows;
  const int place = pair % pairs, first = place / (kRaster * columns) * kRaster;
  const int height = rows - first < kRaster ? rows - first : kRaster, inside = place - first * columns;
  return {pair / pairs, (first + inside % height) * kPairLines + (Wide ? rank * kBoxLines : 0),
          inside / height * kPairLines + (Wide ? 0 : rank * kBoxLines)};
}

// Where a step lies, and the parity of its barriers' phases.
struct Ring {
  int step = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++step == kSteps) step = 0, parity ^= 1u;
  }
};

struct HopperShared {
  unsigned char *steps, *out;
  h::Barrier *full, *empty;
  __device__ __forceinline__ explicit HopperShared(unsigned char *memory) {
    steps = memory + (h::kTileStart - h::shared_address(memory) % h::kTileStart) % h::kTileStart;
    out = steps + kSteps * kStepBytes;
    full = reinterpret_cast<h::Barrier *>(out + kMakers * kBytesOut);
    empty = full + kSteps;
  }
};

// One thread: all that the block's tiles need.
template <class Element, bool Wide>
__device__ __forceinline__ void copy_operands(const HopperShared &shared, const h::TensorMap &left,
                                              const h::TensorMap &right, const Element *a, const Element *b,
                                              const HopperCall &p) {
  constexpr int kDepth = h::kLine / sizeof(Element);
  const int rank = h::rank_in_cluster(), pairs = p.products * pairs_of(p);
  Ring ring;
  h::fetch_map(left);
  h::fetch_map(right);
  for (int pair = blockIdx.x / kPair; pair < pairs; pair += gridDim.x / kPair) {
    const HopperTile tile = tile_of<Wide>(p, pair, rank);
    const int rows_from = tile.matrix(p, 0), columns_from = tile.matrix(p, 1), part = rank * kBoxLines;
    for (int k = 0; k < p.k; k += kDepth, ring.advance()) {
      unsigned char *const step = shared.steps + ring.step * kStepBytes;
      unsigned char *const own = step + 2 * kBoxBytes, *const common = step + rank * kBoxBytes;
      h::Barrier *const full = shared.full + ring.step;
      h::wait(shared.empty + ring.step, ring.parity ^ 1u);
      h::arrive_expecting(full, kStepBytes);
      if (Wide) {
        h::copy_box(own, left, a, k, tile.row, rows_from, full);
        h::copy_box_to((1u << kPair) - 1, common, right, b, k, tile.column + part, columns_from, full);
      } else {
        h::copy_box(own, right, b, k, tile.column, columns_from, full);
        h::copy_box_to((1u << kPair) - 1, common, left, a, k, tile.row + part, rows_from, full);
      }
    }
  }
}

// A thread's two rows of each of its group's two products, and what scales their sums.
struct RowScales {
  float of[2][2];
};

__device__ __forceinline__ float scale_at(const float *scales, const HopperCall &p, int operand, int line, int lines,
                                          int block) {
  if (!p.has_scale[operand] || line >= lines) return 1.0f;
  return scales[(line >> p.line_shift[operand]) * p.scale_line[operand] + block * p.scale_depth[operand]];
}

__device__ __forceinline__ RowScales scales_of(const float *scales, const HopperCall &p, int row, int block) {
  RowScales found;
  for (int half = 0; half < 2; ++half)
    for (int r = 0; r < 2; ++r)
      found.of[half][r] = scale_at(scales, p, 0, row + half * h::kProductRows + 8 * r, p.m, block);
  return found;
}

// The scales of a line for one block of k after another.
struct StepScales {
  const float *at;  // null: there are none, or no such line
  long long step;
  __device__ __forceinline__ StepScales(const float *scales, const HopperCall &p, int operand, int line, int lines)
      : at(nullptr), step(p.scale_depth[operand]) {
    if (p.has_scale[operand] && line < lines) at = scales + (line >> p.line_shift[operand]) * p.scale_line[operand];
  }
  __device__ __forceinline__ float take() {
    if (at == nullptr) return 1.0f;
    const float scale = *at;
    at += step;
    return scale;
  }
};

// A thread of a warp group that makes 128 rows of a tile: two products of each part of a step.
template <class Element>
struct Maker {
  static constexpr int kDepth = h::kLine / sizeof(Element);           // of a step along k
  static constexpr int kParts = h::kLine / h::kProductBytes;          // of a step, each for one instruction
  static constexpr unsigned kHalf = h::kProductRows * h::kLine >> 4;  // from one product's rows to the other's

  const HopperShared &shared;
  const HopperCall &p;
  int group, lane;
  Ring ring = {};
  h::Products<Element> products = {};

  // Begins the products of a half of the step. add: to what the sums were.
  __device__ __forceinline__ void start(h::Sums &sums, int half, bool add) {
    const unsigned at = h::shared_address(shared.steps) + ring.step * kStepBytes;
    const unsigned long long rows = h::descriptor_of(at + group * kBoxBytes) + half * kHalf;
    const unsigned long long columns = h::descriptor_of(at + 2 * kBoxBytes);
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      products.start(sums, rows + i * h::kDescriptorStep, columns + i * h::kDescriptorStep, add || i > 0);
  }

  // Copies of both blocks may fill the step again.
  __device__ __forceinline__ void release(int step) {
    if (lane < kPair) h::arrive(shared.empty + step, lane);
  }

  // Begins the products of the step, of 64 rows and 256 columns.
  __device__ __forceinline__ void start_wide(h::Sums (&sums)[2], bool add) {
    const unsigned at = h::shared_address(shared.steps) + ring.step * kStepBytes;
    const unsigned long long rows = h::descriptor_of(at + 2 * kBoxBytes) + group * kHalf;
    const unsigned long long columns = h::descriptor_of(at);
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      products.start(sums, rows + i * h::kDescriptorStep, columns + i * h::kDescriptorStep, add || i > 0);
  }

  // The sums over all of k, by the tensor cores alone. The next step's products begin before a step's have ended.
  template <bool Wide>
  __device__ __forceinline__ void sum_all(h::Sums (&sums)[2]) {
    int before = 0;
    for (int k = 0; k < p.k; k += kDepth, ring.advance()) {
      h::wait(shared.full + ring.step, ring.parity);
      products.begin();
      if (Wide) {
        start_wide(sums, k > 0);
      } else {
        start(sums[0], 0, k > 0);
        start(sums[1], 1, k > 0);
      }
      products.end();
      products.template wait<1>();
      if (k > 0) release(before);
      before = ring.step;
    }
    products.wait_for(sums[0]);
    products.wait_for(sums[1]);
    release(before);
  }

  // The sums over all of k, each step's from zero; scaled by step where scales are of blocks. One group adds while the
  // other's products are made.
  template <bool ByBlock>
  __device__ __forceinline__ void sum_steps(h::Sums (&sums)[2], const float *scale_a, const float *scale_b, int row,
                                            int column) {
    // A lane reads the scale of one of the warp's 32 rows, and that of the columns, a step ahead.
    const int own = row - lane / 4 + lane % 16 + lane / 16 * h::kProductRows;
    StepScales of_rows(scale_a, p, 0, own, p.m), of_columns(scale_b, p, 1, column, p.n);
    float next = 1.0f, next_column = 1.0f;
    const auto fetch = [&] {
      next = of_rows.take();
      next_column = of_columns.take();
    };
    if (ByBlock) fetch();
    h::Sums part = {};
#pragma unroll
    for (int i = 0; i < h::kSums; ++i) sums[0][i] = sums[1][i] = 0.0f;
    for (int k = 0; k < p.k; k += kDepth, ring.advance()) {
      const float scale = next * next_column;  // of the lane's own row
      h::wait(shared.full + ring.step, ring.parity);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        products.begin();
        start(part, half, false);
        products.end();
        if (ByBlock && half == 0 && k + kDepth < p.k) fetch();
        float scales[2] = {1.0f, 1.0f};
        if (ByBlock)
          for (int r = 0; r < 2; ++r) scales[r] = __shfl_sync(~0u, scale, half * 16 + 8 * r + lane / 4);
        products.wait_for(part);
        if (half == 1) release(ring.step);
#pragma unroll
        for (int i = 0; i < h::kSums; ++i) sums[half][i] = fmaf(part[i], scales[i >> 1 & 1], sums[half][i]);
      }
    }
  }

  // row: the thread's first; column: the tile's.
  __device__ __forceinline__ void scale_by_line(h::Sums (&sums)[2], const float *scale_a, const float *scale_b, int row,
                                                int column) {
    const RowScales of_rows = scales_of(scale_a, p, row, 0);
#pragma unroll
    for (int i = 0; i < h::kSums; i += 4) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float of_column = scale_at(scale_b, p, 1, column + 2 * i + lane % 4 * 2 + c, p.n, 0);
#pragma unroll
        for (int at = 0; at < 4; ++at) sums[at / 2][i + at % 2 * 2 + c] *= of_rows.of[at / 2][at % 2] * of_column;
      }
    }
  }
};

// A warp's 16 rows of a product, 128 columns of them: turned in shared memory and written row by row.
template <class Result>
__device__ __forceinline__ void write_rows(const h::Sums &sums, unsigned char *out, Result *c, const HopperCall &p,
                                           int row, int column) {
  constexpr int kColumns = kLineOut / sizeof(Result);
  struct alignas(2 * sizeof(Result)) Two {
    Result of[2];
  };
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int pass = 0; pass < kBoxLines / kColumns; ++pass) {
    const int first = column + pass * kColumns, columns = p.n - first < kColumns ? p.n - first : kColumns;
    h::wait_for_stores();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kColumns / 8; ++i) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float *const two = sums + 4 * (pass * (kColumns / 8) + i) + 2 * r;
        unsigned char *const to = out + (lane / 4 + 8 * r) * kPitchOut + (4 * i + lane % 4) * sizeof(Two);
        *reinterpret_cast<Two *>(to) = {{convert<Result>::from(two[0]), convert<Result>::from(two[1])}};
      }
    }
    if (p.whole) h::publish_to_stores();
    __syncwarp();
    if (p.whole) {
      if (lane < kRowsOut && row + lane < p.m && columns > 0)
        h::store_bytes(c + (row + lane) * p.row + first, out + lane * kPitchOut, columns * sizeof(Result));
      h::end_stores();
    } else {
      for (int line = 0; line < kRowsOut && row + line < p.m; ++line)
        for (int i = lane; i < columns; i += 32)
          c[(row + line) * p.row + first + i] = reinterpret_cast<const Result *>(out + line * kPitchOut)[i];
    }
  }
}

// c = factor * (a scaled) @ (b scaled)^T, rounded once; a: m lines of k, b: n lines of k, as the maps describe them.
// Scaled: kUnscaled sums over all of k; the others by 128 of k, and scale the whole sum by line (kByLine), or each of
// these sums by line of a and by 128 lines of b (kByBlock).
template <class Element, class Result, int Scaled>
__global__ void __launch_bounds__(kBlockThreads, 1)
    hopper_product(const __grid_constant__ HopperCall p, const Element *const __grid_constant__ a,
                   const __grid_constant__ h::MapTail left, const Element *const __grid_constant__ b,
                   const __grid_constant__ h::MapTail right, const float *scale_a, const float *scale_b, Result *c) {
  static_assert(Scaled == kUnscaled || sizeof(Element) == 1, "a step is 128 of k");
  constexpr bool kWide = Scaled == kUnscaled;
  extern __shared__ unsigned char hopper_memory[];
  const HopperShared shared(hopper_memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int step = 0; step < kSteps; ++step) {
      h::make_barrier(shared.full + step, 1);
      h::make_barrier(shared.empty + step, kPair * kMakers);
    }
    h::publish_barriers();
  }
  h::sync_cluster();
  if (warp < h::kGroup / 32) {
    h::give_registers<40>();
    if (threadIdx.x == 0) copy_operands<Element, kWide>(shared, h::map_of(a, left), h::map_of(b, right), a, b, p);
  } else {
    h::take_registers<232>();
    const int group = warp / 4 - 1, rank = h::rank_in_cluster(), pairs = p.products * pairs_of(p);
    unsigned char *const out = shared.out + (warp - h::kGroup / 32) * kBytesOut;
    Maker<Element> maker{shared, p, group, lane};
    for (int pair = blockIdx.x / kPair; pair < pairs; pair += gridDim.x / kPair) {
      const HopperTile tile = tile_of<kWide>(p, pair, rank);
      const int group_rows = kWide ? h::kProductRows : kBoxLines;
      const int warp_row = tile.row + group * group_rows + warp % 4 * kRowsOut, row = warp_row + lane / 4;
      h::Sums sums[2];
      if constexpr (Scaled == kUnscaled) {
        maker.template sum_all<kWide>(sums);
      } else {
        maker.template sum_steps<Scaled == kByBlock>(sums, scale_a, scale_b, row, tile.column);
        if (Scaled == kByLine && (p.has_scale[0] || p.has_scale[1]))
          maker.scale_by_line(sums, scale_a, scale_b, row, tile.column);
#pragma unroll
        for (int i = 0; i < h::kSums; ++i) sums[0][i] *= p.factor, sums[1][i] *= p.factor;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half)
        write_rows(sums[half], out, c + tile.product * p.matrix, p, warp_row + (kWide ? 0 : half * h::kProductRows),
                   tile.column + (kWide ? half * kBoxLines : 0));
    }
    h::wait_for_stores();
  }
  h::sync_cluster();
}

}  // namespace pk
