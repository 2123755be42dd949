// tile.cu: convolution and transposed convolution on tensor cores, as a tile kernel: an implicit matrix product.
//
// One block makes Filters channels of the result at Places of its places. The sum runs over kernel row, kernel column and
// channel, in steps of Depth channels, in ascending order, in float32; what lies outside the image is a zero. So an
// element's bits depend on what it sees alone, not on the tile's size, the image's extents or the batch.
#include <cuda_tile.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_tf32.h>

namespace pk {

namespace ct = cuda::tiles;

template <typename Element>
struct Multiplied {  // what elements are multiplied as
  using Type = Element;
};

template <>
struct Multiplied<float> {
  using Type = __nv_tf32;
};

// A line of the result's rows (filters, places) or columns, repeated for all of it.
template <bool Transposed, typename Shape, typename Line>
__tile__ auto everywhere(Line line) {
  if constexpr (Transposed) return ct::broadcast(ct::transpose(line), Shape{});
  else return ct::broadcast(line, Shape{});
}

enum Curve { kStraight, kSilu, kGelu };

// silu or gelu of sums that become floats of fewer bits: max(x, 0) - y t, where y = |x| and t is the logistic function of
// -y, or the normal distribution's probability below -y as math.cuh's gelu has it. One formula: with a branch for each
// the tile would not stay in registers. What a compiler might contract is a fused multiply-add.
template <typename Tile>
__tile__ Tile curved(Tile x, int curve) {
  const bool normal = curve == kGelu;
  auto number = [](float value) { return ct::full<Tile>(value); };
  const Tile y = ct::min(ct::abs(x), number(1e30f));
  const Tile power = y * ct::fma(y, number(normal ? -0.72134752044f : 0.0f), number(normal ? 0.0f : -1.44269504089f));
  const Tile bell = ct::exp2(power);
  const Tile c = 1.0f / ct::fma(bell, number(normal ? 0.0f : 1.0f), ct::fma(y, number(normal ? 0.375f : 0.0f), number(1.0f)));
  Tile p = ct::fma(c, number(normal ? -9.0317695e-2f : 0.0f), number(normal ? 1.9955833e-1f : 0.0f));
  p = ct::fma(c, p, number(normal ? 8.4123256e-2f : 0.0f));
  p = ct::fma(c, p, number(normal ? 1.5755839e-1f : 0.0f));
  p = ct::fma(c, p, number(normal ? 1.4907964e-1f : 1.0f));
  return ct::fma(-y, c * p * bell, ct::select(x < 0.0f, number(0.0f), x));  // NaN stays
}

// x: channels dense, those of a group next to each other. w: (groups, filters, kernel rows, kernel columns, channels),
// dense; filters and channels are those of a group. Both are read in pieces of 16 bytes: pointers are multiples of 16
// bytes, the steps of x and `channels` of as many elements. Last: the result's channels are dense, and as x is. No result
// is below `least`, unless there is a curve.
//
// Along rows, and likewise along columns: place i of the result, in phase i % every, sees the image at
// i / every * step + base + k * apart through row first + k * every of the kernel, where first and base follow from the
// phase and shift. A convolution has every 1, shift -padding, apart dilation, step stride. A transposed one, of dilation
// 1, has every stride, shift padding, apart -1, step 1: it is a convolution for each phase.
template <typename Element, int Places, int Filters, int Depth, int Warps, bool Last>
[[ cutile::hint(0, num_worker_warps_per_cta=Warps) ]]
__tile_global__ void convolve(const Element *__restrict__ x_, const Element *__restrict__ w_,
                              const Element *__restrict__ bias, Element *__restrict__ out_, int images, int groups,
                              int filters_, int channels_, int image_rows, int image_columns, int result_rows,
                              int result_columns, int kernel_rows, int kernel_columns, int step_rows, int step_columns,
                              int shift_rows, int shift_columns, int apart_rows, int apart_columns, int every_rows,
                              int every_columns, int x_image_, int x_row_, int x_column_, int out_image_,
                              int out_channel, int out_row_, int out_column_, int has_bias, int curve, float least) {
  constexpr int kWhole = 16 / sizeof(Element);
  using Factor = typename Multiplied<Element>::Type;
  auto x = ct::assume_aligned<16>(x_);
  auto w = ct::assume_aligned<16>(w_);
  const int channels = ct::assume_divisible<kWhole>(channels_);
  const int x_image = ct::assume_divisible<kWhole>(x_image_), x_row = ct::assume_divisible<kWhole>(x_row_);
  const int x_column = ct::assume_divisible<kWhole>(x_column_);

  const int phase_row = ct::bid().z / every_columns, phase_column = ct::bid().z % every_columns;
  const int first_row = (phase_row + shift_rows) % every_rows;
  const int first_column = (phase_column + shift_columns) % every_columns;
  const int base_row = (phase_row + shift_rows - first_row) / every_rows;
  const int base_column = (phase_column + shift_columns - first_column) / every_columns;
  const int taps_down = (kernel_rows - first_row + every_rows - 1) / every_rows;
  const int taps = (kernel_columns - first_column + every_columns - 1) / every_columns;
  const int rows = (result_rows - phase_row + every_rows - 1) / every_rows;
  const int columns = (result_columns - phase_column + every_columns - 1) / every_columns;
  const int places = images * rows * columns, area = places > 0 ? rows * columns : 1, width = places > 0 ? columns : 1;

  const int parts = (filters_ + Filters - 1) / Filters, group = ct::bid().y;
  const int filter_tile = ct::bid().x % parts, place_tile = ct::bid().x / parts;
  using Column = ct::shape<Places, 1>;
  using Seen = ct::shape<Places, Depth>;
  auto place = ct::reshape(ct::iota<ct::tile<int, ct::shape<Places>>>(), Column{}) + place_tile * Places;
  auto image = place / area, row = place % area / width, column = place % area % width;
  auto top = row * step_rows + base_row, left = column * step_columns + base_column;
  auto start = image * x_image + group * channels;
  auto line = ct::reshape(ct::iota<ct::tile<int, ct::shape<Depth>>>(), ct::shape<1, Depth>{});
  auto weights = ct::partition_view{ct::tensor_span{w, ct::extents{groups, filters_, kernel_rows * kernel_columns, channels}},
                                    ct::shape<1, Filters, 1, Depth>{}};

  const int blocks = (channels + Depth - 1) / Depth;
  using Shape = ct::shape<Last ? Places : Filters, Last ? Filters : Places>;
  auto sum = ct::full<ct::tile<float, Shape>>(0.0f);
  for (auto step : ct::irange(0, taps_down * taps * blocks)) {
    const int tap = step / blocks, block = step % blocks, i = tap / taps, j = tap % taps;
    auto from_row = top + i * apart_rows, from_column = left + j * apart_columns;
    auto inside = place < places && from_row >= 0 && from_row < image_rows && from_column >= 0 && from_column < image_columns;
    auto channel = line + block * Depth;
    auto at = ct::broadcast(start + from_row * x_row + from_column * x_column, Seen{}) + ct::broadcast(channel, Seen{});
    auto there = ct::broadcast(inside, Seen{}) && ct::broadcast(channel < channels, Seen{});
    auto seen = ct::load_masked(x + at, there, ct::full<ct::tile<Element, Seen>>(Element(0.0f)));
    const int index = (first_row + i * every_rows) * kernel_columns + first_column + j * every_columns;
    auto taken = ct::reshape(weights.load_masked(group, filter_tile, index, block), ct::shape<Filters, Depth>{});
    if constexpr (Last) sum = ct::mma(ct::element_cast<Factor>(seen), ct::transpose(ct::element_cast<Factor>(taken)), sum);
    else sum = ct::mma(ct::element_cast<Factor>(taken), ct::transpose(ct::element_cast<Factor>(seen)), sum);
  }

  constexpr int kWholeOut = Last ? kWhole : 1;
  auto out = ct::assume_aligned<Last ? 16 : sizeof(Element)>(out_);
  const int filters = ct::assume_divisible<kWholeOut>(filters_), out_image = ct::assume_divisible<kWholeOut>(out_image_);
  const int out_row = ct::assume_divisible<kWholeOut>(out_row_), out_column = ct::assume_divisible<kWholeOut>(out_column_);
  auto filter = ct::reshape(ct::iota<ct::tile<int, ct::shape<Filters>>>(), ct::shape<1, Filters>{}) + filter_tile * Filters;
  auto known = filter < filters;
  if (has_bias) {
    auto from = ct::assume_aligned<sizeof(Element)>(bias);
    auto shift = ct::element_cast<float>(ct::load_masked(from + (filter + group * filters), known));
    sum = sum + everywhere<!Last, Shape>(shift);
  }
  auto own = image * out_image + (row * every_rows + phase_row) * out_row + (column * every_columns + phase_column) * out_column;
  auto channel = filter + group * filters;
  if constexpr (!Last) channel = channel * out_channel;
  auto at = everywhere<!Last, Shape>(own) + everywhere<!Last, Shape>(channel);
  auto inside = everywhere<!Last, Shape>(place < places) && everywhere<!Last, Shape>(known);
  if (curve != kStraight) sum = curved(sum, curve);
  else sum = ct::select(sum < least, ct::full<ct::tile<float, Shape>>(least), sum);  // NaN stays
  ct::store_masked(out + at, ct::element_cast<Element>(sum), inside);
}

}  // namespace pk
