// fft.cuh: discrete Fourier transforms of lengths whose prime factors are at most 13, by Stockham's method: butterflies
// in registers, an exchange through shared memory between them. A kernel says how elements are read and written.
#pragma once
#include "numeric.cuh"

namespace pk {

// ---- numbers known when the kernel is compiled ----

template <int V>
struct Number {
  static constexpr int value = V;
};

// f(Number<From>) ... f(Number<To - 1>).
template <int From, int To, class F>
__device__ __forceinline__ void each(F f) {
  if constexpr (From < To) {
    f(Number<From>{});
    each<From + 1, To>(f);
  }
}

// The cosine or sine of an angle up to an eighth of a turn, to the last bit but one.
__device__ constexpr double series(double x, int first) {
  double sum = 1;
  for (int i = first + 22; i > first; i -= 2) sum = 1 - sum * (x * x) / (i * (i - 1));
  return sum;
}
constexpr double kTurn = 6.283185307179586476925;
__device__ constexpr double cosine(int k, int n);
// sin(2 pi k / n) for k from 0 to n.
__device__ constexpr double sine(int k, int n) {
  if (2 * k > n) return -sine(n - k, n);
  if (4 * k > n) return sine(n - 2 * k, 2 * n);
  if (8 * k > n) return cosine(n - 4 * k, 4 * n);
  return kTurn * k / n * series(kTurn * k / n, 1);
}
__device__ constexpr double cosine(int k, int n) {
  if (2 * k > n) return cosine(n - k, n);
  if (4 * k > n) return -cosine(n - 2 * k, 2 * n);
  if (8 * k > n) return sine(n - 4 * k, 4 * n);
  return series(kTurn * k / n, 0);
}

__device__ constexpr int smallest_factor(int n) {
  if (n % 4 == 0) return 4;
  for (int p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}
__device__ constexpr int largest(int n) { return n; }
template <class... Rest>
__device__ constexpr int largest(int first, int second, Rest... rest) {
  return largest(first > second ? first : second, rest...);
}

template <class... Rest>
__device__ constexpr int leading(int first, Rest...) {
  return first;
}

// ---- complex numbers ----

template <class T>
struct part {
  using type = T;
};
template <class R>
struct part<complex_t<R>> {
  using type = R;
};
template <class T>
using part_t = typename part<T>::type;

template <class R>
__device__ __forceinline__ complex_t<R> conjugate(complex_t<R> z) {
  return {z.re, -z.im};
}
// What is contracted stands here, and nothing else is: every form of a kernel gives the same bits.
template <class R>
__device__ __forceinline__ complex_t<R> product(complex_t<R> a, complex_t<R> b) {
  return {::fma(a.re, b.re, -(a.im * b.im)), ::fma(a.re, b.im, a.im * b.re)};
}
// The transform of numbers with their parts exchanged is the inverse transform with its parts exchanged.
template <class R>
__device__ __forceinline__ complex_t<R> exchanged(complex_t<R> z, bool yes) {
  return yes ? complex_t<R>{z.im, z.re} : z;
}
// z exp(-2 pi i K / N).
template <int K, int N, class R>
__device__ __forceinline__ complex_t<R> rotated(complex_t<R> z) {
  if constexpr (K % N == 0) {
    return z;
  } else if constexpr (4 * K % N == 0) {
    constexpr int quarters = 4 * K / N % 4;
    if constexpr (quarters == 1) return {z.im, -z.re};
    if constexpr (quarters == 2) return {-z.re, -z.im};
    if constexpr (quarters == 3) return {-z.im, z.re};
  } else {
    constexpr R c = R(cosine(K % N, N)), s = R(sine(K % N, N));
    return {::fma(z.re, c, z.im * s), ::fma(z.im, c, -(z.re * s))};
  }
}

// ---- the transform of N numbers in registers ----

template <class R, int N>
struct Butterfly {
  static __device__ __forceinline__ void apply(complex_t<R> (&v)[N]) {
    constexpr int A = smallest_factor(N), B = N / A;
    if constexpr (N == 2) {
      const complex_t<R> a = v[0], b = v[1];
      v[0] = add(a, b);
      v[1] = subtract(a, b);
    } else if constexpr (N == 4) {
      const complex_t<R> a = add(v[0], v[2]), b = subtract(v[0], v[2]);
      const complex_t<R> c = add(v[1], v[3]), d = rotated<1, 4>(subtract(v[1], v[3]));
      v[0] = add(a, c);
      v[1] = add(b, d);
      v[2] = subtract(a, c);
      v[3] = subtract(b, d);
    } else if constexpr (A < N) {
      composite<A, B>(v);
    } else if constexpr (N > 1) {
      prime(v);
    }
  }

 private:
  // Position B a + b, value c + A d: transforms over a, a turn, transforms over b.
  template <int A, int B>
  static __device__ __forceinline__ void composite(complex_t<R> (&v)[N]) {
    complex_t<R> twiddled[A][B];
    each<0, B>([&](auto number_b) {
      constexpr int b = decltype(number_b)::value;
      complex_t<R> own[A];
      each<0, A>([&](auto a) { own[decltype(a)::value] = v[B * decltype(a)::value + b]; });
      Butterfly<R, A>::apply(own);
      each<0, A>([&](auto number_c) {
        constexpr int c = decltype(number_c)::value;
        twiddled[c][b] = rotated<b * c, N>(own[c]);
      });
    });
    each<0, A>([&](auto number_c) {
      constexpr int c = decltype(number_c)::value;
      Butterfly<R, B>::apply(twiddled[c]);
      each<0, B>([&](auto d) { v[c + A * decltype(d)::value] = twiddled[c][decltype(d)::value]; });
    });
  }

  // Values k and N - k share their products: of sums, and of differences, of the numbers at j and N - j.
  static __device__ __forceinline__ void prime(complex_t<R> (&v)[N]) {
    constexpr int half = (N - 1) / 2;
    complex_t<R> sums[half], differences[half];
    complex_t<R> total = v[0];
    each<1, half + 1>([&](auto number) {
      constexpr int j = decltype(number)::value;
      sums[j - 1] = add(v[j], v[N - j]);
      differences[j - 1] = subtract(v[j], v[N - j]);
      total = add(total, sums[j - 1]);
    });
    each<1, half + 1>([&](auto number_k) {
      constexpr int k = decltype(number_k)::value;
      complex_t<R> even = v[0], odd = {R(0), R(0)};
      each<1, half + 1>([&](auto number_j) {
        constexpr int j = decltype(number_j)::value;
        constexpr R c = R(cosine(j * k % N, N)), s = R(sine(j * k % N, N));
        even = {::fma(c, sums[j - 1].re, even.re), ::fma(c, sums[j - 1].im, even.im)};
        odd = {::fma(s, differences[j - 1].im, odd.re), ::fma(-s, differences[j - 1].re, odd.im)};
      });
      v[k] = add(even, odd);
      v[N - k] = subtract(even, odd);
    });
    v[0] = total;
  }
};

// ---- the transforms of a block ----

template <class R, bool Halves>
struct memory_element {
  using type = complex_t<R>;
};
template <class R>
struct memory_element<R, true> {
  using type = R;
};

// After how many elements shared memory has a gap, 0 for no gaps, so that the threads of a warp meet few of each
// other's banks: those of a first step write as many elements apart as its radix says.
__device__ constexpr int gap_after(int first_radix) {
  if (first_radix % 4 == 0) return 16 % first_radix == 0 ? 16 : first_radix;
  return first_radix == 2 ? 16 : 0;
}

// The numbers of a block's transforms between two steps. Halves: real parts pass through the memory before imaginary
// ones, which then take half of it.
template <class R, int N, int First, bool Halves = false>
struct Shared {
  static constexpr int kGap = gap_after(First);
  static constexpr int kPitch = (N + (kGap ? N / kGap : 0)) | 1;
  using Element = typename memory_element<R, Halves>::type;
  Element *memory;
  static __device__ __forceinline__ constexpr int place(int i) {
    if constexpr (kGap) return i + static_cast<unsigned>(i) / kGap;
    return i;
  }
  __device__ __forceinline__ Element &at(int line, int i) const { return memory[line * kPitch + place(i)]; }
};

struct Place {
  int line, lane;
  template <int Lines, int Threads>
  static __device__ __forceinline__ Place of(bool lines_first) {
    const int thread = threadIdx.x;
    return lines_first ? Place{thread % Lines, thread / Lines} : Place{thread / Threads, thread % Threads};
  }
};

// f(round, j) for each butterfly j of a thread; count of them to a transform.
template <int Count, int Threads, class F>
__device__ __forceinline__ void each_butterfly(int lane, F f) {
  each<0, (Count + Threads - 1) / Threads>([&](auto round) {
    const int j = lane + decltype(round)::value * Threads;
    if (Count % Threads == 0 || j < Count) f(round, j);
  });
}

// What a thread holds of a transform in a step: butterflies of a radix.
template <class R, int N, int Threads, int Radix>
struct Held {
  static constexpr int kCount = N / Radix;
  complex_t<R> v[(kCount + Threads - 1) / Threads][Radix];

  // f(j + k kCount, number k of butterfly j).
  template <class F>
  __device__ __forceinline__ void each_outside(int lane, F f) {
    each_butterfly<kCount, Threads>(lane, [&](auto round, int j) {
      each<0, Radix>([&](auto number) {
        constexpr int k = decltype(number)::value;
        f(j + k * kCount, v[decltype(round)::value][k]);
      });
    });
  }
  // f(where memory has number k of butterfly j, the number).
  template <class S, class F>
  __device__ __forceinline__ void each_read(S shared, Place place, F f) {
    constexpr bool apart = S::kGap == 0 || kCount % S::kGap == 0;
    each_butterfly<kCount, Threads>(place.lane, [&](auto round, int j) {
      auto *own = &shared.at(place.line, j);
      each<0, Radix>([&](auto number) {
        constexpr int k = decltype(number)::value, offset = k * kCount;
        f(apart ? own[S::place(offset)] : shared.at(place.line, j + offset), v[decltype(round)::value][k]);
      });
    });
  }
  // f(where memory has value k of butterfly j after radices whose product is Done, the value).
  template <int Done, class S, class F>
  __device__ __forceinline__ void each_written(S shared, Place place, F f) {
    // Where no sum of the parts of a place passes a gap that they do not.
    constexpr int gap = S::kGap ? S::kGap : 1;
    constexpr bool apart = S::kGap == 0 || Done % gap == 0 || (gap % Done == 0 && Done * Radix % gap == 0) ||
                           (Done == 1 && gap % Radix == 0);
    each_butterfly<kCount, Threads>(place.lane, [&](auto round, int j) {
      const int to = j / Done * Done * Radix + j % Done;
      auto *own = &shared.at(place.line, to);
      each<0, Radix>([&](auto number) {
        constexpr int k = decltype(number)::value, offset = k * Done;
        f(apart ? own[S::place(offset)] : shared.at(place.line, to + offset), v[decltype(round)::value][k]);
      });
    });
  }
  template <int Done>
  __device__ __forceinline__ void transform(const complex_t<R> *table, int lane) {
    each_butterfly<kCount, Threads>(lane, [&](auto round, int j) {
      complex_t<R>(&own)[Radix] = v[decltype(round)::value];
      if constexpr (Done > 1) {
        const complex_t<R> *turns = table + j % Done;
        each<1, Radix>([&](auto number) {
          constexpr int k = decltype(number)::value;
          own[k] = product(own[k], turns[k * Done]);
        });
      }
      Butterfly<R, Radix>::apply(own);
    });
  }
};

// From the values of a step to the numbers of the next one.
template <int Done, class R, int N, int First, bool Halves, class From, class To>
__device__ __forceinline__ void exchange(Shared<R, N, First, Halves> shared, Place from, Place to, From &values,
                                         To &numbers) {
  using C = complex_t<R>;
  if constexpr (Done > 1) __syncthreads();
  if constexpr (Halves) {
    values.template each_written<Done>(shared, from, [](R &at, const C &z) { at = z.re; });
    __syncthreads();
    numbers.each_read(shared, to, [](const R &at, C &z) { z.re = at; });
    __syncthreads();
    values.template each_written<Done>(shared, from, [](R &at, const C &z) { at = z.im; });
    __syncthreads();
    numbers.each_read(shared, to, [](const R &at, C &z) { z.im = at; });
  } else {
    values.template each_written<Done>(shared, from, [](C &at, const C &z) { at = z; });
    __syncthreads();
    numbers.each_read(shared, to, [](const C &at, C &z) { z = at; });
  }
}

// A step for each radix. Done: the product of the radices before this one.
// table: element k Done + j is exp(-2 pi i j k / (Done Radix)), for j below Done and k from 1 to Radix - 1 of a step.
template <int Lines, int Done, int Radix, int... Rest, class R, int N, int First, bool Halves, int Threads, class Call,
          class Finish>
__device__ __forceinline__ void steps_of(Held<R, N, Threads, Radix> &held, Shared<R, N, First, Halves> shared,
                                         const complex_t<R> *table, const Call &call, Finish finish) {
  const Place place = Place::of<Lines, Threads>(call.lines_first[Done == 1 ? 0 : 1]);
  held.template transform<Done>(table, place.lane);
  if constexpr (sizeof...(Rest) > 0) {
    Held<R, N, Threads, leading(Rest...)> next;
    exchange<Done>(shared, place, Place::of<Lines, Threads>(call.lines_first[1]), held, next);
    steps_of<Lines, Done * Radix, Rest...>(next, shared, table, call, finish);
  } else {
    finish(held, place);
  }
}

// Transforms of N numbers, N the product of the radices, Lines of them in a block. make_line: of a number in the block
// what has load(i) and exists. finish(held, place): takes what a thread holds in the end.
template <int Lines, int Radix, int... Rest, class R, int N, bool Halves, class Call, class MakeLine, class Finish>
__device__ __forceinline__ void steps(Shared<R, N, Radix, Halves> shared, const complex_t<R> *table, const Call &call,
                                      MakeLine make_line, Finish finish) {
  constexpr int threads = N / largest(Radix, Rest...);
  Held<R, N, threads, Radix> held;
  const Place place = Place::of<Lines, threads>(call.lines_first[0]);
  const auto line = make_line(place.line);
  if (line.exists) {
    held.each_outside(place.lane, [&](int i, complex_t<R> &z) { z = line.load(i); });
  } else {
    held.each_outside(place.lane, [](int, complex_t<R> &z) { z = {R(0), R(0)}; });
  }
  steps_of<Lines, 1, Radix, Rest...>(held, shared, table, call, finish);
}

// What a thread holds in the end, into shared memory in order.
template <class R, int N, int First, int Threads, int Radix>
__device__ __forceinline__ void keep(Held<R, N, Threads, Radix> &held, Shared<R, N, First> shared, Place place) {
  constexpr int done = N / Radix;
  if constexpr (done > 1) __syncthreads();
  held.template each_written<done>(shared, place, [](complex_t<R> &at, const complex_t<R> &z) { at = z; });
  __syncthreads();
}

// ... and from there into the numbers of a first step.
template <class R, int N, int First, bool Halves, int Threads, int Radix, class To>
__device__ __forceinline__ void again(Held<R, N, Threads, Radix> &held, Shared<R, N, First, Halves> shared, Place from,
                                      Place to, To &numbers) {
  exchange<N / Radix>(shared, from, to, held, numbers);
  __syncthreads();
}

}  // namespace pk
