// pingpong.cu: products of bfloat16 and float16 on the tensor cores of SM 9.0 by single blocks, with the bits of
// cluster.cu: for sums that are short and for results of few tiles.
//
// A block's two groups of four warps take turns: each makes a tile of its own, and writes it while the other one's sums
// are made. Tiles whose sums do not fit into one group are shared, half of the rows to each. One thread of a third
// group has operands copied, tile after tile, some steps ahead. Blocks wait for no other block.
#include "hopper_pieces.cuh"

namespace pk {

constexpr int kTurnsThreads = 3 * h::kGroup;
constexpr int kConsumers = 8;             // warps that make products
constexpr int kTurnsRaster = 8;        // tiles of rows that take turns, for the second-level cache
constexpr int kTurnsShared = 232448;   // bytes: steps, what is written, barriers, and up to where a tile begins
constexpr int kMaxAlone = 128 * 128;  // sums that one group has room for

// What a block makes: Rows rows and Columns columns. ATransposed: a's rows lie along m, BTransposed: b's along n.
template <int Rows_, int Columns_, bool ATransposed_, bool BTransposed_>
struct Turn {
  static constexpr int Rows = Rows_, Columns = Columns_;
  static constexpr bool ATransposed = ATransposed_, BTransposed = BTransposed_, kAlone = Rows * Columns <= kMaxAlone;
  static constexpr int kGroupRows = kAlone ? Rows : Rows / 2, kProducts = kGroupRows / h::kProductRows;
  static constexpr int kLines = BTransposed ? (Columns + h::kChunk - 1) / h::kChunk * h::kChunk : Columns;
  static constexpr int kRowBytes = Rows * h::kLine, kStepBytes = kRowBytes + kLines * h::kLine;
  static constexpr int kRoom = kTurnsShared - (h::kTileStart - 128) - kConsumers * kBytesOut - 2 * sizeof(h::Barrier);
  static constexpr unsigned kSteps = kRoom / (kStepBytes + 2 * sizeof(h::Barrier));  // in shared memory
  static constexpr int kDepth = h::kLine / 2, kParts = h::kLine / h::kProductBytes;  // of a step
  static_assert(kSteps > 2 && kProducts > 0 && Columns % 16 == 0, "");
};

// Product i of a stack has matrix i / repeat % matrices of an operand.
struct alignas(64) TurnsCall {
  long long row, matrix;  // of c, in elements, from one to the next
  int m, n, k, products;
  int matrices[2], repeat[2];
  int whole;  // rows of c are whole pieces of 16 bytes
};

template <class T>
struct TurnsTiles {
  int rows, columns, all;  // of a product; of all products
  __device__ __forceinline__ explicit TurnsTiles(const TurnsCall &p)
      : rows((p.m + T::Rows - 1) / T::Rows),
        columns((p.n + T::Columns - 1) / T::Columns),
        all(rows * columns * p.products) {}

  struct One {
    int product, row, column;
  };
  __device__ __forceinline__ One operator[](int tile) const {
    const int place = tile % (rows * columns), first = place / (kTurnsRaster * columns) * kTurnsRaster;
    const int height = rows - first < kTurnsRaster ? rows - first : kTurnsRaster, inside = place - first * columns;
    return {tile / (rows * columns), (first + inside % height) * T::Rows, inside / height * T::Columns};
  }
};

// Where a step lies, and the parity of its barriers' phases.
template <class T>
struct TurnsRing {
  unsigned step = 0, parity = 0;
  __device__ __forceinline__ void advance(unsigned steps = 1) {
    const unsigned at = step + steps;
    parity ^= at / T::kSteps & 1u;
    step = at % T::kSteps;
  }
};

template <class T>
struct TurnsShared {
  unsigned char *steps, *out;
  h::Barrier *full, *empty, *turn;  // turn: of each group, that it may begin its sums
  __device__ __forceinline__ explicit TurnsShared(unsigned char *memory) {
    steps = memory + (h::kTileStart - h::shared_address(memory) % h::kTileStart) % h::kTileStart;
    out = steps + T::kSteps * T::kStepBytes;
    full = reinterpret_cast<h::Barrier *>(out + kConsumers * kBytesOut);
    empty = full + T::kSteps;
    turn = empty + T::kSteps;
  }
};

// One thread: the operands of all tiles of the block.
template <class T>
__device__ __forceinline__ void copy_tiles(const TurnsShared<T> &shared, const TurnsTiles<T> &tiles, const TurnsCall &p,
                                           const h::TensorMap &left, const h::TensorMap &right) {
  constexpr int kRowsAtOnce = T::ATransposed ? h::kChunk : T::Rows;
  constexpr int kColumnsAtOnce = T::BTransposed ? h::kChunk : T::Columns;
  TurnsRing<T> ring;
  for (int tile = blockIdx.x; tile < tiles.all; tile += gridDim.x) {
    const auto at = tiles[tile];
    const int of_a = at.product / p.repeat[0] % p.matrices[0], of_b = at.product / p.repeat[1] % p.matrices[1];
    for (int k = 0; k < p.k; k += T::kDepth, ring.advance()) {
      unsigned char *const rows = shared.steps + ring.step * T::kStepBytes, *const columns = rows + T::kRowBytes;
      h::Barrier *const full = shared.full + ring.step;
      h::wait(shared.empty + ring.step, ring.parity ^ 1u);
      h::arrive_expecting(full, T::kStepBytes);
#pragma unroll
      for (int i = 0; i < T::Rows; i += kRowsAtOnce)
        h::copy_box(rows + i * h::kLine, left, T::ATransposed ? at.row + i : k, T::ATransposed ? k : at.row, of_a,
                    full);
#pragma unroll
      for (int i = 0; i < T::kLines; i += kColumnsAtOnce)
        h::copy_box(columns + i * h::kLine, right, T::BTransposed ? at.column + i : k,
                    T::BTransposed ? k : at.column, of_b, full);
    }
  }
}

// c = a @ b^T, rounded once; a: m lines of k, b: n lines of k, as the maps describe them.
template <class Element, int Rows, int Columns, bool ATransposed, bool BTransposed>
__global__ void __launch_bounds__(kTurnsThreads, 1)
    hopper_turns(const __grid_constant__ TurnsCall p, const Element *const __grid_constant__ a,
                 const __grid_constant__ h::MapTail left, const Element *const __grid_constant__ b,
                 const __grid_constant__ h::MapTail right, Element *c) {
  using T = Turn<Rows, Columns, ATransposed, BTransposed>;
  extern __shared__ unsigned char turns_memory[];
  const TurnsShared<T> shared(turns_memory);
  // The same for a warp, which the compiler has to see: products wait for each other where it does not.
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0), lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    h::fetch_map(h::map_of(a, left));
    h::fetch_map(h::map_of(b, right));
    for (unsigned step = 0; step < T::kSteps; ++step) {
      h::make_barrier(shared.full + step, 1);
      h::make_barrier(shared.empty + step, T::kAlone ? kConsumers / 2 : kConsumers);
    }
    for (int group = 0; group < 2; ++group) h::make_barrier(shared.turn + group, kConsumers / 2);
    h::publish_barriers();
  }
  __syncthreads();
  const TurnsTiles<T> tiles(p);
  if (warp < h::kGroup / 32) {
    h::give_registers<40>();
    if (threadIdx.x == 0) copy_tiles(shared, tiles, p, h::map_of(a, left), h::map_of(b, right));
    return;
  }
  h::take_registers<232>();
  const int group = warp / 4 - 1, steps = (p.k + T::kDepth - 1) / T::kDepth,
            own_row = T::kAlone ? 0 : group * T::kGroupRows;
  unsigned char *const out = shared.out + (warp - h::kGroup / 32) * kBytesOut;
  h::Products<Element, ATransposed, BTransposed> products = {};
  h::Sums<Columns> sums[T::kProducts];
  TurnsRing<T> ring;
  if (T::kAlone) ring.advance(group * steps);
  unsigned turn = group ^ 1;  // parity of the phase that is waited for: the first group begins at once
  for (int tile = blockIdx.x + (T::kAlone ? group * gridDim.x : 0); tile < tiles.all;
       tile += (T::kAlone ? 2 : 1) * gridDim.x) {
    const auto at = tiles[tile];
    // A group waits for no step before the other one has had all that come before: a phase that is two ahead would look
    // like one that is over.
    if (T::kAlone) h::wait(shared.turn + group, turn), turn ^= 1u;
    unsigned before = 0;
    for (int step = 0; step < steps; ++step, ring.advance()) {
      h::wait(shared.full + ring.step, ring.parity);
      const unsigned rows = h::shared_address(shared.steps) + ring.step * T::kStepBytes;
      const unsigned long long of_rows = h::descriptor_of<ATransposed>(rows + own_row * h::kLine);
      const unsigned long long of_columns = h::descriptor_of<BTransposed>(rows + T::kRowBytes);
      products.begin();
#pragma unroll
      for (int i = 0; i < T::kProducts; ++i)
#pragma unroll
        for (int part = 0; part < T::kParts; ++part)
          products.start(sums[i],
                         of_rows + i * (h::kProductRows * h::kLine >> 4) + part * h::kDescriptorStep<ATransposed>,
                         of_columns + part * h::kDescriptorStep<BTransposed>, step > 0 || part > 0);
      products.end();
      products.template wait<1>();
      if (T::kAlone && step == steps - 1 && lane == 0) h::arrive(shared.turn + (1 - group), 0);
      if (step > 0 && lane == 0) h::arrive(shared.empty + before, 0);
      before = ring.step;
    }
#pragma unroll
    for (int i = 0; i < T::kProducts; ++i) products.wait_for(sums[i]);
    if (lane == 0) h::arrive(shared.empty + before, 0);
#pragma unroll
    for (int i = 0; i < T::kProducts; ++i)
      write_rows(sums[i], out, p, c + at.product * p.matrix,
                 at.row + own_row + warp % 4 * kRowsOut + i * h::kProductRows, at.column);
    if (T::kAlone) ring.advance(steps);
  }
}

}  // namespace pk
