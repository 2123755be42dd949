// grouped_hopper.cu: products of groups of rows, each with a weight of its own, on the tensor cores of SM 9.0; how many
// rows a group has stands on the device.
//
// As in hopper.cu, pairs of blocks go from tile to tile; the first warp copies operands some steps ahead, two groups of
// warps make products, and what both blocks read, each copies one half of to both. A tile is of one group: 256 rows of
// it, 128 to a block, with the same columns; but of its last 128 rows or less, the same rows, with twice as many
// columns, so that few rows are made in vain. Rows after the group's end are copied and not written.
//
// Sums are those of hopper.cu, to the bit: a row's bits depend on k and the types alone, not on the groups.
#include "hopper_write.cuh"

namespace pk {

constexpr int kPair = 2, kOwnRows = 128, kPairRows = kPair * kOwnRows;  // blocks of a cluster; rows of a block
constexpr unsigned kBoth = (1u << kPair) - 1;
constexpr int kMakers = 8;  // warps that make products
constexpr int kBlockThreads = kMakers * 32 + h::kGroup;
constexpr int kRaster = 8;             // tiles of rows that take turns, for the second-level cache
constexpr int kGroupsShared = 232448;  // bytes: steps, what is written, barriers, and up to where a tile begins

// Columns: of a block. Turned: rows of the weight lie along n.
template <class Element_, int Columns_, bool Turned_>
struct Grouping {
  using Element = Element_;
  static constexpr int Columns = Columns_;
  static constexpr bool Turned = Turned_;
  static constexpr int kDepth = h::kLine / sizeof(Element), kParts = h::kLine / h::kProductBytes;  // of a step
  static constexpr int kColumnBytes = Columns * h::kLine, kStepBytes = kColumnBytes + kOwnRows * h::kLine;
  static constexpr int kRoom = kGroupsShared - (h::kTileStart - 128) - kMakers * kBytesOut;
  static constexpr int kSteps = kRoom / (kStepBytes + 2 * sizeof(h::Barrier));  // in shared memory
};

struct alignas(64) GroupsCall {
  int rows, n, k, groups;
  int whole;  // rows of the result are whole pieces of 16 bytes
};

// What a block of a pair makes. row, column: its first; end: the first row after the group. low: of the same rows as
// the other block.
struct GroupTile {
  int group, row, column, end;
  bool low;
};

// Finds the tiles of a warp's pair in ascending order. A lane has one of 32 groups: its first row, the first after it,
// and the same of its tiles. All lanes come to each function.
template <class T>
struct Finder {
  const GroupsCall &p;
  const int *counts;
  int lane;
  int chunk = -32;  // the first of the 32 groups
  int begin = 0, end = 0, before = 0, after = 0;

  __device__ __forceinline__ static int sum_to(int value, int lane, int most) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, value, step);
      if (lane >= step) value = other < most - value ? value + other : most;
    }
    return value;
  }
  __device__ __forceinline__ int across() const { return (p.n + T::Columns - 1) / T::Columns; }
  __device__ __forceinline__ bool ends() const { return chunk + 32 >= p.groups; }

  // Goes on to the next 32 groups. What counts say beyond the rows is not, and less than 0 is 0.
  __device__ __forceinline__ void advance() {
    const int rows = __shfl_sync(~0u, end, 31), tiles = __shfl_sync(~0u, after, 31), left = p.rows - rows;
    chunk += 32;
    const int wanted = chunk + lane < p.groups ? counts[chunk + lane] : 0;
    const int count = wanted < 0 ? 0 : wanted < left ? wanted : left;
    end = rows + sum_to(count, lane, left);
    begin = __shfl_up_sync(~0u, end, 1);
    if (lane == 0) begin = rows;
    const int high = high_tiles(end - begin), rest = end - begin - high * kPairRows;
    const int own = high * across() + (rest > 0 ? (across() + 1) / 2 : 0);
    after = tiles + sum_to(own, lane, 0x7fffffff - tiles);
    before = after - own;
  }

  // Tiles of 256 rows; 128 rows or less may be left.
  __device__ __forceinline__ static int high_tiles(int count) { return (count + kOwnRows - 1) / kPairRows; }

  // Whether there is a tile with that number, and the block's part of it.
  __device__ __forceinline__ bool find(int number, int rank, GroupTile &tile) {
    while (__shfl_sync(~0u, after, 31) <= number) {
      if (ends()) return false;
      advance();
    }
    const int from = __ffs(__ballot_sync(~0u, after > number)) - 1;
    const int first = __shfl_sync(~0u, begin, from), place = number - __shfl_sync(~0u, before, from);
    tile.group = chunk + from;
    tile.end = __shfl_sync(~0u, end, from);
    const int high = high_tiles(tile.end - first), columns = across();
    tile.low = place >= high * columns;
    if (tile.low) {
      tile.row = first + high * kPairRows;
      tile.column = ((place - high * columns) * kPair + rank) * T::Columns;
    } else {
      const int above = place / (kRaster * columns) * kRaster, inside = place - above * columns;
      const int height = high - above < kRaster ? high - above : kRaster;
      tile.row = first + (above + inside % height) * kPairRows + rank * kOwnRows;
      tile.column = inside / height * T::Columns;
    }
    return true;
  }
};

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
struct GroupsShared {
  unsigned char *steps, *out;
  h::Barrier *full, *empty;
  __device__ __forceinline__ explicit GroupsShared(unsigned char *memory) {
    steps = memory + (h::kTileStart - h::shared_address(memory) % h::kTileStart) % h::kTileStart;
    out = steps + T::kSteps * T::kStepBytes;
    full = reinterpret_cast<h::Barrier *>(out + kMakers * kBytesOut);
    empty = full + T::kSteps;
  }
};

// What a block reads of x and w; what both blocks read, it copies a half of to both.
template <class T>
struct Copier {
  using Element = typename T::Element;
  const h::TensorMap &rows, &columns;
  const Element *x, *w;
  int rank;

  __device__ __forceinline__ void step(const GroupTile &tile, int k, unsigned char *to, h::Barrier *full) const {
#pragma unroll
    for (int half = 0; half < kPair; ++half) {
      if (!tile.low || half == rank) rows_of(tile, k, half, to + T::kColumnBytes, full);
      if (tile.low || half == rank) columns_of(tile, k, half, to, full);
    }
  }

 private:
  // A half of the rows; for both blocks where they are the same.
  __device__ __forceinline__ void rows_of(const GroupTile &tile, int k, int half, unsigned char *to,
                                          h::Barrier *full) const {
    constexpr int kLines = kOwnRows / kPair;
    copy(tile.low, to + half * kLines * h::kLine, rows, x, k, tile.row + half * kLines, 0, full);
  }

  // A half of the columns; of turned ones a half of each 64 lines along k.
  __device__ __forceinline__ void columns_of(const GroupTile &tile, int k, int half, unsigned char *to,
                                             h::Barrier *full) const {
    constexpr int kLines = (T::Turned ? h::kChunk : T::Columns) / kPair;
    to += half * kLines * h::kLine;
    if (!T::Turned) copy(!tile.low, to, columns, w, k, tile.column + half * kLines, tile.group, full);
#pragma unroll
    for (int at = 0; T::Turned && at < T::Columns; at += h::kChunk)
      copy(!tile.low, to + at * h::kLine, columns, w, tile.column + at, k + half * kLines, tile.group, full);
  }

  __device__ __forceinline__ static void copy(bool to_both, unsigned char *to, const h::TensorMap &map,
                                              const Element *array, int at, int line, int matrix, h::Barrier *full) {
    if (to_both)
      h::copy_box_to(kBoth, to, map, array, at, line, matrix, full);
    else
      h::copy_box(to, map, array, at, line, matrix, full);
  }
};

// A thread of a warp group that makes 64 rows of the block's tile.
template <class T>
struct Maker {
  using Sums = h::Sums<T::Columns>;
  const GroupsShared<T> &shared;
  int k, group, lane;
  Ring<T> ring = {};
  h::Products<typename T::Element, false, T::Turned> products = {};

  // Copies of both blocks may fill the step again.
  __device__ __forceinline__ void release(int step) {
    if (lane < kPair) h::arrive(shared.empty + step, lane);
  }

  // The next step's products begin before a step's have ended.
  __device__ __forceinline__ void sum(Sums &sums) {
    int last = 0;
    for (int at = 0; at < k; at += T::kDepth, ring.advance()) {
      const unsigned step = h::shared_address(shared.steps) + ring.step * T::kStepBytes;
      const unsigned long long columns = h::descriptor_of<T::Turned>(step);
      const unsigned long long rows =
          h::descriptor_of<false>(step + T::kColumnBytes) + group * (h::kProductRows * h::kLine >> 4);
      h::wait(shared.full + ring.step, ring.parity);
      products.begin();
#pragma unroll
      for (int i = 0; i < T::kParts; ++i)
        products.start(sums, rows + i * h::kDescriptorStep<false>, columns + i * h::kDescriptorStep<T::Turned>,
                       at > 0 || i > 0);
      products.end();
      products.template wait<1>();
      if (at > 0) release(last);
      last = ring.step;
    }
    products.wait_for(sums);
    release(last);
  }

  // Of a tile of which the group has nothing to make.
  __device__ __forceinline__ void pass() {
    for (int at = 0; at < k; at += T::kDepth, ring.advance()) {
      h::wait(shared.full + ring.step, ring.parity);
      __syncwarp();  // no lane may find the phase after the next
      release(ring.step);
    }
  }
};

// Rows that no group has become 0; by threads of all blocks, 96 of each.
template <class Element>
__device__ __forceinline__ void clear(Element *out, const GroupsCall &p, int first, int thread) {
  constexpr int kPiece = sizeof(uint4) / sizeof(Element);
  const long long own = blockIdx.x * 96ll + thread, step = gridDim.x * 96ll;
  const long long from = static_cast<long long>(first) * p.n, end = static_cast<long long>(p.rows) * p.n;
  if (p.whole) {
    for (long long i = from / kPiece + own; i < end / kPiece; i += step) reinterpret_cast<uint4 *>(out)[i] = uint4{};
  } else {
    for (long long i = from + own; i < end; i += step) out[i] = Element{};
  }
}

// out[i] = x[i] @ w[the group of row i], rounded once. x: rows of k; w: matrices of n rows of k, or of k rows of n
// where Turned, as the maps describe them. out: dense.
template <class Element, int Columns, bool Turned>
__global__ void __launch_bounds__(kBlockThreads, 1)
    grouped_product(const __grid_constant__ GroupsCall p, const Element *const __grid_constant__ x,
                    const __grid_constant__ h::MapTail rows, const Element *const __grid_constant__ w,
                    const __grid_constant__ h::MapTail columns, const int *counts, Element *out) {
  using T = Grouping<Element, Columns, Turned>;
  extern __shared__ unsigned char groups_memory[];
  const GroupsShared<T> shared(groups_memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x / kPair, pairs = gridDim.x / kPair;
  if (threadIdx.x == 0) {
    for (int step = 0; step < T::kSteps; ++step) {
      h::make_barrier(shared.full + step, 1);
      h::make_barrier(shared.empty + step, kPair * kMakers);
    }
    h::publish_barriers();
  }
  h::sync_cluster();
  const int rank = h::rank_in_cluster();
  Finder<T> finder{p, counts, lane};
  GroupTile tile;
  if (warp < h::kGroup / 32) {
    h::give_registers<40>();
    if (warp == 0) {
      const Copier<T> copier{h::map_of(x, rows), h::map_of(w, columns), x, w, rank};
      if (lane == 0) h::fetch_map(copier.rows), h::fetch_map(copier.columns);
      Ring<T> ring;
      for (int number = first; finder.find(number, rank, tile); number += pairs) {
        for (int k = 0; k < p.k; k += T::kDepth, ring.advance()) {
          if (lane != 0) continue;
          h::Barrier *const full = shared.full + ring.step;
          h::wait(shared.empty + ring.step, ring.parity ^ 1u);
          h::arrive_expecting(full, T::kStepBytes);
          copier.step(tile, k, shared.steps + ring.step * T::kStepBytes, full);
        }
        __syncwarp();
      }
    } else {
      while (!finder.ends()) finder.advance();
      clear(out, p, __shfl_sync(~0u, finder.end, 31), threadIdx.x - 32);
    }
  } else {
    h::take_registers<232>();
    const int group = warp / 4 - 1;
    unsigned char *const room = shared.out + (warp - h::kGroup / 32) * kBytesOut;
    Maker<T> maker{shared, p.k, group, lane};
    for (int number = first; finder.find(number, rank, tile); number += pairs) {
      const int row = tile.row + group * h::kProductRows;
      if (row >= tile.end || tile.column >= p.n) {
        maker.pass();
        continue;
      }
      typename Maker<T>::Sums sums;
      maker.sum(sums);
      const Rows<Element> to = {out, nullptr, nullptr, p.n, tile.end, p.n, p.whole, 0};
      to.write(sums, room, After{}, row + warp % 4 * kRowsOut, tile.column);
    }
    h::wait_for_stores();
  }
  h::sync_cluster();
}

}  // namespace pk
