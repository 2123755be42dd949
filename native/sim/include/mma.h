// mma.h: warp matrix fragments, nvcuda::wmma, on the simulated device.
#pragma once
#pragma GCC system_header

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "pk_sim_fragment.h"

namespace nvcuda {
namespace wmma {

enum layout_t { mem_row_major, mem_col_major };

// What a lane holds of a matrix, whose elements `x` are in an order that nobody may rely on.
template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment {
 public:
  typedef pk_sim_fragment<Use, m, n, k, T, Layout> pk_sim_shape;
  enum { num_elements = pk_sim_shape::elements, num_storage_elements = pk_sim_shape::storage_elements };
  typedef T element_type;
  typedef typename pk_sim_shape::stored storage_element_type;
  // Alignment as on a device.
  __align__(8) storage_element_type x[num_storage_elements];
};

PK_SIM_INLINE float __float_to_tf32(float value) {
  const unsigned bits = __float_as_uint(value);
  return __uint_as_float((bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu);
}

template <class Use, int m, int n, int k, class T, class Layout>
PK_SIM_INLINE void fill_fragment(fragment<Use, m, n, k, T, Layout> &f,
                                 const typename pk_sim_fragment<Use, m, n, k, T, Layout>::stored &value) {
  const auto filled = pk_sim_element_of<T>::spread(value);
  for (int i = 0; i < f.num_storage_elements; ++i) f.x[i] = filled;
  pk_sim_fragment_set(f);
}

template <int m, int n, int k, class T, class Layout>
PK_SIM_INLINE void load_matrix_sync(fragment<matrix_a, m, n, k, T, Layout> &a,
                                    const typename pk_sim_element_of<T>::memory *p, unsigned ldm, PK_SIM_HERE) {
  pk_sim_load(a, p, ldm, pk_sim_is<Layout, row_major>, pk_sim_file, pk_sim_line);
}
template <int m, int n, int k, class T, class Layout>
PK_SIM_INLINE void load_matrix_sync(fragment<matrix_b, m, n, k, T, Layout> &b,
                                    const typename pk_sim_element_of<T>::memory *p, unsigned ldm, PK_SIM_HERE) {
  pk_sim_load(b, p, ldm, pk_sim_is<Layout, row_major>, pk_sim_file, pk_sim_line);
}
template <int m, int n, int k, class T>
PK_SIM_INLINE void load_matrix_sync(fragment<accumulator, m, n, k, T> &c,
                                    const typename pk_sim_element_of<T>::memory *p, unsigned ldm, layout_t layout,
                                    PK_SIM_HERE) {
  pk_sim_load(c, p, ldm, layout == mem_row_major, pk_sim_file, pk_sim_line);
}
template <int m, int n, int k, class T>
PK_SIM_INLINE void store_matrix_sync(typename pk_sim_element_of<T>::memory *p,
                                     const fragment<accumulator, m, n, k, T> &d, unsigned ldm, layout_t layout,
                                     PK_SIM_HERE) {
  pk_sim_store(p, d, ldm, layout == mem_row_major, pk_sim_file, pk_sim_line);
}

// satf: infinities become the largest number, NaN becomes zero; sums of integers stay at the ends of their range.
template <int m, int n, int k, class TA, class TB, class LayoutA, class LayoutB, class TC, class TD>
PK_SIM_INLINE void mma_sync(fragment<accumulator, m, n, k, TD> &d, const fragment<matrix_a, m, n, k, TA, LayoutA> &a,
                            const fragment<matrix_b, m, n, k, TB, LayoutB> &b,
                            const fragment<accumulator, m, n, k, TC> &c, bool satf = false, PK_SIM_HERE) {
  static_assert(pk_sim_is<TA, TB>, "the elements of a and b are of one type");
  static_assert(pk_sim_sums_known<TA, TC> && pk_sim_sums_known<TA, TD>, "sums of these elements have another type");
  static_assert(!pk_sim_is<TA, experimental::precision::b1>, "single bits are multiplied by bmma_sync()");
  pk_sim_multiply_fragments<pk_sim_multiply>(d, a, b, c, satf, pk_sim_file, pk_sim_line);
}

namespace experimental {
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental

PK_SIM_INLINE void bmma_sync(fragment<accumulator, 8, 8, 128, int> &d,
                             const fragment<matrix_a, 8, 8, 128, experimental::precision::b1, row_major> &a,
                             const fragment<matrix_b, 8, 8, 128, experimental::precision::b1, col_major> &b,
                             const fragment<accumulator, 8, 8, 128, int> &c,
                             experimental::bmmaBitOp op = experimental::bmmaBitOpXOR,
                             experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC, PK_SIM_HERE) {
  if (op == experimental::bmmaBitOpXOR)
    pk_sim_multiply_fragments<pk_sim_differ>(d, a, b, c, false, pk_sim_file, pk_sim_line);
  else
    pk_sim_multiply_fragments<pk_sim_both>(d, a, b, c, false, pk_sim_file, pk_sim_line);
}

}  // namespace wmma
}  // namespace nvcuda
