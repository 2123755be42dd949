// cluster.cu: matrix products on the tensor cores of SM 9.0, of floats of 8, 16 and 32 (tf32) bits.
//
// A pair of blocks, a cluster, makes 256 rows of a result and as many columns as its tiling says, step by step of 128
// bytes along k. One thread of the first warp group has operands copied to shared memory, some steps ahead; the other
// two groups make products. What both blocks read, each copies one half of to both. Blocks go from tile to tile, so
// that copies for the next one arrive while a result is written.
//
// The order of k is the same for every product and tiling: an element's bits depend on its row, its column and the
// types alone. Tensor cores sum floats of 8 bits with fewer bits than float32 has: they sum 128 of k at a time, from
// zero, and these sums are added in float32, in ascending order. The others they sum over all of k.
#include "hopper_write.cuh"

namespace pk {

constexpr int kBoxLines = 128, kBoxBytes = kBoxLines * h::kLine;  // that one block of a pair has for itself
constexpr int kPair = 2;                                          // blocks of a cluster
constexpr unsigned kBoth = (1u << kPair) - 1;
constexpr int kPairRows = kPair * kBoxLines;  // that they make
constexpr int kConsumers = 8;                    // warps that make products
constexpr int kBlockThreads = kConsumers * 32 + h::kGroup;
constexpr int kRaster = 8;             // tiles of rows that take turns, for the second-level cache
constexpr int kHopperShared = 232448;  // bytes: steps, what is written, barriers, and up to where a tile begins

enum Scaling { kUnscaled, kByLine, kByBlock };

// What a pair of blocks makes, of which types and how. Columns: 256 rows and so many columns. ATransposed: a's rows lie
// along m, BTransposed: b's along n; of numbers of 16 bits. How: what is written, see Writing; kGated makes half the
// columns of the result, of b's column j and j + n at a time.
template <class E, class R, int Scaled_, int Columns_, bool ATransposed_ = false, bool BTransposed_ = false,
          int How = kRounded>
struct Tiling {
  using Element = E;
  using Result = R;
  static constexpr int Scaled = Scaled_, Columns = Columns_;
  static constexpr bool ATransposed = ATransposed_, BTransposed = BTransposed_, kHalves = How == kGated;
  static constexpr int kResultColumns = kHalves ? Columns / 2 : Columns;  // columns of the result
  // A block has 128 rows and all columns, 64 rows to a group; else, as parts of sums would not fit into registers, all
  // rows and 128 columns, 128 rows to a group.
  static constexpr bool kWide = Scaled == kUnscaled || Columns == 128;
  static constexpr int kProducts = kWide ? 1 : 2, kProductColumns = kWide ? Columns : 128;  // of a group
  static constexpr int kGroupRows = kProducts * h::kProductRows;
  static constexpr int kCommonBytes = (kWide ? Columns : kPairRows) * h::kLine;  // of a step, for both blocks
  static constexpr int kStepBytes = kCommonBytes + kBoxBytes;
  static constexpr int kRoom = kHopperShared - (h::kTileStart - 128) - kConsumers * kBytesOut;
  static constexpr int kSteps = kRoom / (kStepBytes + 2 * sizeof(h::Barrier));  // in shared memory
  static constexpr int kDepth = h::kLine / sizeof(Element);                     // of a step along k
  static constexpr int kParts = h::kLine / h::kProductBytes;                    // of a step, each for one instruction
  static_assert(kSteps > 2 && Columns % h::kChunk == 0, "");
  static_assert(Scaled == kUnscaled || sizeof(Element) == 1, "a step is 128 of k");
  static_assert(sizeof(Element) == 2 || (!ATransposed && !BTransposed), "only numbers of 16 bits can be transposed");
  static_assert(kWide || kCommonBytes == Columns * h::kLine, "");
  static_assert(How == kRounded || (Scaled == kUnscaled && (!BTransposed || Columns % (2 * h::kChunk) == 0)), "");
};

// Product i of a stack has matrix i / repeat % matrices of an operand. A scale is for 2^line_shift lines; scale_line:
// elements from one to the next, scale_depth: from one 128 of k to the next.
struct alignas(64) HopperCall {
  long long row, matrix;  // of c, in elements, from one to the next
  long long scale_line[2], scale_depth[2];
  int m, n, k, products;
  int matrices[2], repeat[2];
  int line_shift[2], has_scale[2];
  float factor;
  int whole;        // rows of c are whole pieces of 16 bytes
  int follows;      // something comes after the sums, as `after` says; rows of c are whole then
  int type, bytes;  // of a converted result
  Epilogue after;
};

struct HopperTile {
  int product, row, column;
  __device__ __forceinline__ int matrix(const HopperCall &p, int operand) const {
    return product / p.repeat[operand] % p.matrices[operand];
  }
};

template <class T>
__device__ __forceinline__ int pairs_of(const HopperCall &p) {
  return (p.m + kPairRows - 1) / kPairRows * ((p.n + T::kResultColumns - 1) / T::kResultColumns);
}

template <class T>
__device__ __forceinline__ HopperTile tile_of(const HopperCall &p, int pair, int rank) {
  const int rows = (p.m + kPairRows - 1) / kPairRows, pairs = pairs_of<T>(p), columns = pairs / rows;
  const int place = pair % pairs, first = place / (kRaster * columns) * kRaster;
  const int height = rows - first < kRaster ? rows - first : kRaster, inside = place - first * columns;
  return {pair / pairs, (first + inside % height) * kPairRows + (T::kWide ? rank * kBoxLines : 0),
          inside / height * T::kResultColumns + (T::kWide ? 0 : rank * kBoxLines)};
}

// Where a step lies, and the parity of its barriers' phases.
template <class T>
struct Ring {
  int step = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++step == T::kSteps) step = 0, parity ^= 1u;
  }
};

template <class T>
struct HopperShared {
  unsigned char *steps, *out;
  h::Barrier *full, *empty;
  __device__ __forceinline__ explicit HopperShared(unsigned char *memory) {
    steps = memory + (h::kTileStart - h::shared_address(memory) % h::kTileStart) % h::kTileStart;
    out = steps + T::kSteps * T::kStepBytes;
    full = reinterpret_cast<h::Barrier *>(out + kConsumers * kBytesOut);
    empty = full + T::kSteps;
  }
};

// One thread: all that the block's tiles need.
template <class T>
struct Copier {
  const HopperShared<T> &shared;
  const h::TensorMap &left, &right;
  const HopperCall &p;
  int rank;

  __device__ __forceinline__ void all() {
    const int pairs = p.products * pairs_of<T>(p);
    Ring<T> ring;
    h::fetch_map(left);
    h::fetch_map(right);
    for (int pair = blockIdx.x / kPair; pair < pairs; pair += gridDim.x / kPair) {
      const HopperTile tile = tile_of<T>(p, pair, rank);
      const int rows_from = tile.matrix(p, 0), columns_from = tile.matrix(p, 1);
      for (int k = 0; k < p.k; k += T::kDepth, ring.advance()) {
        unsigned char *const common = shared.steps + ring.step * T::kStepBytes, *const own = common + T::kCommonBytes;
        h::Barrier *const full = shared.full + ring.step;
        h::wait(shared.empty + ring.step, ring.parity ^ 1u);
        h::arrive_expecting(full, T::kStepBytes);
        if (T::kWide) {
          rows(own, k, tile.row, rows_from, full);
          columns(common, k, tile.column, columns_from, full);
        } else {
          h::copy_box(own, right, k, tile.column, columns_from, full);
          h::copy_box_to(kBoth, common + rank * kBoxBytes, left, k, tile.row + rank * kBoxLines, rows_from, full);
        }
      }
    }
  }

  // The block's own rows.
  __device__ __forceinline__ void rows(unsigned char *to, int k, int row, int matrix, h::Barrier *full) {
    if (!T::ATransposed) {
      h::copy_box(to, left, k, row, matrix, full);
      return;
    }
#pragma unroll
    for (int at = 0; at < kBoxLines; at += h::kChunk) h::copy_box(to + at * h::kLine, left, row + at, k, matrix, full);
  }

  // The block's half of the columns for both; of transposed ones its half of each 64 lines along k. Where halves are
  // asked for, the second half of the tile's columns is b's from n on.
  __device__ __forceinline__ void columns(unsigned char *to, int k, int column, int matrix, h::Barrier *full) {
    if (!T::BTransposed) {
      const int part = rank * (T::Columns / kPair);
      h::copy_box_to(kBoth, to + part * h::kLine, right, k, column + from(part), matrix, full);
      return;
    }
    const int part = rank * (h::kChunk / kPair);
#pragma unroll
    for (int at = 0; at < T::Columns; at += h::kChunk)
      h::copy_box_to(kBoth, to + (at + part) * h::kLine, right, column + from(at), k + part, matrix, full);
  }
  __device__ __forceinline__ int from(int column) const {
    return T::kHalves && column >= T::kResultColumns ? column - T::kResultColumns + p.n : column;
  }
};

__device__ __forceinline__ float scale_at(const float *scales, const HopperCall &p, int operand, int line, int lines) {
  if (!p.has_scale[operand] || line >= lines) return 1.0f;
  return scales[(line >> p.line_shift[operand]) * p.scale_line[operand]];
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

// A thread of a warp group that makes a part of the block's rows.
template <class T>
struct Consumer {
  using Element = typename T::Element;
  using Sums = h::Sums<T::kProductColumns>;
  static constexpr unsigned kNext = h::kProductRows * h::kLine >> 4;  // from one product's rows to the next one's

  static constexpr int kSums = sizeof(Sums) / sizeof(float);

  const HopperShared<T> &shared;
  const HopperCall &p;
  int group, lane;
  Ring<T> ring = {};
  h::Products<Element, T::ATransposed, T::BTransposed> products = {};

  // Begins one of the group's products of the step. add: to what the sums were.
  __device__ __forceinline__ void start(Sums &sums, int product, bool add) {
    const unsigned common = h::shared_address(shared.steps) + ring.step * T::kStepBytes, own = common + T::kCommonBytes;
    const unsigned long long rows =
        h::descriptor_of<T::ATransposed>(T::kWide ? own : common) + (group * T::kProducts + product) * kNext;
    const unsigned long long columns = h::descriptor_of<T::BTransposed>(T::kWide ? common : own);
#pragma unroll
    for (int i = 0; i < T::kParts; ++i)
      products.start(sums, rows + i * h::kDescriptorStep<T::ATransposed>,
                     columns + i * h::kDescriptorStep<T::BTransposed>, add || i > 0);
  }

  // Copies of both blocks may fill the step again.
  __device__ __forceinline__ void release(int step) {
    if (lane < kPair) h::arrive(shared.empty + step, lane);
  }

  // The sums over all of k, by the tensor cores alone. The next step's products begin before a step's have ended.
  __device__ __forceinline__ void sum_all(Sums (&sums)[T::kProducts]) {
    int before = 0;
    for (int k = 0; k < p.k; k += T::kDepth, ring.advance()) {
      h::wait(shared.full + ring.step, ring.parity);
      products.begin();
      start(sums[0], 0, k > 0);
      products.end();
      products.template wait<1>();
      if (k > 0) release(before);
      before = ring.step;
    }
    products.wait_for(sums[0]);
    release(before);
  }

  // The sums over all of k, each step's from zero; scaled by step where scales are of blocks. One group adds while the
  // other's products are made.
  template <bool ByBlock>
  __device__ __forceinline__ void sum_steps(Sums (&sums)[T::kProducts], const float *scale_a, const float *scale_b,
                                            int row, int column) {
    // A lane reads the scale of one of the warp's 16 or 32 rows, and that of the columns, a step ahead.
    const int own = row - lane / 4 + lane % 16 + lane / 16 % T::kProducts * h::kProductRows;
    StepScales of_rows(scale_a, p, 0, own, p.m), of_columns(scale_b, p, 1, column, p.n);
    float next = 1.0f, next_column = 1.0f;
    const auto fetch = [&] {
      next = of_rows.take();
      next_column = of_columns.take();
    };
    if (ByBlock) fetch();
    Sums part = {};
#pragma unroll
    for (int i = 0; i < kSums; ++i)
#pragma unroll
      for (int product = 0; product < T::kProducts; ++product) sums[product][i] = 0.0f;
    for (int k = 0; k < p.k; k += T::kDepth, ring.advance()) {
      const float scale = next * next_column;  // of the lane's own row
      h::wait(shared.full + ring.step, ring.parity);
#pragma unroll
      for (int product = 0; product < T::kProducts; ++product) {
        products.begin();
        start(part, product, false);
        products.end();
        if (ByBlock && product == 0 && k + T::kDepth < p.k) fetch();
        float scales[2] = {1.0f, 1.0f};
        if (ByBlock)
          for (int r = 0; r < 2; ++r) scales[r] = __shfl_sync(~0u, scale, product * 16 + 8 * r + lane / 4);
        products.wait_for(part);
        if (product == T::kProducts - 1) release(ring.step);
#pragma unroll
        for (int i = 0; i < kSums; ++i) sums[product][i] = fmaf(part[i], scales[i >> 1 & 1], sums[product][i]);
      }
    }
  }

  // row: the thread's first; column: the tile's.
  __device__ __forceinline__ void scale_by_line(Sums (&sums)[T::kProducts], const float *scale_a, const float *scale_b,
                                                int row, int column) {
    float of_rows[T::kProducts][2];
    for (int product = 0; product < T::kProducts; ++product)
      for (int r = 0; r < 2; ++r)
        of_rows[product][r] = scale_at(scale_a, p, 0, row + product * h::kProductRows + 8 * r, p.m);
#pragma unroll
    for (int i = 0; i < kSums; i += 4) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float of_column = scale_at(scale_b, p, 1, column + 2 * i + lane % 4 * 2 + c, p.n);
#pragma unroll
        for (int at = 0; at < 2 * T::kProducts; ++at)
          sums[at / 2][i + at % 2 * 2 + c] *= of_rows[at / 2][at % 2] * of_column;
      }
    }
  }
};

// c = factor * (a scaled) @ (b scaled)^T, rounded once, and where p says so what follows; a: m lines of k, b: n lines
// of k, as the maps describe them. Scaled: kUnscaled sums over all of k; the others by 128 of k, and scale the whole
// sum by line (kByLine), or each of these sums by line of a and by 128 lines of b (kByBlock). bias, residual: see
// the epilogue. How: kConverted writes numbers of p.type to c, over p.factor and, where p.has_scale[0], over *scale_a.
template <class Element, class Result, int Scaled, int Columns, bool ATransposed, bool BTransposed, int How = kRounded>
__global__ void __launch_bounds__(kBlockThreads, 1)
    hopper_product(const __grid_constant__ HopperCall p, const Element *const __grid_constant__ a,
                   const __grid_constant__ h::MapTail left, const Element *const __grid_constant__ b,
                   const __grid_constant__ h::MapTail right, const float *scale_a, const float *scale_b,
                   const Result *bias, const Result *residual, Result *c) {
  using T = Tiling<Element, Result, Scaled, Columns, ATransposed, BTransposed, How>;
  extern __shared__ unsigned char hopper_memory[];
  const HopperShared<T> shared(hopper_memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int step = 0; step < T::kSteps; ++step) {
      h::make_barrier(shared.full + step, 1);
      h::make_barrier(shared.empty + step, kPair * kConsumers);
    }
    h::publish_barriers();
  }
  h::sync_cluster();
  const int rank = h::rank_in_cluster();
  if (warp < h::kGroup / 32) {
    h::give_registers<40>();
    if (threadIdx.x == 0) Copier<T>{shared, h::map_of(a, left), h::map_of(b, right), p, rank}.all();
  } else {
    h::take_registers<232>();
    const int group = warp / 4 - 1, pairs = p.products * pairs_of<T>(p);
    unsigned char *const out = shared.out + (warp - h::kGroup / 32) * kBytesOut;
    Consumer<T> consumer{shared, p, group, lane};
    Into into = {p.type, static_cast<int>(sizeof(Result)), 1.0f};
    if (How == kConverted) into = {p.type, p.bytes, p.has_scale[0] ? p.factor * *scale_a : p.factor};
    for (int pair = blockIdx.x / kPair; pair < pairs; pair += gridDim.x / kPair) {
      const HopperTile tile = tile_of<T>(p, pair, rank);
      const int warp_row = tile.row + group * T::kGroupRows + warp % 4 * kRowsOut, row = warp_row + lane / 4;
      const long long first = tile.product * p.matrix;
      unsigned char *const matrix = reinterpret_cast<unsigned char *>(c) + first * into.bytes;
      const Rows<Result, How> to = {matrix, bias, residual + first, p.row, p.m, p.n, p.whole, p.follows, into};
      if (Scaled == kUnscaled) to.prefetch(p.after, warp_row, tile.column, T::kResultColumns);
      typename Consumer<T>::Sums sums[T::kProducts];
      if constexpr (Scaled == kUnscaled) {
        consumer.sum_all(sums);
      } else {
        consumer.template sum_steps<Scaled == kByBlock>(sums, scale_a, scale_b, row, tile.column);
        if (Scaled == kByLine && (p.has_scale[0] || p.has_scale[1]))
          consumer.scale_by_line(sums, scale_a, scale_b, row, tile.column);
#pragma unroll
        for (int product = 0; product < T::kProducts; ++product)
#pragma unroll
          for (float &sum : sums[product]) sum *= p.factor;
      }
#pragma unroll
      for (int product = 0; product < T::kProducts; ++product)
        to.write(sums[product], out, p.after, warp_row + product * h::kProductRows, tile.column);
    }
    h::wait_for_stores();
  }
  h::sync_cluster();
}

}  // namespace pk
