// mma.cu: attention of many queries by mma.sync, from SM 8.0 on, with the softmax along the way (Dao et al. 2022).
//
// A warp has 16 or 32 queries of a head, the block walks the keys in tiles. While the scores of a tile are computed its
// values are on their way to shared memory, then the keys of the next tile. Tiles begin at multiples of Keys in every
// launch, and scores are hidden before anything is computed of them: a tile that a query does not see changes none of
// its bits, whether it is walked or not. So they depend on its own keys alone, not on Rows or the queries beside it.
#include "numeric.cuh"
#include "rows.cuh"
#include "swizzled.cuh"

namespace pk {

// Elements between batch elements, heads and positions, of q, k, v and out. group: query heads that share a head of
// keys. Query i stands at key i + offset and sees the keys from `behind` before its place to `ahead` after it. With
// lengths: the keys of each batch element, at most `keys`; at_end: its last query stands at its last key. scale: times
// log2(e). together: heads whose blocks are begun together.
struct PromptCall {
  long long batch[4], head[4], row[4];
  int batches, heads, group, queries, keys, dim, offset, ahead, behind, has_lengths, at_end, length_step, together;
  float scale;
};

__device__ __forceinline__ float power_of_two(float exponent) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
  return result;
}

// Two sums, rounded, the first in the low half.
template <class T>
__device__ __forceinline__ Pair rounded_pair(float first, float second) {
  Bits<T, 2> bits;
  bits.pack = {convert<T>::from(first), convert<T>::from(second)};
  return bits.words.v[0];
}

// All copies of a thread's share of a tile.
template <class Side, class T>
__device__ __forceinline__ void copy_tile(Side &side, T *to) {
#pragma unroll
  for (int i = 0; i < Side::kCopies; ++i) side.copy(to, i);
  side.advance();
  end_stage();
}

template <class T, int Rows, int Keys, int Width, int Warps, int Resident>
__global__ void __launch_bounds__(32 * Warps, Resident)
    attention_mma(const T *q, const T *k, const T *v, T *out, const int *lengths,
                  const __grid_constant__ PromptCall p) {
  constexpr int kThreads = 32 * Warps, kOwn = Rows / Warps, kTiles = kOwn / 16, kChunks = Width / 8;
  using Queries = SwizzledSide<T, Rows, Width, true, kThreads>;
  using Copies = SwizzledSide<T, Width, Keys, false, kThreads>;  // lines are keys, of k as of v
  using KeyTile = SwizzledSide<T, Keys, Width, true, kThreads>;
  static_assert(kOwn % 16 == 0 && Keys % 16 == 0, "whole fragments");
  extern __shared__ __align__(128) unsigned char prompt_memory[];
  T *const q_tile = reinterpret_cast<T *>(prompt_memory), *const k_tile = q_tile + Rows * Width,
           *const v_tile = k_tile + Keys * Width;

  // Of `together` heads the blocks that see the most keys are begun first: short ones are left for the end.
  const int tiles = (p.queries + Rows - 1) / Rows, first_head = blockIdx.x / (tiles * p.together) * p.together;
  const int heads_left = p.batches * p.heads - first_head, beside = heads_left < p.together ? heads_left : p.together;
  const int within = blockIdx.x - first_head * tiles, row0 = (tiles - 1 - within / beside) * Rows;
  const int owner = first_head + within % beside, batch = owner / p.heads, head = owner % p.heads;
  const int lane = threadIdx.x % 32, own_row = threadIdx.x / 32 * kOwn;

  int keys = p.keys, offset = p.offset;
  if (p.has_lengths) {
    const int length = lengths[batch * p.length_step];
    keys = length < 0 ? 0 : length < keys ? length : keys;
    if (p.at_end) offset = keys - p.queries;
    const int reach = p.queries + offset + p.ahead;  // what lies behind is not read
    keys = reach < 0 ? 0 : reach < keys ? reach : keys;
  }
  const int first_place = row0 + offset, last_place = first_place + Rows - 1;
  // Keys from `low` to `high` are seen by some query of the block, those from `whole_low` to `whole_high` by all.
  const int high = last_place + p.ahead + 1 < keys ? last_place + p.ahead + 1 : keys;
  const int whole_high = first_place + p.ahead + 1 < keys ? first_place + p.ahead + 1 : keys;
  const int low = first_place - p.behind > 0 ? first_place - p.behind : 0;
  const int whole_low = last_place - p.behind > 0 ? last_place - p.behind : 0;
  const int begin = low / Keys, end = high > 0 ? (high + Keys - 1) / Keys : 0;

  const auto origin = [&](const T *operand, int which, int head, int row) {
    return operand + (batch * p.batch[which] + head * p.head[which] + row * p.row[which]);
  };
  const int key_head = head / p.group, key0 = begin * Keys;
  Queries queries(origin(q, 0, head, row0), p.row[0], p.queries - row0, p.dim);
  Copies next_keys(origin(k, 1, key_head, key0), p.row[1], p.dim, keys - key0);
  Copies next_values(origin(v, 2, key_head, key0), p.row[2], p.dim, keys - key0);

  float total[kTiles][Width / 8][4] = {}, sum[kTiles][2] = {}, largest[kTiles][2];
  const float minus_infinity = __uint_as_float(0xff800000u);
#pragma unroll
  for (int t = 0; t < kTiles; ++t) largest[t][0] = largest[t][1] = minus_infinity;
  copy_tile(queries, q_tile);
  if (begin < end) copy_tile(next_keys, k_tile);
#pragma unroll 1
  for (int tile = begin; tile < end; ++tile) {
    wait_for_stage<0>();
    __syncthreads();  // the keys have arrived for all, and nobody reads the last values any more
    copy_tile(next_values, v_tile);
    float scores[kTiles][Keys / 8][4] = {};
#pragma unroll(Width > 128 ? 4 : Width / 16)  // more would spill
    for (int d = 0; d < Width; d += 16) {
      Pair rows[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) Queries::template fragment<false>(rows[t], q_tile, own_row + 16 * t, d);
#pragma unroll
      for (int j = 0; j < Keys / 16; ++j) {
        Pair columns[4];
        KeyTile::template fragment<true>(columns, k_tile, 16 * j, d);
        const Pair first[2] = {columns[0], columns[1]}, second[2] = {columns[2], columns[3]};
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          mma(T{}, scores[t][2 * j], rows[t], first);
          mma(T{}, scores[t][2 * j + 1], rows[t], second);
        }
      }
    }
    wait_for_stage<0>();
    __syncthreads();  // the values have arrived for all, and nobody reads these keys any more
    if (tile + 1 < end) copy_tile(next_keys, k_tile);

    const bool hides = tile * Keys < whole_low || (tile + 1) * Keys > whole_high;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float next = largest[t][half];
        if (hides) {
          const int place = first_place + own_row + 16 * t + 8 * half + lane / 4;
#pragma unroll
          for (int j = 0; j < Keys / 8; ++j)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const int key = tile * Keys + 8 * j + lane % 4 * 2 + i, apart = key - place;
              if (apart > p.ahead || apart < -p.behind || key >= keys) scores[t][j][2 * half + i] = minus_infinity;
            }
        }
#pragma unroll
        for (int j = 0; j < Keys / 8; ++j)
          next = fmaxf(next, fmaxf(scores[t][j][2 * half], scores[t][j][2 * half + 1]));
        next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, 1));
        next = fmaxf(next, __shfl_xor_sync(0xffffffffu, next, 2));
        const float base = next == minus_infinity ? 0.0f : next * p.scale;
        // Exactly 1 where the largest stays: a tile that nobody sees rounds nothing.
        const float shrink = next == largest[t][half] ? 1.0f : power_of_two((largest[t][half] - next) * p.scale);
        float weights = 0;
#pragma unroll
        for (int j = 0; j < Keys / 8; ++j)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float &score = scores[t][j][2 * half + i];
            score = power_of_two(fmaf(score, p.scale, -base));
            weights += score;
          }
        sum[t][half] = fmaf(sum[t][half], shrink, weights);
        largest[t][half] = next;
#pragma unroll
        for (int n = 0; n < Width / 8; ++n) {
          total[t][n][2 * half] *= shrink;
          total[t][n][2 * half + 1] *= shrink;
        }
      }

#pragma unroll
    for (int s = 0; s < Keys / 16; ++s) {
      Pair weights[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&four)[4] = scores[t][2 * s + i / 2];
          weights[t][i] = rounded_pair<T>(four[i % 2 * 2], four[i % 2 * 2 + 1]);
        }
#pragma unroll
      for (int n = 0; n < Width / 16; ++n) {
        Pair columns[4];
        Copies::template fragment<true>(columns, v_tile, 16 * n, 16 * s);
        const Pair first[2] = {columns[0], columns[1]}, second[2] = {columns[2], columns[3]};
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          mma(T{}, total[t][2 * n], weights[t], first);
          mma(T{}, total[t][2 * n + 1], weights[t], second);
        }
      }
    }
  }

  // The warp's own rows leave through where its queries were, in whole chunks.
  wait_for_stage<0>();
  __syncthreads();
  unsigned char *const rounded = reinterpret_cast<unsigned char *>(q_tile);
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float all = sum[t][half];
      all += __shfl_xor_sync(0xffffffffu, all, 1);
      all += __shfl_xor_sync(0xffffffffu, all, 2);
      const bool nothing = largest[t][half] == minus_infinity && all == 0;
      const int row = own_row + 16 * t + 8 * half + lane / 4;
#pragma unroll
      for (int n = 0; n < Width / 8; ++n) {
        const float(&two)[4] = total[t][n];
        const float x = two[2 * half], y = two[2 * half + 1];
        *reinterpret_cast<Pair *>(rounded + swizzled<kChunks>(row, n, row % 8) + lane % 4 * sizeof(Pair)) =
            nothing ? rounded_pair<T>(x, y) : rounded_pair<T>(x / all, y / all);
      }
    }
  __syncwarp();
  T *const to = out + (batch * p.batch[3] + head * p.head[3] + row0 * p.row[3]);
#pragma unroll 4
  for (int i = lane; i < kOwn * kChunks; i += 32) {
    const int row = own_row + i / kChunks, chunk = i % kChunks;
    if (row0 + row < p.queries && chunk * 8 < p.dim)
      store_pack<8>(to + row * p.row[3] + chunk * 8,
                    load_pack<8>(reinterpret_cast<const T *>(rounded + swizzled<kChunks>(row, chunk, row % 8))));
  }
}

}  // namespace pk
