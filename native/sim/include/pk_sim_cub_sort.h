// pk_sim_cub_sort.h: cub::BlockRadixSort: from the lowest digit to the highest, items of the same digit in their order.
#pragma once
#pragma GCC system_header

#include "pk_sim_cub_memory.h"

namespace cub {

// The order of numbers as that of their bits: of negative ones all are turned, of others the sign. -0 counts as 0.
template <class Key>
PK_SIM_INLINE unsigned long long pk_sim_cub_bits(const Key &key) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &key, sizeof key);
  constexpr unsigned long long sign = 1ull << (8 * sizeof key - 1);
  if constexpr (cuda::std::is_unsigned<Key>::value) return bits;
  if constexpr (cuda::std::is_integral<Key>::value) return bits ^ sign;
  if (bits == sign) bits = 0;
  return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
}

template <class Key, int X, int Items, class Value = NullType, int RadixBits = 4, bool Memoize = true,
          int InnerScan = 0, int BankBytes = 0, int Y = 1, int Z = 1, int Unused = 0>
class BlockRadixSort {
  static constexpr int threads = X * Y * Z, count = threads * Items, width = 8;
  static_assert(count <= 65536, "BlockRadixSort takes up to 65536 items");
  typedef BlockExchange<Key, X, Items, false, Y, Z> Keys;
  typedef BlockExchange<Value, X, Items, false, Y, Z> Values;

 public:
  struct TempStorage {
    union {
      typename Keys::TempStorage keys;
      typename Values::TempStorage values;
    };
    unsigned short ranks[count];
  };

 private:
  TempStorage &room;
  const int rank = pk_sim_block_rank();

  static TempStorage &own() {
    __shared__ TempStorage room;
    return room;
  }
  // Where each item of the thread goes, by the digit that begins at `bit`.
  void rank_by(const Key (&keys)[Items], int bit, int bits, bool down, int (&to)[Items], const char *file, int line) {
    const unsigned mask = (1u << bits) - 1;
    for (int i = 0; i < Items; ++i) {
      const unsigned digit = pk_sim_cub_bits(keys[i]) >> bit & mask;
      room.ranks[rank * Items + i] = down ? mask - digit : digit;
    }
    __syncthreads(file, line);
    if (rank == 0) {
      unsigned next[1 << width] = {};
      for (int i = 0; i < count; ++i) ++next[room.ranks[i]];
      for (unsigned digit = 0, sum = 0; digit <= mask; ++digit) {
        const unsigned some = next[digit];
        next[digit] = sum;
        sum += some;
      }
      for (int i = 0; i < count; ++i) room.ranks[i] = next[room.ranks[i]]++;
    }
    __syncthreads(file, line);
    for (int i = 0; i < Items; ++i) to[i] = room.ranks[rank * Items + i];
  }
  template <bool Striped>
  void run(Key (&keys)[Items], Value *values, int begin, int end, bool down, const char *file, int line) {
    for (int bit = begin; bit < end; bit += width) {
      const bool last = bit + width >= end;
      int to[Items];
      rank_by(keys, bit, end - bit < width ? end - bit : width, down, to, file, line);
      exchange(Keys(room.keys), keys, to, Striped && last, file, line);
      if constexpr (!cuda::std::is_same<Value, NullType>::value) {
        __syncthreads(file, line);
        exchange(Values(room.values), reinterpret_cast<Value(&)[Items]>(*values), to, Striped && last, file, line);
      }
      if (!last) __syncthreads(file, line);
    }
  }
  template <class Exchange, class T>
  static void exchange(Exchange by, T (&items)[Items], int (&to)[Items], bool striped, const char *file, int line) {
    if (striped)
      by.ScatterToStriped(items, to, file, line);
    else
      by.ScatterToBlocked(items, to, file, line);
  }

 public:
  BlockRadixSort() : room(own()) {}
  BlockRadixSort(TempStorage &room) : room(room) {}

#define PK_SIM_SORT(name, Striped, down)                                                                               \
  void name(Key(&keys)[Items], int begin_bit = 0, int end_bit = 8 * sizeof(Key), PK_SIM_HERE) {                        \
    static_assert(cuda::std::is_same<Value, NullType>::value, "give the values, too");                                 \
    run<Striped>(keys, nullptr, begin_bit, end_bit, down, pk_sim_file, pk_sim_line);                                   \
  }                                                                                                                    \
  void name(Key(&keys)[Items], Value(&values)[Items], int begin_bit = 0, int end_bit = 8 * sizeof(Key), PK_SIM_HERE) { \
    run<Striped>(keys, values, begin_bit, end_bit, down, pk_sim_file, pk_sim_line);                                    \
  }
  PK_SIM_SORT(Sort, false, false)
  PK_SIM_SORT(SortDescending, false, true)
  PK_SIM_SORT(SortBlockedToStriped, true, false)
  PK_SIM_SORT(SortDescendingBlockedToStriped, true, true)
#undef PK_SIM_SORT
};

}  // namespace cub
