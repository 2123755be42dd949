// grouped.cu: products of groups of rows, each with a weight of its own, on tensor cores, as tile kernels; how many
// rows a group has stands on the device.
//
// Sums are those of half.cu, to the bit: a row's bits depend on k and the types alone, not on the groups.
#include "tiles.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace pk {

// out[i] = x[i] @ w[the group of row i]. Rows after the last group's become 0; what counts say beyond the rows is not.
// x: rows of k. w: matrices of k rows of n, or n rows of k where WTransposed. Bulk copies need rows of whole 16 bytes, as
// in half.cu. out: rows of n, filled up to 16 bytes. A block finds its tile by counting those of the groups before it.
template <typename Element, int Rows, int Columns, int Depth, int Warps, bool WTransposed>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps) ]]
__tile_global__ void matmul_grouped(const Element *__restrict__ x, const Element *__restrict__ w,
                                    const int *__restrict__ counts, Element *__restrict__ out, int rows, int n_, int k,
                                    int groups, int x_lead_, int w_lead, int w_step) {
  const int filled = ct::assume_divisible<8>((k + 7) / 8 * 8), width = ct::assume_divisible<8>((n_ + 7) / 8 * 8);
  const int n = WTransposed ? n_ : width, x_lead = ct::assume_divisible<8>(x_lead_);
  const int across = (n_ + Columns - 1) / Columns, tile = ct::bid().x / across, column = ct::bid().x % across;

  int begin = 0, before = 0, group = 0, first = 0, count = 0, place = 0;
  for (auto i : ct::irange(0, groups + 1)) {  // the last are the rows that no group has
    const int left = rows - begin, requested = i < groups ? counts[i < groups ? i : 0] : left;
    const int own = requested < 0 ? 0 : requested < left ? requested : left, tiles = (own + Rows - 1) / Rows;
    const bool here = tile >= before && tile < before + tiles;
    group = here ? i : group;
    first = here ? begin : first;
    count = here ? own : count;
    place = here ? tile - before : place;
    begin += own;
    before += tiles;
  }
  if (count == 0) return;

  const long long skipped = first;
  auto left = lines_of<Rows, Depth, true>(ct::assume_aligned<16>(x + skipped * x_lead), 1, count, k, filled, x_lead, 0);
  auto right = lines_of<Columns, Depth, WTransposed>(ct::assume_aligned<16>(w), groups, n, k, filled,
                                                     ct::assume_divisible<8>(w_lead), ct::assume_divisible<8>(w_step));
  auto sum = ct::full<ct::tile<float, ct::shape<Rows, Columns>>>(0.0f);
  for (auto i : ct::irange(0, group < groups ? (k + Depth - 1) / Depth : 0))
    sum = ct::mma(left_step<Rows, Depth, false>(left, 0, place, i),
                  right_step<Columns, Depth, WTransposed>(right, group, column, i), sum);
  auto own = tiles_of<Rows, Columns>(ct::assume_aligned<16>(out + skipped * width), 1, count, width, width, 0);
  own.store_masked(ct::reshape(ct::element_cast<Element>(sum), ct::shape<1, Rows, Columns>{}), 0, place, column);
}

}  // namespace pk
