// transpose.cu: copies whose dense axis differs between the two sides, tile by tile through shared memory.
#include "numeric.cuh"

namespace pk {

// array[batch, row, column] with dense columns -> out[batch, column, row] with dense rows.
struct Turn {
  long long rows, columns;
  long long row_step;       // array: elements from one row to the next
  long long column_step;    // out: elements from one column to the next
  long long tiles_down, tiles_across;
  long long ndim;  // batch axes
  long long shape[kMaxDims];
  long long start[2];  // of array, out: elements from the pointer to the first element
  long long stride[2][kMaxDims];
};

// What one thread moves at once: P neighbouring elements, 4 bytes where P > 1.
template <class T, int P>
struct word {
  using type = unsigned;
};
template <class T>
struct word<T, 1> {
  using type = T;
};

// P words of P rows -> P words of P columns.
template <class W>
__device__ __forceinline__ void turn(W (&)[1]) {}
__device__ __forceinline__ void turn(unsigned (&w)[2]) {
  const unsigned low = __byte_perm(w[0], w[1], 0x5410);
  w[1] = __byte_perm(w[0], w[1], 0x7632);
  w[0] = low;
}
__device__ __forceinline__ void turn(unsigned (&w)[4]) {
  const unsigned a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const unsigned c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410);
  w[3] = __byte_perm(c, d, 0x7632);
}

// A tile is kWords words of P elements each way, so that a row of it is 128 bytes or more on both sides; a word of
// padding a row keeps both the writes down and the reads across free of bank conflicts. P divides rows and columns, and
// both sides are aligned to words.
template <class T, int P, int kWords>
__global__ void __launch_bounds__(256) transpose(const T *array, T *out, const __grid_constant__ Turn p) {
  using W = typename word<T, P>::type;
  constexpr int kStep = 256 / kWords;
  constexpr int kPasses = kWords / kStep;
  __shared__ W tile[P * kWords][kWords + 1];
  long long index = blockIdx.x;
  const long long across = index % p.tiles_across;
  index /= p.tiles_across;
  const long long down = index % p.tiles_down;
  index /= p.tiles_down;
  long long from = p.start[0], to = p.start[1];
  for (long long axis = p.ndim - 1; axis >= 0; --axis) {
    const long long above = index / p.shape[axis];
    const long long here = index - above * p.shape[axis];
    from += here * p.stride[0][axis];
    to += here * p.stride[1][axis];
    index = above;
  }
  const long long row0 = down * (kWords * P), column0 = across * (kWords * P);
  const int fast = threadIdx.x % kWords, slow = threadIdx.x / kWords;

  W got[kPasses][P];
  const long long column = column0 + fast * P;
#pragma unroll
  for (int k = 0; k < kPasses; ++k) {
    const long long row = row0 + (slow + k * kStep) * P;
    if (row < p.rows && column < p.columns) {
#pragma unroll
      for (int q = 0; q < P; ++q) {
        got[k][q] = *reinterpret_cast<const W *>(array + from + (row + q) * p.row_step + column);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < kPasses; ++k) {
    turn(got[k]);
#pragma unroll
    for (int q = 0; q < P; ++q) tile[q * kWords + fast][slow + k * kStep] = got[k][q];
  }
  __syncthreads();
  const long long row = row0 + fast * P;
#pragma unroll
  for (int k = 0; k < kPasses; ++k) {
    const long long at = column0 + (slow + k * kStep) * P;
    if (row < p.rows && at < p.columns) {
#pragma unroll
      for (int q = 0; q < P; ++q) {
        *reinterpret_cast<W *>(out + to + (at + q) * p.column_step + row) = tile[q * kWords + slow + k * kStep][fast];
      }
    }
  }
}

}  // namespace pk
