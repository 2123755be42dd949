// hopper_write.cuh: how a warp writes its part of a product on SM 9.0: rounded, turned in shared memory so that whole
// pieces of rows leave, and finished there by what follows the sums.
#pragma once
#include "epilogue.cuh"
#include "hopper.cuh"

namespace pk {

namespace h = hopper;

constexpr int kLineOut = 256, kRowsOut = 16;  // bytes and rows that a warp writes at a time
constexpr int kPitchOut = kLineOut + 16;      // bytes from one of these rows to the next: eight lie in different banks
constexpr int kBytesOut = kPitchOut * kRowsOut;

// A matrix that is written. row: elements from one row to the next. whole: rows are whole pieces of 16 bytes. follows:
// something comes after the rounded sums, as After says; rows are whole then. bias, residual: see there.
template <class Result>
struct Rows {
  Result *c;
  const Result *bias, *residual;
  long long row;
  int m, n, whole, follows;

  struct alignas(2 * sizeof(Result)) Two {
    Result of[2];
  };

  // Has the part of the residual that belongs to a warp's tile read ahead.
  __device__ __forceinline__ void prefetch(const After &after, int first_row, int first, int columns) const {
    if (!follows || !after.has_residual) return;
    constexpr int kLineNumbers = h::kLine / sizeof(Result);
    const int lane = threadIdx.x % 32, at = first_row + lane % kRowsOut;
    if (at >= m) return;
    for (int column = first + lane / kRowsOut * kLineNumbers; column < first + columns; column += 2 * kLineNumbers)
      if (column < n) h::prefetch(residual + at * row + column);
  }

  // A warp's 16 rows of a product, all columns of them. out: its part of shared memory.
  template <int Count>
  __device__ __forceinline__ void write(const float (&sums)[Count], unsigned char *out, const After &after,
                                        int first_row, int column) const {
    constexpr int kColumns = Count * h::kGroup / h::kProductRows, kMost = kLineOut / sizeof(Result);
    constexpr int kWidth = kColumns % kMost == 0 ? kMost : kMost / 2;  // columns at a time
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int from = 0; from < kColumns; from += kWidth) {
      const int first = column + from, columns = n - first < kWidth ? n - first : kWidth;
      h::wait_for_stores();
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kWidth / 8; ++i) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float *const two = sums + 4 * (from / 8 + i) + 2 * r;
          unsigned char *const to = out + (lane / 4 + 8 * r) * kPitchOut + (4 * i + lane % 4) * sizeof(Two);
          *reinterpret_cast<Two *>(to) = {{convert<Result>::from(two[0]), convert<Result>::from(two[1])}};
        }
      }
      if (follows) {
        __syncwarp();
        finish(out, after, first_row, first, columns);
      }
      if (whole) h::publish_to_stores();
      __syncwarp();
      if (whole) {
        if (lane < kRowsOut && first_row + lane < m && columns > 0)
          h::store_bytes(c + (first_row + lane) * row + first, out + lane * kPitchOut, columns * sizeof(Result));
        h::end_stores();
      } else {
        for (int line = 0; line < kRowsOut && first_row + line < m; ++line)
          for (int i = lane; i < columns; i += 32)
            c[(first_row + line) * row + first + i] = reinterpret_cast<const Result *>(out + line * kPitchOut)[i];
      }
    }
  }

 private:
  // Finishes the rounded sums in shared memory: a lane's piece of each second row.
  __device__ __forceinline__ void finish(unsigned char *out, const After &after, int first_row, int first,
                                         int columns) const {
    const int lane = threadIdx.x % 32, at = lane % 16 * Piece<Result>::kNumbers;
    if (at >= columns) return;
    const float alpha = static_cast<float>(after.alpha), beta = after.has_residual ? static_cast<float>(after.beta) : 1;
    const Piece<Result> of_columns = piece_at(bias + first + at, after.has_bias);
    const Result *const other = residual + first_row * row + first + at;
    const auto read = [&](int line) {
      return piece_at(other + line * row, after.has_residual && first_row + line < m);
    };
    with_activation(after.activation, [&](auto activation) {
      constexpr int kAtOnce = 4;  // pieces of the residual that are on their way
#pragma unroll 1
      for (int line = lane / 16; line < kRowsOut; line += 2 * kAtOnce) {
        Piece<Result> added[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) added[i] = read(line + 2 * i);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          unsigned char *const to = out + (line + 2 * i) * kPitchOut + at * sizeof(Result);
          Piece<Result> made = *reinterpret_cast<Piece<Result> *>(to);
          finish_piece<decltype(activation)::value>(made, of_columns, added[i], alpha, beta);
          *reinterpret_cast<Piece<Result> *>(to) = made;
        }
      }
    });
  }
};

}  // namespace pk
