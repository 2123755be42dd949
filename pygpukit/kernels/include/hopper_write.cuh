// hopper_write.cuh: how a warp writes its part of a product on SM 9.0: rounded, transposed in shared memory so that
// whole pieces of rows leave, and finished there by what follows the sums.
#pragma once
#include "conversion.cuh"
#include "epilogue.cuh"
#include "hopper_out.cuh"

namespace pk {

// What is written: kRounded, sums that are rounded to the type, then the epilogue where there is one. kGated, the same
// with kSwiglu: of sums of twice as many columns. kConverted: that of kRounded in another type.
enum Writing { kRounded, kGated, kConverted };

// The type in the end, the bytes of a number and what it is divided by: conversion.cuh.
struct Into {
  int type, bytes;
  float scale;
};

// A matrix that is written. row: elements from one row to the next. whole: rows are whole pieces of 16 bytes. follows:
// an epilogue comes after the rounded sums; rows are whole then, and wherever not kRounded is written. bias, residual:
// see there.
template <class Result, int How = kRounded>
struct Rows {
  unsigned char *c;
  const Result *bias, *residual;
  long long row;
  int m, n, whole, follows;
  Into into;

  struct alignas(2 * sizeof(Result)) Two {
    Result of[2];
  };

  // Has the part of the residual that belongs to a warp's tile read ahead.
  __device__ __forceinline__ void prefetch(const Epilogue &epilogue, int first_row, int first, int columns) const {
    if (!follows || !epilogue.has_residual) return;
    constexpr int kLineNumbers = h::kLine / sizeof(Result);
    const int lane = threadIdx.x % 32, at = first_row + lane % kRowsOut;
    if (at >= m) return;
    for (int column = first + lane / kRowsOut * kLineNumbers; column < first + columns; column += 2 * kLineNumbers)
      if (column < n) h::prefetch(residual + at * row + column);
  }

  // A warp's 16 rows of a product, all columns of them. out: its part of shared memory. column: of the matrix.
  template <int Count>
  __device__ __forceinline__ void write(const float (&sums)[Count], unsigned char *out, const Epilogue &epilogue,
                                        int first_row, int column) const {
    if constexpr (How == kGated) {
      write_gated(sums, out, epilogue, first_row, column);
    } else {
      write_all(sums, out, epilogue, first_row, column);
    }
  }

 private:
  template <int Count>
  __device__ __forceinline__ void write_all(const float (&sums)[Count], unsigned char *out, const Epilogue &epilogue,
                                            int first_row, int column) const {
    constexpr int kColumns = Count * h::kGroup / h::kProductRows, kMaxWidth = kLineOut / sizeof(Result);
    constexpr int kWidth = kColumns % kMaxWidth == 0 ? kMaxWidth : kMaxWidth / 2;  // columns at a time
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
        finish<kWidth>(out, epilogue, first_row, first, columns);
      }
      if constexpr (How == kConverted) {
        __syncwarp();
        with_type(into.type, [&](auto number) { store_as<kWidth>(number, out, first_row, first, columns); });
      } else if (whole) {
        store_lines(out, first_row, first, columns);
      } else {
        __syncwarp();
        Result *const to = reinterpret_cast<Result *>(c);
        for (int line = 0; line < kRowsOut && first_row + line < m; ++line)
          for (int i = lane; i < columns; i += 32)
            to[(first_row + line) * row + first + i] = reinterpret_cast<const Result *>(out + line * kPitchOut)[i];
      }
    }
  }

  // The first half of the sums are gates, the second what they let through: one thread has both. column: of the matrix.
  template <int Count>
  __device__ __forceinline__ void write_gated(const float (&sums)[Count], unsigned char *out, const Epilogue &epilogue,
                                              int first_row, int column) const {
    constexpr int kColumns = Count * h::kGroup / h::kProductRows / 2;
    static_assert(kColumns * sizeof(Result) <= kLineOut, "");
    h::wait_for_stores();
    __syncwarp();
    if (epilogue.has_bias || epilogue.has_residual) {
      gate<true>(sums, out, epilogue, first_row, column);
    } else {
      gate<false>(sums, out, epilogue, first_row, column);
    }
    store_lines(out, first_row, column, n - column < kColumns ? n - column : kColumns);
  }

  static __device__ __forceinline__ float half_of(unsigned two, int which) {
    return widen(Result{static_cast<unsigned short>(two >> 16 * which)});
  }

  // Added: a bias or a residual.
  template <bool Added, int Count>
  __device__ __forceinline__ void gate(const float (&sums)[Count], unsigned char *out, Epilogue epilogue, int first_row,
                                       int column) const {
    constexpr int kReadAtOnce = 4;
    const int lane = threadIdx.x % 32;
    epilogue.activation = kSwiglu;
    if (!Added) epilogue.has_bias = epilogue.has_residual = 0;
#pragma unroll
    for (int i = 0; i < Count / 8; ++i) {
      // No load goes ahead of this: asked for all at once, what is added would take registers that spill.
      if (Added && i % kReadAtOnce == 0) __syncwarp();
      const int at = column + 8 * i + lane % 4 * 2, inside = at < n ? at : 0;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int line = lane / 4 + 8 * r, known = first_row + line < m ? first_row + line : 0;
        const Result *const other = residual + (known * row + inside);
        const float *const two = sums + 4 * i + 2 * r;
        const unsigned gates = two_rounded(Result{}, two[0], two[1]);
        const unsigned ups = two_rounded(Result{}, two[Count / 2], two[Count / 2 + 1]);
        Two packed;
#pragma unroll
        for (int j = 0; j < 2; ++j)
          packed.of[j] =
              convert<Result>::from(finished(epilogue, half_of(gates, j), half_of(ups, j), bias, inside + j,
                                             other + j));
        *reinterpret_cast<Two *>(out + line * kPitchOut + (4 * i + lane % 4) * sizeof(Two)) = packed;
      }
    }
  }

  // Whole rows of what the warp has in shared memory, by bulk copies.
  __device__ __forceinline__ void store_lines(const unsigned char *out, int first_row, int first, int columns) const {
    const int lane = threadIdx.x % 32, line = first_row + lane;
    h::publish_to_stores();
    __syncwarp();
    if (lane < kRowsOut && line < m && columns > 0)
      h::store_bytes(reinterpret_cast<Result *>(c) + line * row + first, out + lane * kPitchOut,
                     columns * sizeof(Result));
    h::end_stores();
  }

  // The rounded lines that the warp has in shared memory, converted, by stores of up to 16 bytes that follow each
  // other.
  template <int Width, class D>
  __device__ __forceinline__ void store_as(D, const unsigned char *out, int first_row, int first, int columns) const {
    constexpr int kNumbers = sizeof(D) == 4 ? 4 : 8, kPieces = Width / kNumbers;
    struct alignas(sizeof(Result) * kNumbers) Rounded {
      Result of[kNumbers];
    };
    struct alignas(sizeof(D) * kNumbers) Packed {
      D of[kNumbers];
    };
    const int lane = threadIdx.x % 32, at = lane % kPieces * kNumbers;
    if (at >= columns) return;
    const Divisor by(into.scale);
    D *const to = reinterpret_cast<D *>(c) + first_row * row + first + at;
#pragma unroll 2
    for (int line = lane / kPieces; line < kRowsOut && first_row + line < m; line += 32 / kPieces) {
      const auto piece = *reinterpret_cast<const Rounded *>(out + line * kPitchOut + at * sizeof(Result));
      float numbers[kNumbers];
      Packed packed;
#pragma unroll
      for (int i = 0; i < kNumbers; ++i) numbers[i] = widen(piece.of[i]);
      convert_all(numbers, by, packed.of);
      *reinterpret_cast<Packed *>(to + line * row) = packed;
    }
  }

  // Finishes the rounded sums in shared memory: a lane's piece of each second or fourth row.
  template <int Width>
  __device__ __forceinline__ void finish(unsigned char *out, const Epilogue &epilogue, int first_row, int first,
                                         int columns) const {
    constexpr int kPieces = Width / Piece<Result>::kNumbers, kLines = 32 / kPieces;
    const int lane = threadIdx.x % 32, at = lane % kPieces * Piece<Result>::kNumbers;
    if (at >= columns) return;
    const float alpha = static_cast<float>(epilogue.alpha);
    const float beta = epilogue.has_residual ? static_cast<float>(epilogue.beta) : 1;
    const Piece<Result> of_columns = piece_at(bias + first + at, epilogue.has_bias);
    const Result *const other = residual + first_row * row + first + at;
    const auto read = [&](int line) {
      return piece_at(other + line * row, epilogue.has_residual && first_row + line < m);
    };
    with_activation(epilogue.activation, [&](auto activation) {
      constexpr int kAtOnce = 4;  // pieces of the residual that are on their way
#pragma unroll 1
      for (int line = lane / kPieces; line < kRowsOut; line += kLines * kAtOnce) {
        Piece<Result> added[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) added[i] = read(line + kLines * i);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          unsigned char *const to = out + (line + kLines * i) * kPitchOut + at * sizeof(Result);
          Piece<Result> packed = *reinterpret_cast<Piece<Result> *>(to);
          finish_piece<decltype(activation)::value>(packed, of_columns, added[i], alpha, beta);
          *reinterpret_cast<Piece<Result> *>(to) = packed;
        }
      }
    });
  }
};

}  // namespace pk
