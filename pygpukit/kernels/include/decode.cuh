// decode.cuh: attention of a few queries on a long cache: arguments, parts of the keys, rows of a cache.
//
// A block takes a part of the keys of one head, for some of the rows that look at them: the queries of every query head
// that shares the head of keys, so that keys and values are read once for all of those. The parts follow from how many
// keys the sequence has, and a second launch combines them in their order: the bits of a row depend on its own keys
// alone, not on the rows beside it, the batch or how the cache is laid out.
#pragma once
#include "attention.cuh"
#include "rows.cuh"

namespace pk {

struct DecodeAttention {
  long long group, key_heads;    // query heads that share a head of keys, and how many such heads there are
  long long queries, keys, dim;  // keys: that a batch element can have at most
  long long page, pages;         // positions of a page, and how many pages there are; without a table one each
  long long has_table, table_step;
  long long length_step;
  long long parts, tiles;       // of a sequence's keys, at most; of the rows of a head of keys
  AttentionPlace q, k, v, out;  // batch of k and v: their pages
  AttentionExtras more;
};

template <class T>
constexpr int kChunk = sizeof(T) == 2 ? 64 : 256;  // keys
constexpr int kMaxParts = 32, kMinParts = 16, kLongPart = 8;

// Chunks of a part. In 16 bits so many that there are kMinParts of them, but no more than kLongPart, or as leave
// kMaxParts.
template <class T>
__device__ __forceinline__ int chunks_of_part(int chunks) {
  if (sizeof(T) != 2) return 1;
  const int preferred = (chunks + kMinParts - 1) / kMinParts, max_keys = (chunks + kMaxParts - 1) / kMaxParts;
  return max(max_keys, min(preferred, kLongPart));
}

// Floats that a block writes: of its rows the totals, the largest scores and the sums; whole 16 bytes.
__device__ __forceinline__ long long size_of_part(int rows, int dim) { return (rows * (dim + 2) + 3) / 4 * 4; }

// Some query sees the keys low .. length - 1, in `chunks` chunks from `first` on.
struct Parts {
  int length, low, first, chunks, each;
  __device__ __forceinline__ int count() const { return (chunks + each - 1) / each; }
};

template <class T>
__device__ __forceinline__ Parts parts_of(const int *lengths, unsigned batch, const DecodeAttention &p) {
  const int stated = lengths[batch * p.length_step], max_keys = static_cast<int>(p.keys);
  const int length = stated < 0 ? 0 : stated < max_keys ? stated : max_keys;
  const long long seen_from = length - p.queries - p.more.behind;
  const int low = seen_from < 0 ? 0 : static_cast<int>(seen_from);
  const int first = low / kChunk<T>, chunks = (length + kChunk<T> - 1) / kChunk<T> - first;
  return {length, low, first, chunks, max(chunks_of_part<T>(chunks), 1)};
}

}  // namespace pk
