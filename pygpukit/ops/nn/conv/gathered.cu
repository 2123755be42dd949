// gathered.cu: convolution on the tensor cores of SM 9.0: an implicit matrix product that gathers what it multiplies.
//
// A block makes Filters channels of the result at 128 places, which run over all images. Its threads copy what those
// see of the image, and the weights, to shared memory, 16 bytes at a time and some steps ahead. What lies outside the
// image is copied as zeros, so the image is read where it lies. The sum runs over kernel row, kernel column and
// channel, in steps of 128 bytes of channels, in ascending order, in float32: the bits of tile.cu.
#include "hopper_products.cuh"
#include "overlap.cuh"
#include "pack.cuh"

namespace pk {

namespace h = hopper;

struct Gathered {
  long long start;                           // of the image, in elements
  int step[4];                               // of it: batch, channel, row, column
  int out_step[4];                           // of the result, likewise
  int out_place;                             // from one of its places to the next
  int positions, in_channels, out_channels;  // batch x output rows x output columns; channels of a group
  int in_group, out_group;                   // elements from one group's channels to the next's
  int image[2], result[2], kernel[2];        // rows, columns
  int stride[2], padding[2], dilation[2];
  int parts;  // of a group's filters
  int has_bias, relu;
};

constexpr int kPlaces = 128, kPiece = 16, kPieces = h::kLine / kPiece;  // of a block; bytes; of a line
constexpr int kThreads = 2 * h::kGroup, kLines = kThreads / kPieces;    // of a block; that it copies at a time
constexpr int kOwn = kPlaces / kLines;                                  // lines of the image that a thread copies
constexpr int kNowhere = -(1 << 30);                                    // a row that no image has

// 16 bytes to shared memory, zeros where they are not there. Nothing waits for them.
__device__ __forceinline__ void copy_piece(unsigned to, const void *from, bool there) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until this thread's have arrived but the last `Later` steps'.
template <int Later>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Later) : "memory");
}
// A float in shared memory as tf32, to nearest, to even from the middle.
__device__ __forceinline__ unsigned rounded_word(unsigned at) {
  unsigned word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(word) : "f"(__uint_as_float(word)));
  return word;
}

// What a thread copies: a piece of every kLines-th line of the image's tile and of the weights', step by step.
template <class T, int Filters>
struct Gather {
  static constexpr int kPack = kPiece / sizeof(T), kDepth = h::kLine / sizeof(T), kTaken = Filters / kLines;
  const Gathered &p;
  const T *weights;
  unsigned own;                           // where the thread's first piece goes in a tile
  int row[kOwn], column[kOwn];            // what its places see through the kernel's first
  const T *seen[kOwn];                    // and in the next step
  unsigned there;                         // a bit each: it is in the image
  int left, first;                        // filters from its first on; its first channel
  long long apart;                        // from one of its filters to the next
  int channel = 0, down = 0, across = 0;  // of the next step
  int further = 0;                        // elements from what is seen first to what is seen then

  __device__ __forceinline__ Gather(const T *x, const T *w, const Gathered &call, int group, int place0, int filter0)
      : p(call) {
    const int line = static_cast<int>(threadIdx.x) / kPieces, piece = static_cast<int>(threadIdx.x) % kPieces;
    const int filter = p.kernel[0] * p.kernel[1] * p.in_channels;
    first = piece * kPack;
    left = p.out_channels - filter0 - line;
    apart = static_cast<long long>(kLines) * filter;
    own = line * h::kLine + (piece ^ line % kPieces) * kPiece;
    const T *const image = x + p.start + group * p.in_group + first;
    weights = w + (static_cast<long long>(group) * p.out_channels + filter0 + line) * filter + first;
    const unsigned wide = p.result[1], area = p.result[0] * wide;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const unsigned place = place0 + line + k * kLines, spot = place % area;
      const int above = static_cast<int>(spot / wide) * p.stride[0] - p.padding[0];
      row[k] = place < static_cast<unsigned>(p.positions) ? above : kNowhere;
      column[k] = static_cast<int>(spot % wide) * p.stride[1] - p.padding[1];
      seen[k] = image + (static_cast<int>(place / area) * p.step[0] + above * p.step[2] + column[k] * p.step[3]);
    }
    look();
  }

  // Through the next place of the kernel.
  __device__ __forceinline__ void look() {
    const int below = down * p.dilation[0], beside = across * p.dilation[1];
    const int to = below * p.step[2] + beside * p.step[3], on = to - further;
    further = to;
    there = 0;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const bool inside = static_cast<unsigned>(row[k] + below) < static_cast<unsigned>(p.image[0]) &&
                          static_cast<unsigned>(column[k] + beside) < static_cast<unsigned>(p.image[1]);
      there |= (inside ? 1u : 0u) << k;
      seen[k] += on;
    }
  }

  // Begins the copies of the next step into a tile of places and one of filters behind it.
  __device__ __forceinline__ void copy(unsigned tile) {
    const bool some = channel + first < p.in_channels;
    const unsigned to = tile + own;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      copy_piece(to + k * kLines * h::kLine, seen[k], some && (there >> k & 1u));
      seen[k] += kDepth;
    }
#pragma unroll
    for (int k = 0; k < kTaken; ++k)
      copy_piece(to + (kPlaces + k * kLines) * h::kLine, weights + k * apart, some && k * kLines < left);
    end_copies();
    weights += kDepth;
    further += kDepth;
    channel += kDepth;
    if (channel < p.in_channels) return;
    weights += p.in_channels - channel;
    channel = 0;
    if (++across == p.kernel[1]) across = 0, ++down;
    look();
  }
};

// w: (groups, filters, kernel rows, kernel columns, channels), dense. Channels of the image are dense; those of a group
// and all steps of the image, the weights and the result are whole 16 bytes; weights in tf32: rounded by the launch
// before. Steps: that shared memory holds. Blocks: of a multiprocessor.
template <class T, int Filters, int Steps, int Blocks>
__global__ void __launch_bounds__(kThreads, Blocks)
    convolve_gathered(const T *x, const T *w, const T *bias, T *out, const __grid_constant__ Gathered p) {
  constexpr int kParts = h::kLine / h::kProductBytes, kBytes = (kPlaces + Filters) * h::kLine;
  // Steps whose products go on while the next one's begin: another block's are there to go on otherwise.
  constexpr bool kRounds = sizeof(T) == 4;
  constexpr int kLate = Blocks == 1 && !kRounds ? 1 : 0, kAhead = Steps - 1 - kLate;
  constexpr int kPack = kPiece / sizeof(T), kAcross = Filters / kPack, kPitch = Filters * sizeof(T) + kPiece;
  extern __shared__ unsigned char gathered_memory[];
  const unsigned memory = h::shared_address(gathered_memory);
  const unsigned tiles = memory + (h::kTileStart - memory % h::kTileStart) % h::kTileStart;
  const int part = blockIdx.x % p.parts, place0 = blockIdx.x / p.parts * kPlaces, group = blockIdx.y;
  constexpr int kDepth = h::kLine / sizeof(T);
  const int steps = p.kernel[0] * p.kernel[1] * ((p.in_channels + kDepth - 1) / kDepth);
  const int warp_group = threadIdx.x / h::kGroup;

  Gather<T, Filters> gather(x, w, p, group, place0, part * Filters);
  if constexpr (kRounds) await_previous();
#pragma unroll
  for (int step = 0; step < kAhead; ++step) {
    if (step < steps)
      gather.copy(tiles + step * kBytes);
    else
      end_copies();
  }
  h::Sums<Filters> sums;
  h::Products<T, false, false> products;
  unsigned held[kRounds ? kParts : 1][4];  // of tf32: a thread's elements of the image's tile
  int at = 0, next = kAhead;
  for (int step = 0; step < steps; ++step) {
    const unsigned tile = tiles + at * kBytes;
    wait_for_copies<kAhead - 1>();
    h::publish_to_products();
    __syncthreads();
    const unsigned own = tile + warp_group * h::kProductRows * h::kLine;
    const unsigned long long columns = h::descriptor_of<false>(tile + kPlaces * h::kLine);
    if constexpr (kRounds) {
      const int line = threadIdx.x % h::kGroup / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
      for (int i = 0; i < 4 * kParts; ++i) {
        const int piece = i / 2 ^ line % kPieces;
        held[i / 4][i % 4] = rounded_word(own + (line + i % 2 * 8) * h::kLine + piece * kPiece + threadIdx.x % 4 * 4);
      }
    }
    products.begin();
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const unsigned long long right = columns + i * h::kDescriptorStep<false>;
      if constexpr (kRounds)
        products.start(sums, held[i], right, step > 0 || i > 0);
      else
        products.start(sums, h::descriptor_of<false>(own) + i * h::kDescriptorStep<false>, right, step > 0 || i > 0);
    }
    products.end();
    if (step + kAhead < steps)
      gather.copy(tiles + next * kBytes);
    else
      end_copies();
    if (++at == Steps) at = 0;
    if (++next == Steps) next = 0;
    products.template wait<kLate>();
  }
  products.wait_for(sums);
  __syncthreads();

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, filter0 = part * Filters;
  T *const result = out + group * p.out_group + filter0;
  unsigned char *const out_rows = gathered_memory + (tiles - memory) + warp * 16 * kPitch;
#pragma unroll
  for (int i = 0; i < Filters / 8; ++i) {
    const int own = 8 * i + lane % 4 * 2;
    float shift[2] = {0.0f, 0.0f};
#pragma unroll
    for (int c = 0; c < 2; ++c)
      if (p.has_bias && filter0 + own + c < p.out_channels)
        shift[c] = widen(bias[group * p.out_channels + filter0 + own + c]);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      Pack<T, 2> two;
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float sum = sums[4 * i + 2 * r + c];
        if (p.has_bias) sum += shift[c];
        if (p.relu && sum < 0.0f) sum = 0.0f;  // NaN stays
        two.v[c] = convert<T>::from(sum);
      }
      store(reinterpret_cast<T *>(out_rows + (lane / 4 + 8 * r) * kPitch) + own, two);
    }
  }
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 16 * kAcross; i += 32) {
    const int line = i / kAcross, piece = i % kAcross, place = place0 + warp * 16 + line;
    if (place < p.positions && filter0 + piece * kPack < p.out_channels)
      *reinterpret_cast<uint4 *>(result + static_cast<long long>(place) * p.out_place + piece * kPack) =
          *reinterpret_cast<const uint4 *>(out_rows + line * kPitch + piece * kPiece);
  }
}

}  // namespace pk
