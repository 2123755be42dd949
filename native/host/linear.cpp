// linear.cpp: products dealt out by columns of the result. Blocks are read as they are, by rows of x as whole numbers.
// Of weights that are floats, some rows at a time are taken for several rows of x, small enough for a core's cache:
// float32 where it lies, others expanded.
#include "host/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/crew.h"

namespace pk::host {
namespace {

constexpr int64_t kRowPart = 24 << 10;   // bytes of W that a thread takes at a time, for one row
constexpr int64_t kPanel = 384 << 10;    // bytes of expanded rows of W
constexpr int64_t kMaxColumns = 128;     // of a panel
constexpr int64_t kNormPart = 16 << 10;  // elements of x that are normalised at a time

// Room of a thread, kept for its next work.
float *room(std::vector<float> &kept, int64_t count) {
  if (static_cast<int64_t>(kept.size()) < count) kept.resize(static_cast<size_t>(count));
  return kept.data();
}
thread_local std::vector<float> t_rows, t_panel, t_sums;
thread_local std::vector<uint8_t> t_codes;

// x as the weights need it: as floats, and as whole numbers where a part has blocks.
struct Input {
  const float *rows;
  const uint8_t *codes;
  int64_t width;
};

int64_t rows_of(const Linear &linear) {
  int64_t rows = 0;
  for (const Part &part : linear.parts) rows += part.rows;
  return rows;
}

// fn(weight, first row of it, place, count) for the rows begin to end of all parts.
template <typename Fn>
void each_part(const Linear &linear, int64_t begin, int64_t end, const Fn &fn) {
  int64_t start = 0;
  for (const Part &part : linear.parts) {
    const int64_t low = std::max(begin, start), high = std::min(end, start + part.rows);
    if (low < high) fn(part.weight, low - start, low - begin, high - low);
    start += part.rows;
  }
}

float gelu(float x) { return 0.5f * x * (1.0f + std::tanh(0.7978845608028654f * (x + 0.044715f * (x * x * x)))); }
float gelu_erf(float x) { return 0.5f * x * (1.0f + std::erf(x * 0.7071067811865476f)); }

// Columns `begin` on of one row of the result, from the sums for them (and, for kSilu, those of the other half).
void finish(const Linear &linear, int64_t row, int64_t begin, int64_t count, float *sums, float *others) {
  const int64_t columns = linear.columns();
  float *out = linear.out + row * columns + begin;
  if (linear.bias != nullptr) {
    for (int64_t i = 0; i < count; ++i) sums[i] += linear.bias[begin + i];
    for (int64_t i = 0; others != nullptr && i < count; ++i) others[i] += linear.bias[columns + begin + i];
  }
  switch (linear.after) {
    case After::kStore:
      std::memcpy(out, sums, static_cast<size_t>(count) * sizeof(float));
      break;
    case After::kAdd:
      for (int64_t i = 0; i < count; ++i) out[i] += sums[i];
      break;
    case After::kGelu:
      for (int64_t i = 0; i < count; ++i) out[i] = gelu(sums[i]);
      break;
    case After::kGeluErf:
      for (int64_t i = 0; i < count; ++i) out[i] = gelu_erf(sums[i]);
      break;
    case After::kSilu:
      kernels().silu(sums, others, count, out);
      break;
  }
}

// Sums of all rows of x with the rows begin to end of W: (rows, end - begin).
void all_sums(const Linear &linear, const Input &x, int64_t begin, int64_t end, float *sums) {
  const Kernels &with = kernels();
  each_part(linear, begin, end, [&](const Weight &weight, int64_t first, int64_t place, int64_t count) {
    if (has_blocks(weight.kind)) {
      with.coded(weight, x.codes, linear.rows, first, count, sums + place, end - begin);
    } else if (linear.rows == 1) {
      with.row(weight, x.rows, first, count, sums + place);
    } else {
      const float *panel = reinterpret_cast<const float *>(weight.at) + first * x.width;
      if (weight.kind != Kind::kF32 || x.width != linear.k) {
        float *const expanded = room(t_panel, count * x.width);
        for (int64_t i = 0; i < count; ++i) with.expand(weight, first + i, expanded + i * x.width);
        panel = expanded;
      }
      with.tile(x.rows, linear.rows, panel, count, x.width, sums + place, end - begin);
    }
  });
}

void columns_from(const Linear &linear, const Input &x, int64_t begin, int64_t end) {
  const int64_t count = end - begin, columns = linear.columns();
  const bool both = linear.after == After::kSilu;
  float *sums = room(t_sums, 2 * linear.rows * count), *others = both ? sums + linear.rows * count : nullptr;
  all_sums(linear, x, begin, end, sums);
  if (both) all_sums(linear, x, columns + begin, columns + end, others);
  for (int64_t row = 0; row < linear.rows; ++row)
    finish(linear, row, begin, count, sums + row * count, both ? others + row * count : nullptr);
}

// x after its norm, in rows that are padded with zeros.
const float *input_rows(const Linear &linear, int64_t width) {
  const Norm &norm = linear.norm;
  if (norm.weight == nullptr && width == linear.k) return linear.x;
  float *rows = room(t_rows, linear.rows * width);
  in_parts(linear.rows, kNormPart / std::max<int64_t>(1, width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float *from = linear.x + row * linear.k;
      float *to = rows + row * width;
      if (norm.weight != nullptr)
        kernels().norm(from, norm.weight, norm.bias, linear.k, norm.epsilon, norm.centered, to);
      else
        std::memcpy(to, from, static_cast<size_t>(linear.k) * sizeof(float));
      std::fill(to + linear.k, to + width, 0.0f);
    }
  });
  return rows;
}

const uint8_t *input_codes(const Linear &linear, const float *rows, int64_t width) {
  const auto has = [](const Part &part) { return has_blocks(part.weight.kind); };
  if (std::none_of(linear.parts.begin(), linear.parts.end(), has)) return nullptr;
  const auto bytes = static_cast<size_t>(coded_bytes(linear.k, linear.rows));
  if (t_codes.size() < bytes) t_codes.resize(bytes);
  uint8_t *codes = t_codes.data();
  in_parts(linear.rows, kNormPart / std::max<int64_t>(1, width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) kernels().code(rows + row * width, linear.k, row, linear.rows, codes);
  });
  return codes;
}

// How many columns of the result a thread takes at a time.
int64_t part_of(const Linear &linear, int64_t width) {
  const int64_t halves = linear.after == After::kSilu ? 2 : 1, tile = kernels().tile_columns;
  if (linear.rows > 1) {
    const int64_t max_columns = std::min(kPanel / (std::max<int64_t>(1, width) * 4), kMaxColumns);
    return std::max<int64_t>(1, max_columns / tile) * tile;
  }
  int64_t row_bytes = 1;
  for (const Part &part : linear.parts) row_bytes = std::max(row_bytes, part.weight.row_bytes());
  return std::max<int64_t>(2, kRowPart / (row_bytes * halves) / 2 * 2);
}

}  // namespace

int64_t Linear::columns() const { return after == After::kSilu ? rows_of(*this) / 2 : rows_of(*this); }

void Linear::run() const {
  if (rows == 0) return;
  const int64_t width = padded(k);
  const float *x_rows = input_rows(*this, width);
  const Input input{x_rows, input_codes(*this, x_rows, width), width};
  in_parts(columns(), part_of(*this, width),
           [&](int64_t begin, int64_t end) { columns_from(*this, input, begin, end); });
}

}  // namespace pk::host
