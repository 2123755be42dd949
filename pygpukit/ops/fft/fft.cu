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
  long long limit[2];    // input from this position on is zero, output from it on is dropped
  long long mirror;      // kMirrored: the length that the half spectrum stands for
  double factor;         // of the result
  int exchange[3];       // the parts: of what is read, before the output's factors, after them
  int lines_first[2];    // neighbouring threads have neighbouring transforms, else neighbouring elements
  int fine;              // kTurned: elements of the table of small turns, a power of two
};

// Forms of the kernel, which are added.
constexpr int kPacked = 1;    // real numbers, two of them as a complex one
constexpr int kMirrored = 2;  // half a spectrum is read; the rest are conjugates
constexpr int kBefore = 4;    // what is read is multiplied by `before`, by its position
constexpr int kAfter = 8;     // what is written is multiplied by `after`, by its position
constexpr int kTurned = 16;   // ... by a turn of the whole: element times line

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
  const In *in;
  Out *out;
  const C *table, *before, *after;
  const FftCall &call;
  long long number;  // in its place of the batch
  bool exists;

  __device__ __forceinline__ Line(const In *in, Out *out, const C *table, const C *before, const C *after,
                                  const FftCall &call, long long line)
      : table(table), before(before), after(after), call(call), number(line % call.period), exists(line < call.lines) {
    long long at[2] = {0, 0};
    if (exists) locate(call.batch, line / call.period, at);
    this->in = in + at[0];
    this->out = out + at[1];
  }

  __device__ __forceinline__ long long position(int side, int i) const {
    return i * call.element[side] + number * call.line[side];
  }

  // The number at a position; past the end zero, of half a spectrum what it stands for.
  __device__ __forceinline__ C at(long long position) const {
    if constexpr ((Form & kMirrored) == 0) {
      return position < call.limit[0] ? read(in + position * call.step[0]) : C{R(0), R(0)};
    } else {
      if (position >= call.mirror) return {R(0), R(0)};
      const bool other = 2 * position > call.mirror;
      const bool whole = position == 0 || 2 * position == call.mirror;
      if (other) position = call.mirror - position;
      C z = position < call.limit[0] ? read(in + position * call.step[0]) : C{R(0), R(0)};
      if (whole) z.im = R(0);
      return other ? conjugate(z) : z;
    }
  }

  __device__ __forceinline__ C load(int i) const {
    if (!exists) return {R(0), R(0)};
    C z;
    if constexpr ((Form & kPacked) == 0) {
      z = at(position(0, i));
    } else if constexpr ((Form & kMirrored) == 0) {
      z = {at(2 * i).re, at(2 * i + 1).re};
    } else {
      const C a = at(i), b = conjugate(at(N - i));
      const C odd = product(subtract(a, b), conjugate(table[i]));
      z = {a.re + b.re - odd.im, a.im + b.im + odd.re};
    }
    z = exchanged(z, call.exchange[0]);
    if constexpr (Form & kBefore) {
      const long long from = position(0, i);
      if (from < ((Form & kMirrored) ? call.mirror : call.limit[0])) z = product(z, before[from]);
    }
    return z;
  }

  __device__ __forceinline__ void put(long long position, C z) const {
    if (!exists || position >= call.limit[1]) return;
    if constexpr (sizeof(Out) == sizeof(C)) {
      out[position * call.step[1]] = {z.re * R(call.factor), z.im * R(call.factor)};
    } else {
      out[position * call.step[1]] = z.re * R(call.factor);
    }
  }

  __device__ __forceinline__ void store(int k, C z) const {
    const long long to = position(1, k);
    z = exchanged(z, call.exchange[1]);
    if constexpr (Form & kAfter) {
      if (to < call.limit[1]) z = product(z, after[to]);
    }
    if constexpr (Form & kTurned) {
      const long long turn = k * number;
      z = product(z, product(after[turn & (call.fine - 1)], after[call.fine + turn / call.fine]));
    }
    z = exchanged(z, call.exchange[2]);
    if constexpr ((Form & kPacked) && sizeof(Out) != sizeof(C)) {
      put(2 * k, {z.re, R(0)});
      put(2 * k + 1, {z.im, R(0)});
    } else {
      put(to, z);
    }
  }

  // Values k and N - k of 2 N real numbers, of the values of N complex ones that hold two each.
  __device__ __forceinline__ void unpack(int k, C z, C other) const {
    const C sum = {(z.re + other.re) * R(0.5), (z.im - other.im) * R(0.5)};
    const C odd = product(C{(z.im + other.im) * R(0.5), (other.re - z.re) * R(0.5)}, table[k]);
    put(k, add(sum, odd));
    put(N - k, conjugate(subtract(sum, odd)));
  }
};

// Transforms of N numbers, N the product of the radices, Lines of them in a block. table: exp(-2 pi i k / N) for k
// from 0 to N - 1; where numbers are packed, of 2 N.
template <class In, class Out, int Form, int Lines, int... Radices>
__global__ void __launch_bounds__(Lines *((Radices * ...) / largest(Radices...)))
    fft(const In *in, Out *out, const complex_t<part_t<Out>> *table, const complex_t<part_t<Out>> *before,
        const complex_t<part_t<Out>> *after, const __grid_constant__ FftCall call) {
  using R = part_t<Out>;
  constexpr int N = (Radices * ...), Threads = N / largest(Radices...);
  constexpr bool kept = (Form & kPacked) && sizeof(Out) == sizeof(complex_t<R>);
  extern __shared__ double2 fft_memory[];
  const Shared<R, N> shared{reinterpret_cast<complex_t<R> *>(fft_memory)};
  using L = Line<In, Out, Form, N>;
  const auto make_line = [&](int line) {
    return L(in, out, table, before, after, call, static_cast<long long>(blockIdx.x) * Lines + line);
  };
  steps<L, N, Lines, Threads, (Form & kPacked) ? 2 : 1, kept, 1, Radices...>(shared, table, call, make_line);
  if constexpr (kept) {
    const Place place = Place::of<Lines, Threads>(call.lines_first[1]);
    const L line = make_line(place.line);
    for (int k = place.lane; 2 * k <= N; k += Threads) {
      line.unpack(k, shared.at(place.line, k), shared.at(place.line, k == 0 ? 0 : N - k));
    }
  }
}

}  // namespace pk
