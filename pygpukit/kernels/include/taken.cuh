// taken.cuh: the elements of one operand that a thread takes: neighbours in memory, every second, reversed, one for
// all, or from anywhere.
#pragma once
#include "span.cuh"

namespace pk {

// Elements smaller than a word, by their bits: packs of them are put together in words, since as elements they would
// take a register each where several ways to load them meet.
template <class T, int N>
constexpr bool kSmall = sizeof(T)<4 && N> 1 && by_words<T, N>();
template <int Bytes>
struct bits_of {
  using type = unsigned char;
};
template <>
struct bits_of<2> {
  using type = unsigned short;
};
template <class T>
__device__ inline unsigned bits_at(const T *element) {
  return *reinterpret_cast<const typename bits_of<sizeof(T)>::type *>(element);
}

template <class T, int N>
__device__ inline Held<T, N> in_words(const unsigned (&elements)[N]) {
  constexpr int kEach = 4 / sizeof(T);
  Held<T, N> held;
  for (int w = 0; w < N / kEach; ++w) {
    unsigned word = elements[w * kEach];
    for (int j = 1; j < kEach; ++j) word |= elements[w * kEach + j] << (32 / kEach * j);
    held.bits.words.v[w] = word;
  }
  return held;
}
template <class T, int N>
__device__ inline Held<T, N> in_words(const Pack<T, N> &pack) {
  if constexpr (kSmall<T, N>) {
    unsigned elements[N];
    for (int j = 0; j < N; ++j) elements[j] = bits_at(&pack.v[j]);
    Held<T, N> held = in_words<T, N>(elements);
    for (unsigned &word : held.bits.words.v) asm volatile("" : "+r"(word));
    return held;
  } else {
    Held<T, N> held;
    held.keep(pack);
    return held;
  }
}

// The elements of an operand that a thread takes, on their way. What was loaded is not looked at before all operands'
// loads are under way, but small elements that do not lie side by side.
template <class T, int N>
struct Taken {
  Across<T, N> own;
  int step = 1;  // 0: one for all; -1: reversed

  // N elements from `at` of an operand that ends with element `end`, a step apart.
  __device__ inline void row(const T *operand, int at, int end, int apart) {
    if (apart == 1) {
      neighbours(operand, at, end);
    } else if (apart == 0) {
      step = 0;
      one(operand[at]);
    } else if (apart == -1) {
      step = -1;
      neighbours(operand, at - (N - 1), end);
    } else if (!pairs(operand, at, end, apart)) {
      take_single(operand, at, apart);
    }
  }
  __device__ inline void each(const T *operand, const int (&places)[N]) {
    if constexpr (kSmall<T, N>) {
      unsigned elements[N];
      for (int j = 0; j < N; ++j) elements[j] = bits_at(operand + places[j]);
      own.low = in_words<T, N>(elements);
    } else {
      Pack<T, N> pack;
      for (int j = 0; j < N; ++j) pack.v[j] = operand[places[j]];
      own.low.keep(pack);
    }
  }
  __device__ inline void one(const T &value) {
    if constexpr (kSmall<T, N>) {
      own.low.bits.words.v[0] = bits_at(&value);
    } else {
      Pack<T, N> pack;
      pack.v[0] = value;
      own.low.keep(pack);
    }
  }

  __device__ inline Pack<T, N> arrived() const {
    Held<T, N> held = own.arrived();
    if (step == 0) held = repeated(held);
    if (step < 0) held = reversed(held);
    return held.pack();
  }

 private:
  // Every second of small elements; whether they are.
  __device__ inline bool pairs(const T *operand, int at, int end, int apart) {
    if constexpr (kSmall<T, N>) {
      if (apart != 2 || at + 2 * N > end) return false;
      Taken low, high;
      low.neighbours(operand, at, end);
      high.neighbours(operand, at + N, end);
      constexpr int kWords = Bits<T, N>::kWords;
      const Held<T, N> first = low.own.arrived(), second = high.own.arrived();
      const auto word = [&](int j) { return j < kWords ? first.bits.words.v[j] : second.bits.words.v[j - kWords]; };
      for (int j = 0; j < kWords; ++j)
        own.low.bits.words.v[j] = __byte_perm(word(2 * j), word(2 * j + 1), sizeof(T) == 2 ? 0x5410 : 0x6420);
      return true;
    }
    return false;
  }
  __device__ inline void take_single(const T *operand, int at, int apart) {
    int places[N];
    for (int j = 0; j < N; ++j) places[j] = at + j * apart;
    each(operand, places);
  }
  __device__ inline void neighbours(const T *operand, int at, int end) {
    const T *from = operand + at;
    if (N == 1 || phase<N>(from) == 0) {
      own.low.load(from);
    } else if (!kSmall<T, N> || Span<T>{operand, operand + end}.template holds<N>(from)) {
      own.load(from);
    } else {
      take_single(operand, at, 1);
    }
  }
  __device__ inline static Held<T, N> reversed(const Held<T, N> &held) {
    Held<T, N> in_order;
    if constexpr (kSmall<T, N>) {
      constexpr int kWords = Bits<T, N>::kWords;
      for (int j = 0; j < kWords; ++j)
        in_order.bits.words.v[j] = __byte_perm(held.bits.words.v[kWords - 1 - j], 0, sizeof(T) == 2 ? 0x1032 : 0x0123);
    } else {
      Pack<T, N> pack;
      for (int j = 0; j < N; ++j) pack.v[j] = held.pack().v[N - 1 - j];
      in_order.keep(pack);
    }
    return in_order;
  }
  __device__ inline static Held<T, N> repeated(Held<T, N> held) {
    if constexpr (kSmall<T, N>) {
      const unsigned word = held.bits.words.v[0] * (sizeof(T) == 2 ? 0x10001u : 0x1010101u);
      for (unsigned &own : held.bits.words.v) own = word;
    } else {
      Pack<T, N> pack;
      for (T &element : pack.v) element = held.pack().v[0];
      held.keep(pack);
    }
    return held;
  }
};

}  // namespace pk
