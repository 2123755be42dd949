// fft.cu: the transforms of fft.cuh along an axis of any array, with one read and one write of the elements. device.py
// puts longer transforms and other lengths together from these.
#include "fft.cuh"

namespace pk {

// ---- what a launch is told ----

// A transform is at positions element i + line (its number in its place of the batch) of that place.
struct FftCall {
  Layout<2> batch;       // all axes but the transformed one, of input and output
  long long lines;       // transforms
  long long period;      // transforms of each place of the batch
  long long element[2];  // positions from an element to the next, of input and output
  long long line[2];     // positions from a transform to the next
  long long step[2];     // array elements from a position to the next
  long long stride[2];   // array elements from an element to the next
  long long limit[2];    // input from this position on is zero, output from it on is dropped
  long long mirror;      // kMirrored: the length that the half spectrum stands for
  double factor;         // of the result
  float single;          // ... rounded, which a kernel would do for each number
  int exchange[3];       // the parts: of what is read, before the output's factors, after them
  int lines_first[2];    // neighbouring threads have neighbouring transforms, else neighbouring elements
  int fine;              // kTwiddled: the logarithm to base 2 of how many elements the table of small turns has
};

// Forms of the kernel, which are added.
constexpr int kPacked = 1;       // real numbers, two of them as a complex one
constexpr int kMirrored = 2;     // half a spectrum is read; the rest are conjugates
constexpr int kBefore = 4;       // what is read is multiplied by `before`, by its position
constexpr int kAfter = 8;        // what is written is multiplied by `after`, by its position
constexpr int kTwiddled = 16;      // ... by a turn of the whole: element times line
constexpr int kWhole = 32;       // no element is cut or zero; not with kMirrored, and kPacked only with kDense
constexpr int kDense = 64;       // elements follow each other, no element is cut or zero, and the batch has one stride
constexpr int kConvolved = 128;  // the transform, times a spectrum, its parts exchanged, is transformed again
constexpr int kLong = 256;       // positions, or the steps between them, take 64 bits

template <bool Long>
struct Positions {
  using type = int;
  using Unsigned = unsigned;
};
template <>
struct Positions<true> {
  using type = long long;
  using Unsigned = unsigned long long;
};

// Transforms of more bytes pass through shared memory in halves.
constexpr int kWholeBytes = 64 << 10;

template <class R>
__device__ __forceinline__ complex_t<R> read(const R *at) {
  return {*at, R(0)};
}
template <class R>
__device__ __forceinline__ complex_t<R> read(const complex_t<R> *at) {
  return *at;
}

// One transform's input and output.
template <class In, class Out, int Form, int N>
struct Line {
  using R = part_t<Out>;
  using C = complex_t<R>;
  using I = typename Positions<(Form & kLong) != 0>::type;
  using Unsigned = typename Positions<(Form & kLong) != 0>::Unsigned;
  static constexpr bool kPairs = (Form & kPacked) && (Form & kDense);
  const In *in;
  Out *out;
  const C *roots, *before, *after;  // roots: kPacked: exp(-pi i k / N)
  const FftCall &call;
  I number;  // in its place of the batch
  bool exists;

  __device__ __forceinline__ Line(const In *in, Out *out, const C *roots, const C *before, const C *after,
                                  const FftCall &call, long long line)
      : roots(roots), before(before), after(after), call(call), number(0), exists(line < call.lines) {
    long long at[2];
    const Unsigned own = exists ? line : 0;
    if constexpr (Form & kDense) {
      for (int side = 0; side < 2; ++side) {
        at[side] = call.batch.start[side] + static_cast<long long>(own) * call.batch.stride[side][0];
      }
    } else {
      const Unsigned place = own / static_cast<Unsigned>(call.period);
      number = own - place * static_cast<Unsigned>(call.period);
      locate<Unsigned, 2>(call.batch, place, at);
    }
    if constexpr (Form & kWhole) {
      for (int side = 0; side < 2; ++side) at[side] += number * call.line[side] * call.step[side];
    }
    this->in = in + at[0];
    this->out = out + at[1];
  }

  __device__ __forceinline__ I position(int side, int i) const {
    if constexpr (Form & kDense) return i;
    return i * static_cast<I>(call.element[side]) + number * static_cast<I>(call.line[side]);
  }
  // Array elements to one: its number in the transform, and its position.
  __device__ __forceinline__ long long offset(int side, int i, I position) const {
    if constexpr (Form & kDense) return position;
    if constexpr (Form & kWhole) return static_cast<long long>(i) * static_cast<I>(call.stride[side]);
    return static_cast<long long>(position) * static_cast<I>(call.step[side]);
  }
  __device__ __forceinline__ C element_at(int i, I position) const {
    if constexpr (Form & (kDense | kWhole)) {
      return read(in + offset(0, i, position));
    } else {
      const I limit = static_cast<I>(call.limit[0]);
      const C z = read(in + offset(0, i, position < limit ? position : limit - 1));
      return position < limit ? z : C{R(0), R(0)};
    }
  }

  __device__ __forceinline__ R factor() const {
    if constexpr (sizeof(R) == sizeof(float)) {
      return call.single;
    } else {
      return call.factor;
    }
  }

  // The number at a position; past the end zero, of half a spectrum what it stands for.
  __device__ __forceinline__ C at(int i, I position) const {
    if constexpr ((Form & kMirrored) == 0) {
      return element_at(i, position);
    } else {
      const I mirror = static_cast<I>(call.mirror);
      if ((Form & kDense) == 0 && position >= mirror) return {R(0), R(0)};
      const bool other = 2 * position > mirror;
      const bool whole = position == 0 || 2 * position == mirror;
      C z = element_at(i, other ? mirror - position : position);
      if (whole) z.im = R(0);
      return other ? conjugate(z) : z;
    }
  }

  __device__ __forceinline__ C load(int i) const {
    C z;
    if constexpr ((Form & kPacked) == 0) {
      z = at(i, position(0, i));
    } else if constexpr (kPairs && (Form & kMirrored) == 0) {
      z = reinterpret_cast<const C *>(in)[i];
    } else if constexpr ((Form & kMirrored) == 0) {
      z = {at(i, 2 * i).re, at(i, 2 * i + 1).re};
    } else {
      const C a = at(i, i), b = conjugate(at(i, N - i));
      const C odd = product(subtract(a, b), conjugate(roots[i]));
      z = {a.re + b.re - odd.im, a.im + b.im + odd.re};
    }
    z = exchanged(z, call.exchange[0]);
    if constexpr (Form & kBefore) {
      const I from = position(0, i);
      const I end = static_cast<I>((Form & kMirrored) ? call.mirror : call.limit[0]);
      if ((Form & kWhole) || from < end) z = product(z, before[from]);
    }
    return z;
  }

  __device__ __forceinline__ void put(int k, I position, C z) const {
    if ((Form & (kDense | kWhole)) == 0 && position >= static_cast<I>(call.limit[1])) return;
    Out *to = out + offset(1, k, position);
    if constexpr (sizeof(Out) == sizeof(C)) {
      *to = {z.re * factor(), z.im * factor()};
    } else {
      *to = z.re * factor();
    }
  }

  __device__ __forceinline__ void store(int k, C z) const {
    const I to = position(1, k);
    z = exchanged(z, call.exchange[1]);
    if constexpr (Form & kAfter) {
      if ((Form & kWhole) || to < static_cast<I>(call.limit[1])) z = product(z, after[to]);
    }
    if constexpr (Form & kTwiddled) {
      const unsigned long long turn = static_cast<unsigned long long>(number) * static_cast<unsigned>(k);
      const unsigned long long small = 1ull << call.fine;
      z = product(z, product(after[turn & (small - 1)], after[small + (turn >> call.fine)]));
    }
    z = exchanged(z, call.exchange[2]);
    if constexpr (kPairs && sizeof(Out) != sizeof(C)) {
      reinterpret_cast<C *>(out)[k] = {z.re * factor(), z.im * factor()};
    } else if constexpr ((Form & kPacked) && sizeof(Out) != sizeof(C)) {
      put(k, 2 * k, {z.re, R(0)});
      put(k, 2 * k + 1, {z.im, R(0)});
    } else {
      put(k, to, z);
    }
  }

  // Values k and N - k of 2 N real numbers, of the values of N complex ones that hold two each.
  __device__ __forceinline__ void unpack(int k, C z, C other) const {
    const C sum = {(z.re + other.re) * R(0.5), (z.im - other.im) * R(0.5)};
    const C odd = product(C{(z.im + other.im) * R(0.5), (other.re - z.re) * R(0.5)}, roots[k]);
    put(k, k, add(sum, odd));
    put(k, N - k, conjugate(subtract(sum, odd)));
  }
};

// Transforms of N numbers, N the product of the radices, Lines of them in a block. table: of steps(); after it, where
// numbers are packed, exp(-pi i k / N) for k from 0 to N - 1, where they are convolved the spectrum.
template <class In, class Out, int Form, int Lines, int... Radices>
__global__ void __launch_bounds__(Lines *((Radices * ...) / largest(Radices...)))
    fft(const In *in, Out *out, const complex_t<part_t<Out>> *table, const complex_t<part_t<Out>> *before,
        const complex_t<part_t<Out>> *after, const __grid_constant__ FftCall call) {
  using R = part_t<Out>;
  using C = complex_t<R>;
  constexpr int N = (Radices * ...), Threads = N / largest(Radices...);
  constexpr bool halves = N * sizeof(C) > kWholeBytes;
  extern __shared__ double2 fft_memory[];
  using S = Shared<R, N, leading(Radices...), halves>;
  const S shared{reinterpret_cast<typename S::Element *>(fft_memory)};
  using L = Line<In, Out, Form, N>;
  const auto make_line = [&](int line) {
    return L(in, out, table + N, before, after, call, static_cast<long long>(blockIdx.x) * Lines + line);
  };
  const auto store = [&](auto &held, Place place) {
    const L line = make_line(place.line);
    if (line.exists) held.each_outside(place.lane, [&](int i, const C &z) { line.store(i, z); });
  };
  if constexpr ((Form & kPacked) && sizeof(Out) == sizeof(C)) {
    steps<Lines, Radices...>(shared, table, call, make_line,
                             [&](auto &held, Place place) { keep(held, shared, place); });
    const Place place = Place::of<Lines, Threads>(call.lines_first[1]);
    const L line = make_line(place.line);
    for (int k = place.lane; line.exists && 2 * k <= N; k += Threads) {
      line.unpack(k, shared.at(place.line, k), shared.at(place.line, k == 0 ? 0 : N - k));
    }
  } else if constexpr (Form & kConvolved) {
    steps<Lines, Radices...>(shared, table, call, make_line, [&](auto &held, Place place) {
      held.each_outside(place.lane, [&](int i, C &z) { z = exchanged(product(z, table[N + i]), true); });
      Held<R, N, Threads, leading(Radices...)> numbers;
      again(held, shared, place, Place::of<Lines, Threads>(call.lines_first[0]), numbers);
      steps_of<Lines, 1, Radices...>(numbers, shared, table, call, store);
    });
  } else {
    steps<Lines, Radices...>(shared, table, call, make_line, store);
  }
}

}  // namespace pk
