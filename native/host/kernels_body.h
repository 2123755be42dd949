// kernels_body.h: the functions of Kernels, for the processor that the including file is compiled for. That file says
// kTileRows and kTileColumns: how many sums its registers hold.
#include "host/block_codes.h"
#include "host/formats.h"

namespace pk::host {
namespace {

// x with kRows rows of w from `at`, which lie row_bytes apart.
template <typename F, int kRows>
PK_INLINE void dots(const Weight &w, const uint8_t *at, int64_t row_bytes, const float *x, float *out) {
  Lanes first[kRows], second[kRows];
  for (int row = 0; row < kRows; ++row) first[row] = second[row] = every(0);
  const auto add = [&](int row, const uint8_t *from, const float *input) __attribute__((always_inline)) {
    F::each(
        from, [&](int, const Lanes &a, const Lanes &b) __attribute__((always_inline)) {
          first[row] = first[row] + a * load(input);
          second[row] = second[row] + b * load(input + kLanes);
        });
  };
  const int64_t steps = w.k / kStep;
  for (int64_t step = 0; step < steps; ++step)
    for (int row = 0; row < kRows; ++row) add(row, at + row * row_bytes + step * F::kBytes, x + step * kStep);
  if (const int64_t left = w.k % kStep; left != 0)
    for (int row = 0; row < kRows; ++row) {
      alignas(64) uint8_t end[F::kBytes] = {};
      __builtin_memcpy(end, at + row * row_bytes + steps * F::kBytes, static_cast<size_t>(left * F::kOne));
      add(row, end, x + steps * kStep);
    }
  for (int row = 0; row < kRows; ++row) out[row] = added(first[row], second[row]);
}

template <typename F>
int64_t bytes_of_row(const Weight &w) {
  if constexpr (Plain<F>)
    return w.k * F::kOne;
  else
    return w.k / F::kElements * F::kBytes;
}

template <typename F>
void row_of(const Weight &w, const float *x, int64_t first, int64_t count, float *out) {
  const int64_t row_bytes = bytes_of_row<F>(w);
  const uint8_t *at = w.at + first * row_bytes;
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) dots<F, 2>(w, at + i * row_bytes, row_bytes, x, out + i);
  if (i < count) dots<F, 1>(w, at + i * row_bytes, row_bytes, x, out + i);
}

template <typename F>
void expand_of(const Weight &w, int64_t row, float *out) {
  const uint8_t *at = w.at + row * bytes_of_row<F>(w);
  const int64_t blocks = w.k / F::kElements;
  for (int64_t block = 0; block < blocks; ++block)
    F::each(
        at + block * F::kBytes, [&](int n, const Lanes &a, const Lanes &b) __attribute__((always_inline)) {
          store(out + block * F::kElements + n * kStep, a);
          store(out + block * F::kElements + n * kStep + kLanes, b);
        });
  if constexpr (Plain<F>) {
    if (const int64_t left = w.k % kStep; left != 0) {
      alignas(64) uint8_t end[F::kBytes] = {};
      __builtin_memcpy(end, at + blocks * F::kBytes, static_cast<size_t>(left * F::kOne));
      F::each(
          end, [&](int, const Lanes &a, const Lanes &b) __attribute__((always_inline)) {
            store(out + blocks * kStep, a);
            store(out + blocks * kStep + kLanes, b);
          });
    }
  }
}

// Calls fn with the format of a kind, as a value of its type.
template <typename Fn>
PK_INLINE void with_format(Kind kind, const Fn &fn) {
  switch (kind) {
    case Kind::kF32:
      return fn(F32{});
    case Kind::kF16:
      return fn(F16{});
    case Kind::kBF16:
      return fn(BF16{});
    case Kind::kQ4_0:
      return fn(Q4_0{});
    case Kind::kQ4_1:
      return fn(Q4_1{});
    case Kind::kQ5_0:
      return fn(Q5_0{});
    case Kind::kQ5_1:
      return fn(Q5_1{});
    case Kind::kQ8_0:
      return fn(Q8_0{});
    case Kind::kQ4_K:
      return fn(Q4_K{});
    case Kind::kQ5_K:
      return fn(Q5_K{});
    case Kind::kQ6_K:
      return fn(Q6_K{});
    case Kind::kCount:
      return;
  }
}

template <typename C>
struct Of {
  using type = C;
};
// The same with the codes of a type of blocks.
template <typename Fn>
PK_INLINE void with_codes(Kind kind, const Fn &fn) {
  switch (kind) {
    case Kind::kQ4_0:
      return fn(Of<Q4_0_Codes>{});
    case Kind::kQ4_1:
      return fn(Of<Q4_1_Codes>{});
    case Kind::kQ5_0:
      return fn(Of<Q5_0_Codes>{});
    case Kind::kQ5_1:
      return fn(Of<Q5_1_Codes>{});
    case Kind::kQ8_0:
      return fn(Of<Q8_0_Codes>{});
    case Kind::kQ4_K:
      return fn(Of<Q4_K_Codes>{});
    case Kind::kQ5_K:
      return fn(Of<Q5_K_Codes>{});
    case Kind::kQ6_K:
      return fn(Of<Q6_K_Codes>{});
    default:
      return;
  }
}

void row(const Weight &w, const float *x, int64_t first, int64_t count, float *out) {
  with_format(w.kind, [&](auto format) {
    if constexpr (Plain<decltype(format)>) row_of<decltype(format)>(w, x, first, count, out);
  });
}

void expand(const Weight &w, int64_t row, float *out) {
  with_format(w.kind, [&](auto format) { expand_of<decltype(format)>(w, row, out); });
}

constexpr int kAhead = 2048;  // bytes of W that are on their way: the processor's own reading ahead ends at each page

// kRows rows of coded x, from row `first` on, with kColumns rows of w. Without the pragmas sums would lie in memory.
template <typename C, int kRows, int kColumns>
PK_INLINE void coded_sums(int64_t k, const uint8_t *w, int64_t row_bytes, const CodedRows &x, int64_t first, float *out,
                          int64_t out_stride) {
  Lanes sum[kRows][kColumns];
  typename C::template Shifts<kRows> shift[kColumns];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) sum[r][c] = every(0);
  const auto add = [&](int c, const uint8_t *at, int64_t unit) __attribute__((always_inline)) {
    for (int line = 0; line < C::kBytes; line += 64) __builtin_prefetch(at + kAhead + line, 0, 0);
    const C block(at);
    shift[c].all(block, x, first, unit);
    decltype(block.scaled(x.row(0), unit)) scaled[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      scaled[r] = block.scaled(x.row(first + r), unit);
      shift[c].one(r, scaled[r]);
    }
#pragma GCC unroll 4
    for (int n = 0; n < C::kElements / (2 * kStep); ++n) {
      const Pair pair = block.pair(n);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Ints products = fours<C::kLess>(pair, x.row(first + r), unit * C::kElements + n * 2 * kStep);
        sum[r][c] = sum[r][c] + floats(products) * C::lanes(scaled[r], n);
      }
    }
  };
  const int64_t units = k / C::kElements;
  for (int64_t unit = 0; unit < units; ++unit)
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) add(c, w + c * row_bytes + unit * C::kBytes, unit);
  if (k % C::kElements != 0)  // one block of two
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      uint8_t end[C::kBytes] = {};
      __builtin_memcpy(end, w + c * row_bytes + units * C::kBytes, C::kBlock);
      add(c, end, units);
    }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c)
      out[r * out_stride + c] = shift[c].added_to(added(sum[r][c], every(0)), first, r);
}

template <typename C, int kRows>
void coded_rows(int64_t k, const uint8_t *w, int64_t row_bytes, const CodedRows &x, int64_t first, int64_t count,
                float *out, int64_t out_stride) {
  constexpr int kColumns = kRows == 1 ? 2 : 1;
  int64_t c = 0;
  for (; c + kColumns <= count; c += kColumns)
    coded_sums<C, kRows, kColumns>(k, w + c * row_bytes, row_bytes, x, first, out + c, out_stride);
  for (; c < count; ++c) coded_sums<C, kRows, 1>(k, w + c * row_bytes, row_bytes, x, first, out + c, out_stride);
}

void coded(const Weight &w, const uint8_t *x, int64_t rows, int64_t first, int64_t count, float *out,
           int64_t out_stride) {
  with_codes(w.kind, [&](auto format) {
    using C = typename decltype(format)::type;
    const int64_t row_bytes = w.k / kStep * kStep * C::kBytes / C::kElements;
    const uint8_t *from = w.at + first * row_bytes;
    const CodedRows coded_x(x, w.k, rows);
    int64_t r = 0;
    for (; r + kTogether <= rows; r += kTogether)
      coded_rows<C, kTogether>(w.k, from, row_bytes, coded_x, r, count, out + r * out_stride, out_stride);
    if (r + kTogether / 2 <= rows) {
      coded_rows<C, kTogether / 2>(w.k, from, row_bytes, coded_x, r, count, out + r * out_stride, out_stride);
      r += kTogether / 2;
    }
    for (; r < rows; ++r) coded_rows<C, 1>(w.k, from, row_bytes, coded_x, r, count, out + r * out_stride, out_stride);
  });
}

template <int kRows, int kColumns>
PK_INLINE void sums(const float *x, const float *w, int64_t width, float *out, int64_t out_stride) {
  Lanes first[kRows][kColumns], second[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) first[r][c] = second[r][c] = every(0);
  for (int64_t k = 0; k < width; k += kStep) {
    Lanes weights[kColumns];
    for (int c = 0; c < kColumns; ++c) weights[c] = load(w + c * width + k);
    for (int r = 0; r < kRows; ++r) {
      const Lanes inputs = load(x + r * width + k);
      for (int c = 0; c < kColumns; ++c) first[r][c] = first[r][c] + weights[c] * inputs;
    }
    for (int c = 0; c < kColumns; ++c) weights[c] = load(w + c * width + k + kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Lanes inputs = load(x + r * width + k + kLanes);
      for (int c = 0; c < kColumns; ++c) second[r][c] = second[r][c] + weights[c] * inputs;
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) out[r * out_stride + c] = added(first[r][c], second[r][c]);
}

template <int kRows>
PK_INLINE void tile_rows(const float *x, const float *w, int64_t columns, int64_t width, float *out, int64_t stride) {
  int64_t c = 0;
  for (; c + kTileColumns <= columns; c += kTileColumns)
    sums<kRows, kTileColumns>(x, w + c * width, width, out + c, stride);
  for (; c < columns; ++c) sums<kRows, 1>(x, w + c * width, width, out + c, stride);
}

void tile(const float *x, int64_t rows, const float *w, int64_t columns, int64_t width, float *out, int64_t stride) {
  int64_t r = 0;
  for (; r + kTileRows <= rows; r += kTileRows)
    tile_rows<kTileRows>(x + r * width, w, columns, width, out + r * stride, stride);
  for (; r < rows; ++r) tile_rows<1>(x + r * width, w, columns, width, out + r * stride, stride);
}

// fn over lanes from up to three inputs; the last, incomplete lanes through padded copies.
template <typename Fn>
PK_INLINE void lane_by_lane(const float *a, const float *b, const float *c, int64_t count, float *out, const Fn &fn) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, fn(load(a + i), load(b + i), load(c + i)));
  if (const size_t left = static_cast<size_t>(count - i) * sizeof(float); left != 0) {
    float ends[3][kLanes] = {}, end[kLanes];
    __builtin_memcpy(ends[0], a + i, left);
    __builtin_memcpy(ends[1], b + i, left);
    __builtin_memcpy(ends[2], c + i, left);
    store(end, fn(load(ends[0]), load(ends[1]), load(ends[2])));
    __builtin_memcpy(out + i, end, left);
  }
}

void silu(const float *gate, const float *up, int64_t count, float *out) {
  lane_by_lane(gate, up, up, count, out, [](const Lanes &g, const Lanes &u, const Lanes &) {
    return g / (exponential(every(0) - g) + 1.0f) * u;
  });
}

PK_INLINE float first_of(const Lanes &lanes) { return lanes.of[0][0]; }

// The sum of fn(x) over a row, in 32 partial sums.
template <typename Fn>
PK_INLINE float summed(const float *x, int64_t count, const Fn &fn) {
  Lanes first = every(0), second = every(0);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    first = first + fn(load(x + i));
    second = second + fn(load(x + i + kLanes));
  }
  float sum = added(first, second);
  for (; i < count; ++i) sum += first_of(fn(every(x[i])));
  return sum;
}

void norm(const float *x, const float *weight, const float *bias, int64_t count, float epsilon, bool centered,
          float *out) {
  const float number = static_cast<float>(count);
  const float mean = centered ? summed(x, count, [](const Lanes &v) { return v; }) / number : 0.0f;
  const float squares = summed(x, count, [mean](const Lanes &v) { return (v - mean) * (v - mean); });
  const float scale = 1.0f / __builtin_sqrtf(squares / number + epsilon);
  lane_by_lane(x, weight, bias == nullptr ? x : bias, count, out, [&](const Lanes &v, const Lanes &w, const Lanes &b) {
    const Lanes result = (v - mean) * scale * w;
    return bias == nullptr ? result : result + b;
  });
}

// fn(number of the key, where its elements begin), in order.
template <typename Fn>
PK_INLINE void each_key(const Look &task, const Fn &fn) {
  int64_t key = 0, skipped = task.skipped;
  for (const int32_t *block = task.blocks; key < task.keys; ++block) {
    const int64_t left = task.block - skipped, end = task.keys - key < left ? task.keys : key + left;
    for (int64_t place = *block * task.stride + skipped * task.dim; key < end; ++key, place += task.dim) fn(key, place);
    skipped = 0;
  }
}

// The scores under their soft cap, by which their order stays; the largest of them.
float capped(const Look &task) {
  const float cap = task.cap, twice = 2 * cap;
  lane_by_lane(task.scores, task.scores, task.scores, task.keys, task.scores,
               [=](const Lanes &s, const Lanes &, const Lanes &) {
                 return every(cap) - every(twice) / (exponential(s * (2 / cap)) + 1.0f);
               });
  float largest = -__builtin_inff();
  for (int64_t key = 0; key < task.keys; ++key) largest = task.scores[key] > largest ? task.scores[key] : largest;
  return largest;
}

void look(const Look &task) {
  const int64_t dim = task.dim, whole = dim / kStep * kStep;
  float largest = -__builtin_inff();
  each_key(task, [&](int64_t key, int64_t place) {
    const float *k = task.k + place;
    Lanes first = every(0), second = every(0);
    for (int64_t d = 0; d < whole; d += kStep) {
      first = first + load(task.q + d) * load(k + d);
      second = second + load(task.q + d + kLanes) * load(k + d + kLanes);
    }
    float score = added(first, second);
    for (int64_t d = whole; d < dim; ++d) score += task.q[d] * k[d];
    task.scores[key] = score *= task.scale;
    largest = score > largest ? score : largest;
  });
  if (task.cap > 0) largest = capped(task);
  if (task.sink != nullptr && *task.sink > largest) largest = *task.sink;
  lane_by_lane(task.scores, task.scores, task.scores, task.keys, task.scores,
               [largest](const Lanes &s, const Lanes &, const Lanes &) { return exponential(s - largest); });
  float total = summed(task.scores, task.keys, [](const Lanes &v) { return v; });
  if (task.sink != nullptr) {
    float weight[kLanes];
    store(weight, exponential(every(*task.sink - largest)));
    total += weight[0];
  }
  for (int64_t d = 0; d < dim; d += 4 * kLanes) {
    const int64_t lanes = (dim - d) / kLanes < 4 ? (dim - d) / kLanes : 4;
    if (lanes == 4) {
      Lanes sum[4] = {every(0), every(0), every(0), every(0)};
      each_key(task, [&](int64_t key, int64_t place) {
        for (int i = 0; i < 4; ++i) sum[i] = sum[i] + load(task.v + place + d + i * kLanes) * task.scores[key];
      });
      for (int i = 0; i < 4; ++i) store(task.out + d + i * kLanes, sum[i] / total);
      continue;
    }
    for (int64_t i = 0; i < lanes; ++i) {
      Lanes sum = every(0);
      each_key(task, [&](int64_t key, int64_t place) {
        sum = sum + load(task.v + place + d + i * kLanes) * task.scores[key];
      });
      store(task.out + d + i * kLanes, sum / total);
    }
    for (int64_t at = d + lanes * kLanes; at < dim && at < d + 4 * kLanes; ++at) {
      float sum = 0;
      each_key(task, [&](int64_t key, int64_t place) { sum += task.v[place + at] * task.scores[key]; });
      task.out[at] = sum / total;
    }
  }
}

constexpr Kernels kKernels = {PK_KERNELS, kTileRows, kTileColumns, row, code, coded, expand, tile, silu, norm, look};

}  // namespace
}  // namespace pk::host
