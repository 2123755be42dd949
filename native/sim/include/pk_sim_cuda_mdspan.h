// pk_sim_cuda_mdspan.h: cuda::std's mdspan: an array of several dimensions over memory, by rows, by columns or by
// strides.
#pragma once
#pragma GCC system_header

#include "pk_sim_cuda_values.h"

namespace cuda {
namespace std {

template <class Index, size_t... E>
class extents {
  static constexpr size_t given[sizeof...(E) + 1] = {E..., 0};
  Index extents_[sizeof...(E) + 1] = {(Index)(E == dynamic_extent ? 0 : E)..., 0};

 public:
  typedef Index index_type;
  typedef size_t rank_type;
  typedef make_unsigned_t<Index> size_type;
  static constexpr size_t rank() noexcept { return sizeof...(E); }
  static constexpr size_t rank_dynamic() noexcept { return ((E == dynamic_extent ? 1 : 0) + ... + 0); }
  static constexpr size_t static_extent(size_t r) noexcept { return given[r]; }
  constexpr Index extent(size_t r) const noexcept { return extents_[r]; }

  constexpr extents() = default;
  // All extents, or those that the type does not say.
  template <class... N, class = enable_if_t<sizeof...(N) == sizeof...(E) || sizeof...(N) == rank_dynamic()>>
  constexpr explicit extents(N... counts) {
    const Index all[sizeof...(N) + 1] = {(Index)counts..., 0};
    for (size_t r = 0, at = 0; r < rank(); ++r)
      if (sizeof...(N) == rank() || given[r] == dynamic_extent) extents_[r] = all[at++];
  }
  template <class N, size_t Count>
  constexpr extents(const array<N, Count> &counts) {
    for (size_t r = 0, at = 0; r < rank(); ++r)
      if (Count == rank() || given[r] == dynamic_extent) extents_[r] = (Index)counts[at++];
  }
  template <class Other, size_t... F, class = enable_if_t<sizeof...(F) == sizeof...(E)>>
  constexpr extents(const extents<Other, F...> &other) {
    for (size_t r = 0; r < rank(); ++r) extents_[r] = (Index)other.extent(r);
  }
  template <class Other, size_t... F>
  friend constexpr bool operator==(const extents &a, const extents<Other, F...> &b) {
    bool same = sizeof...(E) == sizeof...(F);
    for (size_t r = 0; same && r < rank(); ++r) same = a.extent(r) == (Index)b.extent(r);
    return same;
  }
};
template <class Index, size_t Rank, size_t... E>
struct pk_sim_dynamic_extents : pk_sim_dynamic_extents<Index, Rank - 1, dynamic_extent, E...> {};
template <class Index, size_t... E>
struct pk_sim_dynamic_extents<Index, 0, E...> : type_identity<extents<Index, E...>> {};
template <class Index, size_t Rank>
using dextents = typename pk_sim_dynamic_extents<Index, Rank>::type;
template <size_t Rank, class Index = size_t>
using dims = dextents<Index, Rank>;
template <class... N>
extents(N...) -> extents<size_t, (sizeof(N) ? dynamic_extent : 0)...>;

template <class Extents>
class pk_sim_mapping {
 public:
  typedef Extents extents_type;
  typedef typename Extents::index_type index_type;
  constexpr const Extents &extents() const noexcept { return extents_; }
  constexpr index_type stride(size_t r) const noexcept { return strides_[r]; }
  template <class... I>
  constexpr index_type operator()(I... indices) const {
    static_assert(sizeof...(I) == Extents::rank(), "an index for each dimension");
    const index_type at[sizeof...(I) + 1] = {(index_type)indices..., 0};
    index_type place = 0;
    for (size_t r = 0; r < sizeof...(I); ++r) place += at[r] * strides_[r];
    return place;
  }
  constexpr index_type required_span_size() const {
    index_type last = 1;
    for (size_t r = 0; r < Extents::rank(); ++r) {
      if (extents_.extent(r) == 0) return 0;
      last += (extents_.extent(r) - 1) * strides_[r];
    }
    return last;
  }

 protected:
  Extents extents_;
  index_type strides_[Extents::rank() + 1] = {};
  constexpr pk_sim_mapping(const Extents &extents) : extents_(extents) {}
};
struct layout_right {
  template <class Extents>
  struct mapping : pk_sim_mapping<Extents> {
    typedef layout_right layout_type;
    constexpr mapping(const Extents &extents = {}) : pk_sim_mapping<Extents>(extents) {
      typename Extents::index_type step = 1;
      for (size_t r = Extents::rank(); r-- > 0; step *= extents.extent(r)) this->strides_[r] = step;
    }
  };
};
struct layout_left {
  template <class Extents>
  struct mapping : pk_sim_mapping<Extents> {
    typedef layout_left layout_type;
    constexpr mapping(const Extents &extents = {}) : pk_sim_mapping<Extents>(extents) {
      typename Extents::index_type step = 1;
      for (size_t r = 0; r < Extents::rank(); step *= extents.extent(r++)) this->strides_[r] = step;
    }
  };
};
struct layout_stride {
  template <class Extents>
  struct mapping : pk_sim_mapping<Extents> {
    typedef layout_stride layout_type;
    template <class N>
    constexpr mapping(const Extents &extents, const array<N, Extents::rank()> &strides)
        : pk_sim_mapping<Extents>(extents) {
      for (size_t r = 0; r < Extents::rank(); ++r) this->strides_[r] = strides[r];
    }
  };
};

template <class T>
struct default_accessor {
  typedef T element_type;
  typedef T &reference;
  typedef T *data_handle_type;
  constexpr T &access(T *first, size_t i) const noexcept { return first[i]; }
  constexpr T *offset(T *first, size_t i) const noexcept { return first + i; }
};

template <class T, class Extents, class Layout = layout_right, class Accessor = default_accessor<T>>
class mdspan {
 public:
  typedef Extents extents_type;
  typedef Layout layout_type;
  typedef Accessor accessor_type;
  typedef typename Layout::template mapping<Extents> mapping_type;
  typedef T element_type;
  typedef remove_cv_t<T> value_type;
  typedef typename Extents::index_type index_type;
  typedef typename Accessor::data_handle_type data_handle_type;
  typedef typename Accessor::reference reference;

  template <class... N, class = enable_if_t<conjunction_v<is_convertible<N, index_type>...>>>
  constexpr explicit mdspan(data_handle_type data, N... counts) : data_(data), mapping_(Extents(counts...)) {}
  constexpr mdspan(data_handle_type data, const Extents &extents) : data_(data), mapping_(extents) {}
  constexpr mdspan(data_handle_type data, const mapping_type &mapping) : data_(data), mapping_(mapping) {}
  constexpr mdspan(data_handle_type data, const mapping_type &mapping, const Accessor &accessor)
      : data_(data), mapping_(mapping), accessor_(accessor) {}

  static constexpr size_t rank() noexcept { return Extents::rank(); }
  static constexpr size_t rank_dynamic() noexcept { return Extents::rank_dynamic(); }
  static constexpr size_t static_extent(size_t r) noexcept { return Extents::static_extent(r); }
  constexpr const Extents &extents() const noexcept { return mapping_.extents(); }
  constexpr index_type extent(size_t r) const noexcept { return extents().extent(r); }
  constexpr index_type stride(size_t r) const noexcept { return mapping_.stride(r); }
  constexpr const mapping_type &mapping() const noexcept { return mapping_; }
  constexpr const Accessor &accessor() const noexcept { return accessor_; }
  constexpr data_handle_type data_handle() const noexcept { return data_; }
  constexpr size_t size() const noexcept {
    size_t all = 1;
    for (size_t r = 0; r < rank(); ++r) all *= extent(r);
    return all;
  }
  constexpr bool empty() const noexcept { return size() == 0; }
  template <class... I>
  constexpr reference operator()(I... indices) const {
    return accessor_.access(data_, mapping_(indices...));
  }
  template <class I>
  constexpr reference operator[](const array<I, Extents::rank()> &indices) const {
    size_t place = 0;
    for (size_t r = 0; r < rank(); ++r) place += indices[r] * stride(r);
    return accessor_.access(data_, place);
  }
#ifdef __cpp_multidimensional_subscript
  template <class... I>
  constexpr reference operator[](I... indices) const {
    return (*this)(indices...);
  }
#endif

 private:
  data_handle_type data_;
  mapping_type mapping_;
  Accessor accessor_;
};
template <class T, class... N>
mdspan(T *, N...) -> mdspan<T, dextents<size_t, sizeof...(N)>>;
template <class T, class Index, size_t... E>
mdspan(T *, const extents<Index, E...> &) -> mdspan<T, extents<Index, E...>>;
template <class T, class Mapping, class = typename Mapping::layout_type>
mdspan(T *, const Mapping &) -> mdspan<T, typename Mapping::extents_type, typename Mapping::layout_type>;

}  // namespace std
}  // namespace cuda
