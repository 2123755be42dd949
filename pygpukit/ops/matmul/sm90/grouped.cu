// grouped.cu: products of groups of rows, each with a weight of its own, on the tensor cores of SM 9.0; how many
// rows a group has stands on the device.
//
// As in cluster.cu, pairs of blocks go from tile to tile; two warps copy operands some steps ahead, two groups of warps
// make products, and what both blocks read, each copies one half of to both. A tile is of one group. A high one
// has 256 rows of it, 128 to a block, and the same columns for both; what is left of the group's rows is made 128 at a
// time, the same rows by both blocks with twice as many columns, so that fewer rows are made in vain. Rows after the
// group's end are copied and not written. If the last tiles leave half of the pairs idle, each of them is made as two.
//
// Sums are those of cluster.cu, to the bit: a row's bits depend on k and the types alone, not on the groups.
#include "hopper_write.cuh"

namespace pk {

constexpr int kPair = 2, kOwnRows = 128, kPairRows = kPair * kOwnRows;  // blocks of a cluster; rows of a block
constexpr int kLowRows = 192;                     // rows that two low tiles make no later than a high one
constexpr int kColumns = 256, kNarrow = 128;  // of a block, and where a tile is made as two
constexpr int kBoxLines = h::kProductRows, kBoxBytes = kBoxLines * h::kLine;  // that are copied at a time
constexpr int kColumnLines = 64;
constexpr unsigned kBoth = (1u << kPair) - 1;
constexpr int kCopiers = 2, kConsumers = 8;  // warps
constexpr int kBlockThreads = kConsumers * 32 + h::kGroup;
constexpr int kRaster = 8;             // tiles of rows that take turns, for the second-level cache
constexpr int kGroupsShared = 232448;  // bytes: steps, what is written, barriers, and up to where a tile begins
constexpr int kColumnBytes = kColumns * h::kLine, kStepBytes = kColumnBytes + kOwnRows * h::kLine;
constexpr int kRoom = kGroupsShared - (h::kTileStart - 128) - kConsumers * kBytesOut;
constexpr int kSteps = kRoom / (kStepBytes + 2 * sizeof(h::Barrier));  // in shared memory

struct alignas(64) GroupsCall {
  int rows, n, k, groups;
  int whole;  // rows of the result are whole pieces of 16 bytes
};

// What a block of a pair makes. row, column: its first; end: the first row after the group. high: of other rows than
// the other block. columns: kColumns or kNarrow.
struct GroupTile {
  int group, row, end, column, columns;
  bool high;
};

// Finds the tiles of a warp's pair in ascending order. A lane has one of 32 groups: its first row, the first after it,
// and the same of its tiles. All lanes come to each function.
struct Finder {
  const GroupsCall &p;
  const int *counts;
  int lane, across;         // across: tiles of columns
  int rows = 0, tiles = 0;  // of all groups
  int chunk = -32;          // the first of the 32 groups
  int begin = 0, end = 0, before = 0, after = 0;

  __device__ __forceinline__ Finder(const GroupsCall &call, const int *at)
      : p(call), counts(at), lane(threadIdx.x % 32), across((call.n + kColumns - 1) / kColumns) {
    while (chunk + 32 < p.groups) advance();
    rows = __shfl_sync(~0u, end, 31);
    tiles = __shfl_sync(~0u, after, 31);
    if (chunk > 0) chunk = -32, end = after = 0;
  }

  // A lane's value and those of the lanes below; `limit` where it would be more.
  __device__ __forceinline__ int sum_to(int value, int limit) const {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, value, step);
      if (lane >= step) value = other < limit - value ? value + other : limit;
    }
    return value;
  }

  // Goes on to the next 32 groups. What counts say beyond the rows is not, and less than 0 is 0.
  __device__ __forceinline__ void advance() {
    const int row = __shfl_sync(~0u, end, 31), tile = __shfl_sync(~0u, after, 31), left = p.rows - row;
    chunk += 32;
    const int requested = chunk + lane < p.groups ? counts[chunk + lane] : 0;
    end = row + sum_to(requested < 0 ? 0 : requested < left ? requested : left, left);
    begin = __shfl_up_sync(~0u, end, 1);
    if (lane == 0) begin = row;
    const int count = end - begin, high = high_tiles(count);
    const int own = high * across + low_tiles(count, high) * ((across + 1) / 2);
    after = tile + sum_to(own, 0x7fffffff - tile);
    before = after - own;
  }

  // How many rows of tiles a group of `count` rows has.
  __device__ __forceinline__ static int high_tiles(int count) { return (count + kPairRows - kLowRows - 1) / kPairRows; }
  __device__ __forceinline__ static int low_tiles(int count, int high) {
    return count > high * kPairRows ? (count - high * kPairRows + kOwnRows - 1) / kOwnRows : 0;
  }

  // Whether there is a tile for that turn of a pair, and the block's part of it.
  __device__ __forceinline__ bool find(int turn, int pairs, int rank, GroupTile &tile) {
    const int last = tiles % pairs, whole = tiles - last, beyond = turn - whole;
    const bool split = beyond >= 0 && last * 2 <= pairs;
    const int number = split ? whole + beyond / 2 : turn;
    if (number >= tiles) return false;
    while (__shfl_sync(~0u, after, 31) <= number) advance();
    const int from = __ffs(__ballot_sync(~0u, after > number)) - 1;
    const int first = __shfl_sync(~0u, begin, from), place = number - __shfl_sync(~0u, before, from);
    tile.group = chunk + from;
    tile.end = __shfl_sync(~0u, end, from);
    const int high = high_tiles(tile.end - first), low = low_tiles(tile.end - first, high);
    tile.high = place < high * across;
    if (tile.high) {
      const int above = place / (kRaster * across) * kRaster, inside = place - above * across;
      const int height = high - above < kRaster ? high - above : kRaster;
      tile.row = first + (above + inside % height) * kPairRows + rank * kOwnRows;
      tile.column = inside / height * kColumns;
    } else {
      const int inside = place - high * across;
      tile.row = first + high * kPairRows + inside % low * kOwnRows;
      tile.column = (inside / low * kPair + rank) * kColumns;
    }
    tile.columns = split ? kNarrow : kColumns;
    if (split) tile.column += beyond % 2 * kNarrow;
    return true;
  }
};

// Where a step lies, and the parity of its barriers' phases.
struct Ring {
  int step = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++step == kSteps) step = 0, parity ^= 1u;
  }
};

struct GroupsShared {
  unsigned char *steps, *out;
  h::Barrier *full, *empty;
  __device__ __forceinline__ explicit GroupsShared(unsigned char *memory) {
    steps = memory + (h::kTileStart - h::shared_address(memory) % h::kTileStart) % h::kTileStart;
    out = steps + kSteps * kStepBytes;
    full = reinterpret_cast<h::Barrier *>(out + kConsumers * kBytesOut);
    empty = full + kSteps;
  }
};

// Copies what a block reads of an operand, a warp for each: one for both would not keep up. Transposed: lines lie
// across k.
template <bool Transposed, int Lines>
struct Copier {
  const h::TensorMap &map;
  int rank;

  // Boxes of a step from k and a line on; those that both blocks read, they copy in turns to both.
  __device__ __forceinline__ void copy(int boxes, bool to_both, unsigned char *to, int k, int line, int matrix,
                                       h::Barrier *full) const {
    if (to_both) {
#pragma unroll 1
      for (int i = rank; i < boxes; i += kPair) {
        const int at = line + i * Lines;
        h::copy_box_to(kBoth, to + i * Lines * h::kLine, map, Transposed ? at : k, Transposed ? k : at, matrix, full);
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < boxes; ++i) {
        const int at = line + i * Lines;
        h::copy_box(to + i * Lines * h::kLine, map, Transposed ? at : k, Transposed ? k : at, matrix, full);
      }
    }
  }
};

// A thread of a warp group that makes 64 rows of the block's tile.
template <class Element, bool Transposed>
struct Consumer {
  static constexpr int kDepth = h::kLine / sizeof(Element), kParts = h::kLine / h::kProductBytes;  // of a step
  const GroupsShared &shared;
  int k, group, lane;
  Ring ring = {};
  h::Products<Element, false, Transposed> products = {};

  // Copies of both blocks may fill the step again.
  __device__ __forceinline__ void release(int step) {
    if (lane < kPair) h::arrive(shared.empty + step, lane);
  }

  // The next step's products begin before a step's have ended.
  template <int Count>
  __device__ __forceinline__ void sum(float (&sums)[Count]) {
    int last = 0;
    for (int at = 0; at < k; at += kDepth, ring.advance()) {
      const unsigned step = h::shared_address(shared.steps) + ring.step * kStepBytes;
      const unsigned long long columns = h::descriptor_of<Transposed>(step);
      const unsigned long long rows = h::descriptor_of<false>(step + kColumnBytes) + group * (kBoxBytes >> 4);
      h::wait(shared.full + ring.step, ring.parity);
      products.begin();
#pragma unroll
      for (int i = 0; i < kParts; ++i)
        products.start(sums, rows + i * h::kDescriptorStep<false>, columns + i * h::kDescriptorStep<Transposed>,
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
    for (int at = 0; at < k; at += kDepth, ring.advance()) {
      h::wait(shared.full + ring.step, ring.parity);
      __syncwarp();  // no lane may find the phase after the next
      release(ring.step);
    }
  }
};

// Rows that no group has become 0; by the threads of all blocks that have nothing else to do.
template <class Element>
__device__ __forceinline__ void clear(Element *out, const GroupsCall &p, int first, int thread) {
  constexpr int kPiece = sizeof(uint4) / sizeof(Element);
  constexpr long long kThreads = h::kGroup - kCopiers * 32;
  const long long own = blockIdx.x * kThreads + thread, step = gridDim.x * kThreads;
  const long long from = static_cast<long long>(first) * p.n, end = static_cast<long long>(p.rows) * p.n;
  if (p.whole) {
    for (long long i = from / kPiece + own; i < end / kPiece; i += step) reinterpret_cast<uint4 *>(out)[i] = uint4{};
  } else {
    for (long long i = from + own; i < end; i += step) out[i] = Element{};
  }
}

// out[i] = x[i] @ w[the group of row i], rounded once. x: rows of k; w: matrices of n rows of k, or of k rows of n
// where Transposed, as the maps describe them. out: dense.
template <class Element, bool Transposed>
__global__ void __launch_bounds__(kBlockThreads, 1)
    grouped_product(const __grid_constant__ GroupsCall p, const Element *const __grid_constant__ x,
                    const __grid_constant__ h::MapTail rows, const Element *const __grid_constant__ w,
                    const __grid_constant__ h::MapTail columns, const int *counts, Element *out) {
  using Making = Consumer<Element, Transposed>;
  constexpr int kLines = Transposed ? h::kChunk : kColumnLines;
  extern __shared__ unsigned char groups_memory[];
  const GroupsShared shared(groups_memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x / kPair, pairs = gridDim.x / kPair;
  if (threadIdx.x == 0) {
    for (int step = 0; step < kSteps; ++step) {
      h::make_barrier(shared.full + step, kCopiers);
      h::make_barrier(shared.empty + step, kPair * kConsumers);
    }
    h::publish_barriers();
  }
  Finder finder(p, counts);
  h::sync_cluster();
  const int rank = h::rank_in_cluster();
  GroupTile tile;
  if (warp < h::kGroup / 32) {
    h::give_registers<40>();
    if (warp < kCopiers) {
      const Copier<false, kBoxLines> left{h::map_of(x, rows), rank};
      const Copier<Transposed, kLines> right{h::map_of(w, columns), rank};
      if (lane == 0) h::fetch_map(warp == 0 ? left.map : right.map);
      Ring ring;
      for (int turn = first; finder.find(turn, pairs, rank, tile); turn += pairs) {
        const int of_rows = tile.end - tile.row > kBoxLines ? 2 : 1, of_columns = tile.columns / kLines;
        for (int k = 0; k < p.k; k += Making::kDepth, ring.advance()) {
          if (lane != 0) continue;
          unsigned char *const to = shared.steps + ring.step * kStepBytes;
          h::Barrier *const full = shared.full + ring.step;
          h::wait(shared.empty + ring.step, ring.parity ^ 1u);
          h::arrive_expecting(full, (warp == 0 ? of_rows * kBoxLines : of_columns * kLines) * h::kLine);
          if (warp == 0)
            left.copy(of_rows, !tile.high, to + kColumnBytes, k, tile.row, 0, full);
          else
            right.copy(of_columns, tile.high, to, k, tile.column, tile.group, full);
        }
        __syncwarp();
      }
    } else {
      clear(out, p, finder.rows, threadIdx.x - kCopiers * 32);
    }
  } else {
    h::take_registers<232>();
    const int group = warp / 4 - 1;
    unsigned char *const room = shared.out + (warp - h::kGroup / 32) * kBytesOut;
    Making consumer{shared, p.k, group, lane};
    for (int turn = first; finder.find(turn, pairs, rank, tile); turn += pairs) {
      const int row = tile.row + group * h::kProductRows;
      if (row >= tile.end || tile.column >= p.n) {
        consumer.pass();
        continue;
      }
      unsigned char *const result = reinterpret_cast<unsigned char *>(out);
      const Rows<Element> to = {result, nullptr, nullptr, p.n, tile.end, p.n, p.whole, 0, {}};
      const auto make = [&](auto &sums) {
        consumer.sum(sums);
        to.write(sums, room, Epilogue{}, row + warp % 4 * kRowsOut, tile.column);
      };
      h::Sums<kColumns> sums;
      if (tile.columns == kColumns)
        make(sums);
      else
        make(reinterpret_cast<h::Sums<kNarrow> &>(sums));
    }
    h::wait_for_stores();
  }
  h::sync_cluster();
}

}  // namespace pk
