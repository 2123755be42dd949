// hopper_pieces.cuh: how a warp writes its part of a product of 16-bit floats on SM 9.0 by itself: rounded, transposed
// in shared memory, and stored 16 bytes a lane.
#pragma once
#include "hopper_out.cuh"

namespace pk {

constexpr int kColumnsOut = kLineOut / 2;  // that a warp writes at a time

// Four matrices of 8 x 8 numbers of 16 bits into shared memory: word i of lane l has numbers l % 4 * 2 and the next of
// line l / 4 of matrix i; lane l has the address of line l % 8 of matrix l / 8.
__device__ __forceinline__ void store_matrices(void *line, const unsigned (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(h::shared_address(line)),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

// A warp's 16 rows of sums, their columns From and all that follow, into a matrix c. out: the warp's part of shared
// memory. p: m, n, elements from one row to the next, and whether rows are whole pieces of 16 bytes.
template <class Element, int From = 0, class Target, int Count>
__device__ __forceinline__ void write_rows(const float (&sums)[Count], unsigned char *out, const Target &p, Element *c,
                                           int first_row, int column) {
  constexpr int kColumns = Count * h::kGroup / h::kProductRows;
  constexpr int kWidth = kColumns - From < kColumnsOut ? kColumns - From : kColumnsOut, kPieces = kWidth / 8;
  const int lane = threadIdx.x % 32, first = column + From, columns = p.n - first < kWidth ? p.n - first : kWidth;
  __syncwarp();  // the part has been read
#pragma unroll
  for (int i = 0; i < kPieces; i += 2) {
    const float *const eight = sums + 4 * (From / 8 + i);
    unsigned words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) words[j] = two_rounded(Element{}, eight[2 * j], eight[2 * j + 1]);
    store_matrices(out + lane % 16 * kPitchOut + (i + lane / 16) * 16, words);
  }
  __syncwarp();
  if (p.whole) {
#pragma unroll
    for (int piece = lane; piece < kRowsOut * kPieces; piece += 32) {
      const int line = piece / kPieces, at = piece % kPieces * 8;
      if (first_row + line < p.m && at < columns)
        *reinterpret_cast<uint4 *>(c + (first_row + line) * p.row + first + at) =
            *reinterpret_cast<const uint4 *>(out + line * kPitchOut + at * sizeof(Element));
    }
  } else {
    for (int line = 0; line < kRowsOut && first_row + line < p.m; ++line)
      for (int i = lane; i < columns; i += 32)
        c[(first_row + line) * p.row + first + i] = reinterpret_cast<const Element *>(out + line * kPitchOut)[i];
  }
  if constexpr (From + kWidth < kColumns) write_rows<Element, From + kWidth>(sums, out, p, c, first_row, column);
}

}  // namespace pk
