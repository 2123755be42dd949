// attention.cpp: a head of a row at a time, so that no row's bits depend on the others.
#include "host/attention.h"

#include <algorithm>
#include <cstring>

#include "host/crew.h"

namespace pk::host {
namespace {

constexpr int64_t kPlacePart = 16 << 10;  // elements

thread_local std::vector<float> t_scores;

void rotated(const Attention &a, float *head, int64_t position, const Norm &norm) {
  if (norm.weight != nullptr) kernels().norm(head, norm.weight, norm.bias, a.dim, norm.epsilon, norm.centered, head);
  if (a.cos == nullptr) return;
  const int64_t half = a.half;
  const float *cos = a.cos + position * half, *sin = a.sin + position * half;
  for (int64_t i = 0; i < half; ++i) {
    const float x = head[i], y = head[half + i];
    head[i] = x * cos[i] - y * sin[i];
    head[half + i] = y * cos[i] + x * sin[i];
  }
}

// Elements before a head's position in the cache.
int64_t place_of(const Attention &a, int64_t row, int64_t head, int64_t position) {
  const int64_t slot = a.slots[row * a.blocks + position / a.size];
  return ((slot * a.kv_heads + head) * a.size + position % a.size) * a.dim;
}

void place_row(const Attention &a, int64_t row) {
  const int64_t position = a.positions[row];
  const size_t bytes = static_cast<size_t>(a.dim) * sizeof(float);
  float *q = a.qkv + row * a.width, *k = q + a.heads * a.dim, *v = k + a.kv_heads * a.dim;
  for (int64_t head = 0; head < a.heads; ++head) rotated(a, q + head * a.dim, position, a.q_norm);
  for (int64_t head = 0; head < a.kv_heads; ++head) {
    rotated(a, k + head * a.dim, position, a.k_norm);
    const int64_t place = place_of(a, row, head, position);
    std::memcpy(a.k + place, k + head * a.dim, bytes);
    std::memcpy(a.v + place, v + head * a.dim, bytes);
  }
}

void see(const Attention &a, int64_t row, int64_t head) {
  const int64_t end = a.positions[row] + 1, chunk = a.chunk > 0 ? (end - 1) / a.chunk * a.chunk : 0;
  const int64_t first = a.window > 0 ? std::max(chunk, end - a.window) : chunk;
  const int64_t keys = end - first, group = head / (a.heads / a.kv_heads) * a.size * a.dim;
  if (static_cast<int64_t>(t_scores.size()) < keys) t_scores.resize(static_cast<size_t>(keys));
  kernels().look({.q = a.qkv + row * a.width + head * a.dim,
                  .k = a.k + group,
                  .v = a.v + group,
                  .out = a.out + (row * a.heads + head) * a.dim,
                  .scores = t_scores.data(),
                  .blocks = a.slots + row * a.blocks + first / a.size,
                  .stride = a.kv_heads * a.size * a.dim,
                  .block = a.size,
                  .skipped = first % a.size,
                  .keys = keys,
                  .dim = a.dim,
                  .scale = a.scale,
                  .cap = a.cap,
                  .sink = a.sinks == nullptr ? nullptr : a.sinks + head});
}

}  // namespace

bool Attention::sound() const {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = positions[row];
    const bool turns = cos == nullptr || position < table_rows;
    if (position < 0 || position >= size * blocks || !turns) return false;
    for (int64_t i = 0; i <= position / size; ++i)
      if (slots[row * blocks + i] < 0 || slots[row * blocks + i] >= slot_count) return false;
  }
  return true;
}

void Attention::place() const {
  in_parts(rows, kPlacePart / ((heads + 2 * kv_heads) * dim), [this](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) place_row(*this, row);
  });
}

void Attention::step() const {
  in_parts(rows * heads, 1, [this](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) see(*this, i / heads, i % heads);
  });
}

}  // namespace pk::host
