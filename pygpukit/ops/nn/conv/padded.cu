// padded.cu: an image with its padding, channels last, as tile.cu reads it.
#include "numeric.cuh"

namespace pk {

struct Padding {
  long long start, images, image[2], before[2], padded[2];  // start: of the input; extents: rows, columns
  long long groups, own, filled;                            // channels of a group: of the input, of the result
  long long step[4];                                        // of the input: image, channel, row, column, in elements
};

// Pieces: channels are dense, so that Element is a piece of many; a thread moves one.
template <class Element>
__global__ void __launch_bounds__(256) pad(const Element *x, Element *out, const __grid_constant__ Padding p) {
  const unsigned index = blockIdx.x * 256u + threadIdx.x, channels = p.groups * p.filled;
  const unsigned rows = p.padded[0], columns = p.padded[1], filled = p.filled;
  if (index >= p.images * rows * columns * channels) return;
  const unsigned channel = index % channels, place = index / channels, line = place / columns, image = line / rows;
  const int column = static_cast<int>(place % columns - p.before[1]), row = static_cast<int>(line % rows - p.before[0]);
  const bool inside = row >= 0 && row < p.image[0] && column >= 0 && column < p.image[1];
  const unsigned group = channel / filled, within = channel % filled;
  Element value{};
  if (inside && within < p.own)
    value =
        x[p.start + image * p.step[0] + (group * p.own + within) * p.step[1] + row * p.step[2] + column * p.step[3]];
  out[index] = value;
}

constexpr int kSide = 64;

// A block turns kSide places and channels: places are neighbours in the input, channels in the result.
template <class Element>
__global__ void __launch_bounds__(256)
    pad_transposed(const Element *x, Element *out, const __grid_constant__ Padding p) {
  __shared__ Element tile[kSide][kSide + 4 / sizeof(Element)];
  const unsigned channels = p.groups * p.filled, parts = (channels + kSide - 1) / kSide;
  const unsigned columns = p.padded[1], places = p.padded[0] * columns, across = (places + kSide - 1) / kSide;
  const unsigned channel0 = blockIdx.x % parts * kSide, place0 = blockIdx.x / parts % across * kSide;
  const long long image = blockIdx.x / parts / across;
  const int fast = threadIdx.x % kSide, slow = threadIdx.x / kSide;
  {
    const unsigned place = place0 + fast, filled = p.filled;
    const long long row = place / columns - p.before[0], column = place % columns - p.before[1];
    const bool inside = place < places && row >= 0 && row < p.image[0] && column >= 0 && column < p.image[1];
    const Element *from = x + p.start + image * p.step[0] + row * p.step[2] + column * p.step[3];
#pragma unroll
    for (int i = 0; i < kSide; i += 256 / kSide) {
      const unsigned channel = channel0 + slow + i, group = channel / filled, within = channel % filled;
      Element value{};
      if (inside && channel < channels && within < p.own) value = from[(group * p.own + within) * p.step[1]];
      tile[slow + i][fast] = value;
    }
  }
  __syncthreads();
  if (channel0 + fast >= channels) return;
  Element *to = out + (image * places + place0) * channels + channel0 + fast;
#pragma unroll
  for (int i = 0; i < kSide; i += 256 / kSide) {
    if (place0 + slow + i < places) to[static_cast<long long>(slow + i) * channels] = tile[fast][slow + i];
  }
}

}  // namespace pk
