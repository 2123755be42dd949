// kernels.h: what the host computes with vector instructions, compiled for several kinds of processors and chosen when
// the process starts. Every kind gives the same bits.
//
// A sum over k depends on its own row of x and of w alone. With weights that are floats it has 32 partial sums, of
// every 32nd element, which are added pairwise at the end; products are rounded before they are added. With blocks x
// becomes whole numbers of 16 bits first, 32 with one scale; products with the codes of a block are exact, added up in
// fours, and these are scaled and added to 16 partial sums.
#pragma once
#include <cstdint>

namespace pk::host {

constexpr int kStep = 32;  // elements that are read at once; rows of x and expanded rows of w are padded to it

// How a row of a weight is stored. The blocks are GGUF's; their values are those of the gguf package, bit for bit.
enum class Kind { kF32, kF16, kBF16, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ5_K, kQ6_K, kCount };

struct Format {
  const char *name;
  int64_t elements, bytes;  // of a block
};
const Format &format_of(Kind kind);
inline bool has_blocks(Kind kind) { return kind >= Kind::kQ4_0; }

// Rows of a weight, below each other.
struct Weight {
  Kind kind;
  const uint8_t *at;
  int64_t k;
  int64_t row_bytes() const { return k / format_of(kind).elements * format_of(kind).bytes; }
};

// One row of queries that stand at one position: heads that share keys are computed together by the caller's loop.
// Its keys lie in blocks of the cache, `block` in each: in the first from key `skipped` on.
struct Look {
  const float *q, *k, *v;  // (dim), and a head of the cache's first block
  float *out, *scores;     // (dim), room for `keys` numbers
  const int32_t *blocks;
  int64_t stride;  // elements from one block to the next
  int64_t block, skipped, keys, dim;
  float scale, cap;   // cap: c of the soft cap c * tanh(score / c); 0: none
  const float *sink;  // a score that takes its part of the weights and has no value; null: none
};

struct Kernels {
  const char *name;
  int tile_rows, tile_columns;  // that expanded rows of w are best given in
  // out[i] = x . row (first + i) of w, whose elements are floats. x is padded.
  void (*row)(const Weight &w, const float *x, int64_t first, int64_t count, float *out);
  // Row `row` of x as whole numbers; all rows lie in coded_bytes(k, rows) from `to` on.
  void (*code)(const float *x, int64_t k, int64_t row, int64_t rows, uint8_t *to);
  // out[r * out_stride + i] = row r of coded x . row (first + i) of w, which has blocks.
  void (*coded)(const Weight &w, const uint8_t *x, int64_t rows, int64_t first, int64_t count, float *out,
                int64_t out_stride);
  // A row of w as float32, padded with zeros.
  void (*expand)(const Weight &w, int64_t row, float *out);
  // out[r * out_stride + c] = x row r . w row c, of rows that are padded to `width`.
  void (*tile)(const float *x, int64_t rows, const float *w, int64_t columns, int64_t width, float *out,
               int64_t out_stride);
  // out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]
  void (*silu)(const float *gate, const float *up, int64_t count, float *out);
  // out = (x - mean) * scale * weight + bias; no bias where null, no mean taken away where `centered` is false.
  void (*norm)(const float *x, const float *weight, const float *bias, int64_t count, float epsilon, bool centered,
               float *out);
  // out = softmax(q k^T * scale, capped) v
  void (*look)(const Look &look);
};

const Kernels &kernels();

// Three bytes an element of 64 at a time, and a table of 16 floats for 256; of rows together 64 bytes for 64 elements.
constexpr int kTogether = 8;
constexpr int64_t coded_row_bytes(int64_t k) { return (k + 63) / 64 * 64 * 3 + (k + 255) / 256 * 64; }
constexpr int64_t coded_bytes(int64_t k, int64_t rows) {
  return rows * coded_row_bytes(k) + (rows + kTogether - 1) / kTogether * ((k + 63) / 64 * 64);
}
inline int64_t padded(int64_t k) { return (k + kStep - 1) / kStep * kStep; }

}  // namespace pk::host
