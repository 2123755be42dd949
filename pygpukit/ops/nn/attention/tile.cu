// tile.cu: attention of many queries on tensor cores, as a tile kernel, with the softmax along the way (Dao et al. 2022).
//
// One block takes Rows queries of a head and walks the keys in tiles of Keys. Those begin at multiples of Keys in every
// launch, and scores are hidden before anything is computed of them: a tile that a query does not see changes none of
// its bits, whether it is walked or not. So they depend on its own keys alone, not on Rows or the queries beside it.
#include <cuda_tile.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace pk {

namespace ct = cuda::tiles;
using namespace ct::literals;

// Tiles of ([batch,] heads, rows, dim) arrays, rows dense.
template <int Rows, int Width, typename Pointer>
__tile__ auto tiles_of(Pointer data, int batches, int heads, int rows, int dim, int batch_step, int head_step,
                       int row_step) {
  auto layout = ct::layout_strided_mapping{ct::extents{batches, heads, rows, dim},
                                           ct::extents{batch_step, head_step, row_step, 1_ic}};
  return ct::partition_view{ct::tensor_span{data, layout}, ct::shape<1, 1, Rows, Width>{}};
}

// softmax(q k^T scale) v. Bulk copies need rows of whole 16 bytes: pointers are multiples of 16 bytes, steps and dim of 8
// elements. group: query heads that share a head of keys. Query i stands at key i + offset and sees the keys from
// `behind` before its place to `ahead` after it. lengths: where HasLengths, the keys of each batch element, at most
// `keys`; at_end: its last query stands at its last key. scale: times log2(e).
// together: heads whose blocks are begun together.
template <typename Element, int Rows, int Keys, int Width, int Warps, int Resident, bool HasLengths>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps, occupancy=Resident) ]]
__tile_global__ void attention(const Element *__restrict__ q_, const Element *__restrict__ k_,
                               const Element *__restrict__ v_, Element *__restrict__ out_,
                               const int *__restrict__ lengths, int batches, int heads, int group, int queries, int keys,
                               int dim_, int offset, int ahead, int behind, int at_end, int length_step,
                               int together, float scale,
                               int q_batch_, int q_head_, int q_row_, int k_batch_, int k_head_, int k_row_,
                               int v_batch_, int v_head_, int v_row_, int out_batch_, int out_head_, int out_row_) {
  auto q = ct::assume_aligned<16>(q_);
  auto k = ct::assume_aligned<16>(k_);
  auto v = ct::assume_aligned<16>(v_);
  auto out = ct::assume_aligned<16>(out_);
  int dim = ct::assume_divisible<8>(dim_);
  int q_batch = ct::assume_divisible<8>(q_batch_), q_head = ct::assume_divisible<8>(q_head_);
  int k_batch = ct::assume_divisible<8>(k_batch_), k_head = ct::assume_divisible<8>(k_head_);
  int v_batch = ct::assume_divisible<8>(v_batch_), v_head = ct::assume_divisible<8>(v_head_);
  int out_batch = ct::assume_divisible<8>(out_batch_), out_head = ct::assume_divisible<8>(out_head_);
  int q_row = ct::assume_divisible<8>(q_row_), k_row = ct::assume_divisible<8>(k_row_);
  int v_row = ct::assume_divisible<8>(v_row_), out_row = ct::assume_divisible<8>(out_row_);

  // Of `together` heads the blocks that see the most keys are begun first: short ones are left for the end.
  const int tiles = (queries + Rows - 1) / Rows, first_head = ct::bid().x / (tiles * together) * together;
  const int left = batches * heads - first_head, beside = left < together ? left : together;
  const int within = ct::bid().x - first_head * tiles, row_tile = tiles - 1 - within / beside;
  const int owner = first_head + within % beside, batch = owner / heads, head = owner % heads, key_head = head / group;

  if constexpr (HasLengths) {
    const int stated = lengths[batch * length_step];
    keys = stated < 0 ? 0 : stated < keys ? stated : keys;
    if (at_end) offset = keys - queries;
    const int seen = queries + offset + ahead;  // what lies behind is not read
    keys = seen < 0 ? 0 : seen < keys ? seen : keys;
  }
  const int rows_of_keys = keys > 0 ? keys : 1;
  auto all_q = tiles_of<Rows, Width>(q, batches, heads, queries, dim, q_batch, q_head, q_row);
  auto all_k = tiles_of<Keys, Width>(k, batches, heads / group, rows_of_keys, dim, k_batch, k_head, k_row);
  auto all_v = tiles_of<Keys, Width>(v, batches, heads / group, rows_of_keys, dim, v_batch, v_head, v_row);
  auto all_out = tiles_of<Rows, Width>(out, batches, heads, queries, dim, out_batch, out_head, out_row);

  using Scores = ct::tile<float, ct::shape<Rows, Keys>>;
  using Row = ct::tile<float, ct::shape<Rows, 1>>;
  using Grid = ct::shape<Rows, Keys>;
  const float minus_infinity = __builtin_bit_cast(float, 0xff800000u);
  const int first_place = row_tile * Rows + offset, last_place = first_place + Rows - 1;
  // Keys from `low` to `high` are seen by some query of the block, those from `whole_low` to `whole_high` by all.
  const int high = last_place + ahead + 1 < keys ? last_place + ahead + 1 : keys;
  const int whole_high = first_place + ahead + 1 < keys ? first_place + ahead + 1 : keys;
  const int low = first_place - behind > 0 ? first_place - behind : 0;
  const int whole_low = last_place - behind > 0 ? last_place - behind : 0;

  auto places = ct::reshape(ct::iota<ct::tile<int, ct::shape<Rows>>>(), ct::shape<Rows, 1>{}) + first_place;
  auto columns = ct::reshape(ct::iota<ct::tile<int, ct::shape<Keys>>>(), ct::shape<1, Keys>{});
  auto rows = ct::reshape(all_q.load_masked(batch, head, row_tile, 0), ct::shape<Rows, Width>{});
  auto total = ct::full<ct::tile<float, ct::shape<Rows, Width>>>(0.0f);
  auto sum = ct::full<Row>(0.0f), largest = ct::full<Row>(minus_infinity);
  for (auto i : ct::irange(low / Keys, high > 0 ? (high + Keys - 1) / Keys : 0)) {
    auto key = ct::reshape(all_k.load_masked(batch, key_head, i, 0), ct::shape<Keys, Width>{});
    auto scores = ct::mma(rows, ct::transpose(key), ct::full<Scores>(0.0f));
    if (i * Keys < whole_low || (i + 1) * Keys > whole_high) {
      auto apart = ct::broadcast(columns + i * Keys, Grid{}) - ct::broadcast(places, Grid{});
      auto seen = apart <= ahead && apart >= -behind && ct::broadcast(columns + i * Keys, Grid{}) < keys;
      scores = ct::select(seen, scores, ct::full<Scores>(minus_infinity));
    }
    auto next = ct::max(largest, ct::reduce_max(scores, 1_ic));
    auto base = ct::select(next == minus_infinity, ct::full<Row>(0.0f), next * scale);
    auto weights = ct::exp2(ct::fma(scores, ct::full<Scores>(scale), -ct::broadcast(base, Grid{})));
    // Exactly 1 where the largest stays: a tile that nobody sees rounds nothing.
    auto shrink = ct::select(next == largest, ct::full<Row>(1.0f), ct::exp2((largest - next) * scale));
    sum = sum * shrink + ct::sum(weights, 1_ic);
    total = total * shrink;
    largest = next;
    auto value = ct::reshape(all_v.load_masked(batch, key_head, i, 0), ct::shape<Keys, Width>{});
    total = ct::mma(ct::element_cast<Element>(weights), value, total);
  }
  auto nothing = largest == minus_infinity && sum == 0.0f;
  auto result = ct::select(ct::broadcast(nothing, ct::shape<Rows, Width>{}), total, total / sum);
  all_out.store_masked(ct::reshape(ct::element_cast<Element>(result), ct::shape<1, 1, Rows, Width>{}), batch, head,
                       row_tile, 0);
}

}  // namespace pk
