// pk_sim_fragment.h: what is behind nvcuda::wmma on the simulated device (mma.h): the fragments that there are, how
// they lie in memory and in lanes, and their products.
#pragma once
#pragma GCC system_header

#include "pk_sim_matrix.h"

namespace nvcuda {
namespace wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
namespace precision {
struct tf32;
}
namespace experimental {
namespace precision {
struct u4;
struct s4;
struct b1;
}  // namespace precision
}  // namespace experimental

// ---- elements. stored: what a fragment keeps; memory: what pointers to them point to; count: elements in one that is
// stored; number: how the bits of one are multiplied; spread(): an element, everywhere in one that is stored.
template <class Stored, class Memory, int Count, class Number>
struct pk_sim_element_kind {
  typedef Stored stored;
  typedef Memory memory;
  typedef Number number;
  static constexpr int count = Count;
  PK_SIM_MATRIX_INLINE Stored spread(Stored value) { return value; }
};
template <class T>
struct pk_sim_element_of;
template <>
struct pk_sim_element_of<__half> : pk_sim_element_kind<__half, __half, 1, pk_sim_mma_f16> {};
template <>
struct pk_sim_element_of<__nv_bfloat16> : pk_sim_element_kind<__nv_bfloat16, __nv_bfloat16, 1, pk_sim_mma_bf16> {};
template <>
struct pk_sim_element_of<precision::tf32> : pk_sim_element_kind<float, float, 1, pk_sim_mma_tf32> {};
template <>
struct pk_sim_element_of<float> : pk_sim_element_kind<float, float, 1, pk_sim_mma_f32> {};
template <>
struct pk_sim_element_of<double> : pk_sim_element_kind<double, double, 1, pk_sim_mma_f64> {};
template <>
struct pk_sim_element_of<int> : pk_sim_element_kind<int, int, 1, pk_sim_mma_s32> {};
template <>
struct pk_sim_element_of<signed char> : pk_sim_element_kind<signed char, signed char, 1, pk_sim_mma_s8> {};
template <>
struct pk_sim_element_of<unsigned char> : pk_sim_element_kind<unsigned char, unsigned char, 1, pk_sim_mma_u8> {};
template <>
struct pk_sim_element_of<experimental::precision::u4> : pk_sim_element_kind<unsigned, void, 8, pk_sim_mma_u4> {
  PK_SIM_MATRIX_INLINE unsigned spread(unsigned value) { return (value & 0xfu) * 0x11111111u; }
};
template <>
struct pk_sim_element_of<experimental::precision::s4> : pk_sim_element_kind<int, void, 8, pk_sim_mma_s4> {
  PK_SIM_MATRIX_INLINE int spread(int value) { return (int)(((unsigned)value & 0xfu) * 0x11111111u); }
};
template <>
struct pk_sim_element_of<experimental::precision::b1> : pk_sim_element_kind<unsigned, void, 32, pk_sim_mma_b1> {
  PK_SIM_MATRIX_INLINE unsigned spread(unsigned value) { return value & 1u ? ~0u : 0u; }
};

// ---- shapes
template <class Use, int m, int n, int k, class T, class Layout>
constexpr bool pk_sim_fragment_known() {
  namespace small = experimental::precision;
  constexpr bool sums = pk_sim_is<Use, accumulator>, left = pk_sim_is<Use, matrix_a>;
  constexpr bool by_rows = pk_sim_is<Layout, row_major>, by_columns = pk_sim_is<Layout, col_major>;
  constexpr bool sixteens = k == 16 && m * n == 256 && (m == 16 || m == 8 || m == 32), eights = m == 8 && n == 8;
  if (sums)
    return pk_sim_is<Layout, void> &&
           ((sixteens && pk_sim_one_of<T, __half, float, int>) ||
            (m == 16 && n == 16 && k == 8 && pk_sim_is<T, float>) || (eights && k == 4 && pk_sim_is<T, double>) ||
            (eights && (k == 32 || k == 128) && pk_sim_is<T, int>));
  if (!by_rows && !by_columns) return false;
  if (pk_sim_one_of<T, __half, __nv_bfloat16, signed char, unsigned char>) return sixteens;
  if (pk_sim_is<T, precision::tf32>) return m == 16 && n == 16 && k == 8;
  if (pk_sim_is<T, double>) return eights && k == 4;
  return left == by_rows && eights &&
         ((k == 32 && pk_sim_one_of<T, small::u4, small::s4>) || (k == 128 && pk_sim_is<T, small::b1>));
}

// Whether products of `T` are summed up in `Sum`.
template <class T, class Sum>
static constexpr bool pk_sim_sums_known = pk_sim_is<T, __half>   ? pk_sim_one_of<Sum, __half, float>
                                          : pk_sim_is<T, double> ? pk_sim_is<Sum, double>
                                          : pk_sim_one_of<T, __nv_bfloat16, precision::tf32> ? pk_sim_is<Sum, float>
                                                                                             : pk_sim_is<Sum, int>;

// Sizes in what is stored: eight elements of four bits are one. Rows of b here are columns of the matrix.
template <class Use, int m, int n, int k, class T, class Layout>
struct pk_sim_fragment {
  static_assert(pk_sim_fragment_known<Use, m, n, k, T, Layout>(), "there is no wmma fragment of this shape and type");
  typedef pk_sim_element_of<T> element;
  typedef typename element::stored stored;
  static constexpr bool sums = pk_sim_is<Use, accumulator>, right = pk_sim_is<Use, matrix_b>;
  static constexpr int rows = right ? n : m, columns = sums ? n : k / element::count;
  static constexpr int kept = rows * columns / 32;  // by a lane; halves of a and b twice or more
  static constexpr int storage_elements = !sums && pk_sim_is<T, __half> ? 16 : kept;
  static constexpr int elements = storage_elements * element::count;
  static constexpr int each = sums ? 2 : sizeof(stored) < 4 ? 4 / (int)sizeof(stored) : 1;
#ifdef PK_SIM_CHECK
  // Another order for every kind, so that what relies on one shows.
  static constexpr int kind =
      m + 3 * n + 5 * k + 7 * (int)sizeof(stored) + 11 * right + 13 * pk_sim_is<Layout, row_major>;
  static constexpr int other_lane = 1 + kind % 31, other_element = kind % kept;
#else
  static constexpr int other_lane = 0, other_element = 0;
#endif
  PK_SIM_MATRIX_INLINE pk_sim_spot place(int lane, int i) {
    return pk_sim_held<rows, each>(lane ^ other_lane, i % kept ^ other_element);
  }
};

// ---- what the checker is told: that a fragment has its elements from a function, or is taken for a matrix by one
#ifdef PK_SIM_CHECK
template <class Fragment>
PK_SIM_NOINLINE void pk_sim_fragment_set(const Fragment &f) {
  pk_sim_checker.fragment(f.x, sizeof f.x, sizeof f.x[0], nullptr, 0);
}
template <class Fragment>
PK_SIM_NOINLINE void pk_sim_fragment_used(const Fragment &f, const char *file, int line) {
  pk_sim_checker.fragment(f.x, sizeof f.x, sizeof f.x[0], file, line);
}
#else
template <class Fragment>
PK_SIM_INLINE void pk_sim_fragment_set(const Fragment &) {}
template <class Fragment>
PK_SIM_INLINE void pk_sim_fragment_used(const Fragment &, const char *, int) {}
#endif

// ---- memory: a lane reads and writes `kept` neighbours of a line of the matrix
template <class Stored>
struct pk_sim_fragment_frame {
  const pk_sim_warp_work *work;
  Stored *x, *piece;
  const void *matrix;
  unsigned ldm;
  bool along;  // lines of memory are rows of the fragment
  const char *file;
  int line;
};

template <class Shape>
struct pk_sim_memory_work {
  typedef typename Shape::stored Stored;
  typedef pk_sim_fragment_frame<Stored> Frame;
  static constexpr int kept = Shape::kept;
#ifdef PK_SIM_CHECK
  // Nobody knows which lane writes what: not the one that is likely to read it, or a missing barrier would not show.
  static constexpr int other_piece = 21;
#else
  static constexpr int other_piece = 0;
#endif

  PK_SIM_MATRIX_INLINE pk_sim_spot place_in_piece(bool along, int lane, int j) {
    const int at = (lane ^ other_piece) * kept + j, length = along ? Shape::columns : Shape::rows;
    return along ? pk_sim_spot{at / length, at % length} : pk_sim_spot{at % length, at / length};
  }
  // Where the piece of a lane begins.
  PK_SIM_MATRIX_INLINE Stored *piece(const void *matrix, unsigned ldm, bool along, int lane) {
    const int at = (lane ^ other_piece) * kept, length = along ? Shape::columns : Shape::rows;
    return (Stored *)matrix + (size_t)(at / length) * (ldm / Shape::element::count) + at % length;
  }
  static PK_SIM_UNCHECKED void ask_alike(void *const *frames) {
    const Frame &first = *(const Frame *)frames[0];
    for (int lane = 1; lane < 32; ++lane) {
      const Frame &other = *(const Frame *)frames[lane];
      if (other.matrix != first.matrix || other.ldm != first.ldm || other.along != first.along)
        pk_sim_fail(PK_SIM_FAIL_MATRIX, "the lanes of a warp give different pointers, leading dimensions or layouts",
                    "", first.file, first.line);
    }
  }
  static PK_SIM_UNCHECKED void load(void *const *frames) {
    ask_alike(frames);
    Stored matrix[Shape::rows][Shape::columns];
    const bool along = ((const Frame *)frames[0])->along;
    for (int lane = 0; lane < 32; ++lane) {
      for (int j = 0; j < kept; ++j) {
        const pk_sim_spot at = place_in_piece(along, lane, j);
        matrix[at.row][at.column] = ((const Frame *)frames[lane])->piece[j];
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < Shape::storage_elements; ++i) {
        const pk_sim_spot at = Shape::place(lane, i);
        ((const Frame *)frames[lane])->x[i] = matrix[at.row][at.column];
      }
    }
  }
  static PK_SIM_UNCHECKED void store(void *const *frames) {
    ask_alike(frames);
    Stored matrix[Shape::rows][Shape::columns];
    const bool along = ((const Frame *)frames[0])->along;
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < kept; ++i) {
        const pk_sim_spot at = Shape::place(lane, i);
        matrix[at.row][at.column] = ((const Frame *)frames[lane])->x[i];
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int j = 0; j < kept; ++j) {
        const pk_sim_spot at = place_in_piece(along, lane, j);
        ((const Frame *)frames[lane])->piece[j] = matrix[at.row][at.column];
      }
    }
  }
  static constexpr pk_sim_warp_work load_work = {"load_matrix_sync", load};
  static constexpr pk_sim_warp_work store_work = {"store_matrix_sync", store};
};

// The pointer is a multiple of 32 bytes, or of a line that is shorter; lines begin at multiples of 16 bytes.
template <class Shape>
PK_SIM_INLINE void pk_sim_ask_aligned(const void *matrix, unsigned ldm, bool along, const char *name, const char *file,
                                      int line) {
#ifdef PK_SIM_CHECK
  constexpr int size = sizeof(typename Shape::stored), count = Shape::element::count;
  const unsigned bytes = (along ? Shape::columns : Shape::rows) * size;
  pk_sim_matrix_aligned(matrix, bytes < 32 ? bytes : 32, name, file, line);
  if (ldm % (16 * count / size))
    pk_sim_fail(PK_SIM_FAIL_MATRIX, "the leading dimension of a wmma matrix is no multiple of 16 bytes", "", file,
                line);
#endif
}

template <class Fragment>
PK_SIM_INLINE void pk_sim_load(Fragment &f, const void *matrix, unsigned ldm, bool by_rows, const char *file,
                               int line) {
  typedef typename Fragment::pk_sim_shape Shape;
  typedef pk_sim_memory_work<Shape> Work;
  const bool along = by_rows != Shape::right;
  pk_sim_ask_aligned<Shape>(matrix, ldm, along, Work::load_work.name, file, line);
  typename Work::Frame frame = {
      &Work::load_work, f.x, Work::piece(matrix, ldm, along, (int)pk_sim_thread % 32), matrix, ldm, along, file, line};
  pk_sim_matrix_read(frame.piece, Shape::kept * sizeof f.x[0], file, line);
  pk_sim_matrix_call(frame, file, line);
  pk_sim_fragment_set(f);
}

template <class Fragment>
PK_SIM_INLINE void pk_sim_store(void *matrix, const Fragment &f, unsigned ldm, bool by_rows, const char *file,
                                int line) {
  typedef typename Fragment::pk_sim_shape Shape;
  typedef pk_sim_memory_work<Shape> Work;
  typedef typename Shape::stored Stored;
  pk_sim_fragment_used(f, file, line);
  pk_sim_ask_aligned<Shape>(matrix, ldm, by_rows, Work::store_work.name, file, line);
  Stored *const own = Work::piece(matrix, ldm, by_rows, (int)pk_sim_thread % 32);
  pk_sim_piece<Stored, Shape::kept> piece;
  typename Work::Frame frame = {&Work::store_work, (Stored *)f.x, piece.target(own), matrix, ldm, by_rows, file, line};
  pk_sim_matrix_call(frame, file, line);
  piece.write(own, file, line);
}

// ---- products
PK_SIM_MATRIX_INLINE void pk_sim_keep(float &to, float sum, bool saturate) {
  to = !saturate || __builtin_fabsf(sum) <= 0x1.fffffep127f ? sum
       : sum != sum                                         ? 0.0f
       : sum < 0                                            ? -0x1.fffffep127f
                                                            : 0x1.fffffep127f;
}
PK_SIM_MATRIX_INLINE void pk_sim_keep(double &to, double sum, bool) { to = sum; }
PK_SIM_MATRIX_INLINE void pk_sim_keep(int &to, long long sum, bool saturate) { to = pk_sim_kept(sum, saturate); }
PK_SIM_MATRIX_INLINE void pk_sim_keep(__half &to, float sum, bool saturate) {
  const unsigned bits = pk_sim_half_bits(sum);
  to.pk_sim_value = !saturate || (bits & 0x7c00u) != 0x7c00u ? bits : bits & 0x3ffu ? 0u : (bits & 0x8000u) | 0x7bffu;
}

// The number that is element j of one that is stored.
template <class Number, class Stored>
PK_SIM_MATRIX_INLINE auto pk_sim_number(const Stored &stored, int j) {
  if constexpr (pk_sim_one_of<Stored, float, double> && !pk_sim_is<Number, pk_sim_mma_tf32>)
    return stored;
  else if constexpr (sizeof(Stored) == 4 && pk_sim_is<Number, pk_sim_mma_s32>)
    return stored;
  else {
    unsigned bits = 0;
    __builtin_memcpy(&bits, &stored, sizeof stored);
    if constexpr (Number::bits == 4) bits = bits >> 4 * j & 0xfu;
    return Number::of(bits);
  }
}

template <class A, class B, class C, class D>
struct pk_sim_multiply_frame {
  const pk_sim_warp_work *work;
  const A *a;
  const B *b;
  const C *c;
  D *d;
  bool saturate;
};

template <class Step, class A, class B, class C, class D>
struct pk_sim_multiply_work {
  typedef pk_sim_multiply_frame<A, B, C, D> Frame;
  // Elements that are multiplied in one stored: bits stay together.
  template <class Shape>
  static constexpr int split = pk_sim_is<typename Shape::element::number, pk_sim_mma_b1> ? 1 : Shape::element::count;

  template <class Shape, class Visit>
  PK_SIM_MATRIX_INLINE void each(int lane, const typename Shape::stored *x, Visit visit) {
    for (int i = 0; i < Shape::kept; ++i) {
      const pk_sim_spot at = Shape::place(lane, i);
      for (int j = 0; j < split<Shape>; ++j)
        visit(at.row, at.column * split<Shape> + j, pk_sim_number<typename Shape::element::number>(x[i], j));
    }
  }
  static PK_SIM_UNCHECKED void compute(void *const *frames) {
    typedef typename A::pk_sim_shape Left;
    typedef typename B::pk_sim_shape Right;
    typedef typename C::pk_sim_shape From;
    typedef typename D::pk_sim_shape To;
    typedef typename Left::element::number::value Value;
    constexpr int columns = Left::columns * split<Left>;
    Value a[Left::rows][columns], b[columns][Right::rows];
    typename pk_sim_sum_type<Value>::type sum[Left::rows][Right::rows];
    for (int lane = 0; lane < 32; ++lane) {
      const Frame &own = *(const Frame *)frames[lane];
      each<Left>(lane, own.a->x, [&](int row, int column, Value value) PK_SIM_UNCHECKED { a[row][column] = value; });
      each<Right>(lane, own.b->x, [&](int row, int column, Value value) PK_SIM_UNCHECKED { b[column][row] = value; });
      each<From>(lane, own.c->x, [&](int row, int column, auto value) PK_SIM_UNCHECKED { sum[row][column] = value; });
    }
    pk_sim_product<Step>(sum, a, b);
    for (int lane = 0; lane < 32; ++lane) {
      const Frame &own = *(const Frame *)frames[lane];
      for (int i = 0; i < To::kept; ++i) {
        const pk_sim_spot at = To::place(lane, i);
        pk_sim_keep(own.d->x[i], sum[at.row][at.column], own.saturate);
      }
    }
  }
  static constexpr pk_sim_warp_work work = {pk_sim_is<Step, pk_sim_multiply> ? "mma_sync" : "bmma_sync", compute};
};

template <class Step, class A, class B, class C, class D>
PK_SIM_INLINE void pk_sim_multiply_fragments(D &d, const A &a, const B &b, const C &c, bool saturate, const char *file,
                                             int line) {
  typedef pk_sim_multiply_work<Step, A, B, C, D> Work;
  typename Work::Frame frame = {&Work::work, &a, &b, &c, &d, saturate};
  pk_sim_fragment_used(a, file, line);
  pk_sim_fragment_used(b, file, line);
  pk_sim_fragment_used(c, file, line);
  pk_sim_matrix_call(frame, file, line);
  pk_sim_fragment_set(d);
}

}  // namespace wmma
}  // namespace nvcuda
