// tile.cu: convolution and transposed convolution on tensor cores, as a tile kernel: an implicit matrix product.
//
// One block makes Filters channels of the result at Places of an image's places, in rows of Wide. The sum runs over
// kernel row, kernel column and channel, in steps of Depth channels, in ascending order, in float32; what lies outside
// the image is a zero. So an element's bits depend on what it sees alone, not on the tile's size, the image's extents
// or the batch.
//
// What the places see through one place of the kernel is the image, shifted: a view with two axes for the kernel's
// place, whose steps overlap the others', so that bulk copies fetch it. They know no places before the image's first,
// so the padding is in memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_tf32.h>
#include <cuda_tile.h>

namespace pk {

namespace ct = cuda::tiles;
using namespace ct::literals;

template <typename Element>
struct Multiplied {  // what elements are multiplied as
  using Type = Element;
};

template <>
struct Multiplied<float> {
  using Type = __nv_tf32;
};

enum Curve { kStraight, kSilu, kGelu };

// silu or gelu of sums that become floats of fewer bits: max(x, 0) - y t, where y = |x| and t is the logistic function
// of -y, or the normal distribution's probability below -y as math.cuh's gelu has it. One formula: with a branch for
// each the tile would not stay in registers. What a compiler might contract is a fused multiply-add.
template <typename Tile>
__tile__ Tile curved(Tile x, int curve) {
  const bool normal = curve == kGelu;
  auto number = [](float value) { return ct::full<Tile>(value); };
  const Tile y = ct::min(ct::abs(x), number(1e30f));
  const Tile power = y * ct::fma(y, number(normal ? -0.72134752044f : 0.0f), number(normal ? 0.0f : -1.44269504089f));
  const Tile bell = ct::exp2(power);
  const Tile c =
      1.0f / ct::fma(bell, number(normal ? 0.0f : 1.0f), ct::fma(y, number(normal ? 0.375f : 0.0f), number(1.0f)));
  Tile p = ct::fma(c, number(normal ? -9.0317695e-2f : 0.0f), number(normal ? 1.9955833e-1f : 0.0f));
  p = ct::fma(c, p, number(normal ? 8.4123256e-2f : 0.0f));
  p = ct::fma(c, p, number(normal ? 1.5755839e-1f : 0.0f));
  p = ct::fma(c, p, number(normal ? 1.4907964e-1f : 1.0f));
  return ct::fma(-y, c * p * bell, ct::select(x < 0.0f, number(0.0f), x));  // NaN stays
}

// Which axis is dense, of the image and of the result: a place's channels (Last) or a channel's places (First).
enum class Order { kLast, kLastToFirst, kFirst };

// x: channels dense, those of a group next to each other, with its padding; w: (groups, filters, kernel rows, kernel
// columns, channels), dense; filters and channels are those of a group. Bulk copies need whole 16 bytes: pointers are
// multiples of 16 bytes, `channels` and all steps of as many elements, but for those of dense axes and where an axis
// has one place. No result is below `minimum_value`, unless there is a curve.
//
// Along rows, and likewise along columns: place i of the result, in phase i % every, sees the image at
// i / every * step + base + k * apart through row first + k * every of the kernel, where first and base follow from the
// phase and shift. A convolution has every 1, shift 0, apart dilation, step stride. A transposed one, of dilation 1,
// has every stride, apart -1, step 1: it is a convolution for each phase. Order::kFirst: places are columns, one place
// of the kernel, step 1.
template <typename Element, int Places, int Wide, int Filters, int Depth, int Warps, Order Dense>
[[cutile::hint(0, num_worker_warps_per_cta = Warps)]] __tile_global__ void convolve(
    const Element *__restrict__ x_, const Element *__restrict__ w_, const Element *__restrict__ bias,
    Element *__restrict__ out_, int groups, int filters, int channels, int result_rows, int result_columns,
    int kernel_rows, int kernel_columns, int step_rows, int step_columns, int shift_rows, int shift_columns,
    int apart_rows, int apart_columns, int every_rows, int every_columns, int x_channel, int x_row, int x_column,
    int out_channel, int out_row, int out_column, int has_bias, int curve, long long x_image, long long x_group,
    long long out_image, long long out_group, float minimum_value) {
  constexpr int kWhole = 16 / sizeof(Element), High = Places / Wide;
  using Factor = typename Multiplied<Element>::Type;
  auto w = ct::assume_aligned<16>(w_);

  const int phase_row = ct::bid().z / every_columns, phase_column = ct::bid().z % every_columns;
  const int first_row = (phase_row + shift_rows) % every_rows;
  const int first_column = (phase_column + shift_columns) % every_columns;
  const int taps_down = (kernel_rows - first_row + every_rows - 1) / every_rows;
  const int taps = (kernel_columns - first_column + every_columns - 1) / every_columns;
  const int rows = (result_rows - phase_row + every_rows - 1) / every_rows;
  const int columns = (result_columns - phase_column + every_columns - 1) / every_columns;

  const int parts = (filters + Filters - 1) / Filters, group = ct::bid().y;
  const int down = ((result_rows + every_rows - 1) / every_rows + High - 1) / High;
  const int across = ((result_columns + every_columns - 1) / every_columns + Wide - 1) / Wide;
  const int part = ct::bid().x % parts, place = ct::bid().x / parts;
  const int column = place % across, row = place / across % down;
  const long long image = place / across / down;
  if (row * High >= rows || column * Wide >= columns) return;  // a phase may have fewer tiles than the first

  constexpr bool kSeenLast = Dense != Order::kFirst, kResultLast = Dense == Order::kLast;
  const int filled = ct::assume_divisible<kWhole>((channels + kWhole - 1) / kWhole * kWhole);
  auto weights =
      ct::partition_view{ct::tensor_span{w, ct::extents{groups, filters, kernel_rows * kernel_columns, filled}},
                         ct::shape<1, Filters, 1, Depth>{}};
  // The first that is seen: through the kernel's last place where its places run against the image's.
  const int top =
      (phase_row + shift_rows - first_row) / every_rows + (apart_rows < 0 ? (taps_down - 1) * apart_rows : 0);
  const int left = (phase_column + shift_columns - first_column) / every_columns +
                   (apart_columns < 0 ? (taps - 1) * apart_columns : 0);
  const long long start = image * x_image + (long long)top * x_row + (long long)left * x_column;
  auto x = ct::assume_aligned<16>(x_ + group * x_group + start);

  using Shape = ct::shape<kResultLast ? Places : Filters, kResultLast ? Filters : Places>;
  const int blocks = (filled + Depth - 1) / Depth;
  auto sum = ct::full<ct::tile<float, Shape>>(0.0f);
  if constexpr (kSeenLast) {
    const int apart_down = apart_rows < 0 ? -apart_rows : apart_rows,
              apart_across = apart_columns < 0 ? -apart_columns : apart_columns;
    auto seen = ct::partition_view{
        ct::tensor_span{
            x, ct::layout_strided_mapping{ct::extents{taps_down, taps, rows, columns, filled},
                                          ct::extents{ct::assume_divisible<kWhole>(apart_down * x_row),
                                                      ct::assume_divisible<kWhole>(apart_across * x_column),
                                                      ct::assume_divisible<kWhole>(step_rows * x_row),
                                                      ct::assume_divisible<kWhole>(step_columns * x_column), 1_ic}}},
        ct::shape<1, 1, High, Wide, Depth>{}};
    for (auto step : ct::irange(0, taps_down * taps * blocks)) {
      const int tap = step / blocks, block = step % blocks, i = tap / taps, j = tap % taps;
      const int at_row = apart_rows < 0 ? taps_down - 1 - i : i, at_column = apart_columns < 0 ? taps - 1 - j : j;
      const int index = (first_row + i * every_rows) * kernel_columns + first_column + j * every_columns;
      auto read = ct::element_cast<Factor>(
          ct::reshape(seen.load_masked(at_row, at_column, row, column, block), ct::shape<Places, Depth>{}));
      auto taken = ct::element_cast<Factor>(
          ct::reshape(weights.load_masked(group, part, index, block), ct::shape<Filters, Depth>{}));
      if constexpr (kResultLast)
        sum = ct::mma(read, ct::transpose(taken), sum);
      else
        sum = ct::mma(taken, ct::transpose(read), sum);
    }
  } else {
    auto seen = ct::partition_view{
        ct::tensor_span{x, ct::layout_strided_mapping{ct::extents{channels, ct::assume_divisible<kWhole>(columns)},
                                                      ct::extents{ct::assume_divisible<kWhole>(x_channel), 1_ic}}},
        ct::shape<Depth, Places>{}};
    for (auto block : ct::irange(0, blocks)) {
      auto taken = ct::element_cast<Factor>(
          ct::reshape(weights.load_masked(group, part, 0, block), ct::shape<Filters, Depth>{}));
      sum = ct::mma(taken, ct::element_cast<Factor>(seen.load_masked(block, column)), sum);
    }
  }

  if (has_bias) {
    auto own = ct::partition_view{ct::tensor_span{bias + group * filters, ct::extents{filters}}, ct::shape<Filters>{}};
    auto shift = ct::element_cast<float>(own.load_masked(part));
    if constexpr (kResultLast)
      sum = sum + ct::broadcast(ct::reshape(shift, ct::shape<1, Filters>{}), Shape{});
    else
      sum = sum + ct::broadcast(ct::reshape(shift, ct::shape<Filters, 1>{}), Shape{});
  }
  if (curve != kStraight)
    sum = curved(sum, curve);
  else
    sum = ct::select(sum < minimum_value, ct::full<ct::tile<float, Shape>>(minimum_value), sum);  // NaN stays

  auto result = ct::element_cast<Element>(sum);
  const long long first_place =
      image * out_image + (long long)phase_row * out_row + (long long)phase_column * out_column;
  auto out = ct::assume_aligned<16>(out_ + group * out_group + first_place);
  const int row_step = ct::assume_divisible<kWhole>(every_rows * out_row);
  if constexpr (kResultLast) {
    auto places = ct::partition_view{
        ct::tensor_span{
            out,
            ct::layout_strided_mapping{
                ct::extents{rows, columns, ct::assume_divisible<kWhole>((filters + kWhole - 1) / kWhole * kWhole)},
                ct::extents{row_step, ct::assume_divisible<kWhole>(every_columns * out_column), 1_ic}}},
        ct::shape<High, Wide, Filters>{}};
    places.store_masked(ct::reshape(result, ct::shape<High, Wide, Filters>{}), row, column, part);
  } else {
    auto places = ct::partition_view{
        ct::tensor_span{
            out, ct::layout_strided_mapping{ct::extents{filters, rows, ct::assume_divisible<kWhole>(columns)},
                                            ct::extents{ct::assume_divisible<kWhole>(out_channel), row_step, 1_ic}}},
        ct::shape<Filters, High, Wide>{}};
    places.store_masked(ct::reshape(result, ct::shape<Filters, High, Wide>{}), part, row, column);
  }
}

}  // namespace pk
