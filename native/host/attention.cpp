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
  const int64_t half = a.dim / 2;
  const float *cos = a.cos + position * half, *sin = a.sin + position * half;
  for (int64_t i = 0; i < half; ++i) {
    const float x = head[i], y = head[half + i];
    head[i] = x * cos[i] - y * sin[i];
    head[half + i] = y * cos[i] + x * sin[i];
  }
}

float *cached(const Attention &a, float *cache, int64_t row, int64_t head) {
  return cache + ((a.slots[row] * a.kv_heads + head) * a.capacity) * a.dim;
}

void place_row(const Attention &a, int64_t row) {
  const int64_t position = a.positions[row];
  const size_t bytes = static_cast<size_t>(a.dim) * sizeof(float);
  float *q = a.qkv + row * (a.heads + 2 * a.kv_heads) * a.dim, *k = q + a.heads * a.dim, *v = k + a.kv_heads * a.dim;
  for (int64_t head = 0; head < a.heads; ++head) rotated(a, q + head * a.dim, position, a.q_norm);
  for (int64_t head = 0; head < a.kv_heads; ++head) {
    rotated(a, k + head * a.dim, position, a.k_norm);
    std::memcpy(cached(a, a.k, row, head) + position * a.dim, k + head * a.dim, bytes);
    std::memcpy(cached(a, a.v, row, head) + position * a.dim, v + head * a.dim, bytes);
  }
}

void see(const Attention &a, int64_t row, int64_t head) {
  const int64_t end = a.positions[row] + 1, first = a.window > 0 ? std::max<int64_t>(0, end - a.window) : 0;
  const int64_t group = head / (a.heads / a.kv_heads), keys = end - first;
  if (static_cast<int64_t>(t_scores.size()) < keys) t_scores.resize(static_cast<size_t>(keys));
  kernels().look({.q = a.qkv + (row * (a.heads + 2 * a.kv_heads) + head) * a.dim,
                  .k = cached(a, a.k, row, group) + first * a.dim,
                  .v = cached(a, a.v, row, group) + first * a.dim,
                  .out = a.out + (row * a.heads + head) * a.dim,
                  .scores = t_scores.data(),
                  .keys = keys,
                  .dim = a.dim,
                  .scale = a.scale});
}

}  // namespace

bool Attention::sound() const {
  for (int64_t row = 0; row < rows; ++row) {
    const bool turns = cos == nullptr || positions[row] < table_rows;
    if (positions[row] < 0 || positions[row] >= capacity || slots[row] < 0 || slots[row] >= slot_count || !turns)
      return false;
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
